"""`python -m tests.recorded`: record anew, or show in full what is recorded as hashes."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from tests.recorded.internals import on, stores
from tests.recorded.recording import Pieces, text_of, write, write_full
from tests.recorded.run import CASES, run_case
from tests.recorded.surface import write_surface


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.recorded", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="record all cases anew")
    what.add_argument("--show", metavar="PIECE", help="print the pieces whose names begin so, such as agent/redact/end")
    what.add_argument("--full", metavar="FOLDER", type=Path, help="write all pieces as text, a file each, for diff -r")
    asyncio.run(_run(parser.parse_args()))


async def _run(asked: argparse.Namespace) -> None:
    async with stores() as found:

        async def output_of(case: str) -> Pieces:
            async with on(await found.store()) as backend:
                return await run_case(case, backend)

        if asked.show:
            wanted: str = asked.show
            for case in CASES:
                if f"{case}/".startswith(wanted) or wanted.startswith(f"{case}/"):
                    for name, piece in (await output_of(case)).items():
                        if f"{case}/{name}".startswith(wanted):
                            sys.stdout.write(f"{case}/{name}\n{text_of(piece)}")
            return
        output = {case: await output_of(case) for case in CASES}
    if asked.write:
        write(output)
        write_surface()
    else:
        for case, pieces in output.items():
            write_full(asked.full, case, pieces)


if __name__ == "__main__":
    main()
