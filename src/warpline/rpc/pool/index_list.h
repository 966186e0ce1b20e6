// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace warpline::rpc {

/// Lists over the numbers below a bound, each number in one of them at most, in the order of joining. All take constant
/// time, and no memory but the links, which lists share.
class IndexList {
 public:
  static constexpr std::uint32_t kEnd = std::numeric_limits<std::uint32_t>::max();
  struct Link {
    std::uint32_t before = kEnd;
    std::uint32_t after = kEnd;
    const IndexList* in = nullptr;
  };
  using Links = std::vector<Link>;

  /// `links` outlives it; as many as there are numbers.
  explicit IndexList(Links& links) : links_(links) {}
  IndexList(const IndexList&) = delete;
  IndexList& operator=(const IndexList&) = delete;

  [[nodiscard]] bool empty() const { return first_ == kEnd; }
  [[nodiscard]] std::uint32_t first() const { return first_; }  ///< kEnd: none
  [[nodiscard]] std::uint32_t after(std::uint32_t index) const { return links_[index].after; }
  [[nodiscard]] bool has(std::uint32_t index) const { return links_[index].in == this; }

  /// Adds a number that is in no list.
  void push_back(std::uint32_t index) {
    links_[index] = {last_, kEnd, this};
    (last_ == kEnd ? first_ : links_[last_].after) = index;
    last_ = index;
  }
  /// Likewise, before all others.
  void push_front(std::uint32_t index) {
    links_[index] = {kEnd, first_, this};
    (first_ == kEnd ? last_ : links_[first_].before) = index;
    first_ = index;
  }
  /// Nothing if it is not in this list.
  void remove(std::uint32_t index) {
    const Link link = links_[index];
    if (link.in != this) return;
    (link.before == kEnd ? first_ : links_[link.before].after) = link.after;
    (link.after == kEnd ? last_ : links_[link.after].before) = link.before;
    links_[index] = {};
  }

 private:
  Links& links_;
  std::uint32_t first_ = kEnd;
  std::uint32_t last_ = kEnd;
};

}  // namespace warpline::rpc
