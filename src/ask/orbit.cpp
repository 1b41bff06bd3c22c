#include "ask/orbit.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/period.hpp"

namespace saltus {
namespace {

[[noreturn]] void misuse(std::string message, std::string hint) {
  throw Error(ErrorKind::usage, std::move(message), {}, std::move(hint));
}

/// The section asked for; a model with none, or with several of which none is named, goes without where that is clear.
int choose_section(const Model& model, const std::string& name, const std::vector<double>& parameters) {
  if (model.sections.empty() && name.empty()) return -1;
  if (name.empty() && model.sections.size() > 1 && period_in_time(model, parameters)) {
    for (size_t i = 0; i < model.sections.size(); ++i) {
      if (model.sections[i].kind == Section::Kind::every) return static_cast<int>(i);
    }
    return -1;
  }
  return find_section(model, name);
}

bool same_orbit(const Orbit& a, const Orbit& b) {
  if (std::abs(a.period - b.period) > 1e-6 * a.period) return false;
  // On the section an orbit of several returns may be met at any of its points.
  std::vector<double> size(a.state.size(), 0.0);
  for (const Piece& p : a.trajectory.pieces) {
    const size_t stride = p.coefficients.size() / a.state.size();
    for (size_t i = 0; i < size.size(); ++i) size[i] = std::max(size[i], std::abs(p.coefficients[i * stride]));
  }
  const int samples = std::max(1, a.returns);
  for (int k = 0; k < samples; ++k) {
    const double t = a.trajectory.start_time + (a.trajectory.end.t - a.trajectory.start_time) * k / samples;
    const std::vector<double> x = k == 0 ? a.state : a.trajectory(t);
    bool same = true;
    for (size_t i = 0; i < x.size(); ++i) same = same && std::abs(x[i] - b.state[i]) <= 1e-6 * std::max(size[i], 1e-12);
    if (same) return true;
  }
  return false;
}

}  // namespace

RunOptions search_options(const Solve& solve, const Model& model, const std::optional<std::vector<double>>& start,
                          const std::string& what) {
  if (solve.engine && !std::holds_alternative<EventDriven>(*solve.engine))
    misuse(fmt::format("{} by the engine 'event', not 'step'", what), "leave out `engine`");
  if (solve.attract != 0)
    misuse(fmt::format("{} with slid surfaces held exactly: `attract` is for runs", what), "leave out `attract`");
  Solve own = solve;
  if (!own.engine) own.engine = EventDriven{};
  RunOptions run = run_options(own, model, model.run.until ? std::optional<double>() : std::optional<double>(100.0));
  if (start) {
    run.initial = *start;
    run.check(model);
  }
  return run;
}

RunOptions watched(RunOptions run, Observing& watch, const Progress& now) {
  run.progress = [&watch, now](double) { return watch.go_on(now); };
  run.stop = [&watch] { return watch.stopped(); };
  return run;
}

// ---- one orbit -----------------------------------------------------------------------------------------------------

OrbitPlan plan(const OrbitQuestion& question) {
  const Model& model = question.system.model();
  OrbitPlan plan{.system = question.system,
                 .options = {.run = search_options(question.solve, model, question.start, "orbits are found")}};
  OrbitOptions& o = plan.options;
  o.section = choose_section(model, question.section, o.run.parameters);
  o.guess = question.guess;
  o.returns = question.period;
  o.backward = question.backward;
  if (question.period < 0)
    misuse(fmt::format("`period` {}: no such number of returns", question.period), "give 1 or more");
  if (question.time) {
    o.time = read_number(question.time->text, "`time`", model);
    if (!(o.time > 0)) misuse(fmt::format("`time` {} is no time", question.time->text), "give a positive time");
    if (!question.guess) misuse("`time` goes with `guess`", "add `guess`, or leave out `time`");
  }
  for (const Setting& s : question.modulo) {
    const double modulus = read_number(s.value, "`modulo`", model);
    if (!(modulus > 0)) misuse(fmt::format("`modulo` {}={}: no such number", s.name, s.value), "give a positive number");
    o.modulo.emplace_back(find_state(model, s.name, "`modulo`"), modulus);
  }
  return plan;
}

OrbitAnswer ask(const OrbitPlan& plan, const Observer& observer) {
  Observing watch(observer);
  OrbitOptions options = plan.options;
  options.run = watched(options.run, watch, {"t"});
  OrbitAnswer answer{.system = plan.system, .options = plan.options.run};
  answer.orbit = find_orbit(plan.system.model(), options);
  answer.cancelled = !answer.orbit.found && watch.stopped();
  return answer;
}

// ---- the orbits near many starts -----------------------------------------------------------------------------------

OrbitsPlan plan(const OrbitsQuestion& question) {
  if (question.starts < 1) misuse(fmt::format("`starts` {}: no such number", question.starts), "give 1 or more");
  const auto is_set = [](const auto& interval) { return !std::isnan(interval.first); };
  if (std::none_of(question.box.begin(), question.box.end(), is_set))
    misuse("random starts need a box", "give the interval of each state: `box` y=-2:2");
  return {plan(question.orbit), question.starts, question.box, question.seed};
}

OrbitsAnswer ask(const OrbitsPlan& plan, const Observer& observer) {
  const OrbitOptions& options = plan.orbit.options;
  OrbitsAnswer answer{.system = plan.orbit.system, .options = options.run};
  Observing watch(observer);
  std::mt19937_64 random(plan.seed);
  std::vector<Orbit>& found = answer.orbits;
  for (int k = 0; k < plan.starts && !watch.stopped(); ++k) {
    const Progress now{"start", 0, static_cast<double>(k), static_cast<double>(plan.starts)};
    OrbitOptions one = options;
    one.run = watched(one.run, watch, now);
    for (size_t i = 0; i < plan.box.size(); ++i) {
      const double u = static_cast<double>(random() >> 11) * 0x1p-53;
      const auto [from, to] = plan.box[i];
      if (!std::isnan(from)) one.run.initial[i] = from + u * (to - from);
    }
    watch.go_on(now);
    // Near each start both what it settles on and what lies close by, stable or not.
    for (const bool guess : {options.guess, true}) {
      if (watch.stopped()) break;
      one.guess = guess;
      Orbit orbit = try_orbit(plan.orbit.system.model(), one);
      if (!orbit.found) continue;
      if (std::none_of(found.begin(), found.end(), [&](const Orbit& o) { return same_orbit(o, orbit); }))
        found.push_back(std::move(orbit));
      if (options.guess) break;
    }
  }
  answer.cancelled = watch.stopped();
  std::stable_sort(found.begin(), found.end(), [](const Orbit& a, const Orbit& b) {
    if (std::abs(a.period - b.period) > 1e-9 * a.period) return a.period < b.period;
    return a.state < b.state;
  });
  return answer;
}

// ---- points of rest ------------------------------------------------------------------------------------------------

EquilibriumPlan plan(const EquilibriumQuestion& question) {
  return {question.system,
          {search_options(question.solve, question.system.model(), question.start, "equilibria are found")}};
}

EquilibriumAnswer ask(const EquilibriumPlan& plan, const Observer& observer) {
  EquilibriumAnswer answer{.system = plan.system, .options = plan.options.run};
  Observing watch(observer);
  answer.equilibrium = find_equilibrium(plan.system.program(), {watched(plan.options.run, watch, {"t"})});
  answer.cancelled = answer.equilibrium.kind == Equilibrium::Kind::none && watch.stopped();
  return answer;
}

}  // namespace saltus
