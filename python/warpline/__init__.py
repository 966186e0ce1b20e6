# SPDX-License-Identifier: Apache-2.0
"""Warpline for Python: `warpline.messages` has messages through `warpline message daemon`."""
