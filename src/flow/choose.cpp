#include "flow/choose.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "solve/box.hpp"

namespace saltus {
namespace {

size_t at(int i) { return static_cast<size_t>(i); }

std::string name_of(const Program& program, int unknown) {
  const int m = program.switches();
  return unknown < m ? program.model().form.switches[at(unknown)].name
                     : program.model().constraints[at(unknown - m)].name;
}

void set(Mode& mode, const Program& program, int unknown, char c) {
  const int m = program.switches();
  (unknown < m ? mode.switches[at(unknown)] : mode.constraints[at(unknown - m)]) = c;
}

/// One assignment that has been tried.
struct Candidate {
  std::string letters;           // per member of the group
  Mode mode{};                   // the whole mode
  bool usable = false;           // the series exists
  bool weak = false;             // stays, but only because nothing moves to the computed order
  std::vector<Leading> leading;  // per member
  std::vector<double> unknowns;  // values of all unknowns
  std::vector<double> first;     // per member: first derivative of h or g
  std::vector<double> rates;     // of the states
  std::vector<double> flow;      // the next coefficients of the states
  bool several_sigma = false;
  bool repels = false;
};

/// What the rates of h on both sides of a single surface tell, if they are clear: through it, or along it. The sigma
/// that would keep it is (above + below)/(below - above); one that holds stays up to |sigma| = hold.
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

class Chooser {
 public:
  Chooser(Series& series, Rounding& point, std::span<const double> x, double t, std::span<const double> counters,
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
    choice_.sigma.assign(at(program_.unknowns()), 0.0);
    for (int u = 0; u < program_.unknowns(); ++u) previous_.push_back(options.at_start ? 0.0 : series.unknown(u)[0]);
  }

  Choice run() {
    std::vector<std::vector<size_t>> undecided = groups();
    decide_together(undecided);
    // What rests at a kink is moved by whatever else changes: it is decided last, and again until nothing changes.
    const auto kinks = std::stable_partition(undecided.begin(), undecided.end(),
                                             [&](const std::vector<size_t>& group) { return !has_kink(group); });
    std::for_each(undecided.begin(), kinks, [&](const std::vector<size_t>& group) { decide(group); });
    for (auto rounds = undecided.end() - kinks + 1; rounds > 0; --rounds) {
      const Mode before = choice_.mode;
      std::for_each(kinks, undecided.end(), [&](const std::vector<size_t>& group) { decide(group); });
      if (undecided.size() == 1 || choice_.mode == before) break;
    }
    return std::move(choice_);
  }

 private:
  /// Surfaces that depend on a switch in Z are decided with it.
  void add_dependents() {
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

  /// Members of Z that can influence each other; groups without a fresh member keep what they have.
  std::vector<std::vector<size_t>> groups() {
    if (zeros_.size() == 1) return {{0}};
    Mode all = choice_.mode;
    for (const AtZero& z : zeros_) set(all, program_, z.unknown, program_.resting_letter(z.unknown));
    std::vector<int> position(at(program_.unknowns()), -1);
    for (size_t i = 0; i < zeros_.size(); ++i) position[at(zeros_[i].unknown)] = static_cast<int>(i);
    std::vector<size_t> parent(zeros_.size());
    std::iota(parent.begin(), parent.end(), size_t{0});
    const auto root = [&](size_t i) {
      while (parent[i] != i) i = parent[i] = parent[parent[i]];
      return i;
    };
    for (const SlopeEntry& e : program_.tape(all.switches).slope_entries) {
      const int u = e.row < program_.unknowns() ? e.row : e.row - program_.constraints();
      const int row = position[at(u)], column = position[at(e.column)];
      if (row >= 0 && column >= 0) parent[root(at(row))] = root(at(column));
    }
    for (const auto& [u, tie] : series_.ties()) {
      const int a = position[at(u)], b = position[at(tie.first)];
      if (a >= 0 && b >= 0) parent[root(at(a))] = root(at(b));
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

  /// Many surfaces that do not influence each other (blocks at rest at the start): their h' on both sides come from two
  /// series, one with all above and one with all below. What that settles is taken off the list.
  void decide_together(std::vector<std::vector<size_t>>& undecided) {
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

  bool has_kink(const std::vector<size_t>& group) const {
    return std::any_of(group.begin(), group.end(),
                       [&](size_t z) { return program_.resting_letter(zeros_[z].unknown) == '='; });
  }

  std::string letters_of(const AtZero& z) const { return z.unknown < program_.switches() ? "+-0" : "oc"; }

  void decide(const std::vector<size_t>& group) {
    if (choice_.outcome != Choice::Outcome::unique) return;
    if (group.size() == 1) {
      const AtZero& z = zeros_[group[0]];
      if (const auto simple = choose_simply(series_, x_, t_, counters_, choice_.mode, z, options_)) {
        choice_.mode.switches[at(z.unknown)] = simple->letter;
        choice_.leading[at(z.unknown)] = simple->leading;
        return;
      }
    }
    constexpr size_t largest_search = 6;
    // A mode whose formulas are its own must be compiled to be tried.
    const bool compiled = std::any_of(group.begin(), group.end(), [&](size_t z) {
      return zeros_[z].unknown < program_.switches() && !program_.plain(zeros_[z].unknown);
    });
    const size_t most_candidates = compiled ? 100 : 1000;
    std::vector<Candidate> candidates;
    const bool complete =
        group.size() <= largest_search || any_forced(group) ? enumerate(group, most_candidates, candidates) : false;
    if (!complete) candidates = few(group);
    for (const int order : {2, 4, decision_order}) {
      std::vector<Candidate> kept = judge(group, candidates, std::min(order, series_.order()));
      if (!kept.empty()) {
        settle(group, kept);
        return;
      }
    }
    if (rests_by_itself(group)) return;
    std::string names;
    for (const size_t z : group) names += (names.empty() ? "'" : ", '") + name_of(program_, zeros_[z].unknown) + "'";
    choice_.outcome = Choice::Outcome::none;
    choice_.message = fmt::format("no mode is consistent on {}", names);
    describe_contacts(group);
  }

  /// Where the series of other modes do not exist (a root at zero): all surfaces stay zero with the values that
  /// switches have on their surfaces, an equilibrium of the states they depend on.
  bool rests_by_itself(const std::vector<size_t>& group) {
    Mode mode = choice_.mode;
    for (const size_t z : group) {
      if (zeros_[z].unknown >= program_.switches()) return false;
      mode.switches[at(zeros_[z].unknown)] = '=';
    }
    series_.set_mode(mode);
    const int order = std::min(decision_order, series_.order());
    if (series_.expand(x_, t_, counters_, order) != SeriesStatus::ok) return false;
    for (const size_t z : group) {
      for (int k = 0; k <= order; ++k) {
        if (function(zeros_[z].unknown)[k] != 0) return false;
      }
    }
    choice_.mode = mode;
    return true;
  }

  bool any_forced(const std::vector<size_t>& group) const {
    return std::any_of(group.begin(), group.end(), [&](size_t z) { return zeros_[z].depends; });
  }

  /// All assignments that the values of nested surfaces leave possible. False if there are too many.
  bool enumerate(const std::vector<size_t>& group, size_t most, std::vector<Candidate>& out) {
    out.assign(1, {});
    for (size_t i = 0; i < group.size(); ++i) {
      const AtZero& z = zeros_[group[i]];
      std::vector<Candidate> longer;
      for (const Candidate& c : out) {
        for (const char letter : possible_letters(group, c.letters, z)) {
          if (fits_ties(group, c.letters, z.unknown, letter)) longer.push_back({.letters = c.letters + letter});
        }
      }
      out = std::move(longer);
      if (out.size() > most) return false;
    }
    return true;
  }

  /// A surface that depends on switches before it has the sign they give it; only where that is zero (or where it
  /// depends on a sigma still to be found) is there a choice.
  std::string possible_letters(const std::vector<size_t>& group, const std::string& letters, const AtZero& z) {
    if (z.unknown >= program_.switches() || !program_.nested(z.unknown)) return letters_of(z);
    std::vector<double> sigma(at(program_.switches()));
    bool depends = z.depends, open = false;
    for (int i = 0; i < program_.switches(); ++i) sigma[at(i)] = value_of(i, choice_.mode.switches[at(i)]);
    for (size_t k = 0; k < letters.size(); ++k) {
      const int u = zeros_[group[k]].unknown;
      if (u >= program_.switches()) continue;
      sigma[at(u)] = value_of(u, letters[k]);
      const std::vector<int>& dependents = program_.dependents(u);
      if (std::find(dependents.begin(), dependents.end(), z.unknown) == dependents.end()) continue;
      depends = true;
      open = open || (letters[k] == '0' && !program_.timed(u) && program_.resting_letter(u) == '0');
    }
    if (!depends || open) return letters_of(z);
    point_.evaluate(x_, t_, sigma, counters_);
    const int sign = point_.sign(program_.point(z.unknown, 0), near_bounds);
    return sign > 0 ? "+" : sign < 0 ? "-" : letters_of(z);
  }

  double value_of(int i, char letter) const {
    if (letter == '0' || letter == '=') return program_.model().form.switches[at(i)].at_zero;
    return letter == '+' ? 1 : -1;
  }

  /// Many surfaces at once: only those of the event change, or else whatever the walk finds.
  std::vector<Candidate> few(const std::vector<size_t>& group) {
    std::vector<Candidate> out(1);
    size_t fresh = 0;
    for (const size_t z : group) fresh += zeros_[z].fresh;
    constexpr size_t most_fresh = 4;
    for (const size_t z : group) {
      const bool varies = zeros_[z].fresh && fresh <= most_fresh;
      const std::string letters = varies ? letters_of(zeros_[z]) : std::string(1, before_letter(zeros_[z].unknown));
      std::vector<Candidate> longer;
      for (const Candidate& c : out) {
        for (const char letter : letters) longer.push_back({.letters = c.letters + letter});
      }
      out = std::move(longer);
    }
    std::vector<Candidate> proposed = by_solver(group, x_, t_);
    for (const double share : {1e-6, 1e-3}) {  // what leaves along a tangent is seen a little later
      const double soon = share * options_.time_scale * options_.direction;
      const std::vector<double> x = state_after(soon);
      for (Candidate& c : by_solver(group, x, t_ + soon)) proposed.push_back(std::move(c));
    }
    proposed.push_back(one_by_one(group));
    for (Candidate& c : walk(group)) proposed.push_back(std::move(c));
    for (Candidate& c : proposed) {
      const bool known =
          std::any_of(out.begin(), out.end(), [&](const Candidate& o) { return o.letters == c.letters; });
      if (!known) out.push_back(std::move(c));
    }
    return out;
  }

  /// Surfaces that are multiples of each other switch together.
  bool fits_ties(const std::vector<size_t>& group, const std::string& letters, int u, char letter) const {
    const auto tie = series_.ties().find(u);
    if (tie == series_.ties().end()) return true;
    for (size_t i = 0; i < letters.size(); ++i) {
      if (zeros_[group[i]].unknown != tie->second.first) continue;
      const char other = letters[i];
      return tie->second.second > 0 || other == '0' ? letter == other : letter != other && letter != '0';
    }
    return true;
  }

  /// In the order in which surfaces depend on each other: each by how it starts above and below, what comes before it
  /// decided and the rest as it was. Right wherever rates are continuous; judged like every proposal.
  Candidate one_by_one(const std::vector<size_t>& group) {
    Candidate c;
    const int order = std::min(decision_order, series_.order());
    for (const size_t member : group) {
      const AtZero& z = zeros_[member];
      const std::string letters = possible_letters(group, c.letters, z);
      if (letters.size() == 1 || z.unknown >= program_.switches()) {
        c.letters += letters.size() == 1 ? letters[0] : before_letter(z.unknown);
        continue;
      }
      int starts[2] = {0, 0};
      for (const int side : {0, 1}) {
        Mode mode = with(group, c.letters);
        mode.switches[at(z.unknown)] = side == 0 ? '+' : '-';
        series_.set_mode(mode);
        if (series_.expand(x_, t_, counters_, order) != SeriesStatus::ok) continue;
        double size = 0;
        for (int k = 1; k <= 2; ++k) size = std::max(size, std::abs(function(z.unknown)[k]));
        starts[side] = leading_coefficient(function(z.unknown), 1, order, options_.time_scale, options_.direction,
                                           rate_rounding * size)
                           .sign;
      }
      c.letters += starts[0] > 0 ? '+' : starts[1] < 0 ? '-' : '0';
    }
    return c;
  }

  /// The first coefficients that unknowns enter as a box complementarity problem: residual = A u + r, with the sign
  /// that makes a switch push its surface back. Degenerate members (at a bound with no rate) may stay or go.
  std::vector<Candidate> by_solver(const std::vector<size_t>& group, std::span<const double> x, double t) {
    std::string all;
    for (const size_t z : group) all += zeros_[z].unknown < program_.switches() ? '0' : 'c';
    if (!may_slide(group, all)) return {};
    series_.set_mode(with(group, all));
    if (!series_.tape().slope_affine) return {};
    BoxProblem problem;
    Vec r;
    if (!series_.linear_system(x, t, counters_, problem.M, r)) return {};
    const std::vector<int> active = series_.active();
    const Eigen::Index n = static_cast<Eigen::Index>(active.size());
    problem.q = r;
    problem.lo.resize(n);
    problem.hi.resize(n);
    std::map<int, Eigen::Index> row_of;
    for (Eigen::Index a = 0; a < n; ++a) {
      const int u = active[static_cast<size_t>(a)];
      row_of.emplace(u, a);
      const bool is_switch = u < program_.switches();
      problem.lo[a] = is_switch ? -series_.hold(u) : 0.0;
      problem.hi[a] = is_switch ? series_.hold(u) : HUGE_VAL;
      if (!is_switch) continue;
      problem.M.row(a) *= -options_.direction;
      problem.q[a] *= -options_.direction;
    }
    const BoxSolution solution = solve_box(problem);
    if (solution.status != SolveStatus::solved) return {};
    Candidate c;
    std::vector<size_t> unsure;
    for (size_t i = 0; i < group.size(); ++i) {
      const int u = zeros_[group[i]].unknown;
      const auto row = row_of.find(u);
      if (row == row_of.end()) {  // follows another one
        c.letters += '0';
        continue;
      }
      const size_t a = static_cast<size_t>(row->second);
      const BoundState state = solution.state[a];
      const bool is_switch = u < program_.switches();
      if (solution.degenerate[a]) unsure.push_back(i);
      c.letters += state == BoundState::inside || solution.degenerate[a] ? (is_switch ? '0' : 'c')
                   : !is_switch                                          ? 'o'
                   : state == BoundState::upper                          ? '+'
                                                                         : '-';
    }
    std::vector<Candidate> out{c};
    constexpr size_t most_unsure = 6;
    for (size_t k = 0; k < std::min(unsure.size(), most_unsure); ++k) {
      const size_t i = unsure[k];
      const int u = zeros_[group[i]].unknown;
      const char other = u >= program_.switches()                                                 ? 'o'
                         : solution.state[static_cast<size_t>(row_of.at(u))] == BoundState::upper ? '+'
                                                                                                  : '-';
      const size_t count = out.size();
      for (size_t o = 0; o < count; ++o) {
        Candidate more = out[o];
        more.letters[i] = other;
        out.push_back(std::move(more));
      }
    }
    return out;
  }

  /// Where the mode before would have gone.
  std::vector<double> state_after(double tau) {
    std::vector<double> x(x_.begin(), x_.end());
    series_.set_mode(before_);
    const int order = std::min(2, series_.order());
    if (series_.expand(x_, t_, counters_, order) != SeriesStatus::ok) return x;
    for (size_t i = 0; i < x.size(); ++i) {
      const double* c = series_.state(static_cast<int>(i));
      x[i] = c[0] + tau * (c[1] + (order > 1 ? tau * c[2] : 0));
    }
    return x;
  }

  /// Many surfaces at once: from everything slid, let go what must go, one at a time (Murty's rule), until it fits.
  std::vector<Candidate> walk(const std::vector<size_t>& group) {
    Candidate c;
    for (const size_t z : group) c.letters += zeros_[z].unknown < program_.switches() ? '0' : 'c';
    const size_t most = 20 * group.size() + 100;
    for (size_t round = 0; round < most; ++round) {
      Mode mode = with(group, c.letters);
      series_.set_mode(mode);
      if (series_.expand(x_, t_, counters_, std::min(2, series_.order())) != SeriesStatus::ok) break;
      double worst = 1e-12;
      size_t which = group.size();
      char letter = '0';
      for (size_t i = 0; i < group.size(); ++i) {
        const int u = zeros_[group[i]].unknown;
        const bool is_switch = u < program_.switches();
        const char now = c.letters[i];
        const double value = series_.unknown(u)[0];
        if (now == '0' && std::abs(value) - series_.hold(u) > worst) {
          worst = std::abs(value) - series_.hold(u);
          which = i;
          letter = value > 0 ? '+' : '-';
        } else if (now == 'c' && -value > worst) {
          worst = -value;
          which = i;
          letter = 'o';
        } else if (now != '0' && now != 'c') {
          const int degree = is_switch ? 1 : program_.model().form.gaps[at(u - program_.switches())].degree;
          const double rate = function(u)[degree] * (degree % 2 ? options_.direction : 1);
          const double against = now == '-' ? rate : -rate;
          if (against > worst) {
            worst = against;
            which = i;
            letter = is_switch ? '0' : 'c';
          }
        }
      }
      if (which == group.size()) return {c};
      c.letters[which] = letter;
    }
    return {};
  }

  Mode with(const std::vector<size_t>& group, const std::string& letters) const {
    Mode mode = choice_.mode;
    for (size_t i = 0; i < letters.size(); ++i) {
      const int u = zeros_[group[i]].unknown;
      set(mode, program_, u, letters[i] == '0' ? program_.resting_letter(u) : letters[i]);
    }
    return mode;
  }

  /// Makes the candidate's mode current. A surface that no unknown of the mode can move stays zero by itself or not at
  /// all: '='.
  void enter(const std::vector<size_t>& group, Candidate& c) {
    c.mode = with(group, c.letters);
    series_.set_mode(c.mode);
    bool any = false;
    for (size_t i = 0; i < group.size(); ++i) {
      const int u = zeros_[group[i]].unknown;
      if (c.letters[i] != '0' || !series_.idle(u)) continue;
      c.mode.switches[at(u)] = '=';
      any = true;
    }
    if (any) series_.set_mode(c.mode);
  }

  bool is_flat(const Candidate& c, int u) const { return u < program_.switches() && c.mode.switches[at(u)] == '='; }

  /// Candidates whose flow stays where they claim to be, seen with series up to `order`.
  std::vector<Candidate> judge(const std::vector<size_t>& group, std::vector<Candidate>& candidates, int order) {
    std::vector<double> steepest(group.size(), 0.0);  // |h'| among all candidates: what rounding is compared with
    for (Candidate& c : candidates) {
      c.usable = false;
      if (!may_slide(group, c.letters)) continue;
      enter(group, c);
      series_.share_evenly(false);
      c.usable = start(group, c, std::min(2, series_.order()));
      if (!c.usable && series_.redundant_mode()) {
        series_.share_evenly(true);
        c.usable = start(group, c, std::min(2, series_.order()));
      }
      if (!c.usable) continue;
      fastest_.resize(at(program_.states()), 0.0);
      for (int k = 0; k < program_.states(); ++k)
        fastest_[at(k)] = std::max(fastest_[at(k)], std::abs(series_.rate(k)[0]));
      c.first.clear();
      for (size_t i = 0; i < group.size(); ++i) {
        const double* f = function(zeros_[group[i]].unknown);
        c.first.push_back(f[1]);
        if (std::isfinite(f[1])) steepest[i] = std::max(steepest[i], std::abs(f[1]));
        if (series_.tape().degree[at(zeros_[group[i]].unknown)] == 1)  // what cancels where all of them stick
          steepest[i] = std::max(steepest[i], series_.reach(zeros_[group[i]].unknown));
        // What only accelerates has its rounding from there.
        if (zeros_[group[i]].known >= 2 && std::isfinite(f[2]))
          steepest[i] = std::max(steepest[i], std::abs(f[2]) * options_.time_scale);
      }
    }
    std::vector<Candidate> kept;
    for (Candidate& c : candidates) {
      if (!c.usable) continue;
      series_.set_mode(c.mode);
      series_.share_evenly(false);
      bool fits = start(group, c, order) && stays(group, c, order, steepest);
      if (!fits && series_.redundant_mode()) {  // a vertex may violate open gaps where an even share does not
        series_.share_evenly(true);
        fits = start(group, c, order) && stays(group, c, order, steepest);
      }
      if (fits) {
        note_slopes(c);
        c.rates.clear();
        c.flow.clear();
        for (int k = 0; k < program_.states(); ++k) {
          c.rates.push_back(series_.rate(k)[0]);
          double time = options_.time_scale;  // as rates, so that orders can be compared
          for (int j = 2; j <= order; ++j, time *= options_.time_scale) c.flow.push_back(series_.state(k)[j] * time);
        }
        kept.push_back(c);
      }
    }
    const bool any_strong = std::any_of(kept.begin(), kept.end(), [](const Candidate& c) { return !c.weak; });
    if (any_strong) std::erase_if(kept, [](const Candidate& c) { return c.weak; });
    if (!any_strong && order < std::min(decision_order, series_.order())) kept.clear();
    return kept;
  }

  const double* function(int u) const {
    return u < program_.switches() ? series_.surface(u) : series_.gap(u - program_.switches());
  }

  /// A surface can be slid on only if the lower derivatives of h are known to vanish and sigma can influence it.
  bool may_slide(const std::vector<size_t>& group, const std::string& letters) {
    Mode mode = with(group, letters);
    const ModeTape& tape = program_.tape(mode.switches);
    for (size_t i = 0; i < group.size(); ++i) {
      if (letters[i] != '0' && letters[i] != 'c') continue;
      const AtZero& z = zeros_[group[i]];
      const int degree = tape.degree[at(z.unknown)];
      if (letters[i] == '0' && (degree < 0 || program_.resting_letter(z.unknown) == '=')) continue;  // by its series
      if (z.known < degree && !(degree == 1 && program_.nested(z.unknown))) return false;
    }
    return true;
  }

  /// Series of a candidate; if it is not affine in its unknowns, the solution that attracts among those in range.
  bool start(const std::vector<size_t>& group, Candidate& c, int order) {
    const size_t slid = series_.active().size();
    if (series_.tape().slope_affine || slid == 0) {
      if (series_.distribute(x_, t_, counters_, order, options_.time_scale, options_.direction) != SeriesStatus::ok)
        return false;
    } else if (!start_nonlinear(group, c, order)) {
      return false;
    }
    c.unknowns.clear();
    for (int u = 0; u < program_.unknowns(); ++u) c.unknowns.push_back(series_.unknown(u)[0]);
    return true;
  }

  bool in_range(const std::vector<double>& unknowns) const {
    for (const int u : series_.active()) {
      const double v = unknowns[at(u)];
      if (u < program_.switches() ? std::abs(v) > series_.hold(u) + bound_margin : v < -1e-9 * (1 + std::abs(v)))
        return false;
    }
    return true;
  }

  bool start_nonlinear(const std::vector<size_t>& group, Candidate& c, int order) {
    bool all_old = true;
    for (const size_t z : group) all_old = all_old && !zeros_[z].fresh;
    std::vector<std::vector<double>> found, rates;
    std::vector<bool> attracts;
    const auto attempt = [&](const std::vector<double>& guess) {
      series_.guess(guess);
      if (series_.expand(x_, t_, counters_, 1) != SeriesStatus::ok || !keeps_flat(group, c)) return;
      std::vector<double> values;
      for (int u = 0; u < program_.unknowns(); ++u) values.push_back(series_.unknown(u)[0]);
      if (!in_range(values)) return;
      std::vector<double> moves;
      for (int k = 0; k < program_.states(); ++k) moves.push_back(series_.rate(k)[0]);
      for (const auto& known : rates) {  // what moves the states alike is one solution
        double distance = 0, size = 0;
        for (size_t i = 0; i < moves.size(); ++i) {
          distance = std::max(distance, std::abs(moves[i] - known[i]));
          size = std::max({size, std::abs(moves[i]), std::abs(known[i])});
        }
        if (distance <= same_solution * size) return;
      }
      rates.push_back(std::move(moves));
      found.push_back(values);
      attracts.push_back(!repels());
    };
    std::vector<double> guess = previous_;
    if (all_old) attempt(guess);
    if (found.empty()) {
      const auto active = series_.active();
      guess.assign(at(program_.unknowns()), 0.0);
      attempt(guess);
      const size_t corners = size_t{1} << std::min<size_t>(active.size(), 6);
      for (size_t corner = 0; corner < corners; ++corner) {
        for (size_t i = 0; i < active.size(); ++i) {
          const double reach = active[i] < program_.switches() ? 0.7 * series_.hold(active[i]) : 1.0;
          guess[at(active[i])] =
              (corner >> std::min<size_t>(i, 6)) & 1 ? reach : (active[i] < program_.switches() ? -reach : 0.0);
        }
        attempt(guess);
      }
    }
    if (found.empty()) return false;
    c.several_sigma = found.size() > 1;
    size_t best = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      if (attracts[i]) {
        best = i;
        break;
      }
    }
    series_.guess(found[best]);
    return series_.expand(x_, t_, counters_, order) == SeriesStatus::ok;
  }

  /// Whether the surfaces that are to stay zero by themselves do so at first.
  bool keeps_flat(const std::vector<size_t>& group, const Candidate& c) const {
    double fastest = 0;
    for (int k = 0; k < program_.states(); ++k) fastest = std::max(fastest, std::abs(series_.rate(k)[0]));
    return std::all_of(group.begin(), group.end(), [&](size_t z) {
      const int u = zeros_[z].unknown;
      return !is_flat(c, u) || !(std::abs(function(u)[1]) > same_solution * fastest);
    });
  }

  /// Whether a small departure from the slid set grows: an eigenvalue of the slope with positive real part.
  bool repels() const {
    const auto slides = [&](int member) {
      const int u = series_.active()[at(member)];
      return u < program_.switches() && series_.tape().degree[at(u)] == 1;
    };
    for (const Series::Single& single : series_.singles()) {
      if (slides(single.member) && single.slope * options_.direction > 0) return true;
    }
    for (const Series::Block& block : series_.blocks()) {
      constexpr size_t largest = 30;
      if (block.members.size() > largest || block.singular) continue;
      if (!std::all_of(block.members.begin(), block.members.end(), slides)) continue;
      // Each surface may be scaled by any positive number: compare rows of size one.
      Mat scaled = block.slope;
      for (Eigen::Index i = 0; i < scaled.rows(); ++i) {
        const double size = scaled.row(i).cwiseAbs().maxCoeff();
        if (size > 0) scaled.row(i) /= size;
      }
      const ComplexVec values = eigenvalues(scaled);
      for (Eigen::Index i = 0; i < values.size(); ++i) {
        if (values[i].real() * options_.direction > repelling_eigenvalue) return true;
      }
    }
    return false;
  }

  void note_slopes(Candidate& c) const { c.repels = !series_.active().empty() && repels(); }

  bool stays(const std::vector<size_t>& group, Candidate& c, int order, const std::vector<double>& steepest) {
    c.leading.assign(group.size(), {});
    c.weak = false;
    for (size_t i = 0; i < group.size(); ++i) {
      const AtZero& z = zeros_[group[i]];
      const char letter = c.letters[i];
      Leading lead;
      if (!std::isfinite(function(z.unknown)[0])) return false;
      const bool zero_here = !nested(z.unknown) || vanishes(z.unknown, c, steepest[i]);
      if (is_flat(c, z.unknown)) {
        if (!zero_here || start_of(z, order, steepest[i]).sign != 0) return false;
        lead = {order + 1, order < std::min(decision_order, series_.order()) ? 0 : 1};
      } else if (letter == '0') {
        if (!zero_here) return false;
        // Where sigma is not determined, nothing has made sure that it keeps the surface.
        if (series_.redundant_mode() && start_of(z, order, steepest[i]).sign != 0) return false;
        lead = sliding_margin(z, order, tangential(group, c, i));
      } else if (letter == 'c') {
        const double reach = steepest[i] * options_.time_scale;
        if (series_.raised(z.unknown) && std::abs(series_.raised_value(z.unknown)) > 1e-9 * reach) return false;
        const double* lambda = series_.unknown(z.unknown);
        if (series_.held(z.unknown))
          lead = {0, 1};
        else
          lead = leading_coefficient(lambda, tangential(group, c, i) ? 1 : 0, order - 1, options_.time_scale,
                                     options_.direction);
      } else {
        const int first = zero_here ? std::max(known(group, c, i), nested(z.unknown) ? 1 : 0) : 0;
        lead = leading_coefficient(function(z.unknown), first, order, options_.time_scale, options_.direction,
                                   rate_rounding * steepest[i]);
        if (letter == '-') lead.sign = -lead.sign;
        // Without a series nobody knows.
        if (lead.sign == 0 && !std::isfinite(function(z.unknown)[order])) return false;
      }
      if (lead.sign < 0) return false;
      if (lead.sign == 0) c.weak = true;
      if ((letter == '0' || letter == 'c') && !is_flat(c, z.unknown) && powerless(z.unknown)) {
        // Sigma has no influence here (a kink): the surface is kept only if the flow keeps it by itself.
        const int first = series_.tape().degree[at(z.unknown)];
        if (leading_coefficient(function(z.unknown), std::max(1, first), order, options_.time_scale, 1).sign != 0)
          return false;
        c.weak = true;
      }
      c.leading[i] = lead;
    }
    // Surfaces slid on outside the group must stay in range too.
    for (const int u : series_.active()) {
      if (u < program_.switches() && std::abs(series_.unknown(u)[0]) > series_.hold(u) + 1e-9 && !in_group(group, u))
        return false;
    }
    return true;
  }

  bool nested(int u) const { return u < program_.switches() && program_.nested(u); }

  /// Whether a nested surface is zero under the switches of a candidate.
  bool vanishes(int u, const Candidate& c, double steepest) {
    const double h = function(u)[0];
    if (std::abs(h) <= negligible_time * options_.time_scale * steepest) return true;
    if (u >= program_.switches()) return false;
    std::vector<double> sigma(at(program_.switches()));
    for (int i = 0; i < program_.switches(); ++i) sigma[at(i)] = c.unknowns[at(i)];
    point_.evaluate(x_, t_, sigma, counters_);
    return point_.sign(program_.point(u, 0), rested_bounds) == 0;
  }

  /// How h starts in the current series.
  Leading start_of(const AtZero& z, int order, double steepest) const {
    return leading_coefficient(function(z.unknown), 1, order, options_.time_scale, options_.direction,
                               rate_rounding * steepest);
  }

  /// One whose sigma (or lambda) has just reached its bound is at the bound, whatever rounding and the tolerance make
  /// of it, if nothing else changes.
  bool tangential(const std::vector<size_t>& group, const Candidate& c, size_t i) const {
    if (!zeros_[group[i]].leaving || series_.redundant_mode()) return false;
    for (size_t j = 0; j < group.size(); ++j) {
      if (j != i && c.letters[j] != before_letter(zeros_[group[j]].unknown)) return false;
    }
    return true;
  }

  /// Leading coefficients of h known to vanish: one that leaves does so tangentially; one that holds is let go with a
  /// jump of its rate.
  int known(const std::vector<size_t>& group, const Candidate& c, size_t i) const {
    const AtZero& z = zeros_[group[i]];
    return z.leaving == c.letters[i] && !z.released && tangential(group, c, i) ? z.known + 1 : z.known;
  }

  char before_letter(int u) const {
    const int m = program_.switches();
    return u < m ? before_.switches[at(u)] : before_.constraints[at(u - m)];
  }

  /// Whether a slid sigma (or closed lambda) that stands alone cannot influence its surface.
  bool powerless(int u) const {
    for (const Series::Single& single : series_.singles()) {
      if (series_.active()[at(single.member)] != u) continue;
      return single.slope == 0 ||
             std::abs(series_.unknown(u)[1]) * options_.time_scale > 1e9 * (1 + std::abs(series_.unknown(u)[0]));
    }
    return false;
  }

  bool in_group(const std::vector<size_t>& group, int u) const {
    return std::any_of(group.begin(), group.end(), [&](size_t z) { return zeros_[z].unknown == u; });
  }

  /// How hold - |sigma| starts: positive inside, at the bound by the first coefficient that moves it.
  Leading sliding_margin(const AtZero& z, int order, bool at_bound) const {
    const double* sigma = series_.unknown(z.unknown);
    if (series_.held(z.unknown)) return {0, 1};
    const double margin = series_.hold(z.unknown) - std::abs(sigma[0]);
    if (!at_bound && std::abs(margin) > bound_margin) return {0, margin > 0 ? 1 : -1};
    const bool above = at_bound ? z.leaving == '+' : sigma[0] > 0;
    const bool slips = at_bound && series_.hold(z.unknown) > 1 && !z.released;  // |sigma| comes down to one
    std::vector<double> c(at(order) + 1, 0.0);
    for (int k = 1; k < order; ++k) c[at(k)] = above != slips ? -sigma[k] : sigma[k];
    return leading_coefficient(c.data(), 1, order - 1, options_.time_scale, options_.direction,
                               sigma_rate_noise / options_.time_scale);
  }

  void settle(const std::vector<size_t>& group, std::vector<Candidate>& kept) {
    prefer_sticking(group, kept);
    // At the edge of sliding nothing moves in either mode: they are one solution, and it stays.
    const bool at_rest = std::all_of(kept.begin(), kept.end(), [](const Candidate& c) { return c.weak; });
    drop_equal_flows(kept, !at_rest && !constraints_only(group));
    Candidate* chosen = &kept[0];
    std::string names;
    for (const size_t z : group) names += (names.empty() ? "'" : ", '") + name_of(program_, zeros_[z].unknown) + "'";
    if (kept.size() > 1) {
      chosen = by_wish(group, kept);
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

  /// Where contacts have no solution or several (Painlevé), the equation they were to solve: g'' = a + b N.
  void describe_contacts(const std::vector<size_t>& group) {
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

  /// Where both sticking and passing are consistent on a surface that holds, it sticks.
  void prefer_sticking(const std::vector<size_t>& group, std::vector<Candidate>& kept) const {
    for (size_t i = 0; i < group.size(); ++i) {
      const int u = zeros_[group[i]].unknown;
      if (u >= program_.switches() || !(series_.hold(u) > 1)) continue;
      const bool can_stick =
          std::any_of(kept.begin(), kept.end(), [&](const Candidate& c) { return c.letters[i] == '0'; });
      if (can_stick) std::erase_if(kept, [&](const Candidate& c) { return c.letters[i] != '0'; });
    }
  }

  bool constraints_only(const std::vector<size_t>& group) const {
    return std::all_of(group.begin(), group.end(), [&](size_t z) { return zeros_[z].unknown >= program_.switches(); });
  }

  /// Diodes may share currents and voltages in several ways while the states move in one; the friction of an open contact
  /// may be anything. `wholly`: the states move alike not only at first.
  void drop_equal_flows(std::vector<Candidate>& kept, bool wholly) const {
    const auto resting = [](const Candidate& c) {
      return std::count_if(c.letters.begin(), c.letters.end(), [](char l) { return l == 'c' || l == '0'; });
    };
    std::stable_sort(kept.begin(), kept.end(),
                     [&](const Candidate& a, const Candidate& b) { return resting(a) > resting(b); });
    const double fastest = *std::max_element(fastest_.begin(), fastest_.end());
    for (size_t i = 1; i < kept.size();) {
      bool same = true;
      for (size_t k = 0; k < kept[i].rates.size(); ++k) {
        same = same && std::abs(kept[i].rates[k] - kept[0].rates[k]) <=
                           1e-9 * (std::abs(kept[i].rates[k]) + std::abs(kept[0].rates[k])) +
                               std::max(1e-13 * fastest_[k], wholly ? 1e-12 * fastest : 0.0);
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

  Candidate* by_wish(const std::vector<size_t>& group, std::vector<Candidate>& kept) const {
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

  static Candidate* most_slid(std::vector<Candidate>& kept) {
    const auto slid = [](const Candidate& c) { return std::count(c.letters.begin(), c.letters.end(), '0'); };
    return &*std::max_element(kept.begin(), kept.end(),
                              [&](const Candidate& a, const Candidate& b) { return slid(a) < slid(b); });
  }

  Series& series_;
  Rounding& point_;
  const Program& program_;
  std::span<const double> x_;
  double t_;
  std::span<const double> counters_;
  std::vector<AtZero> zeros_;
  const ChoiceOptions& options_;
  std::vector<double> previous_;
  std::vector<double> fastest_;  // rate of each state in the fastest of the modes looked at
  Mode before_;
  Choice choice_;
};

}  // namespace

std::optional<SimpleChoice> choose_simply(Series& series, std::span<const double> x, double t,
                                          std::span<const double> counters, const Mode& current, const AtZero& zero,
                                          const ChoiceOptions& options) {
  const int u = zero.unknown;
  if (u >= series.program().switches() || zero.known != 1) return std::nullopt;
  Mode mode = current;
  const auto coefficient = [&](char letter, int k) {
    mode.switches[at(u)] = letter;
    series.set_mode(mode);
    if (series.expand(x, t, counters, k) != SeriesStatus::ok) return std::nan("");
    return series.surface(u)[k];
  };
  if (zero.leaving) {
    const char other = zero.leaving == '+' ? '-' : '+';
    const double sign = zero.leaving == '+' ? 1 : -1, jump = std::abs(coefficient(other, 1));
    if (zero.released) {  // let go with a jump of its rate
      if (!(coefficient(zero.leaving, 1) * sign * options.direction > 1e-6 * jump)) return std::nullopt;
      return SimpleChoice{zero.leaving, 1};
    }
    // Steep enough to rule from the start: the other side and staying are then impossible.
    if (!(coefficient(zero.leaving, 2) * sign * options.time_scale > 1e-6 * jump)) return std::nullopt;
    return SimpleChoice{zero.leaving, 2};
  }
  const double above = coefficient('+', 1) * options.direction, below = coefficient('-', 1) * options.direction;
  const std::optional<SimpleChoice> choice = by_sides(above, below, series.hold(u));
  if (choice && choice->letter == '0') {
    mode.switches[at(u)] = '0';
    series.set_mode(mode);
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
