// Opens a link in the person's browser without showing it to other people of the machine.
#pragma once

#include <filesystem>
#include <string>

namespace saltus {

/// The link stands in a file that only its owner can read, because command lines can be read by all; the file is
/// removed when this goes.
class Browser {
 public:
  Browser() = default;
  explicit Browser(const std::string& link);
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;
  ~Browser();

 private:
  std::filesystem::path file_;
};

}  // namespace saltus
