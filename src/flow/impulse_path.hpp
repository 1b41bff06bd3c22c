// Impulses whose directions depend on what they change: from x- along
//
//   dx/ds = sum_j Lambda_j D_j(x, sigma),   0 <= s <= 1,   D_j = df/dlambda_j
//
// all impulses growing in proportion. Directions that stay make this x+ = x- + sum_j D_j Lambda_j. A switch in them is
// of one of two kinds, told by its values on its surface: a kink, where D is continuous (max, abs(v)*v), follows the
// path; a set, where D jumps (Coulomb's sign), has one sigma for all of the path, in Sgn h(x+); beside its surface the
// formulas of its other side are read at the mirrored point. Steps are those of Radau IIA of order 9, compared with two
// half steps: friction of tanh(v/1e-9) is stiff. docs/method/impacts.md
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/linear.hpp"
#include "code/jet.hpp"
#include "flow/trajectory.hpp"
#include "model/program.hpp"

namespace saltus {

class ImpulsePath {
 public:
  /// `open`: the mode before, contacts open. Contacts of degree 2 that touch; states before.
  ImpulsePath(const Program& program, std::span<const double> parameters, Mode open, std::span<const int> contacts,
              std::span<const double> x, double t, std::span<const double> counters);

  /// True if impulses move a state that the direction or the gap rate of one of these contacts depends on.
  static bool needed(const Program& program, std::span<const int> contacts);

  /// Joints take a share of the impulses back: x moves by (1 - share) D Lambda.
  void share_with_joints(const Mat& share) {
    free_ = Mat(Mat::Identity(share.rows(), share.cols()) - share).part(moved_);
  }

  /// Switches in the directions at which these jump.
  const std::vector<int>& sets() const { return sets_; }
  /// The sets keep the letters of the mode: no sigma is sought for them.
  void keep_sets();
  /// The mode with its sets '0' and its kinks as they are before.
  const Mode& mode() const { return mode_; }

  struct End {
    Vec change;                        ///< of all states
    Mat by_unknown;                    ///< d of the moved states by Lambda, then by the sigma of the sets
    Vec gap_rate, surface;             ///< of the contacts and the sets, at x+
    Mat gap_by_impulse, gap_by_sigma;  ///< their derivatives by Lambda and by the sigma of the sets
    Mat surface_by_impulse, surface_by_sigma;
    double normal_work = 0;  ///< sum of the integrals of w_j dLambda_j
  };
  /// Where these impulses lead; nothing where a direction has no value on the way.
  std::optional<End> follow(const Vec& impulse, const Vec& sigma);
  /// True if a direction has a product of two sets in it: what such impulses do is not decided here.
  bool undecided() const { return undecided_; }
  /// True if `follow` has come to where a direction has no value, or turns at once.
  bool lost() const { return lost_; }
  /// The kinks with their letters at the end of the last path.
  std::vector<std::pair<int, char>> kinks() const;

  /// Tangents along the last path: dZ/ds = sum_j Lambda_j (dD_j/dx Z + what `forcing` gives at a point). Z: moved
  /// states by columns.
  using Forcing = std::function<Mat(const Jet<double>&, const TangentTape&)>;
  bool carry(Mat& z, const Forcing& forcing);
  /// States that impulses move, in rows of Z.
  const std::vector<int>& moved() const { return moved_; }
  /// Formulas and values at the end of the last path.
  const Jet<double>& jet() const { return *standing_->jet; }
  const TangentTape& tape() const { return *standing_->tape; }

 private:
  struct Slope {
    Index row = 0, column = 0, contact = 0;
    int output = 0;
  };
  /// Formulas of one choice of letters for the kinks.
  struct Piece {
    const TangentTape* tape = nullptr;
    std::unique_ptr<Jet<double>> jet;
    std::vector<Slope> by_state;  ///< of the directions
  };
  /// A step of the collocation method, solved.
  struct Step {
    double length = 0;
    std::vector<Vec> stages;
  };

  Piece& piece(const std::string& letters);
  Piece& values(const std::string& letters, const Vec& y);
  /// The formulas that hold at these moved states, with their values: every switch on its own side.
  Piece& stand(const Vec& y);
  /// The effect of a switch at a point beside its surface: its part of the direction is own - mean, with the mean of
  /// both sides on the surface, in the rows in which it stands: D(sigma) = D_own + share (own - mean).
  struct Part {
    Index set = 0;
    double side = 1;   ///< on which the path is
    double share = 0;  ///< side sigma - 1
    Mat rows;          ///< diagonal: 1 in the rows in which it stands
    Mat projection;    ///< derivative of the point on the surface
    Vec on_surface;
  };
  std::vector<Part> parts(const Vec& y, bool all);
  /// The mean of something over both sides of a set's surface, at the part's point.
  Mat mean(const Part& part, const std::function<Mat(Piece&)>& value);
  struct Rates {
    Mat D, slope, by_sigma;
  };
  Rates rates(const Vec& y, bool all);
  double output(const Piece& piece, int row) const { return piece.jet->output(at_row(row))[0]; }
  static size_t at_row(int row) { return static_cast<size_t>(row); }
  Mat directions(const Piece& piece) const;
  Mat slope(const Piece& piece) const;
  std::optional<Step> solve_step(const Vec& y, double length);
  bool carry_step(const Step& step, Mat& z, const Forcing& forcing, double* work);
  bool walk(Vec& y, const std::function<bool(const Step&)>& passed);
  std::vector<int> switches_inside() const;
  void sort_switches();
  bool jumps_at(int i);
  bool sets_multiply();
  std::optional<Vec> to_surface(int i, Vec y);
  End read(const Vec& y, const Mat& z);
  Vec surface_slope(const Piece& piece, int row) const;

  const Program& program_;
  std::vector<double> parameters_, counters_, x_, sigma_;
  Mode open_, mode_;
  double t_;
  std::vector<int> contacts_, sets_, kinks_, moved_, place_;
  std::string letters_, first_letters_;
  std::map<std::string, Piece> pieces_;
  Piece* standing_ = nullptr;
  Vec before_, impulse_;
  Mat free_;                    ///< 1 - share; empty without joints
  std::vector<Mat> stands_in_;  ///< per set: diagonal of the rows of directions in which it stands
  bool lost_ = false, undecided_ = false;
};

}  // namespace saltus
