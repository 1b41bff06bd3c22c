#include "solve/radau_step.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/index.hpp"
#include "base/numbers.hpp"

namespace saltus {
namespace {

constexpr int most_iterations = 12;
constexpr double enough = 0.01;      // of a unit: what Newton's method may leave
constexpr double farthest = 2;       // steps that the last polynomial foretells
constexpr double hopeless = 0.95;    // convergence
constexpr double noise_units = 100;  // of rounding: polynomials through stages magnify it

/// Without a look for infinities.
std::complex<double> times(const std::complex<double>& a, const std::complex<double>& b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace

RadauStep::RadauStep(int stages, size_t states)
    : radau_(radau(stages)),
      stages_(static_cast<size_t>(stages)),
      n_(states),
      factors_(radau_.mu.size()),
      z_(stages_ * n_),
      f_(stages_ * n_),
      open_(stages_ * n_),
      dz_(stages_ * n_),
      right_(n_),
      polynomial_((stages_ + 1) * n_),
      stage_(n_),
      at_start_(n_),
      error_(n_),
      unit_(n_) {}

void RadauStep::linearise(const Mat& J) {
  J_ = J;
  factored_h_ = 0;
}

bool RadauStep::factor(double h) {
  if (h != factored_h_) {
    for (size_t k = 0; k < factors_.size(); ++k) factor(radau_.mu[k] / h, factors_[k]);
    factored_h_ = h;
  }
  return std::all_of(factors_.begin(), factors_.end(), [](const Factors& f) { return f.regular; });
}

void RadauStep::factor(const Complex& diagonal, Factors& out) const {
  out.lu.resize(n_ * n_);
  out.pivots.resize(n_);
  out.regular = true;
  for (size_t i = 0; i < n_; ++i) {
    for (size_t j = 0; j < n_; ++j) out.lu[i * n_ + j] = (i == j ? diagonal : 0.0) - J_(ix(i), ix(j));
  }
  const auto row = [&](size_t i) { return out.lu.begin() + static_cast<std::ptrdiff_t>(i * n_); };
  const auto size = [](const Complex& v) { return std::abs(v.real()) + std::abs(v.imag()); };
  for (size_t k = 0; k < n_ && out.regular; ++k) {
    size_t largest = k;
    for (size_t i = k + 1; i < n_; ++i) {
      if (size(out.lu[i * n_ + k]) > size(out.lu[largest * n_ + k])) largest = i;
    }
    out.pivots[k] = largest;
    if (largest != k) std::swap_ranges(row(k), row(k) + static_cast<std::ptrdiff_t>(n_), row(largest));
    const Complex pivot = out.lu[k * n_ + k];
    out.regular = size(pivot) > 0 && std::isfinite(size(pivot));
    for (size_t i = k + 1; i < n_; ++i) {
      Complex& factor = out.lu[i * n_ + k];
      if (factor == 0.0) continue;
      factor /= pivot;
      for (size_t j = k + 1; j < n_; ++j) out.lu[i * n_ + j] -= times(factor, out.lu[k * n_ + j]);
    }
  }
}

void RadauStep::solve(const Factors& factors, std::vector<Complex>& b) const {
  for (size_t k = 0; k < n_; ++k) std::swap(b[k], b[factors.pivots[k]]);
  for (size_t i = 0; i < n_; ++i) {
    for (size_t j = 0; j < i; ++j) b[i] -= times(factors.lu[i * n_ + j], b[j]);
  }
  for (size_t i = n_; i-- > 0;) {
    for (size_t j = i + 1; j < n_; ++j) b[i] -= times(factors.lu[i * n_ + j], b[j]);
    b[i] /= factors.lu[i * n_ + i];
  }
}

/// Where the stages would be if the last polynomial went on.
void RadauStep::predict(std::span<const double> x, double h) {
  std::fill(z_.begin(), z_.end(), 0.0);
  if (!(last_h_ > 0) || h > farthest * last_h_) return;
  for (size_t i = 0; i < stages_; ++i) {
    const double s = last_h_ + radau_.c[i] * h;
    for (size_t a = 0; a < n_; ++a) {
      const double* p = &last_[a * (stages_ + 1)];
      double value = p[stages_];
      for (size_t k = stages_; k-- > 0;) value = value * s + p[k];
      z_[i * n_ + a] = value - x[a];
    }
  }
}

double RadauStep::size_of(const std::vector<double>& z) const {
  double largest = 0;
  for (size_t i = 0; i < stages_; ++i) {
    for (size_t a = 0; a < n_; ++a) largest = std::max(largest, std::abs(z[i * n_ + a]) / unit_[a]);
  }
  return largest;
}

void RadauStep::set_units(std::span<const double> x, std::span<const double> wanted) {
  for (size_t a = 0; a < n_; ++a) {
    double noise = 0;
    for (size_t b = 0; b < n_; ++b) noise += eps * std::abs(J_(ix(a), ix(b)) * x[b]);
    const double rounding = noise * h_ / (radau_.mu[0].real() + h_ * std::abs(J_(ix(a), ix(a))));
    unit_[a] = std::max(wanted[a], noise_units * (rounding + eps * std::abs(x[a])));
  }
}

RadauStep::Outcome RadauStep::solve(const Rates& f, std::span<const double> x, double s, double h,
                                    std::span<const double> unit) {
  h_ = h;
  if (!factor(h)) return Outcome::diverged;
  set_units(x, unit);
  predict(x, h);
  double before = 0;
  for (int iteration = 0; iteration < most_iterations; ++iteration) {
    for (size_t i = 0; i < stages_; ++i) {
      for (size_t a = 0; a < n_; ++a) stage_[a] = x[a] + z_[i * n_ + a];
      if (!f(s + radau_.c[i] * h, stage_.data(), &f_[i * n_])) return Outcome::undefined;
    }
    correct();
    for (size_t i = 0; i < z_.size(); ++i) z_[i] += dz_[i];
    const double moved = size_of(dz_);
    if (!std::isfinite(moved)) return Outcome::diverged;
    if (iteration > 0) {
      // Corrections that have begun as rounding (at rest) shrink no further.
      const bool rounding = std::max(moved, before) <= enough * enough;
      convergence_ = before > 0 && !rounding ? moved / before : 0;
      if (convergence_ >= hopeless) return Outcome::diverged;
      if (convergence_ / (1 - convergence_) * moved <= enough) {
        form_polynomial(x);
        return Outcome::solved;
      }
    }
    before = moved;
  }
  return Outcome::diverged;
}

/// Newton's correction: (mu_k/h - J) dw_k = mu_k/h (T^-1 (h A F - Z))_k. Only corrections are transformed: T has few
/// digits to spare.
void RadauStep::correct() {
  for (size_t i = 0; i < stages_; ++i) {
    for (size_t a = 0; a < n_; ++a) {
      double sum = 0;
      for (size_t j = 0; j < stages_; ++j) sum += radau_.A[i * stages_ + j] * f_[j * n_ + a];
      open_[i * n_ + a] = h_ * sum - z_[i * n_ + a];
    }
  }
  std::fill(dz_.begin(), dz_.end(), 0.0);
  for (size_t k = 0; k < factors_.size(); ++k) {
    std::fill(right_.begin(), right_.end(), Complex(0));
    for (size_t i = 0; i < stages_; ++i) {
      const Complex t = radau_.to[k * stages_ + i] * radau_.mu[k] / h_;
      for (size_t a = 0; a < n_; ++a) right_[a] += t * open_[i * n_ + a];
    }
    solve(factors_[k], right_);
    for (size_t i = 0; i < stages_; ++i) {
      const Complex t = (k == 0 ? 1.0 : 2.0) * radau_.from[k * stages_ + i];
      for (size_t a = 0; a < n_; ++a) dz_[i * n_ + a] += t.real() * right_[a].real() - t.imag() * right_[a].imag();
    }
  }
}

double RadauStep::error(const Rates& f, std::span<const double> x, double s, bool again) {
  return std::max(error_at_end(f, x, s, again), error_within(f, s));
}

/// How far the polynomial is from a solution between its stages, where stiff components are merely interpolated.
double RadauStep::error_within(const Rates& f, double s) {
  const double tau = radau_.between * h_;
  for (size_t a = 0; a < n_; ++a) {
    const double* p = &polynomial_[a * (stages_ + 1)];
    double value = p[stages_], slope = 0;
    for (size_t k = stages_; k-- > 0;) {
      slope = slope * tau + value;
      value = value * tau + p[k];
    }
    stage_[a] = value;
    error_[a] = slope;
  }
  if (!f(s + tau, stage_.data(), at_start_.data())) return HUGE_VAL;
  for (size_t a = 0; a < n_; ++a) right_[a] = error_[a] - at_start_[a];
  return solved_size();
}

/// Size of (mu_0/h - J)^-1 times the right side.
double RadauStep::solved_size() {
  solve(factors_[0], right_);
  double largest = 0;
  for (size_t a = 0; a < n_; ++a) {
    error_[a] = right_[a].real();
    largest = std::max(largest, std::abs(error_[a]) / unit_[a]);
  }
  return std::isfinite(largest) ? largest : HUGE_VAL;
}

double RadauStep::error_at_end(const Rates& f, std::span<const double> x, double s, bool again) {
  const double over_h = radau_.mu[0].real() / h_;
  const auto look = [&](const double* from) {
    if (!f(s, from, at_start_.data())) return HUGE_VAL;
    for (size_t a = 0; a < n_; ++a) {
      double sum = 0;
      for (size_t i = 0; i < stages_; ++i) sum += radau_.compare[i] * z_[i * n_ + a];
      right_[a] = at_start_[a] + over_h * sum;
    }
    return solved_size();
  };
  double found = look(x.data());
  if (found >= 1 && again) {
    for (size_t a = 0; a < n_; ++a) stage_[a] = x[a] + error_[a];
    found = std::min(found, look(stage_.data()));
  }
  return found;
}

/// The polynomial through x and the stages.
void RadauStep::form_polynomial(std::span<const double> x) {
  for (size_t a = 0; a < n_; ++a) {
    double* p = &polynomial_[a * (stages_ + 1)];
    p[0] = x[a];
    long double power = 1;
    for (size_t k = 1; k <= stages_; ++k) {
      power *= h_;
      long double sum = 0;
      for (size_t i = 0; i < stages_; ++i) sum += radau_.powers[(k - 1) * stages_ + i] * z_[i * n_ + a];
      p[k] = static_cast<double>(sum / power);
    }
  }
}

}  // namespace saltus
