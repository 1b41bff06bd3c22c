#include "flow/series.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <cmath>
#include <utility>

#include "base/copy.hpp"
#include "base/index.hpp"
#include "flow/thresholds.hpp"

namespace saltus {
namespace {

/// A number that identifies a binding: series kept for one are not mistaken for those of another in its place.
long next_binding() {
  static std::atomic<long> last = 0;
  return ++last;
}

constexpr int least_weighed = 5;        // choices of modes look at lower orders, in many modes
constexpr size_t most_plans = 200'000;  ///< by their sizes

size_t operations(const ModeTape& tape) { return tape.flow.free.size() + tape.flow.bound.size(); }

}  // namespace

Series::Series(const Program& program, std::span<const double> parameters, int order)
    : program_(program), parameters_(parameters.begin(), parameters.end()), order_(order), binding_(next_binding()) {
  for (const Switch& s : program.model().form.switches) hold_.push_back(constant_value(s.hold, parameters_));
  held_.assign(at(program.unknowns()), false);
}

void Series::bind(std::span<const double> parameters) {
  parameters_.assign(parameters.begin(), parameters.end());
  binding_ = next_binding();
  hold_.clear();
  for (const Switch& s : program_.model().form.switches) hold_.push_back(constant_value(s.hold, parameters_));
  for (auto& [tape, work] : works_) {
    for (Jet<double>* jet : {&work->flow, &work->slope, &work->manifold, &work->actions}) jet->bind(parameters_);
    work->rounding.reset();
    work->side_slopes.clear();
    work->reached = -1;
  }
  for (auto& [mode, plan] : plans_) {
    plan->slope_known = plan->ready = false;
    plan->steps = 0;
    plan->schedule.rows = plan->formula.rows = {};
    plan->schedule.flow = plan->formula.flow = {};
  }
  reset();
}

void Series::reset() {
  if (plan_size_ > most_plans) forget_plans();
  met_size_ = 0;
  for (auto& [mode, plan] : plans_) {
    plan->order = plan->run_steps = 0;
    plan->weighs = false;
    if (!scheduled_at_once(*plan->tape)) forget_schedule(*plan);
    for (Block& block : plan->blocks) {
      if (block.singular) plan->slope_known = plan->ready = false;
      block.held.clear();
      block.even = false;
    }
  }
  plan_ = nullptr;
  guess_.clear();
}

size_t Series::size() const {
  size_t sum = 0;
  for (const auto& [tape, work] : works_) sum += (at(tape->flow.slots) + at(tape->slope.slots)) * (at(order_) + 1);
  for (const auto& [mode, plan] : plans_) sum += 8 * operations(*plan->tape) + size_of_plan();
  return sum;
}

void Series::tie(Ties ties) {
  if (ties == ties_) return;
  ties_ = std::move(ties);
  binding_ = next_binding();
  forget_plans();
}

void Series::forget_plans() {
  for (auto& [tape, work] : works_) work->last = nullptr;
  binding_ = next_binding();
  plans_.clear();
  plan_size_ = met_size_ = 0;
  plan_ = nullptr;
  recent_ = {};
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

std::vector<double> Series::reaches() const {
  const auto bound = [&](int member) {
    const int v = plan_->active[at(member)];
    return v < program_.switches() ? hold_[at(v)] : std::abs(unknown(v)[0]);
  };
  std::vector<double> out(at(program_.unknowns()), 0.0);
  const auto reach = [&](int member) -> double& { return out[at(plan_->active[at(member)])]; };
  for (const Single& single : plan_->singles) reach(single.member) = std::abs(single.slope) * bound(single.member);
  for (const Block& block : plan_->blocks) {
    const Index n = ix(block.members.size());
    Vec bounds(n), sums;
    for (Index j = 0; j < n; ++j) bounds[j] = bound(block.members[ux(j)]);
    if (block.banded) {
      block.band->absolute_product(bounds, sums);
    } else {
      sums.setZero(n);
      for (Index i = 0; i < n; ++i) {
        for (Index j = 0; j < n; ++j) sums[i] += std::abs(block.slope(i, j)) * bounds[j];
      }
    }
    for (Index i = 0; i < n; ++i) reach(block.members[ux(i)]) = sums[i];
  }
  return out;
}

bool Series::raised(int u) const {
  if (plan_->active.empty()) return false;
  const int a = plan_->position[at(u)];
  return a >= 0 && plan_->rows[at(a)] >= program_.unknowns();
}

double Series::raised_value(int u) {
  const ManifoldFunction& function = tape_->manifolds[at(program_.unknowns() + u - program_.switches())][0];
  return manifold().output(at(function.value))[0];
}

/// True if a plan is that of the mode, or of one that it shares its plan with.
bool Series::serves(const Plan& plan, const Mode& mode) const {
  if (!shares_sides_) return plan.mode == mode;
  const auto is_side = [](char c) { return c == '+' || c == '-'; };
  for (size_t i = 0; i < mode.switches.size(); ++i) {
    const char a = mode.switches[i], b = plan.mode.switches[i];
    if (a != b && !(is_side(a) && is_side(b))) return false;
  }
  return plan.mode.constraints == mode.constraints;
}

Series::Plan& Series::plan_of(const Mode& mode) {
  for (Plan* plan : recent_) {
    if (plan && serves(*plan, mode)) return *plan;
  }
  if (met_size_ > most_plans) forget_plans();
  std::string key = mode.switches + mode.constraints;
  if (shares_sides_) std::replace(key.begin(), key.end(), '-', '+');
  std::unique_ptr<Plan>& plan = plans_[key];
  if (!plan) {
    plan = std::make_unique<Plan>(make_plan(mode));
    plan_size_ += size_of_plan();
  }
  recent_[next_recent_] = plan.get();
  next_recent_ = (next_recent_ + 1) % recent_.size();
  return *plan;
}

size_t Series::size_of_plan() const { return at(program_.unknowns()) + 100; }

/// The plan of a mode that differs from the current one by the letter of one switch, as a rule.
Series::Plan& Series::plan_beside(const Mode& mode) {
  constexpr size_t few = 8;
  const size_t count = mode.switches.size();
  if (!plan_ || shares_sides_ || count > few || mode_.switches.size() != count || mode.constraints != mode_.constraints)
    return plan_of(mode);
  size_t other = count;
  for (size_t i = 0; i < count; ++i) {
    if (mode.switches[i] == mode_.switches[i]) continue;
    if (other < count) return plan_of(mode);
    other = i;
  }
  if (other == count) return *plan_;
  const char letter = mode.switches[other];
  if (letter == '~' || letter == '^') return plan_of(mode);
  const size_t kind = letter == '+' ? 0 : letter == '-' ? 1 : letter == '0' ? 2 : 3, all = 4 * count;
  if (plan_->beside.size() != all) plan_->beside.resize(all);
  if (Plan* known = plan_->beside[4 * other + kind]) return *known;
  const size_t before = plan_->number, made = plans_made_;
  Plan& plan = plan_of(mode);
  if (plan_ && plan_->number == before && plans_made_ - made <= 1) plan_->beside[4 * other + kind] = &plan;
  return plan;
}

void Series::set_mode(const Mode& mode) {
  if (plan_ && mode == mode_) return;
  const int order = plan_ ? plan_->order : order_;
  plan_ = &plan_beside(mode);
  mode_ = mode;
  enter(order);
}

/// The mode and its plan are set. `order`: that of the mode before.
void Series::enter(int order) {
  tape_ = plan_->tape;
  work_ = plan_->work;
  if (plan_->order == 0) {  // first time in this run
    plan_->order = order;
    met_size_ += size_of_plan();
  }
  // Unknowns of the last mode with these formulas have left their series.
  const auto clear = [&](int u) { std::fill_n(unknown_slot(u) + 1, order_, 0.0); };
  const Plan* const last = std::exchange(work_->last, plan_);
  work_->reached = -1;
  if (last) {
    for (const int u : last->active) clear(u);
    for (const Follower& f : last->followers) clear(f.unknown);
  } else {
    for (int u = 0; u < program_.unknowns(); ++u) clear(u);
  }
  const int m = program_.switches();
  for (int u = 0; u < program_.unknowns(); ++u)
    unknown_slot(u)[0] = u < m ? value_of_letter(u, mode_.switches[at(u)]) : 0.0;
  if (plan_->scheduled) enter_schedule(last);
  if (any_held_) held_.assign(at(program_.unknowns()), false);
  any_held_ = false;
  const Index active = static_cast<Index>(plan_->active.size());
  if (active == 0 || active == residual_.size()) return;  // resizing to nothing would give the memory away
  residual_.resize(active);
  step_.resize(active);
}

void Series::set_mode(const Mode& mode, int u, char letter) {
  trial_ = mode;
  trial_.switches[at(u)] = letter;
  set_mode(trial_);
}

/// From how many expansions on the current mode comes back often.
size_t Series::often() const { return 8 + operations(*tape_) / 50; }

/// Large models come in many modes, most of which are not seen again.
bool Series::scheduled_at_once(const ModeTape& tape) const {
  constexpr size_t few = 400;
  return shares_sides_ || operations(tape) <= few;
}

/// A mode gets a schedule at once, or when it is expanded often. When it is made does not depend on `native`: so no
/// result does.
void Series::consider_schedule(int order) {
  constexpr int of_a_step = 5;  // choices of modes look at lower orders
  if (shares_sides_ ? order < of_a_step : plan_->uses - plan_->uses_before < often() && !scheduled_at_once(*tape_))
    return;
  make_schedule(*plan_);
  work_->flow.enter(plan_->schedule);
  if (shares_sides_ && native_ == Native::automatic) compile(true);
}

/// Formulas for unknowns and equations that are solved need not give the same last bits, and a schedule sees fewer
/// peaks than the whole tape: which of them a run uses does not depend on the runs before it.
void Series::forget_schedule(Plan& plan) {
  plan.uses_before = plan.uses;
  plan.scheduled = plan.has_formula = plan.ready = plan.compile_tried = plan.compiled = false;
  plan.peaks.clear();
  plan.powers.clear();
}

void Series::compile(bool known) {
  plan_->compiled = work_->flow.compile(plan_->has_formula ? plan_->formula : plan_->schedule, order_, known);
  plan_->compile_tried = plan_->compiled || !known;
  if (plan_->compiled) work_->reached = -1;  // machine code begins with its own coefficients
}

/// Code that others have made is taken when a mode comes back often.
void Series::consider_native() {
  constexpr size_t worthwhile = 10'000;  // compiling takes as long as some 10 000 expansions
  if (!plan_->scheduled) return;
  const size_t now = plan_->uses - plan_->uses_before, some = shares_sides_ ? 1 : often();
  if (native_ == Native::on ? now >= some : plan_->uses >= worthwhile) return compile(false);
  if (now == some && !shares_sides_) compile(true);
}

/// Quantities that the schedule takes for constant have only the series that the last mode with these formulas left.
void Series::enter_schedule(const Plan* last) {
  if (!last || !last->scheduled) return work_->flow.enter(plan_->schedule);
  for (const auto& [before, slots] : plan_->left_by) {
    if (before != last) continue;
    for (const int slot : slots) std::fill_n(work_->flow[slot] + 1, order_, 0.0);
    return;
  }
  std::vector<int> left, constant = last->schedule.still;
  std::sort(constant.begin(), constant.end());
  for (const int slot : plan_->schedule.still) {
    if (!std::binary_search(constant.begin(), constant.end(), slot)) left.push_back(slot);
  }
  constexpr size_t most_neighbours = 8;
  if (plan_->left_by.size() < most_neighbours) plan_->left_by.emplace_back(last, std::move(left));
  work_->flow.enter(plan_->schedule);
}

std::optional<double> Series::side_slope(int u) {
  std::vector<double>& slopes = work_->side_slopes;
  if (slopes.empty()) {
    slopes.assign(at(program_.switches()), HUGE_VAL);
    const bool numbers = tape_->slope_constant && tape_->slope_affine, open = !tape_->lettered;
    for (size_t i = 0; i < slopes.size(); ++i) {
      const bool enters = tape_->degree[i] == 1;  // otherwise h' is the same on both sides
      if (open && program_.open(static_cast<int>(i)) && tape_->degree[i] != 0 && (!enters || numbers)) slopes[i] = 0;
    }
    for (const SlopeEntry& e : tape_->slope_entries) {
      const bool own = e.row == e.column && e.row < program_.switches() && tape_->degree[at(e.row)] == 1;
      if (own) slopes[at(e.row)] += e.factor * slope_series(e.output)[0];
    }
  }
  return std::isfinite(slopes[at(u)]) ? std::optional(slopes[at(u)]) : std::nullopt;
}

void Series::drive(int i, std::span<const double> series) {
  double* rate = work_->flow[tape_->flow.outputs[program_.rate(i)]];
  work_->reached = -1;
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
  work_->reached = -1;
  Jet<double>& jet = work_->flow;
  for (size_t c = 0; c < counters.size(); ++c) jet.set_counter(c, counters[c]);
  if (!jet.stands_at_time(t, order)) jet.set_time(t, order);
  for (size_t i = 0; i < x.size(); ++i) work_->states[i][0] = x[i];
}

/// True if the flow jet holds the series of this point.
bool Series::stands_at(std::span<const double> x, double t, std::span<const double> counters) const {
  const auto same = [](double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); };
  if (work_->flow.time() != t) return false;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!same(work_->states[i][0], x[i])) return false;
  }
  return counters.empty() || work_->flow.stands_at({.counters = counters, .t = t});
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

void Series::solve_blocks() {
  for (const Single& single : plan_->singles) step_[single.member] = -single.inverse * residual_[single.member];
  for (Block& block : plan_->blocks) {
    const size_t n = block.members.size();
    if (block.banded) {
      Vec b(ix(n)), x;
      for (size_t i = 0; i < n; ++i) b[ix(i)] = residual_[block.members[i]];
      block.band->solve(b, x);
      for (size_t i = 0; i < n; ++i) step_[block.members[i]] = -x[ix(i)];
      continue;
    }
    for (size_t i = 0; i < n; ++i) {
      double sum = 0;
      for (size_t j = 0; j < n; ++j) {
        sum += block.inverse(static_cast<Index>(i), static_cast<Index>(j)) * residual_[block.members[j]];
      }
      step_[block.members[i]] = -sum;
    }
  }
}

void Series::read_residual(int k) {
  for (const Follower& f : plan_->followers) unknown_slot(f.unknown)[k] = f.sign * unknown_slot(f.leader)[k];
  extend_bound(k);
  for (size_t a = 0; a < plan_->residuals.size(); ++a) residual_[static_cast<Index>(a)] = plan_->residuals[a][k];
}

void Series::note_rates(int k) {
  unsolved_.resize(plan_->bound_rates.size());
  for (size_t i = 0; i < unsolved_.size(); ++i) unsolved_[i] = plan_->bound_rates[i][k];
  if (!leaves_rows_) return;
  unpinned_.resize(plan_->pinned.size());
  for (size_t i = 0; i < unpinned_.size(); ++i) unpinned_[i] = plan_->pinned[i][k];
}

/// A state held by several surfaces has a rate that is rounding of what they cancel: it is zero. One whose surface no
/// unknown keeps, because the slope has lost it, moves as it does.
void Series::clear_held_rates(int k) {
  constexpr double rounding = 64 * 2.2e-16;
  for (size_t i = 0; i < unsolved_.size(); ++i) {
    double& value = plan_->bound_rates[i][k];
    if (std::abs(value) <= rounding * std::abs(unsolved_[i])) value = 0;
  }
  for (size_t i = 0; i < plan_->pinned.size(); ++i) {
    double& value = plan_->pinned[i][k];
    const bool lost = leaves_rows_ && k > 0 && std::abs(value) > unsolved_residual * std::abs(unpinned_[i]);
    if (!lost) value = 0;
  }
}

bool Series::redundant_mode() const { return any_singular(); }

bool Series::any_singular() const {
  return std::any_of(plan_->blocks.begin(), plan_->blocks.end(), [](const Block& b) { return b.singular; });
}

/// Sigma and lambda at the point: one linear solve if the mode is affine in them, Newton's method otherwise.
SeriesStatus Series::solve_start() {
  const std::vector<int>& active = plan_->active;
  const bool use_guess = (!tape_->slope_affine || program_.vectors() > 0) && guess_.size() == at(program_.unknowns());
  if (any_held_) held_.assign(at(program_.unknowns()), false);
  any_held_ = false;
  if (!plan_->departs.empty()) return start_departure();
  for (const int u : active) unknown_slot(u)[0] = use_guess ? guess_[at(u)] : 0;
  read_residual(0);
  note_rates(0);
  if (!residual_.allFinite()) return SeriesStatus::undefined;
  const double first = residual_.max_abs();
  const int most = tape_->slope_affine ? 2 : 40;
  for (int iteration = 0; iteration < most; ++iteration) {
    form_slope();
    if (any_held_) release_regular_blocks();
    if (!any_held_ && any_singular()) {
      take_held_values();
      read_residual(0);
    }
    solve_blocks();
    if (!step_.allFinite()) return SeriesStatus::undefined;
    double change = 0;
    for (size_t a = 0; a < active.size(); ++a) {
      double& u = *unknown_slot(active[a]);
      u += step_[static_cast<Index>(a)];
      change = std::max(change, std::abs(step_[static_cast<Index>(a)]) / (1 + std::abs(u)));
    }
    read_residual(0);
    const double size = residual_.max_abs();
    if (!std::isfinite(size)) return SeriesStatus::undefined;
    if (change < 1e-15 || (tape_->slope_affine && size <= 1e-15 * first)) break;
  }
  return residual_is_rounding() ? SeriesStatus::ok : SeriesStatus::unsolved;
}

/// True if what is left of the residual is small against what the unknowns can change; otherwise there is no solution.
bool Series::residual_is_rounding() const {
  for (const Single& single : plan_->singles) {
    const double left = std::abs(residual_[single.member]);
    const double scale = std::abs(single.slope) * (1 + std::abs(unknown(plan_->active[at(single.member)])[0]));
    if (left > unsolved_residual * scale) return false;
  }
  for (const Block& block : plan_->blocks) {
    if (block.banded) {
      const Index n = ix(block.members.size());
      Vec sizes(n), scale;
      for (Index j = 0; j < n; ++j) sizes[j] = 1 + std::abs(unknown(plan_->active[at(block.members[ux(j)])])[0]);
      block.band->absolute_product(sizes, scale);
      for (Index i = 0; i < n; ++i) {
        if (std::abs(residual_[block.members[ux(i)]]) > unsolved_residual * scale[i]) return false;
      }
      continue;
    }
    for (size_t i = 0; i < block.members.size(); ++i) {
      double scale = 0;
      for (size_t j = 0; j < block.members.size(); ++j) {
        scale += std::abs(block.slope(static_cast<Index>(i), static_cast<Index>(j))) *
                 (1 + std::abs(unknown(plan_->active[at(block.members[j])])[0]));
      }
      if (std::abs(residual_[block.members[i]]) > unsolved_residual * scale) return false;
    }
  }
  return true;
}

/// The directions of what leaves rest are given (the guess), or those of h where it has left; the other unknowns
/// follow, and r' = e.h' (docs/method/vector_friction.md).
SeriesStatus Series::start_departure() {
  const std::vector<int>& active = plan_->active;
  std::vector<char> given(active.size(), 0);
  departure_rate_.assign(plan_->departs.size(), 0.0);
  for (const int u : active) unknown_slot(u)[0] = guess_.size() == at(program_.unknowns()) ? guess_[at(u)] : 0;
  for (size_t v = 0; v < plan_->departs.size(); ++v) {
    const std::vector<int>& members = plan_->departs[v];
    double length = 0, size = 0, norm = 0;
    for (const int a : members) {
      const int u = active[at(a)];
      given[at(a)] = 1;
      length = std::hypot(length, surface(u)[0]);
      norm = std::hypot(norm, unknown_slot(u)[0]);
      for (const ManifoldFunction& f : tape_->manifolds[at(u)]) {
        for (const auto& [i, output] : f.gradient) size = std::max(size, std::abs(state(i)[0]));
      }
    }
    const bool left = length > departed * size;
    if (!left && norm == 0) return SeriesStatus::undefined;
    for (const int a : members) {
      double& s = *unknown_slot(active[at(a)]);
      s = left ? surface(active[at(a)])[0] / length : s / norm;
    }
  }
  read_residual(0);
  note_rates(0);
  if (!residual_.allFinite()) return SeriesStatus::undefined;
  slope_whole();
  if (!solve_beside(given)) return SeriesStatus::unsolved;
  for (size_t v = 0; v < plan_->departs.size(); ++v) {
    double fastest = 0;
    for (const int a : plan_->departs[v]) {
      departure_rate_[v] += *unknown_slot(active[at(a)]) * residual_[a];
      fastest = std::max(fastest, whole_.row(a).max_abs());
    }
    if (departure_rate_[v] < tangential_departure * fastest) departure_rate_[v] = 0;
  }
  lengths_.assign(plan_->departs.size(), std::vector<double>(at(order_) + 2, 0.0));
  for (size_t v = 0; v < lengths_.size(); ++v) lengths_[v][1] = departure_rate_[v];
  return SeriesStatus::ok;
}

/// d residual / d unknown of all active unknowns at the point, unknowns as they are.
void Series::slope_whole() {
  plan_->slope_known = false;
  form_slope();
  const Index n = ix(plan_->active.size());
  whole_.setZero(n, n);
  for (const Single& single : plan_->singles) whole_(single.member, single.member) = single.slope;
  for (const Block& block : plan_->blocks) {
    for (const SlopeEntry& e : block.entries)
      whole_(block.members[at(e.row)], block.members[at(e.column)]) += e.factor * work_->slope.output(at(e.output))[0];
  }
}

/// The unknowns that are not given, from their own residuals; all residuals are read anew.
bool Series::solve_beside(const std::vector<char>& given) {
  std::vector<int> open;
  for (size_t a = 0; a < given.size(); ++a) {
    if (!given[a]) open.push_back(static_cast<int>(a));
  }
  if (open.empty()) return true;
  Mat part(ix(open.size()), ix(open.size()));
  for (int iteration = 0; iteration < 3; ++iteration) {  // linear, as the directions are given
    Vec rest(ix(open.size()));
    for (size_t a = 0; a < open.size(); ++a) {
      rest[ix(a)] = residual_[open[a]];
      for (size_t b = 0; b < open.size(); ++b) part(ix(a), ix(b)) = whole_(open[a], open[b]);
    }
    const Vec step = Orthogonal(part, independent_column).solve(rest);
    if (!step.allFinite()) return false;
    for (size_t a = 0; a < open.size(); ++a) *unknown_slot(plan_->active[at(open[a])]) -= step[ix(a)];
    read_residual(0);
    if (tape_->slope_affine) break;
    slope_whole();
  }
  return residual_.allFinite();
}

/// Order k of a departure h = r e, |e| = 1, with r_0 = 0:
///   W_k + S e_k = (k+1) (r_{k+1} e_0 + r_1 e_k + sum_{j=2..k} r_j e_{k+1-j}),    e_0.e_k = -1/2 sum_{j=1..k-1}
///   e_j.e_{k-j}
/// beside the equations of the other unknowns.
void Series::solve_departure(int k) {
  const std::vector<int>& active = plan_->active;
  const Index n = ix(active.size()), all = n + ix(plan_->departs.size());
  for (double* u : plan_->unknowns) u[k] = 0;
  read_residual(k);
  note_rates(k);
  Mat M = Mat::Zero(all, all);
  Vec b = Vec::Zero(all);
  for (Index i = 0; i < n; ++i) {
    b[i] = -residual_[i];
    for (Index j = 0; j < n; ++j) M(i, j) = whole_(i, j);
  }
  const double order = k + 1;
  for (size_t v = 0; v < plan_->departs.size(); ++v) {
    const std::vector<double>& r = lengths_[v];
    const Index border = n + ix(v);
    double products = 0;
    for (const int a : plan_->departs[v]) {
      const double* e = unknown_slot(active[at(a)]);
      M(a, a) -= order * r[1];
      M(a, border) = -order * e[0];
      M(border, a) = e[0];
      for (int j = 2; j <= k; ++j) b[a] += order * r[at(j)] * e[k + 1 - j];
      for (int j = 1; j < k; ++j) products += e[j] * e[k - j];
    }
    b[border] = -products / 2;
  }
  const Vec solution = Orthogonal(M, singular_rcond).solve(b);
  for (Index i = 0; i < n; ++i) plan_->unknowns[ux(i)][k] = solution[i];
  for (size_t v = 0; v < plan_->departs.size(); ++v) lengths_[v][at(k) + 1] = solution[n + ix(v)];
  extend_bound(k);
}

/// Coefficient k of the unknowns: the residual with u_k = 0, then one solve with the slope at the point.
void Series::solve_order(int k) {
  if (!plan_->departs.empty()) return solve_departure(k);
  if (k == 1) leaves_rows_ = !plan_->solvable || any_singular();
  for (double* u : plan_->unknowns) u[k] = 0;
  read_residual(k);
  note_rates(k);
  solve_blocks();
  for (size_t a = 0; a < plan_->unknowns.size(); ++a) {
    if (!any_held_ || !held_[at(plan_->active[a])]) plan_->unknowns[a][k] = step_[static_cast<Index>(a)];
  }
  for (const Follower& f : plan_->followers) unknown_slot(f.unknown)[k] = f.sign * unknown_slot(f.leader)[k];
  extend_bound(k);
}

/// Weights of a mode whose flow is linear are as much work as some tens of steps. When they come in depends on the
/// steps of the run alone: no result does on the runs before it.
void Series::consider_weights(Schedule& schedule) {
  if (plan_->weighs || !plan_->linear || !plan_->ready || plan_->run_steps < steps_before_weights_) return;
  if (!schedule.flow.tried) work_->flow.find_flow(schedule);
  plan_->weighs = !schedule.flow.empty();
}

/// Coefficients first..order of a plain jet.
void Series::extend_plainly(Schedule& schedule, int order, int first) {
  const bool is_long = order >= least_weighed;
  if (is_long) consider_weights(schedule);
  if (is_long && plan_->weighs) {
    work_->flow.expand_by_weights(schedule, order, first);
  } else {
    work_->flow.expand(schedule, order, first);
  }
}

/// A mode without unknowns, or with formulas for them, from the point that is loaded.
SeriesStatus Series::expand_plain(Schedule& schedule, int order) {
  constexpr int worth_folding = 3;  // steps: folding takes as long as some of them
  if (shares_sides_ && order > 0 && ++plan_->steps == worth_folding && tape_->slope_constant)
    work_->flow.fold(schedule);
  extend_plainly(schedule, order, 0);
  const bool solved =
      std::all_of(plan_->unknowns.begin(), plan_->unknowns.end(), [](const double* u) { return std::isfinite(u[0]); });
  if (!solved || !rates_are_finite()) return SeriesStatus::undefined;
  work_->reached = order;
  return SeriesStatus::ok;
}

double Series::turning() const {
  double fastest = 0;
  for (const int slot : plan_->turns) fastest = std::max(fastest, std::abs(work_->flow[slot][1]));
  return fastest;
}

bool Series::is_ready() const {
  const bool solved = plan_->has_formula && plan_->slope_known && tape_->slope_constant && plan_->solvable;
  return plan_->scheduled && !shares_sides_ && (plan_->active.empty() || solved);
}

/// `expand` in a plan that is ready.
SeriesStatus Series::expand_ready(std::span<const double> x, double t, std::span<const double> counters, int order) {
  note_use(order);
  t_ = t;
  if (!counters.empty()) copy_numbers(counters, counters_);
  Work& work = *work_;
  Jet<double>& jet = work.flow;
  Schedule& schedule = plan_->active.empty() ? plan_->schedule : plan_->formula;
  const int order_of_time = plan_->weighs && order >= least_weighed ? 1 : order;
  int first = 0;
  if (work.reached >= 0 && stands_at(x, t, counters)) {  // what is missing is added
    if (order <= work.reached) return SeriesStatus::ok;
    first = work.reached + 1;
    if (!jet.stands_at_time(t, order_of_time)) jet.set_time(t, order_of_time);
  } else {
    load(x, t, counters, order_of_time);
  }
  extend_plainly(schedule, order, first);
  work.reached = order;
  if (first > 0) return SeriesStatus::ok;
  double nothing = 0;  // unless something is not finite
  for (const double* u : plan_->unknowns) nothing += 0 * u[0];
  for (const double* rate : work.rates) nothing += 0 * rate[0];
  if (nothing == 0) return SeriesStatus::ok;
  work.reached = -1;
  return SeriesStatus::undefined;
}

SeriesStatus Series::expand(std::span<const double> x, double t, std::span<const double> counters, int order) {
  assert(order <= order_);
  if (plan_->ready) return expand_ready(x, t, counters, order);
  note_use(order);
  t_ = t;
  copy_numbers(counters, counters_);
  Jet<double>& jet = work_->flow;
  const bool plain = plan_->scheduled && plan_->active.empty();
  Schedule& schedule = plain ? plan_->schedule : plan_->formula;
  if (work_->reached >= 0 && stands_at(x, t, counters)) {  // what is missing is added
    if (order <= work_->reached) return SeriesStatus::ok;
    if (!jet.stands_at_time(t, order)) jet.set_time(t, order);
    jet.expand(schedule, order, work_->reached + 1);
    work_->reached = order;
    return SeriesStatus::ok;
  }
  load(x, t, counters, order);
  if (plan_->has_formula) form_slope();
  if (plain || (plan_->has_formula && plan_->solvable)) {
    plan_->ready = is_ready();
    return expand_plain(schedule, order);
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
    if (k == 0 && !rates_are_finite()) return SeriesStatus::undefined;
    if (k < order) jet.integrate(k);
  }
  return SeriesStatus::ok;
}

SeriesStatus Series::evaluate(std::span<const double> x, double t, std::span<const double> counters) {
  return expand(x, t, counters, 0);
}

void Series::stand_at(std::span<const double> x, double t, std::span<const double> counters) {
  t_ = t;
  counters_.assign(counters.begin(), counters.end());
  load(x, t, counters, 0);
}

void Series::evaluate_with(std::span<const double> x, double t, std::span<const double> counters,
                           std::span<const int> open_switches) {
  stand_at(x, t, counters);
  for (const int i : open_switches) unknown_slot(i)[0] = 0;
  work_->flow.free(0);
  work_->flow.bound(0);
}

double Series::noise(size_t output) {
  if (!work_->rounding) work_->rounding = std::make_unique<Rounding>(tape_->flow, parameters_);
  const int m = program_.switches();
  std::vector<double> x, sigma, lambda;
  for (int s = 0; s < program_.states(); ++s) x.push_back(state(s)[0]);
  for (int u = 0; u < program_.unknowns(); ++u) (u < m ? sigma : lambda).push_back(unknown(u)[0]);
  work_->rounding->evaluate(x, t_, sigma, counters_, lambda);
  return work_->rounding->error(output);
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
  if (!plan_->landings.empty()) {
    double found = 0;
    for (const Landing& l : plan_->landings) {
      const double root = l.constant < 0 ? 0 : l.sign * work_->manifold[l.constant][0];
      found = std::max(found, std::abs(x[at(l.state)] - root));
      x[at(l.state)] = root;
    }
    return found;
  }
  counters_.assign(counters.begin(), counters.end());
  t_ = t;
  Jet<double>& jet = work_->manifold;
  copy_inputs(jet, 0);
  jet.set_time(t, 0);
  double found = program_.any_joint() ? project_joints(x, t, counters) : 0;
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
    if (sweep == 0) found = std::max(found, largest);
    if (largest == 0 || program_.attract() > 0) break;
  }
  return found;
}

}  // namespace saltus
