#include "flow/tangent_lanes.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/simd.hpp"
#include "code/jet.hpp"

namespace saltus {
namespace {

using Four = double __attribute__((vector_size(32), may_alias));

/// One group of directions.
struct Group {
  Four* cells;
  size_t count;

  Four* operator()(size_t row) const { return cells + row * count; }
};

Group group_of(TangentRows& tangents, size_t g) {
  return {reinterpret_cast<Four*>(tangents.group(g)), tangents.coefficients()};
}

/// a[1] x[-1] + ... + a[k] x[-k], with its sign, added to four sums that do not wait for each other.
template <bool negative>
[[gnu::always_inline]] inline void convolve(const double* a, const Four* x, int k, Four& s0, Four& s1, Four& s2,
                                            Four& s3) {
  const auto add = [&](Four& sum, int j) { sum += negative ? -a[j] * x[-j] : a[j] * x[-j]; };
  int j = 1;
  for (; j + 3 <= k; j += 4) {
    add(s0, j);
    add(s1, j + 1);
    add(s2, j + 2);
    add(s3, j + 3);
  }
  if (j <= k) add(s0, j);
  if (j + 1 <= k) add(s1, j + 1);
  if (j + 2 <= k) add(s2, j + 2);
}

/// Coefficient k of a right side, added to `s0`. The newest tangents are ready last: their terms are added last.
/// Without `varying` all terms are constant.
template <bool varying>
[[gnu::always_inline]] inline void add_sum(std::span<const TangentTerm> terms, const Group& x, int k, Four& s0) {
  if constexpr (varying) {
    Four s1{}, s2{}, s3{};
    for (const TangentTerm& term : terms) {
      if (term.constant) continue;
      const Four* newest = x(static_cast<size_t>(term.column)) + k;
      if (term.negative) {
        convolve<true>(term.series, newest, k, s0, s1, s2, s3);
      } else {
        convolve<false>(term.series, newest, k, s0, s1, s2, s3);
      }
    }
    s0 = (s0 + s1) + (s2 + s3);
  }
  for (const TangentTerm& term : terms) {
    if (term.open) continue;
    const double a = term.negative ? -term.series[0] : term.series[0];
    s0 += a * x(static_cast<size_t>(term.column))[k];
  }
}

template <bool varying>
[[gnu::always_inline]] inline void expand_group(const TangentSystem& system, const Group& x, int order) {
  const size_t n = system.states(), unknowns = system.unknowns();
  const TangentTerm* const terms = system.terms.data();
  const auto row = [&](size_t from, size_t to) { return std::span(terms + from, terms + to); };
  for (int k = 0; k <= std::max(0, order - 1); ++k) {
    size_t from = 0;
    for (size_t a = 0; a < unknowns; ++a) {
      Four sum{};
      if (system.given) sum = x(system.g(a))[k];
      add_sum<varying>(row(from, system.residual_end[a]), x, k, sum);
      *x(system.residual(a)) = sum;
      from = system.residual_end[a];
    }
    for (size_t a = 0; a < unknowns; ++a) x(n + a)[k] = Four{};
    for (const TangentSystem::Weight& w : system.solution)
      x(n + static_cast<size_t>(w.unknown))[k] += w.value * *x(system.residual(static_cast<size_t>(w.residual)));
    if (order == 0) break;
    const double factor = 1.0 / (k + 1);
    for (size_t i = 0; i < n; ++i) {
      Four sum{};
      if (system.given) sum = x(system.f(i))[k];
      add_sum<varying>(row(from, system.rate_end[i]), x, k, sum);
      x(i)[k + 1] = factor * sum;
      from = system.rate_end[i];
    }
  }
}

[[gnu::always_inline]] inline bool group_has_converged(const Group& x, size_t states, int order, double tau,
                                                       double tolerance) {
  double second = 1;
  for (int k = 1; k < order; ++k) second *= tau;
  const double last = second * tau;
  const auto take_size = [](Four& a) { a = a < 0 ? -a : a; };
  auto good = Four{} == Four{};
  for (size_t i = 0; i < states; ++i) {
    const Four* const row = x(i);
    Four scale = row[0], first = row[1] * tau, next = row[2] * (tau * tau);
    Four before = row[order - 1] * second, newest = row[order] * last;
    for (Four* part : {&scale, &first, &next, &before, &newest}) take_size(*part);
    scale = scale < first ? first : scale;
    scale = scale < next ? next : scale;
    scale *= tolerance;
    good &= (newest <= scale) & (before <= scale) & (scale < HUGE_VAL);
  }
  return good[0] && good[1] && good[2] && good[3];
}

[[gnu::always_inline]] inline void move_group(const Group& x, size_t states, int order, double tau) {
  for (size_t i = 0; i < states; ++i) {
    Four* const row = x(i);
    Four sum = row[order];
    for (int k = order - 1; k >= 0; --k) sum = sum * tau + row[k];
    row[0] = sum;
  }
}

// Instances for the registers of every machine, and for wide ones. The sums are formed in one order: the bits are
// equal.
void expand_plain(const TangentSystem& system, const Group& x, int order, bool varying) {
  varying ? expand_group<true>(system, x, order) : expand_group<false>(system, x, order);
}
SALTUS_AVX2 void expand_wide(const TangentSystem& system, const Group& x, int order, bool varying) {
  varying ? expand_group<true>(system, x, order) : expand_group<false>(system, x, order);
}
bool converged_plain(const Group& x, size_t states, int order, double tau, double tolerance) {
  return group_has_converged(x, states, order, tau, tolerance);
}
SALTUS_AVX2 bool converged_wide(const Group& x, size_t states, int order, double tau, double tolerance) {
  return group_has_converged(x, states, order, tau, tolerance);
}
void move_plain(const Group& x, size_t states, int order, double tau) { move_group(x, states, order, tau); }
SALTUS_AVX2 void move_wide(const Group& x, size_t states, int order, double tau) { move_group(x, states, order, tau); }

}  // namespace

TangentSystem TangentSystem::without_infinite() const {
  TangentSystem out = *this;
  out.terms.clear();
  size_t from = 0;
  for (auto* ends : {&out.residual_end, &out.rate_end}) {
    for (size_t& end : *ends) {
      for (; from < end; ++from) {
        if (std::isfinite(terms[from].series[0])) out.terms.push_back(terms[from]);
      }
      end = out.terms.size();
    }
  }
  return out;
}

void expand(const TangentSystem& system, TangentRows& tangents, int order) {
  static const auto run = simd::has_four() ? expand_wide : expand_plain;
  const bool varying =
      !std::all_of(system.terms.begin(), system.terms.end(), [](const TangentTerm& t) { return t.constant; });
  for (size_t g = 0; g < tangents.groups(); ++g) run(system, group_of(tangents, g), order, varying);
}

bool has_converged(TangentRows& tangents, size_t states, int order, double tau, double tolerance) {
  static const auto run = simd::has_four() ? converged_wide : converged_plain;
  bool all = true;
  for (size_t g = 0; g < tangents.groups(); ++g)
    all = all && run(group_of(tangents, g), states, order, std::abs(tau), tolerance);
  return all;
}

void move_to(TangentRows& tangents, size_t states, int order, double tau) {
  static const auto run = simd::has_four() ? move_wide : move_plain;
  for (size_t g = 0; g < tangents.groups(); ++g) run(group_of(tangents, g), states, order, tau);
}

}  // namespace saltus
