#include "expr/tidy.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>
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

constexpr size_t most_terms = 400;  ///< of a product that is multiplied out

using Terms = std::vector<Factors>;

Factors times(const Factors& a, const Factors& b) {
  Factors out = a;
  out.number *= b.number;
  for (const auto& [e, power] : b.powers) out.add(e, power);
  return out;
}

/// The terms of a node from those of its arguments; nothing where it is one term of its own.
std::optional<Terms> combined(const Expr& e, std::span<const Terms* const> a) {
  switch (e.op()) {
    case Op::neg:
    case Op::add:
    case Op::sub: {
      Terms out = *a[0];
      if (e.op() == Op::neg) {
        for (Factors& f : out) f.number = -f.number;
        return out;
      }
      for (Factors f : *a[1]) {
        if (e.op() == Op::sub) f.number = -f.number;
        out.push_back(std::move(f));
      }
      return out;
    }
    case Op::mul: {
      if (a[0]->size() * a[1]->size() > most_terms) return std::nullopt;
      Terms out;
      for (const Factors& f : *a[0]) {
        for (const Factors& g : *a[1]) out.push_back(times(f, g));
      }
      return out;
    }
    case Op::div: {
      const Factors under = factors_of(e.argument(1));
      if (under.number == 0) return std::nullopt;
      Factors inverse{1 / under.number, under.powers};
      for (auto& [factor, power] : inverse.powers) power = -power;
      Terms out;
      for (const Factors& f : *a[0]) out.push_back(times(f, inverse));
      return out;
    }
    default: return std::nullopt;
  }
}

/// Terms with equal factors as one.
Terms added_up(const Terms& terms) {
  Terms out;
  std::map<std::vector<std::pair<const Node*, double>>, size_t> known;
  for (const Factors& f : terms) {
    std::vector<std::pair<const Node*, double>> key;
    for (const auto& [e, power] : f.powers) {
      if (power != 0) key.emplace_back(e.node(), power);
    }
    std::sort(key.begin(), key.end());
    const auto [it, fresh] = known.try_emplace(std::move(key), out.size());
    if (fresh) {
      out.push_back(f);
    } else {
      out[it->second].number += f.number;
    }
  }
  std::erase_if(out, [](const Factors& f) { return f.number == 0; });
  return out;
}

}  // namespace

Expr collect_terms(const Expr& root) {
  std::unordered_map<const Node*, Terms> terms;
  for (const Expr& e : postorder(std::span(&root, 1))) {
    std::vector<const Terms*> a;
    for (size_t i = 0; i < e.size(); ++i) a.push_back(&terms.at(e.argument(i).node()));
    std::optional<Terms> own = e.size() > 0 ? combined(e, a) : std::nullopt;
    terms.emplace(e.node(), own ? added_up(*own) : Terms{factors_of(e)});
  }
  Expr sum = 0.0;
  for (const Factors& f : terms.at(root.node())) sum = sum + product_of(f);
  return sum;
}

Expr tidy(const Expr& root) {
  return Rebuild([](const Expr& node, std::span<const Expr> a) {
    if (a.empty()) return node;
    const Expr e = make(node.op(), a);
    return e.op() == Op::mul || e.op() == Op::div ? product_of(factors_of(e)) : e;
  })(root);
}

}  // namespace saltus
