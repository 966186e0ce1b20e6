// SPDX-License-Identifier: Apache-2.0
#include "selftest/plan.h"

#include <fmt/format.h>

#include <algorithm>
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
  Planner(const Subject& subject, const std::string& no_gpu)
      : subject_(subject), no_gpu_(no_gpu), link_(link_step(subject)), ingest_("ingest into host memory") {}

  std::vector<Step> plan() && {
    add(Stage::machine, "doctor", {"doctor"}, "");
    add(Stage::link, kLink, generated({"--rate", "2kpps", "--packets", "200"}), "");
    if (!subject_.macs.empty()) {
      add(Stage::link, link_, generated({"--rate", "2kpps", "--packets", "200"}), "");
    } else if (has_two()) {
      add(Stage::link, link_, ingested({"-m", "host", "--rate", "2kpps", "--packets", "200"}), "link");
    }
    add_frames();
    add_offloads();
    add_queues();
    if (has_two()) {
      add_datapath();
      add_buffers();
      if (subject_.gpu) add_gpu();
    } else {
      add("forward", {"forward"},
          "a port that gets its own frames back would forward them for ever; give two that a cable joins");
    }
    add_ingest();
    if (!has_two()) add_looped_ingest();
    if (subject_.gpu) add_ingest_on_gpu();
    return std::move(steps_);
  }

 private:
  [[nodiscard]] bool has_two() const { return subject_.ports.size() > 1; }

  void add(Stage stage, std::string name, Words arguments, std::string needs, std::string asked = "") {
    if (stage != Stage::machine) arguments = with_common(subject_, std::move(arguments));
    arguments.emplace_back("--json");
    steps_.push_back({.name = std::move(name),
                      .stage = stage,
                      .arguments = std::move(arguments),
                      .needs = std::move(needs),
                      .asked = std::move(asked)});
    const bool on_gpu = stage == Stage::gpu || std::ranges::count(steps_.back().arguments, "--gpu") != 0;
    if (on_gpu) steps_.back().impossible = no_gpu_;
  }

  /// Both ports send, and each checks what it receives. Where frames need a port's own address, of which a generator
  /// has one for all, the second sends and the first returns.
  [[nodiscard]] Words generated(const Words& more) const {
    const bool one_way = has_two() && !subject_.macs.empty();
    Words words = one_way ? Words{"forward", "--loopback"} : Words{"generate"};
    for (const std::string& port : subject_.ports) words.insert(words.end(), {"--port", port});
    words = joined(joined(std::move(words), {"--verify", "--drain", "2s"}), more);
    if (!one_way) return words;
    std::ranges::replace(words, std::string("--queues"), std::string("--pipelines"));
    return joined(std::move(words), {"--tx-retries", "1000000"});
  }
  [[nodiscard]] Words paced(const Words& more) const {
    return generated(joined({"--rate", "50kpps", "--packets", packets(5000)}, more));
  }
  /// The last port sends, and what the first receives is checked where it is consumed.
  [[nodiscard]] Words ingested(const Words& more) const {
    Words words = {"ingest", "--loopback"};
    for (const std::string& port : subject_.ports) words.insert(words.end(), {"--port", port});
    return joined(std::move(words), more);
  }
  /// The far side has no more frames on their way than fit into rings, so that none is lost while a core does other
  /// work. With one port there is no such side, and they are sent slowly.
  [[nodiscard]] Words passed(const Words& more) const {
    return !has_two() ? paced(more) : patient(joined({"--packets", packets(5000)}, more));
  }
  /// What a feature does is tried, not how fast: a device that is slow to send gets all the time that it needs.
  [[nodiscard]] Words patient(const Words& more) const {
    return verified_run(subject_, joined({"--tx-retries", "1000000"}, more));
  }
  [[nodiscard]] Words forwarded(const Words& more) const {
    return patient(joined({"--packets", packets(100'000)}, more));
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
         {"60", "1514", "imix"}, link_, [this](const std::string& size) { return passed({"--size", size}); });
    // Rings so short that what is on its way fits a NIC's packet buffer, too.
    each(Stage::frames, "mtu", {"1280", "2000", "4000", "9000"}, {"9000"}, link_, [this](const std::string& mtu) {
      return passed(
          {"--mtu", mtu, "--rx-ring", "128", "--tx-ring", "128", "--size", std::to_string(std::stoi(mtu) + 14)});
    });
  }

  void add_offloads() {
    each(
        Stage::offloads, "rx offload", {"ipv4_cksum", "udp_cksum", "tcp_cksum", "scatter", "timestamp"}, {"ipv4_cksum"},
        link_, [this](const std::string& name) { return passed({"--rx-offloads", name}); }, true);
    each(
        Stage::offloads, "tx offload", {"ipv4_cksum", "udp_cksum", "tcp_cksum", "multi_segs"}, {"ipv4_cksum"}, link_,
        [this](const std::string& name) { return passed({"--tx-offloads", name}); }, true);
    add(Stage::offloads, "checksum offloads together",
        passed({"--rx-offloads", "ipv4_cksum,udp_cksum", "--tx-offloads", "ipv4_cksum,udp_cksum"}), link_);
  }

  void add_queues() {
    std::string needs = link_;
    for (const char* queues : {"2", "4", "8"}) {
      const std::string name = fmt::format("queues {}", queues);
      add(Stage::queues, name, paced({"--queues", queues, "--flows", "256", "--share-cores"}), needs);
      needs = name;
      if (subject_.quick) return;
    }
    // A device tells of a hash only where it makes one.
    add(Stage::queues, "rx offload rss_hash",
        paced({"--queues", "2", "--flows", "256", "--rx-offloads", "rss_hash", "--share-cores"}), "queues 2",
        "receive offload rss_hash");
    add(Stage::queues, "rss-fields ip,udp",
        paced({"--queues", "2", "--flows", "256", "--rss-fields", "ip,udp", "--share-cores"}), "queues 2");
  }

  void add_datapath() {
    const auto forward = [this](std::string name, const Words& more, std::string needs = "forward") {
      add(Stage::datapath, std::move(name), forwarded(more), std::move(needs));
    };
    forward("forward", {}, link_);
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
    forward("several buffers a frame",
            {"--data-room", "2048", "--mtu", "9000", "--rx-ring", "128", "--tx-ring", "128", "--size", "9014"},
            "mtu 9000");
    if (!subject_.quick)
      forward("pool of each queue", {"--pool", "queue", "--pipelines", "2", "--share-cores"}, "pipelines 2");
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

  void ingest(std::string name, const Words& more, std::string needs) {
    add(Stage::ingest, std::move(name), ingested(joined({"--packets", packets(50'000)}, more)), std::move(needs));
  }

  void add_ingest() { ingest(ingest_, {"-m", "host", "--share-cores"}, has_two() ? "forward" : link_); }

  /// What a port that gets its own frames back can show of bursts, engines, queues and buffers.
  void add_looped_ingest() {
    const auto on_host = [this](std::string name, const Words& more, std::string needs) {
      ingest(std::move(name), joined({"-m", "host", "--share-cores"}, more), std::move(needs));
    };
    for (const char* batch : {"1", "32", "256", "512"}) {
      if (!subject_.quick) on_host(fmt::format("batch {}", batch), {"--batch", batch}, ingest_);
    }
    on_host("batch adaptive", {"--batch", "adaptive"}, ingest_);
    on_host("engine thread", {"--engine", "thread"}, ingest_);
    on_host("pipelines 2", {"--pipelines", "2", "--flows", "256"}, "queues 2");
    on_host("several buffers a frame",
            {"--data-room", "2048", "--mtu", "9000", "--rx-ring", "128", "--tx-ring", "128", "--size", "9014"},
            "mtu 9000");
    if (subject_.quick) return;
    on_host("pipelines 4", {"--pipelines", "4", "--flows", "256"}, "queues 4");
    on_host("pool of each queue", {"--pool", "queue", "--pipelines", "2"}, "pipelines 2");
    on_host("mtu 9000 ingested", {"--mtu", "9000", "--rx-ring", "128", "--tx-ring", "128", "--size", "9014"},
            "mtu 9000");
  }

  void add_ingest_on_gpu() {
    const auto on_gpu = [this](std::string name, const Words& more, std::string needs) {
      ingest(std::move(name), joined({"--gpu", std::to_string(*subject_.gpu), "--share-cores"}, more),
             std::move(needs));
    };
    const std::string first = "ingest, path copy";
    on_gpu(first, {"--path", "copy", "--engine", "launch"}, ingest_);
    for (const char* path : {"zerocopy", "device"}) {
      on_gpu(fmt::format("ingest, path {}", path), {"--path", path, "--engine", "launch"}, first);
    }
    for (const char* engine : {"graph", "persistent"}) {
      on_gpu(fmt::format("ingest, engine {}", engine), {"--path", "copy", "--engine", engine}, first);
    }
  }

  /// Names a step that is not done, and why.
  void add(std::string name, Words arguments, std::string why) {
    steps_.push_back({.name = std::move(name),
                      .stage = Stage::datapath,
                      .arguments = std::move(arguments),
                      .needs = "",
                      .asked = "",
                      .impossible = std::move(why)});
  }

  const Subject& subject_;
  const std::string& no_gpu_;
  const std::string link_;    ///< without which nothing else is done
  const std::string ingest_;  ///< the first step of those that ingest
  std::vector<Step> steps_;
};

}  // namespace

std::vector<std::string> with_common(const Subject& subject, std::vector<std::string> arguments) {
  if (!subject.hugepages) arguments.emplace_back("--no-hugepages");
  if (subject.mtu != 1500 && std::ranges::count(arguments, "--mtu") == 0) {
    arguments.insert(arguments.end(), {"--mtu", std::to_string(subject.mtu)});
  }
  if (!subject.macs.empty()) {
    arguments.insert(arguments.end(), {"--src-mac", subject.macs.back(), "--dst-mac", subject.macs.front()});
  }
  return arguments;
}

std::vector<std::string> verified_run(const Subject& subject, const std::vector<std::string>& more) {
  std::vector<std::string> words = {subject.ports.size() > 1 ? "forward" : "ingest", "--loopback"};
  for (const std::string& port : subject.ports) words.insert(words.end(), {"--port", port});
  words.emplace_back("--verify");
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string link_step(const Subject& subject) {
  if (!subject.macs.empty()) return "link by the ports' addresses";
  return subject.ports.size() > 1 ? "joined" : kLink;
}

std::vector<Step> feature_steps(const Subject& subject, const std::string& no_gpu) {
  return Planner(subject, no_gpu).plan();
}

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
