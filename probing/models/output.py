"""The output layer of a language model, computed only at the positions that are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
import transformers
from transformers.modeling_outputs import BaseModelOutputWithPast

from probing.models.checks import DRIFT, Check, error_line, largest
from probing.models.loaded import borrowed, full_precision, without_cache

_NUMBERS = 1 << 24  # of logits in memory at once, 64 MB


class OutputLayer:
    """The output layer of a `model`, with a `vocabulary` of as many sub-tokens as it has embeddings.

    `why`: empty if it is computed at the positions that are read only, or why it is at all positions.
    """

    def __init__(self, model: transformers.PreTrainedModel, vocabulary: float):
        self.model, self.why = model, ""
        self._body_options, self._options = without_cache(model.base_model), without_cache(model)
        self._at_once = max(1, _NUMBERS // max(1, int(min(vocabulary, _NUMBERS))))

    def logits(
        self, inputs: Mapping[str, torch.Tensor], rows: torch.Tensor, columns: torch.Tensor
    ) -> Iterator[torch.Tensor]:
        """The logits at some positions of a batch, in order: (m, vocabulary) at a time."""
        with borrowed(self.model), full_precision(), torch.inference_mode():
            if self.why:
                yield self.model(**{**self._options, **inputs}, return_dict=True).logits[rows, columns]
                return
            hidden = self.model.base_model(**{**self._body_options, **inputs}, return_dict=True)[0][rows, columns]
            for start in range(0, len(hidden), self._at_once):
                yield self._of(hidden[start : start + self._at_once])

    def everywhere(self, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """The logits as the model reports them: float32 (B, S, vocabulary)."""
        with borrowed(self.model), full_precision(), torch.inference_mode():
            return self.model(**inputs, **self._options, return_dict=True).logits.float()

    def examine(
        self,
        inputs: Mapping[str, torch.Tensor],
        rows: torch.Tensor,
        columns: torch.Tensor,
        expected: torch.Tensor,
        dtype: str,
    ) -> Check:
        """Check that the logits at some positions are the `expected` ones of `everywhere`; otherwise `why` is set."""
        bound = DRIFT[dtype]
        try:
            found = torch.cat([logits.float() for logits in self.logits(inputs, rows, columns)])
            apart = found - expected if found.shape == expected.shape else torch.tensor(float("inf"))
            difference = largest(apart)
            said = f"logits differ by {difference:.2g}, at most {bound:.0e}"
        except Exception as error:  # a model's code may fail in any way when its parts are called on their own
            difference, said = float("inf"), error_line(error)
        meaning = "its output layer cannot be computed on its own"
        if difference > bound:
            self.why = f"{meaning} ({said})"
        return Check("output layer at the positions that are read only", difference <= bound, said, meaning)

    def _of(self, hidden: torch.Tensor) -> torch.Tensor:
        """The logits (M, vocabulary) that the model's own code computes from hidden states (M, width)."""
        body = self.model.base_model
        ids = torch.zeros(1, len(hidden), dtype=torch.long, device=hidden.device)
        own = body.__dict__.get("forward")
        body.forward = lambda *_, **__: BaseModelOutputWithPast(last_hidden_state=hidden[None])
        try:
            return self.model(input_ids=ids, attention_mask=torch.ones_like(ids), return_dict=True).logits[0]
        finally:
            if own is None:
                del body.forward
            else:
                body.forward = own
