#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "analysis/branch.hpp"
#include "analysis/kept_test.hpp"
#include "analysis/orbit_problem.hpp"

namespace saltus {
namespace {

size_t at(int i) { return static_cast<size_t>(i); }

constexpr double vanished = 1e-5;  ///< a leg shorter than this share of the period has gone at a special point

class OrbitCurve {
 public:
  OrbitCurve(const Model& model, const OrbitOptions& start, const BranchOptions& options)
      : model_(model), start_(start), options_(options), problem_(model, start, {options.parameter}) {}

  Branch follow() {
    Branch out;
    branch_ = &out;
    const Orbit orbit = find_orbit(model_, start_);
    if (!orbit.found) {
      out.why = orbit.why;
      out.message = orbit.message;
      return out;
    }
    if (std::optional<CurvePoint> first = begin(orbit)) {
      if (options_.seek)
        begin_at_special(*first);
      else
        both_ways(*first);
    }
    return out;
  }

  /// Cycles born at an equilibrium: small ones first, away from it.
  Branch follow_cycles(const Birth& birth) {
    Branch out;
    branch_ = &out;
    const size_t n = birth.x.size();
    Orbit orbit{.found = true, .autonomous = true, .period = birth.period};
    orbit.free.assign(n, false);
    orbit.shift.assign(n, 0.0);
    double largest = 0;
    for (const double v : birth.x) largest = std::max(largest, std::abs(v));
    for (const double share : {1e-3, 1e-2, 1e-4}) {
      out = {};
      RunOptions o = start_.run;
      o.initial = birth.x;
      const double amplitude = share * (largest > 0 ? largest : 1.0);
      for (size_t i = 0; i < n; ++i) o.initial[i] += amplitude * birth.direction[static_cast<Eigen::Index>(i)];
      o.until = o.from + birth.period;
      o.keep_pieces = o.keep_transitions = true;
      orbit.trajectory = simulate(problem_.program(), o);
      orbit.state = o.initial;
      if (orbit.trajectory.end.why != Why::time) continue;
      const std::optional<Vec> z = prepare(orbit);
      if (!z) continue;
      // As far from the equilibrium as it starts; the parameter is free.
      CurvePoint from{.z = *z, .tangent = Vec::Zero(z->size())};
      const Vec size = problem_.shooting().size();
      for (Eigen::Index i = 0; i < size.size(); ++i)
        from.tangent[i] = ((*z)[i] - birth.x[static_cast<size_t>(i)]) / size[i];
      from.tangent.normalize();
      if (std::optional<CurvePoint> first = kept_apart(from)) {
        out.found = true;
        one_way(*first);
        return out;
      }
    }
    out.why = "newton";
    out.message = "no cycle is found near the equilibrium";
    return out;
  }

 private:
  CurveOptions curve_options() const {
    CurveOptions o{.bounds = {{options_.low, options_.high}},
                   .first_step = std::min(0.005, options_.largest_step),
                   .largest_step = options_.largest_step,
                   .most_points = options_.most_points};
    if (looking_ > 0) o.bounds = {};
    if (!kept_.empty()) o.bounds.push_back({options_.second_low, options_.second_high});
    return o;
  }

  std::optional<Vec> prepare(const Orbit& orbit) {
    branch_->autonomous = orbit.autonomous;
    problem_.set_ranges({options_.high - options_.low});
    const std::optional<Vec> z = problem_.take(orbit);
    followed_ = functions();
    curve_.emplace(followed_, curve_options());
    longest_ = options_.longest_time > 0 ? options_.longest_time : 100 * orbit.period;
    return z;
  }

  std::optional<CurvePoint> begin(const Orbit& orbit) {
    const std::optional<Vec> z = prepare(orbit);
    std::optional<CurvePoint> first;
    if (z) first = curve_->start(*z);
    branch_->found = first.has_value();
    if (!first) {
      branch_->why = "newton";
      branch_->message = "Newton's method does not converge at the start";
    }
    return first;
  }

  void both_ways(const CurvePoint& first) {
    const OrbitProblem::Frozen frozen = problem_.frozen_signature();
    const BranchEnd low = walk(first.reversed(), -1);
    std::reverse(branch_->points.begin(), branch_->points.end());
    std::reverse(branch_->special.begin(), branch_->special.end());
    problem_.restore(frozen);
    curve_->refresh_scale();
    point(first);
    const BranchEnd high = walk(first, 1);
    branch_->ends = {low, high};
  }

  /// From a point near the special one at which the branch begins, away from it.
  void one_way(const CurvePoint& first) {
    const double value = first.last();
    point(first);
    const BranchEnd end = walk(first, 1);
    branch_->ends = {{-1, "start", "the special point at which it begins", value}, end};
  }

  /// Newton's method on the hyperplane through a point across its direction; that direction is the way to go.
  std::optional<CurvePoint> kept_apart(const CurvePoint& from) {
    curve_->refresh_scale();
    std::optional<CurvePoint> p = curve_->correct(from, 0, from.z);
    if (p && p->tangent.dot(from.tangent) < 0) p = p->reversed();
    return p;
  }

  // ---- from a special point -----------------------------------------------------------------------------------------

  void begin_at_special(const CurvePoint& first) {
    const OrbitProblem::Frozen frozen = problem_.frozen_signature();
    const bool up = (options_.seek->value > first.last()) == (first.last_slope() > 0);
    for (const bool forward : {up, !up}) {
      problem_.restore(frozen);
      looking_ = 60;
      curve_.emplace(followed_, curve_options());
      curve_->refresh_scale();
      walk(forward ? first : first.reversed(), 1);
      looking_ = 0;
      if (sought_) break;
    }
    curve_.emplace(followed_, curve_options());
    branch_->points.clear();
    branch_->special.clear();
    if (!sought_) {
      not_found(fmt::format("the special point '{}' is not found again near its place", options_.seek->type));
      return;
    }
    const Located l = *sought_;
    if (options_.second >= 0)
      follow_special(l);
    else
      follow_other(l);
  }

  void not_found(const std::string& message) {
    branch_->found = false;
    branch_->why = "special";
    branch_->message = message;
  }

  /// Whether this is the point sought; if so it is kept and the walk ends.
  bool is_sought(const Located& l, const std::string& type) {
    const bool same = type == options_.seek->type &&
                      std::abs(l.point.last() - options_.seek->value) < 1e-5 * (options_.high - options_.low);
    if (same) sought_ = l;
    return same;
  }

  void follow_other(const Located& l) {
    const std::string& type = options_.seek->type;
    problem_.put(l.point.z);
    if (type == "flip" || type == "symmetry") {
      OrbitView v;
      problem_.view(l.point.z, v, false);
      const Vec direction = problem_.unfold(v.matrix);
      for (const double share : {5e-3, 2e-2, 1e-3}) {
        problem_.restore(sought_signature_);
        problem_.put(l.point.z);
        const std::optional<Vec> z = problem_.take_other(direction * share, type == "flip");
        if (!z) continue;
        CurvePoint from{.z = *z, .tangent = Vec::Zero(z->size())};
        from.tangent.head(direction.size()) = direction.cwiseQuotient(problem_.shooting().size());
        from.tangent.normalize();
        if (std::optional<CurvePoint> first = kept_apart(from)) {
          one_way(*first);
          return;
        }
      }
    }
    if (type == "branch") {
      Vec r;
      Mat J;
      if (problem_.equations(l.point.z, r, J)) {
        Mat scaled = J * problem_.scale().asDiagonal();
        for (Eigen::Index i = 0; i < scaled.rows(); ++i) scaled.row(i) /= std::max(scaled.row(i).norm(), 1e-300);
        scaled.conservativeResize(scaled.rows() + 1, Eigen::NoChange);
        scaled.row(scaled.rows() - 1) = l.point.tangent.transpose();
        const Mat rest = null_space(scaled, 1e-5);
        for (Eigen::Index k = 0; k < std::min<Eigen::Index>(rest.cols(), 1); ++k) {
          constexpr double distance = 3e-3;
          CurvePoint from{.z = l.point.z, .tangent = rest.col(k)};
          from.z += distance * from.tangent.cwiseProduct(problem_.scale());
          if (std::optional<CurvePoint> first = kept_apart(from)) {
            one_way(*first);
            return;
          }
        }
      }
    }
    not_found(fmt::format("no other branch begins at this point of type '{}'", type));
  }

  /// The curve of the special point in two parameters.
  void follow_special(const Located& l) {
    problem_.restore(sought_signature_);
    kept_ = l.test.name;
    const Vec z = problem_.follow_also(l.point.z, options_.second, options_.second_high - options_.second_low);
    followed_ = functions();
    followed_.equations = KeptTest([this](const Vec& u, Vec& r, Mat& J) { return problem_.equations(u, r, J); },
                                   [this](const Vec& u) { return kept_value(u); }, [this] { return problem_.scale(); });
    followed_.tests = [this](const CurvePoint& p) { return curve_tests(p); };
    followed_.special = [this](const Located& at_point) {
      return add(place(at_point.test.name, at_point), at_point.point);
    };
    followed_.pass = [this](const Located& at_point) {
      add(place("degenerate", at_point), at_point.point);
      return Passage{.why = "signature", .detail = "another guard is zero here: the point is of another kind beyond"};
    };
    followed_.renew = {};
    curve_.emplace(followed_, curve_options());
    const std::optional<CurvePoint> first = curve_->start(z);
    if (!first) {
      not_found("Newton's method does not converge on the curve of the special point");
      return;
    }
    both_ways(*first);
  }

  double kept_value(const Vec& z) {
    const bool by_matrix = kept_ == "flip" || kept_ == "symmetry" || kept_ == "torus";
    if (kept_ == "fold" || kept_ == "branch") {
      Vec r;
      Mat J;
      if (!problem_.equations(z, r, J)) return std::nan("");
      const Eigen::Index size = J.rows();
      Mat scaled = J.leftCols(size) * problem_.scale().head(size).asDiagonal();
      for (Eigen::Index i = 0; i < size; ++i) scaled.row(i) /= std::max(scaled.row(i).norm(), 1e-300);
      return singular_(scaled);
    }
    if (kept_.starts_with("time ")) {
      const Eigen::Index n = problem_.program().states();
      return z[(n + 1) * static_cast<Eigen::Index>(std::stoul(kept_.substr(5))) + n] * problem_.direction();
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

  /// Where the curve of a special point is special itself.
  std::vector<Test> curve_tests(const CurvePoint& p) {
    const OrbitView& v = view(p);
    std::vector<Test> out;
    if (!fine_) return out;
    if (kept_ == "fold") {
      Vec r;
      Mat J;
      if (!problem_.equations(p.z, r, J)) return out;
      const Eigen::Index size = J.rows();
      const Vec scale = problem_.scale();
      Mat scaled = J * scale.asDiagonal();
      for (Eigen::Index i = 0; i < size; ++i) scaled.row(i) /= std::max(J.row(i).head(size).cwiseProduct(scale.head(size).transpose()).norm(), 1e-300);
      singular_(scaled.leftCols(size));
      const Vec normal = scaled.rightCols(2).transpose() * singular_.left();
      const Vec moved = p.tangent.tail(2);
      out.push_back({"cusp", (normal[0] * moved[1] - normal[1] * moved[0]) / std::max(normal.norm(), 1e-300)});
    }
    if (kept_ == "torus") {
      // The angle of the pair on the circle.
      double nearest = HUGE_VAL, cosine = 0;
      for (const std::complex<double>& mu : v.roots) {
        if (std::abs(std::abs(mu) - 1) < nearest) {
          nearest = std::abs(std::abs(mu) - 1);
          cosine = mu.real();
        }
      }
      out.push_back({"resonance 1:3", cosine + 0.5});
      out.push_back({"resonance 1:4", cosine});
    }
    for (size_t i = 0; i < v.legs.size(); ++i) {
      const std::string name = fmt::format("time {}", i);
      if (name != kept_ && !shares_zero(v, i)) out.push_back({name, v.legs[i].length * problem_.direction(), true});
    }
    for (const Monitor& m : v.monitors) {
      if (m.name != kept_ && std::abs(m.lowest.value) > 1e-7) out.push_back({m.name, m.lowest.value, true});
    }
    return out;
  }

  /// A leg that vanishes all along the curve.
  bool shares_zero(const OrbitView& v, size_t leg) const {
    return std::abs(v.legs[leg].length) < vanished * v.period;
  }

  Followed functions() {
    return {.equations = [this](const Vec& z, Vec& r, Mat& J) { return problem_.equations(z, r, J); },
            .scale = [this] { return problem_.scale(); },
            .tests = [this](const CurvePoint& p) { return tests(p); },
            .point = [this](const CurvePoint& p) { return point(p); },
            .special = [this](const Located& l) { return special(l); },
            .pass = [this](const Located& l) { return pass(l); },
            .renew =
                [this](const CurvePoint& p) {
                  if (std::abs(p.tangent[p.tangent.size() - 1]) < 0.02 || !problem_.needs_cut(p.z))
                    return std::optional<Vec>();
                  return problem_.cut_anew(p.z);
                }};
  }

  /// Ends in terms of the first parameter.
  BranchEnd walk(const CurvePoint& from, int direction) {
    homoclinic_ = false;
    const CurveEnd end = curve_->walk(from);
    return {direction, homoclinic_ ? "homoclinic" : end.why, end.detail, end.value};
  }

  // ---- tests --------------------------------------------------------------------------------------------------------

  const OrbitView& view(const CurvePoint& p) {
    if (seen_.size() != p.z.size() || seen_ != p.z || seen_legs_ != problem_.legs().size()) {
      view_ = {};
      fine_ = problem_.view(p.z, view_, true);
      seen_ = p.z;
      seen_legs_ = problem_.legs().size();
    }
    return view_;
  }

  std::vector<Test> tests(const CurvePoint& p) {
    const OrbitView& v = view(p);
    std::vector<Test> out{{"fold", p.tangent[p.tangent.size() - 1]}, {"branch", p.orientation}};
    if (!fine_) return out;
    out.push_back({problem_.symmetry() ? "symmetry" : "flip", flip_test(v.roots)});
    out.push_back({"torus", torus_test(v.roots)});
    for (size_t i = 0; i < v.legs.size(); ++i)
      out.push_back({fmt::format("time {}", i), v.legs[i].length * problem_.direction(), true});
    for (const Monitor& m : v.monitors) out.push_back({m.name, m.lowest.value, true});
    return out;
  }

  // ---- what is told -------------------------------------------------------------------------------------------------

  BranchPoint told(const CurvePoint& p) {
    const OrbitView& v = view(p);
    BranchPoint out{.values = problem_.values_of(p.z), .period = v.period, .stable = v.stable,
                    .spectrum = v.multipliers};
    out.state = problem_.told_state(v, out.t);
    problem_.extremes(v, out.lowest, out.highest);
    out.signature = problem_.signature();
    return out;
  }

  bool point(const CurvePoint& p) {
    if (looking_ > 0) return --looking_ > 0;
    branch_->points.push_back(told(p));
    problem_.widen(branch_->points.back().lowest, branch_->points.back().highest);
    homoclinic_ = branch_->points.back().period > longest_;
    if (homoclinic_) return false;
    return !options_.on_point || options_.on_point(branch_->points.back());
  }

  SpecialPoint place(const std::string& type, const Located& l) {
    const BranchPoint b = told(l.before);
    const BranchPoint p = told(l.point);
    SpecialPoint s{.type = type, .values = p.values, .state = p.state, .t = p.t, .period = p.period,
                   .spectrum = p.spectrum, .signature = p.signature};
    s.near_values = b.values;
    s.near_state = b.state;
    s.near_t = b.t;
    s.near_period = b.period;
    return s;
  }

  void keep(SpecialPoint s, BranchPoint p) {
    const std::string letters = label_letters(s.type);
    int number = 1;
    for (const SpecialPoint& other : branch_->special) number += label_letters(other.type) == letters;
    p.label = s.label = fmt::format("{}{}", letters, number);
    branch_->points.push_back(std::move(p));
    branch_->special.push_back(std::move(s));
    if (options_.on_special) options_.on_special(branch_->special.back());
  }

  bool add(SpecialPoint s, const CurvePoint& at_point) {
    keep(std::move(s), told(at_point));
    return true;
  }

  bool special(const Located& l) {
    const OrbitView& v = view(l.point);
    if (l.test.name == "torus" && !on_circle(v.roots)) return true;  // a neutral saddle
    std::string type = l.test.name;
    // Where curves meet the fold of one of them is no fold: a branch that ends on a symmetric one.
    const bool pitchfork = type == "fold" && l.meets;
    if (pitchfork) type = "branch";
    if (looking_ > 0) {
      if (!is_sought(l, type)) return true;
      sought_signature_ = problem_.frozen_signature();
      return false;
    }
    SpecialPoint s = place(type, l);
    if (pitchfork) s.detail = "pitchfork";
    if (type == "branch" && !branch_->special.empty()) {  // one special point per place
      const SpecialPoint& last = branch_->special.back();
      if (last.type == "branch" && std::abs(last.values[0] - s.values[0]) < 1e-6 * (options_.high - options_.low))
        return true;
    }
    return add(std::move(s), l.point);
  }

  // ---- changes of the signature -------------------------------------------------------------------------------------

  static char letter(const Mode& mode, int item) { return mode.switches[at(item)]; }

  /// Legs next to each other that have no length at a special point: [first, last], none if first > last.
  struct Vanishing {
    size_t first = 1, last = 0;
    bool any() const { return first <= last; }
  };

  Vanishing vanishing(const OrbitView& v, const std::string& test) const {
    Vanishing out;
    const bool by_time = test.starts_with("time ");
    const size_t named = by_time ? std::stoul(test.substr(5)) : 0;
    if (by_time && (named == 0 || named + 1 == v.legs.size())) return out;  // the cut
    for (size_t i = 1; i + 1 < v.legs.size(); ++i) {
      const bool gone = std::abs(v.legs[i].length) < vanished * v.period || (by_time && i == named);
      if (!gone) {
        if (out.any() && out.last + 1 == i && by_time && named < i) break;
        continue;
      }
      if (out.any() && out.last + 1 == i)
        out.last = i;
      else if (!out.any() || (by_time && named >= i))
        out.first = out.last = i;
    }
    return out;
  }

  static bool met(const Transition& event, int item) {
    return std::any_of(event.guards.begin(), event.guards.end(), [&](const Guard& g) {
      return g.item == item && (g.kind == GuardKind::surface || g.kind == GuardKind::sigma);
    });
  }

  /// What legs that vanish mean, from the letters before, on and after them.
  std::string type_of_vanishing(const OrbitView& v, const Vanishing& gone) {
    const Leg &a = v.legs[gone.first - 1], &b = v.legs[gone.last];
    if (!a.happens || !b.happens) return "";
    const Mode &before = a.arc.mode, &after = v.legs[gone.last + 1].arc.mode;
    for (size_t j = 0; j < before.constraints.size(); ++j) {
      for (size_t k = gone.first; k <= gone.last; ++k) {
        const char q = v.legs[k].arc.mode.constraints[j];
        if (q != before.constraints[j] && q != after.constraints[j]) return q == 'c' ? "impact-grazing" : "release";
      }
    }
    double t = v.t0;
    for (size_t i = 0; i < gone.first; ++i) t += v.legs[i].length;
    const std::vector<double> x(v.legs[gone.first].x.begin(), v.legs[gone.first].x.end());
    bool silent = true;
    for (size_t i = 0; i < before.switches.size(); ++i) {
      const char p = before.switches[i], r = after.switches[i];
      for (size_t k = gone.first; k <= gone.last; ++k) {
        const char q = v.legs[k].arc.mode.switches[i];
        if (q == p || q == r) continue;
        const int item = static_cast<int>(i);
        if (!met(a.event, item) && gone.first == gone.last) {  // it changes because something else jumps
          silent = false;
          continue;
        }
        if (q == '0') return p == r ? "grazing-sliding" : "crossing-sliding";
        if (p == '0' && r == '0') return model_.form.switches[i].holds ? "release" : "adding-sliding";
        if (p == '0' || r == '0') return "switching-sliding";
        if (problem_.acts(v.legs[k].arc, x, t, item)) return "grazing";
      }
      if (p != r && problem_.acts(a.arc, x, t, static_cast<int>(i))) silent = false;
    }
    // Two events that change places matter only where each of them does something.
    return silent ? "" : "corner";
  }

  /// Whether the field behind a surface pushes back where the orbit touches it.
  bool pushes_back(const OrbitView& v, const Monitor& m, const std::vector<double>& x, double t) {
    const int i = m.guard.guard.item;
    Arc behind = v.legs[m.leg].arc;
    const double sign = m.guard.sign;
    behind.mode.switches[at(i)] = sign > 0 ? '-' : '+';
    Variation& variation = problem_.shooting().variation();
    const Variation::GuardSlope slope = variation.guard({GuardKind::surface, i, 0}, behind, x, t);
    const Vec f = variation.rates(behind, x, t);
    const double rate = (slope.by_state.dot(f) + slope.by_time) * problem_.direction();
    const double size = slope.by_state.cwiseAbs().dot(problem_.shooting().size()) / std::max(v.period, 1e-300);
    return sign * rate > 1e-6 * size;
  }

  /// Whether a surface is met without speed, in a mode.
  bool without_speed(const Arc& arc, int item, const std::vector<double>& x, double t, double period) {
    Variation& variation = problem_.shooting().variation();
    const Variation::GuardSlope slope = variation.guard({GuardKind::surface, item, 0}, arc, x, t);
    const double rate = slope.by_state.dot(variation.rates(arc, x, t)) + slope.by_time;
    const double size = slope.by_state.cwiseAbs().dot(problem_.shooting().size()) / std::max(period, 1e-300);
    return std::abs(rate) < 1e-5 * size;
  }

  std::string type_of_monitor(const OrbitView& v, const Monitor& m, const std::vector<double>& x, double t) {
    const Leg& leg = v.legs[m.leg];
    const bool cut = (m.lowest.where == Lowest::Where::start && m.leg == 0) ||
                     (m.lowest.where == Lowest::Where::end && m.leg + 1 == v.legs.size());
    if (cut) return "";
    const bool holds = (m.guard.guard.kind == GuardKind::sigma || m.guard.guard.kind == GuardKind::surface) &&
                       model_.form.switches[at(m.guard.guard.item)].holds;
    switch (m.guard.guard.kind) {
      case GuardKind::gap: return "impact-grazing";
      case GuardKind::lambda: return "release";
      case GuardKind::jump: return "grazing";
      case GuardKind::sigma:
        if (m.lowest.where == Lowest::Where::start && m.leg > 0) {
          const Leg& before = v.legs[m.leg - 1];
          const char from = letter(before.arc.mode, m.guard.guard.item);
          if (from == '0') return "corner";
          const bool same_side = (from == '+') == (m.guard.guard.side > 0);
          return same_side ? "grazing-sliding" : "switching-sliding";
        }
        if (m.lowest.where == Lowest::Where::end && !m.guard.own) return "corner";
        return holds ? "release" : "adding-sliding";
      case GuardKind::surface:
        if (m.lowest.where == Lowest::Where::start) {
          const Arc& earlier = v.legs[m.leg - 1].arc;
          if (m.guard.known == 0) return without_speed(leg.arc, m.guard.guard.item, x, t, v.period) ? "grazing" : "corner";
          if (letter(earlier.mode, m.guard.guard.item) == '0') return "adding-sliding";
          return without_speed(earlier, m.guard.guard.item, x, t, v.period) ? "grazing" : "crossing-sliding";
        }
        if (m.lowest.where == Lowest::Where::end) {
          if (!m.guard.own) return without_speed(leg.arc, m.guard.guard.item, x, t, v.period) ? "grazing" : "corner";
          return letter(leg.event.after, m.guard.guard.item) == '0' ? "grazing-sliding" : "grazing";
        }
        return pushes_back(v, m, x, t) ? "grazing-sliding" : "grazing";
      default: return "degenerate";
    }
  }

  /// What the zero of a breaking test means; empty: nothing that matters.
  std::string type_of(const Located& l) {
    const OrbitView v = view(l.point);
    const Vanishing gone = vanishing(v, l.test.name);
    if (gone.any()) return type_of_vanishing(v, gone);
    if (l.test.name.starts_with("time ")) return "";
    for (const Monitor& m : v.monitors) {
      if (m.name != l.test.name) continue;
      double t = v.t0;
      for (size_t i = 0; i < m.leg; ++i) t += v.legs[i].length;
      t += problem_.direction() * m.lowest.time;
      std::vector<double> x(at(problem_.program().states()));
      for (const LegTrace::Stretch& s : v.traces[m.leg].stretches) {
        const double tau = t - s.piece.start;
        if (problem_.direction() * tau < 0) break;
        Trajectory::evaluate(s.piece, problem_.program().states(), tau, x.data());
      }
      std::string type = type_of_monitor(v, m, x, t);
      if (m.guard.guard.kind == GuardKind::surface && !problem_.acts(v.legs[m.leg].arc, x, t, m.guard.guard.item))
        type.clear();
      return type;
    }
    return "degenerate";
  }

  struct OneSided {
    Mat matrix;
    bool infinite = false;
    Spectrum multipliers;
  };

  /// The limit of matrices at u -> 0 by the polynomial through them.
  static Mat limit(const std::vector<double>& u, std::vector<Mat> m) {
    for (size_t k = 1; k < m.size(); ++k) {
      for (size_t i = 0; i + k < m.size(); ++i) m[i] = (u[i] * m[i + 1] - u[i + k] * m[i]) / (u[i] - u[i + k]);
    }
    return m[0];
  }

  Spectrum multipliers_of(const Mat& M) const {
    Spectrum s = spectrum_of(M);
    if (problem_.symmetry()) {
      for (std::complex<double>& mu : s) mu *= mu;
    }
    if (problem_.direction() < 0) {
      for (std::complex<double>& mu : s) mu = std::abs(mu) < 1e-13 ? std::complex<double>(HUGE_VAL, 0) : 1.0 / mu;
    }
    sort_multipliers(s);
    return s;
  }

  OneSided one_sided(const std::vector<double>& u, const std::vector<Mat>& m) {
    OneSided out;
    const double first = m.front().norm(), last = m.back().norm();
    out.infinite = !m.back().allFinite() || last > 1.25 * first * std::pow(u.front() / u.back(), 0.25);
    out.matrix = limit(u, m);
    if (out.infinite) {
      out.multipliers.assign(static_cast<size_t>(out.matrix.rows()), {0, 0});
      out.multipliers[0] = {HUGE_VAL, 0};
    } else {
      out.multipliers = multipliers_of(out.matrix);
    }
    return out;
  }

  /// The matrix on the side from which the branch comes.
  OneSided matrix_before(const Located& l) {
    const OrbitView& v = view(l.point);
    const Mat direct = v.matrix;
    std::vector<double> u;
    std::vector<Mat> m;
    const double reach = std::min(3e-4, 0.5 * l.distance);
    for (const double share : {1.0, 0.5, 0.25, 0.125}) {
      const double s = l.distance - share * reach;
      const double w = s / l.distance;
      const std::optional<CurvePoint> p = curve_->correct(l.before, s, (1 - w) * l.before.z + w * l.point.z);
      if (!p) continue;
      OrbitView there;
      if (!problem_.view(p->z, there, false) || !there.matrix.allFinite()) continue;
      u.push_back(share * reach);
      m.push_back(there.matrix);
    }
    if (u.size() < 3) return {direct, !direct.allFinite(), v.multipliers};
    OneSided out = one_sided(u, m);
    if (!out.infinite && direct.allFinite() && (direct - out.matrix).norm() < 1e-7 * (1 + direct.norm()))
      return {direct, false, multipliers_of(direct)};
    return out;
  }

  /// A point of another signature: legs from a run near the change, then Newton with the parameter kept.
  struct Side {
    Vec z;
    OrbitProblem::Frozen frozen;
    double side = 0;
  };

  bool admissible(const OrbitView& v) const {
    for (const Leg& leg : v.legs) {
      if (leg.length * problem_.direction() < 0) return false;
    }
    return std::all_of(v.monitors.begin(), v.monitors.end(), [](const Monitor& m) { return m.lowest.value > 0; });
  }

  std::optional<Side> try_side(const OrbitProblem::Frozen& legs, Vec z, double value, double side,
                               const Located& l) {
    problem_.restore(legs);
    z[z.size() - 1] = value;
    const std::optional<CurvePoint> p = curve_->start(z);
    if (!p) return std::nullopt;
    OrbitView v;
    if (!problem_.view(p->z, v, true) || !admissible(v)) return std::nullopt;
    // Near the special point, not some other orbit.
    const Eigen::Index n = problem_.program().states();
    const Vec moved = (p->z.head(n) - l.point.z.head(n)).cwiseQuotient(problem_.shooting().size());
    if (moved.norm() > 0.2) return std::nullopt;
    return Side{p->z, problem_.frozen_signature(), side};
  }

  /// The signature without the legs that vanish, at the special point.
  std::optional<Vec> without(const Vanishing& gone, const Located& l) {
    problem_.put(l.point.z);
    std::vector<Leg> legs = problem_.legs();
    Leg& before = legs[gone.first - 1];
    const Leg& after = legs[gone.last + 1];
    if (before.arc.mode == after.arc.mode && before.arc.counters == after.arc.counters) {
      Leg joined = after;
      joined.x = before.x;
      joined.arc = before.arc;
      for (size_t k = gone.first - 1; k <= gone.last; ++k) joined.length += legs[k].length;
      before = joined;
      legs.erase(legs.begin() + static_cast<long>(gone.first), legs.begin() + static_cast<long>(gone.last) + 2);
    } else {
      // What is left of the events is the one of the letter that differs.
      const auto differs = [&](const Guard& g) {
        if (g.kind == GuardKind::surface || g.kind == GuardKind::sigma)
          return before.arc.mode.switches[at(g.item)] != after.arc.mode.switches[at(g.item)];
        return g.kind != GuardKind::slope;
      };
      for (size_t k = gone.first - 1; k <= gone.last; ++k) {
        if (!differs(legs[k].guard)) continue;
        Transition event = legs[k].event;
        event.before = before.arc.mode;
        event.counters_before = before.arc.counters;
        before.guard = legs[k].guard;
        if (before.guard.kind == GuardKind::sigma && before.arc.mode.switches[at(before.guard.item)] != '0')
          before.guard = {GuardKind::surface, before.guard.item,
                          before.arc.mode.switches[at(before.guard.item)] == '+' ? 1 : -1};
        event.guards = {before.guard};
        before.event = event;
        before.end = legs[k].end;
        break;
      }
      before.event.after = after.arc.mode;
      before.event.counters = after.arc.counters;
      legs.erase(legs.begin() + static_cast<long>(gone.first), legs.begin() + static_cast<long>(gone.last) + 1);
    }
    return problem_.take_legs(std::move(legs));
  }

  std::optional<Side> both_sides(const Vec& z, double value, double eps, double incoming, const Located& l) {
    const OrbitProblem::Frozen fresh = problem_.frozen_signature();
    for (const double side : {-incoming, incoming}) {
      if (std::optional<Side> s = try_side(fresh, z, value + side * eps, side, l)) return s;
    }
    return std::nullopt;
  }

  /// The signature that takes over behind a change, and on which side of the parameter it is admissible: what a run
  /// from just beyond does, or the same without the legs that have gone.
  std::optional<Side> other_side(const Located& l, double incoming) {
    const OrbitProblem::Frozen old = problem_.frozen_signature();
    const double value = l.point.last(), range = options_.high - options_.low;
    const Vanishing gone = vanishing(view(l.point), l.test.name);
    for (const double reach : {1e-5, 1e-4, 1e-6, 1e-3}) {
      problem_.restore(old);
      const Vec scale = problem_.scale();
      const std::optional<CurvePoint> beyond =
          curve_->correct(l.point, reach, l.point.z + reach * l.point.tangent.cwiseProduct(scale));
      const double eps = std::max(beyond ? std::abs(beyond->last() - value) : 0.0, 1e-2 * reach * range);
      if (beyond) {
        problem_.put(beyond->z);
        const std::vector<double> x(problem_.legs()[0].x.begin(), problem_.legs()[0].x.end());
        const double duration = problem_.period_of(beyond->z) * (problem_.symmetry() ? 0.5 : 1.0);
        const std::optional<Vec> z = problem_.take_run(x, problem_.start_time(), duration, {beyond->last()});
        if (z && !same_signature(problem_.legs(), old.legs)) {
          if (std::optional<Side> s = both_sides(*z, value, eps, incoming, l)) return s;
        }
      }
      if (!gone.any()) continue;
      problem_.restore(old);
      if (const std::optional<Vec> z = without(gone, l)) {
        if (std::optional<Side> s = both_sides(*z, value, eps, incoming, l)) return s;
      }
    }
    problem_.restore(old);
    return std::nullopt;
  }

  OneSided matrix_after(const Side& side, double value) {
    std::vector<double> u;
    std::vector<Mat> m;
    Vec z = side.z;
    const double eps = z[z.size() - 1] - value;
    for (int k = 0; k < 4; ++k) {
      Vec guess = z;
      guess[guess.size() - 1] = value + eps * std::pow(0.5, k);
      const std::optional<CurvePoint> p = curve_->start(guess);
      if (!p) break;
      z = p->z;
      OrbitView v;
      if (!problem_.view(z, v, false) || !v.matrix.allFinite()) break;
      // Smooth in the shortest leg, where that is one that has just appeared.
      double shortest = HUGE_VAL;
      for (size_t i = 1; i + 1 < v.legs.size(); ++i) shortest = std::min(shortest, std::abs(v.legs[i].length));
      u.push_back(shortest);
      m.push_back(v.matrix);
    }
    if (u.size() < 2) {
      OrbitView v;
      problem_.view(side.z, v, false);
      return {v.matrix, !v.matrix.allFinite(), v.multipliers};
    }
    if (!(u.back() < 0.8 * u.front())) {
      for (size_t k = 0; k < u.size(); ++k) u[k] = std::pow(0.5, static_cast<double>(k));
    }
    return one_sided(u, m);
  }

  Passage pass(const Located& l) {
    const double value = l.point.z[l.point.z.size() - 1];
    const double incoming = l.point.tangent[l.point.tangent.size() - 1] > 0 ? -1 : 1;
    const std::string type = type_of(l);
    if (looking_ > 0 && is_sought(l, type)) {
      sought_signature_ = problem_.frozen_signature();
      return {.why = "stopped"};
    }
    SpecialPoint s = place(type, l);
    const BranchPoint here = told(l.point);
    const OneSided before = matrix_before(l);
    const std::optional<Side> on = other_side(l, incoming);
    if (type.empty() && on) {
      return {.goes_on = true, .z = on->z, .along = on->side};
    }
    s.spectrum = before.multipliers;
    const bool squared = problem_.symmetry().has_value();
    if (on) {
      const OneSided after = matrix_after(*on, value);
      problem_.restore(on->frozen);
      s.after = after.multipliers;
      s.persists = on->side != incoming;
      s.detail = *s.persists ? "persistence" : "nonsmooth fold";
      if (before.infinite || after.infinite) {
        s.detail += ", the multiplier is infinite on one side (square root)";
      } else if (before.matrix.rows() == after.matrix.rows()) {
        s.crosses = circle_passages(before.matrix, after.matrix, squared);
        std::vector<std::string> roots = squared ? circle_passages(before.matrix, after.matrix, false) : *s.crosses;
        for (const std::string& c : roots) {
          if (c == "+1") s.detail += ", discontinuous fold";
          if (c == "-1") s.detail += squared ? ", discontinuous symmetry breaking" : ", discontinuous flip";
          if (c == "complex") s.detail += ", discontinuous torus";
        }
      }
    } else {
      s.detail = "no admissible orbit goes on from here";
      if (s.type.empty()) s.type = "degenerate";
    }
    const std::string detail = s.detail;
    if (looking_ == 0) keep(std::move(s), here);
    if (!on) return {.why = "signature", .detail = detail};
    problem_.restore(on->frozen);
    seen_.resize(0);
    return {.goes_on = true, .z = on->z, .along = on->side};
  }

  const Model& model_;
  OrbitOptions start_;
  BranchOptions options_;
  OrbitProblem problem_;
  Followed followed_;
  std::optional<Continuation> curve_;
  Branch* branch_ = nullptr;
  int looking_ = 0;  ///< points still to be looked at for a special point sought
  std::optional<Located> sought_;
  OrbitProblem::Frozen sought_signature_;
  std::string kept_;  ///< the test kept at zero on a curve in two parameters
  Singularity singular_;
  double longest_ = 0;
  bool homoclinic_ = false;
  OrbitView view_;
  Vec seen_;
  size_t seen_legs_ = 0;
  bool fine_ = false;
};

}  // namespace

Branch follow_cycles(const Model& model, const OrbitOptions& start, const Birth& birth, const BranchOptions& options) {
  return OrbitCurve(model, start, options).follow_cycles(birth);
}

Branch follow_orbit(const Model& model, const OrbitOptions& start, const BranchOptions& options) {
  return OrbitCurve(model, start, options).follow();
}

}  // namespace saltus
