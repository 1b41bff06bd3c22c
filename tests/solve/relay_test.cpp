#include "solve/relay.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "random.hpp"
#include "solve/piecewise.hpp"

namespace saltus {
namespace {

/// The definition, written down: sign(y) where y is not zero, within the limit elsewhere.
void expect_admissible(const RelayProblem& p, const Vec& sigma, double tolerance = 1e-9) {
  const Vec y = p.a + p.B * sigma;
  for (Index i = 0; i < sigma.size(); ++i) {
    const double limit = p.hold.size() > 0 ? p.hold[i] : 1.0;
    if (std::abs(y[i]) <= tolerance)
      EXPECT_LE(std::abs(sigma[i]), limit + tolerance) << i;
    else
      EXPECT_EQ(sigma[i], y[i] > 0 ? 1.0 : -1.0) << i << " y = " << y[i];
  }
}

/// Every admissible sigma of a problem with regular blocks, by trying all 3^n modes with full Gauss elimination.
std::vector<Vec> by_enumeration(const Mat& B, const Vec& a) {
  const int n = static_cast<int>(a.size());
  std::vector<Vec> found;
  int count = 1;
  for (int i = 0; i < n; ++i) count *= 3;
  for (int code = 0; code < count; ++code) {
    Mat A = Mat::Identity(n, n);
    Vec b(n);
    std::vector<int> mode(static_cast<size_t>(n));
    for (int i = 0, rest = code; i < n; ++i, rest /= 3) {
      mode[static_cast<size_t>(i)] = rest % 3 - 1;
      b[i] = rest % 3 - 1;
      if (rest % 3 == 1) A.row(i) = B.row(i), b[i] = -a[i];
    }
    for (int k = 0; k < n; ++k) {  // Gauss with row exchanges
      int p = k;
      for (int i = k; i < n; ++i)
        if (std::abs(A(i, k)) > std::abs(A(p, k))) p = i;
      A.row(k).swap(A.row(p));
      std::swap(b[k], b[p]);
      for (int i = k + 1; i < n; ++i) {
        const double m = A(i, k) / A(k, k);
        A.row(i) -= m * A.row(k);
        b[i] -= m * b[k];
      }
    }
    Vec sigma(n);
    for (int k = n - 1; k >= 0; --k) sigma[k] = (b[k] - A.row(k).tail(n - k - 1).dot(sigma.tail(n - k - 1))) / A(k, k);
    const Vec y = a + B * sigma;
    bool fits = sigma.allFinite();
    for (int i = 0; i < n && fits; ++i)
      fits = mode[static_cast<size_t>(i)] == 0 ? std::abs(sigma[i]) < 1 : mode[static_cast<size_t>(i)] * y[i] > 0;
    if (fits) found.push_back(sigma);
  }
  return found;
}

TEST(Relay, OneSwitchCrossesOrSlides) {
  const Mat B = Mat::Constant(1, 1, -2.0);
  for (const auto& [a, sigma, mode] : {std::tuple{5.0, 1.0, 1}, {-5.0, -1.0, -1}, {1.0, 0.5, 0}, {-0.5, -0.25, 0}}) {
    const RelaySolution s = solve_relay(RelayProblem{B, Vec::Constant(1, a)});
    ASSERT_EQ(s.status, SolveStatus::solved);
    EXPECT_DOUBLE_EQ(s.sigma[0], sigma);
    EXPECT_EQ(s.mode[0], mode);
    EXPECT_FALSE(s.degenerate[0]);
  }
}

TEST(Relay, EdgeOfSlidingIsFlagged) {
  const RelaySolution s = solve_relay(RelayProblem{-Mat::Identity(2, 2), Vec{1, 0.3}});
  ASSERT_EQ(s.status, SolveStatus::solved);
  EXPECT_DOUBLE_EQ(s.sigma[0], 1);
  EXPECT_TRUE(s.degenerate[0]);
  EXPECT_EQ(s.mode[0], 0);
  EXPECT_FALSE(s.degenerate[1]);
}

TEST(Relay, RandomAttractiveProblemsAgreeWithEnumeration) {
  Random random(99);
  int sliding = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const int n = 1 + trial % 6;
    Mat P = random.normals(n, n);  // P-type: a positive definite part and a skew part
    P = (P * P.transpose() / n + 0.2 * Mat::Identity(n, n) + 0.5 * (P - P.transpose()));
    const RelayProblem p{-P, random.normals(n)};
    const auto all = by_enumeration(p.B, p.a);
    ASSERT_EQ(all.size(), 1u) << trial;
    const RelaySolution dense = solve_relay(p);
    const RelaySolution sparse = solve_relay(SparseRelayProblem{SparseMat(p.B), p.a});
    ASSERT_EQ(dense.status, SolveStatus::solved);
    ASSERT_EQ(sparse.status, SolveStatus::solved);
    EXPECT_LT((dense.sigma - all[0]).max_abs(), 1e-10) << trial;
    EXPECT_LT((sparse.sigma - all[0]).max_abs(), 1e-10) << trial;
    for (int i = 0; i < n; ++i) sliding += dense.mode[static_cast<size_t>(i)] == 0;
    const auto listed = all_relay_solutions(p);
    ASSERT_EQ(listed.size(), 1u);
    EXPECT_LT((listed[0] - all[0]).max_abs(), 1e-10);
  }
  EXPECT_GT(sliding, 200);  // the sample must contain what is tested
}

TEST(Relay, ArbitraryProblemsAlwaysHaveTheAnswerFound) {
  Random random(99);
  for (int trial = 0; trial < 200; ++trial) {
    const int n = 1 + trial % 6;
    const RelayProblem p{random.normals(n, n), random.normals(n)};
    const RelaySolution s = solve_relay(p);
    ASSERT_EQ(s.status, SolveStatus::solved) << trial;
    expect_admissible(p, s.sigma);
    const auto all = by_enumeration(p.B, p.a), listed = all_relay_solutions(p);
    EXPECT_EQ(listed.size(), all.size()) << trial;
    bool among = false;
    for (const Vec& sigma : all) among |= (sigma - s.sigma).max_abs() < 1e-9;
    EXPECT_TRUE(among) << trial;
  }
}

TEST(Relay, ManySwitchesOfAnyKindAreSolved) {
  Random random(99);
  for (const int n : {20, 40, 60}) {
    const RelayProblem p{random.normals(n, n), 3 * random.normals(n)};
    const RelaySolution s = solve_relay(p);
    ASSERT_EQ(s.status, SolveStatus::solved) << n;
    expect_admissible(p, s.sigma, 1e-8);
  }
}

TEST(Relay, HundredsOfAttractiveSwitchesAreSolved) {
  Random random(99);
  for (const int n : {100, 300, 600}) {
    const Mat A = random.normals(n, n);
    const RelayProblem p{-(A * A.transpose() / n + 0.01 * Mat::Identity(n, n) + (A - A.transpose()) / n),
                         random.normals(n)};
    const RelaySolution s = solve_relay(p);
    ASSERT_EQ(s.status, SolveStatus::solved) << n;
    expect_admissible(p, s.sigma, 1e-10);
  }
}

TEST(Relay, RepellingSurfaceHasThreeAnswers) {
  const RelayProblem p{Mat::Constant(1, 1, 1.0), Vec::Constant(1, -0.5)};
  EXPECT_EQ(all_relay_solutions(p).size(), 3u);
  EXPECT_EQ(solve_relay(p).status, SolveStatus::solved);
}

TEST(Relay, RedundantSurfacesShareEvenly) {
  // Two switches on the same surface, v' = 0.6 - s1 - s2: shortest sum 0.6 is (0.3, 0.3).
  const RelaySolution s = solve_relay(RelayProblem{-Mat::Ones(2, 2), Vec::Constant(2, 0.6)});
  ASSERT_EQ(s.status, SolveStatus::solved);
  EXPECT_NEAR(s.sigma[0], 0.3, 1e-12);
  EXPECT_NEAR(s.sigma[1], 0.3, 1e-12);
  // Weights 1 and 0.1: the shortest would be beyond 1 in the first, so the rest goes to the second.
  const Vec b = Vec{1, 0.1};
  const RelaySolution t = solve_relay(RelayProblem{-b * b.transpose(), 1.05 * b});
  ASSERT_EQ(t.status, SolveStatus::solved);
  EXPECT_NEAR(t.sigma[0], 1, 1e-12);
  EXPECT_NEAR(t.sigma[1], 0.5, 1e-11);
  EXPECT_EQ(t.mode[0], 0);
}

TEST(Relay, RedundantSparseChainIsSolved) {
  // Every surface twice.
  const int n = 40;
  Mat B = Mat::Zero(2 * n, 2 * n);
  Vec a(2 * n);
  for (int i = 0; i < n; ++i)
    for (int k : {2 * i, 2 * i + 1}) {
      B.block(k, 2 * i, 1, 2).setConstant(-1);
      if (i > 0) B.block(k, 2 * i - 2, 1, 2).setConstant(0.3);
      a[k] = 2.5 * std::sin(i);
    }
  const RelaySolution s = solve_relay(SparseRelayProblem{SparseMat(B), a});
  ASSERT_EQ(s.status, SolveStatus::solved);
  expect_admissible({B, a}, s.sigma, 1e-9);
  const RelaySolution d = solve_relay(RelayProblem{B, a});
  EXPECT_LT((s.y - d.y).max_abs(), 1e-9);
}

TEST(Relay, WarmStartFromTheSolutionTakesOneStep) {
  Random random(99);
  const int n = 100;
  const Mat A = random.normals(n, n);
  RelayProblem p{-(A * A.transpose() / n + 0.1 * Mat::Identity(n, n)), random.normals(n)};
  ActiveFactor factor;
  const RelaySolution cold = solve_relay(p, {}, &factor);
  const int before = factor.factorisations();
  const RelaySolution warm = solve_relay(p, {.sigma0 = cold.sigma}, &factor);
  ASSERT_EQ(warm.status, SolveStatus::solved);
  EXPECT_EQ(warm.iterations, 1);
  EXPECT_EQ(factor.factorisations(), before);
  EXPECT_LT((warm.sigma - cold.sigma).max_abs(), 1e-12);
}

TEST(Relay, HoldingSwitchSticksUpToItsLimitAndThenSlips) {
  const Mat B = -Mat::Identity(1, 1);
  const Vec hold = Vec::Constant(1, 1.5);
  const RelaySolution stuck = solve_relay(RelayProblem{B, Vec::Constant(1, 1.4), hold});
  EXPECT_NEAR(stuck.sigma[0], 1.4, 1e-14);
  EXPECT_EQ(stuck.mode[0], 0);
  const RelaySolution slips = solve_relay(RelayProblem{B, Vec::Constant(1, 1.6), hold});
  EXPECT_EQ(slips.sigma[0], 1);
  EXPECT_NEAR(slips.y[0], 0.6, 1e-14);
  EXPECT_EQ(slips.mode[0], 1);
}

TEST(Relay, ReleasedSwitchMayReleaseItsNeighbour) {
  // Two blocks coupled by their reactions: when the first slips its force drops from 1.5 to 1 and the second cannot
  // hold.
  Mat B(2, 2);
  B << -1, 0, -1, -1;
  const RelaySolution s = solve_relay(RelayProblem{B, Vec{1.6, 2.6}, Vec::Constant(2, 1.5)});
  ASSERT_EQ(s.status, SolveStatus::solved);
  EXPECT_EQ(s.sigma[0], 1);
  EXPECT_EQ(s.sigma[1], 1);
  EXPECT_NEAR(s.y[0], 0.6, 1e-14);
  EXPECT_NEAR(s.y[1], 0.6, 1e-14);
}

TEST(Relay, BeltsOfManyBlocksTakeNoMoreIterationsThanShortOnes) {
  // Implicit step of n blocks coupled by springs: -B is tridiagonal; some stick, some slip.
  for (const int n : {1000, 100000}) {
    std::vector<SparseEntry> entries;
    for (int i = 0; i < n; ++i) {
      entries.push_back({i, i, -1.2});
      if (i > 0) entries.push_back({i, i - 1, 0.4}), entries.push_back({i - 1, i, 0.4});
    }
    SparseRelayProblem p{SparseMat(n, n, entries),
                         made(n, [](Index i) { return 1.5 * std::sin(0.7 * static_cast<double>(i)); })};
    const RelaySolution s = solve_relay(p);
    EXPECT_EQ(s.status, SolveStatus::solved);
    EXPECT_LE(s.iterations, 20);
    const Vec y = p.a + p.B * s.sigma;
    for (int i = 0; i < n; ++i)
      if (std::abs(s.sigma[i]) < 1)
        EXPECT_NEAR(y[i], 0, 1e-11);
      else
        EXPECT_GE(y[i] * s.sigma[i], -1e-11);
  }
}

TEST(Box, DualProblemKeepsTheRateInItsBounds) {
  // x is the force that keeps w = 2 x + q within [-1, 1].
  const auto solve = [](double q) {
    return solve_dual_box({Mat::Constant(1, 1, 2.0), Vec::Constant(1, q), -Vec::Ones(1), Vec::Ones(1)});
  };
  EXPECT_NEAR(solve(3).x[0], -1, 1e-14);
  EXPECT_NEAR(solve(-2).x[0], 0.5, 1e-14);
  EXPECT_EQ(solve(0.5).x[0], 0);
  EXPECT_EQ(solve(3).state[0], BoundState::upper);
}

TEST(Box, DualProblemIsThePrimalOneOfTheInverse) {
  Random random(99);
  for (int trial = 0; trial < 20; ++trial) {
    const int n = 1 + trial % 5;
    const Mat A = random.normals(n, n), M = A * A.transpose() + Mat::Identity(n, n), inverse = Lu(M).inverse();
    const Vec q = 3 * random.normals(n);
    const BoxSolution dual = solve_dual_box({M, q, -Vec::Ones(n), Vec::Ones(n)});
    // x = M^-1 (w - q): w in the box with -x in its normal cone is the primal problem for w with reversed sign
    const BoxSolution primal = solve_box({inverse, -inverse * q, -Vec::Ones(n), Vec::Ones(n)});
    ASSERT_EQ(dual.status, SolveStatus::solved);
    ASSERT_EQ(primal.status, SolveStatus::solved);
    EXPECT_LT((dual.w - primal.x).max_abs(), 1e-9) << trial;
    EXPECT_LT((dual.x - primal.w).max_abs(), 1e-9) << trial;
  }
}

TEST(Box, OneSidedAndFreeBoundsMix) {
  // w = x + q separately: lower bound, upper bound, free, fixed.
  const double inf = std::numeric_limits<double>::infinity();
  const BoxProblem p{Mat::Identity(4, 4), Vec{3, -5, 2, 7}, Vec{1, -inf, -inf, 2}, Vec{inf, 4, inf, 2}};
  const BoxSolution s = solve_box(p);
  ASSERT_EQ(s.status, SolveStatus::solved);
  EXPECT_EQ(s.x, (Vec{1, 4, -2, 2}));
  EXPECT_EQ(s.w, (Vec{4, -1, 0, 9}));
}

TEST(Box, BadBoundsAreBadInput) {
  EXPECT_EQ(solve_box({Mat::Identity(1, 1), Vec::Ones(1), Vec::Ones(1), -Vec::Ones(1)}).status, SolveStatus::bad_input);
  EXPECT_EQ(solve_relay(RelayProblem{Mat::Identity(1, 1), Vec::Ones(1), Vec::Constant(1, 0.5)}).status,
            SolveStatus::bad_input);
  EXPECT_EQ(solve_relay(RelayProblem{Mat::Identity(2, 2), Vec::Ones(1)}).status, SolveStatus::bad_input);
}

double graph(const Relation& r, double y) {
  double lambda = r.value + r.slope * y;
  for (const auto& j : r.jumps) lambda += y > j.at ? j.height : 0;
  for (const auto& k : r.kinks) lambda += y > k.at ? k.change * (y - k.at) : 0;
  return lambda;
}

TEST(Piecewise, RelationsHaveTheirGraphs) {
  for (const double y : {-3.0, -1.5, -0.2, 0.3, 1.7, 4.0}) {
    EXPECT_NEAR(graph(relay(2), y), y > 0 ? 2 : -2, 1e-14);
    EXPECT_NEAR(graph(saturation(-1, 2, 0.5), y), std::clamp(0.5 * y, -1.0, 2.0), 1e-14);
    EXPECT_NEAR(graph(relay_with_dead_zone(1, 3), y), y > 1 ? 3 : y < -1 ? -3 : 0, 1e-14);
    EXPECT_NEAR(graph(dead_zone(1, 2), y), y > 1 ? 2 * (y - 1) : y < -1 ? 2 * (y + 1) : 0, 1e-14);
  }
}

TEST(Piecewise, LoopWithSaturationIsClosed) {
  // y = a - 2 sat(y): unsaturated y = a/3, saturated y = a -+ 2.
  for (const auto& [a, y] : {std::pair{1.5, 0.5}, {6.0, 4.0}, {-6.0, -4.0}, {3.0, 1.0}}) {
    const PiecewiseSolution s = solve_piecewise({Mat::Constant(1, 1, -2.0), Vec::Constant(1, a), {saturation(-1, 1)}});
    ASSERT_EQ(s.status, SolveStatus::solved);
    EXPECT_NEAR(s.y[0], y, 1e-12);
    EXPECT_NEAR(s.lambda[0], std::clamp(y, -1.0, 1.0), 1e-12);
  }
}

TEST(Piecewise, RelayWithDeadZoneSlidesAtItsEdge) {
  // y = a - lambda, lambda = relay with dead zone 1 and level 2: for a in [1, 3] it slides at y = 1.
  const auto solve = [](double a) {
    return solve_piecewise({-Mat::Identity(1, 1), Vec::Constant(1, a), {relay_with_dead_zone(1, 2)}});
  };
  EXPECT_NEAR(solve(0.5).y[0], 0.5, 1e-12);
  EXPECT_NEAR(solve(2.2).y[0], 1, 1e-12);
  EXPECT_NEAR(solve(2.2).lambda[0], 1.2, 1e-12);
  EXPECT_NEAR(solve(5).y[0], 3, 1e-12);
  EXPECT_NEAR(solve(-2.5).lambda[0], -1.5, 1e-12);
}

TEST(Piecewise, RandomMonotoneLoopsLieOnTheirGraphs) {
  Random random(99);
  for (int trial = 0; trial < 50; ++trial) {
    const int n = 1 + trial % 5;
    const Mat A = random.normals(n, n);
    PiecewiseProblem p{-(A * A.transpose() / n + 0.3 * Mat::Identity(n, n)), 3 * random.normals(n), {}};
    for (int i = 0; i < n; ++i)
      p.relations.push_back(i % 3 == 0   ? saturation(-1, 1, 2)
                            : i % 3 == 1 ? relay_with_dead_zone(0.5, 1)
                                         : dead_zone(0.3, 2));
    const PiecewiseSolution s = solve_piecewise(p);
    ASSERT_EQ(s.status, SolveStatus::solved) << trial;
    EXPECT_LT((s.y - p.a - p.B * s.lambda).max_abs(), 1e-10);
    for (int i = 0; i < n; ++i) {
      const Relation& r = p.relations[static_cast<size_t>(i)];
      EXPECT_GE(s.lambda[i], graph(r, s.y[i] - 1e-9) - 1e-7) << trial;
      EXPECT_LE(s.lambda[i], graph(r, s.y[i] + 1e-9) + 1e-7) << trial;
    }
  }
}

}  // namespace
}  // namespace saltus
