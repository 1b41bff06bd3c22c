// One binary message to the page: a JSON header, then arrays of numbers that the page views without
// copying.
//
//     "SAL1" | u32 length of the header | header, padded with spaces to 8 | arrays, each at a multiple of 8
//
// All little endian. The header's member "arrays" says where each one begins, counted from the end of the header.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "out/json.hpp"

namespace saltus {

class Frame {
 public:
  Frame& add(const std::string& name, std::span<const double> numbers);
  Frame& add(const std::string& name, std::span<const std::int32_t> numbers);

  /// `members` says what else the header has.
  std::string bytes(long id, std::string_view kind, const std::function<void(JsonWriter&)>& members) const;

 private:
  struct Array {
    std::string name, type;
    size_t offset, length;
  };
  void append(const std::string& name, const char* type, size_t length, const void* data, size_t size);

  std::vector<Array> arrays_;
  std::string data_;
};

/// A message without arrays, as text.
std::string note_to_page(long id, std::string_view kind, const std::function<void(JsonWriter&)>& members = {});

}  // namespace saltus
