#include "flow/simulate.hpp"

#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "flow/event/event_driven.hpp"
#include "flow/step/time_stepping.hpp"
#include "model/start.hpp"

namespace saltus {

void StepOptions::check() const {
  if (!(dt >= 0 && std::isfinite(dt)))
    throw Error(ErrorKind::usage, fmt::format("`dt` {} is no step", dt), {}, "give a positive time");
  if (!(theta >= 0.5 && theta <= 1))
    throw Error(ErrorKind::usage, fmt::format("`theta` {} is out of range", theta), {},
                "theta lies between 0.5 (accurate) and 1 (backward Euler)");
}

namespace {

/// All but the start.
void check_values(const RunOptions& options, const Model& model) {
  const auto& [parameters, initial, from, until] =
      std::tie(options.parameters, options.initial, options.from, options.until);
  const auto fail = [](std::string message, std::string hint) {
    throw Error(ErrorKind::usage, std::move(message), {}, std::move(hint));
  };
  if (parameters.size() != model.parameters.size())
    fail("the number of parameter values does not fit the model", "give one value per parameter");
  if (initial.size() != model.states.size())
    fail("the number of initial values does not fit the model", "give one value per state");
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!std::isfinite(parameters[i]))
      fail(fmt::format("the parameter '{}' is {}", model.parameters[i].name, parameters[i]), "give a finite number");
  }
  for (size_t i = 0; i < initial.size(); ++i) {
    if (!std::isfinite(initial[i]))
      fail(fmt::format("the initial value of '{}' is {}", model.states[i].name, initial[i]), "give a finite number");
  }
  if (!std::isfinite(from) || !std::isfinite(until))
    fail("the times of the run are not finite", "give `from` and `until` as finite numbers");
  if (!(options.tolerance >= 1e-15 && options.tolerance <= 0.1))
    fail(fmt::format("the tolerance is {}", options.tolerance), "a tolerance lies between 1e-15 and 0.1");
  for (const auto& [name, side] : options.leave) {
    std::vector<std::string> names;
    for (const Switch& s : model.form.switches) names.push_back(s.name);
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string near = nearest_name(name, names);
    fail(fmt::format("`leave`: there is no surface '{}'", name),
         near.empty() ? fmt::format("surfaces: {}", fmt::join(names, ", ")) : fmt::format("did you mean '{}'?", near));
  }
  if (until < from && !model.jumps.empty())
    fail("a model with jumps cannot run backward", "a jump forgets where it came from; choose `until` above `from`");
  if (const auto& step = options.step) {
    step->check();
    if (until < from)
      fail("the time-stepping engine runs forward only", "use `engine` event, or choose `until` above `from`");
    if (step->dt > until - from && until > from)
      fail(fmt::format("the step {} is longer than the run, which lasts {}", step->dt, until - from),
           "give a smaller `dt`");
  }
  if (!model.form.vectors.empty() && options.step)
    fail(fmt::format("the time-stepping engine does not take unit{} yet",
                     model.form.switches[static_cast<size_t>(model.form.vectors[0].parts[0])].name),
         "use `engine` event");
  if (!model.form.vectors.empty() && until < from)
    fail("a model with unit(a, b) cannot run backward", "rest forgets where it came from; choose `until` above `from`");
  if (options.step && options.native == Native::on)
    fail("`native` on belongs to the engine 'event'", "leave out `native`, or `engine` step");
  check_native(options.native);
}

}  // namespace

void RunOptions::check(const Model& model) const {
  check_values(*this, model);
  check_start(model, parameters, initial, from, project);
}

Trajectory simulate(const Program& program, const RunOptions& options) {
  Simulator simulator(program);
  Trajectory result = simulator.run(options);
  simulator.give_back();
  return result;
}

Simulator::Simulator(const Program& program) { set_up(program); }
Simulator::~Simulator() = default;
Simulator::Simulator(Simulator&&) noexcept = default;

void Simulator::set_up(const Program& program) {
  memory_ = program.lend<EngineMemory>();
  steps_ = std::make_unique<StepMemory>();
}

void Simulator::give_back() {
  const Program& program = memory_->program;
  if (!running_) program.give_back(std::move(memory_));
}

Trajectory Simulator::run(const RunOptions& options) {
  Trajectory result;
  run(options, result);
  return result;
}

void Simulator::run(const RunOptions& options, Trajectory& result) {
  if (running_) set_up(memory_->program);
  running_ = false;
  const Model& model = memory_->program.model();
  check_values(options, model);
  if (!memory_->start_is_clear(options))
    check_start(model, options.parameters, options.initial, options.from, options.project);
  running_ = true;
  if (options.step) {
    simulate_time_stepping(*memory_, *steps_, options, result);
  } else {
    simulate_event_driven(*memory_, options, result);
  }
  running_ = false;
}

}  // namespace saltus
