// Where requests of a page are answered: each becomes a question to `ask`, its answer frames for the page.
#pragma once

#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "app/options.hpp"
#include "ask/follow.hpp"
#include "ask/run.hpp"
#include "studio/message.hpp"
#include "studio/server.hpp"

namespace saltus {

/// The model that the page begins with.
struct StudioModel {
  ModelSource source;               ///< with its text
  std::string name;                 ///< how a command line calls it
  std::optional<std::string> file;  ///< its path, which alone may be written
  std::vector<std::string> tables;  ///< files of points that it names, which alone may be read
};

/// Requests of two threads at most: quick ones and a job.
class Desk {
 public:
  Desk(const StudioModel& model, int threads, Outbox outbox)
      : first_(model), now_(model), threads_(threads), outbox_(std::move(outbox)) {}

  /// Throws Error for what cannot be answered.
  void answer(const PageRequest& message, const std::stop_token& stop);

 private:
  void open(const PageRequest& message);
  void check(const PageRequest& message);
  void run(const PageRequest& message, const std::stop_token& stop);
  void window(const PageRequest& message, const std::stop_token& stop);
  void plane(const PageRequest& message);
  void section(const PageRequest& message, const std::stop_token& stop);
  void sweep(const PageRequest& message, const std::stop_token& stop);
  void basins(const PageRequest& message, const std::stop_token& stop);
  void orbit(const PageRequest& message, const std::stop_token& stop);
  void branch(const PageRequest& message, const std::stop_token& stop);
  void export_as(const PageRequest& message);
  void save(const PageRequest& message);

  void send(std::string bytes, bool binary = true) const { outbox_.send(std::move(bytes), binary); }
  StudioModel now() const;
  void take(StudioModel model);
  /// The model with the values of the request.
  System system_of(const PageRequest& message) const;
  Solve solve_of(const PageRequest& message) const;
  /// Settings without an end time: the number of points asked for ends the run.
  Solve solve_without_end(const PageRequest& message) const;
  /// Settings of searches, which use the event-driven engine.
  Solve search_solve(const PageRequest& message) const;
  Report progress_to(long id) const;
  /// The last message of a job.
  void finish(long id, const std::stop_token& stop, const std::string& why, const std::string& message) const;
  /// Waits until the page has taken most of what was sent.
  void let_page_follow(const std::stop_token& stop) const;

  StudioModel first_;
  mutable std::mutex mutex_;
  StudioModel now_;  // guarded
  std::optional<RunAnswer> last_;
  PageRequest last_asked_;
  /// The branch that is shown, at whose special points others begin.
  struct LastBranch {
    FollowQuestion question;
    Branch branch;
  };
  std::optional<LastBranch> last_branch_;  // guarded
  double seconds_per_run_ = 0;             // of the last one, as if it had reached its end
  std::optional<std::string> saved_;       // what the file held when it was read or written
  int threads_;
  Outbox outbox_;
};

}  // namespace saltus
