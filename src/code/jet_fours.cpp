// Products of series with registers of four numbers. This file alone is compiled for AVX2, so it must define nothing
// that other files could link to by accident: everything here depends on its own type of series.
#include "code/jet_rules.hpp"

#include <cstring>

#include "base/simd.hpp"

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace saltus::rules {

#ifdef __AVX2__
namespace {

/// Product sums of several pairs of series.
template <size_t n>
struct Each {
  double sum[n];
};
template <size_t n>
struct Places {
  const double* of[n];
};

template <size_t n>
inline Each<n> add_by_ones(const Places<n>& a, const Places<n>& b, int count) {
  Each<n> sums{};
  if (count <= 0) return sums;
  for (size_t i = 0; i < n; ++i) sums.sum[i] = a.of[i][0] * b.of[i][0];
  for (int j = 1; j < count; ++j) {
    for (size_t i = 0; i < n; ++i) sums.sum[i] += a.of[i][j] * b.of[i][-j];
  }
  return sums;
}

/// low[0] + low[1] + (high[0] + high[1]) of each.
inline Each<1> joined(const __m128d (&low)[1], const __m128d (&high)[1]) {
  const __m128d pairs = _mm_hadd_pd(low[0], high[0]);
  return {{_mm_cvtsd_f64(pairs) + _mm_cvtsd_f64(_mm_unpackhi_pd(pairs, pairs))}};
}
inline Each<2> joined(const __m128d (&low)[2], const __m128d (&high)[2]) {
  Each<2> sums;
  _mm_storeu_pd(sums.sum, _mm_add_pd(_mm_hadd_pd(low[0], low[1]), _mm_hadd_pd(high[0], high[1])));
  return sums;
}

/// a[0] b[0] + a[1] b[-1] + ..., with the bits of `sum`: its four sums are one register. No more is read than that:
/// what lies beyond has just been written, and would be waited for.
template <size_t n>
inline Each<n> add_by_fours(const Places<n>& a, const Places<n>& b, int count) {
  if (count < 4) return add_by_ones<n>(a, b, count);
  constexpr int reversed = 0b00'01'10'11;
  __m256d sums[n];
  for (size_t i = 0; i < n; ++i)
    sums[i] = _mm256_mul_pd(_mm256_loadu_pd(a.of[i]), _mm256_permute4x64_pd(_mm256_loadu_pd(b.of[i] - 3), reversed));
  int j = 4;
  for (; j + 4 <= count; j += 4) {
    for (size_t i = 0; i < n; ++i) {
      const __m256d backwards = _mm256_permute4x64_pd(_mm256_loadu_pd(b.of[i] - j - 3), reversed);
      sums[i] = _mm256_add_pd(sums[i], _mm256_mul_pd(_mm256_loadu_pd(a.of[i] + j), backwards));
    }
  }
  __m128d low[n], high[n];
  for (size_t i = 0; i < n; ++i) {
    low[i] = _mm256_castpd256_pd128(sums[i]);
    high[i] = _mm256_extractf128_pd(sums[i], 1);
  }
  const int left = count - j;
  const auto term = [&](size_t i, int at) { return _mm_mul_sd(_mm_load_sd(a.of[i] + at), _mm_load_sd(b.of[i] - at)); };
  if (left >= 2) {
    for (size_t i = 0; i < n; ++i) {
      const __m128d backwards = _mm_permute_pd(_mm_loadu_pd(b.of[i] - j - 1), 0b01);
      low[i] = _mm_add_pd(low[i], _mm_mul_pd(_mm_loadu_pd(a.of[i] + j), backwards));
    }
    if (left == 3) {
      for (size_t i = 0; i < n; ++i) high[i] = _mm_add_sd(high[i], term(i, j + 2));
    }
  } else if (left == 1) {
    for (size_t i = 0; i < n; ++i) low[i] = _mm_add_sd(low[i], term(i, j));
  }
  return joined(low, high);
}

struct ByFours {
  double* series;
  double& operator[](int k) const { return series[k]; }
};

inline double sum_of_products(ByFours a, ByFours b, int k, int first, int last) {
  return add_by_fours<1>({{a.series + first}}, {{b.series + (k - first)}}, last - first + 1).sum[0];
}

using simd::Two;

/// Two series side by side.
struct TwoByFours {
  const double *first, *second;
  Two operator[](int k) const { return Two{first[k], second[k]}; }
};

inline Two sum_of_products(TwoByFours a, TwoByFours b, int k, int first, int last) {
  const Each<2> both = add_by_fours<2>({{a.first + first, a.second + first}},
                                       {{b.first + (k - first), b.second + (k - first)}}, last - first + 1);
  return Two{both.sum[0], both.sum[1]};
}

}  // namespace

double sum_by_fours(const double* a, const double* b, int count) { return add_by_fours<1>({{a}}, {{b}}, count).sum[0]; }

double convolve_by_fours(const double* a, const double* b, int k) {
  return convolve(ByFours{const_cast<double*>(a)}, ByFours{const_cast<double*>(b)}, k, 1, k - 1);
}

double convolve_itself_by_fours(const double* a, int k) {
  return convolve_itself(ByFours{const_cast<double*>(a)}, k, 1);
}

void convolve_two_by_fours(const double* a, const double* b, const double* c, const double* d, int k, double* sums) {
  const Two both = convolve(TwoByFours{a, c}, TwoByFours{b, d}, k, 1, k - 1);
  std::memcpy(sums, &both, sizeof(both));
}

void convolve_two_itself_by_fours(const double* a, const double* b, int k, double* sums) {
  const Two both = convolve_itself(TwoByFours{a, b}, k, 1);
  std::memcpy(sums, &both, sizeof(both));
}

void next_product_by_fours(const Operation& o, double* series, size_t stride, int k) {
  if (!next_product_of<ByFours>(o, series, stride, k)) next_function_alone(o, series, stride, k);
}
#else
double sum_by_fours(const double*, const double*, int) { __builtin_unreachable(); }
double convolve_by_fours(const double*, const double*, int) { __builtin_unreachable(); }
double convolve_itself_by_fours(const double*, int) { __builtin_unreachable(); }
void convolve_two_by_fours(const double*, const double*, const double*, const double*, int, double*) {
  __builtin_unreachable();
}
void convolve_two_itself_by_fours(const double*, const double*, int, double*) { __builtin_unreachable(); }
void next_product_by_fours(const Operation&, double*, size_t, int) { __builtin_unreachable(); }
#endif

}  // namespace saltus::rules
