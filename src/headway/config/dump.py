"""The resolved config as YAML for people, which `load_config` reads back to the same config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.config.schema import RunConfig
from headway.config.spelling import write_yaml_value


def dump_yaml(config: RunConfig, origins: Mapping[str, str] | None = None) -> str:
    """Return the config as YAML; with origins, each line says where its value came from."""
    lines: list[str] = []
    _write(config.model_dump(mode="json"), "", origins or {}, lines)
    return "\n".join(lines) + "\n"


def _write(table: Mapping[str, Any], prefix: str, origins: Mapping[str, str], lines: list[str]) -> None:
    """Any: plain values of many types."""
    indent = "  " * prefix.count(".")
    for name, value in table.items():
        key = f"{prefix}{name}"
        is_section = isinstance(value, dict) and value and key not in origins and _is_plain_names(value)
        if is_section:
            lines.append(f"{indent}{write_yaml_value(name)}:")
            _write(value, f"{key}.", origins, lines)
            continue
        # A file's name may hold a line break; a comment may not.
        comment = f"  # {' '.join(origins[key].split())}" if key in origins else ""
        lines.append(f"{indent}{write_yaml_value(name)}: {write_yaml_value(value)}{comment}")


def _is_plain_names(table: Mapping[str, Any]) -> bool:
    return all(name.isidentifier() for name in table)
