// The file in which a long computation keeps its finished items, so that one killed at any moment goes on from there.
//
// A header names the computation; then records are appended, each with item, length and checksum. What a kill tore at
// the end is cut off when the file is opened again. Nothing once written is ever rewritten.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

#include "analysis/bytes.hpp"

namespace saltus {

/// Throws Error(file) if the file holds a computation with another identity; one that does not exist is fine.
void check_checkpoint(const std::filesystem::path& path, const std::string& identity);

class Checkpoint {
 public:
  /// Opens or creates the file and hands every item found in it to `found`. Throws Error(file) if the file cannot be
  /// used, is in use by another program, or belongs to a computation with another identity.
  Checkpoint(const std::filesystem::path& path, const std::string& identity,
             const std::function<void(std::size_t item, Bytes bytes)>& found);
  ~Checkpoint();
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  /// Appends a finished item. A full disk is an Error(file); what was appended before stays whole.
  void append(std::size_t item, const Bytes& bytes);

  /// Brings what was appended to the disk itself; with `now` false at most once a second.
  void flush(bool now);

 private:
  void write_all(const Bytes& bytes);

  std::filesystem::path path_;
  int fd_ = -1;
  long long size_ = 0;  // up to the end of the last whole record
  bool flushed_ = true;
  std::chrono::steady_clock::time_point last_flush_;
};

}  // namespace saltus
