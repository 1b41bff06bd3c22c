#include "flow/step/judge.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "flow/thresholds.hpp"

namespace saltus {

bool Here::holds(int item) const {
  return std::any_of(held.begin(), held.end(), [item](const auto& h) { return h.first == item; });
}

Judge::Judge(const Program& program, const std::vector<double>& parameters, const Jumps& jumps)
    : program_(program), jumps_(jumps), layout_(test_layout(program)) {
  const Form& form = program.model().form;
  for (const Switch& s : form.switches) hold_.push_back(constant_value(s.hold, parameters));
  is_step_.assign(form.switches.size(), 0);
  for (const Counter& c : form.counters) is_step_[at(c.below)] = is_step_[at(c.above)] = 1;
}

bool Judge::must_locate(const Disagreement& d) const {
  if (d.guard.kind == GuardKind::gap) return program_.bends(d.guard.item);
  return d.guard.kind == GuardKind::jump || (d.guard.kind == GuardKind::surface && is_step_[at(d.guard.item)]);
}

double Judge::value(const Disagreement& d, const Step& step) const {
  const int i = d.guard.item;
  switch (d.guard.kind) {
    case GuardKind::surface: return d.guard.side * step.tests[i];
    case GuardKind::sigma: return hold_[at(i)] - d.guard.side * step.u1[i];
    case GuardKind::gap: return step.tests[layout_.gap(i)];
    case GuardKind::lambda: return step.u1[layout_.switches + i];
    default: return d.guard.side * step.tests[layout_.jump(i)];
  }
}

std::vector<Guard> Judge::watched(const Here& here) const {
  std::vector<Guard> out;
  for (int i = 0; i < layout_.switches; ++i) {
    const char c = here.mode().switches[at(i)];
    if (program_.moves(i) && (c == '+' || c == '-')) out.push_back({GuardKind::surface, i, c == '+' ? 1 : -1});
  }
  for (int j = 0; j < layout_.constraints; ++j) {
    if (here.mode().constraints[at(j)] == 'o') out.push_back({GuardKind::gap, j, 1});
  }
  for (int k = 0; k < layout_.jumps; ++k) {
    const int side = jumps_.side(at(k));
    const bool watched = !jumps_.has_clock(at(k)) && !jumps_.shared(at(k)).rests(here.mode());
    if (watched && side != 0) out.push_back({GuardKind::jump, k, side});
  }
  return out;
}

bool Judge::may_happen(const Guard& guard) const {
  return guard.kind != GuardKind::jump || jumps_.wanted(at(guard.item), -guard.side);
}

bool Judge::sees_time(const Guard& guard) const {
  const Form& form = program_.model().form;
  switch (guard.kind) {
    case GuardKind::surface: return contains_kind(form.switches[at(guard.item)].surface, SymbolKind::time);
    case GuardKind::gap: return contains_kind(form.gaps[at(guard.item)].gap, SymbolKind::time);
    default: return contains_kind(form.jumps[at(guard.item)].on, SymbolKind::time);
  }
}

void Judge::look(const Here& here, const Step& step, bool must, std::vector<Disagreement>& found) const {
  found.clear();
  look_at_switches(here, step, found);
  look_at_constraints(here, step, found);
  look_at_jumps(here, step, found);
  if (must) std::erase_if(found, [&](const Disagreement& d) { return !must_locate(d); });
}

void Judge::look_at_switches(const Here& here, const Step& step, std::vector<Disagreement>& found) const {
  for (int i = 0; i < layout_.switches; ++i) {
    const char c = here.mode().switches[at(i)];
    if (!program_.moves(i) || c == '=') continue;
    if (c == '0') {
      const double room = hold_[at(i)] - std::abs(step.u1[i]);
      const int side = step.u1[i] > 0 ? 1 : -1;
      if (room < -bound_margin && !here.holds(i))
        found.push_back({{GuardKind::sigma, i, side}, hold_[at(i)] - side * step.u0[i], room});
      continue;
    }
    const int side = c == '+' ? 1 : -1;
    if (side * step.tests[i] < 0)
      found.push_back({{GuardKind::surface, i, side}, side * here.tests[i], side * step.tests[i]});
  }
}

void Judge::look_at_constraints(const Here& here, const Step& step, std::vector<Disagreement>& found) const {
  const int m = layout_.switches, q = layout_.constraints;
  const double strongest = q > 0 ? step.u1.tail(q).max_abs() : 0;
  for (int j = 0; j < q; ++j) {
    if (here.mode().constraints[at(j)] == 'o') {
      const double g = step.tests[layout_.gap(j)];
      const double start = here.tests[layout_.gap(j)];
      const bool wrong = start < 0 && program_.model().form.gaps[at(j)].degree == 0;  // it need not be zero
      if (g < 0) found.push_back({{GuardKind::gap, j, wrong ? 0 : 1}, start, g});
    } else if (!program_.joint(j) && step.u1[m + j] < -bound_margin * strongest && !here.holds(m + j)) {
      found.push_back({{GuardKind::lambda, j, 1}, step.u0[m + j], step.u1[m + j]});
    }
  }
}

void Judge::look_at_jumps(const Here& here, const Step& step, std::vector<Disagreement>& found) const {
  for (int k = 0; k < layout_.jumps; ++k) {
    const int side = jumps_.side(at(k));
    const double c = step.tests[layout_.jump(k)];
    if (jumps_.has_clock(at(k)) || jumps_.shared(at(k)).rests(here.mode())) continue;
    if (side == 0 || side * c >= 0 || !jumps_.wanted(at(k), -side)) continue;
    const double start = side * here.tests[layout_.jump(k)];
    if (jumps_.at_zero(at(k)) && side * c >= start)
      continue;  // rounding on the wrong side, on its way to the right one
    found.push_back({{GuardKind::jump, k, side}, start, side * c});
  }
}

}  // namespace saltus
