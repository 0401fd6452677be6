"""What the guides promise of GPUs, shown with GPUs that are not here."""

from __future__ import annotations

import importlib

import pytest

from fakes.machines import four_4090, gpu, machine
from headway import guide
from headway.config import RunConfig
from headway.guide.monitor import machine_lines
from headway.recipes.layoutmaster import guide as layoutmaster
from headway.recipes.layoutmaster.section import LayoutMasterSection

GPUS = (gpu(0, utilisation=97, temperature_c=71), gpu(1, utilisation=91))


@pytest.fixture
def has(monkeypatch):
    def put(*gpus):
        for name in ("headway.guide", "headway.guide.monitor", "headway.guide.resources", "headway.guide.size"):
            monkeypatch.setattr(importlib.import_module(name), "inspect_machine", lambda *_: machine(gpus))

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return put


def test_a_validation_of_layoutmaster_says_how_busy_the_gpus_are(has):
    shape = guide.Shape(batch=8, in_epoch=8, steps=10, samples=80)
    for gpus, line in ((GPUS, "✅ GPU utilisation: 94%"), (four_4090(), "❌ GPU utilisation: 0%")):
        has(*gpus)
        voice = layoutmaster.voice(RunConfig(task=LayoutMasterSection()), 8, 2)
        said = voice.validation(shape, 1, 8, {"loss": 0.5, "mean_iou": 0.7})
        assert said is not None and said.splitlines()[1] == line


def test_the_devices_are_checked_with_name_and_memory_before_the_start(has, tmp_path):
    has(GPUS[0], gpu(1, gib=16))
    log = guide.GuideLog(tmp_path / "log", is_levelled=True)
    guide.check_devices(log, want=2, want_bytes=20 * 10**9)
    log.close()
    _, large, small = (tmp_path / "log").read_text().splitlines()
    assert large.startswith("[SUCCESS]") and small.startswith("[WARN]") and "18.6 GiB" in small


def test_the_monitor_shows_use_memory_and_temperature_of_every_gpu(has):
    has(*GPUS)
    said = [line for line in machine_lines(None, {}) if line.startswith("GPU ")]
    assert said == [
        "GPU 0 NVIDIA H100 80GB HBM3: utilisation 97%, free memory 79.5 GiB, 71 °C",
        "GPU 1 NVIDIA H100 80GB HBM3: utilisation 91%, free memory 79.5 GiB, 35 °C",
    ]
