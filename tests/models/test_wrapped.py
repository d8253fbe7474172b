"""Models as trainings have them: compiled, in data parallelism, with adapters of PEFT, of a repository's own code."""

import copy
import json

import numpy as np
import peft
import pytest
import torch
from support.models.random_models import sizes
from transformers import (
    GenerationMixin,
    LlamaConfig,
    LlamaForCausalLM,
    LlamaModel,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.modeling_outputs import CausalLMOutputWithPast

import probing
from codesyntax_dataset.errors import ModelError
from probing.models.load import described_model, load, load_scoring
from probing.models.location import TINY_DECODER, checkpoints_in, embedded_model
from probing.models.wrapped import unwrapped

PROMPTS = {
    "prompt": lambda: peft.PromptTuningConfig(num_virtual_tokens=3, task_type="CAUSAL_LM"),
    "prefix": lambda: peft.PrefixTuningConfig(num_virtual_tokens=3, task_type="CAUSAL_LM"),
}


@pytest.fixture(scope="module")
def pair():
    """The embedded decoder, loaded as a training would."""
    folder = embedded_model(TINY_DECODER)
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return model, described_model(TINY_DECODER, None).tokenizer


def low_rank(model):
    torch.manual_seed(1)
    config = peft.LoraConfig(
        r=4, target_modules=["q_proj", "v_proj"], lora_dropout=0.5, task_type="CAUSAL_LM"
    )
    model = peft.get_peft_model(copy.deepcopy(model), config)
    for name, weight in model.named_parameters():
        if "lora_B" in name:  # zeros at first
            torch.nn.init.normal_(weight, std=0.05)
    return model


@pytest.mark.slow
def test_numbers_of_low_rank_weights_are_those_of_the_merged_model(pair):
    model, tokenizer = pair
    adapted = low_rank(model)
    numbers = probing.evaluate(adapted, tokenizer, functions=4)
    merged = copy.deepcopy(adapted).merge_and_unload()
    assert numbers == pytest.approx(probing.evaluate(merged, tokenizer, functions=4), abs=1e-5)
    assert numbers != probing.evaluate(model, tokenizer, functions=4)


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [torch.compile, torch.nn.DataParallel])
def test_numbers_of_a_wrapped_model_are_its_own(wrap, pair):
    model, tokenizer = pair
    expected = probing.evaluate(model, tokenizer, functions=3)
    assert probing.evaluate(wrap(model), tokenizer, functions=3) == expected


@pytest.mark.slow
def test_a_model_that_was_compiled_in_place_runs_its_own_code(pair):
    model, tokenizer = copy.deepcopy(pair[0]), pair[1]
    expected = probing.evaluate(model, tokenizer, functions=3)
    model.compile(backend=lambda *_: pytest.fail("it is compiled"))
    compiled = model._compiled_call_impl
    assert probing.evaluate(model, tokenizer, functions=3) == expected
    assert model._compiled_call_impl is compiled


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROMPTS)
def test_virtual_tokens_stand_before_a_text_as_in_peft(kind, pair):
    """Logits and attention are those of PEFT's own forward, without the virtual tokens."""
    model, tokenizer = pair
    torch.manual_seed(0)
    prompted = peft.get_peft_model(copy.deepcopy(model), PROMPTS[kind]())
    scoring, encoder = (
        load_scoring((prompted, tokenizer)),
        load((prompted, tokenizer), max_length=10_000),
    )
    text = np.arange(50, 70)
    inputs = scoring.inputs([text])
    with torch.no_grad():
        expected = prompted.eval()(**inputs).logits[0, -20:]
    rows, columns = torch.zeros(20, dtype=torch.long), torch.arange(20)
    ours = torch.cat([logits for _, logits in scoring.logits(inputs, rows, columns)])
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-5)
    assert encoder.path == "captured"
    assert encoder.longest == model.config.max_position_embeddings - 3
    maps = encoder.maps(inputs)
    assert maps[0].shape[-2:] == (20, 20)
    assert (maps[0].sum(-1) < 0.99).any()
    whole = load_scoring((model, tokenizer)).revision
    assert scoring.revision != whole


def test_holes_and_silence_are_not_asked_of_virtual_tokens(pair, dataset_folder):
    prompted = peft.get_peft_model(copy.deepcopy(pair[0]), PROMPTS["prompt"]()), pair[1]
    for ask, said in ((probing.mask, "after which no holes"), (probing.ablate, "be silenced")):
        with pytest.raises(ModelError, match=said):
            ask(prompted, dataset_folder)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["low rank", *PROMPTS])
def test_the_folder_of_an_adapter_is_read_on_its_base_model(kind, pair, dataset_folder, tmp_path):
    model, tokenizer = pair
    adapted = (
        low_rank(model)
        if kind == "low rank"
        else peft.get_peft_model(copy.deepcopy(model), PROMPTS[kind]())
    )
    folder = tmp_path / "checkpoint-5"
    adapted.save_pretrained(folder)
    assert checkpoints_in(tmp_path) == ["checkpoint-5"]
    read = probing.surprise(folder, dataset_folder, limit=2)
    expected = probing.surprise((adapted, tokenizer), dataset_folder, limit=2).ledger
    assert read.settings.model == "checkpoint-5"
    np.testing.assert_allclose(read.ledger.rows["bits"], expected.rows["bits"], atol=1e-4)
    ranks = [
        probing.probe(of, dataset_folder, limit=2).ledger.ranks
        for of in (folder, (adapted, tokenizer))
    ]
    assert (ranks[0] == ranks[1]).mean() > 0.999


@pytest.mark.slow
def test_adapters_that_cannot_be_read_say_what_to_do(pair, tmp_path):
    low_rank(pair[0]).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "adapter_config.json").read_text())

    def refused(said, **fields):
        (tmp_path / "adapter_config.json").write_text(json.dumps(config | fields))
        with pytest.raises(ModelError, match=said):
            load(str(tmp_path))

    refused(
        "an adapter of /gone, which cannot be read .*merge_and_unload",
        base_model_name_or_path="/gone",
    )
    refused("an adapter that does not name its base model", base_model_name_or_path=None)
    refused("its adapter and its base model differ in", target_modules=["q_proj"])
    (tmp_path / "adapter_model.safetensors").unlink()
    refused("it has no adapter_model.safetensors, and reading other formats can run code")


class OwnConfig(PreTrainedConfig):
    model_type = "own"


class OwnLanguageModel(PreTrainedModel, GenerationMixin):
    """As code of a repository that a user has loaded."""

    config_class = OwnConfig
    base_model_prefix = "inner"
    _supports_sdpa = True

    def __init__(self, config, inner):
        super().__init__(config)
        self.inner, self.lm_head = inner.model, inner.lm_head
        self.post_init()

    def _init_weights(self, module):
        pass

    def forward(self, input_ids, attention_mask=None, **options):
        options.pop("return_dict", None)
        output = self.inner(input_ids=input_ids, attention_mask=attention_mask, **options)
        return CausalLMOutputWithPast(logits=self.lm_head(output.last_hidden_state))


@pytest.mark.slow
def test_a_model_of_code_that_transformers_does_not_know_is_asked_like_any_other(
    pair, dataset_folder
):
    model, tokenizer = pair
    own = OwnLanguageModel(
        OwnConfig(**model.config.to_dict() | {"model_type": "own"}), copy.deepcopy(model)
    )
    numbers = probing.evaluate(own, tokenizer, functions=3)
    assert numbers == pytest.approx(probing.evaluate(model, tokenizer, functions=3), abs=1e-4)
    body = LlamaModel(LlamaConfig(vocab_size=len(tokenizer), **sizes()))
    with pytest.raises(ModelError, match="no masked-LM head|no causal-LM head"):
        probing.surprise((body, tokenizer), dataset_folder)


def named(name):
    return type(name, (torch.nn.Module,), {})()


def test_weights_that_are_spread_say_what_to_do():
    """Also where the model in the wrapper is given, as loops of Lightning do."""
    inside = torch.nn.Sequential(torch.nn.Linear(1, 1), named("FullyShardedDataParallel"))
    for model in (inside, inside[1]):
        with pytest.raises(ModelError, match="by FSDP 1: shard it with fully_shard"):
            unwrapped(model)
    part = torch.nn.Linear(1, 1)
    engine = named("DeepSpeedEngine")
    engine.module = part
    assert unwrapped(engine).model is part
    part.weight.ds_tensor = part.weight  # of ZeRO 3, as DeepSpeed leaves it
    for model in (engine, part):
        with pytest.raises(
            ModelError, match="by ZeRO, stage 3: use stage 2, or read what it saves"
        ):
            unwrapped(model)
