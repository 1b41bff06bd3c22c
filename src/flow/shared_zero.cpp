#include "flow/shared_zero.hpp"

#include <unordered_map>

#include "base/index.hpp"
#include "model/linear_form.hpp"

namespace saltus {
namespace {

/// Functions to find a multiple of: by the first term of their linear form, the earliest added first.
class Multiples {
 public:
  void add(const Expr& function, int unknown) {
    LinearForm shape = linear_form(function);
    if (shape.terms.empty()) return;
    const auto key = shape.terms[0].first.node();
    by_term_[key].push_back({std::move(shape), unknown});
  }

  SharedZero find(const Expr& on) const {
    const LinearForm shape = linear_form(on);
    if (shape.terms.empty()) return {};
    const auto found = by_term_.find(shape.terms[0].first.node());
    if (found == by_term_.end()) return {};
    for (const auto& [other, unknown] : found->second) {
      if (const double factor = ratio(shape, other); factor != 0) return {unknown, factor < 0 ? -1 : 1};
    }
    return {};
  }

 private:
  using Key = decltype(std::declval<const Expr&>().node());
  std::unordered_map<Key, std::vector<std::pair<LinearForm, int>>> by_term_;
};

Multiples surfaces_and_gaps(const Form& form) {
  Multiples out;
  int unknown = 0;
  for (const Switch& s : form.switches) out.add(s.surface, unknown++);
  for (const Gap& g : form.gaps) {
    if (g.degree > 0) out.add(g.gap, unknown);  // otherwise its multiplier moves it
    ++unknown;
  }
  return out;
}

}  // namespace

std::vector<SharedZero> zeros_of_jumps(const Form& form) {
  std::vector<SharedZero> out;
  const Multiples functions = surfaces_and_gaps(form);
  for (const LoweredJump& jump : form.jumps) out.push_back(jump.every ? SharedZero{} : functions.find(jump.on));
  return out;
}

std::vector<SharedZero> zeros_of_sections(const Model& model) {
  const Form& form = model.form;
  Multiples functions = surfaces_and_gaps(form);
  const size_t unknowns = form.switches.size() + form.gaps.size();
  for (size_t k = 0; k < form.jumps.size(); ++k) {
    if (!form.jumps[k].every) functions.add(form.jumps[k].on, static_cast<int>(unknowns + k));
  }
  std::vector<SharedZero> out;
  for (size_t s = 0; s < model.sections.size(); ++s)
    out.push_back(model.sections[s].kind == Section::Kind::on ? functions.find(form.sections[s]) : SharedZero{});
  return out;
}

char SharedZero::letter(const Mode& mode) const {
  const size_t u = at(unknown), m = mode.switches.size();
  if (u < m) return mode.switches[u];
  return u - m < mode.constraints.size() ? mode.constraints[u - m] : ' ';
}

bool SharedZero::rests(const Mode& mode) const {
  if (unknown < 0) return false;
  const char c = letter(mode);
  return c == '0' || c == '=' || c == 'c';
}

int SharedZero::known(const Moment& now) const {
  return unknown < 0 || rests(now.mode) || at(unknown) >= now.known.size() ? 0 : now.known[at(unknown)];
}

int SharedZero::sign(const Mode& mode) const {
  const char c = letter(mode);
  return side * (c == '-' ? -1 : c == '+' || c == 'o' ? 1 : 0);
}

}  // namespace saltus
