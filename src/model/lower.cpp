#include "model/lower.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <set>
#include <unordered_set>

#include <fmt/format.h>

#include "expr/diff.hpp"
#include "expr/interpolant.hpp"
#include "expr/print.hpp"
#include "model/derive.hpp"

namespace saltus {
namespace {

// ---- equal surfaces share one switch --------------------------------------------------------------------------------

/// A surface as constant + sum of coefficient * atom, where only literal numbers count as coefficients.
struct LinearForm {
  std::vector<std::pair<Expr, double>> terms;  ///< sorted by atom
  double constant = 0;
};

std::optional<double> literal(const Expr& e) {
  if (e.is_number()) return e.value();
  if (e.is_symbol(SymbolKind::constant)) return constant_value(e, {});
  return std::nullopt;
}

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

/// The number c with a = c*b, or 0 if there is none.
double ratio(const LinearForm& a, const LinearForm& b) {
  if (a.terms.size() != b.terms.size() || a.terms.empty()) return 0;
  const double c = a.terms[0].second / b.terms[0].second;
  const auto matches = [c](double x, double y) { return std::abs(x - c * y) <= 4e-16 * std::abs(x); };
  for (size_t i = 0; i < a.terms.size(); ++i) {
    if (!(a.terms[i].first == b.terms[i].first) || !matches(a.terms[i].second, b.terms[i].second)) return 0;
  }
  return matches(a.constant, b.constant) ? c : 0;
}

using Pairs = std::set<std::pair<int, int>>;

// ---- lowering of formulas ---------------------------------------------------------------------------------------

class Lowering {
 public:
  explicit Lowering(Model& model)
      : model_(model),
        form_(model.form),
        parameters_(parameter_values(model)),
        rebuild_([this](const Expr& e, std::span<const Expr> a) { return lower_node(e, a); }) {}

  void run() {
    form_ = Form{};
    lowered_.resize(model_.definitions.size());
    find_constants();
    std::vector<Expr> rates(model_.states.size());
    for (const auto& [is_rate, i] : model_.order) {
      const size_t index = static_cast<size_t>(i);
      if (is_rate) {
        place_ = &model_.states[index].place;
        rates[index] = rebuild_(model_.states[index].rate);
      } else {
        lower_definition(index);
      }
    }
    for (const Expr& rate : rates) form_.f.push_back(expand(rate));
    for (size_t i = 0; i < lowered_.size(); ++i) form_.definitions.push_back(expand(*lowered_[i]));
    for (const Constraint& c : model_.constraints) {
      Gap gap{.gap = formula(c.gap, c.place)};
      if (c.restitution) gap.restitution = formula(*c.restitution, c.restitution_place);
      form_.gaps.push_back(std::move(gap));
    }
    hiding_ = true;  // kinks of what only observes or triggers are no switches of the model
    for (const Jump& j : model_.jumps) {
      LoweredJump jump{.on = without_odd_power(formula(j.on, j.place)),
                       .direction = j.direction,
                       .every = j.every,
                       .phase = j.phase};
      if (j.when) jump.when = plain(*j.when);
      for (const Assignment& a : j.set) jump.set.push_back({a.state, plain(a.value)});
      form_.jumps.push_back(std::move(jump));
    }
    for (const Section& s : model_.sections) {
      form_.sections.push_back(s.kind == Section::Kind::on ? without_odd_power(formula(s.value, s.place)) : Expr(0.0));
    }
    put_hidden_last();
  }

  /// Pairs of switches that cannot both be at zero (the two ends of one saturation).
  const Pairs& disjoint() const { return disjoint_; }

 private:
  Expr formula(const Expr& written, const Place& place) {
    place_ = &place;
    return expand(rebuild_(written));
  }

  /// Numbers the switches anew, those with a letter in modes first.
  void put_hidden_last() {
    const size_t count = form_.switches.size();
    std::vector<size_t> old_of;  // by new number
    for (const bool hidden : {false, true}) {
      for (size_t i = 0; i < count; ++i) {
        if (form_.switches[i].hidden == hidden) old_of.push_back(i);
      }
      if (!hidden) form_.visible = static_cast<int>(old_of.size());
    }
    std::vector<int> new_of(count);
    for (size_t i = 0; i < count; ++i) new_of[old_of[i]] = static_cast<int>(i);
    form_.order = new_of;  // they were made in an order in which each depends on earlier ones
    if (static_cast<size_t>(form_.visible) == count || std::is_sorted(new_of.begin(), new_of.end())) return;
    std::vector<Switch> switches;
    for (const size_t old : old_of) switches.push_back(form_.switches[old]);
    std::vector<Expr> sigmas;
    for (size_t i = 0; i < count; ++i) sigmas.push_back(sigma_symbol(form_, static_cast<int>(i)));
    form_.switches = std::move(switches);
    Rebuild renumber([&](const Expr& node, std::span<const Expr> a) {
      if (!a.empty()) return make(node.op(), a);
      return node.is_symbol(SymbolKind::sigma) ? sigma_symbol(form_, new_of[static_cast<size_t>(node.symbol().index)])
                                               : node;
    });
    const auto change = [&](Expr& e) { e = renumber(e); };
    for (Expr& f : form_.f) change(f);
    for (Switch& s : form_.switches) change(s.surface);
    for (Gap& g : form_.gaps) {
      change(g.gap);
      if (g.restitution) change(*g.restitution);
    }
    for (Counter& c : form_.counters) {
      change(c.phase);
      c.below = new_of[static_cast<size_t>(c.below)];
      c.above = new_of[static_cast<size_t>(c.above)];
    }
    for (LoweredJump& j : form_.jumps) change(j.on);
    for (Expr& e : form_.sections) change(e);
    for (Expr& e : form_.definitions) change(e);
    Pairs disjoint;
    for (const auto& [i, j] : disjoint_)
      disjoint.insert(std::minmax(new_of[static_cast<size_t>(i)], new_of[static_cast<size_t>(j)]));
    disjoint_ = std::move(disjoint);
  }

  [[noreturn]] void fail(std::string message, std::string hint) const {
    throw Error(ErrorKind::model, std::move(message), *place_, std::move(hint));
  }

  /// The definition's formula with its switches lowered; other definitions stay names.
  const Expr& lower_definition(size_t i) {
    if (!lowered_[i]) {
      const Place* outer = place_;
      place_ = &model_.definitions[i].place;
      lowered_[i] = rebuild_(model_.definitions[i].value);
      place_ = outer;
    }
    return *lowered_[i];
  }

  /// Names replaced by what they stand for, all the way down. Circles have been excluded when reading.
  Expr expand(const Expr& e) {
    if (model_.definitions.empty()) return e;
    if (!expanded_) {
      expanded_.emplace([this](const Expr& node, std::span<const Expr> a) {
        if (!a.empty()) return make(node.op(), a);
        if (!node.is_symbol(SymbolKind::definition)) return node;
        return expand_definition(static_cast<size_t>(node.symbol().index));
      });
    }
    return (*expanded_)(e);
  }

  /// Definitions below this one are expanded first, by a list instead of recursion: names may chain 10 000 deep.
  Expr expand_definition(size_t i) {
    std::vector<size_t> pending{i};
    const auto wait_for = [&](const std::vector<Expr>& symbols) {
      const size_t already = pending.size();
      for (const Expr& s : symbols) {
        if (!s.is_symbol(SymbolKind::definition)) continue;
        const size_t below = static_cast<size_t>(s.symbol().index);
        if (!definition_values_.contains(below)) pending.push_back(below);
      }
      return pending.size() > already;
    };
    while (!pending.empty()) {
      const size_t top = pending.back();
      if (definition_values_.contains(top)) {
        pending.pop_back();
        continue;
      }
      // Lowering a surface expands the names in it, so these must be known before.
      if (!lowered_[top] && wait_for(symbols_in_surfaces(model_.definitions[top].value))) continue;
      const Expr value = lower_definition(top);
      if (wait_for(symbols_in(std::span(&value, 1)))) continue;
      Rebuild replace([this](const Expr& node, std::span<const Expr> a) {
        if (!a.empty()) return make(node.op(), a);
        return node.is_symbol(SymbolKind::definition) ? definition_values_.at(static_cast<size_t>(node.symbol().index))
                                                      : node;
      });
      definition_values_.emplace(top, replace(value));
      pending.pop_back();
    }
    return definition_values_.at(i);
  }

  /// Names replaced by what was written for them, nothing lowered; names below others come first.
  Expr plain(const Expr& written) {
    const auto unknown_in = [this](const Expr& e) {
      std::vector<Expr> names = symbols_in(std::span(&e, 1));
      std::erase_if(names,
                    [this](const Expr& s) { return !s.is_symbol(SymbolKind::definition) || plain_.contains(s); });
      return names;
    };
    std::vector<Expr> pending = unknown_in(written);
    while (!pending.empty()) {
      const Expr name = pending.back();
      const Expr& value = model_.definitions[static_cast<size_t>(name.symbol().index)].value;
      const auto below = unknown_in(value);
      if (below.empty()) {
        plain_.emplace(name, substitute(value, plain_));
        pending.pop_back();
      }
      pending.insert(pending.end(), below.begin(), below.end());
    }
    return substitute(written, plain_);
  }

  static bool is_nonsmooth(Op op) { return op >= Op::sign; }

  static std::vector<Expr> symbols_in_surfaces(const Expr& e) {
    std::vector<Expr> roots;
    for (const Expr& node : postorder(std::span(&e, 1))) {
      if (is_nonsmooth(node.op())) roots.push_back(node);
    }
    return symbols_in(roots);
  }

  /// Which definitions stand for numbers; asked by the written formulas, so that nothing is lowered out of turn.
  void find_constants() {
    const size_t n = model_.definitions.size();
    std::vector<std::optional<bool>> known(n);
    std::vector<size_t> pending;
    for (size_t root = 0; root < n; ++root) {
      pending.push_back(root);
      while (!pending.empty()) {
        const size_t top = pending.back();
        bool known_constant = true, ready = true;
        if (!known[top]) {
          for (const Expr& s : symbols_in(std::span(&model_.definitions[top].value, 1))) {
            if (!s.is_symbol(SymbolKind::definition)) {
              known_constant = known_constant && is_constant(s);
            } else if (const auto below = known[static_cast<size_t>(s.symbol().index)]) {
              known_constant = known_constant && *below;
            } else {
              pending.push_back(static_cast<size_t>(s.symbol().index));
              ready = false;
            }
          }
          if (!ready) continue;
          known[top] = known_constant;
        }
        pending.pop_back();
      }
    }
    for (const auto& k : known) constant_definition_.push_back(*k);
  }

  /// Whether a formula stands for a number once parameters have values.
  bool constant(const Expr& e) const {
    const auto used = symbols_in(std::span(&e, 1));
    return std::all_of(used.begin(), used.end(), [this](const Expr& s) {
      return s.is_symbol(SymbolKind::definition) ? constant_definition_[static_cast<size_t>(s.symbol().index)]
                                                 : is_constant(s);
    });
  }

  struct SurfaceUse {
    Expr written;                ///< the surface as written, for its name
    Expr lowered;                ///< the same with inner switches lowered
    std::optional<Expr> hold{};  ///< the ratio of sign(v, s)
    bool fixes_ratio = false;    ///< sign, step, if, min, max: the values at the surface matter
    bool selects = false;
    std::string_view inside{};  ///< the function, where a holding surface is a mistake
    int at_zero = 0;            ///< what sigma is where the surface stays zero, if `rank` says that it matters
    int rank = 0;               ///< of several uses of one surface the highest decides
    bool kink = false;          ///< what it enters is continuous across the surface
    bool hidden = false;
  };

  /// The value of the switch on this surface: an existing one or a new one, with the sign that fits.
  Expr sigma(const SurfaceUse& use) {
    const Expr surface = without_odd_power(expand(use.lowered));
    if (contains_kind(surface, SymbolKind::lambda)) {
      fail(fmt::format("the surface '{}' depends on a multiplier", print(use.written)),
           "a switch may depend on states, time, parameters and other switches");
    }
    const LinearForm shape = linear_form(surface);
    if (shape.terms.empty()) return shape.constant > 0 ? 1.0 : shape.constant < 0 ? -1.0 : 0.0;
    size_t key = 0;
    for (const auto& [atom, c] : shape.terms) key = key * 31 + std::hash<const void*>{}(atom.node());
    for (const int i : by_shape_[key]) {
      const double c = ratio(shape, shapes_[static_cast<size_t>(i)]);
      if (c == 0) continue;
      note_use(form_.switches[static_cast<size_t>(i)], use, c > 0 ? 1 : -1);
      const Expr s = sigma_symbol(form_, i);
      return c > 0 ? s : -s;
    }
    const int index = static_cast<int>(form_.switches.size());
    form_.switches.push_back(
        {.name = print(simplify(use.written)), .surface = surface, .kink = true, .hidden = hiding_ || use.hidden});
    shapes_.push_back(shape);
    ratio_fixed_.push_back(false);
    selected_in_.emplace_back();
    rank_.push_back(0);
    by_shape_[key].push_back(index);
    note_use(form_.switches.back(), use, 1);
    return sigma_symbol(form_, index);
  }

  /// The surface of an odd power is that of its base: the base has simple zeros where the power has flat ones.
  static Expr without_odd_power(Expr surface) {
    for (;;) {
      const bool odd = surface.op() == Op::pow && surface.argument(1).is_number() &&
                       std::fmod(surface.argument(1).value(), 2) == 1 && surface.argument(1).value() > 0;
      const bool root = surface.op() == Op::cbrt;
      if (surface.op() == Op::mul) {  // K*u^3; deeper products are left alone
        const auto base = [](const Expr& e) {
          const bool power = e.op() == Op::pow && e.argument(1).is_number() &&
                             std::fmod(e.argument(1).value(), 2) == 1 && e.argument(1).value() > 0;
          return power ? e.argument(0) : e;
        };
        return base(surface.argument(0)) * base(surface.argument(1));
      }
      if (!odd && !root) return surface;
      surface = surface.argument(0);
    }
  }

  /// `side`: -1 if the switch has the opposite sign of the surface as used here.
  void note_use(Switch& s, const SurfaceUse& use, int side) {
    const size_t i = static_cast<size_t>(&s - form_.switches.data());
    s.selects = s.selects || use.selects;
    s.kink = s.kink && use.kink;
    if (use.rank > rank_[i]) {
      s.at_zero = side * use.at_zero;
      rank_[i] = use.rank;
    }
    if (!use.inside.empty()) selected_in_[i] = std::string(use.inside);
    if (use.fixes_ratio && use.inside.empty()) {
      const Expr hold = use.hold.value_or(1.0);
      if (ratio_fixed_[i] && !(s.hold == hold)) {
        fail(fmt::format("two different static ratios on the surface '{}'", s.name),
             "holding belongs to the surface: give every sign on it the same second argument");
      }
      s.hold = hold;
      s.holds = use.hold.has_value();
      s.hold_place = *place_;
      ratio_fixed_[i] = true;
    }
    if (s.holds && !selected_in_[i].empty()) {
      fail(fmt::format("the holding surface '{}' is used inside '{}'", s.name, selected_in_[i]),
           "a switch that holds may appear in sign and abs only");
    }
  }

  Expr truth(const Expr& sigma_value) { return (Expr(1) + sigma_value) / Expr(2); }

  Expr compare(const Expr& written, const Expr& more, const Expr& less) {
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

  Expr lower_node(const Expr& e, std::span<const Expr> a) {
    switch (e.op()) {
      case Op::sign: return sigma({.written = e.argument(0), .lowered = a[0], .fixes_ratio = true, .rank = 2});
      case Op::hold_sign: return lower_hold(e, a);
      case Op::abs: return sigma({.written = e.argument(0), .lowered = a[0], .kink = true}) * a[0];
      case Op::step:
        return truth(
            sigma({.written = e.argument(0), .lowered = a[0], .fixes_ratio = true, .inside = "step", .rank = 2}));
      case Op::min:
      case Op::max: return lower_extreme(e, a);
      case Op::sat: return lower_saturation(e, a);
      case Op::greater:
      case Op::greater_equal: return compare(e, a[0], a[1]);
      case Op::less:
      case Op::less_equal: return compare(e, a[1], a[0]);
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

  Expr lower_hold(const Expr& e, std::span<const Expr> a) {
    const Expr hold = expand(a[1]);
    if (!constant(hold)) {
      fail(fmt::format("the static ratio '{}' is not constant", print(e.argument(1))),
           "the second argument of sign may use numbers and parameters");
    }
    return sigma({.written = e.argument(0), .lowered = a[0], .hold = hold, .fixes_ratio = true});
  }

  Expr lower_extreme(const Expr& e, std::span<const Expr> a) {
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

  Expr lower_saturation(const Expr& e, std::span<const Expr> a) {
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

  Expr lower_select(std::span<const Expr> a) {
    if (a[1] == a[2]) return a[1];
    if (!constant(a[1]) || !constant(a[2])) {
      for (const Expr& s : symbols_in(std::span(&a[0], 1))) {
        if (s.is_symbol(SymbolKind::sigma)) form_.switches[static_cast<size_t>(s.symbol().index)].selects = true;
      }
    }
    return a[0] * a[1] + (Expr(1) - a[0]) * a[2];
  }

  Expr lower_floor(const Expr& written, const Expr& argument) {
    const Expr phase = expand(argument);
    if (const auto v = literal(phase)) return std::floor(*v);
    if (contains_kind(phase, SymbolKind::lambda)) {
      fail("mod and floor of something that depends on a multiplier", "use states and time only");
    }
    const Counter& c = counter_of(written, phase, nullptr);
    return counted(c) + (sigma_symbol(form_, c.below) + sigma_symbol(form_, c.above)) / Expr(2);
  }

  /// The polynomial of the present piece; its neighbours' by the switches on the breaks between them.
  Expr lower_table(const Expr& written, const Expr& argument) {
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

  static Expr counted(const Counter& c) { return Expr::symbol(SymbolKind::counter, c.at, c.name); }

  /// The counter of a phase: an existing one, or a new one with the two steps next to it.
  const Counter& counter_of(const Expr& written, const Expr& phase, const std::shared_ptr<const Interpolant>& curve) {
    size_t floors = 0;
    for (const Counter& c : form_.counters) {
      const bool same = curve ? c.curve && *c.curve == *curve : !c.curve;
      if (same && c.phase == phase) return c;
      if (!c.curve) ++floors;
    }
    const auto add_step = [&](const Expr& surface) {
      const int index = static_cast<int>(form_.switches.size());
      form_.switches.push_back({.name = print(simplify(written)),
                                .surface = surface,
                                .at_zero = 1,
                                .kink = curve && !curve->jumps(),
                                .hidden = true});
      shapes_.emplace_back();
      ratio_fixed_.push_back(true);
      selected_in_.emplace_back("floor");
      rank_.push_back(3);
      return index;
    };
    Counter c{.phase = phase, .at = form_.counter_values, .curve = curve};
    c.name = curve ? written.argument(1).symbol().name : fmt::format("wraps{}", floors + 1);
    form_.counter_values += 1 + (curve ? table_values : 0);
    c.below = add_step(phase - (curve ? table_symbol(c, TableValue::from) : counted(c)));
    c.above = add_step(phase - (curve ? table_symbol(c, TableValue::to) : counted(c) + Expr(1)));
    form_.counters.push_back(std::move(c));
    return form_.counters.back();
  }

  /// The value of a constant formula under the model's own parameters.
  double start_value(const Expr& e) { return constant_value(expand(e), parameters_); }

  Expr lower_mod(const Expr& written, std::span<const Expr> a) {
    if (constant(a[1])) {
      if (const double period = start_value(a[1]); !(period > 0)) {
        fail(fmt::format("the period of mod is {}", print_number(period)), "write mod(e, T) with T > 0");
      }
    }
    return a[0] - a[1] * lower_floor(written, a[0] / a[1]);
  }

  Model& model_;
  Form& form_;
  std::vector<double> parameters_;
  Rebuild rebuild_;
  std::optional<Rebuild> expanded_;
  const Place* place_ = nullptr;
  std::vector<std::optional<Expr>> lowered_;
  std::vector<bool> constant_definition_;
  std::unordered_map<size_t, Expr> definition_values_;
  ExprMap<Expr> plain_;  ///< names with their formulas as written
  std::unordered_map<size_t, std::vector<int>> by_shape_;
  std::vector<LinearForm> shapes_;
  std::vector<bool> ratio_fixed_;
  std::vector<std::string> selected_in_;
  std::vector<int> rank_;  // of the use that says what a switch is on its surface
  bool hiding_ = false;
  Pairs disjoint_;
};

// ---- facts about the form, probed at random points ---------------------------------------------------------------

/// Size of the numbers that were added to give a formula's value: its rounding error is a few eps of this.
double magnitude(const Expr& root, const std::function<double(const Symbol&)>& lookup) {
  std::unordered_map<const Node*, std::pair<double, double>> done;  // value and size
  std::array<double, 3> a{};
  for (const Expr& e : postorder(std::span(&root, 1))) {
    double value = 0, size = 0;
    const auto part = [&](size_t i) { return done.at(e.argument(i).node()); };
    for (size_t i = 0; i < e.size(); ++i) a[i] = part(i).first;
    value = e.size() == 0 ? evaluate(e, lookup) : apply(e.op(), a.data());
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
  return done.at(root.node()).second;
}

/// Random states and times under the model's own parameters: enough to tell "is zero" from "looks zero".
class Probe {
 public:
  explicit Probe(const Model& model) : parameters_(parameter_values(model)) {}

  /// The value of a formula at one random point.
  double operator()(const Expr& e, unsigned point) const {
    return evaluate(e, [&](const Symbol& s) { return value(s, point); });
  }

  /// Zero up to rounding, wherever it has a value.
  bool is_zero(const Expr& e) const {
    if (e.is_number()) return e.value() == 0;
    for (unsigned point = 1; point <= 4; ++point) {
      const auto lookup = [&](const Symbol& s) { return value(s, point); };
      const double v = evaluate(e, lookup);
      if (!std::isfinite(v) || std::abs(v) > 1e-13 * magnitude(e, lookup)) return false;
    }
    return true;
  }

  static constexpr unsigned points = 3;

 private:
  double value(const Symbol& s, unsigned point) const {
    if (s.kind == SymbolKind::parameter) return parameters_[static_cast<size_t>(s.index)];
    std::minstd_rand random(point * 7919u + static_cast<unsigned>(s.kind) * 104729u +
                            static_cast<unsigned>(s.index) * 15485863u);
    random.discard(3);
    const double u = std::uniform_real_distribution<double>(0.3, 1.7)(random);
    const bool up = random() / 64 % 2 == 0;
    switch (s.kind) {
      case SymbolKind::sigma: return up ? 1.0 : -1.0;
      case SymbolKind::counter: return 0.0;
      case SymbolKind::lambda:
      case SymbolKind::time: return u;
      default: return up ? u : -u;
    }
  }

  std::vector<double> parameters_;
};

/// The parts of a rate in which switches may meet: products with switches in both factors, and nonlinear functions of
/// switches. Sums and constant factors around them only add, so rates with 1000 switches in a sum cost nothing.
std::vector<Expr> meeting_points(const Expr& rate) {
  std::unordered_set<const Node*> with_switch, reached{rate.node()};
  std::vector<Expr> nodes = postorder(std::span(&rate, 1));
  const auto has = [&](const Expr& e) { return with_switch.contains(e.node()); };
  for (const Expr& e : nodes) {
    bool any = e.is_symbol(SymbolKind::sigma);
    for (size_t k = 0; k < e.size(); ++k) any = any || has(e.argument(k));
    if (any) with_switch.insert(e.node());
  }
  std::vector<Expr> points;
  std::reverse(nodes.begin(), nodes.end());
  for (const Expr& e : nodes) {
    if (!reached.contains(e.node()) || !has(e)) continue;
    const bool passes = e.op() == Op::add || e.op() == Op::sub || e.op() == Op::neg ||
                        (e.op() == Op::mul && !(has(e.argument(0)) && has(e.argument(1)))) ||
                        (e.op() == Op::div && !has(e.argument(1)));
    if (!passes) points.push_back(e);
    for (size_t k = 0; passes && k < e.size(); ++k) reached.insert(e.argument(k).node());
  }
  return points;
}

/// Pairs of switches that meet in a product or inside one nonlinear function of the rate.
Pairs candidate_pairs(const Expr& rate) {
  std::unordered_map<const Node*, std::vector<int>> below;
  Pairs pairs;
  const auto join = [&](const std::vector<int>& a, const std::vector<int>& b) {
    for (const int i : a) {
      for (const int j : b) {
        if (i != j) pairs.emplace(std::min(i, j), std::max(i, j));
      }
    }
  };
  for (const Expr& e : postorder(meeting_points(rate))) {
    std::vector<int> set;
    const auto part = [&](size_t k) -> const std::vector<int>& { return below.at(e.argument(k).node()); };
    if (e.is_symbol(SymbolKind::sigma)) set.push_back(e.symbol().index);
    for (size_t k = 0; k < e.size(); ++k) set.insert(set.end(), part(k).begin(), part(k).end());
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
    const bool linear =
        e.op() == Op::add || e.op() == Op::sub || e.op() == Op::neg || (e.op() == Op::div && part(1).empty());
    if (e.op() == Op::mul) {
      join(part(0), part(1));
    } else if (!linear) {
      join(set, set);
    }
    below.emplace(e.node(), std::move(set));
  }
  return pairs;
}

/// A rate as a flat list, to be evaluated often with two switches changed.
class FlatRate {
 public:
  FlatRate(const Expr& rate, const Probe& probe) : nodes_(postorder(std::span(&rate, 1))) {
    std::unordered_map<const Node*, size_t> at;
    for (const Expr& e : nodes_) {
      std::array<size_t, 3> from{};
      for (size_t k = 0; k < e.size(); ++k) from[k] = at.at(e.argument(k).node());
      arguments_.push_back(from);
      if (e.is_symbol(SymbolKind::sigma)) sigma_[e.symbol().index] = at.size();
      at.emplace(e.node(), at.size());
    }
    for (unsigned point = 1; point <= Probe::points; ++point) {
      std::vector<double> values(nodes_.size());
      for (size_t k = 0; k < nodes_.size(); ++k) {
        if (nodes_[k].size() == 0) values[k] = probe(nodes_[k], point);
      }
      points_.push_back(std::move(values));
    }
  }

  size_t size() const { return nodes_.size(); }

  /// Whether the second difference of the rate over both switches is not zero.
  bool interact(int i, int j) {
    bool known = false;
    for (std::vector<double>& values : points_) {
      const double old_i = values[sigma_.at(i)], old_j = values[sigma_.at(j)];
      const auto rate = [&](double si, double sj) {
        values[sigma_.at(i)] = si;
        values[sigma_.at(j)] = sj;
        return evaluate_at(values);
      };
      const double pp = rate(1, 1), pm = rate(1, -1), mp = rate(-1, 1), mm = rate(-1, -1);
      values[sigma_.at(i)] = old_i;
      values[sigma_.at(j)] = old_j;
      const double difference = pp - pm - mp + mm;
      if (!std::isfinite(difference)) continue;
      known = true;
      if (std::abs(difference) > 1e-12 * (std::abs(pp) + std::abs(pm) + std::abs(mp) + std::abs(mm))) return true;
    }
    return !known;
  }

 private:
  double evaluate_at(std::vector<double>& values) const {
    std::array<double, 3> a{};
    for (size_t k = 0; k < nodes_.size(); ++k) {
      const size_t n = nodes_[k].size();
      if (n == 0) continue;
      for (size_t i = 0; i < n; ++i) a[i] = values[arguments_[k][i]];
      values[k] = apply(nodes_[k].op(), a.data());
    }
    return values.back();
  }

  std::vector<Expr> nodes_;
  std::vector<std::array<size_t, 3>> arguments_;
  std::unordered_map<int, size_t> sigma_;
  std::vector<std::vector<double>> points_;
};

void find_interactions(Form& form, const Probe& probe, const Pairs& disjoint) {
  Pairs found;
  for (size_t k = 0; k < form.f.size(); ++k) {
    for (const Expr& s : symbols_in(std::span(&form.f[k], 1))) {
      if (s.is_symbol(SymbolKind::sigma))
        form.switches[static_cast<size_t>(s.symbol().index)].acts_on.push_back(static_cast<int>(k));
    }
    const Pairs candidates = candidate_pairs(form.f[k]);
    if (candidates.empty()) continue;
    FlatRate rate(form.f[k], probe);
    const bool affordable = static_cast<double>(candidates.size()) * static_cast<double>(rate.size()) < 1e7;
    for (const auto& pair : candidates) {
      const auto hidden = [&](int i) { return form.switches[static_cast<size_t>(i)].hidden; };
      if (disjoint.contains(pair) || found.contains(pair) || hidden(pair.first) || hidden(pair.second)) continue;
      if (!affordable || rate.interact(pair.first, pair.second)) found.insert(pair);  // when in doubt, say so
    }
  }
  for (const auto& [i, j] : found) {
    form.switches[static_cast<size_t>(i)].interacts.push_back(j);
    form.switches[static_cast<size_t>(j)].interacts.push_back(i);
  }
  for (Switch& s : form.switches) std::sort(s.interacts.begin(), s.interacts.end());
}

/// States that feel the multiplier, directly or through other states.
std::vector<bool> reached_states(const Form& form, const Expr& multiplier) {
  std::vector<bool> reached(form.f.size(), false);
  for (bool grew = true; grew;) {
    grew = false;
    for (size_t i = 0; i < form.f.size(); ++i) {
      if (reached[i]) continue;
      const auto used = symbols_in(std::span(&form.f[i], 1));
      reached[i] = std::any_of(used.begin(), used.end(), [&](const Expr& s) {
        return s == multiplier || (s.is_symbol(SymbolKind::state) && reached[static_cast<size_t>(s.symbol().index)]);
      });
      grew = grew || reached[i];
    }
  }
  return reached;
}

void check_affine_in_multipliers(const Model& model, const Probe& probe) {
  for (size_t i = 0; i < model.states.size(); ++i) {
    for (const Partial& d : gradient(model.form.f[i], SymbolKind::lambda)) {
      if (probe.is_zero(differentiate(d.value, d.symbol))) continue;
      throw Error(ErrorKind::model,
                  fmt::format("the rate of '{}' is not linear in the multiplier '{}'", model.states[i].name,
                              d.symbol.symbol().name),
                  model.states[i].place, "a multiplier is a force, current or voltage and enters rates linearly");
    }
  }
}

/// How many times the gap must be differentiated until its multiplier appears.
int relative_degree(const Model& model, size_t j, const Probe& probe) {
  const Form& form = model.form;
  const Constraint& c = model.constraints[j];
  const Expr multiplier = Expr::symbol(SymbolKind::lambda, static_cast<int>(j), c.name);
  Expr y = form.gaps[j].gap;
  if (contains_kind(y, SymbolKind::lambda)) return 0;
  for (int degree = 1; degree <= 2; ++degree) {
    y = lie_derivative(y, form);
    if (!probe.is_zero(differentiate(y, multiplier))) return degree;
  }
  const auto reached = reached_states(form, multiplier);
  const auto used = symbols_in(std::span(&form.gaps[j].gap, 1));
  const bool moves = std::any_of(used.begin(), used.end(), [&](const Expr& s) {
    return s.is_symbol(SymbolKind::state) && reached[static_cast<size_t>(s.symbol().index)];
  });
  if (moves) {
    throw Error(ErrorKind::model, fmt::format("the gap of '{}' has a relative degree above 2", c.name), c.place,
                fmt::format("'{}' must enter the gap, its first or its second time derivative", c.name));
  }
  throw Error(ErrorKind::model, fmt::format("the multiplier '{}' never moves its gap", c.name), c.place,
              fmt::format("let '{}' act on the rate of a state that the gap depends on", c.name));
}

void find_degrees(Model& model, const Probe& probe) {
  check_affine_in_multipliers(model, probe);
  for (size_t j = 0; j < model.constraints.size(); ++j) {
    const Constraint& c = model.constraints[j];
    Gap& gap = model.form.gaps[j];
    gap.degree = relative_degree(model, j, probe);
    if (gap.degree == 2 && !gap.restitution) {
      throw Error(ErrorKind::model, fmt::format("the contact '{}' has no restitution", c.name), c.place,
                  "add restitution = 0 (no rebound) up to 1 (no loss) below the gap");
    }
    if (gap.degree < 2 && gap.restitution) {
      throw Error(
          ErrorKind::model,
          fmt::format("'{}' is no contact (relative degree {}) and cannot have a restitution", c.name, gap.degree),
          c.restitution_place, "remove the line: only gaps between bodies with velocities rebound");
    }
  }
  // By rate, not by multiplier: a rate holds few of them, so long rows of contacts stay cheap.
  for (size_t i = 0; i < model.form.f.size(); ++i) {
    for (Partial& d : gradient(model.form.f[i], SymbolKind::lambda)) {
      const size_t j = static_cast<size_t>(d.symbol.symbol().index);
      model.form.gaps[j].direction.push_back({static_cast<int>(i), std::move(d.value)});
    }
  }
}

}  // namespace

void lower(Model& model) {
  Lowering lowering(model);
  lowering.run();
  const Probe probe(model);
  find_interactions(model.form, probe, lowering.disjoint());
  if (!model.constraints.empty()) find_degrees(model, probe);
}

void check_start(const Model& model, const std::vector<double>& parameters, const std::vector<double>& initial,
                 double t) {
  const Form& form = model.form;
  for (const Switch& s : form.switches) {
    if (s.hold.is_number(1)) continue;
    const double hold = constant_value(s.hold, parameters);
    if (hold >= 1) continue;
    throw Error(ErrorKind::model, fmt::format("the static ratio of '{}' is {}, below 1", s.name, print_number(hold)),
                s.hold_place,
                "static friction is at least dynamic friction: sign(v, Fstick/Fslip) with Fstick >= Fslip");
  }
  if (form.gaps.empty()) return;
  std::vector<double> sigma(form.switches.size(), 0), counters(static_cast<size_t>(form.counter_values), 0);
  const auto lookup = [&](const Symbol& s) -> double {
    const size_t i = static_cast<size_t>(s.index);
    switch (s.kind) {
      case SymbolKind::state: return initial[i];
      case SymbolKind::parameter: return parameters[i];
      case SymbolKind::time: return t;
      case SymbolKind::sigma: return sigma[i];
      case SymbolKind::counter: return counters[i];
      default: return 0;
    }
  };
  // Surfaces may contain counters and phases may contain switches, never in a circle: repeat until nothing changes.
  for (size_t round = 0; round <= form.counters.size(); ++round) {
    const auto before = counters;
    for (const Counter& c : form.counters) set_counter(c, count_at(c, evaluate(c.phase, lookup)), counters);
    for (const int ordered : form.order) {
      const size_t i = static_cast<size_t>(ordered);
      const double h = evaluate(form.switches[i].surface, lookup);
      sigma[i] = h > 0 ? 1 : h < 0 ? -1 : form.switches[i].at_zero;
    }
    if (counters == before && round > 0) break;
  }
  double largest = 0;  // a gap is compared with the states: the end of another run is a start
  for (const double x : initial) largest = std::max(largest, std::abs(x));
  for (size_t j = 0; j < form.gaps.size(); ++j) {
    if (form.gaps[j].degree == 0) continue;
    const double gap = evaluate(form.gaps[j].gap, lookup);
    constexpr double no_length = 1e-30;  // in any unit: what is left where all states are zero
    if (!(gap < -std::max(1e-13 * std::max(magnitude(form.gaps[j].gap, lookup), largest), no_length))) continue;
    throw Error(
        ErrorKind::model,
        fmt::format("the gap of '{}' is violated at the start: {}", model.constraints[j].name, print_number(gap)),
        model.constraints[j].place, "choose initial values with gap >= 0, or turn the sign of the gap around");
  }
  for (size_t j = 0; j < form.gaps.size(); ++j) {
    if (!form.gaps[j].restitution) continue;
    const double r = evaluate(*form.gaps[j].restitution, lookup);
    if (!(r < 0)) continue;
    throw Error(ErrorKind::model,
                fmt::format("the restitution of '{}' is {}", model.constraints[j].name, print_number(r)),
                model.constraints[j].restitution_place, "give 0 (no rebound) up to 1 (no loss)");
  }
}

}  // namespace saltus
