#include <algorithm>

#include <fmt/format.h>

#include "flow/engine.hpp"
#include "solve/polynomial.hpp"

namespace saltus {

void Engine::list_watches() {
  watches_.clear();
  const int m = program_.switches();
  for (int i = 0; i < m; ++i) {
    if (!program_.moves(i)) continue;
    const char c = mode_.switches[at(i)];
    if (c != '0') {
      watches_.push_back({.what = Watched::surface, .item = i, .known = known_[at(i)], .sign = c == '+' ? 1 : -1});
    } else if (series_.tape().degree[at(i)] >= 0 && !series_.clamped(i) && !series_.ties().contains(i)) {
      const double s = series_.hold(i);
      const double start = series_.unknown(i)[0];
      const int known = known_[at(i)];
      watches_.push_back({.what = Watched::sigma, .item = i, .offset = s, .known = start > 0 ? known : 0, .sign = -1});
      watches_.push_back({.what = Watched::sigma, .item = i, .offset = -s, .known = start < 0 ? known : 0, .sign = 1});
    }
  }
  for (int j = 0; j < program_.constraints(); ++j) {
    const bool open = mode_.constraints[at(j)] == 'o';
    watches_.push_back(
        {.what = open ? Watched::gap : Watched::lambda, .item = j, .known = known_[at(m + j)], .sign = 1});
  }
  if (series_.slope_varies()) list_slopes();
  for (size_t k = 0; k < model_.form.jumps.size(); ++k) {
    watches_.push_back({.what = Watched::jump,
                        .item = static_cast<int>(k),
                        .known = jump_sign_[k] == 0 ? 1 : 0,
                        .sign = jump_sign_[k]});
  }
  for (size_t c = 0; c < counters_.size(); ++c) {
    const bool wrapped = wrapped_.size() > c && wrapped_[c];
    watches_.push_back(
        {.what = Watched::wrap, .item = static_cast<int>(c), .offset = counters_[c] + (direction_ > 0 ? 1 : 0)});
    watches_.push_back({.what = Watched::wrap,
                        .item = static_cast<int>(c),
                        .offset = counters_[c] + (direction_ > 0 ? 0 : 1),
                        .known = wrapped ? 1 : 0});
  }
}

void Engine::list_slopes() {
  if (!stiff_ || after_event_) series_.expand_slope(order_);
  for (const Series::Single& single : series_.singles()) {
    const int u = series_.active()[at(single.member)];
    if (u < program_.switches() && single.output >= 0) {
      watches_.push_back({.what = Watched::slope, .item = u, .output = single.output});
    }
  }
}

std::span<const WatchedSeries> Engine::watched_series() {
  controlled_.clear();
  for (const Watch& w : watches_) controlled_.push_back({function(w), std::abs(w.offset)});
  for (size_t s = 0; s < model_.sections.size(); ++s) {
    if (model_.sections[s].kind == Section::Kind::on) controlled_.push_back({series_.section(static_cast<int>(s)), 0});
  }
  return controlled_;
}

const double* Engine::function(const Watch& w) const {
  if (reading_samples_) return sample(w.sample);
  switch (w.what) {
    case Watched::surface: return series_.surface(w.item);
    case Watched::sigma: return series_.unknown(w.item);
    case Watched::gap: return series_.gap(w.item);
    case Watched::lambda: return series_.unknown(program_.switches() + w.item);
    case Watched::slope: return series_.slope_series(w.output);
    case Watched::jump: return series_.jump(w.item);
    case Watched::wrap: return series_.phase(w.item);
  }
  return nullptr;
}

Watch* Engine::find_first(double h) {
  Watch* first = nullptr;
  for (Watch& w : watches_) {
    w.found = w.late = false;
    locate(w, h);
    if (!w.found) continue;
    if (!first || std::abs(w.root) < std::abs(first->root)) first = &w;
    if (std::abs(w.root) < std::abs(h)) h = w.root;  // nothing later matters, but ties do
    if (h == 0) h = direction_ * resolution();
  }
  return first;
}

void Engine::locate(Watch& w, double h) {
  const double* c = function(w);
  const size_t count = at(order_) + 1;
  // What is negligible in time is looked at together with the first event.
  const double reach = h + direction_ * resolution();
  std::span<const double> series(c, count);
  if (w.offset != 0) {
    shifted_.assign(c, c + count);
    shifted_[0] -= w.offset;
    series = shifted_;
  }
  if (w.known == 0 && w.sign != 0 && series[0] * w.sign < 0) {
    w.found = w.late = true;
    w.root = 0;
    return;
  }
  double from = 0;
  for (int attempt = 0; attempt < 16; ++attempt) {
    const Root root = leftmost_root(series, {.h = reach, .from = from, .known_zeros = w.known});
    if (root.kind == RootKind::none) return;
    if (root.kind == RootKind::crossing && wanted(w, root.sign_after)) {
      w.found = true;
      w.root = std::abs(root.at) > std::abs(h) ? h : root.at;
      return;
    }
    from = root.at;  // a touch, or a crossing in a direction that does not count
  }
}

bool Engine::wanted(const Watch& w, int sign_after) const {
  if (w.what != Watched::jump) return true;
  const Direction d = model_.form.jumps[at(w.item)].direction;
  return d == Direction::any || (d == Direction::rising) == (sign_after > 0);
}

bool Engine::happen(double tau) {
  rough_ = false;
  after_event_ = true;
  if (stiff_) stiff_->restart();
  ++result_.cost.events;
  if (result_.cost.events > options_.max_events) {
    finish(Why::stalled, fmt::format("{} events were not enough", options_.max_events));
    return false;
  }
  before_ = mode_;
  x_before_ = x_;
  bool wrapped = false;
  zeros_.clear();
  jumps_.clear();
  touched_.clear();
  wrapped_.assign(counters_.size(), false);
  for (const Watch& w : watches_) {
    if (!w.found || std::abs(w.root - tau) > resolution()) continue;
    const int m = program_.switches();
    switch (w.what) {
      case Watched::surface: zeros_.push_back({.unknown = w.item, .known = 1}); break;
      case Watched::sigma: {
        const char side = w.late ? '\0' : w.offset > 0 ? '+' : '-';
        zeros_.push_back({.unknown = w.item, .known = rest_of(w.item), .leaving = side});
        break;
      }
      case Watched::gap:
        zeros_.push_back({.unknown = m + w.item, .known = model_.form.gaps[at(w.item)].degree == 0 ? 0 : 1});
        break;
      case Watched::lambda:
        zeros_.push_back({.unknown = m + w.item, .known = rest_of(m + w.item), .leaving = w.late ? '\0' : 'o'});
        break;
      case Watched::slope:
        finish(Why::nonunique, fmt::format("sliding on '{}' stops being attractive at t = {}: the solution is not "
                                           "unique; --leave chooses",
                                           model_.form.switches[at(w.item)].name, clock_.now()));
        return false;
      case Watched::jump: jumps_.push_back(w.item); break;
      case Watched::wrap:
        counters_[at(w.item)] += (w.offset == counters_[at(w.item)] + 1) ? 1 : -1;
        wrapped_[at(w.item)] = true;
        wrapped = true;
        break;
    }
  }
  for (const AtZero& z : zeros_) touched_.push_back(z.unknown);
  add_neighbours(zeros_);
  if (!series_.ties().empty()) add_ties(zeros_);
  const bool anew = wrapped || !jumps_.empty();
  if (anew) zeros_.clear();
  if (!jumps_.empty()) apply_jumps(jumps_);
  bool going_on = arrive(zeros_, anew, false);
  for (int round = 0; going_on && !jumps_.empty(); ++round) {
    std::vector<int> next = triggered(jumps_);
    if (next.empty()) break;
    if (round == 1000) {
      finish(Why::stalled,
             fmt::format("jumps follow each other without time passing ('{}')", model_.jumps[at(next[0])].name));
      return false;
    }
    conclude();
    before_ = mode_;
    x_before_ = x_;
    jumps_ = std::move(next);
    apply_jumps(jumps_);
    zeros_.clear();
    going_on = arrive(zeros_, true, false);
  }
  note_signs();
  conclude();
  return going_on && !ended_ && finish_chatter();
}

void Engine::conclude() {
  count_slides(before_);
  record(before_, x_before_, jumps_);
  if (!model_.sections.empty()) record_at_event(jumps_);
}

void Engine::add_neighbours(std::vector<AtZero>& zeros) const {
  const int m = program_.switches();
  const size_t known = zeros.size();
  const auto listed = [&](int u) {
    return std::any_of(zeros.begin(), zeros.begin() + static_cast<std::ptrdiff_t>(known),
                       [u](const AtZero& z) { return z.unknown == u; });
  };
  for (int i = 0; i < m; ++i) {
    const bool slid = mode_.switches[at(i)] == '0' && program_.moves(i);
    if (slid && !listed(i)) zeros.push_back({.unknown = i, .known = rest_of(i), .fresh = false});
  }
  for (int j = 0; j < program_.constraints(); ++j) {
    const bool takes_part = mode_.constraints[at(j)] == 'c' || model_.form.gaps[at(j)].degree == 0;
    if (takes_part && !listed(m + j)) zeros.push_back({.unknown = m + j, .known = rest_of(m + j), .fresh = false});
  }
}

void Engine::add_ties(std::vector<AtZero>& zeros) const {
  const auto find = [&](int u) {
    return std::find_if(zeros.begin(), zeros.end(), [u](const AtZero& z) { return z.unknown == u; });
  };
  for (const auto& [u, tie] : series_.ties()) {
    const auto [leader, sign] = tie;
    const auto a = find(u), b = find(leader);
    if ((a == zeros.end()) == (b == zeros.end())) continue;
    AtZero other = a == zeros.end() ? *b : *a;
    other.unknown = a == zeros.end() ? u : leader;
    if (other.leaving && sign < 0) other.leaving = other.leaving == '+' ? '-' : '+';
    zeros.push_back(other);
  }
  for (const auto& [u, tie] : series_.ties()) {  // both leave if one does
    const auto a = find(u), b = find(tie.first);
    if (a == zeros.end()) continue;
    if (b->leaving && !a->leaving) a->leaving = tie.second > 0 ? b->leaving : b->leaving == '+' ? '-' : '+';
    a->fresh = a->fresh || b->fresh;
  }
}

int Engine::rest_of(int u) const {
  const bool algebraic = u >= program_.switches() && model_.form.gaps[at(u - program_.switches())].degree == 0;
  return algebraic ? 0 : program_.point_degree(u);
}

void Engine::apply_jumps(const std::vector<int>& jumps) {
  series_.set_mode(mode_);
  series_.evaluate(x_, clock_.now(), counters_);
  const Jet<double>& values = series_.actions();
  std::vector<double> next = x_;
  for (const int k : jumps) {
    const LoweredJump& jump = model_.form.jumps[at(k)];
    for (size_t s = 0; s < jump.set.size(); ++s) {
      next[at(jump.set[s].state)] = values.output(program_.jump_value(k, static_cast<int>(s)))[0];
    }
  }
  x_ = next;
  count_wraps();
}

std::vector<int> Engine::triggered(const std::vector<int>& last) {
  std::vector<int> out;
  const std::vector<int> old = jump_sign_;
  note_signs();
  for (size_t k = 0; k < jump_sign_.size(); ++k) {
    if (std::find(last.begin(), last.end(), static_cast<int>(k)) != last.end()) continue;
    if (old[k] * jump_sign_[k] < 0 && wanted({.what = Watched::jump, .item = static_cast<int>(k)}, jump_sign_[k])) {
      out.push_back(static_cast<int>(k));
    }
  }
  return out;
}

void Engine::note_signs() {
  if (ended_ || (model_.form.jumps.empty() && !has_surface_section_)) return;
  series_.set_mode(mode_);
  if (series_.evaluate(x_, clock_.now(), counters_) != SeriesStatus::ok) return;
  const auto sign = [](double c) { return c > 0 ? 1 : c < 0 ? -1 : 0; };
  for (size_t k = 0; k < jump_sign_.size(); ++k) jump_sign_[k] = sign(series_.jump(static_cast<int>(k))[0]);
  for (size_t s = 0; s < section_sign_.size(); ++s) section_sign_[s] = sign(series_.section(static_cast<int>(s))[0]);
}

void Engine::count_slides(const Mode& before) {
  for (size_t i = 0; i < mode_.switches.size(); ++i)
    slides_ += mode_.switches[i] == '0' && before.switches[i] != '0' ? 1 : 0;
}

void Engine::record(const Mode& before, const std::vector<double>& x_before, const std::vector<int>& jumps) {
  if (!options_.keep_events && !options_.on_event) return;
  const int m = program_.switches();
  const auto letter = [m](const Mode& mode, int u) {
    return u < m ? mode.switches[at(u)] : mode.constraints[at(u - m)];
  };
  std::vector<int> changed;
  for (int u = 0; u < program_.unknowns(); ++u) {
    if (letter(before, u) != letter(mode_, u)) changed.push_back(u);
  }
  bool jumped = !jumps.empty();
  if (jumped) {
    Event event{.t = clock_.now(), .kind = EventKind::jump, .before = before, .after = before, .jumped = x_before};
    for (const int k : jumps) event.on.push_back(model_.jumps[at(k)].name);
    emit(std::move(event));
  }
  const bool closes = changed.size() == 1 && changed[0] >= m && letter(mode_, changed[0]) == 'c';
  if (!rebounded_.empty() && !closes) {
    jumped = true;
    Event event{.t = clock_.now(), .kind = EventKind::impact, .before = before, .after = before, .jumped = x_before};
    for (const int j : rebounded_) event.on.push_back(model_.constraints[at(j)].name);
    emit(std::move(event));
  }
  if (changed.empty()) return;
  Event event{.t = clock_.now(), .kind = EventKind::mode, .before = before, .after = mode_};
  if (!jumped && !rebounded_.empty()) event.jumped = x_before;
  for (const int u : changed)
    event.on.push_back(u < m ? model_.form.switches[at(u)].name : model_.constraints[at(u - m)].name);
  if (changed.size() == 1) event.kind = kind_of_change(letter(before, changed[0]), letter(mode_, changed[0]));
  emit(std::move(event));
}

void Engine::emit(Event event) {
  event.state = x_;
  emit_as_is(std::move(event));
}

void Engine::emit_as_is(Event event) {
  if (options_.on_event) options_.on_event(event);
  if (!options_.keep_events) return;
  if (static_cast<long>(result_.events.size()) >= options_.max_kept_events) {
    if (!events_full_)
      say(fmt::format("only the first {} events are kept; later ones are counted", options_.max_kept_events));
    events_full_ = true;
    return;
  }
  result_.events.push_back(std::move(event));
}

}  // namespace saltus
