#include "report/run_figure.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "expr/print.hpp"

namespace saltus {
namespace {

constexpr size_t most_panels = 6, most_lines = 10, most_ribbons = 8;
constexpr size_t most_marks_shown = 100;

// ---- grouping ------------------------------------------------------------------------------------------------------

/// The stem that related names share: x1, x2, xm are x, and so is x[3]; phi_a, phi_b are phi; a longer word is its own.
std::string family(const std::string& name) {
  if (const size_t index = name.find('['); index != name.npos && index > 0) return name.substr(0, index);
  if (const size_t score = name.find('_'); score != name.npos && score > 0) return name.substr(0, score);
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  if (digits > 0 && digits < name.size()) return name.substr(0, digits);
  if (name.size() == 2 && std::isalpha(static_cast<unsigned char>(name[1]))) return name.substr(0, 1);
  return name;
}

double size_of(const Table& data, const std::string& column) {
  double size = 0;
  for (const double v : data.numbers(column)) {
    if (std::isfinite(v)) size = std::max(size, std::abs(v));
  }
  return size;
}

/// Kin of comparable size share a panel; what finds no place in the first ones is left out.
std::vector<std::vector<std::string>> group(const std::vector<std::string>& names, const Table& data) {
  std::vector<std::vector<std::string>> groups;
  std::vector<double> sizes;
  std::vector<std::string> families;
  for (const std::string& name : names) {
    const double size = size_of(data, name);
    const std::string own = family(name);
    bool placed = false;
    for (size_t g = 0; g < groups.size() && !placed; ++g) {
      const bool kin = families[g] == own && groups[g].size() < most_lines;
      const bool comparable = size == 0 || sizes[g] == 0 || (size <= 30 * sizes[g] && sizes[g] <= 30 * size);
      if (!kin || !comparable) continue;
      groups[g].push_back(name);
      sizes[g] = std::max(sizes[g], size);
      placed = true;
    }
    if (placed || groups.size() == most_panels) continue;
    groups.push_back({name});
    sizes.push_back(size);
    families.push_back(own);
  }
  return groups;
}

// ---- marks ---------------------------------------------------------------------------------------------------------

/// Where marks would cover the curves, the least telling kinds are left out, then all.
Table visible_marks(const Table& all) {
  const Texts& kinds = all.texts(kind_of_mark);
  std::vector<std::string> dropped;
  const auto stays = [&](size_t row) { return std::find(dropped.begin(), dropped.end(), kinds[row]) == dropped.end(); };
  size_t left = kinds.size();
  for (const char* kind : {"section", "graze", "cross"}) {
    if (left <= most_marks_shown) break;
    dropped.emplace_back(kind);
    left -= static_cast<size_t>(std::count(kinds.begin(), kinds.end(), kind));
  }
  if (left > most_marks_shown) return Table("marks");
  Table table("marks");
  for (const Column& column : all.columns()) {
    if (column.is_text()) continue;
    Numbers values;
    for (size_t r = 0; r < kinds.size(); ++r) {
      if (stays(r)) values.push_back(std::get<Numbers>(column.values)[r]);
    }
    table.add_numbers(column.name, std::move(values));
  }
  Texts names;
  for (size_t r = 0; r < kinds.size(); ++r) {
    if (stays(r)) names.push_back(kinds[r]);
  }
  table.add_texts(kind_of_mark, std::move(names));
  return table;
}

// ---- panels --------------------------------------------------------------------------------------------------------

Panel panel_over_time(const std::vector<std::string>& names, bool marked) {
  const std::string label = names.size() <= 4 ? fmt::format("{}", fmt::join(names, ", "))
                                              : fmt::format("{} ... {}", names.front(), names.back());
  Panel panel{.x = {.label = "t"}, .y = {.label = label}};
  for (const std::string& name : names)
    panel.layers.push_back(Line{.x = "t", .y = name, .label = names.size() > 1 ? name : ""});
  if (marked) {
    for (const std::string& name : names)
      panel.layers.push_back(Points{.table = "marks", .x = "t", .y = name, .kind = kind_of_mark});
  }
  return panel;
}

Panel phase_plane(const std::string& x, const std::string& y, bool marked) {
  Panel panel{.x = {.label = x}, .y = {.label = y}, .layers = {Line{.x = x, .y = y}}};
  if (marked) panel.layers.push_back(Points{.table = "marks", .x = x, .y = y, .kind = kind_of_mark});
  return panel;
}

/// A ribbon per switch and constraint, or one for the whole mode where there are many.
Panel ribbons(const Model& model, const Rows& rows, std::vector<Table>& tables) {
  const size_t switches = static_cast<size_t>(model.form.visible), all = switches + model.constraints.size();
  Panel panel{.x = {.label = "t"}};
  const auto add = [&](const std::string& label, const auto& word) {
    Numbers from, to;
    Texts texts;
    for (const Stay& stay : rows.stays) {
      const std::string text = word(rows.modes[static_cast<size_t>(stay.mode)]);
      const auto [lo, hi] = std::minmax(stay.from, stay.to);
      if (!texts.empty() && texts.back() == text) {
        from.back() = std::min(from.back(), lo);
        to.back() = std::max(to.back(), hi);
        continue;
      }
      from.push_back(lo);
      to.push_back(hi);
      texts.push_back(text);
    }
    Table table(fmt::format("mode {}", tables.size()), label);
    table.add_numbers("from", std::move(from)).add_numbers("to", std::move(to)).add_texts("mode", std::move(texts));
    panel.layers.push_back(Ribbon{.table = table.name(), .label = label});
    tables.push_back(std::move(table));
  };
  if (all > most_ribbons) {
    add("mode", [](const Mode& mode) { return mode.text(); });
    return panel;
  }
  for (size_t i = 0; i < switches; ++i) {
    add(model.form.switches[i].name, [&model, i](const Mode& mode) -> std::string {
      const char c = mode.switches[i];
      if (model.form.switches[i].vector >= 0 && c != '0') return "slips";
      return c == '0' ? "= 0" : c == '+' ? "> 0" : "< 0";
    });
  }
  for (size_t j = 0; j + switches < all; ++j) {
    add(model.constraints[j].name,
        [j](const Mode& mode) -> std::string { return mode.constraints[j] == 'c' ? "closed" : "open"; });
  }
  return panel;
}

}  // namespace

std::string caption_of(const Model& model, std::span<const int> without) {
  std::vector<std::string> items;
  for (size_t i = 0; i < model.parameters.size(); ++i) {
    const Parameter& p = model.parameters[i];
    if (std::find(without.begin(), without.end(), static_cast<int>(i)) != without.end()) continue;
    items.push_back(fmt::format("{}\u00a0=\u00a0{}", p.name, print(p.value)));
  }
  return fmt::format("{}", fmt::join(items, ", "));
}

namespace {

Panel space_curve(const Shown& axes) {
  return {.x = {.label = axes[0]},
          .y = {.label = axes[1]},
          .z = {.label = axes[2]},
          .layers = {Curve{.x = axes[0], .y = axes[1], .z = axes[2]}}};
}

}  // namespace

Picturing picture_run(const Model& model, const Rows& rows, const Table& data, const std::vector<Shown>& shown) {
  std::vector<std::string> names;
  std::vector<Shown> planes;
  for (const Shown& item : shown) {
    if (item.size() == 1) names.push_back(item[0]);
    if (item.size() > 1) planes.push_back(item);
  }
  if (shown.empty()) names = model.state_names();
  if (planes.empty() && names.size() == 2) planes.push_back({names[0], names[1]});
  const auto groups = group(names, data);

  Picturing result{{.title = model.name, .caption = caption_of(model)}, {}};
  result.tables.push_back(visible_marks(marks_table(rows)));
  const bool marked = result.tables.back().rows() > 0;

  if (!names.empty()) {
    Stack time{.share_x = true};
    for (const auto& g : groups) time.panels.push_back(panel_over_time(g, marked));
    // One mode among many tells nothing.
    const size_t unknowns = static_cast<size_t>(model.form.visible) + model.constraints.size();
    if (!rows.stays.empty() && (unknowns <= most_ribbons || rows.modes.size() > 1))
      time.panels.push_back(ribbons(model, rows, result.tables));
    if (!planes.empty()) time.width = 1.35;
    result.figure.stacks.push_back(std::move(time));
  }
  for (const Shown& axes : planes)
    result.figure.stacks.push_back(
        {.panels = {axes.size() == 2 ? phase_plane(axes[0], axes[1], marked) : space_curve(axes)}});
  return result;
}

}  // namespace saltus
