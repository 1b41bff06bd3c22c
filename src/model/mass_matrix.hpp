// Sparse matrices of formulas and their values at some points: which pivots a direct elimination may take.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "expr/expr.hpp"

namespace saltus {

/// Rows of nonzero formulas by column.
using FormulaRows = std::vector<std::map<int, Expr>>;
/// Its numbers at a point, likewise.
using NumberRows = std::vector<std::map<int, double>>;

/// The row for each column such that the product of the entries is largest (Duff and Koster 2001); -1 for columns that
/// no row is left for.
std::vector<int> match_rows(const NumberRows& rows, int columns);

/// Columns in blocks that need only themselves and earlier blocks, if column c is given by row `row_of[c]`.
std::vector<std::vector<int>> triangular_blocks(const FormulaRows& rows, const std::vector<int>& row_of);

/// A square block as numbers, row by row.
struct Block {
  int n = 0;
  std::vector<double> values;
  double& operator()(int i, int j) { return values[static_cast<size_t>(i * n + j)]; }
  double operator()(int i, int j) const { return values[static_cast<size_t>(i * n + j)]; }
};

/// True if rows can be multiplied by positive or negative numbers such that the block is symmetric, positive definite.
bool scales_to_positive(const Block& block);
/// Factors of rows that make the block symmetric, the first of each connected part +1 or -1; empty where there are
/// none.
std::vector<double> symmetric_scaling(const Block& block);
bool is_symmetric(const Block& block);
/// A vector that the block takes to zero (up to rounding); empty if it is regular.
std::vector<double> null_vector(Block block);
/// Rows in the order in which partial pivoting takes them for columns 0, 1, ...
std::vector<int> pivot_rows(Block block);
/// Columns 0..n-1 in an order that keeps elimination on the diagonal sparse (least degree first).
std::vector<int> least_degree_order(const std::vector<std::vector<int>>& neighbours);

/// Solves rows * x = right with the pivots (row, column) in this order; `symmetric` if both triangles have equal
/// values. Every pivot is handed back in `divisors`.
std::vector<Expr> eliminate(FormulaRows rows, std::vector<Expr> right, std::span<const std::pair<int, int>> pivots,
                            bool symmetric, std::vector<Expr>& divisors);
/// Solves for up to three unknowns by cofactors; the divisor is the determinant.
std::vector<Expr> solve_by_cofactors(const FormulaRows& rows, const std::vector<Expr>& right,
                                     std::vector<Expr>& divisors);

}  // namespace saltus
