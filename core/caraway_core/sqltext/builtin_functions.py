"""The names of the engine's own functions, which functions of a manifest may not take.

The manifest is checked without the engine; a test compares these names with those that it has.
"""

AGGREGATES = frozenset(
    """
    any_value approx_distinct approx_median approx_percentile_cont
    approx_percentile_cont_with_weight array_agg avg bit_and bit_or bit_xor bool_and bool_or
    corr count covar covar_pop covar_samp first_value grouping last_value max mean median
    min nth_value percentile_cont quantile_cont regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy stddev stddev_pop
    stddev_samp string_agg sum var var_pop var_population var_samp var_sample
    """.split()
)
"""Functions that give one value for many rows."""
WINDOWS = frozenset(
    """
    cume_dist dense_rank lag lead ntile percent_rank rank row_number
    """.split()
)
"""Functions that need OVER, besides the aggregates."""
SCALARS = frozenset(
    """
    abs acos acosh array_add array_any_value array_append array_avg array_cat array_compact
    array_concat array_contains array_dims array_distance array_distinct array_element
    array_empty array_except array_extract array_has array_has_all array_has_any
    array_indexof array_intersect array_join array_length array_max array_min array_ndims
    array_normalize array_pop_back array_pop_front array_position array_positions
    array_prepend array_product array_push_back array_push_front array_remove
    array_remove_all array_remove_n array_repeat array_replace array_replace_all
    array_replace_n array_resize array_reverse array_scale array_slice array_sort
    array_subtract array_sum array_to_string array_union arrays_overlap arrays_zip
    arrow_cast arrow_field arrow_metadata arrow_try_cast arrow_typeof ascii asin asinh atan
    atan2 atanh bit_length btrim cardinality cast_to_type cbrt ceil char_length
    character_length chr coalesce concat concat_ws contains cos cosh cosine_distance cot
    current_date current_time current_timestamp date_bin date_format date_part date_trunc
    datepart datetrunc decode degrees digest dot_product element_at empty encode ends_with
    exp factorial file_row_index find_in_set flatten floor from_unixtime gcd generate_series
    get_field greatest ifnull initcap inner_product input_file_name instr isnan iszero lcm
    least left length levenshtein list_add list_any_value list_append list_avg list_cat
    list_compact list_concat list_contains list_dims list_distance list_distinct
    list_element list_empty list_except list_extract list_has list_has_all list_has_any
    list_indexof list_intersect list_join list_length list_max list_ndims list_normalize
    list_pop_back list_pop_front list_position list_positions list_prepend list_product
    list_push_back list_push_front list_remove list_remove_all list_remove_n list_repeat
    list_replace list_replace_all list_replace_n list_resize list_reverse list_scale
    list_slice list_sort list_subtract list_sum list_to_string list_union list_zip ln log
    log10 log2 lower lpad ltrim make_array make_date make_list make_time map map_entries
    map_extract map_keys map_values md5 named_struct nanvl now nullif nvl nvl2 octet_length
    overlay pi position pow power radians rand random range regexp_count regexp_instr
    regexp_like regexp_match regexp_replace repeat replace reverse right round row rpad
    rtrim sha224 sha256 sha384 sha512 signum sin sinh split_part sqrt starts_with
    string_to_array string_to_list strpos struct substr substr_index substring
    substring_index tan tanh to_char to_date to_hex to_local_time to_time to_timestamp
    to_timestamp_micros to_timestamp_millis to_timestamp_nanos to_timestamp_seconds
    to_unixtime today translate trim trunc try_cast_to_type union_extract union_tag upper
    uuid version with_metadata
    """.split()
)
"""Functions that give one value for each row, and tables."""
OF_THE_RUNTIME = frozenset(
    "embed embed_array vector_search text_search rrf rerank caraway_stored_vector "
    "caraway_stored_chunks caraway_chunk_offsets caraway_vector_score caraway_best_vector_score "
    "caraway_best_chunk caraway_text_score caraway_text_statistics "
    "caraway_text_statistics_sum".split()
)
"""Functions that the runtime adds to those of DataFusion."""
SYNTAX = frozenset(
    "all and any array as between case cast ceil convert cube current distinct div else end exists "
    "extract filter floor from grouping group having if in interval is join lateral like limit not "
    "null offset on or order over partition position range replace returning rollup row safe_cast "
    "select sets set some struct substring table then trim try_cast try_convert union unnest using "
    "values when where window with".split()
)
"""Words that the parser reads in a way of its own before a parenthesis."""
NAMES = AGGREGATES | WINDOWS | SCALARS | OF_THE_RUNTIME | SYNTAX
RANDOM = frozenset({"rand", "random", "uuid"})
"""Functions that give another value with each call."""
STABLE = frozenset({"current_date", "current_time", "current_timestamp", "now", "today"})
"""Functions that give another value with each statement."""
