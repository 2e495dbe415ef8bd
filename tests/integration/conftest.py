"""Fixtures: servers for the session, Redis and mailherd for each test.

    def test_x(herd, dovecot, login): ...

`herd(**settings)` makes a Mailherd; `login` is a mail user nobody else has.
On failure the directory of the test is kept and the ends of all logs are
printed.  With MAILHERD_KEEP=1 directories are always kept.
"""

import contextlib
import itertools
import os
import shutil
import signal
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import courier as courier_module  # noqa: E402
import cyrus as cyrus_module  # noqa: E402
import herd as herd_module  # noqa: E402
import mock as mock_module  # noqa: E402
import servers  # noqa: E402


def pytest_configure(config):
    # `timeout` ends us by SIGTERM: servers are stopped all the same.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    config.addinivalue_line("markers", "slow: more than about 20 seconds; "
                            "left out by scripts/check --fast")
    config.addinivalue_line("markers", "solo: restarts a server that others "
                            "share within one pytest process")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    setattr(item, f"report_{report.when}", report)


def pytest_collection_modifyitems(items):
    # Long ones first: with -n 2 the end of the run is then even.
    items.sort(key=lambda i: i.get_closest_marker("slow") is None)


@pytest.fixture(scope="session")
def base(request):
    path = servers.work_dir()
    yield path
    if request.session.testsfailed == 0 and \
            not hasattr(request.session, "is_unsound") and \
            not os.environ.get("MAILHERD_KEEP"):
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def certs(base):
    return servers.Certificates(base)


@pytest.fixture(scope="session")
def programs(base):
    return herd_module.Programs(base)


@pytest.fixture(scope="session")
def pg(base):
    with servers.Postgres(base) as pg:
        yield pg


@pytest.fixture(scope="session")
def dovecot(base, certs):
    with servers.Dovecot(base, certs) as imap:
        yield imap


@pytest.fixture(scope="session")
def condstore_only(base):
    with servers.Dovecot(base, capability=servers.NO_QRESYNC,
                         name="dovecot-condstore") as imap:
        yield imap


@pytest.fixture(scope="session")
def plain_imap(base):
    with servers.Dovecot(base, capability=servers.PLAIN,
                         name="dovecot-plain") as imap:
        yield imap


@pytest.fixture(scope="session")
def cyrus(base):
    with cyrus_module.Cyrus(base) as imap:
        yield imap


@pytest.fixture(scope="session")
def courier(base):
    with courier_module.Courier(base) as imap:
        yield imap


@pytest.fixture
def imap_kind(request):
    """Parametrised with "full", "condstore" or "plain", which are Dovecot,
    or with the name of another server."""
    return request.getfixturevalue(
        {"full": "dovecot", "condstore": "condstore_only",
         "plain": "plain_imap"}.get(request.param, request.param))


@pytest.fixture
def mock(test_dir, certs, request):
    """A factory of mock servers; what was made ends with the test."""
    stack = contextlib.ExitStack()
    yield lambda **group: stack.enter_context(
        mock_module.Mock(test_dir, certs, **group))
    try:
        stack.close()
    except AssertionError:
        keep_logs(request)
        raise


numbers = itertools.count(1)


@pytest.fixture
def logins():
    return (f"u{next(numbers):04d}" for _ in itertools.count())


@pytest.fixture
def login(logins):
    return next(logins)


@pytest.fixture
def test_dir(base, request):
    path = servers.own_dir(base, f"t{next(numbers)}")
    yield path
    failed = hasattr(request.node, "is_unsound") or any(
        getattr(request.node, f"report_{w}", None)
        and getattr(request.node, f"report_{w}").failed
        for w in ("setup", "call"))
    if failed:
        print_logs(path)
    elif not os.environ.get("MAILHERD_KEEP"):
        shutil.rmtree(path, ignore_errors=True)


def keep_logs(request):
    """The report of a teardown comes only when all is torn down."""
    request.node.is_unsound = request.session.is_unsound = True


def print_logs(path):
    print(f"\nlogs are kept in {path}")
    for folder, _, names in os.walk(path):
        for name in sorted(names):
            if name == "log" or name.endswith(".log"):
                full = os.path.join(folder, name)
                with open(full, encoding="utf-8", errors="replace") as f:
                    lines = f.readlines()[-40:]
                print(f"--- {full}")
                print("".join(line[:400].rstrip() + "\n"
                              for line in lines), end="")


@pytest.fixture
def redis(test_dir):
    with servers.Redis(test_dir) as redis:
        yield redis


@pytest.fixture
def events(redis):
    with herd_module.Events(redis) as events:
        yield events


@pytest.fixture
def herd(programs, test_dir, pg, redis, certs, request):
    """A factory; everything made by it ends with the test."""
    made = []

    def make(pg=pg, redis=redis, directory=None, **settings):
        h = herd_module.Mailherd(programs, directory or test_dir, pg, redis,
                                 certs, **settings)
        made.append(h)
        return h

    yield make
    problems = []
    for h in made:
        try:
            h.__exit__(None)
        except AssertionError as e:
            problems.append(str(e))
    if problems:
        keep_logs(request)
        pytest.fail("\n".join(problems), pytrace=False)
