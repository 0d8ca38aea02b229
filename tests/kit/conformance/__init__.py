"""The built-in gems in the suite that strangers' gems have to pass, each in a class of its own."""
