#include "report/words.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace saltus {

using Complex = std::complex<double>;

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

void write_list(JsonWriter& json, std::string_view key, const std::vector<Complex>& list) {
  json.key(key).array();
  for (const Complex& z : list) write_complex(json, z);
  json.end();
}

// ---- words ---------------------------------------------------------------------------------------------------------

std::string number(double v) { return std::isnan(v) ? "nan" : fmt::format("{:.6g}", v == 0 ? 0.0 : v); }

std::string list_of(const std::vector<Complex>& list) {
  constexpr size_t most = 8;
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(most, list.size()); ++i) {
    // One value of a conjugate pair is enough.
    if (i > 0 && list[i].imag() != 0 && list[i] == std::conj(list[i - 1])) continue;
    texts.push_back(list[i].imag() == 0
                        ? number(list[i].real())
                        : fmt::format("{} ± {}i", number(list[i].real()), number(std::abs(list[i].imag()))));
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

Table complex_table(const std::string& name, const std::string& what, const std::vector<Complex>& list) {
  Table table(name, what);
  Numbers re, im;
  for (const Complex& z : list) {
    re.push_back(z.real());
    im.push_back(z.imag());
  }
  return table.add_numbers("re", std::move(re)).add_numbers("im", std::move(im));
}

}  // namespace saltus
