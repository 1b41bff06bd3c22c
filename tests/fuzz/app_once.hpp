// What is asked of every command line, run.toml and checkpoint, by libFuzzer and by the replay in `make test`.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/checkpoint.hpp"
#include "app/command_line.hpp"
#include "ask/past.hpp"
#include "base/error.hpp"

namespace saltus::fuzz {

/// Lines are arguments. All of them are read and judged, nothing is run: --help follows the command.
inline void command_line_once(std::string_view bytes) {
  std::vector<std::string> arguments{""};
  for (const char c : bytes) {
    if (c == '\n') {
      arguments.emplace_back();
    } else if (c != '\0') {
      arguments.back() += c;
    }
  }
  arguments.insert(arguments.begin() + 1, "--help");
  std::ostringstream out, talk;
  const int status = command_line(arguments, out, talk);
  if ((status == 0 && !out.str().empty()) || ((status >= 2 && status <= 4) && !talk.str().empty())) return;
  std::fprintf(stderr, "status %d: %s\n", status, talk.str().c_str());
  std::abort();
}

/// A run.toml is a record, none, or damaged; a record comes back the same when it is written.
inline void past_once(std::string_view bytes) {
  try {
    const auto past = read_past_text(std::string(bytes), "fuzz");
    if (!past) return;
    arguments_of(*past, "fuzz");
    const auto again = read_past_text(write_past(*past), "written");
    if (!again || write_past(*again) != write_past(*past)) {
      std::fprintf(stderr, "not the same record when read back:\n%s\n", write_past(*past).c_str());
      std::abort();
    }
  } catch (const Error& error) {
    if (error.report().empty()) std::abort();
  }
}

/// Whatever the bytes of the file: it opens with the items that are whole, or is refused; what is appended is found.
inline void checkpoint_once(std::string_view bytes, const std::filesystem::path& file) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  std::size_t found = 0, then = 0;
  try {
    Checkpoint(file, "fuzz", [&](std::size_t, Bytes) { ++found; }).append(7, "seven");
    Checkpoint(file, "fuzz", [&](std::size_t, Bytes) { ++then; });
    if (then != found + 1) std::abort();
  } catch (const Error& error) {
    if (error.report().empty()) std::abort();
  }
}

}  // namespace saltus::fuzz
