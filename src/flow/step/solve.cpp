#include "flow/step/solve.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/index.hpp"
#include "base/numbers.hpp"
#include "solve/narrow_order.hpp"

namespace saltus {
namespace {

constexpr int dense_up_to = 48;       // unknowns; larger systems are factorised sparse
constexpr int condensed_up_to = 120;  // items and states whose complementarity problem is made dense
constexpr int most_iterations = 12;
constexpr double converged = 1e-13;
constexpr double slow_convergence = 0.1;  // of Newton's method: its matrix is that of another place
constexpr double item_weight = 1e-3;      // items need not be as exact as states

using Entries = std::vector<SparseEntry>;

/// Adds factor * A at an offset.
void add(Entries& out, const SparseMat& A, double factor, int row_offset, int column_offset) {
  for (int c = 0; c < A.cols(); ++c) {
    for (const auto [row, value] : A.column(c)) out.push_back({row + row_offset, c + column_offset, factor * value});
  }
}

}  // namespace

StepSolver::StepSolver(const Program& program, std::span<const double> parameters)
    : program_(program),
      parameters_(parameters.begin(), parameters.end()),
      n_(program.states()),
      m_(program.switches()),
      items_(program.unknowns()),
      u_(Vec::Zero(items_)),
      u_guess_(Vec::Zero(items_)),
      scale_(Vec::Zero(n_)) {
  counters_.assign(static_cast<size_t>(program.model().form.counter_values), 0.0);
}

void StepSolver::bind(std::span<const double> parameters) {
  parameters_.assign(parameters.begin(), parameters.end());
  for (auto& [key, formulas] : all_) formulas->bind(parameters);
  formulas_ = nullptr;
  dense_.of = nullptr;
  simpson_ = theta_ = {};
  simpson_whole_ = {};
  theta_whole_ = {};
  u_guess_.setZero();
  scale_.setZero();
}

void StepSolver::expect_sliding(int item) {
  if (size() > condensed_up_to) u_guess_[item] = 0;
}

void StepSolver::set_mode(const Mode& mode, std::span<const std::pair<int, double>> held, bool raise) {
  if (formulas_ && mode == mode_ && raise == raise_ && std::equal(held.begin(), held.end(), held_.begin(), held_.end()))
    return;
  mode_ = mode;
  raise_ = raise;
  held_.assign(held.begin(), held.end());
  const StepKey key = step_key(program_, mode.switches, raise);
  raised_ = !key.raised.empty();
  std::unique_ptr<StepFormulas>& entry = all_[key];
  if (!entry) entry = std::make_unique<StepFormulas>(program_, key, parameters_);
  formulas_ = entry.get();
  active_.clear();
  for (int i = 0; i < m_; ++i) {
    const char c = mode.switches[at(i)];
    u_[i] = c == '+' ? 1.0 : c == '-' ? -1.0 : c == '=' ? program_.model().form.switches[at(i)].at_zero : 0.0;
    if (c == '0' && program_.moves(i)) active_.push_back(i);
  }
  for (int j = 0; m_ + j < items_; ++j) {
    u_[m_ + j] = 0;
    if (mode.constraints[at(j)] == 'c') active_.push_back(m_ + j);
  }
  for (const auto& [item, value] : held) {
    u_[item] = value;
    std::erase(active_, item);
  }
}

// ---- linear systems ----------------------------------------------------------------------------------------------

/// States such that those which see each other are near; every item beside the last state in its condition: chains stay
/// banded.
void StepSolver::order_states(const StepSlopes& s) {
  std::vector<std::vector<int>> near(at(n_)), members(at(items_));
  const auto join = [&](int a, int b) {
    if (a == b) return;
    near[at(a)].push_back(b);
    near[at(b)].push_back(a);
  };
  anchors_.assign(at(items_), 0);
  for (int i = 0; i < items_; ++i) {
    for (const auto [row, value] : s.G.column(i)) members[at(i)].push_back(row);
  }
  for (int j = 0; j < n_; ++j) {
    for (const auto [row, value] : s.J.column(j)) join(row, j);
    for (const auto [row, value] : s.C.column(j)) members[at(row)].push_back(j);
  }
  for (const std::vector<int>& m : members) {
    for (size_t k = 1; k < m.size(); ++k) join(m[k - 1], m[k]);
  }
  for (std::vector<int>& list : near) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  const NarrowOrder narrow = narrow_order(near);
  state_order_ = narrow.order;
  for (int i = 0; i < items_; ++i) {
    for (const int j : members[at(i)]) {
      const std::vector<int>& rank = narrow.position;
      if (j == members[at(i)].front() || rank[at(j)] > rank[at(anchors_[at(i)])]) anchors_[at(i)] = j;
    }
  }
}

/// Where states and items, `copies` times, stand in a sparse matrix.
std::vector<int> StepSolver::places(int copies) const {
  std::vector<std::vector<int>> beside(at(n_));
  for (int i = 0; i < items_; ++i) beside[at(anchors_[at(i)])].push_back(i);
  std::vector<int> place(at(n_ + copies * items_), 0);
  int next = 0;
  for (const int j : state_order_) {
    place[at(j)] = next++;
    for (const int i : beside[at(j)]) {
      for (int c = 0; c < copies; ++c) place[at(n_ + c * items_ + i)] = next++;
    }
  }
  return place;
}

bool StepSolver::is_current(const Factor& f, double h, double theta) const {
  return f.formulas == formulas_ && f.h == h && f.theta == theta && f.active == active_ &&
         (theta != 0 || f.by_states == algebraic_);
}

bool StepSolver::is_current(const Whole& w, double h, double theta) const {
  return w.formulas == formulas_ && w.h == h && w.theta == theta && (theta != 0 || w.by_states == algebraic_);
}

/// True if the conditions of all active items contain them, so that states tell what they are: diodes in series with
/// resistors.
bool StepSolver::is_algebraic(double t, const Vec& x, const Vec& u) {
  const std::vector<Gap>& gaps = program_.model().form.gaps;
  const auto of_degree_zero = [&](int item) { return item >= m_ && gaps[at(item - m_)].degree == 0; };
  if (active_.empty() || !std::all_of(active_.begin(), active_.end(), of_degree_zero)) return false;
  if (affine() && algebraic_for_ == formulas_ && algebraic_active_ == active_) return algebraic_there_;
  algebraic_for_ = formulas_;
  algebraic_active_ = active_;
  const SparseMat& D = slopes(t, x, u).D;
  if (n_ + 2 * static_cast<int>(active_.size()) <= dense_up_to) {
    const Mat own = Mat(D).part(active_);
    return algebraic_there_ = own.allFinite() && Lu(own).rcond() > 1e-10;  // otherwise some are kept by rates
  }
  Vec margin = Vec::Zero(items_);  // of each item's own part over those of others
  for (const int j : active_) {
    for (const auto [i, value] : D.column(j)) margin[i] += i == j ? std::abs(value) : -std::abs(value);
  }
  return algebraic_there_ = std::all_of(active_.begin(), active_.end(), [&](int i) { return margin[i] > 0; });
}

bool StepSolver::moves_conditions(double t, const Vec& x, const Vec& u) {
  const StepSlopes& s = slopes(t, x, u);
  Vec moving = Vec::Zero(items_);  // what active items do to the rates of conditions, and to conditions
  const SparseMat CG = s.C * s.G;
  for (const int item : active_) {
    for (const auto [i, value] : CG.column(item)) moving[i] += std::abs(value);
    for (const auto [i, value] : s.D.column(item)) moving[i] += std::abs(value);
  }
  return std::all_of(active_.begin(), active_.end(), [&](int i) { return moving[i] > 0; });
}

void StepSolver::assemble(double h, double theta, const StepSlopes& s, Factor& f) {
  f.by_states = algebraic_;
  f.formulas = formulas_;
  f.active = active_;
  f.h = h;
  f.theta = theta;
  f.size = n_ + (theta == 0 ? 2 : 1) * static_cast<int>(active_.size());
  f.higher_degree = f.sharpens = false;
  auto& d = dense_;
  if (d.of != formulas_ || !affine()) {
    d.of = formulas_;
    d.J = s.J, d.G = s.G, d.C = s.C, d.D = s.D;
    d.JJ = d.J * d.J, d.JG = d.J * d.G, d.CJ = d.C * d.J, d.CG = d.C * d.G;
  }
  const int k = static_cast<int>(active_.size());
  const bool simpson = theta == 0;
  Mat M(f.size, f.size);
  M.topLeftCorner(n_, n_) = simpson ? Mat(-h / 2 * d.J + h * h / 12 * d.JJ) : Mat(-h * theta * d.J);
  for (int i = 0; i < n_; ++i) M(i, i) += 1;
  for (int a = 0; a < k; ++a) {
    const int i = active_[at(a)];
    M.col(n_ + a).head(n_) = -h * d.G.col(i);
    M.row(n_ + a).head(n_) = d.C.row(i);
    if (simpson && algebraic_) {  // the rates at the start are known
      M.col(n_ + a).head(n_) = Vec(-5 * h / 6 * d.G.col(i)) + Vec(h * h / 12 * d.JG.col(i));
      M.col(n_ + k + a).head(n_) = Vec(-h / 12 * d.G.col(i)) + Vec(h * h / 24 * d.JG.col(i));
      M.row(n_ + k + a).head(n_) = d.C.row(i) / 2 - h / 8 * d.CJ.row(i);
    } else if (simpson) {
      M.col(n_ + k + a).head(n_) = h * h / 12 * d.JG.col(i);
      M.row(n_ + k + a).head(n_) = d.C.row(i) / 2 - h / 8 * d.CJ.row(i);
    }
    bool entered = false;
    for (int b = 0; b < k; ++b) {
      const double D = d.D(i, active_[at(b)]), CG = d.CG(i, active_[at(b)]);
      entered = entered || D != 0 || CG != 0;
      M(n_ + a, n_ + b) = D;
      if (!simpson) continue;
      M(n_ + a, n_ + k + b) = D / 2;
      M(n_ + k + a, n_ + b) = algebraic_ ? D - h / 8 * CG : D;
      M(n_ + k + a, n_ + k + b) = (algebraic_ ? -h / 16 : -h / 8) * CG;
    }
    if (entered) continue;
    // An item that moves nothing (friction under no force) keeps its value; one that moves something else is of higher
    // degree.
    const bool idle = d.G.col(i).isZero() && d.D.col(i).isZero();
    if (idle) {
      M.row(n_ + a).setZero();
      M(n_ + a, n_ + a) = 1;
      if (simpson) {
        M.row(n_ + k + a).setZero();
        M(n_ + k + a, n_ + k + a) = 1;
      }
    }
    f.higher_degree = f.higher_degree || (simpson && !idle);
  }
  f.regular = M.allFinite();
  if (!f.regular || f.higher_degree) return;
  f.lu.factor(M);
  // Rows of conditions and columns of items have their own units: the pivots are compared with their columns.
  const Vec pivots = f.lu.pivots();
  for (int i = 0; i < f.size && f.regular; ++i) f.regular = std::abs(pivots[i]) > 1e-14 * M.col(i).max_abs();
}

/// Simpson's matrix is a polynomial of h: its three coefficients, of one pattern.
void StepSolver::expand_simpson(const StepSlopes& s, Whole& w) {
  const SparseMat JJ = s.J * s.J, JG = s.J * s.G, CJ = s.C * s.J, CG = s.C * s.G, I = SparseMat::Identity(n_);
  const Vec enter = (CG.cwiseAbs() + s.D.cwiseAbs()) * Vec::Ones(items_);
  w.entered.resize(at(items_));
  for (int i = 0; i < items_; ++i) w.entered[at(i)] = enter[i] != 0;
  const int a = n_, b = n_ + items_, size = n_ + 2 * items_;  // where items and their slopes begin
  for (int power = 0; power < 3; ++power) {
    Entries entries;
    const auto part = [&](int of, const SparseMat& A, double factor, int row, int column) {
      add(entries, A, of == power ? factor : 0.0, row, column);
    };
    part(0, I, 1, 0, 0);
    part(1, s.J, -1.0 / 2, 0, 0);
    part(2, JJ, 1.0 / 12, 0, 0);
    part(1, s.G, algebraic_ ? -5.0 / 6 : -1.0, 0, a);
    part(2, JG, algebraic_ ? 1.0 / 12 : 0.0, 0, a);
    part(1, s.G, algebraic_ ? -1.0 / 12 : 0.0, 0, b);
    part(2, JG, algebraic_ ? 1.0 / 24 : 1.0 / 12, 0, b);
    part(0, s.C, 1, a, 0);
    part(0, s.D, 1, a, a);
    part(0, s.D, 0.5, a, b);
    part(0, s.C, 0.5, b, 0);
    part(1, CJ, -1.0 / 8, b, 0);
    part(0, s.D, 1, b, a);
    part(1, CG, algebraic_ ? -1.0 / 8 : 0.0, b, a);
    part(1, CG, algebraic_ ? -1.0 / 16 : -1.0 / 8, b, b);
    for (auto& e : entries) e = {w.place[at(e.row)], w.place[at(e.column)], e.value};
    w.by_power[at(power)] = SparseMat(size, size, entries);
  }
}

void StepSolver::assemble(double h, double theta, const StepSlopes& s, Whole& w) {
  const bool simpson = theta == 0, known = affine() && w.formulas == formulas_ && w.by_states == algebraic_;
  w.formulas = formulas_;
  w.by_states = algebraic_;
  w.h = h;
  w.theta = theta;
  if (state_order_.empty()) order_states(s);
  if (w.place.empty()) w.place = places(simpson ? 2 : 1);
  if (simpson) {
    if (!known) {
      expand_simpson(s, w);
      w.problem.M = w.by_power[0];
    }
    std::vector<double>& values = w.problem.M.values();
    for (size_t e = 0; e < values.size(); ++e)
      values[e] = w.by_power[0].values()[e] + h * (w.by_power[1].values()[e] + h * w.by_power[2].values()[e]);
  } else {
    const int a = n_, size = n_ + items_;  // where items begin
    Entries entries;
    add(entries, SparseMat::Identity(n_), 1, 0, 0);
    add(entries, s.J, -h * theta, 0, 0);
    add(entries, s.G, -1, 0, a);
    add(entries, s.C, 1, a, 0);
    add(entries, s.D, 1 / h, a, a);
    for (auto& e : entries) {
      const double sign = e.row >= n_ ? side(e.row - n_) : 1.0;
      e = {w.place[at(e.row)], w.place[at(e.column)], sign * e.value};
    }
    w.problem.M = SparseMat(size, size, entries);
  }
  w.regular = w.problem.M.allFinite();
  w.factored = false;
}

bool StepSolver::solve(Factor& f, Vec& r) {
  if (f.regular) f.lu.solve_in_place(r);
  return f.regular;
}

bool StepSolver::solve(Whole& w, Vec& r) {
  if (!w.regular) return false;
  const bool simpson = w.theta == 0;
  const int k = static_cast<int>(active_.size()), size = static_cast<int>(w.problem.M.rows());
  w.free.assign(at(size), 0);
  w.rhs.setZero(size);
  w.x.setZero(size);
  const auto each = [&](const auto& f) {  // f(of r, place, item or -1)
    for (int i = 0; i < n_; ++i) f(i, w.place[at(i)], -1);
    for (int c = 0; c < (simpson ? 2 : 1); ++c) {
      for (int i = 0; i < k; ++i) f(n_ + c * k + i, w.place[at(n_ + c * items_ + active_[at(i)])], active_[at(i)]);
    }
  };
  each([&](int i, int place, int item) {
    w.free[at(place)] = 1;
    w.rhs[place] = !simpson && item >= 0 ? side(item) * r[i] : r[i];
  });
  const bool same = std::exchange(w.factored, true);
  if (w.factor.solve(w.problem.M, w.free, w.rhs, w.x, w.sums, same) != LinearFate::regular) return false;
  each([&](int i, int place, int item) { r[i] = !simpson && item >= 0 ? w.x[place] / w.h : w.x[place]; });
  return true;
}

/// Sizes that steps are measured by are larger than the least one here: equations are solved to all their digits.
void StepSolver::grow_scale(const Vec& x) {
  for (int i = 0; i < n_; ++i) scale_[i] = std::max({scale_[i], std::abs(x[i]), 1e-18});
}

/// Size of a change of the unknowns relative to what the states have been and the items are.
double StepSolver::size_of(const Vec& d, const Vec& x) const {
  double size = 0;
  const double least = 1e-3 * scale_.maxCoeff();  // a state at rest is not measured by itself
  for (int i = 0; i < n_; ++i) size = std::max(size, std::abs(d[i]) / std::max({std::abs(x[i]), scale_[i], least}));
  return std::isnan(d.sum()) ? HUGE_VAL : size;
}

// ---- steps in a known mode ---------------------------------------------------------------------------------------

StepFate StepSolver::simpson(const Vec& x0, double t0, double h, const Vec& start, bool want_rates, Step& out) {
  const int k = static_cast<int>(active_.size());
  algebraic_ = is_algebraic(t0, x0, start);
  out.algebraic = algebraic_;
  const double tm = t0 + h / 2, t1 = t0 + h;
  out.h = h;
  out.cubic = true;
  out.x = x0;
  out.u0 = out.u1 = um_ = u_;
  xm_.resize(n_);
  Vec a(k), b = Vec::Zero(k);
  for (int i = 0; i < k; ++i) a[i] = u_guess_[active_[at(i)]];
  grow_scale(x0);
  const auto set_items = [&] {
    for (int i = 0; i < k; ++i) {
      const int item = active_[at(i)];
      out.u0[item] = algebraic_ ? start[item] : a[i] - b[i] / 2;
      um_[item] = a[i];
      out.u1[item] = a[i] + b[i] / 2;
    }
  };
  const auto condition = [&](const Vec& tests, int item) { return tests[formulas_->condition(item)]; };
  bool fresh = false;
  std::array<Vec, 2> away;
  size_t moves = 0;
  double before = HUGE_VAL;
  for (int iteration = 0;; ++iteration) {
    set_items();
    rates(t0, x0, out.u0, f0_);
    rates(t1, out.x, out.u1, f1_);
    for (int i = 0; i < n_; ++i) xm_[i] = (x0[i] + out.x[i]) / 2 + h / 8 * (f0_[i] - f1_[i]);
    rates(tm, xm_, um_, fm_);
    r_.resize(n_ + 2 * k);
    for (int i = 0; i < n_; ++i) r_[i] = x0[i] - out.x[i] + h / 6 * (f0_[i] + 4 * fm_[i] + f1_[i]);
    if (!std::isfinite(r_.head(n_).sum())) {
      if (iteration > 0) return StepFate::not_converged;
      // From the edge of where rates are defined, away from it: by the rates there, or by those that set in.
      if (moves == 0) away = {f0_, f1_};
      if (moves == away.size() || !away[moves].allFinite()) return StepFate::undefined;
      out.x = x0 + h * away[moves++];
      --iteration;
      continue;
    }
    if (k > 0) {
      tests(t1, out.x, out.u1, out.tests);
      tests(tm, xm_, um_, tests_m_);
      for (int i = 0; i < k; ++i) {
        r_[n_ + i] = -condition(out.tests, active_[at(i)]);
        r_[n_ + k + i] = -condition(tests_m_, active_[at(i)]);
      }
    }
    const bool dense = n_ + 2 * k <= dense_up_to, late = iteration > 1 && !fresh && !affine();
    if (late || !(dense ? is_current(simpson_, h, 0) : is_current(simpson_whole_, h, 0))) {
      const StepSlopes& s = slopes(tm, xm_, um_);
      dense ? assemble(h, 0, s, simpson_) : assemble(h, 0, s, simpson_whole_);
      fresh = true;
      before = HUGE_VAL;
    }
    if (dense ? simpson_.higher_degree
              : std::any_of(active_.begin(), active_.end(), [&](int i) { return !simpson_whole_.entered[at(i)]; }))
      return moves_conditions(t0, x0, start) ? StepFate::not_converged : StepFate::higher_degree;
    if (!(dense ? solve(simpson_, r_) : solve(simpson_whole_, r_)))
      return raised_ ? StepFate::higher_degree : StepFate::singular;
    for (int i = 0; i < n_; ++i) out.x[i] += r_[i];
    for (int i = 0; i < k; ++i) {
      a[i] += r_[n_ + i];
      b[i] += r_[n_ + k + i];
    }
    if (affine()) break;
    double change = size_of(r_, out.x);
    for (int i = 0; i < k; ++i) {  // the slope of an item hardly moves the end of the step
      const double size = 1 + std::abs(a[i]);
      change = std::max(change, item_weight * std::max(std::abs(r_[n_ + i]), std::abs(r_[n_ + k + i])) / size);
    }
    if (change <= converged) break;
    if (!(change < 0.9 * before) && change < 1e-11) break;  // rounding
    if (iteration >= most_iterations || !(change < 2 * before)) return StepFate::not_converged;
    const double ratio = change / before;
    if (before < HUGE_VAL && ratio < 0.5 && change * ratio / (1 - ratio) <= converged) break;
    fresh = fresh && ratio < slow_convergence;
    before = change;
  }
  set_items();
  out.um = um_;
  for (int i = 0; i < k; ++i) u_guess_[active_[at(i)]] = out.u1[active_[at(i)]];
  if (k > 0 && n_ + 2 * k <= dense_up_to) sharpen(t1, out);
  if (want_rates) {
    rates(t0, x0, out.u0, out.f0);
    rates(t1, out.x, out.u1, out.f1);
  }
  tests(t1, out.x, out.u1, out.tests);
  return std::isfinite(out.x.sum()) ? StepFate::ok : StepFate::not_converged;
}

void StepSolver::sharpen(double t1, Step& step) {
  const int k = static_cast<int>(active_.size());
  Factor& f = simpson_;
  for (int round = 0; round < (affine() ? 1 : 2); ++round) {
    if (!(f.sharpens && affine())) {
      const StepSlopes& s = slopes(t1, step.x, step.u1);
      const Mat CG = s.C * s.G, D = s.D;
      Mat M(k, k);
      f.algebraic.assign(at(k), 0);
      for (int a = 0; a < k; ++a) {
        for (int b = 0; b < k; ++b) {
          M(a, b) = CG(active_[at(a)], active_[at(b)]);
          f.algebraic[at(a)] |= D(active_[at(a)], active_[at(b)]) != 0;
        }
        if (f.algebraic[at(a)]) M.row(a) = Mat::Identity(k, k).row(a);
      }
      f.sharp.factor(M);
      f.sharpens = true;
    }
    formulas_->condition_rates(t1, step.x, step.u1, counters_, r_);
    Vec du(k);
    for (int a = 0; a < k; ++a) du[a] = f.algebraic[at(a)] ? 0.0 : -r_[active_[at(a)]];
    f.sharp.solve_in_place(du);
    if (!du.allFinite()) return;
    for (int a = 0; a < k; ++a) step.u1[active_[at(a)]] += du[a];
  }
}

StepFate StepSolver::theta_step(const Vec& x0, double t0, double h, double theta, Step& out) {
  const int k = static_cast<int>(active_.size());
  const double t1 = t0 + h;
  out.h = h;
  out.cubic = false;
  out.x = x0;
  out.u1 = u_;
  grow_scale(x0);
  for (const int item : active_) out.u1[item] = u_guess_[item];
  bool fresh = false;
  double before = HUGE_VAL;
  for (int iteration = 0;; ++iteration) {
    r_.resize(n_ + k);
    rates(t1, out.x, out.u1, f1_);
    for (int i = 0; i < n_; ++i) r_[i] = x0[i] - out.x[i] + h * theta * f1_[i];
    if (theta < 1) {
      rates(t0, x0, out.u1, f0_);
      for (int i = 0; i < n_; ++i) r_[i] += h * (1 - theta) * f0_[i];
    }
    if (!std::isfinite(r_.head(n_).sum())) return iteration == 0 ? StepFate::undefined : StepFate::not_converged;
    if (k > 0) {
      tests(t1, out.x, out.u1, out.tests);
      for (int i = 0; i < k; ++i) {
        r_[n_ + i] = -out.tests[formulas_->condition(active_[at(i)])];
      }
    }
    const bool dense = n_ + k <= dense_up_to, late = iteration > 1 && !fresh && !affine();
    if (late || !(dense ? is_current(theta_, h, theta) : is_current(theta_whole_, h, theta))) {
      const StepSlopes& s = slopes(t1, out.x, out.u1);
      dense ? assemble(h, theta, s, theta_) : assemble(h, theta, s, theta_whole_);
      fresh = true;
      before = HUGE_VAL;
    }
    if (!(dense ? solve(theta_, r_) : solve(theta_whole_, r_))) return StepFate::singular;
    for (int i = 0; i < n_; ++i) out.x[i] += r_[i];
    for (int i = 0; i < k; ++i) out.u1[active_[at(i)]] += r_[n_ + i];
    if (affine()) break;
    const double change = size_of(r_, out.x);
    if (change <= converged) break;
    if (!(change < 0.9 * before) && change < 1e-11) break;  // rounding
    if (iteration >= most_iterations || !(change < 2 * before)) return StepFate::not_converged;
    fresh = fresh && change < slow_convergence * before;
    before = change;
  }
  for (const int item : active_) u_guess_[item] = out.u1[item];
  out.u0 = out.u1;
  tests(t1, out.x, out.u1, out.tests);
  return std::isfinite(out.x.sum()) ? StepFate::ok : StepFate::not_converged;
}

void StepSolver::meet_conditions(double t, const Vec& u, Vec& x) {
  tests(t, x, u, tests_m_);
  Vec c(static_cast<Index>(active_.size()));
  for (size_t i = 0; i < active_.size(); ++i) c[static_cast<Index>(i)] = tests_m_[formulas_->condition(active_[i])];
  const StepSlopes& s = slopes(t, x, u);
  const Mat C = Mat(s.C).rows_at(active_), G = Mat(s.G).columns_at(active_);
  x -= G * Orthogonal(C * G).solve(c);
}

// ---- steps in an unknown mode ------------------------------------------------------------------------------------

void StepSolver::condense(const Vec& x0, double t0, double h, const Vec& u, Mat& M, Vec& q) {
  const StepSlopes& s = slopes(t0, x0, u);
  const Mat A = Mat::Identity(n_, n_) - h * Mat(s.J);
  const Lu lu(A);
  const Mat C = s.C, G = s.G;
  rates(t0 + h, x0, u, f1_);
  Vec tests_now;
  tests(t0 + h, x0, u, tests_now);
  M = h * C * lu.solve_columns(G) + Mat(s.D);
  q.resize(items_);
  const Vec move = C * lu.solve(h * f1_);
  for (int i = 0; i < items_; ++i) {
    q[i] = tests_now[formulas_->condition(i)] + move[i];
  }
  q -= M * u;
}

StepFate StepSolver::complementarity(const Vec& x0, double t0, double h, double theta, const ItemBounds& bounds,
                                     Step& out, std::vector<BoundState>& state, std::string& message) {
  const double t1 = t0 + h;
  out.h = h;
  out.cubic = false;
  out.x = x0;
  out.u1 = u_guess_.cwiseMax(bounds.lo).cwiseMin(bounds.hi);
  grow_scale(x0);
  const bool dense = size() <= condensed_up_to;
  double before = HUGE_VAL;
  for (int iteration = 0;; ++iteration) {
    rates(t1, out.x, out.u1, f1_);
    Vec r = x0 - out.x + h * theta * f1_;
    if (theta < 1) {
      rates(t0, x0, out.u1, f0_);
      r += h * (1 - theta) * f0_;
    }
    tests(t1, out.x, out.u1, out.tests);
    Vec c(items_);
    for (int i = 0; i < items_; ++i) {
      c[i] = out.tests[formulas_->condition(i)] + bounds.offset[i];
    }
    if (!std::isfinite(r.sum()) || !std::isfinite(c.sum()))
      return iteration == 0 ? StepFate::undefined : StepFate::not_converged;
    const StepSlopes& s = slopes(t1, out.x, out.u1);
    BoxSolution box;
    Vec dx, u;
    if (dense) {
      const Mat A = Mat::Identity(n_, n_) - h * theta * Mat(s.J);
      const Lu lu(A);
      const Mat C = s.C, W = lu.solve_columns(h * Mat(s.G));
      const Vec free = lu.solve(r);
      BoxProblem problem{C * W + Mat(s.D), c + C * free, bounds.lo, bounds.hi};
      problem.q -= problem.M * out.u1;
      for (int i = 0; i < items_; ++i) {  // on a surface of higher degree a row is of the size of h^2
        const double size = problem.M.row(i).max_abs();
        const double factor = side(i) / (size > 0 && std::isfinite(size) ? size : 1.0);
        problem.M.row(i) *= factor;
        problem.q[i] *= factor;
      }
      box = solve_box(problem, {.x0 = out.u1});
      if (box.x.size() == items_) {
        u = box.x;
        dx = free + W * (u - out.u1);
        state = box.state;
      }
    } else {
      // The unknowns are the impulses h u, which are of one size however short the step, and x1 moved away from zero by
      // many of its changes over the step: otherwise the rows of states and surfaces that stay zero would have no size
      // to measure residuals by.
      if (!affine() || !is_current(theta_whole_, h, theta)) assemble(h, theta, s, theta_whole_);
      const std::vector<int>& place = theta_whole_.place;
      const int total = n_ + items_;
      SparseBoxProblem& problem = theta_whole_.problem;
      for (Vec* v : {&problem.q, &problem.lo, &problem.hi}) v->resize(total);
      const double largest = r.max_abs();
      const Vec x = out.x + 1e3 * Vec(r.cwiseAbs()) + Vec::Constant(n_, largest);
      Vec guess(total);
      for (int i = 0; i < n_; ++i) guess[place[at(i)]] = x[i];
      for (int i = 0; i < items_; ++i) guess[place[at(n_ + i)]] = h * out.u1[i];
      problem.q = -(problem.M * guess);
      for (int i = 0; i < n_; ++i) {
        const int p = place[at(i)];
        problem.q[p] -= r[i];
        problem.lo[p] = -inf;
        problem.hi[p] = inf;
      }
      for (int i = 0; i < items_; ++i) {
        const int p = place[at(n_ + i)];
        problem.q[p] += side(i) * c[i];
        problem.lo[p] = h * bounds.lo[i];
        problem.hi[p] = h * bounds.hi[i];
      }
      box = solve_box(problem, {.x0 = guess}, &theta_whole_.factor);
      theta_whole_.factored = true;
      if (box.x.size() == total) {
        dx.resize(n_);
        u.resize(items_);
        state.resize(at(items_));
        for (int i = 0; i < n_; ++i) dx[i] = box.x[place[at(i)]] - x[i];
        for (int i = 0; i < items_; ++i) {
          u[i] = box.x[place[at(n_ + i)]] / h;
          state[at(i)] = box.state[at(place[at(n_ + i)])];
        }
      }
    }
    const bool solved =
        box.status == SolveStatus::solved || (box.status == SolveStatus::not_converged && box.residual < 1e-9);
    if (!solved) {
      message = fmt::format(
          "the complementarity problem of the step from t = {:.9g} over {:.3g} could not be solved ({}, "
          "residual {:.3g})",
          t0, h, name(box.status), box.residual);
      return StepFate::unsolved;
    }
    // Products of items (friction under an unknown normal force) may make Newton's method swing: half steps end that.
    const double damping = iteration < 8 ? 1.0 : 0.5;
    double change = size_of(dx, out.x);
    for (int i = 0; i < items_; ++i) change = std::max(change, std::abs(u[i] - out.u1[i]) / (1 + std::abs(u[i])));
    out.x += damping * dx;
    out.u1 += damping * (u - out.u1);
    if (affine() || change <= converged) break;
    if (iteration > 3 && !(change < 0.9 * before) && change < 1e-10) break;  // rounding
    if (iteration > 60) return StepFate::not_converged;
    before = change;
  }
  out.u0 = out.u1;
  u_guess_ = out.u1;
  tests(t1, out.x, out.u1, out.tests);
  return std::isfinite(out.x.sum()) ? StepFate::ok : StepFate::not_converged;
}

}  // namespace saltus
