#include "model/polynomial_form.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "model/model.hpp"

namespace saltus {
namespace {

using Monomial = PolynomialForm::Monomial;

struct Coefficient {
  double value = 0, size = 0;
};
using Polynomial = std::map<Monomial, Coefficient>;

constexpr size_t most_terms = 64;
constexpr int largest_power = 64;
/// Rounding of a coefficient that a few dozen operations have made, in units of its size.
constexpr double coefficient_rounding = 64 * std::numeric_limits<double>::epsilon();

bool is_rounding(const Coefficient& c) { return std::abs(c.value) <= coefficient_rounding * c.size; }

Monomial product(const Monomial& a, const Monomial& b) {
  Monomial out = a;
  for (const auto& [atom, power] : b) {
    const auto place =
        std::lower_bound(out.begin(), out.end(), atom, [](const auto& one, const Node* n) { return one.first < n; });
    if (place != out.end() && place->first == atom) {
      place->second += power;
      if (place->second == 0) out.erase(place);
    } else {
      out.insert(place, {atom, power});
    }
  }
  return out;
}

void add(Polynomial& to, const Polynomial& p, double factor) {
  for (const auto& [monomial, c] : p) {
    Coefficient& sum = to[monomial];
    sum.value += factor * c.value;
    sum.size += std::abs(factor) * c.size;
  }
}

std::optional<Polynomial> product(const Polynomial& a, const Polynomial& b) {
  Polynomial out;
  for (const auto& [of_a, c] : a) {
    for (const auto& [of_b, d] : b) {
      Coefficient& sum = out[product(of_a, of_b)];
      sum.value += c.value * d.value;
      sum.size += c.size * d.size;
    }
    if (out.size() > most_terms) return std::nullopt;
  }
  return out;
}

/// 1/p of a single term.
std::optional<Polynomial> reciprocal(const Polynomial& p) {
  if (p.size() != 1 || p.begin()->second.value == 0) return std::nullopt;
  Monomial inverse = p.begin()->first;
  for (auto& [atom, power] : inverse) power = -power;
  const double value = 1 / p.begin()->second.value;
  return Polynomial{{inverse, {value, std::abs(value)}}};
}

std::optional<Polynomial> whole_power(const Polynomial& p, double power) {
  if (power != std::floor(power) || std::abs(power) > largest_power) return std::nullopt;
  std::optional<Polynomial> base = power < 0 ? reciprocal(p) : p, out = Polynomial{{{}, {1, 1}}};
  for (int k = 0; base && out && k < std::abs(power); ++k) out = product(*out, *base);
  return out;
}

class SumBuilder {
 public:
  SumBuilder(std::span<const double> parameters, std::vector<Expr>& atoms) : parameters_(parameters), atoms_(atoms) {}

  Polynomial run(const Expr& root) {
    for (const Expr& e : postorder(std::span(&root, 1))) {
      std::optional<Polynomial> p = polynomial(e);
      done_[e] = p && is_finite(*p) ? std::move(*p) : atom(e);
    }
    return done_.at(root);
  }

 private:
  static bool is_finite(const Polynomial& p) {
    return std::all_of(p.begin(), p.end(), [](const auto& term) { return std::isfinite(term.second.size); });
  }

  static Polynomial number(double value) { return {{{}, {value, std::abs(value)}}}; }

  Polynomial atom(const Expr& e) {
    const Expr kept = numbered(e);
    if (kept.is_number()) return number(kept.value());
    atoms_.push_back(kept);
    return {{{{kept.node(), 1}}, {1, 1}}};
  }

  /// Numbers for parameters, so that functions of equal arguments are one atom.
  Expr numbered(const Expr& e) const {
    ExprMap<Expr> values;
    for (const Expr& s : symbols_in(std::span(&e, 1))) {
      if (s.is_symbol(SymbolKind::parameter)) values.emplace(s, parameters_[static_cast<size_t>(s.symbol().index)]);
    }
    return values.empty() ? e : substitute(e, values);
  }

  std::optional<Polynomial> polynomial(const Expr& e) {
    if (e.is_number()) return number(e.value());
    if (e.is_symbol(SymbolKind::constant)) return number(constant_value(e, {}));
    if (e.is_symbol(SymbolKind::parameter)) return number(parameters_[static_cast<size_t>(e.symbol().index)]);
    const auto part = [&](size_t i) -> const Polynomial& { return done_.at(e.argument(i)); };
    Polynomial out;
    switch (e.op()) {
      case Op::add:
      case Op::sub:
        out = part(0);
        add(out, part(1), e.op() == Op::add ? 1 : -1);
        return out.size() <= most_terms ? std::optional(std::move(out)) : std::nullopt;
      case Op::neg: add(out, part(0), -1); return out;
      case Op::mul: return product(part(0), part(1));
      case Op::div: {
        const std::optional<Polynomial> inverse = reciprocal(part(1));
        return inverse ? product(part(0), *inverse) : over(part(0), atom(e.argument(1)));
      }
      case Op::pow: {
        const Polynomial& power = part(1);
        if (power.size() == 1 && power.begin()->first.empty()) return whole_power(part(0), power.begin()->second.value);
        return std::nullopt;
      }
      default: return std::nullopt;
    }
  }

  static std::optional<Polynomial> over(const Polynomial& p, const Polynomial& divisor) {
    const std::optional<Polynomial> inverse = reciprocal(divisor);
    return inverse ? product(p, *inverse) : std::nullopt;
  }

  std::span<const double> parameters_;
  std::vector<Expr>& atoms_;
  ExprMap<Polynomial> done_;
};

}  // namespace

PolynomialForm polynomial_form(const Expr& formula, std::span<const double> parameters) {
  PolynomialForm out;
  const Polynomial p = SumBuilder(parameters, out.formulas).run(formula);
  for (const auto& [monomial, c] : p) {
    if (!is_rounding(c)) out.terms.push_back({monomial, c.value, c.size});
  }
  return out;
}

double ratio(const PolynomialForm& a, const PolynomialForm& b) {
  if (a.terms.size() != b.terms.size() || a.terms.empty()) return 0;
  double factor = 0;
  for (size_t i = 0; i < a.terms.size(); ++i) {
    const PolynomialForm::Term &one = a.terms[i], &other = b.terms[i];
    if (one.monomial != other.monomial) return 0;
    if (i == 0) factor = one.coefficient / other.coefficient;
    const double off = std::abs(one.coefficient - factor * other.coefficient);
    if (!(off <= coefficient_rounding * (one.size + std::abs(factor) * other.size))) return 0;
  }
  return std::isfinite(factor) ? factor : 0;
}

}  // namespace saltus
