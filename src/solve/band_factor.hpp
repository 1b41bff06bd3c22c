// LU with row exchanges of the free part of a band matrix: rows and columns of unknowns that are not free are those of
// the identity. Where the free set changes, only the rows near the change are eliminated again: the rows under way are
// kept every few steps, and where they are met again to the last bit, so are all that follow.
//
//   k-th step: of the rows k .. k + lower, eliminated up to column k, the one with the largest entry there is row k of
//              U, and its multiples are taken from the others
#pragma once

#include <utility>
#include <vector>

#include "base/linear.hpp"

namespace saltus {

class BandFactor {
 public:
  /// The rows of M. False, and nothing is kept, if it reaches further than `widest` from its
  /// diagonal on either side.
  bool take(const SparseMat& M, int widest);
  /// Factors with these free unknowns and `shift` added to their diagonal. False if that is singular to working
  /// precision.
  bool factor(const std::vector<char>& free, double shift = 0);
  /// Entries of x that are not free stay as they are.
  void solve_in_place(Vec& x);

  /// residual = rhs - M x and size = |rhs| + |M| |x|, in all rows.
  void products(const Vec& rhs, const Vec& x, Vec& residual, Vec& size);
  /// Sign of the determinant.
  int sign() const;
  /// The largest entry of the free part.
  double largest() const { return largest_; }
  /// Steps of elimination so far: what keeping factors is measured by.
  long eliminated() const { return eliminated_; }

 private:
  void load(int row, double* out);
  void start_window();
  template <int W>
  void eliminate(int first, int last);
  template <int W>
  void substitute(double* x) const;
  /// Calls f with the width as a number the compiler knows, or with 0.
  template <class F>
  void by_width(const F& f) const;
  /// The steps that meet other rows than before, as ranges [first, last).
  std::vector<std::pair<int, int>> changed_steps(const std::vector<char>& free) const;
  bool regular();

  static constexpr int stride = 32;  // steps between windows that are kept

  int n_ = 0, lower_ = 0, upper_ = 0, width_ = 2;  // width: lower + upper + 1, made even
  std::vector<double> rows_;                       // of M: entry (i, j) at [i][j - i + lower]
  std::vector<char> free_;
  std::vector<double> mask_;      // 1: free; unknown i at i + lower
  std::vector<double> row_size_;  // largest entry of the free part
  double shift_ = 0, largest_ = 0;
  bool factored_ = false;
  long eliminated_ = 0;
  std::vector<double> window_;  // rows under way, from the column of the step: lower of them and the one that comes in
  std::vector<double> kept_;    // windows before steps 0, stride, ...
  std::vector<double> U_, L_, inverse_;
  std::vector<int> swap_;
  std::vector<double> padded_;  // a vector with zeros beyond its ends
};

}  // namespace saltus
