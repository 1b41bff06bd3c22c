#include "analysis/equilibrium_curve.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "analysis/special_curve.hpp"
#include "base/index.hpp"

namespace saltus {
namespace {

/// Beside an eigenvalue that is zero all along, vanishes where another one is.
double second_zero(const Spectrum& e) {
  size_t zero = 0;
  for (size_t i = 1; i < e.size(); ++i) {
    if (std::abs(e[i]) < std::abs(e[zero])) zero = i;
  }
  std::complex<double> product = 1;
  double least = HUGE_VAL;
  for (size_t i = 0; i < e.size(); ++i) {
    if (i == zero) continue;
    product *= e[i] / (1e-300 + std::abs(e[i]));
    least = std::min(least, std::abs(e[i]));
  }
  return product.real() * least;
}

/// w^2 of the two eigenvalues +-iw that add up to zero; vanishes where both are zero.
double product_of_pair(const Spectrum& e) {
  double least = HUGE_VAL, product = 0;
  for (size_t i = 0; i < e.size(); ++i) {
    for (size_t j = i + 1; j < e.size(); ++j) {
      const double sum = std::abs(e[i] + e[j]) / (1e-300 + std::abs(e[i]) + std::abs(e[j]));
      if (sum < least) least = sum, product = (e[i] * e[j]).real();
    }
  }
  return product;
}

}  // namespace

void EquilibriumCurve::begin_at_special(const CurvePoint& first) {
  const Arc arc = arc_;
  seek_both_ways(first, options_.seek->value, [&](const CurvePoint& from) {
    arc_ = arc;
    basis_.resize(0, 0);
    sought_.reset();
    looking_ = 400;
    curve_.emplace(following_, curve_options());
    curve_->refresh_scale();
    curve_->walk(from);
    looking_ = 0;
    return sought_.has_value();
  });
  curve_.emplace(following_, curve_options());
  curve_->refresh_scale();
  book_.clear();
  if (!sought_) {
    book_.not_found("special",
                    fmt::format("the special point '{}' is not found again near its place", options_.seek->type));
    return;
  }
  const Located l = *sought_;
  sought_.reset();
  if (options_.second >= 0)
    follow_special(l);
  else
    follow_other(l);
}

bool EquilibriumCurve::is_sought(const Located& l, const std::string& type) {
  if (!options_.seek || looking_ == 0) return false;
  const bool same = type == options_.seek->type && std::abs(l.point.last() - options_.seek->value) < 1e-5 * scale_[n()];
  if (same) sought_ = l;
  return same;
}

void EquilibriumCurve::follow_other(const Located& l) {
  if (options_.seek->type == "branch") {
    if (const std::optional<Vec> direction = other_direction(following_, l)) {
      CurvePoint along = l.point;
      along.tangent = *direction;
      both_sides_of(along);
      return;
    }
  }
  if (options_.seek->type == "hopf") {
    follow_born(l);
    return;
  }
  if (options_.seek->type == "boundary-equilibrium" && follow_from_boundary(l)) return;
  book_.clear();
  book_.not_found("special", fmt::format("no other branch begins at this point of type '{}'", options_.seek->type));
}

bool EquilibriumCurve::follow_from_boundary(const Located& l) {
  const Boundary boundary = boundary_at(l);
  const size_t wanted = at(options_.seek->other),
               others = boundary.half_branches.empty() ? 0 : boundary.half_branches.size() - 1;
  if (wanted < others) return follow_half_branch(l, boundary.half_branches[wanted + 1]);
  if (wanted > others) return false;
  const std::optional<OrbitOptions> cycle = cycle_beside(l, boundary);
  if (!cycle) return false;
  BranchOptions options = options_;
  options.seek.reset();
  book_.branch = follow_orbit(model_, *cycle, options);
  return true;
}

bool EquilibriumCurve::follow_half_branch(const Located& l, const HalfBranch& half) {
  arc_ = half.arc;
  basis_.resize(0, 0);
  curve_->refresh_scale();
  Vec z(n() + 1);
  z << column_at(half.state.data(), n()), half.value;
  std::optional<CurvePoint> first = curve_->start(z);
  if (!first) return false;
  if (first->last_slope() * (half.value - l.point.last()) < 0) first = first->reversed();
  book_.clear();
  book_.one_way(told(*first), [&] { return walk(*first, 1); });
  return true;
}

std::optional<OrbitOptions> EquilibriumCurve::cycle_beside(const Located& l, const Boundary& boundary) {
  if (!model_.autonomous() || n() < 2) return std::nullopt;
  const double value = l.point.last(), range = options_.high - options_.low;
  for (const bool backward : {false, true}) {
    if (backward && !model_.form.jumps.empty()) continue;
    for (const double side : {1.0, -1.0}) {
      double extent = 0;
      for (const double distance : {5e-4, 1e-3}) {
        OrbitOptions o{.run = start_.run, .backward = backward, .most_returns = 300};
        o.run.parameters = parameter_values(
            model_, std::vector<GivenParameter>{{options_.parameter, value + side * distance * range}});
        const Vec start = column_at(l.point.z.data(), n()) + beside(l, boundary, distance * range);
        o.run.initial.assign(start.begin(), start.end());
        o.run.progress = [calls = 0](double) mutable { return ++calls < 200; };
        const Orbit orbit = try_orbit(program_, o);
        if (!orbit.found) break;
        const double before = std::exchange(extent, extent_of(orbit));
        if (before == 0) continue;
        if (!(extent > 1.8 * before && extent < 2.2 * before)) break;
        o.run.initial = orbit.state;
        o.run.from = orbit.t;
        o.guess = true;
        o.time = orbit.period;
        return o;
      }
    }
  }
  return std::nullopt;
}

Vec EquilibriumCurve::beside(const Located& l, const Boundary& boundary, double distance) {
  const std::vector<double> x = state_of(l.point.z);
  const Vec sizes = scale_.head(n());
  double apart = 0;  // in units of the sizes
  for (const Guard& g : boundary.zero) {
    const Variation::GuardSlope slope = variation_.guard(g, arc_, x, time(), directions_);
    const double steepness = slope.by_state.cwiseProduct(sizes).norm();
    if (steepness > 0) apart = std::max(apart, std::abs(slope.by_parameter[0]) * distance / steepness);
  }
  for (const HalfBranch& h : boundary.half_branches) {
    const Vec moved = (column_at(h.state.data(), n()) - column_at(x.data(), n())).cwiseQuotient(sizes);
    apart = std::max(apart, moved.norm() * distance / std::abs(h.value - l.point.last()));
  }
  const Vec askew = Vec::LinSpaced(n(), 1.0, 1.7).normalized();
  return 2 * apart * askew.cwiseProduct(sizes);
}

double EquilibriumCurve::extent_of(const Orbit& orbit) {
  constexpr int samples = 64;
  const Trajectory& run = orbit.trajectory;
  double largest = 0;
  for (size_t i = 0; i < orbit.state.size(); ++i) {
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (int k = 0; k < samples; ++k) {
      const double x = run(run.start_time + (run.end.t - run.start_time) * k / samples)[i];
      low = std::min(low, x), high = std::max(high, x);
    }
    largest = std::max(largest, high - low);
  }
  return largest;
}

void EquilibriumCurve::follow_born(const Located& l) {
  bind(l.point.z);
  const std::vector<double> x = state_of(l.point.z);
  const Mat A = variation_.rate_slopes(arc_, x, time(), Mat(ix(parameters_.size()), 0)).leftCols(n());
  double frequency = 0;
  for (const std::complex<double>& e : eigenvalues_at(l.point.z)) {
    if (e.imag() > 0 && std::abs(e.real()) <= 1e-5 * std::abs(e)) frequency = e.imag();
  }
  if (frequency == 0) {
    book_.not_found("special", "the plane in which cycles are born is not found");
    return;
  }
  // The plane of the pair: where A^2 + w^2 vanishes, by inverse iteration.
  const double square = frequency * frequency;
  const Lu lu(A * A + (1 + 1e-9) * square * Mat::Identity(n(), n()));
  Vec direction = Vec::LinSpaced(n(), 1.0, 1.7);
  for (int k = 0; k < 4; ++k) direction = lu.solve(direction).normalized();
  OrbitOptions start{.run = start_.run};
  start.run.parameters = parameters_;
  start.run.initial = x;
  BranchOptions options = options_;
  options.seek.reset();
  book_.branch = follow_cycles(model_, start, {x, {direction.begin(), direction.end()}, 2 * M_PI / frequency}, options);
}

void EquilibriumCurve::both_sides_of(const CurvePoint& along) {
  constexpr double distance = 2e-3;
  std::vector<BranchEnd> ends;
  const Arc arc = arc_;
  const Vec scale = scale_;
  for (const double side : {-1.0, 1.0}) {
    arc_ = arc;
    basis_.resize(0, 0);
    scale_ = scale;
    curve_->refresh_scale();
    CurvePoint from = along;
    from.tangent *= side;
    const std::optional<CurvePoint> first =
        curve_->correct(from, distance, from.z + distance * from.tangent.cwiseProduct(scale_));
    if (side < 0 && first) book_.begin_at(told(*first));
    if (!first) {
      ends.push_back({side > 0 ? 1 : -1, "failed", "no point on the other branch is found", along.last()});
    } else {
      ends.push_back(book_.walked([&] {
        point(*first);
        return walk(*first, side > 0 ? 1 : -1);
      }));
    }
    if (side < 0) book_.turn_round();
  }
  book_.branch.ends = ends;
}

void EquilibriumCurve::follow_special(const Located& l) {
  kept_ = l.test.name;
  followed_.push_back(options_.second);
  const double other = start_.run.parameters[at(options_.second)];
  scale_.conservativeResize(n() + 2);
  scale_[n() + 1] = std::max(options_.second_high - options_.second_low, 1e-300);
  parameters_.clear();
  Vec z(n() + 2);
  z << l.point.z, other;
  const KeptTest kept([this](const Vec& u, Vec& r, Mat& J) { return equations(u, r, J); },
                      [this](const Vec& u) { return kept_value(u); }, [this] { return scale_; });
  following_ = special_curve(
      problem(), kept, [this](const CurvePoint& p) { return curve_tests(p); },
      [this](const std::string& type, const Located& at_point) {
        return add(place(type, at_point.point, at_point.before));
      });
  curve_.emplace(following_, curve_options());
  const std::optional<CurvePoint> first = curve_->start(z);
  if (!first) {
    book_.not_found("newton", "Newton's method does not converge on the curve of the special point");
    return;
  }
  both_ways(*first);
}

double EquilibriumCurve::kept_value(const Vec& z) {
  Vec r;
  Mat J;
  if (!equations(z, r, J)) return std::nan("");
  if (kept_ == "fold" || kept_ == "branch") return singular_(J.leftCols(n()));
  if (kept_ == "hopf") return hopf_test(eigenvalues_at(z));
  for (const GuardValue& g : guards(arc_, state_of(z))) {
    if (name_of(g.guard) == kept_) return g.value;
  }
  return std::nan("");
}

std::optional<double> EquilibriumCurve::lyapunov(const Vec& z) {
  bind(z);
  const std::vector<double> x = state_of(z);
  if (!lyapunov_ || !(lyapunov_mode_ == arc_.mode)) lyapunov_.emplace(model_, arc_, time());
  lyapunov_mode_ = arc_.mode;
  return lyapunov_->exists() ? lyapunov_->at(matrix(arc_, x), x, parameters_) : std::nullopt;
}

std::vector<Test> EquilibriumCurve::curve_tests(const CurvePoint& p) {
  std::vector<Test> out;
  Vec r;
  Mat J;
  if (!equations(p.z, r, J)) return out;
  const Spectrum e = eigenvalues_at(p.z);
  if (kept_ == "fold") {
    singular_(J.leftCols(n()));
    out.push_back(cusp_test(J.rightCols(2), singular_.left(), p.tangent.tail(2).cwiseProduct(scale_.tail(2))));
    if (e.size() > 1) out.push_back({"bogdanov-takens", second_zero(e)});
  }
  if (kept_ == "hopf") {
    out.push_back({"bogdanov-takens", product_of_pair(e), true});
    if (const std::optional<double> l1 = lyapunov(p.z)) out.push_back({"bautin", *l1});
  }
  for (const GuardValue& g : guards(arc_, state_of(p.z))) {
    if (name_of(g.guard) != kept_) out.push_back({name_of(g.guard), g.value, true});
  }
  return out;
}

}  // namespace saltus
