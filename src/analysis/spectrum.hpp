// Eigenvalues and multipliers as test functions, and Leine's set between two one-sided matrices.
#pragma once

#include <complex>
#include <string>
#include <vector>

#include "base/linear.hpp"

namespace saltus {

using Spectrum = std::vector<std::complex<double>>;

/// By modulus, largest first; conjugates side by side, the one with positive imaginary part first.
void sort_multipliers(Spectrum& multipliers);
/// Multipliers of an orbit followed backward, turned into those forward in time.
void turn_back(Spectrum& multipliers);
/// True if all lie inside the unit circle.
bool inside_circle(const Spectrum& multipliers);
/// By real part, largest first.
void sort_eigenvalues(Spectrum& eigenvalues);
Spectrum spectrum_of(const Mat& A);
/// Eigenvalues of the product of square matrices, the first applied first: each to its own size where their moduli
/// differ, which the product itself would lose. By orthogonal iteration through the factors (periodic QR); a direction
/// that a factor forgets has the eigenvalue 0.
Spectrum spectrum_of_product(const std::vector<Mat>& factors);
/// The trivial multiplier: how much of the flow where each factor ends it makes of the flow where it begins, one after
/// the other, so that what others grow by does not spoil it.
double carried_along(const std::vector<Mat>& factors, const std::vector<Vec>& flow);

/// Factors across a direction that they carry along, flow[i] to a multiple of flow[i + 1]: one row and column less.
std::vector<Mat> across(const std::vector<Mat>& factors, const std::vector<Vec>& flow);

/// Vanishes where two eigenvalues add up to zero: Hopf points and neutral saddles.
double hopf_test(const Spectrum& eigenvalues);
/// True if a complex pair lies on the imaginary axis, up to rounding and the place's uncertainty.
bool on_axis(const Spectrum& eigenvalues);
/// Vanishes where a multiplier is at a real place.
double passes_test(const Spectrum& multipliers, double place);
/// Where one multiplier is at a real place: vanishes where a second one is, too (the derivative of the characteristic
/// polynomial, which is smooth also where the two meet).
double second_passes_test(const Spectrum& multipliers, double place);
/// Vanishes where a multiplier is -1.
double flip_test(const Spectrum& multipliers);
/// The cosine of the angle on the circle of the pair whose product is 1. Beyond 1 and -1 the pair is real.
double cosine_of_pair(const Spectrum& multipliers);
/// Vanishes where two multipliers have the product 1: torus points and neutral saddles.
double torus_test(const Spectrum& multipliers);
bool on_circle(const Spectrum& multipliers);

/// A passage of an eigenvalue of (1-q) A + q B, q from 0 to 1.
struct SetPassage {
  double q = 0;
  std::string how;
};
/// Through the unit circle: "+1", "-1" or "complex", in order. `squared`: of a half map, whose square counts.
std::vector<SetPassage> circle_passages(const Mat& A, const Mat& B, bool squared);
/// Through the imaginary axis: "0" or "complex".
std::vector<SetPassage> axis_passages(const Mat& A, const Mat& B);

}  // namespace saltus
