#include "ask/section.hpp"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "analysis/lookout.hpp"
#include "model/lower.hpp"
#include "model/program.hpp"

namespace saltus {
namespace {

/// A time by which the points must have come if nobody gives one.
double last_time(const Section& section, const RunOptions& options, long points) {
  if (section.kind == Section::Kind::every)
    return options.from + constant_value(section.value, options.parameters) * (static_cast<double>(points) + 0.5);
  return options.from + 1e12;
}

void check_counts(const SectionQuestion& question, size_t states) {
  constexpr long most_points = 100'000'000, most_skipped = 10'000'000'000;
  if (question.count < 1 || question.skip < 0 || question.count > most_points || question.skip > most_skipped)
    throw Error(ErrorKind::usage, fmt::format("`points` {} `skip` {}: no such points", question.count, question.skip),
                {}, fmt::format("give `points` 1 to {} and `skip` 0 to {}", most_points, most_skipped));
  constexpr double most_numbers = 2e8;
  if (static_cast<double>(question.count) * static_cast<double>(states + 1) > most_numbers)
    throw Error(ErrorKind::usage,
                fmt::format("`points` {}: points of {} states need too much memory", question.count, states), {},
                fmt::format("give at most `points` {:.0f}, and go on from the last point",
                            most_numbers / static_cast<double>(states + 1)));
}

}  // namespace

Model with_level(Model model, int section, double level) {
  Section& s = model.sections.at(static_cast<size_t>(section));
  if (s.kind != Section::Kind::on)
    throw Error(ErrorKind::usage, fmt::format("`level` {:g}: the section '{}' is not on a function", level, s.name), {},
                "leave it out, or choose a section on a formula");
  if (!std::isfinite(level))
    throw Error(ErrorKind::usage, fmt::format("`level` {:g} is no finite number", level), {},
                "give the function's value");
  s.value = s.value - Expr(level);
  lower(model);
  return model;
}

SectionPlan plan(SectionQuestion question) {
  const Model& model = question.system.model();
  check_counts(question, model.states.size());
  const int s = find_section(model, question.section);
  const Section& section = model.sections[static_cast<size_t>(s)];
  question.section = section.name;
  RunOptions options = run_options(question.solve, model, std::numeric_limits<double>::max());
  if (question.start) {
    options.initial = *question.start;
    options.check(model);
  }
  const double level = read_number(question.level.text, "`level`", model);
  if (level != 0) with_level(model, s, level);
  options.section = s;
  options.section_count = question.count + question.skip;
  options.keep_events = false;
  if (!question.solve.until) options.until = last_time(section, options, options.section_count);
  return {std::move(question), std::move(options), level};
}

SectionAnswer ask(const SectionPlan& plan, const Observer& observer) {
  const SectionQuestion& question = plan.question;
  SectionAnswer answer{
      .system = question.system, .options = plan.options, .section = question.section, .skip = question.skip};
  RunOptions options = plan.options;
  long seen = 0;
  const Model* model = &question.system.model();
  const Program* program = &question.system.program(question.solve.attract.value_or(0));
  std::optional<Program> moved;
  if (plan.level != 0) {
    moved.emplace(with_level(*model, options.section, plan.level), question.solve.attract.value_or(0));
    program = &*moved;
    model = &program->model();
  }
  Lookout lookout(*model, options, options.section);
  options.on_event = [&](const Event& event, const Arc& after) {
    if (observer.on_event) observer.on_event(event, after);
    if (event.kind != EventKind::section || event.on.front() != question.section) return;
    lookout.met();
    if (++seen <= question.skip) return;
    answer.times.push_back(event.t);
    answer.points.insert(answer.points.end(), event.state.begin(), event.state.end());
  };
  options.on_piece = observer.on_piece;
  if (lookout.watches()) {
    options.on_piece = [&](const Piece& piece, const Arc& arc) {
      lookout.along(piece);
      if (observer.on_piece) observer.on_piece(piece, arc);
    };
  }
  options.on_transition = observer.on_transition;
  options.progress = [&](double) {
    return lookout.verdict().empty() &&
           observer({"point", 0, static_cast<double>(seen), static_cast<double>(options.section_count)});
  };
  options.stop = [&] { return observer.stopped(); };
  answer.trajectory = simulate(*program, options);
  End& end = answer.trajectory.end;
  if (end.why == Why::cancelled && !lookout.verdict().empty()) {
    end.why = Why::stalled;
    end.message = lookout.verdict();
  } else if (end.why == Why::time && !question.solve.until) {
    end.why = Why::stalled;
    end.message = fmt::format("'{}' is {}", question.section, seen > 0 ? "not met any more" : "never met");
  }
  return answer;
}

}  // namespace saltus
