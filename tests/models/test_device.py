"""The device where none is named: torch is asked only where it could find a GPU."""

from __future__ import annotations

import sys

import pytest
import torch
from support.commands import python

from probing.models import device

ASKED = """
import sys
from pathlib import Path
from probing.models import device
device._NVIDIA_DRIVERS, device._AMD_DRIVER = {libraries!r}, Path({file!r})
print(device.default_device(), "torch" in sys.modules)
"""


@pytest.mark.parametrize(
    "libraries, file, asked",
    [((), "/none", False), (("libc.so.6",), "/none", True), (("none.so",), sys.executable, True)],
)
def test_torch_is_asked_where_a_driver_is(libraries, file, asked):
    said = python(ASKED.format(libraries=libraries, file=file))
    of_torch = "cuda" if torch.cuda.is_available() else "cpu"
    assert said.stdout.split() == [of_torch if asked else "cpu", str(asked)]


@pytest.mark.parametrize("there, expected", [(True, "cuda"), (False, "cpu")])
def test_it_is_the_one_of_torch(there, expected, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    assert device.default_device() == expected
