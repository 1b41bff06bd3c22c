// Where solutions branch, end or come to rest in unusual ways; and that no run depends on the one before it.
#include <random>

#include "physics.hpp"

namespace saltus::physics {
namespace {

TEST(SuperTwisting, ComesToRestInFiniteTimeWithItsOwnScaling) {
  // (x1, x2, t) -> (s^2 x1, s x2, s t) maps solutions to solutions: speeds at crossings and the times between them
  // shrink by one ratio.
  const System s = system("x1' = -2*sqrt(abs(x1))*sign(x1) + x2\nx2' = -3*sign(x1)", "x1 = 1\nx2 = 0");
  for (const double tolerance : {1e-6, 1e-9, 1e-12}) {
    const Trajectory run = s.run(8, tolerance);
    expect_end(run, {0, 0}, 0);
    const auto crosses = of_kind(run, EventKind::cross);
    ASSERT_GE(crosses.size(), 5u) << story(run);
    const double ratio = crosses[1].state[1] / crosses[0].state[1];
    EXPECT_NEAR(crosses[2].state[1] / crosses[1].state[1], ratio, 1e2 * tolerance);
    EXPECT_NEAR((crosses[3].t - crosses[2].t) / (crosses[2].t - crosses[1].t), -ratio, 1e2 * tolerance);
    const auto rest = of_kind(run, EventKind::chatter);
    ASSERT_EQ(rest.size(), 1u) << story(run);
    const double limit = crosses[1].t + (crosses[2].t - crosses[1].t) / (1 + ratio);
    EXPECT_NEAR(rest[0].t, limit, 1e2 * tolerance);
  }
}

TEST(TwoFold, EndsAsNotUnique) {
  const System s = system(
      "x' = y - 0.016*s + 0.232*sin(t)\n"
      "y' = -0.725*x - 0.172*y + 0.796*s + 0.179*cos(1.277*t)\n"
      "z' = s - 0.2*z\n"
      "s = sign(x^2 + 0.878*y^2 - 1.211 - 0.3*sin(t))",
      "x = -0.382\ny = -1.468\nz = 0");
  // There d(h')/dsigma vanishes. Whatever the steps were: by h'' alone, 1.006 above and 0.951 below, the run would
  // leave, but it may as well slide on. Place and time from h = 0, h' = 0 above and below, by mpmath.
  for (const double tolerance : {1e-4, 1e-6, 1e-8, 1e-9, 1e-10, 1e-12}) {
    const Trajectory run = s.run(8, tolerance);
    EXPECT_EQ(run.end.why, Why::nonunique) << story(run);
    EXPECT_NEAR(run.end.t, 2.586882892696906, 1e-6);
    EXPECT_NEAR(run.end.state[0], -1.169777454276746, 1e-6);
    EXPECT_NEAR(run.end.state[1], -0.02678031282326773, 1e-6);
    // Above, the field bends away from the surface: end state from there by SciPy's DOP853 at 1e-13.
    RunOptions above = s.options(8, tolerance);
    above.leave = {{s.program.model().form.switches[0].name, '+'}};
    const Trajectory left = s.run(above);
    EXPECT_EQ(left.end.why, Why::time) << story(left);
    EXPECT_NEAR(left.end.state[0], 1.97289024, 1e-6);
    EXPECT_NEAR(left.end.state[1], -1.48250818, 1e-6);
  }
}

TEST(CoupledSliding, EndsWhereItsDeterminantVanishes) {
  // d(h')/dsigma = [-z, 0.2; -0.2, -1]: its determinant is z + 0.04, and z = 1 - t.
  const System s = system("x' = -z*sign(x) + 0.2*sign(y)\ny' = -sign(y) - 0.2*sign(x)\nz' = -1", "x = 0\ny = 0\nz = 1");
  const Trajectory run = s.run(8);
  EXPECT_EQ(run.end.why, Why::nonunique) << story(run);
  EXPECT_NEAR(run.end.t, 1.04, 1e-9);
}

TEST(Painleve, SaysTheEquationThatHasNoSolution) {
  // A rod of half length 1 dragged over rough ground: g'' = -g + (1 + 3 cos^2 - 3 mu sin cos) N.
  const System s = system(
      "x' = u\ny' = w\nth' = om\nu' = F\nw' = -9.81 + N\nom' = 3*(-cos(th)*N + sin(th)*F)\n"
      "F = -3*N*sign(u + sin(th)*om)",
      "x = 0\ny = \"sin(1.0)\"\nth = 1\nu = -3\nw = 0\nom = 0",
      "[constraint.N]\ngap = \"y - sin(th)\"\nrestitution = 0");
  const Trajectory run = s.run(1);
  EXPECT_EQ(run.end.why, Why::nonunique) << story(run);
  const double b = 1 + 3 * std::cos(1.0) * std::cos(1.0) - 9 * std::sin(1.0) * std::cos(1.0);
  EXPECT_NE(run.end.message.find(fmt::format("-9.81 - {:.6g}*N", -b)), std::string::npos) << run.end.message;
}

TEST(ImpactOscillator, NoStartInTheBoxGetsStuckAtTheWall) {
  System s = gallery_system("impact_oscillator");
  s.set({{"w", 3}});
  std::mt19937 random(1);
  std::uniform_real_distribution<double> u(0, 5), v(-5, 5);
  Simulator simulator(s.program);
  for (int k = 0; k < 300; ++k) {
    s.start({{"u", u(random)}, {"v", v(random)}});
    RunOptions options = s.options(100, 1e-10);
    options.keep_events = false;
    const Trajectory run = simulator.run(options);
    ASSERT_EQ(run.end.why, Why::time) << story(run);
    EXPECT_GE(run.end.state[0] - std::sin(3 * 100), -1e-9);
  }
}

TEST(Simulator, GivesTheSameBitsWhateverRanBefore) {
  for (const char* name : {"dry_friction", "drill_string", "impact_oscillator", "buck", "three_blocks"}) {
    System s = gallery_system(name);
    const RunOptions options = s.options(20, 1e-9);
    const Trajectory alone = s.run(options);
    Simulator simulator(s.program);
    RunOptions other = options;
    other.until = 7;
    for (double& x : other.initial) x *= 1.01;
    simulator.run(other);
    const Trajectory after = simulator.run(options);
    EXPECT_EQ(after.end.state, alone.end.state) << name;
    EXPECT_EQ(after.cost.steps, alone.cost.steps) << name;
  }
}

TEST(ManyBlocks, MoveAsEachWouldAlone) {
  // Hundreds of modes, each met once: what is kept of them is thrown away now and then.
  const auto equations = [](int i) {
    return fmt::format("x{0}' = v{0}\nv{0}' = sin({1}*t) - x{0} - 0.6*sign(v{0})\n", i, 1 + 0.002 * i);
  };
  constexpr int blocks = 400;
  std::string all, initial;
  for (int i = 0; i < blocks; ++i) {
    all += equations(i);
    initial += fmt::format("x{0} = {1}\nv{0} = 1\n", i, 0.003 * i);
  }
  const Trajectory together = system(all, initial).run(8, 1e-10);
  ASSERT_EQ(together.end.why, Why::time) << together.end.message;
  EXPECT_GT(together.cost.events, 2 * blocks);
  for (const int i : {0, 7, 123, 399}) {
    const Trajectory alone = system(equations(i), fmt::format("x{0} = {1}\nv{0} = 1\n", i, 0.003 * i)).run(8, 1e-10);
    for (size_t k = 0; k < 2; ++k)
      EXPECT_NEAR(together.end.state[2 * static_cast<size_t>(i) + k], alone.end.state[k], 1e-8) << i;
  }
}

TEST(Attract, HoldsTheSurfaceWithoutProjection) {
  // Both sides push onto the unit circle, on which the state turns once in 2 pi: it slides from the time at which the
  // radius, r' = -2 r, has come from 2 to 1.
  const Model model = read_model_text(
      model_text("x' = y - 2*x*sign(x^2 + y^2 - 1)\ny' = -x - 2*y*sign(x^2 + y^2 - 1)", "x = 2\ny = 0"));
  for (const double attract : {0.0, 5.0}) {
    const Program program(model, attract);
    RunOptions options;
    options.initial = {2, 0};
    options.until = 50;
    const Trajectory run = simulate(program, options);
    ASSERT_EQ(run.events.size(), 1u);
    EXPECT_NEAR(run.events[0].t, std::log(2) / 2, 1e-10);
    EXPECT_NEAR(run.end.state[0], std::cos(50), 1e-8);
    EXPECT_NEAR(run.end.state[1], -std::sin(50), 1e-8);
  }
}

TEST(Start, FromASurfaceThatOneSideLeavesMayStay) {
  const auto branches = [](const std::string& rate, const std::string& other_modes) {
    const Trajectory run = system("x' = " + rate, "x = 0").run(1);
    EXPECT_NEAR(run.end.state[0], 1, 1e-12) << rate;
    const bool said = run.messages.size() == 1 && run.messages[0].find(other_modes) != std::string::npos;
    return other_modes.empty() ? run.messages.empty() : said;
  };
  EXPECT_TRUE(branches("step(x)", "modes +, 0 are"));
  EXPECT_TRUE(branches("if(x > 0, 1, 0)", "modes +, 0 are"));
  EXPECT_TRUE(branches("if(x > 0, 1, -t^3)", "modes +, 0, - are")) << "-t^4/4 is a solution too";
  EXPECT_TRUE(branches("if(x > 0, 1, t^3)", "")) << "nothing stays";
  RunOptions options = system("x' = step(x)", "x = 0").options(1, 1e-9);
  options.leave = {{"x", '0'}};
  EXPECT_EQ(system("x' = step(x)", "x = 0").run(options).end.state[0], 0);
}

TEST(Stability, IsSaidToLimitTheStepsOfAStiffSystemOnly) {
  const auto hint = [](const Trajectory& run) {
    return std::any_of(run.messages.begin(), run.messages.end(),
                       [](const std::string& m) { return m.find("`flow` stiff") != std::string::npos; });
  };
  EXPECT_TRUE(hint(system("x' = -1e5*(x - cos(t))", "x = 2").run(2, 1e-9)));
  EXPECT_FALSE(hint(gallery_system("pendulum").run(500, 1e-9)));
  EXPECT_FALSE(hint(gallery_system("lorenz").run(100, 1e-9)));
}

}  // namespace
}  // namespace saltus::physics
