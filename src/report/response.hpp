// Responses to small signals as words, JSON, tables and pictures.
#pragma once

#include <string>
#include <vector>

#include "ask/response.hpp"
#include "report/run_figure.hpp"

namespace saltus {

std::string words_of(const ResponseAnswer& answer);
std::string json_of(const ResponseAnswer& answer);
/// "data": frequency, and gain, phase in degrees, real and imaginary part of each pair; "means": by each parameter.
std::vector<Table> tables_of(const ResponseAnswer& answer);
/// Gain and phase over frequency, and the curves in the plane of complex numbers.
Picturing picture_of(const ResponseAnswer& answer);

}  // namespace saltus
