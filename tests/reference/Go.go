// The edges of Go functions by go/ast. Each line read is a function's UTF-8 in Base64; for each, lines
// `relation head start end` are written, or `error`, and then `end`. Offsets count characters.
package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"unicode/utf8"
)

const frame = "package p\n"

type function struct {
	code  string // in its frame
	file  *token.File
	edges []string
	types map[ast.Node]bool // unions of types in constraints, such as `int | string`, which are no operators
}

func main() {
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		code, err := base64.StdEncoding.DecodeString(strings.TrimSpace(line))
		if err != nil {
			panic(err)
		}
		files, text := token.NewFileSet(), frame+string(code)
		tree, err := parser.ParseFile(files, "", text, parser.SkipObjectResolution)
		if err != nil {
			fmt.Println("error")
		} else {
			found := function{code: text, file: files.File(tree.Pos()), types: map[ast.Node]bool{}}
			ast.Inspect(tree, found.visit)
			for _, edge := range found.edges {
				fmt.Println(edge)
			}
		}
		fmt.Println("end")
	}
}

// head is where the first token of a node is that is no bracket which only groups.
func head(node ast.Node) token.Pos {
	switch node := node.(type) {
	case *ast.ParenExpr:
		return head(node.X)
	case *ast.BinaryExpr:
		return head(node.X)
	case *ast.SelectorExpr:
		return head(node.X)
	case *ast.CallExpr:
		return head(node.Fun)
	case *ast.IndexExpr:
		return head(node.X)
	case *ast.IndexListExpr:
		return head(node.X)
	case *ast.SliceExpr:
		return head(node.X)
	case *ast.TypeAssertExpr:
		return head(node.X)
	case *ast.KeyValueExpr:
		return head(node.Key)
	case *ast.AssignStmt:
		return head(node.Lhs[0])
	case *ast.ExprStmt:
		return head(node.X)
	case *ast.IncDecStmt:
		return head(node.X)
	case *ast.SendStmt:
		return head(node.Chan)
	case *ast.CompositeLit:
		if node.Type != nil {
			return head(node.Type)
		}
	}
	return node.Pos()
}

// tail is where the last token of a called expression ends that is no bracket which only groups.
func tail(node ast.Node) token.Pos {
	switch node := node.(type) {
	case *ast.ParenExpr:
		return tail(node.X)
	case *ast.StarExpr:
		return tail(node.X)
	case *ast.UnaryExpr:
		return tail(node.X)
	case *ast.ChanType:
		return tail(node.Value)
	}
	return node.End()
}

// add adds the edge from a head to a dependent that begins after it.
func (f *function) add(relation string, at, start, end token.Pos) {
	if at < start || (relation == "Call:func->args" && at == start) {
		f.edges = append(f.edges, fmt.Sprint(relation, f.offset(at), f.offset(start), f.offset(end)))
	}
}

func (f *function) offset(place token.Pos) string {
	return fmt.Sprint(" ", utf8.RuneCountInString(f.code[len(frame):f.file.Offset(place)]))
}

// toNode adds the edge to a node, without brackets that only group.
func (f *function) toNode(relation string, at token.Pos, node ast.Node) {
	for group, ok := node.(*ast.ParenExpr); ok; group, ok = node.(*ast.ParenExpr) {
		node = group.X
	}
	f.add(relation, at, node.Pos(), node.End())
}

// toAll adds the edge to several nodes, from the first to the last.
func (f *function) toAll(relation string, at token.Pos, nodes []ast.Expr) {
	if len(nodes) == 1 {
		f.toNode(relation, at, nodes[0])
	} else if len(nodes) > 0 {
		f.add(relation, at, nodes[0].Pos(), nodes[len(nodes)-1].End())
	}
}

// toBody adds the edge from what a case is about to its statements.
func (f *function) toBody(about ast.Node, body []ast.Stmt) {
	if len(body) > 0 {
		f.add("Case:test->body", head(about), body[0].Pos(), body[len(body)-1].End())
	}
}

// next is the first place of a text from one position on.
func (f *function) next(text string, from token.Pos) token.Pos {
	begin := f.file.Offset(from)
	return from + token.Pos(strings.Index(f.code[begin:], text))
}

func (f *function) visit(node ast.Node) bool {
	switch node := node.(type) {
	case *ast.AssignStmt:
		switch node.Tok {
		case token.ASSIGN, token.DEFINE:
			f.toAll("Assign:target->value", head(node.Lhs[0]), node.Rhs)
		default:
			f.toAll("AugAssign:target->value", head(node.Lhs[0]), node.Rhs)
		}
	case *ast.ValueSpec:
		f.toAll("Assign:target->value", head(node.Names[0]), node.Values)
	case *ast.SelectorExpr:
		f.toNode("Attribute:value->attr", head(node.X), node.Sel)
	case *ast.CallExpr:
		if node.Ellipsis.IsValid() { // the dots behind the last argument are part of it
			f.add("Call:func->args", tail(node.Fun), node.Args[0].Pos(), node.Ellipsis+3)
			f.add("Spread:value->spread", head(node.Args[len(node.Args)-1]), node.Ellipsis, node.Ellipsis+3)
		} else {
			f.toAll("Call:func->args", tail(node.Fun), node.Args)
		}
	case *ast.CaseClause:
		if len(node.List) > 0 {
			f.toBody(node.List[0], node.Body)
		}
	case *ast.CommClause:
		if node.Comm != nil {
			f.toBody(node.Comm, node.Body)
		}
	case *ast.SendStmt:
		f.toNode("Send:channel->value", head(node.Chan), node.Value)
	case *ast.TypeSpec:
		if node.Assign.IsValid() {
			f.toNode("Assign:target->value", node.Name.Pos(), node.Type)
		}
	case *ast.DeferStmt:
		f.toNode("Defer:defer->call", node.Defer, node.Call)
	case *ast.GoStmt:
		f.toNode("Go:go->call", node.Go, node.Call)
	case *ast.KeyValueExpr:
		f.toNode("Dict:key->value", head(node.Key), node.Value)
	case *ast.ForStmt:
		f.loop(node)
	case *ast.RangeStmt:
		f.overRange(node)
	case *ast.IfStmt:
		f.toNode("If:if->test", node.If, node.Cond)
		f.toNode("If:if->body", node.If, node.Body)
		f.toNode("If:test->body", head(node.Cond), node.Body)
		if node.Else != nil {
			at := f.next("else", node.Body.End())
			f.add("If:if->else", node.If, at, at+4)
			f.toNode("If:test->orelse", head(node.Cond), node.Else)
			f.toNode("If:body->orelse", node.Body.Pos(), node.Else)
		}
	case *ast.BinaryExpr:
		if !f.types[node] {
			f.toNode("InfixExpr:left->right", head(node.X), node.Y)
		}
	case *ast.LabeledStmt:
		if empty, ok := node.Stmt.(*ast.EmptyStmt); !ok || !empty.Implicit {
			f.toNode("LabeledStatement:label->body", node.Label.Pos(), node.Stmt)
		}
	case *ast.FuncLit:
		if parameters := node.Type.Params.List; len(parameters) > 0 {
			f.toNode("Lambda:params->body", head(parameters[0]), node.Body)
		}
	case *ast.IndexExpr:
		f.toNode("Subscript:value->slice", head(node.X), node.Index)
	case *ast.IndexListExpr:
		f.toAll("Subscript:value->slice", head(node.X), node.Indices)
	case *ast.ReturnStmt:
		f.toAll("Return:return->value", node.Return, node.Results)
	case *ast.UnaryExpr:
		if node.Op != token.TILDE { // of a type
			f.toNode("UnaryOp:op->operand", node.OpPos, node.X)
		}
	case *ast.SliceExpr:
		f.slice(node)
	case *ast.SwitchStmt:
		f.choice(node.Switch, node.Tag, node.Body)
	case *ast.SelectStmt:
		f.choice(node.Select, nil, node.Body)
	case *ast.TypeSwitchStmt:
		switch inspected := node.Assign.(type) {
		case *ast.ExprStmt:
			f.choice(node.Switch, inspected.X, node.Body)
		case *ast.AssignStmt:
			f.choice(node.Switch, inspected.Rhs[0], node.Body)
		}
	case *ast.FuncType:
		if node.TypeParams != nil {
			f.unions(node.TypeParams)
		}
	case *ast.InterfaceType:
		f.unions(node.Methods)
	}
	return true
}

func (f *function) unions(fields *ast.FieldList) {
	for _, field := range fields.List {
		for union, ok := field.Type.(*ast.BinaryExpr); ok; union, ok = union.X.(*ast.BinaryExpr) {
			f.types[union] = true
		}
	}
}

func (f *function) loop(node *ast.ForStmt) {
	until := node.Body.Lbrace
	if node.Cond != nil {
		until = node.Cond.Pos()
	}
	counts := node.Init != nil || node.Post != nil ||
		strings.Contains(f.code[f.file.Offset(node.For):f.file.Offset(until)], ";")
	if !counts {
		f.toNode("While:while->body", node.For, node.Body)
		if node.Cond != nil {
			f.toNode("While:while->test", node.For, node.Cond)
			f.toNode("While:test->body", head(node.Cond), node.Body)
		}
		return
	}
	f.toNode("For:for->body", node.For, node.Body)
	if node.Init != nil {
		f.toNode("For:for->initializers", node.For, node.Init)
		f.toNode("For:initializers->body", head(node.Init), node.Body)
		if node.Cond != nil {
			f.toNode("For:initializers->test", head(node.Init), node.Cond)
		}
		if node.Post != nil {
			f.toNode("For:initializers->updaters", head(node.Init), node.Post)
		}
	}
	if node.Cond != nil {
		f.toNode("For:for->test", node.For, node.Cond)
		f.toNode("For:test->body", head(node.Cond), node.Body)
		if node.Post != nil {
			f.toNode("For:test->updaters", head(node.Cond), node.Post)
		}
	}
	if node.Post != nil {
		f.toNode("For:for->updaters", node.For, node.Post)
		f.toNode("For:updaters->body", head(node.Post), node.Body)
	}
}

func (f *function) overRange(node *ast.RangeStmt) {
	f.toNode("For:for->iter", node.For, node.X)
	f.toNode("For:for->body", node.For, node.Body)
	f.toNode("For:iter->body", head(node.X), node.Body)
	targets := []ast.Expr{}
	if node.Key != nil {
		targets = append(targets, node.Key)
	}
	if node.Value != nil {
		targets = append(targets, node.Value)
	}
	if len(targets) > 0 {
		f.toAll("For:for->target", node.For, targets)
		f.toNode("For:target->iter", head(targets[0]), node.X)
		f.toNode("For:target->body", head(targets[0]), node.Body)
	}
}

func (f *function) slice(node *ast.SliceExpr) {
	begin, end := f.next(":", node.Lbrack), node.Rbrack
	if node.Low != nil {
		begin = node.Low.Pos()
		if node.High != nil {
			f.toNode("Slice:lower->upper", head(node.Low), node.High)
		}
	}
	switch {
	case node.Max != nil:
		end = node.Max.End()
	case node.High != nil:
		end = node.High.End()
	default:
		end = node.Lbrack + token.Pos(strings.LastIndex(f.code[f.file.Offset(node.Lbrack):f.file.Offset(node.Rbrack)], ":")) + 1
	}
	f.add("Subscript:value->slice", head(node.X), begin, end)
}

func (f *function) choice(word token.Pos, inspected ast.Expr, body *ast.BlockStmt) {
	if inspected != nil {
		f.toNode("Switch:switch->expr", word, inspected)
	}
	if len(body.List) == 0 {
		return
	}
	start, end := body.List[0].Pos(), body.List[len(body.List)-1].End()
	f.add("Switch:switch->statement", word, start, end)
	if inspected != nil {
		f.add("Switch:expr->statement", head(inspected), start, end)
	}
}
