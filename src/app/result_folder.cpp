#include "app/result_folder.hpp"

#include <cerrno>
#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "out/plot.hpp"
#include "out/write.hpp"

namespace saltus {
namespace fs = std::filesystem;
namespace {

/// A folder that goes away with its files.
class ScratchFolder {
 public:
  explicit ScratchFolder(const fs::path& beside) {
    std::string pattern = (beside / ".saltus-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw file_error(beside, errno);
    path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// The picture alone, at a path of its own.
void draw_to_file(const Figure& figure, const std::vector<Table>& tables, const fs::path& path) {
  const std::string kind = path.extension().string();
  const ScratchFolder scratch(path.has_parent_path() ? path.parent_path() : fs::path("."));
  const Drawing drawing = draw(figure, tables, scratch.path(),
                               {.picture = kind == ".png"   ? Picture::png
                                           : kind == ".pdf" ? Picture::pdf
                                                            : Picture::svg});
  if (drawing.picture.empty()) throw Error(ErrorKind::file, drawing.trouble, {}, "is gnuplot installed?");
  std::error_code failed;
  fs::rename(drawing.picture, path, failed);
  if (failed) throw file_error(path, failed.value());
}

}  // namespace

std::optional<fs::path> open_folder(const OutputOptions& output, const std::string& name, const std::string& command) {
  if (!output.folder.empty()) {
    make_folder(output.folder);
    return output.folder;
  }
  if (output.json) return std::nullopt;
  return next_folder(".", fmt::format("{}-{}", name, command)).lexically_normal();
}

Saved save(Results results, const std::optional<fs::path>& folder, const OutputOptions& output) {
  Saved saved;
  if (folder) {
    saved.folder = *folder;
    const DataFormat format = output.format == "h5" ? DataFormat::h5 : DataFormat::csv;
    for (const fs::path& path : write_tables(*folder, results.tables, format))
      saved.files.push_back(path.filename().string());
    write_text(*folder / "run.toml", write_past(results.past));
    saved.files.push_back("run.toml");
  }
  for (Table& table : results.drawn) results.tables.push_back(std::move(table));
  if (folder && output.plot) {
    const Drawing drawing = draw(results.figure, results.tables, *folder);
    saved.trouble = drawing.trouble;
    saved.files.push_back(drawing.picture.empty() ? "plot.gp" : drawing.picture.filename().string());
  }
  if (!output.picture.empty()) draw_to_file(results.figure, results.tables, output.picture);
  return saved;
}

std::string files_line(const Saved& saved, size_t rows) {
  if (saved.folder.empty()) return "";
  std::vector<std::string> files = saved.files;
  files.front() += fmt::format(" ({} rows)", rows);
  return fmt::format("files      {}: {}\n", saved.folder.string(), fmt::join(files, ", "));
}

}  // namespace saltus
