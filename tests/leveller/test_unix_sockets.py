import socket

import pytest

from leveller import unix_sockets


def test_a_free_path_and_one_that_a_dead_process_left(tmp_path):
    path = tmp_path / "a"
    unix_sockets.check(f"unix:{path}")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
    unix_sockets.check(f"unix:{path}")


def test_the_socket_of_a_living_process_is_not_taken(tmp_path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "a"))
        server.listen()
        with pytest.raises(OSError, match="another process listens there"):
            unix_sockets.check(f"unix:{tmp_path / 'a'}")


@pytest.mark.parametrize(
    ("path", "message"),
    [("none/a", "there is no directory"), (".", "something else"), ("a" * 120, "too long")],
)
def test_a_path_that_cannot_be_a_socket(tmp_path, path, message):
    with pytest.raises(OSError, match=message):
        unix_sockets.check(f"unix:{tmp_path / path}")
