#include "model/matrix_file.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "base/source.hpp"

namespace saltus {
namespace {

constexpr std::uintmax_t largest_matrix_file = 256u << 20;
constexpr long largest_size = 1'000'000;

std::optional<double> matrix_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

class MatrixReader {
 public:
  MatrixReader(const std::filesystem::path& path, std::string text) : path_(path), text_(std::move(text)) {}

  MatrixOfFile run() {
    std::string first = text_.substr(0, text_.find_first_of("\r\n"));
    std::transform(first.begin(), first.end(), first.begin(), [](unsigned char c) { return std::tolower(c); });
    return first.starts_with("%%matrixmarket") ? matrix_market(first) : rows_of_numbers();
  }

 private:
  struct Word {
    size_t at;
    std::string_view text;
  };

  [[noreturn]] void fail(size_t at, size_t length, std::string message, std::string hint) const {
    throw Error(ErrorKind::model, std::move(message),
                Source(path_.string(), text_).place(std::min(at, text_.size()), std::max<size_t>(length, 1)),
                std::move(hint));
  }

  /// The words of the next line that has any; nothing at the end. Comments begin with % or #.
  std::vector<Word> next_line() {
    std::vector<Word> words;
    while (words.empty() && next_ < text_.size()) {
      const size_t end = std::min(text_.find('\n', next_), text_.size());
      const size_t comment = std::min(text_.find_first_of("%#", next_), end);
      size_t at = next_;
      const std::string_view separators = " \t\r,;";
      while ((at = std::min(text_.find_first_not_of(separators, at), comment)) < comment) {
        const size_t last = std::min(text_.find_first_of(separators, at), comment);
        words.push_back({at, std::string_view(text_).substr(at, last - at)});
        at = last;
      }
      next_ = end + 1;
    }
    return words;
  }

  double number(const Word& w) const {
    const auto value = matrix_number(w.text);
    if (!value)
      fail(w.at, w.text.size(), fmt::format("'{}' is no finite number", w.text), "write numbers as 0.5 or 1e-3");
    return *value;
  }

  int whole(const Word& w, long least) const {
    const double value = number(w);
    if (!(value >= static_cast<double>(least) && value <= static_cast<double>(largest_size)) ||
        value != std::floor(value))
      fail(w.at, w.text.size(), fmt::format("'{}' is no size or index here", w.text),
           fmt::format("whole numbers from {} to {}", least, largest_size));
    return static_cast<int>(value);
  }

  void put(int row, int column, double value) {
    if (value != 0) values_[{row, column}] += value;  // a place given twice is a sum, as in finite elements
  }

  MatrixOfFile finished(int rows, int columns) const {
    MatrixOfFile out{rows, columns, {}};
    for (const auto& [place, value] : values_) out.entries.push_back({place.first, place.second, value});
    return out;
  }

  MatrixOfFile rows_of_numbers() {
    int rows = 0, columns = 0;
    for (std::vector<Word> line = next_line(); !line.empty(); line = next_line()) {
      ++rows;
      if (rows == 1) columns = static_cast<int>(line.size());
      if (static_cast<int>(line.size()) != columns)
        fail(line[0].at, line.back().at + line.back().text.size() - line[0].at,
             fmt::format("row {} has {} numbers, the first has {}", rows, line.size(), columns),
             "all rows of a matrix are equally long");
      for (int j = 0; j < columns; ++j) put(rows, j + 1, number(line[static_cast<size_t>(j)]));
    }
    if (rows == 0) fail(0, 1, "the file holds no numbers", "write one row of the matrix per line: 1, 0, 2");
    return finished(rows, columns);
  }

  MatrixOfFile matrix_market(const std::string& head) {
    std::istringstream words(head);
    std::string banner, object, format, field, symmetry;
    words >> banner >> object >> format >> field >> symmetry;
    const bool sparse = format == "coordinate";
    const bool known = object == "matrix" && (sparse || format == "array") &&
                       (field == "real" || field == "integer" || (field == "pattern" && sparse)) &&
                       (symmetry == "general" || symmetry == "symmetric" || symmetry == "skew-symmetric");
    if (!known)
      fail(0, head.size(), "this kind of Matrix Market file is not read",
           "matrix, coordinate or array, real or integer, general, symmetric or skew-symmetric");
    next_ = std::min(text_.find('\n'), text_.size());
    const std::vector<Word> size = next_line();
    if (size.size() != (sparse ? 3u : 2u))
      fail(size.empty() ? text_.size() : size[0].at, 1, "the sizes of the matrix are missing",
           sparse ? "rows, columns and entries" : "rows and columns");
    const int rows = whole(size[0], 1), columns = whole(size[1], 1);
    const double mirror = symmetry == "general" ? 0 : symmetry == "symmetric" ? 1 : -1;
    if (mirror != 0 && rows != columns)
      fail(size[0].at, 1, fmt::format("a symmetric matrix of {} x {}", rows, columns),
           "it has as many columns as rows");
    if (sparse) {
      read_entries(size, mirror, field == "pattern");
    } else {
      read_columns(rows, columns, mirror);
    }
    if (const auto more = next_line(); !more.empty())
      fail(more[0].at, more[0].text.size(), "more entries than the file says", "correct the sizes in its first line");
    return finished(rows, columns);
  }

  void read_entries(const std::vector<Word>& size, double mirror, bool pattern) {
    const long count = whole(size[2], 0);
    for (long k = 0; k < count; ++k) {
      const std::vector<Word> line = next_line();
      if (line.size() != (pattern ? 2u : 3u))
        fail(line.empty() ? text_.size() : line[0].at, 1, fmt::format("entry {} of {} is missing", k + 1, count),
             "an entry is a row, a column and a number");
      const int i = whole(line[0], 1), j = whole(line[1], 1);
      if (i > whole(size[0], 1) || j > whole(size[1], 1))
        fail(line[0].at, 1, fmt::format("an entry at {}, {} in a matrix of {} x {}", i, j, size[0].text, size[1].text),
             "rows and columns are counted from 1");
      const double value = pattern ? 1 : number(line[2]);
      put(i, j, value);
      if (mirror != 0 && i != j) put(j, i, mirror * value);
    }
  }

  void read_columns(int rows, int columns, double mirror) {
    for (int j = 1; j <= columns; ++j) {
      for (int i = mirror == 0 ? 1 : mirror > 0 ? j : j + 1; i <= rows; ++i) {
        const std::vector<Word> line = next_line();
        if (line.size() != 1)
          fail(line.empty() ? text_.size() : line[0].at, 1, fmt::format("the entry {}, {} is missing", i, j),
               "one number per line, column by column");
        put(i, j, number(line[0]));
        if (mirror != 0 && i != j) put(j, i, mirror * number(line[0]));
      }
    }
  }

  const std::filesystem::path& path_;
  std::string text_;
  size_t next_ = 0;
  std::map<std::pair<int, int>, double> values_;
};

}  // namespace

MatrixOfFile read_matrix(const std::filesystem::path& path, const Place& asked) {
  const auto fail = [&](std::string message, std::string hint) {
    throw Error(ErrorKind::file, std::move(message), asked, std::move(hint));
  };
  std::error_code problem;
  if (!std::filesystem::is_regular_file(path, problem))
    fail(fmt::format("there is no file '{}'", path.string()), "the path is taken from the folder of the model file");
  const std::uintmax_t size = std::filesystem::file_size(path, problem);
  if (size > largest_matrix_file)
    fail(fmt::format("'{}' has {} MB", path.string(), size >> 20), "a matrix has at most 256 MB");
  std::ifstream file(path, std::ios::binary);
  std::string text(static_cast<size_t>(size), '\0');
  file.read(text.data(), static_cast<std::streamsize>(size));
  if (!file) fail(fmt::format("cannot read '{}'", path.string()), "check its permissions");
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  return MatrixReader(path, std::move(text)).run();
}

}  // namespace saltus
