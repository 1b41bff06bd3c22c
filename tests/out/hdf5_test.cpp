#include "out/hdf5.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "../folder.hpp"
#include "base/error.hpp"
#include "out/write.hpp"

namespace saltus {
namespace {

namespace fs = std::filesystem;

TEST(Hdf5, GivesNumbersAndTextsBack) {
  const fs::path path = fresh_folder() / "data.h5";
  const double inf = std::numeric_limits<double>::infinity();
  Table events("events", "what happened");
  events.add_numbers("t", {0.1, -0.0, inf, std::nan("")}, "time");
  events.add_texts("kind", {"slide", "", "größer", "a much longer text, with \"quotes\""});
  events.add_numbers("v/v0", {1, 2, 3, 4});
  const std::vector<Table> tables = {Table("data").add_numbers("t", {1, 2}), events};
  write_hdf5(path, tables);

  const Column t = read_hdf5_column(path, "events", "t");
  EXPECT_EQ(t.name, "t");
  EXPECT_EQ(t.description, "time");
  const Numbers& times = std::get<Numbers>(t.values);
  ASSERT_EQ(times.size(), 4u);
  EXPECT_EQ(times[0], 0.1);
  EXPECT_TRUE(std::signbit(times[1]));
  EXPECT_EQ(times[2], inf);
  EXPECT_TRUE(std::isnan(times[3]));
  EXPECT_EQ(std::get<Texts>(read_hdf5_column(path, "events", "kind").values), events.texts("kind"));
  EXPECT_EQ(read_hdf5_column(path, "events", "v/v0").name, "v/v0");
  EXPECT_EQ(std::get<Numbers>(read_hdf5_column(path, "data", "t").values), (Numbers{1, 2}));
}

TEST(Hdf5, BeginsWithTheSignatureOfTheFormat) {
  const fs::path path = fresh_folder() / "data.h5";
  write_hdf5(path, std::vector<Table>{Table("data").add_numbers("t", {1})});
  std::ifstream in(path, std::ios::binary);
  std::string start(8, ' ');
  in.read(start.data(), 8);
  EXPECT_EQ(start, "\x89HDF\r\n\x1a\n");
}

TEST(Hdf5, KeepsEmptyTables) {
  const fs::path path = fresh_folder() / "data.h5";
  write_hdf5(path, std::vector<Table>{Table("data"), Table("events").add_numbers("t").add_texts("kind")});
  EXPECT_EQ(read_hdf5_column(path, "events", "t").size(), 0u);
  EXPECT_TRUE(read_hdf5_column(path, "events", "kind").is_text());
}

TEST(Hdf5, CompressesLongColumns) {
  const fs::path path = fresh_folder() / "data.h5";
  const size_t n = 300'000;
  Numbers t(n), y(n);
  for (size_t i = 0; i < n; ++i) {
    t[i] = static_cast<double>(i) / 1024;
    y[i] = i < n / 2 ? 0 : std::sin(t[i]);
  }
  const Texts kinds(n, "slide");
  write_hdf5(path, std::vector<Table>{Table("data").add_numbers("t", t).add_numbers("y", y).add_texts("kind", kinds)});
  EXPECT_LT(fs::file_size(path), n * (8 + 8 + 5) / 2);
  EXPECT_EQ(std::get<Numbers>(read_hdf5_column(path, "data", "t").values), t);
  EXPECT_EQ(std::get<Numbers>(read_hdf5_column(path, "data", "y").values), y);
  EXPECT_EQ(std::get<Texts>(read_hdf5_column(path, "data", "kind").values), kinds);
}

TEST(Hdf5, ComplainsOfWhatIsNotThere) {
  const fs::path path = fresh_folder() / "data.h5";
  EXPECT_THROW(read_hdf5_column(path, "data", "t"), Error);
  write_hdf5(path, std::vector<Table>{Table("data").add_numbers("t", {1})});
  EXPECT_THROW(read_hdf5_column(path, "data", "y"), Error);
  EXPECT_THROW(read_hdf5_column(path, "events", "t"), Error);
  write_text(path, "not HDF5");
  EXPECT_THROW(read_hdf5_column(path, "data", "t"), Error);
  EXPECT_THROW(write_hdf5("/nonexistent/data.h5", std::vector<Table>{Table("data")}), Error);
}

TEST(Hdf5, RefusesTwoTablesOfOneName) {
  const fs::path path = fresh_folder() / "data.h5";
  EXPECT_THROW(write_hdf5(path, std::vector<Table>{Table("data"), Table("data")}), Error);
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace saltus
