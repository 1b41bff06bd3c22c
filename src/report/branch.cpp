#include "report/branch.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "out/json.hpp"
#include "report/run_json.hpp"
#include "report/words.hpp"

namespace saltus {
namespace {

/// "max(x)" apart: what, and of which state; state -1 for the period.
struct BranchOrdinate {
  std::string what;
  int state = -1;
};

BranchOrdinate read_measure(const std::string& text, const Model& model) {
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
    misuse(fmt::format("`measure` {}: there is no state '{}'", text, name),
           fmt::format("known: {}, max(NAME), min(NAME), period", fmt::join(names, ", ")));
  return {what, static_cast<int>(found - names.begin())};
}

double measured(const BranchOrdinate& m, const BranchPoint& p) {
  if (m.state < 0) return p.period;
  const size_t i = static_cast<size_t>(m.state);
  if (m.what == "max" && !p.highest.empty()) return p.highest[i];
  if (m.what == "min" && !p.lowest.empty()) return p.lowest[i];
  return p.state[i];
}

/// The values of a point of a branch that picture and tables show.
class BranchView {
 public:
  explicit BranchView(const FollowAnswer& answer, const std::string& measure = {})
      : answer_(answer), measure_(read_measure(measure, answer.system.model())) {}

  /// Value of the followed quantity k.
  double value(size_t k, double parameter) const {
    return value_of(answer_.ranges[k], answer_.system.model(), parameter);
  }
  double x(const BranchPoint& p) const { return value(0, p.values[0]); }
  double y(const BranchPoint& p) const { return p.values.size() > 1 ? value(1, p.values[1]) : measured(measure_, p); }
  const BranchOrdinate& measure() const { return measure_; }

 private:
  const FollowAnswer& answer_;
  BranchOrdinate measure_;
};

Table points_table(const FollowAnswer& answer, const Branch& branch, const std::string& called) {
  const Model& model = answer.system.model();
  const BranchView shown(answer);
  Table table(called, "points in order along the branch");
  for (size_t k = 0; k < answer.ranges.size(); ++k) {
    Numbers values;
    for (const BranchPoint& p : branch.points) values.push_back(shown.value(k, p.values[k]));
    table.add_own(answer.ranges[k].name, std::move(values));
  }
  for (size_t i = 0; i < model.states.size(); ++i) {
    Numbers values, low, high;
    for (const BranchPoint& p : branch.points) {
      values.push_back(p.state[i]);
      low.push_back(p.lowest.empty() ? p.state[i] : p.lowest[i]);
      high.push_back(p.highest.empty() ? p.state[i] : p.highest[i]);
    }
    const std::string& name = model.states[i].name;
    table.add_own(name, std::move(values));
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

Table special_table(const FollowAnswer& answer, const Branch& branch, const std::string& called) {
  const Model& model = answer.system.model();
  const BranchView shown(answer);
  Table table(called, "special points");
  Texts labels, types, details;
  for (const SpecialPoint& s : branch.special) {
    labels.push_back(s.label);
    types.push_back(s.type);
    details.push_back(s.detail);
  }
  table.add_texts("label", std::move(labels)).add_texts("type", std::move(types));
  for (size_t k = 0; k < answer.ranges.size(); ++k) {
    Numbers values;
    for (const SpecialPoint& s : branch.special) values.push_back(shown.value(k, s.values[k]));
    table.add_own(answer.ranges[k].name, std::move(values));
  }
  for (size_t i = 0; i < model.states.size(); ++i) {
    Numbers values;
    for (const SpecialPoint& s : branch.special) values.push_back(s.state[i]);
    table.add_own(model.states[i].name, std::move(values));
  }
  Numbers period;
  for (const SpecialPoint& s : branch.special) period.push_back(s.period);
  if (!branch.equilibria) table.add_numbers("period", std::move(period));
  return table.add_texts("detail", std::move(details));
}

// ---- JSON ----------------------------------------------------------------------------------------------------------

class BranchJson {
 public:
  BranchJson(JsonWriter& json, const FollowAnswer& answer)
      : json_(json), model_(answer.system.model()), ranges_(answer.ranges) {}

  void write(const Branch& branch, const std::string& of) {
    json_.object();
    if (ranges_.size() == 1) {
      json_.member("parameter", ranges_[0].name);
    } else {
      json_.key("parameters").array().value(ranges_[0].name).value(ranges_[1].name).end().member("of", of);
    }
    json_.member("kind", branch.equilibria ? "equilibrium" : "orbit").key("points").rows();
    for (const BranchPoint& p : branch.points) {
      json_.object();
      place(p.values, p.state, p.period, branch.equilibria);
      json_.member("stable", p.stable);
      spectrum(branch, p.spectrum, "");
      signature(p.signature);
      if (!p.label.empty()) json_.member("label", p.label);
      json_.end();
    }
    json_.end().key("special").rows();
    for (const SpecialPoint& s : branch.special) {
      json_.object().member("label", s.label).member("type", s.type);
      place(s.values, s.state, s.period, branch.equilibria && s.type != "hopf");
      spectrum(branch, s.spectrum, "");
      if (s.after) spectrum(branch, *s.after, "_after");
      if (s.crosses) json_.key("crosses").value(std::span<const std::string>(*s.crosses));
      if (!s.crosses_at.empty()) json_.key("crosses_at").value(std::span<const double>(s.crosses_at));
      if (s.persists) json_.member("persists", *s.persists);
      signature(s.signature);
      json_.member("detail", s.detail).end();
    }
    json_.end().key("ends").rows();
    for (const BranchEnd& e : branch.ends) {
      json_.object().member("direction", e.direction).member("why", e.why);
      if (!e.detail.empty()) json_.member("message", e.detail);
      json_.member("value", end_value(branch, e)).end();
    }
    json_.end().end();
  }

 private:
  double end_value(const Branch& branch, const BranchEnd& e) const {
    if (ranges_.size() < 2 || branch.points.empty()) return value_of(ranges_[0], model_, e.value);
    return value_of(ranges_[0], model_, (e.direction < 0 ? branch.points.front() : branch.points.back()).values[0]);
  }

  void place(const std::vector<double>& values, const std::vector<double>& state, double period, bool point) {
    json_.key("value");
    if (values.size() > 1) json_.array();
    for (size_t k = 0; k < values.size(); ++k) write_number(json_, value_of(ranges_[k], model_, values[k]));
    if (values.size() > 1) json_.end();
    write_state(json_.key("state"), model_, state);
    if (!point) json_.member("period", period);
  }

  void spectrum(const Branch& branch, const Spectrum& s, const char* suffix) {
    write_list(json_, fmt::format("{}{}", branch.equilibria ? "eigenvalues" : "multipliers", suffix), s);
  }

  void signature(const std::vector<std::string>& modes) {
    json_.key("signature").value(std::span<const std::string>(modes));
  }

  JsonWriter& json_;
  const Model& model_;
  const std::vector<FollowedRange>& ranges_;
};

// ---- words ---------------------------------------------------------------------------------------------------------

/// "+ 0 - 0", or of many legs only the first.
std::string signature_words(const std::vector<std::string>& modes) {
  constexpr size_t widest = 40;
  const std::string all = fmt::format("{}", fmt::join(modes, " "));
  if (all.size() <= widest) return all;
  return fmt::format("{}.. ({} modes)", all.substr(0, all.rfind(' ', widest) + 1), modes.size());
}

std::string largest_of(const Spectrum& spectrum) {
  return list_of({spectrum.begin(), spectrum.begin() + (spectrum.empty() ? 0 : 1)});
}

std::string count_words(const Branch& branch) {
  if (!branch.found) return fmt::format("none       {}\n", branch.message);
  return fmt::format("branch     {} points of {}{}\n", branch.points.size(),
                     branch.equilibria ? "equilibria" : "orbits", branch.special.empty() ? ", nothing special" : "");
}

}  // namespace

void check_measure(const std::string& measure, const Model& model, bool equilibria) {
  const BranchOrdinate m = read_measure(measure, model);
  if (equilibria && m.state < 0) misuse("`measure` period: equilibria have none", "choose a state");
}

size_t measured_state(const std::string& measure, const Model& model) {
  return static_cast<size_t>(std::max(read_measure(measure, model).state, 0));
}

/// A value that is zero but for rounding is zero.
static double without_rounding(double value, const FollowedRange& range) {
  return std::abs(value) < 1e-14 * std::abs(range.to - range.from) ? 0.0 : value;
}

std::string BranchLines::line(const std::string& label, const std::string& type, const std::vector<double>& values,
                              const std::string& rest) const {
  std::vector<std::string> texts;
  for (size_t k = 0; k < values.size(); ++k)
    texts.push_back(fmt::format("{:.12g}", without_rounding(value_of(ranges_[k], model_, values[k]), ranges_[k])));
  std::string out =
      fmt::format("  {:<6}{:<20} {:<16} {}", label, type, fmt::format("{}", fmt::join(texts, ", ")), rest);
  out.erase(out.find_last_not_of(' ') + 1);
  return out + "\n";
}

std::string BranchLines::head(bool equilibria) const {
  std::vector<std::string> names;
  for (const FollowedRange& r : ranges_) names.push_back(r.name);
  return fmt::format("  {:<6}{:<21}{:<17}{:<12}{:<21}  {}\n", "label", "type",
                     fmt::format("{}", fmt::join(names, ", ")), equilibria ? "" : "period",
                     equilibria ? "first eigenvalue" : "largest multiplier", "signature");
}

std::string BranchLines::start(const BranchPoint& p) const {
  const bool equilibrium = p.period == 0;
  return head(equilibrium) + line("start", "", p.values,
                                  fmt::format("{:<12}{:<21}  {}", equilibrium ? "" : number(p.period),
                                              largest_of(p.spectrum), signature_words(p.signature)));
}

std::string BranchLines::special(const SpecialPoint& s) const {
  std::string spectrum = largest_of(s.spectrum);
  if (s.after) spectrum += " -> " + largest_of(*s.after);
  std::string rest =
      fmt::format("{:<12}{:<21}  {}", s.period == 0 ? "" : number(s.period), spectrum, signature_words(s.signature));
  if (s.crosses && !s.crosses->empty()) rest += fmt::format(" (crosses {})", fmt::join(*s.crosses, ", "));
  if (!s.detail.empty()) rest += "; " + s.detail;
  return line(s.label, s.type, s.values, rest);
}

std::string BranchLines::end(const BranchEnd& e) const { return line("end", e.why, {e.value}, e.detail); }

std::string words_of(const FollowAnswer& answer) {
  std::string out;
  const BranchLines lines(answer.system.model(), answer.ranges);
  for (const Branch& branch : answer.branches) {
    if (branch.found) out += lines.head(branch.equilibria);
    for (const SpecialPoint& s : branch.special) out += lines.special(s);
    for (const BranchEnd& e : branch.ends) out += lines.end(e);
    out += count_words(branch);
  }
  return out;
}

std::string closing_words(const FollowAnswer& answer) {
  std::string out;
  for (const Branch& branch : answer.branches) out += count_words(branch);
  return out;
}

std::string json_of(const FollowAnswer& answer) {
  std::ostringstream text;
  JsonWriter json(text);
  const Branch& first = answer.branches[0];
  if (!first.found) {
    json.object().member("kind", "none").member("why", first.why).member("message", first.message).end();
  } else if (answer.all) {
    json.object().key("branches").rows();
    for (const Branch& b : answer.branches) BranchJson(json, answer).write(b, answer.of);
    json.end().end();
  } else {
    BranchJson(json, answer).write(first, answer.of);
  }
  json.flush();
  return text.str();
}

std::vector<Table> tables_of(const FollowAnswer& answer) {
  std::vector<Table> tables;
  if (!answer.branches[0].found) return tables;
  for (size_t k = 0; k < answer.branches.size(); ++k) {
    const std::string suffix = k == 0 ? "" : fmt::format("-{}", k + 1);
    tables.push_back(points_table(answer, answer.branches[k], "data" + suffix));
    tables.push_back(special_table(answer, answer.branches[k], "special" + suffix));
  }
  return tables;
}

Picturing picture_of(const FollowAnswer& answer, const std::string& measure, std::optional<Table> below) {
  const Model& model = answer.system.model();
  const BranchView shown(answer, measure);
  const bool plane = answer.ranges.size() > 1;
  const std::string name = plane                       ? answer.ranges[1].name
                           : shown.measure().state < 0 ? "period"
                           : measure.empty()           ? model.states[0].name
                                                       : measure;
  std::vector<int> followed;
  for (const FollowedRange& r : answer.ranges) followed.push_back(r.parameter);
  Picturing out{{.title = fmt::format("{}: {}", model.name.empty() ? "branch" : model.name,
                                      plane ? "curve of a special point" : "branch"),
                 .caption = caption_of(model, followed)},
                {}};
  Panel panel{.x = {.label = answer.ranges[0].name}, .y = {.label = name}};
  if (below) {
    panel.layers.push_back(Dots{.table = below->name(), .x = "x", .y = "y"});
    out.tables.push_back(std::move(*below));
  }
  // Each stretch of one stability is a line; neighbours share the point between them.
  Numbers sx, sy, ux, uy, mx, my;
  Texts kinds, labels;
  std::vector<double> places;
  for (const Branch& branch : answer.branches) {
    for (size_t i = 0; i < branch.points.size(); ++i) {
      const BranchPoint& p = branch.points[i];
      const double x = shown.x(p), y = shown.y(p);
      const bool stable = plane || p.stable;
      const bool changed = i > 0 && (plane || branch.points[i - 1].stable) != stable;
      Numbers &xs = stable ? sx : ux, &ys = stable ? sy : uy;
      if (changed) {
        const BranchPoint& q = branch.points[i - 1];
        (stable ? ux : sx).push_back(NAN), (stable ? uy : sy).push_back(NAN);
        xs.push_back(shown.x(q)), ys.push_back(shown.y(q));
      }
      xs.push_back(x), ys.push_back(y);
    }
    for (Numbers* v : {&sx, &sy, &ux, &uy}) v->push_back(NAN);
    for (const SpecialPoint& s : branch.special) {
      for (const BranchPoint& p : branch.points) {
        if (p.label != s.label) continue;
        mx.push_back(shown.x(p)), my.push_back(shown.y(p));
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
    panel.layers.push_back(Line{.table = table,
                                .x = "x",
                                .y = "y",
                                .label = plane ? "" : label,
                                .dashed = dashed,
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
