"""`headway explain CODE`: what a code means and what to do about it: the error book, on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from headway.cli.bilingual import command, echo_json, option
from headway.cli.options import SHOWN_JSON
from headway.diagnosis import Rule, load_rules, user_rules_folder
from headway.errors import UsageError
from headway.messages import find_text
from headway.ui.terminal.diagnosis import message_lines, rule_lines


@command("explain", help="cli/explain-help")
@click.argument("code", required=False, metavar="[CODE]")
@option("--rules", type=click.Path(path_type=Path, file_okay=False, exists=True), help="cli/option-rules")
@SHOWN_JSON
def explain(code: str | None, rules: Path | None, as_json: bool) -> None:
    """See the message `cli/explain-help`."""
    book = load_rules(user_rules_folder(), *([rules] if rules else []))
    wanted = (code or "").strip("[]").removeprefix("diagnose/").removeprefix("foreign-")
    found = [rule for rule in book.rules.values() if wanted in ("", rule.code, rule.category)]
    if found:
        _show(found, is_list=not wanted, as_json=as_json)
        return
    full = (code or "").strip("[]")
    try:
        text = find_text(full)
    except (KeyError, ModuleNotFoundError, ValueError):
        raise UsageError("cli/unknown-code", code=full) from None
    if as_json:
        words = {"text_en": text.en, "text_zh": text.zh, "hint_en": text.en_hint, "hint_zh": text.zh_hint}
        echo_json({"schema": "explain/1", "codes": [{"code": full, **words}]}, indent=2)
    else:
        click.echo("\n".join(message_lines(full)))


def _show(rules: list[Rule], *, is_list: bool, as_json: bool) -> None:
    if as_json:
        echo_json({"schema": "explain/1", "codes": [_plain(rule) for rule in rules]}, indent=2)
    elif is_list:
        width = max(len(rule.category) for rule in rules)
        ordered = sorted(rules, key=lambda rule: (rule.category, rule.code))
        click.echo("\n".join(f"{rule.category:{width}}  diagnose/{rule.code}" for rule in ordered))
    else:
        click.echo("\n\n".join("\n".join(rule_lines(rule)) for rule in rules))


def _plain(rule: Rule) -> dict[str, Any]:
    """Any: plain JSON."""
    return {
        "code": f"diagnose/{rule.code}",
        "category": rule.category,
        "class": rule.kind,
        "text_en": rule.en,
        "text_zh": rule.zh,
        "is_transient": rule.is_transient,
        "explains": list(rule.explains),
        "signs": [sign.pattern.pattern for sign in rule.signs],
        "fixes": [
            {
                "for": fix.audience,
                "en": fix.en,
                "zh": fix.zh,
                "command": fix.command or None,
                "set": fix.setting or None,
            }
            for fix in rule.fixes
        ],
        "reproducer": rule.reproducer or None,
    }
