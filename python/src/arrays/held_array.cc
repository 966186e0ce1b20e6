// SPDX-License-Identifier: Apache-2.0
#include "arrays/held_array.h"

#include <string>
#include <string_view>
#include <utility>

#include "arrays/dlpack.h"

namespace nb = nanobind;

namespace warpline::python {
namespace {

constexpr std::string_view kNumbers = "?cbBhHiIlLqQnNefdgFDG";  // the struct module's, and PEP 3118's complex ones

[[noreturn]] void refuse(PyObject* kind, const char* what, const std::string& why) {
  PyErr_SetString(kind, (std::string(what) + ": " + why).c_str());
  throw nb::python_error();
}

/// Whether a format of the buffer protocol is of plain numbers: references to objects are nothing to send.
bool is_of_numbers(const char* format) {
  std::string_view text = format == nullptr ? "B" : format;
  if (!text.empty() && std::string_view("@=<>!^").find(text.front()) != std::string_view::npos) text.remove_prefix(1);
  if (text.starts_with('Z')) text.remove_prefix(1);  // of complex numbers
  return text.size() == 1 && kNumbers.find(text.front()) != std::string_view::npos;
}

constexpr const char* kNotWhole = "the array is not in one piece, in the order of C; make a copy of it that is";
constexpr const char* kReadOnly = "the array is read-only";

/// Returns what DLPack has of an array on a GPU, ordered before what the stream is given from now on.
nb::object capsule_of(nb::handle object, const ArrayGpu& gpu) {
  const nb::object dlpack = object.attr("__dlpack__");
  const nb::int_ stream(gpu.stream);
  try {
    return dlpack(nb::arg("stream") = stream, nb::arg("max_version") = nb::make_tuple(1, 0));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
  }
  return dlpack(nb::arg("stream") = stream);  // of a library that is older than DLPack 1.0
}

}  // namespace

HeldArray::HeldArray(nb::handle object, const char* what, bool writable, const ArrayGpu* gpu) {
  const bool has_buffer = PyObject_CheckBuffer(object.ptr()) != 0;
  // Classes of arrays that may be on a GPU or not have both; those of arrays on a GPU alone may have a buffer to
  // refuse.
  if (has_buffer && (gpu == nullptr || !nb::hasattr(object, "__dlpack__"))) {
    if (take_buffer(object, what, writable)) return;
    const nb::python_error refused;  // which takes the error
    if (!nb::hasattr(object, "__dlpack_device__")) throw nb::python_error(refused);
  }
  if (!nb::hasattr(object, "__dlpack__"))
    refuse(PyExc_TypeError, what, "neither bytes nor an array, but " + std::string(nb::inst_name(object).c_str()));
  take_dlpack(object, what, writable, gpu);
}

bool HeldArray::take_buffer(nb::handle object, const char* what, bool writable) {
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_FULL_RO) != 0) return false;
  const char* why = nullptr;
  PyObject* kind = PyExc_ValueError;
  if (!is_of_numbers(view_.format)) {
    why = "the array is not one of numbers";
    kind = PyExc_TypeError;
  } else if (PyBuffer_IsContiguous(&view_, 'C') == 0) {
    why = kNotWhole;
  } else if (writable && view_.readonly != 0) {
    why = kReadOnly;
  }
  if (why != nullptr) {
    PyBuffer_Release(&view_);
    refuse(kind, what, why);
  }
  data_ = static_cast<std::uint8_t*>(view_.buf);
  size_ = static_cast<std::size_t>(view_.len);
  item_bytes_ = static_cast<std::size_t>(view_.itemsize);
  dimensions_ = static_cast<std::size_t>(view_.ndim);
  if (view_.ndim > 0) rows_ = static_cast<std::size_t>(view_.shape[0]);
  return true;
}

void HeldArray::take_dlpack(nb::handle object, const char* what, bool writable, const ArrayGpu* gpu) {
  const auto device = nb::cast<nb::tuple>(object.attr("__dlpack_device__")());
  const auto type = static_cast<DlDeviceType>(nb::cast<int>(nb::int_(device[0])));
  const int ordinal = nb::cast<int>(nb::int_(device[1]));
  on_gpu_ = type == DlDeviceType::cuda;
  if (on_gpu_ && gpu == nullptr)
    refuse(PyExc_TypeError, what, "the array is in the memory of a GPU; make this end with gpu=, or copy to the host");
  if (on_gpu_ && ordinal != gpu->ordinal)
    refuse(PyExc_TypeError, what,
           "the array is on GPU " + std::to_string(ordinal) +
               ", and this end was made with gpu=" + std::to_string(gpu->ordinal));
  if (!on_gpu_ && type != DlDeviceType::cpu && type != DlDeviceType::cuda_host)
    refuse(PyExc_TypeError, what,
           "the array is neither in host memory nor on a GPU of CUDA; copy it to the host first");
  const nb::object source = on_gpu_ ? capsule_of(object, *gpu) : nb::borrow(object);
  bool read_only = false;
  if (!nb::try_cast(source, array_)) {
    nb::ndarray<nb::ro> shown;
    if (!nb::try_cast(source, shown)) refuse(PyExc_TypeError, what, "the array cannot be had by DLPack");
    read_only = true;
    array_ = nb::ndarray<>(shown.handle());
  }
  if (writable && read_only) refuse(PyExc_ValueError, what, kReadOnly);
  std::int64_t step = 1;
  for (std::size_t i = array_.ndim(); i-- > 0;) {
    if (array_.shape(i) != 1 && array_.size() != 0 && array_.stride(i) != step)
      refuse(PyExc_ValueError, what, kNotWhole);
    step *= static_cast<std::int64_t>(array_.shape(i));
  }
  data_ = static_cast<std::uint8_t*>(array_.data());
  size_ = array_.nbytes();
  item_bytes_ = array_.itemsize();
  dimensions_ = array_.ndim();
  if (dimensions_ > 0) rows_ = array_.shape(0);
}

HeldArray::HeldArray(HeldArray&& other) noexcept { *this = std::move(other); }

HeldArray& HeldArray::operator=(HeldArray&& other) noexcept {
  if (this == &other) return *this;
  release();
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  item_bytes_ = std::exchange(other.item_bytes_, 0);
  dimensions_ = std::exchange(other.dimensions_, 0);
  rows_ = std::exchange(other.rows_, 0);
  on_gpu_ = std::exchange(other.on_gpu_, false);
  // Shape and strides of a view may point into it, and are not looked at any more.
  view_ = std::exchange(other.view_, Py_buffer{});
  array_ = std::move(other.array_);
  return *this;
}

void HeldArray::release() {
  if (view_.obj != nullptr) PyBuffer_Release(&view_);
  view_ = Py_buffer{};
  array_ = {};
  data_ = nullptr;
  size_ = item_bytes_ = dimensions_ = rows_ = 0;
  on_gpu_ = false;
}

}  // namespace warpline::python
