"""Where settings come from: calls, the environment, a file; and the names that other systems have for them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

import hitherto
from hitherto import rolling, sliding_window
from hitherto.cli.service.worker import warn_of_ignored_variables
from hitherto.core.policy.presets import policy_of
from hitherto.errors import InvalidSettings
from hitherto.other_systems.settings_aliases import ALIASES, AliasedSettings, settings_of, without_aliases
from hitherto.settings import Settings
from hitherto.settings.sources import _ADDRESSES_OF, SettingValue
from tests.acceptance.cli.commands import bare
from tests.conftest import SCOPE

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "hitherto.toml"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, in which there is nothing; and nothing is in the environment."""
    for name in [*(name for name in os.environ if name.startswith("HITHERTO_")), *ALIASES.values()]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(text: str, name: str = "hitherto.toml") -> Path:
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    return path


class TestOrder:
    def test_what_a_call_gives_then_the_environment_then_the_file(self, monkeypatch: pytest.MonkeyPatch) -> None:
        written("budget = 1_000\ngrace = 1\npool_size = 1")
        monkeypatch.setenv("HITHERTO_BUDGET", "2000")
        monkeypatch.setenv("HITHERTO_GRACE", "2")
        found, places = Settings.load_with_places(budget=3_000)
        assert (found.budget, found.grace, found.pool_size, found.facts_share) == (3_000, 2, 1, 0.15)
        assert places == {"budget": "given", "grace": "HITHERTO_GRACE", "pool_size": "hitherto.toml: pool_size"}

    def test_which_file(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert Settings.load().budget == 16_000
        written("budget = 1_000")
        assert Settings.load().budget == 1_000
        monkeypatch.setenv("HITHERTO_CONFIG", str(written("budget = 2_000", "other.toml")))
        assert Settings.load().budget == 2_000
        assert Settings.load(written("budget = 3_000", "third.toml")).budget == 3_000

    async def test_a_memory_that_is_opened(self) -> None:
        written('policy = "trim:max_turns=3,keep_turns=1"')
        file = written('policy = "none"', "other.toml")
        async with (
            hitherto.open("memory:") as memory,
            hitherto.open("memory:", config=file) as other,
            hitherto.open("memory:", policy="redact") as given,
        ):
            for opened, name in ((memory, "trim"), (other, "none"), (given, "redact")):
                assert (await opened.conversation("c", scope=SCOPE).policy()).name == name


class TestFile:
    def test_lists_tables_and_dates(self) -> None:
        written('search_triggers = ["last time"]\nttl = "P7D"\n[policy]\nversion = 1\nname = "mine"\nstages = []')
        found = Settings.load()
        assert found.search_triggers == ("last time",)
        assert found.ttl is not None
        assert found.ttl.days == 7
        policy = policy_of(found.policy)
        assert policy is not None
        assert policy.name == "mine"

    def test_yaml(self) -> None:
        file = written("policy: rolling:threshold=30\nmodel: gpt-4.1\nttl:\n", "config.yaml")
        found = Settings.load(file)
        assert (policy_of(found.policy), found.model, found.ttl) == (rolling(threshold=30), "gpt-4.1", None)
        assert Settings.load(written("", "empty.yml")).budget == 16_000

    def test_yaml_without_its_package(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "yaml", None)
        with pytest.raises(InvalidSettings, match=r"pip install hitherto\[yaml\]"):
            Settings.load(written("budget: 1", "config.yaml"))

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("bugdet = 1", r"hitherto.toml: 'bugdet' is not a setting; did you mean 'budget'\?"),
            ("[server]\nport = 1", "'server.port' is not a setting"),
            ("budget = ", "hitherto.toml cannot be read: Invalid value"),
            ("budget = 1\nbudget = 2", "cannot be read: .*overwrite"),
            (
                "budget = 'many'",
                r"the setting budget \(hitherto.toml: budget\) is unusable: it should be a whole number",
            ),
            ("budget = 0", "greater than or equal to 1"),
            ("database = ['x']", r"the setting database \(hitherto.toml: database\)"),
            ("policy = 'tirm'", "the setting policy .* there is no policy named 'tirm'"),
            ("policy = 3", "the setting policy .* give a policy"),
            ("x = " + "[" * 5_000, "cannot be read"),
        ],
    )
    def test_what_is_wrong_is_named(self, text: str, why: str) -> None:
        written(text)
        with pytest.raises(InvalidSettings, match=why):
            Settings.load()

    def test_what_is_no_file_of_settings(self, folder: Path) -> None:
        os.mkfifo(folder / "pipe.toml")
        (folder / "folder.toml").mkdir()
        (folder / "binary.toml").write_bytes(b"\xff\xfe\x00")
        (folder / "huge.toml").write_text("# " + "x" * 2_000_000)
        written("- 1\n- 2", "list.yaml")
        for name in ("pipe.toml", "folder.toml", "binary.toml", "huge.toml", "list.yaml", "missing.toml"):
            with pytest.raises(InvalidSettings, match=name):
                Settings.load(name)

    def test_one_that_others_could_have_put_there_is_read_only_if_it_is_named(self) -> None:
        """A folder that was downloaded, or that all may write to, must not send keys to an address of its own."""
        file = written("budget = 1_000")
        file.chmod(0o666)
        with pytest.raises(InvalidSettings, match="others may write to it, so it is not read; to read it, name it"):
            Settings.load()
        assert Settings.load(file).budget == 1_000
        file.chmod(0o644)
        os.chown(file, 12_345, -1)
        with pytest.raises(InvalidSettings, match="belongs to another user"):
            Settings.load()


class TestAliases:
    """The names of other systems, which only `hitherto serve --other-systems` and `hitherto agent` know."""

    def test_others_do_not_know_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HITHERTO_SUMMARY_ENABLED", "true")
        assert Settings.load().policy is None
        assert AliasedSettings.load().policy == "rolling"
        written("summaryEnabled = true")
        with pytest.raises(InvalidSettings, match="'summaryEnabled' is not a setting"):
            Settings.load()

    def test_in_a_program(self) -> None:
        names = {"summaryEnabled": True, "summaryKeepLast": 9, "openai": {"summaryModel": "small", "model": None}}
        assert settings_of(names) == {"policy": "rolling:keep_last=9", "model": "small"}
        assert Settings.load(**settings_of(names)).model == "small"
        with pytest.raises(InvalidSettings, match=r"'openai.modle' is no setting .* did you mean 'openai.model'\?"):
            settings_of({"openai": {"modle": "x"}})

    def test_a_found_file_sends_no_key_to_their_addresses(self) -> None:
        written("[openai]\nsummaryBaseURL = 'http://b/v1'")
        with pytest.raises(InvalidSettings, match=r"openai\.summaryBaseURL .* is refused"):
            AliasedSettings.load(model_key="sk-environment")

    def test_the_names_of_a_sliding_window(self) -> None:
        written("memory_rolling_window_size = 14\nmemory_summarize_after_seq = 5\nmemory_model = 'gpt-4.1-mini'")
        found = AliasedSettings.load()
        assert (policy_of(found.policy), found.model) == (sliding_window(window=14, after_seq=5), "gpt-4.1-mini")

    def test_the_names_of_a_running_synopsis(self) -> None:
        written(
            "summaryEnabled = true\nsummaryThreshold = 40\nsummaryKeepLast = 12\n[openai]\nmodel = 'big'\n"
            "summaryModel = 'small'\nbaseURL = 'http://a/v1'\nsummaryBaseURL = 'http://b/v1'"
        )
        found = AliasedSettings.load()
        assert policy_of(found.policy) == rolling(threshold=40, keep_last=12)
        assert (found.model, found.model_base_url) == ("small", "http://b/v1")

    def test_the_summary_falls_back_to_the_agents_own(self) -> None:
        written("[openai]\nmodel = 'big'\nbaseURL = 'http://a/v1'")
        found = AliasedSettings.load()
        assert (found.model, found.model_base_url, found.policy) == ("big", "http://a/v1", None)

    def test_without_a_summary_everything_stays(self) -> None:
        written("summaryThreshold = 40")
        assert AliasedSettings.load().policy is None
        written("summaryEnabled = false")
        assert AliasedSettings.load().policy == "none"
        written("summaryEnabled = false\npolicy = 'trim'")
        assert AliasedSettings.load().policy == "trim"

    def test_in_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        written("summaryEnabled = true\nsummaryThreshold = 30\n[openai]\nsummaryModel = 'of the file'")
        monkeypatch.setenv("OPENAI_SUMMARY_MODEL", "small")
        monkeypatch.setenv("OPENAI_SUMMARY_URL", "http://b/v1")
        monkeypatch.setenv("HITHERTO_SUMMARY_KEEP_LAST", "9")
        found = AliasedSettings.load()
        assert policy_of(found.policy) == rolling(threshold=30, keep_last=9)
        assert (found.model, found.model_base_url) == ("small", "http://b/v1")

    @pytest.mark.parametrize(
        "text",
        [
            "summaryEnabled = true\nmemory_rolling_window_size = 14",
            "summaryEnabled = true\npolicy = 'trim'",
            "memory_summarize_after_seq = 7\npolicy = 'sliding_window'",
            "model = 'a'\nmemory_model = 'b'",
            "memory_model = 'a'\n[openai]\nsummaryModel = 'b'",
            "model_base_url = 'http://a'\n[openai]\nsummaryBaseURL = 'http://b'",
        ],
    )
    def test_what_contradicts_itself_is_refused(self, text: str) -> None:
        written(text)
        with pytest.raises(InvalidSettings, match=r"hitherto.toml: .* and hitherto.toml: .* say different things"):
            AliasedSettings.load()

    def test_what_says_the_same_twice_is_not(self, monkeypatch: pytest.MonkeyPatch) -> None:
        written("summaryEnabled = true\nsummaryThreshold = 30\npolicy = 'rolling:threshold=30'\nmodel = 'a'")
        monkeypatch.setenv("HITHERTO_MEMORY_MODEL", "a")
        assert policy_of(AliasedSettings.load().policy) == rolling(threshold=30)
        monkeypatch.setenv("HITHERTO_POLICY", "trim")
        assert AliasedSettings.load().policy == "trim", "the environment comes before the file"

    @pytest.mark.parametrize(
        "text", ["memory_rolling_window_size = 'x'", "summaryEnabled = 'perhaps'", "summaryKeepLast = []"]
    )
    def test_values_of_another_kind(self, text: str) -> None:
        written(text)
        with pytest.raises(InvalidSettings, match=r"hitherto.toml: \w+ should be"):
            AliasedSettings.load()

    @given(
        st.dictionaries(
            st.sampled_from(["policy", "model", *ALIASES]),
            st.tuples(st.sampled_from([1, 2, "true", "false", "none", "m"]), st.integers(0, 2)),
        )
    )
    def test_whatever_is_given_is_refused_or_has_no_alias_left(self, given: dict[str, tuple[object, int]]) -> None:
        values = {name: SettingValue(value, level, name) for name, (value, level) in given.items()}
        try:
            found = without_aliases(values)
        except InvalidSettings:
            return
        assert set(found) <= {"policy", "model", "model_base_url"}
        for name in ("policy", "model"):
            if name in values and values[name].level == 0:
                assert found[name].value == values[name].value, "what a call gives comes first"


def test_of_each_key_it_is_said_where_it_goes() -> None:
    keys = {name for name, field in Settings.model_fields.items() if SecretStr in get_args(field.annotation)}
    assert keys == {*_ADDRESSES_OF}


class TestCommand:
    def test_what_is_in_force_and_where_it_comes_from(self, folder: Path) -> None:
        file = written("budget = 2_000\npolicy = 'rolling'")
        found = bare("--config", file, "config", "--json", HITHERTO_GRACE="2", HITHERTO_MODEL_KEY="sk-secret").json
        assert set(found) == set(Settings.model_fields)
        assert found["budget"] == {"value": 2_000, "from": "hitherto.toml: budget"}
        assert found["policy"] == {"value": "rolling", "from": "hitherto.toml: policy"}
        assert found["grace"] == {"value": 2.0, "from": "HITHERTO_GRACE"}
        assert found["pool_size"] == {"value": 10, "from": "default"}
        assert found["model_key"] == {"value": "***", "from": "HITHERTO_MODEL_KEY"}
        said = bare("config", "--changed", HITHERTO_GRACE="2").out
        assert "HITHERTO_GRACE" in said
        assert "pool_size" not in said

    def test_a_variable_that_only_looks_like_a_setting(self) -> None:
        """Or is one of other systems, which `hitherto serve --other-systems` reads."""
        given = {"HITHERTO_BUDGT": "1", "OPENAI_SUMMARY_MODEL": "gpt", "HITHERTO_TRACEBACK": ""}
        said = " ".join(bare("config", "--changed", **given).err.split())
        assert "HITHERTO_BUDGT is no setting, and is ignored; if HITHERTO_BUDGET is meant, rename it" in said
        assert "OPENAI_SUMMARY_MODEL is no setting, and is ignored; only `hitherto serve --other-systems`" in said
        assert "TRACEBACK" not in said
        checks = [one["found"] for one in bare("doctor", "--json", **given).json["checks"] if one["name"] == "settings"]
        assert [one.partition(" is in the environment")[0] for one in checks] == [
            "OPENAI_SUMMARY_MODEL",
            "HITHERTO_BUDGT",
        ]

    def test_processes_log_such_variables(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setenv("HITHERTO_BUDGT", "1")
        monkeypatch.setenv("HITHERTO_SUMMARY_THRESHOLD", "9")
        warn_of_ignored_variables()
        assert [one.getMessage().partition(" is no setting")[0] for one in caplog.records] == [
            "HITHERTO_SUMMARY_THRESHOLD",
            "HITHERTO_BUDGT",
        ]

    def test_a_file_that_cannot_be_used(self) -> None:
        written("bugdet = 1")
        assert "did you mean 'budget'" in bare("config").failed(2)
        checks = {one["name"]: one for one in bare("doctor", "--json").json["checks"]}
        assert checks["settings"]["state"] == "failed"
        assert "did you mean 'budget'" in checks["settings"]["found"]
        assert checks["database"]["state"] == "skipped"


def test_the_example_is_usable() -> None:
    found, places = Settings.load_with_places(EXAMPLE)
    assert (found.model, found.budget) == ("gpt-4.1-mini", 16_000)
    assert policy_of(found.policy) == rolling()
    assert len(places) == 7
    assert json.loads(json.dumps(list(found.search_triggers)))[0] == "last time"
