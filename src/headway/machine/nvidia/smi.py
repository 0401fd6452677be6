"""GPU readings from the text of nvidia-smi: the second source, where the driver's library cannot be loaded."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace

from headway.machine.from_text import gpus_from, gpus_of
from headway.machine.nvidia.query import parse_query
from headway.machine.record import Gpu, GpuProcess
from headway.machine.text import read_dump
from headway.machine.vendors import GpuReading, age_of, describe_process

_DEADLINE_S = 15.0
"""Without persistence mode nvidia-smi wakes every GPU first, about a second each."""
_GPU_KEYS = (
    "index,uuid,name,driver_version,memory.total,memory.free,compute_cap,utilization.gpu,temperature.gpu,pci.bus_id"
)
_APP_KEYS = "gpu_uuid,pid,process_name,used_gpu_memory"
_LOST = re.compile(r"unable to determine the device handle for gpu ?\S*? ?([0-9a-f]+:[0-9a-f]+:[0-9a-f.]+)", re.I)


class SmiDriver:
    """Runs nvidia-smi and reads its CSV."""

    def read(self) -> GpuReading | None:
        """Return the reading, or None when there is no nvidia-smi here."""
        program = shutil.which("nvidia-smi")
        if program is None:
            return None
        try:
            gpus = _run(program, f"--query-gpu={_GPU_KEYS}", "--format=csv")
            apps = _run(program, f"--query-compute-apps={_APP_KEYS}", "--format=csv")
            whole, topology = _run(program, "-q"), _run(program, "topo", "-m")
        except subprocess.TimeoutExpired:
            return GpuReading(source="nvidia-smi", trouble=f"nvidia-smi gave no answer within {_DEADLINE_S:.0f} s")
        except OSError as err:
            return GpuReading(source="nvidia-smi", trouble=f"nvidia-smi: {err.strerror or err}")
        return add_health(parse_smi(gpus, apps), f"{whole}\n{topology}")


def add_health(reading: GpuReading, text: str) -> GpuReading:
    """Return the reading with what the long form and the matrix of links tell beside it, in the same order of GPUs."""
    dump = read_dump(text)
    found = dump.parts.get("nvidia_smi_q", {})
    healths = [gpu.health for gpu in gpus_of(dump)]
    gpus = reading.gpus
    if len(healths) == len(gpus):
        gpus = tuple(replace(gpu, health=health) for gpu, health in zip(gpus, healths, strict=True))
    matrix = dump.parts.get("topology", {})
    links = {pair.replace("GPU", ""): kind for kind, pairs in (matrix.get("pairs") or {}).items() for pair in pairs}
    return replace(reading, gpus=gpus, cuda=reading.cuda or found.get("cuda"), links=links)


def _run(program: str, *args: str) -> str:
    done = subprocess.run(
        [program, *args],
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        timeout=_DEADLINE_S,
        check=False,
    )
    return done.stdout + done.stderr


def parse_smi(gpu_text: str, app_text: str = "") -> GpuReading:
    """Read the CSV of --query-gpu and --query-compute-apps; columns are found by name, so any order is accepted."""
    facts = parse_query(f"{gpu_text}\n{app_text}") or {}
    gpus = [replace(gpu, processes=tuple(_describe(one) for one in gpu.processes)) for gpu in gpus_from(facts)]
    for _ in _LOST.findall(gpu_text):
        # The line names a bus address only; the lost one gets the first number nobody has.
        taken = {gpu.physical for gpu in gpus}
        free = next(number for number in range(len(gpus) + 1) if number not in taken)
        gpus.append(Gpu(index=free, physical=free, lost=True))
    said = gpu_text.strip()
    if not gpus and said and "no devices were found" not in said.lower():
        return GpuReading(source="nvidia-smi", trouble=" ".join(said.split())[:300])
    return GpuReading(
        source="nvidia-smi",
        driver=next((one.get("driver") for one in facts.get("gpus", ())), None),
        gpus=tuple(sorted(gpus, key=lambda gpu: gpu.physical)),
    )


def _describe(one: GpuProcess) -> GpuProcess:
    """Return a process with its owner and age; the list names those of this container only."""
    user, name = describe_process(one.pid)
    return replace(one, user=user, name=name or one.name, kind="C", age_s=age_of(one.pid))
