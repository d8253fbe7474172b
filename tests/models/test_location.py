"""Where a model is looked for, and what is told of one that cannot be loaded."""

from __future__ import annotations

from types import SimpleNamespace

import huggingface_hub
import pytest
from huggingface_hub.errors import (
    EntryNotFoundError,
    HFValidationError,
    LocalEntryNotFoundError,
)

from codesyntax_dataset.errors import ModelError
from probing.models import location
from probing.models.location import (
    TINY,
    Checkpoint,
    Location,
    checkpoints,
    embedded_model,
    is_gguf,
    loading,
    locate,
    reference_of,
)

NOWHERE = "no such folder, and no such model on the Hub that can be reached"


def told(model, error):
    with pytest.raises(ModelError) as raised, loading(model):
        raise error
    assert raised.value.__cause__ is error
    return str(raised.value)


@pytest.mark.parametrize(
    "error, reason, nowhere",
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


def test_what_the_terminal_would_obey_is_escaped():
    """Nor more than a line: the text may be of a configuration from anywhere."""
    reason = told("user/model", ValueError("a\x1b[31m size\n\tof \x00 0"))
    assert reason == r"cannot load the model 'user/model': a\x1b[31m size of \x00 0"


@pytest.mark.parametrize(
    "error, reason",
    [
        (ValueError("set trust_remote_code=True"), "it needs code from its repository, which is"),
        (OSError("set trust_remote_code=True"), "it needs code from its repository, which is"),
        (OSError("no file named model.safetensors"), "it has no weights in safetensors, and"),
        (ValueError("model.safetensors ends early"), "model.safetensors ends early"),
    ],
)
def test_what_would_run_code_is_told(error, reason, tmp_path):
    for model in ("user/model", str(tmp_path)):
        assert told(model, error).startswith(f"cannot load the model {model!r}: {reason}")


# On the Hub ----------------------------------------------------------------------------------------------------------

COMMIT = "c" * 40


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A stand-in for the Hub: every repository has the files `there`, and it notes what is `asked`."""
    hub = SimpleNamespace(answers=True, there=["README.md", "config.json"], asked=[])
    hub.folder = tmp_path / "snapshots" / COMMIT

    def download(model, name, *, revision, local_files_only):
        hub.asked.append((model, name, revision))
        assert local_files_only == (not hub.answers)
        if name in hub.there:
            return str(hub.folder / name)
        raise EntryNotFoundError if hub.answers else LocalEntryNotFoundError("not in the cache")

    files = SimpleNamespace(list_repo_files=lambda model, revision: hub.there)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: files)
    monkeypatch.setattr(location, "hub_answers", lambda: hub.answers)
    return hub


PR = "refs/pr/3"


@pytest.mark.parametrize(
    "model, revision, asked, name",
    [
        ("gpt2", None, ("gpt2", None), "gpt2"),
        ("user/m", "v1", ("user/m", "v1"), "user/m"),
        ("user/m", PR, ("user/m", PR), f"user/m@{PR}"),
        (f"user/m@{PR}", None, ("user/m", PR), f"user/m@{PR}"),
        (f"user/m@{PR}", COMMIT, ("user/m", COMMIT), f"user/m@{PR}"),
        ("user/m.gguf", None, ("user/m.gguf", None), "user/m.gguf"),
    ],
)
def test_the_name_of_a_model_says_of_which_pull_request_it_is(model, revision, asked, name, hub):
    """Anyone may have opened it; the commit is that of the file."""
    of_hub = Location(asked[0], name, COMMIT)
    assert locate(model, revision) == of_hub
    hub.answers = False
    assert locate(model, revision) == of_hub._replace(path=str(hub.folder))
    assert hub.asked == [(asked[0], "config.json", asked[1])] * 2


@pytest.mark.parametrize("model", ["user/m@v1", "user/m@pr/3", "@refs/pr/3", "a b/m@refs/pr/3"])
def test_no_other_name_holds_a_revision(model, hub):
    with pytest.raises(ModelError, match=NOWHERE):
        locate(model)
    assert not hub.asked


@pytest.mark.parametrize("file", ["a.gguf", "A.GGUF", "inner/a.gguf", "inner/er/a.gguf"])
@pytest.mark.parametrize("given", [True, False])
def test_a_gguf_file_is_named_or_the_only_one_of_a_repository(file, given, hub):
    hub.there = ["README.md", file]
    found = Location(str(hub.folder / file), f"user/m/{file}", COMMIT, is_gguf=True)
    assert locate(f"user/m/{file}" if given else "user/m", "v1") == found
    assert hub.asked[-1] == ("user/m", file, "v1")
    assert len(hub.asked) == 2 - given


def test_a_file_that_a_repository_lacks_is_not_replaced_by_another(hub):
    hub.there = ["README.md", "a.gguf"]
    with pytest.raises(EntryNotFoundError):
        locate("user/m/b.gguf")
    hub.there = ["README.md"]
    with pytest.raises(EntryNotFoundError):
        locate("user/m")
    hub.answers = False
    with pytest.raises(ModelError, match="it is not in the cache, and the Hub cannot be reached"):
        locate("user/m")


def test_files_are_gguf_in_small_letters_or_capitals():
    assert is_gguf("a.gguf")
    assert is_gguf("A.GGUF")
    assert not is_gguf("gguf")


def test_a_commit_has_the_name_of_a_branch_or_tag_and_of_nothing_else(monkeypatch):
    """Commits of pull requests are in the repository, too."""
    commits = {"heads/main": "ab", "heads/old": "bc", "tags/v1": "d", f"{PR}": "e"}
    asked = set()

    def refs_of(repo):
        asked.add(repo)
        refs = [SimpleNamespace(ref=ref, name=ref.rpartition("/")[2]) for ref in commits]
        return SimpleNamespace(branches=refs[:2], tags=refs[2:3], pull_requests=refs[3:])

    def commits_of(repo, revision):
        asked.add(repo)
        return [SimpleNamespace(commit_id=commit) for commit in commits[revision]]

    api = SimpleNamespace(list_repo_refs=refs_of, list_repo_commits=commits_of)
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: api)
    names = {commit: reference_of(f"user/m/a.gguf@{PR}", commit) for commit in "abcdef"}
    assert names == {"a": "main", "b": "main", "c": "old", "d": "v1", "e": None, "f": None}
    assert asked == {"user/m"}


# On this machine -----------------------------------------------------------------------------------------------------


def test_an_embedded_model_of_other_weights_is_refused(monkeypatch):
    assert embedded_model(TINY).name == TINY
    monkeypatch.setattr(location, "sha256", lambda file: "0" * 64)
    with pytest.raises(ModelError, match=f"the weights of {TINY} have the SHA-256 0{{64}}, expect"):
        embedded_model(TINY)


@pytest.mark.parametrize(
    "names, steps",
    [
        (["step-10", "step-9"], {"step-9": 9, "step-10": 10}),
        (["step-9", "late", "early"], {"early": 1, "late": 2, "step-9": 3}),
        (["step-09", "step_9", "step-8"], {"step-8": 1, "step-09": 2, "step_9": 3}),
    ],
)
def test_checkpoints_in_a_folder_are_in_the_order_of_their_steps(names, steps, tmp_path):
    """Those without one are first, by their names; counted from 1 unless each has a step of its own."""
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").touch()
    assert checkpoints(str(tmp_path)) == [Checkpoint(name, step) for name, step in steps.items()]
