// Vectors and matrices of doubles, and views of parts of them. Arithmetic is done at once, in dense.cpp: no templates,
// so that nothing of it is compiled where it is used. A vector is a matrix of one column (or one row, as A.row(i) is).
#pragma once

#include <cassert>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <utility>

namespace saltus {

using Index = std::ptrdiff_t;

class Vec;
class Mat;
class View;
class Diagonal;

/// A matrix that lies somewhere, to be read: entry (i, j) at data[i * down + j * across]. Lives no longer than that.
class ConstView {
 public:
  ConstView(const double* data, Index rows, Index cols, Index down, Index across)
      : data_(const_cast<double*>(data)), rows_(rows), cols_(cols), down_(down), across_(across) {}

  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  Index size() const { return rows_ * cols_; }
  /// Between entries of a column, and of a row.
  Index down() const { return down_; }
  Index across() const { return across_; }
  const double* data() const { return data_; }

  const double& operator()(Index i, Index j) const { return data_[i * down_ + j * across_]; }
  /// Entry i of a column or a row.
  const double& operator[](Index i) const { return data_[i * step()]; }
  const double& operator()(Index i) const { return data_[i * step()]; }

  ConstView transpose() const { return {data_, cols_, rows_, across_, down_}; }
  ConstView block(Index i, Index j, Index rows, Index cols) const {
    assert(i >= 0 && j >= 0 && rows >= 0 && cols >= 0 && i + rows <= rows_ && j + cols <= cols_);
    return {data_ + i * down_ + j * across_, rows, cols, down_, across_};
  }
  ConstView row(Index i) const { return block(i, 0, 1, cols_); }
  ConstView col(Index j) const { return block(0, j, rows_, 1); }
  ConstView topRows(Index n) const { return block(0, 0, n, cols_); }
  ConstView middleRows(Index i, Index n) const { return block(i, 0, n, cols_); }
  ConstView bottomRows(Index n) const { return block(rows_ - n, 0, n, cols_); }
  ConstView leftCols(Index n) const { return block(0, 0, rows_, n); }
  ConstView rightCols(Index n) const { return block(0, cols_ - n, rows_, n); }
  ConstView topLeftCorner(Index r, Index c) const { return block(0, 0, r, c); }
  ConstView topRightCorner(Index r, Index c) const { return block(0, cols_ - c, r, c); }
  ConstView bottomLeftCorner(Index r, Index c) const { return block(rows_ - r, 0, r, c); }
  ConstView bottomRightCorner(Index r, Index c) const { return block(rows_ - r, cols_ - c, r, c); }
  ConstView diagonal() const { return {data_, rows_ < cols_ ? rows_ : cols_, 1, down_ + across_, 0}; }
  /// Entries i, ..., i + n - 1 of a column or a row.
  ConstView segment(Index i, Index n) const { return is_column() ? block(i, 0, n, 1) : block(0, i, 1, n); }
  ConstView head(Index n) const { return segment(0, n); }
  ConstView tail(Index n) const { return segment(size() - n, n); }

  bool allFinite() const;
  /// No entry is larger than `tolerance`.
  bool isZero(double tolerance = 1e-12) const;
  double sum() const;
  double trace() const;
  double squaredNorm() const;
  double norm() const;
  double dot(const ConstView& other) const;
  /// The largest magnitude, 0 of nothing.
  double max_abs() const;
  /// The sum of magnitudes.
  double sum_abs() const;
  /// The largest and the least entry, and where a column or row has it. Of nothing: -infinity, infinity.
  double maxCoeff(Index* where = nullptr) const;
  double minCoeff(Index* where = nullptr) const;

  Mat cwiseAbs() const;
  Mat cwiseInverse() const;
  Mat cwiseProduct(const ConstView& other) const;
  Mat cwiseQuotient(const ConstView& other) const;
  Mat cwiseMax(const ConstView& other) const;
  Mat cwiseMin(const ConstView& other) const;
  Mat cwiseMax(double bound) const;
  Mat cwiseMin(double bound) const;
  Mat normalized() const;
  /// Per row, and per column.
  Vec row_norms() const;
  Vec row_max_abs() const;
  Vec row_sums() const;
  Vec column_norms() const;
  Vec column_max_abs() const;
  /// These entries of a column; these rows; these columns.
  Vec entries_at(std::span<const Index> which) const;
  Vec entries_at(std::span<const int> which) const;
  Mat rows_at(std::span<const Index> which) const;
  Mat rows_at(std::span<const int> which) const;
  Mat columns_at(std::span<const Index> which) const;
  Mat columns_at(std::span<const int> which) const;
  /// These rows and these columns.
  Mat part(std::span<const Index> which) const;
  Mat part(std::span<const int> which) const;

  /// The diagonal matrix of a vector, for products.
  Diagonal asDiagonal() const;

 protected:
  bool is_column() const { return cols_ == 1; }
  Index step() const {
    assert(cols_ == 1 || rows_ == 1 || size() == 0);
    return cols_ == 1 ? down_ : across_;
  }

  double* data_;
  Index rows_, cols_, down_, across_;
};

/// Several values, in the order of rows: `z << x, 1;`
class Filling;

/// A view whose entries may be written. Copies look at the same memory; assignment writes into it.
class View : public ConstView {
 public:
  View(double* data, Index rows, Index cols, Index down, Index across) : ConstView(data, rows, cols, down, across) {}
  View(const View&) = default;
  View(Vec& all);
  View(Mat& all);
  View(const Vec&) = delete;
  View(const Mat&) = delete;

  View& operator=(const ConstView& other);
  View& operator=(const View& other) { return *this = static_cast<const ConstView&>(other); }

  using ConstView::data;
  double* data() { return data_; }
  using ConstView::operator();
  using ConstView::operator[];
  double& operator()(Index i, Index j) { return data_[i * down_ + j * across_]; }
  double& operator[](Index i) { return data_[i * step()]; }
  double& operator()(Index i) { return data_[i * step()]; }

  using ConstView::block;
  using ConstView::bottomLeftCorner;
  using ConstView::bottomRightCorner;
  using ConstView::bottomRows;
  using ConstView::col;
  using ConstView::diagonal;
  using ConstView::head;
  using ConstView::leftCols;
  using ConstView::middleRows;
  using ConstView::rightCols;
  using ConstView::row;
  using ConstView::segment;
  using ConstView::tail;
  using ConstView::topLeftCorner;
  using ConstView::topRightCorner;
  using ConstView::topRows;
  using ConstView::transpose;
  View transpose() { return View(constant().transpose()); }
  View block(Index i, Index j, Index rows, Index cols) { return View(constant().block(i, j, rows, cols)); }
  View row(Index i) { return View(constant().row(i)); }
  View col(Index j) { return View(constant().col(j)); }
  View topRows(Index n) { return View(constant().topRows(n)); }
  View middleRows(Index i, Index n) { return View(constant().middleRows(i, n)); }
  View bottomRows(Index n) { return View(constant().bottomRows(n)); }
  View leftCols(Index n) { return View(constant().leftCols(n)); }
  View rightCols(Index n) { return View(constant().rightCols(n)); }
  View topLeftCorner(Index r, Index c) { return View(constant().topLeftCorner(r, c)); }
  View topRightCorner(Index r, Index c) { return View(constant().topRightCorner(r, c)); }
  View bottomLeftCorner(Index r, Index c) { return View(constant().bottomLeftCorner(r, c)); }
  View bottomRightCorner(Index r, Index c) { return View(constant().bottomRightCorner(r, c)); }
  View diagonal() { return View(constant().diagonal()); }
  View segment(Index i, Index n) { return View(constant().segment(i, n)); }
  View head(Index n) { return View(constant().head(n)); }
  View tail(Index n) { return View(constant().tail(n)); }

  View& operator+=(const ConstView& other);
  View& operator-=(const ConstView& other);
  View& operator*=(double factor);
  View& operator/=(double divisor);
  void fill(double value);
  void setConstant(double value) { fill(value); }
  void setZero() { fill(0); }
  void setOnes() { fill(1); }
  void setIdentity();
  void normalize();
  /// Writes to these entries of a column.
  void set_entries_at(std::span<const Index> which, const ConstView& values);
  void set_entries_at(std::span<const int> which, const ConstView& values);
  /// Exchanges the entries of two views.
  void swap(View other);
  Filling operator<<(double value);
  Filling operator<<(const ConstView& values);

 private:
  explicit View(const ConstView& other) : ConstView(other) {}
  const ConstView& constant() const { return *this; }
};

class Filling {
 public:
  explicit Filling(View target) : target_(target) {}
  Filling& operator,(double value);
  Filling& operator,(const ConstView& values);
  Mat finished() const;

 private:
  View target_;
  Index row_ = 0, column_ = 0, height_ = 0;
};

/// The memory of a vector or matrix: a few entries lie in itself, so that small ones ask nobody for any.
class Memory {
 public:
  static constexpr Index few = 12;

  /// Memory for `size` entries, null for none; memory taken before is not given back.
  double* take(Index size) {
    if (size > few) return new double[static_cast<std::size_t>(size)];
    return size > 0 ? near_ : nullptr;
  }
  void give_back(double* data) const {
    if (data != near_) delete[] data;
  }
  /// Takes `size` entries at `data` over from `other`, which owns them no longer; returns where they are now.
  double* take_over(const Memory& other, double* data, Index size) {
    if (data != other.near_) return data;
    for (Index i = 0; i < size; ++i) near_[i] = data[i];
    return near_;
  }

 private:
  double near_[few];
};

/// A column that owns its memory, entries beside each other. Not initialised but by what is given.
class Vec : public View {
 public:
  Vec() : View(nullptr, 0, 1, 1, 0) {}
  explicit Vec(Index size) : View(nullptr, size, 1, 1, 0) { data_ = memory_.take(size); }
  Vec(const Vec& other) : Vec(other.constant()) {}
  Vec(Vec&& other) noexcept : Vec() { take_over(other); }
  Vec(const ConstView& column);
  Vec(Mat&& column);
  Vec(std::initializer_list<double> entries);
  ~Vec() { memory_.give_back(data_); }

  Vec& operator=(const Vec& other) { return *this = other.constant(); }
  Vec& operator=(Vec&& other) noexcept {
    if (this != &other) take_over(other);
    return *this;
  }
  Vec& operator=(const ConstView& column);
  Vec& operator=(Mat&& column);

  static Vec Zero(Index size) { return Constant(size, 0); }
  static Vec Ones(Index size) { return Constant(size, 1); }
  static Vec Constant(Index size, double value);
  /// 1 at one place, zeros elsewhere.
  static Vec Unit(Index size, Index place);
  /// Evenly spaced from first to last.
  static Vec LinSpaced(Index size, double first, double last);

  const double& operator[](Index i) const { return data_[i]; }
  const double& operator()(Index i) const { return data_[i]; }
  double& operator[](Index i) { return data_[i]; }
  double& operator()(Index i) { return data_[i]; }
  double* begin() { return data_; }
  double* end() { return data_ + rows_; }
  const double* begin() const { return data_; }
  const double* end() const { return data_ + rows_; }

  /// Loses what was in it, unless the size is the same.
  void resize(Index size) {
    if (size != rows_) allocate(size);
  }
  /// Keeps the first entries.
  void conservativeResize(Index size);
  using View::setConstant;
  using View::setOnes;
  using View::setZero;
  void setZero(Index size) { resize(size), fill(0); }
  void setOnes(Index size) { resize(size), fill(1); }
  void setConstant(Index size, double value) { resize(size), fill(value); }
  using View::swap;
  void swap(Vec& other) noexcept { std::swap(*this, other); }

 private:
  friend class Mat;
  const ConstView& constant() const { return *this; }
  void allocate(Index size);
  /// The other one is empty behind it.
  void take_over(Vec& other) noexcept {
    memory_.give_back(data_);
    data_ = memory_.take_over(other.memory_, other.data_, other.rows_);
    rows_ = std::exchange(other.rows_, 0);
    other.data_ = nullptr;
  }

  Memory memory_;
};

/// A matrix that owns its memory, column behind column. Not initialised but by what is given.
class Mat : public View {
 public:
  Mat() : View(nullptr, 0, 0, 1, 0) {}
  Mat(Index rows, Index cols) : View(nullptr, rows, cols, 1, rows) { data_ = memory_.take(rows * cols); }
  Mat(const Mat& other) : Mat(other.constant()) {}
  Mat(Mat&& other) noexcept : Mat() { take_over(other); }
  Mat(const ConstView& other);
  Mat(Vec&& column) noexcept;
  ~Mat() { memory_.give_back(data_); }

  Mat& operator=(const Mat& other) { return *this = other.constant(); }
  Mat& operator=(Mat&& other) noexcept {
    if (this != &other) take_over(other);
    return *this;
  }
  Mat& operator=(const ConstView& other);

  static Mat Zero(Index rows, Index cols) { return Constant(rows, cols, 0); }
  static Mat Ones(Index rows, Index cols) { return Constant(rows, cols, 1); }
  static Mat Constant(Index rows, Index cols, double value);
  static Mat Identity(Index rows, Index cols);

  const double& operator()(Index i, Index j) const { return data_[i + j * across_]; }
  double& operator()(Index i, Index j) { return data_[i + j * across_]; }
  /// Entry i in the order of columns.
  const double& operator[](Index i) const { return data_[i]; }
  const double& operator()(Index i) const { return data_[i]; }
  double& operator[](Index i) { return data_[i]; }
  double& operator()(Index i) { return data_[i]; }

  /// Loses what was in it, unless both are the same.
  void resize(Index rows, Index cols) {
    if (rows != rows_ || cols != cols_) allocate(rows, cols);
  }
  /// Keeps the upper left part.
  void conservativeResize(Index rows, Index cols);
  using View::setConstant;
  using View::setIdentity;
  using View::setZero;
  void setZero(Index rows, Index cols) { resize(rows, cols), fill(0); }
  void setConstant(Index rows, Index cols, double value) { resize(rows, cols), fill(value); }
  void setIdentity(Index rows, Index cols) { resize(rows, cols), View::setIdentity(); }
  using View::swap;
  void swap(Mat& other) noexcept { std::swap(*this, other); }

 private:
  friend class Vec;
  const ConstView& constant() const { return *this; }
  void allocate(Index rows, Index cols);
  /// The other one is empty behind it.
  void take_over(Mat& other) noexcept {
    memory_.give_back(data_);
    data_ = memory_.take_over(other.memory_, other.data_, other.size());
    rows_ = std::exchange(other.rows_, 0);
    cols_ = std::exchange(other.cols_, 0);
    across_ = std::exchange(other.across_, 0);
    other.data_ = nullptr;
  }

  Memory memory_;
};

inline View::View(Vec& all) : View(all.data_, all.rows_, 1, 1, 0) {}
inline View::View(Mat& all) : View(all.data_, all.rows_, all.cols_, 1, all.across_) {}

/// A column that lies in memory of others.
inline ConstView column_at(const double* data, Index size) { return {data, size, 1, 1, 0}; }
inline View column_at(double* data, Index size) { return {data, size, 1, 1, 0}; }
inline ConstView column_of(std::span<const double> x) { return column_at(x.data(), static_cast<Index>(x.size())); }

Mat operator-(const ConstView& a);
Mat operator+(const ConstView& a, const ConstView& b);
Mat operator-(const ConstView& a, const ConstView& b);
Mat operator*(double factor, const ConstView& a);
Mat operator*(const ConstView& a, double factor);
Mat operator/(const ConstView& a, double divisor);
Mat operator*(const ConstView& a, const ConstView& b);

// Operators that reuse the memory of a temporary operand.
Mat operator-(Mat&& a);
Mat operator+(Mat&& a, const ConstView& b);
Mat operator+(const ConstView& a, Mat&& b);
Mat operator+(Mat&& a, Mat&& b);
Mat operator-(Mat&& a, const ConstView& b);
Mat operator-(const ConstView& a, Mat&& b);
Mat operator-(Mat&& a, Mat&& b);
Mat operator*(double factor, Mat&& a);
Mat operator*(Mat&& a, double factor);
Mat operator/(Mat&& a, double divisor);

bool operator==(const ConstView& a, const ConstView& b);

/// target += factor * a * b, without memory of its own.
void add_product(View target, const ConstView& a, const ConstView& b, double factor = 1);

class Diagonal {
 public:
  explicit Diagonal(const ConstView& entries) : entries_(entries) {}
  const ConstView& entries() const { return entries_; }
  operator Mat() const;

 private:
  ConstView entries_;
};

Mat operator*(const Diagonal& d, const ConstView& a);
Mat operator*(const ConstView& a, const Diagonal& d);
inline Diagonal ConstView::asDiagonal() const { return Diagonal(*this); }

}  // namespace saltus
