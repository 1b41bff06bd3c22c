// The work of find_orbit(): run until returns repeat, freeze the signature, Newton's method on it, run again to see
// whether the orbit found has that signature.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/orbit.hpp"
#include "analysis/settle.hpp"
#include "analysis/shooting_step.hpp"
#include "analysis/signature.hpp"
#include "flow/variation.hpp"

namespace saltus {

class OrbitSearch {
 public:
  OrbitSearch(const Program& program, const OrbitOptions& options);
  Orbit find();

 private:
  /// Where an orbit begins, and after how many returns it closes.
  struct Begin {
    std::vector<double> x;
    double t = 0;
    int returns = 1;
  };
  struct Failure {
    std::string why, message;
    double residual = 0;
  };
  /// Returns of a run to its section, until they repeat.
  struct Returns {
    std::vector<double> size;  ///< of the states on the way
    std::vector<double> times;
    std::vector<std::vector<double>> first;  ///< before anything is known of sizes
    std::optional<Settling> settling;
    bool settled = false;
    std::vector<double> last;
    std::optional<Begin> quiet;  ///< a place between events, where a clock tells when an orbit closes
  };
  /// One period as a run.
  struct Lap {
    Trajectory run;
    Mat monodromy;
    std::vector<Mat> factors;     ///< of the monodromy, where the legs have told them
    std::vector<double> times;    ///< of each return
    std::vector<double> stretch;  ///< per transition
    std::vector<std::string> notes;
    bool whole = false;
    bool judged = false;  ///< it has the signature it was solved for, and closes
  };
  /// Residuals and steps are measured in units of the states and of the period.
  struct Units {
    Vec state;
    double length = 0;
    Vec of_unknowns, of_rows;
    void set(const std::vector<Leg>& legs, const Shooting& shooting);
    double size_of(const Vec& r) const;
    double size_of_step(const Vec& step) const;
  };
  /// Where Newton's method is.
  struct Descent {
    std::vector<Leg> legs;
    Vec r;
    std::vector<LegSlopes> slopes{};
    Shot shot{};
    double size = 0, moved = 0;  ///< of the residual, and of the last step
    int steps = 0;               ///< made at once
    int tries = 8;               ///< steps after which the residual may be larger
    bool may_be_run = false;     ///< a run may take the place of the last flight
    bool formed = true;          ///< the equations are those of these legs
  };
  /// The equations of a step.
  struct Linear {
    const ShootingStep& matrix;
    const Units& units;
    double t0;
  };

  // ---- the search (orbit.cpp)
  void leave_out();
  RunOptions base(double from, double length) const;
  void make_engines();
  void use_model(Model model);
  const Model& model() const { return program_->model(); }
  Variation& variation() { return shooting_->variation(); }
  void solve(Begin begin, Orbit& orbit);
  [[noreturn]] void fail_newton(size_t legs, double residual) const;  ///< no residual: there are no equations
  [[noreturn]] void fail_signature(const std::vector<Leg>& found, const std::vector<Leg>& frozen, double open) const;
  void require_whole(const Lap& lap) const;
  void require_motion(const Begin& begin, const Lap& now);
  void shorten(Begin& begin, Lap& now, Orbit& orbit);
  void to_section(Begin& begin, Lap& now);
  std::vector<double> sizes_of(const Lap& lap) const;
  void find_shift(const Begin& begin, const Lap& lap);
  double open_by(const Begin& begin, const Lap& lap) const;

  // ---- where to begin (orbit_begin.cpp)
  void add_plane();
  Expr around(int state, const Expr& moved) const;
  Begin take_guess();
  bool is_on_section(const Begin& begin);
  bool leaps_over_section(const Begin& begin);
  Begin off_leaps(const Begin& begin);
  Arc arc_at(const Begin& begin);
  std::vector<Begin> returns_from(const Begin& begin, int count, double longest);
  Begin settle();
  Returns returns_by_clock(const Begin& begin);
  Returns returns_to_section(const Begin& begin);
  bool add_return(Returns& returns, double t, std::span<const double> place) const;
  int period_of(const Returns& returns) const;
  int nearest_recurrence(const Settling& settling) const;
  void count_anew(Arc& arc, const Begin& begin);

  // ---- one period: as a run, and by Newton's method (orbit_newton.cpp)
  Lap lap(const Begin& begin, bool tangents);
  Lap lap(const Begin& begin, bool tangents, int passings);
  Lap lap_of_solved(const Begin& begin);
  bool tangents_of_legs(Lap& lap);
  void meet_event(Lap& out, bool tangents);
  void land(Begin& begin, const Arc& arc);
  std::vector<Leg> legs_of(const Begin& begin, const Lap& lap) const;
  Closing closing() const;
  bool equations(Descent& of, double t0);
  Units units_of(const std::vector<Leg>& legs) const;
  bool newton(std::vector<Leg>& legs, Begin& begin, const Lap& lap, Orbit& orbit);
  bool may_be_run(const std::vector<Leg>& legs) const;
  bool run_instead(Descent& now, const Units& units, const Begin& begin, Orbit& orbit);
  bool descend_to_orbit(Descent& now, const Units& units, double t0, Orbit& orbit);
  static bool move_legs(std::vector<Leg>& legs, const std::vector<Leg>& from, const Vec& step, double share,
                        const Units& units);
  bool descend(Descent& now, Descent& next, const Vec& step, const Linear& at, bool regular);
  bool finish(Descent& next, const Linear& at);
  bool put_out(Descent& now, const Units& units, double t0);

  // ---- the answer (orbit_told.cpp)
  void tell(const Begin& begin, Lap& now, Orbit& orbit);
  void tell_legs(const Begin& begin, const Lap& now, Orbit& orbit) const;
  std::vector<Mat> factors_of(const Begin& begin, Lap& now, std::vector<Vec>& flow);
  double solved_period() const;
  void multipliers(const Begin& begin, Lap& now, Orbit& orbit);

  OrbitOptions options_;
  double direction_;
  const Program* program_;              ///< the one that was given, or our own
  std::optional<Program> own_program_;  ///< of another model: with a section more, or runs that no section ends
  std::optional<Simulator> simulator_;
  std::optional<Shooting> shooting_;
  bool forced_ = false;
  double clock_ = 0;
  int section_ = -1, wanted_section_ = -1;
  std::optional<Begin> plane_start_;
  std::vector<Leg> solved_;  ///< by Newton's method
  Shot solved_shot_;
  std::optional<Lap> solved_lap_;  ///< the run from there, where it is known
  std::optional<Arc> last_arc_;    ///< at the end of the run that settled
  std::vector<bool> left_out_;
  std::vector<double> on_the_way_;  ///< the sizes of the states before they settled
  std::vector<double> size_, shift_;
  double soonest_ = 0;  ///< no return comes within this time
};

}  // namespace saltus
