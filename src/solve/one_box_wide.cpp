// Boxes settled four numbers at a time. This file alone is compiled for AVX2 and FMA, so it must define nothing that
// other files could link to by accident: everything here depends on the type of four numbers.
#include "solve/one_box_rules.hpp"

namespace saltus::one_box {

template Root settle<Four>(std::span<const double> c, double h, double noise);

}  // namespace saltus::one_box
