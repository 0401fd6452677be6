"""Temporary folders of killed processes."""

from __future__ import annotations

from headway.launch.hook import remove_temps


def make(tmp_path, *folders):
    (tmp_path / "ranks").mkdir()
    (tmp_path / "ranks" / "temps").write_text("".join(f"{folder}\n" for folder in folders))


def test_a_noted_folder_goes_with_what_multiprocessing_put_there(tmp_path):
    folder = tmp_path / "pymp-abc"
    folder.mkdir()
    (folder / "listener-1").touch()
    (folder / "pym-77-x").touch()
    make(tmp_path, folder, folder, tmp_path / "pymp-gone")
    remove_temps(tmp_path)
    assert not folder.exists()
    assert not (tmp_path / "ranks" / "temps").exists()


def test_a_file_of_the_user_keeps_its_folder(tmp_path):
    folder = tmp_path / "pymp-abc"
    folder.mkdir()
    (folder / "result.txt").touch()
    make(tmp_path, folder)
    remove_temps(tmp_path)
    assert (folder / "result.txt").exists()


def test_only_folders_that_multiprocessing_names_are_touched(tmp_path):
    other, link = tmp_path / "data", tmp_path / "pymp-link"
    other.mkdir()
    (other / "listener-1").touch()
    link.symlink_to(other)
    make(tmp_path, other, link)
    remove_temps(tmp_path)
    assert (other / "listener-1").exists() and link.is_symlink()


def test_without_notes_nothing_happens(tmp_path):
    (tmp_path / "listener-1").touch()
    remove_temps(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["listener-1"]
