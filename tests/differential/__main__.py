"""``python -m tests.differential``: compare the checker with Spark over pipelines drawn at random."""

from __future__ import annotations

import argparse
import re
import secrets
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.differential.generator import draw
from tests.differential.processes import in_processes
from tests.differential.run import comparing, work
from tests.differential.shrink import same, save, shrink
from tests.differential.tally import Tally

if TYPE_CHECKING:
    from tests.differential.compare import Comparison, Disagreement

PROOFS = 5
MISSED = 0.005
ENOUGH = 1500


def main(arguments: list[str] | None = None) -> int:
    """Run it.

    Returns:
        The exit status: 1 when there is a disagreement, or too much is missed.
    """
    parser = argparse.ArgumentParser("python -m tests.differential", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many pipelines (default: 1000)")
    parser.add_argument("--seed", default=None, help="what they come from (default: another one each time)")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes, each with a JVM of its own")
    parser.add_argument(
        "--edits", type=int, metavar="N", help="try N edits of running pipelines in place of all that"
    )
    parser.add_argument(
        "--truths",
        type=Path,
        metavar="FILE",
        help="keep what became of edits there, and try none again that is there already",
    )
    parser.add_argument(
        "--states",
        type=int,
        default=0,
        metavar="N",
        help="with --edits: only those of pipelines that keep state at so many nodes (default: of any)",
    )
    parser.add_argument(
        "--at-once",
        type=int,
        default=1,
        metavar="N",
        help="with --edits: try so many edits of a pipeline as one (default: 1)",
    )
    parser.add_argument(
        "--planned",
        action="store_true",
        help="with --edits: have Spark only plan them, and run none but those that it plans otherwise than told",
    )
    parser.add_argument(
        "--shapes",
        action="store_true",
        help="with --edits: of so many versions of pipelines, whether Spark keeps what is thought",
    )
    parser.add_argument("--one", metavar="SEED", help="one pipeline, as a report names it (SEED:NUMBER)")
    parser.add_argument(
        "--proofs", type=int, default=PROOFS, help="how many queries to start for each deliberate difference"
    )
    parser.add_argument(
        "--start", type=int, default=0, help="how many queries to start that both accept (default: none)"
    )
    parser.add_argument(
        "--shrink", action="store_true", help="make one pipeline of each kind of disagreement small"
    )
    parser.add_argument(
        "--save", type=Path, metavar="FOLDER", help="write what was shrunk there, as regression cases"
    )
    given = parser.parse_args(arguments)
    seed = given.seed if given.seed is not None else secrets.token_hex(4)
    if given.edits and given.shapes:
        from tests.differential.edits.shaped import run as shaped

        return shaped(seed, given.edits, given.jobs, given.states)
    if given.edits and given.planned:
        from tests.differential.edits.planned import run as plan

        return plan(seed, given.edits, given.jobs, given.states, given.at_once)
    if given.edits:
        from tests.differential.edits.main import run

        return run(seed, given.edits, given.jobs, given.truths, given.states, given.at_once)
    if given.one:
        return show(given.one)
    print(f"seed {seed}, {given.count} pipelines", flush=True)
    parts = [
        [f"{seed}:{number}" for number in range(job, given.count, given.jobs)] for job in range(given.jobs)
    ]
    tally = Tally()
    for found in in_processes(work, [(part, given.proofs, given.start) for part in parts]):
        tally.merge(found)
    print("\n".join(tally.lines()))
    if given.shrink and tally.disagreements:
        show_shrunk([found[0] for found in tally.disagreements.values()], given.save)
    return 1 if tally.disagreements or missed_too_many(tally) else 0


def missed_too_many(tally: Tally) -> bool:
    """Whether too many mistakes that aren't about streams are missed, of enough to tell."""
    broken = tally.found + tally.missed_targets
    return broken >= ENOUGH and tally.missed_targets > MISSED * broken


def show(seed: str) -> int:
    """Print one pipeline and what both say of it."""
    drawn = draw(seed)
    print(yaml.safe_dump(drawn.values, sort_keys=False, width=100))
    with comparing(PROOFS) as comparison:
        compared = comparison.of(drawn.values)
    print(f"mistake: {drawn.mistake}")
    for target, verdict in (compared.verdicts or {}).items():
        print(f"{target}: {verdict}")
    for text in [*compared.options, *compared.deliberate, *map(str, compared.disagreements)]:
        print(text)
    return 1 if compared.disagreements else 0


def show_shrunk(found: list[tuple[str, Disagreement]], folder: Path | None) -> None:
    """Print, and keep, the smallest pipeline for each disagreement."""
    with comparing(proofs=0) as comparison:
        for seed, disagreement in found:
            values = shrink(draw(seed).values, partial(_still, comparison, disagreement))
            compared = comparison.of(values)
            texts = [str(other) for other in compared.disagreements]
            print("", f"# {seed}", *(f"# {text}" for text in texts), sep="\n")
            print(yaml.safe_dump(values, sort_keys=False, width=100), flush=True)
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
                name = re.sub(r"\W+", "_", f"{disagreement.kind} {' '.join(disagreement.codes)} {seed}")
                save(folder, name, values, compared.verdicts or {}, "; ".join(texts))


def _still(comparison: Comparison, disagreement: Disagreement, values: dict[str, Any]) -> bool:
    """Whether a smaller pipeline shows the same disagreement."""
    return same(disagreement, comparison.of(values).disagreements)


if __name__ == "__main__":
    raise SystemExit(main())
