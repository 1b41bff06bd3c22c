// Products of series with registers of four numbers. This file alone is compiled for AVX2, so it must define nothing
// that other files could link to by accident: everything here depends on its own type of series.
#include "code/jet_rules.hpp"

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace saltus::rules {

#ifdef __AVX2__
namespace {

/// All bits set where the last 1, 2, 3 of some terms stand in a register: in its first places, and, as the other factor
/// runs backwards, in its last ones.
constexpr long long all_bits = -1;
alignas(32) constexpr long long first_places[4][4]{
    {}, {all_bits, 0, 0, 0}, {all_bits, all_bits, 0, 0}, {all_bits, all_bits, all_bits, 0}};
alignas(32) constexpr long long last_places[4][4]{
    {}, {0, 0, 0, all_bits}, {0, 0, all_bits, all_bits}, {0, all_bits, all_bits, all_bits}};

/// a[0] b[0] + a[1] b[-1] + ..., with the bits of `sum`: its four sums are one register.
inline double add_by_fours(const double* a, const double* b, int count) {
  if (count < 4) {
    if (count <= 0) return 0;
    double sum = a[0] * b[0];
    for (int j = 1; j < count; ++j) sum += a[j] * b[-j];
    return sum;
  }
  constexpr int reversed = 0b00'01'10'11;
  __m256d sums = _mm256_mul_pd(_mm256_loadu_pd(a), _mm256_permute4x64_pd(_mm256_loadu_pd(b - 3), reversed));
  int j = 4;
  for (; j + 4 <= count; j += 4) {
    const __m256d backwards = _mm256_permute4x64_pd(_mm256_loadu_pd(b - j - 3), reversed);
    sums = _mm256_add_pd(sums, _mm256_mul_pd(_mm256_loadu_pd(a + j), backwards));
  }
  if (const int left = count - j; left > 0) {
    const __m256i first = _mm256_load_si256(reinterpret_cast<const __m256i*>(first_places[left]));
    const __m256i last = _mm256_load_si256(reinterpret_cast<const __m256i*>(last_places[left]));
    const __m256d backwards = _mm256_permute4x64_pd(_mm256_maskload_pd(b - j - 3, last), reversed);
    const __m256d terms = _mm256_mul_pd(_mm256_maskload_pd(a + j, first), backwards);
    // What is not there adds -0, which changes nothing.
    const __m256d signs = _mm256_andnot_pd(_mm256_castsi256_pd(first), _mm256_set1_pd(-0.0));
    sums = _mm256_add_pd(sums, _mm256_xor_pd(terms, signs));
  }
  const __m128d pairs = _mm_hadd_pd(_mm256_castpd256_pd128(sums), _mm256_extractf128_pd(sums, 1));
  return _mm_cvtsd_f64(pairs) + _mm_cvtsd_f64(_mm_unpackhi_pd(pairs, pairs));
}

struct ByFours {
  double* series;
  double& operator[](int k) const { return series[k]; }
};

inline double sum_of_products(ByFours a, ByFours b, int k, int first, int last) {
  return add_by_fours(a.series + first, b.series + (k - first), last - first + 1);
}

}  // namespace

double sum_by_fours(const double* a, const double* b, int count) { return add_by_fours(a, b, count); }

double convolve_by_fours(const double* a, const double* b, int k) {
  return convolve(ByFours{const_cast<double*>(a)}, ByFours{const_cast<double*>(b)}, k, 1, k - 1);
}

double convolve_itself_by_fours(const double* a, int k) {
  return convolve_itself(ByFours{const_cast<double*>(a)}, k, 1);
}

void next_product_by_fours(const Operation& o, double* series, size_t stride, int k) {
  if (!next_product_of<ByFours>(o, series, stride, k)) next_function_alone(o, series, stride, k);
}
#else
double sum_by_fours(const double*, const double*, int) { __builtin_unreachable(); }
double convolve_by_fours(const double*, const double*, int) { __builtin_unreachable(); }
double convolve_itself_by_fours(const double*, int) { __builtin_unreachable(); }
void next_product_by_fours(const Operation&, double*, size_t, int) { __builtin_unreachable(); }
#endif

}  // namespace saltus::rules
