// Equations linear in rates: which states they have, before any name is known.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "expr/letters.hpp"
#include "model/builder.hpp"

namespace saltus {
namespace {

/// The first place of a name in a line.
Fragment place_in(const EquationLine& line, const std::string& stem) {
  for (const Fragment* side : {&line.left, &line.right}) {
    for (size_t at = side->text.find(stem); at != stem.npos; at = side->text.find(stem, at + 1)) {
      const size_t end = at + stem.size();
      if ((at == 0 || !is_name_part(side->text[at - 1])) &&
          (end == side->text.size() || !is_name_part(side->text[end])))
        return side->part(at, stem.size());
    }
  }
  return line.left;
}

}  // namespace

/// Names with two primes anywhere are coordinates. A line F = m*x'' with a parameter or state F is a balance.
void Builder::find_coordinates() {
  std::set<std::string, std::less<>> known;
  for (const NamedText& p : text_.parameters) known.insert(p.name.text);
  for (const EquationLine& line : lines_) {
    for (const Fragment* side : {&line.left, &line.right}) {
      for (std::string& name : primed_names(side->text, 2)) coordinates_.insert(std::move(name));
    }
    const std::string stem = trimmed(line.left.part(0, line.left.text.find('['))).text;
    if (line.kind == EquationLine::rate) known.insert(stem);
    if (line.kind == EquationLine::rate && line.primes == 2) coordinates_.insert(stem);
    primes_in_formulas_ =
        primes_in_formulas_ || line.kind == EquationLine::balance || line.right.text.find('\'') != std::string::npos;
  }
  known.insert(coordinates_.begin(), coordinates_.end());
  for (EquationLine& line : lines_) {
    const std::string stem = trimmed(line.left.part(0, line.left.text.find('['))).text;
    if (line.kind == EquationLine::name && known.contains(stem) && line.right.text.find('\'') != std::string::npos)
      line.kind = EquationLine::balance;
  }
}

/// The balances of a line, and the states whose rates are in them.
void Builder::collect_balances(size_t number) {
  if (!anything_.accepts_all()) {
    anything_.build_on(names_);
    anything_.accept_all();
    parse_functions(anything_);
  }
  const auto add = [&](const Indices& indices) {
    if (equations_.size() >= most_equations) fail_too_many(number);
    for (const Fragment* side : {&lines_[number].left, &lines_[number].right})
      collect_unknowns(parse(*side, anything_, indices), number);
    model_.order.push_back({WrittenLine::balance, static_cast<int>(model_.balances.size())});
    model_.balances.emplace_back();
    equations_.push_back({number, indices.empty() ? 0 : indices[0].second});
  };
  const std::optional<Fragment> range = lines_[number].range;
  if (range) lines_[number].index = parse_index_range(*range, names_).name;
  for_each_index(range, add);
}

void Builder::collect_unknowns(const Expr& side, size_t number) {
  for (const Expr& s : symbols_in(std::span(&side, 1))) {
    if (!s.is_symbol(SymbolKind::argument) || s.symbol().index == 0) continue;
    const size_t primes = static_cast<size_t>(s.symbol().index);
    const std::string name = s.symbol().name.substr(0, s.symbol().name.size() - primes);
    if (primes == 1 && is_coordinate(name)) continue;  // its speed
    if (primes > 2)
      fail(place_in(lines_[number], name.substr(0, name.find('['))),
           fmt::format("'{}' is a derivative of order {}", s.symbol().name, primes),
           "derivatives go up to the second: give the acceleration a state of its own");
    add_unknown(name, primes == 2, number);
  }
}

/// A state that has no line of its own.
void Builder::add_unknown(const std::string& name, bool coordinate, size_t number) {
  if (states_.contains(name)) return;
  const EquationLine& line = lines_[number];
  const size_t open = name.find('[');
  const std::string stem = name.substr(0, open);
  const Fragment& place = places_.emplace_back(place_in(line, stem));
  if (open == name.npos) {
    registry_.claim(place, "a state");
  } else {
    const long index = std::stol(name.substr(open + 1));
    auto [it, fresh] = families_.try_emplace(stem, Family{EquationLine::rate, &place, index, index, 0});
    Family& family = it->second;
    if (fresh) registry_.claim(place, "a state");
    if (family.kind != EquationLine::rate)
      fail(place, fmt::format("'{}' has a rate here, and elsewhere an equation without one", stem),
           "rename one of them");
    family.first = std::min(family.first, index);
    family.last = std::max(family.last, index);
    ++family.count;
  }
  add_state(name, coordinate, place);
}

/// Balances take the place in the file that their lines have.
void Builder::sort_equations() {
  if (model_.balances.empty()) return;
  std::vector<size_t> by_line(equations_.size());
  std::iota(by_line.begin(), by_line.end(), size_t{0});
  std::stable_sort(by_line.begin(), by_line.end(),
                   [&](size_t a, size_t b) { return equations_[a].line < equations_[b].line; });
  std::vector<Equation> equations;
  std::vector<WrittenLine> order;
  for (const size_t i : by_line) {
    equations.push_back(equations_[i]);
    order.push_back(model_.order[i]);
  }
  equations_ = std::move(equations);
  model_.order = std::move(order);
}

/// As many balances as rates that no line of its own gives.
void Builder::check_balances() {
  std::vector<std::string> unknown;
  for (size_t i = 0; i < has_rate_.size(); ++i) {
    if (has_rate_[i]) continue;
    unknown.push_back(model_.states[i].name + "'");
    model_.states[i].rate = rate_symbol(model_, static_cast<int>(i));
  }
  if (unknown.size() == model_.balances.size()) return;
  const auto line =
      std::find_if(lines_.begin(), lines_.end(), [](const EquationLine& l) { return l.kind == EquationLine::balance; });
  const size_t count = unknown.size(), shown = 6;
  if (count > shown) unknown.resize(shown);
  fail(line->left,
       fmt::format("{} equation{} for {} unknown rate{}", model_.balances.size(),
                   model_.balances.size() == 1 ? "" : "s", count, count == 1 ? "" : "s"),
       unknown.empty() ? "every rate here has a line of its own: remove one of them"
                       : fmt::format("write one equation for each of {}{}", fmt::join(unknown, ", "),
                                     count > shown ? ", ..." : ""));
}

}  // namespace saltus
