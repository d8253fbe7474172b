"""Whether the Hub can be asked at all: what cannot be there is never asked for, and a missing network is told at once."""

from __future__ import annotations

from huggingface_hub import constants
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import get_session, validate_repo_id

SECONDS = 2.5
"""For the Hub to answer. Its own clients and `datasets` try again for half a minute and more."""

UNREACHABLE = "the Hub cannot be reached: is there a network, and is HF_ENDPOINT right?"

_ANSWERED: set[str] = set()


def is_hub_id(name: str) -> bool:
    """Whether the Hub could have a repository of that name; what else is named lies on the disk or nowhere."""
    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return True


def hub_answers() -> bool:
    """Whether the Hub says anything within SECONDS, or has in this process; no where HF_HUB_OFFLINE is set."""
    if constants.is_offline_mode():
        return False
    if constants.ENDPOINT in _ANSWERED:
        return True
    try:
        get_session().head(constants.ENDPOINT, timeout=SECONDS)
        _ANSWERED.add(constants.ENDPOINT)
    except Exception:  # whatever the HTTP client of this huggingface_hub raises where there is no connection
        return False
    return True
