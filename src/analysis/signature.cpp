#include "analysis/signature.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/index.hpp"
#include "model/linear_form.hpp"

namespace saltus {

bool precedes(const Leg& leg, const Leg& rest) {
  return leg.happens && !leg.event.hits.empty() && leg.event.before == leg.event.after && leg.arc.mode == rest.arc.mode;
}

namespace {

constexpr double shortest_leg = 1e-4;  ///< of those before an accumulation, as a share of the period
constexpr int guard_samples = 12;      ///< of a guard on one step

/// The last events before an accumulation are too close for their times to be solved for; what they lead to is rest
/// all the same.
void skip_short(std::vector<Leg>& legs, Leg& rest, double period) {
  while (!legs.empty() && std::abs(legs.back().length) < shortest_leg * period) {
    rest.length += legs.back().length;
    rest.x = legs.back().x;
    rest.arc = legs.back().arc;
    legs.pop_back();
  }
  rest.until = rest.length;
  // They shrink and grow together with those before them.
  if (!legs.empty() && precedes(legs.back(), rest)) rest.share = rest.length / legs.back().length;
}

double evaluate(std::span<const double> c, double tau) {
  double sum = 0;
  for (size_t k = c.size(); k-- > 0;) sum = sum * tau + c[k];
  return sum;
}

double polynomial_slope(std::span<const double> c, double tau) {
  double sum = 0;
  for (size_t k = c.size(); k-- > 1;) sum = sum * tau + static_cast<double>(k) * c[k];
  return sum;
}

/// The least and the largest value of a polynomial on a step: at its ends, or where its slope changes sign.
std::pair<double, double> extremes_of(std::span<const double> c, double length) {
  constexpr int parts = 8;
  double low = c[0], high = c[0], before = polynomial_slope(c, 0);
  const auto see = [&](double value) { low = std::min(low, value), high = std::max(high, value); };
  for (int k = 1; k <= parts; ++k) {
    double a = length * (k - 1) / parts, b = length * k / parts;
    see(evaluate(c, b));
    const double behind = polynomial_slope(c, b);
    if ((before > 0) != (behind > 0)) {
      for (int halving = 0; halving < 40; ++halving) {
        const double middle = 0.5 * (a + b);
        ((polynomial_slope(c, middle) > 0) == (before > 0) ? a : b) = middle;
      }
      see(evaluate(c, a));
    }
    before = behind;
  }
  return {low, high};
}

/// Golden section: where a function with one minimum between a and b is lowest, and how low.
template <class Function>
std::pair<double, double> lowest_between(const Function& f, double a, double b, double close) {
  constexpr double golden = 0.3819660112501051;
  double t1 = a + golden * (b - a), t2 = b - golden * (b - a);
  double f1 = f(t1), f2 = f(t2);
  for (int k = 0; k < 60 && b - a > close; ++k) {
    if (f1 < f2) {
      b = t2, t2 = t1, f2 = f1;
      t1 = a + golden * (b - a);
      f1 = f(t1);
    } else {
      a = t1, t1 = t2, f1 = f2;
      t2 = b - golden * (b - a);
      f2 = f(t2);
    }
  }
  return f1 < f2 ? std::pair{t1, f1} : std::pair{t2, f2};
}

}  // namespace

std::vector<double> sizes_on(std::span<const Piece> pieces, size_t states) {
  std::vector<double> out(states, 0.0);
  for (const Piece& p : pieces) {
    const size_t stride = p.coefficients.size() / states;
    for (size_t i = 0; i < states; ++i) {
      const double* c = &p.coefficients[i * stride];
      // Where a switch lets go, a state leaves its surface without speed: halfway it has moved.
      const double halfway = evaluate(std::span(c, stride), p.length / 2);
      out[i] = std::max({out[i], std::abs(c[0]), std::abs(halfway), stride > 1 ? std::abs(c[1] * p.length) : 0.0});
    }
  }
  return out;
}

void widen(const Piece& piece, std::vector<double>& low, std::vector<double>& high) {
  const size_t stride = piece.coefficients.size() / low.size();
  for (size_t i = 0; i < low.size(); ++i) {
    const std::span<const double> c(&piece.coefficients[i * stride], stride);
    const auto [least, most] = extremes_of(c, piece.length);
    low[i] = std::min(low[i], least), high[i] = std::max(high[i], most);
  }
}

std::vector<Leg> legs_of(const Trajectory& run, std::vector<double> x, double t, double direction, bool open_end) {
  std::vector<Leg> legs;
  const double begin = t;
  size_t piece = 0;
  const auto held_at = [&](double time) {
    while (piece + 1 < run.pieces.size() && direction * (run.pieces[piece + 1].start - time) <= 0) ++piece;
    return run.pieces.empty() ? Arc{} : run.arcs[at(run.pieces[piece].arc)];
  };
  std::vector<double> guess = run.arcs.empty() ? std::vector<double>{} : run.arcs.front().guess;
  for (const Transition& e : run.transitions) {
    const bool changes = !e.jumps.empty() || !e.hits.empty() || !e.resting.empty() || !(e.before == e.after) ||
                         e.counters_before != e.counters;
    if (!changes) continue;
    Leg leg;
    leg.arc = {e.before, e.counters_before, held_at(t).held, std::exchange(guess, e.guess)};
    if (e.guards.empty() && e.resting.empty()) {  // hit at the start
      x = e.x_plus;
      continue;
    }
    leg.event = e;
    leg.happens = true;
    leg.length = e.t - t;
    leg.x = column_at(x.data(), ix(x.size()));
    leg.end = Leg::End::time;
    leg.until = leg.length;
    if (!e.resting.empty() && leg.arc.counters.empty()) leg.arc.counters = e.counters;
    for (const Guard& g : e.guards) {
      if (g.kind == GuardKind::slope) continue;
      if (g.kind == GuardKind::jump && g.side == 0 && leg.length == 0) break;
      leg.guard = g;
      leg.end = g.kind == GuardKind::clock ? Leg::End::clock : Leg::End::guard;
      if (g.kind == GuardKind::clock) leg.until = e.t;
      break;
    }
    if (!e.resting.empty()) skip_short(legs, leg, std::abs(run.end.t - begin));
    legs.push_back(std::move(leg));
    x = e.x_plus;
    t = e.t;
  }
  if (open_end) {
    Leg leg;
    leg.arc = run.last;
    leg.arc.held = held_at(t).held;
    leg.length = run.end.t - t;
    leg.x = column_at(x.data(), ix(x.size()));
    leg.end = Leg::End::clock;
    leg.until = run.end.t;
    legs.push_back(std::move(leg));
  }
  return legs;
}

std::vector<Leg> without_nodes(const std::vector<Leg>& legs) {
  std::vector<Leg> out;
  bool inside = false;
  for (const Leg& leg : legs) {
    if (inside) {
      const Leg first = std::exchange(out.back(), leg);
      out.back().x = first.x;
      out.back().arc = first.arc;
      out.back().starts = first.starts;
      out.back().length += first.length;
    } else {
      out.push_back(leg);
    }
    inside = leg.end == Leg::End::part;
  }
  return out;
}

std::vector<Leg> with_nodes(std::vector<Leg> legs, Shooting& shooting, double t0, const Vec& most) {
  constexpr double bearable = 1e3, of_a_part = 10;
  constexpr int most_parts = 64;
  std::vector<Leg> out;
  double t = t0;
  const bool any = std::any_of(legs.begin(), legs.end(), [](const Leg& leg) { return leg.end == Leg::End::part; });
  if (any) legs = without_nodes(legs);
  const std::vector<std::vector<Guard>> rests = shooting.roots_at_rest(legs);
  for (size_t i = 0; i < legs.size(); ++i) {
    Leg& leg = legs[i];
    const double growth = leg.end == Leg::End::time || leg.length == 0 ? 1.0 : shooting.growth(leg, t, rests[i], most);
    const bool splits = std::isfinite(growth) && growth > bearable;
    const int parts =
        splits ? std::min(most_parts, static_cast<int>(std::ceil(std::log(growth) / std::log(of_a_part)))) : 1;
    std::vector<double> x(leg.x.begin(), leg.x.end());
    const double length = leg.length;
    double begin = t;
    for (int k = 0; k < parts; ++k) {
      Leg part = k + 1 < parts ? leg : std::move(leg);
      part.x = column_at(x.data(), ix(x.size()));
      part.length = length / parts;
      if (k + 1 < parts) {
        part.end = Leg::End::part;
        part.happens = false;
        part.known = 0;
        part.event = {};
        shooting.flow(part, begin, x, nullptr);
      }
      if (k > 0) {
        part.known = 0;
        part.starts.clear();
      }
      begin += part.length;
      out.push_back(std::move(part));
    }
    t += length;
  }
  return out;
}

namespace {

/// True for a gap that closes without an impact: behind others, it is where their speed has become rounding.
bool lands_softly(const Leg& leg) {
  const Guard& g = leg.guard;
  return leg.happens && leg.end == Leg::End::guard && g.kind == GuardKind::gap && leg.event.hits.empty() &&
         leg.event.before.constraints[at(g.item)] == 'o' && leg.event.after.constraints[at(g.item)] == 'c';
}

}  // namespace

std::vector<Leg> without_accumulation(const std::vector<Leg>& legs) {
  std::vector<Leg> out;
  for (const Leg& leg : without_nodes(legs)) {
    const bool limit = !leg.event.resting.empty();
    const bool rounding = !limit && lands_softly(leg) && !out.empty() && precedes(out.back(), leg);
    while ((limit || rounding) && !out.empty() && precedes(out.back(), leg)) out.pop_back();
    out.push_back(leg);
    if (rounding) out.back().end = Leg::End::time;
  }
  return out;
}

bool same_signature(const std::vector<Leg>& one, const std::vector<Leg>& other) {
  const auto is_part = [](const Leg& leg) { return leg.end == Leg::End::part; };
  auto a = one.begin(), b = other.begin();
  while (true) {
    a = std::find_if_not(a, one.end(), is_part);
    b = std::find_if_not(b, other.end(), is_part);
    if (a == one.end() || b == other.end()) return a == one.end() && b == other.end();
    if (!(a->arc.mode == b->arc.mode) || a->end != b->end) return false;
    if (a->end == Leg::End::guard && (a->guard.kind != b->guard.kind || a->guard.item != b->guard.item)) return false;
    if (!(a->event.after == b->event.after) || a->event.jumps.size() != b->event.jumps.size() ||
        a->event.hits.size() != b->event.hits.size())
      return false;
    for (size_t k = 0; k < a->event.jumps.size(); ++k) {
      if (a->event.jumps[k].jump != b->event.jumps[k].jump || a->event.jumps[k].sides != b->event.jumps[k].sides)
        return false;
    }
    ++a, ++b;
  }
}

namespace {

/// A formula of the state after some jumps as one of the state before them.
Expr before_jumps(Expr formula, const std::vector<LoweredJump>& jumps, const std::vector<JumpDone>& done) {
  for (size_t k = done.size(); k-- > 0;) {
    ExprMap<Expr> values;
    for (const Expr& symbol : symbols_in(std::span(&formula, 1))) {
      for (const Assignment& a : jumps[at(done[k].jump)].set) {
        if (symbol.is_symbol(SymbolKind::state) && symbol.symbol().index == a.state) values.emplace(symbol, a.value);
      }
    }
    if (!values.empty()) formula = substitute(formula, values);
  }
  return formula;
}

}  // namespace

bool jump_leaves_zero(const std::vector<LoweredJump>& jumps, int jump, const Transition& event) {
  const Expr& on = jumps[at(jump)].on;
  const Expr carried = before_jumps(on, jumps, event.jumps);
  if (carried == on) return true;
  const LinearForm then = linear_form(carried);
  const bool nothing = then.terms.empty() && then.constant == 0;
  return nothing || ratio(then, linear_form(on)) != 0;
}

int known_zeros(const Model& model, const Series& series, const Transition& before, const Guard& guard) {
  if (guard.kind == GuardKind::surface) {
    const char from = before.before.switches[at(guard.item)], to = before.after.switches[at(guard.item)];
    const auto met = [&](GuardKind kind) {
      return std::any_of(before.guards.begin(), before.guards.end(),
                         [&](const Guard& g) { return g.kind == kind && g.item == guard.item; });
    };
    // Left at its bound, h' is zero as well, unless the switch holds; left because something else jumped, only h.
    if (from != to && from == '0' && met(GuardKind::slip)) return 2;
    if (from != to && from == '0') return met(GuardKind::sigma) && !(series.hold(guard.item) > 1) ? 2 : 1;
    // Where a counter has moved its surfaces are others than those that were met: the one behind is zero.
    for (const Counter& c : model.form.counters) {
      if (before.counters.size() != before.counters_before.size()) break;
      const double moved = before.counters[at(c.at)] - before.counters_before[at(c.at)];
      if (moved != 0 && c.below == guard.item) return moved > 0 ? 1 : 0;
      if (moved != 0 && c.above == guard.item) return moved < 0 ? 1 : 0;
    }
    return met(GuardKind::surface) ? 1 : 0;
  }
  if (guard.kind == GuardKind::jump) {
    const bool was_zero = std::any_of(before.guards.begin(), before.guards.end(), [&](const Guard& g) {
      return g.kind == GuardKind::jump && g.item == guard.item;
    });
    return was_zero && jump_leaves_zero(model.form.jumps, guard.item, before) ? 1 : 0;
  }
  if (guard.kind == GuardKind::gap) {
    if (before.before.constraints[at(guard.item)] == 'c' && before.after.constraints[at(guard.item)] == 'o') {
      // Opened as its multiplier vanishes, the derivative of the gap that this decides is zero as well; opened because
      // something else jumped (a switch, a clock), it is not.
      const bool released = std::any_of(before.guards.begin(), before.guards.end(), [&](const Guard& g) {
        return g.kind == GuardKind::lambda && g.item == guard.item;
      });
      return model.form.gaps[at(guard.item)].degree + (released ? 1 : 0);
    }
    for (const Hit& hit : before.hits) {
      for (size_t k = 0; k < hit.contacts.size(); ++k) {
        if (hit.contacts[k] == guard.item && hit.impulse[k] != 0) return 1;
      }
    }
  }
  return 0;
}

std::vector<LegGuard> leg_guards(const Program& program, Series& series, const Leg& leg, const Transition* before) {
  const Model& model = program.model();
  const int m = program.switches();
  std::vector<LegGuard> out;
  series.set_mode(leg.arc.mode);
  const auto add = [&](Guard g, double sign) {
    LegGuard guard{.guard = g, .sign = sign};
    if (before) guard.known = known_zeros(model, series, *before, g);
    if (leg.happens) {
      guard.own = std::any_of(leg.event.guards.begin(), leg.event.guards.end(), [&](const Guard& e) {
        return e.kind == g.kind && e.item == g.item && (g.kind != GuardKind::sigma || e.side == g.side);
      });
    }
    out.push_back(guard);
  };
  for (int i = 0; i < m; ++i) {
    if (!program.moves(i)) continue;
    const char c = leg.arc.mode.switches[at(i)];
    if (c == '+' || c == '-') {
      add({GuardKind::surface, i, c == '+' ? 1 : -1}, c == '+' ? 1 : -1);
      out.back().rested = before && before->before.switches[at(i)] == '=';
    } else if (c == '0' && series.tape().degree[at(i)] >= 0 && !series.held(i) && !series.ties().contains(i)) {
      add({GuardKind::sigma, i, 1}, -1);
      add({GuardKind::sigma, i, -1}, 1);
      for (const Guard& g : leg.event.guards) {
        if (leg.happens && g.kind == GuardKind::slip && g.item == i) add(g, g.side);
      }
    }
  }
  for (int j = 0; j < program.constraints(); ++j) {
    const bool open = leg.arc.mode.constraints[at(j)] == 'o';
    if (program.joint(j)) continue;
    if (!open && series.held(m + j)) continue;
    add({open ? GuardKind::gap : GuardKind::lambda, j, 1}, 1);
  }
  return out;
}

namespace {

/// A polynomial over (tau - zero); what is left over is dropped.
std::vector<double> divided(std::span<const double> c, double zero) {
  std::vector<double> out(c.size() - 1, 0.0);
  double carry = 0;
  for (size_t k = c.size(); k-- > 1;) out[k - 1] = carry = c[k] + carry * zero;
  return out;
}

/// How many of its first coefficients vanish, but for negligible, where a guard leaves a rest.
int vanishing_at_start(const LegTrace::Stretch& s, size_t guard) {
  constexpr double negligible = 1e-12;
  double largest = 0, power = 1;
  std::vector<double> terms;
  for (const double c : s.guards[guard]) {
    terms.push_back(std::abs(c * power));
    largest = std::max(largest, terms.back());
    power *= s.piece.length;
  }
  int count = 0;
  while (at(count) + 1 < terms.size() && terms[at(count)] <= negligible * largest) ++count;
  return count;
}

}  // namespace

constexpr double slope_share = 1e-5;  ///< of a leg, over which slopes at its ends are differences of its polynomials

Lowest lowest(const LegTrace& trace, size_t guard, const LegGuard& g, double length) {
  LegGuard how = g;
  const double direction = length < 0 ? -1 : 1, total = std::abs(length);
  std::vector<double> starts;  // of each stretch, since the start of the leg
  double elapsed = 0;
  for (const LegTrace::Stretch& s : trace.stretches) {
    starts.push_back(elapsed);
    elapsed += std::abs(s.piece.length);
  }
  // The guard over t^known (total - t)^own; on the first and last step by division of polynomials.
  std::vector<double> first, last;
  const size_t count = trace.stretches.size();
  size_t begin = 0;  // behind the beginning of a root, which has no series
  while (how.rested && begin + 1 < count && trace.stretches[begin].rough) ++begin;
  if (how.rested && begin == 0) how.known = vanishing_at_start(trace.stretches[0], guard);
  if (how.known > 0) {
    const std::vector<double>& c = trace.stretches[0].guards[guard];
    if (c.size() > at(how.known)) first.assign(c.begin() + how.known, c.end());
  }
  if (how.own) {
    const std::vector<double>& c = count == 1 && !first.empty() ? first : trace.stretches[count - 1].guards[guard];
    const double end = trace.stretches[count - 1].piece.length;
    last = c;
    for (int zero = 0; zero < how.own; ++zero) last = divided(last, end);
  }
  const auto at_time = [&](double t) {
    size_t k = count - 1;
    while (k > 0 && starts[k] > t) --k;
    const double tau = direction * std::min(t - starts[k], std::abs(trace.stretches[k].piece.length));
    double value;
    const double power = how.known % 2 == 1 ? direction : 1.0;
    const bool by_first = k == 0 && !first.empty();
    if (k + 1 == count && how.own) {
      // c = (tau - end)^own last, total - t = direction (end - tau)
      value = std::pow(-direction, how.own) * evaluate(last, tau);
      if (count == 1 && !first.empty())
        value *= power;
      else if (how.known > 0)
        value /= std::pow(std::max(t, 1e-300), how.known);
    } else {
      value = by_first ? power * evaluate(first, tau) : evaluate(trace.stretches[k].guards[guard], tau);
      if (!by_first && how.known > 0) value /= std::pow(std::max(t, 1e-300), how.known);
      if (how.own) value /= std::pow(std::max(total - t, 1e-150), how.own);
    }
    return how.sign * value;
  };
  std::vector<double> times, values;
  for (size_t k = begin; k < count; ++k) {
    const double step = std::abs(trace.stretches[k].piece.length) / guard_samples;
    for (int j = 0; j < guard_samples; ++j) times.push_back(starts[k] + j * step);
  }
  times.push_back(total);
  for (const double t : times) values.push_back(at_time(t));
  Lowest out{.value = HUGE_VAL};
  for (size_t j = 0; j < times.size(); ++j) {
    if (values[j] < out.value) out.value = values[j], out.time = times[j];
  }
  // The least may lie between guard_samples beside any of those that are lower than their neighbours.
  const double least = out.value;
  for (size_t j = 0; j < times.size(); ++j) {
    const size_t before = j > 0 ? j - 1 : 0, behind = std::min(j + 1, times.size() - 1);
    if (values[j] > values[before] || values[j] > values[behind]) continue;
    if (2 * values[j] - std::max(values[before], values[behind]) > least) continue;
    const auto [t, value] = lowest_between(at_time, times[before], times[behind], 1e-9 * total);
    if (value < out.value) out.value = value, out.time = t;
  }
  const double edge = 1e-6 * total;
  out.where = out.time <= edge           ? Lowest::Where::start
              : out.time >= total - edge ? Lowest::Where::end
                                         : Lowest::Where::inside;
  const auto slope_from = [&](double t, double step) {
    return (4 * at_time(t + step) - 3 * at_time(t) - at_time(t + 2 * step)) * total / (2 * step);
  };
  const double step = slope_share * total;
  out.first_slope = slope_from(0, step);
  out.last_slope = slope_from(total, -step);
  return out;
}

double Lowest::off_start() const { return where == Where::start || first_slope < 0 ? -first_slope : 1; }

double Lowest::off_end() const { return where == Where::end || last_slope > 0 ? last_slope : 1; }

}  // namespace saltus
