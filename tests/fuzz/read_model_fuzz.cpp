// libFuzzer target: whatever the bytes, reading a model gives a model or an Error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "read_model_once.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  saltus::testing::read_model_once({reinterpret_cast<const char*>(data), size});
  return 0;
}
