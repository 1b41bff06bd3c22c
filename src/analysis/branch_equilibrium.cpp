#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "analysis/branch.hpp"
#include "analysis/spectrum.hpp"
#include "flow/variation.hpp"

namespace saltus {
namespace {

size_t at(int i) { return static_cast<size_t>(i); }
Eigen::Index ix(size_t i) { return static_cast<Eigen::Index>(i); }

constexpr double at_zero = 1e-7;  ///< a guard below this share of its slope counts as zero at a special point

/// A guard at an equilibrium: the sign it must have, its value.
struct GuardValue {
  Guard guard;
  double value = 0;  ///< positive: admissible
};

class EquilibriumCurve {
 public:
  EquilibriumCurve(const Model& model, const EquilibriumOptions& start, const BranchOptions& options)
      : program_(model), model_(program_.model()), start_(start), options_(options), variation_(program_, start.run) {}

  Branch follow() {
    Branch out{.equilibria = true, .autonomous = true};
    const Equilibrium rest = find_equilibrium(program_, start_);
    if (rest.kind == Equilibrium::Kind::none || rest.kind == Equilibrium::Kind::set) {
      out.why = rest.kind == Equilibrium::Kind::none ? rest.why : "set";
      out.message = rest.kind == Equilibrium::Kind::none
                        ? rest.message
                        : "the equilibria are a set here, no single point to follow; start elsewhere with -x";
      return out;
    }
    out.found = true;
    branch_ = &out;
    begin(rest.arc, rest.state);
    Vec z(ix(rest.state.size()) + 1);
    z << Eigen::Map<const Vec>(rest.state.data(), ix(rest.state.size())), start_.run.parameters[at(options_.parameter)];
    const Followed followed = problem();
    curve_.emplace(followed, CurveOptions{.low = options_.low,
                                          .high = options_.high,
                                          .first_step = std::min(0.005, options_.largest_step),
                                          .largest_step = options_.largest_step,
                                          .most_points = options_.most_points});
    std::optional<CurvePoint> first = curve_->start(z);
    if (!first) {
      out.found = false;
      out.why = "newton";
      out.message = "Newton's method does not converge at the start";
      return out;
    }
    const Arc arc = arc_;
    // Down first; what it finds is turned round, so that points are in order along the curve.
    const CurveEnd low = curve_->walk(first->reversed());
    std::reverse(out.points.begin(), out.points.end());
    std::reverse(out.special.begin(), out.special.end());
    begin(arc, rest.state);
    point(*first);
    const CurveEnd high = curve_->walk(*first);
    out.ends = {{-1, low.why, low.detail, low.value}, {1, high.why, high.detail, high.value}};
    return out;
  }

 private:
  Followed problem() {
    return {.equations = [this](const Vec& z, Vec& r, Mat& J) { return equations(z, r, J); },
            .scale = [this] { return scale_; },
            .tests = [this](const CurvePoint& p) { return tests(p); },
            .point = [this](const CurvePoint& p) { return point(p); },
            .special = [this](const Located& l) { return special(l); },
            .pass = [this](const Located& l) { return pass(l); },
            .renew = {}};
  }

  void begin(const Arc& arc, const std::vector<double>& x) {
    arc_ = arc;
    basis_.resize(0, 0);
    scale_.resize(ix(x.size()) + 1);
    double largest = 0;
    for (const double v : x) largest = std::max(largest, std::abs(v));
    if (largest == 0) largest = 1;
    // A state that is zero here has no size of its own yet.
    for (size_t i = 0; i < x.size(); ++i) scale_[ix(i)] = std::abs(x[i]) > 1e-6 * largest ? std::abs(x[i]) : largest;
    scale_[ix(x.size())] = std::max(options_.high - options_.low, 1e-300);
  }

  void bind(double value) {
    const std::vector<double> p =
        parameter_values(model_, std::vector<GivenParameter>{{options_.parameter, value}});
    if (p == parameters_) return;
    parameters_ = p;
    variation_.bind(p);
    const int of[] = {options_.parameter};
    directions_ = parameter_directions(model_, p, of).p;
  }

  double time() const { return start_.run.from; }

  std::vector<double> state_of(const Vec& z) const { return {z.begin(), z.begin() + program_.states()}; }

  /// [F; Q^T f] with F what is slid on and closed, Q along it.
  bool equations(const Vec& z, Vec& r, Mat& J) {
    const Eigen::Index n = program_.states();
    bind(z[n]);
    const std::vector<double> x = state_of(z);
    const Vec f = variation_.rates(arc_, x, time());
    if (!f.allFinite()) return false;
    const Mat slopes = variation_.rate_slopes(arc_, x, time(), directions_);
    Vec values;
    Mat functions;
    variation_.manifold(arc_, x, time(), values, functions, directions_);
    const Eigen::Index k = values.size();
    if (basis_.rows() != n || basis_.cols() != n - k)
      basis_ = k > 0 ? null_space(functions.leftCols(n)) : Mat(Mat::Identity(n, n));
    if (basis_.cols() != n - k) return false;
    r.resize(n);
    J.resize(n, n + 1);
    r << values, basis_.transpose() * f;
    J << functions, basis_.transpose() * slopes;
    return r.allFinite() && J.allFinite();
  }

  /// The flow's matrix in the mode, on what it slides on.
  Mat matrix(const Arc& arc, const std::vector<double>& x) {
    const Eigen::Index n = program_.states();
    const Mat by_state = variation_.rate_slopes(arc, x, time(), Mat(ix(parameters_.size()), 0)).leftCols(n);
    Vec values;
    Mat functions;
    variation_.manifold(arc, x, time(), values, functions);
    if (values.size() == 0) return by_state;
    const Mat along = null_space(functions);
    return along.transpose() * by_state * along;
  }

  Spectrum eigenvalues_at(const CurvePoint& p) {
    bind(p.z[program_.states()]);
    Spectrum s = spectrum_of(matrix(arc_, state_of(p.z)));
    sort_eigenvalues(s);
    return s;
  }

  std::vector<GuardValue> guards(const Arc& arc, const std::vector<double>& x) {
    std::vector<GuardValue> out;
    Series& series = variation_.series();
    variation_.rates(arc, x, time());
    const int m = program_.switches();
    for (int i = 0; i < m; ++i) {
      if (!program_.moves(i)) continue;
      const char c = arc.mode.switches[at(i)];
      if (c == '+' || c == '-') {
        out.push_back({{GuardKind::surface, i, c == '+' ? 1 : -1}, (c == '+' ? 1 : -1) * series.surface(i)[0]});
      } else if (c == '0') {
        const double sigma = series.unknown(i)[0], hold = series.hold(i);
        out.push_back({{GuardKind::sigma, i, 1}, hold - sigma});
        out.push_back({{GuardKind::sigma, i, -1}, hold + sigma});
      }
    }
    for (int j = 0; j < program_.constraints(); ++j) {
      if (arc.mode.constraints[at(j)] == 'o')
        out.push_back({{GuardKind::gap, j, 1}, series.gap(j)[0]});
      else
        out.push_back({{GuardKind::lambda, j, 1}, series.unknown(m + j)[0]});
    }
    return out;
  }

  static std::string name_of(const Guard& g) {
    return fmt::format("guard {} {} {}", static_cast<int>(g.kind), g.item, g.side);
  }

  std::vector<Test> tests(const CurvePoint& p) {
    const Eigen::Index n = program_.states();
    std::vector<Test> out{{"fold", p.tangent[n]}, {"branch", p.orientation}};
    out.push_back({"hopf", hopf_test(eigenvalues_at(p))});
    for (const GuardValue& g : guards(arc_, state_of(p.z))) out.push_back({name_of(g.guard), g.value, true});
    return out;
  }

  bool slides() const {
    return std::any_of(arc_.mode.switches.begin(), arc_.mode.switches.begin() + model_.form.visible,
                       [](char c) { return c == '0'; });
  }

  bool point(const CurvePoint& p) {
    const Eigen::Index n = program_.states();
    for (Eigen::Index i = 0; i < n; ++i) scale_[i] = std::max(scale_[i], std::abs(p.z[i]));
    BranchPoint out{.values = {p.z[n]}, .state = state_of(p.z), .t = time(), .spectrum = eigenvalues_at(p)};
    out.stable = std::all_of(out.spectrum.begin(), out.spectrum.end(),
                             [](const std::complex<double>& e) { return e.real() < 0; });
    out.signature = {visible_mode(arc_.mode, model_.form.visible).text()};
    branch_->points.push_back(out);
    return !options_.on_point || options_.on_point(branch_->points.back());
  }

  SpecialPoint place(const std::string& type, const CurvePoint& p, const CurvePoint& before) {
    const Eigen::Index n = program_.states();
    SpecialPoint s{.type = type, .values = {p.z[n]}, .state = state_of(p.z), .t = time()};
    s.spectrum = eigenvalues_at(p);
    s.signature = {visible_mode(arc_.mode, model_.form.visible).text()};
    s.near_values = {before.z[n]};
    s.near_state = state_of(before.z);
    s.near_t = time();
    return s;
  }

  bool add(SpecialPoint s) {
    const std::string letters = label_letters(s.type);
    int number = 1;
    for (const SpecialPoint& other : branch_->special) number += label_letters(other.type) == letters;
    s.label = fmt::format("{}{}", letters, number);
    BranchPoint p{.values = s.values, .state = s.state, .t = s.t, .spectrum = s.spectrum, .signature = s.signature,
                  .label = s.label};
    p.stable = std::all_of(p.spectrum.begin(), p.spectrum.end(),
                           [](const std::complex<double>& e) { return e.real() < 0; });
    branch_->points.push_back(std::move(p));
    branch_->special.push_back(std::move(s));
    if (options_.on_special) options_.on_special(branch_->special.back());
    return !options_.stops_at_special;
  }

  bool special(const Located& l) {
    if (l.test.name == "hopf") {
      const Spectrum e = eigenvalues_at(l.point);
      if (!on_axis(e)) return true;  // a neutral saddle
      SpecialPoint s = place("hopf", l.point, l.before);
      for (const std::complex<double>& z : e) {
        if (z.imag() > 0 && std::abs(z.real()) <= 1e-5 * std::abs(z)) {
          s.period = 2 * M_PI / z.imag();
          s.detail = fmt::format("frequency {:.6g}", z.imag());
        }
      }
      return add(std::move(s));
    }
    SpecialPoint s = place(l.test.name, l.point, l.before);
    if (l.test.name == "fold" && slides()) s.type = "pseudo-saddle-node";
    // A fold and a branch point at one place: a branch that ends on a symmetric one.
    if (!branch_->special.empty()) {
      SpecialPoint& last = branch_->special.back();
      const bool same = std::abs(last.values[0] - s.values[0]) < 1e-6 * scale_[program_.states()] &&
                        (last.type == "fold" || last.type == "branch");
      if (same && last.type != s.type) {
        branch_->points.pop_back();
        s.type = "branch";
        s.detail = "pitchfork";
        branch_->special.pop_back();
      }
    }
    return add(std::move(s));
  }

  // ---- boundary equilibria ------------------------------------------------------------------------------------------

  /// An equilibrium in a mode near a special one, at another value of the parameter.
  std::optional<std::vector<double>> rest_in(const Arc& arc, const std::vector<double>& x, double value) {
    const Arc keep = std::exchange(arc_, arc);
    const Mat basis = std::exchange(basis_, Mat());
    const Eigen::Index n = program_.states();
    Vec z(n + 1);
    z << Eigen::Map<const Vec>(x.data(), n), value;
    std::optional<std::vector<double>> out;
    if (std::optional<CurvePoint> p = curve_->start(z)) out = state_of(p->z);
    arc_ = keep;
    basis_ = basis;
    return out;
  }

  /// All modes in which what is at zero here has another letter.
  std::vector<Arc> neighbours(const std::vector<Guard>& zero) const {
    std::vector<Arc> out{arc_};
    for (const Guard& g : zero) {
      const std::vector<Arc> so_far = std::exchange(out, {});
      const bool is_switch = g.kind == GuardKind::surface || g.kind == GuardKind::sigma;
      for (const Arc& arc : so_far) {
        for (const char c : is_switch ? std::string("+-0") : std::string("oc")) {
          Arc next = arc;
          next.held.clear();
          (is_switch ? next.mode.switches[at(g.item)] : next.mode.constraints[at(g.item)]) = c;
          if (std::find(out.begin(), out.end(), next) == out.end()) out.push_back(std::move(next));
        }
      }
    }
    return out;
  }

  bool admissible(const Arc& arc, const std::vector<double>& x) {
    for (int i = 0; i < program_.switches(); ++i) {
      if (arc.mode.switches[at(i)] != '0') continue;
      // A surface that its sigma cannot keep is not slid on.
      const Variation::GuardSlope slope = variation_.guard({GuardKind::surface, i, 0}, arc, x, time());
      const double size = slope.by_state.cwiseAbs().dot(scale_.head(program_.states()));
      if (variation_.series().idle(i) || !(std::abs(slope.value) <= 1e-9 * size)) return false;
    }
    variation_.rates(arc, x, time());
    for (const Series::Single& single : variation_.series().singles()) {
      // Nor one on whose rate it has no effect: a kink.
      const int u = variation_.series().active()[at(single.member)];
      if (u < program_.switches() && std::abs(single.slope) < 1e-9) return false;
    }
    for (const GuardValue& g : guards(arc, x)) {
      if (!(g.value > 0)) return false;
    }
    return true;
  }

  Passage pass(const Located& l) {
    const Eigen::Index n = program_.states();
    const double value = l.point.z[n], range = scale_[n];
    bind(value);
    const std::vector<double> x = state_of(l.point.z);
    std::vector<Guard> zero;
    for (const GuardValue& g : guards(arc_, x)) {
      const Variation::GuardSlope slope = variation_.guard(g.guard, arc_, x, time());
      const double size = std::abs(slope.by_state.cwiseProduct(scale_.head(n)).cwiseAbs().sum()) + 1e-300;
      if (std::abs(g.value) < at_zero * size || name_of(g.guard) == l.test.name) zero.push_back(g.guard);
    }
    const double incoming = l.point.tangent[n] > 0 ? -1 : 1;  // the side from which it came
    SpecialPoint s = place("boundary-equilibrium", l.point, l.before);
    const Mat before = matrix(arc_, x);
    struct Candidate {
      Arc arc;
      double side, turn;
      std::vector<double> x;
      double value;
    };
    std::vector<Candidate> found;
    const double eps = 1e-5 * range;
    const Vec slope = l.point.tangent.head(n).cwiseProduct(scale_.head(n)) / (l.point.tangent[n] * range);
    for (const Arc& arc : neighbours(zero)) {
      for (const double side : {-incoming, incoming}) {
        if (arc == arc_ && side == incoming) continue;
        const double there = value + side * eps;
        const std::optional<std::vector<double>> y = rest_in(arc, x, there);
        if (!y) continue;
        const Vec moved = Eigen::Map<const Vec>(y->data(), n) - Eigen::Map<const Vec>(x.data(), n);
        if (moved.cwiseQuotient(scale_.head(n)).norm() > 1e-2) continue;
        bind(there);
        if (!admissible(arc, *y)) continue;
        const double turn = (moved / (side * eps) - slope).cwiseQuotient(scale_.head(n)).norm() * range;
        found.push_back({arc, side, turn, *y, there});
      }
    }
    bind(value);
    std::stable_sort(found.begin(), found.end(), [&](const Candidate& a, const Candidate& b) {
      if ((a.side == incoming) != (b.side == incoming)) return b.side == incoming;
      return a.turn < b.turn;
    });
    if (found.empty()) {
      s.detail = "no equilibrium goes on from here";
      add(std::move(s));
      return {.why = "signature", .detail = "no equilibrium goes on behind the boundary"};
    }
    const Candidate& on = found.front();
    const Mat after = matrix(on.arc, x);
    const bool silent = found.size() == 1 && on.side != incoming && before.rows() == after.rows() &&
                        (before - after).norm() <= 1e-12 * (before.norm() + after.norm()) && on.turn < 1e-6;
    if (!silent) {
      s.persists = on.side != incoming;
      Spectrum other = spectrum_of(after);
      sort_eigenvalues(other);
      s.after = other;
      s.detail = *s.persists ? "persistence" : "nonsmooth fold";
      if (before.rows() == after.rows()) {
        s.crosses = axis_passages(before, after);
        for (const std::string& c : *s.crosses)
          s.detail += c == "complex" ? ", discontinuous Hopf"
                      : found.size() > 2 ? ", discontinuous pitchfork"
                      : *s.persists ? ", discontinuous transcritical"
                                    : ", discontinuous fold";
      }
      for (size_t k = 1; k < found.size(); ++k)
        s.others.push_back({.value = found[k].value, .state = found[k].x, .mode = found[k].arc.mode});
      if (!add(std::move(s))) return {.why = "stopped"};
    }
    arc_ = on.arc;
    basis_.resize(0, 0);
    Passage p{.goes_on = true, .z = Vec(n + 1), .along = on.side};
    p.z << Eigen::Map<const Vec>(on.x.data(), n), on.value;
    return p;
  }

  Program program_;
  const Model& model_;
  EquilibriumOptions start_;
  BranchOptions options_;
  Variation variation_;
  std::optional<Continuation> curve_;
  Branch* branch_ = nullptr;
  Arc arc_;
  Mat basis_;
  Vec scale_;
  std::vector<double> parameters_;
  Mat directions_;
};

}  // namespace

std::string label_letters(const std::string& type) {
  static const std::pair<const char*, const char*> known[] = {
      {"fold", "LP"},           {"branch", "BP"},           {"flip", "PD"},
      {"torus", "TR"},          {"hopf", "HB"},             {"symmetry", "SB"},
      {"grazing", "GR"},        {"grazing-sliding", "GS"},  {"crossing-sliding", "CS"},
      {"switching-sliding", "SS"}, {"adding-sliding", "AS"}, {"corner", "CO"},
      {"impact-grazing", "IG"}, {"release", "RL"},          {"boundary-equilibrium", "BE"},
      {"pseudo-saddle-node", "PS"}};
  for (const auto& [name, letters] : known) {
    if (type == name) return letters;
  }
  return "ZZ";
}

Branch follow_equilibrium(const Model& model, const EquilibriumOptions& start, const BranchOptions& options) {
  return EquilibriumCurve(model, start, options).follow();
}

}  // namespace saltus
