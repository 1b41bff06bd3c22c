// One function per command. The command line, Python and the studio call these; none of them prints.
#pragma once

#include <string>

#include "app/options.hpp"

namespace saltus {

/// How a command ended; the exit status of the program.
enum class Status {
  done = 0,
  ended_badly = 1,  ///< computed, but the run did not reach its end; results are kept
  bad_usage = 2,
  bad_model = 3,
  file_trouble = 4,
  interrupted = 130,  ///< results are kept
};

/// What a command has to say, and how it ended. Wrong input is thrown as Error instead.
struct Outcome {
  std::string text;  ///< for stdout
  Status status = Status::done;
};

Status status_of(const Error& error);

struct CheckOptions {
  enum class Style { text, json, latex };
  ModelOptions model;
  Style style = Style::text;
};

/// What the model is: states, parameters, lowered equations, switches, constraints, jumps, sections.
Outcome check(const CheckOptions& options);

struct ExamplesOptions {
  std::string name;  ///< empty: list all
};

/// The gallery: a line per model, or the file of one.
Outcome examples(const ExamplesOptions& options);

}  // namespace saltus
