#include "base/sparse.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"

namespace saltus {

SparseMat::SparseMat(Index rows, Index cols, std::span<const SparseEntry> entries) : SparseMat(rows, cols) {
  // Sorted by row, then by column: twice a counting sort, which keeps the order of what is equal.
  std::vector<int> next(ux(rows) + 1, 0), by_row(entries.size());
  for (const SparseEntry& e : entries) ++next[at(e.row) + 1];
  for (size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  for (size_t k = 0; k < entries.size(); ++k) by_row[at(next[at(entries[k].row)]++)] = static_cast<int>(k);
  std::vector<int> last(ux(cols), -1), filled(ux(cols), 0);  // per column: its last row, how many rows
  for (const int k : by_row) {
    const SparseEntry& e = entries[at(k)];
    if (last[at(e.column)] != e.row) ++filled[at(e.column)];
    last[at(e.column)] = e.row;
  }
  for (size_t j = 0; j < filled.size(); ++j) starts_[j + 1] = starts_[j] + filled[j];
  places_.resize(at(starts_.back()));
  values_.resize(at(starts_.back()));
  std::fill(last.begin(), last.end(), -1);
  std::fill(filled.begin(), filled.end(), 0);
  for (const int k : by_row) {
    const SparseEntry& e = entries[at(k)];
    int& count = filled[at(e.column)];
    if (last[at(e.column)] == e.row) {
      values_[at(starts_[at(e.column)] + count - 1)] += e.value;
      continue;
    }
    last[at(e.column)] = e.row;
    const size_t place = at(starts_[at(e.column)] + count++);
    places_[place] = e.row, values_[place] = e.value;
  }
}

SparseMat::SparseMat(const ConstView& dense) : SparseMat(dense.rows(), dense.cols()) {
  for (Index j = 0; j < dense.cols(); ++j) {
    for (Index i = 0; i < dense.rows(); ++i)
      if (dense(i, j) != 0) append(static_cast<int>(i), dense(i, j));
    end_column(j);
  }
}

SparseMat SparseMat::Identity(Index size) {
  SparseMat out(size, size);
  for (Index j = 0; j < size; ++j) {
    out.append(static_cast<int>(j), 1);
    out.end_column(j);
  }
  return out;
}

SparseMat::operator Mat() const {
  Mat out = Mat::Zero(rows(), cols());
  for (Index j = 0; j < cols(); ++j)
    for (const Place e : column(j)) out(e.row, j) = e.value;
  return out;
}

Vec SparseMat::diagonal() const {
  Vec out = Vec::Zero(std::min(rows(), cols()));
  for (Index j = 0; j < out.size(); ++j)
    for (const Place e : column(j))
      if (e.row == j) out[j] = e.value;
  return out;
}

SparseMat SparseMat::transpose() const {
  SparseMat out(cols(), rows());
  for (const int i : places_) ++out.starts_[at(i) + 1];
  for (size_t i = 1; i < out.starts_.size(); ++i) out.starts_[i] += out.starts_[i - 1];
  out.places_.resize(places_.size());
  out.values_.resize(values_.size());
  std::vector<int> next(out.starts_.begin(), out.starts_.end() - 1);
  for (Index j = 0; j < cols(); ++j) {
    for (const Place e : column(j)) {
      const size_t place = at(next[at(e.row)]++);
      out.places_[place] = static_cast<int>(j), out.values_[place] = e.value;
    }
  }
  return out;
}

SparseMat SparseMat::cwiseAbs() const {
  SparseMat out = *this;
  for (double& v : out.values_) v = std::abs(v);
  return out;
}

SparseMat SparseMat::part(std::span<const int> which, std::span<const int> place) const {
  SparseMat out(ix(which.size()), ix(which.size()));
  for (Index j = 0; j < out.cols(); ++j) {
    for (const Place e : column(which[ux(j)]))
      if (place[at(e.row)] >= 0) out.append(place[at(e.row)], e.value);
    out.end_column(j);
  }
  return out;
}

SparseMat operator+(const SparseMat& a, const SparseMat& b) {
  SparseMat out(a.rows(), a.cols());
  for (Index j = 0; j < a.cols(); ++j) {
    auto x = a.column(j).begin();
    auto y = b.column(j).begin();
    const auto x_end = a.column(j).end(), y_end = b.column(j).end();
    while (x != x_end || y != y_end) {
      if (!(y != y_end) || (x != x_end && *x.row < *y.row)) {
        out.append(*x.row, *x.value), ++x;
      } else if (!(x != x_end) || *y.row < *x.row) {
        out.append(*y.row, *y.value), ++y;
      } else {
        out.append(*x.row, *x.value + *y.value), ++x, ++y;
      }
    }
    out.end_column(j);
  }
  return out;
}

SparseMat operator-(const SparseMat& a, const SparseMat& b) { return a + -b; }

SparseMat operator-(SparseMat a) { return -1 * std::move(a); }

SparseMat operator*(double factor, SparseMat a) {
  a *= factor;
  return a;
}

SparseMat operator*(const SparseMat& a, const SparseMat& b) {
  SparseMat out(a.rows(), b.cols());
  std::vector<double> sums(ux(a.rows()));
  std::vector<int> rows, met(ux(a.rows()), -1);  // the column that met a row last
  for (Index j = 0; j < b.cols(); ++j) {
    rows.clear();
    for (const SparseMat::Place k : b.column(j)) {
      for (const SparseMat::Place e : a.column(k.row)) {
        if (met[at(e.row)] != j) {
          met[at(e.row)] = static_cast<int>(j);
          sums[at(e.row)] = 0;
          rows.push_back(e.row);
        }
        sums[at(e.row)] += e.value * k.value;
      }
    }
    std::sort(rows.begin(), rows.end());
    for (const int i : rows) out.append(i, sums[at(i)]);
    out.end_column(j);
  }
  return out;
}

SparseMat operator*(const Diagonal& d, SparseMat a) {
  for (size_t k = 0; k < a.values_.size(); ++k) a.values_[k] *= d.entries()[a.places_[k]];
  return a;
}

Vec operator*(const SparseMat& a, const ConstView& x) {
  Vec out = Vec::Zero(a.rows());
  for (Index j = 0; j < a.cols(); ++j)
    for (const SparseMat::Place e : a.column(j)) out[e.row] += e.value * x[j];
  return out;
}

}  // namespace saltus
