// Every tolerance that decides something while a model is read, with its reason.
#pragma once

namespace saltus {

/// Two coefficients that differ by less than this share are meant to be equal: they are the same numbers, added in
/// another order.
inline constexpr double equal_coefficients = 1e-10;
/// A pivot below this share of the entries that made it is what rounding leaves of zero.
inline constexpr double singular_share = 1e-12;
/// Larger blocks of coupled rates are not judged as full matrices of numbers, which takes the cube of their size.
inline constexpr int largest_full_block = 400;

}  // namespace saltus
