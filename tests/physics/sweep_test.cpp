// Published facts about attractors against a parameter.
#include "analysis/sweep.hpp"

#include <set>

#include "physics.hpp"

namespace saltus::physics {
namespace {

SweepPlan plan_of(const System& system, const std::string& parameter, std::vector<double> values,
                  const std::string& section = "strobe") {
  const Model& model = system.program.model();
  const auto names = model.parameter_names();
  const int p = static_cast<int>(std::find(names.begin(), names.end(), parameter) - names.begin());
  SweepPlan plan;
  plan.varied.push_back(vary(model, parameter, parameter_symbol(model, p), std::move(values)));
  plan.run = system.options(HUGE_VAL, 1e-10);
  while (model.sections.at(static_cast<size_t>(plan.section)).name != section) ++plan.section;
  plan.skip = 0;
  plan.count = 40;
  plan.settle = 8000;
  plan.longest = 8;
  return plan;
}

std::vector<SweepRun> compute(const System& system, const SweepPlan& plan) {
  std::vector<SweepRun> runs;
  for (auto& run : sweep_runs(plan, run_job(sweep_job(system.program, plan, ""), {.threads = 2})))
    runs.push_back(std::move(run.value()));
  return runs;
}

std::vector<long> periods(const System& system, const SweepPlan& plan) {
  std::vector<long> list;
  for (const SweepRun& run : compute(system, plan)) list.push_back(run.period);
  return list;
}

/// The sweep of 1/omega of the friction oscillator.
std::vector<SweepRun> friction(std::vector<double> values) {
  const System system = gallery_system("dry_friction");
  const Model& model = system.program.model();
  SweepPlan plan = plan_of(system, "omega", {1});
  plan.varied = {vary(model, "1/omega", Expr(1.0) / parameter_symbol(model, 1), std::move(values))};
  return compute(system, plan);
}

TEST(FrictionDiagram, HasNoneTwoAndFourSlidingSegments) {
  const std::vector<double> values{0.3, 0.5, 0.8, 1.2, 1.5, 1.8, 1.9, 2.2, 3, 4, 4.5, 4.8, 4.85, 5.5, 6, 6.5, 7};
  const auto runs = friction(values);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(runs[i].period, 1) << values[i];
    EXPECT_EQ(runs[i].sliding, values[i] < 1.8665 ? 0 : values[i] < 4.8231 ? 2 : 4) << values[i];
    EXPECT_NEAR(runs[i].time, 2 * M_PI * values[i], 1e-9);
  }
  // The point of the attractor at 1/omega = 3.
  const size_t three = 8;
  EXPECT_NEAR(runs[three].last[0], -0.72126788320629290, 1e-9);
  EXPECT_NEAR(runs[three].last[1], 0.35703024338585365, 1e-9);
}

TEST(FrictionDiagram, ChangesWhereTheSlidingBifurcationsAre) {
  for (const auto& [low, high, where] : {std::tuple{1.86, 1.87, 1.866523638121452}, {4.82, 4.83, 4.823126106845336}}) {
    double a = low, b = high;
    for (int level = 0; level < 4; ++level) {  // ten intervals each: down to 1e-6
      std::vector<double> values;
      for (int i = 0; i <= 10; ++i) values.push_back(a + (b - a) * i / 10);
      const auto runs = friction(values);
      size_t i = 1;
      while (i < 10 && runs[i].sliding == runs[0].sliding) ++i;
      EXPECT_EQ(runs[10].sliding, runs[0].sliding + 2);
      for (size_t k = i; k <= 10; ++k) EXPECT_EQ(runs[k].sliding, runs[10].sliding);
      a = values[i - 1];
      b = values[i];
    }
    EXPECT_LE(a - 1e-9, where);
    EXPECT_GE(b + 1e-9, where);
    EXPECT_LT(b - a, 1.1e-6);
  }
}

TEST(BuckDiagram, DoublesItsPeriodAtTheKnownVoltages) {
  System system = gallery_system("buck");
  system.start({{"i", 0.56330939360334876}, {"v", 11.864897927512085}});  // on the 1T orbit at 15 V
  SweepPlan plan = plan_of(system, "Vin", {12, 15, 20, 24.5, 24.53, 28, 31.1, 31.13, 32, 33, 35, 38});
  const auto runs = compute(system, plan);
  const std::vector<long> expected{1, 1, 1, 1, 2, 2, 2, 4, 4, 0, 0, 0};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(runs[i].period, expected[i]) << plan.varied[0].values[i];
  EXPECT_NEAR(runs[1].last[0], 0.56330939360334876, 1e-8);
  EXPECT_NEAR(runs[1].last[1], 11.864897927512085, 1e-8);
  for (const SweepRun& run : runs) EXPECT_EQ(run.why, Why::count) << run.message;
}

// Windows of period one, each with two sliding segments more than the one before, and chaos between them.
TEST(RelayDiagram, AddsSlidingSegmentsFromWindowToWindow) {
  System system = gallery_system("relay_feedback");
  system.set({{"lam", 0.05}, {"zeta", -0.07}});
  std::vector<double> values;
  for (int i = 0; i <= 50; ++i) values.push_back(5 + 0.1 * i);
  SweepPlan plan = plan_of(system, "w", values, "cycle");
  plan.settle = 0;
  plan.skip = 60;
  const auto runs = compute(system, plan);
  std::vector<double> windows;
  bool chaos = false;
  for (const SweepRun& run : runs) {
    if (run.period != 1) {
      chaos = true;
    } else if (windows.empty() || run.sliding != windows.back()) {
      if (!windows.empty()) {
        EXPECT_EQ(run.sliding, windows.back() + 2);
        EXPECT_TRUE(chaos) << "before the window with " << run.sliding;
      }
      windows.push_back(run.sliding);
      chaos = false;
    }
  }
  EXPECT_GE(windows.size(), 5u);
  EXPECT_EQ(runs[50].period, 0);  // w = 10
}

TEST(ImpactDiagram, FindsBothAttractorsThatCoexist) {
  const System system = gallery_system("impact_oscillator");
  SweepPlan plan = plan_of(system, "w", {2.6});
  plan.box = {{0, 5}, {-5, 5}};
  plan.random_starts = 24;
  const auto found = periods(system, plan);
  EXPECT_EQ(std::set(found.begin(), found.end()), (std::set<long>{1, 6}));
}

// u = 18 sin t between impacts: hits at u = 0 with v = -18, the wall moving up with 2, back with v = 2 + 0.8*20.
TEST(ImpactDiagram, HasTheClosedFormAtTwiceTheFrequency) {
  const System system = gallery_system("impact_oscillator");
  SweepPlan plan = plan_of(system, "w", {2}, "hit");
  const auto runs = compute(system, plan);
  EXPECT_EQ(runs[0].period, 1);
  EXPECT_NEAR(runs[0].time, M_PI, 1e-7);
  EXPECT_NEAR(runs[0].last[0], 0, 1e-6);
  EXPECT_NEAR(runs[0].last[1], 18, 1e-5);
}

}  // namespace
}  // namespace saltus::physics
