#include "model/program.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "expr/diff.hpp"
#include "model/derive.hpp"
#include "model/ladder.hpp"
#include "model/vanishing.hpp"

namespace saltus {
namespace {

struct Addend {
  Expr value;
  bool negative = false;

  friend bool operator==(const Addend&, const Addend&) = default;
};

void list_addends(const Expr& e, bool negative, std::vector<Addend>& out) {
  if (e.op() == Op::neg) return list_addends(e.argument(0), !negative, out);
  if (e.op() != Op::add && e.op() != Op::sub) return out.push_back({e, negative});
  list_addends(e.argument(0), negative, out);
  list_addends(e.argument(1), negative != (e.op() == Op::sub), out);
}

/// a - b without what they share: the two sides of a friction differ by the friction alone.
Expr difference(const Expr& a, const Expr& b) {
  if (a.op() == Op::div && b.op() == Op::div && a.argument(1) == b.argument(1))
    return difference(a.argument(0), b.argument(0)) / a.argument(1);
  std::vector<Addend> left, right;
  list_addends(a, false, left);
  list_addends(b, false, right);
  std::erase_if(right, [&](const Addend& addend) {
    const auto same = std::find(left.begin(), left.end(), addend);
    if (same == left.end()) return false;
    left.erase(same);
    return true;
  });
  for (Addend& addend : right) left.push_back({addend.value, !addend.negative});
  Expr sum = 0.0;
  for (const Addend& addend : left) sum = addend.negative ? sum - addend.value : sum + addend.value;
  return sum;
}

/// The formulas of the model with the switches of one mode put in.
class Specialisation {
 public:
  Specialisation(const Model& model, const std::string& key) : model_(model) {
    const Form& form = model.form;
    for (size_t i = 0; i < key.size(); ++i) {
      const Expr sigma = sigma_symbol(form, static_cast<int>(i));
      if (key[i] == '+') fixed_.emplace(sigma, 1.0);
      if (key[i] == '-') fixed_.emplace(sigma, -1.0);
      if (key[i] == '=') fixed_.emplace(sigma, 0.0);
      if (key[i] == '0' && form.switches[i].vector < 0) slid_.push_back(sigma);
      if (key[i] == '|') rest_.emplace_back(sigma, form.switches[i].surface);
    }
    const auto put = [this](const Expr& e, std::span<const Expr> a) {
      if (!a.empty()) return make(e.op(), a);
      const auto found = fixed_.find(e);
      return found == fixed_.end() ? e : found->second;
    };
    for (const VectorSwitch& v : form.vectors) {
      if (v.parts.empty() || key[static_cast<size_t>(v.parts[0])] != '~') continue;
      Rebuild rebuild(put);
      lengths_.emplace_back(v.parts[0], length_of(form, v, rebuild));
      for (const int part : v.parts)
        directions_.emplace_back(part,
                                 rebuild(form.switches[static_cast<size_t>(part)].surface) / lengths_.back().second);
    }
    for (const auto& [part, direction] : directions_) fixed_.emplace(sigma_symbol(form, part), direction);
    put_.emplace(put);
  }

  /// |h| of the vector switches that slip, by their first component.
  const std::vector<std::pair<int, Expr>>& lengths() const { return lengths_; }

  Expr operator()(const Expr& e) {
    Expr out = (*put_)(e);
    for (const Expr& sigma : slid_) {
      if (!depends_on(out, sigma)) continue;
      const Expr plus = substitute(out, {{sigma, 1.0}}), minus = substitute(out, {{sigma, -1.0}});
      out = (plus + minus) / Expr(2) + sigma * (difference(plus, minus) / Expr(2));
    }
    for (const auto& [sigma, surface] : rest_) {
      if (!depends_on(out, sigma)) continue;
      const Expr plus = substitute(out, {{sigma, 1.0}}), minus = substitute(out, {{sigma, -1.0}});
      out = (restrict_to(surface, plus) + restrict_to(surface, minus)) / Expr(2);
    }
    return out;
  }

 private:
  static Expr length_of(const Form& form, const VectorSwitch& v, Rebuild& rebuild) {
    Expr square = 0.0;
    for (const int part : v.parts) {
      const Expr h = rebuild(form.switches[static_cast<size_t>(part)].surface);
      square = square + h * h;
    }
    return make(Op::sqrt, std::array{square});
  }

  const Model& model_;
  std::vector<std::pair<int, Expr>> lengths_, directions_;  // of vector switches that slip
  ExprMap<Expr> fixed_;
  std::vector<Expr> slid_;
  std::vector<std::pair<Expr, Expr>> rest_;  // sigma and surface
  std::optional<Rebuild> put_;
};

/// The switches with which the surface of another one jumps, if something jumps on that: both may be slid on, and h = 0
/// then gives the sigma inside it.
std::vector<Expr> movers(const Form& form, const Switch& s) {
  std::vector<Expr> out;
  if (s.kink) return out;
  for (const Partial& d : gradient(s.surface, SymbolKind::sigma)) {
    // abs(v) has the switch of v, but no jump: its factor vanishes on v = 0.
    const Expr& h = form.switches[static_cast<size_t>(d.symbol.symbol().index)].surface;
    const Expr jump = restrict_to(h, d.value);
    const auto states = symbols_in(std::span(&h, 1));
    const bool unclear = jump == d.value && std::any_of(states.begin(), states.end(), [&](const Expr& e) {
                           return e.is_symbol(SymbolKind::state) && depends_on(jump, e);
                         });
    if (!jump.is_number(0) && !unclear) out.push_back(d.symbol);
  }
  return out;
}

/// The formulas of one mode; ladders by residual: switches, gaps, raised gaps.
struct ModeFormulas {
  Form form;  ///< its rates only
  std::vector<Expr> surfaces, gaps;
  std::vector<Ladder> ladders;
};

/// The contents of the key of a mode (Program::formula_key).
struct ModeKey {
  std::string letters;    // per switch
  std::vector<int> slid;  // where letters are those of one mode: what is slid on in it
  bool lettered = false;

  ModeKey(const std::string& key, int switches)
      : letters(key.substr(0, static_cast<size_t>(switches))), lettered(key.size() > letters.size()) {
    for (size_t i = letters.size(); i < key.size(); ++i) {
      if (key[i] == '0') slid.push_back(static_cast<int>(i - letters.size()));
    }
  }
};

ModeFormulas mode_formulas(const Form& form, const ModeKey& mode, Specialisation& put, double attract) {
  const std::string& key = mode.letters;
  ModeFormulas out;
  for (const Expr& f : form.f) out.form.f.push_back(put(f));
  for (const Switch& s : form.switches) out.surfaces.push_back(put(s.surface));
  for (const Gap& g : form.gaps) out.gaps.push_back(put(g.gap));
  for (const auto& [first, length] : put.lengths()) out.surfaces[static_cast<size_t>(first)] = length;
  for (size_t i = 0; i < key.size(); ++i) {
    const bool open = key[i] == '*' || key[i] == '0';
    const auto moved = open ? movers(form, form.switches[i]) : std::vector<Expr>{};
    const Expr& h = out.surfaces[i];
    if (std::any_of(moved.begin(), moved.end(), [&](const Expr& sigma) { return depends_on(h, sigma); })) {
      out.ladders.push_back({.residual = h, .degree = 0});
    } else {
      out.ladders.push_back(open ? climb_surface(h, out.form) : Ladder{.rungs = {h}, .residual = {}});
    }
  }
  if (mode.slid.size() > 1) raise_together(out.ladders, mode.slid, out.form);
  for (size_t j = 0; j < form.gaps.size(); ++j)
    out.ladders.push_back(climb_gap(out.gaps[j], out.form, form.gaps[j].degree));
  for (size_t j = 0; j < form.gaps.size(); ++j) {
    ExprMap<Expr> none;
    for (const Partial& d : gradient(out.gaps[j], SymbolKind::lambda)) none.emplace(d.symbol, 0.0);
    const bool algebraic = form.gaps[j].degree == 0;
    out.ladders.push_back(algebraic ? climb_gap(substitute(out.gaps[j], none), out.form, 1) : Ladder{});
  }
  // The ladders are those of the flow itself: h' = 0 gives sigma, and the term below brings h back to zero.
  for (size_t i = 0; attract > 0 && i < key.size(); ++i) {
    if (key[i] != '0' || out.ladders[i].degree != 1) continue;
    for (const Partial& d : gradient(out.surfaces[i], SymbolKind::state)) {
      Expr& rate = out.form.f[static_cast<size_t>(d.symbol.symbol().index)];
      rate = rate - Expr(attract) * out.surfaces[i] * d.value;
    }
  }
  return out;
}

}  // namespace

Form specialised_form(const Model& model, const std::string& key) {
  const Form& form = model.form;
  Specialisation put(model, key);
  Form out;
  for (const Expr& f : form.f) out.f.push_back(put(f));
  for (const Switch& s : form.switches) out.switches.push_back({.name = s.name, .surface = put(s.surface)});
  for (const Gap& g : form.gaps) out.gaps.push_back({.gap = put(g.gap), .joint = g.joint, .degree = g.degree});
  for (const Counter& c : form.counters) out.counters.push_back({.phase = put(c.phase)});
  out.counter_values = form.counter_values;
  for (const LoweredJump& j : form.jumps) out.jumps.push_back({.on = put(j.on), .direction = j.direction});
  for (const Expr& s : form.sections) out.sections.push_back(put(s));
  return out;
}

Program::Program(Model model, double attract)
    : model_(std::make_shared<const Model>(std::move(model))), attract_(attract) {
  const Form& form = model_->form;
  n_ = static_cast<int>(form.f.size());
  m_ = static_cast<int>(form.switches.size());
  q_ = static_cast<int>(form.gaps.size());
  jumps_ = static_cast<int>(form.jumps.size());
  sections_ = static_cast<int>(form.sections.size());
  counters_ = static_cast<int>(form.counters.size());

  vanishing_ = vanishing_sets(form.f);
  plain_.assign(form.switches.size(), true);
  for (size_t i = 0; i < form.switches.size(); ++i) {
    const Switch& s = form.switches[i];
    const auto used = symbols_in(std::span(&s.surface, 1));
    moves_.push_back(std::any_of(used.begin(), used.end(), [](const Expr& e) {
      return e.is_symbol(SymbolKind::state) || e.is_symbol(SymbolKind::time) || e.is_symbol(SymbolKind::sigma) ||
             e.is_symbol(SymbolKind::counter) || e.is_symbol(SymbolKind::lambda);
    }));
    nested_.push_back(contains_kind(s.surface, SymbolKind::sigma));
    any_nested_ = any_nested_ || nested_.back();
    if (s.selects || s.vector >= 0 || s.surface.is_symbol(SymbolKind::lambda)) plain_[i] = false;
  }
  for (const Switch& s : form.switches) {  // its ladder depends on whether the switches inside it are slid on
    for (const Expr& sigma : movers(form, s)) plain_[at(sigma.symbol().index)] = false;
  }
  for (const Switch& s : form.switches)
    solvable_.push_back(!contains_kind(s.surface, SymbolKind::sigma) && restrict_to(s.surface, s.surface).is_number(0));
  timed_.assign(form.switches.size(), false);
  for (const int i : form.order) {
    const auto used = symbols_in(std::span(&form.switches[at(i)].surface, 1));
    timed_[at(i)] = std::none_of(used.begin(), used.end(), [this](const Expr& e) {
      return e.is_symbol(SymbolKind::state) || e.is_symbol(SymbolKind::lambda) ||
             (e.is_symbol(SymbolKind::sigma) && !timed_[at(e.symbol().index)]);
    });
  }
  std::vector<Expr> all = form.f;
  for (const Switch& s : form.switches) {
    if (contains_kind(s.surface, SymbolKind::sigma)) all.push_back(s.surface);
  }
  for (const Gap& g : form.gaps) all.push_back(g.gap);
  Gradients slopes;
  ExprMap<Derivative> by;
  for (const Expr& e : all) {  // a switch that enters any of them nonlinearly is not plain
    for (const Partial& d : slopes.of(e, SymbolKind::sigma)) {
      const size_t i = static_cast<size_t>(d.symbol.symbol().index);
      Derivative& slope = by.try_emplace(d.symbol, d.symbol).first->second;
      if (plain_[i] && !slope(d.value).is_number(0)) plain_[i] = false;
    }
  }

  std::vector<Expr> points;
  const auto add_point = [&](const Expr& y, const Ladder& ladder) {
    point_start_.push_back(points.size());
    points.push_back(y);
    for (size_t k = 1; k < ladder.rungs.size(); ++k) points.push_back(ladder.rungs[k]);
    point_degree_.push_back(static_cast<int>(points.size() - point_start_.back()));
  };
  entering_.resize(form.switches.size());
  for (int i = 0; i < m_; ++i) {
    const Expr& surface = form.switches[at(i)].surface;
    const Ladder ladder = climb_surface(surface, form);
    add_point(surface, ladder);
    if (ladder.degree > 0 && !nested_[at(i)]) note_entering(i, ladder.residual);
  }
  std::vector<Expr> gap_rates;
  for (const Gap& g : form.gaps) {
    const Ladder ladder = climb_gap(g.gap, form, g.degree);
    add_point(g.gap, ladder);
    gap_rates.push_back(g.degree == 2 && ladder.rungs.size() > 1 ? ladder.rungs[1] : Expr(0.0));
  }
  point_jumps_ = points.size();
  for (const LoweredJump& j : form.jumps) points.push_back(j.on);
  for (const Expr& s : form.sections) points.push_back(s);
  points_ = build_tape(points, {n_, m_, q_, form.counter_values});

  for (const Gap& g : form.gaps) {
    any_joint_ = any_joint_ || g.joint;
    std::vector<int>& inside = impact_switches_.emplace_back();
    for (const Assignment& a : g.direction) {
      for (const Expr& s : symbols_in(std::span(&a.value, 1))) {
        if (s.is_symbol(SymbolKind::sigma) && moves_[at(s.symbol().index)]) inside.push_back(s.symbol().index);
      }
    }
  }
  dependents_.resize(form.switches.size());
  if (any_nested_) find_dependents();
  find_bends(gap_rates);
  open_ = plain_;
  if (!any_carried_ && attract_ == 0) open_where_many(all);
  number_actions();
}

/// Impulses move the states of all directions of contacts; a function that is not linear in them changes on the way.
void Program::find_bends(std::span<const Expr> gap_rates) {
  const Form& form = model_->form;
  std::vector<char> moved(form.f.size(), 0);
  for (const Gap& g : form.gaps) {
    for (const Assignment& a : g.direction) moved[at(a.state)] = g.degree == 2;
  }
  const auto feels = [&](const Expr& e) {
    const std::vector<Expr> symbols = symbols_in(std::span(&e, 1));
    return std::any_of(symbols.begin(), symbols.end(),
                       [&](const Expr& s) { return s.is_symbol(SymbolKind::state) && moved[at(s.symbol().index)]; });
  };
  const auto curved = [&](const Expr& e) {
    const std::vector<Expr> symbols = symbols_in(std::span(&e, 1));
    return std::any_of(symbols.begin(), symbols.end(), [&](const Expr& s) {
      return s.is_symbol(SymbolKind::state) && moved[at(s.symbol().index)] && feels(differentiate(e, s));
    });
  };
  std::vector<bool> out(form.gaps.size(), false);
  for (size_t j = 0; j < out.size(); ++j) {
    const Gap& g = form.gaps[j];
    if (g.degree != 2) continue;
    out[j] = curved(gap_rates[j]);
    for (const Assignment& a : g.direction) out[j] = out[j] || feels(a.value);
    for (const int i : impact_switches_[j]) out[j] = out[j] || curved(form.switches[at(i)].surface);
  }
  if (std::count(out.begin(), out.end(), true) > 0) bends_ = std::move(out);
}

/// Modes of many switches are too many to be compiled one by one. One that enters nonlinearly, but linearly on its own
/// surface (sigma/(1 + v*sigma) on v = 0), needs no formulas of its own: beside the surface its sigma is a number, and
/// on it the formula with sigma is the interpolation of its two sides.
void Program::open_where_many(std::span<const Expr> formulas) {
  constexpr std::ptrdiff_t many = 6, most_in_one = 16;
  if (std::count(plain_.begin(), plain_.end(), false) < many) return;
  const Form& form = model_->form;
  std::vector<bool> may = plain_;
  for (size_t i = 0; i < may.size(); ++i)
    may[i] = may[i] || !(form.switches[i].selects || form.switches[i].vector >= 0 ||
                         form.switches[i].surface.is_symbol(SymbolKind::lambda));
  for (const Switch& s : form.switches) {
    for (const Expr& sigma : movers(form, s)) may[at(sigma.symbol().index)] = false;
  }
  for (const Expr& e : formulas) {
    std::vector<Expr> bent = symbols_in(std::span(&e, 1));
    std::erase_if(bent, [&](const Expr& s) { return !s.is_symbol(SymbolKind::sigma) || plain_[at(s.symbol().index)]; });
    for (const Expr& s : bent) {
      const size_t i = at(s.symbol().index);
      if (std::ssize(bent) > most_in_one) may[i] = false;  // a mean field
      if (!may[i]) continue;
      const auto bends = [&](const Expr& f) { return differentiate(differentiate(f, s), s); };
      const Expr& surface = form.switches[i].surface;  // sqrt(abs(v))*sigma has no slope there
      may[i] = bends(restrict_to(surface, e)).is_number(0) && restrict_to(surface, bends(e)).is_number(0);
    }
  }
  if (std::count(may.begin(), may.end(), true) - std::count(plain_.begin(), plain_.end(), true) >= many) open_ = may;
}

Program::Program(Model model, ProgramPart part)
    : model_(std::make_shared<const Model>(std::move(model))),
      n_(static_cast<int>(model_->states.size())),
      m_(static_cast<int>(model_->form.switches.size())),
      q_(static_cast<int>(model_->form.gaps.size())),
      jumps_(static_cast<int>(model_->form.jumps.size())),
      sections_(0),
      counters_(0),
      plain_(at(m_), true),
      moves_(std::move(part.moves)),
      nested_(at(m_), false),
      timed_(std::move(part.timed)),
      open_(at(m_), true),
      solvable_(at(m_), false),
      dependents_(at(m_)),
      impact_switches_(std::move(part.impact_switches)),
      vanishing_(std::move(part.vanishing)),
      entering_(at(m_)),
      points_(std::move(part.points)),
      point_degree_(std::move(part.point_degree)) {
  for (const int degree : point_degree_) {
    point_start_.push_back(point_jumps_);
    point_jumps_ += at(degree);
  }
  number_actions();
  tapes_.emplace(std::string(at(m_), '*'), std::make_unique<ModeTape>(std::move(part.mode)));
}

void Program::number_actions() {
  const Form& form = model_->form;
  size_t next = form.definitions.size();
  restitutions_ = next;
  next += form.gaps.size();
  for (const Gap& g : form.gaps) {
    directions_.push_back(next);
    next += g.direction.size();
  }
}

void Program::find_dependents() {
  const Form& form = model_->form;
  // Backwards, so that the dependents of what depends on a switch are known.
  std::vector<std::vector<int>> direct(form.switches.size());
  for (const int i : form.order) {
    for (const Expr& s : symbols_in(std::span(&form.switches[at(i)].surface, 1))) {
      if (s.is_symbol(SymbolKind::sigma)) direct[at(s.symbol().index)].push_back(i);
    }
  }
  std::vector<int> place(form.switches.size());
  for (size_t k = 0; k < form.order.size(); ++k) place[at(form.order[k])] = static_cast<int>(k);
  for (auto it = form.order.rbegin(); it != form.order.rend(); ++it) {
    std::vector<int>& all = dependents_[at(*it)];
    for (const int d : direct[at(*it)]) {
      all.push_back(d);
      all.insert(all.end(), dependents_[at(d)].begin(), dependents_[at(d)].end());
    }
    std::sort(all.begin(), all.end(), [&](int a, int b) { return place[at(a)] < place[at(b)]; });
    all.erase(std::unique(all.begin(), all.end()), all.end());
  }
}

void Program::note_entering(int i, const Expr& residual) {
  if (model_->form.switches[at(i)].kink || vector_of(i) >= 0 || contains_kind(residual, SymbolKind::lambda)) return;
  for (const Expr& s : symbols_in(std::span(&residual, 1))) {
    if (s.is_symbol(SymbolKind::sigma)) entering_[at(i)].push_back(s.symbol().index);
  }
  any_carried_ = any_carried_ || carried(i);
}

bool Program::carried(int i) const {
  const std::vector<int>& sigma = entering_[at(i)];
  return !sigma.empty() && std::find(sigma.begin(), sigma.end(), i) == sigma.end();
}

bool Program::gives_each(const std::string& switch_modes) const {
  std::vector<int> row_of(at(m_), -1);  // per sigma slid with: the surface that gives it
  for (int i = 0; i < m_; ++i) {
    if (switch_modes[at(i)] == '0' && !carried(i)) row_of[at(i)] = i;
  }
  std::vector<char> seen;
  const auto find = [&](auto& self, int i) -> bool {  // a way on which each surface takes the sigma of the next
    for (const int s : entering_[at(i)]) {
      if (switch_modes[at(s)] != '0' || seen[at(s)]) continue;
      seen[at(s)] = 1;
      if (row_of[at(s)] >= 0 && !self(self, row_of[at(s)])) continue;
      row_of[at(s)] = i;
      return true;
    }
    return false;
  };
  for (int i = 0; i < m_; ++i) {
    if (switch_modes[at(i)] != '0' || !carried(i)) continue;
    seen.assign(at(m_), 0);
    if (!find(find, i)) return false;
  }
  return true;
}

std::string Program::formula_key(const std::string& switch_modes) const {
  std::string out = key(switch_modes);
  if (!any_carried_ || gives_each(switch_modes)) return out;
  for (size_t k = 0; k < out.size(); ++k) {
    const char c = switch_modes[k];
    if (out[k] != '*' || c == '0') continue;
    const int value = c == '=' ? model_->form.switches[k].at_zero : c == '+' ? 1 : -1;
    out[k] = value > 0 ? '+' : value < 0 ? '-' : '=';
  }
  for (const char c : switch_modes) out += c == '0' ? '0' : '.';
  return out;
}

std::string Program::key(const std::string& switch_modes) const {
  std::string out = switch_modes;
  for (size_t i = 0; i < out.size(); ++i) {
    if (model_->form.switches[i].vector >= 0) {  // one that leaves rest has unknowns, too
      if (out[i] != '0') out[i] = out[i] == '^' ? '0' : '~';
      continue;
    }
    if (out[i] == '=') {
      const int value = model_->form.switches[i].at_zero;
      const char between = model_->form.switches[i].may_be_zero ? '=' : solvable_[i] ? '|' : '0';
      out[i] = value > 0 ? '+' : value < 0 ? '-' : between;
    }
    if (plain_[i] && !(attract_ > 0 && out[i] == '0')) out[i] = '*';
  }
  return out;
}

const ModeTape& Program::tape(const std::string& switch_modes) const {
  assert(static_cast<int>(switch_modes.size()) == m_);
  std::string k = formula_key(switch_modes);
  for (size_t i = 0; i < open_.size(); ++i) {
    if (open_[i] && !plain_[i]) k[i] = '*';
  }
  std::lock_guard lock(mutex_);
  std::unique_ptr<ModeTape>& entry = tapes_[k];
  if (!entry) entry = specialise(k);
  return *entry;
}

std::unique_ptr<ModeTape> Program::specialise(const std::string& mode_key) const {
  const Form& form = model_->form;
  const ModeKey k(mode_key, m_);
  Specialisation put(*model_, k.letters);
  const ModeFormulas formulas = mode_formulas(form, k, put, attract_);
  const std::vector<Expr>& rates = formulas.form.f;
  const TapeInputs inputs{n_, m_, q_, model_->form.counter_values};
  auto mode = std::make_unique<ModeTape>();

  ExprMap<int> rate_of;  // rates with both signs
  for (int i = 0; i < n_; ++i) {
    rate_of.emplace(rates[at(i)], i);
    rate_of.emplace(-rates[at(i)], i);
  }
  // States whose rates are zero together with the residual: those of a surface that is a sum of states with fixed
  // weights.
  const auto moves = [&](const Ladder& ladder) -> std::vector<int> {
    if (const auto rate = rate_of.find(ladder.residual); rate != rate_of.end()) return {rate->second};
    if (ladder.rungs.empty()) return {};
    const Expr& surface = ladder.rungs[0];
    const std::vector<Expr> symbols = symbols_in(std::span(&surface, 1));
    const bool alone = std::all_of(symbols.begin(), symbols.end(), [](const Expr& e) {
      return e.is_symbol(SymbolKind::state) || e.is_symbol(SymbolKind::parameter);
    });
    std::vector<int> states;
    for (const Partial& slope : gradient(surface, SymbolKind::state)) {
      if (!alone || !slope.value.is_number()) return {};
      states.push_back(slope.symbol.symbol().index);
    }
    return states;
  };
  Gradients gradients;
  std::vector<Expr> manifold, slope, residuals;
  // On its own surface a switch that is open without being plain is linear.
  const auto on_surface = [&](int u, const Expr& e) {
    const bool bent = u < m_ && open_[at(u)] && !plain_[at(u)] && k.letters[at(u)] == '*';
    return bent ? restrict_to(form.switches[at(u)].surface, e) : e;
  };
  std::pair<size_t, size_t> same_entries{0, 0};  // those of the residual before: where, and how many
  const auto add_unknown = [&](const Ladder& ladder) {
    const int row = static_cast<int>(residuals.size());
    const Expr residual = on_surface(row, ladder.residual);
    residuals.push_back(residual);
    mode->degree.push_back(ladder.degree);
    mode->moves.push_back(moves(ladder));
    std::vector<ManifoldFunction>& functions = mode->manifolds.emplace_back();
    for (const Expr& rung : ladder.rungs) {
      ManifoldFunction function{.value = static_cast<int>(manifold.size())};
      manifold.push_back(rung);
      for (const Partial& d : gradients(rung, SymbolKind::state)) {
        function.gradient.emplace_back(d.symbol.symbol().index, static_cast<int>(manifold.size()));
        manifold.push_back(d.value);
      }
      functions.push_back(std::move(function));
    }
    const bool again = row > 0 && residual == residuals[static_cast<size_t>(row) - 1];
    size_t known = same_entries.first;
    if (again) {  // one formula for many rows (thresholds of one state) has one set of slopes
      for (size_t n = 0; n < same_entries.second; ++n, ++known) {
        SlopeEntry entry = mode->slope_entries[known];
        entry.row = row;
        mode->slope_entries.push_back(entry);
      }
      return;
    }
    same_entries.first = mode->slope_entries.size();
    for (const SymbolKind kind : {SymbolKind::sigma, SymbolKind::lambda}) {
      for (const Partial& d : gradients.of(residual, kind)) {
        const int column = d.symbol.symbol().index + (kind == SymbolKind::lambda ? m_ : 0);
        mode->slope_entries.push_back({row, column, static_cast<int>(slope.size())});
        slope.push_back(on_surface(column, d.value));
        if (has_unknowns(slope.back())) mode->slope_affine = false;
      }
    }
    same_entries.second = mode->slope_entries.size() - same_entries.first;
  };
  for (const Ladder& ladder : formulas.ladders) add_unknown(ladder);
  const std::vector<Expr> raised(residuals.begin() + m_ + q_, residuals.end());
  residuals.resize(at(m_ + q_));

  std::vector<Expr> flow = rates;
  const auto append = [&](const std::vector<Expr>& more) { flow.insert(flow.end(), more.begin(), more.end()); };
  append(formulas.surfaces);
  append(residuals);
  append(formulas.gaps);
  for (const LoweredJump& j : form.jumps) flow.push_back(put(j.on));
  for (const Expr& s : form.sections) flow.push_back(put(s));
  for (const Counter& c : form.counters) flow.push_back(put(c.phase));
  append(raised);

  std::vector<Expr> actions;
  for (const Expr& d : form.definitions) actions.push_back(put(d));
  for (const Gap& g : form.gaps) actions.push_back(g.restitution ? put(*g.restitution) : Expr(0.0));
  for (const Gap& g : form.gaps) {
    for (const Assignment& a : g.direction) actions.push_back(put(a.value));
  }

  mode->lettered = k.lettered;
  mode->flow = build_tape(flow, inputs);
  mode->add_spare(unknowns());
  mode->slope = build_tape(slope, inputs);
  mode->slope_constant =
      std::all_of(mode->slope.constant.begin(), mode->slope.constant.end(), [](bool c) { return c; });
  mode->manifold = build_tape(manifold, inputs);
  mode->actions = build_tape(actions, inputs);
  return mode;
}

const JacobianTape& Program::jacobian(const std::string& switch_modes) const {
  assert(static_cast<int>(switch_modes.size()) == m_);
  const std::string k = formula_key(switch_modes);
  std::lock_guard lock(mutex_);
  std::unique_ptr<JacobianTape>& entry = jacobians_[k];
  if (!entry) entry = differentiate_mode(k);
  return *entry;
}

std::unique_ptr<JacobianTape> Program::differentiate_mode(const std::string& mode_key) const {
  const ModeKey k(mode_key, m_);
  Specialisation put(*model_, k.letters);
  const ModeFormulas formulas = mode_formulas(model_->form, k, put, attract_);
  std::vector<Expr> residuals;
  for (const Ladder& ladder : formulas.ladders) residuals.push_back(ladder.residual);

  auto out = std::make_unique<JacobianTape>();
  std::vector<Expr> values;
  const auto add = [&](std::span<const Expr> of, SymbolKind by, int shift, std::vector<SlopeEntry>& entries) {
    int row = 0;
    for (const std::vector<Partial>& partials : saltus::jacobian(of, by)) {
      for (const Partial& d : partials) {
        entries.push_back({row, d.symbol.symbol().index + shift, static_cast<int>(values.size())});
        values.push_back(d.value);
      }
      ++row;
    }
  };
  add(formulas.form.f, SymbolKind::state, 0, out->rate_by_state);
  add(formulas.form.f, SymbolKind::sigma, 0, out->rate_by_unknown);
  add(formulas.form.f, SymbolKind::lambda, m_, out->rate_by_unknown);
  add(residuals, SymbolKind::state, 0, out->residual_by_state);
  out->tape = build_tape(values, {n_, m_, q_, model_->form.counter_values});
  return out;
}

const TangentTape& Program::tangent(const std::string& switch_modes) const {
  assert(static_cast<int>(switch_modes.size()) == m_);
  const std::string k = formula_key(switch_modes);
  std::lock_guard lock(mutex_);
  std::unique_ptr<TangentTape>& entry = tangents_[k];
  if (!entry) entry = linearise_mode(k);
  return *entry;
}

namespace {

/// Collects formulas and their derivatives for one tape.
class Linearisation {
 public:
  Linearisation(std::vector<Expr> rows, int switches) : rows_(std::move(rows)), switches_(switches) {}

  void keep_values() { values_.insert(values_.begin(), rows_.begin(), rows_.end()); }
  void add(SymbolKind by, std::vector<SlopeEntry>& entries) {
    const int shift = by == SymbolKind::lambda ? switches_ : 0;
    int row = 0;
    for (const std::vector<Partial>& partials : saltus::jacobian(rows_, by)) {
      for (const Partial& d : partials) {
        const int column = by == SymbolKind::time ? 0 : d.symbol.symbol().index + shift;
        entries.push_back({row, column, static_cast<int>(values_.size())});
        values_.push_back(d.value);
      }
      ++row;
    }
  }
  Tape tape(const TapeInputs& inputs) const { return build_tape(values_, inputs); }

 private:
  std::vector<Expr> rows_, values_;
  int switches_;
};

}  // namespace

std::unique_ptr<TangentTape> Program::linearise_mode(const std::string& mode_key) const {
  const Form& form = model_->form;
  const ModeKey k(mode_key, m_);
  Specialisation put(*model_, k.letters);
  const ModeFormulas formulas = mode_formulas(form, k, put, attract_);
  const TapeInputs inputs{n_, m_, q_, model_->form.counter_values};
  auto out = std::make_unique<TangentTape>();

  std::vector<Expr> rows = formulas.form.f;
  for (const Ladder& ladder : formulas.ladders) rows.push_back(ladder.residual);
  Linearisation arc(rows, m_), parameters(rows, m_);
  arc.add(SymbolKind::state, out->arc.by_state);
  arc.add(SymbolKind::sigma, out->arc.by_unknown);
  arc.add(SymbolKind::lambda, out->arc.by_unknown);
  out->arc.tape = arc.tape(inputs);
  parameters.add(SymbolKind::parameter, out->arc_parameter.by_parameter);
  out->arc_parameter.tape = parameters.tape(inputs);

  rows = formulas.surfaces;
  rows.insert(rows.end(), formulas.gaps.begin(), formulas.gaps.end());
  for (const LoweredJump& j : form.jumps) rows.push_back(put(j.on));
  for (const Expr& s : form.sections) rows.push_back(put(s));
  for (const Gap& g : form.gaps) rows.push_back(g.restitution ? put(*g.restitution) : Expr(0.0));
  for (const Gap& g : form.gaps) {
    for (const Assignment& a : g.direction) rows.push_back(put(a.value));
  }
  for (const Ladder& ladder : formulas.ladders) {
    std::vector<int>& rungs = out->rungs.emplace_back();
    for (const Expr& rung : ladder.rungs) {
      rungs.push_back(static_cast<int>(rows.size()));
      rows.push_back(rung);
    }
  }
  Linearisation event(rows, m_);
  event.keep_values();
  event.add(SymbolKind::state, out->event.by_state);
  event.add(SymbolKind::sigma, out->event.by_unknown);
  event.add(SymbolKind::lambda, out->event.by_unknown);
  event.add(SymbolKind::time, out->event.by_time);
  event.add(SymbolKind::parameter, out->event.by_parameter);
  out->event.tape = event.tape(inputs);
  return out;
}

}  // namespace saltus
