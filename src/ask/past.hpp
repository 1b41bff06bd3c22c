// The run.toml of a past result: everything that made it, so that `saltus again run.toml` repeats it bit for bit.
//
//     saltus = "0.1.0"
//     command = "run"
//     name = "dry_friction"
//     model = '''...'''            the resolved model file, with the parameters and initial values used
//
//     [files]                      of the model's tables, with a number that tells whether they have changed
//     "/home/me/road.csv" = "8c1f04d2a6b3e597"
//
//     [options]                    by their long names; true where an option has no value
//     until = "60"
//
//     [orbit]                      where an orbit or equilibrium was found
//     t = 0
//     state = {y = 1.2, v = 0}
//
//     [special.PD1]                a special point of a branch, from which another can be followed
//     type = "flip"
//
// Wherever a command takes a MODEL, such a file stands for the model in it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ask/solve.hpp"
#include "flow/simulate.hpp"
#include "model/model.hpp"

namespace saltus {

struct Past {
  /// An option by its long name without dashes, and its values: none for a flag, several where it was repeated.
  using Option = std::pair<std::string, std::vector<std::string>>;

  std::string version;  ///< of the saltus that made it
  std::string command;
  std::string name;  ///< how results of the model are called
  std::string model;
  std::vector<std::pair<std::string, std::string>> files = {};  ///< that the model reads, with their checksums
  std::vector<Option> options;

  /// The table [orbit]: where a command that takes the file as its MODEL starts.
  struct Start {
    double t = 0, period = 0;
    std::string mode;
    std::vector<std::pair<std::string, double>> state;
    std::vector<std::string> signature;
  };
  std::optional<Start> start = {};

  /// A table [special.LABEL] of a branch: a special point, and a regular one near by from which it is found again.
  struct Special {
    std::string label, type;
    std::vector<double> values;  ///< of what was followed
    Start at, near;
    std::vector<double> near_values;
  };
  std::vector<Special> special = {};
};

std::string write_past(const Past& past);

/// How something was computed, as options of a command line: what was said, and what the engine was told.
std::vector<Past::Option> recorded(const Solve& solve, const RunOptions& options);

/// The files that the tables of a model were read from, as Past keeps them.
std::vector<std::pair<std::string, std::string>> table_files(const Model& model);
/// The files whose checksum has changed since.
std::vector<std::string> changed_files(const Past& past);

/// Reads it back; nothing if the file is not the run.toml of a result. Throws Error(file) if it cannot be read,
/// Error(model) if it is damaged.
std::optional<Past> read_past(const std::filesystem::path& path);

/// Reads a past question from the text of a run.toml; `path` is for complaints.
std::optional<Past> read_past_text(const std::string& text, const std::filesystem::path& path);

/// The command line that repeats it, after the command's name; `path` stands for the model.
std::vector<std::string> arguments_of(const Past& past, const std::string& path);

/// How results of a model are called: the file's stem, its folder's name where the file is called model.toml, or what
/// the run.toml of a past result says.
std::string short_name(const std::string& model);

/// The version of this program.
std::string this_version();

}  // namespace saltus
