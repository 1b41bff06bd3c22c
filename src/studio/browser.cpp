#include "studio/browser.hpp"

#include <cstdlib>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <unistd.h>

extern char** environ;

namespace saltus {
namespace {

std::filesystem::path private_folder() {
  if (const char* folder = std::getenv("XDG_RUNTIME_DIR"); folder && *folder) return folder;
  return std::filesystem::temp_directory_path();
}

}  // namespace

Browser::Browser(const std::string& link) {
  if (!std::getenv("DISPLAY") && !std::getenv("WAYLAND_DISPLAY")) return;  // nowhere to show it: the link is printed
  std::string name = (private_folder() / "saltus-studio-XXXXXX.html").string();
  const int file = mkstemps(name.data(), 5);  // readable by its owner alone
  if (file < 0) return;
  file_ = name;
  const std::string page = fmt::format(
      "<!doctype html><meta charset=utf-8><meta name=referrer content=no-referrer>"
      "<meta http-equiv=refresh content=\"0;url={0}\"><a href=\"{0}\">saltus studio</a>\n",
      link);
  const bool written = write(file, page.data(), page.size()) == static_cast<ssize_t>(page.size());
  close(file);
  if (!written) return;
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&quiet, stream, "/dev/null", O_WRONLY, 0);
  char command[] = "xdg-open";
  char* arguments[] = {command, name.data(), nullptr};
  pid_t child = 0;
  posix_spawnp(&child, command, &quiet, nullptr, arguments, environ);  // without it, there is the link
  posix_spawn_file_actions_destroy(&quiet);
}

Browser::~Browser() {
  std::error_code ignored;
  if (!file_.empty()) std::filesystem::remove(file_, ignored);
}

}  // namespace saltus
