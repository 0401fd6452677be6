"""A log of anybody: the cause is found through prefixes, escapes, bars, other scripts, gigabytes and echoes."""

from __future__ import annotations

import io

import pytest

from headway.diagnosis import diagnose_log, load_rules, log_lines

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79.10 GiB"
TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    main()\n'
STEPS = "".join(f"step {n}/9000 loss 2.{n}\n" for n in range(40))


def read(text):
    return diagnose_log(io.BytesIO(text if isinstance(text, bytes) else text.encode()), load_rules())


def category(text):
    found = read(text).cause
    return found.category if found else "healthy"


@pytest.mark.parametrize(
    "prefix",
    ["", "[rank3]: ", "[default3]:", "3: ", "[1,3]<stderr>:", "(RayTrainWorker pid=77, ip=10.0.0.2) ", "  ", "│ "],
)
def test_prefixes_of_launchers_are_read_over(prefix):
    text = "".join(f"{prefix}{line}\n" for line in (TRACEBACK + OOM).splitlines())
    found = read(STEPS + text).cause
    assert (found.category, found.lines[0].number) == ("cuda-oom", 44)


def test_a_rank_is_taken_from_the_prefix():
    text = "".join(f"[rank3]: {line}\n" for line in (TRACEBACK + OOM).splitlines())
    assert read(text).cause.facts["rank"] == 3


def test_escapes_and_carriage_returns_do_not_hide_it():
    bar = "\r".join(f" {n}%|###   | {n}/100 [00:01<00:02,  1.2it/s]" for n in range(30))
    text = f"{bar}\x1b[31mRuntimeError\x1b[0m: CUDA out of memory\n"
    found = read(f"ok\n{bar}\n\x1b[31m{OOM}\x1b[0m\n").cause
    assert (found.category, found.lines[0].number) == ("cuda-oom", 3)
    assert category(text) == "cuda-oom"
    assert "\x1b" not in found.evidence


def test_other_encodings_are_read():
    chinese = f"第 3 步 损失 2.1\n{OOM}\n"
    assert category(chinese.encode("gb18030")) == "cuda-oom"
    assert category(b"\xff\xfe" + chinese.encode("utf-16-le")) == "cuda-oom"


def test_interleaved_ranks_keep_their_own_tracebacks():
    one = [f"[rank0]: {line}" for line in (TRACEBACK + "ValueError: bad shape").splitlines()]
    two = [f"[rank1]: {line}" for line in (TRACEBACK + OOM).splitlines()]
    text = "\n".join(line for pair in zip(one, two, strict=True) for line in pair)
    assert category(text) == "cuda-oom"


def test_what_follows_from_the_cause_is_only_a_consequence():
    text = (
        TRACEBACK
        + f"{OOM}\n[rank1]:[E ProcessGroupNCCL.cpp:828] [Rank 1] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=1, OpType=ALLREDUCE, Timeout(ms)=600000)\n"
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
    )
    found = read(text).cause
    assert found.category == "cuda-oom"
    assert {one.code for one in found.consequences} == {"diagnose/nccl-timeout", "diagnose/child-failed"}
    assert found.sure == "certain" and "ui/why-explains" in found.why


def test_an_exception_comes_before_the_time_out_that_it_causes_and_after_the_one_it_follows():
    late = "[E ProcessGroupNCCL.cpp:828] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)\n"
    bug = TRACEBACK + "KeyError: 'weights'\n"
    assert category(bug + late) == "python-user-bug"
    assert category(late + bug) == "nccl-timeout-hang"


def test_a_fault_that_training_survives_is_not_a_failure():
    survived = read(f"{TRACEBACK}ValueError: no such sample\n{STEPS}")
    assert survived.cause is None
    assert [one.code for one in survived.survived] == ["diagnose/python-exception"]
    assert category(f"{STEPS}{TRACEBACK}ValueError: no such sample\n") == "python-user-bug"


def test_two_independent_causes_are_both_named():
    text = f"[rank0]: OSError: [Errno 28] No space left on device: '/data/a.pt'\n{'x' * 20}\n" + "noise\n" * 40
    text += f"[rank1]: {OOM}\n"
    found = read(text).cause
    assert {found.category, *(one.category for one in found.others)} == {"disk-full", "cuda-oom"}


@pytest.mark.parametrize(
    "line",
    [
        "UserWarning: The NVIDIA driver on your system is too old (found version 11040).",
        "2024-01-01 INFO - connection: closed, error none",
        "[WARNING] cpu_adam cuda is missing or is incompatible with installed torch",
        "find_unused_parameters=True was specified in DDP constructor, but did not find any unused parameters",
        "Some weights of BertModel were not initialized from the model checkpoint",
        "eval error rate: 0.123, best error 0.1",
    ],
)
def test_a_warning_is_no_failure(line):
    assert category(f"{STEPS}{line}\n{STEPS}") == "healthy"
    assert category(f"{line}\n") == "healthy"


def test_a_log_cut_at_either_end_is_read():
    assert category('le.py", line 845, in load\n    self.load()\n' + OOM) == "cuda-oom"
    assert category(f"{STEPS}RuntimeError: CUDA out of mem") == "python-user-bug"
    assert category(b"\xe6\x88" + OOM.encode()) == "cuda-oom"
    assert category("") == "healthy"


def test_values_and_fixes_are_filled_in():
    found = read(
        "RuntimeError: The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use)"
    )
    assert found.cause.facts["port"] == "29500"
    assert any(one.command == "ss -ltnp 'sport = :29500'" for one in found.cause.remedies)


def test_a_large_log_is_read_in_pieces_with_the_same_answer(monkeypatch):
    monkeypatch.setattr(log_lines, "_WHOLE", 1 << 12)
    monkeypatch.setattr(log_lines, "_CHUNK", 1 << 14)
    monkeypatch.setattr(log_lines, "_BUDGET", 1 << 16)
    noise = "".join(f"step {n} loss 2.1 lr 3e-4 tokens/s 1234\n" for n in range(9000))
    found = read(noise + TRACEBACK + OOM + "\n" + "bye\n" * 10)
    assert found.num_lines == 9015
    assert (found.cause.category, found.cause.lines[0].number) == ("cuda-oom", 9004)


def test_memory_stays_bounded_when_every_line_alarms(monkeypatch):
    monkeypatch.setattr(log_lines, "_WHOLE", 1 << 12)
    monkeypatch.setattr(log_lines, "_CHUNK", 1 << 14)
    monkeypatch.setattr(log_lines, "_BUDGET", 1 << 15)
    text = OOM + "\n" + "an error that means nothing\n" * 20000
    taken = log_lines.extract(io.BytesIO(text.encode()))
    assert sum(len(data) for _, data in taken.regions) < 1 << 18
    assert category(text) == "cuda-oom"


def test_no_bytes_can_break_it():
    assert read(bytes(range(256)) * 300).num_bytes == 76800
