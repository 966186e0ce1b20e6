// SPDX-License-Identifier: Apache-2.0
#include "config/options.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "config/values.h"
#include "warpline/flow/frame_description.h"
#include "warpline/runtime/port_spec.h"

namespace warpline::config {
namespace {

constexpr Nanos kHundredDays{100LL * 24 * 3600 * kSecond};  // below 2^53, so that a double holds every value

template <typename S, typename F>
auto of(S Config::* section, F S::* field) {
  return field_of(section, field);
}

Access<Config> port_list() {
  return {[](Config& config, std::span<const std::string> texts) -> Result<void> {
            std::vector<port::PortSettings> ports;
            const Error nothing = usage_error("cannot use ''", "it names no port", "write SPEC, such as net_null0");
            if (texts.empty()) return nothing;
            for (const std::string& spec : texts) {
              if (spec.empty()) return nothing;
              const auto is_same = [&](const port::PortSettings& port) {
                return runtime::same_device(port.spec, spec);
              };
              if (std::ranges::any_of(ports, is_same)) {
                return usage_error("cannot use '" + spec + "'", "the same device is named twice",
                                   "number vdevs apart: net_null0, net_null1");
              }
              ports.emplace_back().spec = spec;
            }
            config.ports = std::move(ports);
            return {};
          },
          [](const Config& config) {
            nlohmann::json specs = nlohmann::json::array();
            for (const port::PortSettings& port : config.ports) specs.push_back(port.spec);
            return specs;
          },
          {}};
}

/// "none", or addresses parted by '+': "10.0.0.1/24+fd00::1/64".
Access<port::PortSettings> port_addresses() {
  using Value = std::vector<InterfaceAddress>;
  return scalar<port::PortSettings>(
      field_of(&port::PortSettings::addresses),
      [](std::string_view text) -> Result<Value> {
        Value addresses;
        if (text == "none") return addresses;
        for (std::size_t begin = 0; begin <= text.size();) {
          const std::size_t end = std::min(text.find('+', begin), text.size());
          WARPLINE_TRY(const InterfaceAddress address, parse_interface_address(text.substr(begin, end - begin)));
          addresses.push_back(address);
          begin = end + 1;
        }
        return addresses;
      },
      [](const Value& value) {
        std::string joined;
        for (const InterfaceAddress& address : value) joined += (joined.empty() ? "" : "+") + to_string(address);
        return joined.empty() ? std::string("none") : joined;
      });
}

/// A number, or "adaptive" for batches as large as load and engine ask.
Access<Config> burst() {
  constexpr std::uint16_t kMost = 512;
  return {[](Config& config, std::span<const std::string> texts) -> Result<void> {
            datapath::ForwardSettings& forward = config.forward;
            forward.adaptive_burst = texts.front() == "adaptive";
            forward.burst = kMost;
            if (forward.adaptive_burst) return {};
            WARPLINE_TRY(const std::uint64_t packets, parse_bounded(texts.front(), 1, kMost));
            forward.burst = static_cast<std::uint16_t>(packets);
            return {};
          },
          [](const Config& config) {
            const datapath::ForwardSettings& forward = config.forward;
            return forward.adaptive_burst ? nlohmann::json("adaptive") : nlohmann::json(forward.burst);
          },
          fmt::format("1..{} or adaptive", kMost)};
}

/// Options that every command which moves packets has.
void add_common(std::vector<Option>& table) {
  const std::vector<Command> movers = {Command::forward, Command::l3forward, Command::ingest, Command::generate};
  const std::vector<Command> all = {Command::forward,  Command::l3forward, Command::ingest,
                                    Command::generate, Command::message,   Command::stream};
  const std::vector<Command> timed = {Command::forward, Command::l3forward, Command::ingest, Command::generate,
                                      Command::stream,  Command::capture,   Command::trace};
  std::vector<Command> tables = all;
  tables.push_back(Command::top);
  std::vector<Command> counted = movers;
  counted.insert(counted.end(), {Command::capture, Command::trace});
  const std::vector<Command> seeded = {Command::forward, Command::l3forward, Command::ingest, Command::generate,
                                       Command::message};
  table.insert(
      table.end(),
      {{"port", 0, "port", "spec", all, Arity::list, "SPEC",
        "PCI address or vdev string; repeatable; message: also socket", port_list(), ';'},
       {"config", 0, "", "", all, Arity::single, "FILE", "read options from a TOML or JSON file", {}},
       {"packets", 0, "run", "packets", counted, Arity::single, "N", "stop after N packets; 0: no bound",
        unbounded<Config>(of(&Config::run, &report::RunSettings::packets))},
       {"seconds", 0, "run", "seconds", timed, Arity::single, "S", "stop after S; 0: no bound",
        nanos<Config>(of(&Config::run, &report::RunSettings::seconds), kSecond, Nanos{0}, kHundredDays)},
       {"warmup", 0, "run", "warmup", movers, Arity::single, "N", "packets before measuring begins",
        unbounded<Config>(of(&Config::run, &report::RunSettings::warmup))},
       {"json",
        0,
        "run",
        "json",
        {std::begin(kCommands), std::end(kCommands)},
        Arity::flag,
        "",
        "one JSON object on stdout at the end",
        boolean<Config>(of(&Config::run, &report::RunSettings::json))},
       {"json-stream", 0, "run", "json-stream", all, Arity::flag, "", "one line of JSON per interval",
        boolean<Config>(of(&Config::run, &report::RunSettings::json_stream))},
       {"interval", 0, "run", "interval", tables, Arity::single, "S", "seconds between lines of the live table",
        nanos<Config>(of(&Config::run, &report::RunSettings::interval), kSecond, Nanos{kSecond / 100},
                      Nanos{3600 * kSecond})},
       {"seed", 0, "run", "seed", seeded, Arity::single, "N", "seed for all random choices",
        unbounded<Config>(of(&Config::run, &report::RunSettings::seed))},
       {"verify",
        0,
        "run",
        "verify",
        seeded,
        Arity::flag,
        "",
        "check every byte of stamped frames",
        boolean<Config>(of(&Config::run, &report::RunSettings::verify)),
        ',',
        {Role::client}},
       {"lcores", 0, "runtime", "lcores", all, Arity::single, "N", "cores that workers may use; 0: one each",
        count<Config>(of(&Config::runtime, &runtime::RuntimeSettings::lcores), 0, 1024)},
       {"share-cores", 0, "runtime", "share-cores", all, Arity::flag, "", "allow --lcores above the number of cores",
        boolean<Config>(of(&Config::runtime, &runtime::RuntimeSettings::share_cores))},
       {"no-hugepages",
        0,
        "runtime",
        "no-hugepages",
        {Command::forward, Command::l3forward, Command::ingest, Command::generate, Command::message, Command::stream,
         Command::bench, Command::selftest},
        Arity::flag,
        "",
        "do not use hugepages, slower",
        inverse<Config>(of(&Config::runtime, &runtime::RuntimeSettings::hugepages))},
       {"eal", 0, "runtime", "eal", all, Arity::single, "ARGS", "further EAL arguments, separated by spaces",
        text<Config>(of(&Config::runtime, &runtime::RuntimeSettings::eal))},
       {"log-level", 0, "runtime", "log-level", all, Arity::single, "LEVEL", "what DPDK and its drivers log",
        choice<Config>(of(&Config::runtime, &runtime::RuntimeSettings::log_level))},
       {"data-room", 'd', "pool", "data-room", all, Arity::single, "BYTES",
        "size of a buffer; 0: the MTU's frame, at least 2048",
        count<Config>(of(&Config::pool, &memory::PoolSettings::data_room), 0, 65'407)},
       {"pool-size", 0, "pool", "size", all, Arity::single, "N", "buffers per pool; 0: automatic",
        count<Config>(of(&Config::pool, &memory::PoolSettings::size), 0, 1U << 28)},
       {"pool-cache", 0, "pool", "cache", all, Arity::single, "N", "buffers each lcore keeps to itself",
        count<Config>(of(&Config::pool, &memory::PoolSettings::cache), 0, 512)}});
}

void add_forward(std::vector<Option>& table) {
  const std::vector<Command> forward = {Command::forward};
  const std::vector<Command> forwarders = {Command::forward, Command::l3forward};
  const std::vector<Command> engines = {Command::forward, Command::ingest};
  const std::vector<Command> datapaths = {Command::forward, Command::l3forward, Command::ingest};
  table.insert(
      table.end(),
      {{"pipelines", 'p', "forward", "pipelines", datapaths, Arity::single, "N", "queue pairs per port",
        count<Config>(of(&Config::forward, &datapath::ForwardSettings::pipelines), 1, 256)},
       {"burst", 'b', "forward", "burst", forwarders, Arity::single, "N", "maximum packets per batch, or adaptive",
        burst()},
       {"deadline", 0, "forward", "deadline", datapaths, Arity::single, "US",
        "wait for a batch to fill; automatic: 0 to 100us",
        optional_nanos<Config>(of(&Config::forward, &datapath::ForwardSettings::deadline), kMicro, Nanos{0},
                               Nanos{kSecond})},
       {"engine", 0, "forward", "engine", forward, Arity::single, "KIND", "what processes the packets",
        choice<Config>(of(&Config::forward, &datapath::ForwardSettings::engine))},
       {"io", 0, "forward", "io", forward, Arity::single, "WHO", "who takes packets and posts them for sending",
        choice<Config>(of(&Config::forward, &datapath::ForwardSettings::io))},
       {"model", 0, "forward", "model", forward, Arity::single, "KIND", "one core per pipeline, or several",
        choice<Config>(of(&Config::forward, &datapath::ForwardSettings::model))},
       {"workload", 0, "forward", "workload", forward, Arity::single, "KIND", "processing of each packet",
        choice<Config>(of(&Config::forward, &datapath::ForwardSettings::workload))},
       {"packet-time", 't', "forward", "packet-time", forward, Arity::single, "NS",
        "time per packet of the spin workload",
        nanos<Config>(of(&Config::forward, &datapath::ForwardSettings::packet_time), 1, Nanos{0},
                      Nanos{kSecond / 100})},
       {"ctas", 0, "forward", "ctas", engines, Arity::single, "N",
        "engine threads (default 1) or CTAs of a persistent kernel (16)",
        count<Config>(of(&Config::forward, &datapath::ForwardSettings::ctas), 1, 256)},
       {"ring-slots", 0, "forward", "ring-slots", engines, Arity::single, "N", "bursts in flight",
        power_of_two<Config>(of(&Config::forward, &datapath::ForwardSettings::ring_slots), 2, 1024)},
       {"tx-retries", 0, "forward", "tx-retries", datapaths, Arity::single, "N",
        "retries before the unsent rest of a burst is dropped",
        count<Config>(of(&Config::forward, &datapath::ForwardSettings::tx_retries), 0, 1'000'000)},
       {"tx-first", 0, "forward", "tx-first", forward, Arity::single, "N",
        "packets that each port sends before it forwards",
        count<Config>(of(&Config::forward, &datapath::ForwardSettings::tx_first), 0, 1'000'000)},
       {"gpu", 'g', "forward", "gpu", engines, Arity::list, "ID", "GPUs, which pipelines use in turn; repeatable",
        counts<Config>(of(&Config::forward, &datapath::ForwardSettings::gpus), 0, 1023)},
       {"watchdog", 0, "forward", "watchdog", engines, Arity::single, "MS",
        "a GPU without progress for so long has failed",
        nanos<Config>(of(&Config::forward, &datapath::ForwardSettings::watchdog), kMilli, Nanos{kMilli},
                      Nanos{3600 * kSecond})},
       {"on-gpu-failure", 0, "forward", "on-gpu-failure", forward, Arity::single, "WHAT",
        "end the run, or go on with host threads",
        choice<Config>(of(&Config::forward, &datapath::ForwardSettings::on_gpu_failure))},
       {"recycle", 0, "forward", "recycle", forwarders, Arity::single, "WAY",
        "how sent buffers return to the receive ring",
        choice<Config>(of(&Config::forward, &datapath::ForwardSettings::recycle))},
       {"nvtx", 0, "forward", "nvtx", engines, Arity::flag, "", "mark the stages of a burst for NVIDIA's profilers",
        boolean<Config>(of(&Config::forward, &datapath::ForwardSettings::nvtx))},
       {"loopback", 0, "forward", "loopback", engines, Arity::flag, "",
        "generate and check on the far side of two ports: software NICs, or the second --port",
        boolean<Config>(of(&Config::forward, &datapath::ForwardSettings::loopback))},
       {"persona", 0, "forward", "persona", engines, Arity::single, "NIC", "driver that the loopback's NIC plays",
        text<Config>(of(&Config::forward, &datapath::ForwardSettings::persona))}});
}

void add_l3forward(std::vector<Option>& table) {
  const std::vector<Command> l3forward = {Command::l3forward};
  table.insert(table.end(),
               {{"routes", 0, "l3forward", "routes", l3forward, Arity::single, "FILE", "routes, read again at SIGHUP",
                 text<Config>(of(&Config::l3forward, &router::RouterSettings::routes))},
                {"lookup", 0, "l3forward", "lookup", l3forward, Arity::single, "KIND", "how next hops are looked up",
                 choice<Config>(of(&Config::l3forward, &router::RouterSettings::lookup))}});
}

/// Empty, or text that parse_frame_description() takes.
Access<Config> frame_description() {
  return scalar<Config>(
      of(&Config::ingest, &ingest::IngestSettings::frame),
      [](std::string_view text) -> Result<std::string> {
        if (!text.empty()) WARPLINE_CHECK(flow::parse_frame_description(text));
        return std::string(text);
      },
      [](const std::string& value) { return value; });
}

/// "adaptive", or the packets of a batch.
Access<Config> batch_size() {
  return {[](Config& config, std::span<const std::string> texts) -> Result<void> {
            config.ingest.adaptive = texts.front() == "adaptive";
            if (config.ingest.adaptive) {
              config.forward.burst = ingest::kLargestLentBatch;
              return {};
            }
            WARPLINE_TRY(const std::uint64_t packets, parse_bounded(texts.front(), 1, ingest::kLargestCopiedBatch));
            config.forward.burst = static_cast<std::uint16_t>(packets);
            return {};
          },
          [](const Config& config) {
            return config.ingest.adaptive ? nlohmann::json("adaptive") : nlohmann::json(config.forward.burst);
          },
          fmt::format("1..{} or adaptive", ingest::kLargestCopiedBatch)};
}

void add_ingest(std::vector<Option>& table) {
  using ingest::IngestSettings;
  const std::vector<Command> ingest = {Command::ingest};
  table.insert(table.end(),
               {{"path", 0, "ingest", "path", ingest, Arity::single, "KIND", "how packets reach the consumer",
                 choice<Config>(of(&Config::ingest, &IngestSettings::path))},
                {"engine", 0, "ingest", "engine", ingest, Arity::single, "KIND", "what runs the consumer",
                 optional_choice<Config>(of(&Config::ingest, &IngestSettings::engine))},
                {"memory", 'm', "ingest", "memory", ingest, Arity::single, "KIND", "where the consumer finds packets",
                 optional_choice<Config>(of(&Config::ingest, &IngestSettings::memory))},
                {"batch", 'b', "ingest", "batch", ingest, Arity::single, "N",
                 "maximum packets per batch, or by what the consumer takes", batch_size()},
                {"gpu-memory", 0, "ingest", "gpu-memory", ingest, Arity::single, "BYTES",
                 "budget for packets in hand and frames; auto: 64Mi per queue",
                 optional_bytes<Config>(of(&Config::ingest, &IngestSettings::gpu_memory))},
                {"consumer", 0, "ingest", "consumer", ingest, Arity::single, "KIND", "what is done with each packet",
                 choice<Config>(of(&Config::ingest, &IngestSettings::consumer))},
                {"transmit", 0, "ingest", "transmit", ingest, Arity::flag, "", "send what the consumer passes",
                 boolean<Config>(of(&Config::ingest, &IngestSettings::transmit))},
                {"frame", 0, "ingest", "frame", ingest, Arity::single, "TEXT",
                 "packets become frames: packets=N,seq=OFFSET:BITS,payload=OFFSET:LEN", frame_description()},
                {"faults", 0, "ingest", "faults", ingest, Arity::single, "ARGS",
                 "what goes wrong on the loopback's wire, as net_vnic names it: loss=0.01,corrupt=0.001",
                 text<Config>(of(&Config::ingest, &IngestSettings::faults))}});
}

/// What forward does with its packet buffers, and message with its own.
void add_forward_pool(std::vector<Option>& table) {
  const std::vector<Command> forward = {Command::forward};
  table.insert(table.end(), {{"memory",
                              'm',
                              "pool",
                              "memory",
                              {Command::forward, Command::message},
                              Arity::single,
                              "KIND",
                              "where packets or messages are; engine on a GPU: pinned",
                              choice<Config>(of(&Config::pool, &memory::PoolSettings::memory))},
                             {"split", 's', "pool", "split", forward, Arity::single, "BYTES",
                              "first bytes of each frame to host memory; on: 60",
                              scalar<Config>(
                                  of(&Config::pool, &memory::PoolSettings::split), parse_split,
                                  [](std::uint16_t bytes) { return bytes; }, "0, 22..9014")},
                             {"pool",
                              0,
                              "pool",
                              "sharing",
                              {Command::forward, Command::ingest},
                              Arity::single,
                              "HOW",
                              "one pool for a port's queues, or one per queue",
                              choice<Config>(of(&Config::pool, &memory::PoolSettings::sharing))}});
}

template <typename F>
Option traffic(std::string_view name, std::string_view argument, std::string_view help, F access) {
  return {name,          0,        "traffic", name,  {Command::forward, Command::ingest, Command::generate},
          Arity::single, argument, help,      access};
}

void add_traffic(std::vector<Option>& table) {
  const auto mac = [](MacAddress traffic::TrafficSettings::* field) {
    return scalar<Config>(
        of(&Config::traffic, field), [](std::string_view value) { return parse_mac(value); },
        [](const MacAddress& value) { return to_string(value); });
  };
  const auto ip = [](IpAddress traffic::TrafficSettings::* field) {
    return scalar<Config>(
        of(&Config::traffic, field), [](std::string_view value) { return parse_ip(value); },
        [](const IpAddress& value) { return to_string(value); });
  };
  const auto port = [](std::uint16_t traffic::TrafficSettings::* field) {
    return count<Config>(of(&Config::traffic, field), 1, 65'535);
  };
  const std::vector<Command> generate = {Command::generate};
  table.insert(
      table.end(),
      {{"burst", 'b', "traffic", "burst", generate, Arity::single, "N", "packets sent at once",
        count<Config>(of(&Config::traffic, &traffic::TrafficSettings::burst), 1, 512)},
       {"queues", 0, "traffic", "queues", generate, Arity::single, "N", "queue pairs per port",
        count<Config>(of(&Config::traffic, &traffic::TrafficSettings::queues), 1, 256)},
       {"role", 0, "traffic", "role", generate, Arity::single, "ROLE",
        "send and check what returns, or only one of both",
        choice<Config>(of(&Config::traffic, &traffic::TrafficSettings::role))},
       traffic("size", "BYTES", "size of a frame without FCS, or imix",
               scalar<Config>(
                   of(&Config::traffic, &traffic::TrafficSettings::size), parse_frame_size,
                   [](const std::string& value) { return value; }, "60..9014|imix")),
       traffic("flows", "N", "distinct UDP 5-tuples",
               count<Config>(of(&Config::traffic, &traffic::TrafficSettings::flows), 1, 1 << 20)),
       traffic("rate", "RATE", "rate of each port: 40gbit, 14.88Mpps or max",
               scalar<Config>(of(&Config::traffic, &traffic::TrafficSettings::rate), parse_bounded_rate, exact_text)),
       traffic("src-mac", "MAC", "source of the frames", mac(&traffic::TrafficSettings::src_mac)),
       traffic("dst-mac", "MAC", "destination of the frames", mac(&traffic::TrafficSettings::dst_mac)),
       traffic("src-ip", "IP", "source address", ip(&traffic::TrafficSettings::src_ip)),
       traffic("dst-ip", "IP", "destination address", ip(&traffic::TrafficSettings::dst_ip)),
       traffic("src-port", "N", "source port of the first flow; the others count up",
               port(&traffic::TrafficSettings::src_port)),
       traffic("dst-port", "N", "destination port", port(&traffic::TrafficSettings::dst_port)),
       traffic("drain", "S", "wait for packets that are still in flight",
               nanos<Config>(of(&Config::traffic, &traffic::TrafficSettings::drain), kSecond, Nanos{0},
                             Nanos{3600 * kSecond}))});
}

void add_bench(std::vector<Option>& table) {
  const std::vector<Command> bench = {Command::bench};
  table.insert(
      table.end(),
      {{"rounds", 0, "bench", "rounds", bench, Arity::single, "N",
        "runs per cell; 0: recycle 30, memcpy 9, copy-batch 1, others 5",
        count<Config>(of(&Config::bench, &BenchConfig::rounds), 0, 1000)},
       {"seconds", 0, "bench", "seconds", bench, Arity::single, "S", "duration of each run",
        nanos<Config>(of(&Config::bench, &BenchConfig::seconds), kSecond, Nanos{10 * kMilli}, Nanos{3600 * kSecond})},
       {"pipelines", 'p', "bench", "pipelines", bench, Arity::single, "N",
        "queue pairs; 0: four, or one for two cores; stream-chunk: one",
        count<Config>(of(&Config::bench, &BenchConfig::pipelines), 0, 256)},
       {"parallel", 'P', "bench", "parallel", bench, Arity::single, "N", "stream-chunk: connections of each pipeline",
        count<Config>(of(&Config::bench, &BenchConfig::parallel), 1, 1024)},
       {"engine", 0, "bench", "engine", bench, Arity::single, "KIND", "engine beside the receiving core",
        choice<Config>(of(&Config::bench, &BenchConfig::engine))},
       {"ack", 0, "bench", "ack", bench, Arity::single, "KIND",
        "stream-chunk: who writes acknowledgements; gpu: the engine",
        choice<Config>(of(&Config::bench, &BenchConfig::ack))},
       {"io", 0, "bench", "io", bench, Arity::single, "WHO", "stream-chunk: who takes packets; gpu: the engine",
        choice<Config>(of(&Config::bench, &BenchConfig::io))},
       {"send-engine", 0, "bench", "send-engine", bench, Arity::single, "KIND", "stream-chunk: what fills frames",
        choice<Config>(of(&Config::bench, &BenchConfig::send_engine))},
       {"processing", 0, "bench", "processing", bench, Arity::list, "on|off",
        "stream-chunk: only with bytes put in place, or only without",
        names<Config>(of(&Config::bench, &BenchConfig::processing), "on|off")},
       {"rows", 0, "bench", "rows", bench, Arity::list, "N",
        "only these rows: sizes, bursts or loads; rate: one search for each frame size",
        counts<Config>(of(&Config::bench, &BenchConfig::rows), 1, 9014)},
       {"size", 0, "bench", "size", bench, Arity::list, "BYTES",
        "copy-batch: only frames of these sizes; stream-chunk: only these MTUs",
        counts<Config>(of(&Config::bench, &BenchConfig::sizes), 1, 9014)},
       {"batch", 0, "bench", "batch", bench, Arity::list, "N", "copy-batch: only these batches, packets or adaptive",
        names<Config>(of(&Config::bench, &BenchConfig::batches), "")},
       {"path", 0, "bench", "path", bench, Arity::list, "PATH", "copy-batch: only these paths, as ingest has them",
        names<Config>(of(&Config::bench, &BenchConfig::paths), "")},
       {"chunk", 0, "bench", "chunk", bench, Arity::list, "BYTES", "stream-chunk: only chunks of these sizes",
        counts<Config>(of(&Config::bench, &BenchConfig::chunks), 1, 1U << 30)},
       {"bytes", 0, "bench", "bytes", bench, Arity::single, "N",
        "stream-chunk: bytes of each run; 0: as many as go in --seconds",
        unbounded<Config>(of(&Config::bench, &BenchConfig::bytes))},
       {"only", 0, "bench", "only", bench, Arity::list, "FACTOR",
        "recycle: only these factors: burst, ring, cache, ...",
        names<Config>(of(&Config::bench, &BenchConfig::only), "")},
       {"ways", 0, "bench", "ways", bench, Arity::list, "WAY", "recycle: only these ways, as --recycle names them",
        names<Config>(of(&Config::bench, &BenchConfig::ways), "")},
       {"keep-disturbed", 0, "bench", "keep-disturbed", bench, Arity::flag, "",
        "recycle: count also what was measured while the thread lost its processor",
        boolean<Config>(of(&Config::bench, &BenchConfig::keep_disturbed))},
       {"packets", 0, "bench", "packets", bench, Arity::single, "N", "recycle: packets of each measurement; 0: 256Ki",
        unbounded<Config>(of(&Config::bench, &BenchConfig::packets))},
       {"gpu", 'g', "bench", "gpu", bench, Arity::single, "ID", "CUDA's number of the GPU",
        count<Config>(of(&Config::bench, &BenchConfig::gpu), 0, 1023)},
       {"seed", 0, "bench", "seed", bench, Arity::single, "N", "seed for the order in a round",
        unbounded<Config>(of(&Config::bench, &BenchConfig::seed))}});
}

void add_report(std::vector<Option>& table) {
  const std::vector<Command> report = {Command::report};
  table.push_back({"files",
                   0,
                   "report",
                   "files",
                   report,
                   Arity::list,
                   "FILES",
                   "JSON of runs and benchmarks; repeatable",
                   paths<Config>(of(&Config::report, &ReportConfig::files)),
                   ':',
                   {},
                   true});
  table.push_back({"html", 0, "report", "html", report, Arity::single, "FILE", "where the page is written",
                   text<Config>(of(&Config::report, &ReportConfig::html))});
}

/// Parts of a whole, at least one.
Access<Config> ratios(std::vector<double> RateSearchSettings::* field) {
  return {[=](Config& config, std::span<const std::string> texts) -> Result<void> {
            std::vector<double> values;
            for (const std::string& text : texts) {
              WARPLINE_TRY(const double value, parse_ratio(text));
              values.push_back(value);
            }
            if (values.empty()) return usage_error("cannot use ''", "it names none", "leave it out for the default");
            config.rate_search.*field = std::move(values);
            return {};
          },
          [=](const Config& config) -> nlohmann::json { return config.rate_search.*field; }, "0 to below 1"};
}

/// Those of `bench rate`, with RFC 9971's names.
void add_rate_search(std::vector<Option>& table) {
  using Settings = RateSearchSettings;
  const auto option = [&](std::string_view name, std::string_view argument, std::string_view help,
                          Access<Config> access, Arity arity = Arity::single) {
    table.push_back({name, 0, "bench", name, {Command::bench}, arity, argument, help, std::move(access)});
  };
  const auto ratio = [&](double Settings::* field) {
    return scalar<Config>(
        of(&Config::rate_search, field), parse_ratio, [](double value) { return value; }, "0 to below 1");
  };
  const auto load = [&](double Settings::* field) {
    return scalar<Config>(of(&Config::rate_search, field), parse_per_second,
                          [](double value) { return exact_text(PacketRate{value}); });
  };
  const auto duration = [&](Nanos Settings::* field) {
    return nanos<Config>(of(&Config::rate_search, field), kSecond, Nanos{10 * kMilli}, Nanos{3600 * kSecond});
  };
  option("of", "COMMAND", "rate: command that is offered load, in quotes: \"forward --loopback\"",
         text<Config>(of(&Config::rate_search, &Settings::of)));
  option("loss-ratio", "RATIO", "rate: loss that each goal allows a trial", ratios(&Settings::loss_ratios),
         Arity::list);
  option("exceed-ratio", "RATIO", "rate: part of the trials at a load that may lose more",
         ratio(&Settings::exceed_ratio));
  option("width", "RATIO", "rate: how close the bounds have to be", ratio(&Settings::width));
  option("initial-trial-duration", "S", "rate: duration of the first trials",
         duration(&Settings::initial_trial_duration));
  option("final-trial-duration", "S", "rate: duration of the trials that count in full",
         duration(&Settings::final_trial_duration));
  option("duration-sum", "S", "rate: full trials at one load together, to decide", duration(&Settings::duration_sum));
  option("min-rate", "RATE", "rate: smallest load, of a port: 10Kpps, or requests per second",
         load(&Settings::min_rate));
  option("max-rate", "RATE", "rate: largest load", load(&Settings::max_rate));
}

Option setup(std::string_view name, std::string_view argument, std::string_view help, Access<port::PortSettings> access,
             Arity arity = Arity::single) {
  const std::vector<Command> all = {Command::forward,  Command::l3forward, Command::ingest,
                                    Command::generate, Command::message,   Command::stream};
  return {name, 0, "port", name, all, arity, argument, help, std::move(access)};
}

void add_port_setup(std::vector<Option>& table) {
  const auto ring = [](std::uint16_t port::PortSettings::* field) {
    return count<port::PortSettings>(field_of(field), 8, 32'768);
  };
  const auto threshold = [](std::optional<std::uint16_t> port::PortSettings::* field) {
    return optional_count<port::PortSettings>(field_of(field), 0, 32'768);
  };
  table.insert(
      table.end(),
      {setup("rx-ring", "N", "descriptors per receive queue", ring(&port::PortSettings::rx_ring)),
       setup("tx-ring", "N", "descriptors per transmit queue", ring(&port::PortSettings::tx_ring)),
       setup("rx-free-thresh", "N", "refill the receive ring once N descriptors are vacant",
             threshold(&port::PortSettings::rx_free_thresh)),
       setup("tx-free-thresh", "N", "free sent buffers once N descriptors are used",
             threshold(&port::PortSettings::tx_free_thresh)),
       setup("tx-rs-thresh", "N", "request a completion every N transmit descriptors",
             threshold(&port::PortSettings::tx_rs_thresh)),
       setup("rx-offloads", "NAMES", "DPDK's names, lower case",
             names<port::PortSettings>(field_of(&port::PortSettings::rx_offloads), ""), Arity::list),
       setup("tx-offloads", "NAMES", "DPDK's names, lower case",
             names<port::PortSettings>(field_of(&port::PortSettings::tx_offloads), ""), Arity::list),
       setup("mtu", "BYTES", "maximum size of a layer-3 packet",
             count<port::PortSettings>(field_of(&port::PortSettings::mtu), 68, 9600)),
       setup("rss-key", "HEX", "hash key",
             scalar<port::PortSettings>(field_of(&port::PortSettings::rss_key), parse_hex,
                                        [](const std::vector<std::uint8_t>& key) { return to_hex(key); })),
       setup("rss-fields", "NAMES", "header fields that the hash covers",
             names<port::PortSettings>(field_of(&port::PortSettings::rss_fields), "ip,udp,tcp,..."), Arity::list),
       setup("address", "ADDR/LEN", "answers ARP, ND, echo; the i-th is the i-th port's; several: A+B; none",
             port_addresses(), Arity::by_port),
       setup("promiscuous", "on|off", "also receive frames for other MAC addresses",
             scalar<port::PortSettings>(field_of(&port::PortSettings::promiscuous), parse_bool,
                                        [](bool on) { return on; }))});
}

}  // namespace

std::span<const Role> roles_of(Command command) {
  static constexpr std::array kMessage{Role::server, Role::client, Role::daemon};
  static constexpr std::array kStream{Role::receive, Role::send, Role::proxy};
  static constexpr std::array kCtl{Role::reload};
  static constexpr std::array kSetup{Role::nic, Role::hugepages, Role::user};
  if (command == Command::message) return kMessage;
  if (command == Command::stream) return kStream;
  if (command == Command::ctl) return kCtl;
  if (command == Command::setup) return kSetup;
  return {};
}

bool Option::taken_by(Command command) const { return std::ranges::find(commands, command) != commands.end(); }

bool Option::is_for(std::optional<Role> asked) const {
  return roles.empty() || !asked || std::ranges::find(roles, *asked) != roles.end();
}

std::string Option::variable(Command command) const {
  std::string result = "WARPLINE_" + std::string(warpline::name(command)) + "_" + std::string(name);
  std::ranges::transform(result, result.begin(), [](unsigned char c) {
    return c == '-' || c == ' ' ? '_' : static_cast<char>(std::toupper(c));
  });
  return result;
}

const std::vector<Option>& options() {
  static const std::vector<Option> table = [] {
    std::vector<Option> made;
    for (const auto add :
         {add_common, add_operation_options, add_forward_pool, add_forward, add_l3forward, add_ingest, add_traffic,
          add_message_options, add_key_options, add_stream_options, add_bench, add_report, add_rate_search,
          add_selftest_options, add_attach_options, add_setup_options, add_port_setup}) {
      add(made);
    }
    return made;
  }();
  return table;
}

const Option* find_option(Command command, std::string_view name) {
  const auto matches = [&](const Option& option) { return option.name == name && option.taken_by(command); };
  const auto found = std::ranges::find_if(options(), matches);
  return found == options().end() ? nullptr : &*found;
}

}  // namespace warpline::config
