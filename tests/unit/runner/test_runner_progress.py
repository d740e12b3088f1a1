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
        (b"Epoch 2/5\n", {"step": 0, "epoch": 2, "epochs": 5}),
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
    assert progress.facts() == {"step": 500, "epoch": 4, "epochs": 9}


def test_only_the_end_of_much_output_is_looked_at():
    assert after(b"step 5\n" + b"x" * 5000) == {}


def bar(batch: int, batches: int) -> bytes:
    """As Keras 3 redraws it in a pipe."""
    line = b"\x1b[1m%3d/%d\x1b[0m \x1b[32m\xe2\x94\x81\x1b[0m\x1b[37m\xe2\x94\x81\x1b[0m \x1b[1m1s\x1b[0m 9ms/step"
    return b"\x08" * 20 + b"\r" + line % (batch, batches)


@pytest.mark.parametrize(
    "line",
    [
        bar(12, 100),
        b"\r 12/100 [==>...........................] - ETA: 3s - loss: 2.3",
        b"\x08\x08 12/100 [=>.....] - ETA: 1s",
        b"12/100 - 1s - 10ms/step - loss: 0.25\n",
    ],
    ids=["Keras 3", "Keras 2", "Keras 2 redrawn", "verbose=2"],
)
def test_steps_of_keras_are_counted_through_all_epochs(line):
    assert after(b"Epoch 3/10\n" + line) == {"step": 212, "total": 1000, "epoch": 3, "epochs": 10}


@pytest.mark.parametrize(
    "line", [b"12/100\n", b"ratio 12/100 - fine\n", b"2026/11/26 - started\n", b"\r 12/Unknown [=] \n"]
)
def test_what_is_no_bar_of_keras_is_no_step(line):
    assert after(b"Epoch 3/10\n" + line).get("total") is None


def test_a_bar_of_an_evaluation_is_no_step_of_the_training():
    facts = after(b"Epoch 2/2\n" + bar(100, 100), b"\n" + bar(7, 32), b"\n" + bar(32, 32))
    assert (facts["step"], facts["total"]) == (200, 200)


def test_a_beginning_of_an_epoch_that_no_sample_had_is_told_by_the_bar():
    facts = after(b"Epoch 1/5\n" + bar(90, 100), bar(20, 100), bar(60, 100), bar(10, 100))
    assert facts == {"step": 210, "total": 500, "epoch": 3, "epochs": 5}


def test_a_second_fit_continues_from_the_first():
    facts = after(b"Epoch 2/2\n" + bar(50, 50), b"Epoch 1/3\n" + bar(10, 40))
    assert (facts["step"], facts["total"]) == (110, 220)


def test_a_script_that_has_ended_well_is_at_its_end():
    progress = Progress()
    progress.see_output(b"step 191/200")
    assert progress.facts() == {"step": 191, "total": 200}
    progress.finish()
    assert progress.facts() == {"step": 191, "total": 191}
    progress.see_step(195)  # its event files are read once more
    assert progress.facts() == {"step": 195, "total": 195}


def test_a_training_that_was_stopped_early_by_itself_is_at_its_end():
    progress = Progress()
    progress.see_output(b"Epoch 4/10\n" + bar(100, 100))
    progress.finish()
    assert progress.facts() == {"step": 400, "total": 400, "epoch": 4, "epochs": 4}


def test_steps_without_a_total_stay_without_one():
    progress = Progress()
    progress.see_step(7)
    progress.finish()
    assert progress.facts() == {"step": 7}
