// When a condition counts as crossed, and when a clock ticks.
#include "flow/jumps.hpp"

#include <gtest/gtest.h>

#include "model/read.hpp"

namespace saltus {
namespace {

Program program_of(const std::string& jump) {
  return Program(
      read_model_text("name = \"m\"\nequations = \"\"\"\nx' = 1\nn' = 0\n\"\"\"\n[initial]\nx = 0\nn = 0\n[jump.j]\n" +
                          jump + "\nset = { n = \"n + 1\" }\n",
                      "test.toml"));
}

TEST(Jumps, CrossingIsFromOneStrictSignToTheOther) {
  const Program program = program_of("on = \"x - 1\"");
  Jumps jumps(program, {}, 0);
  EXPECT_FALSE(jumps.note(0, -1, 0)) << "the first sign is none";
  EXPECT_FALSE(jumps.note(0, -1, 0));
  EXPECT_TRUE(jumps.note(0, 1, 0));
  EXPECT_TRUE(jumps.note(0, -1, 0));
}

TEST(Jumps, OnlyTheWantedDirectionTriggers) {
  const Program program = program_of("on = \"x - 1\"\ndirection = \"falling\"");
  Jumps jumps(program, {}, 0);
  jumps.note(0, -1, 0);
  EXPECT_FALSE(jumps.note(0, 1, 0));
  EXPECT_TRUE(jumps.note(0, -1, 0)) << "the unwanted crossing has moved its side";
}

TEST(Jumps, ArrivingAtZeroAndStayingCountsTurningBackDoesNot) {
  const Program program = program_of("on = \"x - 1\"");
  Jumps staying(program, {}, 0), turning(program, {}, 0), going_on(program, {}, 0);
  for (Jumps* j : {&staying, &turning, &going_on}) j->note(0, -1, 0);
  EXPECT_TRUE(staying.note(0, 0, 0));
  EXPECT_FALSE(turning.note(0, 0, -1));
  EXPECT_TRUE(going_on.note(0, 0, 1));
}

TEST(Jumps, WhatHasHappenedIsArmedAgainOnlyAfterZeroIsLeft) {
  const Program program = program_of("on = \"x - 1\"");
  Jumps jumps(program, {}, 0);
  jumps.note(0, -1, 0);
  jumps.fire(0, 1);
  EXPECT_FALSE(jumps.note(0, 0, 1)) << "its own zero";
  EXPECT_EQ(jumps.side(0), 1) << "the next step starts from above";
  EXPECT_FALSE(jumps.note(0, -1, 0)) << "put back by another jump without having been above";
  EXPECT_TRUE(jumps.note(0, 1, 0));
}

TEST(Jumps, AStartAtZeroIsNoCrossing) {
  const Program program = program_of("on = \"x\"");
  Jumps jumps(program, {}, 0);
  EXPECT_FALSE(jumps.note(0, 0, 1));
  EXPECT_FALSE(jumps.note(0, 1, 0));
}

TEST(Jumps, ClocksTickInAbsoluteTimeAndNotAtTheStart) {
  const Program program = program_of("every = \"0.3\"\nphase = \"0.1\"");
  Jumps from_a_tick(program, {}, 0.4), before(program, {}, 0.25), negative(program, {}, -1);
  EXPECT_DOUBLE_EQ(from_a_tick.next_tick(), 0.7);
  EXPECT_DOUBLE_EQ(before.next_tick(), 0.4);
  EXPECT_DOUBLE_EQ(negative.next_tick(), -0.8);
  EXPECT_TRUE(before.ticking(0.39, 1e-9).empty());
  EXPECT_EQ(before.ticking(0.4 - 1e-12, 1e-9).size(), 1u);
  before.fire(0, 0.4);
  EXPECT_DOUBLE_EQ(before.next_tick(), 0.7);
}

}  // namespace
}  // namespace saltus
