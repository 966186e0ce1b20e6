// SPDX-License-Identifier: Apache-2.0
#include "warpline/daemon/attachment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

// Constants of newer kernel headers (asm-generic/socket.h).
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace warpline::daemon {
namespace {

using client::AreaCompletion;
using client::AreaLayout;
using client::Operation;
using client::Submission;

Error refused_by_system(std::string_view what) {
  return environment_error(fmt::format("memory of a client: {}", what), std::generic_category().message(errno),
                           "free some memory, or lower --client-calls, --client-requests or --client-message");
}

}  // namespace

std::string_view name(Misdeed misdeed) {
  switch (misdeed) {
    case Misdeed::none:
      return "none";
    case Misdeed::bad_ring:
      return "bad_ring";
    case Misdeed::bad_descriptor:
      return "bad_descriptor";
  }
  return "unknown";
}

Attachment::Attachment(const ClientLimits& limits, const ClientCredentials& credentials, int socket)
    : calls(limits.calls),
      requests(limits.requests),
      sessions(limits.sessions),
      waiting(limits.requests),
      facts_(area_facts(limits)),
      layout_(AreaLayout::of(facts_)),
      credentials_(credentials),
      socket_(socket),
      kept_(limits.calls + 2 * limits.sessions + 2 * limits.requests) {
  free_requests.reserve(limits.requests);
  for (std::uint32_t i = limits.requests; i != 0; --i) free_requests.push_back(i - 1);
}

Result<std::unique_ptr<Attachment>> Attachment::make(const ClientLimits& limits, const ClientCredentials& credentials,
                                                     int socket) {
  std::unique_ptr<Attachment> made(new Attachment(limits, credentials, socket));
  WARPLINE_CHECK(made->map());
  made->watch_process();
  return made;
}

/// A child of the client's process has the socket, too, so that its end does not say that the client has ended.
void Attachment::watch_process() {
  socklen_t length = sizeof process_;
  if (::getsockopt(socket_, SOL_SOCKET, SO_PEERPIDFD, &process_, &length) == 0) return;  // since Linux 6.5
  process_ = credentials_.process > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, credentials_.process, 0)) : -1;
}

Attachment::~Attachment() {
  if (area_ != nullptr) ::munmap(area_, layout_.bytes);
  if (staging_ != nullptr) ::munmap(staging_, layout_.bytes);
  if (memory_ >= 0) ::close(memory_);
  if (process_ >= 0) ::close(process_);
  if (socket_ >= 0) ::close(socket_);
}

/// The area is sealed before anybody else has it: what the daemon maps stays there, whatever the client does.
Result<void> Attachment::map() {
  memory_ = ::memfd_create("warpline-client", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory_ < 0) return refused_by_system("memfd_create");
  if (::ftruncate(memory_, static_cast<off_t>(layout_.bytes)) != 0) return refused_by_system("ftruncate");
  if (::fcntl(memory_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return refused_by_system("F_ADD_SEALS");
  void* const shared = ::mmap(nullptr, layout_.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, 0);
  if (shared == MAP_FAILED) return refused_by_system("mmap");
  area_ = static_cast<std::uint8_t*>(shared);
  void* const own =
      ::mmap(nullptr, layout_.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (own == MAP_FAILED) return refused_by_system("mmap");
  staging_ = static_cast<std::uint8_t*>(own);
  std::memcpy(area_, &facts_, sizeof(facts_));
  indices_ = reinterpret_cast<client::AreaIndices*>(area_ + AreaLayout::kIndices);
  return {};
}

bool Attachment::welcome() {
  const client::Welcome welcome;
  iovec part{const_cast<client::Welcome*>(&welcome), sizeof(welcome)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(head), &memory_, sizeof(int));
  const bool sent = ::sendmsg(socket_, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(welcome);
  ::close(memory_);
  memory_ = -1;
  return sent;
}

std::optional<std::uint32_t> Attachment::unread() const {
  const std::uint32_t unread = completion_tail_ - client::load_acquire(indices_->completion_head);
  if (unread > facts_.completions) return std::nullopt;
  return unread;
}

bool Attachment::has_submissions() const {
  if (misdeed_ != Misdeed::none || client::load_acquire(indices_->submission_tail) == submission_head_) return false;
  const std::optional<std::uint32_t> completions = unread();
  return !completions || *completions + kept_ < facts_.completions;
}

std::optional<Submission> Attachment::take() {
  if (misdeed_ != Misdeed::none) return std::nullopt;
  const std::uint32_t there = client::load_acquire(indices_->submission_tail) - submission_head_;
  if (there == 0) return std::nullopt;
  const std::optional<std::uint32_t> completions = unread();
  if (there > facts_.submissions || !completions) {
    misdeed_ = Misdeed::bad_ring;
    return std::nullopt;
  }
  // A submission brings one completion at once, or belongs to what is kept room for.
  if (*completions + kept_ >= facts_.completions) return std::nullopt;
  const std::uint64_t place = submission_head_++ & (facts_.submissions - 1);
  told_ = false;
  const auto submission = client::copy_once<Submission>(area_ + layout_.submissions + place * sizeof(Submission));
  if (in_bounds(submission)) return submission;
  misdeed_ = Misdeed::bad_descriptor;
  return std::nullopt;
}

/// Whether it names something that there is, and in a state in which an honest client may name it.
bool Attachment::in_bounds(const Submission& submission) const {
  const bool session = submission.session < facts_.sessions;
  switch (submission.operation) {
    case Operation::connect:
      return session && !sessions[submission.session].open && submission.port != 0;
    case Operation::close:
      return session;
    case Operation::request:
    case Operation::send:
      return session && submission.slot < facts_.calls && !calls[submission.slot].busy &&
             submission.length <= facts_.message_bytes;
    case Operation::cancel:
      return submission.slot < facts_.calls;
    case Operation::listen:
      return submission.length != 0 && submission.code + std::uint64_t{submission.length} <= 0x10000;
    case Operation::answer:
      return submission.slot < facts_.requests && submission.length <= facts_.message_bytes &&
             requests[submission.slot].state == Request::State::with_client && !requests[submission.slot].one_way;
    case Operation::release:
      return submission.slot < facts_.requests && requests[submission.slot].state == Request::State::with_client;
  }
  return false;
}

void Attachment::publish(const AreaCompletion& completion) {
  const std::optional<std::uint32_t> completions = unread();
  if (!completions || *completions == facts_.completions) {  // an index went back
    misdeed_ = Misdeed::bad_ring;
    return;
  }
  const std::uint64_t place = completion_tail_++ & (facts_.completions - 1);
  std::memcpy(area_ + layout_.completions + place * sizeof(AreaCompletion), &completion, sizeof(completion));
  told_ = false;
  wakes_ = true;
}

void Attachment::notify() {
  if (told_) return;
  told_ = true;
  const std::uint32_t told_before = std::exchange(told_head_, submission_head_);
  client::store_release(indices_->submission_head, submission_head_);
  client::store_release(indices_->completion_tail, completion_tail_);
  // A client that saw its ring full waits for the places of it. This fence is between the two indices as its own is:
  // either it has seen the new one, or its entry is seen here.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (client::load_acquire(indices_->submission_tail) - told_before >= facts_.submissions) wakes_ = true;
  if (!std::exchange(wakes_, false) || !client::take_sleep(indices_->client_sleeps)) return;
  // Where the socket takes no more bytes, there are some that wake it.
  const char byte = 0;
  (void)::send(socket_, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void Attachment::set_sleeping(bool sleeps) { client::store_release(indices_->daemon_sleeps, sleeps ? 1 : 0); }

void Attachment::tell_end(client::AreaEnd end) {
  client::store_release(indices_->ended, static_cast<std::uint32_t>(end));
  told_ = false;
  wakes_ = true;
  notify();
}

bool Attachment::read_socket() {
  char bytes[64];
  // One that writes for ever is read a little at a time; the next look comes soon.
  for (int i = 0; i < 16; ++i) {
    const ssize_t got = ::recv(socket_, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got > 0) continue;
    if (got == 0) return false;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  }
  return true;
}

message::ConstBuffer Attachment::stage_call(std::uint32_t slot, std::uint32_t length) {
  std::uint8_t* const own = staging(slot);
  std::memcpy(own, area_ + layout_.room(slot, false), length);
  return {own, length};
}

message::ConstBuffer Attachment::stage_answer(std::uint32_t slot, std::uint32_t length) {
  const std::uint64_t room = std::uint64_t{facts_.calls} + slot;
  std::memcpy(staging(room), area_ + layout_.room(room, true), length);
  return staged_answer(slot, length);
}

message::ConstBuffer Attachment::staged_answer(std::uint32_t slot, std::uint32_t length) const {
  return {staging_ + (std::uint64_t{facts_.calls} + slot) * layout_.room_bytes, length};
}

message::MutableBuffer Attachment::response_room(std::uint32_t slot) {
  return {area_ + layout_.room(slot, true), facts_.message_bytes};
}

void Attachment::deliver(std::uint32_t slot, std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return;
  std::memcpy(area_ + layout_.room(std::uint64_t{facts_.calls} + slot, false), bytes.data(), bytes.size());
}

}  // namespace warpline::daemon
