// Several doubles side by side in a register, and what the machine has for them.
//
// Arithmetic on the types works entry by entry on every machine; where it has no register that long, the compiler takes
// several. A file (or, with SALTUS_AVX2, a function) that is compiled for longer registers than every machine has is
// called only if the machine says that it has them. The functions here are inlined always: a copy of one that was
// compiled for longer registers must not be found by the linker for other files. Pass registers by reference: how they
// are passed by value depends on the instruction set.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>

namespace saltus::simd {

using Two = double __attribute__((vector_size(16)));
using Four = double __attribute__((vector_size(32)));

/// True or false of each entry: what a comparison gives.
template <class V>
using Flags = decltype(V{} < V{});

template <class V>
inline constexpr std::size_t width = sizeof(V) / sizeof(double);

template <class V>
[[gnu::always_inline]] inline void load(const double* from, V& v) {
  std::memcpy(&v, from, sizeof(v));
}
template <class V>
[[gnu::always_inline]] inline void store(double* to, const V& v) {
  std::memcpy(to, &v, sizeof(v));
}
template <class V>
[[gnu::always_inline]] inline void take_size(V& v) {
  v = std::bit_cast<V>(std::bit_cast<Flags<V>>(v) & ~(1ll << 63));
}
/// From the first entry to the last.
template <class V>
[[gnu::always_inline]] inline double sum(const V& v) {
  double all = v[0];
  for (std::size_t i = 1; i < width<V>; ++i) all += v[i];
  return all;
}

// The one way to choose at run time.
#ifdef __x86_64__
#define SALTUS_AVX2 [[gnu::target("avx2")]]
#define SALTUS_FMA [[gnu::target("fma")]]
inline bool has_four() { return __builtin_cpu_supports("avx2"); }
/// Products and sums in one step, rounded once.
inline bool has_fma() { return __builtin_cpu_supports("fma"); }
#else
#define SALTUS_AVX2
#define SALTUS_FMA
constexpr bool has_four() { return false; }
constexpr bool has_fma() { return false; }
#endif

}  // namespace saltus::simd
