#include "model/name_registry.hpp"

#include <fmt/format.h>

#include "expr/letters.hpp"
#include "expr/names.hpp"
#include "model/equation_lines.hpp"

namespace saltus {

void NameRegistry::claim(const Fragment& name, std::string_view role) {
  if (!is_name(name.text)) {
    fail(name, fmt::format("'{}' is not a name", name.text), "a name is a letter followed by letters, digits and _");
  }
  if (is_reserved_name(name.text))
    fail(name, fmt::format("'{}' is a reserved name", name.text), std::string(reserved_hint));
  enter(name.text, name, role, "rename one of them");
}

void NameRegistry::enter(const std::string& text, const Fragment& given, std::string_view role, std::string_view hint) {
  const auto [it, fresh] =
      first_.emplace(text, Entry{role, given.source.get(), given.offsets.front(), given.text.size()});
  if (fresh) return;
  Error error(ErrorKind::model, fmt::format("'{}' is already {}", text, it->second.role),
              given.place(0, given.text.size()), std::string(hint));
  error.also("first given here", it->second.source->place(it->second.offset, it->second.length));
  throw error;
}

}  // namespace saltus
