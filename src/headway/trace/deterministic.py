"""Operations that have no deterministic kernel on CUDA: with `train.deterministic=true` torch refuses them.

The trace runs on the CPU, where none of them refuses, so they are known here by name: from the documentation of
`torch.use_deterministic_algorithms`, and from the CUDA sources where the documentation names a module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ALWAYS = {
    "_adaptive_avg_pool2d_backward",
    "_adaptive_avg_pool3d_backward",
    "_ctc_loss_backward",
    "_upsample_bicubic2d_aa_backward",
    "_upsample_bilinear2d_aa_backward",
    "adaptive_max_pool2d_backward",
    "avg_pool3d_backward",
    "fractional_max_pool2d_backward",
    "fractional_max_pool3d_backward",
    "grid_sampler_2d_backward",
    "grid_sampler_3d_backward",
    "histc",
    "max_unpool2d",
    "max_unpool3d",
    "nll_loss2d_forward",
    "put",
    "put_",
    "reflection_pad1d_backward",
    "reflection_pad2d_backward",
    "reflection_pad3d_backward",
    "upsample_bicubic2d_backward",
    "upsample_trilinear3d_backward",
}
# Not `upsample_bilinear2d_backward`: `interpolate` takes another, deterministic road where the switch is on.
_MODE_MAX = 2


def refuses(func: Any, args: Any, kwargs: Mapping[str, Any]) -> str | None:
    """Return the name of an operation that CUDA would refuse, or None; the arguments are those of a dispatch mode."""
    name: str = func._overloadpacket.__name__
    if name in _ALWAYS:
        return name
    given = {one.name: value for one, value in zip(func._schema.arguments, args, strict=False)} | dict(kwargs)
    match name:
        case "cumsum" | "cumsum_":
            dtype = given.get("dtype") or given["self"].dtype
            refused = dtype.is_floating_point or dtype.is_complex
        case "median":
            refused = func._overloadname != "default"
        case "bincount":
            refused = given.get("weights") is not None
        case "scatter_reduce" | "scatter_reduce_":
            refused = given.get("reduce") == "prod"
        case "_embedding_bag_dense_backward":
            refused = given.get("mode") == _MODE_MAX
        case _:
            return None
    return name if refused else None
