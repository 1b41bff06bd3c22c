#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "analysis/branch.hpp"
#include "analysis/kept_test.hpp"
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
      : program_(model), model_(program_.model()), start_(start), options_(options), variation_(program_, start.run) {
    followed_ = {options.parameter};
  }

  Branch follow() {
    Branch out{.equilibria = true, .autonomous = true};
    branch_ = &out;
    const Equilibrium rest = find_equilibrium(program_, start_);
    if (rest.kind == Equilibrium::Kind::none || rest.kind == Equilibrium::Kind::set) {
      out.why = rest.kind == Equilibrium::Kind::none ? rest.why : "set";
      out.message = rest.kind == Equilibrium::Kind::none
                        ? rest.message
                        : "the equilibria are a set here, no single point to follow; start elsewhere with -x";
      return out;
    }
    begin(rest.arc, rest.state);
    Vec z(n() + 1);
    z << Eigen::Map<const Vec>(rest.state.data(), n()), start_.run.parameters[at(options_.parameter)];
    following_ = problem();
    curve_.emplace(following_, curve_options());
    const std::optional<CurvePoint> first = curve_->start(z);
    if (!first) {
      out.why = "newton";
      out.message = "Newton's method does not converge at the start";
      return out;
    }
    out.found = true;
    if (options_.seek)
      begin_at_special(*first);
    else
      both_ways(*first);
    return out;
  }

 private:
  Eigen::Index n() const { return program_.states(); }

  CurveOptions curve_options() const {
    CurveOptions o{.bounds = {{options_.low, options_.high}},
                   .first_step = std::min(0.005, options_.largest_step),
                   .largest_step = options_.largest_step,
                   .most_points = options_.most_points};
    if (looking_ > 0) o.bounds = {};
    if (followed_.size() > 1) o.bounds.push_back({options_.second_low, options_.second_high});
    return o;
  }

  /// Down first; what is found is turned round, so that points are in order along the curve.
  void both_ways(const CurvePoint& first) {
    const Arc arc = arc_;
    const Vec scale = scale_;
    const CurveEnd low = curve_->walk(first.reversed());
    std::reverse(branch_->points.begin(), branch_->points.end());
    std::reverse(branch_->special.begin(), branch_->special.end());
    arc_ = arc;
    basis_.resize(0, 0);
    scale_ = scale;
    curve_->refresh_scale();
    point(first);
    const CurveEnd high = curve_->walk(first);
    branch_->ends = {{-1, low.why, low.detail, low.value}, {1, high.why, high.detail, high.value}};
  }

  // ---- from a special point -----------------------------------------------------------------------------------------

  void begin_at_special(const CurvePoint& first) {
    const Arc arc = arc_;
    const bool up = (options_.seek->value > first.last()) == (first.last_slope() > 0);
    for (const bool forward : {up, !up}) {
      arc_ = arc;
      basis_.resize(0, 0);
      sought_.reset();
      looking_ = 60;
      curve_.emplace(following_, curve_options());
      curve_->refresh_scale();
      curve_->walk(forward ? first : first.reversed());
      looking_ = 0;
      if (sought_) break;
    }
    curve_.emplace(following_, curve_options());
    curve_->refresh_scale();
    branch_->points.clear();
    branch_->special.clear();
    if (!sought_) {
      branch_->found = false;
      branch_->why = "special";
      branch_->message = fmt::format("the special point '{}' is not found again near its place", options_.seek->type);
      return;
    }
    const Located l = *sought_;
    sought_.reset();
    if (options_.second >= 0)
      follow_special(l);
    else
      follow_other(l);
  }

  /// Whether this is the point sought; if so it is kept and the walk ends.
  bool is_sought(const Located& l, const std::string& type) {
    if (!options_.seek || looking_ == 0) return false;
    const bool same = type == options_.seek->type &&
                      std::abs(l.point.last() - options_.seek->value) < 1e-5 * scale_[n()];
    if (same) sought_ = l;
    return same;
  }

  void follow_other(const Located& l) {
    if (options_.seek->type == "branch") {
      Vec r;
      Mat J;
      equations(l.point.z, r, J);
      const Vec scale = scale_;
      // Of the two directions at a branch point the one that is not the tangent.
      Mat scaled = J * scale.asDiagonal();
      for (Eigen::Index i = 0; i < scaled.rows(); ++i) scaled.row(i) /= std::max(scaled.row(i).norm(), 1e-300);
      scaled.conservativeResize(scaled.rows() + 1, Eigen::NoChange);
      scaled.row(scaled.rows() - 1) = l.point.tangent.transpose();
      const Mat rest = null_space(scaled, 1e-5);
      if (rest.cols() > 0) {
        CurvePoint along = l.point;
        along.tangent = rest.col(0);
        both_sides_of(along);
        return;
      }
    }
    if (options_.seek->type == "hopf") {
      follow_born(l);
      return;
    }
    if (options_.seek->type == "boundary-equilibrium") {
      (void)pass(l);
      if (!branch_->special.empty() && !branch_->special.front().others.empty()) {
        const SpecialPoint::Other other = branch_->special.front().others.front();
        branch_->points.clear();
        branch_->special.clear();
        begin(other.arc, other.state);
        Vec z(n() + 1);
        z << Eigen::Map<const Vec>(other.state.data(), n()), other.value;
        if (const std::optional<CurvePoint> first = curve_->start(z)) {
          both_ways(*first);
          return;
        }
      }
    }
    branch_->found = false;
    branch_->why = "special";
    branch_->message = fmt::format("no other branch begins at this point of type '{}'", options_.seek->type);
    branch_->points.clear();
    branch_->special.clear();
  }

  /// The cycles born at a Hopf point.
  void follow_born(const Located& l) {
    bind(l.point.z);
    const std::vector<double> x = state_of(l.point.z);
    const Mat A = variation_.rate_slopes(arc_, x, time(), Mat(ix(parameters_.size()), 0)).leftCols(n());
    double frequency = 0;
    for (const std::complex<double>& e : eigenvalues_at(l.point.z)) {
      if (e.imag() > 0 && std::abs(e.real()) <= 1e-5 * std::abs(e)) frequency = e.imag();
    }
    if (frequency == 0) {
      branch_->found = false;
      branch_->why = "special";
      branch_->message = "the plane in which cycles are born is not found";
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
    *branch_ = follow_cycles(model_, start, {x, direction, 2 * M_PI / frequency}, options);
  }

  /// Both ways from a point on a direction that is no tangent of the curve it lies on.
  void both_sides_of(const CurvePoint& along) {
    constexpr double distance = 2e-3;
    std::vector<BranchEnd> ends;
    for (const double side : {-1.0, 1.0}) {
      CurvePoint from = along;
      from.tangent *= side;
      const std::optional<CurvePoint> first =
          curve_->correct(from, distance, from.z + distance * from.tangent.cwiseProduct(scale_));
      if (!first) {
        ends.push_back({side > 0 ? 1 : -1, "failed", "no point on the other branch is found", along.last()});
      } else {
        point(*first);
        const CurveEnd end = curve_->walk(*first);
        ends.push_back({side > 0 ? 1 : -1, end.why, end.detail, end.value});
      }
      if (side < 0) {
        std::reverse(branch_->points.begin(), branch_->points.end());
        std::reverse(branch_->special.begin(), branch_->special.end());
      }
    }
    branch_->ends = ends;
  }

  /// The curve of the special point in two parameters.
  void follow_special(const Located& l) {
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
    following_ = problem();
    Followed& followed = following_;
    followed.equations = kept;
    followed.tests = [this](const CurvePoint& p) { return curve_tests(p); };
    followed.special = [this](const Located& at_point) { return curve_special(at_point); };
    followed.pass = [this](const Located& at_point) {
      add(place("degenerate", at_point.point, at_point.before));
      return Passage{.why = "signature", .detail = "another guard is zero here: the point is of another kind beyond"};
    };
    curve_.emplace(followed, curve_options());
    const std::optional<CurvePoint> first = curve_->start(z);
    if (!first) {
      branch_->found = false;
      branch_->why = "newton";
      branch_->message = "Newton's method does not converge on the curve of the special point";
      return;
    }
    both_ways(*first);
  }

  double kept_value(const Vec& z) {
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

  /// Where the curve of a special point is special itself.
  std::vector<Test> curve_tests(const CurvePoint& p) {
    std::vector<Test> out;
    Vec r;
    Mat J;
    if (!equations(p.z, r, J)) return out;
    const Spectrum e = eigenvalues_at(p.z);
    if (kept_ == "fold") {
      singular_(J.leftCols(n()));
      // Along a fold the parameters move across the direction that removes the equilibria; at a cusp they turn.
      const Vec normal = J.rightCols(2).transpose() * singular_.left();
      const Vec moved = p.tangent.tail(2).cwiseProduct(scale_.tail(2));
      out.push_back({"cusp", (normal[0] * moved[1] - normal[1] * moved[0]) / std::max(normal.norm(), 1e-300)});
      std::complex<double> product = 1;
      size_t zero = 0;
      for (size_t i = 1; i < e.size(); ++i) {
        if (std::abs(e[i]) < std::abs(e[zero])) zero = i;
      }
      for (size_t i = 0; i < e.size(); ++i) {
        if (i != zero) product *= e[i] / (1e-300 + std::abs(e[i]));
      }
      double least = HUGE_VAL;
      for (size_t i = 0; i < e.size(); ++i) {
        if (i != zero) least = std::min(least, std::abs(e[i]));
      }
      if (e.size() > 1) out.push_back({"bogdanov-takens", product.real() * least});
    }
    if (kept_ == "hopf") {
      double least = HUGE_VAL, product = 0;
      for (size_t i = 0; i < e.size(); ++i) {
        for (size_t j = i + 1; j < e.size(); ++j) {
          const double sum = std::abs(e[i] + e[j]) / (1e-300 + std::abs(e[i]) + std::abs(e[j]));
          if (sum < least) least = sum, product = (e[i] * e[j]).real();
        }
      }
      out.push_back({"bogdanov-takens", product});
    }
    for (const GuardValue& g : guards(arc_, state_of(p.z))) {
      if (name_of(g.guard) != kept_) out.push_back({name_of(g.guard), g.value, true});
    }
    return out;
  }

  bool curve_special(const Located& l) { return add(place(l.test.name, l.point, l.before)); }

  Followed problem() {
    return {.equations = [this](const Vec& z, Vec& r, Mat& J) { return equations(z, r, J); },
            .scale = [this] { return scale_; },
            .tests = [this](const CurvePoint& p) { return tests(p); },
            .point = [this](const CurvePoint& p) { return point(p); },
            .special = [this](const Located& l) { return special(l); },
            .pass = [this](const Located& l) { return pass(l); },
            .renew = {}};
  }

  std::vector<double> values_of(const Vec& z) const { return {z.begin() + n(), z.end()}; }

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

  void bind(const Vec& z) {
    std::vector<GivenParameter> given;
    for (size_t k = 0; k < followed_.size(); ++k) given.push_back({followed_[k], z[n() + ix(k)]});
    const std::vector<double> p = parameter_values(model_, given);
    if (p == parameters_) return;
    parameters_ = p;
    variation_.bind(p);
    directions_ = parameter_directions(model_, p, followed_).p;
  }

  double time() const { return start_.run.from; }

  std::vector<double> state_of(const Vec& z) const { return {z.begin(), z.begin() + program_.states()}; }

  /// [F; Q^T f] with F what is slid on and closed, Q along it.
  bool equations(const Vec& z, Vec& r, Mat& J) {
    bind(z);
    const std::vector<double> x = state_of(z);
    const Vec f = variation_.rates(arc_, x, time());
    if (!f.allFinite()) return false;
    const Mat slopes = variation_.rate_slopes(arc_, x, time(), directions_);
    Vec values;
    Mat functions;
    variation_.manifold(arc_, x, time(), values, functions, directions_);
    const Eigen::Index k = values.size();
    if (basis_.rows() != n() || basis_.cols() != n() - k)
      basis_ = k > 0 ? null_space(functions.leftCols(n())) : Mat(Mat::Identity(n(), n()));
    if (basis_.cols() != n() - k) return false;
    r.resize(n());
    J.resize(n(), n() + directions_.cols());
    r << values, basis_.transpose() * f;
    J << functions, basis_.transpose() * slopes;
    return r.allFinite() && J.allFinite();
  }

  /// The flow's matrix in the mode, on what it slides on.
  Mat matrix(const Arc& arc, const std::vector<double>& x) {
    const Mat by_state = variation_.rate_slopes(arc, x, time(), Mat(ix(parameters_.size()), 0)).leftCols(n());
    Vec values;
    Mat functions;
    variation_.manifold(arc, x, time(), values, functions);
    if (values.size() == 0) return by_state;
    const Mat along = null_space(functions);
    return along.transpose() * by_state * along;
  }

  Spectrum eigenvalues_at(const Vec& z) {
    bind(z);
    Spectrum s = spectrum_of(matrix(arc_, state_of(z)));
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
    std::vector<Test> out{{"fold", p.last_slope()}, {"branch", p.orientation}};
    out.push_back({"hopf", hopf_test(eigenvalues_at(p.z))});
    for (const GuardValue& g : guards(arc_, state_of(p.z))) out.push_back({name_of(g.guard), g.value, true});
    return out;
  }

  bool slides() const {
    return std::any_of(arc_.mode.switches.begin(), arc_.mode.switches.begin() + model_.form.visible,
                       [](char c) { return c == '0'; });
  }

  bool point(const CurvePoint& p) {
    if (looking_ > 0) return --looking_ > 0;
    for (Eigen::Index i = 0; i < n(); ++i) scale_[i] = std::max(scale_[i], std::abs(p.z[i]));
    BranchPoint out{.values = values_of(p.z), .state = state_of(p.z), .t = time(), .spectrum = eigenvalues_at(p.z)};
    out.stable = std::all_of(out.spectrum.begin(), out.spectrum.end(),
                             [](const std::complex<double>& e) { return e.real() < 0; });
    out.signature = {visible_mode(arc_.mode, model_.form.visible).text()};
    branch_->points.push_back(out);
    return !options_.on_point || options_.on_point(branch_->points.back());
  }

  SpecialPoint place(const std::string& type, const CurvePoint& p, const CurvePoint& before) {
    SpecialPoint s{.type = type, .values = values_of(p.z), .state = state_of(p.z), .t = time()};
    s.spectrum = eigenvalues_at(p.z);
    s.signature = {visible_mode(arc_.mode, model_.form.visible).text()};
    s.near_values = values_of(before.z);
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
    return true;
  }

  bool special(const Located& l) {
    if (looking_ > 0) {
      std::string type = l.test.name;
      if (type == "fold" && slides()) type = "pseudo-saddle-node";
      if (type == "hopf" && !on_axis(eigenvalues_at(l.point.z))) return true;
      return !is_sought(l, type);
    }
    if (l.test.name == "hopf") {
      const Spectrum e = eigenvalues_at(l.point.z);
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
    Vec z(n() + 1);
    z << Eigen::Map<const Vec>(x.data(), n()), value;
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
    const Eigen::Index count = n();
    const double value = l.point.last(), range = scale_[count];
    if (looking_ > 0 && is_sought(l, "boundary-equilibrium")) return {.why = "stopped"};
    bind(l.point.z);
    const std::vector<double> x = state_of(l.point.z);
    std::vector<Guard> zero;
    for (const GuardValue& g : guards(arc_, x)) {
      const Variation::GuardSlope slope = variation_.guard(g.guard, arc_, x, time());
      const double size = std::abs(slope.by_state.cwiseProduct(scale_.head(count)).cwiseAbs().sum()) + 1e-300;
      if (std::abs(g.value) < at_zero * size || name_of(g.guard) == l.test.name) zero.push_back(g.guard);
    }
    const double incoming = l.point.last_slope() > 0 ? -1 : 1;  // the side from which it came
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
    const Vec slope = l.point.tangent.head(count).cwiseProduct(scale_.head(count)) / (l.point.last_slope() * range);
    for (const Arc& arc : neighbours(zero)) {
      for (const double side : {-incoming, incoming}) {
        if (arc == arc_ && side == incoming) continue;
        const double there = value + side * eps;
        const std::optional<std::vector<double>> y = rest_in(arc, x, there);
        if (!y) continue;
        const Vec moved = Eigen::Map<const Vec>(y->data(), count) - Eigen::Map<const Vec>(x.data(), count);
        if (moved.cwiseQuotient(scale_.head(count)).norm() > 1e-2) continue;
        Vec moved_to = l.point.z;
        moved_to[count] = there;
        bind(moved_to);
        if (!admissible(arc, *y)) continue;
        const double turn = (moved / (side * eps) - slope).cwiseQuotient(scale_.head(count)).norm() * range;
        found.push_back({arc, side, turn, *y, there});
      }
    }
    bind(l.point.z);
    std::stable_sort(found.begin(), found.end(), [&](const Candidate& a, const Candidate& b) {
      if ((a.side == incoming) != (b.side == incoming)) return b.side == incoming;
      return a.turn < b.turn;
    });
    if (found.empty()) {
      s.detail = "no equilibrium goes on from here";
      if (looking_ == 0) add(std::move(s));
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
        s.others.push_back({.value = found[k].value, .state = found[k].x, .arc = found[k].arc});
      if (looking_ == 0) add(std::move(s));
    }
    arc_ = on.arc;
    basis_.resize(0, 0);
    Passage p{.goes_on = true, .z = Vec(count + 1), .along = on.side};
    p.z << Eigen::Map<const Vec>(on.x.data(), count), on.value;
    return p;
  }

  Program program_;
  const Model& model_;
  EquilibriumOptions start_;
  BranchOptions options_;
  Variation variation_;
  Followed following_;
  std::optional<Continuation> curve_;
  Branch* branch_ = nullptr;
  Arc arc_;
  Mat basis_;
  Vec scale_;
  std::vector<double> parameters_;
  Mat directions_;
  std::vector<int> followed_;
  int looking_ = 0;  ///< points still to be looked at for a special point sought
  std::optional<Located> sought_;
  std::string kept_;  ///< the test kept at zero on a curve in two parameters
  Singularity singular_;
};

}  // namespace

bool branches_at(const std::string& type) {
  for (const char* known : {"branch", "flip", "symmetry", "hopf", "boundary-equilibrium"}) {
    if (type == known) return true;
  }
  return false;
}

std::string label_letters(const std::string& type) {
  static const std::pair<const char*, const char*> known[] = {
      {"fold", "LP"},           {"branch", "BP"},           {"flip", "PD"},
      {"torus", "TR"},          {"hopf", "HB"},             {"symmetry", "SB"},
      {"grazing", "GR"},        {"grazing-sliding", "GS"},  {"crossing-sliding", "CS"},
      {"switching-sliding", "SS"}, {"adding-sliding", "AS"}, {"corner", "CO"},
      {"impact-grazing", "IG"}, {"release", "RL"},          {"boundary-equilibrium", "BE"},
      {"pseudo-saddle-node", "PS"}, {"cusp", "CP"},         {"bogdanov-takens", "BT"},
      {"degenerate", "DG"}};
  for (const auto& [name, letters] : known) {
    if (type == name) return letters;
  }
  return type.starts_with("resonance") ? "RS" : "SP";
}

Branch follow_equilibrium(const Model& model, const EquilibriumOptions& start, const BranchOptions& options) {
  return EquilibriumCurve(model, start, options).follow();
}

}  // namespace saltus
