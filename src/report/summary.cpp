#include "report/summary.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/words.hpp"

namespace saltus {
namespace {

std::string duration(double seconds) {
  return seconds < 1 ? fmt::format("{:.3g} ms", 1e3 * seconds) : fmt::format("{:.3g} s", seconds);
}

std::string plural(long count, const char* word) { return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s"); }

}  // namespace

std::string end_line(const Model& model, const End& end) {
  constexpr size_t most = 8;
  std::string out = "end        ";
  if (end.why != Why::time)
    out += fmt::format("{}{}{}; ", why_name(end.why), end.message.empty() ? "" : ": ", end.message);
  out += "t = " + number(end.t);
  for (size_t i = 0; i < std::min(most, end.state.size()); ++i)
    out += fmt::format(", {} = {}", model.states[i].name, number(end.state[i]));
  if (end.state.size() > most) out += fmt::format(", {} more", end.state.size() - most);
  const std::string mode = end.mode.text();
  if (!mode.empty() && mode.size() <= 40) out += ", mode " + mode;
  return out + "\n";
}

std::string events_line(const std::map<EventKind, long>& counts) {
  long all = 0;
  std::vector<std::string> items;
  for (const auto& [kind, count] : counts) {
    all += count;
    items.push_back(fmt::format("{} {}", count, kind_name(kind)));
  }
  if (all == 0) return "events     none\n";
  if (items.size() == 1) return fmt::format("events     {}\n", items[0]);
  return fmt::format("events     {}: {}\n", all, fmt::join(items, ", "));
}

std::string sliding_line(const Model& model, const Trajectory& trajectory) {
  constexpr size_t most = 4;
  if (model.form.visible == 0) return "";
  std::vector<size_t> order(trajectory.sliding.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::erase_if(order, [&](size_t i) { return trajectory.sliding[i].time <= 0; });
  if (order.empty()) return "sliding    none\n";
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return trajectory.sliding[a].time > trajectory.sliding[b].time; });
  double error = 0;
  std::vector<std::string> items;
  const double length = std::abs(trajectory.end.t - trajectory.start_time);
  for (const size_t i : order) {
    const SlidingRecord& record = trajectory.sliding[i];
    error = std::max(error, record.largest_error);
    if (items.size() < most)
      items.push_back(fmt::format("{} = 0 for {} ({:.3g} %)", model.form.switches[i].name, number(record.time),
                                  100 * record.time / length));
  }
  if (order.size() > most) items.push_back(fmt::format("{} more", order.size() - most));
  return fmt::format("sliding    {}, to within {:.2g}\n", fmt::join(items, ", "), error);
}

std::string cost_line(const Cost& cost) {
  return fmt::format("cost       {} in {}\n", plural(cost.steps, "step"), duration(cost.seconds));
}

std::string sensitivity_line(const Model& model, const Sensitivity& s) {
  double largest = 0;
  for (const std::vector<double>& row : s.by_state) {
    for (const double v : row) largest = std::max(largest, std::abs(v));
  }
  std::string out = fmt::format("{:11}d(end)/d(start) up to {:.4g}", "derivative", largest);
  for (size_t c = 0; c < s.parameters.size() && c < 4; ++c) {
    size_t row = 0;
    for (size_t i = 1; i < s.by_parameter.size(); ++i) {
      if (std::abs(s.by_parameter[i][c]) > std::abs(s.by_parameter[row][c])) row = i;
    }
    out += fmt::format(", d{}/d{} = {:.4g}", model.states[row].name, s.parameters[c], s.by_parameter[row][c]);
  }
  return out + "\n";
}

std::string measure_lines(const std::vector<std::pair<std::string, double>>& measures) {
  std::string out;
  for (const auto& [name, value] : measures) out += fmt::format("measure    {} = {}\n", name, number(value));
  return out;
}

std::string note_lines(const std::vector<std::string>& notes) {
  constexpr size_t most = 5;
  std::string out;
  for (size_t i = 0; i < std::min(most, notes.size()); ++i) out += fmt::format("note       {}\n", notes[i]);
  if (notes.size() > most) out += fmt::format("note       and {} more like these\n", notes.size() - most);
  return out;
}

}  // namespace saltus
