#include "flow/step/dense.hpp"

#include <cmath>

#include "base/index.hpp"
#include "flow/thresholds.hpp"

namespace saltus {
namespace {

/// The function of a section inside the piece of a step.
double inside(StepSolver& solver, const Here& here, const Step& step, const Piece& piece, int output, double tau) {
  Vec x(here.x.size()), tests;
  Trajectory::evaluate(piece, static_cast<int>(x.size()), tau, x.data());
  solver.tests(here.t() + tau, x, step.u0 + tau / piece.length * (step.u1 - step.u0), tests);
  return tests[output];
}

/// Where the function of a section is on a side: where the piece begins, or where it has left zero since.
struct OnSide {
  int side = 0;
  double tau = 0, value = 0;
};

/// Regula falsi along the piece of a step for a section that leaves its side.
double passage(StepSolver& solver, const Here& here, const Step& step, const Piece& piece, int output,
               const OnSide& from) {
  const double t = here.t();
  const int side = from.side;
  double lo = from.tau, hi = piece.length;
  double a = std::abs(from.value) + 1e-300, b = std::abs(step.tests[output]);
  Vec x(here.x.size()), tests;
  int last = 0;
  for (int k = 0; k < 60 && hi - lo > 4 * eps * std::abs(t + hi); ++k) {
    const double tau = k > 40 ? (lo + hi) / 2 : lo + (hi - lo) * a / (a + b);
    if (tau <= lo || tau >= hi) break;
    Trajectory::evaluate(piece, static_cast<int>(x.size()), tau, x.data());
    solver.tests(t + tau, x, step.u0 + tau / piece.length * (step.u1 - step.u0), tests);
    const double v = side * tests[output];
    if (v == 0) return tau;
    (v > 0 ? lo : hi) = tau;
    (v > 0 ? a : b) = std::abs(v);
    if (v > 0 && last == 1) b /= 2;
    if (v < 0 && last == -1) a /= 2;
    last = v > 0 ? 1 : -1;
  }
  return hi;
}

/// True if a function has changed its sign through infinity (1/u): it is larger there than at both ends of the step.
bool is_pole(StepSolver& solver, const Here& here, const Step& step, const Piece& piece, int output, double tau) {
  const double there = std::abs(inside(solver, here, step, piece, output, tau)), begin = std::abs(here.tests[output]);
  return there > std::abs(step.tests[output]) && (there > begin || !std::isfinite(begin));
}

}  // namespace

Vec states_along(const Here& here, const Step& step, double share) {
  Vec x = here.x;
  const bool curved = step.cubic && step.f0.size() > 0;
  for (Index i = 0; i < x.size(); ++i) {
    const double slope = (step.x[i] - x[i]) / step.h, f0 = curved ? step.f0[i] : slope,
                 f1 = curved ? step.f1[i] : slope;
    const double second = 3 * slope - 2 * f0 - f1, third = f0 + f1 - 2 * slope;
    x[i] += step.h * share * (f0 + share * (second + share * third));
  }
  return x;
}

void make_piece(const Here& here, const Step& step, double end, Piece& piece) {
  const size_t n = static_cast<size_t>(here.x.size()), stride = step.cubic ? 4 : 2;
  piece.start = here.t();
  piece.length = end - here.t();
  piece.coefficients.assign(n * stride, 0.0);
  for (size_t i = 0; i < n; ++i) {
    const Index e = static_cast<Index>(i);
    double* c = &piece.coefficients[i * stride];
    const double slope = (step.x[e] - here.x[e]) / step.h;
    c[0] = here.x[e];
    c[1] = slope;
    if (!step.cubic) continue;
    c[1] = step.f0[e];
    c[2] = (3 * slope - 2 * step.f0[e] - step.f1[e]) / step.h;
    c[3] = (step.f0[e] + step.f1[e] - 2 * slope) / (step.h * step.h);
  }
}

void find_crossings(StepSolver& solver, const Model& model, const Recorder& recorder, const Here& here,
                    const Step& step, const Piece& piece, std::vector<Crossing>& crossings, const Vec* soon) {
  crossings.clear();
  const TestLayout& layout = solver.layout();
  for (int k = 0; k < layout.sections; ++k) {
    const int output = layout.section(k);
    if (model.sections[at(k)].kind != Section::Kind::on) continue;
    OnSide from{recorder.section_sign(at(k)), 0, here.tests[output]};
    if (from.side == 0) {
      from.tau = piece.length / 2;
      from.value = inside(solver, here, step, piece, output, from.tau);
      from.side = from.value > 0 ? 1 : from.value < 0 ? -1 : 0;
    }
    const int side = from.side;
    const bool passed = side * step.tests[output] < 0, at_end = !passed && soon && side * (*soon)[output] < 0;
    if ((!passed && !at_end) || recorder.section_shared(at(k)).rests(here.mode())) continue;
    if (at_end) {
      crossings.push_back({k, piece.length, -side});
      continue;
    }
    const double tau = passage(solver, here, step, piece, output, from);
    if (!is_pole(solver, here, step, piece, output, tau)) crossings.push_back({k, tau, -side});
  }
}

}  // namespace saltus
