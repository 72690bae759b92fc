"""Objects that end by close() or `with`."""
import warnings


class Closing:
    """`with` closes it, also where an exception leaves."""
    __slots__ = ()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Dropping:
    """What all ranks close together, or each rank drops by itself.

    It has _drop(), which gives it up and says whether it was open. `with`
    closes it, or drops it where an exception leaves.
    """

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.close()
        else:
            self._drop()  # the other ranks may be anywhere

    def __del__(self):
        if not self._drop():
            return
        warnings.warn(f"{self!r} was not closed; all ranks have to drop it",
                      ResourceWarning, source=self)
