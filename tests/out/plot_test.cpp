#include "out/plot.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <numbers>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "../folder.hpp"
#include "base/error.hpp"
#include "out/plot_style.hpp"
#include "out/process.hpp"
#include "out/svg.hpp"
#include "out/write.hpp"

namespace saltus {
namespace {

namespace fs = std::filesystem;
const double nan = std::numeric_limits<double>::quiet_NaN();
const double inf = std::numeric_limits<double>::infinity();

/// The figure is drawn without complaint, and the picture is well-formed XML; so is that of the writer without gnuplot.
std::string expect_svg(const Figure& figure, const std::vector<Table>& tables, const fs::path& folder) {
  const Drawing drawing = draw(figure, tables, folder);
  EXPECT_EQ(drawing.trouble, "");
  EXPECT_EQ(drawing.picture, folder / "plot.svg");
  write_text(folder / "own.svg", draw_svg(figure, tables));
  const ProcessResult parsed =
      run_program({"/usr/bin/python3", "-c", "import sys, xml.dom.minidom as m; [m.parse(f) for f in sys.argv[1:]]",
                   "plot.svg", "own.svg"},
                  folder, 60);
  EXPECT_TRUE(parsed.ok()) << parsed.output;
  const std::string svg = content(drawing.picture);
  EXPECT_LT(svg.size(), 2'000'000u);
  for (const auto& entry : fs::directory_iterator(folder)) {
    EXPECT_NE(entry.path().extension(), ".part") << "left behind";
  }
  return svg;
}

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}

Figure one_panel(std::vector<Layer> layers) {
  return Figure{
      .title = "One panel",
      .stacks = {Stack{.panels = {Panel{.x = {.label = "x"}, .y = {.label = "y"}, .layers = std::move(layers)}}}}};
}

// gnuplot takes two quotes side by side for an empty string in some places; braces, backslashes and backquotes are
// nothing special either.
TEST(Plot, TakesAnyNameAsItIs) {
  for (const std::string name : {"'quoted' model", "a 'b' and 'c'", "it''s", "''", "'", "ends with '",
                                 "\\n {x} %d \"q\"", "'`date` \\101 \"'", "tab\there"}) {
    Table data;
    data.add_numbers("x").add_numbers("y");
    const double rows[2][2] = {{0, 0}, {1, 1}};
    for (const auto& row : rows) data.append(row);
    Figure figure =
        one_panel({Line{.x = "x", .y = "y", .label = name}, Line{.x = "x", .y = "x", .label = "other " + name}});
    figure.title = name;
    figure.stacks[0].panels[0].x.label = name;
    const ScratchFolder folder;
    expect_svg(figure, {data}, folder.path);
  }
}

/// A block on a moving belt, made up: sticks while v = 0.4, then slips along an arc; one jump of y each period.
std::vector<Table> stick_slip() {
  Table data, events("events"), modes("modes");
  data.add_numbers("t").add_numbers("y").add_numbers("v");
  events.add_numbers("t").add_texts("kind").add_numbers("y").add_numbers("v");
  modes.add_numbers("from").add_numbers("to").add_texts("mode");
  const double belt = 0.4, stick = 3.2, slip = 2.6;
  double t = 0;
  for (int period = 0; period < 8; ++period) {
    double y = -0.64;
    for (int i = 0; i <= 40; ++i) {
      const double s = stick * i / 40;
      const double row[] = {t + s, y + belt * s, belt};
      data.append(row);
    }
    modes.append({t, t + stick, "0"});
    t += stick;
    events.append({t, "leave", y + belt * stick, belt});
    for (int i = 0; i <= 60; ++i) {
      const double a = std::numbers::pi * i / 60;
      const double row[] = {t + slip * i / 60, 0.64 * std::cos(a), belt - 1.1 * std::sin(a)};
      data.append(row);
    }
    const double third = slip / 3;
    modes.append({t, t + third, "-"});
    modes.append({t + third, t + 2 * third, "+"});
    modes.append({t + 2 * third, t + slip, "-"});
    events.append({t + third, "cross", 0.32, belt - 1.1 * std::sin(std::numbers::pi / 3)});
    events.append({t + 2 * third, "cross", -0.32, belt - 1.1 * std::sin(std::numbers::pi / 3)});
    t += slip;
    if (period % 2 == 1) {
      events.append({t, "impact", -0.64, belt});
      data.append_gap();
    } else {
      events.append({t, "slide", -0.64, belt});
    }
  }
  return {data, events, modes};
}

Figure stick_slip_figure() {
  const auto over_time = [](const std::string& y) {
    return Panel{.x = {.label = "t"},
                 .y = {.label = y},
                 .layers = {Line{.x = "t", .y = y}, Points{.table = "events", .x = "t", .y = y, .kind = "kind"}}};
  };
  return Figure{
      .title = "Block on a belt_{1}",
      .caption = "omega = 0.3333333333333333, F_s = 1.2, F_d = 0.8, belt = 0.4; event-driven engine, tolerance 1e-10",
      .stacks = {Stack{.panels = {over_time("y"), over_time("v"),
                                  Panel{.x = {.label = "t"}, .layers = {Ribbon{.label = "mode"}}}},
                       .share_x = true,
                       .width = 1.35},
                 Stack{.panels = {Panel{.x = {.label = "y"},
                                        .y = {.label = "v"},
                                        .layers = {Line{.x = "y", .y = "v"},
                                                   Points{.table = "events", .x = "y", .y = "v", .kind = "kind"}}}}}}};
}

TEST(Plot, DrawsTimeSeriesWithEventsModesAndPhasePlane) {
  const fs::path folder = fresh_folder();
  const std::string svg = expect_svg(stick_slip_figure(), stick_slip(), folder);
  for (const char* text : {"Block on a belt_{1}", "F_s = 1.2", ">slide<", ">leave<", ">impact<", ">cross<", ">mode<"}) {
    EXPECT_NE(svg.find(text), svg.npos) << text;
  }
  EXPECT_EQ(count(svg, "<text>slide</text>"), 1u) << "a kind is explained once for the whole figure";

  const std::string script = content(folder / "plot.gp");
  EXPECT_NE(script.find("'plot.dat' index 'panel1_line1' using 1:2 with lines"), script.npos);
  EXPECT_EQ(script.find(folder.string()), script.npos) << "paths are relative";
  EXPECT_EQ(count(script, "set xlabel 't'"), 1u) << "only the lowest panel of a shared axis is labelled";
}

TEST(Plot, PanelsThatShareTimeHaveTheSameEdgesAndRange) {
  const Script script = make_script(stick_slip_figure(), stick_slip());
  std::vector<std::string> margins, ranges;
  std::istringstream in(script.gnuplot);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("set lmargin")) margins.push_back(line);
    if (line.starts_with("set xrange")) ranges.push_back(line);
  }
  ASSERT_EQ(margins.size(), 4u);
  ASSERT_EQ(ranges.size(), 4u);
  EXPECT_EQ(margins[0], margins[1]);
  EXPECT_EQ(margins[1], margins[2]);
  EXPECT_NE(margins[2], margins[3]);
  EXPECT_EQ(ranges[0], ranges[1]);
  EXPECT_EQ(ranges[1], ranges[2]);
}

TEST(Plot, AJumpIsAGapNotALine) {
  Table data;
  data.add_numbers("t", {0, 1, nan, 1, 2}).add_numbers("v", {0, 1, nan, -1, 0});
  const std::vector<Table> tables = {data};
  const Script script = make_script(one_panel({Line{.x = "t", .y = "v"}}), tables);
  EXPECT_NE(script.data.find("0 0\n1 1\n\n1 -1\n2 0\n"), script.data.npos) << script.data;
}

/// The logistic map: every dot of its attractor.
Table logistic(int columns, int dots) {
  Table data;
  data.add_numbers("a").add_numbers("x").add_numbers("lambda");
  for (int i = 0; i < columns; ++i) {
    const double a = 2.8 + 1.2 * i / (columns - 1);
    double x = 0.4, lambda = 0;
    for (int k = 0; k < 300; ++k) x = a * x * (1 - x);
    for (int k = 0; k < dots; ++k) {
      x = a * x * (1 - x);
      lambda += std::log(std::abs(a * (1 - 2 * x))) / dots;
    }
    for (int k = 0; k < dots; ++k) {
      x = a * x * (1 - x);
      const double row[] = {a, x, lambda};
      data.append(row);
    }
  }
  return data;
}

TEST(Plot, DrawsABifurcationDiagramOfDots) {
  const std::vector<Table> tables = {logistic(400, 40)};
  Figure figure =
      one_panel({Dots{.x = "a", .y = "x"}, Verticals{.at = {3, 1 + std::sqrt(6)}, .labels = {"period 2", "period 4"}}});
  figure.title = "Logistic map";
  figure.stacks[0].panels[0].x.label = "a";
  const std::string svg = expect_svg(figure, tables, fresh_folder());
  EXPECT_GT(count(svg, "#gpDot"), 3000u);
  EXPECT_NE(svg.find("period 2"), svg.npos);
}

TEST(Plot, ManyDotsBecomeAnImageOfTheirDensity) {
  const std::vector<Table> tables = {logistic(900, 1000)};
  const std::string svg =
      expect_svg(one_panel({Dots{.x = "a", .y = "x", .label = "attractor"}}), tables, fresh_folder());
  EXPECT_EQ(count(svg, "<image"), 1u);
  EXPECT_NE(svg.find("attractor"), svg.npos);
}

TEST(Plot, DotsTakeColourFromANumber) {
  const std::vector<Table> tables = {logistic(300, 30)};
  const std::string svg = expect_svg(one_panel({Dots{.x = "a", .y = "x", .colour = "lambda"}}), tables, fresh_folder());
  EXPECT_NE(svg.find("lambda"), svg.npos) << "the colour bar has a label";
}

/// Basins of Newton's iteration for z^3 = 1.
Table newton_basins(int n) {
  Table data;
  data.add_numbers("re").add_numbers("im").add_numbers("root").add_numbers("steps");
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < n; ++i) {
      const double re = -2 + 4.0 * (i + 0.5) / n, im = -2 + 4.0 * (j + 0.5) / n;
      double a = re, b = im;
      int steps = 0;
      for (; steps < 40 && std::abs(a * a * a - 3 * a * b * b - 1) + std::abs(3 * a * a * b - b * b * b) > 1e-9;
           ++steps) {
        const double c = a * a - b * b, d = 2 * a * b, m = c * c + d * d;
        const double na = 2 * a / 3 + c / (3 * m), nb = 2 * b / 3 - d / (3 * m);
        a = na;
        b = nb;
      }
      const double root = steps == 40 ? -1 : a > 0 ? 1 : b > 0 ? 2 : 3;
      const double row[] = {re, im, root, steps == 40 ? nan : steps};
      data.append(row);
    }
  }
  return data;
}

TEST(Plot, DrawsBasinsWithALegendAndAHeatMapWithABar) {
  Table roots("roots");
  roots.add_numbers("re", {1, -0.5, -0.5}).add_numbers("im", {0, std::sqrt(0.75), -std::sqrt(0.75)});
  const std::vector<Table> tables = {newton_basins(300), roots};
  const Heat basins{
      .x = "re",
      .y = "im",
      .value = "root",
      .categories = {{1, "period 1"}, {2, "period 3, left"}, {3, "period 3, right"}, {-1, "diverges", "#dddddd"}}};
  const Heat steps{.x = "re", .y = "im", .value = "steps", .label = "iterations"};
  const auto panel = [](std::string title, Heat heat) {
    return Panel{.title = title,
                 .x = {.label = "re"},
                 .y = {.label = "im"},
                 .layers = {heat, Points{.table = "roots", .x = "re", .y = "im", .label = "attractors"}}};
  };
  const Figure figure{.title = "Newton's iteration",
                      .caption = "z^3 = 1, 300 x 300 cells",
                      .stacks = {Stack{.panels = {panel("", basins)}}, Stack{.panels = {panel("Cost", steps)}}}};
  const std::string svg = expect_svg(figure, tables, fresh_folder());
  EXPECT_GE(count(svg, "<image"), 2u);
  for (const char* text : {"period 3, left", "diverges", "iterations", "Newton's iteration", "attractors"}) {
    EXPECT_NE(svg.find(text), svg.npos) << text;
  }
}

TEST(Plot, DrawsMultipliersInAUnitCircleThatIsRound) {
  Table data;
  data.add_numbers("re", {0.3, 0.3, -1.2}).add_numbers("im", {0.8, -0.8, 0});
  const std::vector<Table> tables = {data};
  Figure figure = one_panel({Circle{}, Points{.x = "re", .y = "im", .label = "multipliers"}});
  figure.stacks[0].panels[0].equal = true;
  expect_svg(figure, tables, fresh_folder());
  const Script script = make_script(figure, tables);
  double l, r, t, b, x0, x1, y0, y1, w, h;
  const auto number_after = [&](const char* what, const char* format, double* first, double* second) {
    const size_t at = script.gnuplot.find(what);
    ASSERT_NE(at, std::string::npos) << what;
    ASSERT_EQ(std::sscanf(script.gnuplot.c_str() + at, format, first, second), 2) << what;
  };
  number_after("svg size", "svg size %lf,%lf", &w, &h);
  number_after("set lmargin", "set lmargin at screen %lf; set rmargin at screen %lf", &l, &r);
  number_after("set tmargin", "set tmargin at screen %lf; set bmargin at screen %lf", &t, &b);
  number_after("set xrange", "set xrange [%lf:%lf]", &x0, &x1);
  number_after("set yrange", "set yrange [%lf:%lf]", &y0, &y1);
  EXPECT_NEAR((r - l) * w / (x1 - x0), (t - b) * h / (y1 - y0), 0.5) << "pixels per unit";
  EXPECT_LE(x0, -1.2);
  EXPECT_LE(y0, -1.0);
}

TEST(Plot, KeepsThePeaksOfAMillionPointsInAPictureOfBearableSize) {
  Table data;
  data.add_numbers("t").add_numbers("y").add_numbers("z");
  const int n = 1'000'000;
  data.reserve(n);
  for (int i = 0; i < n; ++i) {
    const double t = i * 1e-3, spike = i == 123'457 ? 3.25 : 0;
    const double row[] = {t, std::sin(50 * t) * std::cos(0.01 * t) + spike,
                          std::cos(31.4 * t) + 0.5 * std::sin(0.37 * t)};
    data.append(row);
  }
  const std::vector<Table> tables = {data};
  const Figure figure{
      .title = "A million",
      .stacks = {
          Stack{.panels = {Panel{.x = {.label = "t"}, .y = {.label = "y"}, .layers = {Line{.x = "t", .y = "y"}}},
                           Panel{.x = {.label = "t"}, .y = {.label = "z"}, .layers = {Line{.x = "t", .y = "z"}}}},
                .share_x = true},
          Stack{.panels = {Panel{.x = {.label = "y"}, .y = {.label = "z"}, .layers = {Line{.x = "y", .y = "z"}}}}}}};
  const fs::path folder = fresh_folder();
  expect_svg(figure, tables, folder);
  const std::string data_file = content(folder / "plot.dat");
  const double y = std::sin(50 * 123.457) * std::cos(0.01 * 123.457) + 3.25;
  EXPECT_NE(data_file.find(fmt::format("123.457 {:.9g}\n", y)), data_file.npos);
}

TEST(Plot, ShowsAnyNameAsItIs) {
  const std::string name = "x_1^2 {a} @b 'q' \"d\" `ls` $(ls) \\ % <&> \xC3\xA9 \xFF \n end \\";
  Table data;
  data.add_numbers(name, {1, 2, 3}).add_numbers("y", {1, 4, 9});
  Table modes("modes");
  modes.add_numbers("from", {1, 2}).add_numbers("to", {2, 3}).add_texts("mode", {name, "\"; system('touch pwned')"});
  const std::vector<Table> tables = {data, modes};
  Figure figure = one_panel({Line{.x = name, .y = "y", .label = name}, Verticals{.at = {2}, .labels = {name}}});
  figure.title = figure.caption = figure.stacks[0].panels[0].title = name;
  figure.stacks[0].panels[0].x.label = figure.stacks[0].panels[0].y.label = name;
  figure.stacks[0].panels.push_back(Panel{.layers = {Ribbon{.label = name}}});
  const fs::path folder = fresh_folder();
  const std::string svg = expect_svg(figure, tables, folder);
  EXPECT_NE(svg.find("x_1^2 {a} @b 'q' \"d\" `ls` $(ls) \\ % &lt;&amp;"), svg.npos);
  EXPECT_FALSE(fs::exists(folder / "pwned"));
}

TEST(Plot, SurvivesStrangeData) {
  const std::vector<std::pair<const char*, Numbers>> columns = {{"empty", {}},
                                                                {"one", {3}},
                                                                {"all_nan", {nan, nan, nan}},
                                                                {"constant", {7, 7, 7, 7}},
                                                                {"zero", {0, 0}},
                                                                {"huge", {-1e300, 1, 1e300, 1e308}},
                                                                {"infinite", {inf, -inf, 1, nan, 2}},
                                                                {"tiny", {1e-310, 5e-324, 0}},
                                                                {"close", {1, 1 + 1e-15, 1 - 1e-15}},
                                                                {"large", {1e149, -1e149, 5}},
                                                                {"far", {1e9, 1e9 + 1e-3, 1e9 + 2e-3}},
                                                                {"negative", {-1, -2, -3}}};
  const fs::path folder = fresh_folder();
  for (const bool log : {false, true}) {
    for (const auto& [name, values] : columns) {
      SCOPED_TRACE(fmt::format("{} log={}", name, log));
      Table data, modes("modes");
      data.add_numbers("x", values).add_numbers("y", values).add_texts("kind", Texts(values.size(), "slide"));
      modes.add_numbers("from", values).add_numbers("to", values).add_texts("mode", Texts(values.size(), "+"));
      const std::vector<Table> tables = {data, modes};
      Figure figure = one_panel({Heat{.x = "x", .y = "y", .value = "y"}, Line{.x = "x", .y = "y", .label = "line"},
                                 Points{.x = "x", .y = "y", .kind = "kind"}, Points{.x = "x", .y = "y"},
                                 Dots{.x = "x", .y = "y"}, Ribbon{}, Verticals{.at = values}});
      if (log)
        std::erase_if(figure.stacks[0].panels[0].layers,
                      [](const Layer& l) { return std::holds_alternative<Heat>(l); });
      figure.stacks[0].panels[0].x.log = figure.stacks[0].panels[0].y.log = log;
      figure.stacks[0].panels.push_back(Panel{.layers = {Ribbon{}}});
      const fs::path sub = folder / fmt::format("{}-{}", name, log);
      fs::create_directories(sub);
      expect_svg(figure, tables, sub);
    }
  }
  expect_svg(Figure{}, {}, folder);
  expect_svg(Figure{.stacks = {Stack{}}}, {}, folder);
}

TEST(Plot, LogAxesShowDecades) {
  Table data;
  data.add_numbers("n", {1, 10, 100, 1000}).add_numbers("error", {1, 1e-3, 0, 1e-9});
  const std::vector<Table> tables = {data};
  Figure figure = one_panel({Line{.x = "n", .y = "error"}, Points{.x = "n", .y = "error"}});
  figure.stacks[0].panels[0].x.log = figure.stacks[0].panels[0].y.log = true;
  expect_svg(figure, tables, fresh_folder());
  EXPECT_NE(make_script(figure, tables).gnuplot.find("set logscale y"), std::string::npos);
}

TEST(Plot, MakesPngAndPdf) {
  const fs::path folder = fresh_folder();
  const Drawing png = draw(stick_slip_figure(), stick_slip(), folder, {.picture = Picture::png});
  EXPECT_EQ(png.trouble, "");
  EXPECT_TRUE(content(folder / "plot.png").starts_with("\x89PNG"));
  const Drawing pdf = draw(stick_slip_figure(), stick_slip(), folder, {.picture = Picture::pdf});
  EXPECT_EQ(pdf.trouble, "");
  EXPECT_TRUE(content(folder / "plot.pdf").starts_with("%PDF"));
}

/// PATH for the length of a test.
struct Path {
  std::string before = std::getenv("PATH");
  explicit Path(const std::string& now) { ::setenv("PATH", now.c_str(), 1); }
  ~Path() { ::setenv("PATH", before.c_str(), 1); }
};

void make_program(const fs::path& path, const std::string& text) {
  write_text(path, text);
  fs::permissions(path, fs::perms::owner_all);
}

TEST(Plot, WithoutGnuplotDrawsSvgItself) {
  const fs::path folder = fresh_folder();
  const Path nowhere("/nonexistent");
  const Drawing drawing = draw(stick_slip_figure(), stick_slip(), folder);
  EXPECT_EQ(drawing.trouble, "");
  EXPECT_TRUE(fs::exists(folder / "plot.gp"));
  EXPECT_TRUE(content(drawing.picture).starts_with("<svg "));
}

TEST(Plot, WithoutGnuplotSaysThatOtherPicturesNeedItAndKeepsTheScript) {
  const fs::path folder = fresh_folder();
  const Path nowhere("/nonexistent");
  const Drawing drawing = draw(stick_slip_figure(), stick_slip(), folder, {.picture = Picture::png});
  EXPECT_TRUE(drawing.picture.empty());
  EXPECT_NE(drawing.trouble.find("gnuplot is not installed"), std::string::npos) << drawing.trouble;
  EXPECT_TRUE(fs::exists(folder / "plot.gp"));
}

TEST(Plot, WithoutGnuplotOtherPicturesAreConvertedFromSvg) {
  const fs::path folder = fresh_folder();
  fs::create_symlink("/usr/bin/rsvg-convert", folder / "rsvg-convert");
  const Path alone(folder.string());
  const Drawing drawing = draw(stick_slip_figure(), stick_slip(), folder, {.picture = Picture::pdf});
  EXPECT_EQ(drawing.trouble, "");
  std::ifstream picture(drawing.picture);
  std::string head(5, ' ');
  picture.read(head.data(), 5);
  EXPECT_EQ(head, "%PDF-");
}

TEST(Svg, HasALineAMarkAndARibbonForEach) {
  Table data("data"), marks("marks"), modes("modes");
  data.add_numbers("t", {0, 1, 2}).add_numbers("x", {0, 1, 0});
  marks.add_numbers("t", {1, 2}).add_numbers("x", {1, 0}).add_texts("kind", {"slide", "leave"});
  modes.add_numbers("from", {0, 1}).add_numbers("to", {1, 2}).add_texts("mode", {"> 0", "= 0"});
  const Figure figure{
      .title = "A & B < C",
      .stacks = {Stack{.panels = {Panel{.x = {.label = "t"},
                                        .y = {.label = "x"},
                                        .layers = {Line{.x = "t", .y = "x"},
                                                   Points{.table = "marks", .x = "t", .y = "x", .kind = "kind"}}},
                                  Panel{.x = {.label = "t"}, .layers = {Ribbon{.label = "v"}}}},
                       .share_x = true}}};
  const std::vector<Table> tables{data, marks, modes};
  const std::string svg = draw_svg(figure, tables);
  const auto count = [&](std::string_view word) {
    size_t n = 0;
    for (size_t at = svg.find(word); at != svg.npos; at = svg.find(word, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(count("class=\"ribbon\""), 1U);
  EXPECT_EQ(count("<title>"), 2U) << "one per event";
  EXPECT_EQ(count(">slide<"), 1U) << "in the legend";
  EXPECT_EQ(count("A &amp; B &lt; C"), 2U) << "written, and said to those who cannot see it";
  EXPECT_EQ(count("&lt; 0"), 0U);
  EXPECT_EQ(count("&gt; 0"), 1U);
}

TEST(Plot, AFailingGnuplotIsTroubleAndLeavesNoHalfPicture) {
  const fs::path folder = fresh_folder();
  make_program(folder / "gnuplot",
               "#!/bin/sh\necho half > plot.svg.tmp\necho 'line 3: undefined nonsense' >&2\nexit 1\n");
  const Path fake(folder.string());
  const Drawing drawing = draw(stick_slip_figure(), stick_slip(), folder);
  EXPECT_NE(drawing.trouble.find("undefined nonsense"), std::string::npos) << drawing.trouble;
  EXPECT_FALSE(fs::exists(folder / "plot.svg"));
}

TEST(Plot, AGnuplotThatHangsIsStopped) {
  const fs::path folder = fresh_folder();
  make_program(folder / "gnuplot", "#!/bin/sh\nexec /bin/sleep 100\n");
  const Path fake(folder.string());
  const Drawing drawing = draw(stick_slip_figure(), stick_slip(), folder, {.seconds = 0.3});
  EXPECT_NE(drawing.trouble.find("longer than 0.3 s"), std::string::npos) << drawing.trouble;
}

TEST(Plot, WithoutCairoPngComesByWayOfSvg) {
  const fs::path folder = fresh_folder();
  make_program(folder / "gnuplot",
               "#!/bin/sh\ncase \"$*\" in *png*) echo unknown terminal; exit 1;; esac\nPATH=/usr/bin:/bin exec gnuplot "
               "\"$@\"\n");
  const Path fake(folder.string() + ":/usr/bin:/bin");
  const Drawing drawing = draw(stick_slip_figure(), stick_slip(), folder, {.picture = Picture::png});
  EXPECT_EQ(drawing.trouble, "");
  EXPECT_TRUE(content(folder / "plot.png").starts_with("\x89PNG"));
}

TEST(Plot, RefusesColumnsThatDoNotExist) {
  EXPECT_THROW(draw(one_panel({Line{.x = "t", .y = "nope"}}), stick_slip(), fresh_folder()), Error);
}

TEST(Labels, ThatDifferStayDifferentWhenTheyAreCut) {
  std::vector<std::string> texts;
  for (const char* middle : {"aaaa", "bbbb"}) {
    for (const char* end : {"1", "2", "3"})
      texts.push_back("a long surface of many states " + std::string(middle) + std::string(20, 'x') + end);
  }
  texts.push_back(texts[0]);
  for (const size_t most : {12u, 32u, 36u, 40u, 80u}) {
    const std::vector<std::string> cut = distinct(texts, most);
    EXPECT_EQ(std::set<std::string>(cut.begin(), cut.end()).size(), 6u) << most;
    EXPECT_EQ(cut.front(), cut.back());
  }
}

TEST(Plot, LabelsOfLinesSideBySideStandInRows) {
  EXPECT_EQ(label_rows({0.1, 0.5, 0.9}), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(label_rows({0.5, 0.5, 0.505, 0.9, 0.51}), (std::vector<int>{0, 1, 2, 0, 3}));
  EXPECT_EQ(share_of(10, 1, 100, true), 0.5);
}

}  // namespace
}  // namespace saltus
