// Text that any reader accepts, and how much room it takes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace saltus {

/// The text with every byte that is not UTF-8 replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

/// valid_utf8, on one line: control characters become spaces.
std::string one_line(std::string_view text);

/// Number of characters (code points).
size_t character_count(std::string_view utf8);

/// Lines of at most `width` characters, broken at spaces; more than `most` lines end with an ellipsis.
std::vector<std::string> wrap(std::string_view utf8, size_t width, size_t most);

}  // namespace saltus
