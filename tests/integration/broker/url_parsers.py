#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""url_parsers.py URL_READ: our grammar against Node's WHATWG parser and libcurl's.

Hostile URLs by hand and GENERATED (60000) more from a seed (SEED). Whatever ours takes, both others
must read with the same host and port, and so must they what ours writes. A name with an A-label that
the WHATWG parser refuses altogether is no difference: nobody reads another host there."""
import ipaddress
import json
import os
import random
import re
import subprocess
import sys

# {0009}: the character of that number
BY_HAND = r"""
https://127.0.0.1@api.allowed.example/
https://api.allowed.example@127.0.0.1/
https://api.allowed.example:443@127.0.0.1/
https://api.allowed.example:x@127.0.0.1/
https://api.allowed.example%40127.0.0.1/
https://api.allowed.example\@127.0.0.1/
https://api.allowed.example\.127.0.0.1/
https://api.allowed.example\127.0.0.1
https:\\api.allowed.example\x
https:/\api.allowed.example/
https://api.allowed.example#@127.0.0.1/
https://api.allowed.example?@127.0.0.1/
https://api.allowed.example?#@127.0.0.1/
https://api.allowed.example;@127.0.0.1/
https://api.allowed.example,127.0.0.1/
https://api.allowed.example&@127.0.0.1/
https://api.allowed.example:443#@127.0.0.1:80/
https://api.allowed.example:443\@127.0.0.1:80/
https://api.allowed.example:443:80/
https://api.allowed.example:/
https://api.allowed.example:0/
https://api.allowed.example:00443/
https://api.allowed.example:65535/
https://api.allowed.example:65536/
https://api.allowed.example:4294967739/
https://api.allowed.example:-1/
https://api.allowed.example:+443/
https://api.allowed.example:443a/
https://api.allowed.example: 443/
https://api.allowed.example./
https://api.allowed.example../
https://.api.allowed.example/
https://api..allowed.example/
https://api.allowed.example%2eevil/
https://api.allowed.example%00.evil/
https://api.allowed.example%0d%0aHost:x/
https://127%2e0%2e0%2e1/
https://%31%32%37.0.0.1/
https://127.1/
https://127.0.1/
https://127.0.0.1./
https://0x7f.0.0.1/
https://0x7f000001/
https://0x7f.1/
https://017700000001/
https://0177.0.0.1/
https://2130706433/
https://4294967296/
https://08.8.8.8/
https://8.8.8.8/
https://8.8.8.08/
https://1.2.3.4.5/
https://1.2.3/
https://256.256.256.256/
https://foo.0x7f/
https://foo.127/
https://foo.1./
https://0/
https://00000000177.1/
https://[::1]/
https://[::1]:8443/x
https://[::1]x/
https://[::1]:/
https://[::ffff:127.0.0.1]/
https://[::ffff:7f00:1]/
https://[::FFFF:7F00:1]/
https://[0:0:0:0:0:0:0:1]/
https://[::127.0.0.1]/
https://[64:ff9b::7f00:1]/
https://[fe80::1%25eth0]/
https://[fe80::1%eth0]/
https://[::1/
https://::1]/
https://[api.allowed.example]/
https://[127.0.0.1]/
https://[v1.x]/
https://[]/
https:///127.0.0.1/
https:////127.0.0.1/
https:/127.0.0.1/
https:127.0.0.1/
//127.0.0.1/
https://
https:///
http:/
HTTPS://API.Allowed.Example/
hTTps://api.allowed.example/
ht{0009}tps://api.allowed.example/
 https://api.allowed.example/
https://api.allowed.example/ x
https://api.allo{0009}wed.example/
https://api.allo{000a}wed.example/
https://api.allowed.example{000d}{000a}/
https://api{00ad}.allowed.example/
https://api{200b}.allowed.example/
https://api{200d}.allowed.example/
https://127{3002}0{3002}0{3002}1/
https://127{ff0e}0{ff0e}0{ff0e}1/
https://{ff41}{ff50}{ff49}.allowed.example/
https://api.allowed.example{2044}x/
https://api.allowed.example{ff0f}@127.0.0.1/
https://api.allowed.example{ff20}127.0.0.1/
https://api.allowed.example{ff1a}80/
https://{0430}pi.allowed.example/
https://xn--pi-6kc.allowed.example/
https://xn--bcher-kva.example/
https://xn--/
https://xn--a/
https://xn--a.example/
https://xn--99zzz9999.example/
https://XN--BCHER-KVA.example/
https://{2488}.example/
https://{24d0}pi.example/
https://{00df}.example/
https://localhost/
https://a_b.example/
https://-a.example/
https://a-.example/
https://a.-b/
https://r3---sn-x.example/
https://ab--cd.example/
https://*.example/
https://a b.example/
https://a<b.example/
https://a|b.example/
https://a^b.example/
https://a`b.example/
https://a{b.example/
https://a"b.example/
https://a'b.example/
https://a!b.example/
https://a$b.example/
https://a(b).example/
https://a+b.example/
https://a=b.example/
https://a~b.example/
https://user:pa:ss@api.allowed.example/
https://@api.allowed.example/
https://:@api.allowed.example/
https://a@b@c.example/
https://api.allowed.example/@127.0.0.1/
https://api.allowed.example/..//127.0.0.1/
https://api.allowed.example//127.0.0.1/
https://api.allowed.example/:80/
https://api.allowed.example:443?x:80
https://api.allowed.example:443/?x=https://127.0.0.1/
http://api.allowed.example:443/
http://api.allowed.example:80/
https://api.allowed.example:80/
file:///etc/passwd
file://api.allowed.example/x
ftp://api.allowed.example/
jar:https://api.allowed.example!/
javascript://api.allowed.example/%0aalert(1)
blob:https://api.allowed.example/x
ws://api.allowed.example/
gopher://127.0.0.1:6379/_x
http+unix://%2frun%2fx.sock/
https:api.allowed.example
https;//api.allowed.example/
https//api.allowed.example/
""".strip("\n").split("\n")

PIECES = ["https://", "http://", "https:", "https:/", "HTTPS://", "//", "@", ":", "/", "\\", "?", "#", ".", "..", "-", "_", "%",
          "%2e", "%2f", "%40", "%00", "%5c", "%25", "[", "]", "::", "::1", "::ffff:", "1", "0", "00", "0x", "0x7f", "127", "127.0.0.1",
          "8.8.8.8", "10", "443", "80", ":443", ":8443", "65536", "a", "b", "api", "api.allowed.example", "allowed", "example",
          ".example", "xn--", "xn--bcher-kva", "localhost", "\t", "\n", "\r", " ", "\u3002", "\uff0e", "\uff0f", "\u00ad", "\u200b",
          "\u212a", "\u00e9", ";", ",", "&", "=", "+", "!", "$", "'", "(", ")", "*", "~", "|", "^", "`", "{", "}", "<", ">", "\"",
          "fe80::1", "%25eth0", "2606:4700::1111", "dead:beef::", "ffff", "A", "Z", "x?y", "path", "/a/b", "?q=1", "&r", "\x7f", "\x00"]

NODE = r"""
const urls = JSON.parse(require('fs').readFileSync(0));
const out = urls.map(u => { try { const p = new URL(u);
	return [p.hostname, p.port || (p.protocol === 'https:' ? '443' : p.protocol === 'http:' ? '80' : '')]; } catch { return null; } });
process.stdout.write(JSON.stringify(out));
"""


def generated(rng, n):
    """Half from pieces at random, half a good URL with something done to it."""
    good = ["https://api.allowed.example/", "https://api.allowed.example:8443/a/b?c=d", "http://a.b.example/x",
            "https://[2606:4700::1111]/", "https://8.8.8.8:443/", "https://xn--bcher-kva.example/", "https://a.example?x"]
    for _ in range(n):
        if rng.random() < 0.4:
            yield "https://" * (rng.random() < 0.7) + "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 7)))
            continue
        u = rng.choice(good)
        for _ in range(rng.randint(1, 3)):
            at, what = rng.randint(0, len(u)), rng.random()
            if what < 0.5:
                u = u[:at] + rng.choice(PIECES) + u[at:]
            elif what < 0.7:
                u = u[:at] + u[at + rng.randint(1, 3):]
            elif what < 0.85:
                u = u[:at] + chr(rng.choice([rng.randint(0, 127), rng.randint(128, 0x2fff)])) + u[at:]
            else:
                u = u[:at] + u[rng.randint(0, len(u)):]
        yield u


def same_host(a, b):
    a, b = a.strip("[]"), b.strip("[]")
    if ":" in a or ":" in b:
        try:
            return ipaddress.ip_address(a) == ipaddress.ip_address(b)
        except ValueError:
            return False
    return a == b


def node(urls):
    out = subprocess.run(["node", "-e", NODE], input=json.dumps(urls).encode(), stdout=subprocess.PIPE, check=True).stdout
    return json.loads(out)


def ours(program, urls):
    """[(ours, curl)] a URL: ours a reason, or (host, port, written); curl None or (host, port)."""
    text = "".join(u.encode("utf-8", "surrogatepass").hex() + "\n" for u in urls)
    out = subprocess.run([program], input=text.encode(), stdout=subprocess.PIPE, check=True).stdout.decode("utf-8", "replace")
    for line in out.split("\n")[:-1]:
        left, right = line.split("\tcurl ")
        words = left.split(" ")
        host, port = right.rsplit(" ", 1)
        yield (words[1] if words[0] == "refused" else tuple(words[1:])), (None if host == "-" else (host, port))


def main():
    program, seed = sys.argv[1], int(os.environ.get("SEED", "1"))
    by_hand = [re.sub(r"\{([0-9a-f]{4})\}", lambda m: chr(int(m[1], 16)), u) for u in BY_HAND]
    assert len(by_hand) >= 76
    urls = by_hand + list(generated(random.Random(seed), int(os.environ.get("GENERATED", "60000"))))
    # A NUL ends the text for libcurl: what is behind it, it cannot read.
    urls = [u for u in urls if "\0" not in u]
    taken, bad, refused_by_node, disagree = [], 0, 0, 0
    for u, w, (o, c) in zip(urls, node(urls), ours(program, urls), strict=True):
        if w and c and u in by_hand and not (same_host(w[0], c[0]) and w[1] == c[1]) or bool(w) != bool(c) and u in by_hand:
            disagree += 1
        if isinstance(o, str):
            continue
        host, port, written = o
        taken.append((written, host, port))
        if w is None and "xn--" in host:
            refused_by_node += 1
            w = (host, port)
        if not w or not same_host(w[0], host) or w[1] != port or not c or not same_host(c[0], host) or c[1] != port:
            print(f"they differ on {u!r}: ours {host} {port}, WHATWG {w}, libcurl {c}")
            bad += 1
    written = [t[0] for t in taken]
    for (text, host, port), w, (o, c) in zip(taken, node(written), ours(program, written), strict=True):
        if w is None and "xn--" in host:
            w = (host, port)
        if not (isinstance(o, tuple) and o == (host, port, text) and w and same_host(w[0], host) and w[1] == port
                and c and same_host(c[0], host) and c[1] == port):
            print(f"what we write is read differently: {text!r}: ours {o}, WHATWG {w}, libcurl {c}")
            bad += 1
    by_hand_taken = sum(1 for u, (o, _) in zip(by_hand, ours(program, by_hand)) if isinstance(o, tuple))
    print(f"{len(by_hand)} by hand (WHATWG and libcurl differ on {disagree}, we take {by_hand_taken}), {len(urls) - len(by_hand)} generated, "
          f"seed {seed}; {len(taken)} taken, {refused_by_node} of these refused by WHATWG for an A-label, {bad} differences")
    if bad or len(taken) < 1000 or disagree < 10:
        sys.exit(1)


main()
