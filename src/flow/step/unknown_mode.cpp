#include "flow/step/unknown_mode.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "flow/thresholds.hpp"

namespace saltus {
namespace {

bool is_contact(const Gap& gap) { return gap.degree == 2 && !gap.joint; }

}  // namespace

UnknownMode::UnknownMode(const Program& program, Series& series, StepSolver& solver, const Judge& judge)
    : program_(program),
      model_(program.model()),
      series_(series),
      solver_(solver),
      judge_(judge),
      m_(program.switches()),
      q_(program.constraints()),
      contacts_(std::any_of(model_.form.gaps.begin(), model_.form.gaps.end(), is_contact)) {}

StepFate UnknownMode::solve(const Here& here, double h, double theta, UnknownStep& out) {
  Findings known{std::vector<char>(at(m_)), std::vector<char>(at(m_)), std::vector<char>(at(m_)),
                 std::vector<char>(at(q_))};
  for (int i = 0; i < m_; ++i) known.may_hold[at(i)] = here.mode().switches[at(i)] == '0';
  for (int j = 0; j < q_; ++j)
    known.near[at(j)] = !is_contact(model_.form.gaps[at(j)]) || here.mode().constraints[at(j)] == 'c';
  const std::vector<double> push = rebounds(here);
  for (int round = 0; round < 2 * (m_ + q_) + 10; ++round) {
    Mode key = here.mode();
    for (int i = 0; i < m_; ++i) {
      if (known.interpolated[at(i)] && !program_.plain(i)) key.switches[at(i)] = '0';
    }
    solver_.set_mode(key);
    const ItemBounds bounds = this->bounds(here, key, known, push);
    const StepFate fate = solver_.complementarity(here.x, here.t(), h, theta, bounds, out.step, state_, out.trouble);
    if (fate != StepFate::ok) return fate;
    out.theta = theta;
    out.formulas = key;
    if (!learn(here, out.step, bounds, known)) break;
  }
  tell_solved(here, known, push, out);
  read_mode(here, known, push, out);
  return StepFate::ok;
}

/// Switches that are not the problem's: their letter stays.
bool UnknownMode::decided(const Here& here, int i) const {
  return !program_.moves(i) || judge_.is_step_of_floor(i) || here.mode().switches[at(i)] == '=';
}

ItemBounds UnknownMode::bounds(const Here& here, const Mode& key, const Findings& known,
                               const std::vector<double>& push) const {
  const int items = m_ + q_;
  ItemBounds out{Vec(items), Vec(items), Vec::Zero(items)};
  for (int i = 0; i < m_; ++i) {
    const bool fixed = decided(here, i) || (!program_.plain(i) && key.switches[at(i)] != '0');
    const double limit = known.may_hold[at(i)] && !known.left[at(i)] ? judge_.hold(i) : 1.0;
    out.lo[i] = fixed ? solver_.items()[i] : -limit;
    out.hi[i] = fixed ? solver_.items()[i] : limit;
  }
  for (int j = 0; j < q_; ++j) {
    out.lo[m_ + j] = program_.joint(j) ? -HUGE_VAL : 0.0;
    out.hi[m_ + j] = known.near[at(j)] ? HUGE_VAL : 0.0;
    out.offset[m_ + j] = push[at(j)];
  }
  return out;
}

bool UnknownMode::learn(const Here& here, const Step& step, const ItemBounds& bounds, Findings& known) const {
  bool learnt = false;
  const auto set = [&](char& flag) {
    learnt = learnt || !flag;
    flag = 1;
  };
  for (int i = 0; i < m_; ++i) {
    if (decided(here, i)) continue;
    if (bounds.lo[i] == bounds.hi[i]) {
      if (step.tests[i] * step.u1[i] < 0) set(known.interpolated[at(i)]);
      continue;
    }
    if (judge_.hold(i) <= 1) continue;
    const char letter = here.mode().switches[at(i)];
    const BoundState state = state_[at(i)];
    const bool stays = (state == BoundState::upper && letter == '+') || (state == BoundState::lower && letter == '-');
    if (!known.may_hold[at(i)] && !stays)
      set(known.may_hold[at(i)]);
    else if (known.may_hold[at(i)] && state != BoundState::inside)
      set(known.left[at(i)]);
  }
  for (int j = 0; j < q_; ++j) {
    if (!known.near[at(j)] && step.tests[judge_.layout().gap(j)] < 0) set(known.near[at(j)]);
  }
  return learnt;
}

void UnknownMode::tell_solved(const Here& here, const Findings& known, const std::vector<double>& push,
                              UnknownStep& out) const {
  out.solved.clear();
  out.hits.clear();
  for (int i = 0; i < m_; ++i) {
    const bool fixed = decided(here, i) || (!program_.plain(i) && out.formulas.switches[at(i)] != '0');
    if (!fixed && state_[at(i)] == BoundState::inside) out.solved.push_back(i);
  }
  for (int j = 0; j < q_; ++j) {
    if (!known.near[at(j)] || state_[at(m_ + j)] != BoundState::inside) continue;
    out.solved.push_back(m_ + j);
    if (push[at(j)] < 0) out.hits.emplace_back(m_ + j, push[at(j)] / here.tests[judge_.layout().gap_rate(j)]);
  }
}

void UnknownMode::read_mode(const Here& here, const Findings& known, const std::vector<double>& push,
                            UnknownStep& out) const {
  out.mode = here.mode();
  for (int i = 0; i < m_; ++i) {
    if (decided(here, i)) continue;
    if (!program_.plain(i) && !known.interpolated[at(i)] && out.mode.switches[at(i)] != '0') continue;
    out.mode.switches[at(i)] = state_[at(i)] == BoundState::upper   ? '+'
                               : state_[at(i)] == BoundState::lower ? '-'
                                                                    : '0';
  }
  out.rebounded.clear();
  for (int j = 0; j < q_; ++j) {
    const bool pressed = known.near[at(j)] && state_[at(m_ + j)] == BoundState::inside;
    out.mode.constraints[at(j)] = pressed && !(push[at(j)] < 0) ? 'c' : 'o';
    if (is_contact(model_.form.gaps[at(j)]) && pressed && here.mode().constraints[at(j)] == 'o')
      out.rebounded.push_back(j);
  }
}

std::vector<double> UnknownMode::rebounds(const Here& here) {
  std::vector<double> out(at(q_), 0.0);
  if (!contacts_) return out;
  Mode open = here.mode();
  open.constraints.assign(at(q_), 'o');
  series_.set_mode(open);
  const std::vector<double> x(here.x.data(), here.x.data() + here.x.size());
  series_.evaluate_with(x, here.t(), here.moment.counters, {});
  for (int j = 0; j < q_; ++j) {
    const Gap& gap = model_.form.gaps[at(j)];
    // A closed contact does not approach: the rate of its gap is rounding.
    if (!is_contact(gap) || !gap.restitution || here.mode().constraints[at(j)] == 'c') continue;
    const double r = series_.actions().output(program_.restitution(j))[0];
    out[at(j)] = r * std::min(here.tests[judge_.layout().gap_rate(j)], 0.0);
  }
  return out;
}

void UnknownMode::project(Here& here) {
  if (program_.any_joint()) {
    std::vector<double> x(here.x.begin(), here.x.end());
    series_.set_mode(here.mode());
    series_.project_joints(x, here.t(), here.moment.counters);
    std::copy(x.begin(), x.end(), here.x.begin());
  }
  if (!contacts_ || here.mode().constraints.find('c') == std::string::npos) return;
  const double least = 16 * eps * (1 + here.x.max_abs());
  solver_.set_mode(here.mode(), here.held);
  for (int sweep = 0; sweep < 3; ++sweep) {
    solver_.tests(here.t(), here.x, here.u, here.tests);
    SparseMat rows;  // of P, as columns
    for (int j = 0; j < q_; ++j) {
      if (here.mode().constraints[at(j)] != 'c' || !is_contact(model_.form.gaps[at(j)])) continue;
      const double g = here.tests[judge_.layout().gap(j)];
      if (std::abs(g) <= least) continue;
      if (rows.size() == 0) rows = solver_.slopes(here.t(), here.x, here.u).P.transpose();
      double square = 0;
      for (const auto [state, slope] : rows.column(j)) square += slope * slope;
      if (!(square > 0)) continue;
      for (const auto [state, slope] : rows.column(j)) here.x[state] -= slope * (g / square);
    }
    if (rows.size() == 0) return;
  }
  solver_.tests(here.t(), here.x, here.u, here.tests);
}

}  // namespace saltus
