"""Mutants of the core that change nothing that anyone can see, each with the reason."""

from __future__ import annotations

AT_ONCE = "memory and time only: the numbers do not depend on how many are computed at once"
PADDING = "what pads a function to the size of the largest has no weight in anything"
FLOAT = "a float of four bytes is what `float` makes"

EQUIVALENT: dict[str, dict[tuple[str, str], str]] = {
    "codesyntax_metric/topk_uas.py": {
        (
            "return attention.float() if attention.element_size() < 4 else attention",
            "return attention.float() if attention.element_size() < 5 else attention",
        ): FLOAT,
        (
            "return attention.float() if attention.element_size() < 4 else attention",
            "return attention.float() if (attention.element_size() <= 4) else attention",
        ): FLOAT,
        (
            "chosen = ranks[:, relation_of == index].transpose(0, 2, 3, 1).reshape(cells, -1)",
            "chosen = ranks[:, relation_of == index].transpose(0, 2, 3, 1).reshape(cells, -2)",
        ): "numpy takes any negative size for the one that is not given",
        (
            "return int(self.counts[relation][0, 0, 0].sum())",
            "return int(self.counts[relation][0, -1, 0].sum())",
        ): "all heads rank the same edges",
    },
    "codesyntax_dataset/languages/java/tree.py": {
        (
            'if raw.type not in {"{", "}", "interface_declaration", "annotation_type_declaration"}:',
            "if raw.type not in {'}', 'interface_declaration', 'annotation_type_declaration'}:",
        ): "`{` is the first token of its block, and no edge leads to its own head",
    },
    "codesyntax_dataset/languages/python/tree.py": {
        (
            'return tuple(field for field in node_class._fields if field not in ("ctx", "op", "ops"))',
            "return tuple(field for field in node_class._fields if field not in ('ctx', 'op'))",
        ): "operators have no children, and are no deeper than their operands",
        (
            'return tuple(field for field in node_class._fields if field not in ("ctx", "op", "ops"))',
            "return tuple(field for field in node_class._fields if field not in ('ctx', 'ops'))",
        ): "operators have no children, and are no deeper than their operands",
    },
    "codesyntax_dataset/languages/tables/labels.py": {
        (
            "if 0 <= above < begin:",
            "if 0 <= above < (10 * begin):",
        ): "edges whose head is not before them are left out later",
        (
            "data[start - tree.start : end - tree.start],",
            "data[(start + tree.start) : end - tree.start],",
        ): "lines are joined in Python only, whose functions have no frame",
    },
    "codesyntax_dataset/pairs/code.py": {
        (
            "elif 0 <= first and last < len(characters):",
            "elif 0 <= (10 * first) and last < len(characters):",
        ): "ten times a number has its sign",
    },
    "codesyntax_dataset/pairs/words.py": {
        (
            "for index in range(token.last + 1, (header or [token.parent])[0].last + 1):",
            "for index in range(token.last + 1, (header or [token.parent])[0].last + 0):",
        ): "no statement and no header ends with one of the words",
    },
    "codesyntax_dataset/pairs/rivals.py": {
        (
            "_sizes: list[int] = field(default_factory=lambda: [0, 0])",
            "_sizes: list[int] = field(default_factory=lambda: [0, 1])",
        ): "every function has several characters",
        (
            "cells.setdefault((difference.put_in < difference.taken, verdict), []).append(id_)",
            "cells.setdefault((difference.put_in < (10 * difference.taken), verdict), []).append(id_)",
        ): "no token is both put in and taken, so that the first ones decide",
    },
    "probing/instruments/silencing/ablate.py": {
        (
            "if validation is not None and test is not None:",
            "if (validation is not None or test is not None):",
        ): "both are None, in all processes but the main one, or none of them",
    },
    "probing/runs/batches.py": {
        (
            '_ELEMENTS = {"cpu": 1 << 19, "cuda": 1 << 26}  # numbers in memory beside the model\'s: 2 MB, 256 MB',
            '_ELEMENTS = {"cpu": 2 << 19, "cuda": 1 << 26}  # numbers in memory beside the model\'s: 2 MB, 256 MB',
        ): AT_ONCE,
        (
            '_ELEMENTS = {"cpu": 1 << 19, "cuda": 1 << 26}  # numbers in memory beside the model\'s: 2 MB, 256 MB',
            '_ELEMENTS = {"cpu": (1 >> 19), "cuda": 1 << 26}  # numbers in memory beside the model\'s: 2 MB, 256 MB',
        ): AT_ONCE,
    },
    "probing/instruments/attention/ledger.py": {
        ("EDGES_AT_ONCE = 1 << 14", "EDGES_AT_ONCE = 1 << 13"): AT_ONCE,
        ("EDGES_AT_ONCE = 1 << 14", "EDGES_AT_ONCE = 1 << 15"): AT_ONCE,
    },
    "probing/instruments/attention/ranking.py": {
        (
            "tokens = max(1, *(len(function.alignment.first) for function in functions))",
            "tokens = max(2, *(len(function.alignment.first) for function in functions))",
        ): PADDING,
    },
}
"""Module -> the changed lines before and after, without indentation -> why nothing changes."""
