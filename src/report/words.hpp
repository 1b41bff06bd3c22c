// Numbers, lists of complex ones and states, as words and as JSON.
#pragma once

#include <complex>
#include <string>
#include <string_view>
#include <vector>

#include "base/table.hpp"
#include "model/model.hpp"
#include "out/json.hpp"

namespace saltus {

/// A number; an infinite one as the text "inf" or "-inf".
void write_number(JsonWriter& json, double v);
void write_complex(JsonWriter& json, const std::complex<double>& z);
void write_list(JsonWriter& json, std::string_view key, const std::vector<std::complex<double>>& list);

std::string number(double v);
/// "0.5 ± 0.2i, -0.1", at most eight of them.
std::string list_of(const std::vector<std::complex<double>>& list);
/// "y = 1.2, v = 0"
std::string state_words(const Model& model, const std::vector<double>& x);

/// The columns re and im.
Table complex_table(const std::string& name, const std::string& what, const std::vector<std::complex<double>>& list);

}  // namespace saltus
