#include "code/tape.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "code/jet.hpp"
#include "formulas.hpp"

namespace saltus {
namespace {

int count(const std::vector<Operation>& operations, Instr instr) {
  return static_cast<int>(
      std::count_if(operations.begin(), operations.end(), [&](const Operation& o) { return o.instr == instr; }));
}

/// Slots that operations write.
void add_results(std::set<int>& slots, const std::vector<Operation>& operations) {
  for (const Operation& o : operations) {
    for (int i = 0; i < slots_of(o.instr); ++i) slots.insert(o.out + i);
  }
}

bool reads_two(Instr instr) {
  switch (instr) {
    case Instr::neg:
    case Instr::square:
    case Instr::one_minus_square:
    case Instr::sqrt:
    case Instr::cbrt:
    case Instr::exp:
    case Instr::expm1:
    case Instr::sin_cos:
    case Instr::sinh_cosh:
    case Instr::sin_cos_t:
    case Instr::tan:
    case Instr::tanh:
    case Instr::logistic:
    case Instr::log: return false;
    default: return true;
  }
}

/// Whether every argument is among `known` or an earlier result of the same operations.
bool ordered(const std::vector<Operation>& operations, std::set<int> known) {
  for (const Operation& o : operations) {
    if (!known.count(o.a) || (reads_two(o.instr) && !known.count(o.b))) return false;
    add_results(known, {o});
  }
  return true;
}

TEST(Tape, OfTheFrictionFieldHasTwoOperationsPerOrder) {
  // -y + sin(omega t) - F: the sine is known from time, the minus sign is part of a difference.
  const Tape tape = tape_of({"v", "-y + sin(omega*t) - F*1", "v"}, {"y", "v"}, {"F", "omega"});
  EXPECT_EQ(tape.linear.size(), 1u);
  EXPECT_EQ(tape.timed.size(), 1u);
  EXPECT_EQ(tape.free.size(), 2u);
  EXPECT_EQ(tape.bound.size(), 0u);
  EXPECT_EQ(tape.outputs[0], tape.states[1]);
  EXPECT_EQ(tape.outputs[2], tape.states[1]);
}

TEST(Tape, OfTheDrillStringSharesWhatIsWrittenTwice) {
  const Tape tape =
      tape_of({"wu - wl", "(km*u - k*twist - (Tsup + bu*wu))/Ju",
               "(k*twist - (Tsl + T1*(1 - 2/(1 + exp(b1*wl))) + T2*(1 - 2/(1 + exp(b2*wl))) + bl*wl))/Jl"},
              {"twist", "wu", "wl"}, {"km", "k", "Ju", "Jl", "Tsup", "bu", "Tsl", "T1", "T2", "b1", "b2", "bl", "u"});
  EXPECT_EQ(count(tape.free, Instr::logistic), 2);
  EXPECT_EQ(count(tape.free, Instr::scale), 9);  // k*twist once, bu, b1, b2, twice 2*, T1, T2, bl
  EXPECT_EQ(count(tape.free, Instr::div_c), 2);
  EXPECT_EQ(tape.free.size(), 23u);  // and 10 sums and differences
  EXPECT_TRUE(tape.timed.empty());
  EXPECT_TRUE(tape.bound.empty());
}

TEST(Tape, SharesSineWithCosineAndHyperbolicSineWithCosine) {
  const Tape tape = tape_of({"sin(x) + cos(x)", "sinh(x) * cosh(x)", "cos(x)"}, {"x"});
  EXPECT_EQ(count(tape.free, Instr::sin_cos), 1);
  EXPECT_EQ(count(tape.free, Instr::sinh_cosh), 1);
  EXPECT_EQ(tape.free.size(), 4u);
}

TEST(Tape, SharesSumsAndProductsInEitherOrder) {
  const Tape tape = tape_of({"(x + y)*(x*y)", "(y*x)/(y + x)"}, {"x", "y"});
  EXPECT_EQ(count(tape.free, Instr::add), 1);
  EXPECT_EQ(count(tape.free, Instr::mul), 2);
  EXPECT_EQ(tape.free.size(), 4u);
}

TEST(Tape, SharesThePowersOfOneBase) {
  const Tape tape = tape_of({"x^2", "x^3", "x^4", "x*x"}, {"x"});
  EXPECT_EQ(count(tape.free, Instr::square), 2);
  EXPECT_EQ(count(tape.free, Instr::mul), 1);
}

TEST(Tape, PutsEveryOperationInTheStageOfItsArguments) {
  const Tape tape =
      tape_of({"p*q + s*exp(x*sin(p*t)) + sin(t^2)*cos(2*t+1)", "s - x", "t/p"}, {"x"}, {"p", "q"}, {"s"});
  std::set<int> constants, known;
  for (const auto& [slot, value] : tape.numbers) constants.insert(slot);
  for (const auto& [slot, index] : tape.parameters) constants.insert(slot);
  for (const BindOperation& o : tape.bind) constants.insert(o.out);
  known = constants;
  known.insert(tape.time);
  EXPECT_TRUE(ordered(tape.linear, known));
  add_results(known, tape.linear);
  EXPECT_TRUE(ordered(tape.timed, known)) << "what depends on time only needs no state";
  add_results(known, tape.timed);
  known.insert(tape.states[0]);
  EXPECT_TRUE(ordered(tape.free, known)) << "what is free needs no sigma";
  add_results(known, tape.free);
  known.insert(tape.sigmas[0]);
  EXPECT_TRUE(ordered(tape.bound, known));

  EXPECT_EQ(count(tape.timed, Instr::sin_cos_t), 2);
  EXPECT_EQ(count(tape.timed, Instr::sin_cos), 1) << "t^2 is not linear in time";
  EXPECT_EQ(count(tape.free, Instr::exp), 1);
  EXPECT_GT(tape.bound.size(), 1u);
}

TEST(Tape, FoldsConstantsWhenParametersAreBound) {
  const Tape tape = tape_of({"x*(sin(p)^2 + sqrt(q)/3)", "p*q - 1"}, {"x"}, {"p", "q"});
  EXPECT_EQ(tape.free.size(), 1u);
  EXPECT_FALSE(tape.constant[0]);
  EXPECT_TRUE(tape.constant[1]);
  Jet<double> jet(tape, 2);
  jet.bind(std::vector<double>{0.5, 4});
  EXPECT_EQ(jet.output(1)[0], 1);
  jet[tape.states[0]][1] = 3;
  jet.free(1);
  EXPECT_EQ(jet.output(0)[1], (std::pow(std::sin(0.5), 2) + 2.0 / 3) * 3);
  EXPECT_EQ(jet.output(1)[1], 0);
}

TEST(Tape, DropsOperationsThatBecameUnnecessary) {
  const Tape tape = tape_of({"-x + y", "x - (-y)", "-x + 1"}, {"x", "y"});
  EXPECT_EQ(count(tape.free, Instr::neg), 0);
  EXPECT_EQ(count(tape.free, Instr::sub), 1);
  EXPECT_EQ(count(tape.free, Instr::add), 1);
  EXPECT_EQ(count(tape.free, Instr::rsub_c), 1);
}

TEST(Tape, KnowsWhatCanHide) {
  EXPECT_FALSE(tape_of({"x*y + sin(x) + tanh(t)"}, {"x", "y"}).may_hide);
  EXPECT_TRUE(tape_of({"tanh(x)"}, {"x"}).may_hide);
  EXPECT_TRUE(tape_of({"1/x"}, {"x"}).may_hide);
  EXPECT_TRUE(tape_of({"tanh(x) + y/(1 + exp(x)) + exp(t)*sin(y)"}, {"x", "y"}).hides_by_reach);
  EXPECT_FALSE(tape_of({"tanh(x) + sqrt(y)"}, {"x", "y"}).hides_by_reach);
  EXPECT_FALSE(tape_of({"1/(2 + exp(x))"}, {"x"}).hides_by_reach);
}

TEST(Tape, IsMadeOfDeepFormulas) {
  Expr e = Expr::symbol(SymbolKind::state, 0, "x");
  for (int i = 0; i < 10000; ++i) e = make(Op::sin, e) + Expr(0.5);
  const Tape tape = build_tape(std::vector<Expr>{e}, {.states = 1});
  EXPECT_EQ(tape.free.size(), 20000u);
  Jet<double> jet(tape, 2);
  jet.bind(std::vector<double>{});
  jet[tape.states[0]][1] = 1;
  for (int k = 0; k <= 2; ++k) jet.free(k);
  double x = 0, slope = 1;
  for (int i = 0; i < 10000; ++i) {
    slope *= std::cos(x);
    x = std::sin(x) + 0.5;
  }
  EXPECT_EQ(jet.output(0)[0], x);
  EXPECT_NEAR(jet.output(0)[1], slope, 1e-9 * std::abs(slope) + 1e-300);
}

}  // namespace
}  // namespace saltus
