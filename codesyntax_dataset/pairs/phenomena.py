"""The phenomena: for each, when code is invalid, where its grammar says so, and how a function is
changed to be so.

Each holds an exchange with its reverse, such as `while` for `if` above a `break`, and `if` for
`while` above an `else`: so neither the words of a text nor what usually stands beside them tell
which of a pair is invalid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from codesyntax_dataset.pairs import places
from codesyntax_dataset.pairs.code import Code
from codesyntax_dataset.pairs.words import Site, exchanged

_PYTHON = "python"
_CURLY = "java", "javascript", "typescript", "php"
_SCRIPTS = "javascript", "typescript"
ALL = ("python", "java", "javascript", "typescript", "go", "php", "ruby", "rust")


@dataclass(frozen=True)
class Phenomenon:
    """`invalid`: the condition, in words; `source`: where the grammars of languages say so;
    `sites`: the changes."""

    name: str
    languages: tuple[str, ...]
    invalid: str
    source: str
    sites: Callable[[Code], Iterator[Site]]


_LOOP_OR_CONDITIONAL = """
python                        while_statement.while     if        control!  While:while->body
python                        for_statement.for         if        control!  For:for->body
python                        if_statement.if           while     elif      If:if->else
python                        if_statement.if           for       elif-in   If:if->else
java,javascript,typescript,php while_statement.while    if        control!  While:while->body
java,javascript,typescript,php if_statement.if          while     else      If:if->else
go                            if_statement.if           for       else      If:if->else
go                            for_statement.for         if        control!  While:while->body
ruby                          while.while               if|unless control!  While:while->body
ruby                          until.until               if|unless control!  While:while->body
ruby                          if.if                     while|until else    If:if->else
ruby                          unless.unless             while|until else    If:if->else
rust                          while_expression.while    if        control!  While:while->body
rust                          if_expression.if          while     else      If:if->else
"""

_WITH_OR_CONDITIONAL = """
python  with_statement.with  if   as!   With:item->body
python  if_statement.if      with else  If:if->else
"""

_ELSE_OR_FINALLY = """
python                          finally_clause.finally+: else:          no-handler! Try:body->finalbody
python                          else_clause.else+:       finally:|except: statement  If:if->else
python                          except_clause.except+:   else:          statement  Try:body->handler
java,javascript,typescript,php  finally_clause.finally   else           statement  Try:body->finalbody
java                            if_statement.else        finally        bare       If:if->else
javascript,typescript,php       else_clause.else         finally        bare       If:if->else
javascript,typescript           catch_clause.catch       else           bare       Try:body->handler
javascript,typescript           else_clause.else         catch          bare       If:if->else
ruby                            ensure.ensure            else           no-handler! Try:body->finalbody
ruby                            else.else                ensure|rescue  statement  If:if->else
"""

_HANDLER_OR_BRANCH = """
python                 except_clause.except     elif           expression  Try:body->handler
python                 elif_clause.elif         except         statement  If:test->orelse
javascript,typescript  catch_clause.catch       else+if        statement  Try:body->handler
javascript,typescript  else_clause.else+if      catch          name       If:if->else
ruby                   rescue.rescue            elsif|when     expression  Try:body->handler
ruby                   elsif.elsif              rescue|when    statement  If:if->else
ruby                   when.when                elsif|rescue   statement  Switch:switch->statement
"""

_BLOCK_HEADER = """
python                          try_statement.try   else      before     Try:body->handler
python                          else_clause.else    try       behind!    If:if->else
java,javascript,typescript,php  do_statement.do     try       behind     Do:body->test
java,javascript,typescript,php  do_statement.do     else      before     Do:body->test
java,javascript,typescript,php  try_statement.try   do        behind     Try:body->handler
java,javascript,typescript,php  try_statement.try   else      before     Try:body->handler
java                            if_statement.else   do|try    behind     If:if->else
javascript,typescript,php       else_clause.else    do|try    behind     If:if->else
"""

_SWITCH_OR_CONDITIONAL = """
java                       switch_expression.switch            if|while  case  Switch:switch->statement
javascript,typescript,php  switch_statement.switch             if|while  case  Switch:switch->statement
go                         expression_switch_statement.switch  if|for    case  Switch:switch->statement
rust                       match_expression.match              if|while  case  Switch:switch->statement
java,javascript,typescript,php,go  if_statement.if             switch    body  If:if->body
java,javascript,typescript,php     while_statement.while       switch    body  While:while->body
rust                               if_expression.if            match     body  If:if->body
ruby                               case.case                   if|while  case  Switch:switch->statement
"""

PHENOMENA = (
    Phenomenon(
        "loop-or-conditional",
        ALL,
        "`break` or `continue` is in no loop; `else` or `elif` follows a loop",
        "Python 7.9, 7.10, 8.1; JLS 14.9, 14.15, 14.16; ECMA-262 14.6, 14.8, 14.9; Go: If and Break statements; PHP: "
        "break, else; Ruby: control expressions; Rust reference 8.2.13, 8.2.15",
        exchanged(_LOOP_OR_CONDITIONAL),
    ),
    Phenomenon(
        "with-or-conditional",
        (_PYTHON,),
        "`as` stands in the header of `if`; `else` or `elif` follows `with`",
        "Python 8.1, 8.5",
        exchanged(_WITH_OR_CONDITIONAL),
    ),
    Phenomenon(
        "else-or-finally",
        (_PYTHON, *_CURLY, "ruby"),
        "`finally`, `ensure` or a bare handler follows no `try`; `else` follows nothing that may have it",
        "Python 8.1, 8.4; JLS 14.9, 14.20; ECMA-262 14.6, 14.15; PHP: if, exceptions; Ruby: exceptions",
        exchanged(_ELSE_OR_FINALLY),
    ),
    Phenomenon(
        "handler-or-branch",
        (_PYTHON, *_SCRIPTS, "ruby"),
        "a handler follows a conditional, or a further branch of a conditional follows `try`",
        "Python 8.1, 8.4; ECMA-262 14.6, 14.15; Ruby: if, case, rescue",
        exchanged(_HANDLER_OR_BRANCH),
    ),
    Phenomenon(
        "block-header",
        (_PYTHON, *_CURLY),
        "`try` has no handler, `do` no condition behind its block, or `else` no `if` before it",
        "Python 8.4; JLS 14.13, 14.20; ECMA-262 14.7.2, 14.15; PHP: do-while, exceptions",
        exchanged(_BLOCK_HEADER),
    ),
    Phenomenon(
        "switch-or-conditional",
        (*_CURLY, "go", "ruby", "rust"),
        "`case`, `when` or an arm is in no switch; the block of a switch has no cases",
        "JLS 14.11; ECMA-262 14.12; Go: Switch statements; PHP: switch; Ruby: case; Rust reference 8.2.16",
        exchanged(_SWITCH_OR_CONDITIONAL),
    ),
    Phenomenon(
        "async-function",
        (_PYTHON,),
        "`await`, `async for` or `async with` is in a function that is not asynchronous; `yield from`, or `return` "
        "with a value beside `yield`, is in one that is",
        "Python 6.2.9, 6.4, 8.9",
        places.async_functions,
    ),
    Phenomenon(
        "await-or-yield",
        (_PYTHON, *_SCRIPTS),
        "`await` is in a function that is not asynchronous; `yield from`, in JavaScript `yield`, in one that is",
        "Python 6.2.9, 6.4; ECMA-262 15.5, 15.8",
        places.await_or_yield,
    ),
    Phenomenon(
        "conditional-expression",
        (_PYTHON, *_CURLY, "ruby"),
        "a conditional expression has no alternative, or an alternative has no conditional expression",
        "Python 6.13; JLS 15.25; ECMA-262 13.14; PHP: ternary operator; Ruby: ternary if",
        places.conditional_expressions,
    ),
    Phenomenon(
        "closer",
        ALL,
        "a bracket is closed by one of another kind, after others that are nested in it",
        "Python 6.2, 6.3; JLS 3.11; ECMA-262 12.8; Go: Operators and punctuation; PHP and Ruby: their grammars; Rust "
        "reference 3.1",
        places.closers,
    ),
    Phenomenon(
        "closer-order",
        ALL,
        "two brackets are closed in the order in which they were opened",
        "as for closer",
        places.closer_order,
    ),
    Phenomenon(
        "type-bracket",
        ("java", "typescript", "rust"),
        "type arguments are closed by a bracket of another kind, or another bracket as type arguments are",
        "JLS 4.5.1; TypeScript: type arguments; Rust reference 12.5",
        places.type_brackets,
    ),
    Phenomenon(
        "separator",
        (*_CURLY, "go", "rust"),
        "a semicolon stands between elements of a list, or a comma between statements",
        "JLS 10.6, 14.2, 15.12; ECMA-262 13.2.5, 14.2; Go: Semicolons; PHP: instruction separation; Rust reference 8.1",
        places.separators,
    ),
    Phenomenon(
        "indentation",
        (_PYTHON,),
        "a statement is deeper than the block that it follows in, or ends a block that goes on",
        "Python 2.1.8",
        places.indentation,
    ),
    Phenomenon(
        "argument-order",
        (_PYTHON,),
        "a positional argument follows one with a name, or a parameter without a default one with it",
        "Python 6.3.4, 8.7",
        places.argument_order,
    ),
    Phenomenon(
        "distinct-parameters",
        (_PYTHON, "ruby", "php", *_SCRIPTS),
        "two parameters have the same name (in JavaScript those of methods and arrow functions)",
        "Python 8.7; ECMA-262 15.3.1, 15.4.1; PHP: function arguments; Ruby: methods",
        places.distinct_parameters,
    ),
    Phenomenon(
        "distinct-keywords",
        (_PYTHON,),
        "two arguments of a call have the same name",
        "Python 6.3.4",
        places.distinct_keywords,
    ),
    Phenomenon(
        "declaration-order",
        (_PYTHON,),
        "a name is used before it is declared `global` or `nonlocal`",
        "Python 7.12, 7.13",
        places.declaration_order,
    ),
)
