// One page and those who compute for it: what comes in is put into lanes, what is computed goes out.
//
// Two lanes, a thread each. Quick: a waiting request gives way to a newer one of its kind, and a run that is going on
// is cut when a newer one comes. Jobs: one at a time, a new one stops the old.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "studio/desk.hpp"
#include "studio/message.hpp"
#include "studio/server.hpp"

namespace saltus {

class RequestLane {
 public:
  using Work = std::function<void(const PageRequest&, const std::stop_token&)>;

  explicit RequestLane(Work work);
  /// Stops what is going on and waits for it.
  ~RequestLane();

  /// Gives the requests that will not be answered: those waiting for which `gives_way` says so.
  std::vector<PageRequest> put(PageRequest message, const std::function<bool(const PageRequest&)>& gives_way);
  /// Asks the request that is going on to stop, if `meant` says so.
  void stop(const std::function<bool(const PageRequest&)>& meant);

 private:
  void loop(const std::stop_token& ended);

  Work work_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<PageRequest> waiting_;
  std::optional<PageRequest> current_;
  std::stop_source stop_;
  std::jthread thread_;
};

class Session : public Guest {
 public:
  Session(const StudioModel& model, int threads, Outbox outbox);
  void receive(std::string text) override;

 private:
  void answer(const PageRequest& message, const std::stop_token& stop);
  void take(PageRequest message);

  Outbox outbox_;
  Desk desk_;
  RequestLane quick_, jobs_;  // last: they use the others
};

}  // namespace saltus
