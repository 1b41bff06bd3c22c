// Every question is asked alike: `plan(question)` finds all that is wrong with it, `ask(plan, observer)` computes.
#pragma once

#include <utility>

#include "ask/observer.hpp"

namespace saltus {

/// Both at once. Throws Error for what cannot be asked.
template <class Question>
requires requires(Question question, const Observer& observer) { ask(plan(std::move(question)), observer); }
auto ask(Question question, const Observer& observer = {}) { return ask(plan(std::move(question)), observer); }

}  // namespace saltus
