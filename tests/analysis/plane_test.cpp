#include "analysis/plane.hpp"

#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "model/read.hpp"

namespace saltus {
namespace {

struct Span {
  double low = HUGE_VAL, high = -HUGE_VAL, length = 0;
};

/// How far the lines of each kind reach along x, and how long they are.
std::map<PlaneKind, Span> spans(const std::string& text, const PlaneView& view) {
  Model model = read_model_text(text);
  const Program program(model);
  std::map<PlaneKind, Span> out;
  for (const PlaneLines& lines : picture_plane(program, parameter_values(model), view).lines) {
    Span& span = out[lines.kind];
    for (size_t k = 0; k < lines.ends.size(); k += 4) {
      const double x0 = lines.ends[k], x1 = lines.ends[k + 2];
      span.low = std::min({span.low, x0, x1});
      span.high = std::max({span.high, x0, x1});
      span.length += std::hypot(x1 - x0, lines.ends[k + 3] - lines.ends[k + 1]);
    }
  }
  return out;
}

TEST(Plane, FrictionSticksWhileTheForceIsBelowIt) {  // |sin(t) - y| <= F
  const char* const model = R"M(
equations = """
  y' = v
  v' = -y + sin(t) - F*sign(v)
"""
[parameters]
F = 0.4
[initial]
y = 0
v = 1
)M";
  auto found = spans(model, {.x_from = -2, .x_to = 2, .y_from = -1, .y_to = 1.3, .t = M_PI / 6, .state = {0, 0}});
  EXPECT_NEAR(found[PlaneKind::attracting].low, 0.1, 1e-4);
  EXPECT_NEAR(found[PlaneKind::attracting].high, 0.9, 1e-4);
  EXPECT_NEAR(found[PlaneKind::crossing].length, 3.2, 1e-3);
  EXPECT_EQ(found.count(PlaneKind::repelling), 0u);
}

TEST(Plane, ASignThatPushesAwayRepels) {
  const char* const model = R"M(
equations = """
  x' = 1
  y' = sign(y) + x
"""
[initial]
x = 0
y = 1
)M";
  auto found = spans(model, {.x_from = -3, .x_to = 3, .y_from = -1, .y_to = 1.1, .state = {0, 0}});
  EXPECT_NEAR(found[PlaneKind::repelling].low, -1, 1e-4);
  EXPECT_NEAR(found[PlaneKind::repelling].high, 1, 1e-4);
}

TEST(Plane, KinksContactsAndSectionsHaveTheirKind) {
  const char* const model = R"M(
equations = """
  x' = y
  y' = -abs(x) + N
"""
[initial]
x = 1
y = 0
[constraint.N]
gap = "x + 2"
restitution = 0.5
[section.half]
on = "y - 0.5"
)M";
  const PlaneView view{.x_from = -3, .x_to = 3, .y_from = -1, .y_to = 1.1, .state = {0, 0}};
  auto found = spans(model, view);
  EXPECT_NEAR(found[PlaneKind::kink].length, 2.1, 1e-6);
  EXPECT_NEAR(found[PlaneKind::gap].low, -2, 1e-6);
  EXPECT_NEAR(found[PlaneKind::section].length, 6, 1e-6);
  const Program program(read_model_text(model));
  const PlanePicture picture = picture_plane(program, {}, view);
  ASSERT_EQ(picture.forbidden.size(), 65u * 65u);
  EXPECT_EQ(picture.forbidden.front(), 1);
  EXPECT_EQ(picture.forbidden.back(), 0);
}

TEST(Plane, ACurvedSurfaceIsFollowed) {  // a circle of radius 1
  const char* const model = R"M(
equations = """
  x' = -x*sign(x^2 + y^2 - 1)
  y' = -y*sign(x^2 + y^2 - 1)
"""
[initial]
x = 2
y = 0
)M";
  auto found = spans(model, {.x_from = -2, .x_to = 2, .y_from = -2, .y_to = 2, .state = {0, 0}});
  EXPECT_NEAR(found[PlaneKind::attracting].length, 2 * M_PI, 5e-3);
}

}  // namespace
}  // namespace saltus
