#include "flow/series.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include <Eigen/LU>
#include <Eigen/QR>

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

void invert(Series::Block& block) {
  if (block.slope.rows() == 1) {
    const double b = block.slope(0, 0);
    block.singular = b == 0;
    block.inverse.resize(1, 1);
    block.inverse(0, 0) = block.singular ? 0 : 1 / b;
    return;
  }
  // Rows are surfaces with units of their own: scale them before judging the rank.
  Vec scale = block.slope.cwiseAbs().rowwise().maxCoeff();
  for (Eigen::Index i = 0; i < scale.size(); ++i) scale[i] = scale[i] > 0 ? 1 / scale[i] : 1;
  const Mat scaled = scale.asDiagonal() * block.slope;
  const Eigen::PartialPivLU<Mat> lu(scaled);
  block.singular = !(lu.rcond() > 1e-12);
  if (!block.singular) {
    block.inverse = lu.inverse() * scale.asDiagonal();
    return;
  }
  Eigen::CompleteOrthogonalDecomposition<Mat> cod;
  cod.setThreshold(1e-11);
  cod.compute(scaled);
  block.singular = cod.rank() < block.slope.rows();
  block.inverse = cod.pseudoInverse() * scale.asDiagonal();
}

}  // namespace

Series::Series(const Program& program, std::span<const double> parameters, int order)
    : program_(program), parameters_(parameters.begin(), parameters.end()), order_(order) {
  for (const Switch& s : program.model().form.switches) hold_.push_back(constant_value(s.hold, parameters_));
  clamped_.assign(at(program.unknowns()), false);
}

void Series::set_mode(const Mode& mode) {
  if (tape_ && mode == mode_) return;
  mode_ = mode;
  tape_ = &program_.tape(mode.switches);
  std::unique_ptr<Work>& work = works_[tape_];
  if (!work) {
    work = std::make_unique<Work>(
        Work{{tape_->flow, order_}, {tape_->slope, order_}, {tape_->manifold, 0}, {tape_->actions, 0}});
    work->flow.bind(parameters_);
    work->slope.bind(parameters_);
    work->manifold.bind(parameters_);
    work->actions.bind(parameters_);
  }
  work_ = work.get();

  const int m = program_.switches(), all = program_.unknowns();
  active_.clear();
  std::vector<int> position(at(all), -1);
  for (int u = 0; u < all; ++u) {
    const bool is_active =
        u < m ? mode.switches[at(u)] == '0' && program_.moves(u) : mode.constraints[at(u - m)] == 'c';
    const double fixed = u >= m ? 0.0 : mode.switches[at(u)] == '+' ? 1.0 : mode.switches[at(u)] == '-' ? -1.0 : 0.0;
    if (is_active) {
      position[at(u)] = static_cast<int>(active_.size());
      active_.push_back(u);
    }
    double* slot = unknown_slot(u);
    slot[0] = fixed;
    std::fill(slot + 1, slot + order_ + 1, 0.0);
    clamped_[at(u)] = false;
  }
  residual_.resize(static_cast<Eigen::Index>(active_.size()));
  step_.resize(static_cast<Eigen::Index>(active_.size()));

  std::vector<SlopeEntry> entries;
  for (const SlopeEntry& e : tape_->slope_entries) {
    if (position[at(e.row)] >= 0 && position[at(e.column)] >= 0) {
      entries.push_back({position[at(e.row)], position[at(e.column)], e.output});
    }
  }
  blocks_.clear();
  pinned_.clear();
  slope_known_ = false;
  if (active_.empty()) return;
  std::unordered_map<int, int> state_of;
  for (int i = 0; i < program_.states(); ++i) state_of.emplace(tape_->flow.outputs[program_.rate(i)], i);
  for (const int u : active_) {
    const auto found = state_of.find(tape_->flow.outputs[program_.residual(u)]);
    if (found != state_of.end()) pinned_.push_back(found->second);
  }
  const std::vector<int> group = find_groups(active_.size(), entries);
  std::vector<int> block_of(active_.size(), -1), within(active_.size(), 0);
  for (size_t i = 0; i < active_.size(); ++i) {
    int& b = block_of[at(group[i])];
    if (b < 0) {
      b = static_cast<int>(blocks_.size());
      blocks_.emplace_back();
    }
    within[i] = static_cast<int>(blocks_[at(b)].members.size());
    blocks_[at(b)].members.push_back(static_cast<int>(i));
  }
  for (const SlopeEntry& e : entries) {
    blocks_[at(block_of[at(group[at(e.row)])])].entries.push_back({within[at(e.row)], within[at(e.column)], e.output});
  }
}

double* Series::unknown_slot(int u) {
  const int m = program_.switches();
  return work_->flow[u < m ? tape_->flow.sigmas[at(u)] : tape_->flow.lambdas[at(u - m)]];
}

const double* Series::unknown(int u) const {
  const int m = program_.switches();
  return work_->flow[u < m ? tape_->flow.sigmas[at(u)] : tape_->flow.lambdas[at(u - m)]];
}

double Series::bound_of(int u) const { return u < program_.switches() ? hold_[at(u)] : HUGE_VAL; }

void Series::load(std::span<const double> x, double t, std::span<const double> counters, int order) {
  Jet<double>& jet = work_->flow;
  for (size_t c = 0; c < counters.size(); ++c) {
    if (const int slot = tape_->flow.counters[c]; slot >= 0) jet[slot][0] = counters[c];
  }
  jet.set_time(t, order);
  for (size_t i = 0; i < x.size(); ++i) jet[tape_->flow.states[i]][0] = x[i];
}

void Series::copy_inputs(Jet<double>& to, int order) const {
  const Tape& tape = to.tape();
  const Jet<double>& from = work_->flow;
  const size_t count = static_cast<size_t>(order) + 1;
  const auto copy = [&](int a, int b) { std::copy_n(from[a], count, to[b]); };
  for (size_t i = 0; i < tape.states.size(); ++i) copy(tape_->flow.states[i], tape.states[i]);
  for (size_t i = 0; i < tape.sigmas.size(); ++i) copy(tape_->flow.sigmas[i], tape.sigmas[i]);
  for (size_t i = 0; i < tape.lambdas.size(); ++i) copy(tape_->flow.lambdas[i], tape.lambdas[i]);
  for (size_t i = 0; i < tape.counters.size(); ++i) {
    if (tape.counters[i] >= 0) to[tape.counters[i]][0] = counters_[i];
  }
}

void Series::form_slope() {
  if (slope_known_ && tape_->slope_constant) return;
  Jet<double>& jet = work_->slope;
  if (!tape_->slope_constant) {
    copy_inputs(jet, 0);
    jet.set_time(t_, 0);
    jet.free(0);
    jet.bound(0);
  }
  for (Block& block : blocks_) {
    const Eigen::Index n = static_cast<Eigen::Index>(block.members.size());
    block.slope.setZero(n, n);
    for (const SlopeEntry& e : block.entries) block.slope(e.row, e.column) += jet.output(at(e.output))[0];
    invert(block);
  }
  slope_known_ = true;
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
  for (const Block& block : blocks_) {
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

/// Sigma and lambda at the point: one linear solve if the mode is affine in them, Newton's method otherwise.
SeriesStatus Series::solve_start() {
  Jet<double>& jet = work_->flow;
  const size_t count = active_.size();
  for (size_t a = 0; a < count; ++a) {
    clamped_[at(active_[a])] = false;
    const bool use_guess = !tape_->slope_affine && guess_.size() == at(program_.unknowns());
    unknown_slot(active_[a])[0] = use_guess ? guess_[at(active_[a])] : 0;
  }
  const auto read_residual = [&] {
    jet.bound(0);
    double largest = 0;
    for (size_t a = 0; a < count; ++a) {
      residual_[static_cast<Eigen::Index>(a)] = jet.output(program_.residual(active_[a]))[0];
      largest = std::max(largest, std::abs(residual_[static_cast<Eigen::Index>(a)]));
    }
    return largest;
  };
  const double first = read_residual();
  if (!std::isfinite(first)) return SeriesStatus::undefined;
  double size = first;
  const int most = tape_->slope_affine ? 2 : 40;
  for (int iteration = 0; iteration < most; ++iteration) {
    form_slope();
    solve_blocks();
    if (!step_.allFinite()) return SeriesStatus::undefined;
    double change = 0;
    for (size_t a = 0; a < count; ++a) {
      double* u = unknown_slot(active_[a]);
      u[0] += step_[static_cast<Eigen::Index>(a)];
      change = std::max(change, std::abs(step_[static_cast<Eigen::Index>(a)]) / (1 + std::abs(u[0])));
    }
    size = read_residual();
    if (!std::isfinite(size)) return SeriesStatus::undefined;
    if (change < 1e-15 || (tape_->slope_affine && size <= 1e-15 * first)) break;
  }
  const bool singular = std::any_of(blocks_.begin(), blocks_.end(), [](const Block& b) { return b.singular; });
  if (singular && !solve_clamped()) return SeriesStatus::unsolved;
  // What is left is rounding unless there is no solution; compare with what the unknowns can change.
  for (const Block& block : blocks_) {
    for (size_t i = 0; i < block.members.size(); ++i) {
      double scale = 0;
      for (size_t j = 0; j < block.members.size(); ++j) {
        scale += std::abs(block.slope(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j))) *
                 (1 + std::abs(unknown(active_[at(block.members[j])])[0]));
      }
      if (std::abs(residual_[block.members[i]]) > 1e-9 * scale && std::abs(residual_[block.members[i]]) > 0) {
        return SeriesStatus::unsolved;
      }
    }
  }
  return SeriesStatus::ok;
}

/// Redundant surfaces leave sigma free along a direction. Least-norm sigma may exceed a bound although others do not:
/// those that exceed it stay at the bound, the rest is solved again.
bool Series::solve_clamped() {
  Jet<double>& jet = work_->flow;
  for (size_t round = 0; round < active_.size(); ++round) {
    int worst = -1;
    double excess = 1e-12;
    for (const int u : active_) {
      if (clamped_[at(u)]) continue;
      const double over = std::abs(unknown(u)[0]) - bound_of(u);
      if (over > excess) {
        excess = over;
        worst = u;
      }
    }
    if (worst < 0) return true;
    clamped_[at(worst)] = true;
    double* u = unknown_slot(worst);
    u[0] = std::copysign(bound_of(worst), u[0]);
    for (Block& block : blocks_) {
      Mat reduced = block.slope;
      bool any = false;
      for (size_t j = 0; j < block.members.size(); ++j) {
        if (!clamped_[at(active_[at(block.members[j])])]) continue;
        reduced.col(static_cast<Eigen::Index>(j)).setZero();
        any = true;
      }
      if (!any) continue;
      Eigen::CompleteOrthogonalDecomposition<Mat> cod;
      cod.setThreshold(1e-11);
      cod.compute(reduced);
      block.inverse = cod.pseudoInverse();
    }
    slope_known_ = false;
    jet.bound(0);
    for (size_t a = 0; a < active_.size(); ++a) {
      residual_[static_cast<Eigen::Index>(a)] = jet.output(program_.residual(active_[a]))[0];
    }
    solve_blocks();
    for (size_t a = 0; a < active_.size(); ++a) {
      if (!clamped_[at(active_[a])]) unknown_slot(active_[a])[0] += step_[static_cast<Eigen::Index>(a)];
    }
    jet.bound(0);
    for (size_t a = 0; a < active_.size(); ++a) {
      residual_[static_cast<Eigen::Index>(a)] = jet.output(program_.residual(active_[a]))[0];
    }
  }
  return true;
}

/// Coefficient k of the unknowns: the residual with u_k = 0, then one solve with the slope at the point.
void Series::solve_order(int k) {
  Jet<double>& jet = work_->flow;
  for (const int u : active_) unknown_slot(u)[k] = 0;
  jet.bound(k);
  for (size_t a = 0; a < active_.size(); ++a) {
    residual_[static_cast<Eigen::Index>(a)] = jet.output(program_.residual(active_[a]))[k];
  }
  solve_blocks();
  for (size_t a = 0; a < active_.size(); ++a) {
    if (!clamped_[at(active_[a])]) unknown_slot(active_[a])[k] = step_[static_cast<Eigen::Index>(a)];
  }
  jet.bound(k);
}

SeriesStatus Series::expand(std::span<const double> x, double t, std::span<const double> counters, int order) {
  assert(order <= order_);
  t_ = t;
  counters_.assign(counters.begin(), counters.end());
  load(x, t, counters, order);
  Jet<double>& jet = work_->flow;
  const int n = program_.states();
  for (int k = 0; k <= order; ++k) {
    jet.free(k);
    if (active_.empty()) {
      jet.bound(k);
    } else if (k > 0) {
      solve_order(k);
    } else if (const SeriesStatus status = solve_start(); status != SeriesStatus::ok) {
      return status;
    }
    for (const int i : pinned_) jet[tape_->flow.outputs[program_.rate(i)]][k] = 0;
    if (k == 0) {
      for (int i = 0; i < n; ++i) {
        if (!std::isfinite(rate(i)[0])) return SeriesStatus::undefined;
      }
    }
    if (k == order) break;
    const double divisor = k + 1;
    for (int i = 0; i < n; ++i) jet[tape_->flow.states[at(i)]][k + 1] = rate(i)[k] / divisor;
  }
  return SeriesStatus::ok;
}

SeriesStatus Series::evaluate(std::span<const double> x, double t, std::span<const double> counters) {
  return expand(x, t, counters, 0);
}

const Jet<double>& Series::manifold() {
  Jet<double>& jet = work_->manifold;
  copy_inputs(jet, 0);
  jet.set_time(t_, 0);
  jet.free(0);
  jet.bound(0);
  return jet;
}

const Jet<double>& Series::actions() {
  Jet<double>& jet = work_->actions;
  copy_inputs(jet, 0);
  jet.set_time(t_, 0);
  jet.free(0);
  jet.bound(0);
  return jet;
}

double Series::project(std::span<double> x, double t, std::span<const double> counters) {
  if (active_.empty()) return 0;
  counters_.assign(counters.begin(), counters.end());
  t_ = t;
  Jet<double>& jet = work_->manifold;
  copy_inputs(jet, 0);
  jet.set_time(t, 0);
  double found = 0;
  // Kaczmarz sweeps: each surface in turn along its own gradient; redundant surfaces do no harm.
  for (int sweep = 0; sweep < 3; ++sweep) {
    double largest = 0;
    for (size_t i = 0; i < x.size(); ++i) jet[tape_->manifold.states[i]][0] = x[i];
    jet.free(0);
    jet.bound(0);
    for (const int u : active_) {
      for (const ManifoldFunction& function : tape_->manifolds[at(u)]) {
        const double h = jet.output(at(function.value))[0];
        double square = 0;
        for (const auto& [i, output] : function.gradient) square += std::pow(jet.output(at(output))[0], 2);
        largest = std::max(largest, std::abs(h));
        if (!(square > 0) || !std::isfinite(h)) continue;
        for (const auto& [i, output] : function.gradient) x[at(i)] -= jet.output(at(output))[0] * h / square;
      }
    }
    if (sweep == 0) found = largest;
    if (largest == 0) break;
  }
  return found;
}

}  // namespace saltus
