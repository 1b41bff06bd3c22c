#include "model/lower.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>

#include <fmt/format.h>

#include "expr/diff.hpp"
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

/// Splits a product into a number and an atom that does not depend on the order of its factors.
std::pair<double, Expr> split_product(const Expr& product) {
  double number = 1;
  std::vector<Expr> factors, stack{product};
  while (!stack.empty()) {
    const Expr e = stack.back();
    stack.pop_back();
    if (const auto v = literal(e)) {
      number *= *v;
    } else if (e.op() == Op::mul) {
      stack.push_back(e.argument(0));
      stack.push_back(e.argument(1));
    } else if (e.op() == Op::neg) {
      number = -number;
      stack.push_back(e.argument(0));
    } else {
      factors.push_back(e);
    }
  }
  std::sort(factors.begin(), factors.end(),
            [](const Expr& a, const Expr& b) { return std::less<>{}(a.node(), b.node()); });
  Expr atom = 1.0;
  for (const Expr& f : factors) atom = atom * f;
  return {number, atom};
}

LinearForm linear_form(const Expr& root) {
  LinearForm out;
  ExprMap<double> sums;
  std::vector<std::pair<Expr, double>> stack{{root, 1.0}};
  while (!stack.empty()) {
    const auto [e, factor] = stack.back();
    stack.pop_back();
    if (const auto v = literal(e)) {
      out.constant += factor * *v;
      continue;
    }
    switch (e.op()) {
      case Op::add:
        stack.emplace_back(e.argument(0), factor);
        stack.emplace_back(e.argument(1), factor);
        continue;
      case Op::sub:
        stack.emplace_back(e.argument(0), factor);
        stack.emplace_back(e.argument(1), -factor);
        continue;
      case Op::neg: stack.emplace_back(e.argument(0), -factor); continue;
      case Op::div:
        if (const auto v = literal(e.argument(1)); v && *v != 0) {
          stack.emplace_back(e.argument(0), factor / *v);
          continue;
        }
        break;
      case Op::mul: {
        const auto [number, atom] = split_product(e);
        if (!(atom == e)) {
          stack.emplace_back(atom, factor * number);
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
  std::sort(out.terms.begin(), out.terms.end(),
            [](const auto& a, const auto& b) { return std::less<>{}(a.first.node(), b.first.node()); });
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

// ---- lowering of formulas ---------------------------------------------------------------------------------------

class Lowering {
 public:
  explicit Lowering(Model& model)
      : model_(model),
        form_(model.form),
        rebuild_([this](const Expr& e, std::span<const Expr> a) { return lower_node(e, a); }) {}

  void run() {
    form_ = Form{};
    lowered_.resize(model_.definitions.size());
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
    for (const Jump& j : model_.jumps) {
      LoweredJump jump{.on = formula(j.on, j.place), .direction = j.direction};
      for (const Assignment& a : j.set) jump.set.push_back({a.state, formula(a.value, j.place)});
      form_.jumps.push_back(std::move(jump));
    }
    for (const Section& s : model_.sections) {
      form_.sections.push_back(s.kind == Section::Kind::on ? formula(s.value, s.place) : Expr(0.0));
    }
  }

  /// Pairs of switches that cannot both be at zero (the two ends of one saturation).
  const std::vector<std::pair<int, int>>& disjoint() const { return disjoint_; }

 private:
  Expr formula(const Expr& written, const Place& place) {
    place_ = &place;
    return expand(rebuild_(written));
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
    if (!expanded_) {
      expanded_.emplace([this](const Expr& node, std::span<const Expr> a) {
        if (!a.empty()) return make(node.op(), a);
        if (!node.is_symbol(SymbolKind::definition)) return node;
        return expand_definition(static_cast<size_t>(node.symbol().index));
      });
    }
    return (*expanded_)(e);
  }

  Expr expand_definition(size_t i) {
    // Definitions below this one are expanded first, by a list instead of recursion: names may chain 10 000 deep.
    std::vector<size_t> pending{i};
    while (!pending.empty()) {
      const size_t top = pending.back();
      if (definition_values_.contains(top)) {
        pending.pop_back();
        continue;
      }
      const Expr value = lower_definition(top);
      bool ready = true;
      for (const Expr& s : symbols_in(std::span(&value, 1))) {
        if (!s.is_symbol(SymbolKind::definition)) continue;
        const size_t below = static_cast<size_t>(s.symbol().index);
        if (!definition_values_.contains(below)) {
          pending.push_back(below);
          ready = false;
        }
      }
      if (!ready) continue;
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

  struct SurfaceUse {
    Expr written;                ///< the surface as written, for its name
    Expr lowered;                ///< the same with inner switches lowered
    std::optional<Expr> hold{};  ///< the ratio of sign(v, s)
    bool fixes_ratio = false;    ///< sign, step, if, min, max: the values at the surface matter
    bool selects = false;
    std::string_view inside{};  ///< the function, where a holding surface is a mistake
  };

  /// The value of the switch on this surface: an existing one or a new one, with the sign that fits.
  Expr sigma(const SurfaceUse& use) {
    const Expr surface = expand(use.lowered);
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
      note_use(form_.switches[static_cast<size_t>(i)], use);
      const Expr s = sigma_symbol(form_, i);
      return c > 0 ? s : -s;
    }
    const int index = static_cast<int>(form_.switches.size());
    form_.switches.push_back({.name = print(simplify(use.written)), .surface = surface});
    shapes_.push_back(shape);
    ratio_fixed_.push_back(false);
    selected_in_.emplace_back();
    by_shape_[key].push_back(index);
    note_use(form_.switches.back(), use);
    return sigma_symbol(form_, index);
  }

  void note_use(Switch& s, const SurfaceUse& use) {
    const size_t i = static_cast<size_t>(&s - form_.switches.data());
    s.selects = s.selects || use.selects;
    if (!use.inside.empty()) selected_in_[i] = std::string(use.inside);
    if (use.fixes_ratio && use.inside.empty()) {
      const Expr hold = use.hold.value_or(1.0);
      if (ratio_fixed_[i] && !(s.hold == hold)) {
        fail(fmt::format("two different static ratios on the surface '{}'", s.name),
             "holding belongs to the surface: give every sign on it the same second argument");
      }
      s.hold = hold;
      s.holds = use.hold.has_value();
      ratio_fixed_[i] = true;
    }
    if (s.holds && !selected_in_[i].empty()) {
      fail(fmt::format("the holding surface '{}' is used inside '{}'", s.name, selected_in_[i]),
           "a switch that holds may appear in sign and abs only");
    }
  }

  Expr truth(const Expr& sigma_value) { return (Expr(1) + sigma_value) / Expr(2); }

  static bool constant(const Expr& e) {
    const auto used = symbols_in(std::span(&e, 1));
    return std::all_of(used.begin(), used.end(), [](const Expr& s) {
      return s.is_symbol(SymbolKind::parameter) || s.is_symbol(SymbolKind::constant);
    });
  }

  Expr compare(const Expr& written, const Expr& more, const Expr& less) {
    const bool swap = written.op() == Op::less || written.op() == Op::less_equal;
    const Expr left = written.argument(swap ? 1 : 0), right = written.argument(swap ? 0 : 1);
    return truth(sigma({.written = left - right, .lowered = more - less, .fixes_ratio = true, .inside = "if"}));
  }

  Expr lower_node(const Expr& e, std::span<const Expr> a) {
    switch (e.op()) {
      case Op::sign: return sigma({.written = e.argument(0), .lowered = a[0], .fixes_ratio = true});
      case Op::hold_sign: return lower_hold(e, a);
      case Op::abs: return sigma({.written = e.argument(0), .lowered = a[0]}) * a[0];
      case Op::step:
        return truth(sigma({.written = e.argument(0), .lowered = a[0], .fixes_ratio = true, .inside = "step"}));
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
      case Op::mod: return lower_mod(a);
      case Op::floor: return lower_floor(a[0]);
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
    const bool trivial = constant(expand(a[0])) && constant(expand(a[1]));
    const Expr first = truth(sigma({.written = e.argument(0) - e.argument(1),
                                    .lowered = a[0] - a[1],
                                    .fixes_ratio = true,
                                    .selects = !trivial,
                                    .inside = op_name(e.op())}));
    const Expr larger = first, smaller = Expr(1) - first;
    return (is_max ? larger : smaller) * a[0] + (is_max ? smaller : larger) * a[1];
  }

  Expr lower_saturation(const Expr& e, std::span<const Expr> a) {
    const auto above = [&](size_t limit) {
      return sigma({.written = e.argument(0) - e.argument(limit),
                    .lowered = a[0] - a[limit],
                    .fixes_ratio = true,
                    .selects = true,
                    .inside = "sat"});
    };
    const Expr low = above(1), high = above(2);
    if (const auto l = literal(a[1]), h = literal(a[2]); l && h && *l > *h) {
      fail(fmt::format("sat has its limits in the wrong order: {} > {}", *l, *h), "write sat(e, low, high)");
    }
    if (low.is_symbol() && high.is_symbol()) disjoint_.emplace_back(low.symbol().index, high.symbol().index);
    const Expr c = truth(low), d = truth(high);
    return (Expr(1) - c) * a[1] + c * ((Expr(1) - d) * a[0] + d * a[2]);
  }

  Expr lower_select(std::span<const Expr> a) {
    if (!constant(expand(a[1])) || !constant(expand(a[2]))) {
      for (const Expr& s : symbols_in(std::span(&a[0], 1))) {
        if (s.is_symbol(SymbolKind::sigma)) form_.switches[static_cast<size_t>(s.symbol().index)].selects = true;
      }
    }
    return a[0] * a[1] + (Expr(1) - a[0]) * a[2];
  }

  Expr lower_floor(const Expr& argument) {
    const Expr phase = expand(argument);
    if (const auto v = literal(phase)) return std::floor(*v);
    if (contains_kind(phase, SymbolKind::lambda)) {
      fail("mod and floor of something that depends on a multiplier", "use states and time only");
    }
    for (size_t i = 0; i < form_.counters.size(); ++i) {
      if (form_.counters[i].phase == phase) return counter(i);
    }
    form_.counters.push_back({phase});
    return counter(form_.counters.size() - 1);
  }

  Expr lower_mod(std::span<const Expr> a) { return a[0] - a[1] * lower_floor(a[0] / a[1]); }

  static Expr counter(size_t i) {
    return Expr::symbol(SymbolKind::counter, static_cast<int>(i), fmt::format("wraps{}", i + 1));
  }

  Model& model_;
  Form& form_;
  Rebuild rebuild_;
  std::optional<Rebuild> expanded_;
  const Place* place_ = nullptr;
  std::vector<std::optional<Expr>> lowered_;
  std::unordered_map<size_t, Expr> definition_values_;
  std::unordered_map<size_t, std::vector<int>> by_shape_;
  std::vector<LinearForm> shapes_;
  std::vector<bool> ratio_fixed_;
  std::vector<std::string> selected_in_;
  std::vector<std::pair<int, int>> disjoint_;
};

// ---- facts about the form, probed at random points ---------------------------------------------------------------

/// Random states and times under the model's own parameters: enough to tell "is zero" from "looks zero".
class Probe {
 public:
  explicit Probe(const Model& model) : parameters_(parameter_values(model)) {}

  /// Values for one random point; sigma and lambda as given or random.
  double operator()(const Expr& e, unsigned point,
                    const std::function<std::optional<double>(const Symbol&)>& fixed = {}) const {
    return evaluate(e, [&](const Symbol& s) {
      if (fixed) {
        if (const auto v = fixed(s)) return *v;
      }
      if (s.kind == SymbolKind::parameter) return parameters_[static_cast<size_t>(s.index)];
      std::mt19937 random(point * 7919u + static_cast<unsigned>(s.kind) * 104729u +
                          static_cast<unsigned>(s.index) * 15485863u);
      const double u = std::uniform_real_distribution<double>(0.3, 1.7)(random);
      switch (s.kind) {
        case SymbolKind::sigma: return random() % 2 ? 1.0 : -1.0;
        case SymbolKind::counter: return 0.0;
        case SymbolKind::lambda:
        case SymbolKind::time: return u;
        default: return random() % 2 ? u : -u;
      }
    });
  }

  bool is_zero(const Expr& e) const {
    if (e.is_number()) return e.value() == 0;
    for (unsigned point = 1; point <= 4; ++point) {
      const double v = (*this)(e, point);
      if (!std::isfinite(v) || std::abs(v) > 1e-13) return false;
    }
    return true;
  }

  static constexpr unsigned points = 3;

 private:
  std::vector<double> parameters_;
};

using Pairs = std::vector<std::pair<int, int>>;

/// Pairs of switches that meet in a product or inside one nonlinear function of the rate.
Pairs candidate_pairs(const Expr& rate) {
  std::unordered_map<const Node*, std::vector<int>> below;
  Pairs pairs;
  const auto join = [&](const std::vector<int>& a, const std::vector<int>& b) {
    for (const int i : a) {
      for (const int j : b) {
        if (i != j) pairs.emplace_back(std::min(i, j), std::max(i, j));
      }
    }
  };
  for (const Expr& e : postorder(std::span(&rate, 1))) {
    std::vector<int> set;
    if (e.is_symbol(SymbolKind::sigma)) set.push_back(e.symbol().index);
    for (size_t k = 0; k < e.size(); ++k) {
      const auto& part = below.at(e.argument(k).node());
      set.insert(set.end(), part.begin(), part.end());
    }
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
    const bool linear = e.op() == Op::add || e.op() == Op::sub || e.op() == Op::neg;
    const auto part = [&](size_t k) -> const std::vector<int>& { return below.at(e.argument(k).node()); };
    if (e.op() == Op::mul) {
      join(part(0), part(1));
    } else if (e.op() == Op::div && part(1).empty()) {
    } else if (!linear && set.size() > 1) {
      join(set, set);
    }
    below.emplace(e.node(), std::move(set));
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

/// Whether the second difference of the rate over both switches is not zero.
bool really_interact(const Expr& rate, int i, int j, const Probe& probe) {
  const auto at = [&](unsigned point, double si, double sj) {
    return probe(rate, point, [&](const Symbol& s) -> std::optional<double> {
      if (s.kind != SymbolKind::sigma) return std::nullopt;
      if (s.index == i) return si;
      if (s.index == j) return sj;
      return std::nullopt;
    });
  };
  bool known = false;
  for (unsigned point = 1; point <= Probe::points; ++point) {
    const double pp = at(point, 1, 1), pm = at(point, 1, -1), mp = at(point, -1, 1), mm = at(point, -1, -1);
    const double difference = pp - pm - mp + mm;
    if (!std::isfinite(difference)) continue;
    known = true;
    if (std::abs(difference) > 1e-12 * (std::abs(pp) + std::abs(pm) + std::abs(mp) + std::abs(mm))) return true;
  }
  return !known;
}

void find_interactions(Form& form, const Probe& probe, const Pairs& disjoint) {
  std::vector<std::pair<int, int>> found;
  for (size_t k = 0; k < form.f.size(); ++k) {
    for (const Expr& s : symbols_in(std::span(&form.f[k], 1))) {
      if (s.is_symbol(SymbolKind::sigma))
        form.switches[static_cast<size_t>(s.symbol().index)].acts_on.push_back(static_cast<int>(k));
    }
    for (const auto& pair : candidate_pairs(form.f[k])) {
      if (std::find(disjoint.begin(), disjoint.end(), pair) != disjoint.end()) continue;
      if (std::find(found.begin(), found.end(), pair) != found.end()) continue;
      if (really_interact(form.f[k], pair.first, pair.second, probe)) found.push_back(pair);
    }
  }
  std::sort(found.begin(), found.end());
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
    const Expr multiplier = Expr::symbol(SymbolKind::lambda, static_cast<int>(j), c.name);
    for (size_t i = 0; i < model.form.f.size(); ++i) {
      Expr d = differentiate(model.form.f[i], multiplier);
      if (!d.is_number(0)) gap.direction.push_back({static_cast<int>(i), std::move(d)});
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

namespace {

/// Size of the numbers that were added to give a formula's value: its rounding error is a few eps of this.
double magnitude(const Expr& root, const std::function<double(const Symbol&)>& lookup) {
  std::unordered_map<const Node*, double> size;
  for (const Expr& e : postorder(std::span(&root, 1))) {
    double m;
    const auto part = [&](size_t i) { return size.at(e.argument(i).node()); };
    switch (e.op()) {
      case Op::add:
      case Op::sub: m = part(0) + part(1); break;
      case Op::mul: m = part(0) * part(1); break;
      case Op::neg: m = part(0); break;
      default: m = std::abs(evaluate(e, lookup));
    }
    size.emplace(e.node(), m);
  }
  return size.at(root.node());
}

}  // namespace

void check_start(const Model& model, const std::vector<double>& parameters, const std::vector<double>& initial,
                 double t) {
  const Form& form = model.form;
  for (const Switch& s : form.switches) {
    const double hold = constant_value(s.hold, parameters);
    if (hold >= 1) continue;
    throw Error(ErrorKind::model, fmt::format("the static ratio of '{}' is {}, below 1", s.name, print_number(hold)),
                {}, "static friction is at least dynamic friction: sign(v, Fstick/Fslip) with Fstick >= Fslip");
  }
  std::vector<double> sigma(form.switches.size(), 0), counters(form.counters.size(), 0);
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
  for (size_t i = 0; i < counters.size(); ++i) counters[i] = std::floor(evaluate(form.counters[i].phase, lookup));
  for (size_t i = 0; i < sigma.size(); ++i) {
    const double h = evaluate(form.switches[i].surface, lookup);
    sigma[i] = h > 0 ? 1 : h < 0 ? -1 : 0;
  }
  for (size_t j = 0; j < form.gaps.size(); ++j) {
    if (form.gaps[j].degree == 0) continue;
    const double gap = evaluate(form.gaps[j].gap, lookup);
    if (!(gap < -1e-13 * magnitude(form.gaps[j].gap, lookup))) continue;
    throw Error(
        ErrorKind::model,
        fmt::format("the gap of '{}' is violated at the start: {}", model.constraints[j].name, print_number(gap)),
        model.constraints[j].place, "choose initial values with gap >= 0, or turn the sign of the gap around");
  }
}

}  // namespace saltus
