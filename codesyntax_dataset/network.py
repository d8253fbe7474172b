"""Avoid hopeless requests to the Hub: invalid names, no network, which is detected quickly, and
waiting for ever."""

from __future__ import annotations

from typing import Any

from huggingface_hub import constants, utils  # what takes long to import waits until it is used

SECONDS = 2.5
"""Timeout for the Hub to answer; `huggingface_hub` and `datasets` would retry for half a minute or
more."""

UNREACHABLE = "the Hub cannot be reached (check the network and HF_ENDPOINT)"

LONGEST_WAIT = 60.0
"""Seconds to wait for each part of an answer of the Hub; `huggingface_hub` sets no limit to most of
its requests."""


def limit_waiting() -> None:
    """Give each request of `huggingface_hub` in this process a time limit."""
    hooks = utils.get_session().event_hooks["request"]
    if _limited not in hooks:
        hooks.append(_limited)


def _limited(request: Any) -> None:
    timeouts = request.extensions.get("timeout") or {}
    parts = ("connect", "read", "write", "pool")
    request.extensions["timeout"] = {part: timeouts.get(part) or LONGEST_WAIT for part in parts}


def is_hub_id(name: str) -> bool:
    """True if `name` is a valid repository name on the Hub; any other name can only be a local
    path."""
    try:
        utils.validate_repo_id(name)
    except utils.HFValidationError:
        return False
    return True


def hub_answers() -> bool:
    """True if the Hub answers within SECONDS, asked anew each time; False if HF_HUB_OFFLINE is
    set."""
    if constants.is_offline_mode():
        return False
    limit_waiting()
    try:
        utils.get_session().head(constants.ENDPOINT, timeout=SECONDS)
    except Exception:  # which one depends on the HTTP client of this version of huggingface_hub
        return False
    return True
