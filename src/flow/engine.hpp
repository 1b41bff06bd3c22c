// The state of an event-driven run and the parts of its step; internal to the engine.
//
//   event_driven.cpp     start, loop, end
//   engine_mode.cpp      arriving at a state: impacts, signs, the mode that follows
//   engine_step.cpp      one smooth step and its trust
//   engine_events.cpp    what is watched, the earliest of it, what happens then
//   engine_chatter.cpp   sequences of events that accumulate
//   engine_sections.cpp  points of Poincaré sections
#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "code/rounding.hpp"
#include "flow/chatter.hpp"
#include "flow/choose.hpp"
#include "flow/series.hpp"
#include "flow/simulate.hpp"
#include "flow/stiff.hpp"
#include "flow/taylor.hpp"

namespace saltus {

/// What a root on the step means.
enum class Watched { surface, sigma, gap, lambda, slope, jump, wrap };

struct Watch {
  Watched what = Watched::surface;
  int item = 0;       // switch, constraint, jump or counter
  int output = 0;     // of the slope tape
  int sample = 0;     // among the sampled functions of a stiff step
  double offset = 0;  // subtracted from the series before looking for zeros
  int known = 0;      // leading zero coefficients
  int sign = 0;       // sign the function has before the event, 0: either
  double root = 0;    // where it was found on this step
  bool found = false;
  bool late = false;  // the sign was wrong at the start of the step: it happened between two steps
};

/// Compensated sum: time does not lose the small steps.
class Clock {
 public:
  explicit Clock(double t) : high_(t) {}
  void advance(double step) {
    const double sum = high_ + step;
    const double part = sum - high_;
    low_ += (high_ - (sum - part)) + (step - part);
    high_ = sum;
  }
  void set(double t) {
    high_ = t;
    low_ = 0;
  }
  double now() const { return high_ + low_; }
  /// The step from now to a given time.
  double until(double t) const { return (t - high_) - low_; }

 private:
  double high_, low_ = 0;
};

/// What runs of one program share: tapes bound to parameters, series of modes met before, room for marks.
struct EngineMemory {
  explicit EngineMemory(const Program& shared) : program(shared) {}
  /// Makes it fit a run. Nothing a run computes depends on what was run before.
  void prepare(const RunOptions& options);

  const Program& program;
  double tolerance = 0;
  int order = 0;                   ///< highest order of the series
  std::vector<double> step_ratio;  ///< by order: a step of the usual order against one of this order
  std::vector<double> parameters;
  Series::Ties ties;
  std::optional<Series> series;
  std::optional<Rounding> point;  ///< signs at a point
  Chatter chatter;
};

class Engine {
 public:
  Engine(EngineMemory& memory, const RunOptions& options);
  Trajectory run();

 private:
  static constexpr double eps = std::numeric_limits<double>::epsilon();
  static size_t at(int i) { return static_cast<size_t>(i); }

  struct Every {
    int section = 0;
    double interval = 0;
    long next = 1;
  };

  struct Passage {
    int section = 0;
    double tau = 0;
    int sign = 0;
    int every = -1;  // which of every_, or -1
  };

  // ---- start and end -----------------------------------------------------------------------------------------------

  void start();
  bool finished() const { return direction_ * clock_.until(options_.until) <= 0; }
  void finish(Why why, std::string message);
  double time_scale() const { return scale_ > 0 ? scale_ : 1.0; }
  double resolution() const { return 8 * eps * std::max(std::abs(clock_.now()), time_scale() * 1e-3); }

  // ---- choosing modes ----------------------------------------------------------------------------------------------

  const ChoiceOptions& choice_options(bool at_start);
  /// At a state just reached: impacts, then the mode. `zeros` is what is known to vanish here; after a jump of the
  /// state (or at the start) every sign is evaluated anew. Returns false if the run has ended.
  bool arrive(std::vector<AtZero>& zeros, bool jumped, bool at_start);
  /// Signs of all surfaces and gaps that are not listed yet; those that vanish join the list.
  void look(std::vector<AtZero>& zeros);
  void evaluate_point() { point_.evaluate(x_, clock_.now(), sigma_, counters_); }
  void read_sigma();
  /// Whether a touching contact moves into its wall.
  bool approaching(const std::vector<AtZero>& zeros);
  /// Newton's law for all contacts that touch. What it stops is known to rest; the other contacts are looked at anew.
  bool rebound(std::vector<AtZero>& zeros);
  /// A first guess of the time in which the flow changes, needed before the first step.
  void estimate_scale();
  /// Chooses among the zeros and makes the mode current. Returns false if the run has ended.
  bool settle(std::vector<AtZero>& zeros, bool at_start);
  bool choose(std::vector<AtZero>& zeros, bool at_start);
  /// Closed contacts whose wall has changed its velocity with a switch: they open, or are hit.
  std::vector<AtZero> walls_that_moved();
  /// Whether a contact's gap moves no faster than rounding.
  bool unmoved(const AtZero& z);
  /// Moves the state onto what is zero: so many of h, h', ...
  void land_on(const std::vector<AtZero>& zeros, size_t depth);
  /// Surfaces that depend on switches may have changed sign with them.
  void refresh_nested();
  void project();
  void count_wraps();
  void say(const std::string& message);

  // ---- one step ----------------------------------------------------------------------------------------------------

  /// Returns false if the run has ended.
  bool step();
  /// As far as the end, and not over more points of a section than memory should hold.
  double longest_step() const;
  /// Lower orders where events cut steps short, higher ones where they do not.
  void adapt_order(double length, double natural);
  /// How many coefficients of the states are finite: at the edge of a root's domain only the first ones are.
  int analytic_order() const;
  /// Steps shrink towards a singularity that lies on a surface: what reaches zero within such a short time is there.
  bool arrives_within(double time);
  /// The time in which the tangent changes the states.
  double tangent_scale() const;
  /// A start where the field has no series (a square root at zero): one step too short to matter, by its tangent.
  bool step_rough(double tau);
  /// A step of the stiff flow: the piece comes from CVODE, what is watched is sampled along it.
  bool step_stiff();
  bool finish_stiff_step();
  std::vector<SampledFunction> sampled_functions();
  bool fail_undefined();
  /// The sliding equations have no solution: at a two-fold if their slope varies, where the solution branches.
  bool fail_unsolved();
  /// Signs of the determinants of the coupled sliding equations at the point of the last evaluation.
  void read_determinants(std::vector<int>& signs) const;
  /// Where on the piece one of them vanishes: sliding stops being attractive inside its range. Ends the run there.
  bool fail_at_determinant(double tau);
  bool fail_stalled(double length);
  void copy_piece(double tau);
  /// The defect at the end of the step (and inside it where the series may be blind).
  bool acceptable(double tau);
  bool defect_small(double tau);
  void advance(double tau, bool at_event, double length);
  void keep_piece();
  int mode_index();

  // ---- events ------------------------------------------------------------------------------------------------------

  void list_watches();
  /// Sliding may stop being attractive inside its range: watch the slope of single surfaces.
  void list_slopes();
  /// What is watched (and the sections) for the step control.
  std::span<const WatchedSeries> watched_series();
  const double* sample(int index) const { return &sampled_[at(index) * (at(order_) + 1)]; }
  const double* function(const Watch& w) const;
  /// The earliest event on the step, with all that happen at the same time marked as found.
  Watch* find_first(double h);
  void locate(Watch& w, double h);
  bool wanted(const Watch& w, int sign_after) const;
  /// Everything found within the resolution of time happens together at the end of the step just made.
  bool happen(double tau);
  /// Counts and records what has happened since `before_`.
  void conclude();
  /// Surfaces slid on and contacts closed take part in the choice even if they are not the event.
  void add_neighbours(std::vector<AtZero>& zeros) const;
  /// A multiple of a surface is zero with it, whatever rounding says.
  void add_ties(std::vector<AtZero>& zeros) const;
  /// How many of h, h', ... vanish for something that rests on its surface.
  int rest_of(int u) const;
  void apply_jumps(const std::vector<int>& jumps);
  /// Jumps whose function the last ones have carried over zero in their direction.
  std::vector<int> triggered(const std::vector<int>& last);
  /// Signs of jump conditions and sections at the current state, where the next step starts from.
  void note_signs();
  void count_slides(const Mode& before);
  /// What a user sees of an arrival: jumps, impacts, then the change of mode.
  void record(const Mode& before, const std::vector<double>& x_before, const std::vector<int>& jumps);
  void emit(Event event);
  void emit_as_is(Event event);

  // ---- chatter -----------------------------------------------------------------------------------------------------

  /// Recognises events that accumulate and goes to their limit. Returns false if the run has ended.
  bool finish_chatter();
  /// The limit: what chattered has come to rest; everything else went on as in the mode in which it rests.
  bool go_to_limit(const Accumulation& found);
  /// The states at the limit: each follows its own sequence, or its rate where that is not to be seen.
  std::vector<double> extrapolate(const Accumulation& found) const;

  // ---- sections ----------------------------------------------------------------------------------------------------

  double time_of(const Every& e, long k) const;
  /// Points where the piece just made passes through sections; the piece itself is not cut.
  void find_sections(double tau);
  void record_sections(double tau);
  /// Reports a point of a section. Returns whether the run ends here.
  bool pass(int s, double t, const std::vector<double>& x);
  /// Sections on a contact or a jump, at the event just recorded.
  void record_at_event(const std::vector<int>& jumps);

  const Program& program_;
  const Model& model_;
  const RunOptions& options_;
  int most_order_;
  int order_;  // of the current step
  const std::vector<double>& step_ratio_;
  Series& series_;
  StepControl control_;
  Clock clock_;
  double direction_;
  std::vector<double> x_, next_;
  std::vector<int> determinants_, determinants_at_end_;
  double next_tau_ = 0;  // where on the piece next_ is
  std::vector<double> counters_;
  std::vector<bool> wrapped_;
  Mode mode_;
  std::vector<int> known_;
  std::vector<int> jump_sign_, section_sign_;
  std::vector<double> section_seen_;
  std::vector<Every> every_;
  bool has_surface_section_ = false;
  std::vector<int> rebounded_;
  std::vector<Watch> watches_;
  std::vector<double> shifted_;
  std::vector<WatchedSeries> controlled_;
  Piece piece_;
  double scale_ = 0;
  bool started_ = false;
  bool ended_ = false;
  bool rough_ = false;  // the last step was made without a series
  bool events_full_ = false;
  bool tracking_error_ = false;
  std::optional<StiffFlow> stiff_;
  bool after_event_ = true;  // the step after an event is a Taylor step: it knows which coefficients vanish
  bool reading_samples_ = false;
  std::vector<double> sampled_;
  int first_section_sample_ = 0;
  Rounding& point_;
  std::vector<double> sigma_;
  Chatter& chatter_;
  ChoiceOptions choice_;
  // Of the event that happens.
  std::vector<AtZero> zeros_;
  std::vector<int> jumps_, touched_;
  Mode before_;
  std::vector<double> x_before_;
  std::vector<Passage> passages_;
  std::vector<int> next_sign_;
  long section_points_ = 0;
  long slides_ = 0;
  long idle_steps_ = 0;  // shorter than the states' curves need
  bool counted_out_ = false;
  Trajectory result_;
};

}  // namespace saltus
