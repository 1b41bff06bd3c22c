#include "ask/many.hpp"

#include <chrono>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "ask/measures.hpp"
#include "expr/print.hpp"
#include "model/period.hpp"
#include "model/program.hpp"

namespace saltus {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// One that changes with time is no map of states.
std::string map_note(const Model& model, const SectionMap& map) {
  if (!time_counts(model, map.run.parameters)) return "";
  const Section& section = model.sections[static_cast<size_t>(map.section)];
  if (section.kind != Section::Kind::every)
    return fmt::format(
        "time appears in the equations, but '{}' is met at any time: its points alone do not tell what "
        "follows",
        section.name);
  const auto period = period_in_time(model, map.run.parameters);
  if (!period) return "";
  const double times = constant_value(section.value, map.run.parameters) * map.repeat / period->value;
  if (std::abs(times - std::round(times)) < 1e-6 * times && times > 0.5) return "";
  return fmt::format("the map takes {:.6g} periods of the equations ({}): what follows depends on when", times,
                     print(period->formula));
}

}  // namespace

SweepPlan plan(const SweepQuestion& question) {
  const Model& model = question.system.model();
  SweepPlan plan;
  if (question.vary.empty())
    throw Error(ErrorKind::usage, "nothing is varied", {}, "name a parameter and its values: omega=0.15:2:400");
  for (const Vary& v : question.vary)
    plan.varied.push_back(
        vary(model, v.name, read_formula(v.name, v.given.empty() ? v.name : v.given, model), v.values));
  plan.run = run_options(question.solve, model, std::numeric_limits<double>::max());
  if (!question.solve.until) plan.run.until = HUGE_VAL;
  plan.section = find_section(model, question.section);
  plan.skip = question.skip.value_or(question.settle > 0 ? 0 : 400);
  plan.count = question.count;
  plan.settle = question.settle;
  plan.longest = question.longest;
  plan.tolerance = question.tolerance;
  if (plan.tolerance.empty()) plan.tolerance.assign(model.states.size(), std::numeric_limits<double>::quiet_NaN());
  plan.keep_points = plan.varied.size() == 1;
  plan.exponent = question.exponent;
  if (plan.exponent) plan.run.turns_stiff = false;  // tangents
  plan.measures = read_measures(question.measures, model);
  plan.starts = question.starts;
  plan.box = question.box;
  plan.random_starts = question.random_starts;
  plan.seed = question.seed;
  plan.direction = question.direction;
  plan.check(model);
  return plan;
}

SweepAnswer ask(const System& system, const Solve& solve, SweepPlan planned, const Observer& observer,
                const Keep& checkpoint) {
  const auto start = std::chrono::steady_clock::now();
  SweepAnswer answer{.system = system, .plan = std::move(planned)};
  const SweepJob job =
      sweep_job(system.program(solve.attract.value_or(0)), answer.plan, checkpoint.identity, observer.on_run);
  const double runs_per_item = static_cast<double>(answer.plan.runs()) / static_cast<double>(job.count);
  const auto in_runs = [&](size_t items) { return static_cast<double>(items) * runs_per_item; };
  WorkResult<SweepRuns> result =
      run_job(job, {.threads = solve.threads,
                    .checkpoint = checkpoint.path,
                    .progress =
                        [&](const WorkProgress& p) {
                          return observer({"run", in_runs(p.resumed), in_runs(p.done), in_runs(p.count)});
                        },
                    .share = false});
  answer.missing = static_cast<size_t>(std::lround(in_runs(result.missing)));
  answer.resumed = static_cast<size_t>(std::lround(in_runs(result.resumed)));
  if (rank() == 0) answer.runs = sweep_runs(answer.plan, std::move(result));
  answer.seconds = seconds_since(start);
  return answer;
}

SectionMap plan(const BasinsQuestion& question) {
  const Model& model = question.system.model();
  const auto at_least_one = [](const char* option, long value) {
    if (value < 1)
      throw Error(ErrorKind::usage, fmt::format("`{}` {}: no such number", option, value), {}, "give 1 or more");
  };
  at_least_one("period", question.period);
  at_least_one("points", question.options.points);
  at_least_one("longest", question.options.most_period);
  RunOptions run = run_options(question.solve, model, std::numeric_limits<double>::max());
  if (!question.solve.until) run.until = run.from + 1e12;
  return {.program = question.system.program(question.solve.attract.value_or(0)),
          .run = std::move(run),
          .dependent = question.dependent,
          .section = find_section(model, question.section),
          .repeat = question.period};
}

BasinsAnswer ask(const BasinsQuestion& question, const SectionMap& map, const Observer& observer,
                 const Keep& checkpoint) {
  const auto start = std::chrono::steady_clock::now();
  const Model& model = question.system.model();
  BasinsOptions options = question.options;
  options.threads = question.solve.threads;
  options.checkpoint = checkpoint.path;
  options.identity = checkpoint.identity;
  if (options.tolerance.empty())
    options.tolerance.assign(model.states.size(), std::numeric_limits<double>::quiet_NaN());
  options.progress = [&](std::string_view stage, double resumed, double done, double count) {
    return observer({stage, resumed, done, count});
  };
  BasinsAnswer answer{.system = question.system,
                      .mesh = question.mesh,
                      .section = model.sections[static_cast<size_t>(map.section)].name,
                      .direct = options.method == BasinsOptions::Method::direct,
                      .refine = options.refine,
                      .note = map_note(model, map)};
  answer.basins = find_basins(map, question.mesh, options);
  answer.seconds = seconds_since(start);
  return answer;
}

}  // namespace saltus
