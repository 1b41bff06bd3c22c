#include "out/plot_style.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "out/text.hpp"

namespace saltus {
namespace {

std::string hsl_colour(double hue, double saturation, double lightness) {
  const auto channel = [&](double n) {
    const double k = std::fmod(n + hue * 12, 12);
    const double a = saturation * std::min(lightness, 1 - lightness);
    return static_cast<int>(255 * (lightness - a * std::max(-1.0, std::min({k - 3, 9 - k, 1.0}))));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", channel(0), channel(8), channel(4));
}

}  // namespace

const char* const kViridis =
    "set palette maxcolors 0 defined (0 '#440154', 1 '#472d7b', 2 '#3b528b', 3 '#2c728e', 4 '#21918c', 5 '#28ae80', "
    "6 '#5ec962', 7 '#addc30', 8 '#fde725')\n";

std::string palette_about_zero(double low, double high) {
  std::string stops;
  const auto add = [&](double at, const char* colour) {
    stops += fmt::format("{}{:.15g} '{}'", stops.empty() ? "" : ", ", at, colour);
  };
  if (low < 0) {
    add(low, "#08306b");
    add(0.5 * low, "#4292c6");
  }
  add(0, "#d0d0d0");
  if (high > 0) {
    add(0.5 * high, "#ef6548");
    add(high, "#7f0000");
  }
  return fmt::format("set palette maxcolors 0 defined ({})\n", stops);
}

std::string series_colour(size_t i) {
  static const char* const known[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                      "#E69F00", "#56B4E9", "#F0E442", "#555555"};
  if (i < std::size(known)) return known[i];
  return hsl_colour(std::fmod(0.1 + 0.618034 * static_cast<double>(i), 1.0), 0.55, i % 2 ? 0.45 : 0.68);
}

std::string ribbon_colour(std::string_view category, size_t i) {
  static const std::pair<std::string_view, const char*> known[] = {{"> 0", "#9ecae1"},    {"< 0", "#fdbf86"},
                                                                   {"= 0", "#a6d8a8"},    {"open", "#e4e4e4"},
                                                                   {"closed", "#dcb9d5"}, {"slips", "#9ecae1"}};
  for (const auto& [word, colour] : known) {
    if (category == word) return colour;
  }
  static const char* const soft[] = {"#9ecae1", "#fdbf86", "#a6d8a8", "#dcb9d5",
                                     "#f6e58d", "#d0d0d0", "#8fd3d1", "#f4a6a0"};
  if (i < std::size(soft)) return soft[i];
  return hsl_colour(std::fmod(0.1 + 0.618034 * static_cast<double>(i), 1.0), 0.5, 0.78);
}

std::string softened(const std::string& colour) {
  unsigned rgb = 0;
  std::sscanf(colour.c_str(), "#%x", &rgb);
  const auto mixed = [rgb](int shift) { return 255 - 7 * (255 - ((rgb >> shift) & 255)) / 10; };
  return fmt::format("#{:02x}{:02x}{:02x}", mixed(16), mixed(8), mixed(0));
}

/// Filled: something begins (sliding, contact). Hollow: it ends. Crosses: passed through.
std::span<const KnownMark> known_marks() {
  static const KnownMark marks[] = {
      {"cross", {2, 0.6, "#555555"}},   {"slide", {7, 0.6, "#D55E00"}},    {"leave", {6, 0.65, "#D55E00"}},
      {"graze", {12, 0.75, "#E69F00"}}, {"impact", {9, 0.75, "#CC79A7"}},  {"close", {5, 0.55, "#009E73"}},
      {"open", {4, 0.6, "#009E73"}},    {"chatter", {13, 0.8, "#E69F00"}}, {"jump", {11, 0.75, "#56B4E9"}},
      {"section", {7, 0.4, "#000000"}}, {"mode", {3, 0.7, "#000000"}}};
  return marks;
}

MarkStyle mark_style(std::string_view kind, size_t index) {
  for (const KnownMark& mark : known_marks()) {
    if (kind == mark.kind) return mark.style;
  }
  const int shapes[] = {7, 5, 9, 13, 11, 6, 4, 8};
  return {shapes[index % std::size(shapes)], 0.65, series_colour(index)};
}

std::string gp_string(std::string_view text) {
  const std::string line = one_line(text);
  // Between single quotes nothing is expanded, but gnuplot does not read two of them side by side in every place.
  const bool single = line.find('\'') == std::string::npos;
  std::string out = single ? "'" : "\"";
  for (const char c : line) {
    if (c == '>' && out.ends_with("]]")) out += ' ';  // gnuplot does not escape it, and XML allows no ]]> in a text
    if (!single && (c == '"' || c == '\\')) out += '\\';
    if (!single && c == '`') {
      out += "\\140";  // no command
    } else {
      out += c;
    }
  }
  return out + (single ? "'" : "\"");
}

std::string comment(std::string_view text) {
  std::string out = one_line(text);
  // A backslash at the end would continue the line.
  std::replace(out.begin(), out.end(), '\\', '/');
  return out;
}

double text_width(std::string_view text) { return kCharacter * static_cast<double>(character_count(one_line(text))); }

std::string shortened(std::string_view text, size_t most) {
  const std::string line = one_line(text);
  if (character_count(line) <= most) return line;
  return wrap(line, most, 1).front();
}

double share_of(double x, double lo, double hi, bool log) {
  if (log) return std::log(x / lo) / std::log(hi / lo);
  return (x - lo) / (hi - lo);
}

std::vector<int> label_rows(const std::vector<double>& shares) {
  constexpr double near = 0.018;  // a line of small letters, as a share of the width
  std::vector<int> rows;
  for (size_t i = 0; i < shares.size(); ++i) {
    const auto taken = [&](int row) {
      for (size_t j = 0; j < i; ++j) {
        if (rows[j] == row && std::abs(shares[j] - shares[i]) < near) return true;
      }
      return false;
    };
    int row = 0;
    while (taken(row)) ++row;
    rows.push_back(row);
  }
  return rows;
}

std::vector<std::string> distinct(const std::vector<std::string>& texts, size_t most) {
  std::vector<std::string> out;
  std::map<std::string, std::string> cut_of;
  std::set<std::string> taken;
  for (const std::string& text : texts) {
    auto [known, fresh] = cut_of.try_emplace(text, shortened(text, most));
    for (int number = 2; fresh && !taken.insert(known->second).second; ++number) {
      const std::string end = fmt::format(" ({})", number);
      known->second = shortened(text, most - end.size()) + end;
    }
    out.push_back(known->second);
  }
  return out;
}

}  // namespace saltus
