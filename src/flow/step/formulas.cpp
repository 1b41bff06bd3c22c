#include "flow/step/formulas.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/index.hpp"
#include "model/derive.hpp"

namespace saltus {
namespace {

constexpr int summed_from = 120;  // states and items: from here on the time a tape takes is seen

bool is_multiple(const Expr& e, const Expr& of) {
  if (e == of) return true;
  if (e.op() == Op::neg) return is_multiple(e.argument(0), of);
  if (e.op() == Op::mul && e.argument(0).is_number()) return is_multiple(e.argument(1), of);
  return e.op() == Op::mul && e.argument(1).is_number() && is_multiple(e.argument(0), of);
}

bool is_root(const Expr& e) {
  if (e.op() == Op::sqrt || e.op() == Op::cbrt) return true;
  return e.op() == Op::pow && e.argument(1).is_number() && e.argument(1).value() > 0 && e.argument(1).value() < 1;
}

/// On a surface that is slid on, roots of it are zero: they have no slope on it, and beside it no value.
void drop_roots_of_slid(const std::string& key, Form& form) {
  std::vector<Expr> slid;
  for (size_t i = 0; i < form.switches.size(); ++i) {
    if (key[i] == '0') slid.push_back(form.switches[i].surface);
  }
  if (slid.empty()) return;
  Rebuild rebuild([&](const Expr& node, std::span<const Expr> arguments) {
    if (arguments.empty()) return node;
    const auto vanishes = [&](const Expr& h) { return is_multiple(node.argument(0), h); };
    if (is_root(node) && std::any_of(slid.begin(), slid.end(), vanishes)) return Expr(0.0);
    return make(node.op(), arguments);
  });
  for (Expr& f : form.f) f = rebuild(f);
}

}  // namespace

TestLayout test_layout(const Program& program) {
  const Form& form = program.model().form;
  return {program.switches(), program.constraints(), static_cast<int>(form.jumps.size()),
          static_cast<int>(form.sections.size()), static_cast<int>(form.counters.size())};
}

StepKey step_key(const Program& program, const std::string& switch_modes, bool raise) {
  StepKey out{program.key(switch_modes), {}};
  if (!raise || switch_modes.find('0') == std::string::npos) return out;
  const std::vector<int>& degree = program.tape(switch_modes).degree;
  for (size_t i = 0; i < switch_modes.size(); ++i) {
    if (switch_modes[i] != '0' || !program.moves(static_cast<int>(i)) || degree[i] < 2) continue;
    out.raised.resize(switch_modes.size());
    out.raised[i] = static_cast<signed char>(degree[i] - 1);
  }
  return out;
}

StepFormulas::StepFormulas(const Program& program, const StepKey& key, std::span<const double> parameters) {
  Form form = specialised_form(program.model(), key.switches);
  drop_roots_of_slid(key.switches, form);
  const int n = program.states(), m = program.switches(), q = program.constraints();
  layout_ = test_layout(program);
  const TapeInputs inputs{n, m, q, form.counter_values};
  inputs_ = inputs;
  parameters_.assign(parameters.begin(), parameters.end());

  std::vector<Expr> tests, conditions;
  for (const Switch& s : form.switches) tests.push_back(s.surface);
  for (const Gap& g : form.gaps) tests.push_back(g.gap);
  for (const Gap& g : form.gaps) tests.push_back(g.degree == 2 ? lie_derivative(g.gap, form) : Expr(0.0));
  for (int i = 0; i < m; ++i) condition_outputs_.push_back(layout_.surface(i));
  for (int j = 0; j < q; ++j)
    condition_outputs_.push_back(form.gaps[at(j)].degree == 2 ? layout_.gap_rate(j) : layout_.gap(j));
  for (const LoweredJump& j : form.jumps) tests.push_back(j.on);
  tests.insert(tests.end(), form.sections.begin(), form.sections.end());
  for (const Counter& c : form.counters) tests.push_back(c.phase);
  for (size_t i = 0; i < key.raised.size(); ++i) {
    if (key.raised[i] == 0) continue;
    Expr h = form.switches[i].surface;
    for (int k = 0; k < key.raised[i]; ++k) h = lie_derivative(h, form);
    condition_outputs_[i] = static_cast<int>(tests.size());
    tests.push_back(h);
  }
  for (const int output : condition_outputs_) conditions.push_back(tests[at(output)]);

  f_ = form.f;
  conditions_ = conditions;
  std::vector<Expr> slopes;
  const auto differentiate_all = [&](const std::vector<Expr>& functions, bool by_state) {
    Block& block = blocks_.emplace_back();
    block.rows = static_cast<int>(functions.size());
    block.columns = by_state ? n : m + q;
    const auto add = [&](SymbolKind kind, int offset) {
      Form rows;
      rows.f = functions;
      const auto derivatives = jacobian(rows, kind);
      for (size_t r = 0; r < derivatives.size(); ++r) {
        for (const Partial& d : derivatives[r]) {
          block.entries.push_back(
              {static_cast<int>(r), d.symbol.symbol().index + offset, static_cast<int>(slopes.size())});
          slopes.push_back(d.value);
        }
      }
    };
    if (by_state) {
      add(SymbolKind::state, 0);
    } else {
      add(SymbolKind::sigma, 0);
      add(SymbolKind::lambda, m);
    }
  };
  differentiate_all(form.f, true);
  differentiate_all(form.f, false);
  differentiate_all(conditions, true);
  differentiate_all(conditions, false);
  differentiate_all({tests.begin() + layout_.gap(0), tests.begin() + layout_.gap(q)}, true);

  std::vector<Expr> condition_rates;
  for (const Expr& c : conditions) condition_rates.push_back(lie_derivative(c, form));
  condition_rates_ = build_tape(condition_rates, inputs);
  rates_ = build_tape(form.f, inputs);
  tests_ = build_tape(tests, inputs);
  slopes_ = build_tape(slopes, inputs);
  affine_ = std::all_of(slopes_.constant.begin(), slopes_.constant.end(), [](bool c) { return c; });
  for (const Tape* tape : {&rates_, &tests_, &slopes_, &condition_rates_})
    jets_.emplace_back(*tape, 0).bind(parameters);
  make_sums();
}

void StepFormulas::make_sums() {
  rate_sums_.reset();
  test_sums_.reset();
  if (!affine_ || inputs_.counters > 0 || inputs_.states + inputs_.sigmas + inputs_.lambdas <= summed_from) return;
  const auto sums_of = [](const Jet<double>& jet, std::optional<AffineRows>& out) {
    const Tape& tape = jet.tape();
    std::vector<double> values(at(tape.slots));
    for (int slot = 0; slot < tape.slots; ++slot) values[at(slot)] = jet[slot][0];
    std::vector<size_t> all(tape.outputs.size());
    std::iota(all.begin(), all.end(), size_t{0});
    out.emplace(tape, values, all);
    for (const size_t k : all) {
      if (!(*out)[k].affine) return out.reset();
    }
  };
  sums_of(jets_[0], rate_sums_);
  sums_of(jets_[1], test_sums_);
}

void StepFormulas::bind(std::span<const double> parameters) {
  for (Jet<double>& jet : jets_) jet.bind(parameters);
  parameters_.assign(parameters.begin(), parameters.end());
  if (by_parameter_) by_parameter_->jet->bind(parameters);
  known_ = false;
  make_sums();
}

void StepFormulas::add_up(const AffineRows& rows, double t, const Vec& x, const Vec& u, Vec& out) {
  inputs_now_.resize(static_cast<size_t>(x.size() + u.size()));
  std::copy_n(x.data(), x.size(), inputs_now_.begin());
  std::copy_n(u.data(), u.size(), inputs_now_.begin() + x.size());
  for (Index i = 0; i < out.size(); ++i) {
    const AffineRows::Row row = rows[static_cast<size_t>(i)];
    double sum = row.constant + row.time * t;
    for (const AffineRows::Term& term : row.terms) sum += term.weight * inputs_now_[at(term.from)];
    out[i] = sum;
  }
}

void StepFormulas::put(Jet<double>& jet, double t, const Vec& x, const Vec& u, std::span<const double> counters) const {
  const std::span<const double> items(u.data(), static_cast<size_t>(u.size()));
  const size_t m = jet.tape().sigmas.size();
  jet.load({.states = {x.data(), static_cast<size_t>(x.size())},
            .sigmas = items.first(m),
            .lambdas = items.subspan(m),
            .counters = counters,
            .t = t},
           0);
  jet.free(0);
  jet.bound(0);
}

void StepFormulas::rates(double t, const Vec& x, const Vec& u, std::span<const double> counters, Vec& f) {
  f.resize(x.size());
  if (rate_sums_) return add_up(*rate_sums_, t, x, u, f);
  put(jets_[0], t, x, u, counters);
  for (Index i = 0; i < f.size(); ++i) f[i] = jets_[0].output(static_cast<size_t>(i))[0];
}

void StepFormulas::tests(double t, const Vec& x, const Vec& u, std::span<const double> counters, Vec& values) {
  values.resize(static_cast<Index>(tests_.outputs.size()));
  if (test_sums_) return add_up(*test_sums_, t, x, u, values);
  put(jets_[1], t, x, u, counters);
  for (Index i = 0; i < values.size(); ++i) values[i] = jets_[1].output(static_cast<size_t>(i))[0];
}

void StepFormulas::condition_rates(double t, const Vec& x, const Vec& u, std::span<const double> counters,
                                   Vec& values) {
  put(jets_[3], t, x, u, counters);
  values.resize(u.size());
  for (Index i = 0; i < values.size(); ++i) values[i] = jets_[3].output(static_cast<size_t>(i))[0];
}

const StepSlopes& StepFormulas::slopes(double t, const Vec& x, const Vec& u, std::span<const double> counters) {
  if (!(affine_ && known_)) {
    put(jets_[2], t, x, u, counters);
    SparseMat* const matrices[] = {&slopes_now_.J, &slopes_now_.G, &slopes_now_.C, &slopes_now_.D, &slopes_now_.P};
    for (size_t b = 0; b < blocks_.size(); ++b) {
      std::vector<SparseEntry> entries;
      for (const Entry& e : blocks_[b].entries) {
        // A slope is infinite where a root of something vanishes: what rests there does not move by it.
        const double slope = jets_[2].output(at(e.output))[0];
        entries.push_back({e.row, e.column, std::isfinite(slope) ? slope : 0.0});
      }
      *matrices[b] = SparseMat(blocks_[b].rows, blocks_[b].columns, entries);
    }
    known_ = true;
  }
  return slopes_now_;
}

void StepFormulas::parameter_slopes(double t, const Vec& x, const Vec& u, std::span<const double> counters, Mat& f,
                                    Mat& c) {
  if (!by_parameter_) {
    by_parameter_ = std::make_unique<ByParameter>();
    std::vector<Expr> slopes;
    const auto add = [&](const std::vector<Expr>& functions, Block& block) {
      block.rows = static_cast<int>(functions.size());
      block.columns = static_cast<int>(parameters_.size());
      Form rows;
      rows.f = functions;
      const auto derivatives = jacobian(rows, SymbolKind::parameter);
      for (size_t r = 0; r < derivatives.size(); ++r) {
        for (const Partial& d : derivatives[r]) {
          block.entries.push_back({static_cast<int>(r), d.symbol.symbol().index, static_cast<int>(slopes.size())});
          slopes.push_back(d.value);
        }
      }
    };
    add(f_, by_parameter_->f);
    add(conditions_, by_parameter_->c);
    by_parameter_->tape = build_tape(slopes, inputs_);
    by_parameter_->jet = std::make_unique<Jet<double>>(by_parameter_->tape, 0);
    by_parameter_->jet->bind(parameters_);
  }
  put(*by_parameter_->jet, t, x, u, counters);
  const auto fill = [&](const Block& block, Mat& out) {
    out.setZero(block.rows, block.columns);
    for (const Entry& e : block.entries) out(e.row, e.column) = by_parameter_->jet->output(at(e.output))[0];
  };
  fill(by_parameter_->f, f);
  fill(by_parameter_->c, c);
}

}  // namespace saltus
