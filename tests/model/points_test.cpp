#include "model/points.hpp"

#include <fstream>

#include <gtest/gtest.h>

#include "expr/interpolant.hpp"
#include "model/read.hpp"

namespace saltus {
namespace {

/// A folder with one file of points, and the model beside it.
class PointFiles : public ::testing::Test {
 protected:
  PointFiles() {
    folder_ = std::filesystem::temp_directory_path() /
              (std::string("saltus-points-") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  ~PointFiles() override { std::filesystem::remove_all(folder_); }

  Model read(const std::string& points, const std::string& more = "") {
    std::ofstream(folder_ / "road.csv", std::ios::binary) << points;
    return read_without_points(more);
  }
  Model read_without_points(const std::string& more = "") {
    std::ofstream(folder_ / "m.toml") << "equations = \"x' = road(x)\"\n[initial]\nx = 0\n[table.road]\nfile = "
                                         "\"road.csv\"\n"
                                      << more;
    return read_model((folder_ / "m.toml").string());
  }
  std::string complaint(const std::string& points, const std::string& more = "") {
    try {
      read(points, more);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::model);
      EXPECT_FALSE(error.hint().empty());
      std::string report = error.report();
      const size_t at = report.find("road.csv:");
      return at == report.npos ? report : report.substr(at, report.find('\n') - at);
    }
    return "none";
  }

  std::filesystem::path folder_;
};

TEST_F(PointFiles, MayBeWrittenInManyWays) {
  for (const std::string text :
       {"0,1\n1,3\n2,2\n", "0;1\r\n1;3\r\n2;2\r\n", "0,1,\r\n1,3, \r\n2,2,5\r\n", "way [m], z [m]\n0,1\n1,3\n2,2\n",
        "# road\n\n0 1\n1   3 # top\n2\t2", "x, height\n0, 1\n+1, 3.0e0\n2, 2\n",
        "\xEF\xBB\xBF\"way (m)\",\"z\"\n0,1\n1,3\n2,2"}) {
    const Model m = read(text);
    const Interpolant& f = *m.tables[0].curve;
    EXPECT_EQ(std::vector<double>(f.x().begin(), f.x().end()), (std::vector<double>{0, 1, 2})) << text;
    EXPECT_EQ(std::vector<double>(f.y().begin(), f.y().end()), (std::vector<double>{1, 3, 2})) << text;
  }
}

TEST_F(PointFiles, HaveColumnsByNameOrPosition) {
  const std::string text = "t,speed,height\n0,7,1\n1,8,3\n";
  EXPECT_EQ(read(text, "columns = [\"t\", \"height\"]\n").tables[0].curve->y()[1], 3);
  EXPECT_EQ(read(text, "columns = [1, 2]\n").tables[0].curve->y()[1], 8);
  EXPECT_EQ(read("t [s],h [m],v\n0,7,1\n1,8,3\n", "columns = [\"t [s]\", \"h [m]\"]\n").tables[0].curve->y()[1], 8);
  EXPECT_EQ(read(text, "columns = [\"speed\", 3]\n").tables[0].curve->x()[1], 8);
  EXPECT_NE(complaint(text, "columns = [\"t\", \"hight\"]\n").find("there is no column 'hight'"), std::string::npos);
  EXPECT_NE(complaint("0,1\n1,2\n", "columns = [\"t\", \"z\"]\n").find("no column 't'"), std::string::npos);
  EXPECT_EQ(complaint("0,1\n1,2\n", "columns = [1, 3]\n"), "road.csv:1:1: this row has 2 columns, and no column 3");
}

TEST_F(PointFiles, ComplainWithTheirLine) {
  EXPECT_EQ(complaint("0;1,5\n1;2,5\n"), "road.csv:1:4: columns are separated by ';' before, and here by ','");
  EXPECT_EQ(complaint("t;h\n0;1\n1;2,5\n"), "road.csv:3:4: columns are separated by ';' before, and here by ','");
  EXPECT_EQ(complaint("0\t1,5\n1\t2,5\n"), "road.csv:1:4: columns are separated by blanks before, and here by ','");
  EXPECT_EQ(complaint("0,1\n1 2\n"), "road.csv:2:2: columns are separated by ',' before, and here by blanks");
  EXPECT_EQ(complaint("0,1\n1,2,5\n"), "road.csv:2:1: this row has 3 columns, and the first one 2");
  EXPECT_EQ(complaint("0,1,7\n1,2\n"), "road.csv:2:1: this row has 2 columns, and the first one 3");
  EXPECT_EQ(complaint("t,h\n0,1,7\n1,2,5\n", "columns = [\"t\", \"h\"]\n"),
            "road.csv:2:1: this row has 3 columns, and the first one 2");
  EXPECT_EQ(complaint("0,1\n1,abc\n"), "road.csv:2:3: 'abc' is not a number");
  EXPECT_EQ(complaint("0,1\n1,0x10\n"), "road.csv:2:3: '0x10' is not a number");
  EXPECT_EQ(complaint("0,1\n1,\n2,3\n"), "road.csv:2:1: this row has one column, and no column 2");
  EXPECT_EQ(complaint("0,1\n1,nan\n"), "road.csv:2:3: this is not a finite number");
  EXPECT_EQ(complaint("0,1\n1,1e999\n"), "road.csv:2:3: this is not a finite number");
  EXPECT_EQ(complaint("0,1\n1,1e300\n"), "road.csv:2:1: a number beyond 1e100");
  EXPECT_EQ(complaint("0,1\n2,1\n1,1\n"), "road.csv:3:1: 1 follows 2");
  EXPECT_EQ(complaint("x,y\n0,1\n\n0,2\n"), "road.csv:4:1: 0 is given twice");
  EXPECT_EQ(complaint("0,1\n"), "road.csv:1:1: there is one point only");
  EXPECT_EQ(complaint("x,y\n"), "road.csv:1:1: there are no points");
  EXPECT_EQ(complaint("# nothing\n"), "road.csv:1:1: the file holds no points");
  EXPECT_EQ(complaint(""), "road.csv:1:1: the file holds no points");
  EXPECT_EQ(complaint(std::string("\0\1\2\0", 4)).substr(0, 12), "road.csv:1:1");
}

TEST_F(PointFiles, ThatCannotBeReadAreTroubleWithFiles) {
  const auto kind = [&](auto make) {
    make();
    try {
      read_without_points();
    } catch (const Error& error) {
      EXPECT_TRUE(error.place().known()) << error.report();
      return error.kind();
    }
    return ErrorKind::usage;
  };
  EXPECT_EQ(kind([] {}), ErrorKind::file);
  EXPECT_EQ(kind([&] { std::filesystem::create_directory(folder_ / "road.csv"); }), ErrorKind::file);
  EXPECT_EQ(kind([&] {
              std::filesystem::remove(folder_ / "road.csv");
              std::ofstream(folder_ / "road.csv") << "0,1\n";
              std::filesystem::resize_file(folder_ / "road.csv", 1u << 30);
            }),
            ErrorKind::file);
}

TEST_F(PointFiles, AreFoundAgainFromWhatIsWritten) {
  const Model m = read("a,b\n0,1\n1,3\n", "columns = [\"a\", \"b\"]\nbetween = \"cubic\"\noutside = \"hold\"\n");
  const Model again = read_model_text(write_model(m), "elsewhere/run.toml");
  EXPECT_TRUE(same_model(m, again)) << write_model(m);
  EXPECT_EQ(m.tables[0].checksum, again.tables[0].checksum);
  EXPECT_NE(m.tables[0].checksum, read("a,b\n0,1\n1,4\n", "columns = [1, 2]\n").tables[0].checksum);
}

TEST_F(PointFiles, MayHaveAMillionRows) {
  std::string text;
  for (int i = 0; i < 1'000'000; ++i) text += std::to_string(i) + "," + std::to_string(i % 7) + "\n";
  const Model m = read(text);
  EXPECT_EQ(m.tables[0].curve->x().size(), 1'000'000u);
  EXPECT_EQ((*m.tables[0].curve)(999'998.5), ((999'998 % 7) + (999'999 % 7)) / 2.0);
}

TEST(Tables, AreWrittenAndReadBack) {
  const Model m = read_model_text(
      "equations = \"x' = a(x) + b(2*x) + T\"\n[parameters]\nT = \"a(0.25)\"\n[initial]\nx = \"b(T)\"\n[table.a]\n"
      "points = [[0, 0], [1, -0.0], [2.5, 1e-30]]\noutside = \"repeat\"\n[table.b]\npoints = [[-1, 2], [1, 1]]\n"
      "between = \"step\"\noutside = \"zero\"\n");
  EXPECT_TRUE(same_model(m, read_model_text(write_model(m)))) << write_model(m);
  EXPECT_EQ(initial_values(m, parameter_values(m)), std::vector<double>{2});
}

}  // namespace
}  // namespace saltus
