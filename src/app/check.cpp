#include "app/commands.hpp"
#include "report/model_page.hpp"

namespace saltus {

Outcome check(const CheckOptions& options) {
  Model model = load_model(options.model);
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
