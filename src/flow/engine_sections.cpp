#include <algorithm>

#include <fmt/format.h>

#include "flow/engine.hpp"
#include "solve/polynomial.hpp"

namespace saltus {

double Engine::time_of(const Every& e, long k) const {
  return options_.from + direction_ * e.interval * static_cast<double>(k);
}

void Engine::find_sections(double tau) {
  passages_.clear();
  for (size_t i = 0; i < every_.size(); ++i) {
    const Every& e = every_[i];
    for (long k = e.next;; ++k) {
      const double due = direction_ * clock_.until(time_of(e, k));
      if (due > std::abs(tau) + 4 * resolution()) break;
      passages_.push_back({e.section, direction_ * std::clamp(due, 0.0, std::abs(tau)), 0, static_cast<int>(i)});
    }
  }
  for (size_t s = 0; s < model_.sections.size(); ++s) {
    if (model_.sections[s].kind != Section::Kind::on) continue;
    const double* series =
        reading_samples_ ? sample(first_section_sample_ + static_cast<int>(s)) : series_.section(static_cast<int>(s));
    const std::span<const double> c(series, at(order_) + 1);
    const int sign = section_sign_[s];
    if (sign != 0 && c[0] * sign < 0) passages_.push_back({static_cast<int>(s), 0.0, -sign});
    double from = 0;
    for (int found = 0; found < 1000; ++found) {
      const Root root = leftmost_root(c, {.h = tau, .from = from, .known_zeros = sign == 0 ? 1 : 0});
      if (root.kind == RootKind::none) break;
      if (root.kind == RootKind::crossing) passages_.push_back({static_cast<int>(s), root.at, root.sign_after});
      from = root.at;
    }
    const double end = saltus::evaluate(c, tau);
    if (end != 0) next_sign_[s] = end > 0 ? 1 : -1;
  }
}

void Engine::record_sections(double tau) {
  std::stable_sort(passages_.begin(), passages_.end(),
                   [](const Passage& a, const Passage& b) { return std::abs(a.tau) < std::abs(b.tau); });
  std::vector<double> x(x_.size());
  for (const Passage& p : passages_) {
    if (std::abs(p.tau) > std::abs(tau)) break;
    const Section& section = model_.sections[at(p.section)];
    double t = piece_.start + p.tau;
    if (p.every >= 0) {
      Every& e = every_[at(p.every)];
      t = time_of(e, e.next++);
    } else {
      // Backward in time a rising crossing is met from above.
      const int sign = direction_ > 0 ? p.sign : -p.sign;
      if (std::abs(t - section_seen_[at(p.section)]) <= 4 * resolution()) continue;
      if (std::abs(t - options_.from) <= 4 * resolution()) continue;
      section_seen_[at(p.section)] = t;
      if (section.direction != Direction::any && (section.direction == Direction::rising) != (sign > 0)) continue;
    }
    Trajectory::evaluate(piece_, program_.states(), p.tau, x.data());
    if (pass(p.section, t, x)) {
      piece_.length = p.tau;
      keep_piece();
      x_ = x;
      clock_.set(t);
      finish(counted_out_ ? Why::count : Why::stop, fmt::format("section '{}'", section.name));
      return;
    }
  }
  section_sign_ = next_sign_;
}

bool Engine::pass(int s, double t, const std::vector<double>& x) {
  const bool wants_more = !options_.on_section || options_.on_section({s, t, x, result_.cost.events, slides_});
  if (options_.keep_events || options_.on_event) {
    Event event{
        .t = t, .kind = EventKind::section, .on = {model_.sections[at(s)].name}, .before = mode_, .after = mode_};
    event.state = x;
    emit_as_is(std::move(event));
  }
  if (s == options_.section && ++section_points_ >= options_.section_count && options_.section_count > 0)
    counted_out_ = true;
  return counted_out_ || !wants_more || model_.sections[at(s)].stop;
}

void Engine::record_at_event(const std::vector<int>& jumps) {
  for (size_t s = 0; s < model_.sections.size(); ++s) {
    const Section& section = model_.sections[s];
    const std::vector<int>& happened = section.kind == Section::Kind::jump ? jumps : rebounded_;
    if (section.kind != Section::Kind::jump && section.kind != Section::Kind::constraint) continue;
    if (std::find(happened.begin(), happened.end(), section.index) == happened.end()) continue;
    if (pass(static_cast<int>(s), clock_.now(), x_))
      finish(counted_out_ ? Why::count : Why::stop, fmt::format("section '{}'", section.name));
  }
}

}  // namespace saltus
