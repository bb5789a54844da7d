"""Functions that device selectors may call, with their overloads.

A line is `function overload arguments -> result`; the overload of a method begins with a dot, and
`opt(V)` is an optional. Capital letters are type parameters.
The order of overloads is upstream's: it decides which is tried first.

Upstream: cel-go 0.26 common/stdlib/standard.go, cel/library.go (optionals version 2),
ext/strings.go (version 2), ext/lists.go (version 3), ext/sets.go, ext/comprehensions.go;
apiserver pkg/cel/environment/base.go and pkg/cel/library (1.34).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from roadstead.cel.types import Type, read_type


@dataclass(frozen=True, slots=True)
class Overload:
    """One way to call a function. args: with the target of a method first."""

    id: str
    is_method: bool
    args: tuple[Type, ...]
    result: Type

    @property
    def params(self) -> frozenset[str]:
        """Names of the type parameters."""
        return frozenset(name for type_ in (*self.args, self.result) for name in _params(type_))


def _params(type_: Type) -> set[str]:
    if type_.kind == "param":
        return {type_.name}
    return {name for inner in type_.params for name in _params(inner)}


_STANDARD = """
_?_:_ conditional bool A A -> A
_&&_ logical_and bool bool -> bool
_||_ logical_or bool bool -> bool
!_ logical_not bool -> bool
@not_strictly_false not_strictly_false bool -> bool
_==_ equals A A -> bool
_!=_ not_equals A A -> bool
_+_ add_bytes bytes bytes -> bytes
_+_ add_double double double -> double
_+_ add_duration_duration duration duration -> duration
_+_ add_duration_timestamp duration timestamp -> timestamp
_+_ add_timestamp_duration timestamp duration -> timestamp
_+_ add_int64 int int -> int
_+_ add_list list(A) list(A) -> list(A)
_+_ add_string string string -> string
_+_ add_uint64 uint uint -> uint
_/_ divide_double double double -> double
_/_ divide_int64 int int -> int
_/_ divide_uint64 uint uint -> uint
_%_ modulo_int64 int int -> int
_%_ modulo_uint64 uint uint -> uint
_*_ multiply_double double double -> double
_*_ multiply_int64 int int -> int
_*_ multiply_uint64 uint uint -> uint
-_ negate_double double -> double
-_ negate_int64 int -> int
_-_ subtract_double double double -> double
_-_ subtract_duration_duration duration duration -> duration
_-_ subtract_int64 int int -> int
_-_ subtract_timestamp_duration timestamp duration -> timestamp
_-_ subtract_timestamp_timestamp timestamp timestamp -> duration
_-_ subtract_uint64 uint uint -> uint
_[_] index_list list(A) int -> A
_[_] index_map map(A,B) A -> B
@in in_list A list(A) -> bool
@in in_map A map(A,B) -> bool
size size_bytes bytes -> int
size .bytes_size bytes -> int
size size_list list(A) -> int
size .list_size list(A) -> int
size size_map map(A,B) -> int
size .map_size map(A,B) -> int
size size_string string -> int
size .string_size string -> int
type type A -> type(A)
bool bool_to_bool bool -> bool
bool string_to_bool string -> bool
bytes bytes_to_bytes bytes -> bytes
bytes string_to_bytes string -> bytes
double double_to_double double -> double
double int64_to_double int -> double
double string_to_double string -> double
double uint64_to_double uint -> double
duration duration_to_duration duration -> duration
duration int64_to_duration int -> duration
duration string_to_duration string -> duration
dyn to_dyn A -> dyn
int int64_to_int64 int -> int
int double_to_int64 double -> int
int duration_to_int64 duration -> int
int string_to_int64 string -> int
int timestamp_to_int64 timestamp -> int
int uint64_to_int64 uint -> int
string string_to_string string -> string
string bool_to_string bool -> string
string bytes_to_string bytes -> string
string double_to_string double -> string
string duration_to_string duration -> string
string int64_to_string int -> string
string timestamp_to_string timestamp -> string
string uint64_to_string uint -> string
timestamp timestamp_to_timestamp timestamp -> timestamp
timestamp int64_to_timestamp int -> timestamp
timestamp string_to_timestamp string -> timestamp
uint uint64_to_uint64 uint -> uint
uint double_to_uint64 double -> uint
uint int64_to_uint64 int -> uint
uint string_to_uint64 string -> uint
contains .contains_string string string -> bool
endsWith .ends_with_string string string -> bool
startsWith .starts_with_string string string -> bool
matches matches string string -> bool
matches .matches_string string string -> bool
getFullYear .timestamp_to_year timestamp -> int
getFullYear .timestamp_to_year_with_tz timestamp string -> int
getMonth .timestamp_to_month timestamp -> int
getMonth .timestamp_to_month_with_tz timestamp string -> int
getDayOfYear .timestamp_to_day_of_year timestamp -> int
getDayOfYear .timestamp_to_day_of_year_with_tz timestamp string -> int
getDayOfMonth .timestamp_to_day_of_month timestamp -> int
getDayOfMonth .timestamp_to_day_of_month_with_tz timestamp string -> int
getDate .timestamp_to_day_of_month_1_based timestamp -> int
getDate .timestamp_to_day_of_month_1_based_with_tz timestamp string -> int
getDayOfWeek .timestamp_to_day_of_week timestamp -> int
getDayOfWeek .timestamp_to_day_of_week_with_tz timestamp string -> int
getHours .timestamp_to_hours timestamp -> int
getHours .timestamp_to_hours_with_tz timestamp string -> int
getHours .duration_to_hours duration -> int
getMinutes .timestamp_to_minutes timestamp -> int
getMinutes .timestamp_to_minutes_with_tz timestamp string -> int
getMinutes .duration_to_minutes duration -> int
getSeconds .timestamp_to_seconds timestamp -> int
getSeconds .timestamp_to_seconds_tz timestamp string -> int
getSeconds .duration_to_seconds duration -> int
getMilliseconds .timestamp_to_milliseconds timestamp -> int
getMilliseconds .timestamp_to_milliseconds_with_tz timestamp string -> int
getMilliseconds .duration_to_milliseconds duration -> int
"""

_OPTIONALS = """
optional.of optional_of V -> opt(V)
optional.ofNonZeroValue optional_ofNonZeroValue V -> opt(V)
optional.none optional_none -> opt(V)
value .optional_value opt(V) -> V
hasValue .optional_hasValue opt(V) -> bool
or .optional_or_optional opt(V) opt(V) -> opt(V)
orValue .optional_orValue_value opt(V) V -> V
_?._ select_optional_field dyn string -> opt(V)
_[?_] list_optindex_optional_int list(V) int -> opt(V)
_[?_] optional_list_optindex_optional_int opt(list(V)) int -> opt(V)
_[?_] map_optindex_optional_value map(K,V) K -> opt(V)
_[?_] optional_map_optindex_optional_value opt(map(K,V)) K -> opt(V)
_[_] optional_list_index_int opt(list(V)) int -> opt(V)
_[_] optional_map_index_value opt(map(K,V)) K -> opt(V)
last .list_last list(V) -> opt(V)
first .list_first list(V) -> opt(V)
optional.unwrap optional_unwrap list(opt(V)) -> list(V)
unwrapOpt .optional_unwrapOpt list(opt(V)) -> list(V)
"""

_STRINGS = """
charAt .string_char_at_int string int -> string
indexOf .string_index_of_string string string -> int
indexOf .string_index_of_string_int string string int -> int
lastIndexOf .string_last_index_of_string string string -> int
lastIndexOf .string_last_index_of_string_int string string int -> int
lowerAscii .string_lower_ascii string -> string
replace .string_replace_string_string string string string -> string
replace .string_replace_string_string_int string string string int -> string
split .string_split_string string string -> list(string)
split .string_split_string_int string string int -> list(string)
substring .string_substring_int string int -> string
substring .string_substring_int_int string int int -> string
trim .string_trim string -> string
upperAscii .string_upper_ascii string -> string
format .string_format string list(dyn) -> string
strings.quote strings_quote string -> string
join .list_join list(string) -> string
join .list_join_string list(string) string -> string
find .string_find_string string string -> string
findAll .string_find_all_string string string -> list(string)
findAll .string_find_all_string_int string string int -> list(string)
"""

_COLLECTIONS = """
cel.@mapInsert @mapInsert_map_key_value map(K,V) K V -> map(K,V)
cel.@mapInsert @mapInsert_map_map map(K,V) map(K,V) -> map(K,V)
sets.contains list_sets_contains_list list(T) list(T) -> bool
sets.equivalent list_sets_equivalent_list list(T) list(T) -> bool
sets.intersects list_sets_intersects_list list(T) list(T) -> bool
slice .list_slice list(T) int int -> list(T)
flatten .list_flatten list(list(T)) -> list(T)
flatten .list_flatten_int list(dyn) int -> list(dyn)
lists.range lists_range int -> list(int)
reverse .list_reverse list(T) -> list(T)
distinct .list_distinct list(T) -> list(T)
indexOf .list_a_index_of_int list(A) A -> int
lastIndexOf .list_a_last_index_of_int list(A) A -> int
"""

_KUBERNETES = """
quantity string_to_quantity string -> quantity
isQuantity is_quantity_string string -> bool
sign quantity_sign quantity -> int
isGreaterThan .quantity_is_greater_than quantity quantity -> bool
isLessThan .quantity_is_less_than quantity quantity -> bool
compareTo .quantity_compare_to quantity quantity -> int
asApproximateFloat .quantity_get_float quantity -> double
asInteger .quantity_get_int quantity -> int
isInteger .quantity_is_integer quantity -> bool
add .quantity_add quantity quantity -> quantity
add .quantity_add_int quantity int -> quantity
sub .quantity_sub quantity quantity -> quantity
sub .quantity_sub_int quantity int -> quantity
semver string_to_semver string -> semver
semver string_bool_to_semver string bool -> semver
isSemver is_semver_string string -> bool
isSemver is_semver_string_bool string bool -> bool
isGreaterThan .semver_is_greater_than semver semver -> bool
isLessThan .semver_is_less_than semver semver -> bool
compareTo .semver_compare_to semver semver -> int
major .semver_major semver -> int
minor .semver_minor semver -> int
patch .semver_patch semver -> int
url string_to_url string -> url
isURL is_url_string string -> bool
getScheme .url_get_scheme url -> string
getHost .url_get_host url -> string
getHostname .url_get_hostname url -> string
getPort .url_get_port url -> string
getEscapedPath .url_get_escaped_path url -> string
getQuery .url_get_query url -> map(string,list(string))
ip string_to_ip string -> ip
isIP is_ip string -> bool
ip.isCanonical ip_is_canonical string -> bool
family .ip_family ip -> int
isUnspecified .ip_is_unspecified ip -> bool
isLoopback .ip_is_loopback ip -> bool
isLinkLocalMulticast .ip_is_link_local_multicast ip -> bool
isLinkLocalUnicast .ip_is_link_local_unicast ip -> bool
isGlobalUnicast .ip_is_global_unicast ip -> bool
string ip_to_string ip -> string
cidr string_to_cidr string -> cidr
isCIDR is_cidr string -> bool
containsIP .cidr_contains_ip_string cidr string -> bool
containsIP .cidr_contains_ip_ip cidr ip -> bool
containsCIDR .cidr_contains_cidr_string cidr string -> bool
containsCIDR .cidr_contains_cidr cidr cidr -> bool
ip .cidr_ip cidr -> ip
prefixLength .cidr_prefix_length cidr -> int
masked .cidr_masked cidr -> cidr
string cidr_to_string cidr -> string
validate .format-validate format string -> opt(list(string))
format.named format-named string -> opt(format)
"""

# Types whose values have an order; types that `sum` accepts; names in the overloads of `sort`.
_ORDERED = ["int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"]
_ADDABLE = ["int", "uint", "double", "duration"]
_SORT_NAMES = {
    "duration": "google.protobuf.Duration",
    "timestamp": "google.protobuf.Timestamp",
}
FORMAT_NAMES: Final = (
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
)
"""Formats of `format.named`, each with a function of its own."""


def _relations() -> list[str]:
    """Return the lines of `<`, `<=`, `>` and `>=`."""
    operands = [
        "bool",
        "int64",
        "int64_double",
        "int64_uint64",
        "uint64",
        "uint64_double",
        "uint64_int64",
        "double",
        "double_int64",
        "double_uint64",
        "string",
        "bytes",
        "timestamp",
        "duration",
    ]
    lines = []
    for sign, word in (
        ("<", "less"),
        ("<=", "less_equals"),
        (">", "greater"),
        (">=", "greater_equals"),
    ):
        for types in operands:
            args = [part.removesuffix("64") for part in types.split("_")]
            first, second = args if len(args) == 2 else (args[0], args[0])
            lines.append(f"_{sign}_ {word}_{types} {first} {second} -> bool")
    return lines


def _functions_by_type() -> list[str]:
    """Return the lines of functions with one overload for each type of element."""
    lines = [f"isSorted .list_{t}_is_sorted_bool list({t}) -> bool" for t in _ORDERED]
    lines += [f"sum .list_{t}_sum_{t} list({t}) -> {t}" for t in _ADDABLE]
    for name in ("max", "min"):
        lines += [f"{name} .list_{t}_{name}_{t} list({t}) -> {t}" for t in _ORDERED]
    for t in _ORDERED:
        name = _SORT_NAMES.get(t, t)
        lines.append(f"sort .list_{name}_sort list({t}) -> list({t})")
        lines.append(
            f"@sortByAssociatedKeys .list_{name}_sortByAssociatedKeys list(T) list({t}) -> list(T)"
        )
    lines += [f"format.{name} format.{name} -> format" for name in FORMAT_NAMES]
    return lines


def _parse_lines(lines: list[str]) -> dict[str, tuple[Overload, ...]]:
    functions: dict[str, list[Overload]] = {}
    for line in lines:
        declared, _, result = line.partition(" -> ")
        name, overload, *args = declared.removesuffix(" ->").split()
        functions.setdefault(name, []).append(
            Overload(
                overload.removeprefix("."),
                overload.startswith("."),
                tuple(read_type(arg) for arg in args),
                read_type(result.strip()),
            )
        )
    return {name: tuple(overloads) for name, overloads in functions.items()}


_ALL = _STANDARD + _OPTIONALS + _STRINGS + _COLLECTIONS + _KUBERNETES
FUNCTIONS: Final = _parse_lines(
    [line for line in _ALL.splitlines() if line] + _relations() + _functions_by_type()
)
"""All functions by name."""
