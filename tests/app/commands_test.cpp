#include "app/commands.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "../folder.hpp"
#include "app/command_line.hpp"
#include "ask/gallery.hpp"
#include "ask/option_table.hpp"
#include "ask/solve.hpp"

namespace saltus {
namespace {

struct Ran {
  int status;
  std::string out, talk;
};

Ran saltus_line(std::vector<std::string> arguments) {
  std::ostringstream out, talk;
  const int status = command_line(std::move(arguments), out, talk);
  return {status, out.str(), talk.str()};
}

nlohmann::json check_json(const std::string& model) {
  return nlohmann::json::parse(check({.model = {.model = model}, .style = CheckOptions::Style::json}).text);
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

TEST(CommandLine, WithoutArgumentsShowsHelp) {
  EXPECT_EQ(saltus_line({}).out, saltus_line({"--help"}).out);
  EXPECT_EQ(saltus_line({"help"}).out, saltus_line({"-h"}).out);
  EXPECT_TRUE(contains(saltus_line({}).out, "check MODEL"));
}

TEST(CommandLine, HelpOfACommandListsItsOptions) {
  const Ran r = saltus_line({"help", "check"});
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(r.out, saltus_line({"check", "--help"}).out);
  for (const char* option : {"MODEL", "-p NAME=VALUE", "-x NAME=VALUE", "--json", "--latex"})
    EXPECT_TRUE(contains(r.out, option)) << option;
}

/// A value that the option may have, as it is typed.
std::string example_of(const SolveOption& option) {
  if (option.kind == "word") return words_of(option.name)[1];
  if (option.kind == "number") {
    const auto range = find_option(option.name, "run")->range.value_or(std::pair(0.0, 1.0));
    return fmt::format("{}", std::clamp(0.001, range.first, range.second));
  }
  return option.kind == "settings" ? "v=+1" : option.kind == "count" ? "2" : option.kind == "flag" ? "" : "2*pi/3";
}

TEST(SolveOptions, AreTakenShownAndRecordedByTheCommandLine) {
  const ScratchFolder scratch;
  for (const SolveOption& option : solve_options()) {
    const bool runs = find_option(option.name, "run");
    const std::string command = runs ? "run" : "sweep", text = example_of(option);
    const OptionFact& fact = *find_option(option.name, command);
    EXPECT_TRUE(contains(saltus_line({"help", command}).out, std::string(fact.sentence))) << option.name;
    EXPECT_TRUE(contains(saltus_line({"help", "options"}).out, std::string(fact.sentence))) << option.name;
    const std::string folder = (scratch.path / option.name).string();
    std::vector<std::string> line{command, "dry_friction", "-q", "-o", folder, fact.flag()};
    if (option.kind != "flag") line.push_back(text);
    if (!runs) line.insert(line.begin() + 2, {"F=0.1,0.2", "-n", "3", "--skip", "1"});
    Ran ran = saltus_line(line);
    if (contains(ran.talk, "add --engine step")) {
      line.insert(line.end(), {"--engine", "step"});
      ran = saltus_line(line);
    }
    ASSERT_EQ(ran.status, 0) << option.name << ": " << ran.talk;
    const auto past = read_past(folder + "/run.toml");
    ASSERT_TRUE(past) << option.name;
    const auto kept = std::find_if(past->options.begin(), past->options.end(),
                                   [&](const Past::Option& o) { return o.first == option.name; });
    if (option.name == "threads") {
      EXPECT_EQ(kept, past->options.end());  // of the machine, not of the result
      continue;
    }
    ASSERT_NE(kept, past->options.end()) << option.name;
    if (option.kind == "flag") continue;
    const std::string again = kept->second.at(0);
    EXPECT_TRUE(again == text || read_number(again, "") == read_number(text, "")) << option.name << " " << again;
  }
}

TEST(SolveOptions, ThatDoNotExistNameTheNearest) {
  Solve solve;
  try {
    solve.give("tolerence", "1");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.hint(), "did you mean 'tolerance'?");
  }
}

TEST(CommandLine, EveryMistakeIsOneMessageWithStatus2) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{"chek", "x"}, "unknown command 'chek'\ndid you mean 'saltus check'?\n"},
      {{"--versoin"}, "unknown option '--versoin'\ndid you mean 'saltus --version'?\n"},
      {{"dry_friction"}, "unknown command 'dry_friction'\ndid you mean 'saltus check dry_friction'?\n"},
      {{"zzzzzz"}, "unknown command 'zzzzzz'\n'saltus --help' lists the commands\n"},
      {{"help", "chekc"}, "unknown command 'chekc'\ndid you mean 'saltus check'?\n"},
      {{"check", "--jsn", "dry_friction"}, "unknown option '--jsn'\ndid you mean '--json'?\n"},
      {{"check", "--jsn=1"}, "unknown option '--jsn'\ndid you mean '--json'?\n"},
      {{"check", "dry_friction", "more"},
       "'saltus check' does not take 'more'\n'saltus help check' lists what it takes\n"},
      {{"check", "dry_friction", "F=0.3"},
       "'saltus check' does not take 'F=0.3'\na parameter is given with -p F=0.3, an initial value with -x F=0.3\n"},
      {{"run", "dry_friction", "--until"}, "--until needs a value\nwrite --until TIME\n"},
      {{"run", "dry_friction", "--until", "3", "--until", "4"}, "--until is given more than once\ngive it once\n"},
      {{"sweep", "dry_friction", "omega=1:2:3", "-n", "3", "--points", "4"},
       "--points is given more than once\ngive it once\n"},
      {{"sweep", "dry_friction", "omega=1..2"},
       "omega=1..2: 1..2: ranges have colons\nwrite them as 0.5:3, or 0.5:3:400 for 400 values\n"},
      {{"examples", "dry_frcition"}, "the gallery has no model 'dry_frcition'\ndid you mean 'dry_friction'?\n"},
      {{"examples", "knopoff"}, "the gallery has no model 'knopoff'\ndid you mean 'burridge_knopoff'?\n"},
  };
  for (const auto& [arguments, message] : mistakes) {
    const Ran r = saltus_line(arguments);
    EXPECT_EQ(r.status, 2);
    EXPECT_EQ(r.talk, message);
    EXPECT_EQ(r.out, "");
  }
}

TEST(CommandLine, AMissingModelIsSaid) {
  const Ran r = saltus_line({"check"});
  EXPECT_EQ(r.status, 2);
  EXPECT_TRUE(contains(r.talk, "MODEL is required"));
  EXPECT_EQ(saltus_line({"check", "dry_friction", "-p"}).status, 2);
  EXPECT_EQ(saltus_line({"check", "dry_friction", "--json", "--latex"}).status, 2);
}

TEST(CommandLine, StatusTellsWhatWasWrong) {
  EXPECT_EQ(saltus_line({"check", "dry_friction"}).status, 0);
  EXPECT_EQ(saltus_line({"check", "bouncing_ball", "-x", "q=-1"}).status, 3);
  EXPECT_EQ(saltus_line({"check", "/nowhere/at_all.toml"}).status, 4);
  EXPECT_EQ(saltus_line({"check", "dry_friction", "-p", "F=", "-p", "F=1"}).status, 2);
}

TEST(CommandLine, ANegativeValueIsNoOption) {
  const Ran r = saltus_line({"check", "-x", "v=-0.5", "dry_friction", "-p", "F=1/4"});
  EXPECT_EQ(r.status, 0) << r.talk;
  EXPECT_TRUE(contains(r.out, "v = -0.5"));
  EXPECT_TRUE(contains(r.out, "F = 1/4 = 0.25"));
}

TEST(Check, SaysHowDryFrictionSlides) {
  const std::string text = check({.model = {.model = "dry_friction"}}).text;
  EXPECT_TRUE(contains(text, "period 2*pi/omega = 18.8496"));
  EXPECT_TRUE(contains(text, "attracting while |(sin(omega*t) - y)/F| <= 1"));
}

TEST(Check, OfAChainOfAThousandBlocksIsAPage) {
  std::string lines, initial;
  for (int i = 1; i <= 1000; ++i) {
    lines += "x" + std::to_string(i) + "' = -sign(x" + std::to_string(i) + ")\n";
    initial += "x" + std::to_string(i) + " = 1\n";
  }
  const auto path = fresh_folder() / "model.toml";
  std::ofstream(path) << "equations = \"\"\"\n" + lines + "\"\"\"\n[initial]\n" + initial;
  const std::string text = check({.model = {.model = path.string()}}).text;
  const auto json = check_json(path.string());
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 100);
  EXPECT_TRUE(contains(text, "... 990 more"));
  EXPECT_EQ(json["switches"].size(), 1000u);
}

TEST(Check, LinesOfTheGalleryFitThePage) {
  for (const GalleryModel& m : gallery()) {
    std::istringstream text(check({.model = {.model = std::string(m.name)}}).text);
    for (std::string line; std::getline(text, line);) EXPECT_LE(line.size(), 100u) << m.name << ": " << line;
  }
}

TEST(Check, JsonHasTheDocumentedKeys) {
  const auto j = check_json("buck");
  EXPECT_EQ(j["model"], "Buck converter");
  EXPECT_EQ(j["states"], (std::vector<std::string>{"i", "v"}));
  EXPECT_DOUBLE_EQ(j["parameters"]["Vref"].get<double>(), 11.3);
  ASSERT_EQ(j["switches"].size(), 1u);
  EXPECT_EQ(j["switches"][0]["name"], "ramp - a*(v - Vref)");
  EXPECT_EQ(j["switches"][0]["hold"], 1);
  EXPECT_TRUE(j["switches"][0]["interacts"].empty());
  EXPECT_EQ(j["constraints"][0]["name"], "d");
  EXPECT_EQ(j["constraints"][0]["gap"], "i");
  EXPECT_EQ(j["constraints"][0]["degree"], 1);
  EXPECT_TRUE(j["constraints"][0]["restitution"].is_null());
  EXPECT_TRUE(j["jumps"].empty());
  EXPECT_EQ(j["sections"][0]["name"], "strobe");
  EXPECT_EQ(j["autonomous"], false);
}

TEST(Check, JsonGivesContactsTheirRestitutionAndJumpsTheirSettings) {
  EXPECT_DOUBLE_EQ(check_json("bouncing_ball")["constraints"][0]["restitution"].get<double>(), 0.8);
  const auto wheel = check_json("rimless_wheel");
  EXPECT_EQ(wheel["jumps"][0]["direction"], "rising");
  EXPECT_EQ(wheel["jumps"][0]["set"]["om"], "om*cos(2*alpha)");
  EXPECT_EQ(check_json("belt_static")["switches"][0]["hold"], 2);
}

TEST(Check, JsonNamesSwitchesThatMultiplyEachOther) {
  const auto j = check_json("stick_slip_whirl");
  bool any = false;
  for (const auto& s : j["switches"]) any = any || !s["interacts"].empty();
  EXPECT_TRUE(any);
}

TEST(Check, LatexHasInclusionsAndComplementarity) {
  const auto latex = [](const std::string& model) {
    return check({.model = {.model = model}, .style = CheckOptions::Style::latex}).text;
  };
  EXPECT_TRUE(contains(latex("dry_friction"), "F \\sigma_{1}"));
  EXPECT_TRUE(contains(latex("dry_friction"), "\\sigma_{1} &\\in \\operatorname{Sgn}\\left(v\\right)"));
  EXPECT_TRUE(contains(latex("bouncing_ball"), "0 &\\le N \\perp q \\ge 0"));
}

TEST(Check, SurvivesNamesThatGrowExponentially) {
  std::string lines = "x' = a20\na0 = x\n";
  for (int i = 1; i <= 20; ++i) {
    const std::string below = "a" + std::to_string(i - 1);
    lines += "a" + std::to_string(i) + " = " + below + "*" + below + " + sign(" + below + ")\n";
  }
  const auto path = fresh_folder() / "model.toml";
  std::ofstream(path) << "equations = \"\"\"\n" + lines + "\"\"\"\n[initial]\nx = 0.1\n";
  for (const auto style : {CheckOptions::Style::text, CheckOptions::Style::json, CheckOptions::Style::latex}) {
    const Outcome o = check({.model = {.model = path.string()}, .style = style});
    EXPECT_LT(o.text.size(), 2'000'000u);
  }
}

TEST(Examples, ListsEveryModelWithALine) {
  const std::string list = examples({}).text;
  EXPECT_EQ(static_cast<size_t>(std::count(list.begin(), list.end(), '\n')), gallery().size());
  EXPECT_TRUE(contains(list, "dry_friction"));
}

TEST(Examples, PrintsTheFile) { EXPECT_EQ(examples({"lorenz"}).text, find_in_gallery("lorenz")->text); }

}  // namespace
}  // namespace saltus
