#include "studio/model_card.hpp"

#include <algorithm>

#include "ask/gallery.hpp"
#include "ask/option_table.hpp"
#include "ask/rows.hpp"
#include "ask/solve.hpp"
#include "expr/print.hpp"
#include "report/model_page.hpp"

namespace saltus {
namespace {

void write_value(JsonWriter& json, const std::string& name, const Expr& value, double number) {
  json.object().member("name", name).member("latex", latex_name(name));
  json.member("text", print(value)).member("value", number);
}

void write_sections(JsonWriter& json, const Model& model) {
  json.key("sections").array();
  for (const Section& s : model.sections) json.value(s.name);
  json.end().key("movable").array();  // those that have a level
  for (const Section& s : model.sections) {
    if (s.kind == Section::Kind::on) json.value(s.name);
  }
  json.end();
}

/// Words that a page may choose among: not those that compare two runs.
std::vector<std::string> words_of_page(const SolveOption& option) {
  if (option.kind != "word") return {};
  std::vector<std::string> words = words_of(option.name);
  std::erase(words, "both");
  return words;
}

}  // namespace

void write_model_card(JsonWriter& json, const Model& model) {
  const std::vector<double> parameters = parameter_values(model);
  const std::vector<double> initial = initial_values(model, parameters);
  json.member("name", model.name).member("ref", model.ref);
  json.key("states").array();
  for (size_t i = 0; i < model.states.size(); ++i) {
    write_value(json, model.states[i].name, model.states[i].initial, initial[i]);
    json.end();
  }
  json.end().key("parameters").array();
  for (size_t i = 0; i < model.parameters.size(); ++i) {
    const std::string& name = model.parameters[i].name;
    write_value(json, name, model.parameters[i].value, parameters[i]);
    const auto& unused = model.unused;
    json.member("used", std::find(unused.begin(), unused.end(), name) == unused.end());
    const auto& structural = model.structural;
    json.member("whole", std::find(structural.begin(), structural.end(), static_cast<int>(i)) != structural.end());
    json.end();
  }
  json.end().key("columns").value(std::span<const std::string>(quantity_names(model)));
  json.key("definitions").array();
  for (const Definition& d : model.definitions) json.value(d.name);
  json.end().key("switches").array();
  for (int i = 0; i < model.form.visible; ++i) json.value(model.form.switches[static_cast<size_t>(i)].name);
  json.end().key("constraints").array();
  for (const Constraint& c : model.constraints) json.value(c.name);
  json.end();
  write_sections(json, model);
  json.key("run").object();
  if (model.run.from) json.member("from", print(*model.run.from));
  if (model.run.until) json.member("until", print(*model.run.until));
  if (model.run.tolerance) json.member("tolerance", *model.run.tolerance);
  if (model.run.dt) json.member("dt", *model.run.dt);
  if (model.run.engine) json.member("engine", *model.run.engine);
  json.end();
  json.member("autonomous", model.autonomous()).member("latex", model_as_latex(model));
}

void write_options(JsonWriter& json) {
  json.key("options").array();
  for (const SolveOption& option : solve_options()) {
    const auto& table = option_table();
    const auto fact = std::find_if(table.begin(), table.end(),
                                   [&](const OptionFact& o) { return o.name == option.name && !o.sentence.empty(); });
    json.object().member("name", option.name).member("kind", option.kind).member("sentence", fact->sentence);
    json.member("type", fact->type).member("fallback", fact->fallback).member("flag", fact->flag());
    json.key("words").value(std::span<const std::string>(words_of_page(option)));
    json.key("commands").array();
    for (const std::string_view command : {"run", "section", "sweep", "basins", "orbit", "follow"}) {
      if (const OptionFact* row = find_option(option.name, command); row && !row->sentence.empty()) json.value(command);
    }
    json.end().end();
  }
  json.end();
}

void write_gallery(JsonWriter& json) {
  json.key("gallery").array();
  for (const GalleryModel& m : gallery()) {
    json.object().member("name", m.name).member("description", m.description()).end();
  }
  json.end();
}

}  // namespace saltus
