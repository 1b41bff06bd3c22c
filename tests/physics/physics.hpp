// What the physics tests share: a model from text or from the gallery, run in one line, and questions to the result.
#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <numbers>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "flow/simulate.hpp"
#include "model/program.hpp"
#include "model/read.hpp"

namespace saltus::physics {

constexpr double pi = std::numbers::pi;

using Values = std::initializer_list<std::pair<std::string_view, double>>;

/// A model ready to run; changes to it are made by name.
struct System {
  Program program;
  std::vector<double> parameters;
  std::vector<double> initial;

  explicit System(Model model)
      : program(std::move(model)),
        parameters(parameter_values(program.model())),
        initial(initial_values(program.model(), parameters)) {}

  int state(std::string_view name) const {
    const auto names = program.model().state_names();
    return static_cast<int>(std::find(names.begin(), names.end(), name) - names.begin());
  }
  System& set(Values values) {
    const auto names = program.model().parameter_names();
    for (const auto& [name, value] : values)
      parameters.at(static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin())) = value;
    initial = initial_values(program.model(), parameters);
    return *this;
  }
  System& start(Values values) {
    for (const auto& [name, value] : values) initial.at(static_cast<size_t>(state(name))) = value;
    return *this;
  }
  RunOptions options(double until, double tolerance = 1e-12) const {
    RunOptions o;
    o.parameters = parameters;
    o.initial = initial;
    o.until = until;
    o.tolerance = tolerance;
    return o;
  }
  Trajectory run(double until, double tolerance = 1e-12) const { return run(options(until, tolerance)); }
  Trajectory run(const RunOptions& o) const { return simulate(program, o); }
  /// The same, after it has been the same for those who read transitions, and the time-stepping engine has come to the
  /// same end at its own accuracy.
  Trajectory run_both(double until, double tolerance = 1e-12, double accuracy = 1e-5) const;
};

/// The text of a model file from equations and initial values; `more` holds further tables.
inline std::string model_text(std::string_view equations, std::string_view initial, std::string_view more = "") {
  return fmt::format("name = \"test\"\nequations = \"\"\"\n{}\n\"\"\"\n[initial]\n{}\n{}\n", equations, initial, more);
}

inline System system(std::string_view equations, std::string_view initial, std::string_view more = "") {
  return System(read_model_text(model_text(equations, initial, more)));
}

inline System gallery_system(std::string_view name) {
  return System(read_model(fmt::format("{}/models/{}/model.toml", SALTUS_SOURCE_DIR, name)));
}

/// The same run to the last bit, whoever reads it.
inline void expect_same(const Trajectory& a, const Trajectory& b) {
  EXPECT_EQ(a.end.why, b.end.why);
  EXPECT_EQ(a.end.state, b.end.state);
  EXPECT_EQ(a.cost.steps, b.cost.steps);
  EXPECT_EQ(a.cost.events, b.cost.events);
  ASSERT_EQ(a.events.size(), b.events.size());
  for (size_t i = 0; i < a.events.size(); ++i) {
    EXPECT_EQ(a.events[i].t, b.events[i].t);
    EXPECT_EQ(a.events[i].kind, b.events[i].kind);
    EXPECT_EQ(a.events[i].on, b.events[i].on);
    EXPECT_EQ(a.events[i].before, b.events[i].before);
    EXPECT_EQ(a.events[i].after, b.events[i].after);
    EXPECT_EQ(a.events[i].state, b.events[i].state);
  }
}

/// Events without sections and grazes.
inline std::vector<Event> changes(const Trajectory& run) {
  std::vector<Event> found;
  for (const Event& e : run.events) {
    if (e.kind != EventKind::section && e.kind != EventKind::graze) found.push_back(e);
  }
  return found;
}

inline long count(const Trajectory& run, EventKind kind) {
  return std::count_if(run.events.begin(), run.events.end(), [&](const Event& e) { return e.kind == kind; });
}

inline std::vector<Event> of_kind(const Trajectory& run, EventKind kind) {
  std::vector<Event> found;
  for (const Event& e : run.events) {
    if (e.kind == kind) found.push_back(e);
  }
  return found;
}

inline bool says_not_unique(const Trajectory& run) {
  const auto says = [](const std::string& text) { return text.find("not unique") != std::string::npos; };
  return run.end.why == Why::nonunique || says(run.end.message) ||
         std::any_of(run.messages.begin(), run.messages.end(), says);
}

/// The run in words, for the message of a failed expectation.
inline std::string story(const Trajectory& run) {
  std::string text = fmt::format("start {} [{:.17g}]\n", run.start_mode.text(), fmt::join(run.start_state, ", "));
  for (size_t i = 0; i < std::min<size_t>(run.events.size(), 60); ++i) {
    const Event& e = run.events[i];
    text += fmt::format("{:.17g} {} on {} {} -> {} [{:.17g}]\n", e.t, kind_name(e.kind), fmt::join(e.on, ", "),
                        e.before.text(), e.after.text(), fmt::join(e.state, ", "));
  }
  text += fmt::format("end by {} at {:.17g} in {}: [{:.17g}] {}\n", why_name(run.end.why), run.end.t,
                      run.end.mode.text(), fmt::join(run.end.state, ", "), run.end.message);
  for (const auto& m : run.messages) text += "message: " + m + "\n";
  return text;
}

inline Trajectory System::run_both(double until, double tolerance, double accuracy) const {
  const Trajectory run = this->run(until, tolerance);
  RunOptions told = options(until, tolerance);
  told.keep_transitions = true;
  expect_same(run, this->run(told));
  RunOptions o = options(until, 1e-9);
  o.step.emplace();
  const Trajectory steps = this->run(o);
  EXPECT_EQ(why_name(steps.end.why), why_name(run.end.why)) << "by steps:\n"
                                                            << story(steps) << "by events:\n"
                                                            << story(run);
  EXPECT_NEAR(steps.end.t, run.end.t, accuracy * until) << "by steps:\n"
                                                        << story(steps) << "by events:\n"
                                                        << story(run);
  double size = 1;
  for (const double v : run.end.state) size = std::max(size, std::abs(v));
  for (size_t i = 0; i < run.end.state.size(); ++i)
    EXPECT_NEAR(steps.end.state[i], run.end.state[i], accuracy * size) << "state " << i << "\nby steps:\n"
                                                                       << story(steps) << "by events:\n"
                                                                       << story(run);
  return run;
}

struct Expected {
  double t;
  EventKind kind;
};

/// The run got to its end, with exactly these changes of mode (simultaneous ones may come as one of kind `mode`).
inline void expect_events(const Trajectory& run, const std::vector<Expected>& wanted, double tolerance) {
  EXPECT_EQ(run.end.why, Why::time) << story(run);
  const auto found = changes(run);
  ASSERT_EQ(found.size(), wanted.size()) << story(run);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(kind_name(found[i].kind), kind_name(wanted[i].kind)) << "event " << i << "\n" << story(run);
    EXPECT_NEAR(found[i].t, wanted[i].t, tolerance) << "event " << i << "\n" << story(run);
  }
}

/// The run got to its end in this state.
inline void expect_end(const Trajectory& run, const std::vector<double>& wanted, double tolerance) {
  EXPECT_EQ(run.end.why, Why::time) << story(run);
  ASSERT_EQ(run.end.state.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(run.end.state[i], wanted[i], tolerance) << "state " << i << "\n" << story(run);
}

}  // namespace saltus::physics
