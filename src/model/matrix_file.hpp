// Vectors and matrices from files: rows of numbers (CSV), or Matrix Market (coordinate and array, real and integer,
// general, symmetric and skew-symmetric).
#pragma once

#include <filesystem>
#include <vector>

#include "base/error.hpp"

namespace saltus {

struct MatrixEntry {
  int row = 0, column = 0;  ///< from 1
  double value = 0;
};

struct MatrixOfFile {
  int rows = 0, columns = 0;
  std::vector<MatrixEntry> entries;  ///< by rows, without zeros
};

/// Throws Error(file) if the file cannot be read (`asked` is where the model names it), Error(model) at the first
/// mistake in it.
MatrixOfFile read_matrix(const std::filesystem::path& path, const Place& asked);

}  // namespace saltus
