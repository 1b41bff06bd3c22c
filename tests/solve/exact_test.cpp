// Complementarity problems against rational arithmetic: every active set is solved exactly (Gauss-Jordan on fractions
// of big integers), so that the number of solutions is known. Rows and columns of each problem are multiplied by powers
// of two, which changes no digit: units over as many decades as a test asks for.
#include <cmath>
#include <optional>

#include <gtest/gtest.h>
#include <boost/multiprecision/cpp_int.hpp>

#include "base/numbers.hpp"
#include "random.hpp"
#include "solve/contact.hpp"
#include "solve/lcp.hpp"
#include "solve/relay.hpp"

namespace saltus {
namespace {

using Rational = boost::multiprecision::cpp_rational;
using Fractions = std::vector<Rational>;

Rational exact(double x) {
  int exponent = 0;
  const auto digits = static_cast<long long>(std::ldexp(std::frexp(x, &exponent), 53));
  const boost::multiprecision::cpp_int power = boost::multiprecision::cpp_int(1) << std::abs(exponent - 53);
  return exponent >= 53 ? Rational(power) * digits : Rational(digits) / Rational(power);
}

std::optional<Fractions> solve_exactly(std::vector<Fractions> A) {  // augmented by the right side
  const size_t n = A.size();
  for (size_t c = 0; c < n; ++c) {
    size_t pivot = c;
    while (pivot < n && A[pivot][c] == 0) ++pivot;
    if (pivot == n) return {};
    std::swap(A[c], A[pivot]);
    for (size_t r = 0; r < n; ++r) {
      if (r == c || A[r][c] == 0) continue;
      const Rational factor = A[r][c] / A[c][c];
      for (size_t k = c; k <= n; ++k) A[r][k] -= factor * A[c][k];
    }
  }
  Fractions x(n);
  for (size_t i = 0; i < n; ++i) x[i] = A[i][n] / A[i][i];
  return x;
}

/// All isolated solutions of a box problem; `singular`: some active set has a singular block, where more may lie.
struct Truth {
  std::vector<Fractions> solutions;
  bool singular = false;
};

Truth all_exactly(const BoxProblem& p) {
  const size_t n = static_cast<size_t>(p.q.size());
  const auto at = [](size_t i) { return static_cast<Index>(i); };
  std::vector<Fractions> M(n, Fractions(n));
  Fractions q(n);
  for (size_t i = 0; i < n; ++i) {
    q[i] = exact(p.q[at(i)]);
    for (size_t j = 0; j < n; ++j) M[i][j] = exact(p.M(at(i), at(j)));
  }
  const auto row = [&](size_t i, const Fractions& x) {
    Rational w = q[i];
    for (size_t j = 0; j < n; ++j) w += M[i][j] * x[j];
    return w;
  };
  Truth truth;
  std::vector<int> state(n, -1);
  for (bool more = true; more;) {
    Fractions x(n, 0);
    std::vector<size_t> inside;
    bool possible = true;
    for (size_t i = 0; i < n; ++i) {
      const double bound = state[i] < 0 ? p.lo[at(i)] : p.hi[at(i)];
      if (state[i] == 0)
        inside.push_back(i);
      else if (std::isinf(bound))
        possible = false;
      else
        x[i] = exact(bound);
    }
    if (possible) {
      std::vector<Fractions> A;
      for (const size_t i : inside) {
        Fractions line;
        for (const size_t j : inside) line.push_back(M[i][j]);
        line.push_back(-row(i, x));
        A.push_back(line);
      }
      if (const auto part = solve_exactly(std::move(A))) {
        for (size_t k = 0; k < inside.size(); ++k) x[inside[k]] = (*part)[k];
        for (size_t i = 0; i < n && possible; ++i) {
          const bool low = std::isfinite(p.lo[at(i)]) && x[i] < exact(p.lo[at(i)]);
          const bool high = std::isfinite(p.hi[at(i)]) && x[i] > exact(p.hi[at(i)]);
          possible = !low && !high && (state[i] >= 0 || row(i, x) >= 0) && (state[i] <= 0 || row(i, x) <= 0);
        }
        if (possible && std::find(truth.solutions.begin(), truth.solutions.end(), x) == truth.solutions.end())
          truth.solutions.push_back(x);
      } else {
        truth.singular = true;
      }
    }
    more = false;
    for (int& s : state) {
      if (s < 1) {
        ++s, more = true;
        break;
      }
      s = -1;
    }
  }
  return truth;
}

bool is_one_of(const std::vector<Fractions>& solutions, const Vec& x) {
  for (const Fractions& s : solutions) {
    bool fits = true;
    for (Index i = 0; i < x.size(); ++i) {
      const double value = static_cast<double>(s[static_cast<size_t>(i)]);
      fits = fits && std::abs(x[i] - value) <= 1e-6 * std::abs(value) + 1e-12;
    }
    if (fits) return true;
  }
  return false;
}

Vec units(Random& random, int n, double decades) {
  return made(n, [&] { return std::exp2(std::round(random.uniform(-3.32 * decades, 3.32 * decades))); });
}

/// Entries from -3 to 3, many of them equal or zero, or normal ones; every second one a P-matrix.
BoxProblem some_problem(Random& random, int trial, double decades) {
  const int n = 1 + trial % 4;
  BoxProblem p{random.normals(n, n), random.normals(n), Vec::Zero(n), Vec::Constant(n, inf)};
  if (trial / 4 % 2 == 0) {
    p.M = made(n, n, [&] { return std::round(random.uniform(-3.4, 3.4)); });
    p.q = made(n, [&] { return std::round(random.uniform(-3.4, 3.4)); });
  }
  if (trial / 8 % 2 == 0) {
    p.M.diagonal().setZero();
    p.M.diagonal() = p.M.cwiseAbs().row_sums() + Vec::Ones(n);
  }
  const Vec row = units(random, n, decades), column = units(random, n, decades);
  p.M = row.asDiagonal() * p.M * column.asDiagonal();
  p.q = row.cwiseProduct(p.q);
  p.hi = column.cwiseInverse();  // for boxes: the unit box in these units
  return p;
}

const double all_decades[] = {0, 4, 6, 9};

TEST(Exact, NoSolutionIsSaidOnlyOfProblemsWithout) {
  Random random(2001);
  int open = 0;
  for (const double decades : all_decades) {
    for (int trial = 0; trial < 1500; ++trial) {
      BoxProblem p = some_problem(random, trial, decades);
      p.hi.setConstant(inf);
      const Truth truth = all_exactly(p);
      const LcpSolution s = solve_lcp(LcpProblem{p.M, p.q});
      if (truth.solutions.empty()) {
        if (!truth.singular) {
          EXPECT_NE(s.status, SolveStatus::solved) << decades << ' ' << trial;
        }
        open += s.status == SolveStatus::ray || s.status == SolveStatus::not_converged;
        continue;
      }
      EXPECT_NE(s.status, SolveStatus::no_solution) << decades << ' ' << trial;
      open += s.status != SolveStatus::solved;
      if (s.status == SolveStatus::solved && !truth.singular) {
        EXPECT_TRUE(is_one_of(truth.solutions, s.z)) << decades << ' ' << trial << ": " << s.z.transpose();
      }
    }
  }
  EXPECT_LE(open, 3) << "of 6000 were left undecided";
}

TEST(Exact, EverySolutionIsListed) {
  Random random(2002);
  for (const double decades : all_decades) {
    for (int trial = 0; trial < 500; ++trial) {
      BoxProblem p = some_problem(random, trial, decades);
      p.hi.setConstant(inf);
      const Truth truth = all_exactly(p);
      bool complete = false;
      const std::vector<Vec> all = all_lcp_solutions({p.M, p.q}, 1e-10, &complete);
      if (truth.singular) {
        if (complete && !truth.solutions.empty()) {
          EXPECT_FALSE(all.empty()) << decades << ' ' << trial;
        }
      } else {
        EXPECT_EQ(all.size(), truth.solutions.size()) << decades << ' ' << trial;
      }
    }
  }
}

TEST(Exact, BoxesAndRelaysAreSolvedInAllUnits) {
  Random random(2003);
  for (const double decades : all_decades) {
    for (int trial = 0; trial < 1000; ++trial) {
      BoxProblem p = some_problem(random, trial, decades);
      p.lo = -p.hi;
      for (Index i = 0; i < p.q.size(); ++i) {
        if ((trial + i) % 5 == 0) p.lo[i] = 0;
        if ((trial + i) % 7 == 0) p.hi[i] = inf;
      }
      const Truth truth = all_exactly(p);
      if (truth.solutions.empty()) continue;
      const BoxSolution s = solve_box(p);
      ASSERT_EQ(s.status, SolveStatus::solved) << decades << ' ' << trial;
      if (!truth.singular) {
        EXPECT_LE(box_residual(p, s.x), 1e-12);
      }
    }
    for (int trial = 0; trial < 500; ++trial) {
      const BoxProblem p = some_problem(random, trial, decades);
      const RelaySolution s = solve_relay({-p.M, -p.q});
      ASSERT_EQ(s.status, SolveStatus::solved) << decades << ' ' << trial;
    }
  }
}

TEST(Exact, ContactsOfBodiesOfAnyMassAreSolved) {
  // W = J m^-1 J^T is positive semidefinite, so that friction in the plane has a solution (Stewart and Trinkle).
  Random random(2004);
  for (const double decades : {0.0, 3.0, 6.0}) {
    for (int trial = 0; trial < 300; ++trial) {
      const int m = 1 + trial % 3, bodies = 1 + trial / 3 % 3;
      Mat J = random.normals(2 * m, 3 * bodies);
      for (int i = 0; i < m; ++i)  // a body and the floor
        for (int b = 0; b < bodies; ++b)
          if (b != (i + trial) % bodies) J.block(2 * i, 3 * b, 2, 3).setZero();
      const Vec inverse_mass = units(random, 3 * bodies, decades);
      const Vec v = inverse_mass.cwiseProduct(random.normals(3 * bodies));
      ContactProblem p{2, J * inverse_mass.asDiagonal() * J.transpose(), J * v,
                       made(m, [&] { return random.uniform(0, 1.5); })};
      const ContactSolution s = solve_contact(p);
      EXPECT_TRUE(s.status == SolveStatus::solved || s.status == SolveStatus::nonunique)
          << decades << ' ' << trial << ' ' << s.residual;
    }
  }
}

}  // namespace
}  // namespace saltus
