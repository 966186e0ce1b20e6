// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "warpline/client/client.h"

namespace warpline::client {

/// A client of `message daemon` for C++: client.h says what the calls do and return. One thread at a time.
class DaemonClient {
 public:
  DaemonClient() = default;
  ~DaemonClient() { warpline_client_detach(client_); }  ///< detaches, if attached
  DaemonClient(const DaemonClient&) = delete;
  DaemonClient& operator=(const DaemonClient&) = delete;
  DaemonClient(DaemonClient&& other) noexcept : client_(std::exchange(other.client_, nullptr)) {}  ///< takes its place
  /// Detaches, and takes the other's place.
  DaemonClient& operator=(DaemonClient&& other) noexcept {
    std::swap(client_, other.client_);
    return *this;
  }

  /// Attaches to the daemon at `path`; before all other calls.
  [[nodiscard]] int attach(const char* path) {
    warpline_client_detach(std::exchange(client_, nullptr));
    return warpline_client_attach(path, &client_);
  }
  [[nodiscard]] warpline_client_limits limits() const { return warpline_client_get_limits(client_); }  ///< granted

  /// What connect() returns.
  struct Session {
    int code = WARPLINE_CLIENT_OK;  ///< of client.h
    std::uint32_t number = 0;       ///< meaningful if OK
  };
  /// Opens a session.
  [[nodiscard]] Session connect(const char* peer, std::uint64_t tag = 0, bool ordered = false) {
    Session session;
    session.code = warpline_client_connect(client_, peer, ordered ? 1 : 0, tag, &session.number);
    return session;
  }
  int close(std::uint32_t session) { return warpline_client_close(client_, session); }  ///< ends a session

  /// What request() and send() return.
  struct Call {
    int code = WARPLINE_CLIENT_OK;  ///< of client.h
    std::uint64_t id = 0;           ///< meaningful if OK
  };
  /// The priority of calls that begin from now on.
  [[nodiscard]] int set_priority(int priority) { return warpline_client_set_priority(client_, priority); }
  /// Asks. `patience` in nanoseconds; 0: as long as it takes.
  [[nodiscard]] Call request(std::uint32_t session, std::uint16_t code, std::span<const std::byte> bytes,
                             std::uint64_t tag = 0, std::int64_t patience = 0) {
    Call call;
    call.code = warpline_client_request(client_, session, code, bytes.data(), bytes.size(), patience, tag, &call.id);
    return call;
  }
  /// Sends one way.
  [[nodiscard]] Call send(std::uint32_t session, std::uint16_t code, std::span<const std::byte> bytes,
                          std::uint64_t tag = 0) {
    Call call;
    call.code = warpline_client_send(client_, session, code, bytes.data(), bytes.size(), tag, &call.id);
    return call;
  }
  int cancel(std::uint64_t call) { return warpline_client_cancel(client_, call); }  ///< ends a call early

  /// Takes what has one of these codes.
  [[nodiscard]] int listen(std::uint16_t first, std::uint32_t codes = 1, std::uint64_t tag = 0) {
    return warpline_client_listen(client_, first, codes, tag);
  }
  /// Answers a request.
  [[nodiscard]] int answer(std::uint64_t request, std::span<const std::byte> bytes, std::uint16_t code = 0) {
    return warpline_client_answer(client_, request, code, bytes.data(), bytes.size());
  }
  int decline(std::uint64_t request) { return warpline_client_decline(client_, request); }  ///< gives it back

  /// Fills `events` from the front; returns how many, or a negative code.
  [[nodiscard]] int poll(std::span<warpline_client_event> events) {
    return warpline_client_poll(client_, events.data(), events.size());
  }
  int wait(std::int64_t timeout = -1) { return warpline_client_wait(client_, timeout); }  ///< sleeps; nanoseconds
  [[nodiscard]] int descriptor() const { return warpline_client_descriptor(client_); }    ///< for loops of one's own
  [[nodiscard]] bool arm() { return warpline_client_arm(client_) == 1; }  ///< before each sleep on descriptor()

  /// The bytes of an event.
  [[nodiscard]] static std::span<const std::byte> bytes(const warpline_client_event& event) {
    return {static_cast<const std::byte*>(event.data), event.data == nullptr ? 0 : event.length};
  }
  /// The same as text.
  [[nodiscard]] static std::string_view text(const warpline_client_event& event) {
    return {static_cast<const char*>(event.data), event.data == nullptr ? 0 : event.length};
  }

 private:
  warpline_client* client_ = nullptr;
};

}  // namespace warpline::client
