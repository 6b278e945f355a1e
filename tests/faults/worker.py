"""`hitherto worker …` in a process whose wall clock jumps when it is told to.

python -m tests.faults.worker SECONDS worker …

At SIGUSR1 `time.time`, and what asks it for the time, jump by so many seconds.
"""

from __future__ import annotations

import signal
import sys
import time

from hitherto import cli


def main() -> None:
    by = float(sys.argv.pop(1))
    real = time.time

    def jump(number: int, frame: object) -> None:
        time.time = lambda: real() + by

    signal.signal(signal.SIGUSR1, jump)
    cli.main()


if __name__ == "__main__":
    main()
