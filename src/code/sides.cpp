#include "code/sides.hpp"

#include <cmath>
#include <unordered_set>

namespace saltus {
namespace {

/// True if a function chooses between smooth ones. A table is taken as it is.
bool chooses(Op op) {
  switch (op) {
    case Op::sign:
    case Op::hold_sign:
    case Op::abs:
    case Op::step:
    case Op::min:
    case Op::max:
    case Op::sat:
    case Op::select:
    case Op::floor:
    case Op::mod: return true;
    default: return op >= Op::less;
  }
}

double choice(Op op, const double* a) {
  switch (op) {
    case Op::min:
    case Op::max: return a[0] < a[1] ? -1 : 1;
    case Op::sat: return a[0] < a[1] ? -1 : a[0] > a[2] ? 1 : 0;
    case Op::select: return a[0] != 0 ? 1 : 0;
    case Op::floor: return std::floor(a[0]);
    case Op::mod: return std::floor(a[0] / a[1]);
    case Op::sign:
    case Op::hold_sign:
    case Op::abs:
    case Op::step: return a[0] < 0 ? -1 : 1;
    default: return apply(op, a);
  }
}

Expr chosen(const Expr& node, double side, std::span<const Expr> a) {
  switch (node.op()) {
    case Op::sign:
    case Op::hold_sign: return side;
    case Op::abs: return side > 0 ? a[0] : -a[0];
    case Op::step: return side > 0 ? 1.0 : 0.0;
    case Op::min: return side < 0 ? a[0] : a[1];
    case Op::max: return side < 0 ? a[1] : a[0];
    case Op::sat: return side < 0 ? a[1] : side > 0 ? a[2] : a[0];
    case Op::select: return side != 0 ? a[1] : a[2];
    case Op::floor: return side;
    case Op::mod: return a[0] - side * a[1];
    default: return side;  // a truth value
  }
}

/// The expressions that stay positive as long as the choice is the same, in terms of the arguments as they have been
/// chosen.
std::vector<Expr> room_of(const Expr& node, double side, std::span<const Expr> a) {
  switch (node.op()) {
    case Op::sign:
    case Op::hold_sign:
    case Op::abs:
    case Op::step: return {side > 0 ? a[0] : -a[0]};
    case Op::min:
    case Op::max: return {side < 0 ? a[1] - a[0] : a[0] - a[1]};
    case Op::sat:
      if (side != 0) return {side < 0 ? a[1] - a[0] : a[0] - a[2]};
      return {a[0] - a[1], a[2] - a[0]};
    case Op::select: {
      const Expr m = margin(node.argument(0));
      return {side != 0 ? m : -m};
    }
    case Op::floor: return {a[0] - side, side + 1.0 - a[0]};
    case Op::mod: return {a[0] / a[1] - side, side + 1.0 - a[0] / a[1]};
    default: {
      const Expr m = margin(node);
      return {side != 0 ? m : -m};
    }
  }
}

/// The arguments of a node that count once its choice is made.
std::vector<Expr> used(const Expr& node, double side) {
  switch (node.op()) {
    case Op::select: return {node.argument(side != 0 ? 1 : 2)};
    default: break;
  }
  if (node.is_truth()) return {};
  std::vector<Expr> out;
  for (size_t k = 0; k < node.size(); ++k) out.push_back(node.argument(k));
  return out;
}

}  // namespace

Sides sides_at(const Expr& formula, const PlainInputs& point) {
  Plain plain(formula);
  plain(point);
  Sides out;
  plain.each([&](const Expr& node, const double* a) {
    if (chooses(node.op())) out.push_back(choice(node.op(), a));
  });
  return out;
}

Sided on_sides(const Expr& formula, const Sides& sides) {
  ExprMap<double> side;
  size_t next = 0;
  for (const Expr& node : postorder(std::span(&formula, 1))) {
    if (chooses(node.op())) side.emplace(node, sides[next++]);
  }
  Rebuild rebuild([&](const Expr& node, std::span<const Expr> a) {
    if (a.empty()) return node;
    const auto found = side.find(node);
    return found == side.end() ? make(node.op(), a) : chosen(node, found->second, a);
  });
  Sided out{.formula = rebuild(formula)};
  std::unordered_set<const Node*> seen;
  std::vector<Expr> todo{formula};
  while (!todo.empty()) {
    const Expr node = todo.back();
    todo.pop_back();
    if (!seen.insert(node.node()).second) continue;
    const auto found = side.find(node);
    if (found != side.end()) {
      std::vector<Expr> a;
      for (size_t k = 0; k < node.size(); ++k) a.push_back(rebuild(node.argument(k)));
      for (Expr& room : room_of(node, found->second, a)) out.room.push_back(std::move(room));
    }
    for (Expr& argument : used(node, found == side.end() ? 0 : found->second)) todo.push_back(std::move(argument));
  }
  return out;
}

Expr margin(const Expr& condition) {
  return Rebuild([](const Expr& node, std::span<const Expr> a) -> Expr {
    switch (node.op()) {
      case Op::less:
      case Op::less_equal: return Expr::raw(Op::sub, std::array{a[1], a[0]});
      case Op::greater:
      case Op::greater_equal: return Expr::raw(Op::sub, a);
      case Op::both: return Expr::raw(Op::min, a);
      case Op::either: return Expr::raw(Op::max, a);
      case Op::negation: return Expr::raw(Op::neg, a);
      case Op::select: return Expr::raw(Op::select, std::array{node.argument(0), a[1], a[2]});
      default: return a.empty() ? node : Expr::raw(node.op(), a);
    }
  })(condition);
}

}  // namespace saltus
