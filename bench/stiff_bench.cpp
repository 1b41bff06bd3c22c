// Stiff flows: van der Pol's oscillator with mu = 1000 against CVODE (BDF, dense Newton), and models that turn stiff by
// themselves against the same with Taylor series alone.
#include <cmath>
#include <string>

#include <benchmark/benchmark.h>
#include <cvode/cvode.h>
#include <nvector/nvector_serial.h>
#include <sunlinsol/sunlinsol_dense.h>
#include <sunmatrix/sunmatrix_dense.h>

#include "ask/gallery.hpp"
#include "flow/simulate.hpp"
#include "model/read.hpp"

namespace {

using namespace saltus;

constexpr double van_der_pol_end = 1.706167732170483;  // test set for IVP solvers, x(2000)

RunOptions options_of(const Program& program, double until, double tolerance) {
  RunOptions o;
  o.parameters = parameter_values(program.model());
  o.initial = initial_values(program.model(), o.parameters);
  o.until = until;
  o.tolerance = tolerance;
  return o;
}

double tolerance_of(const benchmark::State& state) { return std::pow(10.0, -static_cast<double>(state.range(0))); }

void van_der_pol_saltus(benchmark::State& state) {
  const Program program(
      read_model_text("equations = \"\"\"\nx' = y\ny' = 1000*(1 - x^2)*y - x\n\"\"\"\n[initial]\nx = 2\ny = 0\n"));
  RunOptions options = options_of(program, 2000, tolerance_of(state));
  options.stiff = true;
  Trajectory run;
  for (auto _ : state) run = simulate(program, options);
  state.counters["error"] = std::abs(run.end.state[0] - van_der_pol_end);
  state.counters["steps"] = static_cast<double>(run.cost.steps);
}

void van_der_pol_cvode(benchmark::State& state) {
  const auto rates = [](double, N_Vector y, N_Vector d, void*) {
    const double x = NV_Ith_S(y, 0), v = NV_Ith_S(y, 1);
    NV_Ith_S(d, 0) = v;
    NV_Ith_S(d, 1) = 1000 * (1 - x * x) * v - x;
    return 0;
  };
  const auto slopes = [](double, N_Vector y, N_Vector, SUNMatrix J, void*, N_Vector, N_Vector, N_Vector) {
    const double x = NV_Ith_S(y, 0), v = NV_Ith_S(y, 1);
    SM_ELEMENT_D(J, 0, 0) = 0;
    SM_ELEMENT_D(J, 0, 1) = 1;
    SM_ELEMENT_D(J, 1, 0) = -2000 * x * v - 1;
    SM_ELEMENT_D(J, 1, 1) = 1000 * (1 - x * x);
    return 0;
  };
  double x = 0;
  long steps = 0;
  for (auto _ : state) {
    SUNContext context = nullptr;
    SUNContext_Create(nullptr, &context);
    N_Vector y = N_VNew_Serial(2, context);
    NV_Ith_S(y, 0) = 2;
    NV_Ith_S(y, 1) = 0;
    void* cvode = CVodeCreate(CV_BDF, context);
    SUNMatrix matrix = SUNDenseMatrix(2, 2, context);
    SUNLinearSolver solver = SUNLinSol_Dense(y, matrix, context);
    CVodeInit(cvode, +rates, 0, y);
    CVodeSStolerances(cvode, tolerance_of(state), 1e-6 * tolerance_of(state));
    CVodeSetLinearSolver(cvode, solver, matrix);
    CVodeSetJacFn(cvode, +slopes);
    CVodeSetMaxNumSteps(cvode, 100'000'000);
    double t = 0;
    CVode(cvode, 2000, y, &t, CV_NORMAL);
    x = NV_Ith_S(y, 0);
    CVodeGetNumSteps(cvode, &steps);
    CVodeFree(&cvode);
    SUNLinSolFree(solver);
    SUNMatDestroy(matrix);
    N_VDestroy(y);
    SUNContext_Free(&context);
  }
  state.counters["error"] = std::abs(x - van_der_pol_end);
  state.counters["steps"] = static_cast<double>(steps);
}

void run_model(benchmark::State& state, const std::string& text, double until, bool turns_stiff) {
  const Program program(read_model_text(text));
  RunOptions options = options_of(program, until, 1e-10);
  options.turns_stiff = turns_stiff;
  Trajectory run;
  for (auto _ : state) run = simulate(program, options);
  state.counters["steps"] = static_cast<double>(run.cost.steps);
  state.counters["events"] = static_cast<double>(run.cost.events);
}

/// Friction, and a sensor that is fast.
const char* const sensor = R"M(
equations = """
  x' = v
  v' = -x - 0.3*sign(v) + s + sin(0.7*t)
  s' = -1e5*(s - 0.2*x)
"""
[initial]
x = 2
v = 0
s = 0
)M";

std::string multiplier() { return std::string(find_in_gallery("voltage_multiplier").value().text); }

BENCHMARK(van_der_pol_saltus)->Arg(6)->Arg(8)->Arg(10)->Unit(benchmark::kMillisecond);
BENCHMARK(van_der_pol_cvode)->Arg(6)->Arg(8)->Arg(10)->Arg(12)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run_model, sensor_auto, sensor, 100, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run_model, sensor_taylor, sensor, 100, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run_model, multiplier_auto, multiplier(), 0.2, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run_model, multiplier_taylor, multiplier(), 0.2, false)->Unit(benchmark::kMillisecond);

}  // namespace
