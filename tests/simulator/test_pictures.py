import pytest

from leveller.errors import UserError
from simulator import pictures


def test_a_figure_is_written_as_png_and_svg(tmp_path):
    figure = pictures.new_figure(2, 1)
    figure.subplots().plot([0, 1], [1, 0])
    png, svg = pictures.write(figure, tmp_path / "a.b")
    assert (png.name, svg.name) == ("a.b.png", "a.b.svg")
    assert png.read_bytes()[:4] == b"\x89PNG"
    assert "<svg" in svg.read_text()


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(UserError, match=r"b\.png cannot be written"):
        pictures.write(pictures.new_figure(1, 1), tmp_path / "none" / "b")
