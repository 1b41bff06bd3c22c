// libFuzzer target: whatever the bytes of a run.toml, it is a record, none, or damaged.
#include <cstddef>
#include <cstdint>

#include "app_once.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  saltus::fuzz::past_once({reinterpret_cast<const char*>(data), size});
  return 0;
}
