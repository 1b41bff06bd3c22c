// The mode at the start of a run: decided there, or known from a run before that began at the same time.
#include <algorithm>

#include <fmt/format.h>

#include "base/copy.hpp"
#include "base/index.hpp"
#include "flow/act.hpp"
#include "flow/thresholds.hpp"

namespace saltus {

std::optional<Fate> Act::start(Moment& now, Transition& first) {
  const bool known = start_as_before(now);
  std::optional<Fate> fate;
  if (!known) {
    now.mode.switches.assign(at(program_.switches()), '+');
    now.mode.constraints = program_.open_constraints();
    now.counters.assign(at(model_.form.counter_values), 0.0);
    now.known.assign(at(program_.unknowns()), 0);
    first.t = now.t();
    if (program_.any_joint()) fate = project_start(now);
    first.x_minus = now.x;
    zeros_.clear();
    if (!fate) fate = arrive(now, first, zeros_, true, true);
    first.before = first.after = now.mode;
    first.x_plus = now.x;
    if (!fate) keep_start(now, first);
  }
  if (!fate) note_jumps(now);
  caused_.clear();  // nothing is armed before the start
  return fate;
}

/// The start satisfies the joints but for the digits that were written, or is to be moved onto them.
std::optional<Fate> Act::project_start(Moment& now) {
  const std::vector<double> before = now.x;
  series_.set_mode(now.mode);
  constexpr int most = 50;
  for (int round = 0; round < most; ++round) {
    const std::vector<double> last = now.x;
    series_.project_joints(now.x, now.t(), now.counters, false);
    if (now.x == last) break;
  }
  evaluate_point(now);
  if (auto fate = check_joints(now, "no start on the joint '{}' is found near the one given")) return fate;
  std::string moved;
  for (size_t i = 0; i < before.size(); ++i) {
    constexpr double shown = 1e-9;
    const double way = now.x[i] - before[i];
    if (std::abs(way) > shown * (std::abs(before[i]) + std::abs(now.x[i])))
      moved += fmt::format("{}{} by {:.6g}", moved.empty() ? "" : ", ", model_.states[i].name, way);
  }
  if (!moved.empty() && options_->project) say("the start was moved onto the joints: " + moved);
  return std::nullopt;
}

/// True if the general way would come to this start: everything is on its side, as clearly as it asks for, but for one
/// surface of time alone, which is where it was.
bool Act::fits(const Start& start, const Moment& now) {
  point_.evaluate(now.x, now.t(), start.sigma, start.counters, lambda_);
  return on_their_sides(start.mode, start.zero, start.bounds);
}

/// True if at the point last looked at all surfaces but one are clearly on their sides in this mode, where none rests,
/// and all gaps are open. `bounds`: how clearly, per switch; without them as the general way looks.
bool Act::on_their_sides(const Mode& mode, int except, std::span<const double> bounds) const {
  const int m = program_.switches();
  for (int i = 0; i < m; ++i) {
    if (i == except) continue;
    const int sign = point_.sign(program_.point(i, 0), bounds.empty() ? zero_bounds : bounds[at(i)]);
    if (sign == 0 || (sign > 0 ? '+' : '-') != mode.switches[at(i)]) return false;
  }
  for (int j = 0; j < program_.constraints(); ++j) {
    if (point_.sign(program_.point(m + j, 0), zero_bounds) <= 0) return false;
  }
  return true;
}

bool Act::is_free(const Moment& now) {
  const auto is_side = [](char c) { return c == '+' || c == '-'; };
  if (!std::all_of(now.mode.switches.begin(), now.mode.switches.end(), is_side) || !series_.ties().empty())
    return false;
  for (int j = 0; j < program_.constraints(); ++j) {
    if (now.mode.constraints[at(j)] != 'o' || model_.form.gaps[at(j)].degree == 0) return false;
  }
  return true;
}

/// A start at this time whose decisions are those of a run before, if the field has a value there. The rates of what
/// is zero there are those of time.
bool Act::start_as_before(Moment& now) {
  if (starts_for_ != series_.binding()) {
    starts_for_ = series_.binding();
    starts_.clear();
    last_start_ = std::nan("");
  }
  if (!options_->legs || options_->step) return false;
  for (Start& start : starts_) {
    if (start.t != now.t() || start.direction != direction_ || !fits(start, now)) continue;
    series_.set_mode(start.mode);
    if (series_.expand(now.x, now.t(), start.counters, series_.usual_order()) != SeriesStatus::ok) return false;
    now.mode = start.mode;
    copy_numbers(start.counters, now.counters);
    now.known = start.known;
    if (&start != starts_.data()) std::swap(start, starts_.front());  // its neighbours are likely to be the next
    return true;
  }
  return false;
}

/// Keeps a start that others may begin like: where runs begin at the same time again, nothing has happened at once, and
/// no time scale was asked for.
void Act::keep_start(const Moment& now, const Transition& first) {
  constexpr size_t most_starts = 8;
  const bool again = std::exchange(last_start_, now.t()) == now.t();
  if (!again || starts_.size() >= most_starts || !first.impulse.empty() || has_messages() || time_scale != 0) return;
  if (!is_free(now)) return;
  read_sigma(now);
  Start start{.t = now.t(), .direction = direction_, .mode = now.mode, .counters = now.counters, .sigma = sigma_};
  start.known = now.known;
  start.bounds.assign(sigma_.size(), zero_bounds);
  evaluate_point(now);
  for (int i = 0; i < program_.switches(); ++i) {
    if (point_.sign(program_.point(i, 0), zero_bounds) != 0) continue;
    if (start.zero >= 0 || !program_.timed(i) || program_.nested(i)) return;
    // Surfaces that depend on this one have been evaluated with the same side of it before it was decided, and with the
    // same counters.
    const bool above = std::any_of(model_.form.counters.begin(), model_.form.counters.end(),
                                   [i](const Counter& c) { return c.above == i; });
    if (above || sigma_[at(i)] != model_.form.switches[at(i)].at_zero || program_.dependents(i).empty()) return;
    start.zero = i;
    for (const int d : program_.dependents(i)) start.bounds[at(d)] = near_bounds;
  }
  if (fits(start, now)) starts_.push_back(std::move(start));
}

}  // namespace saltus
