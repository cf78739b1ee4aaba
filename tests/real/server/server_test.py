# SPDX-License-Identifier: Apache-2.0
"""A small service and its tests, each of which listens and connects in the same sandbox."""
import asyncio
import concurrent.futures
import http.client
import http.server
import json
import os
import socket
import socketserver
import ssl
import subprocess
import sys
import threading
import urllib.request


class Service(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        words = self.rfile.read(int(self.headers["Content-Length"])).split()
        answer = json.dumps({"words": len(words)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64
    daemon_threads = True


class Server6(Server):
    address_family = socket.AF_INET6


def serving(server):
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def ask(url, text="one two three", **more):
    with urllib.request.urlopen(url, data=text.encode(), timeout=60, **more) as answer:
        return json.load(answer)["words"]


def http_by_name():
    port = serving(Server(("localhost", 0), Service))
    return ask(f"http://localhost:{port}/") == 3


def http_over_ipv6():
    port = serving(Server6(("::1", 0), Service))
    return ask(f"http://[::1]:{port}/") == 3


def fifty_clients():
    port = serving(Server(("127.0.0.1", 0), Service))
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        got = list(pool.map(lambda n: ask(f"http://127.0.0.1:{port}/", "w " * n), range(1, 201)))
    return got == list(range(1, 201))


def tls():
    server = Server(("localhost", 0), Service)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("cert.pem", "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    port = serving(server)
    return ask(f"https://localhost:{port}/", context=ssl.create_default_context(cafile="cert.pem")) == 3


def udp():
    class Echo(socketserver.BaseRequestHandler):
        def handle(self):
            self.request[1].sendto(self.request[0].upper(), self.client_address)

    port = serving(socketserver.ThreadingUDPServer(("127.0.0.1", 0), Echo))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(60)
        s.sendto(b"hello", ("127.0.0.1", port))
        return s.recv(100) == b"HELLO"


def unix_socket():
    class Echo(socketserver.StreamRequestHandler):
        def handle(self):
            self.wfile.write(self.rfile.readline().upper())

    threading.Thread(target=socketserver.ThreadingUnixStreamServer("echo.sock", Echo).serve_forever,
                     daemon=True).start()
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("echo.sock")
        s.sendall(b"hello\n")
        return s.recv(100) == b"HELLO\n"


def asyncio_streams():
    async def echo(reader, writer):
        writer.write((await reader.readline()).upper())
        await writer.drain()
        writer.close()

    async def once(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"hello\n")
        line = await reader.readline()
        writer.close()
        return line == b"HELLO\n"

    async def main():
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        return all(await asyncio.gather(*(once(port) for _ in range(20))))

    return asyncio.run(main())


def a_server_of_its_own_process():
    """As a test suite starts the program under test, finds its port and ends it."""
    child = subprocess.Popen([sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "0"],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    port = int(child.stdout.readline().split(b"port ")[1].split()[0])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/" + os.path.basename(__file__))
    found = connection.getresponse().status == 200
    child.terminate()
    child.wait()
    return found


def nobody_listens():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        closed = s.getsockname()
    try:
        socket.create_connection(closed, timeout=60)
    except ConnectionRefusedError:
        return True
    return False


for test in (http_by_name, http_over_ipv6, fifty_clients, tls, udp, unix_socket, asyncio_streams,
             a_server_of_its_own_process, nobody_listens):
    try:
        good = test()
    except Exception as e:
        print(f"{test.__name__}: {e!r}", file=sys.stderr)
        good = False
    print("ok" if good else "FAIL", test.__name__, flush=True)
os._exit(0)
