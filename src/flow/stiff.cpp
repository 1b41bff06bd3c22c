#include "flow/stiff.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numbers>

#include <cvode/cvode.h>
#include <cvode/cvode_proj.h>
#include <nvector/nvector_serial.h>
#include <sunlinsol/sunlinsol_dense.h>
#include <sunmatrix/sunmatrix_dense.h>

#include "base/index.hpp"
#include "flow/jacobian.hpp"
#include "flow/present_share.hpp"
#include "flow/thresholds.hpp"

namespace saltus {
namespace {

constexpr double tightest = 1e-12;       // tolerance below which the formulas see rounding only
constexpr double share_of_step = 0.1;    // of the tolerance for one step: errors of many steps add up
constexpr double floor_of_scale = 1e-3;  // of the largest value so far
constexpr size_t width = 6;              // coefficients of an interpolant of order 5
constexpr int sampled_degree = 8;
constexpr int most_refinements = 4;  // for the sake of resolution
constexpr int most_retreats = 60;    // from where functions cannot be evaluated

StiffStatus status_of(SeriesStatus status) {
  switch (status) {
    case SeriesStatus::ok: return StiffStatus::ok;
    case SeriesStatus::undefined: return StiffStatus::undefined;
    case SeriesStatus::unsolved: return StiffStatus::unsolved;
  }
  return StiffStatus::undefined;
}

/// c(u) -> c(u + by), in place.
void shift(std::span<double> c, double by) {
  for (size_t i = 0; i + 1 < c.size(); ++i) {
    for (size_t k = c.size() - 1; k-- > i;) c[k] += by * c[k + 1];
  }
}

double value(std::span<const double> c, double u) {
  double sum = 0;
  for (size_t k = c.size(); k-- > 0;) sum = sum * u + c[k];
  return sum;
}

/// Chebyshev points of [0, 1] with both ends, in an order in which each is far from those before: Newton's
/// interpolation is stable in it. The first is 0.
std::vector<double> chebyshev_points(int degree) {
  std::vector<double> rest, points{0.0};
  for (int i = 1; i <= degree; ++i) rest.push_back(std::pow(std::sin(std::numbers::pi * i / (2 * degree)), 2));
  const auto distance = [&](double u) {
    double product = 1;
    for (const double p : points) product *= std::abs(u - p);
    return product;
  };
  while (!rest.empty()) {
    const auto farthest =
        std::max_element(rest.begin(), rest.end(), [&](double a, double b) { return distance(a) < distance(b); });
    points.push_back(*farthest);
    rest.erase(farthest);
  }
  return points;
}

}  // namespace

/// CVODE with its memory, and what its callbacks need.
struct StiffFlow::Solver {
  Solver(size_t n, double tolerance, double direction, int order);
  ~Solver();
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  static int rates(realtype s, N_Vector y, N_Vector rates, void* self);
  static int weights(N_Vector y, N_Vector weights, void* self);
  static int jacobian(realtype s, N_Vector y, N_Vector, SUNMatrix matrix, void* self, N_Vector, N_Vector, N_Vector);
  static int project(realtype s, N_Vector y, N_Vector correction, realtype, N_Vector, void* self);

  double time(double s) const { return origin + direction * s; }
  bool evaluate(realtype s, N_Vector states);
  /// Of state i of the states at `x`.
  double scale(size_t i, const double* x) const {
    const auto value = [x](int j) { return x[j]; };
    const auto so_far = [this](int j) { return largest[at(j)]; };
    const double share = present_share(series->program(), static_cast<int>(i), value, so_far);
    const double size = std::max(std::abs(x[i]), std::max(floor_of_scale * share, vanished_floor) * largest[i]);
    return size > 0 ? size : 1;
  }

  double tolerance, direction;
  std::vector<double> largest;  // size of each state so far
  SUNContext context = nullptr;
  N_Vector y = nullptr, derivative = nullptr;
  SUNMatrix matrix = nullptr;
  SUNLinearSolver linear = nullptr;
  void* cvode = nullptr;
  // Only while CVODE is at work:
  Series* series = nullptr;
  RateJacobian rate_jacobian;
  std::vector<double> counters, point;
  double origin = 0;
  SeriesStatus failure = SeriesStatus::ok;  // why rates could not be had during the step
};

StiffFlow::Solver::Solver(size_t n, double tolerance_, double direction_, int order)
    : tolerance(tolerance_), direction(direction_), largest(n, 0.0), point(n) {
  const auto size = static_cast<sunindextype>(n);
  SUNContext_Create(nullptr, &context);
  y = N_VNew_Serial(size, context);
  derivative = N_VNew_Serial(size, context);
  matrix = SUNDenseMatrix(size, size, context);
  linear = SUNLinSol_Dense(y, matrix, context);
  cvode = CVodeCreate(CV_BDF, context);
  N_VConst(0, y);
  CVodeSetErrHandlerFn(
      cvode, [](int, const char*, const char*, char*, void*) {}, nullptr);
  CVodeInit(cvode, rates, 0, y);
  CVodeSetUserData(cvode, this);
  CVodeWFtolerances(cvode, weights);
  CVodeSetLinearSolver(cvode, linear, matrix);
  CVodeSetJacFn(cvode, jacobian);
  CVodeSetMaxOrd(cvode, std::min(order, 5));
  CVodeSetMaxConvFails(cvode, 40);  // steps shrink to the edge of where the rates are defined
  CVodeSetProjFn(cvode, project);
  CVodeSetProjErrEst(cvode, SUNFALSE);
}

StiffFlow::Solver::~Solver() {
  CVodeFree(&cvode);
  SUNLinSolFree(linear);
  SUNMatDestroy(matrix);
  N_VDestroy(derivative);
  N_VDestroy(y);
  SUNContext_Free(&context);
}

/// Whether the rates exist there.
bool StiffFlow::Solver::evaluate(realtype s, N_Vector states) {
  const SeriesStatus status = series->evaluate({NV_DATA_S(states), largest.size()}, time(s), counters);
  if (status != SeriesStatus::ok) failure = status;
  return status == SeriesStatus::ok;
}

int StiffFlow::Solver::rates(realtype s, N_Vector y, N_Vector rates, void* self) {
  Solver& solver = *static_cast<Solver*>(self);
  if (!solver.evaluate(s, y)) return 1;  // CVODE tries a shorter step
  for (size_t i = 0; i < solver.largest.size(); ++i)
    NV_DATA_S(rates)[i] = solver.direction * solver.series->rate(static_cast<int>(i))[0];
  return 0;
}

int StiffFlow::Solver::jacobian(realtype s, N_Vector y, N_Vector, SUNMatrix matrix, void* self, N_Vector, N_Vector,
                                N_Vector) {
  Solver& solver = *static_cast<Solver*>(self);
  if (!solver.evaluate(s, y)) return 1;
  const Mat& j = solver.rate_jacobian.at(*solver.series, solver.time(s), solver.counters);
  View(SM_DATA_D(matrix), j.rows(), j.cols(), 1, j.rows()) = solver.direction * j;
  return 0;
}

int StiffFlow::Solver::weights(N_Vector y, N_Vector weights, void* self) {
  const Solver& solver = *static_cast<const Solver*>(self);
  const size_t n = solver.largest.size();
  const double root = std::sqrt(static_cast<double>(n));  // CVODE takes the root of the mean square
  for (size_t i = 0; i < n; ++i) {
    NV_DATA_S(weights)[i] = root / (solver.tolerance * solver.scale(i, NV_DATA_S(y)));
    if (!std::isfinite(NV_DATA_S(weights)[i])) return -1;
  }
  return 0;
}

int StiffFlow::Solver::project(realtype s, N_Vector y, N_Vector correction, realtype, N_Vector, void* self) {
  Solver& solver = *static_cast<Solver*>(self);
  const size_t n = solver.largest.size();
  std::copy_n(NV_DATA_S(y), n, solver.point.begin());
  solver.series->project(solver.point, solver.time(s), solver.counters);
  for (size_t i = 0; i < n; ++i) NV_DATA_S(correction)[i] = solver.point[i] - NV_DATA_S(y)[i];
  return 0;
}

StiffFlow::StiffFlow(const Program& program, double tolerance, double direction, int order)
    : n_(at(program.states())),
      tolerance_(std::max(tolerance, tightest)),
      direction_(direction),
      order_(order),
      solver_(std::make_unique<Solver>(n_, share_of_step * tolerance_, direction, order)),
      interpolant_(n_ * width, 0.0),
      points_(chebyshev_points(std::min(sampled_degree, order))) {
  assert(order >= 4);
}

StiffFlow::~StiffFlow() = default;
StiffFlow::StiffFlow(StiffFlow&&) noexcept = default;
StiffFlow& StiffFlow::operator=(StiffFlow&&) noexcept = default;

StiffStatus StiffFlow::step(Series& series, std::span<const double> x, double t, std::span<const double> counters,
                            double longest, Piece& piece) {
  assert(x.size() == n_ && longest > 0);
  solver_->series = &series;
  solver_->counters.assign(counters.begin(), counters.end());
  StiffStatus status = StiffStatus::ok;
  if (fresh_ || !continues(x, longest)) status = start(series, x, t, longest);
  if (status == StiffStatus::ok && here_ >= to_) status = advance(longest);
  if (status != StiffStatus::ok) {
    fresh_ = true;
    return status;
  }
  cut_piece(x, t, longest, piece);
  return StiffStatus::ok;
}

/// Whether x is where the last piece ended, up to projection.
bool StiffFlow::continues(std::span<const double> x, double longest) const {
  if (longest < 1e-12 * here_) return false;  // too short for CVODE's clock, unless that starts at zero again
  constexpr double slack = 100;
  std::vector<double> end(n_);
  for (size_t i = 0; i < n_; ++i) end[i] = value({&interpolant_[i * width], width}, here_ - from_);
  for (size_t i = 0; i < n_; ++i) {
    if (!(std::abs(x[i] - end[i]) <= slack * tolerance_ * solver_->scale(i, end.data()))) return false;
  }
  return true;
}

/// A first scale for each state, also for those that are zero: what its series reaches in the time in which the fastest
/// state changes.
StiffStatus StiffFlow::start(Series& series, std::span<const double> x, double t, double longest) {
  const int order = series.order();
  if (const SeriesStatus status = series.expand(x, t, solver_->counters, order); status != SeriesStatus::ok)
    return status_of(status);
  double time = longest;
  for (int i = 0; i < static_cast<int>(n_); ++i) {
    const double* c = series.state(i);
    const int first = static_cast<int>(std::find_if(c, c + order, [](double v) { return v != 0; }) - c);
    int last = order;  // beside a root at zero the last coefficients overflow
    while (last > 1 && !std::isfinite(c[last])) --last;
    for (const int k : {last - 1, last}) {
      if (k > first && c[k] != 0) time = std::min(time, std::pow(std::abs(c[first] / c[k]), 1.0 / (k - first)));
    }
  }
  for (size_t i = 0; i < n_; ++i) {
    const double* c = series.state(static_cast<int>(i));
    double& largest = solver_->largest[i];
    largest = std::max(largest, std::abs(c[0]));
    for (int k = 1; k <= order; ++k) {
      if (const double reach = std::abs(c[k]) * std::pow(time, k); std::isfinite(reach))
        largest = std::max(largest, reach);
    }
  }
  solver_->origin = t;
  std::copy(x.begin(), x.end(), NV_DATA_S(solver_->y));
  if (CVodeReInit(solver_->cvode, 0, solver_->y) != CV_SUCCESS) return StiffStatus::stalled;
  here_ = from_ = to_ = 0;
  fresh_ = false;
  return StiffStatus::ok;
}

/// One internal step and its interpolant.
StiffStatus StiffFlow::advance(double longest) {
  Solver& solver = *solver_;
  solver.failure = SeriesStatus::ok;
  CVodeSetStopTime(solver.cvode, here_ + longest);
  from_ = here_;
  const int flag = CVode(solver.cvode, here_ + longest, solver.y, &to_, CV_ONE_STEP);
  ++steps_;
  if (flag < 0 || !(to_ > from_))
    return solver.failure != SeriesStatus::ok ? status_of(solver.failure) : StiffStatus::stalled;

  // The interpolant is known around CVODE's own time, which differs from a stop time by rounding.
  double now = 0;
  int degree = 0;
  CVodeGetCurrentTime(solver.cvode, &now);
  CVodeGetLastOrder(solver.cvode, &degree);
  std::fill(interpolant_.begin(), interpolant_.end(), 0.0);
  double factorial = 1;
  for (int k = 0; k <= degree; ++k) {
    factorial *= std::max(k, 1);
    if (CVodeGetDky(solver.cvode, now, k, solver.derivative) != CV_SUCCESS) return StiffStatus::stalled;
    for (size_t i = 0; i < n_; ++i) interpolant_[i * width + at(k)] = NV_DATA_S(solver.derivative)[i] / factorial;
  }
  for (size_t i = 0; i < n_; ++i) {
    const double end = NV_DATA_S(solver.y)[i];
    if (!std::isfinite(end)) return StiffStatus::undefined;
    solver.largest[i] = std::max(solver.largest[i], std::abs(end));
    shift({&interpolant_[i * width], width}, from_ - now);
  }
  return StiffStatus::ok;
}

/// The interpolant after what was handed out, through x.
void StiffFlow::cut_piece(std::span<const double> x, double t, double longest, Piece& piece) {
  const size_t stride = at(order_) + 1;
  piece.start = t;
  const double end = std::min(to_, here_ + longest);
  piece.length = direction_ * (end < here_ + longest ? end - here_ : longest);
  piece.coefficients.assign(n_ * stride, 0.0);
  for (size_t i = 0; i < n_; ++i) {
    std::array<double, width> c;
    std::copy_n(&interpolant_[i * width], width, c.begin());
    shift(c, here_ - from_);
    c[1] -= (x[i] - c[0]) / (to_ - here_);
    c[0] = x[i];
    double sign = 1;
    for (size_t k = 0; k < std::min(width, stride); ++k, sign *= direction_)
      piece.coefficients[i * stride + k] = sign * c[k];
  }
  piece_from_ = here_;
  here_ = end;
}

namespace {

/// Values at the points -> coefficients in powers of u, in place. In extended precision: powers on [0, 1] magnify
/// rounding by 6^degree.
void interpolate(const std::vector<double>& points, std::vector<long double>& c) {
  const size_t count = points.size();
  for (size_t j = 1; j < count; ++j) {
    for (size_t k = count - 1; k >= j; --k)
      c[k] = (c[k] - c[k - 1]) / (static_cast<long double>(points[k]) - points[k - j]);
  }
  for (size_t j = count - 1; j-- > 0;) {
    for (size_t k = j; k + 1 < count; ++k) c[k] -= points[j] * c[k + 1];
  }
}

/// Size of the last two Chebyshev coefficients of a polynomial on [0, 1].
double unresolved(const std::vector<long double>& c) {
  const int d = static_cast<int>(c.size()) - 1;
  const long double last = std::ldexp(c[at(d)], 1 - 2 * d);
  const long double previous = std::ldexp(c[at(d - 1)] + d * std::ldexp(last, 2 * d - 2), 3 - 2 * d);
  return static_cast<double>(std::max(std::abs(last), std::abs(previous)));
}

double read(const Series& series, const SampledFunction& f) {
  switch (f.kind) {
    case SampledFunction::Kind::surface: return series.surface(f.index)[0];
    case SampledFunction::Kind::unknown: return series.unknown(f.index)[0];
    case SampledFunction::Kind::gap: return series.gap(f.index)[0];
    case SampledFunction::Kind::jump: return series.jump(f.index)[0];
    case SampledFunction::Kind::section: return series.section(f.index)[0];
    case SampledFunction::Kind::phase: return series.phase(f.index)[0];
    case SampledFunction::Kind::slope: return series.slope_series(f.index)[0];
  }
  return 0;
}

/// values[f * points + i]: function f at point i of the piece.
SeriesStatus read_along(Series& series, const Piece& piece, std::span<const double> counters,
                        std::span<const SampledFunction> functions, const std::vector<double>& points,
                        std::vector<double>& values) {
  const int n = series.program().states();
  const bool slopes = std::any_of(functions.begin(), functions.end(),
                                  [](const SampledFunction& f) { return f.kind == SampledFunction::Kind::slope; });
  std::vector<double> x(at(n));
  values.resize(functions.size() * points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    const double tau = points[i] * piece.length;
    Trajectory::evaluate(piece, n, tau, x.data());
    const SeriesStatus status = series.evaluate(x, piece.start + tau, counters);
    if (status != SeriesStatus::ok) return status;
    if (slopes) series.expand_slope(0);
    for (size_t f = 0; f < functions.size(); ++f) values[f * points.size() + i] = read(series, functions[f]);
  }
  return SeriesStatus::ok;
}

}  // namespace

StiffStatus StiffFlow::sample(Series& series, std::span<const double> counters,
                              std::span<const SampledFunction> functions, Piece& piece,
                              std::vector<double>& coefficients) {
  const size_t stride = at(order_) + 1;
  std::vector<double> values;
  std::vector<long double> c(points_.size());
  coefficients.assign(functions.size() * stride, 0.0);
  if (functions.empty()) return StiffStatus::ok;

  for (int halvings = 0;; ++halvings) {
    const SeriesStatus status = read_along(series, piece, counters, functions, points_, values);
    if (status != SeriesStatus::ok && halvings >= most_retreats) return status_of(status);
    bool good = status == SeriesStatus::ok;
    for (size_t f = 0; f < functions.size() && good; ++f) {
      const double* v = &values[f * points_.size()];
      double size = functions[f].scale;
      for (size_t i = 0; i < points_.size(); ++i) size = std::max(size, std::abs(v[i]));
      c.assign(v, v + points_.size());
      interpolate(points_, c);
      good = unresolved(c) <= tolerance_ * size || halvings >= most_refinements;
      long double power = 1;
      for (size_t k = 0; k < c.size(); ++k, power /= piece.length)
        coefficients[f * stride + k] = static_cast<double>(c[k] * power);
    }
    if (good) return StiffStatus::ok;
    piece.length /= 2;
    here_ = piece_from_ + std::abs(piece.length);
  }
}

}  // namespace saltus
