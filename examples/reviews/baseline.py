"""A linear model of the same texts, to compare with: tf-idf of words and pairs of words, and logistic regression.

    python baseline.py --data_dir=DATA

It learns from the training split, chooses its one setting by the validation split, and tests once on the test split.
With `--characters` it sees the runs of four characters, too, as the model of `train.py` does.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_union

import reviews_data

INVERSE_PENALTIES = (1.0, 3.0, 10.0, 30.0)
WORD = r"[a-z0-9']+|[!?]"


def parse_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--log_dir", help="not used: nothing is kept")
    parser.add_argument("--characters", action="store_true", help="runs of four characters, too")
    return parser.parse_args()


def texts_and_labels(data_dir: str, split: str) -> tuple[list[str], np.ndarray]:
    texts, labels = reviews_data.arrays(data_dir, split)
    return [text.decode() for text in texts], labels


def main() -> None:
    flags = parse_flags()
    seen = [TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=WORD)]
    if flags.characters:
        seen.append(TfidfVectorizer(analyzer="char", ngram_range=(4, 4), sublinear_tf=True))
    features = make_union(*seen)
    texts, labels = texts_and_labels(flags.data_dir, "train")
    known = features.fit_transform(texts)
    held_out, held_out_labels = texts_and_labels(flags.data_dir, "validation")
    held_out_features = features.transform(held_out)
    best, best_score = None, -1.0
    for inverse_penalty in INVERSE_PENALTIES:
        model = LogisticRegression(C=inverse_penalty, solver="liblinear", random_state=1).fit(known, labels)
        score = model.score(held_out_features, held_out_labels)
        print(f"C {inverse_penalty:g}: validation accuracy {score:.4f}")
        if score > best_score:
            best, best_score = model, score
    texts, labels = texts_and_labels(flags.data_dir, "test")
    accuracy = best.score(features.transform(texts), labels)
    print(f"test: {len(labels)} texts, 95 % interval ±{reviews_data.margin(accuracy, len(labels)):.4f}")
    print(f"baseline test accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
