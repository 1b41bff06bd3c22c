#include "code/tape.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <map>
#include <numbers>
#include <unordered_map>

namespace saltus {
namespace {

/// The stage of a value: the last stage of its inputs, in the order of the header.
enum class Stage : uint8_t { bind, linear, timed, free, bound };

class Builder {
 public:
  Builder(std::span<const Expr> outputs, const TapeInputs& inputs) : outputs_(outputs) {
    tape_.states.assign(static_cast<size_t>(inputs.states), -1);
    tape_.sigmas.assign(static_cast<size_t>(inputs.sigmas), -1);
    tape_.lambdas.assign(static_cast<size_t>(inputs.lambdas), -1);
    tape_.counters.assign(static_cast<size_t>(inputs.counters), -1);
  }

  Tape run() {
    // States, sigma and lambda always have a slot: engines set them whether or not a formula uses them.
    for (int& slot : tape_.states) slot = fresh(Stage::free);
    for (int& slot : tape_.sigmas) slot = fresh(Stage::bound);
    for (int& slot : tape_.lambdas) slot = fresh(Stage::bound);
    for (const Expr& e : postorder(outputs_)) slot_of_.emplace(e, emit(e));
    for (const Expr& e : outputs_) {
      const int slot = slot_of_.at(e);
      tape_.outputs.push_back(slot);
      tape_.constant.push_back(stage(slot) == Stage::bind);
    }
    drop_unused();
    tape_.slots = static_cast<int>(stages_.size());
    return std::move(tape_);
  }

 private:
  int fresh(Stage stage) {
    stages_.push_back(stage);
    return static_cast<int>(stages_.size()) - 1;
  }
  Stage stage(int slot) const { return stages_[static_cast<size_t>(slot)]; }
  bool is_constant(int slot) const { return stage(slot) == Stage::bind; }

  int number(double value) {
    const auto [it, isnew] = numbers_.try_emplace(std::bit_cast<uint64_t>(value), -1);
    if (isnew) {
      it->second = fresh(Stage::bind);
      tape_.numbers.emplace_back(it->second, value);
    }
    return it->second;
  }

  int symbol(const Symbol& s) {
    const size_t i = static_cast<size_t>(s.index);
    const auto once = [&](int& slot, Stage stage) {
      if (slot < 0) slot = fresh(stage);
      return slot;
    };
    switch (s.kind) {
      case SymbolKind::state: return tape_.states[i];
      case SymbolKind::time: return once(tape_.time, Stage::linear);
      case SymbolKind::sigma: return once(tape_.sigmas[i], Stage::bound);
      case SymbolKind::lambda: return once(tape_.lambdas[i], Stage::bound);
      case SymbolKind::counter: return once(tape_.counters[i], Stage::linear);
      case SymbolKind::constant: return number(s.index == 0 ? std::numbers::pi : std::numbers::e);
      case SymbolKind::parameter: {
        const int slot = fresh(Stage::bind);
        tape_.parameters.emplace_back(slot, s.index);
        return slot;
      }
      case SymbolKind::definition:
      case SymbolKind::table:
      case SymbolKind::argument:
      case SymbolKind::rate: break;
    }
    assert(false && "names are substituted before a tape is built");
    return 0;
  }

  /// Appends an operation; equal operations are done once.
  int put(Instr instr, int a, int b = -1) {
    int& known = done_.try_emplace({static_cast<int>(instr), a, b}, -1).first->second;
    if (known >= 0) return known;
    Stage stage = b >= 0 ? std::max(this->stage(a), this->stage(b)) : this->stage(a);
    if (stage == Stage::linear && !keeps_linear(instr)) stage = Stage::timed;
    known = fresh(stage);
    for (int i = 1; i < slots_of(instr); ++i) fresh(stage);
    operations(stage).push_back({instr, known, a, b < 0 ? a : b});
    return known;
  }

  std::vector<Operation>& operations(Stage stage) {
    switch (stage) {
      case Stage::linear: return tape_.linear;
      case Stage::timed: return tape_.timed;
      case Stage::free: return tape_.free;
      default: return tape_.bound;
    }
  }

  /// Functions that saturate: their series can be blind to what lies further on.
  int hiding(int slot) {
    if (stage(slot) > Stage::timed) tape_.may_hide = true;
    return slot;
  }

  int emit(const Expr& e) {
    if (e.is_number()) return number(e.value());
    if (e.is_symbol()) return symbol(e.symbol());
    std::array<int, 3> a{-1, -1, -1};
    bool constant = true;
    for (size_t i = 0; i < e.size(); ++i) {
      a[i] = slot_of_.at(e.argument(i));
      constant = constant && is_constant(a[i]);
    }
    if (constant) {
      const int out = fresh(Stage::bind);
      tape_.bind.push_back({e.op(), out, a[0], std::max(a[1], 0), std::max(a[2], 0)});
      return out;
    }
    return operation(e, a[0], a[1]);
  }

  int operation(const Expr& e, int a, int b) {
    switch (e.op()) {
      case Op::neg: return put(Instr::neg, a);
      case Op::add:
        if (const int c = negated_in(e.argument(0)); c >= 0) return difference(b, c);
        if (const int c = negated_in(e.argument(1)); c >= 0) return difference(a, c);
        return sum(a, b);
      case Op::sub:
        if (const int c = negated_in(e.argument(1)); c >= 0) return sum(a, c);
        return difference(a, b);
      case Op::mul: return times(a, b);
      case Op::div:
        if (is_constant(b)) return put(Instr::div_c, a, b);
        if (const int c = exponent_in(e.argument(1)); c >= 0) {
          const int logistic = hiding(put(Instr::logistic, c));
          return e.argument(0).is_number(1) ? logistic : times(a, logistic);
        }
        return hiding(is_constant(a) ? put(Instr::recip, b, a) : put(Instr::div, a, b));
      case Op::pow: return power(e, a, b);
      case Op::sqrt: return hiding(put(Instr::sqrt, a));
      case Op::cbrt: return hiding(put(Instr::cbrt, a));
      case Op::exp: return hiding(put(Instr::exp, a));
      case Op::log: return hiding(put(Instr::log, a));
      case Op::hypot: return hiding(put(Instr::sqrt, sum(square(a), square(b))));
      case Op::log10: return put(Instr::div_c, hiding(put(Instr::log, a)), number(std::numbers::ln10));
      case Op::log2: return put(Instr::div_c, hiding(put(Instr::log, a)), number(std::numbers::ln2));
      case Op::expm1: return hiding(put(Instr::expm1, a));
      case Op::log1p: return hiding(put(Instr::log1p, a, put(Instr::add_c, a, number(1))));
      case Op::sin: return sine(a);
      case Op::cos: return sine(a) + 1;
      case Op::sinh: return hiding(put(Instr::sinh_cosh, a));
      case Op::cosh: return hiding(put(Instr::sinh_cosh, a)) + 1;
      case Op::tan: return hiding(put(Instr::tan, a));
      case Op::tanh: return hiding(put(Instr::tanh, a));
      case Op::atan: return hiding(put(Instr::atan, a, put(Instr::add_c, put(Instr::square, a), number(1))));
      case Op::asin: return hiding(put(Instr::asin, a, put(Instr::sqrt, put(Instr::one_minus_square, a))));
      case Op::acos: return hiding(put(Instr::acos, a, put(Instr::sqrt, put(Instr::one_minus_square, a))));
      case Op::atan2: return hiding(put(Instr::atan2, a, b));
      default: break;
    }
    assert(false && "nonsmooth functions are lowered before a tape is built");
    return 0;
  }

  int square(int a) {
    if (!is_constant(a)) return put(Instr::square, a);
    const int out = fresh(Stage::bind);
    tape_.bind.push_back({Op::mul, out, a, a, 0});
    return out;
  }

  int times(int a, int b) {
    if (is_constant(a)) return put(Instr::scale, b, a);
    if (is_constant(b)) return put(Instr::scale, a, b);
    return a == b ? put(Instr::square, a) : put(Instr::mul, std::min(a, b), std::max(a, b));
  }

  int sum(int a, int b) {
    if (is_constant(a)) return put(Instr::add_c, b, a);
    if (is_constant(b)) return put(Instr::add_c, a, b);
    return put(Instr::add, std::min(a, b), std::max(a, b));
  }

  int difference(int a, int b) {
    if (is_constant(a)) return put(Instr::rsub_c, b, a);
    if (is_constant(b)) return put(Instr::add_c, a, minus(b));
    return put(Instr::sub, a, b);
  }

  int sine(int a) { return put(stage(a) == Stage::linear ? Instr::sin_cos_t : Instr::sin_cos, a); }

  /// The slot of y in a formula -y that is not constant, else -1.
  int negated_in(const Expr& e) const {
    if (e.op() != Op::neg) return -1;
    const int slot = slot_of_.at(e.argument(0));
    return is_constant(slot) ? -1 : slot;
  }

  /// The slot of y in a formula 1 + exp(y) that is not constant, else -1.
  int exponent_in(const Expr& e) const {
    const std::optional<Expr> exponent = exponent_in_one_plus_exp(e);
    const int slot = exponent ? slot_of_.at(*exponent) : -1;
    return slot < 0 || is_constant(slot) ? -1 : slot;
  }

  int minus(int constant) {
    const int out = fresh(Stage::bind);
    tape_.bind.push_back({Op::neg, out, constant, 0, 0});
    return out;
  }

  /// Literal whole powers share their products; others have recurrences of their own.
  int power(const Expr& e, int a, int b) {
    const Expr exponent = e.argument(1);
    const double r = exponent.is_number() ? exponent.value() : 0.5;
    if (r == 0) return number(1);
    if (r == -1) {
      const int c = exponent_in(e.argument(0));
      return hiding(c >= 0 ? put(Instr::logistic, c) : put(Instr::recip, a, number(1)));
    }
    if (r > 0 && r <= largest_whole_power && r == std::floor(r)) return whole_power(a, static_cast<int>(r));
    return hiding(put(is_constant(b) ? Instr::power : Instr::pow, a, b));
  }

  int whole_power(int a, int n) {
    assert(n >= 1);
    if (n == 1) return a;
    const int half = whole_power(a, n / 2);
    const int square = put(Instr::square, half);
    return n % 2 ? put(Instr::mul, std::min(square, a), std::max(square, a)) : square;
  }

  /// Drops operations that no output needs: what was written as a + (-b) has become a - b.
  void drop_unused() {
    std::vector<bool> used(stages_.size(), false);
    for (const int slot : tape_.outputs) used[static_cast<size_t>(slot)] = true;
    for (std::vector<Operation>* stage : {&tape_.bound, &tape_.free, &tape_.timed, &tape_.linear}) {
      std::vector<Operation> kept;
      for (auto it = stage->rbegin(); it != stage->rend(); ++it) {
        const Operation& o = *it;
        const auto own = used.begin() + o.out;
        if (std::find(own, own + slots_of(o.instr), true) == own + slots_of(o.instr)) continue;
        used[static_cast<size_t>(o.a)] = used[static_cast<size_t>(o.b)] = true;
        kept.push_back(o);
      }
      stage->assign(kept.rbegin(), kept.rend());
    }
  }

  std::span<const Expr> outputs_;
  Tape tape_;
  std::vector<Stage> stages_;
  ExprMap<int> slot_of_;
  std::unordered_map<uint64_t, int> numbers_;
  std::map<std::array<int, 3>, int> done_;
};

}  // namespace

int slots_of(Instr instr) {
  switch (instr) {
    case Instr::exp:
    case Instr::log:
    case Instr::atan:
    case Instr::asin:
    case Instr::acos:
    case Instr::log1p:
    case Instr::sin_cos_t: return 2;
    case Instr::sin_cos:
    case Instr::sinh_cosh:
    case Instr::tan:
    case Instr::tanh:
    case Instr::logistic:
    case Instr::expm1:
    case Instr::atan2: return 3;
    case Instr::pow: return 4;
    case Instr::power: return 11;  // five squares and five products on the way to a^63
    default: return 1;
  }
}

bool peaks_at_top(Instr instr) { return instr == Instr::exp || instr == Instr::expm1; }

bool keeps_linear(Instr instr) {
  switch (instr) {
    case Instr::add:
    case Instr::sub:
    case Instr::neg:
    case Instr::add_c:
    case Instr::rsub_c:
    case Instr::scale:
    case Instr::div_c: return true;
    default: return false;
  }
}

namespace {

/// True for the functions listed in Tape::peaks.
bool is_peak(Instr instr) {
  return instr == Instr::exp || instr == Instr::expm1 || instr == Instr::logistic || instr == Instr::tanh ||
         instr == Instr::sinh_cosh;
}

}  // namespace

bool may_hide(Instr instr) {
  switch (instr) {
    case Instr::mul:
    case Instr::square:
    case Instr::one_minus_square:
    case Instr::sin_cos:
    case Instr::sin_cos_t: return false;
    default: return !keeps_linear(instr);
  }
}

namespace {

/// a^n as products of its own powers, and by the recurrence of powers; of one base the highest.
std::vector<HighPower> find_powers(const Tape& tape) {
  constexpr int least_power = 8;
  std::vector<std::pair<int, int>> whole(static_cast<size_t>(tape.slots), {-1, 1});  // base and power
  std::map<int, HighPower> highest;                                                  // by base
  std::vector<HighPower> out;
  const auto of = [&](int slot) {
    const auto [base, power] = whole[static_cast<size_t>(slot)];
    return base >= 0 ? std::pair(base, power) : std::pair(slot, 1);
  };
  for (const auto* list : {&tape.timed, &tape.free, &tape.bound}) {
    for (const Operation& o : *list) {
      if (o.instr == Instr::power) out.push_back({.out = o.out, .base = o.a, .exponent = o.b});
      if (o.instr != Instr::square && o.instr != Instr::mul) continue;
      const auto [base, power] = of(o.a);
      const auto [other, also] = o.instr == Instr::square ? of(o.a) : of(o.b);
      if (base != other) continue;
      whole[static_cast<size_t>(o.out)] = {base, power + also};
      HighPower& known = highest[base];
      if (power + also >= least_power && power + also > known.power)
        known = {.out = o.out, .base = base, .power = static_cast<double>(power + also)};
    }
  }
  for (const auto& [base, high] : highest) {
    if (high.power > 0) out.push_back(high);
  }
  return out;
}

}  // namespace

void describe(Tape& tape) {
  std::vector<char> bent(static_cast<size_t>(tape.slots), 0);
  const auto is_bent = [&](int slot) -> char& { return bent[static_cast<size_t>(slot)]; };
  for (const auto* unknowns : {&tape.sigmas, &tape.lambdas}) {
    for (const int slot : *unknowns) {
      if (slot >= 0) is_bent(slot) = 1;
    }
  }
  for (const auto* list : {&tape.linear, &tape.timed, &tape.free, &tape.bound}) {
    for (const Operation& o : *list) {
      if (keeps_linear(o.instr) && !is_bent(o.a) && (o.instr == Instr::neg || !is_bent(o.b))) continue;
      for (int i = 0; i < slots_of(o.instr); ++i) is_bent(o.out + i) = 1;
    }
  }
  tape.straight.clear();
  for (const int slot : tape.outputs) tape.straight.push_back(!is_bent(slot));
  tape.peaks.clear();
  for (const auto* list : {&tape.timed, &tape.free, &tape.bound}) {
    std::copy_if(list->begin(), list->end(), std::back_inserter(tape.peaks),
                 [](const Operation& o) { return is_peak(o.instr); });
  }
  tape.powers = find_powers(tape);
  tape.hides_by_reach = true;
  for (const auto* list : {&tape.free, &tape.bound}) {
    for (const Operation& o : *list) tape.hides_by_reach &= is_peak(o.instr) || !may_hide(o.instr);
  }
}

Tape build_tape(std::span<const Expr> outputs, const TapeInputs& inputs) {
  Tape tape = Builder(outputs, inputs).run();
  describe(tape);
  return tape;
}

}  // namespace saltus
