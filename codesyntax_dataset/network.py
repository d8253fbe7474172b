"""Avoid hopeless requests to the Hub: invalid repository names, and a missing network, which is detected quickly."""

from __future__ import annotations

from huggingface_hub import constants
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import get_session, validate_repo_id

SECONDS = 2.5
"""Timeout for the Hub to answer; `huggingface_hub` and `datasets` would retry for half a minute or more."""

UNREACHABLE = "the Hub cannot be reached: is there a network, and is HF_ENDPOINT right?"

_ANSWERED: set[str] = set()


def is_hub_id(name: str) -> bool:
    """Whether `name` is a valid repository name on the Hub; any other name can only be a local path."""
    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return True


def hub_answers() -> bool:
    """Whether the Hub answers within SECONDS, or has done so in this process; False if HF_HUB_OFFLINE is set."""
    if constants.is_offline_mode():
        return False
    if constants.ENDPOINT in _ANSWERED:
        return True
    try:
        get_session().head(constants.ENDPOINT, timeout=SECONDS)
        _ANSWERED.add(constants.ENDPOINT)
    except Exception:  # which one depends on the HTTP client of this version of huggingface_hub
        return False
    return True
