#include "studio/export.hpp"

namespace saltus {

Past past_of(const RunAnswer& answer, std::vector<Past::Option> options, const std::string& model_name) {
  Past past{.version = this_version(),
            .command = "run",
            .name = short_name(model_name),
            .model = answer.system.text(),
            .options = std::move(options)};
  past.options.push_back({"sample", {"smooth"}});
  past.options.push_back({"store", {"samples"}});
  past.options.push_back({"format", {"csv"}});
  return past;
}

}  // namespace saltus
