"""Train the embedded language models, a small ModernBERT and a small Llama, from Python's standard library alone.

    python tests/support/models/train_tiny.py tiny-code-mlm --checkpoints checkpoints --evaluate DATA
    python tests/support/models/train_tiny.py tiny-code-lm --decoder --evaluate DATA

computes on one thread, and gives the same weights for the same seed, library, machine and versions of torch, tokenizers
and transformers. The models in the package are of an earlier script with the same recipe, whose batches had other inputs.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import platform
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    DataCollatorForLanguageModeling,
    LlamaConfig,
    LlamaForCausalLM,
    ModernBertConfig,
    ModernBertForMaskedLM,
    PreTrainedTokenizerFast,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from codesyntax_dataset.arguments import Natural, Positive, checked
from codesyntax_dataset.atomic import atomic_path
from codesyntax_dataset.errors import CodeSyntaxError, ModelError, SourceError
from codesyntax_dataset.folder import read_split
from codesyntax_dataset.languages import Definition, language_of
from codesyntax_dataset.languages.python.definitions import definitions
from probing.models.load import load_restoring
from probing.models.loaded import quiet
from probing.models.masked import CONVENTIONS, RestoringModel

LONGEST = 512
"""The positions of the model: sub-tokens of an input, special tokens included."""

RATE = 0.15
"""The share of an input's sub-tokens that are masked, in training and evaluation."""

STEPS = 20_000
"""Batches of the full training, about two hours of one core."""

DECODER_STEPS = 2_500
"""Batches of the full training of the decoder, about 20 minutes of one core."""

HOLES = 0.8
"""The share of a decoder's inputs whose middle is moved to the end (Bavarian et al. 2022: up to 0.9 costs nothing)."""

_SPECIAL = {
    "cls_token": "<s>",
    "sep_token": "</s>",
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
}
_DECODER_SPECIAL = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "pad_token": "<pad>",
    "unk_token": "<unk>",
}
_MIDDLE = CONVENTIONS[0].marks
_BATCH = 16  # inputs of about one length
_WARM_UP = 0.05  # of the steps
_SHOWN = 100  # steps between lines of progress


class Sizes(NamedTuple):
    """Sizes of the tokenizer and the model, the `spread` of initial weights, and the largest learning `rate`."""

    vocabulary: int = 4096
    width: int = 128
    layers: int = 4
    heads: int = 4
    inner: int = 256
    spread: float = 0.06
    rate: float = 2e-3


TINY = Sizes()
TINY_DECODER = Sizes(inner=384, rate=3e-3)


def library() -> dict[str, str]:
    """The files of this Python's standard library: path within it -> text, in order, without its tests.

    Left out are folders named `test`, `tests` or `idle_test`, which many distributions of Python leave out, and
    packages that were installed into it.
    """
    root = Path(sysconfig.get_path("stdlib"))
    left_out = {"test", "tests", "idle_test", "site-packages", "dist-packages"}
    files = {path.relative_to(root).as_posix(): path for path in root.rglob("*.py")}
    decode = language_of("python").decode
    return {
        name: decode(files[name].read_bytes())
        for name in sorted(files)
        if not left_out & {*Path(name).parent.parts}
    }


def functions(files: dict[str, str]) -> list[str]:
    """The distinct functions and methods of Python files, delimited as in CodeSearchNet, in order.

    Raises SourceError if there is none.
    """
    found = list(
        dict.fromkeys(
            definition.code
            for text in files.values()
            for definition in definitions(text, branches=False)
            if isinstance(definition, Definition)
        )
    )
    if not found:
        raise SourceError(
            "the standard library has no functions in source form: use a Python that has its .py files"
        )
    return found


def digest_of(texts: Sequence[str]) -> str:
    """The SHA-256 of texts, in order: of the JSON list, in UTF-8."""
    return hashlib.sha256(
        json.dumps(texts, ensure_ascii=False).encode("utf-8", "surrogatepass")
    ).hexdigest()


def tokenizer_of(
    texts: Sequence[str], vocabulary: int, decoder: bool = False
) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer (Radford et al. 2019, section 2.2) with at most so many entries, from `texts`.

    That of a decoder adds no special tokens to a text, and has those of fill-in-the-middle.
    """
    special = _DECODER_SPECIAL if decoder else _SPECIAL
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=vocabulary,
            special_tokens=[*special.values(), *(_MIDDLE if decoder else ())],
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    options: dict[str, Any] = {
        "tokenizer_object": tokenizer,
        "model_max_length": LONGEST,
        **special,
    }
    if decoder:
        return PreTrainedTokenizerFast(**options, additional_special_tokens=list(_MIDDLE))
    # the trainer numbers special tokens first, in order
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", 1), ("<s>", 0), trim_offsets=True, add_prefix_space=False
    )
    return PreTrainedTokenizerFast(**options)


def _shape(tokenizer: Any, sizes: Sizes) -> dict[str, Any]:
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": sizes.width,
        "intermediate_size": sizes.inner,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "initializer_range": sizes.spread,
        "pad_token_id": tokenizer.pad_token_id,
    }


def model_of(tokenizer: Any, sizes: Sizes, seed: int) -> ModernBertForMaskedLM:
    """A model with its family's own initial weights, in which every layer attends to the whole input."""
    config = ModernBertConfig(
        **_shape(tokenizer, sizes),
        layer_types=["full_attention"] * sizes.layers,
        rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 10_000.0}},
        max_position_embeddings=LONGEST,
        cls_token_id=tokenizer.cls_token_id,
        sep_token_id=tokenizer.sep_token_id,
        bos_token_id=tokenizer.cls_token_id,
        eos_token_id=tokenizer.sep_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ModernBertForMaskedLM._from_config(config, attn_implementation="sdpa")


def decoder_of(tokenizer: Any, sizes: Sizes, seed: int) -> LlamaForCausalLM:
    """A decoder with its family's own initial weights."""
    config = LlamaConfig(
        **_shape(tokenizer, sizes),
        max_position_embeddings=LONGEST + 2,  # an input with a hole has two special tokens more
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM._from_config(config, attn_implementation="sdpa")


def inputs_of(tokenizer: Any, texts: Sequence[str]) -> list[np.ndarray]:
    """The sub-tokens (S,) of each text; of one longer than LONGEST, consecutive pieces, each with special tokens."""
    most = LONGEST - 2
    begin, end = tokenizer.convert_tokens_to_ids(["<s>", "</s>"])
    pieces = []
    for ids in tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]:
        for start in range(0, len(ids), most):
            piece = [begin, *ids[start : start + most], end]
            pieces.append(np.asarray(piece, np.int64))
    return pieces


def chosen(special: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Positions to mask: (B, S), RATE of those of a row that are not `special`, at least one; (B, S)."""
    numbers = np.where(special, 2.0, rng.random(special.shape))
    amounts = np.maximum(1, np.rint(RATE * (~special).sum(axis=1)))
    return (numbers.argsort(axis=1).argsort(axis=1) < amounts[:, None]) & ~special


def with_hole(ids: np.ndarray, middle: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    """An input (S,) as it is, or, of HOLES of them, with its middle behind prefix and suffix (S + 2,).

    `middle`: the tokens before prefix, suffix and middle. The lengths of middles are uniform in their logarithm,
    because most nodes of a syntax tree are short.
    """
    text = ids[1:-1]
    if rng.random() >= HOLES or not len(text):
        return ids
    length = int(np.exp(rng.uniform(0, np.log(len(text) + 1))))
    start = int(rng.integers(len(text) - length + 1))
    of_hole = slice(start, start + length)
    parts = text[:start], text[start + length :], text[of_hole]
    return np.concatenate(
        [*([token, *part] for token, part in zip(middle, parts)), ids[-1:]]
    ).astype(np.int64)


class RestoredCount(NamedTuple):
    """The number of the `masked` sub-tokens of `functions` that were restored.

    `longer`: functions left out because they have more than `longest` sub-tokens.
    """

    functions: int
    longer: int
    longest: int
    masked: int
    restored: int


def restored(model: RestoringModel, texts: Sequence[str], seed: int = 0) -> RestoredCount:
    """Mask RATE of the sub-tokens of each text, none of them special, and count those that the model ranks first.

    The positions depend on `seed` and on the texts, in order. Texts of more than `model.longest` sub-tokens are left
    out.
    """
    rng = np.random.default_rng(seed)
    masked = hits = longer = 0
    for ids, _, special in model.encode(texts):
        if len(ids) > model.longest:
            longer += 1
            continue
        for text, positions in model.texts(ids, np.flatnonzero(chosen(special[None], rng)[0])):
            columns = torch.from_numpy(positions)
            found = model.scores(model.inputs([text]), torch.zeros_like(columns), columns)
            masked += len(columns)
            hits += int((found[:, 0].long().cpu() == torch.from_numpy(text)[columns]).sum())
    return RestoredCount(len(texts) - longer, longer, model.longest, masked, hits)


class WithHoles:
    """Makes a batch of a decoder's inputs, some of which have a hole: it predicts all of their sub-tokens."""

    def __init__(self, tokenizer: Any, seed: int):
        self.middle = tokenizer.convert_tokens_to_ids(list(_MIDDLE))
        self.rng = np.random.default_rng(seed)
        self.collate = DataCollatorForLanguageModeling(tokenizer, mlm=False)

    def __call__(self, examples: Sequence[dict[str, np.ndarray]]) -> Any:
        rows = [with_hole(example["input_ids"], self.middle, self.rng) for example in examples]
        return self.collate([{"input_ids": row} for row in rows])


def collator(tokenizer: Any, decoder: bool, seed: int) -> Any:
    """What makes a batch of inputs, with labels: of a decoder with holes, else with masks."""
    if decoder:
        return WithHoles(tokenizer, seed)
    return DataCollatorForLanguageModeling(
        tokenizer, mlm_probability=RATE, mask_replace_prob=1.0, random_replace_prob=0.0, seed=seed
    )


class AtSteps(TrainerCallback):
    """Calls `act` with the number of each step of which `at` is true, 0 before the first among them."""

    def __init__(self, at: Callable[[int], bool], act: Callable[[int], object]):
        self.at, self.act = at, act

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.on_step_end(args, state, control)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.at(state.global_step):
            self.act(state.global_step)


def trainer_of(
    texts: Sequence[str], folder: Path, decoder: bool, steps: int, seed: int, sizes: Sizes
) -> Trainer:
    """What trains a model of these sizes on texts, from its family's own initial weights; it writes nothing."""
    tokenizer = tokenizer_of(texts, sizes.vocabulary, decoder)
    model = (decoder_of if decoder else model_of)(tokenizer, sizes, seed)
    if not decoder:
        # of this object alone: the loss needs logits at masked positions only
        model.sparse_prediction = True
    arguments = TrainingArguments(
        str(folder),
        max_steps=steps,
        per_device_train_batch_size=_BATCH,
        train_sampling_strategy="group_by_length",
        learning_rate=sizes.rate,
        lr_scheduler_type="linear",
        warmup_steps=max(1, round(_WARM_UP * steps)),
        weight_decay=0.01,
        adam_beta2=0.98,
        seed=seed,
        use_cpu=True,
        dataloader_pin_memory=False,
        save_strategy="no",
        logging_steps=_SHOWN,
        report_to="none",
    )
    inputs = [{"input_ids": ids} for ids in inputs_of(tokenizer, texts)]
    collate = collator(tokenizer, decoder, seed)
    return Trainer(model, arguments, collate, train_dataset=inputs, processing_class=tokenizer)


@checked
def train(
    output: str | os.PathLike,
    *,
    decoder: bool = False,
    steps: Positive | None = None,
    seed: Natural = 0,
    checkpoints: str | os.PathLike | None = None,
    data: str | os.PathLike | None = None,
    sizes: Sizes | None = None,
) -> Path:
    """Train a model, and write its folder `output`, which must not exist: weights, tokenizer and card.

    `decoder`: train a decoder with fill-in-the-middle, instead of a masked language model. `checkpoints`: a folder for
    the models after 0, 1, 2, 4, ... steps, too. `data`: a dataset folder; cards then say which share of sub-tokens of
    its Python test functions the model restores.

    Raises ModelError if `output` or a checkpoint exists, SourceError if the library has no source files.
    """
    steps = steps or (DECODER_STEPS if decoder else STEPS)
    sizes = sizes or (TINY_DECODER if decoder else TINY)
    target = Path(output)
    of_others = [] if checkpoints is None else sorted(Path(checkpoints).glob("step-*"))
    for folder in (target, *of_others):
        if folder.exists():
            raise ModelError(f"{folder} exists already: remove it, or choose another folder")
    evaluated = (
        None
        if data is None
        else read_split(Path(data), "python", "test", ["code"])[0]["code"].to_pylist()
    )
    texts = functions(library())
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # with more the order of sums is not fixed
    try:
        with tempfile.TemporaryDirectory() as folder:
            trainer = trainer_of(texts, Path(folder), decoder, steps, seed, sizes)
            if checkpoints is not None:
                trainer.add_callback(
                    AtSteps(
                        lambda step: step & (step - 1) == 0,
                        lambda step: write(
                            Path(checkpoints) / f"step-{step:06}", trainer, texts, evaluated
                        ),
                    )
                )
            trainer.train()
            write(target, trainer, texts, evaluated)
    finally:
        torch.set_num_threads(before)
    return target


def write(
    folder: Path, trainer: Trainer, texts: Sequence[str], evaluated: Sequence[str] | None
) -> None:
    """Write the model as it is now, its tokenizer and its card into a new folder, whole or not at all."""
    decoder = isinstance(trainer.model, LlamaForCausalLM)
    precision = torch.float16 if decoder else torch.float32
    with atomic_path(folder) as place:
        with quiet():
            torch.nn.Module.to(copy.deepcopy(trainer.model), precision).save_pretrained(place)
            trainer.processing_class.save_pretrained(place)
        found = (
            None if evaluated is None else restored(load_restoring(place, device="cpu"), evaluated)
        )
        (place / "README.md").write_text(card(trainer, texts, found), encoding="utf-8")


def card(trainer: Trainer, texts: Sequence[str], found: RestoredCount | None) -> str:
    """The model's card: from what and how long it was trained, and what it restores."""
    arguments = trainer.args
    told = "an unknown share of masked sub-tokens: it was not evaluated."
    if found is not None:
        told = (
            f"{found.restored:,} of {found.masked:,} masked ones among the sub-tokens of {found.functions:,} functions\n"
            f"  from elsewhere ({found.longer:,} of more than {found.longest:,} sub-tokens were left out)."
        )
    return f"""---
license: apache-2.0
library_name: transformers
---
# A tiny model for Python

To try probes of code models without a network; too small for anything else.

- **Trained from** the {len(texts):,} distinct functions and methods in the standard library of Python
  {platform.python_version()} (PSF License), without its tests. SHA-256 of the JSON list of their code:
  `{digest_of(texts)}`.
- **Trained for** {trainer.state.global_step:,} of {arguments.max_steps:,} steps of {_BATCH} inputs, AdamW, learning rate up to
  {arguments.learning_rate}, seed {arguments.seed}.
- **Restores** {told}

`python tests/support/models/train_tiny.py` of CodeSyntax made it.
"""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("output", type=click.Path(path_type=Path))
@click.option(
    "--decoder", is_flag=True, help="Train the decoder, which fills in the middle, instead."
)
@click.option(
    "--checkpoints",
    type=click.Path(path_type=Path),
    help="A folder for the models after 0, 1, 2, 4, ... steps.",
)
@click.option(
    "--evaluate",
    "data",
    type=click.Path(path_type=Path),
    help="A dataset folder to evaluate on, for the cards.",
)
def main(output: Path, decoder: bool, checkpoints: Path | None, data: Path | None) -> None:
    """Train the embedded masked language model or decoder, on one core, and write it to the folder OUTPUT."""
    try:
        train(output, decoder=decoder, checkpoints=checkpoints, data=data)
    except CodeSyntaxError as error:
        raise click.ClickException(str(error)) from None


if __name__ == "__main__":
    main()
