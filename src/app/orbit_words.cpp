#include "app/orbit_words.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/engine.hpp"
#include "ask/solve.hpp"
#include "model/period.hpp"

namespace saltus {
namespace {

using Complex = std::complex<double>;

[[noreturn]] void misuse(std::string message, std::string hint) {
  throw Error(ErrorKind::usage, std::move(message), {}, std::move(hint));
}

/// The section asked for; a model with none, or with several of which none is named, goes without where that is clear.
int choose_section(const Model& model, const std::string& name, const std::vector<double>& parameters) {
  if (model.sections.empty() && name.empty()) return -1;
  if (name.empty() && model.sections.size() > 1 && period_in_time(model, parameters)) {
    for (size_t i = 0; i < model.sections.size(); ++i) {
      if (model.sections[i].kind == Section::Kind::every) return static_cast<int>(i);
    }
    return -1;
  }
  return find_section(model, name);
}

std::string words(const Complex& z) {
  if (z.imag() == 0) return number(z.real());
  return fmt::format("{}{:+.6g}i", number(z.real()), z.imag());
}

}  // namespace

int find_state(const Model& model, const std::string& name, const std::string& option) {
  const std::vector<std::string> known = model.state_names();
  const auto found = std::find(known.begin(), known.end(), name);
  if (found != known.end()) return static_cast<int>(found - known.begin());
  const std::string near = nearest_name(name, known);
  misuse(fmt::format("{}: there is no state '{}'", option, name),
         near.empty() ? fmt::format("states: {}", fmt::join(known, ", ")) : fmt::format("did you mean '{}'?", near));
}

OrbitOptions orbit_options(const OrbitRequest& request, const Model& model, const RunOptions& run) {
  OrbitOptions o{.run = run};
  o.section = choose_section(model, request.section, run.parameters);
  o.guess = request.guess;
  o.returns = request.period;
  o.backward = request.backward;
  if (request.period < 0)
    misuse(fmt::format("--period {}: no such number of returns", request.period), "give 1 or more");
  if (request.time) {
    o.time = read_number(*request.time, "--time", model);
    if (!(o.time > 0)) misuse(fmt::format("--time {} is no time", *request.time), "give a positive time");
    if (!request.guess) misuse("--time goes with --guess", "add --guess, or leave out --time");
  }
  for (const std::string& text : request.modulo) {
    const Setting s = read_setting(text, "--modulo");
    const double modulus = read_number(s.value, "--modulo", model);
    if (!(modulus > 0)) misuse(fmt::format("--modulo {}: no such number", text), "give a positive number");
    o.modulo.emplace_back(find_state(model, s.name, "--modulo"), modulus);
  }
  return o;
}

// ---- JSON ----------------------------------------------------------------------------------------------------------

void write_number(JsonWriter& json, double v) {
  if (std::isinf(v)) {
    json.value(v > 0 ? "inf" : "-inf");
  } else {
    json.value(v);
  }
}

void write_complex(JsonWriter& json, const Complex& z) {
  json.array();
  write_number(json, z.real());
  write_number(json, z.imag());
  json.end();
}

void write_list(JsonWriter& json, const char* key, const std::vector<Complex>& list) {
  json.key(key).array();
  for (const Complex& z : list) write_complex(json, z);
  json.end();
}

// ---- words ---------------------------------------------------------------------------------------------------------

std::string number(double v) { return fmt::format("{:.6g}", v == 0 ? 0.0 : v); }

std::string list_of(const std::vector<Complex>& list) {
  constexpr size_t most = 8;
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(most, list.size()); ++i) {
    // Of a pair of conjugates one is enough.
    if (i > 0 && list[i].imag() != 0 && list[i] == std::conj(list[i - 1])) continue;
    std::string text = words(list[i]);
    if (list[i].imag() != 0) text = fmt::format("{} ± {}i", number(list[i].real()), number(std::abs(list[i].imag())));
    texts.push_back(std::move(text));
  }
  if (texts.empty()) return "none";
  return fmt::format("{}{}", fmt::join(texts, ", "),
                     list.size() > most ? fmt::format(", {} more", list.size() - most) : "");
}

std::string state_words(const Model& model, const std::vector<double>& x) {
  constexpr size_t most = 8;
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(most, x.size()); ++i)
    texts.push_back(fmt::format("{} = {}", model.states[i].name, number(x[i])));
  if (x.size() > most) texts.push_back(fmt::format("{} more", x.size() - most));
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace saltus
