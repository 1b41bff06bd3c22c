#include "solve/one_box_rules.hpp"

namespace saltus {

namespace one_box {
// In solve/one_box_wide.cpp, which is compiled for machines that have the registers.
extern template Root settle<Four>(std::span<const double> c, double h, double noise);
}  // namespace one_box

Root settle_in_one_box(std::span<const double> c, double h, double noise) {
  const bool wide = simd::has_four() && simd::has_fma();
  return wide ? one_box::settle<one_box::Four>(c, h, noise) : one_box::settle<one_box::Two>(c, h, noise);
}

}  // namespace saltus
