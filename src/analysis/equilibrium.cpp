#include "analysis/equilibrium.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "analysis/divisors.hpp"
#include "analysis/thresholds.hpp"
#include "base/index.hpp"
#include "flow/jacobian.hpp"
#include "flow/variation.hpp"
#include "model/period.hpp"

namespace saltus {
namespace {

class Search {
 public:
  Search(const Program& program, const EquilibriumOptions& options)
      : program_(program),
        model_(program.model()),
        options_(options.run),
        variation_(program, options.run),
        divisors_(program.model()) {}

  Equilibrium find() {
    Equilibrium best;
    best.why = "newton";
    if (model_.form.f.empty()) return best;
    if (try_from(options_.initial, best)) return rest_of(std::move(best));
    RunOptions run = options_;
    run.keep_events = false;
    const Trajectory end = simulate(program_, run);
    if (try_from(end.end.state, best)) return rest_of(std::move(best));
    if (!undefined_.empty()) {
      best.why = "undefined";
      best.message = undefined_;
      return best;
    }
    best.message = fmt::format(
        "no equilibrium near the initial values or the end of the run (residual {:.2g}); start nearer to it with -x",
        best.residual);
    return best;
  }

 private:
  /// The equilibrium at one instant of a model with a clock or driven by time, if the state stays there.
  Equilibrium rest_of(Equilibrium found) {
    if (model_.autonomous()) return found;
    RunOptions o = options_;
    o.initial = found.state;
    o.until = o.from + time_to_watch();
    o.keep_events = false;
    o.keep_pieces = true;
    const Trajectory run = simulate(program_, o);
    double growth = 0, size = 0;
    for (const std::complex<double>& e : found.eigenvalues) growth = std::max(growth, e.real());
    for (size_t i = 0; i < found.state.size(); ++i)
      size = std::max({size, std::abs(found.state[i]), std::abs(options_.initial[i])});
    constexpr double still = 1e-7;  // of errors that a run makes, which may grow
    for (const Piece& piece : run.pieces) {
      for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
        std::vector<double> x(found.state.size());
        Trajectory::evaluate(piece, static_cast<int>(x.size()), share * piece.length, x.data());
        const double t = piece.start + share * piece.length;
        for (size_t i = 0; i < x.size(); ++i) {
          if (std::abs(x[i] - found.state[i]) <= still * (size > 0 ? size : 1.0) * std::exp(growth * (t - o.from)))
            continue;
          Equilibrium none{.why = "time", .residual = found.residual};
          none.message = fmt::format(
              "the rates are zero there at t = {:g} only: time moves it; look for a periodic orbit", o.from);
          return none;
        }
      }
    }
    return found;
  }

  /// As long as a period of what depends on time.
  double time_to_watch() const {
    double out = 0;
    for (const LoweredJump& j : model_.form.jumps) {
      if (j.every) out = std::max(out, 1.5 * constant_value(*j.every, options_.parameters));
    }
    if (const std::optional<Period> period = period_in_time(model_, options_.parameters))
      out = std::max(out, period->value);
    return out > 0 ? out : std::max(1.0, std::abs(options_.until - options_.from));
  }

  /// The mode in which a run starts from here.
  std::optional<Arc> mode_at(const std::vector<double>& x) {
    RunOptions o = options_;
    o.initial = x;
    o.until = o.from;
    o.keep_events = false;
    try {
      return simulate(program_, o).last;
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  bool try_from(const std::vector<double>& x, Equilibrium& best) {
    const std::optional<Arc> here = mode_at(x);
    if (!here) return false;
    // The mode itself, then with one letter changed, then with two.
    std::vector<Arc> modes{*here};
    size_t neighbours = 0;  // how many modes differ in one letter at most
    for (size_t level = 0, first = 0; level < 2; ++level) {
      const size_t last = modes.size();
      for (size_t k = first; k < last; ++k) {
        const Arc from = modes[k];
        for (size_t i = 0; i < from.mode.switches.size(); ++i) {
          if (!program_.moves(static_cast<int>(i))) continue;
          for (const char c : {'0', '+', '-'}) add(modes, from, i, c, true);
        }
        for (size_t j = 0; j < from.mode.constraints.size(); ++j) {
          if (program_.joint(static_cast<int>(j))) continue;
          for (const char c : {'c', 'o'}) add(modes, from, j, c, false);
        }
      }
      first = last;
      if (level == 0) neighbours = modes.size();
      if (modes.size() > 400) break;
    }
    // The mode here comes first, unless a neighbour rests much nearer; then the nearest.
    std::optional<Arc> mode;
    std::vector<double> state;
    double nearest = HUGE_VAL, left = 0;
    for (size_t k = 0; k < modes.size(); ++k) {
      if (k == neighbours && mode) break;
      std::vector<double> y = x;
      double residual = 0;
      const bool solved = newton(modes[k], y, residual);
      if (best.residual == 0 || residual < best.residual) best.residual = residual;
      if (!solved || !admissible(modes[k], y) || is_undefined(modes[k], x, y)) continue;
      double distance =
          (k == 0 ? much_nearer : 1.0) * (column_at(y.data(), ix(y.size())) - column_at(x.data(), ix(x.size()))).norm();
      if (mode && !(distance < nearest)) continue;
      nearest = distance;
      mode = modes[k];
      state = y;
      left = residual;
    }
    if (!mode) return false;
    // A component below the residue of Newton's method is zero.
    double size = 0;
    for (size_t i = 0; i < x.size(); ++i) size = std::max({size, std::abs(x[i]), std::abs(state[i])});
    for (double& v : state) v = std::abs(v) < 1e-30 * size ? 0.0 : v;
    tell(*mode, state, left, best);
    return true;
  }

  static void add(std::vector<Arc>& modes, const Arc& from, size_t i, char letter, bool is_switch) {
    Arc next = from;
    next.held.clear();
    (is_switch ? next.mode.switches[i] : next.mode.constraints[i]) = letter;
    const bool known = std::any_of(modes.begin(), modes.end(), [&](const Arc& a) { return a.mode == next.mode; });
    if (!known && modes.size() < 2000) modes.push_back(std::move(next));
  }

  /// f and F, and their derivatives, at x; false where they are not to be had.
  bool equations(const Arc& arc, const std::vector<double>& x, Vec& r, Mat& J) {
    const Vec f = variation_.rates(arc, x, options_.from);
    if (!f.allFinite()) return false;
    Series& series = variation_.series();
    if (series.evaluate(x, options_.from, arc.counters) != SeriesStatus::ok) return false;
    const Mat by_state = jacobian_.at(series, options_.from, arc.counters);
    Vec values;
    Mat functions;
    variation_.manifold(arc, x, options_.from, values, functions);
    r.resize(f.size() + values.size());
    r << f, values;
    J.resize(r.size(), f.size());
    J << by_state, functions;
    return r.allFinite() && J.allFinite();
  }

  bool newton(const Arc& arc, std::vector<double>& x, double& residual) {
    Vec r;
    Mat J;
    residual = HUGE_VAL;
    if (!equations(arc, x, r, J)) return false;
    for (int iteration = 0; iteration < 60; ++iteration) {
      residual = r.norm();
      if (residual == 0) return true;
      const Vec step = -Orthogonal(J, free_share).solve(r);
      if (!step.allFinite()) return false;
      double share = 1;
      std::vector<double> next;
      bool better = false;
      Vec r2;
      Mat J2;
      for (int halving = 0; halving < 20; ++halving, share /= 2) {
        next = x;
        for (size_t i = 0; i < x.size(); ++i) next[i] += share * step[ix(i)];
        if (!equations(arc, next, r2, J2)) continue;
        if (r2.norm() < residual) {
          better = true;
          break;
        }
      }
      const double size = 1e-300 + column_at(x.data(), ix(x.size())).norm();
      if (!better) return step.norm() < 1e-9 * std::max(size, 1.0) && small(r, J, size);
      x = next;
      r = r2;
      J = J2;
      if (share == 1 && step.norm() < 1e-15 * size) {
        residual = r.norm();
        return small(r, J, size);
      }
    }
    return residual < 1e-10;
  }

  /// True if the rates are 0/0 where Newton's method leads from a start; a message then says why.
  bool is_undefined(const Arc& arc, const std::vector<double>& start, const std::vector<double>& x) {
    Vec r;
    Mat J;
    if (!equations(arc, x, r, J)) return true;
    const Vec step = -Orthogonal(J, singular_share).solve(r);  // slopes by what divides are infinite there
    std::vector<double> next = x;
    for (size_t i = 0; i < x.size(); ++i) next[i] += step[ix(i)];
    const std::optional<std::string> divisor = divisors_.vanishing(options_.parameters, options_.from, start, x, next);
    if (!divisor) return false;
    undefined_ = fmt::format(
        "the rates are 0/0 where Newton's method leads: '{}' vanishes there, which is no equilibrium of the model; "
        "start "
        "nearer to another one with -x",
        *divisor);
    return true;
  }

  static bool small(const Vec& r, const Mat& J, double size) {
    return r.norm() <= 1e-10 * (1e-3 + J.norm() * std::max(size, 1.0));
  }

  bool admissible(const Arc& arc, const std::vector<double>& x) {
    Series& series = variation_.series();
    variation_.rates(arc, x, options_.from);
    if (series.evaluate(x, options_.from, arc.counters) != SeriesStatus::ok) return false;
    const int m = program_.switches();
    for (int i = 0; i < m; ++i) {
      const char c = arc.mode.switches[at(i)];
      const double h = series.surface(i)[0];
      const double sigma = series.unknown(i)[0];
      if (c == '+' && h < -1e-12) return false;
      if (c == '-' && h > 1e-12) return false;
      if (c == '0' && (std::abs(sigma) > series.hold(i) + 1e-9 || std::abs(h) > 1e-9)) return false;
    }
    for (int j = 0; j < program_.constraints(); ++j) {
      const bool closed = arc.mode.constraints[at(j)] == 'c';
      if (program_.joint(j)) continue;
      if (closed && series.unknown(m + j)[0] < -1e-9) return false;
      if (!closed && series.gap(j)[0] < -1e-12) return false;
    }
    return true;
  }

  void tell(const Arc& arc, const std::vector<double>& x, double residual, Equilibrium& out) {
    const Index n = ix(x.size());
    Vec r, values;
    Mat J, functions;
    equations(arc, x, r, J);
    variation_.manifold(arc, x, options_.from, values, functions);
    const Mat by_state = J.topRows(n),
              tangent = functions.rows() > 0 ? null_space(functions, free_share) : Mat(Mat::Identity(n, n));
    out.state = x;
    out.mode = visible_mode(arc.mode, model_.form.visible);
    out.arc = arc;
    out.residual = residual;
    out.why.clear();
    const bool slides = std::any_of(arc.mode.switches.begin(), arc.mode.switches.begin() + model_.form.visible,
                                    [](char c) { return c == '0'; });
    out.kind = slides ? Equilibrium::Kind::pseudo : Equilibrium::Kind::equilibrium;
    const Mat within = tangent.transpose() * by_state * tangent;
    if (within.rows() > 0) {
      for (const std::complex<double>& e : eigenvalues(within)) out.eigenvalues.push_back(e);
    }
    std::stable_sort(out.eigenvalues.begin(), out.eigenvalues.end(), [](const auto& a, const auto& b) {
      if (std::abs(a.real() - b.real()) > 1e-12 * std::abs(a)) return a.real() > b.real();
      return a.imag() > b.imag();
    });
    out.stable = std::all_of(out.eigenvalues.begin(), out.eigenvalues.end(),
                             [](const std::complex<double>& e) { return e.real() < 0; });
    Series& series = variation_.series();
    variation_.rates(arc, x, options_.from);
    for (int j = 0; j < program_.constraints(); ++j) {
      if (arc.mode.constraints[at(j)] != 'c' || program_.joint(j)) continue;
      const double force = series.unknown(program_.switches() + j)[0];
      out.margin = std::min(out.margin.value_or(HUGE_VAL), force);
    }
    find_set(arc, x, J, out);
  }

  /// Where equations leave a direction free and something slides or is closed: how far the set goes both ways.
  void find_set(const Arc& arc, const std::vector<double>& x, const Mat& J, Equilibrium& out) {
    const Mat free = null_space(J, free_share);
    bool bounded = arc.mode.switches.find('0') != std::string::npos;
    for (int j = 0; j < program_.constraints(); ++j)
      bounded = bounded || (arc.mode.constraints[at(j)] == 'c' && !program_.joint(j));
    if (free.cols() == 0 || !bounded) return;
    out.kind = Equilibrium::Kind::set;
    const Vec direction = free.col(0);
    Index largest = 0;
    direction.cwiseAbs().maxCoeff(&largest);
    const Vec way = direction[largest] > 0 ? direction : Vec(-direction);
    out.to = end_of(arc, x, way);
    out.from = end_of(arc, x, -way);
  }

  /// The last admissible equilibrium along a direction.
  std::vector<double> end_of(const Arc& arc, const std::vector<double>& x, const Vec& way) {
    const auto at_distance = [&](double d, std::vector<double>& y) {
      y = x;
      for (size_t i = 0; i < x.size(); ++i) y[i] += d * way[ix(i)];
      double residual = 0;
      return newton(arc, y, residual) && admissible(arc, y);
    };
    std::vector<double> y = x, good = x;
    double inside = 0, outside = 1e-3;
    while (outside < 1e9 && at_distance(outside, y)) {
      good = y;
      inside = outside;
      outside *= 2;
    }
    for (int halving = 0; halving < 100 && outside - inside > 1e-15 * outside; ++halving) {
      const double middle = 0.5 * (inside + outside);
      if (at_distance(middle, y)) {
        good = y;
        inside = middle;
      } else {
        outside = middle;
      }
    }
    return good;
  }

  const Program& program_;
  const Model& model_;
  RunOptions options_;
  Variation variation_;
  RateJacobian jacobian_;
  Divisors divisors_;
  std::string undefined_;  ///< why a solution of the equations is none of the model; empty: there was none
};

}  // namespace

Equilibrium find_equilibrium(const Program& program, const EquilibriumOptions& options) {
  return Search(program, options).find();
}

}  // namespace saltus
