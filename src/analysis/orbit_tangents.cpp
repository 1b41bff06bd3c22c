#include "analysis/orbit_tangents.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>

#include "base/index.hpp"
#include "flow/variation.hpp"
#include "model/program.hpp"

namespace saltus {
namespace {

/// Events before the end of a chatter from whose tangents its limit is taken.
constexpr int before_chatter = 24;

using PanelNumbers = std::array<double, panel_order + 1>;

PanelNumbers make_nodes() {
  PanelNumbers out{};
  for (size_t j = 0; j <= panel_order; ++j)
    out[j] = 0.5 * (1 - std::cos(std::numbers::pi * static_cast<double>(j) / panel_order));
  return out;
}

PanelNumbers make_weights() {
  PanelNumbers out{};
  constexpr double n = panel_order;
  for (size_t j = 0; j <= panel_order; ++j) {
    double sum = 1;
    for (int k = 1; k <= panel_order / 2; ++k) {
      const double b = 2 * k == panel_order ? 1 : 2;
      sum -= b / (4.0 * k * k - 1) * std::cos(2 * std::numbers::pi * k * static_cast<double>(j) / n);
    }
    const bool end = j == 0 || j == panel_order;
    out[j] = (end ? 0.5 : 1.0) / n * sum;
  }
  return out;
}

/// What follows next along an orbit: a part of a piece, or transitions at one instant.
struct Item {
  const Piece* piece = nullptr;
  int first = 0, count = 0;  // transitions
};

/// Walks along an orbit and writes down its nodes and links.
class Walk {
 public:
  Walk(const Program& program, const RunOptions& options, const Orbit& orbit, const Mat& P, double longest)
      : run_(orbit.trajectory), variation_(program, options), longest_(longest) {
    out_.states = program.states();
    out_.directions = P.cols();
    X_ = Mat::Zero(out_.states, out_.states + P.cols());
    X_.leftCols(out_.states).setIdentity();
    P_ = Mat::Zero(ix(options.parameters.size()), out_.states + P.cols());
    if (P.cols() > 0) P_.rightCols(P.cols()) = P;
    at_end_ = event_at_end(run_);
  }

  OrbitTangents go() {
    const std::vector<Item> items = in_order();
    const std::vector<bool> accumulating = find_spans(items);
    for (size_t k = 0; k < items.size(); ++k) {
      if (accumulating[k]) {
        k = pass_span(items, accumulating, k);
      } else if (items[k].piece) {
        go_along(*items[k].piece);
      } else {
        begin();
        through(items[k]);
        end_link(OrbitTangents::Link::Kind::event, items[k]);
        add_node(transition(items[k].first + items[k].count - 1).x_plus, next_arc(items, k), now_);
      }
    }
    out_.notes = variation_.notes();
    return std::move(out_);
  }

 private:
  const Transition& transition(int i) const {
    return at(i) < run_.transitions.size() ? run_.transitions[at(i)] : *at_end_;
  }

  std::vector<Item> in_order() const {
    std::vector<Item> out;
    int next = 0;
    const int count = static_cast<int>(run_.transitions.size());
    const auto add_until = [&](double passed) {
      const int first = next;
      while (next < count && std::abs(run_.transitions[at(next)].t - run_.start_time) <= passed) ++next;
      if (next > first) out.push_back({nullptr, first, next - first});
    };
    for (const Piece& piece : run_.pieces) {
      add_until(std::abs(piece.start - run_.start_time));
      out.push_back({&piece});
    }
    add_until(HUGE_VAL);
    if (at_end_) out.push_back({nullptr, count, 1});
    return out;
  }

  /// True for items within a sequence of events that accumulate: its limit needs the tangents at all of them.
  std::vector<bool> find_spans(const std::vector<Item>& items) const {
    std::vector<bool> out(items.size(), false);
    for (size_t k = 0; k < items.size(); ++k) {
      for (int i = items[k].first; i < items[k].first + items[k].count; ++i) {
        if (transition(i).resting.empty()) continue;
        int events = 0;
        for (size_t j = k + 1; j-- > 0 && events < before_chatter;) {
          out[j] = true;
          events += items[j].count;
        }
      }
    }
    return out;
  }

  void begin() { variation_.begin(X_, P_); }

  void through(const Item& item) {
    for (int i = item.first; i < item.first + item.count; ++i) {
      variation_.through(transition(i));
      now_ = transition(i).t;
    }
  }

  void add_node(std::vector<double> x, int arc, double t) {
    Vec rates = variation_.rates(run_.arcs[at(arc)], x, t);
    out_.nodes.push_back({t, std::move(x), arc, std::move(rates)});
  }

  void end_link(OrbitTangents::Link::Kind kind, const Item& item = {}) {
    const Mat& x = variation_.tangents();
    OrbitTangents::Link link{.kind = kind, .X = x.leftCols(out_.states), .P = x.rightCols(out_.directions)};
    if (kind != OrbitTangents::Link::Kind::flow) {
      link.shift = variation_.last_shift();
      link.first = item.first;
      link.count = item.count;
    }
    out_.links.push_back(std::move(link));
  }

  /// The arc behind an item: that of the next piece, or of the first one.
  int next_arc(const std::vector<Item>& items, size_t k) const {
    for (size_t j = k + 1; j < items.size(); ++j) {
      if (items[j].piece) return items[j].piece->arc;
    }
    return run_.pieces.front().arc;
  }

  void begin_with(const Piece& piece) {
    if (!out_.nodes.empty()) return;
    std::vector<double> x(at(run_.states));
    Trajectory::evaluate(piece, run_.states, 0, x.data());
    add_node(std::move(x), piece.arc, piece.start);
  }

  void go_along(const Piece& piece) {
    begin_with(piece);
    const int parts = std::max(1, static_cast<int>(std::ceil(std::abs(piece.length) / longest_ - 1e-9)));
    const Arc& arc = run_.arcs[at(piece.arc)];
    const std::span<const double> nodes = panel_nodes();
    for (int part = 0; part < parts; ++part) {
      const double from = piece.length * part / parts;
      const double to = part + 1 == parts ? piece.length : piece.length * (part + 1) / parts;
      out_.panels.push_back({out_.nodes.size() - 1, to - from});
      double done = from;
      for (size_t j = 1; j <= panel_order; ++j) {
        const double tau = j == panel_order ? to : from + nodes[j] * (to - from);
        begin();
        variation_.along(piece, arc, done, tau);
        end_link(OrbitTangents::Link::Kind::flow);
        std::vector<double> x(at(run_.states));
        Trajectory::evaluate(piece, run_.states, tau, x.data());
        add_node(std::move(x), piece.arc, piece.start + tau);
        done = tau;
      }
    }
    now_ = piece.start + piece.length;
  }

  /// Returns the last item of the span.
  size_t pass_span(const std::vector<Item>& items, const std::vector<bool>& accumulating, size_t k) {
    Item all;
    begin();
    for (;; ++k) {
      if (const Piece* piece = items[k].piece) {
        begin_with(*piece);
        variation_.along(*piece, run_.arcs[at(piece->arc)]);
        now_ = piece->start + piece->length;
      } else {
        if (all.count == 0) all.first = items[k].first;
        all.count += items[k].count;
        through(items[k]);
      }
      const bool ends = !items[k].piece && !transition(items[k].first + items[k].count - 1).resting.empty();
      if (ends || k + 1 == items.size() || !accumulating[k + 1]) break;
    }
    end_link(OrbitTangents::Link::Kind::span, all);
    add_node(transition(all.first + all.count - 1).x_plus, next_arc(items, k), now_);
    return k;
  }

  const Trajectory& run_;
  Variation variation_;
  double longest_;
  Mat X_, P_;
  std::optional<Transition> at_end_;
  double now_ = 0;
  OrbitTangents out_;
};

}  // namespace

std::span<const double> panel_nodes() {
  static const PanelNumbers nodes = make_nodes();
  return nodes;
}

std::span<const double> panel_weights() {
  static const PanelNumbers weights = make_weights();
  return weights;
}

double panel_value(const double* values, size_t stride, double place) {
  const std::span<const double> nodes = panel_nodes();
  double above = 0, below = 0;
  for (size_t j = 0; j <= panel_order; ++j) {
    const double distance = place - nodes[j];
    if (distance == 0) return values[j * stride];
    const double weight = (j % 2 == 0 ? 1.0 : -1.0) * (j == 0 || j == panel_order ? 0.5 : 1.0) / distance;
    above += weight * values[j * stride];
    below += weight;
  }
  return above / below;
}

Mat OrbitTangents::monodromy() const {
  Mat out = Mat::Identity(states, states);
  for (const Link& link : links) out = link.X * out;
  return out;
}

Mat OrbitTangents::by_parameters() const {
  Mat out = Mat::Zero(states, directions);
  for (const Link& link : links) out = link.X * out + link.P;
  return out;
}

OrbitTangents tangents_along(const Program& program, const RunOptions& options, const Orbit& orbit, const Mat& P,
                             double longest) {
  RunOptions same_way = options;
  same_way.until = orbit.trajectory.end.t;
  same_way.from = orbit.trajectory.start_time;
  return Walk(program, same_way, orbit, P, longest).go();
}

}  // namespace saltus
