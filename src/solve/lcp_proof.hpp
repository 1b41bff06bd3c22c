// Proofs about linear complementarity problems: that there is no solution, or which ones there are. A statement is made
// only if it survives the rounding errors of what was computed for it; where it does not, the answer is "not known".
#pragma once

#include <vector>

#include "solve/lcp.hpp"
#include "solve/lcp_methods.hpp"

namespace saltus {

/// True if y >= 0, M^T y <= 0 up to the rounding of that product, and q.y < 0: then y.(M z + q) < 0 for every z >= 0,
/// so that M z + q >= 0 is impossible. M may be rectangular.
template <class Matrix>
bool proves_infeasible(const Matrix& M, const Vec& q, const Vec& y);

/// A proof as above near y, whose entries may be wrong by what pivoting loses; empty if there is none.
Vec proof_near(const Mat& M, const Vec& q, const Vec& y);

/// The shortest z >= 0 with M z + q >= 0 as a complementarity problem of twice the size, positive semidefinite, so that
/// Lemke decides it: a ray is a proof that there is none. M may be rectangular; best equilibrated.
LcpRun feasible_point(const Mat& M, const Vec& q);

/// A problem in units of its own: z = size * column * even.z, a proof y of the even one is row * y of the other.
struct EvenLcp {
  explicit EvenLcp(const LcpProblem& p);

  LcpProblem problem;
  Vec row, column;
  double size;
};

}  // namespace saltus
