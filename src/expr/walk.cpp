// Walks through formulas: their nodes in order, formulas rebuilt, what occurs in them.
#include <algorithm>
#include <array>

#include "expr/expr.hpp"

namespace saltus {
namespace {

/// Nodes that have been met: small formulas are the rule, so it starts small and without memory of others.
class Seen {
 public:
  Seen() = default;
  Seen(const Seen&) = delete;
  Seen& operator=(const Seen&) = delete;
  /// True if the node is new.
  bool insert(const Node* node) {
    if (2 * (count_ + 1) > size_) grow();
    size_t i = home(node);
    for (; slots_[i]; i = (i + 1) & (size_ - 1)) {
      if (slots_[i] == node) return false;
    }
    slots_[i] = node;
    ++count_;
    return true;
  }

 private:
  size_t home(const Node* node) const {
    return (reinterpret_cast<uintptr_t>(node) >> 4) * 0x9E3779B97F4A7C15ull >> 20 & (size_ - 1);
  }
  void grow() {
    const std::span<const Node*> old(slots_, size_);
    size_ *= 2;
    std::vector<const Node*> larger(size_);
    slots_ = larger.data();
    for (const Node* node : old) {
      if (!node) continue;
      size_t i = home(node);
      while (slots_[i]) i = (i + 1) & (size_ - 1);
      slots_[i] = node;
    }
    many_.swap(larger);
  }

  std::array<const Node*, 64> few_{};
  std::vector<const Node*> many_;
  const Node** slots_ = few_.data();
  size_t size_ = 64, count_ = 0;
};

}  // namespace

std::vector<Expr> postorder(std::span<const Expr> roots) {
  constexpr size_t usual = 16;
  std::vector<Expr> out;
  Seen seen;
  std::vector<std::pair<Expr, size_t>> stack;
  out.reserve(usual);
  stack.reserve(usual);
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

namespace {

/// Values for symbols, where there are some; operations made anew by `operation`.
Expr replace(const Expr& e, const ExprMap<Expr>& values, Expr (*operation)(Op, std::span<const Expr>)) {
  return Rebuild([&](const Expr& node, std::span<const Expr> a) {
    if (!a.empty()) return operation(node.op(), a);
    const auto found = values.find(node);
    return found == values.end() ? node : found->second;
  })(e);
}

}  // namespace

Expr substitute(const Expr& e, const ExprMap<Expr>& values) { return replace(e, values, make); }
Expr insert(const Expr& e, const ExprMap<Expr>& values) { return replace(e, values, Expr::raw); }

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

}  // namespace saltus
