// The model files tests read: the reference cases and the gallery; and values to evaluate formulas with.
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "model/model.hpp"

namespace saltus::testing {

inline std::vector<std::string> reference_cases() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(SALTUS_SOURCE_DIR "/tests/reference/cases")) {
    if (entry.path().extension() == ".toml") out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

inline std::vector<std::string> gallery() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(SALTUS_SOURCE_DIR "/models")) {
    if (std::filesystem::exists(entry.path() / "model.toml")) out.push_back((entry.path() / "model.toml").string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

inline std::vector<std::string> all_models() {
  std::vector<std::string> out = reference_cases();
  for (const std::string& path : gallery()) out.push_back(path);
  return out;
}

/// Numbers for everything a formula of a model can ask for.
struct Values {
  std::vector<double> x, p, sigma, lambda, counter, definition;
  double t = 0;

  double operator()(const Symbol& s) const {
    const size_t i = static_cast<size_t>(s.index);
    switch (s.kind) {
      case SymbolKind::state: return x.at(i);
      case SymbolKind::parameter: return p.at(i);
      case SymbolKind::time: return t;
      case SymbolKind::sigma: return sigma.at(i);
      case SymbolKind::lambda: return lambda.at(i);
      case SymbolKind::counter: return counter.at(i);
      case SymbolKind::definition: return definition.at(i);
      case SymbolKind::rate:
      case SymbolKind::constant:
      case SymbolKind::table:
      case SymbolKind::argument: break;
    }
    return std::nan("");
  }
};

inline Values random_values(const Model& model, std::mt19937& random) {
  std::uniform_real_distribution<double> number(-2, 2), positive(0.1, 3);
  Values v;
  v.p = parameter_values(model);
  for (size_t i = 0; i < model.states.size(); ++i) v.x.push_back(number(random));
  for (size_t i = 0; i < model.constraints.size(); ++i) v.lambda.push_back(positive(random));
  for (size_t i = 0; i < model.form.switches.size(); ++i) v.sigma.push_back(random() % 2 ? 1 : -1);
  v.counter.resize(static_cast<size_t>(model.form.counter_values));
  v.definition.resize(model.definitions.size());
  v.t = positive(random);
  return v;
}

}  // namespace saltus::testing
