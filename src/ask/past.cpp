#include "ask/past.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>
#ifndef TOML_HEADER_ONLY
#define TOML_HEADER_ONLY 0  // the library has what is compiled; wheels bring it along
#endif
#include <toml++/toml.h>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "expr/print.hpp"
#include "out/json.hpp"
#include "out/write.hpp"

namespace saltus {
namespace {

/// A TOML string. What is quoted for JSON is quoted for TOML; a text of several lines stays readable if it can.
std::string toml_text(const std::string& text) {
  const bool lines = text.find('\n') != text.npos;
  if (!lines || text.find("'''") != text.npos || text.ends_with('\'')) return json_string(text);
  return "'''\n" + text + "'''";
}

std::string toml_values(const std::vector<std::string>& values) {
  if (values.empty()) return "true";
  if (values.size() == 1) return toml_text(values[0]);
  std::vector<std::string> quoted;
  for (const std::string& v : values) quoted.push_back(toml_text(v));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

std::string read_text(const std::filesystem::path& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  if (!in.is_open() || in.bad()) throw file_error(path, errno == 0 ? EIO : errno, "read");
  return text;
}

/// {y = 1, v = 2}
std::string toml_state(const Past::Start& start) {
  std::vector<std::string> state;
  for (const auto& [name, value] : start.state) state.push_back(fmt::format("{} = {:.17g}", json_string(name), value));
  return fmt::format("{{{}}}", fmt::join(state, ", "));
}

std::string toml_numbers(const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double v : values) texts.push_back(fmt::format("{:.17g}", v));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

[[noreturn]] void damaged(const std::filesystem::path& path, const std::string& what) {
  throw Error(ErrorKind::model, fmt::format("{}: this run.toml is damaged: {}", path.string(), what), {},
              "take a run.toml as saltus wrote it");
}

}  // namespace

std::vector<Past::Option> recorded(const Solve& solve, const RunOptions& options) {
  return resolved(solve, options).texts();
}

std::string write_past(const Past& past) {
  std::string out = "# Everything that made this result; 'saltus again run.toml' repeats it.\n";
  out += fmt::format("saltus = {}\ncommand = {}\nname = {}\n\nmodel = {}\n", json_string(past.version),
                     json_string(past.command), json_string(past.name), toml_text(past.model));
  if (!past.files.empty()) out += "\n[files]\n";
  for (const auto& [path, sum] : past.files) out += fmt::format("{} = {}\n", json_string(path), json_string(sum));
  out += "\n[options]\n";
  for (const auto& [option, values] : past.options) out += fmt::format("{} = {}\n", option, toml_values(values));
  if (past.start) {
    std::vector<std::string> signature;
    for (const std::string& mode : past.start->signature) signature.push_back(json_string(mode));
    out += fmt::format("\n[orbit]\nt = {:.17g}\nperiod = {:.17g}\nmode = {}\nstate = {}\nsignature = [{}]\n",
                       past.start->t, past.start->period, json_string(past.start->mode), toml_state(*past.start),
                       fmt::join(signature, ", "));
  }
  for (const Past::Special& s : past.special) {
    out += fmt::format("\n[special.{}]\ntype = {}\nvalues = {}\nt = {:.17g}\nperiod = {:.17g}\nstate = {}\n", s.label,
                       json_string(s.type), toml_numbers(s.values), s.at.t, s.at.period, toml_state(s.at));
    out += fmt::format("near = {{values = {}, t = {:.17g}, period = {:.17g}, state = {}}}\n",
                       toml_numbers(s.near_values), s.near.t, s.near.period, toml_state(s.near));
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> table_files(const Model& model) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const PointTable& table : model.tables) {
    const auto listed = [&](const auto& known) { return known.first == table.file; };
    if (table.file.empty() || std::any_of(out.begin(), out.end(), listed)) continue;
    out.emplace_back(table.file, fmt::format("{:016x}", table.checksum));
  }
  return out;
}

std::vector<std::string> changed_files(const Past& past) {
  std::vector<std::string> out;
  for (const auto& [path, sum] : past.files) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) continue;  // reading the model says so
    if (fmt::format("{:016x}", checksum(read_text(path))) != sum) out.push_back(path);
  }
  return out;
}

std::optional<Past> read_past(const std::filesystem::path& path) {
  if (std::error_code ignored; !std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  return read_past_text(read_text(path), path);
}

std::optional<Past> read_past_text(const std::string& file, const std::filesystem::path& path) {
  if (!file.starts_with("saltus = ") && file.find("\nsaltus = ") == file.npos) return std::nullopt;
  try {
    const toml::table root = toml::parse(file, path.string());
    const auto word = [&](const char* key) {
      const auto value = root[key].value<std::string>();
      if (!value) damaged(path, fmt::format("'{}' is missing", key));
      return *value;
    };
    Past past{.version = word("saltus"),
              .command = word("command"),
              .name = word("name"),
              .model = word("model"),
              .files = {},
              .options = {}};
    if (const toml::table* files = root["files"].as_table()) {
      for (const auto& [file_path, sum] : *files)
        past.files.emplace_back(std::string(file_path.str()), sum.value_or(std::string()));
    }
    const toml::table* options = root["options"].as_table();
    if (!options) damaged(path, "the table [options] is missing");
    const auto check_word = [&](const std::string& text, const char* what) {
      const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
      });
      if (text.empty() || !plain) damaged(path, fmt::format("{} is not the name of {}", json_string(text), what));
    };
    for (const auto& [key, node] : *options) {
      Past::Option option{std::string(key.str()), {}};
      check_word(option.first, "an option");
      const auto add = [&](const toml::node& value) {
        const auto text = value.value<std::string>();
        const auto number = value.value<double>();
        if (!text && !number) damaged(path, fmt::format("the option '{}' is no text and no number", option.first));
        option.second.push_back(text ? *text : fmt::format("{}", *number));
      };
      if (const toml::array* list = node.as_array()) {
        for (const toml::node& value : *list) add(value);
      } else if (!node.is_boolean()) {
        add(node);
      }
      past.options.push_back(std::move(option));
    }
    const auto read_start = [&](const toml::table& from, const std::string& where) {
      Past::Start start;
      start.t = from["t"].value_or(0.0);
      start.period = from["period"].value_or(0.0);
      start.mode = from["mode"].value_or(std::string());
      const toml::table* state = from["state"].as_table();
      if (!state) damaged(path, fmt::format("the table [{}] has no state", where));
      for (const auto& [name, value] : *state) start.state.emplace_back(name.str(), value.value_or(0.0));
      return start;
    };
    const auto read_numbers = [](const toml::table& from, const char* key) {
      std::vector<double> out;
      if (const toml::array* list = from[key].as_array()) {
        for (const toml::node& value : *list) out.push_back(value.value_or(0.0));
      }
      return out;
    };
    if (const toml::table* orbit = root["orbit"].as_table()) past.start = read_start(*orbit, "orbit");
    if (const toml::table* all = root["special"].as_table()) {
      for (const auto& [label, node] : *all) {
        const toml::table* table = node.as_table();
        const toml::table* near = table ? (*table)["near"].as_table() : nullptr;
        check_word(std::string(label.str()), "a special point");
        const std::string where = "special." + std::string(label.str());
        if (!near) damaged(path, fmt::format("the table [{}] is incomplete", where));
        past.special.push_back({.label = std::string(label.str()),
                                .type = (*table)["type"].value_or(std::string()),
                                .values = read_numbers(*table, "values"),
                                .at = read_start(*table, where),
                                .near = read_start(*near, where),
                                .near_values = read_numbers(*near, "values")});
      }
    }
    return past;
  } catch (const toml::parse_error& error) {
    damaged(path, fmt::format("line {}: {}", error.source().begin.line, error.description()));
  }
}

std::vector<std::string> arguments_of(const Past& past, const std::string& path) {
  std::vector<std::string> arguments{path};
  for (const auto& [option, values] : past.options) {
    if (values.empty()) arguments.push_back("--" + option);
    for (const std::string& v : values) arguments.push_back(fmt::format("--{}={}", option, v));
  }
  return arguments;
}

std::string short_name(const std::string& model) {
  if (model == "-") return "model";
  const std::filesystem::path path(model);
  const std::string stem = path.stem().string();
  if (stem == "run") {
    if (const auto past = read_past(model)) return past->name;
  }
  if (stem != "model") return stem;
  const std::string folder = std::filesystem::absolute(path).parent_path().filename().string();
  return folder.empty() ? stem : folder;
}

std::string this_version() { return SALTUS_VERSION; }

}  // namespace saltus
