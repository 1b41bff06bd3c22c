#include "ask/rates.hpp"

#include <algorithm>
#include <limits>

#include "ask/solve.hpp"
#include "flow/simulate.hpp"
#include "model/program.hpp"

namespace saltus {

std::vector<double> rates(const System& system, std::span<const double> points, double t) {
  const size_t n = system.model().states.size();
  if (points.size() % n != 0)
    throw Error(ErrorKind::usage, "the points have another number of values than states", {}, "give whole states");
  std::vector<double> out(points.size(), std::numeric_limits<double>::quiet_NaN());
  RunOptions options = run_options({}, system.model(), t + 1);
  options.from = t;
  options.keep_events = false;
  std::span<double> here;
  bool known = false;
  options.on_piece = [&](const Piece& piece, const Arc&) {
    const size_t powers = piece.coefficients.size() / n;
    for (size_t s = 0; s < n && !known; ++s) here[s] = powers > 1 ? piece.coefficients[s * powers + 1] : 0.0;
    known = true;
  };
  options.stop = [&] { return known; };
  Simulator simulator(system.program());
  for (size_t at = 0; at < points.size(); at += n) {
    here = std::span(out).subspan(at, n);
    known = false;
    std::copy_n(points.begin() + static_cast<std::ptrdiff_t>(at), n, options.initial.begin());
    try {
      simulator.run(options);
    } catch (const Error&) {  // a gap is violated there, or a formula has no value
    }
  }
  return out;
}

}  // namespace saltus
