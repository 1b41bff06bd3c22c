// Where a command leaves what it found: a folder with tables, a picture and its run.toml.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/options.hpp"
#include "app/past.hpp"
#include "base/figure.hpp"
#include "base/table.hpp"

namespace saltus {

/// Everything a command leaves.
struct Results {
  std::vector<Table> tables = {};  ///< written: data, events, ...
  Figure figure = {};
  std::vector<Table> drawn = {};  ///< tables that only the figure needs
  Past past = {};
};

/// What became of them.
struct Saved {
  std::filesystem::path folder;    ///< empty if none was asked for
  std::vector<std::string> files;  ///< in the folder, by name
  std::string trouble;             ///< why there is no picture; empty if there is one or none was wanted
};

/// The folder of a result, made before the computation, so that a mistaken path costs no time: -o, or the next
/// <name>-<command>-NNN here. Nothing with --json alone.
std::optional<std::filesystem::path> open_folder(const OutputOptions& output, const std::string& name,
                                                 const std::string& command);

/// Writes tables, run.toml and pictures.
Saved save(Results results, const std::optional<std::filesystem::path>& folder, const OutputOptions& output);

/// "files      dry_friction-run-001: data.csv (801 rows), ..." for the summary.
std::string files_line(const Saved& saved, size_t rows);

}  // namespace saltus
