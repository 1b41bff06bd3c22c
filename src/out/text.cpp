#include "out/text.hpp"

#include <algorithm>

namespace saltus {
namespace {

/// Length of the valid UTF-8 sequence at the beginning of `s`, 0 if there is none (overlong, surrogate, cut short).
size_t sequence_length(std::string_view s) {
  const auto byte = [&](size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  const auto tail = [&](size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned b = byte(0);
  if (b < 0x80) return 1;
  if (b >= 0xC2 && b <= 0xDF) return tail(1) ? 2 : 0;
  if (b >= 0xE0 && b <= 0xEF) {
    const bool overlong = b == 0xE0 && byte(1) < 0xA0, surrogate = b == 0xED && byte(1) > 0x9F;
    const bool noncharacter = b == 0xEF && byte(1) == 0xBF && byte(2) >= 0xBE;  // U+FFFE, U+FFFF: not allowed in XML
    return tail(1) && tail(2) && !overlong && !surrogate && !noncharacter ? 3 : 0;
  }
  if (b >= 0xF0 && b <= 0xF4) {
    const bool overlong = b == 0xF0 && byte(1) < 0x90, beyond = b == 0xF4 && byte(1) > 0x8F;
    return tail(1) && tail(2) && tail(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

/// The first `count` characters.
std::string_view head(std::string_view utf8, size_t count) {
  size_t i = 0;
  while (i < utf8.size() && count-- > 0) i += std::max<size_t>(1, sequence_length(utf8.substr(i)));
  return utf8.substr(0, i);
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t n = sequence_length(text);
    out += n > 0 ? text.substr(0, n) : std::string_view("\xEF\xBF\xBD");
    text.remove_prefix(std::max<size_t>(1, n));
  }
  return out;
}

std::string one_line(std::string_view text) {
  std::string out = valid_utf8(text);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7F) c = ' ';
  }
  return out;
}

size_t character_count(std::string_view utf8) {
  return static_cast<size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::vector<std::string> wrap(std::string_view utf8, size_t width, size_t most) {
  std::vector<std::string> lines;
  while (!utf8.empty()) {
    std::string_view line = head(utf8, width);
    if (line.size() < utf8.size()) {
      const size_t space = line.rfind(' ');
      if (space != line.npos && space > 0) line = line.substr(0, space);
    }
    lines.emplace_back(line);
    utf8.remove_prefix(line.size());
    while (utf8.starts_with(' ')) utf8.remove_prefix(1);
    if (lines.size() == most && !utf8.empty()) {
      lines.back() += " …";
      break;
    }
  }
  return lines;
}

}  // namespace saltus
