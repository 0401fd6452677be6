"""Options and settings that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from headway.cli.bilingual import option

WORDS: Final = {"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]}
"""Of a command that takes `key=value` words: `--a.b=c` is one of them, and no option."""
RUNS: Final = option("--runs", "--out", "out", default="runs", type=click.Path(path_type=Path), help="cli/option-out")
JSON: Final = option("--json", "as_json", is_flag=True, help="cli/option-json")
SHOWN_RUNS: Final = option(
    "--runs", "--out", "out", default="runs", show_default=True, type=click.Path(path_type=Path), help="ui/opt-out"
)
SHOWN_JSON: Final = option("--json", "as_json", is_flag=True, help="ui/opt-json")
SHOWN_DRY_RUN: Final = option("--dry-run", is_flag=True, help="ui/opt-dry-run")
DETACH: Final = option("--detach", is_flag=True, help="cli/option-detach")
DRY_RUN: Final = option("--dry-run", is_flag=True, help="cli/option-dry-run")
TRACE: Final = option("--trace/--no-trace", default=None, help="cli/option-trace")
RUN_FILE: Final = option("--run-file", type=click.Path(path_type=Path), help="cluster/option-run-file")
STEP: Final = option("--step", default="latest", help="cli/option-step")
RUN: Final = click.argument("run", required=False)
