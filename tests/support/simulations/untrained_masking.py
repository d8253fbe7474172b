"""Untrained twins through a masking run to the report: what is claimed of models that know nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from support.models.byte_tokenizer import byte_tokenizer
from transformers import CONFIG_MAPPING, AutoModelForMaskedLM

from probing import mask
from probing.report.document import AS_FILLED, EFFECT, Table, separated
from probing.report.syntaxeval import findings, read_groups, sections

FAMILIES: dict[str, dict[str, Any]] = {
    "bert": {},
    "roberta": {},
    "electra": {"embedding_size": 16},
    "modernbert": {"local_attention": 8, "cls_token_id": 0, "sep_token_id": 1},
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48},
}
"""Architectures with a masked-LM head, and their sizes beside the common ones."""

TYPES = ["identifier", "string", "return_statement", "parameters"]
_LONGEST = 300


def untrained(family: str, seed: int) -> tuple[Any, Any]:
    """A model as its family initialises it, and its tokenizer."""
    tokenizer = byte_tokenizer()
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32, "intermediate_size": 48}
    special = {"vocab_size": len(tokenizer), "pad_token_id": 2, "bos_token_id": 0, "eos_token_id": 1}
    torch.manual_seed(seed)
    config = CONFIG_MAPPING[family](**{**sizes, **special, "max_position_embeddings": _LONGEST + 2, **FAMILIES[family]})
    return AutoModelForMaskedLM.from_config(config, attn_implementation="eager").eval(), tokenizer


def masked_twin(family: str, seed: int, data: Any, folder: Path, limit: int, draws: int) -> Path:
    """A folder with what an untrained model restores of the sample, against both controls."""
    for control in ("sub-tokens", "spans"):
        given = {"node_types": TYPES, "control": control, "draws": draws, "limit": limit, "max_length": _LONGEST}
        mask(untrained(family, seed), data, **given, output=folder)
    return folder


def claimed(folder: Path) -> dict[str, int]:
    """How many sentences on the results in a folder claim something; how many cells are coloured as effects, and how
    many as gains over fillers; and the most functions of a node type."""
    groups = read_groups([path for path in sorted(folder.glob("*.json")) if "examples" not in path.name])
    texts = [part for section in findings(groups) for part in section.parts if isinstance(part, str)]
    found = {"sentences": sum("show nothing." not in text for text in texts), "effects": 0, "gains": 0}
    for section in sections(groups):
        for table in (part for part in section.parts if isinstance(part, Table)):
            of = "gains" if table.name.endswith("-floors") else "effects"
            for row in table.rows:
                for column, cell in zip(table.columns, row):
                    coloured = column.kind is EFFECT and cell and separated(cell[3]) and AS_FILLED not in cell[4:]
                    found[of] += bool(coloured and (of == "effects" or cell[0] > 0))
    functions = [
        one.functions for group in groups for model in group.models.values() for one in model.node_types.values()
    ]
    return {**found, "functions": max(functions)}
