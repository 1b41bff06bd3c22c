#include "analysis/orbit_tangents.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>

#include "analysis/thresholds.hpp"
#include "base/index.hpp"
#include "flow/variation.hpp"
#include "model/program.hpp"

namespace saltus {
namespace {

/// Events before the end of a chatter from whose tangents its limit is taken.
constexpr int before_chatter = 24;
/// A panel whose flow takes more digits than this off its inverse is cut in two, so many times.
constexpr double most_forgotten = 1e4;
constexpr int most_cuts = 12;

/// Digits that X^-1 X has lost at worst, whatever the units of the states: the largest diagonal entry of |X^-1| |X|.
double forgotten_by(const Mat& X) {
  const Mat inverse = Lu(X).inverse();
  double worst = 1;
  for (Index i = 0; i < X.rows(); ++i) {
    double sum = 0;
    for (Index k = 0; k < X.rows(); ++k) sum += std::abs(inverse(i, k) * X(k, i));
    if (!(sum <= worst)) worst = sum;
  }
  return std::isfinite(worst) ? worst : HUGE_VAL;
}

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

/// The next item along an orbit: a part of a piece, or transitions at one instant.
struct Item {
  const Piece* piece = nullptr;
  int first = 0, count = 0;  // transitions
};

/// Walks along an orbit and writes down its nodes and links.
class Walk {
 public:
  using Link = OrbitTangents::Link;

  Walk(const Program& program, const RunOptions& options, const Trajectory& run, const Mat& P, double longest)
      : run_(run), variation_(program, options), n_(program.states()), longest_(longest) {
    out_.states = n_;
    out_.directions = P.cols();
    directions_ = P.cols() > 0 ? P : Mat(Mat::Zero(ix(options.parameters.size()), 0));
    P_ = Mat::Zero(ix(options.parameters.size()), n_ + P.cols());
    P_.rightCols(P.cols()) = directions_;
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
        const Mat shift = shift_of(items[k]);
        through(items[k]);
        add_node(transition(items[k].first + items[k].count - 1).x_plus, now_);
        end_link(Link::Kind::event, out_.nodes.size() - 2, items[k]);
        out_.links.back().shift = shift;
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

  void begin() {
    Mat X = Mat::Zero(n_, P_.cols());
    X.leftCols(n_).setIdentity();
    variation_.begin(std::move(X), P_);
  }

  /// How the time of the first of several events at one instant moves.
  Mat shift_of(const Item& item) { return variation_.shift(transition(item.first)); }

  void through(const Item& item) {
    for (int i = item.first; i < item.first + item.count; ++i) {
      variation_.through(transition(i));
      now_ = transition(i).t;
    }
  }

  void add_node(std::vector<double> x, double t) { out_.nodes.push_back({t, std::move(x)}); }

  /// From a node to the last one, by the tangents as they are.
  void end_link(Link::Kind kind, size_t from, const Item& item = {}) {
    const Mat& x = variation_.tangents();
    Link link{.kind = kind, .from = from, .to = out_.nodes.size() - 1};
    link.X = x.leftCols(n_);
    link.P = x.rightCols(out_.directions);
    link.shift = variation_.last_shift();
    link.first = item.first;
    link.count = item.count;
    out_.links.push_back(std::move(link));
  }

  std::vector<double> state_at(const Piece& piece, double tau) const {
    std::vector<double> x(at(run_.states));
    Trajectory::evaluate(piece, run_.states, tau, x.data());
    return x;
  }

  void begin_with(const Piece& piece) {
    if (!out_.nodes.empty()) return;
    add_node(state_at(piece, 0), piece.start);
    out_.start_rates = variation_.rates(run_.arcs[at(piece.arc)], out_.nodes.front().x, piece.start);
  }

  void go_along(const Piece& piece) {
    begin_with(piece);
    const int parts = std::max(1, static_cast<int>(std::ceil(std::abs(piece.length) / longest_ - 1e-9)));
    for (int part = 0; part < parts; ++part) {
      const double to = part + 1 == parts ? piece.length : piece.length * (part + 1) / parts;
      add_panel(piece, piece.length * part / parts, to, 0);
    }
    now_ = piece.start + piece.length;
  }

  static bool rests(const Arc& arc) {
    return arc.mode.switches.find('0') != std::string::npos || arc.mode.constraints.find('c') != std::string::npos;
  }

  /// Directions of states and of parameters at a point, brought onto what is slid on and closed there.
  Mat rested(Mat x, const Mat& p, const Arc& arc, std::span<const double> state, double t) {
    variation_.begin(std::move(x), p);
    variation_.rest(arc, state, t);
    return variation_.tangents();
  }

  void add_panel(const Piece& piece, double from, double to, int cuts) {
    const Arc& arc = run_.arcs[at(piece.arc)];
    const bool resting = rests(arc);
    const Index d = out_.directions;
    OrbitTangents::Panel panel{.first = out_.nodes.size() - 1, .length = to - from};
    Mat X = Mat::Zero(n_, n_ + d);
    X.leftCols(n_).setIdentity();
    if (resting && d > 0)
      X.rightCols(d) = rested(Mat::Zero(n_, d), directions_, arc, out_.nodes.back().x, piece.start + from);
    variation_.begin(X, P_, false);
    panel.X.push_back(X.leftCols(n_));
    panel.P.push_back(X.rightCols(d));
    std::vector<OrbitTangents::Node> nodes;
    double done = from;
    for (size_t j = 1; j <= panel_order; ++j) {
      const double tau = j == panel_order ? to : from + panel_nodes()[j] * (to - from);
      variation_.along(piece, arc, done, tau);
      panel.X.push_back(variation_.tangents().leftCols(n_));
      panel.P.push_back(variation_.tangents().rightCols(d));
      nodes.push_back({piece.start + tau, state_at(piece, tau)});
      done = tau;
    }
    const bool known = forgotten_by(panel.X.back()) <= most_forgotten;
    if (!known && cuts < most_cuts) {
      add_panel(piece, from, 0.5 * (from + to), cuts + 1);
      return add_panel(piece, 0.5 * (from + to), to, cuts + 1);
    }
    if (resting) {
      panel.onto.push_back(onto(arc, out_.nodes.back()));
      for (const OrbitTangents::Node& node : nodes) panel.onto.push_back(onto(arc, node));
    }
    close_panel(std::move(panel), std::move(nodes), known);
  }

  Mat onto(const Arc& arc, const OrbitTangents::Node& node) {
    return rested(Mat::Identity(n_, n_), {}, arc, node.x, node.t);
  }

  void close_panel(OrbitTangents::Panel panel, std::vector<OrbitTangents::Node> nodes, bool known) {
    Link link{.kind = known ? Link::Kind::panel : Link::Kind::span,
              .from = panel.first,
              .to = panel.first + (known ? panel_order : 1),
              .panel = out_.panels.size()};
    link.X = panel.onto.empty() ? panel.X.back() : Mat(panel.X.back() * panel.onto.front());
    link.P = panel.P.back();
    if (!known) nodes.erase(nodes.begin(), nodes.end() - 1);
    for (OrbitTangents::Node& node : nodes) out_.nodes.push_back(std::move(node));
    if (known) out_.panels.push_back(std::move(panel));
    out_.links.push_back(std::move(link));
  }

  /// Returns the last item of the span.
  size_t pass_span(const std::vector<Item>& items, const std::vector<bool>& accumulating, size_t k) {
    Item all;
    if (const Piece* piece = items[k].piece) begin_with(*piece);
    const size_t from = out_.nodes.empty() ? 0 : out_.nodes.size() - 1;
    begin();
    for (;; ++k) {
      if (const Piece* piece = items[k].piece) {
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
    add_node(transition(all.first + all.count - 1).x_plus, now_);
    end_link(Link::Kind::span, from, all);
    return k;
  }

  const Trajectory& run_;
  Variation variation_;
  Index n_;
  double longest_;
  Mat P_, directions_;
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

OrbitTangents tangents_along(const Program& program, const RunOptions& options, const Trajectory& run, const Mat& P,
                             double longest) {
  RunOptions same_way = options;
  same_way.until = run.end.t;
  same_way.from = run.start_time;
  return Walk(program, same_way, run, P, longest).go();
}

Vec scales_of(std::span<const double> size) {
  double largest = 0;
  for (const double s : size) largest = std::max(largest, s);
  Vec out(ix(size.size()));
  for (size_t i = 0; i < size.size(); ++i)
    out[ix(i)] = size[i] > still_share * largest ? size[i] : largest > 0 ? largest : 1.0;
  return out;
}

std::vector<Index> closing_states(const Orbit& found) {
  std::vector<Index> out;
  for (size_t i = 0; i < found.free.size(); ++i) {
    if (!found.free[i]) out.push_back(ix(i));
  }
  return out;
}

Mat moved_start(const Mat& M, const Mat& by, const Vec& rates, const std::vector<double>& period_by,
                const std::vector<Index>& kept, const Vec& scale) {
  const Vec s = scale.entries_at(kept);
  const Mat A = s.cwiseInverse().asDiagonal() * M.part(kept) * s.asDiagonal() - Mat::Identity(s.size(), s.size());
  const Orthogonal solver(A, left_vector_share);
  Mat out = Mat::Zero(scale.size(), by.cols());
  for (Index c = 0; c < by.cols(); ++c) {
    const Vec b = -(by.col(c) + rates * period_by[ux(c)]);
    Vec column = Vec::Zero(scale.size());
    column.set_entries_at(kept, solver.solve(b.entries_at(kept).cwiseQuotient(s)).cwiseProduct(s));
    out.col(c) = column;
  }
  return out;
}

std::vector<double> moved_period(const Mat& M, const Mat& by, const Vec& rates, const std::vector<Index>& kept,
                                 const Vec& scale, double period) {
  const Vec s = scale.entries_at(kept);
  Mat A = Mat::Zero(s.size(), s.size() + 1);
  A.leftCols(s.size()) =
      s.cwiseInverse().asDiagonal() * M.part(kept) * s.asDiagonal() - Mat::Identity(s.size(), s.size());
  A.col(s.size()) = rates.entries_at(kept).cwiseQuotient(s) * period;
  const Orthogonal solver(A);
  std::vector<double> out;
  for (Index c = 0; c < by.cols(); ++c) {
    const Vec b = by.col(c);
    out.push_back(-solver.solve(b.entries_at(kept).cwiseQuotient(s))[s.size()] * period);
  }
  return out;
}

}  // namespace saltus
