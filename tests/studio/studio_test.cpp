#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <thread>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "studio/assets.hpp"
#include "studio/coarse.hpp"
#include "studio/frame.hpp"
#include "studio/gate.hpp"
#include "studio/message.hpp"
#include "studio/server.hpp"

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

/// Asks for a page's socket; all that is answered until the other end closes or `least` bytes are there.
std::string open_socket(int port, size_t least) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) {
    const std::string ask = fmt::format(
        "GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{0}\r\nOrigin: http://127.0.0.1:{0}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Protocol: saltus.token.secret, saltus.v1\r\n\r\n",
        port);
    ::send(fd, ask.data(), ask.size(), MSG_NOSIGNAL);
    char bytes[4096];
    for (ssize_t n = 0; answer.size() < least && (n = ::recv(fd, bytes, sizeof bytes, 0)) > 0;)
      answer.append(bytes, static_cast<size_t>(n));
  }
  ::close(fd);
  return answer;
}

TEST(Server, OutlivesAPageForWhichThereIsNoRoom) {
  std::atomic<int> came = 0;
  Server server(0, "secret", [&](const Outbox&) -> std::unique_ptr<Guest> {
    ++came;
    throw std::bad_alloc();
  });
  const int port = server.port();
  std::atomic<bool> ended = false;
  std::thread runs([&] {
    server.run();
    ended = true;
  });
  for (int i = 1; i <= 3 && !ended; ++i) {
    EXPECT_TRUE(open_socket(port, 1 << 20).starts_with("HTTP/1.1 101")) << i;  // then it is closed
    EXPECT_EQ(came, i);
  }
  server.stop();
  runs.join();
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
