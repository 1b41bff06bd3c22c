#include "base/source.hpp"

#include <algorithm>
#include <numeric>

namespace saltus {
namespace {

bool inside_character(char c) { return (c & 0xC0) == 0x80; }

/// Characters of UTF-8 text.
int characters(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) { return !inside_character(c); }));
}

}  // namespace

Source::Source(std::string file, std::string text) : file_(std::move(file)), text_(std::move(text)), lines_{0} {
  for (size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') lines_.push_back(i + 1);
  }
}

Place Source::place(size_t offset, size_t length) const {
  offset = std::min(offset, text_.size());
  const auto next = std::upper_bound(lines_.begin(), lines_.end(), offset);
  const size_t line = static_cast<size_t>(next - lines_.begin());
  const size_t start = lines_[line - 1];
  size_t end = text_.find('\n', start);
  if (end == std::string::npos) end = text_.size();
  if (end > start && text_[end - 1] == '\r') --end;
  offset = std::min(offset, end);
  const std::string_view all(text_);
  Place p{.file = file_,
          .line = static_cast<int>(line),
          .column = characters(all.substr(start, offset - start)) + 1,
          .length = std::max(1, characters(all.substr(offset, std::min(length, end - offset))))};
  // A chain's equations may be one endless line: quote the part around the place.
  const size_t longest = 160;
  size_t from = start, to = end;
  if (end - start > longest) {
    if (offset - start > longest / 2) from = offset - longest / 2;
    if (end - from > longest) to = from + longest;
    while (from > start && inside_character(text_[from])) --from;
    while (to < end && inside_character(text_[to])) ++to;
  }
  p.text = all.substr(from, to - from);
  if (from > start) {
    p.text.insert(0, "...");
    p.quote_shift = characters(all.substr(start, from - start)) - 3;
  }
  if (to < end) p.text += "...";
  for (char& c : p.text) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\t') c = '?';
  }
  return p;
}

size_t Source::offset(size_t line, size_t column) const {
  if (line == 0) return 0;
  if (line > lines_.size()) return text_.size();
  return std::min(lines_[line - 1] + (column > 0 ? column - 1 : 0), text_.size());
}

Place Fragment::place(size_t begin, size_t length) const {
  begin = std::min(begin, text.size());
  const size_t end = std::min(begin + std::max<size_t>(length, 1), text.size());
  const size_t from = offsets[begin];
  return source->place(from, end > begin ? offsets[end - 1] + 1 - from : 1);
}

Fragment Fragment::part(size_t begin, size_t length) const {
  begin = std::min(begin, text.size());
  length = std::min(length, text.size() - begin);
  const auto first = offsets.begin() + static_cast<std::ptrdiff_t>(begin);
  return {source, text.substr(begin, length), {first, first + static_cast<std::ptrdiff_t>(length) + 1}};
}

Fragment whole_text(std::string_view name, std::string_view text) {
  Fragment f{std::make_shared<Source>(std::string(name), std::string(text)), std::string(text), {}};
  f.offsets.resize(text.size() + 1);
  std::iota(f.offsets.begin(), f.offsets.end(), size_t{0});
  return f;
}

}  // namespace saltus
