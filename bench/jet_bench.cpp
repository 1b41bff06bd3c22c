// What the series of one step cost, interpreted from a tape, as machine code and written by hand, for two fields: the
// dry-friction oscillator (nearly linear: mostly overhead) and the drill string (four convolutions). Time is per step;
// `each` is time per trajectory, which is less with lanes.
#include <benchmark/benchmark.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "code/jet.hpp"
#include "expr/parse.hpp"

namespace {

using namespace saltus;

struct Field {
  Tape tape;
  std::vector<double> parameters;
  std::vector<double> x;  // where the step starts
};

using Values = std::vector<std::pair<std::string, double>>;

Field make_field(const Values& states, const Values& parameters, const std::vector<std::string>& formulas) {
  Field field;
  Names names;
  for (const auto& [name, value] : states) {
    names.add(name, Expr::symbol(SymbolKind::state, static_cast<int>(field.x.size()), name), "a state");
    field.x.push_back(value);
  }
  for (const auto& [name, value] : parameters) {
    const int index = static_cast<int>(field.parameters.size());
    names.add(name, Expr::symbol(SymbolKind::parameter, index, name), "a parameter");
    field.parameters.push_back(value);
  }
  std::vector<Expr> outputs;
  for (const std::string& f : formulas) outputs.push_back(simplify(parse(whole_text("formula", f), names)));
  field.tape = build_tape(outputs, {.states = static_cast<int>(states.size())});
  return field;
}

/// y' = v, v' = -y + sin(omega t) - F with v > 0; the surface v is an output.
const Field& friction() {
  static const Field field =
      make_field({{"y", 1}, {"v", 2}}, {{"F", 0.4}, {"omega", 1.0 / 3}}, {"v", "-y + sin(omega*t) - F*1", "v"});
  return field;
}

/// The drill string with both discs turning forward; both speeds are outputs.
const Field& drill() {
  static const Field field = make_field(
      {{"twist", 8}, {"wu", 2.5}, {"wl", 3}},
      {{"km", 3.5693},
       {"k", 0.078},
       {"Ju", 0.4765},
       {"Jl", 0.0326},
       {"Tsup", 0.3216},
       {"bu", 1.9667},
       {"Tsl", 0.094},
       {"T1", 0.0826},
       {"T2", -0.291},
       {"beta1", 6.3598},
       {"beta2", 0.0786},
       {"bl", 0.0042},
       {"u", 2}},
      {"wu - wl", "(km*u - k*twist - (Tsup + bu*wu))/Ju",
       "(k*twist - (Tsl + T1*(1 - 2/(1 + exp(beta1*wl))) + T2*(1 - 2/(1 + exp(beta2*wl))) + bl*wl))/Jl", "wu", "wl"});
  return field;
}

template <class V>
void run_interpreted(benchmark::State& state, const Field& field) {
  const int order = static_cast<int>(state.range(0));
  Jet<V> jet(field.tape, order);
  jet.bind(field.parameters);
  double t = 1;
  for (auto _ : state) {
    for (size_t i = 0; i < field.x.size(); ++i) jet[field.tape.states[i]][0] = V{} + field.x[i];
    jet.set_time(V{} + t, order);
    for (int k = 0; k < order; ++k) {
      jet.free(k);
      jet.bound(k);
      jet.integrate(k);
    }
    benchmark::DoNotOptimize(jet[field.tape.states[1]][order]);
    t += 1e-3;
  }
  state.counters["each"] = benchmark::Counter(static_cast<double>(state.iterations()),
                                              benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

/// As a run does it: what the mode needs, interpreted or compiled.
void run_scheduled(benchmark::State& state, const Field& field, bool native) {
  const int order = static_cast<int>(state.range(0));
  Jet<double> jet(field.tape, order);
  jet.bind(field.parameters);
  std::vector<size_t> outputs;
  for (size_t i = 0; i < field.tape.outputs.size(); ++i) outputs.push_back(i);
  Schedule schedule = jet.schedule(outputs, {});
  jet.enter(schedule);
  jet.arrange(schedule, {});
  if (native && !jet.compile(schedule, order)) {
    state.SkipWithError("no compiler: make native");
    return;
  }
  double t = 1;
  for (auto _ : state) {
    jet.load({.states = field.x, .t = t}, order);
    jet.expand(schedule, order - 1);
    benchmark::DoNotOptimize(jet[field.tape.states[1]][order - 1]);
    t += 1e-3;
  }
  state.counters["each"] = benchmark::Counter(static_cast<double>(state.iterations()),
                                              benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

constexpr size_t room = largest_order + 1;

struct HandFriction {
  std::array<double, room> y, v, sine, cosine;

  void step(const std::vector<double>& x, const std::vector<double>& p, double t, int order) {
    const double F = p[0], omega = p[1];
    y[0] = x[0];
    v[0] = x[1];
    sine[0] = std::sin(omega * t);
    cosine[0] = std::cos(omega * t);
    for (int k = 0; k < order; ++k) {
      const size_t i = static_cast<size_t>(k);
      const double n = k + 1;
      y[i + 1] = v[i] / n;
      v[i + 1] = (-y[i] + sine[i] - (k == 0 ? F : 0)) / n;
      sine[i + 1] = omega * cosine[i] / n;
      cosine[i + 1] = -omega * sine[i] / n;
    }
  }
  double last(int order) const { return v[static_cast<size_t>(order)]; }
};

struct HandDrill {
  std::array<double, room> twist, wu, wl;
  std::array<double, room> e1, e2, q1, q2;  // exp(beta wl), 2/(1 + e)

  void step(const std::vector<double>& x, const std::vector<double>& p, double, int order) {
    const double km = p[0], spring = p[1], Ju = p[2], Jl = p[3], Tsup = p[4], bu = p[5], Tsl = p[6], T1 = p[7],
                 T2 = p[8], beta1 = p[9], beta2 = p[10], bl = p[11], u = p[12];
    twist[0] = x[0];
    wu[0] = x[1];
    wl[0] = x[2];
    for (int k = 0; k < order; ++k) {
      const size_t i = static_cast<size_t>(k);
      double Tl;
      if (k == 0) {
        e1[0] = std::exp(beta1 * wl[0]);
        e2[0] = std::exp(beta2 * wl[0]);
        q1[0] = 2 / (1 + e1[0]);
        q2[0] = 2 / (1 + e2[0]);
        Tl = Tsl + T1 * (1 - q1[0]) + T2 * (1 - q2[0]) + bl * wl[0];
      } else {
        double sum1 = 0, sum2 = 0;
        for (size_t j = 1; j <= i; ++j) {
          const double slope = static_cast<double>(j) * wl[j];
          sum1 += slope * e1[i - j];
          sum2 += slope * e2[i - j];
        }
        e1[i] = beta1 * sum1 / k;
        e2[i] = beta2 * sum2 / k;
        sum1 = sum2 = 0;
        for (size_t j = 1; j <= i; ++j) {
          sum1 += e1[j] * q1[i - j];
          sum2 += e2[j] * q2[i - j];
        }
        q1[i] = -sum1 / (1 + e1[0]);
        q2[i] = -sum2 / (1 + e2[0]);
        Tl = -T1 * q1[i] - T2 * q2[i] + bl * wl[i];
      }
      const double drive = k == 0 ? km * u - Tsup : 0, n = k + 1;
      twist[i + 1] = (wu[i] - wl[i]) / n;
      wu[i + 1] = (drive - spring * twist[i] - bu * wu[i]) / Ju / n;
      wl[i + 1] = (spring * twist[i] - Tl) / Jl / n;
    }
  }
  double last(int order) const { return wu[static_cast<size_t>(order)]; }
};

template <class Hand>
void run_by_hand(benchmark::State& state, const Field& field) {
  const int order = static_cast<int>(state.range(0));
  Hand hand{};
  double t = 1;
  for (auto _ : state) {
    hand.step(field.x, field.parameters, t, order);
    benchmark::DoNotOptimize(hand.last(order));
    benchmark::ClobberMemory();
    t += 1e-3;
  }
  state.counters["each"] = benchmark::Counter(static_cast<double>(state.iterations()),
                                              benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void friction_by_hand(benchmark::State& state) { run_by_hand<HandFriction>(state, friction()); }
void friction_scalar(benchmark::State& state) { run_interpreted<double>(state, friction()); }
void friction_scheduled(benchmark::State& state) { run_scheduled(state, friction(), false); }
void friction_native(benchmark::State& state) { run_scheduled(state, friction(), true); }
void drill_by_hand(benchmark::State& state) { run_by_hand<HandDrill>(state, drill()); }
void drill_scalar(benchmark::State& state) { run_interpreted<double>(state, drill()); }
void drill_scheduled(benchmark::State& state) { run_scheduled(state, drill(), false); }
void drill_native(benchmark::State& state) { run_scheduled(state, drill(), true); }

BENCHMARK(friction_by_hand)->Arg(12)->Arg(20);
BENCHMARK(friction_scalar)->Arg(12)->Arg(20);
BENCHMARK(friction_scheduled)->Arg(12)->Arg(20);
BENCHMARK(friction_native)->Arg(12)->Arg(20);
BENCHMARK(drill_by_hand)->Arg(12)->Arg(20);
BENCHMARK(drill_scalar)->Arg(12)->Arg(20);
BENCHMARK(drill_scheduled)->Arg(12)->Arg(20);
BENCHMARK(drill_native)->Arg(12)->Arg(20);

}  // namespace

BENCHMARK_MAIN();
