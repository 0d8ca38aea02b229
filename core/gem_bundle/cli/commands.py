"""The commands that plugins add, through the hook `gem_bundle_register_commands`."""

from __future__ import annotations

import os
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import click

GROUP = "gem_bundle.commands"


class PluginCommand(NamedTuple):
    """A command of a plugin.

    Args:
        name: Its name.
        reference: Where it is: ``module:command``.
        origin: The distribution it comes from.
    """

    name: str
    reference: str
    origin: str

    def load_or_broken(self) -> click.Command:
        """The command; in the place of one that can't be loaded a command that says so."""
        import click

        from gem_bundle.errors import PluginError

        try:
            return self.load()
        except PluginError as error:
            problem = error

        def tell(**_: object) -> None:
            raise problem

        anything = click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)
        return click.Command(
            self.name,
            callback=tell,
            params=[anything],
            context_settings={"ignore_unknown_options": True},
            short_help=f"Broken: it comes from {self.origin}.",
        )

    def load(self) -> click.Command:
        """The command.

        Raises:
            PluginError: When it can't be imported or is no command.
        """
        import click

        from gem_bundle.errors import PluginError, describe_error

        module, _, name = self.reference.partition(":")
        hint = f"Update or remove the distribution `{self.origin}`, or report it to its authors."
        told = f"The command `{self.name}` of `{self.origin}` can't be loaded from `{self.reference}`"
        try:
            found = getattr(import_module(module), name)
        except (Exception, SystemExit) as error:  # a plugin may raise anything when it is imported
            raise PluginError(f"{told}: {describe_error(error)}", hint) from error
        if not isinstance(found, click.Command):
            raise PluginError(f"{told}: it is no command of click's", hint)
        return found


@lru_cache(maxsize=1)
def plugin_commands() -> dict[str, PluginCommand]:
    """The commands of all plugins by name, in the order of their names.

    Only plugins that add commands are loaded: the help costs the same however many others there are.
    One that is broken, or adds a name that is taken, is left out; `gem-bundle gems` lists what is broken.
    """
    import pluggy

    from gem_bundle import hookspecs
    from gem_bundle.installed import entry_points
    from gem_bundle.plugins import BLOCK, PICK, names_in

    picked = names_in(os.environ.get(PICK))
    blocked = names_in(os.environ.get(BLOCK)) or set()
    manager = pluggy.PluginManager("gem_bundle")
    manager.add_hookspecs(hookspecs)
    found: dict[str, PluginCommand] = {}
    for point in sorted(entry_points(GROUP), key=lambda point: (point.name, point.value)):
        if point.name in blocked or (picked is not None and point.name not in picked):
            continue
        origin = point.dist.name if point.dist is not None else point.value

        def register(name: str, command: str, origin: str = origin) -> None:
            found.setdefault(name, PluginCommand(name, command, origin))

        try:
            plugin = point.load()
            manager.register(plugin, name=f"{point.name}@{origin}")
            others = [other for other in manager.get_plugins() if other is not plugin]
            manager.subset_hook_caller("gem_bundle_register_commands", others)(register=register)
        except (Exception, SystemExit):  # noqa: BLE001, S112 (whatever it raises, the help goes on)
            continue
    return dict(sorted(found.items()))
