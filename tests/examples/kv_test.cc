// SPDX-License-Identifier: Apache-2.0
// The example's service, and the workloads that it is loaded with.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "examples/kv/load/ycsb.h"
#include "examples/kv/service.h"

namespace {

std::string ask(kv::Store& store, const std::string& request, std::size_t room_bytes = 1 << 20) {
  std::vector<std::uint8_t> room(room_bytes);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(request.data());
  const std::size_t length = kv::serve(store, {bytes, request.size()}, room);
  return {room.begin(), room.begin() + static_cast<std::ptrdiff_t>(length)};
}

std::string request(kv::Operation operation, std::string_view key, std::string_view rest = {}) {
  std::string made;
  kv::append_request(made, operation, key, rest);
  return made;
}

std::string answer(kv::Outcome outcome, std::string_view rest = {}) {
  return std::string(1, static_cast<char>(outcome)).append(rest);
}

TEST(Kv, ReadsWhatWasWrittenUntilItIsRemoved) {
  kv::Store store;
  EXPECT_EQ(ask(store, request(kv::Operation::read, "a")), answer(kv::Outcome::no_such_key));
  EXPECT_EQ(ask(store, request(kv::Operation::write, "a", "first")), answer(kv::Outcome::ok));
  EXPECT_EQ(ask(store, request(kv::Operation::write, "a", "second")), answer(kv::Outcome::ok));
  EXPECT_EQ(ask(store, request(kv::Operation::read, "a")), answer(kv::Outcome::ok, "second"));
  EXPECT_EQ(ask(store, request(kv::Operation::remove, "a")), answer(kv::Outcome::ok));
  EXPECT_EQ(ask(store, request(kv::Operation::remove, "a")), answer(kv::Outcome::no_such_key));
  EXPECT_EQ(ask(store, request(kv::Operation::read, "a")), answer(kv::Outcome::no_such_key));
}

TEST(Kv, ScansInOrderOfTheKeysAsFarAsTheAnswerHasRoom) {
  kv::Store store;
  for (const char* key : {"c", "a", "d", "b"}) store.write(key, std::string(20, *key));
  std::string scan;
  kv::append_scan(scan, "b", 1'000'000);
  const auto keys = [&](std::size_t room) {
    const std::string said = ask(store, scan, room);
    std::string_view records = std::string_view(said).substr(1);
    std::string found;
    while (const auto record = kv::take_record(records)) {
      found += record->key;
      EXPECT_EQ(record->value, std::string(20, record->key[0]));
    }
    EXPECT_TRUE(records.empty());
    return found;
  };
  EXPECT_EQ(keys(1 << 20), "bcd");
  EXPECT_EQ(keys(1 + 2 * 26), "bc");
  EXPECT_EQ(keys(1 + 2 * 26 - 1), "b");
}

TEST(Kv, AnswersWhatIsNoRequest) {
  kv::Store store;
  const std::vector<std::string> wrong{"",
                                       "a",
                                       std::string("\0\0", 2),
                                       std::string("\0\0a", 3),
                                       std::string("\0\2a", 3),
                                       std::string("\4\1a", 3),
                                       request(kv::Operation::read, "a", "rest"),
                                       request(kv::Operation::scan, "a", "123"),
                                       request(kv::Operation::write, "a", std::string(kv::kLongestValue + 1, 'x'))};
  for (const std::string& bytes : wrong) EXPECT_EQ(ask(store, bytes), answer(kv::Outcome::malformed));
  EXPECT_EQ(ask(store, request(kv::Operation::write, std::string(255, 'k'), std::string(kv::kLongestValue, 'x'))),
            answer(kv::Outcome::ok));
}

TEST(Kv, TakesNoRecordThatIsCutShort) {
  std::uint8_t room[64];
  const std::size_t length = kv::write_record(room, {"key", "value"});
  ASSERT_EQ(length, 13U);
  for (std::size_t cut = 0; cut < length; ++cut) {
    std::string_view bytes{reinterpret_cast<const char*>(room), cut};
    EXPECT_FALSE(kv::take_record(bytes).has_value());
  }
}

TEST(Ycsb, DrawsOperationsInTheirProportions) {
  constexpr int kDraws = 200'000;
  for (const ycsb::Mix& mix : ycsb::kMixes) {
    ycsb::Workload workload(mix, 1000, 7);
    std::array<int, 5> drawn{};
    std::uint64_t inserted = 1000;
    for (int i = 0; i < kDraws; ++i) {
      const ycsb::Step step = workload.next();
      ++drawn[static_cast<std::size_t>(step.kind)];
      if (step.kind == ycsb::Kind::insert) {
        EXPECT_EQ(step.record, inserted++);
      } else {
        EXPECT_LT(step.record, inserted);
      }
      EXPECT_TRUE(step.count >= 1 && step.count <= (step.kind == ycsb::Kind::scan ? 100U : 1U));
    }
    for (std::size_t kind = 0; kind < drawn.size(); ++kind)
      EXPECT_NEAR(drawn[kind], kDraws / 100.0 * mix.percent[kind], kDraws / 200.0) << mix.name;
  }
}

TEST(Ycsb, DrawsRanksByZipfsLaw) {
  constexpr int kDraws = 1'000'000;
  const ycsb::Zipf zipf(1000);
  warpline::Random random(3);
  std::map<std::uint64_t, double> drawn;
  for (int i = 0; i < kDraws; ++i) drawn[zipf.rank(random)] += 1;
  EXPECT_LT(drawn.rbegin()->first, 1000U);
  // The method is exact for the first two, and near for the others.
  EXPECT_NEAR(drawn[0] / drawn[1], std::pow(2, 0.99), 0.05);
  EXPECT_NEAR(drawn[0] / drawn[9], std::pow(10, 0.99), 2);
  EXPECT_NEAR(drawn[0] / drawn[99], std::pow(100, 0.99), 20);
}

TEST(Ycsb, KnowsEveryByteOfAValue) {
  for (const std::size_t length : {16U, 17U, 23U, 100U, 1000U}) {
    std::string value(length, '\0');
    ycsb::fill(value, 5, 77);
    EXPECT_TRUE(ycsb::is_of(value, 5, length));
    EXPECT_FALSE(ycsb::is_of(value, 6, length));
    EXPECT_FALSE(ycsb::is_of(value, 5, length + 1));
    for (char& byte : value) {
      byte = static_cast<char>(byte ^ 1);
      EXPECT_FALSE(ycsb::is_of(value, 5, length));
      byte = static_cast<char>(byte ^ 1);
    }
  }
  EXPECT_EQ(ycsb::key_of(0), "user000000000000");
  EXPECT_EQ(ycsb::key_of(1234567), "user000001234567");
}

}  // namespace
