#include <sstream>

#include "app/commands.hpp"
#include "out/json.hpp"
#include "report/model_page.hpp"

namespace saltus {
namespace {

/// A mistake in a model for programs that show it in the text: lines and columns count from 1, in characters.
std::string as_json(const Error& error) {
  std::ostringstream text;
  JsonWriter json(text);
  json.object().key("errors").rows().object().member("message", error.message()).member("hint", error.hint());
  if (const Place& place = error.place(); place.known()) {
    json.member("file", place.file).member("line", place.line).member("column", place.column);
    json.member("length", place.length);
  }
  json.end().end().end().flush();
  return text.str();
}

}  // namespace

Outcome check(const CheckOptions& options) {
  Model model;
  try {
    model = load_model(options.model);
  } catch (const Error& error) {
    if (options.style != CheckOptions::Style::json || error.kind() != ErrorKind::model) throw;
    return {as_json(error), Status::bad_model, error.report()};
  }
  if (model.name.empty()) model.name = short_name(options.model.model);
  if (options.quiet) return {};
  switch (options.style) {
    case CheckOptions::Style::json: return {model_as_json(model)};
    case CheckOptions::Style::latex: return {model_as_latex(model)};
    case CheckOptions::Style::text: break;
  }
  return {model_as_text(model)};
}

}  // namespace saltus
