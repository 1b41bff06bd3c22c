#include "code/jet.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

#include "base/simd.hpp"
#include "code/jet_rules.hpp"

namespace saltus {

template <>
struct rules::Elementary<double> {
  static double sqrt(double a) { return std::sqrt(a); }
  static double cbrt(double a) { return std::cbrt(a); }
  static double exp(double a) { return std::exp(a); }
  static double log(double a) { return std::log(a); }
  static double expm1(double a) { return std::expm1(a); }
  static double log1p(double a) { return std::log1p(a); }
  static double pow(double a, double b) { return std::pow(a, b); }
  static double tan(double a) { return std::tan(a); }
  static double sinh(double a) { return std::sinh(a); }
  static double cosh(double a) { return std::cosh(a); }
  static double tanh(double a) { return std::tanh(a); }
  static double atan(double a) { return std::atan(a); }
  static double asin(double a) { return std::asin(a); }
  static double acos(double a) { return std::acos(a); }
  static double atan2(double a, double b) { return std::atan2(a, b); }
  static void sin_cos(double a, double& s, double& c) {
    s = std::sin(a);
    c = std::cos(a);
  }
  static double quotient_or_zero(double a, double b) { return a == 0 && b == 0 ? 0 : a / b; }
};

namespace {

const bool has_fours = simd::has_four();

[[gnu::noinline]] void next_product_by_ones(const Operation& o, double* series, size_t stride, int k) {
  if (!rules::next_product_of<double*>(o, series, stride, k)) rules::next_function(o, series, stride, k);
}

double convolve_by_ones(const double* a, const double* b, int k) { return rules::convolve(a, b, k, 1, k - 1); }
double convolve_itself_by_ones(const double* a, int k) { return rules::convolve_itself(a, k, 1); }
void convolve_two_by_ones(const double* a, const double* b, const double* c, const double* d, int k, double* sums) {
  sums[0] = convolve_by_ones(a, b, k);
  sums[1] = convolve_by_ones(c, d, k);
}
void convolve_two_itself_by_ones(const double* a, const double* b, int k, double* sums) {
  sums[0] = convolve_itself_by_ones(a, k);
  sums[1] = convolve_itself_by_ones(b, k);
}

}  // namespace

double rules::long_sum_of_products(const double* a, const double* b, int count) {
  return has_fours ? sum_by_fours(a, b, count) : sum(0, count - 1, [&](int j) { return a[j] * b[-j]; });
}

template <>
void rules::next_product<double>(const Operation& o, double* series, size_t stride, int k) {
  return has_fours ? next_product_by_fours(o, series, stride, k) : next_product_by_ones(o, series, stride, k);
}

void rules::next_function_alone(const Operation& o, double* series, size_t stride, int k) {
  next_function(o, series, stride, k);
}

template struct rules::Interpreter<double>;

const NativeFunctions& native_functions() {
  using F = rules::Elementary<double>;
  static const NativeFunctions functions{
      .sqrt = F::sqrt,
      .cbrt = F::cbrt,
      .exp = F::exp,
      .log = F::log,
      .expm1 = F::expm1,
      .log1p = F::log1p,
      .tan = F::tan,
      .sinh = F::sinh,
      .cosh = F::cosh,
      .tanh = F::tanh,
      .atan = F::atan,
      .asin = F::asin,
      .acos = F::acos,
      .atan2 = F::atan2,
      .pow = F::pow,
      .sin_cos = F::sin_cos,
      .convolve = has_fours ? rules::convolve_by_fours : convolve_by_ones,
      .convolve_itself = has_fours ? rules::convolve_itself_by_fours : convolve_itself_by_ones,
      .convolve_two = has_fours ? rules::convolve_two_by_fours : convolve_two_by_ones,
      .convolve_two_itself = has_fours ? rules::convolve_two_itself_by_fours : convolve_two_itself_by_ones,
      .extend = [](const Operation& o, double* series, size_t stride, int k) {
        rules::Interpreter<double>::extend(rules::Operations(&o, 1), series, stride, k);
      }};
  return functions;
}

template <class V>
Jet<V>::Jet(const Tape& tape, int order)
    : tape_(&tape),
      order_(order),
      stride_(static_cast<size_t>(order) + 1),
      c_((static_cast<size_t>(tape.slots) * stride_ * sizeof(V) + sizeof(Line) - 1) / sizeof(Line)),
      constants_(static_cast<size_t>(tape.slots)) {
  assert(order <= largest_order);
  const int stride = order + 1;
  const auto place = [&](const std::vector<Operation>& operations) {
    std::vector<Operation> placed;
    for (const Operation& o : operations) placed.push_back({o.instr, o.out * stride, o.a * stride, o.b * stride});
    return placed;
  };
  linear_ = place(tape.linear);
  timed_ = place(tape.timed);
  timed_anything_ = tape.time >= 0 || !linear_.empty() || !timed_.empty();
  free_ = place(tape.free);
  bound_ = place(tape.bound);
  for (size_t i = 0; i < std::min(tape.states.size(), tape.outputs.size()); ++i) {
    rates_.emplace_back(tape.states[i] * stride, tape.outputs[i] * stride);
  }
}

template <class V>
void Jet<V>::bind(std::span<const double> parameters) {
  time_order_ = -1;
  for (size_t lane = 0; lane < sizeof(V) / sizeof(double); ++lane) bind_lane(lane, parameters);
}

template <class V>
void Jet<V>::bind_lane(size_t lane, std::span<const double> parameters) {
  const auto constant = [&](int slot) -> double& { return constants_[static_cast<size_t>(slot)]; };
  const auto set = [&](int slot, double value) {
    constant(slot) = value;
    reinterpret_cast<double*>((*this)[slot])[lane] = value;
  };
  for (const auto& [slot, value] : tape_->numbers) set(slot, value);
  for (const auto& [slot, index] : tape_->parameters) set(slot, parameters[static_cast<size_t>(index)]);
  for (const BindOperation& o : tape_->bind) {
    const double a[3] = {constant(o.a), constant(o.b), constant(o.c)};
    set(o.out, apply(o.op, a));
  }
}

template <class V>
void Jet<V>::set_time(const V& t, int order) {
  const double* times = reinterpret_cast<const double*>(&t);
  const int known = std::equal(time_.begin(), time_.end(), times) ? time_order_ : -1;
  if (known >= order) return;
  std::copy_n(times, time_.size(), time_.begin());
  time_order_ = order;
  if (tape_->time >= 0 && known < 0) {
    (*this)[tape_->time][0] = t;
    if (order_ > 0) (*this)[tape_->time][1] = V{} + 1.0;
  }
  const int native = run_native(time_code_, known + 1, order);
  if (native == order) return;
  rules::Interpreter<V>::extend_to(linear_, series(), stride_, native + 1, std::min(order, 1));
  rules::Interpreter<V>::extend_to(timed_, series(), stride_, native + 1, order);
}

template <class V>
int Jet<V>::run_native(const NativeCode& code, int first, int last) {
  if constexpr (std::same_as<V, double>) {
    if (const int reached = std::min(last, code.order); first <= reached) {
      code.run(series(), first, reached);
      return reached;
    }
  }
  return first - 1;
}

namespace {

std::vector<Operation> joined(std::vector<Operation> first, const std::vector<Operation>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::array<std::vector<Operation>, 3> by_order(std::vector<Operation> start, const std::vector<Operation>& next) {
  return {std::move(start), next, next};
}

}  // namespace

template <class V>
NativeCode Jet<V>::native_for(NativeSource source, int order, bool known) const {
  if (source.operations[0].empty()) return {};
  for (const auto& [slot, value] : tape_->numbers) source.numbers.emplace_back(slot * static_cast<int>(stride_), value);
  source.stride = static_cast<int>(stride_);
  source.order = std::min(order, order_);
  return native_code(std::move(source), known);
}

template <class V>
void Jet<V>::compile_time(int order, bool known) {
  const std::vector<Operation> time = joined(linear_, timed_);
  time_code_ = native_for({.operations = {time, time, timed_}}, order, known);
  time_order_ = -1;  // it must begin anew
}

template <class V>
bool Jet<V>::compile(Schedule& schedule, int order, bool known) {
  if constexpr (std::same_as<V, double>) {
    compile_time(order, known);
    if (schedule.bound_start.empty()) {
      NativeSource source{.operations = by_order(schedule.free_start, schedule.free_next), .rates = rates_};
      for (const int slot : schedule.wanted) source.wanted.push_back(slot * static_cast<int>(stride_));
      for (const auto& [x, rate] : rates_) source.wanted.push_back(x);
      schedule.expand_code = native_for(std::move(source), order, known);
      return schedule.expand_code.run != nullptr;
    }
    schedule.free_code = native_for({.operations = by_order(schedule.free_start, schedule.free_next)}, order, known);
    schedule.bound_code = native_for({.operations = by_order(schedule.bound_start, schedule.bound_next)}, order, known);
    return schedule.bound_code.run != nullptr;
  }
  return false;
}

template <class V>
bool Jet<V>::compile_filling(Schedule& schedule, int order, bool known) {
  if constexpr (std::same_as<V, double>) {
    compile_time(order, known);
    NativeSource source{.operations = by_order(joined(schedule.free_start, schedule.bound_start),
                                               joined(schedule.free_next, schedule.bound_next))};
    for (const int slot : schedule.wanted) source.wanted.push_back(slot * static_cast<int>(stride_));
    schedule.expand_code = native_for(std::move(source), order, known);
    return schedule.expand_code.run != nullptr;
  }
  return false;
}

template <class V>
std::vector<char> Jet<V>::varying_inputs() const {
  std::vector<char> varies(static_cast<size_t>(tape_->slots), 0);
  const auto vary = [&](int slot) { varies[static_cast<size_t>(slot)] = 1; };
  if (tape_->time >= 0) vary(tape_->time);
  for (const int slot : tape_->states) vary(slot);
  for (const auto* stage : {&tape_->linear, &tape_->timed}) {
    for (const Operation& o : *stage) {
      for (int i = 0; i < slots_of(o.instr); ++i) vary(o.out + i);
    }
  }
  return varies;
}

template <class V>
void Jet<V>::arrange(Schedule& schedule, std::span<const int> null) const {
  const int stride = static_cast<int>(stride_);
  const auto times = [](std::vector<Operation> list, auto scale) {
    for (Operation& o : list) o = {o.instr, scale(o.out), scale(o.a), scale(o.b)};
    return list;
  };
  const auto slot = [=](int place) { return place / stride; };
  const auto place = [=](int s) { return s * stride; };
  std::vector<std::pair<int, int>> rates;
  for (const auto& [x, rate] : rates_) rates.emplace_back(slot(x), slot(rate));
  KnownSeries known{.varies = varying_inputs(), .null = std::vector<char>(static_cast<size_t>(tape_->slots), 0)};
  for (const int s : null) known.null[static_cast<size_t>(s)] = 1;
  for (const auto& [s, value] : tape_->numbers) known.null[static_cast<size_t>(s)] = value == 0;
  const std::vector<Operation> next = simplified(times(schedule.free_next, slot), rates, schedule.wanted, known);
  schedule.free_next = times(next, place);
  schedule.arranged = saltus::arrange(next, rates, static_cast<size_t>(tape_->slots));
  for (auto* part : {&schedule.arranged.before, &schedule.arranged.together, &schedule.arranged.after})
    *part = times(*part, place);
  for (auto& [x, rate] : schedule.arranged.rates) x = place(x), rate = place(rate);
}

template <class V>
void Jet<V>::fold(Schedule& schedule) const {
  if constexpr (std::same_as<V, double>) {
    const int stride = static_cast<int>(stride_);
    schedule.rows = linear_rows(schedule.free_next, rates_, schedule.wanted, varying_inputs(), series(), stride);
  }
}

template <class V>
void Jet<V>::find_flow(Schedule& schedule) {
  schedule.flow.tried = true;
  if constexpr (std::same_as<V, double>) {
    const int stride = static_cast<int>(stride_);
    LinearParts parts{
        .linear = linear_, .timed = timed_, .start = schedule.free_start, .free = schedule.free_next, .rates = rates_};
    for (const int slot : schedule.wanted) parts.wanted.push_back(slot * stride);
    if (tape_->time >= 0) parts.time = tape_->time * stride;
    for (const int slot : tape_->counters) {
      if (slot >= 0) parts.counters.push_back(slot * stride);
    }
    rules::Interpreter<V>::extend(schedule.free_start, series(), stride_, 0);  // constants among them
    schedule.flow = linear_flow(parts, {series(), static_cast<size_t>(tape_->slots) * stride_}, stride);
  }
}

template <class V>
void Jet<V>::set_counter(size_t c, const V& value) {
  if (tape_->counters[c] < 0) return;
  V& slot = *(*this)[tape_->counters[c]];
  if (std::memcmp(&slot, &value, sizeof(V)) == 0) return;
  slot = value;
  time_order_ = -1;
}

template <class V>
Schedule Jet<V>::schedule(std::span<const size_t> outputs, std::span<const int> varying) const {
  Schedule out = make_schedule(*tape_, outputs, varying);
  const int stride = static_cast<int>(stride_);  // places in c_ instead of slots
  for (auto* list : {&out.free_start, &out.free_next, &out.bound_start, &out.bound_next}) {
    for (Operation& o : *list) o = {o.instr, o.out * stride, o.a * stride, o.b * stride};
  }
  return out;
}

template <class V>
void Jet<V>::load(const TapeValues& values, int order) {
  const auto set = [this](const std::vector<int>& slots, std::span<const double> numbers) {
    for (size_t i = 0; i < numbers.size() && i < slots.size(); ++i) {
      if (slots[i] >= 0) (*this)[slots[i]][0] = V{} + numbers[i];
    }
  };
  for (size_t c = 0; c < values.counters.size() && c < tape_->counters.size(); ++c)
    set_counter(c, V{} + values.counters[c]);
  set_time(V{} + values.t, order);
  set(tape_->states, values.states);
  set(tape_->sigmas, values.sigmas);
  set(tape_->lambdas, values.lambdas);
}

template <class V>
bool Jet<V>::stands_at(const TapeValues& values) const {
  const auto equal = [this](const std::vector<int>& slots, std::span<const double> numbers) {
    for (size_t i = 0; i < numbers.size() && i < slots.size(); ++i) {
      const V number = V{} + numbers[i];
      if (slots[i] >= 0 && std::memcmp((*this)[slots[i]], &number, sizeof(V)) != 0) return false;
    }
    return true;
  };
  const auto now = [&](double time) { return time == values.t; };
  return std::all_of(time_.begin(), time_.end(), now) && equal(tape_->states, values.states) &&
         equal(tape_->counters, values.counters);
}

template <class V>
void Jet<V>::enter(const Schedule& schedule) {
  for (const int slot : schedule.still) std::fill_n((*this)[slot] + 1, order_, V{});
}

template <class V>
void Jet<V>::free(const Schedule& schedule, int k) {
  if (run_native(schedule.free_code, k, k) == k) return;
  rules::Interpreter<V>::extend(k == 0 ? schedule.free_start : schedule.free_next, series(), stride_, k);
}

template <class V>
void Jet<V>::bound(const Schedule& schedule, int k) {
  if (run_native(schedule.bound_code, k, k) == k) return;
  rules::Interpreter<V>::extend(k == 0 ? schedule.bound_start : schedule.bound_next, series(), stride_, k);
}

template <class V>
void Jet<V>::expand_by_weights(const Schedule& schedule, int order, int first) {
  if constexpr (std::same_as<V, double>) {
    if (first <= 1) expand(schedule, 1, first);
    schedule.flow.expand(series(), std::max(first, 2), order);
  }
}

template <class V>
void Jet<V>::expand(const Schedule& schedule, int order, int first) {
  if (order <= schedule.expand_code.order) {
    run_native(schedule.expand_code, first, order);
    return;
  }
  if constexpr (std::same_as<V, double>) {
    if (!schedule.rows.empty()) {
      if (first == 0) rules::Interpreter<V>::extend(schedule.free_start, series(), stride_, 0);
      schedule.rows.expand(rates_, series(), std::max(first, 1), order);
      return;
    }
  }
  const int from = schedule.expand_code.run ? 0 : first;  // machine code keeps only what it reads itself
  const Arrangement& parts = schedule.arranged;
  using Rules = rules::Interpreter<V>;
  if (parts.empty())
    return Rules::expand(schedule.free_start, schedule.free_next, rates_, series(), stride_, from, order);
  if (from == 0) Rules::extend(schedule.free_start, series(), stride_, 0);
  const int above = std::max(from, 1);
  Rules::extend_to(parts.before, series(), stride_, above, order);
  if (!parts.rates.empty()) Rules::expand({}, parts.together, parts.rates, series(), stride_, above, order);
  Rules::extend_to(parts.after, series(), stride_, above, order);
}

template <class V>
void Jet<V>::fill(const Schedule& schedule, int order) {
  if (run_native(schedule.expand_code, 0, order) == order) return;
  using Rules = rules::Interpreter<V>;
  for (const auto* start : {&schedule.free_start, &schedule.bound_start}) Rules::extend(*start, series(), stride_, 0);
  for (const auto* next : {&schedule.free_next, &schedule.bound_next})
    Rules::extend_to(*next, series(), stride_, 1, order);
}

template <class V>
void Jet<V>::free(int k) {
  rules::Interpreter<V>::extend(free_, series(), stride_, k);
}

template <class V>
void Jet<V>::bound(int k) {
  if (!bound_.empty()) rules::Interpreter<V>::extend(bound_, series(), stride_, k);
}

template <class V>
void Jet<V>::integrate(int k) {
  rules::Interpreter<V>::integrate(rates_, series(), k);
}

void extend(std::span<const Operation> operations, double* series, size_t stride, int k) {
  rules::Interpreter<double>::extend(operations, series, stride, k);
}

template class Jet<double>;

}  // namespace saltus
