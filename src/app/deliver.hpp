// The end of a command with one answer: its tables and picture written, its summary or JSON said.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/result_folder.hpp"
#include "report/run_figure.hpp"

namespace saltus {

/// Results to deliver; tables and picture are made only on demand.
struct Delivery {
  Status status = Status::done;
  std::function<std::vector<Table>()> tables;  ///< "data" first; none: nothing was found
  std::function<Picturing()> picture;
  std::function<std::string()> json;
  std::string words;    ///< the summary
  std::string briefly;  ///< with -q: why it ended badly
};

/// `past` as it is to be kept with the answer.
Outcome deliver(const Delivery& delivery, const OutputOptions& output, const ResultFolder& folder, Past past,
                const Model& model);

}  // namespace saltus
