# SPDX-License-Identifier: Apache-2.0
"""A pool of threads that pin themselves; then one that tries to get more than it was given."""
import concurrent.futures
import ctypes
import os
import threading

libc = ctypes.CDLL(None, use_errno=True)
libc.pthread_self.restype = ctypes.c_ulong


def say(what, good):
    print("ok" if good else "FAIL", what)


def pin_self(cpu):
    os.sched_setaffinity(0, {cpu})
    total = sum(i * i for i in range(20000))
    return os.sched_getaffinity(0) == {cpu} and total > 0


def pin_by_tid(cpu):
    os.sched_setaffinity(threading.get_native_id(), {cpu})
    return os.sched_getaffinity(threading.get_native_id()) == {cpu}


def pin_by_pthread(cpu):
    """What OpenMP, Java and Go's runtimes and numerical libraries do."""
    bits = (ctypes.c_ulong * 16)()
    bits[cpu // 64] = 1 << cpu % 64
    error = libc.pthread_setaffinity_np(ctypes.c_ulong(libc.pthread_self()),
                                        ctypes.sizeof(bits), bits)
    return error == 0 and os.sched_getaffinity(0) == {cpu}


def attempt(way):
    def one(cpu):
        try:
            return way(cpu)
        except OSError:
            return False
    return one


mine = sorted(os.sched_getaffinity(0))
for way in pin_self, pin_by_tid, pin_by_pthread:
    with concurrent.futures.ThreadPoolExecutor(max_workers=8) as pool:
        done = list(pool.map(attempt(way), [mine[i % len(mine)] for i in range(64)]))
    say(f"8 threads, 64 tasks, {way.__name__}", all(done))

# A thread of the pool is pinned by another one.
ready, leave = threading.Event(), threading.Event()
other = threading.Thread(target=lambda: (ready.set(), leave.wait()))
other.start()
ready.wait()
try:
    os.sched_setaffinity(other.native_id, {mine[0]})
    say("a thread pins another", os.sched_getaffinity(other.native_id) == {mine[0]})
except OSError as e:
    say(f"a thread pins another: {e.strerror}", False)
leave.set()
other.join()

say("the main thread kept its own", sorted(os.sched_getaffinity(0)) == mine)
try:
    os.sched_setaffinity(0, set(range(os.cpu_count())))
except OSError:
    pass
say("asking for every CPU gains none", set(os.sched_getaffinity(0)) <= set(mine))
child = os.fork()
if child == 0:
    try:
        os.sched_setaffinity(0, set(range(512)))
    except OSError:
        pass
    os._exit(not set(os.sched_getaffinity(0)) <= set(mine))
say("nor in a child", os.waitpid(child, 0)[1] == 0)
