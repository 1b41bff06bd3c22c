#include "expr/diff.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <numbers>

namespace saltus {
namespace {

/// The rule of one operation: arguments a with derivatives da, not all of them zero.
Expr rule(const Expr& e, const std::array<Expr, 3>& a, const std::array<Expr, 3>& da) {
  const Expr &x = a[0], &y = a[1], &dx = da[0], &dy = da[1];
  switch (e.op()) {
    case Op::add: return dx + dy;
    case Op::sub: return dx - dy;
    case Op::mul: return dx * y + x * dy;
    case Op::div: return dy.is_number(0) ? dx / y : (dx - e * dy) / y;
    case Op::neg: return -dx;
    case Op::pow:
      if (dy.is_number(0)) return y * pow(x, y - Expr(1)) * dx;
      if (dx.is_number(0)) return e * make(Op::log, x) * dy;
      return e * (dy * make(Op::log, x) + y * dx / x);
    case Op::sin: return make(Op::cos, x) * dx;
    case Op::cos: return -(make(Op::sin, x) * dx);
    case Op::tan: return (Expr(1) + pow(e, 2)) * dx;
    case Op::asin: return dx / make(Op::sqrt, Expr(1) - pow(x, 2));
    case Op::acos: return -(dx / make(Op::sqrt, Expr(1) - pow(x, 2)));
    case Op::atan: return dx / (Expr(1) + pow(x, 2));
    case Op::atan2: return (y * dx - x * dy) / (pow(x, 2) + pow(y, 2));
    case Op::sinh: return make(Op::cosh, x) * dx;
    case Op::cosh: return make(Op::sinh, x) * dx;
    case Op::tanh: return (Expr(1) - pow(e, 2)) * dx;
    case Op::exp: return e * dx;
    case Op::log: return dx / x;
    case Op::sqrt: return dx / (Expr(2) * e);
    case Op::cbrt: return dx / (Expr(3) * pow(e, 2));
    case Op::hypot: return (x * dx + y * dy) / e;
    case Op::log10: return dx / (x * Expr(std::numbers::ln10));
    case Op::log2: return dx / (x * Expr(std::numbers::ln2));
    case Op::expm1: return make(Op::exp, x) * dx;
    case Op::log1p: return dx / (Expr(1) + x);
    case Op::components: return (x * dx + y * dy) / e;
    case Op::unit: return (dx - e * (x * dx + y * dy) / make(Op::hypot, x, y)) / make(Op::hypot, x, y);
    case Op::abs: return make(Op::sign, x) * dx;
    case Op::min: return make(Op::select, make(Op::less, x, y), dx, dy);
    case Op::max: return make(Op::select, make(Op::greater, x, y), dx, dy);
    case Op::sat:
      return make(Op::select, make(Op::less, x, y), dy, make(Op::select, make(Op::greater, x, a[2]), da[2], dx));
    case Op::select: return make(Op::select, x, dy, da[2]);
    case Op::table:
      return make(Op::table, x, Expr::table(y.symbol().curve, y.symbol().name, y.symbol().index + 1)) * dx;
    case Op::mod: return dy.is_number(0) ? dx : dx - make(Op::floor, x / y) * dy;
    default: return 0.0;  // sign, step, floor and truth values are constant between their switches
  }
}

}  // namespace

Expr Derivative::operator()(const Expr& root) {
  const Expr zero = 0.0;
  const SymbolKind kind = symbol_.symbol().kind;
  if (!contains_kind(root, kind)) return zero;
  std::vector<std::pair<Expr, size_t>> stack;
  if (!done_.contains(root)) stack.emplace_back(root, 0);
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    if (next < node.size()) {
      Expr child = node.argument(next++);
      if (contains_kind(child, kind) && !done_.contains(child)) stack.emplace_back(std::move(child), 0);
      continue;
    }
    Expr e = node;
    stack.pop_back();
    std::array<Expr, 3> a, da;
    bool constant = true;
    for (size_t i = 0; i < e.size(); ++i) {
      a[i] = e.argument(i);
      if (contains_kind(a[i], kind)) da[i] = done_.at(a[i]);
      constant = constant && da[i] == zero;
    }
    const std::optional<Expr> z = e.op() == Op::div ? exponent_in_one_plus_exp(a[1]) : std::nullopt;
    Expr d = zero;
    if (e == symbol_) {
      d = 1.0;
    } else if (z && !(da[1] == zero)) {  // not through exp(z), which may overflow
      d = da[0] / a[1] - e * (done_.at(*z) / (Expr(1) + make(Op::exp, -*z)));
    } else if (!constant) {
      d = rule(e, a, da);
    }
    done_.emplace(std::move(e), std::move(d));
  }
  return done_.at(root);
}

Expr differentiate(const Expr& e, const Expr& symbol) { return Derivative(symbol)(e); }

std::vector<Partial> gradient(const Expr& e, SymbolKind kind) { return Gradients()(e, kind); }

namespace {

/// Derivatives of one node by symbols of a kind; what is added or subtracted moves the smaller part into the larger.
using Sparse = ExprMap<Expr>;

void add_to(Sparse& left, Sparse right, bool subtract) {
  if (right.size() > left.size()) {
    for (auto& [symbol, d] : left) {
      const auto found = right.find(symbol);
      if (found == right.end()) continue;
      d = subtract ? d - found->second : d + found->second;
    }
    if (subtract) {
      for (auto& [symbol, d] : right) d = -d;
    }
    for (auto& [symbol, d] : left) right.insert_or_assign(symbol, std::move(d));
    left = std::move(right);
    return;
  }
  for (auto& [symbol, d] : right) {
    const auto [found, is_new] = left.try_emplace(symbol, d);
    if (is_new) {
      if (subtract) found->second = -d;
    } else {
      found->second = subtract ? found->second - d : found->second + d;
    }
  }
}

/// True for sums, differences and multiples by what has no symbol of the kind: gradients pass through them as a whole.
bool passes(const Expr& e, SymbolKind kind) {
  switch (e.op()) {
    case Op::add:
    case Op::sub:
    case Op::neg: return true;
    case Op::mul: return !contains_kind(e.argument(0), kind) || !contains_kind(e.argument(1), kind);
    case Op::div: return !contains_kind(e.argument(1), kind);
    default: return false;
  }
}

}  // namespace

/// A sum of many terms: each term is asked for its own symbols alone, so that n terms cost n, not n for each symbol.
ExprMap<Expr> Gradients::of_sum(const Expr& root, SymbolKind kind) {
  struct Open {
    Expr node;
    size_t next = 0;
    Sparse found{};
  };
  std::vector<Open> stack;
  stack.push_back({root});
  while (true) {
    Open& top = stack.back();
    const Expr e = top.node;
    const bool through = passes(e, kind);
    while (through && top.next < e.size() && !contains_kind(e.argument(top.next), kind)) ++top.next;
    if (through && top.next < e.size()) {
      stack.push_back({e.argument(top.next)});
      continue;
    }
    if (!through) {
      for (const Expr& s : symbols_in(std::span(&e, 1))) {
        if (s.symbol().kind != kind) continue;
        Expr d = by_.try_emplace(s, s).first->second(e);
        if (!d.is_number(0)) top.found.emplace(s, std::move(d));
      }
    }
    Sparse found = std::move(top.found);
    stack.pop_back();
    if (stack.empty()) return found;
    Open& above = stack.back();
    const Expr& p = above.node;
    const size_t place = above.next++;
    if (p.op() == Op::add || p.op() == Op::sub) {
      add_to(above.found, std::move(found), p.op() == Op::sub && place == 1);
      continue;
    }
    for (auto& [symbol, d] : found) {
      d = p.op() == Op::neg   ? -d
          : p.op() == Op::div ? d / p.argument(1)
          : place == 0        ? d * p.argument(1)
                              : p.argument(0) * d;
    }
    above.found = std::move(found);
  }
}

const std::vector<Partial>& Gradients::of(const Expr& e, SymbolKind kind) {
  Last& last = last_[kind];
  if (last.known && last.of == e) return last.partials;
  std::vector<Partial>& out = last.partials;
  last.known = false;
  last.of = e;
  out.clear();
  if (contains_kind(e, kind)) {
    for (auto& [symbol, d] : of_sum(e, kind)) {
      if (!d.is_number(0)) out.push_back({symbol, std::move(d)});
    }
  }
  std::sort(out.begin(), out.end(),
            [](const Partial& a, const Partial& b) { return a.symbol.symbol().index < b.symbol.symbol().index; });
  last.known = true;
  return out;
}

}  // namespace saltus
