"""The datasets of `keras.datasets`: which files they have, where Keras fetches them, and with which checksums.

The names are those under which `load_data` looks for the files below `KERAS_HOME`, or those from which the runner leads
there (`yardmaster_runner.keras_home`); a test compares the list with both Keras of the tasks. Keras publishes no
checksum of Fashion-MNIST: these are of the files as Zalando published them. What no fixed list of files exists for
(`tfds.load`, hub models) is not here.
"""

from __future__ import annotations

from dataclasses import dataclass

PREFIX = "keras/"
MOST_BYTES = 256 << 20
"""Of one file: more than any of these has."""
_KERAS = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"
_CIFAR = "https://www.cs.toronto.edu/~kriz/"


@dataclass(frozen=True)
class KnownFile:
    """A file that is `path` below `KERAS_HOME`. `digest`: SHA-256, or MD5 where Keras has no other, in hexadecimal."""

    path: str
    address: str
    digest: str

    @property
    def name(self) -> str:
        """At the address; no two files have the same."""
        return self.address.rpartition("/")[2]


def _file(name: str, digest: str, *, base: str = _KERAS, folder: str = "datasets", path: str = "") -> KnownFile:
    return KnownFile(f"{folder}/{path or name}", base + name, digest)


def _fashion(name: str, digest: str) -> KnownFile:
    return _file(name, digest, folder="datasets/fashion-mnist")


KERAS = {
    "boston_housing": (
        _file("boston_housing.npz", "f553886a1f8d56431e820c5b82552d9d95cfcb96d1e678153f8839538947dff5"),
    ),
    "california_housing": (
        _file("california_housing.npz", "1a2e3a52e0398de6463aebe6f4a8da34fb21fbb6b934cf88c3425e766f2a1a6f"),
    ),
    "cifar10": (
        _file(
            "cifar-10-python.tar.gz", "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce", base=_CIFAR,
            path="cifar-10-batches-py.tar.gz",
        ),
    ),
    "cifar100": (
        _file(
            "cifar-100-python.tar.gz", "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7", base=_CIFAR,
            path="cifar-100-python.tar.gz",
        ),
    ),
    "fashion_mnist": (
        _fashion("t10k-images-idx3-ubyte.gz", "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
        _fashion("t10k-labels-idx1-ubyte.gz", "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
        _fashion("train-images-idx3-ubyte.gz", "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
        _fashion("train-labels-idx1-ubyte.gz", "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
    ),
    "imdb": (
        _file("imdb.npz", "69664113be75683a8fe16e3ed0ab59fda8886cb3cd7ada244f7d9544e4676b9f"),
        _file("imdb_word_index.json", "bfafd718b763782e994055a2d397834f"),
    ),
    "mnist": (_file("mnist.npz", "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1"),),
    "reuters": (
        _file("reuters.npz", "d6586e694ee56d7a4e65172e12b3e987c03096cb01eab99753921ef915959916"),
        _file("reuters_word_index.json", "4d44cc38712099c9e383dc6e5f11a921"),
    ),
}  # fmt: skip


def source_of(names: set[str]) -> str:
    """What makes one dataset of these: `keras/mnist`, `keras/imdb+reuters`."""
    return PREFIX + "+".join(sorted(names))


def source_files(source: str) -> tuple[KnownFile, ...]:
    """The files of a source, by path; none where it is not known, or not written as `source_of` writes it."""
    names = source.removeprefix(PREFIX).split("+")
    if not set(names) <= KERAS.keys() or source != source_of(set(names)):
        return ()
    return tuple(sorted((one for name in names for one in KERAS[name]), key=lambda one: one.path))


def dataset_name(source: str) -> str:
    """`keras-mnist`, `keras-imdb-reuters`."""
    return source.replace("/", "-").replace("+", "-")
