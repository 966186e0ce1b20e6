// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "warpline/base/random.h"

namespace warpline::sim {

/// A published distribution of message sizes: points of its cumulative distribution, linear in between.
class MessageSizes {
 public:
  struct Point {
    double bytes;
    double share;  ///< of messages that are no longer
  };

  /// `websearch`: of the cluster that DCTCP was made for (Alizadeh et al., SIGCOMM 2010, figure 4), by the points that
  /// HPCC's simulations use (Li et al., SIGCOMM 2019). `hadoop`: of Meta's Hadoop cluster (Roy et al., SIGCOMM 2015,
  /// figure 6), by the same. `rpc`: of all applications in a data centre of Google, W3 of Homa (Montazeri et al.,
  /// SIGCOMM 2018), every few points of its 130.
  [[nodiscard]] static std::optional<MessageSizes> named(std::string_view name);
  explicit constexpr MessageSizes(std::span<const Point> points) : points_(points) {}

  [[nodiscard]] std::uint32_t draw(Random& random) const;
  [[nodiscard]] double mean() const;

 private:
  std::span<const Point> points_;
};

}  // namespace warpline::sim
