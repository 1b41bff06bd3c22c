// The first Lyapunov coefficient of a Hopf point: the sign of its cubic term decides whether cycles are born stable
// (negative, supercritical) or unstable (positive, subcritical); where it vanishes a fold of cycles begins (Bautin).
//
//   l1 = 1/(2 w) Re p.[ C(q,q,q*) - 2 B(q, A^-1 B(q,q*)) + B(q*, (2iw - A)^-1 B(q,q)) ]     (Kuznetsov, eq. 5.62)
//
// A q = iw q, A' p = -iw p, |q| = 1, p*.q = 1; B and C are the second and third derivatives of the rates, taken along
// lines x + s u as formulas.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/linear.hpp"
#include "code/plain.hpp"
#include "flow/trajectory.hpp"
#include "model/model.hpp"

namespace saltus {

class LyapunovCoefficient {
 public:
  /// For a mode in which nothing slides and no contact is closed; `exists` says so.
  LyapunovCoefficient(const Model& model, const Arc& arc, double t);

  bool exists() const { return !rates_.empty(); }
  /// At an equilibrium with the matrix A, whose pair nearest to the imaginary axis counts as on it; nothing if there
  /// is no such pair.
  std::optional<double> at(const Mat& A, std::span<const double> x, std::span<const double> parameters);

 private:
  struct Complex {
    Vec re, im;
  };
  /// Second or third derivative of the rates along u.
  Vec along(int order, const Vec& u);
  Vec second(const Vec& u, const Vec& v);
  Complex second(const Complex& u, const Complex& v);
  /// C(q, q, q*)
  Complex third(const Complex& q);

  struct Rate {
    Plain second, third;
  };
  std::vector<Rate> rates_;
  std::span<const double> x_, parameters_;
};

}  // namespace saltus
