"""The conformance suite: what every gem must do, as tests that a gem's author gets by writing one class.

::

    from gem_bundle.testing import SourceConformance

    class TestQueueSource(SourceConformance):
        gem = QueueSource
        options = {"url": "http://localhost:8161", "queue": "clicks"}
        unreachable = {"url": "http://localhost:1", "queue": "clicks"}

        def provide(self):
            self.queue = start_queue(self.folder)
            return {"url": self.queue.url, "queue": "clicks"}

        def feed(self, number):
            rows = [{"id": 10 * number + n, "name": "ada"} for n in range(3)]
            self.queue.put(rows)
            return rows

pytest collects from it the tests that say something about this gem: those of its kind, and of what it
claims. A test that doesn't hold and can't be made to is waived with a reason, which the test report shows::

        waive = {"test_replays_the_same_rows": "the server forgets what was read"}

A waived test is run all the same, and fails when it passes: then the waiver has to go. Only those that
kill a run, which take long, are then left out.
"""

from gem_bundle.testing.conformance.inputs import Given as Given
from gem_bundle.testing.conformance.sources import SourceConformance as SourceConformance
from gem_bundle.testing.conformance.suite import GemConformance as GemConformance
from gem_bundle.testing.conformance.targets import TargetConformance as TargetConformance
from gem_bundle.testing.conformance.transforms import TransformConformance as TransformConformance
