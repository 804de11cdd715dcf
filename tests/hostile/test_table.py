"""The table of hostile statements covers every function of the engine."""

from datafusion import SessionConfig, SessionContext

from tests.hostile.statements import DELAYING, QUICK, STATEMENTS

_HARMLESS = frozenset(
    """
    abs acos acosh any_value approx_distinct approx_median approx_percentile_cont
    approx_percentile_cont_with_weight array_add array_any_value array_avg array_cat array_compact
    array_contains array_dims array_distance array_element array_empty array_extract array_has
    array_has_all array_has_any array_indexof array_length array_max array_min array_ndims
    array_pop_back array_pop_front array_position array_product array_push_back array_push_front
    array_remove array_remove_n array_replace array_replace_n array_subtract array_sum
    arrays_overlap arrow_cast arrow_field arrow_metadata arrow_try_cast arrow_typeof ascii asin
    asinh atan atan2 atanh avg bit_and bit_length bit_or bit_xor bool_and bool_or btrim cardinality
    cast_to_type cbrt ceil char_length character_length chr coalesce contains corr cos cosh
    cosine_distance cot covar covar_pop covar_samp cume_dist current_date current_time
    current_timestamp date_bin date_format date_part date_trunc datepart datetrunc degrees
    dense_rank digest dot_product element_at empty ends_with exp file_row_index find_in_set
    first_value floor from_unixtime gcd get_field greatest grouping ifnull inner_product
    input_file_name instr isnan iszero last_value lcm lead least left ln log log10 log2 lower ltrim
    make_date make_list make_time map_extract map_keys map_values max md5 mean nanvl now nth_value
    ntile nullif nvl nvl2 octet_length percent_rank pi position pow quantile_cont radians rand
    random rank regexp_instr regexp_like regr_avgx regr_avgy regr_count regr_intercept regr_r2
    regr_slope regr_sxx regr_sxy regr_syy right round row row_number rtrim sha224 sha256 sha384
    signum sin sinh sqrt starts_with stddev stddev_pop stddev_samp string_to_list strpos substr
    substr_index substring substring_index tan tanh to_date to_hex to_local_time to_time
    to_timestamp to_timestamp_micros to_timestamp_millis to_timestamp_nanos to_timestamp_seconds
    to_unixtime today trim trunc try_cast_to_type union_extract union_tag uuid var var_pop
    var_population var_samp var_sample version with_metadata count sum
    """.split()
)
"""Functions whose output is not much larger than their input, or that the table has by another
name.
"""


def test_every_function_of_the_engine_was_assessed() -> None:
    context = SessionContext(SessionConfig().with_information_schema(True))
    listed = context.sql("SELECT DISTINCT routine_name AS n FROM information_schema.routines")
    names = {name for batch in listed.collect() for name in batch.column("n").to_pylist()}
    # The longest have megabytes of one literal.
    texts = "\n".join(text[:10_000] for text in STATEMENTS.values())
    used = {name for name in names if f"{name}(" in texts}
    lists = {name for name in names if name.startswith("list_")}
    assert names - used - _HARMLESS - {name for name in lists if _twin(name) in names} == set()


def _twin(name: str) -> str:
    """Return the array function that corresponds to a list function."""
    twins = {"list_zip": "arrays_zip", "list_to_string": "array_to_string"}
    return twins.get(name, name.replace("list_", "array_", 1))


def test_the_parts_of_the_table_name_its_statements() -> None:
    assert set(QUICK) | DELAYING <= STATEMENTS.keys()
