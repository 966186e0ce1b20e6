# SPDX-License-Identifier: Apache-2.0
"""Makes the root file system of a guest: the program, its libraries, some of DPDK's drivers, busybox, modules."""

import lzma
import os
import re
import stat
import subprocess
from pathlib import Path

# What a guest runs is linked against the libraries of the machine that built it.
DRIVERS = ("bus_pci", "bus_vdev", "mempool_ring", "net_e1000", "net_ring", "net_vhost", "net_virtio", "net_vmxnet3")
MODULES = ("vfio-pci", "vfio_iommu_type1", "virtio_pci", "virtio_net", "vmxnet3", "uio_pci_generic", "igb")
# Knows virtual functions, other than busybox's.
IP = "/usr/sbin/ip"
FOLDERS = ("bin", "dev", "etc", "modules", "proc", "root", "run", "sys", "tmp", "usr", "usr/bin", "usr/lib", "var", "work")
LINKS = {"lib": "usr/lib", "lib64": "usr/lib64", "var/run": "/run"}


class Archive:
    """A cpio archive as the kernel unpacks it (its "newc"), not compressed: an emulated processor copies faster."""

    def __init__(self, file):
        self.file = file
        self.count = 0
        self.known = set()

    def _entry(self, name, mode, data=b""):
        self.count += 1
        fields = (self.count, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        self.file.write(head + b"\0" * (-len(head) % 4))
        self.file.write(data + b"\0" * (-len(data) % 4))

    def _claim(self, name):
        """False if the name is taken; else makes the folders that it lies in."""
        if name in self.known:
            return False
        if "/" in name:
            self.folder(str(Path(name).parent))
        self.known.add(name)
        return True

    def folder(self, name):
        name = name.strip("/")
        if name and self._claim(name):
            self._entry(name, stat.S_IFDIR | 0o755)

    def add(self, name, data, mode=0o755):
        name = name.strip("/")
        if self._claim(name):
            self._entry(name, stat.S_IFREG | mode, data)

    def link(self, name, target):
        name = name.strip("/")
        if self._claim(name):
            self._entry(name, stat.S_IFLNK | 0o777, target.encode())

    def end(self):
        self._entry("TRAILER!!!", 0)


def libraries_of(binary):
    """The paths of the shared libraries that the loader would take for it."""
    answer = subprocess.run(["ldd", binary], check=False, capture_output=True, text=True).stdout
    return re.findall(r"(?:=> |^\t)(/\S+) \(0x", answer, re.MULTILINE)


def add_file(archive, path):
    """One inode for all names of a library: DPDK must not load a driver twice."""
    real = os.path.realpath(path)
    archive.add(place(real), Path(real).read_bytes())
    if place(path) != place(real):
        archive.link(place(path), place(real))


def place(path):
    """Where a file lies in the guest, in which /lib is a link to /usr/lib."""
    return re.sub(r"^/lib", "/usr/lib", str(path))


def module_file(modules, name):
    pattern = re.sub("[-_]", "[-_]", name)
    return next(iter(sorted(modules.rglob(f"{pattern}.ko*"))), None)


def module_data(path):
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def module_order(modules, names):
    """The modules and those that they depend on, each behind its own: (name, bytes)."""
    found = {}

    def visit(name):
        name = name.replace("-", "_")
        path = module_file(modules, name)
        if name in found or path is None:  # what has no file is built into the kernel
            return
        data = module_data(path)
        (depends,) = re.search(rb"\0depends=([^\0]*)\0", b"\0" + data).groups()
        for other in filter(None, depends.decode().split(",")):
            visit(other)
        found[name] = data

    for name in names:
        visit(name)
    return found


def make_image(target, kernel, program, init, others=(IP,)):
    """Writes the archive. kernel: the folder that setup/guest_kernel makes; program: `warpline`; init: a file; others:
    programs of this machine, those that it has."""
    (drivers,) = Path("/usr/lib").glob("*/dpdk/pmds-*")
    wanted = [path for path in drivers.glob("librte_*.so.*.*") if path.name.split(".so")[0][7:] in DRIVERS]
    with open(target, "wb") as file:
        archive = Archive(file)
        for folder in FOLDERS:
            archive.folder(folder)
        archive.folder("usr/lib64")
        for name, to in LINKS.items():
            archive.link(name, to)
        archive.add("init", Path(init).read_bytes())
        archive.add("etc/passwd", b"root:x:0:0::/root:/bin/sh\n", 0o644)
        archive.add("bin/busybox", Path("/bin/busybox").read_bytes())
        for applet in subprocess.run(["/bin/busybox", "--list"], check=True, capture_output=True, text=True).stdout.split():
            archive.link(f"bin/{applet}", "busybox")
        tools = [tool for tool in others if Path(tool).exists()]
        libraries = {library for path in (program, *wanted, *tools) for library in libraries_of(path)}
        archive.add("usr/bin/warpline", Path(program).read_bytes())
        for path in sorted(libraries) + sorted(map(str, wanted)) + tools:
            add_file(archive, path)
        order = module_order(Path(kernel) / "modules", MODULES)
        for name, data in order.items():
            archive.add(f"modules/{name}.ko", data, 0o644)
        archive.add("modules/order", "".join(f"{name}\n" for name in order).encode(), 0o644)
        archive.end()
