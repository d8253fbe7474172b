import com.sun.source.tree.*;
import com.sun.source.util.*;
import java.io.*;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.regex.Pattern;
import javax.tools.*;

/** The edges of Java methods by the compiler's own tree: a method in Base64 on each line in, its edges out. */
class Java {
  static String text;
  static int shift;
  static CompilationUnitTree unit;
  static SourcePositions places;
  static StringBuilder out;

  public static void main(String[] arguments) throws Exception {
    var lines = new BufferedReader(new InputStreamReader(System.in));
    var compiler = ToolProvider.getSystemJavaCompiler();
    for (String line; (line = lines.readLine()) != null; System.out.flush()) {
      String code = new String(Base64.getDecoder().decode(line), StandardCharsets.UTF_8);
      var classes = new LinkedHashSet<String>(List.of("A"));
      var named = Pattern.compile("(\\w+)\\s*\\(").matcher(code.split("\\{", 2)[0]);
      while (named.find()) classes.add(named.group(1)); // a constructor has the name of its class
      out = new StringBuilder();
      if (classes.stream().anyMatch(name -> isRead(compiler, "class " + name + " {", code))) new Edges().scan(unit, null);
      else out.append("error\n");
      System.out.println(out + "end");
    }
  }

  static boolean isRead(JavaCompiler compiler, String before, String code) {
    text = before + code + "\n}";
    shift = before.length();
    var file = new SimpleJavaFileObject(URI.create("string:///A.java"), JavaFileObject.Kind.SOURCE) {
      public CharSequence getCharContent(boolean ignored) { return text; }
    };
    var errors = new DiagnosticCollector<JavaFileObject>();
    var task = (JavacTask) compiler.getTask(null, null, errors, List.of("-proc:none", "-XDallowStringFolding=false"), null, List.of(file));
    try {
      unit = task.parse().iterator().next();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    places = Trees.instance(task).getSourcePositions();
    var beyond = new Beyond();
    beyond.scan(unit, null);
    return !beyond.found && errors.getDiagnostics().stream().noneMatch(one -> one.getKind() == Diagnostic.Kind.ERROR);
  }

  /** Whether there is what the compiler's parser reads, but not the language: later passes of the compiler refuse it. */
  static class Beyond extends TreeScanner<Void, Void> {
    boolean found;

    void target(Tree tree) {
      Tree one = inner(tree);
      found |= !(one instanceof IdentifierTree || one instanceof MemberSelectTree || one instanceof ArrayAccessTree);
    }

    void first(Tree tree) {
      found |= tree instanceof LambdaExpressionTree;
    }

    public Void visitAssignment(AssignmentTree node, Void none) {
      target(node.getVariable());
      return super.visitAssignment(node, none);
    }

    public Void visitCompoundAssignment(CompoundAssignmentTree node, Void none) {
      target(node.getVariable());
      return super.visitCompoundAssignment(node, none);
    }

    public Void visitMemberSelect(MemberSelectTree node, Void none) {
      first(node.getExpression());
      return super.visitMemberSelect(node, none);
    }

    public Void visitMemberReference(MemberReferenceTree node, Void none) {
      first(node.getQualifierExpression());
      return super.visitMemberReference(node, none);
    }

    public Void visitArrayAccess(ArrayAccessTree node, Void none) {
      first(node.getExpression());
      return super.visitArrayAccess(node, none);
    }

    public Void visitCase(CaseTree node, Void none) { // a pattern, in versions that have none
      found |= node.getExpressions().stream().anyMatch(one -> one instanceof MethodInvocationTree);
      return super.visitCase(node, none);
    }

    public Void visitNewClass(NewClassTree node, Void none) {
      first(node.getEnclosingExpression());
      return super.visitNewClass(node, none);
    }
  }

  /** The compiler leaves out annotations of the type of a method reference, which are part of it (JLS 15.13). */
  static int start(Tree tree) {
    int start = (int) places.getStartPosition(unit, tree);
    return tree instanceof MemberReferenceTree one ? start(one.getQualifierExpression())
        : tree instanceof AnnotatedTypeTree one ? Math.min(start, start(one.getAnnotations().get(0)))
        : start;
  }

  static int end(Tree tree) { return (int) places.getEndPosition(unit, tree); }
  static int at(int place) { return text.codePointCount(shift, place); }

  static Tree inner(Tree tree) {
    while (tree instanceof ParenthesizedTree one) tree = one.getExpression();
    return tree;
  }

  /** Where the first token of a tree begins that is no bracket that only groups. */
  static int head(Tree tree) {
    while (true) {
      Tree first =
          tree instanceof ParenthesizedTree one ? one.getExpression()
          : tree instanceof BinaryTree one ? one.getLeftOperand()
          : tree instanceof AssignmentTree one ? one.getVariable()
          : tree instanceof CompoundAssignmentTree one ? one.getVariable()
          : tree instanceof MemberSelectTree one ? one.getExpression()
          : tree instanceof MethodInvocationTree one ? one.getMethodSelect()
          : tree instanceof ArrayAccessTree one ? one.getExpression()
          : tree instanceof ConditionalExpressionTree one ? one.getCondition()
          : tree instanceof InstanceOfTree one ? one.getExpression()
          : tree instanceof ExpressionStatementTree one ? one.getExpression()
          : tree instanceof NewClassTree one ? one.getEnclosingExpression()
          : tree instanceof UnaryTree one && start(one.getExpression()) == start(one) ? one.getExpression()
          : tree instanceof UnaryTree one && one.getKind().name().startsWith("POSTFIX") ? one.getExpression()
          : null;
      if (first == null) return start(tree);
      tree = first;
    }
  }

  static class Edges extends TreeScanner<Void, Void> {
    void edge(String relation, int head, int first, int last) {
      if (head >= 0 && first >= shift && head < first && first < last)
        out.append(relation + " " + at(head) + " " + at(first) + " " + at(last) + "\n");
    }

    void edge(String relation, int head, Tree dependent) {
      if (dependent != null) edge(relation, head, start(inner(dependent)), end(inner(dependent)));
    }

    void edge(String relation, Tree head, Tree dependent) {
      if (head != null) edge(relation, head(head), dependent);
    }

    void edge(String relation, int head, List<? extends Tree> dependents) {
      if (dependents.size() == 1) edge(relation, head, dependents.get(0));
      else if (!dependents.isEmpty())
        edge(relation, head, start(dependents.get(0)), end(dependents.get(dependents.size() - 1)));
    }

    /** Where the word after a place begins, comments and white space between them aside. */
    int word(int place, String word) {
      while (!text.startsWith(word, place)) {
        if (text.startsWith("//", place)) place = text.indexOf('\n', place);
        else if (text.startsWith("/*", place)) place = text.indexOf("*/", place) + 1;
        place++;
      }
      return place;
    }

    public Void visitAssignment(AssignmentTree node, Void none) {
      edge("Assign:target->value", node.getVariable(), node.getExpression());
      return super.visitAssignment(node, none);
    }

    public Void visitCompoundAssignment(CompoundAssignmentTree node, Void none) {
      edge("AugAssign:target->value", node.getVariable(), node.getExpression());
      return super.visitCompoundAssignment(node, none);
    }

    public Void visitVariable(VariableTree node, Void none) {
      boolean constant = node.getInitializer() instanceof NewClassTree made && isConstant(made);
      if (node.getInitializer() != null && !constant) edge("Assign:target->value", name(node), node.getInitializer());
      scan(node.getModifiers(), none);
      if (types.add(node.getType())) scan(node.getType(), none); // one of several variables
      return scan(node.getInitializer(), none);
    }

    final Set<Tree> types = Collections.newSetFromMap(new IdentityHashMap<>());

    /** The name comes after the type, whose brackets may come after the name. */
    int name(VariableTree node) {
      if (node.getInitializer() != null) // right in front of `=`: the type may be that of several
        return text.lastIndexOf(node.getName().toString(), start(node.getInitializer()) - 1);
      Tree type = node.getType();
      while (type instanceof ArrayTypeTree array) type = array.getType();
      int place = end(node.getModifiers()) > 0 ? end(node.getModifiers()) : start(node);
      if (type != null && end(type) > 0) place = end(type);
      else if (text.startsWith("var ", word(place, "var"))) place = word(place, "var") + 3;
      return word(place, node.getName().toString());
    }

    public Void visitAnnotation(AnnotationTree node, Void none) {
      scan(node.getAnnotationType(), none);
      for (ExpressionTree argument : node.getArguments())
        scan(argument instanceof AssignmentTree pair ? pair.getExpression() : argument, none);
      return null;
    }

    public Void visitMemberReference(MemberReferenceTree node, Void none) {
      boolean made = node.getMode() == MemberReferenceTree.ReferenceMode.NEW;
      int end = end(node), length = made ? "new".length() : node.getName().length();
      edge("Attribute:value->attr", head(node.getQualifierExpression()), end - length, end);
      return super.visitMemberReference(node, none);
    }

    public Void visitMemberSelect(MemberSelectTree node, Void none) {
      if (node.getIdentifier().contentEquals("class")) return super.visitMemberSelect(node, none);
      int end = end(node);
      edge("Attribute:value->attr", head(node.getExpression()), end - node.getIdentifier().length(), end);
      return super.visitMemberSelect(node, none);
    }

    public Void visitMethodInvocation(MethodInvocationTree node, Void none) {
      edge("Call:func->args", end(node.getMethodSelect()), node.getArguments());
      return super.visitMethodInvocation(node, none);
    }

    /** Whether it is the value of a constant of an enum, which is made without a word. */
    boolean isConstant(NewClassTree node) {
      return node.getEnclosingExpression() == null && !text.startsWith("new", start(node));
    }

    public Void visitNewClass(NewClassTree node, Void none) {
      Tree type = node.getIdentifier() instanceof ParameterizedTypeTree one ? one.getType() : node.getIdentifier();
      if (!isConstant(node)) edge("New:class->args", end(type), node.getArguments());
      return super.visitNewClass(node, none);
    }

    public Void visitDoWhileLoop(DoWhileLoopTree node, Void none) {
      edge("Do:do->body", start(node), node.getStatement());
      edge("Do:do->test", start(node), node.getCondition());
      edge("Do:body->test", node.getStatement(), node.getCondition());
      return super.visitDoWhileLoop(node, none);
    }

    public Void visitEnhancedForLoop(EnhancedForLoopTree node, Void none) {
      int target = name(node.getVariable());
      edge("For:for->target", start(node), target, target + node.getVariable().getName().length());
      edge("For:for->iter", start(node), node.getExpression());
      edge("For:for->body", start(node), node.getStatement());
      edge("For:target->iter", target, node.getExpression());
      edge("For:target->body", target, node.getStatement());
      edge("For:iter->body", node.getExpression(), node.getStatement());
      return super.visitEnhancedForLoop(node, none);
    }

    public Void visitForLoop(ForLoopTree node, Void none) {
      var begin = node.getInitializer();
      var update = node.getUpdate();
      int[] span = null;
      if (!begin.isEmpty()) {
        int last = end(begin.get(begin.size() - 1));
        while (text.charAt(last - 1) == ';' || Character.isWhitespace(text.charAt(last - 1))) last--;
        span = new int[] {start(begin.get(0)), last};
        edge("For:for->initializers", start(node), span[0], span[1]);
        int head = begin.get(0) instanceof VariableTree ? span[0] : head(begin.get(0));
        edge("For:initializers->test", head, node.getCondition());
        edge("For:initializers->updaters", head, expressions(update));
        edge("For:initializers->body", head, node.getStatement());
      }
      edge("For:for->test", start(node), node.getCondition());
      edge("For:for->updaters", start(node), expressions(update));
      edge("For:for->body", start(node), node.getStatement());
      if (node.getCondition() != null) {
        edge("For:test->updaters", head(node.getCondition()), expressions(update));
        edge("For:test->body", node.getCondition(), node.getStatement());
      }
      if (!update.isEmpty()) edge("For:updaters->body", update.get(0), node.getStatement());
      return super.visitForLoop(node, none);
    }

    List<Tree> expressions(List<? extends ExpressionStatementTree> statements) {
      return statements.stream().map(one -> (Tree) one.getExpression()).toList();
    }

    public Void visitIf(IfTree node, Void none) {
      Tree body = node.getThenStatement(), other = node.getElseStatement();
      edge("If:if->test", start(node), node.getCondition());
      edge("If:if->body", start(node), body);
      edge("If:test->body", node.getCondition(), body);
      if (other != null) {
        int place = word(end(body), "else");
        edge("If:if->else", start(node), place, place + 4);
        edge("If:test->orelse", node.getCondition(), other);
        edge("If:body->orelse", body, other);
      }
      return super.visitIf(node, none);
    }

    public Void visitConditionalExpression(ConditionalExpressionTree node, Void none) {
      edge("IfExp:test->body", node.getCondition(), node.getTrueExpression());
      edge("IfExp:test->orelse", node.getCondition(), node.getFalseExpression());
      edge("IfExp:body->orelse", node.getTrueExpression(), node.getFalseExpression());
      return super.visitConditionalExpression(node, none);
    }

    public Void visitBinary(BinaryTree node, Void none) {
      edge("InfixExpr:left->right", node.getLeftOperand(), node.getRightOperand());
      return super.visitBinary(node, none);
    }

    public Void visitInstanceOf(InstanceOfTree node, Void none) {
      Tree type = node.getPattern() instanceof BindingPatternTree one ? one.getVariable().getType() : node.getType();
      edge("InstanceofExpr:expr->type", node.getExpression(), type);
      return super.visitInstanceOf(node, none);
    }

    public Void visitLabeledStatement(LabeledStatementTree node, Void none) {
      edge("LabeledStatement:label->body", start(node), node.getStatement());
      return super.visitLabeledStatement(node, none);
    }

    public Void visitLambdaExpression(LambdaExpressionTree node, Void none) {
      if (!node.getParameters().isEmpty())
        edge("Lambda:params->body", start(node.getParameters().get(0)), node.getBody());
      return super.visitLambdaExpression(node, none);
    }

    public Void visitArrayAccess(ArrayAccessTree node, Void none) {
      edge("Subscript:value->slice", node.getExpression(), node.getIndex());
      return super.visitArrayAccess(node, none);
    }

    void cases(Tree node, ExpressionTree value, List<? extends CaseTree> cases) {
      edge("Switch:switch->expr", start(node), value);
      edge("Switch:switch->statement", start(node), cases);
      if (!cases.isEmpty()) edge("Switch:expr->statement", head(value), cases);
    }

    public Void visitCase(CaseTree node, Void none) {
      var body = node.getBody() == null ? node.getStatements() : List.of(node.getBody());
      if (!node.getExpressions().isEmpty() && !body.isEmpty()) {
        int last = end(body.get(body.size() - 1));
        if (node.getBody() instanceof ExpressionTree) last = word(last, ";") + 1;
        edge("Case:test->body", head(node.getExpressions().get(0)), start(body.get(0)), last);
      }
      return super.visitCase(node, none);
    }

    public Void visitSwitch(SwitchTree node, Void none) {
      cases(node, node.getExpression(), node.getCases());
      return super.visitSwitch(node, none);
    }

    public Void visitSwitchExpression(SwitchExpressionTree node, Void none) {
      cases(node, node.getExpression(), node.getCases());
      return super.visitSwitchExpression(node, none);
    }

    public Void visitTry(TryTree node, Void none) {
      var handlers = node.getCatches();
      edge("Try:body->handler", head(node.getBlock()), handlers);
      edge("Try:body->finalbody", node.getBlock(), node.getFinallyBlock());
      if (!handlers.isEmpty()) edge("Try:handler->finalbody", handlers.get(0), node.getFinallyBlock());
      if (!node.getResources().isEmpty()) {
        Tree first = node.getResources().get(0);
        edge("With:item->body", first instanceof VariableTree one ? one.getInitializer() : first, node.getBlock());
      }
      return super.visitTry(node, none);
    }

    public Void visitWhileLoop(WhileLoopTree node, Void none) {
      edge("While:while->test", start(node), node.getCondition());
      edge("While:while->body", start(node), node.getStatement());
      edge("While:test->body", node.getCondition(), node.getStatement());
      return super.visitWhileLoop(node, none);
    }

    public Void visitReturn(ReturnTree node, Void none) {
      edge("Return:return->value", start(node), node.getExpression());
      return super.visitReturn(node, none);
    }

    public Void visitThrow(ThrowTree node, Void none) {
      edge("Raise:raise->value", start(node), node.getExpression());
      return super.visitThrow(node, none);
    }

    public Void visitUnary(UnaryTree node, Void none) {
      if (!node.getKind().name().endsWith("CREMENT")) edge("UnaryOp:op->operand", start(node), node.getExpression());
      return super.visitUnary(node, none);
    }

    /** A number may have its sign in it. */
    public Void visitLiteral(LiteralTree node, Void none) {
      if (text.charAt(start(node)) == '-') {
        int number = start(node) + 1;
        while (Character.isWhitespace(text.charAt(number))) number++;
        edge("UnaryOp:op->operand", start(node), number, end(node));
      }
      return null;
    }

    public Void visitYield(YieldTree node, Void none) {
      edge("Yield:yield->value", start(node), node.getValue());
      return super.visitYield(node, none);
    }
  }
}
