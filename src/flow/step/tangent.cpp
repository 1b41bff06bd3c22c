#include "flow/step/tangent.hpp"

#include <cmath>

#include "expr/diff.hpp"

namespace saltus {
namespace {

/// Unknowns that no equation holds stay as they are.
bool solve_determined(Mat M, Mat& r, Index states) {
  for (Index i = states; i < M.rows(); ++i) {
    if (!M.row(i).isZero()) continue;
    M(i, i) = 1;
    r.row(i).setZero();
  }
  r = Lu(M).solve_columns(r);
  return r.allFinite();
}

}  // namespace

StepTangent::StepTangent(const Program& program, const std::vector<double>& parameters)
    : program_(program), parameters_(parameters) {}

StepFormulas& StepTangent::formulas(const StepMade& step) {
  const StepKey key = step_key(program_, step.mode.switches, step.rule == StepMade::Rule::simpson);
  std::unique_ptr<StepFormulas>& entry = all_[key];
  if (!entry) entry = std::make_unique<StepFormulas>(program_, key, parameters_);
  return *entry;
}

StepTangent::Point StepTangent::point(const StepMade& step, double t, const Vec& x, const Vec& u, const Mat& P) {
  const StepSlopes& s = formulas(step).slopes(t, x, u, step.counters);
  Point out;
  out.J = s.J;
  out.G = Mat(s.G).columns_at(step.solved);
  out.C = Mat(s.C).rows_at(step.solved);
  out.D = Mat(s.D).part(step.solved);
  Mat by_f, by_c;
  formulas(step).parameter_slopes(t, x, u, step.counters, by_f, by_c);
  out.f = by_f * P;
  out.c = by_c.rows_at(step.solved) * P;
  return out;
}

bool StepTangent::along(const StepMade& step, const Mat& P, Mat& X) {
  return step.rule == StepMade::Rule::simpson ? simpson(step, P, X) : theta(step, P, X);
}

bool StepTangent::simpson(const StepMade& step, const Mat& P, Mat& X) {
  const double h = step.h;
  const Index n = X.rows(), k = static_cast<Index>(step.solved.size());
  const Vec xm = [&] {  // as the step had it
    Vec f0, f1;
    formulas(step).rates(step.t, step.x0, step.u0, step.counters, f0);
    formulas(step).rates(step.t + h, step.x1, step.u1, step.counters, f1);
    return Vec((step.x0 + step.x1) / 2 + h / 8 * (f0 - f1));
  }();
  const Point a = point(step, step.t, step.x0, step.u0, P), m = point(step, step.t + h / 2, xm, step.um, P),
              b = point(step, step.t + h, step.x1, step.u1, P);
  // dxm = by_x dx1 + by_a da + by_b db + known, items a + b (tau/h - 1/2)
  const Mat by_x = Mat::Identity(n, n) / 2 - h / 8 * b.J;
  // Items that states tell at the start are not solved for there.
  const Mat G0 = step.algebraic ? Mat(0 * a.G) : a.G;
  const Mat by_a = h / 8 * (G0 - b.G), by_b = -h / 16 * (G0 + b.G);
  Mat start = a.J * X + a.f;
  if (step.algebraic) start -= a.G * Lu(a.D).solve_columns(a.C * X + a.c);
  const Mat known = X / 2 + h / 8 * (start - b.f);
  Mat M(n + 2 * k, n + 2 * k), r(n + 2 * k, X.cols());
  M << Mat::Identity(n, n) - h / 6 * (b.J + 4 * m.J * by_x), -h / 6 * (G0 + b.G + 4 * (m.J * by_a + m.G)),
      -h / 6 * ((b.G - G0) / 2 + 4 * m.J * by_b),  //
      b.C, b.D, b.D / 2,                           //
      m.C * by_x, m.C * by_a + m.D, m.C * by_b;
  r << X + h / 6 * (start + b.f + 4 * (m.J * known + m.f)), -b.c, -m.c - m.C * known;
  if (!solve_determined(std::move(M), r, n)) return false;
  X = r.topRows(n);
  return true;
}

bool StepTangent::theta(const StepMade& step, const Mat& P, Mat& X) {
  const double h = step.h, theta = step.theta;
  const Index n = X.rows(), k = static_cast<Index>(step.solved.size());
  const Point a = point(step, step.t, step.x0, step.u1, P), b = point(step, step.t + h, step.x1, step.u1, P);
  Mat M(n + k, n + k), r(n + k, X.cols());
  M << Mat::Identity(n, n) - h * theta * b.J, -h * ((1 - theta) * a.G + theta * b.G),  //
      b.C, b.D;
  r << X + h * (1 - theta) * (a.J * X + a.f) + h * theta * b.f, -b.c;
  for (const auto& [item, restitution] : step.hits) {
    for (Index i = 0; i < k; ++i) {
      if (step.solved[static_cast<size_t>(i)] != item) continue;
      r.row(n + i) -= restitution * (a.C.row(i) * X + a.c.row(i));
      Vec tests;
      formulas(step).tests(step.t, step.x0, step.u0, step.counters, tests);
      r.row(n + i) -= tests[item + program_.constraints()] * restitution_shift(item, P);
    }
  }
  if (!solve_determined(std::move(M), r, n)) return false;
  X = r.topRows(n);
  return true;
}

Mat StepTangent::restitution_shift(int item, const Mat& P) const {
  Mat out = Mat::Zero(1, P.cols());
  const Gap& gap = program_.model().form.gaps[static_cast<size_t>(item - program_.switches())];
  if (!gap.restitution) return out;
  for (const Expr& s : symbols_in(std::span<const Expr>(&*gap.restitution, 1))) {
    if (!s.is_symbol(SymbolKind::parameter)) return out;  // it moves with more: as it is
  }
  for (const Partial& d : gradient(*gap.restitution, SymbolKind::parameter))
    out += constant_value(d.value, parameters_) * P.row(d.symbol.symbol().index);
  return out;
}

}  // namespace saltus
