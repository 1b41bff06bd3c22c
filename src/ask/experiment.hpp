// One experiment of a fit: values of the free quantities in; residuals of its data and their derivatives out, from one
// run that carries tangents.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ask/fit.hpp"
#include "base/linear.hpp"
#include "model/ports.hpp"
#include "model/program.hpp"

namespace saltus {

class Experiment {
 public:
  /// Throws Error for data that do not fit the model.
  Experiment(const FitQuestion& question, const DataTable& data);

  size_t size() const { return data_of_.size(); }
  const DataTable& table() const { return *table_; }

  struct Point {
    std::vector<double> model;       ///< at each datum; NaN: the run has not come so far
    Mat slopes;                      ///< by each free value, a row per datum
    std::vector<std::string> modes;  ///< the signature of the run
    bool whole = true;               ///< every datum was reached
  };
  Point run(const std::vector<double>& values, const std::function<bool()>& stop) const;

  /// The series of each datum, the datum, its time and its sigma (0: not known).
  struct Datum {
    size_t series = 0;
    double t = 0, value = 0, sigma = 0;
    bool before = false;  ///< the first of two at one time: before what happens there
  };
  const std::vector<Datum>& data() const { return data_of_; }
  std::string series_name(size_t series) const;
  /// A large but finite residual for one that was not reached.
  double missing(const Datum& datum) const;
  bool of_events() const { return table_->events.has_value(); }

 private:
  struct Free {  // where a free value goes; -1, -1: nowhere in this experiment
    int parameter = -1, state = -1;
    bool log = false;
  };
  struct Start {
    RunOptions options;
    Mat x, p;
  };
  struct Watch;
  void find_free(const FitQuestion& question);
  void find_observed();
  void find_events() const;
  void collect_data();
  Start start_at(const std::vector<double>& values) const;

  const DataTable* table_;
  System system_;
  RunOptions options_;
  std::vector<Free> free_;
  std::vector<int> observed_;  ///< per series: a state, or n + an integral of the ported model
  PortedModel ported_;
  std::shared_ptr<const Program> program_;
  std::vector<Datum> data_of_;
  std::vector<size_t> in_order_;  ///< of quantities, by time
  double last_ = 0, spread_ = 1;
};

}  // namespace saltus
