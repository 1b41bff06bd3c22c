#include "flow/smooth.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/index.hpp"
#include "flow/first_sizes.hpp"
#include "flow/thresholds.hpp"
#include "solve/polynomial.hpp"

namespace saltus {

Smooth::Smooth(Series& series, int most_order, const OrderTable& orders, const RunOptions& options)
    : series_(series), control_(series.program(), 0, 0) {
  begin_run(most_order, orders, options);
}

void Smooth::begin_run(int most_order, const OrderTable& orders, const RunOptions& options) {
  most_order_ = order_ = most_order;
  orders_ = &orders;
  horizon_ = std::abs(options.until - options.from);
  tolerance_ = local_tolerance(options.tolerance);
  control_.begin_run(tolerance_, horizon_);
  run_tolerance_ = options.tolerance;
  direction_ = options.until < options.from ? -1.0 : 1.0;
  stiff_.reset();
  turning_.begin_run(options.stiff, options.turns_stiff && series_.program().vectors() == 0 &&
                                        series_.program().states() <= most_implicit_states);
  if (turning_.always()) stiff_.emplace(series_.program(), run_tolerance_, direction_, most_order_);
  end_.tau = scale_ = 0;
  idle_steps_ = full_steps_ = 0;
}

SeriesStatus Smooth::begin(const Moment& now) {
  control_.see(now.x);
  series_.set_mode(now.mode);
  order_ = turning_.always() ? most_order_ : series_.usual_order();
  return series_.expand(now.x, now.t(), now.counters, order_);
}

double Smooth::natural(std::span<const WatchedSeries> watched) {
  double length = control_.step(series_, order_, watched);
  if (length == 0) {  // a time scale so short that the last coefficients overflow?
    for (int lower = analytic_order() - 1; length == 0 && lower > 5; --lower) {
      order_ = series_.usual_order() = lower;
      length = control_.step(series_, order_, watched);
    }
  }
  note_scale(length);
  natural_ = length;
  return length;
}

/// Notes the length of a step of the usual order: time scales must not depend on how short events cut the steps. States
/// that are polynomials (a ball in flight) have no scale of their own; the surfaces they meet have.
void Smooth::note_scale(double length) {
  const double own = std::isfinite(control_.state_step()) ? control_.state_step() : length;
  if (std::isfinite(own) && own > 0) scale_ = std::min(own * orders_->step_ratio[at(order_)], horizon_);
}

double Smooth::begin_leg(const Moment& now, std::span<const WatchedSeries> watched) {
  given_up_ = {control_.last(), scale_};
  control_.see(now.x);
  order_ = series_.usual_order();
  if (series_.expand(now.x, now.t(), now.counters, order_) != SeriesStatus::ok || !series_.expanded_plainly(order_))
    return 0;
  const double length = control_.step(series_, order_, watched);
  note_scale(length);
  return length;
}

void Smooth::give_up() {
  control_.set_last(given_up_.last);
  scale_ = given_up_.scale;
}

double Smooth::estimate_scale(const Moment& now, std::optional<double> of_polynomials) {
  double shortest = horizon_;
  series_.set_mode(now.mode);
  if (series_.expand(now.x, now.t(), now.counters, most_order_) == SeriesStatus::ok) {
    const double step = StepControl(series_.program(), tolerance_, horizon_).step(series_, most_order_, {});
    shortest = std::min(shortest, std::isfinite(step) ? step : of_polynomials ? *of_polynomials : polynomial_scale());
  }
  return shortest > 0 && std::isfinite(shortest) ? shortest : 1.0;
}

std::vector<double> Smooth::estimate_sizes(const Moment& now) {
  std::vector<double> sizes(now.x.size(), 0.0);
  series_.set_mode(now.mode);
  if (series_.expand(now.x, now.t(), now.counters, most_order_) == SeriesStatus::ok)
    take_first_sizes(series_, horizon_, sizes);
  return sizes;
}

/// States that are polynomials (a ball in flight) have no step that ends them: the time in which the last term of one
/// has outgrown the others, of the slowest; infinite if none moves.
double Smooth::polynomial_scale() const {
  double slowest = 0;
  for (int i = 0; i < series_.program().states(); ++i) {
    const double* c = series_.state(i);
    int degree = most_order_;
    while (degree > 0 && c[degree] == 0) --degree;
    for (int k = 0; k < degree; ++k)
      slowest = std::max(slowest, std::pow(std::abs(c[k] / c[degree]), 1.0 / (degree - k)));
  }
  return slowest > 0 ? slowest : HUGE_VAL;
}

int Smooth::analytic_order() const {
  int k = 0;
  const auto finite = [&](int order) {
    for (int i = 0; i < series_.program().states(); ++i) {
      if (!std::isfinite(series_.state(i)[order])) return false;
    }
    return true;
  };
  while (k < order_ && finite(k + 1)) ++k;
  return k;
}

/// True if steps along the series that are there move surfaces that were near by more than rounding: those near a root
/// are as long as a share of the way from it.
bool Smooth::surfaces_are_clear(const Moment& now) {
  for (size_t i = 0; i < now.mode.switches.size(); ++i) {
    const char letter = now.mode.switches[i];
    const int number = static_cast<int>(i);
    if ((letter != '+' && letter != '-') || !series_.program().moves(number)) continue;
    const double* h = series_.surface(number);
    if (h[1] != 0 && std::abs(h[0]) <= clear_bounds * series_.noise(series_.program().surface(number))) return false;
  }
  return true;
}

double Smooth::least_step(double t) const {
  return tangent_bits * eps * std::max(std::abs(t), 1e-3 * horizon_ * tolerance_);
}

double Smooth::tangent_length(const Moment& now, double longest, double direction) {
  const size_t n = now.x.size();
  for (int k = 0; k < most_halvings; ++k, longest /= 2) {
    find_peaks(direction * longest);
    if (find_high_powers(direction * longest)) break;
  }
  // Not over a pulse that is zero to all digits here, and whose flanks overflow.
  for (const double peak : peaks_) longest = std::min(longest, short_of_peak * std::abs(peak));
  std::vector<double> rate(n), x(n), size(n);
  double scale = 0;
  for (size_t i = 0; i < n; ++i) {
    rate[i] = series_.rate(static_cast<int>(i))[0];
    size[i] = std::max(std::abs(now.x[i]), control_.largest(i));
    scale = std::max(scale, size[i]);
  }
  // How much faster each state is at the end of the tangent, if the field has a value there.
  const auto changes = [&](double length, const auto& allowed) {
    const double tau = direction * length;
    for (size_t i = 0; i < n; ++i) x[i] = now.x[i] + tau * rate[i];
    if (series_.evaluate(x, now.t() + tau, now.counters) != SeriesStatus::ok) return false;
    for (size_t i = 0; i < n; ++i) {
      if (!allowed(i, std::abs(series_.rate(static_cast<int>(i))[0] - rate[i]))) return false;
    }
    return true;
  };
  const auto negligible = [&](size_t i, double change, double length) {
    const double whole = size[i] > 0 ? size[i] : scale;
    const double unseen = eps * std::abs(now.t() * rate[i]);  // what the last digit of time makes of it
    return change * length <= tolerance_ * (whole > 0 ? whole : 1) + unseen;
  };
  const double shortest = std::min(longest, least_step(now.t()));
  double length = std::min(longest, horizon_);
  while (length > shortest && !changes(length, [&](size_t i, double change) {
           return change <= tangent_share * std::abs(rate[i]) || (rate[i] == 0 && negligible(i, change, length));
         }))
    length *= 0.25;
  if (length <= shortest) {  // what time can see at least, if no state sees it that has been more than nothing
    const double least = shortest * shortest_step_bits / tangent_bits;
    const auto unseen = [&](size_t i, double change) {
      const double fastest = std::max(std::abs(rate[i]), std::abs(series_.rate(static_cast<int>(i))[0]));
      const double made = shortest * fastest;
      const bool begins = size[i] <= made && made <= begun_share * (scale > made ? scale : 1.0);
      return change <= tangent_share * std::abs(rate[i]) || begins || negligible(i, change, length);
    };
    length = shortest;
    while (length > 0 && !changes(length, unseen)) length = length > least ? std::max(0.25 * length, least) : 0.0;
  }
  bool moves = false, seen = false;  // levels that pass each other: their difference is lost in their last digits
  for (size_t i = 0; i < n; ++i) {
    moves = moves || rate[i] != 0;
    seen = seen || now.x[i] + length * rate[i] != now.x[i];
  }
  if (length > 0 && moves && !seen) {
    const double least = length;
    length = std::min(longest, horizon_);
    while (length > least && !changes(length, [&](size_t i, double change) { return negligible(i, change, length); }))
      length = std::max(0.25 * length, least);
  }
  // Away from zero a tangent may be too short for the last digit of what a root is taken of: as long as it needs to be.
  const auto has_series = [&](double after) {
    const double tau = direction * after;
    for (size_t i = 0; i < n; ++i) x[i] = now.x[i] + tau * rate[i];
    const bool defined = series_.expand(x, now.t() + tau, now.counters, order_) == SeriesStatus::ok;
    return defined && analytic_order() == order_;
  };
  bool analytic = false;
  for (double longer = length; longer > 0 && longer <= longest; longer *= 4) {
    if (!changes(longer, [&](size_t i, double change) { return negligible(i, change, longer); })) break;
    if (!has_series(longer)) continue;
    if (!analytic) length = longer;
    analytic = true;
    if (!surfaces_are_clear(now)) continue;
    length = longer;
    break;
  }
  series_.expand(now.x, now.t(), now.counters, order_);
  return length;
}

void Smooth::cut(const Moment& now, double tau) {
  mark(now, tau);
  copy_piece();
}

void Smooth::mark(const Moment& now, double tau) {
  piece_.start = now.t();
  piece_.length = tau;
  end_.tau = 0;
  copied_ = false;
}

void Smooth::copy_piece() {
  copied_ = true;
  const size_t n = at(series_.program().states()), stride = at(order_) + 1;
  if (piece_.coefficients.size() != n * stride) piece_.coefficients.resize(n * stride);
  double* to = piece_.coefficients.data();
  for (size_t i = 0; i < n; ++i) to = std::copy_n(series_.state(static_cast<int>(i)), stride, to);
}

void Smooth::cut_rough(const Moment& now, double tau) {
  cut(now, tau);
  const size_t stride = at(order_) + 1;
  for (size_t i = 0; i < now.x.size(); ++i) std::fill_n(&piece_.coefficients[i * stride + 2], stride - 2, 0.0);
}

bool Smooth::trusts(const Moment& now, double tau, std::span<const WatchedSeries> watched) {
  broken_promise_ = false;
  // The series of a departure diverges: no sum of last terms tells where it is good.
  if (!series_.departs() && is_quiet(tau)) return control_.last_term_small(series_, tau, order_);
  const Tape& tape = series_.tape().flow;
  const bool polynomial = !tape.may_hide && tape.timed.empty() && tape.powers.empty();
  const bool may_be_flat = !tape.powers.empty() || !tape.peaks.empty();
  promises_.clear();
  for (const WatchedSeries& w : watched) {
    const bool sigma = may_be_flat && w.output < 0 && w.scale > 0;  // solved for at each point
    if (polynomial || (w.output < 0 && !sigma) || (!sigma && tape.straight[at(w.output)])) continue;
    double size = 0, middle = 0, end = 0;
    for (int k = order_; k >= 0; --k) {
      size = size * std::abs(tau) + std::abs(w.c[k]);
      middle = middle * (0.5 * tau) + w.c[k];
      end = end * tau + w.c[k];
    }
    promises_.push_back({w.c, w.output, middle, end, std::max(size, w.scale)});
  }
  const bool near = find_peaks(tau);
  if (!find_high_powers(tau)) {
    broken_promise_ = true;
    return false;
  }
  if (!peaks_.empty()) {
    if (!copied_) copy_piece();  // what is evaluated there begins anew
    if (!solves_at_peaks(now)) return false;
  }
  if (tape.may_hide && !(near && tape.hides_by_reach)) {
    look_at(0.5 * tau, tau);
    if (!solves(now, middle_) || !kept(&Promise::middle)) return false;
  } else {
    look_at(tau, end_);
  }
  return solves(now, end_) && kept(&Promise::end);
}

/// Where on the step the arguments of exp have their tops, and those of tanh, cosh and logistic functions are nearest
/// to zero: at it, or turning before it. Whether all arguments stay so near to where they start that these functions
/// hide nothing.
bool Smooth::find_peaks(double tau) {
  peaks_.clear();
  bool near = true;
  for (const Operation& o : series_.peaks()) {
    const std::span<const double> a(series_.argument(o), at(order_) + 1);
    const bool top = peaks_at_top(o.instr);
    const double reach = std::abs(tau) * magnitude(a.subspan(1), std::abs(tau));
    const double limit = top ? blind_rise : blind_distance;
    near = near && reach <= near_reach;
    if (!(reach > limit) || !std::isfinite(reach)) continue;
    double lowest = a[0], highest = a[0];  // terms that cancel reach less far
    for (int k = 1; k <= range_looks; ++k) {
      const double value = evaluate_plainly(a, tau * k / range_looks);
      lowest = std::min(lowest, value);
      highest = std::max(highest, value);
    }
    if (highest - lowest < 0.5 * limit) continue;
    std::array<double, largest_order + 1> slopes;
    for (size_t k = 0; k <= at(order_); ++k) slopes[k] = k < at(order_) ? static_cast<double>(k + 1) * a[k + 1] : 0;
    const std::span<const double> slope(slopes.data(), at(order_) + 1);
    const auto argument = [a](double at_tau) { return evaluate_plainly(a, at_tau); };
    const auto look_for = [&](std::span<const double> c, const auto& is_peak) {
      double from = 0;
      for (size_t found = 0; found < most_peaks; ++found) {
        const Root root = leftmost_root(c, {.h = tau, .from = from});
        if (root.kind == RootKind::none) break;
        from = root.at;
        if (root.kind == RootKind::crossing && is_peak(root)) add_peak(argument, root.at, tau);
      }
    };
    look_for(slope, [&](const Root& root) {
      const double side = top ? -1 : evaluate_plainly(a, root.at);
      return root.sign_after * tau * side > 0 || std::abs(side) < 1e-6;  // it may just touch zero
    });
    if (!top) look_for(a, [](const Root&) { return true; });
    const double last = evaluate_plainly(top ? slope : a, tau);
    if (top ? last * tau > 0 : std::abs(last) < 1) add_peak(argument, tau, tau);
  }
  return near;
}

/// Where on the step high powers a^n may have grown from nothing: where |a| is largest, smallest (in a divisor) or one.
/// False where the series of a base does not carry the step: what its power is there is not to be told.
bool Smooth::find_high_powers(double tau) {
  const size_t count = at(order_) + 1;
  for (const HighPower& p : series_.powers()) {
    const std::span<const double> a(series_.base(p), count);
    const double n = series_.exponent(p);
    const double reach = std::abs(tau) * magnitude(a.subspan(1), std::abs(tau));
    if (!(std::abs(n) > least_high_power) || !(std::abs(n) * std::log1p(reach / std::abs(a[0])) > near_reach)) continue;
    double largest = std::abs(a[0]), smallest = largest;
    for (int k = 1; k <= range_looks; ++k) {
      const double value = std::abs(evaluate_plainly(a, tau * k / range_looks));
      largest = std::max(largest, value);
      smallest = std::min(smallest, value);
    }
    if (!(std::abs(n) * std::log(largest / smallest) > near_reach)) continue;
    const double power = std::pow(std::abs(tau), order_ - 1);
    const double last = (std::abs(a[count - 1] * tau) + std::abs(a[count - 2])) * power;
    if (!(last <= broken_promise * largest)) return false;
    const auto exponent = [a, n](double at_tau) { return n * std::log(std::abs(evaluate_plainly(a, at_tau))); };
    std::array<double, largest_order + 1> other{};
    const auto look_for = [&](std::span<const double> c) {
      double from = 0;
      for (size_t found = 0; found < most_peaks; ++found) {
        const Root root = leftmost_root(c, {.h = tau, .from = from});
        if (root.kind == RootKind::none) break;
        from = root.at;
        add_peak(exponent, root.at, tau);
      }
    };
    look_for(a);
    for (size_t k = 0; k + 1 < count; ++k) other[k] = static_cast<double>(k + 1) * a[k + 1];
    look_for({other.data(), count});
    for (const double level : {-1.0, 1.0}) {
      std::copy(a.begin(), a.end(), other.begin());
      other[0] -= level;
      look_for({other.data(), count});
    }
    add_peak(exponent, tau, tau);
  }
  return true;
}

/// A peak, and the points beside it where the function has changed by a fair share: on a peak itself what multiplies it
/// may vanish (friction that falls with abs(v)).
template <class Measure>
void Smooth::add_peak(const Measure& argument, double where, double tau) {
  if (peaks_.size() >= 3 * most_peaks) return;
  const double there = argument(where);
  if (where != tau) peaks_.push_back(where);
  for (const double side : {-1.0, 1.0}) {
    double d = side * tau * beside_peak;
    for (int halving = 0; halving < 60 && !(std::abs(argument(where + d) - there) <= 2); ++halving) d /= 2;
    if ((where + d) / tau > 0 && (where + d) / tau < 1) peaks_.push_back(where + d);
  }
}

bool Smooth::solves_at_peaks(const Moment& now) {
  const std::vector<Promise> all = promises_;
  std::vector<double> promised;
  for (const double peak : peaks_) {
    for (const Promise& p : all) promised.push_back(evaluate_plainly({p.value, at(order_) + 1}, peak));
  }
  for (size_t k = 0; k < peaks_.size(); ++k) {
    for (size_t i = 0; i < all.size(); ++i) promises_[i].middle = promised[k * all.size() + i];
    look_at(peaks_[k], middle_);
    if (!solves(now, middle_) || !kept(&Promise::middle)) return false;
    promises_ = all;
  }
  return true;
}

/// True if what is watched is what its series have promised. A series does not see where a root inside it turns
/// (hypot(x, y) on the way through the origin); what lies behind would be missed.
bool Smooth::kept(double Promise::*point) {
  broken_promise_ = std::any_of(promises_.begin(), promises_.end(), [&](const Promise& p) {
    const double off = std::abs(*p.value - p.*point);
    return !(off <= broken_promise * p.size) && (p.output < 0 || !(off <= 16 * series_.noise(at(p.output))));
  });
  return !broken_promise_;
}

void Smooth::Point::move(double to, size_t states) {
  tau = to;
  if (x.size() == states) return;
  x.resize(states);
  slopes.resize(states);
}

/// The series of state i on the piece.
std::span<const double> Smooth::along(size_t i) const {
  const size_t stride = at(order_) + 1;
  return {copied_ ? &piece_.coefficients[i * stride] : series_.state(static_cast<int>(i)), stride};
}

void Smooth::look_at(double tau, Point& point) {
  const size_t n = at(series_.program().states());
  point.move(tau, n);
  for (size_t i = 0; i < n; ++i) {
    const auto [x, slope] = evaluate_with_slope(along(i), tau);
    point.x[i] = x;
    point.slopes[i] = slope;
  }
}

void Smooth::look_at(double middle, double end) {
  const size_t n = at(series_.program().states());
  middle_.move(middle, n);
  end_.move(end, n);
  for (size_t i = 0; i < n; ++i) {
    const auto [there, last] = evaluate_with_slope(along(i), middle, end);
    middle_.x[i] = there.value;
    middle_.slopes[i] = there.slope;
    end_.x[i] = last.value;
    end_.slopes[i] = last.slope;
  }
}

bool Smooth::solves(const Moment& now, const Point& point) {
  Clock clock = now.clock;
  clock.advance(point.tau);
  const SeriesStatus status = series_.evaluate(point.x, clock.now(), now.counters);
  if (status == SeriesStatus::unsolved) {  // sliding ends here; the events say how
    promises_.clear();
    return true;
  }
  if (status == SeriesStatus::undefined) return false;
  return control_.defect_small(now.x, point.slopes, series_, point.tau, order_);
}

const std::vector<double>& Smooth::end() {
  if (end_.tau != piece_.length || piece_.length == 0) {
    const size_t n = at(series_.program().states()), stride = copied_ ? piece_.coefficients.size() / n : at(order_) + 1;
    end_.move(0, n);
    for (size_t i = 0; i < n; ++i) {
      const double* c = copied_ ? &piece_.coefficients[i * stride] : series_.state(static_cast<int>(i));
      end_.x[i] = evaluate_plainly({c, stride}, piece_.length);
    }
  }
  end_.tau = 0;
  return end_.x;
}

void Smooth::accept(double length, double natural, std::span<const WatchedSeries> watched) {
  series_.note_step();
  if (turning_.always() || !(natural > 0)) return;
  int& usual = series_.usual_order();
  if (length >= 0.99 * natural) {
    note_length(length);
    usual = std::min(usual + 4, most_order_);
    ++full_steps_;
  } else if (length < 0.8 * natural && full_steps_ == 0) {
    const int least = std::max(7, usual - 4);
    usual = std::min(most_order_, std::max(least, control_.enough(series_, order_, watched, length, least)) + 1);
  }
}

/// Notes the length of a step that only its series, or its defect, has ended.
void Smooth::note_length(double length) {
  const bool idle = control_.idle(
      series_, [this](size_t i) { return along(i).data(); }, length);
  idle_steps_ += idle;
  if (turning_.note_taylor(idle, length)) turn_stiff();
}

void Smooth::note_cut(double length) {
  if (!turning_.always()) note_length(length);
}

void Smooth::turn_stiff() {
  if (!stiff_) stiff_.emplace(series_.program(), run_tolerance_, direction_, most_order_);
  stiff_->restart();
}

bool Smooth::turn_now() {
  if (turning_.always()) return true;
  if (!turning_.turn()) return false;
  turn_stiff();
  return true;
}

void Smooth::restart() {
  full_steps_ = 0;
  turning_.note_event();
  if (stiff_) stiff_->restart();
}

void Smooth::leave_stiff() {
  turning_.note_failure();
  if (stiff_) stiff_->restart();
}

StiffStatus Smooth::stiff_step(const Moment& now, double longest) {
  turning_.note_implicit();
  control_.see(now.x);
  series_.set_mode(now.mode);
  order_ = most_order_;
  end_.tau = 0;
  copied_ = true;
  return stiff_->step(series_, now.x, now.t(), now.counters, longest, piece_);
}

StiffStatus Smooth::sample(const Moment& now, std::span<const SampledFunction> functions) {
  const StiffStatus status = stiff_->sample(series_, now.counters, functions, piece_, sampled_);
  // Long steps over what has settled are not the time in which the flow changes, which the step after an event has
  // seen.
  if (const double length = std::abs(piece_.length); length > 0)
    scale_ = scale_ > 0 ? std::min(scale_, length) : length;
  return status;
}

}  // namespace saltus
