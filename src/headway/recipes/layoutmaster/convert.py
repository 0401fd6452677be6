"""Turns `trajectories.pkl` into `trajectories.safetensors`, each in a sealed process of its own.

`python -m headway.recipes.layoutmaster.convert DATA_ROOT`. A pickle is a program; see unpickle.py for what it may do
here. What comes back is read as plain numbers and checked before it gets its name. Pickles are left where they are.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
from safetensors import SafetensorError
from safetensors.numpy import load

from headway.errors import CheckError
from headway.messages import say
from headway.recipes.layoutmaster.trajectory import FILE, PICKLE, check_trajectories, write_trajectories

_READER = Path(__file__).with_name("unpickle.py")
_WAIT_S = 120.0
_NOT_SEALED, _REFUSED = 3, 4


def convert(pickle: Path) -> Path:
    """Convert one pickle beside itself; return the new file."""
    answer = _unpickle(pickle)
    try:
        tensors = load(answer)
    except SafetensorError as err:
        raise CheckError("layoutmaster/bad-pickle", file=pickle, why=err, root=pickle.parent.parent) from err
    header = json.loads(answer[8 : 8 + int.from_bytes(answer[:8], "little")])
    check_trajectories(tensors, None, pickle)
    return write_trajectories(pickle.parent, tensors, header.get("__metadata__", {}))


def _unpickle(pickle: Path) -> bytes:
    root = pickle.parent.parent
    with pickle.open("rb") as file:
        try:
            child = subprocess.run(
                [sys.executable, "-I", "-B", str(_READER)],
                stdin=file,
                capture_output=True,
                timeout=_WAIT_S,
                check=False,
                close_fds=True,
                cwd="/",
                # One thread: each of numpy's would want address space of its own.
                env={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "LC_ALL": "C.UTF-8"},
            )
        except subprocess.TimeoutExpired as err:
            why = f"it was not read within {_WAIT_S:.0f} s"
            raise CheckError("layoutmaster/bad-pickle", file=pickle, why=why, root=root) from err
    if child.returncode == _NOT_SEALED:
        raise CheckError("layoutmaster/no-seal", why=child.stdout.decode("utf-8", "replace"), root=root)
    if child.returncode != 0:
        said = child.stdout if child.returncode == _REFUSED else child.stderr[-300:]
        why = said.decode("utf-8", "replace").strip() or f"its reader ended with {child.returncode}"
        raise CheckError("layoutmaster/bad-pickle", file=pickle, why=why, root=root)
    return child.stdout


@click.command(name="convert")
@click.argument("data_root", type=click.Path(path_type=Path, exists=True, file_okay=False))
def main(data_root: Path) -> None:
    """Convert every trajectories.pkl below a folder that has no trajectories.safetensors beside it."""
    pickles = [file for file in sorted(data_root.glob(f"*/{PICKLE}")) if not (file.parent / FILE).exists()]
    done = 0
    for pickle in pickles:
        try:
            convert(pickle)
            done += 1
        except CheckError as err:
            click.echo(str(err), err=True)
    click.echo(say("layoutmaster/converted", num=done, total=len(pickles), folder=data_root))
    sys.exit(0 if done == len(pickles) else 3)


if __name__ == "__main__":
    main()
