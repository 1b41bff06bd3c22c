// Tangents along a piece: their series beside those of the states.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/index.hpp"
#include "flow/thresholds.hpp"
#include "flow/variation.hpp"

namespace saltus {

/// Adds the derivatives by parameters to rates and residuals, all orders.
void Variation::add_parameters(int order) {
  const TangentSystem& system = plan_->system;
  const size_t n = system.states(), unknowns = system.unknowns(), d = ux(x_.cols());
  for (size_t r = 0; r < n + unknowns; ++r) {
    for (size_t g = 0; g < tangents_.groups(); ++g)
      std::fill_n(&tangents_(system.f(r), 0, g * TangentRows::width), (at(order) + 1) * TangentRows::width, 0.0);
  }
  const Jet<double>& by = jet_of(plan_->tape->arc_parameter.tape, order_).jet;
  for (const SlopeEntry& e : plan_->by_parameter) {
    const double* s = by.output(at(e.output));
    if (!std::isfinite(s[0])) {
      for (size_t c = 0; c < d; ++c) left_out_ = left_out_ || p_(e.column, ix(c)) != 0;
      continue;
    }
    const size_t row = at(e.row) < n ? system.f(at(e.row)) : system.g(at(plan_->position[at(e.row) - n]));
    for (size_t c = 0; c < d; ++c) {
      const double p = p_(e.column, ix(c));
      if (p == 0) continue;
      for (int k = 0; k <= order; ++k) tangents_(row, at(k), c) += s[k] * p;
    }
  }
}

/// How residuals give the unknowns: with the matrix that the states have used.
void Variation::take_solution() {
  const Series& series = *memory_.series;
  auto& solution = plan_->system.solution;
  solution.clear();
  for (const Series::Single& s : series.singles()) solution.push_back({s.member, s.member, -s.inverse});
  for (const Series::Block& b : series.blocks()) {
    const Mat inverse = Series::inverse(b);
    for (size_t i = 0; i < b.members.size(); ++i) {
      for (size_t j = 0; j < b.members.size(); ++j)
        solution.push_back({b.members[i], b.members[j], -inverse(ix(i), ix(j))});
    }
  }
}

/// Series of the tangents beside those of the states: coefficients 0..order of X, 0..order-1 (at least 0) of U.
void Variation::expand_tangents(int order) {
  TangentSystem& system = plan_->system;
  system.given = moves_parameters();
  const size_t n = system.states(), d = ux(x_.cols());
  left_out_ = false;
  tangents_.resize(system.rows(), at(order) + 1, d);
  if (system.given) add_parameters(order);
  take_solution();
  for (size_t i = 0; i < n; ++i) {
    for (size_t c = 0; c < tangents_.groups() * TangentRows::width; ++c)
      tangents_(i, 0, c) = c < d ? x_(ix(i), ix(c)) : 0.0;
  }
  const auto finite = [](const TangentTerm& term) { return std::isfinite(term.series[0]); };
  if (std::all_of(system.terms.begin(), system.terms.end(), finite)) {
    saltus::expand(system, tangents_, order);
  } else {
    left_out_ = true;
    saltus::expand(system.without_infinite(), tangents_, order);
  }
}

bool Variation::forget(const Piece& piece, const Arc& arc) {
  const size_t n = at(program_.states()), stride = piece.coefficients.size() / n;
  std::vector<size_t> arrived;
  rested_.resize(n, 0);
  for (size_t i = 0; i < n; ++i) {
    const double* c = &piece.coefficients[i * stride];
    const bool rests = std::all_of(c, c + stride, [](double coefficient) { return coefficient == 0; });
    if (rests && !rested_[i] && !x_.row(ix(i)).isZero(0)) arrived.push_back(i);
    rested_[i] = rests;
  }
  if (arrived.empty()) return false;
  point_.resize(n);
  if (expand_along(piece, arc, 0) == 0) return false;
  const TangentSystem& system = plan_->system;
  bool any = false;
  for (const size_t i : arrived) {
    const size_t from = i > 0 ? system.rate_end[i - 1] : system.residual_end.empty() ? 0 : system.residual_end.back();
    const std::span<const TangentTerm> terms = std::span(system.terms).subspan(from, system.rate_end[i] - from);
    const bool pulled = std::any_of(terms.begin(), terms.end(), [&](const TangentTerm& s) {
      return at(s.column) == i && std::isinf(s.series[0]) && s.series[0] * (s.negative ? -direction_ : direction_) < 0;
    });
    if (!pulled) continue;
    x_.row(ix(i)).setZero();
    any = true;
  }
  return any;
}

void Variation::along(const Piece& piece, const Arc& arc, const std::function<void()>& between) {
  forget(piece, arc);
  move_along(piece, arc, piece.length, between);
  if (!(last_arc_ == arc)) last_arc_ = arc;
}

void Variation::along(const Piece& piece, const Arc& arc, std::span<const double> stops,
                      const std::function<void(size_t, const Mat&)>& at) {
  stops_ = stops;
  at_stop_ = &at;
  next_stop_ = 0;
  along(piece, arc);
  at_stop_ = nullptr;
  for (; next_stop_ < stops.size(); ++next_stop_) at(next_stop_, x_);
}

/// Tangents at the places asked for on a stretch of their series.
void Variation::stop_on_the_way(int order, double done, double move) {
  const double direction = move < 0 ? -1 : 1;
  for (; next_stop_ < stops_.size(); ++next_stop_) {
    const double tau = stops_[next_stop_] - done;
    if (direction * tau > direction * move) return;
    Mat x(x_.rows(), x_.cols());
    for (Index i = 0; i < x.rows(); ++i) {
      for (Index c = 0; c < x.cols(); ++c) {
        double sum = 0;
        for (int k = order; k >= 0; --k) sum = sum * tau + tangents_(ux(i), at(k), ux(c));
        x(i, c) = sum;
      }
    }
    (*at_stop_)(next_stop_, x);
  }
}

void Variation::along(const Piece& piece, const Arc& arc, double from, double to) {
  if (from == 0) forget(piece, arc);
  move_along(piece, arc, to, {}, from);
  if (!(last_arc_ == arc)) last_arc_ = arc;
}

Mat Variation::within(const Piece& piece, const Arc& arc, double tau) {
  move_along(piece, arc, 0);
  const Mat start = x_;
  move_along(piece, arc, tau);
  return std::exchange(x_, start);
}

/// The tangents from a place of a piece (its start) to tau.
void Variation::move_along(const Piece& piece, const Arc& arc, double tau, const std::function<void()>& between,
                           double from) {
  const int n = program_.states();
  point_.resize(at(n));
  if (std::exchange(first_, false)) {
    Trajectory::evaluate(piece, n, from, point_.data());
    rest(arc, point_, piece.start + from);
  }
  double done = from;
  bool begun = false;
  for (int step = 0; done != tau && step < 100'000; ++step) {
    int order = expand_along(piece, arc, done);
    if (order == 0) break;  // where sliding ends or a field begins: nothing moves so fast
    expand_tangents(order);
    if (left_out_ && done == 0 && !is_series(piece)) {
      if (leave_root(piece, arc, tau)) return;
      order = expand_along(piece, arc, done);
      expand_tangents(order);
    }
    const double left = tau - done;
    double length = trusted_length(std::abs(left), order);
    // Slopes that are infinite where the piece begins (log(z) at z = 0, by the exponent of z^n) are so at that point
    // alone, or all along.
    if ((left_out_ || !(length > 0)) && !begun) {
      begun = true;
      order = 0;
      length = std::min(std::abs(left), infinite_slope_share * std::abs(tau));
    }
    if (!(length > 0)) break;
    const double move = length >= std::abs(left) ? left : std::copysign(length, left);
    if (at_stop_) stop_on_the_way(order, done, move);
    move_to(tangents_, at(n), order, move);
    for (Index i = 0; i < x_.rows(); ++i) {
      for (Index c = 0; c < x_.cols(); ++c) x_(i, c) = tangents_(ux(i), 0, ux(c));
    }
    done = move == left ? tau : done + move;
    if (between && done != tau) {
      between();
      if (x_.cols() == 0) return;
    }
  }
}

/// Along the tangent out of a point where a root begins slopes are infinite and have a finite integral, which is small:
///   X becomes exp(M) X,   M = integral of f_x over the piece
/// in the variable s, tau = s^4, in which slopes like tau^-1/2 are polynomials. False where there is none.
bool Variation::leave_root(const Piece& piece, const Arc& arc, double tau) {
  constexpr double small = 0.01;
  constexpr std::array<std::pair<double, double>, 3> half = {
      {{0.2386191860831969, 0.4679139345726910},
       {0.6612093864662645, 0.3607615730481386},
       {0.9324695142031521,
        0.1713244923791704}}};  // Gauss's nodes and weights on -1 .. 1, six with their mirror images
  const int n = program_.states();
  Mat M = Mat::Zero(n, n + p_.cols());
  for (const auto& [node, weight] : half) {
    for (const double mirrored : {-node, node}) {
      const double s = 0.5 * (1 + mirrored), place = tau * s * s * s * s;
      Trajectory::evaluate(piece, n, place, point_.data());
      M += (0.5 * weight * 4 * s * s * s * tau) * rate_slopes(arc, point_, piece.start + place, p_);
    }
  }
  if (!M.allFinite() || !(M.leftCols(n).norm() < small)) return false;
  Mat term = M.leftCols(n) * x_ + M.rightCols(p_.cols());
  for (int k = 2; k <= 4; ++k) {
    x_ += term;
    term = M.leftCols(n) * term / k;
  }
  x_ += term;
  return x_.allFinite();
}

/// Series of states, unknowns and derivatives at a place of a piece; their order, 0 where there are none. A piece made
/// of series is that of its states, and where nothing is solved for no more is needed.
int Variation::expand_along(const Piece& piece, const Arc& arc, double done) {
  Series& series = *memory_.series;
  enter(arc);
  const int n = program_.states();
  int order = order_;
  const Piece* given = nullptr;
  if (done == 0 && series.active().empty() && !options_.stiff && is_series(piece)) {
    given = &piece;
    order = static_cast<int>(piece.coefficients.size()) / n - 1;
    plan_ = &plan_of(arc);
  } else {
    Trajectory::evaluate(piece, n, done, point_.data());
    if (!expand(point_, piece.start + done, arc, order)) return 0;
  }
  load_tangents(piece.start + done, arc, order, given);
  return order;
}

/// True if the polynomials of a piece are the series of its states, as far as those of the tangents go: a step without
/// series is a straight line.
bool Variation::is_series(const Piece& piece) const {
  const size_t n = at(program_.states()), count = piece.coefficients.size() / n;
  if (count < 4 || count > at(order_) + 1) return false;
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 2; k < 4; ++k) {
      if (piece.coefficients[i * count + k] != 0) return true;
    }
  }
  return false;
}

/// The length over which the last two terms shrink to the tolerance, each tangent on its own scale: at most `left`; 0
/// where they are no numbers.
double Variation::trusted_length(double left, int order) {
  constexpr double smallest = 1e-300;
  if (has_converged(tangents_, at(program_.states()), order, left, tolerance_)) return left;
  double length = left;
  for (int round = 0; round < 2; ++round) {  // the scale of a shorter step is smaller
    const double reach = length, last = std::pow(reach, order), second = std::pow(reach, order - 1);
    for (int i = 0; i < program_.states(); ++i) {
      for (Index c = 0; c < x_.cols(); ++c) {
        const auto term = [&](int k) { return std::abs(tangents_(at(i), at(k), ux(c))); };
        const double scale = std::max({term(0), term(1) * reach, term(2) * reach * reach});
        if (!std::isfinite(term(order)) || !std::isfinite(term(order - 1))) return 0;
        if (tolerance_ * scale < smallest) continue;  // forgotten: its terms have no digits left
        if (term(order) * last > tolerance_ * scale)
          length = std::min(length, std::pow(tolerance_ * scale / term(order), 1.0 / order));
        if (term(order - 1) * second > tolerance_ * scale)
          length = std::min(length, std::pow(tolerance_ * scale / term(order - 1), 1.0 / (order - 1)));
      }
    }
    if (length == reach) break;
  }
  return length;
}

Mat Variation::rate_slopes(const Arc& arc, std::span<const double> x, double t, const Mat& P) {
  const OtherTangents all = all_directions(P);
  expand(x, t, arc, 1);
  load_tangents(t, arc, 1);
  expand_tangents(1);
  Mat out(x_.rows(), x_.cols());
  for (Index i = 0; i < out.rows(); ++i) {
    for (Index c = 0; c < out.cols(); ++c) out(i, c) = tangents_(ux(i), 1, ux(c));
  }
  return out;
}

}  // namespace saltus
