// A model as a file that reads to the same model.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "expr/interpolant.hpp"
#include "expr/print.hpp"
#include "model/build.hpp"
#include "model/read.hpp"

namespace saltus {
namespace {

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
  const bool bare = std::all_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x80 && c != '[' && c != ']' && c != '\'';
  });
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

void write_equations(const Model& model, std::string& out) {
  const auto line = [&](const std::string& text) { out += text + "\n"; };
  line("\nequations = \"\"\"");
  for (const auto& [kind, i] : model.order) {
    const size_t k = static_cast<size_t>(i);
    switch (kind) {
      case WrittenLine::rate: line(fmt::format("  {}' = {}", model.states[k].name, print(model.states[k].rate))); break;
      case WrittenLine::name:
        line(fmt::format("  {} = {}", model.definitions[k].name, print(model.definitions[k].value)));
        break;
      case WrittenLine::balance:
        line(fmt::format("  {} = {}", print(model.balances[k].left), print(model.balances[k].right)));
        break;
    }
  }
  line("\"\"\"");
}

/// A vector or a matrix: its file, or its rows.
void write_array(const ParameterArray& array, const std::unordered_map<std::string, std::string>& entries,
                 std::string& out) {
  if (!array.file.empty()) {
    out += fmt::format("{} = {{ file = {} }}\n", key_text(array.name), in_quotes(array.file));
    return;
  }
  std::vector<std::string> rows;
  for (int i = 1; i <= array.rows; ++i) {
    std::vector<std::string> row;
    for (int j = 1; j <= array.columns; ++j) {
      const auto found = entries.find(entry_name(array, i, j));
      row.push_back(found == entries.end() ? "0" : found->second);
    }
    const std::string text = fmt::format("{}", fmt::join(row, ", "));
    rows.push_back(array.matrix ? "[" + text + "]" : text);
  }
  out += fmt::format("{} = [{}]\n", key_text(array.name), fmt::join(rows, ", "));
}

void write_parameters(const Model& model, std::string& out) {
  if (!model.parameters.empty() || !model.arrays.empty()) out += "\n[parameters]\n";
  std::unordered_map<std::string, std::string> entries;
  for (const Parameter& p : model.parameters) {
    if (p.name.ends_with(']')) {
      entries.emplace(p.name, value_text(p.value));
    } else {
      out += fmt::format("{} = {}\n", key_text(p.name), value_text(p.value));
    }
  }
  for (const ParameterArray& array : model.arrays) write_array(array, entries, out);
}

void write_mechanics(const Model& model, std::string& out) {
  const Mechanics& m = *model.mechanics;
  out += fmt::format("\n[mechanics]\nlagrangian = {}\n", in_quotes(print(m.lagrangian)));
  std::vector<std::string> forces;
  for (const Assignment& a : m.forces)
    forces.push_back(
        fmt::format("{} = {}", key_text(model.states[static_cast<size_t>(a.state)].name), value_text(a.value)));
  if (!forces.empty()) out += fmt::format("forces = {{ {} }}\n", fmt::join(forces, ", "));
  if (m.dissipation) out += fmt::format("dissipation = {}\n", in_quotes(print(*m.dissipation)));
}

void write_jump(const Model& model, const Jump& j, std::string& out) {
  const auto line = [&](const std::string& text) { out += text + "\n"; };
  line(fmt::format("\n[jump.{}]\n{} = {}", key_text(j.name), j.every ? "every" : "on",
                   value_text(j.every ? *j.every : j.on)));
  if (j.phase) line("phase = " + value_text(*j.phase));
  if (j.when) line("when = " + in_quotes(print(*j.when)));
  if (j.direction != Direction::any) line(fmt::format("direction = \"{}\"", direction_name(j.direction)));
  if (j.level) line("level = true");
  std::vector<std::string> sets;
  for (const Assignment& a : j.set) {
    sets.push_back(
        fmt::format("{} = {}", key_text(model.states[static_cast<size_t>(a.state)].name), value_text(a.value)));
  }
  line(fmt::format("set = {{ {} }}", fmt::join(sets, ", ")));
}

void write_section(const Model& model, const Section& s, std::string& out) {
  const auto line = [&](const std::string& text) { out += text + "\n"; };
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

void write_run(const RunDefaults& run, std::string& out) {
  const auto line = [&](const std::string& text) { out += text + "\n"; };
  if (run.from || run.until || run.tolerance || run.dt || run.engine) line("\n[run]");
  if (run.from) line("from = " + value_text(*run.from));
  if (run.until) line("until = " + value_text(*run.until));
  if (run.tolerance) line("tolerance = " + print_number(*run.tolerance));
  if (run.engine) line("engine = " + in_quotes(*run.engine));
  if (run.dt) line("dt = " + print_number(*run.dt));
}

}  // namespace

std::string write_model(const Model& model) {
  std::string out;
  const auto line = [&](const std::string& text) { out += text + "\n"; };
  if (!model.name.empty()) line("name = " + in_quotes(model.name));
  if (!model.ref.empty()) line("ref = " + in_quotes(model.ref));
  write_equations(model, out);
  if (model.mechanics) write_mechanics(model, out);
  write_parameters(model, out);
  line("\n[initial]");
  for (const State& s : model.states) line(fmt::format("{} = {}", key_text(s.name), value_text(s.initial)));
  if (!model.labels.empty()) line("\n[labels]");
  for (const Label& label : model.labels) line(fmt::format("{} = {}", key_text(label.name), in_quotes(label.text)));
  for (const Constraint& c : model.constraints) {
    line(fmt::format("\n[constraint.{}]\n{} = {}", key_text(c.name), c.joint ? "equals" : "gap", value_text(c.gap)));
    if (c.restitution) line("restitution = " + value_text(*c.restitution));
    if (c.friction) line("friction = " + value_text(*c.friction));
    if (c.slip.size() == 1) line("slip = " + in_quotes(print(c.slip[0])));
    if (c.slip.size() == 2)
      line(fmt::format("slip = [{}, {}]", in_quotes(print(c.slip[0])), in_quotes(print(c.slip[1]))));
    if (c.tangential) line("restitution_tangential = " + value_text(*c.tangential));
  }
  for (const Jump& j : model.jumps) write_jump(model, j, out);
  for (const Section& s : model.sections) write_section(model, s, out);
  for (const PointTable& table : model.tables) write_table(table, out);
  write_run(model.run, out);
  return out;
}

}  // namespace saltus
