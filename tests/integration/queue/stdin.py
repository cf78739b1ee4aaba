# SPDX-License-Identifier: Apache-2.0
"""Run by test_stdin.sh (tests/support/rig). Each function named t_* is one case: a stdin that is streamed, between a
client and a tomb that are made of HTTP here. What lych does, with real jobs: tests/integration/cli/stdin_run.py."""
import concurrent.futures
import signal
import statistics
import time
import uuid

from rig import API, WORK, Events, Vessel, api, bearer_of, call, claim, lease_headers, main, settle, submit, want, work

PART, WINDOW = 256 << 10, 512 << 10
OTHER = uuid.uuid4().hex
pool = concurrent.futures.ThreadPoolExecutor(8)
vessel = None


def streamed(**more):
    name = uuid.uuid4().hex
    return submit(stdin_stream=name, **more), name


def resize(job, name, cols, rows, more=""):
    return api("PUT", f"/v1/jobs/{job}/tty/{name}?cols={cols}&rows={rows}{more}")


def put(job, name, offset, data, end=""):
    return api("PUT", f"/v1/jobs/{job}/stdin/{name}?offset={offset}{end}", data)


def take(lease, offset, more=""):
    """The tomb's question, which is held: a future."""
    return pool.submit(work, lease, "POST", f"/work/v1/stdin?offset={offset}{more}")


def places(events):
    return [d for n, d in events.events if n == "stdin"]


def when(what, events, limit=5):
    """The place of stdin that was told last, once it is as wanted."""
    began = time.monotonic()
    while not (places(events) and what(places(events)[-1])):
        assert time.monotonic() - began < limit, f"told {places(events)[-3:]}"
        time.sleep(0.005)
    return places(events)[-1]


class Feed:
    """A job that runs, whose client follows and whose tomb has asked."""

    def __init__(self, more="", **spec):
        self.job, self.name = streamed(**spec)
        self.lease = claim(self.job)
        self.events = self.follow()
        self.asked = take(self.lease, 0, more)
        assert when(lambda p: p["open"], self.events) == {"taken": 0, "received": 0, "room": WINDOW, "open": True,
                                                          "ended": False, "moved": False}

    def follow(self):
        return Events(self.job, f"?stdin={self.name}")

    def put(self, *args, **more):
        return put(self.job, self.name, *args, **more)

    def take(self, *args):
        return take(self.lease, *args)

    def over(self):
        settle(self.lease, "ack", {"v": 1, "exit_code": 0})
        self.events.join(10)
        assert self.events.events[-1][0] == "end", self.events.events[-1]


def t_a_spec_that_is_none():
    good = uuid.uuid4().hex
    for bad in ({"stdin_stream": "x"}, {"stdin_stream": good.upper()[:31] + "A"}, {"stdin_stream": good, "stdin": ""},
                {"stdin_stream": good, "stdin_base64": ""}, {"stdin_stream": good, "retry": "on_lost"}):
        want(api("POST", "/v1/jobs", {"argv": ["true"], **bad}), 400, "LYCH-SPEC-004")
    want(api("POST", "/v1/jobs", {"argv": ["true"], "stdin_stream": 1}), 400, "LYCH-SPEC-003")


def t_who_may_not_feed():
    plain = submit()
    job, name = streamed()
    lease = claim(job)
    want(put(999999, name, 0, b"x"), 404, "LYCH-RUN-001")
    want(put(plain, name, 0, b"x"), 409, "LYCH-RUN-014")
    want(put(job, name, 0, b"x"), 409, "LYCH-RUN-014")  # nobody follows it
    want(put(job, "x", 0, b"x"), 400, "LYCH-HTTP-007")
    want(api("GET", f"/v1/jobs/{plain}/events?stdin={name}"), 409, "LYCH-RUN-014")
    want(api("GET", f"/v1/jobs/{job}/events?stdin={OTHER}"), 409, "LYCH-RUN-014")
    want(api("GET", f"/v1/jobs/{job}/events?stdin=x"), 400, "LYCH-HTTP-007")
    ev = Events(job, f"?stdin={name}")
    want(put(job, name, 0, b"x"), 409, "LYCH-RUN-006")  # it does not run yet
    asked = take(lease, 0)
    when(lambda p: p["open"], ev)
    want(put(job, OTHER, 0, b"x"), 409, "LYCH-RUN-014")  # a second one
    want(put(job, name, 0, b"x" * (PART + 1)), 413, "LYCH-HTTP-004")
    want(put(job, name, 1, b"x"), 409, "LYCH-RUN-009")
    want(put(job, name, "x", b"x"), 400, "LYCH-HTTP-007")
    want(put(job, name, 0, b"x", "&end=2"), 400, "LYCH-HTTP-007")
    want(put(job, name, 0, b"x", "&more=1"), 400, "LYCH-HTTP-007")
    assert not asked.done()
    settle(lease, "ack", {"v": 1, "exit_code": 0})
    ev.join(10)
    want(put(job, name, 0, b"x"), 409, "LYCH-RUN-006")  # it has ended
    want(put(job, OTHER, 0, b"x"), 409, "LYCH-RUN-014")


def t_who_may_not_take():
    f = Feed()
    target = "/work/v1/stdin?offset=0"
    want(call(WORK, "POST", target, None, lease_headers(f.lease, None)), 401, "LYCH-HTTP-005")
    want(call(WORK, "POST", target, None, lease_headers(f.lease, bearer_of("tomb_2"), tomb="tomb_2")), 403, "LYCH-RUN-005")
    want(work((f.job, f.lease[1], str(uuid.uuid4())), "POST", target), 403, "LYCH-RUN-005")
    want(work(f.lease, "POST", "/work/v1/stdin?offset=1"), 409, "LYCH-RUN-009")
    want(work(f.lease, "POST", "/work/v1/stdin?offset=x"), 400, "LYCH-HTTP-007")
    want(work(f.lease, "POST", target + "&closed=2"), 400, "LYCH-HTTP-007")
    want(call(API, "POST", target), 404, "LYCH-HTTP-002")
    f.over()
    want(work(f.lease, "POST", target), 410)


def t_a_line_is_there_at_once():
    f = Feed()
    times, asked, at = [], f.asked, 0
    for n in range(200):
        line = b"line %d\n" % n
        began = time.monotonic()
        want(f.put(at, line), 200)
        a = want(asked.result(5), 206)
        times.append(time.monotonic() - began)
        assert a.body == line, a
        at += len(line)
        asked = f.take(at)
        when(lambda p: p["taken"] == at, f.events)
    print(f"  a line from client to tomb: {statistics.median(times) * 1000:.2f} ms (median of {len(times)})")
    assert f.put(at, b"", "&end=1").json["ended"]
    a = want(asked.result(5), 200)
    assert a.body == b""
    f.over()


def t_no_more_than_the_window():
    f = Feed()
    data = bytes(range(256)) * (PART // 256)
    assert f.put(0, data).json["received"] == PART
    assert want(f.asked.result(5), 206).body == data
    assert f.put(PART, data).json["room"] == 0
    p = want(f.put(2 * PART, data), 200).json
    assert (p["taken"], p["received"], p["room"], p["open"]) == (0, 2 * PART, 0, True), p
    # a repeated part changes nothing, and what follows it is taken when there is room
    asked = f.take(PART)
    assert want(asked.result(5), 206).body == data
    p = when(lambda p: p["taken"] == PART, f.events)
    assert p["room"] == PART
    p = want(f.put(2 * PART - 10, data), 200).json
    assert p["received"] == 3 * PART - 10, p
    # an end whose bytes had no room is none
    p = want(f.put(3 * PART - 10, data, "&end=1"), 200).json
    assert (p["received"], p["ended"]) == (3 * PART, False), p
    # the answer got lost: it is asked again
    assert want(f.take(PART).result(5), 206).body == data
    assert want(f.take(2 * PART).result(5), 206).body == data[10:] + data[:10]
    f.over()


def t_a_tomb_that_asks_twice_is_answered_once():
    f = Feed()
    again = f.take(0)
    assert want(f.asked.result(5), 206).body == b""
    f.put(0, b"x")
    assert want(again.result(5), 206).body == b"x"
    f.over()


def t_a_client_that_is_gone():
    f = Feed()
    f.put(0, b"half a li")
    assert want(f.asked.result(5), 206).body == b"half a li"
    asked = f.take(9)
    f.events.leave()
    began = time.monotonic()
    assert want(asked.result(8), 200).body == b""
    assert 1.5 < time.monotonic() - began < 5
    # who comes back later is told
    f.events = f.follow()
    p = when(lambda p: p["ended"], f.events)
    assert not p["open"]
    want(f.put(9, b"ne\n"), 409, "LYCH-RUN-014")
    f.over()


def t_a_client_that_comes_back_at_once():
    f = Feed()
    f.put(0, b"one\n")
    f.asked.result(5)
    asked = f.take(4)
    f.events.leave()
    time.sleep(0.5)
    f.events = f.follow()
    assert when(lambda p: p["received"] == 4, f.events)["open"]
    time.sleep(2.5)
    assert not asked.done()
    want(f.put(4, b"two\n"), 200)
    assert asked.result(5).body == b"two\n"
    f.over()


def t_a_job_that_reads_no_more():
    f = Feed()
    f.put(0, b"x" * 1000)
    f.asked.result(5)
    assert want(f.take(0, "&closed=1").result(5), 200).body == b""
    p = when(lambda p: not p["open"], f.events)
    assert p["room"] == 0
    want(f.put(1000, b"y"), 409, "LYCH-RUN-006")
    f.over()


def t_another_vessel():
    global vessel
    f = Feed()
    f.put(0, b"with the tomb|with the vessel")
    assert f.asked.result(5).status == 206
    asked = pool.submit(work, f.lease, "POST", "/work/v1/stdin?offset=14")
    when(lambda p: p["taken"] == 14, f.events)
    vessel.stop(signal.SIGKILL)
    vessel = Vessel()
    f.events = f.follow()
    # it knows nothing before the tomb has said how far it is
    want(f.put(14, b"x"), 409, "LYCH-RUN-006")
    asked = f.take(14)
    assert when(lambda p: p["open"], f.events)["received"] == 14
    want(f.put(14, b"with the vessel"), 200)
    assert asked.result(5).body == b"with the vessel"
    f.over()


TTY = {"cols": 80, "rows": 24}


def t_a_terminal_that_is_none():
    good = uuid.uuid4().hex
    for bad, code in (({"cols": 0, "rows": 24}, "004"), ({"cols": 80, "rows": 4097}, "004"), ({"cols": 80}, "005"),
                      ({**TTY, "raw": True}, "002"), ({**TTY, "term": "../x"}, "004"), ({**TTY, "stays": "yes"}, "003"), ("yes", "003")):
        want(api("POST", "/v1/jobs", {"argv": ["true"], "stdin_stream": good, "tty": bad}), 400, "LYCH-SPEC-" + code)
    want(api("POST", "/v1/jobs", {"argv": ["true"], "tty": TTY}), 400, "LYCH-SPEC-005")
    want(api("POST", "/v1/jobs", {"argv": ["true"], "tty": TTY, "stdin": "x"}), 400, "LYCH-SPEC-005")


def t_who_may_not_resize():
    job, name = streamed(tty=TTY)
    want(resize(999999, name, 97, 31), 404, "LYCH-RUN-001")
    want(resize(job, name, 97, 31), 409, "LYCH-RUN-014")  # nobody follows it
    f = Feed("&cols=80&rows=24", tty=TTY)
    want(resize(f.job, OTHER, 97, 31), 409, "LYCH-RUN-014")
    want(resize(f.job, "x", 97, 31), 400, "LYCH-HTTP-007")
    for cols, rows in ((0, 31), (97, 0), (4097, 31), (97, 4097), ("x", 31), (-1, 31), ("", 31)):
        want(resize(f.job, f.name, cols, rows), 400, "LYCH-HTTP-007")
    want(resize(f.job, f.name, 97, 31, "&more=1"), 400, "LYCH-HTTP-007")
    want(api("PUT", f"/v1/jobs/{f.job}/tty/{f.name}?cols=97"), 400, "LYCH-HTTP-007")
    want(call(WORK, "PUT", f"/v1/jobs/{f.job}/tty/{f.name}?cols=97&rows=31"), 404, "LYCH-HTTP-002")
    want(work(f.lease, "POST", "/work/v1/stdin?offset=0&cols=97"), 400, "LYCH-HTTP-007")
    want(work(f.lease, "POST", "/work/v1/stdin?offset=0&cols=97&rows=4097"), 400, "LYCH-HTTP-007")
    assert not f.asked.done()
    f.over()
    want(resize(f.job, f.name, 97, 31), 409, "LYCH-RUN-006")
    pipe = Feed()
    want(resize(pipe.job, pipe.name, 97, 31), 409, "LYCH-TTY-006")
    assert not pipe.asked.done()
    pipe.over()


def t_the_size_of_a_window():
    global vessel
    f = Feed("&cols=80&rows=24", tty=TTY)
    want(resize(f.job, f.name, 80, 24), 200)  # it has that
    want(f.put(0, b"a"), 200)
    assert want(f.asked.result(5), 206).body == b"a"
    asked = f.take(1, "&cols=80&rows=24")
    want(resize(f.job, f.name, 97, 31), 200)
    assert want(asked.result(5), 202).json == {"cols": 97, "rows": 31}
    # told again to a tomb that says that it has not got it, before what is typed; and to that one only
    want(f.put(1, b"b"), 200)
    assert want(f.take(1, "&cols=80&rows=24").result(5), 202).json == {"cols": 97, "rows": 31}
    assert want(f.take(1, "&cols=97&rows=31").result(5), 206).body == b"b"
    # another vessel does not know it, and says nothing
    asked = pool.submit(work, f.lease, "POST", "/work/v1/stdin?offset=2&cols=97&rows=31")
    when(lambda p: p["taken"] == 2, f.events)
    vessel.stop(signal.SIGKILL)
    vessel = Vessel()
    f.events = f.follow()
    asked = f.take(2, "&cols=97&rows=31")
    assert when(lambda p: p["open"], f.events)["received"] == 2
    want(f.put(2, b"c"), 200)
    assert want(asked.result(5), 206).body == b"c"
    want(resize(f.job, f.name, 4096, 1), 200)
    assert want(f.take(3, "&cols=97&rows=31").result(5), 202).json == {"cols": 4096, "rows": 1}
    f.over()


STAYS = "&cols=80&rows=24&stays=1"


def comes(job, name, more=""):
    return Events(job, f"?stdin={name}{more}")


def t_a_terminal_that_stays():
    f = Feed(STAYS, tty={**TTY, "stays": True})
    want(f.put(0, b"one\n"), 200)
    assert want(f.asked.result(5), 206).body == b"one\n"
    asked = f.take(4, STAYS)
    want(f.put(4, b"left here"), 200)
    assert want(asked.result(5), 206).body == b"left here"
    f.events.leave()
    asked = f.take(4, STAYS)  # what it was given it has not got
    assert want(asked.result(5), 206).body == b"left here"
    asked = f.take(13, STAYS)
    time.sleep(4)  # longer than a client may be away elsewhere
    assert not asked.done()
    # who comes by another name goes on where that was
    f.name = uuid.uuid4().hex
    f.events = f.follow()
    assert when(lambda p: p["open"], f.events)["received"] == 13
    want(f.put(13, b"two\n"), 200)
    assert want(asked.result(5), 206).body == b"two\n"
    f.over()


def t_one_is_at_it_at_a_time():
    f = Feed(STAYS, tty={**TTY, "stays": True})
    want(api("GET", f"/v1/jobs/{f.job}/events?stdin={OTHER}"), 409, "LYCH-TTY-007")
    want(api("GET", f"/v1/jobs/{f.job}/events?stdin={OTHER}&take=0"), 409, "LYCH-TTY-007")
    want(api("GET", f"/v1/jobs/{f.job}/events?stdin={OTHER}&take=2"), 400, "LYCH-HTTP-007")
    want(put(f.job, OTHER, 0, b"x"), 409, "LYCH-RUN-014")
    want(f.put(0, b"still mine"), 200)
    assert want(f.asked.result(5), 206).body == b"still mine"
    asked = f.take(10, STAYS)
    other = comes(f.job, OTHER, "&take=1")
    assert when(lambda p: p["moved"], f.events)["open"] is False
    assert when(lambda p: p["taken"] == 10, other) == {"taken": 10, "received": 10, "room": WINDOW, "open": True, "ended": False,
                                                       "moved": False}
    want(f.put(10, b"x"), 409, "LYCH-RUN-014")
    want(resize(f.job, f.name, 97, 31), 409, "LYCH-RUN-014")
    want(put(f.job, OTHER, 10, b"mine now"), 200)
    assert want(asked.result(5), 206).body == b"mine now"
    # the one that was moved goes; nobody else does
    f.events.leave()
    asked = f.take(18, STAYS)
    time.sleep(3)
    want(put(f.job, OTHER, 18, b"!"), 200)
    assert want(asked.result(5), 206).body == b"!"
    # and comes again, with all of the job's output and by the name of before
    again = comes(f.job, f.name, "&take=1")
    when(lambda p: p["moved"], other)
    when(lambda p: p["open"], again)
    f.events = again
    f.over()
    # what is no terminal that stays is its own client's alone
    pipe = Feed()
    want(api("GET", f"/v1/jobs/{pipe.job}/events?stdin={OTHER}&take=1"), 409, "LYCH-RUN-014")
    pipe.over()


def t_another_vessel_and_nobody_there():
    global vessel
    f = Feed(STAYS, tty={**TTY, "stays": True})
    f.events.leave()
    want(f.asked.result(15), 206)
    vessel.stop(signal.SIGKILL)
    vessel = Vessel()
    until = time.monotonic() + 65  # longer than another vessel waits for a client elsewhere
    while time.monotonic() < until:
        assert want(f.take(0, STAYS).result(15), 206).body == b""
    f.name = uuid.uuid4().hex
    f.events = f.follow()
    asked = f.take(0, STAYS)
    when(lambda p: p["open"], f.events)
    want(f.put(0, b"here"), 200)
    assert want(asked.result(5), 206).body == b"here"
    f.over()


def t_it_is_not_run_again():
    job, _ = streamed()
    lease = claim(job)
    settle(lease, "fail_again", {"v": 1}, "transport_loss")
    j = want(api("GET", f"/v1/jobs/{job}"), 200).json
    assert (j["state"], j["class"]) == ("lost", "transport_loss"), j
    want(api("POST", f"/v1/jobs/{job}/retry"), 409, "LYCH-RUN-015")
    plain = submit()
    settle(claim(plain), "fail", {"v": 1}, "crash")
    want(api("POST", f"/v1/jobs/{plain}/retry"), 200)
    want(api("POST", "/v1/jobs/999999/retry"), 404, "LYCH-RUN-001")


if __name__ == "__main__":
    main(globals())
