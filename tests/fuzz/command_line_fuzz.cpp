// libFuzzer target: whatever the arguments, they are read, or there is a message and an exit status of the contract.
#include <cstddef>
#include <cstdint>

#include "app_once.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  saltus::fuzz::command_line_once({reinterpret_cast<const char*>(data), size});
  return 0;
}
