#include "studio/websocket.hpp"

#include <array>
#include <bit>
#include <utility>

#include "out/text.hpp"

namespace saltus {
namespace {

using Digest = std::array<unsigned char, 20>;

/// RFC 3174. It guards nothing here: it only shows that the other side speaks WebSocket.
Digest sha1(std::string text) {
  const std::uint64_t bits = 8 * text.size();
  text += '\x80';
  while (text.size() % 64 != 56) text += '\0';
  for (int shift = 56; shift >= 0; shift -= 8) text += static_cast<char>(bits >> shift & 255);
  std::array<std::uint32_t, 5> h = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  for (size_t block = 0; block < text.size(); block += 64) {
    std::array<std::uint32_t, 80> w{};
    for (size_t i = 0; i < 64; ++i) w[i / 4] = w[i / 4] << 8 | static_cast<unsigned char>(text[block + i]);
    for (size_t i = 16; i < 80; ++i) w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    auto [a, b, c, d, e] = h;
    for (size_t i = 0; i < 80; ++i) {
      const std::uint32_t mixed = i < 20   ? ((b & c) | (~b & d)) + 0x5A827999
                                  : i < 40 ? (b ^ c ^ d) + 0x6ED9EBA1
                                  : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDC
                                           : (b ^ c ^ d) + 0xCA62C1D6;
      const std::uint32_t next = std::rotl(a, 5) + mixed + e + w[i];
      e = d, d = c, c = std::rotl(b, 30), b = a, a = next;
    }
    h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
  }
  Digest out{};
  for (size_t i = 0; i < 20; ++i) out[i] = static_cast<unsigned char>(h[i / 4] >> (24 - 8 * (i % 4)));
  return out;
}

std::string base64(const Digest& bytes) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto at = [&](size_t k) { return k < bytes.size() ? unsigned{bytes[k]} : 0u; };
    const unsigned three = at(i) << 16 | at(i + 1) << 8 | at(i + 2);
    for (int shift = 18; shift >= 0; shift -= 6) out += letters[three >> shift & 63];
  }
  for (size_t i = bytes.size() % 3, k = out.size(); i > 0 && i < 3; ++i) out[--k] = '=';
  return out;
}

}  // namespace

std::string accept_key(std::string_view key) {
  return base64(sha1(std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"));
}

std::string socket_frame(SocketCode code, std::string_view bytes) {
  std::string out(1, static_cast<char>(0x80 | static_cast<unsigned char>(code)));
  const int longer = bytes.size() < 126 ? 0 : bytes.size() < 65536 ? 2 : 8;
  out += static_cast<char>(longer == 0 ? bytes.size() : longer == 2 ? 126u : 127u);
  for (int i = longer - 1; i >= 0; --i) out += static_cast<char>(std::uint64_t{bytes.size()} >> (8 * i) & 255);
  return out.append(bytes);
}

std::string close_frame(CloseReason reason) {
  const auto code = static_cast<std::uint16_t>(reason);
  return socket_frame(SocketCode::close, std::string{static_cast<char>(code >> 8), static_cast<char>(code & 255)});
}

CloseReason answer_to_close(std::string_view content) {
  if (content.empty()) return CloseReason::going;
  if (content.size() == 1) return CloseReason::wrong_protocol;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(content[i]); };
  const unsigned code = byte(0) * 256u + byte(1);
  const bool defined = (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014);
  if (!defined && (code < 3000 || code > 4999)) return CloseReason::wrong_protocol;
  const std::string reason(content.substr(2));
  return valid_utf8(reason) == reason ? static_cast<CloseReason>(code) : CloseReason::not_text;
}

std::optional<MessageReader::Message> MessageReader::next() {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes_[i]); };
  while (bytes_.size() >= 2) {
    const bool last = byte(0) & 0x80, masked = byte(1) & 0x80, control = byte(0) & 8;
    const unsigned code = byte(0) & 15, short_length = byte(1) & 127;
    const bool known = code <= 2 || (code >= 8 && code <= 10);
    if (!known || (byte(0) & 0x70) || !masked || (control && (!last || short_length > 125)))
      throw CloseReason::wrong_protocol;
    if (!control && (code == 0) == (code_ == SocketCode::more)) throw CloseReason::wrong_protocol;
    const size_t longer = short_length == 126 ? 2 : short_length == 127 ? 8 : 0;
    const size_t head = 2 + longer + 4;
    if (bytes_.size() < head) return {};
    std::uint64_t length = longer == 0 ? short_length : 0;
    for (size_t i = 0; i < longer; ++i) length = length << 8 | byte(2 + i);
    if ((longer == 2 && length < 126) || (longer == 8 && (length < 65536 || length >> 63)))
      throw CloseReason::wrong_protocol;  // the shortest form only
    if (length > longest_ || (!control && begun_.size() + length > longest_)) throw CloseReason::too_long;
    if (bytes_.size() < head + length) return {};
    std::string content = bytes_.substr(head, length);
    for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(content[i] ^ bytes_[head - 4 + i % 4]);
    bytes_.erase(0, head + length);
    if (control) return Message{static_cast<SocketCode>(code), std::move(content)};
    if (code != 0) code_ = static_cast<SocketCode>(code);
    begun_ += content;
    if (!last) continue;
    Message message{std::exchange(code_, SocketCode::more), std::exchange(begun_, {})};
    if (message.code == SocketCode::text && valid_utf8(message.bytes) != message.bytes) throw CloseReason::not_text;
    return message;
  }
  return {};
}

}  // namespace saltus
