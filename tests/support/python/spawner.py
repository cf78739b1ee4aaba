# SPDX-License-Identifier: Apache-2.0
"""A spawner (lych-sandbox --serve) and its other end, without a tomb: common/proto/spawn_proto.h in
Python. One Spawner per process of the test; what a job writes goes to a file."""
import array, fcntl, os, select, signal, socket, struct, subprocess, tempfile, time

VERSION = 8
RUN, KILL, HELLO, STARTED, REFUSED, EXITED, DENIED = 2, 4, 1, 3, 5, 7, 9
BROKER = 1  # a flag of RUN
LISTENER, CHANNEL = 1, 2  # what STARTED brings
F_ADD_SEALS, SEALS = 1033, 1 | 2 | 4 | 8


def descendants(pid):
    found, todo = set(), [pid]
    while todo:
        try:
            for task in os.listdir(f"/proc/{todo[0]}/task"):
                with open(f"/proc/{todo[0]}/task/{task}/children") as f:
                    new = {int(c) for c in f.read().split()} - found
                found |= new
                todo += new
        except OSError:
            pass
        del todo[0]
    return found


class Job:
    def __init__(self, handle, out):
        self.handle, self.out = handle, out
        self.broker = self.refused = self.exited = None
        self.detail = ""  # of its end
        self.started = False
        self.denied = 0  # kinds of denials told

    def text(self):
        self.out.seek(0)
        return self.out.read().decode(errors="replace")


class Spawner:
    def __init__(self, sandbox, jobs, grade, *options, under=()):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock, self.jobs_dir, self.grade = ours, jobs, grade
        self.jobs, self.next = {}, 1

        def place():
            os.dup2(theirs.fileno(), 3)
        # 3 may be either socket's own number here: it is theirs only in the child.
        self.process = subprocess.Popen(
            [*under, sandbox, "--serve", "3", "--jobs", jobs, "--grade", grade, *options],
            close_fds=False, pass_fds=(), preexec_fn=place, env={}, stdin=subprocess.DEVNULL)
        theirs.close()
        kind, version = struct.unpack_from("<II", self.sock.recv(4096))
        assert (kind, version) == (HELLO, VERSION), (kind, version)

    def run(self, *argv, flags=0, options=(), stdin=None):
        handle, self.next = self.next, self.next + 1
        work = os.path.join(self.jobs_dir, str(handle))
        os.mkdir(work, 0o700)
        words = ["--grade", self.grade, "--workspace", str(handle), *options, "--", *argv]
        block = b"".join(w.encode() + b"\0" for w in words)
        head = struct.pack("<IIQIIII", RUN, VERSION, handle, len(block), flags, 0, 0)
        spec = os.memfd_create("spec", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.write(spec, block)
        fcntl.fcntl(spec, F_ADD_SEALS, SEALS)
        out = tempfile.TemporaryFile()
        null = os.open("/dev/null", os.O_RDONLY)
        fds = array.array("i", [spec, stdin if stdin is not None else null, out.fileno(), out.fileno()])
        self.sock.sendmsg([head], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        os.close(spec)
        os.close(null)
        self.jobs[handle] = Job(handle, out)
        return self.jobs[handle]

    def kill(self, job):
        self.sock.send(struct.pack("<IIQII", KILL, 8, job.handle, 0, 0))

    def turn(self, seconds=10):
        """One message of the spawner."""
        if not select.select([self.sock], [], [], seconds)[0]:
            raise TimeoutError("the spawner says nothing")
        data, ancillary, flags, _ = self.sock.recvmsg(8192, socket.CMSG_SPACE(8 * 4))
        assert data and not flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC), "the spawner is gone"
        kind, second, handle = struct.unpack_from("<IIQ", data)
        job = self.jobs[handle]
        fds = array.array("i")
        for level, what, payload in ancillary:
            assert (level, what) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
            fds.frombytes(payload)
        assert len(fds) == (kind == STARTED and second != 0), (kind, second, fds)
        if kind == STARTED:
            job.started = True
            if fds:
                job.broker = (second, socket.socket(fileno=fds[0]))
        elif kind == REFUSED:
            code, stage, text = struct.unpack_from("24s24s200s", data, 16)
            job.refused = tuple(b.split(b"\0")[0].decode() for b in (code, stage, text))
        elif kind == DENIED:
            job.denied += 1
        elif kind == EXITED:
            job.exited = (second, struct.unpack_from("<i", data, 16)[0])
            job.detail = data[64:].split(b"\0")[0].decode()
        return job

    def wait(self, job, seconds=60):
        end = time.monotonic() + seconds
        while not job.exited and not job.refused:
            self.turn(end - time.monotonic())
        return job

    def wait_started(self, job, seconds=20):
        end = time.monotonic() + seconds
        while not job.started and not job.refused and not job.exited:
            self.turn(end - time.monotonic())
        return job

    def close(self):
        self.sock.close()
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            raise
