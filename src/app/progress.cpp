#include "app/progress.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <string>

#include <unistd.h>

#include <fmt/format.h>

namespace saltus {
namespace {

// A signal handler can reach nothing but this.
volatile std::sig_atomic_t stop_asked = 0;

struct sigaction former_int, former_term, former_hup;

timespec asked_at{};

/// The first signal asks. What follows at once is the same signal again: `timeout` and batch systems send it to the
/// program and to its group. A later one ends the program as it always does.
void ask_to_stop(int signal) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (!stop_asked) {
    stop_asked = 1;
    asked_at = now;
    return;
  }
  const double since =
      static_cast<double>(now.tv_sec - asked_at.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec - asked_at.tv_nsec);
  if (since < 0.3) return;
  std::signal(signal, SIG_DFL);
  raise(signal);
}

/// "0:42", "3:07:15"
std::string clock_text(double seconds) {
  const long s = std::lround(std::min(seconds, 1e9));
  return s < 3600 ? fmt::format("{}:{:02}", s / 60, s % 60)
                  : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

}  // namespace

Terminal::Terminal(bool quiet)
    : bar_(!quiet && isatty(STDERR_FILENO) != 0), start_(std::chrono::steady_clock::now()), last_(start_) {
  stop_asked = 0;
  struct sigaction action {};
  action.sa_handler = ask_to_stop;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &former_int);
  sigaction(SIGTERM, &action, &former_term);
  sigaction(SIGHUP, nullptr, &former_hup);
  if (former_hup.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // nohup means it
}

Terminal::~Terminal() {
  clear();
  sigaction(SIGINT, &former_int, nullptr);
  sigaction(SIGTERM, &former_term, nullptr);
  sigaction(SIGHUP, &former_hup, nullptr);
}

Observer Terminal::observer() {
  return {.progress = [this](const Progress& progress) { return show(progress); },
          .interrupted = [] { return stop_asked != 0; }};
}

bool Terminal::show(const Progress& progress) {
  if (stop_asked) {
    clear();
    return false;
  }
  if (!bar_) return true;
  const Time now = std::chrono::steady_clock::now();
  const auto since = [&](Time t) { return std::chrono::duration<double>(now - t).count(); };
  if (since(start_) > 1 && since(last_) > 0.1) {
    last_ = now;
    draw(progress, since(start_));
  }
  return true;
}

void Terminal::draw(const Progress& p, double seconds) {
  const double done = p.to == p.from ? 1 : std::clamp((p.now - p.from) / (p.to - p.from), 0.0, 1.0);
  constexpr int width = 24;
  const int full = static_cast<int>(done * width);
  const std::string text =
      fmt::format("\r[{:=<{}}{:{}}] {:3.0f} %  {} = {:.5g} of {:.5g}  {:.3g} per s{}", "", full, "", width - full,
                  100 * done, p.what, p.now, p.to, std::abs(p.now - p.from) / seconds,
                  done > 1e-6 ? "  " + clock_text(seconds * (1 - done) / done) + " left" : "");
  std::fputs((text + "\033[K").c_str(), stderr);
  std::fflush(stderr);
  drawn_ = true;
}

void Terminal::clear() {
  if (!drawn_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace saltus
