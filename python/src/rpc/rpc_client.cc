// SPDX-License-Identifier: Apache-2.0
// Calls, for warpline.rpc.Client.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "arrays/held_array.h"
#include "errors.h"
#include "rpc/host_thread.h"
#include "rpc/rpc.h"
#include "warpline/gpu/memory/copy_batch.h"
#include "warpline/rpc/call_rows.h"
#include "warpline/rpc/loop_calls.h"

namespace nb = nanobind;

namespace warpline::python {
namespace {

/// Calls to one server. All of it is for the thread of one event loop; the host's thread never touches Python. The GIL,
/// or the object's lock where there is none, keeps others apart.
class RpcClient {
 public:
  RpcClient(const std::string& server, const RpcSettings& settings) {
    const SocketAddress address = value_or_raise(parse_socket_address(server));
    rpc::MessageHost::Settings made = settings.of_host();
    made.local.address =
        std::holds_alternative<Ipv4Address>(address.address) ? IpAddress(Ipv4Address{}) : IpAddress(Ipv6Address{});
    made.calls = settings.under_way + rpc::LoopCalls::kRows;
    made.endpoint.accept = false;
    made.endpoint.max_sessions = 1;
    thread_ = value_or_raise(HostThread::open(made, settings.key, settings.of_gpu()));
    calls_ = value_or_raise(rpc::LoopCalls::make(thread_->host(), address, settings.under_way));
    set_error_ = nb::module_::import_("warpline.errors").attr("of_call");
    check_or_raise(thread_->start(*calls_));
  }

  ~RpcClient() { close(); }

  /// Makes a call, which leaves with the next flush(); returns its place.
  std::uint32_t call(std::uint16_t method, nb::handle request, nb::handle into, std::optional<double> timeout,
                     bool high) {
    Held held;
    rpc::LoopCalls& calls = open();
    held.request = HeldArray(request, "request", false, thread_->arrays());
    if (!into.is_none()) {
      held.response = HeldArray(into, "into", true, thread_->arrays());
      held.into = true;
    }
    rpc::Call call{.message = message_of(held.request, "request"), .code = method};
    if (held.into) {
      call.response = {held.response.bytes().data(), length_of(held.response.bytes().size(), "into"),
                       held.response.on_gpu()};
      // An empty one has room for an empty response alone.
      if (call.response.data == nullptr) call.response.data = &nothing_;
    }
    call.priority = high ? message::Priority::high : message::Priority::normal;
    if (timeout) call.patience = patience_of(*timeout);
    const std::uint32_t place = calls.add(call);
    if (call.message.length <= message::kInlineBytes && !call.message.device) held.request.release();
    keep(place, std::move(held));
    return place;
  }

  /// Makes a call of each row of an array, of whose responses `into` has a row each.
  std::uint32_t call_many(std::uint16_t method, nb::handle requests, nb::handle into, nb::handle lengths,
                          std::optional<double> timeout, bool high) {
    rpc::LoopCalls& calls = open();
    auto rows = std::make_unique<HeldRows>();
    rows->requests = HeldArray(requests, "requests", false, thread_->arrays());
    rows->responses = HeldArray(into, "into", true, thread_->arrays());
    rows->lengths = HeldArray(lengths, "lengths", true);
    const std::size_t count = rows->requests.rows();
    if (rows->requests.dimensions() < 2 || rows->responses.dimensions() < 2 || count == 0 ||
        rows->responses.rows() != count || rows->lengths.bytes().size() != count * sizeof(std::uint32_t))
      throw nb::value_error(
          "call_many: `into` is an array of at least two dimensions, with a row for each of `requests`");
    rows->rows.emplace(
        rpc::CallRows::Setup{.requests = rows->requests.bytes().data(),
                             .request_bytes = length_of(rows->requests.bytes().size() / count, "a request"),
                             .requests_on_gpu = rows->requests.on_gpu(),
                             .responses = rows->responses.bytes().data(),
                             .response_bytes = length_of(rows->responses.bytes().size() / count, "a response"),
                             .responses_on_gpu = rows->responses.on_gpu(),
                             .lengths = reinterpret_cast<std::uint32_t*>(rows->lengths.bytes().data()),
                             .rows = length_of(count, "requests"),
                             .at_once = rpc::LoopCalls::kRows,
                             .code = method,
                             .priority = high ? message::Priority::high : message::Priority::normal,
                             .patience = timeout ? patience_of(*timeout) : message::kNever});
    const std::uint32_t place = calls.add(*rows->rows);
    Held held;
    held.rows = std::move(rows);
    keep(place, std::move(held));
    return place;
  }

  /// How many rows an array has, and the bytes of each.
  nb::tuple shape_of_rows(nb::handle requests) {
    (void)open();
    const HeldArray array(requests, "requests", false, thread_->arrays());
    if (array.dimensions() < 2 || array.rows() == 0)
      throw nb::value_error("requests: an array of at least two dimensions, a row for each request, and at least one");
    return nb::make_tuple(array.rows(), array.bytes().size() / array.rows());
  }

  /// Has all calls that were made leave, as far as there is room.
  void flush() {
    if (calls_) calls_->flush();
  }
  /// Has a call end soon; its place stays taken until then.
  void cancel(std::uint32_t place) {
    if (calls_) calls_->cancel(place);
  }
  [[nodiscard]] std::size_t under_way() const { return calls_ ? calls_->under_way() : 0; }
  [[nodiscard]] int descriptor() { return open().descriptor(); }

  /// Sets the futures of all calls that have ended; `futures` has them at their places.
  void poll(nb::list futures) {
    if (!calls_ || polls_.polls()) return;
    polls_.run([&] { resolve_all(futures); }, [this] { close(); });
  }

  void read_key_again() {
    (void)open();
    check_or_raise(thread_->read_key_again());
  }

  /// Ends the session and the thread. Futures that are not set never will be.
  void close() {
    if (!calls_ || !polls_.may_close()) return;
    {
      const nb::gil_scoped_release without;
      thread_->join();
      thread_->end();
    }
    calls_.reset();
    thread_.reset();
    held_.clear();
  }

 private:
  /// The arrays of calls in rows.
  struct HeldRows {
    HeldArray requests, responses, lengths;
    std::optional<rpc::CallRows> rows;
  };
  /// What a call needs until it has ended.
  struct Held {
    HeldArray request, response;
    bool into = false;
    std::unique_ptr<HeldRows> rows;
  };

  rpc::LoopCalls& open() {
    if (!calls_) throw nb::value_error("the client is closed");
    return *calls_;
  }

  void keep(std::uint32_t place, Held held) {
    while (held_.size() <= place) held_.emplace_back();
    held_[place] = std::move(held);
  }

  void resolve_all(nb::list& futures) {
    do {
      rpc::LoopCallEnd end;
      while (!polls_.closes() && calls_->poll({&end, 1}) != 0) resolve(end, futures);
      calls_->flush();  // what there was no room for
    } while (!polls_.closes() && !calls_->arm());
  }

  void resolve(const rpc::LoopCallEnd& end, nb::list& futures) {
    Held held = std::move(held_[end.place]);
    const nb::object future = futures[end.place];
    futures[end.place] = nb::none();
    const rpc::CallResult& result = end.result;
    if (!nb::cast<bool>(future.attr("done")())) {
      if (result.status == message::MessageStatus::ok && result.code == 0) {
        future.attr("set_result")(held.rows   ? nb::none()
                                  : held.into ? nb::object(nb::int_(result.length))
                                              : bytes_of(result));
      } else {
        const bool answered = result.status == message::MessageStatus::ok && result.data != nullptr;
        future.attr("set_exception")(
            set_error_(name_of(message::name(result.status)), name_of(message::name(result.reach)), result.code,
                       answered ? text_of(result, held) : nb::object(nb::bytes("", 0)), result.length,
                       name_of(message::name(calls_->loss())),
                       held.rows ? nb::object(nb::int_(held.rows->rows->failed_row())) : nb::none()));
      }
    }
    calls_->release(end.place);
  }

  static nb::str name_of(std::string_view text) { return nb::str(text.data(), text.size()); }
  /// What an answer with a status says, which may be on the GPU.
  static nb::object text_of(rpc::CallResult result, const Held& held) {
    if (!(held.rows ? held.rows->responses : held.response).on_gpu()) return bytes_of(result);
    std::vector<std::uint8_t> text(result.length);
    check_or_raise(gpu::copy_now(text.data(), result.data, text.size()));
    result.data = text.data();
    return bytes_of(result);
  }
  static nb::object bytes_of(const rpc::CallResult& result) {
    return nb::bytes(result.data == nullptr ? "" : reinterpret_cast<const char*>(result.data), result.length);
  }

  std::unique_ptr<HostThread> thread_;
  std::unique_ptr<rpc::LoopCalls> calls_;
  std::deque<Held> held_;
  nb::object set_error_;
  std::uint8_t nothing_ = 0;
  Polls polls_;
};

}  // namespace

void add_rpc_client(nb::module_& module) {
  nb::class_<RpcClient>(module, "RpcClient")
      .def(nb::init<const std::string&, const RpcSettings&>())
      .def("call", &RpcClient::call, nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg(),
           nb::lock_self())
      .def("call_many", &RpcClient::call_many, nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg(),
           nb::arg().none(), nb::arg(), nb::lock_self())
      .def("shape_of_rows", &RpcClient::shape_of_rows, nb::arg().none(), nb::lock_self())
      .def("flush", &RpcClient::flush, nb::lock_self())
      .def("cancel", &RpcClient::cancel, nb::lock_self())
      .def("poll", &RpcClient::poll, nb::lock_self())
      .def("read_key_again", &RpcClient::read_key_again, nb::lock_self())
      .def("close", &RpcClient::close, nb::lock_self())
      .def_prop_ro("under_way", &RpcClient::under_way, nb::lock_self())
      .def_prop_ro("descriptor", &RpcClient::descriptor, nb::lock_self());
}

}  // namespace warpline::python
