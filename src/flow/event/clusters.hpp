// Clusters with their own clock: what moves falls apart where states rest, and each part goes on by itself.
//
//   partition   which states rest; which of the others, with what they read, belong together
//   until the end:
//     c     = the cluster whose series end first
//     end of its series: it goes on from there
//     event: x+, mode = act(event, x-) in the cluster alone; then partition anew, near it: what it woke, what came to
//            rest, what reads either
//            a jump: the same with what it reads and sets, and those it causes
//            hits of one contact that accumulate go to their limit there
//     two clusters at once, anything out of the ordinary: the whole takes over, for that event or some steps
//
// docs/method/clusters.md
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "code/affine.hpp"
#include "flow/event/blocks.hpp"
#include "flow/event/cluster.hpp"
#include "flow/event/dependence.hpp"
#include "flow/event/due_queue.hpp"
#include "flow/event/event_driven.hpp"
#include "flow/event/row_steps.hpp"
#include "flow/recorder.hpp"

namespace saltus {

class Clusters {
 public:
  /// `jumps`: those of the whole, which the whole and its parts keep together.
  Clusters(EngineMemory& memory, const RunOptions& options, Recorder& recorder, Jumps& jumps);
  /// True if a model is large enough for its parts to be faster than the whole.
  static bool may_serve(const Program& program);

  using Outcome = ClusterOutcome;
  /// Moves `now` on by clusters, as far as they go.
  Outcome run(Moment& now, std::vector<Guard>& guards, double time_scale);

 private:
  /// The changes that an event makes.
  struct Change {
    std::vector<int> states;    ///< that it may have set in motion or brought to rest
    std::vector<double> rates;  ///< theirs
    std::vector<char> moved;    ///< whether they rested and stand elsewhere now
    std::vector<int> unknowns;  ///< of the clusters it happened in
    std::vector<int> jumps;     ///< likewise
    std::vector<int> letters;   ///< unknowns with new letters
  };
  /// A cluster before it is made.
  struct Draft {
    std::vector<int> moving;
    Subsystem part{};
    ClusterRoom* room = nullptr;
  };
  /// A function watched in a cluster of rows.
  struct AffineWatch {
    Guard guard;
    const double* c = nullptr;
    double offset = 0;
    int known = 0, sign = 0;
    bool is_state = false;  ///< its series are those of a state
    int jump = -1;          ///< of the whole, whose condition it is
    bool crossed = false;   ///< it has passed zero between two steps
    bool found = false, late = false;
    double root = 0;
  };
  /// Rates, what is watched and the equations of unknowns as rows; and what steps of such clusters need.
  struct AffineFlow {
    struct LocalTerm {
      const double* from = nullptr;  ///< in the first row; none: behind the last term of a sum
      double weight = 0;
    };
    AffineRows rows;
    RowSteps steps;
    std::vector<double> slope{}, hold{};  ///< per unknown
    std::vector<double> largest{};        ///< per state: |x| seen so far
    // Fields of the present step:
    std::vector<LocalTerm> terms{};  ///< where rates are no band
    std::vector<AffineWatch> watches{};
    std::vector<double> series{}, sum{}, shifted{};  ///< memory beyond what is used is kept
  };
  // ---- the run ------------------------------------------------------------------------------------------------------

  enum class Acted { done, not_alone, too_large, accumulates };

  bool possible() const;
  bool find_blocks();
  bool may_be_here(const std::string& letters, std::span<const int> switches = {}) const;
  Cluster* next() const;
  void find_due_with(const Cluster& first);
  void go_on(Cluster& c);
  void start(Cluster& c);
  void expand_in_room(Cluster& c);
  void drive(Cluster& c);
  bool accumulates(const Cluster& c, bool& shrinking);
  bool may_follow(const Cluster& c) const;
  bool go_to_limit(const Cluster& c, Moment& now);
  bool limits(Moment& now);
  void find_acting(const Cluster& first);
  void add_acting(int place);
  Cluster& merge_acting(const Cluster& first);
  bool acts_on(int i) const;
  Acted act(const Cluster& first, Moment& now);
  Acted act_on_jumps(const Cluster& first, Moment& now);
  bool prepare_jumps(const Cluster& first);
  bool has_all_jumps(const Cluster& c);
  bool act_in(const Cluster& c, bool simply, Moment& now);
  Acted finish_event(const Cluster& c);
  bool apply(const Change& change);
  void tell(const Cluster& c, Moment& now);
  void tell_piece(const Clock& end, bool ticks, Moment& now);
  Clock end_of(const Cluster* c) const;
  void remember(const Cluster& c);
  void recall(const Moment& now);
  std::vector<int> states_with(const Cluster& c) const;
  std::vector<Guard> whole_guards(const Cluster& c) const;
  std::vector<Guard> guards_in(const Cluster& c, std::vector<Guard> guards) const;
  int whole_item(const Cluster& c, const Guard& g) const;

  // ---- jumps --------------------------------------------------------------------------------------------------------

  void load_jumps(const Cluster& c);
  void store_jumps(const Cluster& c);
  bool note_in_room(Cluster& c);
  void happen_at_once(Cluster& c);
  void note_row(AffineWatch& w, const AffineRows::Row& row, double t, double scale);
  double next_tick() const { return clocked_ ? jumps_.next_tick() : direction_ * HUGE_VAL; }
  Outcome tick(const Clock& at_tick, Moment& now, std::vector<Guard>& guards);

  // ---- clusters of rows ---------------------------------------------------------------------------------------------

  AffineRows::Row rate_row(int i) const { return affine_->rows[static_cast<size_t>(i)]; }
  AffineRows::Row watch_row(int u) const { return affine_->rows[static_cast<size_t>(n_ + 2 * u)]; }
  AffineRows::Row choice_row(int u) const { return affine_->rows[static_cast<size_t>(n_ + 2 * u + 1)]; }
  AffineRows::Row jump_row(int k) const { return affine_->rows[static_cast<size_t>(n_ + 2 * unknowns_ + k)]; }
  void find_rows();
  bool is_sum(int u) const;
  bool is_affine(const Draft& draft) const;
  void expand_affine(Cluster& c);
  bool step_affine(Cluster& c);
  bool expand_states(Cluster& c);
  void expand_row(const Cluster& c, const AffineRows::Row& row, int without, double* out);
  bool stays_inside(const Cluster& c, int u, double h) const;
  void list_watches(const Cluster& c, double reach);
  double natural_step_of_watches(double reach) const;
  const AffineWatch* find_first(double h, double resolution);
  void locate(AffineWatch& w, double h, double resolution);
  bool act_alone(const Cluster& first, Moment& now);
  void drive_alone();
  double state_at(int i) const;
  void expand_terms(const Cluster& c);

  // ---- the whole ----------------------------------------------------------------------------------------------------

  void assemble(const Clock& clock, Moment& now);
  void read_states(const Cluster& c, double tau, std::vector<double>& x);
  void read_series(int i, double tau);
  ColumnSeries column(int i) const {
    return clusters_[static_cast<size_t>(cluster_of_state_[static_cast<size_t>(i)])]
        ->series[static_cast<size_t>(column_[static_cast<size_t>(i)])];
  }
  void move_to(Cluster& c, double tau);
  Outcome hand_over(Moment& now, std::vector<Guard>& guards);
  Outcome give_up(const Clock& clock, Moment& now, long steps);
  Outcome leave_to_whole(const Clock& clock, Moment& now);
  void forget(const Clock& clock);
  void end_all(Moment& now);
  bool build(const Moment& now);
  bool resume(const Moment& now);

  // ---- partition ----------------------------------------------------------------------------------------------------

  char letter(int u) const {
    const auto k = static_cast<size_t>(u), m = static_cast<size_t>(m_);
    return k < m ? mode_.switches[k] : mode_.constraints[k - m];
  }
  void set_letter(int u, char c) {
    const auto k = static_cast<size_t>(u), m = static_cast<size_t>(m_);
    (k < m ? mode_.switches[k] : mode_.constraints[k - m]) = c;
  }
  double value_of(int u) const { return letter(u) == '+' ? 1 : letter(u) == '-' ? -1 : 0; }
  /// True if an unknown is solved for.
  bool active(int u) const {
    const char c = letter(u);
    return (c == '0' || c == 'c') && mode_tape_->degree[static_cast<size_t>(u)] >= 0;
  }
  /// Which of the candidates rest, now that their rates are these: kept by one of the unknowns, or moved by nothing.
  void settle(std::span<const int> candidates, std::span<const double> rates, std::span<const int> unknowns);
  /// Readers of a state that has begun to move or has jumped, or of a switch that has changed, join the pool.
  void wake_readers_of_state(int j);
  void wake_readers_of_unknown(int u);
  void wake(int reader);
  void set_moving(int i);
  void absorb(int cluster);
  void absorb_driven(const Cluster& c);
  void dissolve(std::span<const int> places);
  void remove(Cluster& c);
  // Elements are numbered like readers: states, then unknowns, then jumps.
  template <class Visit>
  void bonds_of_unknown(int u, const Visit& visit) const;
  template <class Visit>
  void bonds_of_state(int i, const Visit& visit) const;
  bool moves_something(int u) const;
  void find_drifting();
  template <class Visit>
  void watched_by(int element, const Visit& visit) const;
  int cluster_of(int element) const {
    return element < n_               ? cluster_of_state_[static_cast<size_t>(element)]
           : element < n_ + unknowns_ ? cluster_of_unknown_[static_cast<size_t>(element - n_)]
                                      : cluster_of_jump_[static_cast<size_t>(element - n_ - unknowns_)];
  }
  void add_to_pool(int element);
  void clear_pool();
  void tie_pool();
  void add_watchers();
  bool draft_clusters();
  /// The place that represents the group of the item at a place in the pool.
  int group_of(int place) {
    const auto up = [this](int k) -> int& { return groups_[static_cast<size_t>(k)]; };
    while (up(place) != place) place = up(place) = up(up(place));
    return place;
  }
  /// The clusters of the pool begin. False where one of them is so large that they are not worth while.
  bool regroup();
  bool complete(Draft& draft);
  void add_followers(Subsystem& part);
  std::vector<int> states_of(const Cluster& c);
  void make_cluster(Draft& draft);
  void add_drive(Cluster& c, int i);
  /// The rest of a part of which states and unknowns are given, and the room for it.
  ClusterRoom* find_room(Subsystem& part);
  void close_rooms();

  EngineMemory& memory_;
  const Program& program_;
  const RunOptions& options_;
  Recorder& recorder_;
  Jumps& jumps_;
  double direction_;
  int n_, m_, unknowns_;
  bool clocked_ = false;  // some jumps have clocks
  bool observed_;         // somebody wants pieces of the whole
  const ModeTape* mode_tape_ = nullptr;
  std::unique_ptr<Subsystems> parts_;
  std::optional<Dependence> reads_;
  std::optional<AffineFlow> affine_;
  std::optional<Blocks> blocks_;  // in place of all that follows

  bool built_ = false;
  long holiday_ = 0, penalty_ = 8, events_ = 0;  // steps left to the whole; how many next time; events since then
  double first_scale_ = 1;
  Clock told_{0};  // where the next piece of the whole begins
  Piece observed_piece_;
  std::vector<int> due_;              // clusters whose events are at the same time
  std::vector<double> state_before_;  // of the whole, at that event
  Clock clock_{0};                    // of the event being worked on
  std::vector<double> x_;             // of states that rest; of the others where their clusters begin
  Mode mode_;
  std::vector<int> known_;
  std::vector<char> moving_;    // per state
  std::vector<char> drifting_;  // per state: it moves, evenly and by itself
  std::vector<int> pin_;        // per state that rests: the unknown that keeps it, or -1
  std::vector<int> cluster_of_state_, cluster_of_unknown_, cluster_of_jump_;
  std::vector<double> noted_;                       // per jump: when its condition was last looked at
  std::vector<int> core_;                           // jumps that take part in the event
  std::vector<Guard> crossed_;                      // that a cluster begins with
  std::vector<double> jump_x_;                      // what their formulas see: of the whole, as far as they read it
  ColumnStore store_;                               // of the series of all clusters
  std::vector<int> column_;                         // per state that moves: in its cluster
  std::vector<std::array<double, 3>> last_events_;  // per unknown and jump
  /// Hits of a contact that come ever faster, in its cluster alone.
  struct Sequence {
    Chatter chatter;
    std::vector<int> states;  ///< of the cluster
  };
  std::unordered_map<int, Sequence> sequences_;  // by unknown
  /// An event as the whole would have seen it, as far as its clusters go.
  struct Past {
    double t = 0;
    std::vector<Guard> guards;
    std::vector<int> unknowns;  ///< of its part
    std::string letters;        ///< theirs before it
    std::vector<int> hit;       ///< constraints
    std::vector<int> states;
    std::vector<double> x;  ///< theirs after it
  };
  std::vector<Past> past_;  // in a ring
  size_t next_past_ = 0;
  bool follows_ = false;  // the event being worked on is part of one
  bool close_ = false;    // it is so close to those before that they may accumulate

  std::vector<std::unique_ptr<Cluster>> clusters_;
  std::vector<int> free_;
  unsigned births_ = 0;
  DueQueue queue_;
  std::unordered_map<uint64_t, std::vector<std::unique_ptr<ClusterRoom>>> rooms_;  // by the hash of their shape
  size_t room_slots_ = 0;                                                          // of the tapes of all rooms

  // The pool: what belongs to no cluster while the partition is made anew. States in it that rest count for nothing.
  std::vector<int> pool_;
  std::vector<int> place_;   // per element: in the pool, or -1
  std::vector<int> groups_;  // per place: the one that stands for its group; while they are tied, one on the way to it
  std::vector<unsigned> judged_;  // per state: when its rest was last judged
  unsigned judging_ = 0;
  std::vector<int> reads_group_, draft_of_;  // per group
  std::vector<std::pair<int, int>> bonds_;   // elements that must be together besides
  std::vector<Draft> drafts_;
  size_t draft_count_ = 0;
  std::vector<unsigned> listed_;
  unsigned listing_ = 0;
  std::vector<int> woken_;
  std::vector<char> before_;
  std::vector<int> acting_;  // clusters at whose event we are
  Cluster merged_;           // those as one
  Cluster alone_;            // what the event of one switch is about
  std::vector<double> values_;
  Transition event_;
  Change change_;
};

}  // namespace saltus
