#include "out/json.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include <fmt/format.h>

#include "out/text.hpp"
#include "out/write.hpp"

namespace saltus {

namespace {

/// True if the text stands in quotes as it is.
bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7F && c != '"' && c != '\\'; });
}

void append_string(std::string& out, std::string_view text) {
  if (is_plain(text)) {
    out += '"';
    out += text;
    out += '"';
  } else {
    out += json_string(text);
  }
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : valid_utf8(text)) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  return out += '"';
}

void JsonWriter::flush() {
  out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  buffer_.clear();
}

void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (levels_.empty()) return;
  Level& level = levels_.back();
  if (!level.empty) buffer_ += level.lines ? "," : ", ";
  if (level.lines && !(level.empty && level.close == '}')) {
    buffer_ += '\n';
    buffer_.append(levels_.size(), ' ');
  }
  level.empty = false;
  if (buffer_.size() > (1 << 16)) flush();
}

JsonWriter& JsonWriter::open(char bracket, char close, bool lines) {
  separate();
  buffer_ += bracket;
  levels_.push_back({close, lines});
  return *this;
}

JsonWriter& JsonWriter::object() { return open('{', '}', levels_.empty()); }
JsonWriter& JsonWriter::array() { return open('[', ']', false); }
JsonWriter& JsonWriter::rows() { return open('[', ']', true); }

JsonWriter& JsonWriter::end() {
  assert(!levels_.empty() && !after_key_);
  buffer_ += levels_.back().close;
  levels_.pop_back();
  if (levels_.empty()) {
    buffer_ += '\n';
    flush();
  }
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  assert(!levels_.empty() && levels_.back().close == '}' && !after_key_);
  separate();
  append_string(buffer_, name);
  buffer_ += ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::word(std::string_view text) {
  assert(levels_.empty() || levels_.back().close == ']' || after_key_);
  separate();
  buffer_ += text;
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (std::isinf(number)) return value(number > 0 ? "inf" : "-inf");
  if (std::isnan(number)) return null();
  separate();
  append_number(buffer_, number);
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  assert(levels_.empty() || levels_.back().close == ']' || after_key_);
  separate();
  append_string(buffer_, text);
  return *this;
}

JsonWriter& JsonWriter::integer(int64_t number) { return word(fmt::to_string(number)); }

JsonWriter& JsonWriter::value(std::span<const double> numbers) {
  array();
  for (const double number : numbers) value(number);
  return end();
}

JsonWriter& JsonWriter::value(std::span<const std::string> texts) {
  array();
  for (const std::string& text : texts) value(std::string_view(text));
  return end();
}

}  // namespace saltus
