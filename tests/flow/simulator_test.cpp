// Runs that follow each other.
#include "flow/simulate.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "model/read.hpp"

namespace saltus {
namespace {

TEST(Simulator, ChecksTheStartOfEveryRun) {
  const Program program(
      read_model_text("name = \"m\"\nequations = \"\"\"\nq' = v\nv' = -1 + N\n\"\"\"\n[constraint.N]\ngap = \"q\"\n"
                      "restitution = 0.5\n[initial]\nq = 1\nv = 0\n",
                      "test.toml"));
  Simulator simulator(program);
  RunOptions options{.initial = {1, 0}, .until = 1};
  EXPECT_EQ(simulator.run(options).end.why, Why::time);
  options.initial = {-1, 0};
  EXPECT_THROW(simulator.run(options), Error) << "the parameters are those of the run before, the gap is not";
  options.initial = {-1e-17, 1};
  EXPECT_EQ(simulator.run(options).end.why, Why::time) << "what rounding has left is no gap";
  options.initial = {2, 0};
  EXPECT_EQ(simulator.run(options).end.why, Why::time);
}

TEST(Simulator, KeepsTheToleranceOverManySteps) {
  const Program harmonic(read_model_text(
      "name = \"m\"\nequations = \"\"\"\nx' = v\nv' = -x\n\"\"\"\n[initial]\nx = 1\nv = 0\n", "test.toml"));
  const Program logistic(
      read_model_text("name = \"m\"\nequations = \"x' = x*(1 - x)\"\n[initial]\nx = 0.01\n", "test.toml"));
  for (const double tolerance : {1e-3, 1e-6, 1e-8, 1e-10, 1e-12}) {
    const std::vector<double> x =
        simulate(harmonic, {.initial = {1, 0}, .until = 100, .tolerance = tolerance}).end.state;
    EXPECT_NEAR(x[0], std::cos(100.0), tolerance);
    EXPECT_NEAR(x[1], -std::sin(100.0), tolerance);
    const double grown = simulate(logistic, {.initial = {0.01}, .until = 8, .tolerance = tolerance}).end.state[0];
    EXPECT_NEAR(grown, 1 / (1 + 99 * std::exp(-8.0)), tolerance);
  }
}

TEST(Simulator, TakesNoStateForBalancedByAnEndThatIsABound) {
  // What comes into balance within 1e-15 of the run is there at once: of 1e12 that would be three periods of this
  // drive.
  const Program program(read_model_text(
      "name = \"m\"\nequations = \"x' = 1e4*(cos(2e4*t) - x)\"\n[initial]\nx = 0.3\n[section.s]\nevery = 1e-5\n",
      "test.toml"));
  RunOptions options{.initial = {0.3}, .until = 1e12, .turns_stiff = true, .to_the_end = false};
  double largest = 0;
  options.on_section = [&](const Passing& p) {
    const double x = 0.2 * std::cos(2e4 * p.t) + 0.4 * std::sin(2e4 * p.t) + 0.1 * std::exp(-1e4 * p.t);
    largest = std::max(largest, std::abs(p.state[0] - x));
    return p.t < 0.1;
  };
  simulate(program, options);
  EXPECT_LT(largest, 1e-9);
}

TEST(Simulator, GivesStatesBetweenStartAndEndOnly) {
  const Program harmonic(read_model_text(
      "name = \"m\"\nequations = \"\"\"\nx' = v\nv' = -x\n\"\"\"\n[initial]\nx = 1\nv = 0\n", "test.toml"));
  const Trajectory run = simulate(harmonic, {.initial = {1, 0}, .until = 6, .keep_pieces = true});
  for (const double t : {0.0, 1.3, 6.0}) EXPECT_NEAR(run(t)[0], std::cos(t), 1e-9);
  for (const double t : {-0.1, 6.1, 99.0, HUGE_VAL, std::nan("")}) EXPECT_THROW(run(t), Error) << t;
  EXPECT_THROW(simulate(harmonic, {.initial = {1, 0}, .until = 6, .keep_pieces = false})(1.0), Error);
}

}  // namespace
}  // namespace saltus
