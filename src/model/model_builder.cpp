#include "model/model_builder.hpp"

#include "expr/print.hpp"

namespace saltus {

ModelBuilder::ModelBuilder(std::string_view name) { text_.name = name; }

ModelBuilder& ModelBuilder::ref(std::string_view source) {
  text_.ref = source;
  return *this;
}

ModelBuilder& ModelBuilder::equations(std::string_view lines) {
  lines_ += lines;
  lines_ += '\n';
  return *this;
}

ModelBuilder& ModelBuilder::parameter(std::string_view name, double value) {
  return parameter(name, print_number(value));
}
ModelBuilder& ModelBuilder::parameter(std::string_view name, std::string_view constant) {
  text_.parameters.push_back({whole_text("parameter", name), whole_text("parameter", constant)});
  return *this;
}

ModelBuilder& ModelBuilder::initial(std::string_view state, double value) {
  return initial(state, print_number(value));
}
ModelBuilder& ModelBuilder::initial(std::string_view state, std::string_view formula) {
  text_.initial.push_back({whole_text("initial", state), whole_text("initial", formula)});
  return *this;
}

ModelBuilder& ModelBuilder::constraint(std::string_view name, std::string_view gap, std::string_view restitution) {
  ConstraintText c{.name = whole_text("constraint", name), .gap = whole_text("gap", gap)};
  if (!restitution.empty()) c.restitution = whole_text("restitution", restitution);
  text_.constraints.push_back(std::move(c));
  return *this;
}

ModelBuilder& ModelBuilder::jump(std::string_view name, std::string_view on, Direction direction,
                                 const std::vector<std::pair<std::string, std::string>>& set, std::string_view when) {
  JumpText j{.name = whole_text("jump", name), .on = whole_text("jump", on), .direction = direction};
  for (const auto& [state, value] : set) j.set.push_back({whole_text("jump", state), whole_text("jump", value)});
  if (!when.empty()) j.when = whole_text("when", when);
  text_.jumps.push_back(std::move(j));
  return *this;
}

ModelBuilder& ModelBuilder::jump_every(std::string_view name, std::string_view every,
                                       const std::vector<std::pair<std::string, std::string>>& set,
                                       std::string_view when, std::string_view phase) {
  JumpText j{.name = whole_text("jump", name), .every = whole_text("every", every)};
  for (const auto& [state, value] : set) j.set.push_back({whole_text("jump", state), whole_text("jump", value)});
  if (!when.empty()) j.when = whole_text("when", when);
  if (!phase.empty()) j.phase = whole_text("phase", phase);
  text_.jumps.push_back(std::move(j));
  return *this;
}

ModelBuilder& ModelBuilder::section_every(std::string_view name, std::string_view interval) {
  text_.sections.push_back({.name = whole_text("section", name), .every = whole_text("section", interval)});
  return *this;
}

ModelBuilder& ModelBuilder::section_on(std::string_view name, std::string_view formula, Direction direction,
                                       bool stop) {
  text_.sections.push_back({.name = whole_text("section", name),
                            .on = whole_text("section", formula),
                            .direction = direction,
                            .stop = stop});
  return *this;
}

ModelBuilder& ModelBuilder::table(std::string_view name, Interpolant curve) {
  PointTable table{.name = std::string(name), .curve = std::make_shared<const Interpolant>(std::move(curve))};
  text_.tables.push_back({whole_text("table", name), std::move(table)});
  return *this;
}

Model ModelBuilder::build() const {
  ModelText text = text_;
  text.equations = whole_text("equations", lines_);
  return build_model(text);
}

}  // namespace saltus
