// Runs of one simulator after each other: what was run before changes no bit of what follows.
#include <gtest/gtest.h>

#include "ask/gallery.hpp"
#include "flow/simulate.hpp"
#include "model/read.hpp"

namespace saltus {
namespace {

void expect_equal(const Trajectory& a, const Trajectory& b, std::string_view name) {
  EXPECT_EQ(a.end.why, b.end.why) << name;
  EXPECT_EQ(a.end.t, b.end.t) << name;
  EXPECT_EQ(a.end.state, b.end.state) << name;
  EXPECT_EQ(a.end.mode, b.end.mode) << name;
  EXPECT_EQ(a.end.message, b.end.message) << name;
  EXPECT_EQ(a.messages, b.messages) << name;
  EXPECT_EQ(a.cost.steps, b.cost.steps) << name;
  EXPECT_EQ(a.cost.events, b.cost.events) << name;
  EXPECT_EQ(a.last, b.last) << name;
  ASSERT_EQ(a.events.size(), b.events.size()) << name;
  for (size_t i = 0; i < a.events.size(); ++i) {
    EXPECT_EQ(a.events[i].t, b.events[i].t) << name;
    EXPECT_EQ(a.events[i].kind, b.events[i].kind) << name;
    EXPECT_EQ(a.events[i].on, b.events[i].on) << name;
    EXPECT_EQ(a.events[i].state, b.events[i].state) << name;
  }
}

/// A start nearby and another end; both engines, half of a run, a tighter tolerance, one that is interrupted, one that
/// throws. Where a model allows none of them, that is a past too.
void run_others(Simulator& simulator, const RunOptions& options) {
  const auto run = [&](const RunOptions& other) {
    try {
      simulator.run(other);
    } catch (const Error&) {
    }
  };
  RunOptions other = options;
  for (double& x : other.initial) x = 1.01 * x + 1e-3;
  other.until = options.from + 0.37 * (options.until - options.from);
  run(other);
  other.step = StepOptions{};
  run(other);
  other.step.reset();
  other.tolerance = 1e-6;
  other.keep_pieces = other.keep_transitions = true;
  run(other);
  other = options;
  other.stop = [calls = 0]() mutable { return ++calls > 5; };
  run(other);
  other.stop = {};
  other.on_event = [](const Event&, const Arc&) { throw Error(ErrorKind::usage, "enough", {}, ""); };
  run(other);
}

TEST(Again, NoRunOfTheGalleryDependsOnThoseBeforeIt) {
  for (const GalleryModel& found : gallery()) {
    const Program program(read_model_text(std::string(found.text), std::string(found.name)));
    const Model& model = program.model();
    if (model.states.size() > 20) continue;
    RunOptions options;
    options.parameters = parameter_values(model);
    options.initial = initial_values(model, options.parameters);
    options.until = constant_value(model.run.until.value(), options.parameters) / 4;
    const Trajectory first = simulate(program, options);
    Simulator simulator(program);
    run_others(simulator, options);
    Trajectory again;
    simulator.run(options, again);
    expect_equal(first, again, found.name);
    run_others(simulator, options);
    simulator.run(options, again);  // into what another run has left
    expect_equal(first, again, found.name);
  }
}

}  // namespace
}  // namespace saltus
