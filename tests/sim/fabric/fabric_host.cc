// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/fabric_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "warpline/base/random.h"

namespace warpline::sim {
namespace {

constexpr std::size_t kPackets = 16;
constexpr std::uint16_t kPort = 31850;
constexpr std::int64_t kSoon = 500;  // nanoseconds to the next loop if the endpoint has not done what it wanted
/// Stands for all bytes of all messages: nobody writes or reads it.
std::array<std::uint8_t, message::kInlineBytes> no_bytes{};

message::PeerAddress address_of(std::uint32_t host) {
  return message::peer_address(Ipv4Address{{10, static_cast<std::uint8_t>(host >> 16),
                                            static_cast<std::uint8_t>(host >> 8), static_cast<std::uint8_t>(host)}},
                               kPort);
}

std::uint32_t host_at(const message::PeerAddress& address) {
  return std::uint32_t{address.ip[13]} << 16 | std::uint32_t{address.ip[14]} << 8 | address.ip[15];
}

message::EndpointConfig without_memory(message::EndpointConfig config, std::uint32_t host) {
  Random secrets(mix64(host));
  for (std::uint8_t& byte : config.secret.emplace()) byte = static_cast<std::uint8_t>(secrets.next());
  config.placer = {nullptr, [](void*, std::uint8_t*, const std::uint8_t*, std::uint32_t) {}};
  config.buffers = {nullptr,
                    [](void*, message::SessionId, std::uint16_t, std::uint32_t length) {
                      return message::MutableBuffer{no_bytes.data(), length, true};
                    },
                    [](void*, message::MutableBuffer) {}};
  return config;
}

message::Endpoint make_endpoint(const message::EndpointConfig& config, Nanos now) {
  Result<message::Endpoint> made = message::Endpoint::create(config, now);
  if (!made.ok()) {
    fmt::print(stderr, "{}\n", made.error().message());
    std::abort();  // a parameter of ours
  }
  return std::move(made).value();
}

}  // namespace

FabricHost::FabricHost(EventWheel& wheel, FatTree& tree, FabricTraffic& traffic, std::vector<FabricHost*>& hosts,
                       std::uint32_t index, const FabricHostSettings& settings)
    : wheel_(wheel),
      tree_(tree),
      traffic_(traffic),
      hosts_(hosts),
      index_(index),
      settings_(settings),
      endpoint_(make_endpoint(without_memory(settings.endpoint, index), Nanos{wheel.now()})) {}

void FabricHost::connect(const std::vector<std::uint32_t>& peers) {
  peers_ = peers;
  codes_.assign(peers.size(), 0);
  for (std::uint32_t i = 0; i < peers.size(); ++i)
    sessions_.push_back(endpoint_.connect(address_of(peers[i]), {.context = i}, Nanos{wheel_.now()}).session);
  wake_at(wheel_.now());
}

void FabricHost::send(std::uint32_t peer, std::uint32_t bytes, std::uint64_t number) {
  const Wanted wanted{peer, bytes, number};
  if (!waiting_.empty() || !give(wanted)) waiting_.push_back(wanted);
  wake_at(wheel_.now());
}

/// False: there is no room.
bool FabricHost::give(const Wanted& wanted) {
  std::uint16_t& code = codes_[wanted.peer];
  const message::Submitted submitted =
      endpoint_.send(sessions_[wanted.peer], {no_bytes.data(), wanted.bytes, wanted.bytes > message::kInlineBytes},
                     {.context = wanted.peer, .code = code}, Nanos{wheel_.now()});
  if (submitted.status != message::CallStatus::ok) return false;
  numbers_[std::uint64_t{wanted.peer} << 16 | code++] = wanted.number;
  return true;
}

std::uint64_t FabricHost::take_number(std::uint32_t peer, std::uint16_t code) {
  const auto found = numbers_.find(std::uint64_t{peer} << 16 | code);
  if (found == numbers_.end()) return ~std::uint64_t{0};
  const std::uint64_t number = found->second;
  numbers_.erase(found);
  return number;
}

void FabricHost::take(FabricPacket& packet) {
  arrived_.push_back(&packet);
  wake_at(wheel_.now() + settings_.wake_delay);
}

void FabricHost::wake_at(std::int64_t time) {
  if (time >= next_loop_) return;
  next_loop_ = time;
  if (spare_.empty()) spare_.push_back(&wakes_.emplace_back());
  Wake& wake = *spare_.back();
  spare_.pop_back();
  wake.host = this;
  wake.kind = WheelKind::loop;
  wheel_.at(time, wake);
}

void FabricHost::wake(WheelEvent& event) {
  spare_.push_back(&static_cast<Wake&>(event));
  if (event.time == next_loop_) loop();  // otherwise another came before it
}

void FabricHost::loop() {
  next_loop_ = INT64_MAX;
  const Nanos now{wheel_.now()};
  std::size_t here = 0;
  while (here < arrived_.size() && arrived_[here]->time + settings_.wake_delay <= now.value) ++here;
  for (std::size_t done = 0; done < here;) {
    std::array<message::Datagram, kPackets> datagrams;
    const std::size_t count = std::min(kPackets, here - done);
    for (std::size_t i = 0; i < count; ++i) {
      FabricPacket& packet = *arrived_[done + i];
      datagrams[i] = {.head = packet.head.data(),
                      .rest = packet.payload_length == 0 ? nullptr : no_bytes.data(),
                      .head_length = packet.head_length,
                      .rest_length = packet.payload_length,
                      .from = address_of(packet.from),
                      .arrived = Nanos{packet.time},
                      .ecn = packet.ecn,
                      .rest_device = true};
    }
    endpoint_.receive({datagrams.data(), count}, now);
    done += count;
  }
  for (FabricPacket* packet : std::span(arrived_).first(here)) tree_.give(*packet);
  arrived_.erase(arrived_.begin(), arrived_.begin() + static_cast<std::ptrdiff_t>(here));
  if (!arrived_.empty()) wake_at(arrived_.front()->time + settings_.wake_delay);
  endpoint_.advance(now);
  std::array<message::MessageEvent, kPackets> events;
  for (std::size_t count = kPackets; count == kPackets;) {
    count = endpoint_.poll(events);
    for (std::size_t i = 0; i < count; ++i) handle(events[i]);
  }
  while (!waiting_.empty() && give(waiting_.front())) waiting_.pop_front();
  transmit();
}

void FabricHost::handle(const message::MessageEvent& event) {
  switch (event.kind) {
    case message::EventKind::connected:
      ++established_;
      break;
    case message::EventKind::accepted: {
      const std::uint32_t from = host_at(endpoint_.facts(event.session).peer);
      const std::vector<std::uint32_t>& peers = hosts_[from]->peers_;
      const auto peer = static_cast<std::uint64_t>(std::ranges::find(peers, index_) - peers.begin());
      senders_[event.session.index] = std::uint64_t{from} << 32 | peer;
      break;
    }
    case message::EventKind::message: {
      const std::uint64_t sender = senders_[event.session.index];
      const auto from = static_cast<std::uint32_t>(sender >> 32);
      traffic_.arrived(from, hosts_[from]->take_number(static_cast<std::uint32_t>(sender), event.code));
      (void)endpoint_.release(event.id, Nanos{wheel_.now()});
      break;
    }
    case message::EventKind::sent:
      traffic_.sent(*this, event.status == message::MessageStatus::ok);
      break;
    case message::EventKind::lost:
      traffic_.sent(*this, false);
      break;
    default:
      break;
  }
}

void FabricHost::transmit() {
  const Nanos now{wheel_.now()};
  for (bool more = true; more;) {
    const std::int64_t ahead = tree_.link_free_at(index_) - now.value;
    if (ahead > settings_.link_ahead) return wake_at(now.value + ahead - settings_.link_ahead / 2);
    std::array<FabricPacket*, kPackets> packets;
    std::array<message::Outgoing, kPackets> outgoing;
    constexpr std::size_t kAsked = 4;
    for (std::size_t i = 0; i < kAsked; ++i) {
      packets[i] = &tree_.take();
      outgoing[i] = {};
      outgoing[i].head = packets[i]->head.data();
      outgoing[i].head_capacity = static_cast<std::uint32_t>(packets[i]->head.size());
    }
    const std::size_t filled = endpoint_.transmit(std::span(outgoing).first(kAsked), now);
    for (std::size_t i = 0; i < kAsked; ++i) {
      FabricPacket& packet = *packets[i];
      if (i >= filled) {
        tree_.give(packet);
        continue;
      }
      const message::Outgoing& out = outgoing[i];
      packet.kind = WheelKind::packet;
      packet.from = index_;
      packet.to = host_at(out.to);
      packet.path = static_cast<std::uint32_t>(
          mix64(std::uint64_t{std::min(index_, packet.to)} << 32 | std::max(index_, packet.to)) >> 33);
      packet.head_length = static_cast<std::uint16_t>(out.head_length);
      packet.payload_length = static_cast<std::uint16_t>(out.payload_length);
      packet.ecn = out.ecn_capable ? 2 : 0;
      if (out.token != 0) endpoint_.transmitted(out.token);  // which nobody reads
      tree_.send(packet);
    }
    more = filled == kAsked;
  }
  const Nanos deadline = endpoint_.next_deadline();
  if (deadline != message::kNever) wake_at(deadline > now ? deadline.value : now.value + kSoon);
}

Fabric::Fabric(const FatTreeSettings& tree, const FabricHostSettings& host, FabricTraffic& traffic)
    : tree_(wheel_, tree) {
  for (std::uint32_t i = 0; i < tree_.hosts(); ++i)
    hosts_.push_back(&memory_.emplace_back(wheel_, tree_, traffic, hosts_, i, host));
}

void Fabric::move(FabricPacket& packet) {
  if (tree_.arrive(packet)) hosts_[packet.to]->take(packet);
}

}  // namespace warpline::sim
