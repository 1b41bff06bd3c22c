#include "studio/gate.hpp"

#include <array>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>
#include <sys/random.h>

#include "studio/assets.hpp"

namespace saltus {
namespace {

/// In a time that does not tell how much of it is right.
bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace

bool Gate::is_own_host(std::string_view host) const {
  for (const char* name : {"127.0.0.1", "localhost", "[::1]"}) {
    if (host == fmt::format("{}:{}", name, port_)) return true;
  }
  return false;
}

/// "saltus.v1, saltus.token.<T>", in this order or the other.
bool Gate::has_token(std::string_view protocols) const {
  constexpr std::string_view prefix = "saltus.token.";
  bool speaks = false, knows = false;
  while (!protocols.empty()) {
    const size_t comma = protocols.find(',');
    std::string_view word = protocols.substr(0, comma);
    protocols.remove_prefix(comma == protocols.npos ? protocols.size() : comma + 1);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    speaks = speaks || word == protocol;
    knows = knows || (word.starts_with(prefix) && same_secret(word.substr(prefix.size()), token_));
  }
  return speaks && knows;
}

Verdict Gate::judge(const Visit& visit) const {
  if (!is_own_host(visit.host)) return Verdict::forbidden;
  if (!visit.fetch_site.empty() && visit.fetch_site != "none" && visit.fetch_site != "same-origin")
    return Verdict::forbidden;
  if (visit.body) return Verdict::bad_request;
  if (visit.method != "GET" && visit.method != "HEAD") return Verdict::wrong_method;
  if (visit.target == "/ws") {
    if (!visit.upgrade || visit.method != "GET") return Verdict::bad_request;
    if (visit.origin != "http://" + visit.host) return Verdict::forbidden;
    return has_token(visit.protocols) ? Verdict::socket : Verdict::wrong_token;
  }
  if (visit.upgrade) return Verdict::bad_request;
  return find_asset(visit.target) ? Verdict::asset : Verdict::unknown;
}

std::string content_policy(std::string_view host) {
  return fmt::format(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
      "connect-src 'self' ws://{}; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
      host);
}

std::string make_token() {
  constexpr char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::array<unsigned char, 32> bytes;  // six bits of each
  size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t n = getrandom(bytes.data() + got, bytes.size() - got, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw std::system_error(errno, std::generic_category(), "no random numbers");
    got += static_cast<size_t>(n);
  }
  std::string token;
  for (const unsigned char byte : bytes) token += letters[byte & 63];
  return token;
}

}  // namespace saltus
