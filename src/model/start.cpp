#include "model/start.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "expr/print.hpp"
#include "model/derive.hpp"
#include "model/probe.hpp"

namespace saltus {
namespace {

void check_static_ratios(const Form& form, const std::vector<double>& parameters) {
  for (const Switch& s : form.switches) {
    if (s.hold.is_number(1)) continue;
    const double hold = constant_value(s.hold, parameters);
    if (hold >= 1) continue;
    throw Error(ErrorKind::model, fmt::format("the static ratio of '{}' is {}, below 1", s.name, print_number(hold)),
                s.hold_place,
                "static friction is at least dynamic friction: sign(v, Fstick/Fslip) with Fstick >= Fslip");
  }
}

/// The values of symbols at a start; multipliers are zero.
struct StartValues {
  const std::vector<double>& parameters;
  const std::vector<double>& initial;
  double t;
  std::vector<double> sigma, counters;

  double operator()(const Symbol& s) const {
    const size_t i = static_cast<size_t>(s.index);
    switch (s.kind) {
      case SymbolKind::state: return initial[i];
      case SymbolKind::parameter: return parameters[i];
      case SymbolKind::time: return t;
      case SymbolKind::sigma: return sigma[i];
      case SymbolKind::counter: return counters[i];
      default: return 0;
    }
  }
};

/// Surfaces may contain counters and phases may contain switches, never in a circle: repeat until nothing changes.
void settle_switches(const Form& form, StartValues& values) {
  const auto lookup = [&](const Symbol& s) { return values(s); };
  for (size_t round = 0; round <= form.counters.size(); ++round) {
    const auto before = values.counters;
    for (const Counter& c : form.counters) set_counter(c, count_at(c, evaluate(c.phase, lookup)), values.counters);
    for (const int ordered : form.order) {
      const size_t i = static_cast<size_t>(ordered);
      const double h = evaluate(form.switches[i].surface, lookup);
      values.sigma[i] = h > 0 ? 1 : h < 0 ? -1 : form.switches[i].at_zero;
    }
    if (values.counters == before && round > 0) break;
  }
}

/// A joint, and its rate where that is a matter of velocities, is zero at the start, but for the digits that people
/// write.
template <class Lookup>
void check_joint(const Model& model, size_t j, const Lookup& lookup, double largest) {
  constexpr double written = 1e-9;  // relative: the end of another run, printed, is a start
  Expr y = model.form.gaps[j].gap;
  for (int k = 0; k < model.form.gaps[j].degree; ++k) {
    const double value = evaluate(y, lookup);
    if (std::abs(value) > written * std::max({magnitude(y, lookup), largest, 1e-20})) {
      throw Error(ErrorKind::model,
                  fmt::format("the start does not satisfy the joint '{}': its {} is {}", model.constraints[j].name,
                              k == 0 ? "value" : "rate", print_number(value)),
                  model.constraints[j].place,
                  k == 0 ? "choose initial values that make it zero, or let `project` move them"
                         : "choose initial velocities along the joint, or let `project` move them");
    }
    if (k + 1 < model.form.gaps[j].degree) y = lie_derivative(y, model.form);
  }
}

}  // namespace

void check_start(const Model& model, const std::vector<double>& parameters, const std::vector<double>& initial,
                 double t, bool project) {
  const Form& form = model.form;
  check_static_ratios(form, parameters);
  if (form.gaps.empty()) return;
  StartValues values{parameters, initial, t, std::vector<double>(form.switches.size()),
                     std::vector<double>(static_cast<size_t>(form.counter_values))};
  settle_switches(form, values);
  const auto lookup = [&](const Symbol& s) { return values(s); };
  double largest = 0;  // a gap is compared with the states: the end of another run is a start
  for (const double x : initial) largest = std::max(largest, std::abs(x));
  for (size_t j = 0; j < form.gaps.size(); ++j) {
    if (form.gaps[j].joint && !project) check_joint(model, j, lookup, largest);
    if (form.gaps[j].degree == 0 || form.gaps[j].joint) continue;
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
