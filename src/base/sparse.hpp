// Matrices most of whose entries are zero: column behind column, of each the entries that are not, by row.
#pragma once

#include <span>
#include <vector>

#include "base/dense.hpp"

namespace saltus {

struct SparseEntry {
  int row, column;
  double value;
};

class SparseMat {
 public:
  SparseMat() : SparseMat(0, 0) {}
  /// Zeros.
  SparseMat(Index rows, Index cols) : rows_(rows), starts_(static_cast<size_t>(cols) + 1, 0) {}
  /// Entries in any order; those at the same place are added, in the order in which they come.
  SparseMat(Index rows, Index cols, std::span<const SparseEntry> entries);
  /// Keeps the entries that are not zero.
  explicit SparseMat(const ConstView& dense);
  static SparseMat Identity(Index size);
  operator Mat() const;

  Index rows() const { return rows_; }
  Index cols() const { return static_cast<Index>(starts_.size()) - 1; }
  Index size() const { return rows() * cols(); }
  Index nonZeros() const { return static_cast<Index>(values_.size()); }

  /// An entry of a column.
  struct Place {
    int row;
    double value;
  };
  class Column {
   public:
    struct Iterator {
      const int* row;
      const double* value;
      Place operator*() const { return {*row, *value}; }
      Iterator& operator++() {
        ++row, ++value;
        return *this;
      }
      bool operator!=(const Iterator& other) const { return row != other.row; }
    };
    Column(const int* rows, const double* values, int size) : rows_(rows), values_(values), size_(size) {}
    Iterator begin() const { return {rows_, values_}; }
    Iterator end() const { return {rows_ + size_, values_ + size_}; }

   private:
    const int* rows_;
    const double* values_;
    int size_;
  };
  /// The entries of a column, by row.
  Column column(Index j) const {
    const int begin = starts_[static_cast<size_t>(j)];
    return {places_.data() + begin, values_.data() + begin, starts_[static_cast<size_t>(j) + 1] - begin};
  }

  /// Column j has the entries from starts()[j] to starts()[j + 1], in the rows places(), with values().
  const std::vector<int>& starts() const { return starts_; }
  const std::vector<int>& places() const { return places_; }
  const std::vector<double>& values() const { return values_; }
  /// To be changed; their number stays.
  std::vector<double>& values() { return values_; }
  bool same_pattern(const SparseMat& other) const {
    return rows_ == other.rows_ && starts_ == other.starts_ && places_ == other.places_;
  }
  bool operator==(const SparseMat& other) const { return same_pattern(other) && values_ == other.values_; }

  bool allFinite() const { return column_of(values_).allFinite(); }
  double max_abs() const { return column_of(values_).max_abs(); }
  Vec diagonal() const;
  SparseMat transpose() const;
  SparseMat cwiseAbs() const;
  /// The rows and columns that are listed in rising order; `place` says where each row comes, or -1.
  SparseMat part(std::span<const int> which, std::span<const int> place) const;
  SparseMat& operator*=(double factor) {
    column_at(values_.data(), nonZeros()) *= factor;
    return *this;
  }

 private:
  friend SparseMat operator+(const SparseMat& a, const SparseMat& b);
  friend SparseMat operator*(const SparseMat& a, const SparseMat& b);
  friend SparseMat operator*(const Diagonal& d, SparseMat a);
  void append(int row, double value) { places_.push_back(row), values_.push_back(value); }
  void end_column(Index j) { starts_[static_cast<size_t>(j) + 1] = static_cast<int>(places_.size()); }

  Index rows_;
  std::vector<int> starts_, places_;
  std::vector<double> values_;
};

SparseMat operator+(const SparseMat& a, const SparseMat& b);
SparseMat operator-(const SparseMat& a, const SparseMat& b);
SparseMat operator-(SparseMat a);
SparseMat operator*(double factor, SparseMat a);
SparseMat operator*(const SparseMat& a, const SparseMat& b);
SparseMat operator*(const Diagonal& d, SparseMat a);
Vec operator*(const SparseMat& a, const ConstView& x);

}  // namespace saltus
