#include "analysis/symmetry.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"

namespace saltus {
namespace {

constexpr int turn_samples = 12;
constexpr double equal = 1e-6;  ///< relative difference of what a symmetry makes equal

bool alike(double a, double b) { return std::abs(a - b) <= equal * (std::abs(a) + std::abs(b) + 1e-9); }

/// Candidates of each of several functions under the symmetry: functions of equal or opposite value at every point
/// seen.
class Pairing {
 public:
  Pairing(int count, bool both_signs) : possible_(at(count)) {
    for (std::vector<int>& list : possible_) {
      for (int j = 1; j <= count; ++j) {
        list.push_back(j);
        if (both_signs) list.push_back(-j);
      }
    }
  }

  void see(const std::vector<double>& here, const std::vector<double>& there) {
    for (size_t i = 0; i < possible_.size(); ++i) {
      std::erase_if(possible_[i],
                    [&](int j) { return !alike((j > 0 ? 1 : -1) * here[i], there[at(std::abs(j) - 1)]); });
    }
  }

  /// Signed and counted from 1; 0: nothing is left.
  int of(int i) const { return possible_[at(i)].empty() ? 0 : possible_[at(i)].front(); }

 private:
  std::vector<std::vector<int>> possible_;
};

/// Everything that a symmetry must keep, at one point.
struct Glance {
  std::vector<double> surfaces, gaps, jumps;
  Vec f;
};

void look(const Program& program, Variation& variation, const Arc& arc, const std::vector<double>& x, double t,
          Glance& out) {
  out.f = variation.rates(arc, x, t);
  const Series& series = variation.series();
  const std::vector<LoweredJump>& jumps = program.model().form.jumps;
  out.surfaces.clear(), out.gaps.clear(), out.jumps.clear();
  for (int i = 0; i < program.switches(); ++i) out.surfaces.push_back(program.moves(i) ? series.surface(i)[0] : 0);
  for (int j = 0; j < program.constraints(); ++j) out.gaps.push_back(series.gap(j)[0]);
  for (size_t k = 0; k < jumps.size(); ++k)
    out.jumps.push_back(jumps[k].every ? 0 : series.jump(static_cast<int>(k))[0]);
}

/// True if surfaces, gaps, jumps and rates agree, at points off the orbit, and on it where it slides or a contact is
/// closed; fills in what switches become.
bool model_has(Symmetry& symmetry, const Program& program, Variation& variation, const Closed& orbit) {
  const Trajectory& run = *orbit.run;
  const size_t n = at(program.states());
  const double half = orbit.duration / 2;
  const int jumps = static_cast<int>(program.model().form.jumps.size());
  Pairing surfaces(program.switches(), true), gaps(program.constraints(), false), conditions(jumps, true);
  std::vector<double> x(n), y(n);
  Glance here, there;
  for (int k = 0; k < turn_samples; ++k) {
    const double t = run.start_time + half * (k + 0.37) / turn_samples;
    const Piece& piece = run.pieces[run.piece_at(t)];
    const Arc& a = run.arcs[at(piece.arc)];
    const Arc& b = run.arcs[at(run.pieces[run.piece_at(t + half)].arc)];
    const bool bound =
        a.mode.switches.find('0') != std::string::npos || a.mode.constraints.find('c') != std::string::npos;
    Trajectory::evaluate(piece, program.states(), t - piece.start, x.data());
    for (size_t i = 0; i < n; ++i) {
      if (!bound) x[i] += 0.3 * orbit.size[ix(i)] * std::sin(1.7 + 3.1 * static_cast<double>(i) + k);
      y[i] = symmetry.sign[ix(i)] * x[i];
    }
    look(program, variation, a, x, t, here);
    look(program, variation, b, y, t + half, there);
    surfaces.see(here.surfaces, there.surfaces);
    gaps.see(here.gaps, there.gaps);
    conditions.see(here.jumps, there.jumps);
    for (size_t i = 0; i < n; ++i) {
      const double want = symmetry.sign[ix(i)] * here.f[ix(i)], got = there.f[ix(i)];
      if (!orbit.free[i] && !(std::abs(want - got) <= equal * (here.f.max_abs() + 1e-12))) return false;
    }
  }
  for (int j = 0; j < program.constraints(); ++j) {
    if (gaps.of(j) == 0) return false;
  }
  for (int k = 0; k < jumps; ++k) {
    if (conditions.of(k) == 0) return false;
  }
  for (int i = 0; i < program.switches(); ++i) {
    const int j = program.moves(i) ? surfaces.of(i) : i + 1;
    if (j == 0) return false;
    symmetry.switches.emplace_back(std::abs(j) - 1, j > 0 ? 1 : -1);
  }
  return true;
}

}  // namespace

std::optional<Symmetry> find_symmetry(const Program& program, Variation& variation, const Closed& orbit) {
  const size_t n = at(program.states());
  const Trajectory& run = *orbit.run;
  Symmetry out{.sign = Vec::Ones(ix(n)), .switches = {}};
  const double half = orbit.duration / 2;
  std::vector<double> with(n), against(n), a(n), b(n);
  const auto state_at = [&](double t, std::vector<double>& x) {
    const Piece& piece = run.pieces[run.piece_at(t)];
    Trajectory::evaluate(piece, program.states(), t - piece.start, x.data());
  };
  for (int k = 0; k < turn_samples; ++k) {
    const double t = run.start_time + half * (k + 0.37) / turn_samples;
    state_at(t, a);
    state_at(t + half, b);
    for (size_t i = 0; i < n; ++i) with[i] += std::abs(a[i] - b[i]), against[i] += std::abs(a[i] + b[i]);
  }
  for (size_t i = 0; i < n; ++i) {
    if (against[i] < with[i]) out.sign[ix(i)] = -1;
    if (orbit.free[i]) out.sign[ix(i)] = 1;
    if (!orbit.free[i] && std::min(with[i], against[i]) > equal * turn_samples * orbit.size[ix(i)]) return std::nullopt;
    if (orbit.shift[i] != 0) return std::nullopt;
  }
  if (out.sign.minCoeff() > 0) return std::nullopt;
  return model_has(out, program, variation, orbit) ? std::optional(out) : std::nullopt;
}

}  // namespace saltus
