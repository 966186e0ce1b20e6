// SPDX-License-Identifier: Apache-2.0
#include "warpline/client/client.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>

#include "warpline/client/area.h"

// C++ without its library: memory is malloc's, so that a C program links nothing but libc.

namespace warpline::client {
namespace {

constexpr std::uint32_t kPollsBetweenLooks = 1024;  ///< at the socket, while nothing comes
constexpr time_t kAttachPatience = 10;              ///< seconds that the daemon may take to answer
constexpr std::int64_t kSecond = 1'000'000'000;     ///< in nanoseconds

/// A room of the client's calls or of peers' requests.
struct Room {
  std::uint32_t generation;
  bool busy;
};

struct Connection {
  int socket;
  std::uint8_t* area;
  AreaFacts facts;
  AreaLayout layout;
  AreaIndices* indices;
  std::uint32_t submission_tail;
  std::uint32_t completion_head;
  std::uint8_t call_flags;  ///< of calls that begin
  bool armed;
  bool hung_up;
  std::uint32_t empty_polls;
  Room* calls;
  std::uint32_t* free_calls;
  std::uint32_t free_call_count;
  Room* requests;
  bool* sessions;
  std::uint32_t* held;  ///< calls whose responses the last poll has handed out
  std::uint32_t held_count;
  std::uint32_t* releases;  ///< rooms of messages that are to be given back
  std::uint32_t release_count;
  std::uint32_t releasable;  ///< of these, those that were handed out by the poll before
};

Connection& of(warpline_client* client) { return *reinterpret_cast<Connection*>(client); }
const Connection& of(const warpline_client* client) { return *reinterpret_cast<const Connection*>(client); }

std::uint64_t id_of(const Room* rooms, std::uint32_t slot) {
  return std::uint64_t{rooms[slot].generation} << 32 | slot;
}
/// False for an id whose call or request has ended, or never was.
bool is_busy(const Room* rooms, std::uint32_t count, std::uint64_t id) {
  const auto slot = static_cast<std::uint32_t>(id);
  return slot < count && rooms[slot].busy && rooms[slot].generation == id >> 32;
}

std::int64_t monotonic_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

/// Wakes the daemon if it sleeps. The fence in take_sleep(), and the daemon's between its flag and its look at the
/// rings, keep both from missing each other (as in J. Dekker's algorithm).
void ring_the_bell(Connection& to) {
  if (!take_sleep(to.indices->daemon_sleeps)) return;
  const char byte = 0;
  (void)::send(to.socket, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool has_room(const Connection& in) {
  return in.submission_tail - load_acquire(in.indices->submission_head) < in.facts.submissions;
}

void write(Connection& to, const Submission& submission) {
  const std::uint32_t place = to.submission_tail & (to.facts.submissions - 1);
  std::memcpy(to.area + to.layout.submissions + std::uint64_t{place} * sizeof(Submission), &submission,
              sizeof(submission));
  store_release(to.indices->submission_tail, ++to.submission_tail);
}

int submit(Connection& to, const Submission& submission) {
  if (!has_room(to)) return WARPLINE_CLIENT_AGAIN;
  write(to, submission);
  ring_the_bell(to);
  return WARPLINE_CLIENT_OK;
}

std::uint8_t* call_room(const Connection& in, std::uint32_t slot, bool back) {
  return in.area + in.layout.room(slot, back);
}
std::uint8_t* request_room(const Connection& in, std::uint32_t slot, bool back) {
  return in.area + in.layout.room(std::uint64_t{in.facts.calls} + slot, back);
}

int begin_call(Connection& from, Submission submission, const void* data, std::size_t length, std::uint64_t* call) {
  if (submission.session >= from.facts.sessions || !from.sessions[submission.session]) return WARPLINE_CLIENT_BAD;
  if (length > from.facts.message_bytes) return WARPLINE_CLIENT_TOO_LONG;
  if (from.free_call_count == 0 || !has_room(from)) return WARPLINE_CLIENT_AGAIN;
  const std::uint32_t slot = from.free_calls[--from.free_call_count];
  from.calls[slot].busy = true;
  if (length != 0) std::memcpy(call_room(from, slot, false), data, length);
  submission.flags = from.call_flags;
  submission.slot = slot;
  submission.length = static_cast<std::uint32_t>(length);
  write(from, submission);
  ring_the_bell(from);
  if (call != nullptr) *call = id_of(from.calls, slot);
  return WARPLINE_CLIENT_OK;
}

/// From now on the call's id means nothing.
void end_call(Connection& of, std::uint32_t slot) {
  of.calls[slot].busy = false;
  ++of.calls[slot].generation;
}

void free_held(Connection& of) {
  for (std::uint32_t i = 0; i < of.held_count; ++i) of.free_calls[of.free_call_count++] = of.held[i];
  of.held_count = 0;
}

/// Gives back rooms of messages, as far as there are places in the ring; the rest at the next poll.
void give_back(Connection& of) {
  std::uint32_t given = 0;
  while (given < of.releasable && has_room(of)) {
    Submission submission;
    submission.operation = Operation::release;
    submission.slot = of.releases[given++];
    write(of, submission);
  }
  if (given == 0) return;
  of.release_count -= given;
  of.releasable -= given;
  std::memmove(of.releases, of.releases + given, of.release_count * sizeof(*of.releases));
  ring_the_bell(of);
}

/// What the daemon tells is right, but for one that is broken: what would be out of bounds is left out.
bool translate(Connection& in, const AreaCompletion& from, warpline_client_event& to) {
  to = {};
  to.kind = static_cast<std::uint32_t>(from.kind);
  to.status = from.status;
  to.reach = from.reach;
  to.reason = from.reason;
  to.session = from.session;
  to.length = from.length;
  to.tag = from.tag;
  to.code = from.code;
  to.port = from.port;
  std::memcpy(to.address, from.address, sizeof(to.address));
  switch (from.kind) {
    case CompletionKind::connected:
    case CompletionKind::lost:
      if (from.session >= in.facts.sessions) return false;
      if (from.kind == CompletionKind::lost) in.sessions[from.session] = false;
      return true;
    case CompletionKind::response:
    case CompletionKind::sent:
      if (from.slot >= in.facts.calls || !in.calls[from.slot].busy) return false;
      to.id = id_of(in.calls, from.slot);
      if (from.status == WARPLINE_CLIENT_STATUS_OK && from.kind == CompletionKind::response)
        to.data = call_room(in, from.slot, true);
      end_call(in, from.slot);
      in.held[in.held_count++] = from.slot;
      return true;
    case CompletionKind::request:
    case CompletionKind::message:
      if (from.slot >= in.facts.requests || from.length > in.facts.message_bytes) return false;
      to.data = request_room(in, from.slot, false);
      if (from.kind == CompletionKind::message) {
        if (in.release_count == in.facts.requests) return false;
        in.releases[in.release_count++] = from.slot;
        return true;
      }
      in.requests[from.slot].busy = true;
      ++in.requests[from.slot].generation;
      to.id = id_of(in.requests, from.slot);
      to.time_left = from.time_left;
      return true;
    case CompletionKind::withdrawn:
      if (from.slot >= in.facts.requests || !in.requests[from.slot].busy) return false;
      to.id = id_of(in.requests, from.slot);
      return true;
    case CompletionKind::listening:
      return true;
  }
  return false;
}

/// Reads what has woken the client, and sees whether the daemon is there.
void look_at_socket(Connection& of) {
  char bytes[64];
  for (;;) {
    const ssize_t got = ::recv(of.socket, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got > 0 || (got < 0 && errno == EINTR)) continue;
    if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) of.hung_up = true;
    return;
  }
}

void end_sleep(Connection& of) {
  if (!of.armed) return;
  of.armed = false;
  store_release(of.indices->client_sleeps, 0);
  look_at_socket(of);
}

/// Whether the daemon reads this client no more, for whatever reason.
bool has_ended(const Connection& of) { return of.hung_up || load_acquire(of.indices->ended) != 0; }

bool parse_number(const char* text, std::uint16_t& number) {
  std::uint32_t value = 0;
  if (*text == '\0') return false;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9') return false;
    value = value * 10 + static_cast<std::uint32_t>(*text - '0');
    if (value > 0xffff) return false;
  }
  number = static_cast<std::uint16_t>(value);
  return value != 0;
}

bool parse_peer(const char* text, Submission& to) {
  char host[INET6_ADDRSTRLEN + IF_NAMESIZE + 1];
  const char* const colon = std::strrchr(text, ':');
  if (colon == nullptr || !parse_number(colon + 1, to.port)) return false;
  const bool v6 = *text == '[';
  if (v6 && (colon == text || colon[-1] != ']')) return false;
  const char* const begin = v6 ? text + 1 : text;
  const std::ptrdiff_t length = (v6 ? colon - 1 : colon) - begin;
  if (length <= 0 || length >= static_cast<std::ptrdiff_t>(sizeof(host))) return false;
  std::memcpy(host, begin, static_cast<std::size_t>(length));
  host[length] = '\0';
  if (!v6) {
    to.address[10] = to.address[11] = 0xff;
    return ::inet_pton(AF_INET, host, to.address + 12) == 1;
  }
  if (char* const scope = std::strchr(host, '%'); scope != nullptr) {
    *scope = '\0';
    to.scope = ::if_nametoindex(scope + 1);
    if (to.scope == 0) return false;
  }
  return ::inet_pton(AF_INET6, host, to.address) == 1;
}

/// The daemon's first message, and the area's descriptor. A code, or OK.
int receive_welcome(int socket, int& area) {
  Welcome welcome;
  iovec part{&welcome, sizeof(welcome)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t got;
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return WARPLINE_CLIENT_SYSTEM;
  const cmsghdr* const head = CMSG_FIRSTHDR(&message);
  if (head != nullptr && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
      head->cmsg_len == CMSG_LEN(sizeof(int))) {
    std::memcpy(&area, CMSG_DATA(head), sizeof(int));
  }
  if (got == 0) return WARPLINE_CLIENT_GONE;
  if (got != sizeof(welcome) || welcome.magic != kAreaMagic || welcome.version != kAreaVersion)
    return WARPLINE_CLIENT_VERSION;
  switch (welcome.status) {
    case Welcome::welcome:
      return area < 0 ? WARPLINE_CLIENT_VERSION : WARPLINE_CLIENT_OK;
    case Welcome::not_allowed:
      return WARPLINE_CLIENT_NOT_ALLOWED;
    case Welcome::full:
      return WARPLINE_CLIENT_FULL;
    default:
      errno = ENOMEM;
      return WARPLINE_CLIENT_SYSTEM;
  }
}

bool makes_sense(const AreaFacts& facts, std::uint64_t size) {
  return facts.magic == kAreaMagic && facts.version == kAreaVersion && std::has_single_bit(facts.submissions) &&
         std::has_single_bit(facts.completions) && AreaLayout::of(facts).bytes == size;
}

template <typename T>
bool allocate(T*& array, std::uint32_t count) {
  array = static_cast<T*>(std::calloc(count, sizeof(T)));
  return array != nullptr || count == 0;
}

int map_area(Connection& to, int area) {
  struct stat facts{};
  if (::fstat(area, &facts) != 0) return WARPLINE_CLIENT_SYSTEM;
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  if (size < AreaLayout::kRings) return WARPLINE_CLIENT_VERSION;
  void* const mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, area, 0);
  if (mapped == MAP_FAILED) return WARPLINE_CLIENT_SYSTEM;
  to.area = static_cast<std::uint8_t*>(mapped);
  to.layout.bytes = size;  // for the end, whatever is there
  AreaFacts told;
  std::memcpy(&told, to.area, sizeof(told));
  if (!makes_sense(told, size)) return WARPLINE_CLIENT_VERSION;
  to.facts = told;
  to.layout = AreaLayout::of(told);
  to.indices = reinterpret_cast<AreaIndices*>(to.area + AreaLayout::kIndices);
  if (!allocate(to.calls, told.calls) || !allocate(to.free_calls, told.calls) || !allocate(to.held, told.calls) ||
      !allocate(to.requests, told.requests) || !allocate(to.releases, told.requests) ||
      !allocate(to.sessions, told.sessions)) {
    errno = ENOMEM;
    return WARPLINE_CLIENT_SYSTEM;
  }
  for (std::uint32_t i = 0; i < told.calls; ++i) to.free_calls[to.free_call_count++] = told.calls - 1 - i;
  return WARPLINE_CLIENT_OK;
}

int attach(Connection& to, const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::strlen(path);
  if (length >= sizeof(address.sun_path)) return WARPLINE_CLIENT_BAD;
  std::memcpy(address.sun_path, path, length);
  to.socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (to.socket < 0) return WARPLINE_CLIENT_SYSTEM;
  const timeval patience{kAttachPatience, 0};
  (void)::setsockopt(to.socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  (void)::setsockopt(to.socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  if (::connect(to.socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    if (errno == EACCES || errno == EPERM) return WARPLINE_CLIENT_NOT_ALLOWED;
    return errno == ECONNREFUSED || errno == ENOENT ? WARPLINE_CLIENT_NOBODY : WARPLINE_CLIENT_SYSTEM;
  }
  int area = -1;
  int code = receive_welcome(to.socket, area);
  if (code == WARPLINE_CLIENT_OK) code = map_area(to, area);
  const int why = errno;
  if (area >= 0) ::close(area);
  errno = why;
  return code;
}

void detach(Connection& from) {
  if (from.area != nullptr) ::munmap(from.area, from.layout.bytes);
  if (from.socket >= 0) ::close(from.socket);
  std::free(from.calls);
  std::free(from.free_calls);
  std::free(from.held);
  std::free(from.requests);
  std::free(from.releases);
  std::free(from.sessions);
  std::free(&from);
}

}  // namespace
}  // namespace warpline::client

using namespace warpline::client;

int warpline_client_attach(const char* path, warpline_client** client) {
  *client = nullptr;
  auto* const made = static_cast<Connection*>(std::calloc(1, sizeof(Connection)));
  if (made == nullptr) return WARPLINE_CLIENT_SYSTEM;
  made->socket = -1;
  const int code = attach(*made, path);
  if (code == WARPLINE_CLIENT_OK) {
    *client = reinterpret_cast<warpline_client*>(made);
    return code;
  }
  const int why = errno;
  detach(*made);
  errno = why;
  return code;
}

void warpline_client_detach(warpline_client* client) {
  if (client != nullptr) detach(of(client));
}

warpline_client_limits warpline_client_get_limits(const warpline_client* client) {
  const AreaFacts& facts = of(client).facts;
  return {facts.calls, facts.requests, facts.sessions, facts.message_bytes};
}

int warpline_client_connect(warpline_client* client, const char* peer, int ordered, uint64_t tag, uint32_t* session) {
  Connection& from = of(client);
  Submission submission;
  submission.operation = Operation::connect;
  submission.flags = ordered != 0 ? kOrderedFlag : std::uint8_t{0};
  submission.tag = tag;
  if (!parse_peer(peer, submission)) return WARPLINE_CLIENT_BAD;
  while (submission.session < from.facts.sessions && from.sessions[submission.session]) ++submission.session;
  if (submission.session == from.facts.sessions) return WARPLINE_CLIENT_AGAIN;
  const int code = submit(from, submission);
  if (code != WARPLINE_CLIENT_OK) return code;
  from.sessions[submission.session] = true;
  *session = submission.session;
  return code;
}

int warpline_client_close(warpline_client* client, uint32_t session) {
  Connection& from = of(client);
  if (session >= from.facts.sessions || !from.sessions[session]) return WARPLINE_CLIENT_BAD;
  Submission submission;
  submission.operation = Operation::close;
  submission.session = session;
  return submit(from, submission);
}

int warpline_client_request(warpline_client* client, uint32_t session, uint16_t code, const void* data, size_t length,
                            int64_t patience, uint64_t tag, uint64_t* call) {
  Submission submission;
  submission.operation = Operation::request;
  submission.session = session;
  submission.code = code;
  submission.patience = patience;
  submission.tag = tag;
  return begin_call(of(client), submission, data, length, call);
}

int warpline_client_send(warpline_client* client, uint32_t session, uint16_t code, const void* data, size_t length,
                         uint64_t tag, uint64_t* call) {
  Submission submission;
  submission.operation = Operation::send;
  submission.session = session;
  submission.code = code;
  submission.tag = tag;
  return begin_call(of(client), submission, data, length, call);
}

int warpline_client_set_priority(warpline_client* client, int priority) {
  if (priority != WARPLINE_CLIENT_NORMAL && priority != WARPLINE_CLIENT_HIGH) return WARPLINE_CLIENT_BAD;
  of(client).call_flags = priority == WARPLINE_CLIENT_HIGH ? kHighFlag : std::uint8_t{0};
  return WARPLINE_CLIENT_OK;
}

int warpline_client_cancel(warpline_client* client, uint64_t call) {
  Connection& from = of(client);
  if (!is_busy(from.calls, from.facts.calls, call)) return WARPLINE_CLIENT_BAD;
  Submission submission;
  submission.operation = Operation::cancel;
  submission.slot = static_cast<std::uint32_t>(call);
  return submit(from, submission);
}

int warpline_client_listen(warpline_client* client, uint16_t first, uint32_t codes, uint64_t tag) {
  if (codes == 0 || first + std::uint64_t{codes} > 0x10000) return WARPLINE_CLIENT_BAD;
  Submission submission;
  submission.operation = Operation::listen;
  submission.code = first;
  submission.length = codes;
  submission.tag = tag;
  return submit(of(client), submission);
}

int warpline_client_answer(warpline_client* client, uint64_t request, uint16_t code, const void* data, size_t length) {
  Connection& from = of(client);
  if (!is_busy(from.requests, from.facts.requests, request)) return WARPLINE_CLIENT_BAD;
  if (length > from.facts.message_bytes) return WARPLINE_CLIENT_TOO_LONG;
  if (!has_room(from)) return WARPLINE_CLIENT_AGAIN;
  Submission submission;
  submission.operation = Operation::answer;
  submission.slot = static_cast<std::uint32_t>(request);
  submission.code = code;
  submission.length = static_cast<std::uint32_t>(length);
  if (length != 0) std::memmove(request_room(from, submission.slot, true), data, length);
  from.requests[submission.slot].busy = false;
  return submit(from, submission);
}

int warpline_client_decline(warpline_client* client, uint64_t request) {
  Connection& from = of(client);
  if (!is_busy(from.requests, from.facts.requests, request)) return WARPLINE_CLIENT_BAD;
  Submission submission;
  submission.operation = Operation::release;
  submission.slot = static_cast<std::uint32_t>(request);
  const int code = submit(from, submission);
  if (code == WARPLINE_CLIENT_OK) from.requests[submission.slot].busy = false;
  return code;
}

int warpline_client_poll(warpline_client* client, warpline_client_event* events, size_t most) {
  Connection& from = of(client);
  end_sleep(from);
  free_held(from);
  from.releasable = from.release_count;
  give_back(from);
  std::uint32_t left = load_acquire(from.indices->completion_tail) - from.completion_head;
  if (left == 0) {
    if (++from.empty_polls % kPollsBetweenLooks == 0) look_at_socket(from);
    if (!has_ended(from)) return 0;
    // What it wrote before the end is there by now.
    left = load_acquire(from.indices->completion_tail) - from.completion_head;
    if (left == 0) {
      const bool expelled = load_acquire(from.indices->ended) == static_cast<std::uint32_t>(AreaEnd::expelled);
      return expelled ? WARPLINE_CLIENT_EXPELLED : WARPLINE_CLIENT_GONE;
    }
  }
  left = std::min(left, from.facts.completions);
  std::size_t count = 0;
  const std::uint32_t mask = from.facts.completions - 1;
  for (; left != 0 && count < most; --left) {
    const std::uint64_t place = std::uint64_t{from.completion_head++ & mask} * sizeof(AreaCompletion);
    const auto completion = copy_once<AreaCompletion>(from.area + from.layout.completions + place);
    if (translate(from, completion, events[count])) ++count;
  }
  store_release(from.indices->completion_head, from.completion_head);
  // The daemon takes no submissions while the ring of completions has no room for what they may bring.
  if (from.submission_tail != load_acquire(from.indices->submission_head)) ring_the_bell(from);
  return static_cast<int>(std::min<std::size_t>(count, 0x7fffffff));
}

int warpline_client_descriptor(const warpline_client* client) { return of(client).socket; }

int warpline_client_arm(warpline_client* client) {
  Connection& from = of(client);
  // Rooms that the next poll gives back may be what the caller, or the daemon, waits for.
  const auto something = [&] {
    return load_acquire(from.indices->completion_tail) != from.completion_head || has_ended(from) ||
           from.held_count != 0 || from.release_count != 0;
  };
  if (something()) return 0;
  from.armed = true;
  store_release(from.indices->client_sleeps, 1);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!something()) return 1;
  end_sleep(from);
  return 0;
}

int warpline_client_wait(warpline_client* client, int64_t timeout) {
  Connection& from = of(client);
  const std::int64_t begun = timeout < 0 ? 0 : monotonic_now();
  for (;;) {
    if (warpline_client_arm(client) == 0) return 1;
    const std::int64_t left = timeout < 0 ? 0 : std::max<std::int64_t>(timeout - (monotonic_now() - begun), 0);
    const timespec until{left / kSecond, left % kSecond};
    pollfd watched{from.socket, POLLIN, 0};
    const int woken = ::ppoll(&watched, 1, timeout < 0 ? nullptr : &until, nullptr);
    end_sleep(from);
    if (load_acquire(from.indices->completion_tail) != from.completion_head || has_ended(from)) return 1;
    if (woken <= 0) return 0;  // else by a byte that came late: it was there for what was polled since
  }
}

const char* warpline_client_error(int code) {
  static const char* const texts[] = {
      "done",
      "all places are taken",
      "the daemon has ended",
      "an argument makes no sense",
      "too long",
      "nobody listens there",
      "this user may not attach",
      "the daemon takes no more clients",
      "no daemon of this version listens there",
      "the system refused it",
      "the daemon has expelled this client",
  };
  const bool known = code <= 0 && -static_cast<std::int64_t>(code) < static_cast<std::int64_t>(std::size(texts));
  return known ? texts[-code] : "no such code";
}

const char* warpline_client_reason(uint32_t reason) {
  static const char* const texts[] = {
      "none",      "silent",        "restarted", "closed",       "closed_here", "no_answer",
      "peer_full", "wrong_version", "stalled",   "not_accepted", "going_away",  "unreachable",
  };
  return reason < std::size(texts) ? texts[reason] : "no such reason";
}
