"""All attacks of three rounds: what each would have gained, and what stops it.

The first round (22 ledgers of ranks, and files of entries and results), the second (choices of heads, masked and silenced
rows, tokenizers, a board that believes), and the third, of which ten were accepted and the others held.
"""

from __future__ import annotations

from support.attacks import entries, ledgers, results
from support.attacks.attack import Attack

_BOARD, _VERIFIED = "tests/publish/test_board.py::", "tests/publish/test_verified.py::"
_LESS, _TEXTS = "tests/evidence/test_reading_less.py::", "tests/faults/test_hostile_texts.py::"
_FILES, _MODELS = "tests/faults/test_hostile_files.py::", "tests/faults/test_hostile_models.py::"
_SUBMIT, _HUB = "tests/publish/test_submit.py::", "tests/faults/test_hostile_hub.py::"
_JOURNEY = f"{_VERIFIED}test_the_journey_from_submit_to_a_verified_board"
_OTHERS = "tests/publish/test_other_instruments.py::test_a_board_says_what_to_do_instead"
_GGUF = "tests/models/test_gguf.py::"

# fmt: off
ACCEPTED_ONCE = [
    ledgers.TEXTS[0],
    ledgers.SURPRISING,
    ledgers.TEXTS[2],
    ledgers.BITS,
    Attack("weights of a pull request (board)", 3, "any score under the official name", None, _JOURNEY),
    Attack("a tokenizer that skips hard pairs", 3, "77.0 to 83.9 %, rank 1", None, _OTHERS),
    Attack("the pairs that were right alone", 3, "100.0 %, rank 1", None, _OTHERS),
    Attack("names of 200,000 characters, raw ESC", 3, "a terminal, files of megabytes", None, f"{_TEXTS}test_a_terminal_is_told_nothing"),
    entries.FILES_BY_NAME["rows without end of many functions"],
]
"""Those of the third round."""

MADE_ELSEWHERE = [
    # second round
    Attack("each sub-token twice in the vocabulary", 2, "72.9 to 91.8 %", None, "tests/evidence/test_verify_masked.py::test_each_sub_token_twice_in_the_vocabulary"),
    Attack("a tokenizer that skips hard functions", 2, "23.0 to 41.3 %", None, f"{_LESS}test_what_is_skipped_raises_no_number"),
    Attack("a tokenizer that pads, cuts or splits", 2, "some points", None, f"{_LESS}test_other_tokenizers_are_scored_on_the_same_edges"),
    Attack("a tokenizer with false offsets", 2, "some points", None, f"{_LESS}test_offsets_that_cannot_be_right"),
    Attack("files exchanged while they are checked", 2, "any score, verified", None, f"{_SUBMIT}test_files_that_are_exchanged_while_they_are_checked"),
    Attack("a lower entry for another's model", 2, "its row", None, f"{_BOARD}test_verified_beats_claimed_and_two_verified_are_shown"),
    Attack("a lower entry in another case", 2, "its row", None, f"{_BOARD}test_two_entries_for_one_model_are_in_conflict"),
    Attack("a copied ledger, copied numbers", 2, "another's place", None, f"{_BOARD}test_who_takes_the_ledger_or_the_numbers_of_another_is_marked"),
    Attack("claimed baselines of nothing", 2, "rank 1", None, f"{_VERIFIED}test_baselines_come_from_the_data"),
    Attack("a result in lower precision than it says", 2, "another's table", None, f"{_SUBMIT}test_a_result_in_lower_precision_than_it_says"),
    Attack("20,000 layers, weights that nothing has", 2, "time and memory", None, f"{_MODELS}test_a_hostile_model_is_refused"),
    Attack("a configuration of 200 MB", 2, "the cache", None, f"{_HUB}test_a_configuration_of_200_mb_is_not_downloaded"),
    # third round, held
    Attack("formulas in names of CSV", 3, "a spreadsheet", None, f"{_TEXTS}test_a_cell_of_csv_is_no_formula"),
    Attack("markup in names of boards", 3, "a reader's browser", None, f"{_BOARD}test_names_with_markup_stay_text"),
    Attack("markup in names of reports", 3, "a reader's browser", None, f"{_TEXTS}test_a_page_shows_names_and_does_not_run_them"),
    Attack("line breaks, U+202E and headings in names", 3, "a page", None, f"{_TEXTS}test_a_name_is_no_heading_of_a_report"),
    Attack("../ in names", 3, "files outside of the folder", None, f"{_HUB}test_names_that_climb_out_are_left_out_and_printable"),
    Attack("paths of the maker in what is published", 3, "a home folder's name", None, "tests/publish/test_export.py::test_nothing_local_is_exported"),
    Attack("Parquet that unpacks to gigabytes", 3, "memory", None, f"{_FILES}test_a_ledger_that_unpacks_to_far_more_is_refused_before_it_is_read"),
    Attack("metadata nested deeply, digits without end", 3, "a traceback", None, "tests/faults/test_fuzz.py::test_a_dataset_with_damaged_metadata_is_refused"),
    Attack("numbers that are none in ledgers", 3, "any score", None, "tests/faults/test_fuzz.py::test_a_damaged_ledger_is_refused_in_one_line"),
    Attack("numbers that are none in entries", 3, "any score", None, "tests/stats/test_hits_file.py::test_numbers_that_are_none_are_refused"),
    Attack("code and pickles beside a model", 3, "this computer", None, f"{_MODELS}test_code_beside_a_known_model_is_not_run"),
    Attack("headers of safetensors and GGUF without end", 3, "memory", None, f"{_GGUF}test_a_damaged_or_hostile_file_gets_one_line"),
    Attack("links among entries", 3, "any file of the maintainer", None, f"{_BOARD}test_what_is_left_out_is_listed_with_its_reason"),
    Attack("a Hub that does not answer", 3, "time", None, f"{_HUB}test_a_hostile_server_is_left_in_time"),
    Attack("a token sent to another server", 3, "the token", None, f"{_HUB}test_a_token_does_not_follow_to_another_server"),
    Attack("lists of results that grow when they are read", 3, "memory", None, f"{_SUBMIT}test_results_that_grow_when_they_are_read_stay_small"),
    Attack("relations of one's own, with data", 3, "any score", None, f"{_VERIFIED}test_entries_that_are_not_those_of_their_ledgers"),
]

# fmt: on
FORGED = [
    *entries.ENTRIES,
    *entries.SUBMITTED,
    *results.RESULTS,
    *ledgers.RANKS,
    *ledgers.CHOICES,
    *ledgers.MASKED,
    *ledgers.SILENCED,
    *ledgers.TEXTS,
    ledgers.BITS,
    ledgers.SURPRISING,
]
"""Those that are made by a small function each, which the tests of their level go through."""

ATTACKS = [*FORGED, *(attack for attack in ACCEPTED_ONCE if attack not in FORGED), *MADE_ELSEWHERE]
