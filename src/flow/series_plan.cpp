// The plan of the series of a mode, made once: unknowns and the residuals they are solved from, what depends on them,
// which operations matter.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "base/index.hpp"
#include "code/slice.hpp"
#include "flow/series.hpp"

namespace saltus {
namespace {

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

/// Marks the slots of operations that read a marked one.
void spread(const std::vector<Operation>& operations, std::vector<bool>& marked) {
  for (const Operation& o : operations) {
    if (!marked[at(o.a)] && !(has_second_argument(o.instr) && marked[at(o.b)])) continue;
    for (int i = 0; i < slots_of(o.instr); ++i) marked[at(o.out + i)] = true;
  }
}

/// True if the result may be affine in an unknown that one of the arguments is affine in.
bool may_be_affine(const Operation& o) {
  return o.instr <= Instr::mul || o.instr == Instr::div || o.instr == Instr::div_c;
}

}  // namespace

Series::Plan Series::make_plan(const Mode& mode) {
  Plan plan{.mode = mode, .tape = &program_.tape(mode.switches), .number = plans_made_++};
  const ModeTape& tape = *plan.tape;
  std::unique_ptr<Work>& work = works_[plan.tape];
  if (!work) {
    work =
        std::make_unique<Work>(Work{{tape.flow, order_}, {tape.slope, order_}, {tape.manifold, 0}, {tape.actions, 0}});
    for (Jet<double>* jet : {&work->flow, &work->slope, &work->manifold, &work->actions}) jet->bind(parameters_);
    for (int i = 0; i < program_.states(); ++i) {
      work->states.push_back(work->flow[tape.flow.states[at(i)]]);
      work->rates.push_back(work->flow[tape.flow.outputs[program_.rate(i)]]);
    }
    for (const auto* slots : {&tape.flow.sigmas, &tape.flow.lambdas}) {
      for (const int slot : *slots) work->unknowns.push_back(work->flow[slot]);
    }
  }
  plan.work = work.get();
  const int m = program_.switches(), all = program_.unknowns();
  std::vector<int> position(at(all), -1);
  for (int u = 0; u < all; ++u) {
    const bool slid =
        u < m ? mode.switches[at(u)] == '0' || mode.switches[at(u)] == '^' : mode.constraints[at(u - m)] == 'c';
    const bool by_itself = u < m && (mode.switches[at(u)] == '=' || (slid && tape.degree[at(u)] < 0));
    if (by_itself) plan.still.push_back(u);
    if (!slid || tape.degree[at(u)] < 0) continue;
    if (const auto tie = ties_.find(u); tie != ties_.end() && mode.switches[at(tie->second.first)] == '0') {
      plan.followers.push_back({u, tie->second.first, static_cast<double>(tie->second.second)});
      continue;
    }
    position[at(u)] = static_cast<int>(plan.active.size());
    plan.active.push_back(u);
  }
  std::vector<char> keeps(at(all), 0);
  for (const SlopeEntry& e : tape.slope_entries) keeps[at(e.column)] = 1;
  for (int i = 0; i < m; ++i) plan.keeps_all = plan.keeps_all && (mode.switches[at(i)] != '0' || keeps[at(i)]);
  const std::optional<std::vector<int>> drive = linear_drive(tape.flow, unknown_slots(plan, tape.flow));
  plan.linear = drive.has_value();
  if (drive) plan.turns = *drive;
  if (plan.active.empty()) {
    plan.landings = find_landings(plan);
    return plan;
  }
  plan.position = position;
  for (const VectorSwitch& v : program_.model().form.vectors) {
    if (v.parts.empty() || mode.switches[at(v.parts[0])] != '^') continue;
    std::vector<int>& members = plan.departs.emplace_back();
    for (const int part : v.parts) members.push_back(position[at(part)]);
  }
  choose_rows(plan, position);
  plan.landings = find_landings(plan);
  Jet<double>& jet = work->flow;
  const auto output = [&](size_t i) { return jet[tape.flow.outputs[i]]; };
  for (const int u : plan.active)
    plan.unknowns.push_back(jet[u < m ? tape.flow.sigmas[at(u)] : tape.flow.lambdas[at(u - m)]]);
  for (const size_t i : plan.outputs) plan.residuals.push_back(output(i));
  std::vector<bool> depends(at(tape.flow.slots), false);
  for (const int slot : unknown_slots(plan, tape.flow)) depends[at(slot)] = true;
  spread(tape.flow.bound, depends);
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
  plan.slope_rests = slope_rests(plan);
  plan.linear = plan.linear && plan.slope_rests;
  return plan;
}

/// Empty unless all that is slid on is of this kind, on states of their own.
std::vector<Series::Landing> Series::find_landings(const Plan& plan) const {
  const Tape& tape = plan.tape->manifold;
  std::vector<Landing> out;
  std::vector<int> rows = plan.rows;
  rows.insert(rows.end(), plan.still.begin(), plan.still.end());
  if (rows.empty()) return out;
  std::vector<char> lands(at(program_.states()), 0);
  std::unordered_map<int, const Operation*> shifts;  // by a constant, by what they give
  for (const Operation& o : tape.free) {
    if (o.instr == Instr::add_c || o.instr == Instr::rsub_c) shifts.emplace(o.out, &o);
  }
  for (const int row : rows) {
    const std::vector<ManifoldFunction>& functions = plan.tape->manifolds[at(row)];
    if (program_.attract() > 0 || functions.size() != 1 || functions[0].gradient.size() != 1) return {};
    const int state = functions[0].gradient[0].first, slot = tape.states[at(state)];
    const int value = tape.outputs[at(functions[0].value)];
    if (std::exchange(lands[at(state)], 1)) return {};
    if (value == slot) {
      out.push_back({.state = state});
      continue;
    }
    const auto found = shifts.find(value);
    if (found == shifts.end() || found->second->a != slot) return {};
    out.push_back({state, found->second->b, found->second->instr == Instr::add_c ? -1.0 : 1.0});
  }
  return out;
}

/// Where the unknowns that are solved for, and those that follow them, stand in a tape of the mode.
std::vector<int> Series::unknown_slots(const Plan& plan, const Tape& tape) const {
  const int m = program_.switches();
  std::vector<int> slots;
  for (const int u : plan.active) slots.push_back(u < m ? tape.sigmas[at(u)] : tape.lambdas[at(u - m)]);
  for (const Follower& f : plan.followers) slots.push_back(tape.sigmas[at(f.unknown)]);
  return slots;
}

/// States whose rates are exactly zero: a surface kept at zero pins its last state that is not pinned yet.
std::vector<int> Series::held_states(const Plan& plan) const {
  std::vector<char> pinned(at(program_.states()), 0);
  std::vector<std::vector<int>> rows_of(at(program_.states()));
  std::vector<int> left(plan.rows.size(), 0), ready, out;
  for (size_t r = 0; r < plan.rows.size(); ++r) {
    const int u = plan.rows[r];
    if (u < program_.switches() && plan.mode.switches[at(u)] == '^') continue;  // it leaves
    const std::vector<int>& states = plan.tape->moves[at(u)];
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

/// True if the slopes of the unknowns read nothing that moves in the mode: on each of its steps they are numbers. The
/// friction of a block that sticks may depend on its velocity.
bool Series::slope_rests(const Plan& plan) const {
  const Tape& tape = plan.tape->slope;
  if (plan.tape->slope_constant) return true;
  std::vector<bool> moves(at(tape.slots), false);
  if (tape.time >= 0) moves[at(tape.time)] = true;
  for (const int slot : tape.states) moves[at(slot)] = true;
  for (const int i : held_states(plan)) moves[at(tape.states[at(i)])] = false;
  for (const int slot : unknown_slots(plan, tape)) moves[at(slot)] = true;
  for (const auto* stage : {&tape.linear, &tape.timed, &tape.free, &tape.bound}) spread(*stage, moves);
  const auto rests = [&](int output) { return !moves[at(tape.outputs[at(output)])]; };
  return std::all_of(plan.singles.begin(), plan.singles.end(),
                     [&](const Single& single) {
                       return std::all_of(single.entries.begin(), single.entries.end(),
                                          [&](const auto& entry) { return rests(entry.first); });
                     }) &&
         std::all_of(plan.blocks.begin(), plan.blocks.end(), [&](const Block& block) {
           return std::all_of(block.entries.begin(), block.entries.end(),
                              [&](const SlopeEntry& e) { return rests(e.output); });
         });
}

/// The schedule of the tape for a mode that comes back: rates, watched functions, and the residuals it solves.
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
  const std::vector<int> varying = unknown_slots(plan, plan.tape->flow);
  plan.schedule = plan.work->flow.schedule(outputs, varying);
  plan.scheduled = true;
  const auto makes = [](const std::vector<Operation>& list, int out) {
    return std::any_of(list.begin(), list.end(), [out](const Operation& o) { return o.out == out; });
  };
  const auto needs = [&](int out, int argument) {  // what machine code would not keep otherwise is wanted
    const int place = out * (plan.work->flow.order() + 1);
    const bool needed = makes(plan.schedule.free_start, place) || makes(plan.schedule.bound_start, place);
    if (needed) plan.schedule.wanted.push_back(argument);
    return needed || makes(plan.tape->flow.timed, out);
  };
  for (const Operation& peak : plan.tape->flow.peaks) {
    if (needs(peak.out, peak.a)) plan.peaks.push_back(peak);
  }
  for (const HighPower& power : plan.tape->flow.powers) {
    if (needs(power.out, power.base)) plan.powers.push_back(power);
  }
  make_formula(plan, std::span(outputs).subspan(plan.outputs.size()), varying);
  if (shares_sides_) return;  // rows of weights are made of what repeats along a chain
  const int zero = plan.tape->spare + program_.unknowns();
  if (plan.active.empty()) plan.work->flow.arrange(plan.schedule, {});
  if (plan.has_formula) plan.work->flow.arrange(plan.formula, {{zero}});
}

/// Where every unknown has an equation of its own with a slope that rests, and the rates it enters are pinned, it is a
/// formula, u = -residual(u = 0) / slope, and the mode a plain jet: the operations of the residuals with u = 0, then
/// the unknowns, then what depends on them (`outputs`).
void Series::make_formula(Plan& plan, std::span<const size_t> outputs, std::span<const int> varying) const {
  const ModeTape& tape = *plan.tape;
  const bool alone = plan.departs.empty() && plan.blocks.empty() && plan.followers.empty() &&
                     plan.bound_rates.empty() && !plan.singles.empty();
  if (!alone || !plan.slope_rests || !tape.slope_affine) return;
  Jet<double>& jet = plan.work->flow;
  const int stride = jet.order() + 1, zero = (tape.spare + program_.unknowns()) * stride;
  Schedule residuals = jet.schedule(plan.outputs, varying);
  if (!std::all_of(residuals.bound_start.begin(), residuals.bound_start.end(), may_be_affine)) return;
  std::vector<int> places;
  for (const int slot : varying) places.push_back(slot * stride);
  const auto clear = [&](std::vector<Operation>& operations) {
    const auto unknown = [&](int place) { return std::find(places.begin(), places.end(), place) != places.end(); };
    for (Operation& o : operations) {
      if (unknown(o.a)) o.a = zero;
      if (unknown(o.b)) o.b = zero;
    }
  };
  clear(residuals.bound_start);
  clear(residuals.bound_next);
  std::vector<Operation> solved, pinned;
  for (size_t a = 0; a < plan.active.size(); ++a) {
    const int residual = tape.flow.outputs[plan.outputs[a]] * stride;
    solved.push_back({Instr::scale, places[a], residual, (tape.spare + plan.active[a]) * stride});
  }
  for (const int i : held_states(plan))
    pinned.push_back({Instr::scale, tape.flow.outputs[program_.rate(i)] * stride, zero, zero});
  Schedule rest = jet.schedule(outputs, varying);
  plan.formula = plan.schedule;
  using Operations = std::vector<Operation>;
  const auto compose = [&](Operations& all, const Operations& residual, const Operations& dependent) {
    for (const Operations& part : {residual, solved, dependent, pinned})
      all.insert(all.end(), part.begin(), part.end());
  };
  compose(plan.formula.free_start, residuals.bound_start, rest.bound_start);
  compose(plan.formula.free_next, residuals.bound_next, rest.bound_next);
  plan.formula.wanted.insert(plan.formula.wanted.end(), varying.begin(), varying.end());
  plan.formula.bound_start.clear();
  plan.formula.bound_next.clear();
  plan.has_formula = true;
  plan.slope_known = false;  // the formulas divide by the slopes
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

}  // namespace saltus
