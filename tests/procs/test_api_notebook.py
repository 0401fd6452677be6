"""A run started in a notebook: from a kernel in which torch is at work already, and outliving that kernel."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from headway import RunHandle

pytestmark = pytest.mark.slow

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

TINY = Path(__file__).parents[1] / "fakes" / "tiny"
BEFORE = "import torch; float(torch.ones(64, 64).matmul(torch.ones(64, 64)).sum())"
START = """
import headway
run = headway.train("./own", {"train.steps": 100_000, "parallel.cpus": 1})
print(run.path)
"""


def wait_until(told, what: str) -> None:
    deadline = time.monotonic() + 120
    while not told():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


@pytest.mark.filterwarnings("ignore")
def test_a_run_started_in_a_notebook_survives_its_kernel(tmp_path):
    shutil.copytree(TINY, tmp_path / "own", ignore=shutil.ignore_patterns("__pycache__"))
    cells = [nbformat.v4.new_code_cell(text) for text in (BEFORE, START)]
    book = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(book, timeout=180, resources={"metadata": {"path": str(tmp_path)}}).execute()
    (told,) = [one for one in book.cells[1].outputs if one.output_type == "stream" and one.name == "stdout"]
    run = RunHandle(Path(told.text.strip()))
    # The kernel is gone by now: execute() has ended it.
    wait_until(lambda: run.step > 0, "the first step")
    seen = run.step
    wait_until(lambda: run.step > seen, "a step after the kernel's end")
    run.stop()
    assert run.wait(60).state == "interrupted"
    assert run.exit_code == 130
