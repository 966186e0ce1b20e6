# SPDX-License-Identifier: Apache-2.0
"""Two nodes of Ray on this machine, as root each in a network namespace of its own, for all tests of a process."""

import atexit
import contextlib
import logging
import os
import shutil
import sys
import tempfile
import time

sys.path.append(os.environ.get("WARPLINE_RAY_WHEELS", ""))  # an actor has it on its path
try:
    import ray
    from ray.cluster_utils import Cluster
except ImportError:
    ray = None

from support.namespaces import Namespace, veth

PATIENCE_S = 60
NEAR, FAR = "10.77.0.1", "10.77.0.2"
_running = None


class TwoNodes:
    """The driver is on the first node, where actors have the resource "near"; the other one has "far"."""

    def __init__(self):
        for name in [name for name in os.environ if name.startswith("WARPLINE_") and name != "WARPLINE_BINARY"]:
            del os.environ[name]  # of tests: the program refuses names that are no option of its own
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        os.environ.update(RAY_AUTH_MODE="disabled", RAY_WARPLINE_PEER_TIMEOUT="2", RAY_DEDUP_LOGS="0", RAY_enable_metrics_collection="0", RAY_WARPLINE_PORTS="net_null7,no-rx=1")
        self._folder = tempfile.mkdtemp(prefix="wlray")  # short: paths of sockets are
        os.environ["RAY_TMPDIR"] = self._folder  # Ray notes its address in a folder `ray` there, which has to be there
        os.mkdir(os.path.join(self._folder, "ray"))
        self._cleanup = contextlib.ExitStack()
        self._cleanup.callback(shutil.rmtree, self._folder, ignore_errors=True)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self):
        self._namespaces = []
        near, far = {}, {}
        if os.geteuid() == 0:
            for name in ("ray", "far"):
                self._namespaces.append(Namespace(name, ipv6=False))
                self._cleanup.callback(self._namespaces[-1].remove)
            veth(self._namespaces[0], "near0", self._namespaces[1], "far0", mtu=9000)
            self._namespaces[0].ip("address", "add", f"{NEAR}/24", "dev", "near0")
            self._namespaces[1].ip("address", "add", f"{FAR}/24", "dev", "far0")
            near, far = {"node_ip_address": NEAR}, {"node_ip_address": FAR}
            self._cleanup.enter_context(self._namespaces[0].entered())  # this thread, and all that it starts, from now on
        common = {"num_cpus": 2, "object_store_memory": 128 << 20, "include_dashboard": False, "include_log_monitor": False, "temp_dir": self._folder}
        cluster = Cluster(initialize_head=True, head_node_args={**common, **near, "resources": {"near": 100}})
        self._cleanup.callback(cluster.shutdown)
        with self._namespaces[1].entered() if self._namespaces else contextlib.nullcontext():
            cluster.add_node(**common, **far, resources={"far": 100})
        self._cleanup.callback(ray.shutdown)
        ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)

    @property
    def separate(self):
        """Whether the nodes are joined by a wire alone."""
        return bool(self._namespaces)

    def sent_over_the_wire(self):
        """Bytes that the far node has sent."""
        with self._namespaces[1].entered(), open("/proc/thread-self/net/dev", encoding="ascii") as file:
            return next(int(line.split()[9]) for line in file if "far0:" in line)

    def stop(self):
        self._cleanup.close()


def running():
    """The nodes of this process, started when they are first asked for."""
    global _running
    if _running is None:
        _running = TwoNodes()
        atexit.register(_running.stop)
    return _running


def until(condition):
    """What a condition that asks actors says, once it is true."""
    end = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError("it did not come true")
    return found
