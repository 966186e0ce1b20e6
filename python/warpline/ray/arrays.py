# SPDX-License-Identifier: Apache-2.0
"""Arrays of NumPy that a transport carries."""

from typing import Any

import numpy
import numpy.typing


class Array(numpy.ndarray[Any, numpy.dtype[Any]]):
    """An array of NumPy that the transport "warpline_arrays" carries. Other arrays in the same value go Ray's usual way.

    It is a class of its own because Ray, once a transport carries a type, serializes all objects of just that type in
    another way, and arrays in the object store would no longer be read where they lie.
    """

    def is_contiguous(self) -> bool:
        """Whether it is in one piece, in the order of C: `set_target_for_ref` asks so."""
        return self.flags.c_contiguous


def array(values: numpy.typing.ArrayLike) -> Array:
    """Returns the values as an Array, without a copy if they are an array of NumPy. TypeError: they are not plain numbers."""
    found = numpy.asarray(values)
    if found.dtype.hasobject:
        raise TypeError("array: it holds objects of Python, which have no bytes to send")
    made: Array = found.view(Array)
    return made
