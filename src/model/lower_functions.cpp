// Each nonsmooth function as a smooth formula of sigmas and counters.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "expr/interpolant.hpp"
#include "expr/print.hpp"
#include "model/derive.hpp"
#include "model/lowering.hpp"

namespace saltus {
namespace {

/// 1 where sigma is 1, 0 where it is -1.
Expr truth(const Expr& sigma) { return (Expr(1) + sigma) / Expr(2); }

}  // namespace

Expr Lowering::lower_node(const Expr& e, std::span<const Expr> a) {
  if (const std::optional<Expr> value = lower_of_switches(e, a)) return *value;
  switch (e.op()) {
    case Op::sign: return sigma({.written = e.argument(0), .lowered = a[0], .fixes_ratio = true, .rank = 2});
    case Op::hold_sign: return lower_hold(e, a);
    case Op::unit: return lower_unit(e, a);
    case Op::abs: return sigma({.written = e.argument(0), .lowered = a[0], .kink = true}) * a[0];
    case Op::step:
      return truth(
          sigma({.written = e.argument(0), .lowered = a[0], .fixes_ratio = true, .inside = "step", .rank = 2}));
    case Op::min:
    case Op::max: return lower_extreme(e, a);
    case Op::sat: return lower_saturation(e, a);
    case Op::greater:
    case Op::greater_equal: return lower_comparison(e, a[0], a[1]);
    case Op::less:
    case Op::less_equal: return lower_comparison(e, a[1], a[0]);
    case Op::both: return a[0] * a[1];
    case Op::either: return a[0] + a[1] - a[0] * a[1];
    case Op::negation: return Expr(1) - a[0];
    case Op::select: return lower_select(a);
    case Op::mod: return lower_mod(e, a);
    case Op::floor: return lower_floor(e, a[0]);
    case Op::table: return lower_table(e, a[0]);
    default: return a.empty() ? e : make(e.op(), a);
  }
}

/// A function of switches alone (two of three relays, a saturated one) has no surface of its own: its values on the
/// sides of those switches, interpolated.
std::optional<Expr> Lowering::lower_of_switches(const Expr& e, std::span<const Expr> a) {
  if (e.op() < Op::sign || e.op() == Op::hold_sign || e.op() == Op::unit || e.op() == Op::components ||
      e.op() == Op::both || e.op() == Op::either || e.op() == Op::negation || e.op() == Op::select)
    return std::nullopt;
  std::vector<Expr> arguments;
  for (const Expr& argument : a) arguments.push_back(expand(argument));
  std::vector<Expr> sigmas;
  for (const Expr& s : symbols_in(arguments)) {
    const bool is_sigma = s.is_symbol(SymbolKind::sigma);
    if (is_sigma && !form_.switches[static_cast<size_t>(s.symbol().index)].holds) {
      sigmas.push_back(s);
    } else if (is_sigma || !(is_constant(s) || s.is_symbol(SymbolKind::table))) {
      return std::nullopt;
    }
  }
  // A switch that may rest on its surface has a third value there. (Lowering the values may tell more about these
  // switches.)
  constexpr size_t most = 64;
  constexpr std::array<double, 3> side{-1, 1, 0};
  std::vector<size_t> sides;  // of each sigma
  size_t corners = 1;
  for (const Expr& s : sigmas) {
    const Switch& own = form_.switches[static_cast<size_t>(s.symbol().index)];
    sides.push_back(own.may_be_zero && own.at_zero == 0 ? 3 : 2);
    corners = std::min(corners * sides.back(), most + 1);
  }
  if (sigmas.empty() || corners > most) return std::nullopt;
  std::vector<Expr> values;  // on each combination of sides, those of the first sigma next to each other
  for (size_t corner = 0; corner < corners; ++corner) {
    ExprMap<Expr> given;
    for (size_t i = 0, rest = corner; i < sigmas.size(); rest /= sides[i++])
      given.emplace(sigmas[i], side[rest % sides[i]]);
    std::vector<Expr> there;
    for (const Expr& argument : arguments) there.push_back(substitute(argument, given));
    if (e.op() == Op::table) {  // which may end before a combination that never comes
      const auto v = literal(there[0]);
      if (!v || !std::isfinite((*e.argument(1).symbol().curve)(*v))) return std::nullopt;
    }
    values.push_back(lower_node(Expr::raw(e.op(), there), there));
  }
  for (size_t i = 0; i < sigmas.size(); ++i) {  // one after the other is put back
    std::vector<Expr> fewer;
    for (size_t k = 0; k < values.size(); k += sides[i]) {
      const Expr mean = (values[k] + values[k + 1]) / Expr(2), half = (values[k + 1] - values[k]) / Expr(2);
      const Expr rest = sides[i] == 3 ? values[k + 2] : mean;
      fewer.push_back(rest + half * sigmas[i] + (mean - rest) * pow(sigmas[i], 2));
    }
    values = std::move(fewer);
  }
  return values[0];
}

Expr Lowering::lower_comparison(const Expr& written, const Expr& more, const Expr& less) {
  const bool swap = written.op() == Op::less || written.op() == Op::less_equal;
  const Expr left = written.argument(swap ? 1 : 0), right = written.argument(swap ? 0 : 1);
  const bool equal_is_true = written.op() == Op::less_equal || written.op() == Op::greater_equal;
  const Expr s = sigma({.written = left - right,
                        .lowered = more - less,
                        .fixes_ratio = true,
                        .inside = "if",
                        .at_zero = equal_is_true ? 1 : -1,
                        .rank = 3});
  if (s.is_number(0)) return equal_is_true;  // x >= x
  return truth(s);
}

Expr Lowering::lower_hold(const Expr& e, std::span<const Expr> a) {
  const Expr hold = expand(a[1]);
  if (!constant(hold)) {
    fail(fmt::format("the static ratio '{}' is not constant", print(e.argument(1))),
         "the second argument of sign may use numbers and parameters");
  }
  return sigma({.written = e.argument(0), .lowered = a[0], .hold = hold, .fixes_ratio = true});
}

/// The component along the first argument of a vector switch: an existing one whose surfaces are these up to order and
/// sign, or a new one.
Expr Lowering::lower_unit(const Expr& e, std::span<const Expr> a) {
  std::vector<Expr> written{e.argument(0)}, surfaces{expand(a[0])};
  const Expr others = e.argument(1);
  if (others.op() == Op::components) {
    for (const size_t i : {size_t{0}, size_t{1}}) {
      written.push_back(others.argument(i));
      surfaces.push_back(expand(a[1].argument(i)));
    }
  } else {
    written.push_back(others);
    surfaces.push_back(expand(a[1]));
  }
  const Expr hold = expand(a[2]);
  if (!constant(hold)) fail("the static ratio of unit is not constant", "it may use numbers and parameters");
  for (size_t i = 0; i < surfaces.size(); ++i) {
    if (contains_kind(surfaces[i], SymbolKind::lambda))
      fail(fmt::format("unit of '{}', which depends on a multiplier", print(written[i])),
           "its arguments may depend on states, time, parameters and switches");
  }
  if (surfaces[0].is_number(0)) return 0.0;
  std::vector<LinearForm> shapes;
  for (const Expr& s : surfaces) shapes.push_back(linear_form(s));
  constexpr double same = 1e-12;
  const auto sign_of = [&](const LinearForm& shape, int part) {  // of equal size
    const double c = ratio(shape, shapes_[static_cast<size_t>(part)]);
    return std::abs(std::abs(c) - 1) < same ? (c > 0 ? 1 : -1) : 0;
  };
  for (const VectorSwitch& v : form_.vectors) {
    std::vector<int> left = v.parts;
    int first = -1, sign = 0;
    bool fits = left.size() == shapes.size();
    for (size_t i = 0; fits && i < shapes.size(); ++i) {
      const auto found =
          std::find_if(left.begin(), left.end(), [&](int part) { return sign_of(shapes[i], part) != 0; });
      fits = found != left.end();
      if (fits && i == 0) first = *found, sign = sign_of(shapes[0], *found);
      if (fits) left.erase(found);
    }
    if (!fits) continue;
    if (!(form_.switches[static_cast<size_t>(v.parts[0])].hold == hold))
      fail(fmt::format("two different static ratios on '{}'", form_.switches[static_cast<size_t>(v.parts[0])].name),
           "holding belongs to the vector: give every unit of it the same ratio behind the semicolon");
    return sign > 0 ? sigma_symbol(form_, first) : -sigma_symbol(form_, first);
  }
  const auto name_from = [&](size_t first) {  // that component before the others
    std::string name = "(" + print(simplify(written[first]));
    for (size_t i = 0; i < written.size(); ++i) {
      if (i != first) name += ", " + print(simplify(written[i]));
    }
    return name + ")";
  };
  VectorSwitch v;
  const int index = static_cast<int>(form_.vectors.size());
  for (size_t i = 0; i < surfaces.size(); ++i) {
    v.parts.push_back(static_cast<int>(form_.switches.size()));
    Switch& s = add_switch({.name = name_from(i), .surface = surfaces[i], .vector = index, .hidden = i > 0}, shapes[i]);
    s.discrete = false;
    s.may_be_zero = true;  // its square is not one
    s.hold = hold;
    s.holds = i == 0 && !hold.is_number(1);
    s.hold_place = *place_;
    ratio_fixed_.back() = true;
  }
  form_.vectors.push_back(std::move(v));
  return sigma_symbol(form_, form_.vectors.back().parts[0]);
}

Expr Lowering::lower_extreme(const Expr& e, std::span<const Expr> a) {
  const bool is_max = e.op() == Op::max;
  const bool trivial = constant(a[0]) && constant(a[1]);
  const Expr first = truth(sigma({.written = e.argument(0) - e.argument(1),
                                  .lowered = a[0] - a[1],
                                  .fixes_ratio = true,
                                  .selects = !trivial,
                                  .inside = op_name(e.op()),
                                  .at_zero = 1,
                                  .rank = 1,
                                  .kink = true}));
  const Expr larger = first, smaller = Expr(1) - first;
  return (is_max ? larger : smaller) * a[0] + (is_max ? smaller : larger) * a[1];
}

Expr Lowering::lower_saturation(const Expr& e, std::span<const Expr> a) {
  const auto above = [&](size_t limit) {
    return sigma({.written = e.argument(0) - e.argument(limit),
                  .lowered = a[0] - a[limit],
                  .fixes_ratio = true,
                  .selects = true,
                  .inside = "sat",
                  .at_zero = 1,
                  .rank = 1,
                  .kink = true});
  };
  const Expr low = above(1), high = above(2);
  if (constant(a[1]) && constant(a[2])) {
    const double l = start_value(a[1]), h = start_value(a[2]);
    if (l > h) {
      fail(fmt::format("sat has its limits in the wrong order: {} > {}", print_number(l), print_number(h)),
           "write sat(e, low, high)");
    }
  }
  if (low.is_symbol() && high.is_symbol()) disjoint_.insert(std::minmax(low.symbol().index, high.symbol().index));
  const Expr c = truth(low), d = truth(high);
  return (Expr(1) - c) * a[1] + c * ((Expr(1) - d) * a[0] + d * a[2]);
}

Expr Lowering::lower_select(std::span<const Expr> a) {
  if (a[1] == a[2]) return a[1];
  if (!constant(a[1]) || !constant(a[2])) {
    for (const Expr& s : symbols_in(std::span(&a[0], 1))) {
      if (s.is_symbol(SymbolKind::sigma)) form_.switches[static_cast<size_t>(s.symbol().index)].selects = true;
    }
  }
  return a[0] * a[1] + (Expr(1) - a[0]) * a[2];
}

Expr Lowering::lower_mod(const Expr& written, std::span<const Expr> a) {
  if (constant(a[1])) {
    if (const double period = start_value(a[1]); !(period > 0)) {
      fail(fmt::format("the period of mod is {}", print_number(period)), "write mod(e, T) with T > 0");
    }
  }
  return a[0] - a[1] * lower_floor(written, a[0] / a[1]);
}

Expr Lowering::lower_floor(const Expr& written, const Expr& argument) {
  const Expr phase = expand(argument);
  if (const auto v = literal(phase)) return std::floor(*v);
  if (contains_kind(phase, SymbolKind::lambda)) {
    fail("mod and floor of something that depends on a multiplier", "use states and time only");
  }
  const Counter& c = counter_of(written, phase, nullptr);
  return count_symbol(c) + (sigma_symbol(form_, c.below) + sigma_symbol(form_, c.above)) / Expr(2);
}

/// The polynomial of the present piece; its neighbours' by the switches on the breaks between them.
Expr Lowering::lower_table(const Expr& written, const Expr& argument) {
  const Symbol& table = written.argument(1).symbol();
  const Interpolant& curve = *table.curve;
  const Expr phase = expand(argument);
  if (const auto v = literal(phase)) {
    if (const double value = curve(*v); std::isfinite(value)) return value;
    fail(fmt::format("'{}' is not given at {}", table.name, print_number(*v)),
         fmt::format("its points go from {} to {}; outside = \"hold\", \"repeat\" or \"zero\" goes further",
                     print_number(curve.x().front()), print_number(curve.x().back())));
  }
  if (contains_kind(phase, SymbolKind::lambda))
    fail(fmt::format("'{}' of something that depends on a multiplier", table.name), "use states and time only");
  const Counter& c = counter_of(written, phase, table.curve);
  const Expr half = 0.5, from_origin = phase - table_symbol(c, TableValue::origin);
  const auto neighbour = [&](TableValue which, TableValue end) {
    const Expr from_break = phase - table_symbol(c, end);
    Expr out = curve.jumps() ? table_symbol(c, which) : Expr(0);
    if (curve.between() == Between::step) return out;
    Expr slope = table_symbol(c, which, 1);  // a natural spline has no jump of its second derivative
    if (curve.between() == Between::cubic) slope = slope + pow(from_break, 2) * table_symbol(c, which, 3);
    return out + slope * from_break;
  };
  Expr value = table_symbol(c, TableValue::value);
  if (curve.between() == Between::linear) value = value + table_symbol(c, TableValue::value, 1) * from_origin;
  if (curve.between() == Between::cubic) {
    Expr inner = table_symbol(c, TableValue::value, 3);
    for (int k = 2; k > 0; --k) inner = table_symbol(c, TableValue::value, k) + from_origin * inner;
    value = value + from_origin * inner;
  }
  return value + half * (Expr(1) - sigma_symbol(form_, c.below)) * neighbour(TableValue::below, TableValue::from) +
         half * (Expr(1) + sigma_symbol(form_, c.above)) * neighbour(TableValue::above, TableValue::to);
}

}  // namespace saltus
