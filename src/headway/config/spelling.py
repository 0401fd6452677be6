"""How a value is written in each format, for "type this instead"."""

from __future__ import annotations

import json
import re

from headway.config.env import name_variable
from headway.config.problems import Form
from headway.config.scalar import read_scalar

_SAFE = re.compile(r"[A-Za-z_./][\w./+@-]*")
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
MAX_SHOWN = 60


def write_setting(form: Form, key: str, value: object) -> str:
    """Return a whole setting in one format: `base: 1e-4`, `"base": 1e-4`, `base = 1e-4`, `lr.base=1e-4`."""
    leaf = key.rpartition(".")[2]
    text = write_value(form, value)
    if form == "variable":
        return f"{name_variable(key)}={text}"
    if form == "yaml":
        return f"{leaf}: {text}"
    if form == "json":
        return f"{json.dumps(leaf, ensure_ascii=False)}: {text}"
    return f"{key}={text}" if form == "words" else f"{leaf} = {text}"


def write_value(form: Form, value: object) -> str:
    """Return a plain value in one format."""
    if form == "py":
        return repr(value)
    if (
        form in ("words", "variable")
        and isinstance(value, str)
        and re.fullmatch(r"[^\s'\"$&;|<>()\[\]{}*?!#~`\\]+", value)
    ):
        return value
    if form in ("yaml", "words", "variable"):
        return write_yaml_value(value)
    if value is None:
        return "null" if form == "json" else '"none"'
    return json.dumps(value, ensure_ascii=False)


def write_yaml_value(value: object) -> str:
    """Return a value in YAML's flow style, quoted only where it would read as something else."""
    if isinstance(value, dict):
        pairs = (f"{write_yaml_value(str(key))}: {write_yaml_value(item)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(write_yaml_value(item) for item in value) + "]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    text = str(value)
    if _SAFE.fullmatch(text) and isinstance(read_scalar(text), str):
        return text
    # JSON's quoting is YAML's, but for letters that YAML wants escaped and JSON leaves alone.
    return _ESCAPED.sub(lambda found: f"\\u{ord(found.group()):04x}", json.dumps(text, ensure_ascii=False))


def show_value(value: object) -> str:
    """Return a value for a message, shortened."""
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else write_yaml_value(value)
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
