#include "app/options.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "../folder.hpp"
#include "ask/gallery.hpp"

namespace saltus {
namespace {

/// The complaint about options that are wrong.
template <class Action>
Error error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return Error(error.kind(), as_flags(error.message()), error.place(), as_flags(error.hint()));
  }
  ADD_FAILURE() << "no complaint";
  return Error(ErrorKind::file, "none");
}

Model load(std::vector<Setting> parameters, std::vector<Setting> initial = {}) {
  return load_model({.model = "dry_friction", .parameters = std::move(parameters), .initial = std::move(initial)});
}

TEST(Setting, IsANameAndAValue) {
  const Setting s = read_setting("omega = 1/3", "-p");
  EXPECT_EQ(s.name, "omega");
  EXPECT_EQ(s.value, "1/3");
}

TEST(Setting, WithoutNameOrValueIsAMistakeOfTheCommandLine) {
  for (const char* text : {"F", "=1", "F=", "", "="}) {
    const Error e = error_of([&] { read_setting(text, "-p"); });
    EXPECT_EQ(e.kind(), ErrorKind::usage) << text;
    EXPECT_EQ(e.hint(), "write -p NAME=0.3") << text;
  }
}

TEST(Number, MayBeAConstantExpression) {
  EXPECT_DOUBLE_EQ(read_number("1/4", "--dt"), 0.25);
  EXPECT_DOUBLE_EQ(read_number("-1e-3", "--until"), -1e-3);
  EXPECT_EQ(error_of([] { read_number("1/0", "--dt"); }).message(), "--dt 1/0 is inf");
  EXPECT_EQ(error_of([] { read_number("fast", "--dt"); }).message(), "--dt fast: unknown name 'fast'");
  EXPECT_EQ(error_of([] { read_number("t", "--dt"); }).kind(), ErrorKind::usage);
}

TEST(Number, MayBeWrittenAsEngineersDo) {
  EXPECT_EQ(read_number("2ms", "--until"), 2e-3);
  EXPECT_EQ(read_number("1k", "--dt"), 1000);
  EXPECT_EQ(read_number("100u", "--dt"), 100e-6);
  EXPECT_EQ(read_number("4.7uF", "--dt"), 4.7e-6);
  EXPECT_EQ(read_number("-3.3 mA", "--dt"), -3.3e-3);
  EXPECT_EQ(read_number("5 V", "--dt"), 5);
  EXPECT_EQ(read_number("2.2MHz", "--dt"), 2.2e6);
  EXPECT_EQ(read_number("3mm", "--dt"), 3e-3);
  EXPECT_EQ(read_number("1e3", "--dt"), 1000);
  for (const char* text : {"2x", "2e", "k", "2 3", "2mq", "--2m"})
    EXPECT_EQ(error_of([&] { read_number(text, "--dt"); }).kind(), ErrorKind::usage) << text;
}

TEST(Number, MayUseTheParametersOfTheModel) {
  const Model m = load({{"omega", "0.5"}});
  EXPECT_DOUBLE_EQ(read_number("3/omega", "--until", m), 6);
}

TEST(LoadModel, AppliesParametersAndInitialValues) {
  const Model m = load({{"F", "0.3"}, {"omega", "1/2"}}, {{"v", "-2*F"}});
  const auto p = parameter_values(m);
  EXPECT_DOUBLE_EQ(p[0], 0.3);
  EXPECT_DOUBLE_EQ(p[1], 0.5);
  EXPECT_DOUBLE_EQ(initial_values(m, p)[1], -0.6);
}

TEST(LoadModel, TheLastOfTwoSettingsCounts) {
  EXPECT_DOUBLE_EQ(parameter_values(load({{"F", "0.3"}, {"F", "0.2"}}))[0], 0.2);
}

TEST(LoadModel, NamesTheNearestParameter) {
  const Error e = error_of([] { load({{"omga", "1"}}); });
  EXPECT_EQ(e.kind(), ErrorKind::usage);
  EXPECT_EQ(e.report(), "-p omga=1: the model has no parameter 'omga'\ndid you mean 'omega'?\n");
}

TEST(LoadModel, TellsStatesFromParameters) {
  EXPECT_EQ(error_of([] { load({{"v", "1"}}); }).hint(), "write -x v=1");
  EXPECT_EQ(error_of([] { load({}, {{"F", "1"}}); }).hint(), "write -p F=1");
}

TEST(LoadModel, ChecksAgainUnderNewValues) {
  EXPECT_EQ(error_of([] { load({{"omega", "0"}}); }).message(), "the interval of the section 'strobe' is inf");
  EXPECT_EQ(error_of([] {
              load_model({.model = "bouncing_ball", .initial = {{"q", "-1"}}});
            }).kind(),
            ErrorKind::model);
  EXPECT_EQ(error_of([] { load({}, {{"v", "1/0"}}); }).message(), "the initial value of 'v' is inf");
}

TEST(LoadModel, PrefersAFileToTheGallery) {
  const ScratchFolder scratch;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(scratch.path);
  std::ofstream("lorenz") << "name = \"mine\"\nequations = \"x' = -x\"\n[initial]\nx = 1\n";
  const Model m = load_model({.model = "lorenz"});
  std::filesystem::current_path(before);
  EXPECT_EQ(m.name, "mine");
}

TEST(LoadModel, PointsToTheGalleryWhereThereIsNoFile) {
  const Error e = error_of([] { load_model({.model = "models/dry_frction.toml"}); });
  EXPECT_EQ(e.kind(), ErrorKind::file);
  EXPECT_NE(e.hint().find("'saltus examples dry_friction > dry_friction.toml'"), std::string::npos);
}

TEST(ShortName, IsTheStemOrTheFolder) {
  EXPECT_EQ(short_name("some/where/buck.toml"), "buck");
  EXPECT_EQ(short_name("models/buck/model.toml"), "buck");
  EXPECT_EQ(short_name("buck"), "buck");
}

TEST(Solve, AreChecked) {
  EXPECT_NO_THROW((Solve{.tolerance = 1e-9, .engine = "step", .dt = 1e-3}.check()));
  EXPECT_THROW((Solve{.tolerance = 0.0}.check()), Error);
  EXPECT_THROW((Solve{.dt = -1.0}.check()), Error);
  EXPECT_THROW((Solve{.threads = -1}.check()), Error);
  EXPECT_EQ(error_of([] { Solve{.engine = "evnt"}.check(); }).hint(), "did you mean 'event'?");
}

TEST(OutputOptions, AreChecked) {
  EXPECT_NO_THROW((OutputOptions{.format = "h5"}.check()));
  EXPECT_THROW((OutputOptions{.format = "xls"}.check()), Error);
}

TEST(Gallery, IsSortedDescribedAndReadable) {
  ASSERT_GE(gallery().size(), 30u);
  for (size_t i = 0; i < gallery().size(); ++i) {
    const GalleryModel& m = gallery()[i];
    EXPECT_TRUE(i == 0 || gallery()[i - 1].name < m.name) << m.name;
    EXPECT_FALSE(m.description().empty()) << m.name;
    EXPECT_NO_THROW(load_model({.model = std::string(m.name)})) << m.name;
  }
}

TEST(Gallery, HoldsTheFilesAsTheyAre) {
  for (const GalleryModel& m : gallery()) {
    std::ifstream file(std::string(SALTUS_SOURCE_DIR) + "/models/" + std::string(m.name) + "/model.toml");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    EXPECT_EQ(text, m.text) << m.name;
  }
}

}  // namespace
}  // namespace saltus
