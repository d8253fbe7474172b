"""Minimal pairs: scores against plain loops, planted models, batches, resuming, shards, verification, tables, refusals."""

from __future__ import annotations

import re

import datasets
import numpy as np
import pytest
import torch
import transformers
from scipy.stats import t
from support.commands import run
from support.models.byte_tokenizer import byte_tokenizer
from support.models.minimal_pairs import (
    LONGEST,
    PAIRS,
    REPOSITORIES,
    pair,
    pairs_folder,
    tiny_decoder,
)
from support.models.random_models import byte_model

from codesyntax_dataset.errors import (
    ArgumentError,
    DatasetError,
    LedgerError,
    ModelError,
    UnknownName,
)
from probing import prefer
from probing.evidence.verify import verify
from probing.instruments.likelihood import likelihood as module
from probing.instruments.likelihood.hits import MODEL, of_pairs
from probing.instruments.likelihood.result import (
    PreferenceLedger,
    PreferenceResult,
    stratum_weights,
)
from probing.models.load import load_restoring
from probing.models.location import EMBEDDED
from probing.report.report import report
from probing.report.results import parts
from probing.runs.data import read_functions
from probing.runs.data import rows as labelled_rows
from probing.runs.session import Session

BYTES = byte_tokenizer()


@pytest.fixture(scope="module")
def data():
    return datasets.Dataset.from_list(PAIRS)


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    return tiny_decoder(tmp_path_factory.mktemp("models") / "decoder")


@pytest.fixture(scope="module")
def masked(tmp_path_factory):
    return byte_model(tmp_path_factory.mktemp("models") / "masked", LONGEST)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return pairs_folder(tmp_path_factory.mktemp("data") / "pairs")


# --- scores


def log_softmax(logits):
    values = logits.double().numpy()
    return values - values.max() - np.log(np.exp(values - values.max()).sum())


@torch.inference_mode()
def by_a_decoder(model, text):
    """The log-probability of each byte, from one forward pass over those before it, the first from `<s>`."""
    ids = [0, *BYTES(text, add_special_tokens=False)["input_ids"]]
    return [
        log_softmax(model(torch.tensor([ids[:at]])).logits[0, -1])[ids[at]]
        for at in range(1, len(ids))
    ]


@torch.inference_mode()
def by_a_masked_model(model, text):
    """The log-probability of each byte, from one forward pass in which it and the rest of its word are masked."""
    ids, scores = BYTES(text)["input_ids"], []
    ends = [word.end() + 1 for word in re.finditer(r"\s*\S+", text) for _ in word.group()]
    for at, end in enumerate(ends, 1):
        asked = [*ids[:at], *[BYTES.mask_token_id] * (end - at), *ids[end:]]
        scores.append(log_softmax(model(torch.tensor([asked])).logits[0, at])[ids[at]])
    return scores


PLAIN = {
    "decoder": (transformers.AutoModelForCausalLM, by_a_decoder),
    "masked": (transformers.AutoModelForMaskedLM, by_a_masked_model),
}

TEXTS = {
    # good, bad -> the bytes in which they differ, of each
    "exchanged": ("while f():\n break", "if f():\n break", slice(0, 5), slice(0, 2)),
    "another bracket": ("f(a[0])", "f(a[0))", slice(5, 6), slice(5, 6)),
    "left out": ("async def f(): await g", "def f(): await g", slice(0, 7), slice(0, 1)),
    "put in": ("f(a, b)", "f(a,, b)", slice(4, 5), slice(4, 6)),
    "at the end": ("f(a)", "f(a", slice(3, 4), slice(3, 3)),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", PLAIN)
def test_scores_equal_a_plain_loop(kind, request):
    rows = [
        pair(at, *texts[:2], "any", 1, 1, "owner/name") for at, texts in enumerate(TEXTS.values())
    ]
    place = request.getfixturevalue(kind)
    result = prefer(place, datasets.Dataset.from_list(rows))
    auto, plain = PLAIN[kind]
    model = auto.from_pretrained(place).eval()
    for row, (good, bad, *places) in zip(result.ledger.rows, TEXTS.values()):
        for name, text, where in zip(("good", "bad"), (good, bad), places):
            scores = plain(model, text)
            rounded = 2e-6 * len(scores)  # each is a float32 of about -5
            assert row[f"{name}_whole"] == pytest.approx(sum(scores), abs=rounded)
            assert row[f"{name}_place"] == pytest.approx(sum(scores[where]), abs=rounded)
            assert (row[f"{name}_whole_tokens"], row[f"{name}_place_tokens"]) == (
                len(scores),
                len(scores[where]),
            )


def test_begins(decoder, monkeypatch):
    """What stands before a decoder's text: the beginning-of-text token, else the end-of-text token, else nothing."""
    model, (row,) = (
        transformers.AutoModelForCausalLM.from_pretrained(decoder),
        [pair(0, "ab", "cd", "any", 1, 1, "o/n")],
    )
    tokenizer = byte_tokenizer()

    def read(text):
        ((ids, positions, _),) = Session((model, tokenizer)).scoring_model().read([text])
        assert positions.tolist() == [*range(1, len(ids))]
        return ids.tolist()

    a = BYTES.convert_tokens_to_ids("a")
    assert read("a") == [0, a]
    assert read("<s>a") == [0, a]  # not twice
    tokenizer.bos_token = None
    assert read("a") == [1, a]
    tokenizer.eos_token = None
    assert read("aa") == [a, a]
    assert (
        prefer((model, tokenizer), datasets.Dataset.from_list([row])).ledger.rows[
            "good_whole_tokens"
        ]
        == 1
    )


def test_words_are_those_of_the_tokenizer():
    """What is masked for each sub-token: it, and the rest of its word."""
    model = load_restoring("tiny-code-mlm")
    ((ids, positions, ends),) = model.read(["def area(wide_x):return"])
    tokens = model.tokenizer.convert_ids_to_tokens(ids)
    masked = [" ".join(tokens[at:end]) for at, end in zip(positions, ends)]
    expected = ["def", "Ġa rea", "rea", "(", "w i de", "i de", "de", "_", "x", "):", "return"]
    assert masked == expected


@pytest.mark.slow
def test_knows_nothing(decoder):
    """Equal logits tie where both texts have as many sub-tokens, and otherwise prefer the shorter text."""
    model = transformers.AutoModelForCausalLM.from_pretrained(decoder)
    torch.nn.init.zeros_(model.lm_head.weight)
    result = prefer((model, BYTES), datasets.Dataset.from_list(PAIRS))
    assert (result.phenomena["bracket"].whole, result.phenomena["bracket"].ties) == (50.0, 30)
    assert (result.phenomena["loop"].whole, result.phenomena["loop"].ties) == (0.0, 0)


def all_alike(_, groups, bar):
    """Scores of a model that finds all sub-tokens equally likely."""
    bar.update(len(groups))
    return [[np.full(len(text.positions), -1.0) for text in group] for group in groups]


def test_accuracies_by_hand(decoder, data, monkeypatch):
    """By phenomenon, of planted scores: every third pair is right, every fourth ties."""

    monkeypatch.setattr(module.Scorer, "find", all_alike)
    made = prefer(decoder, data).ledger
    rows = made.rows.copy()
    rows["good_whole"] = -1 - np.where(
        np.arange(60) % 4 == 0, 0, np.where(np.arange(60) % 3 == 0, -0.5, 0.5)
    )
    rows["bad_whole"] = rows["good_place"] = -1
    rows["bad_place"] = rows["good_whole"]  # the other way round
    result = PreferenceResult.from_ledger(PreferenceLedger(made.names, rows, made.settings))
    loop = [0.5 if at % 4 == 0 else float(at % 3 == 0) for at in range(0, 60, 2)]
    bracket = [0.5 if at % 4 == 0 else float(at % 3 == 0) for at in range(1, 60, 2)]
    assert result.phenomena["loop"].whole == pytest.approx(100 * np.mean(loop))
    assert result.phenomena["bracket"].whole == pytest.approx(100 * np.mean(bracket))
    assert (
        result.accuracy.whole
        == result.accuracy.plain
        == pytest.approx(100 * np.mean(loop + bracket))
    )
    assert result.mean.whole == pytest.approx(50 * (np.mean(loop) + np.mean(bracket)))
    assert result.mean.place == pytest.approx(100 - result.mean.whole)
    assert (result.phenomena["loop"].ties, result.phenomena["bracket"].ties) == (15, 0)


# --- runs


@pytest.mark.slow
@pytest.mark.parametrize("kind", PLAIN)
def test_batches_change_nothing_but_last_digits(kind, data, request):
    session = Session(request.getfixturevalue(kind))
    results = [prefer(session, data, limit=3, batch_tokens=tokens) for tokens in (None, 1, 300)]
    first, *others = (result.ledger for result in results)
    for other in others:
        assert (other.preferred() == first.preferred()).all()
        for name in first.rows.dtype.names:
            assert np.allclose(other.rows[name], first.rows[name], atol=1e-4)


@pytest.mark.slow
def test_a_text_of_several_pairs_is_scored_once(masked, monkeypatch):
    """Three texts of 4, 4 and 3 bytes, in two pairs: a masked language model reads each once for each byte."""
    rows = [
        pair(at, "f(a)", bad, "any", 1, 1, "owner/name") for at, bad in enumerate(["f(a]", "f(a"])
    ]
    apart = [
        prefer(masked, datasets.Dataset.from_list([row | {"place": 0}])).ledger.rows for row in rows
    ]
    read, score = [], module.Scorer.work
    monkeypatch.setattr(
        module.Scorer,
        "work",
        lambda self, batch, inputs: read.extend(batch) or score(self, batch, inputs),
    )
    together = prefer(masked, datasets.Dataset.from_list(rows)).ledger.rows
    assert len(read) == 4 + 4 + 3
    for name in ("good_whole", "good_place", "bad_whole", "bad_place"):
        np.testing.assert_allclose(together[name], np.concatenate(apart)[name], atol=1e-5)


@pytest.mark.slow
def test_twins(decoder, data):
    """Untrained twins have weights of their own, by seed, and say so."""
    results = [
        prefer(decoder, data, limit=8, control="random-weights", seed=seed) for seed in (3, 3, 4)
    ]
    scores = [result.ledger.rows["good_whole"] for result in results]
    assert (scores[0] == scores[1]).all()
    assert (scores[0] != scores[2]).all()
    assert "|control:random-weights/4" in results[2].signature
    assert "random-weights 4" in results[2].title
    trained = prefer(decoder, data, limit=8)
    assert (trained.ledger.rows["good_whole"] != scores[0]).all()
    assert "control" not in trained.signature


@pytest.mark.slow
def test_long_pairs_are_missed_and_counted(decoder, data):
    """They are not read, and wrong, so that phenomena and their pairs are the same for all models."""
    lengths = [1 + max(len(row["good"]), len(row["bad"])) for row in PAIRS]  # with `<s>`
    limit = sorted(lengths)[40]
    result, whole = prefer(decoder, data, max_length=limit), prefer(decoder, data)
    fit = np.array(lengths) <= limit
    rows = result.ledger.rows
    assert rows["function"].tolist() == list(range(60))
    assert 0 < fit.sum() < 60
    assert (rows["read"] == fit).all()
    assert (rows["good_whole"][~fit] == 0).all()
    assert rows["bad_whole"][fit] == pytest.approx(whole.ledger.rows["bad_whole"][fit], abs=1e-4)
    assert result.skips == {f"more than {limit} sub-tokens": 60 - fit.sum()}
    expected = np.where(fit, whole.ledger.preferred()[:, 0], 0)
    assert (result.ledger.preferred()[:, 0] == expected).all()
    assert result.accuracy.missed == 60 - fit.sum()
    assert result.phenomena.keys() == whole.phenomena.keys()
    assert result.mean.phenomena == whole.mean.phenomena
    with pytest.raises(LedgerError, match="can be scored"):
        prefer(decoder, data, max_length=min(lengths) - 1)


@pytest.mark.parametrize(
    "good, expected",
    [
        ([6, 5, 5, 5, 4, 1], [1.5, 1, 1, 1, 0.75, 0.75]),
        ([6, *[5] * 90, *[4] * 9], [5, *[1] * 90, *[5 / 9] * 9]),  # one pair is not a third
        ([6, 5, 5], [1, 1, 1]),  # nothing to weigh the longer one against
        ([4, 4, 5], [1, 1, 1]),
        ([6, 4, 3], [1.5, 0.75, 0.75]),
    ],
)
def test_longer_and_shorter_good_texts_count_alike(good, expected):
    rows = np.zeros(len(good), PreferenceLedger.ROW)
    rows["bad_whole_tokens"], rows["good_whole_tokens"] = 5, good
    weights = stratum_weights(rows)
    assert weights / weights.sum() == pytest.approx(np.array(expected) / len(good), abs=1e-6)
    assert (weights % 2 == 0).all()  # ties, half a pair, are exact


def test_a_model_that_prefers_shorter_texts_is_at_half(decoder, data, monkeypatch):
    """Whichever share of good texts is shorter: here one of four."""
    rows = [
        pair(at, *texts, "any", 1, 1, f"owner/{at % 8}")
        for at, texts in enumerate([("f(a, b)", "f(a,, b)")] * 10)
    ]
    rows += [
        pair(at, "async def f(): 1", "def f(): 1", "any", 1, 1, f"owner/{at % 8}")
        for at in range(10, 40)
    ]

    monkeypatch.setattr(module.Scorer, "find", all_alike)
    result = prefer(decoder, datasets.Dataset.from_list(rows))
    assert result.accuracy.plain == 25
    assert result.accuracy.whole == pytest.approx(50, abs=1e-3)
    hits = of_pairs(result)
    estimate = hits.by_group(MODEL).at(0, 0)
    assert estimate.value == pytest.approx(50, abs=1e-3)
    # 10 shorter and 30 longer good texts, of the same weight: 30 of equal weight tell as much (Kish)
    (group,) = hits.groups.values()
    assert group.worth == pytest.approx(4 / (1 / 10 + 1 / 30), rel=1e-4)


@pytest.mark.slow
def test_the_surface_rival_is_fitted_on_validation(decoder, data):
    """The same texts again: what stands near a change tells both phenomena; without validation nothing is known."""
    both = datasets.DatasetDict(test=data, validation=data)
    result = prefer(decoder, both)
    assert result.accuracy.surface == 100 == result.mean.surface
    assert prefer(decoder, both, split="validation").accuracy.surface is None
    assert (
        prefer(decoder, data).mean.surface
        is prefer(decoder, datasets.DatasetDict(test=data)).mean.surface
        is None
    )


@pytest.mark.slow
def test_other_validation_pairs_are_another_run(decoder, data, tmp_path, monkeypatch):
    """The rival learns the opposite from them, and neither the cache nor a folder has that run."""
    monkeypatch.setenv("CODESYNTAX_CACHE", str(tmp_path / "cache"))
    opposite = datasets.Dataset.from_list(
        [{**row, "good": row["bad"], "bad": row["good"]} for row in PAIRS]
    )
    first, other = (
        prefer(decoder, datasets.DatasetDict(test=data, validation=pairs), output=tmp_path / "out")
        for pairs in (data, opposite)
    )
    assert (first.accuracy.surface, other.accuracy.surface) == (100, 0)
    assert first.signature != other.signature
    assert len([*(tmp_path / "out").glob("*.json")]) == 2


@pytest.mark.slow
def test_intervals_are_over_repositories(decoder, data):
    """Twice the same pairs in each repository are no more evidence, and few repositories give no interval."""
    ledger = prefer(decoder, data).ledger

    def found(good, rows):
        """By whole texts, of loops, if the good text has this log-probability, and the bad one -1."""
        planted = rows.copy()
        planted["good_whole"], planted["bad_whole"] = good, -1
        planted["function"] = np.arange(len(rows))
        phenomena = of_pairs(
            PreferenceResult.from_ledger(PreferenceLedger(ledger.names, planted, ledger.settings))
        )
        means = [phenomena.mean(MODEL).at(0)] if phenomena.counted else []
        return [*means, phenomena.each(phenomena.by_group(MODEL))["loop"]]

    rows, twice = ledger.rows, np.concatenate([ledger.rows, ledger.rows])
    divided = [found(np.where(of["repository"] < 4, -0.5, -2), of) for of in (rows, twice)]
    for once, again in zip(*divided):
        # of 60 pairs one by one, about 25
        assert again[:3] == pytest.approx(once[:3])
        assert once.high - once.low > 40
    sure = found(-0.5, rows)[1]  # Wilson's, for as many pairs as there are repositories
    quantile = t.ppf(0.975, REPOSITORIES - 1)
    assert sure[:3] == pytest.approx((100, 100 * REPOSITORIES / (REPOSITORIES + quantile**2), 100))
    assert np.isnan(found(-0.5, rows[rows["repository"] < 5])[-1].low)


# --- verification


@pytest.mark.slow
def test_verified(decoder, masked, folder, tmp_path):
    for place in (decoder, masked):
        prefer(place, folder, limit=20, output=tmp_path / "honest")
    honest = sorted((tmp_path / "honest").glob("*.json"))
    assert len(honest) == 2
    assert all(verify(file).accepted for file in honest)
    result = PreferenceResult.load(honest[0])
    wrong = np.flatnonzero(result.ledger.preferred()[:, 0] == 0)

    def forged(change):
        rows = result.ledger.rows.copy()
        change(rows)
        folder = tmp_path / f"forged-{len([*tmp_path.iterdir()])}"
        file = PreferenceResult.from_ledger(
            PreferenceLedger(result.ledger.names, rows, result.ledger.settings), result.data_folder
        ).save(folder)
        return verify(file, model=decoder).verdict

    def swapped(rows):
        rows["good_whole"][wrong[0]], rows["bad_whole"][wrong[0]] = (
            rows["bad_whole"][wrong[0]],
            rows["good_whole"][wrong[0]],
        )

    assert forged(lambda rows: None) == "accepted"
    assert forged(swapped) == "rejected"
    assert forged(lambda rows: rows["repository"].__setitem__(3, 7)) == "rejected"
    assert verify(honest[0], model=masked).verdict == "rejected"


@pytest.mark.parametrize(
    "name, value, reason",
    [
        ("bad_place", np.nan, "bad_place that cannot be"),
        ("function", 0, "out of order"),
    ],
)
def test_altered_ledgers_are_refused(name, value, reason, decoder, data, tmp_path):
    ledger = prefer(decoder, data, limit=4).ledger
    ledger.rows[name][-1] = value
    ledger.save(tmp_path / "altered.parquet")
    with pytest.raises(LedgerError, match=reason):
        PreferenceLedger.load(tmp_path / "altered.parquet")


@pytest.mark.parametrize("text", ["good", "bad"])
def test_a_place_has_no_more_sub_tokens_than_its_text(text):
    rows = np.zeros(1, PreferenceLedger.ROW)
    rows[f"{text}_whole_tokens"] = rows[f"{text}_place_tokens"] = 1
    PreferenceLedger.check(rows)
    rows[f"{text}_place_tokens"] = 2
    with pytest.raises(ValueError, match="sub-tokens that cannot be"):
        PreferenceLedger.check(rows)


# --- tables and commands


@pytest.mark.slow
def test_command(decoder, folder, tmp_path):
    given = ("prefer", decoder, "--data", folder, "--output", tmp_path / "results")
    said = run(*given)
    assert "bracket" in said.stdout
    assert "prefer|model:decoder@" in said.stdout
    assert "mean of 2 phenomena" in said.stdout
    twin = run(*given, "--control random-weights --json")
    assert '"control": "random-weights"' in twin.stdout
    ledger = next((tmp_path / "results").glob("*.ledger.parquet"))
    scored = run("score", ledger)
    assert "bracket" in scored.stdout


@pytest.mark.slow
def test_table(decoder, data):
    result = prefer(decoder, data)
    said, phenomena, signature = parts(result)
    mean = phenomena.totals[0][7][0]
    assert (
        said
        == f"decoder finds the grammatical text likelier in {mean:.1f} % of the pairs, where 50 is chance."
    )
    phenomena_hits = of_pairs(result)
    whole = phenomena_hits.each(phenomena_hits.by_group(MODEL))["loop"]
    assert phenomena.rows[1][:5] == ["loop", 30, REPOSITORIES, 0, result.phenomena["loop"].ties]
    assert phenomena.rows[1][5:7] == [None, [*whole[:3]]]  # rival, whole
    assert phenomena.rows[1][8:] == [None, result.phenomena["loop"].plain]
    assert [row[0] for row in phenomena.totals] == ["mean of 2 phenomena", "all pairs"]
    assert phenomena.totals[1][-1] == result.accuracy.plain
    assert whole.value == pytest.approx(result.phenomena["loop"].whole)
    assert signature == result.signature
    surely, told, _ = parts(prefer(decoder, datasets.DatasetDict(test=data, validation=data)))
    assert surely.endswith(" The surface regression, without a model, is right in 100.0 %.")
    assert [row[0] for row in told.rows] == ["bracket (surface)", "loop (surface)"]
    few = parts(prefer(decoder, data, limit=6))[0]
    assert [row[0] for row in few.rows] == ["bracket *", "loop *"]
    assert [row[0] for row in few.totals] == ["all pairs"]


@pytest.mark.slow
def test_report(decoder, masked, folder, tmp_path):
    """Models and twins, each as it is printed."""
    for place, control in ((decoder, None), (decoder, "random-weights"), (masked, None)):
        prefer(place, folder, control=control, output=tmp_path / "results")
    page = report([tmp_path / "results"], tmp_path / "report").read_text()
    assert "random-weights" in page
    assert "pseudo-log-likelihood" in page
    tables = [*(tmp_path / "report/tables").glob("*-preference.csv")]
    assert len(tables) == 3
    assert all("mean of " in table.read_text() for table in tables)


# --- refusals


@pytest.mark.slow
def test_refusals(decoder, data, dataset_folder, folder, tmp_path):
    with pytest.raises(ArgumentError, match="expected one of minimal pairs, such as python_pairs"):
        prefer(decoder, dataset_folder, "python")
    with pytest.raises(UnknownName, match="redrawn-dependents"):
        prefer(decoder, data, control="redrawn-dependents")
    with pytest.raises(ModelError, match="no masked-LM head"):
        prefer(EMBEDDED, data)
    with pytest.raises(DatasetError, match="lacks the columns bad"):
        prefer(decoder, data.remove_columns("bad"))
    with pytest.raises(DatasetError, match="both texts are the same"):
        prefer(decoder, datasets.Dataset.from_list([{**PAIRS[0], "bad": PAIRS[0]["good"]}]))
    with pytest.raises(LedgerError, match="no pair"):
        prefer(decoder, data, max_length=4)
    read = read_functions(folder, "python_pairs", "test")
    with pytest.raises(DatasetError, match="`codesyntax prefer` reads it"):
        next(labelled_rows(read.table, None))


def test_labels_are_a_digest_of_all_that_counts(data):
    """Another text, phenomenon, distance or repository has another digest, and a column that is not read has none."""

    def digest(**change):
        rows = [{**PAIRS[0], **change}, *PAIRS[1:]]
        return read_functions(datasets.Dataset.from_list(rows), "python_pairs", "test").labels

    changes = [
        {"good": "a"},
        {"bad": "a"},
        {"phenomenon": "a"},
        {"distance": 9},
        {"depth": 9},
        {"repo": "a"},
    ]
    assert len({digest(), *(digest(**change) for change in changes)}) == 7
    assert digest(path="b.py") == digest()
