// SPDX-License-Identifier: Apache-2.0
#include "warpline/capture/packet_filter.h"

#include <fmt/format.h>
#include <pcap/pcap.h>

#include <algorithm>
#include <cstring>

namespace warpline::capture {
namespace {

constexpr int kLongestFrame = 65'535;

/// Those that bpf_filter() knows; it ends the process at others.
bool is_known(const bpf_insn& instruction) {
  const unsigned code = instruction.code;
  switch (code) {
    case BPF_RET | BPF_K:
    case BPF_RET | BPF_A:
    case BPF_LD | BPF_W | BPF_ABS:
    case BPF_LD | BPF_H | BPF_ABS:
    case BPF_LD | BPF_B | BPF_ABS:
    case BPF_LD | BPF_W | BPF_IND:
    case BPF_LD | BPF_H | BPF_IND:
    case BPF_LD | BPF_B | BPF_IND:
    case BPF_LD | BPF_W | BPF_LEN:
    case BPF_LDX | BPF_W | BPF_LEN:
    case BPF_LDX | BPF_B | BPF_MSH:
    case BPF_LD | BPF_IMM:
    case BPF_LDX | BPF_IMM:
    case BPF_LD | BPF_MEM:
    case BPF_LDX | BPF_MEM:
    case BPF_ST:
    case BPF_STX:
    case BPF_JMP | BPF_JA:
    case BPF_ALU | BPF_NEG:
    case BPF_MISC | BPF_TAX:
    case BPF_MISC | BPF_TXA:
      return true;
    default:
      break;
  }
  const unsigned operation = BPF_OP(code);
  const bool plain = (code & ~(BPF_CLASS(0xffU) | BPF_OP(0xffU) | BPF_SRC(0xffU))) == 0;
  if (BPF_CLASS(code) == BPF_JMP) return plain && operation != BPF_JA && operation <= BPF_JSET;
  return BPF_CLASS(code) == BPF_ALU && plain && operation <= BPF_XOR && operation != BPF_NEG;
}

/// Whether bpf_filter() comes to an end and stays within program and scratch memory: jumps go forwards, and the last
/// instruction returns. Libpcap's bpf_validate() lets a jump go backwards, and a library of DPDK has one of that name.
bool ends_with_each_frame(std::span<const bpf_insn> program) {
  if (program.empty() || BPF_CLASS(program.back().code) != BPF_RET) return false;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const bpf_insn& one = program[i];
    if (!is_known(one)) return false;
    const unsigned code = one.code;
    const std::size_t behind = program.size() - i - 1;  // instructions behind this one
    const bool stores = code == BPF_ST || code == BPF_STX || code == (BPF_LD | BPF_MEM) || code == (BPF_LDX | BPF_MEM);
    if (stores && one.k >= BPF_MEMWORDS) return false;
    if (BPF_CLASS(code) == BPF_JMP) {
      const bool always = code == (BPF_JMP | BPF_JA);
      if (always ? one.k >= behind : one.jt >= behind || one.jf >= behind) return false;
    }
    if ((code == (BPF_ALU | BPF_DIV | BPF_K) || code == (BPF_ALU | BPF_MOD | BPF_K)) && one.k == 0) return false;
  }
  return true;
}

}  // namespace

Result<PacketFilter> PacketFilter::compile(const std::string& expression) {
  PacketFilter filter;
  if (expression.empty()) return filter;
  const std::unique_ptr<pcap_t, decltype(&pcap_close)> ethernet(pcap_open_dead(DLT_EN10MB, kLongestFrame), pcap_close);
  auto program = std::make_unique<bpf_program>();
  if (ethernet == nullptr) return environment_error("cannot compile the filter", "libpcap has no memory");
  if (pcap_compile(ethernet.get(), program.get(), expression.c_str(), 1, PCAP_NETMASK_UNKNOWN) != 0) {
    return usage_error(fmt::format("cannot use the filter '{}'", expression), pcap_geterr(ethernet.get()),
                       "write it as pcap-filter(7) says: 'udp port 9'");
  }
  filter.program_ = {program.release(), [](bpf_program* compiled) {
                       pcap_freecode(compiled);
                       delete compiled;
                     }};
  return filter;
}

std::vector<std::uint8_t> PacketFilter::program() const {
  if (program_ == nullptr) return {};
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(program_->bf_insns);
  return {bytes, bytes + program_->bf_len * sizeof(bpf_insn)};
}

Result<PacketFilter> PacketFilter::of_program(std::span<const std::uint8_t> program) {
  PacketFilter filter;
  if (program.empty()) return filter;
  const Error unsound =
      usage_error("cannot use the filter", "it is no program that ends with each frame", "leave protochain out");
  if (program.size() % sizeof(bpf_insn) != 0) return unsound;
  std::vector<bpf_insn> instructions(program.size() / sizeof(bpf_insn));
  std::memcpy(instructions.data(), program.data(), program.size());
  if (!ends_with_each_frame(instructions)) return unsound;
  filter.program_ = {
      new bpf_program{.bf_len = static_cast<u_int>(instructions.size()), .bf_insns = new bpf_insn[instructions.size()]},
      [](const bpf_program* own) {
        delete[] own->bf_insns;
        delete own;
      }};
  std::ranges::copy(instructions, filter.program_->bf_insns);
  return filter;
}

bool PacketFilter::matches(const std::uint8_t* bytes, std::uint32_t length, std::uint32_t captured) const {
  return program_ == nullptr || bpf_filter(program_->bf_insns, bytes, length, captured) != 0;
}

}  // namespace warpline::capture
