"""All findings about one text, in the order of its lines."""

from __future__ import annotations

from headway.adopt.finding import Finding
from headway.adopt.lint.context import Context, Version
from headway.adopt.lint.launches import judge_launch
from headway.adopt.lint.variables import judge_variable
from headway.adopt.record import Meaning, Setting
from headway.adopt.secrets import find_kept_secret


def check(meaning: Meaning, *, torch: Version | None = None) -> list[Finding]:
    """Return a verdict for every exported variable, every launch and every slip."""
    settings = tuple(one for one in meaning.settings if one.is_exported)
    values = {one.name: one.value for one in settings}
    context = Context(
        launches=meaning.launches,
        settings=settings,
        torch=torch,
        values=values,
        announced=meaning.announced,
        used=meaning.used,
    )
    found = [judge(setting, context) for setting in dict.fromkeys(settings)]
    for launch in meaning.launches:
        found.extend(judge_launch(launch, context))
    found += [Finding("harmful", code, line, "\\" if "backslash" in code else "…") for code, line in meaning.slips]
    return sorted(_once(found), key=lambda one: one.line)


def judge(setting: Setting, context: Context) -> Finding:
    """Return the verdict on a variable; a secret comes before every other rule, and its value is not shown."""
    secret = find_kept_secret(setting.name, setting.value)
    if secret is not None:
        facts = {"name": setting.name, "variable": secret.variable or setting.name}
        return Finding("harmful", "adopt/secret-in-text", setting.line, f"{setting.name}=…", facts=facts)
    return judge_variable(setting, context)


def _once(found: list[Finding]) -> list[Finding]:
    """A loop or a function repeats its lines; they are judged once."""
    seen: dict[tuple[str, int, str], Finding] = {}
    for one in found:
        seen.setdefault((one.code, one.line, one.subject), one)
    return list(seen.values())
