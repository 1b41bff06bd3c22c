#include "analysis/bytes.hpp"

#include <bit>
#include <cstring>
#include <stdexcept>

namespace saltus {

static_assert(std::endian::native == std::endian::little);

Packer& Packer::number(double value) { return integer(std::bit_cast<std::int64_t>(value)); }

Packer& Packer::integer(std::int64_t value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  bytes_.append(bytes, sizeof value);
  return *this;
}

Packer& Packer::text(std::string_view value) {
  integer(static_cast<std::int64_t>(value.size()));
  bytes_.append(value);
  return *this;
}

Packer& Packer::numbers(std::span<const double> values) {
  integer(static_cast<std::int64_t>(values.size()));
  for (const double v : values) number(v);
  return *this;
}

std::string_view Unpacker::take(size_t size) {
  if (size > rest_.size()) throw std::out_of_range("saltus: packed bytes end too early");
  const std::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

std::int64_t Unpacker::integer() {
  std::int64_t value = 0;
  std::memcpy(&value, take(sizeof value).data(), sizeof value);
  return value;
}

double Unpacker::number() { return std::bit_cast<double>(integer()); }

std::string Unpacker::text() {
  const auto size = static_cast<size_t>(integer());
  return std::string(take(size));
}

std::vector<double> Unpacker::numbers() {
  const auto count = static_cast<size_t>(integer());
  if (count > rest_.size() / sizeof(double)) throw std::out_of_range("saltus: packed bytes end too early");
  std::vector<double> values(count);
  for (double& v : values) v = number();
  return values;
}

}  // namespace saltus
