"""Signed bundles: Ed25519 over the manifest, which has the hash of every other file.

A signature says that whoever holds the key has built the bundle, and that nothing was changed, added or
taken away since.
"""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from gem_bundle.diagnostics import Diagnostic, Place
from gem_bundle.errors import GemError, PipelineError
from gem_bundler.bundle.manifest import NAME, SIGNATURE, Manifest, check_files, parse, read

if TYPE_CHECKING:
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

ALGORITHM = "Ed25519"


def generate_keys(private: Path) -> Path:
    """Make a pair of keys, as PEM: the private one readable for its owner only, the public one beside it.

    Args:
        private: The file of the private key.

    Returns:
        The file of the public key, ``….pub``.

    Raises:
        GemError: GB633 when a file is there already, or can't be written.
    """
    _require_cryptography()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    public = private.with_name(f"{private.name}.pub")
    key = Ed25519PrivateKey.generate()
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _create(private, secret, 0o600)
    try:
        _create(public, _public_pem(key.public_key()), 0o644)
    except GemError:
        private.unlink()
        raise
    return public


def sign(folder: Path, key: Path, *, password: bytes | None = None) -> Path:
    """Sign a bundle.

    Args:
        folder: The bundle's folder.
        key: The private key, as PEM.
        password: What the key is encrypted with.

    Returns:
        The file of the signature.

    Raises:
        GemError: GB633 when the key can't be used.
        PipelineError: GB630 or GB631 when the bundle isn't whole.
    """
    secret = _private_key(key, password)
    found = check_files(folder, read(folder))
    if found:
        raise PipelineError(found)
    signed = {
        "algorithm": ALGORITHM,
        "key": fingerprint(secret.public_key()),
        "signature": b64encode(secret.sign((folder / NAME).read_bytes())).decode(),
    }
    file = folder / SIGNATURE
    file.write_bytes((json.dumps(signed, indent=2) + "\n").encode())
    return file


def verify(folder: Path, key: Path) -> Manifest:
    """Check that a bundle is what the holder of a key has signed.

    Args:
        folder: The bundle's folder.
        key: The public key, as PEM.

    Returns:
        The bundle's manifest.

    Raises:
        GemError: GB633 when the key can't be used.
        PipelineError: GB632 when there is no signature of that key, GB630 with every file that is
            changed, missing or added.
    """
    public = _public_key(key)
    from cryptography.exceptions import InvalidSignature

    read(folder)
    data = (folder / NAME).read_bytes()
    signer, signature = _signature(folder)
    if signer != fingerprint(public):
        given = fingerprint(public)
        raise _refusal(
            folder,
            f"the bundle is signed with another key ({signer[:16]}…) than `{key}` ({given[:16]}…)",
            "Give the public key of whoever builds it; if this is the one, don't run the bundle.",
        )
    try:
        public.verify(signature, data)
    except InvalidSignature as error:
        raise _refusal(
            folder,
            f"the signature doesn't fit {NAME}: one of the two was changed after signing",
            "Don't run the bundle. Get it again from where it was built.",
        ) from error
    manifest = parse(data, str(folder / NAME))
    found = check_files(folder, manifest)
    if found:
        raise PipelineError(found)
    return manifest


def fingerprint(key: Ed25519PublicKey) -> str:
    """The hash (sha256, hex) that a signature names its key by."""
    return sha256(key.public_bytes_raw()).hexdigest()


def _signature(folder: Path) -> tuple[str, bytes]:
    """The fingerprint of the key that a bundle is signed with, and the signature."""
    try:
        signed = json.loads((folder / SIGNATURE).read_bytes())
        if signed["algorithm"] != ALGORITHM:
            message = f"the signature is made with {signed['algorithm']}, not with {ALGORITHM}"
            raise _refusal(folder, message, "Sign the bundle with this gem-bundle.")
        return str(signed["key"]), b64decode(signed["signature"], validate=True)
    except FileNotFoundError as error:
        message = f"the bundle isn't signed: it has no {SIGNATURE}"
        raise _refusal(
            folder, message, "Build it with `--sign KEY`, or verify it without `--key`."
        ) from error
    except PipelineError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        message = "the signature is damaged"
        raise _refusal(folder, message, "Get the bundle again from where it was built.") from error


def _private_key(file: Path, password: bytes | None) -> Ed25519PrivateKey:
    _require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    data = _key_bytes(file)
    try:
        key = load_pem_private_key(data, password)
    except TypeError as error:  # a password for a key without one, or none for a key with one
        wanted = "is encrypted, and no password is given" if password is None else "isn't encrypted"
        raise GemError("GB633", f"the key `{file}` {wanted}", "Give the password that it has.") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        what = "can't be decrypted with this password, or" if password is not None else ""
        message = f"`{file}` {what} is no private key in PEM form".replace("  ", " ")
        raise GemError("GB633", message, _MAKE_ONE) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise GemError("GB633", f"the key `{file}` isn't one of {ALGORITHM}", _MAKE_ONE)
    return key


def _public_key(file: Path) -> Ed25519PublicKey:
    _require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(_key_bytes(file))
    except (ValueError, UnsupportedAlgorithm) as error:
        hint = "Give the public key, which lies beside the private one as `….pub`."
        raise GemError("GB633", f"`{file}` is no public key in PEM form", hint) from error
    if not isinstance(key, Ed25519PublicKey):
        raise GemError("GB633", f"the key `{file}` isn't one of {ALGORITHM}", _MAKE_ONE)
    return key


_MAKE_ONE = "Make one with `openssl genpkey -algorithm ed25519 -out bundle.key`."


def _key_bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        message = f"the key `{file}` can't be read: {error.strerror}"
        raise GemError("GB633", message, "Name a file with a key in PEM form.") from error


def _public_pem(key: Ed25519PublicKey) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def _create(file: Path, data: bytes, mode: int) -> None:
    """Write a file that must not be there yet."""
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except OSError as error:
        message = f"the key `{file}` can't be written: {error.strerror}"
        raise GemError("GB633", message, "Name a file that isn't there yet.") from error
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)
    with suppress(OSError):  # not every file system has modes
        file.chmod(mode)


def _require_cryptography() -> None:
    from importlib import import_module

    try:
        import_module("cryptography")
    except ImportError as error:
        message = "signing needs the package `cryptography`, which isn't installed"
        raise GemError("GB633", message, "Install it with `pip install 'gem-bundle[sign]'`.") from error


def _refusal(folder: Path, message: str, hint: str) -> PipelineError:
    place = Place(str(folder / SIGNATURE))
    return PipelineError([Diagnostic("GB632", "error", message, place=place, hint=hint)])
