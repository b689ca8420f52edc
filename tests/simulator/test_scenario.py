import pytest

from leveller.errors import UserError
from simulator.scenario import MAX_JOBS, read

GOOD = """
horizon_s = 10
[fabric]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
[[jobs]]
id = "a"
compute_s = 1
comm_s = 1
hosts = ["h1", "h3"]
"""
SPINE = GOOD[: GOOD.index("[[jobs]]")]
LINK = 'horizon_s = 10\n[fabric]\nkind = "link"\n'


def write(tmp_path, text):
    path = tmp_path / "x.toml"
    path.write_text(text)
    return path


def test_a_good_file(tmp_path):
    scenario, fabric = read(write(tmp_path, GOOD))
    assert list(fabric.hosts) == ["h1", "h2", "h3", "h4"]
    assert fabric.gpus == 32
    assert scenario.policy.levels == 8


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("horizon_s = 10\n", "", "horizon_s is missing: add it"),
        ("horizon_s = 10", "horizon_s = nan", "horizon_s = nan: "),
        ("horizon_s = 10", "horizon_s = 0", "horizon_s = 0: Input should be greater than 0"),
        (
            "compute_s = 1",
            "compute_s = -1",
            "jobs.0.compute_s = -1: Input should be greater than or equal to 0",
        ),
        ("compute_s = 1", "compute_s = nan", "jobs.0.compute_s = nan: Input should be "),
        ("compute_s = 1", "compute_s = inf", "jobs.0.compute_s = inf: Input should be a finite number"),
        ("comm_s = 1\n", "", "jobs.0: job a needs compute_s and one of comm_s and bytes"),
        ("compute_s = 1", "compute_s = 0\nbytes = 1", "jobs.0: it has both comm_s and bytes: keep one"),
        (
            "compute_s = 1\ncomm_s = 1",
            "compute_s = 0\ncomm_s = 0",
            "jobs.0: job a has no phase that takes time",
        ),
        ("comm_s = 1", "comm_s = 1\noverlap_s = 2", "jobs.0: overlap_s is more than compute_s = 1.0"),
        ('"h3"', '"h9"', "jobs.0.hosts names h9, which the fabric does not have: hosts are h1 to h4"),
        ('"h3"', '"h1"', "jobs.0.hosts names a host twice: name each once"),
        ('["h1", "h3"]', "[]", "jobs.0.hosts = []: "),
        ('hosts = ["h1", "h3"]\n', "", "jobs.0: job a has no hosts: give hosts, or gpus to have it placed"),
        ('hosts = ["h1", "h3"]', "gpus = 33", "jobs.0.gpus = 33: the fabric has 32 GPUs in all"),
        (
            'hosts = ["h1", "h3"]',
            'paths = [["leaf9:1"]]',
            "jobs.0.paths names leaf9:1, which the fabric does",
        ),
        ('hosts = ["h1", "h3"]', 'paths = [["leaf1"]]', "jobs.0: link 'leaf1' is not SWITCH:PORT"),
        (
            'kind = "leaf-spine"',
            'kind = "torus"',
            "fabric.kind = 'torus': choose one of link, leaf-spine, clos",
        ),
        ("leaves = 2", "leaves = 1000000", "fabric.leaves = 1000000: Input should be less than"),
        ("[[jobs]]", "[policy]\nlevels = 0\n[[jobs]]", "policy.levels = 0: "),
        (
            "[[jobs]]",
            "[policy]\nlevels = true\n[[jobs]]",
            "policy.levels: true is no value of it: give a number",
        ),
        ("[[jobs]]", "[jobs]", "jobs is one table: write a list of them: [[jobs]], not [jobs]"),
        ("[fabric]", "[[fabric]]", "fabric is a list: write one table: [fabric], not [[fabric]]"),
        (
            'kind = "leaf-spine"\n',
            "",
            "fabric.kind is missing: choose one of link, leaf-spine, clos, lingjun",
        ),
        (
            "horizon_s = 10",
            "horizon_s = 1e10",
            "horizon_s = 10000000000.0: Input should be less than or equal to",
        ),
        ("compute_s = 1", "compute_s = 1e300", "jobs.0.compute_s = 1e+300: Input should be less than"),
        ("comm_s = 1", "bytes = 1e300", "jobs.0.bytes = 1e+300: Input should be less than"),
        ("comm_s = 1", "comm_s = 1\njitter = 1e300", "jobs.0.jitter = 1e+300: Input should be less than"),
        ("comm_s = 1", "comm_s = 1\nweight = 1e-320", "jobs.0.weight = 1e-320: Input should be greater than"),
        (
            "spines = 2",
            "spines = 2\nnic_gbps = 1e-300",
            "fabric.nic_gbps = 1e-300: Input should be greater than",
        ),
        (
            'id = "a"',
            'id = "a\\nb"',
            r"jobs.0.id: 'a\nb' has characters that cannot be printed: leave them out",
        ),
        ('id = "a"', 'id = "\\u001b[31m"', r"jobs.0.id: '\x1b[31m' has characters that cannot be printed"),
        (
            "[[jobs]]",
            "[policy]\ntau_s = 1e-12\n[[jobs]]",
            "policy.tau_s = 1e-12 makes 1e+13 rankings in horizon_s = 10: keep to 10000000, with a longer",
        ),
        (
            "[[jobs]]",
            "[policy]\nhost_tau_s = 1e-9\n[[jobs]]",
            "policy.host_tau_s = 1e-09 makes 1e+10 rankings",
        ),
        (
            "compute_s = 1\ncomm_s = 1",
            "compute_s = 5e-8\ncomm_s = 5e-8",
            "jobs.0: job a has 1e+08 iterations of 1e-07 s in horizon_s = 10: keep to 10000000: mend",
        ),
        (
            'compute_s = 1\ncomm_s = 1\nhosts = ["h1", "h3"]',
            'compute_s = 0\ncomm_s = 1\nhosts = ["h1"]',
            "jobs.0: job a takes no time where its GPUs are on one host: give it compute_s",
        ),
        ("[[jobs]]", "[policy]\ntau = 1\n[[jobs]]", "policy.tau is not a known key: remove it"),
        ("[[jobs]]", '[policy]\nscope = "rack"\n[[jobs]]', "policy.scope = 'rack': "),
        ("[[jobs]]", "[policy]\nhost_stall_s = -1\n[[jobs]]", "policy.host_stall_s = -1: "),
        (
            "[[jobs]]",
            "[workload]\njobs = 1000000\n[[jobs]]",
            "workload.jobs = 1000000: Input should be less than",
        ),
        ("[[jobs]]", "[workload]\njobs = 10\n[[jobs]]", "give the jobs as [[jobs]], or have them drawn"),
        ("[[jobs]]", "[[job]]", "is not a known key"),
        (
            "horizon_s = 10",
            'horizon_s = 10\nnewcomer = "b"',
            "newcomer = 'b' is no job: give the id of one of",
        ),
        (
            "horizon_s = 10",
            "horizon_s = 10\nsample_s = 1e-9",
            "sample_s = 1e-09 is too short: keep to 1000000",
        ),
        ("horizon_s = 10", "horizon_s = 10\nsample_s = 0", "sample_s = 0: Input should be greater than 0"),
        ("[[jobs]]", '[policy]\npaths = "any"\n[[jobs]]', "policy.paths = 'any': "),
        ("leaves = 2\n", "", "fabric.leaves is missing: add it"),
        (
            'id = "a"',
            'id = "a"\nstart_s = -5',
            "jobs.0.start_s = -5: Input should be greater than or equal to 0",
        ),
        (
            "[[jobs]]",
            "[policy]\ntau_s = nan\n[[jobs]]",
            "policy.tau_s = nan: Input should be a finite number",
        ),
        (
            "comm_s = 1",
            "comm_s = 1\niterations = 1000000",
            "jobs.0.iterations = 1000000: Input should be less",
        ),
        ('hosts = ["h1", "h3"]', "paths = []", "jobs.0.paths = []: "),
        ('"h3"', '"h\\n3"', r"jobs.0.hosts names h\n3, which the fabric does not have"),
        (
            "leaves = 2\nspines = 2\nhosts_per_leaf = 2",
            "leaves = 1000\nspines = 2\nhosts_per_leaf = 1000",
            "fabric: it has 2004000 links, of switches and hosts: keep to 2000000",
        ),
    ],
)
def test_a_bad_file_is_one_line_with_file_key_and_mend(tmp_path, old, new, error):
    assert old in GOOD
    with pytest.raises(UserError) as caught:
        read(write(tmp_path, GOOD.replace(old, new, 1)))
    text = str(caught.value)
    assert text.startswith(str(tmp_path / "x.toml"))
    assert error in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "horizon_s is missing"),
        (
            'newcomer = "b"\n' + LINK + '[[jobs]]\nid = "b"\ncompute_s = 1\ncomm_s = 1\nstart_s = 10\n',
            "x.toml: newcomer = 'b' starts at 10.0 s, not before horizon_s = 10.0: let it start earlier",
        ),
        (
            LINK + '[[jobs]]\nid = "a"\ncompute_s = 0\nbytes = 1\n',
            "jobs.0: job a has 1.2e+11 iterations of 8e-11 s in horizon_s = 10",
        ),
        (
            LINK + '[[jobs]]\nid = "a"\nphases = {compute_s = 1}\n',
            "jobs.0.phases is one table: write a list of them",
        ),
        (SPINE + "[workload]\njobs = 1\niterations = [1, 1e18]\n", "workload.iterations.1 = 1e+18: Input"),
        (
            SPINE + '[workload]\nkind = "acme"\njobs = "none.csv"\n',
            "x.toml: workload.jobs = {folder}/none.csv cannot be read (No such file or directory): give the",
        ),
        (
            SPINE + '[workload]\nkind = "lingjun"\njobs = "x.toml"\nworkers = "none.csv"\n',
            "x.toml: workload.workers = {folder}/none.csv cannot be read",
        ),
        ("horizon_s = ", "is not TOML"),
        (LINK, "give the jobs as [[jobs]]"),
        (LINK + "[workload]\njobs = 3\n", "[workload] needs a fabric with hosts"),
        (
            LINK + '[[jobs]]\nid = "a"\ncompute_s = 1\ncomm_s = 1\nhosts = ["h1"]\n',
            "jobs.0.hosts: fabric.kind = 'link' has no hosts: remove hosts",
        ),
        (
            LINK + '[[jobs]]\nid = "a"\ncompute_s = 1\ncomm_s = 1\n' * 2,
            "jobs.1.id = 'a' is taken: rename it",
        ),
        (
            LINK + '[[jobs]]\nid = "a"\nphases = [{compute_s = 1}, {comm_s = 1, after = ["x"]}]\n',
            "jobs.0: job a: after names 'x': name a phase above it",
        ),
        (
            LINK + '[[jobs]]\nid = "a"\nphases = [{comm_s = 1, kind = "XP"}]\n',
            "jobs.0.phases.0.kind = 'XP': ",
        ),
        (
            LINK + '[[jobs]]\nid = "a"\nphases = [{comm_s = 1, micro_batch = -1}]\n',
            "jobs.0.phases.0.micro_batch = -1: ",
        ),
        (
            LINK + '[[jobs]]\nid = "a"\nphases = [{compute_s = 1, comm_s = 1}]\n',
            "jobs.0.phases.0: a phase either computes or communicates",
        ),
        (
            LINK + '[[jobs]]\nid = "a"\ncompute_s = 1\nphases = [{comm_s = 1}]\n',
            "jobs.0: job a has phases: put compute_s, comm_s and bytes into them",
        ),
        (
            LINK + '[[jobs]]\nid = "a"\nphases = [{compute_s = 1}, {comm_s = 1, paths = [["S1:2"]]}]\n',
            "jobs.0.phases.1.paths names S1:2, which the fabric does not have: links are written SWITCH:PORT",
        ),
        (
            'horizon_s = 1\n[fabric]\nkind = "clos"\npods = 500\nleaves_per_pod = 500\nhosts_per_leaf = 500\n'
            "aggs_per_pod = 1\ncores_per_agg = 1\n[workload]\njobs = 1\n",
            "fabric: it has 250501000 links, of switches and hosts: keep to 2000000",
        ),
        (
            'horizon_s = 1\n[fabric]\nkind = "lingjun"\ntopo = "none.csv"\n[workload]\njobs = 1\n',
            "none.csv cannot be read",
        ),
    ],
)
def test_a_bad_file_of_another_kind(tmp_path, text, error):
    with pytest.raises(UserError) as caught:
        read(write(tmp_path, text))
    message = str(caught.value)
    assert message.startswith(str(tmp_path / "x.toml"))
    assert error.format(folder=tmp_path) in message
    assert "\n" not in message


def test_a_million_jobs_by_typo(tmp_path):
    job = '[[jobs]]\nid = "a"\ncompute_s = 1\ncomm_s = 1\n'
    with pytest.raises(UserError, match=f"jobs: there are {MAX_JOBS + 1} of them: keep to {MAX_JOBS}"):
        read(write(tmp_path, LINK + job * (MAX_JOBS + 1)))


def test_the_last_that_is_not_too_long(tmp_path):
    job = '[[jobs]]\nid = "a"\ncompute_s = 5e-7\ncomm_s = 5e-7\n'
    read(write(tmp_path, LINK + "[policy]\ntau_s = 1e-6\n" + job))
    few = LINK + '[[jobs]]\nid = "a"\ncompute_s = 5e-9\ncomm_s = 5e-9\niterations = 3\n'
    read(write(tmp_path, few))


def test_a_byte_order_mark(tmp_path):
    assert read(write(tmp_path, "\ufeff" + GOOD))[0].jobs[0].id == "a"


def test_drawn_jobs_that_are_larger_than_the_fabric_are_told(tmp_path, caplog):
    read(write(tmp_path, SPINE + "[workload]\njobs = 1\ngpus = [8, 32]\n"))
    assert caplog.text == ""
    read(write(tmp_path, SPINE + "[workload]\njobs = 1\n"))
    read(write(tmp_path, SPINE + '[workload]\nkind = "lingjun-like"\njobs = 1\n'))
    assert caplog.text.count("workload: jobs of more GPUs than the fabric's 32 get all of these") == 2
