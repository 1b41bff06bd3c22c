#include "analysis/crossing.hpp"

#include <algorithm>
#include <cmath>

namespace saltus {
namespace {

/// Null vectors of a square matrix that is nearly singular, by inverse iteration.
Vec null_vector(const Mat& A) {
  const Index n = A.rows();
  const Lu lu(A + 1e-11 * Mat::Identity(n, n));
  Vec v = Vec::LinSpaced(n, 1.0, 1.3);
  for (int k = 0; k < 5; ++k) v = lu.solve(v).normalized();
  return v;
}

class Surface {  // beta over (s, y)
 public:
  Surface(const Followed& followed, const Vec& scale, const CurvePoint& near, const CurvePoint& away)
      : followed_(followed), scale_(scale), origin_(near.z), t_(away.tangent) {
    Vec r;
    Mat here, there;
    fine_ = followed_.equations(near.z, r, here) && followed_.equations(away.z, r, there);
    if (!fine_) return;
    const Index n = scale.size();
    // A whole row may vanish at the place.
    rows_ = (here * scale.asDiagonal()).row_norms().cwiseMax((there * scale.asDiagonal()).row_norms());
    rows_ = rows_.cwiseMax(1e-300);
    Mat square(n, n);
    square.topRows(n - 1) = rows_.cwiseInverse().asDiagonal() * here * scale.asDiagonal();
    square.row(n - 1) = t_.transpose();
    q_ = null_vector(square);
    q_ -= q_.dot(t_) * t_;
    fine_ = q_.norm() > 1e-3;
    q_ = q_.normalized();
    d_ = null_vector(Mat(square.transpose())).head(n - 1);
    fine_ = fine_ && d_.norm() > 1e-3;
    d_ = d_.normalized();
  }

  bool fine() const { return fine_; }

  struct Place {
    Vec u;  ///< z - z0 in units of the scale
    double beta = 0, by_s = 0, by_y = 0;
    Vec u_by_s, u_by_y;
  };
  std::optional<Place> at(double s, double y) const {
    const Index n = scale_.size();
    Vec u = s * t_ + y * q_, r, rhs(n + 1);
    double beta = 0;
    Mat J, B = Mat::Zero(n + 1, n + 1);
    B.block(n - 1, 0, 1, n) = t_.transpose();
    B.block(n, 0, 1, n) = q_.transpose();
    B.block(0, n, n - 1, 1) = d_;
    for (int iteration = 0; iteration < 12; ++iteration) {
      if (!followed_.equations(origin_ + u.cwiseProduct(scale_), r, J)) return std::nullopt;
      B.block(0, 0, n - 1, n) = rows_.cwiseInverse().asDiagonal() * J * scale_.asDiagonal();
      rhs.head(n - 1) = -r.cwiseQuotient(rows_) - beta * d_;
      rhs[n - 1] = s - t_.dot(u);
      rhs[n] = y - q_.dot(u);
      const Lu lu(B);
      const Vec step = lu.solve(rhs);
      if (!step.allFinite() || step.norm() > 0.5) return std::nullopt;
      u += step.head(n);
      beta += step[n];
      if (step.norm() > 1e-12 && !(iteration > 3 && step.norm() < 1e-10)) continue;
      Vec e = Vec::Zero(n + 1);
      e[n - 1] = 1;
      const Vec by_s = lu.solve(e);
      e[n - 1] = 0;
      e[n] = 1;
      const Vec by_y = lu.solve(e);
      return Place{u, beta, by_s[n], by_y[n], by_s.head(n), by_y.head(n)};
    }
    return std::nullopt;
  }
  Vec point(const Vec& u) const { return origin_ + u.cwiseProduct(scale_); }

 private:
  const Followed& followed_;
  Vec scale_, origin_, t_, q_, d_, rows_;
  bool fine_ = false;
};

}  // namespace

std::optional<CurveCrossing> find_crossing(const Followed& followed, const Vec& scale, const CurvePoint& near,
                                           const CurvePoint& away) {
  constexpr double difference = 1e-5, farthest = 0.1, none = 1e-8;
  const Surface surface(followed, scale, near, away);
  if (!surface.fine()) return std::nullopt;
  double s = 0, y = 0, last = HUGE_VAL;
  for (int iteration = 0; iteration < 15; ++iteration) {
    const auto here = surface.at(s, y), by_s = surface.at(s + difference, y), by_y = surface.at(s, y + difference);
    if (!here || !by_s || !by_y) return std::nullopt;
    const double ss = (by_s->by_s - here->by_s) / difference, yy = (by_y->by_y - here->by_y) / difference;
    const double sy = 0.5 * (by_s->by_y - here->by_y + by_y->by_s - here->by_s) / difference;
    const double det = ss * yy - sy * sy;
    if (!(det < 0)) return std::nullopt;  // no saddle: nothing is met
    const double ds = -(yy * here->by_s - sy * here->by_y) / det, dy = -(ss * here->by_y - sy * here->by_s) / det;
    const double step = std::hypot(ds, dy);
    s += ds, y += dy;
    if (!(std::hypot(s, y) < farthest)) return std::nullopt;
    if (step > 1e-11 && !(step < 1e-8 && step > 0.2 * last)) {
      last = step;
      continue;
    }
    if (std::abs(here->beta) > none) return std::nullopt;  // they pass each other
    // ss a^2 + 2 sy a b + yy b^2 = 0
    const double root = std::sqrt(-det), m = -(sy + std::copysign(root, sy));
    CurveCrossing out{.z = surface.point(here->u)};
    std::vector<Vec> directions;
    for (const auto& [a, b] : {std::pair{m, ss}, std::pair{yy, m}})
      directions.push_back((a * here->u_by_s + b * here->u_by_y).normalized());
    const bool first = std::abs(directions[0].dot(away.tangent)) > std::abs(directions[1].dot(away.tangent));
    out.along = directions[first ? 0 : 1];
    out.other = directions[first ? 1 : 0];
    if (out.along.dot(away.tangent) < 0) out.along = -out.along;
    return out.along.allFinite() && out.other.allFinite() ? std::optional(out) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace saltus
