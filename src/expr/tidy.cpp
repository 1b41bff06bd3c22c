#include "expr/tidy.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace saltus {
namespace {

constexpr size_t most_factors = 60;

struct Factors {
  double number = 1;
  std::vector<std::pair<Expr, double>> powers{};  ///< in order of first appearance

  void add(const Expr& factor, double power) {
    const auto known = std::find_if(powers.begin(), powers.end(), [&](const auto& p) { return p.first == factor; });
    if (known != powers.end()) {
      known->second += power;
    } else {
      powers.emplace_back(factor, power);
    }
  }
};

bool is_whole_power(const Expr& e) {
  return e.op() == Op::pow && e.argument(1).is_number() && e.argument(1).value() == std::floor(e.argument(1).value()) &&
         std::abs(e.argument(1).value()) < 1e6;
}

Factors factors_of(const Expr& root) {
  Factors out;
  std::vector<std::pair<Expr, double>> pending{{root, 1.0}};
  while (!pending.empty()) {
    const auto [e, power] = pending.back();
    pending.pop_back();
    if (e.is_number() && (power > 0 || e.value() != 0)) {
      out.number *= std::pow(e.value(), power);
    } else if (e.op() == Op::neg) {
      if (std::fmod(power, 2) != 0) out.number = -out.number;
      pending.emplace_back(e.argument(0), power);
    } else if ((e.op() == Op::mul || e.op() == Op::div) && out.powers.size() + pending.size() < most_factors) {
      pending.emplace_back(e.argument(1), e.op() == Op::mul ? power : -power);
      pending.emplace_back(e.argument(0), power);
    } else if (is_whole_power(e)) {
      out.add(e.argument(0), power * e.argument(1).value());
    } else {
      out.add(e, power);
    }
  }
  return out;
}

/// number*a*b^2/(c*d); a number that is one over a whole number stands below.
Expr product_of(const Factors& f) {
  if (f.number == 0) return 0.0;
  const double size = std::abs(f.number), inverse = 1 / size;
  const bool below = size < 1 && inverse == std::round(inverse) && 1 / inverse == size;
  Expr above = below ? 1.0 : size, under = below ? inverse : 1.0;
  for (const auto& [e, power] : f.powers) {
    if (power == 0) continue;
    Expr& side = power > 0 ? above : under;
    side = side * (std::abs(power) == 1 ? e : pow(e, std::abs(power)));
  }
  const Expr whole = above / under;
  return f.number < 0 ? -whole : whole;
}

}  // namespace

Expr tidy(const Expr& root) {
  return Rebuild([](const Expr& node, std::span<const Expr> a) {
    if (a.empty()) return node;
    const Expr e = make(node.op(), a);
    return e.op() == Op::mul || e.op() == Op::div ? product_of(factors_of(e)) : e;
  })(root);
}

}  // namespace saltus
