"""What the processor really computes, and the setting its libraries need for it.

A processor may advertise an instruction set that its hypervisor does not allow (AMX most of all): the first product
that uses it ends the process with SIGILL. Libraries can be known to leave instruction sets alone, each by a variable of
its own. Which value is needed is found by trying, in a child, and kept in the user's cache by all that it depends on.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from headway.ask import ask
from headway.machine import cpu_child

CPUINFO = Path("/proc/cpuinfo")
_HYPERVISOR: Final = ("class/dmi/id/sys_vendor", "class/dmi/id/product_name", "hypervisor/type")
_KEPT: Final = "~/.cache/headway/cpu"
_SCHEMA: Final = 2
_DEADLINE_S: Final = 180.0
"""A cold disk takes most of it; some twenty forks of a second each are left."""
_INFO_BYTES: Final = 16_384
"""The first processor of /proc/cpuinfo; all are alike, and a large machine lists hundreds."""

ONEDNN: Final = "ONEDNN_MAX_CPU_ISA"
_OLD_ONEDNN: Final = "DNNL_MAX_CPU_ISA"
"""Read by oneDNN where the new name is not set."""
MKL: Final = "MKL_ENABLE_INSTRUCTIONS"
_RUNGS: Final = (
    "AVX10_2_512_AMX_2",
    "AVX10_2_512",
    "AVX10_1_512_AMX_FP16",
    "AVX10_1_512_AMX",
    "AVX512_CORE_AMX_FP16",
    "AVX512_CORE_AMX",
    "AVX10_1_512",
    "AVX512_CORE_FP16",
    "AVX512_CORE_BF16",
    "AVX512_CORE_VNNI",
    "AVX512_CORE",
    "AVX2_VNNI_2",
    "AVX2_VNNI",
    "AVX2",
    "AVX",
    "SSE41",
)
"""oneDNN's names, highest first. A name that a version does not know means no limit there, so it fails like none."""
_NO_AMX: Final = frozenset(_RUNGS[_RUNGS.index("AVX10_1_512") :])
_MKL_NO_AMX: Final = ("AVX512_E3", "AVX512_E2", "AVX512_E1", "AVX512", "AVX2", "AVX", "SSE4_2")
"""MKL's names below AMX, highest first. It multiplies bf16 matrices for torch's attention, with tiles of its own."""
_AVX2: Final = {
    ONEDNN: "AVX2",
    "ATEN_CPU_CAPABILITY": "avx2",
    MKL: "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR",
}
_SSE4: Final = {
    ONEDNN: "SSE41",
    "ATEN_CPU_CAPABILITY": "default",
    MKL: "SSE4_2",
    "OPENBLAS_CORETYPE": "Nehalem",
    "NPY_DISABLE_CPU_FEATURES": f"X86_V3 AVX F16C FMA3 AVX2 {_AVX2['NPY_DISABLE_CPU_FEATURES']}",
}
_BOTH: Final = ("AVX10_1_512", "AVX512_CORE_FP16")
"""Rungs of oneDNN that are tried with MKL's highest below AMX too, before either goes lower: both forbid the same."""
LADDER: Final[tuple[Mapping[str, str], ...]] = (
    {},
    *(
        setting
        for rung in _RUNGS
        for setting in ({ONEDNN: rung}, *([{ONEDNN: rung, MKL: _MKL_NO_AMX[0]}] if rung in _BOTH else []))
    ),
    {"ATEN_CPU_CAPABILITY": "avx2"},
    {"ATEN_CPU_CAPABILITY": "default"},
    {MKL: _MKL_NO_AMX[0]},
    {MKL: "AVX2"},
    {MKL: "SSE4_2"},
    _AVX2,
    _SSE4,
)
"""Settings in the order they are tried: the library that reaches furthest first and alone, all together last."""
_MINDSPORE_LADDER: Final = LADDER[LADDER.index({ONEDNN: "AVX2"}) :]
"""MindSpore's ranks never go above AVX2, which is faster for them (engine/mindspore/context.py)."""
LIMITS: Final = (*_AVX2, _OLD_ONEDNN, "NPY_ENABLE_CPU_FEATURES")
"""Variables by which libraries are limited; a value that the user has given decides what is computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuAnswers:
    """What the processor computes with the libraries of one interpreter."""

    settings: Mapping[str, str] = field(default_factory=dict)
    """Environment that children which compute get; empty: nothing is needed, or the user's own value is kept."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Cases that end a process, or are wrong, in the environment as it is: `bf16 linear` to `SIGILL`."""
    left: Mapping[str, str] = field(default_factory=dict)
    """Cases that fail with the settings too."""
    own: Mapping[str, str] = field(default_factory=dict)
    """Values of the user that fail and are kept anyway."""
    advice: Mapping[str, str] = field(default_factory=dict)
    """What works in their place."""
    works: tuple[str, ...] = ()
    """Precisions none of whose cases fail with the settings."""

    @classmethod
    def from_json(cls, data: Any) -> CpuAnswers:
        """Read it back; raise ValueError for anything else than what was written."""
        maps = ("settings", "failed", "left", "own", "advice")
        if not isinstance(data, dict) or not all(_is_texts(data.get(name)) for name in maps):
            raise ValueError("not what was kept")
        works = data.get("works")
        if not isinstance(works, list) or not set(works) <= set(cpu_child.PRECISIONS):
            raise ValueError("not what was kept")
        return cls(**{name: data[name] for name in maps}, works=tuple(works))


def find_cpu(
    python: str | None = None,
    framework: str = "torch",
    *,
    is_asked: bool = False,
    environ: Mapping[str, str] | None = None,
    before: Callable[[], None] = lambda: None,
) -> CpuAnswers | None:
    """Return what is known of this processor, and try it where its flags are suspect; None: nobody had to look.

    Args:
        python: the ranks' interpreter; none: this one.
        is_asked: try it whatever its flags are.
        environ: the environment the children would inherit; none: this process's.
        before: called when it has to be tried, which takes seconds.
    """
    environ = os.environ if environ is None else environ
    own = {name: environ[name] for name in LIMITS if environ.get(name)}
    kept, info = Path(_KEPT).expanduser(), _read_info()
    is_wanted = is_asked or _is_suspect(info, own)
    if not is_wanted and not kept.is_dir():
        return None
    python = shutil.which(python or sys.executable) or python or sys.executable
    place = kept / f"{_mark(info, python, framework, own)}.json"
    known = _tried.get(place) or _read(place)
    if known is not None or not is_wanted:
        return known
    before()
    found = try_cpu(python, framework, environ)
    if found is not None:
        _tried[place] = found
        _keep(place, found)
    return found


_tried: Final[dict[Path, CpuAnswers]] = {}
"""What this process has tried itself: a home that cannot be written must not make it try again."""


def cpu_environment(
    python: str | None = None, framework: str = "torch", *, is_on_cpu: bool | None = None
) -> dict[str, str]:
    """Return this process's environment with what a child that computes needs besides.

    Args:
        is_on_cpu: whether it computes on the CPU; none: where there is nothing better.
    """
    is_on_cpu = not has_devices() if is_on_cpu is None else is_on_cpu
    found = find_cpu(python, framework) if is_on_cpu else None
    return {**os.environ, **(found.settings if found else {})}


def has_devices() -> bool:
    """Say, without asking a driver, whether there may be something better here to compute with than the CPU."""
    return any(Path("/dev", name).exists() for name in ("nvidiactl", "kfd", "davinci_manager", "dxg"))


def try_cpu(python: str, framework: str, environ: Mapping[str, str]) -> CpuAnswers | None:
    """Try what an interpreter computes here; None: it gave no answer (it is broken, or has no such framework)."""
    own = {name: environ[name] for name in LIMITS if environ.get(name)}
    ladder = _MINDSPORE_LADDER if framework == "mindspore" else LADDER
    tried = _ask(python, framework, environ, _beside(own, ladder) if own else ladder)
    if not tried:
        return None
    failed, works = _failures(tried[0].answers), _working(tried[0].answers)
    if not failed:
        return CpuAnswers(works=works)
    if own and not _failures(tried[-1].answers):  # his value is kept, and what others need comes beside it
        return CpuAnswers(settings=tried[-1].setting, failed=failed, works=_working(tried[-1].answers))
    bare = {name: value for name, value in environ.items() if name not in own}
    if own:
        tried = _ask(python, framework, bare, ladder) or tried
    if "import" in tried[-1].answers:
        # What a library reads when it is imported is set before: by a process of its own for each setting.
        tried += [one for limits in (_AVX2, _SSE4) for one in _ask(python, framework, {**bare, **limits}, [limits])]
    best = min(tried, key=lambda one: len(_failures(one.answers)))
    names = {*best.setting, *([_OLD_ONEDNN] if ONEDNN in best.setting else [])}
    is_better = len(_failures(best.answers)) < len(failed)  # or to give up his value would cure nothing
    if own and is_better and (not best.setting or names & set(own)):
        return CpuAnswers(failed=failed, left=failed, own=own, advice=best.setting, works=works)
    return CpuAnswers(settings=best.setting, failed=failed, left=_failures(best.answers), works=_working(best.answers))


def _beside(own: Mapping[str, str], ladder: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Return the settings that leave the user's own values alone, each once."""
    taken = {*own, *([ONEDNN] if _OLD_ONEDNN in own else [])}
    left = ({name: value for name, value in setting.items() if name not in taken} for setting in ladder)
    return [dict(pairs) for pairs in dict.fromkeys(tuple(sorted(setting.items())) for setting in ({}, *left))]


@dataclass(frozen=True, slots=True)
class _Tried:
    setting: Mapping[str, str]
    answers: Mapping[str, str]


def _ask(python: str, framework: str, environ: Mapping[str, str], ladder: Sequence[Mapping[str, str]]) -> list[_Tried]:
    """Return the settings that were tried and what came of them; an import that ends the process is a case too."""
    source = Path(cpu_child.__file__).read_text(encoding="utf-8")
    question = {"framework": framework, "ladder": [dict(one) for one in ladder]}
    env = {**environ, "CUDA_VISIBLE_DEVICES": "", "GLOG_v": "4"}
    try:
        told = ask(python, question, source=source, within_s=_DEADLINE_S, env=env)
        lines = [json.loads(line) for line in told.said.splitlines()]
    except (OSError, ValueError):
        return []
    if told.exit_code is None:
        return []
    if not lines and told.exit_code < 0:
        return [_Tried(ladder[0], {"import": cpu_child.name_signal(-told.exit_code)})]
    return [_Tried(line["setting"], line["answers"]) for line in lines[1:]]


def _failures(answers: Mapping[str, str]) -> dict[str, str]:
    return {case: answer for case, answer in answers.items() if cpu_child.is_failure(answer)}


def _working(answers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the precisions with which matrices can be multiplied and nothing fails."""
    bad = {case.partition(" ")[0] for case in _failures(answers)}
    return tuple(name for name in cpu_child.PRECISIONS if name not in bad and answers.get(f"{name} linear") == "ok")


def _is_suspect(info: Mapping[str, str], own: Mapping[str, str]) -> bool:
    """Whether the flags name instructions that hypervisors are known to forbid, and nobody has told both libraries
    that use them to leave them alone."""
    limit = own.get(ONEDNN, own.get(_OLD_ONEDNN, "")).upper()
    is_limited = limit in _NO_AMX and own.get(MKL, "").upper() in _MKL_NO_AMX
    return not is_limited and any(flag.startswith("amx_") for flag in info.get("flags", "").split())


def _read_info() -> dict[str, str]:
    """Return the first processor's lines of /proc/cpuinfo, without those that change by the moment."""
    try:
        with CPUINFO.open(encoding="utf-8", errors="replace") as file:
            first = file.read(_INFO_BYTES).partition("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs if key.strip() not in ("cpu MHz", "bogomips")}


def _mark(info: Mapping[str, str], python: str, framework: str, own: Mapping[str, str]) -> str:
    """Return a name for all that an answer depends on: processor, kernel, hypervisor, framework, the user's values."""
    identity = [_read_text(Path("/sys", name)) for name in _HYPERVISOR]
    facts = [_SCHEMA, dict(info), platform.uname()[2:], identity, python, _version_text(python, framework), dict(own)]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


def _version_text(python: str, framework: str) -> str:
    """Return the framework's version file: that of an interpreter elsewhere is found by the usual folders."""
    if Path(python).absolute() == Path(sys.executable).absolute():
        spec = importlib.util.find_spec(framework)
        return _read_text(Path(spec.origin).with_name("version.py")) if spec and spec.origin else ""
    found = Path(python).absolute().parent.parent.glob(f"lib*/python3*/*-packages/{framework}/version.py")
    return "".join(map(_read_text, sorted(found)))


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _read(place: Path) -> CpuAnswers | None:
    try:
        return CpuAnswers.from_json(json.loads(place.read_text(encoding="utf-8")))
    except (OSError, ValueError):  # never tried, or damaged
        return None


def _keep(place: Path, found: CpuAnswers) -> None:
    part = place.with_suffix(f".{os.getpid()}")
    with contextlib.suppress(OSError):  # a home that cannot be written costs the next run a few seconds, no more
        place.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(asdict(found)), encoding="utf-8")
        part.replace(place)


def _is_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
