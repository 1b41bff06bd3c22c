// Layers of a panel -> items of a gnuplot plot command and blocks of its data file.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/figure.hpp"
#include "out/plot_range.hpp"
#include "out/thin.hpp"

namespace saltus {

/// One item of a plot command.
struct Element {
  std::string what;   ///< up to the title
  std::string title;  ///< in the legend; empty: none
};

/// A panel on its way into the script.
struct PanelPlan {
  const Panel* panel = nullptr;
  std::string name;              ///< "panel1": begins the names of its data blocks
  bool strip = false;            ///< ribbons only
  Range x, y;                    ///< what the axes show
  double width = 0, height = 0;  ///< of the frame, in pixels
  double left = 0, top = 0;      ///< of the frame on the page, in pixels from the upper left
  std::vector<Element> elements;
  std::string settings;  ///< commands that belong to its layers
  bool box = false;      ///< a frame on all four sides
  bool bar = false;      ///< has a colour bar
  std::string bar_label;
  Range bar_range;
  bool bar_about_zero = false;  ///< two hues that meet at zero
  int legend_columns = 1, legend_rows = 0;
  double extra_headroom = 0;  ///< so that stacks begin at the same height
  bool title_row = false;     ///< the title stands above the legend, not beside it

  PixelMap map() const { return {x.lo, x.hi, y.lo, y.hi, width, height, panel->x.log, panel->y.log}; }
  double headroom() const {
    return extra_headroom + 8 + 19 * legend_rows + (title_row || (!panel->title.empty() && legend_rows == 0) ? 22 : 0);
  }
};

/// True if the panel holds ribbons only.
bool is_strip(const Panel& panel);
bool has_heat(const Panel& panel);
/// True if it is a view of space.
bool is_space(const Panel& panel);

/// The ranges that the layers of a panel span.
struct Extent {
  Range x = {}, y = {};
};
Extent extent_of(const Panel& panel, std::span<const Table> tables);

/// Fills `elements`, `settings` and the colour bar of the plan and appends to the data file, which the script will read
/// as `data_file`. `explained` holds what the legends of the figure say already.
void write_layers(PanelPlan& plan, std::span<const Table> tables, const std::string& data_file,
                  std::set<std::string>& explained, std::string& data);

}  // namespace saltus
