"""A program on our compiler, without interfaces: packets in, packets out."""

from pathlib import Path

from finsy.proto import p4i
from google.protobuf import text_format

from softswitch.action_profiles import GroupMember
from softswitch.compiler import compile_program
from softswitch.entries import ActionCall

ROOT = Path(__file__).parent.parent.parent
TESTS = ROOT / "tests" / "softswitch"
FOLDERS = (TESTS / "programs", TESTS / "golden" / "programs", *sorted((ROOT / "p4src" / "build").iterdir()))
"""Where programs are."""
CPU_PORT = 510


def read(name, suffix):
    """A program's JSON or P4Info, by suffix."""
    return next(path for f in FOLDERS if (path := f / f"{name}.{suffix}").exists()).read_text()


class Ours:
    """A program on our compiler; what it sends is collected."""

    def __init__(self, name, queues=8):
        info = text_format.Parse(read(name, "p4info.txtpb"), p4i.P4Info())
        # p4c's JSON calls an optional key ternary.
        optional = {
            (t.preamble.name, f.name)
            for t in info.tables
            for f in t.match_fields
            if f.match_type == p4i.MatchField.OPTIONAL
        }
        self.pipeline = compile_program(read(name, "json"), queues, optional)
        self.sent = []
        self.digests = []
        self.pipeline.transmit = lambda port, queue, packet: self.sent.append((port, queue, bytes(packet)))
        self.pipeline.on_digest = lambda name, values: self.digests.append((name, values))
        self.now = 1000

    def table(self, name):
        """The table whose name ends so; exactly so, where several do."""
        tables = self.pipeline.tables
        return tables.get(name) or next(t for n, t in tables.items() if n.endswith("." + name))

    def action(self, table, name, *args):
        full = next(a for a in self.table(table).actions if a == name or a.endswith("." + name))
        return ActionCall(full, args)

    def insert(self, table, match, action, *args, priority=0):
        action = self.action(table, action, *args) if isinstance(action, str) else action
        return self.table(table).insert(match, action, priority, now_us=self.now)

    def set_default(self, table, action, *args):
        self.table(table).set_default(self.action(table, action, *args))

    def profile(self, name):
        return next(p for n, p in self.pipeline.action_profiles.items() if n.endswith("." + name))

    def member(self, profile, member_id, action, *args):
        full = next(a for a in self.profile(profile).actions if a == action or a.endswith("." + action))
        self.profile(profile).insert_member(member_id, ActionCall(full, args))

    def group(self, profile, group_id, members):
        self.profile(profile).insert_group(group_id, [GroupMember(m) for m in members])

    def replicate(self, group, replicas):
        self.pipeline.multicast.insert(group, replicas)

    def clone(self, session, replicas):
        self.pipeline.clones.insert(session, replicas)

    def send(self, packet, port=1):
        """Run one packet; returns [(port, queue, bytes)]."""
        self.sent.clear()
        self.now += 10
        self.pipeline.process(packet, port, self.now)
        return list(self.sent)

    def ports(self, packet, port=1):
        """Run one packet; returns [(port, bytes)]."""
        return [(out, data) for out, _, data in self.send(packet, port)]

    def counters(self):
        """Cells of indirect counters that have counted, as [name, index, packets, bytes], sorted."""
        return sorted(
            [name, index, counter.packets[index], counter.bytes[index]]
            for name, counter in self.pipeline.counters.items()
            for index in range(len(counter.packets))
            if counter.packets[index]
        )

    def direct_counters(self):
        """Direct counters that have counted, as [table, match, priority, packets, bytes], sorted."""
        return sorted(
            [name, _listed(entry.match), entry.priority, entry.packets, entry.bytes]
            for name, table in self.pipeline.tables.items()
            if table.direct_counter
            for entry in table.entries()
            if entry.packets and not entry.is_const
        )


def _listed(match):
    return [list(m) if isinstance(m, tuple) else m for m in match]
