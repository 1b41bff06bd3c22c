#include "out/plot.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "out/plot_layers.hpp"
#include "out/plot_page.hpp"
#include "out/plot_range.hpp"
#include "out/plot_style.hpp"
#include "out/process.hpp"
#include "out/svg.hpp"
#include "out/text.hpp"
#include "out/write.hpp"

namespace saltus {
namespace fs = std::filesystem;
namespace {

const char* picture_name(Picture picture) {
  switch (picture) {
    case Picture::svg: return "svg";
    case Picture::png: return "png";
    case Picture::pdf: return "pdf";
  }
  return "svg";
}

std::string script_head(const Figure& figure, const PlotPage& page, const DrawOptions& options) {
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

std::string page_title(const Figure& figure, const PlotPage& page) {
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

std::string panel_commands(const PlotPage& page, const StackPlan& stack, size_t i) {
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

const char* const no_gnuplot = "gnuplot is not installed";
const char* const no_converter = "rsvg-convert is not installed";

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

/// For a gnuplot without cairo, and where there is none: by way of SVG.
std::string convert_svg(const fs::path& svg, const fs::path& path, const DrawOptions& options, Picture picture) {
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

  std::set<std::string> explained;
  PlotPage page = plan_page(
      drawn, tables, [&](PanelPlan& p) { write_layers(p, tables, options.stem + ".dat", explained, script.data); });

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
  drawing.trouble = run_gnuplot(picture, options, options.picture);
  const fs::path svg = folder / (options.stem + ".svg");
  if (drawing.trouble == no_gnuplot) {
    write_text(svg, draw_svg(figure, tables));
    drawing.trouble = options.picture == Picture::svg ? "" : convert_svg(svg, picture, options, options.picture);
    if (drawing.trouble == no_converter) drawing.trouble = "gnuplot is not installed, nor is rsvg-convert";
  } else if (!drawing.trouble.empty() && options.picture != Picture::svg) {
    if (run_gnuplot(svg, options, Picture::svg).empty() && convert_svg(svg, picture, options, options.picture).empty())
      drawing.trouble.clear();
  }
  if (drawing.trouble.empty()) drawing.picture = picture;
  return drawing;
}

}  // namespace saltus
