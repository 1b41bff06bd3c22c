// Where a command leaves what it found: a folder with tables, a picture and its run.toml.
//
// Nobody's results are lost by accident: -o takes a folder that is missing or holds no results; one with results needs
// --force, one with an unfinished computation is left to `saltus again`, one in use is left alone.
#pragma once

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/commands.hpp"
#include "ask/keep.hpp"
#include "ask/past.hpp"
#include "base/figure.hpp"
#include "base/table.hpp"

namespace saltus {

/// Everything a command leaves.
struct Results {
  std::vector<Table> tables = {};  ///< written: data, events, ...
  Figure figure = {};
  std::vector<Table> drawn = {};  ///< tables that only the figure needs
  Past past = {};
};

/// The fate of the files of a result.
struct Saved {
  std::filesystem::path folder;    ///< empty if none was asked for
  std::vector<std::string> files;  ///< in the folder, by name
  std::string trouble;             ///< what could not be drawn or written, and why; empty if all went well
  bool lost = false;               ///< something that was asked for could not be written
};

/// A folder that is this process's own while the object lives: a lock on the folder itself, which dies with the
/// process. Nothing, with --json alone.
class ResultFolder {
 public:
  ResultFolder() = default;
  ResultFolder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}
  ~ResultFolder();
  ResultFolder(ResultFolder&& other) noexcept : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {
    other.path_.reset();
  }
  ResultFolder& operator=(ResultFolder&&) = delete;

  explicit operator bool() const { return path_.has_value(); }
  const std::filesystem::path& operator*() const { return *path_; }

 private:
  std::optional<std::filesystem::path> path_;
  int lock_ = -1;
};

/// The folder of a result, taken before the computation, so that a mistaken path costs no time: -o, or the next
/// <name>-<command>-NNN here. Throws Error(file) for one that must not be touched.
ResultFolder open_folder(const OutputOptions& output, const Past& past);

/// True if a file of this name in a result folder is one that saltus writes.
bool is_result_file(const std::string& name);

/// Where a computation in a folder keeps what it has finished, and all that this depends on: pictures and formats do
/// not count, nor the options named in `idle`.
Keep checkpoint_in(const ResultFolder& folder, Past past, std::initializer_list<std::string_view> idle = {});

/// Writes run.toml: first of all files, so that what was begun can be told and repeated. A full disk is no reason not
/// to compute, and `save` tries again and tells; but what is kept in a checkpoint is nothing without it.
void begin(const ResultFolder& folder, const Past& past, const Keep& checkpoint = {});

/// After the results are safe.
void remove_checkpoint(const Keep& checkpoint);

/// "interrupted: 'saltus again ...' goes on" for the talk; nothing without a folder.
std::string how_to_go_on(const ResultFolder& folder);

/// Writes tables and pictures, each as far as it goes: one that cannot be written does not stop the others.
Saved save(Results results, const ResultFolder& folder, const OutputOptions& output);

/// Adds files that could not be written to the outcome of a command; its summary or JSON stays.
void tell(const Saved& saved, Outcome& outcome);

/// The words of a command at its end.
struct Telling {
  std::function<std::string()> json;
  std::string words;    ///< the summary
  std::string briefly;  ///< with -q: why it ended badly
  size_t rows = 0;      ///< of the data
};

/// The end of a command: its JSON, its summary with the files, or with -q only why it ended badly.
Outcome conclude(Status status, const OutputOptions& output, const Saved& saved, const Telling& telling);

/// "files      dry_friction-run-001: data.csv (801 rows), ..." for the summary.
std::string files_line(const Saved& saved, size_t rows);

}  // namespace saltus
