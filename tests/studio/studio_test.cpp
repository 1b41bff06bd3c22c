#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "studio/assets.hpp"
#include "studio/coarse.hpp"
#include "studio/frame.hpp"
#include "studio/gate.hpp"
#include "studio/message.hpp"

namespace saltus {
namespace {

TEST(Token, IsLongAndNew) {
  const std::string a = make_token(), b = make_token();
  EXPECT_EQ(a.size(), 32u);
  EXPECT_NE(a, b);
  EXPECT_EQ(a.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"), std::string::npos);
}

TEST(Gate, LetsInWhoKnowsTheTokenFromItsOwnPage) {
  const Gate gate(8000, "secret");
  const Visit good{.target = "/ws",
                   .host = "127.0.0.1:8000",
                   .origin = "http://127.0.0.1:8000",
                   .protocols = "saltus.token.secret,saltus.v1",
                   .upgrade = true};
  EXPECT_EQ(gate.judge(good), Verdict::socket);
  Visit bad = good;
  bad.origin = "http://localhost:8000";
  EXPECT_EQ(gate.judge(bad), Verdict::forbidden);
  bad = good;
  bad.protocols = "saltus.v1, saltus.token.secreT";
  EXPECT_EQ(gate.judge(bad), Verdict::wrong_token);
  bad = good;
  bad.fetch_site = "cross-site";
  EXPECT_EQ(gate.judge(bad), Verdict::forbidden);
  EXPECT_EQ(gate.judge({.target = "/", .host = "localhost:8000"}), Verdict::asset);
  EXPECT_EQ(gate.judge({.target = "/", .host = "localhost"}), Verdict::forbidden);
  EXPECT_EQ(gate.judge({.target = "/../LICENSE", .host = "localhost:8000"}), Verdict::unknown);
}

TEST(Assets, AreThePage) {
  ASSERT_NE(find_asset("/"), nullptr);
  EXPECT_NE(find_asset("/")->bytes.find("studio.js"), std::string_view::npos);
  EXPECT_EQ(find_asset(""), nullptr);
  for (const Asset& asset : assets()) EXPECT_FALSE(asset.type.empty()) << asset.path;
}

TEST(Frame, PutsArraysAtMultiplesOfEight) {
  Frame frame;
  const std::vector<std::int32_t> whole{1, 2, 3};
  const std::vector<double> numbers{0.5};
  frame.add("whole", whole).add("numbers", numbers);
  const std::string bytes = frame.bytes(7, "test", [](JsonWriter& json) { json.member("more", 1); });
  std::uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 4, 4);
  EXPECT_EQ(bytes.substr(0, 4), "SAL1");
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(bytes.size(), 8 + length + 16 + 8);
  double number = 0;
  std::memcpy(&number, bytes.data() + 8 + length + 16, 8);
  EXPECT_EQ(number, 0.5);
  EXPECT_NE(bytes.find(R"("offset": 16)"), std::string::npos);
}

TEST(PageRequest, ReadsNumbersAndFormulas) {
  const PageRequest m =
      read_message(R"({"do": "run", "id": 3, "p": {"b": 0.1, "a": "1/3"}, "until": 60, "drag": true})");
  EXPECT_EQ(m.verb, "run");
  EXPECT_EQ(m.id, 3);
  ASSERT_EQ(m.parameters.size(), 2u);
  EXPECT_EQ(m.parameters[0].name, "b");
  EXPECT_EQ(m.parameters[0].value, "0.1");
  EXPECT_EQ(m.parameters[1].value, "1/3");
  EXPECT_EQ(m.until, "60");
  EXPECT_TRUE(m.drag);
}

TEST(PageRequest, RefusesWhatIsNone) {
  for (const char* text :
       {"", "[]", "{", "{}", R"({"do": 3})", R"({"do": "run", "id": 0.5})", R"({"do": "run", "p": 3})",
        R"({"do": "plane", "box": [1, 2]})", R"({"do": "basins", "levels": ["x"]})"})
    EXPECT_THROW(read_message(text), Error) << text;
  EXPECT_THROW(read_message(std::string(1 << 20, '[')), Error);
}

TEST(CoarseToFine, TakesEachOnceAndSpreads) {
  for (const size_t n : {1u, 2u, 3u, 10u, 64u, 401u}) {
    std::vector<double> values(n);
    for (size_t i = 0; i < n; ++i) values[i] = static_cast<double>(i);
    std::vector<double> order = coarse_to_fine(values);
    if (n == 64) {
      std::vector<double> first(order.begin(), order.begin() + 9);
      std::sort(first.begin(), first.end());
      for (size_t i = 1; i < first.size(); ++i) EXPECT_LE(first[i] - first[i - 1], 9);
    }
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, values);
  }
}

}  // namespace
}  // namespace saltus
