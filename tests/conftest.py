"""What every test may use."""

from __future__ import annotations

import atexit
import contextlib
import gc
import hashlib
import html
import os
import pickle
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Read by huggingface_hub, datasets and evaluate when they are imported, so set before any test module is: an empty cache,
# so that no test sees what an earlier run left, and no way to a hub. Tests that need one talk to the loopback Hub in
# processes of their own.
os.environ["HF_HOME"] = tempfile.mkdtemp(prefix="codesyntax-tests-")
atexit.register(shutil.rmtree, os.environ["HF_HOME"], ignore_errors=True)
os.environ["CODESYNTAX_CACHE"] = ""  # every probe of a test runs its model
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_EVALUATE_OFFLINE"] = "1"
os.environ["HF_UPDATE_DOWNLOAD_COUNTS"] = "0"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
# look for garbage less often: a third of the time to import all modules, and a sixth of that of a report
gc.set_threshold(100_000, 50, 100)
# two processes run the tests, and their models are small; with more threads the order of sums is not fixed
os.environ["OMP_NUM_THREADS"] = "1"
# threads that wait leave the cores to the others
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files that are not of the lane as a whole are not imported, which takes a third of the time of the quick one."""
    marks = {"not slow": "slow|long", "not long": "long"}.get(config.option.markexpr)
    if marks is None or not collection_path.name.startswith("test_"):
        return None
    whole_file = rf"^pytestmark = .*pytest\.mark\.({marks})\b"
    return bool(re.search(whole_file, collection_path.read_text("utf-8"), re.MULTILINE)) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow files first: a file is one process's, and a long one that starts last would leave the others idle.

    What is long is slow, too.
    """
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker("slow")
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    """Never look for garbage among what was imported."""
    gc.freeze()


@pytest.fixture(scope="session")
def shared():
    """The folder of reference material that stands beside the project."""
    folder = Path(os.environ.get("CODESYNTAX_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"the reference material is not at {folder} (set CODESYNTAX_SHARED)")
    return folder


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium, the one of the system or that of CODESYNTAX_CHROMIUM, driven by playwright."""
    from playwright.sync_api import sync_playwright

    names = (os.environ.get("CODESYNTAX_CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    executable = next((path for name in names if name and (path := shutil.which(name))), None)
    if executable is None:
        pytest.skip("no Chromium on the PATH (set CODESYNTAX_CHROMIUM)")
    with sync_playwright() as playwright:
        # a container's root has no sandbox; the pages are our own
        yield playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])


@pytest.fixture
def page(browser):
    """An empty page. The test fails if the page logs an error, throws one, or asks another host for anything."""
    complaints: list[str] = []

    def requested(request) -> None:
        if request.url.startswith(("http:", "https:")) and not request.url.startswith(
            "http://127.0.0.1"
        ):
            complaints.append(f"request to {request.url}")

    page = browser.new_page()
    page.on("request", requested)
    page.on(
        "console",
        lambda message: message.type == "error" and complaints.append(f"console: {message.text}"),
    )
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    yield page
    page.close()
    assert not complaints


@pytest.fixture(scope="session")
def evaluate():
    """The library, without what it imports where it can: seconds, for nothing here."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("transformers", "scipy"):
            patch.setitem(sys.modules, name, None)
        import evaluate
    return evaluate


@pytest.fixture(scope="session")
def dataset_folder(tmp_path_factory):
    """The embedded sample, built: configs `python` and `java`."""
    from codesyntax_dataset.build import build

    folder = tmp_path_factory.mktemp("built") / "codesyntax"
    build("sample", ["python", "java"], folder)
    return folder


@pytest.fixture(scope="session")
def real_functions(shared, tmp_path_factory):
    """What the build of the real functions of the reference material reports, with the published labels."""
    from codesyntax_dataset.build import build

    folder = tmp_path_factory.mktemp("real") / "codesyntax"
    return build(str(shared / "data/codesearchnet"), ["python", "java"], folder, num_proc=2)


@pytest.fixture(scope="session")
def tiny_model(dataset_folder, tmp_path_factory):
    """A folder with a BERT of 2 layers and 3 heads, random weights, and the embedded encoder's tokenizer.

    The weights are large enough for its attention to be far from uniform. It has the first sub-tokens of the encoder and
    those of the sample: all of them would take most of the time to load it.
    """
    import pyarrow.parquet as pq
    import torch
    from support.models.random_models import sizes
    from transformers import AutoTokenizer, BertConfig, BertModel, BertTokenizer

    from probing.models.location import embedded_model

    torch.manual_seed(0)
    model = BertModel(BertConfig(**sizes(heads=3, hidden=48, inner=96), initializer_range=0.3))
    tokenizer = AutoTokenizer.from_pretrained(embedded_model())
    kept = set(range(8000))
    for file in dataset_folder.glob("*/*.parquet"):
        kept.update(*tokenizer(pq.read_table(file)["code"].to_pylist())["input_ids"])
    kept = sorted(kept)
    embeddings = model.get_input_embeddings().weight[kept].detach()
    model.set_input_embeddings(torch.nn.Embedding.from_pretrained(embeddings))
    model.config.vocab_size = len(kept)
    vocabulary = dict(zip(tokenizer.convert_ids_to_tokens(kept), range(len(kept))))
    folder = tmp_path_factory.mktemp("models") / "tiny"
    model.save_pretrained(folder)
    BertTokenizer(vocab=vocabulary).save_pretrained(folder)
    return folder


def cut(dataset_folder: Path, folder: Path, **functions: int) -> Path:
    """A copy of a dataset with the first functions of each split, so many."""
    import pyarrow.parquet as pq
    import yaml

    from codesyntax_dataset.metadata import sha256sums

    shutil.copytree(dataset_folder, folder)
    for split, number in functions.items():
        for file in folder.glob(f"*/{split}*.parquet"):
            pq.write_table(pq.read_table(file).slice(0, number), file)
    _, front, text = (folder / "README.md").read_text().split("---\n", 2)
    kept = {name: value for name, value in yaml.safe_load(front).items() if name != "dataset_info"}
    for config in kept["configs"]:
        # or `load_dataset` takes it for the whole one, which has the same name
        release, _, labels = config["version"].rpartition(".")
        config["version"] = f"{release}.{int(labels) + sum(functions.values())}"
    (folder / "README.md").write_text(f"---\n{yaml.safe_dump(kept)}---\n{text}")
    (folder / "SHA256SUMS").write_text(sha256sums(folder))
    return folder


@pytest.fixture(scope="session")
def few_functions(dataset_folder, tmp_path_factory):
    """The embedded sample cut to 40 functions of test and 30 of validation."""
    return cut(
        dataset_folder, tmp_path_factory.mktemp("few") / "codesyntax", test=40, validation=30
    )


@pytest.fixture(scope="session")
def fewer_functions(dataset_folder, tmp_path_factory):
    """The embedded sample cut to 20 functions of test and 15 of validation: for tests in which no score matters."""
    return cut(
        dataset_folder, tmp_path_factory.mktemp("fewer") / "codesyntax", test=20, validation=15
    )


@pytest.fixture
def smaller(tiny_model, tmp_path_factory, monkeypatch):
    """The sample has some of its projects, and the embedded encoder is a tiny one, for tests in which no score matters."""
    from codesyntax_dataset import sources
    from codesyntax_dataset.sources import SAMPLE
    from probing.models import location
    from probing.models.location import EMBEDDED

    folder = tmp_path_factory.mktemp("smaller")
    sample = shutil.copytree(sources._located(SAMPLE), folder / "sample")
    # of Python, validation has functions enough for a head to beat a guess in `ablate`
    for split, of_python in (("test", 1), ("validation", 2)):
        for suffix, number in (("py", of_python), ("java", 2), ("go", 1)):
            projects = {path.parent for path in (sample / split).glob(f"*/*.{suffix}")}
            for project in sorted(projects)[number:]:
                shutil.rmtree(project)
    monkeypatch.setattr(sources, "_located", lambda name: str(sample) if name == SAMPLE else name)
    model = shutil.copytree(tiny_model, folder / "package/model")
    (folder / "package/tiny_encoder.py").touch()
    monkeypatch.syspath_prepend(folder / "package")
    weights = location.sha256(model / "model.safetensors")
    tiny = location._Embedded("tiny_encoder", model.name, weights)
    monkeypatch.setitem(location._EMBEDDED, EMBEDDED, tiny)


@pytest.fixture(scope="session")
def evidence(tiny_model, few_functions, tmp_path_factory):
    """What there is to publish about the tiny model on some functions in Python."""
    from probing import probe
    from probing.evidence.gather import find, gather

    folder = tmp_path_factory.mktemp("evidence")
    for split in ("test", "validation"):
        probe(str(tiny_model), few_functions, "python", split, output=folder)
    return gather(find([folder]), few_functions)[0]


@pytest.fixture(scope="module")
def surfaces_learned_once():
    """What words and positions tell is learned once of the same functions, which takes most of the time of `inform`."""
    from probing.instruments.information import learn

    learned: dict[bytes, dict] = {}
    learn_surface = learn.learn_surface

    def remembered(samples):
        digest = hashlib.sha256(pickle.dumps(samples)).digest()
        if digest not in learned:
            learned[digest] = learn_surface(samples)
        return learned[digest]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learn, "learn_surface", remembered)
        yield


@pytest.fixture
def unrendered():
    with figures_unrendered():
        yield


@contextlib.contextmanager
def figures_unrendered() -> Iterator[None]:
    """Figures are made, but neither laid out nor rendered, which takes most of the time of a report: for tests of what
    else is in it. A picture has its texts."""
    from probing.report import figures

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "lay_out", lambda figure: figure)
        patch.setattr(
            figures,
            "to_svg",
            lambda figure: f"<svg><desc>{html.escape(texts_of(figure))}</desc></svg>",
        )
        yield


def texts_of(figure) -> str:
    """The texts in a matplotlib figure."""
    texts = [
        text.get_text()
        for axis in figure.axes
        for text in (axis.title, axis.xaxis.label, *axis.texts)
    ]
    return str(texts)
