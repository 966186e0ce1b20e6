# SPDX-License-Identifier: Apache-2.0
# The types of warpline._core, whose sources are python/src/.

__version__: str
