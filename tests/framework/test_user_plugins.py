import sys
import textwrap

import pytest
from pydantic import Field

from roadstead.config.errors import ConfigError
from roadstead.framework import user_plugins
from roadstead.framework.arguments import PluginArguments, parse_arguments
from roadstead.framework.per_node import NodePlugin
from roadstead.framework.plugin import Handle, Plugin
from roadstead.framework.registry import extension_points
from roadstead.framework.user_plugins import (
    check_arguments,
    check_digests,
    digests_of,
    factories_of,
    factory_of,
    installed_plugins,
    load_plugin_class,
    load_plugins,
    plugins_of_file,
)
from roadstead.nodes.pod_class import PodClasses
from roadstead.plugins.node_name import NodeName
from roadstead.protocol.errors import InputError
from tests.builders import pod, score_with, table_of

MINE = """
    from roadstead.framework.arguments import PluginArguments
    from roadstead.framework.per_node import NodePlugin
    from roadstead.framework.plugin import FilterPlugin, Plugin, Reads


    class Arguments(PluginArguments):
        best_score: int = 50
        names: tuple[str, ...] = ()


    class Fixed(NodePlugin):
        name = "Fixed"
        arguments = Arguments
        reads = Reads.NODE

        def __init__(self, args):
            self.args = args

        def score(self, pod, node):
            return self.args.best_score


    class Same(NodePlugin):
        name = "Fixed"

        def score(self, pod, node):
            return 1


    class Raw(Same):
        name = "Raw"

        def __init__(self, args, handle):
            self.given = args, handle


    class Picky(Same):
        name = "Picky"

        def __init__(self):
            raise ValueError("not today")


    class Nameless(NodePlugin):
        def score(self, pod, node):
            return 1


    class Spaced(Same):
        name = "no good name"


    class Idle(NodePlugin):
        name = "Idle"


    class Half(FilterPlugin):
        name = "Half"


    class Bare(Plugin):
        name = "Bare"


    class Foreign(Same):
        name = "Foreign"
        arguments = dict


    not_a_class = 3
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Write a folder with the module `my_plugins`; return its prefix for paths."""
    (tmp_path / "my_plugins.py").write_text(textwrap.dedent(MINE))
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    yield "my_plugins:"
    sys.modules.pop("my_plugins", None)


def handle():
    return Handle(PodClasses())


@pytest.mark.parametrize("separator", [":", "."])
def test_a_class_is_found_by_its_dotted_path(separator):
    path = f"roadstead.plugins.node_name{separator}NodeName"

    assert load_plugin_class(path) is NodeName


@pytest.mark.parametrize(
    "path",
    [
        "",
        "NodeName",
        ":NodeName",
        "no_such_module:NodeName",
        "roadstead.plugins.node_name:Nope",
        "roadstead.plugins.node_name:",
        ".node_name:NodeName",
        "..:NodeName",
        "roadstead..plugins:NodeName",
    ],
)
def test_an_unknown_path_can_not_be_loaded(path):
    with pytest.raises(InputError, match="cannot be loaded"):
        load_plugin_class(path)


def test_a_module_that_raises_is_reported_as_the_users_error(tmp_path, monkeypatch):
    (tmp_path / "breaks_at_import.py").write_text("1 / 0\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])

    with pytest.raises(InputError, match=r"cannot be loaded \(ZeroDivisionError"):
        load_plugin_class("breaks_at_import:Any")


def test_a_module_that_ends_the_process_is_refused_by_its_path(tmp_path, monkeypatch):
    (tmp_path / "exits_at_import.py").write_text("import sys\nsys.exit()\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])

    message = r"exits_at_import:Any cannot be loaded \(it ends the process with status 0"
    with pytest.raises(InputError, match=message):
        load_plugin_class("exits_at_import:Any")


def test_a_missing_class_is_reported_with_the_searched_file(mine, tmp_path):
    with pytest.raises(InputError, match=str(tmp_path / "my_plugins.py")):
        load_plugin_class(mine + "Fxied")


@pytest.mark.parametrize(
    "path",
    [
        "os:getcwd",
        "pathlib:Path",
        "roadstead.plugins.node_name:_REFUSED",
        "roadstead.framework.per_node:NodePlugin",
        "roadstead.framework.plugin:ScorePlugin",
        "my_plugins:not_a_class",
        "my_plugins:Nameless",
    ],
)
def test_anything_but_a_plugin_class_is_refused(mine, path):
    with pytest.raises(InputError, match="is not a Roadstead plugin class"):
        load_plugin_class(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Spaced", "has the name"),
        ("Idle", "overrides neither filter nor score"),
        ("Half", "lacks filter"),
        ("Bare", "implements no extension point"),
        ("Foreign", "has arguments that are no PluginArguments model"),
    ],
)
def test_an_unusable_class_is_refused_with_the_reason(mine, name, message):
    with pytest.raises(InputError, match=message):
        load_plugin_class(mine + name)


def test_a_per_node_class_is_adapted(mine):
    kind = load_plugin_class(mine + "Fixed")

    assert issubclass(kind, Plugin)
    assert extension_points(kind) == {"score"}


def test_plugins_are_found_in_a_folder_once_each(tmp_path):
    (tmp_path / "found_in_folder.py").write_text(textwrap.dedent(MINE))
    path = "found_in_folder:Fixed"

    kinds = load_plugins([path, path], str(tmp_path))

    assert list(kinds) == ["Fixed"]
    assert load_plugins([path], str(tmp_path)).keys() == kinds.keys()
    with pytest.raises(InputError, match=f"installed packages and in {tmp_path}"):
        load_plugins(["not_in_folder:Any"], str(tmp_path))


def test_another_file_of_the_same_module_is_refused(tmp_path):
    file = tmp_path / "digested_in_folder.py"
    file.write_text(textwrap.dedent(MINE))
    path = "digested_in_folder:Fixed"
    load_plugins([path], str(tmp_path))

    digests = digests_of([path, path])

    assert [name for name, _ in digests] == ["digested_in_folder"]
    check_digests(digests, [path])
    file.write_text(file.read_text() + "\n# changed\n")
    with pytest.raises(InputError, match=r"digested_in_folder.py.*differs from the code"):
        check_digests(digests, [path])


def package_of(folder, name):
    """A package with a plugin, and a module that the plugin may import."""
    package = folder / name
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "plug.py").write_text(textwrap.dedent(MINE))
    (package / "helper.py").write_text("WEIGHT = 1\n")
    path = f"{name}.plug:Fixed"
    load_plugins([path], str(folder))
    return path, package


def test_another_module_of_the_plugins_package_is_refused(tmp_path):
    path, package = package_of(tmp_path, "digested_package")
    digests = digests_of([path])

    (package / "__pycache__").mkdir(exist_ok=True)
    (package / "__pycache__" / "left.py").write_text("what Python leaves does not count")
    (package / ".#plug.py").symlink_to("nowhere")
    check_digests(digests, [path])
    (package / "helper.py").write_text("WEIGHT = 2\n")
    with pytest.raises(InputError, match=r"digested_package/plug.py.*all modules of its package"):
        check_digests(digests, [path])


def test_the_digest_of_a_large_package_is_bounded_and_still_sees_sizes(tmp_path, monkeypatch):
    monkeypatch.setattr(user_plugins, "MAX_DIGEST_BYTES", 8)
    path, package = package_of(tmp_path, "large_package")
    digests = digests_of([path])

    (package / "helper.py").write_text("WEIGHT = 2\n")
    check_digests(digests, [path])
    (package / "helper.py").write_text("WEIGHT = 22\n")
    with pytest.raises(InputError):
        check_digests(digests, [path])


def test_only_named_modules_of_a_folder_can_be_imported(tmp_path):
    (tmp_path / "named_in_folder.py").write_text("import a_sibling_of_it\n")
    (tmp_path / "a_sibling_of_it.py").write_text("")
    (tmp_path / "stat.py").write_text("raise SystemExit(9)\n")

    with pytest.raises(InputError, match="No module named 'a_sibling_of_it'"):
        load_plugin_class("named_in_folder:Fixed", str(tmp_path))
    with pytest.raises(InputError, match=r"has no attribute 'Fixed'; it is .*python"):
        load_plugin_class("stat:Fixed", str(tmp_path))
    assert str(tmp_path) not in sys.path


def test_a_file_with_the_name_of_an_installed_module_is_refused(tmp_path):
    (tmp_path / "queue.py").write_text("")

    with pytest.raises(InputError, match=r"bears the name of a module that is installed .*queue"):
        plugins_of_file(str(tmp_path / "queue.py"), str(tmp_path))


def test_an_invalid_python_file_is_refused_with_its_line(tmp_path):
    (tmp_path / "broken_in_folder.py").write_text("x = 1\nif x\n")

    with pytest.raises(InputError, match=r"expected ':', at .*broken_in_folder.py:2\)"):
        plugins_of_file(str(tmp_path / "broken_in_folder.py"), str(tmp_path))


def test_a_plugin_in_a_package_can_import_other_modules_of_the_package(tmp_path):
    package = tmp_path / "package_in_folder"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "helper.py").write_text("NAME = 'Fixed'\n")
    text = "from package_in_folder.helper import NAME\n" + textwrap.dedent(MINE)
    (package / "plugins.py").write_text(text)

    path = "package_in_folder.plugins:Fixed"

    assert load_plugin_class(path, str(tmp_path)).name == "Fixed"


def test_two_plugins_of_one_name_are_refused(mine):
    with pytest.raises(InputError, match='is a second plugin of the name "Fixed"'):
        load_plugins([mine + "Fixed", mine + "Same"])


def test_installed_packages_offer_plugins_by_entry_point(monkeypatch):
    class Entry:
        name, value = "Fixed", "my_plugins:Fixed"

    monkeypatch.setattr(
        user_plugins, "entry_points", lambda group: [Entry] if group == "roadstead.plugins" else []
    )

    assert installed_plugins() == {"Fixed": "my_plugins:Fixed"}


def test_a_plugin_is_built_with_its_validated_arguments(mine):
    (factory,) = factories_of(load_plugins([mine + "Fixed"])).values()

    plugin = factory({"bestScore": 7, "names": ["a"]}, handle())

    assert score_with(plugin, pod(), table_of()) == []
    assert plugin.wrapped.args.best_score == 7
    assert plugin.wrapped.args.names == ("a",)
    assert factory(None, handle()).wrapped.args.best_score == 50


def test_arguments_can_not_be_changed_in_the_plugin(mine):
    plugin = factory_of(load_plugin_class(mine + "Fixed"))(None, handle())

    with pytest.raises(ValueError, match="frozen"):
        plugin.wrapped.args.best_score = 9


def test_without_a_model_a_plugin_gets_the_raw_arguments_and_the_handle(mine):
    given = {"any": ["thing"]}
    own = handle()

    plugin = factory_of(load_plugin_class(mine + "Raw"))(given, own)

    assert plugin.wrapped.given == (given, own)


def test_arguments_for_a_plugin_without_arguments_are_refused(mine):
    build = factory_of(load_plugin_class(mine + "Same"))

    assert build({}, handle()).name == "Fixed"
    with pytest.raises(ConfigError, match="the plugin takes no arguments"):
        build({"a": 1}, handle())


@pytest.mark.parametrize(
    ("raised", "message"),
    [(KeyError("x"), "KeyError: 'x'"), (SystemExit(3), "it ends the process with status 3")],
)
def test_a_failing_constructor_is_reported_with_its_plugin(raised, message):
    def fail(self):
        raise raised

    members = {"name": "Fails", "__init__": fail, "__module__": __name__}
    kind = type("Fails", (NodeName,), members)

    with pytest.raises(InputError) as refused:
        factory_of(kind)(None, handle())
    assert str(refused.value).startswith(f"plugin: Fails cannot be built ({message}, at tests/")


def test_a_constructors_own_error_is_reported(mine):
    with pytest.raises(
        InputError, match=r"Picky cannot be built \(not today, at my_plugins.py:42\)"
    ):
        factory_of(load_plugin_class(mine + "Picky"))(None, handle())


class Limits(PluginArguments):
    max_pods: int = Field(ge=1)
    zones: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "args.maxPods: is missing"),
        ({"maxPods": "3"}, 'args.maxPods: "3"'),
        ({"maxPods": 0}, "args.maxPods: 0: must be at least 1"),
        ({"max_pods": 3}, "args.max_pods"),
        ({"maxPods": 1, "zones": ["a", 2]}, r"args.zones\[1\]: 2"),
        ([1], "args: list of 1: must be a mapping"),
    ],
)
def test_invalid_arguments_are_reported_by_field(value, message):
    with pytest.raises(ConfigError, match=message):
        parse_arguments(Limits, value, field="args")


def test_the_type_of_arguments_may_be_annotated():
    value = {"apiVersion": "example.com/v1", "kind": "LimitsArgs", "maxPods": 4}

    assert parse_arguments(Limits, value, field="args") == Limits.model_validate({"maxPods": 4})


def test_every_invalid_argument_of_a_document_is_reported_with_its_place():
    class Limited(NodePlugin):
        name = "Limited"
        arguments = Limits

        def score(self, pod, node):
            return 1

    entries = [
        {"name": "Limited", "args": {"maxPods": 0}},
        {"name": "NodeAffinity", "args": {}},
        {"name": "Free", "args": 3},
    ]
    document = {"profiles": [{"schedulerName": "a"}, {"pluginConfig": [*entries, entries[0]]}]}
    kinds = {"Limited": Limited, "Free": NodeName}

    with pytest.raises(ConfigError) as refused:
        check_arguments(kinds, document, "mine.yaml")

    assert [problem.field for problem in refused.value.problems] == [
        "profiles[1].pluginConfig[0].args.maxPods",
        "profiles[1].pluginConfig[3].args.maxPods",
    ]
    assert "mine.yaml" in str(refused.value)


def test_valid_arguments_pass():
    check_arguments({"Free": NodeName}, {"profiles": [{"pluginConfig": None}]}, "")
    check_arguments({}, {}, "")
