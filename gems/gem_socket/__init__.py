"""Lines of text from a TCP server, for experiments: the source `socket`."""

from gem_bundle import Register, hookimpl


@hookimpl
def gem_bundle_register_gems(register: Register) -> None:
    """Register this family's gems."""
    register("source", "socket", "gem_socket.source:SocketSource")
