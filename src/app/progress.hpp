// What a long computation tells while it runs, and how it is asked to stop.
#pragma once

#include <chrono>
#include <functional>
#include <string_view>

namespace saltus {

/// How far a computation is: `now` runs from `from` to `to`, both ends known in advance.
struct Progress {
  std::string_view what = "t";  ///< what is counted
  double from = 0, now = 0, to = 1;
};

/// Called now and then; false asks the computation to stop with what it has.
using Report = std::function<bool(const Progress&)>;

/// While it lives: a bar on stderr (only on a terminal, only after a second), and Ctrl-C, SIGTERM or SIGHUP
/// ask the computation to stop; a second one ends the program at once. One at a time.
class Terminal {
 public:
  explicit Terminal(bool quiet);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// To be handed to a command; must not outlive the Terminal.
  Report report();

 private:
  using Time = std::chrono::steady_clock::time_point;

  bool show(const Progress& progress);
  void draw(const Progress& progress, double seconds);
  void clear();

  bool bar_;
  bool drawn_ = false;
  Time start_, last_;
};

}  // namespace saltus
