// What `orbit` and `follow` share: options read, numbers and states as words and JSON.
#pragma once

#include <complex>
#include <string>
#include <vector>

#include "analysis/orbit.hpp"
#include "app/commands.hpp"
#include "out/json.hpp"
#include "report/run_json.hpp"

namespace saltus {

int find_state(const Model& model, const std::string& name, const std::string& option);
OrbitOptions orbit_options(const OrbitRequest& request, const Model& model, const RunOptions& run);

void write_number(JsonWriter& json, double v);
void write_complex(JsonWriter& json, const std::complex<double>& z);
void write_list(JsonWriter& json, const char* key, const std::vector<std::complex<double>>& list);

std::string number(double v);
std::string list_of(const std::vector<std::complex<double>>& list);
std::string state_words(const Model& model, const std::vector<double>& x);

}  // namespace saltus
