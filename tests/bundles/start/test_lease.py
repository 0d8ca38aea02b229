"""The lease beside a checkpoint: who may run, on whatever machine, whatever happens in between."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import uuid
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gem_bundle.errors import GemError
from gem_bundle.files import NEW_CREDENTIALS
from gem_bundler.start.lease import MISSED_BEATS, OWN_MISSED_BEATS, Lease, Leases
from gem_bundler.start.lease_owner import BEAT_SECONDS, Owner, lives_here, this_process
from gem_bundler.start.lease_store import SETTLE_SECONDS, FileStore
from tests.samples import drawn, examples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.s3_server import S3

T = TypeVar("T")
DEAD = MISSED_BEATS * BEAT_SECONDS
# How fast the clocks of machines go. A clock that drifts by a hundredth loses a quarter of an hour in a day.
RATES = (1.0, 0.99, 1.01)


class Clock:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.time = 0.0
        self.asleep: Callable[[], None] = lambda: None

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        self.asleep()


def in_memory() -> str:
    return f"memory://{uuid.uuid4().hex}/checkpoints/clicks/table"


def lease(place: str, clock: Clock, run: str, process: str = "") -> Lease:
    owner = Owner(run, f"host-{run}", 1, process, "clicks 1.0", "2026-01-01T00:00:00Z")
    return Lease(FileStore(place), owner, now=clock.now, sleep=clock.sleep)


@pytest.fixture(params=["local", "memory", pytest.param("s3", marks=pytest.mark.network)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "s3":
        return f"{request.getfixturevalue('s3').place()}/checkpoints/clicks/table"
    return str(tmp_path / "checkpoints" / "clicks" / "table") if request.param == "local" else in_memory()


# One after the other


def test_a_free_lease_is_taken_and_lies_beside_the_checkpoint(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoints" / "clicks" / "table"
    held = lease(str(checkpoint), Clock(), "a")

    assert held.acquire() is None
    assert held.beat() == ""
    (file,) = checkpoint.parent.iterdir()
    assert file.name == ".table.lease.1"
    content = json.loads(file.read_text())
    assert content["run"] == "a"
    assert content["beat"] == 1
    assert content["released"] is False


def test_who_beats_is_alive_and_is_named(place: str) -> None:
    clock = Clock()
    first, second = lease(place, clock, "a"), lease(place, clock, "b")
    assert first.acquire() is None
    clock.asleep = first.beat  # type: ignore[assignment]
    began = clock.time

    holder = second.acquire()

    assert holder is not None
    assert str(holder) == "clicks 1.0, process 1 on host-a, since 2026-01-01T00:00:00Z"
    assert clock.time - began <= BEAT_SECONDS  # at once: one beat is enough


def test_who_is_silent_for_six_beats_is_dead_and_not_before(place: str) -> None:
    clock = Clock()
    first, second = lease(place, clock, "a"), lease(place, clock, "b")
    assert first.acquire() is None
    began = clock.time

    assert second.acquire() is None
    assert clock.time - began >= DEAD
    assert first.beat().startswith("the lease is lost: it was taken over by clicks 1.0, process 1 on host-b")
    assert second.beat() == ""


def test_a_lease_that_was_given_back_is_free_at_once(place: str) -> None:
    clock = Clock()
    first, second = lease(place, clock, "a"), lease(place, clock, "b")
    assert first.acquire() is None
    first.release()
    began = clock.time

    assert second.acquire() is None
    assert clock.time - began <= SETTLE_SECONDS
    assert FileStore(place).generations() == [2]  # generations only grow, and the older one is gone


def test_a_lease_that_was_lost_is_not_given_back_by_the_loser(place: str) -> None:
    clock = Clock()
    first, second = lease(place, clock, "a"), lease(place, clock, "b")
    assert first.acquire() is None
    assert second.acquire() is None

    first.release()

    assert second.beat() == ""
    assert FileStore(place).generations() == [2]


def test_a_lease_that_somebody_removed_is_lost(place: str) -> None:
    held = lease(place, Clock(), "a")
    assert held.acquire() is None
    FileStore(place).remove(1)

    assert held.beat() == "the lease is lost: it was removed"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"run": 3}', b'{"run": "x", "every": -1}', b"\xff"])
def test_a_file_that_is_no_lease_counts_for_as_long_as_it_changes(content: bytes) -> None:
    place, clock = in_memory(), Clock()
    FileStore(place).create(7, content)
    waiting = lease(place, clock, "a")
    clock.asleep = lambda: FileStore(place).write(7, content + str(clock.time).encode())
    holder = waiting.acquire()
    assert holder is not None
    assert str(holder) == "an unknown run"

    clock.asleep = lambda: None
    assert waiting.acquire() is None
    assert FileStore(place).generations() == [8]


def test_of_two_creates_that_a_store_lets_through_the_later_one_counts() -> None:
    place, clock = in_memory(), Clock()
    other = Owner("b", "host-b", 1)

    def overwrite() -> None:
        clock.asleep = beat
        beat()

    def beat() -> None:
        nonlocal other
        other = replace(other, beat=other.beat + 1)
        FileStore(place).write(1, other.as_bytes())

    clock.asleep = overwrite
    first = lease(place, clock, "a")
    holder = first.acquire()
    assert holder is not None
    assert holder.run == "b"
    assert first.generation == 0


def test_an_owner_that_cannot_reach_the_store_gives_up_before_others_take_it_for_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    held = lease(in_memory(), clock, "a")
    assert held.acquire() is None
    assert held.beat() == ""

    def gone(*_: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr(FileStore, "generations", gone)
    said: list[str] = []
    while not said or not said[-1]:
        clock.sleep(BEAT_SECONDS)
        said.append(held.beat())
        assert clock.time < DEAD
    assert len(said) == OWN_MISSED_BEATS
    assert "couldn't be renewed for 20 seconds (no route to host)" in said[-1]


def test_a_process_of_this_machine_is_asked_directly(place: str) -> None:
    clock = Clock()
    mine = this_process("clicks 1.0")
    assert lives_here(mine) is True
    ended = Owner("x", mine.host, mine.pid, mine.process + "1")  # the same number, given to another process
    assert lives_here(ended) is False
    assert lives_here(Owner("x", mine.host, mine.pid, "")) is None
    assert lives_here(Owner("x", mine.host, mine.pid, "another-boot pid:[1] 77")) is None

    held = Lease(FileStore(place), ended, now=clock.now, sleep=clock.sleep)
    assert held.acquire() is None
    began = clock.time
    assert Lease(FileStore(place), mine, now=clock.now, sleep=clock.sleep).acquire() is None
    holder = lease(place, clock, "c").acquire()
    assert holder is not None
    assert holder.run == mine.run
    assert clock.time - began <= 2 * SETTLE_SECONDS


def test_a_store_that_nobody_here_can_read_is_said_so() -> None:
    with pytest.raises(GemError) as caught:
        FileStore("wasbs://box@account/checkpoints/clicks/table")
    assert caught.value.code == "GB662"
    assert "wasbs" in caught.value.hint


# Interleaved


class _Killed(BaseException):
    """Ends a contender's thread."""


class Contender:
    """A run in a thread of its own that goes on, from one look at the store to the next, when it is told to."""

    def __init__(self, world: World, name: str, offset: float = 0.0, rate: float = 1.0) -> None:
        self.world = world
        self.name = name
        self.rate = rate
        self.holds = False
        self.outcome = ""
        self.wakes = 0.0
        self.beats = 0
        self.writes = 0
        self.leaves = False
        self.killed = False
        self._go, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self.lease = Lease(
            GatedStore(world, self),
            Owner(name, f"host-{name}", 1),
            now=lambda: offset + rate * world.time,
            sleep=self.sleep,
            lives=lambda _owner: None,
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def step(self) -> None:
        """Let it go on to its next look at the store, its next sleep, or its end."""
        self._go.release()
        assert self._done.acquire(timeout=30)

    def gate(self) -> None:
        self._done.release()
        self._go.acquire()
        if self.killed:
            raise _Killed

    def sleep(self, seconds: float) -> None:
        self.wakes = self.world.time + seconds / self.rate
        self.gate()

    def kill(self) -> None:
        self.killed = True
        self.holds = False
        if not self.outcome:
            self.step()
        self._thread.join(30)

    def _run(self) -> None:
        self._go.acquire()
        try:
            self.outcome = self._life()
        except _Killed:
            self.outcome = "killed"
        except BaseException as error:  # noqa: BLE001 (the test's own thread raises it)
            self.outcome = "failed"
            self.world.failures.append(error)
        finally:
            self.holds = False
            self._done.release()

    def _life(self) -> str:
        if self.killed:
            raise _Killed
        if self.lease.acquire() is not None:
            return "refused"
        self.holds = True
        self.world.took(self)
        while not self.leaves:
            self.sleep(BEAT_SECONDS)
            if self.lease.beat():
                return "lost"
            self.beats += 1
        self.lease.release()
        return "released"


class Moment(NamedTuple):
    """When something happened: of what happens at one time, the order counts."""

    time: float
    number: int


class GatedStore:
    """fsspec's memory file system, one operation at a time when the scheduler says so."""

    def __init__(self, world: World, contender: Contender) -> None:
        self._world, self._contender = world, contender
        self._store = FileStore(world.place)
        self.settle = 0.0 if world.atomic else SETTLE_SECONDS
        self._looked = Moment(0.0, 0)

    def generations(self) -> list[int]:
        self._contender.gate()
        return self._store.generations()

    def read(self, generation: int) -> bytes:
        self._contender.gate()
        content = self._store.read(generation)
        self._looked = self._world.moment()
        return content

    def _write_gate(self) -> None:
        self._contender.writes += 1
        self._contender.gate()

    def create(self, generation: int, content: bytes) -> None:
        self._write_gate()
        if self._world.atomic:
            self._store.create(generation, content)
        else:
            if generation in self._store.generations():
                raise FileExistsError
            self._write_gate()
            self._store.write(generation, content)
        self._world.wrote(generation)
        self._world.superseded(generation - 1, self._looked)

    def write(self, generation: int, content: bytes) -> None:
        self._write_gate()
        self._store.write(generation, content)
        if json.loads(content)["released"]:
            self._world.free.add(generation)
        self._world.wrote(generation)

    def remove(self, generation: int) -> None:
        self._write_gate()
        self._store.remove(generation)


class World(RuleBasedStateMachine):
    """Some runs that want one checkpoint, each at its own speed, some of which die."""

    atomic = True

    def __init__(self) -> None:
        super().__init__()
        self.place = in_memory()
        self.time = 0.0
        self.contenders: list[Contender] = []
        self.holders: dict[int, list[str]] = {}
        self.free: set[int] = {0}
        self.written: dict[int, Moment] = {}
        self.moments = 0
        self.failures: list[BaseException] = []

    # What the contenders tell

    def took(self, contender: Contender) -> None:
        self.holders.setdefault(contender.lease.generation, []).append(contender.name)

    def moment(self) -> Moment:
        self.moments += 1
        return Moment(self.time, self.moments)

    def wrote(self, generation: int) -> None:
        self.written[generation] = self.moment()

    def superseded(self, generation: int, looked: Moment) -> None:
        """Nobody who beat in time is taken for dead: at the last look the content was six beats old."""
        if generation not in self.free and generation in self.written:
            written = self.written[generation]
            fastest = DEAD / max(RATES) - 1e-5  # what a clock rounds that began a long time ago
            assert looked.time - written.time >= fastest or written.number > looked.number

    # What may happen

    @precondition(lambda self: len(self.running()) < 4)
    @rule(offset=st.sampled_from([0.0, 3600.0, 1e9]), rate=st.sampled_from(RATES))
    def start(self, offset: float, rate: float) -> None:
        """On a machine whose clock may tell another time, and go faster or slower than the others'."""
        self.contenders.append(Contender(self, f"r{len(self.contenders)}", offset, rate))

    @precondition(lambda self: self.ready())
    @rule(which=st.integers(0, 3), steps=st.integers(1, 12))
    def step(self, which: int, steps: int) -> None:
        for _ in range(steps):
            ready = self.ready()
            if ready:
                ready[which % len(ready)].step()

    @precondition(lambda self: self.running())
    @rule(which=st.integers(0, 3), steps=st.integers(1, 200))
    def alone(self, which: int, steps: int) -> None:
        """One goes on for long while the others' machines are suspended."""
        chosen = self.running()[which % len(self.running())]
        for _ in range(steps):
            if not chosen.outcome:
                self.time = max(self.time, chosen.wakes)
                chosen.step()

    @precondition(lambda self: any(c.wakes > self.time for c in self.running()))
    @rule()
    def wait(self) -> None:
        self.time = min(c.wakes for c in self.running() if c.wakes > self.time)

    @rule(seconds=st.sampled_from([1.0, 7.0, DEAD + 1]))
    def freeze(self, seconds: float) -> None:
        """Everybody's clock goes on, and nobody does anything: a store, or a machine, that hangs."""
        self.time += seconds

    @precondition(lambda self: self.running())
    @rule(which=st.integers(0, 3))
    def kill(self, which: int) -> None:
        self.running()[which % len(self.running())].kill()

    @precondition(lambda self: self.running())
    @rule(which=st.integers(0, 3))
    def leave(self, which: int) -> None:
        self.running()[which % len(self.running())].leaves = True

    # What must hold

    def running(self) -> list[Contender]:
        return [contender for contender in self.contenders if not contender.outcome]

    def ready(self) -> list[Contender]:
        return [contender for contender in self.running() if contender.wakes <= self.time]

    @invariant()
    def nobody_failed(self) -> None:
        for failure in self.failures:
            raise failure

    @invariant()
    def a_generation_has_one_holder(self) -> None:
        if self.atomic:
            assert all(len(names) == 1 for names in self.holders.values()), self.holders

    def teardown(self) -> None:
        """However it began: when everybody goes on at an even speed, one run works and only one."""
        try:
            for contender in self.running():
                contender.leaves = False
            self.contenders.append(Contender(self, "last"))
            before = {contender.name: contender.beats for contender in self.contenders}
            for _ in range(3000):
                for contender in self.ready():
                    contender.step()
                waking = [c.wakes for c in self.running() if c.wakes > self.time]
                if waking and not self.ready():
                    self.time = min(waking)
                running = self.running()
                if running and all(c.holds and c.beats > before[c.name] + 2 for c in running):
                    break
            self.nobody_failed()
            assert [c.holds for c in self.running()] == [True], [(c.name, c.outcome) for c in self.contenders]
        finally:
            for contender in self.running():
                contender.kill()


class WorldWithoutAtomicCreate(World):
    """The same where a create may overwrite what somebody else created a moment ago."""

    atomic = False


@pytest.mark.parametrize("world", [World, WorldWithoutAtomicCreate])
def test_in_whatever_order_runs_start_stop_and_die_one_of_them_works(world: type[World]) -> None:
    run_state_machine_as_test(
        world,
        settings=settings(
            max_examples=examples(10, 300),
            stateful_step_count=60,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def life(world: World, name: str, killed_at: int | None = None) -> int:
    """A run that takes the lease, beats and gives it back, alone; how many writes it has begun.

    Args:
        world: Where it runs.
        name: Its name.
        killed_at: The write at which it is killed, when those before are done.
    """
    run = Contender(world, name)
    world.contenders.append(run)
    while not run.outcome:
        world.time = max(world.time, run.wakes)
        run.leaves = run.beats == 2
        run.step()
        if run.writes == killed_at:
            run.kill()
    return run.writes


def kills(world: type[World]) -> list[tuple[int, int]]:
    """The writes at which a run may be killed, and one that takes over from it."""
    there = world()
    first = life(there, "first")
    second = life(there, "second")
    assert second > first >= 4, "the second removes what the first has left, too"
    return list(product(range(1, first + 1), range(1, second + 1)))


def assert_left_to_the_next(world: type[World], first: int, second: int) -> None:
    """Two runs are killed, each at a write: the next one takes the lease, and works alone."""
    there = world()
    life(there, "first", first)
    life(there, "second", second)
    assert there.contenders[0].outcome == "killed"
    there.teardown()
    there.a_generation_has_one_holder()


@pytest.mark.parametrize("world", [World, WorldWithoutAtomicCreate])
def test_whoever_is_killed_between_two_writes_leaves_the_lease_to_the_next(world: type[World]) -> None:
    for first, second in kills(world):
        assert_left_to_the_next(world, first, second)


def in_the_lake(s3: S3) -> type[World]:
    """Runs whose checkpoint lies in an object store."""

    class InTheLake(World):
        def __init__(self) -> None:
            super().__init__()
            self.place = f"{s3.place()}/checkpoints/clicks/table"

    return InTheLake


@pytest.mark.network
def test_so_does_who_is_killed_between_two_writes_to_an_object_store(s3: S3) -> None:
    for first, second in drawn(kills(World), 1):
        assert_left_to_the_next(in_the_lake(s3), first, second)


@pytest.mark.network
def test_in_an_object_store_there_are_never_two_at_once(s3: S3) -> None:
    """S3's conditional writes are as good as a disk's exclusive create: each generation has one holder."""
    run_state_machine_as_test(
        in_the_lake(s3),
        settings=settings(
            max_examples=examples(2, 200),
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.network
def test_what_is_said_when_the_store_says_no(s3: S3) -> None:
    with pytest.raises(GemError, match="bucket does not exist") as caught:
        Leases({"table": "s3a://no-such-bucket/checkpoints/clicks/table"}, this_process("a")).acquire()
    assert caught.value.code == "GB662"

    clock = Clock()
    held = lease(f"{s3.place()}/checkpoints/clicks/table", clock, "a")
    assert held.acquire() is None
    said: list[str] = []
    with s3.without_rights():
        while not said or not said[-1]:
            clock.sleep(BEAT_SECONDS)
            said.append(held.beat())
    assert len(said) == OWN_MISSED_BEATS
    assert "the lease is lost: it couldn't be renewed for " in said[-1]
    assert "Access Key Id you provided does not exist" in said[-1]


@pytest.mark.network
def test_a_lease_is_kept_with_new_credentials_and_lost_without_any(s3: S3) -> None:
    clock = Clock()
    place = f"{s3.place()}/checkpoints/clicks/table"
    first, second = s3.credentials(), s3.credentials()
    with s3.logged_in(first):
        held = lease(place, clock, "a")
        assert held.acquire() is None
        s3.expire(first)
        clock.sleep(BEAT_SECONDS)
        assert held.beat() == ""  # nobody takes it for dead yet
    with s3.logged_in(second):
        clock.sleep(BEAT_SECONDS)
        assert held.beat() == ""
        assert Owner.of(FileStore(place).read(1)).beat == 1
        s3.expire(second)
        clock.sleep(OWN_MISSED_BEATS * BEAT_SECONDS)
        assert held.beat() == (
            "the lease is lost: it couldn't be renewed for 20 seconds (The provided token has expired.)"
        )
        with pytest.raises(GemError, match="The provided token has expired") as caught:
            Leases({"table": place}, this_process("a")).acquire()
    assert caught.value.code == "GB662"
    assert caught.value.hint == f"The credentials have expired. {NEW_CREDENTIALS}"
    with s3.logged_in(s3.credentials()):
        assert lease(place, clock, "b").acquire() is None
        assert FileStore(place).generations() == [2]


# Several together, with a thread that beats


@pytest.fixture
def two(tmp_path: Path) -> dict[str, str]:
    return {name: str(tmp_path / "checkpoints" / "clicks" / name) for name in ("table", "archive")}


def test_all_leases_of_a_run_are_taken_or_none(two: dict[str, str]) -> None:
    with Leases({"table": two["table"]}, this_process("a")) as first:
        assert first.acquire() == {}
        with Leases(two, this_process("b")) as second:
            assert list(second.acquire()) == ["table"]
        with Leases({"archive": two["archive"]}, this_process("c")) as third:
            assert third.acquire() == {}
    with Leases(two, this_process("d")) as again:
        assert again.acquire() == {}


def test_the_thread_beats_and_notices_a_loss(two: dict[str, str]) -> None:
    store = FileStore(two["table"])
    with Leases(two, this_process("a", every=0.05)) as leases:
        assert leases.acquire() == {}
        for content in changes(lambda: store.read(1)):
            if Owner.of(content).beat >= 3:
                break
        assert leases.lost == ""
        store.create(2, Owner("thief", "elsewhere", 1).as_bytes())
        for lost in changes(lambda: leases.lost):
            if lost:
                break
        assert "it was taken over by process 1 on elsewhere" in leases.lost
    assert Owner.of(store.read(2)).run == "thief"
    assert not Owner.of(store.read(2)).released


def changes(look: Callable[[], T]) -> Iterator[T]:
    """What something looks like, again and again, for at most half a minute."""
    limit = threading.Event()
    timer = threading.Timer(30, limit.set)
    timer.start()
    try:
        while not limit.wait(0.01):
            yield look()
    finally:
        timer.cancel()
    pytest.fail("it didn't change within half a minute")


def test_a_folder_that_cannot_be_written_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("not a folder")
    with pytest.raises(GemError) as caught:
        Leases({"t": str(tmp_path / "checkpoints" / "clicks" / "t")}, this_process("a")).acquire()
    assert caught.value.code == "GB662"
    assert "may list, read and write" in caught.value.hint


# Two processes

HOLD = """
import sys
from gem_bundler.start.lease import Leases
from gem_bundler.start.lease_owner import this_process
leases = Leases({"table": sys.argv[1]}, this_process("held"))
print(sorted(leases.acquire()), flush=True)
sys.stdin.read()
leases.close()
"""


def hold(place: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLD, place]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.programs
def test_two_processes(tmp_path: Path) -> None:
    place = str(tmp_path / "checkpoints" / "clicks" / "table")
    first = hold(place)
    assert first.stdout is not None
    assert first.stdout.readline() == "[]\n"
    with Leases({"table": place}, this_process("second")) as second:
        assert second.acquire()["table"].pid == first.pid
        first.kill()
        first.communicate()
        # It could give nothing back; but a process of this machine that is gone is gone.
        assert second.acquire() == {}
    third = hold(place)
    assert third.communicate("")[0] == "[]\n"
    assert FileStore(place).generations() == [3]
