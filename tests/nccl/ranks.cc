// SPDX-License-Identifier: Apache-2.0
#include "ranks.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>
#include <thread>

#include "nccl/stand_in_testing.h"
#include "nccl/wire.h"
#include "warpline/base/random.h"

namespace warpline::nccl {
namespace {

constexpr std::uint8_t kUntouched = 0xa5;
constexpr std::size_t kGuard = 64;

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

/// One receive and the transfer that goes there.
struct Plan {
  std::size_t bytes = 0;
  std::size_t room = 0;
  int tag = 0;
  std::uint64_t pattern = 0;
};
using GroupPlan = std::vector<Plan>;

/// The same for both ends.
std::vector<GroupPlan> make_plans(std::uint64_t seed, int groups, int max_group) {
  Random random(seed);
  constexpr std::array<std::size_t, 10> kSizes = {0, 1, 128, 129, 1000, 16'384, 65'536, 131'073, 700'001, 3'000'000};
  std::vector<GroupPlan> plans;
  for (int i = 0; i < groups; ++i) {
    GroupPlan group(1 + random.below(static_cast<std::uint64_t>(max_group)));
    for (Plan& plan : group) {
      const std::size_t most = kSizes[random.below(kSizes.size())];
      plan.bytes = random.below(4) == 0 ? random.below(most + 1) : most;
      plan.room = plan.bytes + (random.below(2) == 0 ? 0 : random.below(300'000));
      plan.tag = static_cast<int>(random.below(5));  // some of a group's are alike
      plan.pattern = random.next();
    }
    plans.push_back(std::move(group));
  }
  return plans;
}

void fill(std::vector<std::uint8_t>& bytes, std::uint64_t pattern) {
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::uint64_t)) {
    const std::uint64_t word = mix64(pattern + i / sizeof word);
    std::memcpy(bytes.data() + i, &word, std::min(sizeof word, bytes.size() - i));
  }
}

class Rank {
 public:
  explicit Rank(const RankArguments& arguments) : arguments_(arguments), random_(arguments.seed * 2 + arguments.rank) {
    net_ = NetStandIn::load(arguments.plugin.c_str(), arguments.version);
    expect(net_ != nullptr, "the plugin has this version");
    if (arguments.role == "refused") return;
    expect(net_->init() == Status::success, "init()");
    expect(net_->devices() >= 1, "there is a device");
    facts_ = net_->device(0);
    expect(facts_.pointer_support == kHostPointers, "host pointers");
  }

  void run() {
    const std::string& role = arguments_.role;
    if (role == "refused") {
      // As often as NCCL asks.
      for (int i = 0; i < 2; ++i) expect(net_->init() != Status::success, "an environment that makes no sense");
      return;
    }
    if (role == "wired") listening_ = 1;
    if (role == "fuse") listening_ = device_ = fused();
    if (role == "limits") check_limits();
    listen();
    if (role == "lie" && arguments_.rank == 0) lie();
    if (role == "lie") meet();
    connect();
    if (role == "die" || role == "stop") {
      watch_peer_end(role == "die" ? SIGKILL : SIGSTOP);
    } else if (role == "long") {
      send_too_much();
    } else if (role == "long early") {
      send_too_much_early();
    } else {
      exchange();
      meet();
    }
    close();
    expect(net_->finalize() == Status::success, "finalize()");
  }

 private:
  /// A send or receive under way, with its memory.
  struct Transfer {
    void* request = nullptr;
    std::vector<std::vector<std::uint8_t>> buffers;
    const GroupPlan* group = nullptr;  ///< of a receive
  };

  /// Over one device, or from one to another.
  [[nodiscard]] bool to_itself() const { return arguments_.role == "self" || arguments_.role == "wired"; }

  int fused() {
    int made = -1;
    expect(net_->fuse({0, 0}, &made) == Status::success, "fuse()");
    expect(made == net_->devices() - 1 && net_->device(made).members == 2, "a device of two");
    return made;
  }

  void check_limits() {
    int made = 0;
    expect(net_->fuse({}, &made) != Status::success, "no device of none");
    expect(net_->fuse({0, 1000}, &made) != Status::success, "no device of what is not there");
    std::array<std::uint8_t, kHandleBytes> handle{};
    void* comm = nullptr;
    expect(net_->listen(-1, handle.data(), &comm) != Status::success && comm == nullptr, "no device -1");
    expect(net_->listen(1000, handle.data(), &comm) != Status::success, "no device 1000");
  }

  void tell(const void* bytes, std::size_t length) const {
    expect(::send(arguments_.peer, bytes, length, MSG_NOSIGNAL) == static_cast<ssize_t>(length),
           "the other rank is there");
  }
  void hear(void* bytes, std::size_t length) const {
    expect(::recv(arguments_.peer, bytes, length, MSG_WAITALL) == static_cast<ssize_t>(length),
           "the other rank is there");
  }
  /// Both ranks are here.
  void meet() const {
    char byte = 0;
    tell(&byte, 1);
    hear(&byte, 1);
  }

  void listen() {
    std::array<std::uint8_t, kHandleBytes> handle{};
    expect(net_->listen(listening_, handle.data(), &listener_) == Status::success && listener_ != nullptr, "listen()");
    tell(handle.data(), handle.size());
    hear(handle_.data(), handle_.size());
    if (to_itself()) handle_ = handle;
  }

  void connect() {
    bool first = random_.below(2) == 0;
    while (sender_ == nullptr || receiver_ == nullptr) {
      if (first && sender_ == nullptr)
        expect(net_->connect(device_, handle_.data(), &sender_) == Status::success, "connect()");
      first = true;
      if (receiver_ == nullptr) expect(net_->accept(listener_, &receiver_) == Status::success, "accept()");
    }
    std::uint8_t byte = 0;
    void* memory = nullptr;
    expect(net_->register_memory(sender_, &byte, 1, 2, &memory) != Status::success, "no CUDA memory");
    expect(net_->register_memory(sender_, &byte, 1, kHostPointers, &memory) == Status::success, "regMr()");
    expect(net_->deregister_memory(sender_, memory) == Status::success, "deregMr()");
  }

  /// A transfer of everything both ways, as fast as the plugin takes it and one request more.
  void exchange() {
    // Versions differ in how they are called, not in what carries the transfers.
    const int groups = arguments_.version >= 11 ? 80 : 20;
    const std::uint64_t salt = arguments_.seed * 10;
    const auto out = make_plans(salt + static_cast<std::uint64_t>(arguments_.rank), groups, facts_.max_receives);
    const auto own = static_cast<std::uint64_t>(arguments_.rank);
    const std::uint64_t from = to_itself() ? own : 1 - own;
    const auto in = make_plans(salt + from, groups, facts_.max_receives);
    std::vector<const Plan*> to_send;
    for (const GroupPlan& group : out) {
      const std::size_t begin = to_send.size();
      for (const Plan& plan : group) to_send.push_back(&plan);
      keep_equal_tags_in_order(to_send, begin);
    }
    std::size_t next_send = 0;
    std::size_t next_receive = 0;
    while (next_send < to_send.size() || next_receive < in.size() || !sends_.empty() || !receives_.empty()) {
      const std::size_t posted = next_send + next_receive;
      const std::size_t in_flight = sends_.size() + receives_.size();
      const bool now = arguments_.role != "late" || random_.below(50) == 0;
      while (now && next_receive < in.size() && post(in[next_receive])) ++next_receive;
      while (next_send < to_send.size() && send(*to_send[next_send])) ++next_send;
      test_some(sends_);
      test_some(receives_);
      expect(receives_.size() <= static_cast<std::size_t>(kMaxRequests), "no more requests than there are");
      const bool idle = next_send + next_receive == posted && sends_.size() + receives_.size() == in_flight;
      if (idle) std::this_thread::yield();  // the other rank and the plugin's threads need a core
    }
  }

  /// Shuffles what is sent for a group, but for transfers with one tag.
  void keep_equal_tags_in_order(std::vector<const Plan*>& plans, std::size_t begin) {
    for (std::size_t i = begin; i + 1 < plans.size(); ++i) {
      if (plans[i]->tag != plans[i + 1]->tag && random_.below(2) == 0) std::swap(plans[i], plans[i + 1]);
    }
  }

  bool post(const GroupPlan& group) {
    Transfer transfer{.request = nullptr, .buffers = {}, .group = &group};
    std::vector<void*> data;
    std::vector<std::size_t> rooms;
    std::vector<int> tags;
    std::vector<void*> memory(group.size());
    for (const Plan& plan : group) {
      transfer.buffers.emplace_back(plan.room + kGuard, kUntouched);
      data.push_back(transfer.buffers.back().data());
      rooms.push_back(plan.room);
      tags.push_back(plan.tag);
    }
    const Status status = net_->receive(receiver_, static_cast<int>(group.size()), data.data(), rooms.data(),
                                        tags.data(), memory.data(), &transfer.request);
    expect(status == Status::success, "irecv()");
    if (transfer.request == nullptr) return false;
    receives_.push_back(std::move(transfer));
    return true;
  }

  bool send(const Plan& plan) {
    Transfer transfer;
    transfer.buffers.emplace_back(plan.bytes);
    fill(transfer.buffers.back(), plan.pattern);
    const Status status =
        net_->send(sender_, transfer.buffers.back().data(), plan.bytes, plan.tag, nullptr, &transfer.request);
    expect(status == Status::success, "isend()");
    if (transfer.request == nullptr) return false;
    sends_.push_back(std::move(transfer));
    return true;
  }

  void test_some(std::deque<Transfer>& transfers) {
    for (std::size_t i = 0; i < transfers.size();) {
      int done = -1;
      std::array<int, kMaxGroup> sizes;
      sizes.fill(-1);
      const bool ask = random_.below(4) != 0;
      if (ask) expect(net_->test(transfers[i].request, &done, sizes.data()) == Status::success, "test()");
      if (!ask || done == 0) {
        ++i;
        continue;
      }
      if (transfers[i].group != nullptr) verify(transfers[i], sizes);
      if (transfers[i].group == nullptr)
        expect(sizes[0] == static_cast<int>(transfers[i].buffers[0].size()), "size sent");
      transfers.erase(transfers.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  void verify(const Transfer& transfer, const std::array<int, kMaxGroup>& sizes) {
    for (std::size_t i = 0; i < transfer.group->size(); ++i) {
      const Plan& plan = (*transfer.group)[i];
      const std::vector<std::uint8_t>& buffer = transfer.buffers[i];
      expect(sizes[i] == static_cast<int>(plan.bytes), "size received");
      std::vector<std::uint8_t> wanted(plan.bytes);
      fill(wanted, plan.pattern);
      expect(std::equal(wanted.begin(), wanted.end(), buffer.begin()), "bytes as sent");
      const std::vector<std::uint8_t> untouched(buffer.size() - plan.bytes, kUntouched);
      expect(std::equal(untouched.begin(), untouched.end(), buffer.end() - std::ssize(untouched)),
             "nothing is written behind them");
    }
    void* request = this;
    expect(net_->flush(receiver_, 1, nullptr, nullptr, nullptr, &request) == Status::success && request == nullptr,
           "iflush()");
  }

  /// Rank 1 ends in the middle of transfers. Rank 0 goes on with what it can until it is told.
  void watch_peer_end(int signal) {
    const GroupPlan group(1, Plan{2'000'000, 2'000'000, 0, 7});
    const int most = arguments_.rank == 1 ? 5 : 1'000'000'000;
    Status status = Status::success;
    std::vector<std::uint8_t> bytes(group[0].bytes);
    std::vector<std::vector<std::uint8_t>> rooms(kMaxRequests, std::vector<std::uint8_t>(group[0].room));
    std::vector<void*> receives(kMaxRequests);
    void* sending = nullptr;
    for (int sent = 0; sent < most && status == Status::success;) {
      int done = 0;
      if (sending == nullptr) status = net_->send(sender_, bytes.data(), bytes.size(), 0, nullptr, &sending);
      if (status == Status::success && sending != nullptr) {
        status = net_->test(sending, &done, nullptr);
        if (done != 0) {
          sending = nullptr;
          ++sent;
        }
      }
      for (std::size_t i = 0; i < receives.size() && status == Status::success; ++i) {
        void* data = rooms[i].data();
        std::size_t room = rooms[i].size();
        int tag = 0;
        if (receives[i] == nullptr) {
          status = net_->receive(receiver_, 1, &data, &room, &tag, &data, &receives[i]);
        } else {
          status = net_->test(receives[i], &done, nullptr);
          if (done != 0) receives[i] = nullptr;
        }
      }
    }
    if (arguments_.rank == 1) {
      (void)::raise(signal);
      return;
    }
    expect(status == Status::remote_error, "the end of a peer is an error");
    // Each connection is told by itself, and stays so.
    expect(ends_with_error(sender_, bytes) && ends_with_error(sender_, bytes), "the end of a peer is one to senders");
    take_back(sender_, bytes);
    for (std::vector<std::uint8_t>& one : rooms) take_back(receiver_, one);
  }

  /// As NCCL does when it aborts: from here on nobody touches it, though the connection is not closed.
  void take_back(void* comm, std::vector<std::uint8_t>& bytes) {
    void* memory = nullptr;
    expect(net_->register_memory(comm, bytes.data(), bytes.size(), kHostPointers, &memory) == Status::success,
           "regMr()");
    expect(net_->deregister_memory(comm, memory) == Status::success, "deregMr()");
  }

  bool ends_with_error(void* sender, std::vector<std::uint8_t>& bytes) {
    Status status = Status::success;
    for (void* request = nullptr; status == Status::success;) {
      int done = 0;
      status = request == nullptr ? net_->send(sender, bytes.data(), bytes.size(), 0, nullptr, &request)
                                  : net_->test(request, &done, nullptr);
      if (done != 0) request = nullptr;
    }
    return status == Status::remote_error;
  }

  /// The receiver has less room than is sent.
  void send_too_much() {
    std::array<std::uint8_t, 64> bytes{};
    void* data = bytes.data();
    std::size_t room = 32;
    int tag = 3;
    void* request = nullptr;
    expect(net_->receive(receiver_, 0, &data, &room, &tag, &data, &request) != Status::success, "no group of none");
    expect(net_->receive(receiver_, kMaxGroup + 1, &data, &room, &tag, &data, &request) != Status::success,
           "none of nine");
    expect(net_->receive(receiver_, 1, &data, &room, &tag, &data, &request) == Status::success && request != nullptr,
           "irecv()");
    Status status = Status::success;
    while (status == Status::success) {
      status = net_->send(sender_, bytes.data(), bytes.size(), 3, nullptr, &request);
      expect(status != Status::success || request == nullptr, "what does not fit is not sent");
    }
    expect(status == Status::invalid_usage, "it is the user's mistake");
    meet();
  }

  /// The same, and the sender knows of the room when all has left.
  void send_too_much_early() {
    std::array<std::uint8_t, 64> bytes{};
    void* sending = nullptr;
    expect(net_->send(sender_, bytes.data(), bytes.size(), 3, nullptr, &sending) == Status::success, "isend()");
    expect(sending != nullptr, "it goes early");
    meet();
    void* data = bytes.data();
    std::size_t room = 32;
    int tag = 3;
    void* receiving = nullptr;
    expect(net_->receive(receiver_, 1, &data, &room, &tag, &data, &receiving) == Status::success, "irecv()");
    int done = 0;
    Status status = Status::success;
    while (status == Status::success) {
      status = net_->test(receiving, &done, nullptr);
      expect(done == 0, "what does not fit is not received");
    }
    expect(status == Status::remote_error, "it is an error to the receiver");
    expect(ends_with_error(sender_, rest_), "and to the sender");
    meet();
  }

  /// Handles that nobody wrote, and strangers at the peer's ports.
  void lie() {
    for (int i = 0; i < 200; ++i) {
      std::array<std::uint8_t, kHandleBytes> garbage;
      for (std::uint8_t& byte : garbage) byte = static_cast<std::uint8_t>(random_.next());
      void* comm = this;
      expect(net_->connect(0, garbage.data(), &comm) != Status::success && comm == nullptr, "garbage is no handle");
    }
    auto told = read_handle(handle_);
    expect(told.has_value(), "the peer's is one");
    throw_garbage(*told);
    Handle wrong = *told;
    wrong.secret[5] ^= 1U;
    expect_refused(wrong);
    wrong = *told;
    wrong.listener += 7;
    expect_refused(wrong);
    wrong = *told;
    wrong.ports.fill(9);  // discard, where nobody listens
    expect_refused(wrong);
  }

  void expect_refused(const Handle& wrong) {
    std::array<std::uint8_t, kHandleBytes> handle;
    write_handle(wrong, handle);
    void* comm = nullptr;
    Status status = Status::success;
    while (status == Status::success) {
      status = net_->connect(0, handle.data(), &comm);
      expect(comm == nullptr, "who does not know the secret is not let in");
    }
    expect(status == Status::remote_error, "and is told so");
  }

  void throw_garbage(const Handle& at) {
    const int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
    expect(socket >= 0, "a socket");
    for (int i = 0; i < 5000; ++i) {
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_port = htons(at.ports[random_.below(at.lanes)]);
      to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      std::array<std::uint8_t, 300> bytes;
      for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random_.next());
      if (random_.below(2) == 0) bytes[0] = 0x57;
      bytes[1] = static_cast<std::uint8_t>(0x20 | random_.below(6));
      (void)::sendto(socket, bytes.data(), random_.below(bytes.size()), 0, reinterpret_cast<const sockaddr*>(&to),
                     sizeof to);
    }
    ::close(socket);
  }

  /// In any order.
  void close() {
    std::array<int, 3> order = {0, 1, 2};
    for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random_.below(i + 1)]);
    for (const int one : order) {
      if (one == 0) expect(net_->close_send(sender_) == Status::success, "closeSend()");
      if (one == 1) expect(net_->close_receive(receiver_) == Status::success, "closeRecv()");
      if (one == 2) expect(net_->close_listen(listener_) == Status::success, "closeListen()");
    }
  }

  RankArguments arguments_;
  Random random_;
  std::unique_ptr<NetStandIn> net_;
  NetStandIn::Device facts_;
  int device_ = 0;     ///< that it connects by
  int listening_ = 0;  ///< and is reached at
  void* listener_ = nullptr;
  void* sender_ = nullptr;
  void* receiver_ = nullptr;
  std::array<std::uint8_t, kHandleBytes> handle_{};
  std::vector<std::uint8_t> rest_ = std::vector<std::uint8_t>(64);
  std::deque<Transfer> sends_;
  std::deque<Transfer> receives_;
};

}  // namespace

int run_rank(const RankArguments& arguments) {
  try {
    Rank(arguments).run();
    return 0;
  } catch (const std::exception& error) {
    (void)std::fprintf(stderr, "rank %d: not so: %s\n", arguments.rank, error.what());
    return 1;
  }
}

}  // namespace warpline::nccl
