#include "expr/parse.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "expr/letters.hpp"
#include "expr/print.hpp"
#include "random_expr.hpp"

namespace saltus {
namespace {

using testing::parsed;

double value(const std::string& text, double x = 0) {
  return evaluate(parsed(text), [&](const Symbol&) { return x; });
}

/// The complaint about a text: "line:column+length message".
std::string complaint(const std::string& text) {
  try {
    parsed(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::model);
    return std::to_string(error.place().column) + "+" + std::to_string(error.place().length) + " " + error.message();
  }
  return "no complaint";
}

TEST(Parse, PowersBindTighterThanMinus) {
  EXPECT_EQ(value("-x^2", 3), -9);
  EXPECT_EQ(value("(-x)^2", 3), 9);
  EXPECT_EQ(value("-2^2"), -4);
  EXPECT_EQ(value("2*-x^2", 3), -18);
  EXPECT_EQ(value("1 - -x^2", 3), 10);
}

TEST(Parse, PowersGroupFromTheRight) {
  EXPECT_EQ(value("2^3^2"), 512);
  EXPECT_EQ(value("(2^3)^2"), 64);
  EXPECT_EQ(value("2^-x^2", 1), 0.5);
  EXPECT_EQ(value("2^-x^2", 2), 1.0 / 16);
  EXPECT_EQ(value("2^-1*8"), 4);
}

TEST(Parse, SumsAndProductsGroupFromTheLeft) {
  EXPECT_EQ(value("10 - 3 - 2"), 5);
  EXPECT_EQ(value("16/4/2"), 2);
  EXPECT_EQ(value("16/4*2"), 8);
  EXPECT_EQ(value("1 + 2*3 - 4/2"), 5);
  EXPECT_EQ(value("-2*3"), -6);
  EXPECT_EQ(value("--3"), 3);
  EXPECT_EQ(value("+3"), 3);
  EXPECT_EQ(value("max(+1, -1)"), 1);
}

TEST(Parse, NotBindsTighterThanAndThanOr) {
  EXPECT_EQ(parsed("if(x > 0 or y > 0 and z > 0, 1, 2)"), parsed("if(x > 0 or (y > 0 and z > 0), 1, 2)"));
  EXPECT_EQ(parsed("if(not x > 0 and y > 0, 1, 2)"), parsed("if((not (x > 0)) and y > 0, 1, 2)"));
  EXPECT_EQ(parsed("if(not not x > 0, 1, 2)"), parsed("if(not (not (x > 0)), 1, 2)"));
  EXPECT_EQ(parsed("if(x + 1 > y*2, 1, 2)"), parsed("if((x + 1) > (y*2), 1, 2)"));
  EXPECT_EQ(value("if(1 > 2 or not 1 > 2 and 2 >= 2, 1, 0)"), 1);
}

TEST(Parse, ReadsNumbersAsPeopleWriteThem) {
  EXPECT_EQ(value("1e-3"), 1e-3);
  EXPECT_EQ(value("1E3"), 1e3);
  EXPECT_EQ(value("1.5e+2"), 150);
  EXPECT_EQ(value(".5"), 0.5);
  EXPECT_EQ(value("5."), 5);
  EXPECT_EQ(value("007"), 7);
  EXPECT_EQ(value("0.1"), 0.1);
  EXPECT_EQ(value("2*e"), 2 * std::exp(1.0));
  EXPECT_EQ(value("1e-400"), 0) << "below the smallest number";
  EXPECT_EQ(value("4.9406564584124654e-324"), 4.9406564584124654e-324);
  EXPECT_EQ(value("1e-310"), 1e-310);
  EXPECT_EQ(complaint("2 + 1e999"), "5+5 the number '1e999' is too large");
  EXPECT_EQ(complaint("1e99999999999999999999"), "1+22 the number '1e99999999999999999999' is too large");
  EXPECT_EQ(complaint("2x"), "1+2 '2x' is neither a number nor a name");
  EXPECT_EQ(complaint("2 x"), "3+1 an operator is missing before 'x'");
  EXPECT_EQ(complaint("1.2.3"), "4+2 an operator is missing before '.3'");
}

TEST(Parse, NamesMayHaveAnyLetters) {
  EXPECT_EQ(parsed("ω*2", {"ω"}).argument(0).symbol().name, "ω");
  EXPECT_TRUE(is_name("v_1"));
  EXPECT_TRUE(is_name("_x"));
  EXPECT_FALSE(is_name("1x"));
  EXPECT_FALSE(is_name(""));
  EXPECT_FALSE(is_name("a b"));
}

TEST(Parse, KnowsItsReservedNames) {
  for (const char* name : {"t", "pi", "e", "sin", "sign", "if", "mod", "and", "or", "not"}) {
    EXPECT_TRUE(is_reserved_name(name)) << name;
  }
  EXPECT_FALSE(is_reserved_name("x"));
  EXPECT_TRUE(is_function_name("floor"));
  EXPECT_FALSE(is_function_name("pi"));
}

TEST(Parse, ComplainsAtTheRightPlace) {
  EXPECT_EQ(complaint(""), "1+1 a formula is missing here");
  EXPECT_EQ(complaint("x +"), "3+1 nothing follows '+'");
  EXPECT_EQ(complaint("x + omga"), "5+4 unknown name 'omga'");
  EXPECT_EQ(complaint("x ** 2"), "3+2 '**' is not an operator");
  EXPECT_EQ(complaint("x && y"), "3+2 '&&' is not an operator");
  EXPECT_EQ(complaint("if(x == y, 1, 2)"), "6+2 '==' is not an operator");
  EXPECT_EQ(complaint("x)"), "2+1 a closing bracket without its opening one");
  EXPECT_EQ(complaint("(x + y"), "7+1 a closing bracket ')' is missing");
  EXPECT_EQ(complaint("sin(x + y"), "10+1 a closing bracket ')' is missing");
  EXPECT_EQ(complaint("()"), "2+1 a value is missing before ')'");
  EXPECT_EQ(complaint("x*/y"), "3+1 a value is missing before '/'");
  EXPECT_EQ(complaint("sin()"), "1+5 'sin' has no argument here instead of one");
  EXPECT_EQ(complaint("atan2(x)"), "1+8 'atan2' has one argument here instead of two");
  EXPECT_EQ(complaint("y + if(x > 0, 1)"), "5+12 'if' has two arguments here instead of three");
  EXPECT_EQ(complaint("if(x, 1, 2)"), "4+1 'if' needs a comparison here");
  EXPECT_EQ(complaint("1 + (x > y)"), "5+7 a comparison where a number is needed");
  EXPECT_EQ(complaint("x > y"), "1+5 a comparison where a number is needed");
  EXPECT_EQ(complaint("if(0 < x < 1, 1, 2)"), "4+7 comparisons cannot be chained");
  EXPECT_EQ(complaint("x and y"), "1+1 'and' needs a comparison here");
  EXPECT_EQ(complaint("sgn(x)"), "1+3 unknown function 'sgn'");
  EXPECT_EQ(complaint("x(1)"), "1+1 'x' is not a function");
  EXPECT_EQ(complaint("sin + 1"), "1+3 'sin' is a function");
  EXPECT_EQ(complaint("1,5"), "2+1 a comma outside of a function call");
  EXPECT_EQ(complaint("x'"), "1+2 there is no x'");
  EXPECT_EQ(complaint("x[1]"), "1+4 'x' has no index");
  EXPECT_EQ(complaint("2*[x]"), "3+1 '[' stands only after a name");
  EXPECT_EQ(complaint("x[1"), "2+1 this index is not closed");
  EXPECT_EQ(complaint("q[1]"), "1+4 unknown name 'q[1]'");
  EXPECT_EQ(complaint("é*sin(q)"), "1+1 unknown name 'é'");
  EXPECT_EQ(complaint("x + “y”"), "5+1 '“' is not used in formulas");
  EXPECT_EQ(complaint("x − y"), "3+1 '−' is not used in formulas");
  EXPECT_EQ(complaint("x²"), "2+1 '²' is not used in formulas");
}

TEST(Parse, AForbiddenNameSaysWhy) {
  Names names;
  names.forbid("t", "a parameter is constant");
  try {
    parse(whole_text("formula", "2*t"), names);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.hint(), "a parameter is constant");
    EXPECT_EQ(error.place().column, 3);
  }
}

TEST(Parse, SuggestsTheNameThatWasMeant) {
  Names names;
  names.add("omega", 1.0, "a parameter");
  EXPECT_EQ(names.suggestion("omga"), "did you mean 'omega' (a parameter)?");
  EXPECT_EQ(names.suggestion("zzz").find("did you mean"), std::string::npos);
}

}  // namespace
}  // namespace saltus
