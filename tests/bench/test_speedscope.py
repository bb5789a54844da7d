from roadstead.bench.speedscope import Samples, StackFrame, speedscope_document

MAIN, WORK, WAIT = (
    StackFrame(name, "f.py", line) for line, name in enumerate(("main", "work", "wait"))
)


def test_each_process_is_a_profile_over_shared_frames():
    samples = {
        "one": [Samples((MAIN, WORK), (((0, 1), 3), ((0,), 1)), 0.5)],
        "two": [Samples((WAIT, MAIN), (((1, 0), 2),), 0.5), Samples((MAIN,), (((0,), 4),), 0.25)],
    }

    document = speedscope_document("bench", samples, "1.0")

    frames = [each["name"] for each in document["shared"]["frames"]]
    one, two = document["profiles"]
    assert frames == ["main", "work", "wait"]
    assert (one["samples"], one["weights"]) == ([[0, 1], [0]], [1.5, 0.5])
    assert one["endValue"] == 2.0
    assert (two["samples"], two["weights"]) == ([[0, 2], [0]], [1.0, 1.0])
    assert document["$schema"].startswith("https://www.speedscope.app/")
    assert {each["type"] for each in document["profiles"]} == {"sampled"}
