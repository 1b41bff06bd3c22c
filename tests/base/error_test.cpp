#include "base/error.hpp"

#include <gtest/gtest.h>

#include "base/source.hpp"

namespace saltus {
namespace {

TEST(Error, ReportsPlaceLineCaretAndHint) {
  const Source source("friction.toml", "a\n  v' = -y + sin(omga*t)\n");
  const Error error(ErrorKind::model, "unknown name 'omga'", source.place(2 + 16, 4), "did you mean 'omega'?");
  EXPECT_EQ(error.report(),
            "friction.toml:2:17: unknown name 'omga'\n"
            "    v' = -y + sin(omga*t)\n"
            "                  ^~~~\n"
            "did you mean 'omega'?\n");
  EXPECT_EQ(error.kind(), ErrorKind::model);
  EXPECT_STREQ(error.what(), "unknown name 'omga'");
}

TEST(Error, WithoutPlaceSaysWhatItKnows) {
  EXPECT_EQ(Error(ErrorKind::usage, "bad").report(), "bad\n");
  EXPECT_EQ(Error(ErrorKind::file, "bad", {.file = "a.toml"}).report(), "a.toml: bad\n");
}

TEST(Error, ShowsASecondPlace) {
  const Source source("m", "(x\ny");
  Error error(ErrorKind::model, "a bracket is missing", source.place(4), "");
  error.also("opened here", source.place(0));
  EXPECT_EQ(error.report(),
            "m:2:2: a bracket is missing\n"
            "  y\n"
            "   ^\n"
            "m:1:1: opened here\n"
            "  (x\n"
            "  ^\n");
}

TEST(Error, KeepsTabsSoThatTheCaretStaysBelow) {
  const Source source("m", "\tx\t= y");
  EXPECT_EQ(Error(ErrorKind::model, "bad", source.place(5)).report(), "m:1:6: bad\n  \tx\t= y\n  \t \t  ^\n");
}

TEST(Error, CountsCharactersNotBytes) {
  const Source source("m", "größe = ω + bad");
  const size_t at = source.text().find("bad");
  EXPECT_EQ(Error(ErrorKind::model, "bad", source.place(at, 3)).report(),
            "m:1:13: bad\n  größe = ω + bad\n              ^~~\n");
  EXPECT_EQ(source.place(source.text().find("ω"), 2).length, 1);
}

TEST(Source, FindsLinesAndColumns) {
  const Source source("m", "one\r\ntwo\n\nfour");
  EXPECT_EQ(source.place(5).line, 2);
  EXPECT_EQ(source.place(5).column, 1);
  EXPECT_EQ(source.place(0, 100).length, 3) << "a place ends with its line";
  EXPECT_EQ(source.place(0).text, "one") << "the carriage return is no part of the line";
  EXPECT_EQ(source.place(1000).line, 4);
  EXPECT_EQ(source.place(1000).column, 5);
  EXPECT_EQ(source.offset(4, 2), 11u);
  EXPECT_EQ(source.offset(99, 1), source.text().size());
  EXPECT_EQ(Source("m", "").place(0).line, 1);
}

TEST(Source, QuotesThePartOfALongLineAroundThePlace) {
  std::string text(5000, 'a');
  text.replace(3000, 3, "bad");
  const Source source("m", text);
  const Place place = source.place(3000, 3);
  EXPECT_EQ(place.column, 3001);
  EXPECT_LT(place.text.size(), 200u);
  const std::string report = Error(ErrorKind::model, "bad", place).report();
  const size_t quote = report.find('\n') + 1, caret = report.find('\n', quote) + 1;
  EXPECT_EQ(report.find("bad", quote) - quote, report.find('^') - caret);
}

TEST(Source, NeverCutsACharacterInTwo) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "ω";
  text += "!";
  const Source source("m", text);
  for (size_t offset = 0; offset < text.size(); offset += 2) {
    const Place place = source.place(offset);
    EXPECT_EQ(place.column, static_cast<int>(offset / 2) + 1);
    const size_t from = place.text.starts_with("...") ? 3 : 0;
    EXPECT_NE(place.text[from] & 0xC0, 0x80);
  }
}

TEST(Source, HidesControlCharactersFromTheTerminal) { EXPECT_EQ(Source("m", "a\x1b[31mb").place(0).text, "a?[31mb"); }

TEST(Fragment, KnowsWhereEveryCharacterComesFrom) {
  const Fragment all = whole_text("m", "x = a + b");
  const Fragment part = all.part(4, 100);
  EXPECT_EQ(part.text, "a + b");
  EXPECT_EQ(part.place(4).column, 9);
  EXPECT_EQ(part.place(0, 5).length, 5);
  EXPECT_EQ(part.part(2, 1).place(0).column, 7);
  EXPECT_EQ(part.place(99).column, 10) << "behind the end";
}

TEST(NearestName, FindsWhatWasMeant) {
  const std::vector<std::string> known{"omega", "F", "vdr", "gap", "restitution"};
  EXPECT_EQ(nearest_name("omga", known), "omega");
  EXPECT_EQ(nearest_name("Omega", known), "omega");
  EXPECT_EQ(nearest_name("vrd", known), "vdr") << "two neighbours swapped";
  EXPECT_EQ(nearest_name("restituton", known), "restitution");
  EXPECT_EQ(nearest_name("f", known), "F");
}

TEST(NearestName, IsSilentWhenNothingIsNear) {
  const std::vector<std::string> known{"omega", "y"};
  EXPECT_EQ(nearest_name("temperature", known), "");
  EXPECT_EQ(nearest_name("x", known), "") << "another letter is another name";
  EXPECT_EQ(nearest_name("", known), "");
  EXPECT_EQ(nearest_name(std::string(1000, 'o'), known), "");
  EXPECT_EQ(nearest_name("omega", {}), "");
}

}  // namespace
}  // namespace saltus
