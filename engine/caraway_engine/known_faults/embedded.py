"""Rewrites `embed` of a list of texts, which DataFusion 55 would embed as one text.

It casts a list to the text `[a, b]` where a function takes a text. A statement that reads an
element of the result as a vector cannot even be planned.
"""

import pyarrow as pa

from caraway_engine.known_faults import scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree
from caraway_engine.searching.embedding import EMBED, EMBED_ARRAY


def of_lists(sql: str, types: Types) -> str | None:
    """Rewrite a statement that cannot be planned; return None if it embeds no list."""
    if EMBED not in sql.lower():
        return None
    try:
        statements = syntax.parse(sql)
    except syntax.SyntaxUnknownError:
        return None
    changed = [mend(each, types) for one in statements for each in scopes.scopes(one)]
    return ";".join(map(syntax.restored, statements)) if any(changed) else None


def mend(scope: SelectScope, types: Types) -> bool:
    """Call the function for lists where the texts are one; return whether there were any."""
    calls = [each for each in scope.expressions() if syntax.function_name(each) == EMBED]
    if not calls:
        return False
    types.types_of(scope, [text for call in calls for text in syntax.arguments(call)[:1]])
    lists = [call for call in calls if _is_list(scope, syntax.arguments(call)[:1])]
    for call in lists:
        call["Function"]["name"][-1]["Identifier"]["value"] = EMBED_ARRAY
    return bool(lists)


def _is_list(scope: SelectScope, texts: list[Tree]) -> bool:
    types = [scope.types.get(id(each)) for each in texts]
    return any(type_ is not None and bool(pa.types.is_nested(type_)) for type_ in types)
