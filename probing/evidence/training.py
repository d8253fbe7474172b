"""While a model trains: what it knows of syntax, in a few numbers of one call, and a callback that
logs them.

The functions are those of the embedded sample, of which each call reads the same few. All that does
not depend on the model, such as labels and baselines, is made once per process.
"""

from __future__ import annotations

import contextlib
import copy
import logging
import math
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
import transformers
from tqdm import tqdm

from codesyntax_dataset.arguments import Positive, checked
from codesyntax_dataset.build import build
from codesyntax_dataset.errors import ArgumentError, LedgerError, ModelError, UnknownName
from codesyntax_dataset.languages import CONFIGS, LANGUAGES, language_of
from codesyntax_dataset.protocol import BEST_BASELINE, HELD_OUT
from probing.evidence import baselines
from probing.evidence.beyond import beyond_offsets
from probing.evidence.bits import CLOSING, GRAMS, MATCHED, ClosingTokens, closing_tokens, paid
from probing.evidence.protocols import ONE_GUESS, ChosenHits, held_out
from probing.instruments.attention.probe import Probing
from probing.instruments.attention.result import WIDEST
from probing.instruments.likelihood.likelihood import Preferring, Scorer, tokenized_functions
from probing.instruments.likelihood.result import stratum_weights
from probing.instruments.masking import hits as masked_hits
from probing.instruments.masking.mask import Masking, chosen_types
from probing.models.load import CAUSAL_HEAD, MASKED_HEAD, Changing, head_in
from probing.models.loaded import error_line, quiet, warn_once
from probing.models.wrapped import is_spread, unwrapped
from probing.runs.data import Functions, read_functions
from probing.runs.experiment import Experiment, R, run
from probing.runs.progress import silent
from probing.runs.session import Session
from probing.runs.settings import drawn_order

logger = logging.getLogger(__name__)

T = TypeVar("T")

TOKENS = 20_000
"""The most sub-tokens that a call forwards, the self-check of the model included."""

_CHECKED = 2000  # of which those of the self-check are at most so many
_BATCH_TOKENS = 1024  # few, because most of the memory is that of the training

BITS, HEADS, PAIRS, MASKS = "bits", "heads", "pairs", "masks"
"""Kinds of numbers: what syntax costs a language model, what heads find, which text of a minimal
pair is likelier, and which masked sub-tokens are restored."""

_KINDS = {
    CAUSAL_HEAD.name: (BITS, HEADS, PAIRS),
    MASKED_HEAD.name: (BITS, MASKS, HEADS),
    "": (HEADS,),
}
"""Those of models with a head, or without; the first orders checkpoints best."""

PREFIX, ERROR = "syntax/", "_stderr"
"""Of the names of all numbers, and of their standard errors."""

EVALUATION, SAVE = "evaluation", "save"
"""When a callback evaluates, if not every so many steps."""


@checked
def evaluate(
    model: Any,
    tokenizer: Any,
    *,
    language: str = "python",
    tokens: Positive = TOKENS,
    functions: Positive | None = None,
    numbers: Sequence[str] | None = None,
) -> dict[str, float]:
    """What a model in memory knows of syntax: a few numbers, on functions of the embedded sample.

    The model stays as it is: its mode, attention implementation, gradients and precision, and the
    state of random generators. Nothing is printed, and processes beside this one do nothing, but
    for models whose weights are spread over them (FSDP 2), which all evaluate. Heads are chosen on
    the split `validation`, so that few functions suffice.

    Args:
        model: a transformers model in float32, bfloat16 or float16, on any device, with or without
            its head; also compiled, in data parallelism, or with adapters of PEFT.
        tokenizer: its own.
        language: of the functions, one of code, such as `python` or `java`.
        tokens: the most sub-tokens that are forwarded. Functions and minimal pairs are drawn to
            that, always the same for one tokenizer.
        functions: the most functions of a split, and minimal pairs: with few, those of all
            tokenizers are the same.
        numbers: kinds of numbers, which share the tokens: of a decoder `bits`, `heads` and `pairs`,
            of a masked language model `bits`, `masks` and `heads`, of another one `heads`; by
            default all.

    Returns:
        Names -> numbers, in percent unless said otherwise, each with its standard error under the
        name with `_stderr`, unless it is of one function. `bits`: `syntax/bits_per_byte` of the
        tokens with which syntax nodes end, `syntax/bits_per_byte_matched` of as many that are like
        them, and `syntax/bits_per_byte_grams` that 5-grams leave of the former
        (`probing.evidence.bits`); of masked language models, which see what is behind, too,
        `syntax/pseudo_bits_per_byte` and so on.
        `heads`: `syntax/held_out`, top-1 UAS, rule `first`, mean over relations;
        `syntax/best_baseline`, that of the best baseline on the same edges; `syntax/beyond_offset`,
        that of heads on edges that the best offset of their relation misses. `pairs`:
        `syntax/preference`, the minimal pairs of which it finds the text that parses likelier.
        `masks`: `syntax/restored`, the masked sub-tokens of syntax nodes that it restores, mean
        over node types. `syntax/bits_functions` and so on, and `syntax/pairs`, are how many test
        functions and pairs the numbers are of: all that are drawn, but those that are too long for
        the model. A number without anything to measure is left out.

    Raises:
        ModelError: a model that cannot be probed.
        ArgumentError: fewer tokens than one function has, or a kind that the model does not have.
        UnknownName: another language.

    Examples:
        >>> import probing
        >>> from transformers import AutoModelForCausalLM, AutoTokenizer
        >>> from probing.models.location import embedded_model
        >>> folder = embedded_model("tiny-code-lm")
        >>> model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
        >>> tokenizer = AutoTokenizer.from_pretrained(folder)
        >>> numbers = probing.evaluate(model, tokenizer, functions=4)
        >>> numbers["syntax/pairs"], 0 <= numbers["syntax/preference"] <= 100
        (4, True)
    """
    _check_language(language)
    inner, prompt = unwrapped(model)
    if not isinstance(inner, transformers.PreTrainedModel):
        raise ModelError(
            f"the model is a {type(inner).__name__}, expected a transformers model in memory"
        )
    known = _kinds_of(inner)
    _check_numbers(numbers, known)
    asked = known if numbers is None else numbers
    half = inner.dtype in (torch.float16, torch.bfloat16)
    if half and inner.device.type == "cpu" and not is_spread(inner):
        # a core computes float32 several times as fast
        model = copy.deepcopy(inner if prompt is None else prompt).float()
        inner = unwrapped(model).model
    with silent(), quiet(), _in_own_precision(inner):
        session = Session(Changing(model, tokenizer), dtype=inner.dtype, alone=True)
        reading = _Reading(session, tokenizer, language, functions)
        measured: dict[str, float] = {}
        for kind in asked:
            # functions may all be too long
            with contextlib.suppress(LedgerError):
                measured |= _OF_KIND[kind](reading, (tokens - _CHECKED) // len(asked))
    if not measured:
        raise ArgumentError(f"tokens is {tokens:,}: too few for a function that the model can read")
    if measured.get("held_out") == 0:
        warn_once(f"{PREFIX}held_out is {WIDEST}")
    logger.info("a call forwards %d sub-tokens", session.forwarded)
    return {PREFIX + name: value for name, value in measured.items() if not math.isnan(value)}


def _check_language(language: str) -> None:
    known = [name for name in LANGUAGES if f"{name}_pairs" in CONFIGS]
    if language not in known:
        raise UnknownName("language of code", language, known)


def _kinds_of(model: Any) -> tuple[str, ...]:
    head = head_in(model)
    return _KINDS[head.name if head else ""]


def _check_numbers(asked: Sequence[str] | None, known: Sequence[str]) -> None:
    if asked is not None and (not asked or not {*asked} <= {*known}):
        raise ArgumentError(
            f"numbers is {', '.join(asked) or 'empty'}, expected some of {', '.join(known)}"
        )


class _Reading(NamedTuple):
    """What a call reads, and with what: `most` functions of a split."""

    session: Session
    tokenizer: Any
    language: str
    most: int | None

    def drawn(self, config: str, split: str, tokens: float) -> Functions:
        """Functions or minimal pairs of so many sub-tokens; raises LedgerError for none."""
        lengths = self.kept(("lengths", config, split), lambda: self._lengths(config, split))
        size = int((np.cumsum(lengths) <= tokens).sum())
        size = size if self.most is None else min(size, self.most)
        if not size:
            raise LedgerError(f"{tokens:,} sub-tokens are too few for a row of {config}")
        return _drawn_rows(config, split, size)

    def _lengths(self, config: str, split: str) -> np.ndarray:
        """The sub-tokens of each row, in the order in which rows are drawn."""
        table = _drawn_rows(config, split, None).table
        columns = [
            table[name].to_pylist()
            for name in ("good", "bad", "code")
            if name in table.column_names
        ]
        special = 2  # at the beginning and the end
        lengths = [
            [len(ids) + special for ids in self.tokenizer(texts).input_ids] for texts in columns
        ]
        return np.sum(lengths, axis=0)[drawn_order(len(table), 0)]

    def kept(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        """What depends on the tokenizer alone, and is made once."""
        known = _KEPT.setdefault(self.tokenizer, {})
        if key not in known:
            known[key] = make()
        return known[key]


_KEPT: WeakKeyDictionary[Any, dict[tuple[Any, ...], Any]] = WeakKeyDictionary()


def _with_errors(
    numbers: Mapping[str, tuple[float, float]], unit: str, units: int
) -> dict[str, float]:
    """Names -> numbers and their standard errors, which a single unit has not, and how many units
    they are of."""
    values = {name: value for name, (value, _) in numbers.items()}
    errors = {name + ERROR: error for name, (_, error) in numbers.items() if units > 1}
    return values | errors | {unit: units}


def _closing_bits(reading: _Reading, tokens: int) -> dict[str, float]:
    """What a language model pays for the tokens with which nodes end."""
    model, language = reading.session.scoring_model(), reading.language
    most, name = (None, "bits") if model.mask is None else (_MOST_MASKED, "pseudo_bits")
    read = reading.drawn(language, "test", tokens / (most or 1))

    def to_pay() -> list[ClosingTokens]:
        functions = tokenized_functions(model, read, Counter())
        functions.sort(key=lambda function: -len(function.ids))  # for batches
        return [*closing_tokens(functions, chosen_types(language, None), most)]

    asked = reading.kept((BITS, language, str(read.limit), model.longest), to_pay)
    if not asked:
        raise LedgerError("no function has a closing token with a control")
    found = Scorer(model, _BATCH_TOKENS).find(
        [[paying.text] for paying in asked], tqdm(disable=True)
    )
    sums = paid(asked, [scores for (scores,) in found])
    ends = {CLOSING: "", MATCHED: "_matched", GRAMS: "_grams"}
    numbers = {f"{name}_per_byte{ends[of]}": _ratio(part) for of, part in sums.items()}
    return _with_errors(numbers, "bits_functions", len(asked))


_MOST_MASKED = 4
"""Sub-tokens of a function for which a masked language model pays: so many forward passes."""


def _ratio(parts: np.ndarray) -> tuple[float, float]:
    """The total of the first column over that of the second, and its standard error over rows."""
    above, below = parts.T
    value = above.sum() / below.sum()
    rows = len(parts)
    spread = np.square(above - value * below).sum() * rows / max(1, rows - 1)
    return float(value), float(np.sqrt(spread) / below.sum())


def _heads(reading: _Reading, tokens: int) -> dict[str, float]:
    """The scores of heads, and of the best baseline on the same edges."""
    session, language = reading.session, reading.language
    reads = [reading.drawn(language, split, tokens / 2) for split in ("validation", "test")]
    results = [_run_alone(Probing(session, read, batch_tokens=_BATCH_TOKENS)) for read in reads]
    validation, test = (result.ledger for result in results)
    read = [tuple(np.unique(ledger.function).tolist()) for ledger in (validation, test)]
    numbers = {
        "held_out": _mean_uas(held_out(validation, test)),
        "best_baseline": _best_baseline(language, results[0].settings.direction, *read),
    }
    if (hard := beyond_offsets(validation, test)) is not None:
        numbers["beyond_offset"] = _mean_uas(hard.chosen)
    return _with_errors(numbers, "heads_functions", len(read[1]))


def _pairs(reading: _Reading, tokens: int) -> dict[str, float]:
    """How often a decoder prefers what parses, of the pairs that it reads."""
    pairs = reading.drawn(f"{reading.language}_pairs", "test", tokens)
    preferred = _run_alone(Preferring(reading.session, pairs, _BATCH_TOKENS)).ledger
    read = replace(preferred, rows=preferred.rows[preferred.rows["read"] == 1])
    weights = stratum_weights(read.rows)
    right = read.preferred()[:, 0]
    value = np.average(right, weights=weights)
    error = np.sqrt(np.square(weights * (right - value)).sum()) / weights.sum()
    numbers = {"preference": (100 * float(value), 100 * float(error))}
    return _with_errors(numbers, "pairs", len(read))


def _masks(reading: _Reading, tokens: int) -> dict[str, float]:
    """How many sub-tokens of masked nodes a masked language model restores."""
    types = chosen_types(reading.language, None)
    # each is masked twice, and controls as often
    read = reading.drawn(reading.language, "test", tokens / (_PASSES * len(types)))
    masking = Masking(reading.session, read, types, draws=1, batch_tokens=_BATCH_TOKENS)
    result = _run_alone(masking)
    restored = [scores.t1.restored for scores in result.node_types.values()]
    of_functions = masked_hits.hits(result)["restored"]
    error = 100 / of_functions.scale * of_functions.standard_error(masked_hits.T1)[0]
    numbers = {"restored": (float(np.mean(restored)), float(error))}
    return _with_errors(numbers, "masks_functions", result.functions)


_PASSES = 2
"""Copies of a function for each node type: one masked, and one control."""

_OF_KIND = {BITS: _closing_bits, HEADS: _heads, PAIRS: _pairs, MASKS: _masks}


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


def _run_alone(experiment: Experiment[Any, R]) -> R:
    """The result of an experiment that one process runs."""
    result = run(experiment)
    assert result is not None
    return result


def _mean_uas(chosen: ChosenHits) -> tuple[float, float]:
    """With one guess, by the rule `first`, over relations, and its standard error."""
    hits = chosen.at(ONE_GUESS).hits
    value = float(hits.mean(chosen.system).value[0])
    return value, float(hits.standard_error(chosen.system)[0])


@cache
def _sample(language: str) -> tempfile.TemporaryDirectory[str]:
    """A folder, which is removed when the process ends, with the embedded functions and minimal
    pairs of a language."""
    folder = tempfile.TemporaryDirectory(prefix="codesyntax-")
    build("sample", [language, f"{language}_pairs"], Path(folder.name, "codesyntax"))
    return folder


@cache
def _drawn_rows(config: str, split: str, functions: int | None) -> Functions:
    """So many functions or minimal pairs of a split, drawn, or all."""
    data = Path(_sample(language_of(config).name).name, "codesyntax")
    return read_functions(data, config, split, sample=functions)


@cache
def _best_baseline(
    language: str, direction: str, chosen_on: tuple[int, ...], scored: tuple[int, ...]
) -> tuple[float, float]:
    """The score of the best baseline for each relation, on functions by their places."""
    data = Path(_sample(language).name, "codesyntax")
    validation, test = (
        baselines.read_edges(data, language, split, np.array(places))
        for split, places in (("validation", chosen_on), ("test", scored))
    )
    known = baselines.evaluate_baselines(validation, test, direction)
    return _mean_uas(known.hits[HELD_OUT][BEST_BASELINE])


class SyntaxCallback(transformers.TrainerCallback):
    """Logs `evaluate` through a Trainer, so that its history and all that it reports to have
    `syntax/bits_per_byte` and so on.

    The model is evaluated before the first step, then every so many steps, and after the last. Of
    several processes the main one evaluates, and the others wait; where weights are spread over
    them (FSDP 2), all do. What goes wrong is said once, and the training goes on without further
    evaluations, such as with FSDP 1 and ZeRO 3.

    The best model may be chosen by one of the numbers, and a training stopped by it early:
    `metric_for_best_model="syntax/bits_per_byte"`.

    Args:
        trainer: the one to which it is added.
        tokenizer: that of the model; by default the `processing_class` of the trainer.
        every: so many steps, or after each `evaluation` or `save` of the trainer.
        language: of the functions, one of code, such as `python` or `java`.
        tokens: the most sub-tokens that each evaluation forwards.
        functions: the most functions of a split, and minimal pairs.
        numbers: kinds of numbers: of a decoder `bits`, `heads` and `pairs`, of a masked language
            model `bits`, `masks` and `heads`, of another one `heads`; by default the first of
            these, which orders checkpoints best.

    Raises:
        ArgumentError: arguments of other kinds, or no tokenizer.
        UnknownName: another language.

    Examples:
        >>> import probing
        >>> import transformers
        >>> from probing.models.location import embedded_model
        >>> folder = embedded_model("tiny-code-lm")
        >>> model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
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
        tokens: Positive = TOKENS,
        functions: Positive | None = None,
        numbers: Sequence[str] | None = None,
    ):
        _check_language(language)
        self.trainer = trainer
        self.every = every
        self.tokenizer = trainer.processing_class if tokenizer is None else tokenizer
        model = unwrapped(trainer.model).model
        known = _kinds_of(model)
        _check_numbers(numbers, known)
        self.options: dict[str, Any] = {
            "language": language,
            "tokens": tokens,
            "functions": functions,
            "numbers": known[:1] if numbers is None else numbers,
        }
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
            shared["metrics"].update({f"eval_{name}": value for name, value in numbers.items()})

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
            numbers = {name: entry[name] for name in entry if name.startswith(PREFIX)}
            if numbers and entry["step"] == state.global_step:
                return numbers
        if self.failed:
            return {}
        numbers = {}
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
