#include "model/probe.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <unordered_map>

namespace saltus {

namespace {

/// Arguments beyond which exp is next to nothing or everything, and tanh and 1/(1 + exp) one to nearly all digits.
constexpr double far_exponent = 30, far_front = 12;
/// The largest argument is brought to this size.
constexpr double near_exponent = 8;
constexpr int most_nested = 4;

/// How much further than seen an argument goes, 1 or less if it does not.
double excess(Op op, double argument) {
  switch (op) {
    case Op::exp:
    case Op::expm1:
    case Op::sinh:
    case Op::cosh: return std::abs(argument) / far_exponent;
    case Op::tanh: return std::abs(argument) / far_front;
    default: return 0;
  }
}

struct ValueAndSize {
  double value = 0, size = 0;
  double excess = 0;  ///< the largest of the formula
};

ValueAndSize evaluate_with_size(const Expr& root, const std::function<double(const Symbol&)>& lookup, double scale) {
  std::unordered_map<const Node*, std::pair<double, double>> done;  // value and size
  std::array<double, 3> a{};
  double furthest = 0;
  for (const Expr& e : postorder(std::span(&root, 1))) {
    double value = 0, size = 0;
    const auto part = [&](size_t i) { return done.at(e.argument(i).node()); };
    for (size_t i = 0; i < e.size(); ++i) a[i] = part(i).first;
    if (const double far = e.size() == 1 ? excess(e.op(), a[0]) : 0; far > 0) {
      if (std::isfinite(far)) furthest = std::max(furthest, far);
      a[0] *= scale;
    }
    value = e.size() == 0 ? evaluate(e, lookup) : apply(e, a.data());
    switch (e.op()) {
      case Op::add:
      case Op::sub: size = part(0).second + part(1).second; break;
      case Op::mul: size = part(0).second * part(1).second; break;
      case Op::div: size = part(0).second / std::abs(part(1).first); break;
      case Op::neg: size = part(0).second; break;
      default: size = std::abs(value);
    }
    done.emplace(e.node(), std::pair(value, size));
  }
  const auto& [value, size] = done.at(root.node());
  return {value, size, furthest};
}

}  // namespace

double magnitude(const Expr& root, const std::function<double(const Symbol&)>& lookup) {
  return evaluate_with_size(root, lookup, 1).size;
}

double exponent_scale(const Expr& root, const std::function<double(const Symbol&)>& lookup) {
  double scale = 1;
  for (int nested = 0; nested < most_nested; ++nested) {
    const double far = evaluate_with_size(root, lookup, scale).excess * scale;
    if (far <= 1) break;
    scale *= near_exponent / (far_exponent * far);
  }
  return scale;
}

double apply_scaled(const Expr& node, const double* a, double scale) {
  if (scale == 1 || node.size() != 1 || excess(node.op(), 1) == 0) return apply(node, a);
  const double scaled = a[0] * scale;
  return apply(node, &scaled);
}

Probe::Probe(const Model& model) : parameters_(parameter_values(model)) {}

double Probe::operator()(const Expr& e, unsigned point) const {
  return evaluate(e, [&](const Symbol& s) { return value(s, point); });
}

double Probe::scale(const Expr& e, unsigned point) const {
  return exponent_scale(e, [&](const Symbol& s) { return value(s, point); });
}

bool Probe::is_zero(const Expr& e) const {
  if (e.is_number()) return e.value() == 0;
  // (1 - sigma)/2 is zero on one side only: all sides of a few switches are looked at, some of many.
  std::unordered_map<int, unsigned> sigmas;
  for (const Expr& s : symbols_in(std::span(&e, 1))) {
    if (s.is_symbol(SymbolKind::sigma)) sigmas.emplace(s.symbol().index, static_cast<unsigned>(sigmas.size()));
  }
  const size_t few = 6;
  const unsigned sides = 1u << std::min(sigmas.size(), few);
  const auto vanishes = [&](unsigned point, double size, bool if_undefined) {
    const auto lookup = [&](const Symbol& s) {
      if (s.kind == SymbolKind::state || s.kind == SymbolKind::time) return size * value(s, point);
      if (s.kind != SymbolKind::sigma || sigmas.size() > few) return value(s, point);
      return (point - 1) >> sigmas.at(s.index) & 1u ? -1.0 : 1.0;
    };
    const auto vanishes_at = [&](double scale) {
      const ValueAndSize v = evaluate_with_size(e, lookup, scale);
      return std::isfinite(v.value) ? std::abs(v.value) <= 1e-13 * v.size : if_undefined;
    };
    if (!vanishes_at(1)) return false;
    const double scale = size == 1 ? exponent_scale(e, lookup) : 1;
    return scale == 1 || vanishes_at(scale);
  };
  for (unsigned point = 1; point <= std::max(sides, 4u); ++point) {
    if (!vanishes(point, 1, false)) return false;
  }
  // Terms that large ones hide near 1 (x/1e-9 - x/1e-9 + 1) are seen where states are small.
  for (const double size : {1e-6, 1e-12}) {
    for (unsigned point = 1; point <= sides; ++point) {
      if (!vanishes(point, size, true)) return false;
    }
  }
  return true;
}

double Probe::value(const Symbol& s, unsigned point) const {
  if (s.kind == SymbolKind::parameter) return parameters_[static_cast<size_t>(s.index)];
  std::minstd_rand random(point * 7919u + static_cast<unsigned>(s.kind) * 104729u +
                          static_cast<unsigned>(s.index) * 15485863u);
  random.discard(3);
  const double u = std::uniform_real_distribution<double>(0.3, 1.7)(random);
  const bool up = random() * 0x9E3779B97F4A7C15u >> 63 == 0;  // mixed: the signs of several symbols are independent
  switch (s.kind) {
    case SymbolKind::sigma: return up ? 1.0 : -1.0;
    case SymbolKind::counter: return 0.0;
    case SymbolKind::lambda:
    case SymbolKind::time: return u;
    default: return up ? u : -u;
  }
}

}  // namespace saltus
