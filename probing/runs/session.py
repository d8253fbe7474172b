"""The model of a command: loaded, hashed and self-checked once for all its splits, configs and instruments."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar

import torch

from codesyntax_dataset.protocol import PAPER_LENGTH
from probing.runs.processes import Processes

if TYPE_CHECKING:
    from probing.models.encoder import Encoder
    from probing.models.masked import MaskedModel
    from probing.models.silencing import LanguageModel

T = TypeVar("T")


class Session:
    """A model at a revision, with a precision, on a device, in the forms that instruments need.

    A form is loaded when an instrument first needs it, so that a run that the cache has loads nothing. `model`,
    `revision`, `dtype`, `device` and `max_length` as of `probing.probe`; `step`: that of a checkpoint.
    """

    def __init__(
        self,
        model: str | os.PathLike | tuple,
        *,
        revision: str | None = None,
        step: int | None = None,
        dtype: str | torch.dtype = "float32",
        device: str | torch.device | None = None,
        max_length: int = PAPER_LENGTH,
    ):
        self.processes = Processes()
        self.model = os.fspath(model) if isinstance(model, os.PathLike) else model
        self.revision, self.step, self.max_length = revision, step, max_length
        self.dtype = str(dtype).removeprefix("torch.")
        self.device = str(device) if device else self.processes.device
        self._forms: dict[str, Any] = {}

    @classmethod
    def of(cls, model: str | os.PathLike | tuple | Session, **given: Any) -> Session:
        """`model`, if it is a session, which says everything `given` itself, or a new one."""
        return model if isinstance(model, Session) else cls(model, **given)

    @classmethod
    def again(cls, settings: Any, model: Any = None, device: str | torch.device | None = None) -> Self:
        """The model of an earlier run with these settings, or `model`."""
        return cls(
            model or settings.model,
            revision=None if model else settings.revision,
            dtype=getattr(settings, "precision", "float32"),
            device=device,
            max_length=settings.max_length,
        )

    def encoder(self, random_weights: int | None = None) -> Encoder:
        """The body of the model, or one with initial weights drawn by a seed."""
        from probing.models.load import load  # transformers takes seconds to import

        if random_weights is None and "language model" in self._forms:
            return self._forms["language model"]
        given = {**self._given, "dtype": self.dtype, "random_weights": random_weights}
        return self._form(f"encoder {random_weights}", lambda: load(self.model, **given))

    def masked_model(self) -> MaskedModel:
        """The model with its masked-LM head."""
        from probing.models.load import load_masked

        return self._form("masked", lambda: load_masked(self.model, **self._given))

    def language_model(self) -> LanguageModel:
        """The model with its masked-LM or causal-LM head, whose heads can be silenced; it is then the encoder, too."""
        from probing.models.load import load_language_model

        return self._form("language model", lambda: load_language_model(self.model, **self._given))

    def is_of(self, revision: str) -> bool:
        """True if a loaded form of the model has this revision, or is a copy of what has it."""
        from probing.models.identity import is_revision

        return any(is_revision(form, revision) for form in self._forms.values())

    @property
    def _given(self) -> dict[str, Any]:
        return {"revision": self.revision, "device": self.device, "max_length": self.max_length}

    def _form(self, name: str, load: Callable[[], T]) -> T:
        if name not in self._forms:
            self._forms[name] = load()
        return self._forms[name]
