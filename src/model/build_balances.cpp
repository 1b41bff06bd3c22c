// Equations linear in rates: which states they have, before any name is known.
#include <algorithm>
#include <array>
#include <numeric>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "expr/letters.hpp"
#include "model/builder.hpp"

namespace saltus {
namespace {

/// The first place of a name in a line.
Fragment place_in(std::span<const Fragment> sides, const std::string& stem) {
  for (const Fragment& part : sides) {
    const Fragment* side = &part;
    for (size_t at = side->text.find(stem); at != stem.npos; at = side->text.find(stem, at + 1)) {
      const size_t end = at + stem.size();
      if ((at == 0 || !is_name_part(side->text[at - 1])) &&
          (end == side->text.size() || !is_name_part(side->text[end])))
        return side->part(at, stem.size());
    }
  }
  return sides[0];
}

}  // namespace

/// Names with two primes anywhere are coordinates. A line F = m*x'' with a parameter or state F is a balance.
void Builder::find_coordinates() {
  std::set<std::string, std::less<>> known;
  std::vector<Fragment> sides;
  for (const NamedText& p : text_.parameters) known.insert(p.name.text);
  for (const EquationLine& line : lines_) {
    for (const Fragment* side : {&line.left, &line.right}) {
      for (std::string& name : primed_names(side->text, 2)) coordinates_.insert(std::move(name));
    }
    const std::string stem = trimmed(line.left.part(0, line.left.text.find('['))).text;
    if (line.kind == EquationLine::rate) known.insert(stem);
    if (line.kind == EquationLine::rate && line.primes == 2) coordinates_.insert(stem);
    if (line.kind != EquationLine::rate && line.kind != EquationLine::function)
      sides.insert(sides.end(), {line.left, line.right});
    primes_in_formulas_ =
        primes_in_formulas_ || line.kind == EquationLine::balance || line.right.text.find('\'') != std::string::npos;
  }
  if (text_.mechanics) {  // what has a speed and no rate of its own moves by the Lagrangian
    primes_in_formulas_ = true;
    const std::vector<Fragment> formulas = mechanics_formulas();
    sides.insert(sides.end(), formulas.begin(), formulas.end());
    for (const Fragment& side : sides) {
      for (const size_t primes : {1u, 2u}) {
        for (std::string& name : primed_names(side.text, primes)) {
          if (!known.contains(name)) coordinates_.insert(std::move(name));
        }
      }
    }
  }
  known.insert(coordinates_.begin(), coordinates_.end());
  for (EquationLine& line : lines_) {
    const std::string stem = trimmed(line.left.part(0, line.left.text.find('['))).text;
    if (line.kind == EquationLine::name && known.contains(stem) && line.right.text.find('\'') != std::string::npos)
      line.kind = EquationLine::balance;
  }
}

std::vector<Fragment> Builder::mechanics_formulas() const {
  const MechanicsText& m = *text_.mechanics;
  std::vector<Fragment> all{m.lagrangian};
  if (m.dissipation) all.push_back(*m.dissipation);
  for (const NamedText& force : m.forces) all.push_back(force.value);
  return all;
}

/// Names that are not known yet, for reading which of them have primes.
void Builder::open_names() {
  anything_.build_on(names_);
  anything_.accept_all();
  parse_functions(anything_);
}

/// The balances of a line, and the states whose rates are in them.
void Builder::collect_balances(size_t number) {
  const auto add = [&](const Indices& indices) {
    if (equations_.size() >= most_equations) fail_too_many(number);
    const std::array sides{lines_[number].left, lines_[number].right};
    for (const Fragment& side : sides) collect_unknowns(side, indices, sides);
    model_.order.push_back({WrittenLine::balance, static_cast<int>(model_.balances.size())});
    model_.balances.emplace_back();
    equations_.push_back({number, values_of(indices)});
  };
  const std::optional<Fragment> range = lines_[number].range;
  if (range) lines_[number].indices = check_index_ranges(*range, names_);
  for_each_index(range, add);
}

/// The coordinates of the Lagrangian, which may be written with names.
void Builder::collect_mechanics() {
  if (!text_.mechanics) return;
  for (size_t i = 0; i < equations_.size(); ++i) {
    const EquationLine& line = lines_[equations_[i].line];
    if (line.kind != EquationLine::name || line.right.text.find('\'') == std::string::npos) continue;
    Indices indices;
    for (size_t k = 0; k < line.indices.size(); ++k) indices.emplace_back(line.indices[k], equations_[i].index[k]);
    collect_unknowns(line.right, indices, std::span(&line.right, 1));
  }
  collect_unknowns(text_.mechanics->lagrangian, {}, std::span(&text_.mechanics->lagrangian, 1));
}

void Builder::collect_unknowns(const Fragment& side, const Indices& indices, std::span<const Fragment> places) {
  const Expr formula = parse(side, anything_, indices);
  for (const Expr& s : symbols_in(std::span(&formula, 1))) {
    if (!s.is_symbol(SymbolKind::argument) || s.symbol().index == 0) continue;
    const size_t primes = static_cast<size_t>(s.symbol().index);
    const std::string name = s.symbol().name.substr(0, s.symbol().name.size() - primes);
    if (primes == 1 && is_coordinate(name) && !text_.mechanics) continue;  // its speed
    if (primes > 2)
      fail(place_in(places, name.substr(0, name.find('['))),
           fmt::format("'{}' is a derivative of order {}", s.symbol().name, primes),
           "derivatives go up to the second: give the acceleration a state of its own");
    add_unknown(name, primes == 2 || is_coordinate(name), places);
  }
}

/// A state that has no line of its own.
void Builder::add_unknown(const std::string& name, bool coordinate, std::span<const Fragment> sides) {
  if (states_.contains(name)) return;
  const size_t open = name.find('[');
  const std::string stem = name.substr(0, open);
  const Fragment& place = places_.emplace_back(place_in(sides, stem));
  if (open == name.npos) {
    registry_.claim(place, "a state");
  } else {
    const IndexedName member = *parse_indexed_name(whole_text("balance", name), names_);
    auto [it, fresh] = families_.try_emplace(
        stem, Family{EquationLine::rate, &place, {member.index, member.index, member.dimensions}, 0});
    Family& family = it->second;
    if (fresh) registry_.claim(place, "a state");
    if (family.kind != EquationLine::rate)
      fail(place, fmt::format("'{}' has a rate here, and elsewhere an equation without one", stem),
           "rename one of them");
    family.widen(member.index);
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

/// Checks that there are as many balances as rates without a line of their own.
void Builder::check_balances() {
  std::vector<std::string> unknown;
  for (size_t i = 0; i < has_rate_.size(); ++i) {
    if (has_rate_[i]) continue;
    unknown.push_back(model_.states[i].name + "'");
    model_.states[i].rate = rate_symbol(model_, static_cast<int>(i));
  }
  if (unknown.size() == model_.balances.size()) return;
  const size_t made = static_cast<size_t>(
      std::count_if(model_.balances.begin(), model_.balances.end(), [](const Balance& b) { return b.made; }));
  const auto line =
      std::find_if(lines_.begin(), lines_.end(), [](const EquationLine& l) { return l.kind == EquationLine::balance; });
  const size_t count = unknown.size(), shown = 6;
  if (count > shown) unknown.resize(shown);
  const size_t given = model_.balances.size() - made;
  const std::string equations = fmt::format("{} equation{}", given, given == 1 ? "" : "s");
  fail(line == lines_.end() ? text_.mechanics->lagrangian : line->left,
       fmt::format("{}{} for {} unknown rate{}", equations,
                   made > 0 ? fmt::format(" and {} of the Lagrangian", made) : "", count, count == 1 ? "" : "s"),
       unknown.empty() ? "every rate here has a line of its own: remove one of them"
                       : fmt::format("write one equation for each of {}{}", fmt::join(unknown, ", "),
                                     count > shown ? ", ..." : ""));
}

}  // namespace saltus
