"""Writes captures with the packet layouts of scapy to the folder of the first argument: 300 frames, of which number 70 and
numbers 150 to 154 are missing."""

import sys

from scapy.all import Dot1AD, Dot1Q, Ether, IPv6, Raw, UDP, wrpcap
from scapy.contrib.ethercat import EtherCat, EtherCatLRW
from scapy.contrib.pnio import PNIORealTimeCyclicPDU, ProfinetIO
from scapy.layers.rtp import RTP

ADDRESSES = {"dst": "01:0e:cf:00:00:01", "src": "02:00:00:00:00:09"}
NUMBERS = [n for n in range(300) if n != 70 and not 150 <= n < 155]


def at(frame, ms):
    frame.time = 1_790_000_000 + ms / 1e3
    return frame


def profinet(n):
    cyclic = PNIORealTimeCyclicPDU(cycleCounter=n * 32 & 0xFFFF, dataStatus=0x35, data=[], padding=bytes(40))
    return Ether(**ADDRESSES) / Dot1Q(prio=6, vlan=0) / ProfinetIO(frameID=0x8001) / cyclic


def ethercat(n, returned):
    """A slave sets bit 1 of the source address, and counts in the working counter."""
    source = "02:00:00:00:00:09" if returned else "00:00:00:00:00:09"
    command = EtherCatLRW(idx=n & 0xFF, adr=0x1000, data=[0] * 32, wkc=3 if returned else 0)
    return Ether(dst="ff:ff:ff:ff:ff:ff", src=source) / EtherCat() / command


def rtp_in_two_tags(n):
    tags = Dot1AD(vlan=100) / Dot1Q(vlan=7, prio=3)
    packet = RTP(payload_type=98, sequence=65_500 + n & 0xFFFF, timestamp=n * 48, sourcesync=7) / Raw(bytes(48))
    return Ether(**ADDRESSES) / tags / IPv6(src="fd09::1", dst="fd09::2") / UDP(sport=5004, dport=5004) / packet


folder = sys.argv[1]
wrpcap(f"{folder}/profinet.pcap", [at(profinet(n), n) for n in NUMBERS], nano=True)
both = [at(ethercat(n, returned), n + 0.03 * returned) for n in NUMBERS for returned in (False, True)]
wrpcap(f"{folder}/ethercat.pcap", both, nano=True)
wrpcap(f"{folder}/qinq.pcap", [at(rtp_in_two_tags(n), n) for n in NUMBERS], nano=True)
