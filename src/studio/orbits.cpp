// Orbits, equilibria and branches for the page; a branch is sent while it grows.
#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "app/range.hpp"
#include "report/orbit.hpp"
#include "studio/desk.hpp"
#include "studio/frame.hpp"

namespace saltus {
namespace {

using Clock = std::chrono::steady_clock;
using Complex = std::complex<double>;

/// Infinite ones as null.
void write_spectrum(JsonWriter& json, const char* key, const Spectrum& list) {
  json.key(key).array();
  for (const Complex& z : list) {
    json.array();
    for (const double part : {z.real(), z.imag()}) std::isfinite(part) ? json.value(part) : json.null();
    json.end();
  }
  json.end();
}

OrbitQuestion orbit_question(const PageRequest& m, const System& system, const Solve& solve) {
  if (!m.method.empty()) check_word(m.method, {"settle", "guess", "equilibrium"}, "method");
  return {.system = system,
          .solve = solve,
          .section = m.section,
          .guess = m.method == "guess",
          .period = static_cast<int>(std::clamp(m.points.value_or(0), 0L, 10'000L)),
          .backward = m.backward};
}

std::string orbit_frame(long id, const OrbitAnswer& answer) {
  const Model& model = answer.system.model();
  const Orbit& orbit = answer.orbit;
  Frame frame;
  if (orbit.found) {
    const Rows rows = orbit_rows(answer);
    for (size_t c = 0; c < rows.columns.size(); ++c) {
      std::vector<double> column(rows.count());
      for (size_t r = 0; r < column.size(); ++r) column[r] = rows.cells[r * rows.columns.size() + c];
      frame.add(rows.columns[c], column);
    }
  }
  return frame.bytes(id, "orbit", [&](JsonWriter& json) {
    json.member("found", orbit.found).member("why", orbit.why).member("message", orbit.message);
    json.member("what", "orbit").member("period", orbit.period).member("returns", orbit.returns).member("t", orbit.t);
    json.member("stable", orbit.stable).member("symmetric", orbit.symmetric).member("residual", orbit.residual);
    json.key("state").value(std::span<const double>(orbit.state));
    write_spectrum(json, "multipliers", orbit.multipliers);
    json.key("legs").array();
    for (const OrbitLeg& leg : orbit.legs) {
      json.object().member("mode", leg.mode.text()).member("length", leg.length);
      json.member("ended_by", leg.ended_by).end();
    }
    json.end().key("events").array();
    for (const Event& e : orbit.trajectory.events) {
      json.array().value(kind_name(e.kind)).value(e.t);
      for (const double v : e.state) json.value(v);
      json.end();
    }
    json.end().key("columns").array();
    for (const State& s : model.states) json.value(s.name);
    json.end().key("notes").value(std::span<const std::string>(orbit.notes));
  });
}

std::string rest_frame(long id, const EquilibriumAnswer& answer) {
  const Equilibrium& rest = answer.equilibrium;
  return Frame().bytes(id, "orbit", [&](JsonWriter& json) {
    json.member("found", rest.kind != Equilibrium::Kind::none).member("why", rest.why).member("message", rest.message);
    json.member("what", kind_of(rest)).member("t", answer.options.from).member("stable", rest.stable);
    json.member("mode", rest.mode.text()).member("residual", rest.residual);
    json.key("state").value(std::span<const double>(rest.state));
    json.key("from").value(std::span<const double>(rest.from)).key("to").value(std::span<const double>(rest.to));
    write_spectrum(json, "eigenvalues", rest.eigenvalues);
  });
}

// ---- branches ------------------------------------------------------------------------------------------------------

/// Points of a branch as arrays: values, states, extremes over a period, spectra filled up with NaN.
void add_points(Frame& frame, std::span<const BranchPoint> points, const std::vector<FollowedRange>& ranges,
                const Model& model) {
  size_t most = 0;
  for (const BranchPoint& p : points) most = std::max(most, p.spectrum.size());
  std::vector<double> value, second, state, low, high, t, period, spectrum;
  std::vector<std::int32_t> stable;
  const auto append = [](std::vector<double>& to, const std::vector<double>& more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  for (const BranchPoint& p : points) {
    value.push_back(value_of(ranges[0], model, p.values[0]));
    if (ranges.size() > 1) second.push_back(value_of(ranges[1], model, p.values[1]));
    append(state, p.state);
    append(low, p.lowest.empty() ? p.state : p.lowest);
    append(high, p.highest.empty() ? p.state : p.highest);
    t.push_back(p.t);
    period.push_back(p.period);
    stable.push_back(p.stable ? 1 : 0);
    for (const Complex& z : p.spectrum) append(spectrum, {z.real(), z.imag()});
    spectrum.resize(spectrum.size() + 2 * (most - p.spectrum.size()), std::nan(""));
  }
  frame.add("value", value).add("second", second).add("state", state).add("low", low).add("high", high);
  frame.add("t", t).add("period", period).add("stable", stable).add("spectrum", spectrum);
}

std::string points_frame(long id, std::span<const BranchPoint> points, const std::vector<FollowedRange>& ranges,
                         const Model& model) {
  Frame frame;
  add_points(frame, points, ranges, model);
  return frame.bytes(id, "branch", [&](JsonWriter& json) {
    json.member("part", true).member("states", model.states.size()).member("points", points.size());
  });
}

std::string branch_frame(long id, const FollowAnswer& answer) {
  const Model& model = answer.system.model();
  const Branch& branch = answer.branches[0];
  Frame frame;
  add_points(frame, branch.points, answer.ranges, model);
  return frame.bytes(id, "branch", [&](JsonWriter& json) {
    json.member("part", false).member("found", branch.found).member("why", branch.why);
    json.member("message", branch.message).member("equilibria", branch.equilibria);
    json.member("states", model.states.size()).member("points", branch.points.size()).member("of", answer.of);
    json.member("parameter", model.parameters[static_cast<size_t>(answer.ranges[0].parameter)].name);
    json.key("ranges").array();
    for (const FollowedRange& r : answer.ranges) json.value(r.name);
    json.end().key("special").array();
    for (const SpecialPoint& s : branch.special) {
      const auto here = std::find_if(branch.points.begin(), branch.points.end(),
                                     [&](const BranchPoint& p) { return p.label == s.label; });
      json.object().member("label", s.label).member("type", s.type).member("detail", s.detail);
      json.member("value", value_of(answer.ranges[0], model, s.values[0]));
      json.member("point", here - branch.points.begin()).member("branches", branches_at(s)).end();
    }
    json.end().key("ends").array();
    for (const BranchEnd& e : branch.ends) {
      json.object().member("why", e.why).member("detail", e.detail);
      json.member("value", value_of(answer.ranges[0], model, e.value)).end();
    }
    json.end().key("parameters").array();  // of the model, where the quantity followed is a formula of one
    for (const BranchPoint& p : branch.points) json.value(p.values[0]);
    json.end();
  });
}

FollowRange read_ends(const std::string& text) {
  const Setting s = read_setting(text, "range");
  const std::vector<std::string> ends = split_list(s.value, ':');
  if (ends.size() != 2) throw Error(ErrorKind::usage, fmt::format("{}: this is no range", text), {}, "write omega=1:2");
  return {s.name, ends[0], ends[1], text};
}

}  // namespace

void Desk::orbit(const PageRequest& m, const std::stop_token& stop) {
  const System system = system_of(m);
  const Solve solve = search_solve(m);
  const Observer observer{.progress = progress_to(m.id), .stop = stop};
  if (m.method == "equilibrium") {
    send(rest_frame(m.id, ask(EquilibriumQuestion{.system = system, .solve = solve}, observer)));
  } else {
    send(orbit_frame(m.id, ask(orbit_question(m, system, solve), observer)));
  }
  finish(m.id, stop, "count", "");
}

void Desk::branch(const PageRequest& m, const std::stop_token& stop) {
  const System system = system_of(m);
  FollowQuestion question{.start = orbit_question(m, system, search_solve(m)),
                          .equilibrium = m.method == "equilibrium",
                          .ranges = {},
                          .points = 2000};
  for (const std::string& text : m.vary) question.ranges.push_back(read_ends(text));
  if (!m.label.empty()) {
    const std::scoped_lock lock(mutex_);
    const std::vector<SpecialPoint> special = last_branch_ ? last_branch_->branch.special : std::vector<SpecialPoint>();
    const auto meant =
        std::find_if(special.begin(), special.end(), [&](const SpecialPoint& s) { return s.label == m.label; });
    if (meant == special.end())
      throw Error(ErrorKind::usage, fmt::format("there is no special point '{}'", m.label), {},
                  "follow the branch anew");
    FollowQuestion next = last_branch_->question;
    next.ranges = question.ranges;
    question = begin_at(next, last_branch_->question.ranges, *meant);
  }
  const FollowPlan planned = plan(question);
  std::vector<BranchPoint> fresh;
  Clock::time_point last = Clock::now();
  const auto send_fresh = [&] {
    if (fresh.empty()) return;
    send(points_frame(m.id, fresh, planned.ranges, planned.system.model()));
    fresh.clear();
    last = Clock::now();
  };
  const Observer observer{.progress = progress_to(m.id), .stop = stop, .on_point = [&](const BranchPoint& p) {
                            fresh.push_back(p);
                            if (Clock::now() - last > std::chrono::milliseconds(60)) send_fresh();
                            let_page_follow(stop);
                          }};
  const FollowAnswer answer = ask(planned, observer);
  send(branch_frame(m.id, answer));
  if (answer.branches[0].found && answer.ranges.size() == 1 && !stop.stop_requested()) {
    const std::scoped_lock lock(mutex_);
    last_branch_ = {question, answer.branches[0]};
  }
  finish(m.id, stop, "count", "");
}

}  // namespace saltus
