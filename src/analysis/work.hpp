// Many independent pieces of work on all cores of one machine or many: a Job in, the value of every item out.
//
// The result does not depend on the number of threads or ranks: an item sees its own number and, where it asks for
// one, the value of the item before it, and nothing else. Under mpirun every rank calls run_job with the same Job;
// rank 0 hands out items, keeps the checkpoint and reports progress. A value becomes bytes only where it goes to a
// checkpoint or another rank.
//
//     Job<double> job{.count = 400, .run = [&](size_t i, const double*, Worker& worker, const std::stop_token& stop) {
//                       auto& simulator = *std::any_cast<std::shared_ptr<Simulator>&>(worker);
//                       return ...;
//                     },
//                     .pack = [](const double& v) { return Packer().number(v).take(); },
//                     .unpack = [](const Bytes& bytes) { return Unpacker(bytes).number(); },
//                     .make_worker = [&] { return Worker(std::make_shared<Simulator>(program)); }, .identity = "..."};
//     const WorkResult<double> result = run_job(job, {.threads = 2, .checkpoint = "out/checkpoint"});
#pragma once

#include <any>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
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

template <class Value>
struct Job {
  std::size_t count = 0;  ///< items are numbered 0 .. count-1; an item should take a millisecond or more
  /// The item whose value item i needs, or no_item. No function: nobody needs any.
  std::function<std::size_t(std::size_t item)> after = {};
  /// Computes an item; `before` is the value of after(item), or null. Called from many threads at once. One that takes
  /// longer than a moment asks `stop` now and then, and throws Stopped if it says so.
  std::function<Value(std::size_t item, const Value* before, Worker& worker, const std::stop_token& stop)> run;
  std::function<Bytes(const Value&)> pack;    ///< for files and other ranks
  std::function<Value(const Bytes&)> unpack;  ///< what `pack` made
  /// Told every item that there is, those of a checkpoint first, then each as it is finished: in no order, by the
  /// calling thread (of rank 0).
  std::function<void(std::size_t item, const Value& value)> on_item = {};
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

template <class Value>
struct WorkResult {
  std::vector<std::optional<Value>> items;  ///< nothing for those not computed
  std::size_t missing = 0;                  ///< how many those are; above 0 only if it was asked to stop
  std::size_t resumed = 0;                  ///< how many came from the checkpoint
};

/// A job whose values are known to its own functions alone: what run_job hands on, to be compiled once.
using AnyValue = std::shared_ptr<void>;
struct AnyJob {
  std::size_t count = 0;
  std::function<std::size_t(std::size_t item)> after;
  std::function<AnyValue(std::size_t item, const void* before, Worker& worker, const std::stop_token& stop)> run;
  std::function<Bytes(const void* value)> pack;
  std::function<AnyValue(const Bytes& bytes)> unpack;
  std::function<void(std::size_t item, const void* value)> on_item;
  std::function<Worker()> make_worker;
  std::string identity;
};
struct AnyResult {
  std::vector<AnyValue> items;  ///< null for those not computed
  std::size_t missing = 0, resumed = 0;
};
AnyResult run_any(const AnyJob& job, const WorkOptions& options);

/// Runs what the checkpoint does not have yet. An exception of an item is thrown here once the running ones have
/// finished (of several that of the lowest item). Throws Error(file) for a checkpoint that cannot be written.
template <class Value>
WorkResult<Value> run_job(const Job<Value>& job, const WorkOptions& options) {
  const auto of = [](const void* value) -> const Value& { return *static_cast<const Value*>(value); };
  AnyJob any{.count = job.count, .after = job.after, .make_worker = job.make_worker, .identity = job.identity};
  any.run = [&](std::size_t item, const void* before, Worker& worker, const std::stop_token& stop) -> AnyValue {
    return std::make_shared<Value>(job.run(item, static_cast<const Value*>(before), worker, stop));
  };
  any.pack = [&](const void* value) { return job.pack(of(value)); };
  any.unpack = [&](const Bytes& bytes) -> AnyValue { return std::make_shared<Value>(job.unpack(bytes)); };
  if (job.on_item) any.on_item = [&](std::size_t item, const void* value) { job.on_item(item, of(value)); };
  AnyResult done = run_any(any, options);
  WorkResult<Value> result{
      .items = std::vector<std::optional<Value>>(done.items.size()), .missing = done.missing, .resumed = done.resumed};
  for (std::size_t i = 0; i < done.items.size(); ++i) {
    if (!done.items[i]) continue;
    result.items[i] = std::move(*static_cast<Value*>(done.items[i].get()));
    done.items[i].reset();
  }
  return result;
}

/// The threads meant by 0.
int default_threads();

/// This process among those of one mpirun: 0 prints and writes, and is the only one without mpirun.
int rank();
int ranks();

}  // namespace saltus
