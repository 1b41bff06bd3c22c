#include "analysis/basins.hpp"

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include "model/read.hpp"

namespace saltus {
namespace {

namespace fs = std::filesystem;

/// A model, the map of its first section, and questions about its basins.
struct System {
  Program program;
  SectionMap map;

  explicit System(const std::string& text)
      : program(read_model_text(text, "test.toml")), map{.program = program, .run = RunOptions{}} {
    map.run.parameters = parameter_values(program.model());
    map.run.initial = initial_values(program.model(), map.run.parameters);
    map.run.until = 1e6;
  }
  Basins basins(const Mesh& mesh, BasinsOptions options = {}) const {
    if (options.threads == 0) options.threads = 1;
    return find_basins(map, mesh, options);
  }
};

constexpr auto direct = BasinsOptions::Method::direct;

/// x = -1 and x = 1 attract, x = 0 divides them; y goes to 0.
const char* const two_wells = R"(
equations = """
  x' = x - x^3
  y' = -y
"""
[initial]
x = 0
y = 0
[section.strobe]
every = "1"
)";

/// The same as a damped oscillator: the boundary winds around both wells.
const char* const double_well = R"(
equations = """
  x' = v
  v' = -0.5*v + x - x^3
"""
[initial]
x = 0
v = 0
[section.strobe]
every = "1"
)";

/// From |x| > 1 it goes to infinity in finite time, from within to 0.
const char* const escape = R"(
equations = """
  x' = x^3 - x
  y' = -y
"""
[initial]
x = 0
y = 0
[section.strobe]
every = "1"
)";

using Fate = CellFate::Kind;

std::map<Fate, std::size_t> counts(const Basins& b) {
  std::map<Fate, std::size_t> result;
  for (const CellFate& f : b.fate) ++result[f.kind];
  return result;
}

TEST(Basins, AreHalvesWhereTheBoundaryIsAStraightLine) {
  const System system(two_wells);
  const Mesh mesh({uniform_axis(0, -2, 2, 40), uniform_axis(1, -1, 1, 10)});
  for (const auto method : {BasinsOptions::Method::cells, direct}) {
    const Basins b = system.basins(mesh, {.method = method});
    ASSERT_EQ(b.basins.size(), 2u);
    for (std::size_t k = 0; k < 2; ++k) {
      EXPECT_EQ(b.basins[k].attractor.period, 1);
      EXPECT_NEAR(b.basins[k].attractor.points[0], k == 0 ? -1 : 1, 1e-5);
      EXPECT_NEAR(b.basins[k].attractor.points[1], 0, 1e-5);
      EXPECT_EQ(b.basins[k].cells, 200u);
    }
    for (std::size_t i = 0; i < mesh.cells(); ++i) EXPECT_EQ(b.fate[i], CellFate::to(i % 40 < 20 ? 0 : 1));
    EXPECT_EQ(b.computed, 400u);
  }
}

TEST(Basins, CountCellsFromWhichRunsDiverge) {
  const System system(escape);
  const Mesh mesh({uniform_axis(0, -2, 2, 40), uniform_axis(1, -1, 1, 4)});
  const Basins d = system.basins(mesh, {.method = direct});
  ASSERT_EQ(d.basins.size(), 1u);
  EXPECT_EQ(d.basins[0].cells, 80u);
  EXPECT_EQ(std::count(d.fate.begin(), d.fate.end(), CellFate{Fate::ended, Why::diverged}), 80);
  const Basins c = system.basins(mesh, {});
  ASSERT_EQ(c.basins.size(), 1u);
  EXPECT_EQ(c.basins[0].cells, 80u);
  EXPECT_EQ(counts(c)[Fate::sink], 80u);
  EXPECT_EQ(c.images[0], sink_cell);
}

TEST(Basins, KnowCellsWhereNothingCanStart) {
  const System system(R"(
equations = """
  q' = v
  v' = -q - 0.5*v + N
"""
[constraint.N]
gap = "q + 0.5"
restitution = "0.5"
[initial]
q = 0
v = 0
[section.strobe]
every = "1"
)");
  const Mesh mesh({uniform_axis(0, -1, 1, 40), uniform_axis(1, -1, 1, 5)});
  const Basins b = system.basins(mesh, {.method = direct});
  ASSERT_EQ(b.basins.size(), 1u);
  EXPECT_EQ(b.basins[0].cells, 150u);
  EXPECT_EQ(counts(b)[Fate::no_start], 50u);
}

TEST(Basins, KnowCellsThatNeverReturn) {
  System system(R"(
equations = """
  x' = 1
  y' = -y
"""
[initial]
x = 0
y = 0
[section.line]
on = "x"
)");
  system.map.run.until = 100;
  const Mesh mesh({uniform_axis(0, -1, 1, 4), uniform_axis(1, -1, 1, 4)});
  const Basins b = system.basins(mesh, {.method = direct});
  EXPECT_EQ(counts(b)[Fate::no_return], 16u);
}

TEST(Basins, FollowStatesGivenByFormulas) {
  System system(R"(
equations = """
  x' = x - x^3
  y' = -y
  z' = z - z^3
"""
[initial]
x = 1
y = 0
z = 0.5
[section.strobe]
every = "1"
)");
  const Mesh mesh({uniform_axis(0, -2, 2, 8), uniform_axis(1, -1, 1, 8)});
  EXPECT_EQ(system.basins(mesh, {.method = direct}).basins.size(), 2u);
  const Model& model = system.program.model();
  system.map.dependent = {{2, state_symbol(model, 1) * Expr(0.5)}};  // z = y/2
  const Basins b = system.basins(mesh, {.method = direct});
  ASSERT_EQ(b.basins.size(), 4u);
  for (const Basin& basin : b.basins) EXPECT_EQ(basin.cells, 16u);
}

TEST(Basins, TakeThreeAxesToo) {
  const System system(R"(
equations = """
  x' = x - x^3
  y' = y - y^3
  z' = z - z^3
"""
[initial]
x = 0
y = 0
z = 0
[section.strobe]
every = "1"
)");
  const Mesh mesh({uniform_axis(0, -2, 2, 12), uniform_axis(1, -2, 2, 12), uniform_axis(2, -2, 2, 12)});
  for (const BasinsOptions& o :
       {BasinsOptions{}, BasinsOptions{.method = direct}, BasinsOptions{.method = direct, .refine = true}}) {
    const Basins b = system.basins(mesh, o);
    ASSERT_EQ(b.basins.size(), 8u);
    for (const Basin& basin : b.basins) EXPECT_EQ(basin.cells, 216u);
  }
}

TEST(Basins, TakeRandomPoints) {
  const System system(two_wells);
  const Mesh mesh({CellAxis{0, {-2, 2}}, CellAxis{1, {-1, 1}}}, 4000, 1);
  for (const auto method : {BasinsOptions::Method::cells, direct}) {
    const Basins b = system.basins(mesh, {.method = method});
    ASSERT_EQ(b.basins.size(), 2u);
    EXPECT_NEAR(b.fraction(b.basins[0].cells), 0.5, 0.03);  // four standard deviations
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < mesh.cells(); ++i) {
      double x[2];
      mesh.centre(i, x);
      const double end = b.basins.at(b.fate[i].place()).attractor.points[0];
      wrong += std::abs(end - (x[0] < 0 ? -1 : 1)) > 0.01;
    }
    EXPECT_LE(wrong, method == direct ? 0u : 80u);  // cells that the boundary cuts: of 4000, about 60
  }
}

TEST(Basins, AreTheSameForAnyNumberOfThreads) {
  const System system(double_well);
  const Mesh mesh({uniform_axis(0, -2, 2, 50), uniform_axis(1, -2, 2, 50)});
  for (const BasinsOptions& o :
       {BasinsOptions{}, BasinsOptions{.method = direct}, BasinsOptions{.method = direct, .refine = true}}) {
    BasinsOptions one = o, three = o;
    one.threads = 1;
    three.threads = 3;
    const Basins a = system.basins(mesh, one), b = system.basins(mesh, three);
    EXPECT_EQ(a.fate, b.fate);
    EXPECT_EQ(a.images, b.images);
    ASSERT_EQ(a.basins.size(), 2u);
    for (std::size_t k = 0; k < 2; ++k) EXPECT_EQ(a.basins[k].attractor.points, b.basins[k].attractor.points);
  }
}

TEST(Basins, AreSymmetricForASymmetricSystem) {
  const System system(double_well);
  const Mesh mesh({uniform_axis(0, -2, 2, 50), uniform_axis(1, -2, 2, 50)});
  const Basins b = system.basins(mesh, {.method = direct});
  ASSERT_EQ(b.basins.size(), 2u);
  EXPECT_EQ(b.basins[0].cells, 1250u);
  for (std::size_t i = 0; i < mesh.cells(); ++i) EXPECT_EQ(b.fate[i].basin + b.fate[mesh.cells() - 1 - i].basin, 1);
}

TEST(Refinement, GivesWhatTheFullComputationGivesForFewerRuns) {
  const System system(double_well);
  const Mesh mesh({uniform_axis(0, -2, 2, 120), uniform_axis(1, -2, 2, 100)});
  const Basins full = system.basins(mesh, {.method = direct});
  const Basins refined = system.basins(mesh, {.method = direct, .refine = true});
  EXPECT_EQ(full.fate, refined.fate);
  EXPECT_EQ(full.computed, mesh.cells());
  EXPECT_LT(refined.computed, mesh.cells() / 2);
  ASSERT_EQ(refined.basins.size(), 2u);
  EXPECT_EQ(refined.basins[0].cells, full.basins[0].cells);
}

TEST(Refinement, FindsIslandsThatItsFirstCellsMiss) {
  System system(R"(
equations = """
  x' = -x
  y' = -y
  z' = z - z^3
"""
[initial]
x = 0
y = 0
z = 1
[section.strobe]
every = "2"
)");
  // z starts above 0 in about 160 islands of three cells each.
  const Model& model = system.program.model();
  const auto wave = [&](int state) { return make(Op::cos, Expr(40.0) * state_symbol(model, state)); };
  system.map.dependent = {{2, wave(0) * wave(1) - Expr(0.8)}};
  const Mesh mesh({uniform_axis(0, -1, 1, 120), uniform_axis(1, -1, 1, 120)});
  const Basins full = system.basins(mesh, {.method = direct});
  const Basins refined = system.basins(mesh, {.method = direct, .refine = true});
  ASSERT_EQ(full.basins.size(), 2u);
  EXPECT_EQ(refined.wrong, 0u);
  std::size_t differ = 0;
  for (std::size_t i = 0; i < mesh.cells(); ++i) {
    differ += full.fate[i] != refined.fate[i];
    if (refined.was_run[i] != 0) {
      EXPECT_EQ(full.fate[i], refined.fate[i]);
    }
  }
  EXPECT_LE(differ, 14u);  // a thousandth
}

TEST(Joining, MakesOneAttractorOfTheCyclesAroundAWeakSpiral) {
  // Multipliers of modulus exp(-0.02) turning by 1.3: cells near the focus circle around it.
  const System system(R"(
equations = """
  x' = -0.02*x - 1.3*y
  y' = 1.3*x - 0.02*y
"""
[initial]
x = 0
y = 0
[section.strobe]
every = "1"
)");
  const Mesh mesh({uniform_axis(0, -2, 2.1, 101), uniform_axis(1, -2, 2.1, 101)});
  const Basins apart = system.basins(mesh, {.join = BasinsOptions::Join::none});
  ASSERT_GT(apart.basins.size(), 1u);
  for (const auto join : {BasinsOptions::Join::nearest, BasinsOptions::Join::run}) {
    const Basins b = system.basins(mesh, {.join = join});
    ASSERT_EQ(b.basins.size(), 1u);
    EXPECT_EQ(b.basins[0].attractor.period, 1);
    EXPECT_NEAR(std::hypot(b.basins[0].attractor.points[0], b.basins[0].attractor.points[1]), 0, 2e-5);
    EXPECT_EQ(b.basins[0].cells, mesh.cells() - counts(b)[Fate::sink]);
  }
}

TEST(Interruption, KeepsWhatIsDoneAndGoesOnToTheSameResult) {
  const System system(double_well);
  const fs::path folder = fs::temp_directory_path() / fmt::format("saltus-basins-{}", ::getpid());
  for (BasinsOptions o :
       {BasinsOptions{}, BasinsOptions{.method = direct}, BasinsOptions{.method = direct, .refine = true}}) {
    const std::size_t n = o.method == direct ? 60 : 250;  // long enough to be asked whether to go on
    const Mesh mesh({uniform_axis(0, -2, 2, n), uniform_axis(1, -2, 2, n)});
    const Basins whole = system.basins(mesh, o);
    fs::remove_all(folder);
    fs::create_directories(folder);
    o.checkpoint = folder;
    o.identity = "test";
    o.threads = 1;
    int calls = 0, rounds = 0;
    constexpr int most_rounds = 100;  // then it may go to its end, however slow the machine
    o.progress = [&](std::string_view, double, double, double) { return ++calls < 2 || rounds >= most_rounds; };
    Basins part;
    do {
      calls = 0;
      part = system.basins(mesh, o);
      if (part.interrupted) {
        EXPECT_GT(counts(part)[Fate::not_computed], 0u);
        // Whatever is told is as it will be; where it settles may have another number by then.
        for (std::size_t cell = 0; cell < mesh.cells(); ++cell) {
          const CellFate &now = part.fate[cell], &then = whole.fate[cell];
          if (now.computed()) {
            EXPECT_EQ(now.kind, then.kind) << cell;
          }
        }
      }
    } while (part.interrupted && ++rounds <= most_rounds);
    EXPECT_GT(rounds, 0);
    EXPECT_EQ(part.fate, whole.fate);
    EXPECT_EQ(part.computed, whole.computed);
  }
  fs::remove_all(folder);
}

TEST(Interruption, KeepsTheRunsThatLookForAttractors) {
  const System system(R"(
equations = """
  x' = v
  v' = x - x^3 - 0.15*v + 0.3*cos(t)
"""
[initial]
x = 0
v = 0
[section.strobe]
every = "2*pi"
)");  // chaos: runs take long
  const Mesh mesh({uniform_axis(0, -2, 2, 60), uniform_axis(1, -2, 2, 60)});
  for (const bool refine : {false, true}) {
    double done_then = 0;
    BasinsOptions o{.method = direct, .refine = refine, .threads = 1};
    o.progress = [&](std::string_view stage, double, double done, double) {
      EXPECT_EQ(stage, "attractors");
      done_then = done;
      return done < 1;
    };
    const Basins part = system.basins(mesh, o);
    EXPECT_TRUE(part.interrupted);
    EXPECT_GE(done_then, 1);
    EXPECT_GE(part.computed, static_cast<std::size_t>(done_then));
    EXPECT_EQ(mesh.cells() - counts(part)[Fate::not_computed], part.computed);
    EXPECT_FALSE(part.basins.empty());
  }
}

// Each cell that was left made a cycle of its own: six million of them took as many seconds.
TEST(Interruption, TakesNoLongerWhereManyCellsAreLeft) {
  const System system(double_well);
  const Mesh mesh({uniform_axis(0, -2, 2, 1500), uniform_axis(1, -2, 2, 1500)});
  BasinsOptions o{.threads = 1};
  o.progress = [](std::string_view, double, double, double) { return false; };
  const Basins part = system.basins(mesh, o);
  EXPECT_TRUE(part.interrupted);
  EXPECT_EQ(counts(part)[Fate::not_computed] + counts(part)[Fate::sink], mesh.cells());
  EXPECT_LE(part.mapping.cycles.size(), part.computed + 1);
}

}  // namespace
}  // namespace saltus
