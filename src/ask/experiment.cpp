#include "ask/experiment.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ask/quantity.hpp"
#include "base/index.hpp"
#include "base/numbers.hpp"
#include "expr/print.hpp"
#include "flow/parameter_directions.hpp"
#include "flow/recorder.hpp"
#include "flow/simulate.hpp"
#include "flow/variation.hpp"

namespace saltus {
namespace {

/// "y" of "y(0)"; nothing if it is none.
std::optional<std::string> state_in(const std::string& name) {
  if (!name.ends_with("(0)")) return std::nullopt;
  return name.substr(0, name.size() - 3);
}

/// The system with the parameters and initial values of an experiment.
System system_of(const System& system, const DataTable& data) {
  std::vector<Setting> parameters, initial;
  for (const auto& [name, value] : data.with) {
    if (const auto state = state_in(name))
      initial.emplace_back(*state, Formula(value));
    else
      parameters.emplace_back(name, Formula(value));
  }
  try {
    return system.with(parameters, initial);
  } catch (const Error& error) {
    throw Error(ErrorKind::model, fmt::format("[data.{}]: {}", data.name, error.message()), data.place, error.hint());
  }
}

constexpr double at_event = 1e-12;  ///< of its time: a datum as near to an event is at it

}  // namespace

Experiment::Experiment(const FitQuestion& question, const DataTable& data)
    : table_(&data), system_(system_of(question.system, data)) {
  last_ = data.times.back();
  options_ = run_options(question.solve, system_.model(), last_);
  if (options_.step) misuse("fits come from the engine 'event', not 'step'", "leave out `engine`");
  options_.turns_stiff = false;
  options_.keep_events = false;
  if (!(data.times.front() >= options_.from))
    throw Error(ErrorKind::model,
                fmt::format("[data.{}]: the first time {} is before the start {}", data.name,
                            print_number(data.times.front()), print_number(options_.from)),
                data.place, "give `from`, or leave those rows out");
  find_free(question);
  if (data.events) find_events();
  find_observed();
  collect_data();
}

void Experiment::find_free(const FitQuestion& question) {
  const Model& model = system_.model();
  for (const FreeValue& f : question.free) {
    std::string name = f.name;
    const size_t at = name.find('@');
    const bool elsewhere = at != name.npos && name.substr(at + 1) != table_->name;
    name = name.substr(0, at);
    const bool given =
        std::any_of(table_->with.begin(), table_->with.end(), [&](const auto& w) { return w.first == name; });
    Free out{.log = f.log};
    if (!elsewhere && !given) {
      if (const auto state = state_in(name))
        out.state = find_state(model, *state, "`free`");
      else
        out.parameter = find_parameter(model, name, "`free`");
    }
    free_.push_back(out);
  }
}

void Experiment::find_observed() {
  const Model& model = system_.model();
  const int n = static_cast<int>(model.states.size());
  std::vector<Expr> outputs;
  for (const DataSeries& s : table_->series) {
    Expr quantity;
    try {
      quantity = read_quantity(s.quantity, "quantity", model);
    } catch (const Error& error) {
      throw Error(ErrorKind::model, fmt::format("[data.{}]: {}", table_->name, error.message()), s.place, error.hint());
    }
    if (quantity.is_symbol(SymbolKind::state)) {
      observed_.push_back(quantity.symbol().index);
    } else {
      observed_.push_back(n + static_cast<int>(outputs.size()));
      outputs.push_back(quantity);
    }
  }
  if (outputs.empty()) {
    ported_.model = model;
    ported_.model.sections.clear();
    ported_.model.form.sections.clear();
  } else {
    ported_ = with_ports(model, {}, outputs);
  }
  program_ = std::make_shared<const Program>(ported_.model);
}

/// The name and kind of the events must be some that the model can have.
void Experiment::find_events() const {
  std::vector<std::string> names, kinds;
  const Model& model = system_.model();
  for (int i = 0; i < model.form.visible; ++i) names.push_back(model.form.switches[at(i)].name);
  for (const Constraint& c : model.constraints) names.push_back(c.name);
  for (const Jump& j : model.jumps) names.push_back(j.name);
  for (int k = 0; k <= static_cast<int>(EventKind::mode); ++k) kinds.emplace_back(kind_name(static_cast<EventKind>(k)));
  const auto check = [&](const std::string& word, const std::vector<std::string>& known, const char* what) {
    if (word.empty() || std::find(known.begin(), known.end(), word) != known.end()) return;
    throw Error(ErrorKind::model, fmt::format("[data.{}]: there are no events {} '{}'", table_->name, what, word),
                table_->place, fmt::format("known: {}", fmt::join(known, ", ")));
  };
  check(table_->events->on, names, "on");
  check(table_->events->kind, kinds, "of the kind");
}

void Experiment::collect_data() {
  const size_t rows = table_->times.size();
  double low = HUGE_VAL, high = -HUGE_VAL;
  if (table_->events) {
    for (size_t i = 0; i < rows; ++i)
      data_of_.push_back(
          {0, table_->times[i], table_->times[i], table_->event_sigma.empty() ? 0.0 : table_->event_sigma[i], false});
    low = options_.from, high = last_;
  }
  for (size_t s = 0; s < table_->series.size(); ++s) {
    const DataSeries& series = table_->series[s];
    for (size_t i = 0; i < rows; ++i) {
      if (std::isnan(series.values[i])) continue;
      low = std::min(low, series.values[i]), high = std::max(high, series.values[i]);
      const bool before = i + 1 < rows && table_->times[i + 1] == table_->times[i];
      data_of_.push_back({s, table_->times[i], series.values[i], series.sigma.empty() ? 0.0 : series.sigma[i], before});
    }
  }
  spread_ = high > low ? high - low : std::max(1.0, std::abs(high));
  if (table_->events) return;
  in_order_.resize(data_of_.size());
  std::iota(in_order_.begin(), in_order_.end(), size_t{0});
  std::stable_sort(in_order_.begin(), in_order_.end(),
                   [&](size_t a, size_t b) { return data_of_[a].t < data_of_[b].t; });
}

std::string Experiment::series_name(size_t series) const {
  if (!table_->events) return table_->series[series].quantity;
  const DataEvents& e = *table_->events;
  return e.kind.empty() ? e.on : e.on.empty() ? e.kind : e.kind + " " + e.on;
}

double Experiment::missing(const Datum& datum) const {
  constexpr double far = 10;
  return far * spread_ / (datum.sigma > 0 ? datum.sigma : 1.0);
}

Experiment::Start Experiment::start_at(const std::vector<double>& values) const {
  const Model& model = system_.model();
  Start out{.options = options_};
  std::vector<GivenParameter> given;
  std::vector<int> moved;
  for (size_t k = 0; k < free_.size(); ++k) {
    if (free_[k].parameter < 0) continue;
    given.push_back({free_[k].parameter, values[k]});
    moved.push_back(free_[k].parameter);
  }
  const std::vector<double> own = parameter_values(model, given);
  out.options.initial = initial_values(model, own);
  const ParameterDirections directions = parameter_directions(model, own, moved);
  const Index n = ix(ported_.model.states.size()), d = ix(free_.size());
  out.options.parameters = own;
  out.options.parameters.resize(ported_.model.parameters.size(), 0.0);
  out.options.initial.resize(ux(n), 0.0);
  out.x = Mat::Zero(n, d);
  out.p = Mat::Zero(ix(out.options.parameters.size()), d);
  Index column = 0;
  for (size_t k = 0; k < free_.size(); ++k) {
    if (free_[k].parameter < 0) continue;
    for (Index i = 0; i < directions.x.rows(); ++i) out.x(i, ix(k)) = directions.x(i, column);
    for (Index i = 0; i < directions.p.rows(); ++i) out.p(i, ix(k)) = directions.p(i, column);
    ++column;
  }
  for (size_t k = 0; k < free_.size(); ++k) {
    if (free_[k].state < 0) continue;
    out.options.initial[at(free_[k].state)] = values[k];
    for (Index c = 0; c < d; ++c) out.x(free_[k].state, c) = ix(k) == c ? 1.0 : 0.0;
  }
  for (size_t k = 0; k < free_.size(); ++k) {
    if (!free_[k].log) continue;  // by the logarithm
    out.x.col(ix(k)) *= values[k];
    out.p.col(ix(k)) *= values[k];
  }
  return out;
}

/// Functions watched while a run goes on.
struct Experiment::Watch {
  const Experiment& of;
  Variation variation;
  Mat p;
  Point out;
  size_t next = 0;  // of the data in order, or of the events
  double end = 0;   // reached

  bool done() const { return next == of.data_of_.size(); }

  void take(size_t datum, const Arc& arc, const std::vector<double>& x, const Mat& X) {
    const int row = of.observed_[of.data_of_[datum].series], n = static_cast<int>(of.system_.model().states.size());
    if (row < n) {
      out.model[datum] = x[at(row)];
      for (Index c = 0; c < X.cols(); ++c) out.slopes(ix(datum), c) = X(row, c);
      return;
    }
    const double t = of.data_of_[datum].t;
    const int rate = of.ported_.output_state[at(row - n)];
    out.model[datum] = variation.rates(arc, x, t)[rate];
    const Mat slopes = variation.rate_slopes(arc, x, t, p);
    const Index states = ix(x.size());
    for (Index c = 0; c < X.cols(); ++c) {
      double sum = slopes(rate, states + c);
      for (Index i = 0; i < states; ++i) sum += slopes(rate, i) * X(i, c);
      out.slopes(ix(datum), c) = sum;
    }
  }

  void along(const Piece& piece, const Arc& arc) {
    end = piece.start + piece.length;
    if (of.of_events()) return variation.along(piece, arc);
    const double near = at_event * std::max(std::abs(end), std::abs(piece.length));
    std::vector<double> taus;
    std::vector<size_t> which;
    while (!done()) {
      const Datum& d = of.data_of_[of.in_order_[next]];
      if (d.t > end + near || (!d.before && d.t > end - near)) break;
      taus.push_back(std::clamp(d.t - piece.start, 0.0, piece.length));
      which.push_back(of.in_order_[next++]);
    }
    if (taus.empty()) return variation.along(piece, arc);
    std::vector<Mat> X(taus.size());
    variation.along(piece, arc, taus, [&](size_t k, const Mat& there) { X[k] = there; });
    std::vector<double> x(ux(X[0].rows()));
    for (size_t k = 0; k < taus.size(); ++k) {
      Trajectory::evaluate(piece, static_cast<int>(x.size()), taus[k], x.data());
      take(which[k], arc, x, X[k]);
    }
  }

  void through(const Transition& e) {
    if (!e.silent) out.modes.push_back(e.before.text() + ">" + e.after.text());
    if (!of.of_events()) return variation.through(e);
    const DataEvents& wanted = *of.table_->events;
    size_t count = 0;
    for (const Event& event : events_of(e, of.system_.model())) {
      const bool on = wanted.on.empty() || std::find(event.on.begin(), event.on.end(), wanted.on) != event.on.end();
      count += on && (wanted.kind.empty() || kind_name(event.kind) == wanted.kind) ? 1 : 0;
    }
    Mat shift = count > 0 ? variation.shift(e) : Mat();
    variation.through(e);
    if (count > 0 && !e.resting.empty()) shift = variation.last_shift();
    for (; count > 0 && !done(); --count, ++next) {
      out.model[next] = e.t;
      for (Index c = 0; c < shift.cols(); ++c) out.slopes(ix(next), c) = std::isfinite(shift(0, c)) ? shift(0, c) : 0.0;
    }
  }

  /// Data at the very end.
  void finish(const Trajectory& run) {
    const double near = 2 * at_event * std::max(std::abs(run.end.t), std::abs(end));
    while (!of.of_events() && !done()) {
      const size_t datum = of.in_order_[next];
      if (of.data_of_[datum].t > run.end.t + near) break;
      take(datum, run.last, run.end.state, variation.tangents());
      ++next;
    }
    for (const double v : out.model) out.whole = out.whole && std::isfinite(v);
  }
};

Experiment::Point Experiment::run(const std::vector<double>& values, const std::function<bool()>& stop) const {
  constexpr double patience = 4;  // times the last datum, where events come late
  Start start = start_at(values);
  RunOptions& o = start.options;
  o.until = of_events() ? o.from + patience * (last_ - o.from) : last_;
  Watch watch{.of = *this, .variation = Variation(*program_, o), .p = start.p};
  watch.out.model.assign(data_of_.size(), nan);
  watch.out.slopes = Mat::Zero(ix(data_of_.size()), ix(free_.size()));
  watch.variation.begin(start.x, start.p);
  o.on_piece = [&](const Piece& piece, const Arc& arc) { watch.along(piece, arc); };
  o.on_transition = [&](const Transition& e) { watch.through(e); };
  o.stop = [&] { return (of_events() && watch.done()) || (stop && stop()); };
  try {
    watch.finish(simulate(*program_, o));
  } catch (const Error&) {  // no run starts from there: a gap is violated, a formula has no value
    watch.out.whole = false;
  }
  watch.variation.give_back();
  return std::move(watch.out);
}

}  // namespace saltus
