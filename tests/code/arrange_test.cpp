// What is left of a schedule above order 0 against all of it: the same coefficients.
#include "code/arrange.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <string>

#include "code/jet.hpp"
#include "formulas.hpp"

namespace saltus {
namespace {

constexpr int highest = 19;

struct ArrangedSeries {
  std::vector<double> series;
  Schedule schedule;
};

ArrangedSeries arranged_series(const Tape& tape, bool arranged, int first_order = highest) {
  Jet<double> jet(tape, highest);
  jet.bind(std::vector<double>{1.3});
  std::vector<size_t> outputs(tape.outputs.size());
  std::iota(outputs.begin(), outputs.end(), size_t{0});
  ArrangedSeries out{.schedule = jet.schedule(outputs, {})};
  jet.enter(out.schedule);
  if (arranged) jet.arrange(out.schedule, {});
  const std::vector<double> x{0.3, -0.7, 0.9, 0.4}, sigma{-1};
  jet.load({.states = std::span(x).first(tape.states.size()), .sigmas = sigma, .t = 0.4}, highest);
  jet.expand(out.schedule, first_order);
  if (first_order < highest) jet.expand(out.schedule, highest, first_order + 1);
  for (const auto* slots : {&tape.states, &tape.outputs}) {
    for (const int slot : *slots) out.series.insert(out.series.end(), jet[slot], jet[slot] + highest + 1);
  }
  return out;
}

Schedule expect_same(const std::vector<std::string>& formulas) {
  const Tape tape = tape_of(formulas, {"x", "y", "z", "w"}, {"p"}, {"s"});
  const ArrangedSeries all = arranged_series(tape, false), arranged = arranged_series(tape, true),
                       in_two = arranged_series(tape, true, 7);
  for (size_t k = 0; k < all.series.size(); ++k) {
    EXPECT_EQ(all.series[k], arranged.series[k]) << formulas[0] << " at " << k;
    EXPECT_EQ(all.series[k], in_two.series[k]) << formulas[0] << " at " << k;
  }
  return arranged.schedule;
}

TEST(Arrange, OnlyStatesThatWaitForThemselvesGoOrderByOrder) {
  // y and x wait for each other; z needs nobody, and w and the two functions are needed by nobody.
  const Arrangement parts =
      expect_same({"y", "sin(t) - x + z", "-p*t", "x*y - s", "x - 2*z", "w + x + exp(z)"}).arranged;
  EXPECT_EQ(parts.rates.size(), 2U);
  EXPECT_LE(parts.together.size(), 2U);
  EXPECT_FALSE(parts.before.empty());
  EXPECT_FALSE(parts.after.empty());
}

TEST(Arrange, NothingGoesOrderByOrderWhereNobodyWaits) {
  const Arrangement parts = expect_same({"y", "z", "cos(p*t)", "0", "x*y"}).arranged;
  EXPECT_TRUE(parts.rates.empty());
  EXPECT_TRUE(parts.together.empty());
}

// w rests: exp(w) ends at order 0, and a product with it or with a switch is a multiple.
TEST(Arrange, WhatRestsMakesMultiples) {
  const Schedule schedule = expect_same({"y*exp(w)", "-x*s/(2 + tanh(w))", "x*w", "0", "z - exp(w)*s"});
  for (const Operation& o : schedule.free_next) EXPECT_TRUE(keeps_linear(o.instr)) << static_cast<int>(o.instr);
}

std::string random_formula(std::mt19937& draw, int depth) {
  const auto any = [&](size_t n) { return static_cast<size_t>(draw() % n); };
  const std::vector<std::string> leaves{"x", "y", "z", "w", "t", "p", "s", "0.5", "2"};
  if (depth == 0 || any(5) == 0) return leaves[any(leaves.size())];
  const auto part = [&] { return random_formula(draw, depth - 1); };
  switch (any(8)) {
    case 0: return "(" + part() + " + " + part() + ")";
    case 1: return "(" + part() + " - " + part() + ")";
    case 2: return "(" + part() + ")*(" + part() + ")";
    case 3: return "(" + part() + ")/(3 + (" + part() + ")^2)";
    case 4: return "sin(" + part() + ")";
    case 5: return "exp(-(" + part() + ")^2)";
    case 6: return "-(" + part() + ")";
    default: return "sqrt(1 + (" + part() + ")^2)";
  }
}

TEST(Arrange, RandomFormulasKeepTheirBits) {
  std::mt19937 draw(5);
  for (int round = 0; round < 400; ++round) {
    std::vector<std::string> formulas;
    for (int i = 0; i < 7; ++i) formulas.push_back(draw() % 5 == 0 ? "0" : random_formula(draw, 3));
    expect_same(formulas);
    if (HasFailure()) FAIL() << "round " << round;
  }
}

// Slots that are made twice, as formulas of sliding are: u = 0, then its value, then what depends on it; the rate is
// zero in the end.
TEST(Arrange, FormulasOfSlidingAreNoMoreThanTheForce) {
  enum { pull, y, v, u, zero, slope, brake, rate, slots };
  const std::vector<Operation> sliding{{Instr::scale, brake, zero, slope}, {Instr::sub, rate, pull, brake},
                                       {Instr::scale, u, rate, slope},     {Instr::scale, brake, u, slope},
                                       {Instr::sub, rate, pull, brake},    {Instr::scale, rate, zero, zero}};
  const std::vector<std::pair<int, int>> rates{{y, v}, {v, rate}};
  KnownSeries known{.varies = std::vector<char>(slots, 0), .null = std::vector<char>(slots, 0)};
  known.varies[pull] = known.varies[y] = known.varies[v] = 1;
  known.null[zero] = 1;
  const std::vector<int> wanted{u};
  const std::vector<Operation> left = simplified(sliding, rates, wanted, known);
  ASSERT_EQ(left.size(), 2U);
  EXPECT_EQ(left[0].out, u);
  EXPECT_EQ(left[0].a, pull);
  EXPECT_EQ(left[1].out, rate);
  const Arrangement parts = arrange(left, rates, slots);
  EXPECT_TRUE(parts.rates.empty());
  EXPECT_EQ(parts.before.size() + parts.after.size(), 4U);
}

// The product needs the coefficients below of what is overwritten: nothing is taken for dead.
TEST(Arrange, WhatProductsReadStays) {
  enum { x, c, a, b, out, slots };
  const std::vector<Operation> list{{Instr::scale, a, x, c}, {Instr::mul, out, a, x}, {Instr::neg, a, x, x}};
  KnownSeries known{.varies = std::vector<char>(slots, 0), .null = std::vector<char>(slots, 0)};
  known.varies[x] = 1;
  const std::vector<int> wanted{out};
  EXPECT_EQ(simplified(list, {}, wanted, known).size(), 3U);
  EXPECT_TRUE(arrange(list, {}, slots).empty());
}

}  // namespace
}  // namespace saltus
