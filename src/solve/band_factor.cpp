#include "solve/band_factor.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "base/numbers.hpp"
#include "base/simd.hpp"

namespace saltus {
namespace {

using Pair = simd::Two;

}  // namespace

bool BandFactor::take(const SparseMat& M, int widest) {
  const int* const starts = M.starts().data();
  const int* const places = M.places().data();
  const double* const values = M.values().data();
  const int n = static_cast<int>(M.rows());
  int below = 0, above = 0;
  for (int j = 0; j < n; ++j) {
    if (starts[j] == starts[j + 1]) continue;  // places of a column rise
    above = std::max(above, j - places[starts[j]]);
    below = std::max(below, places[starts[j + 1] - 1] - j);
  }
  factored_ = false;
  if (below > widest || above > widest) return false;
  n_ = n, lower_ = below, upper_ = above;
  width_ = (lower_ + upper_ + 2) / 2 * 2;
  rows_.assign(at(n_ * width_), 0.0);
  for (int j = 0; j < n; ++j) {
    for (int e = starts[j]; e < starts[j + 1]; ++e) rows_[at(places[e] * (width_ - 1) + j + lower_)] = values[e];
  }
  // The rest is written by the first elimination.
  row_size_.resize(at(n_));
  inverse_.resize(at(n_));
  swap_.resize(at(n_));
  U_.resize(at(n_ * width_));
  L_.resize(at(n_ * lower_));
  window_.resize(at((lower_ + 1) * width_));
  kept_.resize(at((n_ / stride + 1) * lower_ * width_));
  mask_.assign(at(n_ + 2 * width_), 0.0);
  return true;
}

std::vector<std::pair<int, int>> BandFactor::changed_steps(const std::vector<char>& free) const {
  std::vector<std::pair<int, int>> out;
  for (int i = 0; i < n_; ++i) {
    if (free[at(i)] == free_[at(i)]) continue;
    // its row and its column; row r comes in at step r - lower
    const int first = std::max(0, i - upper_ - lower_), last = std::min(n_, i + 1);
    if (!out.empty() && first <= out.back().second)
      out.back().second = last;
    else
      out.emplace_back(first, last);
  }
  return out;
}

bool BandFactor::factor(const std::vector<char>& free, double shift) {
  using Steps = std::vector<std::pair<int, int>>;
  const Steps changed = factored_ && shift == shift_ ? changed_steps(free) : Steps{{0, n_}};
  free_ = free;
  shift_ = shift;
  for (int i = 0; i < n_; ++i) mask_[at(i + lower_)] = free_[at(i)] ? 1.0 : 0.0;
  const size_t under_way = at(lower_ * width_);
  bool running = false;  // the window is that of the step
  auto next = changed.begin();
  for (int step = 0; step < n_; step += stride) {
    const int last = std::min(n_, step + stride);
    while (next != changed.end() && next->second <= step) ++next;
    const bool touched = next != changed.end() && next->first < last;
    double* const kept = kept_.data() + at(step / stride) * under_way;
    if (running && !std::equal(kept, kept + under_way, window_.data())) {
      std::copy_n(window_.data(), under_way, kept);
    } else if (!touched) {
      running = false;
      continue;
    } else if (step == 0) {
      start_window();
      std::copy_n(window_.data(), under_way, kept);
    } else if (!running) {
      std::copy_n(kept, under_way, window_.data());
    }
    by_width([&]<int W>() { eliminate<W>(step, last); });
    running = true;
  }
  return factored_ = regular();
}

bool BandFactor::regular() {
  largest_ = 0;
  for (const double size : row_size_) largest_ = std::max(largest_, size);
  const double least = 8 * eps * largest_;
  bool out = true;
  for (int i = 0; i < n_; ++i) out = out && (std::abs(U_[at(i * width_)]) > least || !free_[at(i)]);
  return out;
}

int BandFactor::sign() const {
  int sign = 1;
  for (int k = 0; k < n_; ++k) {
    if ((U_[at(k * width_)] < 0) != (swap_[at(k)] != 0)) sign = -sign;
  }
  return sign;
}

/// A row as it is before elimination, from the column lower before its own.
void BandFactor::load(int row, double* out) {
  if (row >= n_ || !free_[at(row)]) {
    std::fill_n(out, width_, 0.0);
    if (row >= n_) return;
    row_size_[at(row)] = 0;
    out[lower_] = 1;
    return;
  }
  const double* const values = rows_.data() + at(row * width_);
  const double* const mask = mask_.data() + row;
  Pair largest{};
  for (int c = 0; c < width_; c += 2) {
    const Pair entry = Pair{values[c], values[c + 1]} * Pair{mask[c], mask[c + 1]}, size = entry < 0 ? -entry : entry;
    largest = largest < size ? size : largest;
    out[c] = entry[0];
    out[c + 1] = entry[1];
  }
  row_size_[at(row)] = std::max(largest[0], largest[1]);
  out[lower_] += shift_;
}

/// The rows before the first step.
void BandFactor::start_window() {
  std::vector<double> row(at(width_));
  for (int i = 0; i < lower_; ++i) {
    load(i, row.data());
    double* const out = window_.data() + at(i * width_);
    std::fill_n(out, width_, 0.0);
    std::copy(row.begin() + lower_ - i, row.end(), out);
  }
}

template <class F>
void BandFactor::by_width(const F& f) const {
  switch (width_) {
    case 4: return f.template operator()<4>();
    case 6: return f.template operator()<6>();
    case 8: return f.template operator()<8>();
    case 10: return f.template operator()<10>();
    case 12: return f.template operator()<12>();
    case 14: return f.template operator()<14>();
    case 16: return f.template operator()<16>();
    case 18: return f.template operator()<18>();
    case 20: return f.template operator()<20>();
    default: return f.template operator()<0>();
  }
}

template <int W>
void BandFactor::eliminate(int first, int last) {
  const int width = W > 0 ? W : width_, lower = lower_;
  double* const window = window_.data();
  for (int k = first; k < last; ++k) {
    load(k + lower, window + at(lower * width));
    int p = 0;
    for (int i = 1; i <= lower; ++i)
      if (std::abs(window[i * width]) > std::abs(window[p * width])) p = i;
    double* const __restrict pivots = U_.data() + at(k * width);
    std::copy_n(window + p * width, width, pivots);
    if (p != 0) std::copy_n(window, width, window + p * width);
    swap_[at(k)] = p;
    const double unit = inverse_[at(k)] = 1 / pivots[0];
    for (int i = 1; i <= lower; ++i) {
      const double* const __restrict row = window + i * width;
      double* const __restrict out = window + (i - 1) * width;
      const double m = L_[at(k * lower + i - 1)] = row[0] * unit;
      for (int j = 1; j < width; ++j) out[j - 1] = row[j] - m * pivots[j];
      out[width - 1] = 0;
    }
  }
  eliminated_ += last - first;
}

template <int W>
void BandFactor::substitute(double* x) const {
  const int width = W > 0 ? W : width_, lower = lower_;
  for (int k = 0; k < n_; ++k) {
    std::swap(x[k], x[k + swap_[at(k)]]);
    const double* const column = L_.data() + at(k * lower);
    for (int i = 0; i < lower; ++i) x[k + 1 + i] -= column[i] * x[k];
  }
  for (int k = n_ - 1; k >= 0; --k) {
    const double* const row = U_.data() + at(k * width);
    double sum = 0;
    for (int j = width - 1; j > 1; --j) sum += row[j] * x[k + j];
    x[k] = (x[k] - sum - row[1] * x[k + 1]) * inverse_[at(k)];
  }
}

void BandFactor::solve_in_place(Vec& x) {
  padded_.resize(at(n_ + 2 * width_));
  std::copy_n(x.data(), n_, padded_.data());
  std::fill(padded_.begin() + n_, padded_.end(), 0.0);
  by_width([&]<int W>() { substitute<W>(padded_.data()); });
  std::copy_n(padded_.data(), n_, x.data());
}

void BandFactor::products(const Vec& rhs, const Vec& x, Vec& residual, Vec& size) {
  padded_.resize(at(n_ + 2 * width_));
  std::fill_n(padded_.begin(), lower_, 0.0);
  std::copy_n(x.data(), n_, padded_.data() + lower_);
  std::fill(padded_.begin() + lower_ + n_, padded_.end(), 0.0);
  residual.resize(n_);
  size.resize(n_);
  by_width([&]<int W>() {
    const int width = W > 0 ? W : width_;
    for (int i = 0; i < n_; ++i) {
      const double* const row = rows_.data() + at(i * width);
      const double* const near = padded_.data() + i;
      Pair sum{}, absolute{};
      for (int j = 0; j < width; j += 2) {
        const Pair product = Pair{row[j], row[j + 1]} * Pair{near[j], near[j + 1]};
        sum += product;
        absolute += product < 0 ? -product : product;
      }
      residual[i] = rhs[i] - (sum[0] + sum[1]);
      size[i] = std::abs(rhs[i]) + absolute[0] + absolute[1];
    }
  });
}

}  // namespace saltus
