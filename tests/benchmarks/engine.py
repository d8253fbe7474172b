"""What probing costs over a plain forward pass: ratios, measured side by side in one run.

    python tests/benchmarks/engine.py                      # the embedded sample, all shapes
    python tests/benchmarks/engine.py --data codesyntax --shape base --functions 48
    python tests/benchmarks/engine.py --shape "8000 sub-tokens" --rounds 2

Time is CPU time of one thread on a CPU (threads that wait for each other burn CPU time, too) and time between device
events on a GPU; each ratio is that of the least of five rounds, in which the variants take turns: other work on the
machine only adds time. Peak memory is that of a process of its own: on a CPU its resident set, on a GPU what torch
allocated. Shapes but the embedded encoder have random weights: the cost does not depend on them. The shapes of so
many sub-tokens are SmolLM2-135M, of the longest its first layers, on one function: statements of Python's library.
"""

from __future__ import annotations

import argparse
import ast
import json
import platform
import re
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

SHAPES = {  # layers, heads, hidden size; a BERT of this shape, or the embedded encoder
    "embedded": None,
    "base": (12, 12, 768),
    "large": (24, 16, 1024),
}
LONG = {"511 sub-tokens": (511, 30), "2048 sub-tokens": (2048, 30), "8000 sub-tokens": (8000, 4)}
"""The most sub-tokens of the function, and the layers of SmolLM2-135M that are run."""

FUNCTIONS = {"embedded": 150, "base": 32, "large": 12}
ROUNDS = 5


def task_of(shape: str, data: str, functions: int, device: str):
    """The encoder of a shape and `functions` functions spread evenly over the lengths of the data."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertModel

    from probing.instruments.attention.probe import Probing
    from probing.models.location import EMBEDDED, embedded_model
    from probing.runs.data import read_functions
    from probing.runs.session import Session

    torch.set_num_threads(1)
    if shape in LONG:
        return long_task(*LONG[shape], device)
    model = EMBEDDED
    if SHAPES[shape]:
        layers, heads, hidden = SHAPES[shape]
        torch.manual_seed(0)
        config = BertConfig(
            num_hidden_layers=layers,
            num_attention_heads=heads,
            hidden_size=hidden,
            intermediate_size=4 * hidden,
        )
        model = (BertModel(config), AutoTokenizer.from_pretrained(embedded_model()))
    task = Probing(Session(model, device=device), read_functions(data, "python", "test"))
    step = max(1, len(task.functions) // functions)
    task.functions = task.functions[::step][:functions]
    return task


def long_task(length: int, layers: int, device: str):
    """The first layers of SmolLM2-135M, and one function of almost `length` sub-tokens."""
    import datasets

    from codesyntax_dataset import corpus, languages
    from codesyntax_dataset.schema import SourceFunction
    from probing.instruments.attention.probe import Probing
    from probing.models.location import DECODER
    from probing.runs.data import read_functions
    from probing.runs.session import Session

    encoder = Session(DECODER).encoder()
    model, tokenizer = encoder.model, encoder.tokenizer
    model.layers, model.config.num_hidden_layers = model.layers[:layers], layers
    code, left = "def function():\n", length - 8
    for statement in statements():
        size = len(tokenizer(statement, add_special_tokens=False)["input_ids"])
        if size <= left:
            code, left = code + statement, left - size
    function = SourceFunction("python", code, "", "", "function", "", "test", 0)
    row = corpus.to_row(*corpus.label(function, languages.variant_of("python"))[:2])
    session = Session((model, tokenizer), device=device, max_length=length)
    return Probing(session, read_functions(datasets.Dataset.from_list([row]), "python", "test"))


def statements() -> Iterator[str]:
    """The statements in functions of Python's library, but docstrings, in a function's indentation."""
    for file in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text = file.read_text("utf-8")
        for function in ast.parse(text).body:
            for node in function.body[1:] if isinstance(function, ast.FunctionDef) else ():
                lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
                yield textwrap.indent(textwrap.dedent("\n".join(lines)), "    ") + "\n"


def variants(task):
    """What is timed: name -> a function that reads all functions once, in the same batches."""
    import torch
    from tqdm import tqdm

    from codesyntax_metric.topk_uas import WORST_RANK
    from probing.instruments.attention.runner import Runner
    from probing.models.loaded import without_cache

    encoder, runner = task.encoder, Runner(task.encoder, task.settings.direction, None)
    options = without_cache(encoder.model)

    def batches():
        start = 0
        while start < len(task.functions):
            batch = runner.batch(task.functions, start)
            start += len(batch)
            yield batch, encoder.inputs([function.ids for function in batch])

    def forward():
        with torch.inference_mode():
            for _, inputs in batches():
                encoder.model(**inputs, **options)

    def probe():
        runner.run(task.functions, tqdm(disable=True))

    def eager():
        """Maps from the model, pooled to words and sorted, function by function, as the published code does."""
        with torch.inference_mode():
            for batch, inputs in batches():
                # (L, B, H, S, S)
                maps = torch.stack(encoder.model(**inputs, output_attentions=True).attentions)
                for place, function in enumerate(batch):
                    first, last = (
                        torch.from_numpy(x).to(maps.device)[:, None] for x in function.alignment
                    )
                    sub = torch.arange(maps.shape[-1], device=maps.device)
                    member = ((first <= sub) & (sub <= last) & (first >= 0)).float()  # (T, S)
                    mean = member / member.sum(dim=1, keepdim=True).clamp(min=1)
                    words = mean @ maps[:, place] @ member.T  # (L, H, T, T)
                    words.argsort(dim=-1, descending=True)[..., :WORST_RANK].cpu()

    return {"forward": ("sdpa", forward), "probe": ("codesyntax", probe), "eager": ("eager", eager)}


def timed(encoder, implementation: str, work) -> float:
    """Seconds of CPU time, or of device time, that `work` takes under an attention implementation."""
    import torch

    encoder.model.set_attn_implementation(implementation)
    if encoder.device.type == "cuda":
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / 1000
    start = time.process_time()
    work()
    return time.process_time() - start


def peak(shape: str, variant: str, data: str, functions: int, device: str) -> float:
    """Peak memory in MB of a process that loads the model and runs one variant."""
    arguments = [sys.executable, __file__, "--peak-of", variant, "--shape", shape, "--data", data]
    arguments += ["--functions", str(functions), "--device", device]
    return float(
        subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.split()[-1]
    )


def print_peak(task, variant: str) -> None:
    import torch

    implementation, work = variants(task)[variant]
    timed(task.encoder, implementation, work)
    if task.encoder.device.type == "cuda":
        print(torch.cuda.max_memory_allocated() / 2**20)
    else:
        # not getrusage: what it tells of a child begins with what its parent had
        status = Path("/proc/self/status").read_text()
        print(int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) / 1024)


def measure(shape: str, data: str, functions: int, device: str, rounds: int) -> dict:
    from tqdm import tqdm

    task = task_of(shape, data, functions, device)
    work = variants(task)
    if shape in LONG:  # whose maps take gigabytes
        del work["eager"]
    for implementation, function in work.values():  # warm up, in the order of the rounds
        timed(task.encoder, implementation, function)
    times = {name: [] for name in work}
    for _ in range(rounds):
        for name, (implementation, function) in work.items():
            times[name].append(timed(task.encoder, implementation, function))
    least = {name: min(values) for name, values in times.items()}
    task.encoder.model.set_attn_implementation("codesyntax")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ledger.parquet"
        task.run(task.functions, tqdm(disable=True)).save(file)
        ledger = file.stat().st_size / len(task.functions)
    memory = {name: peak(shape, name, data, functions, device) for name in ("forward", "probe")}
    return {
        "shape": shape,
        "functions": len(task.functions),
        "sub-tokens": sum(len(function.ids) for function in task.functions),
        "probe / forward": round(least["probe"] / least["forward"], 3),
        **({"eager / probe": round(least["eager"] / least["probe"], 2)} if "eager" in work else {}),
        "peak / forward's": round(memory["probe"] / memory["forward"], 3),
        "functions per second": round(len(task.functions) / least["probe"], 1),
        "ledger bytes per function": round(ledger),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="a dataset folder; by default the embedded sample is built")
    parser.add_argument("--shape", choices=[*SHAPES, *LONG])
    parser.add_argument("--functions", type=int)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--peak-of", choices=("forward", "probe"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.data is None:
            from codesyntax_dataset.build import build

            args.data = f"{folder}/codesyntax"
            build("sample", ["python"], args.data)
        if args.peak_of:
            print_peak(task_of(args.shape, args.data, args.functions, args.device), args.peak_of)
            return
        print(
            f"{platform.processor() or platform.machine()}, {platform.platform()}, device {args.device}"
        )
        for shape in [args.shape] if args.shape else SHAPES:
            count = args.functions or FUNCTIONS.get(shape, 1)
            print(
                json.dumps(measure(shape, args.data, count, args.device, args.rounds)), flush=True
            )


if __name__ == "__main__":
    main()
