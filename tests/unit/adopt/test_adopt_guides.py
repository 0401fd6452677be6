"""The five guides yield what the fact sheets know about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.adopt import is_guide, read_guide

SHARED = Path(__file__).resolve().parents[4] / "shared"

EXPECTED = {
    "nanochat": [
        ("no_effect", "env-libuv", 113),
        ("no_effect", "env-agent-store", 114),
        ("no_effect", "env-allocator-mixed", 118),
        ("no_effect", "env-cuda-home", 117),
        ("harmful", "env-personal-path", 108),
        ("no_effect", "env-overwritten", 121),
        ("harmful", "fixed-port", 122),
        ("no_effect", "env-overwritten", 123),
        ("no_effect", "env-not-torch", 138),
        ("no_effect", "env-one-thread", 200),
        ("contradictory", "guide-batch-not-divisible", 83),
        ("harmful", "guide-rate-of-large-batch", 41),
        ("no_effect", "guide-total-batch-memory", 137),
    ],
    "atlas": [
        ("harmful", "env-one-rank-for-all", 28),
        ("harmful", "env-one-rank-for-all", 29),
        ("harmful", "env-device-and-local-rank", 35),
        ("contradictory", "env-world-size", 27),
        ("harmful", "fixed-port", 15),
        ("kept", "launch-deprecated", 15),
        ("harmful", "guide-yaml-number", 105),
        ("contradictory", "guide-not-the-same", 211),
        ("harmful", "guide-rate-by-ranks", 60),
        ("harmful", "secret-in-text", 256),
        ("kept", "guide-batch-each", 45),
    ],
    "rdt": [
        ("harmful", "slip-after-backslash", 54),
        ("contradictory", "guide-batch-each-device", 64),
        ("contradictory", "guide-effective-batch", 114),
        ("kept", "guide-workers-each", 66),
        ("contradictory", "guide-card-memory", 205),
        ("contradictory", "guide-step-time", 202),
        ("kept", "env-transport", 301),
        ("kept", "env-loud", 300),
    ],
    "layoutmaster": [
        ("harmful", "guide-json-comment", 35),
        ("harmful", "guide-data-parallel", 45),
        ("kept", "guide-batch-total", 35),
        ("no_effect", "guide-accumulation", 47),
        ("no_effect", "guide-utilisation", 71),
        ("contradictory", "guide-speed", 101),
        ("harmful", "guide-personal-folder", 12),
    ],
    "tfnet": [
        ("kept", "guide-conda", 25),
        ("harmful", "guide-personal-folder", 31),
        ("kept", "guide-rate-rule", 171),
    ],
}
ENTRIES = {
    "nanochat": "./train_dual_gpu.sh",
    "atlas": "atlas/train.py",
    "rdt": "main.py",
    "layoutmaster": "train.py",
    "tfnet": "train_tfnet_gpu.py",
}


def read(name: str):
    path = SHARED / "guides" / f"{name}.md"
    if not path.is_file():
        pytest.skip(f"NOT TESTED: the reference guides are not beside the repository ({path.parent})")
    return read_guide(path.read_text(encoding="utf-8"), torch=(2, 13))


@pytest.mark.shared
@pytest.mark.parametrize("name", EXPECTED)
def test_a_guide_yields_the_findings_of_its_fact_sheet(name):
    found = {(one.verdict, one.code.removeprefix("adopt/"), one.line) for one in read(name).findings}
    assert [one for one in EXPECTED[name] if one not in found] == []


@pytest.mark.shared
@pytest.mark.parametrize("name", EXPECTED)
def test_the_launch_that_says_most_counts(name):
    assert read(name).meaning.launch.entry.name == ENTRIES[name]


@pytest.mark.shared
def test_what_is_right_in_a_guide_is_not_called_wrong():
    batches = [one for one in read("nanochat").findings if one.code == "adopt/guide-batch-not-divisible"]
    assert [one.line for one in batches] == [83]
    assert not [one for one in read("atlas").findings if one.code == "adopt/guide-product"]


GUIDE = """# Train

## Start

```bash
export USE_LIBUV=0
```

```bash
accelerate launch --num_processes 4 train.py --train_batch_size=8
```

| what | 1x 3090 | 4x 3090 |
|---|---|---|
| Batch Size | 8 | 32 |
| step time | 4 s | 1.2 s |
| memory | 30 GB | 30 GB |

8 x 4 = 33

```yaml
lr: 1e-4
```
"""


def test_a_guide_of_ones_own_is_read_in_the_same_way():
    found = {(one.code.removeprefix("adopt/"), one.line) for one in read_guide(GUIDE).findings}
    assert {
        ("env-libuv", 6),
        ("guide-card-memory", 17),
        ("guide-step-time", 16),
        ("guide-product", 19),
        ("guide-yaml-number", 22),
    } <= found


def test_exports_of_one_block_belong_to_the_launch_of_another():
    assert read_guide(GUIDE).meaning.launch.env == {"USE_LIBUV": "0"}


def test_a_script_is_not_taken_for_a_guide():
    assert is_guide(GUIDE) and is_guide("x", "README.md")
    assert not is_guide("#!/bin/bash\n# run\ntorchrun t.py\n", "run.sh")
