// SPDX-License-Identifier: Apache-2.0
// Requests, for warpline.rpc.Server.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arrays/frame_array.h"
#include "arrays/held_array.h"
#include "errors.h"
#include "rpc/gpu_requests.h"
#include "rpc/host_thread.h"
#include "rpc/rpc.h"
#include "warpline/rpc/request_queue.h"

namespace nb = nanobind;

namespace warpline::python {
namespace {

/// Reads an address whose port may be 0, which is no port of a peer: the kernel chooses one.
SocketAddress address_of(const std::string& text) {
  if (!text.ends_with(":0")) return value_or_raise(parse_socket_address(text));
  SocketAddress address = value_or_raise(parse_socket_address(text.substr(0, text.size() - 1) + "1"));
  address.port = 0;
  return address;
}

/// Requests to one address. All of it but wait() is for the thread of one event loop; the host's thread never touches
/// Python. The GIL, or the object's lock where there is none, keeps others apart.
class RpcServer {
 public:
  RpcServer(const std::string& address, const RpcSettings& settings) : answers_(settings.under_way) {
    const SocketAddress local = address_of(address);
    rpc::MessageHost::Settings made = settings.of_host();
    made.local = local;
    thread_ = value_or_raise(HostThread::open(made, settings.key, settings.of_gpu()));
    queue_ = value_or_raise(rpc::RequestQueue::make(thread_->host(), settings.under_way));
    SocketAddress bound = local;
    bound.port = thread_->port();
    address_ = to_string(bound);
    check_or_raise(thread_->start(*queue_));
  }

  ~RpcServer() { close(); }

  /// Requests that have come, 64 at most: their place, method and bytes. Or the place of one that was withdrawn, -1 and
  /// nothing. Empty: the descriptor is readable when there is more.
  nb::list poll() {
    nb::list taken;
    if (queue_ && !polls_.polls()) polls_.run([&] { take_all(taken); }, [this] { close(); });
    return taken;
  }

  /// Answers with an array's bytes, and a status. Leaves with the next flush().
  void answer(std::uint32_t place, nb::handle answer, std::uint16_t status) {
    if (!queue_) return;
    HeldArray held(answer, "answer", false, thread_->arrays());
    const message::ConstBuffer bytes = message_of(held, "answer");
    if (bytes.length > message::kInlineBytes || bytes.device) {
      answers_[place] = std::move(held);  // until the queue says that it is sent
    }
    queue_->answer(place, bytes, status);
  }
  /// Gives a request back. Leaves with the next flush().
  void decline(std::uint32_t place) {
    if (queue_) queue_->decline(place);
  }
  void flush() {
    if (queue_) queue_->flush();
  }

  /// Takes no more sessions, and ends when all is answered, after so many seconds at most.
  void drain(double seconds) {
    if (thread_) thread_->host().drain(patience_of(seconds));
  }
  /// Waits until it has ended. Any thread, without the GIL, once, after drain().
  void wait() {
    const std::shared_ptr<HostThread> waited = thread_;  // which close() may let go of meanwhile
    const nb::gil_scoped_release without;
    if (waited) waited->wait();
  }
  void close() {
    if (!queue_ || !polls_.may_close()) return;
    {
      const nb::gil_scoped_release without;
      thread_->join();
      thread_->end();
    }
    queue_.reset();
    thread_.reset();
    answers_.clear();
  }

  void read_key_again() {
    if (thread_) check_or_raise(thread_->read_key_again());
  }

  [[nodiscard]] int descriptor() const { return queue_ ? queue_->descriptor() : -1; }
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  void take_all(nb::list& taken) {
    std::array<rpc::QueuedRequest, 64> requests;
    std::size_t count = 0;
    // What is told of answers alone is nothing to return.
    while (taken.size() == 0 && ((count = queue_->poll(requests)) != 0 || !queue_->arm())) {
      for (std::size_t i = 0; i < count; ++i) take(requests[i], taken);
    }
  }

  void take(const rpc::QueuedRequest& request, nb::list& taken) {
    switch (request.kind) {
      case rpc::QueuedRequest::Kind::request:
        taken.append(nb::make_tuple(request.place, static_cast<int>(request.code), array_of(request.data)));
        break;
      case rpc::QueuedRequest::Kind::withdrawn:
        taken.append(nb::make_tuple(request.place, -1, nb::none()));
        break;
      case rpc::QueuedRequest::Kind::sent:
        answers_[request.place].release();
        break;
    }
  }

  /// Bytes, or what a GPU has, which stays as long as somebody has the array.
  [[nodiscard]] nb::object array_of(const message::ConstBuffer& data) const {
    if (!data.device) return nb::bytes(data.length == 0 ? "" : reinterpret_cast<const char*>(data.data), data.length);
    auto held = std::make_shared<GpuRequests::Held>(thread_->gpu()->requests(), data.data);
    return nb::cast(FrameArray(std::move(held), thread_->arrays()->ordinal, const_cast<std::uint8_t*>(data.data),
                               data.length, kDlUint8));
  }

  std::shared_ptr<HostThread> thread_;
  std::unique_ptr<rpc::RequestQueue> queue_;
  std::vector<HeldArray> answers_;
  std::string address_;
  Polls polls_;
};

}  // namespace

void add_rpc_server(nb::module_& module) {
  nb::class_<RpcServer>(module, "RpcServer")
      .def(nb::init<const std::string&, const RpcSettings&>())
      .def("poll", &RpcServer::poll, nb::lock_self())
      .def("answer", &RpcServer::answer, nb::lock_self())
      .def("decline", &RpcServer::decline, nb::lock_self())
      .def("flush", &RpcServer::flush, nb::lock_self())
      .def("drain", &RpcServer::drain, nb::lock_self())
      .def("wait", &RpcServer::wait, nb::lock_self())
      .def("read_key_again", &RpcServer::read_key_again, nb::lock_self())
      .def("close", &RpcServer::close, nb::lock_self())
      .def_prop_ro("descriptor", &RpcServer::descriptor, nb::lock_self())
      .def_prop_ro("address", &RpcServer::address);
}

}  // namespace warpline::python
