// The module behind code/native_code.hpp; the only file that knows LLVM.
//
// The interpreter's own rules (code/jet_rules.hpp) run on symbols instead of numbers: adding two symbols emits the
// instruction that adds, storing one emits the store. So the code has the operations of the interpreter, in its order.
// LLVM may neither reorder sums nor fuse products with them: no instruction carries a fast-math flag.
#include "code/native_code.hpp"

#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm/Config/llvm-config.h>

#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "code/jet_rules.hpp"

namespace saltus {
namespace {

class Emitted;

LLVMTypeRef array_type(LLVMTypeRef element, uint64_t count) {
#if LLVM_VERSION_MAJOR >= 17
  return LLVMArrayType2(element, count);
#else
  return LLVMArrayType(element, static_cast<unsigned>(count));
#endif
}

/// Where a cell is: in the series, or in those of the order that a loop is at.
enum class Frame : uint8_t { series, order };

/// A sum of products of the order that a loop is at, whose call waits for a second one of its kind.
struct Waiting {
  const void *one = nullptr, *two = nullptr;  // functions for one and for two of them
  std::vector<LLVMValueRef> factors{};
  LLVMValueRef sums = nullptr;  // where the two will be; none: nothing waits
};

/// Writes the instructions of one function  void run(double* series, int first, int last).
struct Emitter {
  Emitter(LLVMModuleRef module, const char* name);
  ~Emitter() {
    LLVMDisposeBuilder(builder);
    LLVMDisposeBuilder(sums);
  }

  LLVMValueRef number(double value) const { return LLVMConstReal(real, value); }
  LLVMValueRef whole(long value) const { return LLVMConstInt(LLVMInt64TypeInContext(context), at(value), 1); }
  LLVMValueRef order(int k) const { return LLVMConstInt(LLVMInt32TypeInContext(context), at(k), 1); }
  LLVMBasicBlockRef block() const { return LLVMAppendBasicBlockInContext(context, function, ""); }
  LLVMValueRef load(int place, Frame frame) {
    reads.insert(place / stride);
    return LLVMBuildLoad2(builder, real, address(place, frame), "");
  }
  void store(int place, Frame frame, LLVMValueRef value) {
    stores.emplace_back(place / stride, LLVMBuildStore(builder, value, address(place, frame)));
  }
  /// Removes the stores of series that nobody reads.
  void remove_unread() const {
    for (const auto& [slot, instruction] : stores) {
      if (!reads.contains(slot)) LLVMInstructionEraseFromParent(instruction);
    }
  }
  LLVMValueRef address(int place, Frame frame = Frame::series) { return address(builder, place, frame); }
  LLVMValueRef address(LLVMBuilderRef where, int place, Frame frame) const {
    return offset(where, frame == Frame::series ? series : looped.series, whole(place));
  }
  LLVMValueRef offset(LLVMBuilderRef where, LLVMValueRef numbers, LLVMValueRef index) const {
    return LLVMBuildInBoundsGEP2(where, real, numbers, &index, 1, "");
  }
  /// A function of this process, by its address.
  template <class Function>
  LLVMValueRef call(LLVMTypeRef result, Function* callee, std::vector<LLVMValueRef> arguments) {
    return call(builder, result, reinterpret_cast<const void*>(callee), std::move(arguments));
  }
  LLVMValueRef call(LLVMBuilderRef where, LLVMTypeRef result, const void* callee, std::vector<LLVMValueRef> arguments) {
    std::vector<LLVMTypeRef> types;
    for (LLVMValueRef a : arguments) types.push_back(LLVMTypeOf(a));
    LLVMTypeRef type = LLVMFunctionType(result, types.data(), static_cast<unsigned>(types.size()), 0);
    return LLVMBuildCall2(where, type, pointer_to(callee), arguments.data(), static_cast<unsigned>(arguments.size()),
                          "");
  }
  LLVMValueRef pointer_to(const void* address) {
    return LLVMConstIntToPtr(whole(static_cast<long>(reinterpret_cast<intptr_t>(address))), pointer);
  }
  /// A sum of products of lower orders, of a loop over orders. The calls for them, two at a time, stand before
  /// everything else, so that nothing that is computed meanwhile has to leave its register.
  LLVMValueRef sum(Waiting& waiting, std::vector<LLVMValueRef> factors) {
    const bool second = waiting.sums != nullptr;
    LLVMValueRef both = second ? waiting.sums : room_for_two();
    waiting.factors.insert(waiting.factors.end(), factors.begin(), factors.end());
    waiting.sums = second ? nullptr : both;
    if (second) {
      std::vector<LLVMValueRef> arguments = std::exchange(waiting.factors, {});
      arguments.insert(arguments.end(), {looped.order, both});
      call(sums, nothing, waiting.two, std::move(arguments));
    }
    return LLVMBuildLoad2(builder, real, offset(builder, both, whole(second)), "");
  }
  /// The factor of a sum: a series, by its place.
  LLVMValueRef factor(int place) {
    reads.insert(place / stride);
    return address(sums, place, Frame::series);
  }
  /// The call for a sum that none other has come to.
  void add_waiting(Waiting& waiting) {
    if (!waiting.sums) return;
    waiting.factors.push_back(looped.order);
    LLVMBuildStore(sums, call(sums, real, waiting.one, std::move(waiting.factors)), waiting.sums);
  }
  /// Memory for two numbers, as long as the function runs.
  LLVMValueRef room_for_two() const {
    LLVMBuilderRef entry = LLVMCreateBuilderInContext(context);
    LLVMPositionBuilderBefore(entry, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function)));
    LLVMValueRef room = LLVMBuildAlloca(entry, array_type(real, 2), "");
    LLVMDisposeBuilder(entry);
    return room;
  }
  static unsigned long long at(long value) { return static_cast<unsigned long long>(value); }

  const NativeFunctions* functions = nullptr;
  LLVMContextRef context;
  LLVMBuilderRef builder, sums;
  LLVMTypeRef real, pointer, nothing;
  LLVMValueRef function, series, first, last;
  struct {
    LLVMValueRef order = nullptr;                      // k
    LLVMValueRef series = nullptr;                     // where coefficients k begin
    LLVMValueRef number = nullptr, inverse = nullptr;  // k and 1/k
    Emitted* cells = nullptr;                          // coefficient k of each slot
    const Emitted* all = nullptr;                      // the cells of all series
    Waiting products{}, squares{};                     // sums that a second one may join
  } looped{};                                          ///< of the order that a loop is at
  int stride = 1;
  std::unordered_set<int> reads{};                     ///< slots that are read from memory
  std::vector<std::pair<int, LLVMValueRef>> stores{};  ///< (slot, instruction)
  int stage = 0;  ///< what was read or computed in earlier stages is read from memory again
};

Emitter::Emitter(LLVMModuleRef module, const char* name)
    : context(LLVMGetModuleContext(module)),
      builder(LLVMCreateBuilderInContext(context)),
      sums(LLVMCreateBuilderInContext(context)),
      real(LLVMDoubleTypeInContext(context)),
      pointer(LLVMPointerTypeInContext(context, 0)),
      nothing(LLVMVoidTypeInContext(context)) {
  LLVMTypeRef types[] = {pointer, LLVMInt32TypeInContext(context), LLVMInt32TypeInContext(context)};
  function = LLVMAddFunction(module, name, LLVMFunctionType(nothing, types, 3, 0));
  series = LLVMGetParam(function, 0);
  first = LLVMGetParam(function, 1);
  last = LLVMGetParam(function, 2);
}

/// A number that is known when the code runs: a literal, the result of an instruction, or a cell of the series.
class Emitted {
 public:
  Emitted() = default;
  Emitted(double literal) : literal_(literal) {}
  Emitted(Emitter& emitter, LLVMValueRef value) : emitter_(&emitter), value_(value) {}
  Emitted(const Emitted& other) : emitter_(other.emitter_), value_(other.read()), literal_(other.literal_) {}
  Emitted& operator=(const Emitted& other) {
    const LLVMValueRef value = other.read();
    if (!emitter_) emitter_ = other.emitter_;
    literal_ = other.literal_;
    value_ = value;
    stage_ = emitter_ ? emitter_->stage : 0;
    if (place_ >= 0) emitter_->store(place_, frame_, in(*emitter_));
    return *this;
  }
  Emitted& operator+=(const Emitted& b) { return *this = *this + b; }

  /// Makes it the cell at a place of the series; a literal is never read from there.
  void settle(Emitter& emitter, int place, Frame frame = Frame::series) {
    emitter_ = &emitter;
    place_ = place;
    frame_ = frame;
    stage_ = -1;
  }
  void settle_literal(Emitter& emitter, double literal) {
    emitter_ = &emitter;
    literal_ = literal;
    fixed_ = true;
  }
  /// Where a function of the program can write the cell; what it held is forgotten.
  LLVMValueRef target() {
    stage_ = -1;
    return emitter_->address(place_, frame_);
  }

  const double* literal() const { return !value_ && (place_ < 0 || fixed_) ? &literal_ : nullptr; }
  Emitter* emitter() const { return emitter_; }
  /// The cell as an operand of an instruction.
  LLVMValueRef in(Emitter& emitter) const {
    const LLVMValueRef value = read();
    return value ? value : emitter.number(literal_);
  }

  friend Emitted operator+(const Emitted& a, const Emitted& b) {
    return binary(a, b, LLVMBuildFAdd, a.literal_ + b.literal_);
  }
  friend Emitted operator-(const Emitted& a, const Emitted& b) {
    return binary(a, b, LLVMBuildFSub, a.literal_ - b.literal_);
  }
  friend Emitted operator*(const Emitted& a, const Emitted& b) {
    return binary(a, b, LLVMBuildFMul, a.literal_ * b.literal_);
  }
  friend Emitted operator/(const Emitted& a, const Emitted& b) {
    return binary(a, b, LLVMBuildFDiv, a.literal_ / b.literal_);
  }
  friend Emitted operator-(const Emitted& a) {
    if (a.literal()) return -a.literal_;
    Emitter& emitter = *a.emitter_;  // LLVM's own negation goes through a general register
    return {emitter, LLVMBuildFSub(emitter.builder, emitter.number(-0.0), a.in(emitter), "")};
  }

 private:
  /// The instruction that gives it; none for a literal.
  LLVMValueRef read() const {
    if (place_ >= 0 && !fixed_ && stage_ != emitter_->stage) {
      value_ = emitter_->load(place_, frame_);
      stage_ = emitter_->stage;
    }
    return value_;
  }
  template <class Build>
  static Emitted binary(const Emitted& a, const Emitted& b, Build build, double literal) {
    if (a.literal() && b.literal()) return literal;
    Emitter& emitter = a.emitter_ ? *a.emitter_ : *b.emitter_;
    LLVMValueRef left = a.in(emitter), right = b.in(emitter);
    return {emitter, build(emitter.builder, left, right, "")};
  }

  Emitter* emitter_ = nullptr;
  mutable LLVMValueRef value_ = nullptr;
  mutable int stage_ = 0;  // of a cell: when value_ was read or computed
  double literal_ = 0;
  int place_ = -1;
  Frame frame_ = Frame::series;
  bool fixed_ = false;
};

// Arguments of the rules when one call serves all orders.

/// The order k that a loop is at, and k - 1. It is above 1.
struct Looped {
  Emitter& emitter;
};
struct BeforeLooped {
  Emitter& emitter;
};
BeforeLooped operator-(const Looped& k, int) { return {k.emitter}; }
bool operator>(const Looped&, int) { return true; }
Emitted inverse_of(const Looped& k) { return {k.emitter, k.emitter.looped.inverse}; }
Emitted number_of(const Looped& k) { return {k.emitter, k.emitter.looped.number}; }

/// A series, by its coefficient 0.
struct LoopedSeries {
  Emitted* start;

  int place() const { return static_cast<int>(start - start->emitter()->looped.all); }
  Emitted& operator[](int j) const { return start[j]; }
  Emitted& operator[](const Looped& k) const { return k.emitter.looped.cells[place() / k.emitter.stride]; }
  Emitted operator[](const BeforeLooped& k) const {
    k.emitter.reads.insert(place() / k.emitter.stride);  // one place before it lies the series before
    return {k.emitter, k.emitter.load(place() - 1, Frame::order)};
  }
};

/// Coefficients k, by the place of their series.
struct LoopedCells {
  Emitter& emitter;
  Emitted& operator[](int place) const { return emitter.looped.cells[place / emitter.stride]; }
};

Emitted convolve(const LoopedSeries& a, const LoopedSeries& b, const Looped& k, int, const BeforeLooped&) {
  Emitter& e = k.emitter;
  return {e, e.sum(e.looped.products, {e.factor(a.place()), e.factor(b.place())})};
}
Emitted convolve_itself(const LoopedSeries& a, const Looped& k, int) {
  Emitter& e = k.emitter;
  return {e, e.sum(e.looped.squares, {e.factor(a.place())})};
}

}  // namespace

template <>
struct rules::Elementary<Emitted> {
  template <class Function, class... Arguments>
  static Emitted call(Function NativeFunctions::*function, const Arguments&... arguments) {
    Emitter* emitter = nullptr;
    ((emitter = emitter ? emitter : arguments.emitter()), ...);
    return {*emitter, emitter->call(emitter->real, emitter->functions->*function, {arguments.in(*emitter)...})};
  }
  static Emitted sqrt(const Emitted& a) { return call(&NativeFunctions::sqrt, a); }
  static Emitted cbrt(const Emitted& a) { return call(&NativeFunctions::cbrt, a); }
  static Emitted exp(const Emitted& a) { return call(&NativeFunctions::exp, a); }
  static Emitted log(const Emitted& a) { return call(&NativeFunctions::log, a); }
  static Emitted expm1(const Emitted& a) { return call(&NativeFunctions::expm1, a); }
  static Emitted log1p(const Emitted& a) { return call(&NativeFunctions::log1p, a); }
  static Emitted pow(const Emitted& a, const Emitted& b) { return call(&NativeFunctions::pow, a, b); }
  static Emitted tan(const Emitted& a) { return call(&NativeFunctions::tan, a); }
  static Emitted sinh(const Emitted& a) { return call(&NativeFunctions::sinh, a); }
  static Emitted cosh(const Emitted& a) { return call(&NativeFunctions::cosh, a); }
  static Emitted tanh(const Emitted& a) { return call(&NativeFunctions::tanh, a); }
  static Emitted atan(const Emitted& a) { return call(&NativeFunctions::atan, a); }
  static Emitted asin(const Emitted& a) { return call(&NativeFunctions::asin, a); }
  static Emitted acos(const Emitted& a) { return call(&NativeFunctions::acos, a); }
  static Emitted atan2(const Emitted& a, const Emitted& b) { return call(&NativeFunctions::atan2, a, b); }
  static void sin_cos(const Emitted& a, Emitted& s, Emitted& c) {
    Emitter& e = *a.emitter();
    e.call(e.nothing, e.functions->sin_cos, {a.in(e), s.target(), c.target()});
  }
  static Emitted quotient_or_zero(const Emitted& a, const Emitted& b) {
    Emitter& e = *a.emitter();
    const auto is_zero = [&](const Emitted& s) {
      return LLVMBuildFCmp(e.builder, LLVMRealOEQ, s.in(e), e.number(0), "");
    };
    LLVMValueRef both = LLVMBuildAnd(e.builder, is_zero(a), is_zero(b), "");
    return {e, LLVMBuildSelect(e.builder, both, e.number(0), (a / b).in(e), "")};
  }
};

/// Only exponents that are known and whole come here: the others are interpreted.
template <>
void rules::power(Emitted* c, size_t stride, Emitted* a, const Emitted& r, int k) {
  c[k] = next_any_power([=](int i) { return c + static_cast<size_t>(i) * stride; }, a, *r.literal(), k);
}

namespace {

constexpr int most_slots = 16;  // of one operation, more than any has

/// True if the operation depends on values besides the order: exponents that are no literal whole numbers.
bool depends_on_values(const Operation& o, const Emitted* cells) {
  if (o.instr != Instr::power) return false;
  const double* r = cells[o.b].literal();
  return !r || *r < 0 || *r > largest_whole_power || *r != std::floor(*r);
}

/// True if one rule of the operation serves all orders.
bool can_be_looped(Instr instr) { return instr != Instr::power && instr != Instr::cbrt && instr != Instr::atan2; }

/// Leaves coefficient k of an operation to the interpreter.
void emit_interpreted(const Operation& o, Emitter& emitter, LLVMValueRef k) {
  for (int slot = 0; slot < most_slots; ++slot) emitter.reads.insert(o.out / emitter.stride + slot);
  for (const int place : {o.a, o.b}) emitter.reads.insert(place / emitter.stride);
  ++emitter.stage;
  emitter.call(emitter.nothing, emitter.functions->extend,
               {emitter.pointer_to(&o), emitter.series, emitter.whole(emitter.stride), k});
  ++emitter.stage;
}

/// The cells of all series.
std::vector<Emitted> make_cells(const NativeSource& source, Emitter& emitter) {
  int places = 0;
  for (const auto& list : source.operations) {
    for (const Operation& o : list)
      places = std::max({places, o.out + most_slots * source.stride, o.a + source.stride, o.b + source.stride});
  }
  for (const auto& [x, rate] : source.rates) places = std::max({places, x + source.stride, rate + source.stride});
  for (const auto& [place, value] : source.numbers) places = std::max(places, place + 1);
  std::vector<Emitted> cells(static_cast<size_t>(places));
  for (int p = 0; p < places; ++p) cells[static_cast<size_t>(p)].settle(emitter, p);
  for (const auto& [place, value] : source.numbers) cells[static_cast<size_t>(place)].settle_literal(emitter, value);
  return cells;
}

/// The instructions of coefficient k.
void emit_order(const NativeSource& source, Emitter& emitter, Emitted* cells, int k) {
  const size_t stride = static_cast<size_t>(source.stride);
  for (const auto& [x, rate] : source.rates) {
    if (k > 0) cells[x + k] = cells[rate + k - 1] * rules::inverse[static_cast<size_t>(k)];
  }
  for (const Operation& o : source.operations[static_cast<size_t>(std::min(k, 2))]) {
    if (depends_on_values(o, cells)) {
      emit_interpreted(o, emitter, emitter.order(k));
    } else if (k == 0) {
      rules::start(o, cells, stride);
    } else {
      rules::next(o, cells, stride, k);
    }
  }
  ++emitter.stage;
}

/// The instructions of any coefficient k from `looped_from` on.
void emit_looped_order(const NativeSource& source, Emitter& emitter, Emitted* cells) {
  const Looped k{emitter};
  const size_t stride = static_cast<size_t>(source.stride);
  for (const auto& [x, rate] : source.rates)
    LoopedSeries{cells + x}[k] = LoopedSeries{cells + rate}[k - 1] * inverse_of(k);
  for (const Operation& o : source.operations[2]) {
    if (!can_be_looped(o.instr)) {
      emit_interpreted(o, emitter, emitter.looped.order);
    } else if (!rules::by_sum(o, cells, [&](auto rule) { rule(LoopedCells{emitter}); }) &&
               !rules::next_product_of<LoopedSeries>(o, cells, stride, k)) {
      rules::next_function_of<LoopedSeries>(o, cells, stride, k);
    }
  }
}

/// k by k: converting it would wait for whatever was computed last in the register that it goes through.
constexpr auto whole_numbers = [] {
  std::array<double, largest_order + 1> numbers{};
  for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = static_cast<double>(k);
  return numbers;
}();

/// Emits the loop over orders: a block for the sums of an order, then one for the rest. `order`: where k is kept.
void emit_loop(const NativeSource& source, Emitter& emitter, std::vector<Emitted>& cells, LLVMBasicBlockRef loop,
               LLVMValueRef order, LLVMBasicBlockRef done) {
  const int slots = static_cast<int>(cells.size()) / source.stride;
  std::vector<Emitted> looped(static_cast<size_t>(slots));
  for (int s = 0; s < slots; ++s) looped[static_cast<size_t>(s)].settle(emitter, s * source.stride, Frame::order);
  LLVMTypeRef whole = LLVMInt32TypeInContext(emitter.context);
  LLVMBasicBlockRef rest = emitter.block();
  LLVMPositionBuilderAtEnd(emitter.sums, loop);
  LLVMValueRef k = LLVMBuildLoad2(emitter.sums, whole, order, "");
  LLVMPositionBuilderAtEnd(emitter.builder, rest);
  const auto at_k = [&](LLVMBuilderRef where, LLVMValueRef numbers) {
    return emitter.offset(where, numbers, LLVMBuildSExt(where, k, LLVMInt64TypeInContext(emitter.context), ""));
  };
  const NativeFunctions& functions = *emitter.functions;
  const auto address_of = [](auto* function) { return reinterpret_cast<const void*>(function); };
  const auto entry_k = [&](const auto& table) {
    LLVMValueRef place = at_k(emitter.builder, emitter.pointer_to(table.data()));
    return LLVMBuildLoad2(emitter.builder, emitter.real, place, "");
  };
  emitter.looped = {.order = k,
                    .series = at_k(emitter.builder, emitter.series),
                    .number = entry_k(whole_numbers),
                    .inverse = entry_k(rules::inverse),
                    .cells = looped.data(),
                    .all = cells.data(),
                    .products = {address_of(functions.convolve), address_of(functions.convolve_two)},
                    .squares = {address_of(functions.convolve_itself), address_of(functions.convolve_two_itself)}};
  emit_looped_order(source, emitter, cells.data());
  for (Waiting* waiting : {&emitter.looped.products, &emitter.looped.squares}) emitter.add_waiting(*waiting);
  LLVMBuildBr(emitter.sums, rest);
  LLVMBuildStore(emitter.builder, LLVMBuildAdd(emitter.builder, k, emitter.order(1), ""), order);
  LLVMValueRef last = LLVMBuildICmp(emitter.builder, LLVMIntEQ, emitter.last, k, "");
  LLVMBuildCondBr(emitter.builder, last, done, loop);
}

/// One block per order, then a loop, entered at `first` and left after `last`.
void emit_function(const NativeSource& source, const NativeFunctions& functions, LLVMModuleRef module,
                   const char* name) {
  Emitter emitter(module, name);
  emitter.functions = &functions;
  emitter.stride = source.stride;
  std::vector<Emitted> cells = make_cells(source, emitter);
  const bool loops = source.looped_from <= source.order;
  LLVMBasicBlockRef entry = emitter.block(), done = emitter.block();
  LLVMBasicBlockRef enter = loops ? emitter.block() : done, loop = loops ? emitter.block() : done;
  std::vector<LLVMBasicBlockRef> orders;
  for (int k = 0; k < std::min(source.order + 1, source.looped_from); ++k) orders.push_back(emitter.block());
  LLVMPositionBuilderAtEnd(emitter.builder, entry);
  LLVMValueRef order = LLVMBuildAlloca(emitter.builder, LLVMInt32TypeInContext(emitter.context), "");
  LLVMBuildStore(emitter.builder, emitter.first, order);
  LLVMValueRef start = LLVMBuildSwitch(emitter.builder, emitter.first, loop, static_cast<unsigned>(orders.size()));
  for (size_t i = 0; i < orders.size(); ++i) {
    const int k = static_cast<int>(i);
    LLVMAddCase(start, emitter.order(k), orders[i]);
    LLVMPositionBuilderAtEnd(emitter.builder, orders[i]);
    emit_order(source, emitter, cells.data(), k);
    LLVMValueRef last = LLVMBuildICmp(emitter.builder, LLVMIntEQ, emitter.last, emitter.order(k), "");
    LLVMBuildCondBr(emitter.builder, last, done, i + 1 < orders.size() ? orders[i + 1] : enter);
  }
  if (loops) {
    LLVMPositionBuilderAtEnd(emitter.builder, enter);
    LLVMBuildStore(emitter.builder, emitter.order(source.looped_from), order);
    LLVMBuildBr(emitter.builder, loop);
    emit_loop(source, emitter, cells, loop, order, done);
  }
  LLVMPositionBuilderAtEnd(emitter.builder, done);
  LLVMBuildRetVoid(emitter.builder);
  if (source.wanted.empty()) return;
  for (const int place : source.wanted) emitter.reads.insert(place / source.stride);
  emitter.remove_unread();
}

/// The compiler, made once. The code it made stays as long as the process.
LLVMOrcLLJITRef make_compiler() {
  LLVMInitializeNativeTarget();
  LLVMInitializeNativeAsmPrinter();
  char* triple = LLVMGetDefaultTargetTriple();
  char* cpu = LLVMGetHostCPUName();
  char* features = LLVMGetHostCPUFeatures();
  LLVMTargetRef target = nullptr;
  LLVMOrcLLJITRef compiler = nullptr;
  if (LLVMGetTargetFromTriple(triple, &target, nullptr) == 0) {
    LLVMTargetMachineRef machine =
        LLVMCreateTargetMachine(target, triple, cpu, features, LLVMCodeGenLevelNone, LLVMRelocPIC, LLVMCodeModelSmall);
    LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
    LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(builder,
                                                  LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(machine));
    if (LLVMErrorRef error = LLVMOrcCreateLLJIT(&compiler, builder)) {
      LLVMConsumeError(error);
      compiler = nullptr;
    }
  }
  for (char* text : {triple, cpu, features}) LLVMDisposeMessage(text);
  return compiler;
}

}  // namespace

NativeCode saltus_compile(const NativeSource& source, const NativeFunctions& functions) {
  static const LLVMOrcLLJITRef compiler = make_compiler();
  static int count = 0;
  if (!compiler) return {};
  const std::string name = "series" + std::to_string(count++);
  LLVMOrcThreadSafeContextRef context = LLVMOrcCreateNewThreadSafeContext();
  LLVMModuleRef module = LLVMModuleCreateWithNameInContext(name.c_str(), LLVMOrcThreadSafeContextGetContext(context));
  LLVMSetDataLayout(module, LLVMOrcLLJITGetDataLayoutStr(compiler));
  LLVMSetTarget(module, LLVMOrcLLJITGetTripleString(compiler));
  emit_function(source, functions, module, name.c_str());
  LLVMOrcThreadSafeModuleRef safe = LLVMOrcCreateNewThreadSafeModule(module, context);
  LLVMOrcDisposeThreadSafeContext(context);
  LLVMErrorRef error = LLVMOrcLLJITAddLLVMIRModule(compiler, LLVMOrcLLJITGetMainJITDylib(compiler), safe);
  LLVMOrcExecutorAddress address = 0;
  if (!error) error = LLVMOrcLLJITLookup(compiler, &address, name.c_str());
  if (error) {
    LLVMConsumeError(error);
    return {};
  }
  return {reinterpret_cast<decltype(NativeCode::run)>(address), source.order};
}

}  // namespace saltus
