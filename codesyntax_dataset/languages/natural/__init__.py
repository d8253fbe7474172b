"""Natural language, labelled by treebanks: English and German, as in the paper, and any of
Universal Dependencies.

A word may stand before or after its head, and the probe asks where the head of a word is (Clark et
al. 2019), so the default direction is `dependent-to-head`. There are no keywords.
"""

from __future__ import annotations

import re

from codesyntax_dataset.languages.language import Language
from codesyntax_dataset.languages.natural.relations import RELATIONS
from codesyntax_dataset.languages.variants import JOINED, SPACED
from codesyntax_dataset.protocol import DEPENDENT_TO_HEAD


def _natural(name: str, title: str, tag: str | None) -> Language:
    return Language(
        name=name,
        title=title,
        variants=(JOINED, SPACED),
        relations=RELATIONS,
        unit="sentence",
        tag=tag,
        direction=DEPENDENT_TO_HEAD,
        offsets=range(-512, 513),
        # subtypes, Stanford Dependencies
        further_relations=re.compile(r"[A-Za-z]\w{0,31}(:\w{1,32}){0,2}", re.ASCII),
    )


ENGLISH = _natural("english", "English", "en")
GERMAN = _natural("german", "German", "de")
UD = _natural("ud", "Universal Dependencies", None)
