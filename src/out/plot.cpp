#include "out/plot.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "out/plot_layers.hpp"
#include "out/plot_range.hpp"
#include "out/plot_style.hpp"
#include "out/process.hpp"
#include "out/text.hpp"
#include "out/write.hpp"

namespace saltus {
namespace fs = std::filesystem;
namespace {

struct StackPlan {
  const Stack* stack = nullptr;
  std::vector<PanelPlan> panels;
  double left = 0, width = 0;            ///< on the page, labels included
  double left_room = 0, right_room = 0;  ///< for labels, beside the frames
};

struct Page {
  double width = 0, height = 0, head = 0;
  std::vector<std::string> caption;
  std::vector<StackPlan> stacks;
};

/// The frames' sizes, before anything is known of labels and legends.
Page plan_sizes(const Figure& figure) {
  Page page;
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

/// Room for numbers and labels on the left and right of a stack's frames, the same for all of them: so they align.
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

/// Room below a frame: numbers and a label, unless the panel below shows them.
double foot(const StackPlan& plan, size_t i) {
  const bool last = i + 1 == plan.panels.size();
  if (plan.stack->share_x && !last) return plan.panels[i + 1].strip ? 2 : 8;
  return plan.panels[i].panel->x.label.empty() ? 30 : 52;
}

/// Where each frame stands. Stacks end at the same height: the lower ones stretch their full panels.
void plan_places(Page& page) {
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

/// Widens one of the ranges until units are equally long on both axes.
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

const char* picture_name(Picture picture) {
  switch (picture) {
    case Picture::svg: return "svg";
    case Picture::png: return "png";
    case Picture::pdf: return "pdf";
  }
  return "svg";
}

std::string script_head(const Figure& figure, const Page& page, const DrawOptions& options) {
  const long w = std::lround(page.width), h = std::lround(page.height);
  std::string s = fmt::format(
      "# {title}\n"
      "# A gnuplot script, to be edited freely. It reads {stem}.dat beside it; each block there has a name.\n"
      "#   gnuplot {stem}.gp                       makes {stem}.{format}\n"
      "#   gnuplot -e \"format='pdf'\" {stem}.gp     makes {stem}.pdf (or svg, png)\n\n"
      "if (!exists('format')) format = '{format}'\n"
      "if (!exists('output')) output = {stem_quoted} . '.' . format\n"
      "font = 'sans-serif'\n\n"
      "if (format eq 'svg') set terminal svg size {w},{h} font font.',{f}' background '#ffffff' linewidth 1\n"
      "if (format eq 'png') set terminal pngcairo size {w2},{h2} font font.',{f}' fontscale 1.5 linewidth 2 "
      "pointscale 2.8 background '#ffffff'\n"
      "if (format eq 'pdf') set terminal pdfcairo size {wi:.3f}in,{hi:.3f}in font font.',{f}' fontscale 0.6 linewidth "
      "0.6 pointscale 0.6 background '#ffffff'\n"
      "set encoding utf8\n"
      "set output output\n\n"
      "# Thin frame and grid, ticks outside, names written as they are ('enhanced' would give x_1 a subscript).\n"
      "set border 3 lw 0.8 lc rgb '{ink}'\n"
      "set tics out nomirror scale 0.5 tc rgb '{ink}'\n"
      "set grid back lt 1 lw 0.5 lc rgb '#e4e4e4'\n"
      "set style fill solid noborder\n"
      "set samples 361\n\n",
      fmt::arg("title", comment(figure.title)), fmt::arg("stem", comment(options.stem)),
      fmt::arg("stem_quoted", gp_string(options.stem)), fmt::arg("format", picture_name(options.picture)),
      fmt::arg("w", w), fmt::arg("h", h), fmt::arg("w2", 2 * w), fmt::arg("h2", 2 * h),
      fmt::arg("wi", page.width / 120), fmt::arg("hi", page.height / 120), fmt::arg("f", kFont), fmt::arg("ink", kInk));
  return s;
}

std::string page_title(const Figure& figure, const Page& page) {
  std::string s;
  const double left = page.stacks.empty() ? 20 : page.stacks.front().left + page.stacks.front().left_room;
  const auto put = [&](std::string_view text, double y, std::string_view font, std::string_view colour) {
    s += fmt::format("set label {} at screen {:.5f}, screen {:.5f} left noenhanced font {} tc rgb {}\n",
                     gp_string(text), left / page.width, 1 - y / page.height, gp_string(font), gp_string(colour));
  };
  double y = 20;
  if (!figure.title.empty()) {
    put(shortened(figure.title, static_cast<size_t>((page.width - left) / 10)), y, ",17", "#000000");
    y += 24;
  }
  for (const std::string& line : page.caption) {
    put(line, y, ",12", kGrey);
    y += 17;
  }
  return s;
}

std::string axis_commands(char axis, const Axis& a, const Range& r, bool numbers, bool label) {
  std::string s = fmt::format("set {}range [{:.15g}:{:.15g}]\n", axis, r.lo, r.hi);
  if (a.log) s += fmt::format("set logscale {0}\nset format {0} '10^{{%T}}'\n", axis);
  if (!a.log && numbers && digits(r) > 6) s += fmt::format("set format {} '%.{}g'\n", axis, digits(r));
  if (!numbers) s += fmt::format("set format {} ''\n", axis);
  if (label && !a.label.empty())
    s += fmt::format("set {}label {} noenhanced offset {}\n", axis, gp_string(shortened(a.label, 80)),
                     axis == 'x' ? "0,0.5" : "1.2,0");
  return s;
}

/// A limit of an axis for gnuplot; what is not given comes from the data.
std::string limit(double v) { return std::isnan(v) ? "*" : fmt::format("{:.15g}", v); }

std::string panel_commands(const Page& page, const StackPlan& stack, size_t i) {
  const PanelPlan& p = stack.panels[i];
  const bool bottom = !stack.stack->share_x || i + 1 == stack.panels.size();
  const auto sx = [&](double x) { return x / page.width; };
  const auto sy = [&](double y) { return 1 - y / page.height; };

  std::string s = fmt::format("# ---- {}{}\n", p.name, p.panel->title.empty() ? "" : ": " + comment(p.panel->title));
  s += fmt::format("set lmargin at screen {:.5f}; set rmargin at screen {:.5f}\n", sx(p.left), sx(p.left + p.width));
  s += fmt::format("set tmargin at screen {:.5f}; set bmargin at screen {:.5f}\n", sy(p.top), sy(p.top + p.height));
  s += axis_commands('x', p.panel->x, p.x, bottom, bottom);
  if (p.strip) {
    std::string tics;
    const size_t count = p.panel->layers.size();
    std::vector<std::string> labels;
    for (const Layer& layer : p.panel->layers) labels.push_back(std::get<Ribbon>(layer).label);
    labels = distinct(labels, kBarLabel);
    for (size_t k = 0; k < count; ++k) {
      if (labels[k].empty()) continue;
      tics += fmt::format("{}{} {}.5", tics.empty() ? "" : ", ", gp_string(labels[k]), count - k - 1);
    }
    s += fmt::format("set yrange [0:{}]\nunset grid\nset border 1\n", count);
    s += tics.empty() ? "unset ytics\n" : fmt::format("set ytics ({}) scale 0 noenhanced\n", tics);
  } else {
    s += axis_commands('y', p.panel->y, p.y, true, true);
    if (p.box || p.panel->equal) s += "set border 15\n";
  }
  if (p.legend_rows > 0) {
    const bool lines = std::any_of(p.elements.begin(), p.elements.end(), [](const Element& e) {
      return !e.title.empty() && e.what.find("with lines") != e.what.npos;
    });
    s += fmt::format(
        "set key at screen {:.5f}, screen {:.5f} right bottom horizontal maxcols {} Left reverse samplen {} "
        "width {} spacing 1.1 noenhanced font ',12' tc rgb '{}'\n",
        sx(p.left + p.width), sy(p.top - 5), p.legend_columns, lines ? 1.4 : 0.4, lines ? 1.0 : 0.5, kInk);
  } else {
    s += "unset key\n";
  }
  if (!p.panel->title.empty()) {
    const double y = p.top - 12 - (p.title_row ? 19 * p.legend_rows : 0);
    s += fmt::format("set label {} at screen {:.5f}, screen {:.5f} left noenhanced font ',14' tc rgb '{}'\n",
                     gp_string(shortened(p.panel->title, static_cast<size_t>(p.width / 8))), sx(p.left), sy(y), kInk);
  }
  if (p.bar) {
    Range bar = shown(p.bar_range, {}, 0);
    if (p.bar_about_zero) bar.add(0);
    s += p.bar_about_zero ? palette_about_zero(bar.lo, bar.hi) : kViridis;
    s += fmt::format("set cbrange [{:.15g}:{:.15g}]\nset cblabel {} noenhanced offset 0.5,0\n", bar.lo, bar.hi,
                     gp_string(p.bar_label));
    s += fmt::format("set colorbox user origin screen {:.5f}, screen {:.5f} size screen {:.5f}, screen {:.5f}\n",
                     sx(p.left + p.width + 10), sy(p.top + p.height), 14 / page.width, p.height / page.height);
  } else {
    s += "unset colorbox\n";
  }
  if (is_space(*p.panel)) {
    s += fmt::format(
        "set zlabel {} noenhanced rotate\nset view 62, 34, 0.7, 1.1\nset xyplane 0\nset border 4095\nset ztics\n",
        gp_string(shortened(p.panel->z.label, 80)));
    s += fmt::format("set zrange [{}:{}]\n", limit(p.panel->z.from), limit(p.panel->z.to));
  }
  s += p.settings;
  s += is_space(*p.panel) ? "splot " : "plot ";
  std::vector<std::string> titles;
  for (const Element& e : p.elements) titles.push_back(e.title);
  titles = distinct(titles, 40);
  for (size_t k = 0; k < p.elements.size(); ++k) {
    s += fmt::format("{}{} {}", k > 0 ? ", \\\n     " : "", p.elements[k].what,
                     titles[k].empty() ? "notitle" : "title " + gp_string(titles[k]));
  }
  if (p.elements.empty()) {
    s += "NaN notitle";
    s.insert(s.rfind(is_space(*p.panel) ? "splot " : "plot "),
             fmt::format("set label 'no data' at graph 0.5, graph 0.5 center tc rgb '{}'\n", kGrey));
  }
  return s + "\n\n";
}

/// Takes back what belongs to one panel.
const char* const kBetweenPanels =
    "unset label; unset arrow; unset logscale; unset xlabel; unset ylabel; unset zlabel; unset cblabel; unset format\n"
    "set border 3; set ytics autofreq scale 0.5; set grid back lt 1 lw 0.5 lc rgb '#e4e4e4'\n\n";

std::string first_lines(const std::string& text, size_t most) {
  std::string out;
  size_t lines = 0;
  for (const char c : text) {
    if (c == '\n' && (out.empty() || out.back() == '\n')) continue;
    if (c == '\n' && ++lines == most) break;
    out += c;
  }
  while (!out.empty() && (out.back() == '\n' || out.back() == ' ')) out.pop_back();
  return valid_utf8(out);
}

struct NoPicture {
  std::string why;
};

/// Runs a program that is to write the picture `path`; gives the trouble, or "". `arguments` are told the name to use.
template <class Arguments>
std::string make_picture(const fs::path& path, const DrawOptions& options, const Arguments& arguments) {
  try {
    write_atomically(path, [&](const fs::path& temporary) {
      const std::vector<std::string> command = arguments(temporary.filename().string());
      const std::string& program = command.front();
      const ProcessResult result = run_program(command, path.parent_path(), options.seconds);
      if (!result.started) throw NoPicture{program + " is not installed"};
      if (result.timed_out) throw NoPicture{fmt::format("{} took longer than {} s", program, options.seconds)};
      if (!result.ok()) throw NoPicture{fmt::format("{} failed: {}", program, first_lines(result.output, 4))};
      std::error_code missing;
      if (fs::file_size(temporary, missing) == 0 || missing) throw NoPicture{program + " wrote nothing"};
    });
  } catch (const NoPicture& no) {
    return no.why;
  }
  return "";
}

std::string run_gnuplot(const fs::path& path, const DrawOptions& options, Picture picture) {
  return make_picture(path, options, [&](const std::string& output) {
    return std::vector<std::string>{"gnuplot", "-d", "-e",
                                    fmt::format("format='{}'; output={}", picture_name(picture), gp_string(output)),
                                    "./" + options.stem + ".gp"};
  });
}

/// For a gnuplot without cairo: by way of SVG.
std::string convert_svg(const fs::path& path, const DrawOptions& options, Picture picture) {
  const fs::path svg = fs::path(path).replace_extension(".svg");
  if (const std::string trouble = run_gnuplot(svg, options, Picture::svg); !trouble.empty()) return trouble;
  return make_picture(path, options, [&](const std::string& output) {
    return std::vector<std::string>{"rsvg-convert",        "-z", "2",    "-f",
                                    picture_name(picture), "-o", output, "./" + svg.filename().string()};
  });
}

}  // namespace

Script make_script(const Figure& figure, std::span<const Table> tables, const DrawOptions& options) {
  check(figure, tables);
  Script script;
  Figure drawn = figure;
  if (drawn.stacks.empty()) drawn.stacks = {Stack{.panels = {Panel{}}}};

  Page page = plan_sizes(drawn);
  page.caption = wrap(one_line(drawn.caption), static_cast<size_t>((page.width - 100) / 6.8), 4);
  page.head = (drawn.title.empty() ? 6 : 36) + 18.0 * static_cast<double>(page.caption.size());
  std::set<std::string> explained;
  for (StackPlan& stack : page.stacks) {
    plan_ranges(stack, tables);
    for (PanelPlan& p : stack.panels) write_layers(p, tables, options.stem + ".dat", explained, script.data);
    plan_sides(stack);
    for (PanelPlan& p : stack.panels) plan_legend(p);
  }
  plan_places(page);

  script.gnuplot = script_head(drawn, page, options) + "set multiplot\n" + page_title(drawn, page) + "\n";
  bool first = true;
  for (StackPlan& stack : page.stacks) {
    for (size_t i = 0; i < stack.panels.size(); ++i) {
      make_equal(stack.panels[i]);
      if (!first) script.gnuplot += kBetweenPanels;
      script.gnuplot += panel_commands(page, stack, i);
      first = false;
    }
  }
  script.gnuplot += "unset multiplot\nunset output\n";
  return script;
}

Drawing draw(const Figure& figure, std::span<const Table> tables, const fs::path& folder, const DrawOptions& options) {
  const Script script = make_script(figure, tables, options);
  Drawing drawing{.script = folder / (options.stem + ".gp"), .picture = {}, .trouble = {}};
  write_text(folder / (options.stem + ".dat"), script.data);
  write_text(drawing.script, script.gnuplot);

  const fs::path picture = folder / fmt::format("{}.{}", options.stem, picture_name(options.picture));
  std::string trouble = run_gnuplot(picture, options, options.picture);
  if (!trouble.empty() && options.picture != Picture::svg) {
    const std::string second = convert_svg(picture, options, options.picture);
    trouble = second.empty() ? "" : trouble;
  }
  if (trouble.empty()) {
    drawing.picture = picture;
  } else {
    drawing.trouble =
        fmt::format("no picture: {}; the data are kept, and '{}' can be run again", trouble, drawing.script.string());
  }
  return drawing;
}

}  // namespace saltus
