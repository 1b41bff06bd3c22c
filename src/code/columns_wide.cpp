// Columns four numbers at a time. This file alone is compiled for AVX2, so it must define nothing that other files
// could link to by accident: everything here depends on the type of four numbers.
#include "code/columns_rules.hpp"

namespace saltus::columns {

template void expand<Four>(const Diagonals& band, const Columns& columns, double* next);
template void evaluate<Four>(const Columns& columns, double tau, double* out);
template void find_clearance<Four>(const Columns& columns, double h, double* out);
template LastTerms judge_last<Four>(const Columns& columns, double reach, const double* least, double* scale);

}  // namespace saltus::columns
