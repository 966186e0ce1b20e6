// SPDX-License-Identifier: Apache-2.0
// Memory of frames for libraries of arrays, without a copy: by DLPack and by the buffer protocol.
#include "arrays/frame_array.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <cstring>
#include <optional>
#include <string>
#include <tuple>

#include "errors.h"

namespace nb = nanobind;

namespace warpline::python {
namespace {

constexpr const char* kCapsule = "dltensor";
constexpr const char* kVersionedCapsule = "dltensor_versioned";

/// What a capsule keeps: the tensor that it names, its shape, and the memory. Whoever takes the capsule deletes it, by
/// any thread, with the GIL or without.
template <typename Managed>
struct Exported {
  Managed managed{};
  std::int64_t shape = 0;
  std::int64_t stride = 1;
  std::shared_ptr<const void> owner;
  StreamUser* user = nullptr;
  std::optional<std::uintptr_t> stream;  ///< that it was taken on

  ~Exported() {
    if (user && stream) user->used_by(*stream);
  }
};

template <typename Managed>
nb::object capsule_of(const FrameArray& array, const char* name, bool copied, std::optional<std::uintptr_t> stream) {
  auto made = std::make_unique<Exported<Managed>>();
  made->owner = array.owner();
  made->user = array.user();
  made->stream = stream;
  made->shape = static_cast<std::int64_t>(array.size());
  made->managed.tensor = {.data = array.data(),
                          .device = array.device(),
                          .ndim = 1,
                          .dtype = array.dtype(),
                          .shape = &made->shape,
                          .strides = &made->stride,
                          .byte_offset = 0};
  made->managed.manager_context = made.get();
  made->managed.deleter = [](Managed* self) { delete static_cast<Exported<Managed>*>(self->manager_context); };
  if constexpr (std::is_same_v<Managed, DlManagedTensorVersioned>) {
    made->managed.version = kDlVersion;
    made->managed.flags = (copied ? kDlIsCopied : 0) | (array.read_only() ? kDlReadOnly : 0);
  }
  // Whoever takes the tensor renames the capsule; a capsule that nobody took still has its name.
  PyObject* const capsule = PyCapsule_New(&made->managed, name, [](PyObject* self) {
    for (const char* const untaken : {kCapsule, kVersionedCapsule}) {
      if (PyCapsule_IsValid(self, untaken) == 0) continue;
      auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(self, untaken));
      managed->deleter(managed);
    }
  });
  if (capsule == nullptr) throw nb::python_error();
  (void)made.release();
  return nb::steal(capsule);
}

FrameArray copy_of(const FrameArray& array) {
  auto bytes = std::make_shared<std::uint8_t[]>(array.bytes());
  {
    const nb::gil_scoped_release unlocked;
    std::memcpy(bytes.get(), array.data(), array.bytes());
  }
  void* const data = bytes.get();
  return {std::move(bytes), data, array.size(), array.dtype()};
}

/// The stream that an array on a GPU is taken on. Its bytes are there already: nothing is to be waited for.
std::optional<std::uintptr_t> stream_of(const nb::object& stream) {
  constexpr std::uintptr_t kLegacyDefault = 1;
  if (stream.is_none()) return kLegacyDefault;
  const auto number = nb::cast<std::int64_t>(stream);
  if (number == 0)
    throw nb::buffer_error("stream 0 is ambiguous; 1 is the legacy default stream, 2 that of the thread");
  if (number == -1) return std::nullopt;  // its user sees to the order himself
  return static_cast<std::uintptr_t>(number);
}

/// As https://data-apis.org/array-api/latest/API_specification/generated/array_api.array.__dlpack__.html has it.
nb::object to_dlpack(const FrameArray& array, const nb::object& stream,
                     const std::optional<std::tuple<int, int>>& max_version,
                     const std::optional<std::tuple<int, int>>& dl_device, std::optional<bool> copy) {
  const bool on_gpu = array.user() != nullptr;
  if (!on_gpu && !stream.is_none()) {
    throw nb::buffer_error("a frame in host memory: no stream orders what is done with it, so stream must be None");
  }
  if (dl_device && *dl_device != std::tuple(static_cast<int>(array.device().type), int{array.device().id})) {
    throw nb::buffer_error(on_gpu ? "an array on a GPU: it is not copied to another device; give its own or none"
                                  : "a frame in host memory: it is not copied to another device; give dl_device=(1, 0) "
                                    "or none");
  }
  const bool copies = copy.value_or(false);
  if (on_gpu && copies) throw nb::buffer_error("an array on a GPU: have your library copy it, not copy=True");
  const FrameArray what = copies ? copy_of(array) : array;
  const std::optional<std::uintptr_t> taken_on = on_gpu ? stream_of(stream) : std::nullopt;
  if (max_version && std::get<0>(*max_version) >= 1) {
    return capsule_of<DlManagedTensorVersioned>(what, kVersionedCapsule, copies, taken_on);
  }
  if (what.read_only()) {
    throw nb::buffer_error(
        "the array is read-only, which DLPack before 1.0 cannot say; ask with copy=True, or give max_version=(1, 0)");
  }
  return capsule_of<DlManagedTensor>(what, kCapsule, copies, taken_on);
}

/// What struct.unpack calls the elements.
const char* format_of(DlDataType dtype) {
  if (dtype.code == kDlBool.code) return "?";
  return dtype.bits == kDlInt64.bits ? "q" : "B";
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  const FrameArray* const array = nb::inst_ptr<FrameArray>(self);
  if (array->user() != nullptr) {
    PyErr_SetString(PyExc_BufferError, "the array is on a GPU: take it by DLPack");
    view->obj = nullptr;
    return -1;
  }
  const int read_only = array->read_only() ? 1 : 0;
  if (PyBuffer_FillInfo(view, self, array->data(), static_cast<Py_ssize_t>(array->bytes()), read_only, flags) != 0) {
    return -1;
  }
  // The strides that it gives are those of the elements, by the address of the view's itemsize.
  view->itemsize = array->dtype().bits / 8;
  if ((flags & PyBUF_FORMAT) == PyBUF_FORMAT) view->format = const_cast<char*>(format_of(array->dtype()));
  if ((flags & PyBUF_ND) == PyBUF_ND) view->shape = array->shape();
  return 0;
}

PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

}  // namespace

void add_frame_array(nb::module_& module) {
  nb::class_<FrameArray>(module, "FrameArray", nb::type_slots(slots))
      .def("__dlpack__", &to_dlpack, nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
           nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none())
      .def("__dlpack_device__",
           [](const FrameArray& array) {
             return std::tuple(static_cast<int>(array.device().type), int{array.device().id});
           })
      .def("__len__", &FrameArray::size)
      .def_prop_ro("nbytes", &FrameArray::bytes);
}

}  // namespace warpline::python
