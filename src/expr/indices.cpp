#include "expr/indices.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "expr/letters.hpp"
#include "expr/parser.hpp"

namespace saltus {
namespace {

/// 3, i, i-1 and i+1, as nearly all are.
std::optional<long> simple_index(std::string_view text, const FormulaContext& context) {
  long shift = 0;
  size_t length = text.size();
  if (const size_t sign = text.find_first_of("+-"); sign != text.npos && sign > 0) {
    const char* last = text.data() + text.size();
    if (std::from_chars(text.data() + sign + 1, last, shift).ptr != last || shift < 0) return std::nullopt;
    if (text[sign] == '-') shift = -shift;
    length = sign;
  }
  text = text.substr(0, length);
  for (const auto& [name, value] : context.indices) {
    if (name == text) return value + shift;
  }
  long value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || value > 1'000'000'000) return std::nullopt;
  return value + shift;
}

}  // namespace

static long index_value(const Fragment& text, size_t begin, size_t end, const FormulaContext& context) {
  if (const auto simple = simple_index(std::string_view(text.text).substr(begin, end - begin), context)) return *simple;
  const Fragment part = text.part(begin, end - begin);
  const Expr index = Parser(part, {context.names, context.indices, Wanted::index, context.depth}).run();
  const double value = evaluate(index, [](const Symbol&) { return NAN; });
  if (!(std::abs(value) <= 1e9) || value != std::floor(value))
    throw Error(ErrorKind::model, fmt::format("the index is {}", value), part.place(0, part.text.size()),
                "an index is a whole number");
  return static_cast<long>(value);
}

size_t index_values(const Fragment& text, size_t begin, size_t end, const FormulaContext& context,
                    std::array<long, 2>& values) {
  const std::string_view inside = std::string_view(text.text).substr(begin, end - begin);
  if (inside.find(',') == inside.npos) {  // as nearly all are
    values[0] = index_value(text, begin, end, context);
    return 1;
  }
  size_t count = 0, at = begin;
  int depth = 0;
  for (size_t k = begin; k <= end; ++k) {
    if (k < end) depth += text.text[k] == '(' ? 1 : text.text[k] == ')' ? -1 : 0;
    if (k < end && (text.text[k] != ',' || depth != 0)) continue;
    if (count == values.size())
      throw Error(ErrorKind::model, "a name with three indices", text.place(begin, end - begin),
                  "names have one or two indices; number the places of a grid in a row: x[N*(i-1) + j, k]");
    while (at < k && std::isspace(static_cast<unsigned char>(text.text[at]))) ++at;
    size_t last = k;
    while (last > at && std::isspace(static_cast<unsigned char>(text.text[last - 1]))) --last;
    values[count++] = index_value(text, at, last, context);
    at = k + 1;
  }
  return count;
}

std::string indexed_text(std::string_view stem, const std::array<long, 2>& index, size_t dimensions) {
  return dimensions == 1 ? fmt::format("{}[{}]", stem, index[0]) : fmt::format("{}[{},{}]", stem, index[0], index[1]);
}

std::string IndexedName::text() const { return indexed_text(stem.text, index, dimensions); }

std::optional<IndexedName> parse_indexed_name(const Fragment& text, const Names& names, const Indices& indices) {
  const size_t open = text.text.find('['), close = text.text.find_last_not_of(" \t");
  if (open == text.text.npos || open == 0 || text.text[close] != ']' ||
      text.text.find_first_of("[]", open + 1) != close)
    return std::nullopt;
  const size_t end = text.text.find_last_not_of(" \t", open - 1);
  if (end == text.text.npos || !is_name(std::string_view(text.text).substr(0, end + 1))) return std::nullopt;
  IndexedName name{text.part(0, end + 1)};
  name.dimensions = index_values(text, open + 1, close, {names, indices}, name.index);
  return name;
}

static IndexRange parse_index_range(const Fragment& text, const FormulaContext& context) {
  const size_t equals = text.text.find('='), dots = text.text.find("..", equals == text.text.npos ? 0 : equals);
  const auto fail = [&](size_t begin, size_t length, std::string message, std::string hint) {
    throw Error(ErrorKind::model, std::move(message), text.place(begin, std::max<size_t>(length, 1)), std::move(hint));
  };
  if (equals == text.text.npos || dots == text.text.npos)
    fail(0, text.text.size(), "this is no range of an index", "write i = 1..N");
  size_t begin = 0, end = equals;
  while (begin < end && std::isspace(static_cast<unsigned char>(text.text[begin]))) ++begin;
  while (end > begin && std::isspace(static_cast<unsigned char>(text.text[end - 1]))) --end;
  IndexRange range{.name = text.text.substr(begin, end - begin)};
  if (!is_name(range.name) || is_reserved_name(range.name))
    fail(begin, end - begin, fmt::format("'{}' cannot be the name of an index", range.name), "write i = 1..N");
  bool known = context.names.find(range.name) || context.names.find_indexed(range.name);
  for (const auto& [name, value] : context.indices) known = known || name == range.name;
  if (known)
    fail(begin, end - begin, fmt::format("'{}' has a meaning already", range.name),
         "choose another name for the index");
  range.first = index_value(text, equals + 1, dots, context);
  range.last = index_value(text, dots + 2, text.text.size(), context);
  if (range.last - range.first >= 10'000'000)
    fail(equals + 1, text.text.size() - equals - 1, "this range is too long", "10 000 000 indices are the most");
  return range;
}

std::vector<Fragment> split_at_commas(const Fragment& text) {
  std::vector<Fragment> parts;
  int depth = 0;
  size_t at = 0;
  for (size_t k = 0; k <= text.text.size(); ++k) {
    const char c = k < text.text.size() ? text.text[k] : ',';
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    if (c != ',' || (depth != 0 && k < text.text.size())) continue;
    parts.push_back(text.part(at, k - at));
    at = k + 1;
  }
  return parts;
}

void for_each_index(const Fragment& text, const FormulaContext& context,
                    const std::function<void(const Indices&)>& action) {
  const std::vector<Fragment> parts = split_at_commas(text);
  if (parts.size() > 2)
    throw Error(ErrorKind::model, "more than two indices", text.place(0, std::max<size_t>(text.text.size(), 1)),
                "names have one or two indices: for i = 1..N, j = 1..M");
  Indices indices = context.indices;
  const auto run = [&](auto&& self, size_t depth) -> void {
    if (depth == parts.size()) return action(indices);
    const IndexRange range = parse_index_range(parts[depth], {context.names, indices, context.wanted, context.depth});
    indices.emplace_back(range.name, 0);
    for (long k = range.first; k <= range.last; ++k) {
      indices.back().second = k;
      self(self, depth + 1);
    }
    indices.pop_back();
  };
  run(run, 0);
}

void for_each_index(const Fragment& text, const Names& names, const Indices& indices,
                    const std::function<void(const Indices&)>& action) {
  for_each_index(text, FormulaContext{names, indices}, action);
}

std::vector<std::string> check_index_ranges(const Fragment& text, const Names& names) {
  Indices indices;
  std::vector<std::string> found;
  for (const Fragment& part : split_at_commas(text)) {
    const IndexRange range = parse_index_range(part, FormulaContext{names, indices});
    indices.emplace_back(range.name, range.first);
    found.push_back(range.name);
  }
  return found;
}

size_t find_for(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth != 0 || !text.substr(i).starts_with("for")) continue;
    const bool begins = i == 0 || !is_name_part(text[i - 1]);
    const bool ends = i + 3 == text.size() || !is_name_part(text[i + 3]);
    if (begins && ends) return i;
  }
  return text.npos;
}

}  // namespace saltus
