// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/eal.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include <rte_eal.h>
#include <rte_errno.h>

#include "warpline/machine/cgroups.h"
#include "warpline/machine/hugepages.h"
#include "warpline/machine/ordinary_scheduling.h"
#include "warpline/machine/topology.h"
#include "warpline/runtime/dpdk_log.h"
#include "warpline/runtime/interrupt_thread.h"
#include "warpline/runtime/kept_eal.h"
#include "warpline/runtime/port_spec.h"
#include "warpline/runtime/setup_step.h"
#include "warpline/runtime/telemetry/telemetry_folder.h"

namespace warpline::runtime {
namespace {

/// Beyond the pools: EAL's own zones, ethdev and driver tables, rings.
constexpr std::uint64_t kOwnMemory = 64 << 20;

std::atomic<bool> started_before{false};
std::atomic<bool> ending{false};
std::atomic<bool> kept{false};

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// What Warpline decides itself, and what says it instead.
constexpr std::pair<const char*, const char*> kOurs[] = {
    {"-l", "--lcores"},
    {"-c", "--lcores"},
    {"--lcores", "--lcores"},
    {"--main-lcore", "--lcores"},
    {"-a", "--port"},
    {"--allow", "--port"},
    {"--vdev", "--port"},
    {"-b", "--port"},
    {"--block", "--port"},
    {"--in-memory", "--hugepages"},
    {"--file-prefix", "nothing: it is chosen for each process"},
};

Result<void> refuse_ours(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    for (const auto& [argument, instead] : kOurs) {
      const std::string_view option(argument);
      const bool is_long = option.starts_with("--");
      if (word == option || word.starts_with(fmt::format("{}=", option)) ||
          (!is_long && word.starts_with(option) && !word.starts_with("--"))) {
        return usage_error(fmt::format("EAL argument \"{}\"", word), "the program sets it itself",
                           fmt::format("use {}", instead));
      }
    }
  }
  return {};
}

bool names(const std::vector<std::string>& words, std::string_view option) {
  return std::find(words.begin(), words.end(), option) != words.end();
}

std::vector<int> current_affinity() {
  const Result<machine::Topology> topology = machine::Topology::of_machine();
  std::vector<int> cpus;
  if (topology.ok()) {
    for (const machine::Cpu& cpu : topology->cpus) cpus.push_back(cpu.id);
  }
  return cpus;
}

void set_affinity(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  const int count = cpus.back() + 1;
  cpu_set_t* const set = CPU_ALLOC(count);
  const std::size_t size = CPU_ALLOC_SIZE(count);
  CPU_ZERO_S(size, set);
  for (const int cpu : cpus) CPU_SET_S(cpu, size, set);
  sched_setaffinity(0, size, set);
  CPU_FREE(set);
}

/// EAL makes the folder for its files even when told to keep none. Gone at once, not even a kill can leave it behind.
/// The folder around it stays, even empty: another program of DPDK that starts now has made it and is about to use it.
void remove_runtime_dir(const std::filesystem::path& folder) {
  if (folder.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

Error not_started(const CapturedLog& log, const RuntimeSettings& settings, bool hugepages, Bytes memory) {
  const int code = rte_errno;
  const std::string why = log.reason(rte_strerror(code));
  if (code == EINVAL && !settings.eal.empty()) {
    return usage_error(fmt::format("EAL arguments \"{}\"", settings.eal), why, "see DPDK's \"EAL parameters\"");
  }
  if (code == EALREADY) {
    return environment_error("DPDK does not start", "another library of this process has started it",
                             "let one of them do without, or link DPDK into one of them");
  }
  if (Result<void> usable = check_runtime_folder(); !usable) return std::move(usable).error();
  const std::vector<int> cpus = current_affinity();
  const std::filesystem::path file = machine::core_file(cpus.empty() ? 0 : cpus.front());
  std::error_code problem;
  if (!std::filesystem::exists(file, problem)) {
    return environment_error("DPDK does not start",
                             fmt::format("it finds processors by {}, which is missing", file.native()),
                             "mount sysfs, as container runtimes do: mount -t sysfs sysfs /sys");
  }
  if (code == EACCES || code == EPERM) {
    return environment_error("DPDK does not start", why, "run `warpline doctor`, or run as root: `sudo warpline ...`");
  }
  return environment_error("DPDK does not start", why,
                           hugepages ? fmt::format("reserve hugepages: {}, or use --no-hugepages",
                                                   machine::reserve_advice(machine::read_hugepages(), memory))
                                     : "run `warpline doctor`");
}

/// Refuses what the kernel would end the process for, once it is written. Books of a terabyte of 4 KiB pages alone take
/// EAL minutes.
Result<void> check_obtainable(Bytes needed) {
  const std::uint64_t obtainable = machine::obtainable_memory();
  if (needed.value <= obtainable) return {};
  return environment_error("DPDK does not start",
                           fmt::format("{} MiB of memory are needed, and {} MiB can be had", needed.value / kMebibyte,
                                       obtainable / kMebibyte),
                           "use smaller pools: fewer ring slots, smaller bursts or fewer pipelines");
}

}  // namespace

Result<std::vector<std::string>> eal_arguments(const RuntimeSettings& settings, const LcorePlan& plan,
                                               const std::vector<std::string>& port_specs, Bytes memory, bool hugepages,
                                               const std::string& file_prefix) {
  const std::vector<std::string> further = words_of(settings.eal);
  WARPLINE_CHECK(refuse_ours(further));
  std::vector<std::string> pci;
  for (const std::string& text : port_specs) {
    WARPLINE_TRY(const PortSpec spec, parse_port_spec(text));
    if (spec.pci) pci.push_back(text);
  }
  std::vector<std::string> arguments = {"--lcores",      eal_lcores(plan),
                                        "--main-lcore",  fmt::format("{}", plan.control_lcore),
                                        "--file-prefix", file_prefix};
  if (settings.telemetry.empty()) arguments.emplace_back("--no-telemetry");
  if (hugepages) {
    arguments.emplace_back("--in-memory");
  } else {
    const std::uint64_t mebibytes = (memory.value + kOwnMemory + kMebibyte - 1) / kMebibyte;
    for (const char* const argument : {"--no-huge", "--no-shconf", "-m"}) arguments.emplace_back(argument);
    arguments.push_back(fmt::format("{}", mebibytes));
  }
  // Virtual addresses need no look at the physical ones, and so no privilege. With a device, EAL knows better.
  if (pci.empty()) {
    arguments.emplace_back("--no-pci");
    arguments.emplace_back("--iova-mode=va");
  }
  for (const std::string& address : pci) {
    arguments.emplace_back("-a");
    arguments.push_back(address);
  }
  // The level of the whole bounds that of each component, so it is left to a user who sets levels.
  const bool sets_levels =
      std::ranges::any_of(further, [](const std::string& word) { return word.starts_with("--log-level"); });
  if (!sets_levels) arguments.emplace_back("--log-level=error");
  if (settings.log_level != LogLevel::error) {
    // Components before the whole: at a global level of debug EAL says of each that its level has changed.
    arguments.push_back(fmt::format("--log-level=*:{}", name(settings.log_level)));
    if (!sets_levels) arguments.push_back(fmt::format("--log-level={}", name(settings.log_level)));
  }
  arguments.insert(arguments.end(), further.begin(), further.end());
  return arguments;
}

Result<Eal> Eal::start(const RuntimeSettings& settings, const std::vector<WorkerRequest>& workers,
                       const std::vector<std::string>& port_specs, Bytes memory) {
  WARPLINE_TRY(LcorePlan plan, place_workers(settings, workers));
  return start_planned(settings, std::move(plan), port_specs, memory);
}

Result<Eal> Eal::start_planned(const RuntimeSettings& settings, LcorePlan plan,
                               const std::vector<std::string>& port_specs, Bytes memory) {
  Result<Eal> eal = settings.keep ? start_kept(settings, plan, port_specs, memory)
                                  : start_once(settings, plan, eal_lcores(plan), port_specs, memory, memory);
  if (eal) eal->plan_ = std::move(plan);
  return eal;
}

Result<Eal> Eal::start_kept(const RuntimeSettings& settings, const LcorePlan& plan,
                            const std::vector<std::string>& port_specs, Bytes memory) {
  static std::mutex one_at_a_time;
  static std::optional<KeptEal> what;
  static std::vector<std::string> notes;
  const std::lock_guard lock(one_at_a_time);
  if (!what) {
    WARPLINE_TRY(KeptEal first, KeptEal::for_first_run(settings, plan, port_specs, memory, current_affinity()));
    WARPLINE_TRY(Eal eal, start_once(settings, plan, first.lcores(), port_specs, first.memory, memory));
    first.hugepages = eal.hugepages_;
    notes = eal.notes_;
    what = std::move(first);
    kept.store(true, std::memory_order_relaxed);
    eal.owner_ = false;
    set_affinity(eal.affinity_);
    return eal;
  }
  WARPLINE_CHECK(what->check(settings, plan, port_specs, memory));
  Eal eal;
  eal.hugepages_ = what->hugepages;
  eal.notes_ = notes;
  return eal;
}

Result<Eal> Eal::start_once(const RuntimeSettings& settings, const LcorePlan& plan, const std::string& lcores,
                            const std::vector<std::string>& port_specs, Bytes memory, Bytes filled) {
  Eal eal;
  const Bytes needed{memory.value + kOwnMemory};
  const std::vector<machine::HugepagePool> pages = machine::read_hugepages();
  RuntimeSettings effective = settings;
  std::vector<std::string> words = words_of(settings.eal);
  eal.hugepages_ = settings.hugepages && !names(words, "--no-huge") && machine::free_bytes(pages).value >= needed.value;
  if (!eal.hugepages_) WARPLINE_CHECK(check_obtainable(filled));
  std::erase(words, "--no-huge");
  effective.eal = fmt::format("{}", fmt::join(words, " "));
  if (settings.hugepages && !eal.hugepages_) {
    eal.notes_.push_back(
        fmt::format("runs on ordinary pages, which is slower: {} MiB of hugepages are needed and {} MiB are free; {}",
                    needed.value / kMebibyte, machine::free_bytes(pages).value / kMebibyte,
                    machine::reserve_advice(pages, needed)));
  }
  const std::string& telemetry = settings.telemetry;
  if (!telemetry.empty()) WARPLINE_CHECK(check_telemetry_name(telemetry));
  WARPLINE_TRY(std::vector<std::string> arguments,
               eal_arguments(effective, plan, port_specs, memory, eal.hugepages_,
                             telemetry.empty() ? fmt::format("warpline-{}", getpid()) : telemetry));
  *(std::ranges::find(arguments, "--lcores") + 1) = lcores;
  if (started_before.exchange(true)) {
    return environment_error("DPDK does not start", "it can be started once in a process");
  }
  arguments.insert(arguments.begin(), "warpline");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());

  choose_runtime_folder();
  eal.affinity_ = current_affinity();
  const SetupStep step("starting DPDK");
  const CapturedLog log(CapturedLog::Scope::all_output);
  int status = 0;
  {
    const machine::OrdinaryScheduling for_threads;
    status = rte_eal_init(static_cast<int>(argv.size()), argv.data());
  }
  const char* const folder = rte_eal_get_runtime_dir();
  const std::filesystem::path runtime_dir = folder == nullptr ? "" : folder;
  if (telemetry.empty()) remove_runtime_dir(runtime_dir);
  if (status < 0) {
    Error error = not_started(log, effective, eal.hugepages_, needed);
    if (!telemetry.empty()) remove_telemetry_sockets(runtime_dir);
    set_affinity(eal.affinity_);
    return error;
  }
  eal.owner_ = true;
  if (!telemetry.empty()) eal.telemetry_dir_ = runtime_dir;
  return eal;
}

Eal::Eal(Eal&& other) noexcept
    : plan_(std::move(other.plan_)),
      owner_(std::exchange(other.owner_, false)),
      hugepages_(other.hugepages_),
      affinity_(std::move(other.affinity_)),
      notes_(std::move(other.notes_)),
      telemetry_dir_(std::move(other.telemetry_dir_)) {}

Eal::~Eal() {
  if (!owner_) return;
  const SetupStep step("stopping DPDK", SetupStep::Of::clean_up);
  const CapturedLog log;
  // A thread that does not stop may still touch what the clean-up unmaps; the end of the process then frees it.
  if (park_interrupt_thread()) rte_eal_cleanup();
  if (!telemetry_dir_.empty()) remove_telemetry_sockets(telemetry_dir_);
  set_affinity(affinity_);
}

void Eal::begin_end() { ending.store(!is_kept(), std::memory_order_relaxed); }

bool Eal::is_kept() { return kept.load(std::memory_order_relaxed); }

bool Eal::is_ending() { return ending.load(std::memory_order_relaxed); }

}  // namespace warpline::runtime
