"""HAVING, DISTINCT, ORDER BY and LIMIT: which released rows the frame shows, and in which order."""

from __future__ import annotations

from sqlglot import exp
from tacit.errors import TypeMismatchError, UnsupportedSqlError

from .constants import is_constant
from .dialect import kind_of
from .released import Leaves, ReleasedReader
from .selection import Aliases, Selection
from .statement import bare
from .subqueries import with_public_values
from .workload import Arrangement


def read_arrangement(selection: Selection, released: ReleasedReader) -> Arrangement | None:
    """What becomes of the released rows of a SELECT; None where they are shown as they come."""
    args = selection.select.args
    if not any(args.get(clause) for clause in ("having", "order", "limit", "offset", "distinct")):
        return None
    if args.get("distinct") and args["distinct"].args.get("on"):
        raise selection.error(UnsupportedSqlError, args["distinct"], "DISTINCT ON is not supported", "write DISTINCT")
    leaves = Leaves()
    clause = args.get("having")
    condition = with_public_values(selection.relations, clause.this) if clause is not None else None
    having = _condition(condition, selection, released, leaves) if condition is not None else ""
    terms = args["order"].expressions if args.get("order") else []
    order = ", ".join(_ordered(term, selection, released, leaves) for term in _terms(terms, selection))
    limit, offset = (_whole(args.get(clause), selection) for clause in ("limit", "offset"))
    return Arrangement(tuple(leaves.numbers), having, order, limit, offset or 0, bool(args.get("distinct")))


def _condition(node: exp.Expr, selection: Selection, released: ReleasedReader, leaves: Leaves) -> str:
    """HAVING. What is no condition would be cast to one outside the TRY, where it can fail."""
    sql = released.total(node, leaves, Aliases(len(selection.items), columns_first=False))
    type_ = released.type(node, sql, leaves)
    if kind_of(type_) not in ("truth", "null"):
        raise selection.error(
            TypeMismatchError, node, f"HAVING takes a condition, and this is a {type_}", "write HAVING count(*) > 0"
        )
    return sql


def _terms(terms: list[exp.Expr], selection: Selection) -> list[exp.Expr]:
    """ORDER BY ALL is by every item of the SELECT list, from left to right."""
    if len(terms) != 1 or not isinstance(terms[0].this, exp.Var) or terms[0].this.name != "ALL":
        return terms
    numbers = (exp.Literal.number(i + 1) for i in range(len(selection.items)))
    return [exp.Ordered(**{**terms[0].args, "this": number}) for number in numbers]


def _ordered(term: exp.Expr, selection: Selection, released: ReleasedReader, leaves: Leaves) -> str:
    """One term of ORDER BY. A name on its own is an alias before it is a column; inside an expression it is not."""
    if not isinstance(term, exp.Ordered) or isinstance(term.this, exp.Var):
        raise selection.error(UnsupportedSqlError, term, "this ORDER BY is not supported", "write ORDER BY column")
    node, items = bare(term.this), len(selection.items)
    item = None
    if isinstance(node, exp.Literal) and not node.is_string:
        item = selection.numbered(node)
    elif isinstance(node, exp.Column):
        item = selection.alias(node, Aliases(items, columns_first=False))
    sql = released.total(node, leaves, Aliases(items)) if item is None else f"o{item}"
    down = " DESC" if term.args.get("desc") else ""
    return f"{sql}{down} NULLS {'FIRST' if term.args.get('nulls_first') else 'LAST'}"


def _whole(node: exp.Expr | None, selection: Selection) -> int | None:
    """The number of LIMIT or OFFSET."""
    if node is None:
        return None
    count = node.expression if isinstance(node.args.get("expression"), exp.Expr) else node
    value = selection.constant(count) if is_constant(count) else None
    extra = [name for name, arg in node.args.items() if arg and name not in ("expression", "this", "offset")]
    if not isinstance(value, int) or isinstance(value, bool) or value < 0 or extra:
        raise selection.error(UnsupportedSqlError, node, "LIMIT and OFFSET take a whole number", "write LIMIT 10")
    return min(value, selection.batch.limits.rows)  # there are no more rows than that
