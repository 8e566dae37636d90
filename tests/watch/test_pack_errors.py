"""What a person is told whose pack is wrong: the file, the line, the entry, the reason, and what would be right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from recovery.cli import app
from schemas.vocabulary import FaultClass, LineRole, Phase, Remedy, Scope
from streams.watch.matching.examples import load_matcher
from streams.watch.matching.packs import (
    COMMON_KEYS,
    FORMAT_KEYS,
    PHASE_KEYS,
    SIGNATURE_KEYS,
    VALUE_KEYS,
    BadPack,
    load_packs,
    read_pack,
)

GUIDE = (Path(__file__).parents[2] / "docs" / "packs.md").read_text(encoding="utf-8")

FAN = """
[[signature]]
id = "site-fan"
pattern = 'fan (?P<fan>\\d+) failed'
class = "host_hardware"
scope = "node"
remedy = "restart"
role = "cause"
detail = "fan {fan} failed"
examples = [
  "fan 3 failed",
]
source = "our site"
"""
FORMAT = """
[[format]]
framework = "ours"
step = 'tick (?P<step>\\d+)'
step_examples = ["tick 3"]
seconds_per_step = 'took (?P<value>[0-9.]+)'
source = "our site"
"""
PUMP = FAN.replace("site-fan", "site-pump")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('class = "host_hardware"\n', "", ":15: signature site-pump: class is missing; it is one of: gpu_hardware, "),
        ('"node"', '"nodes"', ":19: signature site-pump: scope is 'nodes', but must be one of: node, job, "),
        ('"restart"', "3", ":20: signature site-pump: remedy is 3, but must be one of: restart, "),
        ('"our site"', "''", ":26: signature site-pump: source must be a text that is not empty, not ''"),
        ('source = "our site"\n', "", ":15: signature site-pump: source is missing"),
        ("scope", "skope", ":19: signature site-pump: there is no key 'skope'; allowed: at_start, class"),
        ("{fan}", "{fun}", ":22: signature site-pump: detail names 'fun'; the pattern's groups are: fan"),
        ("{fan}", "{fan.x}", ":22: signature site-pump: detail may have nothing but the name of a group in braces; "),
        ("{fan}", "{fan[x]}", ":22: signature site-pump: detail may have nothing but the name of a group in braces; "),
        ("{fan}", "{fan:>999999999}", ":22: signature site-pump: detail may have nothing but the name of a group in"),
        ("{fan}", "{fan!r}", ":22: signature site-pump: detail may have nothing but the name of a group in braces; "),
        ("{fan}", "{}", ":22: signature site-pump: detail may have nothing but the name of a group in braces; "),
        ("{fan}", "{fan", ":22: signature site-pump: detail can't be read (expected '}' before end of string); "),
        ("{fan}", "fan}", ":22: signature site-pump: detail can't be read (Single '}' encountered in format string);"),
        ("(?P<fan>", "(?P<fan", ":17: signature site-pump: pattern is refused: RE2 can't read it"),
        ('[\n  "fan 3 failed",\n]', "[]", ":23: signature site-pump: examples is empty"),
        ("scope = ", "scope ", ":19: it can't be read as TOML"),
        ("[[signature]]", "[[signatures]]", ":15: there is no table 'signatures'; allowed: [[signature]]"),
    ],
)
def test_the_refusal_tells_file_line_entry_and_reason_once(before: str, after: str, said: str) -> None:
    assert before in PUMP
    with pytest.raises(BadPack) as refusal:
        read_pack("site.toml", FAN + PUMP.replace(before, after, 1))
    assert str(refusal.value).startswith(f"site.toml{said}")
    assert str(refusal.value).count("site.toml") == 1


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (
            FAN.replace('"our site"', '"x"\ncounter_examples = [\n  "fans",\n  "fan 4 failed",\n]'),
            16,
            "counter-example",
        ),
        (FAN.replace('  "fan 3 failed",', '  "fan 3 failed",\n  "fan 30 faile\\td",'), 12, "does not match its own"),
        (FORMAT.replace('["tick 3"]', '[\n  "tick 3",\n  "tock 3",\n]'), 7, "the step example 'tock 3'"),
        (FAN.replace("fan 3 failed", "fan 3 failed\\nfan 3 is well"), 11, "does not match its own pattern"),
    ],
)
def test_an_example_that_is_wrong_is_told_by_its_own_line(text: str, line: int, said: str) -> None:
    with pytest.raises(BadPack) as refusal:
        load_matcher(read_pack("site.toml", text))
    assert str(refusal.value).startswith(f"site.toml:{line}: ")
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("(?P<step>\\d+)", "\\d+", ":4: format ours: step needs a group (?P<step>...)"),
        ("(?P<value>[0-9.]+)", "[0-9.]+", ":6: format ours: seconds_per_step needs a group (?P<value>...)"),
        ("step = 'tick (?P<step>\\d+)'\n", "", ":2: format ours: step is missing"),
        (
            "source",
            "saved_early = true\nsource",
            ":7: format ours: saved_early says when saved is printed, and there is no",
        ),
        (
            "seconds_per_step = 'took (?P<value>[0-9.]+)'",
            "time_below = true",
            ":6: format ours: time_below says where a step's time stands, and no key reads it; add one of: milli",
        ),
        ("[[format]]", "[format]", ":2: format must be written as [[format]], in two brackets"),
    ],
)
def test_a_format_without_what_it_needs_is_refused(before: str, after: str, said: str) -> None:
    with pytest.raises(BadPack) as refusal:
        read_pack("site.toml", FORMAT.replace(before, after, 1))
    assert str(refusal.value).startswith(f"site.toml{said}")


def test_two_entries_of_one_id_in_one_folder_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(FAN)
    (tmp_path / "b.toml").write_text(FORMAT + FAN)
    with pytest.raises(BadPack) as refusal:
        load_packs((tmp_path,))
    assert str(refusal.value).startswith(
        f"{tmp_path}/b.toml:9: signature site-fan stands already at {tmp_path}/a.toml:2: signature site-fan;"
    )


@pytest.mark.usefixtures("few_shipped")
def test_an_entry_that_replaces_a_shipped_one_is_told_where_packs_are_tried_and_listed(tmp_path: Path) -> None:
    pack = tmp_path / "site.toml"
    pack.write_text(FAN.replace("site-fan", "xid-off-the-bus"))
    tried = CliRunner().invoke(app, ["signatures", "test", str(pack)])
    assert tried.exit_code == 0
    assert f"{pack}:2: signature xid-off-the-bus replaces " in tried.stdout
    assert "gpu.toml:" in tried.stdout
    listed = CliRunner().invoke(app, ["signatures", "list"], env={"RECOVERY_WATCH__PACKS": str(tmp_path)})
    [line] = [line for line in listed.stdout.splitlines() if line.startswith("xid-off-the-bus ")]
    assert f"{pack}:2: signature xid-off-the-bus replaces " in line


@pytest.mark.usefixtures("few_shipped")
def test_a_pack_of_the_site_s_own_folder_replaces_not_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site.toml").write_text(FAN)
    for name in ("site.toml", "."):
        tried = CliRunner().invoke(app, ["signatures", "test", name], env={"RECOVERY_WATCH__PACKS": str(tmp_path)})
        assert tried.exit_code == 0
        assert "replaces" not in tried.stdout
        assert "site.toml: 1 entry; every example is found" in tried.stdout


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("empty.toml", "# nothing\n", "it is empty: there is no [[signature]], [[format]] or [[phase]]"),
        ("absent.toml", None, "absent.toml can't be read: No such file or directory"),
        ("binary.toml", "\xff", "binary.toml can't be read: it is no text in UTF-8"),
        (".", None, "it is empty: there is no file *.toml"),
    ],
)
@pytest.mark.usefixtures("few_shipped")
def test_a_pack_of_which_nothing_is_read_is_told(tmp_path: Path, name: str, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / name).write_bytes(text.encode("latin-1"))
    tried = CliRunner().invoke(app, ["signatures", "test", str(tmp_path / name)])
    assert tried.exit_code == 1
    assert said in tried.stderr


def test_lines_on_standard_input_are_tried() -> None:
    lines = "quiet\nkernel: NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus.\n"
    tried = CliRunner().invoke(app, ["signatures", "test", "-"], input=lines)
    assert tried.exit_code == 0
    assert tried.stdout.startswith("2: xid-off-the-bus (")
    quiet = CliRunner().invoke(app, ["signatures", "test", "-"], input="quiet\n")
    assert (quiet.exit_code, quiet.stdout, quiet.stderr) == (0, "", "no line matches anything\n")


def test_the_guide_s_example_is_a_pack_that_loads() -> None:
    [example] = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    packs = read_pack("packs.md", example)
    assert load_matcher(packs).scan(packs.signatures[0].examples[0].encode() + b"\n")


@pytest.mark.parametrize(
    ("heading", "keys"),
    [
        ("`[[signature]]`", SIGNATURE_KEYS | COMMON_KEYS),
        ("`[[format]]`", FORMAT_KEYS | VALUE_KEYS | COMMON_KEYS),
        ("`[[phase]]`", PHASE_KEYS | COMMON_KEYS),
    ],
)
def test_the_guide_explains_every_key_and_no_other(heading: str, keys: set[str]) -> None:
    section = GUIDE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [row.split("|")[1] for row in section.splitlines() if row.startswith("| `")]
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == keys


@pytest.mark.parametrize(
    ("key", "words"),
    [("class", FaultClass), ("scope", Scope), ("remedy", Remedy), ("role", LineRole), ("phase", Phase)],
)
def test_the_guide_lists_the_words_of_each_vocabulary(
    key: str, words: type[FaultClass | Scope | Remedy | LineRole | Phase]
) -> None:
    [row] = [row for row in GUIDE.partition("## Vocabularies")[2].splitlines() if row.startswith(f"| `{key}` |")]
    assert re.findall(r"`(\w+)`", row)[1:] == [word.value for word in words]
