"""The five recipes beside the code they come from: same weights, same inputs, and files of weights both ways.

`python bench/parity.py --upstream DIR [RECIPE…]`. DIR holds checkouts that a person has fetched; nothing of them is in
this repository:

    DIR/nanochat                       October 2025, such as c75fe54
    DIR/RoboticsDiffusionTransformer   and timm==1.0.3 on PYTHONPATH, which it pins
    DIR/LayoutMaster
    DIR/TFNet
    DIR/AtlasVLA                       February 2026, such as b378069

Each recipe is compared in a process of its own, in `original` mode, at small sizes in fp32. Libraries that their files
import and the compared classes do not use are stood in for. Differences are relative to the largest number; `files_in`
is the forward of our model with weights from a file that their trainer would write, `files_out` that of theirs with
weights from our export. The last line is JSON.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, patch

STOOD_IN = (
    *("torchvision", "torchvision.models", "torchvision.transforms", "torchvision.transforms.functional"),
    *("torchvision.ops", "torchvision.ops.misc", "torchvision.models.feature_extraction", "torchvision.datasets"),
    *("rustbpe", "tiktoken", "wandb", "vggt", "vggt.models", "vggt.models.vggt", "Transformer", "SEN"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A module of theirs beside one of ours, and how each is run on the same inputs."""

    theirs: Any
    ours: Any
    run_theirs: Callable[[], Any]
    run_ours: Callable[[], Any]
    upstream: Any
    prefix: str = ""
    """What comes before our names where only a part of our model is compared."""
    part: str = ""
    """Dict of their trainer's file that holds the weights."""
    is_exact: bool = False
    """Gradients are compared in fp64: the deepest network multiplies fp32's rounding by a thousand."""


def nanochat(folder: Path) -> Pair:
    """Return the GPT of October 2025."""
    import torch

    sys.path.insert(0, str(folder / "nanochat"))
    gpt = importlib.import_module("nanochat.gpt")
    from headway.recipes.nanochat.model import Gpt, GptSize
    from headway.recipes.nanochat.upstream import UPSTREAM

    theirs = gpt.GPT(gpt.GPTConfig(sequence_len=32, vocab_size=96, n_layer=3, n_head=4, n_kv_head=2, n_embd=64))
    ours = Gpt(GptSize(seq_len=32, vocab_size=96, n_layer=3, n_head=4, n_kv_head=2, width=64))
    _draw(theirs)
    # Their rotary tables are always in bf16, ours in the type of the stream: both are compared with theirs.
    for own, other in ((ours.cos, theirs.cos), (ours.sin, theirs.sin)):
        assert torch.equal(own.bfloat16(), other[0]), "rotary tables differ"
        own.copy_(other[0])
    tokens = torch.randint(96, (2, 32))
    return Pair(
        theirs=theirs, ours=ours, run_theirs=lambda: theirs(tokens), run_ours=lambda: ours(tokens), upstream=UPSTREAM
    )


def rdt(folder: Path) -> Pair:
    """Return the transformer with the norm of timm 1.0.3."""
    import torch

    sys.path.insert(0, str(folder / "RoboticsDiffusionTransformer"))
    model = importlib.import_module("models.rdt.model")
    from headway.recipes.rdt.model import Conditions, Rdt
    from headway.recipes.rdt.section import RdtSection
    from headway.recipes.rdt.upstream import UPSTREAM

    sizes = {"hidden_size": 64, "depth": 4, "num_heads": 4}
    theirs = model.RDT(
        **{**sizes, "output_dim": 128, "horizon": 16, "max_lang_cond_len": 20, "img_cond_len": 54},
        lang_pos_embed_config=[("lang", -20)],
        img_pos_embed_config=[("image", (2, 3, -9))],
        dtype=torch.float32,
    )
    section = RdtSection(
        **sizes,
        action_chunk_size=16,
        tokenizer_max_length=20,
        img_patches=9,
        norm="timm_var",
        rollout={"exec_horizon": 4},
    )
    ours = Rdt(section)
    _draw(theirs)
    x, lang, img = torch.randn(2, 17, 64), torch.randn(2, 12, 64), torch.randn(2, 54, 64)
    t, freq, mask = torch.tensor([10, 900]), torch.tensor([20.0, 20.0]), torch.ones(2, 12, dtype=torch.bool)
    mask[1, 5:] = False
    given = Conditions(lang=lang, lang_mask=mask, img=img, state=x[:, :1], mask=torch.ones(2, 128), freq=freq)
    return Pair(
        theirs=theirs,
        ours=ours,
        run_theirs=lambda: theirs(x, freq, t, lang, img, lang_mask=mask),
        run_ours=lambda: ours(x, t, given),
        upstream=UPSTREAM,
        part="module",
    )


def layoutmaster(folder: Path) -> Pair:
    """Return the layout transformer."""
    import torch

    sys.path.insert(0, str(folder / "LayoutMaster"))
    models = importlib.import_module("models")
    from headway.recipes.layoutmaster.model import LayoutDiffusionTransformer, LayoutSize
    from headway.recipes.layoutmaster.upstream import UPSTREAM

    theirs = models.LayoutDiffusionTransformer(visual_dim=48, hidden_dim=64, num_layers=3, max_elements=25)
    ours = LayoutDiffusionTransformer(LayoutSize(visual_dim=48, hidden_dim=64, num_layers=3, is_fixed=False))
    seen, layout, t = torch.randn(3, 25, 48), torch.randn(3, 25, 6), torch.randint(0, 1000, (3,))
    mask = torch.arange(25) < torch.tensor([7, 25, 3])[:, None]
    return Pair(
        theirs=theirs,
        ours=ours,
        run_theirs=lambda: theirs(seen, layout, t, mask.float()),
        run_ours=lambda: ours(seen, layout, t, mask),
        upstream=UPSTREAM,
        prefix="layout.",
        part="model_state_dict",
    )


def tfnet(folder: Path) -> Pair:
    """Return the whole network, ResNet-34 and both branches."""
    import torch

    sys.path.insert(0, str(folder / "TFNet"))
    module = importlib.import_module("Module")
    module.model_zoo.load_url = lambda *_, **__: {}  # type: ignore[attr-defined]  # ImageNet is not needed here
    net = importlib.import_module("Net")
    from headway.recipes.tfnet.model import Tfnet
    from headway.recipes.tfnet.section import TfnetSection
    from headway.recipes.tfnet.upstream import UPSTREAM

    theirs = net.moduleNet(32, 12, "TFNet", torch.device("cpu"), "CE-CSL")
    ours = Tfnet(TfnetSection(hidden_size=32), 11)
    frames = torch.randint(0, 256, (2, 24, 3, 32, 32), dtype=torch.uint8)
    lengths = [torch.tensor([24]), torch.tensor([20])]

    def run_theirs() -> Any:
        inputs = frames.to(theirs.classifier1.weight.dtype) / 127.5 - 1
        return torch.stack(theirs(inputs, lengths, True)[:5])

    def run_ours() -> Any:
        short = torch.tensor([3, 2])
        found = ours(frames, short)
        names = ("time_lstm", "time_conv", "frequency_lstm", "frequency_conv", "fused")
        return torch.stack([found[name] for name in names])

    return Pair(
        theirs=theirs,
        ours=ours,
        run_theirs=run_theirs,
        run_ours=run_ours,
        upstream=UPSTREAM,
        part="moduleNet_state_dict",
        is_exact=True,
    )


def atlas(folder: Path) -> Pair:
    """Return all that is trained when both encoders are frozen."""
    import torch
    from torch import nn

    place = folder / "AtlasVLA" / "atlas" / "src" / "models"
    sys.path.insert(0, str(place.parent))
    sys.modules["models"] = package = type(sys)("models")  # their __init__ loads encoders that are not compared
    package.__path__ = [str(place)]
    parts = {name: importlib.import_module(f"models.{name}") for name in ("geometry_encoder", "fusion", "action_head")}
    from headway.recipes.atlas.model import Atlas, AtlasSize
    from headway.recipes.atlas.upstream import UPSTREAM

    theirs = nn.Module()
    theirs.geom_encoder = parts["geometry_encoder"].GeometryFeatureExtractor(token_dim=96, output_dim=32)
    theirs.fusion = parts["fusion"].MultimodalFusion(lang_dim=40, geom_dim=32, hidden_dim=64, num_layers=2, num_heads=4)
    theirs.action_head = parts["action_head"].ActionHead(input_dim=64)
    size = AtlasSize(
        token_dim=96,
        lang_dim=40,
        token_features=16,
        pose_features=8,
        point_features=(64, 128, 16),
        geom_dim=32,
        fusion_dim=64,
        fusion_layers=2,
        fusion_heads=4,
        masks_padding=False,
        starts_even=False,
    )
    ours = Atlas(size, nn.Identity(), nn.Identity())
    layers = [torch.randn(2, 2, 11, 96) for _ in range(2)]
    points, pose, text = torch.randn(2, 2, 6, 6, 3), torch.randn(2, 2, 9), torch.randn(2, 5, 40)
    batch = {
        "tokens": torch.stack(layers).mean(0).mean(2),
        "points": points.flatten(2, 3),
        "pose": pose,
        "text": text,
        "real": torch.ones(2, 5, dtype=torch.bool),
    }

    def run_theirs() -> Any:
        seen = theirs.geom_encoder(layers, world_points=points, pose_enc=pose)
        return theirs.action_head(theirs.fusion(text, seen))["action"]

    return Pair(
        theirs=theirs,
        ours=ours,
        run_theirs=run_theirs,
        run_ours=lambda: ours(batch),
        upstream=UPSTREAM,
        part="model_state_dict",
    )


PAIRS = {"nanochat": nanochat, "rdt": rdt, "layoutmaster": layoutmaster, "tfnet": tfnet, "atlas": atlas}


def compare(pair: Pair, folder: Path) -> dict[str, float]:
    """Return the four differences."""
    import torch

    for module in (pair.theirs, pair.ours):
        module.eval()
    _bring(pair, folder)
    theirs, ours = pair.run_theirs(), pair.run_ours()
    away = _away(theirs, ours)
    found = {"forward": away, "gradients": _gradients(pair, theirs, ours), "files_in": away}
    torch.manual_seed(7)
    _draw(pair.ours)
    _send(pair, folder)
    with torch.no_grad():
        found["files_out"] = _away(pair.run_theirs(), pair.run_ours())
    return found


def _bring(pair: Pair, folder: Path) -> None:
    """Write their weights as their trainer does, behind data parallel's prefix, and read them as import does."""
    import torch

    from headway.engine.take_weights import copy_weights
    from headway.weights import adopt_names, read_weights

    state = {f"module.{name}": value for name, value in pair.theirs.state_dict().items()}
    optimizer = torch.optim.AdamW(pair.theirs.parameters())
    held = {pair.part: state, "optimizer_state_dict": optimizer.state_dict(), "epoch": 3} if pair.part else state
    torch.save(held, folder / "theirs.pth")
    wanted = {f"{pair.prefix}{name}": value for name, value in pair.ours.state_dict().items()}
    shapes = {name: tuple(value.shape) for name, value in wanted.items()}
    adopted = adopt_names(read_weights(folder / "theirs.pth"), shapes, pair.upstream)
    copy_weights(adopted.weights, wanted)


def _send(pair: Pair, folder: Path) -> None:
    """Write our weights as export does, and load them as they do: strictly."""
    import torch
    from safetensors.torch import save_file

    from headway.checkpoint.export_upstream import write_for_upstream

    state = {f"{pair.prefix}{name}": value.contiguous() for name, value in pair.ours.state_dict().items()}
    save_file(state, folder / "ours.safetensors")
    write_for_upstream(folder / "ours.safetensors", folder / "ours.pth", pair.upstream, {})
    found = torch.load(folder / "ours.pth", weights_only=True)
    pair.theirs.load_state_dict(found[pair.upstream.part] if pair.upstream.part else found)


def _gradients(pair: Pair, theirs: Any, ours: Any) -> float:
    """Return the largest difference of a gradient of the outputs' mean square, relative to the largest gradient."""
    if pair.is_exact:
        return _exact_gradients(pair)
    theirs.square().mean().backward()
    ours.square().mean().backward()
    return _compare_gradients(pair)


def _exact_gradients(pair: Pair) -> float:
    """Return the same with every number in fp64, where the models ask for fp32, too."""
    import torch

    for module in (pair.theirs, pair.ours):
        module.double()
    with patch.object(torch.Tensor, "float", torch.Tensor.double):
        pair.run_theirs().square().mean().backward()
        pair.run_ours().square().mean().backward()
    found = _compare_gradients(pair)
    for module in (pair.theirs, pair.ours):
        module.float()
    return found


def _compare_gradients(pair: Pair) -> float:
    held = dict(pair.theirs.named_parameters())
    away, largest = 0.0, 0.0
    for name, param in pair.ours.named_parameters():
        at = pair.upstream.rename(f"{pair.prefix}{name}", tuple(param.shape))
        other = None if at is None else held[at.name].grad
        if other is not None and param.grad is not None:
            away = max(away, float((other.reshape(param.shape) - param.grad).abs().max()))
            largest = max(largest, float(other.abs().max()))
    return away / largest


def _away(one: Any, other: Any) -> float:
    return float((one - other).detach().abs().max() / one.detach().abs().max().clamp(min=1e-12))


def _draw(module: Any) -> None:
    """Give every weight a value that counts: several start at zero."""
    import torch

    with torch.no_grad():
        for name, value in module.state_dict().items():
            if value.is_floating_point():
                if name.endswith("running_var"):
                    value.uniform_(0.5, 1.5)
                else:
                    value.normal_(std=0.1)


def main() -> int:
    """Compare all recipes, each in a child, and print a line of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upstream", type=Path, required=True)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("recipes", nargs="*", choices=[*PAIRS, []])
    asked = parser.parse_args()
    if asked.one:
        return _one(asked.upstream, asked.recipes[0])
    found = {}
    for name in asked.recipes or PAIRS:
        line = [sys.executable, __file__, "--upstream", str(asked.upstream), "--one", name]
        child = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=False)
        told = child.stdout.strip().splitlines()
        found[name] = json.loads(told[-1]) if child.returncode == 0 else None
        print(f"{name:14} {found[name] or 'failed'}", flush=True)
    print(json.dumps(found))
    return 0 if all(row and max(row.values()) <= 1e-5 for row in found.values()) else 1


def _one(upstream: Path, name: str) -> int:
    for module in STOOD_IN:
        sys.modules.setdefault(module, MagicMock())
    import torch

    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(compare(PAIRS[name](upstream), Path(place))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
