#include "flow/choose.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/index.hpp"
#include "flow/chooser.hpp"

namespace saltus {
namespace {

std::string name_of(const Program& program, int unknown) {
  const int m = program.switches();
  return unknown < m ? program.model().form.switches[at(unknown)].name
                     : program.model().constraints[at(unknown - m)].name;
}

}  // namespace

std::optional<SimpleChoice> by_sides(double above, double below, double hold) {
  const double noise = clear_rate * std::max(std::abs(above), std::abs(below));
  if (!(std::abs(above) > noise && std::abs(below) > noise)) return std::nullopt;
  // Backward in time friction pushes away from its surface; what holds there has held all the same.
  const double push = hold > 1 ? std::abs(below - above) : below - above, sum = above + below;
  if (push > noise && std::abs(sum) < (hold - clear_rate) * push) return SimpleChoice{'0', 0};
  if (push > noise && std::abs(sum) < (hold + clear_rate) * push) return std::nullopt;
  if (above > 0 && below > 0) return SimpleChoice{'+', 1};
  if (above < 0 && below < 0) return SimpleChoice{'-', 1};
  return std::nullopt;
}

bool far_from_a_change(double above, double below, double hold) {
  const double largest = std::max(std::abs(above), std::abs(below));
  const double nearest =
      std::min({std::abs(above), std::abs(below), std::abs(std::abs(above + below) - hold * std::abs(below - above))});
  return nearest > clear_arrival * largest;
}

std::optional<SimpleChoice> by_release(double rate, double jump, int side) {
  if (!(rate > clear_rate * jump)) return std::nullopt;
  return SimpleChoice{side > 0 ? '+' : '-', 1};
}

Chooser::Chooser(Series& series, Rounding& point, std::span<const double> x, double t, std::span<const double> counters,
                 const Mode& current, const std::vector<AtZero>& zeros, const ChoiceOptions& options)
    : series_(series),
      point_(point),
      program_(series.program()),
      x_(x),
      t_(t),
      counters_(counters),
      zeros_(zeros),
      options_(options) {
  if (program_.any_nested()) add_dependents();
  choice_.mode = current;
  before_ = current;
  choice_.leading.assign(at(program_.unknowns()), 0);
  for (int u = 0; u < program_.unknowns(); ++u) previous_.push_back(options.at_start ? 0.0 : series.unknown(u)[0]);
  choice_.sigma = previous_;
}

Choice Chooser::run() {
  std::vector<std::vector<size_t>> undecided = groups();
  decide_together(undecided);
  close_together(undecided);
  conduct_together(undecided);
  // A surface that rests at a kink is moved by any other change: it is decided last, and again until nothing changes.
  const auto kinks = std::stable_partition(undecided.begin(), undecided.end(),
                                           [&](const std::vector<size_t>& group) { return !has_kink(group); });
  std::for_each(undecided.begin(), kinks, [&](const std::vector<size_t>& group) { decide(group); });
  for (auto rounds = undecided.end() - kinks + 1; rounds > 0; --rounds) {
    const Mode before = choice_.mode;
    std::for_each(kinks, undecided.end(), [&](const std::vector<size_t>& group) { decide(group); });
    if (undecided.size() == 1 || choice_.mode == before) break;
  }
  for (const size_t lost : without_grip()) decide({lost});
  return std::move(choice_);
}

/// Surfaces that slid and keep their switch state, but have no influence on their function any more, now that others
/// have changed (the flow beside a kink).
std::vector<size_t> Chooser::without_grip() {
  std::vector<size_t> out;
  const auto kept = [&](const AtZero& z) {
    return z.unknown < program_.switches() && !z.fresh && choice_.mode.switches[at(z.unknown)] == '0';
  };
  if (choice_.outcome != Choice::Outcome::unique || choice_.mode == before_) return out;
  if (std::none_of(zeros_.begin(), zeros_.end(), kept)) return out;
  series_.set_mode(choice_.mode);
  if (series_.expand(x_, t_, counters_, 2) != SeriesStatus::ok) return out;
  for (size_t i = 0; i < zeros_.size(); ++i) {
    const int u = zeros_[i].unknown;
    if (!kept(zeros_[i]) || !(series_.idle(u) || powerless(u))) continue;
    const double* h = series_.surface(u);  // beside a kink its rate goes on from zero
    if (std::abs(h[1]) <= clear_rate * std::abs(h[2]) * options_.time_scale) zeros_[i].known = 2;
    out.push_back(i);
  }
  return out;
}

void Chooser::add_dependents() {
  std::vector<char> listed(at(program_.unknowns()), 0);
  for (const AtZero& z : zeros_) listed[at(z.unknown)] = 1;
  const size_t known = zeros_.size();
  for (size_t i = 0; i < known; ++i) {
    if (zeros_[i].unknown >= program_.switches()) continue;
    for (const int d : program_.dependents(zeros_[i].unknown)) {
      if (!listed[at(d)]) zeros_.push_back({.unknown = d, .known = 0, .fresh = zeros_[i].fresh, .depends = true});
      listed[at(d)] = 1;
    }
  }
  std::vector<int> place(at(program_.unknowns()), 0);
  const std::vector<int>& order = program_.model().form.order;
  for (size_t k = 0; k < order.size(); ++k) place[at(order[k])] = static_cast<int>(k);
  for (int j = 0; j < program_.constraints(); ++j)
    place[at(program_.switches() + j)] = program_.switches() + j;  // gaps after all surfaces
  std::stable_sort(zeros_.begin(), zeros_.end(),
                   [&](const AtZero& a, const AtZero& b) { return place[at(a.unknown)] < place[at(b.unknown)]; });
}

std::vector<std::vector<size_t>> Chooser::groups() {
  if (zeros_.size() == 1 && (is_joint(zeros_[0].unknown) || is_part(zeros_[0].unknown))) return {};
  if (zeros_.size() == 1) return {{0}};
  Mode all = choice_.mode;
  for (const AtZero& z : zeros_) set_letter(all, program_, z.unknown, program_.resting_letter(z.unknown));
  std::vector<int> position(at(program_.unknowns()), -1);
  for (size_t i = 0; i < zeros_.size(); ++i) position[at(zeros_[i].unknown)] = static_cast<int>(i);
  std::vector<size_t> parent(zeros_.size());
  std::iota(parent.begin(), parent.end(), size_t{0});
  const auto root = [&](size_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  const auto join = [&](const Mode& mode) {
    const std::vector<SlopeEntry>& entries = program_.tape(mode.switches).slope_entries;
    // An algebraic gap with its own multiplier in it is never kept by its rate.
    std::vector<char> own(at(program_.unknowns()), 0);
    for (const SlopeEntry& e : entries) {
      if (e.row == e.column) own[at(e.row)] = 1;
    }
    for (const SlopeEntry& e : entries) {
      const bool raised = e.row >= program_.unknowns();
      const int u = raised ? e.row - program_.constraints() : e.row;
      if (raised && own[at(u)]) continue;
      const int row = position[at(u)], column = position[at(e.column)];
      if (row >= 0 && column >= 0) parent[root(at(row))] = root(at(column));
    }
  };
  join(all);
  // A kink that only depends on others need not be at zero: beside it formulas are others.
  const auto beside = [&](const AtZero& z) { return z.depends && program_.resting_letter(z.unknown) == '='; };
  for (const char side : {'+', '-'}) {
    if (std::none_of(zeros_.begin(), zeros_.end(), beside)) break;
    for (const AtZero& z : zeros_) {
      if (beside(z)) all.switches[at(z.unknown)] = side;
    }
    join(all);
  }
  for (const auto& [u, tie] : series_.ties()) {
    const int a = position[at(u)], b = position[at(tie.first)];
    if (a >= 0 && b >= 0) parent[root(at(a))] = root(at(b));
  }
  for (size_t i = 0; program_.any_carried() && i < zeros_.size(); ++i) {
    const int u = zeros_[i].unknown;
    if (u >= program_.switches() || !program_.carried(u)) continue;
    for (const int s : program_.entering(u)) {  // also where a higher derivative has none of them
      if (position[at(s)] >= 0) parent[root(i)] = root(at(position[at(s)]));
    }
  }
  if (program_.any_nested()) {
    for (size_t i = 0; i < zeros_.size(); ++i) {
      if (zeros_[i].unknown >= program_.switches()) continue;
      for (const int d : program_.dependents(zeros_[i].unknown)) parent[root(i)] = root(at(position[at(d)]));
    }
  }
  std::map<size_t, std::vector<size_t>> members;
  for (size_t i = 0; i < zeros_.size(); ++i) members[root(i)].push_back(i);
  std::vector<std::vector<size_t>> out;
  for (auto& [key, group] : members) {
    const bool fresh = std::any_of(group.begin(), group.end(), [&](size_t i) { return zeros_[i].fresh; });
    if (fresh) out.push_back(std::move(group));  // the others keep the mode they have
  }
  return out;
}

void Chooser::decide_together(std::vector<std::vector<size_t>>& undecided) {
  const auto ordinary = [&](const std::vector<size_t>& group) {
    const AtZero& z = zeros_[group[0]];
    return group.size() == 1 && z.unknown < program_.switches() && z.known == 1 && !z.leaving;
  };
  if (std::count_if(undecided.begin(), undecided.end(), ordinary) < 3) return;
  std::vector<double> above, below;
  for (const char side : {'+', '-'}) {
    Mode mode = choice_.mode;
    for (const auto& group : undecided) {
      if (ordinary(group)) mode.switches[at(zeros_[group[0]].unknown)] = side;
    }
    series_.set_mode(mode);
    if (series_.expand(x_, t_, counters_, 1) != SeriesStatus::ok) return;
    for (const auto& group : undecided) {
      const double rate = ordinary(group) ? series_.surface(zeros_[group[0]].unknown)[1] * options_.direction : 0;
      (side == '+' ? above : below).push_back(rate);
    }
  }
  std::vector<std::vector<size_t>> left;
  for (size_t g = 0; g < undecided.size(); ++g) {
    const int u = zeros_[undecided[g][0]].unknown;
    const std::optional<SimpleChoice> simple =
        ordinary(undecided[g]) ? by_sides(above[g], below[g], series_.hold(u)) : std::nullopt;
    if (!simple || (simple->letter == '0' && series_.tape().degree[at(u)] != 1)) {
      left.push_back(std::move(undecided[g]));
    } else {
      choice_.mode.switches[at(u)] = simple->letter;
      choice_.leading[at(u)] = simple->leading;
    }
  }
  undecided = std::move(left);
}

void Chooser::close_together(std::vector<std::vector<size_t>>& undecided) {
  const int m = program_.switches();
  const auto rests = [&](const std::vector<size_t>& group) {
    const AtZero& z = zeros_[group[0]];
    return group.size() == 1 && z.unknown >= m && program_.model().form.gaps[at(z.unknown - m)].degree == 2 &&
           z.known == 2 && !z.leaving;
  };
  if (std::count_if(undecided.begin(), undecided.end(), rests) < 3) return;
  Mode mode = choice_.mode;
  for (const auto& group : undecided) {
    if (rests(group)) mode.constraints[at(zeros_[group[0]].unknown - m)] = 'c';
  }
  series_.set_mode(mode);
  if (!series_.tape().slope_affine || series_.evaluate(x_, t_, counters_) != SeriesStatus::ok) return;
  std::vector<double> force(at(program_.unknowns()), 0.0);
  double largest = 0;
  for (const Series::Single& single : series_.singles()) {
    const int u = series_.active()[at(single.member)];
    if (!(single.slope > 0)) continue;  // it has several answers, or none
    force[at(u)] = series_.unknown(u)[0];
    largest = std::max(largest, std::abs(force[at(u)]));
  }
  std::erase_if(undecided, [&](const std::vector<size_t>& group) {
    const int u = zeros_[group[0]].unknown;
    if (!rests(group) || !(std::abs(force[at(u)]) > clear_rate * largest)) return false;
    choice_.mode.constraints[at(u - m)] = force[at(u)] > 0 ? 'c' : 'o';
    choice_.leading[at(u)] = force[at(u)] > 0 ? 0 : 2;
    return true;
  });
}

void Chooser::conduct_together(std::vector<std::vector<size_t>>& undecided) {
  const int m = program_.switches();
  const auto algebraic = [&](const std::vector<size_t>& group) {
    const AtZero& z = zeros_[group[0]];
    return group.size() == 1 && z.unknown >= m && program_.model().form.gaps[at(z.unknown - m)].degree == 0 &&
           z.known == 0 && !z.leaving;
  };
  if (std::count_if(undecided.begin(), undecided.end(), algebraic) < 2) return;
  Mode mode = choice_.mode;
  for (const auto& group : undecided) {
    if (algebraic(group)) mode.constraints[at(zeros_[group[0]].unknown - m)] = 'c';
  }
  series_.set_mode(mode);
  if (!series_.tape().slope_affine || series_.evaluate(x_, t_, counters_) != SeriesStatus::ok) return;
  std::vector<char> resists(at(program_.unknowns()), 0);
  for (const Series::Single& single : series_.singles()) {
    const int u = series_.active()[at(single.member)];
    resists[at(u)] = single.slope > 0 && !series_.raised(u);
  }
  std::vector<double> sigma, none(at(program_.constraints()), 0.0);
  for (int i = 0; i < m; ++i) sigma.push_back(value_of(i, choice_.mode.switches[at(i)]));
  point_.evaluate(x_, t_, sigma, counters_, none);
  std::erase_if(undecided, [&](const std::vector<size_t>& group) {
    const int u = zeros_[group[0]].unknown;
    if (!algebraic(group) || !resists[at(u)]) return false;
    const int sign = point_.sign(program_.point(u, 0), rested_bounds);
    if (sign != 0) choice_.mode.constraints[at(u - m)] = sign < 0 ? 'c' : 'o';
    return sign != 0;
  });
}

bool Chooser::has_kink(const std::vector<size_t>& group) const {
  return std::any_of(group.begin(), group.end(),
                     [&](size_t z) { return program_.resting_letter(zeros_[z].unknown) == '='; });
}

/// Takes those out whose surfaces stay zero whatever the letters of the group are (a table that is zero here, a gain of
/// zero): they rest by themselves. What a contact or diode of the group keeps at zero does not, it may be let go.
std::vector<size_t> Chooser::without_flat(const std::vector<size_t>& group, int order) {
  const auto depends = [&](size_t z) {  // on others of the group: two sets of letters would not tell
    if (zeros_[z].unknown >= program_.switches()) return false;
    const std::vector<int>& dependents = program_.dependents(zeros_[z].unknown);
    return std::any_of(group.begin(), group.end(), [&](size_t other) {
      return std::find(dependents.begin(), dependents.end(), zeros_[other].unknown) != dependents.end();
    });
  };
  if (constraints_only(group) || std::any_of(group.begin(), group.end(), depends)) return group;
  std::vector<char> flat(group.size(), 1);
  // A contact that may open lets go what it keeps at zero.
  const bool contacts =
      std::any_of(group.begin(), group.end(), [&](size_t z) { return zeros_[z].unknown >= program_.switches(); });
  for (const auto& [side, contact] : {std::pair{'+', 'c'}, {'-', 'c'}, {'+', 'o'}, {'-', 'o'}}) {
    if (contact == 'o' && !contacts) break;
    Mode mode = choice_.mode;
    for (const size_t z : group) {
      const int u = zeros_[z].unknown;
      set_letter(mode, program_, u, u < program_.switches() ? side : contact);
    }
    series_.set_mode(mode);
    if (series_.expand(x_, t_, counters_, order) != SeriesStatus::ok) return group;
    for (size_t i = 0; i < group.size(); ++i) {
      const int u = zeros_[group[i]].unknown;
      flat[i] = flat[i] && u < program_.switches() && zeros_[group[i]].known > 0;
      for (int k = 1; flat[i] && k <= order; ++k) flat[i] = function(u)[k] == 0;
    }
    if (std::none_of(flat.begin(), flat.end(), [](char f) { return f; })) return group;
  }
  // The last of a chain of lags has as many coefficients that vanish as there are links before it.
  if (order < series_.order()) return without_flat(group, series_.order());
  std::vector<size_t> moving;
  for (size_t i = 0; i < group.size(); ++i) {
    if (flat[i])
      choice_.mode.switches[at(zeros_[group[i]].unknown)] = '=';
    else
      moving.push_back(group[i]);
  }
  return moving;
}

void Chooser::decide(const std::vector<size_t>& group) {
  if (choice_.outcome != Choice::Outcome::unique) return;
  if (group.size() == 1) {
    const AtZero& z = zeros_[group[0]];
    if (const auto simple = choose_simply(series_, x_, t_, counters_, choice_.mode, z, options_)) {
      const int m = program_.switches();
      (z.unknown < m ? choice_.mode.switches[at(z.unknown)] : choice_.mode.constraints[at(z.unknown - m)]) =
          simple->letter;
      choice_.leading[at(z.unknown)] = simple->leading;
      return;
    }
  }
  if (const std::vector<size_t> moving = without_flat(group, std::min(decision_order, series_.order()));
      moving.size() < group.size()) {
    if (!moving.empty()) decide(moving);
    return;
  }
  constexpr size_t largest_search = 6;
  // A mode whose formulas are its own must be compiled to be tried.
  const bool compiled = std::any_of(group.begin(), group.end(), [&](size_t z) {
    const int u = zeros_[z].unknown;
    return u < program_.switches() && (!program_.open(u) || program_.carried(u));
  });
  const size_t most_candidates = compiled ? 100 : 1000;
  std::vector<Candidate> candidates;
  constexpr size_t small = 2;
  const bool contacts = group.size() > small && constraints_only(group);
  if (contacts) {  // where they move in one way only, that is all there is to find
    bool only = false;
    candidates = few(group, only);
    if (only && settle_among(group, candidates)) return;
  }
  const bool complete =
      group.size() <= largest_search || any_forced(group) ? enumerate(group, most_candidates, candidates) : false;
  if (!complete) {
    bool only = false;
    if (!contacts) candidates = few(group, only);
    add_many(group, candidates);
  }
  if (settle_among(group, candidates) || rests_by_itself(group)) return;
  std::string names;
  for (const size_t z : group) names += (names.empty() ? "'" : ", '") + name_of(program_, zeros_[z].unknown) + "'";
  choice_.outcome = Choice::Outcome::none;
  choice_.message = fmt::format("no mode is consistent on {}", names);
  describe_contacts(group);
}

/// True if one of the candidates fits: it is taken.
bool Chooser::settle_among(const std::vector<size_t>& group, std::vector<Candidate>& candidates) {
  // A coefficient counts by those that follow it: the acceleration of a gap by the next one.
  const bool contacts = std::any_of(group.begin(), group.end(), [&](size_t z) {
    const int j = zeros_[z].unknown - program_.switches();
    return j >= 0 && program_.model().form.gaps[at(j)].degree == 2;
  });
  for (const int order : {contacts ? 3 : 2, contacts ? 5 : 4, decision_order, series_.order()}) {
    std::vector<Candidate> kept = judge(group, candidates, std::min(order, series_.order()));
    if (kept.empty()) continue;
    prefer_crossing(group, candidates, kept);
    settle(group, kept);
    return true;
  }
  return false;
}

bool Chooser::rests_by_itself(const std::vector<size_t>& group) {
  constexpr size_t largest = 6;
  const auto is_constraint = [&](size_t z) { return zeros_[z].unknown >= program_.switches(); };
  if (std::any_of(group.begin(), group.end(), is_constraint)) return false;
  const size_t masks = group.size() <= largest ? size_t{1} << group.size() : 1;
  for (size_t kept = 0; kept < masks; ++kept) {  // those of the mask by their sigma, the others by themselves
    if (kept + 1 == masks && masks > 1) break;   // such modes have been looked at
    if (rests_with(group, kept)) return true;
  }
  return false;
}

bool Chooser::rests_with(const std::vector<size_t>& group, size_t kept) {
  Mode mode = choice_.mode;
  const auto by_sigma = [&](size_t i) { return (kept >> i) & 1; };
  for (size_t i = 0; i < group.size(); ++i) mode.switches[at(zeros_[group[i]].unknown)] = by_sigma(i) ? '0' : '=';
  series_.set_mode(mode);
  const int order = std::min(decision_order, series_.order());
  if (series_.expand(x_, t_, counters_, order) != SeriesStatus::ok || series_.redundant_mode()) return false;
  for (size_t i = 0; i < group.size(); ++i) {
    const int u = zeros_[group[i]].unknown;
    if (by_sigma(i)) {
      const bool given = series_.tape().degree[at(u)] == 1 && !series_.idle(u);
      if (!given || sliding_margin(zeros_[group[i]], order, false).sign < 0) return false;
    }
    const double* h = function(u);
    if (std::any_of(h, h + order + 1, [](double coefficient) { return coefficient != 0; })) return false;
  }
  choice_.mode = mode;
  for (int u = 0; u < program_.unknowns(); ++u) choice_.sigma[at(u)] = series_.unknown(u)[0];
  return true;
}

void Chooser::settle(const std::vector<size_t>& group, std::vector<Candidate>& kept) {
  prefer_sticking(group, kept);
  // At the edge of sliding nothing moves in either mode: they are one solution, and it stays.
  const bool at_rest = std::all_of(kept.begin(), kept.end(), [](const Candidate& c) { return c.weak; });
  drop_equal_flows(kept, !at_rest && !constraints_only(group));
  std::string names;
  for (const size_t z : group) names += (names.empty() ? "'" : ", '") + name_of(program_, zeros_[z].unknown) + "'";
  const bool moves = kept.size() == 1;
  if (moves) add_what_stays(group, kept);
  Candidate* chosen = &kept[0];
  if (kept.size() > 1) {
    chosen = by_wish(group, kept);
    if (!chosen && moves) chosen = &kept[0];
    std::string options;
    for (const Candidate& c : kept)
      options += (options.empty() ? "" : ", ") + visible_mode(c.mode, program_.model().form.visible).text();
    choice_.message =
        fmt::format("the solution is not unique on {} at t = {}: modes {} are all possible", names, t_, options);
    describe_contacts(group);
    if (!chosen) {
      chosen = most_slid(kept);
      if (!options_.at_start) choice_.outcome = Choice::Outcome::several;
    }
  } else if (chosen->several_sigma) {
    choice_.message = fmt::format(
        "sliding on {} at t = {} is not unique: several sigma are possible, the attracting one is taken", names, t_);
  } else if (chosen->repels) {
    choice_.message = fmt::format("sliding on {} at t = {} repels: the solution is not unique", names, t_);
  }
  choice_.mode = chosen->mode;
  for (size_t i = 0; i < group.size(); ++i) choice_.leading[at(zeros_[group[i]].unknown)] = chosen->leading[i].index;
  choice_.sigma = chosen->unknowns;
}

/// A start from where one side moves away and nothing moves on the other (x' = step(x)): it may also stay for a while.
void Chooser::add_what_stays(const std::vector<size_t>& group, std::vector<Candidate>& kept) {
  if (weak_.empty()) return;
  const int order = series_.order();
  std::vector<Candidate> candidates = std::exchange(weak_, {}), chosen{kept[0]};
  std::vector<Candidate> others = judge(group, candidates, order), first = judge(group, chosen, order);
  if (first.empty()) return;
  others.insert(others.begin(), first[0]);  // with as many coefficients as they have
  drop_equal_flows(others, true);
  for (Candidate& c : others) {
    if (c.letters != kept[0].letters) kept.push_back(std::move(c));
  }
}

void Chooser::describe_contacts(const std::vector<size_t>& group) {
  const int m = program_.switches();
  for (const size_t i : group) {
    const int u = zeros_[i].unknown;
    if (u < m || program_.model().form.gaps[at(u - m)].degree != 2) continue;
    double value[2];
    Mode mode = before_;
    for (const size_t other : group) {
      if (zeros_[other].unknown >= m) mode.constraints[at(zeros_[other].unknown - m)] = 'o';
    }
    series_.set_mode(mode);
    const bool open = series_.expand(x_, t_, counters_, 2) == SeriesStatus::ok;
    value[0] = 2 * series_.gap(u - m)[2];
    mode.constraints[at(u - m)] = 'c';
    series_.set_mode(mode);
    const bool closed = series_.evaluate(x_, t_, counters_) == SeriesStatus::ok;
    value[1] = -value[0] / series_.unknown(u)[0];
    if (!open || !closed || !std::isfinite(value[1])) continue;
    const std::string name = name_of(program_, u);
    choice_.contact = true;
    choice_.message += fmt::format("; contact: the gap's acceleration is {:.6g} {} {:.6g}*{}, with {} >= 0", value[0],
                                   value[1] < 0 ? '-' : '+', std::abs(value[1]), name, name);
  }
}

void Chooser::prefer_sticking(const std::vector<size_t>& group, std::vector<Candidate>& kept) const {
  for (size_t i = 0; i < group.size(); ++i) {
    const int u = zeros_[group[i]].unknown;
    if (u >= program_.switches() || !(series_.hold(u) > 1)) continue;
    const bool can_stick =
        std::any_of(kept.begin(), kept.end(), [&](const Candidate& c) { return c.letters[i] == '0'; });
    if (can_stick) std::erase_if(kept, [&](const Candidate& c) { return c.letters[i] != '0'; });
  }
}

void Chooser::prefer_crossing(const std::vector<size_t>& group, const std::vector<Candidate>& candidates,
                              std::vector<Candidate>& kept) const {
  size_t only = group.size();
  for (size_t i = 0; i < group.size(); ++i) {
    if (zeros_[group[i]].depends) continue;
    if (only < group.size()) return;
    only = i;
  }
  if (kept.size() < 2 || only == group.size() || zeros_[group[only]].leaving) return;
  const int u = zeros_[group[only]].unknown;
  if (u >= program_.switches() || program_.nested(u) || series_.hold(u) > 1) return;
  bool seen[2] = {false, false}, up = true, down = true;
  for (const Candidate& c : candidates) {
    if (!c.usable || c.letters[only] == '0' || c.letters[only] == '=') continue;
    seen[c.letters[only] == '+'] = true;
    up = up && c.first[only] * options_.direction > 0;
    down = down && c.first[only] * options_.direction < 0;
  }
  if (!seen[0] || !seen[1] || up == down) return;
  const char side = up ? '+' : '-';
  const auto crosses = [&](const Candidate& c) { return c.letters[only] == side; };
  if (std::any_of(kept.begin(), kept.end(), crosses))
    std::erase_if(kept, [&](const Candidate& c) { return !crosses(c); });
}

bool Chooser::constraints_only(const std::vector<size_t>& group) const {
  return std::all_of(group.begin(), group.end(), [&](size_t z) { return zeros_[z].unknown >= program_.switches(); });
}

/// Per state. Where an impact ends in rest, all that is left is rounding of what there was before it.
std::vector<double> Chooser::negligible_rates(bool after_impact) {
  std::vector<double> out = fastest_;
  if (after_impact && options_.before.size() == out.size()) {
    series_.set_mode(before_);
    const bool moved = series_.evaluate(options_.before, t_, counters_) == SeriesStatus::ok;
    for (size_t k = 0; k < out.size(); ++k) {
      const double rate = moved ? std::abs(series_.rate(static_cast<int>(k))[0]) : 0;
      out[k] = std::max({out[k], rate, std::abs(options_.before[k]) / options_.time_scale});
    }
  }
  for (double& rate : out) rate *= 1e-13;
  return out;
}

void Chooser::drop_equal_flows(std::vector<Candidate>& kept, bool wholly) {
  const auto resting = [](const Candidate& c) {
    return std::count_if(c.letters.begin(), c.letters.end(), [](char l) { return l == 'c' || l == '0'; });
  };
  std::stable_sort(kept.begin(), kept.end(),
                   [&](const Candidate& a, const Candidate& b) { return resting(a) > resting(b); });
  if (kept.size() < 2) return;
  const double fastest = *std::max_element(fastest_.begin(), fastest_.end());
  const std::vector<double> negligible = negligible_rates(!wholly);
  for (size_t i = 1; i < kept.size();) {
    bool same = true;
    for (size_t k = 0; k < kept[i].rates.size(); ++k) {
      same = same && std::abs(kept[i].rates[k] - kept[0].rates[k]) <=
                         1e-9 * (std::abs(kept[i].rates[k]) + std::abs(kept[0].rates[k])) +
                             std::max(negligible[k], wholly ? 1e-12 * fastest : 0.0);
    }
    for (size_t k = 0; wholly && k < kept[i].flow.size(); ++k) {
      const double size = std::abs(kept[i].flow[k]) + std::abs(kept[0].flow[k]);
      same = same && std::abs(kept[i].flow[k] - kept[0].flow[k]) <= 1e-9 * size + 1e-12 * fastest;
    }
    if (same) {
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

Candidate* Chooser::by_wish(const std::vector<size_t>& group, std::vector<Candidate>& kept) const {
  for (Candidate& c : kept) {
    bool fits = false;
    for (size_t i = 0; i < group.size(); ++i) {
      const auto wish = options_.leave.find(zeros_[group[i]].unknown);
      if (wish == options_.leave.end()) continue;
      fits = c.letters[i] == wish->second;
      if (!fits) break;
    }
    if (fits) return &c;
  }
  return nullptr;
}

Candidate* Chooser::most_slid(std::vector<Candidate>& kept) {
  const auto slid = [](const Candidate& c) { return std::count(c.letters.begin(), c.letters.end(), '0'); };
  return &*std::max_element(kept.begin(), kept.end(),
                            [&](const Candidate& a, const Candidate& b) { return slid(a) < slid(b); });
}

namespace {

/// A contact that touches and moves apart is open, whatever its force would be.
std::optional<SimpleChoice> choose_open(Series& series, std::span<const double> x, double t,
                                        std::span<const double> counters, const Mode& current, const AtZero& zero,
                                        const ChoiceOptions& options) {
  const int j = zero.unknown - series.program().switches();
  if (series.program().model().form.gaps[at(j)].degree != 2 || current.constraints[at(j)] != 'o' || zero.leaving)
    return std::nullopt;
  series.set_mode(current);
  if (series.expand(x, t, counters, std::max(2, series.order_at_once())) != SeriesStatus::ok) return std::nullopt;
  const double* gap = series.gap(j);
  const bool apart = gap[1] * options.direction > clear_rate * std::abs(gap[2]) * options.time_scale;
  return apart ? std::optional(SimpleChoice{'o', 1}) : std::nullopt;
}

}  // namespace

std::optional<SimpleChoice> choose_simply(Series& series, std::span<const double> x, double t,
                                          std::span<const double> counters, const Mode& current, const AtZero& zero,
                                          const ChoiceOptions& options) {
  const int u = zero.unknown;
  if (zero.known != 1) return std::nullopt;
  if (u >= series.program().switches()) return choose_open(series, x, t, counters, current, zero, options);
  const auto coefficient = [&](char letter, int k) {
    series.set_mode(current, u, letter);
    // The switch state left for is as a rule the one that follows: the next step has its series already.
    const int order = letter == zero.leaving ? std::max(k, series.order_at_once()) : k;
    if (series.expand(x, t, counters, order) != SeriesStatus::ok) return std::nan("");
    return series.surface(u)[k];
  };
  // Where h' is affine in sigma with a known slope, one side tells the other.
  const char before = current.switches[at(u)];
  series.set_mode(current);
  const std::optional<double> slope = series.side_slope(u);
  if (zero.leaving) {
    const char other = zero.leaving == '+' ? '-' : '+';
    const double sign = zero.leaving == '+' ? 1 : -1;
    const double jump = slope ? std::abs(*slope) * (1 + series.hold(u)) : std::abs(coefficient(other, 1));
    if (zero.released)  // let go with a jump of its rate
      return by_release(coefficient(zero.leaving, 1) * sign * options.direction, jump, zero.leaving == '+' ? 1 : -1);
    // Steep enough to rule from the start: the other side and staying are then impossible.
    if (!(coefficient(zero.leaving, 2) * sign * options.time_scale > 1e-6 * jump)) return std::nullopt;
    return SimpleChoice{zero.leaving, 2};
  }
  double above = 0, below = 0;
  if (slope && (before == '+' || before == '-')) {
    const auto take = [&](double here) {
      const double across = here - (before == '+' ? 2 : -2) * *slope;
      above = (before == '+' ? here : across) * options.direction;
      below = (before == '-' ? here : across) * options.direction;
    };
    take(options.arrival);
    if (!far_from_a_change(above, below, series.hold(u))) take(coefficient(before, 1));
  } else {
    above = coefficient('+', 1) * options.direction;
    below = coefficient('-', 1) * options.direction;
    // An item at rest may be set in motion by another one that is zero up to rounding (an inflow that sets in).
    const auto rules = [&](char letter, double rate) {
      const double bend = coefficient(letter, 2);
      return !std::isfinite(bend) || std::abs(rate) > clear_rate * std::abs(bend) * options.time_scale;
    };
    if (before == '=' && !(rules('+', above) && rules('-', below))) return std::nullopt;
  }
  const std::optional<SimpleChoice> choice = by_sides(above, below, series.hold(u));
  if (choice && choice->letter == '0' && !slope) {
    series.set_mode(current, u, '0');
    if (series.tape().degree[at(u)] != 1) return std::nullopt;
  }
  return choice;
}

Choice choose_mode(Series& series, Rounding& point, std::span<const double> x, double t,
                   std::span<const double> counters, const Mode& current, const std::vector<AtZero>& zeros,
                   const ChoiceOptions& options) {
  return Chooser(series, point, x, t, counters, current, zeros, options).run();
}

}  // namespace saltus
