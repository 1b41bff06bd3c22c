#include "analysis/work.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <queue>
#include <thread>

#include <unistd.h>

#include "analysis/checkpoint.hpp"
#include "analysis/team.hpp"
#include "base/error.hpp"

namespace saltus {
namespace {

using Clock = std::chrono::steady_clock;

struct Task {
  std::size_t item = 0;
  AnyValue before = {};
};

struct Finished {
  std::size_t item = 0;
  AnyValue value = {};
  std::exception_ptr error = {};
  bool stopped = false;  ///< it was asked to, and has no result
};

// ---- the threads of this process -----------------------------------------------------------------------------------

/// Threads that work off tasks in the order given. Where there are none to be had, `collect` does the work. A task
/// takes the memory of its end with it: outside of `compute` a thread has nothing to throw.
class Crew {
 public:
  Crew(const AnyJob& job, int threads) : job_(job) {
    try {
      for (int i = 0; i < threads; ++i) {
        threads_.emplace_back();
        threads_.back() = std::thread([this] { work(); });
      }
    } catch (const std::exception&) {  // no more threads, or no memory for them: those there are will do
      if (!threads_.empty() && !threads_.back().joinable()) threads_.pop_back();
    }
  }

  /// Waits for running tasks.
  ~Crew() {
    ask_to_stop();
    drop_waiting();
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    task_there_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

  void add(Task task) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back({.task = std::move(task)});
    }
    ++inside_;
    task_there_.notify_one();
  }

  /// Items finished since the last call; waits at most `longest_wait` for one.
  std::vector<Finished> collect(Clock::duration longest_wait) {
    if (threads_.empty() && !waiting_.empty()) {
      waiting_.front().end = compute(waiting_.front().task, own_);
      finished_.splice(finished_.end(), waiting_, waiting_.begin());
    }
    std::list<Given> given;
    {
      std::unique_lock lock(mutex_);
      task_done_.wait_for(lock, longest_wait, [this] { return !finished_.empty(); });
      given.swap(finished_);
    }
    std::vector<Finished> finished;
    for (Given& g : given) finished.push_back(std::move(g.end));
    inside_ -= finished.size();
    return finished;
  }

  void ask_to_stop() { stop_.request_stop(); }

  /// Forgets the tasks that nobody has begun.
  void drop_waiting() {
    const std::lock_guard lock(mutex_);
    inside_ -= waiting_.size();
    waiting_.clear();
  }

  std::size_t inside() const { return inside_; }  ///< tasks given and not yet collected

 private:
  /// A task and what became of it.
  struct Given {
    Task task;
    Finished end = {};
  };
  /// The data of one thread.
  struct Own {
    Worker worker;
    bool begun = false;
  };

  Finished compute(const Task& task, Own& own) {
    Finished finished{.item = task.item};
    try {
      if (!own.begun && job_.make_worker) own.worker = job_.make_worker();
      own.begun = true;
      finished.value = job_.run(task.item, task.before.get(), own.worker, stop_.get_token());
    } catch (const Stopped&) {
      finished.stopped = true;
    } catch (...) {
      finished.error = std::current_exception();
      own = {};  // nobody knows in what state it was left
    }
    return finished;
  }

  void work() {
    Own own;
    std::unique_lock lock(mutex_);
    while (true) {
      task_there_.wait(lock, [this] { return over_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      std::list<Given> mine;
      mine.splice(mine.end(), waiting_, waiting_.begin());
      lock.unlock();
      mine.front().end = compute(mine.front().task, own);
      lock.lock();
      finished_.splice(finished_.end(), mine);
      task_done_.notify_one();
    }
  }

  const AnyJob& job_;
  std::mutex mutex_;
  std::condition_variable task_there_, task_done_;
  std::list<Given> waiting_, finished_;
  bool over_ = false;
  std::size_t inside_ = 0;  // of the collecting thread alone
  std::stop_source stop_;
  Own own_;  // of the collecting thread, where there is no other
  std::list<std::thread> threads_;
};

// ---- which items may start -----------------------------------------------------------------------------------------

class Ledger {
 public:
  explicit Ledger(const AnyJob& job) : job_(job) {
    result_.items.resize(job.count);
    result_.missing = job.count;
  }

  /// To be called once the items of the checkpoint are in.
  void open() {
    if (job_.after) followers_.resize(job_.count);
    for (std::size_t i = 0; i < job_.count; ++i) {
      if (result_.items[i]) continue;
      const std::size_t before = job_.after ? job_.after(i) : no_item;
      assert(before == no_item || (before < job_.count && before != i));
      if (before == no_item || result_.items[before]) {
        ready_.push(i);
      } else {
        followers_[before].push_back(i);
      }
    }
  }

  /// The lowest item that may start.
  std::optional<Task> next() {
    if (ready_.empty()) return std::nullopt;
    Task task{.item = ready_.top()};
    ready_.pop();
    const std::size_t before = job_.after ? job_.after(task.item) : no_item;
    if (before != no_item) task.before = result_.items[before];
    return task;
  }

  void finish(std::size_t item, AnyValue value) {
    if (item >= job_.count || result_.items[item]) return;
    if (job_.on_item) job_.on_item(item, value.get());
    result_.items[item] = std::move(value);
    --result_.missing;
    if (followers_.empty()) return;
    for (const std::size_t f : followers_[item]) ready_.push(f);
    followers_[item].clear();
  }

  AnyResult& result() { return result_; }

 private:
  const AnyJob& job_;
  AnyResult result_;
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready_;
  std::vector<std::vector<std::size_t>> followers_;
};

// ---- what ranks tell each other ------------------------------------------------------------------------------------

Bytes pack_task(const AnyJob& job, const Task& task) {
  Packer pack;
  pack.integer(static_cast<std::int64_t>(task.item)).integer(task.before ? 1 : 0);
  if (task.before) pack.text(job.pack(task.before.get()));
  return pack.take();
}

Task unpack_task(const AnyJob& job, const Bytes& bytes) {
  Unpacker unpack(bytes);
  Task task{.item = static_cast<std::size_t>(unpack.integer())};
  if (unpack.integer() == 1) task.before = job.unpack(unpack.text());
  return task;
}

Bytes pack_failure(const Finished& finished) {
  Packer pack;
  pack.integer(static_cast<std::int64_t>(finished.item));
  try {
    std::rethrow_exception(finished.error);
  } catch (const Error& error) {
    pack.integer(static_cast<std::int64_t>(error.kind())).text(error.message()).text(error.hint());
  } catch (const std::exception& error) {
    pack.integer(-1).text(error.what());
  } catch (...) {
    pack.integer(-1).text("unknown trouble");
  }
  return pack.take();
}

Finished unpack_failure(const Bytes& bytes) {
  Unpacker unpack(bytes);
  Finished finished{.item = static_cast<std::size_t>(unpack.integer())};
  const std::int64_t error_kind = unpack.integer();
  const std::string message = unpack.text();
  finished.error = error_kind < 0
                       ? std::make_exception_ptr(std::runtime_error(message))
                       : std::make_exception_ptr(Error(static_cast<ErrorKind>(error_kind), message, {}, unpack.text()));
  return finished;
}

/// The other ranks as the leader sees them.
class Followers {
 public:
  Followers(const AnyJob& job, Team& team) : job_(job), team_(team), free_(static_cast<std::size_t>(team.size()), 0) {}
  /// Left by an exception, the job has no end: the followers must not wait for it.
  ~Followers() {
    if (!ended_) team_.quit();
  }

  /// A rank with a free thread, or 0.
  int idle() const {
    for (std::size_t r = 1; r < free_.size(); ++r) {
      if (free_[r] > 0) return static_cast<int>(r);
    }
    return 0;
  }

  void give(int rank, const Task& task) {
    --free_[static_cast<std::size_t>(rank)];
    ++inside_;
    team_.send(rank, Tag::task, pack_task(job_, task));
  }

  void collect(std::vector<Finished>& finished) {
    while (const auto message = team_.receive()) {
      const auto r = static_cast<std::size_t>(message->rank);
      if (message->tag == Tag::ready) {
        free_[r] = Unpacker(message->bytes).integer();
        present_.push_back(message->rank);
      } else if (message->tag == Tag::result || message->tag == Tag::failed || message->tag == Tag::stopped) {
        ++free_[r];
        --inside_;
        if (message->tag == Tag::stopped) {
          finished.push_back({.stopped = true});
        } else if (message->tag == Tag::failed) {
          finished.push_back(unpack_failure(message->bytes));
        } else {
          Unpacker unpack(message->bytes);
          const auto item = static_cast<std::size_t>(unpack.integer());
          finished.push_back({.item = item, .value = job_.unpack(unpack.text())});
        }
      }
    }
  }

  /// Asks all to give up what they are at.
  void stop() {
    if (stop_asked_) return;
    stop_asked_ = true;
    for (const int r : present_) team_.send(r, Tag::stop);
  }

  /// Waits for those who are late, then tells all that the job is over, with its results if they are to be shared.
  void end(const AnyResult& result, bool share) {
    std::vector<Finished> none;
    const auto late = [&] {
      for (int r = 1; r < team_.size(); ++r) {
        if (!team_.has_gone(r) && std::find(present_.begin(), present_.end(), r) == present_.end()) return true;
      }
      return false;
    };
    while (late()) {
      collect(none);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    constexpr std::size_t batch = 1 << 20;
    Packer pack;
    const auto send = [&](Tag tag) {
      const Bytes bytes = pack.take();
      pack = {};
      for (const int r : present_) team_.send(r, tag, bytes);
    };
    for (std::size_t i = 0; share && !present_.empty() && i < result.items.size(); ++i) {
      if (!result.items[i]) continue;
      pack.integer(static_cast<std::int64_t>(i)).text(job_.pack(result.items[i].get()));
      if (pack.size() > batch) send(Tag::results);
    }
    send(Tag::results);
    pack.integer(static_cast<std::int64_t>(result.resumed));
    send(Tag::end);
    ended_ = true;
  }

  std::size_t inside() const { return inside_; }

 private:
  const AnyJob& job_;
  Team& team_;
  std::vector<std::int64_t> free_;  // threads of each rank that wait for a task
  std::vector<int> present_;
  std::size_t inside_ = 0;
  bool ended_ = false, stop_asked_ = false;
};

// ---- leader and follower -------------------------------------------------------------------------------------------

AnyResult lead(const AnyJob& job, const WorkOptions& options, int threads, Team& team) {
  Ledger ledger(job);
  AnyResult& result = ledger.result();
  std::optional<Checkpoint> checkpoint;
  Followers followers(job, team);
  if (!options.checkpoint.empty()) {
    checkpoint.emplace(options.checkpoint, job.identity,
                       [&](std::size_t item, const Bytes& bytes) { ledger.finish(item, job.unpack(bytes)); });
    result.resumed = job.count - result.missing;
  }
  ledger.open();

  const bool alone = team.size() == 1;
  const std::size_t at_home = static_cast<std::size_t>(threads) * (alone ? 4 : 1);  // others may be idle
  const auto pause = std::chrono::milliseconds(alone ? 50 : 1);
  const auto start = Clock::now();
  auto last_report = start - std::chrono::seconds(1);
  bool stopping = false, asked = false;
  Finished failure{.item = no_item};
  Crew crew(job, std::min(threads, static_cast<int>(std::min<std::size_t>(result.missing, 1 << 20))));
  while (true) {
    while (!stopping && crew.inside() < at_home) {
      const auto task = ledger.next();
      if (!task) break;
      crew.add(*task);
    }
    for (int r = followers.idle(); !stopping && r > 0; r = followers.idle()) {
      const auto task = ledger.next();
      if (!task) break;
      followers.give(r, *task);
    }
    if (crew.inside() == 0 && followers.inside() == 0) break;

    std::vector<Finished> finished = crew.collect(pause);
    followers.collect(finished);
    for (Finished& f : finished) {
      if (f.stopped) continue;
      if (f.error) {
        stopping = true;
        if (f.item < failure.item) failure = std::move(f);
        continue;
      }
      if (checkpoint) checkpoint->append(f.item, job.pack(f.value.get()));
      ledger.finish(f.item, std::move(f.value));
    }
    if (checkpoint) checkpoint->flush(false);
    const auto now = Clock::now();
    if (options.progress && now - last_report > std::chrono::milliseconds(100)) {
      last_report = now;
      const std::size_t done = job.count - result.missing;
      const double seconds = std::chrono::duration<double>(now - start).count();
      const double rate = static_cast<double>(done - result.resumed) / std::max(seconds, 1e-9);
      if (!options.progress({done, job.count, result.resumed, rate})) stopping = asked = true;
    }
    if (stopping) crew.drop_waiting();
    if (asked) {  // after a failure alone the others finish: the lowest of them is told
      crew.ask_to_stop();
      followers.stop();
    }
  }
  if (checkpoint) checkpoint->flush(true);
  if (failure.error) std::rethrow_exception(failure.error);
  followers.end(result, options.share);
  return std::move(result);
}

AnyResult follow(const AnyJob& job, int threads, Team& team) {
  AnyResult result;
  result.items.resize(job.count);
  result.missing = job.count;
  Crew crew(job, threads);
  team.send(0, Tag::ready, Packer().integer(threads).take());
  while (true) {
    for (const Finished& f : crew.collect(std::chrono::milliseconds(1))) {
      if (f.stopped) {
        team.send(0, Tag::stopped);
      } else if (f.error) {
        team.send(0, Tag::failed, pack_failure(f));
      } else {
        team.send(0, Tag::result,
                  Packer().integer(static_cast<std::int64_t>(f.item)).text(job.pack(f.value.get())).take());
      }
    }
    while (const auto message = team.receive()) {
      switch (message->tag) {
        case Tag::task: crew.add(unpack_task(job, message->bytes)); break;
        case Tag::results:
          for (Unpacker unpack(message->bytes); !unpack.empty();) {
            const auto item = static_cast<std::size_t>(unpack.integer());
            result.items.at(item) = job.unpack(unpack.text());
            --result.missing;
          }
          break;
        case Tag::end: result.resumed = static_cast<std::size_t>(Unpacker(message->bytes).integer()); return result;
        case Tag::stop: crew.ask_to_stop(); break;
        case Tag::quit: throw Error(ErrorKind::usage, "rank 0 has left");
        default: break;
      }
    }
  }
}

}  // namespace

int default_threads() {
  const int allowed = static_cast<int>(std::thread::hardware_concurrency());  // what this process is bound to
  const int all = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  const bool bound = allowed < all;  // then nobody else is there
  return std::max(1, bound ? allowed : all / Team::of_this_process().neighbours());
}

int rank() { return Team::of_this_process().rank(); }
int ranks() { return Team::of_this_process().size(); }

AnyResult run_any(const AnyJob& job, const WorkOptions& options) {
  const int threads = options.threads > 0 ? options.threads : default_threads();
  Team& team = Team::of_this_process();
  return team.rank() == 0 ? lead(job, options, threads, team) : follow(job, threads, team);
}

}  // namespace saltus
