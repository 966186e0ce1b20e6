// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/message_sizes.h"

#include <algorithm>

namespace warpline::sim {
namespace {

constexpr MessageSizes::Point kWebSearch[] = {{1, 0},      {10e3, 0.15}, {20e3, 0.2},  {30e3, 0.3},
                                              {50e3, 0.4}, {80e3, 0.53}, {200e3, 0.6}, {1e6, 0.7},
                                              {2e6, 0.8},  {5e6, 0.9},   {10e6, 0.97}, {30e6, 1}};
constexpr MessageSizes::Point kHadoop[] = {{1, 0},       {100, 0.01},   {200, 0.02},  {300, 0.05},  {350, 0.15},
                                           {400, 0.2},   {500, 0.3},    {600, 0.4},   {700, 0.5},   {1e3, 0.6},
                                           {2e3, 0.67},  {7e3, 0.7},    {30e3, 0.72}, {50e3, 0.82}, {80e3, 0.87},
                                           {120e3, 0.9}, {300e3, 0.95}, {1e6, 0.975}, {2e6, 0.99},  {10e6, 1}};
constexpr MessageSizes::Point kRpc[] = {{1, 0},
                                        {2, 0.2767},
                                        {3, 0.4612},
                                        {4, 0.5534},
                                        {7, 0.6456},
                                        {32, 0.7379},
                                        {64, 0.7974},
                                        {128, 0.8271},
                                        {256, 0.8569},
                                        {512, 0.9387},
                                        {1024, 0.9610},
                                        {2048, 0.9740},
                                        {4096, 0.98145},
                                        {8192, 0.98982},
                                        {16384, 0.99563},
                                        {32768, 0.997255},
                                        {65536, 0.998069},
                                        {131072, 0.999173},
                                        {262144, 0.99955},
                                        {524288, 0.999848},
                                        {1005228, 0.999924},
                                        {3221790, 0.999981},
                                        {12158197, 1}};

}  // namespace

std::optional<MessageSizes> MessageSizes::named(std::string_view name) {
  if (name == "websearch") return MessageSizes(kWebSearch);
  if (name == "hadoop") return MessageSizes(kHadoop);
  if (name == "rpc") return MessageSizes(kRpc);
  return std::nullopt;
}

std::uint32_t MessageSizes::draw(Random& random) const {
  const double share = static_cast<double>(random.next() >> 11) * 0x1p-53;
  const auto above = std::ranges::upper_bound(points_, share, {}, &Point::share);
  if (above == points_.end()) return static_cast<std::uint32_t>(points_.back().bytes);
  const Point& high = *above;
  const Point& low = *(above - 1);
  const double bytes = low.bytes + (high.bytes - low.bytes) * (share - low.share) / (high.share - low.share);
  return std::max(1U, static_cast<std::uint32_t>(bytes));
}

double MessageSizes::mean() const {
  double sum = 0;
  for (std::size_t i = 1; i < points_.size(); ++i)
    sum += (points_[i].share - points_[i - 1].share) * (points_[i].bytes + points_[i - 1].bytes) / 2;
  return sum;
}

}  // namespace warpline::sim
