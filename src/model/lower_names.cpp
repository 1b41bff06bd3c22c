// Names in formulas: replaced by what they stand for, lowered or as written; which stand for numbers.
#include <algorithm>

#include "model/lowering.hpp"

namespace saltus {
namespace {

bool is_nonsmooth(Op op) { return op >= Op::sign; }

std::vector<Expr> symbols_in_surfaces(const Expr& e) {
  std::vector<Expr> roots;
  for (const Expr& node : postorder(std::span(&e, 1))) {
    if (is_nonsmooth(node.op())) roots.push_back(node);
  }
  return symbols_in(roots);
}

}  // namespace

Expr Lowering::formula(const Expr& written, const Place& place) {
  place_ = &place;
  return expand(rebuild_(written));
}

/// The definition's formula with its switches lowered; other definitions stay names.
const Expr& Lowering::lower_definition(size_t i) {
  if (!lowered_[i]) {
    const Place* outer = place_;
    place_ = &model_.definitions[i].place;
    lowered_[i] = rebuild_(model_.definitions[i].value);
    place_ = outer;
  }
  return *lowered_[i];
}

/// Names replaced by what they stand for, all the way down. Circles have been excluded when reading.
Expr Lowering::expand(const Expr& e) {
  if (model_.definitions.empty()) return e;
  if (!expanded_) {
    expanded_.emplace([this](const Expr& node, std::span<const Expr> a) {
      if (!a.empty()) return make(node.op(), a);
      if (!node.is_symbol(SymbolKind::definition)) return node;
      return expand_definition(static_cast<size_t>(node.symbol().index));
    });
  }
  return (*expanded_)(e);
}

/// Definitions below this one are expanded first, by a list instead of recursion: names may chain 10 000 deep.
Expr Lowering::expand_definition(size_t i) {
  std::vector<size_t> pending{i};
  const auto wait_for = [&](const std::vector<Expr>& symbols) {
    const size_t already = pending.size();
    for (const Expr& s : symbols) {
      if (!s.is_symbol(SymbolKind::definition)) continue;
      const size_t below = static_cast<size_t>(s.symbol().index);
      if (!definition_values_.contains(below)) pending.push_back(below);
    }
    return pending.size() > already;
  };
  while (!pending.empty()) {
    const size_t top = pending.back();
    if (definition_values_.contains(top)) {
      pending.pop_back();
      continue;
    }
    // Lowering a surface expands the names in it, so these must be known before.
    if (!lowered_[top] && wait_for(symbols_in_surfaces(model_.definitions[top].value))) continue;
    const Expr value = lower_definition(top);
    if (wait_for(symbols_in(std::span(&value, 1)))) continue;
    Rebuild replace([this](const Expr& node, std::span<const Expr> a) {
      if (!a.empty()) return make(node.op(), a);
      return node.is_symbol(SymbolKind::definition) ? definition_values_.at(static_cast<size_t>(node.symbol().index))
                                                    : node;
    });
    definition_values_.emplace(top, replace(value));
    pending.pop_back();
  }
  return definition_values_.at(i);
}

/// Names replaced by what was written for them, nothing lowered; names below others come first.
Expr Lowering::plain(const Expr& written) {
  if (const auto known = plain_formulas_.find(written); known != plain_formulas_.end()) return known->second;
  const auto unknown_in = [this](const Expr& e) {
    std::vector<Expr> names = symbols_in(std::span(&e, 1));
    std::erase_if(names, [this](const Expr& s) { return !s.is_symbol(SymbolKind::definition) || plain_.contains(s); });
    return names;
  };
  std::vector<Expr> pending = unknown_in(written);
  while (!pending.empty()) {
    const Expr name = pending.back();
    const Expr& value = model_.definitions[static_cast<size_t>(name.symbol().index)].value;
    const auto below = unknown_in(value);
    if (below.empty()) {
      plain_.emplace(name, substitute(value, plain_));
      pending.pop_back();
    }
    pending.insert(pending.end(), below.begin(), below.end());
  }
  return plain_formulas_.emplace(written, substitute(written, plain_)).first->second;
}

/// Which definitions stand for numbers; asked by the written formulas, so that nothing is lowered out of turn.
void Lowering::find_constants() {
  const size_t n = model_.definitions.size();
  std::vector<std::optional<bool>> known(n);
  std::vector<size_t> pending;
  for (size_t root = 0; root < n; ++root) {
    pending.push_back(root);
    while (!pending.empty()) {
      const size_t top = pending.back();
      bool known_constant = true, ready = true;
      if (!known[top]) {
        for (const Expr& s : symbols_in(std::span(&model_.definitions[top].value, 1))) {
          if (!s.is_symbol(SymbolKind::definition)) {
            known_constant = known_constant && is_constant(s);
          } else if (const auto below = known[static_cast<size_t>(s.symbol().index)]) {
            known_constant = known_constant && *below;
          } else {
            pending.push_back(static_cast<size_t>(s.symbol().index));
            ready = false;
          }
        }
        if (!ready) continue;
        known[top] = known_constant;
      }
      pending.pop_back();
    }
  }
  for (const auto& k : known) constant_definition_.push_back(*k);
}

/// True if a formula stands for a number once parameters have values.
bool Lowering::constant(const Expr& e) const {
  const auto used = symbols_in(std::span(&e, 1));
  return std::all_of(used.begin(), used.end(), [this](const Expr& s) {
    return s.is_symbol(SymbolKind::definition) ? constant_definition_[static_cast<size_t>(s.symbol().index)]
                                               : is_constant(s);
  });
}

/// The value of a constant formula under the model's own parameters.
double Lowering::start_value(const Expr& e) { return constant_value(expand(e), parameters_); }

}  // namespace saltus
