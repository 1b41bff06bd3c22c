// A text file whose every character can be pointed at, and pieces of it that were decoded from it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace saltus {

/// The raw text of a file (or of a string given by a program) with its lines.
class Source {
 public:
  Source(std::string file, std::string text);

  const std::string& file() const { return file_; }
  const std::string& text() const { return text_; }

  Place place(size_t offset, size_t length = 1) const;
  /// Offset of a line and column, both counted from 1; clamped to the text.
  size_t offset(size_t line, size_t column) const;

 private:
  int characters(size_t begin, size_t end) const;

  std::string file_;
  std::string text_;
  std::vector<size_t> lines_;  ///< offset of each line's first character
  bool ascii_ = true;          ///< every character is one byte: nothing needs counting
};

/// A piece of text with the place of each of its characters in the source.
struct Fragment {
  std::shared_ptr<const Source> source;
  std::string text;
  std::vector<size_t> offsets;  ///< one per character of `text`, and one more for its end

  Place place(size_t begin, size_t length = 1) const;
  Fragment part(size_t begin, size_t length) const;
};

/// A fragment that is all of a text given by a program.
Fragment whole_text(std::string_view name, std::string_view text);

}  // namespace saltus
