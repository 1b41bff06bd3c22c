#include "analysis/orbit_curve.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "analysis/special_curve.hpp"

namespace saltus {

void OrbitCurve::begin_at_special(const CurvePoint& first) {
  const OrbitProblem::Frozen frozen = problem_.frozen_signature();
  seek_both_ways(first, options_.seek->value, [&](const CurvePoint& from) {
    problem_.restore(frozen);
    looking_ = 60;
    curve_.emplace(followed_, curve_options());
    curve_->refresh_scale();
    walk(from, 1);
    looking_ = 0;
    return sought_.has_value();
  });
  curve_.emplace(followed_, curve_options());
  book_.branch.points.clear();
  book_.branch.special.clear();
  if (!sought_) {
    book_.not_found("special",
                    fmt::format("the special point '{}' is not found again near its place", options_.seek->type));
    return;
  }
  const Located l = *sought_;
  if (options_.second >= 0)
    follow_special(l);
  else
    follow_other(l);
}

bool OrbitCurve::is_sought(const Located& l, const std::string& type) {
  const bool same = type == options_.seek->type &&
                    std::abs(l.point.last() - options_.seek->value) < 1e-5 * (options_.high - options_.low);
  if (same) sought_ = l;
  return same;
}

void OrbitCurve::follow_other(const Located& l) {
  const std::string& type = options_.seek->type;
  problem_.put(l.point.z);
  if (type == "flip" || type == "symmetry") {
    if (const std::optional<CurvePoint> first = unfolded(l, type == "flip")) return one_way(*first);
  }
  if (type == "branch" && problem_.repeats(view(l.point))) {  // an orbit of half the period is what flips here
    BranchOptions options = options_;
    options.seek.reset();
    book_.branch = follow_orbit(model_, half_of(l), options);
    return;
  }
  if (type == "branch") {
    if (const std::optional<Vec> direction = other_direction(followed_, l); direction && follow_crossing(l, *direction))
      return;
  }
  std::optional<OrbitOptions> beside =
      type == "impact-grazing" || type == "grazing" ? orbit_without_impact(l) : std::nullopt;
  problem_.restore(sought_signature_);
  if (!beside) beside = orbit_beside(l);
  if (beside) {
    BranchOptions options = options_;
    options.seek.reset();
    book_.branch = follow_orbit(model_, *beside, options);
    return;
  }
  book_.not_found("special", fmt::format("no other branch is found to begin at this point of type '{}'", type));
}

bool OrbitCurve::follow_crossing(const Located& l, const Vec& direction) {
  const auto on_it = [&](double distance) -> std::optional<CurvePoint> {
    CurvePoint from{.z = l.point.z, .tangent = distance > 0 ? direction : Vec(-direction)};
    from.z += std::abs(distance) * from.tangent.cwiseProduct(problem_.scale());
    const std::optional<CurvePoint> p = kept_apart(from);
    if (!p) return std::nullopt;
    const Vec moved = (p->z - l.point.z).cwiseQuotient(problem_.scale());
    return moved.dot(from.tangent) > 0.9 * moved.norm() ? p : std::nullopt;
  };
  for (const double distance : {3e-3, 1e-3, 1e-4}) {
    const std::optional<CurvePoint> there = on_it(distance), back = on_it(-distance);
    if (!there && !back) continue;
    // The two ends of a pitchfork are mirror images.
    const bool pitchfork = std::abs(direction[direction.size() - 1]) < 1e-4;
    if (!there || !back || pitchfork) {
      one_way(there ? *there : *back);
      return true;
    }
    const OrbitProblem::Frozen frozen = problem_.frozen_signature();
    book_.both_ways(
        told(*there),
        [&] {
          book_.point(told(*back));
          return walk(*back, -1);
        },
        [&] {
          problem_.restore(frozen);
          curve_->refresh_scale();
          return walk(*there, 1);
        });
    return true;
  }
  return false;
}

std::optional<CurvePoint> OrbitCurve::unfolded(const Located& l, bool twice) {
  OrbitView v;
  problem_.view(l.point.z, v, false);
  const Vec direction = problem_.unfold(v.matrix);
  const double value = l.point.last(), range = options_.high - options_.low;
  for (const double share : {5e-3, 1e-3, 2e-4, 4e-5, 8e-6, 1e-6}) {
    const std::optional<CurvePoint> closer = moved_by(share / 2, direction, l, twice);
    const std::optional<CurvePoint> first = moved_by(share, direction, l, twice);
    if (!closer || !first || !begins_here(*first, l, direction, share)) continue;
    // Half as far away the parameter is a quarter as far: an orbit that is only near by is not.
    const double far = first->last() - value, near = closer->last() - value;
    constexpr double nothing = 1e-11, far_away = 1e-2;
    const bool quadratic = near / far > 0.15 && near / far < 0.4;
    if (std::abs(far) > far_away * range || (std::abs(far) > nothing * range && !quadratic)) continue;
    first_step_ = 4 * share;
    curve_.emplace(followed_, curve_options());
    curve_->refresh_scale();
    return first;
  }
  return std::nullopt;
}

std::optional<CurvePoint> OrbitCurve::moved_by(double share, const Vec& direction, const Located& l, bool twice) {
  problem_.restore(sought_signature_);
  problem_.put(l.point.z);
  const std::optional<Vec> z = problem_.take_other(direction * share, twice);
  if (!z) return std::nullopt;
  CurvePoint from{.z = *z, .tangent = Vec::Zero(z->size())};
  from.tangent.head(direction.size()) = direction.cwiseQuotient(problem_.shooting().size());
  from.tangent.normalize();
  return kept_apart(from);
}

bool OrbitCurve::begins_here(const CurvePoint& first, const Located& l, const Vec& direction, double share) {
  constexpr double near = 0.5;
  const Index n = direction.size();
  const Vec off = first.z.head(n) - l.point.z.head(n) - share * direction;
  if (off.cwiseQuotient(problem_.shooting().size()).norm() > near * share) return false;
  OrbitView v;
  return problem_.view(first.z, v, true) && admissible(v) && !problem_.repeats(v, 2, 0.1 * share);
}

OrbitOptions OrbitCurve::half_of(const Located& l) {
  OrbitOptions there = settling_from(l, l.point.last());
  there.guess = true;
  there.time = problem_.period_of(l.point.z) / 2;
  return there;
}

std::optional<OrbitOptions> OrbitCurve::orbit_beside(const Located& l) {
  const double value = l.point.last(), range = options_.high - options_.low;
  problem_.put(l.point.z);
  const double period = problem_.period_of(l.point.z);
  for (const double distance : {1e-4, 1e-3, 1e-2}) {
    for (const double side : {1.0, -1.0}) {
      OrbitOptions there = settling_from(l, value + side * distance * range);
      const Orbit orbit = try_orbit(model_, there);
      if (!orbit.found) continue;
      const double times = orbit.period / period;
      const bool multiple = times > 1.5 && std::abs(times - std::round(times)) < 0.05;
      const bool broken = problem_.symmetry() && !orbit.symmetric && std::abs(times - 1) < 0.05;
      if (!multiple && !broken) continue;
      there.run.initial = orbit.state;
      there.run.from = orbit.t;
      there.guess = true;
      there.time = orbit.period;
      return there;
    }
  }
  return std::nullopt;
}

OrbitOptions OrbitCurve::settling_from(const Located& l, double value) {
  problem_.put(l.point.z);
  const Vec& x = problem_.legs()[0].x;
  OrbitOptions there = start_;
  there.guess = false;
  there.returns = 0;
  there.time = 0;
  there.most_returns = 300;
  there.run.parameters = parameter_values(model_, std::vector<GivenParameter>{{options_.parameter, value}});
  there.run.initial.assign(x.begin(), x.end());
  there.run.from = problem_.start_time();
  there.clock_from = start_.clock_from.value_or(start_.run.from);
  there.run.until = there.run.from + problem_.direction() * 10 * problem_.period_of(l.point.z);
  return there;
}

void OrbitCurve::follow_special(const Located& l) {
  problem_.restore(sought_signature_);
  kept_ = l.test.name;
  const Vec there = without_kept_impact(l).value_or(l.point.z);
  const Vec z = problem_.follow_also(there, options_.second, options_.second_high - options_.second_low);
  const KeptTest kept([this](const Vec& u, Vec& r, Mat& J) { return problem_.equations(u, r, J); },
                      [this](const Vec& u) { return kept_value(u); }, [this] { return problem_.scale(); });
  followed_ = special_curve(
      functions(), kept, [this](const CurvePoint& p) { return curve_tests(p); },
      [this](const std::string& type, const Located& at_point) {
        SpecialPoint s = place(type, at_point);
        const bool moves_over = at_point.test.name.ends_with("of its leg");
        if (type == "degenerate")
          s.detail = moves_over ? fmt::format("its place meets the {}: the point is of another kind beyond",
                                              at_point.test.name)
                                : fmt::format("{} as well", type_of(at_point));
        return add(std::move(s), at_point.point);
      });
  followed_.pass = [this, ends = followed_.pass](const Located& at_point) {
    const std::optional<Passage> passage = pass_on_curve(at_point);
    return passage ? *passage : ends(at_point);
  };
  followed_.anew = [this](const Located& at_point) { return past_the_cut_on_curve(at_point); };
  followed_.renew = [this](const CurvePoint& p) { return renew_on_curve(p); };
  curve_.emplace(followed_, curve_options());
  const std::optional<CurvePoint> first = curve_->start(z);
  if (!first) {
    book_.not_found("special", "Newton's method does not converge on the curve of the special point");
    return;
  }
  beside_ = zeros_at(first->z);
  both_ways(*first);
}

std::optional<Passage> OrbitCurve::past_the_cut_on_curve(const Located& l) {
  if (!meets_cut(l)) return std::nullopt;
  const std::optional<Vec> z = cut_on_curve(l.before.z);
  if (!z) return std::nullopt;
  return Passage{.goes_on = true, .z = *z, .along = l.before.last_slope() > 0 ? 1.0 : -1.0};
}

std::optional<Passage> OrbitCurve::pass_on_curve(const Located& l) {
  if (meets_cut(l)) return Passage{.why = "failed", .detail = "an event meets the place where the orbit is cut"};
  if (!type_of(l).empty()) return std::nullopt;
  beside_.insert(l.test.name);  // nothing happens there
  return Passage{.goes_on = true, .z = l.behind.z, .along = l.before.last_slope() > 0 ? 1.0 : -1.0};
}

std::optional<Vec> OrbitCurve::renew_on_curve(const CurvePoint& p) {
  const bool turns = std::abs(p.last_slope()) < 1e-6;
  if (!turns && problem_.needs_cut(p.z)) {
    if (const std::optional<Vec> z = cut_on_curve(p.z)) return z;
  }
  return problem_.renew_phase(p.z) ? std::optional<Vec>(p.z) : std::nullopt;
}

std::optional<Vec> OrbitCurve::cut_on_curve(const Vec& z) {
  if (kept_.starts_with("time ")) return std::nullopt;  // of a leg that a run need not have
  const OrbitProblem::Frozen old = problem_.frozen_signature();
  const std::string kept = kept_;
  const Monitor* monitor = nullptr;
  const std::vector<Monitor> before = view({.z = z}).monitors;
  for (const Monitor& m : before)
    if (m.name == kept_) monitor = &m;
  const auto events = [](const std::vector<Leg>& legs) {
    return std::count_if(legs.begin(), legs.end(), [](const Leg& leg) { return leg.happens; });
  };
  std::optional<Vec> cut = problem_.cut_anew(z);
  seen_.resize(0);
  if (cut && events(problem_.legs()) != events(old.legs)) cut.reset();
  if (cut && monitor) {  // its leg has another number now
    const Monitor* nearest = nullptr;
    const std::vector<Monitor>& after = view({.z = *cut}).monitors;
    for (const Monitor& m : after) {
      const Guard &a = m.guard.guard, &b = monitor->guard.guard;
      if (a.kind != b.kind || a.item != b.item || a.side != b.side) continue;
      if (!nearest || std::abs(m.lowest.value) < std::abs(nearest->lowest.value)) nearest = &m;
    }
    if (nearest) kept_ = nearest->name;
    if (!nearest || std::abs(nearest->lowest.value) > 1e-6) cut.reset();
  }
  singular_ = {};
  if (cut) curve_->refresh_scale();
  if (cut && curve_->start(*cut)) {
    beside_ = zeros_at(*cut);
    return cut;
  }
  kept_ = kept;
  problem_.restore(old);
  curve_->refresh_scale();
  seen_.resize(0);
  return std::nullopt;
}

std::optional<Vec> OrbitCurve::without_kept_impact(const Located& l) {
  seen_.resize(0);
  const std::optional<size_t> impact = vanishing_impact(view(l.point));
  if (!impact) return std::nullopt;
  const Guard guard = problem_.legs()[*impact].guard;
  const std::optional<Vec> legs = without_impact(*impact, l);
  curve_->refresh_scale();
  const std::optional<CurvePoint> there = legs ? curve_->start(*legs) : std::nullopt;
  seen_.resize(0);
  if (there) {
    const Monitor* touched = nullptr;
    for (const Monitor& m : view(*there).monitors) {
      if (m.guard.guard.kind != guard.kind || m.guard.guard.item != guard.item) continue;
      if (!touched || std::abs(m.lowest.value) < std::abs(touched->lowest.value)) touched = &m;
    }
    if (touched && touched->lowest.where == Lowest::Where::inside && distance_from(there->z, l) < 1e-3) {
      kept_ = touched->name;
      return there->z;
    }
  }
  problem_.restore(sought_signature_);
  curve_->refresh_scale();
  seen_.resize(0);
  return std::nullopt;
}

double OrbitCurve::kept_value(const Vec& z) {
  const bool by_matrix = kept_ == "flip" || kept_ == "symmetry" || kept_ == "torus";
  if (kept_ == "fold" || kept_ == "branch") {
    Vec r;
    Mat J;
    if (!problem_.equations(z, r, J)) return std::nan("");
    const Index size = J.rows();
    // A row may vanish at a fold but for the parameters: an orbit that symmetry keeps from turning.
    return singular_(unit_rows(J * problem_.scale().asDiagonal()).leftCols(size));
  }
  if (kept_.starts_with("time ")) {
    const Index n = problem_.program().states();
    return z[(n + 1) * static_cast<Index>(std::stoul(kept_.substr(5))) + n] * problem_.direction();
  }
  OrbitView v;
  if (!problem_.view(z, v, !by_matrix)) return std::nan("");
  if (kept_ == "torus") return torus_test(v.roots);
  if (by_matrix) return flip_test(v.roots);
  for (const Monitor& m : v.monitors) {
    if (m.name == kept_) return m.lowest.value;
  }
  return std::nan("");
}

std::vector<Test> OrbitCurve::curve_tests(const CurvePoint& p) {
  const OrbitView& v = view(p);
  std::vector<Test> out;
  if (!fine_) return out;
  if (kept_ == "fold") {
    Vec r;
    Mat J;
    if (!problem_.equations(p.z, r, J)) return out;
    const Index size = J.rows();
    const Mat scaled = unit_rows(J * problem_.scale().asDiagonal());
    singular_(scaled.leftCols(size));
    out.push_back(cusp_test(scaled.rightCols(2), singular_.left(), p.tangent.tail(2)));
  }
  add_resonances(v.roots, out);
  for (const Test& t : signature_tests(v)) {
    if (t.name != kept_ && !beside_.contains(t.name)) out.push_back(t);
  }
  for (const Monitor& m : v.monitors) {
    if (m.name != kept_ || m.jump) continue;
    out.push_back({"start of its leg", m.lowest.off_start(), true});
    out.push_back({"end of its leg", m.lowest.off_end(), true});
  }
  return out;
}

/// Two multipliers on the unit circle at once; of a symmetric orbit those of its half map.
void OrbitCurve::add_resonances(const Spectrum& roots, std::vector<Test>& out) const {
  const std::string whose = problem_.symmetry() ? " of the half map" : "";
  const auto resonance = [&](int n) { return fmt::format("resonance 1:{}{}", n, whose); };
  if (kept_ == "torus") {
    const double cosine = cosine_of_pair(roots);
    out.push_back({resonance(1), cosine - 1, true});  // the pair is real beyond these two
    out.push_back({resonance(2), cosine + 1, true});
    out.push_back({resonance(3), cosine + 0.5});
    out.push_back({resonance(4), cosine});
  }
  if (kept_ == "fold") {
    out.push_back({resonance(1), second_passes_test(roots, 1)});
    out.push_back({"fold-flip", flip_test(roots)});
  }
  if (kept_ == "flip" || kept_ == "symmetry") {
    out.push_back({resonance(2), second_passes_test(roots, -1)});
    out.push_back({"fold-flip", passes_test(roots, 1)});
  }
}

std::set<std::string> OrbitCurve::zeros_at(const Vec& z) {
  constexpr double nothing = 1e-7;
  std::set<std::string> out;
  const OrbitView& v = view({.z = z});
  for (const Test& t : signature_tests(v)) {
    if (std::abs(t.value) < (t.name.starts_with("time ") ? vanished * v.period : nothing)) out.insert(t.name);
  }
  // On a leg without length there is nothing to judge.
  for (const Monitor& m : v.monitors) {
    if (out.contains(fmt::format("time {}", m.leg))) out.insert(m.name);
  }
  return out;
}

}  // namespace saltus
