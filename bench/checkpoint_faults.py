"""What a checkpoint survives, and what its safety costs. One table, then one line of JSON.

    python bench/checkpoint_faults.py [--flips 500] [--mib 128] [--rounds 5]

Faults: every flipped bit, cut, swapped, foreign, missing or extra file must be found before use, and the older
checkpoint used instead; a process that dies at any call of a save must leave the old or the new one.
Cost: a save (copy, write, fsync, commit, read back and verify) beside a plain write and fsync of the same bytes, and
the time the loop waits beside a plain copy of the same tensors; interleaved rounds, medians.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(HERE / "src"), str(HERE / "tests")]

import torch  # noqa: E402 - after the path

from fakes.disks import (  # noqa: E402
    Crash,
    Keep,
    PowerCut,
    build,
    disk_dying_at,
    make_checkpoint,
    make_writer,
    save_step,
    start_step,
)
from headway.checkpoint import find_resumable  # noqa: E402
from headway.checkpoint.torch_state import Saver, split_replicated  # noqa: E402


def count_flips(root: Path, num: int, chance: random.Random) -> int:
    """Flip one bit at a time, in every file and every kind of byte; return how many were found before use."""
    old, new = make_checkpoint(root, 10), make_checkpoint(root, 20)
    files = sorted(new.iterdir())
    found = 0
    for number in range(num):
        file = files[number % len(files)]
        data = bytearray(file.read_bytes())
        position = pick(data, number, chance) if file.name == "manifest.json" else chance.randrange(len(data))
        data[position] ^= 1 << chance.randrange(8)
        whole = file.read_bytes()
        file.write_bytes(data)
        resumable = find_resumable(root, threads=1)
        found += resumable.path == old and resumable.skipped[0][0] == new
        file.write_bytes(whole)
    assert find_resumable(root).path == new
    return found


def pick(data: bytearray, number: int, chance: random.Random) -> int:
    """Choose a byte of the manifest, taking its kinds in turn: blanks, quotes, brackets, digits, letters, the rest."""
    kinds: tuple[Callable[[str], bool], ...] = (
        str.isspace, lambda c: c == '"', lambda c: c in "{}[]:,", str.isdigit, str.isalpha, lambda c: not c.isalnum(),
    )  # fmt: skip
    kind = kinds[(number // 4) % len(kinds)]
    return chance.choice([place for place, byte in enumerate(data) if kind(chr(byte))])


def count_files(root: Path) -> tuple[int, int]:
    """Damage whole files in every way; return how many ways and how many were found."""
    old, new, other = (make_checkpoint(root, step) for step in (10, 30, 20))
    shutil.move(other, root / "other")
    a, b = new / "rank-00000.safetensors", new / "rank-00001.safetensors"

    def swap() -> None:
        a.rename(new / "x")
        b.rename(a)
        (new / "x").rename(b)

    ways: list[Callable[[], object]] = [
        swap,
        lambda: shutil.copy(root / "other" / a.name, a),
        lambda: shutil.copy(root / "other" / "manifest.json", new),
        lambda: [shutil.copy(root / "other" / name, new) for name in ("manifest.json", "manifest.b3")],
        lambda: (new / "extra").touch(),
        lambda: (a.unlink(), a.symlink_to(root / "other" / a.name)),
        *(lambda file=file: file.unlink() for file in sorted(new.iterdir())),
        *(lambda f=f, n=n: os.truncate(f, n * f.stat().st_size // 4) for f in sorted(new.iterdir()) for n in range(4)),
    ]
    found = 0
    for damage in ways:
        shutil.copytree(new, root / "whole")
        damage()
        resumable = find_resumable(root, threads=1)
        found += resumable.path == old and len(resumable.skipped) == 1
        shutil.rmtree(new)
        (root / "whole").rename(new)
    return len(ways), found


def count_deaths(root: Path) -> tuple[int, int]:
    """Die at every call of a save; return how often, and how often the old or the new was found, whole."""
    deaths = safe = 0
    for number in range(1, 500):
        place, events = root / str(number), []
        make_checkpoint(place, 10, world_size=1)
        writer = make_writer(place, events, disk=disk_dying_at(number), retention=Keep(keep_last=1))
        start_step([writer], 20)
        try:
            writer.wait(60)
        except Crash:
            deaths += 1
        else:
            return deaths, safe
        found = find_resumable(place, threads=1)
        told = any(event["kind"] == "checkpoint_committed" for event in events)
        safe += not found.skipped and found.manifest is not None and found.manifest.step >= (20 if told else 10)
    raise AssertionError("no save came to its end")


def count_cuts(root: Path, num: int) -> tuple[int, int]:
    """Cut the power at every moment of two saves; return how many states, and how many kept what was committed."""
    power, chance = PowerCut(), random.Random(5)
    writer = make_writer(root / "run", [], disk=power.disk(), report=power.mark, retention=Keep(keep_last=1))
    for step in (10, 20):
        save_step([writer], step)
    states = safe = 0
    for moment in range(len(power.log) + 1):
        told = [entry[1] for entry in power.log[:moment] if entry[0] == "event"]
        committed = max((event["step"] for event in told if event["kind"] == "checkpoint_committed"), default=0)
        for state in power.states(root / "run", moment, chance, num):
            states += 1
            place = root / f"cut-{states}"
            build(state, place)
            found = find_resumable(place, threads=1)
            safe += (found.manifest.step if found.manifest else 0) >= committed
            shutil.rmtree(place)
    return states, safe


def measure_cost(root: Path, mib: int, rounds: int) -> dict[str, float]:
    """Return medians: a plain write, a save, the loop's stand-still, a plain copy; in seconds."""
    state = {f"model/{n}": torch.randn(mib * 4, 1 << 14) for n in range(4)}
    total = sum(tensor.nbytes for tensor in state.values())
    assert total == mib << 20
    plain = torch.empty(total, dtype=torch.uint8)
    saver = Saver(
        root / "saves", rank=0, world_size=1, attempt=1, retention=Keep(keep_last=1), report=lambda event: None
    )
    times: dict[str, list[float]] = {"raw_write_s": [], "save_s": [], "stall_s": [], "raw_copy_s": []}
    for number in range(rounds + 1):
        began = time.perf_counter()
        with (root / "raw").open("wb", buffering=0) as file:
            data = memoryview(plain.numpy())
            for start in range(0, total, 16 << 20):
                file.write(data[start : start + (16 << 20)])
            os.fsync(file.fileno())
        raw_s = time.perf_counter() - began
        (root / "raw").unlink()
        began, at = time.perf_counter(), 0
        for tensor in state.values():
            plain[at : at + tensor.nbytes].view(tensor.dtype).view(tensor.shape).copy_(tensor)
            at += tensor.nbytes
        copy_s = time.perf_counter() - began
        began = time.perf_counter()
        stall_s = saver.save(number, split_replicated(state, 0, 1), {})
        assert stall_s is not None and saver.wait() and saver.last_committed == number
        save_s = time.perf_counter() - began
        if number:  # the first round makes the buffers
            for name, value in zip(times, (raw_s, save_s, stall_s, copy_s), strict=True):
                times[name].append(value)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> int:
    """Run all parts and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flips", type=int, default=500)
    parser.add_argument("--cuts", type=int, default=6, help="random states beside the two extremes at each moment")
    parser.add_argument("--mib", type=int, default=128, help="size of the state whose save is timed")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headway-bench-", dir=os.environ.get("HEADWAY_BENCH_DIR")) as place:
        root = Path(place)
        flips = count_flips(root / "flips", given.flips, random.Random(given.seed))
        files, files_found = count_files(root / "files")
        deaths, deaths_safe = count_deaths(root / "deaths")
        cuts, cuts_safe = count_cuts(root, given.cuts)
        cost = measure_cost(root, given.mib, given.rounds)
    rows = [
        ("bits flipped, found before use", given.flips, flips),
        ("files cut, swapped, foreign, missing, extra", files, files_found),
        ("deaths at a call of the save, old or new found whole", deaths, deaths_safe),
        ("states after a power cut, committed step found", cuts, cuts_safe),
    ]
    for name, num, good in rows:
        print(f"{name:<56}{good:>6} of {num:<6}{'' if good == num else 'FAILED'}")
    ratio, stall = cost["save_s"] / cost["raw_write_s"], cost["stall_s"] / cost["raw_copy_s"]
    print(f"{'durable, verified save beside write + fsync, ' + str(given.mib) + ' MiB':<56}{ratio:>6.2f} x")
    print(f"{'stand-still of the loop beside a plain copy':<56}{stall:>6.2f} x")
    facts = {
        "flips": given.flips, "found": flips, "files": files, "files_found": files_found, "deaths": deaths,
        "deaths_safe": deaths_safe, "power_cuts": cuts, "power_cuts_safe": cuts_safe,
        "save_to_raw_write": round(ratio, 3), "stall_to_copy": round(stall, 3),
        **{name: round(value, 4) for name, value in cost.items()},
    }  # fmt: skip
    print(json.dumps(facts))
    return 0 if all(num == good for _, num, good in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
