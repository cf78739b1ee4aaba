#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A labelled corpus for the gate, made here and now from a seed, and what the gate makes of it.

It knows nothing of the gate's rules: formats are written down a second time, from what the
issuers publish, numbers get their check digits from code of its own, and for each kind there
are look-alikes that are none. gate_corpus.py --program PATH [--write docs/GATE.md] [--quick]
prints the tables; exit 1 when a bound of the issue is missed. Time is measured, not judged
(make bench does that).
"""
import argparse
import base64
import binascii
import gzip
import hashlib
import json
import math
import random
import string
import subprocess
import sys
import zlib
from pathlib import Path

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
URL64 = ALNUM + "-_"
MARK = ("<!-- generated: tests/support/python/gate_corpus.py -->", "<!-- end -->")
# families with a validator or a fixed format: recall and precision are promised
FIXED = ["token", "private_key", "jwt", "url_secret", "card", "iban", "ssn", "nhs", "crypto"]
CERTAIN = ["exact", "canary"]
OTHER = ["keyword", "entropy", "email", "phone", "ip", "mac", "gps", "identity", "name",
         "address", "file"]


class Maker:
    """Secrets and texts around them."""

    def __init__(self, seed):
        self.r = random.Random(seed)

    def chars(self, alphabet, n):
        return "".join(self.r.choice(alphabet) for _ in range(n))

    def digits(self, n):
        return self.chars(string.digits, n)

    def bytes(self, n):
        return bytes(self.r.randrange(256) for _ in range(n))

    # ---- tokens -------------------------------------------------------------
    def crc_token(self, prefix):
        body = self.chars(ALNUM, 30)
        n = zlib.crc32(body.encode())
        tail = ""
        alphabet = string.digits + string.ascii_uppercase + string.ascii_lowercase
        for _ in range(6):
            tail = alphabet[n % 62] + tail
            n //= 62
        return prefix + body + tail

    def aws_id(self):
        account = self.r.randrange(10**11, 10**12)
        bits = (1 << 47) | (account << 7) | self.r.randrange(128)
        raw = bits.to_bytes(6, "big") + self.bytes(4)
        return self.r.choice(["AKIA", "ASIA"]) + base64.b32encode(raw).decode()

    def token(self):
        c, r = self.chars, self.r
        makers = [
            lambda: self.crc_token(r.choice(["ghp_", "gho_", "ghu_", "ghs_", "ghr_"])),
            lambda: self.crc_token("npm_"),
            lambda: "github_pat_" + c(ALNUM, 22) + "_" + c(ALNUM, 59),
            lambda: "glpat-" + c(URL64, 20),
            lambda: "xoxb-" + self.digits(12) + "-" + self.digits(12) + "-" + c(ALNUM, 24),
            lambda: "https://hooks.slack.com/services/T" + c(string.ascii_uppercase + string.digits, 10)
            + "/B" + c(string.ascii_uppercase + string.digits, 10) + "/" + c(ALNUM, 24),
            lambda: r.choice(["sk_live_", "rk_live_", "sk_test_"]) + c(ALNUM, r.choice([24, 99])),
            self.aws_id,
            lambda: "AIza" + c(URL64, 35),
            lambda: "GOCSPX-" + c(URL64, 28),
            lambda: "sk-" + c(ALNUM, 20) + "T3BlbkFJ" + c(ALNUM, 20),
            lambda: "sk-proj-" + c(URL64, 74) + "T3BlbkFJ" + c(URL64, 74),
            lambda: "sk-ant-api03-" + c(URL64, 93) + "AA",
            lambda: "hf_" + c(string.ascii_letters, 34),
            lambda: "SG." + c(URL64, 22) + "." + c(URL64, 43),
            lambda: "SK" + c(HEX, 32),
            lambda: self.digits(10) + ":AA" + c(URL64, 33),
            lambda: "dop_v1_" + c(HEX, 64),
            lambda: "pypi-AgEIcHlwaS5vcmc" + c(URL64, 150),
            lambda: "rubygems_" + c(HEX, 48),
            lambda: "dckr_pat_" + c(URL64, 27),
            lambda: c(ALNUM, 14) + ".atlasv1." + c(URL64, 64),
            lambda: "hvs." + c(URL64, 90),
            lambda: "dapi" + c(HEX, 32),
            lambda: "lin_api_" + c(ALNUM, 40),
            lambda: "shpat_" + c(HEX, 32),
            lambda: "NRAK-" + c(string.ascii_uppercase + string.digits, 27),
            lambda: "PMAK-" + c(HEX, 24) + "-" + c(HEX, 34),
            lambda: "glsa_" + c(ALNUM, 32) + "_" + c(HEX, 8),
            lambda: "tskey-auth-" + c(ALNUM, 17) + "-" + c(ALNUM, 32),
            lambda: "gsk_" + c(ALNUM, 52),
            lambda: "AccountKey=" + base64.b64encode(self.bytes(64)).decode(),
        ]
        return r.choice(makers)()

    def not_token(self):
        c, r = self.chars, self.r
        return r.choice([
            lambda: "ghp_" + "x" * 36,
            lambda: "ghp_" + c(ALNUM, 36),  # its checksum is wrong
            lambda: "npm_config_" + c(string.ascii_lowercase, 12),
            lambda: r.choice(["AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE", "AKIAI44QH8DHBEXAMPLE", "AKIA" + "X" * 16]),
            lambda: "sk-" + c(string.ascii_lowercase, 8),
            lambda: "AIza" + c(URL64, 12),
            lambda: "hf_hub_download_" + c(string.ascii_lowercase, 10),
            lambda: "SG." + c(URL64, 10),
            lambda: c(HEX, 40),
            lambda: hashlib.sha256(c(ALNUM, 8).encode()).hexdigest(),
            lambda: "-".join(c(HEX, n) for n in (8, 4, 4, 4, 12)),
        ])()

    # ---- keys -----------------------------------------------------------------
    def pem(self, kind, n, eol="\n"):
        body = base64.b64encode(self.bytes(n)).decode()
        lines = [body[i:i + 64] for i in range(0, len(body), 64)]
        return eol.join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----"])

    def private_key(self):
        r = self.r
        return r.choice([
            lambda: self.pem("RSA PRIVATE KEY", r.choice([608, 1192])),
            lambda: self.pem("EC PRIVATE KEY", 121),
            lambda: self.pem("PRIVATE KEY", r.choice([138, 1218])),
            lambda: self.pem("ENCRYPTED PRIVATE KEY", 300),
            lambda: self.pem("DSA PRIVATE KEY", 448),
            lambda: self.pem("PGP PRIVATE KEY BLOCK", 900),
            lambda: self.pem("PRIVATE KEY", 138, "\\n"),
            lambda: "-----BEGIN OPENSSH PRIVATE KEY-----\n" + base64.encodebytes(
                b"openssh-key-v1\0" + self.bytes(300)).decode() + "-----END OPENSSH PRIVATE KEY-----",
            lambda: "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: k\n"
            "Private-Lines: 1\n" + base64.b64encode(self.bytes(36)).decode(),
            lambda: "PrivateKey = " + base64.b64encode(self.bytes(32)).decode(),
        ])()

    def not_private_key(self):
        return self.r.choice([
            lambda: self.pem("CERTIFICATE", 700),
            lambda: self.pem("PUBLIC KEY", 270),
            lambda: self.pem("PGP PUBLIC KEY BLOCK", 400),
            lambda: 'if line.startswith("-----BEGIN RSA PRIVATE KEY-----"):',
            lambda: "the header -----BEGIN PRIVATE KEY----- comes first",
            lambda: "ssh-ed25519 " + base64.b64encode(self.bytes(51)).decode() + " me@host",
        ])()

    # ---- web ---------------------------------------------------------------------
    def b64url(self, raw):
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")

    def jwt(self):
        head = {"alg": self.r.choice(["HS256", "RS256", "ES256"]), "typ": "JWT"}
        if self.r.random() < 0.3:
            head["kid"] = self.chars(HEX, 16)
        body = {"sub": self.digits(8), "iat": self.r.randrange(10**9, 2 * 10**9), "x": self.chars(ALNUM, 12)}
        return ".".join([self.b64url(json.dumps(head, separators=(",", ":")).encode()),
                         self.b64url(json.dumps(body, separators=(",", ":")).encode()),
                         self.b64url(self.bytes(32))])

    def not_jwt(self):
        return self.r.choice([
            lambda: "eyJ" + self.chars(URL64, 30),
            lambda: ".".join(self.chars(URL64, 20) for _ in range(3)),
            lambda: "eyJ" + self.chars(URL64, 20) + "." + self.chars(URL64, 20),
        ])()

    def password(self):
        while True:
            p = self.chars(ALNUM + "!_~*.", self.r.randrange(10, 20))
            if any(x.isdigit() for x in p) and any(x.isupper() for x in p) and any(x.islower() for x in p):
                return p

    def url_secret(self):
        r, p = self.r, self.password()
        return r.choice([
            lambda: f"postgres://{self.word()}:{p}@db.{self.word()}.internal:5432/{self.word()}",
            lambda: f"mysql://root:{p}@10.0.0.5/{self.word()}",
            lambda: f"mongodb+srv://{self.word()}:{p}@cluster0.{self.word()}.net/?retryWrites=true",
            lambda: f"redis://:{p}@cache:6379/0",
            lambda: f"amqps://{self.word()}:{p}@mq.{self.word()}.io",
            lambda: f"https://{self.word()}:{p}@git.{self.word()}.com/x.git",
            lambda: "Authorization: Bearer " + self.chars(URL64, 40),
            lambda: "Authorization: Basic " + base64.b64encode(f"{self.word()}:{p}".encode()).decode(),
            lambda: f"Server=sql.{self.word()}.net;Database={self.word()};User Id=sa;Password={p};",
        ])()

    def not_url_secret(self):
        return self.r.choice([
            lambda: "postgres://user:password@localhost/db",
            lambda: "https://${USER}:${PASS}@git.host/x.git",
            lambda: f"https://{self.word()}.com:8443/{self.word()}@2x",
            lambda: "Authorization: Bearer <token>",
            lambda: "Authorization: Bearer YOUR_API_TOKEN",
            lambda: f"see http://{self.word()}.org/a:b",
            lambda: "redis://:{{ redis_password }}@cache",
        ])()

    # ---- numbers -------------------------------------------------------------------
    @staticmethod
    def luhn_digit(body):
        total = 0
        for i, ch in enumerate(reversed(body)):
            d = int(ch) * (2 if i % 2 == 0 else 1)
            total += d // 10 + d % 10
        return str(-total % 10)

    def card(self):
        r = self.r
        body = r.choice([
            lambda: "4" + self.digits(14),
            lambda: str(r.randrange(51, 56)) + self.digits(13),
            lambda: r.choice(["34", "37"]) + self.digits(12),
            lambda: "6011" + self.digits(11),
            lambda: str(r.randrange(3528, 3590)) + self.digits(11),
            lambda: "62" + self.digits(13),
        ])()
        n = body + self.luhn_digit(body)
        sep = r.choice(["", " ", "-"])
        if len(n) == 16:
            return sep.join(n[i:i + 4] for i in (0, 4, 8, 12))
        return sep.join([n[:4], n[4:10], n[10:]])

    def not_card(self):
        r = self.r

        def wrong():
            n = "4" + self.digits(14)
            d = (int(self.luhn_digit(n)) + r.randrange(1, 10)) % 10
            return n + str(d)
        return r.choice([
            wrong,
            lambda: self.digits(8) + "." + self.digits(9),
            lambda: "1" + self.digits(12),
            lambda: str(r.randrange(1600000000000, 1800000000000)),  # milliseconds
            lambda: self.digits(24),
            lambda: "978" + self.digits(10),
        ])()

    def iban(self):
        r = self.r
        land, bban = r.choice([
            lambda: ("DE", self.digits(18)),
            lambda: ("GB", self.chars(string.ascii_uppercase, 4) + self.digits(14)),
            lambda: ("FR", self.digits(23)),
            lambda: ("NL", self.chars(string.ascii_uppercase, 4) + self.digits(10)),
            lambda: ("ES", self.digits(20)),
            lambda: ("IT", self.chars(string.ascii_uppercase, 1) + self.digits(22)),
            lambda: ("CH", self.digits(17)),
            lambda: ("NO", self.digits(11)),
            lambda: ("PL", self.digits(24)),
        ])()
        number = int("".join(str(int(x, 36)) for x in bban + land + "00"))
        full = land + f"{98 - number % 97:02d}" + bban
        if r.random() < 0.5:
            return " ".join(full[i:i + 4] for i in range(0, len(full), 4))
        return full

    def not_iban(self):
        good = self.iban()
        i = self.r.randrange(6, len(good))
        while not good[i].isdigit():
            i = self.r.randrange(5, len(good))
        return good[:i] + str((int(good[i]) + self.r.randrange(1, 10)) % 10) + good[i + 1:]

    def ssn(self):
        r = self.r
        area = r.choice([x for x in range(1, 900) if x not in (666, 78, 219)])
        n = (f"{area:03d}", f"{r.randrange(1, 100):02d}", f"{r.randrange(1, 10000):04d}")
        return "-".join(n) if r.random() < 0.7 else "SSN: " + " ".join(n)

    def not_ssn(self):
        r = self.r
        return r.choice([
            lambda: f"{r.choice([0, 666, 900, 999]):03d}-{r.randrange(1, 99):02d}-{r.randrange(1, 9999):04d}",
            lambda: f"{r.randrange(100, 899)}-00-{r.randrange(1000, 9999)}",
            lambda: f"{r.randrange(1990, 2030)}-{r.randrange(1, 13):02d}-{r.randrange(1, 29):02d}",
            lambda: f"{self.digits(4)}-{self.digits(3)}-{self.digits(4)}",
        ])()

    def nhs(self):
        while True:
            d = self.digits(9)
            c = 11 - sum(int(x) * (10 - i) for i, x in enumerate(d)) % 11
            c = 0 if c == 11 else c
            if c != 10:
                d += str(c)
                break
        d = self.r.choice([d, f"{d[:3]} {d[3:6]} {d[6:]}", f"{d[:3]}-{d[3:6]}-{d[6:]}"])
        return self.r.choice(["NHS number: ", "NHS No. ", "nhs_number = "]) + d

    def not_nhs(self):
        good = self.nhs()
        return good[:-1] + str((int(good[-1]) + self.r.randrange(1, 10)) % 10)

    B58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

    def base58check(self, payload):
        raw = payload + hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:4]
        n, out = int.from_bytes(raw, "big"), ""
        while n:
            n, k = divmod(n, 58)
            out = self.B58[k] + out
        return "1" * (len(raw) - len(raw.lstrip(b"\0"))) + out

    def bech32(self, hrp, data):
        letters = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"

        def polymod(values):
            c = 1
            for v in values:
                top = c >> 25
                c = (c & 0x1FFFFFF) << 5 ^ v
                for i, g in enumerate([0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3]):
                    c ^= g if top >> i & 1 else 0
            return c
        wide = [ord(x) >> 5 for x in hrp] + [0] + [ord(x) & 31 for x in hrp]
        m = polymod(wide + data + [0] * 6) ^ 1
        return hrp + "1" + "".join(letters[d] for d in data + [m >> 5 * (5 - i) & 31 for i in range(6)])

    def crypto(self):
        r = self.r
        return r.choice([
            lambda: self.base58check(r.choice([b"\0", b"\5"]) + self.bytes(20)),
            lambda: self.bech32("bc", [0] + [r.randrange(32) for _ in range(32)]),
        ])()

    def not_crypto(self):
        good = self.crypto()
        i = self.r.randrange(8, len(good))
        swap = "q" if good[i] != "q" else "p"
        return good[:i] + swap + good[i + 1:]

    # ---- the rest -----------------------------------------------------------------------
    def keyword(self):
        name = self.r.choice(["password", "api_key", "client_secret", "DB_PASSWORD", "secretKey", "auth_token"])
        value = self.password()
        return self.r.choice(['{} = "{}"', "{}: '{}'", '"{}": "{}"', "{}={}"]).format(name, value)

    def not_keyword(self):
        return self.r.choice([
            "password = getpass.getpass()", 'password = os.environ["DB_PASSWORD"]', 'token = "changeme"',
            "secret: ${SECRET}", "max_tokens = 4096", "api_key=YOUR_API_KEY", "password: str",
            "self.token = token", 'placeholder="Enter your password"', "tokenizer = Tokenizer()"])

    def entropy(self):
        return self.b64url(self.bytes(self.r.randrange(24, 48)))

    def email(self):
        return f"{self.word()}.{self.word()}{self.r.choice(['', self.digits(2)])}@{self.word()}.{self.r.choice(['com', 'de', 'io', 'co.uk'])}"

    def phone(self):
        r = self.r
        return r.choice([
            lambda: f"+49 {r.randrange(30, 999)} {r.randrange(100000, 9999999)}",
            lambda: f"+1 {r.randrange(201, 989)} {r.randrange(200, 554)} {r.randrange(1000, 9999)}",
            lambda: f"+44 20 {r.randrange(7000, 8999)} {r.randrange(1000, 9999)}",
            lambda: f"({r.randrange(201, 989)}) {r.randrange(200, 554)}-{r.randrange(1000, 9999)}",
        ])()

    def ip(self):
        return ".".join(str(self.r.randrange(11, 223 if i == 0 else 255)) for i in range(4))

    def mac(self):
        return ":".join(self.chars(HEX, 2) for _ in range(6))

    def gps(self):
        return f"{self.r.uniform(-89, 89):.6f}, {self.r.uniform(-179, 179):.6f}"

    def identity(self):
        r = self.r
        return r.choice([
            lambda: f"date of birth: {r.randrange(1, 28)}.{r.randrange(1, 12)}.{r.randrange(1930, 2010)}",
            lambda: f"passport no. {self.chars(string.ascii_uppercase, 1)}{self.digits(8)}",
            lambda: f"driver's license: {self.chars(string.ascii_uppercase, 1)}{self.digits(7)}",
        ])()

    def name(self):
        first = self.r.choice(["Anna", "Peter", "Fatima", "Kwame", "Li", "Olga", "John", "Maria", "Aoife", "Raj"])
        last = self.r.choice(["Smith", "Schmidt", "Okafor", "Garcia", "Novak", "Wang", "Murphy", "Patel"])
        return self.r.choice(["Dear {} {}", "patient: {} {}", "Mr. {1}", "{} {} wrote", "name: {} {}"]).format(first, last)

    def address(self):
        return f"{self.r.randrange(1, 400)} {self.word().capitalize()} {self.r.choice(['Street', 'Avenue', 'Road', 'Lane'])}"

    def file(self):
        return self.r.choice(["/home/{}/.ssh/id_ed25519", "/home/{}/.aws/credentials", "~/.kube/config",
                              "/Users/{}/.netrc", "{}:$6$" + self.chars(ALNUM, 12) + "$" + self.chars(ALNUM, 86)
                              ]).format(self.word())

    def exact(self):
        return " ".join(self.word() for _ in range(self.r.randrange(2, 5)))

    def canary(self):
        return self.chars(ALNUM, 24)

    # ---- texts ------------------------------------------------------------------------------
    WORDS = ("time year people way day thing woman life child world school state family student group country problem hand "
             "part place case week company system program question work government number night point home water room mother "
             "area money story fact month lot right study book eye job word business issue side kind head house service friend "
             "father power hour game line end member law car city community name president team minute idea body information "
             "back parent face level office door health person art war history party result change morning reason research girl "
             "guy moment air teacher force education foot boy age policy music market sense nation plan college interest death "
             "course someone experience behind reach local six remain effect suggest class control field perhaps late").split()

    def word(self):
        return self.r.choice(self.WORDS)

    def sentence(self):
        words = [self.word() for _ in range(self.r.randrange(5, 14))]
        return " ".join(words).capitalize() + self.r.choice([".", ".", "?", ":"])

    def code(self):
        w = self.word
        return self.r.choice([
            lambda: f"def {w()}_{w()}({w()}, {w()}=None):\n    return {w()}[{self.digits(1)}]",
            lambda: f"if ({w()} != {w()}.{w()}()) {{ {w()}({self.digits(3)}); }}",
            lambda: f"import {w()}\nfrom {w()}.{w()} import {w().capitalize()}",
            lambda: f"{w()} = [{self.digits(2)}, {self.digits(3)}, 0x{self.chars(HEX, 8)}]",
            lambda: f"# {self.sentence()}",
            lambda: f"commit {self.chars(HEX, 40)}",
            lambda: f"version: {self.digits(1)}.{self.digits(2)}.{self.digits(1)}",
            lambda: f"id: {'-'.join(self.chars(HEX, n) for n in (8, 4, 4, 4, 12))}",
            lambda: f"2026-0{self.r.randrange(1, 9)}-1{self.digits(1)}T12:{self.r.randrange(10, 59)}:07Z INFO {w()} took {self.digits(3)} ms",
        ])()

    def filler(self):
        return "\n".join(self.r.choice([self.sentence, self.code])() for _ in range(self.r.randrange(1, 6)))

    def around(self, what):
        """What, in a text: (text, offset)."""
        lead = self.r.choice(["", "here: ", "- ", "value ", "(", "got '", "x = ", "| "])
        tail = {"(": ")", "got '": "'", "| ": " |"}.get(lead, self.r.choice(["", " ", ".", ",", "\t"]))
        before = self.filler() + "\n" + lead
        return before + what + tail + "\n" + self.filler() + "\n", len(before)


class Gate:
    """The program that is measured (tests/support/gate_measure.c)."""

    AT_ONCE = 32 << 10  # bytes: a pipe takes them whether or not the program reads on

    def __init__(self, program):
        self.p = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, head, *bodies):
        return next(self.answers([head.encode() + b"\n" + b"".join(bodies)]))

    def scan_all(self, texts):
        """The answers in their order, without a change of processes for each."""
        waiting, size = [], 0
        for data in texts:
            record = b"scan %d\n" % len(data) + data
            if waiting and size + len(record) > self.AT_ONCE:
                yield from self.answers(waiting)
                waiting, size = [], 0
            waiting.append(record)
            size += len(record)
        yield from self.answers(waiting)

    def answers(self, records):
        self.p.stdin.write(b"".join(records) + b"flush\n")
        self.p.stdin.flush()
        for _ in records:
            yield json.loads(self.p.stdout.readline())

    def scan(self, data):
        return self.ask(f"scan {len(data)}", data)

    def split(self, a, b):
        return self.ask(f"split {len(a)} {len(b)}", a, b)


def wilson(k, n, z=1.96):
    if n == 0:
        return 0.0, 1.0
    p = k / n
    mid = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, mid - half), min(1.0, mid + half)


def overlaps(f, start, end):
    return f["offset"] < end and f["offset"] + f["len"] > start


# What of a secret counts as found: its value, of what has a keyword or a frame around it.
def hit(findings, family, start, end):
    return any(f["family"] == family and overlaps(f, start, end) for f in findings)


def measure(gate, maker, n, n_negative):
    families = FIXED + CERTAIN + OTHER
    counts = {f: [0, 0, 0] for f in families}  # positives, found, false alarms
    misses, alarms = [], []
    texts = []
    for family in families:
        if family in CERTAIN:
            continue
        for _ in range(n):
            what = getattr(maker, family)()
            texts.append((family, what, *maker.around(what)))
        look_alike = getattr(maker, "not_" + family, None)
        for _ in range(n if look_alike else 0):
            what = look_alike()
            texts.append((None, what, *maker.around(what)))
    for _ in range(n_negative):
        texts.append((None, "", maker.filler(), 0))
    for family, what, text, at in texts:
        data = text.encode()
        start = len(text[:at].encode())
        found = gate.scan(data)["findings"]
        end = start + len(what.encode())
        if family:
            counts[family][0] += 1
            if hit(found, family, start, end):
                counts[family][1] += 1
            else:
                misses.append((family, what))
        for f in found:
            if f["family"] != family or not overlaps(f, start, end):
                # a secret within a secret (the password of a URL) is no false alarm
                if family and overlaps(f, start, end):
                    continue
                if f["family"] in counts:
                    counts[f["family"]][2] += 1
                    alarms.append((f["family"], f["rule"], data[f["offset"]:f["offset"] + f["len"]][:80]))
    for family in CERTAIN:
        for _ in range(min(n, 30)):
            what = getattr(maker, family)()
            gate.ask(f"{'term' if family == 'exact' else 'canary'} {len(what)}", what.encode())
            text, at = maker.around(what)
            counts[family][0] += 1
            if hit(gate.scan(text.encode())["findings"], family, at, at + len(what)):
                counts[family][1] += 1
            else:
                misses.append((family, what))
    return counts, misses, alarms


FULL = {i: i + 0xFEE0 for i in range(0x21, 0x7F)}


def tags(text):
    """Each letter of ASCII as the tag that stands for it, which shows nothing."""
    return "".join(chr(0xE0000 + ord(c)) for c in text)


def selectors(text):
    """Each byte as a variation selector."""
    return "".join(chr(0xFE00 + b if b < 16 else 0xE0100 + b - 16) for b in text.encode("latin-1"))


def strewn(letters, between="a walk by the sea, "):
    """One behind each letter of a text that shows."""
    return "".join(c + between[i % len(between)] for i, c in enumerate(letters))


ENCODINGS = [
    ("as it is", lambda s: s.encode()),
    ("base64", lambda s: base64.b64encode(s.encode())),
    ("base64url", lambda s: base64.urlsafe_b64encode(s.encode()).rstrip(b"=")),
    ("base64 twice", lambda s: base64.b64encode(base64.b64encode(s.encode()))),
    ("hex", lambda s: binascii.hexlify(s.encode())),
    ("percent", lambda s: "".join(f"%{b:02X}" for b in s.encode()).encode()),
    ("HTML entities", lambda s: "".join(f"&#{ord(c)};" for c in s).encode()),
    ("JSON \\u", lambda s: "".join(f"\\u{ord(c):04x}" for c in s).encode()),
    ("gzip, base64", lambda s: base64.b64encode(gzip.compress(s.encode(), mtime=0))),
    ("UTF-16", lambda s: s.encode("utf-16-le")),
    ("backwards", lambda s: s[::-1].encode()),
    ("zero-width", lambda s: "\u200b".join(s).encode()),
    ("full-width", lambda s: s.translate(FULL).encode()),
    ("tags", lambda s: tags(s).encode()),
    ("tags, strewn", lambda s: strewn(tags(s)).encode()),
    ("variation selectors", lambda s: selectors(s).encode()),
    ("two parts", None),
]


def evasion(gate, maker, n):
    table = {}
    for family in FIXED + ["email"]:
        for name, encode in ENCODINGS:
            k = 0
            for _ in range(n):
                what = getattr(maker, family)()
                if encode:
                    score = gate.scan(b"see\n" + encode(what) + b"\nthere\n")
                else:
                    cut = len(what) // 2
                    score = gate.split(b"see " + what[:cut].encode(), what[cut:].encode() + b" there")
                k += score["score"] >= 400
            table[family, name] = k / n
    return table


# Tokens that are not whole, or not alone.
CUTS = {
    "whole": lambda t, m: t,
    "without its last letter": lambda t, m: t[:-1],
    "without its first letter": lambda t, m: t[1:],
    "nine tenths of it": lambda t, m: t[:len(t) * 9 // 10],
    "four fifths of it": lambda t, m: t[:-(-len(t) * 4 // 5)],
    "half of it": lambda t, m: t[:len(t) // 2],
    "a letter glued before it": lambda t, m: m.chars(ALNUM, 1) + t,
    "a letter glued behind it": lambda t, m: t + m.chars(ALNUM, 1),
    "three before, three behind": lambda t, m: m.chars(ALNUM, 3) + t + m.chars(ALNUM, 3),
}


def cut_short(gate, maker, n):
    """Of n tokens in each form: the shares that are refused, and that are recognised."""
    tokens = [maker.token() for _ in range(n)]
    out = {}
    for form, cut in CUTS.items():
        scores = [gate.scan(b"see\n" + cut(t, maker).encode() + b"\nthere\n")["score"] for t in tokens]
        out[form] = sum(s >= 700 for s in scores) / n, sum(s >= 400 for s in scores) / n
    return out


def python_sources(gate, limit):
    """Findings at the forbidden level in Debian's Python, and the time of 64 KiB. A text of which packages bring copies counts once."""
    size = n = chunks = refused = 0
    times, seen, texts = [], [], set()
    for path in sorted(Path("/usr/lib").glob("python3*/**/*.py")):
        if size >= limit or not path.is_file() or path.is_symlink():
            continue
        data = path.read_bytes()
        digest = hashlib.sha256(data).digest()
        if digest in texts:
            continue
        texts.add(digest)
        size += len(data)
        for i in range(0, len(data), 65536):
            piece = data[i:i + 65536]
            r = gate.scan(piece)
            chunks += 1
            refused += r["score"] >= 700
            if len(piece) >= 32768:
                times.append(r["usec"] * 65536 / len(piece))
            for f in r["findings"]:
                if f["severity"] >= 700:
                    n += 1
                    seen.append((str(path), f["rule"], piece[f["offset"]:f["offset"] + f["len"]][:60]))
    times.sort()
    return {"mb": size / 1e6, "findings": n, "chunks": chunks, "refused": refused, "seen": seen,
            "p50": times[len(times) // 2] / 1000 if times else 0,
            "p99": times[len(times) * 99 // 100] / 1000 if times else 0}


def render(counts, table, cuts, py, n, seed):
    out = [MARK[0], "", f"Seed {seed}, {n} texts of each kind and as many look-alikes where there are some. Intervals: Wilson, 95 %.", "",
           "| family | texts | recall | interval | false alarms | precision | interval |", "|---|---|---|---|---|---|---|"]
    for family, (texts, found, false) in counts.items():
        lo, hi = wilson(found, texts)
        plo, phi = wilson(found, found + false)
        precision = found / (found + false) if found + false else 1.0
        out.append(f"| {family} | {texts} | {found / texts:.3f} | {lo:.3f}-{hi:.3f} | {false} | {precision:.3f} | {plo:.3f}-{phi:.3f} |")
    out += ["", "Recognised (score at least `portal_threshold`) of a secret on a line of its own, by how it is written:", "",
            "| written | " + " | ".join(FIXED + ["email"]) + " |", "|---|" + "---|" * (len(FIXED) + 1)]
    for name, _ in ENCODINGS:
        out.append(f"| {name} | " + " | ".join(f"{table[f, name]:.2f}" for f in FIXED + ["email"]) + " |")
    out += ["", "Tokens that are not whole, or not alone:", "", "| token | refused | recognised |", "|---|---|---|"]
    out += [f"| {form} | {refused:.3f} | {seen:.3f} |" for form, (refused, seen) in cuts.items()]
    out += ["", f"Debian's own Python sources, {py['mb']:.1f} MB: {py['findings']} findings at the forbidden level, "
            f"{py['findings'] / max(py['mb'], 0.1):.2f} a megabyte; of {py['chunks']} pieces of up to 64 KiB, {py['refused']} would be refused as a whole.",
            "", MARK[1]]
    return "\n".join(out)


def judge_labelled(counts):
    bad = []
    for family in FIXED:
        texts, found, false = counts[family]
        if found < 0.98 * texts:
            bad.append(f"{family}: recall {found / texts:.3f}, 0.98 is promised")
        if found < 0.95 * (found + false):
            bad.append(f"{family}: precision {found / (found + false):.3f}, 0.95 is promised")
    for family in CERTAIN:
        texts, found, false = counts[family]
        if found != texts:
            bad.append(f"{family}: {texts - found} of {texts} missed")
    return bad


def judge(counts, table, py):
    bad = judge_labelled(counts)
    for family in FIXED:
        if table[family, "as it is"] < 0.95:
            bad.append(f"{family}: {table[family, 'as it is']:.2f} of the plain ones on a line")
    # --quick sees too little of them to judge
    if py["mb"] > 10 and py["findings"] >= 0.5 * py["mb"]:
        bad.append(f"Python sources: {py['findings']} findings in {py['mb']:.1f} MB, less than 0.5 a megabyte is promised")
    return bad


def other_seeds(program, seeds, n):
    """The promised families once more, on texts that nobody has looked at."""
    bad = []
    for seed in seeds:
        counts, misses, alarms = measure(Gate(program), Maker(seed), n, 5 * n)
        missed = [m for m in misses if m[0] in FIXED + CERTAIN]
        false = [m for m in alarms if m[0] in FIXED + CERTAIN]
        print(f"seed {seed}: {n} texts of each kind, of the promised families {len(missed)} missed, {len(false)} false alarms")
        for m in missed + false:
            print("   ", *m)
        bad += [f"seed {seed}: {b}" for b in judge_labelled(counts)]
    return bad


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--program", required=True)
    a.add_argument("--write", help="put the tables into this document")
    a.add_argument("--quick", action="store_true")
    a.add_argument("--seed", type=int, default=5)
    a.add_argument("--other-seeds", default="", help="further seeds, 1,2,3: the labelled texts alone, and fewer")
    a.add_argument("--verbose", action="store_true")
    a.add_argument("--time", action="store_true", help="only the time of 64 KiB; exit 1 when p99 is 5 ms or more")
    a = a.parse_args()
    if a.time:
        py = python_sources(Gate(a.program), 60e6)
        print(f"64 KiB of Python, {py['chunks']} pieces: median {py['p50']:.2f} ms, p99 {py['p99']:.2f} ms of CPU; below 5 ms is promised")
        return 1 if py["p99"] >= 5 else 0
    n = 60 if a.quick else 400
    counts, misses, alarms = measure(Gate(a.program), Maker(a.seed), n, 5 * n)
    gate = Gate(a.program)
    table = evasion(gate, Maker(a.seed + 1), 10 if a.quick else 40)
    py = python_sources(gate, 4e6 if a.quick else 60e6)
    cuts = cut_short(gate, Maker(a.seed + 2), 150 if a.quick else 1500)
    text = render(counts, table, cuts, py, n, a.seed)
    print(text)
    print(f"time of 64 KiB: median {py['p50']:.2f} ms, p99 {py['p99']:.2f} ms")
    if a.verbose:
        for m in misses[:60]:
            print("missed", m)
        for m in alarms[:60]:
            print("alarm", m)
        for m in py["seen"][:60]:
            print("python", m)
    if a.write:
        doc = Path(a.write)
        old = doc.read_text()
        head, rest = old.split(MARK[0])
        doc.write_text(head + text + rest.split(MARK[1])[1])
    bad = judge(counts, table, py)
    bad += other_seeds(a.program, [int(x) for x in a.other_seeds.split(",") if x], 120)
    for b in bad:
        print(b)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
