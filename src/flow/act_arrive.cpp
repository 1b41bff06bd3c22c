// At a point: what is zero there, contacts that approach are hit, the mode that follows.
#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/index.hpp"
#include "expr/interpolant.hpp"
#include "flow/act.hpp"
#include "flow/impact.hpp"
#include "flow/leading.hpp"
#include "flow/thresholds.hpp"

namespace saltus {
namespace {

/// A table that ends where the run has gone on.
std::optional<Fate> leaves_table(const Model& model, const Moment& now) {
  for (const Counter& c : model.form.counters) {
    if (!c.curve || c.curve->given(now.counters[at(c.at)])) continue;
    const bool low = now.counters[at(c.at)] < 0;
    return Fate{Why::undefined,
                fmt::format("'{}' has left its table, which {} at {}", model.form.switches[at(c.below)].name,
                            low ? "begins" : "ends", low ? c.curve->x().front() : c.curve->x().back())};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Fate> Act::arrive(Moment& now, Transition& event, std::vector<AtZero>& zeros, bool anew, bool at_start) {
  if (anew) look(now, zeros, at_start);
  if (anew && !at_start) {
    if (auto fate = check_gaps(now, event, zeros)) return fate;
  }
  if (approaching(now, zeros)) {
    const std::vector<AtZero> alone = zeros;
    add_touching(now, zeros);
    if (zeros.size() > alone.size() && !at_start) {
      // Contacts that are near, but do not touch: where hits of all have no end, those that do touch are hit alone.
      const Moment before = now;
      const Transition unhit = event;
      const std::vector<std::string> messages = messages_;
      bool ends = true;
      std::optional<Fate> fate = hit_in_turn(now, event, zeros, ends);
      if (!fate && ends) return settle(now, event, zeros, at_start);
      now = before;
      event = unhit;
      messages_ = messages;
      zeros = alone;
      approaching(now, zeros);
    }
    bool ends = true;
    if (auto fate = hit_in_turn(now, event, zeros, ends)) return fate;
  }
  return settle(now, event, zeros, at_start);
}

/// Until none approaches; what then is zero is in `zeros`. `ends`: whether that took fewer hits than are made in turn.
std::optional<Fate> Act::hit_in_turn(Moment& now, Transition& event, std::vector<AtZero>& zeros, bool& ends) {
  for (int round = 0; round == 0 || approaching(now, zeros); ++round) {
    ends = ends && round < most_hits_in_turn;
    if (round > most_hits_in_turn + 100)
      return Fate{Why::inconsistent, "impacts follow each other without time passing"};
    if (auto fate = rebound(now, event, zeros, round)) return fate;
    now.arrival = std::nan("");
    if (program_.unknowns() == 1 && jumps_.size() == 0) break;  // nobody else to be hit, and it moves apart
    look(now, zeros, false);
  }
  return std::nullopt;
}

/// A jump must not violate a gap. One that rounding had left below zero already touches.
std::optional<Fate> Act::check_gaps(const Moment& now, const Transition& event, std::vector<AtZero>& zeros) {
  const int m = program_.switches();
  std::vector<double> after;
  for (int j = 0; j < program_.constraints(); ++j) after.push_back(point_.value(program_.point(m + j, 0)));
  if (program_.any_joint()) {
    if (auto fate = check_joints(now, "a jump violates the joint '{}'")) return fate;
  }
  bool looked = false;
  for (int j = 0; j < program_.constraints(); ++j) {
    if (model_.form.gaps[at(j)].degree == 0 || program_.joint(j) || lists(zeros, m + j) || !(after[at(j)] < 0))
      continue;
    if (!looked) point_.evaluate(event.x_minus, now.t(), sigma_, now.counters, lambda_);
    looked = true;
    const double before = point_.value(program_.point(m + j, 0));
    if (!(before <= after[at(j)] * (1 - 1e-9)))
      return Fate{Why::inconsistent, fmt::format("a jump violates the gap of '{}': it is {:.6g}",
                                                 model_.constraints[at(j)].name, after[at(j)])};
    zeros.push_back({.unknown = m + j, .known = 1});
  }
  return std::nullopt;
}

/// A jump must leave joints as they are, in position and velocity.
std::optional<Fate> Act::check_joints(const Moment& now, const char* what) {
  double largest = 0;
  for (const double x : now.x) largest = std::max(largest, std::abs(x));
  for (int j = 0; j < program_.constraints(); ++j) {
    const int u = program_.switches() + j, degree = model_.form.gaps[at(j)].degree;
    for (int k = 0; program_.joint(j) && k < degree; ++k) {
      const double value = point_.value(program_.point(u, k));
      if (std::abs(value) <= joint_left * largest || point_.sign(program_.point(u, k), rested_bounds) == 0) continue;
      const std::string names = fmt::format(fmt::runtime(what), model_.constraints[at(j)].name);
      return Fate{Why::inconsistent,
                  fmt::format("{} at t = {}: its {} is {:.6g}", names, now.t(), k == 0 ? "value" : "rate", value)};
    }
  }
  return std::nullopt;
}

/// The whole number next to the phase: floor of it, or itself where it is one up to rounding. A table: its piece.
void Act::count(Moment& now, const Counter& counter, bool stays) {
  const auto sign = [&](int step) { return point_.sign(program_.point(step, 0), zero_bounds); };
  if (stays) {  // on a step what has been counted stays
    evaluate_point(now);
    if (sign(counter.below) == 0 || sign(counter.above) == 0) return;
  }
  now.counters[at(lower_step(counter))] = 0;
  evaluate_point(now);
  const double phase = point_.value(program_.point(counter.below, 0));
  if (!std::isfinite(phase)) return;
  const auto set = [&](double whole) {
    set_counter(counter, whole, now.counters);
    evaluate_point(now);
  };
  const double nearest = nearest_step(counter, phase);
  set(nearest);
  if (sign(counter.below) < 0) set(nearest - 1);
}

void Act::look(Moment& now, std::vector<AtZero>& zeros, bool at_start) {
  const int m = program_.switches();
  // A surface that slid or contact that was closed is likely to stay so: it may have drifted by more than the last
  // bits.
  const auto bounds = [&](int u) {
    const bool rested = u < m ? now.mode.switches[at(u)] == '0' : now.mode.constraints[at(u - m)] == 'c';
    return rested && !at_start ? rested_bounds : zero_bounds;
  };
  const auto vanishing = [&](int u) {
    int k = 0;
    while (k < program_.point_degree(u) && point_.sign(program_.point(u, k), bounds(u)) == 0) ++k;
    return k;
  };
  const size_t given = zeros.size();  // what joins them is met once
  const auto listed = [&](int u) { return lists(std::span(zeros).first(given), u); };
  sigma_.assign(at(m), 0.0);
  evaluate_point(now);
  for (const int i : model_.form.order) {
    if (const int v = program_.vector_of(i); v >= 0) {
      if (program_.leads(i)) look_at_vector(now, v, at_start);
      continue;
    }
    if (force_of(i) >= 0) {  // decided with the forces of the mode
      char& letter = now.mode.switches[at(i)];
      if (letter != '-') letter = '+';
      sigma_[at(i)] = letter == '+' ? 1 : -1;
      continue;
    }
    if (counter_of_[at(i)] >= 0) count(now, model_.form.counters[at(counter_of_[at(i)])], !at_start);
    if (program_.nested(i)) evaluate_point(now);
    const int sign = point_.sign(program_.point(i, 0), bounds(i));
    int at_zero = model_.form.switches[at(i)].at_zero;  // until it is decided, it is as it was
    if (!listed(i)) {
      if (sign == 0 && program_.moves(i)) {
        zeros.push_back({.unknown = i, .known = vanishing(i)});
        const char before = now.mode.switches[at(i)];
        if (!at_start && (before == '+' || before == '-')) at_zero = before == '+' ? 1 : -1;
        if (now.mode.switches[at(i)] == '0' || now.mode.switches[at(i)] == '=') now.mode.switches[at(i)] = '+';
      } else {
        now.mode.switches[at(i)] = sign > 0 ? '+' : sign < 0 ? '-' : '=';
      }
    }
    sigma_[at(i)] = sign != 0 ? sign : at_zero;
  }
  if (!series_.ties().empty()) add_ties(zeros);
  if (program_.constraints() == 0 && jumps_.size() == 0) return;
  evaluate_point(now);  // with the signs just found
  for (int j = 0; j < program_.constraints(); ++j) {
    if (listed(m + j)) continue;
    if (program_.joint(j)) {
      zeros.push_back({.unknown = m + j, .known = rest_of(m + j), .fresh = false});
    } else if (model_.form.gaps[at(j)].degree == 0) {
      zeros.push_back({.unknown = m + j, .known = 0});
    } else if (const int sign = point_.sign(program_.point(m + j, 0), bounds(m + j));
               sign == 0 || (at_start && sign < 0)) {
      // A start that was let through with a negative gap touches.
      zeros.push_back({.unknown = m + j, .known = std::max(1, vanishing(m + j))});
    } else {
      now.mode.constraints[at(j)] = 'o';
    }
  }
}

void Act::read_sigma(const Moment& now) {
  sigma_.clear();
  for (size_t i = 0; i < now.mode.switches.size(); ++i) {
    const char c = now.mode.switches[i];
    sigma_.push_back(c == '+' ? 1.0 : c == '-' ? -1.0 : c == '=' ? model_.form.switches[i].at_zero : 0.0);
  }
}

bool Act::is_contact(int u) const {
  if (u < program_.switches()) return false;
  const Gap& gap = model_.form.gaps[at(u - program_.switches())];
  return gap.degree == 2 && !gap.joint;
}

bool Act::approaching(const Moment& now, const std::vector<AtZero>& zeros) {
  const auto touches = [&](const AtZero& z) { return is_contact(z.unknown) && z.known < 2; };
  if (std::none_of(zeros.begin(), zeros.end(), touches)) return false;
  // The arrival rate of the only contact is known from the step; with other contacts it must be computed here.
  if (program_.constraints() == 1 && is_contact(zeros[0].unknown) && now.arrival * direction_ < 0) return true;
  read_sigma(now);
  evaluate_point(now);
  return std::any_of(zeros.begin(), zeros.end(), [&](const AtZero& z) {
    return touches(z) && point_.sign(program_.point(z.unknown, 1)) * direction_ < 0;
  });
}

/// Open contacts whose gap is zero take part in an impact of others.
void Act::add_touching(const Moment& now, std::vector<AtZero>& zeros) {
  for (int j = 0; j < program_.constraints(); ++j) {
    const int u = program_.switches() + j;
    if (!is_contact(u) || now.mode.constraints[at(j)] != 'o' || lists(zeros, u)) continue;
    if (point_.sign(program_.point(u, 0), near_bounds) == 0) zeros.push_back({.unknown = u, .known = 1});
  }
}

/// A contact that has just been left, and whose gap is rounding when something else happens on the way, rests: where
/// positions have digits before the point, the flights of a ball that comes to rest would be of that height for ever.
void Act::add_low_flights(const Moment& now, std::vector<AtZero>& zeros) {
  const double resolution = same_time_bits * eps * std::abs(now.t());
  bool looked = false;
  for (int j = 0; j < program_.constraints(); ++j) {
    const int u = program_.switches() + j;
    const double flight = std::abs(now.t() - last_hit_[at(j)]);
    if (!(flight > resolution && flight <= low_flight_share * time_scale)) continue;
    if (!is_contact(u) || now.mode.constraints[at(j)] != 'o' || lists(zeros, u)) continue;
    if (!looked) read_sigma(now), evaluate_point(now);
    looked = true;
    const bool rises = point_.sign(program_.point(u, 1)) * direction_ > 0;
    if (!rises && point_.sign(program_.point(u, 0), zero_bounds) == 0)
      zeros.push_back({.unknown = u, .known = rest_of(u)});
  }
}

/// Contacts that part have left a moment later. They take no part; if the others make them approach, they are hit next.
/// Those that feel each other's impulses are one problem; what rests and feels no approach rests on. Hits that have no
/// end come to rest.
std::optional<Fate> Act::rebound(Moment& now, Transition& event, std::vector<AtZero>& zeros, int round) {
  if (simply) return Fate{Why::inconsistent, ""};
  const int m = program_.switches();
  const bool in_turn = round < most_hits_in_turn, plastic = !in_turn && direction_ > 0;
  contacts_.clear();
  std::vector<AtZero> parting, touching;
  std::vector<char> approaches;
  const bool alone = program_.constraints() == 1;  // it approaches
  for (const AtZero& z : zeros) {
    if (!is_contact(z.unknown)) continue;
    const bool rests = z.known >= 2;
    const int sign = alone ? -1 : point_.sign(program_.point(z.unknown, 1)) * static_cast<int>(direction_);
    if (in_turn && !rests && sign > 0) {
      parting.push_back({.unknown = z.unknown, .known = 1});
      continue;
    }
    contacts_.push_back(z.unknown - m);
    touching.push_back(z);
    approaches.push_back(!rests && sign < 0);
  }
  std::erase_if(zeros, [&](const AtZero& z) { return z.unknown < m || is_contact(z.unknown); });
  zeros.insert(zeros.end(), parting.begin(), parting.end());
  if (plastic)
    say(fmt::format("more than {} impacts at t = {}: the last is one without rebound", most_hits_in_turn, now.t()));
  if (contacts_.size() == 1) return hit_together(now, event, zeros, touching, plastic);
  for (const std::vector<size_t>& group : connected_contacts(series_, now.mode, contacts_, direction_)) {
    std::vector<AtZero> together;
    for (const size_t a : group) together.push_back(touching[a]);
    if (std::any_of(group.begin(), group.end(), [&](size_t a) { return approaches[a]; })) {
      if (auto fate = hit_together(now, event, zeros, together, plastic)) return fate;
    } else {
      zeros.insert(zeros.end(), together.begin(), together.end());
    }
  }
  return std::nullopt;
}

/// Contacts stopped by an impact of several are put into the corner where they stop: up to the resolution in time of
/// the way to it.
void Act::stop_in_corner(Moment& now, std::span<const double> before) {
  const double resolution = same_time_bits * eps * std::max(std::abs(now.t()), scale() * same_time_share);
  std::vector<double> there = now.x, speed(now.x.size());
  series_.set_mode(now.mode);
  if (series_.evaluate(before, now.t(), now.counters) != SeriesStatus::ok) return;
  for (size_t i = 0; i < speed.size(); ++i) speed[i] = std::abs(series_.rate(static_cast<int>(i))[0]);
  if (series_.evaluate(now.x, now.t(), now.counters) != SeriesStatus::ok) return;
  for (size_t i = 0; i < speed.size(); ++i) {
    const bool stops = speed[i] > 0 && series_.rate(static_cast<int>(i))[0] == 0;
    if (stops && std::abs(there[i]) <= resolution * speed[i]) there[i] = 0;
  }
  std::vector<double> gaps;
  for (const int j : contacts_) gaps.push_back(std::abs(series_.gap(j)[0]));
  if (there == now.x || series_.evaluate(there, now.t(), now.counters) != SeriesStatus::ok) return;
  for (size_t a = 0; a < gaps.size(); ++a) {
    if (!(std::abs(series_.gap(contacts_[a])[0]) <= gaps[a])) return;
  }
  now.x = std::move(there);
}

/// True if joints with friction take part in the impact: it is another one where their friction is turned.
bool Act::shakes_friction(const Moment& now, const Special& special) {
  std::vector<double> after[2];
  double size = 0;
  for (const char side : {'+', '-'}) {
    Mode mode = now.mode;
    std::replace(mode.switches.begin(), mode.switches.end(), '0', '+');  // what sticks feels it, too
    for (const int i : joint_forces_) mode.switches[at(i)] = side;
    std::vector<double> x = now.x;
    if (!apply_impact(series_, mode, contacts_, x, now.t(), now.counters, direction_, special).solved) return true;
    for (const double value : x) size = std::max(size, std::abs(value));
    after[side == '+'] = std::move(x);
  }
  for (size_t i = 0; i < now.x.size(); ++i) {
    if (std::abs(after[0][i] - after[1][i]) > same_time_bits * eps * size) return true;
  }
  return false;
}

/// One impact of contacts that touch; they join `zeros` with what they do after it.
std::optional<Fate> Act::hit_together(Moment& now, Transition& event, std::vector<AtZero>& zeros,
                                      std::span<const AtZero> touching, bool plastic) {
  const int m = program_.switches();
  Special special{.plastic = plastic};
  contacts_.clear();
  for (const AtZero& z : touching) {
    contacts_.push_back(z.unknown - m);
    special.resting.push_back(z.known >= 2);
  }
  for (const int contact : contacts_) last_hit_[at(contact)] = now.t();
  std::optional<Hit> record;  // only if somebody reads it
  if (options_->on_transition || options_->keep_transitions)
    record = {.counters = now.counters, .contacts = contacts_, .before = now.x};
  const auto hit = [&](int contact, double impulse, bool closed) {
    event.impulse.emplace_back(contact, impulse);
    zeros.push_back({.unknown = m + contact, .known = closed ? 2 : 1});
    if (record) record->impulse.push_back(impulse);
  };
  std::optional<OneHit> one;
  if (contacts_.size() == 1 && !plastic)
    one = hit_one(series_, now.mode, contacts_[0], now.x, now.t(), now.counters, direction_);
  if (one) {
    hit(contacts_[0], one->impulse, one->closed);
    if (record) record->mode = series_.mode();
  } else {
    if (!joint_forces_.empty() && shakes_friction(now, special))
      return Fate{Why::inconsistent,
                  fmt::format("an impact at t = {} goes through the joint '{}', and friction of its impulse is not "
                              "computed; leave its friction out",
                              now.t(), model_.form.switches[at(joint_forces_[0])].name)};
    const std::vector<double> before = now.x;
    Impact impact = apply_impact(series_, now.mode, contacts_, now.x, now.t(), now.counters, direction_, special);
    if (!impact.solved) return Fate{Why::nonunique, impact.message};
    if (contacts_.size() > 1) stop_in_corner(now, before);
    if (!impact.note.empty()) say(impact.note);
    for (size_t a = 0; a < contacts_.size(); ++a) hit(contacts_[a], impact.impulse[a], impact.closed[a]);
    for (size_t b = 0; b < impact.switches.size(); ++b) {
      const int i = impact.switches[b].first;
      if (impact.letters[b] == '0' && program_.vector_of(i) < 0) {
        zeros.push_back({.unknown = i, .known = 1});
      } else {
        now.mode.switches[at(i)] = impact.letters[b];
      }
    }
    if (record) {
      record->mode = std::move(impact.mode);
      record->switches = std::move(impact.switches);
      record->sigma = std::move(impact.sigma);
    }
  }
  if (record) {
    record->after = now.x;
    event.hits.push_back(std::move(*record));
  }
  return std::nullopt;
}

std::optional<Fate> Act::settle(Moment& now, Transition& event, std::vector<AtZero>& zeros, bool at_start, int depth) {
  constexpr int most_rounds = 100;
  // Surfaces that are one in this mode (|c - 1/2| = 1/2 and c = 1) are met one after the other, and left together.
  const bool still = std::exchange(settled_, now.t()) == now.t() && event.impulse.empty() && event.jumps.empty();
  const std::vector<int> left = still ? now.known : std::vector<int>{};
  std::fill(now.known.begin(), now.known.end(), 0);
  if (!joint_forces_.empty() && depth == 0) settle_forces(now);  // friction that is negative would leave no choice
  if (!zeros.empty()) {
    if (auto fate = choose(now, event, zeros, at_start)) return fate;
  }
  if (still && now.mode == event.before) {
    for (size_t u = 0; u < left.size(); ++u) now.known[u] = std::max(now.known[u], left[u]);
  }
  if (program_.constraints() > 0) {
    if (std::vector<AtZero> moved = walls_that_moved(now); !moved.empty()) {
      if (approaching(now, moved)) {
        if (auto fate = rebound(now, event, moved, 0)) return fate;
      }
      if (++depth > most_rounds) return Fate{Why::inconsistent, "walls that move with their switches do not settle"};
      return settle(now, event, moved, at_start, depth);
    }
  }
  if (!now.counters.empty() && count_steps(now)) {
    if (++depth > most_rounds)
      return Fate{Why::inconsistent, "the steps of a floor that depends on itself do not settle"};
    look_at_nested(now, zeros);
    return settle(now, event, zeros, at_start, depth);
  }
  if (auto fate = leaves_table(model_, now)) return fate;
  if (program_.vectors() > 0) {
    if (auto fate = settle_vectors(now)) return fate;
  }
  if (!joint_forces_.empty()) {
    const Mode chosen = now.mode;
    if (auto fate = settle_forces(now)) return fate;
    if (!zeros.empty() && now.mode != chosen) {
      if (++depth > most_rounds)
        return Fate{Why::nonunique, "no side of a joint's force fits what its friction makes slide or stick"};
      return settle(now, event, zeros, at_start, depth);
    }
  }
  follow(now);
  event.guess = now.guess;
  return std::nullopt;
}

/// The mode has been chosen: its series, and the state where it rests.
void Act::follow(Moment& now) {
  series_.set_mode(now.mode);
  rest_by_others(now);
  series_.project(now.x, now.t(), now.counters);
  series_.read_guess(now.guess);
}

/// A surface that is kept at zero by others (a contact, a diode, what sticks) and whose sigma keeps nothing itself is
/// at rest: comparisons there are as written. The mode is that of the series.
void Act::rest_by_others(Moment& now) {
  if (series_.keeps_all()) return;
  keeps_.assign(at(program_.unknowns()), 0);
  for (const SlopeEntry& e : series_.tape().slope_entries) keeps_[at(e.column)] = 1;
  bool any = false;
  for (int i = 0; i < program_.switches(); ++i) {
    if (now.mode.switches[at(i)] != '0' || keeps_[at(i)] || program_.vector_of(i) >= 0) continue;
    now.mode.switches[at(i)] = '=';
    any = true;
  }
  if (any) series_.set_mode(now.mode);
}

/// The only one that takes part in the event, if what rests besides neither feels its sigma nor is felt.
const AtZero* Act::alone_at_zero(const Moment& now, const std::vector<AtZero>& zeros) const {
  const auto fresh = [](const AtZero& z) { return z.fresh; };
  const auto found = std::find_if(zeros.begin(), zeros.end(), fresh);
  if (found == zeros.end() || std::any_of(found + 1, zeros.end(), fresh)) return nullptr;
  const int u = found->unknown;
  if (u < program_.switches() && !program_.dependents(u).empty()) return nullptr;
  if (zeros.size() == 1) return &*found;
  // A switch that formulas are compiled for moves what is slid on without a slope that would tell.
  if (u >= program_.switches() || !program_.open(u) || !series_.ties().empty()) return nullptr;
  const ModeTape& tape = program_.tape(now.mode.switches);
  if (tape.lettered) return nullptr;
  for (const SlopeEntry& e : tape.slope_entries) {
    const int row = e.row < program_.unknowns() ? e.row : e.row - program_.constraints();
    if (row != e.column && ((row == u && lists(zeros, e.column)) || (e.column == u && lists(zeros, row))))
      return nullptr;
  }
  return &*found;
}

std::optional<Fate> Act::choose(Moment& now, const Transition& event, std::vector<AtZero>& zeros, bool at_start) {
  choice_.at_start = at_start;
  const double arrival = std::exchange(now.arrival, std::nan(""));  // nested surfaces are decided behind it
  if (const AtZero* alone = alone_at_zero(now, zeros)) {
    choice_.time_scale = scale();
    const int u = alone->unknown;
    choice_.arrival = arrival;
    const std::optional<SimpleChoice> simple =
        choose_simply(series_, now.x, now.t(), now.counters, now.mode, *alone, choice_);
    choice_.arrival = std::nan("");
    if (simple) {
      const int m = program_.switches();
      (u < m ? now.mode.switches[at(u)] : now.mode.constraints[at(u - m)]) = simple->letter;
      now.known[at(u)] = simple->leading;
      return std::nullopt;
    }
  }
  if (simply) return Fate{Why::inconsistent, ""};
  if (zeros.size() == 1 && switch_in_time(now, zeros[0])) return std::nullopt;
  choice_.time_scale = scale();
  choice_.before = event.x_minus;
  if (!at_start) {
    land_where_fields_end(now, zeros);
    land_on_kinks(now, zeros);
    arrive_for_good(now, zeros);
  }
  Choice choice = choose_mode(series_, point_, now.x, now.t(), now.counters, now.mode, zeros, choice_);
  for (const double bounds : {rested_bounds, HUGE_VAL}) {  // a field may end at its surface: land on it exactly
    if (choice.outcome != Choice::Outcome::none) break;
    std::vector<AtZero> resting;
    for (AtZero& z : zeros) {  // a rebound, or an approach, too slow to be seen has ended
      if (z.unknown < program_.switches() || !unmoved(now, event, z, bounds)) continue;
      z.known = rest_of(z.unknown);
      resting.push_back(z);
    }
    land_on(now, zeros, 1);
    if (!resting.empty()) land_on(now, resting, 9);
    choice = choose_mode(series_, point_, now.x, now.t(), now.counters, now.mode, zeros, choice_);
  }
  if (choice.outcome == Choice::Outcome::none && !at_start && land_where_it_rests(now, zeros))
    choice = choose_mode(series_, point_, now.x, now.t(), now.counters, now.mode, zeros, choice_);
  if (choice.outcome == Choice::Outcome::none) look_later(now, zeros, choice);
  if (!choice.message.empty() && choice.outcome != Choice::Outcome::none) say(choice.message);
  if (choice.outcome == Choice::Outcome::none)
    return Fate{choice.contact ? Why::nonunique : Why::inconsistent, choice.message};
  if (choice.outcome == Choice::Outcome::several) return Fate{Why::nonunique, choice.message + "; `leave` chooses"};
  now.mode = choice.mode;
  now.known = choice.leading;
  series_.guess(choice.sigma);
  return std::nullopt;
}

/// A field may begin within the last bits (a surface of time alone), and several one after the other (empty tanks in a
/// row: each fills from the one before, by roots that have no series at zero).
void Act::look_later(Moment& now, std::vector<AtZero> zeros, Choice& choice) {
  Moment later = now;
  later.mode = choice.mode;        // what could be decided moves; the rest is as it was
  for (const AtZero& z : zeros) {  // but for a sigma that has come to its bound, and keeps nothing any more
    if (z.leaving && z.unknown < program_.switches()) later.mode.switches[at(z.unknown)] = z.leaving;
  }
  const int most_looks = most_rough_steps + static_cast<int>(zeros.size());
  for (int look = 0; look < most_looks && choice.outcome == Choice::Outcome::none; ++look) {
    const double soon = direction_ * same_time_bits * eps * std::max(std::abs(now.t()), time_scale * same_time_share);
    later.clock.advance(soon);
    series_.set_mode(later.mode);
    // With the rates of then: those of now may have the sign that rounding left (max(sin(t), 0) at its zero).
    if (series_.evaluate(later.x, later.t(), later.counters) == SeriesStatus::ok) {
      for (size_t i = 0; i < later.x.size(); ++i) later.x[i] += soon * series_.rate(static_cast<int>(i))[0];
    }
    if (look > 0) leave_out_nonzero(later, zeros);
    Choice next = choose_mode(series_, point_, later.x, later.t(), later.counters, later.mode, zeros, choice_);
    if (next.outcome == Choice::Outcome::none) {
      later.mode = next.mode;
      continue;
    }
    choice = std::move(next);
    now.clock = later.clock;
    now.x = later.x;
  }
}

/// Items that have left their surface are given the side where they are, and surfaces that depend on them (behind a
/// wrap of mod) the side that follows.
void Act::leave_out_nonzero(Moment& now, std::vector<AtZero>& zeros) {
  std::vector<int> left;
  read_sigma(now);
  evaluate_point(now);
  std::erase_if(zeros, [&](const AtZero& z) {
    if (z.unknown >= program_.switches()) return false;
    const int sign = point_.sign(program_.point(z.unknown, 0), zero_bounds);
    if (sign == 0) return false;
    now.mode.switches[at(z.unknown)] = sign > 0 ? '+' : '-';
    left.push_back(z.unknown);
    return true;
  });
  if (left.empty()) return;
  for (const int u : left) {
    for (const int d : program_.dependents(u)) {
      if (lists(zeros, d)) continue;
      read_sigma(now);
      evaluate_point(now);
      const int sign = point_.sign(program_.point(d, 0), near_bounds);
      if (sign == 0)
        zeros.push_back({.unknown = d, .known = 1});
      else
        now.mode.switches[at(d)] = sign > 0 ? '+' : '-';
    }
  }
  for (AtZero& z : zeros) {  // under other letters what rested need not rest
    z.fresh = true;
    if (z.unknown >= program_.switches()) continue;
    z.known = std::min(z.known, program_.point_degree(z.unknown));
    char& letter = now.mode.switches[at(z.unknown)];
    if (letter == '0') letter = '+';
  }
}

/// The ordinary case of a surface of time alone (a step of mod(t, T)): it goes on as time does, and what depends on it
/// has the sign that follows. False, with nothing changed, where more must be looked at.
bool Act::switch_in_time(Moment& now, const AtZero& z) {
  const int u = z.unknown;
  if (u >= program_.switches() || !program_.timed(u) || z.leaving) return false;
  series_.set_mode(now.mode);
  if (series_.expand(now.x, now.t(), now.counters, 2) != SeriesStatus::ok) return false;
  const double* h = series_.surface(u);
  const double rate = h[1] * direction_, bend = std::abs(h[2]);
  if (rate == 0 || std::isnan(rate) || (bend != 0 && !(std::abs(rate) > clear_rate * bend * scale()))) return false;
  const std::string before = now.mode.switches;
  now.mode.switches[at(u)] = rate > 0 ? '+' : '-';
  read_sigma(now);
  for (const int d : program_.dependents(u)) {
    evaluate_point(now);
    const int sign = point_.sign(program_.point(d, 0), near_bounds);
    if (sign == 0 || before[at(d)] == '0' || before[at(d)] == '=') {
      now.mode.switches = before;
      return false;
    }
    now.mode.switches[at(d)] = sign > 0 ? '+' : '-';
    sigma_[at(d)] = sign;
  }
  series_.set_mode(now.mode);
  if (series_.evaluate(now.x, now.t(), now.counters) != SeriesStatus::ok) {  // a field that begins at its surface
    now.mode.switches = before;
    return false;
  }
  now.known[at(u)] = 1;
  return true;
}

/// Surfaces whose rate, too, is zero up to a small part of the tolerance: they are landed on, and may be slid on in
/// second order.
void Act::arrive_for_good(Moment& now, std::vector<AtZero>& zeros) {
  std::vector<AtZero> higher;
  for (const AtZero& z : zeros) {
    if (z.unknown < program_.switches() && rest_of(z.unknown) > z.known) higher.push_back(z);
  }
  if (higher.empty()) return;
  Moment landed = now;
  land_on(landed, higher, 9);
  read_sigma(now);
  evaluate_point(landed);
  for (const AtZero& z : higher) {  // what else is slid on may not let them be landed on
    for (int k = 0; k < rest_of(z.unknown); ++k) {
      if (point_.sign(program_.point(z.unknown, k), near_bounds) != 0) return;
    }
  }
  series_.set_mode(now.mode);
  if (series_.evaluate(now.x, now.t(), now.counters) != SeriesStatus::ok) return;
  for (size_t i = 0; i < now.x.size(); ++i) {
    const double size = std::max(std::abs(now.x[i]), std::abs(series_.rate(static_cast<int>(i))[0]) * time_scale);
    const double scale = std::max(size, std::abs(options_->initial[i]));
    if (!(std::abs(landed.x[i] - now.x[i]) <= arrived_share * options_->tolerance * scale)) return;
  }
  for (AtZero& z : zeros) {
    if (lists(higher, z.unknown)) z.known = rest_of(z.unknown);
  }
  now.x = landed.x;
}

std::vector<AtZero> Act::walls_that_moved(Moment& now) {
  std::vector<AtZero> out;
  const int m = program_.switches();
  for (int j = 0; j < program_.constraints(); ++j) {
    const Gap& gap = model_.form.gaps[at(j)];
    if (now.mode.constraints[at(j)] != 'c' || !is_contact(m + j) || !contains_kind(gap.gap, SymbolKind::sigma))
      continue;
    read_sigma(now);
    evaluate_point(now);
    if (point_.sign(program_.point(m + j, 1), rested_bounds) == 0) continue;
    now.mode.constraints[at(j)] = 'o';
    out.push_back({.unknown = m + j, .known = 1});
  }
  return out;
}

bool Act::unmoved(const Moment& now, const Transition& event, const AtZero& z, double bounds) {
  if (!is_contact(z.unknown)) return !event.impulse.empty();
  read_sigma(now);
  evaluate_point(now);
  if (point_.sign(program_.point(z.unknown, 1), event.impulse.empty() ? zero_bounds : bounds) == 0) return true;
  return event.impulse.empty() && parts_too_slowly(now, z.unknown - program_.switches());
}

/// True if a contact that parts is back before its flight could be seen: a start that is at rest but for rounding.
bool Act::parts_too_slowly(const Moment& now, int contact) {
  Mode open = now.mode;
  open.constraints[at(contact)] = 'o';
  series_.set_mode(open);
  if (series_.expand(now.x, now.t(), now.counters, 2) != SeriesStatus::ok) return false;
  const double* gap = series_.gap(contact);
  return gap[1] * direction_ > 0 && gap[2] < 0 && leading_coefficient(gap, 1, 2, scale(), direction_).index > 1;
}

void Act::land_on(Moment& now, const std::vector<AtZero>& zeros, size_t depth) {
  const int m = program_.switches();
  Mode all = now.mode;
  for (const AtZero& z : zeros) {
    (z.unknown < m ? all.switches[at(z.unknown)] : all.constraints[at(z.unknown - m)]) =
        program_.resting_letter(z.unknown);
  }
  series_.set_mode(all);
  series_.project(now.x, now.t(), now.counters, depth);
}

/// Puts the state where all surfaces at zero are, with their formulas as they are there, if that moves it by rounding
/// alone. Whether it does move it.
bool Act::land_where_it_rests(Moment& now, const std::vector<AtZero>& zeros) {
  Mode rest = now.mode;
  for (const AtZero& z : zeros) {
    if (z.unknown >= program_.switches()) return false;
    rest.switches[at(z.unknown)] = '=';
  }
  std::vector<double> x = now.x;
  series_.set_mode(rest);
  series_.project(x, now.t(), now.counters);
  for (size_t i = 0; i < x.size(); ++i) {
    const double scale = std::max(std::abs(now.x[i]), std::abs(options_->initial[i]));
    if (!(std::abs(x[i] - now.x[i]) <= arrived_share * options_->tolerance * scale)) return false;
  }
  if (x == now.x) return false;
  now.x = std::move(x);
  return true;
}

void Act::land(Moment& now, std::span<const Guard> guards) {
  std::vector<AtZero> surfaces;
  for (const Guard& g : guards) {
    if (g.kind == GuardKind::surface) surfaces.push_back({.unknown = g.item, .known = 1});
  }
  if (!surfaces.empty()) land_on(now, surfaces, 1);
}

/// Beyond its surface by a last digit a field may have no value any more, or not yet: what follows is to be seen on the
/// surface.
void Act::land_where_fields_end(Moment& now, const std::vector<AtZero>& zeros) {
  std::vector<AtZero> crossed;
  for (const AtZero& z : zeros) {
    if (z.fresh && z.unknown < program_.switches() && !program_.nested(z.unknown)) crossed.push_back(z);
  }
  if (crossed.empty()) return;
  const auto ends = [&](const Mode& mode) {
    series_.set_mode(mode);
    return series_.evaluate(now.x, now.t(), now.counters) == SeriesStatus::undefined;
  };
  Mode beyond = now.mode;  // where a field that begins at its surface has no value yet
  for (const AtZero& z : crossed) {
    char& letter = beyond.switches[at(z.unknown)];
    letter = letter == '+' ? '-' : letter == '-' ? '+' : letter;
  }
  // With others at zero the choice lands on all of them.
  if (ends(now.mode) || (zeros.size() == 1 && ends(beyond))) land_on(now, crossed, 1);
}

/// A root may lie under a kink (a tank that runs empty): what follows is then to be seen on the surface itself only.
void Act::land_on_kinks(Moment& now, const std::vector<AtZero>& zeros) {
  std::vector<AtZero> kinks;
  for (const AtZero& z : zeros) {
    if (z.fresh && program_.resting_letter(z.unknown) == '=' && !program_.nested(z.unknown)) kinks.push_back(z);
  }
  if (!kinks.empty()) land_on(now, kinks, 1);
}

/// A step of floor that has been crossed is counted: its upper step becomes the lower one of the next whole number.
/// Whether an argument has jumped there (with a switch inside it): what depends on it must then be decided anew.
bool Act::count_steps(Moment& now) {
  bool jumped = false, looked = false;
  for (const Counter& counter : model_.form.counters) {
    const double whole = now.counters[at(counter.at)];
    char& below = now.mode.switches[at(counter.below)];
    char& above = now.mode.switches[at(counter.above)];
    int& known_below = now.known[at(counter.below)];
    int& known_above = now.known[at(counter.above)];
    const bool rests = above == '0' || above == '=';  // on its upper step: the lower one of the next
    const int crossed = above == '+' ? counter.above : below == '-' ? counter.below : -1;
    if (crossed < 0 && !rests) continue;
    if (crossed >= 0 && program_.nested(crossed)) {
      if (!looked) look_solved(now);
      looked = true;
      jumped = jumped || point_.sign(program_.point(crossed, 0), near_bounds) != 0;
    }
    if (crossed == counter.below) {
      set_counter(counter, whole - 1, now.counters);
      known_above = known_below;
      known_below = 0;
    } else {
      set_counter(counter, whole + 1, now.counters);
      known_below = known_above;
      known_above = 0;
    }
    below = rests ? above : '+';
    above = '-';
  }
  return jumped;
}

/// Counters and nested surfaces under the switches just chosen; those at zero are listed.
void Act::look_at_nested(Moment& now, std::vector<AtZero>& zeros) {
  zeros.clear();
  if (!look_solved(now)) read_sigma(now);  // what is slid on has a sigma that nested surfaces see
  for (const int i : model_.form.order) {
    if (!program_.nested(i)) continue;
    if (counter_of_[at(i)] >= 0) count(now, model_.form.counters[at(counter_of_[at(i)])], true);
    evaluate_point(now);
    const int sign = point_.sign(program_.point(i, 0), near_bounds);
    char& letter = now.mode.switches[at(i)];
    // Switches at zero have the state just decided: surfaces that depend on them must not be counted with another side.
    const int decided = letter == '+' ? 1 : letter == '-' ? -1 : model_.form.switches[at(i)].at_zero;
    if (sign == 0) {
      zeros.push_back({.unknown = i, .known = 1});
      if (letter == '0' || letter == '=') letter = '+';
    } else {
      letter = sign > 0 ? '+' : '-';
    }
    sigma_[at(i)] = sign != 0 ? sign : decided;
  }
}

/// Surfaces slid on and contacts closed take part in the choice even if they are not the event. A surface that has
/// stayed zero by itself may be moved by whatever changes.
void Act::add_neighbours(const Moment& now, std::vector<AtZero>& zeros) const {
  const int m = program_.switches();
  const size_t known = zeros.size();
  const auto listed = [&](int u) {
    return std::any_of(zeros.begin(), zeros.begin() + static_cast<std::ptrdiff_t>(known),
                       [u](const AtZero& z) { return z.unknown == u; });
  };
  for (int i = 0; i < m; ++i) {
    const char c = now.mode.switches[at(i)];
    if (!program_.moves(i) || listed(i)) continue;
    if (c == '0') zeros.push_back({.unknown = i, .known = rest_of(i), .fresh = false});
    if (c == '=') zeros.push_back({.unknown = i, .known = 1, .fresh = true});
  }
  for (int j = 0; j < program_.constraints(); ++j) {
    const int degree = model_.form.gaps[at(j)].degree;
    const bool takes_part = now.mode.constraints[at(j)] == 'c' || degree == 0;
    if (listed(m + j)) continue;
    if (takes_part) zeros.push_back({.unknown = m + j, .known = rest_of(m + j), .fresh = false});
    // One that was told to open just now and has not moved yet still touches.
    if (!takes_part && degree == 2 && now.known[at(m + j)] >= 2) zeros.push_back({.unknown = m + j, .known = 2});
  }
}

/// A multiple of a surface is zero with it, whatever rounding says.
void Act::add_ties(std::vector<AtZero>& zeros) const {
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

bool Act::redistributes(Moment& now) {
  series_.set_mode(now.mode);
  if (series_.blocks().empty()) return false;
  const int order = std::min(decision_order, series_.order());
  if (series_.evaluate(now.x, now.t(), now.counters) != SeriesStatus::ok || !series_.redundant_mode()) return false;
  series_.share_evenly(false);
  if (series_.distribute(now.x, now.t(), now.counters, order, time_scale, direction_) != SeriesStatus::ok) return false;
  for (int j = 0; j < program_.constraints(); ++j) {  // what is open must stay so under the new forces
    if (now.mode.constraints[at(j)] != 'o' || model_.form.gaps[at(j)].degree != 0) continue;
    if (leading_coefficient(series_.gap(j), 0, order, time_scale, direction_).sign < 0) return false;
  }
  for (const int u : series_.active()) {
    if (!series_.held(u) && !series_.stays_inside(u, order, time_scale, direction_)) return false;
  }
  std::fill(now.known.begin(), now.known.end(), 0);
  for (const int u : series_.active()) {  // what starts at its bound leaves it inward
    now.known[at(u)] = series_.leading_at_bound(u, order, time_scale, direction_);
  }
  // Distributions that follow each other without time passing are decided by the mode.
  redistributed_ = now.t() == last_distribution_ ? redistributed_ + 1 : 0;
  last_distribution_ = now.t();
  return redistributed_ < most_distributions;
}

int Act::rest_of(int u) const {
  const bool algebraic = u >= program_.switches() && model_.form.gaps[at(u - program_.switches())].degree == 0;
  const bool by_another = u < program_.switches() && program_.nested(u) && series_.tape().degree[at(u)] == 0;
  if (algebraic || by_another) return 0;
  // Where others have letters it may be kept by a higher derivative.
  const bool higher = u < program_.switches() && series_.mode().switches[at(u)] == '0' && series_.tape().lettered;
  return higher ? std::max(series_.tape().degree[at(u)], program_.point_degree(u)) : program_.point_degree(u);
}

}  // namespace saltus
