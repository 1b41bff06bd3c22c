#include "flow/tangent_lanes.hpp"

#include <cmath>

#include "code/jet.hpp"

namespace saltus {
namespace {

using Four = double __attribute__((vector_size(32), aligned(8), may_alias));

/// The work of add_terms on the directions from `lane` on, for whatever registers the caller is compiled for. The sums
/// are formed in one order: all machines give the same bits.
[[gnu::always_inline]] inline void add_four(std::span<const TangentTerm> terms, const TangentRows& states,
                                            const TangentRows& unknowns, int k, bool open, size_t lane,
                                            TangentRows& sums) {
  for (const TangentTerm& term : terms) {
    const double* a = term.series;
    const int first = term.unknown && open ? 1 : 0;
    if (first > k || (first > 0 && term.constant) || !std::isfinite(a[0])) continue;
    const TangentRows& rows = term.unknown ? unknowns : states;
    const double* newest = rows(static_cast<size_t>(term.column), static_cast<size_t>(k)) + lane;
    const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(rows.lanes);
    const auto older = [&](int j) -> const Four& { return *reinterpret_cast<const Four*>(newest - j * stride); };
    Four even{}, odd{};
    const int last = term.constant ? 0 : k;
    int j = first;
    for (; j < last; j += 2) {
      even += a[j] * older(j);
      odd += a[j + 1] * older(j + 1);
    }
    if (j == last) even += a[j] * older(j);
    *reinterpret_cast<Four*>(sums(static_cast<size_t>(term.row), 0) + lane) += term.sign * (even + odd);
  }
}

void add_plain(std::span<const TangentTerm> terms, const TangentRows& states, const TangentRows& unknowns, int k,
               bool open, TangentRows& sums) {
  for (size_t lane = 0; lane < sums.lanes; lane += TangentRows::width)
    add_four(terms, states, unknowns, k, open, lane, sums);
}

[[gnu::target("avx2")]] void add_wide(std::span<const TangentTerm> terms, const TangentRows& states,
                                      const TangentRows& unknowns, int k, bool open, TangentRows& sums) {
  for (size_t lane = 0; lane < sums.lanes; lane += TangentRows::width)
    add_four(terms, states, unknowns, k, open, lane, sums);
}

}  // namespace

void add_terms(std::span<const TangentTerm> terms, const TangentRows& states, const TangentRows& unknowns, int k,
               bool open, TangentRows& sums) {
  static const auto add = lanes_supported() ? add_wide : add_plain;
  add(terms, states, unknowns, k, open, sums);
}

}  // namespace saltus
