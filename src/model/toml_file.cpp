#include "model/toml_file.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#ifndef TOML_HEADER_ONLY
#define TOML_HEADER_ONLY 0  // the library has what is compiled; wheels bring it along
#endif
#include <toml++/toml.h>

#include "expr/letters.hpp"
#include "expr/print.hpp"

namespace saltus {

struct TomlFile::Root {
  toml::table table;
};

namespace {

const toml::node& node_of(const TomlEntry& e) { return *static_cast<const toml::node*>(e.node); }

/// The closing quote on the same line, or the opening one if there is none.
size_t end_of_quote(const std::string& raw, size_t open) {
  for (size_t i = open + 1; i < raw.size() && raw[i] != '\n'; ++i) {
    if (raw[i] == raw[open]) return i;
    if (raw[i] == '\\' && raw[open] == '"') ++i;
  }
  return open;
}

/// toml++ frees tables by recursion, so a key like a.a.a.a (and so on, for megabytes) must not reach it.
void limit_nesting(const Source& source) {
  const std::string& raw = source.text();
  const int deepest = 16;  // [constraint.N] is 2
  int dots = 0;
  bool in_key = false, blank = false;
  for (size_t i = 0; i < raw.size(); ++i) {
    const char c = raw[i];
    if (c == ' ' || c == '\t') {
      blank = true;
      continue;
    }
    if (c == '.') {
      dots = in_key ? dots + 1 : 0;
      in_key = false;
    } else if (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '"' || c == '\'') {
      if (in_key && blank) dots = 0;
      in_key = true;
      if (c == '"' || c == '\'') i = end_of_quote(raw, i);
    } else {
      dots = 0;
      in_key = false;
    }
    blank = false;
    if (dots > deepest) {
      throw Error(
          ErrorKind::model, "a key with too many parts", source.place(i),
          "tables are parameters, initial, labels, constraint.NAME, jump.NAME, section.NAME, table.NAME and run");
    }
  }
}

/// toml++ counts columns in characters, we count bytes.
size_t offset_of(const Source& source, const toml::source_position& at, bool plain) {
  if (plain) return source.offset(at.line, at.column);
  const std::string& raw = source.text();
  size_t offset = source.offset(at.line, 1);
  for (size_t c = 1; c < at.column && offset < raw.size() && raw[offset] != '\n'; ++c) {
    ++offset;
    while (offset < raw.size() && (raw[offset] & 0xC0) == 0x80) ++offset;
  }
  return offset;
}

// Faults of a file that is no TOML, each with its place.

[[noreturn]] void given_twice(const Source& source, const toml::source_position& at, size_t offset,
                              const std::string& what) {
  const size_t close = what.rfind('\''), open = close > 0 ? what.rfind('\'', close - 1) : std::string::npos;
  const std::string key = open == std::string::npos ? "this" : what.substr(open + 1, close - open - 1);
  Error error(ErrorKind::model, fmt::format("'{}' is given twice", key), source.place(offset), "remove one of them");
  const std::string& raw = source.text();
  for (size_t line = at.line - 1; line > 0 && line < at.line; --line) {
    const size_t first = raw.find_first_not_of(" \t[", source.offset(line, 1));
    if (first == std::string::npos || raw.compare(first, key.size(), key) != 0) continue;
    if (first + key.size() >= raw.size() || !std::strchr(" \t=].", raw[first + key.size()])) continue;
    error.also("first given here", source.place(first, key.size()));
    break;
  }
  throw error;
}

[[noreturn]] void unclosed_text(const Source& source, size_t end) {
  const std::string& raw = source.text();
  const size_t multi = std::max(raw.rfind("\"\"\"", end) + 1, raw.rfind("'''", end) + 1);  // npos + 1 is 0
  const bool to_the_end = raw.find_first_not_of(" \t\r\n", end) == std::string::npos;
  if (multi > 0 && to_the_end) {
    throw Error(ErrorKind::model, "this text is never closed", source.place(multi - 1, 3),
                fmt::format("end it with {}", raw.substr(multi - 1, 3)));
  }
  throw Error(ErrorKind::model, "this text is not closed on its line", source.place(end),
              "end it with the quote it starts with, or use \"\"\" for several lines");
}

/// A name with letters that are not plain stands in quotes, in TOML: if that is what stands here.
void quote_name(const Source& source, size_t offset) {
  constexpr std::string_view ends = " \t\r\n=.,[]{}\"'#";
  const std::string& raw = source.text();
  if (offset >= raw.size() || static_cast<unsigned char>(raw[offset]) < 0x80) return;
  const size_t before = raw.find_last_of(ends, offset), line = raw.rfind('\n', offset) + 1;
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  const size_t end = std::min(raw.find_first_of(ends, offset), raw.size());
  const std::string head = raw.substr(line, begin - line), name = raw.substr(begin, end - begin);
  const size_t opened = head.find_last_of("{,"), from = opened == std::string::npos ? 0 : opened;
  if (head.find('=', from) != std::string::npos || head.find_first_of("\"'", from) != std::string::npos) return;
  const size_t bracket = head.find_first_not_of(" \t");
  const bool heading = bracket != std::string::npos && head[bracket] == '[';
  const size_t next = raw.find_first_not_of(" \t", end);
  if (next == std::string::npos || (raw[next] != '=' && raw[next] != (heading ? ']' : '=') && raw[next] != '.')) return;
  throw Error(
      ErrorKind::model, "a name with letters that are not plain stands in quotes here",
      source.place(begin, name.size()),
      heading ? fmt::format("write {}\"{}\"]", head.substr(bracket), name) : fmt::format("write \"{}\" = ...", name));
}

/// Explains a text behind = that is no value of TOML: a number as printed, a formula or a word without quotes. Returns
/// if the text is none of these.
void explain_value(const Source& source, size_t offset) {
  const std::string& raw = source.text();
  if (offset > raw.size()) return;
  const size_t line = offset == 0 ? 0 : raw.rfind('\n', offset - 1) + 1;  // npos + 1 is 0
  const size_t equals = raw.find('=', line), stop = std::min(raw.find_first_of("\r\n#", line), raw.size());
  if (equals == std::string::npos || equals >= stop || equals > offset) return;
  const size_t begin = raw.find_first_not_of(" \t", equals + 1);
  if (begin == std::string::npos || begin >= stop) return;
  const size_t end = raw.find_last_not_of(" \t", stop - 1) + 1;
  const std::string key = raw.substr(line, equals - line), value = raw.substr(begin, end - begin);
  if (key.find_first_of("[{\"'") != std::string::npos || value.find_first_of("[]{}\"'=") != std::string::npos) return;
  for (size_t i = 0; i < value.size(); ++i) {
    if (const auto* sign = printed_sign(std::string_view(value).substr(i)))
      throw Error(ErrorKind::model, fmt::format("'{}' is not used in numbers", sign->first),
                  source.place(begin + i, sign->first.size()),
                  sign->second == " " ? "this is a special space: write a plain one"
                                      : fmt::format("type it as {}", sign->second));
  }
  const size_t comma = value.find(',');
  if (comma != std::string::npos && value.find_first_not_of("+-0123456789,") == std::string::npos) {
    std::string pointed = value;
    pointed[comma] = '.';
    throw Error(ErrorKind::model, "a comma inside a number", source.place(begin + comma),
                fmt::format("decimal numbers have a point: {}", pointed));
  }
  const std::string name = key.substr(std::min(key.find_first_not_of(" \t"), key.size()));
  throw Error(ErrorKind::model, "formulas and words stand in quotes here", source.place(begin, value.size()),
              fmt::format("write {}= \"{}\"", name, value));
}

[[noreturn]] void bad_toml(const Source& source, const toml::parse_error& error, bool plain) {
  const auto& at = error.source().begin;
  const size_t offset = offset_of(source, at, plain);
  std::string what(error.description());
  const auto says = [&](std::string_view part) { return what.find(part) != std::string::npos; };
  if (says("utf-8") || says("UTF-8")) {
    throw Error(ErrorKind::model, "this is not text in UTF-8", source.place(offset),
                "save the file as UTF-8, or leave out the letters that are not plain");
  }
  if (says("cannot redefine")) given_twice(source, at, offset, what);
  if (says("string") && (says("end-of-file") || says("control characters"))) unclosed_text(source, offset);
  if (says("expected '=', saw '''")) {
    throw Error(ErrorKind::model, "a rate outside of the equations", source.place(offset),
                "equations stand between equations = \"\"\" and \"\"\"; a speed as a key stands in quotes: \"x'\" = 0");
  }
  if (says("expected '=', saw '['")) {
    const std::string& raw = source.text();
    const size_t line = source.offset(at.line, 1), end = raw.find_first_of("]\r\n", offset);
    const size_t name = raw.find_first_not_of(" \t", line);
    const bool closed = end != std::string::npos && raw[end] == ']';
    const std::string key = closed ? raw.substr(name, end + 1 - name) : "x[i]";
    throw Error(ErrorKind::model, "a name with an index stands in quotes here", source.place(name, key.size()),
                fmt::format("write \"{}\" = ...", key));
  }
  if (!plain) quote_name(source, offset);
  explain_value(source, offset);
  if (const size_t cut = what.find("Error while parsing "); cut == 0) what = "cannot read " + what.substr(20);
  for (char& c : what) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  throw Error(ErrorKind::model, what, source.place(offset),
              "a model file is TOML: key = value lines below [table] headings");
}

/// Walks over a TOML string in the raw file and notes where each byte of its value comes from.
void decode(const std::string& raw, size_t at, Fragment& f) {
  const char quote = at < raw.size() ? raw[at] : '\0';
  if (quote != '"' && quote != '\'') return;
  const bool multi = raw.compare(at, 3, std::string(3, quote)) == 0;
  at += multi ? 3 : 1;
  if (multi && at < raw.size() && raw[at] == '\r') ++at;
  if (multi && at < raw.size() && raw[at] == '\n') ++at;
  while (f.offsets.size() < f.text.size() && at < raw.size()) {
    if (quote == '\'' || raw[at] != '\\') {
      if (raw[at] == '\r' && f.text[f.offsets.size()] != '\r') ++at;
      f.offsets.push_back(at++);
      continue;
    }
    const char next = at + 1 < raw.size() ? raw[at + 1] : '\0';
    if (multi && std::isspace(static_cast<unsigned char>(next))) {  // a backslash at the end of a line joins lines
      ++at;
      while (at < raw.size() && std::isspace(static_cast<unsigned char>(raw[at]))) ++at;
      continue;
    }
    const size_t bytes = next == 'u' ? 6 : next == 'U' ? 10 : 2;
    const unsigned char first = static_cast<unsigned char>(f.text[f.offsets.size()]);
    const size_t produced = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    for (size_t i = 0; i < produced && f.offsets.size() < f.text.size(); ++i) f.offsets.push_back(at);
    at += bytes;
  }
  f.offsets.push_back(std::min(at, raw.size()));
}

}  // namespace

TomlFile::TomlFile(std::shared_ptr<const Source> source) : source_(std::move(source)) {
  const std::string& raw = source_->text();
  plain_ = std::none_of(raw.begin(), raw.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  limit_nesting(*source_);
  try {
    root_ = std::make_unique<const Root>(Root{toml::parse(raw, source_->file())});
  } catch (const toml::parse_error& error) {
    bad_toml(*source_, error, plain_);
  }
}

TomlFile::~TomlFile() = default;

std::vector<TomlEntry> TomlFile::entries() const { return entries({.node = &root_->table}); }

std::vector<TomlEntry> TomlFile::entries(const TomlEntry& e) const {
  const toml::table* table = node_of(e).as_table();
  if (!table)
    fail(e, fmt::format("'{}' must be a table", e.key), fmt::format("write [{}] on a line of its own", e.key));
  std::vector<TomlEntry> out;
  for (const auto& [key, node] : *table)
    out.push_back({std::string(key.str()), &node, offset_of(*source_, key.source().begin, plain_)});
  std::stable_sort(out.begin(), out.end(), [](const TomlEntry& a, const TomlEntry& b) { return a.offset < b.offset; });
  return out;
}

bool TomlFile::is_table(const TomlEntry& e) const { return node_of(e).is_table(); }
bool TomlFile::is_text(const TomlEntry& e) const { return node_of(e).is_string(); }

std::optional<std::string> TomlFile::text(const TomlEntry& e) const {
  const auto* text = node_of(e).as_string();
  return text ? std::optional(text->get()) : std::nullopt;
}

std::optional<double> TomlFile::number(const TomlEntry& e) const {
  return node_of(e).is_number() ? node_of(e).value<double>() : std::nullopt;
}

std::optional<long> TomlFile::whole(const TomlEntry& e) const {
  const auto* whole = node_of(e).as_integer();
  return whole ? std::optional<long>(whole->get()) : std::nullopt;
}

std::optional<bool> TomlFile::truth(const TomlEntry& e) const {
  const auto* truth = node_of(e).as_boolean();
  return truth ? std::optional(truth->get()) : std::nullopt;
}

std::optional<std::vector<TomlEntry>> TomlFile::list(const TomlEntry& e) const {
  const toml::array* array = node_of(e).as_array();
  if (!array) return std::nullopt;
  std::vector<TomlEntry> out;
  out.reserve(array->size());
  for (const toml::node& node : *array) out.push_back({.node = &node, .offset = e.offset});
  return out;
}

Fragment TomlFile::key_fragment(const TomlEntry& e) const {
  Fragment f{source_, e.key, {}};
  size_t at = e.offset;
  if (at < source_->text().size() && (source_->text()[at] == '"' || source_->text()[at] == '\'')) ++at;
  for (size_t i = 0; i <= e.key.size(); ++i) f.offsets.push_back(std::min(at + i, source_->text().size()));
  return f;
}

Fragment TomlFile::text_fragment(const TomlEntry& e) const {
  const auto& value = *node_of(e).as_string();
  const size_t start = offset_of(*source_, value.source().begin, plain_);
  Fragment f{source_, value.get(), {}};
  decode(source_->text(), start, f);
  if (f.offsets.size() != f.text.size() + 1) f.offsets.assign(f.text.size() + 1, start);
  return f;
}

Fragment TomlFile::number_fragment(const TomlEntry& e, double value) const {
  const auto& at = node_of(e).source();
  const size_t begin = offset_of(*source_, at.begin, plain_), length = offset_of(*source_, at.end, plain_) - begin;
  Fragment f{source_, print_number(value), {}};
  for (size_t i = 0; i < f.text.size(); ++i) f.offsets.push_back(begin + std::min(i, length > 0 ? length - 1 : 0));
  f.offsets.push_back(begin + length);
  return f;
}

void TomlFile::fail(const TomlEntry& e, std::string message, std::string hint) const {
  throw Error(ErrorKind::model, std::move(message), source_->place(e.offset, e.key.size()), std::move(hint));
}

void TomlFile::fail_value(const TomlEntry& e, std::string message, std::string hint) const {
  const auto& at = node_of(e).source();
  const size_t begin = offset_of(*source_, at.begin, plain_), end = offset_of(*source_, at.end, plain_);
  throw Error(ErrorKind::model, std::move(message), source_->place(begin, end > begin ? end - begin : 1),
              std::move(hint));
}

}  // namespace saltus
