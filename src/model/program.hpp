// Everything an engine evaluates of a model, as tapes specialised to what is fixed in a mode.
//
// A switch is *plain* when it enters every formula linearly and chooses nothing: its sigma is an input of the tape, so
// one tape serves all its values. The other switches are fixed at +1 or -1 before the tape is made: what is multiplied
// by zero vanishes and the unused side of an `if` is never evaluated. One of those that is slid on becomes an input
// again, in the multi-affine interpolation of its two sides. Where there are many of these (a chain of blocks with
// friction that depends on abs(v)) and each enters linearly on its own surface, the tape is *open* to them as well.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/spares.hpp"
#include "code/tape.hpp"
#include "model/model.hpp"

namespace saltus {

/// One nonzero entry of a derivative: the slope tape's output `output` belongs to (row, column).
struct SlopeEntry {
  int row = 0, column = 0;
  int output = 0;
  double factor = 1;
};

/// One function that vanishes on the manifold an item slides on (h, or g and its rate), with its gradient.
struct ManifoldFunction {
  int value = 0;                                ///< output of the manifold tape
  std::vector<std::pair<int, int>> gradient{};  ///< (state, output of the manifold tape)
};

/// Unknowns of a mode are numbered: switch i is i, constraint j is (number of switches) + j. Residuals have the numbers
/// of their unknowns; the raised residual of an algebraic gap j is (number of unknowns) + j.
struct ModeTape {
  Tape flow;      ///< outputs by Program::rate, surface, residual, gap, jump, section, phase
  int spare = 0;  ///< slots of the flow tape that none of its operations uses: one per unknown and one more
  void add_spare(int unknowns) {
    spare = flow.slots;
    flow.slots += unknowns + 1;
  }
  Tape slope;  ///< d residual / d unknown
  std::vector<SlopeEntry> slope_entries;
  bool lettered = false;       ///< it serves one mode alone: plain switches have their letters in it too
  bool slope_constant = true;  ///< the slope depends on parameters only
  bool slope_affine = true;    ///< residuals are affine in all unknowns together: one linear solve gives them
  Tape manifold;
  std::vector<std::vector<ManifoldFunction>> manifolds;  ///< per unknown: what must stay zero
  std::vector<std::vector<int>> moves;  ///< per residual: states with fixed weights whose rates add up to it, if so
  std::vector<int> degree;              ///< per unknown: derivative of h or g in which unknowns appear; -1 never
  Tape actions;                         ///< definitions, restitutions, impact directions
};

/// The Jacobian of the rates in a mode, the dependence of sigma and lambda on the states included.
struct JacobianTape {
  Tape tape;  ///< all entries
  std::vector<SlopeEntry> rate_by_state, rate_by_unknown;
  std::vector<SlopeEntry> residual_by_state;  ///< rows by residual, raised ones included
};

/// Formulas with all their first derivatives at hand: the value of row r is output r, derivatives follow.
struct LinearTape {
  Tape tape;
  std::vector<SlopeEntry> by_state, by_unknown, by_time, by_parameter;  ///< by_time: column 0
};
/// The tape for tangents of a mode. Arcs: rates, then residuals with the raised ones; events: by Program::event_*.
struct TangentTape {
  LinearTape arc;            ///< by states and unknowns; its values are left out
  LinearTape arc_parameter;  ///< by parameters only, likewise
  LinearTape event;
  std::vector<std::vector<int>> rungs;  ///< per residual: rows of h, h', ... that stay zero while it is slid on
};

/// The lowered form with the switches of a mode put in: '+' and '-' as numbers, '0' as the multi-affine interpolation
/// of its two sides, '*' as they are. Fields that modes do not change (names, directions) are left empty.
Form specialised_form(const Model& model, const std::string& key);

/// The parts of a program of a subsystem (model/subsystem), besides its model: the tape of all its
/// modes, and what cannot be read from formulas that are not there.
struct ProgramPart {
  ModeTape mode;
  Tape points;
  std::vector<int> point_degree;              ///< per unknown
  std::vector<bool> moves, timed;             ///< per switch
  std::vector<std::vector<int>> vanishing{};  ///< per state (model/vanishing)
  std::vector<std::vector<int>> impact_switches{};
};

class Program {
 public:
  /// `attract`: C of the term -C h grad h that holds a state on what it slides on, instead of projection; 0 for none.
  explicit Program(Model model, double attract = 0);
  /// A part of another program; it has no rates as formulas.
  Program(Model model, ProgramPart part);

  const Model& model() const { return *model_; }
  int states() const { return n_; }
  int switches() const { return m_; }
  int constraints() const { return q_; }
  int unknowns() const { return m_ + q_; }

  // Positions in ModeTape::flow.outputs.
  size_t rate(int i) const { return at(i); }
  size_t surface(int i) const { return at(n_ + i); }
  size_t residual(int unknown) const { return at(n_ + m_ + unknown); }
  size_t gap(int j) const { return at(n_ + m_ + m_ + q_ + j); }
  size_t jump(int k) const { return at(n_ + m_ + m_ + q_ + q_ + k); }
  size_t section(int s) const { return at(n_ + m_ + m_ + q_ + q_ + jumps_ + s); }
  size_t phase(int c) const { return at(n_ + m_ + m_ + q_ + q_ + jumps_ + sections_ + c); }
  /// Rate of an algebraic gap (degree 0) without its multipliers: what must vanish where none of them is active.
  size_t raised(int j) const { return at(n_ + m_ + m_ + q_ + q_ + jumps_ + sections_ + counters_ + j); }

  // Positions in ModeTape::actions.outputs.
  size_t definition(int d) const { return at(d); }
  size_t restitution(int j) const { return restitutions_ + at(j); }
  size_t direction(int j, int d) const { return directions_[static_cast<size_t>(j)] + at(d); }

  /// True for a joint: its multiplier has either sign, and its letter is always 'c'.
  bool joint(int j) const { return model().form.gaps[static_cast<size_t>(j)].joint; }
  bool any_joint() const { return any_joint_; }
  /// The vector switch that switch i is a component of, or -1; `leads`: its first, which stands for it.
  int vector_of(int i) const { return model().form.switches[static_cast<size_t>(i)].vector; }
  bool leads(int i) const { return vector_of(i) >= 0 && parts(vector_of(i))[0] == i; }
  const std::vector<int>& parts(int v) const { return model().form.vectors[static_cast<size_t>(v)].parts; }
  int vectors() const { return static_cast<int>(model().form.vectors.size()); }
  /// The letters of all constraints where no contact is closed.
  std::string open_constraints() const {
    std::string out;
    for (const Gap& g : model().form.gaps) out += g.joint ? 'c' : 'o';
    return out;
  }
  /// Switches that stand in the direction of a constraint's multiplier (Coulomb friction).
  const std::vector<int>& impact_switches(int j) const { return impact_switches_[static_cast<size_t>(j)]; }
  /// True if impulses change the direction in which the multiplier of a constraint acts, or are felt by its gap rate or
  /// by the surfaces in its direction otherwise than linearly (flow/impulse_path).
  bool bends(int j) const { return !bends_.empty() && bends_[static_cast<size_t>(j)]; }
  bool any_bends() const { return !bends_.empty(); }

  double attract() const { return attract_; }
  /// States that vanish with state i, itself among them (model/vanishing); if it is the only one it keeps its sign.
  const std::vector<int>& vanishing(int i) const { return vanishing_[static_cast<size_t>(i)]; }
  const std::vector<std::vector<int>>& vanishing() const { return vanishing_; }
  bool plain(int i) const { return plain_[static_cast<size_t>(i)]; }
  /// True if `tape` serves all its values: plain switches, and many others where there are many of them.
  bool open(int i) const { return open_[static_cast<size_t>(i)]; }
  /// True if the surface depends on states or time at all (otherwise its sign is fixed by the parameters).
  bool moves(int i) const { return moves_[static_cast<size_t>(i)]; }
  /// True if the surface depends on time alone, directly and through the switches inside it: no force can move it.
  bool timed(int i) const { return timed_[static_cast<size_t>(i)]; }
  /// Switches whose surfaces depend on switch i, directly or through others, in the order of Form::order.
  const std::vector<int>& dependents(int i) const { return dependents_[static_cast<size_t>(i)]; }
  /// Switches whose sigma stand in the first derivative of a surface that has any unknowns; none where it has
  /// multipliers.
  const std::vector<int>& entering(int i) const { return entering_[static_cast<size_t>(i)]; }
  /// True if the sigma of the surface itself is not among them: it is then kept by a higher derivative where the sigma
  /// of other sliding surfaces do not determine it.
  bool carried(int i) const;
  bool any_carried() const { return any_carried_; }
  /// True if the surface depends on other switches.
  bool nested(int i) const { return nested_[static_cast<size_t>(i)]; }
  bool any_nested() const { return any_nested_; }
  /// The letter of an unknown whose surface or gap stays zero: closed, kept by sigma, or, at a kink, by itself.
  char resting_letter(int unknown) const {
    if (unknown >= switches()) return 'c';
    return model().form.switches[static_cast<size_t>(unknown)].kink ? '=' : '0';
  }

  /// The mode with '*' for its plain switches: modes with the same key share their formulas. A switch whose surface
  /// stays zero by itself ('=') has the formulas of the side that Switch::at_zero names, or those with its
  /// sigma 0; where squares of sigma are 1 in them, the mean of both sides as they are on the surface ('|').
  std::string key(const std::string& switch_modes) const;

  /// Surfaces and gaps with their derivatives that no unknown enters, all switches open: to tell signs at a point.
  const Tape& points() const { return points_; }
  /// Output of the k-th derivative of an unknown's surface or gap in that tape, k < point_degree(unknown). In a mode
  /// in which others do not give its sigma, its degree may be higher (carried).
  size_t point(int unknown, int k) const { return point_start_[static_cast<size_t>(unknown)] + at(k); }
  int point_degree(int unknown) const { return point_degree_[static_cast<size_t>(unknown)]; }
  /// Outputs of what jumps and sections watch, in the same tape.
  size_t point_jump(int k) const { return point_jumps_ + at(k); }
  size_t point_section(int s) const { return point_jumps_ + at(jumps_ + s); }

  /// The tape of a mode given by one character per switch; made on first use and kept. Safe to call from any thread.
  const ModeTape& tape(const std::string& switch_modes) const;
  /// Its derivatives, likewise.
  const JacobianTape& jacobian(const std::string& switch_modes) const;
  /// The tape of a mode for tangents: derivatives by parameters and time, and of what events look at.
  const TangentTape& tangent(const std::string& switch_modes) const;

  /// Working memory of an engine, which is made of a program: one that others have used and given back, or a new one.
  template <class Memory>
  std::unique_ptr<Memory> lend() const {
    std::unique_ptr<Memory> memory = spares_.take<Memory>();
    return memory ? std::move(memory) : std::make_unique<Memory>(*this);
  }
  /// For the next one, where it is small and no exception may have left it half changed.
  template <class Memory>
  void give_back(std::unique_ptr<Memory> memory) const {
    constexpr size_t few = 64, small = 250'000;  // states and unknowns, numbers
    if (at(states() + unknowns()) <= few && memory->size() <= small) spares_.give(std::move(memory));
  }

  // Rows of TangentTape::event.
  int event_surface(int i) const { return i; }
  int event_gap(int j) const { return m_ + j; }
  int event_jump(int k) const { return m_ + q_ + k; }
  int event_section(int s) const { return m_ + q_ + jumps_ + s; }
  int event_restitution(int j) const { return m_ + q_ + jumps_ + sections_ + j; }
  int event_direction(int j, int d) const {
    return m_ + q_ + jumps_ + sections_ + static_cast<int>(direction(j, d) - restitutions_);
  }

 private:
  static size_t at(int i) { return static_cast<size_t>(i); }
  void number_actions();
  void find_dependents();
  void find_bends(std::span<const Expr> gap_rates);
  void note_entering(int i, const Expr& residual);
  void open_where_many(std::span<const Expr> formulas);
  /// True if the first derivatives of what is slid on have a sigma for each of them, as far as their structure tells.
  bool gives_each(const std::string& switch_modes) const;
  /// The key, and where it is not so with letters for all, followed by what is slid on.
  std::string formula_key(const std::string& switch_modes) const;
  std::unique_ptr<ModeTape> specialise(const std::string& key) const;
  std::unique_ptr<JacobianTape> differentiate_mode(const std::string& key) const;
  std::unique_ptr<TangentTape> linearise_mode(const std::string& key) const;

  std::shared_ptr<const Model> model_;
  double attract_ = 0;
  int n_, m_, q_, jumps_, sections_, counters_;
  std::vector<bool> plain_, moves_, nested_, timed_;
  std::vector<bool> open_;
  std::vector<bool> bends_{};   // per constraint; empty: none
  std::vector<bool> solvable_;  // the surface gives a state
  bool any_nested_ = false, any_joint_ = false;
  std::vector<std::vector<int>> dependents_, impact_switches_, vanishing_, entering_;
  bool any_carried_ = false;
  std::vector<size_t> directions_;
  size_t restitutions_ = 0, point_jumps_ = 0;
  Tape points_;
  std::vector<size_t> point_start_;
  std::vector<int> point_degree_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::unique_ptr<ModeTape>> tapes_;
  mutable std::map<std::string, std::unique_ptr<JacobianTape>> jacobians_;
  mutable std::map<std::string, std::unique_ptr<TangentTape>> tangents_;
  mutable Spares spares_;  // made of what is above
};

}  // namespace saltus
