// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "config/load.h"
#include "config/options.h"
#include "config/tree.h"
#include "warpline/base/property_testing.h"
#include "warpline/workload/with_workload.h"

namespace warpline::config {
namespace {

/// A number that is often small or at an end of its range.
template <typename T>
T number(std::uint64_t min, std::uint64_t max) {
  const auto any = rc::gen::map(rc::gen::arbitrary<std::uint64_t>(), [=](std::uint64_t n) {
    return max - min == UINT64_MAX ? n : min + n % (max - min + 1);
  });
  return static_cast<T>(*rc::gen::oneOf(any, rc::gen::element(min, max)));
}

Nanos time(std::int64_t min, std::int64_t max) {
  return Nanos{number<std::int64_t>(static_cast<std::uint64_t>(min), static_cast<std::uint64_t>(max))};
}

bool coin() { return *rc::gen::arbitrary<bool>(); }

std::optional<std::uint16_t> threshold(std::uint16_t ring) {
  if (coin()) return std::nullopt;
  return number<std::uint16_t>(0, ring - 1U);
}

IpAddress ip(bool v6) {
  Ipv4Address four;
  Ipv6Address six;
  for (std::uint8_t& byte : four.bytes) byte = number<std::uint8_t>(0, 255);
  for (std::uint8_t& byte : six.bytes) byte = number<std::uint8_t>(0, 255);
  return v6 ? IpAddress{six} : IpAddress{four};
}

MacAddress mac() {
  MacAddress address;
  for (std::uint8_t& byte : address.bytes) byte = number<std::uint8_t>(0, 255);
  address.bytes[0] &= 0xfe;
  return address;
}

std::vector<std::string> some_of(const std::vector<std::string>& names) {
  std::vector<std::string> chosen;
  for (const std::string& name : names) {
    if (coin()) chosen.push_back(name);
  }
  return chosen;
}

port::PortSettings port_setup() {
  port::PortSettings port;
  port.rx_ring = number<std::uint16_t>(8, 32'768);
  port.tx_ring = number<std::uint16_t>(8, 32'768);
  port.rx_free_thresh = threshold(port.rx_ring);
  port.tx_free_thresh = threshold(port.tx_ring);
  port.tx_rs_thresh = threshold(port.tx_ring);
  port.rx_offloads = some_of({"scatter", "rss_hash", "ipv4_cksum"});
  port.tx_offloads = some_of({"multi_segs", "mbuf_fast_free"});
  port.mtu = number<std::uint16_t>(1500, 9600);
  port.rss_key.resize(number<std::size_t>(0, 52));
  for (std::uint8_t& byte : port.rss_key) byte = number<std::uint8_t>(0, 255);
  port.rss_fields = some_of({"ip", "udp", "tcp"});
  port.promiscuous = coin();
  return port;
}

Rate rate() {
  const double value = static_cast<double>(number<std::uint64_t>(1, 1'000'000'000'000)) / (coin() ? 1 : 7) + 1;
  if (coin()) return Rate{};
  return coin() ? Rate{std::in_place_type<BitRate>, value} : Rate{std::in_place_type<PacketRate>, value};
}

void choose_ports(Config& config) {
  config.port_defaults = port_setup();
  const std::size_t ports = config.forward.loopback ? 0 : number<std::size_t>(1, 2);
  for (std::size_t i = 0; i < ports; ++i) {
    port::PortSettings port = port_setup();
    port.spec = "net_null" + std::to_string(i) + (coin() ? ",copy=1" : "");
    if (coin()) port.addresses = {InterfaceAddress{ip(coin()), number<std::uint8_t>(0, 32)}};
    config.ports.push_back(port);
  }
}

void choose_forward(Config& config) {
  datapath::ForwardSettings& forward = config.forward;
  forward.pipelines = number<std::uint16_t>(1, 256);
  forward.burst = number<std::uint16_t>(1, std::min<std::uint16_t>(512, config.port_defaults.rx_ring));
  for (const port::PortSettings& port : config.ports) forward.burst = std::min(forward.burst, port.rx_ring);
  forward.adaptive_burst = coin();
  if (forward.adaptive_burst) forward.burst = 512;
  if (!forward.adaptive_burst && coin()) forward.deadline = time(0, 1'000'000'000);
  forward.engine = static_cast<EngineKind>(number<int>(0, 4));
  forward.model = coin() ? datapath::ModelKind::automatic : datapath::ModelKind::pipeline;
  forward.workload = static_cast<WorkloadKind>(number<std::size_t>(0, kEnumNames<WorkloadKind>.size() - 1));
  const workload::WorkloadTraits traits = workload::traits_of(forward.workload);
  if (forward.loopback && traits.effect == workload::FrameEffect::unknown) forward.workload = WorkloadKind::none;
  if (traits.takes_time) forward.packet_time = time(1, 10'000'000);
  if (forward.engine == EngineKind::thread || forward.engine == EngineKind::persistent) {
    forward.ctas = number<std::uint16_t>(1, 256);
  }
  forward.ring_slots = static_cast<std::uint16_t>(1U << number<unsigned>(1, 10));
  forward.tx_retries = number<std::uint32_t>(0, 1'000'000);
  if (!forward.loopback) forward.tx_first = number<std::uint32_t>(0, 1'000'000);
  forward.gpus.resize(number<std::size_t>(0, forward.pipelines));
  for (std::uint16_t& gpu : forward.gpus) gpu = number<std::uint16_t>(0, 1023);
  forward.watchdog = time(1'000'000, 3'600'000'000'000);
  forward.on_gpu_failure = coin() ? datapath::GpuFailure::stop : datapath::GpuFailure::failover;
  forward.nvtx = coin();
  const bool consumes = forward.engine == EngineKind::thread || forward.engine == EngineKind::persistent;
  if (consumes && !forward.adaptive_burst && coin()) {
    forward.io = ProcessorKind::gpu;
    forward.ctas = 1;
    forward.on_gpu_failure = datapath::GpuFailure::stop;
    for (port::PortSettings& port : config.ports) port.addresses.clear();
  }
}

void choose_memory(Config& config) {
  memory::PoolSettings& pool = config.pool;
  if (runs_on_gpu(config.forward.engine) || coin()) pool.memory = memory::MemoryKind::pinned;
  pool.sharing = coin() ? memory::PoolSharing::shared : memory::PoolSharing::queue;
  const bool has_address =
      std::ranges::any_of(config.ports, [](const port::PortSettings& p) { return !p.addresses.empty(); });
  if (!has_address && config.forward.tx_first == 0 && config.forward.workload == WorkloadKind::none && coin()) {
    pool.memory = memory::MemoryKind::device;
    pool.sharing = memory::PoolSharing::queue;
  }
  if (coin()) return;
  pool.data_room = 0;
  pool.split = number<std::uint16_t>(22, 1513);
}

void choose_traffic(Config& config) {
  traffic::TrafficSettings& traffic = config.traffic;
  traffic.size = coin() ? "imix" : std::to_string(number<int>(60, 1514));
  traffic.flows = number<std::uint32_t>(1, 1 << 20);
  traffic.rate = rate();
  traffic.src_mac = mac();
  traffic.dst_mac = mac();
  const bool v6 = coin();
  traffic.src_ip = ip(v6);
  traffic.dst_ip = ip(v6);
  traffic.src_port = number<std::uint16_t>(1, 65'535);
  traffic.dst_port = number<std::uint16_t>(1, 65'535);
  traffic.drain = time(0, 3'600'000'000'000);
}

Config random_config() {
  Config config;
  config.command = coin() ? Command::forward : Command::generate;
  const bool forward = config.command == Command::forward;
  config.forward.loopback = forward && coin();
  choose_ports(config);
  if (forward) choose_forward(config);
  choose_traffic(config);
  if (!forward) {
    config.traffic.burst = number<std::uint16_t>(1, 512);
    config.traffic.queues = number<std::uint16_t>(1, 256);
  }
  config.pool.cache = number<std::uint32_t>(0, 512);
  config.pool.size = coin() ? 0 : number<std::uint32_t>(1024, 1 << 28);
  config.pool.data_room = coin() ? 0 : number<std::uint32_t>(64, 65'407);
  if (forward) choose_memory(config);
  config.runtime = {.lcores = number<std::uint32_t>(0, 1024),
                    .share_cores = coin(),
                    .hugepages = coin(),
                    .eal = coin() ? "" : "--log-level=lib.eal:8 \"quoted\" \xc3\xa9",
                    .log_level = static_cast<runtime::LogLevel>(number<std::uint8_t>(0, 5))};
  config.run.packets = number<std::uint64_t>(0, UINT64_MAX);
  config.run.warmup = config.run.packets > 1 ? number<std::uint64_t>(0, config.run.packets - 1) : 0;
  config.run.seconds = time(0, 8'640'000'000'000'000);
  config.run.interval = time(10'000'000, 3'600'000'000'000);
  config.run.json = coin();
  config.run.json_stream = coin();
  config.run.seed = number<std::uint64_t>(0, UINT64_MAX);
  config.run.verify = coin() && (!forward || config.forward.loopback);
  return config;
}

WARPLINE_PROPERTY(RoundTrip, WhatIsPrintedIsReadBackTheSame, ()) {
  const Config config = random_config();
  const std::string text = to_json(config).dump(static_cast<int>(number<unsigned>(0, 2)));
  const auto read = [&](const std::string&) -> Result<std::string> { return text; };
  const auto loaded = load({std::string(name(config.command)), "--config", "a.json"}, {}, read);
  if (!loaded.ok()) RC_FAIL(loaded.error().message() + "\n" + text);
  RC_ASSERT(to_json(loaded->config) == to_json(config));
  RC_ASSERT(loaded->config == config);
}

TEST(Tree, TomlAndJsonMakeTheSame) {
  const auto toml = parse_toml_tree("[a]\nb = 1\nc = [true, \"x\"]\n[[d]]\ne = 1.5\n", "t");
  const auto json = parse_json_tree("{\"a\":{\n\"b\":1,\n\"c\":[true,\"x\"]},\n\"d\":[{\n\"e\":1.5}]}", "j");
  ASSERT_TRUE(toml.ok() && json.ok());
  for (const TreeNode* tree : {&*toml, &*json}) {
    EXPECT_EQ(tree->member("a")->member("b")->text, "1");
    EXPECT_EQ(tree->member("a")->member("b")->line, 2U);
    EXPECT_EQ(tree->member("a")->member("c")->children[1].text, "x");
    EXPECT_EQ(tree->member("d")->children[0].member("e")->text, "1.5");
    EXPECT_EQ(tree->member("d")->children[0].member("e")->line, 5U);
    EXPECT_EQ(tree->member("nothing"), nullptr);
  }
}

TEST(Tree, DeepFilesAreRefusedWithoutDeepStacks) {
  std::string nested, dotted = "a";
  for (int i = 0; i < 100'000; ++i) {
    nested += "{\"a\":";
    dotted += ".a";
  }
  EXPECT_FALSE(parse_json_tree(nested, "j").ok());
  EXPECT_FALSE(parse_json_tree(std::string(100'000, '['), "j").ok());
  EXPECT_FALSE(parse_toml_tree(dotted + " = 1", "t").ok());
  EXPECT_FALSE(parse_toml_tree("[" + dotted + "]", "t").ok());
  EXPECT_FALSE(parse_toml_tree("a = " + std::string(100'000, '['), "t").ok());
}

}  // namespace
}  // namespace warpline::config
