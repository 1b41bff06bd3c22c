// Runs whose engines were used before give the same bits as runs that are alone.
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "flow/event/event_driven.hpp"
#include "flow/simulate.hpp"
#include "model/read.hpp"

namespace saltus {
namespace {

struct Interrupted {};

/// All that a run tells, bit by bit.
std::string told(const Trajectory& run) {
  const auto numbers = [](const std::vector<double>& list) {
    std::string out;
    for (const double x : list) out += fmt::format(" {:a}", x);
    return out;
  };
  std::string out = fmt::format("{} {} {:a}{} {} {} {}", why_name(run.end.why), run.end.message, run.end.t,
                                numbers(run.end.state), run.end.mode.text(), run.cost.steps, run.cost.events);
  for (const std::string& message : run.messages) out += "\n" + message;
  for (const Event& e : run.events) {
    out += fmt::format("\n{:a} {} {} {}{}", e.t, kind_name(e.kind), e.before.text(), e.after.text(), numbers(e.state));
    for (const std::string& name : e.on) out += " " + name;
  }
  for (const Piece& p : run.pieces) out += fmt::format("\n{:a} {:a}{}", p.start, p.length, numbers(p.coefficients));
  return out;
}

std::string told_of(const std::function<Trajectory()>& run) {
  try {
    return told(run());
  } catch (const Interrupted&) {
    return "interrupted";
  } catch (const Error& error) {
    return error.what();
  }
}

/// Throws when it is asked for the k-th time.
std::function<void()> interrupts_at(int k) {
  return [k, asked = 0]() mutable {
    if (++asked == k) throw Interrupted();
  };
}

/// Makes the options of a run; callbacks that count begin anew.
using MakeRun = std::function<RunOptions()>;

std::vector<MakeRun> many_runs(const Model& model, double until) {
  RunOptions plain{.until = until, .keep_pieces = true, .max_steps = 800};
  plain.parameters = parameter_values(model);
  plain.initial = initial_values(model, plain.parameters);
  std::vector<MakeRun> out;
  const auto add = [&](const std::function<void(RunOptions&)>& change) {
    out.emplace_back([plain, change] {
      RunOptions options = plain;
      change(options);
      return options;
    });
  };
  const auto moved = [](RunOptions& o, double factor) {
    for (double& p : o.parameters) p *= factor;
    for (size_t i = 0; i < o.initial.size(); ++i) o.initial[i] += 0.1 * std::sin(1.0 + static_cast<double>(i));
  };
  add([](RunOptions&) {});
  add([](RunOptions& o) { o.tolerance = 1e-7; });
  add([&](RunOptions& o) { moved(o, 0.97); });
  add([&](RunOptions& o) { moved(o, 1.04); });
  add([](RunOptions& o) { std::transform(o.initial.begin(), o.initial.end(), o.initial.begin(), std::negate()); });
  add([](RunOptions& o) { o.native = Native::off; });
  if (native_available()) add([](RunOptions& o) { o.native = Native::on; });
  add([](RunOptions& o) { o.legs = o.clusters = false; });
  add([](RunOptions& o) { o.until *= -0.3; });
  add([](RunOptions& o) {
    o.step = StepOptions{};
    o.tolerance = 1e-6;
    o.until *= 0.1;
  });
  add([](RunOptions& o) { o.max_events = 3; });
  add([](RunOptions& o) { o.initial[0] = 1e200; });
  add([](RunOptions& o) { o.stop = [asked = 0]() mutable { return ++asked == 6; }; });
  for (const int k : {1, 5, 30}) {
    add([k](RunOptions& o) { o.on_piece = [interrupt = interrupts_at(k)](const Piece&, const Arc&) { interrupt(); }; });
  }
  add([](RunOptions& o) { o.on_event = [interrupt = interrupts_at(3)](const Event&, const Arc&) { interrupt(); }; });
  add([](RunOptions& o) { o.on_section = [](const Passing&) -> bool { throw Interrupted(); }; });
  return out;
}

void expect_the_same_again(const Model& model, double until) {
  std::vector<MakeRun> runs = many_runs(model, until);
  std::vector<std::string> alone;
  for (const MakeRun& make : runs) {
    const Program program(model);
    alone.push_back(told_of([&] { return simulate(program, make()); }));
  }
  const Program program(model);
  std::mt19937 random(1);
  std::vector<size_t> order(runs.size());
  for (size_t k = 0; k < order.size(); ++k) order[k] = k;
  for (int round = 0; round < 3; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    Simulator simulator(program);
    for (const size_t k : order) {
      EXPECT_TRUE(told_of([&] { return simulator.run(runs[k]()); }) == alone[k]) << "run " << k << " of a simulator";
      EXPECT_TRUE(told_of([&] { return simulate(program, runs[k]()); }) == alone[k]) << "run " << k << " of a program";
    }
  }
}

class RunsOfAModel : public testing::TestWithParam<const char*> {};

TEST_P(RunsOfAModel, AreTheSameWhateverWasRunBefore) {
  expect_the_same_again(read_model(SALTUS_SOURCE_DIR "/models/" + std::string(GetParam()) + "/model.toml"), 15);
}

INSTANTIATE_TEST_SUITE_P(Again, RunsOfAModel,
                         testing::Values("dry_friction", "belt_static", "predator_prey", "three_blocks", "support",
                                         "newton_cradle", "buck", "impact_oscillator", "voltage_multiplier", "whirl",
                                         "integrate_and_fire", "relay_feedback", "kink_cycle"));

/// Relays in a ring, each of which drives the one before it and is driven by the one behind it.
Model ring(unsigned seed, int relays, int smooth_terms) {
  std::mt19937 random(seed);
  const auto number = [&](double low, double high) {
    return fmt::format("({:.4f})", low + (high - low) * (static_cast<double>(random()) / 4294967296.0));
  };
  std::string equations, initial;
  for (int i = 0; i < relays; ++i) {
    const int next = (i + 1) % relays, last = (i + relays - 1) % relays;
    equations += fmt::format("  x{}' = -x{}", i, i);
    for (int k = 0; k < smooth_terms; ++k) {
      equations += fmt::format(" + 0.05*{}*tanh({}*x{} + {})*cos({}*x{})/(1 + exp({}*x{}))", number(-1, 1),
                               number(0.5, 3), next, number(-1, 1), number(0.5, 3), next, number(-1, 1), next);
    }
    equations +=
        fmt::format(" + {}*sign(x{}) + a*{}*sign(x{}) + b*sin({}*t)\n", number(-2, 2), next,
                    smooth_terms > 0 ? number(-1, 0) : number(-1, 1), smooth_terms > 0 ? i : last, number(0.5, 2));
    initial += fmt::format("x{} = \"{}\"\n", i, number(-1, 1));
  }
  return read_model_text("equations = \"\"\"\n" + equations + "\"\"\"\n[parameters]\na = 1\nb = 0.5\n[initial]\n" +
                         initial + "[section.s]\non = \"x0\"\n");
}

TEST(Again, SmallRingsOfRelaysAreTheSame) {
  for (const unsigned seed : {1U, 2U, 3U, 4U}) expect_the_same_again(ring(seed, 3 + static_cast<int>(seed), 0), 15);
}

// Their modes get a schedule late.
TEST(Again, LargeRingsOfRelaysAreTheSame) {
  for (const unsigned seed : {1U, 2U}) expect_the_same_again(ring(seed, 12, 3), 5);
}

// More supports than needed: which of them are held is found anew in each run.
TEST(Again, RedundantContactsAreTheSame) {
  expect_the_same_again(read_model_text(R"M(equations = """
  y' = v
  v' = -1 + b*sin(3*t) + N1 + N2 + N3
  p' = w
  w' = 0.4*sin(2*t) - 0.8*N1 + 0.1*N2 + 0.7*N3
"""
[parameters]
b = 1.2
[initial]
y = 0.3
v = 0
p = 0
w = 0
[constraint.N1]
gap = "y - 0.8*p"
restitution = 0
[constraint.N2]
gap = "y + 0.1*p"
restitution = 0.5
[constraint.N3]
gap = "y + 0.7*p"
restitution = 0
)M"),
                        15);
}

// Memory comes back from runs that are over, and from none that was interrupted or goes on.
TEST(Again, MemoryComesBackFromRunsThatAreOver) {
  const Program program(
      read_model_text("equations = \"\"\"\nx' = v\nv' = -x - 0.3*sign(v)\n\"\"\"\n[initial]\nx = 2\nv = 0\n"));
  RunOptions options{.initial = {2, 0.5}, .until = 10};
  const auto is_kept = [&] { return program.lend<EngineMemory>()->series.has_value(); };
  simulate(program, options);
  EXPECT_TRUE(is_kept()) << "and now it is taken";
  EXPECT_FALSE(is_kept());
  options.on_piece = [](const Piece&, const Arc&) { throw Interrupted(); };
  EXPECT_THROW(simulate(program, options), Interrupted);
  EXPECT_FALSE(is_kept());
  Simulator simulator(program);
  EXPECT_THROW(simulator.run(options), Interrupted);
  simulator.give_back();
  EXPECT_FALSE(is_kept());
}

}  // namespace
}  // namespace saltus
