#include "model/lower.hpp"

#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "expr/diff.hpp"
#include "expr/print.hpp"
#include "model/model_builder.hpp"
#include "model/read.hpp"
#include "model/start.hpp"
#include "model_files.hpp"

namespace saltus {
namespace {

using saltus::testing::random_values;
using saltus::testing::Values;

bool has_rate(const std::string& equations, const std::string& state) {
  const std::string text = " " + equations;
  return text.find(" " + state + "' =") != std::string::npos || text.find("\n" + state + "' =") != std::string::npos;
}

/// A model with states x, y, v (rates 0 unless given) and parameters a = 2, b = 3.
Model model_of(const std::string& equations, const std::vector<std::string>& more = {}) {
  ModelBuilder builder("test");
  std::string text;
  for (const char* state : {"x", "y", "v"}) {
    if (!has_rate(equations, state)) text += fmt::format("{}' = 0\n", state);
    builder.initial(state, 0.5);
  }
  for (const std::string& state : more) builder.initial(state, 0.5);
  return builder.equations(equations + "\n" + text).parameter("a", 2).parameter("b", 3).build();
}

std::vector<std::string> names(const Model& m) {
  std::vector<std::string> out;
  for (const Switch& s : m.form.switches) out.push_back(s.name);
  return out;
}

std::string rate(const Model& m, size_t i = 0) { return print(m.form.f[i]); }

using NameList = std::vector<std::string>;

TEST(Lower, SignIsASwitch) {
  const Model m = model_of("x' = -a*sign(v)");
  EXPECT_EQ(names(m), NameList{"v"});
  EXPECT_EQ(rate(m), "-(a*sgn(v))");
  EXPECT_FALSE(m.form.switches[0].holds);
  EXPECT_EQ(m.form.switches[0].acts_on, std::vector<int>{0});
}

/// Checks that a formula lowers to `value(sigma)` for each combination of its switches.
void expect_values(const std::string& formula, const Values& at,
                   const std::vector<std::pair<std::vector<double>, double>>& table) {
  const Model m = model_of("x' = " + formula);
  for (const auto& [sigma, expected] : table) {
    ASSERT_EQ(sigma.size(), m.form.switches.size()) << formula;
    Values v = at;
    v.sigma = sigma;
    EXPECT_DOUBLE_EQ(evaluate(m.form.f[0], v), expected) << formula << " -> " << rate(m);
  }
}

TEST(Lower, EveryNonsmoothFunctionIsArithmeticWithItsSwitches) {
  const Values at{.x = {0.25, 4, -7}, .p = {2, 3}};
  expect_values("sign(v)", at, {{{1}, 1}, {{-1}, -1}});
  expect_values("abs(v)", at, {{{1}, -7}, {{-1}, 7}});
  expect_values("step(v)", at, {{{1}, 1}, {{-1}, 0}});
  expect_values("min(x, y)", at, {{{1}, 4}, {{-1}, 0.25}});
  expect_values("max(x, y)", at, {{{1}, 0.25}, {{-1}, 4}});
  expect_values("sat(v, -1, 2)", at, {{{-1, -1}, -1}, {{1, -1}, -7}, {{1, 1}, 2}});
  expect_values("if(x > y, 10, 20)", at, {{{1}, 10}, {{-1}, 20}});
  expect_values("if(x < y, 10, 20)", at, {{{1}, 10}, {{-1}, 20}});
  expect_values("if(not x >= y, 10, 20)", at, {{{1}, 20}, {{-1}, 10}});
  expect_values("if(x > 0 and y > 0, 1, 0)", at, {{{1, 1}, 1}, {{1, -1}, 0}, {{-1, 1}, 0}, {{-1, -1}, 0}});
  expect_values("if(x > 0 or y > 0, 1, 0)", at, {{{1, 1}, 1}, {{1, -1}, 1}, {{-1, 1}, 1}, {{-1, -1}, 0}});
  expect_values("exp(sign(v))", at, {{{1}, std::exp(1.0)}, {{-1}, std::exp(-1.0)}});
}

TEST(Lower, AndIsTheProductBetweenTheSidesToo) {
  const Model m = model_of("x' = if(x > 0 and y > 0, 1, 0)");
  Values v{.x = {0, 0, 0}, .p = {2, 3}};
  v.sigma = {0.5, -0.2};
  EXPECT_DOUBLE_EQ(evaluate(m.form.f[0], v), 0.75 * 0.4);
}

TEST(Lower, KinksAreWhatEntersContinuouslyOnly) {
  for (const char* rate : {"abs(x)", "max(x, y)", "min(x, 1)", "sat(x, -1, 1)", "abs(abs(x))", "sqrt(abs(x))"}) {
    for (const Switch& s : model_of(fmt::format("x' = {}", rate)).form.switches) EXPECT_TRUE(s.kink) << rate;
  }
  for (const char* rate :
       {"sign(x)", "step(x)", "if(x > 0, 1, 2)", "abs(x) + sign(x)", "max(x, 0)*step(x)", "floor(x)"}) {
    for (const Switch& s : model_of(fmt::format("x' = {}", rate)).form.switches) EXPECT_FALSE(s.kink) << rate;
  }
}

TEST(Lower, EqualSurfacesShareOneSwitch) {
  EXPECT_EQ(names(model_of("x' = sign(v) + sign(-v) + sign(2*v) + sign(v/3) + abs(-v*0.5)")), NameList{"v"});
  EXPECT_EQ(names(model_of("x' = if(x > y, 1, 2) + if(y > x, 3, 4) + if(x < y, 5, 6) + sign(x - y)")),
            NameList{"x - y"});
  EXPECT_EQ(names(model_of("x' = sign(2*(x - y)) + sign(y - x) + sign(2*x - 2*y) + sign(-(x - y))")),
            NameList{"2*(x - y)"});
  EXPECT_EQ(names(model_of("x' = sign(x*y - 1) + sign(2 - 2*y*x)")), NameList{"x*y - 1"});
  EXPECT_EQ(names(model_of("x' = sign(x^2) + sign(x*x)")), NameList{"x^2"});
  EXPECT_EQ(names(model_of("x' = sign(pi*v) + sign(v)")), NameList{"pi*v"});
}

TEST(Lower, SharedSwitchesKeepTheirSign) {
  const Model m = model_of("x' = sign(v)\n y' = sign(-2*v)\n v' = if(0 > v, 1, 0)");
  Values at{.x = {0, 0, 0}, .p = {2, 3}, .sigma = {1}};
  EXPECT_EQ(evaluate(m.form.f[0], at), 1);
  EXPECT_EQ(evaluate(m.form.f[1], at), -1);
  EXPECT_EQ(evaluate(m.form.f[2], at), 0);
}

TEST(Lower, SurfacesAreSharedAfterDefinitionsAreSubstituted) {
  EXPECT_EQ(names(model_of("x' = sign(w) + sign(v - a)\n w = u - a\n u = v")), NameList{"w"});
  EXPECT_EQ(names(model_of("x' = sign(v - a) + sign(w)\n w = u - a\n u = v")), NameList{"v - a"});
}

TEST(Lower, AParameterFactorMakesAnotherSurface) {
  EXPECT_EQ(names(model_of("x' = sign(v) + sign(a*v)")), (NameList{"v", "a*v"}));
  EXPECT_EQ(names(model_of("x' = sign(v - 1) + sign(v - 2)")), (NameList{"v - 1", "v - 2"}));
  EXPECT_EQ(names(model_of("x' = sign(v^2) + sign(v)")), (NameList{"v^2", "v"}));
}

TEST(Lower, SwitchesAreNumberedAsTheyAppear) {
  EXPECT_EQ(names(model_of("x' = sign(y) + sign(x)\n v' = sign(v) + sign(x)")), (NameList{"y", "x", "v"}));
  EXPECT_EQ(names(model_of("x' = d + sign(y)\n d = sign(v)")), (NameList{"y", "v"}));
  EXPECT_EQ(names(model_of("x' = if(x > 0, d, 0) + sign(y)\n d = sign(v)")), (NameList{"x", "y", "v"}));
}

TEST(Lower, ASwitchIsNamedAsFirstWritten) {
  EXPECT_EQ(names(model_of("x' = if(x > y, 1, 2)")), NameList{"x - y"});
  EXPECT_EQ(names(model_of("x' = if(x < y, 1, 2)")), NameList{"y - x"});
  EXPECT_EQ(names(model_of("x' = if(x > 0, 1, 2)")), NameList{"x"});
  EXPECT_EQ(names(model_of("x' = sat(x, -a, a)")), (NameList{"x + a", "x - a"}));
}

TEST(Lower, ConstantSurfacesAreNoSwitches) {
  EXPECT_EQ(rate(model_of("x' = sign(3) + abs(-2) + max(1, 2) + if(1 > 2, x, y)")), "5 + y");
  EXPECT_TRUE(model_of("x' = sign(3 - 2*pi)*x").form.switches.empty());
}

TEST(Lower, AComparisonWithItselfIsDecided) {
  EXPECT_EQ(rate(model_of("x' = if(x > x, 1, 2) + if(y + 1 >= 1 + y, 10, 20)")), "12");
}

TEST(Lower, HoldingBelongsToTheSurface) {
  const Model m = model_of("x' = -sign(v, a/1.5)\n y' = -3*sign(2*v, a/1.5) + abs(v)");
  ASSERT_EQ(m.form.switches.size(), 1u);
  EXPECT_TRUE(m.form.switches[0].holds);
  EXPECT_EQ(print(m.form.switches[0].hold), "a/1.5");
  for (const char* bad : {"x' = sign(v, 2) + sign(v)", "x' = sign(v) + sign(v, 2)", "x' = sign(v, 2) + sign(-v, 3)",
                          "x' = sign(v, 2) + step(v)", "x' = if(v > 0, 1, 2)*sign(v, 2)", "x' = max(v, 0) + sign(v, 2)",
                          "x' = sign(v, 2) + sat(v, 0, 1)", "x' = sign(v, x)", "x' = sign(v, t)"}) {
    EXPECT_THROW(model_of(bad), Error) << bad;
  }
}

TEST(Lower, NestedSurfacesDependOnEarlierSwitchesOnly) {
  const Model m = model_of("x' = sign(x - sign(y + abs(v)))");
  EXPECT_EQ(names(m), (NameList{"v", "y + abs(v)", "x - sign(y + abs(v))"}));
  for (size_t i = 0; i < m.form.switches.size(); ++i) {
    for (const Expr& s : symbols_in(std::span(&m.form.switches[i].surface, 1))) {
      if (s.is_symbol(SymbolKind::sigma)) {
        EXPECT_LT(s.symbol().index, static_cast<int>(i));
      }
    }
  }
}

TEST(Lower, DefinitionsMayNestSurfacesDeeply) {
  std::string text = "x' = d0\n";
  int n = 10000;
  for (int i = 0; i < n; ++i) text += fmt::format("d{} = sign(d{} - x)\n", i, i + 1);
  text += fmt::format("d{} = y", n);
  EXPECT_EQ(model_of(text).form.switches.size(), static_cast<size_t>(n));
  n = 500;
  text = "x' = d0\n";
  for (int i = 0; i < n; ++i) text += fmt::format("d{} = if(y > {}, d{}, 1)\n", i, i, i + 1);
  text += fmt::format("d{} = y", n);
  EXPECT_EQ(model_of(text).form.switches.size(), static_cast<size_t>(n));
}

TEST(Lower, DefinitionsThatDoubleEachTimeCostOnce) {
  std::string text = "x' = sign(s60) + sign(m60)\n s0 = x - y\n m0 = x\n";
  for (int i = 0; i < 60; ++i) text += fmt::format("s{} = s{} + s{}\n m{} = m{}*m{}\n", i + 1, i, i, i + 1, i, i);
  const Model m = model_of(text + "z' = sign(x - y)", {"z"});
  EXPECT_EQ(names(m), (NameList{"s60", "m60"})) << "2^60*(x - y) is the surface x - y";
}

TEST(Lower, ModAndFloorCountTheirWraps) {
  const Model m = model_of("x' = mod(t, a) + floor(t/a) + mod(t + 1, a)");
  ASSERT_EQ(m.form.counters.size(), 2u);
  EXPECT_EQ(print(m.form.counters[0].phase), "t/a");
  EXPECT_EQ(print(m.form.counters[1].phase), "(t + 1)/a");
  EXPECT_EQ(m.form.visible, 0);
  ASSERT_EQ(m.form.switches.size(), 4u) << "the steps below and above of each";
  Values v{.x = {0, 0, 0}, .p = {2, 3}, .sigma = {1, -1, 1, -1}, .counter = {3, 4}, .t = 7.5};
  EXPECT_DOUBLE_EQ(evaluate(m.form.f[0], v), 1.5 + 3 + 0.5);
  EXPECT_TRUE(model_of("x' = mod(7, 2)").form.counters.empty());
  EXPECT_THROW(model_of("x' = mod(t, 0)"), Error);
  EXPECT_THROW(model_of("x' = mod(t, -a)"), Error);
}

TEST(Lower, SaysWhichSwitchesMultiplyEachOther) {
  const auto interacts = [](const std::string& text) {
    std::vector<std::vector<int>> out;
    for (const Switch& s : model_of(text).form.switches) out.push_back(s.interacts);
    return out;
  };
  using Lists = std::vector<std::vector<int>>;
  EXPECT_EQ(interacts("x' = sign(x) + 2*sign(y)"), (Lists{{}, {}}));
  EXPECT_EQ(interacts("x' = sign(x)*sign(y)"), (Lists{{1}, {0}}));
  EXPECT_EQ(interacts("x' = if(x > 0, if(y > 0, 1, 2), if(y > 0, 3, 4))"), (Lists{{}, {}})) << "1 - 2 - 3 + 4 = 0";
  EXPECT_EQ(interacts("x' = if(x > 0, if(y > 0, 1, 2), if(y > 0, 3, 5))"), (Lists{{1}, {0}}));
  EXPECT_EQ(interacts("x' = exp(sign(x) + sign(y))"), (Lists{{1}, {0}}));
  EXPECT_EQ(interacts("x' = sat(v, -1, 1)"), (Lists{{}, {}})) << "the ends of one saturation never meet";
  EXPECT_EQ(interacts("x' = abs(v)*sign(v)*x"), (Lists{{}}));
  EXPECT_EQ(interacts("x' = sign(x) + d\n d = sign(y)*sign(v)"), (Lists{{}, {2}, {1}}));
}

TEST(Lower, ManySwitchesInOneProductAreNoTrouble) {
  std::string left = "0", right = "0";
  for (int i = 0; i < 60; ++i) {
    left += fmt::format(" + sign(x - {})", i);
    right += fmt::format(" + sign(y - {})", i);
  }
  const Model m = model_of("x' = (" + left + ")*(" + right + ")");
  EXPECT_EQ(m.form.switches[0].interacts.size(), 60u);
}

TEST(Lower, KnowsWhichSwitchesChooseBetweenFormulas) {
  EXPECT_TRUE(model_of("x' = if(x > 0, sqrt(x), 0)").form.switches[0].selects);
  EXPECT_FALSE(model_of("x' = if(x > 0, a, -1)").form.switches[0].selects);
  EXPECT_FALSE(model_of("x' = sign(x)").form.switches[0].selects);
}

/// The written equations with definitions put in, evaluated with the nonsmooth functions themselves.
std::vector<Expr> written_rates(const Model& m) {
  ExprMap<Expr> values;
  for (size_t round = 0; round <= m.definitions.size(); ++round) {
    for (size_t i = 0; i < m.definitions.size(); ++i) {
      const Expr symbol = Expr::symbol(SymbolKind::definition, static_cast<int>(i), m.definitions[i].name);
      values.insert_or_assign(symbol, substitute(m.definitions[i].value, values));
    }
  }
  std::vector<Expr> out;
  for (const State& s : m.states) out.push_back(substitute(s.rate, values));
  return out;
}

/// Sets sigma and counters to what the point says; false on a surface or where something has no value.
bool set_switches(const Model& m, Values& v) {
  bool off_surfaces = true;
  for (size_t round = 0; round <= m.form.counters.size(); ++round) {  // each may depend on the others
    off_surfaces = true;
    for (const Counter& c : m.form.counters) {
      set_counter(c, count_at(c, evaluate(c.phase, v)), v.counter);
    }
    for (const int ordered : m.form.order) {
      const size_t i = static_cast<size_t>(ordered);
      const double h = evaluate(m.form.switches[i].surface, v);
      off_surfaces = off_surfaces && std::abs(h) > 1e-9;
      v.sigma[i] = h > 0 ? 1 : -1;
    }
    for (const VectorSwitch& unit : m.form.vectors) {  // slipping: sigma = h/|h|
      double size = 0;
      for (const int part : unit.parts) {
        size = std::hypot(size, evaluate(m.form.switches[static_cast<size_t>(part)].surface, v));
      }
      for (const int part : unit.parts) {
        const size_t i = static_cast<size_t>(part);
        v.sigma[i] = evaluate(m.form.switches[i].surface, v) / size;
      }
    }
  }
  return off_surfaces;
}

/// Off the surfaces the form is the written equations; unused sides may be undefined, so sigma is put in first.
int compare_with_written(const Model& m, std::mt19937& random, int points) {
  const std::vector<Expr> written = written_rates(m);
  int compared = 0;
  for (int k = 0; k < points; ++k) {
    Values v = random_values(m, random);
    if (!set_switches(m, v)) continue;
    ExprMap<Expr> sigma;
    for (size_t i = 0; i < v.sigma.size(); ++i) sigma.emplace(sigma_symbol(m.form, static_cast<int>(i)), v.sigma[i]);
    for (size_t i = 0; i < written.size(); ++i) {
      const double expected = evaluate(written[i], v);
      if (!std::isfinite(expected)) continue;
      const double lowered = evaluate(substitute(m.form.f[i], sigma), v);
      EXPECT_NEAR(lowered, expected, 1e-9 * (1 + std::abs(expected))) << m.name << "\n"
                                                                      << print(m.states[i].rate) << "\n"
                                                                      << print(m.form.f[i]);
      ++compared;
    }
  }
  return compared;
}

TEST(Lower, TheFormIsTheWrittenModelOffTheSurfaces) {
  std::mt19937 random(1);
  for (const std::string& path : saltus::testing::all_models()) {
    // Models whose surfaces vanish identically somewhere (flat_surface_*) have fewer points off them.
    EXPECT_GT(compare_with_written(read_model(path), random, 400), 20) << path;
    if (HasFailure()) break;
  }
}

std::string random_formula(std::mt19937& random, int depth);
std::string random_condition(std::mt19937& random, int depth) {
  const auto f = [&] { return random_formula(random, depth - 1); };
  switch (random() % 5) {
    case 0: return fmt::format("({} > {})", f(), f());
    case 1: return fmt::format("({} <= {})", f(), f());
    case 2: return fmt::format("(not {} > {})", f(), f());
    case 3: return fmt::format("({} > 0 and {} < 0)", f(), f());
    default: return fmt::format("({} >= 0 or {} < 0.1)", f(), f());
  }
}
std::string random_formula(std::mt19937& random, int depth) {
  const char* leaves[] = {"x", "y", "v", "t", "a", "b", "0.7", "-1.3", "x", "y", "v"};
  if (depth <= 0) return leaves[random() % std::size(leaves)];
  const auto f = [&] { return random_formula(random, depth - 1); };
  switch (random() % 14) {
    case 0: return fmt::format("({} + {})", f(), f());
    case 1: return fmt::format("({} - {})", f(), f());
    case 2: return fmt::format("{}*{}", f(), f());
    case 3: return fmt::format("sin({})", f());
    case 4: return fmt::format("exp(-abs({}))", f());
    case 5: return fmt::format("sign({})", f());
    case 6: return fmt::format("abs({})", f());
    case 7: return fmt::format("min({}, {})", f(), f());
    case 8: return fmt::format("max({}, {})", f(), f());
    case 9: return fmt::format("sat({}, -0.8, 0.9)", f());
    case 10: return fmt::format("step({})", f());
    case 11: return fmt::format("if({}, {}, {})", random_condition(random, depth), f(), f());
    case 12: return fmt::format("{}/(2 + sign({}))", f(), f());
    default: return fmt::format("mod({} + 9*t, b)", f());
  }
}

TEST(Lower, TheFormIsTheWrittenModelForRandomNestedModels) {
  std::mt19937 random(2);
  int compared = 0;
  for (int k = 0; k < 300 && !HasFailure(); ++k) {
    const Model m = model_of(fmt::format(
        "x' = {} + d1\ny' = {}*d2\nv' = {}\nd1 = {} - d2\nd2 = {}", random_formula(random, 3),
        random_formula(random, 2), random_formula(random, 3), random_formula(random, 2), random_formula(random, 2)));
    compared += compare_with_written(m, random, 10);
    EXPECT_TRUE(same_model(m, read_model_text(write_model(m))));
  }
  EXPECT_GT(compared, 3000);
}

Model contact(const std::string& equations, const std::string& gap, const std::string& restitution = "",
              const std::vector<std::string>& states = {"q", "v"}) {
  ModelBuilder builder("contact");
  for (const std::string& s : states) builder.initial(s, 1);
  return builder.equations(equations)
      .parameter("m", 2)
      .parameter("g", 9.81)
      .parameter("mu", 0.3)
      .constraint("N", gap, restitution)
      .build();
}

std::string direction(const Gap& gap) {
  std::string out;
  for (const Assignment& a : gap.direction) out += fmt::format("{}: {}; ", a.state, print(a.value));
  return out;
}

TEST(Degree, OfABouncingBallIsTwo) {
  const Model m = contact("q' = v\nv' = -g + N/m", "q", "0.8");
  EXPECT_EQ(m.form.gaps[0].degree, 2);
  EXPECT_EQ(direction(m.form.gaps[0]), "1: 1/m; ");
}

TEST(Degree, OfAMovingWallIsTwo) {
  EXPECT_EQ(contact("q' = v\nv' = -q + N", "q - sin(t)", "1").form.gaps[0].degree, 2);
}

TEST(Degree, OfADiodeInSeriesIsOne) {
  const Model m = contact("q' = (-v + N)/m\nv' = q", "q");
  EXPECT_EQ(m.form.gaps[0].degree, 1);
  EXPECT_EQ(direction(m.form.gaps[0]), "0: 1/m; ");
}

TEST(Degree, OfADiodeWithResistanceIsZero) {
  EXPECT_EQ(contact("q' = v\nv' = -q + N", "q + 0.3*N").form.gaps[0].degree, 0);
}

TEST(Degree, SeesTheDirectionOfCoulombFriction) {
  const Model m = contact("q' = v\nv' = -g + N\nx' = u\nu' = -mu*N*sign(u)", "q", "0.5", {"q", "v", "x", "u"});
  EXPECT_EQ(m.form.gaps[0].degree, 2);
  EXPECT_EQ(direction(m.form.gaps[0]), "1: 1; 3: -(mu*sgn(u)); ");
}

TEST(Degree, OfAVeryHeavyBodyIsStillTwo) {
  EXPECT_EQ(contact("q' = v\nv' = -g + N/(m*1e18)", "q", "0").form.gaps[0].degree, 2);
}

TEST(Degree, IsNotFooledByTermsThatCancel) {
  EXPECT_THROW(contact("q' = v + N - N\nv' = -g", "q"), Error);
  EXPECT_EQ(contact("q' = v + N - N\nv' = N", "q", "1").form.gaps[0].degree, 2);
}

TEST(Start, AcceptsAGapClosedUpToRounding) {
  const Model m = ModelBuilder("m")
                      .equations("q' = v\nv' = N")
                      .parameter("h", 0.3)
                      .initial("q", "0.1 + 0.2")
                      .initial("v", 0)
                      .constraint("N", "h - q", "0.5")
                      .build();
  const auto p = parameter_values(m);
  EXPECT_LT(p[0] - initial_values(m, p)[0], 0) << "0.1 + 0.2 > 0.3 in floating point";
  EXPECT_NO_THROW(check_start(m, p, initial_values(m, p), 0));
  EXPECT_THROW(check_start(m, p, {0.4, 0}, 0), Error);
}

}  // namespace
}  // namespace saltus
