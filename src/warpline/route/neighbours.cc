// SPDX-License-Identifier: Apache-2.0
#include "warpline/route/neighbours.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

#include "warpline/base/random.h"

namespace warpline::route {
namespace {

constexpr Ipv6Address kMapped{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}};
constexpr std::size_t kMappedPrefix = 12;

struct AddressWords {
  std::uint64_t first;
  std::uint64_t second;
};

AddressWords words_of(const Ipv6Address& address) {
  AddressWords words;
  std::memcpy(&words, address.bytes.data(), sizeof words);
  return words;
}

std::uint64_t bits_of(const MacAddress& mac) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, mac.bytes.data(), mac.bytes.size());
  return bits;
}

bool is_unresolved(const NeighbourWord& word) {
  return word.state() == NeighbourState::incomplete || word.state() == NeighbourState::failed;
}

}  // namespace

NeighbourKey NeighbourKey::of(std::uint16_t port, const Ipv4Address& address) {
  NeighbourKey key{kMapped, port};
  std::ranges::copy(address.bytes, key.address.bytes.begin() + kMappedPrefix);
  return key;
}

NeighbourKey NeighbourKey::of(std::uint16_t port, const IpAddress& address) {
  return std::visit([port](const auto& ip) { return of(port, ip); }, address);
}

IpAddress NeighbourKey::ip() const {
  if (!std::equal(address.bytes.begin(), address.bytes.begin() + kMappedPrefix, kMapped.bytes.begin())) return address;
  Ipv4Address v4;
  std::copy(address.bytes.begin() + kMappedPrefix, address.bytes.end(), v4.bytes.begin());
  return v4;
}

NeighbourTable::NeighbourTable(std::uint32_t capacity, const NeighbourTimes& times)
    : times_(times),
      seed_(std::uint64_t{std::random_device{}()} << 32 | std::random_device{}()),
      buckets_(std::bit_ceil(std::max(capacity, kWays)) / kWays),
      tags_(std::make_unique<Bucket[]>(buckets_)),
      entries_(std::make_unique<Entry[]>(std::size_t{buckets_} * kWays + 1)) {}

/// Never 0. Its lower bits choose the bucket. Keys with one tag keep each other out, so that nobody may foretell it.
std::uint64_t NeighbourTable::tag_of(const NeighbourKey& key) const {
  const AddressWords words = words_of(key.address);
  const std::uint64_t tag = mix64(mix64(mix64(words.first ^ seed_) ^ words.second) ^ key.port);
  return tag == 0 ? 1 : tag;
}

/// The acquire loads of the key are between two looks at the generation, which a claimer's release stores keep apart.
std::optional<NeighbourKey> NeighbourTable::key(std::uint32_t slot) const {
  const Entry& entry = entries_[slot];
  const NeighbourWord before(entry.word.load(std::memory_order_acquire));
  if (before.state() == NeighbourState::none) return std::nullopt;
  const AddressWords words{entry.address[0].load(std::memory_order_acquire),
                           entry.address[1].load(std::memory_order_acquire)};
  NeighbourKey key;
  std::memcpy(key.address.bytes.data(), &words, sizeof words);
  key.port = static_cast<std::uint16_t>(entry.port.load(std::memory_order_acquire));
  const NeighbourWord after(entry.word.load(std::memory_order_relaxed));
  if (after.generation() != before.generation()) return std::nullopt;
  return key;
}

bool NeighbourTable::is(std::uint32_t slot, const NeighbourKey& wanted) const { return key(slot) == wanted; }

std::uint32_t NeighbourTable::search(const NeighbourKey& key, std::uint64_t tag) const {
  const std::uint32_t bucket = static_cast<std::uint32_t>(tag) & (buckets_ - 1);
  for (std::uint32_t way = 0; way < kWays; ++way) {
    if (tags_[bucket].tags[way].load(std::memory_order_acquire) != tag) continue;
    const std::uint32_t slot = 1 + bucket * kWays + way;
    if (is(slot, key)) return slot;
  }
  return kNobody;
}

std::uint32_t NeighbourTable::find(const NeighbourKey& key) const { return search(key, tag_of(key)); }

std::uint32_t NeighbourTable::find_or_add(const NeighbourKey& key, Nanos now) {
  const std::uint64_t tag = tag_of(key);
  if (const std::uint32_t slot = search(key, tag); slot != kNobody) return slot;
  constexpr std::uint32_t kBucketsTried = 4;
  bool room = unresolved_.load(std::memory_order_relaxed) < buckets_ * kWays / kUnresolvedShare;
  for (std::uint32_t i = 0; !room && i < kBucketsTried; ++i) room = make_room(tag + i, now);
  if (!room) return kNobody;
  const std::uint32_t slot = add(key, tag, now);
  return slot == kNobody && make_room(tag, now) ? add(key, tag, now) : slot;
}

/// Forgets a neighbour of the tag's bucket that has not answered in time. Returns whether there was one.
bool NeighbourTable::make_room(std::uint64_t tag, Nanos now) {
  if (!times_.replaced) return false;
  const std::uint32_t bucket = static_cast<std::uint32_t>(tag) & (buckets_ - 1);
  for (std::uint32_t way = 0; way < kWays; ++way) {
    const std::uint32_t slot = 1 + bucket * kWays + way;
    const Entry& entry = entries_[slot];
    NeighbourWord word(entry.word.load(std::memory_order_acquire));
    const std::int64_t waited = now.value - entry.confirmed.load(std::memory_order_relaxed);  // since it was added
    if (!is_unresolved(word) || waited < times_.replaced->value) continue;
    if (!change(slot, word, NeighbourWord(0, NeighbourState::none, false, word.generation() + 1))) continue;
    tags_[bucket].tags[way].store(0, std::memory_order_release);
    return true;
  }
  return false;
}

/// Whatever share of the table is taken. The key was not found.
std::uint32_t NeighbourTable::add(const NeighbourKey& key, std::uint64_t tag, Nanos now) {
  const std::uint32_t bucket = static_cast<std::uint32_t>(tag) & (buckets_ - 1);
  auto& tags = tags_[bucket].tags;
  for (std::uint32_t way = 0; way < kWays; ++way) {
    std::uint64_t expected = 0;
    if (!tags[way].compare_exchange_strong(expected, tag, std::memory_order_seq_cst)) {
      if (expected == tag) return search(key, tag);
      continue;
    }
    // Another lcore may have claimed another way for the same key. Sequential consistency: one of the two sees the
    // other's claim, and steps back; the caller tries again with its next packet.
    for (std::uint32_t other = 0; other < kWays; ++other) {
      if (other == way || tags[other].load(std::memory_order_seq_cst) != tag) continue;
      tags[way].store(0, std::memory_order_release);
      return search(key, tag);
    }
    const std::uint32_t slot = 1 + bucket * kWays + way;
    claim(slot, key, now);
    return slot;
  }
  return kNobody;
}

/// The slot's word says `none`, and its tag is the caller's.
void NeighbourTable::claim(std::uint32_t slot, const NeighbourKey& key, Nanos now) {
  Entry& entry = entries_[slot];
  const AddressWords words = words_of(key.address);
  entry.address[0].store(words.first, std::memory_order_release);
  entry.address[1].store(words.second, std::memory_order_release);
  entry.port.store(key.port, std::memory_order_release);
  entry.asked.store(0, std::memory_order_relaxed);
  entry.ask_again.store(now.value, std::memory_order_relaxed);
  entry.confirmed.store(now.value, std::memory_order_relaxed);
  entry.needed.store(now.value, std::memory_order_relaxed);
  unresolved_.fetch_add(1, std::memory_order_relaxed);
  const std::uint32_t generation = NeighbourWord(entry.word.load(std::memory_order_relaxed)).generation() + 1;
  entry.word.store(NeighbourWord(0, NeighbourState::incomplete, true, generation).bits(), std::memory_order_release);
}

bool NeighbourTable::change(std::uint32_t slot, NeighbourWord& from, NeighbourWord to) {
  std::uint64_t bits = from.bits();
  const bool changed = entries_[slot].word.compare_exchange_strong(bits, to.bits(), std::memory_order_acq_rel,
                                                                   std::memory_order_acquire);
  if (changed && is_unresolved(from) != is_unresolved(to)) {
    unresolved_.fetch_add(is_unresolved(to) ? 1U : ~0U, std::memory_order_relaxed);
  }
  from = NeighbourWord(bits);
  return changed;
}

NeighbourQuestion NeighbourTable::use(std::uint32_t slot, Nanos now, bool may_ask) {
  Entry& entry = entries_[slot];
  NeighbourWord word(entry.word.load(std::memory_order_acquire));
  while (word.state() != NeighbourState::none && !word.used()) {
    const NeighbourWord used(word.mac(), word.state(), true, word.generation());
    if (change(slot, word, used)) word = used;
  }
  if (word.state() != NeighbourState::incomplete && word.state() != NeighbourState::stale) return {};
  if (!may_ask && entry.asked.load(std::memory_order_relaxed) < times_.requests) return {};
  std::int64_t again = entry.ask_again.load(std::memory_order_relaxed);
  if (now.value < again ||
      !entry.ask_again.compare_exchange_strong(again, now.value + times_.retransmit.value, std::memory_order_relaxed)) {
    return {};
  }
  // The only one to come here for as long as a request takes.
  const bool known = word.has_mac();
  if (entry.asked.load(std::memory_order_relaxed) < times_.requests) {
    entry.asked.fetch_add(1, std::memory_order_relaxed);
    NeighbourQuestion question{.send = true, .to = std::nullopt};
    if (known) {
      const std::uint64_t mac = word.mac();
      std::memcpy(question.to.emplace().bytes.data(), &mac, sizeof question.to->bytes);
    }
    return question;
  }
  if (known) {  // where it was it is no more: all are asked, at the next use
    entry.asked.store(0, std::memory_order_relaxed);
    entry.ask_again.store(now.value, std::memory_order_relaxed);
    (void)change(slot, word, NeighbourWord(0, NeighbourState::incomplete, true, word.generation()));
  } else {
    entry.confirmed.store(now.value, std::memory_order_relaxed);
    if (change(slot, word, NeighbourWord(0, NeighbourState::failed, true, word.generation()))) announce();
  }
  return {};
}

namespace {

/// RFC 4861, 7.2.5, and Appendix C. Nothing: the message changes nothing.
std::optional<NeighbourWord> after(const NeighbourWord& word, const NeighbourEvidence& evidence) {
  // Without its option an advertisement says nothing new of the MAC address, and completes no entry.
  if (!evidence.mac && !word.has_mac()) return std::nullopt;
  const std::uint64_t mac = evidence.mac ? bits_of(*evidence.mac) : word.mac();
  const auto becomes = [&](std::uint64_t bits, NeighbourState state) {
    return NeighbourWord(bits, state, word.used(), word.generation());
  };
  const NeighbourState told = evidence.answers ? NeighbourState::reachable : NeighbourState::stale;
  if (!word.has_mac()) return becomes(mac, told);
  const bool same = word.mac() == mac;
  if (!same && !evidence.overrides) {
    if (word.state() == NeighbourState::stale) return std::nullopt;
    return becomes(word.mac(), NeighbourState::stale);
  }
  if (same && !evidence.answers) return std::nullopt;
  return becomes(mac, told);
}

}  // namespace

bool NeighbourTable::learn(const NeighbourKey& key, const NeighbourEvidence& evidence, Nanos now) {
  std::uint32_t slot = find(key);
  if (slot == kNobody && evidence.introduces) {
    const std::uint64_t tag = tag_of(key);
    slot = add(key, tag, now);
    if (slot == kNobody && make_room(tag, now)) slot = add(key, tag, now);
  }
  if (slot == kNobody) return false;
  Entry& entry = entries_[slot];
  for (NeighbourWord word(entry.word.load(std::memory_order_acquire));;) {
    if (!is(slot, key)) return false;
    const std::optional<NeighbourWord> next = after(word, evidence);
    if (!next) return false;
    entry.confirmed.store(now.value, std::memory_order_relaxed);
    const bool first = !word.has_mac();
    if (!change(slot, word, *next)) continue;
    entry.asked.store(0, std::memory_order_relaxed);
    entry.ask_again.store(now.value, std::memory_order_relaxed);
    if (first) announce();
    return first;
  }
}

void NeighbourTable::age(Nanos now) {
  for (std::uint32_t bucket = 0; bucket < buckets_; ++bucket) {
    for (std::uint32_t way = 0; way < kWays; ++way) {
      std::atomic<std::uint64_t>& tag = tags_[bucket].tags[way];
      if (tag.load(std::memory_order_acquire) != 0) age_slot(1 + bucket * kWays + way, tag, now);
    }
  }
}

void NeighbourTable::age_slot(std::uint32_t slot, std::atomic<std::uint64_t>& tag, Nanos now) {
  Entry& entry = entries_[slot];
  NeighbourWord word(entry.word.load(std::memory_order_acquire));
  if (word.state() == NeighbourState::none) return;  // being claimed
  if (word.used()) entry.needed.store(now.value, std::memory_order_relaxed);
  const std::int64_t unneeded = now.value - entry.needed.load(std::memory_order_relaxed);
  const std::int64_t confirmed = now.value - entry.confirmed.load(std::memory_order_relaxed);
  NeighbourState next = word.state();
  bool forget = false;
  switch (word.state()) {
    case NeighbourState::reachable:
      if (confirmed >= times_.reachable.value) next = NeighbourState::stale;
      break;
    case NeighbourState::stale:
      forget = unneeded >= times_.unused.value;
      break;
    case NeighbourState::incomplete:
      if (entry.asked.load(std::memory_order_relaxed) >= times_.requests &&
          now.value >= entry.ask_again.load(std::memory_order_relaxed)) {
        next = NeighbourState::failed;
        entry.confirmed.store(now.value, std::memory_order_relaxed);
      }
      // As if all requests had been sent, and it had failed.
      forget = unneeded >= times_.requests * times_.retransmit.value + times_.failed.value;
      break;
    case NeighbourState::failed:
      if (confirmed >= times_.failed.value) {
        next = NeighbourState::incomplete;
        entry.asked.store(0, std::memory_order_relaxed);
        entry.ask_again.store(now.value, std::memory_order_relaxed);
        forget = true;
      }
      break;
    case NeighbourState::none:
      break;
  }
  if (forget && entry.pins == 0) {
    if (change(slot, word, NeighbourWord(0, NeighbourState::none, false, word.generation() + 1))) {
      tag.store(0, std::memory_order_release);
    }
    return;
  }
  const bool keeps_mac = next == NeighbourState::reachable || next == NeighbourState::stale;
  const NeighbourWord aged(keeps_mac ? word.mac() : 0, next, false, word.generation());
  if (change(slot, word, aged) && next == NeighbourState::failed) announce();
}

std::uint32_t NeighbourTable::pin(const NeighbourKey& key, Nanos now) {
  constexpr int kTries = 1000;  // against lcores that add the same neighbour right now
  std::uint32_t slot = kNobody;
  for (int i = 0; i < kTries && slot == kNobody; ++i) {
    slot = find(key);
    if (slot == kNobody) slot = add(key, tag_of(key), now);
  }
  if (slot != kNobody) ++entries_[slot].pins;
  return slot;
}

void NeighbourTable::unpin(std::uint32_t slot) {
  if (slot != kNobody) --entries_[slot].pins;
}

std::uint32_t NeighbourTable::count(NeighbourState state) const {
  std::uint32_t count = 0;
  for (std::uint32_t slot = 1; slot <= buckets_ * kWays; ++slot) count += word(slot).state() == state ? 1 : 0;
  return count;
}

}  // namespace warpline::route
