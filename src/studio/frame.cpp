#include "studio/frame.hpp"

#include <bit>
#include <cstring>
#include <sstream>

namespace saltus {

static_assert(std::endian::native == std::endian::little);

void Frame::append(const std::string& name, const char* type, size_t length, const void* data, size_t size) {
  arrays_.push_back({name, type, data_.size(), length});
  data_.append(static_cast<const char*>(data), size);
  data_.resize((data_.size() + 7) / 8 * 8, '\0');
}

Frame& Frame::add(const std::string& name, std::span<const double> numbers) {
  append(name, "f64", numbers.size(), numbers.data(), numbers.size_bytes());
  return *this;
}

Frame& Frame::add(const std::string& name, std::span<const std::int32_t> numbers) {
  append(name, "i32", numbers.size(), numbers.data(), numbers.size_bytes());
  return *this;
}

std::string Frame::bytes(long id, std::string_view kind, const std::function<void(JsonWriter&)>& members) const {
  std::string header = note_to_page(id, kind, [&](JsonWriter& json) {
    members(json);
    json.key("arrays").array();
    for (const Array& a : arrays_) {
      json.object().member("name", a.name).member("type", a.type).member("offset", a.offset);
      json.member("length", a.length).end();
    }
    json.end();
  });
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string out = "SAL1";
  const auto length = static_cast<std::uint32_t>(header.size());
  char number[4];
  std::memcpy(number, &length, 4);
  out.append(number, 4);
  return out + header + data_;
}

std::string note_to_page(long id, std::string_view kind, const std::function<void(JsonWriter&)>& members) {
  std::ostringstream text;
  JsonWriter json(text);
  json.object().member("id", id).member("kind", kind);
  if (members) members(json);
  json.end().flush();
  return text.str();
}

}  // namespace saltus
