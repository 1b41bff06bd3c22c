#include "analysis/quantities.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/index.hpp"
#include "base/numbers.hpp"

namespace saltus {

std::vector<std::string> quantity_names(const Model& model) {
  std::vector<std::string> names{"t"};
  for (const State& s : model.states) names.push_back(s.name);
  for (const Definition& d : model.definitions) names.push_back(d.name);
  for (int i = 0; i < model.form.visible; ++i)
    names.push_back(fmt::format("sigma({})", model.form.switches[at(i)].name));
  for (const Constraint& c : model.constraints) names.push_back(c.name);
  return names;
}

Quantities::Quantities(const Program& program, const RunOptions& options)
    : program_(program), series_(program, options.parameters, 1), width_(quantity_names(program.model()).size()) {
  series_.use_native(options.native);
}

void Quantities::enter(const Arc& arc) {
  arc_ = arc;
  series_.set_mode(arc.mode);
  series_.hold_at(arc.held);
  guess_ = arc.guess;
}

void Quantities::read(double t, std::span<const double> x, std::vector<double>& row) {
  const Model& model = program_.model();
  row.assign(width_, nan);
  row[0] = t;
  std::copy(x.begin(), x.end(), row.begin() + 1);
  size_t k = 1 + x.size();
  if (k == width_) return;
  series_.guess(guess_);
  if (series_.evaluate(x, t, arc_.counters) != SeriesStatus::ok) return;
  if (!model.definitions.empty()) {
    const Jet<double>& values = series_.actions();
    for (size_t d = 0; d < model.definitions.size(); ++d)
      row[k++] = values.output(program_.definition(static_cast<int>(d)))[0];
  }
  guess_.resize(at(program_.unknowns()));
  for (int u = 0; u < program_.unknowns(); ++u) {
    guess_[at(u)] = series_.unknown(u)[0];
    if (u < model.form.visible || u >= program_.switches()) row[k++] = guess_[at(u)];
  }
}

}  // namespace saltus
