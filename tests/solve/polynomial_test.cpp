#include "solve/polynomial.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace saltus {
namespace {

__extension__ typedef __float128 Quad;

constexpr double eps = std::numeric_limits<double>::epsilon();
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Polynomials are built with 113 bits, so that their coefficients are the correctly rounded ones.
struct Exact {
  std::vector<Quad> c{1};

  Exact& times(const std::vector<Quad>& factor) {
    std::vector<Quad> product(c.size() + factor.size() - 1);
    for (std::size_t i = 0; i < c.size(); ++i)
      for (std::size_t j = 0; j < factor.size(); ++j) product[i + j] += c[i] * factor[j];
    c = product;
    return *this;
  }
  Exact& root(Quad r) { return times({-r, 1}); }
  Exact& pair(Quad a, Quad d) { return times({a * a + d * d, -2 * a, 1}); }  // a +- i d

  /// The same polynomial with its roots multiplied by h; values scaled by a positive number so that the middle
  /// coefficient keeps its size.
  Exact stretched(double h) const {
    Exact result = *this;
    Quad power = 1;
    for (std::size_t k = 0; k < c.size() / 2; ++k) power *= std::abs(h);
    for (Quad& ck : result.c) {
      ck *= power;
      power /= h;
    }
    return result;
  }
  std::vector<double> rounded() const { return {c.begin(), c.end()}; }
};

Quad value(const std::vector<Quad>& c, Quad tau) {
  Quad sum = 0;
  for (std::size_t k = c.size(); k-- > 0;) sum = sum * tau + c[k];
  return sum;
}

double magnitude(const std::vector<double>& c, double tau) {
  Quad sum = 0;
  for (std::size_t k = c.size(); k-- > 0;) sum = sum * std::abs(tau) + std::abs(c[k]);
  return static_cast<double>(sum);
}

double slope(const std::vector<Quad>& c, Quad tau) {
  Quad sum = 0;
  for (std::size_t k = c.size(); k-- > 1;) sum = sum * tau + static_cast<int>(k) * c[k];
  return static_cast<double>(sum);
}

/// How far rounding of the coefficients alone may move the simple root at tau, plus its last bits.
double condition(const Exact& p, double tau) {
  return eps * magnitude(p.rounded(), tau) / std::abs(slope(p.c, tau)) + 2 * eps * std::abs(tau);
}

/// |p| / (eps sum |c_k tau^k|): below 1 the value is lost in the rounding of the coefficients.
double resolution(const Exact& p, double tau) {
  const double v = static_cast<double>(value(p.c, tau));
  return std::abs(v) / (eps * magnitude(p.rounded(), tau));
}

/// p is clearly resolved between these neighbouring roots (or ends of the interval).
bool resolved_between(const Exact& p, double a, double b) { return resolution(p, 0.5 * (a + b)) > 64; }

struct RandomRoots {
  std::mt19937_64 engine;
  double between(double a, double b) { return std::uniform_real_distribution<>(a, b)(engine); }
  double log_between(double a, double b) { return std::exp(between(std::log(a), std::log(b))); }
  int whole(int a, int b) { return std::uniform_int_distribution<>(a, b)(engine); }
  bool coin() { return whole(0, 1) == 1; }
};

/// Multiplies by factors without real roots near [0, 1] up to the degree.
void fill(Exact& p, int degree, RandomRoots& random) {
  while (static_cast<int>(p.c.size()) - 1 < degree) {
    const int missing = degree - (static_cast<int>(p.c.size()) - 1);
    if (missing >= 2 && random.coin())
      p.pair(random.between(-2, 2), random.between(0.5, 2));
    else
      p.root(random.coin() ? random.between(1.3, 4) : random.between(-4, -0.3));
  }
}

int sign_at(const Exact& p, double tau) { return value(p.c, tau) > 0 ? 1 : -1; }

TEST(Roots, TheStraightLine) {
  const std::vector<double> c{1, -4};
  const Root root = leftmost_root(c, {.h = 1});
  EXPECT_EQ(root.kind, RootKind::crossing);
  EXPECT_EQ(root.at, 0.25);
  EXPECT_EQ(root.sign_after, -1);
  EXPECT_EQ(leftmost_root(c, {.h = 0.2}).kind, RootKind::none);
  EXPECT_EQ(leftmost_root(c, {.h = -1}).kind, RootKind::none);
}

// Quotients: the root is the nearest number, or the next one on the far side.
TEST(Roots, LinesInBothDirectionsAndAfterKnownZeros) {
  std::mt19937 draw(3);
  std::uniform_real_distribution<double> any(-2, 2);
  for (int round = 0; round < 2000; ++round) {
    const double a = any(draw), b = any(draw), h = any(draw), exact = -a / b;
    const std::vector<double> line{a, b, 0, 0, 0}, late{0, 0, a, b, 0};
    for (const auto& [c, zeros] : {std::pair{line, 0}, {late, 2}}) {
      const Root root = leftmost_root(c, {.h = h, .known_zeros = zeros});
      const bool inside = exact * h > 0 && std::abs(exact) <= std::abs(h);
      ASSERT_EQ(root.kind, inside ? RootKind::crossing : RootKind::none) << a << ' ' << b << ' ' << h;
      if (!inside) continue;
      EXPECT_NEAR(root.at, exact, 4e-16 * std::abs(exact));
      EXPECT_LE((a + b * root.at) * a, 0);
      EXPECT_EQ(root.sign_after, a > 0 ? -1 : 1);
      EXPECT_EQ(leftmost_root(c, {.h = h, .from = root.at, .known_zeros = zeros}).kind, RootKind::none);
    }
  }
}

TEST(Roots, NothingToFindIsNone) {
  EXPECT_EQ(leftmost_root({}, {.h = 1}).kind, RootKind::none);
  EXPECT_EQ(leftmost_root(std::vector<double>{0}, {.h = 1}).kind, RootKind::none);
  EXPECT_EQ(leftmost_root(std::vector<double>{0, 0, 0, 0}, {.h = 1}).kind, RootKind::none);
  EXPECT_EQ(leftmost_root(std::vector<double>{3}, {.h = 1}).kind, RootKind::none);
  EXPECT_EQ(leftmost_root(std::vector<double>{1e-20, 0, 0}, {.h = 1, .known_zeros = 1}).kind, RootKind::none);
}

TEST(Roots, NotFiniteIsNone) {
  for (const double bad : {infinity, -infinity, std::nan("")}) {
    for (std::size_t place = 0; place < 5; ++place) {
      std::vector<double> c{1, -4, 1, 2, -1};
      c[place] = bad;
      EXPECT_EQ(leftmost_root(c, {.h = 1}).kind, RootKind::none) << bad << " at " << place;
    }
    EXPECT_EQ(leftmost_root(std::vector<double>{1, -4}, {.h = bad}).kind, RootKind::none);
  }
}

TEST(Roots, AnEmptyIntervalHasNone) {
  const std::vector<double> c{1, -4};
  EXPECT_EQ(leftmost_root(c, {.h = 0}).kind, RootKind::none);
  EXPECT_EQ(leftmost_root(c, {.h = 1, .from = 1}).kind, RootKind::none);
  EXPECT_EQ(leftmost_root(c, {.h = 1, .from = 0.25}).kind, RootKind::none);
}

TEST(Roots, AStartOnARootIsNotReturned) {
  EXPECT_EQ(leftmost_root(std::vector<double>{0, 1}, {.h = 1}).kind, RootKind::none);
  EXPECT_EQ(leftmost_root(std::vector<double>{0, 0, 1}, {.h = 1}).kind, RootKind::none);
  const Root root = leftmost_root(std::vector<double>{0, 1, -2}, {.h = 1});  // tau (1 - 2 tau)
  EXPECT_EQ(root.kind, RootKind::crossing);
  EXPECT_EQ(root.at, 0.5);
  EXPECT_EQ(root.sign_after, -1);
}

TEST(Roots, KnownZerosAreDividedOut) {
  const std::vector<double> c{1e-17, -3e-17, 1, -4};  // tau^2 (1 - 4 tau) and rounding
  const Root root = leftmost_root(c, {.h = 1, .known_zeros = 2});
  EXPECT_EQ(root.kind, RootKind::crossing);
  EXPECT_EQ(root.at, 0.25);
  EXPECT_EQ(root.sign_after, -1);
  EXPECT_EQ(leftmost_root(c, {.h = 0.2, .known_zeros = 2}).kind, RootKind::none);
}

TEST(Roots, SignsBackInTimeAreThoseOfTheWholePolynomial) {
  const std::vector<double> c{0, 1, 4};  // tau (1 + 4 tau): negative just before 0, positive before -1/4
  const Root root = leftmost_root(c, {.h = -1, .known_zeros = 1});
  EXPECT_EQ(root.kind, RootKind::crossing);
  EXPECT_EQ(root.at, -0.25);
  EXPECT_EQ(root.sign_after, 1);
}

TEST(Roots, ATinyFirstCoefficientKeepsItsSign) {
  const Root root = leftmost_root(std::vector<double>{1e-30, -1, 0.5}, {.h = 1});
  EXPECT_EQ(root.kind, RootKind::crossing);
  EXPECT_NEAR(root.at, 1e-30, 1e-45);
  const Root noisy = leftmost_root(std::vector<double>{1e-12, -1, 0.5}, {.h = 1, .noise = 1e-10});
  EXPECT_EQ(noisy.kind, RootKind::crossing);
  EXPECT_NEAR(noisy.at, 1e-12, 1e-24);
  EXPECT_EQ(leftmost_root(std::vector<double>{1e-12, 1, -0.5}, {.h = 1, .noise = 1e-10}).kind, RootKind::none);
}

TEST(Roots, ASignChangeInsideTheNoiseIsNotLost) {
  const Root root = leftmost_root(std::vector<double>{1, -2}, {.h = 1, .noise = 10});
  EXPECT_EQ(root.kind, RootKind::crossing);
  EXPECT_EQ(root.at, 0.5);
}

TEST(Roots, TheNoiseOfTheCallerDecidesATouch) {
  const std::vector<double> c{0.25 + 1e-9, -1, 1};  // (tau - 1/2)^2 + 1e-9
  EXPECT_EQ(leftmost_root(c, {.h = 1}).kind, RootKind::none);
  EXPECT_EQ(leftmost_root(c, {.h = 1, .noise = 2e-10}).kind, RootKind::none);
  const Root root = leftmost_root(c, {.h = 1, .noise = 4e-9});
  EXPECT_EQ(root.kind, RootKind::tangent);
  EXPECT_NEAR(root.at, 0.5, 1e-15);
  EXPECT_EQ(root.sign_after, 1);
}

TEST(Roots, ADipJustBelowTheNoiseIsAPairAndJustWithinItATouch) {
  for (const double depth : {1e-3, 1e-6, 1e-9, 1e-12}) {
    const std::vector<double> c{0.25 - depth, -1, 1};  // (tau - 1/2)^2 - depth
    const Root pair = leftmost_root(c, {.h = 1, .noise = 0.9 * depth});
    EXPECT_EQ(pair.kind, RootKind::crossing) << depth;
    EXPECT_NEAR(pair.at, 0.5 - std::sqrt(depth), 2 * eps / std::sqrt(depth)) << depth;
    EXPECT_EQ(pair.sign_after, -1) << depth;
    EXPECT_EQ(leftmost_root(c, {.h = 1, .noise = 1.1 * depth}).kind, RootKind::tangent) << depth;
  }
}

TEST(Roots, TheNoiseOfKnownZerosShrinksWithThem) {
  // tau ((tau - 1/2)^2 + 1e-9) on [0, 2]: at h = 2 the noise of the quotient is half that of p.
  const std::vector<double> c{0, 0.25 + 1e-9, -1, 1};
  EXPECT_EQ(leftmost_root(c, {.h = 2, .known_zeros = 1, .noise = 1e-9}).kind, RootKind::none);
  EXPECT_EQ(leftmost_root(c, {.h = 2, .known_zeros = 1, .noise = 8e-9}).kind, RootKind::tangent);
}

TEST(Roots, ADoubleRootIsATangent) {
  RandomRoots random{std::mt19937_64(1)};
  for (int trial = 0; trial < 2000; ++trial) {
    const double a = random.between(0.02, 0.98), h = random.log_between(1e-12, 1e12);
    Exact unit;
    unit.root(a).root(a);
    fill(unit, random.whole(2, 20), random);
    const Exact p = unit.stretched(h);
    const Root root = leftmost_root(p.rounded(), {.h = h});
    ASSERT_EQ(root.kind, RootKind::tangent) << trial;
    // p = g (s - a)^2 moves by eps magnitude, so that its minimum moves by at most this:
    const double curvature = std::abs(slope(unit.c, a + 1e-6) - slope(unit.c, a - 1e-6)) / 2e-6;
    EXPECT_NEAR(root.at / h, a, 40 * eps * magnitude(unit.rounded(), a) / (a * curvature)) << trial;
    EXPECT_EQ(root.sign_after, sign_at(unit, a * 1.01)) << trial;
  }
}

TEST(Roots, HigherMultiplicitiesAreFoundOnce) {
  RandomRoots random{std::mt19937_64(2)};
  for (int trial = 0; trial < 1000; ++trial) {
    const int multiplicity = random.whole(3, 6);
    const double a = random.between(0.3, 0.6), h = random.log_between(1e-12, 1e12);
    Exact unit;
    for (int m = 0; m < multiplicity; ++m) unit.root(a);
    fill(unit, multiplicity + random.whole(0, 3), random);
    const Exact p = unit.stretched(h);
    const Root root = leftmost_root(p.rounded(), {.h = h});
    ASSERT_EQ(root.kind, multiplicity % 2 == 1 ? RootKind::crossing : RootKind::tangent) << trial;
    const double cofactor = std::abs(static_cast<double>(value(unit.c, a + 1e-3)) / std::pow(1e-3, multiplicity));
    const double radius = std::pow(16 * eps * magnitude(unit.rounded(), a) / cofactor, 1.0 / multiplicity);
    EXPECT_NEAR(root.at / h, a, 2 * radius) << trial;
    const Root next = leftmost_root(p.rounded(), {.h = h, .from = root.at});
    EXPECT_EQ(next.kind, RootKind::none) << trial << " again at " << next.at / h;
  }
}

TEST(Roots, TheFirstOfManyIsFoundToItsCondition) {
  RandomRoots random{std::mt19937_64(3)};
  int checked = 0;
  for (int trial = 0; trial < 6000; ++trial) {
    const int degree = random.whole(1, 30), inside = random.whole(1, std::min(degree, 4));
    const double h = random.log_between(1e-12, 1e12) * (random.coin() ? 1 : -1);
    std::vector<double> roots(static_cast<std::size_t>(inside));
    for (double& r : roots) r = random.between(0, 1);
    std::sort(roots.begin(), roots.end());
    Exact unit;
    for (const double r : roots) unit.root(r);
    fill(unit, degree, random);
    const double after = inside > 1 ? roots[1] : 1;
    if (!resolved_between(unit, 0, roots[0]) || !resolved_between(unit, roots[0], after)) continue;
    ++checked;
    const Exact p = unit.stretched(h);
    const Root root = leftmost_root(p.rounded(), {.h = h});
    ASSERT_EQ(root.kind, RootKind::crossing) << trial;
    EXPECT_NEAR(root.at / h, roots[0], 2 * condition(unit, roots[0])) << trial;
    EXPECT_EQ(root.sign_after, sign_at(p, 0.5 * (roots[0] + after) * h)) << trial;
  }
  EXPECT_GT(checked, 5000);
}

TEST(Roots, NoneWhereTheConstructionHasNone) {
  RandomRoots random{std::mt19937_64(4)};
  for (int trial = 0; trial < 4000; ++trial) {
    const double h = random.log_between(1e-12, 1e12) * (random.coin() ? 1 : -1);
    Exact unit;
    fill(unit, random.whole(1, 30), random);
    bool resolved = true;
    for (int i = 0; i <= 64; ++i) resolved &= resolution(unit, i / 64.0) > 64;
    if (!resolved) continue;
    const Root root = leftmost_root(unit.stretched(h).rounded(), {.h = h});
    EXPECT_EQ(root.kind, RootKind::none) << trial << " at " << root.at / h;
  }
}

TEST(Roots, RepeatedCallsEnumerateAllInOrder) {
  RandomRoots random{std::mt19937_64(5)};
  int checked = 0, told = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const int inside = random.whole(1, 7);
    const double h = random.log_between(1e-12, 1e12) * (random.coin() ? 1 : -1);
    std::vector<double> roots(static_cast<std::size_t>(inside));
    for (double& r : roots) r = random.between(0, 1);
    std::sort(roots.begin(), roots.end());
    Exact unit;
    for (const double r : roots) unit.root(r);
    fill(unit, inside + random.whole(0, 8), random);
    bool resolved = true;
    for (std::size_t i = 0; i <= roots.size(); ++i)
      resolved &= resolved_between(unit, i == 0 ? 0 : roots[i - 1], i == roots.size() ? 1 : roots[i]);
    if (!resolved) continue;
    ++checked;
    const std::vector<double> c = unit.stretched(h).rounded();
    RootSearch search{.h = h};
    for (const double r : roots) {
      const Root root = leftmost_root(c, search);
      ASSERT_EQ(root.kind, RootKind::crossing) << trial;
      ASSERT_LE(root.last, r == roots.back()) << trial << ": it says that nothing follows only where that is so";
      told += root.last;
      ASSERT_NEAR(root.at / h, r, 2 * condition(unit, r)) << trial;
      search.from = root.at;
    }
    ASSERT_EQ(leftmost_root(c, search).kind, RootKind::none) << trial;
  }
  EXPECT_GT(checked, 1500);
  EXPECT_GT(told, 100);
}

TEST(Roots, ACrossingLiesOnTheFarSideAndIsNotFoundAgain) {
  RandomRoots random{std::mt19937_64(12)};
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<double> c(static_cast<std::size_t>(random.whole(2, max_degree + 1)));  // tau^n - r^n, steep
    c.front() = -std::pow(random.between(0.5, 0.99), static_cast<double>(c.size() - 1));
    c.back() = 1;
    const Root root = leftmost_root(c, {.h = 1});
    ASSERT_EQ(root.kind, RootKind::crossing) << trial;
    EXPECT_GE(value({c.begin(), c.end()}, root.at), 0) << trial;
    EXPECT_LE(value({c.begin(), c.end()}, root.at * (1 - 2 * eps)), 0) << trial;
    EXPECT_EQ(leftmost_root(c, {.h = 1, .from = root.at}).kind, RootKind::none) << trial;
  }
}

TEST(Roots, SearchingFromBetweenTheRootsSkipsTheEarlierOnes) {
  Exact p;
  p.root(0.2).root(0.4).root(0.8);
  const Root root = leftmost_root(p.rounded(), {.h = 1, .from = 0.3});
  EXPECT_EQ(root.kind, RootKind::crossing);
  EXPECT_NEAR(root.at, 0.4, 1e-15);
  EXPECT_EQ(leftmost_root(p.rounded(), {.h = 1, .from = 0.9}).kind, RootKind::none);
}

TEST(Roots, ClosePairsAreResolvedAsFarAsTheCoefficientsAre) {
  RandomRoots random{std::mt19937_64(6)};
  int crossings = 0, tangents = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const double a = random.log_between(1e-3, 0.9), gap = random.log_between(1e-9, 1e-4);
    const double h = random.log_between(1e-12, 1e12) * (random.coin() ? 1 : -1);
    const double first = a - gap / 2, second = a + gap / 2;
    Exact unit;
    unit.root(first).root(second);
    fill(unit, random.whole(2, 16), random);
    const Root root = leftmost_root(unit.stretched(h).rounded(), {.h = h});
    ASSERT_NE(root.kind, RootKind::none) << trial;
    const double depth = resolution(unit, a);
    if (depth > 16) {
      ++crossings;
      ASSERT_EQ(root.kind, RootKind::crossing) << trial;
      EXPECT_NEAR(root.at / h, first, 2 * condition(unit, first)) << trial;
      EXPECT_EQ(root.sign_after, sign_at(unit, a));
      const Root other = leftmost_root(unit.stretched(h).rounded(), {.h = h, .from = root.at});
      ASSERT_EQ(other.kind, RootKind::crossing) << trial;
      EXPECT_NEAR(other.at / h, second, 2 * condition(unit, second)) << trial;
    } else if (depth < 1) {
      ++tangents;
      ASSERT_EQ(root.kind, RootKind::tangent) << trial;
      EXPECT_NEAR(root.at / h, a, 1e-8 * a + gap) << trial;
    }
  }
  EXPECT_GT(crossings, 1000);
  EXPECT_GT(tangents, 150);
}

TEST(Roots, ComplexPairsNearTheAxisAreMissedOrTouchedByRounding) {
  RandomRoots random{std::mt19937_64(7)};
  int none = 0, tangents = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const double a = random.log_between(1e-3, 0.95), d = random.log_between(1e-9, 1e-2);
    const double h = random.log_between(1e-12, 1e12) * (random.coin() ? 1 : -1);
    Exact unit;
    unit.pair(a, d);
    fill(unit, random.whole(2, 16), random);
    const Root root = leftmost_root(unit.stretched(h).rounded(), {.h = h});
    ASSERT_NE(root.kind, RootKind::crossing) << trial;
    const double height = resolution(unit, a);
    if (height > 16) {
      ++none;
      ASSERT_EQ(root.kind, RootKind::none) << trial;
    } else if (height < 1) {
      ++tangents;
      ASSERT_EQ(root.kind, RootKind::tangent) << trial;
      EXPECT_NEAR(root.at / h, a, 1e-8 * a + d) << trial;
    }
  }
  EXPECT_GT(none, 2000);
  EXPECT_GT(tangents, 150);
}

TEST(Roots, ATouchBeforeACrossingComesFirst) {
  Exact p;
  p.root(0.25).root(0.25).root(0.75);
  const Root touch = leftmost_root(p.rounded(), {.h = 1});
  EXPECT_EQ(touch.kind, RootKind::tangent);
  EXPECT_NEAR(touch.at, 0.25, 1e-8);
  EXPECT_EQ(touch.sign_after, -1);
  const Root crossing = leftmost_root(p.rounded(), {.h = 1, .from = touch.at});
  EXPECT_EQ(crossing.kind, RootKind::crossing);
  EXPECT_NEAR(crossing.at, 0.75, 1e-15);
}

TEST(Roots, ARootExactlyAtTheEndCounts) {
  RandomRoots random{std::mt19937_64(8)};
  for (int trial = 0; trial < 2000; ++trial) {
    const double h = random.log_between(1e-12, 1e12) * (random.coin() ? 1 : -1);
    const int multiplicity = random.whole(1, 3);
    Exact unit;
    for (int m = 0; m < multiplicity; ++m) unit.root(1);
    fill(unit, random.whole(3, 16), random);
    const int before = sign_at(unit, 0.9), after = sign_at(unit, 1.1);
    const Root root = leftmost_root(unit.stretched(h).rounded(), {.h = h});
    ASSERT_EQ(root.kind, before == after ? RootKind::tangent : RootKind::crossing) << trial;
    EXPECT_EQ(root.sign_after, after) << trial;
    EXPECT_LE(std::abs(root.at), std::abs(h)) << trial;
    const double radius = multiplicity == 1 ? 4 * condition(unit, 1) : std::pow(eps, 1.0 / multiplicity) * 100;
    EXPECT_NEAR(root.at / h, 1, radius) << trial;
  }
}

TEST(Roots, ARootOutsideByMoreThanRoundingDoesNotCount) {
  RandomRoots random{std::mt19937_64(9)};
  for (int trial = 0; trial < 2000; ++trial) {
    const double h = random.log_between(1e-12, 1e12);
    Exact unit;
    unit.root(1);
    fill(unit, random.whole(1, 16), random);
    const double margin = 32 * condition(unit, 1);
    const std::vector<double> c = unit.stretched(h).rounded();
    EXPECT_EQ(leftmost_root(c, {.h = h * (1 - margin)}).kind, RootKind::none) << trial;
    EXPECT_EQ(leftmost_root(c, {.h = h * (1 + margin)}).kind, RootKind::crossing) << trial;
  }
}

TEST(Roots, DyadicRootsOnTheBordersOfBoxesAreFound) {
  for (const double r : {0.5, 0.25, 0.125, 0.75, 0.375}) {
    Exact p;
    p.root(r).pair(0.3, 0.1).pair(0.8, 0.05);
    const Root root = leftmost_root(p.rounded(), {.h = 1});
    EXPECT_EQ(root.kind, RootKind::crossing) << r;
    EXPECT_NEAR(root.at, r, 2 * condition(p, r)) << r;
    p.root(r);
    const Root touch = leftmost_root(p.rounded(), {.h = 1});
    EXPECT_EQ(touch.kind, RootKind::tangent) << r;
    EXPECT_NEAR(touch.at, r, 1e-7) << r;
  }
}

/// A mixed bag for the invariances: clear roots, touches, misses.
std::vector<double> any_polynomial(RandomRoots& random) {
  Exact p;
  const double a = random.between(0, 1);
  switch (random.whole(0, 3)) {
    case 0: p.root(a); break;
    case 1: p.root(a).root(a); break;
    case 2: p.pair(a, random.log_between(1e-9, 1e-2)); break;
    default: p.root(a).root(a + random.log_between(1e-9, 1e-2));
  }
  fill(p, random.whole(2, 12), random);
  return p.rounded();
}

TEST(Roots, PowersOfTwoChangeNothing) {
  RandomRoots random{std::mt19937_64(10)};
  for (int trial = 0; trial < 2000; ++trial) {
    const std::vector<double> c = any_polynomial(random);
    const double h = random.between(0.5, 1.5);
    const int time = random.whole(-40, 40), size = random.whole(-330, 330);
    std::vector<double> scaled = c;
    for (std::size_t k = 0; k < c.size(); ++k) scaled[k] = std::ldexp(c[k], size - time * static_cast<int>(k));
    const Root root = leftmost_root(c, {.h = h, .noise = 1e-20});
    const Root other = leftmost_root(scaled, {.h = std::ldexp(h, time), .noise = std::ldexp(1e-20, size)});
    ASSERT_EQ(root.kind, other.kind) << trial;
    ASSERT_EQ(root.sign_after, other.sign_after) << trial;
    ASSERT_EQ(std::ldexp(root.at, time), other.at) << trial;
  }
}

TEST(Roots, ScalingByAnyNumberChangesNoDecision) {
  RandomRoots random{std::mt19937_64(11)};
  for (int trial = 0; trial < 2000; ++trial) {
    Exact p;
    const double a = random.between(0.05, 0.95);
    const bool crossing = random.coin();
    if (crossing)
      p.root(a);
    else
      p.root(a).root(a);
    fill(p, random.whole(2, 12), random);
    p.times({random.log_between(1e-100, 1e100)});
    const Root root = leftmost_root(p.rounded(), {.h = 1});
    ASSERT_EQ(root.kind, crossing ? RootKind::crossing : RootKind::tangent) << trial;
  }
}

TEST(Roots, ExtremeSizesAreScaledAway) {
  for (const double size : {1e-200, 1e-100, 1.0, 1e100, 1e200})
    for (const double h : {1e-12, 1.0, 1e12}) {
      Exact p;
      p.root(0.3).root(0.7).pair(0.5, 0.2).times({size});
      p = p.stretched(h);
      const Root root = leftmost_root(p.rounded(), {.h = h});
      EXPECT_EQ(root.kind, RootKind::crossing) << size << ' ' << h;
      EXPECT_NEAR(root.at / h, 0.3, 1e-14) << size << ' ' << h;
    }
  // The powers of h alone leave the range of doubles, the terms do not.
  std::vector<double> c(31);
  c[0] = 1e-180;
  c[30] = -1e180;
  const Root root = leftmost_root(c, {.h = 2e-12});
  EXPECT_EQ(root.kind, RootKind::crossing);
  EXPECT_NEAR(root.at, 1e-12, 1e-26);
  EXPECT_EQ(leftmost_root(c, {.h = 0.9e-12}).kind, RootKind::none);
}

TEST(Roots, GradedPairsFarBelowTheStepAreResolved) {
  Exact p;
  p.root(1e-20).root(3e-20).pair(0.5, 0.3).root(2);
  const Root first = leftmost_root(p.rounded(), {.h = 1});
  EXPECT_EQ(first.kind, RootKind::crossing);
  EXPECT_NEAR(first.at / 1e-20, 1, 1e-14);
  const Root second = leftmost_root(p.rounded(), {.h = 1, .from = first.at});
  EXPECT_EQ(second.kind, RootKind::crossing);
  EXPECT_NEAR(second.at / 3e-20, 1, 1e-14);
}

TEST(Roots, TheHighestDegreeWorks) {
  // The Chebyshev polynomial of degree 40 in 1 - 2 tau, by its own recurrence: roots (1 - cos((2k+1) pi/80)) / 2.
  std::vector<Quad> previous{1}, chebyshev{1, -2};
  for (int degree = 2; degree <= max_degree; ++degree) {
    Exact next{chebyshev};
    next.times({2, -4});
    for (std::size_t k = 0; k < previous.size(); ++k) next.c[k] -= previous[k];
    previous = chebyshev;
    chebyshev = next.c;
  }
  const Root root = leftmost_root(Exact{chebyshev}.rounded(), {.h = 1});
  const double expected = std::pow(std::sin(std::acos(-1.0) / 160), 2);
  EXPECT_EQ(root.kind, RootKind::crossing);
  EXPECT_NEAR(root.at, expected, 2 * condition(Exact{chebyshev}, expected));
}

TEST(Evaluation, IsAccurateWhereTheTermsCancel) {
  Exact p;
  for (int m = 0; m < 9; ++m) p.root(2);  // integer coefficients, exact in doubles
  const std::vector<double> c = p.rounded();
  for (const double tau : {1.97, 1.99, 2.0, 2.02, 2.05}) {
    const double expected = static_cast<double>(value(p.c, tau));
    EXPECT_NEAR(evaluate(c, tau), expected, 2 * eps * std::abs(expected) + 1e3 * eps * eps * magnitude(c, tau));
    const double derivative = slope(p.c, tau);
    EXPECT_NEAR(evaluate_derivative(c, tau), derivative,
                2 * eps * std::abs(derivative) + 1e4 * eps * eps * magnitude(c, tau));
  }
}

TEST(Evaluation, GivesValueAndSlopeAtOneAndAtTwoPoints) {
  for (int degree = 0; degree <= 7; ++degree) {
    std::vector<double> c;
    for (int k = 0; k <= degree; ++k) c.push_back((k % 3 - 1.25) / (k + 1));
    const auto value = [&](double tau) {
      double sum = 0;
      for (int k = 0; k <= degree; ++k) sum += c[static_cast<size_t>(k)] * std::pow(tau, k);
      return sum;
    };
    const auto slope = [&](double tau) {
      double sum = 0;
      for (int k = 1; k <= degree; ++k) sum += k * c[static_cast<size_t>(k)] * std::pow(tau, k - 1);
      return sum;
    };
    const auto [middle, end] = evaluate_with_slope(c, 0.5, -1.25);
    for (const auto& [tau, found] : {std::pair{0.5, middle}, {-1.25, end}, {2.0, evaluate_with_slope(c, 2.0)}}) {
      const double size = (degree + 1) * magnitude(c, std::abs(tau));
      EXPECT_NEAR(found.value, value(tau), 8 * eps * size);
      EXPECT_NEAR(found.slope, slope(tau), 8 * eps * degree * size);
      EXPECT_EQ(evaluate_plainly(c, tau), found.value);
    }
  }
}

TEST(Evaluation, OfNothingAndOfOverflow) {
  EXPECT_EQ(evaluate({}, 2), 0);
  EXPECT_EQ(evaluate_derivative({}, 2), 0);
  EXPECT_EQ(evaluate(std::vector<double>{5}, 2), 5);
  EXPECT_EQ(evaluate_derivative(std::vector<double>{5}, 2), 0);
  EXPECT_EQ(evaluate(std::vector<double>{0, 0, 1e300}, 1e10), infinity);
}

}  // namespace
}  // namespace saltus
