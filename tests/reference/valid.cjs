// Whether Babel's parser reads functions: one in Base64 on each line in, `error` out if it does not. The argument says
// which of the languages it reads, `javascript` or `typescript`.

const readline = require("node:readline");
const { parse } = require("@babel/parser");

const PLUGINS = process.argv[2] === "typescript" ? [["typescript"], ["typescript", "jsx"]] : [["jsx"]];
const FRAMES = [["", ""], ["(", "\n)"], ["class A extends B {", "\n}"]];

function isRead(code, plugins, [before, after]) {
  try {
    parse(before + code + after, { sourceType: "module", plugins });
    return true;
  } catch {
    return false;
  }
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const code = Buffer.from(line, "base64").toString("utf8");
  const valid = PLUGINS.some((plugins) => FRAMES.some((frame) => isRead(code, plugins, frame)));
  process.stdout.write(valid ? "end\n" : "error\nend\n");
});
