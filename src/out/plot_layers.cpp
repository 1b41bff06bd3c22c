#include "out/plot_layers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "out/plot_style.hpp"
#include "out/text.hpp"

namespace saltus {
namespace {

struct ExtentOf {
  std::span<const Table> tables;
  const Panel& panel;
  Range x = {}, y = {};

  void rows(const auto& layer) {
    const Table& table = find_table(tables, layer.table);
    const Numbers &xs = table.numbers(layer.x), &ys = table.numbers(layer.y);
    for (size_t i = 0; i < xs.size(); ++i) {
      if (!drawable(xs[i], panel.x.log) || !drawable(ys[i], panel.y.log)) continue;
      if (xs[i] < panel.x.from || xs[i] > panel.x.to) continue;  // y fits what is seen
      x.add(xs[i]);
      y.add(ys[i]);
    }
  }
  void operator()(const Line& line) { rows(line); }
  void operator()(const Curve& curve) { rows(curve); }
  void operator()(const Points& points) { rows(points); }
  void operator()(const Dots& dots) { rows(dots); }
  void operator()(const Heat& heat) {
    const Table& table = find_table(tables, heat.table);
    x.add(grid_axis(table.numbers(heat.x)).edges);
    y.add(grid_axis(table.numbers(heat.y)).edges);
  }
  void operator()(const Ribbon& ribbon) {
    const Table& table = find_table(tables, ribbon.table);
    for (const std::string& name : {ribbon.from, ribbon.to}) {
      for (const double v : table.numbers(name)) {
        if (drawable(v, panel.x.log)) x.add(v);
      }
    }
  }
  void operator()(const Circle& circle) {
    x.add({circle.x - circle.radius, circle.x + circle.radius});
    y.add({circle.y - circle.radius, circle.y + circle.radius});
  }
  void operator()(const Verticals& verticals) {
    for (const double v : verticals.at) {
      if (drawable(v, panel.x.log)) x.add(v);
    }
  }
};

/// Turns the layers of a panel into elements of its plot command and blocks of the data file.
class LayerWriter {
 public:
  LayerWriter(std::span<const Table> tables, std::string data_file, PanelPlan& plan, std::set<std::string>& explained,
              std::string& data)
      : tables_(tables),
        file_(gp_string(data_file)),
        plan_(plan),
        explained_(explained),
        data_(data),
        bars_(plan.panel->layers.size()) {}

  void operator()(const Line& line) {
    const Table& table = find_table(tables_, line.table);
    const Numbers &x = table.numbers(line.x), &y = table.numbers(line.y);
    const std::vector<size_t> rows = thin_line(x, y, plan_.map(), 20000);
    const std::string colour = line.colour.empty() ? series_colour(lines_) : one_line(line.colour);
    ++lines_;
    if (rows.empty()) return;
    const std::string block = begin_block("line", fmt::format("{} over {}", line.y, line.x));
    for (const size_t i : rows) {
      if (i == kGap) {
        data_ += '\n';  // an empty line interrupts the curve
      } else {
        append_row({x[i], y[i]});
      }
    }
    end_block();
    add(block, fmt::format("using 1:2 with lines lw 1.4 {}lc rgb {}", line.dashed ? "dt 2 " : "", gp_string(colour)),
        line.label);
  }

  void operator()(const Curve& curve) {
    const Table& table = find_table(tables_, curve.table);
    const Numbers &x = table.numbers(curve.x), &y = table.numbers(curve.y), &z = table.numbers(curve.z);
    const size_t most = 20000, stride = std::max<size_t>(1, x.size() / most);
    const std::string colour = series_colour(lines_++);
    const std::string block = begin_block("curve", fmt::format("{}, {}, {}", curve.x, curve.y, curve.z));
    for (size_t i = 0; i < x.size(); ++i) {
      const bool gap = !drawable(x[i], false) || !drawable(y[i], false) || !drawable(z[i], false);
      if (gap) {
        data_ += '\n';
      } else if (i % stride == 0 || i + 1 == x.size()) {
        append_row({x[i], y[i], z[i]});
      }
    }
    end_block();
    add(block, fmt::format("using 1:2:3 with lines lw 1.2 lc rgb {}", gp_string(colour)), curve.label);
  }

  void operator()(const Points& points) {
    const Table& table = find_table(tables_, points.table);
    if (points.kind.empty()) {
      const bool on_colours = has_heat(*plan_.panel);
      if (on_colours) add_points(points, {}, {7, 0.8, "#ffffff"}, "");
      add_points(points, {}, {7, 0.5, on_colours ? "#000000" : series_colour(lines_++)}, points.label);
      return;
    }
    std::map<std::string, std::vector<size_t>> by_kind;
    const Texts& kinds = table.texts(points.kind);
    for (size_t i = 0; i < kinds.size(); ++i) by_kind[kinds[i]].push_back(i);
    by_kind.erase("");  // gap rows
    for (const KnownMark& mark : known_marks()) {
      if (const auto found = by_kind.extract(mark.kind)) add_kind(points, found.key(), found.mapped(), 0);
    }
    size_t index = 0;
    for (const auto& [kind, rows] : by_kind) add_kind(points, kind, rows, index++);
  }

  void operator()(const Dots& dots) {
    const Table& table = find_table(tables_, dots.table);
    const Numbers &x = table.numbers(dots.x), &y = table.numbers(dots.y);
    const size_t most = 20000;
    if (dots.colour.empty()) {
      const std::vector<size_t> rows = thin_points(x, y, plan_.map(), 0.7, most + 1);
      const bool crowded = x.size() > most && rows.size() > most / 2;
      if (crowded && !plan_.panel->x.log && !plan_.panel->y.log) {
        add_density(dots, x, y);
      } else {
        add_dots(dots, x, y, rows, rows.size(), gp_string(kDotColour), dots.label);
      }
    } else if (table.column(dots.colour).is_text()) {
      std::map<std::string, std::pair<Numbers, Numbers>> groups;
      const Texts& words = table.texts(dots.colour);
      for (size_t i = 0; i < words.size(); ++i) {
        groups[words[i]].first.push_back(x[i]);
        groups[words[i]].second.push_back(y[i]);
      }
      std::vector<std::vector<size_t>> kept;
      size_t all = 0;
      for (const auto& [word, xy] : groups) {
        kept.push_back(thin_points(xy.first, xy.second, plan_.map(), 0.7, std::max<size_t>(500, most / groups.size())));
        all += kept.back().size();
      }
      size_t index = 0;
      for (const auto& [word, xy] : groups) {
        add_dots(dots, xy.first, xy.second, kept[index], all, gp_string(series_colour(index)), word);
        ++index;
      }
    } else {
      const Numbers& c = table.numbers(dots.colour);
      const std::vector<size_t> rows = thin_points(x, y, plan_.map(), 0.7, most);
      if (rows.empty()) return;
      const std::string block = begin_block("dots", fmt::format("{} over {}, {}", dots.y, dots.x, dots.colour));
      for (const size_t i : rows) {
        if (!drawable(c[i], false)) continue;
        append_row({x[i], y[i], c[i]});
        plan_.bar_range.add(c[i]);
      }
      end_block();
      plan_.box = true;
      use_bar(dots.label.empty() ? dots.colour : dots.label, dots.about_zero);
      add(block, "using 1:2:3 with points pt 7 ps 0.15 lc palette", "");
    }
  }

  void operator()(const Heat& heat) {
    const Table& table = find_table(tables_, heat.table);
    const GridAxis across = grid_axis(table.numbers(heat.x)), up = grid_axis(table.numbers(heat.y));
    plan_.box = true;
    if (across.cells == 0 || up.cells == 0) return;
    // More cells than pixels are merged. Fewer are repeated, for viewers smooth what they enlarge.
    const size_t nx = std::min(across.cells, static_cast<size_t>(plan_.width));
    const size_t ny = std::min(up.cells, static_cast<size_t>(plan_.height));
    const auto repeat = [](double pixels, size_t n) {
      return static_cast<size_t>(std::ceil(0.8 * pixels / static_cast<double>(n)));
    };
    const size_t kx = repeat(plan_.width, nx), ky = repeat(plan_.height, ny);
    const double none = std::numeric_limits<double>::quiet_NaN();
    std::vector<double> cells(nx * ny, none);
    const Numbers &xs = table.numbers(heat.x), &ys = table.numbers(heat.y), &values = table.numbers(heat.value);
    for (size_t i = 0; i < values.size(); ++i) {
      if (!drawable(xs[i], false) || !drawable(ys[i], false) || !drawable(values[i], false)) continue;
      const auto index = [](double v, const Range& r, size_t n) {
        return std::min(n - 1, static_cast<size_t>(std::max(0.0, (v - r.lo) / (r.hi - r.lo) * static_cast<double>(n))));
      };
      cells[index(ys[i], up.edges, ny) * nx + index(xs[i], across.edges, nx)] = values[i];
    }
    if (!heat.categories.empty()) number_categories(heat.categories, cells);
    const std::string block =
        begin_block("heat", fmt::format("{} over {} and {}, a matrix", heat.value, heat.x, heat.y));
    for (size_t j = 0; j < ny; ++j) {
      std::string line;
      for (size_t i = 0; i < nx; ++i) {
        const double v = cells[j * nx + i];
        if (drawable(v, false)) plan_.bar_range.add(v);
        const std::string number = drawable(v, false) ? fmt::format("{:.6g} ", v) : "nan ";
        for (size_t k = 0; k < kx; ++k) line += number;
      }
      line.back() = '\n';
      for (size_t k = 0; k < ky; ++k) data_ += line;
    }
    end_block();
    add(block, matrix_using(across.edges, up.edges, nx * kx, ny * ky) + ":3 with image", "");
    if (heat.categories.empty()) {
      use_bar(heat.label.empty() ? heat.value : heat.label, heat.about_zero);
    } else {
      add_categories(heat.categories);
    }
  }

  void operator()(const Ribbon& ribbon) {
    const Table& table = find_table(tables_, ribbon.table);
    const Texts& category = table.texts(ribbon.category);
    const double pixels_per_unit = plan_.width / (plan_.x.hi - plan_.x.lo);
    const std::vector<Stretch> stretches =
        thin_ribbon(table.numbers(ribbon.from), table.numbers(ribbon.to), category, pixels_per_unit);
    std::vector<std::string> names;  // in order of appearance
    std::map<std::string, std::vector<Stretch>> by_name;
    for (const Stretch& s : stretches) {
      if (!by_name.contains(category[s.row])) names.push_back(category[s.row]);
      by_name[category[s.row]].push_back(s);
    }
    const double low = plan_.strip ? static_cast<double>(bars_ - ribbons_ - 1) : 0;
    const std::string lower = plan_.strip ? fmt::format("{}", low + 0.08) : fmt::format("{:.15g}", plan_.y.lo);
    const std::string upper = plan_.strip ? fmt::format("{}", low + 0.92)
                                          : fmt::format("{:.15g}", plan_.y.lo + 0.04 * (plan_.y.hi - plan_.y.lo));
    ++ribbons_;
    for (const std::string& name : names) {
      const size_t colour = ribbon_colours_.try_emplace(name, ribbon_colours_.size()).first->second;
      const std::string block =
          begin_block("ribbon", fmt::format("{} to {} where {} is {}", ribbon.from, ribbon.to, ribbon.category, name));
      size_t told = 0;  // inside the bar
      for (const Stretch& stretch : by_name[name]) {
        append_row({stretch.from, stretch.to});
        const double from = std::max(stretch.from, plan_.x.lo), to = std::min(stretch.to, plan_.x.hi);
        if (!plan_.strip || (to - from) * pixels_per_unit < 0.85 * text_width(name) + 6 || told > 60) continue;
        ++told;
        plan_.settings += fmt::format("set label {} at {:.15g}, {} center front noenhanced font ',11' tc rgb '{}'\n",
                                      gp_string(name), 0.5 * (from + to), low + 0.48, kInk);
      }
      end_block();
      add(block,
          fmt::format("using (0.5*($1+$2)):({0}):1:2:({0}):({1}) with boxxyerror fs solid noborder lc rgb {2}", lower,
                      upper, gp_string(ribbon_colour(name, colour))),
          "");
      if (explained_.insert("ribbon " + name).second && told == 0) add_swatch(name, ribbon_colour(name, colour));
    }
  }

  void operator()(const Circle& c) {
    plan_.elements.push_back(
        {fmt::format("sample [u=0:2*pi] '+' using ({:.15g}+{:.15g}*cos(u)):({:.15g}+{:.15g}*sin(u)) "
                     "with lines lw 1 lc rgb {}",
                     c.x, c.radius, c.y, c.radius, gp_string(kGrey)),
         ""});
  }

  void operator()(const Verticals& verticals) {
    const size_t most = 200;
    std::vector<double> shares;
    for (const double x : verticals.at) shares.push_back(share_of(x, plan_.x.lo, plan_.x.hi, plan_.panel->x.log));
    const std::vector<int> rows = label_rows(shares);
    for (size_t i = 0; i < std::min(most, verticals.at.size()); ++i) {
      const double x = verticals.at[i];
      if (!drawable(x, plan_.panel->x.log) || x < plan_.x.lo || x > plan_.x.hi) continue;
      plan_.settings +=
          fmt::format("set arrow from {0:.15g}, graph 0 to {0:.15g}, graph 1 nohead back lw 0.9 dt 2 lc rgb {1}\n", x,
                      gp_string(kGrey));
      if (i >= verticals.labels.size() || verticals.labels[i].empty()) continue;
      plan_.settings += fmt::format(
          "set label {} at {:.15g}, graph {:.3f} right rotate by 90 offset character -0.7,0 "
          "noenhanced front font ',11' tc rgb {}\n",
          gp_string(shortened(verticals.labels[i], 40)), x, 0.985 - kLabelRow * rows[i], gp_string(kGrey));
    }
  }

 private:
  std::string begin_block(std::string_view kind, std::string_view meaning) {
    const std::string name = fmt::format("{}_{}{}", plan_.name, kind, ++blocks_);
    data_ += fmt::format("# {}\n# {}\n", comment(meaning), name);
    return name;
  }
  void end_block() { data_ += "\n\n"; }

  void append_row(std::initializer_list<double> numbers) {
    for (const double v : numbers) {
      fmt::format_to(std::back_inserter(data_), "{:.9g} ", v);
    }
    data_.back() = '\n';
  }

  void add(const std::string& block, std::string_view how, std::string_view title) {
    plan_.elements.push_back({fmt::format("{} index '{}' {}", file_, block, how), std::string(title)});
  }

  void add_swatch(std::string_view title, std::string_view colour) {
    plan_.elements.push_back(
        {fmt::format("NaN with points pt 5 ps 1.3 lc rgb {}", gp_string(colour)), std::string(title)});
  }

  void add_kind(const Points& points, const std::string& kind, const std::vector<size_t>& rows, size_t index) {
    const bool first = explained_.insert("kind " + kind).second;
    add_points(points, rows, mark_style(kind, index), first ? kind : "");
  }

  /// Points of the given rows; of all rows if there are none given.
  void add_points(const Points& points, const std::vector<size_t>& rows, const MarkStyle& style,
                  std::string_view title) {
    const Table& table = find_table(tables_, points.table);
    const auto chosen = [&rows](const Numbers& all) {
      if (rows.empty()) return all;
      Numbers some;
      for (const size_t i : rows) some.push_back(all[i]);
      return some;
    };
    const Numbers x = chosen(table.numbers(points.x)), y = chosen(table.numbers(points.y));
    const std::vector<size_t> kept = thin_points(x, y, plan_.map(), 1.5, 1500);
    if (kept.empty()) return;
    const std::string block = begin_block("points", fmt::format("{} over {}", points.y, points.x));
    for (const size_t i : kept) append_row({x[i], y[i]});
    end_block();
    add(block,
        fmt::format("using 1:2 with points pt {} ps {} lw 1.2 lc rgb {}", style.shape, style.size,
                    gp_string(style.colour)),
        title);
  }

  /// `crowd` is how many dots the layer has in all: those of one picture are of one size.
  void add_dots(const Dots& dots, const Numbers& x, const Numbers& y, const std::vector<size_t>& rows, size_t crowd,
                std::string_view colour, std::string_view title) {
    plan_.box = true;
    if (rows.empty()) return;
    const std::string block = begin_block("dots", fmt::format("{} over {}", dots.y, dots.x));
    for (const size_t i : rows) append_row({x[i], y[i]});
    end_block();
    // Few dots may be larger; many would run into each other. One pixel shows its darkness, but hardly its colour.
    const size_t most_round = dots.colour.empty() ? 3000 : 12000;
    const char* size = crowd <= 300    ? "points pt 7 ps 0.4"
                       : crowd <= 2000 ? "points pt 7 ps 0.22"
                                       : "points pt 7 ps 0.14";
    add(block, fmt::format("using 1:2 with {} lc rgb {}", crowd <= most_round ? size : "dots", colour), "");
    if (!title.empty()) {
      plan_.elements.push_back({fmt::format("NaN with points pt 7 ps 0.6 lc rgb {}", colour), std::string(title)});
    }
  }

  /// Too many dots to be drawn one by one: an image whose pixels are darker where more of them fall.
  void add_density(const Dots& dots, const Numbers& x, const Numbers& y) {
    plan_.box = true;
    const double fine = 1.5;  // cells per pixel
    PixelMap map = plan_.map();
    size_t nx = static_cast<size_t>(fine * plan_.width), ny = static_cast<size_t>(fine * plan_.height);
    // Values of a swept parameter get a column each, lest they and the pixels make stripes.
    if (const auto [n, edges] = grid_axis(x); n < nx && edges.lo >= plan_.x.lo && edges.hi <= plan_.x.hi) {
      nx = n;
      map.x_from = edges.lo;
      map.x_to = edges.hi;
    }
    const std::vector<unsigned> counts = count_points(x, y, map, nx, ny);
    const double top = std::log1p(*std::max_element(counts.begin(), counts.end()));
    const std::string block = begin_block("density", fmt::format("{} over {}, a matrix of opacity", dots.y, dots.x));
    for (size_t j = 0; j < ny; ++j) {
      for (size_t i = 0; i < nx; ++i) {
        const unsigned c = counts[j * nx + i];
        data_ += fmt::format_int(c == 0 ? 0 : static_cast<int>(115 + 140 * std::log1p(c) / top)).c_str();
        data_ += i + 1 < nx ? ' ' : '\n';
      }
    }
    end_block();
    add(block, matrix_using({map.x_from, map.x_to}, plan_.y, nx, ny) + ":(26):(26):(64):3 with rgbalpha", "");
    if (!dots.label.empty()) {
      plan_.elements.push_back(
          {fmt::format("NaN with points pt 7 ps 0.6 lc rgb {}", gp_string(kDotColour)), dots.label});
    }
  }

  /// Places column and row numbers of a matrix at the middle of their cells.
  static std::string matrix_using(const Range& x, const Range& y, size_t nx, size_t ny) {
    const double dx = (x.hi - x.lo) / static_cast<double>(nx), dy = (y.hi - y.lo) / static_cast<double>(ny);
    return fmt::format("matrix using ({:.15g}+$1*{:.15g}):({:.15g}+$2*{:.15g})", x.lo + 0.5 * dx, dx, y.lo + 0.5 * dy,
                       dy);
  }

  static std::string category_colour(const std::vector<Category>& categories, size_t i) {
    return categories[i].colour.empty() ? softened(series_colour(i)) : one_line(categories[i].colour);
  }

  /// Values become places in the list; what is of no category becomes -1, drawn white.
  void number_categories(const std::vector<Category>& categories, std::vector<double>& cells) {
    std::map<double, double> place;
    for (size_t i = 0; i < categories.size(); ++i) place.emplace(categories[i].value, static_cast<double>(i));
    for (double& v : cells) {
      const auto found = std::isnan(v) ? place.end() : place.find(v);
      v = found == place.end() ? -1 : found->second;
    }
    std::string stops = "-1 '#ffffff'";
    for (size_t i = 0; i < categories.size(); ++i) {
      stops += fmt::format(", {} {}", i, gp_string(category_colour(categories, i)));
    }
    plan_.settings += fmt::format("set palette maxcolors {} defined ({})\nset cbrange [-1.5:{}.5]\n",
                                  categories.size() + 1, stops, static_cast<long>(categories.size()) - 1);
  }

  void add_categories(const std::vector<Category>& categories) {
    const size_t most = 16;
    for (size_t i = 0; i < std::min(most, categories.size()); ++i) {
      add_swatch(categories[i].label, category_colour(categories, i));
    }
    if (categories.size() > most) add_swatch(fmt::format("and {} more", categories.size() - most), "#ffffff");
  }

  void use_bar(std::string_view label, bool about_zero) {
    plan_.bar = true;
    plan_.bar_about_zero = about_zero;
    plan_.bar_label = label;
  }

  std::span<const Table> tables_;
  std::string file_;
  PanelPlan& plan_;
  std::set<std::string>& explained_;  ///< kinds and modes that the legend of some panel names already
  std::string& data_;
  size_t bars_;  ///< of a strip
  size_t lines_ = 0, blocks_ = 0, ribbons_ = 0;
  std::map<std::string, size_t> ribbon_colours_;
};

}  // namespace

bool is_strip(const Panel& panel) {
  return !panel.layers.empty() && std::all_of(panel.layers.begin(), panel.layers.end(),
                                              [](const Layer& layer) { return std::holds_alternative<Ribbon>(layer); });
}

bool has_heat(const Panel& panel) {
  return std::any_of(panel.layers.begin(), panel.layers.end(),
                     [](const Layer& layer) { return std::holds_alternative<Heat>(layer); });
}

bool is_space(const Panel& panel) {
  return std::any_of(panel.layers.begin(), panel.layers.end(),
                     [](const Layer& layer) { return std::holds_alternative<Curve>(layer); });
}

Extent extent_of(const Panel& panel, std::span<const Table> tables) {
  ExtentOf extent{tables, panel};
  for (const Layer& layer : panel.layers) std::visit(extent, layer);
  return {extent.x, extent.y};
}

void write_layers(PanelPlan& plan, std::span<const Table> tables, const std::string& data_file,
                  std::set<std::string>& explained, std::string& data) {
  LayerWriter writer(tables, data_file, plan, explained, data);
  for (const Layer& layer : plan.panel->layers) std::visit(writer, layer);
}

}  // namespace saltus
