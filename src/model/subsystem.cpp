#include "model/subsystem.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/index.hpp"

namespace saltus {
namespace {

uint64_t mix(uint64_t key, int word) {
  return (key ^ static_cast<uint64_t>(word + 1)) * 0x9e3779b97f4a7c15 + (key >> 29);
}

}  // namespace

bool SubsystemCode::same(const SubsystemCode& other) const {
  return shape == other.shape && same_tape(mode.flow, other.mode.flow) && same_tape(mode.slope, other.mode.slope) &&
         same_tape(mode.manifold, other.mode.manifold) && same_tape(mode.actions, other.mode.actions) &&
         same_tape(points, other.points);
}

uint64_t SubsystemCode::key() const {
  uint64_t key = tape_key(mode.flow);
  for (const int word : shape) key = mix(key, word);
  return key;
}

Subsystems::Subsystems(const Program& whole, const ModeTape& mode, std::span<const double> parameters)
    : whole_(whole),
      mode_(mode),
      flow_(mode.flow, parameters),
      slope_(mode.slope, parameters),
      manifold_(mode.manifold, parameters),
      actions_(mode.actions, parameters),
      points_(whole.points(), parameters),
      entries_of_row_(at(whole.unknowns() + whole.constraints())),
      state_mark_(at(whole.states()), 0),
      unknown_mark_(at(whole.unknowns()), 0),
      state_place_(at(whole.states()), 0),
      unknown_place_(at(whole.unknowns()), 0) {
  const std::vector<double> values(parameters.begin(), parameters.end());
  for (const Switch& s : whole.model().form.switches) hold_.push_back(constant_value(s.hold, values));
  for (size_t e = 0; e < mode.slope_entries.size(); ++e)
    entries_of_row_[at(mode.slope_entries[e].row)].push_back(static_cast<int>(e));
}

// ---- what depends on what ------------------------------------------------------------------------------------------

void Subsystems::rate(int i, TapeSupport& out) {
  flow_.gather(whole_.rate(i), out);
  flow_.forget();
}

void Subsystems::watch(int u, TapeSupport& out) {
  const int m = whole_.switches();
  flow_.gather(u < m ? whole_.surface(u) : whole_.gap(u - m), out);
  flow_.forget();
}

void Subsystems::choice(int u, TapeSupport& out) {
  flow_.gather(whole_.residual(u), out);
  flow_.forget();
  for (int k = 0; k < whole_.point_degree(u); ++k) points_.gather(whole_.point(u, k), out);
  points_.forget();
}

// ---- cutting -------------------------------------------------------------------------------------------------------

void Subsystems::look(Subsystem& part) {
  ++mark_;
  for (size_t i = 0; i < part.states.size(); ++i) {
    state_mark_[at(part.states[i])] = mark_;
    state_place_[at(part.states[i])] = static_cast<int>(i);
  }
  const int m = whole_.switches();
  own_switches_.clear();
  own_constraints_.clear();
  for (const int u : part.unknowns) {
    unknown_mark_[at(u)] = mark_;
    std::vector<int>& own = u < m ? own_switches_ : own_constraints_;
    unknown_place_[at(u)] = static_cast<int>(own.size());
    own.push_back(u < m ? u : u - m);
  }
  for (const int j : own_constraints_) unknown_place_[at(m + j)] += static_cast<int>(own_switches_.size());
  gather(part);
  const auto take = [](std::vector<int>& from, std::vector<int>& to, int shift, const auto& own) {
    std::sort(from.begin(), from.end());
    from.erase(std::unique(from.begin(), from.end()), from.end());
    for (const int i : from) {
      if (own(i + shift) < 0) to.push_back(i + shift);
    }
  };
  part.outside.clear();
  part.fixed.clear();
  take(support_.states, part.outside, 0, [&](int i) { return local_state(i); });
  take(support_.sigmas, part.fixed, 0, [&](int u) { return local_unknown(u); });
  take(support_.lambdas, part.fixed, m, [&](int u) { return local_unknown(u); });
}

void Subsystems::gather(const Subsystem& part) {
  const int m = whole_.switches();
  for (Slicer* slicer : {&flow_, &slope_, &manifold_, &actions_, &points_}) slicer->forget();
  support_.clear();
  for (const int i : part.states) flow_.gather(whole_.rate(i), support_);
  const auto row = [&](int r) {
    for (const int e : entries_of_row_[at(r)]) {
      if (local_unknown(mode_.slope_entries[at(e)].column) >= 0)
        slope_.gather(at(mode_.slope_entries[at(e)].output), support_);
    }
    for (const ManifoldFunction& f : mode_.manifolds[at(r)]) {
      manifold_.gather(at(f.value), support_);
      for (const auto& [state, output] : f.gradient) {
        if (local_state(state) >= 0) manifold_.gather(at(output), support_);
      }
    }
  };
  for (const int u : part.unknowns) {
    flow_.gather(whole_.residual(u), support_);
    flow_.gather(u < m ? whole_.surface(u) : whole_.gap(u - m), support_);
    for (int k = 0; k < whole_.point_degree(u); ++k) points_.gather(whole_.point(u, k), support_);
    row(u);
    if (u < m) continue;
    const int j = u - m;
    flow_.gather(whole_.raised(j), support_);
    row(raised_row(u));
    actions_.gather(whole_.restitution(j), support_);
    for (size_t d = 0; d < whole_.model().form.gaps[at(j)].direction.size(); ++d)
      actions_.gather(whole_.direction(j, static_cast<int>(d)), support_);
  }
}

const SubsystemCode& Subsystems::write(Subsystem& part) {
  const int m = whole_.switches();
  fixed_switches_.clear();
  fixed_constraints_.clear();
  for (const int u : part.fixed) (u < m ? fixed_switches_ : fixed_constraints_).push_back(u < m ? u : u - m);
  all_states_ = part.states;
  all_states_.insert(all_states_.end(), part.outside.begin(), part.outside.end());
  part.parameters.clear();
  write_mode(part, {all_states_, own_switches_, own_constraints_, fixed_switches_, fixed_constraints_},
             part.parameters);
  for (const int i : own_switches_) part.parameters.push_back(hold_[at(i)]);
  note_shape(part);
  return code_;
}

void Subsystems::write_mode(const Subsystem& part, const SliceInputs& inputs, std::vector<double>& parameters) {
  const int m = whole_.switches();
  ModeTape& mode = code_.mode;
  std::vector<int>& outputs = outputs_;
  const auto add = [&](size_t output) { outputs.push_back(static_cast<int>(output)); };

  outputs.clear();
  for (const int i : part.states) add(whole_.rate(i));
  outputs.resize(part.program_states(), -1);
  for (const int i : own_switches_) add(whole_.surface(i));
  for (const int u : part.unknowns) add(whole_.residual(u));
  for (const int j : own_constraints_) add(whole_.gap(j));
  for (const int j : own_constraints_) add(whole_.raised(j));
  flow_.write(outputs, inputs, mode.flow, parameters);
  mode.add_spare(static_cast<int>(part.unknowns.size()));

  std::vector<int> slope, manifold;
  mode.slope_entries.clear();
  mode.manifolds.clear();
  mode.moves.clear();
  mode.degree.clear();
  mode.slope_constant = mode_.slope_constant;
  mode.slope_affine = mode_.slope_affine;
  const auto row = [&](int r) {
    const int place = static_cast<int>(mode.degree.size());
    for (const int e : entries_of_row_[at(r)]) {
      const SlopeEntry& entry = mode_.slope_entries[at(e)];
      const int column = local_unknown(entry.column);
      if (column < 0) continue;
      mode.slope_entries.push_back({place, column, static_cast<int>(slope.size()), entry.factor});
      slope.push_back(entry.output);
    }
    std::vector<ManifoldFunction>& functions = mode.manifolds.emplace_back();
    for (const ManifoldFunction& f : mode_.manifolds[at(r)]) {
      ManifoldFunction& function = functions.emplace_back(ManifoldFunction{.value = static_cast<int>(manifold.size())});
      manifold.push_back(f.value);
      for (const auto& [state, output] : f.gradient) {
        if (local_state(state) < 0) continue;
        function.gradient.emplace_back(local_state(state), static_cast<int>(manifold.size()));
        manifold.push_back(output);
      }
    }
    std::vector<int>& moves = mode.moves.emplace_back();
    for (const int i : mode_.moves[at(r)]) {
      if (local_state(i) >= 0) moves.push_back(local_state(i));
    }
    mode.degree.push_back(mode_.degree[at(r)]);
  };
  for (const int u : part.unknowns) row(u);
  for (const int j : own_constraints_) row(raised_row(m + j));
  slope_.write(slope, inputs, mode.slope, parameters);
  manifold_.write(manifold, inputs, mode.manifold, parameters);

  outputs.clear();
  for (const int j : own_constraints_) add(whole_.restitution(j));
  for (const int j : own_constraints_) {
    for (size_t d = 0; d < whole_.model().form.gaps[at(j)].direction.size(); ++d)
      add(whole_.direction(j, static_cast<int>(d)));
  }
  actions_.write(outputs, inputs, mode.actions, parameters);

  outputs.clear();
  for (const int u : part.unknowns) {
    for (int k = 0; k < whole_.point_degree(u); ++k) add(whole_.point(u, k));
  }
  points_.write(outputs, inputs, code_.points, parameters);
}

/// What the tapes do not show.
void Subsystems::note_shape(const Subsystem& part) {
  const Form& form = whole_.model().form;
  std::vector<int>& shape = code_.shape;
  shape.assign({static_cast<int>(part.states.size()), static_cast<int>(part.outside.size()),
                static_cast<int>(part.fixed.size()), static_cast<int>(own_switches_.size())});
  const auto add = [&](int word) { shape.push_back(word); };
  for (const int i : own_switches_) {
    add(whole_.moves(i) + 2 * whole_.timed(i));
    add(form.switches[at(i)].at_zero);
    add(whole_.point_degree(i));
  }
  for (const int j : own_constraints_) {
    add(form.gaps[at(j)].degree);
    add(whole_.point_degree(whole_.switches() + j));
    for (const Assignment& a : form.gaps[at(j)].direction) add(local_state(a.state));
    for (const int i : whole_.impact_switches(j)) add(local_unknown(i));
  }
  for (const SlopeEntry& e : code_.mode.slope_entries) {
    add(e.row);
    add(e.column);
  }
  for (const auto& functions : code_.mode.manifolds) {
    add(static_cast<int>(functions.size()));
    for (const ManifoldFunction& f : functions) {
      add(static_cast<int>(f.gradient.size()));
      for (const auto& [state, output] : f.gradient) add(state);
    }
  }
  for (const std::vector<int>& moves : code_.mode.moves) {
    add(static_cast<int>(moves.size()));
    for (const int i : moves) add(i);
  }
  for (const int degree : code_.mode.degree) add(degree);
}

std::unique_ptr<Program> Subsystems::make(const Subsystem& part, const SubsystemCode& code) const {
  const Model& whole = whole_.model();
  Model model;
  for (size_t k = 0; k < part.parameters.size(); ++k) model.parameters.push_back({.name = fmt::format("c{}", k)});
  model.states.resize(part.program_states());
  for (size_t i = 0; i < part.states.size(); ++i) model.states[i].name = whole.states[at(part.states[i])].name;
  ProgramPart out{.mode = code.mode, .points = code.points};
  const int first_hold = static_cast<int>(part.parameters.size() - own_switches_.size());
  for (const int i : own_switches_) {
    Switch s = whole.form.switches[at(i)];
    s.hold = parameter_symbol(model, first_hold + static_cast<int>(model.form.switches.size()));
    model.form.order.push_back(static_cast<int>(model.form.switches.size()));
    model.form.switches.push_back(std::move(s));
    out.moves.push_back(whole_.moves(i));
    out.timed.push_back(whole_.timed(i));
  }
  model.form.visible = static_cast<int>(model.form.switches.size());
  for (const int j : own_constraints_) {
    model.constraints.push_back(whole.constraints[at(j)]);
    Gap gap = whole.form.gaps[at(j)];
    for (Assignment& a : gap.direction) a.state = local_state(a.state);
    model.form.gaps.push_back(std::move(gap));
    std::vector<int>& inside = out.impact_switches.emplace_back();
    for (const int i : whole_.impact_switches(j)) inside.push_back(local_unknown(i));
  }
  for (const int u : part.unknowns) out.point_degree.push_back(whole_.point_degree(u));
  return std::make_unique<Program>(std::move(model), std::move(out));
}

}  // namespace saltus
