// Names with an index: x[i-1], and the ranges that indices run through.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/source.hpp"
#include "expr/names.hpp"

namespace saltus {

/// Whole numbers that index names stand for while a formula is read: i = 3.
using Indices = std::vector<std::pair<std::string, long>>;

/// `x[i-1]` apart, and the whole number that is its index; nothing if the text is a plain name (or no name at all).
struct IndexedName {
  Fragment stem;
  long index = 0;
  std::string text() const;  ///< x[3]
};
std::optional<IndexedName> parse_indexed_name(const Fragment& text, const Names& names, const Indices& indices = {});

/// `i = 1..N`
struct IndexRange {
  std::string name;
  long first = 1, last = 0;
};
IndexRange parse_index_range(const Fragment& text, const Names& names, const Indices& indices = {});

/// Where the word `for` stands outside of all brackets, or npos: what follows it is a range.
size_t find_for(std::string_view text);

}  // namespace saltus
