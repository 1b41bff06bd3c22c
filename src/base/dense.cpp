#include "base/dense.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>

namespace saltus {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// The entries of a view in one line, if they lie in one.
struct Strided {
  const double* data;
  Index size, step;
};

bool is_strided(const ConstView& a) {
  return a.cols() == 1 || a.rows() == 1 || a.size() == 0 || (a.down() == 1 && a.across() == a.rows());
}

Strided strided(const ConstView& a) {
  if (a.cols() == 1) return {a.data(), a.rows(), a.down()};
  if (a.rows() == 1) return {a.data(), a.cols(), a.across()};
  return {a.data(), a.size(), 1};
}

/// f(entry of a) for all of them, column by column.
template <class F>
void each(const ConstView& a, const F& f) {
  if (is_strided(a)) {
    const Strided x = strided(a);
    if (x.step == 1) {
      for (Index i = 0; i < x.size; ++i) f(x.data[i]);
    } else {
      for (Index i = 0; i < x.size; ++i) f(x.data[i * x.step]);
    }
    return;
  }
  for (Index j = 0; j < a.cols(); ++j)
    for (Index i = 0; i < a.rows(); ++i) f(a(i, j));
}

/// f(entry of a, entry of b), a to be written to. A row may stand for a column.
template <class F>
void each(View a, const ConstView& b, const F& f) {
  assert(a.size() == b.size());
  if (is_strided(a) && is_strided(b)) {
    const Strided from = strided(b), to = strided(a);
    double* const x = a.data();
    const double* const y = from.data;
    if (to.step == 1 && from.step == 1) {
      for (Index i = 0; i < to.size; ++i) f(x[i], y[i]);
    } else {
      for (Index i = 0; i < to.size; ++i) f(x[i * to.step], y[i * from.step]);
    }
    return;
  }
  assert(a.rows() == b.rows());
  for (Index j = 0; j < a.cols(); ++j) {
    double* const x = a.data() + j * a.across();
    const double* const y = b.data() + j * b.across();
    if (a.down() == 1 && b.down() == 1) {
      for (Index i = 0; i < a.rows(); ++i) f(x[i], y[i]);
    } else {
      for (Index i = 0; i < a.rows(); ++i) f(x[i * a.down()], y[i * b.down()]);
    }
  }
}

void copy(View to, const ConstView& from) {
  each(to, from, [](double& x, double y) { x = y; });
}

/// A new matrix of f(entry).
template <class F>
Mat mapped(const ConstView& a, const F& f) {
  Mat out(a.rows(), a.cols());
  each(out, a, [&](double& x, double y) { x = f(y); });
  return out;
}

/// A new matrix of f(entry of a, entry of b).
template <class F>
Mat combined(const ConstView& a, const ConstView& b, const F& f) {
  Mat out = a;
  each(out, b, [&](double& x, double y) { x = f(x, y); });
  return out;
}

/// term(0) + ... + term(n - 1) in four sums that do not wait for each other.
template <class Term>
double add_up(Index n, const Term& term) {
  if (n == 0) return 0;
  if (n == 1) return term(0);
  double even = term(0), odd = term(1);
  const Index pairs = n / 2 * 2, fours = n / 4 * 4;
  if (pairs > 2) {
    double even_too = term(2), odd_too = term(3);
    for (Index i = 4; i < fours; i += 4) {
      even += term(i), odd += term(i + 1);
      even_too += term(i + 2), odd_too += term(i + 3);
    }
    even += even_too, odd += odd_too;
    if (pairs > fours) even += term(fours), odd += term(fours + 1);
  }
  return n > pairs ? even + odd + term(n - 1) : even + odd;
}

template <class F>
double add_up(const ConstView& a, const F& f) {
  if (is_strided(a)) {
    const Strided x = strided(a);
    if (x.step == 1) return add_up(x.size, [&](Index i) { return f(x.data[i]); });
  }
  double sum = 0;
  each(a, [&](double x) { sum += f(x); });
  return sum;
}

/// The first entry in order that no other beats, and its value.
template <class Beats>
double best_of(const ConstView& a, double worst, const Beats& beats, Index* where) {
  double best = worst;
  Index place = 0, at = 0;
  each(a, [&](double x) {
    if (at == 0 || beats(x, best)) best = x, place = at;
    ++at;
  });
  if (where) *where = place;
  return best;
}

/// The rows that products are made of at a time: they stay close to the processor while all columns pass.
constexpr Index strip = 64;

/// sum[i] = a(i, 0) x[0] + ... for the rows of a strip, whose columns lie `across` apart and entries beside each other.
void strip_product(double* sum, const double* a, Index rows, Index cols, Index across, const double* x, Index step) {
  std::fill(sum, sum + rows, 0.0);
  Index k = 0;
  for (; k + 4 <= cols; k += 4) {
    const double *a0 = a + k * across, *a1 = a0 + across, *a2 = a1 + across, *a3 = a2 + across;
    const double x0 = x[k * step], x1 = x[(k + 1) * step], x2 = x[(k + 2) * step], x3 = x[(k + 3) * step];
    for (Index i = 0; i < rows; ++i) sum[i] = sum[i] + a0[i] * x0 + a1[i] * x1 + a2[i] * x2 + a3[i] * x3;
  }
  for (; k < cols; ++k) {
    const double* const a0 = a + k * across;
    const double x0 = x[k * step];
    for (Index i = 0; i < rows; ++i) sum[i] += a0[i] * x0;
  }
}

/// a.x of two lines.
double strided_product(const double* a, Index a_step, const double* x, Index x_step, Index n) {
  double even = 0, odd = 0;
  const Index pairs = n / 2 * 2;
  if (a_step == 1 && x_step == 1) {
    for (Index k = 0; k < pairs; k += 2) even += a[k] * x[k], odd += a[k + 1] * x[k + 1];
  } else {
    for (Index k = 0; k < pairs; k += 2) {
      even += a[k * a_step] * x[k * x_step];
      odd += a[(k + 1) * a_step] * x[(k + 1) * x_step];
    }
  }
  return n > pairs ? even + odd + a[pairs * a_step] * x[pairs * x_step] : even + odd;
}

/// put(target entry, entry of a b) for all of them.
template <class Put>
void multiply(View target, const ConstView& a, const ConstView& b, const Put& put) {
  assert(a.cols() == b.rows() && target.rows() == a.rows() && target.cols() == b.cols());
  if (target.size() == 0) return;
  if (a.rows() == 1 && b.cols() != 1) return multiply(target.transpose(), b.transpose(), a.transpose(), put);
  if (a.down() == 1 || a.rows() == 1) {
    std::array<double, strip> sum;
    for (Index begin = 0; begin < a.rows(); begin += strip) {
      const Index rows = std::min(strip, a.rows() - begin);
      for (Index j = 0; j < b.cols(); ++j) {
        strip_product(sum.data(), a.data() + begin, rows, a.cols(), a.across(), b.data() + j * b.across(), b.down());
        for (Index i = 0; i < rows; ++i) put(target(begin + i, j), sum[static_cast<size_t>(i)]);
      }
    }
    return;
  }
  if (b.cols() > 1) return multiply(target, Mat(a), b, put);
  for (Index i = 0; i < a.rows(); ++i)
    put(target(i, 0), strided_product(a.data() + i * a.down(), a.across(), b.data(), b.down(), a.cols()));
}

template <class Number>
Mat rows_of(const ConstView& a, std::span<const Number> which) {
  Mat out(static_cast<Index>(which.size()), a.cols());
  for (Index j = 0; j < a.cols(); ++j)
    for (Index i = 0; i < out.rows(); ++i) out(i, j) = a(which[static_cast<size_t>(i)], j);
  return out;
}

template <class Number>
Mat columns_of(const ConstView& a, std::span<const Number> which) {
  Mat out(a.rows(), static_cast<Index>(which.size()));
  for (Index j = 0; j < out.cols(); ++j) out.col(j) = a.col(which[static_cast<size_t>(j)]);
  return out;
}

template <class Number>
void set_entries(View x, std::span<const Number> which, const ConstView& values) {
  for (size_t k = 0; k < which.size(); ++k) x[which[k]] = values[static_cast<Index>(k)];
}

template <class F>
Vec per_row(const ConstView& a, const F& f) {
  Vec out(a.rows());
  for (Index i = 0; i < a.rows(); ++i) out[i] = f(a.row(i));
  return out;
}

template <class F>
Vec per_column(const ConstView& a, const F& f) {
  Vec out(a.cols());
  for (Index j = 0; j < a.cols(); ++j) out[j] = f(a.col(j));
  return out;
}

}  // namespace

// ---- what is read
// ----------------------------------------------------------------------------------------------------

bool ConstView::allFinite() const {
  bool out = true;
  each(*this, [&](double x) { out &= std::abs(x) < infinite; });
  return out;
}

bool ConstView::isZero(double tolerance) const {
  bool out = true;
  each(*this, [&](double x) { out &= std::abs(x) <= tolerance; });
  return out;
}

double ConstView::sum() const {
  return add_up(*this, [](double x) { return x; });
}

double ConstView::trace() const { return diagonal().sum(); }

double ConstView::squaredNorm() const {
  return add_up(*this, [](double x) { return x * x; });
}

double ConstView::norm() const { return std::sqrt(squaredNorm()); }

double ConstView::dot(const ConstView& other) const {
  assert(size() == other.size());
  const Strided a = strided(*this), b = strided(other);
  if (a.step == 1 && b.step == 1) return add_up(a.size, [&](Index i) { return a.data[i] * b.data[i]; });
  double sum = 0;
  for (Index i = 0; i < a.size; ++i) sum += a.data[i * a.step] * b.data[i * b.step];
  return sum;
}

double ConstView::max_abs() const {
  double out = 0;
  Index at = 0;
  each(*this, [&](double x) {
    if (const double size = std::abs(x); at++ == 0 || size > out) out = size;
  });
  return out;
}

double ConstView::sum_abs() const {
  return add_up(*this, [](double x) { return std::abs(x); });
}

double ConstView::maxCoeff(Index* where) const {
  return best_of(
      *this, -infinite, [](double x, double best) { return x > best; }, where);
}

double ConstView::minCoeff(Index* where) const {
  return best_of(
      *this, infinite, [](double x, double best) { return x < best; }, where);
}

Mat ConstView::cwiseAbs() const {
  return mapped(*this, [](double x) { return std::abs(x); });
}

Mat ConstView::cwiseInverse() const {
  return mapped(*this, [](double x) { return 1 / x; });
}

Mat ConstView::cwiseProduct(const ConstView& other) const {
  return combined(*this, other, [](double x, double y) { return x * y; });
}

Mat ConstView::cwiseQuotient(const ConstView& other) const {
  return combined(*this, other, [](double x, double y) { return x / y; });
}

Mat ConstView::cwiseMax(const ConstView& other) const {
  return combined(*this, other, [](double x, double y) { return x < y ? y : x; });
}

Mat ConstView::cwiseMin(const ConstView& other) const {
  return combined(*this, other, [](double x, double y) { return y < x ? y : x; });
}

Mat ConstView::cwiseMax(double bound) const {
  return mapped(*this, [&](double x) { return x < bound ? bound : x; });
}

Mat ConstView::cwiseMin(double bound) const {
  return mapped(*this, [&](double x) { return bound < x ? bound : x; });
}

Mat ConstView::normalized() const {
  Mat out = *this;
  out.normalize();
  return out;
}

Vec ConstView::row_norms() const {
  return per_row(*this, [](const ConstView& x) { return x.norm(); });
}

Vec ConstView::row_max_abs() const {
  return per_row(*this, [](const ConstView& x) { return x.max_abs(); });
}

Vec ConstView::row_sums() const {
  return per_row(*this, [](const ConstView& x) { return x.sum(); });
}

Vec ConstView::column_norms() const {
  return per_column(*this, [](const ConstView& x) { return x.norm(); });
}

Vec ConstView::column_max_abs() const {
  return per_column(*this, [](const ConstView& x) { return x.max_abs(); });
}

Vec ConstView::entries_at(std::span<const Index> which) const { return Vec(rows_at(which)); }
Vec ConstView::entries_at(std::span<const int> which) const { return Vec(rows_at(which)); }
Mat ConstView::rows_at(std::span<const Index> which) const { return rows_of(*this, which); }
Mat ConstView::rows_at(std::span<const int> which) const { return rows_of(*this, which); }
Mat ConstView::columns_at(std::span<const Index> which) const { return columns_of(*this, which); }
Mat ConstView::columns_at(std::span<const int> which) const { return columns_of(*this, which); }
Mat ConstView::part(std::span<const Index> which) const { return rows_at(which).columns_at(which); }
Mat ConstView::part(std::span<const int> which) const { return rows_at(which).columns_at(which); }

bool operator==(const ConstView& a, const ConstView& b) {
  if (a.rows() != b.rows() || a.cols() != b.cols()) return false;
  for (Index j = 0; j < a.cols(); ++j)
    for (Index i = 0; i < a.rows(); ++i)
      if (a(i, j) != b(i, j)) return false;
  return true;
}

// ---- what is written to
// ----------------------------------------------------------------------------------------------

View& View::operator=(const ConstView& other) {
  copy(*this, other);
  return *this;
}

View& View::operator+=(const ConstView& other) {
  each(*this, other, [](double& x, double y) { x += y; });
  return *this;
}

View& View::operator-=(const ConstView& other) {
  each(*this, other, [](double& x, double y) { x -= y; });
  return *this;
}

View& View::operator*=(double factor) {
  each(*this, *this, [&](double& x, double) { x *= factor; });
  return *this;
}

View& View::operator/=(double divisor) {
  each(*this, *this, [&](double& x, double) { x /= divisor; });
  return *this;
}

void View::fill(double value) {
  for (Index j = 0; j < cols_; ++j)
    for (Index i = 0; i < rows_; ++i) data_[i * down_ + j * across_] = value;
}

void View::setIdentity() {
  fill(0);
  diagonal().fill(1);
}

void View::normalize() {
  if (const double size = norm(); size > 0) *this /= size;
}

void View::set_entries_at(std::span<const Index> which, const ConstView& values) { set_entries(*this, which, values); }
void View::set_entries_at(std::span<const int> which, const ConstView& values) { set_entries(*this, which, values); }

void View::swap(View other) {
  const Mat mine = *this;
  *this = other;
  other = mine;
}

Filling View::operator<<(double value) {
  Filling out(*this);
  out, value;
  return out;
}

Filling View::operator<<(const ConstView& values) {
  Filling out(*this);
  out, values;
  return out;
}

Filling &Filling::operator,(double value) { return *this, ConstView(&value, 1, 1, 1, 1); }

Filling &Filling::operator,(const ConstView&values) {
  if (values.size() == 0) return *this;
  if (column_ == target_.cols()) row_ += height_, column_ = 0;
  height_ = values.rows();
  target_.block(row_, column_, values.rows(), values.cols()) = values;
  column_ += values.cols();
  return *this;
}

Mat Filling::finished() const { return target_; }

// ---- what owns its memory
// --------------------------------------------------------------------------------------------

void Vec::allocate(Index size) {
  double* const taken = memory_.take(size);
  memory_.give_back(data_);
  data_ = taken, rows_ = size;
}

Vec::Vec(const ConstView& column) : Vec(column.size()) {
  assert(column.size() == 0 || column.cols() == 1 || column.rows() == 1);
  copy(*this, column);
}

Vec::Vec(Mat&& column) : Vec() { *this = std::move(column); }

Vec::Vec(std::initializer_list<double> entries) : Vec(static_cast<Index>(entries.size())) {
  std::copy(entries.begin(), entries.end(), data_);
}

Vec& Vec::operator=(const ConstView& column) {
  assert(column.size() == 0 || column.cols() == 1 || column.rows() == 1);
  if (column.size() == rows_) {
    copy(*this, column);
  } else {
    Vec other(column);
    swap(other);
  }
  return *this;
}

Vec& Vec::operator=(Mat&& column) {
  assert(column.size() == 0 || column.cols() == 1 || column.rows() == 1);
  memory_.give_back(data_);
  rows_ = column.size();
  data_ = memory_.take_over(column.memory_, column.data_, rows_);
  column.data_ = nullptr, column.rows_ = column.cols_ = column.across_ = 0;
  return *this;
}

void Vec::conservativeResize(Index size) {
  if (size == rows_) return;
  Vec other(size);
  const Index kept = std::min(size, rows_);
  other.head(kept) = head(kept);
  swap(other);
}

Vec Vec::Constant(Index size, double value) {
  Vec out(size);
  out.fill(value);
  return out;
}

Vec Vec::Unit(Index size, Index place) {
  Vec out = Zero(size);
  out[place] = 1;
  return out;
}

Vec Vec::LinSpaced(Index size, double first, double last) {
  Vec out(size);
  for (Index i = 0; i < size; ++i)
    out[i] = i + 1 < size ? first + static_cast<double>(i) * ((last - first) / static_cast<double>(size - 1)) : last;
  return out;
}

void Mat::allocate(Index rows, Index cols) {
  if (rows * cols != size()) {
    double* const taken = memory_.take(rows * cols);
    memory_.give_back(data_);
    data_ = taken;
  }
  rows_ = rows, cols_ = cols, across_ = rows;
}

Mat::Mat(const ConstView& other) : Mat(other.rows(), other.cols()) { copy(*this, other); }

Mat::Mat(Vec&& column) noexcept : View(nullptr, column.rows_, 1, 1, column.rows_) {
  data_ = memory_.take_over(column.memory_, column.data_, rows_);
  column.data_ = nullptr, column.rows_ = 0;
}

Mat& Mat::operator=(const ConstView& other) {
  if (other.rows() == rows_ && other.cols() == cols_) {
    if (other.data() != data_ || other.down() == 1) return View::operator=(other), *this;
  }
  Mat made(other);
  swap(made);
  return *this;
}

void Mat::conservativeResize(Index rows, Index cols) {
  if (rows == rows_ && cols == cols_) return;
  Mat other(rows, cols);
  const Index r = std::min(rows, rows_), c = std::min(cols, cols_);
  other.block(0, 0, r, c) = block(0, 0, r, c);
  swap(other);
}

Mat Mat::Constant(Index rows, Index cols, double value) {
  Mat out(rows, cols);
  out.fill(value);
  return out;
}

Mat Mat::Identity(Index rows, Index cols) {
  Mat out(rows, cols);
  out.View::setIdentity();
  return out;
}

// ---- arithmetic
// ------------------------------------------------------------------------------------------------------

Mat operator-(const ConstView& a) {
  return mapped(a, [](double x) { return -x; });
}

Mat operator+(const ConstView& a, const ConstView& b) {
  return combined(a, b, [](double x, double y) { return x + y; });
}

Mat operator-(const ConstView& a, const ConstView& b) {
  return combined(a, b, [](double x, double y) { return x - y; });
}

Mat operator*(double factor, const ConstView& a) {
  return mapped(a, [&](double x) { return factor * x; });
}

Mat operator*(const ConstView& a, double factor) { return factor * a; }

Mat operator/(const ConstView& a, double divisor) {
  return mapped(a, [&](double x) { return x / divisor; });
}

Mat operator*(const ConstView& a, const ConstView& b) {
  Mat out(a.rows(), b.cols());
  multiply(out, a, b, [](double& x, double y) { x = y; });
  return out;
}

Mat operator-(Mat&& a) { return -1.0 * std::move(a); }

Mat operator+(Mat&& a, const ConstView& b) {
  a += b;
  return std::move(a);
}

Mat operator+(const ConstView& a, Mat&& b) {
  b += a;
  return std::move(b);
}

Mat operator+(Mat&& a, Mat&& b) {
  a += b;
  return std::move(a);
}

Mat operator-(Mat&& a, const ConstView& b) {
  a -= b;
  return std::move(a);
}

Mat operator-(const ConstView& a, Mat&& b) {
  each(b, a, [](double& x, double y) { x = y - x; });
  return std::move(b);
}

Mat operator-(Mat&& a, Mat&& b) {
  a -= b;
  return std::move(a);
}

Mat operator*(double factor, Mat&& a) {
  a *= factor;
  return std::move(a);
}

Mat operator*(Mat&& a, double factor) {
  a *= factor;
  return std::move(a);
}

Mat operator/(Mat&& a, double divisor) {
  a /= divisor;
  return std::move(a);
}

void add_product(View target, const ConstView& a, const ConstView& b, double factor) {
  multiply(target, a, b, [&](double& x, double y) { x += factor * y; });
}

Diagonal::operator Mat() const {
  Mat out = Mat::Zero(entries_.size(), entries_.size());
  out.diagonal() = entries_;
  return out;
}

Mat operator*(const Diagonal& d, const ConstView& a) {
  Mat out = a;
  for (Index j = 0; j < out.cols(); ++j)
    for (Index i = 0; i < out.rows(); ++i) out(i, j) *= d.entries()[i];
  return out;
}

Mat operator*(const ConstView& a, const Diagonal& d) {
  Mat out = a;
  for (Index j = 0; j < out.cols(); ++j) out.col(j) *= d.entries()[j];
  return out;
}

}  // namespace saltus
