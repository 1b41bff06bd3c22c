// Who waits for an answer: another thread computes, without the GIL; the calling one takes it every 50 ms, to ask for
// Ctrl-C, for `stop` and to tell progress. A stop is seen within a step.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <stop_token>

#include <pybind11/pybind11.h>

#include "base/observer.hpp"

namespace saltus::python {

namespace py = pybind11;

/// Ctrl-C, `stop` and `progress` of a question that is being answered.
class Waiting {
 public:
  Waiting(py::object progress, py::object stop) : progress_(std::move(progress)), stop_(std::move(stop)) {}

  /// The answer, computed in a thread of its own; to be called with the GIL.
  template <class Compute>
  auto operator()(const Compute& compute) {
    const py::gil_scoped_release without;
    const Observer observer{.progress =
                                [this](const Progress& p) {
                                  share_ = p.to == p.from ? 1 : (p.now - p.from) / (p.to - p.from);
                                  return true;
                                },
                            .stop = source_.get_token()};
    auto answer = std::async(std::launch::async, [&] { return compute(observer); });
    while (answer.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) look();
    return answer.get();
  }
  /// To be called with the GIL when the answer is there: what Python code has thrown goes on.
  void finish(py::dict& answer) {
    if (thrown_) std::rethrow_exception(thrown_);
    answer["interrupted"] = interrupted_;
  }

 private:
  void look() {
    const py::gil_scoped_acquire gil;
    if (source_.stop_requested()) return;
    try {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      if (!stop_.is_none() && stop_.attr("is_set")().cast<bool>()) {
        source_.request_stop();
      } else if (!progress_.is_none()) {
        const py::object answer = progress_(share_.load());
        if (!answer.is_none() && !answer.cast<bool>()) source_.request_stop();
      }
    } catch (const py::error_already_set& thrown) {  // Ctrl-C, here or in `progress`, keeps what there is
      interrupted_ = thrown.matches(PyExc_KeyboardInterrupt);
      if (!interrupted_) thrown_ = std::current_exception();
      source_.request_stop();
    } catch (...) {
      thrown_ = std::current_exception();
      source_.request_stop();
    }
  }

  py::object progress_, stop_;
  std::atomic<double> share_ = 0;
  std::stop_source source_;
  bool interrupted_ = false;
  std::exception_ptr thrown_;
};

}  // namespace saltus::python
