// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/spsc_ring.h"
#include "warpline/base/statistics/counter.h"
#include "warpline/daemon/attachment.h"
#include "warpline/daemon/settings.h"

namespace warpline::daemon {

/// What became of processes that wanted to attach. Written by the door's thread, read by any.
struct DoorCounters {
  Counter attached;
  Counter detached;             ///< of these, gone again
  Counter refused_user;         ///< not among DaemonSettings::users
  Counter refused_full;         ///< DaemonSettings::clients or clients_per_user are there
  Counter refused_memory;       ///< no memory for an area
  Counter refused_descriptors;  ///< the process had no descriptor left
};

/// What one client did, for reports.
struct ClientRecord {
  ClientCredentials credentials;
  Nanos attached_at{};
  bool present = false;
  Misdeed expelled_for = Misdeed::none;
  std::uint64_t submitted = 0, turned_away = 0, sent = 0, sessions_opened = 0;
  std::uint64_t delivered = 0, answered = 0, declined = 0, overflowed = 0;
  std::uint64_t bytes_out = 0, bytes_in = 0;
  std::array<std::uint64_t, 6> completed{};

  /// As of now.
  [[nodiscard]] static ClientRecord of(const Attachment& client, bool present);
  void add(const ClientRecord& other);  ///< counters only
};

/// Lets clients in: listens on the Unix socket, asks the kernel who comes, makes their memory. On a thread of its own,
/// so that none of that holds up messages; clients then belong to the endpoint's thread, until it gives them back here
/// to be destroyed.
class Door {
 public:
  /// Makes the socket, in the place of one that nobody listens at any more. Environment error: somebody does, or the
  /// system refuses. `wake` is called when somebody has come, by the door's thread.
  [[nodiscard]] static Result<std::unique_ptr<Door>> open(const DaemonSettings& settings, std::function<void()> wake);
  ~Door();  ///< no client is the endpoint's thread's any more; removes the socket
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  void close();  ///< takes nobody from now on, and the socket's name is free; any thread

  // By the endpoint's thread.
  [[nodiscard]] bool arrived(Attachment*& client);  ///< false: nobody has come
  void give_back(Attachment* client);               ///< destroys it soon

  // By any thread.
  [[nodiscard]] const DoorCounters& counters() const { return counters_; }
  /// Those that are there, after the last kMostPast that were.
  [[nodiscard]] std::vector<ClientRecord> records() const;
  [[nodiscard]] ClientRecord total() const;  ///< of all that ever were

 private:
  static constexpr std::size_t kMostPast = 256;

  Door(const DaemonSettings& settings, std::function<void()> wake);
  Result<void> listen();
  void run();
  void let_in();
  void look_at(int socket);
  void refuse(int socket, client::Welcome::Status status, Counter& counter);
  void accept_without_descriptors();
  void bury();
  void remove_name();

  DaemonSettings settings_;
  std::function<void()> wake_;
  int listener_ = -1;
  int wake_descriptor_ = -1;
  int reserve_ = -1;  ///< given up for a moment to tell who comes that there are no descriptors
  dev_t device_ = 0;  ///< of the socket's file
  ino_t inode_ = 0;
  std::atomic<bool> closed_{false};
  std::atomic<bool> stop_{false};
  SpscRing<Attachment*> arrivals_;
  SpscRing<Attachment*> departures_;
  DoorCounters counters_;
  mutable std::mutex mutex_;  ///< of what follows
  std::vector<std::unique_ptr<Attachment>> present_;
  std::deque<ClientRecord> past_;
  ClientRecord past_total_;
  std::thread thread_;
};

}  // namespace warpline::daemon
