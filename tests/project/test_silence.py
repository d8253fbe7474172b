"""Nothing that is given counts for nothing: each argument of each public function, and each field of each experiment,
alone, changes what comes of it, or is refused. What changes nothing says why."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.files import contents
from support.models.minimal_pairs import PAIRS, pairs_folder, tiny_decoder

import codesyntax_dataset
import codesyntax_metric
import probing
from codesyntax_dataset.errors import CodeSyntaxError
from probing.evidence import training
from probing.evidence.scores import of_offsets_and_keywords
from probing.instruments.attention import probe
from probing.instruments.information import inform
from probing.instruments.likelihood import likelihood
from probing.instruments.masking import mask
from probing.instruments.registry import INSTRUMENTS
from probing.instruments.silencing import ablate, carry
from probing.models.location import TINY, TINY_DECODER
from probing.paper import reproduce
from probing.report.report import report
from probing.runs import experiment
from probing.runs.experiment import NO_SETTING
from probing.runs.session import Session

pytestmark = pytest.mark.slow

BATCHES = "numbers are the same in any batches, but for near ties"
TOLD = "it is told what happens"
PROCESSES = "it says what other processes do, and here are none"


@dataclass
class Call:
    """A call of `function` with `given`, and other values that each change what is `told` of it, or change
    `nothing`, with the reason."""

    function: Callable
    given: dict[str, Any]
    changed: dict[str, Any]
    nothing: dict[str, tuple[Any, str]] = field(default_factory=dict)
    told: Callable = repr

    def outcome(self, **change):
        try:
            return self.told(self.function(**{**self.given, **change}))
        except (CodeSyntaxError, TypeError) as error:
            return f"{type(error).__name__}: {error}"


# --- what measures: it is told by the key of its run, which all settings are in


def runs(monkeypatch, folder):
    """A function that calls, and says which runs were asked for, and where to: no model runs."""
    monkeypatch.setenv("CODESYNTAX_CACHE", str(folder / "cache"))
    asked = []

    def run(of, output=None, shard=None, slot=experiment._slot):
        experiment.checked_shard(shard, output and Path(output), of.session.processes)
        asked.append((slot(of).key, str(output), shard))

    for module in (probe, inform, likelihood, mask, ablate, carry):
        monkeypatch.setattr(module, "run", run)

    def told(made):
        if inspect.isgenerator(made):
            for done in made:
                if done is not None and done.error is not None:
                    raise done.error
        told_of = repr(asked)
        asked.clear()
        return told_of

    return told


def measuring(places, told):
    """Of each function that measures a call; a sample is given, which a seed draws."""
    data = {"data": places.functions, "sample": 5, "device": "cpu"}
    any_of_them = {
        "model": places.decoder,
        "data": places.others,
        "config": "java",
        "split": "validation",
        "revision": "v2",
        "dtype": "bfloat16",
        "device": "cuda",
        "limit": 3,
        "sample": 6,
        "max_length": 90,
        "control": "random-weights",
        "seed": 7,
        "output": str(places.folder / "elsewhere"),
        "shard": "1/2",
        "direction": "dependent-to-head",
        "node_types": ["identifier"],
        "draws": 3,
    }
    batches = {"batch_tokens": (64, BATCHES)}

    def call(function, model, /, **more):
        given = {"model": model, **data}
        names = [*inspect.signature(function).parameters]
        nothing = {name: of for name, of in batches.items() if name in names}
        changed = {**any_of_them, **more}
        return Call(
            function,
            given,
            {name: changed[name] for name in names if name in changed and name not in nothing},
            nothing,
            told,
        )

    yield call(probing.probe, places.tiny)
    yield call(probing.inform, places.tiny, edges=9)
    yield call(probing.ablate, TINY)
    yield call(
        probing.mask, TINY, protocol="published", rate=0.5, control="spans", random_weights=True
    )
    yield call(probing.surprise, TINY_DECODER)
    pairs = call(probing.prefer, places.decoder, model=TINY_DECODER, data=places.other_pairs)
    pairs.given["data"] = places.pairs
    yield pairs
    carried = call(
        probing.carry,
        places.decoder,
        config="go_pairs",
        model=TINY_DECODER,
        data=places.other_pairs,
        relations=["Call:func->args"],
        heads=["0-1"],
        shares=[7],
        stand_in="zero",
    )
    carried.given["data"] = places.pairs
    yield carried
    several = call(
        probing.probe_models,
        "",
        models=[places.decoder],
        configs=["java"],
        splits=["validation"],
        revisions=["v2"],
        asked={"direction": "dependent-to-head"},
    )
    several.given["models"] = [places.tiny]
    del several.given["model"]
    yield several
    yield call(probing.probe_training, places.tiny, options={"limit": 3, "sample": None})


# --- what reads


def saved_page(made):
    return made.html


def reading(places, folder):
    """Of each function that reads results, data or code a call."""
    said = []
    yield Call(
        probing.baseline,
        {"data": places.functions},
        {
            "data": places.others,
            "config": "java",
            "split": "validation",
            "direction": "dependent-to-head",
        },
        told=lambda made: repr(list(of_offsets_and_keywords(made))),
    )
    yield Call(
        probing.compare,
        {"first": places.one, "second": places.random},
        {
            "first": places.random,
            "second": places.one,
            "results": [places.one],
            "cluster": "repository",
        },
        told=lambda made: repr([(one.names, one.means, one.difference.mean) for one in made]),
    )
    yield Call(
        probing.compare_labels,
        {"configs": ["python", "python_exact"], "source": "sample"},
        {
            "configs": ["python_exact", "python"],
            "source": str(places.code),
            "data": places.functions,
        },
    )
    yield Call(probing.load, {"path": places.result}, {"path": places.other_result})
    yield Call(
        probing.merge,
        {"folders": [places.shards], "output": folder / "merged"},
        {"folders": [places.one], "output": folder / "elsewhere"},
        told=lambda made: (
            repr([of.to_json() for of in made])
            + repr([(folder / name).exists() for name in ("merged", "elsewhere")])
        ),
    )
    yield Call(
        probing.scores,
        {"results": [places.one]},
        {"results": [places.random], "data": places.others, "cluster": "repository"},
        told=lambda made: made.to_csv(),
    )
    yield Call(
        probing.heads,
        {"results": [places.one]},
        {"results": [places.random]},
        told=lambda made: made.to_csv(),
    )
    yield Call(
        report,
        {"results": [places.one], "output": folder / "report"},
        {
            "results": [places.random],
            "output": folder / "other",
            "data": places.others,
            "format": "latex",
            "cluster": "repository",
        },
        {"tell": (said.append, TOLD)},
        told=lambda made: repr((str(made), contents(made.parent))),
    )
    of_function = {"code": places.java, "data": places.others, "split": "validation"}
    there = {"data": places.functions, "id": places.id}
    yield Call(
        probing.show,
        {"model": places.tiny, **there},
        {
            **of_function,
            "model": places.decoder,
            "id": places.other_id,
            "config": "java",
            "relation": "Return:return->value",
            "head": "1-1",
            "revision": "v2",
            "dtype": "bfloat16",
            "device": "cuda",
        },
        told=saved_page,
    )
    yield Call(
        probing.show_masked,
        {"model": TINY, **there},
        {
            **of_function,
            "model": places.decoder,
            "id": places.other_id,
            "config": "java",
            "node_type": "argument_list",
            "revision": "v2",
            "dtype": "bfloat16",
            "device": "cuda",
            "seed": 5,
        },
        told=saved_page,
    )
    yield Call(
        probing.show_labels,
        {**there},
        {
            **of_function,
            "id": places.other_id,
            "configs": ["java"],
            "relation": "Return:return->value",
        },
        told=saved_page,
    )
    code = "def f(x, y):\n    return g(x, y)\n"
    for function in (codesyntax_dataset.annotate, codesyntax_dataset.tokenize):
        yield Call(
            function,
            {"code": code, "language": "python"},
            {"code": code * 2, "language": "java", "variant": "exact"},
        )


def of_metrics():
    """Of making a metric, and of `compute` of both, a call."""
    yield Call(
        codesyntax_metric.load,
        {},
        {"kwargs": {"num_process": 2, "process_id": 1}},
        told=lambda made: repr((made.num_process, made.process_id)),
    )
    edges = [[{"relation": "A", "head": 0, "first": 1, "last": 2}]]
    attention = np.random.default_rng(0).random((1, 2, 2, 4, 4))
    yield Call(
        codesyntax_metric.load().compute,
        {"predictions": attention, "references": edges},
        {
            "predictions": attention[..., ::-1],
            "references": [[{**edges[0][0], "head": 3}]],
            "hard": {"A": [1]},
            "k": 2,
            "rule": "last",
        },
    )
    yield Call(
        codesyntax_metric.ast_similarity.load().compute,
        {"predictions": ["f(a)", "f("], "references": ["f(b)", "g[0]"]},
        {
            "predictions": ["f(a, b)", "f("],
            "references": ["f(b)", "g(0)"],
            "language": "java",
            "anonymous": False,
            "average": False,
        },
    )


# --- what there is to call with


@pytest.fixture(scope="module")
def places(tiny_model, few_functions, fewer_functions, tmp_path_factory):
    """Models, data, code and results by name."""
    folder = tmp_path_factory.mktemp("places")
    made = SimpleNamespace(folder=folder, tiny=str(tiny_model))
    made.decoder = str(tiny_decoder(folder / "decoder"))
    made.functions, made.others = str(few_functions), str(fewer_functions)
    made.pairs = str(pairs_folder(folder / "pairs", validation=PAIRS[::3], functions=few_functions))
    made.other_pairs = str(pairs_folder(folder / "other" / "pairs", functions=fewer_functions))
    for name, options in {"one": {}, "random": {"control": "random-weights"}}.items():
        for split in ("test", "validation"):
            probing.probe(
                made.tiny, made.functions, "python", split, output=folder / name, **options
            )
        setattr(made, name, str(folder / name))
    made.result, made.other_result = (
        next((folder / name).glob("*.test.*.json")) for name in ("one", "random")
    )
    made.shards = str(folder / "shards")
    probing.probe(made.tiny, made.functions, limit=9, output=made.shards, shard="1/1")
    made.java = folder / "code.java"
    made.java.write_text("class A { int f(int x) { if (x > 0) { return g(x); } return x; } }\n")
    made.code = folder / "code"
    made.code.mkdir()
    (made.code / "a.py").write_text("def f(x):\n    if x:\n        return len(x)\n")
    rows = probing.runs.data.read_functions(made.functions, "python", "test").each_row()
    returning = [row for row in rows if any(edge["relation"] for edge in row["relations"])]
    made.id, made.other_id = (row["id"] for row in returning[:2])
    return made


@pytest.fixture(scope="module")
def calls(places, tmp_path_factory):
    return {
        of.function.__name__: of
        for of in [
            *measuring(places, None),
            *reading(places, tmp_path_factory.mktemp("made")),
        ]
    }


MEASURING = ("probe inform ablate carry mask surprise prefer probe_models probe_training").split()

READING = ("baseline compare_labels load merge show show_labels annotate tokenize").split()

READING_LONG = ("compare", "scores", "heads", "report", "show_masked")

IN_TRAINING = ("evaluate", "SyntaxCallback")

OTHERS = {"reproduce", "Session", *IN_TRAINING}

RECORDS = "ProbeResult RankLedger CONFIGS Annotation CodeSyntaxError Edge ParseError SourceFunction Token".split()
"""Names of what is given back, and no functions."""


def test_all_public_names_are_called_here():
    public = {*probing.__all__, *codesyntax_dataset.__all__} - {"__version__", *RECORDS}
    assert public == {*MEASURING, *READING, *READING_LONG, *OTHERS}
    assert codesyntax_metric.__all__ == ["ast_similarity", "load"]  # `load` is that of metrics, too


def check(call):
    """That each argument is one of the call's, and changes what comes or, if it says why, nothing."""
    names = {*inspect.signature(call.function).parameters}
    assert {*call.changed, *call.nothing} == names
    before = call.outcome()
    assert not before.startswith(("CodeSyntax", "Argument", "TypeError", "Model", "Unknown")), (
        before
    )
    silent = []
    for name, value in call.changed.items():
        more = value if name in ("asked", "options", "kwargs") else {name: value}
        if call.outcome(**more) == before:
            silent.append(name)
    assert silent == []
    for name, (value, reason) in call.nothing.items():
        assert reason
        assert call.outcome(**{name: value}) == before, name
    return len(names)


@pytest.mark.parametrize("name", MEASURING)
def test_of_what_measures(name, calls, tmp_path, monkeypatch):
    check(replace(calls[name], told=runs(monkeypatch, tmp_path)))


@pytest.mark.parametrize("number", range(3), ids=["load", "compute", "ast_similarity"])
def test_of_metrics(number):
    check([*of_metrics()][number])


@pytest.mark.parametrize(
    "name",
    [*READING, *(pytest.param(name, marks=pytest.mark.long) for name in READING_LONG)],
)
def test_of_what_reads(name, calls):
    check(calls[name])


# --- what trains, reproduces, and keeps a model


@pytest.mark.long
def test_of_evaluate(places):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    def pair(place):
        return AutoModelForCausalLM.from_pretrained(place), AutoTokenizer.from_pretrained(place)

    model, tokenizer = pair(probing.models.location.embedded_model(TINY_DECODER))
    other, bytes_of_it = pair(places.decoder)
    call = Call(
        probing.evaluate,
        {"model": model, "tokenizer": tokenizer, "functions": 2},
        {
            "model": other,
            "tokenizer": bytes_of_it,
            "language": "java",
            "functions": 3,
            "tokens": 2600,
            "numbers": ["heads"],
        },
    )
    check(call)


def test_of_the_callback(places, tmp_path, monkeypatch):
    """By when, and of what, it evaluates in a training of eight steps."""
    from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, Trainer, TrainingArguments

    tokenizer, other = (
        AutoTokenizer.from_pretrained(place) for place in (places.tiny, places.decoder)
    )
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    arguments = TrainingArguments(
        str(tmp_path),
        use_cpu=True,
        report_to="none",
        max_steps=8,
        save_strategy="no",
        disable_tqdm=True,
    )
    rows = [{"input_ids": [1, 2, 3], "labels": [1, 2, 3]}] * 8

    def trainer(seed):
        model = BertForMaskedLM(BertConfig(**sizes, intermediate_size=8))
        model.name = seed
        return Trainer(model, arguments, train_dataset=rows, processing_class=tokenizer)

    evaluated = []

    def evaluate(model, tokenizer, **options):
        evaluated.append((model.name, type(tokenizer).__name__, len(tokenizer), options))
        return {"syntax/held_out": 1.0}

    monkeypatch.setattr(training, "evaluate", evaluate)

    def told(callback):
        evaluated.clear()
        callback.trainer.add_callback(callback)
        callback.trainer.train()
        callback.trainer.remove_callback(callback)
        return repr(evaluated)

    check(
        Call(
            probing.SyntaxCallback,
            {"trainer": trainer(0), "every": 4},
            {
                "trainer": trainer(1),
                "tokenizer": other,
                "every": 2,
                "language": "java",
                "functions": 2,
                "tokens": 5000,
                "numbers": ["heads"],
            },
            told=told,
        )
    )


def test_of_a_reproduction(places, tmp_path, monkeypatch):
    """By what it says, builds first, and would run on."""
    asked = []

    def build(*of, **options):
        asked.append((of, options))
        raise CodeSyntaxError("enough")

    def begun(run, real=reproduce._Run.codesyntax):
        asked.append((run.device, run.asked.limit))
        return real(run)

    monkeypatch.setattr(reproduce, "build", build)
    monkeypatch.setattr(reproduce._Run, "codesyntax", begun)
    asked_of = {"sources": ["sample"], "models": [places.tiny], "output": tmp_path / "out"}

    def function(**given):
        asked.clear()
        with contextlib.suppress(CodeSyntaxError):
            reproduce.reproduce(**given)
        return [*asked]

    excluded = tmp_path / "excluded"
    excluded.write_text("owner/name\n")
    changed = {
        "sources": [f"python={places.code}"],
        "models": [places.decoder],
        "output": tmp_path / "other",
        "study": "syntaxeval",
        "exclude_repositories": excluded,
        "limit": 2,
        "device": "cuda",
    }
    assert {*changed, "tell"} == {*inspect.signature(reproduce.reproduce).parameters}
    call = Call(function, {**asked_of, "tell": asked.append}, changed)
    before = call.outcome()
    silent = [name for name, value in changed.items() if call.outcome(**{name: value}) == before]
    assert silent == []


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_of_experiments(name, calls, tmp_path, monkeypatch):
    """Each field is in the key of a run, by which its settings are, too, or says why it is not."""
    monkeypatch.setenv("CODESYNTAX_CACHE", str(tmp_path))
    found = []
    monkeypatch.setattr(
        experiment, "_slot", lambda of, slot=experiment._slot: found.append((of, slot(of).key))
    )
    kind = INSTRUMENTS[name].experiment
    monkeypatch.setattr(kind, "prepare", lambda _: (_ for _ in ()).throw(CodeSyntaxError("enough")))
    call = calls[FUNCTION_OF[name]]
    with contextlib.suppress(CodeSyntaxError):
        call.function(**call.given)
    (of, key), *_ = found
    for each in fields(kind):
        if not each.init or each.name in ("session", "data"):
            continue
        value = getattr(of, each.name)
        other = "x" if value is None else [] if isinstance(value, list) else not value
        found.clear()
        experiment._slot(replace(of, **{each.name: other}))
        assert (found[0][1] == key) == (NO_SETTING in each.metadata), each.name


FUNCTION_OF = {
    "attention": "probe",
    "masking": "mask",
    "silencing": "ablate",
    "information": "inform",
    "preference": "prefer",
    "surprisal": "surprise",
    "carrying": "carry",
}


def test_of_a_session(places, tmp_path, monkeypatch):
    """By the key of a run."""
    monkeypatch.setenv("CODESYNTAX_CACHE", str(tmp_path))
    functions = probing.runs.data.read_functions(places.functions, "python", "test", limit=2)

    def told(session):
        return experiment._slot(probe.Probing(session, functions)).key

    changed = {"model": places.decoder, "revision": "v2", "step": 3, "dtype": "bfloat16"}
    changed |= {"device": "cuda", "max_length": 7}
    check(
        Call(
            Session,
            {"model": places.tiny, "device": "cpu"},
            changed,
            {"alone": (True, PROCESSES)},
            told,
        )
    )
