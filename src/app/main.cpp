#include <csignal>
#include <iostream>

#include "app/command_line.hpp"
#include "studio/studio.hpp"

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is an error of writing, like a full disk
  std::ios::sync_with_stdio(false);
  return saltus::command_line({argv + 1, argv + argc}, std::cout, std::cerr, saltus::studio);
}
