#include <cmath>
#include <numbers>
#include <thread>

#include <gtest/gtest.h>

#include "ask/exponents.hpp"
#include "ask/many.hpp"
#include "ask/run.hpp"
#include "ask/section.hpp"
#include "model/model_builder.hpp"

namespace saltus {
namespace {

const char* const oscillator_text = R"(
equations = """
  x' = v
  v' = -w^2*x
"""
[parameters]
w = 2
[initial]
x = 1
v = 0
[section.up]
on = "x"
direction = "rising"
)";

template <class Action>
Error error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no complaint";
  return Error(ErrorKind::file, "none");
}

System oscillator() { return System::from_text(oscillator_text, "oscillator"); }

System ball() {
  return System(ModelBuilder("Ball")
                    .equations("q' = v\nv' = -g + N")
                    .parameter("g", 9.81)
                    .initial("q", 1)
                    .initial("v", 0)
                    .constraint("N", "q", "0.5")
                    .build());
}

TEST(System, OfTextIsCalledAsItsSourceWhereItHasNoName) {
  EXPECT_EQ(oscillator().model().name, "oscillator");
  EXPECT_EQ(System::example("dry_friction").model().name, "Dry-friction oscillator");
}

TEST(System, WithValuesLeavesTheFirstAsItWas) {
  const System first = oscillator(), second = first.with({{"w", 3}}, {{"x", "w/2"}});
  EXPECT_EQ(parameter_values(first.model())[0], 2);
  EXPECT_EQ(parameter_values(second.model())[0], 3);
  EXPECT_EQ(initial_values(second.model(), {3})[0], 1.5);
  EXPECT_EQ(initial_values(second.with({{"w", 4}}).model(), {4})[0], 2) << "what was set before stays";
}

TEST(System, KeepsNumbersToTheirLastDigit) {
  const double w = 1.0 / 3;
  EXPECT_EQ(parameter_values(oscillator().with({{"w", w}}).model())[0], w);
}

TEST(System, OfAStructuralParameterIsReadAnew) {
  const System chain = System::from_text(R"(
equations = "x[i]' = -x[i]  for i = 1..N"
[parameters]
N = 2
[initial]
"x[i]" = 1
)");
  EXPECT_EQ(chain.with({{"N", 5}}).model().states.size(), 5U);
}

TEST(System, WritesATextThatReadsToTheSame) {
  EXPECT_TRUE(same_model(System::from_text(ball().text()).model(), ball().model()));
}

TEST(System, ComplaintsNameOptionsInBackquotes) {
  EXPECT_EQ(error_of([] {
              oscillator().with({{"u", 1}});
            }).message(),
            "`parameter` u=1: the model has no parameter 'u'");
  EXPECT_EQ(error_of([] { oscillator().with({{"x", 1}}); }).hint(), "write `initial` x=1");
  EXPECT_EQ(error_of([] { System::example("dry_fricton"); }).hint(), "did you mean 'dry_friction'?");
}

TEST(Options, AreSpeltByWhoShowsThem) {
  const auto spell = [](std::string_view name) { return name == "dt" ? std::string("--dt") : std::string(); };
  EXPECT_EQ(spell_options("`dt` 3: see `other`", spell), "--dt 3: see `other`");
  EXPECT_EQ(spell_options("a lone ` stays", spell), "a lone ` stays");
}

TEST(AskRun, GivesTheClosedFormAtAnyTime) {
  const RunAnswer path = ask(RunQuestion{.system = oscillator(), .solve = {.until = "2*pi"}});
  ASSERT_EQ(path.trajectory.end.why, Why::time);
  for (const double t : {0.0, 0.1, 1.7, 3.3, 2 * std::numbers::pi}) {
    EXPECT_NEAR(path.trajectory(t)[0], std::cos(2 * t), 1e-12);
    EXPECT_NEAR(path.trajectory(t)[1], -2 * std::sin(2 * t), 1e-12);
  }
}

TEST(AskRun, StartsWhereItIsTold) {
  const RunAnswer path =
      ask(RunQuestion{.system = oscillator(), .solve = {.from = 1, .until = 2}, .start = std::vector{0.0, 2.0}});
  EXPECT_NEAR(path.trajectory.end.state[0], std::sin(2.0), 1e-12);
  EXPECT_EQ(path.trajectory.start_time, 1);
  EXPECT_THROW(ask(RunQuestion{.system = oscillator(), .solve = {.until = 2}, .start = std::vector{0.0}}), Error);
}

// On x = y = z = 0 products of signs leave three solutions; the one in range is followed, from SciPy's fsolve at t = 1.
TEST(AskRun, RowsShowTheSigmaThatIsSlidWith) {
  const System system = System::from_text(R"(
equations = """
  x' = 0.03 + 0.5*sin(1.22*t) + 0.87*x - 0.74*y - 0.01*z - 0.92*sign(y)*sign(x) + 0.09*sign(z)*sign(x)
       + 0.45*sign(z)*sign(y)
  y' = 0.49 - 0.11*sin(0.56*t) - 0.63*x + 0.91*y + 0.24*z + 0.29*sign(x) - 1.02*sign(y) + 0.55*sign(z)
       - 1.46*sign(z)*sign(x) + 0.09*sign(z)*sign(y)
  z' = -0.4 - 0.13*sin(1.03*t) + 0.8*x - 0.75*y - 0.74*z + 0.19*sign(x) + 0.05*sign(y)*sign(x) - sign(z)*sign(y)
"""
[initial]
x = 0.4
y = 0.25
z = -0.12
)");
  const RunAnswer path = ask(RunQuestion{.system = system, .solve = {.until = 1}});
  const std::vector<double>& cells = path.rows.cells;
  const double* last = &cells[cells.size() - path.rows.columns.size()];
  const std::vector<std::string> names(path.rows.columns.begin() + 4, path.rows.columns.end());
  ASSERT_EQ(names, (std::vector<std::string>{"sigma(y)", "sigma(x)", "sigma(z)"}));
  EXPECT_NEAR(last[4], 0.63677509, 1e-8);
  EXPECT_NEAR(last[5], 0.49637608, 1e-8);
  EXPECT_NEAR(last[6], -0.63025929, 1e-8);
}

TEST(AskRun, RowsStandAtTheTimesGiven) {
  const std::vector<double> times{0, 0.25, 1.5, 2};
  const Sampling sample{.kind = Sampling::Kind::times, .times = times};
  const RunAnswer path = ask(RunQuestion{.system = oscillator(), .solve = {.until = 2}, .sample = sample});
  ASSERT_EQ(path.rows.count(), times.size());
  for (size_t i = 0; i < times.size(); ++i) {
    EXPECT_EQ(path.rows.cells[i * path.rows.columns.size()], times[i]);
    EXPECT_NEAR(path.rows.cells[i * path.rows.columns.size() + 1], std::cos(2 * times[i]), 1e-12);
  }
  const Sampling outside{.kind = Sampling::Kind::times, .times = {3}},
      back{.kind = Sampling::Kind::times, .times = {1, 0}};
  EXPECT_THROW(plan(RunQuestion{.system = oscillator(), .solve = {.until = 2}, .sample = outside}), Error);
  EXPECT_THROW(plan(RunQuestion{.system = oscillator(), .solve = {.until = 2}, .sample = back}), Error);
}

TEST(AskRun, BothEnginesAreToldByOneVariant) {
  const RunAnswer event = ask(RunQuestion{.system = ball(), .solve = {.until = 1, .engine = "event"}});
  const RunAnswer step = ask(RunQuestion{.system = ball(), .solve = {.until = 1, .engine = "step", .dt = 1e-3}});
  ASSERT_TRUE(step.options.step.has_value());
  EXPECT_NEAR(event.trajectory.events.front().t, std::sqrt(2 / 9.81), 1e-12);
  EXPECT_NEAR(step.trajectory.end.state[0], event.trajectory.end.state[0], 1e-6);
}

TEST(AskRun, DerivativesAreThoseOfTheClosedForm) {
  const RunAnswer path =
      ask(RunQuestion{.system = oscillator(), .solve = {.until = 1}, .sensitivity = std::vector<std::string>{"w"}});
  ASSERT_TRUE(path.sensitivity.has_value());
  EXPECT_NEAR(path.sensitivity->by_state[0][0], std::cos(2.0), 1e-9);
  EXPECT_NEAR(path.sensitivity->by_state[0][1], std::sin(2.0) / 2, 1e-9);
  EXPECT_NEAR(path.sensitivity->by_parameter[0][0], -std::sin(2.0), 1e-9);
}

TEST(AskRun, StopsWhenItIsToldTo) {
  std::stop_source source;
  long pieces = 0;
  Observer observer{.stop = source.get_token()};
  observer.on_piece = [&](const Piece&, const Arc&) {
    if (++pieces == 1000) source.request_stop();
  };
  const RunAnswer path = ask(RunQuestion{.system = oscillator(), .solve = {.until = 1e9}, .rows = false}, observer);
  EXPECT_EQ(path.trajectory.end.why, Why::cancelled);
  EXPECT_LE(pieces, 1000 + 256);
  EXPECT_EQ(static_cast<long>(path.trajectory.pieces.size()), pieces);
}

TEST(AskRun, OneSystemServesManyThreads) {
  const System system = System::example("dry_friction");
  std::vector<double> ends(4);
  {
    std::vector<std::jthread> threads;
    for (double& end : ends)
      threads.emplace_back([&] { end = ask(RunQuestion{.system = system}).trajectory.end.state[0]; });
  }
  for (const double end : ends) EXPECT_EQ(end, ends[0]);
}

TEST(AskSection, GivesTheReturnsOfTheClosedForm) {
  const SectionAnswer map = ask(SectionQuestion{.system = oscillator(), .count = 5, .skip = 2});
  ASSERT_EQ(map.times.size(), 5U);
  EXPECT_EQ(map.section, "up");
  for (size_t k = 0; k < 5; ++k) {
    EXPECT_NEAR(map.times[k], std::numbers::pi * (0.75 + static_cast<double>(k + 2)), 1e-9);
    EXPECT_NEAR(map.points[2 * k + 1], 2, 1e-9);
  }
}

TEST(AskSection, RefusesWhatNoMapCanBe) {
  EXPECT_THROW(plan(SectionQuestion{.system = oscillator(), .count = 0}), Error);
  EXPECT_THROW(plan(SectionQuestion{.system = ball()}), Error);
  EXPECT_EQ(error_of([] { plan(SectionQuestion{.system = oscillator(), .section = "strobe"}); }).hint(),
            "sections: up");
}

TEST(AskSweep, GivesARunForEveryValueAsValues) {
  // x settles on sin(t)/a within a few periods of the clock: period 1, whatever a.
  const System driven = System(ModelBuilder("Driven")
                                   .equations("x' = -3*x + sin(2*pi*t)/a")
                                   .parameter("a", 1)
                                   .initial("x", 0)
                                   .section_every("second", "1")
                                   .build());
  const SweepAnswer answer = ask(SweepQuestion{.system = driven, .vary = {{"1/a", {1, 2, 4}}}, .skip = 20, .count = 5});
  ASSERT_EQ(answer.runs.size(), 3U);
  EXPECT_EQ(answer.missing, 0U);
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(answer.runs[i].has_value());
    EXPECT_EQ(answer.runs[i]->period, 1);
    const double w = 2 * std::numbers::pi, amplitude = answer.plan.varied[0].values[i];
    EXPECT_NEAR(answer.runs[i]->points[0], -amplitude * w / (9 + w * w), 1e-9);
  }
}

TEST(AskSweep, RefusesWhatCannotBeVaried) {
  EXPECT_THROW(plan(SweepQuestion{.system = oscillator(), .vary = {}}), Error);
  EXPECT_THROW(plan(SweepQuestion{.system = oscillator(), .vary = {{"u", {1}}}}), Error);
  EXPECT_THROW(plan(SweepQuestion{.system = ball(), .vary = {{"g", {1}}}}), Error) << "no section";
}

// The period doubles at 24.51657 V: at 24.5 the points alternate for thousands of cycles about the one they go to.
TEST(AskSweep, GivesThePeriodThatBasinsGive) {
  const System buck = System::example("buck").with({{"Vin", 24.5}});
  const SweepAnswer sweep = ask(SweepQuestion{.system = buck, .vary = {{"Vin", {24.5}}}});
  const Numbers start = initial_values(buck.model(), parameter_values(buck.model()));
  const Mesh mesh(
      {uniform_axis(0, start[0] - 0.1, start[0] + 0.1, 1), uniform_axis(1, start[1] - 0.01, start[1] + 0.01, 1)});
  const BasinsAnswer basins =
      ask(BasinsQuestion{.system = buck, .mesh = mesh, .options = {.method = BasinsOptions::Method::direct}});
  ASSERT_EQ(basins.basins.basins.size(), 1u);
  EXPECT_EQ(basins.basins.basins[0].attractor.period, 1);
  EXPECT_EQ(sweep.runs[0]->period, 1);
}

TEST(AskBasins, TellsTwoWellsApart) {
  const System wells =
      System(ModelBuilder("Wells").equations("x' = x - x^3").initial("x", 0.5).section_every("second", "1").build());
  const Mesh mesh({uniform_axis(0, -2, 2, 8)});
  const BasinsAnswer answer =
      ask(BasinsQuestion{.system = wells, .mesh = mesh, .options = {.method = BasinsOptions::Method::direct}});
  ASSERT_EQ(answer.basins.basins.size(), 2U);
  for (size_t cell = 0; cell < 8; ++cell)
    EXPECT_EQ(answer.basins.fate[cell], answer.basins.fate[cell < 4 ? 0 : 7]) << cell;
  EXPECT_NE(answer.basins.fate[0], answer.basins.fate[7]);
}

TEST(AskExponents, AreTheRatesOfALinearFlow) {
  const System saddle =
      System(ModelBuilder("Saddle").equations("x' = x\ny' = -2*y").initial("x", 1e-6).initial("y", 1).build());
  const Exponents found = ask(ExponentsQuestion{.system = saddle, .solve = {.until = 40}});
  ASSERT_EQ(found.exponents.size(), 2U);
  EXPECT_NEAR(found.exponents[0], 1, 1e-8);
  EXPECT_NEAR(found.exponents[1], -2, 1e-8);
  EXPECT_THROW(plan(ExponentsQuestion{.system = saddle, .solve = {.until = 40, .engine = "step"}}), Error);
}

}  // namespace
}  // namespace saltus
