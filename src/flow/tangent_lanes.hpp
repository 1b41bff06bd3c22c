// Sums of products of series with tangents, four directions side by side.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace saltus {

/// The series of tangents: coefficient k of row r in direction c is at (r, k)[c].
struct TangentRows {
  static constexpr size_t width = 4;  ///< directions are filled up to a multiple of it

  std::vector<double> numbers{};
  size_t lanes = width;  ///< directions, filled up
  size_t count = 0;      ///< coefficients of a row

  /// Room for so many rows; what was in it is undefined.
  void resize(size_t rows, size_t coefficients, size_t directions) {
    lanes = (directions + width - 1) / width * width;
    count = coefficients;
    numbers.resize(rows * count * lanes);
  }
  double* operator()(size_t row, size_t k) { return numbers.data() + (row * count + k) * lanes; }
  const double* operator()(size_t row, size_t k) const { return numbers.data() + (row * count + k) * lanes; }
};

/// sign * (the product of a series with a row of tangents), added to a row of sums.
struct TangentTerm {
  int row = 0, column = 0;
  bool unknown = false;  ///< the column is one of the unknowns, not of the states
  double sign = 1;
  const double* series = nullptr;
  bool constant = false;  ///< only its coefficient 0 is not zero
};

/// Coefficient k of all terms, each added to its row of `sums`. Of unknowns only the coefficients below k count if
/// `open`: coefficient k is what the sums are needed for. Terms whose series is not finite are left out.
void add_terms(std::span<const TangentTerm> terms, const TangentRows& states, const TangentRows& unknowns, int k,
               bool open, TangentRows& sums);

}  // namespace saltus
