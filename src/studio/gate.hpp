// Who may come in: every request is judged before anything is answered. docs/studio.md says against whom.
#pragma once

#include <string>
#include <string_view>

namespace saltus {

/// The fields of an HTTP request that the access rules read; fields that were not sent are empty.
struct Visit {
  std::string method = "GET";
  std::string target;
  std::string host;
  std::string origin;
  std::string fetch_site;  ///< Sec-Fetch-Site: where the browser says that the request comes from
  std::string protocols;   ///< Sec-WebSocket-Protocol
  bool upgrade = false;    ///< asks for a WebSocket
  bool body = false;
};

/// The HTTP status of a visit.
enum class Verdict {
  socket = 101,
  asset = 200,
  bad_request = 400,
  wrong_token = 401,
  forbidden = 403,
  unknown = 404,
  wrong_method = 405,
};

class Gate {
 public:
  Gate(int port, std::string token) : port_(port), token_(std::move(token)) {}

  Verdict judge(const Visit& visit) const;

  /// Names the protocol that the page and the program speak.
  static constexpr std::string_view protocol = "saltus.v1";

 private:
  bool is_own_host(std::string_view host) const;
  bool has_token(std::string_view protocols) const;

  int port_;
  std::string token_;
};

/// The headers that forbid browsers what the page does not need.
std::string content_policy(std::string_view host);

/// 192 random bits as text.
std::string make_token();

}  // namespace saltus
