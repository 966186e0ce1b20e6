# SPDX-License-Identifier: Apache-2.0
"""What service managers and container runtimes do to a process: variables, refused system calls, folders that are not there."""

EPERM, ENOSYS = 1, 38
# What Kubernetes sets for Services of the pod's namespace (Kubernetes' documents, "Accessing the Service").
SERVICES = {
    "WARPLINE_SERVICE_HOST": "10.96.0.7",
    "WARPLINE_SERVICE_PORT": "9400",
    "WARPLINE_PORT": "tcp://10.96.0.7:9400",
    "WARPLINE_PORT_9400_TCP": "tcp://10.96.0.7:9400",
    "WARPLINE_PORT_9400_TCP_ADDR": "10.96.0.7",
    "WARPLINE_METRICS_SERVICE_HOST": "10.96.0.8",
    "WARPLINE_FORWARD_SERVICE_HOST": "10.96.0.9",
    "WARPLINE_FORWARD_SERVICE_PORT_METRICS": "9400",
    "WARPLINE_FORWARD_PORT": "tcp://10.96.0.9:9400",
    "WARPLINE_FORWARD_PORT_9400_TCP_PROTO": "tcp",
    "KUBERNETES_SERVICE_HOST": "10.96.0.1",
}
# {name: (error, calls)}: the seccomp profiles of container runtimes, as their users have met them.
FILTERS = {
    "Docker without CAP_SYS_NICE": (EPERM, "get_mempolicy,set_mempolicy,mbind,migrate_pages,move_pages,bpf,perf_event_open,userfaultfd,kcmp"),
    "a libseccomp that does not know new calls": (
        EPERM, "landlock_create_ruleset,landlock_add_rule,landlock_restrict_self,memfd_secret,pidfd_open,pidfd_getfd,close_range,openat2,"
        "faccessat2,epoll_pwait2,futex_waitv,io_uring_setup"),
    "an old kernel": (
        ENOSYS, "clone3,landlock_create_ruleset,landlock_add_rule,landlock_restrict_self,pidfd_open,close_range,openat2,faccessat2,"
        "epoll_pwait2,statx,rseq,membarrier,mlock2,get_mempolicy,set_mempolicy,mbind"),
}
COVERS = {
    "no /sys": ("--cover", "/sys"),
    "read-only /sys and no /run": ("--read-only", "/sys:/proc/sys", "--cover", "/run"),
    "a read-only root": ("--read-only", "/"),
    "no NUMA nodes": ("--cover", "/sys/devices/system/node"),
    "no /dev/shm": ("--cover", "/dev/shm"),
}
