// What people write: parameters as formulas, functions, indexed equations, labels, names.
#include <chrono>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "expr/print.hpp"
#include "model/order.hpp"
#include "model/read.hpp"

namespace saltus {
namespace {

Model with(const std::string& equations, const std::string& rest) {
  return read_model_text("equations = \"\"\"\n" + equations + "\n\"\"\"\n" + rest, "m.toml");
}

std::string complaint(const std::string& equations, const std::string& rest) {
  try {
    with(equations, rest);
  } catch (const Error& error) {
    return fmt::format("{}:{} {} | {}", error.place().line, error.place().column, error.message(), error.hint());
  }
  return "no complaint";
}

void expect_begins(const std::string& text, const std::string& head) { EXPECT_EQ(text.substr(0, head.size()), head); }

std::vector<std::string> switch_names(const Model& m) {
  std::vector<std::string> names;
  for (const Switch& s : m.form.switches) names.push_back(s.name);
  return names;
}

// ---- parameters ----------------------------------------------------------------------------------------------------

TEST(Parameters, MayBeFormulasOfOthersInAnyOrder) {
  const Model m = with("x' = -x + sin(omega*t)",
                       "[parameters]\nT = \"2*P\"\nP = \"2*pi/omega\"\nomega = 4\n"
                       "[initial]\nx = \"T\"\n[run]\nuntil = \"10*T\"");
  const double pi = 3.141592653589793;
  EXPECT_EQ(parameter_values(m), (std::vector<double>{pi, pi / 2, 4}));
  const std::vector<GivenParameter> given{{.parameter = 2, .value = 1}};
  EXPECT_EQ(parameter_values(m, given), (std::vector<double>{4 * pi, 2 * pi, 1})) << "what depends on omega follows it";
  const std::vector<GivenParameter> both{{.parameter = 2, .value = 1}, {.parameter = 1, .value = 5}};
  EXPECT_EQ(parameter_values(m, both), (std::vector<double>{10, 5, 1})) << "a number replaces a formula";
  EXPECT_TRUE(same_model(m, read_model_text(write_model(m))));
}

TEST(Parameters, InACircleShowTheCircle) {
  EXPECT_EQ(
      complaint("x' = a", "[parameters]\na = \"b + 1\"\nb = \"2*c\"\nc = \"a\"\n[initial]\nx = 0"),
      "5:6 the parameter 'a' is given by itself: a -> b -> c -> a | break the circle: give one of them as a number");
}

TEST(Parameters, AreNoFormulasOfStates) {
  expect_begins(complaint("x' = a", "[parameters]\na = \"2*x\"\n[initial]\nx = 0"), "5:8 'x' cannot be used he");
}

TEST(NamedQuantities, OfParametersStandWhereConstantsMay) {
  const Model m = with(
      "q' = v\n v' = -g + N - F*sign(v, ratio)\n T = 2*half\n half = pi/w\n e0 = c/2\n ratio = 1 + c\n"
      " rest = e0",
      "[parameters]\nw = 2\nc = 1\ng = 9.81\nF = 1\n[initial]\nq = \"T\"\nv = 0\n[section.s]\nevery = \"T/2\"\n"
      "[jump.j]\nevery = \"T\"\nphase = \"half\"\nset = { v = 0 }\n"
      "[constraint.N]\ngap = \"q\"\nrestitution = \"rest\"\n[run]\nfrom = \"T\"\nuntil = \"10*T\"");
  EXPECT_EQ(print(m.sections[0].value), "2*(pi/w)/2");
  EXPECT_EQ(print(*m.jumps[0].phase), "pi/w");
  EXPECT_DOUBLE_EQ(constant_value(*m.run.until, parameter_values(m)), 10 * 3.141592653589793);
  EXPECT_EQ(print(m.form.switches[0].hold), "1 + c");
  EXPECT_TRUE(m.unused.empty());
  EXPECT_TRUE(same_model(m, read_model_text(write_model(m))));
}

TEST(NamedQuantities, ThatChangeAreNoConstants) {
  EXPECT_EQ(
      complaint("x' = -x\n d = 2*x", "[initial]\nx = \"d\""),
      "6:6 'd' cannot be used here | numbers, parameters and names that depend on parameters only can be used here");
}

TEST(NamedQuantities, GiveSurfacesTheirNames) {
  const Model m = with("v' = -sign(slip) - abs(v)\n slip = v - vdr\n w' = if(level > 2, -1, 1)\n level = w + v",
                       "[parameters]\nvdr = 1\n[initial]\nv = 0\nw = 0");
  EXPECT_EQ(switch_names(m), (std::vector<std::string>{"slip", "v", "level - 2"}));
  EXPECT_EQ(print(m.form.switches[0].surface), "v - vdr");
}

// ---- names ---------------------------------------------------------------------------------------------------------

TEST(Names, MayHaveLettersOfAnyScript) {
  const Model m = with("φ1' = ω*φ1\n скорость = φ1^2", "[parameters]\n\"ω\" = 2\n[initial]\n\"φ1\" = 1");
  EXPECT_EQ(m.states[0].name, "φ1");
  EXPECT_EQ(print(m.form.f[0]), "ω*φ1");
  EXPECT_TRUE(same_model(m, read_model_text(write_model(m))));
  expect_begins(complaint("x' = √x", "[initial]\nx = 1"), "2:6 unexpected character '√' | ");
  expect_begins(complaint("x→' = 1", "[initial]\nx = 1"), "2:1 'x→' is not a n");
}

TEST(Names, OfSectionsAndJumpsHaveTheirOwnSpace) {
  const Model m = with("x' = 1\n step_size = 1",
                       "[initial]\nx = 0\n[jump.heel]\non = \"x - 1\"\nset = { x = 0 }\n"
                       "[section.heel]\non = \"heel\"\n[section.step]\non = \"x\"\n[jump.x]\n"
                       "every = 2\nset = { x = 1 }");
  EXPECT_EQ(m.sections[0].kind, Section::Kind::jump);
  EXPECT_EQ(m.sections[1].name, "step");
  EXPECT_EQ(m.sections[1].kind, Section::Kind::jump) << "a jump or constraint of that name comes before a state";
  EXPECT_TRUE(same_model(m, read_model_text(write_model(m))));
}

TEST(Names, ThatNothingUsesAreNoted) {
  const Model m = with(
      "x' = -k*x\n energy = x^2\n half = h0/2\n f(u) = q*u\n y[i]' = 0 for i = 1..N\n d[i] = y[i] for i = 1..N"
      "\n e1 = d[1]\n z' = e1",
      "[parameters]\nk = 1\nomga = 2\nh0 = 4\nq = 1\nN = 3\n[initial]\nx = 0\nz = 0\n\"y[i]\" = 0\n"
      "[run]\nuntil = \"half\"");
  EXPECT_EQ(m.unused, (std::vector<std::string>{"omga", "energy"}));
}

TEST(Labels, BelongToKnownNames) {
  const Model m =
      with("y' = -y\n e2 = y^2", "[initial]\ny = 1\n[labels]\ny = \"displacement (m)\"\nt = \"time (s)\"\ne2 = \"\"");
  EXPECT_EQ(label_of(m, "y"), "displacement (m)");
  EXPECT_EQ(label_of(m, "t"), "time (s)");
  EXPECT_EQ(label_of(m, "v"), "v");
  EXPECT_TRUE(same_model(m, read_model_text(write_model(m))));
  EXPECT_EQ(complaint("yy' = -yy", "[initial]\nyy = 1\n[labels]\nyz = \"displacement\""),
            "7:1 a label for 'yz', which is no name of the model | did you mean 'yy' (a state)?");
}

// ---- functions -----------------------------------------------------------------------------------------------------

TEST(Functions, OfTheUserAreUsedBeforeAndAfter) {
  const Model m = with("x' = f(x, 2) + g(1)\n f(u, w) = u^2/(1 + w)\n g(x) = f(x + a, x)\n y' = f(-x, x)",
                       "[parameters]\na = 3\n[initial]\nx = 0\ny = \"g(2)\"\n[section.s]\nevery = \"f(2, 1)\"");
  EXPECT_EQ(print(m.states[0].rate), "x^2/(1 + 2) + (1 + a)^2/(1 + 1)") << "an argument hides a state of its name";
  EXPECT_EQ(print(m.states[1].rate), "(-x)^2/(1 + x)");
  EXPECT_EQ(print(m.states[1].initial), "(2 + a)^2/(1 + 2)");
  EXPECT_TRUE(same_model(m, read_model_text(write_model(m))));
}

TEST(Functions, MayBeNonsmoothAndNameTheirSurfaces) {
  const Model m = with("v' = -friction(v - 1) - friction(v)\n friction(u) = sign(u)/(1 + abs(u))", "[initial]\nv = 0");
  EXPECT_EQ(switch_names(m), (std::vector<std::string>{"v - 1", "v"}));
}

TEST(Functions, HaveTheirMistakes) {
  EXPECT_EQ(complaint("x' = f(x)\n f(u) = g(u)\n g(u) = 1 + f(u)", "[initial]\nx = 0"),
            "3:9 'f' calls itself: f -> g -> f | a function cannot be recursive");
  EXPECT_EQ(complaint("x' = f(x)\n f(u, w) = u + w", "[initial]\nx = 0"),
            "2:6 'f' has one argument here instead of two | write f(u, w)");
  EXPECT_EQ(complaint("x' = f(x)\n f(t) = t", "[initial]\nx = 0"),
            "3:4 't' cannot be an argument | write f = ...: names depend on time by themselves");
  EXPECT_EQ(complaint("x' = f(x)\n f(u, u) = u", "[initial]\nx = 0"),
            "3:7 two arguments are called 'u' | rename one of them");
  EXPECT_EQ(complaint("x' = f\n f(u) = u", "[initial]\nx = 0"), "2:6 'f' is a function | write f(...)");
  expect_begins(complaint("x' = 1\n f(u) = u*x", "[initial]\nx = \"f(1)\""), "6:6 this depends on 'x' | ");
  expect_begins(complaint("x' = x\n sin(u) = u", "[initial]\nx = 0"), "3:2 'sin' is a reserved name");
  std::string nested = "x";
  for (int i = 0; i < 30; ++i) nested = "f(" + nested + ")";
  EXPECT_NE(complaint("x' = " + nested + "\n f(u) = u + u^2", "[initial]\nx = 0").find("more than 2000000 terms"),
            std::string::npos);
}

TEST(Functions, OfSeveralArgumentsAndNewOnes) {
  const Model m = with("x' = max(x, y, 2, 3) - min(y, x, 1)\n y' = ceil(y) + round(x)", "[initial]\nx = 0\ny = 0");
  EXPECT_EQ(print(m.states[0].rate), "max(x, y, 2, 3) - min(y, x, 1)");
  EXPECT_EQ(print(m.states[1].rate), "-floor(-y) + floor(x + 0.5)");
  EXPECT_TRUE(same_model(m, read_model_text(write_model(m))));
}

// ---- many alike ----------------------------------------------------------------------------------------------------

const char* chain =
    "x[i]' = v[i]  for i = 1..N\n"
    "v[1]' = k*(x[2] - x[1]) - sign(v[1])\n"
    "v[i]' = k*(x[i+1] - 2*x[i] + x[i-1]) - sign(v[i])\n   for i = 2..N-1\n"
    "v[N]' = k*(x[N-1] - x[N]) - sign(v[N])\n"
    "energy = sum(v[j]^2/2 for j = 1..N)";
const char* chain_rest = "[parameters]\nN = 4\nk = 2\n[initial]\n\"x[i]\" = \"0.1*i\"\n\"x[2]\" = 5\n\"v[j]\" = 0\n";

TEST(IndexedEquations, StandForManyAlike) {
  const Model m = with(chain, chain_rest);
  EXPECT_EQ(m.state_names(),
            (std::vector<std::string>{"x[1]", "x[2]", "x[3]", "x[4]", "v[1]", "v[2]", "v[3]", "v[4]"}));
  EXPECT_EQ(print(m.states[5].rate), "k*(x[3] - 2*x[2] + x[1]) - sign(v[2])");
  EXPECT_EQ(print(m.states[7].rate), "k*(x[3] - x[4]) - sign(v[4])");
  EXPECT_EQ(print(m.definitions[0].value), "v[1]^2/2 + v[2]^2/2 + v[3]^2/2 + v[4]^2/2");
  const auto x0 = initial_values(m, parameter_values(m));
  EXPECT_EQ(x0, (std::vector<double>{0.1, 5, 0.1 * 3, 0.1 * 4, 0, 0, 0, 0})) << "a single index wins over all";
  EXPECT_EQ(switch_names(m), (std::vector<std::string>{"v[1]", "v[2]", "v[3]", "v[4]"}));
  EXPECT_EQ(m.structural, (std::vector<int>{0}));
  EXPECT_TRUE(m.unused.size() == 1 && m.unused[0] == "energy");
  EXPECT_TRUE(same_model(m, read_model_text(write_model(m)))) << write_model(m);
}

TEST(IndexedEquations, AreReadAnewForAnotherNumber) {
  const std::string text = "equations = \"\"\"\n" + std::string(chain) + "\n\"\"\"\n" + chain_rest;
  EXPECT_EQ(read_model_text(text, "m", {{"N", "50"}}).states.size(), 100u);
  EXPECT_EQ(read_model_text(text, "m", {{"k", "3"}}).states.size(), 8u);
}

TEST(IndexedEquations, TheIndexIsANumberInFormulas) {
  const Model m = with(
      "x[i]' = i*x[i] + if(i == 1, 0, x[i-1]) + if(i < N, x[i+1], 0)  for i = 1..N\n"
      "m[i] = 1 + 0.5*i for i = 1..N\n ring[i] = x[mod(i, N) + 1] for i = 1..N",
      "[parameters]\nN = 3\n[initial]\n\"x[i]\" = \"m[i]\"");
  EXPECT_EQ(print(m.states[0].rate), "1*x[1] + 0 + x[2]");
  EXPECT_EQ(print(m.states[2].rate), "3*x[3] + x[2] + 0");
  EXPECT_EQ(print(m.definitions[5].value), "x[1]");
  EXPECT_EQ(initial_values(m, parameter_values(m)), (std::vector<double>{1.5, 2, 2.5}));
}

TEST(IndexedEquations, TheIndexMayBeEqualToAParameter) {
  const Model m = with("x[i]' = if(i == 1, 0, x[i-1]) - if(i == N, 2, x[i+1]) + if(i != 2*N - 4, 7, 8)  for i = 1..N",
                       "[parameters]\nN = 3\n[initial]\n\"x[i]\" = 0");
  EXPECT_EQ(print(m.states[0].rate), "0 - x[2] + 7");
  EXPECT_EQ(print(m.states[1].rate), "x[1] - x[3] + 8");
  EXPECT_EQ(print(m.states[2].rate), "x[2] - 2 + 7");
  EXPECT_EQ(m.structural, (std::vector<int>{0}));
}

TEST(IndexedEquations, SumsMayUseTheOuterIndexAndBeEmpty) {
  const Model m = with(
      "x[i]' = sum(w*(x[j] - x[i]) for j = 1..N) + sum(x[k] for k = i+1..N) for i = 1..N\n"
      "all = sum(sum(i*j for i = 1..j) for j = 1..3)",
      "[parameters]\nN = 2\nw = 1\n[initial]\n\"x[i]\" = 0");
  EXPECT_EQ(print(m.states[0].rate), "w*(x[1] - x[1]) + w*(x[2] - x[1]) + x[2]");
  EXPECT_EQ(print(m.states[1].rate), "w*(x[1] - x[2]) + w*(x[2] - x[2]) + 0");
  EXPECT_EQ(constant_value(m.definitions[0].value, {}), 1 + 2 + 4 + 3 + 6 + 9);
}

TEST(IndexedEquations, ConstraintsJumpsAndSectionsMayHaveARange) {
  const Model m = with(
      "q[i]' = v[i] for i = 1..N\n v[i]' = -g + C[i] for i = 1..N\n count' = 0",
      "[parameters]\nN = 3\ng = 9.81\n[initial]\n\"q[i]\" = \"i\"\n\"v[i]\" = 0\ncount = 0\n"
      "[constraint.C]\nfor = \"i = 1..N\"\ngap = \"q[i]\"\nrestitution = \"0.1*i\"\n"
      "[jump.kick]\nfor = \"i = 2..N\"\non = \"q[i] - q[i-1]\"\nset = { \"v[i]\" = 0, \"v[j]\" = \"v[j] + 0.1*j\", "
      "count = \"count + i\" }\n"
      "[section.hit]\nfor = \"i = 1..N\"\non = \"C[i]\"\n[section.kicked]\non = \"kick[2]\"\n"
      "[section.half]\non = \"q[2] - 0.5\"");
  ASSERT_EQ(m.constraints.size(), 3u);
  EXPECT_EQ(m.constraints[2].name, "C[3]");
  EXPECT_EQ(print(m.constraints[2].gap), "q[3]");
  EXPECT_EQ(m.form.gaps[1].degree, 2);
  ASSERT_EQ(m.jumps.size(), 2u);
  EXPECT_EQ(m.jumps[0].name, "kick[2]");
  ASSERT_EQ(m.jumps[0].set.size(), 4u);
  EXPECT_EQ(print(m.jumps[0].set[0].value), "v[1] + 0.1*1");
  EXPECT_EQ(print(m.jumps[0].set[1].value), "0") << "a single index wins over all";
  EXPECT_EQ(print(m.jumps[1].set[3].value), "count + 3");
  ASSERT_EQ(m.sections.size(), 5u);
  EXPECT_EQ(m.sections[1].name, "hit[2]");
  EXPECT_EQ(m.sections[1].kind, Section::Kind::constraint);
  EXPECT_EQ(m.sections[1].index, 1);
  EXPECT_EQ(m.sections[3].kind, Section::Kind::jump);
  EXPECT_EQ(m.sections[4].kind, Section::Kind::on);
  EXPECT_TRUE(same_model(m, read_model_text(write_model(m)))) << write_model(m);
}

TEST(IndexedEquations, JumpsOfManyIndicesSetWhatTheirFormulaNames) {
  const Model m = with("x[i]' = 1 for i = 1..2\n y[i]' = 1 for i = 1..2",
                       "[initial]\n\"x[i]\" = 0\n\"y[i]\" = 0\n"
                       "[jump.a]\nfor = \"i = 1..2\"\non = \"x[i] - 1\"\n"
                       "set = { \"x[j]\" = \"x[j] + x[i]\", \"y[k]\" = \"2*y[k]\" }\n"
                       "[jump.b]\nfor = \"k = 1..2\"\non = \"y[k] - 1\"\nset = { \"x[j]\" = \"2*y[k]\" }");
  ASSERT_EQ(m.jumps.size(), 4u);
  EXPECT_EQ(print(m.jumps[1].set[0].value), "x[1] + x[2]");
  EXPECT_EQ(print(m.jumps[1].set[1].value), "x[2] + x[2]");
  EXPECT_EQ(print(m.jumps[0].set[3].value), "2*y[2]");
  EXPECT_EQ(print(m.jumps[1].set[2].value), "2*y[1]");
  EXPECT_EQ(print(m.jumps[2].set[1].value), "2*y[1]");
  EXPECT_EQ(print(m.jumps[3].set[0].value), "2*y[2]");
}

TEST(IndexedEquations, HaveTheirMistakes) {
  const std::string rest = "[parameters]\nN = 3\n[initial]\n\"x[i]\" = 0";
  EXPECT_EQ(
      complaint("x[i]' = x[i-1] for i = 1..N", rest),
      "2:9 there is no x[0] | x has the indices 1 to 3: let other lines say what holds at the ends, or choose with "
      "if(i > 1, ..., ...)");
  EXPECT_EQ(complaint("x[i]' = 0 for i = 1..N\n x[2]' = 1", rest),
            "3:2 'x[2]' is already a state | one equation for each index: ranges must not overlap");
  EXPECT_EQ(
      complaint("x[i]' = 0 for i = 2..N\n x[5]' = 1", rest),
      "2:1 there is no equation for x[4] | x has equations from 2 to 5: let a range or a line of its own cover 4");
  EXPECT_EQ(complaint("x[i]' = x for i = 1..N", rest),
            "2:9 'x' needs an index | write x[1] up to x[3], or x[i] with 'for i = ...'");
  EXPECT_EQ(complaint("x[i]' = x[i/2] for i = 1..N", rest), "2:11 the index is 0.5 | an index is a whole number");
  expect_begins(complaint("x[i]' = x[y] for i = 1..N\n y = 1", rest), "2:11 'y' cannot stand in an index ");
  expect_begins(complaint("x[i]' = 1 for i = 1..M", rest), "2:22 'M' cannot stand in an index ");
  EXPECT_EQ(complaint("x[i]' = 1 for i in 1..N", rest), "2:15 this is no range of an index | write i = 1..N");
  EXPECT_EQ(complaint("x[i]' = 1 for N = 1..3", rest),
            "2:15 'N' has a meaning already | choose another name for the index");
  EXPECT_EQ(complaint("x[i]' = 1 for i = 1..3\n i' = 0", rest + "\ni = 0"),
            "2:15 'i' has a meaning already | choose another name for the index");
  EXPECT_EQ(complaint("x' = 1 for i = 1..3", rest), "2:1 'x' has a range, but no index | write x[i]' = ...");
  EXPECT_EQ(
      complaint("x[i]' = 1 for i = 1..3\n x[4] = 2", rest),
      "3:2 'x[4]' is a name with an equation, and elsewhere a state | give all indices of a name a rate, or none");
  expect_begins(complaint("x[i]' = 1 for i = 1..3\n x = 2", rest), "3:2 'x' is already a stat");
  EXPECT_EQ(complaint("x[i]' = sum(x[j], j) for i = 1..3", rest),
            "2:9 this sum has no range | write sum(x[j] for j = 1..N)");
  expect_begins(complaint("x[i]' = sum(x[j] for i = 1..3) for i = 1..3", rest), "2:22 'i' has a meaning alr");
  expect_begins(complaint("x[i]' = if(x[i] == 1, 1, 2) for i = 1..3", rest), "2:17 '==' is not an operat");
  EXPECT_EQ(complaint("x[i]' = 1 for i = 1..3", "[parameters]\nN = 3\n[initial]\n\"x[7]\" = 0"),
            "7:2 an initial value for 'x[7]', which is no state | the indices of x are 1 to 3");
  expect_begins(
      complaint("x[i]' = 1 for i = 1..3", "[initial]\n\"x[1]\" = 0"),
      "2:1 the state 'x[2]' has no initial value | add \"x[i]\" = 0 (for all), or \"x[2]\" = 0, below [initial]");
  expect_begins(complaint("x[i]' = 1 for i = 1..1e9", rest), "2:18 this range is too lon");
}

TEST(OrderByUse, PutsWhatIsUsedFirstOrFindsTheCircle) {
  const UseOrder order = order_by_use({{1, 2}, {2}, {}, {0}});
  EXPECT_EQ(order.sequence, (std::vector<int>{2, 1, 0, 3}));
  EXPECT_TRUE(order.circle.empty());
  EXPECT_EQ(order_by_use({{1}, {2}, {1}}).circle, (std::vector<int>{1, 2}));
  EXPECT_EQ(order_by_use({{0}}).circle, (std::vector<int>{0}));
  std::vector<std::vector<int>> deep(200'000);
  for (size_t i = 0; i + 1 < deep.size(); ++i) deep[i].push_back(static_cast<int>(i + 1));
  EXPECT_EQ(order_by_use(deep).sequence.front(), 199'999);
}

}  // namespace
}  // namespace saltus
