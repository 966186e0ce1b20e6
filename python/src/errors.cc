// SPDX-License-Identifier: Apache-2.0
#include "errors.h"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace warpline::python {

void raise(const Error& error) {
  const std::string text = error.message();
  const nb::object make = nb::module_::import_("warpline.errors").attr("of_exit_code");
  const nb::object exception = make(static_cast<int>(error.kind), nb::str(text.data(), text.size()));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw nb::python_error();
}

}  // namespace warpline::python
