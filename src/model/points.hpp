// Files of points: what a table of a model is read from.
//
// Rows of numbers, separated by commas, semicolons, tabs or blanks; a first row that is no number names the columns;
// blank lines and what follows # are passed over.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace saltus {

/// (Not "Points": that is a layer of a figure, and one name must mean one thing in the whole program.)
struct PointColumns {
  std::vector<double> x, y;
  std::uint64_t checksum = 0;  ///< of the file
};

/// Reads two columns of a file, given by name or by position (from 1); none given: the first two. `asked` is where the
/// model names the file. Throws Error(file) if it cannot be read, Error(model) with its line if it says no function.
PointColumns read_points(const std::filesystem::path& path, std::span<const std::string> columns, const Place& asked);

/// Columns of measured data.
struct DataColumns {
  std::vector<std::vector<double>> columns;  ///< NaN: an empty cell
  std::vector<Place> places;                 ///< of the rows
  std::uint64_t checksum = 0;
};

/// Reads any columns of a file, by name or position; cells may be empty.
DataColumns read_columns(const std::filesystem::path& path, std::span<const std::string> columns, const Place& asked);

/// While it lives, the calling thread reads points from these files (whole paths) only: for models whose text comes
/// from somebody who may not choose files.
class OnlyTheseFiles {
 public:
  explicit OnlyTheseFiles(std::vector<std::string> paths);
  OnlyTheseFiles(const OnlyTheseFiles&) = delete;
  OnlyTheseFiles& operator=(const OnlyTheseFiles&) = delete;
  ~OnlyTheseFiles();

 private:
  std::vector<std::string> paths_;
  const std::vector<std::string>* before_;
};

/// The fault of points as a function, and the number of the faulty point; nothing if they are a function.
struct PointTrouble {
  size_t at = 0;
  std::string message, hint;
};
PointTrouble check_points(std::span<const double> x, std::span<const double> y);

}  // namespace saltus
