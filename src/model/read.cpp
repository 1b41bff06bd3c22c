#include "model/read.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#define TOML_HEADER_ONLY 0
#include <toml++/toml.h>

#include "base/source.hpp"
#include "expr/interpolant.hpp"
#include "expr/print.hpp"
#include "model/build.hpp"
#include "model/points.hpp"

namespace saltus {
namespace {

using Keys = std::vector<std::string>;

constexpr std::array<std::string_view, 3> between_names{"linear", "cubic", "step"};
constexpr std::array<std::string_view, 4> outside_names{"hold", "repeat", "zero", "error"};

/// An entry of a TOML table with the place of its key.
struct Entry {
  std::string key;
  const toml::node* node = nullptr;
  size_t offset = 0;
};

class Reader {
 public:
  explicit Reader(std::shared_ptr<const Source> source) : source_(std::move(source)) {
    const std::string& raw = source_->text();
    plain_ = std::none_of(raw.begin(), raw.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  }

  ModelText run() {
    const std::string& raw = source_->text();
    if (raw.find('\0') != std::string::npos) {
      throw Error(ErrorKind::model, "this is not a text file", {.file = source_->file()},
                  "a model file is text: see `examples`");
    }
    if (std::all_of(raw.begin(), raw.end(), [](char c) { return std::isspace(static_cast<unsigned char>(c)); })) {
      throw Error(ErrorKind::model, "the file is empty", {.file = source_->file()},
                  "`examples` has models to start from");
    }
    limit_nesting();
    toml::table root;
    try {
      root = toml::parse(raw, source_->file());
    } catch (const toml::parse_error& error) {
      bad_toml(error);
    }
    has_name_ = root.contains("name");
    has_ref_ = root.contains("ref");
    ModelText text;
    const std::vector<Entry> entries = sorted(root);
    allow(entries,
          {"name", "ref", "equations", "parameters", "initial", "labels", "constraint", "jump", "section", "table",
           "run"},
          "the model");
    for (const Entry& e : entries) {
      if (e.key == "name") text.name = plain_string(e);
      if (e.key == "ref") text.ref = plain_string(e);
      if (e.key == "equations") text.equations = formula_text(e, "equations = \"\"\" ... \"\"\"");
      if (e.key == "parameters") text.parameters = named_values(e);
      if (e.key == "initial") text.initial = named_values(e);
      if (e.key == "labels") text.labels = label_texts(e);
      if (e.key == "constraint") read_constraints(e, text);
      if (e.key == "jump") read_jumps(e, text);
      if (e.key == "section") read_sections(e, text);
      if (e.key == "table") read_tables(e, text);
      if (e.key == "run") read_run(e, text);
    }
    if (!text.equations.source) {
      throw Error(ErrorKind::model, "there are no equations", {.file = source_->file()},
                  "add: equations = \"\"\" followed by lines like x' = -x and a closing \"\"\"");
    }
    return text;
  }

 private:
  /// toml++ frees tables by recursion, so a key like a.a.a.a (and so on, for megabytes) must not reach it.
  void limit_nesting() const {
    const std::string& raw = source_->text();
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
        if (c == '"' || c == '\'') i = end_of_quote(i);
      } else {
        dots = 0;
        in_key = false;
      }
      blank = false;
      if (dots > deepest) {
        throw Error(
            ErrorKind::model, "a key with too many parts", source_->place(i),
            "tables are parameters, initial, labels, constraint.NAME, jump.NAME, section.NAME, table.NAME and run");
      }
    }
  }

  /// The closing quote on the same line, or the opening one if there is none.
  size_t end_of_quote(size_t open) const {
    const std::string& raw = source_->text();
    for (size_t i = open + 1; i < raw.size() && raw[i] != '\n'; ++i) {
      if (raw[i] == raw[open]) return i;
      if (raw[i] == '\\' && raw[open] == '"') ++i;
    }
    return open;
  }

  [[noreturn]] void bad_toml(const toml::parse_error& error) const {
    const auto& at = error.source().begin;
    std::string what(error.description());
    const auto says = [&](std::string_view part) { return what.find(part) != std::string::npos; };
    if (says("utf-8") || says("UTF-8")) {
      throw Error(ErrorKind::model, "this is not text in UTF-8", source_->place(offset_of(at)),
                  "save the file as UTF-8, or leave out the letters that are not plain");
    }
    if (says("cannot redefine")) given_twice(at, what);
    if (says("string") && (says("end-of-file") || says("control characters"))) unclosed_text(at);
    if (says("expected '=', saw '''")) {
      throw Error(ErrorKind::model, "a rate outside of the equations", source_->place(offset_of(at)),
                  "equations stand between equations = \"\"\" and \"\"\"");
    }
    if (const size_t cut = what.find("Error while parsing "); cut == 0) what = "cannot read " + what.substr(20);
    for (char& c : what) {
      if (static_cast<unsigned char>(c) < 0x20) c = ' ';
    }
    throw Error(ErrorKind::model, what, source_->place(offset_of(at)),
                "a model file is TOML: key = value lines below [table] headings");
  }

  [[noreturn]] void given_twice(const toml::source_position& at, const std::string& what) const {
    const size_t close = what.rfind('\''), open = close > 0 ? what.rfind('\'', close - 1) : std::string::npos;
    const std::string key = open == std::string::npos ? "this" : what.substr(open + 1, close - open - 1);
    Error error(ErrorKind::model, fmt::format("'{}' is given twice", key), source_->place(offset_of(at)),
                "remove one of them");
    const std::string& raw = source_->text();
    for (size_t line = at.line - 1; line > 0 && line < at.line; --line) {
      const size_t first = raw.find_first_not_of(" \t[", source_->offset(line, 1));
      if (first == std::string::npos || raw.compare(first, key.size(), key) != 0) continue;
      if (first + key.size() >= raw.size() || !std::strchr(" \t=].", raw[first + key.size()])) continue;
      error.also("first given here", source_->place(first, key.size()));
      break;
    }
    throw error;
  }

  [[noreturn]] void unclosed_text(const toml::source_position& at) const {
    const std::string& raw = source_->text();
    const size_t end = offset_of(at);
    const size_t multi = std::max(raw.rfind("\"\"\"", end) + 1, raw.rfind("'''", end) + 1);  // npos + 1 is 0
    const bool to_the_end = raw.find_first_not_of(" \t\r\n", end) == std::string::npos;
    if (multi > 0 && to_the_end) {
      throw Error(ErrorKind::model, "this text is never closed", source_->place(multi - 1, 3),
                  fmt::format("end it with {}", raw.substr(multi - 1, 3)));
    }
    throw Error(ErrorKind::model, "this text is not closed on its line", source_->place(end),
                "end it with the quote it starts with, or use \"\"\" for several lines");
  }

  /// A complaint about the value of an entry, not its key.
  [[noreturn]] void fail_value(const Entry& e, std::string message, std::string hint) const {
    const auto& at = e.node->source();
    const size_t begin = offset_of(at.begin), end = offset_of(at.end);
    throw Error(ErrorKind::model, std::move(message), source_->place(begin, end > begin ? end - begin : 1),
                std::move(hint));
  }

  [[noreturn]] void fail(const Entry& e, std::string message, std::string hint) const {
    throw Error(ErrorKind::model, std::move(message), source_->place(e.offset, e.key.size()), std::move(hint));
  }

  /// toml++ counts columns in characters, we count bytes.
  size_t offset_of(const toml::source_position& at) const {
    size_t offset = source_->offset(at.line, 1);
    const std::string& raw = source_->text();
    if (plain_) return source_->offset(at.line, at.column);
    for (size_t c = 1; c < at.column && offset < raw.size() && raw[offset] != '\n'; ++c) {
      ++offset;
      while (offset < raw.size() && (raw[offset] & 0xC0) == 0x80) ++offset;
    }
    return offset;
  }

  /// A table's entries in the order of the file.
  std::vector<Entry> sorted(const toml::table& table) const {
    std::vector<Entry> entries;
    for (const auto& [key, node] : table)
      entries.push_back({std::string(key.str()), &node, offset_of(key.source().begin)});
    std::stable_sort(entries.begin(), entries.end(),
                     [](const Entry& a, const Entry& b) { return a.offset < b.offset; });
    return entries;
  }

  std::vector<Entry> table_entries(const Entry& e) const {
    const toml::table* table = e.node->as_table();
    if (!table)
      fail(e, fmt::format("'{}' must be a table", e.key), fmt::format("write [{}] on a line of its own", e.key));
    return sorted(*table);
  }

  void allow(const std::vector<Entry>& entries, const Keys& known, std::string_view where) const {
    for (const Entry& e : entries) {
      if (std::find(known.begin(), known.end(), e.key) != known.end()) continue;
      misplaced(e, where);
      const std::string near = nearest_name(e.key, known);
      const bool table = e.node->is_table() && where == "the model";
      fail(e, table ? fmt::format("unknown table [{}]", e.key) : fmt::format("unknown key '{}' in {}", e.key, where),
           near.empty() ? fmt::format("known here: {}", fmt::join(known, ", "))
                        : fmt::format("did you mean '{}'?", near));
    }
  }

  void misplaced(const Entry& e, std::string_view where) const {
    // [parameters] may well have a "name" or "ref" of its own.
    const bool ours = e.key == "equations" || (e.key == "name" && !has_name_) || (e.key == "ref" && !has_ref_);
    if (!ours || !e.node->is_string()) return;
    fail(e, fmt::format("'{}' stands below {}", e.key, where), fmt::format("move '{}' above the first [table]", e.key));
  }

  std::string plain_string(const Entry& e) const {
    const auto* s = e.node->as_string();
    if (!s) fail(e, fmt::format("'{}' must be text", e.key), fmt::format("write {} = \"...\"", e.key));
    return s->get();
  }

  Fragment key_fragment(const Entry& e) const {
    Fragment f{source_, e.key, {}};
    size_t at = e.offset;
    if (at < source_->text().size() && (source_->text()[at] == '"' || source_->text()[at] == '\'')) ++at;
    for (size_t i = 0; i <= e.key.size(); ++i) f.offsets.push_back(std::min(at + i, source_->text().size()));
    return f;
  }

  /// The text of a string value, each character with its place in the raw file.
  Fragment string_fragment(const toml::value<std::string>& value) const {
    const std::string& raw = source_->text();
    const size_t start = offset_of(value.source().begin);
    Fragment f{source_, value.get(), {}};
    decode(raw, start, f);
    if (f.offsets.size() != f.text.size() + 1) f.offsets.assign(f.text.size() + 1, start);
    return f;
  }

  /// Walks over a TOML string in the raw file and notes where each byte of its value comes from.
  static void decode(const std::string& raw, size_t at, Fragment& f) {
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

  Fragment formula_text(const Entry& e, std::string_view example) const {
    const auto* s = e.node->as_string();
    if (!s) fail(e, fmt::format("'{}' must be text", e.key), fmt::format("write {}", example));
    return string_fragment(*s);
  }

  /// A formula given as text, or a number.
  Fragment formula(const Entry& e) const {
    if (const auto* s = e.node->as_string()) return string_fragment(*s);
    double value = 0;
    if (const auto* i = e.node->as_integer()) {
      value = static_cast<double>(i->get());
    } else if (const auto* d = e.node->as_floating_point()) {
      value = d->get();
    } else {
      fail(e, fmt::format("'{}' must be a number or a formula", e.key),
           fmt::format("write {} = 1.5 or {} = \"1/3\"", e.key, e.key));
    }
    const size_t at = offset_of(e.node->source().begin);
    if (!std::isfinite(value)) {
      throw Error(ErrorKind::model, fmt::format("'{}' is {}", e.key, not_finite(value)), source_->place(at, 3),
                  "give a finite number");
    }
    Fragment f{source_, print_number(value), {}};
    const size_t raw_length = offset_of(e.node->source().end) - at;
    for (size_t i = 0; i < f.text.size(); ++i)
      f.offsets.push_back(at + std::min(i, raw_length > 0 ? raw_length - 1 : 0));
    f.offsets.push_back(at + raw_length);
    return f;
  }

  double number(const Entry& e) const {
    if (const auto* i = e.node->as_integer()) return static_cast<double>(i->get());
    if (const auto* d = e.node->as_floating_point(); d && std::isfinite(d->get())) return d->get();
    fail_value(e, fmt::format("'{}' must be a number", e.key), fmt::format("write {} = 1e-9", e.key));
  }

  std::vector<NamedText> named_values(const Entry& e) const {
    std::vector<NamedText> out;
    for (const Entry& v : table_entries(e)) {
      misplaced(v, fmt::format("[{}]", e.key));
      out.push_back({key_fragment(v), formula(v)});
    }
    return out;
  }

  Fragment index_range(const Entry& e) const { return formula_text(e, "for = \"i = 1..N\""); }

  std::vector<NamedText> label_texts(const Entry& e) const {
    std::vector<NamedText> out;
    for (const Entry& v : table_entries(e))
      out.push_back({key_fragment(v), formula_text(v, fmt::format("{} = \"displacement (m)\"", v.key))});
    return out;
  }

  Direction direction(const Entry& e) const {
    const std::string text = plain_string(e);
    if (text == "rising") return Direction::rising;
    if (text == "falling") return Direction::falling;
    if (text == "any") return Direction::any;
    fail_value(e, fmt::format("unknown direction '{}'", text), "a direction is \"rising\", \"falling\" or \"any\"");
  }

  bool truth(const Entry& e) const {
    const auto* b = e.node->as_boolean();
    if (!b) fail_value(e, fmt::format("'{}' must be true or false", e.key), fmt::format("write {} = true", e.key));
    return b->get();
  }

  void read_constraints(const Entry& all, ModelText& text) const {
    for (const Entry& c : table_entries(all)) {
      const std::string where = fmt::format("[constraint.{}]", c.key);
      if (!c.node->is_table()) fail(c, "a constraint needs a name", "write [constraint.N] with gap = \"...\" below it");
      std::optional<Fragment> gap, restitution, range;
      const auto entries = table_entries(c);
      allow(entries, {"gap", "restitution", "for"}, where);
      for (const Entry& e : entries) {
        if (e.key == "gap") gap = formula(e);
        if (e.key == "restitution") restitution = formula(e);
        if (e.key == "for") range = index_range(e);
      }
      if (!gap)
        fail(c, fmt::format("the constraint '{}' has no gap", c.key), fmt::format("add gap = \"...\" below {}", where));
      text.constraints.push_back({key_fragment(c), *gap, restitution, range});
    }
  }

  void read_jumps(const Entry& all, ModelText& text) const {
    for (const Entry& j : table_entries(all)) {
      const std::string where = fmt::format("[jump.{}]", j.key);
      if (!j.node->is_table())
        fail(j, "a jump needs a name", "write [jump.NAME] with on = \"...\" and set = { ... } below it");
      JumpText jump{.name = key_fragment(j)};
      const auto entries = table_entries(j);
      allow(entries, {"on", "every", "phase", "direction", "when", "set", "for"}, where);
      bool sets = false;
      for (const Entry& e : entries) {
        if (e.key == "on") jump.on = formula(e);
        if (e.key == "every") jump.every = formula(e);
        if (e.key == "for") jump.range = index_range(e);
        if (e.key == "phase") jump.phase = formula(e);
        if (e.key == "when") jump.when = formula_text(e, "when = \"s > 0.5\"");
        if (e.key == "direction") jump.direction = direction(e);
        if (e.key == "set") {
          sets = true;
          if (!e.node->is_table()) fail(e, "'set' must be a table", "write set = { v = \"-0.8*v\" }");
          jump.set = named_values(e);
        }
      }
      if (!jump.on && !jump.every)
        fail(j, fmt::format("the jump '{}' has neither 'on' nor 'every'", j.key),
             fmt::format("add on = \"...\" below {}: it jumps when this crosses zero; every = 1 jumps by the clock",
                         where));
      for (const Entry& e : entries) {
        if (e.key == "every" && jump.on)
          fail(e, fmt::format("the jump '{}' has both 'on' and 'every'", j.key), "make two jumps of it");
        if (e.key == "phase" && !jump.every)
          fail(e, "'phase' belongs to a clock", "remove it, or use every = ... instead of on");
        if (e.key == "direction" && !jump.on)
          fail(e, "'direction' belongs to 'on'", "remove it: a clock has no direction");
      }
      if (!sets)
        fail(j, fmt::format("the jump '{}' has no 'set'", j.key),
             fmt::format("add set = {{ v = \"...\" }} below {}", where));
      text.jumps.push_back(std::move(jump));
    }
  }

  void read_sections(const Entry& all, ModelText& text) const {
    for (const Entry& s : table_entries(all)) {
      const std::string where = fmt::format("[section.{}]", s.key);
      if (!s.node->is_table())
        fail(s, "a section needs a name", "write [section.NAME] with every = ... or on = \"...\" below it");
      SectionText section{.name = key_fragment(s)};
      const auto entries = table_entries(s);
      allow(entries, {"every", "on", "direction", "stop", "for"}, where);
      for (const Entry& e : entries) {
        if (e.key == "every") section.every = formula(e);
        if (e.key == "on") section.on = formula(e);
        if (e.key == "direction") section.direction = direction(e);
        if (e.key == "stop") section.stop = truth(e);
        if (e.key == "for") section.range = index_range(e);
      }
      if (section.every.has_value() == section.on.has_value()) {
        fail(s, fmt::format("the section '{}' needs either 'every' or 'on'", s.key),
             "every = \"2*pi/omega\" looks at fixed intervals, on = \"x\" when x crosses zero");
      }
      text.sections.push_back(std::move(section));
    }
  }

  void read_tables(const Entry& all, ModelText& text) const {
    for (const Entry& t : table_entries(all)) {
      const std::string where = fmt::format("[table.{}]", t.key);
      if (!t.node->is_table())
        fail(t, "a table needs a name",
             "write [table.NAME] with file = \"...\" or points = [[0, 0], [1, 0.2]] below it");
      PointTable table{.name = t.key, .curve = {}};
      const auto entries = table_entries(t);
      allow(entries, {"file", "points", "columns", "between", "outside"}, where);
      Between between = Between::linear;
      Outside outside = Outside::error;
      const Entry *file = nullptr, *points = nullptr, *columns = nullptr;
      for (const Entry& e : entries) {
        if (e.key == "file") file = &e;
        if (e.key == "points") points = &e;
        if (e.key == "columns") columns = &e;
        if (e.key == "between") between = one_of<Between>(e, between_names);
        if (e.key == "outside") outside = one_of<Outside>(e, outside_names);
      }
      if ((file == nullptr) == (points == nullptr))
        fail(t, fmt::format("the table '{}' needs either 'file' or 'points'", t.key),
             "file = \"road.csv\" reads rows of numbers, points = [[0, 0], [1, 0.2]] gives them here");
      if (columns && !file)
        fail(*columns, "'columns' belong to a file", "remove the line: points have two numbers each");
      if (columns) table.columns = column_names(*columns);
      PointColumns values = file ? points_of_file(*file, table) : points_given(*points);
      table.checksum = values.checksum;
      table.curve = std::make_shared<const Interpolant>(std::move(values.x), std::move(values.y), between, outside);
      if (!table.curve->finite())
        fail_value(file ? *file : *points, "these points are too close together, or too far apart, for numbers",
                   "leave out points that lie within rounding of each other");
      text.tables.push_back({key_fragment(t), std::move(table)});
    }
  }

  template <class T, size_t n>
  T one_of(const Entry& e, const std::array<std::string_view, n>& known) const {
    const std::string text = plain_string(e);
    const auto found = std::find(known.begin(), known.end(), text);
    if (found == known.end())
      fail_value(e, fmt::format("unknown choice '{}' for '{}'", text, e.key),
                 fmt::format("known: {}", fmt::join(known, ", ")));
    return static_cast<T>(found - known.begin());
  }

  std::vector<std::string> column_names(const Entry& e) const {
    std::vector<std::string> out;
    const toml::array* list = e.node->as_array();
    for (size_t i = 0; list && i < list->size(); ++i) {
      const toml::node& node = (*list)[i];
      if (const auto* name = node.as_string(); name && !name->get().empty()) out.push_back(name->get());
      if (const auto* place = node.as_integer(); place && place->get() > 0 && place->get() < 1'000'000)
        out.push_back(fmt::format("{}", place->get()));
    }
    if (!list || list->size() != 2 || out.size() != 2)
      fail_value(e, "'columns' are two names or positions", "write columns = [\"x\", \"height\"] or columns = [1, 3]");
    return out;
  }

  PointColumns points_of_file(const Entry& e, PointTable& table) const {
    const std::string given = plain_string(e);
    if (given.empty() || given.find('\0') != given.npos)
      fail_value(e, "this is no name of a file", "write file = \"road.csv\"");
    std::error_code ignored;
    const std::filesystem::path folder = std::filesystem::path(source_->file()).parent_path();
    table.file = std::filesystem::absolute(folder / given, ignored).lexically_normal().string();
    const Fragment text = string_fragment(*e.node->as_string());
    return read_points(table.file, table.columns, text.place(0, text.text.size()));
  }

  PointColumns points_given(const Entry& e) const {
    PointColumns out;
    const auto wrong = [&](const toml::node& node, std::string message, std::string hint) {
      fail_value({e.key, &node, e.offset}, std::move(message), std::move(hint));
    };
    const toml::array* rows = e.node->as_array();
    if (!rows) wrong(*e.node, "'points' must be a list of pairs", "write points = [[0, 0], [1, 0.2]]");
    for (const toml::node& row : *rows) {
      const toml::array* pair = row.as_array();
      if (!pair || pair->size() != 2) wrong(row, "a point is a pair of numbers", "write points = [[0, 0], [1, 0.2]]");
      for (const size_t i : {0u, 1u}) {
        const toml::node& node = (*pair)[i];
        const auto value = node.is_number() ? node.value<double>() : std::nullopt;
        if (!value || !std::isfinite(*value))
          wrong(node, "this is not a finite number", "write numbers as 0.5 or 1e-3");
        (i == 0 ? out.x : out.y).push_back(*value);
      }
    }
    if (const PointTrouble trouble = check_points(out.x, out.y); !trouble.message.empty())
      wrong(rows->empty() ? *e.node : (*rows)[trouble.at], trouble.message, trouble.hint);
    return out;
  }

  void read_run(const Entry& all, ModelText& text) const {
    const auto entries = table_entries(all);
    allow(entries, {"from", "until", "tolerance", "engine", "dt"}, "[run]");
    for (const Entry& e : entries) {
      if (e.key == "from") text.from = formula(e);
      if (e.key == "until") text.until = formula(e);
      if (e.key == "tolerance") {
        text.tolerance = number(e);
        if (!(*text.tolerance >= 1e-15 && *text.tolerance <= 0.1))
          fail_value(e, "the tolerance is out of range", "a tolerance lies between 1e-15 and 0.1");
      }
      if (e.key == "dt") {
        text.dt = number(e);
        if (!(*text.dt > 0)) fail_value(e, "the step is not positive", "give dt > 0");
      }
      if (e.key == "engine") {
        text.engine = plain_string(e);
        if (*text.engine != "event" && *text.engine != "step")
          fail_value(e, fmt::format("unknown engine '{}'", *text.engine), "engines: \"event\", \"step\"");
      }
    }
  }

  std::shared_ptr<const Source> source_;
  bool plain_;  ///< no character of more than one byte
  bool has_name_ = false, has_ref_ = false;
};

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", static_cast<int>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

/// A name as a TOML key: only plain letters stand without quotes.
std::string key_text(const std::string& name) {
  const bool bare = std::all_of(name.begin(), name.end(),
                                [](char c) { return static_cast<unsigned char>(c) < 0x80 && c != '[' && c != ']'; });
  return bare ? name : in_quotes(name);
}

/// A number as it is, a formula as quoted text.
std::string value_text(const Expr& e) {
  if (!e.is_number()) return in_quotes(print(e));
  return e.value() == 0 && std::signbit(e.value()) ? "-0.0" : print_number(e.value());  // -0 is an integer, that is 0
}

void write_table(const PointTable& table, std::string& out) {
  out += fmt::format("\n[table.{}]\n", key_text(table.name));
  if (!table.file.empty()) {
    std::vector<std::string> columns;
    for (const std::string& c : table.columns) {
      const bool position = std::all_of(c.begin(), c.end(), [](unsigned char letter) { return std::isdigit(letter); });
      columns.push_back(position ? c : in_quotes(c));
    }
    out += fmt::format("file = {}\n", in_quotes(table.file));
    if (!columns.empty()) out += fmt::format("columns = [{}]\n", fmt::join(columns, ", "));
  } else {
    std::vector<std::string> points;
    for (size_t i = 0; i < table.curve->x().size(); ++i)
      points.push_back(fmt::format("[{}, {}]", value_text(table.curve->x()[i]), value_text(table.curve->y()[i])));
    out += fmt::format("points = [{}]\n", fmt::join(points, ", "));
  }
  if (table.curve->between() != Between::linear) out += fmt::format("between = \"{}\"\n", between_name(*table.curve));
  if (table.curve->outside() != Outside::error) out += fmt::format("outside = \"{}\"\n", outside_name(*table.curve));
}

}  // namespace

std::string_view between_name(const Interpolant& curve) { return between_names[static_cast<size_t>(curve.between())]; }
std::string_view outside_name(const Interpolant& curve) { return outside_names[static_cast<size_t>(curve.outside())]; }

Model read_model_text(std::string_view text, std::string_view name, const Replacements& parameters) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte-order mark is no character of the first line
  ModelText model = Reader(std::make_shared<Source>(std::string(name), std::string(text))).run();
  for (NamedText& p : model.parameters) {
    for (const auto& [changed, value] : parameters) {
      if (p.name.text == changed) p.value = whole_text("-p " + changed, value);
    }
  }
  return build_model(model);
}

namespace {
[[noreturn]] void too_large(const std::string& path, uintmax_t size) {
  throw Error(ErrorKind::file, fmt::format("'{}' has {} MB", path, size >> 20), {}, "a model file has at most 256 MB");
}
}  // namespace

Model read_model(const std::string& path, const Replacements& parameters) {
  std::error_code problem;
  if (std::filesystem::is_directory(path, problem)) {
    throw Error(ErrorKind::file, fmt::format("'{}' is a folder", path), {},
                "give the model file, for example " + path + "/model.toml");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Error(ErrorKind::file, fmt::format("cannot open '{}': {}", path, std::generic_category().message(errno)), {},
                "check the name; `examples` lists models that come with saltus");
  }
  const auto size = std::filesystem::file_size(path, problem);
  const uintmax_t largest = 256u << 20;
  if (!problem && size > largest) too_large(path, size);
  std::string content;
  std::vector<char> block(1u << 16);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())), file.gcount() > 0) {
    content.append(block.data(), static_cast<size_t>(file.gcount()));
    if (content.size() > largest) break;  // a pipe does not say its size
  }
  if (file.bad()) throw Error(ErrorKind::file, fmt::format("cannot read '{}'", path), {}, "");
  if (content.size() > largest) too_large(path, content.size());
  return read_model_text(content, path, parameters);
}

std::string write_model(const Model& model) {
  std::string out;
  const auto line = [&](const std::string& text) { out += text + "\n"; };
  if (!model.name.empty()) line("name = " + in_quotes(model.name));
  if (!model.ref.empty()) line("ref = " + in_quotes(model.ref));
  line("\nequations = \"\"\"");
  for (const auto& [is_rate, i] : model.order) {
    const size_t k = static_cast<size_t>(i);
    if (is_rate) {
      line(fmt::format("  {}' = {}", model.states[k].name, print(model.states[k].rate)));
    } else {
      line(fmt::format("  {} = {}", model.definitions[k].name, print(model.definitions[k].value)));
    }
  }
  line("\"\"\"");
  if (!model.parameters.empty()) line("\n[parameters]");
  for (const Parameter& p : model.parameters) line(fmt::format("{} = {}", key_text(p.name), value_text(p.value)));
  line("\n[initial]");
  for (const State& s : model.states) line(fmt::format("{} = {}", key_text(s.name), value_text(s.initial)));
  if (!model.labels.empty()) line("\n[labels]");
  for (const Label& label : model.labels) line(fmt::format("{} = {}", key_text(label.name), in_quotes(label.text)));
  for (const Constraint& c : model.constraints) {
    line(fmt::format("\n[constraint.{}]\ngap = {}", key_text(c.name), value_text(c.gap)));
    if (c.restitution) line("restitution = " + value_text(*c.restitution));
  }
  for (const Jump& j : model.jumps) {
    line(fmt::format("\n[jump.{}]\n{} = {}", key_text(j.name), j.every ? "every" : "on",
                     value_text(j.every ? *j.every : j.on)));
    if (j.phase) line("phase = " + value_text(*j.phase));
    if (j.when) line("when = " + in_quotes(print(*j.when)));
    if (j.direction != Direction::any) line(fmt::format("direction = \"{}\"", direction_name(j.direction)));
    std::vector<std::string> sets;
    for (const Assignment& a : j.set) {
      sets.push_back(
          fmt::format("{} = {}", key_text(model.states[static_cast<size_t>(a.state)].name), value_text(a.value)));
    }
    line(fmt::format("set = {{ {} }}", fmt::join(sets, ", ")));
  }
  for (const Section& s : model.sections) {
    line(fmt::format("\n[section.{}]", key_text(s.name)));
    switch (s.kind) {
      case Section::Kind::every: line("every = " + value_text(s.value)); break;
      case Section::Kind::on: line("on = " + value_text(s.value)); break;
      case Section::Kind::constraint:
        line("on = " + in_quotes(model.constraints[static_cast<size_t>(s.index)].name));
        break;
      case Section::Kind::jump: line("on = " + in_quotes(model.jumps[static_cast<size_t>(s.index)].name)); break;
    }
    if (s.direction != Direction::any) line(fmt::format("direction = \"{}\"", direction_name(s.direction)));
    if (s.stop) line("stop = true");
  }
  for (const PointTable& table : model.tables) write_table(table, out);
  const RunDefaults& run = model.run;
  if (run.from || run.until || run.tolerance || run.dt || run.engine) line("\n[run]");
  if (run.from) line("from = " + value_text(*run.from));
  if (run.until) line("until = " + value_text(*run.until));
  if (run.tolerance) line("tolerance = " + print_number(*run.tolerance));
  if (run.engine) line("engine = " + in_quotes(*run.engine));
  if (run.dt) line("dt = " + print_number(*run.dt));
  return out;
}

}  // namespace saltus
