"""The model of a command: loaded, hashed and self-checked once for all its splits, configs and
instruments."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from codesyntax_dataset.arguments import Natural, Positive, StrPath, checked
from codesyntax_dataset.errors import ArgumentError, ModelError
from codesyntax_dataset.network import is_hub_id
from codesyntax_dataset.protocol import PAPER_LENGTH
from probing.models.location import EMBEDDED_MODELS, ModelSource, loading, locate, step_of
from probing.runs.processes import Processes
from probing.runs.saved import field_of, found_at, read_text

if TYPE_CHECKING:
    import torch

    from probing.models.encoder import Encoder
    from probing.models.language_model import LanguageModel
    from probing.models.masked import RestoringModel, ScoringModel

_COMMIT = 40  # hexadecimal digits; digests have more


class Session:
    """A model at a revision, with a precision, on a device, in the forms that instruments need.

    Functions that measure, such as `probing.probe`, take it instead of a model, and load that once.
    A form is loaded when an instrument first needs it, so that a run that the cache has loads
    nothing.

    Args:
        model: a Hub id, a local folder or file, the name of an embedded model, or a (model,
            tokenizer) pair.
        revision: a branch, tag or commit on the Hub, or the name of a checkpoint in a local folder.
        step: the training step of a checkpoint; by default that in the name of its revision.
        dtype: precision of the model: `float32`, by default, `bfloat16` or `float16`, as text or
            torch dtype.
        device: such as `cpu` or `cuda:1`; by default a CUDA GPU if there is one, and for a pair
            where it is.
        max_length: the most sub-tokens of a function, special tokens included: by default 511, as
            in the paper.
        alone: do not share the work with other processes.

    Attributes:
        named: True unless the model was found by what a result says.

    Raises:
        ArgumentError: arguments of other kinds.

    Examples:
        >>> import probing
        >>> session = probing.Session("tiny-code-lm")
        >>> probing.probe(session, "codesyntax", limit=2).functions
        2
        >>> probing.prefer(session, "codesyntax", limit=2).accuracy.pairs
        2
    """

    @checked
    def __init__(
        self,
        model: ModelSource,
        *,
        revision: str | None = None,
        step: Natural | None = None,
        dtype: str | torch.dtype | None = None,
        device: str | torch.device | None = None,
        max_length: Positive | None = None,
        alone: bool = False,
    ):
        self.processes = processes_of_run(alone)
        self.named = True
        self.model = os.fspath(model) if isinstance(model, os.PathLike) else model
        self.revision = revision
        self.step = step_of(revision) if step is None else step
        self.max_length = max_length or PAPER_LENGTH
        self.dtype = _precision(dtype or "float32")
        self.device = str(device) if device else self.processes.device
        self._forms: dict[tuple[str, int | None], Any] = {}

    @classmethod
    def of(cls, model: ModelSource | Session, **options: Any) -> Session:
        """`model`, if it is a session, or a new one with these options.

        Raises ArgumentError for an option that a session has otherwise; None is no option.
        """
        if not isinstance(model, Session):
            return cls(model, **options)
        for name, value in options.items():
            asked = _precision(value) if name == "dtype" and value else value
            has = getattr(model, name)
            if asked is not None and str(asked) != str(has):
                raise ArgumentError(
                    f"{name} is {asked!r}, but the session has {has!r}: make a session with that {name}"
                )
        return model

    @classmethod
    def again(
        cls,
        file: StrPath,
        settings: Any,
        model: Any = None,
        device: str | torch.device | None = None,
    ) -> Self:
        """The model of the result in a file, which has these settings, or `model`; raises
        ModelError if it is gone."""
        location, revision = find_model(file, settings) if model is None else (model, None)
        session = cls(
            location,
            revision=revision,
            dtype=getattr(settings, "precision", "float32"),
            device=device,
            max_length=settings.max_length,
        )
        session.named = model is not None
        return session

    @property
    def place(self) -> Path | None:
        """The folder or file of the model; None for one on the Hub or embedded, and where a pair is
        of neither."""
        if isinstance(self.model, str):
            path = Path(self.model, self.revision or "")
        else:
            from probing.models.wrapped import unwrapped  # torch takes seconds to import

            name = unwrapped(self.model[0]).model.config.name_or_path
            if not name:
                return None
            path = Path(name)
        return path.resolve() if path.exists() else None

    def encoder(self, random_weights: int | None = None) -> Encoder:
        """The body of the model, or one with initial weights drawn by a seed."""
        if random_weights is None and ("load_language_model", None) in self._forms:
            return self.language_model()
        return self._form("load", random_weights, dtype=self.dtype)

    def restoring_model(self, random_weights: int | None = None) -> RestoringModel:
        """The model that restores masks or fills in the middle, or an untrained one with initial
        weights drawn by a seed."""
        return self._form("load_restoring", random_weights, dtype=self.dtype)

    def scoring_model(self, random_weights: int | None = None) -> ScoringModel:
        """The model with its masked-LM or causal-LM head, or an untrained one with initial weights
        drawn by a seed."""
        return self._form("load_scoring", random_weights, dtype=self.dtype)

    def language_model(self) -> LanguageModel:
        """The model with its masked-LM or causal-LM head, whose heads can be silenced; it is then
        the encoder, too."""
        return self._form("load_language_model")

    def _form(self, loader: str, random_weights: int | None = None, **options: Any) -> Any:
        """What a function of `probing.models.load` makes of the model, once."""
        from probing.models import load  # transformers takes seconds to import

        form = loader, random_weights
        if form not in self._forms:
            load_form = getattr(load, loader)
            self._forms[form] = load_form(
                self.model,
                revision=self.revision,
                device=self.device,
                max_length=self.max_length,
                random_weights=random_weights,
                **options,
            )
        return self._forms[form]

    @property
    def forwarded(self) -> int:
        """How many sub-tokens its loaded forms have forwarded."""
        return sum(form.forwarded for form in self._forms.values())

    def is_of(self, revision: str) -> bool:
        """True if a loaded form of the model has this revision, or is a copy of what has it.

        Earlier results of a local model have the digest of its files.
        """
        from probing.models.identity import is_revision

        if any(is_revision(form, revision) for form in self._forms.values()):
            return True
        return isinstance(self.model, str) and self.contents == revision

    @property
    def contents(self) -> str:
        """The commit of a model that is no pair, or the digest of its files; empty if it is
        gone."""
        try:
            return name_and_contents(str(self.model), self.revision)[1]
        except ModelError:
            return ""


def _precision(dtype: str | torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def processes_of_run(alone: bool = False) -> Processes:
    """Those that were started together, or this one: if it was started alone, or is to be `alone`
    though others run beside it."""
    if alone or int(os.environ.get("WORLD_SIZE", "1")) < 2:
        return Processes()
    from probing.runs.distributed import TorchProcesses  # torch takes seconds to import

    return TorchProcesses()


def name_and_contents(model: str, revision: str | None) -> tuple[str, str]:
    """A model's name in results, and its commit or the digest of its files; raises ModelError if
    there is none."""
    with loading(model):
        location = locate(model, revision)
        return location.name, location.contents()


def find_model(file: StrPath, settings: Any) -> tuple[str, str | None]:
    """Locate the model of the result in a file, which has these settings, and its revision on the
    Hub.

    A local model is searched at the path in the result, and by its name in the working directory.
    Raises ModelError if it is gone.
    """
    name = settings.model
    recorded = found_at(Path(file).parent, field_of(read_text(file), "model_path"))
    if recorded is None and len(settings.revision) == _COMMIT:
        return name, settings.revision
    for path in [name] if recorded is None else [str(recorded), name]:
        if os.path.exists(path) or path in EMBEDDED_MODELS:
            return path, None
    if recorded is None and "/" in name and is_hub_id(name):  # a pair in memory, loaded from there
        return name, None
    raise ModelError(
        f"the model {name} of {file} is not "
        + ("on the Hub" if recorded is None else f"at {recorded}")
        + ", and not in the working directory: give its location with --model"
    )
