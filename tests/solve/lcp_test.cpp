#include "solve/lcp.hpp"

#include <cmath>
#include <fstream>
#include <functional>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "random.hpp"

namespace saltus {
namespace {

using Json = nlohmann::json;

double number(const Json& value) {
  if (value.is_number()) return value.get<double>();
  const std::string text = value.get<std::string>();
  const size_t slash = text.find('/');
  return slash == std::string::npos ? std::stod(text)
                                    : std::stod(text.substr(0, slash)) / std::stod(text.substr(slash + 1));
}

Vec vector_of(const Json& list) {
  Vec v(static_cast<Index>(list.size()));
  for (size_t i = 0; i < list.size(); ++i) v[static_cast<Index>(i)] = number(list[i]);
  return v;
}

Mat matrix_of(const Json& rows) {
  Mat M(static_cast<Index>(rows.size()), static_cast<Index>(rows.size()));
  for (size_t i = 0; i < rows.size(); ++i) M.row(static_cast<Index>(i)) = vector_of(rows[i]).transpose();
  return M;
}

const Json& reference() {
  static const Json data = Json::parse(std::ifstream(std::string(SALTUS_SOURCE_DIR) + "/tests/solve/lcp.json"));
  return data;
}

bool is_one_of(const Json& solutions, const Vec& z, double tolerance) {
  for (const Json& s : solutions)
    if ((vector_of(s["z"]) - z).max_abs() <= tolerance) return true;
  return false;
}

/// max |min(z, w)| relative to the sizes in the problem: written down again here, not the library's.
double natural_residual(const Mat& M, const Vec& q, const Vec& z) {
  const Vec w = M * z + q;
  const double size_w = q.max_abs() + (M * z).max_abs();
  const double size_z = std::max(z.max_abs(), 1e-300);
  double worst = 0;
  for (Index i = 0; i < q.size(); ++i) worst = std::max(worst, std::abs(std::min(z[i] / size_z, w[i] / size_w)));
  return worst;
}

void expect_solved(const LcpProblem& p, const char* what, LcpMethod method = LcpMethod::automatic) {
  const LcpSolution s = solve_lcp(p, {.method = method});
  ASSERT_EQ(s.status, SolveStatus::solved)
      << what << " n = " << p.q.size() << " by " << name(method) << ", residual " << s.residual;
  EXPECT_LT(natural_residual(p.M, p.q, s.z), 1e-10) << what << " n = " << p.q.size();
  EXPECT_GE(s.z.minCoeff(), 0);
}

const int sizes[] = {1, 2, 3, 5, 10, 30, 100, 300, 1000};

TEST(Lcp, ReferenceProblemsAreSolvedExactly) {
  for (const Json& problem : reference()["lcp"]) {
    const LcpProblem p{matrix_of(problem["M"]), vector_of(problem["q"])};
    for (const LcpMethod method : {LcpMethod::automatic, LcpMethod::lemke}) {
      const LcpSolution s = solve_lcp(p, {.method = method});
      if (problem["solutions"].empty()) {
        EXPECT_EQ(s.status, SolveStatus::no_solution) << problem["id"];
        continue;
      }
      ASSERT_EQ(s.status, SolveStatus::solved) << problem["id"];
      EXPECT_TRUE(is_one_of(problem["solutions"], s.z, 1e-12)) << problem["id"] << ": " << s.z.transpose();
    }
  }
}

TEST(Lcp, LemkeTakesTheLexicographicPath) {
  int compared = 0;
  for (const Json& problem : reference()["lcp"]) {
    if (problem["lemke_lex"] != "solved") continue;
    const LcpProblem p{matrix_of(problem["M"]), vector_of(problem["q"])};
    EXPECT_EQ(solve_lcp(p, {.method = LcpMethod::lemke}).iterations, problem["lemke_lex_pivots"].get<int>())
        << problem["id"];
    ++compared;
  }
  EXPECT_GE(compared, 6);
}

TEST(Lcp, AllSolutionsOfReferenceProblemsAreListed) {
  for (const Json& problem : reference()["lcp"]) {
    const LcpProblem p{matrix_of(problem["M"]), vector_of(problem["q"])};
    const auto all = all_lcp_solutions(p);
    EXPECT_EQ(all.size(), problem["n_isolated_or_vertex_solutions"].get<size_t>()) << problem["id"];
    for (const Vec& z : all) EXPECT_TRUE(is_one_of(problem["solutions"], z, 1e-12)) << problem["id"];
    EXPECT_EQ(is_p_matrix(p.M), problem["P_matrix"].get<bool>()) << problem["id"];
  }
}

TEST(Lcp, ReferenceBoxProblemsAreSolvedExactly) {
  for (const Json& problem : reference()["box"]) {
    const BoxProblem p{matrix_of(problem["M"]), vector_of(problem["q"]), vector_of(problem["l"]),
                       vector_of(problem["u"])};
    const BoxSolution s = solve_box(p);
    ASSERT_EQ(s.status, SolveStatus::solved) << problem["id"];
    EXPECT_TRUE(is_one_of(problem["solutions"], s.x, 1e-12)) << problem["id"];
  }
}

TEST(Lcp, CyclingExamplesOfKostrevaAreSolved) {
  // I + 2 C with the cyclic shift C: every ratio ties. P for odd n; z = 1/3.
  for (const int n : {3, 5, 7, 9, 11, 25}) {
    LcpProblem p{Mat::Identity(n, n), -Vec::Ones(n)};
    for (int i = 0; i < n; ++i) p.M(i, (i + 1) % n) = 2;
    for (const LcpMethod method : {LcpMethod::automatic, LcpMethod::lemke}) {
      const LcpSolution s = solve_lcp(p, {.method = method});
      ASSERT_EQ(s.status, SolveStatus::solved) << n;
      EXPECT_LT((s.z - Vec::Constant(n, 1.0 / 3)).max_abs(), 1e-12);
    }
  }
}

TEST(Lcp, BardsCycleOfMurtyIsLeft) {
  // Exchanging one index at a time cycles here.
  const LcpProblem p{(Mat(3, 3) << 1, 2, 0, 0, 1, 2, 2, 0, 1).finished(), Vec::Constant(3, -1.0)};
  const LcpSolution s = solve_lcp(p, {.method = LcpMethod::principal_pivoting, .z0 = Vec::Unit(3, 0)});
  ASSERT_EQ(s.status, SolveStatus::solved);
  EXPECT_LT((s.z - Vec::Constant(3, 1.0 / 3)).max_abs(), 1e-12);
}

TEST(Lcp, TriangularExamplesOfMurtyAreSolved) {
  for (const int n : {3, 10, 30, 60}) {
    Mat M = Mat::Identity(n, n);
    for (int i = 0; i < n; ++i) M.row(i).tail(n - i - 1).setConstant(2);
    const LcpSolution s = solve_lcp(LcpProblem{M, -Vec::Ones(n)}, {.method = LcpMethod::lemke});
    ASSERT_EQ(s.status, SolveStatus::solved) << n;
    EXPECT_LT((s.z - Vec::Unit(n, n - 1)).max_abs(), 1e-12);
  }
  // Lower triangular with q_i = -(2^n + ... + 2^(n-i+1)): exponentially many single pivots; z = (2^n, 0, ..., 0).
  for (const int n : {4, 12}) {
    LcpProblem p{Mat::Identity(n, n), Vec(n)};
    double sum = 0;
    for (int i = 0; i < n; ++i) {
      p.M.row(i).head(i).setConstant(2);
      p.q[i] = -(sum += std::ldexp(1.0, n - i));
    }
    for (const LcpMethod method : {LcpMethod::automatic, LcpMethod::lemke, LcpMethod::principal_pivoting}) {
      const LcpSolution s = solve_lcp(p, {.method = method});
      ASSERT_EQ(s.status, SolveStatus::solved) << n << name(method);
      EXPECT_LT((s.z - std::ldexp(1.0, n) * Vec::Unit(n, 0)).max_abs(), 1e-12 * std::ldexp(1.0, n));
    }
  }
}

TEST(Lcp, ExponentialExampleOfFathyIsSolved) {
  for (const int n : {4, 8, 10}) {
    Mat L = Mat::Identity(n, n);
    for (int i = 0; i < n; ++i) L.row(i).head(i).setConstant(2);
    const LcpProblem p{L * L.transpose(), -Vec::Ones(n)};
    for (const LcpMethod method : {LcpMethod::automatic, LcpMethod::lemke, LcpMethod::principal_pivoting}) {
      const LcpSolution s = solve_lcp(p, {.method = method});
      ASSERT_EQ(s.status, SolveStatus::solved) << n;
      EXPECT_LT((s.z - Vec::Unit(n, 0)).max_abs(), 1e-11) << n;
    }
  }
}

Mat random_m_matrix(Random& random, int n) {
  Mat N = made(n, n, [&] { return -random.uniform(0, 1); });
  for (int i = 0; i < n; ++i) N(i, i) = 0;
  const Vec sums = -N.row_sums();
  N.diagonal() = 1.01 * sums + Vec::Constant(n, 0.1);
  return N;
}

Mat random_p_matrix(Random& random, int n) {
  Mat M = random.normals(n, n);
  M.diagonal().setZero();
  const Vec sums = M.cwiseAbs().row_sums();
  M.diagonal() = 1.05 * sums + Vec::Constant(n, 0.1);
  const Vec row = made(n, [&] { return random.uniform(0.1, 10); });
  const Vec column = made(n, [&] { return random.uniform(0.1, 10); });
  return row.asDiagonal() * M * column.asDiagonal();
}

TEST(Lcp, RandomMMatricesAreSolved) {
  Random random(12345);
  for (const int n : sizes) {
    const LcpProblem p{random_m_matrix(random, n), random.normals(n)};
    expect_solved(p, "M-matrix");
    if (n <= 300) expect_solved(p, "M-matrix", LcpMethod::lemke);
  }
}

TEST(Lcp, RandomPMatricesAreSolved) {
  Random random(12345);
  for (const int n : sizes) {
    const LcpProblem p{random_p_matrix(random, n), random.normals(n)};
    expect_solved(p, "P-matrix");
    expect_solved(p, "P-matrix", LcpMethod::lemke);
  }
}

TEST(Lcp, RandomSemidefiniteMatricesAreSolved) {
  Random random(12345);
  for (const int n : sizes) {
    const int rank = std::max(1, n / 3);
    const Mat A = random.normals(n, rank), B = random.normals(n, n);
    const Mat skew = n % 2 == 0 ? Mat(B - B.transpose()) : Mat::Zero(n, n);
    const Mat M = A * A.transpose() / rank + skew;
    // feasible by construction, so that a solution exists
    const Vec z = random.normals(n).cwiseMax(0), w = random.normals(n).cwiseMax(0);
    const LcpProblem p{M, w - M * z};
    expect_solved(p, "semidefinite");
    if (n <= 300) expect_solved(p, "semidefinite", LcpMethod::lemke);
    if (n <= 30) expect_solved(p, "semidefinite", LcpMethod::principal_pivoting);
  }
}

TEST(Lcp, RandomCopositiveMatricesAreSolved) {
  Random random(12345);
  for (const int n : sizes) {
    Mat M = made(n, n, [&] { return random.uniform(0, 1); });  // nonnegative, not P
    M.diagonal() += Vec::Constant(n, 0.01);
    expect_solved({M, random.normals(n)}, "copositive");
    const Mat A = random.normals(n, n), B = random.normals(n, n);
    expect_solved({M + (A - A.transpose()) + B * B.transpose() / n, random.normals(n)}, "copositive, not symmetric");
    // q = -1 asks for a symmetric equilibrium of a random game, for which no method is known to be fast
    if (n <= 30) expect_solved({M, -Vec::Ones(n)}, "game");
  }
}

TEST(Lcp, RandomDegenerateProblemsAreSolved) {
  Random random(12345);
  for (const int n : sizes) {
    for (const bool whole_numbers : {false, true}) {
      Mat M = random_p_matrix(random, n);
      if (whole_numbers)
        M = made(n, n, [&](Index i, Index j) { return std::round(3 * M(i, j)); }),
        M.diagonal() = M.cwiseAbs().row_sums() + Vec::Ones(n);
      Vec z = Vec::Zero(n), w = Vec::Zero(n);  // a third of the pairs has z_i = w_i = 0
      for (int i = 0; i < n; ++i) (i % 3 == 0 ? z : w)[i] = i % 3 == 2 ? 0.0 : 1.0 + i % 5;
      const LcpProblem p{M, w - M * z};
      expect_solved(p, "degenerate");
      if (n <= 300) expect_solved(p, "degenerate", LcpMethod::lemke);
      const LcpSolution s = solve_lcp(p);
      EXPECT_LT((s.z - z).max_abs(), 1e-9) << n;
    }
  }
}

TEST(Lcp, InfeasibleProblemsAreProvedInfeasible) {
  Random random(12345);
  for (const int n : {1, 2, 5, 20, 60}) {
    // u free to choose, but b.u >= 1 and -b.u >= 1 (as rows of the same problem) contradict each other.
    Mat M = Mat::Zero(n + 2, n + 2);
    M.topLeftCorner(n, n).setIdentity();
    const Vec b = random.normals(n);
    M.block(n, 0, 1, n) = b.transpose();
    M.block(n + 1, 0, 1, n) = -b.transpose();
    M.block(0, n, n, 1) = -b;
    M.block(0, n + 1, n, 1) = b;
    Vec q(n + 2);
    q << random.normals(n), -1, -1;
    const LcpSolution s = solve_lcp(LcpProblem{M, q});
    ASSERT_EQ(s.status, SolveStatus::no_solution) << n;
    ASSERT_EQ(s.certificate.size(), n + 2);
    EXPECT_GE(s.certificate.minCoeff(), 0);
    EXPECT_LT((M.transpose() * s.certificate).maxCoeff(), 1e-9 * s.certificate.maxCoeff());
    EXPECT_LT(q.dot(s.certificate), 0);
  }
}

TEST(Lcp, FeasibleButUnsolvableProblemIsRecognised) {
  // w = (z_2 - 1, z_2): feasible for z_2 >= 1, but then z_2 w_2 > 0.
  const LcpProblem p{(Mat(2, 2) << 0, 1, 0, 1).finished(), Vec{-1, 0}};
  EXPECT_TRUE(all_lcp_solutions(p).empty());
  EXPECT_EQ(solve_lcp(p).status, SolveStatus::no_solution);
  EXPECT_EQ(solve_lcp(p).certificate.size(), 0);
  const LcpProblem q{(Mat(2, 2) << -1, 0, 2, 1).finished(), Vec{-1, 3}};
  const LcpSolution s = solve_lcp(q);  // first row: -z_1 - 1 < 0 always
  EXPECT_EQ(s.status, SolveStatus::no_solution);
  EXPECT_EQ(s.certificate, Vec::Unit(2, 0));
}

TEST(Lcp, SolutionOnASingularFaceIsFound) {
  // z_1 >= 1 with z_2 = 0, or z_1 = 1 + z_2: every principal submatrix that matters is singular.
  const LcpProblem p{(Mat(2, 2) << 0, 0, 1, -1).finished(), Vec{0, -1}};
  const LcpSolution s = solve_lcp(p);
  ASSERT_EQ(s.status, SolveStatus::solved);
  EXPECT_GE(s.z[0], 1 - 1e-12);
  EXPECT_NEAR(s.z[1] * (s.z[0] - s.z[1] - 1), 0, 1e-12);
}

TEST(Lcp, AllMethodsAgreeOnPositiveDefiniteProblems) {
  Random random(12345);
  const LcpMethod methods[] = {LcpMethod::lemke, LcpMethod::principal_pivoting, LcpMethod::projected_gradient,
                               LcpMethod::newton_fischer};
  for (const int n : {1, 3, 10, 40}) {
    for (int trial = 0; trial < 5; ++trial) {
      const Mat A = random.normals(n, n);
      const LcpProblem p{A * A.transpose() / n + Mat::Identity(n, n), random.normals(n)};
      const SparseLcpProblem sparse{SparseMat(p.M), p.q};
      const Vec z = solve_lcp(p).z;
      for (const LcpMethod method : methods) {
        const LcpSolution s = solve_lcp(p, {.method = method});
        ASSERT_EQ(s.status, SolveStatus::solved) << name(method) << " n = " << n;
        EXPECT_LT((s.z - z).max_abs(), 1e-10) << name(method);
        const LcpSolution t = solve_lcp(sparse, {.method = method});
        ASSERT_EQ(t.status, SolveStatus::solved) << name(method) << " sparse, n = " << n;
        EXPECT_LT((t.z - z).max_abs(), 1e-10) << name(method) << " sparse";
      }
    }
  }
}

TEST(Lcp, IterativeMethodsConvergeWithoutHelp) {
  Random random(12345);
  const int n = 30;
  const Mat A = random.normals(n, n);
  const LcpProblem p{A * A.transpose() / n + Mat::Identity(n, n), random.normals(n)};
  for (const LcpMethod method : {LcpMethod::projected_gradient, LcpMethod::newton_fischer}) {
    const LcpSolution s = solve_lcp(p, {.method = method, .tolerance = 1e-10, .polish = false});
    EXPECT_EQ(s.status, SolveStatus::solved) << name(method) << ' ' << s.residual;
    EXPECT_LT(natural_residual(p.M, p.q, s.z), 1e-9) << name(method);
  }
}

TEST(Lcp, UnitsOfRowsAndColumnsDoNotMatter) {
  Random random(12345);
  const int n = 20;
  const Mat M = random_p_matrix(random, n);
  const Vec q = random.normals(n), z = solve_lcp(LcpProblem{M, q}).z;
  Vec row(n), column(n);
  for (int i = 0; i < n; ++i)
    row[i] = std::pow(10.0, random.uniform(-8, 8)), column[i] = std::pow(10.0, random.uniform(-8, 8));
  const LcpSolution s = solve_lcp(LcpProblem{row.asDiagonal() * M * column.asDiagonal(), row.cwiseProduct(q)});
  ASSERT_EQ(s.status, SolveStatus::solved);
  EXPECT_LT((column.cwiseProduct(s.z) - z).max_abs(), 1e-9 * z.maxCoeff());
}

TEST(Lcp, ResidualSeesAWrongAnswer) {
  const LcpProblem p{Mat::Identity(2, 2), Vec{-1, 1}};
  EXPECT_EQ(lcp_residual(p, Vec{1, 0}), 0);
  EXPECT_GT(lcp_residual(p, Vec{0, 0}), 0.9);
  EXPECT_GT(lcp_residual(p, Vec{1, 1}), 0.4);
  EXPECT_NEAR(lcp_residual(p, Vec{1 + 1e-6, 0}), 0.5e-6, 1e-9);
}

TEST(Lcp, WarmStartReusesTheFactors) {
  Random random(12345);
  const int n = 200;
  const Mat A = random.normals(n, n);
  LcpProblem p{A * A.transpose() / n + Mat::Identity(n, n), random.normals(n)};
  LcpWorkspace workspace;
  const LcpSolution first = solve_lcp(p, {}, &workspace);
  const int before = workspace.factor.factorisations();
  p.q *= 1.001;
  const LcpSolution second = solve_lcp(p, {.z0 = first.z}, &workspace);
  ASSERT_EQ(second.status, SolveStatus::solved);
  EXPECT_EQ(second.iterations, 1);
  EXPECT_EQ(workspace.factor.factorisations(), before);
  EXPECT_LT((second.z - 1.001 * first.z).max_abs(), 1e-12);
}

TEST(Lcp, SparsePatternIsAnalysedOnce) {
  // 2D Laplacian: not banded, everything active; new values on the same pattern.
  const int side = 30, n = side * side;
  std::vector<SparseEntry> entries;
  for (int i = 0; i < n; ++i) {
    entries.push_back({i, i, 4.0});
    if (i % side > 0) entries.push_back({i, i - 1, -1.0}), entries.push_back({i - 1, i, -1.0});
    if (i >= side) entries.push_back({i, i - side, -1.0}), entries.push_back({i - side, i, -1.0});
  }
  SparseLcpProblem p{SparseMat(n, n, entries), -Vec::Ones(n)};
  LcpWorkspace workspace;
  ASSERT_EQ(solve_lcp(p, {}, &workspace).status, SolveStatus::solved);
  EXPECT_EQ(workspace.factor.analyses(), 1);
  p.M *= 2;
  const LcpSolution s = solve_lcp(p, {}, &workspace);
  ASSERT_EQ(s.status, SolveStatus::solved);
  EXPECT_EQ(workspace.factor.analyses(), 1);
  EXPECT_EQ(workspace.factor.factorisations(), 2);
  EXPECT_LT(natural_residual(Mat(p.M), p.q, s.z), 1e-12);
}

TEST(Lcp, ObstacleProblemAgreesWithDenseLemke) {
  const int side = 12, n = side * side;
  Mat M = Mat::Zero(n, n);
  for (int i = 0; i < n; ++i) {
    M(i, i) = 4;
    if (i % side > 0) M(i, i - 1) = M(i - 1, i) = -1;
    if (i >= side) M(i, i - side) = M(i - side, i) = -1;
  }
  const Vec q = made(n, [](Index i) { return std::sin(0.37 * static_cast<double>(i)) - 0.1; });
  const LcpSolution dense = solve_lcp(LcpProblem{M, q}, {.method = LcpMethod::lemke});
  const LcpSolution sparse = solve_lcp(SparseLcpProblem{SparseMat(M), q});
  ASSERT_EQ(dense.status, SolveStatus::solved);
  ASSERT_EQ(sparse.status, SolveStatus::solved);
  EXPECT_LT((dense.z - sparse.z).max_abs(), 1e-11);
}

/// Contacts of n beads of unit mass, the first with the floor; q_0 is gravity over one step.
SparseLcpProblem bead_column(int n, double weight) {
  std::vector<SparseEntry> entries;
  for (int i = 0; i < n; ++i) {
    entries.push_back({i, i, i == 0 ? 1.0 : 2.0});
    if (i > 0) entries.push_back({i, i - 1, -1.0}), entries.push_back({i - 1, i, -1.0});
  }
  SparseLcpProblem p{SparseMat(n, n, entries), Vec::Zero(n)};
  p.q[0] = -weight;
  return p;
}

TEST(Lcp, ColumnOfBeadsCarriesItsWeight) {
  const double weight = 9.81e-3;
  for (const int n : {1, 10, 100, 1000, 10000}) {
    const LcpSolution s = solve_lcp(bead_column(n, weight));
    ASSERT_EQ(s.status, SolveStatus::solved) << n;
    EXPECT_LE(s.iterations, 5) << n;
    for (int i = 0; i < n; i += std::max(1, n / 7)) EXPECT_NEAR(s.z[i] / ((n - i) * weight), 1, 1e-9) << n << ' ' << i;
  }
}

TEST(Lcp, ColumnOfBeadsOpensWhereItIsThrownUp) {
  // The beads from `thrown` on leave upwards; the others rest as a shorter column.
  const double weight = 9.81e-3;
  for (const int n : {100, 1000, 10000}) {
    SparseLcpProblem p = bead_column(n, weight);
    const int thrown = n / 3;
    p.q[thrown] = 5;
    const LcpSolution s = solve_lcp(p);
    ASSERT_EQ(s.status, SolveStatus::solved) << n;
    EXPECT_LE(s.iterations, 30) << n;
    EXPECT_NEAR(s.z[0] / (thrown * weight), 1, 1e-9);
    EXPECT_NEAR(s.z[thrown - 1] / weight, 1, 1e-9);
    EXPECT_EQ(s.z.tail(n - thrown).maxCoeff(), 0);
  }
}

TEST(Lcp, SemismoothNewtonSolvesTheColumn) {
  const int n = 2000;
  const SparseLcpProblem p = bead_column(n, 1);
  const LcpSolution newton = solve_lcp(p, {.method = LcpMethod::newton_fischer});
  ASSERT_EQ(newton.status, SolveStatus::solved);
  EXPECT_NEAR(newton.z[0] / n, 1, 1e-9);
  EXPECT_LE(newton.iterations, 100);
}

TEST(Lcp, BadInputIsAStatusAndBadOptionsAreAnError) {
  const double nan = std::nan("");
  EXPECT_EQ(solve_lcp(LcpProblem{Mat::Identity(2, 2), Vec::Ones(3)}).status, SolveStatus::bad_input);
  EXPECT_EQ(solve_lcp(LcpProblem{Mat::Identity(2, 3), Vec::Ones(2)}).status, SolveStatus::bad_input);
  EXPECT_EQ(solve_lcp(LcpProblem{Mat::Constant(1, 1, nan), -Vec::Ones(1)}).status, SolveStatus::bad_input);
  EXPECT_EQ(solve_lcp(LcpProblem{Mat::Identity(1, 1), Vec::Constant(1, nan)}).status, SolveStatus::bad_input);
  EXPECT_EQ(solve_lcp(LcpProblem{Mat::Identity(2, 2), -Vec::Ones(2)}, {.z0 = Vec::Ones(3)}).status,
            SolveStatus::bad_input);
  EXPECT_THROW(solve_lcp(LcpProblem{Mat::Identity(1, 1), Vec::Ones(1)}, {.tolerance = -1}), Error);
  EXPECT_THROW(solve_lcp(LcpProblem{Mat::Identity(1, 1), Vec::Ones(1)}, {.max_iterations = -1}), Error);
  EXPECT_EQ(solve_lcp(LcpProblem{}).status, SolveStatus::solved);
}

TEST(MixedLcp, FreeVariablesSatisfyTheirEquations) {
  // Quadratic program: least |x|^2/2 - c.x with x_1 + x_2 >= 3, as x free with its multiplier.
  Mat M(3, 3);
  M << 1, 0, -1, 0, 1, -1, 1, 1, 0;
  const Vec q = Vec{-1, 0, -3};
  const BoxSolution s = solve_box(mixed_lcp(M, q, 2));
  ASSERT_EQ(s.status, SolveStatus::solved);
  EXPECT_NEAR(s.x[0], 2, 1e-12);  // (1, 0) moved along (1, 1) to the line
  EXPECT_NEAR(s.x[1], 1, 1e-12);
  EXPECT_NEAR(s.x[2], 1, 1e-12);
  const BoxSolution t = solve_box(mixed_lcp(SparseMat(M), q, 2));
  ASSERT_EQ(t.status, SolveStatus::solved);
  EXPECT_LT((s.x - t.x).max_abs(), 1e-12);
}

TEST(MixedLcp, SingularEquationBlockIsHandled) {
  // A linear program: least y subject to y >= 1, y >= 2: the free block is zero.
  Mat M(3, 3);
  M << 0, -1, -1, 1, 0, 0, 1, 0, 0;
  const Vec q = Vec{1, -1, -2};
  const BoxSolution s = solve_box(mixed_lcp(M, q, 1));
  ASSERT_EQ(s.status, SolveStatus::solved);
  EXPECT_NEAR(s.x[0], 2, 1e-12);
  EXPECT_NEAR(s.x[1], 0, 1e-12);
  EXPECT_NEAR(s.x[2], 1, 1e-12);
}

TEST(MixedLcp, RandomQuadraticProgramsMeetTheirConditions) {
  Random random(12345);
  for (int trial = 0; trial < 30; ++trial) {
    const int n = 1 + trial % 8, m = 1 + trial % 5;
    const Mat A = random.normals(n, n), G = random.normals(m, n);
    Mat M = Mat::Zero(n + m, n + m);
    M.topLeftCorner(n, n) = A * A.transpose() + Mat::Identity(n, n);
    M.topRightCorner(n, m) = -G.transpose();
    M.bottomLeftCorner(m, n) = G;
    const Vec inside = random.normals(n);  // G inside - g >= 0: feasible
    Vec q(n + m);
    q << random.normals(n), -(G * inside - random.normals(m).cwiseAbs());
    const BoxSolution s = solve_box(mixed_lcp(M, q, n));
    ASSERT_EQ(s.status, SolveStatus::solved) << trial;
    const Vec w = M * s.x + q;
    EXPECT_LT(w.head(n).max_abs(), 1e-9);
    EXPECT_GT(w.tail(m).minCoeff(), -1e-9);
    EXPECT_GE(s.x.tail(m).minCoeff(), 0);
    EXPECT_LT(w.tail(m).cwiseProduct(s.x.tail(m)).max_abs(), 1e-8);
  }
}

}  // namespace
}  // namespace saltus
