#include "model/quotient.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "model/linear_form.hpp"

namespace saltus {
namespace {

/// Divisors with their powers, in the order in which they are met.
using Powers = std::vector<std::pair<Expr, int>>;

struct FormulaFraction {
  Expr numerator;
  Powers divisors;
};

constexpr size_t most_divisors = 6;
constexpr int largest_divisor_power = 6;

int& power_of(Powers& powers, const Expr& e) {
  const auto found = std::find_if(powers.begin(), powers.end(), [&](const auto& p) { return p.first == e; });
  return found != powers.end() ? found->second : powers.emplace_back(e, 0).second;
}

Expr whole_power(const Expr& base, int power) { return power == 1 ? base : pow(base, power); }

/// Sign of a formula everywhere: 1 if it is nowhere negative, -1 if nowhere positive, 0 if neither is told by how it is
/// written.
class Signs {
 public:
  int of(const Expr& root) {
    for (const Expr& e : postorder(std::span(&root, 1))) done_[e] = sign(e);
    return done_.at(root);
  }

 private:
  int sign(const Expr& e) const {
    if (const auto v = literal(e)) return *v > 0 ? 1 : *v < 0 ? -1 : 0;
    const auto part = [&](size_t i) { return done_.at(e.argument(i)); };
    switch (e.op()) {
      case Op::add: return part(0) == part(1) ? part(0) : 0;
      case Op::sub: return part(0) == -part(1) ? part(0) : 0;
      case Op::neg: return -part(0);
      case Op::mul: return e.argument(0) == e.argument(1) ? 1 : part(0) * part(1);
      case Op::div: return part(0) * part(1);
      case Op::pow: return power_sign(e.argument(1), part(0));
      case Op::exp:
      case Op::cosh:
      case Op::sqrt:
      case Op::hypot:
      case Op::acos: return 1;
      default: return 0;
    }
  }
  static int power_sign(const Expr& exponent, int base) {
    const auto power = literal(exponent);
    if (!power || *power != std::floor(*power)) return 1;  // where it has a value its base is not negative
    return std::fmod(*power, 2) == 0 ? 1 : base;
  }

  ExprMap<int> done_;
};

/// True if a divisor may change its sign along a trajectory, and has a formula of its own there.
bool may_change_sign(const Expr& e) {
  bool varies = false;
  for (const Expr& s : symbols_in(std::span(&e, 1))) {
    switch (s.symbol().kind) {
      case SymbolKind::state:
      case SymbolKind::time: varies = true; break;
      case SymbolKind::parameter:
      case SymbolKind::constant: break;
      default: return false;
    }
  }
  return varies && Signs().of(e) == 0;
}

class Fractions {
 public:
  FormulaFraction of(const Expr& root) {
    for (const Expr& e : postorder(std::span(&root, 1))) {
      std::optional<FormulaFraction> f = fraction(e);
      done_[e] = f && f->divisors.size() <= most_divisors ? std::move(*f) : FormulaFraction{e, {}};
    }
    return done_.at(root);
  }

 private:
  std::optional<FormulaFraction> fraction(const Expr& e) const {
    const auto part = [&](size_t i) -> const FormulaFraction& { return done_.at(e.argument(i)); };
    switch (e.op()) {
      case Op::add: return sum(part(0), part(1), 1);
      case Op::sub: return sum(part(0), part(1), -1);
      case Op::neg: return FormulaFraction{-part(0).numerator, part(0).divisors};
      case Op::mul: return product(part(0), part(1));
      case Op::div: return product(part(0), inverse(part(1)));
      case Op::tan:
        if (!may_change_sign(e.argument(0))) return std::nullopt;
        return FormulaFraction{make(Op::sin, e.argument(0)), {{make(Op::cos, e.argument(0)), 1}}};
      case Op::pow: return power(part(0), e.argument(1));
      default: return std::nullopt;
    }
  }

  /// 1/f: factors of the numerator that may vanish become divisors, the others stay below the line.
  static FormulaFraction inverse(const FormulaFraction& f) {
    FormulaFraction out{1.0, {}};
    Expr below = 1.0;
    std::vector<std::pair<Expr, int>> factors{{f.numerator, 1}};
    while (!factors.empty()) {
      const auto [factor, power] = factors.back();
      factors.pop_back();
      const auto exponent = factor.op() == Op::pow ? literal(factor.argument(1)) : std::nullopt;
      const bool whole = exponent && *exponent > 0 && *exponent == std::floor(*exponent) && *exponent < 100;
      if (factor.op() == Op::mul) {
        factors.emplace_back(factor.argument(0), power);
        factors.emplace_back(factor.argument(1), power);
      } else if (whole && may_change_sign(factor.argument(0))) {
        factors.emplace_back(factor.argument(0), power * static_cast<int>(*exponent));
      } else if (may_change_sign(factor)) {
        power_of(out.divisors, factor) += power;
      } else {
        below = below * whole_power(factor, power);
      }
    }
    for (const auto& [divisor, power] : f.divisors) out.numerator = out.numerator * whole_power(divisor, power);
    out.numerator = out.numerator / below;
    return out;
  }

  static FormulaFraction product(const FormulaFraction& a, const FormulaFraction& b) {
    FormulaFraction out{a.numerator * b.numerator, a.divisors};
    for (const auto& [divisor, power] : b.divisors) power_of(out.divisors, divisor) += power;
    return out;
  }

  static FormulaFraction sum(const FormulaFraction& a, const FormulaFraction& b, double sign) {
    FormulaFraction out{0.0, a.divisors};
    for (const auto& [divisor, power] : b.divisors) {
      int& common = power_of(out.divisors, divisor);
      common = std::max(common, power);
    }
    const auto extended = [&](const FormulaFraction& f) {
      Expr numerator = f.numerator;
      Powers own = f.divisors;
      for (const auto& [divisor, power] : out.divisors) {
        if (const int missing = power - power_of(own, divisor); missing > 0)
          numerator = numerator * whole_power(divisor, missing);
      }
      return numerator;
    };
    const Expr left = extended(a), right = extended(b);
    out.numerator = sign > 0 ? left + right : left - right;
    return out;
  }

  static std::optional<FormulaFraction> power(const FormulaFraction& base, const Expr& exponent) {
    const auto r = literal(exponent);
    if (!r || *r != std::floor(*r) || *r == 0) return std::nullopt;
    const int power = static_cast<int>(std::clamp(std::abs(*r), 0.0, 1e6));
    if (*r > 0 && base.divisors.empty()) return std::nullopt;
    if (power > largest_divisor_power && std::abs(*r) != power) return std::nullopt;
    const FormulaFraction once = *r > 0 ? base : inverse(base);
    if (once.divisors.empty()) return std::nullopt;
    FormulaFraction out{whole_power(once.numerator, power), once.divisors};
    for (auto& [divisor, own] : out.divisors) own *= power;
    return out;
  }

  ExprMap<FormulaFraction> done_;
};

}  // namespace

Quotient quotient_of(const Expr& formula) {
  const FormulaFraction f = Fractions().of(formula);
  Quotient out{f.divisors.empty() ? formula : f.numerator, {}};
  for (const auto& [divisor, power] : f.divisors) {
    if (power % 2 != 0) out.divisors.push_back(divisor);
  }
  return out;
}

std::vector<Expr> cuts_of(const Expr& formula) {
  std::vector<Expr> out;
  for (const Expr& e : postorder(std::span(&formula, 1))) {
    if (e.op() != Op::atan2 || contains_kind(e, SymbolKind::sigma)) continue;
    const Expr y = e.argument(0);
    if (!may_change_sign(y) || Signs().of(e.argument(1)) > 0) continue;
    if (std::find(out.begin(), out.end(), y) == out.end()) out.push_back(y);
  }
  return out;
}

Expr without_cuts(const Expr& formula, const std::vector<Expr>& cuts, const std::vector<Expr>& signs) {
  Rebuild rebuild([&](const Expr& e, std::span<const Expr> a) -> Expr {
    if (a.empty()) return e;
    if (e.op() == Op::atan2) {
      const auto found = std::find(cuts.begin(), cuts.end(), e.argument(0));
      if (found != cuts.end() && e.argument(0) == a[0]) {
        const Expr s = signs[static_cast<size_t>(found - cuts.begin())];
        return s * (pi() / Expr(2)) + make(Op::atan2, -(s * a[1]), s * a[0]);
      }
    }
    return make(e.op(), a);
  });
  return rebuild(formula);
}

}  // namespace saltus
