#include <algorithm>

#include <fmt/format.h>

#include "flow/engine.hpp"

namespace saltus {

bool Engine::step() {
  if (stiff_ && !after_event_) return step_stiff();
  series_.set_mode(mode_);
  const double t = clock_.now();
  order_ = stiff_ ? most_order_ : series_.usual_order();
  const SeriesStatus status = series_.expand(x_, t, counters_, order_);
  if (status == SeriesStatus::undefined) return fail_undefined();
  if (status == SeriesStatus::unsolved) return fail_unsolved();
  read_determinants(determinants_);
  list_watches();
  double natural = control_.step(series_, order_, watched_series());
  if (natural == 0) {  // a time scale so short that the last coefficients overflow?
    for (int lower = analytic_order() - 1; natural == 0 && lower > 5; --lower) {
      order_ = series_.usual_order() = lower;
      natural = control_.step(series_, order_, controlled_);
    }
  }
  if (const double own = control_.state_step(); std::isfinite(own) && own > 0) {
    // What a step of the usual order would be: time scales must not depend on how short events cut the steps.
    scale_ = std::min(own * step_ratio_[at(order_)], std::abs(options_.until - options_.from));
  }
  double length = std::min(natural, longest_step());
  if (!(length > 0) || !std::isfinite(length)) length = longest_step();
  if (natural == 0 && analytic_order() >= 1) {
    // Short against the tangent's time, but long enough for time to see the series that follows.
    const double rough = std::max(tangent_scale() * std::pow(options_.tolerance, 2.0 / 3.0), 512 * eps * std::abs(t));
    if (arrives_within(4 * rough)) return happen(0);
    if (!rough_) return step_rough(direction_ * std::min(length, rough));
  }
  rough_ = false;
  if (natural < 4 * eps * std::abs(t) || natural < 1e-300)
    return arrives_within(64 * eps * std::abs(t)) ? happen(0) : fail_stalled(natural);

  Watch* first = nullptr;
  for (;;) {
    first = find_first(direction_ * length);
    const double tau = first ? first->root : direction_ * length;
    copy_piece(tau);
    if (!model_.sections.empty()) find_sections(tau);
    if (acceptable(tau)) break;
    // Too long for the defect: the series does not see what the flow meets. Try half of it.
    length = std::abs(tau) / 2;
    if (length < 4 * eps * std::abs(t) || length < 1e-300) return fail_stalled(length);
    series_.set_mode(mode_);
    series_.expand(x_, t, counters_, order_);
    list_watches();
  }
  after_event_ = false;
  const double tau = piece_.length;
  if (!determinants_.empty()) {
    read_determinants(determinants_at_end_);
    bool flipped = false;
    for (size_t b = 0; b < determinants_.size(); ++b) flipped |= determinants_[b] * determinants_at_end_[b] < 0;
    if (flipped) return fail_at_determinant(tau);
  }
  adapt_order(std::abs(tau), natural);
  record_sections(tau);
  if (ended_) return false;
  advance(tau, first != nullptr, length);
  return !ended_ && (!first || happen(tau));
}

double Engine::longest_step() const {
  double length = std::abs(clock_.until(options_.until));
  for (const Every& e : every_) length = std::min(length, 1000 * e.interval);
  return length;
}

void Engine::adapt_order(double length, double natural) {
  if (stiff_) return;
  int& usual = series_.usual_order();
  if (length >= 0.99 * natural) {
    idle_steps_ += control_.idle(series_, length);
    usual = std::min(usual + 4, most_order_);
  } else if (length < 0.8 * natural) {
    const int enough = control_.enough(series_, order_, controlled_, length) + 1;
    usual = std::min(most_order_, std::max({enough, 8, usual - 3}));
  }
}

int Engine::analytic_order() const {
  int k = 0;
  const auto finite = [&](int order) {
    for (int i = 0; i < program_.states(); ++i) {
      if (!std::isfinite(series_.state(i)[order])) return false;
    }
    return true;
  };
  while (k < order_ && finite(k + 1)) ++k;
  return k;
}

bool Engine::arrives_within(double time) {
  bool any = false;
  for (Watch& w : watches_) {
    const double* c = function(w);
    const double value = c[0] - w.offset, rate = c[1] * direction_;
    w.found = w.known == 0 && value * rate < 0 && std::abs(value) <= time * std::abs(rate);
    w.root = 0;
    any = any || w.found;
  }
  return any;
}

double Engine::tangent_scale() const {
  double shortest = std::abs(options_.until - options_.from);
  for (size_t i = 0; i < x_.size(); ++i) {
    const double* c = series_.state(static_cast<int>(i));
    if (c[0] != 0 && c[1] != 0) shortest = std::min(shortest, std::abs(c[0] / c[1]));
  }
  return shortest;
}

bool Engine::step_rough(double tau) {
  rough_ = true;
  copy_piece(tau);
  const size_t stride = at(order_) + 1;
  for (size_t i = 0; i < x_.size(); ++i) std::fill_n(&piece_.coefficients[i * stride + 2], stride - 2, 0.0);
  next_.resize(x_.size());
  advance(tau, false, std::abs(tau));
  return !ended_;
}

bool Engine::step_stiff() {
  series_.set_mode(mode_);
  const StiffStatus made = stiff_->step(series_, x_, clock_.now(), counters_, longest_step(), piece_);
  if (made == StiffStatus::ok && series_.evaluate(x_, clock_.now(), counters_) == SeriesStatus::ok) {
    list_watches();
    const StiffStatus seen = stiff_->sample(series_, counters_, sampled_functions(), piece_, sampled_);
    if (seen == StiffStatus::ok) return finish_stiff_step();
  }
  series_.evaluate(x_, clock_.now(), counters_);
  if (made == StiffStatus::undefined) return fail_undefined();
  if (made == StiffStatus::stalled) return fail_stalled(0);
  return fail_unsolved();
}

bool Engine::finish_stiff_step() {
  reading_samples_ = true;
  Watch* first = find_first(piece_.length);
  const double tau = first ? first->root : piece_.length;
  if (!model_.sections.empty()) find_sections(tau);
  reading_samples_ = false;
  piece_.length = tau;
  scale_ = std::abs(tau) > 0 ? std::abs(tau) : scale_;
  record_sections(tau);
  if (ended_) return false;
  next_.resize(x_.size());
  advance(tau, first != nullptr, std::abs(tau));
  return !ended_ && (!first || happen(tau));
}

std::vector<SampledFunction> Engine::sampled_functions() {
  using Kind = SampledFunction::Kind;
  std::vector<SampledFunction> out;
  for (Watch& w : watches_) {
    w.sample = static_cast<int>(out.size());
    switch (w.what) {
      case Watched::surface: out.push_back({Kind::surface, w.item, 0}); break;
      case Watched::sigma: out.push_back({Kind::unknown, w.item, std::abs(w.offset)}); break;
      case Watched::gap: out.push_back({Kind::gap, w.item, 0}); break;
      case Watched::lambda: out.push_back({Kind::unknown, program_.switches() + w.item, 0}); break;
      case Watched::slope: out.push_back({Kind::slope, w.output, 0}); break;
      case Watched::jump: out.push_back({Kind::jump, w.item, 0}); break;
      case Watched::wrap: out.push_back({Kind::phase, w.item, std::abs(w.offset)}); break;
    }
  }
  first_section_sample_ = static_cast<int>(out.size());
  for (size_t s = 0; s < model_.sections.size(); ++s) out.push_back({Kind::section, static_cast<int>(s), 0});
  return out;
}

bool Engine::fail_unsolved() {
  std::string names;
  for (const int u : series_.active()) {
    if (u < program_.switches()) names += (names.empty() ? "'" : ", '") + model_.form.switches[at(u)].name + "'";
  }
  if (names.empty() || !series_.slope_varies()) {
    finish(Why::inconsistent, "the sliding equations have no solution any more");
  } else {
    finish(Why::nonunique, fmt::format("sliding on {} stops being attractive at t = {}: the solution is not unique; "
                                       "--leave chooses",
                                       names, clock_.now()));
  }
  return false;
}

void Engine::read_determinants(std::vector<int>& signs) const {
  signs.clear();
  if (!series_.slope_varies()) return;
  for (const Series::Block& block : series_.blocks()) {
    signs.push_back(block.singular ? 0 : block.determinant > 0 ? 1 : -1);
  }
}

bool Engine::fail_at_determinant(double tau) {
  double before = 0, after = tau;
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = 0.5 * (before + after);
    Trajectory::evaluate(piece_, program_.states(), middle, next_.data());
    const bool solved = series_.evaluate(next_, piece_.start + middle, counters_) == SeriesStatus::ok;
    read_determinants(determinants_at_end_);
    (solved && determinants_at_end_ == determinants_ ? before : after) = middle;
  }
  piece_.length = after;
  advance(after, true, std::abs(after));
  return fail_unsolved();
}

bool Engine::fail_undefined() {
  std::string name;
  for (int i = 0; i < program_.states(); ++i) {
    if (!std::isfinite(series_.rate(i)[0])) {
      name = model_.states[at(i)].name;
      break;
    }
  }
  finish(Why::undefined, name.empty() ? "the equations have no finite value here"
                                      : fmt::format("the rate of '{}' is not a finite number here", name));
  return false;
}

bool Engine::fail_stalled(double length) {
  double largest = 0, start = 1;
  for (size_t i = 0; i < x_.size(); ++i) {
    largest = std::max(largest, std::abs(x_[i]));
    start = std::max(start, std::abs(result_.start_state[i]));
  }
  if (largest > 1e6 * start) {
    finish(Why::diverged, fmt::format("the state grows without bound: |x| = {:.3g}", largest));
  } else {
    finish(Why::stalled, fmt::format("steps have shrunk to {:.3g}: the rates have a singularity here", length));
  }
  return false;
}

void Engine::copy_piece(double tau) {
  piece_.start = clock_.now();
  piece_.length = tau;
  const size_t stride = at(order_) + 1;
  piece_.coefficients.resize(x_.size() * stride);
  for (size_t i = 0; i < x_.size(); ++i) {
    std::copy_n(series_.state(static_cast<int>(i)), stride, &piece_.coefficients[i * stride]);
  }
}

bool Engine::acceptable(double tau) {
  const bool blind = series_.tape().flow.may_hide;
  next_.resize(x_.size());
  if (blind && !defect_small(tau * 0.5)) return false;
  return defect_small(tau);
}

bool Engine::defect_small(double tau) {
  Trajectory::evaluate(piece_, program_.states(), tau, next_.data());
  next_tau_ = tau;
  const SeriesStatus status = series_.evaluate(next_, piece_.start + tau, counters_);
  if (status == SeriesStatus::unsolved) return true;  // sliding ends here; the events say how
  if (status == SeriesStatus::undefined) return false;
  return control_.defect_small(piece_, series_, tau, order_);
}

void Engine::advance(double tau, bool at_event, double length) {
  if (next_tau_ != tau || tau == 0) Trajectory::evaluate(piece_, program_.states(), tau, next_.data());
  next_tau_ = 0;
  const bool to_end = !at_event && length >= std::abs(clock_.until(options_.until));
  if (to_end) {
    clock_.set(options_.until);
  } else {
    clock_.advance(tau);
  }
  x_.swap(next_);
  control_.accept(x_);
  for (int i = 0; i < program_.switches(); ++i) {
    if (mode_.switches[at(i)] == '0') result_.sliding[at(i)].time += std::abs(tau);
  }
  keep_piece();
  std::fill(known_.begin(), known_.end(), 0);
  if (!at_event) {
    series_.set_mode(mode_);
    tracking_error_ = true;
    project();
    tracking_error_ = false;
    for (double v : x_) {
      if (!(std::abs(v) < 1e200)) finish(Why::diverged, "the state grows without bound");
    }
  }
}

void Engine::keep_piece() {
  if (!options_.keep_pieces && !options_.on_piece) return;
  piece_.mode = mode_index();
  if (options_.on_piece) options_.on_piece(piece_, mode_);
  if (options_.keep_pieces) result_.pieces.push_back(piece_);
}

int Engine::mode_index() {
  if (result_.modes.empty() || !(result_.modes.back() == mode_)) {
    const auto it = std::find(result_.modes.begin(), result_.modes.end(), mode_);
    if (it != result_.modes.end()) return static_cast<int>(it - result_.modes.begin());
    result_.modes.push_back(mode_);
  }
  return static_cast<int>(result_.modes.size()) - 1;
}

}  // namespace saltus
