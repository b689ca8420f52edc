"""A RoCEv2-like UDP stream and what competes with it: started in hosts by test_reorder.py, not a test itself.

stream.py bursts ADDRESS        for each line on stdin, one burst; packets have a BTH with their number as PSN
stream.py flood ADDRESS MBPS    UDP at that rate, until killed
stream.py receive COUNT         wait for COUNT packets of the stream; print [[PSN, delay in seconds], ...]
"""

import json
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
    stream = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    stream.bind(("", FLOOD_PORT))
    interval = (len(FLOOD) + 42) * 8 / (float(mbps) * 1e6)
    begin, sent = time.time(), 0
    while True:
        while sent * interval < time.time() - begin:
            stream.sendto(FLOOD, (address, FLOOD_PORT))
            sent += 1
        time.sleep(interval)


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
    {"bursts": bursts, "flood": flood, "receive": receive}[sys.argv[1]](*sys.argv[2:])
