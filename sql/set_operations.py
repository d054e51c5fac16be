"""INTERSECT, EXCEPT and UNION of the units that private rows belong to, as SELECTs that look rows up."""

from __future__ import annotations

from sqlglot import exp

_LEFT, _RIGHT = "tacit left", "tacit right"


def as_select(query: exp.Expr) -> exp.Expr:
    """INTERSECT or EXCEPT of one column as SELECT DISTINCT … WHERE [NOT] EXISTS …; any other query as it is.

    Set operations take NULL for a value, and EXISTS does not. Private rows can only be looked up by their unit, and
    those without one are left out, so there is no NULL to be found.
    """
    plain = isinstance(query, exp.Intersect | exp.Except) and query.args.get("distinct", True)
    if not plain or not isinstance(query, exp.SetOperation) or len(query.selects) != 1:
        return query
    name = query.selects[0].alias_or_name
    if not name or any(value for key, value in query.args.items() if key in ("order", "limit", "offset", "with_")):
        return query
    same = exp.EQ(this=_column(name, _RIGHT), expression=_column(name, _LEFT))
    found = exp.Exists(this=_from(query.expression, name, _RIGHT, [exp.Literal.number(1)], same))
    condition = found if isinstance(query, exp.Intersect) else exp.Not(this=found)
    return _from(query.this, name, _LEFT, [_column(name, _LEFT)], condition, distinct=True)


def in_two(union: exp.Union) -> tuple[exp.Expr, exp.Expr]:
    """UNION without ALL as two sets that share nothing: the left one, and what the right one has beside it."""
    rest = exp.Except(this=union.expression.copy(), expression=union.this.copy(), distinct=True)
    name = union.selects[0].alias_or_name
    if len(union.selects) != 1 or not name:
        return union.this, rest
    return _from(union.this, name, _LEFT, [_column(name, _LEFT)], distinct=True), rest


def _column(name: str, table: str) -> exp.Column:
    return exp.column(name, table=table, quoted=True)


def _from(
    query: exp.Expr,
    name: str,
    alias: str,
    items: list[exp.Expr],
    condition: exp.Expr | None = None,
    *,
    distinct: bool = False,
) -> exp.Select:
    heads = [exp.to_identifier(name, quoted=True)]
    called = exp.TableAlias(this=exp.to_identifier(alias, quoted=True), columns=heads)
    derived = exp.Subquery(this=query.copy(), alias=called)
    select = exp.Select(expressions=items, from_=exp.From(this=derived))
    if condition is not None:
        select.set("where", exp.Where(this=condition))
    if distinct:
        select.set("distinct", exp.Distinct())
    return select
