// Multiple shooting on a frozen signature: legs in, residual and derivative out.
//
//   leg i       x_i, T_i in mode i:   x_{i+1} = R_i(flow(mode_i, x_i, T_i)),   its end: h_i = 0
//   last leg    closes: x_end = S x_0 + shift, ended by the clock, a section, or the phase of the start
//   unknowns    x_0, T_0, x_1, T_1, ... and one or two parameters
//
// Modes, impacts and jumps are frozen, times are unknowns: the equations are smooth where the order of events is about
// to change. Known zeros of a guard at the start of its leg are divided out, so that they stay regular where the leg
// vanishes.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/linear.hpp"
#include "flow/simulate.hpp"
#include "flow/smooth.hpp"
#include "flow/variation.hpp"

namespace saltus {

/// A stretch in one mode and what ends it.
struct Leg {
  enum class End { guard, time, section, clock, phase, part };  ///< part: inside a stretch, as long as the next part
  Arc arc;
  End end = End::guard;
  Guard guard{};
  Transition event;  ///< what happens there, frozen
  bool happens = false;
  int known = 0;              ///< zeros of the guard at the start of the leg
  double until = 0;           ///< clock: absolute time; time: the length, kept
  double share = 0;           ///< time: of the stretch before it instead, where the two shrink together
  Vec until_by{};             ///< clock: how that moves with each parameter followed
  double ticks = 0;           ///< clock of a jump: which tick
  std::vector<int> starts{};  ///< sign of the `on` of each jump after a reset; 0: no matter
  std::vector<int> caused{};  ///< per jump of the event: sign to which another jump carried its `on`; 0: none did
  Vec x;
  double length = 0;
};

/// How the last leg meets the first.
struct Closing {
  std::vector<bool> free;  ///< states that need not come back
  Vec sign;                ///< S
  Vec shift;
  Vec normal, through;  ///< phase: normal.(x_0 - through) = 0
};

/// The inside of a leg: dense output, with the guards watched on it.
struct LegTrace {
  struct Stretch {
    Piece piece;
    bool rough = false;                       ///< along the tangent, where a root begins: there is no series
    std::vector<std::vector<double>> guards;  ///< per guard asked for: coefficients in time since its start
    std::vector<std::vector<double>> sections;
  };
  std::vector<Stretch> stretches;
};

/// True if one switch changing is all that happens at the end of a leg.
bool changes_one_switch(const Leg& leg);

/// How the equations of a leg move: by x_i, by T_i, by the time at which it starts, by the parameters followed.
struct LegSlopes {
  Mat z;  ///< the state at its end, behind the event
  Mat h;  ///< what ends it
};

/// Where each leg ended when the equations were formed, and how it got there.
struct Shot {
  struct End {
    std::vector<double> x_minus, x_plus;
    double t = 0;
    Mat tangents;            ///< by x_i, at fixed time, before the event
    Mat row;                 ///< what ends it, as in LegSlopes
    Vec first_rates, rates;  ///< where it begins, and before the event
    bool root = false;       ///< a root ends it
  };
  std::vector<std::vector<Guard>> watched{};  ///< per leg, to be traced; none: no traces
  std::vector<End> ends{};
  std::vector<LegTrace> traces{};
};

class Shooting {
 public:
  /// `run`: parameters, tolerance. `direction`: +1, or -1 backward in time.
  Shooting(const Program& program, const RunOptions& run, bool forced, double direction);

  /// Other parameters; `directions`: how all of them move with each one followed.
  void bind(const std::vector<double>& parameters, const Mat& directions = {});
  Variation& variation() { return variation_; }
  /// Leaves what was made for modes met to the program: this one is of no more use.
  void give_back() { variation_.give_back(); }
  const Vec& size() const { return size_; }
  bool forced() const { return forced_; }
  /// Sizes of the states and of the period: units of the residual.
  void set_size(const Vec& size, double period);
  /// States that vanish with state i and are not brought back by jumps (model/vanishing), itself among them.
  const std::vector<int>& vanishing(Index i) const { return vanishing_[static_cast<size_t>(i)]; }
  /// The sizes at a point: states that vanish together have the size of what is left of them there, as a share of
  /// `most`, the largest they become on the orbit.
  Vec sizes_at(const Vec& x, const Vec& most) const;

  /// Residual and its derivative; `start_by`: how the time of the start moves with each parameter followed.
  bool equations(const std::vector<Leg>& legs, const Closing& closing, double t0, const Vec& start_by, int section,
                 Vec& r, Mat& J, Shot* shot = nullptr);
  /// Equations leg by leg, without a matrix of all; nothing is followed.
  bool equations(const std::vector<Leg>& legs, const Closing& closing, double t0, int section, Vec& r,
                 std::vector<LegSlopes>& slopes, Shot* shot = nullptr);
  /// The matrix of such slopes: rows and columns leg by leg, then columns of the parameters followed.
  Mat matrix_of(const std::vector<Leg>& legs, const Closing& closing, const std::vector<LegSlopes>& slopes,
                const Vec& start_by = {}) const;
  /// How the phase of the first state moves with it, where that ends the last leg.
  Mat phase_row(const Closing& closing) const { return closing.normal.transpose() / phase_unit(closing); }
  /// The legs of a run from where they begin: what is left to find are their tangents.
  void take_flights(const std::vector<Leg>& legs, double t0, const Trajectory& run);
  /// The residual alone, in the units in which the equations were last formed.
  bool residual(const std::vector<Leg>& legs, const Closing& closing, double t0, int section, Vec& r);
  /// flow(mode, x, T) with its tangents (by x, then by the parameters followed); false where there is none.
  bool flow(const Leg& leg, double t, std::vector<double>& x, Mat* tangents, LegTrace* trace = nullptr,
            std::span<const Guard> watched = {});
  /// d flow / dx of each leg with what happens at its end, at fixed times: their product is the monodromy.
  std::vector<Mat> factors(const std::vector<Leg>& legs, const Shot& shot);

  /// The largest factor by which a tangent grows over a leg, in units of the sizes at its ends; infinite where there is
  /// no flow. `rests`: surfaces of roots on which it begins.
  double growth(const Leg& leg, double t, const std::vector<Guard>& rests, const Vec& most);

  /// Per leg, the surfaces of roots that have ended before it and not begun again.
  std::vector<std::vector<Guard>> roots_at_rest(const std::vector<Leg>& legs);
  /// True if a leg ends with the end of a root.
  bool ends_root(const Leg& leg);
  /// Moves x, where the first leg begins, onto what is slid on and closed there, and where roots rest.
  void land_at_start(const std::vector<Leg>& legs, double t, std::vector<double>& x);
  /// The rates where each leg begins.
  std::vector<Vec> flow_at(const std::vector<Leg>& legs, double t0);
  int failed_leg() const { return failed_leg_; }
  const std::vector<std::string>& notes() const { return variation_.notes(); }

 private:
  /// When the root of a leg ends, how that moves with its tangents, and the rates there.
  struct Arrival {
    double length = 0;
    Mat shift;
    Vec rates;
  };
  /// A leg as it was flown.
  struct Flight {
    Arc arc{};
    double t = 0, length = 0;
    Vec from{};
    std::vector<double> to{};
    Mat tangents{};
    Vec f0{}, f{};  ///< the rates where it begins and ends; none: not yet known
    bool root = false;
    Arrival arrival{};
  };

  RunOptions options() const;
  bool form(const std::vector<Leg>& legs, const Closing& closing, double t0, int section, Vec& r,
            std::vector<LegSlopes>* slopes, Shot* shot);
  bool form_leg(const std::vector<Leg>& legs, size_t i, double t, Flight& flight, int section, LegSlopes* slopes,
                double& value, std::vector<double>& x);
  double phase_unit(const Closing& closing) const;
  static size_t place_of(const Leg& leg, double t);
  Flight* known_flight(const Leg& leg, double t);
  Flight& keep(const Leg& leg, double t, Flight flight);
  /// With its tangents, as it was flown last or now; nothing where there is no flow.
  Flight* flown(const Leg& leg, double t, const std::vector<Guard>& rests);
  bool fly(const Leg& leg, double t, const std::vector<Guard>& rests, Flight& out, bool tangents,
           LegTrace* trace = nullptr, std::span<const Guard> watched = {});
  void land(const Leg& leg, double t, std::vector<double>& x);
  double wait_for_root(const Leg& leg, double t, std::vector<double>& x);
  void begin_tangents(bool wanted);
  Smooth& smooth_for(double t, double length);
  bool expand(const Leg& leg, const Moment& now, bool first);
  LegTrace::Stretch watch(std::span<const Guard> watched) const;
  bool cut_step(const Moment& now, double left, int& rough_steps, bool looked_at, std::span<const Guard> watched);
  bool follow_piece(const Leg& leg, Moment& now, bool tangents, LegTrace* trace);
  double touch(std::span<const double> h, double& ahead) const;
  bool flow_to_root(const Leg& leg, double t, std::vector<double>& x, Mat* tangents, Arrival& arrival, LegTrace* trace,
                    std::span<const Guard> watched);
  void arrival_row(const Leg& leg, const Flight& flight, bool slopes, double& value, Mat& row) const;
  void start_row(const Leg& leg, double t, const Vec& f0, double& value, Mat& row);
  Variation::GuardSlope guard_of(const Leg& leg, std::span<const double> x, double end, int section);
  void end_row(const Leg& leg, const Variation::GuardSlope& slope, const Mat& z, const Mat& dt, double& value,
               Mat& row) const;
  double end_value(const Leg& leg, std::span<const double> x, double end, int section);

  const Program& program_;
  RunOptions run_;
  bool forced_;
  double direction_;
  Variation variation_;
  Mat directions_;
  std::vector<std::vector<int>> vanishing_;
  RunOptions flight_;  // the options of a leg
  std::optional<Smooth> smooth_;
  Vec size_;
  double period_ = 1;
  Vec first_rates_;  // where the last flow began
  int failed_leg_ = 0;
  std::vector<double> unit_;  // per leg: of the row of its end
  std::vector<LegSlopes> slopes_;
  LegSlopes no_slopes_;
  Mat dt_;                                      // how the time of the end of a leg moves
  std::unordered_map<size_t, Flight> flights_;  // the last ones with these parameters
  Flight here_;                                 // without being kept
  std::vector<Guard> at_rest_;                  // where the leg that is flown begins
};

}  // namespace saltus
