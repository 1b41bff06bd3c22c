#include "analysis/sweep.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "model/read.hpp"

namespace saltus {
namespace {

// x' = mu + x - x^3: two stable equilibria for |mu| < 2/sqrt(27), one beyond.
const char* const kBistable = R"(
equations = "x' = mu + x - x^3"
[parameters]
mu = -1
[initial]
x = -1
[section.look]
every = "1"
)";

// y follows a drive: one period of the drive, whatever omega.
const char* const kDriven = R"(
equations = """
y' = -y + sin(omega*t)
"""
[parameters]
omega = 2
a = 3
[initial]
y = "1/omega"
[section.zero]
on = "y"
direction = "rising"
[section.strobe]
every = "2*pi/omega"
)";

SweepPlan plan_for(const Model& model, const std::string& parameter, std::vector<double> values) {
  SweepPlan plan;
  const auto names = model.parameter_names();
  const int p = static_cast<int>(std::find(names.begin(), names.end(), parameter) - names.begin());
  plan.varied.push_back(vary(model, parameter, parameter_symbol(model, p), std::move(values)));
  plan.run.parameters = parameter_values(model);
  plan.run.initial = initial_values(model, plan.run.parameters);
  plan.run.until = HUGE_VAL;
  plan.skip = 60;
  plan.count = 12;
  return plan;
}

std::vector<SweepRun> compute(const Program& program, const SweepPlan& plan, int threads = 2) {
  std::vector<SweepRun> runs;
  for (auto& run : sweep_runs(plan, run_job(sweep_job(program, plan, ""), {.threads = threads})))
    runs.push_back(std::move(run.value()));
  return runs;
}

std::vector<double> steps(double a, double b, int n) {
  std::vector<double> values;
  for (int i = 0; i < n; ++i) values.push_back(a + (b - a) * i / (n - 1));
  return values;
}

TEST(Vary, AParameterTakesItsValues) {
  const Model model = read_model_text(kDriven);
  const Varied v = vary(model, "omega", parameter_symbol(model, 0), {1, 0, -2});
  EXPECT_EQ(v.parameter, 0);
  EXPECT_EQ(v.setting, (std::vector<double>{1, 0, -2}));
}

TEST(Vary, AFormulaIsSolvedForItsParameter) {
  const Model model = read_model_text(kDriven);
  const Expr omega = parameter_symbol(model, 0);
  const Varied inverse = vary(model, "1/omega", Expr(1.0) / omega, {0.3, 3, 7, 1e-9, 1e9});
  for (size_t i = 0; i < inverse.values.size(); ++i)
    EXPECT_NEAR(inverse.setting[i] * inverse.values[i], 1, 3e-16) << inverse.values[i];
  const Varied log = vary(model, "log(omega)", make(Op::log, omega), {-3, 0, 5});
  EXPECT_NEAR(log.setting[0], std::exp(-3), 1e-16);
  EXPECT_NEAR(log.setting[1], 1, 1e-15);
  EXPECT_NEAR(log.setting[2], std::exp(5), 1e-13);
}

TEST(Vary, AFormulaThatHasNoAnswerIsRefused) {
  const Model model = read_model_text(kDriven);
  const Expr omega = parameter_symbol(model, 0), a = parameter_symbol(model, 1);
  const auto complaint = [&](const Expr& e, std::vector<double> values) -> std::string {
    try {
      vary(model, "it", e, std::move(values));
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  };
  EXPECT_EQ(complaint(omega * a, {1}), "'it' contains several parameters");
  EXPECT_EQ(complaint(Expr(3.0), {1}), "'it' contains no parameters");
  EXPECT_EQ(complaint(Expr(1.0) / omega, {1, -1}), "it = -1 is out of reach around omega = 2");
  EXPECT_NE(complaint(omega + make(Op::sin, omega * Expr(20.0)), {1, 3}).find("not monotone"), std::string::npos);
}

TEST(Sweep, ContinuedUpAndDownShowsHysteresis) {
  const Program program(read_model_text(kBistable));
  SweepPlan plan = plan_for(program.model(), "mu", steps(-0.8, 0.8, 33));
  plan.direction = Continue::both;
  const auto runs = compute(program, plan);
  const double fold = 2 / std::sqrt(27);
  for (size_t i = 0; i < 33; ++i) {
    const double mu = plan.varied[0].values[i];
    EXPECT_EQ(runs[2 * i].last[0] > 0, mu > fold) << mu;       // up: on the lower branch as long as it exists
    EXPECT_EQ(runs[2 * i + 1].last[0] > 0, mu > -fold) << mu;  // down
    EXPECT_EQ(runs[2 * i].period, 1);
  }
  EXPECT_EQ(plan.start_name(0), "up");
  EXPECT_EQ(plan.start_name(1), "down");
}

TEST(Sweep, FixedStartsSeeNoHysteresis) {
  const Program program(read_model_text(kBistable));
  const SweepPlan plan = plan_for(program.model(), "mu", steps(-0.3, 0.3, 7));
  for (const SweepRun& run : compute(program, plan)) EXPECT_LT(run.last[0], 0);
}

TEST(Sweep, SeveralStartsFindWhatCoexists) {
  const Program program(read_model_text(kBistable));
  SweepPlan plan = plan_for(program.model(), "mu", {0, 0.1});
  plan.starts = {{-2}, {0.5}};
  auto runs = compute(program, plan);
  EXPECT_NEAR(runs[0].last[0], -1, 1e-6);
  EXPECT_NEAR(runs[1].last[0], 1, 1e-6);
  EXPECT_LT(runs[2].last[0], 0);
  EXPECT_GT(runs[3].last[0], 0);
  plan.starts.clear();
  plan.box = {{-2, 2}};
  plan.random_starts = 40;
  runs = compute(program, plan);
  const auto right = std::count_if(runs.begin(), runs.begin() + 40, [](const SweepRun& r) { return r.last[0] > 0; });
  EXPECT_GT(right, 8);
  EXPECT_LT(right, 32);
}

TEST(Sweep, GivesTheSameBytesWithAnyNumberOfThreads) {
  const Program program(read_model_text(kBistable));
  SweepPlan plan = plan_for(program.model(), "mu", steps(-0.5, 0.5, 11));
  plan.box = {{-2, 2}};
  plan.random_starts = 3;
  for (const Continue direction : {Continue::none, Continue::down, Continue::both}) {
    plan.direction = direction;
    const SweepJob job = sweep_job(program, plan, "");
    const auto one = run_job(job, {.threads = 1}), five = run_job(job, {.threads = 5});
    ASSERT_EQ(one.items.size(), five.items.size());
    for (std::size_t i = 0; i < one.items.size(); ++i) EXPECT_EQ(job.pack(*one.items[i]), job.pack(*five.items[i]));
  }
}

TEST(Sweep, InitialValuesFollowTheParameter) {
  const Program program(read_model_text(kDriven));
  SweepPlan plan = plan_for(program.model(), "omega", {1, 4});
  plan.section = 1;
  plan.skip = 0;
  const auto runs = compute(program, plan);
  // y = (sin wt - w cos wt)/(1 + w^2) + c exp(-t), y(0) = 1/w, after one turn
  for (size_t i = 0; i < 2; ++i) {
    const double w = plan.varied[0].values[i], steady = -w / (1 + w * w);
    EXPECT_NEAR(runs[i].points[0], steady + (1 / w - steady) * std::exp(-2 * M_PI / w), 1e-9);
    EXPECT_EQ(runs[i].points.size(), 12u);
    EXPECT_EQ(runs[i].seen, 12);
  }
}

// On a section that is met at any time, the state alone does not say where in its cycle the drive is. Started at
// another phase, the third point would still be off by exp(-3*pi) times the swing, 1e-5 of it.
TEST(Sweep, ContinuesAtThePhaseOfTheDrive) {
  const Program program(read_model_text(kDriven));
  SweepPlan plan = plan_for(program.model(), "omega", {2, 2.0001});
  plan.direction = Continue::up;
  plan.skip = 0;
  plan.count = 3;
  plan.varied[0].values = plan.varied[0].setting = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2.0001};
  const auto runs = compute(program, plan);
  const double w = 2.0001, t = runs[9].last[1];
  EXPECT_NEAR(std::tan(w * t), w, 1e-7);  // where the steady state (sin wt - w cos wt)/(1 + w^2) vanishes
}

// Van der Pol's oscillator, met where it turns: of period 1 without a force, and with one that it follows.
TEST(Sweep, TellsThePeriodWhereTheAmplitudeOfTheDriveIsZero) {
  const Program program(read_model_text(R"(
equations = """
x' = v
v' = (1 - x^2)*v - x + A*cos(t)
"""
[parameters]
A = 1
[initial]
x = 1
v = 0
[section.turn]
on = "v"
direction = "falling"
)"));
  SweepPlan plan = plan_for(program.model(), "A", {0, 1});
  plan.skip = 300;
  for (const SweepRun& run : compute(program, plan)) EXPECT_EQ(run.period, 1) << run.message;
}

TEST(Sweep, ARunThatEndsBadlyIsARowNotAnError) {
  const Program program(
      read_model_text("equations = \"x' = a*x^2\"\n[parameters]\na = 1\n[initial]\nx = 1\n"
                      "[section.look]\nevery = \"0.15\"\n"));
  const auto runs = compute(program, plan_for(program.model(), "a", {-1, 1, 0}));
  EXPECT_EQ(runs[0].why, Why::count);
  EXPECT_EQ(runs[1].why, Why::diverged);
  EXPECT_EQ(runs[1].period, 0);
  EXPECT_EQ(runs[1].seen, 6);  // x = 1/(1 - t)
  EXPECT_TRUE(runs[1].points.empty());
  EXPECT_EQ(runs[2].period, 1);
}

TEST(Sweep, AStartThatAValueForbidsIsARowNotAnError) {
  const Program program(
      read_model_text("equations = \"\"\"\nq' = v\nv' = -1 + N\n\"\"\"\n[parameters]\nheight = 0\n"
                      "[constraint.N]\ngap = \"q - height\"\nrestitution = 0\n[initial]\nq = 1\nv = 0\n"
                      "[section.look]\nevery = \"1\"\n"));
  const auto runs = compute(program, plan_for(program.model(), "height", {0, 2}));
  EXPECT_EQ(runs[0].why, Why::count);
  EXPECT_EQ(runs[1].why, Why::undefined);
  EXPECT_FALSE(runs[1].message.empty());
}

TEST(Sweep, ASectionNeverMetAgainEndsTheRun) {
  const Program program(read_model_text(
      "equations = \"\"\"\ny' = v\nv' = -y - a*v\n\"\"\"\n[parameters]\na = 3\n[initial]\ny = 1\nv = 0\n"
      "[section.turn]\non = \"v\"\n"));
  const auto runs = compute(program, plan_for(program.model(), "a", {3}));
  EXPECT_EQ(runs[0].why, Why::stalled);
  EXPECT_EQ(runs[0].message, "comes to rest without meeting 'turn'");
}

TEST(Sweep, SettlesNoLaterThanItMust) {
  const Program program(read_model_text(kBistable));
  SweepPlan plan = plan_for(program.model(), "mu", {0, -0.3849});  // next to the fold it takes long
  plan.skip = 0;
  plan.settle = 3000;
  const auto runs = compute(program, plan);
  EXPECT_EQ(runs[0].period, 1);
  EXPECT_LT(runs[0].seen, 60);
  EXPECT_GT(runs[1].seen, runs[0].seen);
}

TEST(Sweep, OfTwoParametersNumbersTheFirstFastest) {
  const Program program(
      read_model_text("equations = \"x' = b - a*x\"\n[parameters]\na = 1\nb = 1\n[initial]\nx = 0\n"
                      "[section.look]\nevery = \"5\"\n"));
  SweepPlan plan = plan_for(program.model(), "a", steps(1, 2, 7));
  plan.varied.push_back(vary(program.model(), "b", parameter_symbol(program.model(), 1), steps(0.5, 1.5, 9)));
  plan.keep_points = false;
  const auto runs = compute(program, plan);
  ASSERT_EQ(runs.size(), 63u);
  for (size_t i = 0; i < 63; ++i)
    EXPECT_NEAR(runs[i].last[0], plan.varied[1].values[i / 7] / plan.varied[0].values[i % 7], 1e-8);
}

// ---- exponents -----------------------------------------------------------------------------------------------------

TEST(Sweep, ExponentsArePerUnitOfTimeWhateverTheSection) {
  // a*y is the slowest direction of y; the other is faster by one.
  const Program program(read_model_text(R"M(
equations = """
y' = -a*y + z + sin(t)
z' = -(a + 1)*z
"""
[parameters]
a = 1
[initial]
y = 1
z = 1
[section.strobe]
every = "3"
[section.zero]
on = "y"
)M"));
  SweepPlan plan = plan_for(program.model(), "a", {0.1, 0.25, 1});
  plan.exponent = true;
  for (const int section : {0, 1}) {
    plan.section = section;
    const std::vector<SweepRun> runs = compute(program, plan);
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(runs[i].exponent, -plan.varied[0].values[i], 1e-8) << section;
  }
}

TEST(Sweep, ExponentsAreTheLogarithmsOfMultipliers) {
  // From kick to kick x decays towards a; the fixed point and the slope of that map are at hand.
  const Program program(read_model_text(R"M(
equations = "x' = -x + a"
[parameters]
a = 1
b = 0.5
[initial]
x = 0
[jump.kick]
every = "1"
set = { x = "b*x + 0.3*sin(x)" }
[section.s]
on = "kick"
)M"));
  SweepPlan plan = plan_for(program.model(), "b", {0.2, 0.5});
  plan.exponent = true;
  const std::vector<SweepRun> runs = compute(program, plan);
  for (size_t i = 0; i < 2; ++i) {
    const double b = plan.varied[0].values[i];
    double x = 0;  // just before the jump
    for (int k = 0; k < 200; ++k) x = 1 + (b * x + 0.3 * std::sin(x) - 1) * std::exp(-1);
    EXPECT_NEAR(runs[i].exponent, std::log((b + 0.3 * std::cos(x)) * std::exp(-1)), 1e-9);
  }
}

TEST(Sweep, ExponentsAreMinusInfinityWhereNothingIsRemembered) {
  const Program program(read_model_text(R"M(
equations = """
x' = -a*sign(x - sin(t))
"""
[parameters]
a = 2
[initial]
x = 3
[section.s]
every = "1"
)M"));
  SweepPlan plan = plan_for(program.model(), "a", {1.5, 2});
  plan.exponent = true;
  for (const SweepRun& run : compute(program, plan)) EXPECT_EQ(run.exponent, -HUGE_VAL);
}

}  // namespace
}  // namespace saltus
