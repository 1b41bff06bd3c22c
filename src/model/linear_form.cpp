#include "model/linear_form.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "model/model.hpp"

namespace saltus {

std::optional<double> literal(const Expr& e) {
  if (e.is_number()) return e.value();
  if (e.is_symbol(SymbolKind::constant)) return constant_value(e, {});
  return std::nullopt;
}

namespace {

bool before(const Expr& a, const Expr& b) { return std::less<>{}(a.node(), b.node()); }

/// All nodes below a formula, users before arguments: each is met once, with all that comes from above known.
std::vector<Expr> from_above(const Expr& root) {
  std::vector<Expr> nodes = postorder(std::span(&root, 1));
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

/// Splits a product into a number and an atom that does not depend on the order of its factors.
std::pair<double, Expr> split_product(const Expr& product) {
  double number = 1;
  std::vector<std::pair<Expr, double>> factors;
  ExprMap<double> powers{{product, 1.0}};
  for (const Expr& e : from_above(product)) {
    const auto found = powers.find(e);
    if (found == powers.end()) continue;
    const double power = found->second;
    if (const auto v = literal(e)) {
      number *= std::pow(*v, power);
    } else if (e.op() == Op::mul) {
      powers[e.argument(0)] += power;
      powers[e.argument(1)] += power;
    } else if (e.op() == Op::neg) {
      if (std::fmod(power, 2) != 0) number = -number;
      powers[e.argument(0)] += power;
    } else {
      factors.emplace_back(e, power);
    }
  }
  std::sort(factors.begin(), factors.end(), [](const auto& a, const auto& b) { return before(a.first, b.first); });
  Expr atom = 1.0;
  for (const auto& [factor, power] : factors) atom = atom * pow(factor, power);
  return {number, atom};
}

}  // namespace

LinearForm linear_form(const Expr& root) {
  LinearForm out;
  ExprMap<double> factors{{root, 1.0}}, sums;
  for (const Expr& e : from_above(root)) {
    const auto found = factors.find(e);
    if (found == factors.end()) continue;
    const double factor = found->second;
    if (const auto v = literal(e)) {
      out.constant += factor * *v;
      continue;
    }
    switch (e.op()) {
      case Op::add:
        factors[e.argument(0)] += factor;
        factors[e.argument(1)] += factor;
        continue;
      case Op::sub:
        factors[e.argument(0)] += factor;
        factors[e.argument(1)] -= factor;
        continue;
      case Op::neg: factors[e.argument(0)] -= factor; continue;
      case Op::div:
        if (const auto v = literal(e.argument(1)); v && *v != 0) {
          factors[e.argument(0)] += factor / *v;
          continue;
        }
        break;
      case Op::mul: {
        const auto [number, atom] = split_product(e);
        if (atom.is_number()) {
          out.constant += factor * number * atom.value();
          continue;
        }
        if (std::isfinite(number) && number != 0) {
          // A single factor is a formula further down and may be a sum: 2*(x - y).
          const bool sum = atom.op() == Op::add || atom.op() == Op::sub || atom.op() == Op::div;
          (sum ? factors : sums)[atom] += factor * number;
          continue;
        }
        break;
      }
      default: break;
    }
    sums[e] += factor;
  }
  for (auto& [atom, c] : sums) {
    if (c != 0) out.terms.emplace_back(atom, c);
  }
  std::sort(out.terms.begin(), out.terms.end(), [](const auto& a, const auto& b) { return before(a.first, b.first); });
  return out;
}

double ratio(const LinearForm& a, const LinearForm& b) {
  if (a.terms.size() != b.terms.size() || a.terms.empty()) return 0;
  const double c = a.terms[0].second / b.terms[0].second;
  const auto matches = [c](double x, double y) { return std::abs(x - c * y) <= 4e-16 * std::abs(x); };
  for (size_t i = 0; i < a.terms.size(); ++i) {
    if (!(a.terms[i].first == b.terms[i].first) || !matches(a.terms[i].second, b.terms[i].second)) return 0;
  }
  return matches(a.constant, b.constant) ? c : 0;
}

}  // namespace saltus
