#include "solve/dictionary.hpp"

#include <cmath>

namespace saltus {
namespace {

constexpr int block = 48;          // exchanges gathered before one matrix product applies them
constexpr int blocked_from = 128;  // smaller dictionaries stay in cache; gathering would cost more than it saves

// A constant that is this small against its two summands is an exact zero spoilt by rounding (a tie).
constexpr double cancelled = 1e-13;

}  // namespace

void Dictionary::start(const Mat& M, const Vec& d, const Vec& b) {
  rows_ = static_cast<int>(M.rows());
  columns_ = static_cast<int>(M.cols()) + (d.size() > 0 ? 1 : 0);
  pending_ = 0;
  held_column_ = -1;
  blocked_ = rows_ >= blocked_from;
  T_.resize(rows_, columns_);
  T_.leftCols(M.cols()) = M;
  if (d.size() > 0) T_.col(columns_ - 1) = d;
  b_ = b;
  column_.resize(rows_);
  row_.resize(columns_);
  if (blocked_) {
    U_.resize(rows_, block);
    V_.resize(columns_, block);
  }
}

double Dictionary::entry(int r, int c) const {
  double value = T_(r, c);
  for (int k = 0; k < pending_; ++k) value += U_(r, k) * V_(c, k);
  return value;
}

const Vec& Dictionary::column(int c) {
  if (c == held_column_) return column_;
  held_column_ = c;
  column_ = T_.col(c);
  if (pending_ > 0) add_product(column_, U_.leftCols(pending_), V_.row(c).head(pending_).transpose());
  return column_;
}

const Vec& Dictionary::row(int r) {
  row_ = T_.row(r).transpose();
  if (pending_ > 0) add_product(row_, V_.leftCols(pending_), U_.row(r).head(pending_).transpose());
  return row_;
}

void Dictionary::exchange(int r, int c) {
  column(c);
  row(r);
  held_column_ = -1;
  const double pivot = column_[r];
  const double step = -b_[r] / pivot;
  for (int i = 0; i < rows_; ++i) {
    const double change = column_[i] * step, value = b_[i] + change;
    b_[i] = std::abs(value) <= cancelled * (std::abs(b_[i]) + std::abs(change)) ? 0.0 : value;
  }
  b_[r] = step;

  // With row r and column c of T set to zero, the whole exchange is T -= u v^T, where u_r = 1 and v_c = -1/pivot.
  column_[r] = 1;
  row_ /= pivot;
  row_[c] = -1 / pivot;
  T_.col(c).setZero();
  T_.row(r).setZero();
  if (!blocked_) {
    const double* u = column_.data();
    for (int j = 0; j < columns_; ++j) {
      const double v = row_[j];
      if (v == 0) continue;
      double* t = T_.data() + static_cast<Index>(j) * rows_;
      for (int i = 0; i < rows_; ++i) t[i] -= u[i] * v;
    }
    return;
  }
  U_.row(r).head(pending_).setZero();
  V_.row(c).head(pending_).setZero();
  U_.col(pending_) = -column_;
  V_.col(pending_) = row_;
  if (++pending_ == block) flush();
}

void Dictionary::flush() {
  add_product(T_, U_.leftCols(pending_), V_.leftCols(pending_).transpose());
  pending_ = 0;
}

}  // namespace saltus
