"""Segmenters by the names of mmsegmentation's configs: `pspnet_r50-d8`, `upernet_swin-tiny`, `segformer_mit-b0`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from headway.planner.models.convnet import Map, NoFormulaError, Tape, concat, fresh
from headway.planner.models.vision import segment as heads
from headway.planner.models.vision.detect import add_pyramid
from headway.planner.models.vision.hrnet import HRNet, walk_unet
from headway.planner.models.vision.mobile import walk_mobile_v2, walk_mobile_v3
from headway.planner.models.vision.query import add_mask_queries
from headway.planner.models.vision.resnet import ResNet
from headway.planner.models.vision.transformer import CONVNEXT, MIT, POOLFORMER, PVT, SWIN, TWINS, VITS, look, perceive

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
    "mapillay_v1": 65,
    "stare": 2,
    "drive": 2,
    "chase": 2,
    "hrf": 2,
}
"""Classes of a data set, by how configs name it."""
STRIDES = {"8": (1, 2, 1, 1), "16": (1, 2, 2, 1), "32": (1, 2, 2, 2)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What a head is walked on."""

    tape: Tape
    outs: list[Map]
    classes: int
    image: Map
    narrow: bool = False
    """The backbone is a small ResNet: heads have a quarter of the channels."""

    @property
    def last(self) -> Map:
        return self.outs[-1]

    @property
    def width(self) -> int:
        return 128 if self.narrow else 512

    def finish(self, x: Map, *, dropped: bool = True, aux: Map | None = None, aux_width: int = 256) -> None:
        heads.classify(self.tape, x, self.classes, self.image, dropped=dropped)
        if aux is not None:
            heads.auxiliary(self.tape, aux, width=aux_width, classes=self.classes, image=self.image)


def _inside(block: Callable[[Tape, Map], Map]) -> Callable[[Scene], Map]:
    """Return an FCN head with a block of attention between its convolutions."""

    def walk(scene: Scene) -> Map:
        y = scene.tape.conv(scene.last, scene.width)
        y = scene.tape.conv(block(scene.tape, y), scene.width)
        return scene.tape.conv(concat((scene.last, y)), scene.width)

    return walk


def _weighed(tape: Tape, x: Map) -> Map:
    """Walk a global-context block: it keeps its input once more."""
    tape.save(x)
    return fresh(x)


HEADS: dict[str, Callable[[Scene], Map]] = {
    "fcn": lambda one: heads.fcn(one.tape, one.last, width=one.width),
    "fcn-d6": lambda one: heads.fcn(one.tape, one.last, width=one.width),
    "pspnet": lambda one: heads.pyramid_pool(one.tape, one.last, width=one.width),
    "psp": lambda one: heads.pyramid_pool(one.tape, one.last, width=one.width),
    "deeplabv3": lambda one: heads.dilated(one.tape, one.last, width=one.width),
    "aspp": lambda one: heads.dilated(one.tape, one.last, width=one.width),
    "deeplabv3plus": lambda one: heads.dilated_plus(one.tape, one.outs, width=one.width, low=12 if one.narrow else 48),
    "ann": lambda one: heads.asymmetric(one.tape, one.outs),
    "ccnet": lambda one: heads.crossed(one.tape, one.last),
    "danet": lambda one: heads.dual(one.tape, one.last, classes=one.classes, image=one.image),
    "encnet": lambda one: heads.encoded(one.tape, one.last),
    "enc": lambda one: heads.encoded(one.tape, one.last),
    "apcnet": lambda one: heads.adaptive(one.tape, one.last),
    "dmnet": lambda one: heads.dynamic(one.tape, one.last),
    "isanet": lambda one: heads.interlaced(one.tape, one.last),
    "psanet": lambda one: heads.point_wise(one.tape, one.last),
    "nonlocal": _inside(heads.non_local),
    "dnl": _inside(heads.non_local),
    "gcnet": _inside(_weighed),
    "upernet": lambda one: heads.united(one.tape, one.outs),
    "uperhead": lambda one: heads.united(one.tape, one.outs),
}
"""Heads that a convolution network's stages go into, by how configs name them."""


def classes_of(config: str) -> int | None:
    """Return the classes of the data set a config names."""
    return next((number for name, number in CLASSES.items() if name in config), None)


def walk_segmenter(config: str, tape: Tape, image: Map, classes: int) -> None:
    """Walk the network of a config's name, or raise `NoFormulaError`."""
    words = config.split("_")
    scene = Scene(tape=tape, outs=[], classes=classes, image=image)
    if words[0] == "mask2former":
        return _queried(scene, config)
    if words[0] in ("maskformer", "san", "dpt"):
        raise NoFormulaError(f"no formula for the head of {words[0]}")
    for pattern, walk in BACKBONES:
        if found := re.search(pattern, config):
            return walk(scene, words, found)
    raise NoFormulaError(f"no formula for {words[0]}")


def _queried(scene: Scene, config: str) -> None:
    """Mask2Former on a ResNet or Swin."""
    height, width = scene.image.height, scene.image.width
    scene.tape.softmax = 1.0  # trained in 2023
    if found := re.search(r"swin-([tsbl])(?:-in22k|-in1k)?(-384x384)?", config):
        outs = replace(SWIN[found[1]], window=12 if found[2] else 7).walk(scene.tape, height, width)
    else:
        outs = ResNet(depth=101 if "r101" in config else 50).walk(scene.tape, height, width)
    add_mask_queries(scene.tape, outs, scene.image, objects=min(scene.classes, 20))  # masks are one a class seen


def _head(words: list[str]) -> Callable[[Scene], Map]:
    head = next((HEADS[word] for word in words if word in HEADS), None)
    if head is None:
        raise NoFormulaError(f"no formula for the head of {words[0]}")
    return head


def _resnet(scene: Scene, words: list[str], found: re.Match[str]) -> None:
    """ResNet v1c or plain, or ResNeSt, dilated or not."""
    kind, depth, plain, stride = found[1], int(found[2]), bool(found[3]), found[4] or "32"
    name, tape = words[0], scene.tape
    if name in ("emanet", "eemanet"):
        raise NoFormulaError("its figures contradict each other: ResNet-101 takes hardly more than ResNet-50")
    if name == "icnet":
        raise NoFormulaError(f"no formula for the head of {name}")
    net = ResNet(depth=depth, strides=STRIDES[stride], stem=() if plain or name == "bisenetv1" else (32, 32, 64))
    if kind == "s":
        net = replace(net, stem=(64, 64, 128), splits=2, avg_down=True)
    outs = net.walk(tape, scene.image.height, scene.image.width)
    scene = replace(scene, outs=outs, narrow=depth < 50)
    if name == "bisenetv1":
        return heads.bilateral(tape, outs, classes=scene.classes, image=scene.image, wide=depth >= 50)
    aux_width = 64 if scene.narrow else 256
    if name == "knet-s3":
        return _updated(scene, _head(words)(scene))
    if name == "fastfcn":
        scene = replace(scene, outs=[*outs[:2], heads.joint(tape, outs)])
        scene.finish(_head(words)(scene), aux=outs[-2])
    elif name in ("fpn", "pointrend"):
        levels = add_pyramid(tape, outs, levels=4)
        y = heads.summed(tape, levels)
        scene.finish(y, dropped=name == "fpn")
    elif name == "ocrnet":
        y = tape.conv(outs[-2], 256)
        scene.finish(y)
        y = heads.object_context(tape, outs[-1], Map(scene.classes, y.height, y.width), classes=scene.classes)
        scene.finish(y)
    else:
        scene.finish(_head(words)(scene), aux=outs[-2], aux_width=aux_width)
    return None


def _updated(scene: Scene, y: Map) -> None:
    """Walk K-Net on top of another head."""
    heads.classify(scene.tape, y, scene.classes, scene.image)
    heads.updated(scene.tape, y, classes=scene.classes, image=scene.image)
    heads.auxiliary(scene.tape, scene.outs[-2], width=256, classes=scene.classes, image=scene.image)


def _hrnet(scene: Scene, words: list[str], found: re.Match[str]) -> None:
    small = found[2] == "s"
    net = HRNet(width=int(found[1]), blocks=2 if small else 4, modules=(1, 3, 2) if small else (1, 4, 3))
    outs = net.walk(scene.tape, scene.image.height, scene.image.width)
    x = concat([Map(one.channels, outs[0].height, outs[0].width) for one in outs])
    y = scene.tape.conv(x, x.channels, 1)
    scene.finish(y, dropped=False)
    if words[0] == "ocrnet":
        rough = Map(scene.classes, x.height, x.width)
        scene.finish(heads.object_context(scene.tape, fresh(x), rough, classes=scene.classes), dropped=False)


def _unet(scene: Scene, words: list[str], _: re.Match[str]) -> None:
    outs = walk_unet(scene.tape, scene.image.height, scene.image.width)
    y = outs[-1]
    if "pspnet" in words:
        y = heads.pyramid_pool(scene.tape, y, width=16)
    elif "deeplabv3" in words:
        y = heads.dilated(scene.tape, y, width=16)
    else:
        y = scene.tape.conv(y, 64)
    scene.finish(y, aux=outs[-2], aux_width=64)


def _mobile_v2(scene: Scene, words: list[str], _: re.Match[str]) -> None:
    outs = walk_mobile_v2(scene.tape, scene.image.height, scene.image.width)
    scene = replace(scene, outs=outs)
    scene.finish(_head(words)(scene), aux=outs[-2])


def _mobile_v3(scene: Scene, words: list[str], found: re.Match[str]) -> None:
    size = "small" if found[1] else "large"
    height, width = scene.image.height, scene.image.width
    outs = walk_mobile_v3(scene.tape, height, width, size=size, least=height // 8)
    tape = scene.tape
    y = tape.conv(outs[-1], 128, 1)
    tape.save(y)
    for x, narrow in ((outs[1 if size == "large" else 0], 32), (outs[3 if size == "large" else 1], 64)):
        z = tape.conv(x, narrow, 1, norm="none", act="none")
        y = tape.conv(Map(128 + narrow, z.height, z.width), 128, 1)
    scene.finish(y)


def _transformer(scene: Scene, words: list[str], found: re.Match[str]) -> None:
    """A transformer in stages, under UPerNet, a semantic FPN or SegFormer's own head."""
    name, tape = found[0], scene.tape
    if name.startswith("swin"):
        net = replace(SWIN[found[1][0]], window=int(found[2] or 7))
    elif name.startswith("mit"):
        net = MIT[found[1]]
    else:
        net = {**PVT, **TWINS}[found[1]]
    outs = net.walk(tape, scene.image.height, scene.image.width)
    scene = replace(scene, outs=outs)
    if words[0] == "segformer":
        scene.finish(heads.mixed(tape, outs))
    elif "fpnhead" in words:
        scene.finish(heads.summed(tape, add_pyramid(tape, outs, levels=4)))
    elif words[0] == "knet-s3":
        _updated(scene, heads.united(tape, outs))
    else:
        scene.finish(heads.united(tape, outs), aux=outs[-2])


def _pooled(scene: Scene, _: list[str], found: re.Match[str]) -> None:
    outs = POOLFORMER[found[1]].walk(scene.tape, scene.image.height, scene.image.width)
    scene.finish(heads.summed(scene.tape, add_pyramid(scene.tape, outs, levels=4)))


def _convnext(scene: Scene, words: list[str], found: re.Match[str]) -> None:
    size = {"xlarge": "xl"}.get(found[1]) or found[1][0]
    outs = CONVNEXT[size].walk(scene.tape, scene.image.height, scene.image.width)
    scene.finish(heads.united(scene.tape, outs), aux=outs[-2])


def _plain(scene: Scene, words: list[str], found: re.Match[str]) -> None:
    """A plain transformer under UPerNet, SETR's heads or Segmenter's."""
    net, tape, name = VITS[found[1][0]], scene.tape, words[0]
    if name.startswith(("dpt", "san")):
        raise NoFormulaError(f"no formula for the head of {name}")
    if name.startswith("setr"):
        ends: tuple[int, ...] = (9, 14, 19, 23)
    elif name.startswith("segmenter"):
        ends = (net.layers - 1,)
    else:
        ends = tuple(net.layers // 4 * step - 1 for step in (1, 2, 3, 4))
    beit = name.startswith(("beit", "mae"))
    outs = replace(net, outs=ends, scaled=beit).walk(tape, scene.image.height, scene.image.width)
    if name.startswith("setr"):
        return _setr(scene, words, outs)
    if name.startswith("segmenter"):
        return _segmenter(scene, words, outs[0], net.heads)
    if beit:
        levels = heads.stretched(tape, outs)
        return scene.finish(heads.united(tape, levels, width=net.hidden), aux=levels[2])
    levels = heads.levelled(tape, outs, width=net.hidden) if "mln" in words else outs
    return scene.finish(heads.united(tape, levels), aux=levels[-1])


def _segmenter(scene: Scene, words: list[str], x: Map, number: int) -> None:
    """Linear, or a small transformer over patches and one token a class."""
    tape = scene.tape
    x = tape.norm(x, "layer")
    if "mask" in words:
        x = fresh(tape.linear(x, x.channels))
        both = Map(x.channels, 1, x.pixels + scene.classes)
        for _ in range(2):
            both = perceive(tape, look(tape, both, number), 4)
        tape.linear(tape.norm(both, "layer"), x.channels)
        tape.save(fresh(x))
    heads.classify(tape, x, scene.classes, scene.image, dropped=False)


def _setr(scene: Scene, words: list[str], outs: list[Map]) -> None:
    tape = scene.tape
    if "mla" in "-".join(words):
        return heads.gathered(tape, outs, classes=scene.classes, image=scene.image)
    up = "pup" in words
    y = heads.raised(tape, outs[-1], convs=4 if up else 1, scale=2 if up else 4, kernel=3 if up else 1)
    scene.finish(y, dropped=False)
    convs = 2 if up or scene.classes == 150 else 1
    for x in outs[:-1]:
        scene.finish(heads.raised(tape, x, convs=convs, scale=4, kernel=3 if up else 1), dropped=False)
    return None


BACKBONES: list[tuple[str, Callable[[Scene, list[str], re.Match[str]], None]]] = [
    (r"unet[-_]s5", _unet),
    (r"mobilenet-v2-d8", _mobile_v2),
    (r"mobilenet-v3-d8(?:-scratch)?(-s)?_lraspp", _mobile_v3),
    (r"_hr(\d+)(s?)_", _hrnet),
    (r"swin-(tiny|small|base|large|t|l)(?:-patch4-window(\d+))?[-_]", _transformer),
    (r"mit-(b\d)", _transformer),
    (r"twins_((?:pcpvt|svt)-[sbl])", _transformer),
    (r"poolformer_(\w\d\d)_", _pooled),
    (r"convnext-([a-z]+)_", _convnext),
    (r"(?:vit|deit|beit|mae)-([tsbl])", _plain),
    (r"_([rs])(\d+)(b?)(?:-d(8|16|32))?[-_]", _resnet),
]
"""How configs name backbones, and who walks them."""
