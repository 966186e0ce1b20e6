// SPDX-License-Identifier: Apache-2.0
// Digests by a thread of the host.
#include <atomic>
#include <thread>
#include <vector>

#include "stream_digests.h"

using namespace warpline;

namespace {

class HostDigests final : public StreamDigests {
 public:
  HostDigests(const inspect::PatternSet& patterns, std::uint32_t connections)
      : table_(patterns.table()), states_(connections), findings_(connections) {}
  ~HostDigests() override { end(); }

  [[nodiscard]] int gpu() const override { return -1; }
  [[nodiscard]] bool begin(const stream::StreamBoard& board) override {
    thread_ = std::thread([this, board] {
      while (!stop_.load(std::memory_order_relaxed)) {
        for (std::uint32_t place = 0; place < board.count; ++place) read(stream::StreamReader(board, place));
        std::this_thread::yield();
      }
    });
    return true;
  }
  void end() override {
    stop_.store(true, std::memory_order_relaxed);
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] const StreamFindings& of(std::uint32_t place) const override { return findings_[place]; }

 private:
  void read(stream::StreamReader stream) {
    if (!stream) return;
    const std::uint32_t place = stream.connection().index;
    StreamFindings& findings = findings_[place];
    if (stream.released() == 0) {
      findings = {};
      states_[place] = 0;
    }
    const stream::StreamReach reach = stream.reach();
    const std::uint64_t count = reach.committed - stream.released();
    const std::uint8_t* const bytes = stream.at(stream.released());
    findings.digest.add(bytes, count);
    states_[place] =
        inspect::scan(table_, states_[place], bytes, count, [&](std::uint32_t pattern) { ++findings.found[pattern]; });
    if (count != 0) stream.release(count);
    if (reach.ended()) stream.finish();
  }

  inspect::PatternTable table_;
  std::vector<std::uint16_t> states_;  ///< of searches
  std::vector<StreamFindings> findings_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<StreamDigests>> StreamDigests::create(const inspect::PatternSet& patterns,
                                                             std::uint32_t connections) {
  return std::unique_ptr<StreamDigests>(std::make_unique<HostDigests>(patterns, connections));
}
