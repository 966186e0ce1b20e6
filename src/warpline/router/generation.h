// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "warpline/route/neighbours.h"
#include "warpline/route/route_set.h"
#include "warpline/router/route_lookup.h"

namespace warpline::router {

/// A next hop as the data path reads it. Only a gateway has a neighbour of its own; the others' is nobody, so that one
/// look at the neighbour's word tells the common case from all others.
struct Hop {
  std::uint32_t neighbour = route::NeighbourTable::kNobody;
  std::uint16_t port = 0;
  route::HopKind kind = route::HopKind::none;
};

/// One set of routes, ready for use. Never changed while lcores may read it.
template <RouteLookup Lookup>
struct Generation {
  Lookup tables;
  std::vector<Hop> hops;  ///< by RouteSet's indices
  std::uint64_t number = 0;
};

/// The generation in force, and those that lcores may still be reading. An lcore takes the current one at the beginning
/// of a round, tells its number, and has forgotten all earlier ones by then. The control thread publishes and frees.
template <RouteLookup Lookup>
class GenerationSwitch {
 public:
  /// An lcore's view.
  class Reader {
   public:
    explicit Reader(const GenerationSwitch& generations) : generations_(generations) {}

    /// Once a round. Acquire: the tables are seen as they were made.
    [[nodiscard]] const Generation<Lookup>& take() {
      const Generation<Lookup>* now = generations_.current_.load(std::memory_order_acquire);
      if (now != mine_) [[unlikely]] {
        mine_ = now;
        number_.store(now->number, std::memory_order_release);
      }
      return *now;
    }
    /// What the owner uses, and whatever comes later; 0 before its first round.
    [[nodiscard]] std::uint64_t number() const { return number_.load(std::memory_order_acquire); }

   private:
    const GenerationSwitch& generations_;
    const Generation<Lookup>* mine_ = nullptr;
    alignas(64) std::atomic<std::uint64_t> number_{0};
  };

  /// Control thread.
  void publish(std::unique_ptr<Generation<Lookup>> next) {
    current_.store(next.get(), std::memory_order_release);
    if (newest_ != nullptr) old_.push_back(std::move(newest_));
    newest_ = std::move(next);
  }

  /// Control thread: frees generations before `number`, which every reader has taken or gone beyond, after
  /// `forget(generation)`, which may move its tables elsewhere. What nobody has taken yet may be taken any time.
  template <typename Forget>
  void free_before(std::uint64_t number, Forget&& forget) {
    std::erase_if(old_, [&](const auto& generation) {
      if (generation->number >= number) return false;
      forget(*generation);
      return true;
    });
  }
  [[nodiscard]] bool has_old() const { return !old_.empty(); }
  [[nodiscard]] std::uint64_t newest() const { return newest_ == nullptr ? 0 : newest_->number; }

 private:
  std::atomic<const Generation<Lookup>*> current_{nullptr};
  std::unique_ptr<Generation<Lookup>> newest_;
  std::vector<std::unique_ptr<Generation<Lookup>>> old_;
};

}  // namespace warpline::router
