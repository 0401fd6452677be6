"""What is installed: `nvcc --version`, `torch.utils.collect_env`, `ds_report`, `accelerate env`, `docker info`."""

from __future__ import annotations

import re

from headway.machine.text.values import Facts, count_or_none, number, text_or_none

_NVCC = re.compile(r"release (\d+\.\d+), V(\d[\d.]*\d)")


def parse_nvcc(text: str) -> Facts | None:
    """Return the CUDA toolkit's version, or None."""
    found = _NVCC.search(text)
    return {"nvcc_release": found[1], "nvcc_version": found[2]} if found else None


_COLLECT = {
    "torch": "PyTorch version",
    "debug_build": "Is debug build",
    "torch_cuda": "CUDA used to build PyTorch",
    "torch_rocm": "ROCM used to build PyTorch",
    "os": "OS",
    "cuda_available": "Is CUDA available",
    "cuda_runtime": "CUDA runtime version",
    "driver": "Nvidia driver version",
}
_PACKAGE = re.compile(r"^\[(pip3?|conda)\]\s+(\S.*?)\s*$", re.M)
_TORCH_PACKAGE = re.compile(r"(?:torch|pytorch|cudatoolkit)\b")
_VISION = re.compile(r"^\[(?:pip3?|conda)\]\s+torchvision(?:==|\s+)\(?([^\s)]+)", re.M)


def parse_collect_env(text: str) -> Facts | None:
    """Return the framework and what it sees, or None when this is not of collect_env."""
    marks = ("CUDA used to build PyTorch", "Is debug build")
    if not re.search(r"^\s*PyTorch version\s*:", text, re.M) or not any(mark in text for mark in marks):
        return None
    facts: Facts = {}
    for name, key in _COLLECT.items():
        found = re.search(rf"^\s*{re.escape(key)}[ \t]*:[ \t]*(.*?)\s*$", text, re.M)
        if found:
            facts[name] = found[1]
    python = re.search(r"^\s*Python version\s*:\s*(\S+)", text, re.M)
    if python:
        facts["python"] = python[1]
    packages = [(where, " ".join(what.split())) for where, what in _PACKAGE.findall(text)]
    facts["gpus"] = _listed_gpus(text)
    facts["pip_conda_torch"] = [f"{where}: {what}" for where, what in packages if _TORCH_PACKAGE.match(what)]
    vision = _VISION.search(text)
    facts["torchvision"] = vision[1] if vision else None
    facts["is_wsl"] = "microsoft" in text.lower() and "wsl" in text.lower()
    return facts


def _listed_gpus(text: str) -> list[Facts]:
    _, *rest = re.split(r"GPU models and configuration[ \t]*:[ \t]*", text, maxsplit=1)
    gpus: list[Facts] = []
    for line in rest[0].splitlines() if rest else ():
        found = re.match(r"^\s*GPU (\d+): (\S.*?)\s*$", line)
        if found:
            gpus.append({"index": int(found[1][:9]), "name": found[2].partition(" (UUID")[0]})
        elif (gpus and not line.startswith((" ", "\t"))) or (line.strip() and not gpus):
            break
    if gpus or not rest:
        return gpus
    # With ROCm there is one name and no number.
    alone = rest[0].partition("\n")[0].strip()
    return [{"index": 0, "name": alone}] if re.match(r"AMD|Radeon|Instinct", alone) else []


_DS_OP = re.compile(r"^[ \t]*(\w+) \.+ \S*\[(\w+)\]\S* \.+ \S*\[(\w+)\]", re.M)
_DS_KEYS = {
    "torch": "torch version",
    "deepspeed": "deepspeed info",
    "torch_cuda": "torch cuda version",
    "torch_hip": "torch hip version",
    "nvcc": "nvcc version",
    "wheel": "deepspeed wheel compiled w.",
    "dev_shm": "shared memory (/dev/shm) size",
}


def parse_ds_report(text: str) -> Facts | None:
    """Return the versions DeepSpeed reports, or None."""
    if "DeepSpeed" not in text or not re.search(r"deepspeed info \.+", text):
        return None
    facts: Facts = {}
    for name, key in _DS_KEYS.items():
        found = re.search(rf"^[ \t]*{re.escape(key)} \.+ (.*?)\s*$", text, re.M)
        if found and found[1] not in ("None", ""):
            facts[name] = found[1]
    facts["incompatible_ops"] = sorted(name for name, _, fits in _DS_OP.findall(text) if fits == "NO")
    if "torch_cuda" not in facts and "torch_hip" not in facts:
        # Intel's own builds of torch carry this tag; of older reports nothing else names the device.
        said = re.search(r"ds_accelerator to (\w+)", text)
        kind = said[1] if said else "xpu" if "cxx11.abi" in str(facts.get("torch")) else "cpu"
        facts["accelerator"] = f"{kind} (no CUDA or HIP version lines)"
    return facts


def parse_accelerate(text: str) -> Facts | None:
    """Return the versions and the default config accelerate reports, or None."""
    if not re.search(r"`?Accelerate`? version:", text):
        return None

    def value(key: str) -> str | None:
        found = re.search(rf"^\s*- {key}:\s*(.*?)\s*$", text, re.M)
        return found[1] if found else None

    torch = re.match(r"(\S+)\s*(?:\((\w+)\))?", value(r"PyTorch version \(GPU\?\)") or value("PyTorch version") or "")
    ram = number(value("System RAM"))
    others = re.search(r"^\s*- PyTorch (\w+) available:\s*True", text, re.M)
    accelerator = text_or_none(value("PyTorch accelerator")) or (others[1] if others else None)
    return {
        "accelerate": value("`?Accelerate`? version"),
        "platform": value("Platform"),
        "python": value("Python version"),
        "torch": torch[1] if torch else None,
        "torch_gpu": torch[2] if torch else None,
        "system_ram_gb": ram if isinstance(ram, float) else None,
        "gpu_type": value("GPU type"),
        "accelerator": accelerator,
        "distributed_type": value("distributed_type"),
        "num_processes": count_or_none(value("num_processes")),
        "mixed_precision": value("mixed_precision"),
    }


def parse_docker(text: str) -> Facts | None:
    """Return what matters of `docker info`: which runtimes there are and which one is taken, or None."""
    if not re.search(r"^\s*Server Version:", text, re.M):
        return None

    def value(key: str) -> str | None:
        found = re.search(rf"^\s*{key}:[ \t]*(.*?)\s*$", text, re.M)
        return text_or_none(found[1]) if found else None

    return {
        "server_version": value("Server Version"),
        "storage_driver": value("Storage Driver"),
        "cgroup_version": count_or_none(value("Cgroup Version")),
        "runtimes": (value("Runtimes") or "").split(),
        "default_runtime": value("Default Runtime"),
        "cpus": count_or_none(value("CPUs")),
        "total_memory": value("Total Memory"),
        "has_cdi_gpus": bool(re.search(r"^\s*cdi: nvidia\.com/gpu", text, re.M)),
    }
