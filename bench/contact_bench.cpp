// What an impact costs. A ball on an oscillating table, saltus from the text of the gallery's model against two
// programs written by hand: the closed form of each flight, and Boost.odeint with TOMS748. Newton's cradle of ten
// balls: saltus alone. `error` is the largest error of an impact's time, or of the energy.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include <boost/math/tools/toms748_solve.hpp>
#include <boost/numeric/odeint.hpp>

#include "ask/gallery.hpp"
#include "flow/simulate.hpp"
#include "model/read.hpp"

namespace {

using namespace saltus;
namespace odeint = boost::numeric::odeint;
using Times = std::vector<double>;

constexpr double g = 9.81, r = 0.8, A = 0.08, omega = 10;  // as in models/bouncing_table
constexpr double table_until = 2000;                       // more than 3000 impacts
constexpr double tolerance = 1e-9;

/// The times of all impacts.
Times impacts_by_saltus(const Program& program, double until, std::vector<double>* end = nullptr) {
  Times times;
  RunOptions options;
  options.parameters = parameter_values(program.model());
  options.initial = initial_values(program.model(), options.parameters);
  options.until = until;
  options.tolerance = tolerance;
  options.keep_events = false;
  options.on_event = [&](const Event& event, const Arc&) {
    if (event.kind == EventKind::impact) times.push_back(event.t);
  };
  const Trajectory run = simulate(program, options);
  if (end) *end = run.end.state;
  return times;
}

Times table_by_saltus() {
  static const Program program(read_model_text(find_in_gallery("bouncing_table").value().text));
  return impacts_by_saltus(program, table_until);
}

// ---- by hand

/// Where gap changes sign between a and b, to the last bits.
template <class Gap>
double root_between(const Gap& gap, double a, double b) {
  std::uintmax_t most = 100;
  const auto [l, h] = boost::math::tools::toms748_solve(
      gap, a, b, boost::math::tools::eps_tolerance<double>(std::numeric_limits<double>::digits - 1), most);
  return std::abs(gap(l)) < std::abs(gap(h)) ? l : h;
}

double table_speed(double t) { return A * omega * std::cos(omega * t); }

/// The velocity after an impact with velocity v at time t.
double rebound(double v, double t) { return table_speed(t) - r * (v - table_speed(t)); }

/// Each flight is a parabola; above the table's reach nothing is looked for.
Times table_exactly() {
  constexpr double search_step = 0.02;  // far below the table's period of 0.63
  Times times;
  double start = 0, q = 1, v = 0;
  while (true) {
    const auto gap = [&](double t) { return q + (t - start) * (v - g / 2 * (t - start)) - A * std::sin(omega * t); };
    const double height = v * v + 2 * g * (q - A);
    double a = height > 0 ? std::max(start + 1e-6, start + (v + std::sqrt(height)) / g) : start + 1e-6;
    while (gap(a + search_step) > 0) a += search_step;
    const double hit = root_between(gap, a, a + search_step);
    if (hit > table_until) return times;
    times.push_back(hit);
    v = rebound(v - g * (hit - start), hit);
    q = A * std::sin(omega * hit);
    start = hit;
  }
}

Times table_by_odeint() {
  using State2 = std::array<double, 2>;
  constexpr double longest_step = 0.1;  // a longer one would step over a flight
  const auto rate = [](const State2& x, State2& d, double) { d = {x[1], -g}; };
  auto stepper = odeint::make_dense_output(tolerance, tolerance, longest_step, odeint::runge_kutta_dopri5<State2>());
  Times times;
  stepper.initialize(State2{1, 0}, 0.0, longest_step);
  while (true) {
    const auto [a, b] = stepper.do_step(rate);
    const auto gap = [&](double t) {
      State2 x;
      stepper.calc_state(t, x);
      return x[0] - A * std::sin(omega * t);
    };
    if (gap(b) <= 0) {
      const double from = !times.empty() && a <= times.back() ? a + 1e-6 : a;
      const double hit = root_between(gap, from, b);
      if (hit > table_until) return times;
      times.push_back(hit);
      State2 x;
      stepper.calc_state(hit, x);
      stepper.initialize(State2{A * std::sin(omega * hit), rebound(x[1], hit)}, hit, longest_step);
    } else if (b > table_until) {
      return times;
    }
  }
}

void table(benchmark::State& state, Times (*run)()) {
  static const Times exact = table_exactly();
  Times times;
  for (auto _ : state) times = run();
  double error = times.size() == exact.size() ? 0 : std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < exact.size() && std::isfinite(error); ++i)
    error = std::max(error, std::abs(times[i] - exact[i]));
  state.counters["error"] = error;
  state.counters["impacts"] = static_cast<double>(times.size());
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(times.size()));
}

// ---- cradle

void cradle(benchmark::State& state) {
  const Program program(read_model_text(find_in_gallery("newton_cradle").value().text));
  constexpr double until = 50, w2 = 9.81 / 0.2, s = 0.0201, start = w2 * 0.05 * 0.05 / 2;
  Times times;
  std::vector<double> x;
  for (auto _ : state) times = impacts_by_saltus(program, until, &x);
  double energy = 0;
  for (size_t i = 0; i < 10; ++i) {
    const double stretch = x[i] - s * static_cast<double>(i), speed = x[10 + i];
    energy += (w2 * stretch * stretch + speed * speed) / 2;
  }
  state.counters["error"] = std::abs(energy / start - 1);
  state.counters["impacts"] = static_cast<double>(times.size());
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(times.size()));
}

BENCHMARK_CAPTURE(table, saltus, table_by_saltus)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(table, by_hand, table_exactly)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(table, odeint, table_by_odeint)->Unit(benchmark::kMillisecond);
BENCHMARK(cradle)->Unit(benchmark::kMillisecond);

}  // namespace
