#include "code/jet.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "base/index.hpp"
#include "base/simd.hpp"
#include "code/jet_rules.hpp"
#include "formulas.hpp"

namespace saltus {
namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr int order = 30;

/// One formula of x, y, t and p with its series to 60 digits, made by scripts/jet_reference.py.
struct Reference {
  std::string formula;
  double t = 0, p = 0;
  std::vector<double> x, y;
  std::vector<double> value;
  std::vector<double> magnitude;  // of what each coefficient is computed from
};

std::vector<Reference> read_references() {
  std::ifstream file(SALTUS_SOURCE_DIR "/tests/code/jet_reference.json");
  std::vector<Reference> references;
  for (const auto& row : nlohmann::json::parse(file)) {
    const std::vector<double> none(order + 1, 0.0);
    references.push_back({row["formula"], row["t"], row["p"], row.value("x", none), row.value("y", none), row["value"],
                          row["magnitude"]});
  }
  return references;
}

const std::vector<Reference>& references() {
  static const std::vector<Reference> all = read_references();
  return all;
}

Tape tape_for(const Reference& r) { return tape_of({r.formula}, {"x", "y"}, {"p"}); }

template <class V>
void expand(Jet<V>& jet, const Reference& r) {
  for (int k = 0; k <= order; ++k) {
    jet[jet.tape().states[0]][k] = V{} + r.x[static_cast<size_t>(k)];
    jet[jet.tape().states[1]][k] = V{} + r.y[static_cast<size_t>(k)];
  }
  jet.set_time(V{} + r.t, order);
  for (int k = 0; k <= order; ++k) {
    jet.free(k);
    jet.bound(k);
  }
}

/// Largest error of a coefficient, in ulps of its magnitude.
double worst_error(const double* c, const Reference& r) {
  double worst = 0;
  for (size_t k = 0; k <= order; ++k) {
    const double error = std::abs(c[k] - r.value[k]);
    if (error == 0) continue;
    const double ulps = error / (epsilon * r.magnitude[k]);
    worst = std::isnan(ulps) ? INFINITY : std::max(worst, ulps);
  }
  return worst;
}

/// The claim: no coefficient up to order 30 is off by more than this many ulps of its magnitude, which is the size of
/// what it is a sum of: the coefficient itself and what changes of the arguments by an ulp would do to it (made by
/// scripts/jet_reference.py). A recurrence of order k adds k rounded terms, whose errors mostly cancel.
constexpr double claimed_ulps = 6;

// The bits of one order of adding, whatever the machine has: also where all terms are minus zero.
TEST(Jet, SumsOfProductsByFoursHaveTheBitsOfFourSums) {
  if (!simd::has_four()) GTEST_SKIP() << "no registers of four numbers";
  std::mt19937 draw(11);
  std::uniform_real_distribution<double> any(-1, 1);
  std::vector<double> a(60), b(60);
  for (const bool zeros : {false, true}) {
    for (double& v : a) v = zeros ? -0.0 : any(draw);
    for (double& v : b) v = zeros ? 1.0 : any(draw);
    for (int count = 0; count <= 45; ++count) {
      const double plain = rules::sum(0, count - 1, [&](int j) { return a[at(j)] * b[at(50 - j)]; });
      const double wide = rules::sum_by_fours(a.data(), &b[50], count);
      EXPECT_EQ(std::bit_cast<uint64_t>(plain), std::bit_cast<uint64_t>(wide)) << count;
    }
  }
}

TEST(Jet, AgreesWithSixtyDigitsForEveryFunctionAndComposition) {
  ASSERT_GT(references().size(), 100u);
  for (const Reference& r : references()) {
    const Tape tape = tape_for(r);
    Jet<double> jet(tape, order);
    jet.bind(std::vector<double>{r.p});
    expand(jet, r);
    EXPECT_LE(worst_error(jet.output(0), r), claimed_ulps)
        << r.formula << " at x = " << r.x[0] << ", y = " << r.y[0] << ", p = " << r.p;
  }
}

TEST(Jet, KeepsRelativeAccuracyWhereTanhSaturates) {
  // At a = 19.5 + tau the first derivative is 1/cosh(a)^2, far below the rounding of 1 - tanh(a)^2.
  const Tape tape = tape_of({"tanh(x)"}, {"x"});
  Jet<double> jet(tape, 1);
  jet[tape.states[0]][0] = 19.5;
  jet[tape.states[0]][1] = 1;
  jet.free(0);
  jet.free(1);
  const double slope = 1 / (std::cosh(19.5) * std::cosh(19.5));
  EXPECT_NEAR(jet.output(0)[1], slope, 4 * epsilon * slope);
}

TEST(Jet, KeepsRelativeAccuracyWhereTheLogisticFunctionSaturates) {
  // The first derivative of 1/(1 + exp(a)) is -exp(-|a|)/(1 + exp(-|a|))^2, far below the rounding of c - c^2.
  const Tape tape = tape_of({"1/(1 + exp(x))", "3*(1 + exp(x))^(-1)"}, {"x"});
  for (const double a : {-38.5, 38.5, -700.0, 700.0}) {
    Jet<double> jet(tape, 1);
    jet.bind({});
    jet[tape.states[0]][0] = a;
    jet[tape.states[0]][1] = 1;
    jet.free(0);
    jet.free(1);
    const double slope = -std::exp(-std::abs(a)) / std::pow(1 + std::exp(-std::abs(a)), 2);
    EXPECT_NEAR(jet.output(0)[1], slope, 4 * epsilon * -slope) << a;
    EXPECT_NEAR(jet.output(1)[1], 3 * slope, 12 * epsilon * -slope) << a;
  }
}

TEST(Jet, HasTheLogisticFunctionWhereItsExponentialOverflows) {
  const Tape tape = tape_of({"2/(1 + exp(x))", "x/(exp(x) + 1)"}, {"x"});
  for (const double a : {-1000.0, 1000.0}) {
    Jet<double> jet(tape, 3);
    jet.bind({});
    jet[tape.states[0]][0] = a;
    jet[tape.states[0]][1] = 1;
    for (int k = 0; k <= 3; ++k) jet.free(k);
    EXPECT_EQ(jet.output(0)[0], a < 0 ? 2 : 0);
    EXPECT_EQ(jet.output(1)[0], a < 0 ? a : 0);
    EXPECT_EQ(jet.output(1)[1], a < 0 ? 1 : 0);
    for (int k = 1; k <= 3; ++k) EXPECT_EQ(jet.output(0)[k], 0) << a << ", " << k;
  }
}

TEST(Jet, KeepsRelativeAccuracyOfArcSineNearOne) {
  // a = 1 - d: the derivative is 1/sqrt(d (2 - d)), with d = 2^-40 exact.
  const double d = std::ldexp(1, -40);
  const Tape tape = tape_of({"asin(x)", "acos(x)"}, {"x"});
  Jet<double> jet(tape, 1);
  jet[tape.states[0]][0] = 1 - d;
  jet[tape.states[0]][1] = 1;
  jet.free(0);
  jet.free(1);
  const double slope = 1 / std::sqrt(d * (2 - d));
  EXPECT_NEAR(jet.output(0)[1], slope, 4 * epsilon * slope);
  EXPECT_NEAR(jet.output(1)[1], -slope, 4 * epsilon * slope);
}

TEST(Jet, KeepsTheRootOfZeroAtZero) {
  const Tape tape = tape_of({"sqrt(x)"}, {"x"});
  Jet<double> jet(tape, 5);
  for (int k = 0; k <= 5; ++k) jet.free(k);
  for (int k = 0; k <= 5; ++k) EXPECT_EQ(jet.output(0)[k], 0) << k;
}

TEST(Jet, RaisesToWholeParametersThroughZero) {
  const Tape tape = tape_of({"x^p"}, {"x"}, {"p"});
  Jet<double> jet(tape, 6);
  jet[tape.states[0]][1] = 2;
  jet[tape.states[0]][2] = 1;
  // (2 tau + tau^2)^p
  const std::vector<std::pair<double, std::vector<double>>> powers = {
      {0, {1, 0, 0, 0, 0, 0, 0}}, {1, {0, 2, 1, 0, 0, 0, 0}}, {2, {0, 0, 4, 4, 1, 0, 0}}, {3, {0, 0, 0, 8, 12, 6, 1}}};
  for (const auto& [p, expected] : powers) {
    jet.bind(std::vector<double>{p});
    for (int k = 0; k <= 6; ++k) jet.free(k);
    EXPECT_EQ(std::vector<double>(jet.output(0), jet.output(0) + 7), expected) << p;
  }
}

TEST(Jet, SolvesAnEquationByIntegratingItsRates) {
  // x' = x y, y' = -2 t from (1, 1) at t = 0: y = 1 - t^2, x = exp(t - t^3/3).
  const Tape tape = tape_of({"x*y", "-2*t"}, {"x", "y"});
  Jet<double> jet(tape, 6);
  jet.bind(std::vector<double>{});
  jet[tape.states[0]][0] = jet[tape.states[1]][0] = 1;
  jet.set_time(0, 6);
  for (int k = 0; k < 6; ++k) {
    jet.free(k);
    jet.bound(k);
    jet.integrate(k);
  }
  const double expected[] = {1, 1, 1.0 / 2, 1.0 / 6 - 1.0 / 3, 1.0 / 24 - 1.0 / 3, 1.0 / 120 - 1.0 / 6};
  for (int k = 0; k <= 5; ++k) EXPECT_NEAR(jet[tape.states[0]][k], expected[k], 4 * epsilon) << k;
  EXPECT_EQ(jet[tape.states[1]][2], -1);
}

TEST(Jet, ForgetsEarlierStepsAndParameters) {
  const Tape tape = tape_of({"x^p + sin(p*t)*exp(x)"}, {"x"}, {"p"});
  const auto run = [&](Jet<double>& jet, double p, double x0, double t) {
    jet.bind(std::vector<double>{p});
    for (int k = 0; k <= 10; ++k) jet[tape.states[0]][k] = x0 / (k + 1);
    jet.set_time(t, 10);
    for (int k = 0; k <= 10; ++k) jet.free(k);
    return std::vector<double>(jet.output(0), jet.output(0) + 11);
  };
  Jet<double> used(tape, 10), clean(tape, 10);
  run(used, 5, 2, 1);
  run(used, 0.5, -1, 3);  // leaves NaN behind
  EXPECT_EQ(run(used, 2, 0.5, 7), run(clean, 2, 0.5, 7));
}

}  // namespace
}  // namespace saltus
