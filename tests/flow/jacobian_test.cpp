#include "flow/jacobian.hpp"

#include <cmath>
#include <filesystem>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "flow/simulate.hpp"
#include "model/read.hpp"

namespace saltus {
namespace {

/// A model in one of its modes.
struct InMode {
  Program program;
  std::vector<double> parameters, counters;
  Series series;

  explicit InMode(Model model)
      : program(std::move(model)),
        parameters(parameter_values(program.model())),
        counters(static_cast<size_t>(program.model().form.counter_values), 0.0),
        series(program, parameters, 4) {}

  std::vector<double> rates(const std::vector<double>& x, double t) {
    EXPECT_EQ(series.evaluate(x, t, counters), SeriesStatus::ok);
    std::vector<double> out;
    for (int i = 0; i < program.states(); ++i) out.push_back(*series.rate(i));
    return out;
  }

  Mat jacobian(const std::vector<double>& x, double t) {
    EXPECT_EQ(series.evaluate(x, t, counters), SeriesStatus::ok);
    return RateJacobian().at(series, t, counters);
  }

  /// By differences of fourth order.
  Mat differences(const std::vector<double>& x, double t) {
    const auto n = static_cast<Index>(x.size());
    Mat out(n, n);
    for (Index j = 0; j < n; ++j) {
      const size_t at = static_cast<size_t>(j);
      const double d = 5e-5 * std::max(1e-3, std::abs(x[at]));
      const auto moved = [&](double by) {
        std::vector<double> y = x;
        y[at] += by;
        return rates(y, t);
      };
      const auto a = moved(-2 * d), b = moved(-d), c = moved(d), e = moved(2 * d);
      for (Index i = 0; i < n; ++i) {
        const size_t row = static_cast<size_t>(i);
        out(i, j) = (a[row] - 8 * b[row] + 8 * c[row] - e[row]) / (12 * d);
      }
    }
    return out;
  }
};

TEST(RateJacobian, ContainsHowSigmaMovesWithTheState) {
  InMode place(
      read_model_text("name = \"test\"\nequations = \"\"\"\nx' = x + 3*y - (1 + y^2)*sign(x)\n"
                      "y' = 2*sign(x) - y\n\"\"\"\n[initial]\nx = 0\ny = 0\n"));
  place.series.set_mode({"0", ""});
  const double y = 0.7, s = 3 * y / (1 + y * y);  // sigma = (x + 3y)/(1 + y^2)
  const Mat j = place.jacobian({0, y}, 0);
  EXPECT_EQ(j(0, 0), 0);
  EXPECT_NEAR(j(0, 1), 0, 1e-15);
  EXPECT_NEAR(j(1, 0), 2 / (1 + y * y), 1e-15);
  EXPECT_NEAR(j(1, 1), 2 * (3 - 2 * y * s) / (1 + y * y) - 1, 1e-14);
}

TEST(RateJacobian, MovesTiedSurfacesTogether) {
  InMode place(
      read_model_text("name = \"test\"\nequations = \"\"\"\nx' = y - sign(x) + sign(a*x)\ny' = 3*sign(a*x)\n\"\"\"\n"
                      "[parameters]\na = -2\n[initial]\nx = 0\ny = 0\n"));
  ASSERT_EQ(place.program.switches(), 2);
  place.series.tie({{1, {0, -1}}});
  place.series.set_mode({"00", ""});
  EXPECT_NEAR(place.jacobian({0, 0.4}, 0)(1, 1), -1.5, 1e-15);  // sigma of x is y/2, of a*x it is -y/2
}

TEST(RateJacobian, LeavesOutWhatHasNoFiniteSlope) {
  InMode place(read_model_text("name = \"test\"\nequations = \"x' = 1 - sqrt(x) - 3*x\"\n[initial]\nx = 0\n"));
  place.series.set_mode({"", ""});
  EXPECT_TRUE(std::isfinite(place.jacobian({0}, 0)(0, 0)));
  EXPECT_NEAR(place.jacobian({4}, 0)(0, 0), -3.25, 1e-15);
}

/// Modes seen at the first events of a run, each compared once: (all, sliding or closed).
std::pair<int, int> compare_along(const std::string& name) {
  InMode place(read_model(fmt::format("{}/models/{}/model.toml", SALTUS_SOURCE_DIR, name)));
  RunOptions options;
  options.parameters = place.parameters;
  options.initial = initial_values(place.program.model(), place.parameters);
  options.until = constant_value(place.program.model().run.until.value_or(Expr(10)), place.parameters);
  options.max_events = 60;
  options.tolerance = 1e-8;
  options.keep_transitions = true;
  const Trajectory run = simulate(place.program, options);
  std::set<std::string> seen;
  int sliding = 0;
  const auto compare = [&](const Transition& event) {
    const Mode& mode = event.after;
    const std::vector<double>& x = event.x_plus;
    const double t = event.t;
    if (seen.size() >= 12 || !seen.insert(mode.text()).second) return;
    place.counters = event.counters;
    place.series.set_mode(mode);
    if (place.series.evaluate(x, t, place.counters) != SeriesStatus::ok) return;
    if (!place.series.active().empty()) ++sliding;
    const Mat wanted = place.differences(x, t), found = place.jacobian(x, t);
    for (Index i = 0; i < wanted.rows(); ++i) {
      const double scale = 1 + wanted.row(i).max_abs() + std::abs(place.rates(x, t)[static_cast<size_t>(i)]);
      EXPECT_LT((found.row(i) - wanted.row(i)).max_abs(), 1e-7 * scale)
          << name << " in " << mode.text() << " at t = " << t << ", row " << i;
    }
  };
  for (const Transition& event : run.transitions) compare(event);
  return {static_cast<int>(seen.size()), sliding};
}

TEST(RateJacobian, AgreesWithDifferencesInTheGallery) {
  int modes = 0, sliding = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SALTUS_SOURCE_DIR "/models")) {
    if (!std::filesystem::exists(entry.path() / "model.toml")) continue;
    const auto [all, slid] = compare_along(entry.path().filename().string());
    modes += all;
    sliding += slid;
  }
  EXPECT_GT(modes, 80);
  EXPECT_GT(sliding, 20);
}

}  // namespace
}  // namespace saltus
