"""Numbers of things in a sentence. Words of the pages belong to `warehouse.report.words`."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, which takes an s unless there is one of it.

    >>> counted(1, "run"), counted(12345, "point")
    ('1 run', '12,345 points')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
