"""What a processor really computes. Run by its text in the ranks' interpreter, so it needs nothing but Python and the
framework (whose types are not known here: Any).

`{"framework": "torch", "ladder": [{}, {"ONEDNN_MAX_CPU_ISA": "AVX2"}]}` on its stdin: it imports the framework once
and computes nothing itself. For each setting a fork tries every case, because a library reads its variable when it
first computes, and because an instruction that is refused ends the process: the next fork continues behind that case.
It prints `{"imported": true}`, then a line per setting tried, and stops at the first with which everything works.
What works without a setting is not tried again with one, unless all that fails without it works with it.
"""

import importlib
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

PRECISIONS = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
_BOUNDS = {"fp32": 1e-2, "bf16": 0.2, "fp16": 0.1}
"""Largest difference to fp64 as a share of the largest value: far beyond rounding, so only nonsense is wrong."""
_CASE_S = 60
Case = Callable[[Any, Any], tuple[Any, list[Any]]]


def torch_linear(torch: Any, dtype: Any) -> tuple[Any, list[Any]]:
    """A matrix product with a bias."""
    x, weight, bias = _tensors(torch, dtype, (64, 96), (128, 96), (128,))
    return torch.nn.functional.linear(x, weight, bias), [x, weight, bias]


def torch_attention(torch: Any, dtype: Any) -> tuple[Any, list[Any]]:
    """Attention long enough for the kernels that pack their blocks."""
    parts = _tensors(torch, dtype, *[(1, 2, 256, 64)] * 3)
    return torch.nn.functional.scaled_dot_product_attention(*parts), parts


def torch_convolution(torch: Any, dtype: Any) -> tuple[Any, list[Any]]:
    """A convolution large enough not to be done by hand."""
    x, weight = _tensors(torch, dtype, (2, 32, 16, 16), (32, 32, 3, 3))
    return torch.nn.functional.conv2d(x, weight, padding=1), [x, weight]


def torch_lstm(torch: Any, dtype: Any) -> tuple[Any, list[Any]]:
    """A recurrent layer."""
    torch.manual_seed(1)
    layer = torch.nn.LSTM(32, 32, batch_first=True).to(dtype)
    (x,) = _tensors(torch, dtype, (4, 8, 32))
    return layer(x)[0], [x, *layer.parameters()]


def mindspore_linear(ms: Any, dtype: Any) -> tuple[Any, list[Any]]:
    """A matrix product with a bias."""
    arrays = _arrays(ms, dtype, (64, 96), (96, 128), (128,))
    return _differentiate(ms, lambda x, weight, bias: ms.ops.matmul(x, weight) + bias, arrays)


def mindspore_attention(ms: Any, dtype: Any) -> tuple[Any, list[Any]]:
    """Attention as two products and a softmax."""

    def attend(query: Any, key: Any, value: Any) -> Any:
        scores = ms.ops.softmax(ms.ops.matmul(query, key.swapaxes(-1, -2)) * 0.125, -1)
        return ms.ops.matmul(scores, value)

    return _differentiate(ms, attend, _arrays(ms, dtype, *[(1, 2, 64, 64)] * 3))


def mindspore_convolution(ms: Any, dtype: Any) -> tuple[Any, list[Any]]:
    """A convolution; its kernels are oneDNN's."""
    arrays = _arrays(ms, dtype, (2, 16, 16, 16), (16, 16, 3, 3))
    return _differentiate(ms, lambda x, weight: ms.ops.conv2d(x, weight), arrays)


def mindspore_lstm(ms: Any, dtype: Any) -> tuple[Any, list[Any]]:
    """A recurrent layer."""
    ms.set_seed(1)
    layer = ms.nn.LSTM(32, 32, batch_first=True).to_float(dtype)
    arrays = _arrays(ms, dtype, (4, 8, 32))
    return _differentiate(ms, lambda x: layer(x)[0], arrays)


CASES: dict[str, dict[str, Case]] = {
    "torch": {
        "linear": torch_linear,
        "attention": torch_attention,
        "convolution": torch_convolution,
        "LSTM": torch_lstm,
    },
    "mindspore": {
        "linear": mindspore_linear,
        "attention": mindspore_attention,
        "convolution": mindspore_convolution,
        "LSTM": mindspore_lstm,
    },
}


def _tensors(torch: Any, dtype: Any, *shapes: tuple[int, ...]) -> list[Any]:
    torch.manual_seed(0)
    return [torch.randn(shape, dtype=torch.float32).to(dtype).requires_grad_() for shape in shapes]


def _arrays(ms: Any, dtype: Any, *shapes: tuple[int, ...]) -> list[Any]:
    random = importlib.import_module("numpy").random.default_rng(0)
    return [ms.Tensor(random.standard_normal(shape).astype("float32")).astype(dtype) for shape in shapes]


def _differentiate(ms: Any, call: Callable[..., Any], arrays: list[Any]) -> tuple[Any, list[Any]]:
    out = call(*arrays)
    grads = ms.grad(lambda *args: call(*args).astype(ms.float32).sum(), tuple(range(len(arrays))))(*arrays)
    return out, list(grads) if isinstance(grads, tuple) else [grads]


def compute(framework: str, lib: Any, operation: str, dtype: str) -> list[Any]:
    """Return the output and every gradient of one case, as fp64 numpy arrays."""
    kind = getattr(lib, dtype)
    out, leaves = CASES[framework][operation](lib, kind)
    if framework == "torch":
        out.double().sum().backward()
        return [part.detach().double().numpy() for part in (out, *(leaf.grad for leaf in leaves))]
    return [part.astype(lib.float32).asnumpy().astype("float64") for part in (out, *leaves)]


def try_case(framework: str, lib: Any, operation: str, precision: str) -> str:
    """Return `ok`, `wrong`, or what was raised."""
    try:
        found = compute(framework, lib, operation, PRECISIONS[precision])
        # MindSpore has no fp64 to compare with, and its fp16 LSTM has wrong gradients on every processor: computing
        # at all is what it is asked for.
        wanted = compute(framework, lib, operation, "float64") if framework == "torch" else []
    except Exception as err:  # border: whatever a framework raises is the answer
        lines = [line for line in str(err).splitlines() if line.strip(" -")] or ["n/a"]
        return f"{type(err).__name__}: {lines[0].strip()[:160]}"
    bound = _BOUNDS[precision]
    is_right = all(
        float(abs(mine - other).max()) <= bound * max(1.0, float(abs(other).max()))  # false for NaN
        for mine, other in zip(found, wanted, strict=False)
    )
    return "ok" if is_right else "wrong"


def go_down(framework: str, lib: Any, ladder: list[dict[str, str]]) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """Yield settings with the answer of every case, until all is well."""
    every = [f"{precision} {operation}" for precision in PRECISIONS for operation in CASES[framework]]
    answers: dict[str, str] = {}
    for setting in ladder:
        failed = [case for case in every if is_failure(answers.get(case, "wrong"))]
        # A ladder of thirty settings, each with every case, took minutes on a busy machine.
        found = try_setting(framework, lib, setting, failed)
        if not any(map(is_failure, found.values())):
            found |= try_setting(framework, lib, setting, [case for case in every if case not in failed])
        answers = answers or found
        yield setting, {**answers, **found}
        if not any(map(is_failure, found.values())):
            return


def try_setting(framework: str, lib: Any, setting: Mapping[str, str], cases: list[str]) -> dict[str, str]:
    """Return the answer of each case with a setting; a case that ends its process answers with the signal."""
    waiting = list(cases)
    answers: dict[str, str] = {}
    while waiting:
        told, status = _fork(framework, lib, setting, waiting)
        answers.update(told)
        waiting = waiting[len(told) :]
        if waiting:
            answers[waiting.pop(0)] = _how(status)
    return answers


def _fork(framework: str, lib: Any, setting: Mapping[str, str], cases: list[str]) -> tuple[dict[str, str], int]:
    """Try cases in a child until one ends it; return what it reported and how it ended."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reading)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.environ.update(setting)
            if framework == "torch":
                lib.set_num_threads(1)
            for case in cases:
                precision, operation = case.split(" ")
                signal.alarm(_CASE_S)  # one that never ends is ended too
                answer = try_case(framework, lib, operation, precision)
                os.write(writing, json.dumps(answer).encode() + b"\n")
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = [json.loads(line) for line in pipe if line.endswith("\n")]
    _, status = os.waitpid(pid, 0)
    return dict(zip(cases, told, strict=False)), status


def _how(status: int) -> str:
    if not os.WIFSIGNALED(status):
        return f"exit code {os.WEXITSTATUS(status)}"
    return name_signal(os.WTERMSIG(status))


def name_signal(number: int) -> str:
    """Return `SIGILL` for 4."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def main() -> None:
    """Import, say so, and go down the ladder to the first setting with which nothing ends and nothing is wrong."""
    job = json.load(sys.stdin)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a framework prints is not an answer
    lib = importlib.import_module(job["framework"])
    _say(out, {"imported": True})
    for setting, answers in go_down(job["framework"], lib, job["ladder"]):
        _say(out, {"setting": setting, "answers": answers})


def is_failure(answer: str) -> bool:
    """Whether a case ended its process or computed nonsense; a kernel that does not exist is not a fault of the CPU."""
    return answer.startswith(("SIG", "signal ", "exit code ")) or answer == "wrong"


def _say(out: Any, line: dict[str, Any]) -> None:
    out.write(json.dumps(line) + "\n")
    out.flush()


if __name__ == "__main__":
    main()
