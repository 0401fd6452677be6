"""Detectors by the names of mmdetection's configs: `mask-rcnn_r50_fpn`, `retinanet_r101`, `yolox_s`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from headway.planner.models.convnet import Map, NoFormulaError, Norm, Tape
from headway.planner.models.vision import detect as parts
from headway.planner.models.vision.darknet import YOLOX, add_yolo_v3, walk_darknet
from headway.planner.models.vision.hrnet import HRNet
from headway.planner.models.vision.query import add_mask_queries
from headway.planner.models.vision.regnet import REGNETX
from headway.planner.models.vision.resnet import ResNet
from headway.planner.models.vision.segment import summed
from headway.planner.models.vision.transformer import CONVNEXT, PVT, SWIN

TWO_STAGE = re.compile(
    r"^(cascade-mask-rcnn|cascade-rcnn|mask-rcnn|faster-rcnn|rpn|fast-rcnn|htc|ms-rcnn|dynamic-rcnn|ga-rpn|ga-faster-rcnn"
    r"|libra-faster-rcnn|masktrack-rcnn|panoptic-fpn|point-rend)_"
)
"""Detectors of regions."""
DENSE = {
    "fcos": "group",
    "autoassign": "group",
    "fovea": "none",
    "tood": "group",
    "atss": "group",
    "gfl": "group",
    "fsaf": "none",
    "paa": "group",
    "vfnet": "group",
    "ddod": "group",
    "retinanet": "none",
    "freeanchor": "none",
    "ga-retinanet": "none",
    "libra-retinanet": "none",
    "reppoints": "none",
}
"""Heads of two towers, and the norm in them."""
LOSSES = {"freeanchor": 7.0}
"""Tensors of all logits a loss made of single operations keeps: probabilities, products, their logarithms."""
FOCAL = 8.0
"""The same of a focal loss that is not a kernel of its own (torchvision, detectron2): probability, targets and their
complement, cross entropy, and the factor with what it is made of."""
UNKNOWN = {
    "crop640": "pyramid grid or searched pyramid: no formula",
    "lvis": "a mask for each of 1203 classes: no formula",
    "openimages": "the most boxes of an image of that data set are not known",
    "pool_": "deformable pooling: no formula",
    "attn": "attention inside the blocks: no formula",
    "dyhead": "dynamic head: no formula",
    "nasfpn": "searched pyramid: no formula",
    "fpg": "pyramid grid: no formula",
    "rfp": "recursive pyramid: no formula",
    "sac": "switchable convolutions: no formula",
    "detectors": "recursive pyramid: no formula",
}
"""Words of a config that say no formula here fits."""
SIZES = {
    "cityscapes": (1024, 2048),
    "voc0712": (608, 1024),
    "youtubevis": (384, 640),
    "mask2former": (1024, 1024),
    **{f"-{side}-": (side, side) for side in (320, 416, 608)},
    "ms-crop": (1248, 1248),  # crops change the ratio after images were grouped by it
}
"""Padded images of configs that are not 1333x800."""
CLASSES = {"voc0712": 20, "cityscapes": 8, "youtubevis": 40}
"""Classes of a data set that is not COCO."""
MOST = {"voc0712": 56, "youtubevis": 10}
"""Most boxes of an image of a data set that is not COCO."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a detector is trained on."""

    height: int
    width: int
    classes: int
    boxes: int
    """Most boxes of an image."""
    caffe: bool = False
    """The backbone's blocks take their stride in the first convolution."""


def view_of(config: str, *, caffe: bool = False) -> View:
    """Return what a config says of its images: COCO's, 1333x800, unless its name says otherwise."""
    height, width = next((sides for word, sides in SIZES.items() if word in config), (800, 1344))
    return View(
        height=height,
        width=width,
        classes=next((number for word, number in CLASSES.items() if word in config), 80),
        boxes=next((number for word, number in MOST.items() if word in config), parts.BOXES),
        caffe=caffe or "caffe" in config,
    )


def walk_detector(config: str, tape: Tape, view: View) -> None:
    """Walk the network of a config's name, or raise `NoFormulaError`."""
    for word, why in UNKNOWN.items():
        if word in config:
            raise NoFormulaError(why)
    if re.match(r"yolov3_d53_.*?-(320|416|608)-", config):
        return add_yolo_v3(tape, walk_darknet(tape, view.height, view.height))
    if found := re.match(r"yolox_(tiny|s|m|l|x)_", config):
        return YOLOX[found[1]].walk(tape, view.height, view.height)
    if config.startswith("ssd"):
        raise NoFormulaError("cuDNN searches its fastest algorithm, whatever scratch that takes")
    if config.startswith("mask2former_") and "youtubevis" not in config:
        outs = _backbone(config, tape, replace(view, caffe=False), frozen=0)
        return add_mask_queries(tape, outs, Map(3, view.height, view.width), objects=view.boxes)
    if two := TWO_STAGE.match(config):
        return _regions(config, tape, two[1], view)
    dense = next((name for name in DENSE if config.startswith(name)), None)
    if dense is None:
        raise NoFormulaError(f"no formula for the head of {config.split('_')[0]}")
    return _dense(config, tape, dense, view)


def _dense(config: str, tape: Tape, name: str, view: View) -> None:
    """Walk a one-stage detector."""
    outs = _backbone(config, tape, view)
    if "hrnet" in config:
        pyramid = parts.add_wide_pyramid(tape, outs, stride=2)
    else:
        norm: Norm = "group" if "fpn-gn" in config else "none"
        pyramid = parts.add_pyramid(tape, outs, first=1, extra=True, norm=norm)
    if name.startswith("libra"):
        pyramid = parts.balance(tape, pyramid)
    if name == "tood":
        return parts.add_task_aligned(tape, pyramid, boxes=view.boxes)
    return parts.add_dense(
        tape,
        pyramid,
        anchors=9 if name in ("retinanet", "libra-retinanet", "freeanchor") else 1,
        convs=3 if name == "reppoints" else 4,
        norm="group" if "gn-head" in config or "head-gn" in config else DENSE[name],  # type: ignore[arg-type]
        sides=4 if "retinanet" in name else 5,
        guided=name in ("ga-retinanet", "reppoints"),
        aligned="align" in config,
        pair=(31 if "center" in config else 13) if name == "fcos" else 8,  # areas, sides, targets; boxes round centres
        losses=FOCAL if "frozenbn" in config else LOSSES.get(name, 3.0 if "ghm" in config else 1.0),
        classes=view.classes,
        boxes=view.boxes,
    )


def _regions(config: str, tape: Tape, name: str, view: View) -> None:
    """Walk a detector that samples regions."""
    image, boxes = Map(3, view.height, view.width), view.boxes
    norm: Norm = "group" if re.search(r"gn-all|gn-ws-all", config) else "none"
    tape.standardised = "gn-ws" in config
    for _ in range(2 if name == "masktrack-rcnn" else 1):  # a frame, and the one it is followed from
        tape.params = tape.trained = 0.0
        outs = _backbone(config, tape, view)
        pyramid = parts.add_wide_pyramid(tape, outs) if "hrnet" in config else parts.add_pyramid(tape, outs, norm=norm)
    if "pafpn" in config:
        pyramid = parts.add_bottom_up(tape, pyramid)
    if name.startswith("libra"):
        pyramid = parts.balance(tape, pyramid)
    parts.add_proposals(tape, pyramid, boxes=boxes, guided=name.startswith("ga-"))
    if name.endswith("rpn"):
        return
    if name == "htc":
        parts.add_semantic(tape, pyramid)
    head_norm: Norm = norm if norm != "none" else "batch" if "syncbn-backbone+head" in config else "none"
    convs = 4 if head_norm != "none" or "4conv1fc" in config else 0
    classes = view.classes
    for stage in range(3 if name.startswith("cascade") or name == "htc" else 1):
        parts.add_boxes(tape, convs=convs, norm=head_norm, classes=classes)
        if name == "point-rend":
            parts.add_points(tape)
            parts.cut_masks(tape, image, boxes=boxes)
        if "mask" in name or name in ("htc", "ms-rcnn", "panoptic-fpn"):
            true = None if "poly" in config else image
            parts.add_masks(tape, norm=head_norm, image=true, classes=classes, boxes=boxes)
        if name == "htc":
            parts.add_flow(tape, stage)
            parts.add_semantic_regions(tape)
    if name == "ms-rcnn":
        parts.add_mask_score(tape)
    if name == "panoptic-fpn":
        logits = tape.conv(summed(tape, pyramid[:4]), 54, 1, norm="none", act="none")
        tape.hold(tape.softmax * logits.size)


def _backbone(config: str, tape: Tape, view: View, *, frozen: int = 1) -> list[Map]:
    """Walk the backbone a config names."""
    height, width = view.height, view.width
    if found := re.search(r"hrnetv2p-w(\d+)", config):
        return HRNet(width=int(found[1])).walk(tape, height, width)
    if found := re.search(r"regnetx-([\d.]+[GM]F)", config):
        return replace(REGNETX[found[1]], frozen=1).walk(tape, height, width)
    if found := re.search(r"swin-([tsbl])-p4-w(\d+)", config):
        return replace(SWIN[found[1]], window=int(found[2])).walk(tape, height, width)
    if found := re.search(r"_(pvt(?:v2)?-[a-z0-9]+)_", config):
        return PVT[found[1]].walk(tape, height, width)
    if found := re.search(r"convnext-([tsbl])-", config):
        return CONVNEXT[found[1]].walk(tape, height, width)
    if found := re.search(r"res2net-(\d+)", config):
        net = ResNet(
            depth=int(found[1]), group_width=26, splits=4, res2=True, stem=(32, 32, 64), avg_down=True, frozen=1
        )
        return net.walk(tape, height, width)
    found = re.search(r"_([rxs])(\d+)(?:[-_](\d+)x(\d+)d)?", config)
    if found is None or int(found[2]) not in (18, 34, 50, 101, 152):
        raise NoFormulaError(f"no formula for the backbone of {config}")
    groups, of_group = (int(found[3]), int(found[4])) if found[3] else (1, 64)
    if found[1] == "x" and not found[3]:  # unnamed: the usual one of its folder
        groups, of_group = (32, 4) if config.startswith("reppoints") else (64, 4)
    net = ResNet(
        depth=int(found[2]),
        groups=groups,
        group_width=of_group,
        frozen=frozen,
        stride_first=view.caffe,
        norm="group" if "gn-all" in config or "gn-ws-all" in config else "frozen" if "frozenbn" in config else "batch",
        deform=2 if re.search(r"dconv|-dcn", config) else 0,
        masked="mdconv" in config,
        context=int((re.findall(r"(?:gcb-r|-r)(16|4)", config) or [16])[0]) if "gcb" in config else 0,
    )
    if found[1] == "s":
        net = replace(net, stem=(32, 32, 64), splits=2, avg_down=True, groups=1, group_width=64)
    return net.walk(tape, height, width)
