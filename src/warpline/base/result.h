// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

/// The libraries. Macros are outside of it, and begin with WARPLINE_.
namespace warpline {

/// What went wrong, as the exit code that the program ends with.
enum class ErrorKind : std::uint8_t {
  threshold = 1,     ///< a number that was asked for was not reached
  usage = 2,         ///< a command line, environment or file that makes no sense
  environment = 3,   ///< the machine is not ready: hugepages, permission, driver, device
  verification = 4,  ///< a packet came out other than it should
  peer = 5,          ///< the peer is gone or timed out
};

/// A set-up error. The function that decides it fills all parts in; callers only propagate.
struct Error {
  ErrorKind kind;    ///< for the exit code
  std::string what;  ///< what failed
  std::string why;   ///< the cause
  std::string fix;   ///< what to do, if possible a command

  /// "what: why; fix" on one line.
  [[nodiscard]] std::string message() const {
    std::string text = what;
    if (!why.empty()) text += ": " + why;
    if (!fix.empty()) text += "; " + fix;
    return text;
  }
};

/// Makes an Error of kind `usage`.
[[nodiscard]] inline Error usage_error(std::string what, std::string why, std::string fix = {}) {
  return {ErrorKind::usage, std::move(what), std::move(why), std::move(fix)};
}

/// Makes an Error of kind `environment`.
[[nodiscard]] inline Error environment_error(std::string what, std::string why, std::string fix = {}) {
  return {ErrorKind::environment, std::move(what), std::move(why), std::move(fix)};
}

/// A value or the Error that kept it from being made. For set-up code only.
template <typename T>
class [[nodiscard]] Result {
 public:
  /// Holds the value.
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  /// Holds the error.
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const { return state_.index() == 0; }  ///< true if there is a value
  /// True if there is a value.
  explicit operator bool() const { return ok(); }

  [[nodiscard]] T& value() & { return std::get<0>(state_); }               ///< only if ok()
  [[nodiscard]] const T& value() const& { return std::get<0>(state_); }    ///< only if ok()
  [[nodiscard]] T&& value() && { return std::get<0>(std::move(state_)); }  ///< only if ok()
  T& operator*() & { return value(); }                                     ///< as value()
  const T& operator*() const& { return value(); }                          ///< as value()
  T&& operator*() && { return std::move(*this).value(); }                  ///< as value()
  T* operator->() { return &value(); }                                     ///< of value()
  const T* operator->() const { return &value(); }                         ///< of value()

  [[nodiscard]] const Error& error() const& { return std::get<1>(state_); }    ///< only if not ok()
  [[nodiscard]] Error&& error() && { return std::get<1>(std::move(state_)); }  ///< only if not ok()

 private:
  std::variant<T, Error> state_;
};

/// Success or the Error that prevented it.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  /// Holds the error.
  Result(Error error) : error_(std::move(error)) {}

  [[nodiscard]] bool ok() const { return !error_; }                ///< true if there is no error
  explicit operator bool() const { return ok(); }                  ///< true if there is no error
  [[nodiscard]] const Error& error() const& { return *error_; }    ///< only if not ok()
  [[nodiscard]] Error&& error() && { return *std::move(error_); }  ///< only if not ok()

 private:
  std::optional<Error> error_;
};

}  // namespace warpline

#define WARPLINE_CONCAT_(a, b) a##b
#define WARPLINE_CONCAT(a, b) WARPLINE_CONCAT_(a, b)

/// `WARPLINE_TRY(auto port, open_port(spec));` declares `port`, or returns the Error from the caller.
#define WARPLINE_TRY(declaration, expression)                                                                 \
  auto WARPLINE_CONCAT(result_, __LINE__) = (expression);                                                     \
  if (!WARPLINE_CONCAT(result_, __LINE__).ok()) return std::move(WARPLINE_CONCAT(result_, __LINE__)).error(); \
  declaration = std::move(WARPLINE_CONCAT(result_, __LINE__)).value()

/// The same for a Result<void>.
#define WARPLINE_CHECK(expression)                                                                             \
  do {                                                                                                         \
    if (auto warpline_status = (expression); !warpline_status.ok()) return std::move(warpline_status).error(); \
  } while (false)
