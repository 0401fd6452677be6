"""The walls around a process that reads a stranger's pickle. Standard library only.

Programs that are started with `python -I` run this file by its path (`runpy.run_path`), so that nothing else of Headway
is in their reach.
"""

from __future__ import annotations

import ctypes
import platform
import resource
import struct

_MEMORY_BYTES = 3 << 30
_CPU_S = 60


def limit() -> None:
    """Give this process little memory and time, no files to write, no children."""
    for what, most in (
        (resource.RLIMIT_AS, _MEMORY_BYTES),
        (resource.RLIMIT_CPU, _CPU_S),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, 16),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


# What stays allowed, by the kernel's numbers: reading, writing and closing what is open, memory, time, locks, leaving.
_ALLOWED = {
    "x86_64": (
        0xC000003E,
        "0 1 3 5 8 9 10 11 12 13 14 15 19 20 24 25 28 35 39 60 63 96 97 98 99 102 104 107 108 131 158 186 201 202 204 "
        "218 228 230 231 262 318 334",
    ),
    "aarch64": (
        0xC00000B7,
        "57 62 63 64 65 66 79 80 93 94 96 98 99 101 113 115 123 124 132 134 135 139 160 163 165 169 172 174 175 176 "
        "177 178 179 214 215 216 222 226 233 278 293",
    ),
}
_REFUSE, _ALLOW, _KILL = 0x00050001, 0x7FFF0000, 0x80000000


def seal() -> None:
    """Let the kernel refuse every call but those above; raise OSError where it cannot."""
    machine = platform.machine()
    if machine not in _ALLOWED:
        raise OSError(f"no list of calls for {machine}")
    arch, listed = _ALLOWED[machine]
    calls = [int(call) for call in listed.split()]
    lines = [(0x20, 0, 0, 4), (0x15, 1, 0, arch), (0x06, 0, 0, _KILL), (0x20, 0, 0, 0)]
    lines += [(0x15, len(calls) - place, 0, call) for place, call in enumerate(calls)]
    lines += [(0x06, 0, 0, _REFUSE), (0x06, 0, 0, _ALLOW)]
    code = b"".join(struct.pack("<HBBI", *line) for line in lines)
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("@HP", len(lines), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    # No new privileges first: without it only root may filter.
    if libc.prctl(38, *map(ctypes.c_ulong, (1, 0, 0, 0))) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_NO_NEW_PRIVS")
    if libc.prctl(22, ctypes.c_ulong(2), ctypes.c_char_p(program), ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_SECCOMP")
