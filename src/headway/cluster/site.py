"""Settings of a cluster, by name: `~/.config/headway/clusters.yaml`. Nothing of it is used unless `--site` names it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from headway.config.problems import Problems
from headway.config.read import read_config
from headway.errors import UsageError
from headway.home import user_folder

SITES_NAME: Final = "clusters.yaml"
_KINDS: Final[Mapping[str, type]] = {
    "partition": str,
    "account": str,
    "qos": str,
    "time": str,
    "nodes": int,
    "gpus_per_node": int,
    "cpus_per_task": int,
    "options": list,
    "setup": str,
}


def sites_file(environ: Mapping[str, str]) -> Path:
    """Return where the user's sites are written down."""
    return user_folder(environ) / SITES_NAME


def read_site(path: Path, name: str) -> dict[str, Any]:
    """Return the settings of one site; Any: texts, numbers and a list of texts, as the file has them.

    Raises:
        UsageError: there is no such file, site or setting, or a value is of another kind.
    """
    if not path.is_file():
        raise UsageError("cluster/no-sites", path=path, folder=path.parent, site=name)
    problems = Problems()
    node = read_config(path, problems)
    problems.raise_if_any()
    sites = node.plain()
    site = sites.get(name)
    if not isinstance(site, dict):
        raise UsageError("cluster/no-site", path=path, site=name, known=", ".join(sites) or "n/a")
    for key, value in site.items():
        _refuse(path, f"{name}.{key}", key, value)
    return site


def _refuse(path: Path, place: str, key: str, value: object) -> None:
    kind = _KINDS.get(key)
    if kind is None:
        near = difflib.get_close_matches(key, _KINDS, n=1, cutoff=0.0)
        raise UsageError("cluster/site-key", path=path, place=place, near=near[0])
    is_right = isinstance(value, kind) and not isinstance(value, bool)
    if kind is int:
        is_right = is_right and isinstance(value, int) and value >= (0 if key == "gpus_per_node" else 1)
    if kind is list and isinstance(value, list):
        is_right = all(isinstance(one, str) and one.startswith("--") for one in value)
    if not is_right:
        raise UsageError("cluster/site-value", path=path, place=place, value=value)
