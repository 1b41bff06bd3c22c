#include "flow/variation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/index.hpp"

namespace saltus {

Variation::Variation(const Program& program, const RunOptions& options)
    : program_(program),
      model_(program.model()),
      options_(options),
      lent_(program.lend<Memory>()),
      memory_(lent_->engine),
      direction_(options.until < options.from ? -1.0 : 1.0),
      tolerance_(0.1 * options.tolerance) {
  if (program.vectors() > 0)
    throw Error(ErrorKind::usage,
                fmt::format("derivatives along a motion with unit{} are not computed yet",
                            model_.form.switches[at(program.parts(0)[0])].name),
                {}, "run, section, sweep and basins take such models");
  options_.on_piece = {};
  options_.on_transition = {};
  options_.on_event = {};
  options_.on_section = {};
  options_.progress = {};
  lent_->prepare(options_);
  order_ = memory_.order;
}

void Variation::Memory::prepare(const RunOptions& options) {
  const bool other_order = engine.tolerance != options.tolerance, other = engine.parameters != options.parameters;
  const Series::Ties ties = engine.ties;
  engine.prepare(options);
  if (other_order) jets.clear();
  if (other) {
    for (auto& [tape, of_tape] : jets) of_tape->jet.bind(options.parameters);
    impact_jets.clear();
  }
  if (other_order || engine.ties != ties) forget_plans();
  jump_formulas.resize(engine.program.model().form.jumps.size());
  conditions.resize(jump_formulas.size());
}

Variation::OtherTangents::OtherTangents(Variation& of, Mat x, Mat p)
    : of_(of), x_(std::exchange(of.x_, std::move(x))), p_(std::exchange(of.p_, std::move(p))) {}

Variation::OtherTangents::~OtherTangents() {
  of_.x_ = std::move(x_);
  of_.p_ = std::move(p_);
}

Variation::OtherTangents Variation::all_directions(const Mat& P) {
  const int n = program_.states();
  Mat x = Mat::Zero(n, n + P.cols()), p = Mat::Zero(ix(model_.parameters.size()), n + P.cols());
  x.leftCols(n).setIdentity();
  if (P.cols() > 0) p.rightCols(P.cols()) = P;
  return {*this, std::move(x), std::move(p)};
}

void Variation::begin(Mat x, Mat p, bool rests) {
  x_ = std::move(x);
  p_ = p.size() > 0 ? std::move(p) : Mat(Mat::Zero(ix(model_.parameters.size()), x_.cols()));
  first_ = rests;
  rested_.clear();
  last_shift_.setZero(1, x_.cols());
}

void Variation::forget_events() {
  passages_.clear();
  notes_.clear();
  last_arc_ = {};
  last_time_ = 0;
}

void Variation::bind(const std::vector<double>& parameters) {
  if (options_.parameters == parameters) return;
  options_.parameters = parameters;
  lent_->prepare(options_);
  plan_ = nullptr;
}

void Variation::note(std::string text) {
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(std::move(text));
}

Variation::TangentJet& Variation::jet_of(const Tape& tape, int order) {
  std::unique_ptr<TangentJet>& out = lent_->jets[&tape];
  if (!out || out->jet.order() < order) {
    out = std::make_unique<TangentJet>(TangentJet{{tape, order}});
    out->jet.bind(options_.parameters);
  }
  return *out;
}

/// Inputs of a tape from the series of the current mode, all orders; the states from a piece that starts here, if
/// given.
void Variation::load(Jet<double>& jet, double t, std::span<const double> counters, int order, const Piece* piece) {
  const Series& series = *memory_.series;
  const Tape& tape = jet.tape();
  const int m = program_.switches();
  const size_t count = at(order) + 1;
  for (size_t i = 0; i < tape.states.size(); ++i) {
    const double* state = piece ? &piece->coefficients[i * count] : series.state(static_cast<int>(i));
    std::copy_n(state, count, jet[tape.states[i]]);
  }
  for (size_t i = 0; i < tape.sigmas.size(); ++i)
    std::copy_n(series.unknown(static_cast<int>(i)), count, jet[tape.sigmas[i]]);
  for (size_t i = 0; i < tape.lambdas.size(); ++i)
    std::copy_n(series.unknown(m + static_cast<int>(i)), count, jet[tape.lambdas[i]]);
  for (size_t c = 0; c < tape.counters.size(); ++c) {
    if (tape.counters[c] >= 0) jet.set_counter(c, counters[c]);
  }
  jet.set_time(t, order);
}

/// Functions that events evaluate, with their derivatives, all orders.
const Jet<double>& Variation::load_events(double t, const Arc& arc, int order) {
  Jet<double>& jet = jet_of(plan_->tape->event.tape, order).jet;
  load(jet, t, arc.counters, order);
  for (int k = 0; k <= order; ++k) {
    jet.free(k);
    jet.bound(k);
  }
  return jet;
}

/// The derivatives of rates and residuals, all orders.
void Variation::load_tangents(double t, const Arc& arc, int order, const Piece* piece) {
  const auto expand = [&](const Tape& tape, const Schedule& schedule) {
    TangentJet& of_tape = jet_of(tape, order_);
    if (std::exchange(of_tape.entered, &schedule) != &schedule) of_tape.jet.enter(schedule);
    load(of_tape.jet, t, arc.counters, order, piece);
    of_tape.jet.fill(schedule, order);
  };
  consider_native(*plan_);
  expand(plan_->tape->arc.tape, plan_->schedule);
  if (!moves_parameters()) return;
  sort_parameters(*plan_);
  expand(plan_->tape->arc_parameter.tape, plan_->parameter_schedule);
}

void Variation::enter(const Arc& arc) {
  Series& series = *memory_.series;
  series.set_mode(arc.mode);
  series.guess(arc.guess);
  if (!arc.held.empty()) series.hold_at(arc.held);
}

bool Variation::expand(std::span<const double> x, double t, const Arc& arc, int order) {
  enter(arc);
  const SeriesStatus status = memory_.series->expand(x, t, arc.counters, order);
  plan_ = &plan_of(arc);
  return status == SeriesStatus::ok;
}

Vec Variation::rates(const Arc& arc, std::span<const double> x, double t) {
  Series& series = *memory_.series;
  enter(arc);
  if (series.evaluate(x, t, arc.counters) == SeriesStatus::undefined)
    return Vec::Constant(program_.states(), std::nan(""));
  return last_rates();
}

/// The rates at the point of the last expand or evaluate.
Vec Variation::last_rates() const {
  Vec f(program_.states());
  for (int i = 0; i < program_.states(); ++i) f[i] = memory_.series->rate(i)[0];
  return f;
}

}  // namespace saltus
