#include "app/follow_figure.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/range.hpp"

namespace saltus {
namespace {

[[noreturn]] void misuse(std::string message, std::string hint) {
  throw Error(ErrorKind::usage, std::move(message), {}, std::move(hint));
}

/// "max(x)" apart: what, and of which state; state -1 for the period.
struct Measure {
  std::string what;
  int state = -1;
};

Measure read_measure(const std::string& text, const Model& model) {
  if (text.empty()) return {"", 0};
  if (text == "period") return {"period", -1};
  std::string name = text, what;
  for (const char* word : {"max", "min"}) {
    if (text.starts_with(fmt::format("{}(", word)) && text.ends_with(")")) {
      what = word;
      name = text.substr(4, text.size() - 5);
    }
  }
  const std::vector<std::string> names = model.state_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    misuse(fmt::format("--measure {}: there is no state '{}'", text, name),
           fmt::format("known: {}, max(NAME), min(NAME), period", fmt::join(names, ", ")));
  return {what, static_cast<int>(found - names.begin())};
}

double measured(const Measure& m, const BranchPoint& p) {
  if (m.state < 0) return p.period;
  const size_t i = static_cast<size_t>(m.state);
  if (m.what == "max" && !p.highest.empty()) return p.highest[i];
  if (m.what == "min" && !p.lowest.empty()) return p.lowest[i];
  return p.state[i];
}

double ordinate(const Measure& m, const BranchPoint& p, const BranchAxes& axes) {
  return p.values.size() > 1 ? axes.value(1, p.values[1]) : measured(m, p);
}

/// The points of a sweep: its points.csv, a column for the value and one for each state.
Table read_sweep(const std::string& folder, const std::string& x, const std::string& y) {
  const std::string path = folder + "/points.csv";
  std::ifstream file(path);
  if (!file) misuse(fmt::format("--over {}: there are no points of a sweep", folder), "name the folder of a sweep");
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = split_list(line);
  const auto column = [&](const std::string& name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      misuse(fmt::format("--over {}: the sweep has no column '{}'", folder, name),
             fmt::format("it has: {}", fmt::join(names, ", ")));
    return static_cast<size_t>(found - names.begin());
  };
  const size_t cx = column(x), cy = column(y);
  Numbers xs, ys;
  while (std::getline(file, line)) {
    const std::vector<std::string> parts = split_list(line);
    if (parts.size() <= std::max(cx, cy)) continue;
    xs.push_back(std::strtod(parts[cx].c_str(), nullptr));
    ys.push_back(std::strtod(parts[cy].c_str(), nullptr));
  }
  Table table("sweep", "points of the sweep below");
  return table.add_numbers("x", std::move(xs)).add_numbers("y", std::move(ys));
}

}  // namespace

void check_measure(const std::string& measure, const Model& model, bool equilibria) {
  const Measure m = read_measure(measure, model);
  if (equilibria && m.state < 0) misuse("--measure period: equilibria have none", "choose a state");
}

Table branch_table(const Model& model, const Branch& branch, const BranchAxes& axes, const std::string& called) {
  Table table(called, "points in order along the branch");
  for (size_t k = 0; k < axes.names.size(); ++k) {
    Numbers values;
    for (const BranchPoint& p : branch.points) values.push_back(axes.value(k, p.values[k]));
    table.add_numbers(axes.names[k], std::move(values));
  }
  for (size_t i = 0; i < model.states.size(); ++i) {
    Numbers values, low, high;
    for (const BranchPoint& p : branch.points) {
      values.push_back(p.state[i]);
      low.push_back(p.lowest.empty() ? p.state[i] : p.lowest[i]);
      high.push_back(p.highest.empty() ? p.state[i] : p.highest[i]);
    }
    const std::string& name = model.states[i].name;
    table.add_numbers(name, std::move(values));
    if (branch.equilibria) continue;
    table.add_numbers(fmt::format("min({})", name), std::move(low));
    table.add_numbers(fmt::format("max({})", name), std::move(high));
  }
  Numbers period, stable, re, im;
  Texts labels, signatures;
  for (const BranchPoint& p : branch.points) {
    period.push_back(p.period);
    stable.push_back(p.stable ? 1 : 0);
    re.push_back(p.spectrum.empty() ? 0 : p.spectrum[0].real());
    im.push_back(p.spectrum.empty() ? 0 : p.spectrum[0].imag());
    labels.push_back(p.label);
    signatures.push_back(fmt::format("{}", fmt::join(p.signature, " ")));
  }
  if (!branch.equilibria) table.add_numbers("period", std::move(period));
  const std::string what = branch.equilibria ? "first eigenvalue" : "largest multiplier";
  return table.add_numbers("stable", std::move(stable))
      .add_numbers("re", std::move(re), what)
      .add_numbers("im", std::move(im), what)
      .add_texts("label", std::move(labels))
      .add_texts("signature", std::move(signatures));
}

Table special_table(const Model& model, const Branch& branch, const BranchAxes& axes, const std::string& called) {
  Table table(called, "special points");
  Texts labels, types, details;
  for (const SpecialPoint& s : branch.special) {
    labels.push_back(s.label);
    types.push_back(s.type);
    details.push_back(s.detail);
  }
  table.add_texts("label", std::move(labels)).add_texts("type", std::move(types));
  for (size_t k = 0; k < axes.names.size(); ++k) {
    Numbers values;
    for (const SpecialPoint& s : branch.special) values.push_back(axes.value(k, s.values[k]));
    table.add_numbers(axes.names[k], std::move(values));
  }
  for (size_t i = 0; i < model.states.size(); ++i) {
    Numbers values;
    for (const SpecialPoint& s : branch.special) values.push_back(s.state[i]);
    table.add_numbers(model.states[i].name, std::move(values));
  }
  Numbers period;
  for (const SpecialPoint& s : branch.special) period.push_back(s.period);
  if (!branch.equilibria) table.add_numbers("period", std::move(period));
  return table.add_texts("detail", std::move(details));
}

Picturing picture_branches(const Model& model, const std::vector<Branch>& branches, const BranchAxes& axes,
                           const std::string& over) {
  const Measure measure = read_measure(axes.measure, model);
  const bool plane = axes.names.size() > 1;
  const std::string name = plane              ? axes.names[1]
                           : measure.state < 0 ? "period"
                           : axes.measure.empty() ? model.states[0].name
                                                  : axes.measure;
  Picturing out{{.title = fmt::format("{}: {}", model.name.empty() ? "branch" : model.name,
                                      plane ? "curve of a special point" : "branch"),
                 .caption = caption_of(model)},
                {}};
  Panel panel{.x = {.label = axes.names[0]}, .y = {.label = name}};
  if (!over.empty()) {
    const size_t state = static_cast<size_t>(std::max(measure.state, 0));
    out.tables.push_back(read_sweep(over, axes.names[0], model.states[state].name));
    panel.layers.push_back(Dots{.table = "sweep", .x = "x", .y = "y"});
  }
  // Each stretch of one stability is a line; neighbours share the point between them.
  Numbers sx, sy, ux, uy, mx, my;
  Texts kinds, labels;
  std::vector<double> places;
  for (const Branch& branch : branches) {
    for (size_t i = 0; i < branch.points.size(); ++i) {
      const BranchPoint& p = branch.points[i];
      const double x = axes.value(0, p.values[0]), y = ordinate(measure, p, axes);
      const bool stable = plane || p.stable;
      const bool changed = i > 0 && (plane || branch.points[i - 1].stable) != stable;
      Numbers &xs = stable ? sx : ux, &ys = stable ? sy : uy;
      if (changed) {
        const BranchPoint& q = branch.points[i - 1];
        (stable ? ux : sx).push_back(NAN), (stable ? uy : sy).push_back(NAN);
        xs.push_back(axes.value(0, q.values[0])), ys.push_back(ordinate(measure, q, axes));
      }
      xs.push_back(x), ys.push_back(y);
    }
    for (Numbers* v : {&sx, &sy, &ux, &uy}) v->push_back(NAN);
    for (const SpecialPoint& s : branch.special) {
      for (const BranchPoint& p : branch.points) {
        if (p.label != s.label) continue;
        mx.push_back(axes.value(0, p.values[0])), my.push_back(ordinate(measure, p, axes));
        kinds.push_back(s.type), labels.push_back(s.label);
        places.push_back(mx.back());
        break;
      }
    }
  }
  const auto line = [&](const char* table, Numbers xs, Numbers ys, bool dashed, const char* label) {
    if (xs.empty() || std::all_of(xs.begin(), xs.end(), [](double v) { return std::isnan(v); })) return;
    Table t(table, label);
    out.tables.push_back(t.add_numbers("x", std::move(xs)).add_numbers("y", std::move(ys)));
    panel.layers.push_back(Line{.table = table, .x = "x", .y = "y", .label = plane ? "" : label, .dashed = dashed,
                                .colour = dashed ? "#b2182b" : "#2166ac"});
  };
  line("stable", std::move(sx), std::move(sy), false, "stable");
  line("unstable", std::move(ux), std::move(uy), true, "unstable");
  if (!mx.empty()) {
    panel.layers.push_back(Verticals{.at = places, .labels = labels});
    Table t("specials", "special points");
    out.tables.push_back(
        t.add_numbers("x", std::move(mx)).add_numbers("y", std::move(my)).add_texts("kind", std::move(kinds)));
    panel.layers.push_back(Points{.table = "specials", .x = "x", .y = "y", .kind = "kind"});
  }
  out.figure.stacks.push_back({.panels = {std::move(panel)}});
  return out;
}

}  // namespace saltus
