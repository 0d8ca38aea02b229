"""Signed bundles: what was changed, added or signed by somebody else is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gem_bundle.errors import GemError, PipelineError
from gem_bundler.bundle.manifest import NAME, SIGNATURE, read, write
from gem_bundler.proof.signing import generate_keys, sign, verify
from tests.bundles.making import TICKS, built, write_files


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    project = write_files(tmp_path / "project", {"ticks.yaml": TICKS})
    folder = write_files(tmp_path / "bundle", {"main.py": "pass\n", "jars/a.jar": "a"})
    write(folder, built(project).manifest)
    return folder


@pytest.fixture
def key(tmp_path: Path) -> Path:
    generate_keys(tmp_path / "bundle.key")
    return tmp_path / "bundle.key"


@pytest.fixture
def public(key: Path) -> Path:
    return key.with_name("bundle.key.pub")


def refused(bundle: Path, public: Path) -> list[Any]:
    with pytest.raises(PipelineError) as caught:
        verify(bundle, public)
    assert all(found.is_error and found.hint for found in caught.value.diagnostics)
    return list(caught.value.diagnostics)


def unusable(call: Any, *arguments: Any, **named: Any) -> GemError:
    with pytest.raises(GemError) as caught:
        call(*arguments, **named)
    assert caught.value.code == "GB633"
    assert caught.value.hint
    return caught.value


# Right


def test_a_signed_bundle_is_verified(bundle: Path, key: Path, public: Path) -> None:
    assert sign(bundle, key) == bundle / SIGNATURE
    assert verify(bundle, public) == read(bundle)


def test_the_same_bundle_has_the_same_signature(bundle: Path, key: Path) -> None:
    first = sign(bundle, key).read_bytes()

    assert sign(bundle, key).read_bytes() == first


@pytest.mark.programs
def test_openssl_verifies_it_too(bundle: Path, key: Path, public: Path, tmp_path: Path) -> None:
    signature = tmp_path / "signature"
    signature.write_bytes(b64decode(json.loads(sign(bundle, key).read_bytes())["signature"]))
    openssl = shutil.which("openssl")
    assert openssl, "this test needs openssl on the PATH"
    words = [
        "pkeyutl",
        "-verify",
        "-pubin",
        "-inkey",
        public,
        "-rawin",
        "-in",
        bundle / NAME,
        "-sigfile",
        signature,
    ]

    done = subprocess.run([openssl, *map(str, words)], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


@pytest.mark.programs
def test_keys_of_openssl_sign(bundle: Path, tmp_path: Path) -> None:
    private, public = str(tmp_path / "k"), str(tmp_path / "k.pub")
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private], check=True)
    subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True)
    sign(bundle, Path(private))

    assert verify(bundle, Path(public)).name == "ticks"


def test_the_private_key_is_for_its_owner_only(key: Path, public: Path) -> None:
    assert key.stat().st_mode & 0o777 == 0o600
    assert b"PRIVATE" not in public.read_bytes()


def test_an_encrypted_key_takes_its_password(bundle: Path, tmp_path: Path) -> None:
    secret = Ed25519PrivateKey.generate()
    encrypted = secret.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"open sesame"),
    )
    write_files(tmp_path, {"key": encrypted, "key.pub": public_pem(secret)})

    assert "encrypted" in unusable(sign, bundle, tmp_path / "key").message
    assert "password" in unusable(sign, bundle, tmp_path / "key", password=b"wrong").message
    sign(bundle, tmp_path / "key", password=b"open sesame")
    assert verify(bundle, tmp_path / "key.pub").name == "ticks"


def public_pem(secret: Any) -> bytes:
    found: bytes = secret.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return found


# Wrong bundles


def test_a_bundle_without_a_signature_is_refused(bundle: Path, public: Path) -> None:
    (found,) = refused(bundle, public)

    assert found.code == "GB632"
    assert "isn't signed" in found.message


def test_changed_missing_and_added_files_are_refused_by_name(bundle: Path, key: Path, public: Path) -> None:
    sign(bundle, key)
    (bundle / "main.py").write_text("import evil\n")
    (bundle / "jars" / "a.jar").unlink()
    (bundle / "jars" / "b.jar").write_text("b")

    found = refused(bundle, public)

    assert [(d.code, d.message.partition(" ")[0]) for d in found] == [
        ("GB630", "`jars/a.jar`"),
        ("GB630", "`main.py`"),
        ("GB630", "`jars/b.jar`"),
    ]


def test_a_changed_manifest_is_refused(bundle: Path, key: Path, public: Path) -> None:
    sign(bundle, key)
    (bundle / "main.py").write_text("import evil\n")
    write(bundle, read(bundle))

    (found,) = refused(bundle, public)

    assert found.code == "GB632"
    assert "was changed after signing" in found.message


def test_a_reformatted_manifest_is_refused(bundle: Path, key: Path, public: Path) -> None:
    sign(bundle, key)
    (bundle / NAME).write_bytes((bundle / NAME).read_bytes() + b"\n")

    assert refused(bundle, public)[0].code == "GB632"


def test_another_key_is_refused(bundle: Path, key: Path, tmp_path: Path) -> None:
    sign(bundle, key)
    other = generate_keys(tmp_path / "other")

    (found,) = refused(bundle, other)

    assert found.code == "GB632"
    assert "another key" in found.message


def test_a_signature_that_claims_the_key_is_refused(
    bundle: Path, key: Path, public: Path, tmp_path: Path
) -> None:
    claimed = json.loads(sign(bundle, key).read_bytes())["key"]
    generate_keys(tmp_path / "other")
    forged = json.loads(sign(bundle, tmp_path / "other").read_bytes())
    (bundle / SIGNATURE).write_text(json.dumps({**forged, "key": claimed}))

    assert refused(bundle, public)[0].code == "GB632"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"algorithm": "RSA"}', '{"algorithm": "Ed25519", "key": "", "signature": "ä"}']
)
def test_a_damaged_signature_is_refused(bundle: Path, public: Path, text: str) -> None:
    (bundle / SIGNATURE).write_text(text)

    assert [found.code for found in refused(bundle, public)] == ["GB632"]


def test_a_damaged_bundle_isn_t_signed(bundle: Path, key: Path) -> None:
    (bundle / "main.py").unlink()

    with pytest.raises(PipelineError) as caught:
        sign(bundle, key)

    assert [found.code for found in caught.value.diagnostics] == ["GB630"]
    assert not (bundle / SIGNATURE).exists()


# Wrong keys


def test_files_that_are_no_keys_are_refused(bundle: Path, key: Path, public: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("swordfish")

    assert "can't be read" in unusable(sign, bundle, tmp_path / "nowhere").message
    assert "can't be read" in unusable(verify, bundle, tmp_path).message
    assert "no private key" in unusable(sign, bundle, tmp_path / "text").message
    assert "no private key" in unusable(sign, bundle, public).message
    assert "no public key" in unusable(verify, bundle, key).message
    assert "isn't encrypted" in unusable(sign, bundle, key, password=b"x").message
    assert not (bundle / SIGNATURE).exists()


def test_keys_of_another_kind_are_refused(bundle: Path, tmp_path: Path) -> None:
    secret = ec.generate_private_key(ec.SECP256R1())
    pem = secret.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_files(tmp_path, {"key": pem, "key.pub": public_pem(secret)})

    assert "isn't one of Ed25519" in unusable(sign, bundle, tmp_path / "key").message
    assert "isn't one of Ed25519" in unusable(verify, bundle, tmp_path / "key.pub").message


def test_keys_replace_nothing(key: Path, public: Path, tmp_path: Path) -> None:
    before = key.read_bytes(), public.read_bytes()

    unusable(generate_keys, key)
    assert (key.read_bytes(), public.read_bytes()) == before
    (tmp_path / "new.pub").write_text("x")
    unusable(generate_keys, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    unusable(generate_keys, tmp_path / "no" / "folder")


def test_without_cryptography_it_says_what_to_install(
    bundle: Path, key: Path, public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)

    for call, given in ((sign, key), (verify, public)):
        found = unusable(call, bundle, given)
        assert "`cryptography`" in found.message
        assert "pip install" in found.hint
