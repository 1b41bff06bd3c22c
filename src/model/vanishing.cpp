#include "model/vanishing.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/index.hpp"

namespace saltus {
namespace {

constexpr size_t most_members = 16;
constexpr size_t most_states = 1000;  // larger models consist of parts that do not vanish

using Set = std::vector<int>;  // in order

Set joined(const Set& a, const Set& b) {
  Set out;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

class Search {
 public:
  explicit Search(std::span<const Expr> rates) : rates_(rates), alive_(rates.size(), true) {
    std::vector<Set> readers(rates.size());
    Set open;
    for (int i = 0; i < static_cast<int>(rates.size()); ++i) {
      open.push_back(i);
      for (const Expr& symbol : symbols_in(rates.subspan(at(i), 1))) {
        if (symbol.is_symbol(SymbolKind::state)) readers[at(symbol.symbol().index)].push_back(i);
      }
    }
    while (!open.empty()) {
      const int i = open.back();
      open.pop_back();
      if (!alive_[at(i)] || needed(rates[at(i)], {})) continue;
      alive_[at(i)] = false;
      open.insert(open.end(), readers[at(i)].begin(), readers[at(i)].end());
    }
  }

  Set of(int state) const {
    if (!alive_[at(state)]) return {};
    Set set{state};
    for (Set open = set; !open.empty();) {
      const int next = open.back();
      open.pop_back();
      const Set wanted = needed(rates_[at(next)], set).value();
      for (const int j : wanted) {
        if (!std::binary_search(set.begin(), set.end(), j)) open.push_back(j);
      }
      set = joined(set, wanted);
      if (set.size() > most_members) return {};
    }
    return set;
  }

 private:
  /// States without which a formula does not vanish, few besides those of `given`; nothing where no states help.
  std::optional<Set> needed(const Expr& formula, const Set& given) const {
    ExprMap<std::optional<Set>> sets;
    const auto missing = [&](const Set& set) {
      return std::count_if(set.begin(), set.end(),
                           [&](int j) { return !std::binary_search(given.begin(), given.end(), j); });
    };
    for (const Expr& node : postorder(std::span(&formula, 1))) {
      const auto of = [&](size_t i) -> const std::optional<Set>& { return sets.at(node.argument(i)); };
      std::optional<Set> here;
      switch (node.op()) {
        case Op::number:
          if (node.is_number(0)) here.emplace();
          break;
        case Op::symbol:
          if (node.is_symbol(SymbolKind::state) && alive_[at(node.symbol().index)]) here = Set{node.symbol().index};
          break;
        case Op::add:
        case Op::sub:
          if (of(0) && of(1)) here = joined(*of(0), *of(1));
          break;
        case Op::mul: {
          const bool second = of(1) && (!of(0) || missing(*of(1)) < missing(*of(0)));
          here = second ? of(1) : of(0);
          break;
        }
        case Op::neg:
        case Op::div: here = of(0); break;
        case Op::pow:
          if (node.argument(1).is_number() && node.argument(1).value() >= 1) here = of(0);
          break;
        default: break;
      }
      if (here && here->size() > most_members) here.reset();
      sets.emplace(node, std::move(here));
    }
    return sets.at(formula);
  }

  std::span<const Expr> rates_;
  std::vector<bool> alive_;
};

}  // namespace

std::vector<std::vector<int>> vanishing_sets(std::span<const Expr> rates) {
  std::vector<std::vector<int>> out(rates.size());
  if (rates.size() > most_states) return out;
  const Search search(rates);
  for (size_t i = 0; i < rates.size(); ++i) out[i] = search.of(static_cast<int>(i));
  return out;
}

}  // namespace saltus
