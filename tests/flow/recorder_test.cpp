// Transitions as users see them.
#include "flow/recorder.hpp"

#include <gtest/gtest.h>

#include "model/read.hpp"

namespace saltus {
namespace {

Model contact_model() {
  return read_model_text(R"(name = "m"
equations = """
x' = v - sign(x) + 0*floor(x)
v' = -1 + N
"""
[initial]
x = 1
v = 0
[constraint.N]
gap = "x"
restitution = 0.5
[jump.kick]
on = "x - 2"
set = { v = "1" }
)",
                         "test.toml");
}

Mode mode_of(const Model& m, char visible, char contact) {
  return {std::string(1, visible) + std::string(m.form.switches.size() - 1, '-'), std::string(1, contact)};
}

TEST(EventsOf, JumpsThenImpactsThenTheMode) {
  const Model m = contact_model();
  ASSERT_EQ(m.form.visible, 1);
  Transition t{.t = 1, .before = mode_of(m, '+', 'o'), .after = mode_of(m, '-', 'o')};
  t.x_minus = {0, -1};
  t.x_plus = {0, 2};
  t.jumps = {{0, {0, -1}, {0, -3}}};
  t.impulse = {{0, 5.0}};
  const std::vector<Event> events = events_of(t, m);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].kind, EventKind::jump);
  EXPECT_EQ(events[0].state, (std::vector<double>{0, -3}));
  EXPECT_EQ(events[1].kind, EventKind::impact);
  EXPECT_EQ(*events[1].jumped, (std::vector<double>{0, -3}));
  EXPECT_EQ(events[2].kind, EventKind::cross);
  EXPECT_EQ(events[2].after.text(), "-|o") << "hidden switches have no letter";
}

TEST(EventsOf, AnImpactThatEndsClosedIsOneEvent) {
  const Model m = contact_model();
  Transition t{.t = 1, .before = mode_of(m, '+', 'o'), .after = mode_of(m, '+', 'c')};
  t.x_minus = {0, -1};
  t.x_plus = {0, 0};
  t.impulse = {{0, 1.0}};
  const std::vector<Event> events = events_of(t, m);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, EventKind::close);
  EXPECT_EQ(*events[0].jumped, t.x_minus);
}

TEST(EventsOf, SilentTransitionsAndFlatSurfacesShowNothing) {
  const Model m = contact_model();
  Transition t{.t = 1, .before = mode_of(m, '0', 'o'), .after = mode_of(m, '=', 'o')};
  EXPECT_TRUE(events_of(t, m).empty()) << "= is 0 to users";
  t.after = mode_of(m, '+', 'o');
  t.silent = true;
  EXPECT_TRUE(events_of(t, m).empty());
}

}  // namespace
}  // namespace saltus
