// SPDX-License-Identifier: Apache-2.0
#include "config/check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/check/check_ingest.h"
#include "config/check/check_message.h"
#include "config/check/check_stream.h"
#include "config/check/checker.h"
#include "config/options.h"
#include "warpline/route/prefix.h"
#include "warpline/runtime/port_spec.h"
#include "warpline/workload/with_workload.h"

namespace warpline::config {
namespace {

constexpr std::uint32_t kEthernetHeader = 14;
constexpr std::uint32_t kLargestOfImix = 1514;
constexpr std::uint32_t kLeastDataRoom = 64;

/// The names of the workloads whose traits `fits` likes, for an advice: "mac-swap or spin".
template <typename Fits>
std::string workloads_with(Fits fits) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < kEnumNames<WorkloadKind>.size(); ++i) {
    if (fits(workload::traits_of(static_cast<WorkloadKind>(i)))) names.push_back(kEnumNames<WorkloadKind>[i]);
  }
  return fmt::format("{}", fmt::join(names, " or "));
}

/// What is wrong with a command that moves packets.
class PacketChecker : Checker {
 public:
  PacketChecker(const Config& config, const GivenOptions& given, bool needs_port)
      : Checker(config, given), needs_port_(needs_port) {}

  std::vector<Error> run() && {
    const bool forward = config_.command == Command::forward;
    if (config_.command == Command::report) check_report();
    if (config_.command == Command::message_key) check_key_file();
    if (config_.command == Command::selftest) check_selftest();
    if (config_.command == Command::ctl || config_.command == Command::top || config_.command == Command::capture ||
        config_.command == Command::trace)
      check_attached();
    if (config_.command == Command::setup) check_setup();
    const bool ingest = config_.command == Command::ingest;
    if (config_.command == Command::stream) {
      check_ports();
      check_pool();
      std::ranges::move(check_stream(config_, given_, needs_port_), std::back_inserter(problems_));
      return std::move(problems_);
    }
    if (!forward && !ingest && config_.command != Command::l3forward && config_.command != Command::generate)
      return std::move(problems_);
    check_ports();
    check_pool();
    check_bounds();
    if (forward) check_forward();
    if (forward || config_.command == Command::l3forward) check_capture();
    if (config_.command == Command::l3forward) {
      check_burst();
      return std::move(problems_);
    }
    check_single_addresses();
    if (ingest) {
      check_burst();
      std::ranges::move(check_ingest(config_, given_), std::back_inserter(problems_));
      if (config_.forward.loopback) check_traffic();
      return std::move(problems_);
    }
    if (!forward || config_.forward.loopback || config_.forward.tx_first != 0) check_traffic();
    return std::move(problems_);
  }

 private:
  void check_report() {
    if (config_.report.files.empty()) {
      refuse("report has nothing to draw", "no file is given", "write warpline report FILES... --html FILE");
    }
    if (config_.report.html.empty()) {
      refuse("report has nowhere to write to", "--html is not given", "add --html FILE, such as --html report.html");
    }
  }

  void check_selftest() {
    const std::vector<std::string>& ports = config_.selftest.ports;
    if (ports.empty() || ports.size() > 2) {
      refuse("cannot test these ports", ports.empty() ? "none is given" : fmt::format("{} are given", ports.size()),
             "give two that a cable joins, --port A --port B; or one whose frames come back to it");
    }
    if (ports.size() == 2 && runtime::same_device(ports.front(), ports.back())) {
      refuse(fmt::format("cannot use port {} twice", ports.back()), "a cable has two ends", "give two ports, or one");
    }
  }

  void check_attached() {
    if (config_.command == Command::capture && config_.capture.file.empty())
      refuse("cannot run capture", "it is not said where to", "add --capture FILE");
    const AttachConfig& attach = config_.attach;
    if (attach.telemetry.empty() && attach.pid == 0) {
      refuse(fmt::format("cannot run {}", name(config_.command)), "it is not said of which process",
             "add --telemetry NAME, which that process was started with, or --pid N");
    }
    if (!attach.telemetry.empty() && attach.pid != 0) {
      refuse(fmt::format("cannot combine {} with {}", place("telemetry"), place("pid")), "both say which process",
             "leave one out");
    }
  }

  void check_setup() {
    const SetupConfig& setup = config_.setup;
    const std::string what = fmt::format("cannot set up {}", name(config_.role));
    if (config_.role == Role::nic && setup.pci.empty()) {
      refuse(what, "it is not said which", "add --pci ADDR, such as --pci 0000:01:00.0");
    }
    if (config_.role == Role::nic && setup.pci.find('/') != std::string::npos) {
      refuse(what, fmt::format("{} is no PCI address", setup.pci), "write it as --pci 0000:01:00.0");
    }
    if (config_.role == Role::user && setup.name.empty() && !setup.undo) {
      refuse(what, "it is not said whom", "add --name NAME");
    }
    for (const Option& option : options()) {
      if (!option.taken_by(Command::setup) || option.is_for(config_.role)) continue;
      refuse_idle(option.name, fmt::format("it is nothing that setup {} takes", name(config_.role)), "leave it out");
    }
    if (setup.apply && setup.undo) refuse(what, "--apply does what --undo puts back", "give one of them");
  }

  void check_key_file() {
    const KeyConfig& key = config_.key;
    const std::string usage = fmt::format("write warpline message key {} FILE", key.task);
    if (key.files.size() != 1) {
      refuse(fmt::format("cannot run message key {}", key.task),
             key.files.empty() ? "no file is given" : fmt::format("{} files are given", key.files.size()), usage);
    }
    if (key.task == "new") return;
    for (const auto option : {"name", "append"}) refuse_idle(option, "show changes nothing", "leave it out");
  }

  void check_capture() {
    const std::string& file = config_.capture.file;
    for (const auto option : {"capture-what", "capture-filter", "capture-snaplen", "capture-limit"}) {
      if (file.empty()) refuse_idle(option, "nothing is captured", "add --capture FILE");
    }
    if (!file.empty() && config_.pool.memory == memory::MemoryKind::device) {
      refuse(fmt::format("cannot combine {} with {} device", place("capture"), place("memory")),
             "the CPU copies packets and cannot read GPU memory", "use -m pinned, or leave the capture out");
    }
  }

  void check_ports() {
    if (!config_.forward.persona.empty() && (!config_.forward.loopback || !config_.ports.empty())) {
      refuse(fmt::format("cannot use {}", place("persona")), "it is of the NIC that --loopback makes",
             "add --loopback, or name it in --port net_vnic0,persona=...");
    }
    check_loopback_ports();
    const bool has_loopback = config_.command == Command::forward || config_.command == Command::ingest;
    if (needs_port_ && !has_loopback && config_.ports.empty()) {
      refuse(fmt::format("{} has no port", name(config_.command)), "--port is not given",
             "add --port SPEC, such as --port net_null0");
    }
    if (needs_port_ && has_loopback && config_.ports.empty() && !config_.forward.loopback) {
      refuse(fmt::format("{} has no port", name(config_.command)), "neither --port nor --loopback is given",
             "add --port SPEC or --loopback");
    }
    if (config_.command == Command::forward && config_.ports.size() > 1 && config_.ports.size() % 2 != 0) {
      refuse(fmt::format("cannot pair {} ports", config_.ports.size()), "the last one has no partner to send to",
             "use one port, or an even number of --port");
    }
    if (config_.command == Command::l3forward) check_addresses();
    if (config_.ports.empty()) check_setup(config_.port_defaults);
    for (const port::PortSettings& port : config_.ports) check_setup(port);
  }

  void check_loopback_ports() {
    const std::size_t ports = config_.ports.size();
    if (!config_.forward.loopback || ports == 0 || ports == 2) return;
    const std::string both = fmt::format("cannot combine {} with {} of {}", place("loopback"), ports, place("port"));
    if (config_.command != Command::ingest) {
      refuse(both, "it makes its own pair of ports, or takes two that a cable joins", "give two, or none");
    } else if (ports > 2) {
      refuse(both, "it makes its own pair of ports, takes two that a cable joins, or one whose frames come back to it",
             "give one, two, or none");
    } else if (config_.ingest.transmit) {
      refuse(fmt::format("cannot combine {} with {} of one {}", place("transmit"), place("loopback"), place("port")),
             "what the consumer passes would come back to it", "give two ports that a cable joins");
    }
  }

  /// A router's port is on a link, and no two of its ports have the same address.
  void check_addresses() {
    std::vector<IpAddress> seen;
    for (const port::PortSettings& port : config_.ports) {
      if (port.addresses.empty()) {
        refuse(fmt::format("cannot route by port {}", port.spec), "it has no address",
               "give one --address ADDR/LEN for each --port");
      }
      const std::size_t others = seen.size();
      for (const InterfaceAddress& address : port.addresses) {
        // Routers have the same link-local address on every link (RFC 4291, 2.5.6), but once on each.
        const auto* const v6 = std::get_if<Ipv6Address>(&address.address);
        const bool link_local = v6 != nullptr && route::is_link_local(*v6);
        const auto begin = seen.begin() + static_cast<std::ptrdiff_t>(link_local ? others : 0);
        if (std::find(begin, seen.end(), address.address) != seen.end()) {
          refuse(fmt::format("cannot use {} {}", place("address"), to_string(address)), "it is there twice",
                 "give each port an address of its own");
        }
        seen.push_back(address.address);
      }
    }
  }

  void check_single_addresses() {
    for (const port::PortSettings& port : config_.ports) {
      if (port.addresses.size() < 2) continue;
      refuse(fmt::format("cannot use {} with {} addresses", place("address"), port.addresses.size()),
             fmt::format("{} answers for one a port", name(config_.command)), "leave the others out, or use l3forward");
    }
  }

  void check_setup(const port::PortSettings& port) {
    const auto below = [&](std::string_view option, std::optional<std::uint16_t> value, std::string_view ring_option,
                           std::uint16_t ring) {
      if (!value || *value < ring) return;
      refuse(fmt::format("cannot use {} {}", place(option), *value),
             fmt::format("it is not below {} {}", place(ring_option), ring), "use less, or driver");
    };
    below("rx-free-thresh", port.rx_free_thresh, "rx-ring", port.rx_ring);
    below("tx-free-thresh", port.tx_free_thresh, "tx-ring", port.tx_ring);
    below("tx-rs-thresh", port.tx_rs_thresh, "tx-ring", port.tx_ring);
  }

  void check_pool() {
    const memory::PoolSettings& pool = config_.pool;
    if (pool.data_room != 0 && pool.data_room < kLeastDataRoom) {
      refuse(fmt::format("cannot use {} {}", place("data-room"), pool.data_room), "headers need 64 bytes in one piece",
             "use 64 or more, or 0");
    }
    // A mempool takes this: a cache may hold two thirds of the pool at most.
    if (pool.size != 0 && std::uint64_t{pool.cache} * 3 > std::uint64_t{pool.size} * 2) {
      refuse(fmt::format("cannot combine {} {} with {} {}", place("pool-size"), pool.size, place("pool-cache"),
                         pool.cache),
             "a cache holds two thirds of the pool at most",
             fmt::format("use --pool-cache {}", std::uint64_t{pool.size} * 2 / 3));
    }
  }

  void check_bounds() {
    const report::RunSettings& run = config_.run;
    if (run.packets != 0 && run.warmup >= run.packets) {
      refuse(fmt::format("cannot combine {} {} with {} {}", place("warmup"), run.warmup, place("packets"), run.packets),
             "no packet is left to measure", "use fewer for --warmup");
    }
  }

  void check_forward() {
    const datapath::ForwardSettings& forward = config_.forward;
    const workload::WorkloadTraits traits = workload::traits_of(forward.workload);
    if (traits.takes_time && forward.packet_time.value == 0) {
      refuse(fmt::format("cannot use {} {}", place("workload"), name(forward.workload)), "it has no time to spend",
             "add --packet-time NS");
    }
    if (!traits.takes_time && forward.packet_time.value != 0) {
      refuse(fmt::format("cannot use {} {}", place("packet-time"), to_string(forward.packet_time)),
             fmt::format("the workload {} takes none", name(forward.workload)),
             fmt::format("add --workload {}", workloads_with([](auto of) { return of.takes_time; })));
    }
    if (traits.effect == workload::FrameEffect::unknown && forward.loopback) {
      refuse(fmt::format("cannot combine {} {} with {}", place("workload"), name(forward.workload), place("loopback")),
             "the checker on the far side does not know what it makes of a frame",
             "give it a --port, such as net_pcap0,rx_pcap=IN,tx_pcap=OUT");
    }
    check_engine();
    check_gpus();
    check_device_memory();
    check_split();
    if (forward.loopback && forward.tx_first != 0) {
      refuse(fmt::format("cannot combine {} with {}", place("loopback"), place("tx-first")),
             "the far side sends all that there is to forward", "leave one out");
    }
    if (!forward.loopback && config_.run.verify) check_verify();
    if (!forward.loopback && forward.tx_first == 0) check_no_traffic();
  }

  /// Without a checker on the far side: on a static wire a run proves itself, for a workload that is known.
  void check_verify() {
    const auto is_static = [](const port::PortSettings& port) {
      return port.spec.starts_with("net_vnic") && port.spec.find("wire=static") != std::string::npos;
    };
    if (!std::ranges::all_of(config_.ports, is_static)) {
      refuse(fmt::format("cannot use {}", place("verify")), "without --loopback nobody here knows what was sent",
             "add --loopback, or verify where it is sent: warpline generate --verify");
    } else if (const WorkloadKind kind = config_.forward.workload;
               workload::traits_of(kind).effect == workload::FrameEffect::unknown) {
      refuse(fmt::format("cannot combine {} {} with {}", place("workload"), name(kind), place("verify")),
             "nobody knows what it makes of a frame", "leave one out");
    }
  }

  void check_engine() {
    const datapath::ForwardSettings& forward = config_.forward;
    const bool has_lanes = forward.engine == EngineKind::thread || forward.engine == EngineKind::persistent;
    if (!has_lanes && forward.ctas > 1) {
      refuse(fmt::format("cannot use {} {}", place("ctas"), forward.ctas),
             forward.engine == EngineKind::inline_ ? "the inline engine has no threads"
                                                   : "a launch takes what its bursts need",
             "add --engine thread or --engine persistent");
    }
    if (forward.io == ProcessorKind::gpu) check_gpu_io();
    check_burst();
  }

  /// What one consumer that takes packets by itself leaves no room for.
  void check_gpu_io() {
    const datapath::ForwardSettings& forward = config_.forward;
    const std::string io = fmt::format("{} gpu", place("io"));
    if (forward.engine != EngineKind::thread && forward.engine != EngineKind::persistent) {
      refuse(fmt::format("cannot combine {} with {} {}", io, place("engine"), name(forward.engine)),
             "packets are taken by what runs all the time beside the CPU that receives",
             "add --engine persistent, or --engine thread to try it without a GPU");
    } else if (forward.ctas > 1) {
      refuse(fmt::format("cannot combine {} with {} {}", io, place("ctas"), forward.ctas),
             "one thread or CTA takes what is in a pair of queues", "leave it out, and use more --pipelines");
    }
    if (forward.adaptive_burst) {
      refuse(fmt::format("cannot combine {} with {} adaptive", io, place("burst")),
             "the CPU makes no batches: the engine takes what has come", "use a number, which it takes at most");
    }
    refuse_idle("deadline", "with --io gpu no packet waits for a batch", "leave it out");
    if (forward.on_gpu_failure == datapath::GpuFailure::failover) {
      refuse(fmt::format("cannot combine {} with {} failover", io, place("on-gpu-failure")),
             "no host thread knows how far a GPU came that took packets by itself", "use stop, or leave --io out");
    }
    if (std::ranges::any_of(config_.ports, [](const auto& port) { return !port.addresses.empty(); })) {
      refuse(fmt::format("cannot combine {} with {}", io, place("address")),
             "the CPU answers for addresses and looks at no packet", "leave one out");
    }
  }

  void check_burst() {
    // Never more than the ring holds, or checked by check_ingest().
    if (config_.command == Command::ingest && (config_.ingest.adaptive || ingest::copies(config_.ingest.path))) return;
    const datapath::ForwardSettings& forward = config_.forward;
    if (forward.adaptive_burst) return check_adaptive_burst();
    const std::vector<port::PortSettings> made = {config_.port_defaults};
    for (const port::PortSettings& port : config_.ports.empty() ? made : config_.ports) {
      if (forward.burst <= port.rx_ring) continue;
      const std::string_view option = config_.command == Command::ingest ? "batch" : "burst";
      refuse(
          fmt::format("cannot combine {} {} with {} {}", place(option), forward.burst, place("rx-ring"), port.rx_ring),
          "a batch is more than the ring holds", fmt::format("use --{} {}", option, port.rx_ring));
    }
  }

  void check_adaptive_burst() {
    const datapath::ForwardSettings& forward = config_.forward;
    if (config_.command == Command::l3forward) {
      refuse(fmt::format("cannot use {} adaptive", place("burst")), "a router has no engine beside it to adapt to",
             "use a number; a batch is what has come, and so many packets at most");
      return;
    }
    const bool one_core = forward.engine == EngineKind::inline_ && forward.model != datapath::ModelKind::pipeline;
    if (one_core && forward.deadline && forward.deadline->value != 0) {
      refuse(fmt::format("cannot combine {} adaptive with {}", place("burst"), place("deadline")),
             "the core that receives also works, so no packet waits for others",
             "leave the deadline out, or add --model pipeline or another --engine");
    }
  }

  void check_gpus() {
    const datapath::ForwardSettings& forward = config_.forward;
    const bool on_gpu = runs_on_gpu(forward.engine);
    if (on_gpu && config_.pool.memory == memory::MemoryKind::host) {
      refuse(fmt::format("cannot combine {} with {} host", place("engine"), place("memory")),
             "a GPU cannot read ordinary host memory", "use -m pinned, or -m device");
    }
    if (!on_gpu) {
      if (config_.pool.memory == memory::MemoryKind::host) {
        refuse_idle("gpu", "neither engine nor memory is a GPU's", "add --engine persistent, or -m pinned");
      }
      refuse_idle("watchdog", "it is for engines on a GPU", "add --engine launch, graph or persistent");
      refuse_idle("on-gpu-failure", "the engine is not on a GPU", "add --engine launch, graph or persistent");
    }
    if (forward.gpus.size() > forward.pipelines) {
      refuse(fmt::format("cannot use {} with {} GPUs", place("gpu"), forward.gpus.size()),
             fmt::format("there are {} pipelines, and each uses one GPU", forward.pipelines),
             fmt::format("add --pipelines {}", forward.gpus.size()));
    }
    const bool several = forward.gpus.empty() ||  // all that the machine has
                         std::ranges::any_of(forward.gpus, [&](auto gpu) { return gpu != forward.gpus.front(); });
    if (several && config_.pool.memory == memory::MemoryKind::device &&
        config_.pool.sharing == memory::PoolSharing::shared) {
      refuse(fmt::format("cannot combine {} device with several GPUs", place("memory")),
             "one pool is in the memory of one GPU", "add --pool queue");
    }
  }

  /// What the CPU would have to do with bytes that it cannot reach.
  void check_device_memory() {
    if (config_.pool.memory != memory::MemoryKind::device) return;
    const datapath::ForwardSettings& forward = config_.forward;
    const std::string memory = fmt::format("{} device", place("memory"));
    const bool answers = std::ranges::any_of(config_.ports, [](const auto& port) { return !port.addresses.empty(); });
    if (answers) {
      refuse(fmt::format("cannot combine {} with {}", memory, place("address")),
             "the CPU answers for addresses and cannot read GPU memory", "use -m pinned, or leave the address out");
    }
    if (forward.tx_first != 0) {
      refuse(fmt::format("cannot combine {} with {}", memory, place("tx-first")),
             "the CPU makes those frames and cannot write GPU memory", "use -m pinned");
    }
    if (cpu_can_work()) return;
    const auto accesses = [](workload::FrameAccess access) {
      return workloads_with([access](auto of) { return of.access == access; });
    };
    const std::string advice =
        fmt::format("use -m pinned, or --workload {}, or with --split {}", accesses(workload::FrameAccess::nothing),
                    accesses(workload::FrameAccess::headers));
    if (!runs_on_gpu(forward.engine)) {
      refuse(fmt::format("cannot combine {} with {}", memory, place("engine")),
             "the CPU cannot read what the workload needs from GPU memory", "add --engine persistent; or " + advice);
    } else if (forward.on_gpu_failure == datapath::GpuFailure::failover) {
      refuse(fmt::format("cannot combine {} with {} failover", memory, place("on-gpu-failure")),
             "the CPU cannot read what the workload needs from GPU memory", advice);
    }
  }

  /// Whether the workload touches nothing but what a split leaves in host memory, if anything.
  [[nodiscard]] bool cpu_can_work() const {
    const workload::FrameAccess reachable =
        config_.pool.split != 0 ? workload::FrameAccess::headers : workload::FrameAccess::nothing;
    return workload::traits_of(config_.forward.workload).access <= reachable;
  }

  void check_split() {
    const memory::PoolSettings& pool = config_.pool;
    if (pool.split == 0) return;
    const std::vector<port::PortSettings> made = {config_.port_defaults};
    for (const port::PortSettings& port : config_.ports.empty() ? made : config_.ports) {
      const std::uint32_t frame = port.mtu + kEthernetHeader;
      if (pool.split >= frame) {
        refuse(fmt::format("cannot combine {} {} with {} {}", place("split"), pool.split, place("mtu"), port.mtu),
               "no frame is longer", fmt::format("split off less than {} bytes", frame));
      } else if (pool.data_room != 0 && pool.data_room < frame - pool.split) {
        refuse(fmt::format("cannot combine {} {} with {} {}", place("split"), pool.split, place("data-room"),
                           pool.data_room),
               fmt::format("{} bytes of a frame are left for one buffer", frame - pool.split),
               fmt::format("use --data-room {} or 0", frame - pool.split));
      }
    }
  }

  void check_no_traffic() {
    for (const Option& option : options()) {
      if (option.section != "traffic" || !option.taken_by(Command::forward)) continue;
      refuse_idle(option.name, "forward makes traffic only with --loopback or --tx-first",
                  "add one of them, or leave it out");
    }
  }

  void check_traffic() {
    const traffic::TrafficSettings& traffic = config_.traffic;
    if (traffic.role == traffic::TrafficRole::transmit && config_.run.verify) {
      refuse(fmt::format("cannot combine {} transmit with {}", place("role"), place("verify")),
             "nothing that comes back is looked at",
             "verify where it arrives: warpline generate --role receive --verify");
    }
    if (traffic.role == traffic::TrafficRole::receive) {
      refuse_idle("rate", "nothing is sent", "leave it out, or add --role transmit");
    }
    if (traffic.src_ip.index() != traffic.dst_ip.index()) {
      refuse(fmt::format("cannot combine {} {} with {} {}", place("src-ip"), to_string(traffic.src_ip), place("dst-ip"),
                         to_string(traffic.dst_ip)),
             "one is IPv4, the other IPv6", "give both as IPv4 or both as IPv6");
    }
    if ((traffic.src_mac.bytes[0] & 1U) != 0) {
      refuse(fmt::format("cannot use {} {}", place("src-mac"), to_string(traffic.src_mac)),
             "a group address is no source", "use an address such as 02:00:00:00:00:01");
    }
    if (config_.ports.empty()) check_size(config_.port_defaults);
    for (const port::PortSettings& port : config_.ports) check_size(port);
  }

  void check_size(const port::PortSettings& port) {
    const std::string& size = config_.traffic.size;
    const std::uint32_t largest = size == "imix" ? kLargestOfImix : static_cast<std::uint32_t>(std::stoul(size));
    if (largest <= port.mtu + kEthernetHeader) return;
    refuse(fmt::format("cannot combine {} {} with {} {}", place("size"), size, place("mtu"), port.mtu),
           fmt::format("a frame of {} bytes does not fit", largest),
           fmt::format("use --mtu {}", largest - kEthernetHeader));
  }

  bool needs_port_;
};

class MetricsChecker : Checker {
 public:
  MetricsChecker(const Config& config, const GivenOptions& given) : Checker(config, given) {}

  std::vector<Error> run() && {
    if (!std::holds_alternative<SocketAddress>(config_.metrics.listen)) {
      refuse_idle("metrics-allow", "nothing asks for metrics over TCP", "add --metrics ADDR:PORT, or leave it out");
    }
    return std::move(problems_);
  }
};

}  // namespace

std::vector<Error> check_config(const Config& config, const GivenOptions& given, bool needs_port) {
  std::vector<Error> problems = config.command == Command::message ? check_message(config, given)
                                                                   : PacketChecker(config, given, needs_port).run();
  std::ranges::move(MetricsChecker(config, given).run(), std::back_inserter(problems));
  return problems;
}

}  // namespace warpline::config
