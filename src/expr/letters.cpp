#include "expr/letters.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace saltus {

bool is_name_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_name_part(char c) { return is_name_start(c) || std::isdigit(static_cast<unsigned char>(c)); }

bool is_name(std::string_view text) {
  if (text.empty() || !is_name_start(text[0])) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!is_name_part(text[i]) || printed_sign(text.substr(i)) || foreign_character(text.substr(i)) > 0) return false;
  }
  return true;
}

const std::pair<std::string_view, std::string_view>* printed_sign(std::string_view text) {
  if (text.empty() || static_cast<unsigned char>(text[0]) < 0x80) return nullptr;
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 16> table{{
      {"\u2212", "-"},
      {"\u2013", "-"},
      {"\u2014", "-"},
      {"\u00d7", "*"},
      {"\u00b7", "*"},
      {"\u22c5", "*"},
      {"\u00f7", "/"},
      {"\u00b2", "^2"},
      {"\u00b3", "^3"},
      {"\u2264", "<="},
      {"\u2265", ">="},
      {"\u2032", "'"},
      {"\u2019", "'"},
      {"\u201c", "\""},
      {"\u201d", "\""},
      {"\u00a0", " "},
  }};
  const auto it =
      std::find_if(table.begin(), table.end(), [&](const auto& sign) { return text.starts_with(sign.first); });
  return it == table.end() ? nullptr : &*it;
}

size_t foreign_character(std::string_view text) {
  const auto byte = [&](size_t i) -> unsigned { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  if (byte(0) < 0xC2) return 0;
  if (byte(0) < 0xE0) {
    const unsigned code = (byte(0) & 0x1Fu) << 6 | (byte(1) & 0x3Fu);
    return code < 0xAA || code == 0xAB || code == 0xAC || code == 0xB1 || code == 0xBF || code == 0xD7 || code == 0xF7
               ? 2
               : 0;
  }
  if (byte(0) < 0xF0) {
    const unsigned code = (byte(0) & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
    const bool letterlike = (code >= 0x2070 && code <= 0x209F) || (code >= 0x2100 && code <= 0x214F);
    return (code >= 0x2000 && code <= 0x2BFF && !letterlike) || (code >= 0x3000 && code <= 0x3004) ? 3 : 0;
  }
  const unsigned code = (byte(0) & 0x07u) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 | (byte(3) & 0x3Fu);
  return code >= 0x1F000 && code <= 0x1FBFF ? 4 : 0;
}

}  // namespace saltus
