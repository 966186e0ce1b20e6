// SPDX-License-Identifier: Apache-2.0
#include "host_cores.h"

#include <openssl/evp.h>

#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <thread>

#if defined(WARPLINE_HYPERSCAN)
#include <hs/hs.h>
#endif

namespace warpline::bench {
namespace {

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "inspect_rounds: %s\n", what);
  std::exit(3);
}

}  // namespace

struct HostCores::Team {
  explicit Team(unsigned cores) : counts(cores), gate(static_cast<std::ptrdiff_t>(cores) + 1) {
    for (unsigned core = 0; core < cores; ++core) {
      threads.emplace_back([this, core] {
        while (true) {
          gate.arrive_and_wait();
          if (!work) return;
          work(core);
          gate.arrive_and_wait();
        }
      });
    }
  }
  ~Team() {
    work = nullptr;
    gate.arrive_and_wait();
    for (std::thread& thread : threads) thread.join();
  }

  void run(std::function<void(unsigned)> what) {
    work = std::move(what);
    gate.arrive_and_wait();
    gate.arrive_and_wait();
  }
  /// Calls `one(core, stream)` for each stream.
  template <typename F>
  void each(const HostStreams& streams, F one) {
    run([&](unsigned core) {
      for (std::uint32_t i = core; i < streams.count; i += static_cast<std::uint32_t>(threads.size())) one(core, i);
    });
  }
  std::vector<std::uint64_t> sums(std::size_t patterns) {
    std::vector<std::uint64_t> sum(patterns);
    for (const auto& of_core : counts) {
      for (std::size_t p = 0; p < patterns; ++p) sum[p] += of_core[p];
    }
    return sum;
  }

  std::vector<std::vector<std::uint64_t>> counts;  ///< by core and pattern
  std::function<void(unsigned)> work;
  std::barrier<> gate;
  std::vector<std::thread> threads;
#if defined(WARPLINE_HYPERSCAN)
  hs_database_t* database = nullptr;
  std::vector<hs_scratch_t*> scratch;
  std::vector<std::string> compiled;
#endif
};

HostCores::HostCores(unsigned cores) : team_(std::make_unique<Team>(cores)) {}
HostCores::~HostCores() = default;

std::vector<std::uint8_t> HostCores::digests(const HostStreams& streams) {
  std::vector<std::uint8_t> sums(std::size_t{streams.count} * 32);
  team_->each(streams, [&](unsigned, std::uint32_t i) {
    if (EVP_Digest(streams.bytes + i * streams.length, streams.length, sums.data() + std::size_t{i} * 32, nullptr,
                   EVP_sha256(), nullptr) != 1) {
      give_up("OpenSSL makes no digest");
    }
  });
  return sums;
}

std::vector<std::uint64_t> HostCores::scan(const HostStreams& streams, const inspect::PatternSet& set) {
  for (auto& of_core : team_->counts) of_core.assign(set.patterns(), 0);
  const inspect::PatternTable table = set.table();
  team_->each(streams, [&](unsigned core, std::uint32_t i) {
    inspect::scan(table, 0, streams.bytes + i * streams.length, streams.length,
                  [&](std::uint32_t pattern) { ++team_->counts[core][pattern]; });
  });
  return team_->sums(set.patterns());
}

std::vector<std::uint64_t> HostCores::hyperscan([[maybe_unused]] const HostStreams& streams,
                                                [[maybe_unused]] const std::vector<std::string>& patterns) {
#if defined(WARPLINE_HYPERSCAN)
  if (team_->compiled != patterns) {
    team_->compiled = patterns;
    std::vector<const char*> texts;
    std::vector<std::size_t> lengths;
    std::vector<unsigned> ids, flags(patterns.size(), 0);
    for (const std::string& pattern : patterns) {
      texts.push_back(pattern.c_str());
      lengths.push_back(pattern.size());
      ids.push_back(static_cast<unsigned>(ids.size()));
    }
    hs_compile_error_t* error = nullptr;
    if (hs_compile_lit_multi(texts.data(), flags.data(), ids.data(), lengths.data(),
                             static_cast<unsigned>(patterns.size()), HS_MODE_BLOCK, nullptr, &team_->database,
                             &error) != HS_SUCCESS) {
      give_up(error->message);
    }
    team_->scratch.assign(team_->threads.size(), nullptr);
    for (hs_scratch_t*& scratch : team_->scratch) {
      if (hs_alloc_scratch(team_->database, &scratch) != HS_SUCCESS) give_up("Hyperscan has no memory");
    }
  }
  for (auto& of_core : team_->counts) of_core.assign(patterns.size(), 0);
  const auto found = [](unsigned id, unsigned long long, unsigned long long, unsigned, void* counts) {
    ++static_cast<std::uint64_t*>(counts)[id];
    return 0;
  };
  team_->each(streams, [&](unsigned core, std::uint32_t i) {
    const auto* const text = reinterpret_cast<const char*>(streams.bytes + i * streams.length);
    if (hs_scan(team_->database, text, static_cast<unsigned>(streams.length), 0, team_->scratch[core], found,
                team_->counts[core].data()) != HS_SUCCESS) {
      give_up("Hyperscan does not scan");
    }
  });
  return team_->sums(patterns.size());
#else
  return {};
#endif
}

}  // namespace warpline::bench
