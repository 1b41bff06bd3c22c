// Points of a Poincaré map as a table, a picture and JSON.
#pragma once

#include <string>
#include <vector>

#include "ask/section.hpp"
#include "report/run_figure.hpp"

namespace saltus {

/// k, t and the states, as a table "data".
Table section_table(const SectionAnswer& answer);

/// Two states of that table against each other, or one against its next value; `shown` may be empty.
Picturing picture_section(const Model& model, const Table& points, const std::string& section,
                          std::vector<std::string> shown);

std::string section_as_json(const SectionAnswer& answer);

}  // namespace saltus
