// The edges of Ruby methods by Prism, Ruby's parser since 3.4: a method in Base64 on each line in, its edges out.
const path = require("node:path");
const readline = require("node:readline");

const FROM_LAST = new Set(["Call:func->args", "Call:args->keywords", "Call:func->keywords", "Call:func->block"]);

class Edges {
  constructor(text) {
    this.text = text;
    this.found = [];
    this.groups = new Map(); // where brackets that only group begin and end -> where that inside them does
  }

  // Spans are [begin, end] in bytes.
  span(...nodes) {
    nodes = nodes.filter(Boolean);
    if (nodes.length === 1) {
      let node = nodes[0];
      while (node.constructor.name === "ParenthesesNode" && node.body?.body?.length === 1) node = node.body.body[0];
      nodes = [node];
    }
    return nodes.length ? [begin(nodes[0]), this.end(nodes.at(-1))] : null;
  }

  // Where a node ends, without the `end` that Prism counts as part of clauses.
  end(node) {
    const parts = {
      ElseNode: (node) => [node.elseKeywordLoc, node.statements],
      EnsureNode: (node) => [node.ensureKeywordLoc, node.statements],
      RescueNode: (node) => [node.keywordLoc, node.exceptions.at(-1), node.reference, node.statements, node.subsequent],
    }[node.constructor.name];
    if (node.constructor.name === "BeginNode" && !node.beginKeywordLoc) {
      return this.end([node.statements, node.rescueClause, node.elseClause, node.ensureClause].filter(Boolean).at(-1));
    }
    const last = parts?.(node).filter(Boolean).at(-1);
    return last?.location ? this.end(last) : end(last ?? node.location);
  }

  body(node) {
    if (node?.constructor.name !== "BeginNode" || node.beginKeywordLoc) return this.span(...(node?.body ?? []));
    const first = [node.statements, node.rescueClause, node.elseClause, node.ensureClause].filter(Boolean)[0];
    return [begin(first), this.end(node)];
  }

  add(relation, head, dependent) {
    if (!head || !dependent) return;
    const last = FROM_LAST.has(relation);
    let at = head[last ? 1 : 0];
    while (this.groups.has(`${last} ${at}`)) at = this.groups.get(`${last} ${at}`);
    if (head[0] < dependent[0]) this.found.push([relation, at, ...dependent]);
  }

  all(construct, parts, relations) {
    for (const relation of relations.split(" ")) {
      const [head, dependent] = relation.split("->");
      this.add(`${construct}:${relation}`, parts[head], parts[dependent]);
    }
  }

  call(func, list, block) {
    const given = block?.constructor.name === "BlockArgumentNode" ? [block] : [];
    const positional = (list?.arguments_ ?? []).filter((one) => one.constructor.name !== "KeywordHashNode");
    const keywords = (list?.arguments_ ?? []).filter((one) => one.constructor.name === "KeywordHashNode");
    const parts = {
      func,
      args: this.span(...positional, ...(keywords.length ? [] : given)),
      keywords: this.span(...keywords.flatMap((one) => one.elements), ...(keywords.length ? given : [])),
      block: given.length ? null : this.span(block),
    };
    this.all("Call", parts, "func->args args->keywords func->keywords func->block");
  }

  attribute(node) {
    if (node.receiver && node.messageLoc) this.add("Attribute:value->attr", this.span(node.receiver), place(node.messageLoc));
  }

  condition(keyword, node, other) {
    const parts = {
      if: place(keyword),
      test: this.span(node.predicate),
      body: this.span(...(node.statements?.body ?? [])),
    };
    if (other?.constructor.name === "ElseNode") {
      parts.else = place(other.elseKeywordLoc);
      parts.orelse = this.span(...(other.statements?.body ?? []));
    } else if (other) {
      parts.else = place(other.ifKeywordLoc);
      let last = other;
      while (last.subsequent) last = last.subsequent;
      const ends = [last.ifKeywordLoc, last.predicate, last.thenKeywordLoc, last.statements, last.elseKeywordLoc];
      parts.orelse = [begin(other), this.clause(last, ends)];
    }
    this.all("If", parts, "if->else if->test if->body test->body test->orelse body->test body->orelse");
  }

  clause(node, parts) {
    if (node.constructor.name === "ElseNode") return this.end(node);
    return Math.max(...parts.filter(Boolean).map((part) => end(part.location ?? part)));
  }

  branches(node, conditions) {
    const parts = {
      switch: place(node.caseKeywordLoc),
      expr: this.span(node.predicate),
      statement: this.span(...conditions, node.elseClause),
    };
    this.all("Switch", parts, "expr->statement switch->expr switch->statement");
  }

  lambda(node) {
    const parameters = node.parameters?.parameters ?? node.parameters?.locals?.[0];
    this.add("Lambda:params->body", this.span(parameters), this.body(node.body));
  }

  loop(node) {
    if (node.isBeginModifier()) {
      const [inside] = node.statements.body;
      const body = [inside.statements, inside.rescueClause, inside.elseClause, inside.ensureClause].filter(Boolean);
      const statements = body.flatMap((one) => (one.constructor.name === "StatementsNode" ? one.body : [one]));
      const parts = { do: place(inside.beginKeywordLoc), body: this.span(...statements), test: this.span(node.predicate) };
      this.all("Do", parts, "body->test do->body do->test");
      return;
    }
    const parts = {
      while: place(node.keywordLoc),
      test: this.span(node.predicate),
      body: this.span(...(node.statements?.body ?? [])),
    };
    this.all("While", parts, "while->test while->body test->body body->test");
  }

  group(node) {
    if (node.constructor.name === "ParenthesesNode" && node.body) {
      this.groups.set(`false ${begin(node)}`, begin(node.body));
      this.groups.set(`true ${end(node.location)}`, this.end(node.body));
    }
    if (node.constructor.name === "DefinedNode" && node.rparenLoc) {
      this.groups.set(`true ${end(node.location)}`, this.end(node.value));
    }
    for (const child of children(node)) this.group(child);
  }

  visit(node, inPattern = false) {
    const kind = node.constructor.name;
    const value = node.value?.location && this.span(node.value);
    if (/(Operator|And|Or)WriteNode$/.test(kind)) {
      this.add("AugAssign:target->value", place(node.location), value);
      if (kind.startsWith("Call")) this.attribute(node);
      if (kind.startsWith("Index")) this.subscript(node, node.arguments_?.arguments_ ?? []);
    } else if (/WriteNode$/.test(kind) && kind !== "MatchWriteNode") {
      this.add("Assign:target->value", place(node.location), value);
    } else if (kind === "CallNode") {
      this.callNode(node);
    } else if (kind === "CallTargetNode") {
      this.attribute(node);
    } else if (kind === "IndexTargetNode") {
      this.subscript(node, node.arguments_?.arguments_ ?? []);
    } else if (kind === "SuperNode") {
      this.call(place(node.keywordLoc), node.arguments_, node.block);
    } else if (kind === "ForwardingSuperNode") {
      this.call([begin(node), begin(node) + "super".length], null, node.block);
    } else if (kind === "YieldNode") {
      this.add("Yield:yield->value", place(node.keywordLoc), this.span(...flat(node.arguments_?.arguments_ ?? [])));
    } else if (/^Optional(Keyword)?ParameterNode$/.test(kind)) {
      this.add("Default:name->value", place(node.nameLoc), value);
    } else if (kind === "ReturnNode") {
      this.add("Return:return->value", place(node.keywordLoc), this.span(...flat(node.arguments_?.arguments_ ?? [])));
    } else if (kind === "DefinedNode") {
      this.add("UnaryOp:op->operand", place(node.keywordLoc), this.span(node.value));
    } else if (/^ConstantPath(Target)?Node$/.test(kind)) {
      if (node.parent) this.add("Attribute:value->attr", this.span(node.parent), place(node.nameLoc));
    } else if (kind === "AndNode" || kind === "OrNode") {
      this.add("InfixExpr:left->right", this.span(node.left), this.span(node.right));
    } else if (kind === "RangeNode" || kind === "FlipFlopNode") {
      this.add("Range:lower->upper", this.span(node.left), this.span(node.right));
    } else if (kind === "HashNode") {
      for (const pair of node.elements) {
        if (pair.constructor.name !== "AssocNode" || pair.value.constructor.name === "ImplicitNode") continue;
        this.add("Dict:key->value", this.span(pair.key), this.span(pair.value));
      }
    } else if (kind === "IfNode" && !node.ifKeywordLoc) {
      const parts = {
        test: this.span(node.predicate),
        body: this.span(...node.statements.body),
        orelse: this.span(...node.subsequent.statements.body),
      };
      this.all("IfExp", parts, "test->body test->orelse body->orelse");
    } else if (kind === "IfNode" && !inPattern) {
      this.condition(node.ifKeywordLoc, node, node.subsequent);
    } else if (kind === "UnlessNode" && !inPattern) {
      this.condition(node.keywordLoc, node, node.elseClause);
    } else if (kind === "WhileNode" || kind === "UntilNode") {
      this.loop(node);
    } else if (kind === "ForNode") {
      const parts = {
        for: place(node.forKeywordLoc),
        target: this.span(node.index),
        iter: this.span(node.collection),
        body: this.span(...(node.statements?.body ?? [])),
      };
      this.all("For", parts, "for->body for->target for->iter target->iter target->body iter->body");
    } else if (kind === "CaseNode" || kind === "CaseMatchNode") {
      this.branches(node, node.conditions);
    } else if (kind === "BeginNode") {
      const parts = {
        body: this.span(...(node.statements?.body ?? [])),
        handler: this.span(node.rescueClause),
        orelse: this.span(...(node.elseClause?.statements?.body ?? [])),
        finalbody: this.span(...(node.ensureClause?.statements?.body ?? [])),
      };
      this.all("Try", parts, "body->handler handler->orelse handler->finalbody body->orelse body->finalbody");
    } else if (kind === "WhenNode" || kind === "InNode") {
      let about = kind === "WhenNode" ? node.conditions[0] : node.pattern;
      if (kind === "InNode" && /^(If|Unless)Node$/.test(about.constructor.name)) [about] = about.statements.body;
      this.add("Case:test->body", this.span(about), this.span(...(node.statements?.body ?? [])));
    } else if (kind === "SplatNode" && !inPattern) {
      this.add("Spread:spread->value", place(node.operatorLoc), this.span(node.expression));
    } else if (kind === "AssocSplatNode" && !inPattern) {
      this.add("Spread:spread->value", place(node.operatorLoc), this.span(node.value));
    } else if (kind === "RescueModifierNode") {
      const handler = [begin({ location: node.keywordLoc }), end(node.rescueExpression.location)];
      this.add("Try:body->handler", this.span(node.expression), handler);
    } else if (kind === "BlockNode" || kind === "LambdaNode") {
      this.lambda(node);
    }
    // a guard of a pattern is an `if` whose statement is the pattern, and a splat of a target or pattern spreads nothing
    const ofTargets = /^(Multi|For|(Array|Find|Hash)Pattern)/.test(kind);
    const inside = (child) => (kind === "ForNode" ? child === node.index : child !== node.value);
    for (const child of children(node)) this.visit(child, kind === "InNode" || (ofTargets && inside(child)));
  }

  callNode(node) {
    const list = node.arguments_?.arguments_ ?? [];
    const opening = node.openingLoc && this.text.subarray(...place(node.openingLoc)).toString();
    const brackets = opening === "[" && !node.callOperatorLoc;
    if (node.isAttributeWrite() && list.length) {
      this.add("Assign:target->value", this.span(node.receiver), this.span(list.at(-1)));
      if (brackets) this.subscript(node, list.slice(0, -1));
      else this.attribute(node);
    } else if (brackets) {
      this.subscript(node, list);
    } else if (node.receiver && !node.callOperatorLoc) {
      if (list.length) this.add("InfixExpr:left->right", this.span(node.receiver), this.span(list[0]));
      else this.add("UnaryOp:op->operand", place(node.messageLoc), this.span(node.receiver));
    } else {
      this.attribute(node);
      this.call(node.messageLoc ? place(node.messageLoc) : this.span(node.receiver), node.arguments_, node.block);
    }
  }

  subscript(node, list) {
    this.add("Subscript:value->slice", this.span(node.receiver), this.span(...flat(list)));
  }
}

// `x = a rescue b and c` is `(x = a rescue b) and c` to Ruby: Prism 1.9 takes `b and c` for what is rescued with.
function isLooser(node, text) {
  const kind = node.constructor.name;
  if (kind === "AndNode" || kind === "OrNode") return /^(and|or)$/.test(text.subarray(...place(node.operatorLoc)));
  return kind === "MatchPredicateNode" || kind === "MatchRequiredNode";
}

function regrouped(node, text) {
  for (const [key, value] of Object.entries(node)) {
    if (Array.isArray(value)) node[key] = value.map((one) => (one?.childNodes ? regrouped(one, text) : one));
    else if (value?.childNodes) node[key] = regrouped(value, text);
  }
  const rescue = node.value;
  const one = /WriteNode$/.test(node.constructor.name) && node.constructor.name !== "MultiWriteNode";
  if (!one || rescue?.constructor.name !== "RescueModifierNode") return node;
  const chain = []; // from the operator that groups last
  for (let next = rescue.rescueExpression; isLooser(next, text); next = next.left ?? next.value) chain.push(next);
  const inner = chain.at(-1);
  const { expression } = rescue;
  if (!inner || (expression.arguments_ && !expression.openingLoc && expression.messageLoc && !isSign(expression))) return node;
  const key = inner.left ? "left" : "value";
  rescue.rescueExpression = inner[key];
  for (const part of [rescue, node]) stretch(part, begin(part), end(inner[key].location));
  inner[key] = node;
  for (const part of chain) stretch(part, begin(node), end(part.location));
  return chain[0];
}

const isSign = (call) => /^\W/.test(call.name);
const stretch = (node, from, to) => (node.location = { startOffset: from, length: to - from });
const children = (node) => node.childNodes().filter(Boolean);
const begin = (node) => node.location.startOffset;
const end = (location) => location.startOffset + location.length;
const place = (location) => location && [location.startOffset, end(location)];
const flat = (list) => list.flatMap((one) => (one.constructor.name === "KeywordHashNode" ? one.elements : [one]));

async function main() {
  const { loadPrism } = await import(path.join(process.env.NODE_PATH, "@ruby", "prism", "src", "index.js"));
  const parse = await loadPrism();
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const text = Buffer.from(line, "base64");
    const result = parse(text.toString());
    const edges = new Edges(text);
    if (result.errors.length) {
      console.log("error");
    } else {
      const tree = regrouped(result.value, text);
      edges.group(tree);
      edges.visit(tree);
      const characters = (byte) => [...text.subarray(0, byte).toString()].length;
      for (const [relation, ...bytes] of edges.found) console.log(relation, ...bytes.map(characters));
    }
    console.log("end");
  }
}

main();
