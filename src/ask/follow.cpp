#include "ask/follow.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "analysis/branch_book.hpp"
#include "analysis/sweep.hpp"

namespace saltus {
namespace {

std::string given(const FollowRange& range) {
  return range.given.empty() ? fmt::format("{}={}:{}", range.name, range.from.text, range.to.text) : range.given;
}

FollowedRange find_range(const FollowRange& range, const Model& model) {
  const std::string text = given(range);
  const double a = read_number(range.from.text, text + ":", model), b = read_number(range.to.text, text + ":", model);
  if (a == b) misuse(fmt::format("{}: the range is empty", text), "give two different ends");
  const Expr quantity = read_formula(range.name, text, model);
  const Varied varied = vary(model, range.name, quantity, {a, b});
  const auto [low, high] = std::minmax(varied.setting[0], varied.setting[1]);
  return {.name = range.name,
          .quantity = quantity,
          .parameter = varied.parameter,
          .from = a,
          .to = b,
          .low = low,
          .high = high,
          .start = varied.setting[0]};
}

/// How many labels there are of each kind.
std::map<std::string, int> labels_of(const std::vector<Branch>& branches) {
  std::map<std::string, int> out;
  for (const Branch& branch : branches) {
    for (const SpecialPoint& s : branch.special) ++out[label_letters(s.type)];
  }
  return out;
}

std::vector<SpecialPoint> specials_of(const std::vector<Branch>& branches) {
  std::vector<SpecialPoint> out;
  for (const Branch& branch : branches) out.insert(out.end(), branch.special.begin(), branch.special.end());
  return out;
}

/// Every branch that begins at a special point of those found so far.
void follow_all(const Model& model, const OrbitOptions& start, const BranchOptions& options, Observing& watch,
                std::vector<Branch>& found) {
  constexpr size_t most = 16;
  constexpr int most_half_branches = 16;
  std::vector<std::pair<std::string, double>> done;
  const auto kind = [](const SpecialPoint& s) { return s.counted_twice ? "counted twice" : s.type; };
  // A branch of double period ends where one that is known flips, a branch of cycles where they are born.
  const auto note_ends = [&](const Branch& branch) {
    for (const SpecialPoint& s : branch.special) {
      if (s.counted_twice) done.insert(done.end(), {{"counted twice", s.values[0]}, {"flip", s.values[0]}});
      if (s.type == "flip") done.emplace_back("counted twice", s.values[0]);
      if (!branch.equilibria && (s.type == "hopf" || s.type == "boundary-equilibrium"))
        done.emplace_back(s.type, s.values[0]);
    }
  };
  for (const SpecialPoint& s : found[0].special) {  // what flips there is followed, but not back again
    if (s.counted_twice) done.emplace_back("flip", s.values[0]);
  }
  for (size_t k = 0; k < found.size() && found.size() < most; ++k) {
    const Branch from = found[k];
    for (const SpecialPoint& s : from.special) {
      if (!branches_at(s) || found.size() >= most || watch.stopped()) continue;
      const auto same = [&](const auto& d) {
        return d.first == kind(s) && std::abs(d.second - s.values[0]) < 1e-6 * (options.high - options.low);
      };
      if (std::any_of(done.begin(), done.end(), same)) continue;
      done.emplace_back(kind(s), s.values[0]);
      OrbitOptions there = start;
      there.run.parameters =
          parameter_values(model, std::vector<GivenParameter>{{options.parameter, s.near_values[0]}});
      there.run.initial = s.near_state;
      there.run.from = s.near_t;
      there.clock_from = start.clock_from.value_or(start.run.from);
      there.guess = true;
      there.returns = 0;
      there.time = s.near_period;
      BranchOptions begin = options;
      // Several half-branches may begin where a guard of an equilibrium is zero.
      const int most_here = from.equilibria && s.type == "boundary-equilibrium" ? most_half_branches : 1;
      for (int other = 0; other < most_here && found.size() < most; ++other) {
        begin.seek = {s.type, s.values[0], other};
        begin.labels = labels_of(found);
        begin.known = specials_of(found);
        Branch next =
            from.equilibria ? follow_equilibrium(model, {there.run}, begin) : follow_orbit(model, there, begin);
        if (!next.found) break;
        note_ends(next);
        found.push_back(std::move(next));
      }
    }
  }
}

}  // namespace

double value_of(const FollowedRange& followed, const Model& model, double parameter) {
  if (parameter == followed.start) return followed.from;
  return constant_value(followed.quantity,
                        parameter_values(model, std::vector<GivenParameter>{{followed.parameter, parameter}}));
}

FollowQuestion begin_at(FollowQuestion question, const std::vector<FollowRange>& followed, const SpecialPoint& there) {
  OrbitQuestion& start = question.start;
  const Model& model = start.system.model();
  const auto parameter = [&](const FollowRange& range) { return find_range(range, model).parameter; };
  std::vector<Setting> parameters, initial;
  std::vector<int> followed_parameters;
  for (size_t k = 0; k < followed.size(); ++k) {
    followed_parameters.push_back(parameter(followed[k]));
    parameters.emplace_back(model.parameters[static_cast<size_t>(followed_parameters[k])].name, there.near_values[k]);
  }
  std::vector<FollowRange>& ranges = question.ranges;
  if (ranges.size() == 2) {  // the parameter of the branch comes first
    if (parameter(ranges[1]) == followed_parameters[0]) std::swap(ranges[0], ranges[1]);
    if (parameter(ranges[0]) != followed_parameters[0])
      misuse(fmt::format("the special point was found in {}, which is not among the ranges", followed[0].name),
             "name that parameter and another one");
  } else if (ranges.size() == 1 && followed.size() == 1 && parameter(ranges[0]) != followed_parameters[0]) {
    misuse(fmt::format("{}: the branch was followed in another quantity", given(ranges[0])),
           fmt::format("give a range of the same one: {}", given(followed[0])));
  }
  for (size_t i = 0; i < there.near_state.size(); ++i) initial.emplace_back(model.states[i].name, there.near_state[i]);
  const Formula from = there.near_t;
  start.system = start.system.with(parameters, initial, from);
  start.start.reset();
  start.solve.from = from;
  if (!question.equilibrium) {
    start.guess = true;
    start.period = 0;
    start.time = there.near_period;
  }
  question.seek = {there.type, there.values[0]};
  question.of = there.label;
  return question;
}

FollowPlan plan(const FollowQuestion& question) {
  const Model& model = question.start.system.model();
  if (question.ranges.empty()) misuse("nothing is followed", "name a parameter and its range: omega=0.5:3");
  if (question.ranges.size() > 2) misuse("more than two ranges", "give one, or two to follow a special point");
  FollowPlan plan{
      .system = question.start.system, .equilibrium = question.equilibrium, .all = question.all, .of = question.of};
  for (const FollowRange& range : question.ranges) plan.ranges.push_back(find_range(range, model));
  if (plan.ranges.size() == 2 && !question.seek)
    misuse("two ranges follow a special point, and none is named",
           "follow the branch in one parameter first, then begin at the `label` of a special point of it");
  if (plan.ranges.size() == 2 && question.all) misuse("`all` goes with one range", "leave out `all`");
  if (question.points < 1) misuse(fmt::format("`points` {}: no such number", question.points), "give 1 or more");
  const FollowedRange& first = plan.ranges[0];

  if (question.equilibrium) {
    plan.start.run = search_options(question.start.solve, model, question.start.start, "branches are followed");
  } else {
    plan.start = saltus::plan(question.start).options;
  }
  RunOptions& run = plan.start.run;
  const double present = run.parameters[static_cast<size_t>(first.parameter)];
  if (!question.seek && (present < first.low || present > first.high))
    run.parameters = parameter_values(model, std::vector<GivenParameter>{{first.parameter, first.start}});

  plan.branch = {.parameter = first.parameter, .low = first.low, .high = first.high};
  plan.branch.most_points = question.points;
  if (question.step) {
    if (!(*question.step > 0 && *question.step <= 1))
      misuse(fmt::format("`step` {} is no share of the range", *question.step), "give a number above 0, up to 1");
    plan.branch.largest_step = *question.step;
  }
  if (question.longest_time) {
    plan.branch.longest_time = read_number(question.longest_time->text, "`longest-time`", model);
    if (!(plan.branch.longest_time > 0))
      misuse(fmt::format("`longest-time` {} is no time", question.longest_time->text), "give a positive time");
  }
  plan.branch.seek = question.seek;
  if (plan.ranges.size() == 2) {
    plan.branch.second = plan.ranges[1].parameter;
    plan.branch.second_low = plan.ranges[1].low;
    plan.branch.second_high = plan.ranges[1].high;
  }
  return plan;
}

FollowAnswer ask(const FollowPlan& plan, const Observer& observer, const Keep& checkpoint) {
  const Model& model = plan.system.model();
  FollowAnswer answer{
      .system = plan.system, .options = plan.start.run, .ranges = plan.ranges, .of = plan.of, .all = plan.all};
  Observing watch(observer);
  const FollowedRange& first = plan.ranges[0];
  OrbitOptions start = plan.start;
  start.run = watched(start.run, watch, {first.name, first.low, first.low, first.high});
  BranchOptions branch = plan.branch;
  branch.on_point = [&](const BranchPoint& p) {
    if (observer.on_point) observer.on_point(p);
    return watch.go_on({first.name, first.low, p.values[0], first.high});
  };
  branch.on_special = observer.on_special;
  branch.on_start = observer.on_start;
  branch.on_end = observer.on_end;
  std::optional<WalkLog> log;
  if (!checkpoint.path.empty()) branch.log = &log.emplace(checkpoint.path, checkpoint.identity);
  answer.branches.push_back(plan.equilibrium ? follow_equilibrium(model, {start.run}, branch)
                                             : follow_orbit(model, start, branch));
  if (plan.all && answer.branches[0].found) follow_all(model, start, branch, watch, answer.branches);
  answer.cancelled = watch.stopped();
  return answer;
}

}  // namespace saltus
