"""What a log is about, as logs of strangers word it: each line stands for a cause that was once read wrongly."""

from __future__ import annotations

import bz2
import gzip
import io

import pytest

from headway.diagnosis import diagnose_file, diagnose_folder, diagnose_log, load_rules

FRAMES = 'Traceback (most recent call last):\n  File "/home/u/train.py", line 9, in <module>\n    main()\n'
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
STEP = "step {n} loss 1.5 it/s\n"


def cause(text):
    return diagnose_log(io.BytesIO(text.encode()), load_rules()).cause


def category(text):
    found = cause(text)
    return found.category if found else "healthy"


def raised_in(file, error, code="run()"):
    return f'{FRAMES}  File "{file}", line 80, in step\n    {code}\n{error}\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (FRAMES, "python-user-bug"),
        ("0%|   | 0/9" + " " * 40 + "ERROR:launcher:failed (exitcode: -9) local_rank: 4" + " " * 600,
         "host-oom-killed"),
        ("[0] NCCL WARN Error while creating shared memory segment nccl-1\n", "shm-too-small"),
        ("RuntimeError: write(): fd 7 failed with Input/output error\n", "disk-full"),
        ("EI0006: Getting socket times out. Check the rank being stuck\n", "mindspore"),
        ("ValueError: For 'MatMul' the input dimensions must be equal\nmindspore 2.3\n", "mindspore"),
        (raised_in("/v/site-packages/wandb/sdk/run.py", "Exception: the backend is gone"), "wandb-failure"),
        (raised_in("C:\\v\\Lib\\wandb\\sdk\\run.py", "Exception: the backend is gone"), "wandb-failure"),
        (raised_in("/v/torch/distributed/elastic/rendezvous/c10d.py", "RuntimeError: Connection reset by peer"),
         "rendezvous-failure"),
        (raised_in("/home/u/data.py", "KeyError: 'set_b'", "return DATASET_CONFIGS[name]"), "batch-or-config"),
        (raised_in("/home/u/data.py", "KeyError: 'set_b'", "return batch[name]"), "python-user-bug"),
        (raised_in("/home/u/run.py", "TypeError: unsupported: 'NoneType' and 'int'", "n = cfg.batch // cfg.micro"),
         "batch-or-config"),
        ("RuntimeError: Triton Error [CUDA]: invalid argument\n", "torch-compile-triton"),
        ("RuntimeError: CUDA driver error: invalid argument\n", "native-crash"),
        (FRAMES + "AssertionError: WARNING: No labels found in /data/train/.\n", "dataset-missing"),
        ("ValueError: fp16 mixed precision requires a GPU\n", "driver-or-arch"),
        ("RuntimeError:\n  An attempt has been made to start a new process before the\n", "dataloader-worker-crash"),
        ("ERROR: Unexpected segmentation fault encountered in worker.\n", "dataloader-worker-crash"),
        ("ImportError: DLL load failed: The paging file is too small for this operation\n", "host-oom-killed"),
        ("[3] NCCL WARN NET/IB : Got async event : port error\n", "nccl-timeout-hang"),
        ("10:00:01 INFO node - INFO - [rank0]: Traceback (most recent call last):\n", "healthy"),
        ("RuntimeError: Collectives differ in the following aspects:\nTensor shapes: [6] vs [5]\n", "rank-desync"),
        ("Command 'python.exe t.py' returned non-zero exit status 3221225477.\n", "native-crash"),
        ("- Ascend Error Message:\nE39999: Inner Error!\n", "mindspore"),
        ('Traceback (most recent call last):\n  File "t.py", line 2, in <module>\n    main()\n'
         '  File "/v/mindspore/train/model.py", line 10, in train\n    self.run(\n', "mindspore"),
        ("main.py: error: 'Configuration check failed :: No action for the key'\n", "batch-or-config"),
        ("ValueError: run id 'a' doesn't exist in the config file.\n", "batch-or-config"),
        ("OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 1, reducing to 1\n", "nan-loss"),
        ("5%| | 1/6 [0:55, lr=0, step_loss=nan][rank0]: Traceback (most recent call last):\n"
         '[rank0]:   File "/t.py", line 9, in main\n[rank0]:     step()\n', "nan-loss"),
        ("RuntimeError: both inputs should have same dtype\n", "dtype-mismatch"),
        ('wandb.errors.CommError: failed to upsert bucket: 403: {"message":"permission denied"}\n', "wandb-failure"),
        ("NameError: name 'flash_attn_varlen_func' is not defined\n", "import-or-abi"),
        ("NameError: name 'bucket' is not defined\n", "python-user-bug"),
        ("KeyError                  Traceback (most recent call last)\nFile /u/a.py:7, in main()\n----> 7 run()\n\n"
         "ModuleNotFoundError: No module named 'part'\n", "import-or-abi"),
    ],
)  # fmt: skip
def test_a_cause_is_read_from_how_others_word_it(text, expected):
    assert category(text) == expected


def test_two_ranks_that_write_on_one_line_are_read():
    text = "NameErrorNameError: : name 'os' is not definedname 'os' is not defined\n"
    assert category(FRAMES + text) != "healthy"


@pytest.mark.parametrize(
    "later",
    [
        "wandb: Synced 5 W&B file(s)\n",
        "{'train_runtime': 95.9, 'epoch': 3.0}\n",
        "training finished\n",
    ],
)
def test_what_a_program_outlives_is_not_a_failure(later):
    fault = "wandb: ERROR Error while calling W&B API: context deadline exceeded\n"
    assert category(fault) == "wandb-failure"
    assert category(fault + later) == "healthy"


def test_a_gradient_that_was_nan_once_is_no_failure():
    assert category("iter 1 loss: 1.2 grad_norm: nan\n" * 3) == "nan-loss"
    assert category("iter 1 loss: 1.2 grad_norm: nan\n" + "iter 2 loss: 1.1 grad_norm: 3.1\n") == "healthy"


def test_of_jobs_in_one_file_the_last_counts():
    text = FRAMES + OOM + "slurmstepd: error: *** JOB 17 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***\n"
    assert category(text) == "cuda-oom"
    assert category(text + "slurmstepd: error: *** JOB 18 ON n1 CANCELLED AT 2026-01-02 ***\n") == "sigterm-preemption"


def test_steps_that_speak_of_errors_do_not_slow_the_reading_or_hide_the_end():
    text = "".join(f"step {n} loss 1.5 errors {n}\n" for n in range(5000)) + FRAMES + OOM
    assert category(text) == "cuda-oom"


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lambda data: gzip.compress(data) * 2])
def test_a_packed_log_is_read(tmp_path, pack):
    log = tmp_path / "train.log.gz"
    log.write_bytes(pack((FRAMES + OOM).encode()))
    assert diagnose_file(log, load_rules()).cause.category == "cuda-oom"


def test_a_packed_log_that_is_cut_off_is_read_to_its_end(tmp_path):
    log, rest = tmp_path / "train.log.gz", "".join(f"{n * 7919 % 100003}\n" for n in range(90000))
    log.write_bytes(gzip.compress((FRAMES + OOM + rest).encode())[:-2000])
    assert diagnose_file(log, load_rules()).cause.category == "cuda-oom"


def test_a_text_of_a_windows_shell_without_a_mark_is_read():
    data = (FRAMES + OOM).encode("utf-16-le")
    assert diagnose_log(io.BytesIO(data), load_rules()).cause.category == "cuda-oom"


def test_a_folder_of_ranks_names_the_cause_and_its_file(tmp_path):
    (tmp_path / "rank0").mkdir()
    (tmp_path / "rank0" / "stderr").write_text(FRAMES + "ConnectionResetError: [Errno 104] Connection reset by peer\n")
    (tmp_path / "rank1.log").write_text(FRAMES + OOM + "".join(STEP.format(n=n) for n in range(2)))
    found = diagnose_folder(tmp_path, load_rules()).cause
    assert (found.category, found.facts["file"]) == ("cuda-oom", "rank1.log")
    assert found.lines[0].text.startswith("rank1.log: ")
    assert diagnose_folder(tmp_path / "rank0", load_rules()).cause is not None


def test_a_folder_without_a_failure_has_none(tmp_path):
    (tmp_path / "a.log").write_text("".join(STEP.format(n=n) for n in range(9)))
    assert diagnose_folder(tmp_path, load_rules()).cause is None
