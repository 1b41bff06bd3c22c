#include "studio/message.hpp"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace saltus {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorKind::usage, message, {}, "reload the page; it and the program must be of one version");
}

class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  void read(const char* key, std::string& to) const {
    if (const Json* v = find(key)) to = text(key, *v);
  }
  void read(const char* key, std::optional<std::string>& to) const {
    if (const Json* v = find(key)) to = formula(key, *v);
  }
  void read(const char* key, double& to) const {
    if (const Json* v = find(key)) to = number(key, *v);
  }
  void read(const char* key, std::optional<double>& to) const {
    if (const Json* v = find(key)) to = number(key, *v);
  }
  void read(const char* key, bool& to) const {
    if (const Json* v = find(key)) to = v->is_boolean() ? v->get<bool>() : (refuse_key(key), false);
  }
  void read(const char* key, long& to) const {
    if (const Json* v = find(key)) to = whole(key, *v);
  }
  void read(const char* key, std::optional<long>& to) const {
    if (const Json* v = find(key)) to = whole(key, *v);
  }
  void read(const char* key, std::vector<long>& to) const {
    each(key, [&](const Json& v) { to.push_back(whole(key, v)); });
  }
  void read(const char* key, std::vector<std::string>& to) const {
    each(key, [&](const Json& v) { to.push_back(text(key, v)); });
  }
  void read(const char* key, std::vector<double>& to) const {
    each(key, [&](const Json& v) { to.push_back(number(key, v)); });
  }
  void read(const char* key, std::optional<std::array<double, 4>>& to) const {
    std::vector<double> numbers;
    read(key, numbers);
    if (numbers.empty()) return;
    if (numbers.size() != 4) refuse_key(key);
    to = {numbers[0], numbers[1], numbers[2], numbers[3]};
  }
  /// One option: a text, a number, a flag, or settings as an object.
  void read_option(const char* key, std::vector<Setting>& to) const {
    const Json* v = find(key);
    if (!v) return;
    if (v->is_object()) {
      for (const auto& [name, value] : v->items()) to.push_back({key, fmt::format("{}={}", name, formula(key, value))});
    } else {
      to.push_back({key, v->is_boolean() ? (v->get<bool>() ? "true" : "false") : formula(key, *v)});
    }
  }
  void read(const char* key, std::vector<Setting>& to) const {
    const Json* object = find(key);
    if (!object) return;
    if (!object->is_object()) refuse_key(key);
    for (const auto& [name, value] : object->items()) to.push_back({name, formula(key, value)});
  }

 private:
  [[noreturn]] static void refuse_key(const char* key) { refuse(fmt::format("the request's '{}' is of no use", key)); }

  const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  template <class Take>
  void each(const char* key, const Take& take) const {
    const Json* list = find(key);
    if (!list) return;
    if (!list->is_array() || list->size() > 10'000) refuse_key(key);
    for (const Json& v : *list) take(v);
  }
  static std::string text(const char* key, const Json& v) {
    return v.is_string() ? v.get<std::string>() : (refuse_key(key), "");
  }
  static double number(const char* key, const Json& v) {
    return v.is_number() ? v.get<double>() : (refuse_key(key), 0.0);
  }
  static long whole(const char* key, const Json& v) {
    const double n = number(key, v);
    return n == std::floor(n) && std::abs(n) < 1e15 ? static_cast<long>(n) : (refuse_key(key), 0L);
  }
  /// A number, to its last digit, or a formula.
  static std::string formula(const char* key, const Json& v) {
    return v.is_number() ? Formula(v.get<double>()).text : text(key, v);
  }

  const Json& json_;
};

}  // namespace

PageRequest read_message(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) refuse("the request is no JSON object");
  const Reader reader(json);
  PageRequest m;
  reader.read("do", m.verb);
  reader.read("id", m.id);
  reader.read("name", m.name);
  reader.read("text", m.text);
  reader.read("force", m.force);
  reader.read("p", m.parameters);
  reader.read("x", m.initial);
  for (const SolveOption& option : solve_options()) reader.read_option(option.name.c_str(), m.solve);
  reader.read("drag", m.drag);
  reader.read("window", m.window);
  reader.read("axes", m.axes);
  reader.read("box", m.box);
  reader.read("t", m.t);
  reader.read("state", m.state);
  reader.read("field", m.field);
  reader.read("section", m.section);
  reader.read("points", m.points);
  reader.read("skip", m.skip);
  reader.read("settle", m.settle);
  reader.read("level", m.level);
  reader.read("through", m.through);
  reader.read("vary", m.vary);
  reader.read("colour", m.colour);
  reader.read("levels", m.levels);
  reader.read("method", m.method);
  reader.read("backward", m.backward);
  reader.read("label", m.label);
  reader.read("of", m.of);
  reader.read("what", m.what);
  if (m.verb.empty()) refuse("the request does not say what to do");
  return m;
}

}  // namespace saltus
