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
#include "studio/http.hpp"
#include "studio/message.hpp"
#include "studio/server.hpp"
#include "studio/websocket.hpp"

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

TEST(Http, ReadsARequest) {
  const auto r = parse_request(
      "GET /ws HTTP/1.1\r\nHost: a:1\r\nCONNECTION:keep-alive ,\tupgrade\r\nUpgrade: WebSocket\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nhost:b\r\n\r\n");
  ASSERT_TRUE(r);
  EXPECT_EQ(r->method + r->target, "GET/ws");
  EXPECT_EQ(r->field("host"), "a:1");
  EXPECT_EQ(r->count("Host"), 2);
  EXPECT_TRUE(r->is_upgrade());
  EXPECT_FALSE(r->has_body());
  const auto has_body = [](const std::string& field) {
    return parse_request("GET / HTTP/1.1\r\n" + field + "\r\n\r\n")->has_body();
  };
  EXPECT_FALSE(has_body("Content-Length: 0"));
  EXPECT_TRUE(has_body("Content-Length: 10"));
  EXPECT_TRUE(has_body("Content-Length: -0"));
  EXPECT_TRUE(has_body("transfer-encoding: identity"));
}

TEST(Http, RefusesWhatIsNone) {
  for (const std::string text :
       {"", "\r\n", "GET /\r\n\r\n", "GET  HTTP/1.1\r\n\r\n", "GET / HTTP/2\r\n\r\n", "G T / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
        "GET / HTTP/1.1\nHost: a\n\n", "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", "GET / HTTP/1.1\r\n: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n", "(x) / HTTP/1.1\r\n\r\n"})
    EXPECT_FALSE(parse_request(text)) << text;
}

TEST(WebSocket, AnswersTheKeyOfTheStandard) {
  EXPECT_EQ(accept_key("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");  // RFC 6455, 1.3
}

/// A frame as a page sends it: masked.
std::string page_frame(unsigned first, const std::string& text, int length_bytes = 0) {
  std::string out{static_cast<char>(first)};
  if (length_bytes == 0) out += static_cast<char>(0x80 | text.size());
  if (length_bytes > 0) out += static_cast<char>(length_bytes == 2 ? 0xFE : 0xFF);
  for (int i = length_bytes - 1; i >= 0; --i) out += static_cast<char>(std::uint64_t{text.size()} >> (8 * i));
  const std::string mask = "\x37\xfa\x21\x3d";
  out += mask;
  for (size_t i = 0; i < text.size(); ++i) out += static_cast<char>(text[i] ^ mask[i % 4]);
  return out;
}

TEST(WebSocket, PutsMessagesTogetherByteByByte) {
  EXPECT_EQ(page_frame(0x81, "Hello"), "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58");  // RFC 6455, 5.7
  const std::string middle(300, 'x'), large(70000, 'y');
  const std::string bytes = page_frame(0x01, "Hel") + page_frame(0x89, "ping") + page_frame(0x00, "") +
                            page_frame(0x80, "lo") + page_frame(0x82, "\xff") + page_frame(0x81, middle, 2) +
                            page_frame(0x81, large, 8) + page_frame(0x81, "") + page_frame(0x88, "\x03\xe8");
  MessageReader reader(100000);
  std::vector<std::pair<int, std::string>> found;
  for (const char c : bytes) {
    reader.feed({&c, 1});
    while (const auto message = reader.next()) found.emplace_back(static_cast<int>(message->code), message->bytes);
  }
  const std::vector<std::pair<int, std::string>> wanted = {{9, "ping"}, {1, "Hello"}, {2, "\xff"},    {1, middle},
                                                           {1, large},  {1, ""},      {8, "\x03\xe8"}};
  EXPECT_EQ(found, wanted);
}

TEST(WebSocket, ClosesAtWhatNoPageSends) {
  const auto reason = [](const std::string& bytes) {
    MessageReader reader(1000);
    reader.feed(bytes);
    try {
      while (reader.next()) {
      }
    } catch (CloseReason r) {
      return static_cast<int>(r);
    }
    return 0;
  };
  EXPECT_EQ(reason(page_frame(0x81, "fine")), 0);
  EXPECT_EQ(reason(std::string("\x81\x01x")), 1002);                       // not masked
  EXPECT_EQ(reason(page_frame(0xC1, "x")), 1002);                          // compressed
  EXPECT_EQ(reason(page_frame(0x83, "x")), 1002);                          // no such code
  EXPECT_EQ(reason(page_frame(0x80, "x")), 1002);                          // goes on without a beginning
  EXPECT_EQ(reason(page_frame(0x01, "x") + page_frame(0x81, "y")), 1002);  // begins twice
  EXPECT_EQ(reason(page_frame(0x09, "x")), 1002);                          // half a ping
  EXPECT_EQ(reason(page_frame(0x89, std::string(126, 'x'), 2)), 1002);     // a long ping
  EXPECT_EQ(reason(page_frame(0x81, "\xff\xfe")), 1007);
  EXPECT_EQ(reason(page_frame(0x01, "\xc3") + page_frame(0x80, "\xa9")), 0);          // a letter cut in two
  EXPECT_EQ(reason(page_frame(0x82, std::string(1001, 'x'), 2).substr(0, 8)), 1009);  // before it has come
  EXPECT_EQ(reason(page_frame(0x02, std::string(600, 'x'), 2) + page_frame(0x80, std::string(600, 'x'), 2)), 1009);
  EXPECT_EQ(reason("\x82\xff\x7f" + std::string(11, '\xff')), 1009);
  EXPECT_EQ(reason("\x82\xff" + std::string(12, '\xff')), 1002);  // lengths have 63 bits
  EXPECT_EQ(reason(page_frame(0x81, "x", 2)), 1002);              // not the shortest form
  EXPECT_EQ(reason(page_frame(0x81, std::string(300, 'x'), 8)), 1002);
}

TEST(WebSocket, WritesLengthsInThreeWays) {
  EXPECT_EQ(socket_frame(SocketCode::text, "Hello"), "\x81\x05Hello");
  EXPECT_EQ(socket_frame(SocketCode::binary, std::string(256, 'x')).substr(0, 5), std::string("\x82\x7e\x01\x00x", 5));
  EXPECT_EQ(socket_frame(SocketCode::binary, std::string(65536, 'x')).substr(0, 11),
            std::string("\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00x", 11));
  EXPECT_EQ(close_frame(CloseReason::too_long), "\x88\x02\x03\xf1");
  // RFC 6455, 5.5.1 and 7.4: a close is answered with its own code, or refused.
  const auto answer = [](unsigned code, const std::string& reason = "") {
    return static_cast<unsigned>(
        answer_to_close(std::string{static_cast<char>(code >> 8), static_cast<char>(code & 255)} + reason));
  };
  EXPECT_EQ(answer_to_close(""), CloseReason::going);
  EXPECT_EQ(answer_to_close("\x03"), CloseReason::wrong_protocol);
  for (const unsigned code : {1000u, 1001u, 1003u, 1007u, 1011u, 1014u, 3000u, 4999u}) EXPECT_EQ(answer(code), code);
  for (const unsigned code : {0u, 999u, 1004u, 1005u, 1006u, 1015u, 1016u, 2999u, 5000u, 65535u})
    EXPECT_EQ(answer(code), 1002u) << code;
  EXPECT_EQ(answer(1000, "bye"), 1000u);
  EXPECT_EQ(answer(1000, "\xff"), 1007u);
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
  ASSERT_EQ(m.solve.size(), 1u);
  EXPECT_EQ(m.solve[0].name + "=" + m.solve[0].value, "until=60");
  EXPECT_TRUE(m.drag);
}

TEST(PageRequest, TakesEveryOptionOfHowToCompute) {
  for (const SolveOption& option : solve_options()) {
    const std::string value = option.kind == "flag"       ? "true"
                              : option.kind == "settings" ? R"({"v": "+1", "N": 0})"
                              : option.kind == "count"    ? "3"
                              : option.name == "theta"    ? "0.75"
                                                          : R"("0.001")";
    const PageRequest m = read_message(fmt::format(R"({{"do": "run", "{}": {}}})", option.name, value));
    ASSERT_FALSE(m.solve.empty()) << option.name;
    Solve solve;
    for (const Setting& s : m.solve) solve.give(s.name, s.value);
    const auto texts = solve.texts();
    EXPECT_TRUE(std::any_of(texts.begin(), texts.end(), [&](const auto& t) { return t.first == option.name; }))
        << option.name;
  }
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
