// Machine code against the interpreter: the same bits for every function, on random formulas, in every way of use.
#include "code/native.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

#include "base/error.hpp"
#include "code/jet.hpp"
#include "formulas.hpp"

namespace saltus {
namespace {

constexpr int native_order = 18;

bool same_bits(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// Two jets of one tape: the second has machine code for `schedule`.
struct Both {
  Tape tape;
  Jet<double> interpreted, native;
  Schedule plain, compiled;
  bool made = false;

  Both(Tape made_tape, const std::vector<double>& parameters, const std::vector<int>& varying, int most = native_order)
      : tape(std::move(made_tape)), interpreted(tape, native_order), native(tape, native_order) {
    std::vector<size_t> outputs;
    for (size_t i = 0; i < tape.outputs.size(); ++i) outputs.push_back(i);
    interpreted.bind(parameters);
    native.bind(parameters);
    plain = interpreted.schedule(outputs, varying);
    compiled = native.schedule(outputs, varying);
    made = native.compile(compiled, most);
    interpreted.enter(plain);
    native.enter(compiled);
  }
  void load(const TapeValues& values, int highest) {
    interpreted.load(values, highest);
    native.load(values, highest);
  }
  /// The first slot of states and outputs whose coefficients 0..highest differ, or -1.
  int difference(int highest) const {
    std::vector<int> slots = tape.states;
    slots.insert(slots.end(), tape.outputs.begin(), tape.outputs.end());
    for (const int slot : slots) {
      for (int k = 0; k <= highest; ++k) {
        if (!same_bits(interpreted[slot][k], native[slot][k])) return slot;
      }
    }
    return -1;
  }
};

/// x' and y' are the two formulas of x, y, t and p.
void expect_same_bits(const std::string& f, const std::string& g, double x, double y, double t, double p) {
  Both both(tape_of({f, g, "x*y"}, {"x", "y"}, {"p"}), {p}, {});
  ASSERT_TRUE(both.made) << f;
  const std::vector<double> start{x, y};
  for (const int highest : {0, 1, 2, 7, native_order}) {
    both.load({.states = start, .t = t + highest}, highest);
    both.interpreted.expand(both.plain, highest);
    both.native.expand(both.compiled, highest / 2);  // in two parts
    both.native.expand(both.compiled, highest, highest / 2 + 1);
    EXPECT_EQ(both.difference(highest), -1)
        << "x' = " << f << ", y' = " << g << " at " << x << ", " << y << ", t = " << t << ", order " << highest;
  }
}

class NativeJet : public testing::Test {
 protected:
  void SetUp() override {
#ifndef SALTUS_HAS_NATIVE
    GTEST_SKIP() << "built without LLVM";
#endif
    ASSERT_TRUE(native_available());
  }
};

const std::vector<std::string> functions = {
    "sin({})",  "cos({})",   "tan({})",      "sinh({})", "cosh({})",     "tanh({})",      "exp({})",      "log({})",
    "sqrt({})", "cbrt({})",  "asin({})",     "acos({})", "atan({})",     "({})^2",        "({})^3",       "({})^7",
    "1/({})",   "({})^1.5",  "({})^p",       "p^({})",   "expm1({})",    "log1p({})",     "({})/p",       "(p - {})*y",
    "y/({})",   "({})^(-2)", "atan2({}, y)", "({})^y",   "hypot({}, y)", "sin(p*t)*({})", "({})*exp(-t)", "1 - ({})^2"};

std::string put(const std::string& pattern, const std::string& argument) {
  std::string out = pattern;
  out.replace(out.find("{}"), 2, argument);
  return out;
}

TEST_F(NativeJet, HasTheBitsOfTheInterpreterForEveryFunction) {
  for (const std::string& f : functions) {
    for (const double x : {0.3, 0.9, -0.4, 0.0, 2.5}) expect_same_bits(put(f, "x"), "x - 0.1*y", x, 0.7, 1.25, 0.6);
  }
}

TEST_F(NativeJet, HasTheBitsOfTheInterpreterOnRandomFormulas) {
  std::mt19937 random(20261116);
  const auto pick = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  const auto number = [&] { return std::uniform_real_distribution<double>(-2, 2)(random); };
  const std::vector<std::string> leaves = {"x", "y", "t", "p", "0.7", "x*y", "(x - y)", "(2*x + t)"};
  const std::vector<std::string> joins = {"({} + {})", "({} - {})", "({} * {})", "({} / (2 + ({})^2))"};
  const auto formula = [&](auto&& self, int depth) -> std::string {
    if (depth == 0) return leaves[pick(leaves.size())];
    if (pick(2) == 0) return put(functions[pick(functions.size())], self(self, depth - 1));
    return put(put(joins[pick(joins.size())], self(self, depth - 1)), self(self, depth - 1));
  };
  for (int round = 0; round < 60; ++round)
    expect_same_bits(formula(formula, 3), formula(formula, 2), number(), number(), number(), number());
}

TEST_F(NativeJet, HasTheBitsOfTheInterpreterWhereNumbersAreExtreme) {
  for (const double x : {0.0, -0.0, 1e-310, 1e300, -1e300, HUGE_VAL, std::nan("")}) {
    expect_same_bits("x*y + sin(x)", "x^2 - y", x, 1.0, 0.0, 1.0);
    expect_same_bits("exp(x)", "x/y", x, -0.0, 0.0, 1.0);
  }
}

TEST_F(NativeJet, FillsOutputsOfGivenSeriesWithTheBitsOfTheInterpreter) {
  const Tape tape = tape_of({"x*exp(s*y) + p*t", "sin(p*t)/(2 + s)", "x^2"}, {"x", "y"}, {"p"}, {"s"});
  Jet<double> interpreted(tape, order), native(tape, order);
  const std::vector<size_t> outputs{0, 1, 2};
  const std::vector<int> varying{tape.sigmas[0]};
  Schedule plain = interpreted.schedule(outputs, varying), compiled = native.schedule(outputs, varying);
  ASSERT_TRUE(native.compile_filling(compiled, order));
  for (auto [jet, schedule] : {std::pair{&interpreted, &plain}, {&native, &compiled}}) {
    const std::vector<double> parameters{0.4};
    jet->bind(parameters);
    jet->enter(*schedule);
    for (int k = 0; k <= order; ++k) {
      (*jet)[tape.states[0]][k] = 1.0 / (k + 1);
      (*jet)[tape.states[1]][k] = std::cos(k);
      (*jet)[tape.sigmas[0]][k] = 0.3 / (k + 2);
    }
    jet->set_time(0.7, order);
    jet->fill(*schedule, order);
  }
  for (const size_t i : outputs) {
    for (int k = 0; k <= order; ++k) EXPECT_TRUE(same_bits(interpreted.output(i)[k], native.output(i)[k])) << i << k;
  }
}

TEST_F(NativeJet, SolvesForUnknownsOrderByOrder) {
  Both both(tape_of({"y", "-x + sin(p*t) - s*(1 + x^2)", "exp(x*s) - y"}, {"x", "y"}, {"p"}, {"s"}), {0.4}, {0});
  // The sigma that varies is known by its slot.
  Both sliding(both.tape, {0.4}, {both.tape.sigmas[0]});
  ASSERT_TRUE(sliding.made);
  const std::vector<double> start{0.2, -0.3}, sigma{0.5};
  sliding.load({.states = start, .sigmas = sigma, .t = 0.1}, native_order);
  for (auto [jet, schedule] : {std::pair{&sliding.interpreted, &sliding.plain}, {&sliding.native, &sliding.compiled}}) {
    for (int k = 0; k <= native_order; ++k) {
      jet->free(*schedule, k);
      (*jet)[sliding.tape.sigmas[0]][k] = k == 0 ? 0.5 : 0.25 / k;
      jet->bound(*schedule, k);
      if (k < native_order) jet->integrate(k);
    }
  }
  EXPECT_EQ(sliding.difference(native_order), -1);
}

TEST_F(NativeJet, IsInterpretedAboveTheOrderThatWasCompiled) {
  Both both(tape_of({"y", "-sin(x) + cos(t)"}, {"x", "y"}), {}, {}, 6);
  ASSERT_TRUE(both.made);
  const std::vector<double> start{1.0, 2.0};
  for (const int highest : {5, 6, 7, native_order, 3}) {
    both.load({.states = start, .t = 0.5 * highest}, highest);
    both.interpreted.expand(both.plain, highest);
    both.native.expand(both.compiled, highest);
    EXPECT_EQ(both.difference(highest), -1) << highest;
  }
}

TEST_F(NativeJet, FollowsOtherParametersWithoutCompilingAgain) {
  Both both(tape_of({"y", "-p*sin(x)^p"}, {"x", "y"}, {"p"}), {2.0}, {});
  ASSERT_TRUE(both.made);
  for (const double p : {2.0, 0.5, -1.0, 3.0}) {
    both.interpreted.bind(std::vector{p});
    both.native.bind(std::vector{p});
    const std::vector<double> start{1.0, 2.0};
    both.load({.states = start}, native_order);
    both.interpreted.expand(both.plain, native_order);
    both.native.expand(both.compiled, native_order);
    EXPECT_EQ(both.difference(native_order), -1) << p;
  }
}

TEST_F(NativeJet, LeavesTapesAloneThatAreTooLong) {
  std::string sum = "x";
  for (int i = 1; i < 400; ++i) sum += " + sin(" + std::to_string(i) + "*x*y)";
  EXPECT_FALSE(Both(tape_of({"y", sum}, {"x", "y"}), {}, {}).made);
}

}  // namespace
}  // namespace saltus
