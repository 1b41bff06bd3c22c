#include "flow/jacobian.hpp"

#include <cmath>

namespace saltus {
namespace {

void load(Jet<double>& jet, const Series& series, double t, std::span<const double> counters) {
  const Tape& tape = jet.tape();
  const int m = static_cast<int>(tape.sigmas.size());
  for (size_t i = 0; i < tape.states.size(); ++i) *jet[tape.states[i]] = *series.state(static_cast<int>(i));
  for (size_t i = 0; i < tape.sigmas.size(); ++i) *jet[tape.sigmas[i]] = *series.unknown(static_cast<int>(i));
  for (size_t i = 0; i < tape.lambdas.size(); ++i) *jet[tape.lambdas[i]] = *series.unknown(m + static_cast<int>(i));
  for (size_t c = 0; c < tape.counters.size(); ++c) {
    if (tape.counters[c] >= 0) *jet[tape.counters[c]] = counters[c];
  }
  jet.set_time(t, 0);
  jet.free(0);
  jet.bound(0);
}

/// The representative of unknown u in active(): its position there and a sign, which is 0 if u is fixed.
struct Stand {
  int position = 0;
  double sign = 0;
};

std::vector<Stand> find_stands(const Series& series) {
  const std::string& switches = series.mode().switches;
  std::vector<Stand> stands(static_cast<size_t>(series.program().unknowns()));
  for (size_t a = 0; a < series.active().size(); ++a) {
    const int u = series.active()[a];
    if (!series.held(u)) stands[static_cast<size_t>(u)] = {static_cast<int>(a), 1};
  }
  for (const auto& [u, tie] : series.ties()) {
    const auto& [leader, sign] = tie;
    if (switches[static_cast<size_t>(u)] != '0' || switches[static_cast<size_t>(leader)] != '0') continue;
    stands[static_cast<size_t>(u)] = stands[static_cast<size_t>(leader)];
    stands[static_cast<size_t>(u)].sign *= sign;
  }
  return stands;
}

}  // namespace

const Mat& RateJacobian::at(const Series& series, double t, std::span<const double> counters) {
  const Program& program = series.program();
  const JacobianTape& tape = program.jacobian(series.mode().switches);
  std::unique_ptr<Jet<double>>& jet = jets_[&tape];
  if (!jet) {
    jet = std::make_unique<Jet<double>>(tape.tape, 0);
    jet->bind(series.parameters());
  }
  load(*jet, series, t, counters);
  const auto value = [&](const SlopeEntry& e) {
    const double v = jet->output(static_cast<size_t>(e.output))[0];
    return std::isfinite(v) ? v : 0.0;
  };

  j_.setZero(program.states(), program.states());
  for (const SlopeEntry& e : tape.rate_by_state) j_(e.row, e.column) = value(e);
  if (series.active().empty()) return j_;

  const Index active = static_cast<Index>(series.active().size());
  std::vector<int> position(static_cast<size_t>(program.unknowns() + program.constraints()), -1);  // by residual
  for (size_t a = 0; a < series.active().size(); ++a) {
    const int u = series.active()[a];
    const int row = series.raised(u) ? program.unknowns() + u - program.switches() : u;
    position[static_cast<size_t>(row)] = static_cast<int>(a);
  }
  by_state_.setZero(active, program.states());
  for (const SlopeEntry& e : tape.residual_by_state) {
    if (const int a = position[static_cast<size_t>(e.row)]; a >= 0) by_state_(a, e.column) = value(e);
  }

  const std::vector<Stand> stands = find_stands(series);
  by_unknown_.setZero(program.states(), active);
  for (const SlopeEntry& e : tape.rate_by_unknown) {
    const Stand& stand = stands[static_cast<size_t>(e.column)];
    if (stand.sign != 0) by_unknown_(e.row, stand.position) += stand.sign * value(e);
  }
  size_ = j_.cwiseAbs();
  for (const Series::Single& single : series.singles()) {
    const auto column = single.inverse * by_unknown_.col(single.member);
    const auto row = by_state_.row(single.member);
    add_product(j_, column, row, -1);
    add_product(size_, column.cwiseAbs(), row.cwiseAbs());
  }
  for (const Series::Block& block : series.blocks()) {
    const Mat columns = by_unknown_.columns_at(block.members) * Series::inverse(block);
    const Mat rows = by_state_.rows_at(block.members);
    add_product(j_, columns, rows, -1);
    add_product(size_, columns.cwiseAbs(), rows.cwiseAbs());
  }
  // Sliding surfaces do not move with any state: rounding there would set a state at rest in motion.
  constexpr double rounding = 64 * 2.2e-16;
  for (Index j = 0; j < j_.cols(); ++j)
    for (Index i = 0; i < j_.rows(); ++i)
      if (!(std::abs(j_(i, j)) > rounding * size_(i, j))) j_(i, j) = 0;
  return j_;
}

}  // namespace saltus
