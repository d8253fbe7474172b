"""The README's recipe, by its very commands: from the functions and the model on a Hub to a report."""

from __future__ import annotations

import io
import re
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.hub.end_to_end import Walk
from support.hub.loopback_hub import LoopbackHub

from probing.cli.publish import RECIPE
from probing.models.location import TINY, embedded_model

pytestmark = pytest.mark.slow

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")

CARD = b"""---
configs:
- config_name: python
  data_files:
  - {split: validation, path: python/validation.parquet}
  - {split: test, path: python/test.parquet}
---
"""

COLUMNS = {
    "func_code_string": "code",
    "repository_name": "repo",
    "func_path_in_repository": "path",
    "func_name": "func_name",
    "func_code_url": "url",
}
"""As they are called on the Hub, and by us."""


def recipe() -> list[str]:
    (block,) = re.findall(
        r"```sh\n(codesyntax build --source code-search-net.*?)```", README, flags=re.DOTALL
    )
    return block.splitlines()


def test_the_recipe_goes_from_the_hub_to_a_report(dataset_folder, tmp_path):
    """CodeBERT's place is taken by the small embedded model, CodeSearchNet's by some functions of the sample."""
    model = embedded_model(TINY)
    files = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
    functions = {"README.md": CARD}
    for split, count in (("test", 12), ("validation", 10)):
        rows = pq.read_table(dataset_folder / "python" / f"{split}.parquet").slice(0, count)
        file = io.BytesIO()
        pq.write_table(pa.table({theirs: rows[ours] for theirs, ours in COLUMNS.items()}), file)
        functions[f"python/{split}.parquet"] = file.getvalue()
    with LoopbackHub() as hub:
        hub.add(
            "microsoft/codebert-base",
            {name: (model / name).read_bytes() for name in files},
            type="model",
        )
        hub.add("code-search-net/code_search_net", functions)
        with Walk(hub, tmp_path) as user:
            for line in recipe():
                program, *arguments = shlex.split(line)
                assert program == "codesyntax"
                user.codesyntax(*arguments)
    page = (user.work / "csn-report" / "index.html").read_text(encoding="utf-8")
    assert "microsoft/codebert-base" in page and "held-out" in page
    assert len(list((user.work / "csn-results").glob("*.ledger.parquet"))) == 2
    assert list((user.work / "csn-report" / "entries").glob("*.hits.parquet"))


def test_the_demo_prints_the_same_recipe():
    assert RECIPE == recipe()
