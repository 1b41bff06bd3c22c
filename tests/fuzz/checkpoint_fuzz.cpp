// libFuzzer target: whatever the bytes of a checkpoint, it opens with what is whole, or is refused.
#include <cstddef>
#include <cstdint>

#include <unistd.h>

#include "app_once.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto file =
      std::filesystem::temp_directory_path() / ("saltus-checkpoint-fuzz-" + std::to_string(::getpid()));
  saltus::fuzz::checkpoint_once({reinterpret_cast<const char*>(data), size}, file);
  return 0;
}
