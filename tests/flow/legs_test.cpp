// Ordinary legs in a loop of their own: nothing a run tells depends on it.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "flow/simulate.hpp"
#include "model/read.hpp"

namespace saltus {
namespace {

std::vector<std::string> models_below(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(SALTUS_SOURCE_DIR "/" + folder)) {
    if (entry.path().extension() == ".toml") out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// All that a run tells, to the last bit.
struct Told {
  Trajectory run;
  std::vector<std::pair<int, std::vector<double>>> sections;  // number; time and state
};

Told run_with(Simulator& simulator, RunOptions options, bool legs) {
  Told out;
  options.legs = legs;
  options.on_section = [&](const Passing& p) {
    std::vector<double> at{p.t, static_cast<double>(p.events), static_cast<double>(p.slides)};
    at.insert(at.end(), p.state.begin(), p.state.end());
    out.sections.emplace_back(p.section, at);
    return true;
  };
  out.run = simulator.run(options);
  return out;
}

void expect_same(const Told& a, const Told& b, const std::string& what) {
  SCOPED_TRACE(what);
  EXPECT_EQ(a.run.cost.steps, b.run.cost.steps);
  EXPECT_EQ(a.run.cost.events, b.run.cost.events);
  EXPECT_EQ(a.run.end.why, b.run.end.why);
  EXPECT_EQ(a.run.end.message, b.run.end.message);
  EXPECT_EQ(a.run.end.t, b.run.end.t);
  EXPECT_EQ(a.run.end.state, b.run.end.state);
  EXPECT_TRUE(a.run.end.mode == b.run.end.mode);
  EXPECT_EQ(a.run.messages, b.run.messages);
  EXPECT_EQ(a.sections, b.sections);
  ASSERT_EQ(a.run.events.size(), b.run.events.size());
  for (size_t i = 0; i < a.run.events.size(); ++i) {
    const Event &x = a.run.events[i], &y = b.run.events[i];
    const bool same = x.t == y.t && x.kind == y.kind && x.on == y.on && x.before == y.before && x.after == y.after &&
                      x.state == y.state && x.jumped == y.jumped && x.count == y.count;
    ASSERT_TRUE(same) << "event " << i << " at t = " << x.t << " and " << y.t;
  }
  ASSERT_EQ(a.run.pieces.size(), b.run.pieces.size());
  for (size_t i = 0; i < a.run.pieces.size(); ++i) {
    const Piece &x = a.run.pieces[i], &y = b.run.pieces[i];
    ASSERT_TRUE(x.start == y.start && x.length == y.length && x.coefficients == y.coefficients) << "piece " << i;
    ASSERT_TRUE(a.run.arcs[static_cast<size_t>(x.arc)] == b.run.arcs[static_cast<size_t>(y.arc)]) << "piece " << i;
  }
  ASSERT_EQ(a.run.sliding.size(), b.run.sliding.size());
  for (size_t i = 0; i < a.run.sliding.size(); ++i) {
    EXPECT_EQ(a.run.sliding[i].time, b.run.sliding[i].time);
    EXPECT_EQ(a.run.sliding[i].largest_error, b.run.sliding[i].largest_error);
  }
}

RunOptions options_of(const Model& model) {
  RunOptions options;
  options.parameters = parameter_values(model);
  options.initial = initial_values(model, options.parameters);
  if (model.run.from) options.from = constant_value(*model.run.from, options.parameters);
  options.until = options.from + 5;
  if (model.run.until) options.until = constant_value(*model.run.until, options.parameters);
  options.max_steps = 2000;
  options.turns_stiff = true;
  return options;
}

/// The same models with parameters and starts at random, where those are allowed.
void compare_at_random(const Program& program, const std::string& what, int draws,
                       const std::function<void(RunOptions&)>& change) {
  std::mt19937 random(static_cast<unsigned>(std::hash<std::string>{}(what)));
  std::uniform_real_distribution<double> share(0.8, 1.25);
  Simulator with(program), without(program);  // runs follow each other in both
  for (int draw = 0; draw < draws; ++draw) {
    RunOptions options = options_of(program.model());
    if (draw > 0) {
      for (double& p : options.parameters) p *= share(random);
      for (double& x : options.initial) x *= share(random);
    }
    change(options);
    try {
      options.check(program.model());
    } catch (const Error&) {
      continue;
    }
    expect_same(run_with(with, options, true), run_with(without, options, false), what + " " + std::to_string(draw));
  }
}

void compare_at_random(const std::string& path, int draws, const std::function<void(RunOptions&)>& change) {
  compare_at_random(Program(read_model(path)), path, draws, change);
}

/// Equations of x, y and v, and whatever else the text says; p, q, r are parameters.
std::string text_of(const std::string& equations, const std::string& more) {
  std::string text = "name = \"m\"\nequations = \"\"\"\n" + equations +
                     "\n\"\"\"\n[parameters]\np = 1\nq = 0.5\nr = 0.3\n[run]\nuntil = 30\n" + more + "[initial]\n";
  for (const std::string state : {"x", "y", "v"}) {
    if (equations.find(state + "'") != std::string::npos) text += state + " = 0.8\n";
  }
  return text;
}

void compare_equations(const std::string& equations, const std::string& more = "") {
  const Program program(read_model_text(text_of(equations, more)));
  for (const bool pieces : {false, true})
    compare_at_random(program, equations, 6, [&](RunOptions& o) { o.keep_pieces = pieces; });
}

/// Many starts under the same parameters, some of them on zeros of states, or a few last digits beside a value that is
/// the same in several of them.
void compare_starts(const Program& program, const std::string& what) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> share(-1.5, 1.5);
  Simulator with(program), without(program);
  const RunOptions usual = options_of(program.model());
  for (int draw = 0; draw < 60; ++draw) {
    RunOptions options = usual;
    options.until = options.from + std::min(usual.until - usual.from, 3.0);
    options.max_steps = 40;
    if (draw % 20 > 15) options.from += 0.25 * (options.until - options.from);
    for (double& x : options.initial) {
      const int kind = static_cast<int>(random() % 8);
      const double digits = 1 + 2.2e-16 * static_cast<double>(random() % 5000);
      x = kind == 0 ? 0 : kind == 1 ? x * digits : kind == 2 ? 0.5 * digits : x * share(random);
    }
    try {
      options.check(program.model());
    } catch (const Error&) {
      continue;
    }
    expect_same(run_with(with, options, true), run_with(without, options, false), what + " " + std::to_string(draw));
  }
}

TEST(Legs, OfTheGalleryAreTheSameToTheLastBit) {
  for (const std::string& path : models_below("models")) compare_at_random(path, 12, [](RunOptions&) {});
}

TEST(Legs, OfTheReferenceCasesAreTheSameToTheLastBit) {
  for (const std::string& path : models_below("tests/reference/cases")) compare_at_random(path, 6, [](RunOptions&) {});
}

TEST(Legs, AreTheSameAtAnyToleranceAndWithPieces) {
  for (const std::string& path : models_below("models")) {
    for (const double tolerance : {1e-4, 1e-13})
      compare_at_random(path, 1, [&](RunOptions& o) {
        o.tolerance = tolerance;
        o.keep_pieces = true;
      });
  }
}

TEST(Legs, OfRunsWithoutAnEndAreTheSameToTheLastBit) {
  for (const std::string& path : models_below("models"))
    compare_at_random(path, 3, [](RunOptions& o) {
      o.until = o.from + 1e12;
      o.to_the_end = false;
      o.max_steps = 500;
    });
}

TEST(Legs, OfRunsAtOtherTolerancesAreThoseOfFreshOnes) {
  for (const char* name : {"dry_friction", "drill_string", "bouncing_table", "buck"}) {
    const Program program(read_model(SALTUS_SOURCE_DIR "/models/" + std::string(name) + "/model.toml"));
    Simulator simulator(program);
    RunOptions options = options_of(program.model());
    for (const double tolerance : {1e-9, 1e-6, 1e-9, 1e-12}) {
      options.tolerance = tolerance;
      Simulator fresh(program);
      expect_same(run_with(simulator, options, true), run_with(fresh, options, true), name);
    }
  }
}

TEST(Legs, OverStepsInTimeAreTheSameToTheLastBit) {
  const std::string strobe = "[section.strobe]\nevery = 0.7\n";
  // Ramps: one that moves nothing else, one that a state is compared with, or three; two of their own, or in step.
  compare_equations("x' = mod(t, p) - q*x");
  compare_equations("x' = -x + step(mod(t, p) - q*x) + r", strobe);
  compare_equations(
      "x' = y\ny' = -x - r*y + sign(ramp - x) + sign(ramp + y) - step(ramp - 2*x*y)\nramp = mod(t, p) - q");
  compare_equations("x' = -x + 2*step(mod(t, p) - q*x) - step(mod(t, r) - x)", strobe);
  compare_equations("x' = -x + 2*step(mod(t, p) - q*x) - step(mod(t, 2*p) - x)");
  // Upward, downward, both, and what is compared with time by itself.
  compare_equations("x' = -x + step(floor(t/p) - 3*x) + r*sin(3*x)");
  compare_equations("x' = -x + step(q + 3*x - mod(-t, p))\ny' = cos(y) + mod(-t, r)");
  compare_equations("x' = -x + step(ceil(t/p) - round(t/q) - x) + sign(x - r*sin(t))");
  compare_equations("x' = y\ny' = -x + step(mod(t, p) - q) - step(t - 7 + sign(x - r)*r)*y");
  compare_equations("x' = y\ny' = -x - r*y + sign(sin(3*t) + step(mod(t, p) - q))");
  // In step with a surface, where a state is on its ramp at the end of it; a field that ends there, or begins.
  compare_equations("x' = 1 - step(x - mod(t, 1) - 1)\ny' = -y + sign(x - mod(t, 1) - q)");
  compare_equations("x' = 0*x\ny' = -y + sign(mod(t, 1) - x) + sign(mod(t, 1) + x)");
  compare_equations("x' = -x + sqrt(1 - mod(t, 1)) + step(mod(t, 1) - q*x)");
  compare_equations("x' = -x + sqrt(mod(t, 1)) + step(mod(t, 1) - q*x)");
  compare_equations("x' = -x*abs(x) + 1/(0.1 + mod(t, p)) + sign(x - 2*mod(t, p))", strobe);
  // While something slides, or a contact is met; sections on what jumps with them.
  compare_equations("x' = y\ny' = -x + 2*mod(t, p) - 1 - q*sign(y) + r*step(mod(t, p) - x)", strobe);
  compare_equations("x' = v\nv' = -3 + mod(t, p) + step(mod(t, q) - x) + F",
                    "[constraint.F]\ngap = \"x\"\nrestitution = 0.7\n");
  compare_equations("x' = -x + step(mod(t, p) - q*x) + r", "[section.s]\non = \"mod(t, p) - 0.6*x\"\n");
  compare_equations("x' = -x + step(mod(t, p) - q*x) + r", "[section.s]\non = \"x - 0.5\"\n" + strobe);
}

TEST(Legs, AlongTablesOfTimeAreTheSameToTheLastBit) {
  for (const std::string between : {"linear", "step", "cubic"}) {
    for (const std::string outside : {"error", "hold", "repeat"}) {
      const std::string table =
          "[table.road]\npoints = [[0, 0], [1, 1], [2.5, -1], [4, 0.5], [4.5, 2], [7, 0], [12, -1], [19, 0]]\n"
          "between = \"" +
          between + "\"\noutside = \"" + outside + "\"\n";
      compare_equations("x' = y\ny' = road(t) - x - r*y", table);
      compare_equations("x' = -x + sign(road(p*t) - q*x)", table);
    }
  }
}

TEST(Legs, BetweenJumpsAreTheSameToTheLastBit) {
  const auto jump = [](const std::string& name, const std::string& rest) { return "[jump." + name + "]\n" + rest; };
  const std::string strobe = "[section.strobe]\nevery = 0.7\n";
  // Conditions that are crossed, in one direction, in both, and met again at once because the jump leaves them zero.
  compare_equations("x' = 1 + r - q*x", jump("fire", "on = \"x - 1\"\nset.x = \"r*x\"\n") + strobe);
  compare_equations("x' = y\ny' = -x", jump("kick", "on = \"x\"\ndirection = \"rising\"\nset.y = \"p*y\"\n"));
  compare_equations("x' = y\ny' = -x", jump("kick", "on = \"x - q\"\nwhen = \"y > r\"\nset.y = \"-y\"\n"));
  compare_equations("x' = y\ny' = -1 + r*sin(t)",
                    jump("hit", "on = \"x\"\ndirection = \"falling\"\nset.y = \"-0.9*y\"\n") + strobe);
  compare_equations("x' = y\ny' = -x - r*sin(t)", jump("a", "on = \"x - q\"\nset.y = \"0.9*y + r\"\n") +
                                                      jump("b", "on = \"y + q\"\nset.x = \"-x\"\n") +
                                                      "[section.a]\non = \"a\"\n[section.s]\non = \"x + y\"\n");
  // One that a jump of another causes, and one that stays at zero.
  compare_equations("x' = 1\ny' = q", jump("a", "on = \"x - 1\"\nset.x = 0\nset.y = \"y + 1\"\n") +
                                          jump("b", "on = \"y - 2\"\nset.y = \"y - 2.2\"\n"));
  compare_equations("x' = -x + q\ny' = 0*y",
                    jump("a", "on = \"y\"\nset.x = 0\n") + jump("b", "on = \"x - 0.4\"\nset.y = \"-y\"\n"));
  // Clocks, one or two, in step with a section, a ramp, a surface and the end of the run.
  compare_equations("x' = -x + r", jump("pulse", "every = \"p\"\nset.x = \"x + 1\"\n") + strobe);
  compare_equations("x' = -x + r", jump("pulse", "every = 0.7\nset.x = \"x + 1\"\n") + strobe);
  compare_equations("x' = -x + r", jump("a", "every = 0.5\nset.x = \"x + 1\"\n") +
                                       jump("b", "every = 0.75\nphase = 0.25\nwhen = \"x > 1\"\nset.x = \"r*x\"\n"));
  compare_equations("x' = -x + step(mod(t, p) - q*x)\ny' = -sign(y - x)",
                    jump("a", "every = \"p\"\nset.y = \"y + 1\"\n") + jump("b", "on = \"x - q\"\nset.y = \"-y\"\n"));
  compare_equations("x' = y\ny' = -x - q*sign(y) + sin(t/3)",
                    jump("a", "every = \"3*p\"\nset.y = 2\n") + jump("b", "on = \"x - 1\"\nset.x = \"-x\"\n"));
  // Conditions that know a switch, a surface, a gap, a ramp: not ordinary, and the same.
  compare_equations("x' = 1 - q*sign(x - r)", jump("a", "on = \"x - abs(x - r) - 0.2\"\nset.x = -1\n"));
  compare_equations("x' = 1 - q*sign(x - r)", jump("a", "on = \"x - r\"\nset.x = -1\n"));
  compare_equations("x' = 1 - q*x", jump("a", "on = \"x - mod(t, p)\"\nset.x = -1\n"));
  compare_equations("x' = v\nv' = -1 + F", "[constraint.F]\ngap = \"x\"\nrestitution = 0.7\n" +
                                               jump("a", "on = \"v - q\"\nset.v = \"1.1*v\"\n"));
}

TEST(Legs, FromManyStartsAreTheSameToTheLastBit) {
  for (const std::string& path : models_below("models")) compare_starts(Program(read_model(path)), path);
  const std::string contact = "[constraint.F]\ngap = \"x\"\nrestitution = 0.7\n";
  for (const auto& [equations, more] : std::vector<std::pair<std::string, std::string>>{
           {"x' = -x + step(mod(t, p) - q*x) + r", ""},
           {"x' = -x + step(mod(t, p) - q*x) + r", "[section.s]\non = \"x - 0.5\"\n"},
           {"x' = -x + step(mod(-t, p) - q*x) + r", ""},
           {"x' = -x + 2*step(mod(t, p) - q*x) - step(mod(t, r) - x)", ""},
           {"x' = -y + mod(t, p)\ny' = x - sign(y - mod(t, q))", ""},
           {"x' = -y + floor(3*x)\ny' = x - sign(y - floor(3*x))", ""},
           {"x' = -x + sqrt(mod(t, 1)) + step(mod(t, 1) - q*x)", ""},
           {"x' = sqrt(x) - sign(y)\ny' = x - y", ""},
           {"x' = y\ny' = -x - sign(y - q)*r + sign(x - q*sign(y))", ""},
           {"x' = v\nv' = -3 + mod(t, p) + step(mod(t, q) - x) + F", contact},
           {"x' = v\nv' = -3 + step(mod(t + 0.25, q) - x) + F", contact}})
    compare_starts(Program(read_model_text(text_of(equations, more))), equations);
}

TEST(Legs, TellEventsInARunAfterOneThatToldNone) {
  const Program program(
      read_model_text("name = \"m\"\nequations = \"\"\"\ny' = v\nv' = -y + sin(t/3) - 0.4*sign(v)\n"
                      "\"\"\"\n[initial]\ny = 1\nv = 2\n"));
  Simulator simulator(program);
  RunOptions options{.initial = {1, 2}, .until = 200, .keep_events = false};
  EXPECT_GT(simulator.run(options).cost.events, 20);
  options.keep_events = true;
  const Trajectory told = simulator.run(options), fresh = simulate(program, options);
  ASSERT_EQ(told.events.size(), fresh.events.size());
  for (size_t i = 0; i < told.events.size(); ++i) {
    EXPECT_EQ(told.events[i].t, fresh.events[i].t);
    EXPECT_EQ(told.events[i].on, fresh.events[i].on);
    EXPECT_EQ(told.events[i].kind, fresh.events[i].kind);
  }
}

}  // namespace
}  // namespace saltus
