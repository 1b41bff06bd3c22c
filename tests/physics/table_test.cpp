// Functions given by points: against quadrature of the formula as written, and closed forms.
#include <random>

#include "code/plain.hpp"
#include "expr/interpolant.hpp"
#include "physics.hpp"

namespace saltus::physics {
namespace {

using enum EventKind;

std::string points(const std::vector<double>& x, const std::vector<double>& y) {
  std::string out = "points = [";
  for (size_t i = 0; i < x.size(); ++i) out += fmt::format("[{}, {}], ", x[i], y[i]);
  return out + "]\n";
}

/// Gauss quadrature of a formula of time on intervals so short that breaks cost nothing visible.
double quadrature(const Expr& rate, double until, int intervals) {
  Plain f(rate);
  double sum = 0;
  for (int k = 0; k < intervals; ++k) {
    const double h = until / intervals, middle = (k + 0.5) * h;
    for (const double side : {-1.0, 1.0})
      sum += h / 2 * f({.parameters = {}, .states = {}, .t = middle + side * h / 2 / std::sqrt(3.0)});
  }
  return sum;
}

TEST(Table, OfAnythingIntegratesLikeItsFormula) {
  std::mt19937 random(3);
  const auto number = [&](double lo, double hi) { return std::uniform_real_distribution<double>(lo, hi)(random); };
  for (const std::string between : {"linear", "cubic", "step"}) {
    for (const std::string outside : {"hold", "repeat", "zero"}) {
      for (int k = 0; k < 3; ++k) {
        std::vector<double> x{number(-3, -1)}, y{number(-1, 1)};
        for (int i = 0; i < 6; ++i) {
          x.push_back(x.back() + number(0.1, 1));
          y.push_back(number(-1, 1));
        }
        const System s =
            system(fmt::format("z' = road({:.3f}*sin({:.3f}*t) + {:.3f}*t)*(1 + t/5)", number(1, 3), number(0.5, 2),
                               number(-0.5, 0.5)),
                   "z = 0",
                   "[table.road]\n" + points(x, y) + "between = \"" + between + "\"\noutside = \"" + outside + "\"\n");
        const Trajectory run = s.run(9);
        const bool jumps = s.program.model().tables[0].curve->jumps();
        expect_end(run, {quadrature(s.program.model().states[0].rate, 9, 400'000)}, jumps ? 1e-4 : 1e-8);
        RunOptions o = s.options(9);
        o.step = StepOptions{.dt = 0.01};
        EXPECT_NEAR(s.run(o).end.state[0], run.end.state[0], 1e-6) << between << " " << outside;
      }
    }
  }
}

TEST(Table, IsAChainOfKinksWithExactlyPiecewiseMotion) {  // a falling body on each piece: parabolas
  const System s = system("z' = v\nv' = a(t)", "z = 0\nv = 0",
                          "[table.a]\npoints = [[0, 0], [1, 2], [3, -2], [4, 0]]\noutside = \"zero\"\n");
  const Trajectory run = s.run(5);
  expect_end(run, {1.0 / 3 + (2 + 4 - 8.0 / 3) + (1 - 1 + 1.0 / 3), 0}, 1e-13);
  EXPECT_TRUE(run.events.empty()) << story(run);
}

const char* staircase =
    "[table.q]\npoints = [[-3, -2], [-1, -1], [0, 1], [1.5, 2], [4, 3]]\nbetween = \"step\"\n"
    "outside = \"hold\"\n";

TEST(Table, OfStepsIsSlidOn) {
  for (const bool step : {false, true}) {
    const System s = system("x' = 0.3 - q(x)", "x = 2", staircase);
    RunOptions o = s.options(5);
    if (step) o.step = StepOptions{.dt = 0.01};
    const Trajectory run = s.run(o);
    expect_end(run, {0}, 1e-12);
    ASSERT_EQ(run.events.size(), 1u) << story(run);
    EXPECT_EQ(run.events[0].kind, slide);
    EXPECT_EQ(run.events[0].on, std::vector<std::string>{"q(x)"});
    EXPECT_NEAR(run.events[0].t, 0.5 / 1.7 + 1.5 / 0.7, 1e-9);
  }
}

TEST(Table, OfStepsIsLeftWhenThePushIsStrongEnough) {  // on x = 0 it holds up to u = 1, on x = 1.5 up to u = 2
  const System s = system("x' = u - q(x)\nu' = 0.1", "x = 0.1\nu = 0", staircase);
  const Trajectory run = s.run(25);
  const auto found = changes(run);
  ASSERT_GE(found.size(), 4u) << story(run);
  EXPECT_EQ(found[0].kind, slide);
  EXPECT_NEAR(found[0].t, 10 - std::sqrt(98.0), 1e-12);  // x = 0.1 - t + t^2/20
  EXPECT_EQ(found[1].kind, leave);
  EXPECT_NEAR(found[1].t, 10, 1e-12);
  EXPECT_EQ(found[2].kind, slide);
  EXPECT_NEAR(found[2].t, 10 + std::sqrt(30.0), 1e-12);  // x = (t - 10)^2/20
  EXPECT_EQ(found[3].kind, leave);
  EXPECT_NEAR(found[3].t, 20, 1e-12);
}

TEST(Table, MayBeStartedOnABreak) {
  const System up = system("x' = 1\nz' = q(x)", "x = 0\nz = 0", staircase);
  expect_end(up.run(2), {2, 1.5 * 1 + 0.5 * 2}, 1e-13);
  const System down = system("x' = -1\nz' = q(x)", "x = 1.5\nz = 0", staircase);
  expect_end(down.run(2), {-0.5, 1.5 * 1 - 0.5}, 1e-13);
  const System still = system("x' = 0\nz' = q(x)", "x = 1.5\nz = 0", staircase);
  expect_end(still.run(2), {1.5, 4}, 1e-13);  // at a point its own value
}

TEST(Table, FollowsJumpsOverManyIntervals) {
  const System s = system("x' = 1\nz' = q(x)", "x = -2.5\nz = 0",
                          std::string(staircase) + "[jump.far]\non = \"x + 2\"\nset = { x = \"x + 7\" }\n");
  expect_end(s.run(1), {5.5, -2 * 0.5 + 3 * 0.5}, 1e-13);
}

TEST(Table, EndsTheRunWhereItEnds) {
  const char* table = "[table.q]\npoints = [[0, 1], [2, 1]]\n";
  const System s = system("z' = q(t)", "z = 0", table);
  expect_end(s.run(2), {2}, 1e-13);
  for (const bool step : {false, true}) {
    RunOptions o = s.options(3);
    if (step) o.step = StepOptions{.dt = 0.01};
    const Trajectory run = s.run(o);
    EXPECT_EQ(run.end.why, Why::undefined) << story(run);
    EXPECT_EQ(run.end.message, "'q(t)' has left its table, which ends at 2");
    EXPECT_NEAR(run.end.t, 2, 1e-9);
    EXPECT_NEAR(run.end.state[0], 2, 1e-9);
  }
  EXPECT_EQ(system("x' = q(x - 5)", "x = 1", table).run(1).end.why, Why::undefined);
}

TEST(Table, OfAMillionPointsCostsWhatOneOfTenDoes) {
  std::vector<double> x, y;
  for (int i = 0; i < 1'000'000; ++i) {
    x.push_back(i * 1e-3);
    y.push_back(i % 3 - 1.0);
  }
  const auto with = [&](size_t count) {
    const std::vector<double> few(x.begin(), x.begin() + static_cast<long>(count)),
        values(y.begin(), y.begin() + static_cast<long>(count));
    return system("z' = q(t)", "z = 0", "[table.q]\n" + points(few, values) + "outside = \"hold\"\n").run(5.5e-3);
  };
  const Trajectory many = with(1'000'000), ten = with(10);
  EXPECT_EQ(many.end.state, ten.end.state);
  EXPECT_EQ(many.cost.steps, ten.cost.steps);
  EXPECT_NEAR(ten.end.state[0], 0.25e-3, 1e-15);  // five whole pieces cancel, half of the sixth is left
}

TEST(Table, IsARoadForAContact) {  // without rebound a body follows the road until it falls away
  const System s = system("x' = 1\ny' = v\nv' = -10 + N", "x = 0\ny = 0\nv = 0",
                          "[constraint.N]\ngap = \"y - road(x)\"\nrestitution = 0\n[table.road]\n"
                          "points = [[0, 0], [1, 0], [2, 1], [3, 1]]\noutside = \"hold\"\n");
  const Trajectory run = s.run(4);
  const auto found = changes(run);
  // up the ramp with v = 1, off its top, a parabola of 0.2, then the plain
  ASSERT_EQ(found.size(), 3u) << story(run);
  EXPECT_NEAR(found[0].t, 1, 1e-12);
  EXPECT_EQ(found[1].kind, EventKind::open);
  EXPECT_NEAR(found[1].t, 2, 1e-12);
  EXPECT_EQ(found[2].kind, EventKind::close);
  EXPECT_NEAR(found[2].t, 2.2, 1e-12);
  expect_end(run, {4, 1, 0}, 1e-12);
}

TEST(QuarterCar, FollowsTheRoadWhereItIsFlat) {
  const Trajectory run = gallery_system("quarter_car").run(12);
  EXPECT_EQ(run.end.why, Why::time);
  EXPECT_NEAR(run.end.state[1], 0.12, 1e-6);
  EXPECT_NEAR(run.end.state[3], 0.12, 1e-6);
}

}  // namespace
}  // namespace saltus::physics
