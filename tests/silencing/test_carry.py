"""What silenced heads carry: sets of heads by hand, rules by hand, a planted head, and numbers by plain loops."""

from __future__ import annotations

import re
from string import ascii_lowercase
from types import SimpleNamespace

import datasets
import numpy as np
import pytest
import torch
from support.models.copying_models import (
    BYTES,
    CAPITALS,
    GAIN,
    HEADS,
    SMALL,
    WORDS,
    planted,
)
from support.models.minimal_pairs import folder_of, pair
from support.simulations.planted_heads import functions

from codesyntax_dataset.errors import ArgumentError, UnknownName
from codesyntax_metric.topk_uas import RULES
from probing import carry
from probing.instruments.silencing.choose import heads_that_find
from probing.instruments.silencing.hits import BEST, MATCHED, WHOLE
from probing.instruments.silencing.losses import Lost, hits, losses_by_share, system_of
from probing.instruments.silencing.sets import (
    DELIMITER,
    DUPLICATE,
    INDUCTION,
    OWN,
    PREVIOUS,
    column_of,
    found_by_rules,
    head_sets,
    parsed,
    rests_on,
)
from probing.report.carrying import carrying_parts
from probing.report.document import Figure
from probing.runs.session import Session
from probing.stats.intervals import Estimate

RELATION = "If:if->body"
COPIER = 2


def renamed(rows):
    return [
        {
            **row,
            "repo": "owner/0",
            "relations": [{**edge, "relation": RELATION} for edge in row["relations"]],
        }
        for row in rows
    ]


def letter_pairs(rng):
    """Of each text, a pair that is told by the capital letter before it, and one that is not; which letters, tells
    nothing."""
    rows = []
    for number in range(60):
        before = rng.choice(list(ascii_lowercase), 20)
        valid, invalid = rng.choice(list(ascii_lowercase), 2, replace=False)
        for place, (phenomenon, letter) in enumerate([("loop", valid.upper()), ("names", "i")]):
            good, bad = (
                "".join([*before[:14], letter, end, *before[16:]]) for end in (valid, invalid)
            )
            repository = f"owner/{number % 10}"
            rows.append(pair(2 * number + place, good, bad, phenomenon, 10, 0, repository))
    return [{**row, "relation": RELATION if row["phenomenon"] == "loop" else ""} for row in rows]


@torch.no_grad()
def knowing_without_heads(copier, seed):
    """The same head looks at capital letters, and tells nothing: the output layer knows which letter follows them."""
    model = planted(True, copier, seed)
    (layer,) = model.transformer.h
    layer.attn.c_proj.weight[copier * WORDS : (copier + 1) * WORDS] = 0
    model.lm_head.weight[SMALL, CAPITALS] = GAIN
    return model


@pytest.fixture(scope="module")
def letters(tmp_path_factory):
    rng = np.random.default_rng(0)
    validation = renamed(functions(True, 40, rng))
    rows = {"python": {"validation": validation}, "python_pairs": {"test": letter_pairs(rng)}}
    configs = {
        config: {split: datasets.Dataset.from_list(of) for split, of in splits.items()}
        for config, splits in rows.items()
    }
    return folder_of(tmp_path_factory.mktemp("data") / "letters", configs)


@pytest.fixture(scope="module")
def result(letters):
    model = planted(True, COPIER, 1)
    return carry((model, BYTES), letters, shares=[25], draws=3, heads=["0-0"])


# --- sets ---


def test_matched_sets_are_of_the_same_layers():
    sets = head_sets({"a": np.array([5, 4, 0, 1, 2, 3])}, (2, 3), [50], 4, 0)
    assert sets[0].heads == ((0, 0), (1, 1), (1, 2))
    assert [found.kind for found in sets] == ["best"] + 4 * ["matched"]
    for matched in sets[1:]:
        assert (1, 0) in matched.heads  # the only other head of layer 1
        assert matched.heads[0] in [(0, 1), (0, 2)]
        assert len(matched.heads) == 2


def test_a_share_has_at_least_one_head():
    (best,) = head_sets({"a": np.arange(6)}, (2, 3), [1], 0, 0)
    assert best.heads == ((0, 0),)


def test_heads_that_find_nothing_of_a_relation_are_of_no_set():
    """Three edges, two of the relation `a`; of two layers of two heads, 0-1 finds one of these, and 1-0 both."""
    ranks = np.ones((len(RULES), 3, 2, 2), np.uint8)
    ranks[0, 0, 0, 1] = ranks[0, :2, 1, 0] = 0
    ledger = SimpleNamespace(
        relations=["a", "b"],
        relation=np.array([0, 0, 1]),
        ranks=ranks,
        parts=lambda: [(slice(None), ranks)],
    )
    assert {name: list(heads) for name, heads in heads_that_find(ledger).items()} == {"a": [2, 1]}


def test_rules_find_tokens_before():
    words = "f ( a , f )".split()
    assert sorted(found_by_rules(words)) == sorted(
        [(PREVIOUS, token, token - 1) for token in range(1, 6)]
        + [(DUPLICATE, 4, 0), (INDUCTION, 4, 1)]
        + [(DELIMITER, 2, 1), (DELIMITER, 3, 1), (DELIMITER, 4, 3), (DELIMITER, 5, 3)]
    )


@pytest.mark.parametrize(
    "phenomenon, broken, column",
    [
        ("indentation", "For:for->body", "indentation: blocks"),
        ("indentation", "", "indentation: blocks"),
        ("loop-or-conditional", "If:if->else", "loop-or-conditional: branches"),
        ("closer", "", "closer: brackets"),
        ("distinct-parameters", "", "distinct-parameters"),
        ("a-new-one", "", "a-new-one"),
    ],
)
def test_columns_say_what_pairs_rest_on(phenomenon, broken, column):
    assert column_of(phenomenon, broken) == column


def test_pairs_rest_on_the_relations_of_their_family():
    assert rests_on("indentation: blocks", "While:while->body")
    assert not rests_on("indentation: blocks", "Call:func->args")
    assert not rests_on("distinct-parameters", "Call:func->args")
    assert not rests_on("distinct-parameters", "")


@pytest.mark.parametrize("heads", [["3"], ["a-b"], [(1,)], [(1, -2)], [None], ["1-2-3"]])
def test_what_is_no_head_is_refused(heads):
    with pytest.raises(ArgumentError, match="expected a layer and a head"):
        parsed(heads)


def test_heads_are_named_in_two_ways():
    assert parsed(["3-9", (4, 6), "3-9"]) == ((3, 9), (4, 6))


# --- numbers ---


@pytest.mark.slow
def test_a_planted_head_carries_what_rests_on_it(result):
    (of_share, of_own) = losses_by_share(result)
    (carried,) = of_share.carried
    best = next(of for of in result.sets if of.seeker == RELATION)
    assert best.heads == ((0, COPIER),)
    assert carried.seeker == RELATION
    assert carried.carried.value > 90
    assert carried.carried.p < 0.05
    (of_letter,) = [lost for lost in of_own.matrix if lost.rests or lost.column == "loop: blocks"]
    assert of_letter.seeker == OWN
    assert abs(of_letter.loss.value) < 0.1 * result.phenomena["loop: blocks"].margin


@pytest.mark.slow
def test_margins_are_those_of_the_model_itself(letters, result):
    model = planted(True, COPIER, 1)
    rows = result.ledger.rows.reshape(-1, len(result.sets) + 1)
    pairs = datasets.load_dataset("parquet", data_files=str(letters / "python_pairs/test.parquet"))
    for number in (0, 1, 30):
        for text in ("good", "bad"):
            ids = torch.tensor([[0, *BYTES(pairs["train"][number][text])["input_ids"]]])
            ids = ids[:, 1:] if ids[0, 1] == 0 else ids  # the tokenizer begins with it, too
            ids = ids[ids != BYTES.eos_token_id][None]
            with torch.no_grad():
                chances = model(ids).logits[0, :-1].log_softmax(-1)
            expected = chances.gather(1, ids[0, 1:, None]).sum().item()
            assert rows[number, 0][text] == pytest.approx(expected, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("causal", [True, False])
def test_texts_and_sets_that_share_what_is_equal_give_what_they_give_alone(letters, causal):
    asked = {"shares": [25, 50], "draws": 3, "limit": 6}
    session = Session((planted(causal, COPIER, 1), BYTES))
    together = carry(session, letters, **asked).ledger.rows
    session.language_model().shared = torch.nn.ModuleList()
    alone = carry(session, letters, **asked).ledger.rows
    for text in ("good", "bad"):
        assert together[text] == pytest.approx(alone[text], abs=1e-4)


@pytest.mark.slow
def test_a_contrast_is_that_of_plain_loops(result):
    """A mean difference on what rests, less that on the others, over the margin; its interval by leaving out
    repositories one by one, which are alike here."""
    measured = hits(result, 25)
    matched, best = system_of(MATCHED, RELATION), system_of(BEST, RELATION)
    rows = result.ledger.rows.reshape(-1, len(result.sets) + 1)
    numbers = [n for n, of in enumerate(result.sets, 1) if of.seeker == RELATION and of.share]
    margin = rows["good"] - rows["bad"]
    names = np.array(result.ledger.names)[rows["phenomenon"][:, 0]]

    def share_without(repository):
        kept = rows["repository"][:, 0] != repository
        gained = margin[:, numbers[1:]].mean(axis=1) - margin[:, numbers[0]]
        inside, others = kept & (names == "loop: blocks"), kept & (names == "names")
        return 100 * (gained[inside].mean() - gained[others].mean()) / margin[inside, 0].mean()

    estimate = measured.contrast(matched, best, ["loop: blocks"], WHOLE).at(0)
    assert estimate.value == pytest.approx(share_without(-1))
    left_out = np.array([share_without(repository) for repository in range(10)])
    error = np.sqrt(9 / 10 * ((left_out - left_out.mean()) ** 2).sum())
    assert (estimate.high - estimate.low) / 2 == pytest.approx(2.262 * error, rel=0.25)


@pytest.mark.slow
def test_matched_sets_that_cost_or_carry_as_much_are_counted(result):
    """The planted head costs more than all others, a neighbour less than that one."""
    rows = result.ledger.rows.reshape(-1, len(result.sets) + 1)
    margins = rows["good"] - rows["bad"]
    names = np.array(result.ledger.names)[rows["phenomenon"][:, 0]]
    (of_share, of_own) = losses_by_share(result)
    for lost in [*of_share.matrix, *of_own.matrix]:
        costs = [
            (margins[names == lost.column, 0] - margins[names == lost.column, number]).mean()
            for number, of in enumerate(result.sets, 1)
            if (of.seeker, of.share) == (lost.seeker, lost.share)
        ]
        assert lost.costlier == sum(cost >= costs[0] for cost in costs[1:])
    (carried,) = of_share.carried
    assert carried.as_much == 0
    (told, _) = [lost for lost in of_share.matrix if lost.seeker == RELATION]
    assert told.stands_out
    assert not any(lost.stands_out for lost in of_own.matrix if lost.column == told.column)


@pytest.mark.parametrize(
    "value, p, costlier, stands_out",
    [(1.0, 0.01, 0, True), (1.0, 0.01, 1, False), (1.0, 0.06, 0, False), (-1.0, 0.01, 0, False)],
)
def test_what_stands_out_costs_more_than_each_matched_set(value, p, costlier, stands_out):
    difference = Estimate(value, value - 0.5, value + 0.5, p, 10)
    lost = Lost(RELATION, 5, "loop", True, difference, 0.1, 0.1, costlier, difference, 0.2)
    assert lost.stands_out == stands_out


@pytest.mark.slow
def test_heads_that_look_and_tell_nothing_carry_nothing(letters):
    """The model knows the pairs without them."""
    known = carry((knowing_without_heads(COPIER, 0), BYTES), letters, shares=[25], draws=3)
    (of_share,) = losses_by_share(known)
    (carried,) = of_share.carried
    best = next(of for of in known.sets if of.seeker == RELATION)
    assert best.heads == ((0, COPIER),)
    assert known.phenomena["loop: blocks"].margin > 2
    assert abs(carried.carried.value) < 5
    assert carried.carried.low <= 0 <= carried.carried.high


def test_a_contrast_without_a_margin_has_no_value(result):
    measured = hits(result, 25)
    best = system_of(BEST, RELATION)
    turned = measured.named({WHOLE: WHOLE, best: best})
    for group in turned.groups.values():
        group.sums[WHOLE][:] = -abs(group.sums[WHOLE])
    assert np.isnan(turned.contrast(WHOLE, best, ["loop: blocks"], WHOLE).value).all()
    assert np.isnan(measured.contrast(WHOLE, best, ["none"], WHOLE).value).all()


@pytest.mark.slow
def test_a_report_draws_what_is_lost(result):
    parts = carrying_parts(result)
    (drawn,) = [part for part in parts if isinstance(part, Figure)]
    assert "nats beyond matched heads" in drawn.svg
    lost = next(iter(losses_by_share(result))).matrix
    assert {f"{cell.difference.value:+.2f}".replace("-", "−") for cell in lost} <= {
        *re.findall(r">([+−][0-9.]+)<", drawn.svg)
    }


# --- arguments ---


@pytest.mark.parametrize(
    "argument, error, said",
    [
        ({"stand_in": "noise"}, UnknownName, "stand_in"),
        ({"shares": [0]}, ArgumentError, "percent of heads"),
        ({"shares": []}, ArgumentError, "percent of heads"),
        ({"config": "python"}, ArgumentError, "python_pairs"),
        ({"heads": ["x"]}, ArgumentError, "expected a layer and a head"),
        ({"heads": ["0-4"]}, ArgumentError, f"1 layers of {HEADS} heads"),
        ({"relations": ["If:if"]}, UnknownName, "relation"),
    ],
)
def test_what_cannot_be_carried_is_refused(letters, argument, error, said):
    with pytest.raises(error, match=said):
        carry((planted(True, COPIER, 1), BYTES), letters, draws=1, **argument)
