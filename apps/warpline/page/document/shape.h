// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "page/text/json.h"

// What a piece of JSON is, told by its shape alone, so that a new benchmark is drawn without a line of code.

namespace warpline::page {

/// `Statistic` is what was made of repeated measurements: a median and, where they are known, an interval around it,
/// the extremes and the samples. It refers to the JSON that it was found in.
struct Statistic {
  const Json* median = nullptr;
  const Json* low = nullptr;  ///< null without an interval
  const Json* high = nullptr;
  const Json* least = nullptr;  ///< null if not told
  const Json* most = nullptr;
  const Json* count = nullptr;     ///< number of samples, null if not told
  std::vector<double> samples;     ///< empty if not told
  std::string_view interval_name;  ///< what low and high are
};

/// `as_statistic` returns the statistic that an object is: it has a number "median". Otherwise nothing.
[[nodiscard]] std::optional<Statistic> as_statistic(const Json& value);

/// True for strings, numbers, booleans and null.
[[nodiscard]] bool is_scalar(const Json& value);
/// True for a non-empty array of numbers.
[[nodiscard]] bool is_number_array(const Json& value);
/// True for a non-empty array of objects.
[[nodiscard]] bool is_object_array(const Json& value);
/// True for a non-empty object all of whose members are statistics.
[[nodiscard]] bool is_statistic_map(const Json& value);
/// True for an object of two or more objects that have most of their keys in common, none of them a statistic.
[[nodiscard]] bool is_record_map(const Json& value);
/// True if a table has room for the object in a row: beside scalars and statistics it holds only small objects of such.
[[nodiscard]] bool is_flat_record(const Json& value);

/// `Leaf` is what stands in a table's cell: a scalar, a statistic, or an array of scalars.
struct Leaf {
  std::string path;  ///< keys, separated by dots
  const Json* value;
};
/// `leaves` returns the leaves of an object in their order. Samples are left out: their statistic has them.
[[nodiscard]] std::vector<Leaf> leaves(const Json& object);

/// `labels` names the elements of an array of objects: by "name" or "figure", or by as many of their leading scalars as
/// tell them apart. A single element without such a name has the label "".
[[nodiscard]] std::vector<std::string> labels(const Json& array);

/// `without_common_parts` shortens labels that are lists of parts separated by ", ": what all of them begin with is
/// left out, and returned. Nothing is left out that would make a label empty or two of them equal.
std::string without_common_parts(std::vector<std::string>& labels);

/// `numbers` returns the values of an array's numbers.
[[nodiscard]] std::vector<double> numbers(const Json& array);

/// `string_member` returns an object's string of that key, or "".
[[nodiscard]] std::string string_member(const Json& object, std::string_view key);
/// `member` returns an object's member, or null if there is none or `object` is no object.
[[nodiscard]] const Json* member(const Json& object, std::string_view key);

}  // namespace warpline::page
