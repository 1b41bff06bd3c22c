// Long chains of blocks with static friction: the first slip in closed form, the balance of energy, and the law of
// friction at the end.
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "physics.hpp"

namespace saltus::physics {
namespace {

/// The chain of the gallery, all blocks held at the start, with two more states: the work W of the plate and the heat
/// Q.
System chain(int blocks) {
  std::ifstream file(SALTUS_SOURCE_DIR "/models/burridge_knopoff/model.toml");
  std::string text(std::istreambuf_iterator<char>(file), {});
  const std::string after_equations = "equations = \"\"\"\n", after_initial = "[initial]\n",
                    offset = "\"X[2]\" = 0.3\n";
  text.erase(text.find(offset), offset.size());
  text.insert(text.find(after_initial) + after_initial.size(), "W = 0\nQ = 0\n");
  text.insert(text.find(after_equations) + after_equations.size(),
              "  W' = nu*sum(y[j] for j = 1..N)\n  Q' = sum(D[j]*abs(V[j]) for j = 1..N)\n");
  return System(read_model_text(text, "chain", {{"N", std::to_string(blocks)}}));
}

constexpr double nu = 0.1, al = 1.2;

struct Chain {
  int blocks;
  std::vector<double> state;
  double t;
  double y(int i) const { return nu * t - state[static_cast<size_t>(2 + i)]; }
  double v(int i) const { return state[static_cast<size_t>(2 + blocks + i)]; }
  /// What the springs pull on a block.
  double pull(int i) const {
    double f = y(i);
    for (const int j : {i - 1, i + 1}) {
      if (j >= 0 && j < blocks) f += al * (y(i) - y(j));
    }
    return f;
  }
  double energy() const {
    double e = 0;
    for (int i = 0; i < blocks; ++i) {
      e += v(i) * v(i) / 2 + y(i) * y(i) / 2;
      if (i > 0) e += al * (y(i) - y(i - 1)) * (y(i) - y(i - 1)) / 2;
    }
    return e;
  }
};

void check_chain(int blocks, double until) {
  const System s = chain(blocks);
  const Trajectory run = s.run(until, 1e-11);
  ASSERT_EQ(run.end.why, Why::time) << story(run);
  const auto found = changes(run);
  ASSERT_GT(found.size(), static_cast<size_t>(blocks));

  const Chain start{blocks, s.initial, 0};
  double first = 1e9;  // all pulls grow as nu*t
  for (int i = 0; i < blocks; ++i) first = std::min(first, (1 - start.pull(i)) / nu);
  EXPECT_NEAR(found.front().t, first, 1e-10);

  const Chain end{blocks, run.end.state, run.end.t};
  EXPECT_NEAR(end.energy() - start.energy(), run.end.state[0] - run.end.state[1], 1e-7);
  for (int i = 0; i < blocks; ++i) {
    if (run.end.mode.switches[static_cast<size_t>(i)] != '0') continue;
    EXPECT_EQ(end.v(i), 0);
    EXPECT_LE(std::abs(end.pull(i)), 1 + 1e-9);
  }
}

TEST(Chain, TenBlocks) { check_chain(10, 60); }
TEST(Chain, FiftyBlocks) { check_chain(50, 30); }

}  // namespace
}  // namespace saltus::physics
