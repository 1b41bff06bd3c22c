#include "base/error.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

namespace saltus {
namespace {

/// The source line and below it a caret under the place; tabs are kept so that the caret stays aligned.
std::string quoted_line(const Place& place) {
  std::string pad;
  const int before = place.column - place.quote_shift - 1;
  int characters = 0;
  for (const char c : place.text) {
    if ((c & 0xC0) == 0x80) continue;  // inside a UTF-8 character
    if (characters++ < before) pad += c == '\t' ? '\t' : ' ';
  }
  const int length = std::clamp(place.length, 1, std::max(1, characters - before));
  return fmt::format("  {}\n  {}^{}", place.text, pad, std::string(static_cast<size_t>(length - 1), '~'));
}

std::string where(const Place& place) { return fmt::format("{}:{}:{}", place.file, place.line, place.column); }

size_t edit_distance(std::string_view a, std::string_view b) {
  // Optimal string alignment: insertion, deletion, substitution, swap of neighbours; case counts little.
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same =
          std::tolower(static_cast<unsigned char>(a[i - 1])) == std::tolower(static_cast<unsigned char>(b[j - 1]));
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (same ? 0u : 1u)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

Error::Error(ErrorKind kind, std::string message, Place place, std::string hint)
    : std::runtime_error(message),
      kind_(kind),
      message_(std::move(message)),
      place_(std::move(place)),
      hint_(std::move(hint)) {}

Error& Error::also(std::string label, Place place) {
  also_label_ = std::move(label);
  also_place_ = std::move(place);
  return *this;
}

std::string Error::report() const {
  std::string out;
  if (place_.known()) {
    out = fmt::format("{}: {}\n{}\n", where(place_), message_, quoted_line(place_));
  } else if (!place_.file.empty()) {
    out = fmt::format("{}: {}\n", place_.file, message_);
  } else {
    out = message_ + "\n";
  }
  if (also_place_.known()) {
    out += fmt::format("{}: {}\n{}\n", where(also_place_), also_label_, quoted_line(also_place_));
  }
  if (!hint_.empty()) out += hint_ + "\n";
  return out;
}

std::string_view not_finite(double value) { return std::isnan(value) ? "undefined" : "infinite"; }

std::string nearest_name(std::string_view wrong, std::span<const std::string> known) {
  const size_t longest_sensible = 64;
  if (wrong.empty() || wrong.size() > longest_sensible) return "";
  const size_t allowed = std::max<size_t>(1, wrong.size() / 3);
  std::string best;
  size_t best_distance = allowed + 1;
  for (const std::string& name : known) {
    if (name.size() > longest_sensible) continue;
    const size_t distance = edit_distance(wrong, name);
    if (distance < best_distance && distance < std::max(wrong.size(), name.size())) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace saltus
