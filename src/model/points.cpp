#include "model/points.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/checksum.hpp"
#include "base/source.hpp"
#include "expr/print.hpp"

namespace saltus {
namespace {

constexpr std::uintmax_t largest_file = 256u << 20;

std::string read_file(const std::filesystem::path& path, const Place& asked) {
  const auto fail = [&](std::string message, std::string hint) {
    throw Error(ErrorKind::file, std::move(message), asked, std::move(hint));
  };
  std::error_code problem;
  if (!std::filesystem::exists(path, problem))
    fail(fmt::format("there is no file '{}'", path.string()), "the path is taken from the folder of the model file");
  if (!std::filesystem::is_regular_file(path, problem))
    fail(fmt::format("'{}' is no file", path.string()), "give a file with rows of numbers");
  const std::uintmax_t size = std::filesystem::file_size(path, problem);
  if (size > largest_file)
    fail(fmt::format("'{}' has {} MB", path.string(), size >> 20), "a file of points has at most 256 MB");
  std::ifstream file(path, std::ios::binary);
  std::string text(static_cast<size_t>(size), '\0');
  file.read(text.data(), static_cast<std::streamsize>(size));
  if (!file) fail(fmt::format("cannot read '{}'", path.string()), "check its permissions");
  return text;
}

/// A field of a row, as it stands in the file.
struct Field {
  size_t begin = 0, end = 0;
};

std::optional<double> number_in(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return std::nullopt;
  if (problem == std::errc::result_out_of_range) return HUGE_VAL;
  return problem == std::errc() ? std::optional(value) : std::nullopt;
}

class PointReader {
 public:
  PointReader(const std::filesystem::path& path, std::string text) : path_(path), text_(std::move(text)) {
    if (text_.starts_with("\xEF\xBB\xBF")) next_ = 3;
  }

  DataColumns read_all(std::span<const std::string> columns) {
    DataColumns out{.columns = std::vector<std::vector<double>>(columns.size()), .checksum = checksum(text_)};
    if (!next_row()) fail({0, 0}, "the file holds no data", "write rows of numbers: 0, 1.5");
    column_.resize(columns.size());
    find_columns(columns);
    const Source source(path_.string(), text_);
    for (bool more = is_header() ? next_row() : true; more; more = next_row()) {
      check_separators();
      for (size_t c = 0; c < columns.size(); ++c)
        out.columns[c].push_back(is_empty(c) ? std::numeric_limits<double>::quiet_NaN() : number(c));
      out.places.push_back(source.place(row_.front().begin, std::max<size_t>(row_.back().end - row_.front().begin, 1)));
    }
    return out;
  }

  PointColumns read(std::span<const std::string> columns) {
    PointColumns points{.checksum = checksum(text_)};
    if (!next_row()) fail({0, 0}, "the file holds no points", "write rows of two numbers: 0, 1.5");
    find_columns(columns);
    const bool header = is_header();
    std::vector<size_t> begins;  // of the rows
    for (bool more = header ? next_row() : true; more; more = next_row()) {
      check_separators();
      points.x.push_back(number(0));
      points.y.push_back(number(1));
      check_width();
      begins.push_back(row_[0].begin);
    }
    if (const PointTrouble trouble = check_points(points.x, points.y); !trouble.message.empty()) {
      const size_t begin = begins.empty() ? 0 : begins[std::min(trouble.at, begins.size() - 1)];
      fail({begin, std::min(text_.find_first_of("\r\n", begin), text_.size())}, trouble.message, trouble.hint);
    }
    return points;
  }

 private:
  std::string_view word(const Field& f) const { return std::string_view(text_).substr(f.begin, f.end - f.begin); }

  [[noreturn]] void fail(const Field& at, std::string message, std::string hint) const {
    const Source source(path_.string(), text_);
    throw Error(ErrorKind::model, std::move(message), source.place(at.begin, std::max<size_t>(at.end - at.begin, 1)),
                std::move(hint));
  }

  bool is_header() const { return !number_in(word(row_[0])); }

  /// One kind in all rows of numbers: 0;1,5 would be three columns.
  void check_separators() {
    const auto name = [](char kind) { return kind == ' ' ? std::string("blanks") : fmt::format("'{}'", kind); };
    for (const auto& [at, kind] : separators_) {
      if (separator_ == 0) separator_ = kind;
      if (kind == separator_) continue;
      fail({at, at + 1},
           fmt::format("columns are separated by {} before, and here by {}", name(separator_), name(kind)),
           "separate columns by one sign throughout, and write decimal numbers with a point: 1.5");
    }
  }

  /// Checks that all rows of numbers have as many columns as the first row, or as the header where columns are chosen
  /// by name. A separator at the end of a row may stand for an empty column.
  void check_width() {
    const size_t width = row_.size(), widest = width + (open_end_ ? 1 : 0);
    if (width_ == 0) width_ = widest;
    if (width == width_ || widest == width_) return;
    fail({row_.front().begin, row_.back().end},
         fmt::format("this row has {} columns, and the first one {}", width, width_),
         "every row needs as many; decimal numbers have a point: 1.5");
  }

  /// The next line with anything on it, in fields.
  bool next_row() {
    while (next_ < text_.size()) {
      const size_t begin = next_, end = std::min(text_.find('\n', begin), text_.size());
      next_ = end + 1;
      const size_t comment = std::string_view(text_).substr(begin, end - begin).find('#');
      split(begin, std::min(comment, end - begin) + begin);
      if (!row_.empty()) return true;
    }
    return false;
  }

  void split(size_t begin, size_t end) {
    const auto blank = [&](size_t i) { return text_[i] == ' ' || text_[i] == '\t' || text_[i] == '\r'; };
    row_.clear();
    separators_.clear();
    open_end_ = false;
    for (size_t i = begin; i < end;) {
      while (i < end && blank(i)) ++i;
      if (i == end) break;
      Field field{i, i};
      if (text_[i] == '"') {
        field.begin = ++i;
        while (i < end && text_[i] != '"') ++i;
        field.end = i;
        if (i < end) ++i;
      } else {
        while (i < end && !blank(i) && text_[i] != ',' && text_[i] != ';') ++i;
        field.end = i;
      }
      row_.push_back(field);
      const size_t after = i;
      while (i < end && blank(i)) ++i;
      if (i == end) break;
      const bool sign = text_[i] == ',' || text_[i] == ';';
      separators_.push_back(sign ? std::pair(i, text_[i]) : std::pair(after, ' '));
      if (sign) ++i;
      open_end_ = sign && std::all_of(text_.begin() + static_cast<long>(i), text_.begin() + static_cast<long>(end),
                                      [](char c) { return c == ' ' || c == '\t' || c == '\r'; });
    }
  }

  /// Names with blanks in them: time [s], height [m].
  void join_names() {
    const auto sign = [](const auto& s) { return s.second != ' '; };
    if (std::none_of(separators_.begin(), separators_.end(), sign)) return;
    std::vector<Field> names{row_[0]};
    for (size_t k = 1; k < row_.size(); ++k) {
      if (sign(separators_[k - 1]))
        names.push_back(row_[k]);
      else
        names.back().end = row_[k].end;
    }
    row_ = std::move(names);
  }

  void find_columns(std::span<const std::string> columns) {
    const bool header = is_header();
    if (header) join_names();
    for (size_t c = 0; c < columns.size() && c < column_.size(); ++c) {
      if (const auto position = number_in(columns[c])) {
        column_[c] = static_cast<size_t>(*position) - 1;
        continue;
      }
      std::vector<std::string> known;
      for (const Field& f : row_) known.emplace_back(word(f));
      const auto found = std::find(known.begin(), known.end(), columns[c]);
      if (!header || found == known.end()) {
        const std::string near = nearest_name(columns[c], known);
        fail({row_.front().begin, row_.back().end}, fmt::format("there is no column '{}'", columns[c]),
             !header         ? "the first row names no columns: give positions, columns = [1, 2]"
             : !near.empty() ? fmt::format("did you mean '{}'?", near)
                             : fmt::format("the columns are: {}", fmt::join(known, ", ")));
      }
      column_[c] = static_cast<size_t>(found - known.begin());
      width_ = known.size();
    }
  }

  bool is_empty(size_t which) const {
    const size_t column = column_[which];
    return column < row_.size() ? row_[column].begin == row_[column].end : column == row_.size() && open_end_;
  }

  double number(size_t which) const {
    const size_t column = column_[which];
    if (column >= row_.size())
      fail({row_.front().begin, row_.back().end},
           fmt::format("this row has {}, and no column {}",
                       row_.size() == 1 ? "one column" : fmt::format("{} columns", row_.size()), column + 1),
           "every row needs its number there; columns = [1, 2] chooses others");
    const auto value = number_in(word(row_[column]));
    if (!value)
      fail(row_[column], fmt::format("'{}' is not a number", word(row_[column])), "write numbers as 0.5 or 1e-3");
    if (!std::isfinite(*value))
      fail(row_[column], "this is not a finite number", "leave the row out, or give a number");
    return *value;
  }

  std::filesystem::path path_;
  std::string text_;
  size_t next_ = 0;
  std::vector<Field> row_;
  std::vector<std::pair<size_t, char>> separators_;  // of the row: where, and ',', ';' or blanks
  bool open_end_ = false;                            // the row ends with a separator
  char separator_ = 0;                               // of the rows of numbers
  size_t width_ = 0;                                 // so many columns they have
  std::vector<size_t> column_{0, 1};
};

}  // namespace

PointTrouble check_points(std::span<const double> x, std::span<const double> y) {
  if (x.empty()) return {0, "there are no points", "a table needs two points or more"};
  if (x.size() == 1) return {0, "there is one point only", "a table needs two points or more"};
  for (size_t i = 1; i < x.size(); ++i) {
    if (x[i] > x[i - 1]) continue;
    return {
        i,
        x[i] == x[i - 1] ? fmt::format("{} is given twice", print_number(x[i]))
                         : fmt::format("{} follows {}", print_number(x[i]), print_number(x[i - 1])),
        x[i] == x[i - 1]
            ? "a table has one value for each argument; a jump takes two points close together, or between = \"step\""
            : "sort the points: the first column must increase"};
  }
  constexpr double largest = 1e100;
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::abs(x[i]) <= largest && std::abs(y[i]) <= largest) continue;
    return {i, "a number beyond 1e100", "choose other units"};
  }
  return {};
}

namespace {
thread_local const std::vector<std::string>* allowed = nullptr;  // of OnlyTheseFiles
}  // namespace

OnlyTheseFiles::OnlyTheseFiles(std::vector<std::string> paths)
    : paths_(std::move(paths)), before_(std::exchange(allowed, &paths_)) {}

OnlyTheseFiles::~OnlyTheseFiles() { allowed = before_; }

namespace {

void check_allowed(const std::filesystem::path& path, const Place& asked) {
  if (allowed && std::find(allowed->begin(), allowed->end(), path.string()) == allowed->end())
    throw Error(ErrorKind::file, fmt::format("the file '{}' is not read for a text from elsewhere", path.string()),
                asked, "start saltus with the model file that names it, or write points = [[0, 0], [1, 0.2]]");
}

}  // namespace

PointColumns read_points(const std::filesystem::path& path, std::span<const std::string> columns, const Place& asked) {
  check_allowed(path, asked);
  return PointReader(path, read_file(path, asked)).read(columns);
}

DataColumns read_columns(const std::filesystem::path& path, std::span<const std::string> columns, const Place& asked) {
  check_allowed(path, asked);
  return PointReader(path, read_file(path, asked)).read_all(columns);
}

}  // namespace saltus
