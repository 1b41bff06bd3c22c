// Series of tangents, four directions side by side: the linear equations along a piece of a run.
//
//   0  = C X + D U + g      U_k from the sums of order k without D_0 U_k
//   X' = A X + B U + f      X_{k+1} = (A X + B U + f)_k / (k+1)
//
// A, B, C, D are series; X, U are rows of tangents, a direction per column.
#pragma once

#include <cstddef>
#include <vector>

namespace saltus {

/// Rows of series of tangents. Directions come in groups of four, which do not know of each other.
class TangentRows {
 public:
  static constexpr size_t width = 4;  ///< directions of a group; the last group is filled up

  /// Room for so many rows; what was in it is undefined.
  void resize(size_t rows, size_t coefficients, size_t directions) {
    rows_ = rows;
    count_ = coefficients;
    groups_ = (directions + width - 1) / width;
    if (const size_t size = groups_ * rows * count_; cells_.size() < size) cells_.resize(size);
  }
  size_t groups() const { return groups_; }
  size_t coefficients() const { return count_; }
  /// All rows in a group of directions: coefficient k of row r begins at (r*coefficients + k)*width.
  double* group(size_t g) { return cells_[g * rows_ * count_].numbers; }
  /// Coefficient k of a row in direction c.
  double& operator()(size_t row, size_t k, size_t c) { return cells_[place(row, k, c)].numbers[c % width]; }
  double operator()(size_t row, size_t k, size_t c) const { return cells_[place(row, k, c)].numbers[c % width]; }

 private:
  struct alignas(width * sizeof(double)) Cell {
    double numbers[width] = {};
  };
  size_t place(size_t row, size_t k, size_t c) const { return (c / width * rows_ + row) * count_ + k; }

  std::vector<Cell> cells_;
  size_t rows_ = 0, count_ = 0, groups_ = 0;
};

/// sign * (the product of a series with a row of tangents).
struct TangentTerm {
  const double* series = nullptr;
  int column = 0;         ///< row of the tangents: a state, or the number of states + an unknown
  bool constant = false;  ///< only coefficient 0 of the series is not zero
  bool open = false;      ///< coefficient 0 does not count: it belongs to what is solved for
  bool negative = false;
};

/// The equations along a piece. Rows of the tangents: X, U, then f and g if they are given, then one per residual.
struct TangentSystem {
  struct Weight {
    int unknown = 0, residual = 0;
    double value = 0;
  };
  std::vector<TangentTerm> terms;              ///< of the residuals, then of the rates, row by row
  std::vector<size_t> residual_end, rate_end;  ///< where the terms of each row end
  std::vector<Weight> solution;                ///< U = sum of weights * residuals, unknown by unknown
  bool given = false;                          ///< f and g are not zero

  size_t states() const { return rate_end.size(); }
  size_t unknowns() const { return residual_end.size(); }
  size_t f(size_t i) const { return states() + unknowns() + i; }
  size_t g(size_t a) const { return 2 * states() + unknowns() + a; }
  size_t residual(size_t a) const { return (given ? 2 : 1) * (states() + unknowns()) + a; }
  size_t rows() const { return residual(unknowns()); }
  /// Without the terms whose series is not finite.
  TangentSystem without_infinite() const;
};

/// Coefficients 1..order of X and 0..order-1 (at least 0) of U from coefficient 0 of X, and f and g if they are given.
/// All machines give the same bits.
void expand(const TangentSystem& system, TangentRows& tangents, int order);
/// True if the last two terms of every row of X are at most `tolerance` times the largest of its first three, at tau.
bool has_converged(TangentRows& tangents, size_t states, int order, double tau, double tolerance);
/// X at tau becomes coefficient 0.
void move_to(TangentRows& tangents, size_t states, int order, double tau);

}  // namespace saltus
