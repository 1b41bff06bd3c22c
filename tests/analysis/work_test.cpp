#include "analysis/work.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "../folder.hpp"
#include "base/error.hpp"

namespace saltus {
namespace {

namespace fs = std::filesystem;

void rest(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

Bytes as_it_is(const Bytes& bytes) { return bytes; }

Bytes square(std::size_t item) { return Packer().integer(static_cast<std::int64_t>(item * item)).take(); }

Job<Bytes> squares(std::size_t count) {
  return {.count = count,
          .run = [](std::size_t i, const Bytes*, Worker&, const std::stop_token&) { return square(i); },
          .pack = as_it_is,
          .unpack = as_it_is,
          .identity = "squares"};
}

/// Five chains, each item the sum of its own number and the result before it.
Job<Bytes> chains(std::size_t count) {
  return {.count = count,
          .after = [](std::size_t i) { return i < 5 ? no_item : i - 5; },
          .run =
              [](std::size_t i, const Bytes* before, Worker&, const std::stop_token&) {
                const std::int64_t sum = before ? Unpacker(*before).integer() : 0;
                return Packer().integer(sum + static_cast<std::int64_t>(i)).take();
              },
          .pack = as_it_is,
          .unpack = as_it_is,
          .identity = "chains"};
}

std::int64_t chain_sum(std::size_t item) {
  std::int64_t sum = 0;
  for (std::size_t i = item % 5; i <= item; i += 5) sum += static_cast<std::int64_t>(i);
  return sum;
}

Bytes all_of(const WorkResult<Bytes>& result) {
  Bytes all;
  for (const auto& item : result.items) all += item ? *item : "missing";
  return all;
}

TEST(Work, GivesEveryItemItsResult) {
  const WorkResult<Bytes> result = run_job(squares(1000), {.threads = 3});
  ASSERT_EQ(result.items.size(), 1000u);
  EXPECT_EQ(result.missing, 0u);
  for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(result.items[i], square(i));
}

struct Noted {
  std::int64_t value = 0;
};

TEST(Work, ValuesBecomeBytesOnlyForFiles) {
  const ScratchFolder scratch;
  std::atomic<int> packed = 0, unpacked = 0;
  std::map<std::size_t, std::int64_t> told;
  const std::thread::id here = std::this_thread::get_id();
  const Job<Noted> job{
      .count = 30,
      .after = [](std::size_t i) { return i == 0 ? no_item : i - 1; },
      .run = [](std::size_t i, const Noted* before, Worker&,
                const std::stop_token&) { return Noted{(before ? before->value : 0) + static_cast<std::int64_t>(i)}; },
      .pack = [&](const Noted& n) { return ++packed, Packer().integer(n.value).take(); },
      .unpack = [&](const Bytes& bytes) { return ++unpacked, Noted{Unpacker(bytes).integer()}; },
      .on_item =
          [&](std::size_t item, const Noted& n) {
            EXPECT_EQ(std::this_thread::get_id(), here);
            told[item] = n.value;
          },
      .identity = "sums"};
  const auto all = [&](const WorkResult<Noted>& result) {
    for (std::int64_t i = 0; i < 30; ++i) {
      EXPECT_EQ(result.items[static_cast<std::size_t>(i)]->value, i * (i + 1) / 2);
      EXPECT_EQ(told.at(static_cast<std::size_t>(i)), i * (i + 1) / 2);
    }
    told.clear();
  };
  all(run_job(job, {.threads = 3}));
  EXPECT_EQ(packed + unpacked, 0);
  all(run_job(job, {.threads = 3, .checkpoint = scratch.path / "c"}));
  EXPECT_EQ(packed, 30);
  EXPECT_EQ(unpacked, 0);
  all(run_job(job, {.threads = 3, .checkpoint = scratch.path / "c"}));  // all of it from the file
  EXPECT_EQ(packed, 30);
  EXPECT_EQ(unpacked, 30);
}

TEST(Work, NothingToDoIsDone) { EXPECT_EQ(run_job(squares(0), {}).missing, 0u); }

TEST(Work, ItemsSeeTheResultBeforeThem) {
  for (const int threads : {1, 2, 7}) {
    const WorkResult<Bytes> result = run_job(chains(203), {.threads = threads});
    for (std::size_t i = 0; i < 203; ++i) ASSERT_EQ(Unpacker(*result.items[i]).integer(), chain_sum(i)) << threads;
  }
}

TEST(Work, ChainsMayRunFromTheLastItemToTheFirst) {
  Job<Bytes> job = chains(10);
  job.after = [](std::size_t i) { return i == 9 ? no_item : i + 1; };
  const WorkResult<Bytes> result = run_job(job, {.threads = 2});
  EXPECT_EQ(Unpacker(*result.items[0]).integer(), 45);
}

TEST(Work, EveryThreadHasOneWorkerOfItsOwn) {
  std::atomic<int> made = 0;
  Job<Bytes> job{.count = 200,
                 .run =
                     [](std::size_t, const Bytes*, Worker& worker, const std::stop_token&) {
                       int& uses = *std::any_cast<std::shared_ptr<int>&>(worker);
                       const int before = uses++;
                       rest(0);
                       EXPECT_EQ(uses, before + 1);
                       return Bytes();
                     },
                 .make_worker =
                     [&] {
                       ++made;
                       return Worker(std::make_shared<int>(0));
                     }};
  run_job(job, {.threads = 4});
  EXPECT_GE(made, 1);
  EXPECT_LE(made, 4);
}

TEST(Work, UsesAllThreadsAtOnce) {
  std::atomic<int> inside = 0, most = 0;
  Job<Bytes> job{.count = 40, .run = [&](std::size_t, const Bytes*, Worker&, const std::stop_token&) {
                   const int now = ++inside;
                   for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
                   }
                   rest(5);
                   --inside;
                   return Bytes();
                 }};
  run_job(job, {.threads = 4});
  EXPECT_EQ(most, 4);
}

TEST(Work, AnExceptionOfAnItemComesOutOnceTheOthersHaveStopped) {
  std::atomic<int> running = 0;
  Job<Bytes> job{.count = 1000, .run = [&](std::size_t i, const Bytes*, Worker&, const std::stop_token&) {
                   ++running;
                   rest(i == 20 ? 1 : 3);
                   --running;
                   if (i == 20 || i == 22) throw Error(ErrorKind::model, fmt::format("item {}", i), {}, "hint");
                   return Bytes();
                 }};
  try {
    run_job(job, {.threads = 4});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "item 20");
    EXPECT_EQ(running, 0);
  }
}

TEST(Work, AskedToStopItFinishesWhatRunsAndSaysWhatIsMissing) {
  std::atomic<std::size_t> begun = 0;
  Job<Bytes> job{.count = 500, .run = [&](std::size_t i, const Bytes*, Worker&, const std::stop_token&) {
                   ++begun;
                   rest(5);
                   return square(i);
                 }};
  const WorkResult<Bytes> result =
      run_job(job, {.threads = 2, .progress = [](const WorkProgress& p) { return p.done < 10; }});
  EXPECT_GT(result.missing, 0u);
  EXPECT_EQ(result.missing, 500 - begun);
  std::size_t there = 0;
  for (std::size_t i = 0; i < 500; ++i) {
    if (!result.items[i]) continue;
    EXPECT_EQ(*result.items[i], square(i));
    ++there;
  }
  EXPECT_EQ(there, 500 - result.missing);
}

TEST(Work, TellsHowFarItIs) {
  std::vector<WorkProgress> told;
  Job<Bytes> job{.count = 60, .run = [](std::size_t, const Bytes*, Worker&, const std::stop_token&) {
                   rest(10);
                   return Bytes();
                 }};
  run_job(job, {.threads = 2, .progress = [&](const WorkProgress& p) {
                  told.push_back(p);
                  return true;
                }});
  ASSERT_GE(told.size(), 2u);
  EXPECT_EQ(told.back().count, 60u);
  EXPECT_GT(told.back().done, told.front().done);
  EXPECT_GT(told.back().per_second, 0);  // as the machine allows
  EXPECT_LT(told.back().per_second, 210) << "two threads rest 10 ms for each";
}

TEST(Checkpoint, OfAStoppedJobIsTakenUp) {
  const ScratchFolder scratch;
  const WorkOptions soon{
      .threads = 2, .checkpoint = scratch.path / "c", .progress = [](const WorkProgress& p) { return p.done < 20; }};
  Job<Bytes> job = chains(100);
  const auto quick = job.run;
  job.run = [&](std::size_t i, const Bytes* before, Worker& w, const std::stop_token& stop) {
    rest(5);
    return quick(i, before, w, stop);
  };
  const WorkResult<Bytes> first = run_job(job, soon);
  ASSERT_GT(first.missing, 0u);
  std::atomic<std::size_t> computed = 0;
  job.run = [&](std::size_t i, const Bytes* before, Worker& w, const std::stop_token& stop) {
    ++computed;
    return quick(i, before, w, stop);
  };
  const WorkResult<Bytes> second = run_job(job, {.threads = 2, .checkpoint = scratch.path / "c"});
  EXPECT_EQ(computed, first.missing);
  EXPECT_EQ(second.resumed, 100 - first.missing);
  EXPECT_EQ(all_of(second), all_of(run_job(chains(100), {.threads = 1})));
}

TEST(Work, AnItemThatIsAskedToStopEndsAtOnceAndHasNoResult) {
  Job<Bytes> job{.count = 20, .run = [](std::size_t i, const Bytes*, Worker&, const std::stop_token& stop) {
                   if (i < 2) return square(i);
                   for (int k = 0; k < 30'000; ++k) {
                     rest(1);
                     if (stop.stop_requested()) throw Stopped{};
                   }
                   return square(i);
                 }};
  const auto start = std::chrono::steady_clock::now();
  const WorkResult<Bytes> result =
      run_job(job, {.threads = 2, .progress = [](const WorkProgress& p) { return p.done < 2; }});
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_EQ(result.missing, 18u);
  EXPECT_EQ(result.items[1], square(1));
  EXPECT_FALSE(result.items[2]);
}

TEST(Work, AfterAFailureAThreadHasANewWorker) {
  std::atomic<int> damaged = 0;
  Job<Bytes> job{.count = 50,
                 .run = [&](std::size_t, const Bytes*, Worker& worker, const std::stop_token&) -> Bytes {
                   if (std::exchange(std::any_cast<bool&>(worker), true)) ++damaged;
                   throw std::bad_alloc();
                 },
                 .make_worker = [] { return Worker(false); }};
  EXPECT_THROW(run_job(job, {.threads = 1}), std::bad_alloc);
  EXPECT_EQ(damaged, 0);
}

TEST(Work, AskedToStopAfterAFailureItWaitsForNoLongItem) {
  Job<Bytes> job{.count = 2, .run = [](std::size_t i, const Bytes*, Worker&, const std::stop_token& stop) {
                   if (i == 0) throw Error(ErrorKind::model, "item 0");
                   for (int k = 0; k < 30'000 && !stop.stop_requested(); ++k) rest(1);
                   return square(i);
                 }};
  const auto start = std::chrono::steady_clock::now();
  const auto since = [&] { return std::chrono::steady_clock::now() - start; };
  EXPECT_THROW(
      run_job(job, {.threads = 2,
                    .progress = [&](const WorkProgress&) { return since() < std::chrono::milliseconds(300); }}),
      Error);
  EXPECT_LT(since(), std::chrono::seconds(10));
}

TEST(Work, IsDoneByTheCallerWhereNoThreadIsToBeHad) {
  const Bytes wanted = all_of(run_job(squares(50), {.threads = 1}));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit none{1, 1};
    ::setrlimit(RLIMIT_NPROC, &none);
    if (::getuid() == 0 && ::setuid(65534) != 0) ::_exit(3);  // limits do not hold root
    try {
      ::_exit(all_of(run_job(squares(50), {.threads = 4})) == wanted ? 0 : 1);
    } catch (...) {
      ::_exit(2);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Checkpoint, TornAnywhereGivesWhatStandsBefore) {
  const ScratchFolder scratch;
  const fs::path file = scratch.path / "c";
  run_job(squares(6), {.threads = 1, .checkpoint = file});
  std::ostringstream whole;
  whole << std::ifstream(file, std::ios::binary).rdbuf();
  const std::string bytes = whole.str();
  const Bytes expected = all_of(run_job(squares(6), {}));
  std::set<std::size_t> resumed;
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes.substr(0, cut);
    const WorkResult<Bytes> again = run_job(squares(6), {.threads = 1, .checkpoint = file});
    ASSERT_EQ(all_of(again), expected) << cut;
    resumed.insert(again.resumed);
    ASSERT_EQ(fs::file_size(file), bytes.size()) << cut;
  }
  EXPECT_EQ(resumed, (std::set<std::size_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(Checkpoint, WithAChangedByteLosesTheRecordsFromThereOnOnly) {
  const ScratchFolder scratch;
  const fs::path file = scratch.path / "c";
  run_job(squares(6), {.threads = 1, .checkpoint = file});
  std::fstream change(file, std::ios::binary | std::ios::in | std::ios::out);
  change.seekp(-35, std::ios::end);  // in the last but one of 32 bytes each
  change.put('x');
  change.close();
  const WorkResult<Bytes> again = run_job(squares(6), {.threads = 1, .checkpoint = file});
  EXPECT_EQ(again.resumed, 4u);
  EXPECT_EQ(all_of(again), all_of(run_job(squares(6), {})));
}

TEST(Checkpoint, OfAnotherComputationIsRefused) {
  const ScratchFolder scratch;
  run_job(squares(5), {.checkpoint = scratch.path / "c"});
  const auto size = fs::file_size(scratch.path / "c");
  try {
    run_job(chains(5), {.checkpoint = scratch.path / "c"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::file);
    EXPECT_NE(error.message().find("another computation"), std::string::npos);
  }
  EXPECT_EQ(fs::file_size(scratch.path / "c"), size);
}

TEST(Checkpoint, ThatCannotBeWrittenIsSaidBeforeAnythingIsComputed) {
  Job<Bytes> job = squares(5);
  job.run = [](std::size_t, const Bytes*, Worker&, const std::stop_token&) -> Bytes {
    throw std::logic_error("computed");
  };
  EXPECT_THROW(run_job(job, {.checkpoint = "/nowhere/c"}), Error);
}

/// In a child process, since a limit cannot be lifted again.
TEST(Checkpoint, OnAFullDiskKeepsWhatWasWritten) {
  const ScratchFolder scratch;
  const fs::path file = scratch.path / "c";
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{300, 300};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      run_job(squares(100), {.threads = 2, .checkpoint = file});
    } catch (const Error& error) {
      ::_exit(error.kind() == ErrorKind::file && !error.hint().empty() ? 7 : 8);
    }
    ::_exit(9);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(WEXITSTATUS(status), 7);
  const WorkResult<Bytes> again = run_job(squares(100), {.threads = 2, .checkpoint = file});
  EXPECT_EQ(again.resumed, 8u);  // a header of 35 bytes, and records of 32
  EXPECT_EQ(all_of(again), all_of(run_job(squares(100), {})));
}

TEST(Checkpoint, OfAJobKilledAgainAndAgainEndsWithTheSameResult) {
  const ScratchFolder scratch;
  const fs::path file = scratch.path / "c";
  Job<Bytes> job = chains(300);
  const auto quick = job.run;
  job.run = [&](std::size_t i, const Bytes* before, Worker& w, const std::stop_token& stop) {
    rest(1);
    return quick(i, before, w, stop);
  };
  std::size_t kills = 0;
  for (int delay = 5; kills < 8; delay += 3, ++kills) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      run_job(job, {.threads = 2, .checkpoint = file});
      ::_exit(0);
    }
    rest(delay);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  const WorkResult<Bytes> result = run_job(chains(300), {.threads = 2, .checkpoint = file});
  EXPECT_GT(result.resumed, 0u);
  EXPECT_EQ(all_of(result), all_of(run_job(chains(300), {})));
}

#ifdef SALTUS_MPIRUN

/// Not a test of its own: what each rank of the tests below does. Two jobs, the second made of the results of the
/// first; rank 0 leaves the result in a file.
TEST(Ranks, DISABLED_Child) {
  const char* file = std::getenv("SALTUS_TEST_FILE");
  ASSERT_NE(file, nullptr);
  const bool fail = std::getenv("SALTUS_TEST_FAIL") != nullptr;
  const WorkResult<Bytes> first = run_job(chains(200), {.threads = 2});
  Job<Bytes> job{.count = 300, .run = [&](std::size_t i, const Bytes*, Worker&, const std::stop_token&) {
                   rest(1);
                   if (fail && i == 150) throw Error(ErrorKind::model, "item 150", {}, "a hint");
                   return *first.items[i % 200] + square(i) + Bytes(i % 3 == 0 ? 100'000 : 0, 'x');
                 }};
  job.pack = job.unpack = as_it_is;
  Bytes all;
  try {
    const WorkResult<Bytes> second = run_job(job, {.threads = 2, .share = false});
    all = all_of(first) + all_of(second);
    if (rank() > 0) {
      EXPECT_EQ(second.missing, 300u);
    }
  } catch (const Error& error) {
    all = error.message() + error.hint();
  }
  if (rank() == 0) std::ofstream(file, std::ios::binary) << ranks() << all;
}

std::string under_mpirun(int count, const std::string& environment) {
  const ScratchFolder scratch;
  const fs::path file = scratch.path / "result";
  const std::string command = fmt::format(
      "{} ASAN_OPTIONS=detect_leaks=0 SALTUS_TEST_FILE={} {} --allow-run-as-root --oversubscribe -n {} {} "
      "--gtest_also_run_disabled_tests --gtest_filter=Ranks.DISABLED_Child > {} 2>&1",
      environment, file.string(), SALTUS_MPIRUN, count, fs::read_symlink("/proc/self/exe").string(),
      (scratch.path / "talk").string());
  const int status = std::system(command.c_str());
  std::ostringstream talk, result;
  talk << std::ifstream(scratch.path / "talk").rdbuf();
  EXPECT_EQ(status, 0) << talk.str();
  result << std::ifstream(file, std::ios::binary).rdbuf();
  return result.str();
}

Bytes expected_of_child() {
  Bytes all = all_of(run_job(chains(200), {}));
  const WorkResult<Bytes> first = run_job(chains(200), {});
  for (std::size_t i = 0; i < 300; ++i) all += *first.items[i % 200] + square(i) + Bytes(i % 3 == 0 ? 100'000 : 0, 'x');
  return all;
}

TEST(Ranks, GiveTheSameBytesAsOneProcess) {
  for (const int count : {2, 4}) EXPECT_TRUE(under_mpirun(count, "") == fmt::format("{}", count) + expected_of_child());
}

TEST(Ranks, AnErrorOfAnItemReachesRankZero) { EXPECT_EQ(under_mpirun(2, "SALTUS_TEST_FAIL=1"), "2item 150a hint"); }

#endif

}  // namespace
}  // namespace saltus
