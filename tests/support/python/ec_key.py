# SPDX-License-Identifier: Apache-2.0
"""Where the private key of a P-256 certificate lies: in a process's memory as OpenSSL keeps it, tried against the public key; and in which
other forms it could lie elsewhere. Memory is read by whoever may trace."""
import base64
import ctypes
import re
import ssl
import struct

LEAST = 1 << 48  # of the key's four words: pointers are below, and one random word in 65,536


class Point:
    """Multiples of the curve's base, as 64 bytes."""

    def __init__(self):
        lib = self.lib = ctypes.CDLL("libcrypto.so.3")
        for name in ("EC_GROUP_new_by_curve_name", "EC_POINT_new", "BN_lebin2bn"):
            getattr(lib, name).restype = ctypes.c_void_p
        lib.EC_POINT_point2oct.restype = ctypes.c_size_t
        self.group = ctypes.c_void_p(lib.EC_GROUP_new_by_curve_name(415))
        self.point = ctypes.c_void_p(lib.EC_POINT_new(self.group))

    def of(self, scalar):
        n = ctypes.c_void_p(self.lib.BN_lebin2bn(scalar, 32, None))
        out = ctypes.create_string_buffer(65)
        self.lib.EC_POINT_mul(self.group, self.point, n, None, None, None)
        self.lib.EC_POINT_point2oct(self.group, self.point, 4, out, ctypes.c_size_t(65), None)
        self.lib.BN_free(n)
        return out.raw[1:]


def public(pem):
    der = ssl.PEM_cert_to_DER_cert(pem)
    at = der.index(b"\x03\x42\x00\x04") + 4
    return der[at:at + 64]


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]


def read(pid, at, size):
    """By the system call, which asks for nothing but the right to trace; /proc/PID/mem belongs to the root of the whole system."""
    out, call = ctypes.create_string_buffer(size), ctypes.CDLL(None, use_errno=True).process_vm_readv
    call.restype = ctypes.c_ssize_t
    n = call(pid, ctypes.byref(Vector(ctypes.addressof(out), size)), ctypes.c_ulong(1), ctypes.byref(Vector(at, size)), ctypes.c_ulong(1),
             ctypes.c_ulong(0))
    return out.raw[:max(n, 0)]


def areas(pid, own=True):
    """What it has in memory; own: of that what is in no file, and may be written."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
        lines = maps.readlines()
    for line in lines:
        m = re.match(r"([0-9a-f]+)-([0-9a-f]+) (r\S+) \S+ \S+ \S+\s*(\S*)", line)
        if m and "[v" not in line and (not own or m[3][1] == "w" and m[4] in ("", "[heap]")):
            at, end = int(m[1], 16), int(m[2], 16)
            while at < end and (part := read(pid, at, min(end - at, 1 << 24))):
                yield part
                at += len(part)


def find(pid, pem):
    """The key, as OpenSSL has it: 32 bytes, the lowest first; None: it is not there."""
    want, curve, tried = public(pem), Point(), set()
    for blob in areas(pid):
        words = struct.unpack(f"={len(blob) // 8}Q", blob[:len(blob) // 8 * 8])
        for i in range(len(words) - 3):
            if words[i] < LEAST or words[i + 1] < LEAST or words[i + 2] < LEAST or words[i + 3] < LEAST:
                continue
            key = blob[8 * i:8 * i + 32]
            if key not in tried and sum(b > 127 for b in key) >= 4 and curve.of(key) == want:
                return key
            tried.add(key)
    return None


def forms(key):
    """Of the same bytes: as they are in memory, in DER, in hex; the ends of their base64, at each of three places."""
    der = key[::-1]
    out = [key, der, der.hex().encode(), der.hex().upper().encode()]
    for n in range(3):
        text = base64.b64encode(b"\0" * n + der)[-(-8 * n // 6):8 * (n + 32) // 6]
        out += [text[:16], text[-16:]]  # a line may end between them
    return out


def lies(pid, needles):
    """(bytes that were read, which of the needles are in the process's memory)"""
    n, found = 0, []
    for blob in areas(pid, own=False):
        n += len(blob)
        found += [f"{pid}: {i}" for i, needle in enumerate(needles) if needle in blob]
    return n, found
