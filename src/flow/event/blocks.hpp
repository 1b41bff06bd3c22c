// Blocks on a rough floor, joined by springs in a chain, a lattice or a net: clusters of rows of the plainest kind,
// with nothing kept of them but what an event reads.
//
//   block    a switch u and its states: x_p, whose zero is its surface and whose rate alone feels it, and states with
//            x_q' = w x_p. It sticks, and all of it rests; or it moves
//   run      blocks that move and are joined, with their series and their clock
//   sigma    of a block that sticks: a sum of series of the runs beside it
//
//   until the end:
//     the run that ends or the block that is let go first
//     no event:    the run goes on
//     it stops:    by the rates on both sides; its run falls apart, or goes on with the other sign
//     it is let go: the runs beside it are one with it
//     new runs begin; sigma of all blocks that stick beside them are looked at anew, by a bound first
//     all that are due at once are one event; where rates do not tell, the whole takes over for that event
//
// docs/method/clusters.md
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "code/affine.hpp"
#include "flow/choose.hpp"
#include "flow/event/cluster.hpp"
#include "flow/event/dependence.hpp"
#include "flow/event/due_queue.hpp"
#include "flow/event/event_driven.hpp"
#include "flow/event/row_steps.hpp"
#include "flow/recorder.hpp"

namespace saltus {

/// A model as blocks.
struct BlockPlan {
  struct Term {
    int state = 0;
    double weight = 0;
  };
  /// The rate of a state: terms + constant + time*t + sigma of its block.
  struct Row {
    double constant = 0, time = 0, sigma = 0;
    uint32_t first = 0, count = 0;  ///< of its terms
  };
  std::vector<Row> rows;  ///< per state
  std::vector<Term> terms;
  std::vector<int> kept;     ///< per block: the state whose zero is its surface
  std::vector<double> hold;  ///< per block
  Lists own, joined;         ///< per block: its states; the blocks that read it or are read
  std::vector<int> block;    ///< per state
};

/// `rows`: of the rates of all states, then of the surface and the equation of each switch. Nothing where the model is
/// something else.
std::optional<BlockPlan> find_blocks(const Program& program, const ModeTape& tape, const Dependence& reads,
                                     const AffineRows& rows, std::span<const double> hold);

class Blocks {
 public:
  Blocks(BlockPlan plan, EngineMemory& memory, const RunOptions& options, Recorder& recorder);
  /// Runs all blocks up to the next event that needs the full system (Clusters::run).
  ClusterOutcome run(Moment& now, std::vector<Guard>& guards, double time_scale);

 private:
  struct State {
    double x = 0;        ///< where it rests; of one that moves, where it was last needed
    double largest = 0;  ///< |x| seen so far
    double speed = 0;    ///< of one that moves: no more than that in its run; negative: not known yet
    int column = -1;     ///< in its run; none: it rests
    int run = -1;
  };
  struct Block {
    Clock clock{0};     ///< it sticks: when its sigma was last looked at
    double length = 0;  ///< and how long after that it is let go
    double since = 0;   ///< since when it sticks
    unsigned mark = 0;
    int run = -1;  ///< in which it moves
    char letter = '0';
    signed char side = 0;  ///< the bound that its sigma reaches
    short known = 0;
  };
  struct Run {
    Clock clock{0};
    double length = 0, due = 0, scale = 0;
    Columns series{};
    unsigned pulled = 0;        ///< the event for which its states are known
    bool last = false;          ///< it ends with the run
    std::vector<int> blocks;    ///< ascending
    std::vector<Guard> guards;  ///< zero at its end; none: the series end
  };

  // ---- the run ------------------------------------------------------------------------------------------------------

  bool build(const Moment& now);
  void go_on(int r);
  void find_due(int first, const Run* run);
  bool accumulates(int u, double t, double scale);
  ClusterOutcome hand_over(Moment& now, std::vector<Guard>& guards);
  ClusterOutcome give_up(Moment& now, long steps);
  void assemble(const Clock& clock, Moment& now);
  void forget();

  // ---- events -------------------------------------------------------------------------------------------------------

  bool act(Moment& now);
  std::optional<SimpleChoice> choose(const Guard& guard);
  double bend(int u, int side) const;
  void tell(Moment& now);
  void stop(int u);
  void let_go(int u);
  double scale_of(int u) const;

  // ---- runs ---------------------------------------------------------------------------------------------------------

  int make_run();
  void remove_run(int r);
  void pull(int r);
  void split(int r);
  void start_fresh();
  void start(int r);
  bool expand(Run& r);
  void expand_terms(const Run& r);
  void find_end(Run& r);
  void look_beside(int u);
  void look_at(int u);
  bool stays_inside(int u, double h) const;
  bool stays_far_inside(int u, double h);
  void expand_sigma(int u);
  std::optional<double> reaches(double bound, int known, double h, double resolution, bool& late);

  std::span<const BlockPlan::Term> terms_of(const BlockPlan::Row& row) const {
    return std::span(plan_.terms).subspan(row.first, row.count);
  }
  static double value_of(const Block& b) { return b.letter == '+' ? 1 : b.letter == '-' ? -1 : 0; }
  ColumnSeries column(const State& s) const {
    return runs_[static_cast<size_t>(s.run)].series[static_cast<size_t>(s.column)];
  }

  BlockPlan plan_;
  EngineMemory& memory_;
  const RunOptions& options_;
  Recorder& recorder_;
  RowSteps steps_;
  ColumnStore store_;
  std::vector<State> states_;
  std::vector<Block> blocks_;
  std::vector<std::array<double, 3>> last_events_;  // per block
  std::vector<Run> runs_;
  std::vector<int> free_;
  DueQueue queue_;  // blocks that stick by their number; runs behind them
  Clock clock_{0};  // of what is worked on
  double first_scale_ = 1;
  long holiday_ = 0, penalty_ = 8, events_ = 0;  // as in Clusters
  bool failed_ = false;                          // series of a run do not carry
  unsigned marks_ = 0, event_ = 0;
  std::vector<int> fresh_;             // runs that begin
  std::vector<int> stack_, left_;      // of blocks
  std::vector<Guard> due_;             // at the same time
  std::vector<SimpleChoice> choices_;  // what they do
  /// A block in a run that may stop.
  struct Candidate {
    int block = 0;
    size_t column = 0;
    double soon = 0;  ///< where its tangent is zero
  };
  std::vector<Candidate> candidates_;
  std::vector<std::pair<double, Guard>> found_;
  std::vector<double> values_, sigma_, sum_;
  struct LocalTerm {
    size_t row = 0, column = 0;
    double weight = 0;
  };
  std::vector<LocalTerm> local_;  // where rates are no band
};

}  // namespace saltus
