#include "expr/print.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "random_expr.hpp"

namespace saltus {
namespace {

using testing::parsed;
using testing::RandomExpr;

std::string again(const std::string& text) { return print(parsed(text)); }

TEST(Print, ReadsBackToTheSameFormula) {
  RandomExpr random(5, false);
  const Names names = random.names();
  for (int k = 0; k < 30000; ++k) {
    const Expr e = random.number(6);
    const std::string text = print(e);
    ASSERT_EQ(parse(whole_text("printed", text), names), e) << text;
  }
}

TEST(Print, UsesAsFewBracketsAsNeeded) {
  for (const char* text : {"x + y*z",
                           "(x + y)*z",
                           "x - (y - z)",
                           "x - y - z",
                           "x/(y*z)",
                           "x/y/z",
                           "-x^2",
                           "(-x)^2",
                           "2^3^2",
                           "(2^3)^2",
                           "2^-x",
                           "-(x + y)",
                           "x - -y",
                           "-2*x",
                           "(-2)^x",
                           "sin(x + y)",
                           "if(x > 0 and not y > 0, 1, 2)",
                           "if(not (x > 0 and y > 0), 1, 2)",
                           "sign(v, 2)",
                           "sat(x, -1, 1)",
                           "x*(y/z)",
                           "-(x*y)",
                           "-x*y",
                           "1e-07",
                           "1e+30"}) {
    EXPECT_EQ(again(text), text);
  }
  EXPECT_EQ(again("((x))+((y*(z)))"), "x + y*z");
}

TEST(Print, NumbersReadBackBitForBit) {
  std::mt19937_64 random(3);
  for (int k = 0; k < 20000; ++k) {
    const double v = std::bit_cast<double>(random());
    if (!std::isfinite(v)) continue;
    const Expr back = parsed(print_number(v));
    ASSERT_EQ(std::bit_cast<uint64_t>(back.value()), std::bit_cast<uint64_t>(v)) << print_number(v);
  }
  for (const double v : {0.0, -0.0, 0.1, 1.0 / 3, 5e-324, std::numeric_limits<double>::max()}) {
    EXPECT_EQ(std::bit_cast<uint64_t>(parsed(print_number(v)).value()), std::bit_cast<uint64_t>(v));
  }
  EXPECT_EQ(print_number(0.1), "0.1");
  EXPECT_EQ(print_number(2), "2");
}

TEST(Print, AMinusZeroKeepsItsBrackets) {
  const Expr x = Expr::symbol(SymbolKind::state, 0, "x");
  const Expr e = Expr::raw(Op::pow, std::array{Expr(-0.0), x});
  EXPECT_EQ(print(e), "(-0)^x");
  EXPECT_EQ(parsed(print(e)), e);
}

TEST(PrintLatex, LooksAsOnPaper) {
  const auto latex = [](const std::string& text) { return print_latex(parsed(text)); };
  EXPECT_EQ(latex("x/y"), "\\frac{x}{y}");
  EXPECT_EQ(latex("(x + y)*z"), "\\left(x + y\\right) z");
  EXPECT_EQ(latex("x^(y + 1)"), "x^{y + 1}");
  EXPECT_EQ(latex("(x + 1)^2"), "\\left(x + 1\\right)^{2}");
  EXPECT_EQ(latex("sqrt(x)"), "\\sqrt{x}");
  EXPECT_EQ(latex("abs(x - y)"), "\\left|x - y\\right|");
  EXPECT_EQ(latex("sin(x)"), "\\sin\\left(x\\right)");
  EXPECT_EQ(latex("sign(x)"), "\\operatorname{sign}\\left(x\\right)");
  EXPECT_EQ(latex("2*pi"), "2 \\pi");
  EXPECT_EQ(latex("1e-9*x"), "1 \\cdot 10^{-9} x");
  EXPECT_EQ(latex("if(x > 0, 1, -1)"), "\\begin{cases} 1 & x > 0 \\\\ -1 & \\text{else} \\end{cases}");
}

TEST(PrintLatex, NeverLetsAFactorLookLikeADifference) {
  const auto latex = [](const std::string& text) { return print_latex(parsed(text)); };
  EXPECT_EQ(latex("x*-y"), "x \\left(-y\\right)");
  EXPECT_EQ(latex("x*-2"), "x \\cdot \\left(-2\\right)");
  EXPECT_EQ(latex("x - -y"), "x - \\left(-y\\right)");
  EXPECT_EQ(latex("2*3"), "2 \\cdot 3");
}

TEST(PrintLatex, BracketsAndBracesAreBalanced) {
  RandomExpr random(9, false);
  for (int k = 0; k < 3000; ++k) {
    const std::string text = print_latex(random.number(5));
    int braces = 0, pairs = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      braces += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
      pairs += text.compare(i, 5, "\\left") == 0 && text.compare(i, 8, "\\leftarr") != 0 ? 1 : 0;
      pairs -= text.compare(i, 6, "\\right") == 0 ? 1 : 0;
      ASSERT_GE(braces, 0) << text;
    }
    ASSERT_EQ(braces, 0) << text;
    ASSERT_EQ(pairs, 0) << text;
  }
}

TEST(PrintLatex, NamesBecomeGreekWithSubscripts) {
  EXPECT_EQ(latex_name("omega"), "\\omega");
  EXPECT_EQ(latex_name("x1"), "x_{1}");
  EXPECT_EQ(latex_name("omega_0"), "\\omega_{0}");
  EXPECT_EQ(latex_name("Fstick"), "\\mathrm{Fstick}");
  EXPECT_EQ(latex_name("v_max_2"), "v_{max\\_2}");
  EXPECT_EQ(latex_name("x"), "x");
}

}  // namespace
}  // namespace saltus
