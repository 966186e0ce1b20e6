// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace warpline::page {

/// `Scale` places values along an axis.
class Scale {
 public:
  enum class Kind { from_zero, cut, logarithmic };

  /// Fits the axis to the values, which are finite; there is at least one. It begins at zero unless the values lie
  /// close together (`cut`), and is logarithmic if they lie far apart.
  explicit Scale(const std::vector<double>& values);

  [[nodiscard]] Kind kind() const { return kind_; }
  /// The place of a value, in per mille of the axis' length; what lies beyond an end is put there.
  [[nodiscard]] double place(double value) const;
  [[nodiscard]] bool holds(double value) const { return value >= low_ && value <= high_; }
  /// Round values to label, ascending.
  [[nodiscard]] std::vector<double> ticks() const;

 private:
  Kind kind_ = Kind::from_zero;
  double low_ = 0;
  double high_ = 1;
};

}  // namespace warpline::page
