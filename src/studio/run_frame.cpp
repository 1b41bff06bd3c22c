#include "studio/run_frame.hpp"

#include <algorithm>
#include <cmath>

#include "out/thin.hpp"
#include "report/run_figure.hpp"
#include "report/run_json.hpp"
#include "report/summary.hpp"
#include "studio/frame.hpp"

namespace saltus {
namespace {

constexpr size_t most_rows = 20'000, most_events = 2'000;

using Columns = std::vector<std::vector<double>>;

Columns columns_of(const Rows& rows) {
  const size_t width = rows.columns.size(), count = rows.count();
  Columns columns(width, std::vector<double>(count));
  for (size_t r = 0; r < count; ++r) {
    for (size_t c = 0; c < width; ++c) columns[c][r] = rows.cells[r * width + c];
  }
  return columns;
}

/// The rows that can be told apart on a screen in any column over time, and in the plane of the first two states.
std::vector<size_t> visible_rows(const Columns& columns, size_t states) {
  std::vector<char> keep(columns.front().size(), 0);
  const auto range = [](const std::vector<double>& column) {
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (const double v : column) {
      low = std::fmin(low, v);
      high = std::fmax(high, v);
    }
    return std::pair(low, high);
  };
  const auto mark = [&](const std::vector<double>& x, const std::vector<double>& y) {
    const auto [x0, x1] = range(x);
    const auto [y0, y1] = range(y);
    const PixelMap map{.x_from = x0, .x_to = x1, .y_from = y0, .y_to = y1, .width = 1600, .height = 1000};
    size_t last = 0;
    for (const size_t r : thin_line(x, y, map, most_rows)) {
      if (r == kGap) {
        if (last + 1 < keep.size()) keep[last + 1] = 1;  // the row of NaN
      } else {
        keep[last = r] = 1;
      }
    }
  };
  for (size_t c = 1; c < columns.size(); ++c) mark(columns[0], columns[c]);
  if (states > 1) mark(columns[1], columns[2]);
  std::vector<size_t> kept;
  for (size_t r = 0; r < keep.size(); ++r) {
    if (keep[r]) kept.push_back(r);
  }
  return kept;
}

void write_events(JsonWriter& json, const std::vector<Event>& events) {
  json.key("events").rows();
  for (size_t i = 0; i < std::min(events.size(), most_events); ++i) {
    const Event& e = events[i];
    json.array().value(e.t).value(kind_name(e.kind)).value(std::span<const std::string>(e.on));
    json.value(e.before.text()).value(e.after.text()).value(e.count).end();
  }
  json.end();
}

/// The quantities that share a panel, as in the picture of `saltus run`.
void write_panels(JsonWriter& json, const Model& model, const Rows& rows) {
  const Picturing picturing = picture_run(model, rows, data_table(model, rows), {});
  json.key("panels").array();
  if (!picturing.figure.stacks.empty()) {
    for (const Panel& panel : picturing.figure.stacks.front().panels) {
      std::vector<std::string> names;
      for (const Layer& layer : panel.layers) {
        if (const Line* line = std::get_if<Line>(&layer); line && line->x == "t") names.push_back(line->y);
      }
      if (!names.empty()) json.value(std::span<const std::string>(names));
    }
  }
  json.end();
}

std::vector<double> event_states(const std::vector<Event>& events, bool before) {
  std::vector<double> states;
  for (size_t i = 0; i < std::min(events.size(), most_events); ++i) {
    const std::vector<double>& x = before ? events[i].jumped.value_or(events[i].state) : events[i].state;
    states.insert(states.end(), x.begin(), x.end());
  }
  return states;
}

}  // namespace

std::string run_frame(long id, const RunAnswer& answer, const RunFrameNotes& notes) {
  const Model& model = answer.system.model();
  const Trajectory& path = answer.trajectory;
  const Rows& rows = answer.rows;
  Frame frame;
  Columns columns = columns_of(rows);
  const bool thinned = rows.count() > most_rows;
  if (thinned) {
    const std::vector<size_t> kept = visible_rows(columns, model.states.size());
    for (std::vector<double>& column : columns) {
      std::vector<double> few;
      few.reserve(kept.size());
      for (const size_t r : kept) few.push_back(column[r]);
      column = std::move(few);
    }
  }
  for (size_t c = 0; c < columns.size(); ++c) frame.add(rows.columns[c], columns[c]);
  std::vector<double> from, to;
  std::vector<std::int32_t> mode;
  for (const Stay& stay : rows.stays) {
    from.push_back(stay.from);
    to.push_back(stay.to);
    mode.push_back(stay.mode);
  }
  frame.add("stay.from", from).add("stay.to", to).add("stay.mode", mode);
  frame.add("event.state", event_states(path.events, false)).add("event.before", event_states(path.events, true));

  return frame.bytes(id, "run", [&](JsonWriter& json) {
    json.member("rows", rows.count()).member("thinned", thinned).member("drag", notes.drag).member("late", notes.late);
    json.member("from", answer.options.from).member("until", notes.until);
    json.member("states", model.states.size()).key("columns").value(std::span<const std::string>(rows.columns));
    json.key("start").value(std::span<const double>(path.start_state));
    write_end(json, model, path.end);
    json.key("messages").value(std::span<const std::string>(answer.notes));
    json.key("modes").array();
    for (const Mode& m : rows.modes) json.value(m.text());
    json.end();
    write_events(json, path.events);
    long count = 0;
    for (const auto& [kind, n] : rows.counts) count += n;
    json.member("event_count", count);
    json.key("cost").object().member("steps", path.cost.steps).member("seconds", path.cost.seconds).end();
    if (notes.drag) return;
    write_panels(json, model, rows);
    json.member("summary", end_line(model, path.end) + events_line(rows.counts) + sliding_line(model, path));
  });
}

}  // namespace saltus
