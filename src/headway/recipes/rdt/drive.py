"""Rollouts with the weights of a file, without a run: `python -m headway.recipes.rdt.drive '<JSON request>'`.

The answer is the last line of the output, as JSON; an error is an answer too.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch

from headway.errors import HeadwayError
from headway.messages import set_language
from headway.recipes.rdt.data import prepare
from headway.recipes.rdt.section import RdtSection
from headway.recipes.rdt.task import make_task
from headway.task import RunConfig


def main() -> int:
    """Answer one request."""
    request = json.loads(sys.argv[1])
    set_language(request["lang"])
    try:
        answer = _answer(request)
    except HeadwayError as error:
        answer = {"error": {"code": error.code, "facts": {key: str(value) for key, value in error.facts.items()}}}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
    return 0


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    section = RdtSection.model_validate(request["section"])
    prepare(section, lambda line: None)
    task = make_task(RunConfig(recipe="rdt", task=section))
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = task.build_model().eval()
    made = task.predict(model, request["options"], Path(request["to"]))
    return {"text": made.text, "files": [str(path) for path in made.files]}


if __name__ == "__main__":
    raise SystemExit(main())
