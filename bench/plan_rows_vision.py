"""Vision rows as questions: detectors and segmenters of OpenMMLab, classifiers, and vision transformers."""

from __future__ import annotations

import re
from dataclasses import replace

from headway.planner.memory import weigh_decoder
from headway.planner.models.convnet import Tape, weigh_convnet
from headway.planner.models.known import find_vit, vit
from headway.planner.models.vision import ResNet, add_ssd
from headway.planner.step import Work
from plan_rows import InexpressibleError, Question, Row
from plan_rows_detect import alter_detector, walk_detector
from plan_rows_segment import alter_segmenter, walk_segmenter
from plan_rows_timm import walk_timm


def ask_vision(row: Row) -> Question:
    """Return the forecast for a vision row."""
    if "micro_batch" not in row:
        raise InexpressibleError("micro-batch not stated")
    if "ViT" in row["model"] and row["family"] == "vision-classification":
        return _vit(row)
    if found := find_vit(row["model"]):
        shape, patch, side = found
        described = {"layers": shape.layers, "hidden": shape.hidden, "heads": shape.heads, "image_size": side, **row}
        return _vit({**described, "model": f"ViT /{patch}"})
    tape, work = Tape(wide=2.0 if _is_half(row) else 1.0), _work(row)
    if re.match(r"SSD\d+ ResNet-?(34|50)\b", row["model"]):
        _walk_ssd(row, tape)
        return _weigh(row, tape, work, "detector")
    if row["family"] == "vision-classification":
        tape.softmax = 1.0
        timed = walk_timm(row, tape)
        question = _weigh(row, tape, work, "classifier")
        return question if timed else replace(question, tape=None)
    if row["family"] == "vision-detection":
        walk_detector(row, tape)
        return _weigh(row, tape, alter_detector(row, work), "detector")
    if row["family"] == "vision-segmentation":
        walk_segmenter(row, tape)
        return _weigh(row, tape, alter_segmenter(row, work), "segmenter")
    raise InexpressibleError(f"no formula for {row['model']}")


def _is_half(row: Row) -> bool:
    named = re.search(r"[-_]amp[-_]", str(row.get("config", "")))
    return (
        bool(named)
        or "FP16" in row["model"]
        or ("fp16" in str(row.get("precision")) and "open-mmlab" not in row["source"])
    )


def _work(row: Row) -> Work:
    """fp32 or autocast, SGD with momentum; DDP of that time has buckets beside the gradients."""
    named = re.search(r"\((\d)x(\d)\)$", row["model"]) or re.search(r"(\d+)xb(\d+)", str(row.get("config", "")))
    mmlab = "open-mmlab" in row["source"]
    return Work(
        micro_batch=int(named[2])
        if named and mmlab
        else row["micro_batch"],  # the file's own name is the better witness
        compute_bytes=2 if _is_half(row) else 4,
        weight_bytes=4,
        grad_bytes=4,
        state_bytes=4,
        bucket_bytes=4,
        cast_weights=mmlab and _is_half(row),
    )


def _weigh(row: Row, tape: Tape, work: Work, family: str) -> Question:
    forecast = weigh_convnet(tape, work, ranks=row.get("world_size", 1))
    return Question(forecast=forecast, family=family, work=work, params=tape.params, tape=tape)


def _walk_ssd(row: Row, tape: Tape) -> None:
    """SSD on a ResNet cut after its third stage, which keeps the second one's size."""
    side = int(re.findall(r"\d+", row["model"])[0])
    depth = int(re.findall(r"ResNet-?(\d+)", row["model"])[0])
    add_ssd(tape, ResNet(depth=depth, strides=(1, 2, 1, 1), stages=3).walk(tape, side, side))


def _vit(row: Row) -> Question:
    """A plain vision transformer: an encoder without a vocabulary."""
    if row["family"] != "vision-classification" or "hidden" not in row:
        raise InexpressibleError(f"no formula for {row['model']}")
    patch = int((re.findall(r"/(\d+)", row["model"]) or [16])[0])
    side = int(row.get("image_size", 224))
    hidden, text = row["hidden"], f"{row.get('optimizer', '')}"
    shape = vit(row["layers"], hidden, row.get("heads", hidden // 64))
    mixed = "amp" in row["precision"]
    if "ZeRO-Offload" in text:
        raise InexpressibleError("an offload engine with its own buffers")
    work = Work(
        micro_batch=row["micro_batch"],
        seq_len=(side // patch) ** 2 + 1,
        weight_bytes=4 if mixed else 2,
        grad_bytes=4 if mixed else 2,
        state_bytes=1 if "4-bit" in text else 2 if "8-bit" in text or "fp8" in text else 8 if mixed else 4,
        cast_weights=mixed,
        compiled=bool(row.get("compile")),
        recompute="full" if row.get("activation_checkpointing") == "full" else "none",
        host_states="CPU offload" in text,
        step_in_backward="with gradients" in text,
    )
    params = int(row.get("params", shape.params))
    forecast = weigh_decoder(shape, work, params=params)
    return Question(forecast=forecast, family="encoder", shape=shape, work=work, params=params)
