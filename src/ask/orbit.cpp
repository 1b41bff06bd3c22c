#include "ask/orbit.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/signature.hpp"
#include "analysis/work.hpp"
#include "model/period.hpp"

namespace saltus {
namespace {

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

/// The record of an orbit found from a random start: enough to tell it from others and to find it again.
struct Met {
  std::size_t start = 0;                  ///< from which it was found,
  bool guess = false;                     ///< and how
  double t = 0, period = 0, largest = 0;  ///< `largest`: of the multipliers
  std::vector<double> state;
  std::vector<double> low, high;  ///< of each state on it; one that grows or need not come back has none
};

Met met(const Orbit& orbit, std::size_t start, bool guess) {
  const size_t n = orbit.state.size();
  Met out{.start = start,
          .guess = guess,
          .t = orbit.t,
          .period = orbit.period,
          .largest = orbit.multipliers.empty() ? 0.0 : std::abs(orbit.multipliers[0]),
          .state = orbit.state,
          .low = std::vector<double>(n, HUGE_VAL),
          .high = std::vector<double>(n, -HUGE_VAL)};
  for (const Piece& p : orbit.trajectory.pieces) widen(p, out.low, out.high);
  for (size_t i = 0; i < n; ++i) {
    if (orbit.free[i] || orbit.shift[i] != 0) out.low[i] = out.high[i] = 0;
  }
  return out;
}

/// By what does not depend on where an orbit begins: runs meet it at any of its returns, at planes of their own.
/// `size`: of each state in the starts, beside which an orbit at zero is zero.
bool is_same(const Met& a, const Met& b, const std::vector<double>& size) {
  constexpr double same = 1e-6, alike = 1e-4, rounding = 1e-9;
  if (std::abs(a.period - b.period) > same * a.period) return false;
  if (std::abs(a.largest - b.largest) > alike * std::max(1.0, a.largest)) return false;
  for (size_t i = 0; i < a.low.size(); ++i) {
    const double own = std::max({std::abs(a.low[i]), std::abs(a.high[i]), 1e-12});
    const double close = std::max(same * own, rounding * size[i]);
    if (std::abs(a.low[i] - b.low[i]) > close || std::abs(a.high[i] - b.high[i]) > close) return false;
  }
  return true;
}

/// The largest of each state in the starts.
std::vector<double> sizes_of(const std::vector<std::vector<double>>& starts) {
  std::vector<double> out(starts.empty() ? 0 : starts[0].size(), 0.0);
  for (const std::vector<double>& x : starts) {
    for (size_t i = 0; i < x.size(); ++i) out[i] = std::max(out[i], std::abs(x[i]));
  }
  return out;
}

using MetNear = std::vector<Met>;  ///< one start

Bytes pack_met(const MetNear& list) {
  Packer out;
  for (const Met& m : list) {
    out.integer(static_cast<std::int64_t>(m.start)).integer(m.guess).number(m.t).number(m.period).number(m.largest);
    out.numbers(m.state).numbers(m.low).numbers(m.high);
  }
  return out.take();
}

MetNear unpack_met(const Bytes& bytes) {
  MetNear list;
  for (Unpacker in(bytes); !in.empty();) {
    Met m{.start = static_cast<std::size_t>(in.integer()), .guess = in.integer() != 0};
    m.t = in.number();
    m.period = in.number();
    m.largest = in.number();
    m.state = in.numbers();
    m.low = in.numbers();
    m.high = in.numbers();
    list.push_back(std::move(m));
  }
  return list;
}

std::vector<std::vector<double>> random_starts(const OrbitsPlan& plan) {
  std::vector<std::vector<double>> starts;
  std::mt19937_64 random(plan.seed);
  for (int k = 0; k < plan.starts; ++k) {
    std::vector<double> x = plan.orbit.options.run.initial;
    for (size_t i = 0; i < plan.box.size(); ++i) {
      const double u = static_cast<double>(random() >> 11) * 0x1p-53;
      const auto [from, to] = plan.box[i];
      if (!std::isnan(from)) x[i] = from + u * (to - from);
    }
    starts.push_back(std::move(x));
  }
  return starts;
}

/// Near each start both what it settles on and what lies close by, stable or not.
Job<MetNear> starts_job(const OrbitsPlan& plan, const std::vector<std::vector<double>>& starts,
                        const std::string& identity) {
  const auto search = [&](std::size_t item, const MetNear*, Worker&, const std::stop_token& stop) {
    OrbitOptions one = plan.orbit.options;
    one.run.initial = starts[item];
    one.run.stop = [&stop] { return stop.stop_requested(); };
    MetNear out;
    for (const bool guess : {false, true}) {
      if (one.guess && !guess) continue;
      OrbitOptions here = one;
      here.guess = guess;
      const Orbit orbit = try_orbit(plan.orbit.system.program(), here);
      if (stop.stop_requested()) throw Stopped{};
      if (orbit.found) out.push_back(met(orbit, item, guess));
    }
    return out;
  };
  return {.count = starts.size(), .run = search, .pack = pack_met, .unpack = unpack_met, .identity = identity};
}

}  // namespace

RunOptions search_options(const Solve& solve, const Model& model, const std::optional<std::vector<double>>& start,
                          const std::string& what) {
  if (solve.engine && *solve.engine != "event")
    misuse(fmt::format("{} by the engine 'event', not 'step'", what), "leave out `engine`");
  if (solve.attract.value_or(0) != 0)
    misuse(fmt::format("{} with slid surfaces held exactly: `attract` is for runs", what), "leave out `attract`");
  Solve own = solve;
  if (!own.engine) own.engine = "event";
  RunOptions run = run_options(own, model, model.run.until ? std::optional<double>() : std::optional<double>(100.0));
  run.turns_stiff = false;
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
  constexpr int most_returns = 100'000;
  if (question.period < 0 || question.period > most_returns)
    misuse(fmt::format("`period` {}: no orbit of so many returns is sought", question.period),
           fmt::format("give 1 to {}", most_returns));
  if (question.time) {
    o.time = read_number(question.time->text, "`time`", model);
    if (!(o.time > 0)) misuse(fmt::format("`time` {} is no time", question.time->text), "give a positive time");
    if (!question.guess) misuse("`time` goes with `guess`", "add `guess`, or leave out `time`");
  }
  for (const Setting& s : question.modulo) {
    const double modulus = read_number(s.value, "`modulo`", model);
    if (!(modulus > 0))
      misuse(fmt::format("`modulo` {}={}: no such number", s.name, s.value), "give a positive number");
    o.modulo.emplace_back(find_state(model, s.name, "`modulo`"), modulus);
  }
  return plan;
}

OrbitAnswer ask(const OrbitPlan& plan, const Observer& observer) {
  Observing watch(observer);
  OrbitOptions options = plan.options;
  options.run = watched(options.run, watch, {"t"});
  OrbitAnswer answer{.system = plan.system, .options = plan.options.run};
  answer.orbit = find_orbit(plan.system.program(), options);
  answer.cancelled = !answer.orbit.found && watch.stopped();
  return answer;
}

// ---- the orbits near many starts -----------------------------------------------------------------------------------

OrbitsPlan plan(const OrbitsQuestion& question) {
  constexpr int most_starts = 1'000'000;
  if (question.starts < 1 || question.starts > most_starts)
    misuse(fmt::format("`starts` {}: {}", question.starts, question.starts < 1 ? "no such number" : "too many starts"),
           fmt::format("give 1 to {}", most_starts));
  const auto is_set = [](const auto& interval) { return !std::isnan(interval.first); };
  if (std::none_of(question.box.begin(), question.box.end(), is_set))
    misuse("random starts need a box", "give the interval of each state: `box` y=-2:2");
  return {plan(question.orbit), question.starts, question.box, question.seed, question.orbit.solve.threads};
}

OrbitsAnswer ask(const OrbitsPlan& plan, const Observer& observer, const Keep& checkpoint) {
  const OrbitOptions& options = plan.orbit.options;
  OrbitsAnswer answer{.system = plan.orbit.system, .options = options.run};
  const std::vector<std::vector<double>> starts = random_starts(plan);
  const WorkResult<MetNear> result =
      run_job(starts_job(plan, starts, checkpoint.identity),
              {.threads = plan.threads,
               .checkpoint = checkpoint.path,
               .progress =
                   [&](const WorkProgress& p) {
                     return observer({"start", static_cast<double>(p.resumed), static_cast<double>(p.done),
                                      static_cast<double>(p.count)});
                   },
               .share = false});
  answer.cancelled = result.missing > 0;
  const std::vector<double> size = sizes_of(starts);
  std::vector<Met> distinct;
  for (const std::optional<MetNear>& item : result.items) {
    if (!item) continue;
    for (const Met& m : *item) {
      if (std::none_of(distinct.begin(), distinct.end(), [&](const Met& other) { return is_same(other, m, size); }))
        distinct.push_back(m);
    }
  }
  for (const Met& m : distinct) {
    OrbitOptions there = options;
    there.run.initial = m.state;
    there.run.from = m.t;
    there.guess = true;
    there.time = m.period;
    Orbit orbit = try_orbit(plan.orbit.system.program(), there);
    if (!orbit.found || !is_same(m, met(orbit, m.start, true), size)) {  // as it was found first
      there = options;
      there.run.initial = starts[m.start];
      there.guess = m.guess;
      orbit = try_orbit(plan.orbit.system.program(), there);
    }
    if (orbit.found) answer.orbits.push_back(std::move(orbit));
  }
  std::stable_sort(answer.orbits.begin(), answer.orbits.end(), [](const Orbit& a, const Orbit& b) {
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
