#include "studio/orbit_frame.hpp"

#include <cmath>

#include "studio/frame.hpp"

namespace saltus {
namespace {

/// States along one period, as densely as curves bend at most; NaN where they jump.
std::vector<std::vector<double>> curve_of(const Trajectory& path) {
  constexpr int per_piece = 80;
  const size_t n = static_cast<size_t>(path.states);
  std::vector<std::vector<double>> columns(n);
  std::vector<double> x(n), last;
  for (const Piece& piece : path.pieces) {
    for (int k = 0; k <= per_piece; ++k) {
      Trajectory::evaluate(piece, path.states, piece.length * k / per_piece, x.data());
      bool jumps = false;
      for (size_t s = 0; s < n && k == 0 && !last.empty(); ++s)
        jumps = jumps || std::abs(x[s] - last[s]) > 1e-6 * (1 + std::abs(x[s]));
      for (size_t s = 0; s < n; ++s) {
        if (jumps) columns[s].push_back(std::nan(""));
        columns[s].push_back(x[s]);
      }
    }
    last = x;
  }
  return columns;
}

}  // namespace

std::string orbit_frame(long id, const Model& model, const Orbit& orbit) {
  Frame frame;
  if (orbit.found) {
    const auto columns = curve_of(orbit.trajectory);
    for (size_t s = 0; s < columns.size(); ++s) frame.add(model.states[s].name, columns[s]);
  }
  return frame.bytes(id, "orbit", [&](JsonWriter& json) {
    json.member("found", orbit.found).member("why", orbit.why).member("message", orbit.message);
    json.member("period", orbit.period).member("returns", orbit.returns).member("t", orbit.t);
    json.member("stable", orbit.stable).key("state").value(std::span<const double>(orbit.state));
    json.key("multipliers").array();
    for (const std::complex<double>& z : orbit.multipliers) {
      json.array();
      for (const double part : {z.real(), z.imag()}) std::isfinite(part) ? json.value(part) : json.null();
      json.end();
    }
    json.end().key("legs").array();
    for (const OrbitLeg& leg : orbit.legs) {
      json.object().member("mode", visible_mode(leg.mode, model.form.visible).text()).member("length", leg.length);
      json.member("ended_by", leg.ended_by).end();
    }
    json.end().key("notes").value(std::span<const std::string>(orbit.notes));
  });
}

}  // namespace saltus
