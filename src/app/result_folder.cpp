#include "app/result_folder.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <span>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

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
  if (drawing.picture.empty())
    throw Error(ErrorKind::file, fmt::format("cannot draw '{}': {}", path.string(), drawing.trouble), {},
                kind == ".svg" ? ""
                               : fmt::format("a name that ends in .svg needs no other program: {}",
                                             fs::path(path).replace_extension(".svg").string()));
  std::error_code failed;
  fs::rename(drawing.picture, path, failed);
  if (failed) throw file_error(path, failed.value());
}

/// Takes the folder for this process. Throws if another one has it.
int lock_folder(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) throw file_error(folder, errno, "use the folder");
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return fd;  // some file systems know no locks
  ::close(fd);
  throw Error(ErrorKind::file, fmt::format("another saltus is writing into '{}'", folder.string()), {},
              "wait for it, or choose another folder with -o DIR");
}

/// Temporary files and folders, which only a process that was killed leaves.
bool is_leftover(const std::string& name) { return name.starts_with(".saltus-"); }

template <class Which>
std::vector<fs::path> list(const fs::path& folder, const Which& which) {
  std::vector<fs::path> found;
  std::error_code trouble;
  for (fs::directory_iterator it(folder, trouble), end; !trouble && it != end; it.increment(trouble)) {
    if (which(it->path().filename().string())) found.push_back(it->path());
  }
  if (trouble) throw file_error(folder, trouble.value(), "read");
  return found;
}

void remove_all(const std::vector<fs::path>& paths) {
  for (const fs::path& path : paths) {
    std::error_code trouble;
    fs::remove_all(path, trouble);
    if (trouble) throw file_error(path, trouble.value(), "remove");
  }
}

/// Complains about what must not be overwritten; with --force removes the results that are there.
void make_room(const fs::path& folder, bool force) {
  std::error_code ignored;
  if (fs::exists(folder / "checkpoint", ignored))
    throw Error(ErrorKind::file, fmt::format("'{}' holds an unfinished computation", folder.string()), {},
                fmt::format("'saltus again {}' finishes it; else choose another folder with -o DIR, or remove this one",
                            (folder / "run.toml").string()));
  const std::vector<fs::path> old = list(folder, is_result_file);
  if (!old.empty() && !force)
    throw Error(ErrorKind::file, fmt::format("'{}' holds results", folder.string()), {},
                "choose another folder with -o DIR, or replace them with --force");
  remove_all(old);
}

}  // namespace

ResultFolder::~ResultFolder() {
  if (lock_ >= 0) ::close(lock_);
}

ResultFolder open_folder(const OutputOptions& output, const Past& past) {
  if (output.folder.empty()) {
    if (output.json) return {};
    const fs::path folder = next_folder(".", fmt::format("{}-{}", past.name, past.command)).lexically_normal();
    return {folder, lock_folder(folder)};
  }
  make_folder(output.folder);
  ResultFolder folder(output.folder, lock_folder(output.folder));
  if (!output.resume) make_room(*folder, output.force);
  remove_all(list(*folder, is_leftover));
  return folder;
}

bool is_result_file(const std::string& name) {
  static constexpr std::array names{
      "run.toml",        "data.h5",         "data.csv",        "events.csv",      "events_step.csv", "pieces.csv",
      "points.csv",      "groups.csv",      "cycles.csv",      "plot.gp",         "plot.dat",        "legs.csv",
      "multipliers.csv", "eigenvalues.csv", "exponents.csv",   "sensitivity.csv", "periods.csv",     "means.csv",
      "fit.csv",         "profile.csv",     "interaction.csv", "special.csv",     "attractors.csv",  "plot.svg",
      "plot.png",        "plot.pdf"};
  if (std::find(names.begin(), names.end(), name) != names.end()) return true;
  // data-2.csv and events-2.csv of several runs, special-2.csv of several branches
  const size_t dash = name.find('-'), digits = name.find_first_not_of("0123456789", dash + 1);
  return dash != name.npos && digits != name.npos && digits > dash + 1 && name.substr(digits) == ".csv" &&
         (name.substr(0, dash) == "data" || name.substr(0, dash) == "events" || name.substr(0, dash) == "special");
}

void begin(const ResultFolder& folder, const Past& past, const Keep& checkpoint) {
  if (!folder) return;
  try {
    write_text(*folder / "run.toml", write_past(past));
  } catch (const Error&) {
    if (!checkpoint.path.empty() || ::access((*folder).c_str(), W_OK) != 0) throw;
  }
}

Keep checkpoint_in(const ResultFolder& folder, Past past, std::initializer_list<std::string_view> idle) {
  if (!folder) return {};
  std::vector<std::string_view> left_out{"format", "native", "no-plot", "show"};
  left_out.insert(left_out.end(), idle);
  std::erase_if(past.options, [&](const Past::Option& o) {
    return std::find(left_out.begin(), left_out.end(), o.first) != left_out.end();
  });
  return {*folder / "checkpoint", write_past(past)};
}

void remove_checkpoint(const Keep& checkpoint) {
  std::error_code ignored;
  if (!checkpoint.path.empty()) fs::remove_all(checkpoint.path, ignored);
}

std::string how_to_go_on(const ResultFolder& folder) {
  if (!folder) return "";
  return fmt::format("interrupted: 'saltus again {}' goes on\n", (*folder / "run.toml").string());
}

Saved save(Results results, const ResultFolder& folder, const OutputOptions& output) {
  Saved saved;
  const auto attempt = [&](const auto& write) {
    try {
      write();
    } catch (const Error& error) {
      saved.trouble += error.report();
      saved.lost = true;
    }
  };
  if (folder) {
    saved.folder = *folder;
    const auto write = [&](std::span<const Table> tables, DataFormat format) {
      attempt([&] {
        for (const fs::path& path : write_tables(*folder, tables, format))
          saved.files.push_back(path.filename().string());
      });
    };
    if (output.format == "h5") {
      write(results.tables, DataFormat::h5);
    } else {
      for (const Table& table : results.tables) write({&table, 1}, DataFormat::csv);
    }
    std::error_code unknown;
    attempt([&] {
      if (!fs::exists(*folder / "run.toml", unknown)) write_text(*folder / "run.toml", write_past(results.past));
      saved.files.push_back("run.toml");
    });
  }
  for (Table& table : results.drawn) results.tables.push_back(std::move(table));
  if (folder && output.plot) {
    attempt([&] {
      const Drawing drawing = draw(results.figure, results.tables, *folder);
      if (!drawing.trouble.empty())
        saved.trouble += fmt::format("no picture: {}; the data are kept, and '{}' can be run again\n", drawing.trouble,
                                     drawing.script.string());
      saved.files.push_back(drawing.picture.empty() ? "plot.gp" : drawing.picture.filename().string());
    });
  }
  if (!output.picture.empty()) attempt([&] { draw_to_file(results.figure, results.tables, output.picture); });
  if (folder) {  // once more: a drawing program outlives the saltus that was killed
    try {
      remove_all(list(*folder, is_leftover));
    } catch (const Error&) {  // no result is lost by that
    }
  }
  return saved;
}

void tell(const Saved& saved, Outcome& outcome) {
  outcome.talk += saved.trouble;
  if (saved.lost) outcome.status = Status::file_trouble;
}

Outcome conclude(Status status, const OutputOptions& output, const Saved& saved, const Telling& telling) {
  Outcome outcome{.text = "", .status = status};
  if (output.json) {
    outcome.text = telling.json();
  } else if (!output.quiet) {
    outcome.text = telling.words + files_line(saved, telling.rows);
  } else if (status != Status::done) {
    outcome.talk = telling.briefly;
  }
  tell(saved, outcome);
  return outcome;
}

std::string files_line(const Saved& saved, size_t rows) {
  if (saved.folder.empty()) return "";
  std::vector<std::string> files = saved.files;
  if (files.empty()) return fmt::format("files      {}: none could be written\n", saved.folder.string());
  if (files.front().starts_with("data.")) files.front() += fmt::format(" ({} rows)", rows);
  return fmt::format("files      {}: {}\n", saved.folder.string(), fmt::join(files, ", "));
}

}  // namespace saltus
