// The little of HTTP/1.1 that a page on this machine needs: one request without a body, one answer, the end.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saltus {

struct HttpRequest {
  std::string method, target, version;
  std::vector<std::pair<std::string, std::string>> fields;

  /// Names are the same in small letters and capitals; empty if it was not sent.
  std::string field(std::string_view name) const;
  int count(std::string_view name) const;
  /// True if a list like "keep-alive, Upgrade" has the word.
  bool lists(std::string_view name, std::string_view word) const;
  bool has_body() const;
  /// Asks for a WebSocket, of the only version there is.
  bool is_upgrade() const;
};

/// Everything up to the empty line, which ends it. Nothing if this is not HTTP.
std::optional<HttpRequest> parse_request(std::string_view head);

std::string_view reason_of(int status);

}  // namespace saltus
