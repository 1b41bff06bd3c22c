// Constraints, jumps and sections.
#include <cmath>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "expr/letters.hpp"
#include "expr/print.hpp"
#include "model/builder.hpp"

namespace saltus {

void Builder::parse_constraints() {
  size_t next = 0;
  for (const ConstraintText& c : text_.constraints) {
    for_each_index(c.range, [&](const Indices& indices) {
      Constraint& constraint = model_.constraints[next++];
      constraint.gap = parse(c.gap, names_, indices);
      constraint.joint = c.joint;
      constraint.place = place_of(c.gap);
      used_.push_back(constraint.gap);
      if (contains_kind(constraint.gap, SymbolKind::rate))
        fail(c.gap, "this gap depends on a rate that the balances give",
             "a gap depends on states, time and multipliers");
      if (c.friction) parse_friction(constraint, c, indices);
      if (!c.restitution) return;
      constraint.restitution = formula(*c.restitution, indices);
      constraint.restitution_place = place_of(*c.restitution);
    });
  }
}

/// Coulomb's coefficient with one tangential velocity, or two of a plane.
void Builder::parse_friction(Constraint& constraint, const ConstraintText& c, const Indices& indices) {
  constraint.friction = formula(*c.friction, indices);
  constraint.friction_place = place_of(c.slip[0]);
  for (const Fragment& slip : c.slip) constraint.slip.push_back(formula(slip, indices));
  if (c.tangential) constraint.tangential = formula(*c.tangential, indices);
  const auto direction = [&](const std::string& text) {
    constraint.slip_sign.push_back(parse(whole_text("slip", text), names_, indices));
  };
  if (c.slip.size() == 1) return direction(fmt::format("sign({})", c.slip[0].text));
  direction(fmt::format("unit({}, {})", c.slip[0].text, c.slip[1].text));
  direction(fmt::format("unit({}, {})", c.slip[1].text, c.slip[0].text));
}

void Builder::parse_jumps() {
  for (const JumpText& j : text_.jumps) {
    claim_event(jumps_, j.name, "a jump");
    for_each_index(j.range, [&](const Indices& indices) { parse_jump(j, indices); });
  }
}

void Builder::parse_jump(const JumpText& j, const Indices& indices) {
  Jump jump{
      .name = indexed_text(j.name.text, indices), .direction = j.direction, .place = place_of(j.on ? *j.on : *j.every)};
  jump.level = j.level;
  if (j.on) jump.on = crossed_formula(*j.on, indices, "; put other conditions into when");
  if (j.every) jump.every = positive_time(*j.every, "jump", indices);
  if (j.phase) jump.phase = finite_time(*j.phase, indices);
  if (j.when) jump.when = without_multiplier(parse_condition(*j.when, without_multipliers_, indices), *j.when);
  std::unordered_map<size_t, size_t> place;  // of a state among those set
  for (const bool single : {false, true}) {
    for (const NamedText& s : j.set) {
      for_each_state(s.name, indices, single, "set", [&](size_t state, const Indices& all) {
        const auto [it, fresh] = place.try_emplace(state, jump.set.size());
        if (fresh) jump.set.push_back({.state = static_cast<int>(state)});
        jump.set[it->second].value = formula(s.value, all);
      });
    }
  }
  jump_index_.emplace(jump.name, static_cast<int>(model_.jumps.size()));
  model_.jumps.push_back(std::move(jump));
}

void Builder::parse_sections() {
  for (const SectionText& s : text_.sections) {
    claim_event(sections_, s.name, "a section");
    for_each_index(s.range, [&](const Indices& indices) {
      Section section{.name = indexed_text(s.name.text, indices),
                      .direction = s.direction,
                      .stop = s.stop,
                      .place = place_of(s.every ? *s.every : *s.on)};
      if (s.every) {
        section.value = positive_time(*s.every, "section", indices);
      } else {
        parse_on(section, *s.on, indices);
      }
      model_.sections.push_back(std::move(section));
    });
  }
}

void Builder::parse_on(Section& section, const Fragment& on, const Indices& indices) {
  const Fragment text = trimmed(on);
  std::string name = text.text;
  if (const auto indexed = parse_indexed_name(text, names_, indices)) name = indexed->text();
  if (const auto found = constraints_.find(name); found != constraints_.end()) {
    section.kind = Section::Kind::constraint;
    section.index = found->second;
  } else if (const auto jump = jump_index_.find(name); jump != jump_index_.end()) {
    section.kind = Section::Kind::jump;
    section.index = jump->second;
  } else {
    section.kind = Section::Kind::on;
    section.value = crossed_formula(on, indices, "");
  }
}

namespace {

/// How to write a comparison as a formula that passes zero; nothing where it is more than one comparison.
std::optional<std::string> as_crossing(std::string_view text) {
  const size_t at = text.find_first_of("<>");
  if (text.find_first_of("<>&|", at + 1) != std::string_view::npos) return std::nullopt;
  for (const std::string_view word : {" and ", " or ", "not ", "not("}) {
    if (text.find(word) != std::string_view::npos) return std::nullopt;
  }
  const auto trim = [](std::string_view part) {
    const size_t first = part.find_first_not_of(' '), last = part.find_last_not_of(' ');
    return first == std::string_view::npos ? std::string_view{} : part.substr(first, last + 1 - first);
  };
  const std::string_view left = trim(text.substr(0, at));
  const std::string_view right = trim(text.substr(at + (text[at + 1] == '=' ? 2 : 1)));
  std::string passes(left);
  if (right != "0") {
    const bool sum = right.find_first_of("+-") != std::string_view::npos;
    passes += sum ? fmt::format(" - ({})", right) : fmt::format(" - {}", right);
  }
  return fmt::format("write on = \"{}\" and direction = \"{}\"", passes, text[at] == '>' ? "rising" : "falling");
}

}  // namespace

/// The formula of `on`. A comparison is what people write first.
Expr Builder::crossed_formula(const Fragment& on, const Indices& indices, std::string_view conditions) {
  if (on.text.find_first_of("<>") != std::string::npos) {
    bool is_comparison = true;
    try {
      parse_condition(on, names_, indices);
    } catch (const Error&) {
      is_comparison = false;
    }
    if (is_comparison)
      fail(on, "'on' is a formula that passes zero, not a comparison",
           as_crossing(on.text).value_or(fmt::format(
               "write on = \"x - 1\" and direction = \"rising\" for the moment at which x > 1 becomes true{}",
               conditions)));
  }
  return formula(on, indices);
}

/// Jumps and sections have names of their own: they may be called like a function, a state or each other.
void Builder::claim_event(NameRegistry& registry, const Fragment& name, std::string_view role) {
  if (!is_name(name.text) && !parse_indexed_name(name, names_))
    fail(name, fmt::format("'{}' is not a name", name.text), "a name is a letter followed by letters, digits and _");
  registry.enter(name.text, name, role, "rename one of them");
}

/// The interval of a clock.
Expr Builder::positive_time(const Fragment& every, std::string_view of, const Indices& indices) {
  Expr value = constant(every, indices);
  const double interval = constant_value(value, parameter_values_);
  if (!(interval > 0) || !std::isfinite(interval)) {
    fail(every,
         fmt::format("the interval of the {} is {}", of,
                     std::isfinite(interval) ? print_number(interval) : std::string(not_finite(interval))),
         "give a positive time");
  }
  return value;
}

Expr Builder::finite_time(const Fragment& text, const Indices& indices) {
  Expr value = constant(text, indices);
  const double v = constant_value(value, parameter_values_);
  if (!std::isfinite(v)) fail(text, fmt::format("the time is {}", not_finite(v)), "give a finite number");
  return value;
}

}  // namespace saltus
