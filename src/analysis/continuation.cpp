#include "analysis/continuation.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/crossing.hpp"

namespace saltus {
namespace {

constexpr int most_iterations = 12;
constexpr double same_place = 1e-5;       ///< zeros nearer than this share of a step are one place
constexpr double shortest_halved = 1e-5;  ///< it is not halved again for a zero that is not found on it
constexpr double near_enough = 1e-5;      ///< steps below it are followed by one with the same matrix
constexpr int easy = 4, hard = 7;         ///< iterations of Newton's method after which steps grow, or shrink

const Test* find(const std::vector<Test>& tests, const std::string& name) {
  for (const Test& t : tests) {
    if (t.name == name) return &t;
  }
  return nullptr;
}

bool changes(const Test& a, const Test& b) {
  return std::isfinite(a.value) && std::isfinite(b.value) && a.value != 0 && (a.value > 0) != (b.value > 0);
}

/// [F_z; border] of what is followed at a point: one matrix, or what stands for it.
class BorderedSlopes {
 public:
  BorderedSlopes(const Followed& followed, const Vec& border, const Vec& scale)
      : followed_(followed), border_(border), scale_(scale), large_(followed.large && followed.large()) {}

  /// At z; false where they are not to be had.
  bool form(const Vec& z, Vec& r) {
    if (large_) return followed_.large_equations(z, r, slopes_);
    if (!followed_.equations(z, r, J_)) return false;
    const Index n = z.size();
    Mat B(n, n);
    B.topRows(n - 1) = J_;
    B.row(n - 1) = border_.transpose();
    lu_.factor(B);
    return true;
  }
  /// y with F_z y = r and border.y = value.
  Vec solve(const Vec& r, double value) const {
    if (large_) return slopes_.solve(border_.cwiseProduct(scale_), r, value).cwiseProduct(scale_);
    Vec right(r.size() + 1);
    right.head(r.size()) = r;
    right[r.size()] = value;
    return lu_.solve(right);
  }
  /// det [F_z; t] in units of the scale, rows of length one.
  double orientation(const Vec& tangent) const {
    if (large_) return slopes_.orientation(tangent);
    const Index n = tangent.size();
    Mat S(n, n);
    S.topRows(n - 1) = J_ * scale_.asDiagonal();
    for (Index i = 0; i + 1 < n; ++i) {
      const double length = S.row(i).norm();
      if (length > 0) S.row(i) /= length;
    }
    S.row(n - 1) = tangent.transpose();
    return Lu(S).determinant();
  }

 private:
  const Followed& followed_;
  const Vec &border_, &scale_;
  bool large_;
  Mat J_;
  Lu lu_;
  LargeSlopes slopes_;
};

}  // namespace

/// Newton on [F(z); border.z = value]. The tangent of the answer points along `along`.
std::optional<CurvePoint> Continuation::newton(Vec z, const Vec& border, double value, const Vec& along,
                                               bool rough) const {
  if (scale_.size() != z.size()) scale_ = followed_.scale();
  const Vec& scale = scale_;
  const Index n = z.size();
  Vec r;
  BorderedSlopes slopes(followed_, border, scale);
  double last = HUGE_VAL;
  bool contracts = true;  // with the matrix as it is
  for (int iteration = 0; iteration < most_iterations; ++iteration) {
    const bool chord = rough && followed_.residual && contracts && last < near_enough;
    if (chord ? !followed_.residual(z, r) : !slopes.form(z, r)) return std::nullopt;
    const Vec step = slopes.solve(-r, value - border.dot(z));
    if (!step.allFinite()) return std::nullopt;
    const double size = step.cwiseQuotient(scale).norm();
    if (size > 0.5 || (iteration > 2 && size > 2 * last && size > 1e-9)) return std::nullopt;
    z += step;
    contracts = size < 0.01 * last;
    // The residual after a step is its square for Newton's method, and smaller by the same factor again with the old
    // matrix.
    const bool done =
        size < 1e-13 || (last < 1e-6 && size < 1e-11) ||
        (chord ? contracts && size * (size / last) < 1e-13
               : (size < 1e-8 && size > 0.2 * last) || (rough && !followed_.slopes_differ && size < 1e-7 && contracts));
    last = size;
    if (!done) continue;
    CurvePoint out{.z = z, .tangent = Vec::Zero(n), .iterations = iteration + 1};
    const Vec t = slopes.solve(Vec::Zero(n - 1), 1);
    if (!t.allFinite()) return std::nullopt;
    out.tangent = t.cwiseQuotient(scale).normalized();
    if (out.tangent.dot(along) < 0) out.tangent = -out.tangent;
    out.orientation = slopes.orientation(out.tangent);
    return out;
  }
  return std::nullopt;
}

std::optional<CurvePoint> Continuation::start(Vec z) const {
  scale_ = followed_.scale();
  const Index n = z.size();
  Vec border = Vec::Zero(n);
  border[n - 1] = 1;
  return newton(z, border, z[n - 1], border);
}

std::optional<CurvePoint> Continuation::correct(const CurvePoint& from, double s, Vec guess, bool rough) const {
  const Vec border = from.tangent.cwiseQuotient(scale_);
  return newton(std::move(guess), border, border.dot(from.z) + s, from.tangent, rough);
}

std::optional<CurvePoint> Continuation::correct_at(const CurvePoint& along, Vec guess, Index kept) const {
  Vec border = Vec::Zero(guess.size());
  border[kept] = 1;
  const double value = guess[kept];
  return newton(std::move(guess), border, value, along.tangent);
}

Index Continuation::outside(const Vec& z, const Vec& tangent) const {
  const Index count = static_cast<Index>(options_.bounds.size());
  for (Index k = 0; k < count; ++k) {
    const Bound& b = options_.bounds[static_cast<size_t>(k)];
    const Index i = z.size() - count + k;
    if (z[i] < b.low || z[i] > b.high) return i;
    if ((z[i] == b.low && tangent[i] < 0) || (z[i] == b.high && tangent[i] > 0)) return i;
  }
  return -1;
}

std::optional<CurvePoint> Continuation::at_bound(const CurvePoint& along, Vec guess, Index out) const {
  const Bound& limits = options_.bounds[options_.bounds.size() - static_cast<size_t>(guess.size() - out)];
  guess[out] = std::abs(guess[out] - limits.low) < std::abs(guess[out] - limits.high) ? limits.low : limits.high;
  return correct_at(along, std::move(guess), out);
}

/// The cubic through two points and their tangents, at a share s/step of the way.
Vec Continuation::between(const CurvePoint& a, const CurvePoint& b, double s, double step) const {
  const Vec& scale = scale_;
  const double u = s / step;
  const Vec from = a.tangent.cwiseProduct(scale) * step;
  Vec to = b.tangent.cwiseProduct(scale);
  // As long as b is from a along the first tangent.
  const double along = b.tangent.dot(a.tangent);
  to *= along > 0.1 ? step / along : step;
  return (1 + 2 * u) * (1 - u) * (1 - u) * a.z + u * (1 - u) * (1 - u) * from + u * u * (3 - 2 * u) * b.z +
         u * u * (u - 1) * to;
}

/// The zero of a test between two points: bracketed, by the secant where it is trusted, else by halves.
std::optional<Located> Continuation::locate(const CurvePoint& a, const CurvePoint& b, double step, const Test& from,
                                            const Test& to) const {
  double low = 0, high = step, f_low = from.value, f_high = to.value;
  double weight_low = 1, weight_high = 1;       // an end that stays twice counts half (Illinois)
  int side = 0;                                 // which end was moved last
  CurvePoint best = b, before = a, behind = b;  // of the bracket
  double best_s = step, best_f = std::abs(f_high);
  for (int k = 0; k < 80; ++k) {
    if (high - low < 4e-16 * step || best_f == 0) break;
    const double wl = f_low * weight_low, wh = f_high * weight_high;
    double s = low - wl * (high - low) / (wh - wl);
    if (k % 8 == 7 || !(s > low && s < high)) s = 0.5 * (low + high);
    std::optional<CurvePoint> here = correct(a, s, between(a, b, s, step));
    for (const double share : {0.5, 0.25, 0.75}) {
      if (here || (from.breaks && share != 0.5)) break;
      s = low + share * (high - low);
      here = correct(a, s, between(a, b, s, step));
    }
    // Curves that meet do so on a straight line; a short step is one.
    if (!here && (from.breaks ? step <= shortest_halved : high - low < 0.05 * step)) {
      const double share = f_low / (f_low - f_high);
      best = before;
      best.z += share * (behind.z - before.z);
      best_s = low + share * (high - low);
      break;
    }
    if (!here) return std::nullopt;
    const std::vector<Test> tests = followed_.tests(*here);
    const Test* t = find(tests, from.name);
    if (!t || !std::isfinite(t->value)) return std::nullopt;
    const double moved = std::abs(s - best_s);
    if (std::abs(t->value) <= best_f) best = *here, best_s = s, best_f = std::abs(t->value);
    if ((t->value > 0) == (f_low > 0)) {
      low = s, f_low = t->value, weight_low = 1, before = *here;
      if (side == -1) weight_high *= 0.5;
      side = -1;
    } else {
      high = s, f_high = t->value, weight_high = 1, behind = *here;
      if (side == 1) weight_low *= 0.5;
      side = 1;
    }
    if (k > 2 && moved < 1e-14 * step) break;
  }
  // A test that jumps through zero (a determinant whose row vanishes with it) is not nearest to zero where it does.
  if (best_s < low || best_s > high) {
    const bool first = std::abs(f_low) < std::abs(f_high);
    best = first ? before : behind;
    best_s = first ? low : high;
  }
  Located out{from, best, a, b, best_s, a.orientation * b.orientation < 0};
  if (from.meets && out.meets) refine(out, step);
  return out;
}

void Continuation::refine(Located& l, double step) const {
  constexpr double near = 0.1;  // of the step, from where the test vanishes
  const std::optional<CurveCrossing> crossing = find_crossing(followed_, scale_, l.point, l.before);
  if (!crossing || (crossing->z - l.point.z).cwiseQuotient(scale_).norm() > near * step) return;
  l.point.z = crossing->z;
  l.point.tangent = crossing->along;
  l.other = crossing->other;
}

std::vector<Located> Continuation::zeros_between(const CurvePoint& a, const CurvePoint& b, double step,
                                                 const std::vector<Test>& from, const std::vector<Test>& to,
                                                 Lost& lost) const {
  std::vector<Located> found;
  for (const Test& before : from) {
    const Test* after = find(to, before.name);
    if (!after || !changes(before, *after)) continue;
    if (std::optional<Located> zero = locate(a, b, step, before, *after))
      found.push_back(std::move(*zero));
    else
      lost.any = true, lost.breaks = lost.breaks || before.breaks;
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Located& p, const Located& q) { return p.distance < q.distance; });
  return found;
}

void Continuation::add_before_break(const CurvePoint& a, const CurvePoint& b, double step,
                                    const std::vector<Test>& from, std::vector<Located>& found) const {
  const auto broken = std::find_if(found.begin(), found.end(), [](const Located& l) { return l.test.breaks; });
  if (broken == found.end()) return;
  const double s = broken->distance * (1 - same_place);
  const std::optional<CurvePoint> before = s > 0 ? correct(a, s, between(a, b, s, step)) : std::nullopt;
  if (!before) return;
  std::vector<Test> smooth;
  for (const Test& t : from) {
    const bool known = std::any_of(found.begin(), found.end(), [&](const Located& l) { return l.test.name == t.name; });
    if (!t.breaks && !known) smooth.push_back(t);
  }
  Lost lost;
  std::vector<Located> more = zeros_between(a, *before, s, smooth, followed_.tests(*before), lost);
  found.insert(found.begin(), more.begin(), more.end());
  std::stable_sort(found.begin(), found.end(),
                   [](const Located& p, const Located& q) { return p.distance < q.distance; });
}

/// How far along a step the curve passes its first point again; 0 where it does not.
double Continuation::comes_round(const CurvePoint& from, const CurvePoint& to, double made,
                                 const CurvePoint& origin) const {
  constexpr double near = 0.1;  // of the step
  const double ahead = (origin.z - from.z).cwiseQuotient(scale_).dot(from.tangent);
  if (!(ahead > 0 && ahead <= made) || to.tangent.dot(origin.tangent) < 0.5) return 0;
  const Vec off = (between(from, to, ahead, made) - origin.z).cwiseQuotient(scale_);
  return off.norm() < near * made ? ahead : 0;
}

CurveEnd Continuation::walk(CurvePoint from) {
  const CurvePoint origin = from;
  const Vec first_scale = followed_.scale();
  double step = options_.first_step;
  double travelled = 0;
  std::vector<Test> tests = followed_.tests(from);
  bool same_problem = true;
  for (int count = 0; count < options_.most_points; ++count) {
    const Index n = from.z.size();
    const Vec scale = followed_.scale();
    if (scale.size() == scale_.size())
      from.tangent = from.tangent.cwiseProduct(scale_);
    else
      from.tangent = from.tangent.cwiseProduct(scale);
    from.tangent = from.tangent.cwiseQuotient(scale).normalized();
    scale_ = scale;
    if (outside(from.z, from.tangent) >= 0) return {"range", {}, from.z[n - 1]};
    std::optional<CurvePoint> next;
    double made = 0;
    // Beyond a change of the problem; the end of the curve where there is nothing.
    const auto cross = [&](const Located& l, const std::optional<Passage>& anew) -> std::optional<CurveEnd> {
      const Passage passage = anew ? *anew : followed_.pass(l);
      if (!passage.goes_on) return CurveEnd{passage.why, passage.detail, l.point.z[l.point.z.size() - 1]};
      std::optional<CurvePoint> again = start(passage.z);
      if (!again)
        return CurveEnd{"failed", "Newton's method does not converge behind the special point", l.point.z[n - 1]};
      from = again->last_slope() * passage.along < 0 ? again->reversed() : *again;
      if (const Index out = outside(from.z, Vec::Zero(from.z.size())); out >= 0)
        from = at_bound(from, from.z, out).value_or(from);
      same_problem = false;
      step = std::min(options_.first_step, std::max(made, 10 * options_.smallest_step));
      tests = followed_.tests(from);
      if (!followed_.point(from)) return CurveEnd{"stopped", {}, from.z[from.z.size() - 1]};
      return std::nullopt;
    };
    for (; step >= options_.smallest_step; step /= 2) {
      next = correct(from, step, from.z + step * from.tangent.cwiseProduct(scale), true);
      if (!next || next->tangent.dot(from.tangent) < options_.bend || next->iterations > hard) continue;
      if (followed_.near && !followed_.near(*next)) continue;
      made = step;
      break;
    }
    if (made == 0) {
      const std::optional<Located> gone = followed_.lost ? followed_.lost(from) : std::nullopt;
      if (!gone) return {"failed", "Newton's method does not converge", from.z[n - 1]};
      if (const std::optional<CurveEnd> end = cross(*gone, std::nullopt)) return *end;
      continue;
    }
    bool last = false;
    if (const Index out = outside(next->z, Vec::Zero(n)); out >= 0) {  // exactly onto the end of the range
      const Bound& limits = options_.bounds[options_.bounds.size() - static_cast<size_t>(n - out)];
      const double bound = next->z[out] < limits.low ? limits.low : limits.high;
      Vec guess = next->z;
      double a = 0, b = made;
      for (int k = 0; k < 60; ++k) {  // where the cubic meets it
        const double s = 0.5 * (a + b);
        guess = between(from, *next, s, made);
        ((guess[out] - bound) * (from.z[out] - bound) > 0 ? a : b) = s;
      }
      const std::optional<CurvePoint> end = at_bound(from, guess, out);
      if (!end) {
        step = made / 2;
        if (step < options_.smallest_step) return {"failed", "Newton's method does not converge", from.z[n - 1]};
        --count;
        continue;
      }
      next = end;
      made = (end->z - from.z).cwiseQuotient(scale).dot(from.tangent);
      last = true;
    }
    bool closes = false;
    if (same_problem && travelled > 6 * made && n == origin.z.size()) {
      CurvePoint first = origin;
      first.tangent = first.tangent.cwiseProduct(first_scale).cwiseQuotient(scale).normalized();
      if (const double ahead = comes_round(from, *next, made, first); ahead > 0) {
        next = first;
        made = ahead;
        closes = true;
        last = false;
      }
    }
    // Events on the way, in order.
    std::vector<Test> then = followed_.tests(*next);
    Lost lost;
    std::vector<Located> found = zeros_between(from, *next, made, tests, then, lost);
    add_before_break(from, *next, made, tests, found);
    // Where the problem changes, what vanishes with it is not special by itself (a leg that appears with a square
    // root).
    const double near = same_place * made;
    std::vector<double> changes_at;
    for (const Located& l : found) {
      if (l.test.breaks) changes_at.push_back(l.distance);
    }
    std::erase_if(found, [&](const Located& l) {
      return !l.test.breaks && std::any_of(changes_at.begin(), changes_at.end(),
                                           [&](double place) { return std::abs(place - l.distance) < near; });
    });
    int places = 0;
    for (size_t k = 0; k < found.size(); ++k) places += k == 0 || found[k].distance - found[k - 1].distance > near;
    const bool unclear = (lost.any && found.empty()) || (lost.breaks && changes_at.empty());
    if ((unclear || places > 2) && made > shortest_halved && made > 100 * options_.smallest_step) {
      step = made / 2;
      --count;
      continue;
    }
    bool broken = false;
    // A step that is made again, from its start, tells what is on it then.
    const auto first_break = std::find_if(found.begin(), found.end(), [](const Located& l) { return l.test.breaks; });
    std::optional<Passage> anew;
    if (followed_.anew && first_break != found.end()) anew = followed_.anew(*first_break);
    for (const Located& l : found) {
      if (!l.test.breaks) {
        if (!anew && !followed_.special(l)) return {"stopped", {}, l.point.z[n - 1]};
        continue;
      }
      if (const std::optional<CurveEnd> end = cross(l, anew)) return *end;
      broken = true;
      break;
    }
    if (broken) continue;
    travelled += made;
    // A turn between two points without a zero of the last unknown's slope would be a jump to another curve.
    from = *next;
    tests = std::move(then);
    if (!followed_.point(from)) return {"stopped", {}, from.z[n - 1]};
    if (last) return {"range", {}, from.z[n - 1]};
    if (closes) return {"closed", {}, from.z[n - 1]};
    step = std::min(options_.largest_step, next->iterations <= easy ? made * 1.4 : made);
    if (next->iterations > hard - 2) step = made / 1.5;
    if (followed_.renew) {
      if (std::optional<Vec> z = followed_.renew(from)) {
        const double along = from.tangent[n - 1];
        const bool same_unknowns = z->size() == n && *z == from.z;
        if (std::optional<CurvePoint> again = same_unknowns ? correct(from, 0, *z) : start(*z)) {
          // Which way the last unknown goes stays the same; where that is rounding, so does the direction.
          constexpr double rounding = 1e-12;
          const bool clear = std::min(std::abs(again->last_slope()), std::abs(along)) > rounding;
          from = (clear || !same_unknowns) && again->last_slope() * along < 0 ? again->reversed() : *again;
          tests = followed_.tests(from);
          same_problem = false;
        }
      }
    }
  }
  return {"points", {}, from.z[from.z.size() - 1]};
}

}  // namespace saltus
