"""The drawing of the packages in docs/architecture.md beside the imports that there are."""

import re

import grimp

ARROW = re.compile(r"^  (\w+) -\.?->\s*(.+)$", re.M)
ROOM = re.compile(r'^  (\w+)\["(.+)"\]$', re.M)  # several modules drawn as one
GROUND = "ground"  # to which no arrow is drawn


def test_the_drawing_of_the_packages_has_exactly_the_imports_that_there_are(root):
    page = (root / "docs/architecture.md").read_text(encoding="utf-8")
    drawing = next(each for each in re.findall(r"```mermaid\n(.*?)```", page, re.S) if GROUND in each)
    drawn = {(source, target) for source, targets in ARROW.findall(drawing) for target in targets.split(" & ")}
    rooms = {module: room for room, modules in ROOM.findall(drawing) for module in modules.split(", ")}

    graph = grimp.build_graph("symbert", cache_dir=None)
    parts = {name: name.split(".")[1] for name in graph.modules if "." in name}
    parts = {name: rooms.get(part, part) for name, part in parts.items() if part != "__main__"}
    imports = {
        (parts[name], parts[imported])
        for name in parts
        for imported in graph.find_modules_directly_imported_by(name)
        if imported in parts and parts[name] != parts[imported]
    }
    assert {source for source, _ in imports}.isdisjoint({GROUND})
    found = {(source, target) for source, target in imports if target != GROUND}
    assert (sorted(found - drawn), sorted(drawn - found)) == ([], []), "imports not drawn, and arrows without imports"
    assert {*parts.values(), GROUND} == {GROUND, *(part for arrow in drawn for part in arrow)}, (
        "a package without arrows"
    )
    assert rooms.keys() <= {name.split(".")[1] for name in parts}, "modules that are gone"
