// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "warpline/base/result.h"

struct bpf_program;

namespace warpline::capture {

/// A PacketFilter says which Ethernet frames match an expression of pcap-filter(7).
class PacketFilter {
 public:
  /// Compiles an expression; an empty one matches every frame. Usage error: libpcap does not understand it. Control
  /// thread; the name of a host in it is looked up here.
  [[nodiscard]] static Result<PacketFilter> compile(const std::string& expression);

  /// Returns what compile() made as bytes, which of_program() takes in another process; none if every frame matches.
  [[nodiscard]] std::vector<std::uint8_t> program() const;
  /// Makes a filter of program(). Usage error: the bytes are none that ends and stays within a frame.
  [[nodiscard]] static Result<PacketFilter> of_program(std::span<const std::uint8_t> program);

  /// Returns true if every frame matches, so that none need be asked for.
  [[nodiscard]] bool matches_all() const { return program_ == nullptr; }
  /// Returns true if a frame of `length` bytes matches whose first `captured` are at `bytes`. What lies behind these
  /// does not match anything. Any thread; neither allocates nor locks.
  [[nodiscard]] bool matches(const std::uint8_t* bytes, std::uint32_t length, std::uint32_t captured) const;

 private:
  PacketFilter() = default;

  std::shared_ptr<const bpf_program> program_;
};

}  // namespace warpline::capture
