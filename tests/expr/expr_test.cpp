#include "expr/expr.hpp"

#include <cmath>
#include <thread>

#include <gtest/gtest.h>

#include "expr/diff.hpp"
#include "expr/print.hpp"
#include "random_expr.hpp"

namespace saltus {
namespace {

using testing::parsed;
using testing::RandomExpr;

const Expr x = Expr::symbol(SymbolKind::state, 0, "x");
const Expr y = Expr::symbol(SymbolKind::state, 1, "y");
const Expr s = Expr::symbol(SymbolKind::sigma, 0, "s");

double at(const Expr& e, double vx, double vy = 0) {
  return evaluate(e, [&](const Symbol& symbol) { return symbol.index == 0 ? vx : vy; });
}

TEST(Expr, EqualFormulasAreTheSameNode) {
  EXPECT_EQ((x + y).node(), (x + y).node());
  EXPECT_EQ(parsed("sin(x)*y + 2").node(), parsed("sin( x ) * y+2.0").node());
  EXPECT_NE((x + y).node(), (y + x).node());
  EXPECT_NE(Expr::symbol(SymbolKind::state, 0, "x").node(), Expr::symbol(SymbolKind::parameter, 0, "x").node());
  EXPECT_NE(Expr::symbol(SymbolKind::state, 0, "x").node(), Expr::symbol(SymbolKind::state, 1, "x").node());
}

TEST(Expr, MinusZeroAndZeroAreDifferentNumbers) {
  EXPECT_FALSE(Expr(0.0) == Expr(-0.0));
  EXPECT_TRUE(Expr(-0.0).is_number(0));
}

TEST(Expr, ANodeLivesAsLongAsSomebodyUsesIt) {
  Expr kept = 0.0;
  {
    const Expr a = x * y + Expr(17.25);
    kept = a.argument(1);
  }
  EXPECT_EQ(kept.value(), 17.25);
  Expr moved = std::move(kept);
  EXPECT_EQ(moved.value(), 17.25);
  const Expr& itself = moved;
  moved = itself;  // must be harmless
  EXPECT_EQ(moved.value(), 17.25);
}

TEST(Expr, IdentitiesFold) {
  EXPECT_EQ(x + 0.0, x);
  EXPECT_EQ(Expr(0.0) + x, x);
  EXPECT_EQ(x - 0.0, x);
  EXPECT_EQ(x - x, Expr(0.0));
  EXPECT_EQ(x * 1.0, x);
  EXPECT_EQ(x * 0.0, Expr(0.0));
  EXPECT_EQ(x / 1.0, x);
  EXPECT_EQ(x / x, Expr(1.0));
  EXPECT_EQ(pow(x, 1.0), x);
  EXPECT_EQ(pow(x, 0.0), Expr(1.0));
  EXPECT_EQ(-(-x), x);
  EXPECT_EQ(x + (-y), x - y);
  EXPECT_EQ(-(x - y), y - x);
  EXPECT_EQ(Expr(2) + Expr(3), Expr(5));
  EXPECT_EQ(make(Op::sin, Expr(0)), Expr(0));
}

TEST(Expr, WhatHasNoValueIsNotFolded) {
  EXPECT_FALSE((Expr(1) / Expr(0)).is_number());
  EXPECT_FALSE(make(Op::log, Expr(-1)).is_number());
  EXPECT_FALSE(make(Op::sign, Expr(0)).is_number()) << "sign(0) is the set [-1, 1]";
}

TEST(Expr, TheSquareOfASwitchIsOne) {
  EXPECT_EQ(s * s, Expr(1));
  EXPECT_EQ(pow(s, 2), Expr(1));
  EXPECT_EQ(pow(s, 3), s);
  EXPECT_EQ(pow(s, -2), Expr(1));
  EXPECT_EQ(pow(s, 0.5).op(), Op::pow);
  EXPECT_EQ((x * x).op(), Op::mul);
  EXPECT_EQ(simplify(Expr::raw(Op::mul, std::array{s, s})), Expr(1));
}

TEST(Expr, SubstitutesSymbolsAndSimplifies) {
  const Expr e = parsed("x*y + sin(x)");
  EXPECT_EQ(substitute(e, {{x, Expr(0)}}), Expr(0));
  EXPECT_EQ(substitute(e, {{x, y}}), y * y + make(Op::sin, y));
  EXPECT_EQ(substitute(e, {{x, y}, {y, x}}), y * x + make(Op::sin, y)) << "all at once, not one after the other";
}

TEST(Expr, ListsSymbolsInOrderOfAppearance) {
  const std::array roots{parsed("y + sin(x)"), parsed("z*x")};
  const auto symbols = symbols_in(roots);
  ASSERT_EQ(symbols.size(), 3u);
  EXPECT_EQ(symbols[0].symbol().name, "y");
  EXPECT_EQ(symbols[1].symbol().name, "x");
  EXPECT_EQ(symbols[2].symbol().name, "z");
  EXPECT_TRUE(depends_on(roots[0], x));
  EXPECT_FALSE(depends_on(roots[1], y));
  EXPECT_TRUE(contains_kind(roots[0], SymbolKind::state));
  EXPECT_FALSE(contains_kind(roots[0], SymbolKind::sigma));
}

TEST(Expr, EvaluatesEveryOperation) {
  const auto value = [](const std::string& text) { return at(parsed(text), 0.3, -1.7); };
  EXPECT_EQ(value("x + y"), 0.3 + -1.7);
  EXPECT_EQ(value("x/y"), 0.3 / -1.7);
  EXPECT_EQ(value("x^3"), std::pow(0.3, 3));
  EXPECT_EQ(value("atan2(x, y)"), std::atan2(0.3, -1.7));
  EXPECT_EQ(value("cbrt(y)"), std::cbrt(-1.7));
  EXPECT_EQ(value("log10(1000)"), 3);
  EXPECT_EQ(value("log2(8)"), 3);
  EXPECT_EQ(value("expm1(1e-20)"), 1e-20);
  EXPECT_EQ(value("log1p(1e-20)"), 1e-20);
  EXPECT_DOUBLE_EQ(value("hypot(3e200, 4e200)"), 5e200);
  EXPECT_EQ(value("log(e)"), 1);
  EXPECT_EQ(value("sin(pi/2)"), 1);
  EXPECT_EQ(value("sign(y)"), -1);
  EXPECT_EQ(value("sign(y, 2)"), -1);
  EXPECT_EQ(value("abs(y)"), 1.7);
  EXPECT_EQ(value("min(x, y)"), -1.7);
  EXPECT_EQ(value("max(x, y)"), 0.3);
  EXPECT_EQ(value("sat(y, -1, 1)"), -1);
  EXPECT_EQ(value("sat(x, -1, 1)"), 0.3);
  EXPECT_EQ(value("step(x) + step(y)"), 1);
  EXPECT_EQ(value("if(x > y and not x > 1, 5, 6)"), 5);
  EXPECT_EQ(value("if(x < y or x >= 1, 5, 6)"), 6);
  EXPECT_NEAR(value("mod(y, 1)"), 0.3, 1e-15);
  EXPECT_EQ(value("floor(y)"), -2);
}

TEST(Expr, SimplifyNeverChangesAValueOnTheDomain) {
  RandomExpr random(7, false);
  int compared = 0;
  for (int k = 0; k < 20000; ++k) {
    const Expr raw = random.number(5);
    const Expr simple = simplify(raw);
    std::array<double, 5> v{};
    for (double& c : v) c = random.uniform(-2, 2);
    const auto lookup = [&](const Symbol& symbol) {
      return symbol.kind == SymbolKind::state  ? v[static_cast<size_t>(symbol.index)]
             : symbol.kind == SymbolKind::time ? v[3]
                                               : v[4];
    };
    const auto parts = postorder(std::span(&raw, 1));
    const auto has_value = [&](const Expr& e) {
      // On its branch cut atan2 depends on the sign of zero.
      if (e.op() == Op::atan2 && evaluate(e.argument(0), lookup) == 0) return false;
      return std::isfinite(evaluate(e, lookup));
    };
    const bool defined = std::all_of(parts.begin(), parts.end(), has_value);
    if (!defined) continue;
    const double before = evaluate(raw, lookup), after = evaluate(simple, lookup);
    ++compared;
    EXPECT_EQ(before, after) << print(raw) << "\n" << print(simple);
    if (before != after) break;
  }
  EXPECT_GT(compared, 5000);
}

TEST(Expr, SimplifyIsFinishedAfterOnePass) {
  RandomExpr random(11, false);
  for (int k = 0; k < 5000; ++k) {
    const Expr once = simplify(random.number(5));
    EXPECT_EQ(simplify(once), once) << print(once);
  }
}

// Nesting as deep as only a machine writes it. Every kind of nesting goes through everything.
class Deep : public ::testing::TestWithParam<std::tuple<int, std::string>> {};

TEST_P(Deep, NestingIsOrdinary) {
  const int depth = std::get<0>(GetParam());
  const std::string kind = std::get<1>(GetParam());
  std::string text;
  const auto repeat = [&](const std::string& part) {
    for (int i = 0; i < depth; ++i) text += part;
  };
  if (kind == "brackets") {
    repeat("(");
    text += "x";
    repeat(")");
  } else if (kind == "calls") {
    repeat("sin(");
    text += "x";
    repeat(")");
  } else if (kind == "minus") {
    text += "x*";
    repeat("-");
    text += "y";
  } else if (kind == "sums") {
    text += "x";
    repeat(" + y");
  } else if (kind == "right") {
    repeat("y + (");
    text += "x";
    repeat(")");
  } else if (kind == "powers") {
    text += "x";
    repeat("^y");
  } else if (kind == "ifs") {
    repeat("if(x > 0, y, ");
    text += "x";
    repeat(")");
  } else if (kind == "nots") {
    text += "if(";
    repeat("not ");
    text += "x > 0, 1, 2)";
  }
  Expr e = parsed(text);
  EXPECT_EQ(parsed(print(e)), e);
  EXPECT_GT(print_latex(e).size(), 0u);
  EXPECT_EQ(at(e, 1, 0.5), at(simplify(e), 1, 0.5));
  const double slope = at(differentiate(e, x), 0.7, 0.5);
  if (kind == "sums" || kind == "right" || kind == "brackets") {
    EXPECT_EQ(slope, 1);
  } else if (kind == "minus") {
    EXPECT_EQ(slope, depth % 2 ? -0.5 : 0.5);
  }
  EXPECT_EQ(substitute(e, {{x, y}, {y, x}}) == e, false);
  e = 0.0;
}

std::string deep_name(const ::testing::TestParamInfo<Deep::ParamType>& which) {
  return std::get<1>(which.param) + std::to_string(std::get<0>(which.param));
}
INSTANTIATE_TEST_SUITE_P(Formulas, Deep,
                         ::testing::Combine(::testing::Values(10000),
                                            ::testing::Values("brackets", "calls", "minus", "sums", "right", "powers",
                                                              "ifs", "nots")),
                         deep_name);
INSTANTIATE_TEST_SUITE_P(Monsters, Deep,
                         ::testing::Combine(::testing::Values(200000), ::testing::Values("brackets", "minus", "sums")),
                         deep_name);

TEST(Expr, SharedPartsCostOnce) {
  Expr e = x;
  for (int i = 0; i < 200; ++i) e = e * e + y;  // 2^200 operations if written out
  EXPECT_TRUE(std::isfinite(at(e, 0.1, 0.1)));
  EXPECT_EQ(simplify(e), e);
  EXPECT_TRUE(std::isfinite(at(differentiate(e, x), 0.1, 0.1)));
  EXPECT_FALSE(depends_on(substitute(e, {{x, y}}), x));
}

TEST(Expr, ThreadsMayBuildTheSameFormulas) {
  const auto build = [](unsigned seed) {
    RandomExpr random(seed, false);
    std::vector<Expr> out;
    for (int k = 0; k < 300; ++k) {
      const Expr e = random.number(6);
      out.push_back(simplify(e));
      out.push_back(differentiate(simplify(e), random.symbols()[0]));
    }
    return out;
  };
  const std::vector<Expr> expected = build(3);
  std::vector<std::vector<Expr>> results(8);
  {
    std::vector<std::jthread> threads;
    for (auto& result : results) {
      threads.emplace_back([&] {
        for (int round = 0; round < 3; ++round) result = build(3);
      });
    }
  }
  for (const auto& result : results) {
    ASSERT_EQ(result.size(), expected.size());
    for (size_t i = 0; i < result.size(); ++i) EXPECT_EQ(result[i].node(), expected[i].node());
  }
}

TEST(Expr, ThreadsMayDropWhatOthersAreMaking) {
  std::vector<std::jthread> threads;
  for (int k = 0; k < 4; ++k) {
    threads.emplace_back([] {
      for (int i = 0; i < 20000; ++i) {
        const Expr e = make(Op::sin, x + Expr(i % 7)) * y;
        EXPECT_EQ(e.argument(0).argument(0).size(), i % 7 == 0 ? 0u : 2u);
      }
    });
  }
}

}  // namespace
}  // namespace saltus
