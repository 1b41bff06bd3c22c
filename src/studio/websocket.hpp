// WebSockets (RFC 6455) as bytes, of the server: what answers a handshake, frames out, messages in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace saltus {

/// Sec-WebSocket-Accept for a Sec-WebSocket-Key.
std::string accept_key(std::string_view key);

enum class SocketCode : unsigned char { more = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };

/// Why a socket is closed.
enum class CloseReason : std::uint16_t { going = 1000, wrong_protocol = 1002, not_text = 1007, too_long = 1009 };

/// A frame of its own, the last of its message.
std::string socket_frame(SocketCode code, std::string_view bytes);
std::string close_frame(CloseReason reason);
/// The answer to a close frame: its own code, `going` if it has none; `wrong_protocol` or `not_text` where it has
/// a code that nobody may send (RFC 6455, 7.4), or a reason that is no text.
CloseReason answer_to_close(std::string_view content);

/// Puts together the messages of a page.
class MessageReader {
 public:
  explicit MessageReader(size_t longest) : longest_(longest) {}

  struct Message {
    SocketCode code;  ///< of a message or a control frame, never `more`
    std::string bytes;
  };

  void feed(std::string_view bytes) { bytes_ += bytes; }
  /// The next one that has come in whole. Throws a CloseReason at what no page sends.
  std::optional<Message> next();

 private:
  size_t longest_;
  std::string bytes_;                   // not yet read
  std::string begun_;                   // of a message in several frames
  SocketCode code_ = SocketCode::more;  // of that message; `more`: there is none
};

}  // namespace saltus
