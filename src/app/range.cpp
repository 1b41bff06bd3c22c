#include "app/range.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "analysis/random.hpp"
#include "app/options.hpp"
#include "base/error.hpp"
#include "out/write.hpp"

namespace saltus {
namespace {

constexpr long most_values = 100'000'000;
constexpr size_t most_in_file = 10'000'000;
constexpr size_t longest_line = 1'000'000;

double number(const std::string& text, const std::string& given, const RangeOptions& options) {
  if (text.find_first_not_of(' ') == text.npos)
    misuse(fmt::format("{}: a number is missing", given), "a range is a:b:n, a list 1,2,5");
  return options.model ? read_number(text, given + ":", *options.model) : read_number(text, given + ":");
}

long read_count(const std::string& text, const std::string& given, const RangeOptions& options) {
  const double n = number(text, given, options);
  if (n > static_cast<double>(most_values))
    misuse(fmt::format("{}: {} values are too many", given, text), fmt::format("give at most {}", most_values));
  if (!(n >= 1 && n <= static_cast<double>(most_values) && n == std::floor(n)))
    misuse(fmt::format("{}: {} is no number of values", given, text), "a range is a:b:n with a whole n of 1 or more");
  return static_cast<long>(n);
}

/// The next line of a file of numbers; false at its end. A device or another file without lines ends here.
bool read_line(std::istream& file, std::string& line, const std::string& given, long number) {
  line.clear();
  for (int c = file.get(); c != '\n'; c = file.get()) {
    if (c == std::char_traits<char>::eof()) return !line.empty();
    if (c == 0 || line.size() >= longest_line)
      misuse(fmt::format("{}: line {} is no text of numbers", given, number), "write one number per line");
    line += static_cast<char>(c);
  }
  return true;
}

/// A value at a place between 0 and 1; the ends exactly.
double at_place(double a, double b, double place, bool log) {
  if (place == 0) return a;
  if (place == 1) return b;
  return log ? a * std::pow(b / a, place) : a + (b - a) * place;
}

}  // namespace

std::vector<std::pair<double, double>> read_box(const std::vector<std::string>& texts, const Model& model) {
  std::vector<std::pair<double, double>> box(model.states.size(), {std::nan(""), std::nan("")});
  for (const std::string& text : texts) {
    for (const std::string& part : split_list(text)) {
      const Setting s = read_setting(part, "--box");
      const std::string given = "--box " + part;
      const auto ends = split_list(s.value, ':');
      if (ends.size() != 2) misuse(fmt::format("{}: this is no interval", given), "write --box y=-2:2");
      const double from = read_number(ends[0], given + ":", model), to = read_number(ends[1], given + ":", model);
      if (from > to)
        misuse(fmt::format("{}: the interval ends before it begins", given),
               fmt::format("write --box {}={}:{}", s.name, ends[1], ends[0]));
      box[static_cast<size_t>(find_state(model, s.name, given))] = {from, to};
    }
  }
  return box;
}

std::vector<double> read_nearness(const std::vector<std::string>& texts, const Model& model) {
  std::vector<double> tolerance(model.states.size(), std::nan(""));
  for (const std::string& text : texts) {
    for (const std::string& part : split_list(text)) {
      const std::string given = "--period-tolerance " + part;
      const size_t equals = part.find('=');
      const std::string value = equals == part.npos ? part : part.substr(equals + 1);
      const double number = value == "inf" ? HUGE_VAL : read_number(value, given + ":", model);
      if (!(number > 0)) misuse(fmt::format("{}: no two numbers are that near", given), "give a positive number");
      if (equals == part.npos) {
        tolerance.assign(tolerance.size(), number);
      } else {
        tolerance[static_cast<size_t>(find_state(model, part.substr(0, equals), given))] = number;
      }
    }
  }
  return tolerance;
}

std::vector<std::string> split_list(const std::string& text, char separator) {
  std::vector<std::string> parts{""};
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == separator && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::vector<std::vector<double>> read_rows(const std::string& path, const std::string& given) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw file_error(path, EISDIR, "read");
  errno = 0;
  std::ifstream file(path);
  if (!file) throw file_error(path, errno == 0 ? EIO : errno, "read");
  std::vector<std::vector<double>> rows;
  std::string line;
  size_t values = 0;
  for (long number = 1; read_line(file, line, given, number); ++number) {
    line.erase(std::min(line.find('#'), line.size()));
    std::vector<double> row;
    for (size_t i = 0; i < line.size();) {
      const size_t start = line.find_first_not_of(" \t\r,;", i);
      if (start == line.npos) break;
      const size_t end = std::min(line.find_first_of(" \t\r,;", start), line.size());
      row.push_back(read_number(line.substr(start, end - start), fmt::format("{}: line {}:", given, number)));
      i = end;
    }
    values += row.size();
    if (values > most_in_file)
      misuse(fmt::format("{}: the file holds more than {} numbers", given, most_in_file), "take a part of it");
    if (!row.empty()) rows.push_back(std::move(row));
  }
  return rows;
}

ValueRange read_range(const std::string& text, const std::string& given, const RangeOptions& options) {
  ValueRange range;
  if (text.starts_with('@')) {
    for (const auto& row : read_rows(text.substr(1), given))
      range.values.insert(range.values.end(), row.begin(), row.end());
    if (range.values.empty()) misuse(fmt::format("{}: the file holds no numbers", given), "write one number per line");
    return range;
  }
  const std::vector<std::string> parts = split_list(text, ':');
  if (parts.size() == 1) {
    if (options.random) misuse(fmt::format("{}: --random needs a range", given), "write the two ends: omega=0.15:2");
    for (const std::string& part : split_list(text)) range.values.push_back(number(part, given, options));
    return range;
  }
  if (parts.size() > 3) misuse(fmt::format("{}: too many colons", given), "a range is a:b:n");
  const double a = number(parts[0], given, options), b = number(parts[1], given, options);
  if (options.log && !(a * b > 0))
    misuse(fmt::format("{}: --log needs two ends of one sign", given), "choose ends that are both above zero");
  const long n = options.random ? *options.random : parts.size() == 3 ? read_count(parts[2], given, options) : 400;
  if (n < 1 || n > most_values)
    misuse(fmt::format("--random {}: {}", n, n < 1 ? "no such number of values" : "too many values"),
           fmt::format("give 1 to {}", most_values));
  for (long i = 0; i < n; ++i) {
    const double place = options.random ? random_number(options.seed, static_cast<std::uint64_t>(i), 0)
                         : n == 1       ? 0
                                        : static_cast<double>(i) / static_cast<double>(n - 1);
    range.values.push_back(at_place(a, b, place, options.log));
  }
  if (options.random) std::sort(range.values.begin(), range.values.end());
  range.uniform = !options.random && n > 1;
  return range;
}

}  // namespace saltus
