// Derivatives of runs, exact and by differences of runs, and how they compare.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "../matrices.hpp"
#include "flow/parameter_directions.hpp"
#include "flow/variation.hpp"
#include "model/read.hpp"

namespace saltus {

/// A run with its tangents by initial values and by all parameters, and the same by differences of runs.
class Derivatives {
 public:
  Derivatives(const std::string& text, double until, double from = 0)
      : program_(read_model_text(text)), from_(from), until_(until) {}

  RunOptions options() const {
    RunOptions o;
    o.parameters = parameter_values(program_.model());
    o.initial = initial_values(program_.model(), o.parameters);
    o.from = from_;
    o.until = until_;
    o.tolerance = 1e-13;
    o.max_steps = 5000;
    return o;
  }

  const Model& model() const { return program_.model(); }

  /// Columns by states, then by parameters.
  Mat exact() {
    RunOptions o = options();
    const Index n = program_.states(), p = static_cast<Index>(o.parameters.size());
    Variation variation(program_, o);
    std::vector<int> all(o.parameters.size());
    std::iota(all.begin(), all.end(), 0);
    const ParameterDirections directions = parameter_directions(program_.model(), o.parameters, all);
    Mat x = Mat::Zero(n, n + p), q = Mat::Zero(p, n + p);
    x.leftCols(n).setIdentity();
    x.rightCols(p) = directions.x;
    q.rightCols(p) = directions.p;
    variation.begin(x, q);
    o.on_piece = [&](const Piece& piece, const Arc& arc) { variation.along(piece, arc); };
    o.on_transition = [&](const Transition& e) {
      variation.through(e);
      wraps += e.counters_before != e.counters ? 1 : 0;
      intersections = intersections || std::count(e.after.switches.begin(), e.after.switches.end(), '0') > 1;
    };
    const Trajectory run = simulate(program_, o);
    end = run.end;
    events.clear();
    for (const Event& e : run.events) events += name_of(e);
    notes = variation.notes();
    messages = run.messages;
    return variation.tangents();
  }

  /// Central differences of fourth order; nothing where a run nearby has other events or does not reach the end.
  std::optional<Mat> differences(double d) const {
    const RunOptions o = options();
    const Index n = program_.states(), p = static_cast<Index>(o.parameters.size());
    Mat out(n, n + p);
    bool alike = true;
    for (Index c = 0; c < n + p; ++c) {
      const auto end_of = [&](double by) {
        RunOptions moved = o;
        if (c < n) {
          moved.initial[static_cast<size_t>(c)] += by;
        } else {
          const GivenParameter given{static_cast<int>(c - n), moved.parameters[static_cast<size_t>(c - n)] + by};
          moved.parameters = parameter_values(program_.model(), std::span(&given, 1));
          moved.initial = initial_values(program_.model(), moved.parameters);
        }
        const Trajectory run = simulate(program_, moved);
        std::string seen;
        for (const Event& e : run.events) seen += name_of(e);
        alike = alike && seen == events && run.end.why == Why::time;
        if (run.end.state.empty()) return Vec(Vec::Zero(n));
        return Vec(column_at(run.end.state.data(), n));
      };
      out.col(c) = (8 * (end_of(d) - end_of(-d)) - (end_of(2 * d) - end_of(-2 * d))) / (12 * d);
      if (!alike) return std::nullopt;
    }
    return out;
  }

  /// Of the last exact().
  std::string events;
  std::vector<std::string> notes, messages;
  End end;
  long wraps = 0;              ///< steps of mod and floor
  bool intersections = false;  ///< it slid on several surfaces at once

 private:
  static std::string name_of(const Event& e) {
    std::string on;
    for (const std::string& name : e.on) on += (on.empty() ? "" : ",") + name;
    return std::string(kind_name(e.kind)) + "(" + on + ") ";
  }

  Program program_;
  double from_, until_;
};

}  // namespace saltus
