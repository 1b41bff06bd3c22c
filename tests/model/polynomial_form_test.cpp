// Which formulas are constant multiples of each other, and which only look so.
#include "model/polynomial_form.hpp"

#include <gtest/gtest.h>

#include "expr/parse.hpp"
#include "model/read.hpp"

namespace saltus {
namespace {

/// c with a = c*b for surfaces of x, y, t with the parameters K = 3 and L = 3.
double factor(std::string_view a, std::string_view b) {
  const std::string text = "equations = \"\"\"\nx' = sign(" + std::string(a) + ")\ny' = 2*sign(" + std::string(b) +
                           ")\nz' = K + L\n\"\"\"\n[parameters]\nK = 3\nL = 3\n[initial]\nx = 0\ny = 0\nz = 0\n";
  const Model model = read_model_text(text);
  const std::vector<double> parameters = parameter_values(model);
  const auto& switches = model.form.switches;
  if (switches.size() < 2) return 1;
  return ratio(polynomial_form(switches[0].surface, parameters), polynomial_form(switches[1].surface, parameters));
}

TEST(PolynomialForms, OfMultiplesHaveTheirRatio) {
  EXPECT_DOUBLE_EQ(factor("K*x", "x"), 3);
  EXPECT_DOUBLE_EQ(factor("K*x - K*y", "y - x"), -3);
  EXPECT_DOUBLE_EQ(factor("(x - y)*(x + y)", "x^2 - y^2"), 1);
  EXPECT_DOUBLE_EQ(factor("(x/1e-9)^2 - 1", "x^2 - 1e-18"), 1e18);
  EXPECT_DOUBLE_EQ(factor("K*(x - 1) + 2*K*y", "(x + 2*y - 1)/2"), 6);
  EXPECT_DOUBLE_EQ(factor("sin(K*x) - t", "2*sin(L*x) - 2*t"), 0.5);
  EXPECT_DOUBLE_EQ(factor("x*y/K", "x*y"), 1.0 / 3);
  EXPECT_DOUBLE_EQ(factor("0.1*x + 0.2*x - K*0.1*y", "x - y"), 0.3);
}

TEST(PolynomialForms, OfOtherFunctionsHaveNone) {
  EXPECT_EQ(factor("exp(-10*(x - 4)^2) - 0.5", "exp(-10*(x - 6)^2) - 0.5"), 0);
  EXPECT_EQ(factor("tanh(30*(x - 4)) - 0.3", "tanh(30*(x - 6)) - 0.3"), 0);
  EXPECT_EQ(factor("x - 2e22", "x - 6e22"), 0);
  EXPECT_EQ(factor("K*(x - 1)", "x - 1.0000000001"), 0);
  EXPECT_EQ(factor("x", "x^3 + x"), 0);
  EXPECT_EQ(factor("x + 1e-14*y", "x"), 0);
  EXPECT_EQ(factor("1/(x - 1) - 2", "1/(x - 2) - 2"), 0);
}

TEST(PolynomialForms, OfLongProductsStayShort) {
  // (1 + x + y + t)^12 has 455 terms: it is one atom.
  EXPECT_DOUBLE_EQ(factor("K*(1 + x + y + t)^12 - K*y", "(1 + x + y + t)^12 - y"), 3);
}

}  // namespace
}  // namespace saltus
