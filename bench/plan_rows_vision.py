"""Vision rows as questions: detectors and segmenters of OpenMMLab, classifiers, and vision transformers."""

from __future__ import annotations

import re
from dataclasses import replace

from headway.planner.memory import weigh_decoder
from headway.planner.models.convnet import Map, NoFormulaError, Tape, weigh_convnet
from headway.planner.models.known import find_vit, vit
from headway.planner.models.vision import ResNet, add_ssd
from headway.planner.models.vision.detectors import view_of, walk_detector
from headway.planner.models.vision.segmenters import classes_of, walk_segmenter
from headway.planner.step import Work
from plan_rows import InexpressibleError, Question, Row
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
        _walk_detector(row, tape)
        return _weigh(row, tape, _alter_detector(row, work), "detector")
    if row["family"] == "vision-segmentation":
        _walk_segmenter(row, tape)
        adam = _ADAM_SEGMENTERS.search(str(row.get("config") or ""))
        return _weigh(row, tape, replace(work, state_bytes=8 if adam else work.state_bytes), "segmenter")
    raise InexpressibleError(f"no formula for {row['model']}")


_SINGLE = re.compile(r"pvtv2-b[45]_|_cityscapes\.py")
"""Configs that train on one image a GPU, whatever their name leaves out."""
_ADAM_DETECTORS = re.compile(r"swin|pvt|convnext|former|^detr_")
_ADAM_SEGMENTERS = re.compile(r"^(swin|vit|segformer|convnext|beit|mae|twins|fpn_poolformer|mask2former)|adamw")
"""Configs whose schedule uses AdamW, whatever the row says."""


def _config_of(row: Row) -> str:
    """Return the config's name; a row without one is named by its folder and backbone."""
    if row.get("config"):
        return str(row["config"])
    found = re.match(r"(\w+) ([RX])-(\d+)", row["model"])
    return f"{found[1]}_{found[2].lower()}{found[3]}_fpn" if found else ""


def _alter_detector(row: Row, work: Work) -> Work:
    """Return the work as the config's base files have it."""
    config = _config_of(row)
    return replace(
        work,
        micro_batch=1 if _SINGLE.search(config) else work.micro_batch,
        state_bytes=8 if _ADAM_DETECTORS.search(config) else work.state_bytes,
        average_bytes=4 if config.startswith("yolox") else 0,
    )


def _walk_detector(row: Row, tape: Tape) -> None:
    config = _config_of(row)
    view = view_of(config, caffe="caffe" in str(row.get("notes") or ""))
    if config.startswith("yolox_tiny"):
        view = replace(view, height=640)  # the others go up to 800
    try:
        walk_detector(config, tape, view)
    except NoFormulaError as err:
        raise InexpressibleError(str(err)) from err


def _walk_segmenter(row: Row, tape: Tape) -> None:
    config = str(row.get("config", "")).replace("ddeeplab", "deeplab")  # one file is misspelt
    classes = classes_of(config)
    if classes is None:
        raise InexpressibleError("data set, and so the number of classes, not known")
    # The file's own name is the better witness of its crop.
    named = re.search(r"(\d+)x(\d+)\.py$|_(\d+)x(\d+)-", config)
    text = " ".join(filter(None, named.groups())) if named else str(row.get("image_size", ""))
    sides = [int(side) for side in re.findall(r"\d+", text)]
    if not sides:
        raise InexpressibleError("image size not stated")
    try:
        walk_segmenter(config, tape, Map(3, sides[0], sides[-1]), classes)
    except NoFormulaError as err:
        raise InexpressibleError(str(err)) from err


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
