#include "app/view.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/range.hpp"
#include "base/error.hpp"

namespace saltus {
namespace {

std::string packed(std::string s) {
  std::erase(s, ' ');
  return s;
}

/// "x[1..5]" as x[1], x[2], ...; anything else as it is.
std::vector<std::string> written_out(const std::string& name) {
  const size_t open = name.find('['), dots = name.find("..", open == name.npos ? 0 : open), close = name.find(']');
  if (open == name.npos || dots == name.npos || close + 1 != name.size()) return {name};
  const auto number = [&](size_t begin, size_t end) {
    long value = 0;
    const auto [last, problem] = std::from_chars(name.data() + begin, name.data() + end, value);
    if (problem != std::errc{} || last != name.data() + end)
      misuse(fmt::format("--show {}: this is no range of an index", name), "write --show x[1..5]");
    return value;
  };
  const long first = number(open + 1, dots), last = number(dots + 2, close);
  if (last < first || last - first > 10'000)
    misuse(fmt::format("--show {}: this is no range of an index", name), "write --show x[1..5]");
  std::vector<std::string> names;
  for (long k = first; k <= last; ++k) names.push_back(fmt::format("{}[{}]", name.substr(0, open), k));
  return names;
}

std::string find_column(const std::string& name, const std::vector<std::string>& known, bool time_too) {
  const auto found = std::find_if(known.begin(), known.end(), [&](const std::string& k) {
    return packed(k) == packed(name) && (time_too || k != "t");
  });
  if (found != known.end()) return *found;
  const std::string near = nearest_name(name, known);
  const size_t shown = std::min<size_t>(known.size(), 21);
  misuse(fmt::format("--show {}: there is no such quantity", name),
         near.empty() || near == "t"
             ? fmt::format("known: {}{}",
                           fmt::join(known.begin() + 1, known.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                           shown < known.size() ? ", ..." : "")
             : fmt::format("did you mean '{}'?", near));
}

/// The quantities that an axis shows; of a long row, x[1] ... x[9], what they share stands for all.
std::vector<std::string> names_at(const Axis& axis) {
  std::vector<std::string> names;
  if (axis.label.find(" ... ") != axis.label.npos) return {axis.label};
  for (size_t at = 0; at <= axis.label.size();) {
    const size_t end = std::min(axis.label.find(", ", at), axis.label.size());
    names.push_back(axis.label.substr(at, end - at));
    at = end + 2;
  }
  return names;
}

struct AxisRange {
  std::string given, name;
  double from = 0, to = 0;
  bool used = false;
};

std::vector<AxisRange> read_ranges(const std::vector<std::string>& texts, const Model& model) {
  std::vector<AxisRange> ranges;
  for (const std::string& text : texts) {
    const Setting s = read_setting(text, "--range");
    const std::string given = "--range " + text;
    const auto ends = split_list(s.value, ':');
    if (ends.size() != 2) misuse(fmt::format("{}: this is no interval", given), "write --range y=-2:2");
    ranges.push_back(
        {given, s.name, read_number(ends[0], given + ":", model), read_number(ends[1], given + ":", model)});
    if (!(ranges.back().from < ranges.back().to))
      misuse(fmt::format("{}: this is no interval", given), "the first end is the lower one");
  }
  return ranges;
}

}  // namespace

std::vector<Shown> find_shown(const std::vector<std::string>& asked, const std::vector<std::string>& known) {
  std::vector<Shown> all;
  for (const std::string& list : asked) {
    for (const std::string& item : split_list(list)) {
      const auto parts = split_list(item, ':');
      if (parts.size() == 1) {
        for (const std::string& name : written_out(item)) all.push_back({find_column(name, known, false)});
        continue;
      }
      if (parts.size() > 3)
        misuse(fmt::format("--show {}: too many axes", item), "x over time, x:y in a plane, or x:y:z in space");
      Shown axes;
      for (const std::string& part : parts) axes.push_back(find_column(part, known, true));
      all.push_back(std::move(axes));
    }
  }
  return all;
}

std::vector<std::string> find_columns(const std::vector<std::string>& asked, const std::vector<std::string>& known) {
  std::vector<std::string> names;
  for (const Shown& shown : find_shown(asked, known)) names.insert(names.end(), shown.begin(), shown.end());
  return names;
}

void check_view(const OutputOptions& output, const Model& model) { read_ranges(output.range, model); }

std::string set_view(Figure& figure, const OutputOptions& output, const Model& model) {
  std::string notes;
  std::vector<AxisRange> ranges = read_ranges(output.range, model);
  std::vector<std::string> seen;
  bool plane = false;
  for (Stack& stack : figure.stacks) {
    for (Panel& panel : stack.panels) {
      const bool bars = std::all_of(panel.layers.begin(), panel.layers.end(),
                                    [](const Layer& layer) { return std::holds_alternative<Ribbon>(layer); });
      panel.x.log = panel.x.log || output.log_x;
      panel.y.log = panel.y.log || (output.log_y && !bars);
      const bool over_time = panel.x.label == "t";
      plane = plane || !over_time;
      panel.equal = panel.equal || (output.equal && !over_time);
      for (Axis* axis : {&panel.x, &panel.y, &panel.z}) {
        std::vector<std::string> names = names_at(*axis);
        for (AxisRange& range : ranges) {
          const bool row = axis->label.find(" ... ") != axis->label.npos &&
                           axis->label.substr(0, axis->label.find_first_of("[ ")) == range.name;
          if (!row && std::find(names.begin(), names.end(), range.name) == names.end()) continue;
          axis->from = range.from;
          axis->to = range.to;
          range.used = true;
        }
        seen.insert(seen.end(), names.begin(), names.end());
        for (std::string& name : names) name = label_of(model, name);
        axis->label = fmt::format("{}", fmt::join(names, ", "));
      }
    }
  }
  for (const AxisRange& range : ranges) {
    if (range.used) continue;
    std::erase(seen, "");
    std::sort(seen.begin(), seen.end());
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    notes += fmt::format("{}: no axis shows '{}', but {}\n", range.given, range.name, fmt::join(seen, ", "));
  }
  if (output.equal && !plane) notes += "--equal: there is no plane in this picture; choose its axes: --show x:y\n";
  return notes;
}

}  // namespace saltus
