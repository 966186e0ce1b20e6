// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/streams/stream_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

namespace warpline::service {
namespace {

constexpr std::chrono::microseconds kNap{100};  ///< the lcore makes no system call that could wake the thread
constexpr std::uint32_t kOtherFiles = 256;      ///< that a program with DPDK has open beside these
constexpr std::uint32_t kOrdersOfConnection = StreamWriter::kPieces + 2;
constexpr std::uint64_t kMostNames = 1'000'000;  ///< that are tried for one connection

std::string reason(int error) { return std::generic_category().message(error); }

/// What helps against it.
std::string remedy(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "make room there, or name another folder by --output";
    case EMFILE:
    case ENFILE:
      return "use fewer --connections, or raise `ulimit -n`";
    default:
      return "see that the folder stays there and can be written to, or name another by --output";
  }
}

/// Has the system let the program open a file for each of so many connections.
Result<void> allow_files(std::uint64_t connections) {
  rlimit limit{};
  const rlim_t wanted = connections + kOtherFiles;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return {};
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  if (limit.rlim_cur == wanted && setrlimit(RLIMIT_NOFILE, &limit) == 0) return {};
  return environment_error(fmt::format("cannot write the files of {} connections", connections),
                           fmt::format("{} files may be open at once", limit.rlim_max),
                           "use fewer --connections, or raise `ulimit -Hn`");
}

Result<void> make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && access(folder.c_str(), W_OK | X_OK) != 0) error = {errno, std::generic_category()};
  if (!error) return {};
  return environment_error(fmt::format("cannot write to '{}'", folder), error.message(),
                           "name a folder that can be written to");
}

}  // namespace

Result<std::unique_ptr<StreamWriter>> StreamWriter::start(const std::string& folder, std::uint32_t connections,
                                                          std::uint32_t writers, std::unique_ptr<RingReader> reader) {
  WARPLINE_CHECK(make_folder(folder));
  WARPLINE_CHECK(allow_files(std::uint64_t{connections} * writers));
  std::unique_ptr<StreamWriter> writer(new StreamWriter(folder, connections, std::move(reader)));
  writer->thread_ = std::thread([running = writer.get()] { running->run(); });
  return writer;
}

StreamWriter::StreamWriter(std::string folder, std::uint32_t connections, std::unique_ptr<RingReader> reader)
    : folder_(std::move(folder)),
      reader_(std::move(reader)),
      ends_(connections),
      handles_(connections, -1),
      orders_(connections * kOrdersOfConnection),
      answers_(connections * kOrdersOfConnection) {}

void StreamWriter::begin(std::uint32_t connection, const SocketAddress& peer, const SocketAddress& local) {
  ends_[connection] = {peer, local};
  orders_.push({Order::Kind::begin, connection, 0, nullptr});
}

void StreamWriter::write(std::uint32_t connection, std::span<const std::uint8_t> bytes) {
  orders_.push({Order::Kind::write, connection, static_cast<std::uint32_t>(bytes.size()), bytes.data()});
}

void StreamWriter::end(std::uint32_t connection) { orders_.push({Order::Kind::end, connection, 0, nullptr}); }

void StreamWriter::stop() {
  stop_.store(true, std::memory_order_release);
  if (thread_.joinable()) thread_.join();
}

void StreamWriter::run() {
  while (true) {
    const bool last = stop_.load(std::memory_order_acquire);
    Order order;
    bool worked = false;
    bool goes_on = true;
    while (goes_on && orders_.pop(order)) {
      worked = true;
      goes_on = !abandoned_.load(std::memory_order_relaxed) && carry_out(order);
    }
    if (last || !goes_on) break;
    if (!worked) std::this_thread::sleep_for(kNap);
  }
  for (const int handle : handles_) {
    if (handle >= 0) close(handle);
  }
}

bool StreamWriter::carry_out(const Order& order) {
  switch (order.kind) {
    case Order::Kind::begin:
      return open_file(order.connection);
    case Order::Kind::write:
      if (!write_all(order)) return false;
      return answers_.push({order.connection, order.length, false});
    case Order::Kind::end:
      if (!close_file(order.connection)) return false;
      return answers_.push({order.connection, 0, true});
  }
  return true;
}

bool StreamWriter::open_file(std::uint32_t connection) {
  const auto& [peer, local] = ends_[connection];
  const std::string name =
      fmt::format("{}_{}-{}_{}", to_string(peer.address), peer.port, to_string(local.address), local.port);
  for (std::uint64_t i = 1; i <= kMostNames; ++i) {
    const std::string path = i == 1 ? fmt::format("{}/{}", folder_, name) : fmt::format("{}/{}-{}", folder_, name, i);
    const int handle = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (handle >= 0) {
      handles_[connection] = handle;
      files_.add(1);
      return true;
    }
    if (errno != EEXIST) return fail(name, errno);
  }
  return fail(name, EEXIST);
}

bool StreamWriter::write_all(const Order& order) {
  const int handle = handles_[order.connection];
  const std::span<const std::uint8_t> bytes(order.bytes, order.length);
  if (!reader_) return write_to(handle, bytes);
  if (reader_->read(bytes, [&](std::span<const std::uint8_t> piece) { return write_to(handle, piece); })) return true;
  if (reader_->failure()) {
    failure_ = reader_->failure();
    failed_.store(true, std::memory_order_release);
  }
  return false;
}

bool StreamWriter::write_to(int handle, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(handle, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail("the bytes of a connection", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    bytes_.add(static_cast<std::uint64_t>(written));
  }
  return true;
}

bool StreamWriter::close_file(std::uint32_t connection) {
  return close(std::exchange(handles_[connection], -1)) == 0 || fail("the bytes of a connection", errno);
}

bool StreamWriter::fail(const std::string& what, int error) {
  failure_ = environment_error(fmt::format("cannot write {} to '{}'", what, folder_), reason(error), remedy(error));
  failed_.store(true, std::memory_order_release);
  return false;
}

}  // namespace warpline::service
