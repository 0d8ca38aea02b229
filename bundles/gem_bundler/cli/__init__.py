"""The bundler's commands: one module a command."""
