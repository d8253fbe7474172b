"""The relations of Universal Dependencies 2 (https://universaldependencies.org/u/dep/), but for
`root`.

The first word of a sentence's tree has the relation `root` and no head, so it has no edge.
Treebanks add subtypes, such as `nsubj:pass`. In the examples the head is on the left of the arrow.
"""

from __future__ import annotations

from codesyntax_dataset.languages.language import Relation

RELATIONS = (
    Relation("acl", "nominal dependent", "the issues to discuss: issues => discuss"),
    Relation("advcl", "non-core dependent", "he left when it rained: left => rained"),
    Relation("advmod", "modifier word", "she often sings: sings => often"),
    Relation("amod", "nominal dependent", "a red house: house => red"),
    Relation("appos", "nominal dependent", "my sister Ada: sister => Ada"),
    Relation("aux", "function word", "she has slept: slept => has"),
    Relation("case", "function word", "in the house: house => in"),
    Relation("cc", "coordination", "bread and salt: salt => and"),
    Relation("ccomp", "core argument", "I know you sleep: know => sleep"),
    Relation("clf", "nominal dependent", "a classifier of a noun, as in Chinese"),
    Relation("compound", "multiword expression", "a phone book: book => phone"),
    Relation("conj", "coordination", "bread and salt: bread => salt"),
    Relation("cop", "function word", "she is kind: kind => is"),
    Relation("csubj", "core argument", "what she said matters: matters => said"),
    Relation("dep", "unspecified", "a word whose relation cannot be told"),
    Relation("det", "nominal dependent", "the house: house => the"),
    Relation("discourse", "non-core dependent", "oh , I see: see => oh"),
    Relation("dislocated", "non-core dependent", "this one , I like it: like => one"),
    Relation("expl", "non-core dependent", "there is a ghost: is => there"),
    Relation("fixed", "multiword expression", "because of you: because => of"),
    Relation("flat", "multiword expression", "Grace Hopper: Grace => Hopper"),
    Relation("goeswith", "correction", "with out you: with => out"),
    Relation("iobj", "core argument", "she gave me a book: gave => me"),
    Relation("list", "loose", "Ada Byron , 12 Elm Road: Ada => Road"),
    Relation("mark", "function word", "when it rained: rained => when"),
    Relation("nmod", "nominal dependent", "the roof of the house: roof => house"),
    Relation("nsubj", "core argument", "she sings: sings => she"),
    Relation("nummod", "nominal dependent", "three mice: mice => three"),
    Relation("obj", "core argument", "she sings songs: sings => songs"),
    Relation("obl", "non-core dependent", "she sings in the bath: sings => bath"),
    Relation("orphan", "ellipsis", "Ada won gold and Kim silver: Kim => silver"),
    Relation("parataxis", "loose", "she is , I think , right: right => think"),
    Relation("punct", "punctuation", "she sings .: sings => ."),
    Relation("reparandum", "correction", "go to the left , to the right: right => left"),
    Relation("vocative", "non-core dependent", "Ada , come here: come => Ada"),
    Relation("xcomp", "core argument", "she wants to sing: wants => sing"),
)
