// Fits as words, JSON, tables and pictures.
#pragma once

#include <string>
#include <vector>

#include "ask/fit.hpp"
#include "report/run_figure.hpp"

namespace saltus {

std::string words_of(const FitAnswer& answer);
std::string json_of(const FitAnswer& answer);
/// "fit": experiment, quantity, time, datum, model, residual; "data": the free values; "profile".
std::vector<Table> tables_of(const FitAnswer& answer);
/// Data over the model, and the residuals below; with a profile its curves.
Picturing picture_of(const FitAnswer& answer);

}  // namespace saltus
