// What V8, and for TypeScript its compiler, say about texts; `__init__.py` says what is read and written.
const readline = require("node:readline");
const vm = require("node:vm");
const ts = process.argv[2] === "typescript" ? require("typescript") : undefined;

function verdict(text, last) {
  if (ts) {
    const compilerOptions = { target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext, jsx: ts.JsxEmit.React };
    const refusals = [];
    for (const fileName of ["f.ts", "f.tsx"]) {
      const { diagnostics, outputText } = ts.transpileModule(text, { compilerOptions, fileName, reportDiagnostics: true });
      const error = diagnostics.find((one) => one.category === ts.DiagnosticCategory.Error);
      if (!error) return run(outputText, Infinity);
      const line = error.file.getLineAndCharacterOfPosition(error.start).line + 1;
      refusals.push(line > last ? "unfinished" : "invalid");
    }
    return refusals[0];
  }
  return run(text, last);
}

function run(text, last) {
  const error = refusal(text);
  if (!error) return "valid";
  // A parser that stops in the same place whatever is behind the text has not come to its end.
  const same = String(refusal(text.trimEnd() + " )")?.slice(0, 2)) === String(error.slice(0, 2));
  return error[0] > last || !same || error[2] === "Unexpected end of input" ? "unfinished" : "invalid";
}

/** The line, place in it and message of what V8 refuses, if anything; it only reads the text. */
function refusal(text) {
  try {
    new vm.Script(text, { filename: "f" });
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const [line, , caret] = error.stack.split("\n");
    return [Number(/^f:(\d+)/.exec(line)?.[1] ?? 0), caret, error.message];
  }
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const [last, text] = line.split(" ");
  process.stdout.write(verdict(Buffer.from(text, "base64").toString(), Number(last)) + "\n");
});
