#include "flow/variation.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "base/index.hpp"
#include "expr/diff.hpp"
#include "flow/impact.hpp"
#include "flow/taylor.hpp"
#include "flow/thresholds.hpp"

namespace saltus {
namespace {

/// Coefficient k of the product of a series with a row of tangents, in direction c
double product(const double* a, const TangentRows& rows, size_t row, Eigen::Index c, int k) {
  double sum = 0;
  for (int j = 0; j <= k; ++j) sum += a[j] * rows(row, at(k - j))[c];
  return sum;
}

double value_of(const Jet<double>& jet, int output) {
  const double v = jet.output(at(output))[0];
  return std::isfinite(v) ? v : 0.0;
}

}  // namespace

Variation::Variation(const Program& program, const RunOptions& options)
    : program_(program),
      model_(program.model()),
      options_(options),
      memory_(program),
      direction_(options.until < options.from ? -1.0 : 1.0),
      tolerance_(0.1 * options.tolerance) {
  options_.on_piece = {};
  options_.on_transition = {};
  options_.on_event = {};
  options_.on_section = {};
  options_.progress = {};
  memory_.prepare(options_);
  order_ = memory_.order;
  jump_slopes_.resize(model_.form.jumps.size());
  jump_values_.resize(model_.form.jumps.size());
}

void Variation::begin(Mat x, Mat p) {
  x_ = std::move(x);
  p_ = p.size() > 0 ? std::move(p) : Mat(Mat::Zero(ix(model_.parameters.size()), x_.cols()));
  first_ = true;
  last_shift_.setZero(1, x_.cols());
}

void Variation::bind(const std::vector<double>& parameters) {
  if (options_.parameters == parameters) return;
  options_.parameters = parameters;
  memory_.prepare(options_);
  for (auto& [tape, jet] : jets_) jet->bind(parameters);
}

void Variation::note(std::string text) {
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(std::move(text));
}

// ---- tapes ---------------------------------------------------------------------------------------------------------

Jet<double>& Variation::jet_of(const Tape& tape, int order) {
  std::unique_ptr<Jet<double>>& jet = jets_[&tape];
  if (!jet || jet->order() < order) {
    jet = std::make_unique<Jet<double>>(tape, order);
    jet->bind(options_.parameters);
  }
  return *jet;
}

/// Inputs of a tape from the series of the current mode, all orders; the states from a piece that starts here, if
/// given.
void Variation::load(Jet<double>& jet, double t, std::span<const double> counters, int order, const Piece* piece) {
  const Series& series = *memory_.series;
  const Tape& tape = jet.tape();
  const int m = program_.switches();
  const size_t count = at(order) + 1;
  for (size_t i = 0; i < tape.states.size(); ++i) {
    const double* state = piece ? &piece->coefficients[i * count] : series.state(static_cast<int>(i));
    std::copy_n(state, count, jet[tape.states[i]]);
  }
  for (size_t i = 0; i < tape.sigmas.size(); ++i)
    std::copy_n(series.unknown(static_cast<int>(i)), count, jet[tape.sigmas[i]]);
  for (size_t i = 0; i < tape.lambdas.size(); ++i)
    std::copy_n(series.unknown(m + static_cast<int>(i)), count, jet[tape.lambdas[i]]);
  for (size_t c = 0; c < tape.counters.size(); ++c) {
    if (tape.counters[c] >= 0) jet.set_counter(c, counters[c]);
  }
  jet.set_time(t, order);
  for (int k = 0; k <= order; ++k) {
    jet.free(k);
    jet.bound(k);
  }
}

void Variation::enter(const Arc& arc) {
  Series& series = *memory_.series;
  series.set_mode(arc.mode);
  series.guess(arc.guess);
  if (!arc.held.empty()) series.hold_at(arc.held);
}

bool Variation::expand(std::span<const double> x, double t, const Arc& arc, int order) {
  enter(arc);
  const SeriesStatus status = memory_.series->expand(x, t, arc.counters, order);
  find_standing(arc);
  return status == SeriesStatus::ok;
}

/// What stands for each unknown: its position among the active ones, its own or that of a multiple.
void Variation::find_standing(const Arc& arc) {
  const Series& series = *memory_.series;
  const std::string& switches = arc.mode.switches;
  stand_.assign(at(program_.unknowns()), -1);
  stand_sign_.assign(at(program_.unknowns()), 1.0);
  for (size_t a = 0; a < series.active().size(); ++a) {
    const int u = series.active()[a];
    if (!series.held(u)) stand_[at(u)] = static_cast<int>(a);
  }
  for (const auto& [u, tie] : series.ties()) {
    if (switches[at(u)] != '0' || switches[at(tie.first)] != '0') continue;
    stand_[at(u)] = stand_[at(tie.first)];
    stand_sign_[at(u)] = tie.second;
  }
}

const TangentTape& Variation::tangent_tape() {
  const std::string& switches = memory_.series->mode().switches;
  if (!tape_ || tape_switches_ != switches) {
    tape_ = &program_.tangent(switches);
    tape_switches_ = switches;
  }
  return *tape_;
}

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

// ---- along pieces --------------------------------------------------------------------------------------------------

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
  const TangentTape& tape = tangent_tape();
  load(jet_of(tape.arc.tape, order_), piece.start + done, arc.counters, order, given);
  if (moves_parameters()) load(jet_of(tape.arc_parameter.tape, order_), piece.start + done, arc.counters, order, given);
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
  const int n = program_.states();
  const Eigen::Index d = n + P.cols();
  Mat X = Mat::Zero(n, d), directions = Mat::Zero(ix(model_.parameters.size()), d);
  X.leftCols(n).setIdentity();
  if (P.cols() > 0) directions.rightCols(P.cols()) = P;
  const Mat keep_x = std::exchange(x_, std::move(X)), keep_p = std::exchange(p_, std::move(directions));
  expand(x, t, arc, 1);
  const TangentTape& tape = program_.tangent(arc.mode.switches);
  load(jet_of(tape.arc.tape, order_), t, arc.counters, 1);
  if (P.cols() > 0) load(jet_of(tape.arc_parameter.tape, order_), t, arc.counters, 1);
  expand_tangents(1);
  Mat out(n, d);
  for (int i = 0; i < n; ++i) {
    for (Eigen::Index c = 0; c < d; ++c) out(i, c) = xs_(at(i), 1)[c];
  }
  x_ = keep_x;
  p_ = keep_p;
  return out;
}

Vec Variation::rates(const Arc& arc, std::span<const double> x, double t) {
  Series& series = *memory_.series;
  enter(arc);
  Vec f = Vec::Constant(program_.states(), std::nan(""));
  if (series.evaluate(x, t, arc.counters) == SeriesStatus::undefined) return f;
  for (int i = 0; i < program_.states(); ++i) f[i] = series.rate(i)[0];
  return f;
}

// ---- what events look at -------------------------------------------------------------------------------------------

/// Values and derivatives of what events look at, at the point of the last expand.
const Jet<double>& Variation::event_point(const Arc& arc, std::span<const double> x, double t) {
  expand(x, t, arc, 1);
  const TangentTape& tape = program_.tangent(arc.mode.switches);
  load(jet_of(tape.arc.tape, order_), t, arc.counters, 0);
  if (moves_parameters()) load(jet_of(tape.arc_parameter.tape, order_), t, arc.counters, 0);
  Jet<double>& jet = jet_of(tape.event.tape, 0);
  load(jet, t, arc.counters, 0);
  return jet;
}

/// d row = row_x z + row_p P + row_t dt, unknowns held.
Mat Variation::row_tangent(int row, const Jet<double>& jet, const TangentTape& tape, const Mat& z,
                           const Mat* dt) const {
  Mat out = Mat::Zero(1, z.cols());
  for (const SlopeEntry& e : tape.event.by_state) {
    if (e.row == row) out += value_of(jet, e.output) * z.row(e.column);
  }
  for (const SlopeEntry& e : tape.event.by_parameter) {
    if (e.row == row && p_.cols() == z.cols()) out += value_of(jet, e.output) * p_.row(e.column);
  }
  if (dt) {
    for (const SlopeEntry& e : tape.event.by_time) {
      if (e.row == row) out += value_of(jet, e.output) * *dt;
    }
  }
  return out;
}

/// U of an unknown at the point of the last expand_tangents of order 0; 0 for what is fixed.
Mat Variation::unknown_tangent(int u) const {
  const Eigen::Index d = x_.cols();
  Mat out = Mat::Zero(1, d);
  if (stand_[at(u)] < 0) return out;
  for (Eigen::Index c = 0; c < d; ++c) out(0, c) = stand_sign_[at(u)] * us_(at(stand_[at(u)]), 0)[c];
  return out;
}

Variation::GuardSlope Variation::guard(const Guard& g, const Arc& arc, std::span<const double> x, double t,
                                       const Mat& P) {
  const int n = program_.states(), m = program_.switches();
  Mat X = Mat::Zero(n, n + P.cols()), directions = Mat::Zero(ix(model_.parameters.size()), n + P.cols());
  X.leftCols(n).setIdentity();
  if (P.cols() > 0) directions.rightCols(P.cols()) = P;
  const Mat keep_x = std::exchange(x_, std::move(X)), keep_p = std::exchange(p_, std::move(directions));
  GuardSlope out;
  const Jet<double>& jet = event_point(arc, x, t);
  const TangentTape& tape = program_.tangent(arc.mode.switches);
  expand_tangents(0);
  const Series& series = *memory_.series;
  Mat slope = Mat::Zero(1, n + P.cols());
  const auto row = [&](int r) {
    slope = row_tangent(r, jet, tape, x_, nullptr);
    for (const SlopeEntry& e : tape.event.by_unknown) {
      if (e.row == r) slope += value_of(jet, e.output) * unknown_tangent(e.column);
    }
  };
  double rate = 0;
  switch (g.kind) {
    case GuardKind::surface:
      row(program_.event_surface(g.item));
      out.value = series.surface(g.item)[0], rate = series.surface(g.item)[1];
      break;
    case GuardKind::gap:
      row(program_.event_gap(g.item));
      out.value = series.gap(g.item)[0], rate = series.gap(g.item)[1];
      break;
    case GuardKind::jump:
      row(program_.event_jump(g.item));
      out.value = series.jump(g.item)[0], rate = series.jump(g.item)[1];
      break;
    case GuardKind::sigma:
      slope = unknown_tangent(g.item) - g.side * formula_shift(model_.form.switches[at(g.item)].hold);
      out.value = series.unknown(g.item)[0] - g.side * series.hold(g.item), rate = series.unknown(g.item)[1];
      break;
    case GuardKind::slip:
      out.by_state = unknown_tangent(g.item).transpose();
      out.value = series.unknown(g.item)[0] - g.side, rate = series.unknown(g.item)[1];
      break;
    case GuardKind::lambda:
      slope = unknown_tangent(m + g.item);
      out.value = series.unknown(m + g.item)[0], rate = series.unknown(m + g.item)[1];
      break;
    case GuardKind::slope:
    case GuardKind::clock: break;
  }
  out.by_state = slope.leftCols(n).transpose();
  out.by_parameter = slope.rightCols(P.cols()).transpose();
  double along = 0;
  for (int i = 0; i < n; ++i) along += out.by_state[i] * series.rate(i)[0];
  out.by_time = rate - along;
  x_ = keep_x;
  p_ = keep_p;
  return out;
}

Variation::GuardSeries Variation::guard_series(const Guard& g, const Arc& arc, std::span<const double> x, double t,
                                               int order, Mat X, Mat P) {
  const int m = program_.switches();
  order = std::min(order, order_ - 1);
  const Eigen::Index d = X.cols();
  const Mat keep_x = std::exchange(x_, std::move(X)), keep_p = std::exchange(p_, std::move(P));
  expand(x, t, arc, order + 1);
  const TangentTape& tape = program_.tangent(arc.mode.switches);
  load(jet_of(tape.arc.tape, order_), t, arc.counters, order + 1);
  if (!p_.isZero(0)) load(jet_of(tape.arc_parameter.tape, order_), t, arc.counters, order + 1);
  expand_tangents(order + 1);  // gives those of the unknowns up to `order`
  const Series& series = *memory_.series;
  GuardSeries out{Vec::Zero(order + 1), Mat::Zero(order + 1, d)};
  const auto values = [&](const double* c) {
    for (int k = 0; k <= order; ++k) out.value[k] = c[k];
  };
  const auto row = [&](int r) {
    Jet<double>& jet = jet_of(tape.event.tape, order + 1);
    load(jet, t, arc.counters, order);
    for (const SlopeEntry& e : tape.event.by_state) {
      if (e.row != r) continue;
      for (Eigen::Index c = 0; c < d; ++c) {
        for (int k = 0; k <= order; ++k)
          out.tangent(k, c) += product(jet.output(at(e.output)), xs_, at(e.column), c, k);
      }
    }
    for (const SlopeEntry& e : tape.event.by_unknown) {
      if (e.row != r || stand_[at(e.column)] < 0) continue;
      for (Eigen::Index c = 0; c < d; ++c) {
        for (int k = 0; k <= order; ++k)
          out.tangent(k, c) +=
              stand_sign_[at(e.column)] * product(jet.output(at(e.output)), us_, at(stand_[at(e.column)]), c, k);
      }
    }
    for (const SlopeEntry& e : tape.event.by_parameter) {
      if (e.row != r) continue;
      for (int k = 0; k <= order; ++k) out.tangent.row(k) += jet.output(at(e.output))[k] * p_.row(e.column);
    }
  };
  const auto unknown = [&](int u) {
    values(series.unknown(u));
    if (stand_[at(u)] < 0) return;
    for (Eigen::Index c = 0; c < d; ++c) {
      for (int k = 0; k <= order; ++k) out.tangent(k, c) = stand_sign_[at(u)] * us_(at(stand_[at(u)]), at(k))[c];
    }
  };
  switch (g.kind) {
    case GuardKind::surface:
      values(series.surface(g.item));
      row(program_.event_surface(g.item));
      break;
    case GuardKind::gap:
      values(series.gap(g.item));
      row(program_.event_gap(g.item));
      break;
    case GuardKind::jump:
      values(series.jump(g.item));
      row(program_.event_jump(g.item));
      break;
    case GuardKind::sigma:
      unknown(g.item);
      out.value[0] -= g.side * series.hold(g.item);
      out.tangent.row(0) -= g.side * formula_shift(model_.form.switches[at(g.item)].hold);
      break;
    case GuardKind::slip:
      unknown(g.item);
      out.value[0] -= g.side;
      break;
    case GuardKind::lambda: unknown(m + g.item); break;
    case GuardKind::slope:
    case GuardKind::clock: break;
  }
  x_ = keep_x;
  p_ = keep_p;
  return out;
}

Variation::GuardSlope Variation::section(int s, const Arc& arc, std::span<const double> x, double t) {
  const int n = program_.states();
  const Mat keep_x = std::exchange(x_, Mat(Mat::Identity(n, n)));
  const Mat keep_p = std::exchange(p_, Mat(Mat::Zero(ix(model_.parameters.size()), n)));
  GuardSlope out{.by_state = Vec::Zero(n)};
  const Jet<double>& jet = event_point(arc, x, t);
  const TangentTape& tape = program_.tangent(arc.mode.switches);
  expand_tangents(0);
  Mat slope = row_tangent(program_.event_section(s), jet, tape, x_, nullptr);
  for (const SlopeEntry& e : tape.event.by_unknown) {
    if (e.row == program_.event_section(s)) slope += value_of(jet, e.output) * unknown_tangent(e.column);
  }
  out.by_state = slope.transpose();
  const Series& series = *memory_.series;
  out.value = series.section(s)[0];
  out.by_time = series.section(s)[1];
  for (int i = 0; i < n; ++i) out.by_time -= out.by_state[i] * series.rate(i)[0];
  x_ = keep_x;
  p_ = keep_p;
  return out;
}

// ---- through transitions -------------------------------------------------------------------------------------------

/// How a formula of parameters moves.
Mat Variation::formula_shift(const Expr& e) const {
  Mat out = Mat::Zero(1, x_.cols());
  if (e.is_number()) return out;
  for (const Partial& q : gradient(e, SymbolKind::parameter))
    out += constant_value(q.value, options_.parameters) * p_.row(q.symbol.symbol().index);
  return out;
}

/// How the time at which a guard is met moves. The series of the mode are at the event (event_point).
Mat Variation::shift_of(const Guard& g, const Arc& arc, double t) {
  const Series& series = *memory_.series;
  const int m = program_.switches();
  const TangentTape& tape = program_.tangent(arc.mode.switches);
  const Jet<double>& jet = *jets_.at(&tape.event.tape);
  const auto row = [&](int r) {
    Mat out = row_tangent(r, jet, tape, x_, nullptr);
    for (const SlopeEntry& e : tape.event.by_unknown) {
      if (e.row == r) out += value_of(jet, e.output) * unknown_tangent(e.column);
    }
    return out;
  };
  switch (g.kind) {
    case GuardKind::surface: return -row(program_.event_surface(g.item)) / series.surface(g.item)[1];
    case GuardKind::gap: return -row(program_.event_gap(g.item)) / series.gap(g.item)[1];
    case GuardKind::jump:
      // What another event carried over its condition happens with that event.
      if (g.side == 0 && t == last_time_) return last_shift_;
      return -row(program_.event_jump(g.item)) / series.jump(g.item)[1];
    case GuardKind::clock: {
      const LoweredJump& jump = model_.form.jumps[at(g.item)];
      const double every = constant_value(*jump.every, options_.parameters);
      const double phase = jump.phase ? constant_value(*jump.phase, options_.parameters) : 0.0;
      const Mat ticks = std::round((t - phase) / every) * formula_shift(*jump.every);
      return jump.phase ? Mat(ticks + formula_shift(*jump.phase)) : ticks;
    }
    case GuardKind::sigma:
      return -(unknown_tangent(g.item) - g.side * formula_shift(model_.form.switches[at(g.item)].hold)) /
             series.unknown(g.item)[1];
    case GuardKind::slip: return -unknown_tangent(g.item) / series.unknown(g.item)[1];
    case GuardKind::lambda: return -unknown_tangent(m + g.item) / series.unknown(m + g.item)[1];
    case GuardKind::slope: break;
  }
  return Mat::Zero(1, x_.cols());
}

/// Of all guards of an event, a row each.
Mat Variation::shifts_of(const Transition& event, const Arc& before) {
  std::vector<Mat> rows;
  for (const Guard& g : event.guards) {
    if (g.kind != GuardKind::slope) rows.push_back(shift_of(g, before, event.t));
  }
  Mat out = Mat::Zero(std::max<Eigen::Index>(1, ix(rows.size())), x_.cols());
  for (size_t k = 0; k < rows.size(); ++k) out.row(ix(k)) = rows[k];
  return out;
}

/// Tangents through guards that are met at one instant, as if one after the other. Nothing where that leads elsewhere.
std::optional<Mat> Variation::one_by_one(const Transition& event, const Arc& before, std::span<const size_t> order) {
  const int n = program_.states();
  const Mat keep = x_;
  std::vector<double> x = event.x_minus;
  Arc arc = before;
  bool arrives = event.jumps.empty();
  for (size_t k = 0; k < order.size() && arrives; ++k) {
    const Guard& g = event.guards[order[k]];
    event_point(arc, x, event.t);
    expand_tangents(0);
    const Mat dt = shift_of(g, arc, event.t);
    Mat z = x_;
    for (int i = 0; i < n; ++i) z.row(i) += memory_.series->rate(i)[0] * dt;
    for (const Hit& hit : event.hits) {
      const auto found = std::find(hit.contacts.begin(), hit.contacts.end(), g.item);
      if (g.kind != GuardKind::gap || found == hit.contacts.end()) continue;
      Hit alone = hit;
      alone.contacts = {g.item};
      alone.impulse = {hit.impulse[static_cast<size_t>(found - hit.contacts.begin())]};
      arrives = arrives && hit.switches.empty() && pass_hit(alone, x, event.t, z, dt);
    }
    if (k + 1 == order.size()) {
      arc = {event.after, event.counters, {}, event.guess};
    } else if (g.kind == GuardKind::surface || g.kind == GuardKind::sigma || g.kind == GuardKind::slip) {
      arc.mode.switches[at(g.item)] = event.after.switches[at(g.item)];
    } else if (g.kind == GuardKind::gap || g.kind == GuardKind::lambda) {
      arc.mode.constraints[at(g.item)] = event.after.constraints[at(g.item)];
    }
    x_ = z - rates(arc, x, event.t) * dt;
  }
  Mat out = std::exchange(x_, keep);
  for (int i = 0; i < n; ++i)
    arrives = arrives && std::abs(x[at(i)] - event.x_plus[at(i)]) <= 1e-9 * (1 + std::abs(event.x_plus[at(i)]));
  if (!arrives || !out.allFinite()) return std::nullopt;
  return out;
}

/// Several guards at one instant, which do not move together: each tangent meets them in its own order. False where
/// one after the other leads elsewhere than all at once.
bool Variation::through_several(const Transition& event, const Arc& before, const Mat& shifts) {
  const Eigen::Index count = shifts.rows();
  const bool together =
      ((shifts.rowwise() - shifts.row(0)).array().abs() <= 1e-7 * shifts.array().abs().maxCoeff()).all();
  if (count < 2 || together || !shifts.allFinite()) return false;
  std::map<std::vector<size_t>, Mat> passed;
  const auto pass = [&](const std::vector<size_t>& order) {
    if (passed.contains(order)) return true;
    const std::optional<Mat> x = one_by_one(event, before, order);
    if (x) passed.emplace(order, *x);
    return x.has_value();
  };
  Mat out(x_.rows(), x_.cols());
  bool one_sided = false;
  for (Eigen::Index c = 0; c < x_.cols(); ++c) {
    std::vector<size_t> order(ux(count));
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return direction_ * shifts(ix(a), c) < direction_ * shifts(ix(b), c); });
    std::vector<size_t> reverse(order.rbegin(), order.rend());
    if (!pass(order)) {
      note(fmt::format(
          "contacts hit together at t = {} where one by one they end elsewhere: no derivative exists there; "
          "it goes on as that of hitting together",
          event.t));
      return false;
    }
    out.col(c) = passed.at(order).col(c);
    one_sided =
        one_sided || !pass(reverse) || (passed.at(reverse).col(c) - out.col(c)).norm() > 1e-7 * (1 + out.col(c).norm());
  }
  if (one_sided) note(fmt::format("two events meet at t = {}: the derivative there is one-sided", event.t));
  x_ = out;
  last_time_ = event.t;
  last_shift_ = shifts.row(0);
  return true;
}

/// Whether all that changes at an event is one switch, which begins to slide.
bool Variation::only_starts_to_slide(const Transition& event) const {
  int changed = -1;
  for (size_t i = 0; i < event.before.switches.size(); ++i) {
    if (event.before.switches[i] == event.after.switches[i]) continue;
    if (changed >= 0 || event.after.switches[i] != '0') return false;
    changed = static_cast<int>(i);
  }
  return changed >= 0 && event.before.constraints == event.after.constraints && event.guards.size() == 1 &&
         event.guards[0] == Guard{GuardKind::surface, changed, event.guards[0].side};
}

/// What was constant before an event: as on the last piece, if there was one.
Arc Variation::arc_before(const Transition& event) const {
  if (last_arc_.mode == event.before && last_arc_.counters == event.counters_before) return last_arc_;
  return {event.before, event.counters_before};
}

/// The limit of a geometric sequence, given its last values; the last one where it is not to be seen.
Mat limit_of(const Mat& last, const Mat& former, const Mat& before) {
  Mat limit = last;
  for (Eigen::Index i = 0; i < limit.size(); ++i) {
    const double d = last(i) - former(i), d1 = former(i) - before(i);
    if (std::abs(d1) > 64 * eps * std::abs(last(i)) && std::abs(d) < 0.99995 * std::abs(d1))
      limit(i) += d * d / (d1 - d);
  }
  return limit;
}

/// The limit of a chatter. All that chattered comes to rest there (mode s), whatever follows:
///   X+ = P X + (f_s - f+) dt,   P onto what rests along its forces,
/// X and dt the limits of the tangents and of the shifts at its events.
void Variation::accumulate(const Transition& event) {
  const int m = program_.switches(), unknowns = program_.unknowns();
  const Arc after{event.after, event.counters, {}, event.guess};
  Arc resting = after;
  for (const int u : event.resting) {
    if (u >= unknowns) continue;
    char& letter = u < m ? resting.mode.switches[at(u)] : resting.mode.constraints[at(u - m)];
    if (letter != '=') letter = u < m ? '0' : 'c';
  }
  const auto [last, former, before] = last_in_step();
  if (before) x_ = limit_of(last->after, former->after, before->after);
  rest(resting, event.x_plus, event.t);
  first_ = false;
  if (resting.mode != after.mode && last) {
    const Vec leap = rates(resting, event.x_plus, event.t) - rates(after, event.x_plus, event.t);
    if (leap.allFinite()) x_ += leap * (before ? limit_of(last->shift, former->shift, before->shift) : last->shift);
  }
  passages_.clear();
}

/// The last event, and the two before it that repeat it with the smallest period; empty where nothing repeats.
std::array<const Variation::Passage*, 3> Variation::last_in_step() const {
  const auto from_end = [this](size_t i) { return &passages_[passages_.size() - 1 - i]; };
  if (passages_.empty() || passages_.back().after.cols() != x_.cols()) return {};
  for (size_t period = 1; 3 * period <= passages_.size(); ++period) {
    bool repeats = true;
    for (size_t i = 0; i < 2 * period && repeats; ++i) {
      const Passage &one = *from_end(i), &former = *from_end(i + period);
      repeats = one.guard == former.guard && one.before == former.before && former.after.cols() == x_.cols();
    }
    if (repeats) return {from_end(0), from_end(period), from_end(2 * period)};
  }
  return {from_end(0), nullptr, nullptr};
}

void Variation::through(const Transition& event) {
  if (event.silent) return;
  if (!event.resting.empty()) return accumulate(event);
  pass(event);
  remember(event);
}

void Variation::remember(const Transition& event) {
  if (event.guards.empty()) return;
  constexpr size_t most_passages = 64;
  if (passages_.size() == most_passages) passages_.erase(passages_.begin(), passages_.begin() + most_passages / 2);
  passages_.push_back({event.guards.front(), event.before, last_shift_, x_});
}

void Variation::pass(const Transition& event) {
  const bool resets = !event.jumps.empty() || !event.hits.empty();
  if (!resets && event.before == event.after && event.counters_before == event.counters) return;  // touched
  const Arc before = arc_before(event), after{event.after, event.counters, {}, event.guess};
  if (!resets && event.counters_before == event.counters && event.guess.empty() && only_starts_to_slide(event)) {
    // (f+ - f-)/h' is -D/(h_x D) with D = df/dsigma, if switches only add up: a projection, also where h' is zero.
    rest(after, event.x_plus, event.t);
    first_ = false;
    last_time_ = event.t;
    last_shift_.setZero(1, x_.cols());
    return;
  }
  Mat dt = Mat::Zero(1, x_.cols());
  Mat z = x_;
  if (!event.guards.empty()) {
    const Vec f1 = rates(after, event.x_plus, event.t);
    event_point(before, event.x_minus, event.t);
    expand_tangents(0);
    Vec f0(program_.states());
    const Series& series = *memory_.series;
    for (int i = 0; i < program_.states(); ++i) f0[i] = series.rate(i)[0];
    // Where nothing jumps, neither state nor rate, the time of the event does not matter (a tangential exit).
    if (!resets && ((f1 - f0).array().abs() <= 1e-12 * (f1.array().abs() + f0.array().abs())).all()) return;
    const Mat shifts = shifts_of(event, before);
    if (shifts.rows() > 1 && event.guards.size() == ux(shifts.rows()) && through_several(event, before, shifts)) return;
    dt = shifts.row(0);
    if (!dt.allFinite()) {
      note(fmt::format("an event at t = {} is met without speed: the derivative is infinite", event.t));
      return rest(after, event.x_plus, event.t);
    }
    z += f0 * dt;
    if (resets) {
      std::vector<double> x = event.x_minus;
      reset(event, before, x, event.t, z, dt);
    }
    x_ = z - f1 * dt;
  } else {  // at the start: its time is given
    std::vector<double> x = event.x_minus;
    if (resets) reset(event, before, x, event.t, z, dt);
    x_ = z;
  }
  last_time_ = event.t;
  last_shift_ = dt;
}

bool Variation::reset(const Transition& event, const Arc& arc, std::span<double> x, double t, Mat& z, const Mat& dt) {
  if (!event.jumps.empty()) {
    // Multipliers in what a jump sets are those before the event.
    const int m = program_.switches(), q = program_.constraints();
    std::vector<double> lambda(at(q), 0.0);
    Mat dlambda = Mat::Zero(q, z.cols());
    for (int j = 0; j < q; ++j) {
      const GuardSlope slope = guard({GuardKind::lambda, j, 0}, arc, x, t);
      lambda[at(j)] = slope.value;
      dlambda.row(j) = slope.by_state.transpose() * z + slope.by_time * dt;
    }
    if (q > 0 && p_.cols() == z.cols() && !p_.isZero(0)) {
      const Mat keep = std::exchange(x_, Mat(Mat::Zero(x_.rows(), x_.cols())));
      event_point(arc, x, t);
      expand_tangents(0);
      for (int j = 0; j < q; ++j) dlambda.row(j) += unknown_tangent(m + j);
      x_ = keep;
    }
    for (const JumpDone& jump : event.jumps) {
      if (!pass_jump(jump, lambda, x, t, z, dt, dlambda)) return false;
    }
  }
  for (const Hit& hit : event.hits) {
    if (!pass_hit(hit, x, t, z, dt)) return false;
  }
  return true;
}

bool Variation::pass_jump(const JumpDone& jump, std::span<const double> lambda, std::span<double> x, double t, Mat& z,
                          const Mat& dt, const Mat& dlambda) {
  const LoweredJump& lowered = model_.form.jumps[at(jump.jump)];
  std::vector<JumpSlope>& slopes = jump_slopes_[at(jump.jump)];
  std::vector<std::pair<int, Plain>>& values = jump_values_[at(jump.jump)];
  if (values.empty()) {
    for (const Assignment& a : lowered.set) {
      values.emplace_back(a.state, Plain(a.value));
      for (const SymbolKind kind : {SymbolKind::state, SymbolKind::parameter, SymbolKind::time, SymbolKind::lambda}) {
        for (const Partial& d : gradient(a.value, kind))
          slopes.push_back({a.state, kind, kind == SymbolKind::time ? 0 : d.symbol.symbol().index, Plain(d.value)});
      }
    }
  }
  const std::vector<double> before(x.begin(), x.end());
  const PlainInputs inputs{options_.parameters, before, lambda, t};
  const Mat old = z;
  for (const Assignment& a : lowered.set) z.row(a.state).setZero();
  for (JumpSlope& s : slopes) {
    const double v = s.formula(inputs);
    if (!std::isfinite(v)) continue;
    switch (s.by) {
      case SymbolKind::state: z.row(s.state) += v * old.row(s.index); break;
      case SymbolKind::time: z.row(s.state) += v * dt; break;
      case SymbolKind::lambda: z.row(s.state) += v * dlambda.row(s.index); break;
      default:
        if (p_.cols() == z.cols()) z.row(s.state) += v * p_.row(s.index);
    }
  }
  for (auto& [state, formula] : values) x[at(state)] = formula(inputs);
  return true;
}

/// Newton's and Coulomb's laws linearised. With w the gap rates, c = sum of D_j Lambda_j the change, r the restitution:
///   w_j(x + c) + r_j w_j(x) = 0 for every contact hit,   h_i(x + c) = 0 for every switch that sticks
bool Variation::pass_hit(const Hit& hit, std::span<double> x, double t, Mat& z, const Mat& dt) {
  const int m = program_.switches();
  const std::vector<double> before(x.begin(), x.end());
  if (!repeat_impact(*memory_.series, hit, x, t, direction_)) return false;
  const std::vector<double> after(x.begin(), x.end());

  const TangentTape& tape = program_.tangent(hit.mode.switches);
  std::vector<double> sigma(at(m), 0.0);
  for (int i = 0; i < m; ++i) {
    const char c = hit.mode.switches[at(i)];
    sigma[at(i)] = c == '+' ? 1.0 : c == '-' ? -1.0 : c == '=' ? model_.form.switches[at(i)].at_zero : 0.0;
  }
  std::vector<int> stuck;
  for (size_t b = 0; b < hit.switches.size(); ++b) {
    sigma[at(hit.switches[b].first)] = hit.sigma[b];
    if (hit.switches[b].second == '0') stuck.push_back(hit.switches[b].first);
  }
  const auto point = [&](const std::vector<double>& state) {
    auto jet = std::make_unique<Jet<double>>(tape.event.tape, 0);
    const Tape& tp = tape.event.tape;
    jet->bind(options_.parameters);
    for (size_t i = 0; i < tp.states.size(); ++i) *(*jet)[tp.states[i]] = state[i];
    for (size_t i = 0; i < tp.sigmas.size(); ++i) *(*jet)[tp.sigmas[i]] = sigma[i];
    for (size_t i = 0; i < tp.lambdas.size(); ++i) *(*jet)[tp.lambdas[i]] = 0.0;
    for (size_t c = 0; c < tp.counters.size(); ++c) {
      if (tp.counters[c] >= 0) jet->set_counter(c, hit.counters[c]);
    }
    jet->set_time(t, 0);
    jet->free(0);
    jet->bound(0);
    return jet;
  };
  const auto a = point(before), b = point(after);
  const auto gradient_of = [&](const Jet<double>& jet, int row) {
    Vec g = Vec::Zero(program_.states());
    for (const SlopeEntry& e : tape.event.by_state) {
      if (e.row == row) g[e.column] = value_of(jet, e.output);
    }
    return g;
  };

  std::vector<size_t> struck;
  for (size_t k = 0; k < hit.contacts.size(); ++k) {
    if (hit.impulse[k] != 0) struck.push_back(k);
  }
  const Eigen::Index count = ix(struck.size()), slid = ix(stuck.size()), all = count + slid;
  // Directions, and what moves them besides the impulses.
  Mat D = Mat::Zero(program_.states(), count), by_sigma = Mat::Zero(program_.states(), slid), moved = z;
  for (Eigen::Index k = 0; k < count; ++k) {
    const int j = hit.contacts[struck[ux(k)]];
    const auto& direction = model_.form.gaps[at(j)].direction;
    for (size_t q = 0; q < direction.size(); ++q) {
      const int row = program_.event_direction(j, static_cast<int>(q));
      D(direction[q].state, k) = value_of(*a, row);
    }
  }
  // Impulses at this state, which may differ from those of the event that is repeated.
  Vec change(program_.states());
  for (int i = 0; i < program_.states(); ++i) change[i] = after[at(i)] - before[at(i)];
  Vec impulse = Vec::Zero(count);
  if (count > 0) impulse = Orthogonal(D).solve(change);
  for (Eigen::Index k = 0; k < count; ++k) {
    const int j = hit.contacts[struck[ux(k)]];
    const auto& direction = model_.form.gaps[at(j)].direction;
    for (size_t q = 0; q < direction.size(); ++q) {
      const int row = program_.event_direction(j, static_cast<int>(q));
      moved.row(direction[q].state) += impulse[k] * row_tangent(row, *a, tape, z, &dt);
      for (const SlopeEntry& e : tape.event.by_unknown) {
        if (e.row != row) continue;
        for (Eigen::Index s = 0; s < slid; ++s) {
          if (stuck[ux(s)] == e.column) by_sigma(direction[q].state, s) += impulse[k] * value_of(*a, e.output);
        }
      }
    }
  }
  Mat J(all, all), r(all, z.cols());
  Mat unknowns(program_.states(), all);
  unknowns << D, by_sigma;
  for (Eigen::Index k = 0; k < count; ++k) {
    const int j = hit.contacts[struck[ux(k)]];
    const int rate = tape.rungs[at(m + j)][1];
    const double factor = value_of(*a, program_.event_restitution(j));
    const double back = direction_ > 0 ? factor : 1 / factor;
    J.row(k) = gradient_of(*b, rate).transpose() * unknowns;
    r.row(k) = row_tangent(rate, *b, tape, moved, &dt);
    // A contact that was about to open and is pressed by the others ends without velocity.
    // (Alone it does so only where an orbit is continued past its grazing: there the law of the impact stays.)
    if (count > 1 && direction_ * value_of(*a, rate) > 0) continue;
    const Mat dfactor = row_tangent(program_.event_restitution(j), *a, tape, z, &dt);
    r.row(k) += back * row_tangent(rate, *a, tape, z, &dt) +
                (direction_ > 0 ? 1.0 : -back * back) * value_of(*a, rate) * dfactor;
  }
  for (Eigen::Index s = 0; s < slid; ++s) {
    const int row = program_.event_surface(stuck[ux(s)]);
    J.row(count + s) = gradient_of(*b, row).transpose() * unknowns;
    r.row(count + s) = row_tangent(row, *b, tape, moved, &dt);
  }
  z = all > 0 ? Mat(moved - unknowns * Lu(J).solve_columns(r)) : moved;
  return true;
}

// ---- rest ----------------------------------------------------------------------------------------------------------

/// What is slid on and closed at a point: its functions, and the directions in which forces bring a state back to them.
Variation::Ground Variation::ground(const Arc& arc, std::span<const double> x, double t) {
  const int n = program_.states();
  Ground out;
  enter(arc);
  Series& series = *memory_.series;
  if (series.active().empty()) return out;
  const Jet<double>& event = event_point(arc, x, t);
  const TangentTape& tape = program_.tangent(arc.mode.switches);
  const Jet<double>& jet = *jets_.at(&tape.arc.tape);
  Mat J = Mat::Zero(n, n), D = Mat::Zero(n, ix(series.active().size()));
  for (const SlopeEntry& e : tape.arc.by_state) {
    if (e.row < n) J(e.row, e.column) = value_of(jet, e.output);
  }
  for (const SlopeEntry& e : tape.arc.by_unknown) {
    if (e.row < n && stand_[at(e.column)] >= 0)
      D(e.row, stand_[at(e.column)]) += stand_sign_[at(e.column)] * value_of(jet, e.output);
  }
  std::vector<Vec> directions;
  std::vector<int> rows;
  for (size_t a = 0; a < series.active().size(); ++a) {
    const int u = series.active()[a];
    if (series.held(u)) continue;
    Vec direction = D.col(ix(a));
    for (const int row : tape.rungs[at(series.raised(u) ? program_.unknowns() + u - program_.switches() : u)]) {
      rows.push_back(row);
      directions.push_back(direction);
      direction = J * direction;
    }
  }
  const Eigen::Index count = ix(rows.size());
  out.directions.resize(n, count);
  out.functions.setZero(count, n);
  out.values.resize(count);
  out.by_parameter.setZero(count, ix(model_.parameters.size()));
  for (Eigen::Index r = 0; r < count; ++r) {
    out.directions.col(r) = directions[ux(r)];
    out.values[r] = value_of(event, rows[ux(r)]);
    for (const SlopeEntry& e : tape.event.by_state) {
      if (e.row == rows[ux(r)]) out.functions(r, e.column) = value_of(event, e.output);
    }
    for (const SlopeEntry& e : tape.event.by_parameter) {
      if (e.row == rows[ux(r)]) out.by_parameter(r, e.column) = value_of(event, e.output);
    }
  }
  return out;
}

void Variation::manifold(const Arc& arc, std::span<const double> x, double t, Vec& values, Mat& slopes, const Mat& P) {
  Ground g = ground(arc, x, t);
  values = std::move(g.values);
  slopes.resize(values.size(), program_.states() + P.cols());
  if (values.size() == 0) return;
  slopes.leftCols(program_.states()) = g.functions;
  if (P.cols() > 0) slopes.rightCols(P.cols()) = g.by_parameter * P;
}

void Variation::rest(const Arc& arc, std::span<const double> x, double t) {
  const Ground g = ground(arc, x, t);
  if (g.values.size() == 0) return;
  const Mat off = g.functions * x_ + g.by_parameter * p_;
  x_ -= g.directions * (Orthogonal(g.functions * g.directions).pseudo_inverse() * off);
}

void Variation::land(const Arc& arc, std::span<double> x, double t) {
  for (int round = 0; round < 3; ++round) {
    const Ground g = ground(arc, x, t);
    if (g.values.size() == 0) return;
    const Vec step = g.directions * Orthogonal(g.functions * g.directions).solve(g.values);
    if (!step.allFinite()) return;
    for (Eigen::Index i = 0; i < step.size(); ++i) x[ux(i)] -= step[i];
    if (round == 0 && x_.size() > 0) rest(arc, x, t);
  }
}

// ---- parameters ----------------------------------------------------------------------------------------------------

ParameterDirections parameter_directions(const Model& model, const std::vector<double>& parameters,
                                         std::span<const int> of) {
  const Eigen::Index count = ix(of.size());
  ParameterDirections out{Mat::Zero(ix(model.states.size()), count), Mat::Zero(ix(parameters.size()), count)};
  for (Eigen::Index c = 0; c < count; ++c) {
    Vec p = Vec::Zero(ix(parameters.size()));
    p[of[ux(c)]] = 1;
    // Formulas of parameters depend on each other without circles: as many rounds as there are parameters reach all.
    for (size_t round = 0; round < parameters.size(); ++round) {
      const Vec old = p;
      for (size_t j = 0; j < parameters.size(); ++j) {
        if (static_cast<int>(j) == of[ux(c)]) continue;
        double sum = 0;
        for (const Partial& d : gradient(model.parameters[j].value, SymbolKind::parameter))
          sum += constant_value(d.value, parameters) * p[d.symbol.symbol().index];
        p[ix(j)] = sum;
      }
      if (p == old) break;
    }
    out.p.col(c) = p;
    for (size_t i = 0; i < model.states.size(); ++i) {
      for (const Partial& d : gradient(model.states[i].initial, SymbolKind::parameter))
        out.x(ix(i), c) += constant_value(d.value, parameters) * p[d.symbol.symbol().index];
    }
  }
  return out;
}

}  // namespace saltus
