// Random formulas for property tests: every operation of the language, typed (numbers and truth values).
#pragma once

#include <array>
#include <random>
#include <string>
#include <vector>

#include "expr/expr.hpp"
#include "expr/parse.hpp"

namespace saltus::testing {

class RandomExpr {
 public:
  /// `smooth_only`: no sign, step, floor, comparisons and the like.
  RandomExpr(unsigned seed, bool smooth_only) : random_(seed), smooth_only_(smooth_only) {
    const char* names[] = {"x", "y", "v_1", "omega"};
    for (int i = 0; i < 4; ++i) {
      symbols_.push_back(Expr::symbol(i < 3 ? SymbolKind::state : SymbolKind::parameter, i < 3 ? i : 0, names[i]));
    }
    symbols_.push_back(time_symbol());
    symbols_.push_back(pi());
    symbols_.push_back(euler());
  }

  Names names() const {
    Names n;
    for (size_t i = 0; i < 4; ++i) n.add(symbols_[i].symbol().name, symbols_[i], "a name");
    return n;
  }
  const std::vector<Expr>& symbols() const { return symbols_; }
  size_t pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  double uniform(double a, double b) { return std::uniform_real_distribution<double>(a, b)(random_); }

  Expr number(int depth) {
    if (depth == 0 || pick(8) == 0) return leaf();
    static const std::vector<Op> smooth{Op::add,   Op::sub,  Op::mul,   Op::div,  Op::pow,   Op::neg,  Op::sin,
                                        Op::cos,   Op::tan,  Op::asin,  Op::acos, Op::atan,  Op::sinh, Op::cosh,
                                        Op::tanh,  Op::exp,  Op::log,   Op::sqrt, Op::atan2, Op::cbrt, Op::hypot,
                                        Op::log10, Op::log2, Op::expm1, Op::log1p};
    static const std::vector<Op> rough{Op::sign, Op::hold_sign, Op::abs,    Op::min, Op::max,
                                       Op::sat,  Op::step,      Op::select, Op::mod, Op::floor};
    const size_t k = pick(smooth.size() + (smooth_only_ ? 0 : rough.size()));
    const Op op = k < smooth.size() ? smooth[k] : rough[k - smooth.size()];
    std::vector<Expr> a;
    for (int i = 0; i < op_arity(op); ++i)
      a.push_back(op == Op::select && i == 0 ? truth(depth - 1) : number(depth - 1));
    return Expr::raw(op, a);
  }

  Expr truth(int depth) {
    if (depth > 0 && pick(2) == 0) {
      static const std::array<Op, 3> ops{Op::both, Op::either, Op::negation};
      const Op op = ops[pick(3)];
      std::vector<Expr> a;
      for (int i = 0; i < op_arity(op); ++i) a.push_back(truth(depth - 1));
      return Expr::raw(op, a);
    }
    static const std::array<Op, 4> ops{Op::less, Op::greater, Op::less_equal, Op::greater_equal};
    const int below = depth > 0 ? depth - 1 : 0;
    return Expr::raw(ops[pick(4)], std::array{number(below), number(below)});
  }

  Expr leaf() {
    switch (pick(4)) {
      case 0: return std::array{0.0, 1.0, 2.0, 3.0, -1.0, -2.0, 0.5}[pick(7)];
      case 1: return uniform(-3, 3);
      default: return symbols_[pick(symbols_.size())];
    }
  }

 private:
  std::mt19937 random_;
  bool smooth_only_;
  std::vector<Expr> symbols_;
};

/// Parses text given in a test; the names stand for states in order.
inline Expr parsed(const std::string& text, const std::vector<std::string>& states = {"x", "y", "z", "v"}) {
  Names names;
  for (size_t i = 0; i < states.size(); ++i) {
    names.add(states[i], Expr::symbol(SymbolKind::state, static_cast<int>(i), states[i]), "a state");
  }
  return parse(whole_text("formula", text), names);
}

}  // namespace saltus::testing
