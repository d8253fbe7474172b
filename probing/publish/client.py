"""How we talk to the Hub: `huggingface_hub` does it; here are its token, its patience and its errors in a line."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import TypeVar

from huggingface_hub import HfApi, constants, get_token
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    HTTPError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import disable_progress_bars, parse_ratelimit_headers, validate_repo_id

from codesyntax_dataset.errors import CodeSyntaxError, HubError

PATIENCE = 600
"""Seconds to wait in all where the Hub asks to; its windows of counting requests are of five minutes."""

AGAIN = "Each commit is published as a whole or not at all: the same command completes what is missing"

_UNREADABLE = (json.JSONDecodeError, AttributeError, LookupError, TypeError)
"""What `huggingface_hub` raises where an answer is no JSON, or other JSON than that of a Hub."""

Answer = TypeVar("Answer")


def client() -> HfApi:
    """A client with the user's token. Raises HubError where there is none, or no Hub is to be asked."""
    if constants.is_offline_mode():
        raise HubError("HF_HUB_OFFLINE is set, so no Hub is asked: unset it")
    token = get_token()
    if token is None:
        raise HubError(
            "no token for the Hub: log in with `hf auth login`, or set HF_TOKEN to a token with the role `write`"
        )
    if not re.fullmatch("[!-~]+", token):
        raise HubError("the token for the Hub has characters that no token has, such as spaces: set HF_TOKEN again")
    if not sys.stderr.isatty():
        disable_progress_bars()
    return HfApi(token=token, library_name="codesyntax", library_version=version("codesyntax"))


def check_repo(repo: str) -> None:
    """Raise HubError unless `repo` is `USER/NAME` as the Hub allows it."""
    try:
        validate_repo_id(repo)
        _user, _name = repo.split("/")
    except (HFValidationError, ValueError) as error:
        raise HubError(
            f"{repo!r} cannot be a repository, expected USER/NAME such as me/codesyntax: letters, digits, and - _ . "
            "between them"
        ) from error


def patiently(call: Callable[[], Answer]) -> Answer:
    """The answer of `call`, made again whenever the Hub answers 429 and says how long to wait, for PATIENCE at most.

    `huggingface_hub` does so by itself where it uploads, but not where it creates a repository, a commit or a pull
    request. Only 429 is safe to send again there: it means that nothing was done.
    """
    waited = 0
    while True:
        try:
            return call()
        except HfHubHTTPError as error:
            wait = _asked_to_wait(error)
            if wait is None or waited + wait > PATIENCE:
                raise
            print(f"the Hub has had too many requests and asks to wait {wait} seconds", file=sys.stderr)
            time.sleep(wait)
            waited += wait


def _asked_to_wait(error: HfHubHTTPError) -> int | None:
    """Seconds, at least 1."""
    if error.response.status_code != 429:
        return None
    headers = error.response.headers
    if re.fullmatch("[0-9]{1,9}", headers.get("Retry-After", "")):
        return max(1, int(headers["Retry-After"]))
    limit = parse_ratelimit_headers(headers)
    return max(1, limit.reset_in_seconds) if limit else None


@contextmanager
def plain_errors(repo: str) -> Iterator[None]:
    """Raise HubError in place of what `huggingface_hub` raises about `repo`, and keep addresses out of its messages.

    Addresses of uploads are as good as a token while they are valid.
    """
    handlers = logging.getLogger("huggingface_hub").handlers
    for handler in handlers:
        handler.addFilter(_no_address)
    try:
        yield
    except CodeSyntaxError:
        raise
    except (HTTPError, OSError, RuntimeError, ValueError, *_UNREADABLE) as error:
        # RuntimeError: uploads of large files, and hf_xet
        message = _message(error, repo)
        token = get_token()
        raise HubError(message.replace(token, "[token]") if token else message) from error
    finally:
        for handler in handlers:
            handler.removeFilter(_no_address)


def _no_address(record: logging.LogRecord) -> bool:
    return "://" not in record.getMessage()


def _message(error: BaseException, repo: str) -> str:
    reasons = list(_chain(error))
    for reason in reasons:
        if isinstance(reason, OfflineModeIsEnabled):
            return "HF_HUB_OFFLINE is set, so no Hub is asked: unset it"
        if isinstance(reason, HfHubHTTPError):
            return _refusal(reason, repo)
        if isinstance(reason, HTTPError):
            return f"lost the connection to {constants.ENDPOINT} ({type(reason).__name__}: {reason}). {AGAIN}"
    if isinstance(error, _UNREADABLE):
        return (
            f"{constants.ENDPOINT} does not answer about {repo} as a Hub does ({type(error).__name__}: {error}): try "
            "again later, and see that HF_ENDPOINT is right and no proxy is in the way"
        )
    return f"cannot send to {repo}: {type(reasons[-1]).__name__}: {reasons[-1]}. {AGAIN}"


def _refusal(error: HfHubHTTPError, repo: str) -> str:
    status, said = error.response.status_code, error.server_message or "no reason given"
    if isinstance(error, GatedRepoError):
        return f"{repo} is gated ({said}): accept its terms on its page, and log in as who did"
    if isinstance(error, RevisionNotFoundError):
        return f"{repo} has no such revision ({said})"
    if isinstance(error, RepositoryNotFoundError) or status == 404:  # where the token is none, 401 says so
        return f"{repo} is not there, or the token may not see it ({said})"
    if status == 401:
        return f"the Hub does not accept the token ({said}): log in again with `hf auth login`, or set HF_TOKEN"
    if status == 403:
        return f"the token may not write to {repo} ({said}): it needs the role `write` there"
    if status == 429:
        wait = _asked_to_wait(error)
        return f"the Hub has had too many requests: wait {f'{wait} seconds' if wait else 'some minutes'}. {AGAIN}"
    if status >= 500:
        return f"the Hub has a fault of its own, status {status} ({said}): try again later. {AGAIN}"
    return f"the Hub refuses with status {status} ({said})"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, what it was raised from, and so on."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
