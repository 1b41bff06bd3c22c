// How pictures look, and how text enters a gnuplot script unharmed.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saltus {

inline constexpr const char* kInk = "#333333";
inline constexpr const char* kGrey = "#777777";
inline constexpr const char* kDotColour = "#1a1a40";
inline constexpr double kFont = 13, kCharacter = 7.7;  ///< pixels; the width of a mean character
inline constexpr size_t kBarLabel = 16;                ///< characters beside a ribbon

/// A colour for the i-th line: the eight of Okabe and Ito, which everyone can tell apart, then hues spread evenly.
std::string series_colour(size_t i);
/// A colour for a kind of area, soft enough to be written on: its own for a word known by name (signs of a surface,
/// open and closed), else for the i-th kind.
std::string ribbon_colour(std::string_view category, size_t i);
/// The colour mixed with white, for areas.
std::string softened(const std::string& colour);
/// From purple to yellow, even in lightness: a gnuplot command.
extern const char* const kViridis;
/// Two hues that meet in grey at zero: blue below, red above, each over its part of the range, which
/// holds zero.
std::string palette_about_zero(double low, double high);

struct MarkStyle {
  int shape = 7;  ///< gnuplot's point type
  double size = 0.5;
  std::string colour = {};
};

struct KnownMark {
  const char* kind;
  MarkStyle style;
};

/// The kinds of points known by name, in the order of a legend.
std::span<const KnownMark> known_marks();
/// The style of a kind of point; `index` counts the kinds that are not known by name.
MarkStyle mark_style(std::string_view kind, size_t index);

/// A string constant of gnuplot. Nothing in it is expanded, whatever it contains.
std::string gp_string(std::string_view text);
/// Text for a comment line, which it does not leave.
std::string comment(std::string_view text);
/// About how wide the text is, in pixels.
double text_width(std::string_view text);
/// One line of at most `most` characters; an ellipsis says where it was cut.
std::string shortened(std::string_view text, size_t most);
/// Where a value stands on an axis, from 0 to 1.
double share_of(double x, double lo, double hi, bool log);
/// Height of a row of labels that stand upright, as a share of the panel's.
constexpr double kLabelRow = 0.08;
/// How many labels above each of these stand too near to it, at such shares of the width: the row it may have to
/// itself.
std::vector<int> label_rows(const std::vector<double>& shares);
/// Shortened texts; texts that differ still do, by a number at the end where necessary.
std::vector<std::string> distinct(const std::vector<std::string>& texts, size_t most);

}  // namespace saltus
