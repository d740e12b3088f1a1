"""One process, Keras `fit`: the shortest of these scripts, and the one to begin with.

    python single.py --data_dir=DATA --log_dir=LOG

After each epoch it saves a checkpoint into the log directory; started again, it goes on from there. In the end it tests
the model and exports it to $MODEL_DIR.
"""

from __future__ import annotations

import argparse
import os

import tf_keras as keras

import digits_data
import digits_keras


def parse_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--log_dir", required=True)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--steps_per_epoch", type=int, default=50)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--learning_rate", type=float, default=0.003)
    return parser.parse_args()


def main() -> None:
    flags = parse_flags()
    model = digits_keras.build_model(flags.learning_rate)
    model.fit(
        digits_data.training_data(flags.data_dir, flags.batch_size),
        epochs=flags.epochs,
        steps_per_epoch=flags.steps_per_epoch,
        callbacks=[
            keras.callbacks.BackupAndRestore(os.path.join(flags.log_dir, "checkpoints"), delete_checkpoint=False),
            keras.callbacks.TensorBoard(flags.log_dir, update_freq=10),
        ],
        verbose=2,  # one line per epoch: a progress bar makes a poor log
    )
    digits_keras.evaluate_and_export(model.get_weights(), flags.data_dir)


if __name__ == "__main__":
    main()
