"""Tables that fit a terminal: nothing is cut at any width from 80 columns on."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from roadstead.report.text_table import Column, bar, print_table, text_column

NODE = "gke-prod-europe-west4-memory-optimized-pool-3f8c48ce-sx18"
POD = "shop/storefront-frontend-production-z9mpm8h4zn-kgkm5"
WIDTHS = (80, 120, 200)


def shown(columns, rows, width=80, **options):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    print_table(console, "Title", columns, rows, **options)
    return console.file.getvalue().splitlines()


def test_a_table_that_fits_is_printed_unchanged():
    columns = [text_column("pod"), Column("placed"), text_column("node")]
    assert shown(columns, [["web", "1", "n-0"], ["database", "1,000", ""]]) == [
        "",
        "Title",
        "pod       placed  node",
        "web            1  n-0",
        "database   1,000",
    ]


def test_names_that_do_not_fit_on_the_line_are_printed_below_it_in_full():
    lines = shown(
        [text_column("pod"), Column("placed"), text_column("node")], [[POD, "1", f"{NODE}, {NODE}"]]
    )

    assert [line.strip() for line in lines[3:]] == ["node", f"{POD}       1", f"{NODE},", NODE]


def test_a_bar_is_left_out_before_anything_is_wrapped():
    columns = [text_column("resource"), Column("%"), Column("", "bar")]
    rows = [["cpu of all nodes", "39.5%", bar(1.0)]]

    assert shown(columns, rows, width=60)[3] == "cpu of all nodes  39.5%  ████████████████"
    assert shown(columns, rows, width=30)[3] == "cpu of all nodes  39.5%"


def test_text_is_wrapped_between_words():
    lines = shown(
        [text_column("reason"), Column("pods")], [["node(s) had untolerated taints", "2"]], 34
    )

    assert lines[2:] == [
        "reason                        pods",
        "node(s) had untolerated          2",
        "taints",
    ]


def test_columns_that_do_not_fit_follow_in_blocks_with_the_first_column():
    columns = [text_column("zone"), *(Column(name) for name in ("cpu", "memory", "gpu"))]
    lines = shown(columns, [["europe-west4-a", *["19.3% → 100.0%"] * 3]], 50)

    assert lines[2:] == [
        "zone                       cpu          memory",
        "europe-west4-a  19.3% → 100.0%  19.3% → 100.0%",
        "",
        "zone                       gpu",
        "europe-west4-a  19.3% → 100.0%",
    ]


def test_headings_are_wrapped_before_text_is_moved_below_and_figures_are_not():
    columns = [text_column("reason"), Column("nodes per pod"), text_column("first pod")]
    lines = shown(columns, [["Insufficient cpu", "1,000", "shop/web-0"]], 37)

    assert [line.split() for line in lines[2:]] == [
        ["reason", "nodes", "first", "pod"],
        ["per", "pod"],
        ["Insufficient", "cpu", "1,000", "shop/web-0"],
    ]


def test_a_name_is_moved_below_before_the_first_text_column_has_single_words():
    reason = "exceeded quota: team, requested: requests.cpu=250m, used: requests.cpu=1"
    lines = shown(
        [text_column("reason"), Column("objects"), text_column("first")], [[reason, "2", POD]]
    )

    assert lines[2:] == [
        f"reason{'objects':>74}",
        "  first",
        f"exceeded quota: team, requested: requests.cpu=250m, used:{'2':>23}",
        "requests.cpu=1",
        f"  {POD}",
    ]


def test_every_block_has_all_key_columns():
    columns = [
        text_column("mode"),
        text_column("conflicts"),
        Column("pods/s"),
        Column("regret"),
        Column("share"),
    ]
    lines = shown(columns, [["shared", "fit", "1,000", "0.01 ±0.02", "0.7"]], 36, keys=2)

    assert [" ".join(line.split()) for line in lines[2:]] == [
        "mode conflicts pods/s",
        "shared fit 1,000",
        "",
        "mode conflicts regret share",
        "shared fit 0.01 ±0.02 0.7",
    ]


def test_several_texts_below_a_row_have_their_headings():
    columns = [text_column("pod"), Column("placed"), text_column("node"), text_column("owner")]

    lines = shown(columns, [[POD, "1", NODE, ""], ["web-0", "1", NODE, "web"]], 70)

    assert [line.split() for line in lines[2:]] == [
        ["pod", "placed"],
        [POD, "1"],
        ["node:", NODE],
        ["web-0", "1"],
        ["node:", NODE],
        ["owner:", "web"],
    ]


def test_omitted_rows_are_noted_below_the_table():
    assert (
        shown([text_column("pod")], [["a"]], left_out="… and 3 more pods")[-1]
        == "… and 3 more pods"
    )


def test_markup_is_printed_as_text():
    assert shown([text_column("reason")], [["waiting for [red]gates[/red]"]])[3].endswith("[/red]")


def test_style_codes_are_kept_and_do_not_count_for_the_width():
    lines = shown(
        [text_column("pod"), Column("n")], [[Text("web", style="bold"), Text("1", style="red")]]
    )
    assert lines[3] == "web  1"


def test_a_bar_draws_eighths_and_ends_at_the_full_width():
    assert (bar(0).plain, bar(1 / 128).plain, bar(0.5).plain) == ("", "▏", "█" * 8)
    assert bar(1).plain == bar(7.5).plain == "█" * 16


NAMES = st.text("abcdefgh-", min_size=1, max_size=60)
SENTENCES = st.lists(NAMES, max_size=6).map(" ".join)
FIGURES = st.integers(0, 10**12).map("{:,}".format)
KINDS = st.lists(st.sampled_from(["text", "figure", "bar"]), max_size=10)


@given(KINDS, st.data(), st.sampled_from(WIDTHS))
def test_no_width_cuts_a_line_a_figure_or_a_word(kinds, data, width):
    columns = [text_column("name"), *(Column("heading", kind) for kind in kinds)]
    cells = {"text": SENTENCES, "figure": FIGURES, "bar": st.just(bar(0.3))}
    row = st.tuples(NAMES, *(cells[column.kind] for column in columns[1:]))
    rows = data.draw(st.lists(row, max_size=4))

    lines = shown(columns, rows, width)

    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    for each in rows:
        for column, cell in zip(columns, each, strict=True):
            assert column.kind == "bar" or set(cell.split()) <= set(words)


@pytest.mark.parametrize("width", range(20, 80, 7))
def test_a_narrow_terminal_breaks_names_and_no_figures(width):
    columns = [text_column("pod"), Column("placed"), Column("pending"), text_column("node")]
    lines = shown(columns, [[POD, "1,000,000", "2,000,000", NODE]], width)

    assert max(map(len, lines)) <= width
    assert {"1,000,000", "2,000,000"} <= set(" ".join(lines).split())
    joined = "".join("".join(line.split()) for line in lines)
    assert NODE in joined
