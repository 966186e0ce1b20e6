// SPDX-License-Identifier: Apache-2.0
#include "exporter/metrics_endpoint.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <event2/util.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warpline/metrics/exposition.h"

namespace warpline::exporter {
namespace {

constexpr int kBacklog = 16;
constexpr int kPatienceSeconds = 5;         ///< with a scraper that says, or takes, nothing
constexpr ssize_t kMostHeaderBytes = 8192;  ///< also of a body, which nothing reads
/// Methods that libevent hands over; it answers all others with 501.
constexpr ev_uint16_t kMethods = EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST | EVHTTP_REQ_PUT |
                                 EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE | EVHTTP_REQ_PATCH;

/// A descriptor that is closed unless it is taken.
class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Descriptor(Descriptor&& other) noexcept : descriptor_(other.take()) {}
  Descriptor& operator=(Descriptor&&) = delete;
  [[nodiscard]] int get() const { return descriptor_; }
  int take() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

Error cannot_listen(const std::string& where, int number, const std::string& fix) {
  return environment_error("cannot answer scrapes at " + where, std::strerror(number), fix);
}

Result<Descriptor> listen_on(const SocketAddress& address) {
  const std::string where = to_string(address);
  const std::string fix = "choose another --metrics address, of this machine";
  const bool v6 = std::holds_alternative<Ipv6Address>(address.address);
  Descriptor socket(::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return cannot_listen(where, errno, fix);
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in6 six{};
  sockaddr_in four{};
  if (v6) {
    setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(address.port);
    six.sin6_scope_id = address.scope;
    std::memcpy(&six.sin6_addr, std::get<Ipv6Address>(address.address).bytes.data(), sizeof six.sin6_addr);
  } else {
    four.sin_family = AF_INET;
    four.sin_port = htons(address.port);
    std::memcpy(&four.sin_addr, std::get<Ipv4Address>(address.address).bytes.data(), sizeof four.sin_addr);
  }
  const auto* const name = v6 ? reinterpret_cast<const sockaddr*>(&six) : reinterpret_cast<const sockaddr*>(&four);
  if (bind(socket.get(), name, v6 ? sizeof six : sizeof four) != 0 || listen(socket.get(), kBacklog) != 0) {
    return cannot_listen(where, errno, fix);
  }
  return socket;
}

/// True if a process listens there.
bool is_answered(const sockaddr_un& name) {
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0 || errno == EAGAIN;
}

Result<Descriptor> listen_at(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof name.sun_path) {
    return usage_error("cannot answer scrapes at " + path, "the path of a socket has 107 bytes at most",
                       "choose a shorter --metrics path");
  }
  path.copy(name.sun_path, path.size());
  struct stat there{};
  if (lstat(path.c_str(), &there) == 0) {
    if (!S_ISSOCK(there.st_mode) || is_answered(name)) {
      return environment_error("cannot answer scrapes at " + path,
                               S_ISSOCK(there.st_mode) ? "another process does" : "it is something else than a socket",
                               "choose another --metrics path, or end that process");
    }
    unlink(path.c_str());  // of a process that was killed
  }
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const mode_t before = umask(0177);
  const bool bound = bind(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
  const int number = errno;
  umask(before);
  if (!bound) return cannot_listen(path, number, "choose a --metrics path in a folder that exists and is writable");
  if (listen(socket.get(), kBacklog) != 0) return cannot_listen(path, errno, "try again");
  return socket;
}

bool contains(const InterfaceAddress& network, const IpAddress& address) {
  if (network.address.index() != address.index()) return false;
  return std::visit(
      [&](const auto& bytes) {
        const auto& own = std::get<std::remove_cvref_t<decltype(bytes)>>(network.address).bytes;
        for (unsigned bit = 0; bit < network.prefix_length; ++bit) {
          const unsigned mask = 0x80U >> (bit % 8);
          if (((own[bit / 8] ^ bytes.bytes[bit / 8]) & mask) != 0) return false;
        }
        return true;
      },
      address);
}

}  // namespace

bool may_scrape(const IpAddress& address, const std::vector<InterfaceAddress>& networks) {
  static const std::vector<InterfaceAddress> own = {
      {Ipv4Address{{127, 0, 0, 0}}, 8}, {Ipv6Address{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}, 128}};
  const auto holds = [&](const InterfaceAddress& network) { return contains(network, address); };
  return std::ranges::any_of(own, holds) || std::ranges::any_of(networks, holds);
}

struct MetricsEndpoint::State {
  ExporterSettings settings;
  Take take;
  event_base* base = nullptr;
  evhttp* http = nullptr;
  std::uint64_t answered = 0;
  std::uint64_t refused = 0;

  ~State() {
    if (http != nullptr) evhttp_free(http);
    if (base != nullptr) event_base_free(base);
    if (const auto* const path = std::get_if<std::string>(&settings.listen)) unlink(path->c_str());
  }

  [[nodiscard]] bool allows(evhttp_request* request) {
    if (std::holds_alternative<std::string>(settings.listen)) return true;
    char* text = nullptr;
    std::uint16_t port = 0;
    evhttp_connection_get_peer(evhttp_request_get_connection(request), &text, &port);
    const std::string peer = text == nullptr ? "" : text;
    const Result<IpAddress> address = parse_ip(peer.substr(0, peer.find('%')));
    if (address.ok() && may_scrape(*address, settings.allowed)) return true;
    if (refused++ == 0) {
      spdlog::warn(
          "a scrape of the metrics from {} was refused: it may not read them; add its network to --metrics-allow",
          peer);
    }
    return false;
  }

  void answer(evhttp_request* request) {
    if (!allows(request)) return reply(request, 403, "Forbidden", "this address may not read metrics\n");
    const std::vector<std::string_view> hosts = values_of(request, "Host");
    // RFC 9112, 3.2
    if (hosts.size() > 1 || (hosts.empty() && request->major == 1 && request->minor > 0)) {
      return reply(request, HTTP_BADREQUEST, "Bad Request", "a request has one Host header\n");
    }
    const char* const path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
    if (path == nullptr || std::string_view(path) != "/metrics") {
      return reply(request, HTTP_NOTFOUND, "Not Found", "metrics are at /metrics\n");
    }
    evkeyvalq* const headers = evhttp_request_get_output_headers(request);
    const evhttp_cmd_type method = evhttp_request_get_command(request);
    if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD) {
      evhttp_add_header(headers, "Allow", "GET, HEAD");
      return reply(request, HTTP_BADMETHOD, "Method Not Allowed", "metrics are read with GET or HEAD\n");
    }
    const metrics::Exposition exposition =
        metrics::wanted_by(fmt::format("{}", fmt::join(values_of(request, "Accept"), ",")));
    ++answered;
    metrics::Snapshot snapshot = take();
    snapshot.counter("warpline_scrapes", "", "Requests for metrics, by result")
        .with(answered, {{"result", "answered"}})
        .with(refused, {{"result", "refused"}});
    evhttp_add_header(headers, "Vary", "Accept");
    reply(request, HTTP_OK, "OK", metrics::write(snapshot, exposition), metrics::content_type(exposition));
  }

  /// Returns the values of a header, which may be there more than once (RFC 9110, 5.2).
  static std::vector<std::string_view> values_of(evhttp_request* request, const char* name) {
    std::vector<std::string_view> values;
    const evkeyvalq* const headers = evhttp_request_get_input_headers(request);
    for (const evkeyval* header = headers->tqh_first; header != nullptr; header = header->next.tqe_next) {
      if (evutil_ascii_strcasecmp(header->key, name) == 0) values.emplace_back(header->value);
    }
    return values;
  }

  /// Replies; a HEAD request gets the header that GET would, and no body (RFC 9110, 9.3.2).
  static void reply(evhttp_request* request, int code, const char* reason, const std::string& body,
                    std::string_view type = "text/plain; charset=utf-8") {
    evkeyvalq* const headers = evhttp_request_get_output_headers(request);
    evhttp_add_header(headers, "Content-Type", std::string(type).c_str());
    evhttp_add_header(headers, "Content-Length", fmt::to_string(body.size()).c_str());
    if (evhttp_request_get_command(request) != EVHTTP_REQ_HEAD) {
      evbuffer_add(evhttp_request_get_output_buffer(request), body.data(), body.size());
    }
    evhttp_send_reply(request, code, reason, nullptr);
  }
};

Result<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::open(const ExporterSettings& settings, Take take) {
  const auto* const address = std::get_if<SocketAddress>(&settings.listen);
  WARPLINE_TRY(Descriptor socket,
               address != nullptr ? listen_on(*address) : listen_at(std::get<std::string>(settings.listen)));
  auto state = std::make_unique<State>();
  state->settings = settings;
  state->take = std::move(take);
  state->base = event_base_new();
  state->http = state->base == nullptr ? nullptr : evhttp_new(state->base);
  if (state->http == nullptr || evhttp_accept_socket(state->http, socket.get()) != 0) {
    return environment_error("cannot answer scrapes", "libevent does not start", "free some memory");
  }
  socket.take();                                    // libevent closes it
  event_set_log_callback([](int, const char*) {});  // what a scraper does wrong is told to it alone
  evhttp_set_allowed_methods(state->http, kMethods);
  evhttp_set_max_headers_size(state->http, kMostHeaderBytes);
  evhttp_set_max_body_size(state->http, kMostHeaderBytes);
  evhttp_set_timeout(state->http, kPatienceSeconds);
  evhttp_set_gencb(
      state->http, [](evhttp_request* request, void* self) { static_cast<State*>(self)->answer(request); },
      state.get());
  return std::unique_ptr<MetricsEndpoint>(new MetricsEndpoint(std::move(state)));
}

MetricsEndpoint::MetricsEndpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}

MetricsEndpoint::~MetricsEndpoint() = default;

void MetricsEndpoint::allow(std::vector<InterfaceAddress> networks) { state_->settings.allowed = std::move(networks); }

void MetricsEndpoint::poll() { event_base_loop(state_->base, EVLOOP_NONBLOCK); }

}  // namespace warpline::exporter
