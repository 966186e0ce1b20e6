// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <limits>
#include <utility>

#include "script.h"
#include "warpline/packet/headers/tcp.h"
#include "warpline/stream/disposition.h"

namespace warpline::stream_script {
namespace {

constexpr std::string_view kBlank = " \t\r,";
constexpr std::size_t kMostOptions = 40;

/// Takes words off the front of a line. What fails leaves a reason behind, and all that follows fails, too.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  [[nodiscard]] bool empty() {
    skip_blanks();
    return text_.empty();
  }
  [[nodiscard]] std::string_view next() {
    skip_blanks();
    const std::size_t end = std::min(text_.find_first_of(kBlank), text_.size());
    const std::string_view word = text_.substr(0, end);
    text_.remove_prefix(end);
    return word;
  }
  [[nodiscard]] std::string_view peek() { return Words(text_).next(); }
  /// Takes the next word if it is this one.
  [[nodiscard]] bool take(std::string_view word) {
    if (peek() != word) return false;
    (void)next();
    return true;
  }
  [[nodiscard]] std::string_view rest() const { return text_; }

  /// A number in decimal or, behind 0x, in hexadecimal notation.
  std::uint32_t number(std::string_view what, std::uint64_t most = std::numeric_limits<std::uint32_t>::max()) {
    return static_cast<std::uint32_t>(number_of(next(), what, most));
  }
  std::uint64_t number_of(std::string_view word, std::string_view what, std::uint64_t most) {
    const bool hexadecimal = word.starts_with("0x");
    if (hexadecimal) word.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, hexadecimal ? 16 : 10);
    if (error != std::errc{} || end != word.data() + word.size() || value > most) {
      fail(std::string(what) + " is no number, or too large");
      return 0;
    }
    return value;
  }
  /// Seconds with at most nine digits behind the point, in nanoseconds.
  std::int64_t seconds(std::string_view word) {
    const std::size_t point = std::min(word.find('.'), word.size());
    constexpr std::uint64_t kLongest = 10'000'000;
    const std::string_view whole = word.substr(0, point);
    const std::string_view part = point == word.size() ? std::string_view{} : word.substr(point + 1);
    if ((whole.empty() && part.empty()) || part.size() > 9 || whole.starts_with("0x") || part.starts_with("0x")) {
      fail("a time is no number of seconds");
      return 0;
    }
    std::uint64_t nanoseconds = whole.empty() ? 0 : number_of(whole, "a time", kLongest) * 1'000'000'000;
    if (!part.empty()) {
      std::uint64_t digits = number_of(part, "a time", 999'999'999);
      for (std::size_t i = part.size(); i < 9; ++i) digits *= 10;
      nanoseconds += digits;
    }
    return static_cast<std::int64_t>(nanoseconds);
  }

  void fail(std::string why) {
    if (why_.empty()) why_ = std::move(why);
  }
  [[nodiscard]] const std::string& why() const { return why_; }  ///< empty: nothing failed

 private:
  void skip_blanks() { text_.remove_prefix(std::min(text_.find_first_not_of(kBlank), text_.size())); }

  std::string_view text_;
  std::string why_;
};

When read_when(Words& words) {
  When when;
  const std::string_view first = words.peek();
  if (first.empty() || (first[0] != '+' && first[0] != '*' && first[0] != '.' && (first[0] < '0' || first[0] > '9'))) {
    return when;  // at once
  }
  std::string_view word = words.next();
  if (word == "*") {
    when.kind = When::Kind::any;
    return when;
  }
  when.kind = word[0] == '+' ? When::Kind::relative : When::Kind::absolute;
  if (word[0] == '+') word.remove_prefix(1);
  const std::size_t wave = word.find('~');
  when.from = words.seconds(word.substr(0, wave));
  when.to = when.from;
  if (wave != std::string_view::npos) {
    word.remove_prefix(wave + 1);
    if (word.starts_with('+')) word.remove_prefix(1);
    when.to = words.seconds(word);
    if (when.to < when.from) words.fail("a range of times ends before it begins");
  }
  return when;
}

std::uint8_t read_flags(Words& words) {
  constexpr std::pair<char, std::uint8_t> kFlags[] = {
      {'F', packet::kTcpFin}, {'S', packet::kTcpSyn}, {'R', packet::kTcpRst}, {'P', packet::kTcpPsh},
      {'.', packet::kTcpAck}, {'U', packet::kTcpUrg}, {'E', packet::kTcpEce}, {'W', packet::kTcpCwr}};
  const std::string_view word = words.next();
  std::uint8_t flags = 0;
  if (word == "-") return flags;
  if (word.empty()) words.fail("a segment has no flags");
  for (const char letter : word) {
    std::uint8_t flag = 0;
    for (const auto& [known, bit] : kFlags) flag = known == letter ? bit : flag;
    if (flag == 0 || (flags & flag) != 0) words.fail("a flag is none of F S R P . U E W, or is there twice");
    flags |= flag;
  }
  return flags;
}

/// "1:1001(1000)"
void read_range(Words& words, Segment& segment) {
  const std::string_view word = words.next();
  const std::size_t colon = word.find(':');
  const std::size_t open = word.find('(');
  if (colon == std::string_view::npos || open == std::string_view::npos || open < colon || !word.ends_with(')')) {
    words.fail("a segment's range is not BEGIN:END(LENGTH)");
    return;
  }
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  constexpr std::uint64_t kLongest = 65'000;
  segment.sequence = static_cast<std::uint32_t>(words.number_of(word.substr(0, colon), "a sequence number", kMost));
  const auto end =
      static_cast<std::uint32_t>(words.number_of(word.substr(colon + 1, open - colon - 1), "a sequence number", kMost));
  segment.length =
      static_cast<std::uint32_t>(words.number_of(word.substr(open + 1, word.size() - open - 2), "a length", kLongest));
  if (segment.sequence + segment.length != end) words.fail("a segment's length does not fit its range");
}

std::vector<std::uint8_t> read_bytes(Words& words) {
  const std::string_view digits = words.next();
  std::vector<std::uint8_t> bytes;
  if (digits.size() % 2 != 0 || digits.empty() || digits.size() > 2 * kMostOptions) {
    words.fail("raw bytes are no pairs of hexadecimal digits, or too many");
    return bytes;
  }
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const std::string two = "0x" + std::string(digits.substr(i, 2));
    bytes.push_back(static_cast<std::uint8_t>(words.number_of(two, "a raw byte", 255)));
  }
  return bytes;
}

void read_blocks(Words& words, Option& option) {
  while (words.peek().find(':') != std::string_view::npos) {
    const std::string_view word = words.next();
    const std::size_t colon = word.find(':');
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
    option.blocks.emplace_back(words.number_of(word.substr(0, colon), "a block", kMost),
                               words.number_of(word.substr(colon + 1), "a block", kMost));
  }
  if (option.blocks.empty()) words.fail("sack has no blocks");
}

Option read_option(Words& words) {
  Option option;
  const std::string_view name = words.next();
  if (name == "mss") {
    option.kind = Option::Kind::mss;
    option.value = words.number("an MSS", 65535);
  } else if (name == "nop") {
    option.kind = Option::Kind::nop;
  } else if (name == "eol") {
    option.kind = Option::Kind::end;
  } else if (name == "wscale") {
    option.kind = Option::Kind::scale;
    option.value = words.number("a window scale", 255);
  } else if (name == "sackOK") {
    option.kind = Option::Kind::permitted;
  } else if (name == "TS") {
    option.kind = Option::Kind::timestamps;
    if (!words.take("val")) words.fail("TS is not followed by val");
    option.any_value = words.take("*");
    if (!option.any_value) option.value = words.number("TSval");
    if (!words.take("ecr")) words.fail("TS val is not followed by ecr");
    option.echo = words.number("TSecr");
  } else if (name == "sack") {
    option.kind = Option::Kind::blocks;
    read_blocks(words, option);
  } else if (name == "raw") {
    option.kind = Option::Kind::raw;
    option.raw = read_bytes(words);
  } else {
    words.fail("an option is none of mss nop eol wscale sackOK TS sack raw");
  }
  return option;
}

/// Bytes that an option takes in the header.
std::size_t size_of(const Option& option) {
  constexpr std::size_t kSizes[] = {4, 1, 1, 3, 2, 10};
  if (option.kind == Option::Kind::blocks) return 2 + 8 * option.blocks.size();
  if (option.kind == Option::Kind::raw) return option.raw.size();
  return kSizes[static_cast<std::size_t>(option.kind)];
}

void read_options(Words& words, std::string_view text, Segment& segment) {
  Words options(text);
  segment.any_options = options.take("...");
  std::size_t bytes = 0;
  while (!options.empty() && options.why().empty()) {
    segment.options.push_back(read_option(options));
    bytes += size_of(segment.options.back());
  }
  if (!options.why().empty()) words.fail(options.why());
  if (bytes > kMostOptions) words.fail("the options are longer than 40 bytes");
}

/// What stands behind the flags, with the options taken out.
Segment read_segment(Words& words) {
  Segment segment;
  std::string text(words.rest());
  if (const std::size_t open = text.find('<'); open != std::string::npos) {
    const std::size_t close = text.find('>', open);
    if (close == std::string::npos) words.fail("the options have no end");
    read_options(words, std::string_view(text).substr(open + 1, close - open - 1), segment);
    text.erase(open, close == std::string::npos ? close : close - open + 1);
  }
  Words rest(text);
  segment.flags = read_flags(rest);
  read_range(rest, segment);
  while (!rest.empty() && rest.why().empty()) {
    const std::string_view word = rest.next();
    if (word == "ack") {
      segment.acknowledgement = rest.number("an acknowledgement number");
    } else if (word == "win") {
      segment.window = rest.number("a window", 65535);
    } else if (word == "urg") {
      segment.urgent = static_cast<std::uint16_t>(rest.number("an urgent pointer", 65535));
    } else if (word == "fill") {
      segment.fill = static_cast<std::uint8_t>(rest.number("a byte", 255));
    } else if (word == "to") {
      segment.port = static_cast<std::uint16_t>(rest.number("a port", 65535));
    } else if (word == "doff") {
      segment.data_offset = static_cast<std::uint8_t>(rest.number("a data offset", 15));
    } else if (word == "peer") {
      segment.peer = rest.number("a peer", 1000);
    } else if (word == "wrong-checksum") {
      segment.wrong_checksum = true;
    } else {
      rest.fail("'" + std::string(word) + "' is no part of a segment");
    }
  }
  if (!rest.why().empty()) words.fail(rest.why());
  return segment;
}

bool is_disposition(std::string_view name) {
  for (std::size_t i = 0; i < stream::kDispositions; ++i) {
    if (stream::name(static_cast<stream::Disposition>(i)) == name) return true;
  }
  return false;
}

Action read_action(Words& words) {
  using Kind = Action::Kind;
  struct Known {
    std::string_view name;
    Kind kind;
    bool number;
  };
  constexpr Known kKnown[] = {{"accept", Kind::accept, false},    {"read", Kind::read, true},
                              {"readable", Kind::readable, true}, {"eof", Kind::eof, false},
                              {"reset", Kind::reset, false},      {"timed-out", Kind::timed_out, false},
                              {"close", Kind::close, false},      {"abort", Kind::abort, false},
                              {"urgent", Kind::urgent, true},     {"connections", Kind::connections, true},
                              {"count", Kind::count, true}};
  const std::string_view word = words.next();
  Action action;
  for (const Known& known : kKnown) {
    if (known.name != word) continue;
    action.kind = known.kind;
    if (known.kind == Kind::count) {
      action.name = words.next();
      if (!is_disposition(action.name)) words.fail("'" + action.name + "' is no disposition");
    }
    if (known.number) action.number = words.number("an action's number");
    if (words.take("fill")) action.fill = static_cast<std::uint8_t>(words.number("a byte", 255));
    if (words.take("peer")) action.peer = words.number("a peer", 1000);
    if (!words.empty()) words.fail("something follows an action");
    return action;
  }
  words.fail("'" + std::string(word) + "' is no action");
  return action;
}

/// "set NAME VALUE"
void read_setting(Words& words, Script& script) {
  stream::ReceiverSettings& settings = script.settings;
  const std::string_view name = words.next();
  const auto time = [&] { return Nanos{words.seconds(words.next())}; };
  if (name == "ring") {
    settings.ring_bytes = words.number("a ring");
  } else if (name == "connections") {
    settings.connections = words.number("a number of connections", 4096);
  } else if (name == "half-open") {
    settings.half_open = words.number("a number of connections", 4096);
  } else if (name == "mtu") {
    settings.mtu = static_cast<std::uint16_t>(words.number("an MTU", 9600));
  } else if (name == "delay") {
    settings.delayed_acknowledgement = time();
  } else if (name == "first-retransmission") {
    settings.first_retransmission = time();
  } else if (name == "retransmissions") {
    settings.retransmissions = words.number("a number", 15);
  } else if (name == "keepalive-idle") {
    settings.keepalive_idle = time();
  } else if (name == "keepalive-interval") {
    settings.keepalive_interval = time();
  } else if (name == "keepalive-probes") {
    settings.keepalive_probes = words.number("a number", 100);
  } else if (name == "resets-per-second") {
    settings.resets_per_second = words.number("a number");
  } else if (name == "peer-initial") {
    script.peer_initial = words.number("a sequence number");
  } else if (name == "ipv6") {
    script.ipv6 = true;
  } else {
    words.fail("'" + std::string(name) + "' is no setting");
  }
  if (!words.empty()) words.fail("something follows a setting");
}

void read_line(Words& words, std::uint32_t line, Script& script) {
  if (words.take("set")) return read_setting(words, script);
  if (words.take("without")) {
    if (!words.take("linux:") || words.empty()) words.fail("who is left out is not 'linux: REASON'");
    script.without_kernel = words.rest();
    return;
  }
  Event event;
  event.line = line;
  if (words.take("linux:")) event.audience = Audience::kernel;
  if (words.take("receiver:")) event.audience = Audience::receiver;
  event.when = read_when(words);
  if (words.take("<")) {
    event.what = Injected{read_segment(words)};
  } else if (words.take(">")) {
    event.what = Expected{read_segment(words)};
    if (std::get<Expected>(event.what).length != 0) words.fail("a receiver sends no bytes");
  } else {
    event.what = read_action(words);
  }
  const bool expected = std::holds_alternative<Expected>(event.what);
  if (!expected && (event.when.kind == When::Kind::any || event.when.from != event.when.to)) {
    words.fail("only what is expected may come at any time, or within a range");
  }
  script.events.push_back(std::move(event));
}

Script defaults(std::string name) {
  Script script;
  script.name = std::move(name);
  script.settings.connections = 8;
  script.settings.half_open = 4;
  script.settings.ring_bytes = 64 << 10;
  script.settings.secret[0] = 1;
  return script;
}

}  // namespace

Result<Script> parse_script(std::string_view text, std::string name) {
  Script script = defaults(std::move(name));
  for (std::uint32_t line = 1; !text.empty(); ++line) {
    std::string_view words = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(words.size() + 1, text.size()));
    words = words.substr(0, words.find('#'));
    words = words.substr(0, words.find("//"));
    Words reader(words);
    if (reader.empty()) continue;
    read_line(reader, line, script);
    if (!reader.why().empty()) {
      return usage_error(script.name + ":" + std::to_string(line), reader.why(), "see docs/develop/stream_scripts.md");
    }
  }
  return script;
}

}  // namespace warpline::stream_script
