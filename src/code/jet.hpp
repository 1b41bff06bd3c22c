// Taylor series over a tape: the k-th coefficient of every slot from the coefficients 0..k of its arguments.
//
// A Jet holds the coefficients of one trajectory. The order of work in a step is
//
//   bind      once per set of parameters
//   set_time  series of everything that depends on time only, all orders at once
//   free(k)   then bound(k), then coefficient k+1 of the states (integrate), for k = 0, 1, ...
//
// The recurrences are in code/jet_rules.hpp and docs/method/jets.md.
#pragma once

#include <array>
#include <concepts>
#include <span>
#include <utility>
#include <vector>

#include "code/native_code.hpp"
#include "code/schedule.hpp"
#include "code/tape.hpp"

namespace saltus {

constexpr int largest_order = 40;

/// Values of everything a tape takes in, at one point.
struct TapeValues {
  std::span<const double> states{}, sigmas{}, lambdas{}, counters{};
  double t = 0;
};

/// V is double; the rules are written for whatever adds and multiplies.
template <class V>
class Jet {
 public:
  /// Room for coefficients 0..order of every slot. The tape must outlive the jet.
  Jet(const Tape& tape, int order);

  const Tape& tape() const { return *tape_; }
  int order() const { return order_; }

  /// Coefficients of one slot.
  V* operator[](int slot) { return series() + static_cast<size_t>(slot) * stride_; }
  const V* operator[](int slot) const { return series() + static_cast<size_t>(slot) * stride_; }
  const V* output(size_t i) const { return (*this)[tape_->outputs[i]]; }

  void bind(std::span<const double> parameters);
  /// Time t + tau with tau the variable of the series, and everything that depends on time only.
  void set_time(const V& t, int order);
  /// True if the series of one trajectory at time t are complete to this order.
  bool stands_at_time(double t, int order) {
    if (time_[0] == t && time_order_ >= order) return true;
    if (timed_anything_) return false;
    time_[0] = t;
    time_order_ = order;
    return true;
  }
  double time() const { return time_[0]; }
  /// A counter is part of what depends on time only: set before set_time.
  void set_counter(size_t c, const V& value);
  /// Coefficient 0 of all inputs that are given, and `set_time`.
  void load(const TapeValues& values, int order);
  void free(int k);
  void bound(int k);

  /// The schedule (make_schedule) of this jet's tape.
  Schedule schedule(std::span<const size_t> outputs, std::span<const int> varying) const;
  /// Before a schedule is used and another one has been: clears what it takes for zero.
  void enter(const Schedule& schedule);
  void free(const Schedule& schedule, int k);
  void bound(const Schedule& schedule, int k);
  /// True if states, counters and time are these.
  bool stands_at(const TapeValues& values) const;
  /// free and integrate for k = first..order; needs no bound. `first` > 0 goes on from the coefficients below.
  void expand(const Schedule& schedule, int order, int first = 0);
  /// Coefficients 0..order of the operations where the series of all inputs are there.
  void fill(const Schedule& schedule, int order);
  /// Makes machine code for a schedule of this jet, up to an order; above it the schedule is interpreted as before. The
  /// bits of all results stay the same. False where there is none (no compiler, too long). `known`: takes code
  /// that was made before, and makes none.
  bool compile(Schedule& schedule, int order, bool known = false);
  /// Compiles the schedule for `fill`.
  bool compile_filling(Schedule& schedule, int order, bool known = false);
  /// Leaves out what a schedule that has no bound need not do above order 0, and arranges the rest for `expand`.
  /// `null`: slots that stay zero, besides numbers.
  void arrange(Schedule& schedule, std::span<const int> null) const;
  /// Makes rows of weights from a schedule of sums and multiples that has no bound, with the constants that are bound
  /// now: from then on `expand` uses them. Leaves others as they are.
  void fold(Schedule& schedule) const;
  /// Makes weights from a schedule that is linear and has no bound, with the constants and the series of time that are
  /// there now, if that pays.
  void find_flow(Schedule& schedule);
  /// `expand` with them: it needs the series of time up to order 1 only.
  void expand_by_weights(const Schedule& schedule, int order, int first = 0);
  /// Coefficient k+1 of every state from its rate, if output i is the rate of state i.
  void integrate(int k);

 private:
  /// Registers want their alignment, which the type of lanes has only in files compiled for them.
  struct alignas(64) Line {
    double numbers[8];
  };

  V* series() { return reinterpret_cast<V*>(c_.data()); }
  const V* series() const { return reinterpret_cast<const V*>(c_.data()); }
  void bind_lane(size_t lane, std::span<const double> parameters);
  /// Slots with coefficients above 0 that no operation on states makes.
  std::vector<char> varying_inputs() const;
  /// Code for operations of this jet and its numbers.
  NativeCode native_for(NativeSource source, int order, bool known) const;
  void compile_time(int order, bool known);
  /// Coefficients first..last as far as there is code for them; the last one done.
  int run_native(const NativeCode& code, int first, int last);

  const Tape* tape_;
  int order_;
  size_t stride_;
  std::vector<Operation> linear_, timed_, free_, bound_;  // of the tape, with places in c_ instead of slots
  std::vector<std::pair<int, int>> rates_;                // (state, rate), places in c_
  NativeCode time_code_;                                  // of linear_ and timed_
  std::vector<Line> c_;
  std::vector<double> constants_;  // scratch of bind
  std::array<double, sizeof(V) / sizeof(double)> time_{};
  int time_order_ = -1;  // how far the series of time are known at time_
  bool timed_anything_;  // something depends on time
};

/// Coefficient k of the results of operations, in order, which hold the places in `series` where those begin.
void extend(std::span<const Operation> operations, double* series, size_t stride, int k);

extern template class Jet<double>;

}  // namespace saltus
