#include "solve/radau.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <utility>

namespace saltus {
namespace {

using Real = long double;
using Wide = std::complex<long double>;
template <class T>
using Square = std::vector<std::vector<T>>;

template <class T>
Square<T> zeros(size_t n) {
  return Square<T>(n, std::vector<T>(n));
}

/// By elimination with the largest pivots; matrices here have up to ten rows.
template <class T>
Square<T> inverse(Square<T> a) {
  const size_t n = a.size();
  Square<T> out = zeros<T>(n);
  for (size_t i = 0; i < n; ++i) out[i][i] = 1;
  for (size_t k = 0; k < n; ++k) {
    size_t largest = k;
    for (size_t i = k; i < n; ++i) {
      if (std::abs(a[i][k]) > std::abs(a[largest][k])) largest = i;
    }
    std::swap(a[k], a[largest]);
    std::swap(out[k], out[largest]);
    for (size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const T factor = a[i][k] / a[k][k];
      for (size_t j = 0; j < n; ++j) {
        a[i][j] -= factor * a[k][j];
        out[i][j] -= factor * out[k][j];
      }
    }
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) out[i][j] /= a[i][i];
  }
  return out;
}

template <class T>
Square<T> product(const Square<T>& a, const Square<T>& b) {
  const size_t n = a.size();
  Square<T> out = zeros<T>(n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < n; ++k) {
      for (size_t j = 0; j < n; ++j) out[i][j] += a[i][k] * b[k][j];
    }
  }
  return out;
}

/// All zeros of sum a_k z^k at once (Weierstrass), polished to the last digits.
std::vector<Wide> all_zeros(const std::vector<Real>& a) {
  const size_t n = a.size() - 1;
  std::vector<Wide> z(n);
  for (size_t k = 0; k < n; ++k) z[k] = std::polar<Real>(std::pow(std::abs(a[0] / a[n]), 1.0L / n), 0.4L + 2.1L * k);
  constexpr int most_rounds = 500;
  Real moved = 1;
  for (int round = 0; round < most_rounds && moved > 1e-18L; ++round) {
    moved = 0;
    for (size_t k = 0; k < n; ++k) {
      Wide value = a[n], others = a[n];
      for (size_t j = n; j-- > 0;) value = value * z[k] + a[j];
      for (size_t j = 0; j < n; ++j) others *= j == k ? Wide(1) : z[k] - z[j];
      z[k] -= value / others;
      moved = std::max(moved, std::abs(value / others / z[k]));
    }
  }
  return z;
}

/// Zeros of P_s - P_(s-1), Legendre's polynomials on [0, 1]: the last one is 1.
std::vector<Real> nodes(int stages) {
  std::vector<Real> before{1}, now{-1, 2};  // in powers of c
  for (int n = 1; n < stages; ++n) {
    std::vector<Real> next(now.size() + 1, 0);
    for (size_t k = 0; k < now.size(); ++k) {
      next[k] -= (2 * n + 1) * now[k] / (n + 1);
      next[k + 1] += 2 * (2 * n + 1) * now[k] / (n + 1);
    }
    for (size_t k = 0; k < before.size(); ++k) next[k] -= n * before[k] / (n + 1);
    before = std::exchange(now, std::move(next));
  }
  for (size_t k = 0; k < before.size(); ++k) now[k] -= before[k];
  std::vector<Real> c;
  for (const Wide& z : all_zeros(now)) c.push_back(z.real());
  std::sort(c.begin(), c.end());
  c.back() = 1;
  return c;
}

/// det(1 - z A): the denominator of Pade's approximation of e^z. Its zeros are the eigenvalues of A^-1.
std::vector<Real> characteristic(int stages) {
  std::vector<Real> q{1};
  for (int j = 1; j <= stages; ++j) q.push_back(-q.back() * (stages - j + 1) / (static_cast<Real>(2 * stages - j) * j));
  return q;
}

/// v with A^-1 v = mu v, by inverse iteration beside mu.
std::vector<Wide> eigenvector(const Square<Real>& a_inverse, const Wide& mu) {
  const size_t s = a_inverse.size();
  Square<Wide> shifted = zeros<Wide>(s);
  for (size_t i = 0; i < s; ++i) {
    for (size_t j = 0; j < s; ++j) shifted[i][j] = a_inverse[i][j] - (i == j ? mu * Wide(1 + 1e-3L) : Wide(0));
  }
  const Square<Wide> solve = inverse(shifted);
  std::vector<Wide> v(s, Wide(1));
  for (int round = 0; round < 8; ++round) {
    std::vector<Wide> next(s);
    for (size_t i = 0; i < s; ++i) {
      for (size_t j = 0; j < s; ++j) next[i] += solve[i][j] * v[j];
    }
    for (size_t i = 0; i < s; ++i) v[i] = next[i] / next[s - 1];
  }
  return v;
}

Radau make_radau(int stages) {
  const auto s = static_cast<size_t>(stages);
  const std::vector<Real> c = nodes(stages);
  Square<Real> vandermonde = zeros<Real>(s), integrals = zeros<Real>(s), powers = zeros<Real>(s);
  for (size_t i = 0; i < s; ++i) {
    for (size_t k = 0; k < s; ++k) {
      vandermonde[i][k] = std::pow(c[i], static_cast<Real>(k));
      powers[i][k] = vandermonde[i][k] * c[i];
      integrals[i][k] = powers[i][k] / static_cast<Real>(k + 1);
    }
  }
  const Square<Real> to_powers = inverse(powers), a = product(integrals, inverse(vandermonde)), a_inverse = inverse(a);
  Radau out{.stages = stages};
  for (const Real& node : c) out.c.push_back(static_cast<double>(node));
  for (size_t i = 0; i < s; ++i) {
    for (size_t j = 0; j < s; ++j) out.A.push_back(static_cast<double>(a[i][j]));
  }
  Real farthest = 0;
  for (int k = 1; k < 1000; ++k) {
    const Real u = k / 1000.0L;
    Real distance = u;
    for (const Real& node : c) distance *= std::abs(u - node);
    if (distance > farthest) farthest = distance, out.between = static_cast<double>(u);
  }
  for (size_t k = 0; k < s; ++k) {
    for (size_t i = 0; i < s; ++i) out.powers.push_back(to_powers[k][i]);
  }
  std::vector<Wide> mu = all_zeros(characteristic(stages)), kept;
  const auto real = std::min_element(
      mu.begin(), mu.end(), [](const Wide& u, const Wide& v) { return std::abs(u.imag()) < std::abs(v.imag()); });
  kept.push_back(real->real());
  for (const Wide& m : mu) {
    if (&m != &*real && m.imag() > 0) kept.push_back(m);
  }
  Square<Wide> t = zeros<Wide>(s);  // columns: the kept ones, then the others of the pairs
  for (size_t k = 0; k < kept.size(); ++k) {
    const std::vector<Wide> v = eigenvector(a_inverse, kept[k]);
    for (size_t i = 0; i < s; ++i) {
      t[i][k] = v[i];
      if (k > 0) t[i][kept.size() + k - 1] = std::conj(v[i]);
    }
  }
  const Square<Wide> t_inverse = inverse(t);
  for (size_t k = 0; k < kept.size(); ++k) {
    out.mu.emplace_back(kept[k]);
    for (size_t i = 0; i < s; ++i) {
      out.to.emplace_back(t_inverse[k][i]);
      out.from.emplace_back(t[i][k]);
    }
  }
  // The formula of order s has the weight 1/mu_0 at the start of the step: its others differ from those of the stages
  // by d with sum d_i c_i^k = -1/mu_0 for k = 0 and 0 otherwise; h F = A^-1 Z.
  const Square<Real> weights = inverse(vandermonde);
  for (size_t i = 0; i < s; ++i) {
    Real sum = 0;
    for (size_t j = 0; j < s; ++j) sum += -weights[0][j] / kept[0].real() * a_inverse[j][i];
    out.compare.push_back(static_cast<double>(sum));
  }
  return out;
}

}  // namespace

const Radau& radau(int stages) {
  assert(stages % 2 == 1 && stages >= 3 && stages <= 7);
  static const std::array<Radau, 3> all{make_radau(3), make_radau(5), make_radau(7)};
  return all[static_cast<size_t>((stages - 3) / 2)];
}

}  // namespace saltus
