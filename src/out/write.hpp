// Results on disk. Every file appears whole or not at all: it is written under a temporary name in its own folder and
// renamed. A path that cannot be written is an Error(ErrorKind::file) with path, reason and remedy.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/table.hpp"

namespace saltus {

enum class DataFormat { csv, h5 };

/// Writes all tables into an existing folder: <name>.csv each, or all into one data.h5. Gives the paths written.
std::vector<std::filesystem::path> write_tables(const std::filesystem::path& folder, std::span<const Table> tables,
                                                DataFormat format = DataFormat::csv);

/// CSV: a line of column names, then one line per row. Numbers are the shortest text that reads back to the same double
/// (at most 17 digits; nan, inf, -inf), texts are quoted where they must be.
void write_csv(const std::filesystem::path& path, const Table& table);

/// The table as CSV text.
std::string csv_text(const Table& table);

/// The text as a file.
void write_text(const std::filesystem::path& path, std::string_view text);

/// Creates and gives `<base>/<stem>-001`, or the number after the largest there is. Safe when several programs ask at
/// once.
std::filesystem::path next_folder(const std::filesystem::path& base, std::string_view stem);

/// Creates a folder with its parents; one that exists is fine.
void make_folder(const std::filesystem::path& folder);

/// Lets `fill` write a file under a temporary name beside `path`, then renames it to `path`. If `fill` throws, nothing
/// is left behind and a former file at `path` is untouched.
void write_atomically(const std::filesystem::path& path,
                      const std::function<void(const std::filesystem::path& temporary)>& fill);

/// The Error for an errno met on a path: what failed, why, and what to do.
Error file_error(const std::filesystem::path& path, int reason, std::string_view action = "write");

/// Appends the shortest text that reads back to the same double.
void append_number(std::string& text, double value);

}  // namespace saltus
