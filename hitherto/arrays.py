"""NumPy, imported when one of its names is first used: the client of the service never does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:

    class _Numpy:
        def __getattr__(self, name: str) -> Any:
            import numpy

            found = getattr(numpy, name)
            setattr(self, name, found)  # from now on as quick as a module's own name
            return found

    np = _Numpy()
    NDArray = Any

__all__ = ["NDArray", "np"]
