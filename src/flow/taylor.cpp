#include "flow/taylor.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/index.hpp"
#include "flow/present_share.hpp"

namespace saltus {

int taylor_order(double tolerance) {
  return std::clamp(static_cast<int>(std::ceil(-std::log(tolerance) / 2 + 1)), 4, 24);
}

int cheapest_order(double tolerance, const Tape& tape) {
  // Instructions, roughly: what a step costs whatever its order; per operation and order; per product of series.
  constexpr double step = 3000, operation = 15, product = 2;
  double linear = 0, products = 2;  // the search for roots
  for (const auto* list : {&tape.timed, &tape.free, &tape.bound}) {
    for (const Operation& o : *list) {
      const bool simple = o.instr <= Instr::scale || o.instr == Instr::div_c || o.instr == Instr::sin_cos_t;
      linear += 1;
      products += simple ? 0 : slots_of(o.instr);
    }
  }
  // A linear flow has coefficients that fall like 1/n!: its steps grow with the order, until terms that cancel cost
  // more digits than the tolerance leaves.
  const bool entire = products == 2;
  const double most_growth = std::max(128.0, 0.045 * tolerance / 2.2e-16);
  double log_factorial = 0;  // not lgamma, which notes a sign where all threads write
  int best = taylor_order(tolerance);
  for (int k = 2; entire && k <= best; ++k) log_factorial += std::log(k);
  double least = HUGE_VAL;
  for (int n = best; n <= 36; ++n) {
    if (entire && n > best) log_factorial += std::log(n);
    const double reach = std::exp(log_factorial / n) * std::pow(tolerance, 1.0 / n);
    const double cost = (step + operation * linear * n + product * products * n * n) / reach;
    if (!(cost < least) || (n > 30 && std::exp(reach) > most_growth)) continue;
    least = cost;
    best = n;
  }
  return best;
}

double local_tolerance(double tolerance) {
  constexpr double enough_for_events = 1e-10;  // a touch must be told from a hit
  const double wanted = std::max(std::min(0.02 * tolerance, enough_for_events), 1e-4 * tolerance);
  return std::max(wanted, std::min(tolerance, 1e-12));
}

namespace {

double allowed_defect(double tolerance, int order) { return 8.0 * order * tolerance; }

}  // namespace

OrderTable order_table(double tolerance, int most) {
  OrderTable out{{1.0}, {0.0}};
  double log_factorial = 0;
  for (int n = 1; n <= most; ++n) {
    out.step_ratio.push_back(std::pow(tolerance, 1.0 / taylor_order(tolerance) - 1.0 / n));
    log_factorial += std::log(n + 1);  // |s|^(n+1)/(n+1)! is allowed, and the terms behind it fall
    const double allowed = std::exp((log_factorial + std::log(allowed_defect(tolerance, n))) / (n + 1));
    out.quiet_turns.push_back(std::min(n / 4.0, allowed));
  }
  return out;
}

StepControl::StepControl(const Program& program, double tolerance, double horizon) : states_(at(program.states())) {
  for (int i = 0; i < program.states(); ++i) alone_.push_back(program.vanishing(i).size() == 1);
  begin_run(tolerance, horizon);
}

void StepControl::begin_run(double tolerance, double horizon) {
  tolerance_ = tolerance;
  horizon_ = horizon;
  state_step_ = last_ = 0;
  scale_.assign(states_, 0.0);
  largest_.assign(states_, 0.0);
}

namespace {

/// log2 of a positive number, to a tenth.
double rough_log2(double v) { return static_cast<double>(std::bit_cast<int64_t>(v)) * 0x1p-52 - 1023; }

/// To a thousandth, and the same everywhere: roots of some order want no more of a logarithm that is right to a tenth.
double rough_exp2(double v) {
  const double whole = std::floor(std::clamp(v, -1022.0, 1023.0)), part = v - whole;
  const double power = std::bit_cast<double>(static_cast<int64_t>(whole + 1023) << 52);
  return power * (1 + part * (0.6951 + part * (0.2276 + part * 0.0773)));
}

/// Before there is a last step: the last coefficients against the first ones, whatever h turns out to be. Roughly:
/// scales are made of it.
double first_length(const double* c, int order, double tolerance) {
  double shortest = HUGE_VAL;  // logarithms
  for (const int k : {order - 1, order}) {
    if (c[k] == 0 || !std::isfinite(c[k])) continue;
    double longest = -HUGE_VAL;
    for (int j = 0; j < std::min(k, 3); ++j) {
      if (c[j] != 0) longest = std::max(longest, rough_log2(tolerance * std::abs(c[j] / c[k])) / (k - j));
    }
    if (std::isfinite(longest)) shortest = std::min(shortest, longest);
  }
  return std::exp2(shortest);
}

constexpr double far_reach = 1e-2;  // scales for a step say nothing of one that is this much shorter

double size_on_step(double start, const double* c, double length) {
  return std::max(std::max(std::abs(start), std::abs(c[1]) * length), std::abs(c[2]) * length * length);
}
double size_on_step(const double* c, double length) { return size_on_step(c[0], c, length); }

}  // namespace

double StepControl::step(const Series& series, int order, std::span<const WatchedSeries> watched) {
  double reach = last_;
  if (!(reach > 0)) {
    reach = HUGE_VAL;
    for (size_t i = 0; i < states_; ++i) {
      reach = std::min(reach, first_length(series.state(static_cast<int>(i)), order, tolerance_));
    }
    for (const WatchedSeries& w : watched) reach = std::min(reach, first_length(w.c, order, tolerance_));
    reach = std::isfinite(reach) ? std::min(reach, horizon_) : 0;
  }
  double length = try_reach(series, order, watched, reach);
  // A reach from before a singularity makes scales of derivatives that rule no step of this length.
  for (int round = 0; round < 8 && length > 0 && length < far_reach * reach; ++round) {
    reach = length;
    length = try_reach(series, order, watched, reach);
  }
  if (length > 0 && std::isfinite(length)) last_ = std::min(length, horizon_);
  return length;
}

namespace {

/// The largest of the last two coefficients in units of their scales.
struct LastTerms {
  double last = 0, previous = 0;
  double nothing = 0;  ///< unless one of them is not finite

  void compare(const double* c, int order, double scale) {
    nothing += 0 * c[order] + 0 * c[order - 1];
    if (!(scale > 0)) return;
    last = std::max(last, std::abs(c[order]) / scale);
    previous = std::max(previous, std::abs(c[order - 1]) / scale);
  }
  /// The step on which they have shrunk to the tolerance. What is left out is a fraction of the last term, not a
  /// multiple of it.
  double length(double tolerance, int order) const {
    // The smaller of two roots; rough logarithms tell which it is, unless they are near.
    const double by_last = last > 0 ? rough_log2(tolerance / last) / order : HUGE_VAL;
    const double by_previous = previous > 0 ? rough_log2(tolerance / previous) / (order - 1) : HUGE_VAL;
    const double least = std::min(by_last, by_previous);
    return least < HUGE_VAL ? 0.92 * rough_exp2(least) : HUGE_VAL;
  }
};

}  // namespace

double StepControl::try_reach(const Series& series, int order, std::span<const WatchedSeries> watched, double reach) {
  reach_ = reach;
  if (const size_t all = states_ + watched.size(); scale_.size() < all) scale_.resize(all);
  double* scale = scale_.data();
  LastTerms states;
  for (size_t i = 0; i < states_; ++i, ++scale) {
    const double* c = series.state(static_cast<int>(i));
    const double own = scale_of(series, i, size_on_step(c, reach));
    states.compare(c, order, own);
    *scale = own;
  }
  LastTerms all = states;
  for (const WatchedSeries& w : watched) {
    const double own = std::max(size_on_step(w.c, reach), w.scale);
    all.compare(w.c, order, own);
    *scale++ = own;
  }
  state_step_ = states.nothing == 0 ? states.length(tolerance_, order) : 0;
  if (all.nothing != 0) return 0;
  return all.last == states.last && all.previous == states.previous ? state_step_ : all.length(tolerance_, order);
}

/// A state that has become small by itself, or together with others.
double StepControl::scale_of_small(const Series& series, size_t i, double size) const {
  const double least = 1e-6 * largest_[i];
  const Program& program = series.program();
  const int state = static_cast<int>(i);
  const auto x = [&](int j) { return series.state(j)[0]; };
  return std::max(size, least * present_share(program, state, x, [&](int j) { return largest_[at(j)]; }));
}

double StepControl::scale_of_cut(const Series& series, size_t i, double start, const double* c, double length) const {
  if (!(length < far_reach * reach_)) return scale_[i];
  return std::min(scale_[i], scale_of(series, i, size_on_step(start, c, length)));
}

int StepControl::enough(const Series& series, int order, std::span<const WatchedSeries> watched, double length,
                        int least) const {
  double power = 1;
  for (auto [factor, left] = std::pair{length, order - 2}; left > 0; left >>= 1, factor *= factor) {
    if (left & 1) power *= factor;
  }
  double size = tolerance_ / power;
  const auto matters = [&](int k) {
    for (size_t i = 0; i < states_; ++i) {
      if (std::abs(series.state(static_cast<int>(i))[k]) > size * scale_[i]) return true;
    }
    for (size_t w = 0; w < watched.size(); ++w) {
      if (std::abs(watched[w].c[k]) > size * scale_[states_ + w]) return true;
    }
    return false;
  };
  for (; order > least && !matters(order - 2); --order) size *= length;
  return order;
}

bool StepControl::defect_small(std::span<const double> starts, std::span<const double> slopes, Series& series,
                               double tau, int order) const {
  const double allowed = allowed_defect(tolerance_, order);
  for (size_t i = 0; i < states_; ++i) {
    const double start = starts[i], slope = slopes[i];
    const double scale = scale_of_cut(series, i, start, series.state(static_cast<int>(i)), std::abs(tau));
    const double rate = series.rate(static_cast<int>(i))[0];
    const double rounding = 64 * 2.2e-16 * (std::abs(rate * tau) + std::abs(slope * tau) + std::abs(start));
    const double defect = std::abs(slope - rate);
    if (defect * std::abs(tau) <= allowed * scale + rounding) continue;
    // Large forces that cancel leave a rate that is rounding: no shorter step makes it better.
    if (!(defect <= 16 * series.noise(series.program().rate(static_cast<int>(i))))) return false;
  }
  return true;
}

bool StepControl::last_term_small(const Series& series, double tau, int order) const {
  double power = 1;  // |tau|^(order + 1)
  for (auto [factor, left] = std::pair{std::abs(tau), order + 1}; left > 0; left >>= 1, factor *= factor) {
    if (left & 1) power *= factor;
  }
  const double allowed = allowed_defect(tolerance_, order);
  for (size_t i = 0; i < states_; ++i) {
    const double rounding = 64 * 2.2e-16 * std::abs(series.state(static_cast<int>(i))[0]);
    const double defect = std::abs(series.rate(static_cast<int>(i))[order]);
    if (!(defect * power <= allowed * scale_[i] + rounding)) return false;
  }
  return true;
}

void StepControl::see(std::span<const double> x) {
  for (size_t i = 0; i < x.size(); ++i) largest_[i] = std::max(largest_[i], std::abs(x[i]));
}

}  // namespace saltus
