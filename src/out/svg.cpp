#include "out/svg.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "out/plot_layers.hpp"
#include "out/plot_page.hpp"
#include "out/plot_range.hpp"
#include "out/plot_style.hpp"
#include "out/text.hpp"
#include "out/thin.hpp"

namespace saltus {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : one_line(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

/// A length on the page, to a tenth of a pixel.
std::string px(double v) {
  std::string s = fmt::format("{:.1f}", v);
  if (s.ends_with(".0")) s.resize(s.size() - 2);
  return s == "-0" ? "0" : s;
}

std::string text_at(double x, double y, std::string_view text, std::string_view anchor, double size,
                    std::string_view colour, std::string_view more = "") {
  return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" font-size=\"{}\" fill=\"{}\"{}>{}</text>\n", px(x),
                     px(y), anchor, size, colour, more, escaped(text));
}

std::string rectangle(double x, double y, double width, double height, std::string_view colour) {
  return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", px(x), px(y), px(width),
                     px(height), escaped(colour));
}

/// A mark of gnuplot's shapes: even ones hollow, odd ones full, below 4 crosses.
std::string mark(double x, double y, const MarkStyle& style, std::string_view title) {
  const double r = 6.0 * style.size;
  std::string d;
  const auto polygon = [&](std::initializer_list<std::pair<double, double>> points) {
    for (const auto& [u, v] : points) d += fmt::format("{}{} {}", d.empty() ? "M" : "L", px(x + r * u), px(y - r * v));
    d += "Z";
  };
  switch (style.shape) {
    case 1:
      d = fmt::format("M{0} {1}H{2}M{3} {4}V{5}", px(x - r), px(y), px(x + r), px(x), px(y - r), px(y + r));
      break;
    case 2:
    case 3:
      d = fmt::format("M{0} {1}L{2} {3}M{0} {3}L{2} {1}", px(x - r), px(y - r), px(x + r), px(y + r));
      if (style.shape == 3)
        d += fmt::format("M{} {}H{}M{} {}V{}", px(x - r), px(y), px(x + r), px(x), px(y - r), px(y + r));
      break;
    case 4:
    case 5: polygon({{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}}); break;
    case 8:
    case 9: polygon({{0, 1.1}, {-1, -0.7}, {1, -0.7}}); break;
    case 10:
    case 11: polygon({{0, -1.1}, {-1, 0.7}, {1, 0.7}}); break;
    case 12:
    case 13: polygon({{0, 1.15}, {-0.9, 0}, {0, -1.15}, {0.9, 0}}); break;
    default:
      d = fmt::format("M{0} {1}a{2} {2} 0 1 0 {3} 0a{2} {2} 0 1 0 -{3} 0Z", px(x - r), px(y), px(r), px(2 * r));
      break;
  }
  const bool full = style.shape > 3 && style.shape % 2 == 1;
  const std::string fill = style.shape < 4 ? "none" : full ? style.colour : "#ffffff";
  return fmt::format("<path class=\"mark\" d=\"{}\" fill=\"{}\" stroke=\"{}\" stroke-width=\"1.1\">{}</path>\n", d,
                     fill, style.colour, title.empty() ? "" : fmt::format("<title>{}</title>", escaped(title)));
}

/// From purple to yellow, even in lightness; or blue and red that meet in grey at zero. `place` from 0 to 1.
std::string blend(std::span<const int> stops, double place) {
  const double at = std::clamp(place, 0.0, 1.0) * static_cast<double>(stops.size() - 1);
  const size_t k = std::min(static_cast<size_t>(at), stops.size() - 2);
  const double f = at - static_cast<double>(k);
  const auto channel = [&](int shift) {
    return static_cast<int>(std::lround((1 - f) * ((stops[k] >> shift) & 255) + f * ((stops[k + 1] >> shift) & 255)));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", channel(16), channel(8), channel(0));
}

std::string bar_colour(double v, const Range& range, bool about_zero) {
  static constexpr int viridis[] = {0x440154, 0x472d7b, 0x3b528b, 0x2c728e, 0x21918c,
                                    0x28ae80, 0x5ec962, 0xaddc30, 0xfde725};
  static constexpr int below[] = {0x08306b, 0x4292c6, 0xd0d0d0}, above[] = {0xd0d0d0, 0xef6548, 0x7f0000};
  if (!about_zero) return blend(viridis, (v - range.lo) / (range.hi - range.lo));
  return v < 0 ? blend(below, 1 - v / range.lo) : blend(above, range.hi > 0 ? v / range.hi : 0);
}

// ---- axes ----------------------------------------------------------------------------------------------------------

struct Tick {
  double value = 0;
  std::string text;
};

/// Round numbers, about as many as fit.
std::vector<Tick> ticks_of(const Range& r, bool log, double pixels, double apart) {
  std::vector<Tick> out;
  if (log) {
    const int low = static_cast<int>(std::ceil(std::log10(r.lo) - 1e-9)),
              high = static_cast<int>(std::floor(std::log10(r.hi) + 1e-9));
    const int stride = std::max(1, static_cast<int>(std::ceil((high - low + 1) * apart / pixels)));
    for (int e = low; e <= high; e += stride) out.push_back({std::pow(10, e), fmt::format("1e{}", e)});
    return out;
  }
  const double rough = (r.hi - r.lo) * apart / pixels, ten = std::pow(10, std::floor(std::log10(rough)));
  double step = ten;
  for (const double factor : {2.0, 5.0, 10.0}) {
    if (step < rough) step = factor * ten;
  }
  if (!(step > 0) || !std::isfinite(r.lo / step) || (r.hi - r.lo) / step > 1000) return out;
  for (double k = std::ceil(r.lo / step - 1e-9); k * step <= r.hi + 1e-9 * step; ++k)
    out.push_back({k * step, fmt::format("{:.{}g}", k == 0 ? 0.0 : k * step, digits(r))});
  return out;
}

std::string axes(const PanelPlan& p, bool numbers_below) {
  const PixelMap map = p.map();
  std::string grid, words;
  const double right = p.left + p.width, bottom = p.top + p.height;
  if (!is_space(*p.panel)) {
    for (const Tick& tick : ticks_of(p.x, p.panel->x.log, p.width, 75)) {
      const double x = p.left + map.px(tick.value);
      if (!p.strip) grid += fmt::format("M{} {}V{}", px(x), px(p.top), px(bottom));
      if (numbers_below) words += text_at(x, bottom + 17, tick.text, "middle", 12, kInk);
    }
    for (const Tick& tick : p.strip ? std::vector<Tick>{} : ticks_of(p.y, p.panel->y.log, p.height, 42)) {
      const double y = bottom - map.py(tick.value);
      grid += fmt::format("M{} {}H{}", px(p.left), px(y), px(right));
      words += text_at(p.left - 7, y + 4, tick.text, "end", 12, kInk);
    }
  }
  if (numbers_below && !p.panel->x.label.empty())
    words += text_at(p.left + p.width / 2, bottom + 38, shortened(p.panel->x.label, 80), "middle", 13, kInk);
  if (!p.strip && !p.panel->y.label.empty()) {
    const double x = p.left - 18 - number_width(p.y, p.panel->y.log), y = p.top + p.height / 2;
    words += text_at(x, y, shortened(p.panel->y.label, 80), "middle", 13, kInk,
                     fmt::format(" transform=\"rotate(-90 {} {})\"", px(x), px(y)));
  }
  std::string frame = fmt::format("M{} {}V{}H{}", px(p.left), px(p.top), px(bottom), px(right));
  if (p.strip) frame = fmt::format("M{} {}H{}", px(p.left), px(bottom), px(right));
  if (p.box || p.panel->equal) frame += fmt::format("V{}H{}", px(p.top), px(p.left));
  return fmt::format("<path d=\"{}\" stroke=\"#e4e4e4\" stroke-width=\"0.6\" fill=\"none\"/>\n", grid) +
         fmt::format("<path d=\"{}\" stroke=\"{}\" stroke-width=\"0.8\" fill=\"none\"/>\n", frame, kInk) + words;
}

// ---- layers --------------------------------------------------------------------------------------------------------

/// The layers of a panel as shapes. Drawn twice: first only what the legend says, which decides where the frames stand.
class SvgLayers {
 public:
  SvgLayers(std::span<const Table> tables, PanelPlan& plan, std::set<std::string>& explained)
      : tables_(tables), plan_(plan), explained_(explained), map_(plan.map()), bars_(plan.panel->layers.size()) {}

  const std::string& shapes() const { return shapes_; }

  void operator()(const Line& line) {
    const Table& table = find_table(tables_, line.table);
    const std::string colour = line.colour.empty() ? series_colour(lines_) : escaped(line.colour);
    ++lines_;
    curve(table.numbers(line.x), table.numbers(line.y), colour, line.dashed);
    explain(line.label, fmt::format("<path d=\"M0 -4h18\" stroke=\"{}\" stroke-width=\"1.6\"{}/>", colour,
                                    line.dashed ? " stroke-dasharray=\"5 3\"" : ""));
  }

  void operator()(const Curve& curve3) {
    const Table& table = find_table(tables_, curve3.table);
    const Numbers &x = table.numbers(curve3.x), &y = table.numbers(curve3.y), &z = table.numbers(curve3.z);
    const auto unit = [](const Numbers& v) {
      Range r;
      for (const double a : v) {
        if (drawable(a, false)) r.add(a);
      }
      return shown(r, {}, 0);
    };
    const Range rx = unit(x), ry = unit(y), rz = unit(z);
    const auto at = [](double v, const Range& r) { return (v - r.lo) / (r.hi - r.lo) - 0.5; };
    Numbers across, up;
    for (size_t i = 0; i < x.size(); ++i) {
      const double u = at(x[i], rx), v = at(y[i], ry), w = at(z[i], rz);  // seen from above at an angle
      across.push_back(plan_.x.lo + (plan_.x.hi - plan_.x.lo) * (0.5 + 0.62 * (0.83 * u - 0.56 * v)));
      up.push_back(plan_.y.lo + (plan_.y.hi - plan_.y.lo) * (0.5 + 0.62 * (0.26 * u + 0.39 * v + 0.88 * w)));
    }
    const std::string colour = series_colour(lines_++);
    curve(across, up, colour, false);
    explain(curve3.label, fmt::format("<path d=\"M0 -4h18\" stroke=\"{}\" stroke-width=\"1.6\"/>", colour));
  }

  void operator()(const Points& points) {
    const Table& table = find_table(tables_, points.table);
    const Numbers &x = table.numbers(points.x), &y = table.numbers(points.y);
    std::map<std::string, std::vector<size_t>> by_kind;
    if (points.kind.empty()) {
      for (size_t i = 0; i < x.size(); ++i) by_kind[points.label].push_back(i);
    } else {
      const Texts& kinds = table.texts(points.kind);
      for (size_t i = 0; i < kinds.size(); ++i) {
        if (!kinds[i].empty()) by_kind[kinds[i]].push_back(i);
      }
    }
    std::vector<std::string> order;
    for (const KnownMark& known : known_marks()) {
      if (by_kind.contains(known.kind)) order.emplace_back(known.kind);
    }
    for (const auto& [kind, rows] : by_kind) {
      if (std::find(order.begin(), order.end(), kind) == order.end()) order.push_back(kind);
    }
    size_t index = 0;
    for (const std::string& kind : order) {
      const MarkStyle style = points.kind.empty()
                                  ? MarkStyle{7, 0.5, has_heat(*plan_.panel) ? "#000000" : series_colour(lines_++)}
                                  : mark_style(kind, index++);
      for (const size_t i : by_kind[kind]) {
        if (!inside(x[i], y[i])) continue;
        shapes_ += mark(sx(x[i]), sy(y[i]), style,
                        fmt::format("{} at {} = {:.10g}, {} = {:.10g}", kind, points.x, x[i], points.y, y[i]));
      }
      if (!kind.empty() && explained_.insert("kind " + kind).second) explain(kind, mark(9, -4, style, ""));
    }
  }

  void operator()(const Dots& dots) {
    const Table& table = find_table(tables_, dots.table);
    const Numbers &x = table.numbers(dots.x), &y = table.numbers(dots.y);
    plan_.box = true;
    const std::vector<size_t> rows = thin_points(x, y, map_, 0.7, 20000);
    const double size = rows.size() <= 300 ? 3 : rows.size() <= 3000 ? 2 : 1.2;
    std::map<std::string, std::vector<size_t>> by_colour;
    if (dots.colour.empty()) {
      by_colour[kDotColour] = rows;
    } else if (table.column(dots.colour).is_text()) {
      const Texts& words = table.texts(dots.colour);
      std::map<std::string, std::string> colours;
      for (const std::string& word : words) colours.try_emplace(word, "");
      size_t k = 0;
      for (auto& [word, colour] : colours) {
        colour = series_colour(k++);
        explain(word, fmt::format("<circle cx=\"9\" cy=\"-4\" r=\"3.5\" fill=\"{}\"/>", colour));
      }
      for (const size_t i : rows) by_colour[colours[words[i]]].push_back(i);
    } else {
      const Numbers& values = table.numbers(dots.colour);
      for (const double v : values) {
        if (drawable(v, false)) plan_.bar_range.add(v);
      }
      use_bar(dots.label.empty() ? dots.colour : dots.label, dots.about_zero);
      for (const size_t i : rows) {
        if (drawable(values[i], false)) by_colour[bar_colour(values[i], bar(), dots.about_zero)].push_back(i);
      }
    }
    for (const auto& [colour, chosen] : by_colour) {
      std::string d;
      for (const size_t i : chosen) {
        if (inside(x[i], y[i])) d += fmt::format("M{} {}h0", px(sx(x[i])), px(sy(y[i])));
      }
      shapes_ +=
          fmt::format("<path d=\"{}\" stroke=\"{}\" stroke-width=\"{}\" stroke-linecap=\"round\" fill=\"none\"/>\n", d,
                      colour, size);
    }
  }

  void operator()(const Heat& heat) {
    const Table& table = find_table(tables_, heat.table);
    const GridAxis across = grid_axis(table.numbers(heat.x)), up = grid_axis(table.numbers(heat.y));
    plan_.box = true;
    if (across.cells == 0 || up.cells == 0) return;
    const size_t nx = std::min(across.cells, static_cast<size_t>(plan_.width)),
                 ny = std::min(up.cells, static_cast<size_t>(plan_.height));
    const Numbers &xs = table.numbers(heat.x), &ys = table.numbers(heat.y), &values = table.numbers(heat.value);
    std::map<double, std::string> named;
    for (size_t i = 0; i < heat.categories.size(); ++i) {
      const Category& c = heat.categories[i];
      const std::string colour = c.colour.empty() ? softened(series_colour(i)) : escaped(c.colour);
      named[c.value] = colour;
      if (i < 16)
        explain(c.label, fmt::format("<rect x=\"3\" y=\"-10\" width=\"12\" height=\"12\" fill=\"{}\"/>", colour));
    }
    if (heat.categories.empty()) {
      for (const double v : values) {
        if (drawable(v, false)) plan_.bar_range.add(v);
      }
      use_bar(heat.label.empty() ? heat.value : heat.label, heat.about_zero);
    }
    std::vector<std::string> cells(nx * ny);
    const auto index = [](double v, const Range& r, size_t n) {
      return std::min(n - 1, static_cast<size_t>(std::max(0.0, (v - r.lo) / (r.hi - r.lo) * static_cast<double>(n))));
    };
    for (size_t i = 0; i < values.size(); ++i) {
      if (!drawable(xs[i], false) || !drawable(ys[i], false) || !drawable(values[i], false)) continue;
      const auto known = named.find(values[i]);
      cells[index(ys[i], up.edges, ny) * nx + index(xs[i], across.edges, nx)] =
          heat.categories.empty() ? bar_colour(values[i], bar(), heat.about_zero)
          : known == named.end()  ? ""
                                  : known->second;
    }
    std::map<std::string, std::string> paths;  // runs of equal cells, by colour
    const double dx = (across.edges.hi - across.edges.lo) / static_cast<double>(nx),
                 dy = (up.edges.hi - up.edges.lo) / static_cast<double>(ny);
    for (size_t j = 0; j < ny; ++j) {
      for (size_t i = 0; i < nx;) {
        size_t end = i + 1;
        while (end < nx && cells[j * nx + end] == cells[j * nx + i]) ++end;
        const std::string& colour = cells[j * nx + i];
        const double low = up.edges.lo + dy * static_cast<double>(j);
        if (!colour.empty())
          paths[colour] +=
              fmt::format("M{0} {1}H{2}V{3}H{0}Z", px(sx(across.edges.lo + dx * static_cast<double>(i))), px(sy(low)),
                          px(sx(across.edges.lo + dx * static_cast<double>(end))), px(sy(low + dy)));
        i = end;
      }
    }
    for (const auto& [colour, d] : paths)
      shapes_ += fmt::format("<path d=\"{}\" fill=\"{}\" shape-rendering=\"crispEdges\"/>\n", d, colour);
  }

  void operator()(const Ribbon& ribbon) {
    const Table& table = find_table(tables_, ribbon.table);
    const Texts& category = table.texts(ribbon.category);
    const double per_unit = plan_.width / (plan_.x.hi - plan_.x.lo);
    const double height = plan_.strip ? plan_.height / static_cast<double>(bars_) : 0.04 * plan_.height;
    const double top =
        plan_.strip ? plan_.top + height * static_cast<double>(ribbons_) : plan_.top + plan_.height - height;
    ++ribbons_;
    shapes_ += "<g class=\"ribbon\">\n";
    std::set<std::string> silent;
    std::map<std::string, std::string> colours;
    for (const Stretch& s : thin_ribbon(table.numbers(ribbon.from), table.numbers(ribbon.to), category, per_unit)) {
      const std::string& name = category[s.row];
      const size_t place = ribbon_colours_.try_emplace(name, ribbon_colours_.size()).first->second;
      colours[name] = ribbon_colour(name, place);
      const double from = std::max(s.from, plan_.x.lo), to = std::min(s.to, plan_.x.hi);
      if (!(to > from)) continue;
      shapes_ += rectangle(sx(from), top + 0.08 * height, (to - from) * per_unit, 0.84 * height, colours[name]);
      const bool told = plan_.strip && (to - from) * per_unit > 0.85 * text_width(name) + 6;
      if (told) shapes_ += text_at(0.5 * (sx(from) + sx(to)), top + 0.5 * height + 4, name, "middle", 11, kInk);
      if (told) explained_.insert("ribbon " + name);
    }
    shapes_ += "</g>\n";
    if (plan_.strip && !ribbon.label.empty())
      shapes_ += text_at(plan_.left - 7, top + 0.5 * height + 4, shortened(ribbon.label, kBarLabel), "end", 12, kInk);
    for (const auto& [name, colour] : colours) {
      if (explained_.insert("ribbon " + name).second)
        explain(name, fmt::format("<rect x=\"3\" y=\"-10\" width=\"12\" height=\"12\" fill=\"{}\"/>", colour));
    }
  }

  void operator()(const Circle& c) {
    shapes_ += fmt::format("<ellipse cx=\"{}\" cy=\"{}\" rx=\"{}\" ry=\"{}\" fill=\"none\" stroke=\"{}\"/>\n",
                           px(sx(c.x)), px(sy(c.y)), px(c.radius * plan_.width / (plan_.x.hi - plan_.x.lo)),
                           px(c.radius * plan_.height / (plan_.y.hi - plan_.y.lo)), kGrey);
  }

  void operator()(const Verticals& verticals) {
    std::vector<double> shares;
    for (const double x : verticals.at) shares.push_back(share_of(x, plan_.x.lo, plan_.x.hi, plan_.panel->x.log));
    const std::vector<int> rows = label_rows(shares);
    for (size_t i = 0; i < std::min<size_t>(200, verticals.at.size()); ++i) {
      const double x = verticals.at[i];
      if (!drawable(x, plan_.panel->x.log) || x < plan_.x.lo || x > plan_.x.hi) continue;
      shapes_ += fmt::format("<path d=\"M{} {}V{}\" stroke=\"{}\" stroke-width=\"0.9\" stroke-dasharray=\"4 3\"/>\n",
                             px(sx(x)), px(plan_.top), px(plan_.top + plan_.height), kGrey);
      if (i < verticals.labels.size() && !verticals.labels[i].empty())
        shapes_ += text_at(sx(x) - 4, below(rows[i]), shortened(verticals.labels[i], 40), "end", 11, kGrey,
                           fmt::format(" transform=\"rotate(-90 {} {})\"", px(sx(x) - 4), px(below(rows[i]))));
    }
  }

 private:
  double below(int row) const { return plan_.top + 4 + kLabelRow * row * plan_.height; }
  double sx(double x) const { return plan_.left + map_.px(x); }
  double sy(double y) const { return plan_.top + plan_.height - map_.py(y); }
  bool inside(double x, double y) const {
    return drawable(x, plan_.panel->x.log) && drawable(y, plan_.panel->y.log) && x >= plan_.x.lo && x <= plan_.x.hi &&
           y >= plan_.y.lo && y <= plan_.y.hi;
  }
  Range bar() const {
    Range r = shown(plan_.bar_range, {}, 0);
    if (plan_.bar_about_zero) r.add(0);
    return r;
  }
  void use_bar(std::string_view label, bool about_zero) {
    plan_.bar = true;
    plan_.bar_about_zero = about_zero;
    plan_.bar_label = label;
  }
  void explain(const std::string& title, std::string glyph) {
    if (!title.empty()) plan_.elements.push_back({std::move(glyph), title});
  }
  void curve(const Numbers& x, const Numbers& y, const std::string& colour, bool dashed) {
    std::string d;
    bool pen = false;
    for (const size_t i : thin_line(x, y, map_, 20000)) {
      if (i == kGap) {
        pen = false;
        continue;
      }
      d += fmt::format("{}{} {}", pen ? "L" : "M", px(sx(x[i])), px(sy(y[i])));
      pen = true;
    }
    if (!d.empty())
      shapes_ +=
          fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.4\" stroke-linejoin=\"round\"{}/>\n",
                      d, colour, dashed ? " stroke-dasharray=\"6 4\"" : "");
  }

  std::span<const Table> tables_;
  PanelPlan& plan_;
  std::set<std::string>& explained_;
  PixelMap map_;
  size_t bars_;
  std::string shapes_;
  size_t lines_ = 0, ribbons_ = 0;
  std::map<std::string, size_t> ribbon_colours_;
};

std::string legend(const PanelPlan& p) {
  std::string out;
  std::vector<std::string> titles;
  for (const Element& e : p.elements) titles.push_back(e.title);
  titles = distinct(titles, 40);
  double widest = 0;
  for (const std::string& title : titles) widest = std::max(widest, text_width(title) + 34);
  const int columns = std::max(1, p.legend_columns);
  for (size_t k = 0; k < titles.size(); ++k) {
    const int row = static_cast<int>(k) / columns, column = static_cast<int>(k) % columns;
    const double x = p.left + p.width - widest * (columns - column), y = p.top - 9 - 19 * (p.legend_rows - 1 - row);
    out += fmt::format("<g transform=\"translate({} {})\">{}</g>\n", px(x), px(y), p.elements[k].what);
    out += text_at(x + 24, y, titles[k], "start", 12, kInk);
  }
  return out;
}

std::string colour_bar(const PanelPlan& p) {
  if (!p.bar) return "";
  Range r = shown(p.bar_range, {}, 0);
  if (p.bar_about_zero) r.add(0);
  const double x = p.left + p.width + 10;
  constexpr int steps = 64;
  std::string out;
  for (int k = 0; k < steps; ++k) {
    const double v = r.lo + (r.hi - r.lo) * (k + 0.5) / steps;
    out += rectangle(x, p.top + p.height * (1 - (k + 1.0) / steps), 14, p.height / steps + 0.5,
                     bar_colour(v, r, p.bar_about_zero));
  }
  for (const Tick& tick : ticks_of(r, false, p.height, 42))
    out +=
        text_at(x + 18, p.top + p.height * (1 - (tick.value - r.lo) / (r.hi - r.lo)) + 4, tick.text, "start", 12, kInk);
  const double lx = x + 34 + number_width(r, false), ly = p.top + p.height / 2;
  return out + text_at(lx, ly, p.bar_label, "middle", 13, kInk,
                       fmt::format(" transform=\"rotate(-90 {} {})\"", px(lx), px(ly)));
}

std::string panel(PanelPlan& p, std::span<const Table> tables, std::set<std::string>& explained, bool numbers_below,
                  size_t number) {
  const std::vector<Element> elements = p.elements;
  SvgLayers layers(tables, p, explained);
  for (const Layer& layer : p.panel->layers) std::visit(layers, layer);
  p.elements = elements;
  std::string out =
      fmt::format("<clipPath id=\"panel{}\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></clipPath>\n", number,
                  px(p.left - 4), px(p.top - 4), px(p.width + 8), px(p.height + 8));
  out += axes(p, numbers_below);
  out += p.strip ? layers.shapes() : fmt::format("<g clip-path=\"url(#panel{})\">\n{}</g>\n", number, layers.shapes());
  if (p.panel->layers.empty())
    out += text_at(p.left + p.width / 2, p.top + p.height / 2, "no data", "middle", 13, kGrey);
  out += legend(p) + colour_bar(p);
  if (!p.panel->title.empty())
    out += text_at(p.left, p.top - 12 - (p.title_row ? 19 * p.legend_rows : 0), p.panel->title, "start", 14, kInk);
  return out;
}

}  // namespace

std::string draw_svg(const Figure& figure, std::span<const Table> tables) {
  check(figure, tables);
  Figure drawn = figure;
  if (drawn.stacks.empty()) drawn.stacks = {Stack{.panels = {Panel{}}}};
  std::set<std::string> explained;
  PlotPage page = plan_page(drawn, tables, [&](PanelPlan& p) {
    SvgLayers layers(tables, p, explained);
    for (const Layer& layer : p.panel->layers) std::visit(layers, layer);
  });

  std::string body;
  double y = 22;
  const double left = page.stacks.front().left + page.stacks.front().left_room;
  if (!drawn.title.empty()) {
    body +=
        text_at(left, y, shortened(drawn.title, static_cast<size_t>((page.width - left) / 10)), "start", 17, "#000000");
    y += 23;
  }
  for (const std::string& line : page.caption) {
    body += text_at(left, y, line, "start", 12, kGrey);
    y += 17;
  }
  size_t number = 0;
  for (StackPlan& stack : page.stacks) {
    for (size_t i = 0; i < stack.panels.size(); ++i) {
      make_equal(stack.panels[i]);
      body +=
          panel(stack.panels[i], tables, explained, !stack.stack->share_x || i + 1 == stack.panels.size(), ++number);
    }
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" role=\"img\" aria-label=\"{2}\">\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"#ffffff\"/>\n{3}</svg>\n",
      px(page.width), px(page.height), escaped(drawn.title), body);
}

}  // namespace saltus
