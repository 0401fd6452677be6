"""GPU readings from the text of nvidia-smi: the second source, where the driver's library cannot be loaded."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from dataclasses import replace

from headway.machine.from_text import gpus_of
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
    """Read the CSV of --query-gpu and --query-compute-apps; columns are found by name, so any order will do."""
    rows = _rows(gpu_text, needs="name")
    gpus = [_gpu(row, place) for place, row in enumerate(rows)]
    for _ in _LOST.findall(gpu_text):
        # The line names a bus address only; the lost one gets the first number nobody has.
        taken = {gpu.physical for gpu in gpus}
        free = next(number for number in range(len(gpus) + 1) if number not in taken)
        gpus.append(Gpu(index=free, physical=free, lost=True))
    said = gpu_text.strip()
    if not gpus and said and "no devices were found" not in said.lower():
        return GpuReading(source="nvidia-smi", trouble=" ".join(said.split())[:300])
    held = _processes(app_text)
    return GpuReading(
        source="nvidia-smi",
        driver=next((_text(row.get("driver_version")) for row in rows), None),
        gpus=tuple(
            replace(gpu, processes=tuple(held.get(gpu.uuid or "", ())))
            for gpu in sorted(gpus, key=lambda g: g.physical)
        ),
    )


def _gpu(row: dict[str, str], place: int) -> Gpu:
    index = _whole(row.get("index"))
    number = place if index is None else index
    capability = (_text(row.get("compute_cap")) or "").split(".")
    return Gpu(
        index=number,
        physical=number,
        uuid=_text(row.get("uuid") or row.get("gpu_uuid")),
        name=_text(row.get("name")),
        total_bytes=_bytes(row.get("memory.total")),
        free_bytes=_bytes(row.get("memory.free")),
        capability=(int(capability[0]), int(capability[1])) if all(p.isdecimal() for p in capability[:2]) else None,
        utilisation=_whole(row.get("utilization.gpu")),
        temperature_c=_whole(row.get("temperature.gpu")),
        lost=any("gpu is lost" in (value or "").lower() for value in row.values()),
    )


def _processes(text: str) -> dict[str, list[GpuProcess]]:
    held: dict[str, list[GpuProcess]] = {}
    for row in _rows(text, needs="pid"):
        pid = _whole(row.get("pid"))
        if pid is None:
            continue
        user, name = describe_process(pid)
        used = _bytes(row.get("used_gpu_memory") or row.get("used_memory"))
        name = name or _text(row.get("process_name"))
        process = GpuProcess(pid=pid, user=user, name=name, held_bytes=used, kind="C", age_s=age_of(pid))
        held.setdefault(row.get("gpu_uuid") or row.get("uuid") or "", []).append(process)
    return held


def _rows(text: str, *, needs: str) -> list[dict[str, str]]:
    """Return the CSV's rows by column name without units; text around the table is passed over."""
    lines = [line for line in text.splitlines() if "," in line]
    for start, line in enumerate(lines):
        names = [name.partition("[")[0].strip() for name in line.split(",")]
        if needs in names:
            table = csv.reader(io.StringIO("\n".join(lines[start + 1 :])), skipinitialspace=True)
            return [dict(zip(names, map(str.strip, row), strict=True)) for row in table if len(row) == len(names)]
    return []


def _text(value: str | None) -> str | None:
    """Return the value; what nvidia-smi puts in brackets (`[N/A]`, `[Not Supported]`) is no reading."""
    return None if not value or value.startswith("[") or value == "N/A" else value


def _whole(value: str | None) -> int | None:
    found = re.fullmatch(r"(\d+)(?:\.\d+)?\s*[%CW]?", _text(value) or "")
    return int(found[1]) if found else None


def _bytes(value: str | None) -> int | None:
    found = re.fullmatch(r"(\d+)\s*(MiB|MB)?", _text(value) or "")
    return int(found[1]) << 20 if found else None
