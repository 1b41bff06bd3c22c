// Every name of one kind with the place where it was first given.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "base/source.hpp"

namespace saltus {

class NameRegistry {
 public:
  /// A name that is new, well formed and not reserved; throws Error(model) if not. `role`: "a state".
  void claim(const Fragment& name, std::string_view role);
  /// A name that is known to be one; `text` is what `given` stands for: x[3] for x[i].
  void enter(const std::string& text, const Fragment& given, std::string_view role, std::string_view hint);

 private:
  struct Entry {
    std::string_view role;
    const Source* source;
    size_t offset, length;
  };
  std::unordered_map<std::string, Entry> first_;
};

}  // namespace saltus
