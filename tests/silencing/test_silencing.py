"""Silenced heads: toys with costs worked out by hand, every kind of model against its own code, resuming, refusals."""

from __future__ import annotations

import json

import datasets
import numpy as np
import pytest
import torch
import transformers
from conftest import cut
from support.commands import run
from support.models.copying_models import (
    BYTES,
    COPIER,
    HEADS,
    copied,
    log_probability,
    masked_copier,
    next_copier,
)
from support.models.random_models import shaken, sizes
from support.references import plain_intervals
from tqdm import tqdm

from codesyntax_dataset.errors import LedgerError, ModelError
from probing.evidence.verify import verify
from probing.instruments.attention.probe import Probing
from probing.instruments.silencing import ablate as experiment
from probing.instruments.silencing import choose as heads_of
from probing.instruments.silencing.ablate import Ablation, ablate
from probing.instruments.silencing.hits import (
    BEST,
    MATCHED,
    SilencingEffect,
    hits,
    silencing_effects,
)
from probing.instruments.silencing.result import (
    Chosen,
    SilencingLedger,
    SilencingResult,
    _relation_costs,
    log_probabilities,
)
from probing.models.language_model import MEAN, RESAMPLED, ZERO
from probing.models.load import load_language_model
from probing.models.location import EMBEDDED
from probing.report.silencing import (
    ALIKE,
    ANOTHER,
    FEW,
    LESS,
    MOST,
    NOTHING,
    how_it_serves,
    verdicts,
)
from probing.runs import batches
from probing.runs.data import read_functions
from probing.runs.data import rows as data_rows
from probing.runs.session import Session
from probing.stats.intervals import Estimate

COPIED, OTHER = "If:if->test", "For:for->target"
"""Relations whose dependents the copier finds and restores, and that only heads without any output find."""


# --- toys ---


def repeating(texts, edges):
    """Functions of two letters in turn, each letter a token: (relation, head, dependent)."""
    return datasets.Dataset.from_list(
        [
            {
                "id": number,
                "code": text,
                "token_start": list(range(len(text))),
                "token_end": list(range(1, len(text) + 1)),
                "relations": [
                    {"relation": name, "head": head, "first": dependent, "last": dependent}
                    for name, head, dependent in edges
                ],
            }
            for number, text in enumerate(texts)
        ]
    )


def splits(edges):
    letters = "ab cd ef gh ij kl mn op".split()
    test = [pair * (5 + number) for number, pair in enumerate(letters)]
    validation = [pair[::-1] * length for length in (6, 7) for pair in letters]
    return datasets.DatasetDict(
        test=repeating(test, edges), validation=repeating(validation, edges)
    )


TOYS = {
    # of the copier's row for the head token, and of a head's that finds the first token wherever it looks
    "masked": (
        masked_copier,
        [(COPIED, 2, 4), (COPIED, 3, 5), (COPIED, 2, 5), *((COPIED, at, at + 6) for at in range(3))]
        + [(OTHER, at, 0) for at in range(4, 8)],
        {COPIED: (0, 1, 2, 3), OTHER: (4, 5, 6, 7)},
        6,
    ),
    # of the dependent's row; the last edge goes back, and is not asked for
    "next": (
        next_copier,
        [
            (COPIED, 4, 5),
            (COPIED, 6, 7),
            (COPIED, 2, 5),
            *((COPIED, at, at + 4) for at in range(1, 4)),
        ]
        + [(OTHER, 0, at) for at in range(6, 10)]
        + [(COPIED, 6, 3)],
        {COPIED: (5, 6, 7), OTHER: (6, 7, 8, 9)},
        7,
    ),
}
"""The model; the edges of each function; the places of a relation that are predicted; and the edges of COPIED, of which
the copier finds two, at none of them the most frequent distance. Of the edges of OTHER no two have the same distance."""


def worked_out(data, kind, places):
    """The mean log-probability of the letters at some places of each test function, whole and with the copier silenced."""
    causal = kind == "next"
    texts = {split: [BYTES(row["code"])["input_ids"] for row in data[split]] for split in data}
    outputs = [copied(ids, row, causal) for ids in texts["validation"] for row in range(len(ids))]
    mean = sum(outputs) / len(outputs)
    found = []
    for ids in texts["test"]:
        asked = [place + 1 for place in places]  # behind <s>
        seen = (
            ids
            if causal
            else [BYTES.mask_token_id if at in asked else one for at, one in enumerate(ids)]
        )
        wholes = [copied(seen, at - 1 if causal else at, causal) for at in asked]
        both = [
            (log_probability(whole, ids[at]), log_probability(mean, ids[at]))
            for whole, at in zip(wholes, asked)
        ]
        found.append(np.mean(both, axis=0))
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TOYS)
def test_the_head_is_found_and_costs_what_was_worked_out(kind):
    make, edges, places, of = TOYS[kind]
    data = splits(edges)
    result = ablate((make(), BYTES), data)
    chosen = result.heads[COPIED]
    assert (chosen.best, chosen.score) == ((0, COPIER), pytest.approx(200 / of))
    assert chosen.matched == tuple((0, head) for head in range(HEADS) if head != COPIER)
    expected = worked_out(data, kind, places[COPIED])
    costs = {}
    for name, rows in result.ledger.named().items():
        whole, best, matched = log_probabilities(result.ledger.rows[rows])
        costs[name] = whole - best, whole[:, None] - matched
    assert costs[COPIED][0] == pytest.approx(expected[:, 0] - expected[:, 1], abs=1e-5)
    assert costs[COPIED][0].min() > 1
    assert (costs[COPIED][1] == 0).all()
    # the other relation: its head puts out nothing, the copier is among those that it is compared with
    expected = worked_out(data, kind, places[OTHER])
    assert result.heads[OTHER].best == (0, 0)
    assert (costs[OTHER][0] == 0).all()
    assert costs[OTHER][1][:, 0] == pytest.approx(expected[:, 0] - expected[:, 1], abs=1e-5)
    assert (costs[OTHER][1][:, 1:] == 0).all()
    said = {name: how_it_serves(one) for name, one in silencing_effects(result).items()}
    assert said == {COPIED: MOST, OTHER: LESS}
    assert result.left_out["dependent not after its head token"] == (8 if kind == "next" else 0)
    assert result.run.predicts == kind


@pytest.mark.slow
def test_heads_put_out_the_means_of_the_functions_that_their_own_run_chose_them_on():
    make, edges, *_ = TOYS["masked"]
    data = splits(edges)
    letters = "qr st uv wx yz QR ST UV".split()
    other = repeating([pair * length for length in (8, 9) for pair in letters], edges)
    session = Session((make(), BYTES))
    ablate(session, datasets.DatasetDict(test=data["test"], validation=other))
    second = ablate(session, data)
    assert second == ablate((make(), BYTES), data)


def test_costs_are_means_over_functions():
    """The best head costs 1 and 3 nats; others 2 and 3, 2 and 2, 0 and 1: one costs more."""
    rows = np.zeros(10, SilencingLedger.ROW)
    rows["silenced"], rows["edges"] = np.arange(10) % 5, np.arange(10) // 5 + 1
    rows["log_probability"] = [-1, -2, -3, -3, -1, -1, -4, -4, -3, -2]
    costs = _relation_costs(rows)
    assert (costs.functions, costs.edges, costs.cost, costs.costlier) == (2, 3, 2, 1)
    assert costs.matched == pytest.approx((2.5 + 2 + 0.5) / 3)


@pytest.mark.slow
def test_only_heads_that_beat_a_guess_by_distance_are_silenced():
    """The copier finds all edges of a relation with one distance, and so does a guess; of two distances, only it does."""
    one_distance = [(COPIED, 2, 4), (COPIED, 3, 5)]
    with pytest.raises(
        LedgerError, match="no head of its relation beats a guess .* validation': 16"
    ):
        ablate((masked_copier(), BYTES), splits(one_distance))
    data = splits([*one_distance, *TOYS["masked"][1][-4:]])
    assert ablate((masked_copier(), BYTES), data).heads.keys() == {OTHER}
    data["validation"] = data["validation"].select(range(11))  # in one half too few functions
    with pytest.raises(LedgerError, match="beats a guess"):
        ablate((masked_copier(), BYTES), data)


# --- every kind of model ---

SIZES = sizes(heads=4)
SMALL = {
    "vocab_size": len(BYTES),
    **SIZES,
    "max_position_embeddings": 300,
    "pad_token_id": 2,
    "bos_token_id": 0,
    "eos_token_id": 1,
}
GROUPED = {**SMALL, "num_key_value_heads": 2}
FAMILIES = {  # what its heads are added up by, and its sizes
    "bert": ("attention.output.dense", SMALL),
    "roberta": ("attention.output.dense", SMALL),
    "electra": ("attention.output.dense", {**SMALL, "embedding_size": 16}),
    "modernbert": (
        "attn.Wo",
        {**SMALL, "local_attention": 8, "cls_token_id": 0, "sep_token_id": 1},
    ),
    "distilbert": (
        "attention.out_lin",
        {**SMALL, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48},
    ),
    "gpt2": ("attn.c_proj", {**SMALL, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 300}),
    "opt": ("self_attn.out_proj", {**SMALL, "ffn_dim": 48, "word_embed_proj_dim": 32}),
    "llama": ("self_attn.o_proj", GROUPED),
    "mistral": ("self_attn.o_proj", {**GROUPED, "sliding_window": 8}),
    "qwen2": ("self_attn.o_proj", GROUPED),
    "gemma2": ("self_attn.o_proj", {**GROUPED, "head_dim": 8, "final_logit_softcapping": 5.0}),
    "mixtral": ("self_attn.o_proj", {**GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2}),
}
_KINDS = ("roberta", "modernbert", "gpt2", "gemma2")
"""One of each kind of code that adds up heads."""

CODES = [
    "def largest(values):\n    return max(values)\n",
    "def f(x):\n    return -x\n",
    "def g(y):\n    return +y\n",
]


def model_of(family, **settings):
    torch.manual_seed(0)
    config = transformers.CONFIG_MAPPING[family](
        **{**FAMILIES.get(family, ("", SMALL))[1], **settings}
    )
    masked = family in transformers.models.auto.modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    kind = transformers.AutoModelForMaskedLM if masked else transformers.AutoModelForCausalLM
    model = kind.from_config(config, attn_implementation="eager")
    return shaken(model, 0.2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "family, stand_in",
    [
        pytest.param(family, MEAN, marks=[] if family in _KINDS else [pytest.mark.long])
        for family in FAMILIES
    ]
    + [("gpt2", ZERO), ("gpt2", RESAMPLED)],
)
def test_against_the_own_code_of_the_model(family, stand_in):
    """Each query head of each layer, replaced by hooks in front of what adds up the heads, one text after the other."""
    model = model_of(family)
    ours = load_language_model((model, BYTES), max_length=511)
    adders = [part for name, part in model.named_modules() if name.endswith(FAMILIES[family][0])]
    texts = [torch.tensor(BYTES(code)["input_ids"]) for code in CODES]
    assert (len(adders), ours.layers, ours.heads) == (2, 2, 4)
    width = ours.layers * 4  # of a head: 32 / 4

    seen: list[list[torch.Tensor]] = [[] for _ in adders]
    hooks = [
        adder.register_forward_pre_hook(lambda _, args, heard=heard: heard.append(args[0][0]))
        for adder, heard in zip(adders, seen)
    ]
    with torch.no_grad():
        for text in texts[1:]:
            model(text[None])
    for hook in hooks:
        hook.remove()
    outputs = [torch.cat(heard) for heard in seen]
    put_out = {
        MEAN: [heard.mean(dim=0, keepdim=True) for heard in outputs],
        ZERO: [torch.zeros_like(heard[:1]) for heard in outputs],
        RESAMPLED: outputs,
    }[stand_in]
    stand_ins = ours.stand_ins([text.numpy() for text in texts[1:]], stand_in)

    # the second text is like the first one up to 6, the third one up to 15
    late, early = texts[0].clone(), texts[0][:12].clone()
    late[15], early[6] = BYTES.convert_tokens_to_ids(["+", "-"])
    read = [(texts[0], [3, 7, 20]), (early, [3, 7]), (late, [3, 7, 20])]
    masked = ours.mask is not None
    silenced = [
        (),
        *(((layer, head),) for layer in range(2) for head in range(4)),
        ((0, 1), (0, 3), (1, 2)),
    ]
    expected = []
    for heads in silenced:

        def replace(part, args, heads=heads):
            changed = args[0].clone()
            for layer, head in heads:
                if part is adders[layer]:
                    of_head = slice(head * width, (head + 1) * width)
                    places = torch.arange(changed.shape[1]) % len(put_out[layer])
                    changed[..., of_head] = put_out[layer][places][:, of_head]
            return (changed,)

        hooks = [adder.register_forward_pre_hook(replace) for adder in adders]
        for text, places in read:
            asked, places = text.clone(), torch.tensor(places)
            asked[places] = BYTES.mask_token_id if masked else asked[places]
            with torch.no_grad():
                chances = model(asked[None]).logits[0].log_softmax(dim=-1)
            expected.append(chances[places if masked else places - 1, text[places]])
        for hook in hooks:
            hook.remove()
    expected = torch.cat(expected).reshape(len(silenced), -1).numpy()
    assert len(ours.shared) == 2
    asked = [(text.numpy(), np.array(places)) for text, places in read]
    together = ours.log_probabilities(asked, silenced, stand_ins)
    assert together.numpy() == pytest.approx(expected, abs=2e-4)
    assert (together[1:] - together[0]).abs().amax(dim=1).min() > 1e-3
    ours.shared = torch.nn.ModuleList()
    alone = ours.log_probabilities(asked, silenced, stand_ins)
    assert alone.numpy() == pytest.approx(expected, abs=2e-4)


@pytest.mark.slow
def test_texts_that_a_model_cannot_go_on_from_are_read_alone(monkeypatch, caplog):
    """A layer that forgets what is before."""
    model = model_of("llama")
    attention = model.model.layers[1].self_attn
    forward = attention.forward
    monkeypatch.setattr(
        attention, "forward", lambda **named: forward(**{**named, "past_key_values": None})
    )
    ours = load_language_model((model, BYTES), max_length=511)
    assert len(ours.shared) == 0
    assert "sets of heads are silenced in one text after the other" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_the_output_layer_is_computed_only_where_it_is_read(family):
    assert load_language_model((model_of(family), BYTES)).scoring.why == ""


@pytest.mark.parametrize(
    "model, said",
    [
        (
            lambda: (transformers.BertModel(transformers.BertConfig(**SMALL)), BYTES),
            "BertModel has no masked-LM head .it is a BertModel; load it with AutoModelForMaskedLM",
        ),
        (
            lambda: (transformers.LlamaModel(transformers.LlamaConfig(**SMALL)), BYTES),
            "LlamaModel has no causal-LM head .it is a LlamaModel; load it with AutoModelForCausalLM",
        ),
        (
            lambda: (
                transformers.T5ForConditionalGeneration(
                    transformers.T5Config(
                        vocab_size=261, d_model=32, d_kv=8, d_ff=32, num_layers=1, num_heads=2
                    )
                ),
                BYTES,
            ),
            "restores spans",
        ),
        (
            lambda: (model_of("mpnet"), BYTES),
            "the heads of .* cannot be silenced: silencing needs our attention function",
        ),
        (
            lambda: (model_of("bert", num_attention_heads=1), BYTES),
            "has one attention head in each layer",
        ),
        (lambda: EMBEDDED, f"{EMBEDDED} has no masked-LM head .its weights lack cls.predictions"),
    ],
)
def test_refusals(model, said):
    with pytest.raises(ModelError, match=said) as error:
        load_language_model(model(), max_length=511)
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_a_decoder_that_sees_a_little_of_what_is_behind(monkeypatch):
    """Which moves all logits alike."""
    model = model_of("llama")
    forward = model.forward

    def leak(input_ids, **options):
        output = forward(input_ids, **options)
        output.logits = output.logits + 1e-4 * input_ids.sum(dim=1)[:, None, None]
        return output

    monkeypatch.setattr(model, "forward", leak)
    with pytest.raises(ModelError, match="no sub-token sees what is behind: .* by 0.00"):
        load_language_model((model, BYTES), max_length=511)


# --- runs ---

RUN = {"limit": 14}


@pytest.fixture(scope="module")
def few(dataset_folder, tmp_path_factory):
    """The first functions of the sample."""
    return cut(
        dataset_folder, tmp_path_factory.mktemp("few") / "codesyntax", test=16, validation=16
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "tiny"
    model_of("roberta", max_position_embeddings=600).save_pretrained(folder)
    BYTES.save_pretrained(folder)
    return folder


def every_relation(ledger, *_):
    return {*ledger.relations}


@pytest.fixture
def any_head_serves(monkeypatch):
    """Heads of a model with random weights, which do not beat a guess, are silenced, too."""
    monkeypatch.setattr(heads_of, "beats_guess", every_relation)


@pytest.fixture(scope="module")
def whole(model, few, tmp_path_factory):
    """The folder of a run without any interruption."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "REFERENCE", 5)
        patch.setattr(heads_of, "beats_guess", every_relation)
        ablate(model, few, **RUN, output=folder)
    return folder


def result_in(folder):
    return SilencingResult.load(next(folder.glob("*.silencing.*.json")))


def chosen(best, others):
    return Chosen(best=best, matched=tuple(others), edges=1, score=1.0, hard=0, beyond=None)


def job_of(model, few, direction="head-to-dependent"):
    """Of two functions, of different lengths."""
    functions, reference = (
        read_functions(few, "python", split, limit=14) for split in ("test", "validation")
    )
    heads = {
        "Call:func->args": chosen((0, 1), [(0, 0), (0, 2), (0, 3)]),
        "Attribute:value->attr": chosen((1, 3), [(1, 0), (1, 1), (1, 2)]),
    }
    job = Ablation(Session(model), functions, direction)
    job.heads = heads
    job.validation = Probing(job.session, reference, direction)
    job.functions, job.reference = job.functions[:2], job.reference[:3]
    return job


@pytest.mark.slow
def test_no_result_depends_on_what_else_is_run(model, few, monkeypatch):
    """The same bytes with other functions beside it; nearly the same where memory allows one pass at a time."""
    job = job_of(model, few)
    bar = tqdm(disable=True)
    together = job.run(job.functions, bar)
    alone = [job.run([function], bar) for function in job.functions[::-1]]
    assert SilencingLedger.concatenate(alone).digest() == together.digest()
    assert len(together) == 4 * 5
    monkeypatch.setitem(batches._TOKENS_ON_DEVICE, "cpu", 1)
    del job._predictor
    one_by_one = job.run(job.functions, bar)
    first, second = (found.rows["log_probability"] for found in (together, one_by_one))
    assert first == pytest.approx(second, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "direction, ends",
    [("head-to-dependent", ("head", "head")), ("dependent-to-head", ("first", "last"))],
)
def test_what_is_asked_for(model, few, direction, ends):
    """All sub-tokens of the end of the edges that heads read from, which these and the text say."""
    job = job_of(model, few, direction)
    (rows,) = data_rows(read_functions(few, "python", "test", limit=14).table, None)
    for source in job.functions:
        row = rows[source.index]
        assert [chr_of(number) for number in source.ids[1:-1]] == [*row["code"]]
        for asked in source.targets:
            edges = [edge for edge in row["relations"] if edge["relation"] == asked.relation]
            covered = {
                1 + place
                for edge in edges
                for token in range(edge[ends[0]], edge[ends[1]] + 1)
                for place in range(row["token_start"][token], row["token_end"][token])
            }
            assert asked.edges == len(edges)
            assert {*asked.positions.tolist()} == covered


def chr_of(number):
    return BYTES.decode([number])


@pytest.mark.slow
@pytest.mark.usefixtures("any_head_serves")
def test_a_forged_ledger_is_not_read(whole):
    result = result_in(whole)
    assert result.functions == len(np.unique(result.ledger.rows["function"]))
    rows = result.ledger.rows.copy()
    rows["silenced"][1] = 2
    for altered, said in (
        (rows, "heads"),
        (result.ledger.rows[result.ledger.rows["relation"] > 0], "relations"),
        (result.ledger.rows[1:], "heads"),
    ):
        with pytest.raises(LedgerError, match=f"its {said} are others than its settings say"):
            SilencingResult.from_ledger(
                SilencingLedger(result.ledger.names, altered, result.ledger.settings)
            )


@pytest.mark.slow
@pytest.mark.usefixtures("any_head_serves")
def test_p_of_effects_is_corrected_over_relations(whole):
    result = result_in(whole)
    measured, found = hits(result), silencing_effects(result)
    raw = plain_intervals.groups_p(measured, MATCHED, BEST)
    told = [found[name].difference.p for name in measured.names]
    assert told == pytest.approx(plain_intervals.holm(raw))
    assert told != pytest.approx(raw)


@pytest.mark.slow
@pytest.mark.usefixtures("any_head_serves")
@pytest.mark.usefixtures("unrendered")
def test_the_command_and_the_report(model, few, whole, tmp_path):
    """As text and JSON; `score` prints the same from the ledger, `report` has the section, `verify` accepts it."""
    asked = ("ablate", model, "--data", few, "--limit 3 --draws 1 --output")
    made = run(*asked, tmp_path / "out")
    assert "drawn 1 other heads of its layer" in made.stdout
    file = next((tmp_path / "out").glob("*.silencing.*.json"))
    ledger = file.with_name(file.name.replace(".json", ".ledger.parquet"))
    assert run("score", ledger).stdout == made.stdout
    assert json.loads(run("score", ledger, "--json").stdout)["relations"]
    verified = run("verify", file, "--model", model)
    assert "functions of test, 0 of" in verified.stdout
    assert "accepted" in verified.stdout
    for source in (file, whole):
        run("report", source, "--output", tmp_path / "report")
        page = (tmp_path / "report/report.md").read_text()
        assert "| relation |" in page
    tables = tmp_path / "report/tables"
    assert (
        len([*tables.glob("*-silencing.csv")]) == len([*tables.glob("*-heads-verdicts.csv")]) == 1
    )


@pytest.mark.slow
@pytest.mark.usefixtures("any_head_serves")
def test_verify_finds_other_rows_and_other_heads(model, few, tmp_path):
    """A log-probability, a head that is not the best with rows of its own, and a relation that is left out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "REFERENCE", 5)
        result = ablate(model, few, limit=3, draws=2)
        for number, (alter, failing) in enumerate(
            ((_likelier, "numbers"), (_other_head, "heads"), (_left, "heads"))
        ):
            forged = SilencingResult.from_ledger(alter(result.ledger), result.data_folder)
            file = forged.save(tmp_path / str(number))
            verification = verify(file, model=model)
            assert [check.name for check in verification.checks if not check.passed][-1:] == [
                failing
            ]


def _likelier(ledger):
    rows = ledger.rows.copy()
    rows["log_probability"][-1] /= 2
    return SilencingLedger(ledger.names, rows, ledger.settings)


def _other_head(ledger):
    settings, rows = json.loads(json.dumps(ledger.settings)), ledger.rows.copy()
    chosen = settings["heads"][ledger.names[0]]
    chosen["best"], chosen["matched"][0] = chosen["matched"][0], chosen["best"]
    best, other = (
        np.flatnonzero((rows["relation"] == 0) & (rows["silenced"] == number)) for number in (1, 2)
    )
    values = rows["log_probability"].copy()
    rows["log_probability"][best], rows["log_probability"][other] = values[other], values[best]
    return SilencingLedger(ledger.names, rows, settings)


def _left(ledger):
    settings, rows = (
        json.loads(json.dumps(ledger.settings)),
        ledger.rows[ledger.rows["relation"] > 0].copy(),
    )
    del settings["heads"][ledger.names[0]]
    rows["relation"] -= 1
    settings["functions"] = len(np.unique(rows["function"]))
    return SilencingLedger(ledger.names[1:], rows, settings)


# --- verdicts ---


def planted(low, difference, p=0.01, costlier=0, functions=20):
    """A relation in which silencing its best head costs `low` at least, and so much more than the others."""
    cost, more = (Estimate(of, low, 2.0, p, functions) for of in (low + 0.1, difference))
    return SilencingEffect(cost, more, costlier)


def test_verdicts():
    found = {
        MOST: planted(0.1, 0.5),
        ANOTHER: planted(0.1, 0.5, costlier=1),
        NOTHING: planted(0.0, 0.5),
        LESS: planted(0.0, -0.5),
        ALIKE: planted(0.1, 0.5, p=0.06),
        FEW: planted(0.1, 0.5, functions=5),
    }
    assert {name: how_it_serves(effect) for name, effect in found.items()} == {
        name: name for name in found
    }
    del found[ALIKE]
    assert verdicts("m", found).rows == [["m", 1, 1, 1, 1, 0, 1]]
