#include "flow/series.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "flow/leading.hpp"

namespace saltus {
namespace {

size_t at(int i) { return static_cast<size_t>(i); }

/// Groups of positions that are connected by slope entries.
std::vector<int> find_groups(size_t count, const std::vector<SlopeEntry>& entries) {
  std::vector<int> parent(count);
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](int i) {
    while (parent[at(i)] != i) i = parent[at(i)] = parent[at(parent[at(i)])];
    return i;
  };
  for (const SlopeEntry& e : entries) parent[at(root(e.row))] = root(e.column);
  for (size_t i = 0; i < count; ++i) parent[i] = root(static_cast<int>(i));
  return parent;
}

Vec row_scales(const Mat& slope) {
  Vec scale = slope.cwiseAbs().rowwise().maxCoeff();
  for (Eigen::Index i = 0; i < scale.size(); ++i) scale[i] = scale[i] > 0 ? 1 / scale[i] : 1;
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
  const Eigen::Index n = a.rows();
  const Vec size = a.cwiseAbs().colwise().maxCoeff().transpose();
  std::vector<char> used(static_cast<size_t>(n), 0);
  for (const int c : order) {
    Eigen::Index best = -1;
    for (Eigen::Index r = 0; r < n; ++r) {
      if (!used[static_cast<size_t>(r)] && (best < 0 || std::abs(a(r, c)) > std::abs(a(best, c)))) best = r;
    }
    if (best < 0 || !(std::abs(a(best, c)) > independent_column * size[c])) continue;
    used[static_cast<size_t>(best)] = 1;
    columns.push_back(c);
    rows.push_back(static_cast<int>(best));
    for (Eigen::Index r = 0; r < n; ++r) {
      if (!used[static_cast<size_t>(r)] && a(r, c) != 0) a.row(r) -= a(r, c) / a(best, c) * a.row(best);
    }
  }
}

}  // namespace

Series::Series(const Program& program, std::span<const double> parameters, int order)
    : program_(program), parameters_(parameters.begin(), parameters.end()), order_(order) {
  for (const Switch& s : program.model().form.switches) hold_.push_back(constant_value(s.hold, parameters_));
  held_.assign(at(program.unknowns()), false);
}

void Series::bind(std::span<const double> parameters) {
  parameters_.assign(parameters.begin(), parameters.end());
  hold_.clear();
  for (const Switch& s : program_.model().form.switches) hold_.push_back(constant_value(s.hold, parameters_));
  for (auto& [tape, work] : works_) {
    for (Jet<double>* jet : {&work->flow, &work->slope, &work->manifold, &work->actions}) jet->bind(parameters_);
    work->rounding.reset();
  }
  for (auto& [mode, plan] : plans_) plan->slope_known = false;
  reset();
}

void Series::reset() {
  for (auto& [mode, plan] : plans_) {
    plan->order = 0;
    for (Block& block : plan->blocks) {
      if (block.singular) plan->slope_known = false;
      block.held.clear();
      block.even = false;
    }
  }
  plan_ = nullptr;
  guess_.clear();
}

void Series::tie(Ties ties) {
  if (ties == ties_) return;
  ties_ = std::move(ties);
  plans_.clear();
  plan_size_ = 0;
  plan_ = nullptr;
}

Series::Plan Series::make_plan(const Mode& mode) {
  Plan plan{.mode = mode, .tape = &program_.tape(mode.switches)};
  const ModeTape& tape = *plan.tape;
  std::unique_ptr<Work>& work = works_[plan.tape];
  if (!work) {
    work =
        std::make_unique<Work>(Work{{tape.flow, order_}, {tape.slope, order_}, {tape.manifold, 0}, {tape.actions, 0}});
    for (Jet<double>* jet : {&work->flow, &work->slope, &work->manifold, &work->actions}) jet->bind(parameters_);
  }
  plan.work = work.get();

  const int m = program_.switches(), all = program_.unknowns();
  std::vector<int> position(at(all), -1);
  for (int u = 0; u < all; ++u) {
    const bool slid = u < m ? mode.switches[at(u)] == '0' : mode.constraints[at(u - m)] == 'c';
    if (u < m && mode.switches[at(u)] == '=') plan.still.push_back(u);
    if (!slid || tape.degree[at(u)] < 0) continue;
    if (const auto tie = ties_.find(u); tie != ties_.end() && mode.switches[at(tie->second.first)] == '0') {
      plan.followers.push_back({u, tie->second.first, static_cast<double>(tie->second.second)});
      continue;
    }
    position[at(u)] = static_cast<int>(plan.active.size());
    plan.active.push_back(u);
  }
  if (plan.active.empty()) return plan;
  choose_rows(plan, position);
  Jet<double>& jet = work->flow;
  const auto output = [&](size_t i) { return jet[tape.flow.outputs[i]]; };
  for (const int u : plan.active)
    plan.unknowns.push_back(jet[u < m ? tape.flow.sigmas[at(u)] : tape.flow.lambdas[at(u - m)]]);
  for (const size_t i : plan.outputs) plan.residuals.push_back(output(i));
  std::vector<bool> depends(at(tape.flow.slots), false);
  for (const Operation& o : tape.flow.bound) depends[at(o.out)] = true;
  for (const int i : held_states(plan)) {
    const size_t rate = program_.rate(i);
    plan.pinned.push_back(output(rate));
    depends[at(tape.flow.outputs[rate])] = false;
  }
  for (int i = 0; i < program_.states(); ++i) {
    const size_t rate = program_.rate(i);
    if (depends[at(tape.flow.outputs[rate])]) plan.bound_rates.push_back(output(rate));
  }
  std::unordered_map<int, int> position_of_row;
  for (size_t a = 0; a < plan.rows.size(); ++a) position_of_row.emplace(plan.rows[a], static_cast<int>(a));

  std::vector<SlopeEntry> entries;
  for (const SlopeEntry& e : tape.slope_entries) {
    const auto row = position_of_row.find(e.row);
    if (row == position_of_row.end()) continue;
    if (position[at(e.column)] >= 0) entries.push_back({row->second, position[at(e.column)], e.output});
    for (const Follower& f : plan.followers) {
      if (f.unknown == e.column) entries.push_back({row->second, position[at(f.leader)], e.output, f.sign});
    }
  }
  const std::vector<int> group = find_groups(plan.active.size(), entries);
  std::vector<int> size(plan.active.size(), 0), block_of(plan.active.size(), -1), within(plan.active.size(), 0);
  for (const int g : group) ++size[at(g)];
  for (size_t i = 0; i < plan.active.size(); ++i) {
    const size_t g = at(group[i]);
    if (size[g] == 1) {
      block_of[g] = static_cast<int>(plan.singles.size());
      plan.singles.push_back({.member = static_cast<int>(i)});
      continue;
    }
    if (block_of[g] < 0) {
      block_of[g] = static_cast<int>(plan.blocks.size());
      plan.blocks.emplace_back();
    }
    within[i] = static_cast<int>(plan.blocks[at(block_of[g])].members.size());
    plan.blocks[at(block_of[g])].members.push_back(static_cast<int>(i));
  }
  for (const SlopeEntry& e : entries) {
    const size_t g = at(group[at(e.row)]);
    if (size[g] == 1) {
      Single& single = plan.singles[at(block_of[g])];
      single.entries.emplace_back(e.output, e.factor);
      single.output = single.entries.size() == 1 && e.factor == 1 ? e.output : -1;
    } else {
      plan.blocks[at(block_of[g])].entries.push_back({within[at(e.row)], within[at(e.column)], e.output, e.factor});
    }
  }
  return plan;
}

/// States whose rates are exactly zero: a surface kept at zero pins its last state that is not pinned yet.
std::vector<int> Series::held_states(const Plan& plan) const {
  std::vector<char> pinned(at(program_.states()), 0);
  std::vector<std::vector<int>> rows_of(at(program_.states()));
  std::vector<int> left(plan.rows.size(), 0), ready, out;
  for (size_t r = 0; r < plan.rows.size(); ++r) {
    const std::vector<int>& states = plan.tape->moves[at(plan.rows[r])];
    left[r] = static_cast<int>(states.size());
    for (const int i : states) rows_of[at(i)].push_back(static_cast<int>(r));
    if (left[r] == 1) ready.push_back(static_cast<int>(r));
  }
  while (!ready.empty()) {
    const std::vector<int>& states = plan.tape->moves[at(plan.rows[at(ready.back())])];
    ready.pop_back();
    const auto last = std::find_if(states.begin(), states.end(), [&](int i) { return !pinned[at(i)]; });
    if (last == states.end()) continue;
    pinned[at(*last)] = 1;
    out.push_back(*last);
    for (const int r : rows_of[at(*last)]) {
      if (--left[at(r)] == 1) ready.push_back(r);
    }
  }
  return out;
}

/// What a mode that comes back needs of the tape: rates, what is watched, and the residuals it solves.
void Series::make_schedule(Plan& plan) {
  const Model& model = program_.model();
  std::vector<size_t> outputs = plan.outputs;
  const auto add = [&](size_t count, auto output) {
    for (size_t i = 0; i < count; ++i) outputs.push_back(output(static_cast<int>(i)));
  };
  add(at(program_.states()), [&](int i) { return program_.rate(i); });
  add(at(program_.switches()), [&](int i) { return program_.surface(i); });
  add(at(program_.constraints()), [&](int j) { return program_.gap(j); });
  add(model.form.jumps.size(), [&](int k) { return program_.jump(k); });
  add(model.sections.size(), [&](int s) { return program_.section(s); });
  add(model.form.counters.size(), [&](int c) { return program_.phase(c); });
  std::vector<int> varying;
  const auto vary = [&](int u) {
    const int m = program_.switches();
    varying.push_back(u < m ? plan.tape->flow.sigmas[at(u)] : plan.tape->flow.lambdas[at(u - m)]);
  };
  for (const int u : plan.active) vary(u);
  for (const Follower& f : plan.followers) vary(f.unknown);
  plan.schedule = plan.work->flow.schedule(outputs, varying);
  plan.scheduled = true;
}

/// A mode that is expanded often gets its schedule, and machine code for it. When the schedule is made does not depend
/// on `native`: so no result does.
void Series::consider_native() {
  constexpr long often = 100, worthwhile = 10'000;  // compiling takes as long as some 10 000 expansions
  ++plan_->expansions;
  native_expansions_ += plan_->compiled;
  if (!plan_->scheduled && plan_->expansions >= often) {
    make_schedule(*plan_);
    work_->flow.enter(plan_->schedule);
  }
  if (plan_->compile_tried || !plan_->scheduled || native_ == Native::off) return;
  if (native_ == Native::automatic && plan_->expansions < worthwhile) return;
  plan_->compile_tried = true;
  plan_->compiled = work_->flow.compile(plan_->schedule, order_);
}

/// Each unknown is solved from its own residual, except an algebraic gap none of whose multipliers is active: it is
/// kept by its rate.
void Series::choose_rows(Plan& plan, const std::vector<int>& position) const {
  const int m = program_.switches();
  std::vector<bool> influenced(at(program_.unknowns()), false);
  for (const SlopeEntry& e : plan.tape->slope_entries) {
    if (e.row < program_.unknowns() && position[at(e.column)] >= 0) influenced[at(e.row)] = true;
  }
  for (const int u : plan.active) {
    const bool raise = u >= m && plan.tape->degree[at(u)] == 0 && !influenced[at(u)];
    plan.rows.push_back(raise ? program_.unknowns() + u - m : u);
    plan.outputs.push_back(raise ? program_.raised(u - m) : program_.residual(u));
  }
}

bool Series::idle(int u) const {
  for (const Single& single : plan_->singles) {
    if (plan_->active[at(single.member)] == u) return single.entries.empty();
  }
  for (const Follower& f : plan_->followers) {
    if (f.unknown == u) return idle(f.leader);
  }
  return std::find(plan_->active.begin(), plan_->active.end(), u) == plan_->active.end();
}

double Series::reach(int u) const {
  const auto bound = [&](int member) {
    const int v = plan_->active[at(member)];
    return v < program_.switches() ? hold_[at(v)] : std::abs(unknown(v)[0]);
  };
  for (const Single& single : plan_->singles) {
    if (plan_->active[at(single.member)] == u) return std::abs(single.slope) * bound(single.member);
  }
  for (const Block& block : plan_->blocks) {
    for (size_t i = 0; i < block.members.size(); ++i) {
      if (plan_->active[at(block.members[i])] != u) continue;
      double sum = 0;
      for (size_t j = 0; j < block.members.size(); ++j)
        sum +=
            std::abs(block.slope(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j))) * bound(block.members[j]);
      return sum;
    }
  }
  return 0;
}

bool Series::raised(int u) const {
  for (size_t a = 0; a < plan_->active.size(); ++a) {
    if (plan_->active[a] == u) return plan_->rows[a] >= program_.unknowns();
  }
  return false;
}

double Series::raised_value(int u) {
  const ManifoldFunction& function = tape_->manifolds[at(program_.unknowns() + u - program_.switches())][0];
  return manifold().output(at(function.value))[0];
}

void Series::set_mode(const Mode& mode) {
  if (plan_ && mode == plan_->mode) return;
  const int order = plan_ ? plan_->order : order_;
  constexpr size_t most = 200'000;
  if (plan_size_ > most) {
    plans_.clear();
    plan_size_ = 0;
  }
  std::unique_ptr<Plan>& plan = plans_[mode.switches + mode.constraints];
  if (!plan) {
    plan = std::make_unique<Plan>(make_plan(mode));
    plan_size_ += at(program_.unknowns()) + 100;
  }
  if (plan->order == 0) plan->order = order;  // first time in this run
  plan_ = plan.get();
  tape_ = plan_->tape;
  work_ = plan_->work;
  const int m = program_.switches();
  for (int u = 0; u < program_.unknowns(); ++u) {
    double* slot = unknown_slot(u);
    slot[0] = u < m ? value_of_letter(u, mode.switches[at(u)]) : 0.0;
    std::fill(slot + 1, slot + order_ + 1, 0.0);
  }
  const size_t often = 4 + (tape_->flow.free.size() + tape_->flow.bound.size()) / 50;
  if (!plan_->scheduled && ++plan_->uses >= often) make_schedule(*plan_);
  if (plan_->scheduled) work_->flow.enter(plan_->schedule);
  if (any_held_) held_.assign(at(program_.unknowns()), false);
  any_held_ = false;
  residual_.resize(static_cast<Eigen::Index>(plan_->active.size()));
  step_.resize(static_cast<Eigen::Index>(plan_->active.size()));
}

double* Series::unknown_slot(int u) {
  const int m = program_.switches();
  return work_->flow[u < m ? tape_->flow.sigmas[at(u)] : tape_->flow.lambdas[at(u - m)]];
}

const double* Series::unknown(int u) const {
  const int m = program_.switches();
  return work_->flow[u < m ? tape_->flow.sigmas[at(u)] : tape_->flow.lambdas[at(u - m)]];
}

void Series::drive(int i, std::span<const double> series) {
  double* rate = work_->flow[tape_->flow.outputs[program_.rate(i)]];
  for (size_t k = 0; k <= at(order_); ++k)
    rate[k] = k + 1 < series.size() ? static_cast<double>(k + 1) * series[k + 1] : 0;
}

double Series::value_of_letter(int u, char letter) const {
  if (letter == '=') return program_.model().form.switches[at(u)].at_zero;
  return letter == '+' ? 1.0 : letter == '-' ? -1.0 : 0.0;
}

void Series::extend_free(int k) {
  if (plan_->scheduled) {
    work_->flow.free(plan_->schedule, k);
  } else {
    work_->flow.free(k);
  }
}

void Series::extend_bound(int k) {
  if (plan_->scheduled) {
    work_->flow.bound(plan_->schedule, k);
  } else {
    work_->flow.bound(k);
  }
}

void Series::load(std::span<const double> x, double t, std::span<const double> counters, int order) {
  work_->flow.load({.states = x, .counters = counters, .t = t}, order);
}

void Series::copy_inputs(Jet<double>& to, int order) const {
  const Tape& tape = to.tape();
  const Jet<double>& from = work_->flow;
  const size_t count = static_cast<size_t>(order) + 1;
  const auto copy = [&](int a, int b) { std::copy_n(from[a], count, to[b]); };
  for (size_t i = 0; i < tape.states.size(); ++i) copy(tape_->flow.states[i], tape.states[i]);
  for (size_t i = 0; i < tape.sigmas.size(); ++i) copy(tape_->flow.sigmas[i], tape.sigmas[i]);
  for (size_t i = 0; i < tape.lambdas.size(); ++i) copy(tape_->flow.lambdas[i], tape.lambdas[i]);
  for (size_t c = 0; c < tape.counters.size(); ++c) to.set_counter(c, counters_[c]);
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
  }
  for (Block& block : plan_->blocks) {
    const Eigen::Index n = static_cast<Eigen::Index>(block.members.size());
    block.slope.setZero(n, n);
    for (const SlopeEntry& e : block.entries) block.slope(e.row, e.column) += e.factor * jet.output(at(e.output))[0];
    invert(block);
    if (!block.singular) {
      block.held.clear();
    } else if (block.even) {
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

void Series::solve_blocks() {
  for (const Single& single : plan_->singles) step_[single.member] = -single.inverse * residual_[single.member];
  for (const Block& block : plan_->blocks) {
    const size_t n = block.members.size();
    for (size_t i = 0; i < n; ++i) {
      double sum = 0;
      for (size_t j = 0; j < n; ++j) {
        sum += block.inverse(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) * residual_[block.members[j]];
      }
      step_[block.members[i]] = -sum;
    }
  }
}

void Series::read_residual(int k) {
  for (const Follower& f : plan_->followers) unknown_slot(f.unknown)[k] = f.sign * unknown_slot(f.leader)[k];
  extend_bound(k);
  for (size_t a = 0; a < plan_->residuals.size(); ++a) residual_[static_cast<Eigen::Index>(a)] = plan_->residuals[a][k];
}

void Series::note_rates(int k) {
  unsolved_.resize(plan_->bound_rates.size());
  for (size_t i = 0; i < unsolved_.size(); ++i) unsolved_[i] = plan_->bound_rates[i][k];
}

/// A state held by several surfaces has a rate that is rounding of what they cancel: it is zero.
void Series::clear_held_rates(int k) {
  constexpr double rounding = 64 * 2.2e-16;
  for (size_t i = 0; i < unsolved_.size(); ++i) {
    double& value = plan_->bound_rates[i][k];
    if (std::abs(value) <= rounding * std::abs(unsolved_[i])) value = 0;
  }
  for (double* series : plan_->pinned) series[k] = 0;
}

bool Series::redundant_mode() const { return any_singular(); }

bool Series::any_singular() const {
  return std::any_of(plan_->blocks.begin(), plan_->blocks.end(), [](const Block& b) { return b.singular; });
}

/// Sigma and lambda at the point: one linear solve if the mode is affine in them, Newton's method otherwise.
SeriesStatus Series::solve_start() {
  const std::vector<int>& active = plan_->active;
  const bool use_guess = !tape_->slope_affine && guess_.size() == at(program_.unknowns());
  if (any_held_) held_.assign(at(program_.unknowns()), false);
  any_held_ = false;
  for (const int u : active) unknown_slot(u)[0] = use_guess ? guess_[at(u)] : 0;
  read_residual(0);
  note_rates(0);
  if (!residual_.allFinite()) return SeriesStatus::undefined;
  const double first = residual_.lpNorm<Eigen::Infinity>();
  const int most = tape_->slope_affine ? 2 : 40;
  for (int iteration = 0; iteration < most; ++iteration) {
    form_slope();
    if (!any_held_ && any_singular()) {
      take_held_values();
      read_residual(0);
    }
    solve_blocks();
    if (!step_.allFinite()) return SeriesStatus::undefined;
    double change = 0;
    for (size_t a = 0; a < active.size(); ++a) {
      double& u = *unknown_slot(active[a]);
      u += step_[static_cast<Eigen::Index>(a)];
      change = std::max(change, std::abs(step_[static_cast<Eigen::Index>(a)]) / (1 + std::abs(u)));
    }
    read_residual(0);
    const double size = residual_.lpNorm<Eigen::Infinity>();
    if (!std::isfinite(size)) return SeriesStatus::undefined;
    if (change < 1e-15 || (tape_->slope_affine && size <= 1e-15 * first)) break;
  }
  return residual_is_rounding() ? SeriesStatus::ok : SeriesStatus::unsolved;
}

/// Whether what is left of the residual is small against what the unknowns can change; otherwise there is no solution.
bool Series::residual_is_rounding() const {
  for (const Single& single : plan_->singles) {
    const double left = std::abs(residual_[single.member]);
    const double scale = std::abs(single.slope) * (1 + std::abs(unknown(plan_->active[at(single.member)])[0]));
    if (left > unsolved_residual * scale) return false;
  }
  for (const Block& block : plan_->blocks) {
    for (size_t i = 0; i < block.members.size(); ++i) {
      double scale = 0;
      for (size_t j = 0; j < block.members.size(); ++j) {
        scale += std::abs(block.slope(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j))) *
                 (1 + std::abs(unknown(plan_->active[at(block.members[j])])[0]));
      }
      if (std::abs(residual_[block.members[i]]) > unsolved_residual * scale) return false;
    }
  }
  return true;
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
    block.inverse.setZero(static_cast<Eigen::Index>(n), static_cast<Eigen::Index>(n));
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
  const Eigen::Index r = static_cast<Eigen::Index>(basic);
  Mat square(r, r);
  for (Eigen::Index i = 0; i < r; ++i) {
    for (Eigen::Index j = 0; j < r; ++j)
      square(i, j) = scaled(rows[static_cast<size_t>(i)], columns[static_cast<size_t>(j)]);
  }
  const Mat inverse = Lu(square).inverse();
  block.inverse.setZero(static_cast<Eigen::Index>(n), static_cast<Eigen::Index>(n));
  for (Eigen::Index i = 0; i < r; ++i) {
    for (Eigen::Index j = 0; j < r; ++j) {
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
      const Eigen::RowVectorXd row = block.inverse.row(static_cast<Eigen::Index>(k));
      for (size_t j = 0; j < block.members.size(); ++j) {
        if (!block.held[j]) continue;
        const int other = plan_->active[at(block.members[j])];
        // How u changes if the other one moves off its bound, into its range.
        const double into = other >= m || block.held_at[j] < 0 ? 1 : -1;
        const double change = -into * row.dot(block.slope.col(static_cast<Eigen::Index>(j)));
        const double size = row.cwiseAbs().dot(block.slope.col(static_cast<Eigen::Index>(j)).cwiseAbs());
        if (!(change * side < -independent_column * size) || size == 0) continue;
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

bool Series::linear_system(std::span<const double> x, double t, std::span<const double> counters, Mat& A, Vec& r) {
  t_ = t;
  counters_.assign(counters.begin(), counters.end());
  load(x, t, counters, 0);
  for (const int u : plan_->active) unknown_slot(u)[0] = 0;
  extend_free(0);
  read_residual(0);
  form_slope();
  const Eigen::Index n = static_cast<Eigen::Index>(plan_->active.size());
  A.setZero(n, n);
  r = residual_;
  for (const Single& single : plan_->singles) A(single.member, single.member) = single.slope;
  for (const Block& block : plan_->blocks) {
    for (size_t i = 0; i < block.members.size(); ++i) {
      for (size_t j = 0; j < block.members.size(); ++j)
        A(block.members[i], block.members[j]) = block.slope(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j));
    }
  }
  return A.allFinite() && r.allFinite();
}

/// Coefficient k of the unknowns: the residual with u_k = 0, then one solve with the slope at the point.
void Series::solve_order(int k) {
  for (double* u : plan_->unknowns) u[k] = 0;
  read_residual(k);
  note_rates(k);
  solve_blocks();
  for (size_t a = 0; a < plan_->unknowns.size(); ++a) {
    if (!any_held_ || !held_[at(plan_->active[a])]) plan_->unknowns[a][k] = step_[static_cast<Eigen::Index>(a)];
  }
  for (const Follower& f : plan_->followers) unknown_slot(f.unknown)[k] = f.sign * unknown_slot(f.leader)[k];
  extend_bound(k);
}

SeriesStatus Series::expand(std::span<const double> x, double t, std::span<const double> counters, int order) {
  assert(order <= order_);
  t_ = t;
  counters_.assign(counters.begin(), counters.end());
  consider_native();
  load(x, t, counters, order);
  Jet<double>& jet = work_->flow;
  const int n = program_.states();
  const auto finite = [&] {
    for (int i = 0; i < n; ++i) {
      if (!std::isfinite(rate(i)[0])) return false;
    }
    return true;
  };
  if (plan_->scheduled && plan_->active.empty()) {
    jet.expand(plan_->schedule, order);
    return finite() ? SeriesStatus::ok : SeriesStatus::undefined;
  }
  for (int k = 0; k <= order; ++k) {
    extend_free(k);
    if (plan_->active.empty()) {
      jet.bound(k);
    } else {
      if (k > 0) {
        solve_order(k);
      } else if (const SeriesStatus status = solve_start(); status != SeriesStatus::ok) {
        return status;
      }
      clear_held_rates(k);
    }
    if (k == 0 && !finite()) return SeriesStatus::undefined;
    if (k < order) jet.integrate(k);
  }
  return SeriesStatus::ok;
}

SeriesStatus Series::evaluate(std::span<const double> x, double t, std::span<const double> counters) {
  return expand(x, t, counters, 0);
}

void Series::evaluate_with(std::span<const double> x, double t, std::span<const double> counters,
                           std::span<const int> open_switches) {
  t_ = t;
  counters_.assign(counters.begin(), counters.end());
  load(x, t, counters, 0);
  for (const int i : open_switches) unknown_slot(i)[0] = 0;
  work_->flow.free(0);
  work_->flow.bound(0);
}

double Series::rate_noise(int i) {
  if (!work_->rounding) work_->rounding = std::make_unique<Rounding>(tape_->flow, parameters_);
  const int m = program_.switches();
  std::vector<double> x, sigma, lambda;
  for (int s = 0; s < program_.states(); ++s) x.push_back(state(s)[0]);
  for (int u = 0; u < program_.unknowns(); ++u) (u < m ? sigma : lambda).push_back(unknown(u)[0]);
  work_->rounding->evaluate(x, t_, sigma, counters_, lambda);
  return work_->rounding->error(program_.rate(i));
}

const Jet<double>& Series::manifold() {
  Jet<double>& jet = work_->manifold;
  copy_inputs(jet, 0);
  jet.set_time(t_, 0);
  jet.free(0);
  jet.bound(0);
  return jet;
}

const Jet<double>& Series::actions() { return actions({}); }

const Jet<double>& Series::actions(std::span<const std::pair<int, double>> sigma) {
  Jet<double>& jet = work_->actions;
  copy_inputs(jet, 0);
  for (const auto& [i, value] : sigma) jet[tape_->actions.sigmas[at(i)]][0] = value;
  jet.set_time(t_, 0);
  jet.free(0);
  jet.bound(0);
  return jet;
}

double Series::project(std::span<double> x, double t, std::span<const double> counters, size_t depth) {
  if (plan_->active.empty() && plan_->still.empty()) return 0;
  counters_.assign(counters.begin(), counters.end());
  t_ = t;
  Jet<double>& jet = work_->manifold;
  copy_inputs(jet, 0);
  jet.set_time(t, 0);
  double found = 0;
  // Kaczmarz sweeps: each surface in turn along its own gradient; redundant surfaces do no harm.
  std::vector<double>& start = scratch_;
  for (int sweep = 0; sweep < 3; ++sweep) {
    double largest = 0;
    start.assign(x.begin(), x.end());
    for (size_t i = 0; i < x.size(); ++i) jet[tape_->manifold.states[i]][0] = x[i];
    jet.free(0);
    jet.bound(0);
    const auto land = [&](int row) {
      const std::vector<ManifoldFunction>& functions = tape_->manifolds[at(row)];
      for (const ManifoldFunction& function : std::span(functions).first(std::min(depth, functions.size()))) {
        double h = jet.output(at(function.value))[0], square = 0;
        for (const auto& [i, output] : function.gradient) {
          const double slope = jet.output(at(output))[0];
          h += slope * (x[at(i)] - start[at(i)]);
          square += slope * slope;
        }
        largest = std::max(largest, std::abs(h));
        if (!(square > 0) || !std::isfinite(h) || program_.attract() > 0) continue;
        for (const auto& [i, output] : function.gradient) x[at(i)] -= jet.output(at(output))[0] * h / square;
      }
    };
    for (const int row : plan_->rows) land(row);
    for (const int u : plan_->still) land(u);
    if (sweep == 0) found = largest;
    if (largest == 0 || program_.attract() > 0) break;
  }
  return found;
}

}  // namespace saltus
