"""Entries: what honest evidence gives is read back, what is forged or broken is refused with its reason."""

from __future__ import annotations

import copy
import json
import os
import re

import pytest
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id
from hypothesis import given, settings
from hypothesis import strategies as st
from support.attacks import forgeries
from support.evidence.entries import of_model

from codesyntax_dataset.errors import EntryError
from probing.evidence import entry
from probing.runs.settings import Settings

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def honest(evidence):
    """Of a model that is about as good as the combined baseline where it may guess often."""
    return of_model(evidence, "user/base", 0.5)


@pytest.fixture(scope="module")
def text(honest):
    return entry.to_json(honest)


def test_an_honest_entry_comes_back_as_it_was(honest, text, tmp_path):
    file = tmp_path / "entry.json"
    file.write_text(text)
    assert entry.load(file) == entry.load(text.encode())
    assert json.loads(entry.to_json(entry.load(file))) == honest
    assert entry.to_json(entry.load(file)) == text
    assert len(text) < entry.LARGEST / 5


def test_file_names_tell_settings_apart_and_are_safe(honest):
    def name_of(one):
        return entry.file_name(
            Settings.model_validate({field: one["settings"][field] for field in Settings.model_fields})
        )

    names = {name_of(honest)}
    for name, value in (("revision", "1" * 40), ("dtype", "bfloat16"), ("max_length", 100), ("model", "user/../tiny")):
        other = copy.deepcopy(honest)
        other["settings"][name] = value
        names.add(name_of(other))
    assert len(names) == 5
    assert all(re.fullmatch(r"\w[\w.-]*\.json", name, re.ASCII) for name in names)


@pytest.mark.parametrize("forgery", forgeries.ENTRIES, ids=lambda forgery: forgery.name)
def test_forged_entries(forgery, honest, tmp_path):
    file = tmp_path / "entry.json"
    forgery.write(file, honest)
    with pytest.raises(EntryError, match=forgery.reason) as refused:
        entry.load(file)
    message = str(refused.value)
    assert len(message) < 400
    assert message.isprintable()


def test_names_of_models_are_those_of_the_hub(honest):
    for name in ("a", "user/a.b-c_d", "user/a.", "user./a", "a--b/c", "a/b.git", "a/.b", "a/b-", "a/b/c", "a" * 97):
        other = copy.deepcopy(honest)
        forgeries.settings(other, model=name)
        try:
            validate_repo_id(name)
        except HFValidationError:
            with pytest.raises(EntryError, match="as the Hub allows it"):
                entry.load(entry.to_json(other).encode())
        else:
            assert json.loads(entry.to_json(entry.load(entry.to_json(other).encode()))) == other


def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # reading it would wait for ever
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(EntryError, match="expected a regular file"):
            entry.load(path)
    for path in (tmp_path / "nothing", "nul\0"):
        with pytest.raises(EntryError, match="cannot be read"):
            entry.load(path)


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_change_is_read_or_refused(text, data):
    """Nothing but EntryError is ever raised, and what is accepted is what was there."""
    forged = json.loads(text)
    for _ in range(data.draw(st.integers(1, 3))):
        forgeries.change(forged, data)
    changed = json.dumps(forged).encode()
    try:
        assert json.loads(entry.to_json(entry.load(changed))) == json.loads(changed)
    except EntryError as refused:
        assert str(refused)


@settings(max_examples=30, deadline=None)
@given(place=st.integers(0), put=st.binary(max_size=8), cut=st.integers(0, 20))
def test_any_bytes_are_read_or_refused(honest, place, put, cut):
    text = entry.to_json(honest).encode()
    place %= len(text)
    try:
        assert entry.to_json(entry.load(text[:place] + put + text[place + cut :]))
    except EntryError as refused:
        assert str(refused)
