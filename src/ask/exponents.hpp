// Lyapunov exponents of one run: `ask(ExponentsQuestion) -> Exponents`.
#pragma once

#include <optional>
#include <vector>

#include "analysis/exponents.hpp"
#include "ask/ask.hpp"
#include "ask/solve.hpp"
#include "ask/system.hpp"

namespace saltus {

struct ExponentsQuestion {
  System system;
  Solve solve = {};  ///< without `until`: until the errors are small; the engine is the event-driven one
  std::optional<std::vector<double>> start = {};  ///< a state, instead of the model's initial values
};

struct ExponentsPlan {
  Model model;  ///< sections do not stop the run
  double attract = 0;
  ExponentOptions options;
};

/// Throws Error for what cannot be asked.
ExponentsPlan plan(const ExponentsQuestion& question);
Exponents ask(const ExponentsPlan& plan, const Observer& observer = {});

}  // namespace saltus
