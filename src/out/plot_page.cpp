#include "out/plot_page.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "out/plot_range.hpp"
#include "out/plot_style.hpp"
#include "out/text.hpp"

namespace saltus {
namespace {

/// Room below a frame: numbers and a label, unless the panel below shows them.
double foot(const StackPlan& plan, size_t i) {
  const bool last = i + 1 == plan.panels.size();
  if (plan.stack->share_x && !last) return plan.panels[i + 1].strip ? 2 : 8;
  return plan.panels[i].panel->x.label.empty() ? 30 : 52;
}

}  // namespace

PlotPage plan_sizes(const Figure& figure) {
  PlotPage page;
  const double count = static_cast<double>(std::max<size_t>(1, figure.stacks.size()));
  page.width = count == 1 ? 900 : std::min(1800.0, 580 * count);
  double total = 0, x = 0;
  for (const Stack& stack : figure.stacks) total += std::max(0.1, stack.width);
  size_t number = 0;
  for (const Stack& stack : figure.stacks) {
    StackPlan plan{.stack = &stack, .panels = {}, .left = x, .width = page.width * std::max(0.1, stack.width) / total};
    x += plan.width;
    size_t full = 0;
    for (const Panel& panel : stack.panels) full += is_strip(panel) ? 0 : 1;
    const double height = full <= 1 ? 420 : full == 2 ? 210 : full == 3 ? 165 : 140;
    for (const Panel& panel : stack.panels) {
      PanelPlan p;
      p.panel = &panel;
      p.name = fmt::format("panel{}", ++number);
      p.strip = is_strip(panel);
      p.width = plan.width - 100;
      p.height =
          p.strip ? 24.0 * static_cast<double>(panel.layers.size()) : height * std::clamp(panel.height, 0.1, 10.0);
      plan.panels.push_back(std::move(p));
    }
    page.stacks.push_back(std::move(plan));
  }
  page.caption = wrap(one_line(figure.caption), static_cast<size_t>((page.width - 100) / 6.8), 4);
  page.head = (figure.title.empty() ? 6 : 36) + 18.0 * static_cast<double>(page.caption.size());
  return page;
}

void plan_ranges(StackPlan& plan, std::span<const Table> tables) {
  std::vector<Extent> extents;
  Range shared;
  for (const PanelPlan& p : plan.panels) {
    extents.push_back(extent_of(*p.panel, tables));
    shared.add(extents.back().x);
  }
  for (size_t i = 0; i < plan.panels.size(); ++i) {
    PanelPlan& p = plan.panels[i];
    const bool heat = has_heat(*p.panel);
    p.x = shown(plan.stack->share_x ? shared : extents[i].x, p.panel->x, plan.stack->share_x || heat ? 0 : 0.03);
    p.y = p.strip ? Range{0, static_cast<double>(p.panel->layers.size())}
                  : shown(extents[i].y, p.panel->y, heat ? 0 : 0.06);
  }
}

void plan_legend(PanelPlan& p) {
  double widest = 0, count = 0;
  for (const Element& e : p.elements) {
    if (e.title.empty()) continue;
    widest = std::max(widest, text_width(shortened(e.title, 40)) + 34);
    ++count;
  }
  if (count == 0) return;
  const double columns = std::clamp(std::floor(p.width / widest), 1.0, count);
  p.legend_columns = static_cast<int>(columns);
  p.legend_rows = static_cast<int>(std::ceil(count / columns));
  p.title_row =
      !p.panel->title.empty() && (p.legend_rows > 1 || columns * widest + text_width(p.panel->title) > p.width);
}

void plan_sides(StackPlan& plan) {
  plan.left_room = 40;
  plan.right_room = 22;
  for (const PanelPlan& p : plan.panels) {
    double left = p.panel->y.label.empty() ? 16 : 40;
    if (p.strip) {
      for (const Layer& layer : p.panel->layers)
        left = std::max(left, 18 + text_width(shortened(std::get<Ribbon>(layer).label, kBarLabel)));
    } else {
      left += number_width(p.y, p.panel->y.log);
    }
    plan.left_room = std::max(plan.left_room, left);
    if (p.bar) plan.right_room = std::max(plan.right_room, 74 + number_width(shown(p.bar_range, {}, 0), false));
  }
  plan.left_room = std::min(plan.left_room, 0.3 * plan.width);
  for (PanelPlan& p : plan.panels) {
    p.left = plan.left + plan.left_room;
    p.width = plan.width - plan.left_room - plan.right_room;
  }
}

void plan_places(PlotPage& page) {
  const auto height = [](const StackPlan& plan) {
    double sum = 0;
    for (size_t i = 0; i < plan.panels.size(); ++i)
      sum += plan.panels[i].headroom() + plan.panels[i].height + foot(plan, i);
    return sum;
  };
  double deepest = 0, tallest = 0;
  for (const StackPlan& plan : page.stacks) {
    if (!plan.panels.empty()) deepest = std::max(deepest, plan.panels.front().headroom());
  }
  for (StackPlan& plan : page.stacks) {
    if (!plan.panels.empty()) plan.panels.front().extra_headroom = deepest - plan.panels.front().headroom();
  }
  for (const StackPlan& plan : page.stacks) tallest = std::max(tallest, height(plan));
  for (StackPlan& plan : page.stacks) {
    double full = 0;
    for (const PanelPlan& p : plan.panels) full += p.strip ? 0 : p.height;
    const double stretch = full > 0 ? 1 + (tallest - height(plan)) / full : 1;
    double y = page.head;
    for (size_t i = 0; i < plan.panels.size(); ++i) {
      PanelPlan& p = plan.panels[i];
      if (!p.strip) p.height *= stretch;
      p.top = y + p.headroom();
      y = p.top + p.height + foot(plan, i);
    }
  }
  page.height = page.head + tallest + 4;
}

void make_equal(PanelPlan& p) {
  if (!p.panel->equal || p.panel->x.log || p.panel->y.log) return;
  const double ux = (p.x.hi - p.x.lo) / p.width, uy = (p.y.hi - p.y.lo) / p.height, u = std::max(ux, uy);
  const auto widen = [](Range& r, double width) {
    const double middle = 0.5 * (r.lo + r.hi);
    r = {middle - 0.5 * width, middle + 0.5 * width};
  };
  if (u > ux) widen(p.x, u * p.width);
  if (u > uy) widen(p.y, u * p.height);
}

PlotPage plan_page(const Figure& figure, std::span<const Table> tables, const std::function<void(PanelPlan&)>& layers) {
  PlotPage page = plan_sizes(figure);
  for (StackPlan& stack : page.stacks) {
    plan_ranges(stack, tables);
    for (PanelPlan& p : stack.panels) layers(p);
    plan_sides(stack);
    for (PanelPlan& p : stack.panels) plan_legend(p);
  }
  plan_places(page);
  return page;
}

}  // namespace saltus
