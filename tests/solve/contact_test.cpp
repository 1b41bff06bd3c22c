#include "solve/contact.hpp"

#include <cmath>

#include <gtest/gtest.h>
#include "random.hpp"

namespace saltus {
namespace {

/// Signorini and Coulomb, written down: what must hold at every contact.
void expect_lawful(const ContactProblem& p, const Vec& r, double tolerance) {
  const Vec u = p.W * r + p.q;
  const int d = p.dimension;
  for (Index i = 0; i < p.mu.size(); ++i) {
    const double r_n = r[i * d], u_n = u[i * d], limit = p.mu[i] * r_n;
    const Vec r_t = r.segment(i * d + 1, d - 1), u_t = u.segment(i * d + 1, d - 1);
    EXPECT_GE(r_n, -tolerance) << i;
    EXPECT_GE(u_n, -tolerance) << i;
    EXPECT_NEAR(r_n * u_n, 0, tolerance) << i;
    EXPECT_LE(r_t.norm(), limit + tolerance) << i;
    // dissipation is as large as it can be: u_t.r_t = -mu r_n |u_t|
    EXPECT_NEAR(u_t.dot(r_t), -limit * u_t.norm(), tolerance * (1 + u_t.norm())) << i;
  }
}

ContactProblem particle(int dimension, double mass, const Vec& velocity, double mu) {
  return {dimension, Mat::Identity(dimension, dimension) / mass, velocity, Vec::Constant(1, mu)};
}

const ContactMethod all_methods[] = {ContactMethod::automatic, ContactMethod::gauss_seidel, ContactMethod::newton};

TEST(Contact, ParticleOpensSticksOrSlips2D) {
  const double mass = 2;
  for (const ContactMethod method :
       {ContactMethod::automatic, ContactMethod::gauss_seidel, ContactMethod::newton, ContactMethod::lcp}) {
    const ContactSolution open = solve_contact(particle(2, mass, Vec{0.3, 1}, 0.5), {.method = method});
    ASSERT_EQ(open.status, SolveStatus::solved);
    EXPECT_EQ(open.mode[0], ContactMode::open);
    EXPECT_EQ(open.r.norm(), 0);

    const ContactSolution stick = solve_contact(particle(2, mass, Vec{-1, 0.4}, 0.5), {.method = method});
    ASSERT_EQ(stick.status, SolveStatus::solved);
    EXPECT_EQ(stick.mode[0], ContactMode::stick);
    EXPECT_NEAR(stick.r[0], 2, 1e-11);
    EXPECT_NEAR(stick.r[1], -0.8, 1e-11);

    const ContactSolution slip = solve_contact(particle(2, mass, Vec{-1, -0.7}, 0.5), {.method = method});
    ASSERT_EQ(slip.status, SolveStatus::solved);
    EXPECT_EQ(slip.mode[0], ContactMode::slip);
    EXPECT_NEAR(slip.r[0], 2, 1e-11);
    EXPECT_NEAR(slip.r[1], 1, 1e-11);
    EXPECT_NEAR(slip.u[1], -0.2, 1e-11);
  }
}

TEST(Contact, ParticleOpensSticksOrSlips3D) {
  for (const ContactMethod method : all_methods) {
    const ContactSolution open = solve_contact(particle(3, 1, Vec{0.1, 1, 1}, 0.5), {.method = method});
    EXPECT_EQ(open.mode[0], ContactMode::open);
    const ContactSolution stick = solve_contact(particle(3, 1, Vec{-1, 0.3, -0.39}, 0.5), {.method = method});
    ASSERT_EQ(stick.status, SolveStatus::solved);
    EXPECT_EQ(stick.mode[0], ContactMode::stick);
    EXPECT_LT((stick.r - Vec{1, -0.3, 0.39}).norm(), 1e-10);
    const ContactSolution slip = solve_contact(particle(3, 1, Vec{-1, 3, 4}, 0.5), {.method = method});
    ASSERT_EQ(slip.status, SolveStatus::solved);
    EXPECT_EQ(slip.mode[0], ContactMode::slip);
    EXPECT_LT((slip.r - Vec{1, -0.3, -0.4}).norm(), 1e-10);
    EXPECT_LT((slip.u - Vec{0, 2.7, 3.6}).norm(), 1e-10);
  }
}

TEST(Contact, SmoothContactIsTheImpactLaw) {
  const ContactSolution s = solve_contact(particle(3, 2, Vec{-1, 3, 4}, 0));
  ASSERT_EQ(s.status, SolveStatus::solved);
  EXPECT_LT((s.r - Vec{2, 0, 0}).norm(), 1e-12);
}

TEST(Contact, RestitutionReversesTheApproach) {
  ContactProblem p = particle(2, 1, Vec{-1, 0}, 0.1);
  p.restitution = Vec::Constant(1, 0.8);
  p.before = Vec::Constant(1, -1.0);
  const ContactSolution s = solve_contact(p);
  ASSERT_EQ(s.status, SolveStatus::solved);
  EXPECT_NEAR(s.u[0], 0.8, 1e-12);
  EXPECT_NEAR(s.r[0], 1.8, 1e-12);
}

TEST(Contact, RandomSingleContactsObeyTheLaw) {
  Random random(4711);
  int slips = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const int d = 2 + trial % 2;
    const Mat A = random.normals(d, d);
    ContactProblem p{d, A * A.transpose() + 0.3 * Mat::Identity(d, d), random.normals(d),
                     Vec::Constant(1, random.uniform(0.1, 0.6))};
    const ContactSolution s = solve_contact(p, {.method = ContactMethod::gauss_seidel, .look_for_others = false});
    ASSERT_EQ(s.status, SolveStatus::solved) << trial << ' ' << s.residual;
    expect_lawful(p, s.r, 1e-9);
    slips += s.mode[0] == ContactMode::slip;
  }
  EXPECT_GT(slips, 50);
}

ContactProblem random_contacts(Random& random, int dimension, int contacts, double mu) {
  const int n = dimension * contacts;
  const Mat A = random.normals(n, n);
  Vec q = random.normals(n);
  for (int i = 0; i < contacts; ++i) q[i * dimension] -= 0.5;
  return {dimension, A * A.transpose() / n + Mat::Identity(n, n), q, Vec::Constant(contacts, mu)};
}

TEST(Contact, MethodsAgreeOnManyContacts2D) {
  Random random(4711);
  for (int trial = 0; trial < 20; ++trial) {
    const ContactProblem p = random_contacts(random, 2, 1 + trial, 0.3);
    const ContactSolution exact = solve_contact(p, {.method = ContactMethod::lcp, .look_for_others = false});
    ASSERT_EQ(exact.status, SolveStatus::solved) << trial;
    expect_lawful(p, exact.r, 1e-9);
    for (const ContactMethod method : all_methods) {
      const ContactSolution s = solve_contact(p, {.method = method, .look_for_others = false});
      ASSERT_EQ(s.status, SolveStatus::solved) << trial << " method " << static_cast<int>(method) << ' ' << s.residual;
      EXPECT_LT((s.r - exact.r).max_abs(), 1e-8) << trial;
    }
  }
}

TEST(Contact, MethodsAgreeOnManyContacts3D) {
  Random random(4711);
  for (int trial = 0; trial < 15; ++trial) {
    const ContactProblem p = random_contacts(random, 3, 1 + 2 * trial, 0.4);
    const ContactSolution first = solve_contact(p);
    ASSERT_EQ(first.status, SolveStatus::solved) << trial << ' ' << first.residual;
    expect_lawful(p, first.r, 1e-9);
    const SparseContactProblem sparse{3, SparseMat(p.W), p.q, p.mu};
    for (const ContactMethod method : all_methods) {
      const ContactSolution s = solve_contact(p, {.method = method}), t = solve_contact(sparse, {.method = method});
      ASSERT_EQ(s.status, SolveStatus::solved) << trial << " method " << static_cast<int>(method) << ' ' << s.residual;
      ASSERT_EQ(t.status, SolveStatus::solved) << trial << " sparse, method " << static_cast<int>(method);
      EXPECT_LT((s.r - first.r).max_abs(), 1e-8);
      EXPECT_LT((t.r - first.r).max_abs(), 1e-8);
    }
  }
}

Vec cross(const Vec& a, const Vec& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

TEST(Contact, BoxOnFourCornersRestsThoughItsForcesAreNotUnique) {
  // Unit cube, mass 1, corners (+-1/2, +-1/2, -1/2): 12 reactions on 6 degrees of freedom.
  const double gravity = -0.1, push = 0.02, mass = 1, inertia = 1.0 / 6;
  Mat J(12, 6);
  int k = 0;
  for (const double x : {-0.5, 0.5})
    for (const double y : {-0.5, 0.5}) {
      const Vec arm{x, y, -0.5};
      for (const Vec& axis : {Vec{0, 0, 1}, Vec{1, 0, 0}, Vec{0, 1, 0}}) {
        J.row(k).head(3) = axis.transpose();
        J.row(k++).tail(3) = cross(arm, axis).transpose();
      }
    }
  Vec inverse(6);
  inverse << Vec::Constant(3, 1 / mass), Vec::Constant(3, 1 / inertia);
  Vec v = Vec::Zero(6);
  v[2] = gravity, v[0] = push;
  const ContactProblem p{3, J * inverse.asDiagonal() * J.transpose(), J * v, Vec::Constant(4, 0.5)};
  const ContactSolution s = solve_contact(p);
  ASSERT_EQ(s.status, SolveStatus::solved) << s.residual;
  EXPECT_LT(s.u.max_abs(), 1e-10);
  double normal = 0, tangential = 0;
  for (int i = 0; i < 4; ++i) normal += s.r[3 * i], tangential += s.r[3 * i + 1];
  EXPECT_NEAR(normal, 0.1, 1e-10);
  EXPECT_NEAR(tangential, -0.02, 1e-10);
}

/// Uniform rod of half length 1 and mass 1 that touches the ground at angle theta and slides: W at its tip.
SlidingProblem rod(double theta, double mu, double free_acceleration) {
  const double c = std::cos(theta), s = std::sin(theta), inverse_inertia = 3;
  return {Mat::Constant(1, 1, 1 + inverse_inertia * c * c), Mat::Constant(1, 1, inverse_inertia * s * c),
          Vec::Constant(1, free_acceleration), Vec::Constant(1, mu), Vec::Ones(1)};
}

TEST(Painleve, RodBelowTheCriticalFrictionHasOneAnswer) {
  // 1 + 3 cos^2 - 3 mu sin cos is positive for every angle if mu < 4/3.
  const double theta = std::atan(2.0);
  const SlidingSolution s = solve_sliding(rod(theta, 1.3, -9.81));
  ASSERT_EQ(s.status, SolveStatus::solved);
  EXPECT_NEAR(s.lambda[0], 9.81 / (1.6 - 1.2 * 1.3), 1e-9);
  const SlidingSolution lifts = solve_sliding(rod(theta, 1.3, 2));
  ASSERT_EQ(lifts.status, SolveStatus::solved);
  EXPECT_EQ(lifts.lambda[0], 0);
}

TEST(Painleve, RodBeyondTheCriticalFrictionHasNoneOrTwo) {
  const double theta = std::atan(2.0);
  const SlidingSolution none = solve_sliding(rod(theta, 1.5, -9.81));
  EXPECT_EQ(none.status, SolveStatus::no_solution);
  EXPECT_EQ(none.lambda.size(), 0);
  const SlidingSolution two = solve_sliding(rod(theta, 1.5, 2));
  EXPECT_EQ(two.status, SolveStatus::nonunique);
  ASSERT_EQ(two.all.size(), 2u);
  EXPECT_NEAR(std::max(two.all[0][0], two.all[1][0]), 2 / (1.2 * 1.5 - 1.6), 1e-9);
}

TEST(Painleve, OneStepProblemOfTheInconsistentRodJamsByAnImpulse) {
  // At the level of velocities the same rod has an answer: the tip is stopped, as in an impact without collision.
  const double theta = std::atan(2.0), c = std::cos(theta), s = std::sin(theta), mu = 1.5, h = 1e-2;
  Mat W(2, 2);
  W << 1 + 3 * c * c, 3 * s * c, 3 * s * c, 1 + 3 * s * s;
  const ContactProblem p{2, W, Vec{-9.81 * h, 1e-3}, Vec::Constant(1, mu)};
  const ContactSolution answer = solve_contact(p, {.look_for_others = false});
  ASSERT_EQ(answer.status, SolveStatus::solved);
  expect_lawful(p, answer.r, 1e-10);
}

TEST(Painleve, TwoAnswersOfOneStepAreReported) {
  // Leaving (open) and jamming are both lawful where slip would be pulled into the ground.
  const double theta = std::atan(2.0), c = std::cos(theta), s = std::sin(theta), mu = 1.5;
  Mat W(2, 2);
  W << 1 + 3 * c * c, 3 * s * c, 3 * s * c, 1 + 3 * s * s;
  const ContactProblem p{2, W, Vec{0.01, 1}, Vec::Constant(1, mu)};
  const auto all = all_contact_solutions(p);
  ASSERT_GE(all.size(), 2u);
  for (const Vec& r : all) expect_lawful(p, r, 1e-10);
  EXPECT_EQ(solve_contact(p).status, SolveStatus::nonunique);
}

TEST(Impact, ThreeEqualBallsFollowNewtonsLaw) {
  // Gap velocities of a row of balls hit from the left with unit speed: v = (-1/3, 2/3, 2/3).
  ImpactProblem p{(Mat(2, 2) << 2, -1, -1, 2).finished(), Vec{-1, 0}, Vec::Ones(2)};
  const ImpactSolution s = solve_impact(p);
  ASSERT_EQ(s.status, SolveStatus::solved);
  EXPECT_NEAR(1 - s.impulse[0], -1.0 / 3, 1e-12);
  EXPECT_NEAR(s.impulse[0] - s.impulse[1], 2.0 / 3, 1e-12);
  EXPECT_NEAR(s.impulse[1], 2.0 / 3, 1e-12);
  EXPECT_NEAR(s.after[0], 1, 1e-12);
}

TEST(Impact, SeparatingContactTakesNoPart) {
  const ImpactSolution s = solve_impact({Mat::Identity(2, 2), Vec{-2, 3}, Vec::Constant(2, 0.5)});
  ASSERT_EQ(s.status, SolveStatus::solved);
  EXPECT_NEAR(s.after[0], 1, 1e-14);
  EXPECT_NEAR(s.after[1], 3, 1e-14);
  EXPECT_EQ(s.impulse[1], 0);
}

TEST(Contact, BadInputIsAStatus) {
  EXPECT_EQ(solve_contact(ContactProblem{4, Mat::Identity(4, 4), Vec::Ones(4), Vec::Ones(1)}).status,
            SolveStatus::bad_input);
  EXPECT_EQ(solve_contact(ContactProblem{2, Mat::Identity(2, 2), Vec::Ones(2), -Vec::Ones(1)}).status,
            SolveStatus::bad_input);
  EXPECT_EQ(solve_contact(particle(3, 1, Vec{-1, 0, 0}, 1), {.method = ContactMethod::lcp}).status,
            SolveStatus::bad_input);
  EXPECT_EQ(solve_impact({Mat::Identity(2, 2), Vec::Ones(1), Vec::Ones(1)}).status, SolveStatus::bad_input);
  EXPECT_EQ(solve_sliding({}).status, SolveStatus::solved);
}

}  // namespace
}  // namespace saltus
