#include "report/response.hpp"

#include <cmath>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/index.hpp"
#include "out/json.hpp"
#include "report/orbit.hpp"
#include "report/run_json.hpp"
#include "report/summary.hpp"
#include "report/words.hpp"

namespace saltus {
namespace {

std::string pair_of(const ResponseAnswer& answer, const ResponseCurve& curve) {
  return answer.loop ? curve.output : curve.output + "/" + curve.input;
}

/// In degrees, without leaps of a whole turn.
std::vector<double> phases_of(const ResponseCurve& curve) {
  std::vector<double> out;
  for (const ResponsePoint& p : curve.points) {
    double phase = std::arg(p.value) * 180 / M_PI;
    if (!out.empty()) phase += 360 * std::round((out.back() - phase) / 360);
    out.push_back(phase);
  }
  return out;
}

void write_margin(JsonWriter& json, const char* name, const std::optional<Margin>& margin) {
  json.key(name);
  if (margin) {
    json.object().member("frequency", margin->frequency).member("value", margin->value).end();
  } else {
    json.null();
  }
}

void write_curve(JsonWriter& json, const ResponseAnswer& answer, const ResponseCurve& curve) {
  json.member("input", curve.input).member("output", curve.output);
  if (answer.loop) {
    write_margin(json, "phase_margin", curve.phase_margin);
    write_margin(json, "gain_margin", curve.gain_margin);
  }
  const std::vector<double> phases = phases_of(curve);
  json.key("points").rows();
  for (size_t k = 0; k < curve.points.size(); ++k) {
    const ResponsePoint& p = curve.points[k];
    json.object().member("frequency", p.frequency).member("gain", std::abs(p.value)).member("phase", phases[k]);
    json.member("re", p.value.real()).member("im", p.value.imag()).end();
  }
  json.end();
}

void write_mean(JsonWriter& json, const ResponseAnswer& answer, size_t output) {
  if (output >= answer.means.mean.size()) return;
  json.member("mean", answer.means.mean[output]).key("mean_by_parameter").object();
  for (size_t i = 0; i < answer.parameters.size(); ++i)
    json.key(answer.parameters[i]).value(answer.means.by[output][i]);
  json.end();
}

void write_place(JsonWriter& json, const ResponseAnswer& answer) {
  const Model& model = answer.system.model();
  json.key("orbit").object();
  if (answer.rests) {
    json.member("kind", kind_of(answer.equilibrium)).member("t", answer.options.from);
    write_state(json.key("state"), model, answer.equilibrium.state);
    json.member("mode", answer.equilibrium.mode.text()).member("stable", answer.equilibrium.stable);
    write_list(json, "eigenvalues", answer.equilibrium.eigenvalues);
  } else {
    json.member("kind", "orbit").member("period", answer.orbit.period).member("t", answer.orbit.t);
    write_state(json.key("state"), model, answer.orbit.state);
    json.member("mode", answer.orbit.mode.text()).member("stable", answer.orbit.stable);
    write_list(json, "multipliers", answer.orbit.multipliers);
  }
  json.end();
}

std::string margin_words(const ResponseCurve& curve) {
  std::string out = "margins    ";
  out += curve.phase_margin
             ? fmt::format("{} degrees at {}", number(curve.phase_margin->value), number(curve.phase_margin->frequency))
             : "the gain does not pass 1 here";
  out += curve.gain_margin ? fmt::format(", a factor {} at {}\n", number(curve.gain_margin->value),
                                         number(curve.gain_margin->frequency))
                           : ", the phase does not pass -180 degrees here\n";
  return out;
}

}  // namespace

std::string words_of(const ResponseAnswer& answer) {
  if (!answer.found) return fmt::format("none       {}\n", answer.message);
  std::string out = answer.rests ? fmt::format("about      {} at {}\n", kind_of(answer.equilibrium),
                                               state_words(answer.system.model(), answer.equilibrium.state))
                                 : fmt::format("about      orbit of period {}, {}\n", number(answer.orbit.period),
                                               answer.orbit.stable ? "stable" : "not stable");
  for (const ResponseCurve& curve : answer.curves) {
    if (curve.points.empty()) continue;
    const ResponsePoint &first = curve.points.front(), &last = curve.points.back();
    out += fmt::format("{:10} gain {} at {}, {} at {}\n", pair_of(answer, curve), number(std::abs(first.value)),
                       number(first.frequency), number(std::abs(last.value)), number(last.frequency));
    if (answer.loop) out += margin_words(curve);
  }
  for (size_t o = 0; o < answer.means.mean.size(); ++o)
    out += fmt::format("mean       {} = {}\n", answer.outputs[o], number(answer.means.mean[o]));
  return out + note_lines(answer.notes);
}

std::string json_of(const ResponseAnswer& answer) {
  std::ostringstream text;
  JsonWriter json(text);
  json.object();
  if (!answer.found) {
    json.member("kind", "none").member("why", answer.why).member("message", answer.message).end().flush();
    return text.str();
  }
  write_place(json, answer);
  if (answer.sideband != 0) json.member("sideband", answer.sideband);
  if (answer.curves.size() == 1) {
    write_curve(json, answer, answer.curves.front());
    write_mean(json, answer, 0);
  } else {
    json.key("responses").rows();
    for (const ResponseCurve& curve : answer.curves) {
      json.object();
      write_curve(json, answer, curve);
      json.end();
    }
    json.end().key("outputs").rows();
    for (size_t o = 0; o < answer.outputs.size(); ++o) {
      json.object().member("output", answer.outputs[o]);
      write_mean(json, answer, o);
      json.end();
    }
    json.end();
  }
  json.key("messages").value(std::span<const std::string>(answer.notes)).end().flush();
  return text.str();
}

std::vector<Table> tables_of(const ResponseAnswer& answer) {
  if (!answer.found || answer.curves.empty()) return {};
  Table data("data", "responses to small signals");
  Numbers frequency;
  for (const ResponsePoint& p : answer.curves.front().points) frequency.push_back(p.frequency);
  data.add_numbers("frequency", std::move(frequency), "cycles per unit of time");
  for (const ResponseCurve& curve : answer.curves) {
    const std::string name = pair_of(answer, curve);
    Numbers gain, decibel, re, im;
    for (const ResponsePoint& p : curve.points) {
      gain.push_back(std::abs(p.value));
      decibel.push_back(20 * std::log10(std::abs(p.value)));
      re.push_back(p.value.real());
      im.push_back(p.value.imag());
    }
    data.add_numbers(fmt::format("gain({})", name), std::move(gain));
    data.add_numbers(fmt::format("dB({})", name), std::move(decibel));
    data.add_numbers(fmt::format("phase({})", name), phases_of(curve), "degrees");
    data.add_numbers(fmt::format("re({})", name), std::move(re))
        .add_numbers(fmt::format("im({})", name), std::move(im));
  }
  Table means("means", "derivatives of the means of the outputs");
  means.add_texts("parameter", answer.parameters);
  for (size_t o = 0; o < answer.means.by.size(); ++o) means.add_numbers(answer.outputs[o], answer.means.by[o]);
  return {std::move(data), std::move(means)};
}

Picturing picture_of(const ResponseAnswer& answer) {
  const Model& model = answer.system.model();
  Picturing out{{.title = fmt::format("{}: {}", model.name, answer.loop ? "loop gain" : "response to small signals"),
                 .caption = caption_of(model)},
                {}};
  const Axis frequency{.label = "frequency", .log = true};
  Panel gain{.x = frequency, .y = {.label = "gain, dB"}}, phase{.x = frequency, .y = {.label = "phase, degrees"}};
  Panel plane{.title = "Nyquist", .x = {.label = "re"}, .y = {.label = "im"}, .equal = true};
  const bool several = answer.curves.size() > 1;
  for (const ResponseCurve& curve : answer.curves) {
    const std::string name = pair_of(answer, curve), label = several ? name : "";
    gain.layers.emplace_back(Line{.x = "frequency", .y = fmt::format("dB({})", name), .label = label});
    phase.layers.emplace_back(Line{.x = "frequency", .y = fmt::format("phase({})", name)});
    plane.layers.emplace_back(Line{.x = fmt::format("re({})", name), .y = fmt::format("im({})", name)});
  }
  if (answer.loop) {
    Table critical("critical", "the point -1");
    critical.add_numbers("re", {-1.0}).add_numbers("im", {0.0});
    out.tables.push_back(std::move(critical));
    plane.layers.emplace_back(Points{.table = "critical", .x = "re", .y = "im"});
    const ResponseCurve& curve = answer.curves.front();
    if (curve.phase_margin)
      phase.layers.emplace_back(Verticals{.at = {curve.phase_margin->frequency},
                                          .labels = {fmt::format("{:.1f}", curve.phase_margin->value)}});
    if (curve.gain_margin)
      gain.layers.emplace_back(Verticals{.at = {curve.gain_margin->frequency},
                                         .labels = {fmt::format("x {:.3g}", curve.gain_margin->value)}});
  }
  out.figure.stacks.push_back({.panels = {std::move(gain), std::move(phase)}, .share_x = true, .width = 2});
  out.figure.stacks.push_back({.panels = {std::move(plane)}});
  return out;
}

}  // namespace saltus
