#include <algorithm>

#include "flow/engine.hpp"
#include "flow/impact.hpp"

namespace saltus {

const ChoiceOptions& Engine::choice_options(bool at_start) {
  choice_.time_scale = time_scale();
  choice_.at_start = at_start;
  return choice_;
}

bool Engine::arrive(std::vector<AtZero>& zeros, bool jumped, bool at_start) {
  rebounded_.clear();
  if (jumped) look(zeros);
  for (int round = 0; approaching(zeros); ++round) {
    if (round > 100) {
      finish(Why::inconsistent, "impacts follow each other without time passing");
      return false;
    }
    if (!rebound(zeros)) return false;
    look(zeros);
  }
  return settle(zeros, at_start);
}

void Engine::look(std::vector<AtZero>& zeros) {
  const int m = program_.switches();
  const auto listed = [&](int u) {
    return std::any_of(zeros.begin(), zeros.end(), [u](const AtZero& z) { return z.unknown == u; });
  };
  // What rested before is likely to rest on: it may have drifted by more than the last bits.
  const auto bounds = [&](int u) {
    const bool rested = u < m ? mode_.switches[at(u)] == '0' : mode_.constraints[at(u - m)] == 'c';
    return rested && started_ ? 1e6 : 4;
  };
  const auto vanishing = [&](int u) {
    int k = 0;
    while (k < program_.point_degree(u) && point_.sign(program_.point(u, k), bounds(u)) == 0) ++k;
    return k;
  };
  sigma_.assign(at(m), 0.0);
  evaluate_point();
  for (int i = 0; i < m; ++i) {
    if (program_.nested(i)) evaluate_point();
    const int sign = point_.sign(program_.point(i, 0), bounds(i));
    if (!listed(i)) {
      if (sign == 0 && program_.moves(i)) {
        zeros.push_back({.unknown = i, .known = vanishing(i)});
        if (mode_.switches[at(i)] == '0') mode_.switches[at(i)] = '+';
      } else {
        mode_.switches[at(i)] = sign > 0 ? '+' : sign < 0 ? '-' : '0';
      }
    }
    sigma_[at(i)] = sign;
  }
  if (!series_.ties().empty()) add_ties(zeros);
  if (program_.constraints() > 0) evaluate_point();  // with the signs just found
  for (int j = 0; j < program_.constraints(); ++j) {
    if (listed(m + j)) continue;
    if (model_.form.gaps[at(j)].degree == 0) {
      zeros.push_back({.unknown = m + j, .known = 0});
    } else if (point_.sign(program_.point(m + j, 0), bounds(m + j)) == 0) {
      zeros.push_back({.unknown = m + j, .known = std::max(1, vanishing(m + j))});
    } else {
      mode_.constraints[at(j)] = 'o';
    }
  }
}

void Engine::read_sigma() {
  sigma_.clear();
  for (const char c : mode_.switches) sigma_.push_back(c == '+' ? 1.0 : c == '-' ? -1.0 : 0.0);
}

bool Engine::approaching(const std::vector<AtZero>& zeros) {
  const int m = program_.switches();
  bool any = false;
  for (const AtZero& z : zeros)
    any = any || (z.unknown >= m && model_.form.gaps[at(z.unknown - m)].degree == 2 && z.known < 2);
  if (!any) return false;
  read_sigma();
  evaluate_point();
  return std::any_of(zeros.begin(), zeros.end(), [&](const AtZero& z) {
    if (z.unknown < m || model_.form.gaps[at(z.unknown - m)].degree != 2 || z.known >= 2) return false;
    return point_.sign(program_.point(z.unknown, 1)) * direction_ < 0;
  });
}

bool Engine::rebound(std::vector<AtZero>& zeros) {
  const int m = program_.switches();
  std::vector<int> contacts;
  for (const AtZero& z : zeros) {
    if (z.unknown >= m && model_.form.gaps[at(z.unknown - m)].degree == 2) contacts.push_back(z.unknown - m);
  }
  Mode free = mode_;  // the impulse acts along df/dlambda with the current sigma
  for (char& c : free.constraints) c = 'o';
  series_.set_mode(free);
  if (series_.evaluate(x_, clock_.now(), counters_) != SeriesStatus::ok) return fail_undefined();
  const Impact impact = apply_impact(series_, contacts, x_, direction_);
  if (!impact.solved) {
    finish(Why::nonunique, impact.message);
    return false;
  }
  std::erase_if(zeros,
                [&](const AtZero& z) { return z.unknown < m || model_.form.gaps[at(z.unknown - m)].degree == 2; });
  for (size_t a = 0; a < contacts.size(); ++a) {
    rebounded_.push_back(contacts[a]);
    zeros.push_back({.unknown = m + contacts[a], .known = impact.closed[a] ? 2 : 1});
  }
  return true;
}

void Engine::estimate_scale() {
  double shortest = std::abs(options_.until - options_.from);
  series_.set_mode(mode_);
  if (series_.expand(x_, clock_.now(), counters_, order_) == SeriesStatus::ok) {
    shortest = std::min(
        shortest,
        StepControl(program_.states(), local_tolerance(options_.tolerance), shortest).step(series_, order_, {}));
  }
  scale_ = shortest > 0 && std::isfinite(shortest) ? shortest : 1.0;
}

bool Engine::settle(std::vector<AtZero>& zeros, bool at_start) {
  std::fill(known_.begin(), known_.end(), 0);
  if (!zeros.empty() && !choose(zeros, at_start)) return false;
  if (program_.constraints() > 0) {
    if (std::vector<AtZero> moved = walls_that_moved(); !moved.empty()) {
      if (approaching(moved) && !rebound(moved)) return false;
      return settle(moved, at_start);
    }
  }
  series_.set_mode(mode_);
  project();
  if (program_.any_nested()) refresh_nested();
  return true;
}

bool Engine::choose(std::vector<AtZero>& zeros, bool at_start) {
  if (scale_ == 0) estimate_scale();
  const ChoiceOptions& options = choice_options(at_start);
  if (zeros.size() == 1) {
    const int u = zeros[0].unknown;
    if (const std::optional<SimpleChoice> simple =
            choose_simply(series_, x_, clock_.now(), counters_, mode_, zeros[0], options)) {
      mode_.switches[at(u)] = simple->letter;
      known_[at(u)] = simple->leading;
      return true;
    }
  }
  Choice choice = choose_mode(series_, x_, clock_.now(), counters_, mode_, zeros, options);
  if (choice.outcome == Choice::Outcome::none) {  // a field may end at its surface: land on it exactly
    bool rests = false;
    for (AtZero& z : zeros) {  // a rebound, or an approach, too slow to be seen has ended
      if (z.unknown < program_.switches() || !unmoved(z)) continue;
      z.known = rest_of(z.unknown);
      rests = true;
    }
    land_on(zeros, rests ? 9 : 1);
    choice = choose_mode(series_, x_, clock_.now(), counters_, mode_, zeros, options);
  }
  if (!choice.message.empty() && choice.outcome != Choice::Outcome::none) say(choice.message);
  if (choice.outcome == Choice::Outcome::none) {
    finish(choice.contact ? Why::nonunique : Why::inconsistent, choice.message);
    return false;
  }
  if (choice.outcome == Choice::Outcome::several) {
    finish(Why::nonunique, choice.message + "; --leave chooses");
    return false;
  }
  mode_ = choice.mode;
  known_ = choice.leading;
  series_.guess(choice.sigma);
  return true;
}

std::vector<AtZero> Engine::walls_that_moved() {
  std::vector<AtZero> out;
  const int m = program_.switches();
  for (int j = 0; j < program_.constraints(); ++j) {
    const Gap& gap = model_.form.gaps[at(j)];
    if (mode_.constraints[at(j)] != 'c' || gap.degree != 2 || !contains_kind(gap.gap, SymbolKind::sigma)) continue;
    read_sigma();
    evaluate_point();
    if (point_.sign(program_.point(m + j, 1), 1e6) == 0) continue;
    mode_.constraints[at(j)] = 'o';
    out.push_back({.unknown = m + j, .known = 1});
  }
  return out;
}

bool Engine::unmoved(const AtZero& z) {
  if (!rebounded_.empty()) return true;
  if (model_.form.gaps[at(z.unknown - program_.switches())].degree != 2) return false;
  read_sigma();
  evaluate_point();
  return point_.sign(program_.point(z.unknown, 1)) == 0;
}

void Engine::land_on(const std::vector<AtZero>& zeros, size_t depth) {
  const int m = program_.switches();
  Mode all = mode_;
  for (const AtZero& z : zeros) {
    (z.unknown < m ? all.switches[at(z.unknown)] : all.constraints[at(z.unknown - m)]) = z.unknown < m ? '0' : 'c';
  }
  series_.set_mode(all);
  series_.project(x_, clock_.now(), counters_, depth);
}

void Engine::refresh_nested() {
  for (int round = 0; round < program_.switches(); ++round) {
    series_.set_mode(mode_);
    if (series_.evaluate(x_, clock_.now(), counters_) != SeriesStatus::ok) return;
    bool changed = false;
    for (int i = 0; i < program_.switches(); ++i) {
      char& c = mode_.switches[at(i)];
      if (!program_.nested(i) || c == '0' || known_[at(i)] > 0) continue;
      const double h = series_.surface(i)[0];
      const char now = h > 0 ? '+' : h < 0 ? '-' : c;
      changed = changed || now != c;
      c = now;
    }
    if (!changed) return;
  }
}

void Engine::project() {
  const double error = series_.project(x_, clock_.now(), counters_);
  if (!tracking_error_) return;
  for (int i = 0; i < program_.switches(); ++i) {
    if (mode_.switches[at(i)] == '0')
      result_.sliding[at(i)].largest_error = std::max(result_.sliding[at(i)].largest_error, error);
  }
}

void Engine::count_wraps() {
  for (size_t round = 0; round < counters_.size(); ++round) {  // phases may contain other counters
    series_.set_mode(mode_);
    series_.evaluate(x_, clock_.now(), counters_);
    bool changed = false;
    for (size_t c = 0; c < counters_.size(); ++c) {
      const double phase = series_.phase(static_cast<int>(c))[0], whole = std::round(phase);
      // On a wrap itself rounding must not undo what has just been counted.
      const bool on_it = started_ && std::abs(phase - whole) <= 1e-9 * (1 + std::abs(phase));
      if (on_it && std::abs(counters_[c] + 0.5 - whole) < 1) continue;
      changed = changed || counters_[c] != std::floor(phase);
      counters_[c] = std::floor(phase);
    }
    if (!changed) return;
  }
}

void Engine::say(const std::string& message) {
  if (result_.messages.size() < 100) result_.messages.push_back(message);
}

}  // namespace saltus
