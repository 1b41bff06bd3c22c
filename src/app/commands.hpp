// One function per command. The command line, Python and the studio call these; none of them prints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/options.hpp"
#include "app/progress.hpp"
#include "flow/trajectory.hpp"

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

/// The text and the exit status of a command. Wrong input is thrown as Error instead.
struct Outcome {
  std::string text;  ///< for stdout
  Status status = Status::done;
  std::string talk = {};  ///< for stderr: warnings, and why a run ended badly where the text does not say it
};

Status status_of(const Error& error);
/// How the exit status follows from the way a run ended.
Status status_of(const End& end);

struct CheckOptions {
  enum class Style { text, json, latex };
  ModelOptions model;
  Style style = Style::text;
  bool quiet = false;  ///< only whether it is right
};

/// Describes a model: states, parameters, lowered equations, switches, constraints, jumps, sections.
Outcome check(const CheckOptions& options);

/// `saltus run`. (RunOptions are those of the engine.)
struct RunRequest {
  ModelOptions model;
  Solve solve;
  OutputOptions output;
  std::string sample = "smooth";      ///< times of the rows: "smooth", "steps", or an interval
  std::string store = "samples";      ///< "samples", or "pieces" for the dense output as well
  std::vector<std::string> measures;  ///< "mean(Pin)", ...
  std::string window;                 ///< "A:B": what tables, pictures and measures show; empty: all
  std::vector<std::string> over;      ///< further models, run alike and drawn into the same picture
  /// Derivatives of the end by the initial values and by these parameters (NAME,NAME; empty: all of them).
  std::optional<std::string> sensitivity;
};

/// One trajectory: tables, a picture, a summary or JSON; several where a parameter has several values (-p F=0.3,0.4).
Outcome run(const RunRequest& request, const Observer& observer = {});

/// `saltus section`.
struct SectionRequest {
  ModelOptions model;
  Solve solve;  ///< `until` is an upper limit
  OutputOptions output;
  long count = 1000;                 ///< points wanted
  long skip = 0;                     ///< points left out before them
  std::string section;               ///< its name; empty: the only one
  std::optional<std::string> level;  ///< where the function of a section `on` one is met, instead of zero
};

/// Points of a Poincaré or stroboscopic map.
Outcome section(const SectionRequest& request, const Observer& observer = {});

/// `saltus sweep`. What is not given has the default of the command.
struct SweepRequest {
  ModelOptions model;
  Solve solve;  ///< `until` is an upper limit
  OutputOptions output;
  std::vector<std::string> vary;      ///< one or two of NAME=a:b:n, NAME=v1,v2,..., NAME=@FILE; NAME may be a formula
  bool log = false;                   ///< equal ratios
  std::optional<long> random;         ///< random values instead
  std::optional<std::uint64_t> seed;  ///< of what is random (1)
  std::string section;                ///< its name; empty: the only one
  std::optional<long> skip;           ///< points left out (400; 0 with settle)
  long count = 100;                   ///< points recorded
  long settle = 0;                    ///< points at most until a period is found; 0: no such search
  long longest = 64;                  ///< period looked for
  std::vector<std::string> near;      ///< how near points of one phase are: NUMBER, or NAME=NUMBER
  std::vector<std::string> start;     ///< "random", or values of the states "1,2", or @FILE with a line of them each
  std::vector<std::string> box;       ///< NAME=a:b, for random starts
  std::optional<int> starts;          ///< random starts per value (1)
  std::vector<std::string> measures;  ///< "mean(P)", ... of each run
  std::string direction = "no";       ///< start from the attractor before: "no", "up", "down", "both"
  std::string colour;  ///< "none", "start", "sliding", "period", "exponent"; empty: start where there are several
};

/// Attractors against one parameter, or periods or largest Lyapunov exponents against two.
Outcome sweep(const SweepRequest& request, const Observer& observer = {});

/// `saltus basins`. What is not given has the default of the command.
struct BasinsRequest {
  ModelOptions model;  ///< initial values may use the varied states
  Solve solve;         ///< `until` is an upper limit
  OutputOptions output;
  std::vector<std::string> axes;      ///< NAME=a:b:n, NAME=@FILE or NAME=e0,e1,... (edges); NAME=a:b with `random`
  std::string method = "cells";       ///< "cells" or "direct"
  std::optional<std::string> join;    ///< cycles of cells: "nearest" (without it), "run", "touch", "touch:D", "none"
  bool refine = false;                ///< direct runs only near boundaries
  std::string section;                ///< its name; empty: the only one
  int period = 1;                     ///< points of the section in one application of the map
  std::optional<long> random;         ///< so many random points instead of a grid
  std::optional<std::uint64_t> seed;  ///< of what is random (1)
  long points = 5000;                 ///< of a direct run at most
  long longest = 64;                  ///< period looked for
  std::vector<std::string> near;      ///< how near points of one phase are: NUMBER, or NAME=NUMBER
  std::vector<Setting> at;            ///< the plane shown of a grid with more than two axes
};

/// Which initial states go to which attractor.
Outcome basins(const BasinsRequest& request, const Observer& observer = {});

/// `saltus orbit`.
struct OrbitRequest {
  ModelOptions model;
  Solve solve;  ///< `until`: length of the first run of a model without section
  OutputOptions output;
  std::string section;                ///< its name; empty: the only one, or none
  bool guess = false;                 ///< the initial values are near the orbit: no run first
  std::optional<int> period;          ///< returns to the section
  std::optional<std::string> time;    ///< or the time until it closes
  bool backward = false;              ///< backward in time
  bool equilibrium = false;           ///< a point instead
  std::vector<std::string> modulo;    ///< NAME=NUMBER: may grow by multiples of it
  std::optional<int> starts;          ///< random starts
  std::vector<std::string> box;       ///< NAME=a:b for them
  std::optional<std::uint64_t> seed;  ///< of what is random (1)
};

/// A periodic orbit or an equilibrium: period, multipliers, events.
Outcome orbit(const OrbitRequest& request, const Observer& observer = {});

/// `saltus follow`.
struct FollowRequest {
  OrbitRequest start;                  ///< model, how to compute, where results go, and what to start from
  std::vector<std::string> ranges;     ///< NAME=a:b, one or two; NAME may be a formula of a parameter
  std::string label;                   ///< of a special point of the past result given as model
  std::string seek;                    ///< TYPE=VALUE: what that label stands for, near the start,
  std::string of;                      ///< and the label
  bool all = false;                    ///< every branch found, recursively
  int points = 2000;                   ///< at most, each way
  std::optional<double> step;          ///< longest, as a share of the range
  std::optional<std::string> longest;  ///< a longer period counts as homoclinic
  std::string measure;                 ///< ordinate of the picture: NAME, max(NAME), min(NAME), period
  std::string over;                    ///< folder of a sweep, drawn below
};

/// Takes text that is known before a command ends.
using Print = std::function<void(const std::string&)>;

/// A branch of equilibria or orbits and its bifurcations; with two ranges the curve of a special point. Lines of its
/// table are printed as they are found, where `print` is given; the outcome then has the rest.
Outcome follow(const FollowRequest& request, const Observer& observer = {}, const Print& print = {});

/// `saltus exponents`.
struct ExponentsRequest {
  ModelOptions model;
  Solve solve;  ///< without `until`, and none in the model: until the errors are small
  OutputOptions output;
  std::string section;  ///< accepted: exponents are per unit of time, whatever the section
};

/// Lyapunov exponents of one run.
Outcome exponents(const ExponentsRequest& request, const Observer& observer = {});

/// `saltus phase`.
struct PhaseRequest {
  OrbitRequest orbit;               ///< model, how to compute, where results go, and which orbit
  std::vector<std::string> of;      ///< the states shown; empty: all
  std::vector<std::string> couple;  ///< "v += g*(other.v - v)"
  bool per_cycle = false;           ///< phases from 0 to 2 pi
};

/// Phase response of an oscillation, derivatives of its period, interaction of two copies.
Outcome phase(const PhaseRequest& request, const Observer& observer = {});

/// `saltus response`. Frequencies are in cycles per unit of time.
struct ResponseRequest {
  OrbitRequest orbit;                ///< model, how to compute, where results go, and about what
  std::vector<std::string> inputs;   ///< parameters, or named quantities to which a signal is added
  std::vector<std::string> outputs;  ///< states, named quantities, multipliers, formulas
  std::string loop;                  ///< a named quantity at which a loop is opened
  std::optional<std::string> from, to;
  int points = 200;
  int sideband = 0;  ///< harmonic of the orbit
};

/// Responses to small signals about an orbit or an equilibrium.
Outcome response(const ResponseRequest& request, const Observer& observer = {});

/// `saltus fit`.
struct FitRequest {
  ModelOptions model;
  Solve solve;
  OutputOptions output;
  std::vector<std::string> free;      ///< F, omega=0.1:3, y(0)
  std::vector<std::string> log;       ///< names of those varied by their logarithms
  std::vector<Setting> begin;         ///< where the search begins
  int starts = 1;                     ///< random ones as well
  std::optional<std::uint64_t> seed;  ///< of them (1)
  bool profile = false, robust = false;
};

/// Parameters and initial values from data.
Outcome fit(const FitRequest& request, const Observer& observer = {});

struct ExamplesOptions {
  std::string name;  ///< empty: list all
};

/// The gallery: a line per model, or the file of one.
Outcome examples(const ExamplesOptions& options);

/// `saltus studio`: its function is in the room `studio`, which main hands to the command line.
struct StudioOptions {
  std::string model = "dry_friction";  ///< a path, or a gallery model
  int port = 0;                        ///< 0: any free one
  bool browser = true;                 ///< open one
  Solve solve;                         ///< `threads` of sweeps and basins; 0: all cores but one
};

}  // namespace saltus
