// Figure -> picture. The folder gets `plot.gp`, a gnuplot script a person can edit, `plot.dat` with the (thinned)
// numbers it draws, and the picture that gnuplot makes of them.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "base/figure.hpp"
#include "base/table.hpp"

namespace saltus {

enum class Picture { svg, png, pdf };

struct DrawOptions {
  Picture picture = Picture::svg;
  std::string stem = "plot";  ///< of the three files
  double seconds = 60;        ///< given to gnuplot before it is stopped
};

/// The result of drawing a figure. Without a picture the data and the script are there all the same.
struct Drawing {
  std::filesystem::path script;
  std::filesystem::path picture;  ///< empty if it was not made
  std::string trouble;            ///< empty if all went well; else why there is no picture
};

/// Draws the figure into an existing folder. Files that cannot be written and columns that do not exist are Errors; a
/// gnuplot that fails is trouble. Where there is none, an SVG is drawn without it (out/svg).
Drawing draw(const Figure& figure, std::span<const Table> tables, const std::filesystem::path& folder,
             const DrawOptions& options = {});

/// The two files that make a picture.
struct Script {
  std::string gnuplot;  ///< the script; reads "<stem>.dat" beside it and writes "<stem>.svg"
  std::string data;     ///< blocks of numbers, each with its name
};
Script make_script(const Figure& figure, std::span<const Table> tables, const DrawOptions& options = {});

}  // namespace saltus
