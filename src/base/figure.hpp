// Figure: what to draw of Tables, as plain data. It names tables and columns; out/plot makes a picture of it.
//
// A figure is a row of stacks; a stack is a column of panels; a panel is axes with layers on them:
//
//     Figure{.title = "Dry friction", .caption = "F = 0.4",
//            .stacks = {Stack{.panels = {Panel{.x = {.label = "t"}, .y = {.label = "v"},
//                                              .layers = {Line{.x = "t", .y = "v"},
//                                                         Points{.table = "events", .x = "t", .y = "v", .kind =
//                                                         "kind"}}},
//                                        Panel{.x = {.label = "t"}, .layers = {Ribbon{.table = "modes"}}}},
//                             .share_x = true}}}
#pragma once

#include <limits>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/table.hpp"

namespace saltus {

/// One axis. Limits that are NaN are taken from the data.
struct Axis {
  std::string label = {};
  bool log = false;  ///< decades; values that are not positive are left out
  double from = std::numeric_limits<double>::quiet_NaN();
  double to = std::numeric_limits<double>::quiet_NaN();
};

/// A value that stands for a thing (an attractor, a period) and how it is called in the legend.
struct Category {
  double value = 0;
  std::string label = {};
  std::string colour = {};  ///< "#rrggbb"; empty: by its place in the list
};

/// A curve in row order; a NaN in either column interrupts it. Long curves are thinned to what the eye can see.
struct Line {
  std::string table = "data";
  std::string x = {}, y = {};
  std::string label = {};  ///< for the legend; empty: not in the legend
  bool dashed = false;
  std::string colour = {};  ///< "#rrggbb"; empty: by its place in the panel
};

/// A curve in space, seen from above at an angle; thinned and interrupted as a Line. It has its panel for itself.
struct Curve {
  std::string table = "data";
  std::string x = {}, y = {}, z = {};
  std::string label = {};
};

/// Markers. `kind` names a text column whose words choose shape and colour (the event kinds: cross, slide, leave,
/// graze, impact, close, open, chatter, jump, section, mode; other words get their own) and appear in the legend.
struct Points {
  std::string table = "data";
  std::string x = {}, y = {};
  std::string kind = {};
  std::string label = {};  ///< for the legend where there is no kind
};

/// Very many small dots (bifurcation diagrams, Poincaré sections). `colour` names a text column (categories) or a
/// number column (colour bar); without it the dots are dark, and where they crowd, darker with their density.
struct Dots {
  std::string table = "data";
  std::string x = {}, y = {};
  std::string colour = {};
  std::string label = {};   ///< for the legend, or of the colour bar
  bool about_zero = false;  ///< a colour bar whose middle is zero: blue below, red above
};

/// A coloured cell for every row on a uniform grid of x and y. With categories: one colour each and a legend; without:
/// a colour bar. Cells that are NaN or of no category stay blank. Log axes do not apply.
struct Heat {
  std::string table = "data";
  std::string x = {}, y = {}, value = {};
  std::string label = {};  ///< of the colour bar
  std::vector<Category> categories = {};
  bool about_zero = false;  ///< a colour bar whose middle is zero: blue below, red above
};

/// A bar along the x axis: from each `from` to `to` the colour of `category` (a text column). A panel that holds only
/// ribbons becomes a low strip with one bar per ribbon.
struct Ribbon {
  std::string table = "modes";
  std::string from = "from", to = "to", category = "mode";
  std::string label = {};  ///< stands left of the bar
};

/// A thin circle, such as the unit circle around Floquet multipliers.
struct Circle {
  double x = 0, y = 0, radius = 1;
};

/// Vertical lines at given places, with labels at the top (as many as there are; the rest stay bare).
struct Verticals {
  std::vector<double> at = {};
  std::vector<std::string> labels = {};
};

using Layer = std::variant<Line, Curve, Points, Dots, Heat, Ribbon, Circle, Verticals>;

/// Axes and what is drawn on them, first layer lowest.
struct Panel {
  std::string title = {};
  Axis x = {}, y = {}, z = {};  ///< z of curves in space only
  bool equal = false;           ///< one unit of x is as long as one unit of y
  double height = 1;            ///< relative to the other panels of the stack
  std::vector<Layer> layers = {};
};

/// Panels one above another with the same left and right edge.
struct Stack {
  std::vector<Panel> panels = {};
  bool share_x = false;  ///< one x axis (time) for all: the same range, numbers only at the bottom
  double width = 1;      ///< relative to the other stacks
};

struct Figure {
  std::string title = {};
  std::string caption = {};  ///< the parameters; grey, below the title
  std::vector<Stack> stacks = {};
};

/// Complains (Error) about the first table or column the figure names and the tables do not have.
void check(const Figure& figure, std::span<const Table> tables);

}  // namespace saltus
