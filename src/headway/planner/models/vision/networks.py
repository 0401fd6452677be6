"""Any vision network by the name people know it by: classifiers, detectors, segmenters.

Comes in: `resnet50`, `mask-rcnn-r50`, `maskrcnn_resnet50_fpn`, `upernet-swin-t`, `segformer-b0`. Goes out: a `Network`
that a tape can walk.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from headway.planner.models.convnet import Map, NoFormulaError, Tape
from headway.planner.models.vision import segmenters
from headway.planner.models.vision.detectors import DENSE, view_of, walk_detector
from headway.planner.models.vision.names import walk_classifier

_DETECTORS = (
    *("mask-rcnn", "faster-rcnn", "cascade-rcnn", "cascade-mask-rcnn", "htc", "ms-rcnn", "point-rend", "panoptic-fpn"),
    *("libra-faster-rcnn", "dynamic-rcnn", "ga-faster-rcnn", "rpn", "mask2former", *DENSE),
)
_SEGMENTERS = (*segmenters.HEADS, "segformer", "fpn", "ocrnet", "knet-s3", "bisenetv1")
DETECTORS = ("mask-rcnn-r50", "faster-rcnn-r101", "cascade-mask-rcnn-swin-t", "retinanet-r50", "yolox-s", "yolov3")
SEGMENTERS = ("deeplabv3plus-r50", "pspnet-r101", "upernet-swin-t", "segformer-b0", "unet", "fcn-hr18")
"""Names that show what is understood."""
_DILATED = re.compile(r"[rs](?:18|34|50|101|152|200|269)b?")
_WHOLE = ("upernet", "fpn", "bisenetv1", "knet-s3")
"""Heads whose ResNets are not dilated."""
_LENGTHS = {"t": "tiny", "s": "small", "b": "base", "l": "large"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A vision network and what it is trained on unless somebody says otherwise."""

    kind: Literal["classifier", "detector", "segmenter"]
    config: str
    """Its name in the form its formulas read."""
    image: int
    """Side of an image, or the shorter one."""
    classes: int

    def walk(self, tape: Tape, side: int, classes: int) -> bool:
        """Walk it at a size; return whether the roofline was measured on networks of its kind.

        Raises:
            NoFormulaError: a part of the name says nothing here.
        """
        if self.kind == "classifier":
            timed = walk_classifier(self.config, tape, side, side)
            if timed is None:
                raise NoFormulaError(self.config)
            return timed
        try:
            if self.kind == "segmenter":
                segmenters.walk_segmenter(self.config, tape, Map(3, side, side), classes)
            else:
                view = view_of(self.config)
                long = -(-side * view.width // view.height // 32) * 32
                walk_detector(self.config, tape, replace(view, height=side, width=long, classes=classes))
        except (KeyError, IndexError) as err:  # a size that its family does not have
            raise NoFormulaError(self.config) from err
        return False


def find_network(name: str) -> Network | None:
    """Return the network of a name; none: it says nothing here."""
    plain = name.lower()
    for network in _readings(plain):
        try:
            network.walk(Tape(), network.image, network.classes)
        except NoFormulaError:
            continue
        return network
    return None


def _readings(plain: str) -> list[Network]:
    """Return what a name can be read as, the likeliest first."""
    out = [Network(kind="classifier", config=plain, image=224, classes=1000)]
    words = _spell(plain) + _house(plain)
    if config := _detector(words):
        out.append(Network(kind="detector", config=config, image=view_of(config).height, classes=80))
    if config := _segmenter(_spell(plain)):
        out.append(Network(kind="segmenter", config=config, image=512, classes=150))
    return out


def _house(plain: str) -> str:
    """Return what the spelling of a name says of whose code it is.

    torchvision (`maskrcnn_resnet50_fpn`) and detectron2 (`mask_rcnn_R_50_FPN`) freeze every norm of the backbone,
    mmdetection trains their gains; detectron2's plain ResNets take their stride in the first convolution.
    """
    if re.search(r"_r_\d+(?:_|$)", plain):
        return "-caffe-frozenbn"
    return "-frozenbn" if re.search(r"rcnn_resnet|net_resnet|_x_\d+", plain) else ""


def _spell(plain: str) -> str:
    """Return a name as mmdetection spells its parts."""
    text = re.sub(r"[\s_]+", "-", plain).replace("r-cnn", "rcnn")
    text = re.sub(r"(?<=mask|ster|cade)rcnn", "-rcnn", text)
    text = re.sub(r"deeplab-?v3(?:plus|\+)", "deeplabv3plus", text)
    text = re.sub(r"resnext-?(?=\d)", "x", text)
    text = re.sub(r"resnet-?(?=\d)|(?<=\br)-(?=\d)", lambda found: "r" if found[0] != "-" else "", text)
    text = re.sub(r"(?<=\bx)-(?=\d)", "", text)
    text = re.sub(r"(?<=swin-)(t|s|b|l)[a-z]+", r"\1", text)
    text = re.sub(r"\bhrnet-?(?:v2p?-?)?w?(?=\d)", "hr", text)
    return re.sub(r"-(?:fpn|1x|2x|3x|coco|v1c|v2)(?=-|$)", "", text)


def _split(words: str, heads: tuple[str, ...]) -> tuple[str, str] | None:
    """Return head and backbone of a name; a ResNet-50 where none is named."""
    for head in sorted(heads, key=len, reverse=True):
        if words == head or words.startswith(f"{head}-"):
            return head, words[len(head) + 1 :] or "r50"
    return None


def _detector(words: str) -> str | None:
    """Return a name as a config of mmdetection."""
    if found := re.fullmatch(r"yolox-(tiny|s|m|l|x)", words):
        return f"yolox_{found[1]}_coco"
    if found := re.fullmatch(r"yolo-?v3(?:-d(?:arknet)?53)?(?:-(320|416|608))?", words):
        return f"yolov3_d53_ms-{found[1] or 608}-coco"
    parts = _split(words, _DETECTORS)
    if parts is None:
        return None
    head, backbone = parts
    backbone = re.sub(r"^(swin|convnext)-([tsbl])$", r"\1-\2-p4-w7", backbone)
    backbone = re.sub(r"^hr(\d+)$", r"hrnetv2p-w\1", backbone)
    backbone = re.sub(r"(?<=\d)(g|m)f$", lambda found: found[0].upper(), backbone)
    return f"{head}_{backbone}_fpn_coco"


def _segmenter(words: str) -> str | None:
    """Return a name as a config of mmsegmentation, on ADE20K."""
    if words in ("unet", "unet-fcn", "unet-pspnet", "unet-deeplabv3"):
        return f"unet-s5-d16_{words.partition('-')[2] or 'fcn'}_ade20k"
    if words in ("lraspp", "lraspp-mobilenet-v3", "lraspp-mobilenet-v3-large"):
        return "mobilenet-v3-d8_lraspp_ade20k"
    parts = _split(words, _SEGMENTERS)
    if parts is None:
        return None
    head, backbone = parts
    if head == "segformer":
        size = backbone.removeprefix("mit-")
        return f"segformer_mit-{'b0' if size == 'r50' else size}_ade20k"
    if found := re.fullmatch(r"(swin|convnext|beit|mae)-([tsbl])", backbone):
        window = "-patch4-window7" if found[1] == "swin" else ""
        return f"{found[1]}-{_LENGTHS[found[2]]}{window}_{head}_ade20k"
    if backbone == "mobilenet-v2":
        return f"mobilenet-v2-d8_{head}_ade20k"
    if _DILATED.fullmatch(backbone) and head not in _WHOLE:
        backbone += "-d8"
    return f"{head}_{backbone}_ade20k"
