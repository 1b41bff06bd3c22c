#include "analysis/equilibrium_curve.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/index.hpp"
#include "flow/parameter_directions.hpp"

namespace saltus {

namespace {

/// True if an eigenvalue is zero beside the size of the others.
bool has_zero(const Spectrum& e) {
  double least = HUGE_VAL, largest = 0;
  for (const std::complex<double>& z : e)
    least = std::min(least, std::abs(z)), largest = std::max(largest, std::abs(z));
  return e.size() < 2 || least < 1e-3 * largest;
}

/// States that are zero but for rounding are zero: the sizes of a branch that begins there are no rounding.
std::vector<double> without_rounding(std::vector<double> x, const Vec& size) {
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::abs(x[i]) < 1e-12 * size[ix(i)]) x[i] = 0;
  }
  return x;
}

}  // namespace

Branch EquilibriumCurve::follow() {
  Branch& out = book_.branch;
  out.equilibria = out.autonomous = true;
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
  z << column_at(rest.state.data(), n()), start_.run.parameters[at(options_.parameter)];
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

CurveOptions EquilibriumCurve::curve_options() const {
  CurveOptions o{.bounds = {{options_.low, options_.high}},
                 .first_step = std::min(0.005, options_.largest_step),
                 .largest_step = options_.largest_step,
                 .most_points = options_.most_points};
  if (looking_ > 0) o.bounds = {};
  if (followed_.size() > 1) o.bounds.push_back({options_.second_low, options_.second_high});
  return o;
}

void EquilibriumCurve::both_ways(const CurvePoint& first) {
  const Arc arc = arc_;
  const Vec scale = scale_;
  const auto walker = [&](const CurvePoint& from, int direction) {
    return [this, &arc, &scale, from, direction] {
      arc_ = arc;
      basis_.resize(0, 0);
      scale_ = scale;
      curve_->refresh_scale();
      return walk(from, direction);
    };
  };
  book_.both_ways(told(first), walker(first.reversed(), -1), walker(first, 1));
}

BranchEnd EquilibriumCurve::walk(const CurvePoint& from, int direction) {
  singular_ = {};
  const CurveEnd end = curve_->walk(from);
  const bool one = kept_.empty() || book_.branch.points.empty();
  return {direction, end.why, end.detail, one ? end.value : book_.branch.points.back().values[0]};
}

Followed EquilibriumCurve::problem() {
  return {.equations = [this](const Vec& z, Vec& r, Mat& J) { return equations(z, r, J); },
          .scale = [this] { return scale_; },
          .tests = [this](const CurvePoint& p) { return tests(p); },
          .point = [this](const CurvePoint& p) { return point(p); },
          .special = [this](const Located& l) { return special(l); },
          .pass = [this](const Located& l) { return pass(l); },
          .renew = {}};
}

void EquilibriumCurve::begin(const Arc& arc, const std::vector<double>& x) {
  arc_ = arc;
  basis_.resize(0, 0);
  scale_.resize(ix(x.size()) + 1);
  double largest = 0;
  const auto size = [&](size_t i) { return std::max(std::abs(x[i]), std::abs(start_.run.initial[i])); };
  for (size_t i = 0; i < x.size(); ++i) largest = std::max(largest, size(i));
  if (largest == 0) largest = 1;
  // A state that is zero here has no size of its own yet.
  for (size_t i = 0; i < x.size(); ++i) scale_[ix(i)] = size(i) > 1e-6 * largest ? size(i) : largest;
  scale_[ix(x.size())] = std::max(options_.high - options_.low, 1e-300);
}

void EquilibriumCurve::bind(const Vec& z) {
  std::vector<GivenParameter> given;
  for (size_t k = 0; k < followed_.size(); ++k) given.push_back({followed_[k], z[n() + ix(k)]});
  const std::vector<double> p = parameter_values(model_, given);
  if (p == parameters_) return;
  parameters_ = p;
  variation_.bind(p);
  directions_ = parameter_directions(model_, p, followed_).p;
}

bool EquilibriumCurve::equations(const Vec& z, Vec& r, Mat& J) {
  bind(z);
  const std::vector<double> x = state_of(z);
  const Vec f = variation_.rates(arc_, x, time());
  if (!f.allFinite()) return false;
  const Mat slopes = variation_.rate_slopes(arc_, x, time(), directions_);
  Vec values;
  Mat functions;
  variation_.manifold(arc_, x, time(), values, functions, directions_);
  const Index k = values.size();
  if (basis_.rows() != n() || basis_.cols() != n() - k)
    basis_ = k > 0 ? null_space(functions.leftCols(n())) : Mat(Mat::Identity(n(), n()));
  if (basis_.cols() != n() - k) return false;
  r.resize(n());
  J.resize(n(), n() + directions_.cols());
  r << values, basis_.transpose() * f;
  J << functions, basis_.transpose() * slopes;
  return r.allFinite() && J.allFinite();
}

Mat EquilibriumCurve::matrix(const Arc& arc, const std::vector<double>& x) {
  const Mat by_state = variation_.rate_slopes(arc, x, time(), Mat(ix(parameters_.size()), 0)).leftCols(n());
  Vec values;
  Mat functions;
  variation_.manifold(arc, x, time(), values, functions);
  if (values.size() == 0) return by_state;
  const Mat along = null_space(functions);
  return along.transpose() * by_state * along;
}

Spectrum EquilibriumCurve::eigenvalues_at(const Vec& z) {
  bind(z);
  Spectrum s = spectrum_of(matrix(arc_, state_of(z)));
  sort_eigenvalues(s);
  return s;
}

std::vector<GuardValue> EquilibriumCurve::guards(const Arc& arc, const std::vector<double>& x) {
  std::vector<GuardValue> out;
  Series& series = variation_.series();
  variation_.rates(arc, x, time());
  const int m = program_.switches();
  for (int i = 0; i < m; ++i) {
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
    if (program_.joint(j)) continue;
    if (arc.mode.constraints[at(j)] == 'o')
      out.push_back({{GuardKind::gap, j, 1}, series.gap(j)[0]});
    else
      out.push_back({{GuardKind::lambda, j, 1}, series.unknown(m + j)[0]});
  }
  return out;
}

std::string EquilibriumCurve::name_of(const Guard& g) {
  return fmt::format("guard {} {} {}", static_cast<int>(g.kind), g.item, g.side);
}

std::vector<Test> EquilibriumCurve::tests(const CurvePoint& p) {
  std::vector<Test> out{{"fold", p.last_slope(), false, true}, {"branch", p.orientation, false, true}};
  out.push_back({"hopf", hopf_test(eigenvalues_at(p.z))});
  for (const GuardValue& g : guards(arc_, state_of(p.z))) out.push_back({name_of(g.guard), g.value, true});
  return out;
}

bool EquilibriumCurve::slides() const {
  return std::any_of(arc_.mode.switches.begin(), arc_.mode.switches.begin() + model_.form.visible,
                     [](char c) { return c == '0'; });
}

BranchPoint EquilibriumCurve::told(const CurvePoint& p) {
  BranchPoint out{.values = values_of(p.z), .state = state_of(p.z), .t = time(), .spectrum = eigenvalues_at(p.z)};
  out.stable =
      std::all_of(out.spectrum.begin(), out.spectrum.end(), [](const std::complex<double>& e) { return e.real() < 0; });
  out.signature = {visible_mode(arc_.mode, model_.form.visible).text()};
  return out;
}

bool EquilibriumCurve::point(const CurvePoint& p) {
  if (looking_ > 0) return --looking_ > 0;
  for (Index i = 0; i < n(); ++i) scale_[i] = std::max(scale_[i], std::abs(p.z[i]));
  return book_.point(told(p));
}

SpecialPoint EquilibriumCurve::place(const std::string& type, const CurvePoint& p, const CurvePoint& before) {
  SpecialPoint s{.type = type, .values = values_of(p.z), .state = state_of(p.z), .t = time()};
  s.spectrum = eigenvalues_at(p.z);
  s.signature = {visible_mode(arc_.mode, model_.form.visible).text()};
  s.near_values = values_of(before.z);
  s.near_state = without_rounding(state_of(before.z), scale_);
  s.near_t = time();
  return s;
}

bool EquilibriumCurve::add(SpecialPoint s) {
  BranchPoint p{.values = s.values, .state = s.state, .t = s.t, .spectrum = s.spectrum, .signature = s.signature};
  p.stable =
      std::all_of(p.spectrum.begin(), p.spectrum.end(), [](const std::complex<double>& e) { return e.real() < 0; });
  book_.special(std::move(s), std::move(p));
  return true;
}

bool EquilibriumCurve::special(const Located& l) {
  if (l.test.name == "fold" && !l.meets && !has_zero(eigenvalues_at(l.point.z))) return true;  // the parameter rests
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
    if (const std::optional<double> l1 = lyapunov(l.point.z); l1 && *l1 != 0)
      s.detail += *l1 < 0 ? ", supercritical" : ", subcritical";
    return add(std::move(s));
  }
  SpecialPoint s = place(l.test.name, l.point, l.before);
  if (l.test.name == "fold" && slides()) s.type = "pseudo-saddle-node";
  // A fold and a branch point at one place: a branch that ends on a symmetric one.
  if (!book_.branch.special.empty()) {
    const SpecialPoint& last = book_.branch.special.back();
    const bool same = std::abs(last.values[0] - s.values[0]) < 1e-6 * scale_[program_.states()] &&
                      (last.type == "fold" || last.type == "branch");
    if (same && last.type != s.type) {
      s.type = "branch";
      s.detail = "pitchfork";
      book_.take_back();
    }
  }
  return add(std::move(s));
}

void SpecialPoint::set_crosses(const std::vector<SetPassage>& passages) {
  crosses.emplace();
  crosses_at.clear();
  for (const SetPassage& p : passages) {
    crosses->push_back(p.how);
    crosses_at.push_back(p.q);
  }
}

bool branches_at(const SpecialPoint& special) {
  for (const char* known : {"branch", "flip", "symmetry", "hopf", "boundary-equilibrium"}) {
    if (special.type == known) return true;
  }
  return special.crosses && !special.crosses->empty();
}

std::string label_letters(const std::string& type) {
  static const std::pair<const char*, const char*> known[] = {{"fold", "LP"},
                                                              {"branch", "BP"},
                                                              {"flip", "PD"},
                                                              {"torus", "TR"},
                                                              {"hopf", "HB"},
                                                              {"symmetry", "SB"},
                                                              {"grazing", "GR"},
                                                              {"grazing-sliding", "GS"},
                                                              {"crossing-sliding", "CS"},
                                                              {"switching-sliding", "SS"},
                                                              {"adding-sliding", "AS"},
                                                              {"corner", "CO"},
                                                              {"impact-grazing", "IG"},
                                                              {"blocking", "BK"},
                                                              {"release", "RL"},
                                                              {"boundary-equilibrium", "BE"},
                                                              {"pseudo-saddle-node", "PS"},
                                                              {"cusp", "CP"},
                                                              {"bogdanov-takens", "BT"},
                                                              {"bautin", "GH"},
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
