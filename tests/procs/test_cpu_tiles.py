"""A processor with AMX that may not use it, made from one that may: what the probe finds is what really works."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headway.machine.cpu import LIMITS

SOURCE = Path(__file__).parents[1] / "fakes" / "forbidden" / "tiles.c"
CC = shutil.which("cc")
INFO = Path("/proc/cpuinfo")
HAS_TILES = INFO.exists() and " amx_bf16 " in INFO.read_text()
pytestmark = pytest.mark.skipif(not HAS_TILES or CC is None, reason="needs a processor with AMX and a C compiler")

PRODUCT = "import torch; torch.nn.functional.linear(*[torch.ones(256, 256, dtype=torch.bfloat16)] * 2)"
ATTENTION = (
    "import torch; torch.nn.functional.scaled_dot_product_attention(*[torch.ones(1, 2, 256, 64).bfloat16()] * 3)"
)
TRY = """
import json, os, sys
from dataclasses import asdict
from headway.machine.cpu import try_cpu
print(json.dumps(asdict(try_cpu(sys.executable, "torch", os.environ))))
"""


@pytest.fixture(scope="module")
def forbid(tmp_path_factory):
    """Return a call that runs Python where tiles are forbidden."""
    library = tmp_path_factory.mktemp("tiles") / "tiles.so"
    subprocess.run([CC, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"], check=True)
    bare = {name: value for name, value in os.environ.items() if name not in LIMITS}

    def run(code, **limits):
        env = {**bare, "LD_PRELOAD": str(library), **limits}
        return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=280)

    if run(PRODUCT).returncode != -signal.SIGILL:
        pytest.skip("this torch multiplies without tiles here")
    return run


@pytest.mark.timeout(600)
def test_the_highest_setting_that_works_without_tiles_is_found_and_works(forbid):
    found = json.loads(forbid(TRY).stdout)
    settings = found["settings"]
    assert found["failed"]["bf16 linear"] == "SIGILL" and found["left"] == {}
    assert settings["ONEDNN_MAX_CPU_ISA"] in ("AVX10_1_512", "AVX512_CORE_FP16"), "AVX-512 is not what is forbidden"
    assert set(settings) <= {"ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS"}
    assert forbid(PRODUCT + "\n" + ATTENTION, **settings).returncode == 0


@pytest.mark.timeout(600)
def test_a_limit_of_the_users_own_stays_and_what_it_leaves_open_is_closed(forbid):
    own = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_FP16"}
    found = json.loads(forbid(TRY, **own).stdout)
    assert "ONEDNN_MAX_CPU_ISA" not in found["settings"] and (found["own"], found["left"]) == ({}, {})
    assert forbid(PRODUCT + "\n" + ATTENTION, **own, **found["settings"]).returncode == 0
