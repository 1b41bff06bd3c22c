// The single methods behind solve_lcp. Each returns its raw answer; the door verifies and refines it.
#pragma once

#include "solve/lcp.hpp"

namespace saltus {

/// The result of one method, before it is judged.
struct LcpRun {
  Vec z;
  SolveStatus status = SolveStatus::not_converged;
  int iterations = 0;
  Vec certificate;
};

/// Lemke with covering vector d (positive where q is negative), at most `pivots` exchanges:
///   w = q + M z + d z0;  z0 enters, the lexicographically most negative w_r leaves, the complement z_r is driven next
///   repeat: drive the complement of what left; the lexicographically first blocking variable leaves
///   until z0 leaves (solved) or nothing blocks (ray)
LcpRun lemke(const Mat& M, const Vec& q, const Vec& d, int pivots, Dictionary& dictionary);

/// Least-index criss-cross: finite for sufficient matrices (P, PSD), decides infeasibility there:
///   k = first index with w_k < 0; exchange (k, k) if the diagonal is positive,
///   else with the first j of row k with a positive entry exchange (k, j) and (j, k); none: no solution
LcpRun criss_cross(const Mat& M, const Vec& q, int pivots, Dictionary& dictionary);

LcpRun projected_gradient(const Mat& M, const Vec& q, const LcpOptions& options);
LcpRun projected_gradient(const SparseMat& M, const Vec& q, const LcpOptions& options);
LcpRun newton(const Mat& M, const Vec& q, const LcpOptions& options);
LcpRun newton(const SparseMat& M, const Vec& q, const LcpOptions& options);

}  // namespace saltus
