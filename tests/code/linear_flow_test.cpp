// Weights of linear flows against series made order by order, and against exponentials.
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "code/jet.hpp"
#include "formulas.hpp"

namespace saltus {
namespace {

constexpr int last_order = 21;

struct Expanded {
  Jet<double> jet;
  Schedule schedule;

  Expanded(const Tape& tape, const std::vector<double>& parameters) : jet(tape, last_order) {
    jet.bind(parameters);
    std::vector<size_t> outputs(tape.outputs.size());
    std::iota(outputs.begin(), outputs.end(), size_t{0});
    schedule = jet.schedule(outputs, {});
    jet.arrange(schedule, {});
    jet.enter(schedule);
  }
  bool weigh(const TapeValues& somewhere) {
    jet.load(somewhere, 1);
    jet.find_flow(schedule);
    return !schedule.flow.empty();
  }
};

Expr number(double v) { return Expr(v); }
Expr now() { return Expr::symbol(SymbolKind::time, 0, "t"); }
Expr counted(int i) { return Expr::symbol(SymbolKind::counter, i, "k" + std::to_string(i)); }

class Random {
 public:
  explicit Random(unsigned seed) : draw_(seed) {}
  double number() { return std::uniform_real_distribution(-2.0, 2.0)(draw_); }
  bool coin() { return draw_() % 2 == 0; }
  int below(int n) { return static_cast<int>(draw_() % static_cast<unsigned>(n)); }

 private:
  std::mt19937 draw_;
};

/// Rates: sums of states, numbers, time and waves; one may be a state, one may rest; then sums as what is watched.
std::vector<Expr> linear_system(Random& draw, int n) {
  const Expr t = now(), p = Expr::symbol(SymbolKind::parameter, 0, "p");
  const auto sum = [&] {
    Expr out = number(draw.number());
    for (int i = 0; i < n; ++i) {
      if (draw.coin()) out = out + state(i) * (draw.coin() ? p : number(draw.number()));
    }
    if (draw.coin()) out = out + t * number(draw.number());
    if (draw.coin()) out = out - make(Op::sin, p * t + number(draw.number())) * number(draw.number());
    return draw.coin() ? out / number(3.0) : number(1.0) - out;
  };
  std::vector<Expr> out;
  for (int i = 0; i < n; ++i) out.push_back(sum());
  if (n > 2) out[0] = state(1), out[2] = number(0.0);
  for (int i = 0; i < 3; ++i) out.push_back(sum());
  out.push_back(make(Op::sin, p * t));
  return out;
}

double size_of(const double* c) {
  double out = 0;
  for (int k = 0; k <= last_order; ++k) out = std::max(out, std::abs(c[k]));
  return out;
}

TEST(LinearFlow, GivesTheSeriesOfTheOperations) {
  int found = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    Random draw(seed);
    const int n = 1 + draw.below(5);
    const Tape tape = build_tape(linear_system(draw, n), {n, 0, 0, 0});
    Expanded plain(tape, {0.5}), weighed(tape, {0.5});
    std::vector<double> x(static_cast<size_t>(n)), elsewhere(static_cast<size_t>(n), 0.3);
    for (double& v : x) v = draw.number();
    if (!weighed.weigh({.states = elsewhere, .t = 17.0})) continue;
    ++found;
    plain.jet.load({.states = x, .t = 0.4}, last_order);
    plain.jet.expand(plain.schedule, last_order);
    weighed.jet.load({.states = x, .t = 0.4}, 1);
    const int part = 2 + draw.below(last_order - 2);
    weighed.jet.expand_by_weights(weighed.schedule, part);
    weighed.jet.expand_by_weights(weighed.schedule, last_order, part + 1);
    for (const auto* slots : {&tape.states, &tape.outputs}) {
      for (const int slot : *slots) {
        for (int k = 0; k <= last_order; ++k)
          EXPECT_NEAR(weighed.jet[slot][k], plain.jet[slot][k], 1e-13 * (1 + size_of(plain.jet[slot])))
              << seed << " " << k;
      }
    }
  }
  EXPECT_GT(found, 150) << "the others have more waves than are worth it";
}

// x'' = -w^2 x: x = a cos(w tau) + b/w sin(w tau).
TEST(LinearFlow, TurnsAsAnOscillatorDoes) {
  const Tape tape = tape_of({"v", "-9*x"}, {"x", "v"});
  Expanded e(tape, {});
  const std::vector<double> x{0.7, -1.2};
  ASSERT_TRUE(e.weigh({.states = x, .t = 0}));
  e.jet.load({.states = x, .t = 0}, 1);
  e.jet.expand_by_weights(e.schedule, last_order);
  double power = 1;  // 3^k / k!
  for (int k = 0; k <= last_order; ++k) {
    const double turns[] = {x[0], x[1] / 3, -x[0], -x[1] / 3};
    EXPECT_NEAR(e.jet[tape.states[0]][k], turns[k % 4] * power, 4e-16 * power) << k;
    power *= 3.0 / (k + 1);
  }
}

TEST(LinearFlow, LeavesWhatRestsExactlyWhereItIs) {
  const Tape tape = tape_of({"-x + 3*y", "x - 3*y", "0"}, {"x", "y", "z"});
  Expanded e(tape, {});
  const std::vector<double> moving{1, 2, 3}, resting{3, 1, 5};
  ASSERT_TRUE(e.weigh({.states = moving, .t = 0}));
  for (const auto& x : {moving, resting}) {
    e.jet.load({.states = x, .t = 0}, 1);
    e.jet.expand_by_weights(e.schedule, last_order);
  }
  for (const int slot : tape.states) {
    for (int k = 1; k <= last_order; ++k) EXPECT_EQ(e.jet[slot][k], 0);
  }
}

TEST(LinearFlow, IsNotFoundWhereStatesMultiplyEachOther) {
  for (const std::string rate : {"x*y", "x^2", "sin(x)", "x*t", "1/x", "t^2", "exp(t)*y"}) {
    const Tape tape = tape_of({rate, "x - y"}, {"x", "y"});
    Expanded e(tape, {});
    const std::vector<double> x{1, 2};
    EXPECT_FALSE(e.weigh({.states = x, .t = 1})) << rate;
  }
}

// Numbers that change on the way are not in weights: a counter may be added, but multiplies nothing.
TEST(LinearFlow, KnowsThatCountersChange) {
  const Expr a = Expr::symbol(SymbolKind::parameter, 0, "a");
  const auto found = [&](const Expr& rate) {
    const Tape tape = build_tape(std::vector{rate, state(0) - state(1)}, {2, 0, 0, 1});
    Expanded e(tape, {1.7});
    const std::vector<double> x{1, 2}, k{3};
    return e.weigh({.states = x, .counters = k, .t = 1});
  };
  EXPECT_TRUE(found(state(0) + counted(0)));
  EXPECT_TRUE(found(state(0) + counted(0) * a));
  EXPECT_FALSE(found(state(0) * counted(0)));
  EXPECT_FALSE(found(state(0) * (counted(0) * a)));
  EXPECT_FALSE(found(state(0) * (counted(0) + a)));
  EXPECT_FALSE(found(state(0) / (number(4) + counted(0))));
  EXPECT_FALSE(found(make(Op::sin, now() * counted(0))));
}

TEST(LinearFlow, IsNotMadeOfWeightsThatOverflow) {
  const Tape tape = tape_of({"1e100*x + y", "x - y"}, {"x", "y"});
  Expanded e(tape, {});
  const std::vector<double> x{1, 2};
  EXPECT_FALSE(e.weigh({.states = x, .t = 1}));
}

}  // namespace
}  // namespace saltus
