"""A processor that refuses instructions: a folder for PYTHONPATH, so that every interpreter has it.

FORBIDDEN names what ends a process by SIGILL, `bf16=AVX512_CORE_FP16+AVX2,fp16=`: matrix products in that precision
unless oneDNN is told to go no higher than one of the names behind it (none: with every setting). FORBIDDEN_IMPORT
names a variable without which importing torch ends so, FORBIDDEN_CPUINFO a file to read the processor's flags from.
"""

import importlib.machinery
import os
import pathlib
import signal
import sys

_NAMES = {"fp32": "torch.float32", "bf16": "torch.bfloat16", "fp16": "torch.float16"}


def _refuse():
    os.kill(os.getpid(), signal.SIGILL)


def _is_refused(dtype):
    for rule in os.environ.get("FORBIDDEN", "").split(","):
        precision, _, allowed = rule.partition("=")
        if _NAMES.get(precision) == dtype:
            return (os.environ.get("ONEDNN_MAX_CPU_ISA") or "none") not in allowed.split("+")
    return False


def _guard(torch):
    plain = torch.nn.functional.linear

    def linear(x, *rest):
        dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype
        if _is_refused(str(dtype)):
            _refuse()
        return plain(x, *rest)

    torch.nn.functional.linear = linear


def _advertise(module):
    if "FORBIDDEN_CPUINFO" in os.environ:
        module.CPUINFO = pathlib.Path(os.environ["FORBIDDEN_CPUINFO"])


_AFTER = {"torch": _guard, "headway.machine.cpu": _advertise}


class _Finder:
    """Finds modules where they are, and changes them once they are loaded."""

    def find_spec(self, name, path=None, target=None):
        if name not in _AFTER:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None:
            load = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (self._before(name), load(module), _AFTER[name](module))
        return spec

    def _before(self, name):
        if name == "torch" and not os.environ.get(os.environ.get("FORBIDDEN_IMPORT", "PATH")):
            _refuse()


sys.meta_path.insert(0, _Finder())
