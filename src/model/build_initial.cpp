// Initial values, and which states a key means.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "expr/letters.hpp"
#include "model/builder.hpp"

namespace saltus {

void Builder::parse_initial() {
  std::vector<bool> given(model_.states.size(), false);
  for (const bool single : {false, true}) {  // a single index wins over all
    for (const NamedText& v : text_.initial) {
      for_each_state(v.name, {}, single, "initial", [&](size_t i, const Indices& indices) {
        State& state = model_.states[i];
        state.initial = constant(v.value, indices);
        const double value = constant_value(state.initial, parameter_values_);
        if (!std::isfinite(value))
          fail(v.value, fmt::format("the initial value of '{}' is {}", state.name, not_finite(value)),
               "give a finite number");
        given[i] = true;
      });
    }
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i]) continue;
    const std::string& name = model_.states[i].name;
    const size_t open = name.find('['), close = name.find(']');
    const std::string_view quote = name.ends_with('\'') ? "\"" : "";
    fail(*given_[i], fmt::format("the state '{}' has no initial value", name),
         open == name.npos ? fmt::format("add {0}{1}{0} = 0 (or another number) below [initial]", quote, name)
                           : fmt::format("add \"{}[i]{}\" = 0 (for all), or \"{}\" = 0, below [initial]",
                                         name.substr(0, open), name.substr(close + 1), name));
  }
}

/// The states that a key means: q or x[3] (single), or all of x[i] (not single).
void Builder::for_each_state(const Fragment& key, const Indices& indices, bool single, std::string_view what,
                             const ForState& action) const {
  const size_t open = key.text.find('['), close = key.text.find(']');
  if (open == std::string::npos || key.text.find_first_not_of('\'', close + 1) != std::string::npos) {
    if (single) action(state_of(key, key.text, what), indices);
    return;
  }
  const std::string primes = key.text.substr(close + 1);
  const Fragment stem = trimmed(key.part(0, open)), inside = trimmed(key.part(open + 1, close - open - 1));
  const Names::Range* range = names_.find_indexed(stem.text);
  const bool known =
      std::any_of(indices.begin(), indices.end(), [&](const auto& index) { return index.first == inside.text; });
  const bool all = range && is_name(inside.text) && !known && !names_.find(inside.text);
  if (all == single) return;
  if (single) {
    const auto name = parse_indexed_name(key.part(0, close + 1), names_, indices);
    return action(state_of(key, name ? name->text() + primes : key.text, what), indices);
  }
  Indices each = indices;
  each.emplace_back(inside.text, 0);
  for (long k = range->first; k <= range->last; ++k) {
    each.back().second = k;
    action(state_of(key, fmt::format("{}[{}]{}", stem.text, k, primes), what), each);
  }
}

size_t Builder::state_of(const Fragment& given, const std::string& name, std::string_view what) const {
  const auto found = states_.find(name);
  if (found != states_.end()) return static_cast<size_t>(found->second);
  const auto names = model_.state_names();
  const std::string near = nearest_name(name, names);
  const std::string again = !near.empty() ? fmt::format("did you mean '{}'?", near) : "";
  if (what == "set")
    fail(given, fmt::format("a jump sets '{}', which is no state", name),
         !again.empty() ? again : "a jump changes states; a discrete variable is a state with rate 0");
  const Names::Range* range = names_.find_indexed(name.substr(0, name.find('[')));
  fail(given, fmt::format("an initial value for '{}', which is no state", name),
       range ? fmt::format("the indices of {} are {} to {}", name.substr(0, name.find('[')), range->first, range->last)
       : !again.empty()   ? again
       : names.size() < 9 ? fmt::format("the states are: {}", fmt::join(names, ", "))
                          : "states have a rate in the equations");
}

}  // namespace saltus
