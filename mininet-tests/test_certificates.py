"""The agents' channel by mutual TLS, with the real controller and agents."""

from tests.certificates import Authority
from topo import files, scenario
from topo.files import Policy
from topo.lab import Lab


def test_two_jobs_are_ranked_and_a_claim_outside_a_certificate_is_shown(kind, directory, monkeypatch):
    authority = Authority(directory)
    make = {"controller": files.controller_toml, "agent": files.agent_toml}

    def tls(name, san):
        signed = authority.sign(name, san)
        return "tls = {" + ", ".join(f'{key} = "{path}"' for key, path in signed.items()) + "}"

    def controller(*arguments):
        own = tls("controller", f"IP:{files.MANAGEMENT}")
        return make["controller"](*arguments).replace("[controller]", f"[controller]\n{own}", 1)

    def agent(host):
        text = make["agent"](host)
        if host.name != "h4":
            own = tls(host.name, f"DNS:{host.name},IP:{host.ipv4},IP:{host.ipv6}")
        else:  # it takes the addresses that its interface has, and its certificate lacks one of them
            own = tls(host.name, f"DNS:{host.name},IP:{host.ipv4}")
            text = "".join(line for line in text.splitlines(True) if not line.startswith("addresses"))
        return text.replace("[agent]", f"[agent]\n{own}", 1)

    monkeypatch.setattr(files, "controller_toml", controller)
    monkeypatch.setattr(files, "agent_toml", agent)
    wanted = scenario.find("pair")
    with Lab(wanted.fabric.build(), kind, directory) as lab:
        lab.start_controller(Policy("leveller"))
        lab.start_agents()
        lab.wait_ready()
        lab.start_jobs(wanted)
        lab.wait_for(lambda: len(lab.status()["groups"]) == 4, 40, "both jobs' flows to be ranked")
        seen = lab.status()
    hosts = lab.fabric.hosts
    assert {agent["host"]: agent["addresses"] for agent in seen["agents"]} == {
        name: [str(host.ipv4)] if name == "h4" else [str(host.ipv4), str(host.ipv6)]
        for name, host in hosts.items()
    }
    assert all(agent["authenticated"] for agent in seen["agents"])
    (refused,) = seen["refused"]
    assert (refused["who"], refused["count"]) == ("h4", 1)
    assert refused["reason"] == f"it claims {hosts['h4'].ipv6}, which its certificate does not have"
