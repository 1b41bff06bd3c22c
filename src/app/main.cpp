#include <csignal>
#include <iostream>

#include <fcntl.h>

#include "app/command_line.hpp"
#include "studio/studio.hpp"

namespace {

/// A standard file that is closed would give its number to the next file opened, and a checkpoint what is said. Instead
/// of it stands one that cannot be used, either.
void fill_closed_files() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

int main(int argc, char** argv) {
  fill_closed_files();
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is an error of writing, like a full disk
  std::ios::sync_with_stdio(false);
  return saltus::command_line({argv + 1, argv + argc}, std::cout, std::cerr, saltus::studio);
}
