// Basins of the gallery's models against published fractions. Those hold for 1000 x 1000 cells; on the smaller grids
// here the fractions lie within a few cells' widths of the boundaries' length.
#include "analysis/basins.hpp"

#include <gtest/gtest.h>

#include "physics.hpp"

namespace saltus {
namespace {

using physics::gallery_system;
using physics::System;

struct Result {
  Basins basins;
  double fraction(int period) const {
    std::size_t cells = 0;
    for (const Basin& b : basins.basins) cells += b.attractor.period == period ? b.cells : 0;
    return basins.fraction(cells);
  }
  double sink() const {
    std::size_t cells = 0;
    for (const CellFate& f : basins.fate) cells += f.kind == CellFate::Kind::sink;
    return basins.fraction(cells);
  }
};

Result find(const System& system, const Mesh& mesh, const BasinsOptions& options) {
  SectionMap map{.program = system.program, .run = system.options(1e9, 1e-10)};
  return {find_basins(map, mesh, options)};
}

Mesh buck_mesh(std::size_t n) { return Mesh({uniform_axis(0, 0.4, 0.7, n), uniform_axis(1, 11.5, 12.3, n)}); }

TEST(BuckBasins, ByCellMapping) {
  System buck = gallery_system("buck");
  buck.set({{"Vin", 13.4}});
  const Result r = find(buck, buck_mesh(200), {});
  ASSERT_EQ(r.basins.basins.size(), 2u);
  EXPECT_NEAR(r.fraction(1), 0.2536, 0.003);
  EXPECT_NEAR(r.fraction(3), 0.0084, 0.002);
  EXPECT_NEAR(r.sink(), 0.7380, 0.003);
}

TEST(BuckBasins, ByDirectRunsThoughTheOrbitOfPeriodThreeAttractsSlowly) {
  System buck = gallery_system("buck");
  buck.set({{"Vin", 13.4}});
  const Result r = find(buck, buck_mesh(40), {.method = BasinsOptions::Method::direct});
  ASSERT_EQ(r.basins.basins.size(), 2u);
  EXPECT_NEAR(r.fraction(1), 0.967, 0.005);
  EXPECT_NEAR(r.fraction(3), 0.033, 0.005);
}

TEST(ImpactOscillatorBasins, ByCellMapping) {
  const System system = gallery_system("impact_oscillator");
  const Result r = find(system, Mesh({uniform_axis(0, 0, 5, 200), uniform_axis(1, -5, 5, 200)}), {});
  ASSERT_EQ(r.basins.basins.size(), 2u);
  EXPECT_NEAR(r.fraction(1), 0.1414, 0.01);
  EXPECT_NEAR(r.fraction(6), 0.1329, 0.01);
  EXPECT_NEAR(r.sink(), 0.7257, 0.01);
  EXPECT_NEAR(r.basins.basins[0].attractor.points[0], 2.235423619577234, 1e-5);
  EXPECT_NEAR(r.basins.basins[0].attractor.points[1], -1.689909836739224, 1e-5);
}

}  // namespace
}  // namespace saltus
