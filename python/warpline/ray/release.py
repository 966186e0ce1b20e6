# SPDX-License-Identifier: Apache-2.0
"""Which Ray this is for."""

import re

OLDEST = (2, 56)  # whose transports say which type they carry: register_tensor_transport(..., data_type)
TESTED = "2.56 to 2.60"
_TO_DO = 'pip install "ray>=2.56,<2.61"'


def check() -> None:
    """Raises ImportError, in one line, if there is no Ray, or one whose interface for transports is another."""
    try:
        import ray
    except ImportError as error:
        raise ImportError(f"warpline.ray: there is no Ray; {_TO_DO}") from error
    found = re.match(r"(\d+)\.(\d+)", ray.__version__)
    if found is None or (int(found[1]), int(found[2])) < OLDEST:
        raise ImportError(f"warpline.ray: Ray {ray.__version__} has another interface for transports, tested are {TESTED}; {_TO_DO}")
