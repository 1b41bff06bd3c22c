#include "model/read.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/source.hpp"
#include "expr/interpolant.hpp"
#include "model/build.hpp"
#include "model/matrix_file.hpp"
#include "model/points.hpp"
#include "model/toml_file.hpp"

namespace saltus {
namespace {

using Keys = std::vector<std::string>;

constexpr std::array<std::string_view, 3> between_names{"linear", "cubic", "step"};
constexpr std::array<std::string_view, 4> outside_names{"hold", "repeat", "zero", "error"};

/// The tables and keys of a model file, as text with places.
class Reader {
 public:
  explicit Reader(std::shared_ptr<const Source> source) : file_(std::move(source)) {}

  ModelText run() {
    ModelText text;
    const std::vector<TomlEntry> entries = file_.entries();
    for (const TomlEntry& e : entries) {
      has_name_ = has_name_ || e.key == "name";
      has_ref_ = has_ref_ || e.key == "ref";
    }
    allow(entries,
          {"name", "ref", "equations", "parameters", "initial", "labels", "constraint", "jump", "section", "table",
           "mechanics", "data", "run"},
          "the model");
    for (const TomlEntry& e : entries) {
      if (e.key == "name") text.name = plain_string(e);
      if (e.key == "ref") text.ref = plain_string(e);
      if (e.key == "equations") text.equations = formula_text(e, "equations = \"\"\" ... \"\"\"");
      if (e.key == "parameters") read_parameters(e, text);
      if (e.key == "mechanics") text.mechanics = mechanics(e);
      if (e.key == "initial") text.initial = named_values(e);
      if (e.key == "labels") text.labels = label_texts(e);
      if (e.key == "constraint") read_constraints(e, text);
      if (e.key == "jump") read_jumps(e, text);
      if (e.key == "section") read_sections(e, text);
      if (e.key == "table") read_tables(e, text);
      if (e.key == "run") read_run(e, text);
    }
    if (!text.equations.source && !text.mechanics) {
      throw Error(ErrorKind::model, "there are no equations", {.file = file_.name()},
                  "add: equations = \"\"\" followed by lines like x' = -x and a closing \"\"\"");
    }
    return text;
  }

 private:
  void allow(const std::vector<TomlEntry>& entries, const Keys& known, std::string_view where) const {
    for (const TomlEntry& e : entries) {
      if (std::find(known.begin(), known.end(), e.key) != known.end()) continue;
      misplaced(e, where);
      const std::string near = nearest_name(e.key, known);
      const bool table = file_.is_table(e) && where == "the model";
      file_.fail(e,
                 table ? fmt::format("unknown table [{}]", e.key) : fmt::format("unknown key '{}' in {}", e.key, where),
                 near.empty() ? fmt::format("known here: {}", fmt::join(known, ", "))
                              : fmt::format("did you mean '{}'?", near));
    }
  }

  void misplaced(const TomlEntry& e, std::string_view where) const {
    // [parameters] may well have a "name" or "ref" of its own.
    const bool ours = e.key == "equations" || (e.key == "name" && !has_name_) || (e.key == "ref" && !has_ref_);
    if (!ours || !file_.is_text(e)) return;
    file_.fail(e, fmt::format("'{}' stands below {}", e.key, where),
               fmt::format("move '{}' above the first [table]", e.key));
  }

  std::string plain_string(const TomlEntry& e) const {
    const auto text = file_.text(e);
    if (!text) file_.fail(e, fmt::format("'{}' must be text", e.key), fmt::format("write {} = \"...\"", e.key));
    return *text;
  }

  Fragment formula_text(const TomlEntry& e, std::string_view example) const {
    if (!file_.is_text(e)) file_.fail(e, fmt::format("'{}' must be text", e.key), fmt::format("write {}", example));
    return file_.text_fragment(e);
  }

  /// A formula given as text, or a number.
  Fragment formula(const TomlEntry& e) const {
    if (file_.is_text(e)) return file_.text_fragment(e);
    const auto value = file_.number(e);
    if (!value)
      file_.fail(e, fmt::format("'{}' must be a number or a formula", e.key),
                 fmt::format("write {} = 1.5 or {} = \"1/3\"", e.key, e.key));
    if (!std::isfinite(*value))
      file_.fail_value(e, fmt::format("'{}' is {}", e.key, not_finite(*value)), "give a finite number");
    return file_.number_fragment(e, *value);
  }

  double number(const TomlEntry& e) const {
    if (const auto value = file_.number(e); value && std::isfinite(*value)) return *value;
    file_.fail_value(e, fmt::format("'{}' must be a number", e.key), fmt::format("write {} = 1e-9", e.key));
  }

  std::vector<NamedText> named_values(const TomlEntry& e) const {
    std::vector<NamedText> out;
    for (const TomlEntry& v : file_.entries(e)) {
      misplaced(v, fmt::format("[{}]", e.key));
      out.push_back({file_.key_fragment(v), formula(v)});
    }
    return out;
  }

  void read_parameters(const TomlEntry& all, ModelText& text) const {
    for (const TomlEntry& e : file_.entries(all)) {
      misplaced(e, "[parameters]");
      if (const auto list = file_.list(e)) {
        text.arrays.push_back(array_given(e, *list));
      } else if (file_.is_table(e)) {
        text.arrays.push_back(array_of_file(e));
      } else {
        text.parameters.push_back({file_.key_fragment(e), formula(e)});
      }
    }
  }

  /// A = [1, 2] or A = [[0, 1], ["-k", 0]]
  ArrayText array_given(const TomlEntry& e, const std::vector<TomlEntry>& rows) const {
    ArrayText array{.name = file_.key_fragment(e), .shape = {.name = e.key, .rows = static_cast<int>(rows.size())}};
    if (rows.empty())
      file_.fail_value(e, fmt::format("'{}' is empty", e.key), "write A = [1, 2] or A = [[1, 2], [3, 4]]");
    array.shape.matrix = file_.list(rows[0]).has_value();
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto list = file_.list(rows[i]);
      if (list.has_value() != array.shape.matrix)
        file_.fail_value(rows[i], fmt::format("'{}' has rows and single entries", e.key),
                         "a vector is [1, 2], a matrix [[1, 2], [3, 4]]");
      const std::vector<TomlEntry> row = list.value_or(std::vector<TomlEntry>{rows[i]});
      if (i == 0) array.shape.columns = static_cast<int>(row.size());
      if (row.empty() || static_cast<int>(row.size()) != array.shape.columns)
        file_.fail_value(rows[i],
                         fmt::format("row {} of '{}' has {} entries, the first has {}", i + 1, e.key, row.size(),
                                     array.shape.columns),
                         "all rows of a matrix are equally long");
      for (size_t j = 0; j < row.size(); ++j) {
        if (file_.number(row[j]) == 0.0) continue;
        if (!file_.is_text(row[j]) && !file_.number(row[j]))
          file_.fail_value(row[j], fmt::format("an entry of '{}' is no number or formula", e.key),
                           "write numbers, or formulas in quotes: [0, \"-k/m\"]");
        TomlEntry named = row[j];
        named.key = e.key;
        array.entries.push_back({static_cast<int>(i) + 1, static_cast<int>(j) + 1, formula(named)});
      }
    }
    return array;
  }

  /// K = { file = "K.mtx" }
  ArrayText array_of_file(const TomlEntry& e) const {
    const auto entries = file_.entries(e);
    allow(entries, {"file"}, fmt::format("the parameter '{}'", e.key));
    if (entries.empty())
      file_.fail(e, fmt::format("'{}' has no file", e.key), fmt::format("write {} = {{ file = \"K.mtx\" }}", e.key));
    const TomlEntry& file = entries[0];
    const std::string given = plain_string(file);
    if (given.empty() || given.find('\0') != given.npos)
      file_.fail_value(file, "this is no name of a file", "write file = \"K.mtx\"");
    std::error_code ignored;
    const std::filesystem::path folder = std::filesystem::path(file_.name()).parent_path();
    ArrayText array{.name = file_.key_fragment(e), .shape = {.name = e.key}};
    array.shape.file = std::filesystem::absolute(folder / given, ignored).lexically_normal().string();
    const Fragment text = file_.text_fragment(file);
    const MatrixOfFile matrix = read_matrix(array.shape.file, text.place(0, text.text.size()));
    array.shape.matrix = matrix.columns > 1 && matrix.rows > 1;
    array.shape.rows = array.shape.matrix ? matrix.rows : std::max(matrix.rows, matrix.columns);
    array.shape.columns = array.shape.matrix ? matrix.columns : 1;
    for (const MatrixEntry& m : matrix.entries) {
      const int row = array.shape.matrix ? m.row : std::max(m.row, m.column),
                column = array.shape.matrix ? m.column : 1;
      array.entries.push_back({row, column, file_.number_fragment(file, m.value)});
    }
    return array;
  }

  MechanicsText mechanics(const TomlEntry& all) const {
    const auto entries = file_.entries(all);
    allow(entries, {"lagrangian", "forces", "dissipation"}, "[mechanics]");
    MechanicsText text;
    for (const TomlEntry& e : entries) {
      if (e.key == "lagrangian") text.lagrangian = formula_text(e, "lagrangian = \"m*x'^2/2 - m*g*x\"");
      if (e.key == "dissipation") text.dissipation = formula_text(e, "dissipation = \"c*x'^2/2\"");
      if (e.key == "forces") {
        if (!file_.is_table(e)) file_.fail(e, "'forces' must be a table", "write forces = { x = \"F*sin(t)\" }");
        text.forces = named_values(e);
      }
    }
    if (!text.lagrangian.source)
      file_.fail(all, "[mechanics] has no lagrangian",
                 "add lagrangian = \"m*x'^2/2 - k*x^2/2\": kinetic minus potential energy");
    return text;
  }

  Fragment index_range(const TomlEntry& e) const { return formula_text(e, "for = \"i = 1..N\""); }

  std::vector<NamedText> label_texts(const TomlEntry& e) const {
    std::vector<NamedText> out;
    for (const TomlEntry& v : file_.entries(e))
      out.push_back({file_.key_fragment(v), formula_text(v, fmt::format("{} = \"displacement (m)\"", v.key))});
    return out;
  }

  Direction direction(const TomlEntry& e) const {
    const std::string text = plain_string(e);
    if (text == "rising") return Direction::rising;
    if (text == "falling") return Direction::falling;
    if (text == "any") return Direction::any;
    file_.fail_value(e, fmt::format("unknown direction '{}'", text),
                     "a direction is \"rising\", \"falling\" or \"any\"");
  }

  bool truth(const TomlEntry& e) const {
    const auto value = file_.truth(e);
    if (!value)
      file_.fail_value(e, fmt::format("'{}' must be true or false", e.key), fmt::format("write {} = true", e.key));
    return *value;
  }

  /// The named tables below [constraint], [jump], [section] or [table].
  std::vector<TomlEntry> named_tables(const TomlEntry& all, const std::string& remedy) const {
    const auto check = [&](const TomlEntry& e) {
      if (!file_.is_table(e)) file_.fail(e, fmt::format("a {} needs a name", all.key), remedy);
    };
    check(all);
    std::vector<TomlEntry> out = file_.entries(all);
    for (const TomlEntry& e : out) check(e);
    return out;
  }

  void read_constraints(const TomlEntry& all, ModelText& text) const {
    for (const TomlEntry& c : named_tables(all, "write [constraint.N] with gap or equals = \"...\" below it")) {
      const std::string where = fmt::format("[constraint.{}]", c.key);
      std::optional<Fragment> gap, equals, restitution, range;
      const auto entries = file_.entries(c);
      allow(entries, {"gap", "equals", "restitution", "restitution_tangential", "friction", "slip", "for"}, where);
      std::optional<Fragment> friction, tangential;
      std::vector<Fragment> slip;
      const TomlEntry *of_friction = nullptr, *of_slip = nullptr;
      for (const TomlEntry& e : entries) {
        if (e.key == "gap") gap = formula(e);
        if (e.key == "equals") equals = formula(e);
        if (e.key == "restitution") restitution = formula(e);
        if (e.key == "restitution_tangential") tangential = formula(e), of_friction = &e;
        if (e.key == "friction") friction = formula(e), of_friction = &e;
        if (e.key == "slip") slip = slips(e), of_slip = &e;
        if (e.key == "for") range = index_range(e);
        if (gap && equals)
          file_.fail(e, fmt::format("the constraint '{}' has a gap and equals", c.key),
                     "a contact has a gap that may open, a joint equals zero: keep one of the two");
        if (equals && restitution)
          file_.fail(e, fmt::format("the joint '{}' cannot have a restitution", c.key),
                     "remove the line: only contacts, which have a gap, rebound");
      }
      if (!gap && !equals)
        file_.fail(c, fmt::format("the constraint '{}' has no gap", c.key),
                   fmt::format("add gap = \"...\" below {}, or equals = \"...\" for a joint", where));
      if (friction.has_value() != !slip.empty() || (tangential && !friction))
        file_.fail(
            of_slip ? *of_slip : *of_friction, fmt::format("friction of '{}' is given in part", c.key),
            "friction = \"mu\" and slip = \"x'\" belong together: Coulomb's coefficient and the tangential velocity");
      text.constraints.push_back({file_.key_fragment(c), gap ? *gap : *equals, !gap, restitution, range, friction,
                                  tangential, std::move(slip)});
    }
  }

  /// One tangential velocity, or two.
  std::vector<Fragment> slips(const TomlEntry& e) const {
    const auto list = file_.list(e);
    if (!list) return {formula_text(e, "slip = \"x' - V\"")};
    std::vector<Fragment> out;
    for (const TomlEntry& item : *list) {
      if (file_.is_text(item)) out.push_back(file_.text_fragment(item));
    }
    if (out.size() != list->size() || out.empty() || out.size() > 2)
      file_.fail_value(e, "'slip' is one velocity or two", "write slip = \"x'\" or slip = [\"x'\", \"y'\"]");
    return out;
  }

  void read_jumps(const TomlEntry& all, ModelText& text) const {
    for (const TomlEntry& j : named_tables(all, "write [jump.NAME] with on = \"...\" and set = { ... } below it")) {
      const std::string where = fmt::format("[jump.{}]", j.key);
      JumpText jump{.name = file_.key_fragment(j)};
      const auto entries = file_.entries(j);
      allow(entries, {"on", "every", "phase", "direction", "when", "level", "set", "for"}, where);
      bool sets = false;
      for (const TomlEntry& e : entries) {
        if (e.key == "on") jump.on = formula(e);
        if (e.key == "every") jump.every = formula(e);
        if (e.key == "for") jump.range = index_range(e);
        if (e.key == "phase") jump.phase = formula(e);
        if (e.key == "when") jump.when = formula_text(e, "when = \"s > 0.5\"");
        if (e.key == "direction") jump.direction = direction(e);
        if (e.key == "level") jump.level = truth(e);
        if (e.key == "set") {
          sets = true;
          if (!file_.is_table(e)) file_.fail(e, "'set' must be a table", "write set = { v = \"-0.8*v\" }");
          jump.set = named_values(e);
        }
      }
      if (!jump.on && !jump.every)
        file_.fail(
            j, fmt::format("the jump '{}' has neither 'on' nor 'every'", j.key),
            fmt::format("add on = \"...\" below {}: it jumps when this crosses zero; every = 1 jumps by the clock",
                        where));
      for (const TomlEntry& e : entries) {
        if (e.key == "every" && jump.on)
          file_.fail(e, fmt::format("the jump '{}' has both 'on' and 'every'", j.key), "make two jumps of it");
        if (e.key == "phase" && !jump.every)
          file_.fail(e, "'phase' belongs to a clock", "remove it, or use every = ... instead of on");
        if (e.key == "direction" && !jump.on)
          file_.fail(e, "'direction' belongs to 'on'", "remove it: a clock has no direction");
        if (e.key == "level" && jump.level && !jump.on)
          file_.fail(e, "'level' belongs to 'on'", "remove it: a clock has no level");
        if (e.key == "level" && jump.level && jump.on && jump.direction == Direction::any)
          file_.fail(e, "'level' needs a direction", "add direction = \"rising\": it then happens where on > 0");
      }
      if (!sets)
        file_.fail(j, fmt::format("the jump '{}' has no 'set'", j.key),
                   fmt::format("add set = {{ v = \"...\" }} below {}", where));
      text.jumps.push_back(std::move(jump));
    }
  }

  void read_sections(const TomlEntry& all, ModelText& text) const {
    for (const TomlEntry& s : named_tables(all, "write [section.NAME] with every = ... or on = \"...\" below it")) {
      const std::string where = fmt::format("[section.{}]", s.key);
      SectionText section{.name = file_.key_fragment(s)};
      const auto entries = file_.entries(s);
      allow(entries, {"every", "on", "direction", "stop", "for"}, where);
      for (const TomlEntry& e : entries) {
        if (e.key == "every") section.every = formula(e);
        if (e.key == "on") section.on = formula(e);
        if (e.key == "direction") section.direction = direction(e);
        if (e.key == "stop") section.stop = truth(e);
        if (e.key == "for") section.range = index_range(e);
      }
      if (section.every.has_value() == section.on.has_value()) {
        file_.fail(s, fmt::format("the section '{}' needs either 'every' or 'on'", s.key),
                   "every = \"2*pi/omega\" looks at fixed intervals, on = \"x\" when x crosses zero");
      }
      text.sections.push_back(std::move(section));
    }
  }

  void read_tables(const TomlEntry& all, ModelText& text) const {
    for (const TomlEntry& t :
         named_tables(all, "write [table.NAME] with file = \"...\" or points = [[0, 0], [1, 0.2]] below it")) {
      const std::string where = fmt::format("[table.{}]", t.key);
      PointTable table{.name = t.key, .curve = {}};
      const auto entries = file_.entries(t);
      allow(entries, {"file", "points", "columns", "between", "outside"}, where);
      Between between = Between::linear;
      Outside outside = Outside::error;
      const TomlEntry *file = nullptr, *points = nullptr, *columns = nullptr;
      for (const TomlEntry& e : entries) {
        if (e.key == "file") file = &e;
        if (e.key == "points") points = &e;
        if (e.key == "columns") columns = &e;
        if (e.key == "between") between = one_of<Between>(e, between_names);
        if (e.key == "outside") outside = one_of<Outside>(e, outside_names);
      }
      if ((file == nullptr) == (points == nullptr))
        file_.fail(t, fmt::format("the table '{}' needs either 'file' or 'points'", t.key),
                   "file = \"road.csv\" reads rows of numbers, points = [[0, 0], [1, 0.2]] gives them here");
      if (columns && !file)
        file_.fail(*columns, "'columns' belong to a file", "remove the line: points have two numbers each");
      if (columns) table.columns = column_names(*columns);
      PointColumns values = file ? points_of_file(*file, table) : points_given(*points);
      table.checksum = values.checksum;
      table.curve = std::make_shared<const Interpolant>(std::move(values.x), std::move(values.y), between, outside);
      if (!table.curve->finite())
        file_.fail_value(file ? *file : *points, "these points are too close together, or too far apart, for numbers",
                         "leave out points that lie within rounding of each other");
      text.tables.push_back({file_.key_fragment(t), std::move(table)});
    }
  }

  template <class T, size_t n>
  T one_of(const TomlEntry& e, const std::array<std::string_view, n>& known) const {
    const std::string text = plain_string(e);
    const auto found = std::find(known.begin(), known.end(), text);
    if (found == known.end())
      file_.fail_value(e, fmt::format("unknown choice '{}' for '{}'", text, e.key),
                       fmt::format("known: {}", fmt::join(known, ", ")));
    return static_cast<T>(found - known.begin());
  }

  std::vector<std::string> column_names(const TomlEntry& e) const {
    std::vector<std::string> out;
    const auto list = file_.list(e).value_or(std::vector<TomlEntry>{});
    for (const TomlEntry& item : list) {
      if (const auto name = file_.text(item); name && !name->empty()) out.push_back(*name);
      if (const auto place = file_.whole(item); place && *place > 0 && *place < 1'000'000)
        out.push_back(fmt::format("{}", *place));
    }
    if (list.size() != 2 || out.size() != 2)
      file_.fail_value(e, "'columns' are two names or positions",
                       "write columns = [\"x\", \"height\"] or columns = [1, 3]");
    return out;
  }

  PointColumns points_of_file(const TomlEntry& e, PointTable& table) const {
    const std::string given = plain_string(e);
    if (given.empty() || given.find('\0') != given.npos)
      file_.fail_value(e, "this is no name of a file", "write file = \"road.csv\"");
    std::error_code ignored;
    const std::filesystem::path folder = std::filesystem::path(file_.name()).parent_path();
    table.file = std::filesystem::absolute(folder / given, ignored).lexically_normal().string();
    const Fragment text = file_.text_fragment(e);
    return read_points(table.file, table.columns, text.place(0, text.text.size()));
  }

  PointColumns points_given(const TomlEntry& e) const {
    PointColumns out;
    const auto rows = file_.list(e);
    if (!rows) file_.fail_value(e, "'points' must be a list of pairs", "write points = [[0, 0], [1, 0.2]]");
    for (const TomlEntry& row : *rows) {
      const auto pair = file_.list(row);
      if (!pair || pair->size() != 2)
        file_.fail_value(row, "a point is a pair of numbers", "write points = [[0, 0], [1, 0.2]]");
      for (const size_t i : {0u, 1u}) {
        const auto value = file_.number((*pair)[i]);
        if (!value || !std::isfinite(*value))
          file_.fail_value((*pair)[i], "this is not a finite number", "write numbers as 0.5 or 1e-3");
        (i == 0 ? out.x : out.y).push_back(*value);
      }
    }
    if (const PointTrouble trouble = check_points(out.x, out.y); !trouble.message.empty())
      file_.fail_value(rows->empty() ? e : (*rows)[trouble.at], trouble.message, trouble.hint);
    return out;
  }

  void read_run(const TomlEntry& all, ModelText& text) const {
    const auto entries = file_.entries(all);
    allow(entries, {"from", "until", "tolerance", "engine", "dt"}, "[run]");
    for (const TomlEntry& e : entries) {
      if (e.key == "from") text.from = formula(e);
      if (e.key == "until") text.until = formula(e);
      if (e.key == "tolerance") {
        text.tolerance = number(e);
        if (!(*text.tolerance >= 1e-15 && *text.tolerance <= 0.1))
          file_.fail_value(e, "the tolerance is out of range", "a tolerance lies between 1e-15 and 0.1");
      }
      if (e.key == "dt") {
        text.dt = number(e);
        if (!(*text.dt > 0)) file_.fail_value(e, "the step is not positive", "give dt > 0");
      }
      if (e.key == "engine") {
        text.engine = plain_string(e);
        if (*text.engine != "event" && *text.engine != "step")
          file_.fail_value(e, fmt::format("unknown engine '{}'", *text.engine), "engines: \"event\", \"step\"");
      }
    }
  }

  TomlFile file_;
  bool has_name_ = false, has_ref_ = false;
};

void check_text(const Source& source) {
  const std::string& raw = source.text();
  if (raw.find('\0') != std::string::npos) {
    throw Error(ErrorKind::model, "this is not a text file", {.file = source.file()},
                "a model file is text: see `examples`");
  }
  if (std::all_of(raw.begin(), raw.end(), [](char c) { return std::isspace(static_cast<unsigned char>(c)); })) {
    throw Error(ErrorKind::model, "the file is empty", {.file = source.file()}, "`examples` has models to start from");
  }
}

constexpr uintmax_t largest_model = 256u << 20;

[[noreturn]] void too_large(const std::string& path, uintmax_t size) {
  throw Error(ErrorKind::file, fmt::format("'{}' has {} MB", path, size >> 20), {}, "a model file has at most 256 MB");
}

}  // namespace

std::string_view between_name(const Interpolant& curve) { return between_names[static_cast<size_t>(curve.between())]; }
std::string_view outside_name(const Interpolant& curve) { return outside_names[static_cast<size_t>(curve.outside())]; }

Model read_model_text(std::string_view text, std::string_view name, const Replacements& parameters) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte-order mark is no character of the first line
  const auto source = std::make_shared<Source>(std::string(name), std::string(text));
  check_text(*source);
  ModelText model = Reader(source).run();
  for (NamedText& p : model.parameters) {
    for (const auto& [changed, value] : parameters) {
      if (p.name.text == changed) p.value = whole_text("-p " + changed, value);
    }
  }
  for (ArrayText& array : model.arrays) {
    for (ArrayText::Entry& e : array.entries) {
      for (const auto& [changed, value] : parameters) {
        if (entry_name(array, e) == changed) e.value = whole_text("-p " + changed, value);
      }
    }
  }
  return build_model(model);
}

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
  if (!problem && size > largest_model) too_large(path, size);
  return read_model_text(read_all(file, path), path, parameters);
}

std::string read_all(std::istream& in, const std::string& name) {
  std::string content;
  std::vector<char> block(1u << 16);
  errno = 0;
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())), in.gcount() > 0) {
    content.append(block.data(), static_cast<size_t>(in.gcount()));
    if (content.size() > largest_model) too_large(name, content.size());  // a pipe does not say its size
  }
  if (in.bad())
    throw Error(ErrorKind::file, fmt::format("cannot read '{}': {}", name, std::generic_category().message(errno)), {},
                "give the name of a model file");
  return content;
}

}  // namespace saltus
