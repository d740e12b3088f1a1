"""Whether an SQL query can be divided by partitions: then each task asks for the rows of its own ones, and all of them
together find what the whole query finds. That is so where a row of the result comes from one row of one table, and
depends on no other row.

Pure. What is not understood counts as not divisible: a wrong guess would lose rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import List, Optional, Tuple

TOKEN = re.compile(r"""\s+|'(?:[^']|'')*'|"[^"]+"|[A-Za-z_]\w*|\d[\w.]*|\?|<>|<=|>=|!=|\|\||[-+*/%=<>(),.;]""")
NAME = re.compile(r'[A-Za-z_]\w*\Z|"[^"]+"\Z')
BEFORE_BRACKETS = {
    *("AND", "AS", "BETWEEN", "ELSE", "IN", "LIKE", "NOT", "OR", "SELECT", "THEN", "WHEN", "WHERE"),
    *("CHAR", "DECIMAL", "NUMERIC", "VARCHAR"),
    *("ABS", "BITAND", "BITOR", "CAST", "CEIL", "CEILING", "COALESCE", "CONCAT", "CONVERT", "DAY_OF_MONTH"),
    *("DAY_OF_WEEK", "DECODE", "EXP", "FLOOR", "GREATEST", "HOUR", "IFNULL", "LEAST", "LENGTH", "LN", "LOG", "LOG10"),
    *("LOWER", "LTRIM", "MINUTE", "MOD", "MONTH", "NULLIF", "NVL", "OCTET_LENGTH", "POWER", "REPLACE", "ROUND"),
    *("RTRIM", "SECOND", "SIGN", "SQRT", "SUBSTR", "SUBSTRING", "TRIM", "TRUNC", "UPPER", "YEAR"),
}
"""What may stand before a bracket: words of the language, types with a length, and functions of one row."""
UNFIT = {
    *("ALL", "APPLY", "CROSS", "DISTINCT", "EXCEPT", "EXISTS", "FETCH", "FOR", "FULL", "GROUP", "HAVING", "INNER"),
    *("INTERSECT", "JOIN", "LATERAL", "LEFT", "LIMIT", "MINUS", "NATURAL", "OFFSET", "ON", "ORDER", "OUTER", "OVER"),
    *("PARTITION", "QUALIFY", "RIGHT", "ROWNUM", "SAMPLE_SIZE", "TABLE", "TOP", "UNION", "UNNEST", "USE", "USING"),
    *("VALUES", "WINDOW", "WITH"),
}


@dataclass(frozen=True)
class Source:
    """The first table of a query, as the cluster calls it, and whether it is the only one and rows stand alone."""

    schema: str
    table: str
    is_divisible: bool


def source_of(text: str, schema: str) -> Optional[Source]:
    """None where no table is found. `schema`: of a table that is named without one."""
    found = _tokens(text)
    words = [one.upper() for one in found]
    if "FROM" not in words:
        return None
    begin = words.index("FROM") + 1
    named = _table(found, begin)
    if named is None:
        return None
    parts, end = named
    return Source(
        _named(parts[0]) if len(parts) == 2 else _named(schema),
        _named(parts[-1]),
        bool(words) and words[0] == "SELECT" and _stands_alone(words, end),
    )


def _tokens(text: str) -> List[str]:
    """Empty where the text has something else in it, such as a comment."""
    found, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            return []
        if not match.group().isspace():
            found.append(match.group())
        at = match.end()
    joined = set(zip(found, found[1:]))
    if ("-", "-") in joined or ("/", "*") in joined:
        return []
    return found[:-1] if found[-1:] == [";"] else found


def _table(found: List[str], at: int) -> Optional[Tuple[List[str], int]]:
    """The parts of a name from here on, and where the query continues behind it."""
    if at >= len(found) or not NAME.match(found[at]):
        return None
    if at + 2 < len(found) and found[at + 1] == "." and NAME.match(found[at + 2]):
        return [found[at], found[at + 2]], at + 3
    return [found[at]], at + 1


def _stands_alone(words: List[str], end: int) -> bool:
    if words.count("SELECT") != 1 or words.count("FROM") != 1 or ";" in words or UNFIT.intersection(words):
        return False
    before = (words[at - 1] for at, one in enumerate(words) if one == "(" and at)
    if any(NAME.match(one) and one not in BEFORE_BRACKETS for one in before):
        return False
    rest = words[end:]
    if rest[:1] == ["AS"]:
        rest = rest[1:]
    if rest and rest[0] != "WHERE" and NAME.match(rest[0]):
        rest = rest[1:]  # what the table is called in the query
    return not rest or rest[0] == "WHERE"


def _named(one: str) -> str:
    """As the cluster calls it: in capitals, unless it stands in quotes."""
    return one[1:-1] if one.startswith('"') else one.upper()
