// A TOML file with the place of every key and every character of its texts: all that is known of TOML++ is behind it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/source.hpp"

namespace saltus {

/// An entry of a table, or an item of a list, with the place of its key.
struct TomlEntry {
  std::string key;
  const void* node = nullptr;  ///< of the file
  size_t offset = 0;
};

class TomlFile {
 public:
  /// Throws Error(model) where the text is no TOML.
  explicit TomlFile(std::shared_ptr<const Source> source);
  ~TomlFile();

  /// Entries of the file, or of a table in it, in the order of the file; complains if it is no table.
  std::vector<TomlEntry> entries() const;
  std::vector<TomlEntry> entries(const TomlEntry& table) const;
  bool is_table(const TomlEntry& e) const;
  bool is_text(const TomlEntry& e) const;

  // The value of an entry as this type; nothing if it is of another type.
  std::optional<std::string> text(const TomlEntry& e) const;
  std::optional<double> number(const TomlEntry& e) const;
  std::optional<long> whole(const TomlEntry& e) const;
  std::optional<bool> truth(const TomlEntry& e) const;
  std::optional<std::vector<TomlEntry>> list(const TomlEntry& e) const;

  /// Each character with its place in the file.
  Fragment key_fragment(const TomlEntry& e) const;
  Fragment text_fragment(const TomlEntry& e) const;
  /// A number as text.
  Fragment number_fragment(const TomlEntry& e, double value) const;

  const std::string& name() const { return source_->file(); }
  /// A complaint about the key of an entry, and one about its value.
  [[noreturn]] void fail(const TomlEntry& e, std::string message, std::string hint) const;
  [[noreturn]] void fail_value(const TomlEntry& e, std::string message, std::string hint) const;

 private:
  struct Root;
  std::shared_ptr<const Source> source_;
  bool plain_;  // no character of more than one byte
  std::unique_ptr<const Root> root_;
};

}  // namespace saltus
