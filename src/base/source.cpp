#include "base/source.hpp"

#include <algorithm>
#include <numeric>

namespace saltus {

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
  const size_t room = end > offset ? end - offset : 1;
  Place p{.file = file_,
          .line = static_cast<int>(line),
          .column = static_cast<int>(offset - start) + 1,
          .length = static_cast<int>(std::clamp<size_t>(length, 1, room)),
          .text = text_.substr(start, end - start)};
  const size_t longest = 160;  // a chain's equations may be one endless line: quote the part around the place
  if (p.text.size() > longest) {
    const size_t at = offset - start;
    const size_t cut = at > longest / 2 ? at - longest / 2 : 0;
    p.text = p.text.substr(cut, longest);
    if (cut > 0) {
      p.text = "..." + p.text;
      p.quote_shift = static_cast<int>(cut) - 3;
    }
  }
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
