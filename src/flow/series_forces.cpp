// The slope d residual / d unknown of a mode, and forces that are redundant because it is singular.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "flow/series.hpp"

#include "base/index.hpp"
#include "flow/leading.hpp"

namespace saltus {
namespace {

constexpr size_t banded_from = 64;  // unknowns that see each other: more of them are no longer inverted, if few do

Vec row_scales(const Mat& slope) {
  Vec scale = slope.row_max_abs();
  for (Index i = 0; i < scale.size(); ++i) scale[i] = scale[i] > 0 ? 1 / scale[i] : 1;
  return scale;
}

void invert(Series::Block& block) {
  if (block.slope.rows() == 1) {
    const double b = block.slope(0, 0);
    block.singular = b == 0;
    block.determinant = b;
    block.inverse.resize(1, 1);
    block.inverse(0, 0) = block.singular ? 0 : 1 / b;
    return;
  }
  // Rows are surfaces with units of their own: scale them before judging the rank.
  const Vec scale = row_scales(block.slope);
  const Mat scaled = scale.asDiagonal() * block.slope;
  const Lu lu(scaled);
  block.singular = !(lu.rcond() > singular_rcond);
  block.determinant = lu.determinant();
  if (!block.singular) {
    block.inverse = lu.inverse() * scale.asDiagonal();
    return;
  }
  block.inverse.resize(0, 0);
}

/// Columns that are independent of those before them, in the given order, with the row in which each was eliminated.
void independent_columns(Mat a, const std::vector<int>& order, std::vector<int>& columns, std::vector<int>& rows) {
  columns.clear();
  rows.clear();
  const Index n = a.rows();
  const Vec size = a.column_max_abs();
  std::vector<char> used(static_cast<size_t>(n), 0);
  for (const int c : order) {
    Index best = -1;
    for (Index r = 0; r < n; ++r) {
      if (!used[static_cast<size_t>(r)] && (best < 0 || std::abs(a(r, c)) > std::abs(a(best, c)))) best = r;
    }
    if (best < 0 || !(std::abs(a(best, c)) > independent_column * size[c])) continue;
    used[static_cast<size_t>(best)] = 1;
    columns.push_back(c);
    rows.push_back(static_cast<int>(best));
    for (Index r = 0; r < n; ++r) {
      if (!used[static_cast<size_t>(r)] && a(r, c) != 0) a.row(r) -= a(r, c) / a(best, c) * a.row(best);
    }
  }
}

}  // namespace

/// The slope of a large block as a band. False if it is none, or singular.
bool Series::form_band(Block& block) {
  const size_t n = block.members.size();
  if (n < banded_from) return false;
  if (!block.band) {
    std::vector<std::pair<int, int>> entries;
    for (const SlopeEntry& e : block.entries) entries.emplace_back(e.row, e.column);
    block.band = BandSlope::make(static_cast<int>(n), entries);
    if (!block.band) return false;
  }
  std::vector<double> values;
  for (const SlopeEntry& e : block.entries) values.push_back(e.factor * work_->slope.output(at(e.output))[0]);
  if (!block.band->factor(values)) return false;
  block.slope.resize(0, 0);
  block.inverse.resize(0, 0);
  block.singular = false;
  block.held.clear();
  block.determinant = block.band->sign();
  return true;
}

Mat Series::inverse(const Block& block) { return block.banded ? BandSlope(*block.band).inverse() : block.inverse; }

/// Redundant joints have one motion; their forces are those of least norm.
bool Series::only_joints(const Block& block) const {
  return std::all_of(block.members.begin(), block.members.end(), [this](int member) {
    const int u = plan_->active[at(member)];
    return is_joint(u) && tape_->degree[at(u)] > 0;
  });
}

/// Redundant forces in discs go on from where they are, by the least change (the guess): a disc has no vertex.
bool Series::has_parts(const Block& block) const {
  return std::any_of(block.members.begin(), block.members.end(), [this](int member) {
    const int u = plan_->active[at(member)];
    return u < program_.switches() && program_.vector_of(u) >= 0;
  });
}

bool Series::shares_in_discs() const {
  return program_.vectors() > 0 && std::any_of(plan_->blocks.begin(), plan_->blocks.end(), [this](const Block& block) {
           return block.singular && has_parts(block);
         });
}

void Series::form_slope() {
  if (plan_->slope_known && tape_->slope_constant) return;
  Jet<double>& jet = work_->slope;
  if (!tape_->slope_constant) {
    copy_inputs(jet, 0);
    jet.set_time(t_, 0);
    jet.free(0);
    jet.bound(0);
  }
  for (Single& single : plan_->singles) {
    single.slope = 0;
    for (const auto& [output, factor] : single.entries) single.slope += factor * jet.output(at(output))[0];
    single.inverse = single.slope == 0 ? 0 : 1 / single.slope;
    if (plan_->has_formula) work_->flow[tape_->spare + plan_->active[at(single.member)]][0] = -single.inverse;
  }
  plan_->solvable = std::all_of(plan_->singles.begin(), plan_->singles.end(), [](const Single& single) {
    return single.inverse != 0 && std::isfinite(single.inverse);
  });
  for (Block& block : plan_->blocks) {
    block.banded = form_band(block);
    if (block.banded) continue;
    const Index n = static_cast<Index>(block.members.size());
    block.slope.setZero(n, n);
    for (const SlopeEntry& e : block.entries) block.slope(e.row, e.column) += e.factor * jet.output(at(e.output))[0];
    invert(block);
    if (!block.singular) {
      block.held.clear();
    } else if (block.even || only_joints(block) || has_parts(block)) {
      const Vec scale = row_scales(block.slope);
      block.held.assign(block.members.size(), 0);
      block.inverse =
          Orthogonal(scale.asDiagonal() * block.slope, independent_column).pseudo_inverse() * scale.asDiagonal();
    } else if (block.held.empty() || !invert_basis(block)) {
      choose_basis(block);
    }
  }
  plan_->slope_known = true;
}

void Series::expand_slope(int order) {
  Jet<double>& jet = work_->slope;
  copy_inputs(jet, order);
  jet.set_time(t_, order);
  for (int k = 0; k <= order; ++k) {
    jet.free(k);
    jet.bound(k);
  }
}

/// The residual where all unknowns are zero, and the slopes there.
void Series::stand_unsolved(std::span<const double> x, double t, std::span<const double> counters, Vec& r) {
  t_ = t;
  counters_.assign(counters.begin(), counters.end());
  load(x, t, counters, 0);
  for (const int u : plan_->active) unknown_slot(u)[0] = 0;
  extend_free(0);
  read_residual(0);
  form_slope();
  r = residual_;
}

bool Series::linear_system(std::span<const double> x, double t, std::span<const double> counters, SparseMat& A,
                           Vec& r) {
  stand_unsolved(x, t, counters, r);
  std::vector<SparseEntry> entries;
  bool finite = r.allFinite();
  const auto add = [&](int row, int column, double value) {
    entries.push_back({row, column, value});
    finite = finite && std::isfinite(value);
  };
  for (const Single& single : plan_->singles) add(single.member, single.member, single.slope);
  for (const Block& block : plan_->blocks) {
    for (const SlopeEntry& e : block.entries)
      add(block.members[at(e.row)], block.members[at(e.column)], e.factor * work_->slope.output(at(e.output))[0]);
  }
  const Index n = static_cast<Index>(plan_->active.size());
  A = SparseMat(n, n, entries);
  return finite;
}

bool Series::residuals_at(std::span<const double> x, double t, std::span<const double> counters,
                          std::span<const double> unknowns, Vec& r, Mat& slope) {
  t_ = t;
  counters_.assign(counters.begin(), counters.end());
  load(x, t, counters, 0);
  for (const int u : plan_->active) unknown_slot(u)[0] = unknowns[at(u)];
  extend_free(0);
  read_residual(0);
  slope_whole();
  r = residual_;
  slope = whole_;
  return r.allFinite() && slope.allFinite();
}

bool Series::linear_system(std::span<const double> x, double t, std::span<const double> counters, Mat& A, Vec& r) {
  stand_unsolved(x, t, counters, r);
  const Index n = static_cast<Index>(plan_->active.size());
  A.setZero(n, n);
  for (const Single& single : plan_->singles) A(single.member, single.member) = single.slope;
  for (const Block& block : plan_->blocks) {
    for (const SlopeEntry& e : block.entries)
      A(block.members[at(e.row)], block.members[at(e.column)]) += e.factor * work_->slope.output(at(e.output))[0];
  }
  return A.allFinite() && r.allFinite();
}

// ---- redundant forces ----------------------------------------------------------------------------------------------
//
// Where the slope A of a block is singular, the forces that keep the mode are not unique: {u in bounds : A u = b(t)} is
// a polytope. The series follow one of its vertices: as many basic unknowns as A has rank, the others held at a bound.
// docs/method/redundant_forces.md

/// A first basis: columns in order of the members; the others are held at the bound next to their last value.
void Series::choose_basis(Block& block) {
  const size_t n = block.members.size();
  std::vector<int> order(n), columns, rows;
  std::iota(order.begin(), order.end(), 0);
  std::stable_partition(order.begin(), order.end(),  // a joint has no bound to be held at
                        [&](int i) { return is_joint(plan_->active[at(block.members[at(i)])]); });
  const Mat scaled = row_scales(block.slope).asDiagonal() * block.slope;
  independent_columns(scaled, order, columns, rows);
  block.held.assign(n, 1);
  for (const int c : columns) block.held[at(c)] = 0;
  block.held_at.assign(n, 0.0);
  for (size_t i = 0; i < n; ++i) {
    const int u = plan_->active[at(block.members[i])];
    if (u < program_.switches()) block.held_at[i] = unknown_slot(u)[0] < 0 ? -hold_[at(u)] : hold_[at(u)];
  }
  if (!invert_basis(block))  // slopes that are no numbers
    block.inverse.setZero(static_cast<Index>(n), static_cast<Index>(n));
}

/// The inverse of the basis inside a matrix of zeros. False where the basis does not fit the slope (any more).
bool Series::invert_basis(Block& block) {
  const size_t n = block.members.size();
  std::vector<int> order, columns, rows;
  for (size_t i = 0; i < n; ++i) {
    if (!block.held[i]) order.push_back(static_cast<int>(i));
  }
  const size_t basic = order.size();
  for (size_t i = 0; i < n; ++i) {
    if (block.held[i]) order.push_back(static_cast<int>(i));
  }
  const Vec scale = row_scales(block.slope);
  const Mat scaled = scale.asDiagonal() * block.slope;
  independent_columns(scaled, order, columns, rows);
  if (columns.size() != basic || !std::equal(columns.begin(), columns.end(), order.begin())) return false;
  const Index r = static_cast<Index>(basic);
  Mat square(r, r);
  for (Index i = 0; i < r; ++i) {
    for (Index j = 0; j < r; ++j) square(i, j) = scaled(rows[static_cast<size_t>(i)], columns[static_cast<size_t>(j)]);
  }
  const Mat inverse = Lu(square).inverse();
  block.inverse.setZero(static_cast<Index>(n), static_cast<Index>(n));
  for (Index i = 0; i < r; ++i) {
    for (Index j = 0; j < r; ++j) {
      const int row = rows[static_cast<size_t>(j)];
      block.inverse(columns[static_cast<size_t>(i)], row) = inverse(i, j) * scale[row];
    }
  }
  return true;
}

void Series::share_evenly(bool even) {
  for (Block& block : plan_->blocks) {
    if (block.even == even) continue;
    block.even = even;
    block.held.clear();
    plan_->slope_known = false;
  }
}

void Series::take_held_values() {
  for (const Block& block : plan_->blocks) {
    if (!block.singular) continue;
    for (size_t i = 0; i < block.members.size(); ++i) {
      if (!block.held[i]) continue;
      const int u = plan_->active[at(block.members[i])];
      held_[at(u)] = any_held_ = true;
      unknown_slot(u)[0] = block.held_at[i];
    }
  }
}

/// Friction moves nothing under a normal force that is not known yet: what is held there is free once it is.
void Series::release_regular_blocks() {
  any_held_ = false;
  for (const Block& block : plan_->blocks) {
    for (const int member : block.members) {
      const size_t u = at(plan_->active[at(member)]);
      held_[u] = held_[u] && block.singular;
      any_held_ = any_held_ || held_[u];
    }
  }
}

/// The side on which an unknown leaves its bounds just after the point, 0 if it stays inside.
int Series::violated_bound(int u, double time_scale, double direction, int order) const {
  const double* c = unknown(u);
  const auto leaves = [&](double bound, double side) {  // side * (bound - u) must stay positive
    const double size = u < program_.switches() ? 1.0 : std::max(std::abs(c[0]), std::abs(c[1]) * time_scale);
    const double margin = side * (bound - c[0]);
    if (std::abs(margin) > bound_margin * size) return margin < 0;
    std::vector<double> rest(at(order) + 1, 0.0);
    for (int k = 1; k <= order; ++k) rest[at(k)] = -side * c[k];
    return leading_coefficient(rest.data(), 1, order, time_scale, direction, sigma_rate_noise * size / time_scale)
               .sign < 0;
  };
  if (is_joint(u)) return 0;
  if (u >= program_.switches()) return leaves(0.0, -1) ? -1 : 0;
  if (leaves(hold_[at(u)], 1)) return 1;
  return leaves(-hold_[at(u)], -1) ? -1 : 0;
}

int Series::leading_at_bound(int u, int order, double time_scale, double direction) const {
  const double* c = unknown(u);
  const double bound = u < program_.switches() ? hold_[at(u)] : 0.0;
  const double size = u < program_.switches() ? 1.0 : std::max(std::abs(c[0]), std::abs(c[1]) * time_scale);
  if (std::abs(std::abs(c[0]) - bound) > bound_margin * size) return 0;
  return leading_coefficient(c, 1, order, time_scale, direction, sigma_rate_noise * size / time_scale).index;
}

/// One pivot of a basis that leaves its bounds (least indices, so that it ends). False if nothing is left to do;
/// `feasible` then says whether the basis stays inside.
bool Series::pivot(double time_scale, double direction, int order, bool& feasible) {
  const int m = program_.switches();
  for (Block& block : plan_->blocks) {
    if (!block.singular || block.even) continue;
    for (size_t k = 0; k < block.members.size(); ++k) {
      if (block.held[k]) continue;
      const int u = plan_->active[at(block.members[k])];
      const int side = violated_bound(u, time_scale, direction, order);
      if (side == 0) continue;
      const Vec row = block.inverse.row(static_cast<Index>(k));
      for (size_t j = 0; j < block.members.size(); ++j) {
        if (!block.held[j]) continue;
        const int other = plan_->active[at(block.members[j])];
        // How u changes if the other one moves off its bound, into its range.
        const double into = other >= m || block.held_at[j] < 0 ? 1 : -1;
        const double change = -into * row.dot(block.slope.col(static_cast<Index>(j)));
        const double size = row.cwiseAbs().dot(block.slope.col(static_cast<Index>(j)).cwiseAbs());
        const double gain = is_joint(other) ? -std::abs(change) : change * side;
        if (!(gain < -independent_column * size) || size == 0) continue;
        block.held[k] = 1;
        block.held_at[k] = u < m ? side * hold_[at(u)] : 0.0;
        block.held[j] = 0;
        if (invert_basis(block)) return true;
        block.held[k] = 0;
        block.held[j] = 1;
        invert_basis(block);
      }
      feasible = false;
      return false;
    }
  }
  feasible = true;
  return false;
}

SeriesStatus Series::distribute(std::span<const double> x, double t, std::span<const double> counters, int order,
                                double time_scale, double direction) {
  const size_t most = 100 + 20 * plan_->active.size();
  for (size_t round = 0; round < most; ++round) {
    const SeriesStatus status = expand(x, t, counters, order);
    if (status != SeriesStatus::ok || !any_held_) return status;
    bool feasible = true;
    if (!pivot(time_scale, direction, order, feasible)) return feasible ? status : SeriesStatus::unsolved;
  }
  return SeriesStatus::unsolved;
}

std::vector<std::pair<int, double>> Series::held_values() const {
  std::vector<std::pair<int, double>> out;
  for (const int u : plan_->active) {
    if (held_[at(u)]) out.emplace_back(u, unknown(u)[0]);
  }
  for (const Block& block : plan_->blocks) {
    if (!block.singular || block.banded || !only_joints(block)) continue;
    std::vector<int> order(block.members.size()), columns, rows;
    std::iota(order.begin(), order.end(), 0);
    independent_columns(row_scales(block.slope).asDiagonal() * block.slope, order, columns, rows);
    for (const int i : order) {
      const int u = plan_->active[at(block.members[at(i)])];
      if (std::find(columns.begin(), columns.end(), i) == columns.end()) out.emplace_back(u, unknown(u)[0]);
    }
  }
  return out;
}

void Series::hold_at(const std::vector<std::pair<int, double>>& values) {
  if (values.empty()) return;
  for (Block& block : plan_->blocks) {
    std::vector<char> held(block.members.size(), 0);
    std::vector<double> held_at(block.members.size(), 0.0);
    bool any = false;
    for (size_t i = 0; i < block.members.size(); ++i) {
      for (const auto& [u, value] : values) {
        if (plan_->active[at(block.members[i])] != u) continue;
        held[i] = 1;
        held_at[i] = value;
        any = true;
      }
    }
    if (!any) continue;
    block.held = held;
    block.held_at = held_at;
    plan_->slope_known = false;
  }
}

namespace {

/// Newton steps in one set of rows; `along`: columns that x moves along.
struct JointRows {
  Mat slopes, along;
  Vec values;
};

/// x -= along (slopes along)^+ values.
bool land_on_rows(const JointRows& rows, std::span<double> x) {
  if (!rows.slopes.allFinite() || !rows.values.allFinite()) return false;
  const Vec step = rows.along * Orthogonal(rows.slopes * rows.along, independent_column).solve(rows.values);
  if (!step.allFinite()) return false;
  for (size_t i = 0; i < x.size(); ++i) x[i] -= step[ix(i)];
  return true;
}

}  // namespace

/// Positions along their own gradients, then speeds along the directions in which multipliers move them (least kinetic
/// energy), each by Newton's method: docs/method/joints.md
double Series::project_joints(std::span<double> x, double t, std::span<const double> counters, bool contacts) {
  std::vector<int> kept;
  for (int j = 0; j < program_.constraints(); ++j) {
    const bool closed = mode_.constraints[at(j)] == 'c' && (contacts || program_.joint(j));
    if (closed && program_.model().form.gaps[at(j)].degree > 0) kept.push_back(j);
  }
  double found = 0;
  if (kept.empty() || program_.attract() > 0) return found;
  counters_.assign(counters.begin(), counters.end());
  t_ = t;
  const Index n = ix(x.size());
  constexpr int most = 6;  // steps of Newton's method: from rounding one or two suffice
  for (const bool speeds : {false, true}) {
    double before = HUGE_VAL;
    for (int step = 0; step < most; ++step) {
      stand_at(x, t, counters);
      const Jet<double>& jet = manifold();
      const Jet<double>& acts = actions();
      JointRows rows;
      std::vector<int> use;
      for (const int j : kept) {
        const size_t functions = tape_->manifolds[at(program_.switches() + j)].size();
        if (functions > 0 && (speeds || functions > 1)) use.push_back(j);
      }
      if (use.empty()) break;
      rows.slopes = Mat::Zero(ix(use.size()), n);
      rows.along = Mat::Zero(n, ix(use.size()));
      rows.values = Vec::Zero(ix(use.size()));
      for (size_t a = 0; a < use.size(); ++a) {
        const std::vector<ManifoldFunction>& functions = tape_->manifolds[at(program_.switches() + use[a])];
        const ManifoldFunction& f = speeds ? functions.back() : functions.front();
        rows.values[ix(a)] = jet.output(at(f.value))[0];
        for (const auto& [i, output] : f.gradient) rows.slopes(ix(a), i) = jet.output(at(output))[0];
        const auto& direction = program_.model().form.gaps[at(use[a])].direction;
        for (size_t d = 0; speeds && d < direction.size(); ++d)
          rows.along(direction[d].state, ix(a)) = acts.output(program_.direction(use[a], static_cast<int>(d)))[0];
      }
      if (!speeds) rows.along = rows.slopes.transpose();
      const double size = rows.values.max_abs();
      found = std::max(found, step == 0 ? size : 0.0);
      if (size == 0 || !(size < 0.5 * before)) break;
      before = size;
      if (!land_on_rows(rows, x)) return found;
    }
  }
  return found;
}

void Series::project_together(std::span<double> x, double t, std::span<const double> counters) {
  constexpr size_t most_functions = 64;
  std::vector<const ManifoldFunction*> all;
  for (const auto* rows : {&plan_->rows, &plan_->still}) {
    for (const int row : *rows) {
      for (const ManifoldFunction& function : tape_->manifolds[at(row)]) all.push_back(&function);
    }
  }
  if (all.size() < 2 || all.size() > most_functions || program_.attract() > 0) return;
  counters_.assign(counters.begin(), counters.end());
  t_ = t;
  Jet<double>& jet = work_->manifold;
  copy_inputs(jet, 0);
  jet.set_time(t, 0);
  constexpr int sweeps = 3;  // of Newton's method
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    for (size_t i = 0; i < x.size(); ++i) jet[tape_->manifold.states[i]][0] = x[i];
    jet.free(0);
    jet.bound(0);
    Mat slopes = Mat::Zero(ix(all.size()), ix(x.size()));
    Vec values(ix(all.size()));
    for (size_t r = 0; r < all.size(); ++r) {
      double square = 0;
      for (const auto& [i, output] : all[r]->gradient) square += std::pow(jet.output(at(output))[0], 2);
      const double scale = square > 0 ? 1 / std::sqrt(square) : 0;
      for (const auto& [i, output] : all[r]->gradient) slopes(ix(r), i) = scale * jet.output(at(output))[0];
      values[ix(r)] = scale * jet.output(at(all[r]->value))[0];
    }
    if (!slopes.allFinite() || !values.allFinite()) return;
    const Vec step = Orthogonal(slopes).solve(values);
    for (size_t i = 0; i < x.size(); ++i) x[i] -= step[ix(i)];
  }
}

}  // namespace saltus
