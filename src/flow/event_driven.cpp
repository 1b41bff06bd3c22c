#include "flow/event_driven.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "flow/engine.hpp"

namespace saltus {

Engine::Engine(const Program& program, const RunOptions& options)
    : program_(program),
      model_(program.model()),
      options_(options),
      most_order_(cheapest_order(local_tolerance(options.tolerance),
                                 program.tape(std::string(at(program.switches()), '+')).flow)),
      order_(most_order_),
      series_(program, options.parameters, most_order_),
      control_(program.states(), local_tolerance(options.tolerance), std::abs(options.until - options.from)),
      clock_(options.from),
      direction_(options.until < options.from ? -1.0 : 1.0),
      x_(options.initial),
      point_(program.points(), options.parameters) {
  for (const auto& [name, side] : options.leave) {
    for (int i = 0; i < program.switches(); ++i) {
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
  result_.states = program.states();
  result_.sliding.assign(at(program.switches()), {});
  known_.assign(at(program.unknowns()), 0);
  next_sign_ = section_sign_;
  if (options.stiff) stiff_.emplace(program, options.tolerance, direction_, order_);
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
  result_.cost.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return std::move(result_);
}

void Engine::start() {
  result_.start_time = options_.from;
  result_.start_state = x_;
  mode_.switches.assign(at(program_.switches()), '+');
  mode_.constraints.assign(at(program_.constraints()), 'o');
  series_.tie(find_ties());
  count_wraps();
  arrive(zeros_, true, true);
  started_ = true;
  result_.start_mode = mode_;
  slides_ = std::count(mode_.switches.begin(), mode_.switches.end(), '0');
  note_signs();
  if (!ended_ && !rebounded_.empty()) record(mode_, result_.start_state, {});
}

Series::Ties Engine::find_ties() const {
  const int m = program_.switches();
  std::map<std::vector<int>, std::vector<int>> alike;  // by the states and times they depend on
  for (int i = 0; i < m; ++i) {
    std::vector<int> support;
    for (const Expr& s : symbols_in(std::span(&model_.form.switches[at(i)].surface, 1))) {
      if (s.symbol().kind != SymbolKind::parameter)
        support.push_back(static_cast<int>(s.symbol().kind) * 1'000'000 + s.symbol().index);
    }
    std::sort(support.begin(), support.end());
    if (program_.moves(i)) alike[support].push_back(i);
  }
  Series::Ties ties;
  std::vector<std::vector<double>> values;  // of all surfaces at a few points, only if there is something to compare
  for (const auto& [support, members] : alike) {
    if (members.size() < 2) continue;
    if (values.empty()) values = probe_surfaces();
    for (size_t b = 1; b < members.size(); ++b) {
      for (size_t a = 0; a < b; ++a) {
        const size_t i = at(members[a]), j = at(members[b]);
        const double ratio = values[0][j] / values[0][i];
        bool same = std::isfinite(ratio) && ratio != 0;
        for (const auto& point : values)
          same = same && std::abs(point[j] - ratio * point[i]) <= 1e-12 * std::abs(point[j]);
        if (!same) continue;
        ties[members[b]] = {members[a], ratio > 0 ? 1 : -1};
        break;
      }
    }
  }
  return ties;
}

std::vector<std::vector<double>> Engine::probe_surfaces() const {
  Rounding point(program_.points(), options_.parameters);
  std::vector<std::vector<double>> out;
  std::vector<double> x(x_.size()), sigma(at(program_.switches()), 1.0), counters(counters_.size(), 0.0);
  double u = 0.318;
  for (int k = 0; k < 4; ++k) {
    for (double& v : x) {
      u = std::fmod(u * 997.13 + 0.6180339, 1.0);
      v = u * 2.3 - 0.9;
    }
    point.evaluate(x, options_.from + 0.377 + 1.19 * k, sigma, counters);
    std::vector<double>& row = out.emplace_back();
    for (int i = 0; i < program_.switches(); ++i) row.push_back(point.value(program_.point(i, 0)));
  }
  return out;
}

void Engine::finish(Why why, std::string message) {
  if (ended_) return;
  ended_ = true;
  result_.end = {why, std::move(message), why == Why::time ? options_.until : clock_.now(), x_, mode_};
}

Trajectory simulate_event_driven(const Program& program, const RunOptions& options) {
  return Engine(program, options).run();
}

}  // namespace saltus
