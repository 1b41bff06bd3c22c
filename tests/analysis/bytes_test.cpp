#include "analysis/bytes.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>

namespace saltus {
namespace {

TEST(Bytes, ReadBackBitForBit) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Bytes bytes =
      Packer().number(-0.0).number(0.1).number(nan).integer(-7).text("a\0b").numbers(std::vector{1.5, 2.5}).take();
  Unpacker unpack(bytes);
  EXPECT_TRUE(std::signbit(unpack.number()));
  EXPECT_EQ(unpack.number(), 0.1);
  EXPECT_TRUE(std::isnan(unpack.number()));
  EXPECT_EQ(unpack.integer(), -7);
  EXPECT_EQ(unpack.text(), "a");
  EXPECT_EQ(unpack.numbers(), (std::vector{1.5, 2.5}));
  EXPECT_TRUE(unpack.empty());
}

TEST(Bytes, AreLittleEndian) { EXPECT_EQ(Packer().integer(258).take(), Bytes("\2\1\0\0\0\0\0\0", 8)); }

TEST(Bytes, ThatEndTooEarlyAreRefused) {
  const Bytes bytes = Packer().text("long enough").take();
  EXPECT_THROW(Unpacker(std::string_view(bytes).substr(0, 12)).text(), std::out_of_range);
  EXPECT_THROW(Unpacker("").number(), std::out_of_range);
  EXPECT_THROW(Unpacker(Packer().integer(-1).take()).numbers(), std::out_of_range);
}

// The check value published with the algorithm.
TEST(Bytes, ChecksumIsFnv1a) { EXPECT_EQ(checksum("foobar"), 0x85944171f73967e8u); }

}  // namespace
}  // namespace saltus
