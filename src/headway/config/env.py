"""The environment variables Headway reads, all of them.

| variable | means |
|---|---|
| `HEADWAY_SET_<KEY>` | sets a key; dots are double underscores: `HEADWAY_SET_BATCH__TOTAL=64` is `batch.total=64` |
| `LC_ALL`, `LC_MESSAGES`, `LANG` | language of messages, when neither `--lang` nor the config names one |
| `HEADWAY_ALERT_TO` | addresses that every run sends its alerts to (see `headway alert --help`) |
| `HEADWAY_SHARE_RUNS` | set to 1, new run directories may be read by other users |
| `HEADWAY_TRUST` | paths whose code may run although only a file names them, with colons (see `headway trust`) |
| `XDG_CONFIG_HOME` | where `headway trust` keeps its list; else `~/.config` |
| `NO_COLOR`, `TERM` | colour |
| `LOCAL_RANK`, `WORLD_SIZE`, `LOCAL_WORLD_SIZE`, `MASTER_PORT`, `TORCHELASTIC_RESTART_COUNT` | in the scripts of \
`headway new`: which of a launcher's processes this is |
| `ACCELERATE_MIXED_PRECISION`, `LIBERO_DATASET_DIR`, `CUDA_VISIBLE_DEVICES` | in RDT's scripts: what its guide sets |

Everything else passes through to the ranks unread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PREFIX: Final = "HEADWAY_SET_"


def name_variable(key: str) -> str:
    """Return the variable that sets a key."""
    return PREFIX + key.upper().replace(".", "__")


def read_settings(environ: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return variable, key and text of every setting in the environment, in the order of their names."""
    return [
        (variable, variable.removeprefix(PREFIX).lower().replace("__", "."), environ[variable])
        for variable in sorted(environ)
        if variable.startswith(PREFIX) and variable != PREFIX
    ]
