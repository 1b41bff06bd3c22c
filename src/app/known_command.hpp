// Commands and their options as data: what the reader of the command line knows when it runs. Help pages, manual pages
// and completion are made from it.
#pragma once

#include <string>
#include <vector>

namespace saltus {

struct KnownOption {
  std::vector<std::string> flags;  ///< as typed: "-n", "--points"; empty: an argument without a flag
  std::string place;               ///< name of the argument, if it may be given by its place: "MODEL"
  std::string type;                ///< of its value: "TIME", "cells|direct"; empty: none is described
  std::string sentence;
  int values = 1;      ///< 0: a switch; 2 and more: several in a row
  bool listed = true;  ///< false: understood, but not shown
};

struct KnownCommand {
  std::string name, arguments, summary;
  std::vector<KnownOption> options;
};

}  // namespace saltus
