// One-step problems of unilateral contact with Coulomb friction, and Newton's impact law.
// Each contact i has a local frame: normal n, then one (2D) or two (3D) tangents. With reactions (impulses) r,
//   u = W r + q,       0 <= r_n  perp  u_n + e u_n^- >= 0,
//   |r_t| <= mu r_n,   r_t = -mu r_n u_t / |u_t| where u_t is not 0.
// W is the Delassus operator (inverse mass seen at the contacts), q the velocity without reactions.
#pragma once

#include <vector>

#include "base/linear.hpp"
#include "solve/box.hpp"

namespace saltus {

struct ContactProblem {
  int dimension = 3;  ///< 2 or 3: rows of W per contact, normal first
  Mat W;
  Vec q;
  Vec mu;                ///< one per contact, >= 0
  Vec restitution = {};  ///< e, one per contact in [0, 1]; empty: 0
  Vec before = {};       ///< u_n^-: normal velocities before the step, needed with restitution
};

struct SparseContactProblem {
  int dimension = 3;
  SparseMat W;
  Vec q;
  Vec mu;
  Vec restitution = {};
  Vec before = {};
};

enum class ContactMode : unsigned char { open, stick, slip };

enum class ContactMethod {
  automatic,     ///< a few sweeps, Newton from there, more sweeps if needed; 2D: the LCP as last resort
  gauss_seidel,  ///< contact by contact, each solved exactly
  newton,        ///< semismooth Newton on the projections of Alart and Curnier, all contacts at once
  lcp,           ///< 2D only: Lemke on Stewart and Trinkle's form, which it solves whenever W is positive semidefinite
};

struct ContactOptions {
  ContactMethod method = ContactMethod::automatic;
  double tolerance = 1e-11;
  int max_iterations = 0;       ///< sweeps or Newton steps; 0: the method's own limit
  Vec r0 = {};                  ///< start; empty: zero
  bool look_for_others = true;  ///< report nonunique where all solutions can be listed: see all_contact_solutions

  void check() const;
};

struct ContactSolution {
  Vec r, u;
  SolveStatus status = SolveStatus::not_converged;
  double residual = 0;  ///< see contact_residual
  int iterations = 0;
  ContactMethod method = ContactMethod::automatic;
  std::vector<ContactMode> mode;
};

ContactSolution solve_contact(const ContactProblem& problem, const ContactOptions& options = {});
ContactSolution solve_contact(const SparseContactProblem& problem, const ContactOptions& options = {});

/// Largest distance of a contact's reaction from the projection that defines the law, as a velocity relative to those
/// that meet at the contact.
double contact_residual(const ContactProblem& problem, const Vec& r);
double contact_residual(const SparseContactProblem& problem, const Vec& r);

/// Reactions of all solutions with different velocities: 2D with up to 5 contacts, 3D with one.
std::vector<Vec> all_contact_solutions(const ContactProblem& problem);
/// True if all_contact_solutions can list this problem.
bool can_list_solutions(const ContactProblem& problem);

/// Contacts that slide in known directions, at the level of accelerations: friction is -mu slip lambda, so
///   a_n = (W_nn - W_nt diag(mu slip)) lambda + q,   0 <= lambda perp a_n >= 0.
/// The matrix need not be positive: Painleve's paradoxes are answers, no_solution and nonunique.
struct SlidingProblem {
  Mat W_nn, W_nt;
  Vec q, mu;
  Vec slip;  ///< +1 or -1: sign of the tangential velocity
};

struct SlidingSolution {
  Vec lambda, acceleration;  ///< empty unless solved
  SolveStatus status = SolveStatus::not_converged;
  double residual = 0;
  std::vector<Vec> all;  ///< every solution, up to 12 contacts
};

SlidingSolution solve_sliding(const SlidingProblem& problem);

/// Newton's law for simultaneous impacts: u+ = u- + W p, 0 <= p perp u+ + e min(u-, 0) >= 0.
/// W_ij is the change of gap velocity i by a unit impulse j; it need not be symmetric.
struct ImpactProblem {
  Mat W;
  Vec before, restitution;
};

struct ImpactSolution {
  Vec impulse, after;
  SolveStatus status = SolveStatus::not_converged;
  double residual = 0;
};

ImpactSolution solve_impact(const ImpactProblem& problem);

}  // namespace saltus
