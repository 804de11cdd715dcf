"""What a function tells of itself: its signature, an example and the schema of its arguments."""

from caraway_core.sqltext.sql_functions import FunctionParameter, SqlCast, SqlFunction

DOUBLE = SqlCast("double", "CAST(", " AS DOUBLE)")
GROSS = FunctionParameter("gross", DOUBLE, schema={"type": "number"})
RATE = FunctionParameter("rate", DOUBLE, "0.19", schema={"type": "number", "minimum": 0})


def test_a_value_is_cast_to_the_type() -> None:
    assert DOUBLE.cast_of("a + 1") == "CAST(a + 1 AS DOUBLE)"
    assert SqlCast("text").cast_of("a") == "(a)"


def test_a_function_of_values() -> None:
    scalar = SqlFunction("net_price", (GROSS, RATE), "gross / (1 + rate)", DOUBLE)
    assert scalar.kind == "scalar"
    assert scalar.signature == "net_price(gross double, rate double = 0.19)"
    assert scalar.example == "SELECT net_price($gross)"


def test_a_function_of_rows() -> None:
    table = SqlFunction("offers", (RATE, GROSS), "SELECT 1", is_table=True)
    assert table.kind == "table"
    assert table.signature == "offers(rate double = 0.19, gross double)"
    assert table.example == "SELECT * FROM offers($gross)"


def test_arguments_without_a_default_are_required_and_no_others_are_taken() -> None:
    assert SqlFunction("f", (GROSS, RATE), "gross").schema == {
        "type": "object",
        "properties": {"gross": {"type": "number"}, "rate": {"type": "number", "minimum": 0}},
        "required": ["gross"],
        "additionalProperties": False,
    }
