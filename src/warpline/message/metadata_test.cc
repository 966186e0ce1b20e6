// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/metadata.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace warpline::message {
namespace {

TEST(Metadata, comes_back_in_its_order) {
  std::array<std::uint8_t, 1024> room;
  MetadataWriter writer(room);
  const std::string longest(255, 'k');
  const std::string bytes("\0\xff\0", 3);
  const std::vector<MetadataEntry> entries = {{"trace", "17"}, {"empty", ""}, {longest, bytes}, {"trace", "18"}};
  for (const MetadataEntry& entry : entries) EXPECT_TRUE(writer.add(entry));
  MetadataReader reader(writer.bytes());
  for (const MetadataEntry& entry : entries) EXPECT_EQ(reader.next(), entry);
  EXPECT_EQ(reader.next(), std::nullopt);
  EXPECT_TRUE(reader.well_formed());
  EXPECT_EQ(find_metadata(writer.bytes(), "trace"), "17");
  EXPECT_EQ(find_metadata(writer.bytes(), "empty"), "");
  EXPECT_EQ(find_metadata(writer.bytes(), "other"), std::nullopt);
}

TEST(Metadata, that_has_no_room_or_no_key_is_not_added) {
  std::array<std::uint8_t, 10> room;
  MetadataWriter writer(room);
  EXPECT_FALSE(writer.add({"", "value"}));
  EXPECT_FALSE(writer.add({"key", "value"}));
  EXPECT_TRUE(writer.bytes().empty());
  EXPECT_TRUE(writer.add({"key", "1234"}));
  EXPECT_FALSE(writer.add({"k", ""}));
  EXPECT_EQ(writer.bytes().size(), 10U);
  std::vector<std::uint8_t> large(70'000);
  MetadataWriter roomy(large);
  EXPECT_FALSE(roomy.add({std::string(256, 'k'), ""}));
  EXPECT_FALSE(roomy.add({"k", std::string(65'536, 'v')}));
  EXPECT_TRUE(roomy.add({"k", std::string(65'535, 'v')}));
}

TEST(Metadata, cut_anywhere_says_so_and_keeps_what_precedes) {
  std::array<std::uint8_t, 64> room;
  MetadataWriter writer(room);
  ASSERT_TRUE(writer.add({"one", "1"}));
  const std::size_t first = writer.bytes().size();
  ASSERT_TRUE(writer.add({"two", "22"}));
  for (std::size_t length = 0; length <= writer.bytes().size(); ++length) {
    // Exactly as long, for a sanitizer.
    const std::vector<std::uint8_t> cut(writer.bytes().begin(),
                                        writer.bytes().begin() + static_cast<std::ptrdiff_t>(length));
    MetadataReader reader(cut);
    std::size_t count = 0;
    while (reader.next()) ++count;
    EXPECT_EQ(count, length < first ? 0U : length < writer.bytes().size() ? 1U : 2U);
    EXPECT_EQ(reader.well_formed(), length == 0 || length == first || length == writer.bytes().size()) << length;
    EXPECT_EQ(reader.next(), std::nullopt);
  }
}

}  // namespace
}  // namespace warpline::message
