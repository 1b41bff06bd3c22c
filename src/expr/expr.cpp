#include "expr/expr.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cmath>
#include <memory>
#include <mutex>
#include <numbers>

#include "expr/interpolant.hpp"

namespace saltus {

struct Node {
  Op op;
  uint8_t size = 0;
  uint16_t kinds = 0;  ///< of the symbols in it, a bit each
  mutable std::atomic<uint32_t> uses{0};
  size_t hash = 0;
  double value = 0;
  std::unique_ptr<Symbol> symbol{};
  std::array<const Node*, 3> arguments{};
};

namespace {

size_t mix(size_t seed, size_t v) { return (seed ^ v) * 0x9E3779B97F4A7C15ull + (seed >> 7) + (v << 3); }

size_t hash_of(const Node& n) {
  size_t h = mix(0x51ed27, static_cast<size_t>(n.op));
  if (n.op == Op::number) return mix(h, std::bit_cast<uint64_t>(n.value));
  if (n.op == Op::symbol) {
    h = mix(h, static_cast<size_t>(n.symbol->kind) * 1000003u + static_cast<size_t>(n.symbol->index));
    if (n.symbol->curve) h = mix(h, n.symbol->curve->hash());
    return mix(h, std::hash<std::string>{}(n.symbol->name));
  }
  for (size_t i = 0; i < n.size; ++i) h = mix(h, std::hash<const void*>{}(n.arguments[i]));
  return h;
}

bool same(const Node& a, const Node& b) {
  if (a.op != b.op || a.size != b.size || a.hash != b.hash) return false;
  if (a.op == Op::number) return std::bit_cast<uint64_t>(a.value) == std::bit_cast<uint64_t>(b.value);
  if (a.op == Op::symbol) {
    const Interpolant *one = a.symbol->curve.get(), *other = b.symbol->curve.get();
    return a.symbol->kind == b.symbol->kind && a.symbol->index == b.symbol->index && a.symbol->name == b.symbol->name &&
           (one == other || (one && other && *one == *other));
  }
  return a.arguments == b.arguments;
}

/// Nodes by their hash, in one array with linear probing: a look costs one or two places in memory, also among
/// millions.
class NodeTable {
 public:
  const Node* find(const Node& wanted) const {
    for (size_t i = home(wanted.hash);; i = next(i)) {
      if (!slots_[i].node) return nullptr;
      if (slots_[i].hash == wanted.hash && same(*slots_[i].node, wanted)) return slots_[i].node;
    }
  }

  void insert(const Node* node) {
    if (2 * ++count_ > slots_.size()) grow();
    place({node->hash, node});
  }

  void erase(const Node* node) {
    size_t hole = home(node->hash);
    while (slots_[hole].node != node) hole = next(hole);
    // What was pushed past the hole moves back into it, so that no search ends too early.
    for (size_t i = next(hole); slots_[i].node; i = next(i)) {
      const size_t from = home(slots_[i].hash);
      const bool stays = hole < i ? hole < from && from <= i : hole < from || from <= i;
      if (stays) continue;
      slots_[hole] = slots_[i];
      hole = i;
    }
    slots_[hole] = {};
    --count_;
  }

 private:
  struct Slot {
    size_t hash = 0;
    const Node* node = nullptr;
  };

  size_t home(size_t hash) const { return (hash ^ hash >> 32) * 0x9E3779B97F4A7C15ull >> shift_; }
  size_t next(size_t i) const { return i + 1 == slots_.size() ? 0 : i + 1; }

  void place(const Slot& slot) {
    size_t i = home(slot.hash);
    while (slots_[i].node) i = next(i);
    slots_[i] = slot;
  }

  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    --shift_;
    for (const Slot& slot : old) {
      if (slot.node) place(slot);
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(1u << 12);
  int shift_ = 64 - 12;
  size_t count_ = 0;
};

}  // namespace

/// The table that makes equal formulas one node. A node lives while somebody uses it.
class Pool {
 public:
  static Pool& get() {
    static Pool* pool = new Pool;  // never destroyed: formulas may outlive static destruction
    return *pool;
  }

  Expr intern(Node&& candidate) {
    candidate.hash = hash_of(candidate);
    std::lock_guard lock(mutex_);
    if (const Node* found = nodes_.find(candidate)) {
      found->uses.fetch_add(1, std::memory_order_relaxed);
      return Expr(Expr::Counted{}, found);
    }
    Node* node = fresh();
    node->op = candidate.op;
    node->size = candidate.size;
    node->hash = candidate.hash;
    node->value = candidate.value;
    node->symbol = std::move(candidate.symbol);
    node->arguments = candidate.arguments;
    node->kinds = node->symbol ? uint16_t(1u << static_cast<unsigned>(node->symbol->kind)) : uint16_t(0);
    for (size_t i = 0; i < node->size; ++i) node->kinds |= node->arguments[i]->kinds;
    node->uses = 1;
    for (size_t i = 0; i < node->size; ++i) node->arguments[i]->uses.fetch_add(1, std::memory_order_relaxed);
    nodes_.insert(node);
    return Expr(Expr::Counted{}, node);
  }

  /// Drops one use; what nobody uses any more goes, with what only it used (a list, not recursion).
  void release(const Node* node) {
    if (node->uses.load(std::memory_order_acquire) > 1) {
      uint32_t n = node->uses.load();
      while (n > 1) {
        if (node->uses.compare_exchange_weak(n, n - 1)) return;
      }
    }
    std::lock_guard lock(mutex_);
    doomed_.push_back(node);
    while (!doomed_.empty()) {
      const Node* n = doomed_.back();
      doomed_.pop_back();
      if (n->uses.fetch_sub(1) > 1) continue;
      nodes_.erase(n);
      for (size_t i = 0; i < n->size; ++i) doomed_.push_back(n->arguments[i]);
      Node* empty = const_cast<Node*>(n);  // all nodes are the pool's own
      empty->symbol.reset();
      free_.push_back(empty);
    }
  }

 private:
  /// A place for a node: one that has become free, or the next of a block.
  Node* fresh() {
    if (free_.empty()) {
      constexpr size_t block = 1024;
      blocks_.push_back(std::make_unique<Node[]>(block));
      for (size_t i = block; i-- > 0;) free_.push_back(&blocks_.back()[i]);
    }
    Node* node = free_.back();
    free_.pop_back();
    return node;
  }

  std::mutex mutex_;
  NodeTable nodes_;
  std::vector<std::unique_ptr<Node[]>> blocks_;
  std::vector<Node*> free_;
  std::vector<const Node*> doomed_;
};

namespace {

Expr number(double value) {
  Node n{.op = Op::number};
  n.value = value;
  return Pool::get().intern(std::move(n));
}

}  // namespace

Expr::Expr() : node_(nullptr) {
  static const Expr* const zero = new Expr(0.0);  // never destroyed, as the pool
  node_ = zero->node_;
  node_->uses.fetch_add(1, std::memory_order_relaxed);
}
Expr::Expr(double value) : node_(nullptr) {
  Expr e = number(value);
  std::swap(node_, e.node_);
}
Expr::Expr(const Expr& other) : node_(other.node_) {
  if (node_) node_->uses.fetch_add(1, std::memory_order_relaxed);
}
Expr::Expr(Expr&& other) noexcept : node_(other.node_) { other.node_ = nullptr; }
Expr& Expr::operator=(Expr other) noexcept {
  std::swap(node_, other.node_);
  return *this;
}
Expr::~Expr() {
  if (node_) Pool::get().release(node_);
}

Expr Expr::raw(Op op, std::span<const Expr> arguments) {
  assert(static_cast<int>(arguments.size()) == op_arity(op));
  if (op == Op::neg && arguments[0].is_number()) return Expr(-arguments[0].value());
  Node n{.op = op, .size = static_cast<uint8_t>(arguments.size())};
  for (size_t i = 0; i < arguments.size(); ++i) n.arguments[i] = arguments[i].node_;
  return Pool::get().intern(std::move(n));
}

Expr Expr::symbol(SymbolKind kind, int index, std::string_view name) {
  Node n{.op = Op::symbol};
  n.symbol = std::make_unique<Symbol>(Symbol{kind, index, std::string(name)});
  return Pool::get().intern(std::move(n));
}

Expr Expr::table(std::shared_ptr<const Interpolant> curve, std::string_view name, int derivative) {
  Node n{.op = Op::symbol};
  n.symbol = std::make_unique<Symbol>(Symbol{SymbolKind::table, derivative, std::string(name), std::move(curve)});
  return Pool::get().intern(std::move(n));
}

Op Expr::op() const { return node_->op; }
double Expr::value() const {
  assert(is_number());
  return node_->value;
}
const Symbol& Expr::symbol() const {
  assert(is_symbol());
  return *node_->symbol;
}
size_t Expr::size() const { return node_->size; }
Expr Expr::argument(size_t i) const {
  assert(i < node_->size);
  const Node* a = node_->arguments[i];
  a->uses.fetch_add(1, std::memory_order_relaxed);
  return Expr(Counted{}, a);
}

Expr pi() { return Expr::symbol(SymbolKind::constant, 0, "pi"); }
Expr euler() { return Expr::symbol(SymbolKind::constant, 1, "e"); }
Expr time_symbol() { return Expr::symbol(SymbolKind::time, 0, "t"); }

namespace {

struct OpInfo {
  std::string_view name;
  int arity;
};

constexpr std::array<OpInfo, 45> op_table{{
    {"number", 0}, {"symbol", 0}, {"+", 2},     {"-", 2},    {"*", 2},     {"/", 2},     {"^", 2},     {"-", 1},
    {"sin", 1},    {"cos", 1},    {"tan", 1},   {"asin", 1}, {"acos", 1},  {"atan", 1},  {"atan2", 2}, {"sinh", 1},
    {"cosh", 1},   {"tanh", 1},   {"exp", 1},   {"log", 1},  {"sqrt", 1},  {"cbrt", 1},  {"hypot", 2}, {"log10", 1},
    {"log2", 1},   {"expm1", 1},  {"log1p", 1}, {"sign", 1}, {"sign", 2},  {"abs", 1},   {"min", 2},   {"max", 2},
    {"sat", 3},    {"step", 1},   {"if", 3},    {"mod", 2},  {"floor", 1}, {"table", 2}, {"<", 2},     {">", 2},
    {"<=", 2},     {">=", 2},     {"and", 2},   {"or", 2},   {"not", 1},
}};

bool all_numbers(std::span<const Expr> a) {
  return std::all_of(a.begin(), a.end(), [](const Expr& e) { return e.is_number(); });
}

/// Takes the minus signs off the front; true if an odd number of them.
bool strip_minus(Expr& e) {
  bool minus = false;
  for (; e.op() == Op::neg; minus = !minus) e = e.argument(0);
  return minus;
}

/// Sums, differences, products, quotients and powers with their identities; nothing is reordered.
Expr fold_arithmetic(Op op, std::span<const Expr> a) {
  const Expr &x = a[0], &y = a[1];
  switch (op) {
    case Op::add:
      if (x.is_number(0)) return y;
      if (y.is_number(0)) return x;
      if (Expr z = y; strip_minus(z)) return x - z;
      if (Expr z = x; strip_minus(z)) return y - z;
      break;
    case Op::sub:
      if (y.is_number(0)) return x;
      if (x.is_number(0)) return -y;
      if (x == y) return 0.0;
      if (Expr z = y; strip_minus(z)) return x + z;
      break;
    case Op::mul:
      if (x.is_number(0) || y.is_number(0)) return 0.0;
      if (x.is_number(1)) return y;
      if (y.is_number(1)) return x;
      if (x.is_number(-1)) return -y;
      if (y.is_number(-1)) return -x;
      if (x == y && x.is_symbol(SymbolKind::sigma)) return 1.0;
      if (Expr z = x; strip_minus(z)) return -(z * y);
      if (Expr z = y; strip_minus(z)) return -(x * z);
      break;
    case Op::div:
      if (y.is_number(1)) return x;
      if (y.is_number(-1)) return -x;
      if (x.is_number(0) && !y.is_number(0)) return 0.0;
      if (x == y && !x.is_number(0)) return 1.0;
      if (Expr z = x; strip_minus(z)) return -(z / y);
      if (Expr z = y; strip_minus(z)) return -(x / z);
      break;
    case Op::pow:
      if (y.is_number(1)) return x;
      if (y.is_number(0)) return 1.0;
      if (x.is_number(1)) return 1.0;
      if (x.is_symbol(SymbolKind::sigma) && y.is_number() && y.value() == std::floor(y.value()) &&
          std::abs(y.value()) < 1e15) {
        return std::fmod(y.value(), 2) == 0 ? Expr(1.0) : x;
      }
      break;
    default: break;
  }
  return Expr::raw(op, a);
}

Expr fold_truth(Op op, std::span<const Expr> a) {
  switch (op) {
    case Op::both:
      if (a[0].is_number()) return a[0].value() != 0 ? a[1] : a[0];
      if (a[1].is_number()) return a[1].value() != 0 ? a[0] : a[1];
      break;
    case Op::either:
      if (a[0].is_number()) return a[0].value() != 0 ? a[0] : a[1];
      if (a[1].is_number()) return a[1].value() != 0 ? a[1] : a[0];
      break;
    case Op::select:
      if (a[0].is_number()) return a[0].value() != 0 ? a[1] : a[2];
      if (a[1] == a[2]) return a[1];
      break;
    default: break;
  }
  return Expr::raw(op, a);
}

}  // namespace

std::string_view op_name(Op op) { return op_table[static_cast<size_t>(op)].name; }
int op_arity(Op op) { return op_table[static_cast<size_t>(op)].arity; }

Expr make(Op op, std::span<const Expr> a) {
  assert(!a.empty());
  if (all_numbers(a)) {
    std::array<double, 3> v{};
    for (size_t i = 0; i < a.size(); ++i) v[i] = a[i].value();
    const double folded = apply(op, v.data());
    // sign(0) has no value of its own: it is the set [-1, 1].
    const bool undecided = (op == Op::sign || op == Op::hold_sign) && v[0] == 0;
    if (std::isfinite(folded) && !undecided) return folded;
  }
  if (op >= Op::add && op <= Op::pow) return fold_arithmetic(op, a);
  if (op == Op::neg) {
    if (a[0].op() == Op::neg) {
      Expr z = a[0];
      return strip_minus(z) ? z : -z;
    }
    if (a[0].op() == Op::sub) return a[0].argument(1) - a[0].argument(0);
  }
  if (op == Op::both || op == Op::either || op == Op::select) return fold_truth(op, a);
  if (op == Op::table && a[0].is_number()) {
    const double value = (*a[1].symbol().curve)(a[0].value(), a[1].symbol().index);
    if (std::isfinite(value)) return value;
  }
  if ((op == Op::min || op == Op::max) && a[0] == a[1]) return a[0];
  return Expr::raw(op, a);
}

Expr make(Op op, const Expr& a) { return make(op, std::array{a}); }
Expr make(Op op, const Expr& a, const Expr& b) { return make(op, std::array{a, b}); }
Expr make(Op op, const Expr& a, const Expr& b, const Expr& c) { return make(op, std::array{a, b, c}); }
Expr operator+(const Expr& a, const Expr& b) { return make(Op::add, a, b); }
Expr operator-(const Expr& a, const Expr& b) { return make(Op::sub, a, b); }
Expr operator*(const Expr& a, const Expr& b) { return make(Op::mul, a, b); }
Expr operator/(const Expr& a, const Expr& b) { return make(Op::div, a, b); }
Expr operator-(const Expr& a) { return make(Op::neg, a); }
Expr pow(const Expr& a, const Expr& b) { return make(Op::pow, a, b); }

namespace {

/// Nodes that have been met: small formulas are the rule, so it starts small and without a list of its own.
class Seen {
 public:
  /// Whether the node is new.
  bool insert(const Node* node) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    size_t i = home(node);
    for (; slots_[i]; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i] == node) return false;
    }
    slots_[i] = node;
    ++count_;
    return true;
  }

 private:
  size_t home(const Node* node) const {
    return (reinterpret_cast<uintptr_t>(node) >> 4) * 0x9E3779B97F4A7C15ull >> 20 & (slots_.size() - 1);
  }
  void grow() {
    std::vector<const Node*> old(2 * slots_.size());
    old.swap(slots_);
    for (const Node* node : old) {
      if (!node) continue;
      size_t i = home(node);
      while (slots_[i]) i = (i + 1) & (slots_.size() - 1);
      slots_[i] = node;
    }
  }

  std::vector<const Node*> slots_ = std::vector<const Node*>(64);
  size_t count_ = 0;
};

}  // namespace

std::vector<Expr> postorder(std::span<const Expr> roots) {
  std::vector<Expr> out;
  Seen seen;
  std::vector<std::pair<Expr, size_t>> stack;
  for (const Expr& root : roots) {
    if (!seen.insert(root.node())) continue;
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next == node.size()) {
        out.push_back(std::move(node));
        stack.pop_back();
        continue;
      }
      Expr child = node.argument(next++);
      if (seen.insert(child.node())) stack.emplace_back(std::move(child), 0);
    }
  }
  return out;
}

Expr Rebuild::operator()(const Expr& root) {
  std::vector<std::pair<Expr, size_t>> stack;
  if (!done_.contains(root)) stack.emplace_back(root, 0);
  std::array<Expr, 3> arguments;
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    if (next < node.size()) {
      Expr child = node.argument(next++);
      if (!done_.contains(child)) stack.emplace_back(std::move(child), 0);
      continue;
    }
    for (size_t i = 0; i < node.size(); ++i) arguments[i] = done_.at(node.argument(i));
    const size_t n = node.size();
    Expr finished = node;
    stack.pop_back();
    Expr value = change_(finished, std::span(arguments.data(), n));
    done_.emplace(std::move(finished), std::move(value));
  }
  return done_.at(root);
}

Expr simplify(const Expr& e) {
  return Rebuild([](const Expr& node, std::span<const Expr> a) { return a.empty() ? node : make(node.op(), a); })(e);
}

Expr substitute(const Expr& e, const ExprMap<Expr>& values) {
  return Rebuild([&](const Expr& node, std::span<const Expr> a) {
    if (!a.empty()) return make(node.op(), a);
    const auto found = values.find(node);
    return found == values.end() ? node : found->second;
  })(e);
}

Expr insert(const Expr& e, const ExprMap<Expr>& values) {
  return Rebuild([&](const Expr& node, std::span<const Expr> a) {
    if (!a.empty()) return Expr::raw(node.op(), a);
    const auto found = values.find(node);
    return found == values.end() ? node : found->second;
  })(e);
}

std::vector<Expr> symbols_in(std::span<const Expr> roots) {
  std::vector<Expr> out;
  for (const Expr& e : postorder(roots)) {
    if (e.is_symbol()) out.push_back(e);
  }
  return out;
}

bool depends_on(const Expr& e, const Expr& symbol) {
  const auto nodes = postorder(std::span(&e, 1));
  return std::find(nodes.begin(), nodes.end(), symbol) != nodes.end();
}

bool contains_kind(const Expr& e, SymbolKind kind) { return e.node()->kinds >> static_cast<unsigned>(kind) & 1u; }

double apply(Op op, const double* a) {
  switch (op) {
    case Op::add: return a[0] + a[1];
    case Op::sub: return a[0] - a[1];
    case Op::mul: return a[0] * a[1];
    case Op::div: return a[0] / a[1];
    case Op::pow: return std::pow(a[0], a[1]);
    case Op::neg: return -a[0];
    case Op::sin: return std::sin(a[0]);
    case Op::cos: return std::cos(a[0]);
    case Op::tan: return std::tan(a[0]);
    case Op::asin: return std::asin(a[0]);
    case Op::acos: return std::acos(a[0]);
    case Op::atan: return std::atan(a[0]);
    case Op::atan2: return std::atan2(a[0], a[1]);
    case Op::sinh: return std::sinh(a[0]);
    case Op::cosh: return std::cosh(a[0]);
    case Op::tanh: return std::tanh(a[0]);
    case Op::exp: return std::exp(a[0]);
    case Op::log: return std::log(a[0]);
    case Op::sqrt: return std::sqrt(a[0]);
    case Op::cbrt: return std::cbrt(a[0]);
    case Op::hypot: return std::hypot(a[0], a[1]);
    case Op::log10: return std::log10(a[0]);
    case Op::log2: return std::log2(a[0]);
    case Op::expm1: return std::expm1(a[0]);
    case Op::log1p: return std::log1p(a[0]);
    case Op::sign:
    case Op::hold_sign: return a[0] > 0 ? 1.0 : a[0] < 0 ? -1.0 : a[0];
    case Op::abs: return std::abs(a[0]);
    case Op::min: return a[1] < a[0] ? a[1] : a[0];
    case Op::max: return a[1] > a[0] ? a[1] : a[0];
    case Op::sat: return a[0] < a[1] ? a[1] : a[0] > a[2] ? a[2] : a[0];
    case Op::step: return a[0] > 0 ? 1.0 : a[0] < 0 ? 0.0 : a[0] == 0 ? 0.5 : a[0];
    case Op::select: return a[0] != 0 ? a[1] : a[2];
    case Op::mod: return a[0] - a[1] * std::floor(a[0] / a[1]);
    case Op::floor: return std::floor(a[0]);
    case Op::less: return a[0] < a[1];
    case Op::greater: return a[0] > a[1];
    case Op::less_equal: return a[0] <= a[1];
    case Op::greater_equal: return a[0] >= a[1];
    case Op::both: return a[0] != 0 && a[1] != 0;
    case Op::either: return a[0] != 0 || a[1] != 0;
    case Op::negation: return a[0] == 0;
    case Op::table:  // needs its curve: see below
    case Op::number:
    case Op::symbol: break;
  }
  assert(false && "not an operation on numbers");
  return NAN;
}

double apply(const Expr& node, const double* a) {
  if (node.op() != Op::table) return apply(node.op(), a);
  const Expr table = node.argument(1);
  return (*table.symbol().curve)(a[0], table.symbol().index);
}

double evaluate(const Expr& root, const std::function<double(const Symbol&)>& lookup) {
  if (root.is_number()) return root.value();
  std::unordered_map<const Node*, double> values;
  std::array<double, 3> a{};
  for (const Expr& e : postorder(std::span(&root, 1))) {
    double v = 0;
    if (e.is_number()) {
      v = e.value();
    } else if (e.is_symbol(SymbolKind::constant)) {
      v = e.symbol().index == 0 ? std::numbers::pi : std::numbers::e;
    } else if (e.is_symbol()) {
      v = e.is_symbol(SymbolKind::table) ? 0 : lookup(e.symbol());
    } else {
      for (size_t i = 0; i < e.size(); ++i) a[i] = values.at(e.argument(i).node());
      v = apply(e, a.data());
    }
    values.emplace(e.node(), v);
  }
  return values.at(root.node());
}

}  // namespace saltus
