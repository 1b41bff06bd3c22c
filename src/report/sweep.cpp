#include "report/sweep.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/numbers.hpp"
#include "expr/print.hpp"
#include "out/json.hpp"
#include "report/run_json.hpp"

namespace saltus {
namespace {

using Runs = std::vector<std::optional<SweepRun>>;

constexpr const char* colour_of_dot = "colour of the dot";  // no name of a model

// ---- tables -------------------------------------------------------------------------------------------------------

struct Place {
  std::vector<double> values;
  std::string start;
};

Place place_of(const SweepPlan& plan, size_t run) {
  Place place{.values = {}, .start = plan.start_name(run % plan.starts_per_value())};
  size_t cell = run / plan.starts_per_value();
  for (const Varied& v : plan.varied) {
    place.values.push_back(v.values[cell % v.values.size()]);
    cell /= v.values.size();
  }
  return place;
}

/// One row per run.
Table runs_table(const Model& model, const SweepPlan& plan, const Runs& runs) {
  std::vector<Numbers> values(plan.varied.size()), settings(plan.varied.size());
  Texts start, end, message;
  Numbers period, slow, time, sliding, events, exponent, points;
  std::vector<Numbers> measures(plan.measures.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i]) continue;
    const SweepRun& r = *runs[i];
    size_t cell = i / plan.starts_per_value();
    for (size_t a = 0; a < plan.varied.size(); ++a) {
      const Varied& v = plan.varied[a];
      values[a].push_back(v.values[cell % v.values.size()]);
      settings[a].push_back(v.setting[cell % v.values.size()]);
      cell /= v.values.size();
    }
    start.push_back(plan.start_name(i % plan.starts_per_value()));
    period.push_back(static_cast<double>(r.period));
    slow.push_back(r.slow ? 1 : 0);
    time.push_back(r.time);
    sliding.push_back(r.sliding);
    events.push_back(r.events);
    exponent.push_back(r.exponent);
    for (size_t m = 0; m < measures.size(); ++m) measures[m].push_back(r.measures[m]);
    points.push_back(static_cast<double>(r.seen));
    end.push_back(std::string(why_name(r.why)));
    message.push_back(r.message);
  }
  Table table("data", "one row per run");
  for (size_t a = 0; a < plan.varied.size(); ++a) {
    const Varied& v = plan.varied[a];
    const std::string& parameter = model.parameters[static_cast<size_t>(v.parameter)].name;
    table.add_own(v.name, std::move(values[a]), "varied");
    if (v.name != parameter) table.add_own(parameter, std::move(settings[a]), "the parameter that gives it");
  }
  table.add_texts("start", std::move(start), "number of the start, or direction of continuation")
      .add_numbers("period", std::move(period), "in points of the section; 0: none found")
      .add_numbers("slow", std::move(slow), "1: none found because the points still move")
      .add_numbers("time", std::move(time), "of a period; without one of a point, on average")
      .add_numbers("sliding", std::move(sliding), "segments of sliding, likewise")
      .add_numbers("events", std::move(events), "likewise");
  if (plan.exponent)
    table.add_numbers("exponent", std::move(exponent), "the largest Lyapunov exponent per unit of time");
  for (size_t m = 0; m < measures.size(); ++m)
    table.add_numbers(plan.measures[m].name, std::move(measures[m]), "over a period, or over all points recorded");
  table.add_numbers("seen", std::move(points), "points passed, those left out included")
      .add_texts("end", std::move(end), "how the run ended")
      .add_texts("message", std::move(message), "why, where it ended badly");
  return table;
}

/// The quantity that colours the dots of a run.
std::string colour_of(const SweepPlan& plan, const std::string& colour, size_t run, const SweepRun& r) {
  if (colour == "start") return plan.start_name(run % plan.starts_per_value());
  if (colour == "sliding") return r.period > 0 ? fmt::format("{:g} sliding", r.sliding) : "no period";
  if (colour == "period") return r.period > 0 ? fmt::format("period {}", r.period) : "no period";
  return "";
}

/// One row per recorded point: what is varied, the start where there are several, the states.
Table points_table(const Model& model, const SweepPlan& plan, const Runs& runs) {
  const size_t width = model.states.size();
  Numbers value;
  Texts start;
  std::vector<Numbers> states(width);
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i]) continue;
    const Place place = place_of(plan, i);
    const size_t count = runs[i]->points.size() / width;
    value.insert(value.end(), count, place.values[0]);
    if (plan.starts_per_value() > 1) start.insert(start.end(), count, place.start);
    for (size_t k = 0; k < runs[i]->points.size(); ++k) states[k % width].push_back(runs[i]->points[k]);
  }
  Table table("points", "recorded points of the section");
  table.add_own(plan.varied[0].name, std::move(value), "varied");
  if (plan.starts_per_value() > 1) table.add_texts("start", std::move(start), "of the run");
  for (size_t s = 0; s < width; ++s) table.add_own(model.states[s].name, std::move(states[s]), "state");
  return table;
}

// ---- pictures ------------------------------------------------------------------------------------------------------

/// The parameters that are not varied.
std::string fixed_parameters(Model model, const SweepPlan& plan) {
  std::vector<int> varied;
  for (const Varied& v : plan.varied) varied.push_back(v.parameter);
  std::sort(varied.rbegin(), varied.rend());
  for (const int p : varied) model.parameters.erase(model.parameters.begin() + p);
  return caption_of(model);
}

/// Quantities on axes: those asked for, measures, or the first that varies.
std::vector<std::string> shown_states(const Model& model, const Table& points, const SweepPlan& plan,
                                      std::vector<std::string> shown) {
  if (!shown.empty()) return shown;
  for (const Measure& m : plan.measures) shown.push_back(m.name);
  if (!shown.empty()) return shown;
  for (const State& s : model.states) {
    const auto [low, high] = std::minmax_element(points.numbers(s.name).begin(), points.numbers(s.name).end());
    if (points.rows() > 0 && *high - *low > 1e-9 * std::max(std::abs(*low), std::abs(*high))) return {s.name};
  }
  return {model.states.front().name};
}

/// Where nearly all values lie, if a few are so far away that they would squash the rest.
std::optional<std::pair<double, double>> bulk_of(Numbers values) {
  std::erase_if(values, [](double v) { return !std::isfinite(v); });
  if (values.size() < 200) return std::nullopt;
  const auto quantile = [&](double q) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), at, values.end());
    return *at;
  };
  const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
  const double all = *highest - *lowest, low = quantile(0.005), high = quantile(0.995), width = high - low;
  if (!(width > 0) || all < 10 * width) return std::nullopt;
  return std::pair(low - 0.2 * width, high + 0.2 * width);
}

/// The largest exponent against what is varied, a curve per start, above and below a line at zero.
void add_exponents(const SweepPlan& plan, const Runs& runs, Stack& stack, std::vector<Table>& tables) {
  const std::string& x = plan.varied[0].name;
  Panel panel{.x = stack.panels.front().x, .y = {.label = "largest exponent"}, .height = 0.5};
  Table zero("zero", "where the exponent is zero");
  const auto [low, high] = std::minmax_element(plan.varied[0].values.begin(), plan.varied[0].values.end());
  zero.add_numbers(x, {*low, *high}).add_numbers("largest exponent", {0, 0});
  tables.push_back(std::move(zero));
  panel.layers.push_back(Line{.table = "zero", .x = x, .y = "largest exponent", .dashed = true, .colour = "#777777"});
  const size_t starts = plan.starts_per_value();
  for (size_t start = 0; start < starts; ++start) {
    Numbers values, exponents;
    for (size_t i = start; i < runs.size(); i += starts) {
      values.push_back(place_of(plan, i).values[0]);
      exponents.push_back(runs[i] ? runs[i]->exponent : nan);
    }
    Table curve(fmt::format("exponents {}", start + 1), "largest exponents of one start");
    curve.add_numbers(x, std::move(values)).add_numbers("largest exponent", std::move(exponents));
    panel.layers.push_back(Line{.table = curve.name(),
                                .x = x,
                                .y = "largest exponent",
                                .label = starts > 1 ? plan.start_name(start) : "",
                                .colour = starts > 1 ? "" : "#1a1a40"});
    tables.push_back(std::move(curve));
  }
  stack.panels.push_back(std::move(panel));
}

/// The points of all runs with a colour each; those of runs that forget every direction apart.
std::vector<Table> coloured_points(const Model& model, const SweepPlan& plan, const Runs& runs, const Table& points,
                                   const std::string& colour) {
  Texts texts;
  Numbers exponents;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i]) continue;
    const size_t count = runs[i]->points.size() / model.states.size();
    if (plan.exponent) exponents.insert(exponents.end(), count, runs[i]->exponent);
    if (!plan.exponent) texts.insert(texts.end(), count, colour_of(plan, colour, i, *runs[i]));
  }
  std::vector<Table> tables{Table("diagram", "points with their colours")};
  if (plan.exponent) tables.emplace_back("forgotten", "points of runs that forget every direction");
  for (const Column& c : points.columns()) {
    if (c.is_text()) continue;
    const Numbers& all = points.numbers(c.name);
    tables[0].add_numbers(c.name, all);
    if (!plan.exponent) continue;
    Numbers some;
    for (size_t i = 0; i < all.size(); ++i) {
      if (std::isinf(exponents[i])) some.push_back(all[i]);
    }
    tables[1].add_numbers(c.name, std::move(some));
  }
  if (plan.exponent) {
    tables[0].add_numbers(colour_of_dot, std::move(exponents));
  } else {
    tables[0].add_texts(colour_of_dot, std::move(texts));
  }
  return tables;
}

/// A measure of all runs against what is varied; a colour per start.
Panel panel_of_measure(const SweepPlan& plan, const Runs& runs, const std::string& name, const SweepLook& look,
                       std::vector<Table>& tables) {
  const std::string& x = plan.varied[0].name;
  const auto found =
      std::find_if(plan.measures.begin(), plan.measures.end(), [&](const Measure& m) { return m.name == name; });
  const auto index = static_cast<size_t>(found - plan.measures.begin());
  Numbers values, measured;
  Texts start;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i]) continue;
    values.push_back(place_of(plan, i).values[0]);
    measured.push_back(runs[i]->measures[index]);
    start.push_back(plan.start_name(i % plan.starts_per_value()));
  }
  Table table("measure " + name, "a measure of each run");
  table.add_numbers("x", std::move(values)).add_numbers("y", std::move(measured)).add_texts("start", std::move(start));
  Panel panel{.x = {.label = x, .log = look.log && plan.varied[0].values.front() > 0}, .y = {.label = name}};
  panel.layers.push_back(
      Dots{.table = table.name(), .x = "x", .y = "y", .colour = plan.starts_per_value() > 1 ? "start" : ""});
  tables.push_back(std::move(table));
  return panel;
}

Picturing picture_diagram(const Model& model, const SweepPlan& plan, const Runs& runs, const Table& points,
                          const std::vector<std::string>& shown, const SweepLook& look) {
  const std::string& x = plan.varied[0].name;
  Picturing result{{.title = model.name, .caption = fixed_parameters(model, plan)}, {}};
  const std::string colour = !look.colour.empty() ? look.colour : plan.starts_per_value() > 1 ? "start" : "none";
  if (colour != "none" && colour != "start") result.tables = coloured_points(model, plan, runs, points, colour);
  const bool own = !result.tables.empty();  // points with their colours
  const bool several = plan.starts_per_value() > 1;
  Stack stack{.share_x = true};
  for (const std::string& y : shown) {
    if (!points.has(y)) {
      stack.panels.push_back(panel_of_measure(plan, runs, y, look, result.tables));
      continue;
    }
    stack.panels.push_back({.x = {.label = x, .log = look.log && plan.varied[0].values.front() > 0},
                            .y = {.label = y},
                            .layers = {Dots{.table = own ? "diagram" : "points",
                                            .x = x,
                                            .y = y,
                                            .colour = own                            ? colour_of_dot
                                                      : colour == "start" && several ? points.beside_own("start")
                                                                                     : "",
                                            .label = plan.exponent ? "exponent" : "",
                                            .about_zero = plan.exponent}}});
    if (own && plan.exponent && result.tables[1].rows() > 0)
      stack.panels.back().layers.push_back(Dots{.table = "forgotten", .x = x, .y = y, .label = "exponent -inf"});
    const Numbers& values = points.numbers(y);
    const auto bulk = bulk_of(values);
    if (!bulk) continue;
    Axis& axis = stack.panels.back().y;
    std::tie(axis.from, axis.to) = *bulk;
    const auto outside =
        std::count_if(values.begin(), values.end(), [&](double v) { return v < axis.from || v > axis.to; });
    const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
    result.figure.caption += fmt::format("{}{} points of {} outside the picture, between {:.4g} and {:.4g}",
                                         result.figure.caption.empty() ? "" : "; ", outside, y, *lowest, *highest);
  }
  if (plan.exponent) add_exponents(plan, runs, stack, result.tables);
  result.figure.stacks.push_back(std::move(stack));
  return result;
}

/// Periods or exponents over two parameters; where there are several starts, of the first.
Picturing picture_map(const Model& model, const SweepPlan& plan, const Runs& runs, const SweepLook& look) {
  const std::string x = (look.log ? "log10 " : "") + plan.varied[0].name;
  const std::string y = (look.log ? "log10 " : "") + plan.varied[1].name;
  const std::string what = plan.exponent ? "exponent" : "period";
  Numbers xs, ys, value;
  Texts label;
  std::map<long, size_t> counts;
  for (size_t i = 0; i < runs.size(); i += plan.starts_per_value()) {
    if (!runs[i]) continue;
    const Place place = place_of(plan, i);
    xs.push_back(look.log ? std::log10(std::abs(place.values[0])) : place.values[0]);
    ys.push_back(look.log ? std::log10(std::abs(place.values[1])) : place.values[1]);
    ++counts[runs[i]->period];
    value.push_back(plan.exponent ? runs[i]->exponent : static_cast<double>(runs[i]->period));
    label.push_back(runs[i]->period > 0 ? fmt::format("{}", runs[i]->period) : "none");
  }
  Heat heat{.table = "map",
            .x = "x",
            .y = "y",
            .value = what,
            .label = plan.exponent ? "largest exponent" : "period",
            .about_zero = plan.exponent};
  for (const auto& [period, count] : counts)
    heat.categories.push_back({.value = static_cast<double>(period),
                               .label = period > 0 ? fmt::format("period {}", period) : "none found",
                               .colour = period > 0 ? "" : "#333333"});
  constexpr size_t most = 12;
  if (heat.categories.size() > most || plan.exponent)
    heat.categories.clear();  // a colour bar tells more than so long a legend
  Table table("map", what + "s");
  table.add_numbers("x", std::move(xs)).add_numbers("y", std::move(ys)).add_numbers(what, std::move(value));
  table.add_texts("label", std::move(label));
  Picturing result{{.title = model.name + ": " + heat.label, .caption = fixed_parameters(model, plan)}, {}};
  const Numbers& values = table.numbers(what);
  if (std::any_of(values.begin(), values.end(), [](double v) { return std::isinf(v); }))
    result.figure.caption += std::string(result.figure.caption.empty() ? "" : "; ") + "blank: -inf";
  result.tables.push_back(std::move(table));
  Panel panel{.x = {.label = x}, .y = {.label = y}};
  if (look.uniform) {
    panel.layers.push_back(std::move(heat));
  } else {
    panel.layers.push_back(Dots{.table = "map",
                                .x = "x",
                                .y = "y",
                                .colour = plan.exponent ? what : "label",
                                .label = plan.exponent ? heat.label : "",
                                .about_zero = plan.exponent});
  }
  result.figure.stacks.push_back({.panels = {std::move(panel)}});
  return result;
}

// ---- words ---------------------------------------------------------------------------------------------------------

/// Runs that ended before they had all their points.
long early_runs(const Runs& runs) {
  return std::count_if(runs.begin(), runs.end(), [](const auto& r) { return r && ended_badly(*r); });
}

/// Runs that never met the section.
long runs_without_points(const Runs& runs) {
  return std::count_if(runs.begin(), runs.end(), [](const auto& r) { return r && r->seen == 0; });
}

std::string runs_as_json(const Model& model, const SweepPlan& plan, const Runs& runs, const std::string& section) {
  std::ostringstream text;
  JsonWriter json(text);
  json.object();
  if (plan.varied.size() == 1) {
    json.member("parameter", plan.varied[0].name);
  } else {
    json.key("parameter").array().value(plan.varied[0].name).value(plan.varied[1].name).end();
  }
  json.member("section", section).member("early", early_runs(runs)).member("never_met", runs_without_points(runs));
  json.key("rows").rows();
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i]) continue;
    const SweepRun& r = *runs[i];
    const Place place = place_of(plan, i);
    json.object().key("value");
    if (place.values.size() == 1) {
      json.value(place.values[0]);
    } else {
      json.value(std::span<const double>(place.values));
    }
    json.member("start", place.start).member("period", r.period).member("slow", r.slow).key("points").array();
    for (size_t k = 0; k + model.states.size() <= r.points.size(); k += model.states.size()) {
      json.object();
      for (size_t s = 0; s < model.states.size(); ++s) json.member(model.states[s].name, r.points[k + s]);
      json.end();
    }
    json.end().member("sliding", r.sliding).member("events", r.events).member("time", r.time);
    if (plan.exponent) json.member("exponent", r.exponent);
    for (size_t m = 0; m < plan.measures.size(); ++m) json.member(plan.measures[m].name, r.measures[m]);
    json.member("end", why_name(r.why));
    if (!r.message.empty()) json.member("message", r.message);
    json.end();
  }
  json.end().end().flush();
  return text.str();
}

std::string counts_line(const char* head, const std::map<double, long>& counts, long none, const char* none_name) {
  constexpr size_t most = 10;
  std::vector<std::string> items;
  for (const auto& [what, count] : counts) {
    if (items.size() < most) items.push_back(fmt::format("{} in {}", print_number(what), count));
  }
  if (counts.size() > most) items.push_back(fmt::format("{} more", counts.size() - most));
  if (none > 0) items.push_back(fmt::format("{} in {}", none_name, none));
  return fmt::format("{:11}{}\n", head, fmt::join(items, ", "));
}

std::string exponents_line(const Runs& runs) {
  double low = HUGE_VAL, high = -HUGE_VAL;
  long forgotten = 0;
  for (const auto& r : runs) {
    if (!r || std::isnan(r->exponent)) continue;
    forgotten += std::isinf(r->exponent) ? 1 : 0;
    if (std::isinf(r->exponent)) continue;
    low = std::min(low, r->exponent);
    high = std::max(high, r->exponent);
  }
  std::vector<std::string> items;
  if (low <= high) items.push_back(fmt::format("largest from {:.4g} to {:.4g}", low, high));
  if (forgotten > 0) items.push_back(fmt::format("-inf in {}", forgotten));
  return items.empty() ? "" : fmt::format("exponents  {}\n", fmt::join(items, ", "));
}

std::string summary(const Model& model, const SweepPlan& plan, const Runs& runs, double seconds, double rate) {
  std::map<double, long> periods, sliding;
  std::map<Why, long> badly;
  long none = 0, slow = 0, missing = 0;
  std::string first_message;
  for (const auto& r : runs) {
    if (!r) {
      ++missing;
    } else if (ended_badly(*r)) {
      ++badly[r->why];
      if (first_message.empty()) first_message = r->message;
    } else if (r->period > 0) {
      ++periods[static_cast<double>(r->period)];
      ++sliding[r->sliding];
    } else {
      ++(r->slow ? slow : none);
    }
  }
  std::vector<std::string> ranges;
  for (const Varied& v : plan.varied) {
    const auto [low, high] = std::minmax_element(v.values.begin(), v.values.end());
    ranges.push_back(fmt::format("{} from {:.6g} to {:.6g}", v.name, *low, *high));
  }
  std::string out =
      fmt::format("runs       {}: {}{}\n", runs.size(), fmt::join(ranges, ", "),
                  plan.starts_per_value() > 1 ? fmt::format(", {} starts each", plan.starts_per_value()) : "");
  if (missing > 0) out += fmt::format("missing    {}: interrupted\n", missing);
  if (!periods.empty() || none > 0) out += counts_line("periods", periods, none, "none");
  if (slow > 0) out += fmt::format("note       {} still converging: more `skip`, or `settle`, would tell\n", slow);
  if (plan.exponent) out += exponents_line(runs);
  if (model.form.visible > 0 && !sliding.empty()) out += counts_line("sliding", sliding, 0, "");
  if (!badly.empty()) {
    std::vector<std::string> items;
    for (const auto& [why, count] : badly) items.push_back(fmt::format("{} {}", count, why_name(why)));
    out += fmt::format("badly      {}: {}\n", fmt::join(items, ", "), first_message);
    if (const long never = runs_without_points(runs); never > 0)
      out += fmt::format("early      {} of {} ended early, {} of them never met the section\n", early_runs(runs),
                         runs.size(), never);
    else
      out += fmt::format("early      {} of {} ended early\n", early_runs(runs), runs.size());
  }
  out += fmt::format("cost       {:.3g} s, {:.3g} runs per s\n", seconds, rate);
  return out;
}

}  // namespace

bool ended_badly(const SweepRun& run) { return run.why != Why::count && run.why != Why::time && run.why != Why::stop; }

std::string words_of(const SweepAnswer& answer) {
  const double computed = static_cast<double>(answer.runs.size() - answer.missing - answer.resumed);
  return summary(answer.system.model(), answer.plan, answer.runs, answer.seconds,
                 computed / std::max(answer.seconds, 1e-9));
}

std::string json_of(const SweepAnswer& answer) {
  const Model& model = answer.system.model();
  return runs_as_json(model, answer.plan, answer.runs, model.sections[static_cast<size_t>(answer.plan.section)].name);
}

std::vector<Table> tables_of(const SweepAnswer& answer) {
  const Model& model = answer.system.model();
  std::vector<Table> tables{runs_table(model, answer.plan, answer.runs)};
  if (answer.plan.keep_points) tables.push_back(points_table(model, answer.plan, answer.runs));
  return tables;
}

Picturing picture_of(const SweepAnswer& answer, const std::vector<Table>& tables, const std::vector<std::string>& shown,
                     const SweepLook& look) {
  const Model& model = answer.system.model();
  if (!answer.plan.keep_points) return picture_map(model, answer.plan, answer.runs, look);
  return picture_diagram(model, answer.plan, answer.runs, tables.back(),
                         shown_states(model, tables.back(), answer.plan, shown), look);
}

}  // namespace saltus
