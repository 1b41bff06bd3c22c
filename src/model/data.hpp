// Measured data of a model: its tables [data.NAME], each an experiment, read with the places of their rows.
//
//     [data.test1]
//     file = "test1.csv"                  # or points = [[..], ..], whose columns have numbers, from 1
//     time = "t"
//     of = { y = "position" }             # a quantity of the model = a column; empty cells are left out
//     sigma = { y = 0.01 }                # a number or a column
//     with = { omega = 0.5, "y(0)" = 1 }  # parameters and initial values of this experiment
//     [data.stops]
//     events = { on = "v", kind = "slide" }   # times of events: the n-th of them in the n-th row
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace saltus {

/// A quantity and what was measured of it.
struct DataSeries {
  std::string quantity;         ///< a formula of the model
  std::string column;           ///< of the file
  std::vector<double> values;   ///< one per row; NaN: left out
  std::vector<double> sigma;    ///< of each; empty: not known
  std::string sigma_text = {};  ///< a number or a column, as it was given
  Place place{};
};

/// Times of events of one kind.
struct DataEvents {
  std::string on, kind;  ///< empty kind: any
};

struct DataTable {
  std::string name;
  std::string file = {};  ///< whole path; empty: points
  std::string time = "t";
  std::uint64_t checksum = 0;
  std::vector<double> times;
  std::vector<DataSeries> series;
  std::optional<DataEvents> events;
  std::vector<double> event_sigma;  ///< one per row; empty: not known
  std::string event_sigma_text = {};
  std::vector<std::pair<std::string, std::string>> with;  ///< parameters and "y(0)", as formulas
  std::vector<std::vector<double>> points = {};           ///< where there is no file
  Place place{};
};

/// The experiments of the text of a model file; paths are taken from its folder. Throws Error for what is wrong in it
/// or in the files, with place and remedy.
std::vector<DataTable> read_data(const std::string& text, const std::string& name);

/// The data as they stand in a model file, with whole paths.
std::string write_data(const std::vector<DataTable>& data);

}  // namespace saltus
