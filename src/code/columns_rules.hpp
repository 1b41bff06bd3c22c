// Operations on columns (code/columns), in registers of two numbers or of four: V. Included by the file for each;
// everything here depends on V, so that no machine runs the code of the other.
#pragma once

#include "base/simd.hpp"
#include "code/columns.hpp"

namespace saltus::columns {

using namespace simd;

/// The product of D diagonals with a row.
template <class V, int D, bool begins>
void multiply(const double* const* diagonals, const int* offsets, size_t columns, const double* begin, const double* in,
              double factor, double* out) {
  const double *weights[D > 0 ? D : 1] = {}, *from[D > 0 ? D : 1] = {};  // where no store can change them
  for (int d = 0; d < D; ++d) {
    weights[d] = diagonals[d];
    from[d] = in + offsets[d];
  }
  for (size_t k = 0; k < columns; k += width<V>) {
    V sum{};
    if constexpr (begins) load(begin + k, sum);
    for (int d = 0; d < D; ++d) {
      V weight, x;
      load(weights[d] + k, weight);
      load(from[d] + k, x);
      if (d == 0 && !begins) {
        sum = weight * x;
      } else {
        sum += weight * x;
      }
    }
    store(out + k, V(sum * factor));
  }
}

/// A band as bare numbers: members of vectors must not be compiled here.
struct Diagonals {
  static constexpr size_t most = 2 * Band::reach + 1;
  const double *constant, *time;
  const double* weights[most];
  int offsets[most];
  size_t count;
};

template <class V, int D>
void expand_by(const Diagonals& band, const Columns& columns, double* next) {
  const size_t padded = columns.stride - Columns::margin;
  for (size_t k = columns.count; k < padded; ++k) columns.first[k] = 0;
  double* row = columns.first;
  multiply<V, D, true>(band.weights, band.offsets, padded, band.constant, row, 1.0, row + columns.stride);
  row += columns.stride;
  multiply<V, D, true>(band.weights, band.offsets, padded, band.time, row, 0.5, row + columns.stride);
  row += columns.stride;
  for (size_t order = 2; order + 1 < columns.terms; ++order, row += columns.stride) {
    multiply<V, D, false>(band.weights, band.offsets, padded, nullptr, row, 1.0 / static_cast<double>(order + 1),
                          row + columns.stride);
  }
  multiply<V, D, false>(band.weights, band.offsets, padded, nullptr, row, 1.0, next);
}

template <class V>
void expand(const Diagonals& band, const Columns& columns, double* next) {
  switch (band.count) {
    case 0: return expand_by<V, 0>(band, columns, next);
    case 1: return expand_by<V, 1>(band, columns, next);
    case 2: return expand_by<V, 2>(band, columns, next);
    case 3: return expand_by<V, 3>(band, columns, next);
    case 4: return expand_by<V, 4>(band, columns, next);
    case 5: return expand_by<V, 5>(band, columns, next);
    case 6: return expand_by<V, 6>(band, columns, next);
    case 7: return expand_by<V, 7>(band, columns, next);
    case 8: return expand_by<V, 8>(band, columns, next);
    default: return expand_by<V, 9>(band, columns, next);
  }
}

/// R registers side by side: rows are met in their order.
template <class V, size_t R>
void evaluate_some(const Columns& columns, size_t k, double tau, double* out) {
  V sum[R] = {};
  const double* from = columns.first + (columns.terms - 1) * columns.stride + k;
  for (size_t order = 0; order < columns.terms; ++order, from -= columns.stride) {
    for (size_t r = 0; r < R; ++r) {
      V term;
      load(from + r * width<V>, term);
      sum[r] = sum[r] * tau + term;
    }
  }
  for (size_t r = 0; r < R; ++r) store(out + k + r * width<V>, sum[r]);
}

template <class V>
void evaluate(const Columns& columns, double tau, double* out) {
  size_t k = 0;
  for (; k + 4 * width<V> <= columns.count; k += 4 * width<V>) evaluate_some<V, 4>(columns, k, tau, out);
  for (; k < columns.count; k += width<V>) evaluate_some<V, 1>(columns, k, tau, out);
}

template <class V>
void find_clearance(const Columns& columns, double h, double* out) {
  constexpr size_t first = 5;  // of the terms that are bounded; those before are looked at in Bernstein's form
  for (size_t k = 0; k < columns.count; k += width<V>) {
    V rest{}, term;
    const double* from = columns.first + (columns.terms - 1) * columns.stride + k;
    for (size_t order = columns.terms; order-- > first; from -= columns.stride) {
      load(from, term);
      take_size(term);
      rest = rest * h + term;
    }
    V c[first];
    double power = 1;
    for (size_t order = 0; order < first; ++order, power *= h) {
      load(columns.first + order * columns.stride + k, term);
      c[order] = term * power;
    }
    rest *= power;
    V size = rest;
    for (const V& own : c) {
      V other = own;
      take_size(other);
      size += other;
    }
    const V one = c[1] * 0.25, two = c[2] * (1.0 / 6), three = c[3] * 0.25;
    const V bernstein[] = {V(c[0] + one), V(c[0] + 2.0 * one + two), V(c[0] + 3.0 * one + 3.0 * two + three),
                           V(c[0] + c[1] + c[2] + c[3] + c[4])};
    V low = c[0], high = c[0];
    for (const V& b : bernstein) {
      low = b < low ? b : low;
      high = b > high ? b : high;
    }
    const V above = low, below = -high;
    store(out + k, V((above > below ? above : below) - rest - 1e-13 * size));
  }
}

template <class V>
LastTerms judge_last(const Columns& columns, double reach, const double* least, double* scale) {
  const double *x0 = columns.first, *x1 = x0 + columns.stride, *x2 = x1 + columns.stride;
  const double *y0 = x0 + (columns.terms - 1) * columns.stride, *y1 = y0 - columns.stride;
  V last{}, previous{};
  const auto size_at = [](const double* from) {
    V v;
    load(from, v);
    take_size(v);
    return v;
  };
  for (size_t k = 0; k < columns.count; k += width<V>) {
    V largest;
    load(least + k, largest);
    for (const V& other : {size_at(x0 + k), V(size_at(x1 + k) * reach), V(size_at(x2 + k) * (reach * reach))})
      largest = other > largest ? other : largest;
    store(scale + k, largest);
    const V zero{}, unit = largest > zero ? V(1.0 / largest) : zero;
    const V a = size_at(y0 + k) * unit, b = size_at(y1 + k) * unit;
    last = a > last ? a : last;
    previous = b > previous ? b : previous;
  }
  LastTerms out{last[0], previous[0]};
  for (size_t k = 1; k < width<V>; ++k) {
    if (last[k] > out.last) out.last = last[k];
    if (previous[k] > out.previous) out.previous = previous[k];
  }
  return out;
}

}  // namespace saltus::columns
