#include "base/table.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/figure.hpp"

namespace saltus {
namespace {

Table events() {
  Table table("events", "what happened");
  table.add_numbers("t").add_texts("kind").add_numbers("y");
  table.append({0.5, "slide", -1.0});
  table.append({0.75, "leave", 2.0});
  return table;
}

template <class F>
std::string complaint(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.report();
  }
  return "";
}

TEST(Table, KeepsRowsAndColumnsInOrder) {
  const Table table = events();
  EXPECT_EQ(table.rows(), 2u);
  EXPECT_EQ(table.columns().size(), 3u);
  EXPECT_EQ(table.numbers("t"), (Numbers{0.5, 0.75}));
  EXPECT_EQ(table.texts("kind"), (Texts{"slide", "leave"}));
  EXPECT_EQ(table.description(), "what happened");
  EXPECT_TRUE(table.has("y"));
  EXPECT_FALSE(table.has("z"));
}

TEST(Table, TakesWholeColumns) {
  Table table;
  table.add_numbers("t", {1, 2, 3}, "time").add_texts("mode", {"+", "0", "-"});
  EXPECT_EQ(table.name(), "data");
  EXPECT_EQ(table.rows(), 3u);
  EXPECT_EQ(table.column("t").description, "time");
}

TEST(Table, AGapIsNaNInNumbersAndEmptyInTexts) {
  Table table = events();
  table.append_gap();
  EXPECT_EQ(table.rows(), 3u);
  EXPECT_TRUE(std::isnan(table.numbers("y")[2]));
  EXPECT_EQ(table.texts("kind")[2], "");
}

TEST(Table, NamesTheNearestColumnWhenThereIsNone) {
  EXPECT_EQ(complaint([] { events().numbers("knd"); }), "table 'events' has no column 'knd'\ndid you mean 'kind'?\n");
  EXPECT_NE(complaint([] { events().numbers("kind"); }).find("holds texts"), std::string::npos);
  EXPECT_NE(complaint([] { events().texts("t"); }).find("holds numbers"), std::string::npos);
}

TEST(Table, RefusesWhatWouldTearItsRows) {
  Table table = events();
  EXPECT_NE(complaint([&] { table.append({1.0, "slide"}); }).find("2 values where 3 are needed"), std::string::npos);
  EXPECT_NE(complaint([&] { table.append({"slide", 1.0, 1.0}); }), "");
  const double row[] = {1, 2, 3};
  EXPECT_NE(complaint([&] { table.append(row); }).find("holds texts"), std::string::npos);
  EXPECT_NE(complaint([&] { table.add_numbers("z", {1}); }).find("1 values where 2"), std::string::npos);
  EXPECT_NE(complaint([&] { table.add_numbers("t", {1, 2}); }).find("already"), std::string::npos);
  for (const Column& column : table.columns()) EXPECT_EQ(column.size(), 2u) << column.name;
}

TEST(Table, NamesOfTheUserWinOverItsOwn) {
  Table table("events");
  table.add_texts("on", {"a"}).add_own("on", {1}).add_own("period", {2}).add_numbers("period", {3}).add_own("on_", {4});
  EXPECT_EQ(table.numbers("on"), Numbers{1});
  EXPECT_EQ(table.numbers("period"), Numbers{2});
  EXPECT_EQ(table.numbers("period_"), Numbers{3});
  EXPECT_EQ(table.numbers("on_"), Numbers{4});
  EXPECT_EQ(table.texts("on__"), Texts{"a"});
  EXPECT_EQ(table.beside_own("on"), "on__");
  EXPECT_THROW(table.add_own("on", {5}), Error);
  EXPECT_THROW(table.add_numbers("period", {5}), Error);
}

TEST(Table, HoldsTenMillionNumbersRowByRow) {
  Table table;
  table.add_numbers("t").add_numbers("y");
  table.reserve(5'000'000);
  for (int i = 0; i < 5'000'000; ++i) {
    const double row[] = {i * 1e-3, -1.0 * i};
    table.append(row);
  }
  EXPECT_EQ(table.rows(), 5'000'000u);
  EXPECT_EQ(table.numbers("y").back(), -4'999'999.0);
}

TEST(Table, IsFoundByName) {
  const Table tables[] = {Table("data"), events()};
  EXPECT_EQ(find_table(tables, "events").rows(), 2u);
  EXPECT_EQ(complaint([&] { find_table(tables, "event"); }), "there is no table 'event'\ndid you mean 'events'?\n");
}

TEST(Figure, IsCheckedAgainstItsTables) {
  const Table tables[] = {events()};
  const auto with = [](Layer layer) {
    return Figure{.stacks = {Stack{.panels = {Panel{.layers = {std::move(layer)}}}}}};
  };
  EXPECT_NO_THROW(check(with(Points{.table = "events", .x = "t", .y = "y", .kind = "kind"}), tables));
  EXPECT_NE(complaint([&] { check(with(Line{.x = "t", .y = "y"}), tables); }).find("no table 'data'"),
            std::string::npos);
  EXPECT_NE(complaint([&] { check(with(Points{.table = "events", .x = "t", .y = "y", .kind = "y"}), tables); }), "");
  EXPECT_NE(complaint([&] { check(with(Line{.table = "events", .x = "t", .y = "kind"}), tables); }), "");
  EXPECT_NE(complaint([&] { check(with(Ribbon{.table = "events"}), tables); }), "");
}

}  // namespace
}  // namespace saltus
