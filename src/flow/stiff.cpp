#include "flow/stiff.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numbers>

#include "base/index.hpp"
#include "flow/first_sizes.hpp"
#include "flow/jacobian.hpp"
#include "flow/present_share.hpp"
#include "flow/thresholds.hpp"
#include "solve/radau_step.hpp"

namespace saltus {
namespace {

constexpr double tightest = 1e-12;        // tolerance below which the formulas see rounding only
constexpr double share_of_step = 0.1;     // of the tolerance for one step: errors of many steps add up
constexpr double floor_of_scale = 1e-3;   // of the largest value so far
constexpr double shortest_share = 1e-12;  // of the time that is left, for a first step
constexpr int most_attempts = 100;        // at one step: lengths shrink to the edge of where the rates are defined
constexpr double safety = 0.9;            // of the length that the error allows
constexpr double most_growth = 8, most_shrinking = 0.1;
constexpr double kept_growth = 1.2;     // below it the length is kept, and the factors with it
constexpr double kept_jacobian = 1e-3;  // convergence of Newton's method that the matrix is good enough for
constexpr int sampled_degree = 8;
constexpr int most_refinements = 8;         // for the sake of resolution
constexpr double unlike_polynomials = 0.1;  // of what is not resolved on a piece, on its half: rounding
constexpr double largest_noise = 1e-5;      // of a function; what is more swings faster than the points lie
constexpr int most_retreats = 60;           // from where functions cannot be evaluated

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

/// Work space of a step.
struct StiffFlow::Solver {
  Solver(size_t n, double tolerance_, double direction_, int stages)
      : step(stages, n), tolerance(tolerance_), direction(direction_), largest(n, 0.0), unit(n) {}

  /// The scale of state i of the states at `x`.
  double scale(size_t i, const double* x) const {
    const auto value = [x](int j) { return x[j]; };
    const auto so_far = [this](int j) { return largest[at(j)]; };
    const double share = present_share(series->program(), static_cast<int>(i), value, so_far);
    const double size = std::max(std::abs(x[i]), std::max(floor_of_scale * share, vanished_floor) * largest[i]);
    return size > 0 ? size : 1;
  }
  double time(double s) const { return origin + direction * s; }
  /// True if the rates exist there.
  bool evaluate(double s, const double* x) {
    const SeriesStatus status = series->evaluate({x, largest.size()}, time(s), counters);
    if (status != SeriesStatus::ok) failure = status;
    return status == SeriesStatus::ok;
  }
  bool rates(double s, const double* x, double* out) {
    if (!evaluate(s, x)) return false;
    for (size_t i = 0; i < largest.size(); ++i) out[i] = direction * series->rate(static_cast<int>(i))[0];
    return true;
  }

  /// Takes the Jacobian at x; false where there are no rates.
  bool linearise(std::span<const double> x, double t) {
    if (!evaluate(0, x.data())) return false;
    step.linearise(direction * rate_jacobian.at(*series, t, counters));
    stale = false;
    return true;
  }

  RadauStep step;
  double tolerance, direction;
  std::vector<double> largest;  // size of each state so far
  std::vector<double> unit;     // what a step may err by
  double next = 0;              // length of the next step
  bool stale = true;            // the Jacobian is that of another place, and too far from it
  RateJacobian rate_jacobian;
  // The step at work:
  Series* series = nullptr;
  std::vector<double> counters;
  double origin = 0;
  SeriesStatus failure = SeriesStatus::ok;  // why rates could not be had
};

namespace {

int stages_for(double tolerance, int order) {
  const int wanted = tolerance >= 1e-4 ? 3 : tolerance >= 1e-7 ? 5 : 7;
  return order >= wanted ? wanted : order >= 5 ? 5 : 3;
}

}  // namespace

StiffFlow::StiffFlow(const Program& program, double tolerance, double direction, int order)
    : n_(at(program.states())),
      tolerance_(std::max(tolerance, tightest)),
      direction_(direction),
      order_(order),
      solver_(std::make_unique<Solver>(n_, share_of_step * tolerance_, direction, stages_for(tolerance, order))),
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
  if (fresh_) status = start(x, t, longest);
  if (status == StiffStatus::ok && (here_ >= length_ || !continues(x))) status = advance(x, t, longest);
  if (status != StiffStatus::ok) {
    fresh_ = true;
    return status;
  }
  cut_piece(x, t, longest, piece);
  return StiffStatus::ok;
}

/// True if x is where the last piece ended, up to projection.
bool StiffFlow::continues(std::span<const double> x) const {
  constexpr double slack = 100;
  const size_t width = solver_->step.degree() + 1;
  std::vector<double> end(n_);
  for (size_t i = 0; i < n_; ++i) end[i] = value({&solver_->step.polynomial()[i * width], width}, here_);
  for (size_t i = 0; i < n_; ++i) {
    if (!(std::abs(x[i] - end[i]) <= slack * tolerance_ * solver_->scale(i, end.data()))) return false;
  }
  return true;
}

/// A first scale for each state, also for those that are zero: what its series reaches in the time in which the fastest
/// state changes. That is the first length, too.
StiffStatus StiffFlow::start(std::span<const double> x, double t, double longest) {
  Series& series = *solver_->series;
  const int order = series.order();
  if (const SeriesStatus status = series.expand(x, t, solver_->counters, order); status != SeriesStatus::ok)
    return status_of(status);
  const double time = take_first_sizes(series, longest, solver_->largest);
  // Shorter ones would have powers without digits, or not move time; what is faster than that has settled or is damped.
  solver_->next =
      std::min(longest, std::max({time, shortest_share * longest, 2 * shortest_step_bits * eps * std::abs(t)}));
  solver_->stale = true;
  solver_->step.restart();
  noise_.clear();
  here_ = length_ = 0;
  fresh_ = false;
  return StiffStatus::ok;
}

/// One internal step from x.
StiffStatus StiffFlow::advance(std::span<const double> x, double t, double longest) {
  Solver& solver = *solver_;
  solver.failure = SeriesStatus::ok;
  solver.origin = t;
  for (size_t i = 0; i < n_; ++i) solver.unit[i] = solver.tolerance * solver.scale(i, x.data());
  const auto rates = [&](double s, const double* states, double* out) { return solver.rates(s, states, out); };
  const double shortest = shortest_step_bits * eps * std::abs(t);
  double h = solver.next < safety * longest ? solver.next : longest;
  bool failed = false, here = false;  // here: the Jacobian is that of x
  for (int attempt = 0; attempt < most_attempts && (h > shortest || h >= longest); ++attempt) {
    if (solver.stale) {
      if (!solver.linearise(x, t)) return status_of(solver.failure);
      here = true;
    }
    const bool solved = solver.step.solve(rates, x, 0, h, solver.unit) == RadauStep::Outcome::solved;
    if (!solved && !here) {
      solver.stale = true;
      continue;
    }
    const double error = solved ? solver.step.error(rates, x, 0, failed || steps_ == 0) : HUGE_VAL;
    const double wanted = safety * std::pow(std::max(error, 1e-30), -1 / solver.step.order());  // length, over this one
    if (error <= 1) return accept(h, wanted, failed);
    h *= solved ? std::max(most_shrinking, wanted) : 0.25;
    failed = true;
  }
  return solver.failure != SeriesStatus::ok ? status_of(solver.failure) : StiffStatus::stalled;
}

/// The internal step of length h is made. `wanted`: how much longer its error lets the next one be; `failed`: a longer
/// one was tried before.
StiffStatus StiffFlow::accept(double h, double wanted, bool failed) {
  Solver& solver = *solver_;
  double growth = std::min(wanted, failed ? 1.0 : most_growth);
  if (growth >= 1 && growth < kept_growth) growth = 1;
  // A step that something else has cut short tells nothing against the length that was meant.
  solver.next = !failed && h < solver.next ? std::max(solver.next, h * growth) : h * growth;
  solver.stale = solver.step.convergence() > kept_jacobian;
  solver.step.accept();
  ++steps_;
  length_ = h;
  here_ = 0;
  const size_t width = solver.step.degree() + 1;
  for (size_t i = 0; i < n_; ++i) {
    const double end = value({&solver.step.polynomial()[i * width], width}, h);
    if (!std::isfinite(end)) return StiffStatus::undefined;
    solver.largest[i] = std::max(solver.largest[i], std::abs(end));
  }
  return StiffStatus::ok;
}

/// The polynomial after what was handed out, through x.
void StiffFlow::cut_piece(std::span<const double> x, double t, double longest, Piece& piece) {
  const size_t stride = at(order_) + 1, width = solver_->step.degree() + 1;
  piece.start = t;
  const double rest = length_ - here_;
  const bool whole = rest <= longest;
  piece.length = direction_ * (whole ? rest : longest);
  piece.coefficients.assign(n_ * stride, 0.0);
  std::vector<double> c(width);
  for (size_t i = 0; i < n_; ++i) {
    std::copy_n(&solver_->step.polynomial()[i * width], width, c.begin());
    shift(c, here_);
    c[1] -= (x[i] - c[0]) / rest;
    c[0] = x[i];
    double sign = 1;
    for (size_t k = 0; k < std::min(width, stride); ++k, sign *= direction_)
      piece.coefficients[i * stride + k] = sign * c[k];
  }
  piece_from_ = here_;
  here_ = whole ? length_ : here_ + longest;
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

/// True if a mode needs its value: where a surface or gap has none, nobody could say on which side it is.
bool decides(const SampledFunction& f) {
  return f.kind == SampledFunction::Kind::surface || f.kind == SampledFunction::Kind::gap;
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
  noise_.resize(functions.size(), 0.0);
  std::vector<double> before(functions.size(), HUGE_VAL);
  for (int halvings = 0;; ++halvings) {
    const SeriesStatus status = read_along(series, piece, counters, functions, points_, values);
    if (status != SeriesStatus::ok && halvings >= most_retreats) return status_of(status);
    bool good = status == SeriesStatus::ok;
    const bool at_last_digits = std::abs(piece.length) < 2 * shortest_step_bits * eps * std::abs(piece.start);
    for (size_t f = 0; f < functions.size() && good; ++f) {
      const double* v = &values[f * points_.size()];
      double size = functions[f].scale;
      for (size_t i = 0; i < points_.size(); ++i) size = std::max(size, std::abs(v[i]));
      c.assign(v, v + points_.size());
      interpolate(points_, c);
      const double left = unresolved(c);
      if (left > unlike_polynomials * before[f] && left < largest_noise * size) noise_[f] = std::max(noise_[f], left);
      before[f] = left;
      if (std::isnan(left) && decides(functions[f])) {
        if (at_last_digits || halvings >= most_retreats) return StiffStatus::undefined;
        good = false;
        break;
      }
      good = left <= std::max(tolerance_ * size, 2 * noise_[f]) || halvings >= most_refinements || at_last_digits;
      long double power = 1;
      for (size_t k = 0; k < c.size(); ++k, power /= piece.length)
        coefficients[f * stride + k] = static_cast<double>(c[k] * power);
    }
    if (good) return StiffStatus::ok;
    piece.length /= 2;
    here_ = piece_from_ + std::abs(piece.length);
  }
}

double StiffFlow::polish(Series& series, std::span<const double> counters, const SampledFunction& function,
                         double offset, const Piece& piece, double root) const {
  const std::array functions{function};
  std::vector<double> found;
  const auto at_share = [&](double share) {
    const SeriesStatus status = read_along(series, piece, counters, functions, {share}, found);
    return status == SeriesStatus::ok ? found[0] - offset : std::nan("");
  };
  double share = root / piece.length, lo = 0, hi = 1;
  for (const double point : points_) {
    if (point < share) lo = std::max(lo, point);
    if (point > share) hi = std::min(hi, point);
  }
  double below = at_share(lo), above = at_share(hi);
  if (!(below * above < 0)) return root;
  // Regula falsi; where one end stays its value is halved (Illinois).
  int kept = 0;
  for (int iteration = 0; iteration < 200 && hi - lo > eps * hi; ++iteration) {
    const double value = at_share(share);
    if (std::isnan(value)) return root;
    const int side = value * above > 0 ? 1 : -1;
    if (value == 0) return share * piece.length;
    if (side > 0) {
      hi = share, above = value;
      if (kept == 1) below /= 2;
    } else {
      lo = share, below = value;
      if (kept == -1) above /= 2;
    }
    kept = side;
    share = hi - above * (hi - lo) / (above - below);
    if (!(share > lo && share < hi)) share = 0.5 * (lo + hi);
    if (!(share > lo && share < hi)) break;
  }
  return hi * piece.length;
}

}  // namespace saltus
