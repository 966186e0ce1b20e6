// SPDX-License-Identifier: Apache-2.0
// Loads a server of keys and values with a workload of YCSB, checks every byte that it gives back, and prints what it
// did as JSON: kv_load warpline|redis ADDRESS:PORT A|B|C|D|E|F [NAME=NUMBER...]
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../protocol.h"
#include "target.h"
#include "ycsb.h"

namespace {

using Clock = std::chrono::steady_clock;

/// What can be given by name.
struct Numbers {
  std::uint64_t records = 100'000;
  std::uint64_t value = 1000;  ///< bytes
  std::uint64_t connections = 1;
  std::uint64_t outstanding = 64;  ///< operations of each connection
  std::uint64_t milliseconds = 2000;
  std::uint64_t seed = 1;
  std::uint64_t load = 1;  ///< whether the records are written first
};

struct Number {
  std::string_view name;
  std::uint64_t Numbers::* value;
  std::uint64_t least;
  std::uint64_t most;
};
constexpr std::array<Number, 7> kNumbers{{
    {"records", &Numbers::records, 2, 1'000'000'000},
    {"value", &Numbers::value, 16, 60'000},
    {"connections", &Numbers::connections, 1, 1000},
    {"outstanding", &Numbers::outstanding, 1, 4096},
    {"milliseconds", &Numbers::milliseconds, 1, 1'000'000'000},
    {"seed", &Numbers::seed, 0, std::numeric_limits<std::uint64_t>::max()},
    {"load", &Numbers::load, 0, 1},
}};

bool set(Numbers& numbers, std::string_view argument) {
  const std::size_t equals = argument.find('=');
  for (const Number& number : kNumbers) {
    if (equals == std::string_view::npos || argument.substr(0, equals) != number.name) continue;
    const std::string_view text = argument.substr(equals + 1);
    std::uint64_t& value = numbers.*number.value;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && value >= number.least && value <= number.most;
  }
  return false;
}

/// Keeps operations under way until it is told to end, and has what came back compared.
class Load final : public kv::Ended {
 public:
  Load(kv::Target& target, const Numbers& numbers, const ycsb::Mix& mix)
      : target_(target),
        numbers_(numbers),
        workload_(mix, numbers.records, numbers.seed),
        under_way_(numbers.connections * numbers.outstanding),
        value_(numbers.value, '\0') {}

  /// Writes all records. False: the server was lost, or has refused one.
  bool fill() {
    filling_ = true;
    const bool there = run([this] { return written_ < numbers_.records; });
    filling_ = false;
    return there && failed_ == 0;
  }

  /// The workload for its time. False: the server was lost.
  bool measure() {
    began_ = Clock::now();
    const auto until = began_ + std::chrono::milliseconds(numbers_.milliseconds);
    const bool there = run([&] { return Clock::now() < until; });
    seconds_ = std::chrono::duration<double>(Clock::now() - began_).count();
    return there;
  }

  void ended(std::size_t which, bool ok, std::string_view answer) override {
    Operation& operation = under_way_[which];
    if (!ok) {
      // A record that was only just begun to be inserted may not be there yet.
      (operation.step.kind == ycsb::Kind::read && operation.step.record >= numbers_.records ? missing_ : failed_) += 1;
    } else if (operation.step.kind == ycsb::Kind::scan) {
      target_.each_record(answer, [&](std::string_view key, std::string_view value) {
        std::uint64_t record = 0;
        (void)std::from_chars(key.data() + 4, key.data() + key.size(), record);
        check(value, record);
        ++scanned_;
      });
    } else if (operation.reads) {
      check(answer, operation.step.record);
      if (operation.step.kind == ycsb::Kind::read_modify_write) {
        operation.reads = false;
        write(which);
        return;
      }
    }
    --open_;
    if (!filling_) {
      micros_.push_back(
          static_cast<float>(std::chrono::duration<double, std::micro>(Clock::now() - operation.began).count()));
    }
    free_.push_back(which);
  }

  [[nodiscard]] bool right() const { return wrong_ == 0 && failed_ == 0; }

  void print(std::string_view server, char mix) {
    std::sort(micros_.begin(), micros_.end());
    const auto quantile = [&](double part) {
      return micros_.empty() ? 0.0
                             : static_cast<double>(
                                   micros_[static_cast<std::size_t>(part * static_cast<double>(micros_.size() - 1))]);
    };
    std::printf(
        "{\"server\": \"%.*s\", \"workload\": \"%c\", \"connections\": %llu, \"outstanding\": %llu, \"value_bytes\": "
        "%llu, "
        "\"operations\": %zu, \"seconds\": %.4f, \"operations_per_s\": %.1f, \"p50_us\": %.2f, \"p99_us\": %.2f, "
        "\"values_checked\": %llu, \"values_wrong\": %llu, \"failed\": %llu, \"not_yet_there\": %llu, \"scanned\": "
        "%llu}\n",
        static_cast<int>(server.size()), server.data(), mix, static_cast<unsigned long long>(numbers_.connections),
        static_cast<unsigned long long>(numbers_.outstanding), static_cast<unsigned long long>(numbers_.value),
        micros_.size(), seconds_, static_cast<double>(micros_.size()) / seconds_, quantile(0.5), quantile(0.99),
        static_cast<unsigned long long>(checked_), static_cast<unsigned long long>(wrong_),
        static_cast<unsigned long long>(failed_), static_cast<unsigned long long>(missing_),
        static_cast<unsigned long long>(scanned_));
  }

 private:
  struct Operation {
    ycsb::Step step{};
    bool reads = false;
    Clock::time_point began{};
  };

  template <typename More>
  bool run(const More& more) {
    free_.clear();
    for (std::size_t which = under_way_.size(); which-- > 0;) free_.push_back(which);
    open_ = 0;
    for (;;) {
      const bool goes_on = more();
      while (goes_on && !free_.empty() && (!filling_ || written_ < numbers_.records)) begin();
      if (open_ == 0) return true;
      if (!target_.turn(*this)) return false;
    }
  }

  void begin() {
    const std::size_t which = free_.back();
    free_.pop_back();
    ++open_;
    Operation& operation = under_way_[which];
    operation = {filling_ ? ycsb::Step{ycsb::Kind::insert, written_++} : workload_.next(), false, Clock::now()};
    switch (operation.step.kind) {
      case ycsb::Kind::read:
      case ycsb::Kind::read_modify_write:
        operation.reads = true;
        target_.read(which, ycsb::key_of(operation.step.record));
        break;
      case ycsb::Kind::update:
      case ycsb::Kind::insert:
        write(which);
        break;
      case ycsb::Kind::scan:
        target_.scan(which, ycsb::key_of(operation.step.record), operation.step.count);
        break;
    }
  }

  void write(std::size_t which) {
    const std::uint64_t record = under_way_[which].step.record;
    ycsb::fill(value_, record, ++version_);
    target_.write(which, ycsb::key_of(record), value_);
  }

  void check(std::string_view value, std::uint64_t record) {
    ++checked_;
    if (!ycsb::is_of(value, record, numbers_.value)) ++wrong_;
  }

  kv::Target& target_;
  Numbers numbers_;
  ycsb::Workload workload_;
  std::vector<Operation> under_way_;
  std::vector<std::size_t> free_;
  std::string value_;
  std::vector<float> micros_;
  Clock::time_point began_;
  double seconds_ = 0;
  bool filling_ = false;
  std::uint64_t written_ = 0;
  std::uint64_t version_ = 0;
  std::uint64_t open_ = 0;
  std::uint64_t checked_ = 0;
  std::uint64_t wrong_ = 0;
  std::uint64_t failed_ = 0;
  std::uint64_t missing_ = 0;
  std::uint64_t scanned_ = 0;
};

int usage() {
  std::fprintf(stderr, "usage: kv_load warpline|redis ADDRESS:PORT A|B|C|D|E|F [NAME=NUMBER...]\n");
  for (const Number& number : kNumbers) {
    std::fprintf(stderr, "  %-12.*s %llu unless given, %llu to %llu\n", static_cast<int>(number.name.size()),
                 number.name.data(), static_cast<unsigned long long>(Numbers{}.*number.value),
                 static_cast<unsigned long long>(number.least), static_cast<unsigned long long>(number.most));
  }
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return usage();
  const std::string_view server = argv[1];
  const auto address = warpline::parse_socket_address(argv[2]);
  const auto mix = ycsb::mix_of(argv[3]);
  Numbers numbers;
  if (!address || !mix || (server != "warpline" && server != "redis")) return usage();
  for (int i = 4; i < argc; ++i)
    if (!set(numbers, argv[i])) return usage();
  if (server == "redis" && mix->name == 'E') {
    std::fprintf(stderr, "Redis keeps no order of keys to be scanned: workload E is Warpline's alone\n");
    return 2;
  }
  // What comes may be longer than what was written. A scan's answer has 100 records, or as many as there is room for.
  const std::uint64_t scanned_bytes = mix->name == 'E' ? 100 * (numbers.value + 32) : 0;
  const std::uint64_t answer_bytes = std::clamp<std::uint64_t>(scanned_bytes, kv::kLongestValue + 1, 1 << 20);
  const auto target = (server == "redis" ? kv::open_redis : kv::open_warpline)(*address, numbers.connections,
                                                                               numbers.outstanding, answer_bytes);
  if (!target) return 3;
  Load load(*target, numbers, *mix);
  if ((numbers.load != 0 && !load.fill()) || !load.measure()) {
    std::fprintf(stderr, "the server is lost, or refuses what it should take\n");
    return 5;
  }
  load.print(server, mix->name);
  return load.right() ? 0 : 6;
}
