// A function of one variable that is given by points: what a table of a model stands for.
//
// It is piecewise polynomial. The pieces are numbered, each begins at its break, and a number alone gives all that is
// needed near it: its own polynomial and how it differs from its two neighbours. A million points cost what ten do.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace saltus {

/// Between points: straight lines, the natural cubic spline, or the value of the point to the left.
enum class Between { linear, cubic, step };
/// Beyond the first and last point: their values, the same again (with the period last - first), zero, or nothing.
enum class Outside { hold, repeat, zero, error };

class Interpolant {
 public:
  /// At least two points, x strictly increasing.
  Interpolant(std::vector<double> x, std::vector<double> y, Between between, Outside outside);

  std::span<const double> x() const { return {x_.data(), given_}; }
  std::span<const double> y() const { return {y_.data(), given_}; }
  Between between() const { return between_; }
  Outside outside() const { return outside_; }
  double period() const { return x_[given_ - 1] - x_[0]; }
  /// True if its value jumps at any break.
  bool jumps() const { return jumps_; }
  /// True if all its polynomials are finite numbers.
  bool finite() const { return finite_; }
  std::uint64_t hash() const { return hash_; }
  friend bool operator==(const Interpolant& a, const Interpolant& b);

  /// Its value or a derivative; on a break that of the piece to the right, undefined where it is not given.
  double operator()(double u, int derivative = 0) const;

  using Polynomial = std::array<double, 4>;

  /// One piece, from <= u < to.
  struct Piece {
    double from = 0, to = 0;
    double origin = 0;   ///< the polynomial `value` is in powers of u - origin
    Polynomial value{};  ///< here
    Polynomial below{};  ///< how much the piece before differs from it, in powers of u - from
    Polynomial above{};  ///< how much the piece after differs from it, in powers of u - to
  };
  Piece piece(double number) const;
  /// The number of the piece in which u lies.
  double number_at(double u) const;
  /// The number of the piece whose break is nearest to u.
  double nearest_break(double u) const;
  /// True if the curve is given there: false only beyond the ends of `Outside::error`.
  bool given(double number) const;

 private:
  double break_of(double number) const;
  bool inside(double number) const;
  size_t place_of(double number) const;
  Polynomial start_of(double number) const;
  Polynomial end_of(double number) const;
  Polynomial difference(double number) const;
  void make_spline();
  void look_over();

  std::vector<double> x_, y_, bend_;  // bend: second derivatives of the spline
  size_t given_;                      // points that the user gave
  Between between_;
  Outside outside_;
  double margin_ = 0;  // how far rounding may carry u beyond the ends of what is given
  bool jumps_ = false, finite_ = true;
  std::uint64_t hash_ = 0;
};

}  // namespace saltus
