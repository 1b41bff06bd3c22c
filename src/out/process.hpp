// Runs another program without a shell: no quoting, no injection.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace saltus {

struct ProcessResult {
  bool started = false;    ///< false: there is no such program
  bool timed_out = false;  ///< it was ended after the time allowed
  int status = -1;         ///< exit status; 128 + signal if a signal ended it
  std::string output;      ///< what it wrote to stdout and stderr (the first 64 kB)

  bool ok() const { return started && !timed_out && status == 0; }
};

/// Looks for `arguments[0]` in PATH and runs it in `folder` with empty input; ended after `seconds`.
ProcessResult run_program(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                          double seconds);

}  // namespace saltus
