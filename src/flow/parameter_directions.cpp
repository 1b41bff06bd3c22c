#include "flow/parameter_directions.hpp"

#include "base/index.hpp"
#include "expr/diff.hpp"

namespace saltus {

ParameterDirections parameter_directions(const Model& model, const std::vector<double>& parameters,
                                         std::span<const int> of) {
  const Index count = ix(of.size());
  ParameterDirections out{Mat::Zero(ix(model.states.size()), count), Mat::Zero(ix(parameters.size()), count)};
  for (Index c = 0; c < count; ++c) {
    Vec p = Vec::Zero(ix(parameters.size()));
    p[of[ux(c)]] = 1;
    // Formulas of parameters depend on each other without circles: as many rounds as there are parameters reach all.
    for (size_t round = 0; round < parameters.size(); ++round) {
      const Vec old = p;
      for (size_t j = 0; j < parameters.size(); ++j) {
        if (static_cast<int>(j) == of[ux(c)]) continue;
        double sum = 0;
        for (const Partial& d : gradient(model.parameters[j].value, SymbolKind::parameter))
          sum += constant_value(d.value, parameters) * p[d.symbol.symbol().index];
        p[ix(j)] = sum;
      }
      if (p == old) break;
    }
    out.p.col(c) = p;
    for (size_t i = 0; i < model.states.size(); ++i) {
      for (const Partial& d : gradient(model.states[i].initial, SymbolKind::parameter))
        out.x(ix(i), c) += constant_value(d.value, parameters) * p[d.symbol.symbol().index];
    }
  }
  return out;
}

}  // namespace saltus
