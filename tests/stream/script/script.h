// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/stream/receiver_settings.h"

/// Scripts that say what a receiver of TCP hears and has to answer: docs/develop/stream_scripts.md has the language.
namespace warpline::stream_script {

/// When something happens, or may: nanoseconds from the event before it or from the script's beginning.
struct When {
  enum class Kind : std::uint8_t { relative, absolute, any };
  Kind kind = Kind::relative;
  std::int64_t from = 0;
  std::int64_t to = 0;  ///< as `from`, unless a range was given
};

/// A TCP option as it is written between angle brackets. Which fields count depends on the kind.
struct Option {
  enum class Kind : std::uint8_t { mss, nop, end, scale, permitted, timestamps, blocks, raw };
  Kind kind = Kind::nop;
  std::uint32_t value = 0;                                      ///< of mss and scale; TSval
  std::uint32_t echo = 0;                                       ///< TSecr
  bool any_value = false;                                       ///< TSval is not compared
  std::vector<std::pair<std::uint32_t, std::uint32_t>> blocks;  ///< of SACK, relative
  std::vector<std::uint8_t> raw;                                ///< as on the wire
};

/// A segment; sequence and acknowledgement numbers are relative to the first one of who sent them.
struct Segment {
  std::uint8_t flags = 0;
  std::uint32_t sequence = 0;
  std::uint32_t length = 0;
  std::optional<std::uint32_t> acknowledgement;
  std::optional<std::uint32_t> window;  ///< the header's field
  std::uint16_t urgent = 0;
  std::vector<Option> options;
  bool any_options = false;                 ///< `<...>`
  std::optional<std::uint8_t> fill;         ///< every byte of the payload; none: the pattern
  std::optional<std::uint16_t> port;        ///< of the receiver, if not the one that it listens on
  std::optional<std::uint8_t> data_offset;  ///< in words, if not the right one
  bool wrong_checksum = false;
  std::uint32_t peer = 1;
};

struct Injected : Segment {};  ///< a segment that the receiver hears
struct Expected : Segment {};  ///< a segment that the receiver has to send

/// What the application does, or finds.
struct Action {
  enum class Kind : std::uint8_t {
    accept,       ///< the connection is there
    read,         ///< reads `number` bytes and looks at them
    readable,     ///< `number` bytes can be read, no more and no fewer
    eof,          ///< all was read, and nothing follows
    reset,        ///< the peer has aborted the connection
    timed_out,    ///< the peer is silent
    close,        ///< ends the connection
    abort,        ///< ends it by a reset
    urgent,       ///< bytes up to `number` are urgent
    connections,  ///< `number` connections have a place
    count,        ///< `number` segments have the disposition `name`
  };
  Kind kind = Kind::accept;
  std::uint64_t number = 0;
  std::optional<std::uint8_t> fill;
  std::string name;
  std::uint32_t peer = 1;
};

/// For whom a line is.
enum class Audience : std::uint8_t { all, receiver, kernel };

struct Event {
  std::uint32_t line = 0;
  Audience audience = Audience::all;
  When when;
  std::variant<Injected, Expected, Action> what;
};

struct Script {
  std::string name;
  stream::ReceiverSettings settings;
  bool ipv6 = false;
  std::uint32_t peer_initial = 1000;  ///< sequence number of the peers' SYNs
  std::string without_kernel;         ///< why the kernel is not asked; empty: it is
  std::vector<Event> events;
};

/// Reads a script; `name` is for errors. Errors: usage, which name the line.
[[nodiscard]] Result<Script> parse_script(std::string_view text, std::string name);

}  // namespace warpline::stream_script
