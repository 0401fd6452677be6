"""Vision networks as their forward passes: backbones, necks and heads that a `Tape` walks.

Comes in: a tape (`planner/models/convnet.py`) and the size of an image. Goes out: the same tape with what one image
keeps, and the maps the next part takes. Every function follows the public code of the network it is named after.
"""

from __future__ import annotations

from headway.planner.models.vision.darknet import YOLOX, add_yolo_v3, walk_darknet, walk_vgg
from headway.planner.models.vision.detect import add_ssd
from headway.planner.models.vision.hrnet import HRNet, walk_unet
from headway.planner.models.vision.mobile import walk_mobile_v2, walk_mobile_v3
from headway.planner.models.vision.names import EXAMPLES, walk_classifier
from headway.planner.models.vision.query import add_mask_queries
from headway.planner.models.vision.regnet import REGNETX, REGNETY, RegNet
from headway.planner.models.vision.resnet import ResNet
from headway.planner.models.vision.transformer import CONVNEXT, MIT, POOLFORMER, PVT, SWIN, TWINS, VITS, look, perceive

__all__ = [
    "CONVNEXT",
    "EXAMPLES",
    "MIT",
    "POOLFORMER",
    "PVT",
    "REGNETX",
    "REGNETY",
    "SWIN",
    "TWINS",
    "VITS",
    "YOLOX",
    "HRNet",
    "RegNet",
    "ResNet",
    "add_mask_queries",
    "add_ssd",
    "add_yolo_v3",
    "look",
    "perceive",
    "walk_classifier",
    "walk_darknet",
    "walk_mobile_v2",
    "walk_mobile_v3",
    "walk_unet",
    "walk_vgg",
]
