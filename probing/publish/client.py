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
    record.msg = printable(text)  # the Hub may send any text
    record.args = ()
    return "://" not in text


_NOT_THERE = "it does not exist, or the token has no access to it"

_ADVICE: dict[Any, str] = {
    hub_errors.GatedRepoError: "accept its terms on its page, and log in with the same account",
    hub_errors.RepositoryNotFoundError: _NOT_THERE,  # for an invalid token, too, with status 401
    hub_errors.RevisionNotFoundError: "it has no such revision",
    401: "log in again with `hf auth login`, or set HF_TOKEN",
    403: "the token needs the role `write` there",
    404: _NOT_THERE,
    429: f"wait some minutes. {AGAIN}",
}
"""Error or status -> what to try, or what it means."""


def _message(error: BaseException, repo: str) -> str:
    for reason in _chain(error):
        if isinstance(reason, hub_errors.HfHubHTTPError):
            status = reason.response.status_code
            # not its message, which has the address
            said = f"the Hub refuses {repo}, status {status} ({reason.server_message})"
            return f"{said}: {_ADVICE.get(type(reason)) or _ADVICE.get(status, AGAIN)}"
    if isinstance(error, _NOT_A_HUB):
        return (
            f"{constants.ENDPOINT} does not answer like a Hub about {repo} ({type(error).__name__}: {error}): try "
            "again later, and check that HF_ENDPOINT is right and no proxy interferes"
        )
    name = type(reason).__name__
    return f"the connection to {constants.ENDPOINT} about {repo} failed ({name}: {reason}). {AGAIN}"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and its chain of causes."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
