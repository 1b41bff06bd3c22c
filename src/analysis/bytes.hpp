// Results of independent items as bytes: what a checkpoint holds and what ranks send each other.
//
// Little endian, doubles bit for bit, texts with their length before them. What is packed in some order is unpacked in
// the same order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/checksum.hpp"

namespace saltus {

using Bytes = std::string;

class Packer {
 public:
  Packer& number(double value);
  Packer& integer(std::int64_t value);
  Packer& text(std::string_view value);
  Packer& numbers(std::span<const double> values);  ///< their count, then each

  Bytes take() { return std::move(bytes_); }
  size_t size() const { return bytes_.size(); }

 private:
  Bytes bytes_;
};

/// Reads what a Packer wrote. Asking for more than there is throws std::out_of_range.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}

  double number();
  std::int64_t integer();
  std::string text();
  std::vector<double> numbers();
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view take(size_t size);

  std::string_view rest_;
};

}  // namespace saltus
