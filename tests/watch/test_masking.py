"""Secrets never reach what is kept of a line, and what is no secret stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.facts import CheckpointLoaded, CheckpointSaved, SignatureMatched
from streams.watch.masking import kept_text, masked, masker
from streams.watch.source import Source
from tests.watch.parts import T0, everything, facts_of, matcher, reading, running

HEX = "0123456789abcdef0123456789abcdef01234567"

NAMED = (
    *("password={}", "--password {} --host x", "'--password', '{}'", "'--hf_token','{}'", "--wandb_key', '{}'"),
    *("--api-key {}", "--token {}", "--hf-token {}", "--hf_token={}", "TOKEN={}", "HF_TOKEN: {}", "PRIVATE-TOKEN: {}"),
    *(
        "DB_PASS={}",
        "PASS={}",
        "PASS: {}",
        "db_pass: {}",
        "pwd={}",
        "passphrase={}",
        "SECRET_KEY={}",
        "secretKey={}",
        "client_secret: {}",
    ),
    *("AccountKey={};EndpointSuffix=core", "Authorization: token {}", "'Authorization': 'Bearer {}'", "api key: {}"),
    *("x-api-key: {}", "X-Auth-Token: {}", "api_key = {}", 'password="two {} here" next', "password='it, {}'"),
    *(
        '{{"password": "{}", "user": "me"}}',
        '{{\\"password\\": \\"{}\\"}}',
        "passwd={},more;still&all",
        "password => {}",
    ),
    *(
        "https://me:{}@host/x",
        "https://:{}@host",
        "https://me:a/{}@host/x",
        "https://me:a@{}@host/x",
        "db://u:{}/a@h/d",
    ),
    *("Cookie: sessionid={}; a=b", "Set-Cookie: session={}; Path=/", "https://s3/x?X-Amz-Signature={}&y=1"),
    *("password=SecretStr('{}')", "password={}'s", "api_key=b'{}'", "export WANDB_API_KEY='{}' # x"),
)
FORMS = (
    *("AWS_SECRET_ACCESS_KEY {}", "https://{}@host/x", "https://{}:x-oauth-basic@host/x", "token: {}", "Bearer {}"),
    *(
        "ghp_{}",
        "gho_{}",
        "ghs_{}",
        "github_pat_{}",
        "glpat-{}",
        "hf_{}",
        "sk-{}",
        "sk-proj-{}",
        "sk_live_{}",
        "npm_{}",
    ),
    *(
        "pypi-{}",
        "dckr_pat_{}",
        "hvs.{}",
        "gsk_{}",
        "xai-{}",
        "r8_{}",
        "xoxb-{}",
        "ya29.{}",
        "nvapi-{}",
        "AIza{}abcdefghi",
    ),
    *("SG.{}.abcdefghijklmnopqrstuvwxyz", "https://hooks.slack.com/services/T0/B0/{}", "eyJhbGciOiJIUzI1NiJ9.eyJ{}"),
    *("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{}", '{{"auth": "{}"}}', "wandb_v1_{}"),
    *("-----BEGIN RSA PRIVATE KEY-----\\n{}\\n-----END RSA PRIVATE KEY-----", "-----BEGIN PRIVATE KEY----- {}"),
    *("private_key: -----BEGIN PRIVATE KEY-----\\n{}\\n", '"private_key": "-----BEGIN PRIVATE KEY-----\\n{}\\nAb"'),
)
OF_WANDB = ("wandb login {}", "wandb login --relogin {}", "wandb.login(key='{}')", "wandb: local-{}")
INNOCENT = (
    "AssertionError: eos_token=50256 is out of range for vocab 50000",
    "AssertionError: max_token=4096 exceeds",
    "size mismatch for cls_token: copying a param with shape torch.Size([1, 1, 768])",
    "IndexError: pad_token: node17 rank 3",
    "num_tokens: 12, token_ids=[1, 2, 3], bos_token=<s>, unk_token='<unk>'",
    "KeyError: 'token: lm_head.weight not found'",
    "KeyError: 'model.layers.0.self_attn.key: weight' cannot access key: lm_head",
    "node2: NCCL error: Basic connection failure on node2",
    "NCCL WARN Bearer allocation failed",
    "sk-node-rack12-gpu-0007-compute: Xid 79",
    "xai-cluster-node-0001-rack-0002: lost",
    "image@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    f"commit {HEX} missing, key: {HEX}",
    f"wandb: run of commit {HEX}",
    "GPU-7c9e6679-7425-40de-944b-e07fc1f90ae7, token: 7c9e6679-7425-40de-944b-e07fc1f90ae7",
    "ncclCommInitRank comm 0x5581d3a1c0 rank 3 nranks 8 busId 1b000 commId 0x9c1fbc7f5d2ab7a - Init",
    "PWD=/home/me OLDPWD=/home eval_pass1=0.6120 first_pass=2 bypass=true pass=3",
    "api_key=None, use_auth_token=True, password=",
    "--use_auth_token True --token-file /x --tokenizer-name abcdefghijklmnopqrst --eos_token 2",
    "HF_TOKEN is not set; COMET_API_KEY environment variable is missing; secret sharing failed",
    "ssh://git@host/x git+ssh://me@host https://git@host/x tcp://node2:29500/path@x http://[::1]:80/a@b",
    "abfss://checkpoints-llama70b@account.dfs.core.windows.net/run1/step100",
    "--world_info=eyJsb2NhbGhvc3QiOiBbMCwgMV19 --master_addr=1",
    "could not find -----BEGIN RSA PRIVATE KEY----- in file /x",
    "PASS: node017 healthcheck; health PASS=node13, nccl-test FAIL: gpu-a100-12 PASS: gpu-a100-13",
    "PASS: ip-10-0-0-3.ec2.internal, PASS: dgx07 | first_pass: node17 slow, multi-pass=node7 second-pass: gpu3",
    "tokens: 155652554752 | key: value | credentials: expired",
)
# What the patterns look at, so that any order of it is tried.
PIECES = (
    *("password", "token", "key", "TOKEN", "API_KEY", "hf_token", "secret", "pwd", "_pass", "auth", "Authorization"),
    *(": ", "=", ":", " ", "'", '"', '\\"', "\\", ",", ";", "&", "@", "/", "://", "https://", "a:b@", "Bearer ", "--"),
    *("-", "ghp_aaaaaaaaaaaaaaaaaaaaaaaa", "AKIAABCDEFGHIJKLMNOP", "sk-", "abcdefghijklmnopqrstuvwxyz", "aB1aB1aB1aB1"),
    *(HEX, "wandb login ", "eyJabcdefg", ".", "?sig=", "***", "*", "Cookie: ", "a=b", "-----BEGIN PRIVATE KEY-----"),
    *(
        "-----END",
        "\\n",
        "is ",
        "None",
        "(",
        ")",
        "}",
        "1",
        "é",
        "\t",
        "\n",
        "_",
        "b'",
        "=>",
        "#",
        "<",
        "xoxb-1234567890",
    ),
)


def made_up(alphabet: str = "", least: int = 24, most: int = 60) -> st.SearchStrategy[str]:
    """Characters of a secret that a machine made up."""
    letters = st.sampled_from(alphabet) if alphabet else st.characters(codec="ascii", categories=("Lu", "Ll", "Nd"))
    return st.text(letters, min_size=least, max_size=most).filter(lambda text: not text.isdigit())


@pytest.mark.parametrize("form", NAMED + FORMS)
@given(secret=made_up())
@settings(max_examples=20)
def test_a_secret_never_survives(form: str, secret: str) -> None:
    assert secret not in masked(form.format(secret))


@pytest.mark.parametrize("form", NAMED)
@pytest.mark.parametrize("secret", ["hunter2", "hunter2secret", "sekretsekret", "p%40ss!", "0012345678"])
def test_what_a_name_or_a_place_calls_a_secret_may_look_like_a_word(form: str, secret: str) -> None:
    assert secret not in masked(form.format(secret))


@pytest.mark.parametrize("form", OF_WANDB)
@given(secret=made_up("0123456789abcdef", 40, 40))
@settings(max_examples=20)
def test_a_key_of_weights_and_biases_is_told_from_a_hash_by_where_it_stands(form: str, secret: str) -> None:
    assert secret not in masked(form.format(secret))


@pytest.mark.parametrize("form", ["AKIA", "ASIA"])
def test_a_key_id_of_aws_is_known_by_its_form(form: str) -> None:
    assert masked(f"rejected: {form}ABCDEFGHIJKLMNOP (x)") == "rejected: *** (x)"


@pytest.mark.parametrize("line", INNOCENT)
def test_what_is_no_secret_stays_byte_for_byte(line: str) -> None:
    assert masked(line) == line


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ('password="two words, here" next', 'password="***" next'),
        ("['--hf_token', 'abc', '--wandb_key', 'x1'] failed", "['--hf_token', '***', '--wandb_key', '***'] failed"),
        ("--password hunter2 --host x", "--password *** --host x"),
        ("AccountKey=abc==;EndpointSuffix=core", "AccountKey=***;EndpointSuffix=core"),
        ("f(password='abc', user='me', api_key=None)", "f(password='***', user='me', api_key=None)"),
        ("https://me:p@ss/word@host/path failed", "https://me:***@host/path failed"),
        ("clone https://ghp_abcdefghijklmnopqrstuvwx@github.com/x", "clone https://***@github.com/x"),
        ("https://secret:abc@host/path", "https://secret:***@host/path"),
        ("key: token: password=hunter2 x", "key: token: password=*** x"),
    ],
)
def test_what_stands_around_a_secret_stays(line: str, kept: str) -> None:
    assert masked(line) == kept


@given(pieces=st.lists(st.sampled_from(PIECES), max_size=14))
@settings(max_examples=1000)
def test_masking_what_is_masked_changes_nothing(pieces: list[str]) -> None:
    once = masked("".join(pieces))
    assert masked(once) == once


@given(secret=made_up(), before=st.integers(0, 60), length=st.integers(1, 200))
def test_of_a_secret_that_a_capture_cuts_nothing_telling_is_left(secret: str, before: int, length: int) -> None:
    line = f"OSError: [Errno 5] {'-' * before} HF_TOKEN={secret} and more of it"
    shown = masker(line.encode(), 0)(line[19 : 19 + length])
    assert all(secret[at : at + 4] not in shown for at in range(len(secret) - 3))


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        (
            "RuntimeError: request to https://me:hunter2secret@host/x failed password=hunter2secret",
            "RuntimeError: request to https://me:***@host/x failed password=***",
        ),
        ("KeyError: 'api_key=abcdef123456'", "KeyError: 'api_key=***'"),
        ("AssertionError: eos_token=50256 is out of range", "AssertionError: eos_token=50256 is out of range"),
    ],
)
def test_the_detail_of_a_fault_is_masked(line: str, detail: str) -> None:
    [found] = matcher().scan(line.encode() + b"\n")
    assert found.fault is not None
    assert found.fault.detail == detail


def test_neither_the_detail_nor_the_path_of_a_fact_holds_a_secret(tmp_path: Path) -> None:
    path = tmp_path / "job.out"
    path.write_text(
        "  successfully loaded checkpoint from s3://me:hunter2@bucket/ckpt [ t 1/8, p 1/4 ] at iteration 100\n"
        "  successfully saved checkpoint from iteration    200 to s3://me:hunter2@bucket/ckpt?token=abcdef\n"
        "RuntimeError: request to https://me:hunter2@host/x failed\n"
    )
    loaded, saved, fault = facts_of(everything(Source(str(path), reading()), T0 + 600_000, running(path)))
    assert isinstance(loaded, CheckpointLoaded)
    assert loaded.path == "s3://me:***@bucket/ckpt"
    assert isinstance(saved, CheckpointSaved)
    assert saved.path == "s3://me:***@bucket/ckpt?token=***"
    assert isinstance(fault, SignatureMatched)
    assert fault.detail == "RuntimeError: request to https://me:***@host/x failed"
    assert "hunter2" not in fault.evidence.text


def test_no_half_of_a_secret_stands_at_the_edge_of_what_is_kept() -> None:
    line = b"x" * 980 + b" password='two words and many more of them' " + b"y" * 3000
    assert "words" not in kept_text(line, 0)
