// SPDX-License-Identifier: Apache-2.0
#include "vnic/sources/source.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "vnic/args/devargs.h"
#include "warpline/base/random.h"
#include "warpline/packet/byte_order.h"
#include "warpline/packet/checksum.h"
#include "warpline/packet/udp_frame.h"

namespace warpline::vnic {
namespace {

constexpr std::uint32_t kIp = packet::EthernetView::kHeaderLength;
constexpr std::uint32_t kUdp = kIp + packet::Ipv4View::kHeaderLength;
constexpr std::uint32_t kFirstAddress = 198U << 24 | 18U << 16;  // 198.18.0.0
constexpr std::uint32_t kFirstPort = 1024;
constexpr std::uint32_t kPorts = 60000;
constexpr std::uint16_t kDiscardPort = 9;

}  // namespace

std::unique_ptr<Source> Source::open(const Devargs& args, int& status, std::string& problem) {
  std::unique_ptr<Source> source(new Source);
  status = args.pcap.empty() ? source->make_frame(args, problem) : source->read_pcap(args.pcap, problem);
  if (status == 0 && (!std::isfinite(args.packets_per_s) || args.packets_per_s < 0)) {
    problem = "rate is no number of packets a second";
    status = -EINVAL;
  }
  if (status != 0) return nullptr;
  source->rate_ = SupplyRate(args.packets_per_s, args.step, args.step_nanos);
  return source;
}

int Source::make_frame(const Devargs& args, std::string& problem) {
  if (args.size < Devargs::kMinSize || args.size > Devargs::kMaxSize) {
    problem = "size=" + std::to_string(args.size) + " is not within " + std::to_string(Devargs::kMinSize) + " to " +
              std::to_string(Devargs::kMaxSize);
    return -EINVAL;
  }
  if (args.flows == 0 || args.flows > Devargs::kMaxFlows) {
    problem = "flows=" + std::to_string(args.flows) + " is not within 1 to " + std::to_string(Devargs::kMaxFlows);
    return -EINVAL;
  }
  flows_ = args.flows;
  bytes_.resize(args.size);
  for (std::uint32_t i = 0; i < args.size; ++i) bytes_[i] = static_cast<std::uint8_t>(mix64(args.seed + i));
  packet::UdpFrame header;
  header.destination_mac = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
  header.source_mac = {{0x02, 0, 0, 0, 0, 0x01}};
  header.source = Ipv4Address{{198, 18, 0, 0}};
  header.destination = Ipv4Address{{192, 0, 2, 1}};  // TEST-NET-1, RFC 5737
  header.source_port = kFirstPort;
  header.destination_port = kDiscardPort;
  if (packet::emit(header, bytes_) == 0) return -EINVAL;
  handed_ = bytes_;
  return 0;
}

void Source::address_to(const MacAddress& destination) {
  if (flows_ != 0) packet::store_address(bytes_.data(), destination);
}

void Source::start(std::uint64_t now_nanos) {
  start_nanos_ = now_nanos;
  scheduled_ = 0;
  next_ = 0;
}

void Source::become(std::uint32_t flow) {
  std::memcpy(handed_.data(), bytes_.data(), bytes_.size());
  std::uint8_t* const ip = handed_.data() + kIp;
  std::uint8_t* const udp = handed_.data() + kUdp;
  const std::uint32_t address = kFirstAddress + flow;
  const auto port = static_cast<std::uint16_t>(kFirstPort + flow % kPorts);
  std::uint16_t ip_sum = packet::load_be16(ip + packet::Ipv4View::kChecksum);
  std::uint16_t udp_sum = packet::load_be16(udp + packet::UdpView::kChecksum);
  for (std::uint32_t half = 0; half < 4; half += 2) {
    const std::uint16_t before = packet::load_be16(ip + packet::Ipv4View::kSource + half);
    const auto after = static_cast<std::uint16_t>(half == 0 ? address >> 16 : address);
    ip_sum = packet::update_checksum(ip_sum, before, after);
    udp_sum = packet::update_checksum(udp_sum, before, after);
  }
  udp_sum = packet::update_checksum(udp_sum, kFirstPort, port);
  packet::store_be32(ip + packet::Ipv4View::kSource, address);
  packet::store_be16(ip + packet::Ipv4View::kChecksum, ip_sum);
  packet::store_be16(udp + packet::UdpView::kSourcePort, port);
  packet::store_be16(udp + packet::UdpView::kChecksum, udp_sum == 0 ? 0xffff : udp_sum);  // RFC 768: 0 would mean none
}

bool Source::next(std::uint64_t now_nanos, Frame& frame) {
  frame.nanos = now_nanos;
  if (!rate_.endless()) {
    const double elapsed = static_cast<double>(now_nanos - start_nanos_);
    const auto arrived = static_cast<std::uint64_t>(rate_.frames_by(elapsed)) + 1;
    if (scheduled_ >= arrived) return false;
    if (arrived - scheduled_ > kMaxBacklog) scheduled_ = arrived - kMaxBacklog;
    const double offset = rate_.nanos_of(static_cast<double>(scheduled_));
    frame.nanos = std::min(start_nanos_ + static_cast<std::uint64_t>(offset), now_nanos);
    ++scheduled_;
  }
  if (flows_ != 0) {
    become(static_cast<std::uint32_t>(next_));
    next_ = next_ + 1 == flows_ ? 0 : next_ + 1;
    frame.length = static_cast<std::uint32_t>(bytes_.size());
  } else {
    const Place& place = places_[next_];
    std::memcpy(handed_.data(), bytes_.data() + place.begin, place.length);
    next_ = next_ + 1 == places_.size() ? 0 : next_ + 1;
    frame.length = place.length;
  }
  frame.bytes = handed_.data();
  return true;
}

}  // namespace warpline::vnic
