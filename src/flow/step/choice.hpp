// How many ways there are to go on from a point where a few surfaces and gaps are zero.
#pragma once

#include <vector>

#include "base/linear.hpp"

namespace saltus {

/// A small box problem: w = M u + q; u at lo needs w >= 0, at hi w <= 0, in between w = 0.
struct ZeroSet {
  Mat M;
  Vec q, lo, hi;
};

struct Answers {
  bool counted = false;        ///< false: too many items to look at every case
  std::vector<Vec> solutions;  ///< u, those with different w only
};

/// Looks at every case unless M is a P-matrix, which has one answer.
Answers count_answers(const ZeroSet& set);

}  // namespace saltus
