// `saltus run --engine both`: one model on both engines, side by side with the difference.
#pragma once

#include "app/commands.hpp"
#include "model/model.hpp"

namespace saltus {

Outcome run_both(const RunRequest& request, const Model& model, const Observer& observer);

}  // namespace saltus
