"""Throughput rows as questions of the roofline."""

from __future__ import annotations

import re
from dataclasses import replace

from headway.machine.cards import find_model
from headway.planner.forecast import as_card
from headway.planner.models.decoder import Decoder
from headway.planner.roofline import Card, Number, SpeedForecast, time_convnet, time_decoder
from headway.planner.step import Work
from plan_question import batch_of
from plan_rows import InexpressibleError, Question, Row, ask

DEALT_OUT = "2024-10-17"
"""First modded-nanogpt record whose ranks share Muon's update."""


def find_card(row: Row) -> Card | None:
    """Return the data sheet of a row's card."""
    name = str(row.get("gpu") or "")
    name = re.sub(r"Grand Teton, ", "", name)
    model = find_model(name)
    return as_card(model) if model else None


def measured_step(row: Row, question: Work, ranks: int) -> float | None:
    """Return the measured seconds of one optimizer step of this work."""
    share = max(1, ranks // (question.tensor * question.pipeline))
    tokens = question.tokens * question.accumulation * share
    if "tokens_per_s_total" in row:
        return tokens / row["tokens_per_s_total"]
    if "tokens_per_s_per_gpu" in row:
        return tokens / (row["tokens_per_s_per_gpu"] * ranks)
    if "samples_per_s_total" in row:
        return question.micro_batch * question.accumulation * share / row["samples_per_s_total"]
    return row.get("step_time_s")


def number_of(row: Row) -> Number:
    """Return the number format of the matrix products."""
    precision = str(row.get("precision", "fp32")).lower()
    if "rowwise" in precision:
        return "half"  # a scale for each row: finding them takes what the faster products save
    if row.get("float8") or "fp8" in precision or "float8" in precision:
        return "fp8"
    if "bf16" in precision or "fp16" in precision or "bfloat16" in precision:
        return "half"
    return "tf32" if "tf32" in precision else "fp32"


def ask_speed(row: Row) -> tuple[SpeedForecast, float]:
    """Return forecast and measured seconds of a step, or raise `InexpressibleError`."""
    card = find_card(row)
    if card is None:
        raise InexpressibleError(f"no data sheet for {row.get('gpu')}")
    if row["kind"] != "measured":
        raise InexpressibleError("not a measurement")
    source = row["source"]
    if "power-limited" in row.get("notes", ""):
        raise InexpressibleError("a power limit that is not stated")
    if "litgpt" in source or "peft" in source:
        raise InexpressibleError("samples of many lengths: their mean is not stated")
    if "modded-nanogpt" in source:
        _check_record(row)
    question = _encoder(row) if row["family"] == "nlp-encoder" else _ask(row)
    if question.work is None or (question.shape is None and question.tape is None):
        raise InexpressibleError(f"no speed formula for {question.family}")
    work = question.work
    if "mfu_pct" not in row and not row.get("packed", True):
        raise InexpressibleError("unpacked samples")
    ranks = row.get("world_size", 1)
    share = max(1, ranks // (work.tensor * work.pipeline))
    if row.get("grad_accum"):
        work = replace(work, accumulation=row["grad_accum"])
    elif row.get("tokens_per_step"):
        work = replace(work, accumulation=max(1, round(row["tokens_per_step"] / (work.tokens * share))))
    elif row.get("global_batch"):
        work = replace(work, accumulation=max(1, round(row["global_batch"] / (work.micro_batch * share))))
    else:
        work = replace(work, accumulation=1)
    real = measured_step(row, work, ranks)
    if real is None:
        raise InexpressibleError("no throughput")
    if question.tape is not None:
        forecast = time_convnet(question.tape, work, card, ranks=ranks, number=number_of(row))
    else:
        assert question.shape is not None
        forecast = time_decoder(
            question.shape,
            work,
            card,
            ranks=ranks,
            number=number_of(row),
            params=question.params,
            predicted=0.15 if row["family"] == "nlp-encoder" else 1.0,
        )
    if forecast.model_flops / real > forecast.peak_flops:
        raise InexpressibleError("contradiction: more arithmetic than the card's peak")
    if forecast.launch_s > 0.8 * forecast.math_s:
        raise InexpressibleError("host-bound: a tiny model, and the speed of the host is not stated")
    return forecast, real


def _check_record(row: Row) -> None:
    """Raise where a modded-nanogpt record's step is not the one its row describes."""
    if "seq_len" not in row:
        raise InexpressibleError("batches follow a schedule: their mean is not stated")
    if re.search(r"SOAP|Optimizers|Quantized", row["source"]):
        raise InexpressibleError("a trial of another optimizer or number format than the row states")
    record = re.search(r"/(\d{4}-\d\d-\d\d)", row["source"])
    if record is None or record[1] < DEALT_OUT:
        raise InexpressibleError("every rank does the whole of Muon's update: no formula")


def _ask(row: Row) -> Question:
    if "micro_batch" not in row and row.get("tokens_per_step"):
        row = {**row, "micro_batch": 8}  # how a step's tokens are cut hardly changes its time
    try:
        return ask(row)
    except KeyError as missing:
        raise InexpressibleError(f"{missing} not stated") from missing


def _encoder(row: Row) -> Question:
    """BERT: an encoder with a tied vocabulary; only 15% of the tokens are predicted."""
    if "BERT-large" not in row["model"]:
        raise InexpressibleError(f"no formula for {row['model']}")
    micro_batch, seq_len = batch_of(row)
    if seq_len > 128:
        raise InexpressibleError("samples sorted into bins of lengths (second phase): their mean is not stated")
    shape = Decoder(
        layers=24, hidden=1024, heads=16, vocab=30528, ffn=4096, mlp="gelu", norm="layer", tied=True, one_qkv=True
    )
    one = 2 if number_of(row) == "half" else 4
    work = Work(
        micro_batch=micro_batch,
        seq_len=seq_len,
        compute_bytes=one,
        flash=False,
        accumulation=row.get("grad_accum", 1),
    )
    from headway.planner.memory import weigh_decoder

    return Question(forecast=weigh_decoder(shape, work), family="encoder", shape=shape, work=work, params=shape.params)
