#include "analysis/response.hpp"

#include <array>
#include <cmath>

#include "base/index.hpp"

namespace saltus {
namespace {

using Complex = std::complex<double>;
using Link = OrbitTangents::Link;

constexpr size_t panel_nodes_count = panel_order + 1;
/// Integrals from the beginning of a panel (0 .. 1) to each node, of the polynomial through values at the nodes.
using PanelIntegrals = std::array<std::array<double, panel_nodes_count>, panel_nodes_count>;

PanelIntegrals make_integrals() {
  PanelIntegrals out{};
  const std::span<const double> nodes = panel_nodes(), weights = panel_weights();
  for (size_t l = 0; l < panel_nodes_count; ++l) {
    std::array<double, panel_nodes_count> one{};
    one[l] = 1;
    for (size_t j = 0; j < panel_nodes_count; ++j) {
      for (size_t k = 0; k < panel_nodes_count; ++k)
        out[j][l] += nodes[j] * weights[k] * panel_value(one.data(), 1, nodes[j] * nodes[k]);
    }
  }
  return out;
}

const PanelIntegrals& panel_integrals() {
  static const PanelIntegrals integrals = make_integrals();
  return integrals;
}

/// (a - M) x = b for a complex number a, as real equations of twice the size.
std::vector<Complex> solve_shifted(Complex a, const Mat& M, const std::vector<Complex>& b) {
  const Index n = M.rows();
  Mat A = Mat::Zero(2 * n, 2 * n);
  Vec right = Vec::Zero(2 * n);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) A(i, j) = A(n + i, n + j) = -M(i, j);
    A(i, i) += a.real();
    A(n + i, n + i) += a.real();
    A(i, n + i) -= a.imag();
    A(n + i, i) += a.imag();
    right[i] = b[ux(i)].real();
    right[n + i] = b[ux(i)].imag();
  }
  const Vec x = Lu(A).solve(right);
  std::vector<Complex> out;
  for (Index i = 0; i < n; ++i) out.emplace_back(x[i], x[n + i]);
  return out;
}

}  // namespace

OrbitResponse::OrbitResponse(const OrbitTangents& orbit, const ResponsePorts& ports, double period, double origin)
    : orbit_(orbit), ports_(ports), period_(period), origin_(origin) {
  kept_monodromy_ = orbit.monodromy().part(ports.kept);
  const size_t n = ux(orbit.states), inputs = ports.by_input.size();
  for (const OrbitTangents::Panel& panel : orbit.panels) {
    Panel own;
    own.by_input.assign(inputs * panel_nodes_count * n, 0.0);
    own.by_speed = own.by_input;
    for (size_t j = 0; j < panel_nodes_count; ++j) {
      const Mat moved = panel.onto.empty() ? panel.P[j] : Mat(panel.onto[j] * panel.P[j]);
      const Mat g = Lu(panel.X[j]).solve_columns(moved);
      for (size_t k = 0; k < inputs; ++k) {
        const auto take = [&](Index column, std::vector<double>& to) {
          for (size_t i = 0; i < n && column >= 0; ++i) to[(k * panel_nodes_count + j) * n + i] = g(ix(i), column);
        };
        take(ports.by_input[k], own.by_input);
        take(ports.by_speed[k], own.by_speed);
      }
    }
    panels_.push_back(std::move(own));
  }
}

/// Row of P times the input and its speed.
Complex OrbitResponse::drive_of(const Drive& drive, const Mat& P, Index row) const {
  const Index by = ports_.by_input[drive.input], speed = ports_.by_speed[drive.input];
  return {by >= 0 ? P(row, by) : 0.0, speed >= 0 ? drive.w * P(row, speed) : 0.0};
}

/// z is the input, whatever rounding has made of it.
void OrbitResponse::hold_input(const Drive& drive, size_t node, std::vector<Complex>& u) const {
  if (const Index z = ports_.input_state[drive.input]; z >= 0) u[ux(z)] = turn(drive.w, node);
}

/// From the beginning of a panel, with c = onto u:
///   u(t) = X(t) (c - jw integral of X^-1 onto P e^{jws} ds) + P(t) e^{jwt}
void OrbitResponse::over_panel(const Drive& drive, const Link& link, std::vector<Complex>& u) const {
  const OrbitTangents::Panel& panel = orbit_.panels[link.panel];
  const Panel& own = panels_[link.panel];
  const size_t n = u.size(), at_input = drive.input * panel_nodes_count * n;
  std::vector<Complex> c = u;
  if (!panel.onto.empty()) {
    for (size_t i = 0; i < n; ++i) {
      c[i] = 0;
      for (size_t k = 0; k < n; ++k) c[i] += panel.onto.front()(ix(i), ix(k)) * u[k];
    }
  }
  std::vector<Complex> g(panel_nodes_count * n);
  std::array<Complex, panel_nodes_count> turns;
  for (size_t j = 0; j < panel_nodes_count; ++j) {
    turns[j] = turn(drive.w, link.from + j);
    // -j w (a + j w b) e^{jwt}
    const Complex by_input = Complex(0, -drive.w * panel.length) * turns[j];
    const Complex by_speed = drive.w * drive.w * panel.length * turns[j];
    for (size_t i = 0; i < n; ++i) {
      const size_t place = at_input + j * n + i;
      g[j * n + i] = own.by_input[place] * by_input + own.by_speed[place] * by_speed;
    }
  }
  const auto moved_to = [&](size_t j) {
    std::vector<Complex> out = c;
    for (size_t l = 0; l < panel_nodes_count; ++l) {
      const double weight = panel_integrals()[j][l];
      for (size_t i = 0; i < n; ++i) out[i] += weight * g[l * n + i];
    }
    return out;
  };
  const auto row = [&](size_t j, const std::vector<Complex>& moved, Index i) {
    Complex sum = drive_of(drive, panel.P[j], i) * turns[j];
    for (size_t k = 0; k < n; ++k) sum += panel.X[j](i, ix(k)) * moved[k];
    return sum;
  };
  std::vector<Complex> moved;
  for (size_t j = drive.integrals ? 0 : panel_order; j < panel_nodes_count; ++j) {
    moved = moved_to(j);
    if (!drive.integrals) break;
    const Complex weight = panel_weights()[j] * panel.length * std::conj(turn(drive.out, link.from + j));
    for (size_t q = 0; q < ports_.output_state.size(); ++q)
      (*drive.integrals)[q] += weight * row(j, moved, ports_.output_state[q]);
  }
  for (size_t i = 0; i < n; ++i) u[i] = row(panel_order, moved, ix(i));
}

/// An impulse in an output is a leap of its integral; where its time moves, so does the leap.
void OrbitResponse::move_impulses(const Drive& drive, const Link& link, const std::vector<Complex>& before) const {
  if (!link.shift.allFinite()) return;
  const Index n = orbit_.states, by = ports_.by_input[drive.input], speed = ports_.by_speed[drive.input];
  Complex later = {by >= 0 ? link.shift(0, n + by) : 0.0, speed >= 0 ? drive.w * link.shift(0, n + speed) : 0.0};
  later *= turn(drive.w, link.from);
  for (size_t k = 0; k < before.size(); ++k) later += link.shift(0, ix(k)) * before[k];
  for (size_t q = 0; q < ports_.output_state.size(); ++q) {
    const size_t row = ux(ports_.output_state[q]);
    const double leap = orbit_.nodes[link.to].x[row] - orbit_.nodes[link.from].x[row];
    (*drive.integrals)[q] -= leap * later * std::conj(turn(drive.out, link.from));
  }
}

/// Through an event at its time; over a span with the input as it is in its middle, by the rule of trapezoids.
void OrbitResponse::over_link(const Drive& drive, const Link& link, std::vector<Complex>& u) const {
  const double time = orbit_.nodes[link.to].t - orbit_.nodes[link.from].t;
  const Complex begins = turn(drive.w, link.from), ends = turn(drive.w, link.to), middle = 0.5 * (begins + ends);
  const std::vector<Complex> before = u;
  for (size_t i = 0; i < u.size(); ++i) {
    u[i] = drive_of(drive, link.P, ix(i)) * middle;
    for (size_t k = 0; k < u.size(); ++k) u[i] += link.X(ix(i), ix(k)) * before[k];
  }
  if (!drive.integrals) return;
  if (link.kind == Link::Kind::event) return move_impulses(drive, link, before);
  const Complex first = std::conj(turn(drive.out, link.from)), last = std::conj(turn(drive.out, link.to));
  for (size_t q = 0; q < ports_.output_state.size(); ++q) {
    const size_t row = ux(ports_.output_state[q]);
    (*drive.integrals)[q] += 0.5 * time * (first * before[row] + last * u[row]);
  }
}

void OrbitResponse::over_period(const Drive& drive, std::vector<Complex>& u) const {
  for (const Link& link : orbit_.links) {
    hold_input(drive, link.from, u);
    if (link.kind == Link::Kind::panel)
      over_panel(drive, link, u);
    else
      over_link(drive, link, u);
  }
}

std::vector<Complex> OrbitResponse::operator()(double w, size_t input, int sideband) const {
  const double out = w + sideband * 2 * M_PI / std::abs(period_);
  const size_t n = ux(orbit_.states);
  std::vector<Complex> u(n);
  over_period({.w = w, .out = out, .input = input}, u);
  std::vector<Complex> b;
  for (const Index i : ports_.kept) b.push_back(u[ux(i)]);
  // The start of the orbit, one period later, has turned.
  const std::vector<Complex> start = solve_shifted(std::polar(1.0, w * period_), kept_monodromy_, b);
  u.assign(n, 0.0);
  for (size_t k = 0; k < ports_.kept.size(); ++k) u[ux(ports_.kept[k])] = start[k];
  std::vector<Complex> integrals(ports_.output_state.size());
  over_period({.w = w, .out = out, .input = input, .integrals = &integrals}, u);
  std::vector<Complex> answer;
  const Complex last = std::conj(turn(out, orbit_.nodes.size() - 1));
  for (size_t q = 0; q < integrals.size(); ++q)
    answer.push_back((last * u[ux(ports_.output_state[q])] + Complex(0, out) * integrals[q]) / period_);
  return answer;
}

OutputMeans means_of(const OrbitTangents& orbit, const ResponsePorts& ports, double period, const Mat& start_by,
                     const std::vector<double>& period_by) {
  OutputMeans out;
  const Mat M = orbit.monodromy(), by = orbit.by_parameters();
  for (const Index q : ports.output_state) {
    const double mean = orbit.nodes.back().x[ux(q)] / period, rate = orbit.start_rates[q];
    out.mean.push_back(mean);
    out.by.emplace_back();
    for (Index c = 0; c < start_by.cols(); ++c) {
      double moved = by(q, c) + (rate - mean) * period_by[ux(c)];
      for (const Index k : ports.kept) moved += M(q, k) * start_by(k, c);
      out.by.back().push_back(moved / period);
    }
  }
  return out;
}

// ---- about an equilibrium ------------------------------------------------------------------------------------------

std::vector<Complex> equilibrium_response(const EquilibriumSlopes& slopes, const ResponsePorts& ports, double w,
                                          size_t input) {
  const Index n = slopes.rates.rows();
  // How rates move with the input: by z, by the parameter itself, and by the speed of z.
  const auto by_input = [&](Index row) {
    const Index z = ports.input_state[input], p = ports.by_input[input], speed = ports.by_speed[input];
    Complex out = 0;
    if (z >= 0) out += slopes.rates(row, z);
    if (p >= 0) out += slopes.rates(row, n + p);
    if (speed >= 0) out += Complex(0, w * slopes.rates(row, n + speed));
    return out;
  };
  std::vector<Complex> b;
  for (const Index i : ports.kept) b.push_back(by_input(i));
  const std::vector<Complex> x = solve_shifted({0, w}, slopes.rates.part(ports.kept), b);
  std::vector<Complex> answer;
  for (const Index q : ports.output_state) {
    Complex y = by_input(q);
    for (size_t k = 0; k < ports.kept.size(); ++k) y += slopes.rates(q, ports.kept[k]) * x[k];
    answer.push_back(y);
  }
  return answer;
}

OutputMeans means_of(const EquilibriumSlopes& slopes, const ResponsePorts& ports, Index directions) {
  const Index n = slopes.rates.rows(), kept = ix(ports.kept.size()), rows = kept + slopes.manifold.rows();
  Mat A(rows, kept), B(rows, directions);
  for (Index i = 0; i < rows; ++i) {
    const bool of_rates = i < kept;
    const ConstView from = of_rates ? slopes.rates.row(ports.kept[ux(i)]) : slopes.manifold.row(i - kept);
    double size = 0;
    for (const Index k : ports.kept) size = std::max(size, std::abs(from[k]));
    if (size == 0) size = 1;
    for (Index k = 0; k < kept; ++k) A(i, k) = from[ports.kept[ux(k)]] / size;
    for (Index c = 0; c < directions; ++c) B(i, c) = from[n + c] / size;
  }
  const Orthogonal solver(A);
  OutputMeans out;
  for (const Index q : ports.output_state) {
    out.mean.push_back(slopes.values[q]);
    out.by.emplace_back();
    for (Index c = 0; c < directions; ++c) {
      const Vec x = solver.solve(-B.col(c));
      double moved = slopes.rates(q, n + c);
      for (Index k = 0; k < kept; ++k) moved += slopes.rates(q, ports.kept[ux(k)]) * x[k];
      out.by.back().push_back(moved);
    }
  }
  return out;
}

}  // namespace saltus
