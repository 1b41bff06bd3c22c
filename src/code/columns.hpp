// Series side by side: a row per order, a column per series. What is done to all of them alike is done in registers,
// with the same bits in those of two numbers and of four.
//
//   x_{k+1} = (W x_k + [k = 0] constant + [k = 1] time) / (k + 1)        W: a few diagonals
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace saltus {

/// A series among others.
struct ColumnSeries {
  const double* first = nullptr;
  size_t stride = 0;
  double operator[](size_t order) const { return first[order * stride]; }
};

/// Where series stand. Before, between and behind the rows are places that hold zeros, or columns that do not count.
struct Columns {
  static constexpr size_t margin = 4;
  double* first = nullptr;
  size_t count = 0;   ///< of series
  size_t stride = 0;  ///< from one order to the next
  size_t terms = 0;   ///< of each

  /// Columns with those that fill the last register.
  static size_t padded(size_t count) { return (count + margin - 1) / margin * margin; }
  /// Numbers that so many series take.
  static size_t size(size_t count, size_t terms) { return (padded(count) + margin) * terms + 2 * margin; }
  double* row(size_t order) const { return first + order * stride; }
  ColumnSeries operator[](size_t k) const { return {first + k, stride}; }
  /// A series that ends with these terms.
  void set(size_t k, std::span<const double> series) const {
    for (size_t order = 0; order < terms; ++order) row(order)[k] = order < series.size() ? series[order] : 0.0;
  }
};

/// Memory for the series of many groups, which come and go.
class ColumnStore {
 public:
  /// All that is there is given up.
  void begin(size_t terms);
  size_t terms() const { return terms_; }
  Columns take(size_t count);
  void give_back(Columns& columns);

 private:
  static constexpr size_t chunk = 1 << 16;
  size_t terms_ = 0;
  std::vector<std::vector<double>> chunks_;
  size_t left_ = 0;                           // in the last chunk
  std::vector<std::vector<double*>> unused_;  // by the number of registers of a row
};

/// The rates of some states as weighted sums of these states.
struct Band {
  static constexpr int reach = static_cast<int>(Columns::margin);  ///< the furthest diagonal
  static constexpr int most = 2 * reach + 1;
  size_t count = 0, padded = 0;            ///< states
  std::vector<double> constant{}, time{};  ///< padded
  int diagonals = 0;                       ///< that are there
  std::array<int, most> offsets{};         ///< theirs

  /// No diagonals; constants are to be set.
  void begin(size_t states);
  /// Adds to the weight of state k + offset in the rate of state k; |offset| <= reach.
  void add(size_t k, int offset, double weight) {
    const unsigned number = static_cast<unsigned>(offset + reach);
    if ((used_ >> number & 1u) == 0) begin_diagonal(offset);
    weights_[number * padded + k] += weight;
  }
  /// Padded.
  const double* weights(int offset) const { return weights_.data() + static_cast<size_t>(offset + reach) * padded; }

 private:
  void begin_diagonal(int offset);
  unsigned used_ = 0;
  std::vector<double> weights_{};
};

/// The series of states that stand in the first row, and what the next term of their rates would be.
void expand(const Band& band, const Columns& columns, std::vector<double>& next);
/// All series at tau. `out`: padded.
void evaluate(const Columns& columns, double tau, double* out);
double evaluate(const ColumnSeries& column, size_t terms, double tau);

/// A bound from below of |x| on [0, h], rounding included, of all series; not above zero where x may vanish. Five terms
/// at least. `out`: padded.
void find_clearance(const Columns& columns, double h, double* out);
/// sum of k |c_k| h^(k-1): a bound of |x'| on [0, h].
double bound_rate(const ColumnSeries& column, size_t terms, double h);

/// The largest of the last two terms, in units of a scale.
struct LastTerms {
  double last = 0, previous = 0;
};
/// scale = max(|c_0|, |c_1| reach, |c_2| reach^2, least) of each series, and the last terms. `least`, `scale`: padded.
LastTerms judge_last(const Columns& columns, double reach, const double* least, double* scale);

}  // namespace saltus
