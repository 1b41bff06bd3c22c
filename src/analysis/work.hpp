// Many independent pieces of work on all cores of one machine or many: a Job in, the bytes of every item out.
//
// The result does not depend on the number of threads or ranks: an item sees its own number and, where it asks for
// one, the result of the item before it, and nothing else. Under mpirun every rank calls run_job with the same Job;
// rank 0 hands out items, keeps the checkpoint and reports progress.
//
//     Job job{.count = 400, .run = [&](size_t i, const Bytes*, Worker& worker, const std::stop_token& stop) {
//               auto& simulator = *std::any_cast<std::shared_ptr<Simulator>&>(worker);
//               return Packer().number(...).take();
//             },
//             .make_worker = [&] { return Worker(std::make_shared<Simulator>(program)); }, .identity = "..."};
//     const WorkResult result = run_job(job, {.threads = 2, .checkpoint = "out/checkpoint"});
#pragma once

#include <any>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "analysis/bytes.hpp"

namespace saltus {

/// State that one thread keeps from item to item (a Simulator, scratch memory); never shared between threads.
using Worker = std::any;

constexpr std::size_t no_item = static_cast<std::size_t>(-1);

/// Thrown by an item that was asked to stop: it has no result, and nothing is wrong.
struct Stopped {};

struct Job {
  std::size_t count = 0;  ///< items are numbered 0 .. count-1; an item should take a millisecond or more
  /// The item whose result item i needs, or no_item. No function: nobody needs any.
  std::function<std::size_t(std::size_t item)> after = {};
  /// Computes an item; `before` is the result of after(item), or null. Called from many threads at once. One that takes
  /// longer than a moment asks `stop` now and then, and throws Stopped if it says so.
  std::function<Bytes(std::size_t item, const Bytes* before, Worker& worker, const std::stop_token& stop)> run;
  std::function<Worker()> make_worker = {};  ///< called once in every thread that works
  std::string identity = {};                 ///< everything the result depends on: a checkpoint of another is refused
};

struct WorkProgress {
  std::size_t done = 0, count = 0;
  std::size_t resumed = 0;  ///< of those done, how many came from the checkpoint
  double per_second = 0;    ///< items finished in this call, over its time so far
};

struct WorkOptions {
  /// 0: the cores of this machine, shared with the other ranks on it. Where the system grants fewer, those; where it
  /// grants none, the calling thread works.
  int threads = 0;
  /// Where finished items are kept for the case that this program is killed; if the file exists, the computation goes
  /// on from it. Removing it in the end is the caller's business, after the results are safe. Empty: none.
  std::filesystem::path checkpoint = {};
  /// Called about ten times a second in the calling thread (of rank 0); false: running items are asked to
  /// stop, no new ones start.
  std::function<bool(const WorkProgress&)> progress = {};
  bool share = true;  ///< every rank gets the results; false: only rank 0, the others get none
};

struct WorkResult {
  std::vector<std::optional<Bytes>> items;  ///< nothing for those not computed
  std::size_t missing = 0;                  ///< how many those are; above 0 only if it was asked to stop
  std::size_t resumed = 0;                  ///< how many came from the checkpoint
};

/// Runs what the checkpoint does not have yet. An exception of an item is thrown here once the running ones have
/// finished (of several that of the lowest item). Throws Error(file) for a checkpoint that cannot be written.
WorkResult run_job(const Job& job, const WorkOptions& options);

/// The threads meant by 0.
int default_threads();

/// This process among those of one mpirun: 0 prints and writes, and is the only one without mpirun.
int rank();
int ranks();

}  // namespace saltus
