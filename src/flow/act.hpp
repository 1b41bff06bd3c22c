// The map of an event: x-, the guards that are zero there -> jumps, impacts, the mode that follows, x+. Both engines.
//
//   jumps     the set that is due is fixed; each happens in the order of the file, with the values just before it;
//             those they cause form the next set
//   contacts  Newton's and Coulomb's laws for all that touch, until none approaches
//   mode      chosen among the surfaces and gaps at zero (choose.hpp); walls that a switch moves hit or open
//   steps     of floor and mod that were crossed are counted
//
// Where forces are redundant and one of them reaches its bound, nothing happens as long as another distribution holds.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "code/rounding.hpp"
#include "flow/change.hpp"
#include "flow/choose.hpp"
#include "flow/jumps.hpp"
#include "flow/moment.hpp"
#include "flow/series.hpp"
#include "flow/simulate.hpp"

namespace saltus {

/// How a run ends, and why.
struct Fate {
  Why why = Why::time;
  std::string message;
};

struct Special;  // of an impact

class Act {
 public:
  Act(Series& series, Rounding& point, const RunOptions& options);
  /// A further run; `options` must outlive it.
  void begin_run(const RunOptions& options);

  /// The mode at the start of a run; contacts that approach are hit at once.
  std::optional<Fate> start(Moment& now, Transition& first);
  /// Applies the event where the guards of `event` are zero; fills the rest of `event` and moves `now`.
  std::optional<Fate> happen(Moment& now, Transition& event);
  /// True if the event of a guard can be decided by rates alone in the mode of `now`, where nothing else is known to be
  /// zero; `lone` is filled with what decides. `line`: its function is constant + constant*t.
  bool decides_alone(const Moment& now, const Guard& guard, bool line, LoneGuard& lone);
  /// The sides on which the dependents of a step in time are just behind it, a bit each, 1 for +. Nothing where one of
  /// them is near zero.
  std::optional<size_t> sides_behind(const Moment& now, LoneGuard& lone);
  /// True if a surface is zero but for what many steps leave, at x and t in the mode of `now`.
  bool is_near(const Moment& now, std::span<const double> x, double t, int surface);
  /// True if a contact has been hit so lately that it may rest when something else happens.
  bool may_fly_low(double t) const;
  bool has_jumps() const { return jumps_.size() > 0; }
  /// The time scale of the flow, estimated where no step has told it.
  double scale_here() { return scale(); }
  /// The event has been decided without `happen`: it has caused nothing.
  void note_nothing_caused() { caused_.clear(); }
  /// Notes the time at which a contact was hit.
  void note_hit(int contact, double t) {
    last_hit_[static_cast<size_t>(contact)] = t;
    caused_.clear();
  }
  /// Jumps that the last event has carried over their conditions: they happen next, at the same time.
  const std::vector<int>& caused() const { return caused_; }
  /// Jumps with `level` that are found beyond their levels: at the start (no event), after another jump, or as their
  /// condition holds now. They happen next, at the same time; of others a message says that they wait.
  std::vector<int> found_beyond(const Moment& now, const Transition* event);
  /// At the limit of accumulating events: `resting` (unknowns) are at rest, or are jumps whose number is beyond the
  /// unknowns. Nothing if no mode of the model rests there; `now` is then unspecified.
  std::optional<Fate> rest_at(Moment& now, const std::vector<int>& resting, Transition& event, bool& rests);

  /// The moment that follows where the surfaces of these guards are zero, without the jumps and impacts of this
  /// instant. Nothing where no surface but `except` is, or no mode is chosen.
  std::optional<Moment> follow_surfaces(const Moment& now, std::span<const Guard> guards, int except);

  /// Puts the state on the surfaces of these guards, which it has reached but for their last digits.
  void land(Moment& now, std::span<const Guard> guards);

  /// After a step without event: the signs of what jumps watch, where the next step starts from. Says which have been
  /// crossed after all.
  std::vector<int> note_signs(const Moment& now);

  /// True if the conditions of all jumps are functions of states and time, and of no surface or gap.
  bool jumps_are_plain() const { return plain_jumps_; }
  /// Does the work of `note_signs` where all those conditions are clearly on their last side: false, with
  /// nothing changed, elsewhere.
  bool note_clear_signs(const Moment& now);
  /// True if nothing in the mode of `now` rests, so that a jump need not change it.
  bool is_free(const Moment& now);
  /// The jump of a guard that nobody shares the instant with, in a mode that is free: where its condition holds and it
  /// carries nothing over a zero, nor near one. Fills `event`; false, with nothing changed, elsewhere.
  bool jump_alone(Moment& now, const Guard& guard, Transition& event);

  Jumps& jumps() { return jumps_; }
  const Jumps& jumps() const { return jumps_; }
  bool has_messages() const { return !messages_.empty(); }
  /// Messages since the last call.
  std::vector<std::string> take_messages() { return std::exchange(messages_, {}); }
  /// Messages that were taken, and count after all.
  void say_again(const std::vector<std::string>& messages) {
    messages_.insert(messages_.end(), messages.begin(), messages.end());
  }

  double time_scale = 1;  ///< in which the flow changes: set by the engine
  std::function<double()>
      first_scale;  ///< asked where that is 0, as before the first step, and something depends on it
  /// The surfaces of the next event have changed their signs without being zero (a pole, a cut): all are looked at
  /// anew.
  bool leapt = false;
  bool simply = false;  ///< decide only what rates tell; anything else ends as `inconsistent`

  /// The time scale; the series may be those of another point after it.
  double scale() { return time_scale > 0 ? time_scale : time_scale = first_scale(); }
  /// How many of h, h', ... vanish for something that rests on its surface.
  int rest_of(int u) const;

 private:
  bool latches(size_t k, const Moment& now);
  void tell_beyond(size_t k, const Moment& now, std::string_view since);
  /// The decisions made at the start of a run.
  struct Start {
    double t = 0, direction = 1;
    Mode mode;
    std::vector<double> counters, sigma;  ///< the latter of the letters
    std::vector<int> known{};
    std::vector<double> bounds{};  ///< per switch: how clearly it is on its side
    int zero = -1;                 ///< a surface of time alone that begins there
  };
  bool fits(const Start& start, const Moment& now);
  bool on_their_sides(const Mode& mode, int except, std::span<const double> bounds) const;
  bool are_armed(const Moment& now, size_t except);
  bool start_as_before(Moment& now);
  void keep_start(const Moment& now, const Transition& first);
  std::optional<Fate> happen_here(Moment& now, Transition& event);
  bool is_alone(const Moment& now, const Guard& guard);
  bool steps_in_time(const Guard& guard, bool line) const;
  bool leaves_as_wished(Moment& now, int u);
  std::optional<Fate> arrive(Moment& now, Transition& event, std::vector<AtZero>& zeros, bool anew, bool at_start);
  std::optional<Fate> do_jumps(Moment& now, Transition& event, std::vector<int> due);
  /// Signs of all surfaces and gaps that are not listed yet; those that vanish join the list. Counters are set.
  void look(Moment& now, std::vector<AtZero>& zeros, bool at_start);
  void count(Moment& now, const Counter& counter, bool stays);
  void evaluate_point(const Moment& now) { point_.evaluate(now.x, now.t(), sigma_, now.counters, lambda_); }
  void read_sigma(const Moment& now);
  bool is_contact(int u) const;
  void add_touching(const Moment& now, std::vector<AtZero>& zeros);
  bool approaching(const Moment& now, const std::vector<AtZero>& zeros);
  std::optional<Fate> hit_in_turn(Moment& now, Transition& event, std::vector<AtZero>& zeros, bool& ends);
  std::optional<Fate> rebound(Moment& now, Transition& event, std::vector<AtZero>& zeros, int round);
  void stop_in_corner(Moment& now, std::span<const double> before);
  std::optional<Fate> hit_together(Moment& now, Transition& event, std::vector<AtZero>& zeros,
                                   std::span<const AtZero> touching, bool plastic);
  std::optional<Fate> settle(Moment& now, Transition& event, std::vector<AtZero>& zeros, bool at_start, int depth = 0);
  void follow(Moment& now);
  const AtZero* alone_at_zero(const Moment& now, const std::vector<AtZero>& zeros) const;
  std::optional<Fate> choose(Moment& now, const Transition& event, std::vector<AtZero>& zeros, bool at_start);
  void look_later(Moment& now, std::vector<AtZero> zeros, Choice& choice);
  void leave_out_nonzero(Moment& now, std::vector<AtZero>& zeros);
  /// Closed contacts whose wall has changed its velocity with a switch: they open, or are hit.
  std::vector<AtZero> walls_that_moved(Moment& now);
  bool unmoved(const Moment& now, const Transition& event, const AtZero& z, double bounds);
  bool parts_too_slowly(const Moment& now, int contact);
  void land_on(Moment& now, const std::vector<AtZero>& zeros, size_t depth);
  bool land_where_it_rests(Moment& now, const std::vector<AtZero>& zeros);
  void land_where_fields_end(Moment& now, const std::vector<AtZero>& zeros);
  void land_on_kinks(Moment& now, const std::vector<AtZero>& zeros);
  void add_neighbours(const Moment& now, std::vector<AtZero>& zeros) const;
  void add_ties(std::vector<AtZero>& zeros) const;
  void rest_by_others(Moment& now);
  void add_low_flights(const Moment& now, std::vector<AtZero>& zeros);
  /// Another distribution of redundant forces keeps the mode.
  bool redistributes(Moment& now);
  bool count_steps(Moment& now);
  void look_at_nested(Moment& now, std::vector<AtZero>& zeros);
  bool switch_in_time(Moment& now, const AtZero& z);
  void arrive_for_good(Moment& now, std::vector<AtZero>& zeros);
  /// Conditions that are crossed or zero here.
  void note_jumps(const Moment& now);
  bool look_solved(const Moment& now);
  int sign_of_jump(size_t k) const;
  void note_sections(JumpDone& done) const;
  bool shares_zero(size_t k, const Moment& now) const;
  void note_before(const Moment& now, const Transition& event);
  // ---- forces of joints inside abs (act_vectors.cpp)
  int misfit_force(Moment& now, int decided);
  bool shakes_friction(const Moment& now, const Special& special);
  std::optional<Fate> settle_forces(Moment& now);
  /// The joint whose multiplier is the surface of switch i, or -1.
  int force_of(int i) const {
    const Expr& surface = model_.form.switches[static_cast<size_t>(i)].surface;
    return surface.is_symbol(SymbolKind::lambda) ? surface.symbol().index : -1;
  }
  // ---- vector switches (act_vectors.cpp)
  struct VectorRates;
  void set_vector(Moment& now, int v, char letter) const;
  void look_at_vector(Moment& now, int v, bool at_start);
  bool meets_vector(Moment& now, const Guard& guard);
  bool vector_rates(const Moment& now, std::span<const int> resting, const std::vector<double>& unknowns,
                    VectorRates& out);
  bool solve_vectors(const Moment& now, std::span<const int> resting, const std::vector<double>& bound,
                     std::vector<double>& unknowns, VectorRates& rates, Vec& y);
  void spread_in_discs(VectorRates& rates, std::vector<double>& unknowns);
  bool outgrows(const Moment& now, int v, double bound);
  /// Which of the vector switches at zero rest, and where to the others leave.
  std::optional<Fate> settle_vectors(Moment& now);

  std::optional<Fate> check_joints(const Moment& now, const char* what);
  std::optional<Fate> project_start(Moment& now);
  std::optional<Fate> check_gaps(const Moment& now, const Transition& event, std::vector<AtZero>& zeros);
  bool turns_with(int jump, const std::vector<Guard>& guards) const;
  void leave_out_touches(const Moment& now, const std::vector<Guard>& guards, std::vector<int>& due);
  AtZero at_zero(const Guard& guard) const;
  std::optional<Moment> settle_surfaces(const Moment& now, std::vector<AtZero> zeros);
  std::optional<Fate> check_state(const Moment& now) const;
  void say(std::string message) { messages_.push_back(std::move(message)); }
  PlainInputs inputs(const Moment& now) const;

  Series& series_;
  Rounding& point_;
  const Program& program_;
  const Model& model_;
  const RunOptions* options_ = nullptr;
  double direction_ = 1;
  Jumps jumps_;
  bool plain_jumps_ = true;
  std::optional<Rounding> conditions_;  // of jumps, where those are plain, under one binding of the series
  long conditions_for_ = -1;            // which
  ChoiceOptions choice_;
  std::vector<int> counter_of_;  // per switch: the counter whose lower step it is, or -1
  std::vector<double> sigma_, lambda_;
  std::vector<char> keeps_;  // per unknown: whether its sigma keeps something
  std::vector<int> caused_;
  std::vector<char> held_, told_beyond_;  // per jump: its condition held when last looked at; a message was given
  bool any_level_ = false;
  std::vector<double> root_error_;  // per jump that has happened at this instant: |on| at its root, what counts as zero
  double root_time_ = 0;            // that instant
  bool unclear_ = false;            // rates do not tell where a condition at zero goes
  std::vector<double> last_hit_;    // per constraint: when it was hit last, or not a number
  std::vector<char> is_step_;       // per switch: of floor or a table
  std::vector<Start> starts_;       // under one binding of the series
  long starts_for_ = -1;            // which
  double last_start_ = std::numeric_limits<double>::quiet_NaN();  // time of the last one that was decided anew
  double settled_ = std::numeric_limits<double>::quiet_NaN();     // time of the last mode that was settled
  std::vector<AtZero> zeros_;
  std::vector<int> contacts_;      // of one impact
  std::vector<int> joint_forces_;  // switches whose surface is the multiplier of a joint
  std::vector<int> released_;      // vector switches whose |s| has reached its bound
  std::vector<std::string> messages_;
  double last_distribution_ = 0;
  int redistributed_ = 0;  // at that time
};

}  // namespace saltus
