// SPDX-License-Identifier: Apache-2.0
#include "selftest/plan.h"

#include <fmt/format.h>

#include <functional>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace warpline::selftest {
namespace {

using Words = std::vector<std::string>;

Words joined(Words first, const Words& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

class Planner {
 public:
  explicit Planner(const Subject& subject) : subject_(subject) {}

  std::vector<Step> plan() && {
    add(Stage::machine, "doctor", {"doctor"}, "");
    add(Stage::link, "link", generated({"--rate", "2kpps", "--packets", "200"}), "");
    add_frames();
    add_offloads();
    add_queues();
    if (subject_.ports.size() < 2) return std::move(steps_);  // nobody makes what would be forwarded
    add_datapath();
    add_buffers();
    if (subject_.gpu) add_gpu();
    add_ingest();
    return std::move(steps_);
  }

 private:
  void add(Stage stage, std::string name, Words arguments, std::string needs, std::string asked = "") {
    if (stage != Stage::machine) arguments = with_common(subject_, std::move(arguments));
    arguments.emplace_back("--json");
    steps_.push_back({.name = std::move(name),
                      .stage = stage,
                      .arguments = std::move(arguments),
                      .needs = std::move(needs),
                      .asked = std::move(asked)});
  }

  /// Both ports send, and each checks what it receives.
  [[nodiscard]] Words generated(const Words& more) const {
    Words words = {"generate"};
    for (const std::string& port : subject_.ports) words.insert(words.end(), {"--port", port});
    return joined(joined(std::move(words), {"--verify", "--drain", "2s"}), more);
  }
  [[nodiscard]] Words paced(const Words& more) const {
    return generated(joined({"--rate", "50kpps", "--packets", packets(5000)}, more));
  }
  /// The far side has no more frames on their way than fit into rings, so that none is lost while a core does other
  /// work. With one port there is no such side, and they are sent slowly.
  [[nodiscard]] Words passed(const Words& more) const {
    return subject_.ports.size() < 2 ? paced(more) : verified_run(subject_, joined({"--packets", packets(5000)}, more));
  }
  [[nodiscard]] Words forwarded(const Words& more) const {
    return verified_run(subject_, joined({"--packets", packets(100'000)}, more));
  }
  [[nodiscard]] std::string packets(int all) const { return std::to_string(subject_.quick ? all / 5 : all); }

  /// Adds a step for each value, or for those of a quick run.
  void each(Stage stage, std::string_view what, std::initializer_list<std::string_view> values,
            std::initializer_list<std::string_view> quick, std::string_view needs,
            const std::function<Words(const std::string&)>& arguments, bool offload = false) {
    for (const std::string_view value : subject_.quick ? quick : values) {
      add(stage, fmt::format("{} {}", what, value), arguments(std::string(value)), std::string(needs),
          offload ? fmt::format("{} offload {}", what == "rx offload" ? "receive" : "transmit", value) : "");
    }
  }

  void add_frames() {
    each(Stage::frames, "size", {"60", "61", "64", "65", "127", "128", "255", "512", "1024", "1513", "1514", "imix"},
         {"60", "1514", "imix"}, "link", [this](const std::string& size) { return passed({"--size", size}); });
    // Rings so short that what is on its way fits a NIC's packet buffer, too.
    each(Stage::frames, "mtu", {"1280", "2000", "4000", "9000"}, {"9000"}, "link", [this](const std::string& mtu) {
      return passed(
          {"--mtu", mtu, "--rx-ring", "128", "--tx-ring", "128", "--size", std::to_string(std::stoi(mtu) + 14)});
    });
  }

  void add_offloads() {
    each(
        Stage::offloads, "rx offload", {"ipv4_cksum", "udp_cksum", "tcp_cksum", "scatter", "rss_hash", "timestamp"},
        {"ipv4_cksum"}, "link", [this](const std::string& name) { return passed({"--rx-offloads", name}); }, true);
    each(
        Stage::offloads, "tx offload", {"ipv4_cksum", "udp_cksum", "tcp_cksum", "multi_segs"}, {"ipv4_cksum"}, "link",
        [this](const std::string& name) { return passed({"--tx-offloads", name}); }, true);
    add(Stage::offloads, "checksum offloads together",
        passed({"--rx-offloads", "ipv4_cksum,udp_cksum", "--tx-offloads", "ipv4_cksum,udp_cksum"}), "link");
  }

  void add_queues() {
    std::string needs = "link";
    for (const char* queues : {"2", "4", "8"}) {
      const std::string name = fmt::format("queues {}", queues);
      add(Stage::queues, name, paced({"--queues", queues, "--flows", "256", "--share-cores"}), needs);
      needs = name;
      if (subject_.quick) return;
    }
    add(Stage::queues, "rss-fields ip,udp", paced({"--queues", "2", "--flows", "256", "--rss-fields", "ip,udp"}),
        "queues 2");
  }

  void add_datapath() {
    const auto forward = [this](std::string name, const Words& more, std::string needs = "forward") {
      add(Stage::datapath, std::move(name), forwarded(more), std::move(needs));
    };
    forward("forward", {}, "link");
    forward("forward one frame size after the other", {"--size", "imix"});
    for (const char* workload : {"none", "checksum"}) {
      if (!subject_.quick) forward(fmt::format("workload {}", workload), {"--workload", workload});
    }
    for (const char* burst : {"1", "32", "256", "512"}) {
      if (!subject_.quick) forward(fmt::format("burst {}", burst), {"--burst", burst});
    }
    forward("burst adaptive", {"--burst", "adaptive"});
    forward("engine thread", {"--engine", "thread", "--share-cores"});
    if (!subject_.quick) forward("model pipeline", {"--model", "pipeline", "--share-cores"});
    forward("pipelines 2", {"--pipelines", "2", "--flows", "256", "--share-cores"}, "queues 2");
    if (subject_.quick) return;
    forward("pipelines 4", {"--pipelines", "4", "--flows", "256", "--share-cores"}, "queues 4");
    forward("mtu 9000 forwarded", {"--mtu", "9000", "--rx-ring", "128", "--tx-ring", "128", "--size", "9014"},
            "mtu 9000");
  }

  void add_buffers() {
    const auto forward = [this](std::string name, const Words& more, std::string needs = "forward") {
      add(Stage::buffers, std::move(name), forwarded(more), std::move(needs));
    };
    for (const char* way : {"off", "fast-free", "cache", "direct"}) {
      if (!subject_.quick || way == std::string_view("direct")) {
        forward(fmt::format("recycle {}", way), {"--recycle", way});
      }
    }
    forward("split 60", {"--split", "60", "--size", "512"});
    forward("several buffers a frame", {"--data-room", "576", "--size", "1514"});
    if (!subject_.quick)
      forward("pool of each queue", {"--pool", "per-queue", "--pipelines", "2", "--share-cores"}, "pipelines 2");
  }

  void add_gpu() {
    const std::string gpu = std::to_string(*subject_.gpu);
    const auto forward = [&](std::string name, const Words& more, std::string needs) {
      add(Stage::gpu, std::move(name), forwarded(joined({"--gpu", gpu}, more)), std::move(needs));
    };
    forward("pinned memory, a launch a burst", {"--engine", "launch", "-m", "pinned"}, "forward");
    for (const char* engine : {"graph", "persistent"}) {
      forward(fmt::format("pinned memory, engine {}", engine), {"--engine", engine, "-m", "pinned"},
              "pinned memory, a launch a burst");
    }
    forward("GPU memory, engine persistent", {"--engine", "persistent", "-m", "device"},
            "pinned memory, engine persistent");
    forward("GPU memory, split 60", {"--engine", "persistent", "-m", "device", "--split", "60", "--size", "512"},
            "GPU memory, engine persistent");
    forward("I/O by the GPU", {"--engine", "persistent", "--io", "gpu"}, "pinned memory, engine persistent");
  }

  void add_ingest() {
    const auto ingest = [this](std::string name, const Words& more, std::string needs) {
      Words words = {"ingest", "--loopback"};
      for (const std::string& port : subject_.ports) words.insert(words.end(), {"--port", port});
      add(Stage::ingest, std::move(name), joined(joined(std::move(words), {"--packets", packets(50'000)}), more),
          std::move(needs));
    };
    if (!subject_.gpu) {
      ingest("ingest into host memory", {"-m", "host", "--share-cores"}, "forward");
      return;
    }
    for (const char* path : {"copy", "zerocopy", "device"}) {
      ingest(fmt::format("ingest, path {}", path), {"--path", path, "--gpu", std::to_string(*subject_.gpu)},
             "pinned memory, a launch a burst");
    }
  }

  const Subject& subject_;
  std::vector<Step> steps_;
};

}  // namespace

std::vector<std::string> with_common(const Subject& subject, std::vector<std::string> arguments) {
  if (!subject.hugepages) arguments.emplace_back("--no-hugepages");
  return arguments;
}

std::vector<std::string> verified_run(const Subject& subject, const std::vector<std::string>& more) {
  std::vector<std::string> words = subject.ports.size() > 1 ? std::vector<std::string>{"forward", "--loopback"}
                                                            : std::vector<std::string>{"generate"};
  for (const std::string& port : subject.ports) words.insert(words.end(), {"--port", port});
  words.emplace_back("--verify");
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<Step> feature_steps(const Subject& subject) { return Planner(subject).plan(); }

std::string command_line(const std::vector<std::string>& arguments) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-=:,./+@%";
  std::string line = "warpline";
  for (const std::string& word : arguments) {
    line +=
        word.empty() || word.find_first_not_of(kPlain) != std::string::npos ? fmt::format(" '{}'", word) : " " + word;
  }
  return line;
}

}  // namespace warpline::selftest
