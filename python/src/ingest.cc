// SPDX-License-Identifier: Apache-2.0
// Runs of `ingest` in this process and their frames, for warpline.frames.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <poll.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arrays/frame_array.h"
#include "errors.h"
#include "ingest_session.h"
#include "rooms.h"
#include "warpline/base/time/clock.h"

namespace nb = nanobind;

namespace warpline::python {
namespace {

using Kept = std::shared_ptr<ingest::KeptFrame>;

/// A frame as Python has it: each of its arrays keeps the memory, too.
struct PythonFrame {
  Kept kept;

  [[nodiscard]] const flow::Frame& at() const { return kept->frame(); }
};

FrameArray array_of(const PythonFrame& frame, std::uint8_t* data, std::uint64_t size, DlDataType dtype) {
  if (!frame.kept->gpu()) return {frame.kept, data, size, dtype};
  return {std::make_shared<KeptOnGpu<ingest::KeptFrame>>(frame.kept), *frame.kept->gpu(), data, size, dtype};
}

/// The time of day at which the first packet of the frame came, in nanoseconds since 1970.
std::int64_t time_of_day(const PythonFrame& frame) {
  const auto ago = static_cast<std::int64_t>(ticks_to_nanos(ticks_now() - frame.at().time));
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() - ago;
}

std::shared_ptr<IngestSession> begin_ingest(const std::vector<std::string>& arguments, bool tells_progress) {
  constexpr int kLookMilliseconds = 50;
  const auto session = [&] {
    const nb::gil_scoped_release unlocked;
    return IngestSession::begin(arguments, tells_progress);
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

nb::object take_item(IngestSession& session) {
  Kept frame = session.inbox().take();
  return frame ? nb::cast(PythonFrame{std::move(frame)}) : nb::none();
}

nb::list take_many(IngestSession& session, std::size_t most) {
  std::vector<Kept> frames;
  session.inbox().take_many(frames, most);
  nb::list list;
  for (Kept& frame : frames) list.append(PythonFrame{std::move(frame)});
  return list;
}

/// Sleeps until a frame may be there, the run has ended, a signal has come, or the time is over.
void wait(IngestSession& session, int milliseconds) {
  const nb::gil_scoped_release unlocked;
  transport::WakeUp& bell = session.inbox().bell();
  if (!bell.begin_sleep()) return;
  pollfd readable{bell.descriptor(), POLLIN, 0};
  (void)::poll(&readable, 1, milliseconds);
  bell.end_sleep();
}

}  // namespace

void add_ingest(nb::module_& module) {
  add_frame_array(module);
  nb::class_<PythonFrame>(module, "Frame")
      .def_prop_ro("data",
                   [](const PythonFrame& self) { return array_of(self, self.at().data, self.kept->bytes(), kDlUint8); })
      .def_prop_ro(
          "present",
          [](const PythonFrame& self) { return array_of(self, self.at().mask, self.kept->packets(), kDlBool); })
      .def_prop_ro("packets", [](const PythonFrame& self) { return self.kept->packets(); })
      .def_prop_ro("missing", [](const PythonFrame& self) { return self.at().missing; })
      .def_prop_ro("complete", [](const PythonFrame& self) { return self.at().missing == 0; })
      .def_prop_ro("sequence", [](const PythonFrame& self) { return self.at().first_sequence; })
      .def_prop_ro("index", [](const PythonFrame& self) { return self.at().index; })
      .def_prop_ro("epoch", [](const PythonFrame& self) { return self.at().epoch; })
      .def_prop_ro("stream", [](const PythonFrame& self) { return self.at().stream; })
      .def_prop_ro("key", [](const PythonFrame& self) { return self.at().key; })
      .def_prop_ro("queue", [](const PythonFrame& self) { return self.kept->path(); })
      .def_prop_ro("time_ns", &time_of_day);
  nb::class_<IngestSession>(module, "IngestSession")
      .def_static("begin", &begin_ingest, nb::arg("arguments"), nb::arg("tells_progress"))
      .def("take", &take_item, nb::lock_self())
      .def("take_many", &take_many, nb::arg("most"), nb::lock_self())
      .def("wait", &wait, nb::arg("milliseconds"))
      .def_prop_ro("ended", [](IngestSession& self) { return self.inbox().ended(); })
      .def_prop_ro("starved", [](IngestSession& self) { return self.inbox().starved(); })
      .def("fileno", [](IngestSession& self) { return self.inbox().bell().descriptor(); })
      .def("begin_sleep", [](IngestSession& self) { return self.inbox().bell().begin_sleep(); })
      .def("end_sleep", [](IngestSession& self) { self.inbox().bell().end_sleep(); })
      .def("stop", &IngestSession::stop)
      .def("close", &IngestSession::close, nb::call_guard<nb::gil_scoped_release>())
      .def("join", &IngestSession::join, nb::call_guard<nb::gil_scoped_release>())
      .def("check",
           [](const IngestSession& self) {
             if (self.failure()) raise(*self.failure());
           })
      .def_prop_ro("report", [](const IngestSession& self) { return self.report(); })
      .def_prop_ro("exit_code", [](const IngestSession& self) { return self.exit_code(); })
      .def("lines", &IngestSession::lines);
}

}  // namespace warpline::python
