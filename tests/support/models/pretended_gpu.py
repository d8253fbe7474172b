"""A GPU that is only pretended, on the CPU: it refuses to mix devices, and counts what the host would wait for.

Numbers are computed on the CPU, so that results can be compared. Tensors on the pretended GPU are instances of `OnGpu`
and say that their device is `cuda:0`. A host waits where it reads a value of theirs, where the size of a result depends
on values, and where it copies from or to memory that is not pinned.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

GPU, HOST = torch.device("cuda", 0), torch.device("cpu")
Tensor = torch.Tensor


class OnGpu(Tensor):
    """A tensor on the pretended GPU."""


class Pinned(Tensor):
    """A tensor of the host in memory from and to which a GPU copies while the host goes on."""


class Wait(NamedTuple):
    """What the host waited for, and in which function: the innermost one that is not torch's."""

    operation: str
    module: str
    function: str


# Their results have sizes that depend on values, or are values of the host.
_VALUES = {
    "_local_scalar_dense",
    "equal",
    "nonzero",
    "masked_select",
    "bincount",
    "_unique",
    "_unique2",
    "unique_dim",
}
_VALUES |= {"unique_consecutive", "unique_dim_consecutive"}
_INDEXED = {
    "index",
    "index_put",
    "index_put_",
    "_index_put_impl_",
    "_unsafe_index",
    "_unsafe_index_put",
}


class _Operations(TorchDispatchMode):
    """Every operation that computes, also those that others consist of."""

    def __init__(self, record: Callable[[str], None]):
        super().__init__()
        self.record = record

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        by_values = (
            name == "repeat_interleave"
            and func._overloadname != "self_int"
            and not kwargs.get("output_size")
        )
        if name in _VALUES or by_values:
            self.record(name)
        elif name in _INDEXED and _by_mask(args):
            self.record(f"{name} by a mask")
        else:
            with self:
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        return func(*args, **kwargs)


def _by_mask(args: Any) -> bool:
    masks = [
        index for index in args[1] if index is not None and index.dtype in (torch.bool, torch.uint8)
    ]
    # one value in all places that a mask names is a masked_fill
    return bool(masks) and not (len(masks) == 1 and len(args) > 2 and args[2].numel() == 1)


_TO_HOST = {Tensor.cpu, Tensor.numpy, Tensor.tolist, Tensor.__array__}
_COPIES = {Tensor.to, Tensor.cuda, Tensor.type, Tensor.copy_}
_ITEMS = {Tensor.__getitem__, Tensor.__setitem__, Tensor.index_put, Tensor.index_put_}
_MADE = {torch.tensor, torch.as_tensor, Tensor.new_tensor}


class PretendedGpu(TorchFunctionMode):
    """`waits` so far. A context in which tensors can be on the pretended GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[Wait] = []
        self._operations = _Operations(self.record)
        self._synchronize = mock.patch.object(
            torch.cuda, "synchronize", lambda device: self.record("synchronize")
        )

    def __enter__(self) -> PretendedGpu:
        self._synchronize.start()
        self._operations.__enter__()
        return super().__enter__()

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        self._operations.__exit__(*exception)
        self._synchronize.stop()

    def record(self, operation: str) -> None:
        frame = sys._getframe(1)
        while frame.f_back and re.fullmatch(
            rf"torch(\..*)?|{__name__}", frame.f_globals.get("__name__", "")
        ):
            frame = frame.f_back
        self.waits.append(Wait(operation, frame.f_globals["__name__"], frame.f_code.co_name))

    def take(self, model: torch.nn.Module) -> None:
        """Put all weights of a model onto the pretended GPU; shared ones stay shared."""
        taken: dict[int, Tensor] = {}
        for part in model.modules():
            for tensors in (part._parameters, part._buffers):
                for name, tensor in tensors.items():
                    if tensor is None:
                        continue
                    if id(tensor) not in taken:
                        moved = tensor.detach().as_subclass(OnGpu)
                        is_weight = isinstance(tensor, torch.nn.Parameter)
                        taken[id(tensor)] = (
                            torch.nn.Parameter(moved, requires_grad=False) if is_weight else moved
                        )
                    tensors[name] = taken[id(tensor)]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
        on_gpu = any(isinstance(one, OnGpu) for one in tensors)
        if func == Tensor.device.__get__:
            return GPU if on_gpu else HOST
        if func == Tensor.is_cuda.__get__:
            return on_gpu
        with torch._C.DisableTorchFunctionSubclass():
            if func is Tensor.pin_memory:
                return args[0].as_subclass(Pinned)
            if func in _TO_HOST:
                if on_gpu:
                    if func is not Tensor.cpu and func is not Tensor.tolist:
                        raise TypeError("can't convert cuda:0 device type tensor to numpy")
                    self.record(func.__name__)
                return _plain(func(*args, **kwargs))
            if func in _COPIES:
                return self._copied(func, args, kwargs)
            asked = [torch.device(one) for one in _devices(args, kwargs)]
            if any(device.type == "cuda" for device in asked):
                on_gpu = True
            self._check(func, args, tensors, on_gpu)
            pinned = kwargs.pop("pin_memory", False)
            found = func(*_on_host(args), **_on_host(kwargs))
            kind = OnGpu if on_gpu else Pinned if pinned else None
            return (
                found if kind is None else tree_map_only(Tensor, lambda one: _as(one, kind), found)
            )

    def _check(self, func: Any, args: Any, tensors: list[Tensor], on_gpu: bool) -> None:
        if not on_gpu:
            return
        if func in _MADE:
            self.record(func.__name__)
            return
        strangers = [one for one in tensors if not isinstance(one, OnGpu) and one.ndim]
        if func in _ITEMS:
            if strangers or any(isinstance(one, list) for one in _indices(args[1])):
                self.record("index of the host")
        elif strangers and func is not Tensor.expand_as:  # of which the shape is read
            raise RuntimeError(
                f"{getattr(func, '__name__', func)}: expected all tensors to be on the same device"
            )

    def _copied(self, func: Any, args: Any, kwargs: Any) -> Any:
        """`to` and the like: from where, to where, and whether the host waits."""
        own = args[0]
        if func is Tensor.copy_:
            source, target, kind = args[1], own, type(own)
        else:
            asked = _devices(args[1:], kwargs)
            others = [one for one in args[1:] if isinstance(one, Tensor)]
            there = bool(others) and isinstance(others[0], OnGpu)
            if asked:
                there = torch.device(asked[0]).type == "cuda"
            elif not others:
                there = isinstance(own, OnGpu)
            source, target, kind = own, None, OnGpu if there else Tensor
        if isinstance(source, OnGpu) != issubclass(kind, OnGpu):
            host = target if isinstance(source, OnGpu) else source
            if not (kwargs.get("non_blocking") and isinstance(host, Pinned)):
                self.record("copy to the host" if isinstance(source, OnGpu) else "copy to the GPU")
        found = func(*_on_host(args), **_on_host(kwargs))
        return found if target is not None else _as(found, kind) if kind is OnGpu else _plain(found)


def _as(tensor: Tensor, kind: type[Tensor]) -> Tensor:
    return tensor if isinstance(tensor, kind) else tensor.as_subclass(kind)


def _plain(found: Any) -> Any:
    return found.as_subclass(Tensor) if isinstance(found, (OnGpu, Pinned)) else found


def _indices(index: Any) -> Any:
    return index if isinstance(index, tuple) else (index,)


def _devices(args: Any, kwargs: Any) -> list[Any]:
    """The devices among the arguments."""
    named = [kwargs["device"]] if kwargs.get("device") is not None else []
    return [
        one
        for one in args
        if isinstance(one, torch.device) or (isinstance(one, str) and one in ("cuda", "cpu"))
    ] + named


def _on_host(arguments: Any) -> Any:
    """Arguments with the CPU in place of the pretended GPU."""
    if isinstance(arguments, dict):
        return {
            name: HOST if name == "device" and value is not None else value
            for name, value in arguments.items()
        }
    return tuple(
        HOST if isinstance(one, (torch.device, str)) and str(one).startswith("cuda") else one
        for one in arguments
    )
