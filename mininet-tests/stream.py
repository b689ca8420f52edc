"""UDP streams: started in hosts by tests, not a test itself.

stream.py bursts ADDRESS: for each line on stdin, a burst as RoCEv2 sends it, numbered by PSN
stream.py receive COUNT: wait for COUNT packets of bursts; print [[PSN, delay in seconds], ...]
stream.py flood ADDRESS MBPS: from port 5001 to port 5001 at that rate, until killed
stream.py offer ADDRESS PORT MBPS SECONDS START: the same between ports PORT, from the Unix time START on, for
    that time; print how many packets
stream.py count PORT: say "ready"; print how many packets came, when none has for 2 s
"""

import json
import math
import socket
import struct
import sys
import time

PORT, SOURCE_PORT = 4791, 49152
FLOOD_PORT = 5001
BURST, PAUSE_S = 60, 0.001
BTH = struct.Struct(">BBHII")
STAMP = struct.Struct(">d")
PAYLOAD = bytes(4096)
FLOOD = bytes(8000)
RECEIVE_BUFFER_FORCE = 33  # SO_RCVBUFFORCE


def bursts(address):
    stream = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    stream.bind(("", SOURCE_PORT))
    number = 0
    for _ in sys.stdin:
        begin = time.time()
        for position in range(BURST):
            time.sleep(max(0.0, begin + position * PAUSE_S - time.time()))
            header = BTH.pack(0x04, 0, 0xFFFF, 0x11, number)
            stream.sendto(header + STAMP.pack(time.time()) + PAYLOAD, (address, PORT))
            number += 1


def flood(address, mbps):
    offer(address, FLOOD_PORT, mbps, math.inf, time.time())


def offer(address, port, mbps, seconds, start):
    stream = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    stream.bind(("", int(port)))
    interval = (len(FLOOD) + 42) * 8 / (float(mbps) * 1e6)
    time.sleep(max(0.0, float(start) - time.time()))
    begin, sent = time.time(), 0
    while (passed := time.time() - begin) < float(seconds):
        while sent * interval < passed:
            stream.sendto(FLOOD, (address, int(port)))
            sent += 1
        time.sleep(interval)
    json.dump(sent, sys.stdout)


def count(port):
    stream = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    stream.setsockopt(socket.SOL_SOCKET, RECEIVE_BUFFER_FORCE, 64 << 20)
    stream.bind(("", int(port)))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    found = 0
    stream.settimeout(20)
    try:
        while stream.recv(9000):
            found += 1
            stream.settimeout(2)
    except TimeoutError:
        json.dump(found, sys.stdout)


def receive(count):
    stream = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    stream.bind(("", PORT))
    stream.settimeout(20)
    seen = []
    while len(seen) < int(count):
        packet = stream.recv(9000)
        *_, number = BTH.unpack_from(packet)
        (sent,) = STAMP.unpack_from(packet, BTH.size)
        seen.append((number, time.time() - sent))
    json.dump(seen, sys.stdout)


if __name__ == "__main__":
    commands = {"bursts": bursts, "receive": receive, "flood": flood, "offer": offer, "count": count}
    commands[sys.argv[1]](*sys.argv[2:])
