"""One request on the command line, one answer on stdout: how the control side asks a framework's interpreter."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from headway.errors import HeadwayError
from headway.messages import set_language


def answer_request(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> int:
    """Answer one request; an error is an answer too. Any: what is asked for differs by command."""
    request = json.loads(sys.argv[1])
    set_language(request["lang"])
    try:
        told = answer(request)
    except HeadwayError as error:
        facts = {key: str(value) for key, value in error.facts.items()}
        told = {"error": {"code": error.code, "facts": facts}}
    sys.stdout.write("\n" + json.dumps(told, ensure_ascii=False) + "\n")
    return 0
