// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "warpline/message/types.h"
#include "warpline/rpc/call.h"
#include "warpline/rpc/message_host.h"

namespace warpline::rpc {

/// Calls whose requests are the rows of an array, and whose responses become those of another. A host's thread keeps
/// some of them under way until all have ended; after the first that fails it begins no more.
class CallRows {
 public:
  /// What the calls are made of.
  struct Setup {
    const std::uint8_t* requests = nullptr;  ///< rows one behind the other; untouched until all have ended
    std::uint32_t request_bytes = 0;         ///< of each
    bool requests_on_gpu = false;            ///< see message::ConstBuffer
    std::uint8_t* responses = nullptr;       ///< rows for the responses; untouched until all have ended
    std::uint32_t response_bytes = 0;        ///< of each, that there is room for
    bool responses_on_gpu = false;           ///< see message::MutableBuffer
    std::uint32_t* lengths = nullptr;        ///< how long each response was; null: nobody asks
    std::uint32_t rows = 0;                  ///< one at least
    std::uint32_t at_once = 1;               ///< most that are under way
    std::uint16_t code = 0;                  ///< of all: see Call
    message::Priority priority = message::Priority::normal;  ///< of all
    Nanos patience = message::kNever;                        ///< of each, from its own beginning
  };

  explicit CallRows(const Setup& setup);

  // By any thread.
  /// Begins no more, and cancels those under way, as soon as the host's thread sees it.
  void stop() { stop_.store(true, std::memory_order_release); }

  // By the host's thread.
  /// Begins calls as far as there is room; `ended` is told when the last one has ended.
  void begin(MessageHost& host, message::SessionId session, void (*ended)(void* context), void* context);
  /// Goes on where there was no room, or somebody said stop().
  void advance();

  // When it has ended.
  /// The first row that failed; `rows` if none did. A response with a code other than 0 is a failure.
  [[nodiscard]] std::uint32_t failed_row() const { return failed_row_; }
  /// How that row ended, or ok. Stopped: as cancelled, of the first row that did not end.
  [[nodiscard]] const CallResult& failure() const { return failure_; }

  CallRows* next = nullptr;  ///< whose thread begins it links those that are under way

 private:
  struct Slot {
    std::uint32_t row = 0;
    CallId id;
    bool used = false;
  };
  void fill();
  void finish();
  void row_ended(std::uint32_t slot, const CallResult& result);

  Setup setup_;
  MessageHost* host_ = nullptr;
  message::SessionId session_;
  void (*ended_)(void* context) = nullptr;
  void* context_ = nullptr;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::uint32_t next_row_ = 0;
  std::uint32_t under_way_ = 0;
  std::uint32_t failed_row_;
  CallResult failure_;
  bool cancelled_ = false;
  bool over_ = false;
  std::atomic<bool> stop_{false};
};

}  // namespace warpline::rpc
