// SPDX-License-Identifier: Apache-2.0
// Runs of `stream receive` in this process and what their connections bring, for warpline.streams.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arrays/frame_array.h"
#include "errors.h"
#include "rooms.h"
#include "stream_session.h"

namespace nb = nanobind;

namespace warpline::python {
namespace {

using service::KeptConnection;

std::shared_ptr<StreamSession> begin_streams(const std::vector<std::string>& arguments, bool tells_progress) {
  constexpr int kLookMilliseconds = 50;
  const auto session = [&] {
    const nb::gil_scoped_release unlocked;
    return StreamSession::begin(arguments, tells_progress);
  }();
  auto made = value_or_raise(session);
  const auto started = [&] {
    const nb::gil_scoped_release unlocked;
    return made->wait_until_started(kLookMilliseconds);
  };
  while (!started()) {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  return made;
}

/// What is new: numbers of connections, each with the connection itself the first time.
nb::list take_news(StreamSession& session) {
  std::vector<service::ConnectionNews> news;
  session.inbox().take(news);
  nb::list list;
  for (service::ConnectionNews& one : news) {
    list.append(nb::make_tuple(one.number, one.connection ? nb::cast(std::move(one.connection)) : nb::none()));
  }
  return list;
}

nb::object take_bytes(KeptConnection& connection) {
  std::shared_ptr<service::KeptBytes> kept = connection.take();
  if (!kept) return nb::none();
  const auto bytes = kept->bytes();
  if (!kept->gpu()) return nb::cast(FrameArray(std::move(kept), bytes));
  // Libraries of GPU arrays do not ask whether they may write, and nobody else reads these.
  const int gpu = *kept->gpu();
  return nb::cast(FrameArray(std::make_shared<KeptOnGpu<service::KeptBytes>>(std::move(kept)), gpu,
                             const_cast<std::uint8_t*>(bytes.data()), bytes.size(), kDlUint8));
}

}  // namespace

void add_streams(nb::module_& module) {
  nb::class_<KeptConnection>(module, "StreamConnection")
      .def_prop_ro("peer", [](const KeptConnection& self) { return to_string(self.peer()); })
      .def_prop_ro("local", [](const KeptConnection& self) { return to_string(self.local()); })
      .def("take", &take_bytes, nb::lock_self())
      .def("close", &KeptConnection::close, nb::lock_self())
      .def_prop_ro("closed", &KeptConnection::closed, nb::lock_self())
      .def_prop_ro("full", &KeptConnection::is_full, nb::lock_self())
      .def_prop_ro(
          "state", [](const KeptConnection& self) { return std::string(name(self.state())); }, nb::lock_self());
  nb::class_<StreamSession>(module, "StreamSession")
      .def_static("begin", &begin_streams, nb::arg("arguments"), nb::arg("tells_progress"))
      .def("take_news", &take_news, nb::lock_self())
      .def_prop_ro("ended", [](StreamSession& self) { return self.inbox().ended(); })
      .def("fileno", [](StreamSession& self) { return self.inbox().bell().descriptor(); })
      .def("begin_sleep", [](StreamSession& self) { return self.inbox().bell().begin_sleep(); })
      .def("end_sleep", [](StreamSession& self) { self.inbox().bell().end_sleep(); })
      .def("close", &StreamSession::close, nb::call_guard<nb::gil_scoped_release>())
      .def("check",
           [](const StreamSession& self) {
             if (self.failure()) raise(*self.failure());
           })
      .def_prop_ro("report", [](const StreamSession& self) { return self.report(); })
      .def_prop_ro("exit_code", [](const StreamSession& self) { return self.exit_code(); })
      .def("lines", &StreamSession::lines);
}

}  // namespace warpline::python
