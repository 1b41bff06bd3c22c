// Options that every command takes, as plain data, and the model that follows from them.
//
// The command line, Python and the studio fill the same structs. A command takes those it needs:
// struct RunOptions { ModelOptions model; Solve solve; OutputOptions output; ... }.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ask/past.hpp"
#include "ask/solve.hpp"
#include "ask/system.hpp"
#include "ask/value.hpp"
#include "model/model.hpp"

namespace saltus {

/// Which model, and what differs from its file.
struct ModelOptions {
  std::string model;                ///< a path (also of a run.toml), or a gallery model; a file of that name wins
  std::vector<Setting> parameters;  ///< -p F=0.3, in constants
  std::vector<Setting> initial;     ///< -x v=0.1, may use parameters
  bool as_given = false;            ///< of a run.toml with an orbit: not from the orbit, as the search began
};

/// Where results go.
struct OutputOptions {
  std::string folder;              ///< -o; empty: the next free <model>-<command>-NNN
  std::string format = "csv";      ///< "csv" or "h5"
  bool plot = true;                ///< draw plot.svg
  std::string picture;             ///< --plot: a further picture, .svg, .png or .pdf
  std::vector<std::string> show;   ///< names to plot, x:y for a plane, x:y:z for space; empty: the command's choice
  std::vector<std::string> range;  ///< --range y=-2:2: what an axis shows
  bool equal = false;              ///< one unit is as long on both axes of a plane
  bool log_x = false, log_y = false;
  bool force = false;   ///< replace results in the folder named
  bool resume = false;  ///< finish the computation in the folder named
  bool json = false;    ///< one document on stdout, no folder unless one is named
  bool quiet = false;   ///< no summary, no progress

  void check() const;
};

/// The model that a name means: a file (without its text), a gallery model, the model in a run.toml, "-".
ModelSource find_model(const std::string& name);

/// Reads the model, applies -p and -x, lowers it, and checks that a run can start from it; `from`: at which time, a
/// formula in parameters, if not at that of the model's [run].
Model load_model(const ModelOptions& options, const std::optional<Formula>& from = {});

/// The system of a model file with the given values; a model without a name is called as its results.
System load_system(const ModelOptions& options, const std::optional<Formula>& from = {});

/// A message of what is below the command line, with options and commands as a person types them: --dt for `dt`.
std::string as_flags(std::string_view message);

}  // namespace saltus
