"""What a test runs in the Python of tasks: reads `s3://` paths through fsspec, and prints what it found as JSON."""

import json

import fsspec


def error_of(call):
    try:
        call()
    except OSError as error:
        return str(error)
    return "nothing"


def text_of(path, mode="r"):
    with fsspec.open(path, mode) as file:
        return file.read()


bucket = fsspec.filesystem("s3")
print(
    json.dumps(
        {
            "text": text_of("s3://bucket/reviews/more/x.csv"),
            "by_the_key": text_of("s3://other/deep/more/x.csv"),
            "listed": bucket.ls("bucket/reviews", detail=False),
            "glob": bucket.glob("s3://bucket/reviews/**/*.tfrecord"),
            "nowhere": error_of(lambda: text_of("s3://elsewhere/y.csv")),
            "written": error_of(lambda: text_of("s3://bucket/reviews/z.csv", "w")),
        }
    )
)
