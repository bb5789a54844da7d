"""The script that reruns the commands of the documentation, and the pages themselves."""

import json

import pytest

PAGE = """# Page

<!-- figures: $ -->
```
$ roadstead one --flag      # why
first
second
$ roadstead two
```
"""


@pytest.fixture
def figures(scripts):
    return scripts("figures")


@pytest.fixture
def page(scripts):
    return scripts("figures_page")


@pytest.fixture
def tables(scripts):
    return scripts("figures_tables")


@pytest.fixture
def root(tmp_path):
    """Return a checkout with one page whose commands print the output in `prints`."""
    (tmp_path / "docs" / "examples").mkdir(parents=True)
    (tmp_path / "docs" / "examples" / "fgd.yaml").write_text("profiles: []\n")
    (tmp_path / "README.md").write_text(PAGE)
    return tmp_path


@pytest.fixture
def prints(figures, monkeypatch):
    """Stands for the command line: first argument → output, or (output, errors, status)."""
    outputs, calls = {"one": "first\nsecond\n", "two": "not shown\n"}, []

    def run(words, folder, deadline_s):
        calls.append((list(words), folder))
        printed = outputs[words[0]]
        return figures.Ended(
            *(printed if isinstance(printed, tuple) else (printed, "progress\n", 0))
        )

    monkeypatch.setattr(figures, "run_roadstead", run)
    outputs["calls"] = calls
    return outputs


def written(root, text):
    (root / "README.md").write_text(text)


def block(mark, *lines):
    return "\n".join([f"<!-- figures{mark} -->", "```", *lines, "```", ""])


# What is compared


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("987 pods/s over 10.1 s of scheduling", "3,158 pods/s over 950 ms of scheduling"),
        ("schedule         10.0 s  █████████▏", "schedule        117 ms  ▎"),
        ("machine  AMD EPYC, 2 cores", "machine  another one"),
        ("commit   2d4f8e1", "commit   unknown"),
        ("12.5% of the time", "7% of the time"),
        ("wrote /tmp/figures-x1/out", "wrote /tmp/figures-y2/out"),
        ("0.05 ms for a pod on 40 nodes", "1.2 µs for a pod on 40 nodes"),
    ],
)
def test_values_that_change_from_run_to_run_are_not_compared(page, shown, printed):
    assert page.agree([shown], [printed])
    assert page.merged([shown], [printed]) == [shown]


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("9,197 placed", "9,198 placed"),
        ("gpu  78.6%  ████████▌", "gpu  78.6%  ████████▎"),
        ("httpTimeout: 5s", "httpTimeout: 10s"),
        ("0.05 ms for a pod on 40 nodes", "0.05 ms for a pod on 41 nodes"),
        ("two  words", "two words"),
        ("machines of 3 kinds", "machines of 4 kinds"),
    ],
)
def test_everything_else_is_compared(page, shown, printed):
    assert not page.agree([shown], [printed])
    assert page.merged([shown], [printed]) == [printed]


@pytest.mark.parametrize(
    ("shown", "printed", "agrees"),
    [
        ("a … d", "a b c d", True),
        ("… d", "a b c d", True),
        ("a …", "a b c d", True),
        ("a … c … e", "a b c d e", True),
        ("a … d", "a d", True),
        ("a … d", "a b c", False),
        ("a … c … e", "a b d e", False),
        ("a … a", "a", False),
    ],
)
def test_an_ellipsis_stands_for_omitted_lines(page, shown, printed, agrees):
    assert page.agree(shown.split(), printed.split()) is agrees


@pytest.mark.parametrize(
    ("shown", "printed", "wanted"),
    [
        ("a … d", "a b c e", "a … e"),
        ("a b … e", "a x c d e", "a x … e"),
        ("a … c … e", "a b c d f", "a … c … f"),
        ("a … d", "a e", "a e"),
    ],
)
def test_lines_stay_omitted_if_the_others_changed(page, shown, printed, wanted):
    assert page.merged(shown.split(), printed.split()) == wanted.split()


def test_equal_lines_keep_their_durations_if_others_changed(page):
    shown = ["8,105 placed", "778 pods/s over 10.5 s", ""]

    assert page.merged(shown, ["8,115 placed", "456 pods/s over 17.9 s"]) == [
        "8,115 placed",
        "778 pods/s over 10.5 s",
        "",
    ]


# A run of the script


def test_an_up_to_date_page_is_unchanged(figures, root, prints, capsys):
    assert figures.main([], root) == 0

    assert (root / "README.md").read_text() == PAGE
    printed = capsys.readouterr()
    assert printed.out == "figures: 1 agree, 0 disagree, 0 skipped, 0 failed\n"
    assert "README.md:3: agrees: roadstead one --flag; roadstead two (" in printed.err


def test_commands_run_in_one_folder_outside_of_the_checkout(figures, root, prints):
    written(root, block(": $", "$ cd docs/examples", "$ roadstead one", "$ roadstead two"))

    figures.main([], root)

    (one, folder), (two, same) = prints["calls"]
    assert (one, two) == (["one"], ["two"])
    assert folder == same
    assert folder.parts[-2:] == ("docs", "examples")
    assert root not in folder.parents
    assert not folder.exists()


def test_an_outdated_page_is_reported_with_its_lines_and_unchanged(figures, root, prints, capsys):
    prints["one"] = "first\nthird\n"

    assert figures.main(["README.md"], root) == 1

    printed = capsys.readouterr()
    assert "README.md:3: disagrees: roadstead one" in printed.err
    assert printed.out.startswith("--- README.md\n+++ README.md (made)\n@@ -4,6 +4,6 @@\n")
    assert "-second\n+third\n" in printed.out
    assert (root / "README.md").read_text() == PAGE


def test_update_writes_the_output_and_then_the_page_is_up_to_date(figures, root, prints, capsys):
    prints["one"] = "first\nthird\n"

    assert figures.main(["--update"], root) == 0

    assert (root / "README.md").read_text() == PAGE.replace("second", "third")
    assert "updated: README.md" in capsys.readouterr().out
    assert figures.main([], root) == 0


def test_the_message_of_a_failing_command_is_compared(figures, root, prints):
    prints["one"] = ("", "first\nsecond\n", 2)

    assert figures.main([], root) == 0


def test_a_failing_command_without_output_on_the_page_is_named(figures, root, prints, capsys):
    prints["two"] = ("", "no such file\n", 2)

    assert figures.main(["--update"], root) == 1

    assert "README.md:3: roadstead two: exit status 2\nno such file" in capsys.readouterr().err
    assert (root / "README.md").read_text() == PAGE


def test_a_command_that_exceeds_its_timeout_is_named(figures, root, monkeypatch, capsys):
    monkeypatch.setattr(figures, "DEADLINE_S", 0.01)

    assert figures.main([], root) == 1

    assert "README.md:3: roadstead one --flag" in capsys.readouterr().err


def test_figures_that_need_an_option_are_skipped_without_it(figures, root, prints, capsys):
    written(
        root,
        block(" (openb): roadstead one DIR", "first", "second")
        + block(" (slow): roadstead two", "x"),
    )

    assert figures.main([], root) == 0

    printed = capsys.readouterr()
    assert "README.md:1: skipped, needs --openb: roadstead one DIR" in printed.err
    assert "README.md:6: skipped, needs --slow: roadstead two" in printed.err
    assert "2 skipped" in printed.out
    assert prints["calls"] == []

    assert figures.main(["--openb", str(root), "--slow"], root) == 1
    assert [words for words, _ in prints["calls"]] == [["one", str(root)], ["two"]]


def test_a_file_of_the_page_is_available_to_later_commands(figures, root, prints, monkeypatch):
    written(root, block(": file mine.yaml", "a: 1") + block(": roadstead one -f mine.yaml", "a: 1"))
    monkeypatch.setattr(
        figures,
        "run_roadstead",
        lambda words, folder, _: figures.Ended((folder / words[-1]).read_text(), "", 0),
    )

    assert figures.main([], root) == 0


def test_the_list_names_figures_with_their_commands(figures, root, prints, capsys):
    written(root, PAGE + block(" (slow): scripts/demo --small", "x"))

    assert figures.main(["--list"], root) == 0

    assert capsys.readouterr().out.splitlines() == [
        "README.md:3: roadstead one --flag",
        "README.md:3: roadstead two",
        "README.md:10: scripts/demo --small  [needs --slow]",
    ]
    assert prints["calls"] == []


@pytest.mark.parametrize(
    ("mark", "why"),
    [
        (": rm -rf x", "unknown mark 'rm -rf x'"),
        (" (later): $", "unknown need later: one of openb, slow"),
        ("", "a mark is <!-- figures: WHAT -->"),
        (": table openb-scores", "the next line begins no table"),
    ],
)
def test_an_unknown_mark_is_an_error_that_names_page_and_line(
    figures, root, prints, capsys, mark, why
):
    written(root, PAGE + block(mark, "x"))

    assert figures.main([], root) == 2

    assert capsys.readouterr().err.startswith(f"README.md:10: {why}")
    assert prints["calls"] == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<!-- figures: table lost -->\n| a |\n|---|\n| b |\n", "unknown table 'lost'"),
        (block(": $", "x"), "the block does not begin with a line of $"),
    ],
)
def test_a_mark_with_an_impossible_command_is_an_error_as_well(figures, root, capsys, text, why):
    written(root, text)

    assert figures.main([], root) == 2

    assert capsys.readouterr().err.startswith(f"README.md:1: {why}")


def test_other_programs_are_not_run(figures, root, prints, capsys):
    written(root, block(": $", "$ rm -rf x"))

    assert figures.main([], root) == 1

    assert "README.md:1: rm is none of roadstead, scripts/demo" in capsys.readouterr().err
    assert prints["calls"] == []


def test_an_unknown_page_is_an_error(figures, root, capsys):
    assert figures.main(["docs/lost.md"], root) == 2

    assert "docs/lost.md: no page: one of README.md" in capsys.readouterr().err


# Tables


def test_rows_of_the_trace_are_computed_with_the_printed_options(figures, root, prints):
    gpu = {"resource": "alibabacloud.com/gpu-milli", "after": 5682000, "after_fraction": 0.9147}
    prints["schedule"] = json.dumps({"placed": 7701, "utilization": [gpu]})
    head = "<!-- figures (openb): table openb-scores -->\n| a | b | c | d |\n|---|---|---|---|\n"
    written(
        root, head + "| default | – | 7,701 | 5,682 (91.5%) |\n| gpu | `--preset x` | 1 | 2 |\n"
    )

    assert figures.main(["--update", "--openb", "x"], root) == 0

    assert (root / "README.md").read_text() == head + (
        "| default | – | 7,701 | 5,682 (91.5%) |\n| gpu | `--preset x` | 7,701 | 5,682 (91.5%) |\n"
    )
    assert prints["calls"][1][0][-2:] == ["--preset", "x"]


def test_cells_of_a_sweep_are_those_of_the_points_with_their_values(tables):
    band = {"mean": 0.0964, "low": 0.09, "high": 0.1028}
    points = [
        {"values": {"n": n, "by": by}, "figures": {"f": {**band, "mean": n + (by == "b")}}}
        for n in (1, 2)
        for by in ("a", "b")
    ]
    sweep = tables.Sweep("roadstead stress", "n", [tables.Column(1, "f", {"by": "b"}, tables.mean)])

    rows = tables.swept(
        [sweep], [["2 s", "", "kept"], ["", "", ""]], lambda *_: json.dumps({"points": points})
    )

    assert rows == [["2 s", "3.0", "kept"], ["", "", ""]]
    assert tables.mean_and_band(band) == "0.096 ± 0.006"


def test_a_row_missing_in_the_sweep_is_an_error_that_names_the_table(figures, root, prints, capsys):
    prints["stress"] = json.dumps({"points": []})
    written(root, "<!-- figures: table omega-choices -->\n| t | fit |\n|---|---|\n| 7 s | 0 |\n")

    assert figures.main([], root) == 1

    assert (
        "README.md:1: table omega-choices: the sweep has no point with" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("number", "digits", "text"),
    [(0, 2, "0"), (0.0964, 1, "0.1"), (157_321, 3, "157,000"), (0.1, 2, "0.10"), (9.96, 2, "10")],
)
def test_a_number_has_its_significant_digits_and_no_others(tables, number, digits, text):
    assert tables.significant(number, digits) == text


def test_a_row_is_written_as_read(page):
    row = "| 80 | 11,600 ± 3,000 | | `--a` |"

    assert page.row_of(page.cells_of(row)) == row


# The pages


def test_every_mark_of_the_documentation_is_known(figures, capsys):
    assert figures.main(["--list"]) == 0

    assert len(capsys.readouterr().out.splitlines()) > 15


@pytest.mark.parametrize(
    "name", ["README.md", "docs/configuration.md", "docs/plugins.md", "docs/traces.md"]
)
def test_the_page_shows_the_output_of_its_commands(figures, capsys, name):
    assert figures.main([name]) == 0, "".join(capsys.readouterr())


def test_blocks_of_a_page_with_slow_tables_equal_the_output_of_their_commands(
    figures, monkeypatch, capsys
):
    pages_of = figures.pages_of

    def blocks(root, asked):
        """Return the blocks without the tables: these are sweeps that take a minute."""
        pages = pages_of(root, asked)
        return {
            page: [each for each in found if each.kind is not figures.Kind.TABLE]
            for page, found in pages.items()
        }

    monkeypatch.setattr(figures, "pages_of", blocks)

    assert figures.main(["docs/conflicts.md"]) == 0, "".join(capsys.readouterr())
