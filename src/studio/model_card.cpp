#include "studio/model_card.hpp"

#include <algorithm>

#include "ask/gallery.hpp"
#include "ask/rows.hpp"
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
  json.end().key("columns").value(std::span<const std::string>(row_columns(model)));
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
  json.member("engine", model.run.engine.value_or("event")).end();
  json.member("autonomous", model.autonomous()).member("latex", model_as_latex(model));
}

void write_gallery(JsonWriter& json) {
  json.key("gallery").array();
  for (const GalleryModel& m : gallery()) {
    json.object().member("name", m.name).member("description", m.description()).end();
  }
  json.end();
}

}  // namespace saltus
