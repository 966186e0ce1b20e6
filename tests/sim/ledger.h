// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "warpline/message/types.h"

namespace warpline::sim {

enum class AnswerKind : std::uint8_t { at_once, later, nested, echo, declined };

/// A request or one-way message as its sender meant it, and what became of it.
struct Sent {
  std::uint32_t from = 0;  ///< host
  std::uint32_t to = 0;    ///< host
  std::uint32_t length = 0;
  std::uint32_t answer_length = 0;
  std::uint32_t answer_room = 0;
  AnswerKind answer = AnswerKind::at_once;
  bool one_way = false;
  bool more = false;
  bool may_expire = false;
  bool may_be_cancelled = false;
  bool answer_in_endpoint = false;    ///< its memory, where any length has room
  std::uint32_t metadata = 0;         ///< bytes
  std::uint32_t answer_metadata = 0;  ///< bytes
  bool too_long = false;              ///< for the peer
  bool own_session = false;           ///< over one that its sender had opened

  std::uint32_t handled = 0;
  std::uint32_t completed = 0;
  message::MessageStatus status = message::MessageStatus::ok;
  message::Reach reach = message::Reach::never_sent;  ///< as its sender was told
  std::uint16_t code = 0;                             ///< as its sender was told
  bool crashed = false;                               ///< its sender, while it was under way
};

/// What all hosts sent, handled and were told; and all that is wrong with it. A message is named by its sender and its
/// code.
class Ledger {
 public:
  static constexpr std::uint32_t kMostOfAHost = 1 << 16;

  explicit Ledger(std::uint32_t hosts) : sent_(hosts) {}

  [[nodiscard]] std::uint16_t next_code(std::uint32_t from) const {
    return static_cast<std::uint16_t>(sent_[from].size());
  }
  void add(const Sent& message) { sent_[message.from].push_back(message); }
  /// Null, and a failure, if there is no such message.
  Sent* find(std::uint32_t from, std::uint16_t code);

  /// Seed of the content of a message or of its answer.
  [[nodiscard]] static std::uint64_t content(std::uint32_t from, std::uint16_t code, bool answer);
  /// The same of its metadata.
  [[nodiscard]] static std::uint64_t metadata(std::uint32_t from, std::uint16_t code, bool answer) {
    return ~content(from, code, answer);
  }

  /// The host `at` got it. Null if it is not to be answered or given back.
  Sent* handled(std::uint32_t at, std::uint32_t from, const message::MessageEvent& event);
  void completed(std::uint32_t from, std::uint16_t code, const message::MessageEvent& event);
  /// The host's messages under way end without notice.
  void crashed(std::uint32_t host);

  void fail(std::string what);
  /// What may have become of messages, beside what was asked for.
  struct Excuses {
    bool peers_lost = false;  ///< sessions may have been given up, and with them one-way messages that had arrived and
                              ///< waited for their turn
    std::vector<bool> drained{};  ///< by host
    std::vector<bool> deaf{};  ///< by host: its ring lost most of what was sent to it, because it was away or too slow
    bool in_time = false;      ///< hosts that drained had all the time that answers took

    /// Sessions between these hosts may have been given up, whether or not one of them drained.
    [[nodiscard]] bool may_lose(std::uint32_t from, std::uint32_t to) const {
      return peers_lost || has(deaf, from) || has(deaf, to);
    }
    [[nodiscard]] bool any_drained(std::uint32_t from, std::uint32_t to) const {
      return has(drained, from) || has(drained, to);
    }

   private:
    static bool has(const std::vector<bool>& hosts, std::uint32_t host) { return host < hosts.size() && hosts[host]; }
  };
  /// Checks what can only be seen at the end.
  void finish(const Excuses& excuses);

  /// At most 20, and how many in all.
  [[nodiscard]] const std::vector<std::string>& failures() const { return failures_; }
  [[nodiscard]] std::uint64_t failure_count() const { return failure_count_; }
  [[nodiscard]] std::string summary() const;

 private:
  void finish(const Sent& message, std::uint16_t code, const Excuses& excuses);

  std::vector<std::vector<Sent>> sent_;  ///< by host, by code
  std::vector<std::string> failures_;
  std::uint64_t failure_count_ = 0;
};

}  // namespace warpline::sim
