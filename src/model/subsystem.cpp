#include "model/subsystem.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "base/index.hpp"

namespace saltus {

Subsystems::Subsystems(const Program& whole, const ModeTape& mode, std::span<const double> parameters)
    : whole_(whole),
      mode_(mode),
      slicers_{Slicer(mode.flow, parameters), Slicer(mode.slope, parameters), Slicer(mode.manifold, parameters),
               Slicer(mode.actions, parameters), Slicer(whole.points(), parameters)},
      shapes_(whole.states(), whole.switches(), whole.unknowns(),
              mode.flow.slots + mode.slope.slots + mode.manifold.slots + mode.actions.slots + whole.points().slots),
      entries_of_row_(at(whole.unknowns() + whole.constraints())) {
  first_constant_[0] = whole.states() + whole.unknowns();
  for (size_t tape = 0; tape < slicers_.size(); ++tape) {
    first_constant_[tape + 1] = first_constant_[tape] + slicers_[tape].slots();
    for (int slot = 0; slot < slicers_[tape].slots(); ++slot) value_.push_back(slicers_[tape].value(slot));
  }
  const std::vector<double> values(parameters.begin(), parameters.end());
  for (const Switch& s : whole.model().form.switches) hold_.push_back(constant_value(s.hold, values));
  for (size_t e = 0; e < mode.slope_entries.size(); ++e)
    entries_of_row_[at(mode.slope_entries[e].row)].push_back(static_cast<int>(e));
  describe();
}

// ---- what depends on what ------------------------------------------------------------------------------------------

void Subsystems::rate(int i, TapeSupport& out) {
  slicers_[flow].gather(whole_.rate(i), out);
  slicers_[flow].forget();
}

void Subsystems::watch(int u, TapeSupport& out) {
  const int m = whole_.switches();
  slicers_[flow].gather(u < m ? whole_.surface(u) : whole_.gap(u - m), out);
  slicers_[flow].forget();
}

void Subsystems::choice(int u, TapeSupport& out) {
  slicers_[flow].gather(whole_.residual(u), out);
  slicers_[flow].forget();
  for (int k = 0; k < whole_.point_degree(u); ++k) slicers_[points].gather(whole_.point(u, k), out);
  slicers_[points].forget();
}

void Subsystems::jump(int k, TapeSupport& out) {
  slicers_[flow].gather(whole_.jump(k), out);
  slicers_[flow].forget();
}

// ---- shapes --------------------------------------------------------------------------------------------------------

void Subsystems::list_state(int i) { wanted_.push_back({flow, whole_.rate(i)}); }

void Subsystems::list_unknown(int u) {
  const int m = whole_.switches(), j = u - m;
  wanted_.push_back({flow, whole_.residual(u)});
  wanted_.push_back({flow, u < m ? whole_.surface(u) : whole_.gap(j)});
  for (int k = 0; k < whole_.point_degree(u); ++k) wanted_.push_back({points, whole_.point(u, k)});
  list_row(u);
  if (u < m) return;
  wanted_.push_back({flow, whole_.raised(j)});
  list_row(raised_row(u));
  wanted_.push_back({actions, whole_.restitution(j)});
  for (size_t d = 0; d < whole_.model().form.gaps[at(j)].direction.size(); ++d)
    wanted_.push_back({actions, whole_.direction(j, static_cast<int>(d))});
}

void Subsystems::list_jump(int k) {
  wanted_.push_back({flow, whole_.jump(k)});
  wanted_.push_back({points, whole_.point_jump(k)});
}

void Subsystems::list_row(int row) {
  for (const int e : entries_of_row_[at(row)]) {
    const SlopeEntry& entry = mode_.slope_entries[at(e)];
    wanted_.push_back({slope, at(entry.output), whole_.states() + entry.column});
  }
  for (const ManifoldFunction& f : mode_.manifolds[at(row)]) {
    wanted_.push_back({manifold, at(f.value)});
    for (const auto& [state, output] : f.gradient) wanted_.push_back({manifold, at(output), state});
  }
}

/// Describes each state, unknown and jump independently of its place.
void Subsystems::describe() {
  const int n = whole_.states(), m = whole_.switches();
  const Form& form = whole_.model().form;
  std::vector<int> attributes, partners;
  for (int i = 0; i < n; ++i) {
    wanted_.clear();
    list_state(i);
    describe_element({}, {});
  }
  const auto add_row = [&](int row) {
    attributes.push_back(mode_.degree[at(row)]);
    attributes.push_back(static_cast<int>(entries_of_row_[at(row)].size()));
    for (const int e : entries_of_row_[at(row)]) {
      const auto bits = std::bit_cast<std::array<int, 2>>(mode_.slope_entries[at(e)].factor);
      attributes.insert(attributes.end(), bits.begin(), bits.end());
    }
    attributes.push_back(static_cast<int>(mode_.manifolds[at(row)].size()));
    for (const ManifoldFunction& f : mode_.manifolds[at(row)])
      attributes.push_back(static_cast<int>(f.gradient.size()));
    attributes.push_back(static_cast<int>(mode_.moves[at(row)].size()));
    partners.insert(partners.end(), mode_.moves[at(row)].begin(), mode_.moves[at(row)].end());
  };
  for (int u = 0; u < whole_.unknowns(); ++u) {
    wanted_.clear();
    list_unknown(u);
    partners.clear();
    attributes.assign({u < m, whole_.point_degree(u)});
    add_row(u);
    if (u < m) {
      const Switch& s = form.switches[at(u)];
      for (const int a :
           {int(whole_.moves(u)), int(whole_.timed(u)), s.at_zero, int(s.kink), int(s.hidden), int(s.discrete)})
        attributes.push_back(a);
    } else {
      const Gap& gap = form.gaps[at(u - m)];
      add_row(raised_row(u));
      const std::vector<int>& inside = whole_.impact_switches(u - m);
      for (const int a : {gap.degree, int(gap.restitution.has_value()), int(gap.direction.size()), int(inside.size())})
        attributes.push_back(a);
      for (const Assignment& a : gap.direction) partners.push_back(a.state);
      for (const int i : inside) partners.push_back(n + i);
    }
    describe_element(attributes, partners);
  }
  for (size_t k = 0; k < form.jumps.size(); ++k) {
    wanted_.clear();
    list_jump(static_cast<int>(k));
    attributes.assign(1, static_cast<int>(form.jumps[k].direction));
    describe_element(attributes, {});
  }
}

/// `wanted_` as pieces. `partners`: elements that matter where they are in the part, too.
void Subsystems::describe_element(std::span<const int> attributes, std::span<const int> partners) {
  shapes_.add_element();
  const auto gated = std::stable_partition(wanted_.begin(), wanted_.end(), [](const Wanted& w) { return w.gate < 0; });
  const auto own = static_cast<size_t>(gated - wanted_.begin());
  words_.assign(attributes.begin(), attributes.end());
  describe_piece(std::span(wanted_).first(own), -1);
  for (const Wanted& w : std::span(wanted_).subspan(own)) {
    words_.clear();
    describe_piece({&w, 1}, w.gate);
  }
  for (const int partner : partners) shapes_.add_piece(partner, {}, {});
}

int Subsystems::leaf_number(TapeName tape, const TapeLeaf& leaf) const {
  switch (leaf.kind) {
    case TapeLeaf::Kind::constant: return constant(tape, leaf.index);
    case TapeLeaf::Kind::sigma: return whole_.states() + leaf.index;
    case TapeLeaf::Kind::lambda: return whole_.states() + whole_.switches() + leaf.index;
    default: return leaf.index;
  }
}

void Subsystems::describe_piece(std::span<const Wanted> wanted, int gate) {
  leaves_.clear();
  for (const TapeName tape : {flow, slope, manifold, actions, points}) {
    outputs_.clear();
    tape_leaves_.clear();
    support_.clear();
    for (const Wanted& w : wanted) {
      if (w.tape != tape) continue;
      outputs_.push_back(w.output);
      slicers_[tape].gather(w.output, support_);
    }
    slicers_[tape].spell(outputs_, words_, tape_leaves_);
    for (const TapeLeaf& leaf : tape_leaves_) {
      if (leaf.kind == TapeLeaf::Kind::time) continue;
      const int item = leaf_number(tape, leaf);
      const auto known = std::find(leaves_.begin(), leaves_.end(), item);
      words_.push_back(static_cast<int>(known - leaves_.begin()));
      if (known == leaves_.end()) leaves_.push_back(item);
    }
  }
  shapes_.add_piece(gate, words_, leaves_);
}

// ---- cutting -------------------------------------------------------------------------------------------------------

void Subsystems::gather(const Subsystem& part) {
  wanted_.clear();
  for (const int i : part.states) list_state(i);
  for (const int u : part.unknowns) list_unknown(u);
  for (const int k : part.jumps) list_jump(k);
  for (Slicer& slicer : slicers_) slicer.forget();
  for (const Wanted& w : wanted_) {
    if (w.gate < 0 || shapes_.place(w.gate) >= 0) slicers_[w.tape].gather(w.output, support_);
  }
}

void Subsystems::write_tape(TapeName tape, std::span<const int> outputs, const SliceInputs& inputs, Tape& out,
                            std::vector<int>& constants) {
  const size_t before = constants.size();
  slicers_[tape].write(outputs, inputs, out, constants);
  for (int& slot : std::span(constants).subspan(before)) slot = constant(tape, slot);
}

void Subsystems::write_mode(const Subsystem& part, const SliceInputs& inputs, ModeTape& mode, Tape& at_points,
                            std::vector<int>& constants) {
  const int m = whole_.switches();
  std::vector<int> outputs;
  const auto add = [&](size_t output) { outputs.push_back(static_cast<int>(output)); };

  for (const int i : part.states) add(whole_.rate(i));
  outputs.resize(part.program_states(), -1);
  for (const int i : inputs.sigmas) add(whole_.surface(i));
  for (const int u : part.unknowns) add(whole_.residual(u));
  for (const int j : inputs.lambdas) add(whole_.gap(j));
  for (const int k : part.jumps) add(whole_.jump(k));
  for (const int j : inputs.lambdas) add(whole_.raised(j));
  write_tape(flow, outputs, inputs, mode.flow, constants);
  mode.add_spare(static_cast<int>(part.unknowns.size()));

  std::vector<int> slopes, functions;
  mode.slope_constant = mode_.slope_constant;
  mode.slope_affine = mode_.slope_affine;
  const auto row = [&](int r) {
    const int place = static_cast<int>(mode.degree.size());
    for (const int e : entries_of_row_[at(r)]) {
      const SlopeEntry& entry = mode_.slope_entries[at(e)];
      const int column = shapes_.unknown_place(entry.column);
      if (column < 0) continue;
      mode.slope_entries.push_back({place, column, static_cast<int>(slopes.size()), entry.factor});
      slopes.push_back(entry.output);
    }
    std::vector<ManifoldFunction>& kept = mode.manifolds.emplace_back();
    for (const ManifoldFunction& f : mode_.manifolds[at(r)]) {
      ManifoldFunction& function = kept.emplace_back(ManifoldFunction{.value = static_cast<int>(functions.size())});
      functions.push_back(f.value);
      for (const auto& [state, output] : f.gradient) {
        if (shapes_.state_place(state) < 0) continue;
        function.gradient.emplace_back(shapes_.state_place(state), static_cast<int>(functions.size()));
        functions.push_back(output);
      }
    }
    std::vector<int>& moves = mode.moves.emplace_back();
    for (const int i : mode_.moves[at(r)]) {
      if (shapes_.state_place(i) >= 0) moves.push_back(shapes_.state_place(i));
    }
    mode.degree.push_back(mode_.degree[at(r)]);
  };
  for (const int u : part.unknowns) row(u);
  for (const int j : inputs.lambdas) row(raised_row(m + j));
  write_tape(slope, slopes, inputs, mode.slope, constants);
  write_tape(manifold, functions, inputs, mode.manifold, constants);

  outputs.clear();
  for (const int j : inputs.lambdas) add(whole_.restitution(j));
  for (const int j : inputs.lambdas) {
    for (size_t d = 0; d < whole_.model().form.gaps[at(j)].direction.size(); ++d)
      add(whole_.direction(j, static_cast<int>(d)));
  }
  write_tape(actions, outputs, inputs, mode.actions, constants);

  outputs.clear();
  for (const int u : part.unknowns) {
    for (int k = 0; k < whole_.point_degree(u); ++k) add(whole_.point(u, k));
  }
  for (const int k : part.jumps) add(whole_.point_jump(k));
  write_tape(points, outputs, inputs, at_points, constants);
}

SubsystemProgram Subsystems::make(Subsystem& part) {
  const int m = whole_.switches();
  std::vector<int> switches, constraints, fixed_switches, fixed_constraints, states = part.states;
  for (const int u : part.unknowns) (u < m ? switches : constraints).push_back(u < m ? u : u - m);
  for (const int u : part.fixed) (u < m ? fixed_switches : fixed_constraints).push_back(u < m ? u : u - m);
  states.insert(states.end(), part.outside.begin(), part.outside.end());
  gather(part);
  SubsystemProgram out;
  ProgramPart code;
  write_mode(part, {states, switches, constraints, fixed_switches, fixed_constraints}, code.mode, code.points,
             out.constants);
  for (int& leaf : out.constants) leaf = shapes_.number(leaf);

  const Model& whole = whole_.model();
  Model model;
  const size_t parameters = out.constants.size() + switches.size();
  for (size_t k = 0; k < parameters; ++k) model.parameters.push_back({.name = fmt::format("c{}", k)});
  model.states.resize(part.program_states());
  code.vanishing.resize(model.states.size());
  for (size_t i = 0; i < part.states.size(); ++i) {
    model.states[i].name = whole.states[at(part.states[i])].name;
    if (whole_.vanishing(part.states[i]).size() == 1) code.vanishing[i] = {static_cast<int>(i)};
  }
  for (const int i : switches) {
    const int own = static_cast<int>(model.form.switches.size());
    Switch s = whole.form.switches[at(i)];
    s.hold = parameter_symbol(model, static_cast<int>(out.constants.size()) + own);
    model.form.order.push_back(own);
    model.form.switches.push_back(std::move(s));
    code.moves.push_back(whole_.moves(i));
    code.timed.push_back(whole_.timed(i));
  }
  model.form.visible = static_cast<int>(model.form.switches.size());
  for (const int j : constraints) {
    model.constraints.push_back(whole.constraints[at(j)]);
    Gap gap = whole.form.gaps[at(j)];
    for (Assignment& a : gap.direction) a.state = shapes_.state_place(a.state);
    model.form.gaps.push_back(std::move(gap));
    std::vector<int>& inside = code.impact_switches.emplace_back();
    for (const int i : whole_.impact_switches(j)) inside.push_back(shapes_.unknown_place(i));
  }
  for (const int u : part.unknowns) code.point_degree.push_back(whole_.point_degree(u));
  for (const int k : part.jumps) {
    const Jump& jump = whole.jumps[at(k)];
    model.jumps.push_back({.name = jump.name, .direction = jump.direction});
    model.form.jumps.push_back({.direction = whole.form.jumps[at(k)].direction});
  }
  out.program = std::make_unique<Program>(std::move(model), std::move(code));
  return out;
}

void Subsystems::bind(Subsystem& part, const SubsystemProgram& program) const {
  const std::span<const int> met = shapes_.constants();
  part.parameters.clear();
  for (const int k : program.constants) part.parameters.push_back(value_[at(met[at(k)] - first_constant_[0])]);
  for (const int u : part.unknowns) {
    if (u < whole_.switches()) part.parameters.push_back(hold_[at(u)]);
  }
}

}  // namespace saltus
