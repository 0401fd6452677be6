"""Takes one real batch from a recipe's loader. Asked by module name in the ranks' interpreter.

The framework and the engine are imported by name: this side of Headway never has them (hence Any).
"""

import importlib
import time
from typing import Any

from headway.ask import take_question


def main() -> None:
    """Load the task of the stored config and take its first batch."""
    question, send = take_question()
    worker: Any = importlib.import_module("headway.engine.rank")
    numpy: Any = importlib.import_module("numpy")
    config, task = worker.load_task(question["stored"])
    began = time.perf_counter()
    data = task.train_data()
    number = min(len(data), config.batch.per_device or 1)
    batch = data.batch(numpy.arange(number, dtype=numpy.int64), numpy.zeros(number, dtype=numpy.int64))
    answer = {
        "samples": len(data),
        "taken": number,
        "seconds": time.perf_counter() - began,
        "shapes": {name: list(value.shape) for name, value in batch.items()},
        "broken": [name for name, value in batch.items() if value.is_floating_point() and not value.isfinite().all()],
    }
    send(answer)


if __name__ == "__main__":
    main()
