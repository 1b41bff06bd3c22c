#include "code/linear_flow.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/index.hpp"
#include "base/simd.hpp"
#include "code/jet.hpp"

namespace saltus {

namespace {

constexpr size_t most_seeds = 12;
constexpr int first_made = 2;  // orders below are done one after the other

/// 0, 1, 2, ...
constexpr auto numbers = [] {
  std::array<double, largest_order + 2> table{};
  for (size_t k = 0; k < table.size(); ++k) table[k] = static_cast<double>(k);
  return table;
}();

using simd::Four;

/// The order of the first of four: the last four orders may overlap those before.
int begin_of(int four, int highest) { return std::min(first_made + 4 * four, highest - 3); }
int fours(int highest) { return (highest - first_made) / 4 + 1; }

/// Fours from..to of what is made. `count`: of the seeds, a number that is known where possible.
template <class Count>
[[gnu::always_inline]] inline void add_up(const LinearFlow& flow, Count count, const double* seeds, int from, int to,
                                          double* series) {
  const double* weights = flow.weights.data() + 4 * count * at(from);
  for (const int place : flow.made) {
    const double* w = weights;
    double* const out = series + place;
    for (int four = from; four <= to; ++four) {
      Four sum, weight;
      std::memcpy(&weight, w, sizeof(weight));
      sum = weight * seeds[0];
      for (size_t i = 1; i < count; ++i) {
        std::memcpy(&weight, w + 4 * i, sizeof(weight));
        sum += weight * seeds[i];
      }
      w += 4 * count;
      std::memcpy(out + (four < flow.last_four ? first_made + 4 * four : flow.highest - 3), &sum, sizeof(sum));
    }
    weights += 4 * count * at(flow.last_four + 1);
  }
}

/// Coefficients first..order of rates: those below the last one from the states'.
template <class Count>
[[gnu::always_inline]] inline void add_up_rates(const LinearFlow& flow, Count count, const double* seeds, int first,
                                                int order, double* series) {
  const double* weights = flow.last_weights.data() + count * at(order);
  for (const auto& [state, rate] : flow.rates) {
    const double* const x = series + state + 1;
    double* const out = series + rate;
    for (int k = std::max(first - 1, first_made); k < order; ++k) out[k] = numbers[at(k + 1)] * x[k];
    double last = weights[0] * seeds[0];
    for (size_t i = 1; i < count; ++i) last += weights[i] * seeds[i];
    out[order] = last;
    weights += count * at(flow.highest + 1);
  }
}

template <class Count>
[[gnu::always_inline]] inline void expand_flow(const LinearFlow& flow, Count count, double* series, int first,
                                               int order) {
  std::array<double, most_seeds> seeds;
  for (size_t i = 0; i < count; ++i) seeds[i] = series[flow.seeds[i]];
  add_up(flow, count, seeds.data(), (first - first_made) / 4, (order - first_made) / 4, series);
  add_up_rates(flow, count, seeds.data(), first, order, series);
  for (const int place : flow.zeros) std::memset(series + place + first, 0, sizeof(double) * at(order + 1 - first));
}

template <size_t n>
using Number = std::integral_constant<size_t, n>;

[[gnu::always_inline]] inline void expand_flow(const LinearFlow& flow, double* series, int first, int order) {
  switch (const size_t count = flow.seeds.size()) {
    case 1: return expand_flow(flow, Number<1>{}, series, first, order);
    case 2: return expand_flow(flow, Number<2>{}, series, first, order);
    case 3: return expand_flow(flow, Number<3>{}, series, first, order);
    case 4: return expand_flow(flow, Number<4>{}, series, first, order);
    case 5: return expand_flow(flow, Number<5>{}, series, first, order);
    case 6: return expand_flow(flow, Number<6>{}, series, first, order);
    default: return expand_flow(flow, count, series, first, order);
  }
}

SALTUS_AVX2 void expand_in_long_registers(const LinearFlow& flow, double* series, int first, int order) {
  expand_flow(flow, series, first, order);
}
const bool has_long_registers = simd::has_four();

bool is_sine(const Operation& o) { return o.instr == Instr::sin_cos_t; }

/// The series that depend on counters other than by a sum.
class Counted {
 public:
  Counted(const LinearParts& parts, size_t slots, int stride) : stride_(stride), counted_(slots, 0) {
    for (const int place : parts.counters) mark(place);
    for (const auto* list : {&parts.linear, &parts.timed, &parts.start, &parts.free}) {
      for (const Operation& o : *list) add(o);
    }
  }
  bool in_weights() const { return in_weights_; }

 private:
  bool is(int place) const { return counted_[at(place / stride_)] != 0; }
  void mark(int place) { counted_[at(place / stride_)] = 1; }
  void add(const Operation& o) {
    const bool sum = o.instr == Instr::add || o.instr == Instr::sub || o.instr == Instr::neg ||
                     o.instr == Instr::add_c || o.instr == Instr::rsub_c;
    const bool multiple = o.instr == Instr::scale || o.instr == Instr::div_c;
    const bool a = is(o.a), b = o.instr != Instr::neg && is(o.b);
    if (multiple ? b : !sum && !is_sine(o) && (a || b)) in_weights_ = true;
    if (!a && !b) return;
    for (int i = 0; i < slots_of(o.instr); ++i) mark(o.out + i * stride_);
  }

  int stride_;
  std::vector<char> counted_;
  bool in_weights_ = false;
};

/// True if what varies is only added, and multiplied by what does not.
class Varying {
 public:
  Varying(const LinearParts& parts, size_t slots, int stride) : stride_(stride), varies_(slots, 0) {
    if (parts.time >= 0) mark(parts.time);
    for (const auto& [state, rate] : parts.rates) mark(state);
    for (const auto* list : {&parts.linear, &parts.timed, &parts.free}) {
      for (const Operation& o : *list) linear_ = linear_ && add(o);
    }
  }
  bool linear() const { return linear_; }
  bool has(int place) const { return varies_[at(place / stride_)] != 0; }

 private:
  void mark(int place) { varies_[at(place / stride_)] = 1; }
  bool add(const Operation& o) {
    const bool a = has(o.a), b = o.instr != Instr::neg && has(o.b);
    for (int i = 0; i < slots_of(o.instr) && (a || b); ++i) mark(o.out + i * stride_);
    if (keeps_linear(o.instr) || is_sine(o) || !(a || b)) return true;
    return (o.instr == Instr::mul && a != b) || (o.instr == Instr::div && !b);
  }

  int stride_;
  std::vector<char> varies_;
  bool linear_ = true;
};

/// Coefficient k > 0 of every result as a combination of the coefficients k of the movers: a matrix, the same for all
/// k.
class OneOrder {
 public:
  OneOrder(const LinearParts& parts, const Varying& varying, std::span<const double> given, int stride)
      : parts_(parts), series_(given.begin(), given.end()), stride_(stride) {
    for (const Operation& o : parts.timed) {
      if (!is_sine(o) && varying.has(o.out)) sums_of_time_.push_back(o);
    }
    const auto clear = [&](int place) { std::fill_n(series_.begin() + place + 1, order, 0.0); };
    if (parts.time >= 0) clear(parts.time);
    for (const auto& [state, rate] : parts.rates) clear(state);
    for (const auto* list : {&parts.linear, &parts.timed, &parts.free}) {
      for (const Operation& o : *list) {
        for (int i = 0; i < slots_of(o.instr); ++i) clear(o.out + i * stride);
      }
    }
  }

  /// Where the coefficient of one series is 1 and those of the others are zero.
  void look(int mover) {
    series_[at(last_ + order)] = 0;
    series_[at(mover + order)] = 1;
    last_ = mover;
    const auto width = static_cast<size_t>(stride_);
    extend(parts_.linear, series_.data(), width, order);
    extend(sums_of_time_, series_.data(), width, order);
    extend(parts_.free, series_.data(), width, order);
  }
  double at_place(int place) const { return series_[at(place + order)]; }

 private:
  static constexpr int order = 2;  // any that a rule for the orders above zero serves
  const LinearParts& parts_;
  std::vector<double> series_;
  std::vector<Operation> sums_of_time_;
  int stride_, last_ = 0;
};

/// A series that changes of itself (a state or time): its coefficient 1 is a seed.
struct Mover {
  enum class Kind { state, time, sine, cosine };
  Kind kind;
  int place;
  double frequency = 0;
};

std::vector<Mover> find_movers(const LinearParts& parts, std::span<const double> series, int stride) {
  std::vector<Mover> out;
  for (const auto& [state, rate] : parts.rates) out.push_back({Mover::Kind::state, state});
  if (parts.time >= 0) out.push_back({Mover::Kind::time, parts.time});
  for (const Operation& o : parts.timed) {
    if (!is_sine(o)) continue;
    const double frequency = series[at(o.a + 1)];
    out.push_back({Mover::Kind::sine, o.out, frequency});
    out.push_back({Mover::Kind::cosine, o.out + stride, frequency});
  }
  return out;
}

/// Places of what is wanted besides states and rates, and is not known without weights.
std::vector<int> find_results(const LinearParts& parts, const Varying& varying) {
  std::vector<int> out;
  for (const int place : parts.wanted) {
    const auto is_there = [&](int p) { return p == place; };
    const auto makes = [&](const Operation& o) { return o.out == place; };
    const auto moves = [&](const auto& pair) { return is_there(pair.first) || is_there(pair.second); };
    if (std::any_of(parts.rates.begin(), parts.rates.end(), moves) || is_there(parts.time)) continue;
    if (std::any_of(out.begin(), out.end(), is_there)) continue;
    // Sums of time alone end at order 1 by themselves; what is held is zero, but not left out.
    if (std::any_of(parts.linear.begin(), parts.linear.end(), makes)) continue;
    if (varying.has(place) || std::any_of(parts.free.begin(), parts.free.end(), makes)) out.push_back(place);
  }
  return out;
}

/// Coefficients 1..highest of a number of series, each by a number of seeds.
class Table {
 public:
  Table(size_t series, size_t seeds, int highest)
      : series_(series), seeds_(seeds), c_(at(highest + 1) * series * seeds, 0.0) {}
  size_t series() const { return series_; }
  size_t seeds() const { return seeds_; }
  double* row(int k, size_t series) { return &c_[(at(k) * series_ + series) * seeds_]; }
  const double* row(int k, size_t series) const { return &c_[(at(k) * series_ + series) * seeds_]; }

  /// Coefficient k += factor * another one.
  void add(int k, size_t series, double factor, const double* other) {
    double* const own = row(k, series);
    for (size_t seed = 0; seed < seeds_; ++seed) own[seed] += factor * other[seed];
  }

 private:
  size_t series_, seeds_;
  std::vector<double> c_;
};

/// A series as a sum of movers: the factors that are not zero.
using Sum = std::vector<std::pair<size_t, double>>;

/// All that moves by itself; states come first.
Table expand_movers(std::span<const Mover> movers, std::span<const Sum> rates, int highest) {
  const size_t count = movers.size();
  Table c(count, count, highest);
  for (size_t i = 0; i < count; ++i) c.row(1, i)[i] = 1;
  for (int k = 1; k < highest; ++k) {
    const double factor = 1.0 / (k + 1);
    for (size_t i = 0; i < rates.size(); ++i) {
      for (const auto& [j, part] : rates[i]) c.add(k + 1, i, factor * part, c.row(k, j));
    }
    for (size_t i = rates.size(); i < count; ++i) {
      const double turn = factor * movers[i].frequency;
      if (movers[i].kind == Mover::Kind::sine) c.add(k + 1, i, turn, c.row(k, i + 1));
      if (movers[i].kind == Mover::Kind::cosine) c.add(k + 1, i, -turn, c.row(k, i - 1));
    }
  }
  return c;
}

Table add_sums(const Table& c, std::span<const Sum> sums, int highest) {
  Table out(sums.size(), c.seeds(), highest);
  for (int k = 1; k <= highest; ++k) {
    for (size_t i = 0; i < sums.size(); ++i) {
      for (const auto& [j, part] : sums[i]) out.add(k, i, part, c.row(k, j));
    }
  }
  return out;
}

/// Per seed, whether it leaves something in one of the series, above order 1.
std::vector<char> find_used(std::span<const Table* const> tables, int highest) {
  std::vector<char> out(tables[0]->seeds(), 0);
  for (const Table* c : tables) {
    for (int k = first_made; k <= highest && c->series() > 0; ++k) {
      const double* const row = c->row(k, 0);
      for (size_t i = 0; i < c->series() * c->seeds(); ++i) out[i % c->seeds()] |= row[i] != 0;
    }
  }
  return out;
}

bool moves(const Table& c, size_t series, int highest) {
  for (int k = first_made; k <= highest; ++k) {
    const double* const row = c.row(k, series);
    if (std::any_of(row, row + c.seeds(), [](double w) { return w != 0; })) return true;
  }
  return false;
}

/// Tables as a LinearFlow holds them: the seeds that leave something behind, what is made of them, and what is zero.
class Packer {
 public:
  Packer(std::span<const Mover> movers, std::span<const Table* const> tables, int highest)
      : used_(find_used(tables, highest)) {
    flow_.highest = highest;
    flow_.last_four = fours(highest) - 1;
    for (size_t seed = 0; seed < movers.size(); ++seed) {
      if (used_[seed]) flow_.seeds.push_back(movers[seed].place + 1);
    }
  }

  void add(int place, const Table& c, size_t series) {
    if (!moves(c, series, flow_.highest)) return flow_.zeros.push_back(place);
    flow_.made.push_back(place);
    const size_t before = flow_.weights.size(), of_four = 4 * flow_.seeds.size();
    flow_.weights.resize(before + of_four * at(flow_.last_four + 1));
    double* to = &flow_.weights[before];
    for (int four = 0; four <= flow_.last_four; ++four, to += of_four) {
      for (int k = 0; k < 4; ++k) take(c, begin_of(four, flow_.highest) + k, series, to + k, 4);
    }
  }
  void add_rate(const std::pair<int, int>& rate, const Table& c, size_t series) {
    if (!moves(c, series, flow_.highest)) return flow_.zeros.push_back(rate.second);
    flow_.rates.push_back(rate);
    const size_t before = flow_.last_weights.size(), count = flow_.seeds.size();
    flow_.last_weights.resize(before + count * at(flow_.highest + 1));
    for (int k = 1; k <= flow_.highest; ++k) take(c, k, series, &flow_.last_weights[before + count * at(k)], 1);
  }
  /// Not found where a weight has overflowed.
  LinearFlow done() && {
    const auto finite = [](double w) { return std::isfinite(w); };
    flow_.tried = true;
    flow_.found = std::all_of(flow_.weights.begin(), flow_.weights.end(), finite) &&
                  std::all_of(flow_.last_weights.begin(), flow_.last_weights.end(), finite);
    return std::move(flow_);
  }

 private:
  /// Coefficient k by the seeds that are used, each `apart` from the one before.
  void take(const Table& c, int k, size_t series, double* to, size_t apart) const {
    const double* const row = c.row(k, series);
    for (size_t seed = 0; seed < used_.size(); ++seed) {
      if (used_[seed]) *std::exchange(to, to + apart) = row[seed];
    }
  }

  std::vector<char> used_;
  LinearFlow flow_;
};

}  // namespace

void LinearFlow::expand(double* series, int first, int order) const {
  if (has_long_registers) return expand_in_long_registers(*this, series, first, order);
  expand_flow(*this, series, first, order);
}

LinearFlow linear_flow(const LinearParts& parts, std::span<const double> series, int stride) {
  const size_t slots = series.size() / at(stride);
  const int highest = stride - 1;
  const LinearFlow none{.highest = highest, .tried = true};
  if (highest < first_made + 3) return none;
  const Varying varying(parts, slots, stride);
  if (!varying.linear() || Counted(parts, slots, stride).in_weights()) return none;
  const std::vector<Mover> movers = find_movers(parts, series, stride);
  const std::vector<int> results = find_results(parts, varying);
  const size_t operations = parts.free.size() + parts.timed.size() + parts.rates.size(),
               work = (2 * movers.size() + 1) * (results.size() + parts.rates.size()) / 4;  // per order
  if (movers.size() > most_seeds || work > 4 * operations) return none;

  std::vector<Sum> of_rates(parts.rates.size()), of_results(results.size());
  OneOrder one(parts, varying, series, stride);
  for (size_t j = 0; j < movers.size(); ++j) {
    one.look(movers[j].place);
    const auto note = [&](int place, Sum& sum) {
      if (const double part = one.at_place(place); part != 0) sum.emplace_back(j, part);
    };
    for (size_t i = 0; i < of_rates.size(); ++i) note(parts.rates[i].second, of_rates[i]);
    for (size_t i = 0; i < results.size(); ++i) note(results[i], of_results[i]);
  }
  const Table moved = expand_movers(movers, of_rates, highest), rates = add_sums(moved, of_rates, highest),
              others = add_sums(moved, of_results, highest);

  Packer out(movers, std::array{&moved, &rates, &others}, highest);
  for (size_t i = 0; i < parts.rates.size(); ++i) {
    const auto is_rate = [&](const auto& pair) { return pair.first == parts.rates[i].second; };
    out.add(parts.rates[i].first, moved, i);
    const bool is_state = std::any_of(parts.rates.begin(), parts.rates.end(), is_rate);  // x' = v
    if (!is_state) out.add_rate(parts.rates[i], rates, i);
  }
  for (size_t i = 0; i < results.size(); ++i) out.add(results[i], others, i);
  return std::move(out).done();
}

}  // namespace saltus
