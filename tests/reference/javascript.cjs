// The edges of functions by the tree of TypeScript's compiler, which reads JavaScript and JSX, too: a function in Base64
// on each line in, its edges out. The argument says which of the languages it reads, `javascript` or `typescript`.

const readline = require("node:readline");
const ts = require("typescript");

const KINDS = process.argv[2] === "typescript" ? [ts.ScriptKind.TS, ts.ScriptKind.TSX] : [ts.ScriptKind.JSX];
const FRAMES = [["", ""], ["(", "\n)"], ["class A {", "\n}"]];

/** The tree of a function in the first frame in which it parses, or undefined. */
function parsed(code) {
  for (const [kind, [before, after]] of KINDS.flatMap((kind) => FRAMES.map((frame) => [kind, frame]))) {
    const settings = { languageVersion: ts.ScriptTarget.Latest, jsDocParsingMode: ts.JSDocParsingMode.ParseNone };
    const file = ts.createSourceFile("f", before + code + after, settings, true, kind);
    const bare = file.statements.some((statement) => ts.isBlock(statement)); // of a method: `f(a)`, and a block
    if (file.parseDiagnostics.length === 0 && !bare) return [file, before.length];
  }
}

function edges(file, shift, found) {
  const start = (node) => node.getStart(file);

  function inner(node) {
    while (ts.isParenthesizedExpression(node) || ts.isParenthesizedTypeNode(node)) node = node.expression ?? node.type;
    return node;
  }

  /** The child of a node that stands at one of its ends, if any. */
  function outermost(node, atEnd) {
    let outer;
    ts.forEachChild(node, (child) => {
      if (child.end > start(child) && (atEnd ? child.end === node.end : start(child) === start(node))) outer ??= child;
    });
    return outer;
  }

  /** Where a node's first token begins, or its last token ends, that is no bracket that only groups. */
  function end(node, atEnd) {
    for (let next = node; next; next = outermost(node, atEnd)) node = inner(next);
    return atEnd ? node.end : start(node);
  }

  function edge(relation, at, first, last = first) {
    if (first === last) first = last = inner(first);
    if (start(first) > at || (start(first) === at && /Call|New/.test(relation)))
      found.push([relation, at, start(first), last.end]);
  }

  /** The edges between parts of a construct, in this order: [name, node, or the position of a keyword]. */
  function construct(name, parts, relations) {
    for (const relation of relations.split(" ")) {
      const [head, dependent] = relation.split("->");
      if (parts[head] === undefined || parts[dependent] === undefined) continue;
      const [first, last] = [].concat(parts[head]);
      const at = typeof first === "number" ? first : end(first, false);
      if (relation === "if->else") found.push(["If:if->else", at, parts.else, parts.else + 4]);
      else edge(`${name}:${relation}`, at, ...[].concat(parts[dependent]));
    }
  }

  function call(relation, callee, nodes) {
    if (nodes?.length) edge(relation, end(callee, true), nodes[0], nodes.at(-1));
  }

  /** Whether an array or object is no value, but a pattern that is assigned to. */
  function pattern(node) {
    const above = node.parent;
    if (ts.isParenthesizedExpression(above) || ts.isSpreadElement(above) || ts.isSpreadAssignment(above))
      return pattern(above);
    if (ts.isBinaryExpression(above)) return above.operatorToken.kind === ts.SyntaxKind.EqualsToken && above.left === node;
    if (ts.isForOfStatement(above) || ts.isForInStatement(above)) return above.initializer === node;
    if (ts.isPropertyAssignment(above)) return above.initializer === node && pattern(above.parent);
    return (ts.isArrayLiteralExpression(above) || ts.isObjectLiteralExpression(above)) && pattern(above);
  }

  function binary(node) {
    const kind = node.operatorToken.kind;
    const parts = { target: node.left, value: node.right, left: node.left, right: node.right };
    if (kind === ts.SyntaxKind.CommaToken) return;
    if (kind === ts.SyntaxKind.InstanceOfKeyword)
      construct("InstanceofExpr", { expr: node.left, type: node.right }, "expr->type");
    else if (kind === ts.SyntaxKind.EqualsToken) {
      const above = node.parent; // a default in a pattern is no assignment
      const inside = ts.isPropertyAssignment(above) ? above.parent : above;
      if (!((ts.isArrayLiteralExpression(inside) || ts.isObjectLiteralExpression(inside)) && pattern(inside)))
        construct("Assign", parts, "target->value");
    } else if (ts.isAssignmentOperator(kind)) construct("AugAssign", parts, "target->value");
    else construct("InfixExpr", parts, "left->right");
  }

  /** Where the dots are, in JSX behind a bracket. */
  function dots(node) {
    return node.getChildren(file).find((child) => child.kind === ts.SyntaxKind.DotDotDotToken).getStart(file);
  }

  function visit(node) {
    const at = start(node);
    switch (node.kind) {
      case ts.SyntaxKind.TemplateLiteralType: // one token
        return;
      case ts.SyntaxKind.BinaryExpression:
        binary(node);
        break;
      case ts.SyntaxKind.VariableDeclaration:
      case ts.SyntaxKind.PropertyDeclaration:
      case ts.SyntaxKind.EnumMember:
        construct("Assign", { target: node.name, value: node.initializer }, "target->value");
        break;
      case ts.SyntaxKind.TypeAliasDeclaration:
        construct("Assign", { target: node.name, value: node.type }, "target->value");
        break;
      case ts.SyntaxKind.PropertyAccessExpression:
        construct("Attribute", { value: node.expression, attr: node.name }, "value->attr");
        break;
      case ts.SyntaxKind.QualifiedName:
        construct("Attribute", { value: node.left, attr: node.right }, "value->attr");
        break;
      case ts.SyntaxKind.ElementAccessExpression:
        construct("Subscript", { value: node.expression, slice: node.argumentExpression }, "value->slice");
        break;
      case ts.SyntaxKind.CallExpression:
        call("Call:func->args", node.expression, node.arguments);
        break;
      case ts.SyntaxKind.TaggedTemplateExpression:
        call("Call:func->args", node.tag, [node.template]);
        break;
      case ts.SyntaxKind.NewExpression:
        call("New:class->args", node.expression, node.arguments);
        break;
      case ts.SyntaxKind.PropertyAssignment:
        if (!pattern(node.parent)) construct("Dict", { key: node.name, value: node.initializer }, "key->value");
        break;
      case ts.SyntaxKind.ConditionalExpression: {
        const parts = { test: node.condition, body: node.whenTrue, orelse: node.whenFalse };
        construct("IfExp", parts, "test->body test->orelse body->orelse");
        break;
      }
      case ts.SyntaxKind.ArrowFunction:
      case ts.SyntaxKind.FunctionExpression:
        construct("Lambda", { params: node.parameters[0], body: node.body }, "params->body");
        break;
      case ts.SyntaxKind.YieldExpression:
        construct("Yield", { yield: at, value: node.expression }, "yield->value");
        break;
      case ts.SyntaxKind.Parameter:
        construct("Default", { name: node.name, value: node.initializer }, "name->value");
        break;
      case ts.SyntaxKind.AwaitExpression:
        construct("Await", { await: at, value: node.expression }, "await->value");
        break;
      case ts.SyntaxKind.ReturnStatement:
        construct("Return", { return: at, value: node.expression }, "return->value");
        break;
      case ts.SyntaxKind.ThrowStatement:
        construct("Raise", { raise: at, value: node.expression }, "raise->value");
        break;
      case ts.SyntaxKind.PrefixUnaryExpression:
        if (node.operator === ts.SyntaxKind.PlusPlusToken || node.operator === ts.SyntaxKind.MinusMinusToken) break;
      case ts.SyntaxKind.DeleteExpression:
      case ts.SyntaxKind.TypeOfExpression:
      case ts.SyntaxKind.VoidExpression:
        construct("UnaryOp", { op: at, operand: node.operand ?? node.expression }, "op->operand");
        break;
      case ts.SyntaxKind.DoStatement:
        construct("Do", { do: at, body: node.statement, test: node.expression }, "body->test do->body do->test");
        break;
      case ts.SyntaxKind.WhileStatement: {
        const parts = { while: at, body: node.statement, test: node.expression };
        construct("While", parts, "while->test while->body test->body");
        break;
      }
      case ts.SyntaxKind.ForInStatement:
      case ts.SyntaxKind.ForOfStatement: {
        const declared = ts.isVariableDeclarationList(node.initializer) ? node.initializer.declarations[0].name : undefined;
        const parts = { for: at, target: declared ?? node.initializer, iter: node.expression, body: node.statement };
        construct("For", parts, "for->body for->target for->iter target->iter target->body iter->body");
        break;
      }
      case ts.SyntaxKind.ForStatement: {
        const parts = {
          for: at, initializers: node.initializer, test: node.condition, updaters: node.incrementor, body: node.statement,
        };
        construct("For", parts, "for->body for->test for->initializers for->updaters initializers->test test->updaters");
        construct("For", parts, "test->body initializers->updaters initializers->body updaters->body");
        break;
      }
      case ts.SyntaxKind.IfStatement: {
        const keyword = node.getChildren(file).find((child) => child.kind === ts.SyntaxKind.ElseKeyword);
        const parts = {
          if: at, test: node.expression, body: node.thenStatement, else: keyword?.getStart(file), orelse: node.elseStatement,
        };
        construct("If", parts, "if->else if->test if->body test->body test->orelse body->orelse");
        break;
      }
      case ts.SyntaxKind.SwitchStatement: {
        const cases = node.caseBlock.clauses;
        const parts = { switch: at, expr: node.expression, statement: cases.length ? [cases[0], cases.at(-1)] : undefined };
        construct("Switch", parts, "expr->statement switch->expr switch->statement");
        break;
      }
      case ts.SyntaxKind.CaseClause: {
        const body = node.statements.length ? [node.statements[0], node.statements.at(-1)] : undefined;
        construct("Case", { test: node.expression, body }, "test->body");
        break;
      }
      case ts.SyntaxKind.SpreadElement:
      case ts.SyntaxKind.SpreadAssignment:
        if (pattern(node.parent)) break;
      case ts.SyntaxKind.JsxSpreadAttribute:
        construct("Spread", { spread: dots(node), value: node.expression }, "spread->value");
        break;
      case ts.SyntaxKind.TryStatement: {
        const parts = { body: node.tryBlock, handler: node.catchClause, finalbody: node.finallyBlock };
        construct("Try", parts, "body->handler handler->finalbody body->finalbody");
        break;
      }
      case ts.SyntaxKind.LabeledStatement:
        construct("LabeledStatement", { label: node.label, body: node.statement }, "label->body");
        break;
    }
    ts.forEachChild(node, visit);
  }

  visit(file);
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const code = Buffer.from(line, "base64").toString("utf8");
  const [file, shift] = parsed(code) ?? [];
  const found = [];
  if (file) edges(file, shift, found);
  const characters = new Uint32Array(code.length + 1); // before each unit of UTF-16
  for (let unit = 0; unit < code.length; unit++) characters[unit + 1] = characters[unit] + !/[\udc00-\udfff]/.test(code[unit]);
  const places = ([relation, ...offsets]) => [relation, ...offsets.map((place) => characters[place - shift])].join(" ");
  const lines = file ? found.map(places) : ["error"];
  process.stdout.write([...lines, "end", ""].join("\n"));
});
