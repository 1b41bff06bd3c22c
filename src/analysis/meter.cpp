#include "analysis/meter.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "analysis/thresholds.hpp"
#include "base/index.hpp"
#include "base/numbers.hpp"

namespace saltus {
namespace {

/// Nodes of the 15-point Kronrod rule on [-1, 1] with its weights, and the weights of the 7-point Gauss rule on every
/// other of them (Piessens et al., QUADPACK, 1983).
constexpr std::array<double, 15> nodes{-0.991455371120812639206854697526329, -0.949107912342758524526189684047851,
                                       -0.864864423359769072789712788640926, -0.741531185599394439863864773280788,
                                       -0.586087235467691130294144691693013, -0.405845151377397166906606412076961,
                                       -0.207784955007898467600689403773245, 0.0,
                                       0.207784955007898467600689403773245,  0.405845151377397166906606412076961,
                                       0.586087235467691130294144691693013,  0.741531185599394439863864773280788,
                                       0.864864423359769072789712788640926,  0.949107912342758524526189684047851,
                                       0.991455371120812639206854697526329};
constexpr std::array<double, 15> kronrod{
    0.022935322010529224963732008058970, 0.063092092629978553290700663189204, 0.104790010322250183839876322541518,
    0.140653259715525918745189590510238, 0.169004726639267902826583426598550, 0.190350578064785409913256402421014,
    0.204432940075298892414161999234649, 0.209482141084727828012999174891714, 0.204432940075298892414161999234649,
    0.190350578064785409913256402421014, 0.169004726639267902826583426598550, 0.140653259715525918745189590510238,
    0.104790010322250183839876322541518, 0.063092092629978553290700663189204, 0.022935322010529224963732008058970};
constexpr std::array<double, 7> gauss{0.129484966168869693270611432679082, 0.279705391489276667901467771423780,
                                      0.381830050505118944950369775488975, 0.417959183673469387755102040816327,
                                      0.381830050505118944950369775488975, 0.279705391489276667901467771423780,
                                      0.129484966168869693270611432679082};

/// The highest column that a measure reads.
int last_column(const Measure& m) {
  if (m.column >= 0) return m.column;
  int last = 0;
  for (const Expr& e : symbols_in(std::span(&m.formula, 1))) {
    if (e.symbol().kind == SymbolKind::argument) last = std::max(last, e.symbol().index);
  }
  return last;
}

bool has_sum(const Measure& m) { return m.kind == Measure::Kind::mean || m.kind == Measure::Kind::rms; }
bool has_extremes(const Measure& m) {
  return m.kind == Measure::Kind::pp || m.kind == Measure::Kind::min || m.kind == Measure::Kind::max;
}

/// The extreme value of the parabola through three points, and where that lies in between; the middle one where it
/// bends the other way.
double parabola_peak(double x0, double y0, double x1, double y1, double x2, double y2) {
  const double d0 = (y1 - y0) / (x1 - x0), d1 = (y2 - y1) / (x2 - x1), bend = (d1 - d0) / (x2 - x0);
  if (!(bend < 0)) return y1;
  const double slope = d0 + bend * (x1 - x0);
  return y1 - slope * slope / (4 * bend);
}

}  // namespace

Gathered::Gathered(std::size_t measures)
    : sum(measures, 0.0),
      low(measures, std::numeric_limits<double>::infinity()),
      high(measures, -std::numeric_limits<double>::infinity()) {}

void Gathered::add(const Gathered& next) {
  time += next.time;
  for (size_t m = 0; m < sum.size(); ++m) {
    sum[m] += next.sum[m];
    low[m] = std::fmin(low[m], next.low[m]);
    high[m] = std::fmax(high[m], next.high[m]);
  }
}

double value(const Measure& measure, std::size_t index, const Gathered& all) {
  if (!(all.time > 0)) return nan;
  switch (measure.kind) {
    case Measure::Kind::mean: return all.sum[index] / all.time;
    case Measure::Kind::rms: return std::sqrt(all.sum[index] / all.time);
    case Measure::Kind::above: return all.sum[index];
    case Measure::Kind::pp: return all.high[index] - all.low[index];
    case Measure::Kind::min: return std::isfinite(all.low[index]) ? all.low[index] : nan;
    case Measure::Kind::max: return std::isfinite(all.high[index]) ? all.high[index] : nan;
  }
  return nan;
}

// ---- a run ---------------------------------------------------------------------------------------------------------

Meter::Meter(const Program& program, const RunOptions& options, std::vector<Measure> measures)
    : states_(program.states()),
      measures_(std::move(measures)),
      parameters_(options.parameters),
      quantities_(program, options),
      x_(at(program.states())),
      gathered_(measures_.size()) {
  for (const Measure& m : measures_) {
    levels_.push_back(constant_value(m.level, parameters_));
    states_only_ = states_only_ && last_column(m) <= states_;
    sums_ = sums_ || has_sum(m);
    extremes_ = extremes_ || has_extremes(m);
  }
}

double Meter::quantity(const Measure& m) const {
  if (m.column >= 0) return row_[at(m.column)];
  return evaluate(m.formula, [&](const Symbol& s) {
    return s.kind == SymbolKind::time        ? row_[0]
           : s.kind == SymbolKind::parameter ? parameters_[at(s.index)]
                                             : row_[at(s.index)];
  });
}

Gathered Meter::take() {
  Gathered out = std::move(gathered_);
  gathered_ = Gathered(measures_.size());
  return out;
}

void Meter::stretch(const Piece& piece, const Arc& arc, double a, double b) {
  if (a == b || measures_.empty()) return;
  if (!states_only_ && (!begun_ || !(arc == quantities_.arc()))) quantities_.enter(arc);
  begun_ = true;
  gathered_.time += std::abs(b - a);
  gather(piece, a, b, 0);
}

Meter::Node Meter::at_tau(const Piece& piece, double tau) {
  Trajectory::evaluate(piece, states_, tau, x_.data());
  if (states_only_) {
    row_.resize(x_.size() + 1);
    row_[0] = piece.start + tau;
    std::copy(x_.begin(), x_.end(), row_.begin() + 1);
  } else {
    quantities_.read(piece.start + tau, x_, row_);
  }
  Node node{tau, {}};
  for (const Measure& m : measures_) node.q.push_back(quantity(m));
  return node;
}

/// Integrals, extremes and times above a level on [a, b]; halved where the two rules do not agree.
void Meter::gather(const Piece& piece, double a, double b, int depth) {
  const double middle = a + (b - a) / 2, half = (b - a) / 2;
  std::vector<Node> all{at_tau(piece, a)};
  for (const double x : nodes) all.push_back(at_tau(piece, middle + half * x));
  all.push_back(at_tau(piece, b));
  std::vector<double> integral(measures_.size(), 0.0);
  bool agree = true;
  for (size_t m = 0; m < measures_.size(); ++m) {
    if (!has_sum(measures_[m])) continue;
    const bool square = measures_[m].kind == Measure::Kind::rms;
    double fine = 0, coarse = 0, size = 0;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const double q = all[i + 1].q[m], f = square ? q * q : q;
      fine += kronrod[i] * f;
      size += kronrod[i] * std::abs(f);
      if (i % 2 == 1) coarse += gauss[i / 2] * f;
    }
    agree = agree && !(std::abs(fine - coarse) > rules_agree * size);
    integral[m] = fine * std::abs(half);
  }
  if (!agree && depth < rule_halvings) {
    gather(piece, a, middle, depth + 1);
    gather(piece, middle, b, depth + 1);
    return;
  }
  for (size_t m = 0; m < measures_.size(); ++m) {
    gathered_.sum[m] += measures_[m].kind == Measure::Kind::above ? time_above(piece, m, all) : integral[m];
  }
  if (extremes_) look_for_extremes(piece, all);
}

void Meter::look_for_extremes(const Piece& piece, const std::vector<Node>& all) {
  for (size_t m = 0; m < measures_.size(); ++m) {
    if (!has_extremes(measures_[m])) continue;
    double &low = gathered_.low[m], &high = gathered_.high[m];
    for (const Node& n : all) {
      low = std::fmin(low, n.q[m]);
      high = std::fmax(high, n.q[m]);
    }
    for (size_t i = 1; i + 1 < all.size(); ++i) {
      const Node &l = all[i - 1], &c = all[i], &r = all[i + 1];
      for (const double sign : {1.0, -1.0}) {
        const double y0 = sign * l.q[m], y1 = sign * c.q[m], y2 = sign * r.q[m];
        if (!(y1 >= y0 && y1 >= y2) || (y1 == y0 && y1 == y2)) continue;
        const double top = parabola_peak(l.tau, y0, c.tau, y1, r.tau, y2), best = sign > 0 ? high : -low;
        if (top + (top - y1) < best) continue;  // lower than what has been found, however the parabola errs
        const double found = peak(piece, m, l.tau, r.tau, sign);
        high = std::fmax(high, found);
        low = std::fmin(low, found);
      }
    }
  }
}

/// The extreme value between two times around it, by golden section: the value is known to the square of the time.
double Meter::peak(const Piece& piece, std::size_t m, double left, double right, double sign) {
  constexpr double golden = 0.6180339887498949;
  double a = left, b = right, c = b - golden * (b - a), d = a + golden * (b - a);
  double at_c = at_tau(piece, c).q[m], at_d = at_tau(piece, d).q[m];
  const double enough = std::sqrt(std::numeric_limits<double>::epsilon()) *
                        std::max(std::abs(right - left), std::sqrt(std::numeric_limits<double>::epsilon()) *
                                                             std::max(std::abs(left), std::abs(right)));
  for (int i = 0; i < 60 && std::abs(b - a) > enough; ++i) {
    if (sign * at_c > sign * at_d) {
      b = d;
      d = c;
      at_d = at_c;
      c = b - golden * (b - a);
      at_c = at_tau(piece, c).q[m];
    } else {
      a = c;
      c = d;
      at_c = at_d;
      d = a + golden * (b - a);
      at_d = at_tau(piece, d).q[m];
    }
  }
  return sign * at_c > sign * at_d ? at_c : at_d;
}

double Meter::time_above(const Piece& piece, std::size_t m, const std::vector<Node>& all) {
  const double level = levels_[m];
  double time = 0;
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    double a = all[i].tau, b = all[i + 1].tau;
    const bool from = all[i].q[m] > level, to = all[i + 1].q[m] > level;
    if (from == to) {
      if (from) time += std::abs(b - a);
      continue;
    }
    for (double c = a + (b - a) / 2; c != a && c != b; c = a + (b - a) / 2)
      ((at_tau(piece, c).q[m] > level) == from ? a : b) = c;
    time += std::abs(from ? a - all[i].tau : all[i + 1].tau - b);
  }
  return time;
}

// ---- points of a section -------------------------------------------------------------------------------------------

SectionMeter::SectionMeter(const Program& program, const RunOptions& options, std::vector<Measure> measures,
                           std::size_t most, bool on_piece)
    : meter_(program, options, std::move(measures)), most_(most), on_piece_(on_piece) {}

void SectionMeter::point(double t) {
  if (on_piece_) {
    waiting_.push_back(t);
  } else {
    close();
  }
}

void SectionMeter::close() {
  Gathered interval = meter_.take();
  if (open_) kept_.push_back(std::move(interval));
  open_ = true;
  if (kept_.size() > 2 * most_) kept_.erase(kept_.begin(), kept_.end() - static_cast<std::ptrdiff_t>(most_));
}

void SectionMeter::piece(const Piece& piece, const Arc& arc) {
  double a = 0;
  for (const double t : waiting_) {
    const double tau = t - piece.start, b = std::abs(tau) < std::abs(piece.length) ? tau : piece.length;
    if (open_) meter_.stretch(piece, arc, a, b);
    close();
    a = b;
  }
  waiting_.clear();
  if (open_) meter_.stretch(piece, arc, a, piece.length);
}

std::vector<double> SectionMeter::values(std::size_t points) const {
  Gathered all(meter_.measures().size());
  const size_t count = std::min(points, kept_.size());
  for (size_t i = kept_.size() - count; i < kept_.size(); ++i) all.add(kept_[i]);
  std::vector<double> out;
  for (size_t m = 0; m < meter_.measures().size(); ++m) out.push_back(value(meter_.measures()[m], m, all));
  return out;
}

}  // namespace saltus
