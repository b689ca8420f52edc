"""What the tests of jobs share."""

import pytest

from tests.hostagent.jobs.host import Host


@pytest.fixture
def host():
    host = Host()
    yield host
    host.jobs.close()
