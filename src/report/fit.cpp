#include "report/fit.hpp"

#include <cmath>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/index.hpp"
#include "out/json.hpp"
#include "report/summary.hpp"
#include "report/words.hpp"

namespace saltus {
namespace {

void write_values(JsonWriter& json, const FitAnswer& answer) {
  json.key("parameters").object();
  for (const FittedValue& v : answer.values) {
    json.key(v.name).object().member("value", v.value).key("error");
    write_number(json, v.error);
    if (v.low || v.high) {
      json.key("bounds").array();
      write_number(json, v.low.value_or(-HUGE_VAL));
      write_number(json, v.high.value_or(HUGE_VAL));
      json.end();
    }
    json.end();
  }
  json.end().key("correlation").array();
  for (const std::vector<double>& row : answer.correlation) json.value(std::span<const double>(row));
  json.end();
}

void write_more(JsonWriter& json, const FitAnswer& answer) {
  if (answer.minima.size() > 1 || answer.plan.question.starts > 1) {
    json.key("minima").rows();
    for (const FitMinimum& m : answer.minima)
      json.object().key("values").value(std::span<const double>(m.values)).member("cost", m.cost).end();
    json.end();
  }
  if (answer.profiles.empty()) return;
  json.key("profile").object();
  for (size_t k = 0; k < answer.profiles.size(); ++k) {
    const FitProfile& p = answer.profiles[k];
    json.key(answer.values[k].name).object().key("value").value(std::span<const double>(p.value));
    json.key("cost").value(std::span<const double>(p.cost)).key("interval").array();
    for (const std::optional<double>& end : {p.low, p.high}) end ? json.value(*end) : json.null();
    json.end().end();
  }
  json.end();
}

std::string title_of(const FittedSeries& s) { return s.experiment + ": " + s.name; }

Numbers column_of(const FittedSeries& s, double FittedDatum::*what) {
  Numbers out;
  for (const FittedDatum& d : s.data) out.push_back(d.*what);
  return out;
}

}  // namespace

std::string words_of(const FitAnswer& answer) {
  std::string out = fmt::format("fit        {} after {} iterations, {} runs; sum of squares {}\n", answer.why,
                                answer.iterations, answer.runs, number(answer.cost));
  for (const FittedValue& v : answer.values)
    out += fmt::format("{:10} {:.10g}{}\n", v.name, v.value,
                       std::isnan(v.error)   ? " (at its bound)"
                       : std::isinf(v.error) ? " (the data do not say)"
                                             : fmt::format(" ± {:.2g}", v.error));
  constexpr double strong = 0.95;
  for (size_t i = 0; i < answer.values.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (std::abs(answer.correlation[i][k]) >= strong)
        out += fmt::format("  {} and {} are correlated: {:.4f}\n", answer.values[k].name, answer.values[i].name,
                           answer.correlation[i][k]);
    }
  }
  for (size_t k = 0; k < answer.profiles.size(); ++k) {
    const FitProfile& p = answer.profiles[k];
    out += fmt::format("  {} lies between {} and {} (95 %)\n", answer.values[k].name, p.low ? number(*p.low) : "?",
                       p.high ? number(*p.high) : "?");
  }
  for (const FittedSeries& s : answer.series)
    out += fmt::format("data       {}: {} points, rms {}\n", title_of(s), s.data.size(), number(s.rms));
  for (size_t k = 1; k < answer.minima.size(); ++k) {
    std::vector<std::string> values;
    for (size_t i = 0; i < answer.values.size(); ++i)
      values.push_back(fmt::format("{} = {}", answer.values[i].name, number(answer.minima[k].values[i])));
    out += fmt::format("minimum    {} with the sum {}\n", fmt::join(values, ", "), number(answer.minima[k].cost));
  }
  return out + note_lines(answer.notes);
}

std::string json_of(const FitAnswer& answer) {
  std::ostringstream text;
  JsonWriter json(text);
  json.object();
  write_values(json, answer);
  json.member("cost", answer.cost).member("sigma", answer.sigma).member("iterations", answer.iterations);
  json.member("runs", static_cast<int64_t>(answer.runs)).member("why", answer.why).key("data").rows();
  for (const FittedSeries& s : answer.series)
    json.object()
        .member("name", s.experiment)
        .member("of", s.name)
        .member("points", static_cast<int64_t>(s.data.size()))
        .member("rms", s.rms)
        .end();
  json.end();
  write_more(json, answer);
  json.key("warnings").value(std::span<const std::string>(answer.notes)).end().flush();
  return text.str();
}

std::vector<Table> tables_of(const FitAnswer& answer) {
  Table fit("fit", "data, the model there, residuals"), data("data", "fitted values"),
      profile("profile", "least sums of squares over each value");
  Texts experiment, quantity, of_profile;
  Numbers t, datum, model, residual, held, cost;
  for (const FittedSeries& s : answer.series) {
    for (const FittedDatum& d : s.data) {
      experiment.push_back(s.experiment);
      quantity.push_back(s.name);
      t.push_back(d.t);
      datum.push_back(d.datum);
      model.push_back(d.model);
      residual.push_back(d.datum - d.model);
    }
  }
  fit.add_texts("experiment", std::move(experiment)).add_texts("quantity", std::move(quantity));
  fit.add_numbers("t", std::move(t), "time").add_numbers("datum", std::move(datum));
  fit.add_numbers("model", std::move(model)).add_numbers("residual", std::move(residual));
  Texts names;
  Numbers values, errors;
  for (const FittedValue& v : answer.values) {
    names.push_back(v.name);
    values.push_back(v.value);
    errors.push_back(v.error);
  }
  data.add_texts("name", std::move(names)).add_numbers("value", std::move(values));
  data.add_numbers("error", std::move(errors), "standard");
  std::vector<Table> out{std::move(data), std::move(fit)};
  if (answer.profiles.empty()) return out;
  for (size_t k = 0; k < answer.profiles.size(); ++k) {
    const FitProfile& p = answer.profiles[k];
    of_profile.insert(of_profile.end(), p.value.size(), answer.values[k].name);
    held.insert(held.end(), p.value.begin(), p.value.end());
    cost.insert(cost.end(), p.cost.begin(), p.cost.end());
  }
  profile.add_texts("name", std::move(of_profile)).add_numbers("value", std::move(held));
  profile.add_numbers("cost", std::move(cost));
  out.push_back(std::move(profile));
  return out;
}

Picturing picture_of(const FitAnswer& answer) {
  const Model& model = answer.system.model();
  Picturing out{{.title = model.name + ": fit", .caption = caption_of(model)}, {}};
  constexpr size_t most = 5;
  Stack curves{.width = 2};
  Panel residuals{.title = "residuals", .x = {.label = "t"}, .y = {.label = "residual"}, .height = 0.6};
  for (size_t s = 0; s < answer.series.size(); ++s) {
    const FittedSeries& series = answer.series[s];
    Table table(fmt::format("series{}", s + 1), title_of(series));
    Numbers residual;
    for (const FittedDatum& d : series.data) residual.push_back(d.datum - d.model);
    table.add_numbers("t", column_of(series, &FittedDatum::t))
        .add_numbers("datum", column_of(series, &FittedDatum::datum));
    table.add_numbers("model", column_of(series, &FittedDatum::model)).add_numbers("residual", std::move(residual));
    residuals.layers.emplace_back(Points{.table = table.name(), .x = "t", .y = "residual", .label = title_of(series)});
    if (s < most)
      curves.panels.push_back({.title = title_of(series),
                               .x = {.label = "t"},
                               .y = {.label = series.events ? "time of the event" : series.name},
                               .layers = {Line{.table = table.name(), .x = "t", .y = "model"},
                                          Points{.table = table.name(), .x = "t", .y = "datum"}}});
    out.tables.push_back(std::move(table));
  }
  curves.panels.push_back(std::move(residuals));
  out.figure.stacks.push_back(std::move(curves));
  if (answer.profiles.empty()) return out;
  Stack profiles;
  for (size_t k = 0; k < std::min(most, answer.profiles.size()); ++k) {
    Table table(fmt::format("profile{}", k + 1), answer.values[k].name);
    table.add_numbers("value", answer.profiles[k].value).add_numbers("cost", answer.profiles[k].cost);
    profiles.panels.push_back({.x = {.label = answer.values[k].name},
                               .y = {.label = "sum of squares"},
                               .layers = {Line{.table = table.name(), .x = "value", .y = "cost"}}});
    out.tables.push_back(std::move(table));
  }
  out.figure.stacks.push_back(std::move(profiles));
  return out;
}

}  // namespace saltus
