// Every case of tests/reference/cases by the rules of tests/reference/check.py: models with answers from closed forms
// or from two independent high-precision computations.
#include <filesystem>
#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "physics.hpp"

namespace saltus::physics {
namespace {

using Json = nlohmann::json;
using Kinds = std::set<std::string>;

const std::filesystem::path cases = std::filesystem::path(SALTUS_SOURCE_DIR) / "tests/reference/cases";

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(cases)) {
    if (file.path().extension() == ".toml") names.push_back(file.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Json specification(const std::string& name) {
  std::ifstream file(cases / (name + ".json"));
  return Json::parse(file);
}

RunOptions case_options(const System& s, const Json& spec) {
  RunOptions o = s.options(spec["until"], std::stod(spec.value("run_tolerance", "1e-13")));
  if (s.program.model().run.from) o.from = constant_value(*s.program.model().run.from, s.parameters);
  const auto arguments = spec.value("args", std::vector<std::string>{});
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--flow") o.stiff = arguments.at(i + 1) == "stiff";
  }
  return o;
}

bool near(double a, double b, double tolerance) { return std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b)); }

/// Kinds of found events that count as an expected one.
Kinds accepted(const std::string& expected) {
  if (expected == "slide") return {"slide", "mode", "chatter"};
  if (expected == "chatter" || expected == "graze") return {expected};
  return {expected, "mode"};
}

/// Events of the same instant are one.
struct Instant {
  double t = 0;
  Kinds kinds;
  bool optional = false;
};

void add_instant(std::vector<Instant>& list, Instant next, double resolution) {
  if (!list.empty() && std::abs(next.t - list.back().t) <= resolution)
    list.back().kinds.merge(next.kinds);
  else
    list.push_back(std::move(next));
}

std::string check_state(const System& s, const Trajectory& run, const Json& wanted, double tolerance) {
  for (const auto& [name, value] : wanted.items()) {
    const double found = run.end.state.at(static_cast<size_t>(s.state(name)));
    if (!near(found, value, tolerance))
      return fmt::format("{} = {:.17g}, expected {:.17g}", name, found, value.get<double>());
  }
  return "";
}

std::string check_nonunique(const System& s, const Trajectory& run, const Json& spec) {
  if (!says_not_unique(run)) return "non-uniqueness is not reported";
  if (run.end.why == Why::nonunique && spec.contains("nonunique_at") && !near(run.end.t, spec["nonunique_at"], 1e-6))
    return fmt::format("nonunique at {}", run.end.t);
  if (run.end.why != Why::time) return "";
  for (const Json& wanted : spec["final_any_of"]) {
    if (check_state(s, run, wanted, spec["tolerance"]).empty()) return "";
  }
  return "ends at none of the possible states";
}

std::string check_order(const std::vector<Instant>& wanted, const std::vector<Instant>& found, double resolution,
                        bool others_allowed) {
  const auto fits = [&](const Instant& w, const Instant& f) {
    if (std::abs(w.t - f.t) > resolution) return false;
    return std::any_of(w.kinds.begin(), w.kinds.end(), [&](const std::string& kind) {
      const Kinds fine = accepted(kind);
      return std::any_of(f.kinds.begin(), f.kinds.end(), [&](const std::string& k) { return fine.contains(k); });
    });
  };
  size_t i = 0;
  for (const Instant& w : wanted) {
    if (i < found.size() && fits(w, found[i])) {
      ++i;
    } else if (!w.optional) {
      size_t j = i;
      while (others_allowed && j < found.size() && !fits(w, found[j])) ++j;
      if (!others_allowed || j == found.size()) return fmt::format("no {} at {:.17g}", fmt::join(w.kinds, "/"), w.t);
      i = j + 1;
    }
  }
  if (i < found.size() && !others_allowed)
    return fmt::format("unexpected {} at {:.17g}", fmt::join(found[i].kinds, "/"), found[i].t);
  return "";
}

std::string check_events(const Trajectory& run, const Json& spec) {
  const double until = spec["until"], span = std::abs(until - run.start_time);
  const double resolution = spec["tolerance"].get<double>() * span + 1e-15 * std::abs(run.start_time);
  std::vector<Event> events;
  for (const Event& e : changes(run)) {
    if (e.kind != EventKind::jump && std::abs(e.t - run.start_time) > resolution) events.push_back(e);
  }
  std::vector<Instant> found, wanted;
  for (const Event& e : events) {
    const bool at_end = spec.value("ignore_last", false) && std::abs(e.t - until) <= 1e-6 * span;
    const Json windows = spec.value("forgive", Json::array());
    const bool forgiven = std::any_of(windows.begin(), windows.end(), [&](const Json& w) {
      return std::abs(e.t - w["t"].get<double>()) <= w["within"].get<double>();
    });
    if (!at_end && !forgiven) add_instant(found, {e.t, {std::string(kind_name(e.kind))}}, resolution);
  }
  if (spec.contains("events")) {
    for (const Json& e : spec["events"])
      add_instant(wanted, {e["t"], {e["kind"].get<std::string>()}, e.value("optional", false)}, resolution);
    const std::string wrong = check_order(wanted, found, resolution, spec.value("events_prefix", false));
    if (!wrong.empty()) return wrong;
  }
  for (const double t : spec.value("times", std::vector<double>{})) {
    if (std::none_of(events.begin(), events.end(), [&](const Event& e) { return std::abs(e.t - t) <= resolution; }))
      return fmt::format("no event at {:.17g}", t);
  }
  const Json counts = spec.value("count", Json::object());
  for (const auto& [kind, n] : counts.items()) {
    const auto m =
        std::count_if(events.begin(), events.end(), [&](const Event& e) { return kind_name(e.kind) == kind; });
    if (m != n.get<long>()) return fmt::format("{} events of kind {}, expected {}", m, kind, n.get<long>());
  }
  if (spec.contains("last_event") &&
      (events.empty() || std::abs(events.back().t - spec["last_event"].get<double>()) > resolution))
    return "the last event is not where it should be";
  return "";
}

std::string complaint(const System& s, const Trajectory& run, const Json& spec) {
  if (spec.value("nonunique", false)) return check_nonunique(s, run, spec);
  if (run.end.why != Why::time) return fmt::format("ended by {}", why_name(run.end.why));
  if (!near(run.end.t, spec["until"], 1e-12)) return "did not reach the end";
  const std::string wrong = check_state(s, run, spec.value("final", Json::object()), spec["tolerance"]);
  return wrong.empty() ? check_events(run, spec) : wrong;
}

class ReferenceCase : public testing::TestWithParam<std::string> {};

TEST_P(ReferenceCase, HasItsKnownAnswer) {
  const Json spec = specification(GetParam());
  const System s(read_model(cases / (GetParam() + ".toml")));
  const Trajectory run = s.run(case_options(s, spec));
  EXPECT_EQ(complaint(s, run, spec), "") << story(run);
}

INSTANTIATE_TEST_SUITE_P(All, ReferenceCase, testing::ValuesIn(case_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace saltus::physics
