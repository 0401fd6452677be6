from __future__ import annotations

import signal
import string

import pytest

from headway.diagnosis import ExitStatus, classify, settle_illegal
from headway.messages import say
from headway.messages.diagnose import TEXTS
from headway.messages.launch import TEXTS as LAUNCH_TEXTS


def error(kind, text, **more):
    return {"kind": "error", "type": kind, "text": text, "traceback": "", "code": None, **more}


@pytest.mark.parametrize(
    ("kind", "text", "expected", "is_transient"),
    [
        ("OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB", "device-out-of-memory", False),
        ("MemoryError", "", "host-out-of-memory", False),
        ("OSError", "[Errno 28] No space left on device: 'x'", "disk-full", False),
        ("OSError", "[Errno 24] Too many open files", "process-limit", False),
        ("FileNotFoundError", "[Errno 2] No such file or directory: 'train.bin'", "missing-file", False),
        ("ModuleNotFoundError", "No module named 'einops'", "import-error", False),
        ("RuntimeError", "The server socket has failed to listen: EADDRINUSE", "port-in-use", True),
        ("RuntimeError", "DataLoader worker (pid(s) 12) exited unexpectedly", "worker-died", True),
        (
            "RuntimeError",
            "DataLoader worker (pid 7) is killed by signal: Illegal instruction. ",
            "illegal-instruction",
            False,
        ),
        ("RuntimeError", "[pair.cc:547] Connection closed by peer [127.0.0.1]:4", "connection-lost", True),
        ("DistBackendError", "NCCL error: ncclRemoteError", "connection-lost", True),
        ("ConnectionRefusedError", "[Errno 111] Connection refused", "server-refused", True),
        ("URLError", "<urlopen error [Errno 111] Connection refused>", "server-refused", True),
        ("RuntimeError", "connect [127.0.0.1]:29500: Connection refused", "connection-lost", True),
        ("ValueError", "bad shape", "python-exception", False),
        (
            "RuntimeError",
            "DataLoader worker (pid 9) is killed: insufficient shared memory (shm)",
            "shared-memory-full",
            False,
        ),
    ],
)
def test_an_error_report_is_classed_by_its_words(kind, text, expected, is_transient):
    found = classify(error(kind, text), ExitStatus(code=1))
    assert (found.kind, found.is_transient) == (expected, is_transient)


def test_only_a_lost_connection_is_an_echo():
    assert classify(error("RuntimeError", "Connection reset by peer"), ExitStatus(code=1)).is_cascade
    assert not classify(error("ValueError", "x"), ExitStatus(code=1)).is_cascade


def test_a_headway_error_keeps_its_code_and_facts():
    found = classify(error("TrainError", "x", code="diagnose/exited", facts={"exit": "3"}), ExitStatus(code=1))
    assert (found.code, found.facts, found.is_transient) == ("diagnose/exited", {"exit": "3"}, False)


def test_a_code_nobody_knows_is_an_ordinary_exception():
    found = classify(error("TrainError", "x", code="nowhere/at-all"), ExitStatus(code=1))
    assert found.kind == "python-exception"


def test_an_exception_in_a_recipe_names_its_file_and_line():
    report = error("ValueError", "bad shape") | {"recipe_file": "mine/task.py", "recipe_line": 7}
    found = classify(report, ExitStatus(code=1))
    assert (found.kind, found.code) == ("python-exception", "diagnose/recipe-exception")
    assert say(found.code, "en", **found.facts) == "ValueError: bad shape, in the recipe's code at mine/task.py, line 7"
    report = error("RuntimeError", "CUDA out of memory") | {"recipe_file": "mine/task.py", "recipe_line": 7}
    assert classify(report, ExitStatus(code=1)).code == "diagnose/device-out-of-memory"


def test_signals_are_told_apart():
    assert classify(None, ExitStatus(signal=signal.SIGKILL)).kind == "killed"
    assert classify(None, ExitStatus(signal=signal.SIGKILL, is_oom_kill=True)).kind == "host-oom-kill"
    assert classify(None, ExitStatus(signal=signal.SIGSEGV)).kind == "crashed"


def test_an_abort_is_named_by_what_it_had_just_printed():
    tail = b"[E] Watchdog caught collective operation timeout\nterminate called\n"
    assert classify(None, ExitStatus(signal=signal.SIGABRT), tail).is_cascade
    assert classify(None, ExitStatus(signal=signal.SIGABRT), b"free(): corrupted").kind == "crashed"


def test_an_exit_without_a_word_is_read_from_the_log():
    assert classify(None, ExitStatus(code=1), b"OSError: [Errno 28] No space left on device\n").kind == "disk-full"
    assert classify(None, ExitStatus(code=1), b"hello\n").kind == "exited"
    assert classify(None, ExitStatus(code=0), b"hello\n").kind == "early-exit"
    assert classify(None, ExitStatus(), b"").kind == "unknown-end"


def test_no_log_can_break_it():
    assert classify(None, ExitStatus(code=1), bytes(range(256)) * 200).kind == "exited"


@pytest.mark.parametrize("code", [*TEXTS, *LAUNCH_TEXTS])
def test_both_languages_name_the_same_facts(code):
    text = {**TEXTS, **LAUNCH_TEXTS}[code]
    fields = [sorted(f for _, f, _, _ in string.Formatter().parse(words) if f) for words in (text.en, text.zh)]
    hints = [sorted(f for _, f, _, _ in string.Formatter().parse(words) if f) for words in (text.en_hint, text.zh_hint)]
    assert fields[0] == fields[1]
    assert hints[0] == hints[1]
    assert bool(text.en_hint) == bool(text.zh_hint)


def test_a_loader_process_that_the_kernel_killed_for_memory_is_no_riddle():
    text = "DataLoader worker (pid 77) is killed by signal: Killed. "
    report = {"type": "RuntimeError", "text": text, "traceback": ""}
    assert classify(report, ExitStatus(code=1, is_oom_kill=True)).kind == "host-oom-kill"
    assert classify(report, ExitStatus(code=1)).kind == "worker-died"
    vague = {**report, "text": "DataLoader worker (pid(s) 77) exited unexpectedly"}
    assert classify(vague, ExitStatus(code=1, is_oom_kill=True)).kind == "host-oom-kill"
    crashed = {**report, "text": text.replace("Killed", "Segmentation fault")}
    assert classify(crashed, ExitStatus(code=1, is_oom_kill=True)).kind == "worker-died"


def test_errno_11_is_a_limit_on_processes_only_where_a_fork_failed():
    report = {"type": "BlockingIOError", "text": "[Errno 11] Resource temporarily unavailable", "traceback": "flock(…)"}
    assert classify(report, ExitStatus(code=1)).kind == "python-exception"
    assert classify({**report, "traceback": "os.fork()"}, ExitStatus(code=1)).kind == "process-limit"


def test_a_refused_instruction_is_final_in_the_first_step_and_a_crash_later():
    found = classify(None, ExitStatus(signal=signal.SIGILL), b"Fatal Python error: Illegal instruction\n\nStack")
    assert (found.kind, found.is_transient) == ("illegal-instruction", False)
    assert found.evidence == "Fatal Python error: Illegal instruction"
    assert settle_illegal(found, 0) == found
    later = settle_illegal(found, 7)
    assert (later.kind, later.facts, later.is_transient) == ("crashed", {"signal": "SIGILL", "text": "SIGILL"}, True)


def test_a_launchers_word_about_a_refused_instruction_counts_as_one():
    said = b"ChildFailedError:\n  exitcode  : -4 (pid: 71)\n  traceback : Signal 4 (SIGILL) received by PID 71\n"
    assert classify(None, ExitStatus(code=1), said).kind == "illegal-instruction"


_ASYNC = "\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace may be wrong."
_NCCL = (
    "NCCL error in: NCCLUtils.cpp:77, unhandled {} error (run with NCCL_DEBUG=INFO for details), NCCL version 2.27.5\n"
)


@pytest.mark.parametrize(
    ("type_", "text", "kind"),
    [
        ("AcceleratorError", "CUDA error: out of memory" + _ASYNC, "device-out-of-memory"),
        (
            "DistBackendError",
            _NCCL.format("cuda") + "Last error:\nCuda failure 2 'out of memory'",
            "device-out-of-memory",
        ),
        ("AcceleratorError", "CUDA error: CUDA-capable device(s) is/are busy or unavailable" + _ASYNC, "gpu-busy"),
        ("AcceleratorError", "CUDA error: no kernel image is available for execution on the device", "arch-not-built"),
        (
            "RuntimeError",
            "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
            "device-out-of-memory",
        ),
        (
            "RuntimeError",
            "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasSgemm(handle)`",
            "cublas-failed",
        ),
        (
            "DistBackendError",
            _NCCL.format("system") + "Last error:\nError while creating shared memory segment /dev/shm/nccl-4TXEPn "
            "(size 33030528), error: No space left on device (28)",
            "shared-memory-full",
        ),
        (
            "DistBackendError",
            _NCCL.format("system") + "Last error:\nCall to posix_fallocate failed : No space left on device",
            "shared-memory-full",
        ),
    ],
)
def test_what_cuda_and_nccl_raise_on_gpus_is_told_apart(type_, text, kind):
    report = {"type": type_, "text": text, "traceback": ""}
    assert classify(report, ExitStatus(code=1, signal=None)).kind == kind
    assert classify(None, ExitStatus(code=1, signal=None), f"torch.{type_}: {text}\n".encode()).kind == kind
