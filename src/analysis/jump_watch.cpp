#include "analysis/jump_watch.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"

namespace saltus {
namespace {

constexpr int samples = 12;         ///< of a condition on one step
constexpr double same_time = 1e-9;  ///< as a share of a leg and of time

using Where = Lowest::Where;
using What = JumpWatch::What;

/// A function along a leg, and its state, at any time since the start.
class Along {
 public:
  Along(const LegTrace& trace, size_t guard, int states) : trace_(trace), guard_(guard), states_(states) {
    for (const LegTrace::Stretch& s : trace.stretches) {
      starts_.push_back(length_);
      length_ += std::abs(s.piece.length);
    }
  }
  double length() const { return length_; }
  std::vector<double> times() const {
    std::vector<double> out;
    for (size_t k = 0; k < starts_.size(); ++k) {
      const double step = std::abs(trace_.stretches[k].piece.length) / samples;
      for (int j = 0; j < samples; ++j) out.push_back(starts_[k] + j * step);
    }
    out.push_back(length_);
    return out;
  }
  double operator()(double t) const {
    const size_t k = stretch_at(t);
    const std::vector<double>& c = trace_.stretches[k].guards[guard_];
    const double tau = t - starts_[k];
    double sum = 0;
    for (size_t j = c.size(); j-- > 0;) sum = sum * tau + c[j];
    return sum;
  }
  /// Its rate at the end.
  double last_rate() const {
    const std::vector<double>& c = trace_.stretches.back().guards[guard_];
    const double tau = length_ - starts_.back();
    double sum = 0;
    for (size_t j = c.size(); j-- > 1;) sum = sum * tau + static_cast<double>(j) * c[j];
    return sum;
  }
  std::vector<double> state(double t) const {
    const size_t k = stretch_at(t);
    std::vector<double> x(at(states_));
    Trajectory::evaluate(trace_.stretches[k].piece, states_, t - starts_[k], x.data());
    return x;
  }

 private:
  size_t stretch_at(double t) const {
    size_t k = starts_.size() - 1;
    while (k > 0 && starts_[k] > t) --k;
    return k;
  }
  const LegTrace& trace_;
  size_t guard_;
  int states_;
  std::vector<double> starts_;
  double length_ = 0;
};

/// A stretch of the leg on which a condition keeps its sign.
struct Excursion {
  int sign = 0;
  double begin = 0, end = 0;
  double depth = 0;  ///< how far from zero it comes
};

/// Where |g| has a turn inside an excursion, and how near to zero that is.
struct Turn {
  double time = 0, value = 0;
};

struct Shape {
  std::vector<Excursion> excursions;
  std::vector<Turn> turns;
};

/// Where a function that turns once between a and b is lowest.
template <class F>
Turn lowest_between(const F& f, double a, double b) {
  constexpr double golden = 0.3819660112501051;
  double t1 = a + golden * (b - a), t2 = b - golden * (b - a), f1 = f(t1), f2 = f(t2);
  const double close = 1e-9 * (b - a);
  for (int k = 0; k < 60 && b - a > close; ++k) {
    if (f1 < f2) {
      b = t2, t2 = t1, f2 = f1, t1 = a + golden * (b - a), f1 = f(t1);
    } else {
      a = t1, t1 = t2, f1 = f2, t2 = b - golden * (b - a), f2 = f(t2);
    }
  }
  return f1 < f2 ? Turn{t1, f1} : Turn{t2, f2};
}

double zero_between(const Along& g, double a, double b) {
  const bool rises = g(b) > 0;
  for (int k = 0; k < 60; ++k) {
    const double middle = 0.5 * (a + b);
    (g(middle) > 0) == rises ? b = middle : a = middle;
  }
  return 0.5 * (a + b);
}

/// Signs and turns of a condition between two times of the leg.
Shape shape_of(const Along& g, double from, double to) {
  std::vector<double> times;
  for (const double t : g.times()) {
    if (t >= from && t <= to) times.push_back(t);
  }
  if (times.empty() || times.front() > from) times.insert(times.begin(), from);
  if (times.back() < to) times.push_back(to);
  std::vector<double> values;
  for (const double t : times) values.push_back(g(t));
  Shape out;
  const auto extend = [&](int sign, double t, double depth) {
    if (out.excursions.empty() || out.excursions.back().sign != sign)
      out.excursions.push_back({sign, t, t, depth});
    else
      out.excursions.back().end = t, out.excursions.back().depth = std::max(out.excursions.back().depth, depth);
  };
  for (size_t j = 0; j < times.size(); ++j) {
    const int sign = values[j] < 0 ? -1 : 1;
    if (j > 0 && (values[j - 1] < 0 ? -1 : 1) != sign) {
      const double zero = zero_between(g, times[j - 1], times[j]);
      extend(-sign, zero, 0);
      extend(sign, zero, 0);
    }
    extend(sign, times[j], std::abs(values[j]));
    if (j == 0 || j + 1 == times.size()) continue;
    const double here = sign * values[j], earlier = sign * values[j - 1], later = sign * values[j + 1];
    if (here <= earlier && here <= later) {  // it comes near zero about here
      const Turn turn = lowest_between([&](double t) { return sign * g(t); }, times[j - 1], times[j + 1]);
      if (turn.value >= 0) {
        out.turns.push_back(turn);
      } else {  // and passes it for a moment
        extend(sign, zero_between(g, std::min(times[j - 1], turn.time), turn.time), 0);
        extend(-sign, turn.time, -turn.value);
        extend(sign, zero_between(g, turn.time, times[j + 1]), 0);
      }
    } else if (here >= earlier && here >= later) {  // the top of what may be a short excursion
      const Turn top = lowest_between([&](double t) { return -sign * g(t); }, times[j - 1], times[j + 1]);
      extend(sign, times[j], -top.value);
    }
  }
  return out;
}

bool wanted(const LoweredJump& jump, int sign_after) {
  return jump.direction == Direction::any || (jump.direction == Direction::rising) == (sign_after > 0);
}

void take(Lowest& least, double value, double time, double total) {
  if (!(value < least.value)) return;
  least.value = value;
  least.time = time;
  const double edge = 1e-6 * total;
  least.where = time <= edge ? Where::start : time >= total - edge ? Where::end : Where::inside;
}

/// The state at the end of a leg after the first jumps that happen there.
std::vector<double> after_jumps(Variation& variation, const Leg& leg, size_t count, const Shot::End& end) {
  Transition first = leg.event;
  first.jumps.resize(count);
  first.hits.clear();
  std::vector<double> x = end.x_minus;
  Mat z = Mat::Zero(static_cast<Index>(x.size()), 1);
  const Mat dt = Mat::Zero(1, 1);
  variation.begin(z);
  variation.reset(first, leg.arc, x, end.t, z, dt);
  return x;
}

class Watcher {
 public:
  Watcher(const Program& program, Variation& variation, const FlownLeg& flown)
      : jumps_(program.model().form.jumps), states_(program.states()), variation_(variation), flown_(flown) {}

  std::vector<JumpWatch> all() {
    for (size_t k = 0; k < jumps_.size(); ++k) {
      if (jumps_[k].every)
        ticks(static_cast<int>(k));
      else
        crossings(static_cast<int>(k));
    }
    if (flown_.leg.happens) happened();
    return std::move(out_);
  }

 private:
  double total() const { return std::abs(flown_.leg.length); }
  bool happens(int k) const {
    const std::vector<JumpDone>& done = flown_.leg.event.jumps;
    return flown_.leg.happens && std::any_of(done.begin(), done.end(), [&](const JumpDone& j) { return j.jump == k; });
  }
  void add(int k, What what, const Lowest& least) {
    int number = 0;
    for (const JumpWatch& w : out_) number += w.jump == k && w.what == what;
    out_.push_back({k, what, number, least});
  }

  /// Ticks of a clock whose condition does not hold.
  void ticks(int k) {
    const LoweredJump& jump = jumps_[at(k)];
    if (!jump.when) return;
    const std::vector<double>& p = variation_.parameters();
    const double every = constant_value(*jump.every, p), phase = jump.phase ? constant_value(*jump.phase, p) : 0.0;
    const double close = same_time * (std::abs(flown_.t) + every);
    const Along along(flown_.trace, flown_.first_jump, states_);
    Lowest least{.value = HUGE_VAL};
    for (double n = std::ceil((flown_.t + close - phase) / every); phase + n * every < flown_.end.t + close; ++n) {
      const double since = phase + n * every - flown_.t;
      if (since < close) continue;
      const bool at_end = since > total() - close;
      if (at_end && (happens(k) || !flown_.leg.happens)) continue;  // the next leg begins with it
      const double holds =
          at_end ? variation_.condition(k, &flown_.leg.event, flown_.leg.arc, flown_.end.x_minus, flown_.end.t)
                 : variation_.condition(k, nullptr, flown_.leg.arc, along.state(since), flown_.t + since);
      take(least, -holds, since, total());
    }
    if (std::isfinite(least.value)) add(k, What::condition, least);
  }

  /// True if the leg ends where this `on` is zero.
  bool ends_leg(int k) const {
    if (!flown_.leg.happens) return false;
    const std::vector<Guard>& guards = flown_.leg.event.guards;
    return std::any_of(guards.begin(), guards.end(), [&](const Guard& g) {
      return g.kind == GuardKind::jump && (g.item == k || jumps_[at(g.item)].on == jumps_[at(k)].on);
    });
  }
  /// True if this `on` is zero where the leg begins, because the jump that happened there has left it so.
  bool begins_leg(int k) const {
    if (!flown_.before) return false;
    const bool was_zero = std::any_of(flown_.before->guards.begin(), flown_.before->guards.end(), [&](const Guard& g) {
      return g.kind == GuardKind::jump && (g.item == k || jumps_[at(g.item)].on == jumps_[at(k)].on);
    });
    return was_zero && jump_leaves_zero(jumps_, k, *flown_.before);
  }

  void crossings(int k) {
    const LoweredJump& jump = jumps_[at(k)];
    const Along g(flown_.trace, flown_.first_jump + at(k), states_);
    const bool begins = begins_leg(k), ends = ends_leg(k);
    const double margin = 1e-6 * total();
    const Shape shape = shape_of(g, begins ? margin : 0.0, ends ? total() - margin : total());
    Lowest touch{.value = HUGE_VAL}, condition{.value = HUGE_VAL};
    const auto holds = [&](double t) {
      return jump.when ? variation_.condition(k, nullptr, flown_.leg.arc, g.state(t), flown_.t + t) : HUGE_VAL;
    };
    for (const Turn& turn : shape.turns) {
      const double w = holds(turn.time);
      take(touch, w > 0 ? turn.value : std::max(turn.value, -w), turn.time, total());
    }
    for (size_t i = 0; i + 1 < shape.excursions.size(); ++i) {
      const Excursion &a = shape.excursions[i], &b = shape.excursions[i + 1];
      if (!wanted(jump, b.sign)) continue;
      const double w = holds(b.begin), depth = std::min(a.depth, b.depth);
      if (w > 0)
        take(w < depth ? condition : touch, -std::min(w, depth), b.begin, total());
      else
        take(condition, -w, b.begin, total());
    }
    if (ends) meet(k, g, touch, condition);
    // Another event: what it jumps over counts as crossed.
    if (!begins && !flown_.leg.starts.empty() && flown_.leg.starts[at(k)] != 0)
      take(condition, flown_.leg.starts[at(k)] * g(0), 0, total());
    if (!ends && flown_.leg.happens && resets(flown_.leg.event) && !shape.excursions.empty()) {
      const Excursion& last = shape.excursions.back();
      if (wanted(jump, -last.sign)) take(condition, std::abs(g(total())), total(), total());
    }
    if (std::isfinite(touch.value)) add(k, What::touch, touch);
    if (std::isfinite(condition.value)) add(k, What::condition, condition);
  }
  static bool resets(const Transition& event) { return !event.jumps.empty() || !event.hits.empty(); }

  /// Where the leg ends by this condition: it is met with some speed, and if nothing happens its `when` does not hold.
  void meet(int k, const Along& g, Lowest& touch, Lowest& condition) {
    const Leg& leg = flown_.leg;
    if (leg.guard.kind == GuardKind::jump && leg.guard.item == k && leg.guard.side != 0)
      take(touch, -leg.guard.side * g.last_rate() * total(), total(), total());
    if (!happens(k) && jumps_[at(k)].when && wanted(jumps_[at(k)], g.last_rate() > 0 ? 1 : -1))
      take(condition, -variation_.condition(k, &leg.event, leg.arc, flown_.end.x_minus, flown_.end.t), total(),
           total());
  }

  /// Jumps at the end of the leg have happened: their effects are recorded.
  void happened() {
    for (const Variation::JumpRoom& room :
         variation_.jump_room(flown_.leg.event, flown_.leg.arc, flown_.end.x_minus, flown_.end.t)) {
      const int k = flown_.leg.event.jumps[room.place].jump;
      add(k, room.condition ? What::condition : What::choice, {room.value, total(), Where::end});
    }
    for (size_t k = 1; k < flown_.leg.caused.size(); ++k) {
      if (flown_.leg.caused[k] == 0) continue;
      const int jump = flown_.leg.event.jumps[k].jump;
      const std::vector<double> x = after_jumps(variation_, flown_.leg, k, flown_.end);
      const double on = variation_.guard({GuardKind::jump, jump, 0}, flown_.leg.arc, x, flown_.end.t).value;
      add(jump, What::condition, {flown_.leg.caused[k] * on, total(), Where::end});
    }
  }

  const std::vector<LoweredJump>& jumps_;
  int states_;
  Variation& variation_;
  const FlownLeg& flown_;
  std::vector<JumpWatch> out_;
};

/// Which jumps of an event others have caused: they carried its `on` over zero.
void note_caused(const std::vector<LoweredJump>& jumps, Variation& variation, Leg& leg) {
  leg.caused.assign(leg.event.jumps.size(), 0);
  for (size_t k = 1; leg.happens && k < leg.event.jumps.size(); ++k) {
    const JumpDone& done = leg.event.jumps[k];
    if (jumps[at(done.jump)].every) continue;
    const Guard on{GuardKind::jump, done.jump, 0};
    const double before = variation.guard(on, leg.arc, leg.event.x_minus, leg.event.t).value;
    const double carried = variation.guard(on, leg.arc, done.before, leg.event.t).value;
    const bool over = before * carried < 0 && std::abs(carried) > 1e-9 * std::abs(before);
    if (over) leg.caused[k] = carried > 0 ? 1 : -1;
  }
}

}  // namespace

std::vector<JumpWatch> watch_jumps(const Program& program, Variation& variation, const FlownLeg& flown) {
  return Watcher(program, variation, flown).all();
}

bool jumps_alike(const Program& program, const std::vector<Leg>& one, const std::vector<Leg>& other) {
  const auto done = [](const std::vector<Leg>& legs) {
    std::vector<const JumpDone*> out;
    for (const Leg& leg : legs) {
      for (const JumpDone& jump : leg.event.jumps) out.push_back(&jump);
    }
    return out;
  };
  const std::vector<const JumpDone*> a = done(one), b = done(other);
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const JumpDone* p, const JumpDone* q) {
    if (p->jump != q->jump || p->sides.size() != q->sides.size()) return false;
    const std::vector<Assignment>& set = program.model().form.jumps[at(p->jump)].set;
    for (size_t k = 0; k < p->sides.size(); ++k) {
      if (!(on_sides(set[k].value, p->sides[k]).formula == on_sides(set[k].value, q->sides[k]).formula)) return false;
    }
    return true;
  });
}

void freeze_jumps(const Program& program, Variation& variation, std::vector<Leg>& legs, double t0) {
  const std::vector<LoweredJump>& jumps = program.model().form.jumps;
  if (jumps.empty()) return;
  double t = t0;
  for (size_t i = 0; i < legs.size(); ++i) {
    Leg& leg = legs[i];
    if (leg.happens) variation.freeze(leg.event, leg.arc);
    note_caused(jumps, variation, leg);
    leg.starts.assign(jumps.size(), 0);
    const bool after_reset =
        i > 0 && legs[i - 1].happens && (!legs[i - 1].event.jumps.empty() || !legs[i - 1].event.hits.empty());
    for (size_t k = 0; after_reset && k < jumps.size(); ++k) {
      if (jumps[k].every) continue;
      const std::vector<double> x(leg.x.begin(), leg.x.end());
      const double on = variation.guard({GuardKind::jump, static_cast<int>(k), 0}, leg.arc, x, t).value;
      leg.starts[k] = on > 0 ? 1 : on < 0 ? -1 : 0;
    }
    t += leg.length;
  }
}

}  // namespace saltus
