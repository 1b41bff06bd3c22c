#include "ask/record.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/index.hpp"
#include "base/numbers.hpp"

namespace saltus {
namespace {

constexpr size_t most_entries = 20'000'000;
constexpr size_t most_smooth_rows = 1'000'000;
constexpr size_t most_marks = 2000;
constexpr size_t most_stays = 200'000;

std::vector<double> state_at(const Piece& piece, int states, double tau) {
  std::vector<double> x(at(states));
  Trajectory::evaluate(piece, states, tau, x.data());
  return x;
}

/// The end of a piece is known up to rounding; what comes next knows its time exactly.
void set_time(std::vector<double>& row, double t) {
  if (std::abs(row[0] - t) <= 1e-14 * std::abs(t)) row[0] = t;
}

}  // namespace

RunTables::RunTables(const Program& program, const RunOptions& options, const Sampling& sampling,
                     std::optional<double> begin)
    : program_(program),
      from_(options.from),
      direction_(options.until < options.from ? -1 : 1),
      sampling_(sampling),
      quantities_(program, options),
      columns_(quantity_names(program.model())),
      width_(columns_.size()),
      most_rows_(std::max<size_t>(1000, most_entries / width_)) {
  most_rows_ = samples() ? std::numeric_limits<size_t>::max() : std::min(most_rows_, most_smooth_rows);
  if (sampling.kind == Sampling::Kind::every)
    next_sample_ = std::lround(std::ceil(direction_ * (begin.value_or(from_) - from_) / sampling.interval - 1e-9));
  lowest_.assign(width_, HUGE_VAL);
  highest_.assign(width_, -HUGE_VAL);
  const double expected = sampling.kind == Sampling::Kind::times   ? static_cast<double>(sampling.times.size())
                          : sampling.kind == Sampling::Kind::every ? std::abs(options.until - from_) / sampling.interval
                                                                   : 0;
  // No more memory than the rows need; what a run does not reach is never touched.
  if (expected > 0 && expected < most_entries) cells_.reserve((static_cast<size_t>(expected) + 2) * width_);
}

// ---- rows ----------------------------------------------------------------------------------------------------------

RunTables::Row RunTables::row_at(double t, const std::vector<double>& x) {
  Row row;
  quantities_.read(t, x, row);
  return row;
}

void RunTables::widen(const Row& row) {
  for (size_t k = 0; k < width_; ++k) {
    lowest_[k] = std::fmin(lowest_[k], row[k]);
    highest_[k] = std::fmax(highest_[k], row[k]);
  }
}

void RunTables::piece(const Piece& piece, const Arc& arc) {
  const int n = program_.states();
  const std::vector<double> middle = state_at(piece, n, 0.5 * piece.length);
  const double t_middle = piece.start + 0.5 * piece.length, t_end = piece.start + piece.length;
  const bool changed = !begun_ || !(arc == quantities_.arc()) || jumped_;
  stay(piece.start, t_end, visible_mode(arc.mode, program_.model().form.visible));
  if (changed) quantities_.enter(arc);
  Row first = row_at(piece.start, state_at(piece, n, 0));  // from where sigma is followed along the piece
  Row last = row_at(t_end, state_at(piece, n, piece.length));
  if (samples()) {
    sample(piece);
  } else {
    begin_piece(first, changed);
    if (sampling_.kind == Sampling::Kind::smooth) {
      // Halved at least once: a curve that bends both ways alike looks straight from its ends and middle.
      const Row half = row_at(t_middle, middle);
      widen(first);
      widen(half);
      widen(last);
      refine(piece, first, half, 1);
      add(half);
      refine(piece, half, last, 1);
    }
  }
  begun_ = true;
  jumped_ = false;
  end_ = std::move(last);
}

/// The end of the last piece, and the start of this one where that differs: together, lest only one of them be dropped.
void RunTables::begin_piece(const Row& first, bool changed) {
  std::optional<Row> before;
  before.swap(end_);
  if (before) set_time(*before, first[0]);
  const Row gap(width_, nan);
  std::vector<const Row*> rows;
  if (before) rows.push_back(&*before);
  if (before && jumped_) rows.push_back(&gap);
  if (changed) rows.push_back(&first);
  add_unit(rows);
}

/// Rows strictly between two of a piece, halving as long as some curve leaves its chord visibly.
void RunTables::refine(const Piece& piece, const Row& from, const Row& to, int depth) {
  constexpr double visible = 5e-4;  // of the range of the curve
  if (depth > 7) return;
  const double t = 0.5 * (from[0] + to[0]);
  const Row row = row_at(t, state_at(piece, program_.states(), t - piece.start));
  bool bent = false;
  for (size_t k = 1; k < width_ && !bent; ++k) {
    const double size = std::max(std::abs(highest_[k]), std::abs(lowest_[k]));
    const double range = std::max(highest_[k] - lowest_[k], 1e-6 * size);
    bent = std::abs(row[k] - 0.5 * (from[k] + to[k])) > visible * range;
  }
  if (!bent) return;
  widen(row);
  refine(piece, from, row, depth + 1);
  add(row);
  refine(piece, row, to, depth + 1);
}

double RunTables::next_time() const {
  if (sampling_.kind == Sampling::Kind::every)
    return from_ + direction_ * sampling_.interval * static_cast<double>(next_sample_);
  return static_cast<size_t>(next_sample_) < sampling_.times.size() ? sampling_.times[static_cast<size_t>(next_sample_)]
                                                                    : nan;
}

void RunTables::sample(const Piece& piece) {
  for (;; ++next_sample_) {
    const double t = next_time(), tau = t - piece.start;
    if (!(direction_ * (tau - piece.length) < 0)) return;
    add(row_at(t, state_at(piece, program_.states(), direction_ * std::max(0.0, direction_ * tau))));
  }
}

void RunTables::add(const Row& row) { add_unit({&row}); }

void RunTables::add_unit(const std::vector<const Row*>& rows) {
  if (offered_++ % stride_ != 0) return;
  if (!samples()) units_.push_back(this->rows());  // rows that were asked for are never thinned
  for (const Row* row : rows) cells_.insert(cells_.end(), row->begin(), row->end());
  if (this->rows() >= most_rows_) thin();
}

void RunTables::thin() {
  thinned_ = true;
  stride_ *= 2;
  size_t kept = 0, to = 0;
  for (size_t u = 0; u < units_.size(); u += 2) {
    const size_t from = units_[u], end = u + 1 < units_.size() ? units_[u + 1] : rows();
    std::copy(cells_.begin() + static_cast<std::ptrdiff_t>(from * width_),
              cells_.begin() + static_cast<std::ptrdiff_t>(end * width_),
              cells_.begin() + static_cast<std::ptrdiff_t>(to * width_));
    units_[kept++] = to;
    to += end - from;
  }
  units_.resize(kept);
  cells_.resize(to * width_);
}

// ---- events, modes, end --------------------------------------------------------------------------------------------

void RunTables::event(const Event& event, const Arc& after) {
  ++counts_[event.kind];
  // A chatter ends where it was going anyway.
  if (event.jumped && event.kind != EventKind::chatter) jumped_ = true;
  if (too_many_marks_) return;
  if (mark_kinds_.size() == most_marks) {
    too_many_marks_ = true;
    return;
  }
  // Values at the event are those after it; the rows go on in their own mode.
  const Arc arc = quantities_.arc();
  std::vector<double> guess = quantities_.guess();
  quantities_.enter(after);
  const Row row = row_at(event.t, event.state);
  mark_cells_.insert(mark_cells_.end(), row.begin(), row.end());
  mark_kinds_.emplace_back(kind_name(event.kind));
  if (begun_) quantities_.enter(arc);
  quantities_.set_guess(std::move(guess));
}

void RunTables::finish(const Trajectory& trajectory) {
  if (!begun_) {  // a run of no length, or that ended before its window
    quantities_.enter(trajectory.last);
    add(row_at(trajectory.end.t, trajectory.end.state));
    return;
  }
  if (samples()) {
    const double t = next_time(), near = sampling_.kind == Sampling::Kind::every ? 1e-9 * sampling_.interval : 0;
    if (end_ && std::abs(t - (*end_)[0]) <= near) {
      (*end_)[0] = t;
      stride_ = 1;
      add(*end_);
    }
    return;
  }
  stride_ = 1;  // the end is always kept
  set_time(*end_, trajectory.end.t);
  add(*end_);
  if (!jumped_) return;
  const Row gap(width_, nan);
  quantities_.enter(trajectory.last);
  const Row after = row_at(trajectory.end.t, trajectory.end.state);
  add_unit({&gap, &after});
}

Rows RunTables::take_rows() {
  if (too_many_marks_) {
    mark_cells_.clear();
    mark_kinds_.clear();
  }
  std::string note;
  if (thinned_)
    note = fmt::format("the rows are thinned to one in {}; '`sample` DT' chooses their times",
                       std::max<size_t>(2, offered_ / std::max<size_t>(1, units_.size())));
  return {.columns = columns_,
          .cells = std::move(cells_),
          .stays = std::move(stays_),
          .modes = std::move(modes_),
          .mark_cells = std::move(mark_cells_),
          .mark_kinds = std::move(mark_kinds_),
          .counts = std::move(counts_),
          .note = std::move(note)};
}

int RunTables::index_of(const Mode& mode) {
  const auto [it, fresh] = mode_index_.try_emplace(mode.text(), static_cast<int>(modes_.size()));
  if (fresh) modes_.push_back(mode);
  return it->second;
}

/// Stays follow each other; when there are too many, the longer of two neighbours stands for both.
void RunTables::stay(double from, double to, const Mode& mode) {
  if (program_.model().form.visible + program_.constraints() == 0) return;  // hidden switches have no ribbon
  if (!stays_.empty() && modes_[at(stays_.back().mode)] == mode) {
    stays_.back().to = to;
    return;
  }
  if (stays_.size() >= most_stays) {
    std::vector<Stay> half;
    for (size_t i = 0; i + 1 < stays_.size(); i += 2) {
      const Stay &a = stays_[i], &b = stays_[i + 1];
      half.push_back({a.from, b.to, std::abs(a.to - a.from) >= std::abs(b.to - b.from) ? a.mode : b.mode});
    }
    stays_ = std::move(half);
  }
  if (!stays_.empty()) stays_.back().to = from;
  stays_.push_back({from, to, index_of(mode)});
}

}  // namespace saltus
