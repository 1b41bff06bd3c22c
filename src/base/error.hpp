// Wrong input as a value: what is wrong, where it stands, what to do about it.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace saltus {

/// The kind of wrong input; decides the exit status of the command line.
enum class ErrorKind { usage, model, file };

/// A stretch of one source line. Lines and columns count from 1, in characters (not bytes); line 0 means "no place".
struct Place {
  std::string file;
  int line = 0;
  int column = 0;
  int length = 1;
  std::string text;     ///< the source line, or the part of it around the place
  int quote_shift = 0;  ///< columns cut off before `text`

  bool known() const { return line > 0; }
};

/// The one exception of saltus: thrown for wrong input only, never for the fate of a computation.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string message, Place place = {}, std::string hint = {});

  /// A second place that belongs to the complaint (the bracket that was opened, the first definition).
  Error& also(std::string label, Place place);

  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const Place& place() const { return place_; }
  const std::string& hint() const { return hint_; }

  /// Message, place, source line with caret, hint: what a person reads.
  std::string report() const;

 private:
  ErrorKind kind_;
  std::string message_;
  Place place_;
  std::string hint_;
  std::string also_label_;
  Place also_place_;
};

/// A number that is none, in words: "infinite" or "undefined".
std::string_view not_finite(double value);

/// The known name closest to a misspelt one, or "" if none is near enough to be meant.
std::string nearest_name(std::string_view wrong, std::span<const std::string> known);

}  // namespace saltus
