// The decision of choose.hpp: what it knows while it decides. The doors, groups and what is settled are in choose.cpp,
// proposals in choose_propose.cpp, the judgement of a proposal in choose_judge.cpp.
#pragma once

#include <string>
#include <vector>

#include "base/index.hpp"
#include "flow/choose.hpp"

namespace saltus {

/// The letter of a switch or constraint.
inline void set_letter(Mode& mode, const Program& program, int unknown, char c) {
  const int m = program.switches();
  (unknown < m ? mode.switches[at(unknown)] : mode.constraints[at(unknown - m)]) = c;
}

/// One assignment that has been tried.
struct Candidate {
  std::string letters;           // per member of the group
  Mode mode{};                   // the whole mode
  bool usable = false;           // the series exists
  bool weak = false;             // stays, but only because nothing moves to the computed order
  std::vector<Leading> leading;  // per member
  std::vector<double> unknowns;  // values of all unknowns
  std::vector<double> first;     // per member: first derivative of h or g
  std::vector<double> rates;     // of the states
  std::vector<double> flow;      // the next coefficients of the states
  bool several_sigma = false;
  bool repels = false;
};

class Chooser {
 public:
  Chooser(Series& series, Rounding& point, std::span<const double> x, double t, std::span<const double> counters,
          const Mode& current, const std::vector<AtZero>& zeros, const ChoiceOptions& options);
  Choice run();

 private:
  // ---- what there is to decide, and what is decided

  /// Surfaces that depend on a switch in Z are decided with it.
  void add_dependents();
  /// Members of Z that can influence each other; groups without a fresh member keep what they have.
  std::vector<std::vector<size_t>> groups();
  /// Many surfaces that do not influence each other (blocks at rest at the start): their h' on both sides come from two
  /// series, one with all above and one with all below. What that settles is taken off the list.
  void decide_together(std::vector<std::vector<size_t>>& undecided);
  /// Closes contacts at rest that do not influence each other (balls on a floor): those that press in the mode in
  /// which all are closed are closed.
  void close_together(std::vector<std::vector<size_t>>& undecided);
  /// Decides diodes with a resistance of their own, whatever influence others have on them: each conducts, or has a
  /// voltage against it.
  void conduct_together(std::vector<std::vector<size_t>>& undecided);
  bool has_kink(const std::vector<size_t>& group) const;
  void decide(const std::vector<size_t>& group);
  std::vector<size_t> without_grip();
  /// Where the series of other modes do not exist (a root at zero): all surfaces stay zero with the values that
  /// switches have on their surfaces, an equilibrium of the states they depend on.
  std::vector<size_t> without_flat(const std::vector<size_t>& group, int order);
  bool rests_by_itself(const std::vector<size_t>& group);
  /// True if the group rests except for those of the mask `kept`, whose sigma keeps them there (a disturbance that
  /// terminal sliding withstands).
  bool rests_with(const std::vector<size_t>& group, size_t kept);
  bool settle_among(const std::vector<size_t>& group, std::vector<Candidate>& candidates);
  void settle(const std::vector<size_t>& group, std::vector<Candidate>& kept);
  void add_what_stays(const std::vector<size_t>& group, std::vector<Candidate>& kept);
  /// Where contacts have no solution or several (Painlevé), the equation they were to solve: g'' = a + b N.
  void describe_contacts(const std::vector<size_t>& group);
  /// Where both sticking and passing are consistent on a surface that holds, it sticks.
  void prefer_sticking(const std::vector<size_t>& group, std::vector<Candidate>& kept) const;
  /// A surface through which the fields on both sides go is crossed, whatever surfaces nested in its switch would do on
  /// the way: Filippov's answer for one surface.
  void prefer_crossing(const std::vector<size_t>& group, const std::vector<Candidate>& candidates,
                       std::vector<Candidate>& kept) const;
  bool constraints_only(const std::vector<size_t>& group) const;
  /// Diodes may share currents and voltages in several ways while the states move in one; the friction of an open
  /// contact may be anything. `wholly`: the states move alike not only at first.
  void drop_equal_flows(std::vector<Candidate>& kept, bool wholly);
  std::vector<double> negligible_rates(bool after_impact);
  Candidate* by_wish(const std::vector<size_t>& group, std::vector<Candidate>& kept) const;
  static Candidate* most_slid(std::vector<Candidate>& kept);

  /// A component of a vector switch: it is decided behind all others (Act::settle_vectors).
  bool is_part(int u) const { return u < program_.switches() && program_.vector_of(u) >= 0; }
  bool is_joint(int u) const { return u >= program_.switches() && program_.joint(u - program_.switches()); }

  // ---- proposals

  /// Switch states to try for an item at zero; an item that changes at events only has no choice there.
  std::string letters_of(const AtZero& z) const {
    if (is_joint(z.unknown)) return "c";
    if (is_part(z.unknown)) return {choice_.mode.switches[at(z.unknown)]};
    if (z.unknown >= program_.switches()) return "oc";
    return program_.model().form.switches[at(z.unknown)].discrete ? "=" : "+-0";
  }
  bool any_forced(const std::vector<size_t>& group) const;
  /// All assignments that the values of nested surfaces leave possible. False if there are too many.
  bool enumerate(const std::vector<size_t>& group, size_t most, std::vector<Candidate>& out);
  /// A surface that depends on switches before it has the sign they give it; only where that is zero (or where it
  /// depends on a sigma still to be found) is there a choice.
  std::string possible_letters(const std::vector<size_t>& group, const std::string& letters, const AtZero& z);
  double value_of(int i, char letter) const;
  /// Many surfaces at once: only those of the event change, or what the solver finds. `only`: all of one motion.
  std::vector<Candidate> few(const std::vector<size_t>& group, bool& only);
  /// Adds the candidates that the solver finds a little later and those of each item alone, whatever the walk finds.
  void add_many(const std::vector<size_t>& group, std::vector<Candidate>& out);
  /// Surfaces that are multiples of each other switch together.
  bool fits_ties(const std::vector<size_t>& group, const std::string& letters, int u, char letter) const;
  /// In the order in which surfaces depend on each other: each by how it starts above and below, what comes before it
  /// decided and the rest as it was. Right wherever rates are continuous; judged like every proposal.
  Candidate one_by_one(const std::vector<size_t>& group);
  int sign_behind(const Mode& mode, int u);
  /// The first coefficients that unknowns enter as a box complementarity problem: residual = A u + r, with the sign
  /// that makes a switch push its surface back. Degenerate members (at a bound with no rate) may stay or go. `only`:
  /// its matrix is dominated by its diagonal, so that all solutions have the same rates.
  std::vector<Candidate> by_solver(const std::vector<size_t>& group, std::span<const double> x, double t, bool& only);
  /// Bounds of the unknowns of that problem; returns the signs of its rows.
  Vec bounds(const std::vector<int>& active, Vec& lo, Vec& hi) const;
  /// Where the mode before would have gone.
  std::vector<double> state_after(double tau);
  /// Many surfaces at once: from everything slid, let go what must go, one at a time (Murty's rule), until it fits.
  std::vector<Candidate> walk(const std::vector<size_t>& group);

  // ---- judgement

  Mode with(const std::vector<size_t>& group, const std::string& letters) const;
  /// Makes the candidate's mode current. A surface that no unknown of the mode can move stays zero by itself or not at
  /// all: '='.
  void enter(const std::vector<size_t>& group, Candidate& c);
  /// True if a nested surface is zero under the other letters, whatever its own is: on the flat piece of a table.
  bool is_zero_on_both_sides(const Candidate& c, int u);
  bool is_flat(const Candidate& c, int u) const;
  /// Candidates whose flow stays where they claim to be, seen with series up to `order`.
  std::vector<Candidate> judge(const std::vector<size_t>& group, std::vector<Candidate>& candidates, int order);
  /// Drops the sides of surfaces that stay zero whatever their sigma is.
  void drop_sides_of_rest(const std::vector<size_t>& group, std::vector<Candidate>& kept) const;
  const double* function(int u) const {
    return u < program_.switches() ? series_.surface(u) : series_.gap(u - program_.switches());
  }
  /// A surface can be slid on only if the lower derivatives of h are known to vanish and sigma can influence it.
  bool may_slide(const std::vector<size_t>& group, const std::string& letters);
  /// Series of a candidate; if it is not affine in its unknowns, the solution that attracts among those in range.
  bool start(const std::vector<size_t>& group, Candidate& c, int order);
  bool in_range(const std::vector<double>& unknowns) const;
  bool start_nonlinear(const std::vector<size_t>& group, Candidate& c, int order);
  /// True if the surfaces that are to stay zero by themselves do so at first.
  bool keeps_flat(const std::vector<size_t>& group, const Candidate& c) const;
  /// True if a small departure from the slid set grows: an eigenvalue of the slope with positive real part.
  bool repels() const;
  void note_slopes(Candidate& c) const { c.repels = !series_.active().empty() && repels(); }
  bool stays(const std::vector<size_t>& group, Candidate& c, int order, const std::vector<double>& steepest);
  bool nested(int u) const { return u < program_.switches() && program_.nested(u); }
  /// True if a nested surface is zero under the switches of a candidate.
  bool vanishes(int u, const Candidate& c, double steepest);
  /// How h starts in the current series.
  Leading start_of(const AtZero& z, int order, double steepest) const;
  /// One whose sigma (or lambda) has just reached its bound is at the bound, whatever rounding and the tolerance make
  /// of it, if nothing else changes.
  bool tangential(const std::vector<size_t>& group, const Candidate& c, size_t i) const;
  /// Leading coefficients of h known to vanish: one that leaves does so tangentially; one that holds is let go with a
  /// jump of its rate.
  int known(const std::vector<size_t>& group, const Candidate& c, size_t i) const;
  /// True if a surface that was slid on by the sigma of others still has the rate zero that they gave it: they have
  /// left at their bounds, or have not changed.
  bool rate_is_kept(const std::vector<size_t>& group, const Candidate& c, size_t i) const;
  /// True if the derivatives of h that are to stay zero vanish here, beside those known to: putting the states where
  /// they do moves none of them.
  bool lower_vanish(const std::vector<size_t>& group, const Candidate& c, size_t i);
  char before_letter(int u) const;
  /// True if a slid sigma (or closed lambda) that stands alone cannot influence its surface.
  bool powerless(int u) const;
  bool in_group(const std::vector<size_t>& group, int u) const;
  /// How lambda starts.
  Leading pressing(const AtZero& z, int order, bool at_bound) const;
  /// How hold - |sigma| starts: positive inside, at the bound by the first coefficient that moves it.
  Leading sliding_margin(const AtZero& z, int order, bool at_bound) const;

  Series& series_;
  Rounding& point_;
  const Program& program_;
  std::span<const double> x_;
  double t_;
  std::span<const double> counters_;
  std::vector<AtZero> zeros_;
  const ChoiceOptions& options_;
  std::vector<double> previous_;
  std::vector<Candidate> weak_;  // at a start: what `judge` left out because others move
  std::vector<double> fastest_;  // rate of each state in the fastest of the modes looked at
  Mode before_;
  Choice choice_;
};

}  // namespace saltus
