// Names with one or two indices: x[i-1], T[i,j], and the ranges that indices run through.
#pragma once

#include <array>
#include <functional>
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

/// `x[i-1]` apart, and the whole numbers that are its indices; nothing if the text is a plain name (or no name at all).
struct IndexedName {
  Fragment stem;
  std::array<long, 2> index{};
  size_t dimensions = 1;
  std::string text() const;  ///< x[3], T[1,2]
};
std::optional<IndexedName> parse_indexed_name(const Fragment& text, const Names& names, const Indices& indices = {});

/// `i = 1..N`
struct IndexRange {
  std::string name;
  long first = 1, last = 0;
};
/// `i = 1..N, j = 1..i`: does something for each pair; a later range may use earlier indices.
void for_each_index(const Fragment& text, const Names& names, const Indices& indices,
                    const std::function<void(const Indices&)>& action);
/// The names of the indices of a range, and the number of values they have together if they do not depend on each
/// other. Complains about what is no range.
std::vector<std::string> check_index_ranges(const Fragment& text, const Names& names);

/// Where the word `for` stands outside of all brackets, or npos: what follows it is a range.
size_t find_for(std::string_view text);
/// The parts of a text between commas outside of all brackets.
std::vector<Fragment> split_at_commas(const Fragment& text);

}  // namespace saltus
