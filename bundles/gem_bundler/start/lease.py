"""A lease beside each checkpoint: who runs this stream now, on whatever machine.

The lock of `gem_bundle.run.lock` ends at the machine, or at the network disk that honours it. A job that is
started every ten minutes, on another node each time, needs to know more: does the stream of the last start
still run? A lease answers that through fsspec, so on object stores too.

A lease is a small file ``.<target>.lease.<generation>`` in the folder that the checkpoint lies in. Whoever
holds the newest generation runs the stream, and rewrites the file every few seconds. Nobody compares the
clocks of two machines: who wants the lease watches the file, and calls its owner dead when the file's
content stays the same for as long as six beats take by the watcher's own clock. So clocks may tell whatever
time they like; that they go a little faster or slower does no harm. A process of this machine is asked
directly. Taking over means to create the next generation, which only one can do where the store creates
files atomically; elsewhere the winner is who finds its own words there some moments later. An owner that
finds a newer generation, or that can't reach the store for four beats, has lost the lease and stops its
queries gracefully.

It is a courtesy that prevents double work, and no more than that. A store without an atomic create, an
owner that was suspended for longer than six beats, somebody who deletes the file: in each of these cases two
runs can work on one checkpoint for some seconds. What they write is still right: Spark's own commit log
lets one of them commit a micro-batch and makes the other one fail.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Self

from gem_bundle.errors import GemError
from gem_bundle.files import advice
from gem_bundler.start.lease_owner import Owner, lives_here
from gem_bundler.start.lease_store import FileStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from gem_bundler.start.lease_store import Store

MISSED_BEATS = 6
"""After so many beats without a change of the file its owner is taken for dead."""
OWN_MISSED_BEATS = 4
"""After so many beats that couldn't be written an owner gives up, before others take it for dead."""
_SLOWEST_BEAT = 60.0


class _Seen(NamedTuple):
    """The newest generation as it was read: 0 when there is none."""

    generation: int
    content: bytes

    @property
    def owner(self) -> Owner:
        return Owner.of(self.content)

    @property
    def is_free(self) -> bool:
        return self.generation == 0 or self.owner.released


class Observation(NamedTuple):
    """What watching a lease told.

    Args:
        seen: The newest generation.
        holder: Its owner, if it lives.
    """

    seen: _Seen
    holder: Owner | None


class Lease:
    """The lease of one checkpoint.

    Args:
        store: Where it lies.
        owner: Who wants it.
        now: The clock: seconds that only grow.
        sleep: Waits for some seconds.
        lives: Whether a process of this machine lives; None when it isn't one.
    """

    def __init__(
        self,
        store: Store,
        owner: Owner,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        lives: Callable[[Owner], bool | None] = lives_here,
    ) -> None:
        self.owner = owner
        self.generation = 0
        self._store = store
        self._now = now
        self._sleep = sleep
        self._lives = lives
        self._beaten = 0.0

    def observe(self) -> Observation:
        """Find out whether somebody holds the lease and lives; that takes up to six beats."""
        first = self._newest()
        if first.is_free:
            return Observation(first, None)
        owner = first.owner
        lives = self._lives(owner)
        if lives is not None:
            return Observation(first, owner if lives else None)
        every = min(max(owner.every, self.owner.every), _SLOWEST_BEAT)
        deadline = self._now() + MISSED_BEATS * every
        while self._now() < deadline:
            self._sleep(every / 5)
            seen = self._newest()
            if seen != first:
                return Observation(seen, None if seen.is_free else seen.owner)
        return Observation(first, None)

    def take(self, observed: Observation) -> Owner | None:
        """Take the lease that was found free, or its owner dead.

        Returns:
            None when it is taken; who has it when somebody else was faster.
        """
        while observed.holder is None:
            # Whoever beat since then isn't dead.
            if self._newest() == observed.seen and self._create(observed.seen.generation + 1):
                return None
            observed = self.observe()
        return observed.holder

    def acquire(self) -> Owner | None:
        """Take the lease unless somebody holds it and lives; returns who that is."""
        return self.take(self.observe())

    def beat(self) -> str:
        """Show that its owner lives.

        Returns:
            Why the lease is lost, or an empty string while it is held.
        """
        try:
            seen = self._newest()
            if seen.generation != self.generation or seen.owner.run != self.owner.run:
                other = "it was removed" if seen.generation == 0 else f"it was taken over by {seen.owner}"
                return f"the lease is lost: {other}"
            self.owner = replace(self.owner, beat=self.owner.beat + 1)
            self._store.write(self.generation, self.owner.as_bytes())
        except Exception as error:  # noqa: BLE001 (every store raises what its client raises)
            silent = self._now() - self._beaten
            if silent < OWN_MISSED_BEATS * self.owner.every:
                return ""
            return f"the lease is lost: it couldn't be renewed for {silent:.0f} seconds ({error})"
        self._beaten = self._now()
        return ""

    def release(self) -> None:
        """Give it back, so that the next run needn't wait. The file stays: generations only grow."""
        with suppress(Exception):  # others find out by watching
            seen = self._newest()
            if seen.generation == self.generation and seen.owner.run == self.owner.run:
                self._store.write(self.generation, replace(self.owner, released=True).as_bytes())
        self.generation = 0

    def _newest(self) -> _Seen:
        while True:
            generations = self._store.generations()
            if not generations:
                return _Seen(0, b"")
            # It may have been removed by whoever made a newer one.
            with suppress(FileNotFoundError):
                return _Seen(generations[-1], self._store.read(generations[-1]))

    def _create(self, generation: int) -> bool:
        began = self._now()
        try:
            self._store.create(generation, self.owner.as_bytes())
        except FileExistsError:
            return False
        if self._store.settle:
            self._sleep(self._store.settle)
        seen = self._newest()
        if seen.generation != generation or seen.owner.run != self.owner.run:
            if seen.generation > generation:
                self._store.remove(generation)
            return False
        self.generation, self._beaten = generation, began
        for older in self._store.generations():
            if older < generation:
                self._store.remove(older)
        return True


class Leases:
    """The leases of all checkpoints of a run: taken together, kept up by a thread, given back at the end.

    Args:
        checkpoints: The checkpoint location of each target.
        owner: Who wants them.

    Raises:
        GemError: GB662 when there is a checkpoint where none can be kept.
    """

    def __init__(self, checkpoints: Mapping[str, str], owner: Owner) -> None:
        self.lost = ""
        """Why one of them was lost, if one was."""
        self._leases = {
            target: Lease(FileStore(location), owner) for target, location in sorted(checkpoints.items())
        }
        self._every = owner.every
        self._held: list[Lease] = []
        self._over = threading.Event()
        self._heart: threading.Thread | None = None

    def acquire(self) -> dict[str, Owner]:
        """Take all of them, or none.

        Returns:
            Who holds which target's; empty when all are taken.

        Raises:
            GemError: GB662 when a store can't be read or written.
        """
        if not self._leases:
            return {}
        try:
            # Together, since each may have to be watched for six beats.
            with ThreadPoolExecutor(len(self._leases)) as pool:
                seen = pool.map(Lease.observe, self._leases.values())
                observed = dict(zip(self._leases, seen, strict=True))
            alive = {target: found.holder for target, found in observed.items() if found.holder is not None}
            if alive:
                return alive
            self._heart = threading.Thread(target=self._beat, name="gem-bundle-lease", daemon=True)
            self._heart.start()
            # One after the other, in an order that all runs keep: of two that start at once, the one that
            # comes second to the first lease takes none of the others.
            for target, lease in self._leases.items():
                holder = lease.take(observed[target])
                if holder is not None:
                    self.close()
                    return {target: holder}
                self._held.append(lease)
        except Exception as error:
            self.close()
            raise GemError(
                "GB662",
                f"no lease can be kept beside the checkpoints: {type(error).__name__}: {error}",
                advice(
                    str(error),
                    "See to it that this user may list, read and write files in the checkpoints' folder.",
                ),
            ) from error
        return {}

    def _beat(self) -> None:
        while not self._over.wait(self._every):
            for lease in list(self._held):
                why = lease.beat()
                if why and not self.lost:
                    self.lost = why

    def close(self) -> None:
        """Give all of them back."""
        self._over.set()
        if self._heart is not None:
            self._heart.join(timeout=self._every * 2)
        while self._held:
            self._held.pop().release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
