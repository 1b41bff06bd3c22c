// Runs by clusters against runs of the whole: chains, lattices and networks whose parts come together and fall apart.
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "draw.hpp"
#include "flow/simulate.hpp"
#include "model/read.hpp"

namespace saltus {
namespace {

std::string model_of(const std::string& equations, const std::string& rest, const std::string& initial) {
  return "equations = \"\"\"\n" + equations + "\"\"\"\n" + rest + "[initial]\n" + initial;
}

/// Blocks between springs of random stiffness on a rough floor, dragged by a plate.
std::string chain(Draw& draw, int n, double hold) {
  std::string equations, initial;
  std::vector<std::string> spring;
  for (int i = 0; i <= n; ++i) spring.push_back(draw.number(0.6, 1.6, 6));
  for (int i = 0; i < n; ++i) {
    equations += fmt::format("  x{0}' = v{0}\n  v{0}' = 0.1*t - x{0}", i);
    if (i > 0) equations += fmt::format(" - {}*(x{} - x{})", spring[static_cast<size_t>(i)], i, i - 1);
    if (i + 1 < n) equations += fmt::format(" - {}*(x{} - x{})", spring[static_cast<size_t>(i) + 1], i, i + 1);
    equations += fmt::format(" - {}*sign(v{}, {})\n", draw.number(0.5, 0.9, 6), i, hold);
    initial += fmt::format("x{0} = {1}\nv{0} = 0\n", i, draw.number(-0.15, 0.15, 6));
  }
  return model_of(equations, "", initial);
}

/// Equal blocks and springs, some of them stiff, on a plate that moves evenly or shakes: all parts of one length are
/// alike.
std::string equal_chain(Draw& draw, int n, const std::string& spring, const std::string& force) {
  std::string equations, initial;
  for (int i = 0; i < n; ++i) {
    equations += fmt::format("  x{0}' = v{0}\n  v{0}' = {1} - x{0}", i, force);
    if (i > 0) equations += fmt::format(" - {}*(x{} - x{})", spring, i, i - 1);
    if (i + 1 < n) equations += fmt::format(" - {}*(x{} - x{})", spring, i, i + 1);
    equations += fmt::format(" - 0.8*sign(v{}, 1.25)\n", i);
    initial += fmt::format("x{0} = {1}\nv{0} = 0\n", i, draw.number(-0.15, 0.15, 6));
  }
  return model_of(equations, "", initial);
}

/// Blocks whose friction is a function of v, with {0} for the number of the block; they are dragged, or lie on a belt.
std::string bent_chain(Draw& draw, int n, const std::string& friction, const std::string& force) {
  std::string equations, initial;
  for (int i = 0; i < n; ++i) {
    equations +=
        fmt::format("  x{0}' = v{0}\n  v{0}' = {1} - x{0} - ", i, force) + fmt::format(fmt::runtime(friction), i);
    if (i > 0) equations += fmt::format(" - 1.2*(x{} - x{})", i, i - 1);
    if (i + 1 < n) equations += fmt::format(" - 1.2*(x{} - x{})", i, i + 1);
    equations += "\n";
    initial += fmt::format("x{0} = {1}\nv{0} = 0\n", i, draw.number(-0.15, 0.15, 6));
  }
  return model_of(equations, "", initial);
}

const std::string weakening = "0.8*sign(v{0}, 1.1)/(1 + 1.5*abs(v{0}))",
                  stribeck = "(0.8 + 0.3*exp(-abs(v{0})/0.2))*sign(v{0})",
                  on_a_belt = "0.8*sign(v{0} - 0.3, 1.25)/(1 + 1.5*abs(v{0} - 0.3)) - 0.1*v{0}";

/// Equal blocks joined by springs at random, each with two or three others.
std::string network(Draw& draw, int n) {
  std::vector<std::vector<int>> joined(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) {
    const int j = draw.whole(0, n - 1);
    if (j == i) continue;
    joined[static_cast<size_t>(i)].push_back(j);
    joined[static_cast<size_t>(j)].push_back(i);
  }
  std::string equations, initial;
  for (int i = 0; i < n; ++i) {
    equations += fmt::format("  x{0}' = v{0}\n  v{0}' = 0.08*t - x{0} - 0.1*v{0} - 0.7*sign(v{0}, 1.3)", i);
    for (const int j : joined[static_cast<size_t>(i)]) equations += fmt::format(" - 0.4*(x{} - x{})", i, j);
    equations += "\n";
    initial += fmt::format("x{0} = {1}\nv{0} = 0\n", i, draw.number(-0.4, 0.4, 6));
  }
  return model_of(equations, "", initial);
}

/// The same in two dimensions.
std::string lattice(Draw& draw, int side) {
  std::string equations, initial;
  const auto name = [&](int i, int j) { return i * side + j; };
  for (int i = 0; i < side; ++i) {
    for (int j = 0; j < side; ++j) {
      const int k = name(i, j);
      equations += fmt::format("  x{0}' = v{0}\n  v{0}' = 0.05*t - x{0}", k);
      if (i > 0) equations += fmt::format(" - 0.3*(x{} - x{})", k, name(i - 1, j));
      if (i + 1 < side) equations += fmt::format(" - 0.3*(x{} - x{})", k, name(i + 1, j));
      if (j > 0) equations += fmt::format(" - 0.2*(x{} - x{})", k, name(i, j - 1));
      if (j + 1 < side) equations += fmt::format(" - 0.2*(x{} - x{})", k, name(i, j + 1));
      equations += fmt::format(" - {}*sign(v{}, 1.3) - 0.2*v{}\n", draw.number(0.6, 0.9, 6), k, k);
      initial += fmt::format("x{0} = {1}\nv{0} = 0\n", k, draw.number(-0.3, 0.3, 6));
    }
  }
  return model_of(equations, "", initial);
}

/// Units that decay and are switched by a few others; some slide where they inhibit themselves.
std::string relays(Draw& draw, int n) {
  std::string equations, initial;
  for (int i = 0; i < n; ++i) {
    equations += fmt::format("  x{0}' = -{1}*x{0}", i, draw.number(0.5, 1.5, 6));
    for (int k = 0; k < 3; ++k)
      equations += fmt::format(" + {}*sign(x{} - {})", draw.number(-0.8, 0.8, 6), draw.whole(0, n - 1),
                               draw.number(-0.2, 0.2, 6));
    if (i % 5 == 0) equations += fmt::format(" - {}*sign(x{})", draw.number(0.2, 0.8, 6), i);
    if (i % 7 == 0) equations += fmt::format(" + {}*sin({}*t)", draw.number(0.2, 0.8, 6), draw.number(0.5, 2, 6));
    equations += "\n";
    initial += fmt::format("x{} = {}\n", i, draw.number(-1, 1, 6));
  }
  return model_of(equations, "", initial);
}

/// Balls over tables of their own.
std::string balls(Draw& draw, int n) {
  std::string equations, rest, initial;
  for (int i = 0; i < n; ++i) {
    equations += fmt::format("  x{0}' = v{0}\n  v{0}' = -1 + N{0}\n", i);
    rest += fmt::format("[constraint.N{0}]\ngap = \"x{0} - {1}*sin({2}*t)\"\nrestitution = {3}\n", i,
                        draw.number(0.01, 0.1, 6), draw.number(2, 5, 6), draw.number(0.7, 0.95, 6));
    initial += fmt::format("x{0} = {1}\nv{0} = {2}\n", i, draw.number(0.5, 2, 6), draw.number(-0.5, 0.5, 6));
  }
  return model_of(equations, rest, initial);
}

/// Beads on a line that fly freely and hit their neighbours.
std::string beads(Draw& draw, int n) {
  std::string equations, rest, initial;
  for (int i = 0; i < n; ++i) {
    equations += fmt::format("  x{0}' = v{0}\n  v{0}' = (N{0} - N{1})/{2}\n", i, i + 1, draw.number(0.5, 2, 6));
    initial += fmt::format("x{0} = {1}\nv{0} = {2}\n", i, fmt::format("{:.6f}", i + draw.between(0.1, 0.9)),
                           draw.number(-1, 1, 6));
  }
  for (int i = 0; i <= n; ++i) {
    const std::string gap = i == 0   ? "x0"
                            : i == n ? fmt::format("{} - x{}", n, n - 1)
                                     : fmt::format("x{} - x{}", i, i - 1);
    rest += fmt::format("[constraint.N{}]\ngap = \"{}\"\nrestitution = 0.95\n", i, gap);
  }
  return model_of(equations, rest, initial);
}

/// Rooms with heaters that jumps switch, each alone or with heat that goes from one to the next.
std::string thermostats(Draw& draw, int n, const std::string& flow, double conducts) {
  std::string equations, rest, initial;
  for (int i = 0; i < n; ++i) {
    equations += fmt::format("  T{0}' = ", i) + fmt::format(fmt::runtime(flow), i, draw.number(0.7, 1.3, 6));
    if (conducts > 0 && i > 0) equations += fmt::format(" + {}*(T{} - T{})", conducts, i - 1, i);
    if (conducts > 0 && i + 1 < n) equations += fmt::format(" + {}*(T{} - T{})", conducts, i + 1, i);
    equations += fmt::format("\n  q{0}' = 0\n", i);
    rest += fmt::format("[jump.off{0}]\non = \"T{0} - {1}\"\ndirection = \"rising\"\nset = {{ q{0} = 0 }}\n", i,
                        draw.number(0.6, 0.7, 6));
    rest += fmt::format("[jump.on{0}]\non = \"T{0} - {1}\"\ndirection = \"falling\"\nset = {{ q{0} = 1 }}\n", i,
                        draw.number(0.4, 0.5, 6));
    initial += fmt::format("T{0} = {1}\nq{0} = {2}\n", i, draw.number(0.5, 0.6, 6), draw.whole(0, 1));
  }
  return model_of(equations, rest, initial);
}

/// Neurons that fire and push a few others: some of these fire at once.
std::string neurons(Draw& draw, int n, double push, const std::string& flow, const std::string& condition) {
  std::string equations, rest, initial;
  for (int i = 0; i < n; ++i) {
    equations += fmt::format("  u{0}' = ", i) + fmt::format(fmt::runtime(flow), i, draw.number(1.1, 1.4, 6)) + "\n";
    std::string set = fmt::format("u{} = 0", i);
    std::vector<int> pushed{i};
    for (int k = 0; k < 3; ++k) {
      const int j = draw.whole(0, n - 1);
      if (std::find(pushed.begin(), pushed.end(), j) != pushed.end()) continue;
      pushed.push_back(j);
      set += fmt::format(", u{0} = \"u{0} + {1}\"", j, draw.number(0.2 * push, push, 6));
    }
    rest += fmt::format("[jump.fire{0}]\non = \"u{0} - 1\"\ndirection = \"rising\"\n{1}set = {{ {2} }}\n", i,
                        fmt::format(fmt::runtime(condition), i), set);
    initial += fmt::format("u{0} = {1}\n", i, draw.number(0, 0.99, 6));
  }
  return model_of(equations, rest, initial);
}

/// Blocks on a rough floor, between springs, that are kicked where they pass a mark; some marks are those of two.
std::string kicked_blocks(Draw& draw, int n) {
  std::string equations, rest, initial;
  for (int i = 0; i < n; ++i) {
    equations += fmt::format("  x{0}' = v{0}\n  v{0}' = 0.1*t - x{0} - 0.8*sign(v{0}, 1.25)", i);
    if (i > 0 && i % 4 != 0) equations += fmt::format(" - 1.2*(x{} - x{})", i, i - 1);
    if (i + 1 < n && (i + 1) % 4 != 0) equations += fmt::format(" - 1.2*(x{} - x{})", i, i + 1);
    equations += "\n";
    const std::string kick = draw.number(-0.4, 0.6, 6);
    rest += fmt::format("[jump.kick{0}]\non = \"x{0} - {1}\"\nset = {{ v{0} = \"v{0} + {2}\" }}\n", i,
                        draw.number(0.1, 0.6, 6), kick);
    if (i % 3 == 1)
      rest += fmt::format("[jump.meet{0}]\non = \"x{0} - x{1} - 0.1\"\nset = {{ v{0} = \"v{1}\", v{1} = \"v{0}\" }}\n",
                          i, i - 1);
    if (i % 3 == 2) rest += fmt::format("[jump.stop{0}]\non = \"x{0} - {1}\"\nset = {{ v{0} = 0 }}\n", i, 0.7);
    initial += fmt::format("x{0} = {1}\nv{0} = {2}\n", i, draw.number(-0.15, 0.15, 6), draw.number(-0.5, 0.5, 6));
  }
  return model_of(equations, rest, initial);
}

/// Balls over tables that are hit from below now and then, and by the clock.
std::string kicked_balls(Draw& draw, int n) {
  std::string equations, rest, initial;
  for (int i = 0; i < n; ++i) {
    equations += fmt::format("  x{0}' = v{0}\n  v{0}' = -1 + N{0}\n  n{0}' = 0\n", i);
    rest += fmt::format("[constraint.N{0}]\ngap = \"x{0}\"\nrestitution = {1}\n", i, draw.number(0.7, 0.95, 6));
    rest += fmt::format("[jump.count{0}]\non = \"v{0}\"\ndirection = \"rising\"\nset = {{ n{0} = \"n{0} + 1\" }}\n", i);
    rest += fmt::format("[jump.throw{0}]\non = \"n{0} - 2.5\"\nset = {{ n{0} = 0, v{0} = \"v{0} + 0.3\" }}\n", i);
    initial += fmt::format("x{0} = {1}\nv{0} = {2}\nn{0} = 0\n", i, draw.number(0.5, 2, 6), draw.number(-0.5, 0.5, 6));
  }
  rest += "[jump.all]\nevery = 0.7\nset = { v0 = \"v0 + 0.1\", v1 = \"v1 - 0.1\", n2 = 1 }\n";
  return model_of(equations, rest, initial);
}

Trajectory run(const Program& program, double until, bool clusters, double tolerance = 1e-12) {
  RunOptions options;
  options.parameters = parameter_values(program.model());
  options.initial = initial_values(program.model(), options.parameters);
  options.until = until;
  options.tolerance = tolerance;
  options.clusters = clusters;
  return simulate(program, options);
}

/// `grown`: how much rounding may have grown in these systems by then.
void expect_same(const std::string& text, double until, double grown, double tolerance = 1e-12) {
  const Program program(read_model_text(text, "random"));
  const Trajectory parts = run(program, until, true, tolerance), whole = run(program, until, false, tolerance);
  EXPECT_EQ(parts.end.why, whole.end.why) << parts.end.message;
  EXPECT_EQ(parts.end.mode, whole.end.mode);
  EXPECT_EQ(parts.cost.events, whole.cost.events);
  ASSERT_EQ(parts.events.size(), whole.events.size());
  const auto near = [&](const std::vector<double>& a, const std::vector<double>& b) {
    double worst = 0;
    for (size_t i = 0; i < a.size(); ++i)
      worst = std::max(worst, std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i])));
    return worst;
  };
  for (size_t k = 0; k < whole.events.size(); ++k) {
    const Event &a = parts.events[k], &b = whole.events[k];
    ASSERT_EQ(a.kind, b.kind) << k;
    ASSERT_EQ(a.on, b.on) << k;
    ASSERT_EQ(a.before, b.before) << k;
    ASSERT_EQ(a.after, b.after) << k;
    ASSERT_EQ(a.jumped.has_value(), b.jumped.has_value()) << k;
    ASSERT_NEAR(a.t, b.t, grown * until) << k;
    ASSERT_LE(near(a.state, b.state), grown) << k;
    if (a.jumped) {
      ASSERT_LE(near(*a.jumped, *b.jumped), grown) << k;
    }
  }
  EXPECT_LE(near(parts.end.state, whole.end.state), grown);
  for (size_t i = 0; i < whole.sliding.size(); ++i)
    EXPECT_NEAR(parts.sliding[i].time, whole.sliding[i].time, 1e-9 * until);
}

TEST(Clusters, OfChainsOfBlocks) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    Draw draw(seed);
    expect_same(chain(draw, 40, seed % 2 ? 1.25 : 1.1), 12, 1e-13);
  }
}

TEST(Clusters, OfEqualBlocks) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    Draw draw(seed);
    expect_same(equal_chain(draw, 60, "1.2", "0.1*t"), 20, 1e-12);
    expect_same(equal_chain(draw, 40, "60", "0.1*t"), 12, 1e-11);
    expect_same(equal_chain(draw, 40, "0.4", "0.05*t + 0.9*sin(0.7*t)"), 12, 1e-12);
  }
}

// Long steps of clusters leave out no more than rounding.
TEST(Clusters, OfEqualBlocksAtAnOrdinaryTolerance) {
  Draw draw(7);
  expect_same(equal_chain(draw, 100, "1.2", "0.1*t"), 40, 1e-12, 1e-9);
}

// Friction that depends on abs(v) inside a quotient or a function.
TEST(Clusters, OfBlocksWithWeakeningFriction) {
  for (unsigned seed = 1; seed <= 2; ++seed) {
    Draw draw(seed);
    expect_same(bent_chain(draw, 40, weakening, "0.1*t"), 20, 1e-11, 1e-13);
    expect_same(bent_chain(draw, 40, stribeck, "0.1*t"), 20, 1e-11, 1e-13);
    expect_same(bent_chain(draw, 40, on_a_belt, "0"), 20, 1e-11, 1e-13);
    expect_same(bent_chain(draw, 12, weakening, "0.05*t + 0.4*sin(0.7*t)"), 20, 1e-11, 1e-13);
  }
}

// What sticks to a belt moves evenly, and cuts the chain as what rests does.
TEST(Clusters, OfBlocksOnABelt) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    Draw draw(seed);
    expect_same(bent_chain(draw, 40, "0.8*sign(v{0} - 0.3, 1.25)", "0"), 20, 1e-11, 1e-13);
    expect_same(bent_chain(draw, 40, "0.8*sign(v{0} - 0.3)", "0.1*t"), 20, 1e-11, 1e-13);
    expect_same(bent_chain(draw, 40, on_a_belt, "0.2*sin(0.3*t)"), 20, 1e-11, 1e-13);
  }
}

// Eight blocks, alone and beside others: as solve_ivp of SciPy (DOP853, tolerances 2e-14, events and modes by hand) has
// them at t = 16.
TEST(Clusters, OfBlocksWithWeakeningFrictionAreWhereAnotherProgramHasThem) {
  const auto blocks = [](const std::string& friction, int others) {
    std::string equations, initial;
    for (int i = 0; i < 8 + others; ++i) {
      equations += fmt::format("  x{0}' = v{0}\n  v{0}' = 0.1*t - x{0} - ", i) + fmt::format(fmt::runtime(friction), i);
      if (i > 0 && i != 8) equations += fmt::format(" - 1.2*(x{} - x{})", i, i - 1);
      if (i != 7 && i + 1 < 8 + others) equations += fmt::format(" - 1.2*(x{} - x{})", i, i + 1);
      equations += "\n";
      initial += fmt::format("x{0} = {1}\nv{0} = 0\n", i, 0.02 * ((5 * i) % 8) - 0.07 + 0.001 * i);
    }
    return model_of(equations, "", initial);
  };
  const auto expect = [&](const std::string& friction, const std::vector<double>& x, const std::vector<double>& v) {
    for (const int others : {0, 12}) {
      const Program program(read_model_text(blocks(friction, others), "blocks"));
      const Trajectory trajectory = run(program, 16, true, 1e-13);
      ASSERT_EQ(trajectory.end.why, Why::time) << trajectory.end.message;
      for (size_t i = 0; i < 8; ++i) {
        EXPECT_NEAR(trajectory.end.state[2 * i], x[i], 1e-10) << i << " of " << 8 + others;
        EXPECT_NEAR(trajectory.end.state[2 * i + 1], v[i], 1e-10) << i << " of " << 8 + others;
      }
    }
  };
  expect(weakening,
         {1.115064794960, 1.012709103335, 1.013249025751, 1.210748350668, 1.141425282315, 0.931003646609,
          0.903461129301, 0.891218394830},
         {0, 0.213184798266, 0.199971266716, 0, 0, 0.008854307011, 0, 0});
  expect(stribeck,
         {0.613408780121, 0.802129840492, 0.761060262121, 0.961799223568, 1.023112122489, 0.853345313238,
          0.782897098169, 0.823333613874},
         {0.242669638362, 0, 0.001416884228, 0.166133379447, 0, 0, 0, 0});
}

TEST(Clusters, OfRandomNetworks) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    Draw draw(seed);
    expect_same(network(draw, 60), 25, 1e-12);
  }
}

TEST(Clusters, OfLatticesOfBlocks) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    Draw draw(seed);
    expect_same(lattice(draw, 6), 25, 1e-13);
  }
}

TEST(Clusters, OfRelays) {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    Draw draw(seed);
    expect_same(relays(draw, 40), 5, 1e-13);
  }
}

TEST(Clusters, OfBallsOverTables) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    Draw draw(seed);
    expect_same(balls(draw, 15), 4, 1e-13);
  }
}

TEST(Clusters, OfBeadsOnALine) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    Draw draw(seed);
    expect_same(beads(draw, 16), 3, 1e-12);
  }
}

// A jump concerns what it reads and sets, and what feels that.
TEST(Clusters, OfThermostats) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    Draw draw(seed);
    expect_same(thermostats(draw, 30, "{1}*(q{0} - T{0})", 0), 6, 1e-12);
    expect_same(thermostats(draw, 30, "{1}*(q{0} - T{0})", 0.2), 6, 1e-12);
    expect_same(thermostats(draw, 30, "{1}*(q{0} - sin(T{0}))", 0), 6, 1e-12);
    expect_same(thermostats(draw, 30, "{1}*(q{0} - sin(T{0}))", 0.1), 6, 1e-12);
  }
}

TEST(Clusters, OfNeuronsThatPushEachOther) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    Draw draw(seed);
    expect_same(neurons(draw, 40, 0.05, "{1} - u{0}", ""), 3, 1e-11);
    expect_same(neurons(draw, 60, 0.3, "{1} - u{0}", ""), 3, 1e-11);
    expect_same(neurons(draw, 40, 0.2, "{1} - u{0}^2 + 0.1*sin(t)", ""), 3, 1e-11);
    expect_same(neurons(draw, 40, 0.2, "{1} - u{0}", "when = \"u{0} < 1.2\"\n"), 3, 1e-11);
  }
}

TEST(Clusters, OfBlocksThatAreKicked) {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    Draw draw(seed);
    expect_same(kicked_blocks(draw, 24), 15, 1e-11);
  }
}

TEST(Clusters, OfBallsThatAreKickedAndCounted) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    Draw draw(seed);
    expect_same(kicked_balls(draw, 15), 4, 1e-12);
  }
}

// How many impacts are told before a chatter is free; where it ends is not.
TEST(Clusters, OfBallsThatComeToRest) {
  Draw draw(3);
  const Program program(read_model_text(balls(draw, 30), "balls"));
  const Trajectory parts = run(program, 12, true), whole = run(program, 12, false);
  const auto chatters = [](const Trajectory& t) {
    std::vector<std::pair<std::string, double>> out;
    for (const Event& e : t.events) {
      if (e.kind == EventKind::chatter) out.emplace_back(e.on[0], e.t);
    }
    return out;
  };
  const auto a = chatters(parts), b = chatters(whole);
  ASSERT_EQ(a.size(), b.size());
  ASSERT_GE(a.size(), 1u);
  for (size_t k = 0; k < a.size(); ++k) {
    EXPECT_EQ(a[k].first, b[k].first);
    EXPECT_NEAR(a[k].second, b[k].second, 1e-11);
  }
  EXPECT_EQ(parts.end.mode, whole.end.mode);
  for (size_t i = 0; i < whole.end.state.size(); ++i) EXPECT_NEAR(parts.end.state[i], whole.end.state[i], 1e-10);
}

// Pieces of the whole are put together from those of the clusters.
TEST(Clusters, GiveTheStateAtAnyTime) {
  Draw draw(5);
  const Program program(read_model_text(chain(draw, 110, 1.25), "chain"));
  RunOptions options;
  options.initial = initial_values(program.model(), {});
  options.until = 12;
  options.tolerance = 1e-12;
  options.keep_pieces = options.keep_transitions = true;
  const Trajectory parts = simulate(program, options);
  options.clusters = false;
  const Trajectory whole = simulate(program, options);
  ASSERT_EQ(parts.transitions.size(), whole.transitions.size());
  for (size_t k = 0; k < whole.transitions.size(); ++k) {
    const Transition &a = parts.transitions[k], &b = whole.transitions[k];
    EXPECT_EQ(a.guards, b.guards);
    EXPECT_EQ(a.before, b.before);
    EXPECT_EQ(a.after, b.after);
    for (size_t i = 0; i < b.x_minus.size(); ++i) {
      ASSERT_NEAR(a.x_minus[i], b.x_minus[i], 1e-12);
      ASSERT_NEAR(a.x_plus[i], b.x_plus[i], 1e-12);
    }
  }
  for (int k = 0; k <= 400; ++k) {
    const std::vector<double> a = parts(0.03 * k), b = whole(0.03 * k);
    for (size_t i = 0; i < b.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-12) << k;
  }
}

// Blocks that are all alike slip at once: everything happens to the whole.
TEST(Clusters, ThatDoTheSameAtTheSameTime) {
  std::string equations, initial;
  for (int i = 0; i < 20; ++i) {
    equations += fmt::format("  x{0}' = v{0}\n  v{0}' = 0.1*t - x{0} - 0.8*sign(v{0}, 1.25)\n", i);
    initial += fmt::format("x{0} = 0\nv{0} = 0\n", i);
  }
  expect_same(model_of(equations, "", initial), 30, 1e-13);
}

// Three chains that are alike: whatever happens to one of them happens to all at once, and is one event.
TEST(Clusters, OfChainsThatAreAlike) {
  for (const std::string hold : {"", ", 1.25"}) {
    Draw draw(11);
    constexpr int n = 15;
    std::string equations, initial;
    std::vector<std::string> offset;
    for (int i = 0; i < n; ++i) offset.push_back(draw.number(-0.15, 0.15, 6));
    for (int k = 0; k < 3 * n; ++k) {
      equations += fmt::format("  x{0}' = v{0}\n  v{0}' = 0.1*t - x{0} - 0.1*v{0} - 0.8*sign(v{0}{1})", k, hold);
      if (k % n > 0) equations += fmt::format(" - 1.2*(x{} - x{})", k, k - 1);
      if (k % n < n - 1) equations += fmt::format(" - 1.2*(x{} - x{})", k, k + 1);
      equations += "\n";
      initial += fmt::format("x{0} = {1}\nv{0} = 0\n", k, offset[static_cast<size_t>(k % n)]);
    }
    const std::string text = model_of(equations, "", initial);
    expect_same(text, 20, 1e-12);
    const Trajectory parts = run(Program(read_model_text(text, "chains")), 20, true);
    size_t together = 0;
    for (const Event& e : parts.events) together += e.on.size() == 3;
    EXPECT_GT(together, 10u);
    EXPECT_EQ(together, parts.events.size());
  }
}

// Let go along their surface, without a jump of their rate; shaken, so that they turn back at once, too.
TEST(Clusters, OfBlocksWithoutStaticFriction) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    Draw draw(seed);
    expect_same(bent_chain(draw, 40, "0.6*sign(v{0}) - 0.1*v{0}", "0.1*t"), 20, 1e-11);
    expect_same(bent_chain(draw, 30, "0.3*sign(v{0})", "0.9*sin(0.7*t)"), 12, 1e-11);
    expect_same(bent_chain(draw, 30, "0.3*sign(v{0}, 1.2)", "0.05*t + 0.9*sin(0.7*t)"), 12, 1e-11);
  }
}

// What follows a block, a path and a dial here, rests with it; the springs read both.
TEST(Clusters, OfBlocksWithThreeStates) {
  for (unsigned seed = 1; seed <= 2; ++seed) {
    Draw draw(seed);
    constexpr int n = 30;
    std::string equations, initial;
    for (int i = 0; i < n; ++i) {
      equations += fmt::format("  x{0}' = v{0}\n  y{0}' = -0.5*v{0}\n  v{0}' = 0.1*t - 0.4*x{0} + y{0}", i);
      if (i > 0) equations += fmt::format(" - 1.2*(x{} + 2*y{})", i, i - 1);
      if (i + 1 < n) equations += fmt::format(" - 0.9*(x{} - x{})", i, i + 1);
      equations += fmt::format(" - {}*sign(v{}, 1.3)\n", draw.number(0.5, 0.9, 6), i);
      initial +=
          fmt::format("x{0} = {1}\ny{0} = {2}\nv{0} = 0\n", i, draw.number(-0.1, 0.1, 6), draw.number(0, 0.1, 6));
    }
    expect_same(model_of(equations, "", initial), 12, 1e-12);
  }
}

// Events that nobody listens to are the same events.
TEST(Clusters, DoTheSameWhetherSomebodyListensOrNot) {
  Draw draw(3);
  const Program program(read_model_text(equal_chain(draw, 60, "1.2", "0.1*t"), "chain"));
  RunOptions options;
  options.parameters = parameter_values(program.model());
  options.initial = initial_values(program.model(), options.parameters);
  options.until = 20;
  const Trajectory told = simulate(program, options);
  options.keep_events = false;
  const Trajectory counted = simulate(program, options);
  EXPECT_GT(told.events.size(), 150u);
  EXPECT_EQ(counted.events.size(), 0u);
  EXPECT_EQ(told.cost.events, counted.cost.events);
  EXPECT_EQ(told.end.state, counted.end.state);
  EXPECT_EQ(told.end.mode, counted.end.mode);
}

// A run that is stopped on its way ends with the state of that time.
TEST(Clusters, OfBlocksThatAreInterrupted) {
  Draw draw(5);
  const Program program(read_model_text(equal_chain(draw, 60, "1.2", "0.1*t"), "chain"));
  RunOptions options;
  options.parameters = parameter_values(program.model());
  options.initial = initial_values(program.model(), options.parameters);
  options.until = 40;
  options.tolerance = 1e-12;
  options.max_steps = 500;
  const Trajectory spent = simulate(program, options);
  EXPECT_EQ(spent.end.why, Why::stalled);
  EXPECT_EQ(spent.end.message, "500 steps were not enough");
  options.max_steps = RunOptions{}.max_steps;
  options.progress = [](double t) { return t < 15; };
  const Trajectory cancelled = simulate(program, options);
  EXPECT_EQ(cancelled.end.why, Why::cancelled);
  EXPECT_GE(cancelled.end.t, 15);
  options.progress = {};
  for (const Trajectory* part : {&spent, &cancelled}) {
    ASSERT_GT(part->end.t, 5);
    ASSERT_LT(part->end.t, 40);
    const Trajectory whole = run(program, part->end.t, false);
    for (size_t i = 0; i < whole.end.state.size(); ++i) EXPECT_NEAR(part->end.state[i], whole.end.state[i], 1e-11) << i;
  }
}

// Each block alone is the friction oscillator with a closed form: it sticks until 0.1 t = D s, then swings about D with
// the frequency one until its velocity is zero again.
TEST(Clusters, OfSingleBlocksReleaseAndStopInClosedForm) {
  std::string equations, initial;
  for (int i = 0; i < 30; ++i) {
    equations += fmt::format("  x{0}' = v{0}\n  v{0}' = f*t - x{0} - {1}*sign(v{0}, 1.5)\n", i, 0.5 + 0.01 * i);
    initial += fmt::format("x{0} = 0\nv{0} = 0\n", i);
  }
  const Program program(read_model_text(model_of(equations, "[parameters]\nf = 0.1\n", initial), "blocks"));
  const Trajectory trajectory = run(program, 20, true);
  ASSERT_GE(trajectory.events.size(), 60u);
  std::vector<double> released(30, 0);
  int seen = 0;
  for (const Event& e : trajectory.events) {
    const int i = std::stoi(e.on[0].substr(1));
    const double D = 0.5 + 0.01 * i;
    double& t0 = released[static_cast<size_t>(i)];
    if (t0 == 0) {
      EXPECT_EQ(e.kind, EventKind::leave);
      EXPECT_NEAR(e.t, 1.5 * D / 0.1, 1e-12);
      t0 = e.t;
    } else if (seen < 30) {
      // x = f t - D - f sin(s) + D/2 ... : v(s) = f (1 - cos s) + D/2 sin s, s since the release
      const double s = e.t - t0;
      EXPECT_EQ(e.kind, EventKind::slide);
      EXPECT_NEAR(0.1 * (1 - std::cos(s)) + 0.5 * D * std::sin(s), 0, 1e-12);
      ++seen;
    }
  }
  EXPECT_EQ(seen, 30);
}

}  // namespace
}  // namespace saltus
