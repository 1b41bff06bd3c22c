#include "solve/lcp.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/numbers.hpp"
#include "solve/active_set.hpp"
#include "solve/lcp_methods.hpp"
#include "solve/lcp_proof.hpp"
#include "solve/matrix.hpp"

namespace saltus {
namespace {

constexpr double sharp = 1e-14;         // residual from which refinement cannot gain
constexpr int lemke_first_up_to = 150;  // below this size Lemke is as fast as anything and decides the most
constexpr int list_up_to = 10;          // after a ray, all active sets are looked at
constexpr int farkas_up_to = 150;       // after a ray, infeasibility is looked for by a second problem
constexpr int lemke_up_to = 2000;       // a sparse problem is made dense for Lemke only up to this size

Vec bounds_below(const Vec& q) { return Vec::Zero(q.size()); }
Vec bounds_above(const Vec& q) { return Vec::Constant(q.size(), inf); }

template <class Matrix>
bool well_formed(const Matrix& M, const Vec& q, const Vec& z0) {
  return M.rows() == q.size() && M.cols() == q.size() && (z0.size() == 0 || z0.size() == q.size()) && all_finite(M) &&
         q.allFinite() && z0.allFinite();
}

template <class Matrix>
void set_point(const Matrix& M, const Vec& q, Vec z, LcpSolution& s) {
  s.z = std::move(z);
  s.w = M * s.z + q;
  s.residual = box_residual(box_scales(M, q, s.z), bounds_below(q), bounds_above(q), s.z, s.w);
}

/// Solves once more on the active set that a point suggests; keeps the better of the two.
template <class Matrix>
void refine(const Matrix& M, const Vec& q, LcpSolution& s, ActiveFactor& factor) {
  if (s.residual <= sharp || !s.z.allFinite()) return;
  const auto state = states_of(box_scales(M, q, s.z), bounds_below(q), bounds_above(q), s.z, s.w);
  const ActiveSetLimits limits{.iterations = 3, .single_steps = false};
  ActiveSetResult r = active_set(M, q, bounds_below(q), bounds_above(q), state, limits, factor);
  if (r.x.size() == q.size() && r.residual < s.residual) set_point(M, q, std::move(r.x), s);
}

/// A row that is negative whatever z is; found at the price of looking at rows with q_i < 0 and no positive diagonal.
template <class Matrix>
int hopeless_row(const Matrix& M, const Vec& q) {
  std::vector<char> hopeless(static_cast<size_t>(q.size()), 0);
  bool any = false;
  const Vec diagonal = M.diagonal();
  for (Index i = 0; i < q.size(); ++i) any |= hopeless[static_cast<size_t>(i)] = q[i] < 0 && diagonal[i] <= 0;
  if (!any) return -1;
  for (Index j = 0; j < M.cols(); ++j)
    each_in_column(M, j, [&](Index i, double value) {
      if (value > 0) hopeless[static_cast<size_t>(i)] = 0;
    });
  const auto found = std::find(hopeless.begin(), hopeless.end(), 1);
  return found == hopeless.end() ? -1 : static_cast<int>(found - hopeless.begin());
}

/// The largest number of pivots, some seconds of work: usual problems need about n, exponential examples all they can
/// get.
int pivot_limit(const LcpOptions& options, Index n) {
  if (options.max_iterations > 0) return options.max_iterations;
  const double size = static_cast<double>(n);
  return static_cast<int>(std::clamp(2e10 / (size * size), 20 * size + 1000, 1e6));
}

// One method on one problem: fills point, status, iterations.

template <class Matrix>
void finish(const Matrix& M, const Vec& q, LcpRun run, const LcpOptions& options, LcpWorkspace& workspace,
            LcpSolution& s) {
  s.iterations += run.iterations;
  s.status = SolveStatus::not_converged;
  if (run.z.size() != q.size() || !run.z.allFinite()) run.z = Vec::Zero(q.size());
  set_point(M, q, std::move(run.z), s);
  if (options.polish) refine(M, q, s, workspace.factor);
  if (s.residual <= options.tolerance) {
    s.status = SolveStatus::solved;
  } else if (run.status == SolveStatus::no_solution && proves_infeasible(M, q, run.certificate)) {
    s.status = SolveStatus::no_solution;
    s.certificate = run.certificate;
  }
}

/// Looks at every active set: a solution, the knowledge that there is none, or neither where rounding is too large.
void list_cases(const LcpProblem& p, const LcpOptions& options, LcpSolution& s) {
  bool complete = false;
  const std::vector<Vec> all = all_lcp_solutions(p, options.tolerance, &complete);
  if (!all.empty()) set_point(p.M, p.q, all.front(), s);
  if (!all.empty() || complete) s.status = all.empty() ? SolveStatus::no_solution : SolveStatus::solved;
}

/// After Lemke's path did not decide: the equilibrated problem is asked, where rays, singular blocks and signs do not
/// depend on units. It gives a solution, a proof that there is none, a solution found by looking at every case, or
/// nothing.
void judge(const LcpProblem& p, const LcpOptions& options, LcpWorkspace& workspace, LcpSolution& s) {
  const Index n = p.q.size();
  const EvenLcp even(p);
  LcpRun run = lemke(even.problem.M, even.problem.q, Vec::Ones(n), pivot_limit(options, n), workspace.dictionary);
  Vec proof = proof_near(even.problem.M, even.problem.q, run.certificate);
  if (run.status == SolveStatus::ray) s.status = SolveStatus::ray;
  if (run.status == SolveStatus::solved) {
    LcpSolution other;
    finish(even.problem.M, even.problem.q, std::move(run), options, workspace, other);
    s.iterations += other.iterations;
    if (other.residual < s.residual) set_point(p.M, p.q, even.size * even.column.cwiseProduct(other.z), s);
    if (s.residual <= options.tolerance) {
      s.status = SolveStatus::solved;
      return;
    }
  }
  if (proof.size() == 0 && n <= list_up_to) list_cases(p, options, s);
  if (s.status == SolveStatus::solved) return;
  if (proof.size() == 0 && n <= farkas_up_to && s.status != SolveStatus::not_converged)
    proof = proof_near(even.problem.M, even.problem.q, feasible_point(even.problem.M, even.problem.q).certificate);
  if (proof.size() == 0) return;
  s.status = SolveStatus::no_solution;
  s.certificate = even.row.cwiseProduct(proof);
}

template <class Matrix>
LcpRun block_pivoting(const Matrix& M, const Vec& q, const std::vector<BoundState>& state,
                      const ActiveSetLimits& limits, ActiveFactor& factor) {
  ActiveSetResult r = active_set(M, q, bounds_below(q), bounds_above(q), state, limits, factor);
  return {std::move(r.x), r.converged ? SolveStatus::solved : SolveStatus::not_converged, r.iterations, {}};
}

std::vector<BoundState> states_from(const Vec& positive) {
  std::vector<BoundState> state(static_cast<size_t>(positive.size()), BoundState::lower);
  for (Index i = 0; i < positive.size(); ++i)
    if (positive[i] > 0) state[static_cast<size_t>(i)] = BoundState::inside;
  return state;
}

/// Block pivoting from the start given, from where q is not positive, and from everything active: chains are short from
/// one side and long from the other, so a few steps are tried from each before many.
template <class Matrix>
LcpRun block_pivoting_from_everywhere(const Matrix& M, const Vec& q, const LcpOptions& options, ActiveFactor& factor) {
  std::vector<std::vector<BoundState>> starts;
  if (options.z0.size() == q.size()) starts.push_back(states_from(options.z0));
  Vec pushed(q.size());  // 1 where q is not positive
  for (Index i = 0; i < q.size(); ++i) pushed[i] = q[i] <= 0 ? 1 : 0;
  starts.push_back(states_from(pushed));
  starts.push_back(states_from(Vec::Ones(q.size())));
  LcpRun run;
  int iterations = 0;
  for (const int steps : {12, 60, 300}) {
    for (const auto& state : starts) {
      run = block_pivoting(M, q, state, {.iterations = steps, .single_steps = false}, factor);
      iterations += run.iterations;
      if (run.status == SolveStatus::solved) {
        run.iterations = iterations;
        return run;
      }
    }
  }
  run.iterations = iterations;
  return run;
}

/// The methods that approach a solution step by step.
template <class Matrix>
LcpRun iterate(LcpMethod method, const Matrix& M, const Vec& q, const LcpOptions& options) {
  return method == LcpMethod::projected_gradient ? projected_gradient(M, q, options) : newton(M, q, options);
}

void apply(LcpMethod method, const LcpProblem& p, const LcpOptions& options, LcpWorkspace& workspace, LcpSolution& s) {
  s.method = method;
  LcpRun run;
  switch (method) {
    case LcpMethod::automatic: return;
    case LcpMethod::lemke:
      run = lemke(p.M, p.q, Vec::Ones(p.q.size()), pivot_limit(options, p.q.size()), workspace.dictionary);
      break;
    case LcpMethod::principal_pivoting:
      run = block_pivoting(p.M, p.q, states_from(options.z0.size() > 0 ? options.z0 : Vec(-p.q)),
                           {.iterations = 60, .single_steps = false}, workspace.factor);
      if (run.status != SolveStatus::solved)
        run = criss_cross(p.M, p.q, pivot_limit(options, p.q.size()), workspace.dictionary);
      break;
    default: run = iterate(method, p.M, p.q, options);
  }
  const bool ray = run.status == SolveStatus::ray;
  const bool too_long = run.iterations >= pivot_limit(options, p.q.size());
  finish(p.M, p.q, std::move(run), options, workspace, s);
  if (method != LcpMethod::lemke || s.status == SolveStatus::solved || too_long) return;
  if (ray) s.status = SolveStatus::ray;
  judge(p, options, workspace, s);
}

void apply(LcpMethod method, const SparseLcpProblem& p, const LcpOptions& options, LcpWorkspace& workspace,
           LcpSolution& s) {
  s.method = method;
  LcpRun run;
  switch (method) {
    case LcpMethod::automatic: return;
    case LcpMethod::lemke:
      if (p.q.size() <= lemke_up_to) {
        apply(method, LcpProblem{Mat(p.M), p.q}, options, workspace, s);
      } else {
        finish(p.M, p.q, run, options, workspace, s);
      }
      return;
    case LcpMethod::principal_pivoting:
      run = block_pivoting_from_everywhere(p.M, p.q, options, workspace.factor);
      if (run.status != SolveStatus::solved)
        run = block_pivoting(p.M, p.q, states_from(-p.q), {.iterations = pivot_limit(options, p.q.size())},
                             workspace.factor);
      break;
    default: run = iterate(method, p.M, p.q, options);
  }
  finish(p.M, p.q, std::move(run), options, workspace, s);
}

bool decided(const LcpSolution& s) { return s.status == SolveStatus::solved || s.status == SolveStatus::no_solution; }

/// Tries a method and keeps its answer if it decides the problem or is better than what there was.
template <class Problem>
bool attempt(LcpMethod method, const Problem& p, const LcpOptions& options, LcpWorkspace& workspace,
             LcpSolution& best) {
  LcpSolution s;
  apply(method, p, options, workspace, s);
  s.iterations += best.iterations;
  const bool better = best.z.size() == 0 || decided(s) ||
                      (s.status == SolveStatus::ray && best.status != SolveStatus::ray) ||
                      (s.residual < best.residual && best.status != SolveStatus::ray);
  if (better) best = std::move(s);
  return decided(best);
}

bool attempt_warm(const LcpProblem& p, const LcpOptions& options, LcpWorkspace& workspace, LcpSolution& s) {
  LcpRun run =
      block_pivoting(p.M, p.q, states_from(options.z0), {.iterations = 10, .single_steps = false}, workspace.factor);
  s.method = LcpMethod::principal_pivoting;
  finish(p.M, p.q, std::move(run), options, workspace, s);
  return decided(s);
}

void choose(const LcpProblem& p, const LcpOptions& options, LcpWorkspace& workspace, LcpSolution& s) {
  const Index n = p.q.size();
  if (options.z0.size() > 0 && attempt_warm(p, options, workspace, s)) return;
  if (n > lemke_first_up_to && p.M.diagonal().minCoeff() > 0) {
    LcpRun run =
        block_pivoting(p.M, p.q, states_from(-p.q), {.iterations = 30, .single_steps = false}, workspace.factor);
    s.method = LcpMethod::principal_pivoting;
    finish(p.M, p.q, std::move(run), options, workspace, s);
    if (decided(s)) return;
  }
  LcpSolution by_lemke;
  if (attempt(LcpMethod::lemke, p, options, workspace, by_lemke)) {
    by_lemke.iterations += s.iterations;
    s = std::move(by_lemke);
    return;
  }
  const bool too_long = by_lemke.status == SolveStatus::not_converged && by_lemke.iterations >= pivot_limit(options, n);
  if (s.z.size() == 0 || by_lemke.status == SolveStatus::ray || by_lemke.residual < s.residual) s = std::move(by_lemke);
  LcpOptions brief = options;
  if (n > 200 && options.max_iterations == 0) brief.max_iterations = 60;
  if (attempt(LcpMethod::newton_fischer, p, brief, workspace, s)) return;
  if (!too_long) attempt(LcpMethod::principal_pivoting, p, options, workspace, s);
}

void choose(const SparseLcpProblem& p, const LcpOptions& options, LcpWorkspace& workspace, LcpSolution& s) {
  s.method = LcpMethod::principal_pivoting;
  finish(p.M, p.q, block_pivoting_from_everywhere(p.M, p.q, options, workspace.factor), options, workspace, s);
  if (decided(s)) return;
  if (p.q.size() <= lemke_up_to / 4 && attempt(LcpMethod::lemke, p, options, workspace, s)) return;
  if (attempt(LcpMethod::newton_fischer, p, options, workspace, s)) return;
  if (attempt(LcpMethod::projected_gradient, p, options, workspace, s)) return;
  if (attempt(LcpMethod::lemke, p, options, workspace, s)) return;
  attempt(LcpMethod::principal_pivoting, p, options, workspace, s);
}

template <class Problem>
LcpSolution solve(const Problem& p, const LcpOptions& options, LcpWorkspace* memory) {
  options.check();
  LcpSolution s;
  s.method = options.method;
  if (!well_formed(p.M, p.q, options.z0)) {
    s.status = SolveStatus::bad_input;
    s.residual = inf;
    return s;
  }
  if (p.q.size() == 0 || p.q.minCoeff() >= 0) {
    s.status = SolveStatus::solved;
    s.z = Vec::Zero(p.q.size());
    s.w = p.q;
    return s;
  }
  if (const int i = hopeless_row(p.M, p.q); i >= 0) {
    set_point(p.M, p.q, Vec::Zero(p.q.size()), s);
    s.status = SolveStatus::no_solution;
    s.certificate = Vec::Unit(p.q.size(), i);
    return s;
  }
  LcpWorkspace own;
  LcpWorkspace& workspace = memory ? *memory : own;
  s.method = LcpMethod::automatic;
  if (options.method == LcpMethod::automatic) {
    choose(p, options, workspace, s);
  } else {
    apply(options.method, p, options, workspace, s);
  }
  return s;
}

}  // namespace

std::string_view name(LcpMethod method) {
  switch (method) {
    case LcpMethod::automatic: return "automatic";
    case LcpMethod::lemke: return "lemke";
    case LcpMethod::principal_pivoting: return "principal_pivoting";
    case LcpMethod::projected_gradient: return "projected_gradient";
    case LcpMethod::newton_fischer: return "newton_fischer";
  }
  return "";
}

void LcpOptions::check() const {
  const auto refuse = [](std::string_view what, double value, std::string_view expected) {
    throw Error(ErrorKind::usage,
                fmt::format("{} = {} of a complementarity solver: expected {}", what, value, expected));
  };
  if (!(tolerance > 0 && tolerance < 1)) refuse("tolerance", tolerance, "a number between 0 and 1");
  if (max_iterations < 0) refuse("max_iterations", max_iterations, "a positive number, or 0 to let it be chosen");
}

LcpSolution solve_lcp(const LcpProblem& p, const LcpOptions& options, LcpWorkspace* workspace) {
  return solve(p, options, workspace);
}

LcpSolution solve_lcp(const SparseLcpProblem& p, const LcpOptions& options, LcpWorkspace* workspace) {
  return solve(p, options, workspace);
}

double lcp_residual(const LcpProblem& p, const Vec& z) {
  return box_residual(box_scales(p.M, p.q, z), bounds_below(p.q), bounds_above(p.q), z, p.M * z + p.q);
}

double lcp_residual(const SparseLcpProblem& p, const Vec& z) {
  return box_residual(box_scales(p.M, p.q, z), bounds_below(p.q), bounds_above(p.q), z, p.M * z + p.q);
}

bool is_p_matrix(const Mat& M) {
  // M is P if M_11 > 0 and both M without its first index and the Schur complement M/M_11 are P (Tsatsomeros and Li).
  const Index n = M.rows();
  if (n == 0) return true;
  if (!(M(0, 0) > 0)) return false;
  if (n == 1) return true;
  const Mat rest = M.bottomRightCorner(n - 1, n - 1);
  return is_p_matrix(rest) && is_p_matrix(rest - M.col(0).tail(n - 1) * M.row(0).tail(n - 1) / M(0, 0));
}

}  // namespace saltus
