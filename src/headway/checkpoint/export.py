"""Weights out of a checkpoint: one safetensors file, or as the guides name them. No torch here.

safetensors   FILE
pt            FOLDER/model_000200.pt, meta_000200.json
folder        FOLDER/checkpoint-200/model.safetensors, config.json, ema/model.safetensors where there is an average
ckpt          FILE, for MindSpore: see export_ckpt.py
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from headway.ask import ask
from headway.checkpoint.disk import RealDisk, write_file
from headway.checkpoint.manifest import Manifest, PieceEntry, TensorEntry
from headway.checkpoint.verify import read_manifest, verify_checkpoint
from headway.errors import CheckpointError
from headway.weights.layout import ITEM_BYTES, Header, Span, encode_header, lay_out
from headway.weights.reading import open_folder, open_inside, read_at, read_header
from headway.weights.strict import finite_json

Select = Literal["model", "ema"]
Form = Literal["safetensors", "pt", "folder", "ckpt"]

_COPY_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """What an export holds and where it goes."""

    source: Path
    step: int
    files: tuple[Path, ...]
    num_tensors: int
    bytes: int
    """Of the tensors alone."""


def plan_export(path: Path, out: Path, *, select: Select = "model", form: Form) -> Export:
    """Say what an export would write: a file for safetensors and ckpt, files in a folder for the others."""
    manifest = read_manifest(path)
    if form == "folder":
        parts = [_lay_out(path, manifest, "model"), _lay_out(path, manifest, "ema") if _has_ema(manifest) else {}]
        files = _folder_files(out, manifest)
    else:
        parts = [_lay_out(path, manifest, select)]
        files = _pt_files(out, manifest.step) if form == "pt" else (out,)
    total = sum(max((span.end for span in spans.values()), default=0) for spans in parts)
    return Export(source=path, step=manifest.step, files=files, num_tensors=sum(map(len, parts)), bytes=total)


def export_safetensors(path: Path, out: Path, *, select: Select = "model") -> Export:
    """Verify a checkpoint and write its weights, put together and with plain names, as one file."""
    planned = plan_export(path, out, select=select, form="safetensors")
    refuse_existing(planned.files)
    manifest = verify_checkpoint(path)
    spans, sources = _lay_out(path, manifest, select), _sources(manifest, select)
    header = encode_header(spans, {**_aliases(manifest, spans), "format": "pt", "step": str(manifest.step)})
    tensors = {name: manifest.tensors[sources[name]] for name in spans}
    temp = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with open_folder(path) as folder:
            write_file(RealDisk(), temp, _stream(header, path, folder, tensors))
        os.replace(temp, out)
    except OSError as err:
        raise CheckpointError("checkpoint/export-failed", path=out, why=err.strerror or str(err)) from err
    finally:
        with contextlib.suppress(OSError):  # a parent that is a file was reported already
            temp.unlink()
    return planned


def export_pt(
    path: Path,
    out: Path,
    *,
    select: Select = "model",
    python: str = sys.executable,
    measures: Mapping[str, float] | None = None,
) -> Export:
    """Write `model_NNNNNN.pt` and `meta_NNNNNN.json` into a folder; torch runs in a process of its own.

    `measures` is what the run's history knows of this step: it was saved before it was validated.
    """
    planned = plan_export(path, out, select=select, form="pt")
    refuse_existing(planned.files)
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out, prefix=".export-") as place:
            weights = Path(place) / "weights.safetensors"
            export_safetensors(path, weights, select=select)
            model, meta = (Path(place) / file.name for file in planned.files)
            _run_torch(python, weights, model)
            write_file(RealDisk(), meta, [memoryview(encode_meta(read_manifest(path), measures or {}))])
            for file in (meta, model):  # the weights last: with them the pair is whole
                os.replace(file, out / file.name)
    except OSError as err:
        raise CheckpointError("checkpoint/export-failed", path=out, why=err.strerror or str(err)) from err
    return planned


def export_folder(path: Path, out: Path, *, measures: Mapping[str, float] | None = None) -> Export:
    """Write `checkpoint-N` as Accelerate projects keep it: the weights, their average below ema/, and config.json."""
    planned = plan_export(path, out, form="folder")
    refuse_existing(planned.files)
    try:
        for file in planned.files:
            file.parent.mkdir(parents=True, exist_ok=True)
        for file in planned.files:
            if file.suffix == ".json":
                write_file(RealDisk(), file, [memoryview(encode_meta(read_manifest(path), measures or {}))])
            else:
                export_safetensors(path, file, select="ema" if file.parent.name == "ema" else "model")
    except OSError as err:
        raise CheckpointError("checkpoint/export-failed", path=out, why=err.strerror or str(err)) from err
    return planned


def _lay_out(path: Path, manifest: Manifest, select: str) -> dict[str, Span]:
    sources = _sources(manifest, select)
    if not sources or (select == "ema" and not _has_ema(manifest)):
        raise CheckpointError("checkpoint/nothing-to-export", path=path, prefix=f"{select}/", num=len(manifest.tensors))
    found = {name: manifest.tensors[source] for name, source in sources.items()}
    return lay_out({name: (tensor.dtype, tensor.shape) for name, tensor in found.items()})


def _sources(manifest: Manifest, select: str) -> dict[str, str]:
    """Return the checkpoint's name of each exported tensor; buffers, which have no average, come as they are."""
    inner = {kind: _inner_names(manifest, f"{kind}/") for kind in ("model", select)}
    return {name: f"{kind}/{name}" for kind, names in inner.items() for name in names}


def _inner_names(manifest: Manifest, prefix: str) -> list[str]:
    return [name.removeprefix(prefix) for name in manifest.tensors if name.startswith(prefix)]


def _aliases(manifest: Manifest, spans: Mapping[str, Span]) -> dict[str, str]:
    """Return the other names of tied weights; `safetensors.torch.save_model` keeps them in the same place."""
    known = manifest.meta.get("aliases")
    known = known if isinstance(known, dict) else {}
    return {alias: name for alias, name in known.items() if str(name) in spans and alias not in spans}


def _stream(header: bytes, path: Path, folder: int, tensors: Mapping[str, TensorEntry]) -> Iterator[memoryview]:
    yield memoryview(header)
    with ExitStack() as stack:
        read = _PieceReader(path, folder, stack)
        for tensor in tensors.values():
            if all(piece.shape[1:] == tensor.shape[1:] for piece in tensor.pieces):
                # Whole rows: the pieces in order are the tensor.
                for piece in sorted(tensor.pieces, key=lambda piece: piece.offset):
                    yield from read(piece)
            else:
                yield memoryview(_assemble(read, tensor))


class _PieceReader:
    """Reads pieces; a shard is opened and its header read once, however many of its tensors are wanted."""

    def __init__(self, path: Path, folder: int, stack: ExitStack) -> None:
        self._path, self._folder, self._stack = path, folder, stack
        self._open: dict[str, tuple[int, Header]] = {}

    def __call__(self, piece: PieceEntry) -> Iterator[memoryview]:
        where = self._path / piece.file
        if piece.file not in self._open:
            fd = self._stack.enter_context(open_inside(self._folder, piece.file, where=self._path))
            self._open[piece.file] = fd, read_header(fd, where=where)
        fd, header = self._open[piece.file]
        span = header.spans[piece.key]
        for start in range(span.start, span.end, _COPY_BYTES):
            length = min(_COPY_BYTES, span.end - start)
            yield memoryview(read_at(fd, header.data_start + start, length, where=where))


def _assemble(read: _PieceReader, tensor: TensorEntry) -> bytearray:
    """Put boxes together that are cut along other axes than the first, run by run of the last axis."""
    item = ITEM_BYTES[tensor.dtype]
    strides = [math.prod(tensor.shape[dim + 1 :]) for dim in range(len(tensor.shape))]
    whole = bytearray(item * math.prod(tensor.shape))
    for piece in tensor.pieces:
        data = b"".join(read(piece))
        run = piece.shape[-1]
        for index in range(math.prod(piece.shape[:-1])):
            at, rest = piece.offset[-1], index
            for dim in range(len(piece.shape) - 2, -1, -1):
                rest, place = divmod(rest, piece.shape[dim])
                at += (piece.offset[dim] + place) * strides[dim]
            whole[at * item : (at + run) * item] = data[index * run * item : (index + 1) * run * item]
    return whole


def _pt_files(out: Path, step: int) -> tuple[Path, Path]:
    return out / f"model_{step:06d}.pt", out / f"meta_{step:06d}.json"


def _folder_files(out: Path, manifest: Manifest) -> tuple[Path, ...]:
    """Return the files of a `checkpoint-N` folder; the weights come last: with them the folder is whole."""
    place = out / f"checkpoint-{manifest.step}"
    average = (place / "ema" / "model.safetensors",) if _has_ema(manifest) else ()
    return (place / "config.json", *average, place / "model.safetensors")


def _has_ema(manifest: Manifest) -> bool:
    return any(name.startswith("ema/") for name in manifest.tensors)


def refuse_existing(files: tuple[Path, ...]) -> None:
    """Never write over what is there."""
    for file in files:
        if file.exists() or file.is_symlink():
            raise CheckpointError("checkpoint/export-exists", path=file)


def encode_meta(manifest: Manifest, measures: Mapping[str, float]) -> bytes:
    """Return the guide's meta file: step, measures, and what the recipe left under `export` for it."""
    fields = describe_export(manifest, measures)
    return (json.dumps(finite_json(fields), ensure_ascii=False, indent=2) + "\n").encode()


def describe_export(manifest: Manifest, measures: Mapping[str, float]) -> dict[str, object]:
    """Return step, measures, and what the recipe left under `export`."""
    extra = manifest.meta.get("export")
    extra = extra if isinstance(extra, dict) else {}
    # The guides call a measure of the validation `val_<name>`; it is empty when the step was saved first.
    late = {key: measures.get(key.removeprefix("val_")) for key, value in extra.items() if value is None}
    return {
        "step": manifest.step,
        **manifest.measures,
        **measures,
        **extra,
        **{key: value for key, value in late.items() if value is not None},
        "samples": manifest.samples,
        "suspect": manifest.suspect,
    }


def _run_torch(python: str, weights: Path, model: Path) -> None:
    told = ask(python, {"weights": str(weights), "out": str(model)}, module="headway.checkpoint.write_pt")
    if told.value != {"error": ""}:
        why = told.value["error"] if told.value else told.why
        raise CheckpointError("checkpoint/export-child", path=model.name, code=told.exit_code, why=why)
