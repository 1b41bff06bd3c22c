#include "ask/exponents.hpp"

#include <cmath>

namespace saltus {

ExponentsPlan plan(const ExponentsQuestion& question) {
  if (question.solve.engine && *question.solve.engine != "event")
    throw Error(ErrorKind::usage, "exponents come from the engine 'event', not 'step'", {}, "leave out `engine`");
  ExponentsPlan plan{.model = question.system.model(), .attract = question.solve.attract.value_or(0)};
  for (Section& s : plan.model.sections) s.stop = false;
  Solve solve = question.solve;
  if (!solve.engine) solve.engine = "event";
  plan.options.open = !solve.until;
  plan.options.run = run_options(solve, plan.model, solve.until ? std::optional<double>() : 1e12);
  plan.options.run.turns_stiff = false;
  if (question.start) {
    plan.options.run.initial = *question.start;
    plan.options.run.check(plan.model);
  }
  if (!(std::abs(plan.options.run.until - plan.options.run.from) > 0))
    throw Error(ErrorKind::usage, "the run has no length", {}, "give `until` TIME");
  return plan;
}

Exponents ask(const ExponentsPlan& plan, const Observer& observer) {
  ExponentOptions options = plan.options;
  const double from = options.run.from, to = options.open ? from + 1 : options.run.until;
  options.run.progress = [&](double t) { return observer({"t", from, options.open ? from : t, to}); };
  options.run.stop = [&] { return observer.stopped(); };
  return find_exponents(Program(plan.model, plan.attract), options);
}

}  // namespace saltus
