"""The error tree. An error is a code and its facts; the words are in `messages`, and only `cli` prints them.

HeadwayError
├── UsageError        2   the command line makes no sense
├── ConfigError       2   the config does not pass the gate (one or many problems)
├── CheckError        3   the machine cannot run this
├── PlanError         4   no layout fits
├── TrainError        5   training failed
├── CheckpointError   5   a checkpoint cannot be read, written or trusted
└── StoppedForGood   93   no use in trying again
"""

from __future__ import annotations

from headway.messages import Language, hint, say


class HeadwayError(Exception):
    """Something a user can act on."""

    exit_code = 1

    def __init__(self, code: str, /, **facts: object) -> None:
        super().__init__(code)
        self.code = code
        self.facts = facts

    def text(self, lang: Language | None = None) -> str:
        """Return what happened, in one line."""
        return say(self.code, lang, **self.facts)

    def hint(self, lang: Language | None = None) -> str:
        """Return what to do about it, or an empty text."""
        return hint(self.code, lang, **self.facts)

    def corrections(self) -> dict[str, str]:
        """Return what to type for each wrong word of the command line, where that is known and puts all right."""
        found = self.facts.get("swap")
        return dict(found) if isinstance(found, dict) else {}

    def __str__(self) -> str:
        parts = [f"{self.text()} [{self.code}]", self.hint()]
        return "\n".join(part for part in parts if part)


class UsageError(HeadwayError):
    """The command line makes no sense."""

    exit_code = 2


class ConfigError(HeadwayError):
    """The config does not pass the gate."""

    exit_code = 2


class CheckError(HeadwayError):
    """The machine cannot run this."""

    exit_code = 3


class PlanError(HeadwayError):
    """No layout fits."""

    exit_code = 4


class TrainError(HeadwayError):
    """Training failed."""

    exit_code = 5


class CheckpointError(HeadwayError):
    """A checkpoint cannot be read, written or trusted."""

    exit_code = 5

    def __init__(self, code: str, /, **facts: object) -> None:
        # A path inside a run names the run, so that what to type about it is known.
        run, inside, _ = str(facts.get("path", "")).partition("/checkpoints")
        super().__init__(code, **{**({"run": run} if inside else {}), **facts})


class StoppedForGood(HeadwayError):  # noqa: N818 - an end, not a fault of the program
    """No use in trying again."""

    exit_code = 93
