#include "analysis/spectrum.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace saltus {
namespace {

using Complex = std::complex<double>;

bool is_real(const Complex& z) { return std::abs(z.imag()) <= 1e-12 * std::abs(z); }

/// How many real ones lie beyond a bound, and how many complex ones.
struct Count {
  int above = 0, below = 0, complex = 0;
};

/// Beyond the unit circle: real above 1, real below -1, complex.
Count outside_circle(const Spectrum& spectrum) {
  Count c;
  for (const Complex& z : spectrum) {
    if (std::abs(z) <= 1) continue;
    if (!is_real(z))
      ++c.complex;
    else
      ++(z.real() > 0 ? c.above : c.below);
  }
  return c;
}

Count right_of_axis(const Spectrum& spectrum) {
  Count c;
  for (const Complex& z : spectrum) {
    if (z.real() <= 0) continue;
    if (is_real(z))
      ++c.above;
    else
      ++c.complex;
  }
  return c;
}

int total(const Count& c) { return c.above + c.below + c.complex; }

constexpr int passage_samples = 400;  ///< of the interval between two matrices, before a passage is looked at closely

/// Passages between q0 and q1: how many more lie beyond, and as what they pass.
template <class Counts>
void passages(const std::function<Spectrum(double)>& at, const Counts& beyond, double q0, double q1, int depth,
              std::vector<std::pair<double, Complex>>& out, const std::function<Complex(const Spectrum&)>& nearest) {
  const int a = total(beyond(at(q0))), b = total(beyond(at(q1)));
  if (a == b) return;
  if (depth == 0) {
    out.emplace_back(0.5 * (q0 + q1), nearest(at(0.5 * (q0 + q1))));
    return;
  }
  const double middle = 0.5 * (q0 + q1);
  passages(at, beyond, q0, middle, depth - 1, out, nearest);
  passages(at, beyond, middle, q1, depth - 1, out, nearest);
}

}  // namespace

void sort_multipliers(Spectrum& multipliers) {
  std::stable_sort(multipliers.begin(), multipliers.end(), [](const Complex& a, const Complex& b) {
    if (std::abs(std::abs(a) - std::abs(b)) > 1e-12 * std::abs(a)) return std::abs(a) > std::abs(b);
    if (std::abs(a.real() - b.real()) > 1e-12 * std::abs(a)) return a.real() > b.real();
    return a.imag() > b.imag();
  });
}

void turn_back(Spectrum& multipliers) {
  for (std::complex<double>& mu : multipliers) mu = std::abs(mu) < 1e-13 ? std::complex<double>(HUGE_VAL, 0) : 1.0 / mu;
}

bool inside_circle(const Spectrum& multipliers) {
  return std::all_of(multipliers.begin(), multipliers.end(),
                     [](const std::complex<double>& mu) { return std::abs(mu) < 1; });
}

void sort_eigenvalues(Spectrum& eigenvalues) {
  std::stable_sort(eigenvalues.begin(), eigenvalues.end(), [](const Complex& a, const Complex& b) {
    if (std::abs(a.real() - b.real()) > 1e-12 * std::abs(a)) return a.real() > b.real();
    return a.imag() > b.imag();
  });
}

Spectrum spectrum_of(const Mat& A) {
  Spectrum out;
  if (A.rows() == 0) return out;
  for (const Complex& z : eigenvalues(A)) out.push_back(z);
  return out;
}

Spectrum spectrum_of_product(const std::vector<Mat>& factors) {
  constexpr int most_sweeps = 12;
  constexpr double apart = 1e-13;      // subspaces that no longer turn into each other
  constexpr double forgotten = 1e-14;  // of a factor's size
  const Index n = factors.front().rows();
  if (n == 0) return {};
  Mat Q = Mat::Identity(n, n), turned, R;
  std::vector<Mat> triangles(factors.size());
  std::vector<bool> splits(static_cast<size_t>(n), false);  // below row k nothing comes back up
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    const Mat before = Q;
    for (size_t i = 0; i < factors.size(); ++i) {
      Qr next = qr(factors[i] * Q);
      triangles[i] = std::move(next.R);
      Q = std::move(next.Q);
    }
    turned = before.transpose() * Q;
    bool all = true;
    for (Index k = 1; k < n; ++k) {
      splits[static_cast<size_t>(k)] = turned.bottomLeftCorner(n - k, k).norm() < apart;
      all = all && splits[static_cast<size_t>(k)];
    }
    if (all) break;
  }
  Spectrum out;
  for (Index first = 0, next; first < n; first = next) {
    next = first + 1;
    while (next < n && !splits[static_cast<size_t>(next)]) ++next;
    const Index size = next - first;
    Mat block = Mat::Identity(size, size);
    for (size_t i = 0; i < factors.size(); ++i) {
      Mat step = triangles[i].block(first, first, size, size);
      for (Index k = 0; k < size; ++k) {
        if (std::abs(step(k, k)) <= forgotten * factors[i].norm()) step.row(k).tail(size - k).setZero();
      }
      block = step * block;
    }
    for (const Complex& z : spectrum_of(turned.block(first, first, size, size) * block)) out.push_back(z);
  }
  return out;
}

double carried_along(const std::vector<Mat>& factors, const std::vector<Vec>& flow) {
  double product = 1;
  for (size_t i = 0; i < factors.size(); ++i) {
    const Vec& next = flow[(i + 1) % flow.size()];
    product *= next.dot(factors[i] * flow[i]) / next.squaredNorm();
  }
  return product;
}

std::vector<Mat> across(const std::vector<Mat>& factors, const std::vector<Vec>& flow) {
  std::vector<Mat> out;
  Mat before = null_space(flow.front().transpose());
  for (size_t i = 0; i < factors.size(); ++i) {
    const Mat after =
        i + 1 == factors.size() ? null_space(flow.front().transpose()) : null_space(flow[i + 1].transpose());
    out.push_back(after.transpose() * factors[i] * before);
    before = after;
  }
  return out;
}

double hopf_test(const Spectrum& e) {
  if (e.size() < 2) return 1;
  double product = 1;
  for (size_t i = 0; i < e.size(); ++i) {
    for (size_t j = i + 1; j < e.size(); ++j) {
      // Conjugate pairs of pairs come twice: their product is a square of moduli.
      const Complex sum = e[i] + e[j];
      const double size = std::abs(e[i]) + std::abs(e[j]);
      if (size == 0) return 0;
      if (is_real(sum) || std::abs(sum.imag()) <= 1e-12 * size)
        product *= sum.real() / size;
      else
        product *= std::abs(sum) / size;
    }
  }
  return product;
}

bool on_axis(const Spectrum& e) {
  return std::any_of(e.begin(), e.end(),
                     [](const Complex& z) { return !is_real(z) && std::abs(z.real()) <= 1e-5 * std::abs(z); });
}

double passes_test(const Spectrum& m, double place) {
  double product = 1;
  for (const Complex& z : m) {
    if (!std::isfinite(std::abs(z))) continue;
    if (is_real(z))
      product *= (z.real() - place) / (1 + std::abs(z));
    else
      product *= std::abs(z - place) / (1 + std::abs(z));
  }
  return product;
}

double second_passes_test(const Spectrum& m, double place) {
  Complex slope = 0, product = 1;
  double size = 1;
  for (const Complex& z : m) {
    if (!std::isfinite(std::abs(z))) continue;
    slope = slope * (z - place) + product;
    product *= z - place;
    size *= 1 + std::abs(z);
  }
  return slope.real() / size;
}

double flip_test(const Spectrum& m) { return passes_test(m, -1); }

double cosine_of_pair(const Spectrum& m) {
  double nearest = HUGE_VAL, cosine = 0;
  for (size_t i = 0; i < m.size(); ++i) {
    for (size_t j = i + 1; j < m.size(); ++j) {
      const double off = std::abs(m[i] * m[j] - 1.0);
      if (off < nearest) nearest = off, cosine = 0.5 * (m[i] + m[j]).real();
    }
  }
  return cosine;
}

double torus_test(const Spectrum& m) {
  double product = 1;
  for (size_t i = 0; i < m.size(); ++i) {
    for (size_t j = i + 1; j < m.size(); ++j) {
      const Complex p = m[i] * m[j];
      if (!std::isfinite(std::abs(p))) continue;
      const double size = 1 + std::abs(p);
      if (std::abs(p.imag()) <= 1e-12 * size)
        product *= (p.real() - 1) / size;
      else
        product *= std::abs(p - 1.0) / size;
    }
  }
  return product;
}

bool on_circle(const Spectrum& m) {
  return std::any_of(m.begin(), m.end(),
                     [](const Complex& z) { return !is_real(z) && std::abs(std::abs(z) - 1) <= 1e-5; });
}

std::vector<SetPassage> circle_passages(const Mat& A, const Mat& B, bool squared) {
  std::vector<SetPassage> out;
  if (!A.allFinite() || !B.allFinite()) return out;
  const auto at = [&](double q) {
    Spectrum s = spectrum_of((1 - q) * A + q * B);
    if (squared) {
      for (Complex& z : s) z *= z;
    }
    return s;
  };
  const auto nearest = [](const Spectrum& s) {
    return *std::min_element(s.begin(), s.end(), [](const Complex& a, const Complex& b) {
      return std::abs(std::abs(a) - 1) < std::abs(std::abs(b) - 1);
    });
  };
  std::vector<std::pair<double, Complex>> found;
  for (int k = 0; k < passage_samples; ++k)
    passages(at, outside_circle, static_cast<double>(k) / passage_samples, static_cast<double>(k + 1) / passage_samples,
             30, found, nearest);
  for (const auto& [q, z] : found) out.push_back({q, !is_real(z) ? "complex" : z.real() > 0 ? "+1" : "-1"});
  return out;
}

std::vector<SetPassage> axis_passages(const Mat& A, const Mat& B) {
  std::vector<SetPassage> out;
  if (!A.allFinite() || !B.allFinite() || A.rows() != B.rows()) return out;
  const auto at = [&](double q) { return spectrum_of((1 - q) * A + q * B); };
  const auto nearest = [](const Spectrum& s) {
    return *std::min_element(
        s.begin(), s.end(), [](const Complex& a, const Complex& b) { return std::abs(a.real()) < std::abs(b.real()); });
  };
  std::vector<std::pair<double, Complex>> found;
  for (int k = 0; k < passage_samples; ++k)
    passages(at, right_of_axis, static_cast<double>(k) / passage_samples, static_cast<double>(k + 1) / passage_samples,
             30, found, nearest);
  for (const auto& [q, z] : found)
    out.push_back(
        {q, std::abs(z.imag()) > 1e-9 * (1e-300 + std::abs(z)) && std::abs(z.imag()) > 1e-9 ? "complex" : "0"});
  return out;
}

}  // namespace saltus
