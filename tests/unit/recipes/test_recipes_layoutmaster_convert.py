import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from headway.errors import CheckError
from headway.recipes.layoutmaster import unpickle
from headway.recipes.layoutmaster.convert import convert
from headway.recipes.layoutmaster.section import LEVELS


def _trajectories(make):
    shapes = {"start_layout": (4, 6), "target_layout": (4, 6), "element_mask": (4,)}
    shapes |= {"linear_trajectory": (5, 4, 6), "smooth_trajectory": (5, 4, 6)}
    told = {"poster_name": "A", "num_elements": 4}
    return {
        f"noise_{level:.1f}": {**{name: make(torch.rand(shape)) for name, shape in shapes.items()}, "metadata": told}
        for level in LEVELS
    }


def _same(tensors, wanted):
    parts = {f"{level}/{name}": part for level, parts in wanted.items() for name, part in parts.items()}
    assert set(tensors) == {name for name in parts if not name.endswith("metadata")}
    assert all(np.array_equal(tensors[name], np.asarray(parts[name])) for name in tensors)


@pytest.mark.parametrize("kind", ["pickled tensors", "torch.save", "pickled arrays"])
def test_what_the_original_wrote_comes_out_number_by_number(tmp_path, kind):
    wanted = _trajectories(torch.Tensor.numpy if kind == "pickled arrays" else lambda tensor: tensor)
    file = tmp_path / "trajectories.pkl"
    if kind == "torch.save":
        torch.save(wanted, file)
    else:
        file.write_bytes(pickle.dumps(wanted))
    _same(load_file(convert(file)), wanted)


class _Call:
    def __init__(self, function, *args):
        self.function, self.args = function, args

    def __reduce__(self):
        return self.function, self.args


def _attacks(mark):
    yield _Call(os.system, f"touch {mark}")
    yield _Call(eval, f"open({str(mark)!r}, 'w')")
    yield _Call(subprocess.check_call, ["touch", str(mark)])
    yield _Call(getattr, "text", "upper")
    # A storage is a pickle of its own inside, and the original loader would run that one too.
    yield _Call(torch.storage._load_from_bytes, pickle.dumps(_Call(os.system, f"touch {mark}")))


@pytest.mark.parametrize("number", range(5))
def test_a_pickle_that_calls_anything_is_refused_and_does_nothing(tmp_path, number):
    mark, file = tmp_path / "mark", tmp_path / "trajectories.pkl"
    file.write_bytes(pickle.dumps({"noise_0.1": {"start_layout": list(_attacks(mark))[number]}}))
    with pytest.raises(CheckError) as refused:
        convert(file)
    assert refused.value.code == "layoutmaster/bad-pickle" and "it names" in refused.value.text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["trajectories.pkl"]


@pytest.mark.parametrize("raw", [b"", b"nothing", b"PK\x03\x04", pickle.dumps([1]), pickle.dumps({"noise_0.1": 3})])
def test_what_is_no_pickle_of_trajectories_is_refused(tmp_path, raw):
    file = tmp_path / "trajectories.pkl"
    file.write_bytes(raw)
    with pytest.raises(CheckError) as refused:
        convert(file)
    assert refused.value.code == "layoutmaster/bad-pickle"


def test_numbers_that_are_not_finite_or_missing_get_no_name(tmp_path):
    wanted = _trajectories(lambda tensor: tensor)
    wanted["noise_0.3"]["start_layout"][0, 0] = float("nan")
    file = tmp_path / "trajectories.pkl"
    file.write_bytes(pickle.dumps(wanted))
    with pytest.raises(CheckError) as refused:
        convert(file)
    assert refused.value.code == "layoutmaster/bad-trajectories"
    del wanted["noise_0.3"]
    file.write_bytes(pickle.dumps(wanted))
    with pytest.raises(CheckError, match=r"noise_0\.3"):
        convert(file)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["trajectories.pkl"]


_ESCAPES = """
import os, socket, sys
sys.path.insert(0, sys.argv[1])
import unpickle
unpickle.limit()
unpickle.seal()
tries = {
    "open": lambda: open("/etc/passwd"),
    "socket": lambda: socket.socket(),
    "fork": os.fork,
    "exec": lambda: os.execv("/bin/true", ["true"]),
    "kill": lambda: os.kill(os.getppid(), 0),
    "mkdir": lambda: os.mkdir("/tmp/headway-escape"),
}
for name, escape in tries.items():
    try:
        escape()
    except PermissionError:
        continue
    sys.stdout.write(name + " ")
sys.stdout.write("end")
"""


def test_the_sealed_process_cannot_open_connect_start_or_signal_anything():
    words = [sys.executable, "-I", "-c", _ESCAPES, str(Path(unpickle.__file__).parent)]
    assert subprocess.run(words, capture_output=True, text=True, timeout=60, check=False).stdout == "end"


def test_the_command_converts_a_folder_and_leaves_the_pickles(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "trajectories.pkl").write_bytes(pickle.dumps(_trajectories(lambda tensor: tensor)))
    words = [sys.executable, "-m", "headway.recipes.layoutmaster.convert", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and "2 of 2" in done.stdout
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["trajectories.pkl", "trajectories.safetensors"]
