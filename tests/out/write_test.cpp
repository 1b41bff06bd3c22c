#include "out/write.hpp"

#include <sys/resource.h>

#include <charconv>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

#include "../folder.hpp"

namespace saltus {
namespace {

namespace fs = std::filesystem;

template <class F>
std::string complaint(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::file);
    return error.report();
  }
  return "";
}

/// A disk that takes no more than so many bytes per file, for the length of a test.
struct SmallDisk {
  rlimit before{};
  explicit SmallDisk(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit now{bytes, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~SmallDisk() {
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, SIG_DFL);
  }
};

TEST(Csv, HasNamesThenRows) {
  Table table("events");
  table.add_numbers("t").add_texts("kind").add_numbers("v - v_0");
  table.append({0.1, "slide", -0.0});
  table.append({1e300, "a,b", 1.0 / 3});
  table.append({5e-324, "say \"hi\"\nthere", std::numeric_limits<double>::infinity()});
  table.append_gap();
  const fs::path folder = fresh_folder();
  write_csv(folder / "events.csv", table);
  EXPECT_EQ(content(folder / "events.csv"),
            "t,kind,v - v_0\n"
            "0.1,slide,-0\n"
            "1e+300,\"a,b\",0.3333333333333333\n"
            "5e-324,\"say \"\"hi\"\"\nthere\",inf\n"
            "nan,,nan\n");
}

TEST(Csv, EveryDoubleReadsBackBitForBit) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t bits = random();
    double value;
    std::memcpy(&value, &bits, sizeof value);
    if (std::isnan(value)) continue;
    std::string text;
    append_number(text, value);
    EXPECT_LE(text.size(), 24u);
    const double back = std::strtod(text.c_str(), nullptr);
    ASSERT_EQ(std::memcmp(&back, &value, sizeof value), 0) << text;
  }
}

TEST(Csv, NaNHasNoSign) {
  std::string text;
  append_number(text, -std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(text, "nan");
}

TEST(Csv, OfNothingIsOneLine) {
  const fs::path folder = fresh_folder();
  write_csv(folder / "a.csv", Table());
  EXPECT_EQ(content(folder / "a.csv"), "\n");
  write_csv(folder / "b.csv", Table().add_numbers("t").add_numbers("y"));
  EXPECT_EQ(content(folder / "b.csv"), "t,y\n");
}

TEST(Write, ReplacesAFileWholeOrNotAtAll) {
  const fs::path folder = fresh_folder(), path = folder / "run.toml";
  write_text(path, "old");
  EXPECT_THROW(write_atomically(path,
                                [&](const fs::path& temporary) {
                                  EXPECT_EQ(temporary.parent_path(), folder);
                                  std::ofstream(temporary) << "half";
                                  throw std::runtime_error("interrupted");
                                }),
               std::runtime_error);
  EXPECT_EQ(content(path), "old");
  write_text(path, "new");
  EXPECT_EQ(content(path), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
}

TEST(Write, AFullDiskIsAnErrorAndLeavesNothing) {
  const fs::path folder = fresh_folder();
  Table table;
  table.add_numbers("t", Numbers(100'000, 1.0 / 3));
  const SmallDisk disk(50'000);
  const std::string csv = complaint([&] { write_csv(folder / "data.csv", table); });
  EXPECT_NE(csv.find((folder / "data.csv").string()), csv.npos) << csv;
  EXPECT_NE(csv.find("`folder` DIR"), csv.npos) << csv;
  EXPECT_TRUE(fs::is_empty(folder));
  const std::string bytes(100'000, 'x');
  EXPECT_NE(complaint([&] { write_text(folder / "run.toml", bytes); }), "");
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST(Write, AFullDiskIsAnErrorForHdf5Too) {
  const fs::path folder = fresh_folder();
  std::mt19937_64 random(1);
  Numbers noise;
  for (int i = 0; i < 100'000; ++i) noise.push_back(static_cast<double>(random()));
  const std::vector<Table> tables = {Table().add_numbers("noise", noise)};
  const SmallDisk disk(50'000);
  const std::string report = complaint([&] { write_tables(folder, tables, DataFormat::h5); });
  EXPECT_NE(report.find("data.h5"), report.npos) << report;
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST(Write, SaysWhyAPathCannotBeWritten) {
  const fs::path folder = fresh_folder();
  EXPECT_EQ(
      complaint([&] { write_text("/nonexistent/a.txt", "x"); }),
      "cannot write '/nonexistent/a.txt': No such file or directory\nthe folder does not exist: create it first\n");
  write_text(folder / "file", "x");
  EXPECT_NE(complaint([&] { write_text(folder / "file" / "a.txt", "x"); }).find("Not a directory"), std::string::npos);
  fs::create_directories(folder / "taken" / "inside");
  EXPECT_NE(complaint([&] { write_text(folder / "taken", "x"); }).find("something else has this name"),
            std::string::npos);
  EXPECT_NE(complaint([&] { make_folder(folder / "file"); }), "");
  EXPECT_NE(complaint([&] { make_folder("/proc/nowhere"); }), "");
  EXPECT_NE(complaint([&] { next_folder("/proc", "run"); }).find("/proc/run-001"), std::string::npos);
}

TEST(Write, WritesEachTableUnderItsName) {
  const fs::path folder = fresh_folder();
  const std::vector<Table> tables = {Table("data").add_numbers("t", {1}), Table("events").add_numbers("t", {2})};
  const auto written = write_tables(folder, tables);
  EXPECT_EQ(written, (std::vector<fs::path>{folder / "data.csv", folder / "events.csv"}));
  EXPECT_EQ(content(folder / "events.csv"), "t\n2\n");
}

TEST(NextFolder, CountsOnFromTheLargest) {
  const fs::path base = fresh_folder();
  EXPECT_EQ(next_folder(base, "dry_friction-run"), base / "dry_friction-run-001");
  EXPECT_EQ(next_folder(base, "dry_friction-run"), base / "dry_friction-run-002");
  EXPECT_EQ(next_folder(base, "dry_friction"), base / "dry_friction-001");
  fs::create_directories(base / "dry_friction-run-998");
  fs::create_directories(base / "dry_friction-run-old");
  fs::remove(base / "dry_friction-run-001");
  EXPECT_EQ(next_folder(base, "dry_friction-run"), base / "dry_friction-run-999");
  EXPECT_EQ(next_folder(base, "dry_friction-run"), base / "dry_friction-run-1000");
  EXPECT_TRUE(fs::is_directory(base / "dry_friction-run-1000"));
  EXPECT_EQ(next_folder(base / "new" / "deep", "a/b"), base / "new" / "deep" / "a_b-001");
}

TEST(NextFolder, GivesEveryoneTheirOwn) {
  const fs::path base = fresh_folder();
  const int threads = 8, each = 25;
  std::vector<std::vector<fs::path>> got(threads);
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      for (int k = 0; k < each; ++k) got[static_cast<size_t>(i)].push_back(next_folder(base, "run"));
    });
  }
  for (std::thread& t : running) t.join();
  std::set<fs::path> all;
  for (const auto& list : got) all.insert(list.begin(), list.end());
  EXPECT_EQ(all.size(), static_cast<size_t>(threads * each));
}

}  // namespace
}  // namespace saltus
