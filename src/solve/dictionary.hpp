// The dictionary of a pivoting method: basic variables as affine functions of the nonbasic ones,
//   x_B = b + T x_N,
// with exchanges that are applied in blocks, so that a large dictionary is updated at the speed of a matrix product.
#pragma once

#include "base/linear.hpp"

namespace saltus {

class Dictionary {
 public:
  /// Starts at x_B = b + [M d] x_N; d may be empty (no extra column).
  void start(const Mat& M, const Vec& d, const Vec& b);

  int rows() const { return rows_; }
  int columns() const { return columns_; }
  const Vec& constants() const { return b_; }
  double entry(int r, int c) const;

  /// How the basic variables change with nonbasic variable c; the reference stays valid until the next call.
  const Vec& column(int c);
  /// How basic variable r depends on the nonbasic variables; valid until the next call.
  const Vec& row(int r);

  /// Basic variable r and nonbasic variable c change places. entry(r, c) must not be zero.
  void exchange(int r, int c);

 private:
  void flush();

  int rows_ = 0, columns_ = 0, pending_ = 0, held_column_ = -1;
  bool blocked_ = false;
  Mat T_;
  Mat U_, V_;  // pending exchanges: T = T_ + U V^T, of which `pending_` columns count
  Vec b_, column_, row_;
};

}  // namespace saltus
