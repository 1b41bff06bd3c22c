// Where the panels of a figure stand on a page, whatever draws them. In this order, because each needs the one before:
//
//     page = plan_sizes(figure)
//     for each stack: plan_ranges, then what its layers say in legends, plan_sides, plan_legend of each panel
//     plan_places(page), make_equal of each panel
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/figure.hpp"
#include "out/plot_layers.hpp"

namespace saltus {

struct StackPlan {
  const Stack* stack = nullptr;
  std::vector<PanelPlan> panels;
  double left = 0, width = 0;            ///< on the page, labels included
  double left_room = 0, right_room = 0;  ///< for labels, beside the frames
};

struct PlotPage {
  double width = 0, height = 0, head = 0;
  std::vector<std::string> caption;
  std::vector<StackPlan> stacks;
};

/// The frames' sizes, before anything is known of labels and legends. The figure must outlive the page.
PlotPage plan_sizes(const Figure& figure);
void plan_ranges(StackPlan& plan, std::span<const Table> tables);
/// Room for numbers and labels on the left and right of a stack's frames, the same for all of them: so they align.
void plan_sides(StackPlan& plan);
void plan_legend(PanelPlan& plan);
/// Where each frame stands. Stacks end at the same height: the lower ones stretch their full panels.
void plan_places(PlotPage& page);

/// Plans the page of a figure, panel by panel. `layers` draws those of a panel, or finds what they say in legends.
/// `figure` must outlive the page.
PlotPage plan_page(const Figure& figure, std::span<const Table> tables, const std::function<void(PanelPlan&)>& layers);
/// Widens one of the ranges until units are equally long on both axes, where the panel wants that.
void make_equal(PanelPlan& plan);

}  // namespace saltus
