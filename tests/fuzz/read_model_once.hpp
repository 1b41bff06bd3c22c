// What is asked of every input, by libFuzzer and by the replay in `make test`.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "model/derive.hpp"
#include "model/read.hpp"
#include "model/start.hpp"

namespace saltus::testing {

/// Reads, writes and reads again, and differentiates. Anything but a model or an Error with its report is a bug.
/// Returns whether the input was a model.
inline bool read_model_once(std::string_view bytes) {
  std::string written;
  try {
    const Model m = read_model_text(bytes, "fuzz.toml");
    jacobian(m.form, SymbolKind::state);
    const auto p = parameter_values(m);
    try {
      check_start(m, p, initial_values(m, p), 0);
    } catch (const Error& error) {
      if (error.report().empty()) std::abort();
    }
    written = write_model(m);
    if (!same_model(m, read_model_text(written, "written.toml"))) {
      std::fprintf(stderr, "not the same model when read back:\n%s\n", written.c_str());
      std::abort();
    }
    return true;
  } catch (const Error& error) {
    if (!written.empty()) {
      std::fprintf(stderr, "what was written is not a model: %s\n%s\n", error.report().c_str(), written.c_str());
      std::abort();
    }
    if (error.report().empty()) std::abort();
    return false;
  }
}

}  // namespace saltus::testing
