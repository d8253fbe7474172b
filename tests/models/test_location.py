"""Where a model is looked for, and what is told of one that cannot be loaded."""

from __future__ import annotations

import pytest
from huggingface_hub.errors import HFValidationError

from codesyntax_dataset.errors import ModelError
from probing.models.location import loading

NOWHERE = "no such folder, and no such model on the Hub that can be reached"


def told(model: str, error: Exception) -> str:
    with pytest.raises(ModelError) as raised, loading(model):
        raise error
    assert raised.value.__cause__ is error
    return str(raised.value)


@pytest.mark.parametrize(
    ("error", "reason", "nowhere"),
    [
        (OSError("it is gone"), "it is gone", True),
        (HFValidationError("it is no name"), "it is no name", True),
        (ValueError("a size of 0"), "a size of 0", False),
        (RuntimeError("a kernel failed"), "RuntimeError: a kernel failed", False),
    ],
)
def test_only_what_was_looked_for_in_vain_is_said_to_be_nowhere(error, reason, nowhere, tmp_path):
    """A name on the Hub that it does not give; never a folder that is there."""
    of_name = f"{NOWHERE} ({reason})" if nowhere else reason
    assert told("user/model", error) == f"cannot load the model 'user/model': {of_name}"
    folder = str(tmp_path)
    assert told(folder, error) == f"cannot load the model {folder!r}: {reason}"
