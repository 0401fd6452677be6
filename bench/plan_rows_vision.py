"""Vision rows as questions: detectors and segmenters of OpenMMLab, and vision transformers."""

from __future__ import annotations

import re

from headway.plan.convnet import (
    ResNet,
    Tape,
    add_dense,
    add_proposals,
    add_pyramid,
    add_regions,
    add_segment_head,
    add_ssd,
    weigh_convnet,
)
from headway.plan.decoder import Decoder
from headway.plan.memory import weigh_decoder
from headway.plan.work import Work
from plan_rows import InexpressibleError, Question, Row

CLASSES = {
    "ade20k": 150,
    "cityscapes": 19,
    "voc12aug": 21,
    "pascal-context-59": 59,
    "pascal-context": 60,
    "coco-stuff164k": 171,
    "coco-stuff10k": 171,
    "loveda": 7,
    "potsdam": 6,
    "vaihingen": 6,
    "isaid": 16,
    "stare": 2,
    "drive": 2,
    "chase": 2,
    "hrf": 2,
}
HEADS = {
    "fcn": "fcn",
    "pspnet": "psp",
    "deeplabv3plus": "aspp+",
    "deeplabv3": "aspp",
    "nonlocal": "attention",
    "dnl": "attention",
    "ann": "attention",
    "ccnet": "cross",
    "gcnet": "fcn",
    "encnet": "fcn",
}
VITS = {
    "tiny": (12, 192, 3),
    "small": (12, 384, 6),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
    "huge": (32, 1280, 16),
    "giant": (40, 1408, 16),
}
"""Layers, width and heads of the sizes of timm's vision transformers."""
TIMM_VIT = re.compile(r"(?:vit|deit3?|beit)_(\w+?)_(?:distilled_)?patch(\d+)_(\d+)(?:_|$)")
DENSE = ("fcos", "autoassign", "fovea", "tood", "atss", "gfl", "fsaf", "paa", "vfnet", "free-anchor", "freeanchor")


def ask_vision(row: Row) -> Question:
    """Return the forecast for a vision row."""
    if "micro_batch" not in row:
        raise InexpressibleError("micro-batch not stated")
    if "ViT" in row["model"] and "SAN" not in row["model"]:
        return _vit(row)
    if found := TIMM_VIT.match(row["model"]):
        layers, hidden, heads = VITS[found[1]]
        described = {"layers": layers, "hidden": hidden, "heads": heads, "image_size": found[3], **row}
        return _vit({**described, "model": f"ViT /{found[2]}"})
    if re.match(r"SSD\d+ ResNet-?(34|50)\b", row["model"]):
        return _ssd(row)
    if row["family"] == "vision-classification":
        return _classifier(row)
    if row["family"] == "vision-detection":
        return _detector(row)
    if row["family"] == "vision-segmentation":
        return _segmenter(row)
    raise InexpressibleError(f"no formula for {row['model']}")


def _work(row: Row) -> Work:
    """OpenMMLab: fp32, SGD with momentum, DDP with buckets beside the gradients."""
    config = str(row.get("config", ""))
    one = 2 if "amp" in config or "fp16" in str(row.get("precision")) else 4
    return Work(
        micro_batch=row["micro_batch"],
        compute_bytes=one,
        weight_bytes=4,
        grad_bytes=4,
        state_bytes=8 if "adamw" in config else 4,
        bucket_bytes=4,
    )


def _ssd(row: Row) -> Question:
    """SSD on a ResNet cut after its third stage, which keeps the second one's size."""
    side = int(re.findall(r"\d+", row["model"])[0])
    depth = int(re.findall(r"ResNet-?(\d+)", row["model"])[0])
    tape = Tape()
    outs = ResNet(depth=depth, strides=(1, 2, 1, 1), stages=3).walk(tape, side, side)
    add_ssd(tape, outs)
    return _weigh(row, tape, "detector")


def _classifier(row: Row) -> Question:
    """A plain ResNet or ResNeXt with one linear layer behind it."""
    found = re.fullmatch(
        r"(?:tv_|gluon_)?resne(t|xt)-?(\d+)(?:[-_ ]?(\d+)x(\d+)d)?(?: v1(?:\.5)?)?", row["model"].lower()
    )
    if found is None or int(found[2]) not in (18, 34, 50, 101, 152):
        raise InexpressibleError(f"no formula for {row['model']}")
    height, width = _side(row)
    groups, of_group = (int(found[3]), int(found[4])) if found[3] else (32, 4) if found[1] == "xt" else (1, 64)
    tape = Tape()
    outs = ResNet(depth=int(found[2]), groups=groups, group_width=of_group).walk(tape, height, width)
    tape.linear(outs[-1][0], 1000, 1)
    return _weigh(row, tape, "classifier")


def _weigh(row: Row, tape: Tape, family: str) -> Question:
    work = _work(row)
    forecast = weigh_convnet(tape, work, ranks=row.get("world_size", 1))
    return Question(forecast=forecast, family=family, work=work, params=tape.params, tape=tape)


def _side(row: Row) -> tuple[int, int]:
    sides = [int(side) for side in re.findall(r"\d+", str(row.get("image_size", "")))]
    if not sides:
        raise InexpressibleError("image size not stated")
    return (sides[0], sides[-1])


def _backbone(text: str, *, frozen: int, caffe: bool, dilated: bool) -> ResNet:
    found = re.search(r"\b([RX])-?(\d+)(?:-(\d+)x(\d+)d)?", text)
    if found is None or re.search(r"Res2|HR|S-\d|Swin|PVT|RegNet|MiT|M-V", text):
        raise InexpressibleError("backbone is no ResNet")
    depth = int(found[2])
    if depth not in (18, 34, 50, 101, 152):
        raise InexpressibleError("backbone is no ResNet")
    groups, width = (int(found[3]), int(found[4])) if found[3] else (64, 4) if found[1] == "X" else (1, 64)
    return ResNet(
        depth=depth,
        groups=groups,
        group_width=width,
        frozen=frozen,
        stride_first=caffe,
        deep_stem=dilated,
        strides=(1, 2, 1, 1) if dilated else (1, 2, 2, 2),
    )


def _detector(row: Row) -> Question:
    config, notes = str(row.get("config", "")), str(row.get("notes", ""))
    if "youtubevis" in config or "cityscapes" in config:
        raise InexpressibleError("the config's image size is not the stated one")
    if re.search(r"_gn-all|gn\+ws|_gn_|syncbn-backbone", config):
        raise InexpressibleError("group or synchronised norm through the whole detector: no formula")
    if "dconv" in config or "mdconv" in config:
        raise InexpressibleError("deformable convolutions keep columns: no formula")
    known = re.match(r"(cascade-mask-rcnn|cascade-rcnn|mask-rcnn|faster-rcnn|rpn|retinanet|fast-rcnn)", config)
    dense = next((name for name in DENSE if config.startswith(name)), None)
    if known is None and dense is None:
        raise InexpressibleError(f"no formula for the head of {config.split('_')[0] or row['model']}")
    height, width = sorted(_side(row))
    height, width = -(-height // 32) * 32, -(-width // 32) * 32
    caffe = "caffe" in config or "caffe" in notes
    tape = Tape()
    outs = _backbone(row["model"], frozen=1, caffe=caffe, dilated=False).walk(tape, height, width)
    name = known[1] if known else "dense"
    if name in ("retinanet", "dense"):
        pixels = add_pyramid(tape, outs, first=1)
        add_dense(tape, pixels, anchors=9 if name == "retinanet" else 1, normed=name == "dense")
    else:
        pixels = add_pyramid(tape, outs, paths=2 if "pafpn" in config else 1)
        add_proposals(tape, pixels)
        if name != "rpn":
            classes = 8 if "cityscapes" in config else 1203 if "lvis" in config else 80
            add_regions(tape, stages=3 if "cascade" in name else 1, masks="mask" in name, classes=classes)
    return _weigh(row, tape, "detector")


def _segmenter(row: Row) -> Question:
    config = str(row.get("config", ""))
    classes = next((number for name, number in CLASSES.items() if name in config), None)
    if classes is None:
        raise InexpressibleError("data set, and so the number of classes, not known")
    height, width = _side(row)
    crop = re.search(r"(\d+)x(\d+)\.py$", config)
    if crop:  # the file's own name is the better witness
        height, width = int(crop[1]), int(crop[2])
    tape = Tape()
    if config.startswith("unet"):
        _walk_unet(tape, height * width, classes)
    else:
        head = next((kind for name, kind in HEADS.items() if config.startswith(name + "_")), None)
        if head is None:
            raise InexpressibleError(f"no formula for the head of {config.split('_')[0] or row['model']}")
        if "-D8" not in row["model"]:
            raise InexpressibleError("backbone is no dilated ResNet")
        outs = _backbone(row["model"], frozen=0, caffe=False, dilated=True).walk(tape, height, width)
        width_of = 128 if outs[-1][0] == 512 else 512
        add_segment_head(tape, outs, kind=head, classes=classes, image=height * width, width=width_of)
    return _weigh(row, tape, "segmenter")


def _walk_unet(tape: Tape, image: float, classes: int) -> None:
    """UNet-S5-D16: two convolutions a level down and up, halved four times."""
    channels = [64, 128, 256, 512, 1024]
    into = 3
    for level, out in enumerate(channels):
        pixels = image / 4**level
        tape.conv((into, out), pixels)
        tape.conv((out, out), pixels)
        into = out
    for level in range(3, -1, -1):
        out, pixels = channels[level], image / 4**level
        tape.hold(2 * out * pixels)  # upsampled
        tape.conv((2 * out, out), pixels, kernel=1)
        tape.hold(2 * out * pixels)  # beside the skip
        tape.conv((2 * out, out), pixels)
        tape.conv((out, out), pixels)
    tape.conv((64, 64), image)
    tape.hold(classes * image * 5)


def _vit(row: Row) -> Question:
    """A plain vision transformer: an encoder without a vocabulary."""
    if row["family"] != "vision-classification" or "hidden" not in row:
        raise InexpressibleError(f"no formula for {row['model']}")
    patch = int((re.findall(r"/(\d+)", row["model"]) or [16])[0])
    side = int(row.get("image_size", 224))
    hidden, text = row["hidden"], f"{row.get('optimizer', '')}"
    shape = Decoder(
        layers=row["layers"],
        hidden=hidden,
        heads=row.get("heads", hidden // 64),
        vocab=1000,
        ffn=4 * hidden,
        mlp="gelu",
        norm="layer",
        tied=True,
        one_qkv=True,
    )
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
