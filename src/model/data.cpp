#include "model/data.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "expr/print.hpp"
#include "model/points.hpp"
#include "model/toml_file.hpp"

namespace saltus {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

/// Reads the tables [data.NAME] of one file.
class DataReader {
 public:
  DataReader(const std::string& text, const std::string& name)
      : file_(std::make_shared<Source>(name, text)), folder_(std::filesystem::path(name).parent_path()) {}

  std::vector<DataTable> run() {
    std::vector<DataTable> out;
    for (const TomlEntry& e : file_.entries()) {
      if (e.key != "data") continue;
      for (const TomlEntry& t : file_.entries(e)) {
        if (!file_.is_table(t))
          file_.fail(t, "an experiment needs a name", "write [data.test1] with file = \"..\" below it");
        out.push_back(read(t));
      }
    }
    return out;
  }

 private:
  Place place_of(const TomlEntry& e) const { return file_.key_fragment(e).place(0, e.key.size()); }

  std::string text(const TomlEntry& e) const {
    if (const auto t = file_.text(e)) return *t;
    if (const auto k = file_.whole(e)) return fmt::format("{}", *k);  // the number of a column
    file_.fail_value(e, fmt::format("'{}' must be text", e.key), fmt::format("write {} = \"...\"", e.key));
  }

  /// A number or a text.
  std::string value(const TomlEntry& e) const {
    if (const auto t = file_.text(e)) return *t;
    if (const auto v = file_.number(e); v && std::isfinite(*v)) return print_number(*v);
    file_.fail_value(e, "this is neither a number nor a text", "write 0.01, or the name of a column");
  }

  DataTable read(const TomlEntry& t) {
    DataTable table{.name = t.key, .place = place_of(t)};
    const TomlEntry *file = nullptr, *given = nullptr, *of = nullptr, *sigma = nullptr;
    bool has_time = false;
    const std::vector<TomlEntry> entries = file_.entries(t);
    const std::vector<std::string> known{"file", "points", "time", "of", "sigma", "with", "events"};
    for (const TomlEntry& e : entries) {
      if (std::find(known.begin(), known.end(), e.key) == known.end())
        file_.fail(e, fmt::format("unknown key '{}' in [data.{}]", e.key, t.key),
                   fmt::format("known here: {}", fmt::join(known, ", ")));
      if (e.key == "file") file = &e;
      if (e.key == "points") given = &e;
      if (e.key == "of") of = &e;
      if (e.key == "sigma") sigma = &e;
      if (e.key == "time") table.time = text(e), has_time = true;
      if (e.key == "with") {
        for (const TomlEntry& w : file_.entries(e)) table.with.emplace_back(w.key, value(w));
      }
      if (e.key == "events") read_events(e, table);
    }
    if ((file == nullptr) == (given == nullptr))
      file_.fail(t, fmt::format("the experiment '{}' needs either 'file' or 'points'", t.key),
                 "file = \"test.csv\" names a file, points = [[0, 1.5], [1, 0.2]] gives rows here");
    if ((of == nullptr) == !table.events)
      file_.fail(t, fmt::format("the experiment '{}' needs either 'of' or 'events'", t.key),
                 "of = { y = \"position\" } are quantities, events = { on = \"v\", kind = \"slide\" } times of events");
    if (given && !has_time) table.time = "1";
    if (of) {
      for (const TomlEntry& e : file_.entries(*of)) table.series.push_back({e.key, text(e), {}, {}, {}, place_of(e)});
    }
    if (sigma) read_sigma(*sigma, table);
    fill(table, file, given);
    return table;
  }

  void read_events(const TomlEntry& e, DataTable& table) const {
    table.events.emplace();
    for (const TomlEntry& k : file_.entries(e)) {
      if (k.key == "on")
        table.events->on = text(k);
      else if (k.key == "kind")
        table.events->kind = text(k);
      else
        file_.fail(k, fmt::format("unknown key '{}' in 'events'", k.key), "known here: on, kind");
    }
  }

  void read_sigma(const TomlEntry& e, DataTable& table) const {
    if (!file_.is_table(e)) {  // one for all
      for (DataSeries& s : table.series) s.sigma_text = value(e);
      if (table.events) table.event_sigma_text = value(e);
      return;
    }
    for (const TomlEntry& s : file_.entries(e)) {
      const auto found = std::find_if(table.series.begin(), table.series.end(),
                                      [&](const DataSeries& of) { return of.quantity == s.key; });
      if (found != table.series.end())
        found->sigma_text = value(s);
      else if (table.events && (s.key == table.time || s.key == "t"))
        table.event_sigma_text = value(s);
      else
        file_.fail(s, fmt::format("'{}' is not measured in this experiment", s.key), "sigma names what 'of' names");
    }
  }

  static std::optional<double> as_number(const std::string& text) {
    try {
      size_t used = 0;
      const double v = std::stod(text, &used);
      if (used == text.size()) return v;
    } catch (const std::exception&) {
    }
    return std::nullopt;
  }

  void fill(DataTable& table, const TomlEntry* file, const TomlEntry* given) {
    std::vector<std::string> columns{table.time};
    std::vector<std::vector<double>*> to{&table.times};
    const auto want = [&](const std::string& column, std::vector<double>& values) {
      columns.push_back(column);
      to.push_back(&values);
    };
    for (DataSeries& s : table.series) want(s.column, s.values);
    for (DataSeries& s : table.series) {
      if (!s.sigma_text.empty() && !as_number(s.sigma_text)) want(s.sigma_text, s.sigma);
    }
    if (!table.event_sigma_text.empty() && !as_number(table.event_sigma_text))
      want(table.event_sigma_text, table.event_sigma);
    DataColumns read = file ? of_file(*file, table, columns) : of_points(*given, table, columns);
    for (size_t c = 0; c < to.size(); ++c) *to[c] = std::move(read.columns[c]);
    check(table, read.places);
  }

  DataColumns of_file(const TomlEntry& e, DataTable& table, const std::vector<std::string>& columns) {
    const std::string given = text(e);
    std::error_code ignored;
    table.file = std::filesystem::absolute(folder_ / given, ignored).lexically_normal().string();
    const Fragment where = file_.text_fragment(e);
    DataColumns out = read_columns(table.file, columns, where.place(0, where.text.size()));
    table.checksum = out.checksum;
    return out;
  }

  DataColumns of_points(const TomlEntry& e, DataTable& table, const std::vector<std::string>& columns) {
    DataColumns out{.columns = std::vector<std::vector<double>>(columns.size())};
    const auto rows = file_.list(e);
    if (!rows) file_.fail_value(e, "'points' must be a list of rows", "write points = [[0, 1.5], [1, 0.2]]");
    for (const TomlEntry& row : *rows) {
      const auto cells = file_.list(row);
      if (!cells) file_.fail_value(row, "a row is a list of numbers", "write points = [[0, 1.5], [1, 0.2]]");
      std::vector<double> values;
      for (const TomlEntry& cell : *cells) {
        const auto v = file_.number(cell);
        if (!v || !std::isfinite(*v))
          file_.fail_value(cell, "this is not a finite number", "leave the row out, or give a number");
        values.push_back(*v);
      }
      for (size_t c = 0; c < columns.size(); ++c) {
        const auto k = as_number(columns[c]);
        if (!k || !(*k >= 1) || *k > static_cast<double>(values.size()))
          file_.fail_value(row, fmt::format("there is no column '{}' among {}", columns[c], values.size()),
                           "columns of points have numbers, from 1");
        out.columns[c].push_back(values[static_cast<size_t>(*k) - 1]);
      }
      out.places.push_back(table.place);
      table.points.push_back(std::move(values));
    }
    return out;
  }

  void check(DataTable& table, const std::vector<Place>& places) const {
    const auto fail = [&](size_t row, std::string message, std::string hint) {
      throw Error(ErrorKind::model, std::move(message), row < places.size() ? places[row] : table.place,
                  std::move(hint));
    };
    const size_t rows = table.times.size();
    if (rows == 0) fail(0, fmt::format("the experiment '{}' has no data", table.name), "give rows of numbers");
    for (size_t i = 0; i < rows; ++i) {
      if (std::isnan(table.times[i])) fail(i, "this row has no time", "leave the row out, or give its time");
      if (i > 0 && table.times[i] < table.times[i - 1])
        fail(i, fmt::format("the time {} follows {}", print_number(table.times[i]), print_number(table.times[i - 1])),
             "sort the rows by time");
    }
    const auto spread = [&](const std::string& text, std::vector<double>& sigma) {
      if (text.empty()) return;
      if (const auto one = as_number(text)) sigma.assign(rows, *one);
      for (size_t i = 0; i < rows; ++i) {
        if (!(sigma[i] > 0) || !std::isfinite(sigma[i]))
          fail(i, fmt::format("the sigma {} is no standard deviation", print_number(sigma[i])),
               "give a positive number");
      }
    };
    for (DataSeries& s : table.series) spread(s.sigma_text, s.sigma);
    spread(table.event_sigma_text, table.event_sigma);
  }

  TomlFile file_;
  std::filesystem::path folder_;
};

std::string key_of(const std::string& name) { return quoted(name); }

}  // namespace

std::vector<DataTable> read_data(const std::string& text, const std::string& name) {
  return DataReader(text, name).run();
}

std::string write_data(const std::vector<DataTable>& data) {
  std::string out;
  const auto value = [](const std::string& text) { return quoted(text); };
  for (const DataTable& d : data) {
    out += fmt::format("\n[data.{}]\n", key_of(d.name));
    if (!d.file.empty()) {
      out += fmt::format("file = {}\n", quoted(d.file));
    } else {
      std::vector<std::string> rows;
      for (const std::vector<double>& row : d.points) {
        std::vector<std::string> cells;
        for (const double v : row) cells.push_back(print_number(v));
        rows.push_back(fmt::format("[{}]", fmt::join(cells, ", ")));
      }
      out += fmt::format("points = [{}]\n", fmt::join(rows, ", "));
    }
    out += fmt::format("time = {}\n", quoted(d.time));
    std::vector<std::string> of, sigma, with;
    for (const DataSeries& s : d.series) {
      of.push_back(fmt::format("{} = {}", key_of(s.quantity), quoted(s.column)));
      if (!s.sigma_text.empty()) sigma.push_back(fmt::format("{} = {}", key_of(s.quantity), value(s.sigma_text)));
    }
    if (!d.event_sigma_text.empty()) sigma.push_back(fmt::format("t = {}", value(d.event_sigma_text)));
    for (const auto& [name, text] : d.with) with.push_back(fmt::format("{} = {}", key_of(name), value(text)));
    if (!of.empty()) out += fmt::format("of = {{ {} }}\n", fmt::join(of, ", "));
    if (!sigma.empty()) out += fmt::format("sigma = {{ {} }}\n", fmt::join(sigma, ", "));
    if (!with.empty()) out += fmt::format("with = {{ {} }}\n", fmt::join(with, ", "));
    if (d.events)
      out += fmt::format("events = {{ on = {}, kind = {} }}\n", quoted(d.events->on), quoted(d.events->kind));
  }
  return out;
}

}  // namespace saltus
