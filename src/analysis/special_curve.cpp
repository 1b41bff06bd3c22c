#include "analysis/special_curve.hpp"

#include <algorithm>

namespace saltus {

bool seek_both_ways(const CurvePoint& first, double value, const std::function<bool(const CurvePoint& from)>& finds) {
  const bool up = (value > first.last()) == (first.last_slope() > 0);
  return finds(up ? first : first.reversed()) || finds(up ? first.reversed() : first);
}

std::optional<Vec> other_direction(const Followed& followed, const Located& l) {
  if (l.other) return l.other;
  Vec r;
  Mat before, here;
  if (!followed.equations(l.before.z, r, before) || !followed.equations(l.point.z, r, here)) return std::nullopt;
  const Vec scale = followed.scale();
  Mat scaled = here * scale.asDiagonal();
  // A whole row may vanish at the point (x' = mu x - x^3): what is left of it is rounding.
  for (Index i = 0; i < scaled.rows(); ++i)
    scaled.row(i) /= std::max({scaled.row(i).norm(), before.row(i).cwiseProduct(scale.transpose()).norm(), 1e-300});
  scaled.conservativeResize(scaled.rows() + 1, scaled.cols());
  scaled.row(scaled.rows() - 1) = l.point.tangent.transpose();
  const Mat rest = null_space(scaled, 1e-5);
  if (rest.cols() == 0) return std::nullopt;
  return Vec(rest.col(0));
}

Mat unit_rows(Mat A) {
  for (Index i = 0; i < A.rows(); ++i) A.row(i) /= std::max(A.row(i).norm(), 1e-300);
  return A;
}

Followed special_curve(Followed branch, KeptTest equations, std::function<std::vector<Test>(const CurvePoint&)> tests,
                       std::function<bool(const std::string& type, const Located&)> add) {
  branch.equations = std::move(equations);
  branch.large = {};
  branch.residual = {};
  branch.slopes_differ = true;
  branch.tests = std::move(tests);
  branch.special = [add](const Located& l) { return add(l.test.name, l); };
  branch.pass = [add](const Located& l) {
    const std::string& name = l.test.name;
    if (name == "bogdanov-takens" || name.starts_with("resonance")) {
      add(name, l);
      return Passage{.why = name, .detail = "the pair is real beyond: a neutral saddle, where nothing bifurcates"};
    }
    add("degenerate", l);
    return Passage{.why = "signature", .detail = "another guard is zero here: the point is of another kind beyond"};
  };
  branch.renew = {};
  return branch;
}

Test cusp_test(const Mat& by_parameter, const Vec& left, const Vec& moved) {
  const Vec normal = by_parameter.transpose() * left;
  return {"cusp", (normal[0] * moved[1] - normal[1] * moved[0]) / std::max(normal.norm(), 1e-300)};
}

}  // namespace saltus
