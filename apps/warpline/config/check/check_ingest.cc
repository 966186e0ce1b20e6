// SPDX-License-Identifier: Apache-2.0
#include "config/check/check_ingest.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "config/check/checker.h"
#include "warpline/flow/frame_description.h"
#include "warpline/ingest/batch_slots.h"
#include "warpline/ingest/static_frames.h"
#include "warpline/runtime/port_spec.h"

namespace warpline::config {
namespace {

using ingest::ConsumerKind;
using ingest::IngestPath;

class IngestChecker : Checker {
 public:
  IngestChecker(const Config& config, const GivenOptions& given) : Checker(config, given) {}

  std::vector<Error> run() && {
    check_place();
    check_engine();
    check_batch();
    check_budget();
    check_consumer();
    check_frame();
    check_loopback();
    check_static_wires();
    return std::move(problems_);
  }

 private:
  /// Path, engine and memory: the path says where the consumer finds packets, if a GPU runs it.
  void check_place() {
    const ingest::IngestSettings& ingest = config_.ingest;
    const std::string path = fmt::format("{} {}", place("path"), name(ingest.path));
    const bool on_host = ingest.memory == memory::MemoryKind::host || (ingest.engine && !runs_on_gpu(*ingest.engine));
    if (ingest.path == IngestPath::device && on_host) {
      const bool by_memory = ingest.memory == memory::MemoryKind::host;
      refuse(fmt::format(
                 "cannot combine {} with {}", path,
                 by_memory ? place("memory") + " host" : fmt::format("{} {}", place("engine"), name(*ingest.engine))),
             "the NIC writes these packets into GPU memory, which the CPU cannot read",
             "use --path zerocopy or copy, or an engine on a GPU");
      return;
    }
    if (ingest.engine && runs_on_gpu(*ingest.engine) && ingest.memory == memory::MemoryKind::host) {
      refuse(fmt::format("cannot combine {} {} with {} host", place("engine"), name(*ingest.engine), place("memory")),
             "a GPU cannot read ordinary host memory", "leave --memory out, or use --engine inline or thread");
      return;
    }
    if (!ingest.memory || *ingest.memory == memory::MemoryKind::host) return;
    if (ingest.engine && !runs_on_gpu(*ingest.engine)) {
      refuse(fmt::format("cannot combine {} {} with {} {}", place("engine"), name(*ingest.engine), place("memory"),
                         name(*ingest.memory)),
             "the CPU runs the consumer, and finds packets in host memory", "use -m host, or an engine on a GPU");
      return;
    }
    const memory::MemoryKind needed =
        ingest.path == IngestPath::zerocopy ? memory::MemoryKind::pinned : memory::MemoryKind::device;
    if (*ingest.memory != needed) {
      refuse(fmt::format("cannot combine {} with {} {}", path, place("memory"), name(*ingest.memory)),
             fmt::format("that path's packets are in {} memory", name(needed)), "leave --memory out");
    }
  }

  void check_engine() {
    const ingest::IngestSettings& ingest = config_.ingest;
    const bool lanes =
        !ingest.engine || *ingest.engine == EngineKind::thread || *ingest.engine == EngineKind::persistent;
    if (!lanes && config_.forward.ctas > 1) {
      refuse(fmt::format("cannot use {} {}", place("ctas"), config_.forward.ctas),
             *ingest.engine == EngineKind::inline_ ? "the inline engine has no threads"
                                                   : "a launch takes what its bursts need",
             "add --engine thread or --engine persistent");
    }
    const bool cpu = ingest.memory == memory::MemoryKind::host || (ingest.engine && !runs_on_gpu(*ingest.engine));
    if (cpu) {
      refuse_idle("gpu", "the consumer does not run on a GPU", "leave it out, or add --engine persistent");
      refuse_idle("watchdog", "it is for engines on a GPU", "leave it out, or add --engine persistent");
    }
    const datapath::ForwardSettings& forward = config_.forward;
    if (forward.gpus.size() > forward.pipelines) {
      refuse(fmt::format("cannot use {} with {} GPUs", place("gpu"), forward.gpus.size()),
             fmt::format("the number of pipelines is {}", forward.pipelines), "name at most one GPU per pipeline");
    }
  }

  /// What stays with the consumer is bounded by what a loop handles at once; copies are not.
  void check_batch() {
    const ingest::IngestSettings& ingest = config_.ingest;
    const std::uint16_t batch = config_.forward.burst;
    if (batch <= ingest::kLargestLentBatch) return;
    std::string other;
    if (!ingest.frame.empty()) {
      other = place("frame");
    } else if (ingest.transmit) {
      other = place("transmit");
    } else if (!ingest::copies(ingest.path)) {
      other = fmt::format("{} {}", place("path"), name(ingest.path));
    } else {
      return;
    }
    refuse(fmt::format("cannot combine {} {} with {}", place("batch"), batch, other),
           "so many packets are for a consumer that reads copies and gives nothing back",
           fmt::format("use --batch {}, or --path copy alone", ingest::kLargestLentBatch));
  }

  /// A batch, and a second one beside it, of the longest frames that the MTU allows.
  void check_budget() {
    if (!config_.ingest.gpu_memory) return;
    const std::vector<port::PortSettings> made = {config_.port_defaults};
    const std::uint64_t paths = config_.forward.pipelines * std::max<std::uint64_t>(config_.ports.size(), 1);
    for (const port::PortSettings& port : config_.ports.empty() ? made : config_.ports) {
      const auto slots = ingest::slots_within(ingest::share_of_budget(config_.ingest, paths).packets,
                                              ingest::batch_bytes(config_.forward.burst, port.mtu), 2);
      if (slots) continue;
      Error error = slots.error();
      error.what = fmt::format("cannot use {} {}", place("gpu-memory"), config_.ingest.gpu_memory->value);
      problems_.push_back(std::move(error));
      return;
    }
  }

  void check_consumer() {
    const ingest::IngestSettings& ingest = config_.ingest;
    const bool verifies = ingest.consumer == ConsumerKind::automatic || ingest.consumer == ConsumerKind::verify;
    if (config_.run.verify && !verifies) {
      refuse(fmt::format("cannot combine {} with {} {}", place("verify"), place("consumer"), name(ingest.consumer)),
             "that consumer does not know what was sent", "leave one out");
    }
  }

  /// One thread or CTA per queue assembles frames.
  void check_frame() {
    const ingest::IngestSettings& ingest = config_.ingest;
    if (ingest.frame.empty()) return;
    if (config_.forward.ctas > 1) {
      refuse(fmt::format("cannot combine {} with {} {}", place("frame"), place("ctas"), config_.forward.ctas),
             "one thread or CTA per queue assembles frames", "use --ctas 1");
    }
    if (ingest.consumer != ConsumerKind::automatic || config_.run.verify) {
      const std::string_view other = config_.run.verify ? "verify" : "consumer";
      refuse(fmt::format("cannot combine {} with {}", place("frame"), place(other)),
             "the packets go into frames and to no other consumer", "leave one out");
    }
    check_frame_packets();
  }

  /// The packets of a description are no longer than what the ports receive; else all would be too short for it.
  void check_frame_packets() {
    const auto description = flow::parse_frame_description(config_.ingest.frame);
    if (!description) return;  // which is refused elsewhere
    constexpr std::uint32_t kEthernet = 14;
    constexpr std::uint32_t kIpv4AndUdp = 28;
    const std::uint32_t bytes = description->packet_bytes();
    const std::uint32_t packet =
        description->origin == flow::FrameOrigin::udp ? bytes + kIpv4AndUdp : bytes - std::min(bytes, kEthernet);
    std::uint16_t mtu = config_.ports.empty() ? config_.port_defaults.mtu : std::uint16_t{0};
    for (const port::PortSettings& port : config_.ports) mtu = std::max(mtu, port.mtu);
    if (packet <= mtu) return;
    refuse(fmt::format("cannot combine {} with {} {}", place("frame"), place("mtu"), mtu),
           fmt::format("its packets have {} bytes behind the Ethernet header, and longer ones than the MTU do not come",
                       packet),
           fmt::format("use --mtu {}, or describe a shorter payload", packet));
  }

  /// Says that what comes is compared with the generator's frames.
  [[nodiscard]] bool compares() const { return config_.run.verify || config_.ingest.consumer == ConsumerKind::verify; }

  void check_loopback() {
    const datapath::ForwardSettings& forward = config_.forward;
    if (!forward.loopback && !config_.ingest.faults.empty()) {
      refuse(fmt::format("cannot use {}", place("faults")), "they are of the wire that --loopback makes",
             "add --loopback, or name them in --port net_vnic0,...");
    }
    if (forward.loopback && !config_.ports.empty() && !config_.ingest.faults.empty()) {
      refuse(fmt::format("cannot combine {} with {}", place("faults"), place("port")),
             "they are of the wire that --loopback makes by itself",
             "name them in the second --port, if it is a net_vnic");
    }
    if (forward.loopback || compares()) return;
    for (const Option& option : options()) {
      if (option.section != "traffic" || !option.taken_by(Command::ingest)) continue;
      refuse_idle(option.name, "ingest makes traffic only with --loopback, and compares with it only with --verify",
                  "add one of them, or leave it out");
    }
  }

  /// Buffers of a static wire are filled with the generator's frames, which are as long as the wire's then.
  void check_static_wires() {
    if (!compares() || !ingest::on_static_wires(config_.ports)) return;
    for (const port::PortSettings& port : config_.ports) {
      const auto spec = runtime::parse_port_spec(port.spec);
      if (!spec) return;  // which is refused elsewhere
      const auto size = spec->arguments.find("size");
      const std::string length = size == spec->arguments.end() ? traffic::TrafficSettings{}.size : size->second;
      if (length == config_.traffic.size) continue;
      refuse(
          fmt::format("cannot compare the frames of {}", spec->device),
          fmt::format("they have {} bytes, and those of {} {} are others", length, place("size"), config_.traffic.size),
          fmt::format("use --size {}", length));
      return;
    }
  }
};

}  // namespace

std::vector<Error> check_ingest(const Config& config, const GivenOptions& given) {
  return IngestChecker(config, given).run();
}

}  // namespace warpline::config
