#include "app/command_line.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <new>
#include <span>
#include <system_error>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "analysis/work.hpp"
#include "app/commands.hpp"
#include "app/completion.hpp"
#include "app/manual.hpp"
#include "ask/gallery.hpp"
#include "ask/option_table.hpp"
#include "ask/past.hpp"
#include "out/write.hpp"

namespace saltus {
namespace {

// ---- options -------------------------------------------------------------------------------------------------------

/// Declares options of a command as the table describes them; one that the command does not take is left out.
class Declare {
 public:
  Declare(CLI::App& app, std::string_view command, std::ostream& out) : app_(app), command_(command), out_(out) {}

  CLI::App& app() const { return app_; }
  /// Where results go.
  std::ostream& out() const { return out_; }
  /// The place of an argument that has no flag.
  Declare& place(const std::string& name, std::string& value, const std::string& what, bool required = true) {
    app_.add_option(name, value, what)->required(required)->type_name("");
    return *this;
  }
  template <class T>
  Declare& value(std::string_view name, T& value) {
    add(name, [&](const OptionFact& o) { return app_.add_option(std::string(o.flags), value, o.words()); });
    return *this;
  }
  /// A folder that is named; without the option the next free one.
  Declare& folder(std::string& value) {
    return function("folder", [&value](const std::string& text) {
      if (text.empty())
        throw Error(ErrorKind::usage, "`folder` is empty", {},
                    "name a folder: -o results; without -o the next free one is taken");
      value = text;
    });
  }
  Declare& text(std::string_view name, std::optional<std::string>& value) {
    return function(name, [&value](const std::string& text) { value = text; });
  }
  /// A number or a constant expression.
  Declare& number(std::string_view name, std::optional<double>& value) {
    return function(name, [name, &value](const std::string& text) {
      value = read_number(text, fmt::format("`{}`", name));
      check_range(name, *value);
    });
  }
  Declare& flag(std::string_view name, bool& value, bool means = true) {
    add(name, [&](const OptionFact& o) {
      return app_.add_flag_callback(
          std::string(o.flags), [&value, means] { value = means; }, o.words());
    });
    return *this;
  }
  Declare& list(std::string_view name, std::vector<std::string>& values) {
    add(name, [&](const OptionFact& o) {
      CLI::Option* option = app_.add_option(std::string(o.flags), values, o.words());
      return o.flags.starts_with('-') ? option->allow_extra_args(false) : option;
    });
    return *this;
  }
  Declare& settings(std::string_view name, std::vector<Setting>& values) {
    each(name, [&](const OptionFact& o) {
      return app_
          .add_option_function<std::vector<std::string>>(
              std::string(o.flags),
              [flag = o.flag(), &values](const std::vector<std::string>& texts) {
                for (const std::string& text : texts) values.push_back(read_setting(text, flag));
              },
              o.words())
          ->allow_extra_args(false);
    });
    return *this;
  }
  /// One of how to compute.
  Declare& solve(const std::string& name, Solve& solve) {
    add(name, [&](const OptionFact& o) -> CLI::Option* {
      const std::string flags(o.flags);
      if (o.type.empty())
        return app_.add_flag_callback(
            flags, [&solve, name] { solve.give(name, ""); }, o.words());
      const auto give = [&solve, name](const std::vector<std::string>& texts) {
        for (const std::string& text : texts) solve.give(name, text);
      };
      CLI::Option* option = app_.add_option_function<std::vector<std::string>>(flags, give, o.words());
      return o.repeats() ? option->allow_extra_args(false) : option->expected(1);
    });
    return *this;
  }
  /// One whose value may be left out.
  Declare& names(std::string_view name, std::optional<std::string>& value) {
    add(name, [&](const OptionFact& o) {
      return app_
          .add_option_function<std::vector<std::string>>(
              std::string(o.flags),
              [&value](const std::vector<std::string>& given) { value = given.empty() ? "" : given.front(); },
              o.words())
          ->expected(0, 1);
    });
    return *this;
  }

 private:
  template <class Make>
  void finish(const OptionFact& o, const Make& make) {
    CLI::Option* option = make(o);
    if (!o.type.empty()) option->type_name(std::string(o.type));
    if (o.type.empty() && !o.flags.starts_with('-')) option->type_name("");
    if (o.sentence.empty()) option->group("");
  }
  template <class Make>
  void add(std::string_view name, const Make& make) {
    if (const OptionFact* o = find_option(name, command_)) finish(*o, make);
  }
  /// Every row of that name: -p and --parameter.
  template <class Make>
  void each(std::string_view name, const Make& make) {
    for (const OptionFact& o : option_table()) {
      if (o.name == name && o.applies_to(command_)) finish(o, make);
    }
  }
  template <class Read>
  Declare& function(std::string_view name, const Read& read) {
    add(name, [&](const OptionFact& o) {
      return app_.add_option_function<std::string>(std::string(o.flags), read, o.words());
    });
    return *this;
  }

  CLI::App& app_;
  std::string_view command_;
  std::ostream& out_;
};

void declare(Declare& d, ModelOptions& o) {
  d.place("MODEL", o.model, "model file, name of a gallery model, or - for standard input");
  d.settings("parameter", o.parameters).settings("initial", o.initial);
}

void declare(Declare& d, Solve& o) {
  for (const SolveOption& option : solve_options()) d.solve(option.name, o);
}

void declare(Declare& d, OutputOptions& o) {
  d.folder(o.folder).flag("force", o.force).flag("resume", o.resume).value("format", o.format);
  d.flag("no-plot", o.plot, false).value("plot", o.picture).list("show", o.show).list("range", o.range);
  d.flag("equal", o.equal).flag("log-x", o.log_x).flag("log-y", o.log_y).flag("json", o.json).flag("quiet", o.quiet);
}

// ---- the commands --------------------------------------------------------------------------------------------------

/// Declares the options of a command and gives the function that runs it once they are read.
using Prepare = std::function<Outcome()> (*)(Declare& d);

struct Command {
  std::string name;
  std::string arguments;
  std::string summary;
  Prepare prepare;
  bool ranks = false;  ///< the processes of an mpirun share the work
};

std::function<Outcome()> prepare_check(Declare& d) {
  const auto o = std::make_shared<CheckOptions>();
  const auto json = std::make_shared<bool>(false), latex = std::make_shared<bool>(false);
  declare(d, o->model);
  d.flag("json", *json).flag("latex", *latex).flag("quiet", o->quiet);
  return [o, json, latex] {
    if (*json && *latex)
      throw Error(ErrorKind::usage, "`json` and `latex` exclude each other", {}, "ask for one of them");
    if (*json) o->style = CheckOptions::Style::json;
    if (*latex) o->style = CheckOptions::Style::latex;
    return check(*o);
  };
}

std::function<Outcome()> prepare_run(Declare& d) {
  const auto o = std::make_shared<RunRequest>();
  declare(d, o->model);
  declare(d, o->solve);
  d.list("measure", o->measures)
      .value("window", o->window)
      .value("sample", o->sample)
      .value("store", o->store)
      .list("over", o->over)
      .names("sensitivity", o->sensitivity);
  declare(d, o->output);
  return [o] {
    Terminal terminal(o->output.quiet);
    return run(*o, terminal.observer());
  };
}

std::function<Outcome()> prepare_section(Declare& d) {
  const auto o = std::make_shared<SectionRequest>();
  declare(d, o->model);
  d.value("points", o->count).value("skip", o->skip).value("section", o->section).value("level", o->level);
  declare(d, o->solve);
  declare(d, o->output);
  return [o] {
    Terminal terminal(o->output.quiet);
    return section(*o, terminal.observer());
  };
}

std::function<Outcome()> prepare_sweep(Declare& d) {
  const auto o = std::make_shared<SweepRequest>();
  declare(d, o->model);
  d.list("vary", o->vary).flag("log", o->log).value("random", o->random).value("seed", o->seed);
  d.value("points", o->count).value("skip", o->skip).value("settle", o->settle).value("section", o->section);
  d.value("longest", o->longest).list("period-tolerance", o->near).value("continue", o->direction);
  d.list("measure", o->measures);
  d.list("start", o->start).list("box", o->box).value("starts", o->starts).value("colour", o->colour);
  declare(d, o->solve);
  declare(d, o->output);
  return [o] {
    Terminal terminal(o->output.quiet || rank() > 0);
    return sweep(*o, terminal.observer());
  };
}

std::function<Outcome()> prepare_basins(Declare& d) {
  const auto o = std::make_shared<BasinsRequest>();
  declare(d, o->model);
  d.list("axis", o->axes).value("method", o->method).value("join", o->join).flag("refine", o->refine);
  d.value("section", o->section).value("period", o->period).value("random", o->random).value("seed", o->seed);
  d.value("points", o->points).value("longest", o->longest).list("period-tolerance", o->near).settings("at", o->at);
  declare(d, o->solve);
  declare(d, o->output);
  return [o] {
    Terminal terminal(o->output.quiet || rank() > 0);
    return basins(*o, terminal.observer());
  };
}

void declare_search(Declare& d, OrbitRequest& o) {
  d.value("section", o.section).flag("guess", o.guess).value("period", o.period).text("time", o.time);
  d.flag("backward", o.backward).flag("equilibrium", o.equilibrium).list("modulo", o.modulo);
}

std::function<Outcome()> prepare_orbit(Declare& d) {
  const auto o = std::make_shared<OrbitRequest>();
  declare(d, o->model);
  declare_search(d, *o);
  d.value("starts", o->starts).list("box", o->box).value("seed", o->seed);
  declare(d, o->solve);
  declare(d, o->output);
  return [o] {
    Terminal terminal(o->output.quiet || rank() > 0);
    return orbit(*o, terminal.observer());
  };
}

std::function<Outcome()> prepare_follow(Declare& d) {
  const auto o = std::make_shared<FollowRequest>();
  declare(d, o->start.model);
  d.list("range-of", o->ranges);
  declare_search(d, o->start);
  d.value("label", o->label).value("seek", o->seek).value("of", o->of).flag("all", o->all).value("points", o->points);
  d.number("step", o->step).text("longest-time", o->longest).value("measure", o->measure).value("over", o->over);
  declare(d, o->start.solve);
  declare(d, o->start.output);
  return [o, &out = d.out()] {
    Terminal terminal(o->start.output.quiet);
    return follow(*o, terminal.observer(), [&](const std::string& line) {
      terminal.clear();
      out << as_flags(line) << std::flush;
    });
  };
}

std::function<Outcome()> prepare_exponents(Declare& d) {
  const auto o = std::make_shared<ExponentsRequest>();
  declare(d, o->model);
  d.value("section", o->section);
  declare(d, o->solve);
  declare(d, o->output);
  return [o] {
    Terminal terminal(o->output.quiet);
    return exponents(*o, terminal.observer());
  };
}

std::function<Outcome()> prepare_phase(Declare& d) {
  const auto o = std::make_shared<PhaseRequest>();
  declare(d, o->orbit.model);
  declare_search(d, o->orbit);
  d.list("of", o->of).list("couple", o->couple).flag("per-cycle", o->per_cycle);
  declare(d, o->orbit.solve);
  declare(d, o->orbit.output);
  return [o] {
    Terminal terminal(o->orbit.output.quiet);
    return phase(*o, terminal.observer());
  };
}

std::function<Outcome()> prepare_response(Declare& d) {
  const auto o = std::make_shared<ResponseRequest>();
  declare(d, o->orbit.model);
  declare_search(d, o->orbit);
  d.list("input", o->inputs).list("output", o->outputs).value("loop", o->loop);
  d.text("lowest", o->from).text("highest", o->to).value("points", o->points).value("sideband", o->sideband);
  declare(d, o->orbit.solve);
  declare(d, o->orbit.output);
  return [o] {
    Terminal terminal(o->orbit.output.quiet);
    return response(*o, terminal.observer());
  };
}

std::function<Outcome()> prepare_fit(Declare& d) {
  const auto o = std::make_shared<FitRequest>();
  declare(d, o->model);
  d.list("free", o->free).list("log-of", o->log).settings("begin", o->begin).value("starts", o->starts);
  d.value("seed", o->seed).flag("profile", o->profile).flag("robust", o->robust);
  declare(d, o->solve);
  declare(d, o->output);
  return [o] {
    Terminal terminal(o->output.quiet);
    return fit(*o, terminal.observer());
  };
}

struct AgainOptions {
  std::string file;
  std::string folder;
  bool force = false, json = false, quiet = false;
};

Outcome again(AgainOptions options, std::ostream& out);

std::function<Outcome()> prepare_again(Declare& d) {
  const auto o = std::make_shared<AgainOptions>();
  d.place("FILE", o->file, "the run.toml of a past result, or its folder");
  d.folder(o->folder).flag("force", o->force).flag("json", o->json).flag("quiet", o->quiet);
  return [o, &out = d.out()] { return again(*o, out); };
}

/// Given to `command_line`.
Studio& given_studio() {
  static Studio studio;
  return studio;
}

std::function<Outcome()> prepare_studio(Declare& d) {
  const auto o = std::make_shared<StudioOptions>();
  d.place("MODEL", o->model, "model file, or name of a gallery model (dry_friction)", false);
  d.value("port", o->port).flag("no-browser", o->browser, false).solve("threads", o->solve);
  return [o] {
    check_range("port", o->port);
    if (!given_studio()) throw Error(ErrorKind::usage, "this program was built without the studio");
    return given_studio()(*o);
  };
}

std::function<Outcome()> prepare_examples(Declare& d) {
  const auto o = std::make_shared<ExamplesOptions>();
  d.place("NAME", o->name, "the model to print; without it, all are listed", false);
  return [o] { return examples(*o); };
}

std::function<Outcome()> prepare_completion(Declare& d) {
  const auto shell = std::make_shared<std::string>();
  d.place("SHELL", *shell, "bash, zsh or fish");
  return [shell]() -> Outcome {
    if (const auto script = completion_script(*shell)) return {*script};
    misuse(fmt::format("no completion for the shell '{}'", *shell), "there is one for bash, zsh and fish");
  };
}

const std::vector<Command>& commands() {
  static const std::vector<Command> all{
      {"check", "MODEL", "what the model is: equations, switches, constraints, sections", prepare_check},
      {"run", "MODEL", "one trajectory: tables, picture, summary", prepare_run},
      {"section", "MODEL", "points of a Poincaré or stroboscopic map", prepare_section},
      {"sweep", "MODEL VALUES", "attractors against a parameter: bifurcation diagram, map of periods", prepare_sweep,
       true},
      {"basins", "MODEL AXES", "which initial states go to which attractor", prepare_basins, true},
      {"orbit", "MODEL", "a periodic orbit or an equilibrium: period, multipliers, events", prepare_orbit, true},
      {"follow", "MODEL RANGE", "the branch of an orbit or equilibrium in a parameter, and its bifurcations",
       prepare_follow},
      {"exponents", "MODEL", "Lyapunov exponents, with their errors", prepare_exponents},
      {"phase", "MODEL", "phase response of an oscillation, derivatives of its period, locking of two copies",
       prepare_phase},
      {"response", "MODEL", "small signals about an orbit or equilibrium: transfer functions, loop gain, means",
       prepare_response},
      {"fit", "MODEL NAMES", "parameters and initial values from data, through events", prepare_fit},
      {"again", "run.toml", "repeat a past result, or finish one that was interrupted", prepare_again, true},
      {"studio", "[MODEL]", "the same in a browser: type equations, drag parameters, watch", prepare_studio},
      {"examples", "[NAME]", "the gallery: list it, or print one model", prepare_examples},
      {"completion", "SHELL", "a script that completes commands, options, models and names: bash, zsh or fish",
       prepare_completion},
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
  row("help options", "all of them");
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

/// A command as data, from what CLI11 has been told.
KnownCommand known(const Command& command) {
  CLI::App app;
  app.set_help_flag("-h,--help", "this page");
  Declare declare(app, command.name, std::cout);
  command.prepare(declare);
  KnownCommand k{command.name, command.arguments, command.summary, {}};
  for (const CLI::Option* option : app.get_options()) {
    KnownOption o{.place = option->get_positional() ? option->get_name(true, false) : "",
                  .type = option->get_type_name(),
                  .sentence = option->get_description(),
                  .values = option->get_items_expected_max(),
                  .listed = !option->get_group().empty()};
    for (const std::string& name : option->get_snames()) o.flags.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) o.flags.push_back("--" + name);
    k.options.push_back(std::move(o));
  }
  return k;
}

std::vector<KnownCommand> known_commands() {
  std::vector<KnownCommand> all;
  for (const Command& c : commands()) all.push_back(known(c));
  return all;
}

/// For scripts of shells: a candidate for the last word in each line, behind a tab what it means.
std::string candidates_for(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& [word, sentence] : candidates(known_commands(), words))
    out += fmt::format("{}\t{}\n", word, sentence);
  return out;
}

/// For the installation: manual pages and scripts of shells, in an existing folder.
void write_pages(const std::filesystem::path& folder) {
  const std::vector<KnownCommand> all = known_commands();
  write_text(folder / "saltus.1", manual_page(all, SALTUS_VERSION));
  for (const KnownCommand& c : all)
    write_text(folder / fmt::format("saltus-{}.1", c.name), manual_page(c, SALTUS_VERSION));
  for (const auto& [shell, name] : {std::pair{"bash", "saltus"}, {"zsh", "_saltus"}, {"fish", "saltus.fish"}})
    write_text(folder / name, *completion_script(shell));
}

// ---- reading the line ----------------------------------------------------------------------------------------------

const Command& find_command(const std::string& name) {
  const auto found =
      std::find_if(commands().begin(), commands().end(), [&](const Command& c) { return c.name == name; });
  if (found != commands().end()) return *found;
  std::vector<std::string> known{"help", "--help", "--version"};
  for (const Command& c : commands()) known.push_back(c.name);
  constexpr std::array<std::pair<std::string_view, std::string_view>, 12> meanings{
      {{"bifurcation", "sweep' or 'saltus follow"},
       {"continue", "follow"},
       {"continuation", "follow"},
       {"branch", "follow"},
       {"poincare", "section"},
       {"strobe", "section"},
       {"simulate", "run"},
       {"solve", "run"},
       {"plot", "run"},
       {"lyapunov", "exponents"},
       {"equilibrium", "orbit --equilibrium"},
       {"attractors", "basins' or 'saltus sweep"}}};
  for (const auto& [word, meant] : meanings) {
    if (name == word) misuse(fmt::format("unknown command '{}'", name), fmt::format("that is 'saltus {}'", meant));
  }
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

/// All options of all commands, a line each.
std::string options_page() {
  std::string out;
  for (const OptionFact& o : option_table()) {
    if (o.sentence.empty()) continue;
    std::string left(o.flags);
    std::replace(left.begin(), left.end(), ',', ' ');
    if (!o.type.empty()) left += fmt::format(" {}", o.type);
    if (left.size() > 29) left += fmt::format("\n{:30}", "");
    const std::string range = o.range ? fmt::format("; {} to {}", o.range->first, o.range->second) : "";
    out += fmt::format("{:30}{}{}\n{:30}{}\n", left, o.words(), range, "", o.commands);
  }
  return out;
}

/// The complaint about arguments that nothing took, in our words.
[[noreturn]] void complain_about(const std::string& argument, const Command& command, const CLI::App& app) {
  const std::string help = fmt::format("'saltus help {}' lists what it takes", command.name);
  if (!argument.starts_with('-')) {
    const std::vector<std::string> taken = option_names(app);
    const bool sets =
        argument.find('=') != std::string::npos && std::find(taken.begin(), taken.end(), "-p") != taken.end();
    misuse(fmt::format("'saltus {}' does not take '{}'", command.name, argument),
           sets ? fmt::format("a parameter is given with -p {0}, an initial value with -x {0}", argument) : help);
  }
  const std::string name = argument.substr(0, argument.find('='));
  if (const std::string others = commands_with(name); !others.empty())
    misuse(fmt::format("{} does not apply to 'saltus {}'", name, command.name),
           fmt::format("leave it out; commands that take it: {}", others));
  const std::string near = nearest_name(name, option_names(app));
  misuse(fmt::format("unknown option '{}'", name), near.empty() ? help : fmt::format("did you mean '{}'?", near));
}

/// The complaint about an option with too few or too many values.
[[noreturn]] void complain_about_values(const CLI::ArgumentMismatch& error, const CLI::App& app) {
  const std::string what = error.what(), name = what.substr(0, what.find(':'));
  const CLI::Option* option = app.get_option_no_throw(name);
  if (option && option->count() > 1) misuse(fmt::format("{} is given more than once", name), "give it once");
  misuse(fmt::format("{} needs a value", name),
         option ? fmt::format("write {} {}", name, option->get_type_name()) : "give one");
}

Outcome run_command(const Command& command, std::vector<std::string> arguments, std::ostream& out) {
  CLI::App app;
  app.set_help_flag("-h,--help", "this page");
  Declare declare(app, command.name, out);
  const auto run = command.prepare(declare);
  try {
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    return {command_help(command, app)};
  } catch (const CLI::ArgumentMismatch& error) {
    complain_about_values(error, app);
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
Outcome again(AgainOptions options, std::ostream& out) {
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
  Outcome outcome = run_command(find_command(past->command), std::move(arguments), out);
  for (const std::string& file : changed)
    outcome.talk += fmt::format("'{}' has changed since: this is another result\n", file);
  if (past->version != this_version())
    outcome.talk +=
        fmt::format("made by saltus {}, repeated by {}: last digits may differ\n", past->version, this_version());
  return outcome;
}

Outcome dispatch(std::vector<std::string> arguments, std::ostream& out) {
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") return {general_help()};
  if (arguments[0] == "--version") return {"saltus " SALTUS_VERSION "\n"};
  if (arguments[0] == "help") {
    if (arguments.size() == 1) return {general_help()};
    if (arguments[1] == "options") return {options_page()};
    arguments = {arguments[1], "--help"};
  }
  if (arguments[0] == "completion" && arguments.size() > 1) {
    if (arguments[1] == "--of") return {candidates_for({arguments.begin() + 2, arguments.end()})};
    if (arguments[1] == "--pages" && arguments.size() == 3) return write_pages(arguments[2]), Outcome{};
  }
  const Command& command = find_command(arguments[0]);
  return run_command(command, {arguments.begin() + 1, arguments.end()}, out);
}

/// True if this is not the process that talks. One that cannot even tell, talks.
bool is_silent() {
  try {
    return rank() > 0;
  } catch (...) {
    return false;
  }
}

/// Prints the exception in flight as a message; returns the exit status.
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
  } catch (const std::system_error& error) {
    talk << fmt::format(
        "the system refuses: {}\nit may be out of files, threads or memory ('ulimit -a' lists limits)\n",
        error.code().message());
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
    const Outcome outcome = dispatch(std::move(arguments), out);
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
