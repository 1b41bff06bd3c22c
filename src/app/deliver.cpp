#include "app/deliver.hpp"

#include "app/view.hpp"

namespace saltus {

Outcome deliver(const Delivery& delivery, const OutputOptions& output, const ResultFolder& folder, Past past,
                const Model& model) {
  Saved saved;
  size_t rows = 0;
  std::string view_notes;
  if (folder || !output.picture.empty()) {
    Results results{.past = std::move(past)};
    results.tables = delivery.tables();
    if (!results.tables.empty()) {
      rows = results.tables.front().rows();
      Picturing picturing = delivery.picture();
      view_notes = set_view(picturing.figure, output, model);
      results.figure = std::move(picturing.figure);
      results.drawn = std::move(picturing.tables);
    }
    saved = save(std::move(results), folder, output);
  }
  Outcome outcome =
      conclude(delivery.status, output, saved,
               {.json = delivery.json, .words = delivery.words, .briefly = delivery.briefly, .rows = rows});
  outcome.talk += view_notes;
  return outcome;
}

}  // namespace saltus
