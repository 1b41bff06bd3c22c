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

/// Writes the instructions of one function  void run(double* series, int first, int last).
struct Emitter {
  Emitter(LLVMModuleRef module, const char* name);
  ~Emitter() { LLVMDisposeBuilder(builder); }

  LLVMValueRef number(double value) const { return LLVMConstReal(real, value); }
  LLVMValueRef whole(long value) const { return LLVMConstInt(LLVMInt64TypeInContext(context), at(value), 1); }
  LLVMValueRef load(int place) {
    reads.insert(place / stride);
    return LLVMBuildLoad2(builder, real, address(place), "");
  }
  /// Four numbers that follow each other in memory.
  LLVMValueRef load_four(int place) {
    LLVMValueRef value = LLVMBuildLoad2(builder, four, address(place), "");
    LLVMSetAlignment(value, alignof(double));
    return value;
  }
  /// Cells place .. place + 3.
  LLVMValueRef load_cells(int place) {
    reads.insert(place / stride);
    return load_four(place);
  }
  /// The same backwards.
  LLVMValueRef load_mirrored(int place) {
    mirrors.insert(place / stride);
    return load_four(mirrored(place + 3));
  }
  /// Whether this function writes the cells of a series up to this one, all that are mirrored.
  bool mirrors_up_to(int place) const {
    const auto found = written.find(place / stride);
    const uint64_t wanted = ((uint64_t{2} << (place % stride)) - 1) & ~uint64_t{1};
    return mirror > 0 && found != written.end() && (found->second & wanted) == wanted;
  }
  /// The numbers of a register, by way of memory: LLVM's fast selection of instructions knows no other.
  std::array<LLVMValueRef, 4> apart(LLVMValueRef v) {
    LLVMSetAlignment(LLVMBuildStore(builder, v, scratch), alignof(double));
    std::array<LLVMValueRef, 4> out;
    for (int i = 0; i < 4; ++i) {
      LLVMValueRef index = whole(i);
      out[at(i)] = LLVMBuildLoad2(builder, real, LLVMBuildInBoundsGEP2(builder, real, scratch, &index, 1, ""), "");
    }
    return out;
  }
  void store(int place, LLVMValueRef value) {
    stores.emplace_back(place / stride, LLVMBuildStore(builder, value, address(place)));
    if (mirror == 0 || place % stride == 0) return;
    written[place / stride] |= uint64_t{1} << (place % stride);
    mirror_stores.emplace_back(place / stride, LLVMBuildStore(builder, value, address(mirrored(place))));
  }
  /// Removes the stores of series that nobody reads.
  static void remove_unread(const std::vector<std::pair<int, LLVMValueRef>>& stores,
                            const std::unordered_set<int>& reads) {
    for (const auto& [slot, instruction] : stores) {
      if (!reads.contains(slot)) LLVMInstructionEraseFromParent(instruction);
    }
  }
  int mirrored(int place) const { return mirror + place - 2 * (place % stride) + stride - 1; }
  LLVMValueRef address(int place) {
    LLVMValueRef index = whole(place);
    return LLVMBuildInBoundsGEP2(builder, real, series, &index, 1, "");
  }
  /// A function of this process, by its address.
  template <class Function>
  LLVMValueRef call(LLVMTypeRef result, Function* callee, std::vector<LLVMValueRef> arguments) {
    std::vector<LLVMTypeRef> types;
    for (LLVMValueRef a : arguments) types.push_back(LLVMTypeOf(a));
    LLVMTypeRef type = LLVMFunctionType(result, types.data(), static_cast<unsigned>(types.size()), 0);
    return LLVMBuildCall2(builder, type, pointer_to(reinterpret_cast<const void*>(callee)), arguments.data(),
                          static_cast<unsigned>(arguments.size()), "");
  }
  LLVMValueRef pointer_to(const void* address) {
    return LLVMConstIntToPtr(whole(static_cast<long>(reinterpret_cast<intptr_t>(address))), pointer);
  }
  static unsigned long long at(long value) { return static_cast<unsigned long long>(value); }

  const NativeFunctions* functions = nullptr;
  LLVMContextRef context;
  LLVMBuilderRef builder;
  LLVMTypeRef real, pointer, nothing, four;
  LLVMValueRef function, series, first, last, scratch = nullptr;
  int stride = 1;
  int mirror = 0;                     ///< where series are kept backwards too, but for coefficients 0; 0: nowhere
  std::unordered_set<int> reads{};    ///< slots that are read from memory
  std::unordered_set<int> mirrors{};  ///< the same backwards
  std::unordered_map<int, uint64_t> written{};  ///< bits of the coefficients of a slot that are stored
  std::vector<std::pair<int, LLVMValueRef>> stores{}, mirror_stores{};  ///< (slot, instruction)
  int stage = 0;  ///< what was read or computed in earlier stages is read from memory again
};

Emitter::Emitter(LLVMModuleRef module, const char* name)
    : context(LLVMGetModuleContext(module)),
      builder(LLVMCreateBuilderInContext(context)),
      real(LLVMDoubleTypeInContext(context)),
      pointer(LLVMPointerTypeInContext(context, 0)),
      nothing(LLVMVoidTypeInContext(context)),
      four(LLVMVectorType(real, 4)) {
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
    if (place_ >= 0) emitter_->store(place_, in(*emitter_));
    return *this;
  }
  Emitted& operator+=(const Emitted& b) { return *this = *this + b; }

  /// Makes it the cell at a place of the series; a literal is never read from there.
  void settle(Emitter& emitter, int place) {
    emitter_ = &emitter;
    place_ = place;
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
    return emitter_->address(place_);
  }

  const double* literal() const { return !value_ && (place_ < 0 || fixed_) ? &literal_ : nullptr; }
  Emitter* emitter() const { return emitter_; }
  /// Of a cell whose series is in memory, else -1.
  int place() const { return fixed_ ? -1 : place_; }
  /// As an operand of an instruction.
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
      value_ = emitter_->load(place_);
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
  bool fixed_ = false;
};

template <class P>
concept Cells = std::is_pointer_v<P> && std::is_same_v<std::remove_cv_t<std::remove_pointer_t<P>>, Emitted>;

/// The sum of a[j] b[k-j] of the rules, whose four partial sums are the four numbers of a register: the same bits. All
/// cells of a long sum are of lower orders, and so in memory, one of the factors backwards.
template <class A, class B>
requires(Cells<A>&& Cells<B>) Emitted sum_of_products(const A& a, const B& b, int k, int first, int last) {
  const int groups = (last - first + 1) / 4;
  const auto is_mirrored = [](const Emitted& newest) {
    return newest.place() >= 0 && newest.emitter()->mirrors_up_to(newest.place());
  };
  const bool b_mirrored = is_mirrored(b[k - first]), a_mirrored = !b_mirrored && is_mirrored(a[last]);
  const bool in_memory = a[first].place() >= 0 && b[k - last].place() >= 0;
  if (last - first + 3 < rules::long_sum || !in_memory || !(a_mirrored || b_mirrored))
    return rules::sum(first, last, [&](int j) { return a[j] * b[k - j]; });
  Emitter& e = *a[first].emitter();
  LLVMValueRef sums = nullptr;
  for (int g = 0; g < groups; ++g) {
    const int j = first + 4 * g, of_a = a[j].place(), of_b = b[k - j - 3].place();
    LLVMValueRef left = a_mirrored ? e.load_mirrored(of_a) : e.load_cells(of_a);
    LLVMValueRef right = a_mirrored ? e.load_cells(of_b) : e.load_mirrored(of_b);
    LLVMValueRef terms = LLVMBuildFMul(e.builder, left, right, "");
    sums = sums ? LLVMBuildFAdd(e.builder, sums, terms, "") : terms;
  }
  const std::array<LLVMValueRef, 4> apart = e.apart(sums);
  Emitted s[4];
  for (int i = 0; i < 4; ++i) {
    s[i] = Emitted(e, apart[static_cast<size_t>(a_mirrored ? 3 - i : i)]);
    if (const int j = first + 4 * groups + i; j <= last) s[i] += a[j] * b[k - j];
  }
  return (s[0] + s[1]) + (s[2] + s[3]);
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

/// Whether what the interpreter does depends on more than the order: exponents that are no literal whole numbers.
bool depends_on_values(const Operation& o, const Emitted* cells) {
  if (o.instr != Instr::power) return false;
  const double* r = cells[o.b].literal();
  return !r || *r < 0 || *r > largest_whole_power || *r != std::floor(*r);
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
      for (const int place : {o.out, o.a, o.b}) emitter.reads.insert(place / source.stride);
      ++emitter.stage;
      emitter.call(emitter.nothing, emitter.functions->extend,
                   {emitter.pointer_to(&o), emitter.series, emitter.whole(source.stride),
                    LLVMConstInt(LLVMInt32TypeInContext(emitter.context), Emitter::at(k), 1)});
      ++emitter.stage;
    } else if (k == 0) {
      rules::start(o, cells, stride);
    } else {
      rules::next(o, cells, stride, k);
    }
  }
  ++emitter.stage;
}

/// One block per order, entered at `first` and left after `last`.
void emit_function(const NativeSource& source, const NativeFunctions& functions, LLVMModuleRef module,
                   const char* name) {
  Emitter emitter(module, name);
  emitter.functions = &functions;
  emitter.stride = source.stride;
  emitter.mirror = source.mirror;
  std::vector<Emitted> cells = make_cells(source, emitter);
  const auto block = [&] { return LLVMAppendBasicBlockInContext(emitter.context, emitter.function, ""); };
  const auto order = [&](int k) { return LLVMConstInt(LLVMInt32TypeInContext(emitter.context), Emitter::at(k), 1); };
  LLVMBasicBlockRef entry = block(), done = block();
  std::vector<LLVMBasicBlockRef> orders;
  for (int k = 0; k <= source.order; ++k) orders.push_back(block());
  LLVMPositionBuilderAtEnd(emitter.builder, entry);
  emitter.scratch = LLVMBuildAlloca(emitter.builder, emitter.four, "");
  LLVMValueRef start = LLVMBuildSwitch(emitter.builder, emitter.first, done, static_cast<unsigned>(orders.size()));
  for (int k = 0; k <= source.order; ++k) {
    const size_t i = static_cast<size_t>(k);
    LLVMAddCase(start, order(k), orders[i]);
    LLVMPositionBuilderAtEnd(emitter.builder, orders[i]);
    emit_order(source, emitter, cells.data(), k);
    LLVMValueRef last = LLVMBuildICmp(emitter.builder, LLVMIntEQ, emitter.last, order(k), "");
    LLVMBuildCondBr(emitter.builder, last, done, k < source.order ? orders[i + 1] : done);
  }
  LLVMPositionBuilderAtEnd(emitter.builder, done);
  LLVMBuildRetVoid(emitter.builder);
  Emitter::remove_unread(emitter.mirror_stores, emitter.mirrors);
  if (source.wanted.empty()) return;
  for (const int place : source.wanted) emitter.reads.insert(place / source.stride);
  Emitter::remove_unread(emitter.stores, emitter.reads);
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
