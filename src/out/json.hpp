// A streaming JSON writer: values go out as they are said, nothing is kept but the open brackets.
//
//     JsonWriter json(std::cout);
//     json.object().member("model", name).key("events").rows();
//     for (...) json.object().member("t", t).member("kind", "slide").end();
//     json.end().end();
//
// The members of the outermost object and the elements of `rows()` stand on lines of their own; all else is on one
// line. Numbers are the shortest text that reads back to the same double. JSON has no infinity and no NaN:
// they are "inf", "-inf" and `null`.
#pragma once

#include <concepts>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saltus {

class JsonWriter {
 public:
  explicit JsonWriter(std::ostream& out) : out_(out) {}
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;
  ~JsonWriter() { flush(); }

  JsonWriter& object();  ///< opens {
  JsonWriter& array();   ///< opens [
  JsonWriter& rows();    ///< opens [ with one element per line
  JsonWriter& end();     ///< closes what was opened last
  JsonWriter& key(std::string_view name);

  JsonWriter& value(double number);
  JsonWriter& value(std::string_view text);  ///< bytes that are not UTF-8 become U+FFFD
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(std::integral auto number) {
    if constexpr (std::same_as<decltype(number), bool>) {
      return word(number ? "true" : "false");
    } else {
      return integer(static_cast<int64_t>(number));
    }
  }
  JsonWriter& value(std::span<const double> numbers);
  JsonWriter& value(std::span<const std::string> texts);
  JsonWriter& null() { return word("null"); }

  template <class T>
  JsonWriter& member(std::string_view name, const T& v) {
    return key(name).value(v);
  }

  /// Hands everything said so far to the stream; the destructor does it too.
  void flush();

 private:
  struct Level {
    char close;
    bool lines;
    bool empty = true;
  };
  JsonWriter& open(char bracket, char close, bool lines);
  JsonWriter& word(std::string_view text);
  JsonWriter& integer(int64_t number);
  void separate();  ///< the comma and the white space before an element

  std::ostream& out_;
  std::string buffer_;
  std::vector<Level> levels_;
  bool after_key_ = false;
};

/// The text as a quoted JSON string.
std::string json_string(std::string_view text);

}  // namespace saltus
