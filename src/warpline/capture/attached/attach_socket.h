// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "warpline/base/result.h"
#include "warpline/capture/attached/attach_messages.h"

namespace warpline::capture {

/// An AttachSocket is one end of the connection between a running process and one that captures its packets, or where
/// the process is waited for. No call waits but connect() and wait(). One thread.
class AttachSocket {
 public:
  /// Listens at `path`, where only this user may come; what is left there of a process that was killed is replaced.
  /// Environment error: it cannot be.
  [[nodiscard]] static Result<AttachSocket> listen(const std::string& path);
  /// Connects to the process that listens at `path`. Environment error: there is none of this user.
  [[nodiscard]] static Result<AttachSocket> connect(const std::string& path);
  AttachSocket(AttachSocket&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  AttachSocket& operator=(AttachSocket&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~AttachSocket();

  /// Returns a connection, if somebody has come to where this listens.
  [[nodiscard]] std::optional<AttachSocket> accept() const;

  /// Sends a message, and with it a descriptor if there is one. False: the other is gone, or does not take it.
  [[nodiscard]] bool send(std::span<const std::uint8_t> bytes, int descriptor = -1) const;
  /// Sends nothing any more, which the other sees.
  void end_sending() const;

  /// What receive() found.
  struct Received {
    bool ended = false;                  ///< the other sends nothing any more, or is gone
    std::optional<AttachBytes> bytes{};  ///< a message
    int descriptor = -1;                 ///< that came with it, to be closed
  };
  [[nodiscard]] Received receive() const;

  /// Waits until there is something to receive, but for so long at most.
  void wait(int milliseconds) const;

 private:
  explicit AttachSocket(int file) : file_(file) {}
  int file_;
};

}  // namespace warpline::capture
