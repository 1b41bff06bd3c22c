#include "model/describe.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/format.h>

#include "expr/diff.hpp"
#include "expr/interpolant.hpp"
#include "expr/print.hpp"
#include "model/derive.hpp"

namespace saltus {
namespace {

/// A point of the space in which f lives, under fixed parameters.
struct Point {
  std::vector<double> x, sigma, lambda, counters;
  double t = 0;
};

/// A point on the surface and the one it was projected from.
struct Sample {
  Point on, off;
};

class Surface {
 public:
  Surface(const Model& model, int i, const std::vector<double>& parameters)
      : model_(model),
        parameters_(parameters),
        start_(initial_values(model, parameters)),
        h_(model.form.switches[static_cast<size_t>(i)].surface),
        slopes_(gradient(h_, SymbolKind::state)),
        time_slope_(differentiate(h_, time_symbol())) {
    // Only the switches that matter to this surface and what it acts on: a chain has a thousand others.
    std::vector<Expr> formulas{h_, lie_derivative(h_, model.form)};
    for (const int k : model.form.switches[static_cast<size_t>(i)].acts_on)
      formulas.push_back(model.form.f[static_cast<size_t>(k)]);
    std::vector<bool> wanted(model.form.switches.size(), false);
    for (bool grew = true; grew;) {
      grew = false;
      for (const Expr& s : symbols_in(formulas)) {
        if (!s.is_symbol(SymbolKind::sigma) || wanted[static_cast<size_t>(s.symbol().index)]) continue;
        wanted[static_cast<size_t>(s.symbol().index)] = grew = true;
        formulas.push_back(model.form.switches[static_cast<size_t>(s.symbol().index)].surface);
      }
    }
    for (size_t j = 0; j < wanted.size(); ++j) {
      if (wanted[j] && static_cast<int>(j) != i) others_.push_back(static_cast<int>(j));
    }
    for (const Expr& e : formulas) cost_ += postorder(std::span(&e, 1)).size();
  }

  double at(const Expr& e, const Point& p) const {
    return evaluate(e, [&](const Symbol& s) {
      const size_t i = static_cast<size_t>(s.index);
      switch (s.kind) {
        case SymbolKind::state: return p.x[i];
        case SymbolKind::parameter: return parameters_[i];
        case SymbolKind::time: return p.t;
        case SymbolKind::sigma: return p.sigma[i];
        case SymbolKind::lambda: return p.lambda[i];
        case SymbolKind::counter: return p.counters[i];
        default: return std::nan("");
      }
    });
  }

  /// Random points on the surface near the start; fewer if Newton's method finds fewer.
  std::vector<Sample> samples() const {
    // Fewer where formulas are huge: a page must come at once.
    const size_t count = std::clamp<size_t>(20'000 / cost_, 4, 32);
    std::vector<Sample> found;
    std::mt19937 random(1);
    for (size_t attempt = 0; attempt < 4 * count && found.size() < count; ++attempt) {
      Sample s;
      s.on = s.off = random_point(random);
      if (!project(s.on)) continue;
      settle(s.on);
      settle(s.off);
      found.push_back(std::move(s));
    }
    return found;
  }

 private:
  Point random_point(std::mt19937& random) const {
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> unit(0, 1);
    Point p;
    for (const double x0 : start_) p.x.push_back(x0 + std::max(1.0, std::abs(x0)) * normal(random));
    for (size_t i = 0; i < model_.form.switches.size(); ++i) p.sigma.push_back(random() % 2 ? 1.0 : -1.0);
    for (size_t i = 0; i < model_.form.gaps.size(); ++i) p.lambda.push_back(unit(random));
    p.t = 10 * unit(random);
    p.counters.resize(static_cast<size_t>(model_.form.counter_values));
    settle(p);
    return p;
  }

  /// Gives counters and switches the values that belong to the point; a switch exactly at zero keeps its own.
  void settle(Point& p) const {
    for (const Counter& c : model_.form.counters) set_counter(c, count_at(c, at(c.phase, p)), p.counters);
    for (const int i : others_) {
      const double h = at(model_.form.switches[static_cast<size_t>(i)].surface, p);
      if (h > 0) p.sigma[static_cast<size_t>(i)] = 1;
      if (h < 0) p.sigma[static_cast<size_t>(i)] = -1;
    }
  }

  /// Newton's method along the gradient, in the states if h depends on any, else in time.
  bool project(Point& p) const {
    for (int step = 0; step < 20; ++step) {
      const double h = at(h_, p);
      if (!std::isfinite(h)) return false;
      std::vector<double> slope;
      double square = 0, scale = 0;
      for (const Partial& d : slopes_) {
        const double value = at(d.value, p);
        slope.push_back(value);
        square += value * value;
        scale += std::abs(value * p.x[static_cast<size_t>(d.symbol.symbol().index)]);
      }
      const double by_time = slopes_.empty() ? at(time_slope_, p) : 0;
      square += by_time * by_time;
      scale += std::abs(by_time * p.t);
      if (std::abs(h) <= 1e-12 * std::max(scale, std::sqrt(square))) return true;
      if (!(square > 0)) return false;
      for (size_t k = 0; k < slopes_.size(); ++k)
        p.x[static_cast<size_t>(slopes_[k].symbol.symbol().index)] -= h * slope[k] / square;
      p.t -= h * by_time / square;
    }
    return false;
  }

  const Model& model_;
  const std::vector<double>& parameters_;
  std::vector<double> start_;
  Expr h_;
  std::vector<Partial> slopes_;
  Expr time_slope_;
  std::vector<int> others_;  ///< switches that formulas at this surface contain, in order of their nesting
  size_t cost_ = 1;          ///< nodes in all formulas of a sample
};

/// Zero on the surface, up to what rounding leaves of h = 0: small against its size away from the surface.
bool vanishes(const Expr& e, const Surface& surface, const std::vector<Sample>& samples) {
  if (e.is_number()) return e.value() == 0;
  double on = 0, off = 0;
  bool known = false;
  for (const Sample& s : samples) {
    const double there = std::abs(surface.at(e, s.on)), nearby = std::abs(surface.at(e, s.off));
    if (!std::isfinite(there) || !std::isfinite(nearby)) continue;
    known = true;
    on = std::max(on, there);
    off = std::max(off, nearby);
  }
  return known && on <= 1e-9 * off;
}

/// e as a + b*sigma by its values at sigma = -1 and +1.
struct Affine {
  Expr a, b;
};
Affine affine_in(const Expr& e, const Expr& sigma) {
  const Expr slope = differentiate(e, sigma);
  if (!depends_on(slope, sigma)) return {substitute(e, {{sigma, Expr(0.0)}}), slope};
  const Expr plus = substitute(e, {{sigma, Expr(1.0)}}), minus = substitute(e, {{sigma, Expr(-1.0)}});
  return {(plus + minus) / Expr(2.0), (plus - minus) / Expr(2.0)};
}

/// The state that h = 0 determines by itself, and its value: v - vdr = 0 gives v = vdr.
std::optional<std::pair<Expr, Expr>> solve_surface(const Expr& h) {
  for (const Partial& d : gradient(h, SymbolKind::state)) {
    if (!d.value.is_number()) continue;
    const Expr rest = substitute(h, {{d.symbol, Expr(0.0)}});
    return std::pair(d.symbol, -rest / d.value);
  }
  return std::nullopt;
}

/// a/b with what both share divided out, as far as it shows.
Expr reduced_quotient(Expr a, Expr b) {
  bool minus = false;
  const auto strip = [&minus](Expr& e) {
    if (e.op() != Op::neg) return;
    e = e.argument(0);
    minus = !minus;
  };
  strip(a), strip(b);
  while (a.op() == Op::div && b.op() == Op::div && a.argument(1) == b.argument(1)) {
    a = a.argument(0), b = b.argument(0);
    strip(a), strip(b);
  }
  if (minus) a = -a;
  return b.op() == Op::div && b.argument(0).is_number(1) ? a * b.argument(1) : a / b;
}

Attraction attraction_of(const Expr& push, const Surface& surface, const std::vector<Sample>& samples) {
  bool draws = false, drives = false;
  for (const Sample& s : samples) {
    const double b = surface.at(push, s.on);
    draws = draws || b < 0;
    drives = drives || b > 0;
  }
  if (draws && !drives) return Attraction::attracting;
  if (drives && !draws) return Attraction::repelling;
  return Attraction::varying;
}

}  // namespace

SurfaceBehaviour describe_surface(const Model& model, int i, const std::vector<double>& parameters) {
  const Form& form = model.form;
  const Switch& s = form.switches[static_cast<size_t>(i)];
  const Expr own = sigma_symbol(form, i);
  SurfaceBehaviour out;
  if (s.acts_on.empty()) return out;

  const Surface surface(model, i, parameters);
  const std::vector<Sample> samples = surface.samples();
  const bool continuous = std::all_of(s.acts_on.begin(), s.acts_on.end(), [&](int k) {
    return vanishes(affine_in(form.f[static_cast<size_t>(k)], own).b, surface, samples);
  });
  const Expr rate = lie_derivative(s.surface, form);
  const Expr push = affine_in(rate, own).b;
  out.kind = continuous                         ? SurfaceKind::kink
             : vanishes(push, surface, samples) ? SurfaceKind::crossed
                                                : SurfaceKind::sliding;
  if (out.kind != SurfaceKind::sliding) return out;

  out.attraction = attraction_of(push, surface, samples);
  const auto solved = solve_surface(s.surface);
  const auto [a, b] = affine_in(solved ? substitute(rate, {*solved}) : rate, own);
  out.push = b;
  out.sigma = reduced_quotient(-a, b);
  return out;
}

double printed_size(const Expr& root) {
  ExprMap<double> size;
  for (const Expr& e : postorder(std::span(&root, 1))) {
    double sum = e.is_symbol() ? static_cast<double>(e.symbol().name.size()) : 3;
    for (size_t i = 0; i < e.size(); ++i) sum += size.at(e.argument(i));
    size.emplace(e, sum);
  }
  return size.at(root);
}

std::string describe_table(const PointTable& table) {
  const Interpolant& curve = *table.curve;
  const auto beyond = [&] {
    switch (curve.outside()) {
      case Outside::hold: return "held outside";
      case Outside::repeat: return "repeated outside";
      case Outside::zero: return "zero outside";
      case Outside::error: break;
    }
    return "not given outside";
  };
  return fmt::format("{} points from {} to {}, {}, {}", curve.x().size(), print_number(curve.x().front()),
                     print_number(curve.x().back()), between_name(curve), beyond());
}

}  // namespace saltus
