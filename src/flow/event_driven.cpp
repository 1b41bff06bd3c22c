#include "flow/event_driven.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "flow/engine.hpp"

namespace saltus {

namespace {

size_t at(int i) { return static_cast<size_t>(i); }

/// All surfaces at a few points.
std::vector<std::vector<double>> probe_surfaces(const Program& program, Rounding& point) {
  std::vector<std::vector<double>> out;
  std::vector<double> x(at(program.states())), sigma(at(program.switches()), 1.0);
  const std::vector<double> counters(program.model().form.counters.size(), 0.0);
  double u = 0.318;
  for (int k = 0; k < 4; ++k) {
    for (double& v : x) {
      u = std::fmod(u * 997.13 + 0.6180339, 1.0);
      v = u * 2.3 - 0.9;
    }
    point.evaluate(x, 0.377 + 1.19 * k, sigma, counters);
    std::vector<double>& row = out.emplace_back();
    for (int i = 0; i < program.switches(); ++i) row.push_back(point.value(program.point(i, 0)));
  }
  return out;
}

/// Surfaces that are constant multiples of each other under these parameters (v and K*v).
Series::Ties find_ties(const Program& program, Rounding& point) {
  const Model& model = program.model();
  const int m = program.switches();
  std::map<std::vector<int>, std::vector<int>> alike;  // by the states and times they depend on
  for (int i = 0; i < m; ++i) {
    std::vector<int> support;
    for (const Expr& s : symbols_in(std::span(&model.form.switches[at(i)].surface, 1))) {
      if (s.symbol().kind != SymbolKind::parameter)
        support.push_back(static_cast<int>(s.symbol().kind) * 1'000'000 + s.symbol().index);
    }
    std::sort(support.begin(), support.end());
    if (program.moves(i)) alike[support].push_back(i);
  }
  Series::Ties ties;
  std::vector<std::vector<double>> values;  // of all surfaces at a few points, only if there is something to compare
  for (const auto& [support, members] : alike) {
    if (members.size() < 2) continue;
    if (values.empty()) values = probe_surfaces(program, point);
    for (size_t b = 1; b < members.size(); ++b) {
      for (size_t a = 0; a < b; ++a) {
        const size_t i = at(members[a]), j = at(members[b]);
        const double ratio = values[0][j] / values[0][i];
        bool same = std::isfinite(ratio) && ratio != 0;
        for (const auto& row : values) same = same && std::abs(row[j] - ratio * row[i]) <= 1e-12 * std::abs(row[j]);
        if (!same) continue;
        ties[members[b]] = {members[a], ratio > 0 ? 1 : -1};
        break;
      }
    }
  }
  return ties;
}

}  // namespace

void EngineMemory::prepare(const RunOptions& options) {
  const bool new_parameters = !series || parameters != options.parameters;
  if (!series || tolerance != options.tolerance) {
    tolerance = options.tolerance;
    parameters = options.parameters;
    order = cheapest_order(local_tolerance(tolerance), program.tape(std::string(at(program.switches()), '+')).flow);
    series.emplace(program, parameters, order);
    const double local = local_tolerance(tolerance);
    step_ratio.assign(1, 1.0);
    for (int n = 1; n <= order; ++n) step_ratio.push_back(std::pow(local, 1.0 / taylor_order(local) - 1.0 / n));
  } else if (new_parameters) {
    parameters = options.parameters;
    series->bind(parameters);
  }
  if (new_parameters) {
    point.emplace(program.points(), parameters);
    ties = find_ties(program, *point);
  }
  series->tie(ties);
  series->reset();
  chatter.clear();
}

Engine::Engine(EngineMemory& memory, const RunOptions& options)
    : program_(memory.program),
      model_(program_.model()),
      options_(options),
      most_order_(memory.order),
      order_(most_order_),
      step_ratio_(memory.step_ratio),
      series_(*memory.series),
      control_(program_.states(), local_tolerance(options.tolerance), std::abs(options.until - options.from)),
      clock_(options.from),
      direction_(options.until < options.from ? -1.0 : 1.0),
      x_(options.initial),
      point_(*memory.point),
      chatter_(memory.chatter) {
  for (const auto& [name, side] : options.leave) {
    for (int i = 0; i < program_.switches(); ++i) {
      if (model_.form.switches[at(i)].name == name) choice_.leave[i] = side;
    }
  }
  counters_.assign(model_.form.counters.size(), 0.0);
  jump_sign_.assign(model_.form.jumps.size(), 0);
  section_sign_.assign(model_.sections.size(), 0);
  section_seen_.assign(model_.sections.size(), -HUGE_VAL);
  for (size_t s = 0; s < model_.sections.size(); ++s) {
    has_surface_section_ = has_surface_section_ || model_.sections[s].kind == Section::Kind::on;
    if (model_.sections[s].kind != Section::Kind::every) continue;
    every_.push_back({static_cast<int>(s), constant_value(model_.sections[s].value, options.parameters), 1});
  }
  choice_.direction = direction_;
  result_.states = program_.states();
  result_.sliding.assign(at(program_.switches()), {});
  known_.assign(at(program_.unknowns()), 0);
  next_sign_ = section_sign_;
  if (options.stiff) stiff_.emplace(program_, options.tolerance, direction_, order_);
}

Trajectory Engine::run() {
  const auto begin = std::chrono::steady_clock::now();
  start();
  while (!ended_ && !finished()) {
    if (!step()) break;
    if (++result_.cost.steps >= options_.max_steps)
      finish(Why::stalled, fmt::format("{} steps were not enough", options_.max_steps));
    if (result_.cost.steps % 256 == 0 && options_.progress && !options_.progress(clock_.now()))
      finish(Why::cancelled, "interrupted");
  }
  if (!ended_) finish(Why::time, "");
  if (idle_steps_ > 1000 && 2 * idle_steps_ > result_.cost.steps)
    say(fmt::format("{} of {} steps were short for stability, not for accuracy: --flow stiff is likely to be faster",
                    idle_steps_, result_.cost.steps));
  result_.cost.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return std::move(result_);
}

void Engine::start() {
  result_.start_time = options_.from;
  result_.start_state = x_;
  mode_.switches.assign(at(program_.switches()), '+');
  mode_.constraints.assign(at(program_.constraints()), 'o');
  for (size_t round = 0; round < counters_.size(); ++round) {  // phases may depend on switches, and these on phases
    const std::vector<double> before = counters_;
    count_wraps();
    if (counters_ == before) break;
    zeros_.clear();
    look(zeros_);
  }
  zeros_.clear();
  arrive(zeros_, true, true);
  started_ = true;
  result_.start_mode = mode_;
  slides_ = std::count(mode_.switches.begin(), mode_.switches.end(), '0');
  note_signs();
  if (!ended_ && !rebounded_.empty()) record(mode_, result_.start_state, {});
}

void Engine::finish(Why why, std::string message) {
  if (ended_) return;
  ended_ = true;
  result_.end = {why, std::move(message), why == Why::time ? options_.until : clock_.now(), x_, mode_};
}

Trajectory simulate_event_driven(EngineMemory& memory, const RunOptions& options) {
  memory.prepare(options);
  return Engine(memory, options).run();
}

}  // namespace saltus
