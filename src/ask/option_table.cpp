#include "ask/option_table.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "expr/print.hpp"

namespace saltus {
namespace {

// Runs: one trajectory or many. Searches: orbits, branches, exponents and what derivatives tell, which are the
// event-driven engine's.
#define SALTUS_RUNS "run section sweep basins"
#define SALTUS_SEARCHES "orbit follow exponents phase response fit"
#define SALTUS_ALL SALTUS_RUNS " " SALTUS_SEARCHES

using Range = std::pair<double, double>;

constexpr auto table = std::to_array<OptionFact>({
    // The model.
    {"parameter", "-p", "NAME=VALUE", "", "another parameter value: -p F=0.3, -p omega=1/3", "check " SALTUS_ALL},
    {"parameter", "--parameter", "NAME=V1,V2..", "",
     "the same as -p; both may give several values, for several runs in one picture", "run"},
    {"initial", "-x", "NAME=VALUE", "", "another initial value: -x v=0.1", "check " SALTUS_ALL},
    {"initial", "--initial", "NAME=FORMULA", "", "the same as -x; both may use the varied states: -x z=y+1", "basins"},

    // Options of single questions.
    {"vary", "VALUES,--vary", "", "", "omega=0.15:2:400, omega=1,2,3, omega=@FILE, 1/omega=0.5:7:400; or two", "sweep"},
    {"log", "--log", "", "", "equal ratios instead of equal steps", "sweep"},
    {"axis", "AXES,--axis", "", "", "the states varied: y=-2:2:400 (400 cells), y=@FILE or y=0,1,3 (edges of cells)",
     "basins"},
    {"range-of", "RANGE,--range-of", "NAME=A:B", "", "NAME=A:B; NAME may be a formula of a parameter: 1/omega=1:6",
     "follow"},
    {"method", "--method", "cells|direct", "cells", "map each cell once, or run each until it settles", "basins"},
    {"join", "--join", "nearest|run|touch[:D]|none", "nearest", "which cycles of cells are one attractor", "basins"},
    {"refine", "--refine", "", "", "with --method direct: run only cells near boundaries, fill in the others",
     "basins"},
    {"random", "--random", "N", "", "so many random values instead: omega=0.15:2 --random 500", "sweep"},
    {"random", "--random", "N", "", "so many random points instead of a grid: y=-2:2 v=-2:2 --random 10000", "basins"},
    {"points", "-n,--points", "N", "1000", "how many points", "section"},
    {"points", "-n,--points", "N", "100", "points recorded per run", "sweep"},
    {"points", "-n,--points", "N", "5000", "points of a direct run at most", "basins"},
    {"points", "-n,--points", "N", "2000", "at most so many each way", "follow"},
    {"skip", "--skip", "M", "0", "points left out before them", "section"},
    {"skip", "--skip", "M", "400; 0 with --settle", "points left out before them", "sweep"},
    {"level", "--level", "VALUE", "0", "of a section on a formula: met where that has this value", "section"},
    {"settle", "--settle", "N", "", "go on until a period is found, but for N points at most", "sweep"},
    {"section", "--section", "NAME", "", "which section, if there are several",
     "section sweep basins orbit follow phase response"},
    {"section", "--section", "NAME", "", "a section of the model; exponents are per unit of time all the same",
     "exponents"},
    {"longest", "--longest", "P", "64", "longest period looked for", "sweep basins"},
    {"period-tolerance", "--period-tolerance", "D|NAME=D", "", "how near points of one phase are, for all or per state",
     "sweep"},
    {"period-tolerance", "--period-tolerance", "D|NAME=D", "1e-6 of its axis",
     "how near points of one phase are, for all or per state", "basins"},
    {"continue", "--continue", "no|up|down|both", "no", "start where the run of the value before ended", "sweep"},
    {"start", "--start", "V1,V2..|@FILE|random", "", "start at these states (repeat for several), or in --box",
     "sweep"},
    {"starts", "--starts", "K", "1", "random starts per value", "sweep"},
    {"starts", "--starts", "K", "", "from so many random starts in --box: every orbit found", "orbit"},
    {"box", "--box", "NAME=A:B", "", "where random starts lie: --box y=-2:2,v=-1:1", "sweep orbit"},
    {"seed", "--seed", "S", "1", "of all that is random", "sweep basins orbit fit"},
    {"colour", "--colour", "none|start|sliding|period|exponent", "start, where there are several", "of the dots",
     "sweep"},
    {"period", "--period", "K", "1", "the map takes K points of the section", "basins"},
    {"period", "--period", "N", "", "it closes after N returns to the section", "orbit follow phase response"},
    {"at", "--at", "NAME=VALUE", "the middle", "with three axes or more: the plane shown", "basins"},
    {"guess", "--guess", "", "", "the initial values are near the orbit: no run first", "orbit follow phase response"},
    {"time", "--time", "TIME", "", "with --guess: it closes after about this time", "orbit follow phase response"},
    {"backward", "--backward", "", "", "settle and close backward in time: unstable orbits", "orbit follow phase"},
    {"equilibrium", "--equilibrium", "", "", "a point where the system rests instead", "orbit response"},
    {"equilibrium", "--equilibrium", "", "", "equilibria instead of orbits", "follow"},
    {"modulo", "--modulo", "NAME=NUMBER", "", "a state that grows by multiples of a number: th=2*pi",
     "orbit follow phase response"},
    {"label", "--label", "LABEL", "", "start from this special point of the result given as MODEL", "follow"},
    {"seek", "--seek", "TYPE=VALUE", "", "", "follow"},
    {"of", "--of", "LABEL", "", "", "follow"},
    {"all", "--all", "", "", "every branch that begins at a special point as well", "follow"},
    {"step", "--step", "NUMBER", "0.02", "longest step, as a share of the range", "follow", Range{0, 1}},
    {"longest-time", "--longest-time", "TIME", "100 of the first", "a longer period counts as homoclinic", "follow"},
    {"of", "--of", "STATES", "all", "the states whose response is shown", "phase"},
    {"couple", "--couple", "STATE+=FORMULA", "",
     "what two equal copies add to each other's rates: --couple \"v += g*(other.v - v)\"", "phase"},
    {"per-cycle", "--per-cycle", "", "", "phases from 0 to 2 pi instead of times", "phase"},
    {"input", "--input", "NAME", "", "a parameter that is moved, or a named quantity to which a signal is added",
     "response"},
    {"output", "--output", "NAME", "", "a state, a named quantity, a multiplier or a formula of them", "response"},
    {"loop", "--loop", "NAME", "", "the loop gain where the loop is opened at this named quantity", "response"},
    {"lowest", "--from", "FREQUENCY", "0.01 of the orbit's", "lowest frequency, in cycles per unit of time",
     "response"},
    {"highest", "--to", "FREQUENCY", "10 times the orbit's", "highest frequency", "response"},
    {"points", "-n,--points", "N", "200", "frequencies, spaced logarithmically", "response"},
    {"sideband", "--sideband", "K", "0", "harmonic of the orbit about which the output is looked at", "response"},
    {"free", "NAMES,--free", "", "", "what is fitted: F, omega=0.1:3 with bounds, \"y(0)\" an initial value", "fit"},
    {"log-of", "--log", "NAMES", "", "fitted by their logarithms: --log k,c", "fit"},
    {"begin", "--begin", "NAME=VALUE", "the model's values", "where the search for a free value begins", "fit"},
    {"starts", "--starts", "K", "1", "from so many random starts within the bounds as well: every minimum found",
     "fit"},
    {"profile", "--profile", "", "", "the least sum of squares over each free value, and its interval", "fit"},
    {"robust", "--robust", "", "", "data that lie far off count less (Huber)", "fit"},
    {"measure", "--measure", "NAME|max(NAME)|min(NAME)|period", "the first state", "ordinate of the picture", "follow"},
    {"measure", "--measure", "KIND(QUANTITY)", "",
     "mean, rms, pp (peak to peak), min or max of a name or formula, or above(QUANTITY, LEVEL): time above", "run"},
    {"measure", "--measure", "KIND(QUANTITY)", "",
     "of each run: mean, rms, pp, min, max of a name or formula, over a period or over all points", "sweep"},
    {"window", "--window", "A:B", "the whole run",
     "the stretch of time that pictures, tables and measures show: 0.8:1, or 0.8: to the end", "run"},
    {"over", "--over", "DIR", "", "draw it over this sweep", "follow"},
    {"over", "--over", "MODEL", "", "a further model, run alike and drawn into the same picture", "run"},
    {"sample", "--sample", "DT|steps", "as dense as curves bend", "rows every DT, or at steps and events only", "run"},
    {"store", "--store", "samples|pieces", "samples", "keep rows only, or the dense output as well", "run"},
    {"sensitivity", "--sensitivity", "[NAMES]", "",
     "derivatives of the end by initial values and by parameters: all, or F,omega", "run"},

    // How it is computed.
    {"from", "--from", "TIME", "0", "start time (to show a later part of a run: --window)",
     SALTUS_RUNS " orbit follow exponents phase fit"},
    {"until", "--until", "TIME", "", "end time; below the start runs backward", "run"},
    {"until", "--until", "TIME", "", "an upper limit", "section sweep basins"},
    {"until", "--until", "TIME", "", "length of the run before a model without section gets one",
     "orbit follow phase response"},
    {"until", "--until", "TIME", "until the errors are small", "end time", "exponents"},
    {"tolerance", "--tolerance", "NUMBER", "1e-10", "local error allowed", SALTUS_ALL, Range{1e-15, 0.1}},
    {"engine", "--engine", "event|step|both", "event", "event-driven, time-stepping, or both compared", "run"},
    {"engine", "--engine", "event|step", "event", "event-driven or time-stepping", "section sweep basins"},
    {"engine", "--engine", "event", "", "", SALTUS_SEARCHES},
    {"dt", "--dt", "NUMBER", "", "fixed step of the time-stepping engine", SALTUS_RUNS},
    {"adaptive", "--adaptive", "", "", "time-stepping with steps by the tolerance, so without a fixed one",
     SALTUS_RUNS},
    {"theta", "--theta", "NUMBER", "0.5", "time-stepping: 0.5 accurate, 1 backward Euler", SALTUS_RUNS, Range{0.5, 1}},
    {"threads", "-j", "N", "all cores", "threads", "sweep basins"},
    {"threads", "-j", "N", "all cores", "with --starts: threads", "orbit"},
    {"threads", "-j", "N", "all cores but one", "threads", "studio"},
    {"flow", "--flow", "auto|taylor|stiff", "auto",
     "smooth flow by Taylor series, or an implicit method where it is stiff, or everywhere", SALTUS_RUNS},
    {"flow", "--flow", "auto|taylor|stiff", "auto", "smooth flow by Taylor series (auto too), or an implicit method",
     SALTUS_SEARCHES},
    {"leave", "--leave", "NAME=+1|-1|0", "", "side to leave a surface to where several are possible", SALTUS_ALL},
    {"project", "--project", "", "", "move a start that does not satisfy the joints onto them", SALTUS_ALL},
    {"attract", "--attract", "NUMBER", "", "hold slid surfaces by the term -C h grad h instead of projection",
     SALTUS_RUNS, Range{0, 1e12}},
    {"native", "--native", "auto|on|off", "auto",
     "machine code in long runs, from the start, or never; the results are the same", SALTUS_ALL},
    {"zeno", "--zeno", "complete|stop", "complete", "where events accumulate: go on, or end there", SALTUS_ALL},

    // Where it goes.
    {"folder", "-o", "DIR", "the next free <model>-<command>-NNN", "folder for the results", SALTUS_ALL " again"},
    {"force", "--force", "", "", "replace the results that the folder holds", SALTUS_ALL " again"},
    {"resume", "--resume", "", "", "", SALTUS_ALL},
    {"format", "--format", "csv|h5", "csv", "data as csv or h5", SALTUS_ALL},
    {"no-plot", "--no-plot", "", "", "draw no picture", SALTUS_ALL},
    {"plot", "--plot", "FILE", "", "a further picture: .svg, .png or .pdf", SALTUS_ALL},
    {"show", "--show", "NAMES", "", "what to plot: names, sigma(SURFACE), x[1..5]; x:y a plane, x:y:z a curve in space",
     SALTUS_RUNS " orbit"},
    {"range", "--range", "NAME=A:B", "", "what the axis of a quantity shows: --range y=-2:2", SALTUS_ALL},
    {"equal", "--equal", "", "", "units equally long on both axes of a plane", SALTUS_ALL},
    {"log-x", "--log-x", "", "", "logarithmic x axis", SALTUS_ALL},
    {"log-y", "--log-y", "", "", "logarithmic y axis", SALTUS_ALL},
    {"json", "--json", "", "", "one JSON document on stdout, no folder unless -o is given", SALTUS_ALL " again"},
    {"json", "--json", "", "", "as one JSON document", "check"},
    {"latex", "--latex", "", "", "as LaTeX: the equations and a table of parameters", "check"},
    {"quiet", "-q", "", "", "no summary, no progress", SALTUS_ALL " again"},
    {"quiet", "-q", "", "", "print nothing: the exit status says whether the model is right", "check"},
    {"port", "--port", "N", "any free one", "port on 127.0.0.1", "studio", Range{0, 65535}},
    {"no-browser", "--no-browser", "", "", "print the link only", "studio"},
});

#undef SALTUS_RUNS
#undef SALTUS_SEARCHES
#undef SALTUS_ALL

bool is_among(std::string_view word, std::string_view list, char separator) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(separator), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

}  // namespace

bool OptionFact::applies_to(std::string_view command) const { return is_among(command, commands, ' '); }

std::string OptionFact::flag() const {
  const size_t dash = flags.find('-');
  return std::string(flags.substr(dash, flags.find(',', dash) - dash));
}

std::string OptionFact::words() const {
  return fallback.empty() ? std::string(sentence) : fmt::format("{} ({})", sentence, fallback);
}

std::span<const OptionFact> option_table() { return table; }

const OptionFact* find_option(std::string_view name, std::string_view command) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const OptionFact& o) { return o.name == name && o.applies_to(command); });
  return found == table.end() ? nullptr : &*found;
}

std::string commands_with(std::string_view flag) {
  constexpr auto known =
      std::to_array<std::string_view>({"check", "run", "section", "sweep", "basins", "orbit", "follow", "exponents",
                                       "phase", "response", "fit", "again", "studio"});
  std::string out;
  for (const std::string_view command : known) {
    const bool takes = std::any_of(table.begin(), table.end(), [&](const OptionFact& o) {
      return !o.sentence.empty() && o.applies_to(command) && is_among(flag, o.flags, ',');
    });
    if (takes) out += fmt::format("{}{}", out.empty() ? "" : ", ", command);
  }
  return out;
}

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  for (const OptionFact& o : table) {
    if (o.name != name) continue;
    for (std::string_view rest = o.type; !rest.empty();) {
      const size_t end = std::min(rest.find('|'), rest.size());
      const std::string word(rest.substr(0, end));
      if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return words;
}

void check_range(std::string_view name, double value) {
  for (const OptionFact& o : table) {
    if (o.name != name || !o.range || (value >= o.range->first && value <= o.range->second)) continue;
    throw Error(
        ErrorKind::usage, fmt::format("`{}` {} is out of range", name, print_number(value)), {},
        fmt::format("give a number from {} to {}", print_number(o.range->first), print_number(o.range->second)));
  }
}

}  // namespace saltus
