// Runs a Python script with Pyodide, a CPython for node, which sees the folders given under their own paths.
//
//     node tests/support/labels/pyodide_run.mjs FOLDER_WITH_NODE_MODULES SCRIPT [FOLDER ...]
//
// The script gets the folders as its arguments. The first of them has to hold the script.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [home, script, ...folders] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(path.join(home, "node_modules/pyodide/pyodide.mjs")));
const pyodide = await loadPyodide();
for (const folder of folders) {
  pyodide.FS.mkdirTree(folder);
  pyodide.FS.mount(pyodide.FS.filesystems.NODEFS, { root: folder }, folder);
}
pyodide.globals.set("argv", pyodide.toPy([script, ...folders.slice(1)]));
pyodide.runPython(`
import runpy, sys
sys.argv = list(argv)
runpy.run_path(sys.argv[0], run_name="__main__")
`);
