// Orbits and equilibria as words, JSON, tables and pictures.
#pragma once

#include <string>
#include <vector>

#include "ask/orbit.hpp"
#include "report/run_figure.hpp"

namespace saltus {

std::string words_of(const OrbitAnswer& answer);
std::string words_of(const OrbitsAnswer& answer);
std::string words_of(const EquilibriumAnswer& answer);

std::string json_of(const OrbitAnswer& answer);
std::string json_of(const OrbitsAnswer& answer);
std::string json_of(const EquilibriumAnswer& answer);

/// "data" first: rows along one period, or a row per orbit or equilibrium. None where nothing was found.
std::vector<Table> tables_of(const OrbitAnswer& answer);
std::vector<Table> tables_of(const OrbitsAnswer& answer);
std::vector<Table> tables_of(const EquilibriumAnswer& answer);

/// `shown`: one or two columns, or none.
Picturing picture_of(const OrbitAnswer& answer, const std::vector<std::string>& shown);
Picturing picture_of(const OrbitsAnswer& answer, const std::vector<std::string>& shown);
Picturing picture_of(const EquilibriumAnswer& answer, const std::vector<std::string>& shown);

/// One period as rows: t, states, named quantities, sigma, multipliers.
Rows orbit_rows(const OrbitAnswer& answer);

/// "equilibrium", "pseudo-equilibrium", "equilibrium-set" or "none".
std::string kind_of(const Equilibrium& equilibrium);

}  // namespace saltus
