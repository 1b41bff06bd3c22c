// One function per command. The command line, Python and the studio call these; none of them prints.
#pragma once

#include <string>

#include "app/options.hpp"
#include "app/progress.hpp"

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
  std::string talk = {};  ///< for stderr: warnings, and why a run ended badly where the text does not say it
};

Status status_of(const Error& error);

struct CheckOptions {
  enum class Style { text, json, latex };
  ModelOptions model;
  Style style = Style::text;
};

/// What the model is: states, parameters, lowered equations, switches, constraints, jumps, sections.
Outcome check(const CheckOptions& options);

/// `saltus run`. (RunOptions are those of the engine.)
struct RunRequest {
  ModelOptions model;
  SolveOptions solve;
  OutputOptions output;
  std::string sample = "smooth";  ///< times of the rows: "smooth", "steps", or an interval
  std::string store = "samples";  ///< "samples", or "pieces" for the dense output as well
};

/// One trajectory: tables, a picture, a summary or JSON.
Outcome run(const RunRequest& request, const Report& report = {});

/// `saltus section`.
struct SectionRequest {
  ModelOptions model;
  SolveOptions solve;  ///< `until` is an upper limit
  OutputOptions output;
  long count = 1000;    ///< points wanted
  long skip = 0;        ///< points left out before them
  std::string section;  ///< its name; empty: the only one
};

/// Points of a Poincaré or stroboscopic map.
Outcome section(const SectionRequest& request, const Report& report = {});

struct ExamplesOptions {
  std::string name;  ///< empty: list all
};

/// The gallery: a line per model, or the file of one.
Outcome examples(const ExamplesOptions& options);

}  // namespace saltus
