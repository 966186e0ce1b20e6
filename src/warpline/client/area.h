// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace warpline::client {

/// The memory that `message daemon` shares with one client, and what the two say to each other in it
/// (docs/message_daemon.md). The client may write anything anywhere at any time: the daemon reads each word once, and
/// bounds it. All words are in the machine's byte order.
inline constexpr std::uint64_t kAreaMagic = 0x77617270'61726561;
inline constexpr std::uint32_t kAreaVersion = 1;

/// What the area is made for. Written by the daemon before the client gets it, and not read by the daemon any more.
struct AreaFacts {
  std::uint64_t magic = kAreaMagic;
  std::uint32_t version = kAreaVersion;
  std::uint32_t calls = 0;          ///< rooms for calls and one-way messages of the client
  std::uint32_t requests = 0;       ///< rooms for requests and one-way messages of peers
  std::uint32_t sessions = 0;       ///< numbers that the client may give to sessions
  std::uint32_t message_bytes = 0;  ///< of the longest message, either way
  std::uint32_t submissions = 0;    ///< places in the submission ring, a power of two
  std::uint32_t completions = 0;    ///< places in the completion ring, a power of two
};

/// Why the daemon reads a client's ring no more.
enum class AreaEnd : std::uint32_t {
  none,      ///< it still does
  stopped,   ///< the daemon ends
  expelled,  ///< the client has written what no client library writes
};

/// Where the two are in the rings, each word counted up for ever, and whether they sleep. One line each.
struct AreaIndices {
  // Written by the client.
  alignas(64) std::uint32_t submission_tail;  ///< submissions written
  std::uint32_t completion_head;              ///< completions read
  std::uint32_t client_sleeps;                ///< 1: a byte on the socket is to wake it
  // Written by the daemon.
  alignas(64) std::uint32_t submission_head;  ///< submissions taken
  std::uint32_t completion_tail;              ///< completions written
  std::uint32_t daemon_sleeps;                ///< 1: a byte on the socket is to wake it
  std::uint32_t ended;                        ///< an AreaEnd
};

/// What a submission asks for.
enum class Operation : std::uint8_t {
  connect = 1,  ///< opens `session` to `address`; ends with `lost`, perhaps after `connected`
  close = 2,    ///< ends `session`
  request = 3,  ///< sends what is in call room `slot`; ends with `response`
  send = 4,     ///< the same one-way; ends with `sent`
  cancel = 5,   ///< ends the call in `slot` early
  listen = 6,   ///< takes requests and messages with `length` codes from `code` on; ends with `listening`
  answer = 7,   ///< answers the request in request room `slot` with what is in its answer room
  release = 8,  ///< gives back the message in request room `slot`, or declines the request there
};

inline constexpr std::uint8_t kOrderedFlag = 1;  ///< of `connect`: messages are handed out in the order of sending
inline constexpr std::uint8_t kHighFlag = 1;     ///< of `request` and `send`: message::Priority::high

/// An entry of the submission ring.
struct Submission {
  Operation operation{};
  std::uint8_t flags = 0;
  std::uint16_t code = 0;
  std::uint32_t slot = 0;
  std::uint32_t session = 0;
  std::uint32_t length = 0;
  std::uint64_t tag = 0;       ///< comes back
  std::int64_t patience = 0;   ///< of a request: nanoseconds until it ends as `deadline`; 0 or less: none
  std::uint8_t address[16]{};  ///< IPv6, or IPv4-mapped
  std::uint32_t scope = 0;     ///< of a link-local address: the interface's index
  std::uint16_t port = 0;
  std::uint8_t unused[10]{};
};
static_assert(sizeof(Submission) == 64);

/// What a completion tells; a client's numbers of client.h.
enum class CompletionKind : std::uint8_t {
  connected = 1,
  lost = 2,
  response = 3,
  sent = 4,
  request = 5,
  message = 6,
  withdrawn = 7,
  listening = 8,
};

/// Statuses of a completion: those of message::MessageStatus, and these.
inline constexpr std::uint8_t kNoMemory = 6;   ///< the daemon has no room for it now
inline constexpr std::uint8_t kGoingAway = 7;  ///< the peer takes nothing new on this session
inline constexpr std::uint8_t kInUse = 8;      ///< of `listening`: another client has one of the codes

/// An entry of the completion ring.
struct AreaCompletion {
  CompletionKind kind{};
  std::uint8_t status = 0;
  std::uint8_t reach = 0;   ///< a message::Reach
  std::uint8_t reason = 0;  ///< a message::LossReason
  std::uint16_t code = 0;
  std::uint16_t port = 0;  ///< of the peer
  std::uint32_t slot = 0;
  std::uint32_t session = 0;
  std::uint32_t length = 0;
  std::uint32_t unused = 0;
  std::uint64_t tag = 0;
  std::int64_t time_left = 0;  ///< of a request: nanoseconds until its sender gives it up; 0: not known
  std::uint8_t address[16]{};  ///< of the peer that sent a request or message
  std::uint64_t unused_too = 0;
};
static_assert(sizeof(AreaCompletion) == 64);

/// Where things are in an area.
struct AreaLayout {
  std::uint64_t submissions = 0;  ///< first byte of the ring
  std::uint64_t completions = 0;
  std::uint64_t rooms = 0;       ///< of calls, then of requests: two each, for what goes there and what comes back
  std::uint64_t room_bytes = 0;  ///< from one room to the next
  std::uint64_t bytes = 0;       ///< of all

  static constexpr std::uint64_t kIndices = 4096;
  static constexpr std::uint64_t kRings = 8192;

  [[nodiscard]] static constexpr AreaLayout of(const AreaFacts& facts) {
    AreaLayout layout;
    layout.submissions = kRings;
    layout.completions = layout.submissions + std::uint64_t{facts.submissions} * sizeof(Submission);
    layout.rooms = layout.completions + std::uint64_t{facts.completions} * sizeof(AreaCompletion);
    layout.rooms = (layout.rooms + 4095) / 4096 * 4096;
    layout.room_bytes = (std::uint64_t{facts.message_bytes} + 63) / 64 * 64;
    layout.bytes = layout.rooms + 2 * (std::uint64_t{facts.calls} + facts.requests) * layout.room_bytes;
    layout.bytes = (layout.bytes + 4095) / 4096 * 4096;
    return layout;
  }

  /// First byte of a room: of the call `slot`, or with `slot` counted on behind the calls, of a request.
  [[nodiscard]] constexpr std::uint64_t room(std::uint64_t slot, bool back) const {
    return rooms + (2 * slot + (back ? 1 : 0)) * room_bytes;
  }
};

/// The first message on the socket, from the daemon, with the area's descriptor beside it if `status` is `welcome`. The
/// client says nothing; further messages, of one byte either way, only wake.
struct Welcome {
  enum Status : std::uint32_t {
    welcome,
    not_allowed,  ///< this user may not attach
    full,         ///< as many clients are attached, or of this user, as may be
    no_memory,    ///< the machine has no memory or descriptors for another
  };
  std::uint64_t magic = kAreaMagic;
  std::uint32_t version = kAreaVersion;
  std::uint32_t status = welcome;
};

/// A word that the other process writes, too.
inline std::uint32_t load_acquire(const std::uint32_t& word) {
  return std::atomic_ref(const_cast<std::uint32_t&>(word)).load(std::memory_order_acquire);
}
inline void store_release(std::uint32_t& word, std::uint32_t value) {
  std::atomic_ref(word).store(value, std::memory_order_release);
}

/// Whether the other process said that it sleeps; who asks wakes it, and nobody else has to.
inline bool take_sleep(std::uint32_t& sleeps) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::atomic_ref word(sleeps);
  return word.load(std::memory_order_relaxed) != 0 && word.exchange(0, std::memory_order_acq_rel) != 0;
}

/// An entry as it was at this moment: each word is read once, whatever the other process writes meanwhile.
template <typename T>
T copy_once(const std::uint8_t* from) {
  static_assert(sizeof(T) % 8 == 0);
  std::uint64_t words[sizeof(T) / 8];
  for (std::size_t i = 0; i < sizeof(T) / 8; ++i) {
    auto* const word = reinterpret_cast<std::uint64_t*>(const_cast<std::uint8_t*>(from)) + i;
    words[i] = std::atomic_ref(*word).load(std::memory_order_relaxed);
  }
  return std::bit_cast<T>(words);
}

}  // namespace warpline::client
