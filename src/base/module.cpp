#include "base/module.hpp"

#include <dlfcn.h>

namespace saltus {

std::filesystem::path find_module(const std::string& name) {
  std::error_code failed;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  std::filesystem::path library = program;
  Dl_info info;
  if (::dladdr(reinterpret_cast<const void*>(&find_module), &info) != 0) library = info.dli_fname;
  for (const auto& folder : {program.parent_path(), library.parent_path()}) {
    for (const auto& path : {folder / name, folder / "../lib/saltus" / name, folder / "../saltus" / name}) {
      if (std::filesystem::exists(path, failed)) return path;
    }
  }
  return {};
}

}  // namespace saltus
