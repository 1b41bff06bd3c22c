// Values of something varied, as a person writes them: a:b:n, a list, or @FILE.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/model.hpp"

namespace saltus {

struct RangeOptions {
  bool log = false;            ///< a:b:n with equal ratios instead of equal steps
  std::optional<long> random;  ///< so many random values between a and b, in order of size
  std::uint64_t seed = 1;
  const Model* model = nullptr;  ///< whose parameters may stand in the numbers
};

struct ValueRange {
  std::vector<double> values;
  bool uniform = false;  ///< equal steps, or equal ratios with `log`
};

/// Reads `a:b:n`, `a:b` (400 values), `v1,v2,...` or `@FILE` (numbers separated by spaces, commas or lines; `#`
/// comments). Numbers may be constant expressions, also of parameters. `given` is the argument as typed, for
/// complaints.
ValueRange read_range(const std::string& text, const std::string& given, const RangeOptions& options = {});

/// The numbers of each line of a file, `#` comments left out.
std::vector<std::vector<double>> read_rows(const std::string& path, const std::string& given);

/// Intervals of states for random starts, "y=-2:2,v=-1:1"; NaN where none is given.
std::vector<std::pair<double, double>> read_box(const std::vector<std::string>& texts, const Model& model);

/// How near points of one phase are: "1e-6" for all states, "v=1e-4" for one, "inf" for one that does not count; NaN
/// where none is given.
std::vector<double> read_nearness(const std::vector<std::string>& texts, const Model& model);

/// "a,b,c" apart.
std::vector<std::string> split_list(const std::string& text, char separator = ',');

}  // namespace saltus
