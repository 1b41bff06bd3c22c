#include "analysis/lookout.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "model/period.hpp"

namespace saltus {
namespace {

constexpr long patience = 500'000;  ///< steps without a point after which a run gives up
constexpr long first_window = 64;   ///< steps between two looks whether it rests
constexpr long first_plane = 2048;  ///< steps without a point before a cycle is looked for
constexpr int longest_cycle = 16;   ///< in crossings of the plane
constexpr double cycle_tolerance = 1e-6;
constexpr double rounding = 32 * std::numeric_limits<double>::epsilon();

}  // namespace

Lookout::Lookout(const Model& model, const RunOptions& options, int section)
    : section_(model.sections[static_cast<size_t>(section)].name),
      watches_(model.sections[static_cast<size_t>(section)].kind != Section::Kind::every),
      tolerance_(options.tolerance),
      start_(model.states.size()),
      end_(model.states.size()),
      scale_(model.states.size(), 0.0) {
  if (!watches_) return;
  if (time_counts(model, options.parameters)) {
    const auto period = period_in_time(model, options.parameters);
    time_ = period ? Time::periodic : Time::other;
    if (period) period_ = period->value;
  }
  met();
  points_ = 0;
}

void Lookout::met() {
  ++points_;
  steps_ = 0;
  window_ = first_window;
  next_look_ = first_window;
  next_plane_ = first_plane;
  earlier_.clear();
  moved_before_.clear();
  settling_.reset();
}

void Lookout::along(const Piece& piece) {
  if (!verdict_.empty()) return;
  const int states = static_cast<int>(end_.size());
  Trajectory::evaluate(piece, states, 0, start_.data());
  Trajectory::evaluate(piece, states, piece.length, end_.data());
  for (size_t i = 0; i < end_.size(); ++i) scale_[i] = std::max(scale_[i], std::abs(end_[i]));
  ++steps_;
  if (earlier_.empty()) {
    earlier_ = end_;
    moved_.assign(end_.size(), 0.0);
  }
  for (size_t i = 0; i < end_.size(); ++i) moved_[i] = std::max(moved_[i], std::abs(end_[i] - earlier_[i]));
  if (time_ == Time::absent && steps_ >= next_look_) look_for_rest();
  if (time_ != Time::other) look_for_cycle(piece);
  if (steps_ > patience && verdict_.empty())
    verdict_ = fmt::format("no {}point of '{}' in {} steps", points_ > 0 ? "further " : "", section_, patience);
}

/// A rest that is approached like a geometric sequence has less before it than the last window moved. How far that is
/// counts over the whole window: a cycle may be back where it was at its end.
void Lookout::look_for_rest() {
  bool rests = !moved_before_.empty();
  for (size_t i = 0; rests && i < end_.size(); ++i) {
    const double before = moved_before_[i], last = moved_[i];
    const double size = std::max(scale_[i], std::numeric_limits<double>::min());
    rests = last <= rounding * size || (last <= tolerance_ * size && 2 * last <= before);
  }
  if (rests) return tell("comes to rest");
  moved_before_ = moved_;
  earlier_ = end_;
  std::fill(moved_.begin(), moved_.end(), 0.0);
  if (steps_ >= 16 * window_) {  // slow beside its shortest time: look over longer windows
    window_ *= 4;
    moved_before_.clear();
  }
  next_look_ = steps_ + window_;
}

double Lookout::height(const std::vector<double>& x) const {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += normal_[i] * (x[i] - foot_[i]);
  return sum;
}

/// Through the present state, normal to its motion in units of what each state has reached.
void Lookout::place_plane() {
  foot_ = end_;
  normal_.assign(end_.size(), 0.0);
  std::vector<double> tolerance;
  for (size_t i = 0; i < end_.size(); ++i) {
    if (scale_[i] > 0) normal_[i] = (end_[i] - start_[i]) / (scale_[i] * scale_[i]);
    tolerance.push_back(scale_[i] > 0 ? cycle_tolerance * scale_[i] : std::numeric_limits<double>::infinity());
  }
  if (time_ == Time::periodic) tolerance.insert(tolerance.end(), 2, cycle_tolerance);
  settling_.emplace(std::move(tolerance), longest_cycle);
  next_plane_ = 4 * steps_;
}

void Lookout::look_for_cycle(const Piece& piece) {
  if (steps_ >= next_plane_) return place_plane();
  if (!settling_ || !(height(start_) < 0) || !(height(end_) >= 0)) return;
  double low = 0, high = piece.length;
  std::vector<double> x(end_.size());
  for (int k = 0; k < 60; ++k) {
    const double middle = low + (high - low) / 2;
    Trajectory::evaluate(piece, static_cast<int>(x.size()), middle, x.data());
    (height(x) < 0 ? low : high) = middle;
  }
  if (time_ == Time::periodic) {  // the same state at another phase of the drive is not the same
    const double phase = 2 * M_PI * std::fmod((piece.start + high) / period_, 1.0);
    x.insert(x.end(), {std::cos(phase), std::sin(phase)});
  }
  if (settling_->add(x)) tell("goes round a cycle");
}

void Lookout::tell(const char* what) {
  verdict_ = points_ > 0 ? fmt::format("{}: '{}' is not met any more", what, section_)
                         : fmt::format("{} without meeting '{}'", what, section_);
}

}  // namespace saltus
