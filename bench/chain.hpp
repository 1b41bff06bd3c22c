// The text of a Burridge-Knopoff chain, for the benchmarks that want a model of any size.
#pragma once

#include <random>
#include <string>

#include <fmt/format.h>

namespace saltus {

/// Blocks on the floor, each on a spring of the moving plate and on springs of its neighbours; 2N states, N surfaces.
/// All hold at the start; small irregular offsets keep them from slipping all at once. `friction`: of V, with {0} for
/// the number of a block.
inline std::string chain_text(int n, const std::string& friction = "D*sign(V{0}, ph)") {
  constexpr double spread = 0.15;
  std::mt19937 draw(1);
  std::string equations, initial;
  for (int i = 1; i <= n; ++i) {
    equations += fmt::format("  X{0}' = V{0}\n  V{0}' = y{0}", i);
    if (i > 1) equations += fmt::format(" + al*(y{} - y{})", i, i - 1);
    if (i < n) equations += fmt::format(" + al*(y{} - y{})", i, i + 1);
    equations += " - " + fmt::format(fmt::runtime(friction), i) + fmt::format("\n  y{0} = nu*t - X{0}\n", i);
    const double offset = spread * (static_cast<double>(draw()) / 0x1p31 - 1);
    initial += fmt::format("X{0} = {1:.6f}\nV{0} = 0\n", i, offset);
  }
  return fmt::format(
      "equations = \"\"\"\n{}\"\"\"\n[parameters]\nal = 1.2\nph = 1.25\nD = 0.8\nnu = 0.1\n[initial]\n{}", equations,
      initial);
}

}  // namespace saltus
