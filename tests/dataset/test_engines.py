"""Where functions are labelled does not matter: on Ray, a killed worker included, the bytes are those of here."""

from __future__ import annotations

import os
import socket
from importlib.util import find_spec
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from support.commands import python
from support.files import contents

from codesyntax_dataset import shards
from codesyntax_dataset.build import build
from codesyntax_dataset.errors import ArgumentError, DatasetError, UnknownName

ON_RAY = """
import os, pathlib, signal, sys
from codesyntax_dataset import build, shards
label_shard = shards.label_shard

def killed_once(shard, config, killed=pathlib.Path(sys.argv[1])):
    if shard[0].id == 48 and not killed.exists():
        killed.write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    return label_shard(shard, config)

shards.SHARD, shards.label_shard = 16, killed_once
build.build("sample", ["python"], sys.argv[2], engine="ray", num_proc=2)
"""


@pytest.mark.long
@pytest.mark.skipif(
    find_spec("ray") is None, reason="Ray is not installed: pip install -e '.[ray]'"
)
def test_ray_gives_the_bytes_of_here_though_a_worker_is_killed(tmp_path):
    here, there = build("sample", ["python"], tmp_path / "here").output, tmp_path / "there"
    python(ON_RAY, tmp_path / "killed", there)
    assert (tmp_path / "killed").exists()
    assert contents(here) == contents(there)


def test_without_ray_the_engine_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "find_spec", lambda name: None)
    with pytest.raises(
        ArgumentError, match=r"needs Ray, which is not installed: pip install -e '.\[ray\]'"
    ):
        build("sample", ["python"], tmp_path / "out", engine="ray")
    assert not list(tmp_path.iterdir())


def test_a_cluster_has_its_own_number_of_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "find_spec", lambda name: "there")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(ArgumentError, match="leave out --num-proc"):
        build("sample", ["python"], tmp_path / "out", engine="ray", num_proc=2)


@pytest.fixture
def ray(monkeypatch):
    """A stand-in for Ray, which notes how it was begun: the environment when it was imported, and its arguments."""
    ray = SimpleNamespace(began=[], ended=[], cluster_resources=lambda: {"CPU": 2.0})
    ray.init = lambda *given, **named: ray.began.append((given, named))
    ray.shutdown = lambda: ray.ended.append(True)
    ray.remote = lambda function: SimpleNamespace(remote=function)

    def imported(name):
        assert name == "ray"
        ray.environment = {name: of for name, of in os.environ.items() if name.startswith("RAY_")}
        return ray

    monkeypatch.setattr(shards, "find_spec", lambda name: "there")
    monkeypatch.setattr(shards, "import_module", imported)
    with patch.dict(os.environ):
        for name in [name for name in os.environ if name.startswith("RAY_")]:
            del os.environ[name]
        yield ray


def test_a_ray_that_we_start_lets_nobody_else_in(ray):
    """By a token that nobody can guess; one that is given is kept. It stores no more than it is said to."""
    tokens = []
    for _ in range(2):
        os.environ.pop("RAY_AUTH_TOKEN", None)
        with shards.engine("ray", 3):
            assert not ray.ended[len(tokens) :]
        assert ray.environment["RAY_AUTH_MODE"] == "token"
        tokens.append(ray.environment["RAY_AUTH_TOKEN"])
        assert len(bytes.fromhex(tokens[-1])) == 32
    assert tokens[0] != tokens[1]
    assert len(ray.ended) == 2
    (given, named), _ = ray.began
    assert given == ("local",)
    assert named["num_cpus"] == 3
    assert named["include_dashboard"] is False
    assert named["object_store_memory"] == 256 * 2**20
    os.environ["RAY_AUTH_TOKEN"] = "ours"
    with shards.engine("ray", None):
        assert ray.environment["RAY_AUTH_TOKEN"] == "ours"


def test_a_cluster_has_its_own_token(ray):
    ray.cluster_resources = dict  # of a cluster that begins its machines when there is work
    with socket.create_server(("127.0.0.1", 0)) as server:
        os.environ["RAY_ADDRESS"] = address = f"127.0.0.1:{server.getsockname()[1]}"
        with shards.engine("ray", None):
            assert not {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN"} & ray.environment.keys()
    ((given, named),) = ray.began
    assert given == (address,)
    assert "num_cpus" not in named
    assert ray.ended


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("ray") is None, reason="Ray is not installed: pip install -e '.[ray]'"
)
def test_a_cluster_that_is_not_there_is_told_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(
        DatasetError,
        match=r"Ray at RAY_ADDRESS=127.0.0.1:1 .* cannot be used",
    ):
        build("sample", ["python"], tmp_path / "out", engine="ray")


def test_an_unknown_engine_is_refused_with_those_there_are(tmp_path):
    with pytest.raises(UnknownName, match="unknown engine 'spark': known are local, ray"):
        build("sample", ["python"], tmp_path / "out", engine="spark")
