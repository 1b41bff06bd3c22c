// Characters of names, and characters that look like typed ones and are not.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

namespace saltus {

/// A letter of any script or `_`, then letters, digits, `_`.
bool is_name(std::string_view text);
bool is_name_start(char c);
bool is_name_part(char c);

/// The sign a text begins with that comes with papers and word processors, and how it is typed; nothing if it begins
/// otherwise.
const std::pair<std::string_view, std::string_view>* printed_sign(std::string_view text);
/// Bytes of a character that is no letter of any script (an arrow, a root sign, a picture), or 0.
size_t foreign_character(std::string_view text);

}  // namespace saltus
