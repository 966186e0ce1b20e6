// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "warpline/base/enum_names.h"

namespace warpline::bench {

/// What takes packets from receive queues to transmit queues.
enum class RecycleLoop : std::uint8_t {
  forward,    ///< the loop of `forward`, between two ports, both ways
  l3forward,  ///< the loop of `l3forward`, the same
  mix,        ///< from one port to several queues in shares, some packets cloned
};
constexpr auto names_of(RecycleLoop) { return enum_names<RecycleLoop>({"forward", "l3forward", "mix"}); }

/// What is measured of a setting.
enum class RecycleProbe : std::uint8_t {
  cost,       ///< cycles a packet
  floor,      ///< the same while no buffer enters or leaves a ring but with its packet
  two_lcores  ///< one lcore receives and another sends: whether that is refused, and in what words
};

/// One way of forwarding and of getting buffers back.
struct RecycleSetting {
  RecycleLoop loop = RecycleLoop::forward;
  RecycleProbe probe = RecycleProbe::cost;
  memory::RecycleWay way = memory::RecycleWay::off;
  std::string driver = "net_vnic";  ///< or net_null, net_ring
  std::string refill = "mbuf";      ///< net_vnic's, as in its device arguments
  std::uint16_t burst = 32;
  std::uint16_t ring = 1024;            ///< descriptors, of both sides
  std::uint32_t cache = 256;            ///< of the pool, mbufs an lcore
  bool external = false;                ///< pinned external buffers
  bool touched = false;                 ///< the work reads and writes each packet's first bytes
  std::uint16_t queues = 1;             ///< mix: transmit queues of the port that most packets leave by, taken in turn
  std::uint32_t elsewhere_percent = 0;  ///< mix: of packets, leaving by another port
  std::uint32_t cloned_percent = 0;     ///< mix: of packets, a clone leaving by a third port too
  std::uint32_t repeat = 0;             ///< tells twins apart
  bool operator==(const RecycleSetting&) const = default;
};

inline constexpr std::array kRecycleWays = {memory::RecycleWay::off, memory::RecycleWay::fast_free,
                                            memory::RecycleWay::cache, memory::RecycleWay::direct,
                                            memory::RecycleWay::automatic};

/// One value of a factor, everything else as in the base case.
struct RecycleRow {
  std::string factor;
  std::string value;
  bool context = false;            ///< no ring of its own comes before the buffers: nothing to conclude from
  std::vector<std::size_t> cells;  ///< indices of RecycleBenchPlan::settings; their ways differ
};

struct RecycleBenchPlan {
  std::vector<RecycleSetting> settings;  ///< each once
  std::vector<RecycleRow> rows;
};

/// "base", then one factor at a time. `only`: factors, `ways`: as --recycle names them; none for all, an unknown one is
/// a usage error.
[[nodiscard]] Result<RecycleBenchPlan> plan_recycle_bench(const std::vector<std::string>& only,
                                                          const std::vector<std::string>& ways = {});

/// "forward/burst 32/.../direct", for progress and errors.
[[nodiscard]] std::string describe(const RecycleSetting& setting);

}  // namespace warpline::bench
