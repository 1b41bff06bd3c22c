// A person who waits: a bar on the terminal, and Ctrl-C.
#pragma once

#include <chrono>

#include "ask/observer.hpp"

namespace saltus {

/// While it lives: a bar on stderr (only on a terminal, only after a second), and Ctrl-C, SIGTERM or SIGHUP
/// ask the computation to stop; a second one ends the program at once. One at a time.
class Terminal {
 public:
  explicit Terminal(bool quiet);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// To be handed to a command; must not outlive the Terminal.
  Observer observer();
  /// Takes the bar away, so that a line can be printed; it comes back by itself.
  void clear();

 private:
  using Time = std::chrono::steady_clock::time_point;

  bool show(const Progress& progress);
  void draw(const Progress& progress, double seconds);

  bool bar_;
  bool drawn_ = false;
  Time start_, last_;
};

}  // namespace saltus
