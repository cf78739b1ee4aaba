# SPDX-License-Identifier: Apache-2.0
"""Run by test_passphrase.sh: DIR VESSEL. Each function named t_* is one case; they follow each other."""
import glob
import os
import signal
import subprocess

import factor
import rig
from rig import API, D, ENV, call, lych, main, want

WORDS, OTHER = "correct horse battery", "another staple of horses"
LYCH = os.environ["LYCH_BUILD"] + "/lych"
vessel = None  # the one that runs


def api(method, path, body=None, proof=None):
    return call(API, method, path, body, {"Lychgate-Passphrase": proof} if proof else {})


def said():
    return want(api("GET", "/v1/passphrase"), 200).json


def remember(word):
    return want(call(API, "POST", "/v1/private?kind=term&name=n", word), 201).json["id"]


def entries():
    return [e["id"] for e in want(api("GET", "/v1/private"), 200).json["entries"]]


def act_of(entry):
    return f"remove entry {entry} of what is private"


def prove(words, act):
    now = said()
    return factor.proof(factor.key_of(words, now), now["nonce"], act)


def events(name):
    rows = []
    for path in sorted(glob.glob(D + "/data/audit/segment-*.jsonl")):
        with open(path, encoding="utf-8") as f:
            rows += [line for line in f if f'"event":"{name}"' in line]
    return rows


def terminal(answers, *args, **more):
    env = {**ENV, "XDG_RUNTIME_DIR": D + "/xdg", "LYCHGATE_DATA": D + "/data"}
    return factor.typed([LYCH, *args], answers, {**env, **more})


def nobody(*args, text=""):
    """Without a terminal: not even the one of whoever runs this."""
    p = lych(*args, stdin=subprocess.PIPE, start_new_session=True)
    out, err = p.communicate(text, timeout=60)
    return p.returncode, out + err


# ---- nothing is set ----

def t_without_one_set_it_is_refused_and_said_how_to_set_it():
    entry = remember("the first of the terms")
    assert said() == {"set": False}
    want(api("DELETE", f"/v1/private/{entry}"), 403, "LYCH-PASSPHRASE-001")
    want(api("DELETE", f"/v1/private/{entry}", proof="0" * 32 + ":" + "0" * 64), 403, "LYCH-PASSPHRASE-001")
    want(api("DELETE", "/v1/private/999"), 404, "LYCH-GATE-008")
    code, shown = nobody("private", "remove", str(entry))
    assert code == 1 and "LYCH-PASSPHRASE-001" in shown and "lych passphrase set" in shown, shown
    assert nobody("passphrase", "check")[0] == 1
    code, shown = terminal([WORDS], "passphrase", "change")
    assert code == 1 and "LYCH-PASSPHRASE-001" in shown, shown
    assert entries() == [entry]


def t_what_is_no_verifier_is_refused():
    good = factor.verifier(WORDS)
    for change, status in (({"kdf": "argon2"}, 400), ({"log2_n": 14}, 400), ({"log2_n": 19}, 400), ({"r": 1}, 400), ({"p": 0}, 400), ({"p": 5}, 400),
                           ({"salt": "0" * 62}, 400), ({"salt": "g" * 64}, 400), ({"stored": "A" * 64}, 400), ({"stored": None}, 400), ({"passphrase": WORDS}, 400)):
        assert api("POST", "/v1/passphrase", {**good, **change}).status == status, change
    want(api("POST", "/v1/passphrase", b"x" * 5000), 413)
    want(api("GET", "/v1/passphrase?x=1"), 400, "LYCH-HTTP-007")
    assert said() == {"set": False} and not events("passphrase.set")


def t_it_is_taken_from_a_terminal_only():
    for args in (("passphrase", "set", WORDS), ("passphrase", "set", "--passphrase", WORDS), ("passphrase",)):
        code, shown = nobody(*args, text=f"{WORDS}\n{WORDS}\n")
        assert code == 2 and WORDS not in shown.replace(f"--passphrase {WORDS}", ""), shown
    code, shown = nobody("passphrase", "set", text=f"{WORDS}\n{WORDS}\n")
    assert code == 2 and "LYCH-PASSPHRASE-006" in shown, (code, shown)
    for answers in (["short", "short"], [WORDS, OTHER]):
        code, shown = terminal(answers, "passphrase", "set")
        assert code == 2 and "LYCH-PASSPHRASE-007" in shown, (code, shown)
    code, shown = terminal(["some of it\x03"], "passphrase", "set")
    assert code == 1 and said() == {"set": False}, shown


def t_told_to_end_while_it_asks_it_leaves_the_terminal_as_it_was():
    env = {**ENV, "XDG_RUNTIME_DIR": D + "/xdg", "LYCHGATE_DATA": D + "/data"}
    for number in (signal.SIGTERM, signal.SIGHUP):
        ended = factor.ended_by([LYCH, "passphrase", "set"], number, env)
        assert ended == (-number, False, True), ended


# ---- one is set ----

def t_one_is_set():
    code, shown = terminal([WORDS, WORDS], "passphrase", "set")
    assert code == 0 and WORDS not in shown, shown
    path = D + "/data/vessel/passphrase"
    assert os.stat(path).st_mode & 0o777 == 0o600
    with open(path, encoding="ascii") as f:
        assert WORDS not in f.read()
    now = said()
    assert now["set"] and now["log2_n"] == 16 and now["r"] == 8 and now["p"] == 1 and len(now["nonce"]) == 32, now
    assert nobody("passphrase", "check")[0] == 0 and len(events("passphrase.set")) == 1
    # there is no second first one
    code, shown = terminal([WORDS, WORDS], "passphrase", "set")
    assert code == 1 and "LYCH-PASSPHRASE-008" in shown, shown
    want(api("POST", "/v1/passphrase", factor.verifier(OTHER)), 403, "LYCH-PASSPHRASE-002")


def t_without_a_proof_nothing_is_done():
    entry = entries()[0]
    path = f"/v1/private/{entry}"
    want(api("DELETE", path), 403, "LYCH-PASSPHRASE-002")
    code, shown = nobody("private", "remove", str(entry), text=WORDS + "\n")
    assert code == 2 and "LYCH-PASSPHRASE-006" in shown, (code, shown)
    nonce = said()["nonce"]
    for bad in ("x", ":", nonce, nonce + ":", "0" * 32 + ":" + "0" * 64, nonce + ":" + "0" * 63, nonce + ";" + "0" * 64):
        want(api("DELETE", path, proof=bad), 409, "LYCH-PASSPHRASE-005")
    assert entries() == [entry]


def t_a_proof_is_of_one_act_and_good_once():
    entry, second = entries()[0], remember("the second of the terms")
    # of another act
    want(api("DELETE", f"/v1/private/{entry}", proof=prove(WORDS, act_of(second))), 403, "LYCH-PASSPHRASE-003")
    good = prove(WORDS, act_of(second))
    want(api("DELETE", f"/v1/private/{second}", proof=good), 200)
    third = remember("the third of the terms")
    want(api("DELETE", f"/v1/private/{third}", proof=good), 409, "LYCH-PASSPHRASE-005")
    assert entries() == [entry, third]
    # typed, by a person
    code, shown = terminal(["not this one at all"], "private", "remove", str(third))
    assert code == 1 and "LYCH-PASSPHRASE-003" in shown and "not this" not in shown, shown
    code, shown = terminal([WORDS], "private", "remove", str(third))
    assert code == 0 and entries() == [entry], shown


def t_after_five_wrong_ones_there_is_a_wait():
    entry = entries()[0]
    path, before = f"/v1/private/{entry}", len(events("passphrase.wrong"))
    for _ in range(5):
        want(api("DELETE", path, proof=prove(OTHER, act_of(entry))), 403, "LYCH-PASSPHRASE-003")
    assert 0 < said()["wait_sec"] <= 61
    for words in (OTHER, WORDS):  # the right one, too
        want(api("DELETE", path, proof=prove(words, act_of(entry))), 429, "LYCH-PASSPHRASE-004")
    assert entries() == [entry]
    rig_until(lambda: len(events("passphrase.wrong")) == before + 5)


def rig_until(what):
    end = rig.time.monotonic() + 30
    while not what():
        assert rig.time.monotonic() < end, "it did not come about"
        rig.time.sleep(0.05)


def again():
    """Another vessel: the wait is in the memory of one."""
    global vessel
    assert vessel.stop() == 0
    vessel = rig.Vessel()


def t_it_is_changed_by_who_knows_the_old_one():
    again()
    entry = entries()[0]
    now, next_one = said(), factor.verifier(OTHER)
    # the proof is of exactly this next one
    bad = factor.proof(factor.key_of(WORDS, now), now["nonce"], "change the passphrase to " + "0" * 64)
    want(api("POST", "/v1/passphrase", next_one, bad), 403, "LYCH-PASSPHRASE-003")
    code, shown = terminal([OTHER, WORDS, WORDS], "passphrase", "change")
    assert code == 1 and "LYCH-PASSPHRASE-003" in shown, shown
    code, shown = terminal([WORDS, OTHER, OTHER], "passphrase", "change")
    assert code == 0 and said()["salt"] != now["salt"], shown
    want(api("DELETE", f"/v1/private/{entry}", proof=prove(WORDS, act_of(entry))), 403, "LYCH-PASSPHRASE-003")
    want(api("DELETE", f"/v1/private/{entry}", proof=prove(OTHER, act_of(entry))), 200)
    assert len(events("passphrase.changed")) == 1
    # typed ahead: the answers to the questions to come, and shown no more than those
    code, shown = terminal([f"{OTHER}\r{WORDS}\r{WORDS}"], "passphrase", "change")
    assert code == 0 and WORDS not in shown and OTHER not in shown, shown
    code, shown = terminal([f"{WORDS}\r{OTHER}\r{OTHER}"], "passphrase", "change")
    assert code == 0 and WORDS not in shown and OTHER not in shown, shown
    code, shown = terminal([f"{OTHER}\r\x03"], "passphrase", "change")
    assert code == 1 and "LYCH-CORE-008" in shown and "given up" in shown, shown


def t_a_file_that_is_damaged_or_others_may_read_refuses_all():
    entry, path = remember("the fourth of the terms"), D + "/data/vessel/passphrase"
    with open(path, encoding="ascii") as f:
        text = f.read()
    for mode, content in ((0o644, text), (0o600, text[:-9]), (0o600, "")):
        with open(path, "w", encoding="ascii") as f:
            f.write(content)
        os.chmod(path, mode)
        for a in (api("DELETE", f"/v1/private/{entry}"), api("GET", "/v1/passphrase"), api("POST", "/v1/passphrase", factor.verifier(WORDS))):
            assert a.status >= 400 and a.code != "LYCH-PASSPHRASE-001", a
    assert entries() == [entry]
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    os.chmod(path, 0o600)
    want(api("DELETE", f"/v1/private/{entry}", proof=prove(OTHER, act_of(entry))), 200)


main(globals())
