// Functions watched on a step, and the earliest of their zeros.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "flow/guard.hpp"
#include "flow/jumps.hpp"
#include "flow/smooth.hpp"

namespace saltus {

struct Watch {
  Guard guard;
  const double* c = nullptr;  // its series
  int output = 0;             // of the slope tape
  double offset = 0;          // subtracted from the series before looking for zeros
  int known = 0;              // leading zero coefficients
  int sign = 0;               // sign the function has before the event, 0: either
  double blur = 0;            // what of it is rounding, where that matters
  double root = 0;            // where it was found on this step
  bool found = false;
  bool touch = false;    // touched, not crossed
  bool late = false;     // the sign was wrong at the start of the step: it happened between two steps
  bool nowhere = false;  // zero at the start, and wrong from there on
};

/// True if the equations of the mode give its value: found on the wrong side at once, it need not be at its zero.
bool is_solved(const Guard& guard, const Program& program);

class Watches {
 public:
  Watches(const Program& program, double direction) : program_(program), direction_(direction) {}
  /// A further run, in this direction.
  void begin_run(double direction) { direction_ = direction; }

  /// Everything watched in the mode of `now`; the series of `smooth` are there.
  void list(const Moment& now, Smooth& smooth, const Jumps& jumps, bool expand_slopes);
  /// For the step control, with the functions of `on` sections.
  std::span<const WatchedSeries> series(const Smooth& smooth);
  /// For a stiff step; sections follow the watches.
  std::vector<SampledFunction> sampled() const;
  /// The zero of what was found on samples, by its true values.
  void polish(const Watch& found, const Moment& now, Smooth& smooth, std::span<const SampledFunction> functions);
  std::span<const Watch> all() const { return watches_; }
  int first_section_sample() const { return static_cast<int>(watches_.size()); }

  /// The earliest zero on (0, h]; nullptr if there is none. All that happen within `resolution` of it are marked.
  const Watch* find_first(Smooth& smooth, const Jumps& jumps, double h, double resolution, bool samples);
  /// The earliest touch of a surface or gap on (0, h] that is no crossing; 0 if there is none. It is marked.
  double find_touch(const Smooth& smooth, double h, double resolution);
  /// True if a surface that was found late is far from zero: its sign has changed through a pole or a cut.
  bool has_leapt(const Watch& w, Smooth& smooth) const;
  /// True if a surface that was found late has not been zero within the resolution of time, but has no digits here
  /// either: next to a pole inside a bounded function.
  bool is_at_pole(const Watch& w, Smooth& smooth, double resolution) const;
  const Watch* touched() const { return touched_; }
  /// Marks functions that reach zero within such a short time as zero; returns if there are any.
  bool arrive_within(double time);
  /// Marks gaps alone: a contact may close where the domain of a surface ends.
  bool closes_within(double time);
  /// The first surface that steps as short as `step` do not bring nearer, because it is within its last digit of zero;
  /// nullptr if there is none. It is marked, with the root of its tangent.
  const Watch* within_rounding(Smooth& smooth, double step);
  /// The guards found within `resolution` of tau.
  void found_at(double tau, double resolution, std::vector<Guard>& out) const;
  /// d/dt at tau of the series of a surface or gap that is zero there, not a number where terms that cancel leave few
  /// digits.
  double arrival(const Watch& w, const Smooth& smooth, double tau) const;

 private:
  int output(const Watch& w) const;
  void watch_vector(int lead, char letter, const Smooth& smooth);
  bool goes_over(const Watch& w, Smooth& smooth, double h) const;
  double blur(const Watch& w, Smooth& smooth) const;
  void locate(Watch& w, const double* c, size_t count, const Jumps& jumps, double h, double resolution);

  const Program& program_;
  double direction_;
  std::vector<Watch> watches_;
  std::vector<WatchedSeries> controlled_;
  std::vector<double> shifted_;
  std::map<int, std::vector<double>> rooms_;  // of vector switches at rest, by their first component
  const Watch* touched_ = nullptr;
};

}  // namespace saltus
