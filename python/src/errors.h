// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "warpline/base/result.h"

namespace warpline::python {

/// Raises the exception of warpline.errors that an Error's kind stands for, with its text. The caller is a thread that
/// Python knows.
[[noreturn]] void raise(const Error& error);

/// Returns the value of a Result, or raises its error. The caller is a thread that Python knows.
template <typename T>
T value_or_raise(Result<T> result) {
  if (!result.ok()) raise(result.error());
  return *std::move(result);
}

/// Raises the error of a Result that has one. The caller is a thread that Python knows.
inline void check_or_raise(const Result<void>& result) {
  if (!result.ok()) raise(result.error());
}

}  // namespace warpline::python
