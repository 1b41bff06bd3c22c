#include "base/source.hpp"

#include <algorithm>
#include <numeric>

namespace saltus {
namespace {

bool inside_character(char c) { return (c & 0xC0) == 0x80; }

/// Control characters and what is not UTF-8 do not reach the terminal.
void make_printable(std::string& text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    const size_t follow = c < 0xC2 ? 0 : c < 0xE0 ? 1 : c < 0xF0 ? 2 : c < 0xF5 ? 3 : 0;
    size_t good = 0;
    while (good < follow && i + good + 1 < text.size() && inside_character(text[i + good + 1])) ++good;
    const bool plain = (c >= 0x20 && c < 0x7f) || c == '\t';
    if (!plain && (follow == 0 || good < follow)) {
      text[i] = '?';
    } else {
      i += follow;
    }
  }
}

}  // namespace

Source::Source(std::string file, std::string text) : file_(std::move(file)), text_(std::move(text)), lines_{0} {
  for (size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') lines_.push_back(i + 1);
    ascii_ = ascii_ && static_cast<unsigned char>(text_[i]) < 0x80;
  }
}

int Source::characters(size_t begin, size_t end) const {
  if (ascii_) return static_cast<int>(end - begin);
  const std::string_view part = std::string_view(text_).substr(begin, end - begin);
  return static_cast<int>(std::count_if(part.begin(), part.end(), [](char c) { return !inside_character(c); }));
}

Place Source::place(size_t offset, size_t length) const {
  offset = std::min(offset, text_.size());
  const auto next = std::upper_bound(lines_.begin(), lines_.end(), offset);
  const size_t line = static_cast<size_t>(next - lines_.begin());
  const size_t start = lines_[line - 1];
  size_t end = line < lines_.size() ? lines_[line] - 1 : text_.size();
  if (end > start && text_[end - 1] == '\r') --end;
  offset = std::min(offset, end);
  Place p{.file = file_,
          .line = static_cast<int>(line),
          .column = characters(start, offset) + 1,
          .length = std::max(1, characters(offset, offset + std::min(length, end - offset)))};
  // A chain's equations may be one endless line: quote the part around the place.
  const size_t longest = 160;
  size_t from = start, to = end;
  if (end - start > longest) {
    if (offset - start > longest / 2) from = offset - longest / 2;
    if (end - from > longest) to = from + longest;
    while (from > start && inside_character(text_[from])) --from;
    while (to < end && inside_character(text_[to])) ++to;
  }
  p.text = text_.substr(from, to - from);
  if (from > start) {
    p.text.insert(0, "...");
    p.quote_shift = characters(start, from) - 3;
  }
  if (to < end) p.text += "...";
  make_printable(p.text);
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
