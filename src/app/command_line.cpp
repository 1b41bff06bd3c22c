#include "app/command_line.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <span>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "analysis/work.hpp"
#include "app/commands.hpp"
#include "ask/gallery.hpp"
#include "ask/past.hpp"
#include "out/write.hpp"

namespace saltus {
namespace {

// ---- options that commands share -----------------------------------------------------------------------------------

void declare_settings(CLI::App& app, const char* flag, std::vector<Setting>& list, const std::string& type,
                      const std::string& what) {
  app.add_option_function<std::vector<std::string>>(
         flag,
         [flag, &list](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) list.push_back(read_setting(text, flag));
         },
         what)
      ->type_name(type)
      ->allow_extra_args(false);
}

void declare(CLI::App& app, ModelOptions& o) {
  app.add_option("MODEL", o.model, "model file, name of a gallery model, or - for standard input")
      ->required()
      ->type_name("");
  declare_settings(app, "-p", o.parameters, "NAME=VALUE", "another parameter value: -p F=0.3, -p omega=1/3");
  declare_settings(app, "-x", o.initial, "NAME=VALUE", "another initial value: -x v=0.1");
}

/// An option whose value is a number or a constant expression.
void declare_number(CLI::App& app, const std::string& flag, std::optional<double>& value, const std::string& what) {
  app.add_option_function<std::string>(
         flag, [flag, &value](const std::string& text) { value = read_number(text, flag); }, what)
      ->type_name("NUMBER");
}

int read_threads(const std::string& text) {
  int threads = 0;
  const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (trouble != std::errc() || end != text.data() + text.size() || threads < 1)
    throw Error(ErrorKind::usage, fmt::format("-j {}: no number of threads", text.empty() ? "''" : text), {},
                "give 1 or more; without -j all cores are used");
  return threads;
}

void declare_text(CLI::App& app, const std::string& flag, std::optional<std::string>& value, const std::string& type,
                  const std::string& what) {
  app.add_option_function<std::string>(
         flag, [&value](const std::string& text) { value = text; }, what)
      ->type_name(type);
}

/// What says how a run is computed; commands that one engine alone serves do not offer what belongs to the other.
enum class Serving { both_engines, event_driven };

void declare(CLI::App& app, SolveOptions& o, Serving serving = Serving::both_engines) {
  declare_text(app, "--from", o.from, "TIME", "start time (0)");
  declare_text(app, "--until", o.until, "TIME", "end time; below the start runs backward");
  declare_number(app, "--tolerance", o.tolerance, "local error allowed (1e-10)");
  declare_text(app, "--engine", o.engine, "event|step|both", "event-driven, time-stepping, or (run) compared");
  declare_number(app, "--dt", o.dt, "fixed step of the time-stepping engine");
  app.add_flag("--adaptive", o.adaptive, "time-stepping by --tolerance (so without --dt)");
  declare_number(app, "--theta", o.theta, "time-stepping: 0.5 accurate, 1 backward Euler (0.5)");
  app.add_option_function<std::string>(
         "-j", [&o](const std::string& text) { o.threads = read_threads(text); }, "threads (all cores)")
      ->type_name("N");
  app.add_option("--flow", o.flow, "smooth flow by Taylor series or an implicit method")->type_name("taylor|stiff");
  declare_settings(app, "--leave", o.leave, "NAME=+1|-1|0", "side to leave a surface to where several are possible");
  declare_number(app, "--attract", o.attract, "hold slid surfaces by the term -C h grad h instead of projection");
  app.add_option("--zeno", o.zeno, "where events accumulate: go on, or end there")->type_name("complete|stop");
  app.add_option("--native", o.native, "machine code in long runs, from the start, or never; the results are the same")
      ->type_name("auto|on|off");
  if (serving == Serving::both_engines) return;
  for (const char* other : {"--engine", "--dt", "--adaptive", "--theta", "--attract"}) app.get_option(other)->group("");
}

void declare(CLI::App& app, OutputOptions& o) {
  app.add_option("-o", o.folder, "folder for the results")->type_name("DIR");
  app.add_flag("--force", o.force, "replace the results that the folder holds");
  app.add_flag("--resume", o.resume)->group("");  // of 'again' alone
  app.add_option("--format", o.format, "data as csv or h5")->type_name("csv|h5");
  app.add_flag_callback(
      "--no-plot", [&o] { o.plot = false; }, "draw no picture");
  app.add_option("--plot", o.picture, "a further picture: .svg, .png or .pdf")->type_name("FILE");
  app.add_option("--show", o.show, "what to plot: names, sigma(SURFACE), x[1..5]; x:y a plane, x:y:z a curve in space")
      ->type_name("NAMES")
      ->allow_extra_args(false);
  app.add_option("--range", o.range, "what the axis of a quantity shows: --range y=-2:2")
      ->type_name("NAME=A:B")
      ->allow_extra_args(false);
  app.add_flag("--equal", o.equal, "units equally long on both axes of a plane");
  app.add_flag("--log-x", o.log_x, "logarithmic x axis");
  app.add_flag("--log-y", o.log_y, "logarithmic y axis");
  app.add_flag("--json", o.json, "one JSON document on stdout, no folder unless -o is given");
  app.add_flag("-q", o.quiet, "no summary, no progress");
}

// ---- the commands --------------------------------------------------------------------------------------------------

/// Declares the options of a command and gives the function that runs it once they are read.
using Prepare = std::function<Outcome()> (*)(CLI::App& app);

struct Command {
  std::string name;
  std::string arguments;
  std::string summary;
  Prepare prepare;
  bool ranks = false;  ///< the processes of an mpirun share the work
};

std::function<Outcome()> prepare_check(CLI::App& app) {
  const auto o = std::make_shared<CheckOptions>();
  declare(app, o->model);
  const auto style = [&](const char* flag, CheckOptions::Style s, const char* what) {
    return app.add_flag_callback(
        flag, [o, s] { o->style = s; }, what);
  };
  CLI::Option* json = style("--json", CheckOptions::Style::json, "as one JSON document");
  style("--latex", CheckOptions::Style::latex, "as LaTeX: the equations and a table of parameters")->excludes(json);
  app.add_flag("-q", o->quiet, "print nothing: the exit status says whether the model is right");
  return [o] { return check(*o); };
}

std::function<Outcome()> prepare_run(CLI::App& app) {
  const auto o = std::make_shared<RunRequest>();
  declare(app, o->model);
  declare(app, o->solve);
  app.add_option("--sample", o->sample, "rows every DT, or at steps and events only (as dense as curves bend)")
      ->type_name("DT|steps");
  app.add_option("--store", o->store, "keep rows only, or the dense output as well")->type_name("samples|pieces");
  declare_settings(app, "--parameter", o->model.parameters, "NAME=V1,V2..",
                   "the same as -p; both may give several values, for several runs in one picture");
  app.add_option("--over", o->over, "a further model, run alike and drawn into the same picture")
      ->type_name("MODEL")
      ->allow_extra_args(false);
  app.add_option_function<std::vector<std::string>>(
         "--sensitivity",
         [o](const std::vector<std::string>& names) { o->sensitivity = names.empty() ? "" : names.front(); },
         "derivatives of the end by initial values and by parameters: all, or F,omega")
      ->type_name("[NAMES]")
      ->expected(0, 1);
  declare(app, o->output);
  return [o] {
    Terminal terminal(o->output.quiet);
    return run(*o, terminal.report());
  };
}

std::function<Outcome()> prepare_section(CLI::App& app) {
  const auto o = std::make_shared<SectionRequest>();
  declare(app, o->model);
  app.add_option("-n,--points", o->count, "how many points (1000)")->type_name("N");
  app.add_option("--skip", o->skip, "points left out before them (0)")->type_name("M");
  app.add_option("--section", o->section, "which section, if there are several")->type_name("NAME");
  declare(app, o->solve);
  declare(app, o->output);
  return [o] {
    Terminal terminal(o->output.quiet);
    return section(*o, terminal.report());
  };
}

std::function<Outcome()> prepare_sweep(CLI::App& app) {
  const auto o = std::make_shared<SweepRequest>();
  declare(app, o->model);
  app.add_option("VALUES,--vary", o->vary, "omega=0.15:2:400, omega=1,2,3, omega=@FILE, 1/omega=0.5:7:400; or two")
      ->type_name("");
  app.add_flag("--log", o->log, "equal ratios instead of equal steps");
  app.add_option("--random", o->random, "so many random values instead: omega=0.15:2 --random 500")->type_name("N");
  app.add_option("--seed", o->seed, "of all that is random (1)")->type_name("S");
  app.add_option("-n,--points", o->count, "points recorded per run (100)")->type_name("N");
  app.add_option("--skip", o->skip, "points left out before them (400; 0 with --settle)")->type_name("M");
  app.add_option("--settle", o->settle, "go on until a period is found, but for N points at most")->type_name("N");
  app.add_option("--section", o->section, "which section, if there are several")->type_name("NAME");
  app.add_option("--longest", o->longest, "longest period looked for (64)")->type_name("P");
  app.add_option("--period-tolerance", o->near, "how near points of one phase are, for all or per state")
      ->type_name("D|NAME=D")
      ->allow_extra_args(false);
  app.add_option("--continue", o->direction, "start where the run of the value before ended")
      ->type_name("no|up|down|both");
  app.add_option("--start", o->start, "start at these states (repeat for several), or in --box")
      ->type_name("V1,V2..|@FILE|random")
      ->allow_extra_args(false);
  app.add_option("--box", o->box, "where random starts lie: --box y=-2:2,v=-1:1")
      ->type_name("NAME=A:B")
      ->allow_extra_args(false);
  app.add_option("--starts", o->starts, "random starts per value (1)")->type_name("K");
  app.add_option("--colour", o->colour, "of the dots (start, where there are several)")
      ->type_name("none|start|sliding|period|exponent");
  declare(app, o->solve);
  declare(app, o->output);
  return [o] {
    Terminal terminal(o->output.quiet || rank() > 0);
    return sweep(*o, terminal.report());
  };
}

std::function<Outcome()> prepare_basins(CLI::App& app) {
  const auto o = std::make_shared<BasinsRequest>();
  declare(app, o->model);
  declare_settings(app, "--initial", o->model.initial, "NAME=FORMULA",
                   "the same as -x; both may use the varied states: -x z=y+1");
  app.add_option("AXES,--axis", o->axes,
                 "the states varied: y=-2:2:400 (400 cells), y=@FILE or y=0,1,3 (edges of cells)")
      ->type_name("");
  app.add_option("--method", o->method, "map each cell once, or run each until it settles (cells)")
      ->type_name("cells|direct");
  app.add_option("--join", o->join, "which cycles of cells are one attractor (nearest)")
      ->type_name("nearest|run|touch[:D]|none");
  app.add_flag("--refine", o->refine, "with --method direct: run only cells near boundaries, fill in the others");
  app.add_option("--section", o->section, "which section, if there are several")->type_name("NAME");
  app.add_option("--period", o->period, "the map takes K points of the section (1)")->type_name("K");
  app.add_option("--random", o->random, "so many random points instead of a grid: y=-2:2 v=-2:2 --random 10000")
      ->type_name("N");
  app.add_option("--seed", o->seed, "of the random points (1)")->type_name("S");
  app.add_option("-n,--points", o->points, "points of a direct run at most (5000)")->type_name("N");
  app.add_option("--longest", o->longest, "longest period looked for (64)")->type_name("P");
  app.add_option("--period-tolerance", o->near,
                 "how near points of one phase are, for all or per state (1e-6 of its axis)")
      ->type_name("D|NAME=D")
      ->allow_extra_args(false);
  declare_settings(app, "--at", o->at, "NAME=VALUE", "with three axes or more: the plane shown (the middle)");
  declare(app, o->solve);
  declare(app, o->output);
  return [o] {
    Terminal terminal(o->output.quiet || rank() > 0);
    return basins(*o, terminal.report());
  };
}

std::function<Outcome()> prepare_orbit(CLI::App& app) {
  const auto o = std::make_shared<OrbitRequest>();
  declare(app, o->model);
  app.add_option("--section", o->section, "which section, if there are several")->type_name("NAME");
  app.add_flag("--guess", o->guess, "the initial values are near the orbit: no run first");
  app.add_option("--period", o->period, "it closes after N returns to the section")->type_name("N");
  declare_text(app, "--time", o->time, "TIME", "it closes after about this time");
  app.add_flag("--backward", o->backward, "settle and close backward in time: unstable orbits");
  app.add_flag("--equilibrium", o->equilibrium, "a point where the system rests instead");
  app.add_option("--modulo", o->modulo, "a state that grows by multiples of a number: th=2*pi")
      ->type_name("NAME=NUMBER")
      ->allow_extra_args(false);
  app.add_option("--starts", o->starts, "from so many random starts in --box: every orbit found")->type_name("K");
  app.add_option("--box", o->box, "where random starts lie: --box y=-2:2,v=-1:1")
      ->type_name("NAME=A:B")
      ->allow_extra_args(false);
  app.add_option("--seed", o->seed, "of the random starts (1)")->type_name("S");
  declare(app, o->solve, Serving::event_driven);
  declare(app, o->output);
  return [o] {
    Terminal terminal(o->output.quiet);
    return orbit(*o, terminal.report());
  };
}

std::function<Outcome()> prepare_follow(CLI::App& app) {
  const auto o = std::make_shared<FollowRequest>();
  OrbitRequest& start = o->start;
  declare(app, start.model);
  app.add_option("RANGE,--range-of", o->ranges, "NAME=A:B; NAME may be a formula of a parameter: 1/omega=1:6")
      ->required()
      ->type_name("NAME=A:B");
  app.add_option("--section", start.section, "which section, if there are several")->type_name("NAME");
  app.add_flag("--guess", start.guess, "the initial values are near the start: no run first");
  app.add_option("--period", start.period, "the orbit closes after N returns to the section")->type_name("N");
  declare_text(app, "--time", start.time, "TIME", "it closes after about this time");
  app.add_flag("--backward", start.backward, "orbits found backward in time");
  app.add_flag("--equilibrium", start.equilibrium, "equilibria instead of orbits");
  app.add_option("--modulo", start.modulo, "a state that grows by multiples of a number: th=2*pi")
      ->type_name("NAME=NUMBER")
      ->allow_extra_args(false);
  app.add_option("--label", o->label, "start from this special point of the result given as MODEL")->type_name("LABEL");
  app.add_option("--seek", o->seek)->group("");  // of 'again' alone
  app.add_flag("--all", o->all, "every branch that begins at a special point as well");
  app.add_option("--points", o->points, "at most so many each way (2000)")->type_name("N");
  declare_number(app, "--step", o->step, "longest step, as a share of the range (0.02)");
  declare_text(app, "--longest-time", o->longest, "TIME", "a longer period counts as homoclinic (100 of the first)");
  app.add_option("--measure", o->measure, "ordinate of the picture")->type_name("NAME|max(NAME)|min(NAME)|period");
  app.add_option("--over", o->over, "draw it over this sweep")->type_name("DIR");
  declare(app, start.solve, Serving::event_driven);
  declare(app, start.output);
  app.get_option("--show")->group("");  // --measure
  return [o] {
    Terminal terminal(o->start.output.quiet);
    return follow(*o, terminal.report());
  };
}

std::function<Outcome()> prepare_exponents(CLI::App& app) {
  const auto o = std::make_shared<ExponentsRequest>();
  declare(app, o->model);
  app.add_option("--section", o->section, "a section of the model; exponents are per unit of time all the same")
      ->type_name("NAME");
  declare(app, o->solve, Serving::event_driven);
  declare(app, o->output);
  return [o] {
    Terminal terminal(o->output.quiet);
    return exponents(*o, terminal.report());
  };
}

struct AgainOptions {
  std::string file;
  std::string folder;
  bool force = false, json = false, quiet = false;
};

Outcome again(AgainOptions options);

std::function<Outcome()> prepare_again(CLI::App& app) {
  const auto o = std::make_shared<AgainOptions>();
  app.add_option("FILE", o->file, "the run.toml of a past result, or its folder")->required()->type_name("");
  app.add_option("-o", o->folder, "folder for the results")->type_name("DIR");
  app.add_flag("--force", o->force, "replace the results that the folder holds");
  app.add_flag("--json", o->json, "one JSON document on stdout, no folder unless -o is given");
  app.add_flag("-q", o->quiet, "no summary, no progress");
  return [o] { return again(*o); };
}

/// Given to `command_line`.
Studio& given_studio() {
  static Studio studio;
  return studio;
}

std::function<Outcome()> prepare_studio(CLI::App& app) {
  const auto o = std::make_shared<StudioOptions>();
  app.add_option("MODEL", o->model, "model file, or name of a gallery model (dry_friction)")->type_name("");
  app.add_option("--port", o->port, "port on 127.0.0.1 (any free one)")->type_name("N")->check(CLI::Range(0, 65535));
  app.add_flag_callback(
      "--no-browser", [o] { o->browser = false; }, "print the link only");
  app.add_option_function<std::string>(
         "-j", [o](const std::string& text) { o->threads = read_threads(text); }, "threads (all cores but one)")
      ->type_name("N");
  return [o] {
    if (!given_studio()) throw Error(ErrorKind::usage, "this program was built without the studio");
    return given_studio()(*o);
  };
}

std::function<Outcome()> prepare_examples(CLI::App& app) {
  const auto o = std::make_shared<ExamplesOptions>();
  app.add_option("NAME", o->name, "the model to print; without it, all are listed")->type_name("");
  return [o] { return examples(*o); };
}

const std::vector<Command>& commands() {
  static const std::vector<Command> all{
      {"check", "MODEL", "what the model is: equations, switches, constraints, sections", prepare_check},
      {"run", "MODEL", "one trajectory: tables, picture, summary", prepare_run},
      {"section", "MODEL", "points of a Poincaré or stroboscopic map", prepare_section},
      {"sweep", "MODEL VALUES", "attractors against a parameter: bifurcation diagram, map of periods", prepare_sweep,
       true},
      {"basins", "MODEL AXES", "which initial states go to which attractor", prepare_basins, true},
      {"orbit", "MODEL", "a periodic orbit or an equilibrium: period, multipliers, events", prepare_orbit},
      {"follow", "MODEL RANGE", "the branch of an orbit or equilibrium in a parameter, and its bifurcations",
       prepare_follow},
      {"exponents", "MODEL", "Lyapunov exponents, with their errors", prepare_exponents},
      {"again", "run.toml", "repeat a past result, or finish one that was interrupted", prepare_again, true},
      {"studio", "[MODEL]", "the same in a browser: type equations, drag parameters, watch", prepare_studio},
      {"examples", "[NAME]", "the gallery: list it, or print one model", prepare_examples},
  };
  return all;
}

// ---- help ----------------------------------------------------------------------------------------------------------

std::string general_help() {
  std::string out = "saltus simulates and analyses nonsmooth dynamical systems written as on paper.\n\n";
  out += "usage: saltus COMMAND [ARGUMENTS]\n\n";
  const auto row = [&](const std::string& left, const std::string& right) {
    out += fmt::format("  {:22}{}\n", left, right);
  };
  for (const Command& c : commands()) row(c.name + " " + c.arguments, c.summary);
  row("help COMMAND", "the options of a command");
  out += "\n";
  row("--version", "the version");
  row("--help", "this page");
  out += "\nStart with 'saltus examples', then 'saltus run dry_friction'.\n";
  return out;
}

std::string command_help(const Command& command, const CLI::App& app) {
  std::string out =
      fmt::format("usage: saltus {} {} [OPTIONS]\n{}\n\n", command.name, command.arguments, command.summary);
  const auto row = [&](const CLI::Option& option) {
    std::string left = option.get_positional() ? option.get_name(true) : option.get_name(false, true);
    std::replace(left.begin(), left.end(), ',', ' ');
    if (!option.get_type_name().empty()) left += " " + option.get_type_name();
    if (left.size() > 21) left += fmt::format("\n{:24}", "");
    out += fmt::format("  {:22}{}\n", left, option.get_description());
  };
  for (const CLI::Option* option : app.get_options()) {
    if (option != app.get_help_ptr() && !option->get_group().empty()) row(*option);
  }
  row(*app.get_help_ptr());
  return out;
}

// ---- reading the line ----------------------------------------------------------------------------------------------

[[noreturn]] void misuse(std::string message, std::string hint) {
  throw Error(ErrorKind::usage, std::move(message), {}, std::move(hint));
}

const Command& find_command(const std::string& name) {
  const auto found =
      std::find_if(commands().begin(), commands().end(), [&](const Command& c) { return c.name == name; });
  if (found != commands().end()) return *found;
  std::vector<std::string> known{"help", "--help", "--version"};
  for (const Command& c : commands()) known.push_back(c.name);
  const std::string near = nearest_name(name, known);
  const std::string kind = name.starts_with('-') ? "option" : "command";
  if (!near.empty()) misuse(fmt::format("unknown {} '{}'", kind, name), fmt::format("did you mean 'saltus {}'?", near));
  const bool is_model = name.ends_with(".toml") || find_in_gallery(name);
  misuse(fmt::format("unknown {} '{}'", kind, name),
         is_model ? fmt::format("did you mean 'saltus check {}'?", name) : "'saltus --help' lists the commands");
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// The complaint about arguments that nothing took, in our words.
[[noreturn]] void complain_about(const std::string& argument, const Command& command, const CLI::App& app) {
  const std::string help = fmt::format("'saltus help {}' lists what it takes", command.name);
  if (!argument.starts_with('-')) misuse(fmt::format("'saltus {}' does not take '{}'", command.name, argument), help);
  const std::string name = argument.substr(0, argument.find('='));
  const std::string near = nearest_name(name, option_names(app));
  misuse(fmt::format("unknown option '{}'", name), near.empty() ? help : fmt::format("did you mean '{}'?", near));
}

Outcome run_command(const Command& command, std::vector<std::string> arguments) {
  CLI::App app;
  app.set_help_flag("-h,--help", "this page");
  const auto run = command.prepare(app);
  try {
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    return {command_help(command, app)};
  } catch (const CLI::ParseError& error) {
    if (const auto rest = app.remaining(); !rest.empty()) complain_about(rest.front(), command, app);
    misuse(fmt::format("saltus {}: {}", command.name, error.what()),
           fmt::format("usage: saltus {} {} [OPTIONS]; 'saltus help {}' lists them", command.name, command.arguments,
                       command.name));
  }
  if (rank() > 0 && !command.ranks) return {};
  return run();
}

/// The recorded command line, with the file itself as the model.
Outcome again(AgainOptions options) {
  if (std::error_code ignored; std::filesystem::is_directory(options.file, ignored))
    options.file = (std::filesystem::path(options.file) / "run.toml").string();
  const auto past = read_past(options.file);
  if (!past) {
    std::error_code unknown;
    if (!std::filesystem::exists(options.file, unknown))
      throw Error(ErrorKind::file, fmt::format("'{}' does not exist", options.file), {},
                  "give the folder of a result, or the run.toml in it");
    misuse(fmt::format("'{}' is not the run.toml of a result", options.file),
           "every result folder holds one: saltus again dry_friction-run-001/run.toml");
  }
  if (past->command == "again")
    misuse(fmt::format("'{}' says that it repeats itself: its command is 'again'", options.file),
           "take a run.toml as saltus wrote it");
  std::vector<std::string> arguments = arguments_of(*past, options.file);
  std::string folder = options.folder;
  const std::filesystem::path home = std::filesystem::path(options.file).parent_path();
  const std::vector<std::string> changed = changed_files(*past);
  std::error_code ignored;
  if (std::filesystem::exists(home / "checkpoint", ignored) &&
      (folder.empty() || std::filesystem::equivalent(folder, home.empty() ? "." : home, ignored))) {
    if (!changed.empty())
      throw Error(ErrorKind::file, fmt::format("'{}' has changed since this was begun", changed[0]), {},
                  "put the old file back to finish it, or begin anew with another folder");
    folder = home.empty() ? "." : home.string();  // to be finished, not repeated
    arguments.push_back("--resume");
  }
  if (!folder.empty()) arguments.push_back("-o" + folder);
  if (options.force) arguments.push_back("--force");
  if (options.json) arguments.push_back("--json");
  if (options.quiet) arguments.push_back("-q");
  Outcome outcome = run_command(find_command(past->command), std::move(arguments));
  for (const std::string& file : changed)
    outcome.talk += fmt::format("'{}' has changed since: this is another result\n", file);
  if (past->version != this_version())
    outcome.talk +=
        fmt::format("made by saltus {}, repeated by {}: last digits may differ\n", past->version, this_version());
  return outcome;
}

Outcome dispatch(std::vector<std::string> arguments) {
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") return {general_help()};
  if (arguments[0] == "--version") return {"saltus " SALTUS_VERSION "\n"};
  if (arguments[0] == "help") {
    if (arguments.size() == 1) return {general_help()};
    arguments = {arguments[1], "--help"};
  }
  const Command& command = find_command(arguments[0]);
  return run_command(command, {arguments.begin() + 1, arguments.end()});
}

/// Whether this is not the process that talks. One that cannot even tell, talks.
bool is_silent() {
  try {
    return rank() > 0;
  } catch (...) {
    return false;
  }
}

/// What is being thrown, in words; gives the exit status.
int tell_trouble(std::ostream& talk) {
  Status status = Status::ended_badly;
  try {
    throw;
  } catch (const Error& error) {
    talk << as_flags(error.report());
    status = status_of(error);
  } catch (const std::bad_alloc&) {
    talk << "there is not enough memory for this\nask for less: fewer points or cells, a shorter time\n";
  } catch (const std::filesystem::filesystem_error& error) {
    talk << fmt::format("cannot use '{}': {}\n", error.path1().string(), error.code().message());
    status = Status::file_trouble;
  } catch (const std::exception& error) {
    talk << fmt::format("saltus failed: {}\nthis is a mistake in saltus, not yours: please report it\n", error.what());
  } catch (...) {
    talk << "saltus failed\nthis is a mistake in saltus, not yours: please report it\n";
  }
  talk << std::flush;
  return static_cast<int>(status);
}

}  // namespace

int command_line(std::vector<std::string> arguments, std::ostream& out, std::ostream& talk, Studio studio) {
  given_studio() = std::move(studio);
  try {
    const Outcome outcome = dispatch(std::move(arguments));
    if (rank() > 0) return 0;  // rank 0 speaks for all
    out << as_flags(outcome.text) << std::flush;
    talk << as_flags(outcome.talk) << std::flush;
    if (!out) throw Error(ErrorKind::file, "cannot write the results to the standard output");
    return static_cast<int>(outcome.status);
  } catch (...) {
    if (is_silent()) return 0;
    return tell_trouble(talk);
  }
}

}  // namespace saltus
