// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "warpline/base/result.h"

namespace warpline::attach {

/// Returns what DPDK answered to `command`, out of its JSON, {"/command": ANSWER}; null if it is none.
[[nodiscard]] nlohmann::json answer_in(std::string_view text, std::string_view command);

/// A `TelemetryClient` asks a running process by its DPDK telemetry socket, which is in a folder that the process's
/// user alone may enter. One thread.
class TelemetryClient {
 public:
  /// Connects to the process that was started with `--telemetry name`. Environment error: there is none of this user.
  [[nodiscard]] static Result<TelemetryClient> connect(const std::string& name);
  /// Connects to the process of that number, whatever its name. Environment error: it has no such socket.
  [[nodiscard]] static Result<TelemetryClient> connect_to(std::uint32_t pid);
  TelemetryClient(TelemetryClient&& other) noexcept
      : folder_(std::move(other.folder_)),
        file_(std::exchange(other.file_, -1)),
        room_(other.room_),
        pid_(other.pid_),
        ended_(other.ended_) {}
  TelemetryClient& operator=(TelemetryClient&&) = delete;
  ~TelemetryClient();

  /// Returns the answer to a command such as "/warpline/metrics,NAME"; null if the process has none. Peer error: the
  /// process has ended, or does not answer for so long.
  [[nodiscard]] Result<nlohmann::json> ask(const std::string& command, std::chrono::seconds patience);

  /// Returns success as long as the process is there, else a peer error.
  [[nodiscard]] Result<void> look();
  [[nodiscard]] bool ended() const { return ended_; }                    ///< it was found that the process is gone
  [[nodiscard]] int pid() const { return pid_; }                         ///< of the process
  [[nodiscard]] std::string name() const { return folder_.filename(); }  ///< that the process was started with
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }  ///< that has the process's sockets

 private:
  TelemetryClient(std::filesystem::path folder, int file) : folder_(std::move(folder)), file_(file) {}
  /// Connects to the process whose sockets are in `folder`.
  [[nodiscard]] static Result<TelemetryClient> connect_in(const std::filesystem::path& folder);
  [[nodiscard]] Result<std::string> receive(std::chrono::seconds patience);
  [[nodiscard]] Error gone();

  std::filesystem::path folder_;
  int file_;
  std::size_t room_ = 16'384;  ///< bytes of the longest answer
  int pid_ = 0;
  bool ended_ = false;
};

}  // namespace warpline::attach
