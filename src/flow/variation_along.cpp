// Tangents along a piece: their series beside those of the states.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/index.hpp"
#include "flow/variation.hpp"

namespace saltus {

/// The derivatives of the mode by rows of what they are added to, where the last standing puts them.
void Variation::sort_terms(const TangentTape& tape) {
  const Series& series = *memory_.series;
  const Jet<double>& jet = *jets_.at(&tape.arc.tape);
  const int n = program_.states(), active = static_cast<int>(series.active().size());
  position_.assign(at(program_.unknowns() + program_.constraints()), -1);  // by residual
  for (int a = 0; a < active; ++a) {
    const int u = series.active()[at(a)];
    position_[at(series.raised(u) ? program_.unknowns() + u - program_.switches() : u)] = a;
  }
  rate_terms_.clear();
  residual_terms_.clear();
  const auto sort = [&](const std::vector<SlopeEntry>& entries, bool unknown) {
    for (const SlopeEntry& e : entries) {
      TangentTerm term{e.row, e.column, unknown, 1, jet.output(at(e.output)), tape.arc.tape.constant[at(e.output)]};
      if (unknown) {
        if (stand_[at(e.column)] < 0) continue;
        term.column = stand_[at(e.column)];
        term.sign = stand_sign_[at(e.column)];
      }
      if (e.row >= n && position_[at(e.row - n)] < 0) continue;
      if (e.row >= n) term.row = position_[at(e.row - n)];
      (e.row < n ? rate_terms_ : residual_terms_).push_back(term);
    }
  };
  sort(tape.arc.by_state, false);
  sort(tape.arc.by_unknown, true);
}

/// What parameters add to rates and residuals, all orders.
void Variation::add_parameters(const TangentTape& tape, int order) {
  const int n = program_.states();
  const size_t active = memory_.series->active().size();
  for (auto [rows, count] : {std::pair{&fx_, at(n)}, {&fr_, active}}) {
    rows->resize(count, at(order) + 1, ux(x_.cols()));
    std::fill(rows->numbers.begin(), rows->numbers.end(), 0.0);
  }
  const Jet<double>& by = *jets_.at(&tape.arc_parameter.tape);
  for (const SlopeEntry& e : tape.arc_parameter.by_parameter) {
    const double* s = by.output(at(e.output));
    const int row = e.row < n ? e.row : position_[at(e.row - n)];
    if (row < 0 || !std::isfinite(s[0])) continue;
    TangentRows& to = e.row < n ? fx_ : fr_;
    for (Eigen::Index c = 0; c < x_.cols(); ++c) {
      if (p_(e.column, c) == 0) continue;
      for (int k = 0; k <= order; ++k) to(at(row), at(k))[c] += s[k] * p_(e.column, c);
    }
  }
}

/// Series of the tangents beside those of the states: coefficients 0..order of X, 0..order-1 (at least 0) of U.
void Variation::expand_tangents(int order) {
  const size_t n = at(program_.states()), active = memory_.series->active().size(), d = ux(x_.cols());
  const TangentTape& tape = tangent_tape();
  if (active > 0 || sorted_ != &tape) sort_terms(tape);
  sorted_ = active > 0 ? nullptr : &tape;
  const bool parameters = moves_parameters();
  if (parameters) add_parameters(tape, order);
  xs_.resize(n, at(order) + 1, d);
  us_.resize(active, at(order) + 1, d);
  const size_t lanes = xs_.lanes;
  for (size_t i = 0; i < n; ++i) {
    std::fill_n(xs_(i, 0), lanes, 0.0);
    for (size_t c = 0; c < d; ++c) xs_(i, 0)[c] = x_(ix(i), ix(c));
  }
  // The right sides of order k: what parameters add, then the terms.
  const auto add = [&](size_t rows, const TangentRows& given, std::span<const TangentTerm> terms, int k, bool open) {
    sums_.resize(rows, 1, d);
    for (size_t r = 0; r < rows; ++r) {
      if (parameters) std::copy_n(given(r, at(k)), lanes, sums_(r, 0));
      if (!parameters) std::fill_n(sums_(r, 0), lanes, 0.0);
    }
    add_terms(terms, xs_, us_, k, open, sums_);
  };
  for (int k = 0; k <= std::max(0, order - 1); ++k) {
    if (active > 0) {
      add(active, fr_, residual_terms_, k, true);
      solve_unknowns(k);
    }
    if (order == 0) break;
    add(n, fx_, rate_terms_, k, false);
    const double factor = 1.0 / (k + 1);
    for (size_t i = 0; i < n; ++i) {
      for (size_t l = 0; l < lanes; ++l) xs_(i, at(k) + 1)[l] = factor * sums_(i, 0)[l];
    }
  }
}

/// Coefficient k of the tangents of the unknowns, from the residuals without them.
void Variation::solve_unknowns(int k) {
  const Series& series = *memory_.series;
  const size_t lanes = us_.lanes;
  for (const Series::Single& s : series.singles()) {
    for (size_t l = 0; l < lanes; ++l) us_(at(s.member), at(k))[l] = -s.inverse * sums_(at(s.member), 0)[l];
  }
  for (const Series::Block& b : series.blocks()) {
    for (size_t i = 0; i < b.members.size(); ++i) {
      double* u = us_(at(b.members[i]), at(k));
      std::fill_n(u, lanes, 0.0);
      for (size_t j = 0; j < b.members.size(); ++j) {
        for (size_t l = 0; l < lanes; ++l) u[l] -= b.inverse(ix(i), ix(j)) * sums_(at(b.members[j]), 0)[l];
      }
    }
  }
}

void Variation::along(const Piece& piece, const Arc& arc) {
  x_ = within(piece, arc, piece.length);
  if (!(last_arc_ == arc)) last_arc_ = arc;
}

Mat Variation::within(const Piece& piece, const Arc& arc, double tau) {
  const int n = program_.states();
  point_.resize(at(n));
  if (std::exchange(first_, false)) {
    Trajectory::evaluate(piece, n, 0, point_.data());
    rest(arc, point_, piece.start);
  }
  const Mat start = x_;
  double done = 0;
  for (int step = 0; done != tau && step < 100'000; ++step) {
    const int order = expand_along(piece, arc, done);
    if (order == 0) break;  // where sliding ends or a field begins: nothing moves so fast
    expand_tangents(order);
    const double left = tau - done, length = trusted_length(std::abs(left), order);
    if (!(length > 0)) break;
    const double move = length >= std::abs(left) ? left : std::copysign(length, left);
    for (int i = 0; i < n; ++i) {
      for (Eigen::Index c = 0; c < x_.cols(); ++c) {
        double sum = 0;
        for (int k = order; k >= 0; --k) sum = sum * move + xs_(at(i), at(k))[c];
        x_(i, c) = sum;
      }
    }
    done = move == left ? tau : done + move;
  }
  Mat end = x_;
  x_ = start;
  return end;
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
    find_standing(arc);
  } else {
    Trajectory::evaluate(piece, n, done, point_.data());
    if (!expand(point_, piece.start + done, arc, order)) return 0;
  }
  load_tangents(piece.start + done, arc, order, given);
  return order;
}

/// Whether the polynomials of a piece are the series of its states, as far as those of the tangents go: a step without
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
  double length = left;
  for (int round = 0; round < 2; ++round) {  // the scale of a shorter step is smaller
    const double reach = length, last = std::pow(reach, order), second = std::pow(reach, order - 1);
    for (int i = 0; i < program_.states(); ++i) {
      for (Eigen::Index c = 0; c < x_.cols(); ++c) {
        const auto term = [&](int k) { return std::abs(xs_(at(i), at(k))[c]); };
        const double scale = std::max({term(0), term(1) * reach, term(2) * reach * reach});
        if (!std::isfinite(term(order)) || !std::isfinite(term(order - 1))) return 0;
        if (scale == 0) continue;
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
  for (Eigen::Index i = 0; i < out.rows(); ++i) {
    for (Eigen::Index c = 0; c < out.cols(); ++c) out(i, c) = xs_(ux(i), 1)[c];
  }
  return out;
}

}  // namespace saltus
