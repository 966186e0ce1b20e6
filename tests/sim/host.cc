// SPDX-License-Identifier: Apache-2.0
#include "sim/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "sim/allocations.h"
#include "sim/chance.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::sim {
namespace {

// Low byte of an event: what it is about. Wakes and ends of turns carry 24 bits of the incarnation, and wakes 32 of the
// application's.
constexpr std::uint64_t kLoop = 0;
constexpr std::uint64_t kRestart = 1;
constexpr std::uint64_t kWake = 2;
constexpr std::uint64_t kLoopEnds = 3;
constexpr std::uint64_t kDrained = 4;

constexpr std::uint16_t kUdpPort = 31850;
constexpr std::size_t kBurst = 16;
constexpr std::int64_t kWorkAgain = 20'000;  // nanoseconds to the next loop if the application has more to do
constexpr std::int64_t kNextLoop = 1'000;    // nanoseconds to the next loop if the endpoint has not done what it wanted

/// Not of the handshake, which nothing but the checksum protects.
bool of_session(const Packet& packet) {
  return packet.length >= packet::MessagePrefix::kLength &&
         packet::MessagePrefix::type(packet.bytes.data()) == packet::MessagePacketType::session;
}

}  // namespace

message::PeerAddress address_of_host(std::uint32_t host) {
  return message::peer_address(
      Ipv4Address{{10, 0, static_cast<std::uint8_t>(host >> 8), static_cast<std::uint8_t>(host)}}, kUdpPort);
}

std::uint32_t host_of_address(const message::PeerAddress& address) {
  const IpAddress ip = message::ip_address(address);
  const auto* v4 = std::get_if<Ipv4Address>(&ip);
  if (v4 == nullptr || v4->bytes[0] != 10) return ~0U;
  return static_cast<std::uint32_t>(v4->bytes[2]) << 8 | v4->bytes[3];
}

Host::Host(Network& network, std::uint32_t index, const HostConfig& config, Application& application,
           std::uint64_t seed, Trace trace)
    : events_(network.events()),
      network_(network),
      uplink_(network.uplink(index)),
      index_(index),
      address_(address_of_host(index)),
      config_(config),
      application_(application),
      random_(seed),
      trace_(trace),
      clock_offset_(config.clock_offset) {
  network.attach(index, *this, *this);
}

void Host::start() {
  for (std::uint8_t& byte : config_.endpoint.secret.emplace()) byte = static_cast<std::uint8_t>(random_.next());
  Result<message::Endpoint> endpoint = message::Endpoint::create(config_.endpoint, clock());
  if (!endpoint.ok()) {
    fmt::print(stderr, "{}\n", endpoint.error().message());
    std::abort();  // a parameter of ours
  }
  endpoint_.emplace(std::move(endpoint).value());
  fresh_ = endpoint_->facts();
  application_.start(*this);
  schedule_loop(events_.now());
}

void Host::pause_until(std::int64_t time) {
  trace_(now(), "host {} pauses until {} us", index_, time / 1000);
  paused_until_ = time;
}

void Host::move(bool other_address) {
  ++address_.port;
  if (other_address) ++address_.ip[13];  // the second of four, which names no host
  trace_(now(), "host {} has another {}", index_, other_address ? "address" : "port");
}

void Host::restart_at(std::int64_t time) {
  if (!up()) return;
  trace_(now(), "host {} crashes, until {} us", index_, time / 1000);
  endpoint_.reset();
  uplink_.flush();
  for (Packet* packet : ring_) network_.pool().give(packet);
  ring_.clear();
  said_.clear();
  ++incarnation_;
  draining_ = blocked_ = false;
  busy_until_ = 0;
  application_.crash();
  events_.at(time, *this, kRestart);
}

void Host::drain(std::int64_t patience) {
  if (!up()) return;
  trace_(now(), "host {} drains, for {} us", index_, patience / 1000);
  draining_ = true;
  ++counters_.drains;
  endpoint_->drain(Nanos{clock().value + patience}, clock());
  schedule_loop(now());
}

void Host::end_drained() {
  if (!endpoint_->drained() || !application_.may_end()) return;
  restart_at(now() + kNextLoop);
}

void Host::wake_at(std::int64_t time, std::uint64_t what) {
  events_.at(time, *this, kWake | (std::uint64_t{incarnation_} & 0xffffff) << 8 | what << 32);
}

void Host::schedule_loop(std::int64_t time) {
  time = std::max({time, events_.now(), paused_until_, busy_until_});
  if (next_loop_ >= 0 && next_loop_ <= time) return;
  next_loop_ = time;
  events_.at(time, *this, kLoop);
}

void Host::act(std::uint64_t what) {
  switch (what & 0xff) {
    case kRestart:
      trace_(now(), "host {} is back", index_);
      paused_until_ = 0;
      return start();
    case kWake:
      if ((what >> 8 & 0xffffff) != (incarnation_ & 0xffffff)) return;
      if (now() < paused_until_) return events_.at(paused_until_, *this, what);
      application_.wake(what >> 32);
      return schedule_loop(now());
    case kLoopEnds:
      if ((what >> 8 & 0xffffff) != (incarnation_ & 0xffffff)) return;
      if (now() < paused_until_) {
        busy_until_ = paused_until_;
        return events_.at(paused_until_, *this, what);
      }
      return finish_loop();
    case kDrained:
      if ((what >> 8 & 0xffffff) == (incarnation_ & 0xffffff)) end_drained();
      return;
    default:
      if (next_loop_ != now()) return;  // another came before it
      next_loop_ = -1;
      if (now() < std::max(paused_until_, busy_until_)) return schedule_loop(now());
      if (up()) loop();
  }
}

void Host::arrive(Packet* packet) {
  if (packet->unreachable) return hear_refusal(packet);
  if (packet->destination != address_) return drop(packet, counters_.at_old_address);
  if (!up()) return config_.refuses ? refuse(packet) : drop(packet, counters_.while_down);
  if (ring_.size() >= config_.receive_ring) return drop(packet, counters_.ring_full);
  packet->arrived = clock();
  ring_.push_back(packet);
  schedule_loop(now() + config_.wake_delay);
}

void Host::drop(Packet* packet, std::uint64_t& counter) {
  ++counter;
  network_.pool().give(packet);
}

void Host::refuse(Packet* packet) {
  ++counters_.while_down;
  packet->unreachable = true;
  packet->length = std::min(packet->length, kRepeated);
  std::swap(packet->from, packet->to);
  network_.downlink(packet->to).offer(packet);
}

void Host::hear_refusal(Packet* packet) {
  if (up() && !packet->damaged && packet->source == address_) note_unreachable(*packet);
  network_.pool().give(packet);
}

/// The kernel keeps it until the loop's next turn.
void Host::note_unreachable(const Packet& packet) {
  Said& said = said_.emplace_back(Said{packet.destination, {}, std::min(packet.length, kRepeated)});
  std::memcpy(said.bytes.data(), packet.bytes.data(), said.length);
  schedule_loop(now() + config_.wake_delay);
}

void Host::hear_unreachable() {
  const NoAllocations none(config_.check_allocations);
  for (const Said& said : said_) {
    const message::Unreachable one{said.to, std::span(said.bytes).first(said.length)};
    endpoint_->unreachable({&one, 1}, clock());
  }
  said_.clear();
}

void Host::departing(Packet& packet) {
  if (packet.payload_length > 0) {
    std::memcpy(packet.bytes.data() + (packet.length - packet.payload_length), packet.payload, packet.payload_length);
    packet.payload_length = 0;
  }
  if (packet.token != 0) {
    endpoint_->transmitted(std::exchange(packet.token, 0));
    schedule_loop(now() + config_.wake_delay);  // it may have ended a message
  }
  if (blocked_ && uplink_.queued_packets() <= config_.transmit_ring / 2) {
    blocked_ = false;
    schedule_loop(now());
  }
}

void Host::loop() {
  ++counters_.loops;
  loop_began_ = now();
  hear_unreachable();
  const std::uint32_t bursts = receive();
  if (ring_.empty()) {
    const NoAllocations none(config_.check_allocations);
    endpoint_->advance(clock());
  }
  const std::uint32_t events = hand_out_events();
  if (application_.work()) schedule_loop(now() + kWorkAgain);
  std::int64_t time = bursts * config_.burst_time + events * config_.handler_time;
  if (config_.descheduled != 0 && chance(random_, config_.descheduled))
    time += between(random_, 1, config_.longest_away);
  if (time == 0) return finish_loop();
  busy_until_ = now() + time;
  events_.at(busy_until_, *this, kLoopEnds | (std::uint64_t{incarnation_} & 0xffffff) << 8);
}

void Host::finish_loop() {
  transmit();
  if (draining_) events_.at(now(), *this, kDrained | (std::uint64_t{incarnation_} & 0xffffff) << 8);
  if (!ring_.empty()) schedule_loop(now());
  schedule_next();
}

std::uint32_t Host::receive() {
  std::array<Packet*, kBurst> packets;
  std::array<message::Datagram, kBurst> datagrams;
  std::uint32_t bursts = 0;
  for (; !ring_.empty() && bursts < config_.bursts; ++bursts) {
    std::size_t count = 0;
    while (count < kBurst && !ring_.empty()) {
      Packet* packet = ring_.front();
      ring_.pop_front();
      if (packet->damaged && !(config_.damaged_packets_pass && of_session(*packet))) {
        drop(packet, counters_.bad_checksum);
        continue;
      }
      // In one piece, as what is to be decrypted must be, or split as NICs do that put headers elsewhere.
      const bool split = config_.endpoint.protection == nullptr && (random_.next() & 1) != 0;
      const std::uint32_t head = split ? std::min(packet->length, message::kMaxHeadBytes) : packet->length;
      datagrams[count] = {.head = packet->bytes.data(),
                          .rest = packet->bytes.data() + head,
                          .head_length = head,
                          .rest_length = packet->length - head,
                          .from = packet->source,
                          .arrived = config_.stamps ? packet->arrived : message::kNever,
                          .ecn = packet->ecn,
                          .rest_device = false};
      packets[count++] = packet;
    }
    datagrams_received_ += count;
    {
      const NoAllocations none(config_.check_allocations);
      endpoint_->receive({datagrams.data(), count}, clock());
    }
    for (std::size_t i = 0; i < count; ++i) network_.pool().give(packets[i]);
  }
  return bursts;
}

std::uint32_t Host::hand_out_events() {
  std::array<message::MessageEvent, kBurst> happened;
  std::size_t count = 0;
  std::uint32_t total = 0;
  do {
    count = endpoint_->poll(happened);
    for (std::size_t i = 0; i < count; ++i) application_.handle(happened[i]);
    total += static_cast<std::uint32_t>(count);
  } while (count > 0);
  return total;
}

void Host::transmit() {
  std::array<Packet*, kBurst> packets;
  std::array<message::Outgoing, kBurst> outgoing;
  for (;;) {
    const std::size_t queued = uplink_.queued_packets();
    blocked_ = queued >= config_.transmit_ring;
    if (blocked_) return;
    const std::size_t asked = std::min<std::size_t>(kBurst, config_.transmit_ring - queued);
    for (std::size_t i = 0; i < asked; ++i) {
      packets[i] = network_.pool().take();
      outgoing[i] = message::Outgoing{};
      outgoing[i].head = packets[i]->bytes.data();
      outgoing[i].head_capacity = kMaxDatagram;
    }
    std::size_t filled = 0;
    {
      const NoAllocations none(config_.check_allocations);
      filled = endpoint_->transmit({outgoing.data(), asked}, clock());
    }
    for (std::size_t i = 0; i < asked; ++i) {
      Packet& packet = *packets[i];
      if (i >= filled) {
        network_.pool().give(&packet);
        continue;
      }
      const message::Outgoing& out = outgoing[i];
      packet.length = out.length();
      packet.payload = out.payload;
      packet.payload_length = out.payload_length;
      packet.token = out.token;
      packet.from = index_;
      packet.to = host_of_address(out.to);
      packet.source = address_;
      packet.destination = out.to;
      packet.ecn = out.ecn_capable ? 2 : 0;
      packet.damaged = packet.unreachable = false;
      trace_(now(), "host {} sends {} B to {}", index_, packet.length, packet.to);
      if (config_.lied_to != 0 && chance(random_, config_.lied_to)) note_unreachable(packet);
      uplink_.offer(&packet);
    }
    if (filled < asked) return;
  }
}

void Host::schedule_next() {
  const Nanos deadline = std::min(endpoint_->next_deadline(), application_.next_deadline());
  if (deadline == message::kNever) return;
  const std::int64_t at = deadline.value - clock_offset_;
  if (at > loop_began_ || !ring_.empty()) return schedule_loop(at);
  if (blocked_) return;  // the port wakes us
  ++counters_.idle_deadlines;
  schedule_loop(now() + kNextLoop);
}

}  // namespace warpline::sim
