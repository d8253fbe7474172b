"""The paper made again: which numbers stand beside which, what compares, and that an interrupted run continues."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import filelock
import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from conftest import figures_unrendered

import codesyntax_dataset
import probing
from codesyntax_dataset import paper
from codesyntax_dataset.errors import CodeSyntaxError, LedgerError, ModelError, SourceError
from codesyntax_dataset.protocol import DEPENDENT_TO_HEAD, HEAD_TO_DEPENDENT
from codesyntax_metric.topk_uas import score
from probing.cli import main
from probing.evidence.baselines import baseline, ledger, only, pick, read_edges
from probing.paper import reproduce as module
from probing.paper.cells import Compared, Made
from probing.paper.inputs import Inputs
from probing.report.kinds import COUNT_DIFFERENCE

TABLES = (3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
FIGURES = (2, 3, 4, 5, 6, 7, 8, 16, 17, 18, 19)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A few functions in both languages, those in Java without a validation split."""
    folder = tmp_path_factory.mktemp("source")
    sample = Path(codesyntax_dataset.__file__).parent / "sample"
    for project in ("test/spans", "test/planar", "validation/cachebox"):
        shutil.copytree(sample / project, folder / project)
    return folder


@pytest.fixture(scope="module")
def told():
    return []


@pytest.fixture(scope="module")
def made(source, tiny_model, told, tmp_path_factory):
    """The folder of a whole run."""
    output = tmp_path_factory.mktemp("made") / "reproduction"
    with figures_unrendered():
        page = probing.reproduce([str(source)], [str(tiny_model)], output, tell=told.append)
    assert page == output / "report/index.html"
    return output


def rows_of(made: Path, name: str) -> list[dict[str, str]]:
    with (made / f"report/tables/{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
class TestRun:
    def test_every_table_and_figure_is_there(self, made):
        """Those of natural language, without a source, with the reason; nothing else is left in the folder."""
        text = (made / "report/report.md").read_text(encoding="utf-8")
        for kind, numbers in (("Table", TABLES), ("Figure", FIGURES)):
            for number in numbers:
                assert f"\n### {kind} {number}. " in text
        for number in (7, 8):
            heading = text.index(f"### Figure {number}. ")
            assert text[heading:].split("\n")[2].startswith("Empty: ") and "was given" in text[heading : heading + 90]
        drawn = {path.stem for path in (made / "report/figures").glob("*.svg")}
        assert drawn == {
            "figure-3-code",
            "figure-5-python",
            "figure-5-java",
            *(f"figure-{number}" for number in (2, 4, 6, 16, 17, 18, 19)),
        }
        assert sorted(path.name for path in made.iterdir()) == ["java", "python", "report", "results"]

    def test_time_and_disk_are_told_first(self, told, made):
        assert "estimated: " in told[0] and "minutes" in told[0] and "MB" in told[0]
        assert "english: left out, no source" in told[0]

    @pytest.mark.parametrize(("rule", "table"), [("first", 3), ("any", 5)])
    def test_scores_are_those_of_the_probe_and_of_the_baselines(self, made, rule, table):
        """And the paper's are beside them, each with its difference, of numbers rounded alike."""
        rows = {row["name"]: row for row in rows_of(made, f"table-{table}") if row["language"] == "Python"}
        result = probing.load(next((made / "results").glob("tiny.python.test.????????.json")))
        found = baseline(made / "python/codesyntax", "python").summaries["published"]
        for k in ("1", "3", "10", "20"):
            here = f"k = {k}: here"
            assert float(rows["tiny"][here]) == result.scores[rule][k]
            for kind in ("Offset", "Keyword", "Combined"):
                ours, theirs = found[kind.lower()]["scores"][rule][k][0], paper.scores("python", rule)[kind][k]
                assert float(rows[kind][here]) == pytest.approx(ours)
                assert float(rows[kind][f"k = {k}: paper"]) == theirs
                assert float(rows[kind][f"k = {k}: difference"]) == pytest.approx(round(ours, 1) - theirs)
            assert rows["CuBERT"][here] == "" and float(rows["CuBERT"][f"k = {k}: paper"])
        assert rows["CuBERT"]["comparable"] == "empty: no such model"
        assert rows["Offset"]["comparable"] == "no: other data, other functions"
        assert rows["tiny"]["comparable"] == "not in the paper"

    def test_relations_are_against_the_best_offset(self, made):
        """Table 9 has the paper's 34 relations, largest difference first, and Table 6 its ends."""
        rows = rows_of(made, "table-9")
        published = paper.relation_scores("python", "first")
        assert {row["relation"] for row in rows} == set(published)
        differences = [float(row["here: difference"]) for row in rows if row["here: difference"]]
        assert differences == sorted(differences, reverse=True) and len(differences) > 10
        for row in rows:
            theirs = published[row["relation"]]
            assert float(row["paper: CuBERT"]) == theirs.cubert
            assert (float(row["paper: offset"]), int(row["paper: offset, which"])) == (
                theirs.offset_score,
                theirs.offset,
            )
            assert float(row["paper: difference"]) == pytest.approx(theirs.cubert - theirs.offset_score)
        test = next(row for row in rows if row["relation"] == "If:if->test")
        assert test["here: offset, which"] == "1"  # most tests stand behind their `if`, without a bracket
        ends = [row["relation"] for row in rows_of(made, "table-6") if row["language"] == "Python"]
        with_both = [row["relation"] for row in rows if row["here: difference"]]
        assert ends == with_both[:5] + with_both[-5:]

    @pytest.mark.parametrize("config", ["python", "java"])
    def test_a_head_is_drawn_in_the_relation_of_the_paper(self, made, config):
        """Or in one of the first of Tables 9 and 11, as not all have a function that is short enough; what it predicts is right as often as the ledger says of this function."""
        rows = [row for row in rows_of(made, "figure-5") if row["config"] == config]
        table = rows_of(made, {"python": "table-9", "java": "table-11"}[config])
        tried = [row["relation"] for row in table if row["here: difference"]]
        assert rows[0]["relation"] == "If:if->else" or tried.index(rows[0]["relation"]) < 5
        result = next((made / "results").glob(f"tiny.{config}.test.????????.json"))
        probed = probing.load(result)
        best = probed.relations[rows[0]["relation"]]["first"]["1"]
        ranks = probed.ledger.ranks[0, :, best["layer"], best["head"]]
        edges = probed.ledger
        named = edges.relation == edges.relations.index(rows[0]["relation"])
        heads, firsts = ([int(row[f"token {name}"]) for row in rows] for name in ("read", "sought"))
        functions = [
            place
            for place in np.unique(edges.function[named])
            if edges.head[named & (edges.function == place)].tolist() == heads
            and edges.first[named & (edges.function == place)].tolist() == firsts
        ]
        right = [row["token predicted"] == row["token sought"] for row in rows]
        assert right in [(ranks[named & (edges.function == place)] == 0).tolist() for place in functions]
        data = made / config / "codesyntax" / config / "test.parquet"
        tokens = pq.read_table(data)["tokens"].to_pylist()[functions[0]]
        assert [row["read"] for row in rows] == [tokens[head] for head in heads]

    def test_errors_are_those_of_the_analysis(self, made):
        """Table 7: all first choices that are wrong, of the rule first."""
        for config, title in (("python", "Python"), ("java", "Java")):
            (file,) = (made / "results").glob(f"tiny.{config}.test.*.errors.json")
            probed = probing.load(file.with_name(file.name.replace(".errors.json", ".json")))
            wrong = sum(
                round(one["edges"] * (1 - one["first"]["1"]["score"] / 100)) for one in probed.relations.values()
            )
            rows = [row for row in rows_of(made, "table-7") if row["language"] == title]
            assert sum(int(row["errors"]) for row in rows) == wrong > 0
            assert sum(float(row["percent"]) for row in rows) == pytest.approx(100)

    def test_edges_are_of_all_splits(self, made):
        """Table 8 beside the published counts."""
        files = (made / "python/codesyntax/python").iterdir()
        edges = [edge for file in files for row in pq.read_table(file)["relations"].to_pylist() for edge in row]
        row = next(row for row in rows_of(made, "table-8") if row["relation"] == "If:if->test")
        assert int(row["Python: paper"]) == 34_250
        assert int(row["Python: difference"]) == int(row["Python: here"]) - 34_250
        assert sum(edge["relation"] == "If:if->test" for edge in edges) == int(row["Python: here"]) > 0

    def test_semicolon_is_a_keyword_of_java(self, made):
        """As in the paper's numbers: it finds the ends of statements. Where it is never predicted, it is none."""
        data = made / "java/codesyntax"
        found = {}
        for config, figure in (("java", 16), ("java_skip_semicolon", 4)):
            edges = read_edges(data, config, "test")
            words = score(only(ledger(edges, pick(edges)), "keyword").counts(), 1, "last")["scores"]["1"]
            rows = {
                (row["rule"], row["config"], row["name"], row["k"]): row for row in rows_of(made, f"figure-{figure}")
            }
            found[config] = words, float(rows["last", config, "Keyword", "1"]["here"])
        words, here = found["java"]
        assert here > words
        words, here = found["java_skip_semicolon"]
        assert here == words

    @pytest.mark.usefixtures("unrendered")
    def test_killed_twice_it_continues_to_the_same_bytes(self, made, source, tiny_model, tmp_path, monkeypatch):
        output = tmp_path / "again"
        calls, run = [], module.probe

        def killed(*arguments, **options):
            calls.append(arguments)
            if len(calls) in (2, 6):  # with what a kill leaves: files that are not yet renamed
                for folder in ("", "results", "python"):
                    (output / folder / ".codesyntax-x.tmp").mkdir(parents=True)
                (output / "results/.codesyntax-x.tmp/one.json").write_text("{")
                raise KeyboardInterrupt
            return run(*arguments, **options)

        monkeypatch.setattr(module, "probe", killed)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt, match="run the same command again"):
                probing.reproduce([str(source)], [str(tiny_model)], output)
        probing.reproduce([str(source)], [str(tiny_model)], output)
        assert content(output) == content(made)

    def test_another_run_in_the_folder_is_refused(self, made, source, tiny_model):
        with filelock.FileLock(made / ".lock"), pytest.raises(LedgerError, match="another run is writing"):
            probing.reproduce([str(source)], [str(tiny_model)], made)
        (made / ".lock").unlink(missing_ok=True)


def _of_the_paper(models: dict[str, str], limit: int | None = None, lost: int = 0) -> Made:
    """Python as in the paper, less `lost` functions, with `models` -> the direction in which they were probed."""
    relations = {name: SimpleNamespace(edges=edges) for name, edges in paper.edges("python").items()}
    counted = SimpleNamespace(functions=18_701 - lost, relations=relations)
    measured = SimpleNamespace(models=dict.fromkeys(models), directions=models)
    inputs = Inputs({}, {}, {}, {"java": "no source"}, limit)
    return Made(inputs, {"python": measured}, {"python": counted})


ALL = dict.fromkeys(("cubert-python", "microsoft/codebert-base", "FacebookAI/roberta-base"), HEAD_TO_DEPENDENT)


@pytest.mark.parametrize(
    ("made", "standing"),
    [
        (_of_the_paper(ALL), "yes"),
        (_of_the_paper(ALL, limit=20), "no: partial"),
        (_of_the_paper(ALL, lost=1), "no: other data"),
        (_of_the_paper({"cubert-python": HEAD_TO_DEPENDENT}), "no: other functions"),
        (_of_the_paper(ALL | {"cubert-python": DEPENDENT_TO_HEAD}), "no: other direction"),
        (_of_the_paper({"gpt2": HEAD_TO_DEPENDENT}), "empty: no such model"),
    ],
)
def test_numbers_compare_where_the_inputs_are_the_papers(made, standing):
    assert made.standing("python", "CuBERT") == standing
    assert made.standing("java", "CuBERT") == "empty: no data"
    assert made.standing("python", "gpt2") == "not in the paper"


def test_models_have_the_names_of_the_paper():
    made = _of_the_paper(ALL)
    assert made.names("python") == [*paper.scores("python", "first")]
    assert made.lacks("python") == []
    assert paper.name_of("FacebookAI/roberta-base", "english") == "RoBERTa-base"


@pytest.mark.parametrize(
    ("here", "difference"), [(39.249, 0.0), (39.151, 0.0), (39.26, 0.1), (39.14, -0.1), (None, None)]
)
def test_difference_is_of_rounded_numbers(here, difference):
    assert Compared(here, 39.2, "yes").difference == difference


@pytest.mark.parametrize(("count", "text"), [(-1234, "−1,234"), (0, "0"), (1000, "+1,000")])
def test_differences_of_counts(count, text):
    assert COUNT_DIFFERENCE.show(count) == text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sources", "models", "error", "message"),
    [
        (["python=a", "python=b"], ["m"], CodeSyntaxError, "python has 2 sources, a and b"),
        (["no/such/folder"], ["m"], SourceError, "does not exist"),
        (["sample", "german=no/such/file.conllu"], ["m"], SourceError, "does not exist"),
        (["sample"], ["no such model"], ModelError, "no such folder"),
        (["sample"], ["python={tiny}", "{tiny}", "python={tiny}"], None, ""),
        (["sample"], ["{tiny}", "{twin}"], CodeSyntaxError, "both named tiny"),
    ],
)
def test_inputs_are_checked_before_anything_runs(sources, models, error, message, tiny_model, tmp_path):
    """A model that is given twice is one model; a language without any has baselines alone."""
    from probing.paper import inputs

    twin = tmp_path / "tiny"
    twin.mkdir()
    (twin / "config.json").write_bytes((tiny_model / "config.json").read_bytes())
    models = [model.format(tiny=tiny_model, twin=twin) for model in models]
    if error is None:
        read = inputs.read(sources, models)
        assert [len(read.models[language]) for language in ("python", "java", "german")] == [1, 1, 1]
        assert read.languages == ["python", "java"]
        assert "java, java_with_new_lines, java_skip_semicolon from sample: baselines only" in (
            inputs.read(sources, models[:1]).text()
        )
    else:
        with pytest.raises(error, match=message):
            inputs.read(sources, models)


def test_a_model_of_one_language_is_probed_on_that(tmp_path):
    """As CuBERT is."""
    from support.models.cubert_release import write_release

    from probing.models.cubert.convert import convert
    from probing.paper import inputs

    release = write_release(tmp_path / "release")
    convert(release, tmp_path / "cubert", vocabulary=release.with_name("vocabulary.txt"), language="java")
    read = inputs.read(["sample"], [str(tmp_path / "cubert")])
    assert {language: len(models) for language, models in read.models.items() if models} == {"java": 1}
    assert paper.name_of(read.models["java"][0].name, "java") == "CuBERT"


def test_a_language_that_the_source_lacks_is_left_out(tmp_path, tiny_model):
    """With the reason; as a published dataset of one language lacks the other, and its ablation."""
    from probing.paper import inputs

    function = {
        "code": "q = queue",
        "tokens": ["q", "=", "queue"],
        "id": 1,
        "relns": {"Assign:target->value": [[0, 2, 2]]},
    }
    (tmp_path / "CodeSyntax_python.json").write_text(json.dumps([function]))
    read = inputs.read([str(tmp_path)], [str(tiny_model)])
    assert list(read.read) == ["python"]
    assert read.missing["java"] == f"{tmp_path.name} has the published labels of python, not of java"
    assert "not of python_with_new_lines" in read.missing["python_with_new_lines"]


def test_what_is_not_ours_is_not_touched(tmp_path, tiny_model):
    """Neither a file in the folder, nor a file as the folder."""
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / ".git").mkdir()
    for output in (tmp_path, tmp_path / "notes.txt"):
        arguments = ["reproduce", "--source", "sample", "--models", str(tiny_model), "--output", str(output)]
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code != 0 and "notes.txt" in result.output
    assert (tmp_path / "notes.txt").read_text() == "mine" and (tmp_path / ".git").is_dir()
