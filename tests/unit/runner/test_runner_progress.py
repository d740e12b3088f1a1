import pytest

from yardmaster_runner.progress import Progress


def after(*outputs: bytes) -> dict:
    progress = Progress()
    for output in outputs:
        progress.see_output(output)
    return progress.facts()


def test_nothing_is_known_before_anything_is_said():
    assert after(b"hello\n") == {}


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        (b"Epoch 2/5\n", {"step": 0, "epoch": 2}),
        (b"\rstep 120 of many", {"step": 120}),
        (b"INFO:tensorflow:loss = 0.5, step = 200 (0.1 sec)", {"step": 200}),
        (b"global_step=300 loss=1", {"step": 300}),
        (b"Step: 40/200", {"step": 40, "total": 200}),
        (b"steps per second 12", {}),
        (b"footstep 9", {}),
    ],
)
def test_common_ways_to_say_it_are_understood(line, facts):
    assert after(line) == facts


def test_the_largest_step_counts_and_the_last_epoch():
    progress = Progress()
    progress.see_step(500)
    progress.see_output(b"Epoch 3/9\nEpoch 4/9\nstep 20\n")
    assert progress.facts() == {"step": 500, "epoch": 4}


def test_only_the_end_of_much_output_is_looked_at():
    assert after(b"step 5\n" + b"x" * 5000) == {}
