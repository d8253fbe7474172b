"""The Hub client: `huggingface_hub` with its token, and one-line error messages."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from huggingface_hub import (
    CommitInfo,
    CommitOperationAdd,
    CommitOperationDelete,
    HfApi,
    constants,
    get_token,
)
from huggingface_hub import errors as hub_errors
from huggingface_hub import utils as hub_utils

from codesyntax_dataset.errors import CodeSyntaxError, HubError
from codesyntax_dataset.network import limit_waiting
from codesyntax_dataset.safe_files import printable

AGAIN = "Each commit is published as a whole or not at all: run the same command again to complete the rest"

_NOT_A_HUB = (json.JSONDecodeError, AttributeError, LookupError, TypeError)
"""Exceptions of `huggingface_hub` for an answer that is not JSON, or not a Hub's JSON."""


def client() -> HfApi:
    """A client with the user's token. Raises HubError if there is none, or if HF_HUB_OFFLINE is
    set."""
    if constants.is_offline_mode():
        raise HubError("HF_HUB_OFFLINE is set, so the Hub is not contacted: unset it")
    token = get_token()
    if token is None:
        raise HubError(
            "no token for the Hub: log in with `hf auth login`, or set HF_TOKEN to a token with the role `write`"
        )
    if not re.fullmatch("[!-~]+", token):
        raise HubError(
            "the token for the Hub has invalid characters, such as spaces: set HF_TOKEN again"
        )
    if not sys.stderr.isatty():
        hub_utils.disable_progress_bars()
    limit_waiting()
    return HfApi(token=token, library_name="codesyntax", library_version=version("codesyntax"))


def check_repo(repo: str) -> None:
    """Raise HubError unless `repo` is a valid `USER/NAME`."""
    try:
        hub_utils.validate_repo_id(repo)
        _user, _name = repo.split("/")
    except (hub_errors.HFValidationError, ValueError) as error:
        raise HubError(
            f"{repo!r} is not a valid repository name, expected USER/NAME such as me/codesyntax: letters, digits, and "
            "- _ . between them"
        ) from error


@dataclass(frozen=True)
class Upload:
    """A planned commit to the `kind` (model, dataset or space) `repo`: `files`, path in the
    repository -> content."""

    repo: str
    kind: str
    files: Mapping[str, str | bytes]

    def commit(
        self, api: HfApi, message: str, stale: Iterable[str] = (), **more: Any
    ) -> CommitInfo:
        """Commit the files, and delete `stale` ones; `more`: as of `create_commit`."""
        operations: list[CommitOperationAdd | CommitOperationDelete] = []
        for path, content in self.files.items():
            data = content.encode() if isinstance(content, str) else content
            operations.append(CommitOperationAdd(path, data))
        operations += map(CommitOperationDelete, sorted(stale))
        return api.create_commit(
            self.repo, operations, commit_message=message, repo_type=self.kind, **more
        )


@contextmanager
def plain_errors(repo: str) -> Iterator[None]:
    """Turn errors of `huggingface_hub` about `repo` into HubError, and keep addresses out of its
    log messages.

    While it is valid, the address of an upload grants the same access as a token.
    """
    handlers = logging.getLogger("huggingface_hub").handlers
    for handler in handlers:
        handler.addFilter(_no_address)
    try:
        yield
    except CodeSyntaxError:
        raise
    except (hub_errors.HTTPError, OSError, RuntimeError, ValueError, *_NOT_A_HUB) as error:
        # RuntimeError: uploads of large files, and hf_xet
        message = _message(error, repo)
        token = get_token()
        raise HubError(message.replace(token, "[token]") if token else message) from error
    finally:
        for handler in handlers:
            handler.removeFilter(_no_address)


def _no_address(record: logging.LogRecord) -> bool:
    text = record.getMessage()
    record.msg, record.args = printable(text), ()  # the Hub may send any text
    return "://" not in text


def _message(error: BaseException, repo: str) -> str:
    reasons = list(_chain(error))
    for reason in reasons:
        if isinstance(reason, hub_errors.OfflineModeIsEnabled):
            return "HF_HUB_OFFLINE is set, so the Hub is not contacted: unset it"
        if isinstance(reason, hub_errors.HfHubHTTPError):
            return _refusal(reason, repo)
        if isinstance(reason, hub_errors.HTTPError):
            return f"lost the connection to {constants.ENDPOINT} ({type(reason).__name__}: {reason}). {AGAIN}"
    if isinstance(error, _NOT_A_HUB):
        return (
            f"{constants.ENDPOINT} does not answer like a Hub about {repo} ({type(error).__name__}: {error}): try "
            "again later, and check that HF_ENDPOINT is right and no proxy interferes"
        )
    return f"cannot send to {repo}: {type(reasons[-1]).__name__}: {reasons[-1]}. {AGAIN}"


def _refusal(error: hub_errors.HfHubHTTPError, repo: str) -> str:
    status = error.response.status_code
    reason = error.server_message or "no reason given"
    if isinstance(error, hub_errors.GatedRepoError):
        return f"{repo} is gated ({reason}): accept its terms on its page, and log in with the same account"
    if isinstance(error, hub_errors.RevisionNotFoundError):
        return f"{repo} has no such revision ({reason})"
    # for an invalid token the status is 401
    if isinstance(error, hub_errors.RepositoryNotFoundError) or status == 404:
        return f"{repo} does not exist, or the token has no access to it ({reason})"
    if status == 401:
        return f"the Hub does not accept the token ({reason}): log in again with `hf auth login`, or set HF_TOKEN"
    if status == 403:
        return f"the token may not write to {repo} ({reason}): it needs the role `write` there"
    if status == 429:
        return f"the Hub received too many requests: wait some minutes. {AGAIN}"
    if status >= 500:
        return (
            f"the Hub has an internal error, status {status} ({reason}): try again later. {AGAIN}"
        )
    return f"the Hub refuses with status {status} ({reason})"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and its chain of causes."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
