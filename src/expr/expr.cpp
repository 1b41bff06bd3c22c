#include "expr/expr.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <memory>
#include <mutex>

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
    return a.symbol->kind == b.symbol->kind && a.symbol->index == b.symbol->index &&
           a.symbol->may_be_zero == b.symbol->may_be_zero && a.symbol->name == b.symbol->name &&
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
    // An entry that was pushed past the hole moves back into it, so that no search ends too early.
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

Expr Expr::symbol(SymbolKind kind, int index, std::string_view name, bool may_be_zero) {
  Node n{.op = Op::symbol};
  n.symbol = std::make_unique<Symbol>(Symbol{kind, index, std::string(name), {}, may_be_zero});
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

bool contains_kind(const Expr& e, SymbolKind kind) { return e.node()->kinds >> static_cast<unsigned>(kind) & 1u; }

std::optional<Expr> exponent_in_one_plus_exp(const Expr& e) {
  if (e.op() != Op::add) return std::nullopt;
  for (const size_t i : {0, 1}) {
    const Expr power = e.argument(1 - i);
    if (e.argument(i).is_number(1) && power.op() == Op::exp) return power.argument(0);
  }
  return std::nullopt;
}

}  // namespace saltus
