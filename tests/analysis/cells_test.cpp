#include "analysis/cells.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace saltus {
namespace {

using Values = std::vector<double>;

TEST(CellAxis, HoldsEveryCentreInItsOwnCell) {
  const CellAxis axis = uniform_axis(0, -2, 3, 1000);
  for (std::size_t k = 0; k < 1000; ++k) {
    EXPECT_EQ(axis.locate(axis.centre(k)), static_cast<std::int64_t>(k));
    EXPECT_EQ(axis.locate(axis.edges[k]), static_cast<std::int64_t>(k));
  }
  EXPECT_DOUBLE_EQ(axis.centre(0), -2 + 0.0025);
}

TEST(CellAxis, CountsItsEndsAndWhatRoundingPutsBeyondThem) {
  const CellAxis axis = uniform_axis(0, 0, 5, 1000);
  EXPECT_EQ(axis.locate(-1e-15), 0);
  EXPECT_EQ(axis.locate(5), 999);
  EXPECT_EQ(axis.locate(-1e-9), -1);
  EXPECT_EQ(axis.locate(5 + 1e-9), -1);
  EXPECT_EQ(axis.locate(std::nan("")), -1);
}

TEST(CellAxis, FindsCellsOfUnequalWidth) {
  const CellAxis axis{.state = 0, .edges = {0, 0.001, 0.5, 10, 1000}};
  EXPECT_EQ(axis.locate(0.0005), 0);
  EXPECT_EQ(axis.locate(0.001), 1);
  EXPECT_EQ(axis.locate(0.4999), 1);
  EXPECT_EQ(axis.locate(9), 2);
  EXPECT_EQ(axis.locate(999), 3);
}

TEST(Mesh, NumbersCellsAlongTheFirstAxisFirst) {
  const Mesh mesh({uniform_axis(0, 0, 5, 5), uniform_axis(1, 0, 4, 4), uniform_axis(2, -1, 1, 2)});
  EXPECT_EQ(mesh.cells(), 40u);
  Values x(3);
  mesh.centre(20 + 5 * 3 + 1, x);
  EXPECT_EQ(x, (Values{1.5, 3.5, 0.5}));
  EXPECT_EQ(mesh.locate(x), 36);
  EXPECT_EQ(mesh.locate(Values{1.5, 4.5, 0.5}), sink_cell);
  EXPECT_EQ(mesh.distance(0, 36), 3);
  EXPECT_EQ(mesh.outside(x), 0);
  EXPECT_DOUBLE_EQ(mesh.outside(Values{-0.5, 6, 0}), 2);
}

TEST(Mesh, GivesAPointToTheNearestOfItsRandomPoints) {
  const Mesh mesh({CellAxis{0, {0, 2}}, CellAxis{1, {10, 11}}, CellAxis{2, {-3, 0}}}, 500, 7);
  ASSERT_EQ(mesh.cells(), 500u);
  std::mt19937 random(1);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int trial = 0; trial < 300; ++trial) {
    const Values x{2 * unit(random), 10 + unit(random), -3 * unit(random)};
    double least = std::numeric_limits<double>::infinity();
    CellIndex nearest = sink_cell;
    Values p(3);
    for (std::size_t i = 0; i < mesh.cells(); ++i) {
      mesh.centre(i, p);
      const double d = std::pow((p[0] - x[0]) / 2, 2) + std::pow(p[1] - x[1], 2) + std::pow((p[2] - x[2]) / 3, 2);
      if (d >= least) continue;
      least = d;
      nearest = static_cast<CellIndex>(i);
    }
    EXPECT_EQ(mesh.locate(x), nearest);
  }
  EXPECT_EQ(mesh.locate(Values{1, 12, -1}), sink_cell);
}

TEST(Mesh, SpreadsRandomPointsEvenlyAndAlikeForOneSeed) {
  const std::vector<CellAxis> axes{CellAxis{0, {-1, 1}}, CellAxis{1, {0, 4}}};
  const Mesh a(axes, 40000, 3), b(axes, 40000, 3), c(axes, 40000, 4);
  Values x(2), y(2), z(2), sum(2, 0);
  int same = 0;
  for (std::size_t i = 0; i < a.cells(); ++i) {
    a.centre(i, x);
    b.centre(i, y);
    c.centre(i, z);
    EXPECT_EQ(x, y);
    same += x == z;
    for (std::size_t k = 0; k < 2; ++k) sum[k] += x[k] / 40000;
  }
  EXPECT_EQ(same, 0);
  EXPECT_NEAR(sum[0], 0, 0.02);  // three standard deviations are 0.009 and 0.017
  EXPECT_NEAR(sum[1], 2, 0.04);
}

/// The cell table of Merillas 2006, sec. 6.3.1: 25 cells, of which eight are given; numbers there begin at 1.
TEST(CellMapping, FollowsThePrintedExample) {
  std::vector<CellIndex> images(25, sink_cell);
  for (const auto& [cell, image] : {std::pair{1, 16}, {2, 7}, {7, 8}, {8, 2}, {10, 0}, {16, 22}, {22, 22}, {23, 22}})
    images[static_cast<std::size_t>(cell - 1)] = image - 1;
  const CellMapping m = follow_cells(images);
  ASSERT_EQ(m.cycles.size(), 2u);
  EXPECT_EQ(m.cycles[0].cells, (std::vector<CellIndex>{1, 6, 7}));
  EXPECT_EQ(m.cycles[0].basin, 3u);
  EXPECT_EQ(m.cycles[1].cells, (std::vector<CellIndex>{21}));
  EXPECT_EQ(m.cycles[1].basin, 4u);
  EXPECT_EQ(m.sink, 18u);
  const auto row = [&](int cell) {
    const auto i = static_cast<std::size_t>(cell - 1);
    return std::pair{m.cycle[i], m.transient[i]};
  };
  EXPECT_EQ(row(1), (std::pair{1, 2}));
  EXPECT_EQ(row(2), (std::pair{0, 0}));
  EXPECT_EQ(row(10), (std::pair{-1, 1}));
  EXPECT_EQ(row(16), (std::pair{1, 1}));
  EXPECT_EQ(row(22), (std::pair{1, 0}));
  EXPECT_EQ(row(23), (std::pair{1, 1}));
}

TEST(CellMapping, AgreesWithFollowingEveryCellByItself) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 200; ++trial) {
    const int n = 1 + static_cast<int>(random() % 60);
    std::vector<CellIndex> images;
    for (int i = 0; i < n; ++i) images.push_back(static_cast<CellIndex>(random() % static_cast<unsigned>(n + 3)) - 3);
    const CellMapping m = follow_cells(images);
    std::size_t sink = 0, basins = 0;
    for (const CellCycle& c : m.cycles) basins += c.basin;
    for (int cell = 0; cell < n; ++cell) {
      CellIndex end = cell;
      for (int k = 0; k < n && end >= 0; ++k) end = images[static_cast<std::size_t>(end)];
      const auto i = static_cast<std::size_t>(cell);
      if (end < 0) {
        ++sink;
        EXPECT_EQ(m.cycle[i], -1);
        CellIndex c = cell;
        int steps = 0;
        for (; c >= 0; ++steps) c = images[static_cast<std::size_t>(c)];
        EXPECT_EQ(m.transient[i], steps);
        continue;
      }
      const CellCycle& cycle = m.cycles[static_cast<std::size_t>(m.cycle[i])];
      const auto on_cycle = [&](CellIndex c) {
        return std::find(cycle.cells.begin(), cycle.cells.end(), c) != cycle.cells.end();
      };
      EXPECT_TRUE(on_cycle(end));
      CellIndex c = cell;
      int steps = 0;
      for (; !on_cycle(c); ++steps) c = images[static_cast<std::size_t>(c)];
      EXPECT_EQ(m.transient[i], steps);
    }
    EXPECT_EQ(m.sink, sink);
    EXPECT_EQ(basins + sink, images.size());
    for (std::size_t k = 0; k + 1 < m.cycles.size(); ++k)
      EXPECT_LT(m.cycles[k].cells.front(), m.cycles[k + 1].cells.front());
    for (const CellCycle& cycle : m.cycles) {
      for (std::size_t k = 0; k < cycle.period(); ++k)
        EXPECT_EQ(images[static_cast<std::size_t>(cycle.cells[k])], cycle.cells[(k + 1) % cycle.period()]);
    }
  }
}

TEST(CellMapping, FollowsTenMillionCellsInOneChain) {
  const int n = 10'000'000;
  std::vector<CellIndex> images(n);
  std::iota(images.begin(), images.end(), 1);
  images.back() = n - 2;
  const CellMapping m = follow_cells(images);
  ASSERT_EQ(m.cycles.size(), 1u);
  EXPECT_EQ(m.cycles[0].cells, (std::vector<CellIndex>{n - 2, n - 1}));
  EXPECT_EQ(m.transient[0], n - 2);
  EXPECT_EQ(m.cycles[0].basin, static_cast<std::size_t>(n));
}

TEST(JoinNear, JoinsThroughCyclesInBetween) {
  const Mesh mesh({uniform_axis(0, 0, 100, 100), uniform_axis(1, 0, 100, 100)});
  const auto cell = [](int i, int j) { return static_cast<CellIndex>(j * 100 + i); };
  const std::vector<CellCycle> cycles{{{cell(10, 10), cell(50, 50)}, 2},
                                      {{cell(12, 11)}, 1},
                                      {{cell(14, 12)}, 1},
                                      {{cell(17, 12)}, 1},
                                      {{cell(80, 80), cell(51, 51)}, 2}};
  EXPECT_EQ(join_near(mesh, cycles, 1), (std::vector<std::int32_t>{0, 1, 2, 3, 0}));
  EXPECT_EQ(join_near(mesh, cycles, 2), (std::vector<std::int32_t>{0, 0, 0, 3, 0}));
  EXPECT_EQ(join_near(mesh, cycles, 3), (std::vector<std::int32_t>{0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace saltus
