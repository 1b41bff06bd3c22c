#include "ask/sensitivity.hpp"

#include "ask/solve.hpp"
#include "flow/parameter_directions.hpp"

namespace saltus {
namespace {

std::vector<int> find_parameters(const Model& model, const std::vector<std::string>& names) {
  std::vector<int> out;
  for (const std::string& name : names) out.push_back(find_parameter(model, name, "`sensitivity`"));
  if (out.empty()) {
    for (size_t i = 0; i < model.parameters.size(); ++i) out.push_back(static_cast<int>(i));
  }
  return out;
}

}  // namespace

SensitivityRun::SensitivityRun(const Program& program, const RunOptions& options, const std::vector<std::string>& names)
    : variation_(program, options), states_(program.states()) {
  const Model& model = program.model();
  const std::vector<int> of = find_parameters(model, names);
  const ParameterDirections directions = parameter_directions(model, options.parameters, of);
  for (const int i : of) parameters_.push_back(model.parameters[static_cast<size_t>(i)].name);
  const Index count = static_cast<Index>(of.size());
  Mat x = Mat::Zero(states_, states_ + count), p = Mat::Zero(directions.p.rows(), states_ + count);
  x.leftCols(states_).setIdentity();
  x.rightCols(count) = directions.x;
  p.rightCols(count) = directions.p;
  p_ = p;
  if (options.step) steps_.emplace(program, options.parameters);
  variation_.begin(std::move(x), std::move(p));
}

std::vector<std::string> SensitivityRun::notes() const {
  std::vector<std::string> out = variation_.notes();
  if (lost_) out.push_back("the derivative of a step is not determined by its equations: forces are not unique there");
  return out;
}

void SensitivityRun::attach(RunOptions& options) {
  if (steps_) {
    options.on_step = [this](const StepMade& step) {
      Mat x = variation_.tangents();
      lost_ = !steps_->along(step, p_, x) || lost_;
      variation_.carry(std::move(x));
    };
    options.on_transition = [this, before = options.on_transition](const Transition& e) {
      // A change inside a step that was not located is part of the step.
      const bool located = !e.guards.empty() || !e.jumps.empty() || !e.hits.empty() || !e.resting.empty();
      if (located) variation_.through(e);
      if (before) before(e);
    };
    return;
  }
  options.on_piece = [this, before = options.on_piece](const Piece& piece, const Arc& arc) {
    variation_.along(piece, arc);
    if (before) before(piece, arc);
  };
  options.on_transition = [this, before = options.on_transition](const Transition& event) {
    variation_.through(event);
    if (before) before(event);
  };
}

Sensitivity SensitivityRun::result() const {
  const Mat& x = variation_.tangents();
  Sensitivity out{.parameters = parameters_};
  for (Index i = 0; i < states_; ++i) {
    out.by_state.emplace_back();
    out.by_parameter.emplace_back();
    for (Index c = 0; c < x.cols(); ++c) (c < states_ ? out.by_state : out.by_parameter).back().push_back(x(i, c));
  }
  return out;
}

Table sensitivity_table(const Model& model, const Sensitivity& s) {
  Table table("sensitivity", "derivatives of the states at the end");
  table.add_texts("state", model.state_names());
  const auto add = [&](const std::string& name, const auto& rows, size_t column, const char* what) {
    Numbers values;
    for (const std::vector<double>& row : rows) values.push_back(row[column]);
    table.add_numbers(name, std::move(values), what);
  };
  for (size_t c = 0; c < model.states.size(); ++c)
    add(model.states[c].name + "(0)", s.by_state, c, "by the initial value");
  for (size_t c = 0; c < s.parameters.size(); ++c) add(s.parameters[c], s.by_parameter, c, "by the parameter");
  return table;
}

}  // namespace saltus
