#include "out/thin.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "out/text.hpp"

namespace saltus {
namespace {

const double no_number = std::numeric_limits<double>::quiet_NaN();

struct Curve {
  std::vector<double> x, y;

  void add(double a, double b) {
    x.push_back(a);
    y.push_back(b);
  }
};

/// How far, in pixels, the curve is from the polygon through the kept rows.
double deviation(const Curve& c, const std::vector<size_t>& rows, const PixelMap& map) {
  double worst = 0;
  for (size_t k = 1; k < rows.size(); ++k) {
    if (rows[k] == kGap || rows[k - 1] == kGap) continue;
    const double ax = map.px(c.x[rows[k - 1]]), ay = map.py(c.y[rows[k - 1]]);
    const double dx = map.px(c.x[rows[k]]) - ax, dy = map.py(c.y[rows[k]]) - ay, dd = dx * dx + dy * dy;
    for (size_t i = rows[k - 1]; i <= rows[k]; ++i) {
      const double px = map.px(c.x[i]) - ax, py = map.py(c.y[i]) - ay;
      const double s = dd > 0 ? std::clamp((px * dx + py * dy) / dd, 0.0, 1.0) : 0;
      worst = std::max(worst, std::hypot(px - s * dx, py - s * dy));
    }
  }
  return worst;
}

TEST(ThinLine, KeepsTheExtremesOfATimeSeries) {
  Curve c;
  std::mt19937 random(3);
  std::uniform_real_distribution<double> noise(-1, 1);
  for (int i = 0; i < 200'000; ++i) c.add(i, noise(random));
  c.y[77'777] = 5;
  c.y[123'456] = -5;
  const PixelMap map{0, 200'000, -5, 5, 800, 400};
  const auto rows = thin_line(c.x, c.y, map, 20'000);
  EXPECT_LE(rows.size(), 4u * 2u * 801u);
  EXPECT_EQ(std::count(rows.begin(), rows.end(), 77'777u), 1);
  EXPECT_EQ(std::count(rows.begin(), rows.end(), 123'456u), 1);
  EXPECT_EQ(rows.front(), 0u);
  EXPECT_EQ(rows.back(), 199'999u);
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
}

TEST(ThinLine, KeepsJumpsAsGapsHoweverDenseTheRows) {
  Curve c;
  const int pieces = 40, each = 5000;
  for (int k = 0; k < pieces; ++k) {
    for (int i = 0; i < each; ++i) c.add(k + static_cast<double>(i) / each, static_cast<double>(i) / each);
    c.add(no_number, no_number);
  }
  const auto rows = thin_line(c.x, c.y, {0, 40, 0, 1, 800, 400}, 20'000);
  EXPECT_EQ(std::count(rows.begin(), rows.end(), kGap), pieces - 1);
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i] == kGap || rows[i - 1] == kGap) continue;
    EXPECT_LT(std::abs(c.y[rows[i]] - c.y[rows[i - 1]]), 0.5) << "a jump was drawn as a line";
  }
}

TEST(ThinLine, FollowsACurveWithinAPixel) {
  Curve c;
  for (int i = 0; i < 300'000; ++i) {
    const double s = i * 1e-3;
    c.add(std::cos(s) * std::exp(-s / 100), std::sin(1.7 * s) * std::exp(-s / 100));
  }
  const PixelMap map{-1, 1, -1, 1, 500, 500};
  const auto rows = thin_line(c.x, c.y, map, 20'000);
  EXPECT_LE(rows.size(), 20'000u);
  EXPECT_LT(deviation(c, rows, map), 0.5);
}

TEST(ThinLine, KeepsSharpTurnsBackAlongItself) {
  Curve c;
  for (int i = 0; i <= 3000; ++i) c.add(i, 0);
  for (int i = 3000; i >= 0; --i) c.add(i, 0);
  c.add(0, 1);
  const PixelMap map{0, 3000, -1, 1, 300, 100};
  const auto rows = thin_line(c.x, c.y, map, 1000);
  EXPECT_LT(rows.size(), 20u);
  EXPECT_LT(deviation(c, rows, map), 0.5);
}

TEST(ThinLine, IsBoundedEvenForACurveTornToShreds) {
  Curve c;
  std::mt19937 random(3);
  std::uniform_real_distribution<double> anywhere(0, 1);
  for (int i = 0; i < 300'000; ++i) {
    if (i % 3 == 2) {
      c.add(no_number, no_number);
    } else {
      c.add(anywhere(random), anywhere(random));
    }
  }
  EXPECT_LE(thin_line(c.x, c.y, {0, 1, 0, 1, 500, 500}, 20'000).size(), 20'000u);
}

TEST(ThinLine, OfNothingIsNothing) {
  EXPECT_TRUE(thin_line({}, {}, {}, 100).empty());
  const std::vector<double> gaps(5000, no_number);
  EXPECT_TRUE(thin_line(gaps, gaps, {}, 100).empty());
}

TEST(ThinPoints, LeavesOnePerCellAndNoneOutside) {
  const std::vector<double> x = {0, 0.001, 0.5, 1, 2, -1, no_number}, y = {0, 0.001, 0.5, 1, 0, 0, 0};
  EXPECT_EQ(thin_points(x, y, {0, 1, 0, 1, 100, 100}, 1, 1000), (std::vector<size_t>{0, 2, 3}));
}

TEST(ThinPoints, KeepsToItsLimit) {
  Curve c;
  std::mt19937 random(3);
  std::uniform_real_distribution<double> anywhere(0, 1);
  for (int i = 0; i < 100'000; ++i) c.add(anywhere(random), anywhere(random));
  const auto rows = thin_points(c.x, c.y, {0, 1, 0, 1, 500, 500}, 1, 2000);
  EXPECT_LE(rows.size(), 2000u);
  EXPECT_GE(rows.size(), 700u);
}

TEST(CountPoints, CountsEveryPointInsideOnce) {
  const std::vector<double> x = {0, 0.49, 0.51, 1, 1.01}, y = {0, 0.1, 0.9, 1, 0.5};
  EXPECT_EQ(count_points(x, y, {0, 1, 0, 1, 10, 10}, 2, 2), (std::vector<unsigned>{2, 0, 0, 2}));
}

TEST(ThinRibbon, JoinsNeighboursAndShowsWhatPrevailsAmongTheNarrow) {
  std::vector<double> from, to;
  std::vector<std::string> mode;
  const auto add = [&](double a, double b, const char* m) {
    from.push_back(a);
    to.push_back(b);
    mode.push_back(m);
  };
  add(0, 10, "+");
  add(10, 20, "+");
  for (int i = 0; i < 10'000; ++i) {
    add(20 + i * 1e-3, 20 + i * 1e-3 + 0.9e-3, "0");
    add(20 + i * 1e-3 + 0.9e-3, 20 + (i + 1) * 1e-3, "-");
  }
  add(30, 40, "-");
  const auto stretches = thin_ribbon(from, to, mode, 20);
  ASSERT_EQ(stretches.size(), 3u);
  EXPECT_EQ(stretches[0].to, 20);
  EXPECT_EQ(mode[stretches[1].row], "0");
  EXPECT_NEAR(stretches[1].to, 30, 0.05);
  EXPECT_EQ(mode[stretches[2].row], "-");
}

TEST(ThinRibbon, RunsBackwardToo) {
  const std::vector<double> from = {3, 2, 1}, to = {2, 1, 0};
  const std::vector<std::string> mode = {"a", "b", "b"};
  const auto stretches = thin_ribbon(from, to, mode, 100);
  ASSERT_EQ(stretches.size(), 2u);
  EXPECT_EQ(stretches[0].from, 0);
  EXPECT_EQ(stretches[0].to, 2);
  EXPECT_EQ(mode[stretches[1].row], "a");
}

TEST(Text, IsMadeValidOnOneLineAndWrapped) {
  EXPECT_EQ(valid_utf8("a\xFF\xC3\xA9\xC3"), "a\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD");
  EXPECT_EQ(one_line("a\nb\tc\x7F"), "a b c ");
  EXPECT_EQ(character_count("\xC3\xA9\xE2\x82\xAC x"), 4u);
  EXPECT_EQ(wrap("one two three", 8, 5), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrap("onetwothree", 4, 5), (std::vector<std::string>{"onet", "woth", "ree"}));
  EXPECT_EQ(wrap("one two three four", 4, 2), (std::vector<std::string>{"one", "two …"}));
  EXPECT_TRUE(wrap("", 4, 2).empty());
}

}  // namespace
}  // namespace saltus
