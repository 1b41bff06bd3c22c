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
  const Fragment stem = trimmed(key.part(0, open));
  const std::vector<Fragment> parts = split_at_commas(key.part(open + 1, close - open - 1));
  const Names::Range* range = names_.find_indexed(stem.text);
  bool all = false;
  std::vector<std::string> free;  // names of indices that run through the range; "" for one that is given
  for (const Fragment& part : parts) {
    const std::string inside = trimmed(part).text;
    const bool known =
        std::any_of(indices.begin(), indices.end(), [&](const auto& index) { return index.first == inside; });
    const bool runs = range && is_name(inside) && !known && !names_.find(inside);
    free.push_back(runs ? inside : "");
    all = all || runs;
  }
  if (all == single) return;
  if (single) {
    const auto name = parse_indexed_name(key.part(0, close + 1), names_, indices);
    return action(state_of(key, name ? name->text() + primes : key.text, what), indices);
  }
  if (parts.size() != range->dimensions)
    fail(key, fmt::format("'{}' has {} here", stem.text, parts.size() == 1 ? "one index" : "two indices"),
         range->dimensions == 1 ? "it has one" : "it has two");
  const auto each = [&](auto&& self, Indices now) -> void {
    const size_t depth = now.size() - indices.size();
    if (depth == parts.size()) {
      Indices named = indices;
      IndexedName name{stem, {}, parts.size()};
      for (size_t k = 0; k < parts.size(); ++k) {
        name.index[k] = now[indices.size() + k].second;
        if (!free[k].empty()) named.push_back(now[indices.size() + k]);
      }
      return action(state_of(key, name.text() + primes, what), named);
    }
    now.emplace_back(free[depth], 0);
    if (free[depth].empty()) {
      now.back().second = index_of(parts[depth], indices);
      return self(self, now);
    }
    for (long k = range->first[depth]; k <= range->last[depth]; ++k) {
      now.back().second = k;
      self(self, now);
    }
  };
  each(each, indices);
}

/// One index of a key, as a number.
long Builder::index_of(const Fragment& part, const Indices& indices) const {
  Fragment name = whole_text("index", "x[" + part.text + "]");
  return parse_indexed_name(name, names_, indices)->index[0];
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
       range && range->dimensions == 2
           ? fmt::format("{0} goes from {0}[{1},{2}] to {0}[{3},{4}]", name.substr(0, name.find('[')), range->first[0],
                         range->first[1], range->last[0], range->last[1])
       : range          ? fmt::format("the indices of {} are {} to {}", name.substr(0, name.find('[')), range->first[0],
                                      range->last[0])
       : !again.empty() ? again
       : names.size() < 9 ? fmt::format("the states are: {}", fmt::join(names, ", "))
                          : "states have a rate in the equations");
}

}  // namespace saltus
