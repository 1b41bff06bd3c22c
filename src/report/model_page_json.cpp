#include <algorithm>
#include <sstream>

#include "expr/interpolant.hpp"
#include "expr/print.hpp"
#include "model/describe.hpp"
#include "out/json.hpp"
#include "report/model_page.hpp"

namespace saltus {
namespace {

std::string formula(const Expr& e, const Expr& as_written) {
  return printed_size(e) <= longest_formula ? print(e) : print(as_written);
}

bool is_number(const Expr& e) {
  const auto used = symbols_in(std::span(&e, 1));
  return std::all_of(used.begin(), used.end(), is_constant);
}

void write_switches(JsonWriter& json, const Form& form, const std::vector<double>& parameters) {
  json.key("switches").rows();
  for (const Switch& s : shown_form(form).switches) {
    json.object().member("name", s.name);
    json.member("surface", printed_size(s.surface) <= longest_formula ? print(s.surface) : s.name);
    json.member("hold", constant_value(s.hold, parameters));
    json.key("interacts").array();
    for (const int i : s.interacts) json.value(form.switches[static_cast<size_t>(i)].name);
    json.end().end();
  }
  json.end();
}

void write_constraints(JsonWriter& json, const Model& model, const std::vector<double>& parameters) {
  const std::vector<Gap> gaps = shown_form(model.form).gaps;
  json.key("constraints").rows();
  for (size_t j = 0; j < model.constraints.size(); ++j) {
    const Gap& gap = gaps[j];
    json.object().member("name", model.constraints[j].name);
    json.member(gap.joint ? "equals" : "gap", formula(gap.gap, model.constraints[j].gap))
        .member("degree", gap.degree)
        .key("restitution");
    if (!gap.restitution) {
      json.null();
    } else if (is_number(*gap.restitution)) {
      json.value(constant_value(*gap.restitution, parameters));
    } else {
      json.value(formula(*gap.restitution, *model.constraints[j].restitution));
    }
    json.end();
  }
  json.end();
}

void write_jumps(JsonWriter& json, const Model& model, const std::vector<double>& parameters) {
  json.key("jumps").rows();
  for (const Jump& jump : model.jumps) {
    json.object().member("name", jump.name);
    if (jump.every) {
      json.member("every", constant_value(*jump.every, parameters));
      json.member("phase", jump.phase ? constant_value(*jump.phase, parameters) : 0.0);
    } else {
      json.member("on", print(jump.on)).member("direction", direction_name(jump.direction));
    }
    if (jump.level) json.member("level", true);
    if (jump.when) json.member("when", print(*jump.when));
    json.key("set").object();
    for (const Assignment& a : jump.set) json.member(model.states[static_cast<size_t>(a.state)].name, print(a.value));
    json.end().end();
  }
  json.end();
}

void write_sections(JsonWriter& json, const Model& model, const std::vector<double>& parameters) {
  json.key("sections").rows();
  for (const Section& s : model.sections) {
    json.object().member("name", s.name);
    const size_t i = static_cast<size_t>(s.index);
    switch (s.kind) {
      case Section::Kind::every: json.member("every", constant_value(s.value, parameters)); break;
      case Section::Kind::on: json.member("on", print(s.value)); break;
      case Section::Kind::constraint: json.member("on", model.constraints[i].name); break;
      case Section::Kind::jump: json.member("on", model.jumps[i].name); break;
    }
    json.member("direction", direction_name(s.direction)).member("stop", s.stop).end();
  }
  json.end();
}

void write_tables(JsonWriter& json, const Model& model) {
  json.key("tables").rows();
  for (const PointTable& t : model.tables) {
    const auto x = t.curve->x();
    json.object().member("name", t.name).member("points", static_cast<long>(x.size()));
    json.member("from", x.front()).member("to", x.back());
    json.member("between", between_name(*t.curve)).member("outside", outside_name(*t.curve));
    if (!t.file.empty()) json.member("file", t.file);
    json.end();
  }
  json.end();
}

}  // namespace

std::string model_as_json(const Model& model) {
  const auto parameters = parameter_values(model);
  std::ostringstream text;
  JsonWriter json(text);
  json.object().member("model", model.name).key("states").value(std::span<const std::string>(model.state_names()));
  json.key("parameters").object();
  for (size_t i = 0; i < parameters.size(); ++i) json.member(model.parameters[i].name, parameters[i]);
  json.end();
  write_switches(json, model.form, parameters);
  write_constraints(json, model, parameters);
  write_jumps(json, model, parameters);
  write_sections(json, model, parameters);
  write_tables(json, model);
  json.member("autonomous", model.autonomous()).key("formulas").object();
  for (const Parameter& p : model.parameters) {
    if (contains_kind(p.value, SymbolKind::parameter)) json.member(p.name, print(p.value));
  }
  json.end().key("unused").value(std::span<const std::string>(model.unused)).end().flush();
  return text.str();
}

}  // namespace saltus
