#include "out/json.hpp"

#include <limits>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace saltus {
namespace {

using Parsed = nlohmann::json;

TEST(Json, IsReadBackByAnotherReader) {
  std::ostringstream out;
  {
    JsonWriter json(out);
    json.object().member("model", "Dry-friction \"oscillator\"").key("parameters").object().member("F", 0.4).end();
    json.key("events").rows();
    for (int i = 0; i < 3; ++i) {
      json.object().member("t", 0.1 * i).member("kind", std::string("slide")).key("mode").array();
      json.value("+0|c").value("-0|c").end().end();
    }
    json.end();
    json.member("steps", size_t{12}).member("stable", true).key("empty").rows().end().key("none").null();
    json.key("nothing").object().end().end();
  }
  const Parsed read = Parsed::parse(out.str());
  EXPECT_EQ(read["model"], "Dry-friction \"oscillator\"");
  EXPECT_EQ(read["parameters"]["F"], 0.4);
  EXPECT_EQ(read["events"].size(), 3u);
  EXPECT_EQ(read["events"][2]["t"], 0.1 * 2);
  EXPECT_EQ(read["events"][1]["mode"], Parsed::array({"+0|c", "-0|c"}));
  EXPECT_EQ(read["steps"], 12);
  EXPECT_EQ(read["stable"], true);
  EXPECT_TRUE(read["empty"].empty());
  EXPECT_TRUE(read["none"].is_null());
}

TEST(Json, HasOneLinePerMemberAndRow) {
  std::ostringstream out;
  JsonWriter json(out);
  json.object().member("a", 1).key("rows").rows();
  json.object().member("t", 0.5).member("x", 2).end().object().member("t", 1.0).end().end().member("b", false).end();
  EXPECT_EQ(out.str(),
            "{\"a\": 1,\n"
            " \"rows\": [\n"
            "  {\"t\": 0.5, \"x\": 2},\n"
            "  {\"t\": 1}],\n"
            " \"b\": false}\n");
}

TEST(Json, NumbersReadBackBitForBit) {
  const double numbers[] = {0.1, 1.0 / 3, -0.0, 5e-324, 1.7976931348623157e308, 1e22, 123456789.123456789};
  std::ostringstream out;
  JsonWriter(out).object().member("x", std::span<const double>(numbers)).end();
  const Parsed read = Parsed::parse(out.str());
  for (size_t i = 0; i < std::size(numbers); ++i) EXPECT_EQ(read["x"][i].get<double>(), numbers[i]);
}

TEST(Json, NumbersThatAreInfiniteAreWordsAndThoseThatAreNoneAreNull) {
  const double inf = std::numeric_limits<double>::infinity();
  const double numbers[] = {inf, -inf, std::numeric_limits<double>::quiet_NaN()};
  std::ostringstream out;
  JsonWriter(out).object().member("x", std::span<const double>(numbers)).end();
  EXPECT_EQ(out.str(), "{\"x\": [\"inf\", \"-inf\", null]}\n");
}

TEST(Json, EscapesWhatMustBeAndRepairsWhatIsNotText) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  all += "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 \xED\xA0\x80 \xC0\xAF \xF4\x90\x80\x80 \xE2\x82";
  const std::string read = Parsed::parse(json_string(all)).get<std::string>();
  EXPECT_EQ(read.substr(0, 128), all.substr(0, 128));
  EXPECT_NE(read.find("\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 \xEF\xBF\xBD"), read.npos);
}

TEST(Json, StreamsWhatIsLong) {
  std::ostringstream out;
  JsonWriter json(out);
  json.object().key("points").rows();
  for (int i = 0; i < 50'000; ++i) json.object().member("t", i * 0.1).end();
  EXPECT_GT(out.str().size(), 500'000u) << "most has gone out before the end";
  json.end().end();
  EXPECT_EQ(Parsed::parse(out.str())["points"].size(), 50'000u);
}

}  // namespace
}  // namespace saltus
