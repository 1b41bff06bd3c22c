// What a trajectory costs for the accuracy it has. Dry friction over 1000 periods: saltus from the text of the
// gallery's model, with machine code (where it can be made) and interpreted, against Boost.odeint, CVODE and Taylor
// series with the model, its events and its sticking written by hand. Drill string: the same against Boost.odeint and
// Taylor series, per cycle of sticking and slipping. Pendulum: the smooth flow alone against Boost.odeint and CVODE.
// The argument d of a row is the tolerance 10^-d; `error` is what it led to.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include <cvode/cvode.h>
#include <nvector/nvector_serial.h>
#include <sunnonlinsol/sunnonlinsol_fixedpoint.h>
#include <boost/math/special_functions/jacobi_elliptic.hpp>
#include <boost/math/tools/toms748_solve.hpp>
#include <boost/numeric/odeint.hpp>

#include "ask/gallery.hpp"
#include "flow/simulate.hpp"
#include "model/read.hpp"

namespace {

using namespace saltus;
namespace odeint = boost::numeric::odeint;
using State2 = std::array<double, 2>;
using Times = std::vector<double>;

constexpr double F = 0.4, omega = 1.0 / 3;
constexpr double period = 2 * std::numbers::pi / omega;
constexpr int periods = 1000;         // timed
constexpr int checked_periods = 10;   // compared, event by event
constexpr double longest_step = 0.5;  // of the search for the end of sticking: far below the drive's period

double tolerance_of(const benchmark::State& state) { return std::pow(10.0, -static_cast<double>(state.range(0))); }

// ---- saltus

enum class Code { machine, interpreted };

RunOptions options_for(const Program& program, Code code) {
  RunOptions options;
  options.native = code == Code::machine && native_available() ? Native::on : Native::off;
  options.parameters = parameter_values(program.model());
  options.initial = initial_values(program.model(), options.parameters);
  options.keep_events = false;
  return options;
}

/// Times of all changes of mode; the model's sections are computed, not counted.
Times changes_by_saltus(const Program& program, Code code, double until, double tolerance) {
  Times times;
  RunOptions options = options_for(program, code);
  options.until = until;
  options.tolerance = tolerance;
  options.on_event = [&](const Event& event, const Arc&) {
    if (event.kind != EventKind::section) times.push_back(event.t);
  };
  simulate(program, options);
  return times;
}

template <Code code>
Times friction_by_saltus(double until, double tolerance) {
  static const Program program(read_model_text(find_in_gallery("dry_friction").value().text));
  return changes_by_saltus(program, code, until, tolerance);
}

// ---- by hand

/// A root of g between a and b, where its signs differ, to the last bits.
template <class G>
double root_between(const G& g, double a, double b) {
  const double ga = g(a), gb = g(b);
  if (ga == 0 || ga * gb > 0) return a;
  if (gb == 0) return b;
  std::uintmax_t most = 100;
  const auto [l, r] = boost::math::tools::toms748_solve(
      g, a, b, ga, gb, boost::math::tools::eps_tolerance<double>(std::numeric_limits<double>::digits - 1), most);
  return std::abs(g(l)) < std::abs(g(r)) ? l : r;
}

/// Steps of dopri5 from t and x until `event`, which is positive first, is not; its zero in the dense output. Returns
/// when that was, or `until`.
template <class Stepper, class X, class Rate, class Event>
double go_to_event(Stepper& stepper, const Rate& rate, const Event& event, double t, X& x, double& dt, double until) {
  stepper.initialize(x, t, dt);
  while (stepper.current_time() < until) {
    const auto [a, b] = stepper.do_step(rate);
    dt = b - a;  // kept over events: the flow after one is as smooth as before
    if (event(stepper.current_state()) > 0) continue;
    const auto along = [&](double s) {
      X at_s;
      stepper.calc_state(s, at_s);
      return event(at_s);
    };
    const double hit = root_between(along, a, b);
    stepper.calc_state(hit, x);
    return hit;
  }
  return until;
}

double pull(double t, double y) { return std::sin(omega * t) - y; }

/// What follows when v is zero at time t: slip the other way at once, or stick, and then slip where the pull reaches F.
struct Slip {
  double t;  // when it begins, or infinity
  double sign;
  bool stuck;
};

Slip next_slip(double t, double y, double until) {
  if (std::abs(pull(t, y)) > F) return {t, std::copysign(1.0, pull(t, y)), false};
  while (t < until) {
    const double later = t + longest_step;
    if (const double p = pull(later, y); std::abs(p) > F) {
      const double sign = std::copysign(1.0, p);
      return {root_between([&](double s) { return sign * pull(s, y) - F; }, t, later), sign, true};
    }
    t = later;
  }
  return {std::numeric_limits<double>::infinity(), 0, true};
}

/// Slips with `flow(t, x, sign)`, which goes on from t and x until v is zero or time is up and returns when that was.
template <class Flow>
Times friction_by_hand(double until, const Flow& flow) {
  Times times;
  State2 x{1, 2};
  double t = 0, sign = 1;
  while (true) {
    t = flow(t, x, sign);
    if (t >= until) return times;
    times.push_back(t);
    x[1] = 0;
    const Slip slip = next_slip(t, x[0], until);
    if (slip.t >= until) return times;
    if (slip.stuck) times.push_back(slip.t);
    t = slip.t;
    sign = slip.sign;
  }
}

/// The closed form of each slip, searched in small steps: what the others are measured against.
Times friction_exactly(double until) {
  constexpr double gain = 1 / (1 - omega * omega), search_step = 0.1;
  return friction_by_hand(until, [&](double start, State2& x, double sign) {
    const double a = x[0] - gain * std::sin(omega * start) + F * sign;
    const double b = x[1] - gain * omega * std::cos(omega * start);
    const auto y = [&](double t) {
      return gain * std::sin(omega * t) - F * sign + a * std::cos(t - start) + b * std::sin(t - start);
    };
    const auto v = [&](double t) {
      return gain * omega * std::cos(omega * t) - a * std::sin(t - start) + b * std::cos(t - start);
    };
    double t = start + search_step;
    while (sign * v(t) > 0 && t < until) t += search_step;
    if (t >= until) return until;
    const double hit = root_between(v, t - search_step, t);
    x = {y(hit), 0};
    return hit;
  });
}

Times friction_by_odeint(double until, double tolerance) {
  auto stepper = odeint::make_dense_output(tolerance, tolerance, odeint::runge_kutta_dopri5<State2>());
  double dt = 0.01;
  return friction_by_hand(until, [&](double t, State2& x, double sign) {
    const auto rate = [sign](const State2& s, State2& d, double time) {
      d[0] = s[1];
      d[1] = -s[0] + std::sin(omega * time) - F * sign;
    };
    return go_to_event(
        stepper, rate, [sign](const State2& s) { return sign * s[1]; }, t, x, dt, until);
  });
}

// ---- Taylor series by hand: fixed order, the step from the last two terms, an event by its sign at the end of a step

constexpr size_t taylor_terms = 20;
using Jet20 = std::array<double, taylor_terms + 1>;

double value_of(const Jet20& c, double h) {
  double value = c[taylor_terms];
  for (size_t k = taylor_terms; k-- > 0;) value = value * h + c[k];
  return value;
}

/// A step that leaves out no more than the tolerance of any of the series.
double taylor_step(std::initializer_list<const Jet20*> series, double tolerance) {
  double length = std::numeric_limits<double>::infinity();
  for (const Jet20* c : series) {
    const double scale = std::abs((*c)[0]) + std::abs((*c)[1]) + std::abs((*c)[2]);
    for (const size_t k : {taylor_terms - 1, taylor_terms})
      length = std::min(length, std::pow(tolerance * scale / std::abs((*c)[k]), 1.0 / static_cast<double>(k)));
  }
  return length;
}

/// Newton's method for a zero before h, where c has the sign `before` until then; it may begin at zero.
double zero_before(const Jet20& c, double h, double before) {
  double lo = h / 2, hi = h;
  for (int halving = 0; halving < 60 && before * value_of(c, lo) <= 0; ++halving) lo /= 2;
  double s = lo + (hi - lo) * value_of(c, lo) / (value_of(c, lo) - value_of(c, hi));
  for (int iteration = 0; iteration < 20; ++iteration) {
    double value = c[taylor_terms], slope = 0;
    for (size_t k = taylor_terms; k-- > 0;) {
      slope = slope * s + value;
      value = value * s + c[k];
    }
    (before * value > 0 ? lo : hi) = s;
    const double step = value / slope;
    s -= step;
    if (!(s >= lo && s <= hi)) s = (lo + hi) / 2;
    if (std::abs(step) <= 1e-15 * h) break;
  }
  return s;
}

Times friction_by_taylor(double until, double tolerance) {
  return friction_by_hand(until, [=](double t, State2& x, double sign) {
    while (t < until) {
      Jet20 y, v, s, c;
      y[0] = x[0], v[0] = x[1], s[0] = std::sin(omega * t), c[0] = std::cos(omega * t);
      for (size_t k = 0; k < taylor_terms; ++k) {
        const double over = 1 / static_cast<double>(k + 1);
        y[k + 1] = v[k] * over;
        v[k + 1] = (s[k] - y[k] - (k == 0 ? F * sign : 0)) * over;
        s[k + 1] = omega * c[k] * over;
        c[k + 1] = -omega * s[k] * over;
      }
      const double h = taylor_step({&y, &v}, tolerance);
      if (sign * value_of(v, h) <= 0) {
        const double hit = zero_before(v, h, sign);
        x = {value_of(y, hit), 0};
        return t + hit;
      }
      x = {value_of(y, h), value_of(v, h)};
      t += h;
    }
    return until;
  });
}

Times friction_by_cvode(double until, double tolerance) {
  struct Ours {
    double sign = 1;
  } ours;
  SUNContext context = nullptr;
  SUNContext_Create(nullptr, &context);
  N_Vector y = N_VNew_Serial(2, context);
  // Adams and fixed-point iteration: its cheapest choice for a flow that is not stiff.
  void* cvode = CVodeCreate(CV_ADAMS, context);
  SUNNonlinearSolver solver = SUNNonlinSol_FixedPoint(y, 0, context);
  const auto rate = [](double t, N_Vector s, N_Vector d, void* data) {
    NV_Ith_S(d, 0) = NV_Ith_S(s, 1);
    NV_Ith_S(d, 1) = -NV_Ith_S(s, 0) + std::sin(omega * t) - F * static_cast<Ours*>(data)->sign;
    return 0;
  };
  const auto surface = [](double, N_Vector s, double* g, void*) {
    g[0] = NV_Ith_S(s, 1);
    return 0;
  };
  CVodeInit(cvode, +rate, 0, y);
  CVodeSStolerances(cvode, tolerance, tolerance);
  CVodeSetNonlinearSolver(cvode, solver);
  CVodeSetUserData(cvode, &ours);
  CVodeSetMaxNumSteps(cvode, 1'000'000'000);
  CVodeRootInit(cvode, 1, +surface);
  CVodeSetNoInactiveRootWarn(cvode);

  const Times times = friction_by_hand(until, [&](double t, State2& x, double sign) {
    ours.sign = sign;
    NV_Ith_S(y, 0) = x[0];
    NV_Ith_S(y, 1) = x[1];
    CVodeReInit(cvode, t, y);
    int falling = sign > 0 ? -1 : 1;
    CVodeSetRootDirection(cvode, &falling);
    const int status = CVode(cvode, until, y, &t, CV_NORMAL);
    x = {NV_Ith_S(y, 0), NV_Ith_S(y, 1)};
    return status == CV_ROOT_RETURN ? t : until;
  });
  CVodeFree(&cvode);
  SUNNonlinSolFree(solver);
  N_VDestroy(y);
  SUNContext_Free(&context);
  return times;
}

/// The largest error of an event's time; infinity if events are missing or invented.
double largest_error(const Times& times, const Times& exact) {
  if (times.size() != exact.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (size_t i = 0; i < exact.size(); ++i) largest = std::max(largest, std::abs(times[i] - exact[i]));
  return largest;
}

void friction(benchmark::State& state, Times (*run)(double until, double tolerance)) {
  static const Times exact = friction_exactly(checked_periods * period);
  const double tolerance = tolerance_of(state);
  const Times checked = run(checked_periods * period, tolerance);
  size_t events = 0;
  for (auto _ : state) events = run(periods * period, tolerance).size();
  state.counters["error"] = largest_error(checked, exact);
  state.counters["events"] = static_cast<double>(events);
}

// ---- drill string

constexpr double drill_until = 4000, drill_checked = 40;  // a cycle takes about 4

/// The gallery's drill string while its upper disc turns forward: twist, wu, wl.
template <class T>
struct Drill {
  using State = std::array<T, 3>;
  static constexpr T u = 2, km = T(35693) / 10000, k = T(78) / 1000, Ju = T(4765) / 10000, Jl = T(326) / 10000,
                     Tsup = T(3216) / 10000, bu = T(19667) / 10000, Tsl = T(94) / 1000, T1 = T(826) / 10000,
                     T2 = T(-291) / 1000, beta1 = T(63598) / 10000, beta2 = T(786) / 10000, bl = T(42) / 10000;

  static void stick(const State& x, State& d, T) {
    d[0] = x[1];
    d[1] = (km * u - k * x[0] - Tsup - bu * x[1]) / Ju;
    d[2] = 0;
  }
  static void slip(const State& x, State& d, T) {
    const T brake = Tsl + T1 * (1 - 2 / (1 + std::exp(beta1 * x[2]))) + T2 * (1 - 2 / (1 + std::exp(beta2 * x[2])));
    d[0] = x[1] - x[2];
    d[1] = (km * u - k * x[0] - Tsup - bu * x[1]) / Ju;
    d[2] = (k * x[0] - brake - bl * x[2]) / Jl;
  }
  static T left_to_hold(const State& x) { return Tsl - k * x[0]; }  // positive while it sticks
  static T speed(const State& x) { return x[2]; }                   // positive while it slips
};

/// Sticks and slips in turn with `flow(rate, event, t, x)`, which goes on until the event or until time is up.
template <class T, class Flow>
std::vector<T> drill_by_hand(T until, const Flow& flow) {
  std::vector<T> times;
  typename Drill<T>::State x{0, 0, 0};
  T t = 0;
  for (bool stuck = true;; stuck = !stuck) {
    t = stuck ? flow(Drill<T>::stick, Drill<T>::left_to_hold, t, x) : flow(Drill<T>::slip, Drill<T>::speed, t, x);
    if (t >= until) return times;
    times.push_back(t);
    if (!stuck) x[2] = 0;
  }
}

/// Steps of order 8 in extended precision; an event is found by steps of other lengths from the same point.
Times drill_exactly() {
  using State3 = Drill<long double>::State;
  constexpr long double until = drill_checked, h = 1e-3L;
  odeint::runge_kutta_fehlberg78<State3, long double> stepper;
  const auto times =
      drill_by_hand<long double>(until, [&](const auto& rate, const auto& event, long double t, State3& x) {
        const auto after = [&](long double s) {
          State3 y;
          stepper.do_step(rate, x, t, y, s);
          return y;
        };
        for (; t < until; t += h) {
          const State3 next = after(h);
          if (event(next) <= 0) {
            long double a = 0, b = h;
            for (int i = 0; i < 60; ++i) (event(after((a + b) / 2)) > 0 ? a : b) = (a + b) / 2;
            x = after(b);
            return t + b;
          }
          x = next;
        }
        return until;
      });
  return Times(times.begin(), times.end());
}

template <Code code>
Times drill_by_saltus(double until, double tolerance) {
  static const Program program(read_model_text(find_in_gallery("drill_string").value().text));
  return changes_by_saltus(program, code, until, tolerance);
}

Times drill_by_odeint(double until, double tolerance) {
  using State3 = Drill<double>::State;
  auto stepper = odeint::make_dense_output(tolerance, tolerance, odeint::runge_kutta_dopri5<State3>());
  double dt = 0.01;
  return drill_by_hand<double>(until, [&](const auto& rate, const auto& event, double t, State3& x) {
    return go_to_event(stepper, rate, event, t, x, dt, until);
  });
}

/// The field that holds and the event that ends it are told apart by where the lower disc is: at rest, or turning.
Times drill_by_taylor(double until, double tolerance) {
  using D = Drill<double>;
  const auto flow = [=](const auto&, const auto& event, double t, D::State& x) {
    const bool stuck = event == D::left_to_hold;
    while (t < until) {
      Jet20 twist, wu, wl, e1, e2, q1, q2;
      twist[0] = x[0], wu[0] = x[1], wl[0] = stuck ? 0 : x[2];
      for (size_t k = 0; k < taylor_terms; ++k) {
        const double n = static_cast<double>(k), over = 1 / (n + 1);
        twist[k + 1] = (wu[k] - wl[k]) * over;
        wu[k + 1] = ((k == 0 ? D::km * D::u - D::Tsup : 0) - D::k * twist[k] - D::bu * wu[k]) / D::Ju * over;
        if (stuck) {
          wl[k + 1] = 0;
          continue;
        }
        if (k == 0) {
          e1[0] = std::exp(D::beta1 * wl[0]), e2[0] = std::exp(D::beta2 * wl[0]);
          q1[0] = 1 / (1 + e1[0]), q2[0] = 1 / (1 + e2[0]);
        } else {
          double s1 = 0, s2 = 0, r1 = 0, r2 = 0;
          for (size_t j = 1; j <= k; ++j) {
            const double w = static_cast<double>(j) * wl[j];
            s1 += w * e1[k - j];
            s2 += w * e2[k - j];
          }
          e1[k] = D::beta1 * s1 / n;
          e2[k] = D::beta2 * s2 / n;
          for (size_t j = 1; j <= k; ++j) {
            r1 += e1[j] * q1[k - j];
            r2 += e2[j] * q2[k - j];
          }
          q1[k] = -r1 * q1[0];
          q2[k] = -r2 * q2[0];
        }
        const double brake = (k == 0 ? D::Tsl + D::T1 + D::T2 : 0) - 2 * (D::T1 * q1[k] + D::T2 * q2[k]);
        wl[k + 1] = (D::k * twist[k] - brake - D::bl * wl[k]) / D::Jl * over;
      }
      Jet20 watched = wl;
      if (stuck) {
        for (size_t k = 0; k <= taylor_terms; ++k) watched[k] = (k == 0 ? D::Tsl : 0) - D::k * twist[k];
      }
      const double h = stuck ? taylor_step({&twist, &wu}, tolerance) : taylor_step({&twist, &wu, &wl}, tolerance);
      const double end = value_of(watched, h);
      const double length = end > 0 ? h : zero_before(watched, h, 1);
      x = {value_of(twist, length), value_of(wu, length), stuck ? 0 : value_of(wl, length)};
      t += length;
      if (end <= 0) return t;
    }
    return until;
  };
  return drill_by_hand<double>(until, flow);
}

void drill(benchmark::State& state, Times (*run)(double until, double tolerance)) {
  static const Times exact = drill_exactly();
  const double tolerance = tolerance_of(state);
  const Times checked = run(drill_checked, tolerance);
  size_t events = 0;
  for (auto _ : state) events = run(drill_until, tolerance).size();
  state.counters["error"] = largest_error(checked, exact);
  state.counters["events"] = static_cast<double>(events);
  state.counters["s_per_cycle"] = benchmark::Counter(
      static_cast<double>(events) / 2, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

// ---- pendulum

constexpr double amplitude = 2, pendulum_until = 100;

/// sin(x/2) = k cd(t), k = sin(amplitude/2).
double pendulum_error(double x, double v) {
  const long double k = std::sin(static_cast<long double>(amplitude) / 2), t = pendulum_until;
  const long double exact_x = 2 * std::asin(k * boost::math::jacobi_cd(k, t));
  const long double exact_v = -2 * k * std::sqrt(1 - k * k) * boost::math::jacobi_sd(k, t);
  return static_cast<double>(std::max(std::abs(x - exact_x), std::abs(v - exact_v)));
}

template <Code code>
void pendulum_by_saltus(benchmark::State& state) {
  const Program program(read_model_text("equations = \"\"\"\nx' = v\nv' = -sin(x)\n\"\"\"\n[initial]\nx = 2\nv = 0\n"));
  RunOptions options = options_for(program, code);
  options.until = pendulum_until;
  options.tolerance = tolerance_of(state);
  std::vector<double> x;
  for (auto _ : state) x = simulate(program, options).end.state;
  state.counters["error"] = pendulum_error(x[0], x[1]);
}

void pendulum_odeint(benchmark::State& state) {
  const double tolerance = tolerance_of(state);
  const auto rate = [](const State2& s, State2& d, double) {
    d[0] = s[1];
    d[1] = -std::sin(s[0]);
  };
  State2 x{};
  for (auto _ : state) {
    x = {amplitude, 0};
    odeint::integrate_adaptive(odeint::make_controlled(tolerance, tolerance, odeint::runge_kutta_dopri5<State2>()),
                               rate, x, 0.0, pendulum_until, 0.01);
    benchmark::DoNotOptimize(x);
  }
  state.counters["error"] = pendulum_error(x[0], x[1]);
}

void pendulum_cvode(benchmark::State& state) {
  const double tolerance = tolerance_of(state);
  const auto rate = [](double, N_Vector s, N_Vector d, void*) {
    NV_Ith_S(d, 0) = NV_Ith_S(s, 1);
    NV_Ith_S(d, 1) = -std::sin(NV_Ith_S(s, 0));
    return 0;
  };
  SUNContext context = nullptr;
  SUNContext_Create(nullptr, &context);
  N_Vector y = N_VNew_Serial(2, context);
  void* cvode = CVodeCreate(CV_ADAMS, context);
  SUNNonlinearSolver solver = SUNNonlinSol_FixedPoint(y, 0, context);
  CVodeInit(cvode, +rate, 0, y);
  CVodeSStolerances(cvode, tolerance, tolerance);
  CVodeSetNonlinearSolver(cvode, solver);
  CVodeSetMaxNumSteps(cvode, 1'000'000'000);
  for (auto _ : state) {
    NV_Ith_S(y, 0) = amplitude;
    NV_Ith_S(y, 1) = 0;
    double t = 0;
    CVodeReInit(cvode, 0, y);
    CVodeSetStopTime(cvode, pendulum_until);
    CVode(cvode, pendulum_until, y, &t, CV_NORMAL);
  }
  state.counters["error"] = pendulum_error(NV_Ith_S(y, 0), NV_Ith_S(y, 1));
  CVodeFree(&cvode);
  SUNNonlinSolFree(solver);
  N_VDestroy(y);
  SUNContext_Free(&context);
}

BENCHMARK_CAPTURE(friction, saltus, friction_by_saltus<Code::machine>)
    ->DenseRange(2, 14)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(friction, interpreted, friction_by_saltus<Code::interpreted>)
    ->DenseRange(2, 14)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(friction, taylor, friction_by_taylor)->DenseRange(6, 14)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(friction, odeint, friction_by_odeint)->DenseRange(6, 14)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(friction, cvode, friction_by_cvode)->DenseRange(6, 14, 2)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(drill, saltus, drill_by_saltus<Code::machine>)->DenseRange(2, 14)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(drill, interpreted, drill_by_saltus<Code::interpreted>)
    ->DenseRange(2, 14)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(drill, taylor, drill_by_taylor)->DenseRange(6, 14)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(drill, odeint, drill_by_odeint)->DenseRange(6, 14)->Unit(benchmark::kMillisecond);
BENCHMARK(pendulum_by_saltus<Code::machine>)->Name("pendulum/saltus")->DenseRange(2, 14)->Unit(benchmark::kMicrosecond);
BENCHMARK(pendulum_by_saltus<Code::interpreted>)
    ->Name("pendulum/interpreted")
    ->DenseRange(2, 14)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(pendulum_odeint)->DenseRange(6, 14)->Unit(benchmark::kMicrosecond);
BENCHMARK(pendulum_cvode)->DenseRange(6, 14)->Unit(benchmark::kMicrosecond);

}  // namespace
