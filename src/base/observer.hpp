// An observer of a long computation: progress out, a request to stop in.
#pragma once

#include <functional>
#include <string_view>

namespace saltus {

/// How far a computation is: `now` runs from `from` to `to`, both ends known in advance.
struct Progress {
  std::string_view what = "t";  ///< what is counted
  double from = 0, now = 0, to = 1;
};

/// Called now and then; false asks the computation to stop with what it has.
using Report = std::function<bool(const Progress&)>;

}  // namespace saltus
