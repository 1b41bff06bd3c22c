#include "ask/orbit.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>

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

/// What is kept of an orbit that was found from a random start: enough to tell it from others and to find it again.
struct Met {
  std::size_t start = 0;  ///< from which it was found,
  bool guess = false;     ///< and how
  double t = 0, period = 0;
  std::vector<double> size;                 ///< of each state on it
  std::vector<std::vector<double>> points;  ///< on the section: one of several returns may be met at any of them
};

Met met(const Orbit& orbit, std::size_t start, bool guess) {
  Met out{.start = start,
          .guess = guess,
          .t = orbit.t,
          .period = orbit.period,
          .size = std::vector<double>(orbit.state.size(), 0.0)};
  const Trajectory& run = orbit.trajectory;
  for (const Piece& p : run.pieces) {
    const size_t stride = p.coefficients.size() / out.size.size();
    for (size_t i = 0; i < out.size.size(); ++i)
      out.size[i] = std::max(out.size[i], std::abs(p.coefficients[i * stride]));
  }
  const int returns = std::max(1, orbit.returns);
  for (int k = 0; k < returns; ++k)
    out.points.push_back(k == 0 ? orbit.state : run(run.start_time + (run.end.t - run.start_time) * k / returns));
  return out;
}

bool is_same(const Met& a, const Met& b) {
  if (std::abs(a.period - b.period) > 1e-6 * a.period) return false;
  return std::any_of(a.points.begin(), a.points.end(), [&](const std::vector<double>& x) {
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::abs(x[i] - b.points[0][i]) > 1e-6 * std::max(a.size[i], 1e-12)) return false;
    }
    return true;
  });
}

using MetNear = std::vector<Met>;  ///< one start

Bytes pack_met(const MetNear& list) {
  Packer out;
  for (const Met& m : list) {
    out.integer(static_cast<std::int64_t>(m.start)).integer(m.guess).number(m.t).number(m.period).numbers(m.size);
    out.integer(static_cast<std::int64_t>(m.points.size()));
    for (const std::vector<double>& x : m.points) out.numbers(x);
  }
  return out.take();
}

MetNear unpack_met(const Bytes& bytes) {
  MetNear list;
  for (Unpacker in(bytes); !in.empty();) {
    Met m{.start = static_cast<std::size_t>(in.integer()),
          .guess = in.integer() != 0,
          .t = in.number(),
          .period = in.number(),
          .size = in.numbers()};
    m.points.resize(static_cast<size_t>(in.integer()));
    for (std::vector<double>& x : m.points) x = in.numbers();
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
      const Orbit orbit = try_orbit(plan.orbit.system.model(), here);
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
  answer.orbit = find_orbit(plan.system.model(), options);
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
  std::vector<Met> distinct;
  for (const std::optional<MetNear>& item : result.items) {
    if (!item) continue;
    for (const Met& m : *item) {
      if (std::none_of(distinct.begin(), distinct.end(), [&](const Met& other) { return is_same(other, m); }))
        distinct.push_back(m);
    }
  }
  for (const Met& m : distinct) {
    OrbitOptions there = options;
    there.run.initial = m.points[0];
    there.run.from = m.t;
    there.guess = true;
    there.time = m.period;
    Orbit orbit = try_orbit(plan.orbit.system.model(), there);
    if (!orbit.found) {  // as it was found first
      there = options;
      there.run.initial = starts[m.start];
      there.guess = m.guess;
      orbit = try_orbit(plan.orbit.system.model(), there);
    }
    answer.orbits.push_back(std::move(orbit));
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
