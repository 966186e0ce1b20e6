// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include "warpline/base/statistics/counter.h"

namespace warpline::echo {

inline constexpr std::size_t kBytes = 32;  ///< of a request, and of its answer
using Content = std::array<std::uint8_t, kBytes>;

/// What is asked of a client.
struct Plan {
  std::size_t connections = 1;
  std::size_t outstanding = 64;       ///< requests of each connection
  double seconds = 0.3;               ///< after a third of that to warm up
  std::chrono::microseconds poll{0};  ///< both ends poll for so long without work before they sleep
  [[nodiscard]] std::size_t slots() const { return connections * outstanding; }
};

inline std::chrono::microseconds parse_poll(const char* word) { return std::chrono::microseconds(std::atoi(word)); }

/// CONNECTIONS OUTSTANDING SECONDS POLL_US; ends the program where they make no sense.
inline Plan parse_plan(char** words) {
  const Plan plan{static_cast<std::size_t>(std::atoi(words[0])), static_cast<std::size_t>(std::atoi(words[1])),
                  std::atof(words[2]), parse_poll(words[3])};
  if (plan.slots() > 0 && plan.slots() <= 4096 && plan.seconds > 0) return plan;
  std::fprintf(stderr, "CONNECTIONS OUTSTANDING SECONDS POLL_US: 1 to 4096 requests in all, and some time\n");
  std::exit(2);
}

/// Whether a loop that finds no work is to poll on, or to sleep.
class Patience {
 public:
  explicit Patience(std::chrono::microseconds poll) : poll_(poll) {}
  void worked() { idle_ = false; }
  /// After a turn without work.
  bool is_over() {
    if (poll_.count() == 0) return true;
    const auto now = std::chrono::steady_clock::now();
    if (!idle_) since_ = now;
    idle_ = true;
    return now - since_ >= poll_;
  }

 private:
  std::chrono::microseconds poll_;
  std::chrono::steady_clock::time_point since_;
  bool idle_ = false;
};

/// The requests of a client: so many slots, each with one under way, whose bytes no other request has. One thread asks,
/// the one that made it measures.
class Load {
 public:
  explicit Load(const Plan& plan) : plan_(plan), asked_(plan.slots()) {}

  [[nodiscard]] const Plan& plan() const { return plan_; }
  /// The bytes of the slot's next request; they stay until the one after.
  const Content& next(std::size_t slot) {
    Content& bytes = asked_[slot];
    for (std::size_t at = 0; at < kBytes; at += sizeof number_) {
      number_ = number_ * 6364136223846793005U + 1442695040888963407U;
      std::memcpy(bytes.data() + at, &number_, sizeof number_);
    }
    if (slot == 0) began_ = Clock::now();
    return bytes;
  }
  /// Compares an answer. Whether there is to be another request.
  bool ended(std::size_t slot, const void* answer, std::size_t length) {
    if (length != kBytes || std::memcmp(answer, asked_[slot].data(), kBytes) != 0) fail("an answer is not its request");
    if (slot == 0) micros_.push_back(std::chrono::duration<float, std::micro>(Clock::now() - began_).count());
    done_.add(1);
    return !stopping();
  }
  [[nodiscard]] bool stopping() const { return stop_.load(std::memory_order_relaxed); }
  [[noreturn]] static void fail(const char* what) {
    std::fprintf(stderr, "%s\n", what);
    std::_Exit(6);
  }

  /// Runs `client` on a thread, which ends soon after stopping(), watches it and prints.
  void measure(const std::function<void()>& client) {
    std::thread asking(client);
    watch();
    asking.join();
    print();
  }

  /// Waits, and reads the count at the beginning and the end.
  void watch() {
    const auto wait = [](double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); };
    for (int i = 0; done_.get() < plan_.slots() && i < 1000; ++i) wait(0.01);  // all connections are there
    wait(plan_.seconds / 3);
    const Clock::time_point from = Clock::now();
    const std::uint64_t before = done_.get();
    wait(plan_.seconds);
    measured_ = done_.get() - before;
    seconds_ = std::chrono::duration<double>(Clock::now() - from).count();
    stop_ = true;
  }

  /// Prints as JSON what was done while it was measured, after the client's thread has ended. Of round trips: those of
  /// one slot.
  void print() {
    std::sort(micros_.begin(), micros_.end());
    const auto quantile = [&](double part) {
      return micros_.empty()
                 ? 0.0
                 : double{micros_[static_cast<std::size_t>(part * static_cast<double>(micros_.size() - 1))]};
    };
    std::printf(
        "{\"requests\": %llu, \"compared\": %llu, \"seconds\": %.4f, \"per_s\": %.1f, \"p50_us\": %.2f, \"p99_us\": "
        "%.2f}\n",
        static_cast<unsigned long long>(measured_), static_cast<unsigned long long>(done_.get()), seconds_,
        static_cast<double>(measured_) / seconds_, quantile(0.5), quantile(0.99));
  }

 private:
  using Clock = std::chrono::steady_clock;
  Plan plan_;
  std::vector<Content> asked_;
  std::uint64_t number_ = 1;
  Clock::time_point began_;
  std::vector<float> micros_;
  Counter done_;
  std::atomic<bool> stop_{false};
  std::uint64_t measured_ = 0;
  double seconds_ = 0;
};

}  // namespace warpline::echo
