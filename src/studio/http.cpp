#include "studio/http.hpp"

#include <algorithm>

namespace saltus {
namespace {

char small(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return small(x) == small(y); });
}

std::string_view without_blanks(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (small(c) >= 'a' && small(c) <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return (c >= 0 && c < ' ' && c != '\t') || c == 127; });
}

}  // namespace

std::string HttpRequest::field(std::string_view name) const {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return same_word(f.first, name); });
  return found == fields.end() ? "" : found->second;
}

int HttpRequest::count(std::string_view name) const {
  return static_cast<int>(
      std::count_if(fields.begin(), fields.end(), [&](const auto& f) { return same_word(f.first, name); }));
}

bool HttpRequest::lists(std::string_view name, std::string_view word) const {
  const std::string value = field(name);
  for (std::string_view rest = value; !rest.empty();) {
    const size_t comma = rest.find(',');
    if (same_word(without_blanks(rest.substr(0, comma)), word)) return true;
    rest.remove_prefix(comma == rest.npos ? rest.size() : comma + 1);
  }
  return false;
}

bool HttpRequest::has_body() const {
  return count("Transfer-Encoding") > 0 || field("Content-Length").find_first_not_of('0') != std::string::npos;
}

bool HttpRequest::is_upgrade() const {
  return method == "GET" && version == "HTTP/1.1" && lists("Connection", "upgrade") && lists("Upgrade", "websocket") &&
         field("Sec-WebSocket-Version") == "13" && count("Sec-WebSocket-Key") == 1 &&
         field("Sec-WebSocket-Key").size() == 24;
}

std::optional<HttpRequest> parse_request(std::string_view head) {
  const auto next_line = [&]() -> std::optional<std::string_view> {
    const size_t end = head.find("\r\n");
    if (end == head.npos) return {};
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end + 2);
    if (has_control(line)) return {};
    return line;
  };
  const auto first = next_line();
  if (!first) return {};
  const size_t one = first->find(' '), two = first->rfind(' ');
  if (one == first->npos || two == one) return {};
  HttpRequest out{std::string(first->substr(0, one)),
                  std::string(first->substr(one + 1, two - one - 1)),
                  std::string(first->substr(two + 1)),
                  {}};
  if (!is_name(out.method) || out.target.empty() || out.target.find_first_of(" \t") != std::string::npos ||
      (out.version != "HTTP/1.1" && out.version != "HTTP/1.0"))
    return {};
  for (;;) {
    const auto line = next_line();
    if (!line) return {};
    if (line->empty()) return out;
    const size_t colon = line->find(':');
    if (colon == line->npos || !is_name(line->substr(0, colon))) return {};
    out.fields.emplace_back(line->substr(0, colon), without_blanks(line->substr(colon + 1)));
  }
}

std::string_view reason_of(int status) {
  switch (status) {
    case 101: return "Switching Protocols";
    case 200: return "OK";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 503: return "Service Unavailable";
    default: return "Unknown";
  }
}

}  // namespace saltus
