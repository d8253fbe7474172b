"""While a model trains: what it knows of syntax, in a few numbers of one call, and a callback that
logs them.

The functions are those of the embedded sample, of which each call reads the same few. All that does
not depend on the model, such as labels and baselines, is made once per process.
"""

from __future__ import annotations

import contextlib
import logging
import math
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from codesyntax_dataset.arguments import Positive, checked
from codesyntax_dataset.build import build
from codesyntax_dataset.errors import ArgumentError, ModelError, UnknownName
from codesyntax_dataset.languages import CONFIGS, LANGUAGES, language_of
from codesyntax_dataset.protocol import BEST_BASELINE, HELD_OUT
from probing.evidence import baselines
from probing.evidence.beyond import beyond
from probing.evidence.protocols import ONE_GUESS, ChosenHits, held_out
from probing.instruments.attention.probe import Probing
from probing.instruments.attention.result import WIDEST
from probing.instruments.likelihood.likelihood import Preferring, Surprising
from probing.instruments.likelihood.result import BITS, CLOSING, stratum_weights
from probing.instruments.masking.mask import Masking, chosen_types
from probing.models.load import CAUSAL_HEAD, MASKED_HEAD, Changing, head_in
from probing.models.loaded import error_line, quiet, warn_once
from probing.models.wrapped import is_spread, unwrapped
from probing.runs.data import Functions, read_functions
from probing.runs.experiment import Experiment, R, run
from probing.runs.progress import silent
from probing.runs.session import Session
from probing.runs.settings import Sample

logger = logging.getLogger(__name__)

EVALUATED_FUNCTIONS = 64
"""How many functions of each split are read, if there are so many, and how many minimal pairs."""

# one in so many of them is masked: all its nodes, which takes as long as reading the others
_MASKED = 4

_BATCH_TOKENS = 1024  # few, because most of the memory is that of the training

PREFIX = "syntax/"
"""That of the names of all numbers."""

EVALUATION, SAVE = "evaluation", "save"
"""When a callback evaluates, if not every so many steps."""


@checked
def evaluate(
    model: Any,
    tokenizer: Any,
    *,
    language: str = "python",
    functions: Positive = EVALUATED_FUNCTIONS,
) -> dict[str, float]:
    """What a model in memory knows of syntax: a few numbers, on functions of the embedded sample.

    The model stays as it is: its mode, attention implementation, gradients and precision, and the
    state of random generators. Nothing is printed, and processes beside this one do nothing. Heads
    are chosen on the split `validation`, so that few functions suffice.

    Args:
        model: a transformers model in float32, bfloat16 or float16, on any device, with or without
            its head.
        tokenizer: its own.
        language: of the functions, one of code, such as `python` or `java`.
        functions: how many are drawn from each split, and how many minimal pairs; always the same.
            A quarter of them is masked.

    Returns:
        Names -> numbers, in percent unless said otherwise. `syntax/held_out`: top-1 UAS of the
        heads, rule `first`, mean over relations; `syntax/best_rule`: that of the best baseline,
        which needs no model, on the same edges; `syntax/beyond_offset`: that of the heads on edges
        that the best offset of their relation misses. Of a decoder also `syntax/preference`, the
        minimal pairs of which it finds the text that parses likelier, and `syntax/surprisal` of the
        closing tokens of syntax nodes, beside `syntax/surprisal_matched` of tokens as frequent, in
        bits. Of a masked language model also `syntax/restored`, the masked sub-tokens of syntax
        nodes that it restores, mean over node types. `syntax/functions` and `syntax/pairs` are how
        many of the test functions and pairs the numbers are of: all but those that are too long for
        the model. A number without anything to measure is left out.

    Raises:
        ModelError: a model that cannot be probed.
        UnknownName: another language.

    Examples:
        >>> import probing
        >>> from transformers import AutoModelForCausalLM, AutoTokenizer
        >>> from probing.models.location import embedded_model
        >>> folder = embedded_model("tiny-code-lm")
        >>> model = AutoModelForCausalLM.from_pretrained(folder)
        >>> tokenizer = AutoTokenizer.from_pretrained(folder)
        >>> numbers = probing.evaluate(model, tokenizer, functions=4)
        >>> numbers["syntax/functions"], 0 <= numbers["syntax/preference"] <= 100
        (4, True)
    """
    _check_language(language)
    inner = unwrapped(model).model
    if not isinstance(inner, transformers.PreTrainedModel):
        raise ModelError(
            f"the model is a {type(inner).__name__}, expected a transformers model in memory"
        )
    with silent(), quiet(), _in_own_precision(inner):
        session = Session(Changing(model, tokenizer), dtype=inner.dtype, alone=True)
        numbers = _of_attention(session, language, functions)
        head = head_in(inner)
        if head is CAUSAL_HEAD:
            numbers |= _of_decoder(session, language, functions)
        elif head is MASKED_HEAD:
            numbers |= _of_masked(session, language, functions)
    if not numbers["held_out"]:
        warn_once(f"syntax/held_out is {WIDEST}")
    return {PREFIX + name: number for name, number in numbers.items() if not math.isnan(number)}


def _check_language(language: str) -> None:
    known = [name for name in LANGUAGES if f"{name}_pairs" in CONFIGS]
    if language not in known:
        raise UnknownName("language of code", language, known)


def _of_attention(session: Session, language: str, functions: int) -> dict[str, float]:
    """The scores of heads, and of the best rule on the same edges."""
    reads = [_drawn_rows(language, split, functions) for split in ("validation", "test")]
    results = [_run(Probing(session, read, batch_tokens=_BATCH_TOKENS)) for read in reads]
    validation, test = (result.ledger for result in results)
    read = [tuple(np.unique(ledger.function).tolist()) for ledger in (validation, test)]
    numbers = {
        "held_out": _mean_uas(held_out(validation, test)),
        "best_rule": _best_rule(language, results[0].settings.direction, *read),
    }
    if (hard := beyond(validation, test)) is not None:
        numbers["beyond_offset"] = _mean_uas(hard.chosen)
    return numbers | {"functions": len(read[1])}


def _of_decoder(session: Session, language: str, functions: int) -> dict[str, float]:
    """How often it prefers what parses, and how well it foresees how nodes end."""
    pairs, read = (
        _drawn_rows(config, "test", functions) for config in (f"{language}_pairs", language)
    )
    preferred = _run(Preferring(session, pairs, _BATCH_TOKENS)).ledger
    read_pairs = replace(preferred, rows=preferred.rows[preferred.rows["read"] == 1])
    weights = stratum_weights(read_pairs.rows)
    foreseen = _run(Surprising(session, read, _BATCH_TOKENS, chosen_types(language, None)))
    closing = foreseen.ledger.of(CLOSING).rows
    return {
        "preference": 100 * float(np.average(read_pairs.preferred()[:, 0], weights=weights)),
        "surprisal": _average(closing[BITS]),
        "surprisal_matched": _average(closing[f"control_{BITS}"]),
        "pairs": len(read_pairs),
    }


def _of_masked(session: Session, language: str, functions: int) -> dict[str, float]:
    """How many sub-tokens of masked nodes it restores."""
    read = _drawn_rows(language, "test", -(-functions // _MASKED))
    types = chosen_types(language, None)
    masked = _run(Masking(session, read, types, draws=1, batch_tokens=_BATCH_TOKENS))
    return {"restored": _average([scores.t1.restored for scores in masked.node_types.values()])}


@contextlib.contextmanager
def _in_own_precision(model: Any) -> Iterator[None]:
    """Run the model in the precision of its weights, even where a Trainer lets it compute in
    another one."""
    # in mixed precision, accelerate puts its own in place
    replaced = vars(model).pop("forward", None)
    try:
        with torch.autocast(next(model.parameters()).device.type, enabled=False):
            yield
    finally:
        if replaced is not None:
            model.forward = replaced


def _run(experiment: Experiment[Any, R]) -> R:
    """The result of an experiment that one process runs."""
    result = run(experiment)
    assert result is not None
    return result


def _mean_uas(chosen: ChosenHits) -> float:
    """With one guess, by the rule `first`, over relations."""
    return float(chosen.at(ONE_GUESS).hits.mean(chosen.system).value[0])


def _average(numbers: Any) -> float:
    if len(numbers):
        return float(np.mean(numbers))
    return math.nan


@cache
def _sample(language: str) -> tempfile.TemporaryDirectory[str]:
    """A folder, which is removed when the process ends, with the embedded functions and minimal
    pairs of a language."""
    folder = tempfile.TemporaryDirectory(prefix="codesyntax-")
    build("sample", [language, f"{language}_pairs"], Path(folder.name, "codesyntax"))
    return folder


@cache
def _drawn_rows(config: str, split: str, functions: int) -> Functions:
    """So many functions or minimal pairs of a split, drawn."""
    data = Path(_sample(language_of(config).name).name, "codesyntax")
    return read_functions(data, config, split, limit=Sample(size=functions, seed=0))


@cache
def _best_rule(
    language: str, direction: str, chosen_on: tuple[int, ...], scored: tuple[int, ...]
) -> float:
    """The score of the best baseline for each relation, on functions by their places."""
    data = Path(_sample(language).name, "codesyntax")
    validation, test = (
        baselines.read_edges(data, language, split, np.array(places))
        for split, places in (("validation", chosen_on), ("test", scored))
    )
    known = baselines.evaluate(validation, test, direction)
    return _mean_uas(known.hits[HELD_OUT][BEST_BASELINE])


class SyntaxCallback(transformers.TrainerCallback):
    """Logs `evaluate` through a Trainer, so that its history and all that it reports to have
    `syntax/held_out` and so on.

    The model is evaluated before the first step, then every so many steps, and after the last. Of
    several processes the main one evaluates, and the others wait; where weights are spread over
    them (FSDP 2), all do. What goes wrong is said once, and the training goes on without further
    evaluations, such as with FSDP 1 and ZeRO 3.

    The best model may be chosen by one of the numbers, and a training stopped by it early:
    `metric_for_best_model="syntax/preference"`.

    Args:
        trainer: the one to which it is added.
        tokenizer: that of the model; by default the `processing_class` of the trainer.
        every: so many steps, or after each `evaluation` or `save` of the trainer.
        language: of the functions, one of code, such as `python` or `java`.
        functions: how many are drawn from each split, and how many minimal pairs.

    Raises:
        ArgumentError: arguments of other kinds, or no tokenizer.
        UnknownName: another language.

    Examples:
        >>> import probing, transformers
        >>> from probing.models.location import embedded_model
        >>> folder = embedded_model("tiny-code-lm")
        >>> model = transformers.AutoModelForCausalLM.from_pretrained(folder)
        >>> tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        >>> arguments = transformers.TrainingArguments("checkpoints", report_to=[])
        >>> trainer = transformers.Trainer(model, arguments, processing_class=tokenizer)
        >>> trainer.add_callback(probing.SyntaxCallback(trainer, every=500))
    """

    @checked
    def __init__(
        self,
        trainer: transformers.Trainer,
        tokenizer: Any = None,
        *,
        every: int | str = 500,
        language: str = "python",
        functions: Positive = EVALUATED_FUNCTIONS,
    ):
        _check_language(language)
        self.trainer = trainer
        self.every = every
        self.tokenizer = trainer.processing_class if tokenizer is None else tokenizer
        self.options: dict[str, Any] = {"language": language, "functions": functions}
        self.failed = False
        if every not in (EVALUATION, SAVE) and (not isinstance(every, int) or every < 1):
            raise ArgumentError(
                f"every is {every!r}, expected a number of steps, {EVALUATION!r} or {SAVE!r}"
            )
        if self.tokenizer is None:
            raise ArgumentError(
                "the trainer has no tokenizer as its processing_class: give the tokenizer of the model"
            )
        if not isinstance(self.tokenizer, transformers.PreTrainedTokenizerBase):
            raise ArgumentError(
                f"the tokenizer is a {type(self.tokenizer).__name__}, expected that of the model, of transformers"
            )

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        # whoever stops early reads the numbers that this one adds
        handler = self.trainer.callback_handler
        handler.callbacks = [self, *(other for other in handler.callbacks if other is not self)]
        if isinstance(self.every, int) and state.global_step == 0:
            self._log(state, control)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        step = state.global_step
        if isinstance(self.every, int) and (step % self.every == 0 or step == state.max_steps):
            self._log(state, control)

    def on_evaluate(self, args: Any, state: Any, control: Any, **shared: Any) -> None:
        best = (args.metric_for_best_model or "").removeprefix("eval_")
        if self.every == EVALUATION or best.startswith(PREFIX):
            numbers = self._log(state, control)
            if self.failed and best.startswith(PREFIX):
                numbers = {best: math.nan}  # without it the training would end
            shared["metrics"].update({f"eval_{name}": of for name, of in numbers.items()})

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.every == SAVE:
            self._log(state, control)
            # the checkpoint was written before
            folder = Path(args.output_dir, f"checkpoint-{state.global_step}")
            written = folder / "trainer_state.json"
            if state.is_world_process_zero and written.exists():
                state.save_to_json(str(written))

    def _log(self, state: Any, control: Any) -> dict[str, float]:
        """The numbers of this step, evaluated and logged once: by the main process, for which the
        others wait, or by all of those over which the weights are spread."""
        for entry in reversed(state.log_history):
            if entry["step"] == state.global_step and f"{PREFIX}functions" in entry:
                return {name: entry[name] for name in entry if name.startswith(PREFIX)}
        if self.failed:
            return {}
        numbers: dict[str, float] = {}
        model = self.trainer.model_wrapped
        try:
            if state.is_world_process_zero or is_spread(model):
                numbers = evaluate(model, self.tokenizer, **self.options)
        except Exception as error:  # whatever it is, it must not end a training
            logger.warning("syntax is not evaluated any more: %s", error_line(error))
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            shared = [numbers]
            torch.distributed.broadcast_object_list(shared)
            (numbers,) = shared
        self.failed = not numbers
        if numbers:
            asked = control.should_log
            self.trainer.log(numbers)
            control.should_log = asked  # logging takes back what the trainer was about to log
        return numbers
